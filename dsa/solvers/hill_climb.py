"""Hill climbing over orders of placement, around what makes the peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dsa.budget import Budget
from dsa.kernels.placement import place, place_again
from dsa.problem import IntArray, Problem
from dsa.result import Solution, peak
from dsa.solvers import ALL, Solver, check_counts
from dsa.solvers.strip_packing import StripPacking

__all__ = ["HillClimb"]


@dataclass(frozen=True)
class HillClimb(Solver):
    """Swap two buffers in the order of placement, keep the swap unless the peak rises.

    The order is decoded by first fit. Only swaps that can matter are tried: one buffer of a chain
    that carries the peak (each resting on the one before), with one of its conflicts::

        peak  ----[ x ]
                 [  y   ]      chain x, y, z
                     [ z ]     swapped: one of them with a buffer it is live together with

    Parameters
    ----------
    iterations
        Swaps to try; if None, 500, or fewer on large problems (n x n x iterations stays below
        2 x 10^8).
    seed
        Of the random choices.

    Notes
    -----
    Complexity: for each iteration O(n) in whole columns for each buffer live together with one
    that is swapped or moves; O(n) memory.
    Ties: a swap that leaves the peak as it is is kept, so that the search can drift.
    Guarantee: never worse than `strip-packing` without restarts, where it starts.
    Source: after the hill climbs of Arm's Vela and of TVM's unified static memory planner.

    Examples
    --------
    >>> from dsa import plan
    >>> plan([(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)], solver="hill-climb").peak
    88
    """

    iterations: int | None = None
    seed: int = 0

    supports: ClassVar[frozenset[str]] = ALL
    searches: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_counts(self, "iterations", "seed")

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        best = np.asarray(StripPacking(restarts=0, moves=0)(problem, budget).offsets)
        order, lowest = best.argsort(kind="stable"), peak(problem, best)
        iterations = self.iterations
        if iterations is None:
            iterations = min(500, max(2 * 10**8 // len(problem) ** 2, 1))
        random = np.random.default_rng(self.seed)
        placed = place(problem, order)  # perhaps lower than the skyline left them
        tried = 0
        while tried < iterations and not budget.done(lowest):
            tried += 1
            swapped, places = _swap(problem, order, best, random)
            if problem.constrained:
                offsets = place(problem, swapped)
            else:
                offsets = place_again(problem, swapped, placed, places)
            reached = peak(problem, offsets)
            if reached < lowest:
                budget.report(reached)
            if reached <= lowest:
                order, best, placed, lowest = swapped, offsets, offsets, reached
        return Solution(best, stats={"iterations": tried})


def _swap(
    problem: Problem, order: IntArray, offsets: IntArray, random: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """The order with a buffer of a peak-carrying chain and one of its conflicts swapped; where."""
    end = offsets + problem.size
    tops = np.flatnonzero(end == end.max())
    chain = [int(random.choice(tops))]
    while True:
        below = _conflicts(problem, chain[-1])
        below = below[end[below] == offsets[chain[-1]]]
        if not len(below):
            break
        chain.append(int(random.choice(below)))
    one = int(random.choice(chain))
    others = _conflicts(problem, one)
    other = int(random.choice(others)) if len(others) else one
    swapped = order.copy()
    places = np.flatnonzero((order == one) | (order == other))
    swapped[places] = order[places[::-1]]
    return swapped, places


def _conflicts(problem: Problem, i: int) -> IntArray:
    sections = problem.sections
    meets = (sections.start < sections.stop[i]) & (sections.stop > sections.start[i])
    meets[i] = False
    return np.flatnonzero(meets)

"""The skyline in several orders, the best plan kept: the work horse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np

from dsa.budget import Budget
from dsa.problem import IntArray, Problem
from dsa.result import Solution
from dsa.solvers import ALL, Solver, check_counts
from dsa.solvers.best_fit import fill
from dsa.solvers.orders import ORDERS, check_order, sort_by

__all__ = ["StripPacking", "above", "fill_mixtures"]


@dataclass(frozen=True)
class StripPacking(Solver):
    """Fill the skyline once for each of several orders; each component keeps its lowest peak.

    The order of preference matters more than anything else, and a pass costs little: by size
    times lifetime one pass reaches the load on most real models. While none has, random mixtures
    of the orders follow, as long as restarts and time last.

    Parameters
    ----------
    orders
        Names of `dsa.solvers.orders.ORDERS`, tried in turn.
    mirrored
        Whether to try each with its ties broken as if time ran backwards, too. (The skyline
        itself has no direction in time: only ties have.)
    restarts
        How many random mixtures to try; None goes on until the time limit, or not at all if
        there is no limit.
    seed
        Of the random mixtures. A number of restarts gives the same plan for the same seed; a
        time limit may end earlier or later.

    Notes
    -----
    Complexity: near-linear for each order, O(n) memory.
    Ties: as in `dsa.solvers.orders.order_by`; of equal peaks the first found is kept.
    Guarantee: none beforehand, but a peak at the load is optimal and ends the search.
    Source: as `best-fit`; the orders by area and the mixtures are ours.

    Examples
    --------
    >>> from dsa import plan
    >>> print(plan([(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)], solver="strip-packing").peak)
    88
    """

    orders: tuple[str, ...] = ("area", "sections", "urgency", "size", "lifetime")
    mirrored: bool = True
    restarts: int | None = None
    seed: int = 0

    supports: ClassVar[frozenset[str]] = ALL

    def __post_init__(self) -> None:
        check_counts(self, "restarts", "seed")
        for name in self.orders:
            check_order(name)
        if not self.orders:
            raise ValueError("strip-packing needs at least one order")

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        orders = self._fixed_orders(problem)
        solution = Solution(fill(problem, next(orders)))  # whatever the time limit
        budget.report(solution.peak(problem))
        passes = 1
        while not budget.done(solution.peak(problem)) and (order := next(orders, None)) is not None:
            offsets = fill(problem, order, budget)
            if offsets is not None:
                solution = _improve(problem, budget, solution, offsets)
                passes += 1
        if budget.done(solution.peak(problem)):
            return Solution(solution.offsets, stats={"passes": passes})

        restarts = self.restarts
        if restarts is None and budget.time_limit is None:
            restarts = 0
        offsets = np.asarray(solution.offsets)
        mixed = fill_mixtures(problem, budget, offsets, self.seed, restarts)
        return Solution(mixed.offsets, stats={"passes": passes + mixed.stats["passes"]})

    def _fixed_orders(self, problem: Problem) -> Iterator[IntArray]:
        for mirrored in (False, True)[: 1 + bool(self.mirrored)]:
            for name in self.orders:
                yield sort_by(problem, *ORDERS[name](problem), mirrored=mirrored)


def fill_mixtures(
    problem: Problem, budget: Budget, offsets: IntArray, seed: int, restarts: int | None
) -> Solution:
    """Fill the skyline in random mixtures of the orders; components above the target only.

    Parameters
    ----------
    problem, budget
        As for a solver.
    offsets
        A plan to better.
    seed
        Of the mixtures.
    restarts
        How many to try; None goes on until the budget ends it.
    """
    rest = above(problem, offsets, budget.target)
    part, best, passes = problem.select(rest), Solution(offsets[rest]), 0
    for order in _mixtures(part, seed, restarts):
        filled = fill(part, order, budget)
        if filled is not None:
            best = _improve(part, budget, best, filled)
            passes += 1
        if budget.done(best.peak(part)):
            break
    offsets = offsets.copy()
    offsets[rest] = best.offsets
    return Solution(offsets, stats={"passes": passes})


def lower_by_component(problem: Problem, one: IntArray, other: IntArray) -> IntArray:
    """For each component the offsets of lower peak; those of `one` if equal.

    Examples
    --------
    >>> problem = Problem([(0, 1, 8), (1, 2, 8)])
    >>> lower_by_component(problem, np.array([0, 4]), np.array([2, 0])).tolist()
    [0, 0]
    """
    better = component_peaks(problem, other) < component_peaks(problem, one)
    return np.where(better[problem.component], other, one)


def component_peaks(problem: Problem, offsets: IntArray) -> IntArray:
    """Peak of each component; the last entry, for buffers of size 0, is 0."""
    component = problem.component
    peaks = np.zeros(component.max(initial=-1) + 2, np.int64)
    np.maximum.at(peaks, component, np.where(component < 0, 0, offsets + problem.size))
    return peaks


def _improve(problem: Problem, budget: Budget, best: Solution, offsets: IntArray) -> Solution:
    improved = Solution(lower_by_component(problem, np.asarray(best.offsets), offsets))
    if improved.peak(problem) < best.peak(problem):
        budget.report(improved.peak(problem))
    return improved


def above(problem: Problem, offsets: IntArray, target: int) -> IntArray:
    """Positions of the buffers in components whose peak is above the target."""
    high = component_peaks(problem, offsets) > target
    return np.flatnonzero(high[problem.component])


def _mixtures(problem: Problem, seed: int, restarts: int | None) -> Iterator[IntArray]:
    """Random weights for size, steps, sections and heaviest section, and noise, each time anew."""
    random = np.random.default_rng(seed)
    sections = problem.sections
    size = np.log(np.maximum(problem.size, 1))
    lifetimes = (
        np.log(problem.upper - problem.lower),
        np.log(np.maximum(sections.stop - sections.start, 1)),
    )
    for restart in count():
        if restart == restarts:
            return
        alpha, beta, noise = random.uniform((0.8, 0.6, 0.0), (1.5, 1.3, 0.8))
        score = alpha * size + beta * lifetimes[restart % 2]
        score += noise * random.uniform(-0.5, 0.5, len(problem))
        yield sort_by(problem, -score, mirrored=bool(restart // 2 % 2))

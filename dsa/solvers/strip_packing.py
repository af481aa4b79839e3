"""The skyline in several orders, the best plan kept: the work horse."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import BrokenExecutor, Future
from contextlib import closing
from dataclasses import dataclass
from itertools import count, islice
from typing import ClassVar, TypeAlias

import numpy as np

from dsa.budget import Budget
from dsa.kernels.insertion import insertion
from dsa.problem import FREE, IntArray, Problem
from dsa.result import Solution, peak
from dsa.solvers import ALL, Solver, check_counts
from dsa.solvers.best_fit import Filling
from dsa.solvers.orders import ORDERS, check_order, sort_by

__all__ = ["StripPacking", "above", "fill_mixtures"]

PATIENCE = 1.0  # seconds before processes are started
CHUNK = 0.5  # seconds of work that a process is given at a time
MAX_PAIRS = 2_000_000  # of a buffer and a section it covers: above, time is better spent on passes


@dataclass(frozen=True)
class StripPacking(Solver):
    """Fill the skyline once for each of several orders; each component keeps its lowest peak.

    The order of preference matters more than anything else, and a pass costs little: by size
    times lifetime one pass reaches the load on most real models. While none has, random mixtures
    of size and lifetime follow, as long as restarts and time last. Then the best plan is bettered
    by insertion: a buffer of a chain that makes the peak is taken out and put in elsewhere. A
    pass ends as soon as it is certain to lower no component's peak.

    Parameters
    ----------
    orders
        Names of `dsa.solvers.orders.ORDERS`, tried in turn.
    mirrored
        Whether to try each with its ties broken as if time ran backwards, too. (The skyline
        itself has no direction in time: only ties have.)
    restarts
        How many random mixtures to try; None goes on for half the time limit, or not at all if
        there is no limit.
    moves
        How many buffers to move to another place in the order (see `dsa.kernels.insertion`);
        None, if `restarts` is None too, goes on until the time limit, unless there is no limit or
        there are more than two million pairs of a buffer and a section it covers. Problems with
        pins or constraints are not bettered in this way.
    workers
        Processes that try mixtures. They are started once a second has not been enough, and do
        not change the result. The moves, each of which follows from the last, are not shared.
    seed
        Of mixtures and moves. Numbers of restarts and moves give the same plan for the same
        seed; a time limit may end earlier or later.

    Notes
    -----
    Complexity: near-linear for each order, O(n) memory; O(pairs of a buffer and a section it
    covers) for a move.
    Ties: as in `dsa.solvers.orders.order_by`; of equal peaks the first found is kept.
    Guarantee: none beforehand, but a peak at the load is optimal and ends the search.
    Source: as `best-fit`; the orders by area and the mixtures are ours. Insertion after
    Imanishi and Xu, *A heuristic for periodic memory allocation with little fragmentation to
    train neural networks*, 2024, but without annealing.

    Examples
    --------
    >>> from dsa import plan
    >>> print(plan([(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)], solver="strip-packing").peak)
    88
    """

    orders: tuple[str, ...] = ("area", "sections", "urgency", "size", "lifetime")
    mirrored: bool = True
    restarts: int | None = None
    moves: int | None = None
    workers: int = 1
    seed: int = 0

    supports: ClassVar[frozenset[str]] = ALL

    def __post_init__(self) -> None:
        check_counts(self, "restarts", "moves", "workers", "seed")
        if not self.workers:
            raise ValueError("strip-packing needs at least one worker")
        for name in self.orders:
            check_order(name)
        if not self.orders:
            raise ValueError("strip-packing needs at least one order")

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        orders, filling = self._fixed_orders(problem), Filling(problem)
        offsets = filling.fill(next(orders))  # whatever the time limit
        budget.report(peak(problem, offsets))
        return self._go_on(_Best(problem, budget, offsets), filling, orders, 1)

    def improve(self, problem: Problem, budget: Budget, offsets: IntArray) -> Solution:
        """Go on from a plan, made by the first order or otherwise, with the second order."""
        orders = islice(self._fixed_orders(problem), 1, None)
        return self._go_on(_Best(problem, budget, offsets), Filling(problem), orders, 0)

    def _go_on(
        self, best: _Best, filling: Filling, orders: Iterator[IntArray], passes: int
    ) -> Solution:
        problem, budget = best.problem, best.budget
        while not budget.done(best.peak) and (order := next(orders, None)) is not None:
            best.better(filling.fill(order, budget, best.ceilings))
            passes += 1
        offsets, stats = best.offsets, {"passes": passes}
        restarts, moves = self._counts(problem, budget)
        if restarts != 0 and not budget.done(peak(problem, offsets)):
            share = budget.limited(budget.remaining() / 2) if restarts == moves is None else budget
            mixed = fill_mixtures(problem, share, offsets, self.seed, restarts, self.workers)
            offsets, stats["passes"] = np.asarray(mixed.offsets), passes + mixed.stats["passes"]
        if moves != 0 and not budget.done(peak(problem, offsets)):
            rest = above(problem, offsets, budget.target)
            part, start = problem.select(rest), offsets[rest]
            offsets[rest], stats["moves"] = insertion(
                part, start, budget, moves=moves, seed=self.seed
            )
        return Solution(offsets, stats=stats)

    def _counts(self, problem: Problem, budget: Budget) -> tuple[int | None, int | None]:
        """Numbers of restarts and moves; None for as many as there is time for."""
        restarts, moves = self.restarts, self.moves
        if budget.time_limit is None:
            restarts, moves = restarts or 0, moves or 0
        sections = problem.sections
        slow = int((sections.stop - sections.start).sum()) > MAX_PAIRS
        if moves is None and (slow or restarts is not None):
            moves = 0
        if problem.constrained or (problem.pin != FREE).any():
            moves = 0
        return restarts, moves

    def _fixed_orders(self, problem: Problem) -> Iterator[IntArray]:
        for mirrored in (False, True)[: 1 + bool(self.mirrored)]:
            for name in self.orders:
                yield sort_by(problem, *ORDERS[name](problem), mirrored=mirrored)


def fill_mixtures(
    problem: Problem,
    budget: Budget,
    offsets: IntArray,
    seed: int,
    restarts: int | None,
    workers: int = 1,
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
    workers
        Processes to use if it takes longer than a moment; they do not change the result.
    """
    rest = above(problem, offsets, budget.target)
    part = problem.select(rest)
    best, passes = _Best(part, budget, offsets[rest]), 0
    with closing(_filled(best, seed, restarts, workers)) as fills:
        for filled, tried in fills:
            passes += tried
            best.better(filled)
            if budget.done(best.peak):
                break
    offsets = offsets.copy()
    offsets[rest] = best.offsets
    return Solution(offsets, stats={"passes": passes})


class _Best:
    """Of each component the lowest plan so far.

    Attributes
    ----------
    offsets, peak
        Of all.
    ceilings
        What a pass must come below in some component not to be in vain: its peak, but 0 if that
        is low enough.
    """

    def __init__(self, problem: Problem, budget: Budget, offsets: IntArray) -> None:
        self.problem, self.budget, self.offsets = problem, budget, offsets
        self._look()

    def _look(self) -> None:
        peaks = component_peaks(self.problem, self.offsets)
        self.peak = int(peaks.max())
        self.ceilings = np.where(peaks > self.budget.target, peaks, 0)

    def better(self, offsets: IntArray | None) -> None:
        """Take over what is lower of a plan, if there is one, and report a lower peak."""
        if offsets is None:
            return
        before = self.peak
        self.offsets = lower_by_component(self.problem, self.offsets, offsets, self.budget.target)
        self._look()
        if self.peak < before:
            self.budget.report(self.peak)


Filled: TypeAlias = tuple[IntArray | None, int]  # the best of some mixtures, and of how many


def _filled(
    best: _Best, seed: int, restarts: int | None, workers: int
) -> Generator[Filled, None, None]:
    """The mixtures one by one; after a moment several at a time, by processes."""
    problem, budget, filling = best.problem, best.budget, Filling(best.problem)
    restart, began = 0, budget.seconds()
    while restarts is None or restart < restarts:
        seconds = budget.seconds() - began
        if workers == 1 or seconds < PATIENCE or not _may_start_processes():
            order = _mixture(problem, seed, restart)
            restart += 1
            yield filling.fill(order, budget, best.ceilings), 1
            continue
        numbers = count(restart) if restarts is None else iter(range(restart, restarts))
        size = max(int(restart / seconds * CHUNK), 1)
        try:
            for chunk in _filled_by_processes(best, seed, numbers, size, workers):
                restart += size
                yield chunk
            return
        except BrokenExecutor:  # one was lost, or none can be started: go on without
            workers = 1


def _may_start_processes() -> bool:
    """Whether this process is no daemon, which may have no children."""
    from multiprocessing import current_process  # slow to import, and rarely needed

    return not current_process().daemon


def _filled_by_processes(
    best: _Best, seed: int, numbers: Iterator[int], size: int, workers: int
) -> Iterator[Filled]:
    """So many mixtures at a time, in order: so it does not matter which process is first."""
    from concurrent.futures import ProcessPoolExecutor

    budget = best.budget
    given = (best.problem, budget.target, seed)
    pool = ProcessPoolExecutor(workers, initializer=_Worker.start, initargs=given)
    pending = deque[Future[Filled]]()
    try:
        while True:
            while len(pending) < 2 * workers and (chunk := list(islice(numbers, size))):
                left = None if budget.time_limit is None else budget.remaining()
                pending.append(pool.submit(_Worker.best_of, chunk, best.ceilings, left))
            if not pending:
                return
            yield pending.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class _Worker:
    """What a process that fills mixtures keeps, so that it is given the problem only once."""

    problem: ClassVar[Problem]
    filling: ClassVar[Filling]
    target: ClassVar[int]
    seed: ClassVar[int]

    @classmethod
    def start(cls, problem: Problem, target: int, seed: int) -> None:
        cls.problem, cls.target, cls.seed = problem, target, seed
        cls.filling = Filling(problem)

    @classmethod
    def best_of(cls, chunk: list[int], ceilings: IntArray, seconds: float | None) -> Filled:
        """The best of some mixtures, None if they were all in vain, and how many were tried."""
        budget, best, tried = Budget(target=cls.target, time_limit=seconds), None, 0
        for restart in chunk:
            order = _mixture(cls.problem, cls.seed, restart)
            filled = cls.filling.fill(order, budget, ceilings)
            tried += 1
            if filled is not None and best is None:
                best = _Best(cls.problem, budget, filled)
            elif best is not None:
                best.better(filled)
            if best is not None:
                ceilings = np.minimum(ceilings, best.ceilings)
            if budget.expired() or (best is not None and budget.done(best.peak)):
                break
        return None if best is None else best.offsets, tried


def lower_by_component(
    problem: Problem, one: IntArray, other: IntArray, enough: int = 0
) -> IntArray:
    """For each component the offsets of lower peak; those of `one` if equal, or low enough.

    Examples
    --------
    >>> problem = Problem([(0, 1, 8), (1, 2, 8)])
    >>> lower_by_component(problem, np.array([0, 4]), np.array([2, 0])).tolist()
    [0, 0]
    """
    peaks = component_peaks(problem, one)
    better = (component_peaks(problem, other) < peaks) & (peaks > enough)
    return np.where(better[problem.component], other, one)


def component_peaks(problem: Problem, offsets: IntArray) -> IntArray:
    """Peak of each component; the last entry, for buffers of size 0, is 0."""
    component = problem.component
    peaks = np.zeros(component.max(initial=-1) + 2, np.int64)
    np.maximum.at(peaks, component, np.where(component < 0, 0, offsets + problem.size))
    return peaks


def above(problem: Problem, offsets: IntArray, target: int) -> IntArray:
    """Positions of the buffers in components whose peak is above the target."""
    high = component_peaks(problem, offsets) > target
    return np.flatnonzero(high[problem.component])


def _mixture(problem: Problem, seed: int, restart: int) -> IntArray:
    """Order by random weights for size and lifetime, and noise; a restart needs no other."""
    random = np.random.Generator(np.random.PCG64(seed).advance(restart * (3 + len(problem))))
    sections = problem.sections
    lifetime = sections.stop - sections.start if restart % 2 else problem.upper - problem.lower
    alpha, beta, noise = random.uniform((0.8, 0.6, 0.0), (1.5, 1.3, 0.8))
    score = alpha * np.log(np.maximum(problem.size, 1)) + beta * np.log(np.maximum(lifetime, 1))
    score += noise * random.uniform(-0.5, 0.5, len(problem))
    return sort_by(problem, -score, mirrored=bool(restart // 2 % 2))

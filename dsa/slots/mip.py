"""Slots by mixed-integer programming: how many of each size, and which buffer in which size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dsa.budget import Budget, check_seconds
from dsa.problem import Problem
from dsa.slots.greedy import GreedyByBreadth, GreedyBySize
from dsa.slots.maxima import positional_maxima
from dsa.slots.result import SlotSolution

if TYPE_CHECKING:
    from dsa.solvers.backends import Answer

__all__ = ["Mip"]


@dataclass(frozen=True)
class Mip:
    """The fewest bytes in slots, proven, by CBC, HiGHS or another backend of PuLP.

    Both greedy solvers run first; where one of them meets the positional maxima, no backend is
    started. The plan is never worse than theirs.

    Parameters
    ----------
    backend
        As for the solver `mip` of `plan`: ``"cbc"``, ``"highs"``, a PuLP solver object; None is
        HiGHS if it is installed, otherwise CBC.
    seconds
        Time limit, if the call has none.
    max_variables
        Above so many pairs of a buffer and a size that its slot may have, no backend is started,
        and ``stats["backend_status"]`` says so.

    Raises
    ------
    SolverUnavailableError
        If the backend is missing or does not work; it is not looked for before it is needed.

    Notes
    -----
    Sizes are a_1 > a_2 > ..., and a_k+1 = 0 after the last. n_k slots have size a_k or more; the
    positional maxima say that at least m_k do. x_ik = 1 if the slot of i has size a_k::

        minimise  sum over k of (a_k - a_k+1) (n_k - m_k)         bytes above the lower bound
        so that   sum over k of x_ik = 1                          a_k at least the size of i
                  sum over i live in S of x_ik <= n_k - n_k-1     for each section S
                  m_k <= n_k <= n_k+1

    Slots of one size are then shared out by start, which never needs more than are live together.
    Counting slots instead of naming them leaves no symmetries; and as only the bytes above the
    bound are in the objective, large sizes do no harm to the proof.

    Complexity: exponential; a variable for each buffer and size. Ties: the backend's.
    Guarantee: optimal if the status says so. A proof is claimed only if the backend ended by
    itself, its optimum is the total of the slots, counted in integers, and variables off by its
    tolerance buy less than half a unit, the greatest common divisor of the sizes. If the start was
    too high for that, the model is solved once more from what was found.

    Examples
    --------
    >>> from dsa.slots import plan_slots
    >>> rows = [(0, 1, 2), (0, 2, 3), (1, 3, 1), (2, 4, 3), (3, 5, 2), (0, 4, 1), (4, 6, 3)]
    >>> p = plan_slots(rows, solver="mip")
    >>> p.total, p.status
    (6, 'optimal')
    """

    backend: Any = None
    seconds: float = 60.0
    max_variables: int = 50_000

    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_seconds("seconds", self.seconds)
        if type(self.max_variables) is not int or self.max_variables < 0:
            raise ValueError(
                f"max_variables must be a whole number, at least 0, got {self.max_variables!r}"
            )

    def __call__(self, problem: Problem, budget: Budget, /) -> SlotSolution:
        if budget.time_limit is None:
            budget = budget.limited(self.seconds)
        starts = [solver(problem, budget).slots for solver in (GreedyBySize(), GreedyByBreadth())]
        best = min(starts, key=lambda slots: total(problem, slots))
        if budget.done(total(problem, best)):
            return SlotSolution(best)
        model = _Model(problem, best)
        if model.pairs > self.max_variables:
            words = f"not started: {model.pairs} variables are more than {self.max_variables}"
            return SlotSolution(best, stats={"backend_status": words})
        return self._search(problem, model, budget)

    def _search(self, problem: Problem, model: _Model, budget: Budget) -> SlotSolution:
        from dsa.solvers import backends  # which imports PuLP

        answer = backends.solve(model.build(), self.backend, budget)
        best, proved, words = _interpret(problem, model, answer)
        if proved and not model.exact_enough(answer.tolerance) and not budget.expired():
            model = _Model(problem, best)
            if model.ceiling and model.exact_enough(answer.tolerance):
                answer = backends.solve(model.build(), self.backend, budget)
                best, proved, words = _interpret(problem, model, answer)
        if proved and not model.exact_enough(answer.tolerance):
            proved, words = False, f"{words}, but in numbers too large for a proof"
        stats = {"backend": answer.backend, "backend_status": words}
        return SlotSolution(best, total(problem, best) if proved else None, stats)


def total(problem: Problem, slots: Any) -> int:
    """Bytes of all slots, each as large as its largest tenant."""
    sizes = np.zeros(max(slots) + 1, np.int64)
    np.maximum.at(sizes, np.asarray(slots), problem.size)
    return int(sizes.sum())


class _Model:
    """The model of `Mip`, in the words of its docstring, between a bound and a start.

    Parameters
    ----------
    problem
        What is to be solved.
    start
        Slots at which the backend starts, and which it has to beat.
    """

    def __init__(self, problem: Problem, start: Any) -> None:
        self._problem = problem
        self.start = list(start)
        self._maxima = np.array(positional_maxima(problem), np.int64)
        self._sizes = np.unique(problem.size[problem.size > 0])[::-1]
        self._unit = int(np.gcd.reduce(self._sizes))
        # In units: what the next size is below each size, and what may be spent above the bound.
        self._gaps: list[int] = (-np.diff(self._sizes, append=0) // self._unit).tolist()
        self.floor = int(self._maxima.sum())
        self.ceiling = (total(problem, start) - self.floor) // self._unit
        self.level = np.searchsorted(-self._sizes, -problem.size)  # of the smallest slot that does
        self.pairs = int((self.level + 1)[problem.size > 0].sum())

    def exact_enough(self, tolerance: float) -> bool:
        """Whether counts that are off by the tolerance buy less than half a unit."""
        growing = sum(gap for gap in self._gaps if gap <= self.ceiling)
        return growing * tolerance < 0.5

    def build(self) -> Any:
        """The ``pulp.LpProblem``."""
        import pulp

        from dsa.solvers.backends import variable

        program = pulp.LpProblem("slots")
        make = partial(variable, program)
        least = np.searchsorted(-self._maxima, -self._sizes, "right").tolist()
        slot_level = self._start_levels()
        used = np.bincount(slot_level, minlength=len(least)).cumsum().tolist()
        count = [
            make(f"n{k}", low, low + self.ceiling // gap, start=begin)
            for k, (low, gap, begin) in enumerate(zip(least, self._gaps, used, strict=True))
        ]
        self._choice = {
            (i, k): make(f"x{i}_{k}", 0, 1, start=int(k == slot_level[self.start[i]]))
            for i in np.flatnonzero(self._problem.size).tolist()
            for k in range(self.level[i] + 1)
        }
        program += pulp.lpSum(
            gap * (n - low) for gap, n, low in zip(self._gaps, count, least, strict=True)
        )
        for i in np.flatnonzero(self._problem.size).tolist():
            program += pulp.lpSum(self._choice[i, k] for k in range(self.level[i] + 1)) == 1
        for k in range(len(count) - 1):
            program += count[k] <= count[k + 1]
        for k, n in enumerate(count):
            here = n - count[k - 1] if k else n
            for live in self._live(k):
                program += pulp.lpSum(self._choice[i, k] for i in live) <= here
        self._program = program
        return program

    def _start_levels(self) -> Any:
        """Level of each slot of the start."""
        levels = np.full(max(self.start) + 1, len(self._sizes) - 1)
        np.minimum.at(levels, np.asarray(self.start), np.minimum(self.level, len(self._sizes) - 1))
        return levels

    def _live(self, k: int) -> Iterator[list[int]]:
        """Maximal sets of buffers live together that a slot of the k-th size can hold."""
        fit = np.flatnonzero((self._problem.size > 0) & (self.level >= k))
        sections = self._problem.select(fit).sections
        for section in range(len(sections)):
            live = (sections.start <= section) & (section < sections.stop)
            yield fit[live].tolist()

    def slots(self) -> list[int] | None:
        """Slots for the sizes that the backend chose; None where it left no choice."""
        chosen: dict[int, list[int]] = {}
        for (i, k), choice in self._choice.items():
            value = choice.value()
            if value is not None and math.isfinite(value) and round(value) == 1:
                chosen.setdefault(k, []).append(i)
        solid = int((self._problem.size > 0).sum())
        if sum(map(len, chosen.values())) != solid:
            return None
        slots, count = [0] * len(self._problem), 0
        for _, members in sorted(chosen.items()):
            count = _share(self._problem, members, slots, count)
        return slots

    def claimed(self) -> float:
        """The optimum as the backend has it, in units above the bound."""
        value = self._program.objective.value()
        return math.nan if value is None else value


def _share(problem: Problem, members: list[int], slots: list[int], count: int) -> int:
    """Share as few new slots as there can be, from number `count`; return the next number."""
    lower, upper = problem.lower.tolist(), problem.upper.tolist()
    ending: list[tuple[int, int]] = []
    for i in sorted(members, key=lambda i: (lower[i], i)):
        if ending and ending[0][0] <= lower[i]:
            slots[i] = heappop(ending)[1]
        else:
            slots[i] = count
            count += 1
        heappush(ending, (upper[i], slots[i]))
    return count


def _interpret(problem: Problem, model: _Model, answer: Answer) -> tuple[list[int], bool, str]:
    """The best slots, whether the backend has proved that none are better, and what to say."""
    if not answer.found:
        wrong = answer.words in ("infeasible", "unbounded")
        return model.start, False, f"wrong: {answer.words}" if wrong else answer.words
    slots = model.slots()
    if slots is None:
        return model.start, False, f"wrong: {answer.words}, but not all buffers have a slot"
    reached, start = total(problem, slots), total(problem, model.start)
    best = slots if reached < start else model.start
    claimed = model.claimed()
    agrees = math.isfinite(claimed) and model.floor + round(claimed) * model._unit == reached
    if answer.proved and not (agrees and reached <= start):
        return best, False, f"wrong: optimal at {claimed}, where the slots have {reached} bytes"
    return best, answer.proved, answer.words

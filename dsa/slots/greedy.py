"""Greedy slots, as Pisarchyk and Lee have them and TFLite's GPU delegate does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dsa.budget import Budget
from dsa.problem import IntArray, Problem
from dsa.slots.maxima import positional_maxima
from dsa.slots.result import SlotSolution

__all__ = ["GreedyByBreadth", "GreedyBySize"]

FAR = 2**63 - 1  # further apart than any two lifetimes


@dataclass(frozen=True)
class GreedyBySize:
    """Stage by stage the largest buffers, of these first the one that leaves a slot idle least.

    The stages are the positional maxima: a buffer belongs to the last one that is not below its
    size. Within a stage the buffer comes first whose lifetime is nearest to that of a tenant of a
    slot that it can join, and joins that slot. If no slot is free, it opens one::

        slot 0   [=====)       [====)        the distance of x to slot 0 is 1:
        x               [====)               x joins before others do that are further away

    Notes
    -----
    Complexity: O(n^2) in whole columns, O(n x slots) memory.
    Ties: larger size, earlier `lower`, earlier `upper`, id; of slots the first.
    Source: Pisarchyk and Lee, *Efficient Memory Management for Deep Neural Net Inference*, 2020,
    "greedy by size improved".

    Examples
    --------
    >>> from dsa.slots import plan_slots
    >>> plan_slots([(0, 2, 64), (1, 3, 32), (2, 4, 48)], solver="greedy-by-size").slots
    (0, 1, 0)
    """

    exact: ClassVar[bool] = False

    def __call__(self, problem: Problem, budget: Budget, /) -> SlotSolution:
        order = _largest_first(problem)
        size, maxima = problem.size[order], np.array(positional_maxima(problem), np.int64)
        stage = np.searchsorted(-maxima, -size, "right")
        distances = _Distances(problem.lower[order], problem.upper[order])
        slots = np.zeros(len(problem), np.int64)
        pending = np.ones(len(order), bool)
        ends = np.flatnonzero(np.diff(stage, append=-1)) + 1
        for first, end in zip([0, *ends], ends, strict=False):
            for _ in range(first, end):
                nearest = np.where(pending[first:end], distances.nearest[first:end], FAR)
                candidates = nearest == nearest.min()
                i = first + int((candidates & pending[first:end]).argmax())
                pending[i] = False
                slots[order[i]] = distances.join(i)
        return SlotSolution(slots.tolist())


class _Distances:
    """How far each buffer is from the nearest tenant of each slot, and from that of any slot."""

    def __init__(self, lower: IntArray, upper: IntArray) -> None:
        self._lower, self._upper = lower, upper
        self._slot = np.full(len(lower), -1, np.int64)
        self._columns: list[IntArray] = []  # one a slot; FAR where a tenant is in the way
        self.nearest = np.full(len(lower), FAR, np.int64)

    def join(self, i: int) -> int:
        """Let a buffer join its nearest slot, or a new one, and return the slot."""
        gap = np.maximum(self._lower, self._lower[i]) - np.minimum(self._upper, self._upper[i])
        distance = np.where(gap < 0, FAR, gap)
        slot = int(self._slot[i])
        if slot < 0:
            slot = len(self._columns)
            self._columns.append(distance)
        else:
            column = self._columns[slot]
            blocked = (column == FAR) | (gap < 0)
            self._columns[slot] = np.where(blocked, FAR, np.minimum(column, distance))
        self._update(slot)
        return slot

    def _update(self, slot: int) -> None:
        column = self._columns[slot]
        closer = (column < self.nearest) | ((column == self.nearest) & (slot < self._slot))
        self.nearest[closer], self._slot[closer] = column[closer], slot
        lost = np.flatnonzero((self._slot == slot) & (column == FAR))
        if len(lost):
            rest = np.array([other[lost] for other in self._columns])
            self.nearest[lost] = rest.min(axis=0)
            self._slot[lost] = np.where(self.nearest[lost] == FAR, -1, rest.argmin(axis=0))


@dataclass(frozen=True)
class GreedyByBreadth:
    """Steps by the bytes live at them, most first; at each, the largest buffer first.

    A buffer joins the smallest slot that is free and large enough; if none is, the largest that is
    free, which grows; if none is free, it opens one.

    Notes
    -----
    Complexity: O(sections x n + n x slots x sections) in whole columns.
    Ties: the earlier step; larger size, earlier `lower`, earlier `upper`, id; the first slot.
    Source: Pisarchyk and Lee, *Efficient Memory Management for Deep Neural Net Inference*, 2020.

    Examples
    --------
    >>> from dsa.slots import plan_slots
    >>> plan_slots([(0, 2, 8), (1, 3, 32), (2, 4, 48)], solver="greedy-by-breadth").sizes
    (48, 32)
    """

    exact: ClassVar[bool] = False

    def __call__(self, problem: Problem, budget: Budget, /) -> SlotSolution:
        order, sections = _largest_first(problem), problem.sections
        start, stop, size = sections.start[order], sections.stop[order], problem.size[order]
        busy: list[np.ndarray[tuple[int], np.dtype[np.bool_]]] = []  # sections, one row a slot
        sizes: list[int] = []
        slots = np.full(len(problem), -1, np.int64)
        for section in np.argsort(-sections.load, kind="stable").tolist():
            live = (start <= section) & (section < stop) & (slots[order] < 0)
            for i in np.flatnonzero(live).tolist():
                during = slice(int(start[i]), int(stop[i]))
                free = [k for k, row in enumerate(busy) if not row[during].any()]
                slot = _choose(free, sizes, int(size[i]))
                if slot is None:
                    slot = len(sizes)
                    sizes.append(0)
                    busy.append(np.zeros(len(sections), bool))
                busy[slot][during] = True
                sizes[slot] = max(sizes[slot], int(size[i]))
                slots[order[i]] = slot
        return SlotSolution(np.maximum(slots, 0).tolist())


def _choose(free: list[int], sizes: list[int], size: int) -> int | None:
    """The smallest free slot that is large enough, otherwise the largest."""
    enough = [slot for slot in free if sizes[slot] >= size]
    if enough:
        return min(enough, key=sizes.__getitem__)
    return max(free, key=sizes.__getitem__, default=None)


def _largest_first(problem: Problem) -> IntArray:
    """Positions of the buffers with a size."""
    keys = (problem.id_rank, problem.upper, problem.lower, -problem.size)
    order = np.lexsort(keys)
    return order[problem.size[order] > 0]

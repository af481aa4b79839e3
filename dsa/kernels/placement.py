"""Place buffers one by one, each into free bytes between those already placed.

The decoder of every solver that works with an order. It alone knows alignment and pins, so
whatever proposes an order need not.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from dsa.budget import Budget
from dsa.kernels.gaps import FILL, STACK, TOP, UNPLACED, fill_gaps, stack_all
from dsa.kernels.rigid import place_bodies
from dsa.problem import FREE, IntArray, Problem

__all__ = ["Fit", "Placement", "place", "place_again", "place_below", "stack"]

Fit: TypeAlias = Literal["first", "best"]

LONG = 10_000  # sections that a buffer covers on average, from which slices cost more than a tree
FEW = 4096  # buffers up to which it is quicker, uncompiled, to look along all that is placed


class Placement:
    """The buffers placed so far, as columns sorted by offset.

    Finding a place for a buffer looks once along the placed ones it conflicts with::

        bytes   0 ......[====].........[======)...... top
                  gap 0        gap 1            above
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._start = problem.sections.start
        self._stop = problem.sections.stop
        self._columns = np.zeros((4, max(len(problem), 1)), np.int64)  # start, stop, offset, end
        self._count = 0

    def find(self, i: int, fit: Fit) -> int:
        """Offset for buffer `i`: in the first or the smallest gap that holds it, else above all.

        Of equal gaps the lowest is taken. O(buffers placed), in whole columns.
        """
        start, stop, offset, end = self._columns[:, : self._count]
        meets = (start < self._stop[i]) & (stop > self._start[i])
        return _gap(self._problem, i, offset[meets], end[meets], fit)

    def insert(self, i: int, offset: int) -> None:
        """Place buffer `i` at an offset: O(buffers placed), one move of memory."""
        columns, count = self._columns, self._count
        at = int(columns[2, :count].searchsorted(offset, "right"))
        columns[:, at + 1 : count + 1] = columns[:, at:count]
        columns[:, at] = self._start[i], self._stop[i], offset, offset + self._problem.size[i]
        self._count += 1


def _gap(problem: Problem, i: int, below: IntArray, top: IntArray, fit: Fit) -> int:
    """Offset for buffer `i` among ranges of bytes, sorted by where they begin."""
    size, alignment = int(problem.size[i]), int(problem.alignment[i])
    floor = np.zeros(len(below) + 1, np.int64)  # where each gap begins; the last is above all
    np.maximum.accumulate(top, out=floor[1:])
    if alignment > 1:
        floor = -(-floor // alignment) * alignment
    room = below - floor[:-1]
    fits = room >= size
    if not len(fits):
        return 0
    gap = int(fits.argmax() if fit == "first" else np.where(fits, room, TOP).argmin())
    return int(floor[gap if fits[gap] else -1])


def place(problem: Problem, order: IntArray, fit: Fit = "first") -> IntArray:
    """Offsets when the buffers are placed in this order, pinned ones before all others.

    Near-linear, O(n) memory: see `dsa.kernels.gaps`; no conflict graph is built. A few buffers
    are placed by looking along all that have been. The same for a given order. Buffers of size 0
    get offset 0. In order of the offsets of a plan, first fit moves no buffer up: so any plan can
    be turned into an order and back without loss.

    Examples
    --------
    >>> problem = Problem([(0, 2, 96), (1, 3, 72), (2, 4, 48)])
    >>> place(problem, np.array([0, 1, 2])).tolist()
    [0, 96, 0]
    """
    offsets = place_below(problem, order, fit)
    assert offsets is not None
    return offsets


def place_below(
    problem: Problem,
    order: IntArray,
    fit: Fit,
    budget: Budget | None = None,
    ceilings: IntArray | None = None,
) -> IntArray | None:
    """As `place`; but None if it takes longer than a moment, and is late or in vain.

    Parameters
    ----------
    problem, order, fit
        As for `place`.
    budget, ceilings
        As for `fill_gaps`. A few buffers, and those with constraints, are placed whatever they are.

    Examples
    --------
    >>> problem = Problem([(step, step + 2, 8) for step in range(5000)])
    >>> place_below(problem, np.arange(5000), "first", ceilings=np.array([16]))
    >>> place_below(problem, np.arange(5000), "first", ceilings=np.array([17])).max()
    np.int64(8)
    """
    if problem.constrained:
        return place_bodies(problem, order, fit)
    solid, free = problem.size > 0, problem.pin == FREE
    pinned, order = np.flatnonzero(solid & ~free), order[(solid & free)[order]]
    offsets = np.maximum(problem.pin, 0)
    if len(order) > FEW or FILL.bought:
        offsets[order] = UNPLACED
        everything = np.concatenate([pinned, order])
        return fill_gaps(problem, everything, offsets, fit == "best", budget, ceilings)
    placement = Placement(problem)
    for i in pinned.tolist():
        placement.insert(i, int(problem.pin[i]))
    for i in order.tolist():
        offsets[i] = placement.find(i, fit)
        placement.insert(i, int(offsets[i]))
    return offsets


def place_again(
    problem: Problem, order: IntArray, offsets: IntArray, swapped: IntArray
) -> IntArray:
    """First-fit offsets after a swap, by finding only what may have changed.

    A buffer is placed as before unless it is live together with one of the two swapped or with
    one that has moved.

    Parameters
    ----------
    problem
        Without constraints, all buffers with a size.
    order
        The new order.
    offsets
        What `place` gave for the old one.
    swapped
        The two places in the order, the earlier first.

    Examples
    --------
    >>> problem = Problem([(0, 2, 96), (1, 3, 72), (2, 4, 48)])
    >>> place_again(problem, np.array([1, 0, 2]), np.array([0, 96, 0]), np.array([0, 1])).tolist()
    [72, 0, 72]
    """
    offsets, sections = offsets.copy(), problem.sections
    start, stop = sections.start, sections.stop
    rank = np.empty(len(problem), np.int64)
    rank[order] = np.arange(len(problem))
    rank[problem.pin != FREE] = -1
    changed = np.zeros(len(sections), bool)
    for i in order[swapped].tolist():
        changed[start[i] : stop[i]] = True
    later = order[swapped[0] :]
    for i in later[rank[later] >= 0].tolist():
        if not changed[start[i] : stop[i]].any():
            continue
        meets = np.flatnonzero((start < stop[i]) & (stop > start[i]) & (rank < rank[i]))
        meets = meets[offsets[meets].argsort()]
        below = offsets[meets]
        offset = _gap(problem, i, below, below + problem.size[meets], "first")
        if offset != offsets[i]:
            offsets[i] = offset
            changed[start[i] : stop[i]] = True
    return offsets


def stack(problem: Problem, offsets: IntArray) -> IntArray:
    """Push a plan down: buffers by rising offset, each onto what lies under it.

    Takes the offsets of a valid plan, perhaps of the same buffers among others, and never raises
    one: by induction nothing under a buffer is higher than before, and where it was was aligned.
    Pinned buffers stay. O(n log n); uncompiled in slices of columns, unless those are long.

    Examples
    --------
    >>> problem = Problem([(0, 2, 4), (1, 3, 4)])
    >>> stack(problem, np.array([2, 9])).tolist()
    [0, 4]
    """
    if problem.constrained:
        return np.array(offsets)  # under a hole nothing need be lower than before
    sections = problem.sections
    solid = problem.size > 0
    order = offsets.argsort(kind="stable")
    order = order[solid[order]]
    if STACK.bought or int((sections.stop - sections.start).sum()) > LONG * len(order):
        pin = np.where(solid, problem.pin, np.maximum(problem.pin, 0))
        return stack_all(problem, order, pin)
    top = np.zeros(len(sections), np.int64)
    stacked = np.maximum(problem.pin, 0)
    start, stop = sections.start.tolist(), sections.stop.tolist()
    size, alignment, pin = problem.size.tolist(), problem.alignment.tolist(), problem.pin.tolist()
    for i in order.tolist():
        covered = slice(start[i], stop[i])
        if pin[i] == FREE:
            stacked[i] = -(-int(top[covered].max()) // alignment[i]) * alignment[i]
        top[covered] = stacked[i] + size[i]
    return stacked

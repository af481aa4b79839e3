"""Find and fill gaps: placement in a given order without looking at all that has been placed.

Blocked bytes are kept for ranges of sections, in a binary tree over them. A buffer covers the
sections of a few nodes in full (its *inner* nodes); their ancestors it covers in part (its
*outer* nodes)::

    sections      0   1   2   3   4   5   6   7
    outer         [-------------------------------]
                  [--------------][---------------]
                  [-------]                [------]     Bytes that are blocked somewhere below
    inner             [--][-------][------][--]         an inner node, or all over an outer one,
    buffer            [=======================)         are in the buffer's way. Others are not.

So a node has two lists: bytes blocked all over it, *across*, and bytes blocked somewhere below,
*within*. A list is a sorted row of ends of ranges, start and stop in turn, touching ranges joined:
good plans are dense, so the rows are short. They lie in one pool of integers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import MutableSequence, Sequence
from typing import Any

import numpy as np

from dsa.budget import Budget
from dsa.kernels.compiled import Kernel
from dsa.problem import IntArray, Problem

__all__ = ["fill_gaps", "nodes", "stack_all"]

SECONDS, STACK_SECONDS = 1e-4, 2e-5  # that a buffer takes uncompiled
UNPLACED = -1
UNUSED = -1  # room of a list that nobody will ask for
TOP = (1 << 63) - 1
DEPTH = 64  # levels of the tree, at most
PAUSE = 4096  # buffers between two looks at the clock
# The register: how many are placed, how much of the pool is used, how many are placed at the next
# pause, and how many components are below their ceilings.
PLACED, USED, STOP, HOPEFUL = range(4)


def fill_gaps(
    problem: Problem,
    order: IntArray,
    offsets: IntArray,
    best: bool,
    budget: Budget | None = None,
    ceilings: IntArray | None = None,
) -> IntArray | None:
    """Offsets when the buffers of an order are placed one by one, each into a gap.

    None if it is not ended, since it is late or in vain.

    O(log n) lists are searched and changed for each buffer, with one step for each gap that a
    list leaves below the place found, one look at each list for each gap that all of them leave
    and that is large enough, and one move of memory for each list: near-linear where lists are
    short. O(n) memory likewise.

    Parameters
    ----------
    problem, order
        Buffers that have a size, and when each is placed.
    offsets
        Where they are; -1 for those to be placed.
    best
        Whether the smallest gap is taken, of equal ones the lowest; otherwise it is the lowest.
    budget
        It is cut short once its time is up.
    ceilings
        For each component a peak; 0 where none would be low enough. It is given up once no
        component will be lower.

    Examples
    --------
    >>> problem = Problem([(0, 2, 96), (1, 3, 72), (2, 4, 48)])
    >>> fill_gaps(problem, np.array([0, 1, 2]), np.full(3, UNPLACED), best=True).tolist()
    [0, 96, 0]
    """
    sections = problem.sections
    leaves = 1 << (len(sections) + 1).bit_length()
    lists = np.zeros((3, 4 * leaves), np.int64)
    lists[2] = UNUSED
    hopeful = -1 if ceilings is None else np.count_nonzero(ceilings)
    none = np.zeros(0, np.int64)
    run, columns = FILL.ready_for(
        SECONDS * len(order),
        *(sections.start, sections.stop, problem.size, problem.alignment, order),
        *((none, none) if ceilings is None else (problem.component, ceilings.copy())),
        *(lists, np.zeros((4, 2 * DEPTH), np.int64), np.array([0, 0, PAUSE, hopeful]), offsets),
        np.zeros(1 << 10, np.int64),
        left=float("inf") if budget is None else budget.remaining(),
    )
    *columns, pool = columns
    register = columns[-2]
    while not run(best, *columns, pool):
        if register[PLACED] < register[STOP]:
            pool = double(pool)
        elif budget is not None and budget.expired():
            return None
        else:
            register[STOP] += PAUSE
    return np.asarray(columns[-1], np.int64) if register[HOPEFUL] else None


def double(pool: Any) -> Any:
    """Twice the room, in a list or an array."""
    return np.concatenate([pool, pool]) if isinstance(pool, np.ndarray) else pool * 2


def _fill(
    best: bool,
    start: Sequence[int],
    stop: Sequence[int],
    size: Sequence[int],
    alignment: Sequence[int],
    order: Sequence[int],
    component: Sequence[int],
    ceilings: MutableSequence[int],
    lists: Sequence[MutableSequence[int]],
    scratch: Sequence[MutableSequence[int]],
    register: MutableSequence[int],
    offsets: MutableSequence[int],
    pool: MutableSequence[int],
) -> bool:
    """Whether all are placed, or no component is hopeful.

    If not, it is time to look at the clock, or the pool is full: call again, with a larger one.
    """
    begin, count, room = lists[0], lists[1], lists[2]
    inner, outer, at, end = scratch[0], scratch[1], scratch[2], scratch[3]
    within = len(begin) // 2
    leaves = within // 2
    if not register[USED]:
        for i in order:
            inners, outers = nodes(start[i], stop[i], leaves, inner, outer)
            for k in range(inners):
                room[within + inner[k]] = 0
            for k in range(outers):
                room[outer[k]] = 0
    while register[PLACED] < len(order):
        if register[PLACED] == register[STOP]:
            return False
        i = order[register[PLACED]]
        inners, outers = nodes(start[i], stop[i], leaves, inner, outer)
        if offsets[i] < 0:
            asked = 0
            for k in range(inners + outers):
                row = within + inner[k] if k < inners else outer[k - inners]
                if count[row]:
                    at[asked], end[asked] = begin[row], begin[row] + count[row]
                    asked += 1
            offsets[i] = _find(pool, at, end, asked, size[i], alignment[i], best)
        # To block bytes twice does no harm, so what a full pool has cut short is done again.
        low, high = offsets[i], offsets[i] + size[i]
        for k in range(inners + outers):
            node = inner[k] if k < inners else outer[k - inners]
            if not _block(pool, begin, count, room, register, within + node, low, high):
                return False
            if k < inners and not _block(pool, begin, count, room, register, node, low, high):
                return False
        register[PLACED] += 1
        if register[HOPEFUL] > 0 and high >= ceilings[component[i]] > 0:
            ceilings[component[i]] = 0
            register[HOPEFUL] -= 1
            if not register[HOPEFUL]:
                return True
    return True


def nodes(
    first: int,
    last: int,
    leaves: int,
    inner: MutableSequence[int],
    outer: MutableSequence[int],
) -> tuple[int, int]:
    """The nodes that sections first .. last - 1 cover in full and in part; how many of each.

    Goes up from the neighbours of the range. There is a leaf to spare on either side.
    """
    inners = outers = lefts = rights = 0
    left, right = leaves + first, leaves + last + 1
    while left ^ right != 1:
        if not left & 1:
            inner[inners] = left + 1
            inners += 1
            lefts = 1
        if right & 1:
            inner[inners] = right - 1
            inners += 1
            rights = 1
        left >>= 1
        right >>= 1
        if lefts:
            outer[outers] = left
            outers += 1
        if rights:
            outer[outers] = right
            outers += 1
    left >>= 1
    while left:
        outer[outers] = left
        outers += 1
        left >>= 1
    return inners, outers


def _find(
    pool: Sequence[int],
    at: MutableSequence[int],
    end: MutableSequence[int],
    asked: int,
    size: int,
    alignment: int,
    best: bool,
) -> int:
    """The offset in the lowest or the smallest gap that all lists leave, else above all.

    Each list in turn moves the offset up to where it leaves room itself, without a look at the
    others; where all agree, there is a gap. So what one list leaves too little room for costs a
    step, however many lists there are.
    """
    offset, chosen, least = 0, -1, TOP
    k, agreed, low = 0, 0, TOP
    while agreed < asked:
        place, last, before = at[k], end[k], offset
        if place < last and pool[place] <= offset:
            place = bisect_right(pool, offset, place, last)
        while place < last and (place & 1 or pool[place] - offset < size):
            top = pool[place | 1]  # of the range in the way
            offset = max(offset, -(-top // alignment) * alignment)
            place = (place | 1) + 1
        at[k] = place
        if offset > before:
            agreed, low = 0, TOP
        if place < last:
            low = min(low, pool[place])
        agreed += 1
        k = k + 1 if k + 1 < asked else 0
        if agreed == asked and low < TOP:
            if low - offset < least:
                chosen, least = offset, low - offset
                if not best or least == size:
                    break
            offset = -(-low // alignment) * alignment
            agreed, low = 0, TOP
    return offset if chosen < 0 else chosen


def _block(
    pool: MutableSequence[int],
    begin: MutableSequence[int],
    count: MutableSequence[int],
    room: MutableSequence[int],
    register: MutableSequence[int],
    row: int,
    low: int,
    high: int,
) -> bool:
    """Block bytes low .. high - 1 in a list; False if the pool is full.

    The ends between the two go; either of them stays only if it is outside of all ranges.
    """
    if room[row] == UNUSED:
        return True
    first, last = begin[row], begin[row] + count[row]
    i = bisect_left(pool, low, first, last)
    j = bisect_right(pool, high, i, last)
    grown = (i + 1) % 2 + (j + 1) % 2 - (j - i)
    if count[row] + grown > room[row]:
        size = max(2 * room[row], 4)
        used = register[USED]
        if used + size > len(pool):
            return False
        pool[used : used + count[row]] = pool[first:last]
        register[USED] = used + size
        i, j, last = i + used - first, j + used - first, last + used - first
        begin[row], room[row] = used, size
    if grown:
        pool[j + grown : last + grown] = pool[j:last]
        count[row] += grown
    if not i & 1:
        pool[i] = low
        i += 1
    if not (j + grown) & 1:
        pool[j + grown - 1] = high
    return True


def stack_all(problem: Problem, order: IntArray, pin: IntArray) -> IntArray:
    """Offsets when the buffers of an order are put onto what lies under them: O(log n) for each.

    Parameters
    ----------
    problem, order
        Buffers that have a size; none ends lower than one before it that is live with it.
    pin
        Where they are; -1 for those to be placed.

    Examples
    --------
    >>> problem = Problem([(0, 2, 4), (1, 3, 4)])
    >>> stack_all(problem, np.array([1, 0]), np.full(2, UNPLACED)).tolist()
    [4, 0]
    """
    sections = problem.sections
    leaves = 1 << (len(sections) + 1).bit_length()
    run, columns = STACK.ready_for(
        STACK_SECONDS * len(order),
        *(sections.start, sections.stop, problem.size, problem.alignment, order),
        *(np.zeros((2, 2 * leaves), np.int64), np.zeros((2, 2 * DEPTH), np.int64), pin),
    )
    run(*columns)
    return np.asarray(columns[-1], np.int64)


def _stack(
    start: Sequence[int],
    stop: Sequence[int],
    size: Sequence[int],
    alignment: Sequence[int],
    order: Sequence[int],
    tops: Sequence[MutableSequence[int]],
    scratch: Sequence[MutableSequence[int]],
    offsets: MutableSequence[int],
) -> None:
    """As lists of ranges do for gaps, so here do tops: across a node, and highest within it."""
    across, within = tops[0], tops[1]
    inner, outer = scratch[0], scratch[1]
    leaves = len(across) // 2
    for i in order:
        inners, outers = nodes(start[i], stop[i], leaves, inner, outer)
        if offsets[i] < 0:
            top = 0
            for k in range(inners):
                top = max(top, within[inner[k]])
            for k in range(outers):
                top = max(top, across[outer[k]])
            offsets[i] = -(-top // alignment[i]) * alignment[i]
        end = offsets[i] + size[i]
        for k in range(inners):
            across[inner[k]] = within[inner[k]] = end
        for k in range(outers):
            within[outer[k]] = max(within[outer[k]], end)


FILL = Kernel(_fill, nodes, _find, _block)
STACK = Kernel(_stack, nodes)

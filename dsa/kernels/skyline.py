"""Fill a skyline from below: the constructive heuristic for a million buffers.

The skyline is the top of what is placed, over each section: a row of segments of equal height.
The best-ranked buffer whose lifetime lies inside the lowest segment goes onto it and splits it; if
there is none, the segment is raised to its lower neighbour and joins it::

    |      [  c  ]   |         |      [  c  ]   |         |      [  c  ]   |
    |[  a  ]         |  place  |[  a  ]   [ d ] |  raise  |[  a  ]#####[ d ]|
    |[  b        ]   |  d on   |[  b        ]   |  what   |[  b        ]   |
    +----------------+  the    +----------------+  fits   +----------------+
                        lowest                     nothing

A segment between two higher ones is low enough: what fits into it fits into no other such segment,
and nothing happens to the others while it is filled and raised. So their turn does not matter, and
the walk goes downhill from where it is, to what is near in memory, with no heap of heights. It
crosses a border again only after one side of it has risen: a few steps for each buffer.

To find the best-ranked buffer inside a segment, the buffers are sorted by length class (sections
covered, rounded down to a power of 8), then by start, and put into the leaves of a binary tree,
whose nodes keep the soonest stop and the best rank below them. Of one class, those that start in
the segment fit into it, but for some that start near its end; an index says which leaves these
are. A search visits only nodes that may hold something better than what it has.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence, Sequence
from typing import overload

import numpy as np

from dsa.budget import Budget
from dsa.kernels.compiled import Kernel
from dsa.problem import IntArray, Problem

__all__ = ["skyline"]

SECONDS = 3e-5  # that a buffer takes uncompiled
CLASS_BITS = 3  # buffers of one length class differ in length by less than 2**3 times
PAUSE = 4096  # buffers between two looks at the clock


@overload
def skyline(problem: Problem, order: IntArray) -> IntArray: ...
@overload
def skyline(problem: Problem, order: IntArray, budget: Budget) -> IntArray | None: ...
def skyline(problem: Problem, order: IntArray, budget: Budget | None = None) -> IntArray | None:
    """Offsets by filling the skyline, buffers earlier in `order` preferred.

    Near-linear: at most 3n segments are looked at, each by one search of the tree; a search takes
    O(log^2 n), and more only where many buffers of one class start near the end of a segment and
    reach beyond it. Memory for a row of sections for each of O(log n) length classes. Buffers of
    size 0 get offset 0.
    Alignments are honoured, pins are not looked at. With a budget, None if its time is up before
    the last buffer is placed.

    Examples
    --------
    >>> problem = Problem([(0, 2, 96), (1, 3, 72), (2, 4, 48)])
    >>> skyline(problem, np.array([0, 1, 2])).tolist()
    [0, 96, 0]
    """
    sections = problem.sections
    solid = np.flatnonzero(problem.size)
    exponent = np.frexp(sections.stop[solid] - sections.start[solid])[1].astype(np.int64)
    length_class = (exponent - 1) // CLASS_BITS
    # A leaf's place is its class and its start. The index says how many lie before each place.
    width = len(sections) + 1
    place = length_class * width + sections.start[solid]
    by_place = place.argsort(kind="stable")
    leaf = solid[by_place]
    index = np.zeros((length_class.max(initial=0) + 1) * width + 1, np.int64)
    np.cumsum(np.bincount(place, minlength=len(index) - 1), out=index[1:])
    rank = np.empty(len(problem), np.int64)
    rank[order] = np.arange(len(problem))
    start, stop = sections.start[leaf], sections.stop[leaf]
    run, columns = FILL.ready_for(
        SECONDS * len(leaf),
        *(start, stop, problem.size[leaf], problem.alignment[leaf]),
        *(index, _tree(stop), _tree(rank[leaf])),
        *(np.zeros((3, width), np.int64), np.zeros(len(leaf), np.int64)),
        left=float("inf") if budget is None else budget.remaining(),
    )
    for _ in run(*columns):
        if budget is not None and budget.expired():
            return None
    offsets = np.zeros(len(problem), np.int64)
    offsets[leaf] = columns[-1]
    return offsets


def _tree(values: IntArray) -> IntArray:
    """A binary tree of minima: node v has the children 2v and 2v + 1, the leaves come last."""
    leaves = 1 << max(len(values) - 1, 0).bit_length()
    tree = np.full(2 * leaves, np.iinfo(np.int64).max)
    tree[leaves : leaves + len(values)] = values
    while leaves > 1:
        half = leaves // 2
        tree[half:leaves] = tree[leaves : 2 * leaves].reshape(-1, 2).min(axis=1)
        leaves = half
    return tree


def _fill(
    start: Sequence[int],
    stop: Sequence[int],
    size: Sequence[int],
    alignment: Sequence[int],
    index: Sequence[int],
    soonest: MutableSequence[int],
    best: MutableSequence[int],
    segments: Sequence[MutableSequence[int]],
    offsets: MutableSequence[int],
) -> Iterator[int]:
    # A segment is known by its first section; no two neighbours are of equal height.
    height, end, previous = segments[0], segments[1], segments[2]
    count = len(height) - 1
    end[0], previous[0] = count, -1
    first, left = 0, len(start)
    while left:
        level, last, before = height[first], end[first], previous[first]
        if before >= 0 and height[before] < level:
            first = before
            continue
        if last < count and height[last] < level:
            first = last
            continue
        node = _best_inside(soonest, best, index, count + 1, first, last)
        if node < 0:  # nothing fits: raise to the lower neighbour and join it
            joins_left = before >= 0 and (last == count or height[before] <= height[last])
            if last < count and (before < 0 or height[last] <= height[before]):
                height[first], last = height[last], end[last]
            if joins_left:
                first = before
            end[first] = last
            if last < count:
                previous[last] = first
            continue

        i = node - len(best) // 2
        _remove(soonest, best, node)
        left -= 1
        offset = -(-level // alignment[i]) * alignment[i]
        offsets[i] = offset
        top, middle, right = offset + size[i], start[i], stop[i]
        remains = first < middle
        if remains:
            end[first], previous[middle] = middle, first
        elif before >= 0 and height[before] == top:
            middle = before
        if right < last:
            height[right], end[right], previous[right] = level, last, middle
            if last < count:
                previous[last] = right
            following = right
        else:
            if last < count and height[last] == top:
                right = end[last]
            if right < count:
                previous[right] = middle
            following = middle
        height[middle], end[middle] = top, right
        if not remains:
            first = following
        if left and left % PAUSE == 0:
            yield left


def _best_inside(
    soonest: Sequence[int],
    best: Sequence[int],
    index: Sequence[int],
    width: int,
    first: int,
    last: int,
) -> int:
    """Leaf of the best rank among buffers within sections first .. last - 1, or -1."""
    leaves = len(best) // 2
    found, rank = -1, best[0]  # entry 0 is no node: it holds the largest integer
    pending = []
    row, least = 0, 1
    while row < len(index) - 1 and least <= last - first:
        low, high = index[row + first] + leaves, index[row + last - least + 1] + leaves
        while low < high:  # the few nodes that cover the range
            if low & 1:
                pending.append(low)
                low += 1
            if high & 1:
                high -= 1
                pending.append(high)
            low >>= 1
            high >>= 1
        row, least = row + width, least << CLASS_BITS
    while pending:
        node = pending.pop()
        if best[node] >= rank or soonest[node] > last:
            continue
        while node < leaves:  # down to the child of better rank, remembering the other
            left, right = 2 * node, 2 * node + 1
            left_may = soonest[left] <= last and best[left] < rank
            right_may = soonest[right] <= last and best[right] < rank
            if left_may and right_may:
                if best[left] < best[right]:
                    pending.append(right)
                    node = left
                else:
                    pending.append(left)
                    node = right
            elif left_may:
                node = left
            elif right_may:
                node = right
            else:
                break
        if node >= leaves:
            found, rank = node, best[node]
    return found


def _remove(soonest: MutableSequence[int], best: MutableSequence[int], node: int) -> None:
    soonest[node] = best[node] = best[0]
    node >>= 1
    while node:
        left, right = 2 * node, 2 * node + 1
        stop = min(soonest[left], soonest[right])
        rank = min(best[left], best[right])
        if stop == soonest[node] and rank == best[node]:
            break
        soonest[node], best[node] = stop, rank
        node >>= 1


FILL = Kernel(_fill, _best_inside, _remove)

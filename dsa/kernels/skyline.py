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

import numpy as np

from dsa.budget import Budget
from dsa.kernels.compiled import Kernel
from dsa.problem import IntArray, Problem

__all__ = ["Skyline", "skyline"]

SECONDS = 3e-5  # that a buffer takes uncompiled
CLASS_BITS = 3  # buffers of one length class differ in length by less than 2**3 times
PAUSE = 4096  # buffers between two looks at the clock


def skyline(problem: Problem, order: IntArray) -> IntArray:
    """Offsets by filling the skyline, buffers earlier in `order` preferred.

    Near-linear: at most 3n segments are looked at, each by one search of the tree; a search takes
    O(log^2 n), and more only where many buffers of one class start near the end of a segment and
    reach beyond it. Memory for a row of sections for each of O(log n) length classes. Buffers of
    size 0 get offset 0. Alignments are honoured, pins are not looked at.

    Examples
    --------
    >>> problem = Problem([(0, 2, 96), (1, 3, 72), (2, 4, 48)])
    >>> skyline(problem, np.array([0, 1, 2])).tolist()
    [0, 96, 0]
    """
    offsets = Skyline(problem).fill(order)
    assert offsets is not None
    return offsets


class Skyline:
    """What does not depend on the order, made once for any number of passes.

    Parameters
    ----------
    problem
        To be planned.
    """

    def __init__(self, problem: Problem) -> None:
        sections = problem.sections
        solid = np.flatnonzero(problem.size)
        exponent = np.frexp(sections.stop[solid] - sections.start[solid])[1].astype(np.int64)
        length_class = (exponent - 1) // CLASS_BITS
        # A leaf's place is its class and its start. The index says how many lie before each place.
        self._width = width = len(sections) + 1
        place = length_class * width + sections.start[solid]
        self._leaf = leaf = solid[place.argsort(kind="stable")]
        index = np.zeros((length_class.max(initial=0) + 1) * width + 1, np.int64)
        np.cumsum(np.bincount(place, minlength=len(index) - 1), out=index[1:])
        start, stop = sections.start[leaf], sections.stop[leaf]
        self._columns = (start, stop, problem.size[leaf], problem.alignment[leaf], index)
        self._soonest = _tree(stop)
        # A search waits at two nodes of a level for each class, and at one of a level further down.
        classes, levels = len(index) // width, len(self._soonest).bit_length()
        self._pending = np.zeros((2 * classes + 1) * levels, np.int64)
        self._problem = problem

    def fill(
        self, order: IntArray, budget: Budget | None = None, ceilings: IntArray | None = None
    ) -> IntArray | None:
        """As `skyline` does; None if the pass is not ended, since it is late or in vain.

        Parameters
        ----------
        order
            Positions of the buffers.
        budget
            The pass is cut short once its time is up.
        ceilings
            For each component a peak: the pass is given up once it is certain that none of them
            will be lower. What it has wasted so far tells: see `_in_vain`.

        Examples
        --------
        >>> problem = Problem([(step, step + 2, 8) for step in range(1000)])
        >>> filling, order = Skyline(problem), np.arange(1000)
        >>> filling.fill(order).max(), filling.fill(order, ceilings=np.array([16]))
        (np.int64(8), None)
        """
        problem, leaf = self._problem, self._leaf
        rank = np.empty(len(problem), np.int64)
        rank[order] = np.arange(len(problem))
        none = np.zeros(0, np.int64)
        run, columns = FILL.ready_for(
            SECONDS * len(leaf),
            *(*self._columns, self._soonest.copy(), _tree(rank[leaf])),
            *(np.zeros((3, self._width), np.int64), self._pending.copy()),
            *((none, none, none) if ceilings is None else self._watched(ceilings)),
            *(np.zeros(1, np.int64), np.zeros(len(leaf), np.int64)),
            left=float("inf") if budget is None else budget.remaining(),
        )
        ended = columns[-2]
        for _ in run(*columns):  # to its end: numba keeps what a generator holds until then
            ended[0] = budget is not None and budget.expired()
        if ended[0]:
            return None
        offsets = np.zeros(len(problem), np.int64)
        offsets[leaf] = columns[-1]
        return offsets

    def _watched(self, ceilings: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """How the load changes from section to section, the component of each, and ceilings."""
        problem, leaf = self._problem, self._leaf
        component = np.zeros(self._width - 1, np.int64)
        component[problem.sections.start[leaf]] = problem.component[leaf]
        change = np.diff(problem.sections.load, prepend=0, append=0)
        return change, np.maximum.accumulate(component), ceilings.copy()


def _tree(values: IntArray) -> IntArray:
    """A binary tree of minima: node v has the children 2v and 2v + 1, the leaves come last."""
    leaves = 1 << max(len(values) - 1, 0).bit_length()
    tree = np.full(2 * leaves, np.iinfo(np.int64).max)
    tree[leaves : leaves + len(values)] = values
    while leaves > 1:
        half = leaves // 2
        below = tree[leaves : 2 * leaves]
        np.minimum(below[::2], below[1::2], out=tree[half:leaves])
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
    pending: MutableSequence[int],
    change: MutableSequence[int],
    component: Sequence[int],
    ceilings: MutableSequence[int],
    ended: MutableSequence[int],
    offsets: MutableSequence[int],
) -> Iterator[int]:
    # A segment is known by its first section; no two neighbours are of equal height.
    height, end, previous = segments[0], segments[1], segments[2]
    count = len(height) - 1
    end[0], previous[0] = count, -1
    first, left = 0, len(start)
    watched, every = len(ceilings) > 0, max(count // 8, 64)
    while left:
        level, last, before = height[first], end[first], previous[first]
        if before >= 0 and height[before] < level:
            first = before
            continue
        if last < count and height[last] < level:
            first = last
            continue
        node = _best_inside(soonest, best, index, pending, count + 1, first, last)
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
        if watched:
            change[start[i]] -= size[i]
            change[stop[i]] += size[i]
            if top >= ceilings[component[start[i]]]:
                ceilings[component[start[i]]] = 0
            if left % every == 0 and _in_vain(height, end, change, component, ceilings):
                ended[0] = 1
                return
        if left and left % PAUSE == 0:
            yield left
            if ended[0]:
                return


def _in_vain(
    height: Sequence[int],
    end: Sequence[int],
    change: Sequence[int],
    component: Sequence[int],
    ceilings: MutableSequence[int],
) -> bool:
    """Whether no component will stay below its ceiling; that of one which will not becomes 0.

    What is left of a section's load, of which `change` is the difference from the section before,
    comes on top of the skyline there, whatever is to follow::

        |  [ left ][ left     ]  |  to be placed
        |   #####   [ c  ]       |  of what is below the skyline, this is wasted
        |  [  a  ]  [ d ]        |

    Where nothing is left, what is raised is no waste.
    """
    first, left = 0, 0
    within = component[0]
    for s in range(len(component)):
        if s == end[first]:
            first = s
        if component[s] != within:
            if ceilings[within] > 0:
                return False
            within = component[s]
        left += change[s]
        if left > 0 and height[first] + left >= ceilings[within]:
            ceilings[within] = 0
    return ceilings[within] == 0


def _best_inside(
    soonest: Sequence[int],
    best: Sequence[int],
    index: Sequence[int],
    pending: MutableSequence[int],
    width: int,
    first: int,
    last: int,
) -> int:
    """Leaf of the best rank among buffers within sections first .. last - 1, or -1."""
    leaves = len(best) // 2
    found, rank = -1, best[0]  # entry 0 is no node: it holds the largest integer
    waiting = 0
    row, least = 0, 1
    while row < len(index) - 1 and least <= last - first:
        low, high = index[row + first] + leaves, index[row + last - least + 1] + leaves
        while low < high:  # the few nodes that cover the range
            if low & 1:
                pending[waiting] = low
                waiting += 1
                low += 1
            if high & 1:
                high -= 1
                pending[waiting] = high
                waiting += 1
            low >>= 1
            high >>= 1
        row, least = row + width, least << CLASS_BITS
    while waiting:
        waiting -= 1
        node = pending[waiting]
        if best[node] >= rank or soonest[node] > last:
            continue
        while node < leaves:  # down to the child of better rank, remembering the other
            left, right = 2 * node, 2 * node + 1
            left_may = soonest[left] <= last and best[left] < rank
            right_may = soonest[right] <= last and best[right] < rank
            if left_may and right_may:
                if best[left] < best[right]:
                    pending[waiting] = right
                    node = left
                else:
                    pending[waiting] = left
                    node = right
                waiting += 1
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


FILL = Kernel(_fill, _in_vain, _best_inside, _remove)

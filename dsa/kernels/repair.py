"""Let buffers overlap within a capacity, and move them until none does.

A move takes a buffer that overlaps another and puts it where what it overlaps weighs least: on
top of a buffer or just under one, at the bottom or right below the capacity::

    |  overlapped:  w  |  w + v  |    v    |         |  0  |       an offset from the left end of
    |            [==== y ====]             |         |     |       a range on costs what the range
    |                      [==== z ====]   |         |     |       weighs; the least is taken
    +------------------------------------------------+-----+ capacity

Where no other place weighs less, what the buffer overlaps there weighs one more from then on: so
the search leaves every trap, and learns which buffers are hard to part. Nothing is stacked, and
so a buffer in the midst of others can move without those above it, which no order of placement
can do.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import Any

import numpy as np

from dsa.budget import Budget
from dsa.kernels.compiled import compiled
from dsa.problem import FREE, IntArray, Problem
from dsa.result import peak

__all__ = ["HELPERS", "MOST", "Repair", "repair"]

MOST = 400_000  # conflicts that are held, and looked through in turn
DRAWS = 2  # random numbers that a move takes
STEP = 200  # the longest step down: a part of the bound
HALVINGS = 4  # the shortest step: the longest halved so many times
PATIENCE = 500  # moves for each buffer after which a step is too long
SLICE = 50_000  # conflicts that are looked at between two looks at the clock
CLASHING, CAPACITY, LEAST = range(3)
NOWHERE, FIXED = -1, -2  # in place of a place among the clashing buffers


class Repair:
    """A search for lower and lower plans that can be paused; its weights outlive a capacity.

    Parameters
    ----------
    problem
        A component without constraints and without buffers of size 0.
    offsets
        Of some plan.
    seed
        Of the choices.

    Attributes
    ----------
    offsets, peak
        Of the lowest plan it has found, or been told of.
    moves
        Made so far.

    Notes
    -----
    Complexity: a move looks at the conflicts of one buffer, three times; O(conflicts) memory.
    Ties: drawn at random, staying included. Equal for equal input, seed and number of moves.
    Guarantee: none. It proves nothing, and is strong where the load is high in a few places only.
    Source: ours; weights after the breakout method (Morris 1993), moves after the minimum of
    overlap in nesting (Egeblad et al. 2007), where any offset is allowed, too.

    Examples
    --------
    >>> problem = Problem([(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)])
    >>> search = Repair(problem, np.array([36, 0, 80, 120]), seed=0)
    >>> search.run(Budget(), least=88, moves=1000)
    >>> search.peak
    88
    """

    def __init__(self, problem: Problem, offsets: IntArray, seed: int) -> None:
        self._problem = problem
        self._random = np.random.default_rng(seed)
        self.offsets, self.peak, self.moves = offsets, peak(problem, offsets), 0
        self._halvings, self._vain = 0, 0
        n = len(problem)
        one, other = conflicting(problem)
        # Each conflict has a slot in the rows of both, and knows the other one.
        both = np.argsort(np.concatenate([one, other]), kind="stable")
        slot = np.empty(len(both), np.int64)
        slot[both] = np.arange(len(both))
        mirror = np.roll(slot, len(one))[both]
        neighbour = np.concatenate([other, one])[both]
        degree = np.bincount(neighbour, minlength=n)
        self._owner = np.repeat(np.arange(n), degree)
        self._free = problem.pin == FREE
        first = np.concatenate([[0], np.cumsum(degree)])
        self._fixed = (first, neighbour, mirror, problem.size, problem.alignment)
        # Rows are sorted anew by each move, from what they were.
        slots = np.arange(len(both))
        self._rows = [slots, slots.copy(), np.ones(len(both), np.int64)]
        most = int(degree.max(initial=0))
        self._ties = np.zeros(2 * most + 4, np.int64)
        self._levels = np.zeros((3, most + 1), np.int64)
        self._slice = max(SLICE * n // max(len(both), 1), 1)
        self._state: list[IntArray] = []
        self._capacity = self.peak

    def know(self, offsets: IntArray, peak: int) -> None:
        """Take note of a plan found elsewhere: only a lower one is of use from now on."""
        if peak < self.peak:
            self.offsets, self.peak = offsets, peak

    def run(self, budget: Budget, *, least: int, moves: int, compile: bool = False) -> None:
        """Search on.

        Parameters
        ----------
        budget
            Ends the search at its target or when the time is up.
        least
            No plan has a lower peak.
        moves
            To make at most.
        compile
            Whether to run the compiled kernel.
        """
        end = self.moves + moves
        while self.moves < end and self.peak > least and not budget.done(self.peak):
            if self._capacity >= self.peak:
                self._aim(least)
            made = self._make(min(self._slice, end - self.moves), compile)
            self.moves += made
            self._vain += made
            if self._state[-1][CLASHING] == 0:
                self.offsets = self._state[0].copy()
                self.peak = peak(self._problem, self.offsets)
                self._halvings, self._vain = 0, 0
                budget.report(self.peak)
            elif self._vain >= PATIENCE * len(self._problem):
                self._halvings, self._vain = (self._halvings + 1) % (HALVINGS + 1), 0
                if self._halvings == 0:  # what was learnt did not help: let it count half
                    self._rows[2][:] = (self._rows[2] + 1) // 2
                self._aim(least)

    def _aim(self, least: int) -> None:
        """A capacity one step below the peak; all buffers brought within it."""
        step = (least // STEP) >> self._halvings
        self._capacity = max(self.peak - 1 - step, least)
        size, alignment = self._problem.size, self._problem.alignment
        offset = self._state[0] if self._state else self.offsets
        highest = (self._capacity - size) // alignment * alignment
        offset = np.where(self._free, np.minimum(offset, highest), offset)
        owner, neighbour, end, n = self._owner, self._fixed[1], offset + size, len(offset)
        overlap = (offset[owner] < end[neighbour]) & (offset[neighbour] < end[owner])
        clashes = np.bincount(owner[overlap], minlength=n)
        clashing = np.flatnonzero((clashes > 0) & self._free)
        place = np.where(self._free, NOWHERE, FIXED)
        place[clashing] = np.arange(len(clashing))
        register = np.array([len(clashing), self._capacity, 0])
        room = np.zeros(n, np.int64)
        room[: len(clashing)] = clashing
        self._state = [offset, clashes, room, place, register]

    def _make(self, moves: int, compile: bool) -> int:
        draws = self._random.integers(0, 2**62, DRAWS * moves)
        columns = [draws, *self._fixed, *self._rows, *self._state[:4]]
        columns += [*self._levels, self._ties, self._state[4]]
        if compile:
            return int(compiled(repair, *HELPERS)(*columns))
        lists: list[Any] = [column.tolist() for column in columns]
        made = repair(*lists)
        for column, changed in zip(columns[6:], lists[6:], strict=True):
            column[:] = changed
        return made


def conflicting(problem: Problem) -> tuple[IntArray, IntArray]:
    """All pairs of buffers that are live at the same time, each once.

    Examples
    --------
    >>> conflicting(Problem([(0, 2, 1), (2, 3, 1), (1, 3, 1)]))
    (array([0, 2]), array([2, 1]))
    """
    start, stop = problem.sections.start, problem.sections.stop
    order = np.argsort(start, kind="stable")
    count = np.searchsorted(start[order], stop[order]) - np.arange(len(order)) - 1
    first = np.repeat(np.arange(len(order)), count)
    within = np.arange(len(first)) - np.repeat(np.cumsum(count) - count, count)
    return order[first], order[first + 1 + within]


def repair(
    draws: Sequence[int],
    first: Sequence[int],
    neighbour: Sequence[int],
    mirror: Sequence[int],
    size: Sequence[int],
    alignment: Sequence[int],
    by_bottom: MutableSequence[int],
    by_top: MutableSequence[int],
    weight: MutableSequence[int],
    offset: MutableSequence[int],
    clashes: MutableSequence[int],
    clashing: MutableSequence[int],
    place: MutableSequence[int],
    bottoms: MutableSequence[int],
    tops: MutableSequence[int],
    levels: MutableSequence[int],
    ties: MutableSequence[int],
    register: MutableSequence[int],
) -> int:
    """Make a move for every two draws, until nothing overlaps; returns how many were made."""
    for made in range(len(draws) // DRAWS):
        if register[CLASHING] == 0:
            return made
        x = clashing[draws[DRAWS * made] % register[CLASHING]]
        begin, end = first[x], first[x + 1]
        bottom, top = offset[x], offset[x] + size[x]
        _sort(by_bottom, begin, end, neighbour, offset, size, 0, bottoms)
        _sort(by_top, begin, end, neighbour, offset, size, 1, tops)
        now = 0
        for k in range(begin, end):
            y = neighbour[k]
            if offset[y] < top and offset[y] + size[y] > bottom:
                now += weight[k]
        register[LEAST] = now
        room, step, count = size[x], alignment[x], end - begin
        last = (register[CAPACITY] - room) // step * step
        row = (bottom, room, last, begin, count, bottoms, by_bottom, tops, by_top, weight)
        levels[0] = 0
        for k in range(count):
            levels[k + 1] = tops[k] if step == 1 else -(-tops[k] // step) * step
        found = _weigh(levels, *row, ties, register, 0)
        for k in range(count):
            level = bottoms[k] - room
            levels[k] = min(level if step == 1 else level // step * step, last)
        levels[count] = last
        found = _weigh(levels, *row, ties, register, found)
        # Where nowhere else weighs less, to stay is one of the ties.
        draw = draws[DRAWS * made + 1] % (found + (1 if register[LEAST] == now else 0))
        if draw < found:
            level = ties[draw]
            _move(x, level, begin, end, neighbour, offset, size, clashes, clashing, place, register)
            continue
        for k in range(begin, end):
            y = neighbour[k]
            if offset[y] < top and offset[y] + size[y] > bottom:
                weight[k] += 1
                weight[mirror[k]] += 1
    return len(draws) // DRAWS


def _sort(
    row: MutableSequence[int],
    begin: int,
    end: int,
    neighbour: Sequence[int],
    offset: Sequence[int],
    size: Sequence[int],
    tops: int,
    levels: MutableSequence[int],
) -> None:
    """Bring a row in order of bottoms, or of tops, by insertion: little has changed in it."""
    for k in range(begin, end):
        slot = row[k]
        at, y = k, neighbour[slot]
        level = offset[y] + tops * size[y]
        while at > begin and levels[at - begin - 1] > level:
            row[at] = row[at - 1]
            levels[at - begin] = levels[at - begin - 1]
            at -= 1
        row[at], levels[at - begin] = slot, level


def _weigh(
    levels: Sequence[int],
    bottom: int,
    room: int,
    last: int,
    begin: int,
    count: int,
    bottoms: Sequence[int],
    by_bottom: Sequence[int],
    tops: Sequence[int],
    by_top: Sequence[int],
    weight: Sequence[int],
    ties: MutableSequence[int],
    register: MutableSequence[int],
    found: int,
) -> int:
    """Note those of the rising levels, up to the last, where least is overlapped; their number.

    Those found before stay unless these weigh less; the offset it has is none of them.
    """
    cost, low, high = 0, 0, 0
    for k in range(count + 1):
        level = levels[k]
        if level > last:
            break
        if level < 0 or level == bottom:
            continue
        while low < count and bottoms[low] < level + room:
            cost += weight[by_bottom[begin + low]]
            low += 1
        while high < count and tops[high] <= level:
            cost -= weight[by_top[begin + high]]
            high += 1
        if cost < register[LEAST]:
            register[LEAST], found = cost, 0
        if cost == register[LEAST] and (found == 0 or ties[found - 1] != level):
            ties[found] = level
            found += 1
    return found


def _move(
    x: int,
    level: int,
    begin: int,
    end: int,
    neighbour: Sequence[int],
    offset: MutableSequence[int],
    size: Sequence[int],
    clashes: MutableSequence[int],
    clashing: MutableSequence[int],
    place: MutableSequence[int],
    register: MutableSequence[int],
) -> None:
    """Put buffer `x` at another level, and note what it overlaps now."""
    bottom, top = offset[x], offset[x] + size[x]
    for k in range(begin, end):
        y = neighbour[k]
        low, high = offset[y], offset[y] + size[y]
        change = 0
        if low < level + size[x] and high > level:
            change += 1
        if low < top and high > bottom:
            change -= 1
        if change != 0:
            clashes[x] += change
            clashes[y] += change
            _note(y, clashes, clashing, place, register)
    offset[x] = level
    _note(x, clashes, clashing, place, register)


def _note(
    y: int,
    clashes: Sequence[int],
    clashing: MutableSequence[int],
    place: MutableSequence[int],
    register: MutableSequence[int],
) -> None:
    """Keep the list of those that overlap, and may be moved, true to the counts."""
    at = place[y]
    if clashes[y] > 0 and at == NOWHERE:
        at = register[CLASHING]
        clashing[at], place[y] = y, at
        register[CLASHING] = at + 1
    elif clashes[y] == 0 and at >= 0:
        register[CLASHING] -= 1
        other = clashing[register[CLASHING]]
        clashing[at], place[other], place[y] = other, at, NOWHERE


HELPERS = (_sort, _weigh, _note, _move)

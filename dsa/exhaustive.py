"""The lowest peak with holes and constraints, by the definition of each rule and all offsets.

It shares no code with the solvers, nor with the rigid bodies that they work on: buffers stay
buffers here, and each rule is read as it is written in `dsa.constraints.Constraints`.
"""

from __future__ import annotations

from dsa.problem import Buffer, Problem

__all__ = ["least_peak"]


def least_peak(problem: Problem) -> int:
    """The lowest peak, for few buffers of few bytes: O(peak ** buffers) in the worst case."""
    search, peak = _Search(problem, 64), 0
    while not search.fits(peak):
        peak += 1
        if peak > search.limit:
            search = _Search(problem, 2 * search.limit)
    return peak


class _Search:
    """Offsets that are left to each buffer, as bits of one number, for peaks up to a limit."""

    def __init__(self, problem: Problem, limit: int) -> None:
        self.rows = list(problem)
        self.rules = problem.constraints
        self.limit = limit
        # A buffer without bytes may lie above the peak, where one at a fixed distance leads it.
        distances = (*self.rules.aliases, *self.rules.relative)
        pins = [row.offset or 0 for row in self.rows]
        self.reach = max(limit, *pins, 0) + sum(abs(delta) for _, _, delta in distances)
        self.storages = _joined([(a, b) for a, b, _ in self.rules.aliases])
        self.steps = sorted(
            {row.lower for row in self.rows}
            | {step for row in self.rows for hole in row.holes for step in hole[:2]}
        )
        self.alone = [
            sum(1 << offset for offset in range(self.reach + 1) if self.may_lie(row, offset))
            for row in self.rows
        ]
        self.pairs: dict[tuple[int, int], int] = {}

    def fits(self, peak: int) -> bool:
        """Whether there is a plan of at most this peak."""
        below = [(1 << max(peak - row.size + 1, 0)) - 1 if row.size else -1 for row in self.rows]
        return self.place({i: self.alone[i] & mask for i, mask in enumerate(below)})

    def place(self, free: dict[int, int]) -> bool:
        """Give each buffer an offset that is left to it, beginning with the one that has fewest."""
        if not free:
            return True
        i = min(free, key=lambda i: free[i].bit_count())
        offsets = free[i]
        while offsets:
            offset = (offsets & -offsets).bit_length() - 1
            offsets &= offsets - 1
            left = {j: free[j] & self.beside(i, j, offset) for j in free if j != i}
            if all(left.values()) and self.place(left):
                return True
        return False

    def may_lie(self, row: Buffer, offset: int) -> bool:
        """Whether a buffer may lie there, whatever the others do."""
        chunk, end = self.rules.chunk, offset + row.size
        if offset % row.alignment or row.offset not in (None, offset):
            return False
        if row.size and chunk and offset // chunk != (end - 1) // chunk:
            return False
        return not any(
            _meet(_kept(row, step, offset), reserved)
            for step in self.steps
            for reserved in self.rules.reserved
        )

    def beside(self, i: int, j: int, offset: int) -> int:
        """Offsets of buffer j that go with this one of buffer i."""
        if (i, j) not in self.pairs:
            self.pairs[i, j] = sum(
                1 << (difference + self.reach)
                for difference in range(-self.reach, self.reach + 1)
                if self.together(self.rows[i], self.rows[j], difference)
            )
        return self.pairs[i, j] >> (self.reach - offset)

    def together(self, a: Buffer, b: Buffer, difference: int) -> bool:
        """Whether b may lie so many bytes above a."""
        rules, pair = self.rules, {a.id, b.id}
        touch = _meet((0, a.size), (difference, difference + b.size))
        if pair in map(set, rules.apart) and touch:
            return False
        for x, y, delta in (*rules.aliases, *rules.relative):
            if {x, y} == pair and difference != (delta if x == a.id else -delta):
                return False
        if (
            not touch
            or pair in map(set, rules.exclusive)
            or any(pair <= one for one in self.storages)
        ):
            return True
        if pair in map(set, rules.in_place) and difference == 0:
            return True
        return not any(_meet(_kept(a, step, 0), _kept(b, step, difference)) for step in self.steps)


def _kept(row: Buffer, step: int, offset: int) -> tuple[int, int]:
    """The bytes that a buffer at an offset needs at a step, from and to."""
    if not row.lower <= step < row.upper:
        return 0, 0
    start, stop = 0, row.size
    for lower, upper, *window in row.holes:
        if lower <= step < upper:
            start, stop = window or (0, 0)
    return offset + start, offset + stop


def _meet(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return max(a[0], b[0]) < min(a[1], b[1])


def _joined(pairs: list[tuple[object, object]]) -> list[set[object]]:
    """Sets of ids that pairs connect."""
    groups: list[set[object]] = []
    for pair in pairs:
        touched = [group for group in groups if group & set(pair)]
        groups = [group for group in groups if group not in touched]
        groups.append(set(pair).union(*touched))
    return groups

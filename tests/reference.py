"""The least peak, by searches that are obviously right: what exact solvers are tested against.

They share no code with the solvers, nor with each other.
"""

from __future__ import annotations

from itertools import count

from dsa import Buffer, Problem


def reference_optimum(problem: Problem) -> int:
    """The lowest peak of any plan, for about 9 buffers.

    Pinned buffers are placed first, then the others by rising offset (by position where equal),
    each at the lowest free place. Some such plan is optimal: push the buffers of an optimal plan
    down until none can move, and take them by offset. What is not placed yet at some step then
    lies above the last offset and above all unpinned buffers placed there.
    """
    rows = [row for row in problem if row.size]
    free = [row for row in rows if row.offset is None]
    pinned = [(row, row.offset) for row in rows if row.offset is not None]
    steps = sorted({row.lower for row in rows})
    best = sum(row.size + row.alignment for row in free)
    best += max((offset + row.size for row, offset in pinned), default=0)

    def search(placed: list[tuple[Buffer, int]], rest: list[int], last: int, floor: int) -> None:
        nonlocal best
        peak = max((offset + row.size for row, offset in pinned + placed), default=0)
        for step in steps:
            top = max((offset + row.size for row, offset in placed if _live(row, step)), default=0)
            above = [free[i].size for i in rest if _live(free[i], step)]
            peak = max(peak, max(floor, top) + sum(above)) if above else peak
        if peak >= best:
            return
        if not rest:
            best = peak
        for i in rest:
            offset = _lowest_free(free[i], pinned + placed)
            if (offset, i) > (floor, last):
                search([*placed, (free[i], offset)], [j for j in rest if j != i], i, offset)

    search([], list(range(len(free))), -1, 0)
    return best


def _live(row: Buffer, step: int) -> bool:
    return row.lower <= step < row.upper


def _lowest_free(row: Buffer, placed: list[tuple[Buffer, int]]) -> int:
    """Lowest multiple of the alignment where it shares no bytes: at the bottom or above another."""
    meets = [
        (offset, offset + other.size)
        for other, offset in placed
        if row.lower < other.upper and other.lower < row.upper
    ]
    ends = sorted(end for _, end in [(0, 0), *meets])
    candidates = (-(-end // row.alignment) * row.alignment for end in ends)
    return next(
        at for at in candidates if all(at + row.size <= low or high <= at for low, high in meets)
    )


def swept_optimum(problem: Problem) -> int:
    """The lowest peak of any plan, for any number of buffers of few bytes, few live at once.

    For each peak from the load up: sweep over time and keep the set of all ways to place the
    buffers live then, at any offset whatever.
    """
    rows = sorted((row for row in problem if row.size), key=lambda row: row.lower)
    return next(peak for peak in count(problem.load) if _fits(rows, peak))


def _fits(rows: list[Buffer], peak: int) -> bool:
    ways: set[frozenset[tuple[int, int, int]]] = {frozenset()}  # of (upper, offset, end)
    for row in rows:
        offsets = range(0, peak - row.size + 1, row.alignment)
        if row.offset is not None:
            offsets = range(row.offset, min(row.offset, peak - row.size) + 1)
        ways = {
            live | {(row.upper, offset, offset + row.size)}
            for live in {frozenset(b for b in way if b[0] > row.lower) for way in ways}
            for offset in offsets
            if all(offset + row.size <= low or high <= offset for _, low, high in live)
        }
    return bool(ways)

"""The least peak, by a search that is obviously right: what exact solvers are tested against.

It shares no code with the solvers, nor with `dsa.testing.optimum`.
"""

from __future__ import annotations

from itertools import count

from dsa import Buffer, Problem


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

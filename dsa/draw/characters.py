"""A map of the plan for terminals."""

from __future__ import annotations

import math

import numpy as np

from dsa.draw.picture import Picture, check_room, cut, pictures
from dsa.pools import PoolPlan
from dsa.result import Plan
from dsa.units import format_size

__all__ = ["text"]


def text(plan: Plan | PoolPlan, width: int = 80, height: int = 24) -> str:
    """Draw the plan with ASCII characters.

    A buffer is a blank block with its id, edged by ``|`` and ``_``; free space is dotted, bytes
    that are reserved are ``/``, and where buffers share bytes the block is filled with ``=``. Lines
    across the map mark the peak, the lower bound, and the capacity unless it is more than a
    quarter above the peak. Each character shows the buffer at its middle, so buffers smaller
    than a character are seen as a sample.

    Parameters
    ----------
    plan
        A plan, or one of several pools, which are drawn one below another: steps to
        one scale, bytes each to its own.
    width
        Columns, at least 40.
    height
        Lines, at least 12; of each pool.

    Raises
    ------
    ValueError
        If width or height is too small.

    Examples
    --------
    >>> from dsa import Buffer, plan
    >>> rows = [Buffer(0, 3, 40, id="a"), Buffer(3, 9, 40, id="b"), Buffer(0, 5, 24, id="c")]
    >>> print(text(plan(rows, solver="greedy-by-size"), width=40, height=12))
    3 buffers, peak 64 B, lower bound 64 B..
    64 B +-- peak = lower bound -----------+
         |                  |..............|
    48 B |        c         |..............|
         |__________________|______________|
    32 B |          |                      |
         |          |                      |
    16 B |    a     |          b           |
         |          |                      |
         |          |                      |
     0 B +-------+------+-------+------+---+
    step 0       2      4       6      8
    """
    check_room(width=(width, 40), height=(height, 12))
    return "\n\n".join(_map(*drawn, width, height) for drawn in pictures(plan, width))


def _map(heading: str, plan: Plan, picture: Picture, width: int, height: int) -> str:
    """A plan under its heading."""
    footer = [picture.time_label] if picture.even else []
    rows = height - 3 - len(picture.levels) - len(footer)
    rules = [
        (_cell(size / picture.height, rows), format_size(size), " = ".join(names))
        for size, names in picture.levels.items()
    ]
    ticks = {_cell(share, rows): size for share, size in picture.size_ticks(rows // 2)}
    for row in [0, *(row for row, _, _ in rules)]:
        ticks.pop(row, None)
    gutter = max(len(size) for size in ["step", *ticks.values(), *(size for _, size, _ in rules)])
    columns = width - gutter - 2
    cells = _cells(plan, picture, columns, rows)

    lines = [heading]
    for row in range(rows, -1, -1):
        for at, size, name in rules:
            if at == row:
                lines.append(f"{size:>{gutter}} {f'+-- {name} ':-<{columns}}+")
        if row:
            lines.append(f"{ticks.get(row - 1, ''):>{gutter}} {cells[row - 1]}|")
    marks, steps = _time_axis(picture, columns)
    lines += [f"{'0 B':>{gutter}} {marks}", f"{'step':>{gutter}} {steps}".rstrip(), *footer]
    return "\n".join(lines)


def _cell(share: float, count: int) -> int:
    """The first of `count` cells whose middle is at or after the share."""
    return math.ceil(share * count - 0.5)


def _cells(plan: Plan, picture: Picture, columns: int, rows: int) -> list[str]:
    """The map, lowest row first."""
    free, shared = -1, np.full((rows, columns), False)
    owner = np.full((rows, columns), free)
    insides = []
    named = {picture.largest(piece) for piece in picture.pieces}
    edges = picture.bottom, picture.top, picture.left, picture.right
    for k, i in enumerate(picture.buffer.tolist()):
        low, high, first, last = (
            _cell(edge[k], count)
            for edge, count in zip(edges, (rows, rows, columns, columns), strict=True)
        )
        covered = owner[low:high, first:last]
        shared[low:high, first:last] |= covered != free
        covered[:] = i
        if k in named and low < high and first < last:
            insides.append((i, (low + high) // 2, first + 1, last))
    reserved = np.full((rows, columns), False)
    for bottom, top in picture.reserved:
        reserved[_cell(bottom, rows) : _cell(top, rows)] = True
    left = np.pad(owner, ((0, 0), (1, 0)), constant_values=free)[:, :-1]
    below = np.pad(owner, ((1, 0), (0, 0)), mode="edge")[:-1]
    canvas = np.select(
        [owner != left, owner != below, shared, (owner == free) & reserved, owner == free],
        ["|", "_", "=", "/", "."],
        " ",
    )
    for i, row, first, last in insides:
        name = cut(str(plan.problem.ids[i]).encode("ascii", "replace").decode(), last - first)
        start = first + (last - first - len(name)) // 2
        canvas[row, start : start + len(name)] = list(name)
    return ["".join(row) for row in canvas.tolist()]


def _time_axis(picture: Picture, columns: int) -> tuple[str, str]:
    """The lower edge of the map with its marks, and the steps below it."""
    marks, steps = ["+", *"-" * (columns - 1), "+"], ""
    for share, step in picture.step_ticks(columns):
        column = _cell(share, columns)
        start = min(column, columns + 1 - len(step))
        if not steps or start > len(steps):
            steps = f"{steps:<{start}}{step}"
            marks[column] = "+"
    return "".join(marks), steps

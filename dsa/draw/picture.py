"""What every picture shows: rectangles, load, levels, marks on the axes, colours."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dsa.bodies import merge
from dsa.pools import PoolPlan
from dsa.problem import IntArray
from dsa.result import Plan
from dsa.units import format_size

__all__ = [
    *("CROWD", "PALETTE", "FloatArray", "Picture"),
    *("check_room", "colours", "cut", "pictures", "title"),
]

FloatArray: TypeAlias = npt.NDArray[np.float64]

CROWD = 20_000  # rectangles or changes of the load, above which not all are drawn

# Okabe and Ito's colours, told apart with all common kinds of colour vision, here with a fifth
# of white so that black names stand out on each. Their black is the ink.
PALETTE = ("#78c3ed", "#ebb233", "#33b18f", "#f3e968", "#d694b9", "#338ec1", "#dd7e33")


class Picture:
    """A plan in shares of its axes: time and bytes both run from 0 to 1.

    Time is in real steps, unless most events would be squeezed into slivers of the axis, as
    with time stamps: then the distinct events are spaced evenly.

    Parameters
    ----------
    plan
        A plan; buffers of size 0 are not drawn.
    steps
        Other steps that the time axis is to show.

    Attributes
    ----------
    buffer
        Position of the buffer that each rectangle shows, or a part of.
    left, right, bottom, top
        The rectangles, those of one buffer by time.
    pieces
        Slices of them that are drawn as one: a buffer falls apart where a hole leaves no byte.
    shares
        Positions of buffers that share bytes with another, as constraints allow.
    events, load
        Steps at which a rectangle begins or ends, and those given, and the bytes in use from there
        on: without constraints, those of all buffers live.
    even
        Whether events are spaced evenly.
    levels
        Names of the lines to draw by the bytes they stand at, highest first.
    height
        Bytes at share 1.
    reserved
        Bottom and top of the ranges that are reserved, as far as they are in the picture.
    chunks
        Where multiples of the chunk are.
    """

    def __init__(self, plan: Plan, steps: IntArray | None = None) -> None:
        problem, rules = plan.problem, plan.problem.constraints
        self.buffer, lower, upper, start, stop = _parts(plan)
        self.pieces = _pieces(self.buffer, lower, upper, start, stop)
        linked = {
            id for a, b, *_ in (*rules.exclusive, *rules.aliases, *rules.in_place) for id in (a, b)
        }
        linked_at = np.isin(self.buffer, [problem.index(id) for id in linked])
        self.shares = _sharing(
            *(column[linked_at] for column in (self.buffer, lower, upper, start, stop))
        )

        more = lower[:0] if steps is None else steps
        self.events = np.unique(np.concatenate([lower, upper, more]))
        self.load = _in_use(self.events, lower, upper, start, stop, bool(self.shares))
        self.even = _squeezed(self.events)

        self.levels = _levels(plan)
        self.height = max(*self.levels, 1)
        self.left, self.right = self.at(lower), self.at(upper)
        self.bottom, self.top = start / self.height, stop / self.height
        self.reserved = [
            (start / self.height, min(stop / self.height, 1))
            for start, stop in rules.reserved
            if start < self.height
        ]
        step = rules.chunk or self.height
        self.chunks = [
            at / self.height for at in range(step, self.height, step) if self.height < 64 * step
        ]

    def seen(self, columns: int, rows: int) -> IntArray:
        """Which rectangles cover the middle of a cell, of so many columns and rows."""
        wide, high = (
            _cells(end, count) > _cells(start, count)
            for start, end, count in (
                (self.left, self.right, columns),
                (self.bottom, self.top, rows),
            )
        )
        return np.flatnonzero(wide & high)

    def curve(self, columns: int) -> tuple[FloatArray, IntArray]:
        """Where the load changes and to what; if too often to see, its maximum in each column."""
        share, load = self.at(self.events), self.load
        if len(share) > CROWD:
            column, first = np.unique(_cells(share, columns), return_index=True)
            share, load = column / columns, np.maximum.reduceat(load, first)
        return share, load

    @property
    def extent(self) -> tuple[int, int]:
        """What stands at either end of the time axis: steps, or numbers of events."""
        if self.even:
            return 0, len(self.events) - 1
        return (int(self.events[0]), int(self.events[-1])) if len(self.events) else (0, 1)

    def at(self, step: IntArray) -> FloatArray:
        """Where steps stand on the time axis."""
        first, last = self.extent
        if self.even:
            return np.searchsorted(self.events, step) / last
        return (step - first) / (last - first)

    @property
    def curve_label(self) -> str:
        """What the curve shows: with shared bytes, not all that is live."""
        return "bytes in use" if self.shares else "load"

    def outline(self, piece: slice) -> list[tuple[float, float]]:
        """Corners of a piece: along the tops of its rectangles, and back along their bottoms."""
        steps = np.stack([self.left[piece], self.right[piece]], axis=1).ravel().tolist()
        tops, bottoms = (np.repeat(side[piece], 2).tolist() for side in (self.top, self.bottom))
        return [
            *zip(steps, tops, strict=True),
            *zip(reversed(steps), reversed(bottoms), strict=True),
        ]

    def largest(self, piece: slice) -> int:
        """The rectangle of a piece that has most room for a name."""
        width = self.right[piece] - self.left[piece]
        area = width * (self.top[piece] - self.bottom[piece])
        largest: int = piece.start + int(area.argmax())
        return largest

    @property
    def time_label(self) -> str:
        """What the time axis counts."""
        return "step (starts and ends, evenly spaced)" if self.even else "step"

    def step_ticks(self, room: float) -> list[tuple[float, str]]:
        """Marks on the time axis, as many as fit into so many characters."""
        if not len(self.events):
            return []
        first, last = int(self.events[0]), int(self.events[-1])
        most = max(int(room / (max(len(str(first)), len(str(last))) + 4)), 1)
        if self.even:
            steps = self.events[:: -(-len(self.events) // most)]
        else:
            unit = _round_up(-(-(last - first) // most))
            steps = np.array(range(-(-first // unit) * unit, last + 1, unit), np.int64)
        return list(zip(self.at(steps).tolist(), map(str, steps.tolist()), strict=True))

    def size_ticks(self, most: int) -> list[tuple[float, str]]:
        """Marks on the axis of bytes, at most so many besides that at 0."""
        unit = 1 << (self.height // (most + 1)).bit_length()
        return [(size / self.height, format_size(size)) for size in range(0, self.height + 1, unit)]


def _parts(plan: Plan) -> tuple[IntArray, ...]:
    """Buffer, lower, upper, and first and last byte of all that is drawn, buffer by buffer."""
    problem, offsets = plan.problem, plan.offsets_array
    if not problem.constrained:
        solid = np.flatnonzero(problem.size)
        start = offsets[solid]
        return solid, problem.lower[solid], problem.upper[solid], start, start + problem.size[solid]
    bodies = problem.bodies
    parts = bodies.parts[np.lexsort((bodies.parts[:, 2], bodies.parts[:, 1]))]
    _, buffer, lower, upper, start, stop = parts.T
    at = offsets[buffer] - bodies.shift[buffer]
    return buffer, lower, upper, at + start, at + stop


def _pieces(
    buffer: IntArray, lower: IntArray, upper: IntArray, start: IntArray, stop: IntArray
) -> list[slice]:
    """Runs of rectangles of one buffer, of which each touches the next."""
    if not len(buffer):
        return []
    apart = (buffer[1:] != buffer[:-1]) | (lower[1:] != upper[:-1])
    apart |= (start[1:] >= stop[:-1]) | (stop[1:] <= start[:-1])
    ends = [*(np.flatnonzero(apart) + 1).tolist(), len(buffer)]
    return list(map(slice, [0, *ends[:-1]], ends))


def _sharing(
    buffer: IntArray, lower: IntArray, upper: IntArray, start: IntArray, stop: IntArray
) -> frozenset[int]:
    """Buffers of which a part overlaps a part of another, in steps and bytes."""
    found: set[int] = set()
    for k, i in enumerate(buffer.tolist()):
        over = (lower < upper[k]) & (lower[k] < upper) & (start < stop[k]) & (start[k] < stop)
        others = set(buffer[over].tolist()) - {i}
        found |= others | {i} if others else others
    return frozenset(found)


def _in_use(
    events: IntArray,
    lower: IntArray,
    upper: IntArray,
    start: IntArray,
    stop: IntArray,
    shared: bool,
) -> IntArray:
    """Bytes that rectangles cover from each event on; where some share bytes, those count once."""
    change = np.zeros(len(events), np.int64)
    first, last = np.searchsorted(events, lower), np.searchsorted(events, upper)
    if not shared:
        np.add.at(change, first, stop - start)
        np.add.at(change, last, start - stop)
        return np.cumsum(change)
    for at in range(len(events)):
        live = (first <= at) & (at < last)
        covered = merge(zip(start[live].tolist(), stop[live].tolist(), strict=True))
        change[at] = sum(b - a for a, b in covered)
    return change


def _cells(share: FloatArray, count: int) -> IntArray:
    """The first of `count` cells whose middle is at or after each share."""
    return np.ceil(share * count - 0.5).astype(np.int64)


def _squeezed(events: IntArray) -> bool:
    """Whether half of the gaps between events are slivers of the axis, and of the mean gap."""
    if not len(events):
        return False
    gaps = np.diff(events)
    sliver = (int(events[-1]) - int(events[0])) / max(200, 8 * len(gaps))
    return bool(np.median(gaps) < sliver)


def _round_up(number: int) -> int:
    """The next of 1, 2, 5, 10, 20, 50 and so on."""
    power = int("1" + "0" * (len(str(number)) - 1))
    return next(k * power for k in (1, 2, 5, 10) if k * power >= number)


def _levels(plan: Plan) -> dict[int, list[str]]:
    """The lines to draw. A capacity far above the peak is left out: it would squash the plan."""
    sizes = {"peak": plan.peak, "lower bound": plan.lower_bound}
    capacity = plan.problem.capacity
    if capacity is not None and 4 * capacity <= 5 * plan.peak:
        sizes["capacity"] = capacity
    levels: dict[int, list[str]] = {}
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        levels.setdefault(sizes[name], []).append(name)
    return levels


def title(plan: Plan, room: int) -> str:
    """What the plan says of itself, without the seconds: the same for the same plan."""
    whole = f"{plan.headline} ({plan.origin})"
    return whole if len(whole) <= room else cut(plan.headline, room)


def pictures(plan: Plan | PoolPlan, room: int) -> list[tuple[str, Plan, Picture]]:
    """The plan, its title and its picture; or those of each pool, over the same steps."""
    if isinstance(plan, Plan):
        return [(title(plan, room), plan, Picture(plan))]
    steps = [column for part in plan.plans.values() for column in _parts(part)[1:3]]
    named = [(f"{cut(name, room // 2)}: ", part) for name, part in plan.plans.items()]
    return [
        (name + title(part, room - len(name)), part, Picture(part, np.concatenate(steps)))
        for name, part in named
    ]


def cut(name: object, room: int) -> str:
    """The name in at most so many characters, all printable; nothing if too little is left.

    Examples
    --------
    >>> cut("convolution", 20), cut("convolution", 8), cut("convolution", 5)
    ('convolution', 'convol..', '')
    """
    printable = "".join(c if c.isprintable() else "?" for c in str(name))
    if len(printable) <= room:
        return printable
    return f"{printable[: room - 2]}.." if room >= 6 else ""


def check_room(**sides: tuple[int, int]) -> None:
    """Refuse a picture too small for its axes: each side as given, and the least it can be."""
    for name, (given, least) in sides.items():
        if given < least:
            raise ValueError(f"{name} must be at least {least}, got {given}")


def colours(plan: Plan, count: int, positions: IntArray | None = None) -> IntArray:
    """One of `count` colours for each buffer, unlike those it touches where that is possible.

    If positions are given, only those buffers are coloured, as if there were no others.

    In the order of time, each takes the colour least used around it, then least used so far.
    The frontier is what one sees of the coloured buffers, looking from the right::

        +---+               The new buffer touches a and b, and hides a part of b:
        | a |---+           from now on the frontier is b, new, a.
        +---| b |  <- new
            +---+
    """
    starts: list[int] = []
    ends: list[int] = []
    shown: list[int] = []
    used = [0] * count
    result = np.zeros(len(plan), np.int64)
    sizes = plan.problem.size.tolist()
    order = np.lexsort((plan.offsets_array, plan.problem.lower))
    if positions is not None:
        order = order[np.isin(order, positions)]
    for i in order.tolist():
        if not sizes[i]:
            continue
        start, end = plan.offsets[i], plan.offsets[i] + sizes[i]
        low, high = bisect_left(ends, start), bisect_right(starts, end)
        around = shown[low:high]
        colour = min(range(count), key=lambda c: (around.count(c), used[c]))
        pieces = [(start, end, colour)]
        if around and starts[low] < start:
            pieces.insert(0, (starts[low], start, around[0]))
        if around and ends[high - 1] > end:
            pieces.append((end, ends[high - 1], around[-1]))
        starts[low:high], ends[low:high], shown[low:high] = zip(*pieces, strict=True)
        used[colour] += 1
        result[i] = colour
    return result

"""What every picture shows: rectangles, load, levels, marks on the axes, colours."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dsa.problem import IntArray
from dsa.result import Plan
from dsa.units import format_size

__all__ = ["PALETTE", "FloatArray", "Picture", "check_room", "colours", "cut", "title"]

FloatArray: TypeAlias = npt.NDArray[np.float64]

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

    Attributes
    ----------
    solid
        Positions of the buffers that are drawn.
    left, right, bottom, top
        Their rectangles.
    events, load
        Steps at which one of them begins or ends, and the bytes live from there on.
    even
        Whether events are spaced evenly.
    levels
        Names of the lines to draw by the bytes they stand at, highest first.
    height
        Bytes at share 1.
    """

    def __init__(self, plan: Plan) -> None:
        problem = plan.problem
        self.solid = np.flatnonzero(problem.size)
        lower, upper = problem.lower[self.solid], problem.upper[self.solid]
        size, offset = problem.size[self.solid], plan.offsets_array[self.solid]

        self.events = np.unique(np.concatenate([lower, upper]))
        change = np.zeros(len(self.events), np.int64)
        np.add.at(change, np.searchsorted(self.events, lower), size)
        np.add.at(change, np.searchsorted(self.events, upper), -size)
        self.load = np.cumsum(change)
        self.even = _squeezed(self.events)

        self.levels = _levels(plan)
        self.height = max(*self.levels, 1)
        self.left, self.right = self.at(lower), self.at(upper)
        self.bottom, self.top = offset / self.height, (offset + size) / self.height

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


def colours(plan: Plan, count: int) -> IntArray:
    """One of `count` colours for each buffer, unlike those it touches where that is possible.

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
    for i in np.lexsort((plan.offsets_array, plan.problem.lower)).tolist():
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

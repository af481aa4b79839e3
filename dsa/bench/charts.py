"""Charts as inline SVG, with nothing but strings; their colours are those of the page's style.

One look for one solver on every chart: see `Look`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Axis", "Look", "Series", "chart", "sample"]

Point = tuple[float, float]

WIDTH, HEIGHT = 520, 320
LEFT, RIGHT, TOP, BOTTOM = 54, 24, 30, 44


@dataclass(frozen=True, slots=True)
class Look:
    """How a solver is drawn: ours with full lines, peers with dashed ones.

    Parameters
    ----------
    name
        Of the solver.
    colour
        A number; the page's style has a colour for each.
    peer
        Whether it is not ours.
    """

    name: str
    colour: int
    peer: bool

    @property
    def label(self) -> str:
        """``omnimalloc:allocator=omni`` without the names of options whose value says enough."""
        name, *options = self.name.rsplit("/", 1)[-1].split(":")
        told = (option.partition("=") for option in options)
        words = (f"{key}={v}" if v in ("true", "false") else v for key, _, v in told)
        return " ".join([name, *words])

    @property
    def classes(self) -> str:
        """For the style sheet."""
        return f"c{self.colour} peer" if self.peer else f"c{self.colour}"


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one solver, joined by a line, by stairs, or not at all."""

    look: Look
    points: Sequence[Point]
    join: str = "line"


@dataclass(frozen=True, slots=True)
class Axis:
    """From a value to a share of the axis's length, and what is written along it.

    Parameters
    ----------
    label
        What the values are.
    low, high
        At its ends.
    ticks
        Values and what is written there.
    log
        Whether equal ratios are equally far apart; what is below `low` then stands at the end.
    """

    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = False

    def share(self, value: float) -> float:
        """Where a value stands: 0 at the lower end, 1 at the upper."""
        low, high = self.low, self.high
        if self.log:
            value, low, high = (math.log(max(v, self.low)) for v in (value, low, high))
        return min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5

    @classmethod
    def decades(cls, label: str, values: Sequence[float], least: float) -> Axis:
        """A logarithmic axis for values, from a power of ten to another, not below `least`."""
        shown = [max(value, least) for value in values] or [least]
        first = math.floor(math.log10(min(shown)) + 1e-9)
        last = max(math.ceil(math.log10(max(shown)) - 1e-9), first + 1)
        ticks = [(10.0**power, _power(power)) for power in range(first, last + 1)]
        return cls(label, 10.0**first, 10.0**last, ticks, log=True)

    @classmethod
    def shares(cls, label: str) -> Axis:
        """From none to all, in per cent."""
        return cls(label, 0.0, 1.0, [(k / 4, f"{25 * k} %") for k in range(5)])


def _power(power: int) -> str:
    return f"{10.0**power:g}" if -3 <= power <= 3 else f"10^{power}"


def chart(title: str, x: Axis, y: Axis, series: Sequence[Series]) -> str:
    """A chart of several solvers; who hovers over a line reads its name.

    Parameters
    ----------
    title
        What it shows, for those who cannot see it.
    x, y
        The axes.
    series
        In the order in which they are drawn, the last on top.
    """
    parts = [
        f'<svg class="chart" role="img" aria-label="{escape(title)}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}">',
        *_axes(x, y),
        *(_drawn(one, x, y) for one in series),
        "</svg>",
    ]
    return "\n".join(parts)


def _axes(x: Axis, y: Axis) -> Iterator[str]:
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    grid = "".join(f"M{LEFT} {_y(y, value)}H{right}" for value, _ in y.ticks)
    grid += "".join(f"M{_x(x, value)} {TOP}V{bottom}" for value, _ in x.ticks)
    yield f'<path class="grid" d="{grid}"/>'
    for value, text in y.ticks:
        yield f'<text x="{LEFT - 7}" y="{_y(y, value) + 4}" class="end">{_raised(text)}</text>'
    for value, text in x.ticks:
        yield f'<text x="{_x(x, value)}" y="{bottom + 18}" class="middle">{_raised(text)}</text>'
    yield (
        f'<text class="label end" x="{right}" y="{HEIGHT - 6}">{escape(x.label)}</text>'
        f'<text class="label" x="4" y="14">{escape(y.label)}</text>'
    )


def _raised(text: str) -> str:
    """``10^4`` with its power above the line."""
    base, caret, power = text.partition("^")
    return f'{base}<tspan dy="-4" font-size="9">{power}</tspan>' if caret else escape(text)


def _x(axis: Axis, value: float) -> float:
    return round(LEFT + (WIDTH - RIGHT - LEFT) * axis.share(value), 1)


def _y(axis: Axis, value: float) -> float:
    return round(HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * axis.share(value), 1)


def _drawn(series: Series, x: Axis, y: Axis) -> str:
    at = [(_x(x, a), _y(y, b)) for a, b in series.points]
    name = f"<title>{escape(series.look.label)}</title>"
    if series.join == "none":
        marks = "".join(_mark(series.look, *point) for point in at)
        return f'<g class="dots {series.look.classes}">{name}{marks}</g>'
    step = "H{0:g}V{1:g}" if series.join == "stairs" else "L{0:g} {1:g}"
    path = "".join(step.format(*point) for point in at[1:])
    if not at:
        return ""
    return (
        f'<path class="line {series.look.classes}" d="M{at[0][0]:g} {at[0][1]:g}{path}">'
        f"{name}</path>"
    )


def _mark(look: Look, x: float, y: float) -> str:
    """A disc for ours, a square for a peer."""
    if look.peer:
        return f'<rect x="{x - 4.5:g}" y="{y - 4.5:g}" width="9" height="9"/>'
    return f'<circle cx="{x:g}" cy="{y:g}" r="5.5"/>'


def sample(look: Look) -> str:
    """A solver's name beside a piece of its line."""
    return (
        f'<svg viewBox="0 0 28 10" width="28" height="10" aria-hidden="true">'
        f'<path class="line {look.classes}" d="M1 5H27"/></svg>{escape(look.label)}'
    )

"""The plan as SVG, with nothing but strings."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from dsa.draw.picture import PALETTE, Picture, check_room, colours, cut, title
from dsa.problem import FREE
from dsa.result import Plan
from dsa.units import format_size

__all__ = ["svg", "write_svg"]

# What matters is said by attributes, for viewers that read no style sheets. The rules begin with
# a class, because in a notebook they hold for the whole page.
STYLE = """<style>
.dsa-plan{max-width:100%;height:auto}
@supports(paint-order:stroke){
.dsa-plan .name{paint-order:stroke;stroke:currentColor;stroke-width:2}
}
@media(prefers-color-scheme:dark){
.dsa-plan{color:#e6edf3}
.dsa-plan .paper{fill:#0d1117}
.dsa-plan .edge{stroke:#0d1117}
}
</style>"""
CHARACTER = 6.6  # pixels that one takes up in text of size 12, on average
DASHES = {"peak": "none", "lower bound": "7 4", "capacity": "2 3"}


class Frame(NamedTuple):
    """The part of the picture within the axes, in pixels; y runs downwards."""

    left: int
    top: int
    right: int
    bottom: int

    def x(self, share: float) -> float:
        return round(self.left + (self.right - self.left) * share, 2)

    def y(self, share: float) -> float:
        return round(self.bottom - (self.bottom - self.top) * share, 2)


def svg(plan: Plan, *, width: int = 960, height: int = 540) -> str:
    """Draw the plan as self-contained SVG, for light and dark pages.

    Buffers are drawn to scale, however many they are, with the ids that fit; hovering over one
    tells all about it. One that is pinned has a heavy border. Over them lie the load, the peak,
    the lower bound, and the capacity unless it is more than a quarter above the peak.

    Parameters
    ----------
    plan
        A plan.
    width
        Pixels, at least 400.
    height
        Pixels, at least 240.

    Returns
    -------
    str
        The same for the same problem, offsets, bound and solver, byte for byte.

    Raises
    ------
    ValueError
        If width or height is too small.
    """
    check_room(width=(width, 400), height=(height, 240))
    picture = Picture(plan)
    frame = Frame(82, 44, width - 108, height - 56)
    boxes = _boxes(plan, picture, frame)
    heading = escape(title(plan, int((width - 32) / CHARACTER / 1.2)))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dsa-plan" role="img"'
        f' aria-label="{heading}" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" color="#1f2328" fill="currentColor"'
        f' font-family="system-ui,Helvetica,Arial,sans-serif" font-size="12">',
        STYLE,
        f'<rect class="paper" width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="16" y="25" font-size="14" font-weight="600">{heading}</text>',
        *_axes(picture, frame),
        *_rectangles(plan, boxes),
        *_load(picture, frame),
        *_names(plan, boxes),
        *_levels(picture, frame),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def write_svg(plan: Plan, path: str | PathLike[str]) -> None:
    """Write the plan as an SVG file: see `svg`."""
    Path(path).write_text(svg(plan), encoding="utf-8", newline="\n")


def _axes(picture: Picture, frame: Frame) -> Iterator[str]:
    left, top, right, bottom = frame
    sizes = picture.size_ticks(max((bottom - top) // 40, 1))
    steps = picture.step_ticks((right - left) / CHARACTER)
    ys = [(frame.y(share), size) for share, size in sizes]
    xs = [(frame.x(share), step) for share, step in steps]
    grid = "".join(f"M{left - 5} {y:g}H{right}" for y, _ in ys)
    grid += "".join(f"M{x:g} {bottom}v5" for x, _ in xs)
    yield f'<path fill="none" stroke="currentColor" stroke-opacity="0.15" d="{grid}"/>'
    yield '<g text-anchor="end">'
    yield from (f'<text x="{left - 9}" y="{y + 4:g}">{size}</text>' for y, size in ys)
    yield '</g>\n<g text-anchor="middle">'
    yield from (f'<text x="{x:g}" y="{bottom + 19}">{step}</text>' for x, step in xs)
    yield f'<text x="{(left + right) / 2:g}" y="{bottom + 40}">{picture.time_label}</text>\n</g>'


class Box(NamedTuple):
    """A buffer's rectangle, in pixels."""

    fill: str
    edged: bool  # on a smaller rectangle an edge would be all one sees
    position: int
    x: float
    y: float
    width: float
    height: float


def _boxes(plan: Plan, picture: Picture, frame: Frame) -> list[Box]:
    """Rectangles of all buffers, those that look alike together."""
    colour = colours(plan, len(PALETTE))[picture.solid]
    columns = (picture.solid, colour, picture.left, picture.right, picture.bottom, picture.top)
    boxes = []
    for i, c, left, right, bottom, top in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        x, y = frame.x(left), frame.y(top)
        width, height = round(frame.x(right) - x, 2), round(frame.y(bottom) - y, 2)
        boxes.append(Box(PALETTE[c], min(width, height) >= 3, i, x, y, width, height))
    return sorted(boxes, key=_look)


def _look(box: Box) -> tuple[str, bool]:
    return box.fill, box.edged


def _rectangles(plan: Plan, boxes: list[Box]) -> Iterator[str]:
    for (fill, edged), group in groupby(boxes, key=_look):
        yield f'<g fill="{fill}" class="edge" stroke="#fff">' if edged else f'<g fill="{fill}">'
        for _, _, i, x, y, width, height in group:
            yield (
                f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}">'
                f"<title>{_hover(plan, i)}</title></rect>"
            )
        yield "</g>"


def _hover(plan: Plan, i: int) -> str:
    problem = plan.problem
    words = [
        f"{cut(problem.ids[i], 100)}: steps [{problem.lower[i]}, {problem.upper[i]})",
        f"{problem.size[i]} B at offset {plan.offsets[i]}",
    ]
    if problem.alignment[i] > 1:
        words.append(f"alignment {problem.alignment[i]}")
    if problem.pin[i] != FREE:
        words.append("pinned")
    return escape(", ".join(words))


def _names(plan: Plan, boxes: list[Box]) -> Iterator[str]:
    """Ids in the middle of their rectangles, and a border around the pinned."""
    edged = [box for box in boxes if box.edged]
    yield '<g pointer-events="none" text-anchor="middle">'
    for (fill, _), group in groupby(edged, key=_look):
        yield f'<g class="name" fill="#000" color="{fill}">'
        for box in group:
            yield from _name(plan, box)
        yield "</g>"
    borders = "".join(
        f"M{box.x + 1:g} {box.y + 1:g}h{box.width - 2:g}v{box.height - 2:g}h{2 - box.width:g}z"
        for box in edged
        if plan.problem.pin[box.position] != FREE
    )
    yield f'<path fill="none" stroke="#000" stroke-width="2" d="{borders}"/>\n</g>'


def _name(plan: Plan, box: Box) -> Iterator[str]:
    """The id, upright where more of it fits that way; nothing where too little does."""
    _, _, i, x, y, width, height = box
    flat, upright = (
        cut(plan.problem.ids[i], int((along - 6) / CHARACTER)) if across >= 13 else ""
        for along, across in ((width, height), (height, width))
    )
    middle, centre = x + width / 2, y + height / 2
    if len(upright) > len(flat):
        turn = f"translate({middle + 4:g} {centre:g})rotate(-90)"
        yield f'<text transform="{turn}">{escape(upright)}</text>'
    elif flat:
        yield f'<text x="{middle:g}" y="{centre + 4:g}">{escape(flat)}</text>'


def _load(picture: Picture, frame: Frame) -> Iterator[str]:
    """The curve, with a sample of it beside its name below the axis."""
    path = f"M{frame.left} {frame.bottom}"
    for share, load in zip(picture.at(picture.events).tolist(), picture.load.tolist(), strict=True):
        path += f"H{frame.x(share):g}V{frame.y(load / picture.height):g}"
    below = frame.bottom + 36
    path += f"M16 {below}h20"
    yield '<g pointer-events="none" fill="none">'
    yield f'<path class="edge" stroke="#fff" stroke-width="3.5" stroke-opacity="0.7" d="{path}"/>'
    yield f'<path stroke="currentColor" stroke-width="1.25" d="{path}"/>'
    yield f'</g>\n<text x="42" y="{below + 4}">load</text>'


def _levels(picture: Picture, frame: Frame) -> Iterator[str]:
    """Peak, lower bound and capacity across the frame, their names beside it, none on another."""
    free = 0.0
    for size, names in picture.levels.items():
        y = frame.y(size / picture.height)
        first = max(y + 4, free)
        yield (
            f'<path pointer-events="none" fill="none" stroke="currentColor" stroke-width="1.5"'
            f' stroke-dasharray="{DASHES[names[0]]}"'
            f' d="M{frame.left} {y:g}H{frame.right}L{frame.right + 9} {first - 4:g}"/>'
        )
        for line in [names[0], *(f"= {name}" for name in names[1:]), format_size(size)]:
            yield f'<text x="{frame.right + 12}" y="{first:g}">{line}</text>'
            first += 14
        free = first + 4

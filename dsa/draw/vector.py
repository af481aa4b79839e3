"""The plan as SVG, with nothing but strings."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from dsa.constraints import Constraints
from dsa.draw.picture import CROWD, PALETTE, Picture, check_room, colours, cut, pictures
from dsa.pools import PoolPlan
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


def svg(plan: Plan | PoolPlan, *, width: int = 960, height: int = 540) -> str:
    """Draw the plan as self-contained SVG, for light and dark pages.

    Buffers are drawn to scale with the ids that fit; hovering over one tells all about it. Of more
    than 20,000, only those are drawn that cover the middle of a pixel. One that is pinned has a
    heavy border. What holes leave out is not drawn; buffers that share bytes are seen through one
    another, with dashed borders; reserved bytes are hatched, and dotted lines are multiples of the
    chunk. Over them lie the load, the peak, the lower bound, and the capacity unless it is more
    than a quarter above the peak.

    Parameters
    ----------
    plan
        A plan, or one of several pools, which are drawn one below another: steps to
        one scale, bytes each to its own.
    width
        Pixels, at least 400.
    height
        Pixels, at least 240; of each pool.

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
    drawn = pictures(plan, int((width - 32) / CHARACTER / 1.2))
    label = escape(drawn[0][0] if isinstance(plan, Plan) else str(plan))
    whole = height * len(drawn)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dsa-plan" role="img"'
        f' aria-label="{label}" width="{width}" height="{whole}"'
        f' viewBox="0 0 {width} {whole}" color="#1f2328" fill="currentColor"'
        f' font-family="system-ui,Helvetica,Arial,sans-serif" font-size="12">',
        STYLE,
        f'<rect class="paper" width="{width}" height="{whole}" fill="#fff"/>',
    ]
    for k, (heading, part, picture) in enumerate(drawn):
        one = _drawing(part, heading, picture, Frame(82, 44, width - 108, height - 56))
        parts += [f'<g transform="translate(0 {k * height})">', *one, "</g>"] if k else one
    return "\n".join([*parts, "</svg>"]) + "\n"


def _drawing(plan: Plan, heading: str, picture: Picture, frame: Frame) -> Iterator[str]:
    """A plan under its heading."""
    boxes = _boxes(plan, picture, frame)
    rules = plan.problem.constraints
    yield f'<text x="16" y="25" font-size="14" font-weight="600">{escape(heading)}</text>'
    yield from _axes(picture, frame)
    yield from _forbidden(picture, frame, rules)
    yield from _rectangles(plan, picture, boxes)
    yield from _load(picture, frame)
    yield from _names(plan, boxes)
    yield from _levels(picture, frame)
    yield from _legend(picture, frame, rules)


def write_svg(plan: Plan | PoolPlan, path: str | PathLike[str]) -> None:
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


def _forbidden(picture: Picture, frame: Frame, rules: Constraints) -> Iterator[str]:
    """Reserved bytes, hatched, and the multiples of the chunk."""
    for (low, high), (start, stop) in zip(picture.reserved, rules.reserved, strict=False):
        top, bottom = frame.y(high), frame.y(low)
        width, height = frame.right - frame.left, round(bottom - top, 2)
        yield (
            f'<rect x="{frame.left}" y="{top:g}" width="{width}" height="{height:g}"'
            f' fill="currentColor" fill-opacity="0.06">'
            f"<title>reserved: bytes [{start}, {stop})</title></rect>"
        )
        lines = _hatching(frame, top, bottom)
        yield f'<path fill="none" stroke="currentColor" stroke-opacity="0.4" d="{lines}"/>'
        if height >= 16:
            x, y = frame.left + 8, (top + bottom) / 2
            yield f'<rect class="paper" fill="#fff" x="{x}" y="{y - 8:g}" width="62" height="16"/>'
            yield f'<text x="{x + 5}" y="{y + 4:g}">reserved</text>'
    lines = "".join(f"M{frame.left} {frame.y(at):g}H{frame.right}" for at in picture.chunks)
    if lines:
        yield f'<path fill="none" stroke="currentColor" stroke-dasharray="1 4" d="{lines}"/>'


def _hatching(frame: Frame, top: float, bottom: float) -> str:
    """Slanted lines, cut where they would leave the frame."""
    path, height = "", bottom - top
    for x in range(frame.left - int(height), frame.right, 9):
        below, above = max(x, frame.left), min(x + height, frame.right)
        path += f"M{below:g} {bottom - (below - x):.6g}L{above:g} {bottom - (above - x):.6g}"
    return path


class Box(NamedTuple):
    """A piece of a buffer, by its largest rectangle, in pixels."""

    fill: str
    edged: bool  # on a smaller rectangle an edge would be all one sees
    shares: bool
    position: int
    piece: str | None  # the outline, unless it is the rectangle
    x: float
    y: float
    width: float
    height: float


def _boxes(plan: Plan, picture: Picture, frame: Frame) -> list[Box]:
    """Rectangles of all buffers, those that look alike together, those that share bytes last."""
    columns = (picture.left, picture.right, picture.bottom, picture.top)
    pieces, positions = picture.pieces, None
    if len(pieces) == len(picture.buffer) > CROWD:
        wide, high = frame.right - frame.left, frame.bottom - frame.top
        seen = picture.seen(wide, high)
        pieces, positions = [pieces[k] for k in seen.tolist()], picture.buffer[seen]
    colour = colours(plan, len(PALETTE), positions).tolist()
    left, right, bottom, top = (column.tolist() for column in columns)
    owner = picture.buffer.tolist()
    boxes = []
    for piece in pieces:
        k = picture.largest(piece)
        x, y = frame.x(left[k]), frame.y(top[k])
        width, height = round(frame.x(right[k]) - x, 2), round(frame.y(bottom[k]) - y, 2)
        if positions is not None:  # a sliver stands for those beside it
            x, y, width, height = round(x), round(y), max(round(width), 1), max(round(height), 1)
        outline = None
        if piece.stop - piece.start > 1:
            corners = [(frame.x(a), frame.y(b)) for a, b in picture.outline(piece)]
            outline = f"M{'L'.join(f'{a:g} {b:g}' for a, b in corners)}z"
        edged, fill = min(width, height) >= 3, PALETTE[colour[owner[k]]]
        shares = owner[k] in picture.shares
        boxes.append(Box(fill, edged, shares, owner[k], outline, x, y, width, height))
    return sorted(boxes, key=_order)


def _order(box: Box) -> tuple[bool, float, str, bool]:
    """Of those that share bytes, the small lie on the large."""
    return box.shares, -box.width * box.height if box.shares else 0, box.fill, box.edged


def _look(box: Box) -> tuple[bool, str, bool]:
    return box.shares, box.fill, box.edged


def _rectangles(plan: Plan, picture: Picture, boxes: list[Box]) -> Iterator[str]:
    for (shares, fill, edged), group in groupby(boxes, key=_look):
        if shares:
            yield (
                f'<g fill="{fill}" fill-opacity="0.6" stroke="currentColor" stroke-width="1.5"'
                ' stroke-dasharray="6 3">'
            )
        else:
            yield f'<g fill="{fill}" class="edge" stroke="#fff">' if edged else f'<g fill="{fill}">'
        for box in group:
            title = f"<title>{_hover(plan, box)}</title>"
            if box.piece is not None:
                yield f'<path d="{box.piece}">{title}</path>'
                continue
            yield (
                f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}">'
                f"{title}</rect>"
            )
        yield "</g>"


def _hover(plan: Plan, box: Box) -> str:
    problem, i = plan.problem, box.position
    words = [
        f"{cut(problem.ids[i], 100)}: steps [{problem.lower[i]}, {problem.upper[i]})",
        f"{problem.size[i]} B at offset {plan.offsets[i]}",
    ]
    if problem.alignment[i] > 1:
        words.append(f"alignment {problem.alignment[i]}")
    if problem.pin[i] != FREE:
        words.append("pinned")
    if (problem.holes[:, 0] == i).any():
        words.append("with holes")
    if box.shares:
        words.append("shares bytes")
    return escape(", ".join(words))


def _names(plan: Plan, boxes: list[Box]) -> Iterator[str]:
    """Ids in the middle of their rectangles, and a border around the pinned."""
    edged = [box for box in boxes if box.edged]
    taken: list[tuple[float, float]] = []
    yield '<g pointer-events="none" text-anchor="middle">'
    for (_, fill, _), group in groupby(edged, key=_look):
        yield f'<g class="name" fill="#000" color="{fill}">'
        for box in group:
            yield from _name(plan, box, taken)
        yield "</g>"
    borders = "".join(
        box.piece
        or f"M{box.x + 1:g} {box.y + 1:g}h{box.width - 2:g}v{box.height - 2:g}h{2 - box.width:g}z"
        for box in edged
        if plan.problem.pin[box.position] != FREE
    )
    yield f'<path fill="none" stroke="#000" stroke-width="2" d="{borders}"/>\n</g>'


def _name(plan: Plan, box: Box, taken: list[tuple[float, float]]) -> Iterator[str]:
    """The id, upright where more of it fits that way; nothing where too little does."""
    flat, upright = (
        cut(plan.problem.ids[box.position], int((along - 6) / CHARACTER)) if across >= 13 else ""
        for along, across in ((box.width, box.height), (box.height, box.width))
    )
    middle, centre = box.x + box.width / 2, box.y + box.height / 2
    if len(upright) > len(flat):
        turn = f"translate({middle + 4:g} {centre:g})rotate(-90)"
        yield f'<text transform="{turn}">{escape(upright)}</text>'
    elif flat:
        if box.shares:
            centre = _free(middle, centre, box, taken)
        yield f'<text x="{middle:g}" y="{centre + 4:g}">{escape(flat)}</text>'


def _free(middle: float, centre: float, box: Box, taken: list[tuple[float, float]]) -> float:
    """The height nearest the centre at which no name of another buffer is in the way."""
    steps = range(int((box.height / 2 - 7) // 14) + 1)
    for y in [y for step in steps for y in (centre + 14 * step, centre - 14 * step)]:
        if all(abs(x - middle) > 30 or abs(other - y) >= 13 for x, other in taken):
            taken.append((middle, y))
            return y
    return centre


def _load(picture: Picture, frame: Frame) -> Iterator[str]:
    """The curve, with a sample of it beside its name below the axis."""
    path = f"M{frame.left} {frame.bottom}"
    curve = picture.curve(frame.right - frame.left)
    for share, load in zip(*(column.tolist() for column in curve), strict=True):
        path += f"H{frame.x(share):g}V{frame.y(load / picture.height):g}"
    below = frame.bottom + 36
    path += f"M16 {below}h20"
    yield '<g pointer-events="none" fill="none">'
    yield f'<path class="edge" stroke="#fff" stroke-width="3.5" stroke-opacity="0.7" d="{path}"/>'
    yield f'<path stroke="currentColor" stroke-width="1.25" d="{path}"/>'
    yield f'</g>\n<text x="42" y="{below + 4}">{picture.curve_label}</text>'


def _legend(picture: Picture, frame: Frame, rules: Constraints) -> Iterator[str]:
    """What dashes and dots mean, beside the curve's name, as far as there is room."""
    below, x = frame.bottom + 36, 56 + CHARACTER * len(picture.curve_label)
    room = (frame.left + frame.right - CHARACTER * len(picture.time_label)) / 2
    for dashes, label, there in (
        ("6 3", "shared", picture.shares),
        ("1 4", f"multiples of {rules.chunk}", picture.chunks),
    ):
        end = x + 26 + CHARACTER * len(label)
        if there and end < room:
            path = f'stroke-width="1.5" stroke-dasharray="{dashes}" d="M{x:g} {below}h20"'
            yield f'<path fill="none" stroke="currentColor" {path}/>'
            yield f'<text x="{x + 26:g}" y="{below + 4}">{label}</text>'
            x = end + 14


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

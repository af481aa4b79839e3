"""Pictures: everything is drawn, to scale, readable, and the same every time."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from itertools import combinations, groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa import Buffer, CapacityError, Constraints, Plan, Problem, draw, plan
from dsa.bounds import lower_bound
from dsa.draw.picture import PALETTE, Picture, colours
from dsa.pools import Pool, plan_pools
from dsa.solvers import FEATURES
from dsa.testing import problems
from tests.shared import examples

EXAMPLE = [
    Buffer(0, 3, 4, id="a"),
    Buffer(3, 9, 4, id="b"),
    Buffer(0, 9, 4, id="c"),
    Buffer(9, 21, 4, id="d"),
    Buffer(0, 21, 4, id="e"),
]
EXAMPLE_OFFSETS = [8, 8, 4, 4, 0]
NOW = 1_700_000_000_000_000  # microseconds since 1970


def place(rows: Any, offsets: list[int] | None = None, *, capacity: int | None = None) -> Plan:
    """A plan with these offsets, or with those of a simple solver."""
    if offsets is None:
        return plan(rows, solver="greedy-by-size", capacity=capacity)
    problem = Problem(rows, capacity=capacity)
    return Plan(problem, np.array(offsets), lower_bound(problem), "Given()")


class Drawn(NamedTuple):
    """A buffer's rectangle as the SVG has it, in hundredths of a pixel."""

    id: str
    hover: str
    left: int
    right: int
    top: int
    bottom: int


def hundredths(number: str) -> int:
    """A number with at most two decimals, exactly."""
    scaled = Fraction(number) * 100
    assert scaled.denominator == 1
    return int(scaled)


def parse(svg: str) -> ElementTree.Element:
    """The root of an SVG, its tags without the name space."""
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        element.tag = element.tag.removeprefix("{http://www.w3.org/2000/svg}")
    return root


def rectangles(svg: str) -> list[Drawn]:
    """The rectangles of buffers, which are those with a title."""
    drawn = []
    for rect in parse(svg).iter("rect"):
        hover = rect.findtext("title")
        if hover is not None:
            x, y, width, height = (
                hundredths(rect.attrib[name]) for name in ("x", "y", "width", "height")
            )
            id = hover.partition(": steps")[0]
            drawn.append(Drawn(id, hover, x, x + width, y, y + height))
    return drawn


def words(svg: str) -> list[str]:
    """All text that is drawn."""
    return [element.text or "" for element in parse(svg).iter("text")]


def marks(svg: str, axis: str) -> dict[str, float]:
    """Where the words beside an axis stand, by what they say."""
    group = {"x": ".//g[@text-anchor='middle']", "y": ".//g[@text-anchor='end']"}[axis]
    beside = parse(svg).findall(group)[0]
    return {element.text or "": float(element.attrib[axis]) for element in beside}


# -- characters --------------------------------------------------------------------------------


def test_map_of_the_example() -> None:
    """The map shows blocks, ids, free space, levels and both axes."""
    drawn = draw.text(place(EXAMPLE, EXAMPLE_OFFSETS), width=72, height=18)
    assert drawn == GOLDEN


GOLDEN = """\
5 buffers, peak 12 B, lower bound 12 B: optimal (given)
12 B +-- peak = lower bound -------------------------------------------+
     |        |                  |.....................................|
10 B |        |                  |.....................................|
     |   a    |        b         |.....................................|
     |        |                  |.....................................|
 8 B |________|__________________|_____________________________________|
     |                           |                                     |
 6 B |             c             |                  d                  |
     |                           |                                     |
 4 B |___________________________|_____________________________________|
     |                                                                 |
     |                                                                 |
 2 B |                                e                                |
     |                                                                 |
     |                                                                 |
 0 B +-----+------+-----+-----+-----+------+-----+-----+------+-----+--+
step 0     2      4     6     8     10     12    14    16     18    20"""


def test_map_of_a_gap() -> None:
    """Peak, capacity and lower bound are lines of their own, where they belong."""
    with pytest.raises(CapacityError) as caught:
        plan([(0, 3, 40), (2, 5, 40), (4, 8, 40), (0, 8, 16)], solver="naive", capacity=100)
    lines = draw.text(caught.value.plan).splitlines()
    rules = {
        line.split("--")[1].strip(): (i, line[:5]) for i, line in enumerate(lines) if "+-- " in line
    }
    assert rules == {"peak": (1, "136 B"), "capacity": (7, "100 B"), "lower bound": (8, " 96 B")}


def test_map_of_many_small_buffers() -> None:
    """Ten thousand buffers still give a map of the size asked for."""
    lines = draw.text(crowd(), width=100, height=30).splitlines()
    assert len(lines) == 30
    assert lines[0].startswith("10000 buffers, peak")
    assert {len(line) for line in lines[1:-1]} == {100}


@given(problem=problems(alignments=True, pins=True, huge=True), width=st.integers(40, 90))
@examples(100)
def test_map_is_ascii_of_the_size_asked_for(problem: Problem, width: int) -> None:
    """Any plan is drawn with ASCII characters in as many lines as asked for, none too long."""
    lines = draw.text(place(problem), width, 20).splitlines()
    assert len(lines) == 20
    assert all(line.isascii() and len(line) <= width for line in lines)


@given(problem=problems(zero_sizes=False))
@examples(50)
def test_map_shows_what_is_free(problem: Problem) -> None:
    """A character is a dot only if nothing covers its middle, and blank only if something does."""
    made = place(problem)
    lines = draw.text(made, 40, 12).splitlines()
    rows = [line[lines[-2].index("+") : -1] for line in lines if line.endswith("|")]
    first, last = int(problem.lower.min(initial=13)), int(problem.upper.max(initial=0))
    for row, line in enumerate(reversed(rows)):
        for column, character in enumerate(line):
            step = first + (column + 0.5) / len(line) * (last - first)
            byte = (row + 0.5) / len(rows) * made.peak
            depth = max(  # into a buffer: below 0 outside of all, around 0 on an edge
                (
                    min(step - b.lower, b.upper - step, byte - offset, offset + b.size - byte)
                    for b, offset in made
                ),
                default=-1.0,
            )
            if abs(depth) > 1e-9:
                assert character in ("_| 0123456789b" if depth > 0 else "_|.")


# -- SVG ---------------------------------------------------------------------------------------


def test_rectangles_are_to_scale() -> None:
    """Steps and bytes read off the axes are those of the plan, to a hundredth of a pixel."""
    made = place(EXAMPLE, EXAMPLE_OFFSETS)
    svg = draw.svg(made)
    x, y = marks(svg, "x"), marks(svg, "y")
    per_step, per_byte = (x["20"] - x["0"]) / 20, (y["0 B"] - y["8 B"]) / 8
    base = y["0 B"] - 4  # words hang a little lower than their mark
    by_id = {drawn.id: drawn for drawn in rectangles(svg)}
    for buffer, offset in made:
        drawn = by_id[str(buffer.id)]
        assert drawn.left / 100 == pytest.approx(x["0"] + buffer.lower * per_step, abs=0.02)
        assert drawn.right / 100 == pytest.approx(x["0"] + buffer.upper * per_step, abs=0.02)
        assert drawn.bottom / 100 == pytest.approx(base - offset * per_byte, abs=0.02)
        assert drawn.top / 100 == pytest.approx(base - (offset + buffer.size) * per_byte, abs=0.02)


@given(problem=problems(alignments=True, pins=True, huge=True))
@examples(200)
def test_each_buffer_is_drawn_once_and_apart(problem: Problem) -> None:
    """Any plan gives valid XML with one rectangle a buffer that has a size; none overlap."""
    drawn = rectangles(draw.svg(place(problem)))
    sizes = dict(zip(map(str, problem.ids), problem.size.tolist(), strict=True))
    assert sorted(box.id for box in drawn) == sorted(id for id, size in sizes.items() if size)
    for a, b in combinations(drawn, 2):
        assert min(a.right, b.right) <= max(a.left, b.left) or min(a.bottom, b.bottom) <= max(
            a.top, b.top
        )


@given(problem=problems(alignments=True, pins=True))
@examples(50)
def test_same_problem_same_bytes(problem: Problem) -> None:
    """Planned twice, which takes other seconds, a problem gives the same pictures."""
    first, second = place(problem), place(problem)
    assert draw.svg(first) == draw.svg(second)
    assert draw.text(first) == draw.text(second)


def test_load_curve() -> None:
    """The curve goes through the load at every step, which the levels are measured by, too."""
    svg = draw.svg(place([(0, 2, 8), (1, 3, 8), (3, 4, 4)], [0, 8, 0]))
    x, y = marks(svg, "x"), marks(svg, "y")
    curve = parse(svg).findall(".//path[@stroke-width='1.25']")[0].attrib["d"].partition("M16")[0]
    load = {0: 8, 1: 16, 2: 8, 3: 4, 4: 0}
    path = [f"M{x['0']:g} {y['0 B'] - 4:g}"]
    path += [f"H{x[str(step)]:g}V{y[f'{size} B'] - 4:g}" for step, size in load.items()]
    assert curve == "".join(path)


@pytest.mark.parametrize(
    ("capacity", "shown"), [(None, False), (15, True), (12, True), (16, False), (2**60, False)]
)
def test_capacity_is_shown_when_it_is_near(capacity: int | None, shown: bool) -> None:
    """A capacity more than a quarter above the peak would squash the plan, and is left out."""
    made = place(EXAMPLE, EXAMPLE_OFFSETS, capacity=capacity)
    assert any("capacity" in word for word in words(draw.svg(made))) == shown
    assert ("capacity" in draw.text(made)) == shown


def test_levels_do_not_write_over_one_another() -> None:
    """Peak and bound a pixel apart have names a line apart, each with its size."""
    svg = draw.svg(place([(0, 1, 1000), (0, 1, 1)], [0, 1001], capacity=1001))
    y = {element.text: float(element.attrib["y"]) for element in parse(svg).iter("text")}
    heights = [y[name] for name in ("peak", "1002 B", "lower bound", "= capacity", "1001 B")]
    assert all(below - above >= 14 for above, below in pairwise(heights))


def test_hover_tells_all() -> None:
    """The title of a rectangle has id, lifetime, size, offset, alignment and pin."""
    made = place([Buffer(2, 5, 100, id="w", alignment=8, offset=64), Buffer(0, 9, 7)], [64, 0])
    assert {drawn.hover for drawn in rectangles(draw.svg(made))} == {
        "w: steps [2, 5), 100 B at offset 64, alignment 8, pinned",
        "1: steps [0, 9), 7 B at offset 0",
    }


def test_pinned_buffers_have_a_border() -> None:
    """The border follows the rectangle of each buffer that is pinned, and of no other."""
    made = place([Buffer(0, 9, 8, id="free"), Buffer(0, 9, 8, id="pinned", offset=8)], [0, 8])
    svg = draw.svg(made)
    border = parse(svg).findall(".//path[@stroke-width='2']")[0].attrib["d"]
    (box,) = (drawn for drawn in rectangles(svg) if drawn.id == "pinned")
    assert border.startswith(f"M{box.left / 100 + 1:g} {box.top / 100 + 1:g}h")
    assert border.count("M") == 1


@pytest.mark.parametrize(
    ("id", "shown"),
    [
        ("<&\"'>]]>", "<&\"'>]]>"),
        ("nul\0esc\x1b\n", "nul?esc??"),
        ("\ud800\ufffe", "??"),
        ("größe", "größe"),
        (("block", 3), "('block', 3)"),
        (None, "0"),
    ],
)
def test_ids_are_escaped(id: Any, shown: str) -> None:
    """What XML does not allow is escaped, or a question mark where it cannot be."""
    svg = draw.svg(place([Buffer(0, 1, 8, id=id)], [0]))
    assert shown in words(svg)
    assert rectangles(svg)[0].id == shown
    assert shown.encode("ascii", "replace").decode() in draw.text(
        place([Buffer(0, 1, 8, id=id)], [0])
    )


def test_long_ids_are_cut() -> None:
    """An id is cut to its rectangle; where nothing telling would be left it is not drawn."""
    rows = [Buffer(0, 80, 1, id="long" * 99), Buffer(80, 81, 1, id="longer" * 99)]
    svg = draw.svg(place(rows, [0, 0]), width=600, height=300)
    assert [word for word in words(svg) if word.startswith("long")] == ["long" * 14 + "lo.."]
    assert max(len(drawn.id) for drawn in rectangles(svg)) == 100


def test_names_fit() -> None:
    """No name is wider than its rectangle, nor is one written into a sliver."""
    rows = [Buffer(0, k, k, id=f"buffer {k}") for k in range(1, 40)]
    svg = draw.svg(place(rows))
    boxes = {drawn.id: drawn for drawn in rectangles(svg)}
    named = [word for word in words(svg) if word in boxes]
    assert 5 < len(named) < 39
    for name in named:
        box = boxes[name]
        sides = box.right - box.left, box.bottom - box.top
        assert max(sides) >= 660 * len(name)
        assert min(sides) >= 1300


# -- holes and constraints ---------------------------------------------------------------------

CONSTRAINED = problems(
    max_buffers=6,
    alignments=True,
    pins=True,
    holes=True,
    constraints=set(FEATURES) - {"alignment", "pins", "holes"},
)


def kept(buffer: Buffer, step: float) -> tuple[int, int]:
    """The bytes of its own that a buffer keeps at a step."""
    if not buffer.lower <= step < buffer.upper:
        return 0, 0
    for lower, upper, *window in buffer.holes:
        if lower <= step < upper:
            return (window[0], window[1]) if window else (0, 0)
    return 0, buffer.size


def in_use(made: Plan, step: float) -> set[int]:
    """The bytes that some buffer keeps at a step, one by one."""
    return {offset + byte for b, offset in made for byte in range(*kept(b, step))}


RULES = Constraints(exclusive=[("then", "else")], reserved=[(8, 12)])
EVERYTHING = [
    Buffer(0, 6, 8, id="holed", holes=[(2, 4)]),
    Buffer(2, 4, 8, id="inside"),
    Buffer(0, 6, 8, id="window", holes=[(3, 6, 0, 4)]),
    Buffer(6, 9, 8, id="then"),
    Buffer(7, 9, 4, id="else"),
]
EVERYTHING_OFFSETS = [0, 0, 12, 12, 12]


def drawn_with_rules() -> Plan:
    """A plan in which there is something of everything to be seen."""
    problem = Problem(EVERYTHING, constraints=RULES)
    return Plan(problem, np.array(EVERYTHING_OFFSETS), lower_bound(problem), "Given()")


def test_map_of_holes_and_constraints() -> None:
    """What holes leave out is another's; reserved bytes are hatched, shared ones filled."""
    assert draw.text(drawn_with_rules(), width=60, height=14) == MAP_OF_EVERYTHING


MAP_OF_EVERYTHING = """\
5 buffers, peak 20 B, lower bound 20 B: optimal (given)
20 B +-- peak = lower bound -------------------------------+
     |                 |.................|                 |
16 B |     window      |_________________|     _then_______|
     |                                   |     |===else====|
12 B |___________________________________|_____|___________|
     //////////////////////////////////////////////////////|
 8 B ____________________________________//////////////////|
     |           |           |           |.................|
 4 B |   holed   |  inside   |   holed   |.................|
     |           |           |           |.................|
     |           |           |           |.................|
 0 B +-----+-----+-----+-----+-----+-----+-----+-----+-----+
step 0     1     2     3     4     5     6     7     8     9"""


@given(problem=CONSTRAINED)
@examples(50)
def test_the_map_is_blank_where_one_buffer_keeps_bytes(problem: Problem) -> None:
    """Dots and slashes are where none does, = only where two do, by each rule's definition."""
    made = place(problem)
    lines = draw.text(made, 40, 12).splitlines()
    rows = [line[lines[-2].index("+") : -1] for line in lines if line.endswith("|")]
    spans = [
        step
        for b in problem
        for step in range(b.lower, b.upper)
        if kept(b, step)[0] < kept(b, step)[1]
    ]
    if not spans or any("evenly" in line for line in lines):
        return
    first, last = min(spans), max(spans) + 1
    for row, line in enumerate(reversed(rows)):
        for column, character in enumerate(line):
            step = first + (column + 0.5) / len(line) * (last - first)
            byte = (row + 0.5) / len(rows) * made.peak
            if min(step % 1, -step % 1, byte % 1, -byte % 1) < 1e-9:
                continue
            depth = sum(
                offset + kept(b, step)[0] <= byte < offset + kept(b, step)[1] for b, offset in made
            )
            reserved = any(a <= byte < z for a, z in problem.constraints.reserved)
            free = "/" if reserved else "."
            allowed = {0: free, 1: " "}.get(depth, "=")
            assert character in f"_|{allowed}" or (depth and character in "0123456789b")


@given(problem=CONSTRAINED)
@examples(50)
def test_pieces_have_the_area_of_what_is_kept(problem: Problem) -> None:
    """Rectangles and outlines of a buffer cover as many steps times bytes as it keeps."""
    made = place(problem)
    picture = Picture(made)
    if picture.even or not len(picture.events):
        return
    first, last = picture.extent
    area = dict.fromkeys(range(len(problem)), 0.0)
    for piece in picture.pieces:
        corners = picture.outline(piece)
        turns = zip(corners, corners[1:] + corners[:1], strict=True)
        twice = sum(x1 * y2 - x2 * y1 for (x1, y1), (x2, y2) in turns)
        area[int(picture.buffer[piece.start])] -= twice / 2 * (last - first) * picture.height
    for i, b in enumerate(problem):
        parts = [kept(b, step) for step in range(b.lower, b.upper)]
        assert area[i] == pytest.approx(sum(stop - start for start, stop in parts))


@given(problem=CONSTRAINED)
@examples(50)
def test_the_curve_is_what_is_in_use(problem: Problem) -> None:
    """At each event the curve is as high as there are bytes that somebody keeps."""
    made = place(problem)
    picture = Picture(made)
    for step, load in zip(picture.events.tolist(), picture.load.tolist(), strict=True):
        assert load == len(in_use(made, step))


@given(problem=CONSTRAINED)
@examples(50)
def test_those_that_share_are_marked(problem: Problem) -> None:
    """A buffer is drawn as sharing exactly if another keeps one of its bytes at some step."""
    made = place(problem)
    rows = list(made)
    expected = {
        i
        for i, (a, at) in enumerate(rows)
        for j, (b, bt) in enumerate(rows)
        for step in range(max(a.lower, b.lower), min(a.upper, b.upper))
        if i != j
        and {at + byte for byte in range(*kept(a, step))}
        & {bt + byte for byte in range(*kept(b, step))}
    }
    assert Picture(made).shares == expected


def test_what_the_svg_says_of_rules() -> None:
    """Outlines for windows, a name for each piece, dashes for sharers, hatching for reserved."""
    svg = draw.svg(drawn_with_rules())
    root = parse(svg)
    titles = [element.text or "" for element in root.iter("title")]
    assert sorted(title.partition(":")[0] for title in titles) == sorted(
        ["holed", "holed", "inside", "window", "then", "else", "reserved"]
    )
    assert "reserved: bytes [8, 12)" in titles
    assert "window: steps [0, 6), 8 B at offset 12, with holes" in titles
    assert "else: steps [7, 9), 4 B at offset 12, shares bytes" in titles
    (outline,) = (path for path in root.iter("path") if path.find("title") is not None)
    assert outline.attrib["d"].count("L") == 7
    (shared,) = {
        g.attrib["stroke-dasharray"] for g in root.iter("g") if "stroke-dasharray" in g.attrib
    }
    assert shared == "6 3"
    assert {"reserved", "bytes in use", "shared"} <= set(words(svg))
    assert words(svg).count("holed") == 2
    heights = [float(e.attrib["y"]) for e in root.iter("text") if e.text in ("then", "else")]
    assert abs(heights[0] - heights[1]) >= 13


def test_hatching_stays_in_the_frame() -> None:
    """Slanted lines end at the edges of the reserved range, also where it is cut by the peak."""
    rules = Constraints(reserved=[(8, 16), (24, 999)])
    svg = draw.svg(plan([(0, 2, 8), (0, 2, 8)], constraints=rules))
    bands = [rect for rect in parse(svg).iter("rect") if rect.attrib.get("fill-opacity")]
    assert len(bands) == 1
    x, y, width, height = (float(bands[0].attrib[side]) for side in ("x", "y", "width", "height"))
    (lines,) = (p.attrib["d"] for p in parse(svg).iter("path") if p.get("stroke-opacity") == "0.4")
    points = [tuple(map(float, point.split())) for point in lines.replace("M", "L").split("L")[1:]]
    assert len(points) > 100
    assert all(x <= px <= x + width and y <= py <= y + height + 0.01 for px, py in points)


def test_multiples_of_the_chunk_are_dotted() -> None:
    """Lines at the multiples below the peak, unless there would be too many to tell apart."""
    for chunk, lines in ((16, 2), (1 << 20, 0), (1, 0)):
        p = plan([(0, 2, 1)] * 40, constraints=Constraints(chunk=chunk))
        assert len(Picture(p).chunks) == (lines if chunk > 1 else 39)
        assert (f"multiples of {chunk}" in words(draw.svg(p))) == (chunk < 1 << 20)


def test_a_pinned_outline_has_a_border() -> None:
    """The border of a pinned buffer with a window follows its outline."""
    p = plan([Buffer(0, 9, 8, id="p", offset=4, holes=[(3, 9, 2, 6)])])
    root = parse(draw.svg(p))
    (outline,) = (path for path in root.iter("path") if path.find("title") is not None)
    (border,) = root.findall(".//path[@stroke-width='2']")
    assert border.attrib["d"] == outline.attrib["d"]


def test_figure_with_rules() -> None:
    """Matplotlib draws sharers apart from the others, and hatches what is reserved."""
    figures = pytest.importorskip("matplotlib.figure", reason="needs matplotlib (the extra plot)")
    figure = figures.Figure()
    axes = figure.subplots()
    draw.figure(drawn_with_rules(), axes)
    plain, shared = axes.collections
    assert (len(plain.get_paths()), len(shared.get_paths())) == (4, 2)
    assert [patch.get_hatch() for patch in axes.patches] == ["///"]
    figure.canvas.draw()


# -- what both have in common ------------------------------------------------------------------


@pytest.mark.parametrize("rows", [[], [(0, 3, 0)]], ids=["no buffer", "size 0"])
def test_nothing_to_draw(rows: list[tuple[int, int, int]]) -> None:
    """A plan without bytes is drawn as empty axes."""
    made = place(rows)
    assert rectangles(draw.svg(made)) == []
    assert "peak = lower bound" in draw.text(made)


@pytest.mark.parametrize(
    ("events", "even"),
    [
        ([NOW, NOW + 1, NOW + 2, NOW + 3], False),  # dense, however large
        ([NOW, NOW + 10**9, NOW + 2 * 10**9, NOW + 4 * 10**9], False),  # spread out
        ([NOW, NOW + 5, NOW + 9, NOW + 10**9], True),  # a burst, and something later
        ([0, 10, 20, 1000], False),  # slivers, but of some pixels
        ([1 - 2**62, 0, 1, 2, 3, 2**62 - 1], True),
        ([7, 8], False),
    ],
)
def test_time_stamps_are_spaced_evenly_if_they_would_be_squeezed(
    events: list[int], even: bool
) -> None:
    """Steps are to scale unless half of them would fall together; then the axis says so."""
    made = place([(a, b, 4) for a, b in pairwise(events)])
    svg = draw.svg(made)
    assert ("step (starts and ends, evenly spaced)" in words(svg)) == even
    assert ("evenly spaced" in draw.text(made)) == even
    assert str(events[0]) in words(svg) + draw.text(made).split()
    edges = sorted({side for drawn in rectangles(svg) for side in (drawn.left, drawn.right)})
    assert len(edges) == len(events)
    if even:
        gaps = np.diff(edges)
        assert gaps.max() - gaps.min() <= 1


@given(problem=problems(max_buffers=30), count=st.integers(2, len(PALETTE)))
@examples(100)
def test_neighbours_differ_in_colour(problem: Problem, count: int) -> None:
    """Each buffer has a colour least used on the edge of those before it, byte by byte."""
    made = place(problem)
    colour = colours(made, count).tolist()
    edge = [-1] * (made.peak + 2)  # who is seen from the right at byte k - 1
    for i in np.lexsort((made.offsets_array, problem.lower)).tolist():
        start, end = made.offsets[i] + 1, made.offsets[i] + int(problem.size[i]) + 1
        if start < end:
            around = [j for j, _ in groupby(edge[start - 1 : end + 1]) if j >= 0]
            used = [sum(colour[j] == c for j in around) for c in range(count)]
            assert used[colour[i]] == min(used)
            edge[start:end] = [i] * (end - start)


@pytest.mark.parametrize("height", [1, 2, 3, 7, 1000, 1023, 1024, 1025, 10**9, 2**61])
@pytest.mark.parametrize("most", [1, 4, 10])
def test_marks_on_the_axis_of_bytes(height: int, most: int) -> None:
    """The marks are multiples of a power of two, at most as many as asked for beyond 0."""
    ticks = Picture(place([(0, 1, height)], [0])).size_ticks(most)
    shares = [Fraction(share) * height for share, _ in ticks]
    assert ticks[0] == (0, "0 B")
    assert len(ticks) - 1 == height or most / 2 <= len(ticks) - 1 <= most
    unit = round(shares[1])
    assert unit & (unit - 1) == 0
    assert [round(share / unit) for share in shares] == list(range(len(ticks)))


@pytest.mark.parametrize(
    ("kind", "sides", "message"),
    [
        (draw.text, {"width": 39}, "width must be at least 40, got 39"),
        (draw.text, {"height": 11}, "height must be at least 12, got 11"),
        (draw.svg, {"width": 399}, "width must be at least 400, got 399"),
        (draw.svg, {"height": 0}, "height must be at least 240, got 0"),
    ],
)
def test_too_small_a_picture_is_refused(kind: Any, sides: dict[str, int], message: str) -> None:
    """A picture without room for its axes is a ValueError that says what would do."""
    with pytest.raises(ValueError, match=message):
        kind(place(EXAMPLE), **sides)


def crowd() -> Plan:
    """Ten thousand buffers, a hundred live at a time."""
    rows = [(i // 100, i // 100 + 1, 1 << 20) for i in range(10_000)]
    return place(rows, [(i % 100) << 20 for i in range(10_000)])


def test_many_buffers_make_no_huge_file() -> None:
    """Ten thousand buffers take less than 2 MB."""
    svg = draw.svg(crowd())
    assert len(rectangles(svg)) == 10_000
    assert len(svg) < 2_000_000


class Sliced:
    """A column of which slices are read, and nothing else."""

    def __init__(self, column: Any) -> None:
        self._column = column

    def __getitem__(self, key: slice) -> Any:
        return self._column[key]


def test_a_piece_is_judged_by_itself() -> None:
    """To find its largest rectangle, nothing is done with those of all others."""
    picture = Picture(crowd())
    for name in ("left", "right", "bottom", "top"):
        setattr(picture, name, Sliced(getattr(picture, name)))
    assert picture.largest(slice(3, 4)) == 3


# -- from a plan -------------------------------------------------------------------------------


def test_plan_draws_itself(tmp_path: Path) -> None:
    """A plan writes the SVG, shows it in notebooks, and gives the map."""
    made = place(EXAMPLE)
    made.to_svg(tmp_path / "plan.svg")
    assert (tmp_path / "plan.svg").read_bytes().decode() == draw.svg(made) == made._repr_svg_()
    assert made.to_text(60, 15) == draw.text(made, 60, 15)


# -- Matplotlib --------------------------------------------------------------------------------


@given(problem=problems(pins=True))
@examples(10)
def test_figure_has_a_polygon_for_each_buffer(problem: Problem) -> None:
    """Matplotlib draws the same rectangles, in steps and bytes."""
    pytest.importorskip("matplotlib", reason="needs matplotlib (the extra plot)")
    made = place(problem)
    (axes,) = draw.figure(made).axes
    (polygons,) = axes.collections
    outlines = [list(path.get_extents().extents) for path in polygons.get_paths()]
    expected = [[b.lower, offset, b.upper, offset + b.size] for b, offset in made if b.size]
    assert np.array(outlines) == pytest.approx(np.array(expected))


def test_figure_draws_onto_given_axes() -> None:
    """Axes of the caller are drawn on, and their figure is returned."""
    figures = pytest.importorskip("matplotlib.figure", reason="needs matplotlib (the extra plot)")
    ours = figures.Figure()
    axes = ours.subplots()
    assert draw.figure(place(EXAMPLE), axes) is ours
    ours.canvas.draw()
    assert axes.get_title() == "5 buffers, peak 12 B, lower bound 12 B: optimal (greedy-by-size)"


def test_drawing_imports_no_matplotlib() -> None:
    """Only `figure` imports Matplotlib."""
    code = "import sys, dsa.draw; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_of_a_crowd_a_sample_is_drawn() -> None:
    """Of more buffers than can be seen those are drawn that cover the middle of a pixel."""
    n = 30_000
    steps = np.arange(n)
    problem = Problem.from_columns(steps, steps + 2, [8] * n)
    p = Plan(problem, 8 * (steps % 2), lower_bound(problem), "given")
    drawn = draw.svg(p)
    assert 0 < drawn.count("<rect") < 2 * 960
    assert max(map(len, drawn.splitlines())) < 100 * 960  # the load, one change a pixel at most
    assert draw.svg(p, width=4000).count("<rect") > drawn.count("<rect")


# -- pools ------------------------------------------------------------------------------------

POOLED = [Buffer(0, 2, 100, id="a"), Buffer(1, 3, 100, id="b"), Buffer(0, 3, 20, id="c")]


def test_pools_are_drawn_one_below_another() -> None:
    """Each as a picture of its own would be, but under its name, and over the steps of all."""
    p = plan_pools(POOLED, [Pool("fast", 128), Pool("<slow>"), Pool("idle", 8)])
    drawn = draw.svg(p, width=400, height=240)
    root = parse(drawn)
    assert (root.attrib["width"], root.attrib["height"]) == ("400", "720")
    moved = [group.attrib["transform"] for group in root.findall("g[@transform]")]
    assert moved == ["translate(0 240)", "translate(0 480)"]
    titles = [text for text in words(drawn) if "buffer" in text]
    assert [title.partition(": ")[0] for title in titles] == ["fast", "<slow>", "idle"]
    boxes = {box.id: box for box in rectangles(drawn)}
    assert set(boxes) == {"a", "b", "c"}
    assert (boxes["a"].left, boxes["b"].right) == (boxes["c"].left, boxes["c"].right)
    assert (p._repr_svg_(), draw.svg(p)) == (draw.svg(p), draw.svg(p))


def test_pools_in_characters() -> None:
    """A map each; the names of pools are cut like those of buffers."""
    p = plan_pools(POOLED, [Pool("fast", 128), Pool("s" * 100)])
    fast, slow = p.to_text(60, 12).split("\n\n")
    assert fast.startswith("fast: 2 buffers, peak 120 B, lower bound 120 B")
    assert slow.startswith("ssss")
    assert max(map(len, [*fast.splitlines(), *slow.splitlines()])) <= 60
    assert fast.splitlines()[-1].split() == slow.splitlines()[-1].split()


def test_pools_with_nothing_in_them(tmp_path: Path) -> None:
    """Empty pools have an axis all the same."""
    p = plan_pools([], [Pool("only")])
    p.to_svg(tmp_path / "empty.svg")
    assert words((tmp_path / "empty.svg").read_text()) == words(draw.svg(p))
    assert p.to_text(40, 12).startswith("only: 0 buffers")

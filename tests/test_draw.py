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

from dsa import Buffer, CapacityError, Plan, Problem, draw, plan
from dsa.bounds import lower_bound
from dsa.draw.picture import PALETTE, Picture, colours
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

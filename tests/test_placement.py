"""Orders, gaps and the skyline against their definitions, written out with loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa import Buffer, Problem, plan
from dsa.kernels.placement import Fit, place
from dsa.kernels.skyline import skyline
from dsa.result import peak
from dsa.solvers.orders import ORDERS, order_by, sort_by
from dsa.testing import assert_valid, orders, problems
from tests import oracle
from tests.shared import examples

# -- orders ----------------------------------------------------------------------------------


def definition(problem: Problem, name: str) -> list[int]:
    """The order by its description, in plain Python."""
    rows = list(problem)
    live = oracle.live_sets(problem)
    weight = {step: sum(rows[i].size for i in live[step]) for step in live}
    cliques = oracle.maximal_live_sets(problem)
    conflicts = oracle.conflicts(problem)
    visited = sorted(live, key=lambda step: (-weight[step], step))

    def covered(i: int) -> int:
        return sum(i in clique for clique in cliques)

    def heaviest(i: int) -> int:
        return max((weight[step] for step in live if i in live[step]), default=0)

    def first_visit(i: int) -> int:
        return next((k for k, step in enumerate(visited) if i in live[step]), len(visited))

    def key(i: int) -> tuple[Any, ...]:
        steps = rows[i].upper - rows[i].lower
        return {
            "size": (-rows[i].size,),
            "lifetime": (-steps,),
            "area": (-rows[i].size * steps,),
            "sections": (-rows[i].size * covered(i),),
            "span": (-covered(i),),
            "conflicts": (-sum(i in pair for pair in conflicts),),
            "conflict-bytes": (-rows[i].size * sum(i in pair for pair in conflicts),),
            "urgency": (-heaviest(i), -steps, rows[i].lower),
            "heaviest": (-heaviest(i), -rows[i].size * covered(i)),
            "breadth": (first_visit(i),),
            "lower": (rows[i].lower,),
            "given": (i,),
        }[name]

    def ties(i: int) -> tuple[Any, ...]:
        return -rows[i].size, rows[i].lower, rows[i].upper, problem.id_rank[i]

    return sorted(range(len(rows)), key=lambda i: (*key(i), *ties(i)))


@pytest.mark.parametrize("name", ORDERS)
def test_orders_are_what_they_are_called(name: str) -> None:
    """Each order against its definition, ties by size, start, end and id."""

    @examples(40)
    @given(problems())
    def check(problem: Problem) -> None:
        assert order_by(problem, name).tolist() == definition(problem, name)

    check()


@pytest.mark.parametrize("name", [name for name in ORDERS if name != "given"])
def test_orders_do_not_depend_on_the_input(name: str) -> None:
    """Buffers given in another order are placed in the same one."""

    @examples(25)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        problem = data.draw(problems())
        shuffled = problem.select(data.draw(orders(problem)))
        ids = [problem.ids[i] for i in order_by(problem, name)]
        assert [shuffled.ids[i] for i in order_by(shuffled, name)] == ids

    check()


@examples(60)
@given(problems())
def test_mirrored_ties_are_those_of_time_reversed(problem: Problem) -> None:
    """Ties broken as if time ran backwards."""
    columns = problem.columns() | {"lower": -problem.upper, "upper": -problem.lower}
    backwards = sort_by(Problem.from_columns(**columns), -problem.size)
    assert sort_by(problem, -problem.size, mirrored=True).tolist() == backwards.tolist()


def test_an_unknown_order_is_refused() -> None:
    """The error lists the orders there are."""
    with pytest.raises(ValueError, match="no order is named 'height'; there are size, lifetime"):
        order_by(Problem([]), "height")


# -- gaps ------------------------------------------------------------------------------------


def place_slowly(problem: Problem, order: list[int], fit: Fit) -> list[int]:
    """Try the gaps between all that is in the way, byte by byte where it matters."""
    rows = list(problem)
    offsets = [row.offset or 0 for row in rows]
    placed = [i for i, row in enumerate(rows) if row.offset is not None and row.size]
    for i in order:
        row = rows[i]
        if row.offset is not None or not row.size:
            continue
        meets = [j for j in placed if row.lower < rows[j].upper and rows[j].lower < row.upper]
        taken = sorted((offsets[j], offsets[j] + rows[j].size) for j in meets)
        gaps, floor = [], 0
        for start, end in taken:
            lowest = -(-floor // row.alignment) * row.alignment
            if start - lowest >= row.size:
                gaps.append((start - lowest, lowest))
            floor = max(floor, end)
        gaps.sort(key=lambda gap: gap[0] if fit == "best" else gap[1])  # stable: lowest of equal
        offsets[i] = gaps[0][1] if gaps else -(-floor // row.alignment) * row.alignment
        placed.append(i)
    return offsets


@pytest.mark.parametrize("fit", ["first", "best"])
def test_gaps_are_found(fit: Fit) -> None:
    """Both fits against loops, in any order, with alignments and pins."""

    @examples(80)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        problem = data.draw(problems(alignments=True, pins=True, huge=True))
        order = data.draw(orders(problem))
        offsets = place(problem, order, fit)
        assert offsets.tolist() == place_slowly(problem, order.tolist(), fit)
        assert_valid(offsets, problem)

    check()


@examples(100)
@given(st.data())
def test_a_plan_can_be_made_an_order_and_back(data: st.DataObject) -> None:
    """First fit in order of the offsets of a plan moves no buffer up."""
    problem = data.draw(problems(alignments=True, pins=True))
    some = place(problem, data.draw(orders(problem)), data.draw(st.sampled_from(["first", "best"])))
    again = place(problem, some.argsort(kind="stable"), "first")
    assert (again <= some).all()


# Gaps of 12 and 10 bytes below and between two buffers that are live throughout.
FENCES = [Buffer(0, 9, 4, id="x", offset=12), Buffer(0, 9, 4, id="y", offset=26)]


@pytest.mark.parametrize(
    ("size", "alignment", "first", "best"),
    [
        (9, 1, 0, 16),  # fits into both: the lowest, or the smaller one
        (10, 1, 0, 16),
        (11, 1, 0, 0),  # only into the lower one
        (13, 1, 30, 30),  # into neither: above all
        (8, 16, 0, 16),
        (9, 8, 0, 16),
        (3, 20, 0, 20),  # what the alignment leaves of a gap counts: 6 bytes
        (7, 20, 0, 0),
    ],
)
def test_first_and_best_fit_differ(size: int, alignment: int, first: int, best: int) -> None:
    """A gap is as large as what is left of it above the first aligned offset."""
    rows = [*FENCES, Buffer(2, 3, size, id="z", alignment=alignment)]
    assert plan(rows, "greedy", fit="first")["z"] == first
    assert plan(rows, "greedy", fit="best")["z"] == best


# -- the skyline -----------------------------------------------------------------------------


def fill_slowly(problem: Problem, order: list[int]) -> list[int]:
    """The skyline as one height for each section."""
    sections = problem.sections
    start, stop = sections.start.tolist(), sections.stop.tolist()
    heights, offsets = [0] * len(sections), [0] * len(problem)
    left = [i for i in order if problem.size[i]]
    while left:
        level = min(heights)
        first = heights.index(level)
        last = first
        while last < len(heights) and heights[last] == level:
            last += 1
        inside = [i for i in left if first <= start[i] and stop[i] <= last]
        if inside:
            i, alignment = inside[0], int(problem.alignment[inside[0]])
            left.remove(i)
            offsets[i] = -(-level // alignment) * alignment
            heights[start[i] : stop[i]] = [offsets[i] + int(problem.size[i])] * (stop[i] - start[i])
        else:
            neighbours = heights[max(first - 1, 0) : first] + heights[last : last + 1]
            heights[first:last] = [min(neighbours)] * (last - first)
    return offsets


@examples(100)
@given(st.data())
def test_the_skyline_is_filled_from_below(data: st.DataObject) -> None:
    """The segments and their search tree against one height for each section."""
    problem = data.draw(problems(alignments=True, huge=True))
    order = data.draw(orders(problem))
    offsets = skyline(problem, order)
    assert offsets.tolist() == fill_slowly(problem, order.tolist())
    assert_valid(offsets, problem)


@examples(60)
@given(st.integers(0, 2**32 - 1), st.integers(30, 80))
def test_a_longer_skyline(seed: int, count: int) -> None:
    """The same with so many buffers that segments join and the tree has several levels."""
    random = np.random.default_rng(seed)
    lower = random.integers(0, 60, count)
    upper = lower + random.integers(1, 15, count)
    size, alignment = random.integers(0, 20, count), random.choice([1, 1, 4, 6], count)
    problem = Problem.from_columns(lower, upper, size, alignment=alignment)
    order = random.permutation(count)
    assert skyline(problem, order).tolist() == fill_slowly(problem, order.tolist())


def test_equal_sizes_by_start_reach_the_load() -> None:
    """Interval graphs are coloured greedily by start: the guarantee of `linear-scan`."""

    @examples(60)
    @given(problems(max_buffers=15, zero_sizes=False))
    def check(problem: Problem) -> None:
        equal = Problem.from_columns(problem.lower, problem.upper, [16] * len(problem))
        p = plan(equal, "linear-scan")
        assert p.peak == equal.load == peak(equal, p.offsets)

    check()

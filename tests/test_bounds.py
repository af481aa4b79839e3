"""Lower bounds: never above the optimum, and each with a witness that can be checked."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa import Buffer, Problem, plan
from dsa.bounds import Bound, Reachable, lower_bound
from dsa.kernels.ranges import cover_max, range_max
from dsa.testing import optimum, problems
from tests.shared import examples


@examples(80)
@given(problems(max_buffers=6, alignments=True, pins=True, huge=True))
def test_no_plan_is_below_the_bound(problem: Problem) -> None:
    """The bound lies between the load and the optimum."""
    assert problem.load <= lower_bound(problem).value <= optimum(problem)


def claimed(problem: Problem, bound: Bound) -> int:
    """What the witness of a bound adds up to."""
    rows = [problem[problem.index(id)] for id in bound.ids]
    if bound.kind == "pin":
        return (rows[0].offset or 0) + rows[0].size
    if bound.kind == "packing":
        return min(map(stacked, permutations(rows)))
    grid = math.gcd(*(row.alignment for row in rows)) if bound.kind == "aligned load" else 1
    rounded = [-(-row.size // grid) * grid for row in rows]
    paddings = [up - row.size for up, row in zip(rounded, rows, strict=True)]
    return sum(rounded) - max(paddings, default=0)  # the topmost needs no padding


def stacked(rows: tuple[Buffer, ...]) -> int:
    """The top of buffers on one another, in this order."""
    top = 0
    for row in rows:
        top += -top % row.alignment + row.size
    return top


@examples(80)
@given(problems(max_buffers=8, alignments=True, pins=True, huge=True), st.sampled_from([1, 4, 6]))
def test_the_witness_adds_up_to_the_bound(problem: Problem, every: int) -> None:
    """Whoever doubts the bound can add up the buffers it names at the step it names."""
    aligned = Problem([Buffer(b.lower, b.upper, b.size, id=b.id) for b in problem], alignment=every)
    for case in (problem, aligned):
        bound = lower_bound(case)
        rows = [case[case.index(id)] for id in bound.ids]
        assert bound.kind in {"empty", "load", "aligned load", "packing", "pin"}
        assert bound.value <= claimed(case, bound)
        assert bound.kind == "aligned load" or bound.value == claimed(case, bound)
        assert all(row.size and row.lower <= (bound.step or 0) < row.upper for row in rows)


def beside(*kinds: tuple[int, int]) -> list[Buffer]:
    """Buffers of a size and an alignment each, all live at step 0."""
    return [Buffer(0, 1, size, alignment=alignment) for size, alignment in kinds]


@pytest.mark.parametrize(
    ("rows", "value", "kind"),
    [
        # The three that lie at multiples of 4 decide, whatever is in the gaps.
        (beside((1, 4), (1, 4), (1, 4), (1, 2)), 9, "aligned load"),
        # At 0, 1 and 4, not 0, 1 and 2.
        (beside((1, 1), (1, 4), (1, 6)), 5, "packing"),
        (beside((1, 1), (2, 4), (5, 6)), 10, "packing"),
        (beside(*[(7, 6)] * 20, *[(5, 4)] * 20), 355, "packing"),
        # Multiples of all alignments go to the bottom: no order needs more than the load.
        (beside((12, 1), (12, 4), (12, 6), (5, 4)), 41, "load"),
    ],
)
def test_mixed_alignments(rows: list[Buffer], value: int, kind: str) -> None:
    """A section of mixed alignments needs what its best order needs, and a plan reaches it."""
    bound = lower_bound(Problem(rows))
    assert (bound.value, bound.kind) == (value, kind)
    assert plan(rows, "exact", nodes=1000).peak == value


def test_too_many_orders_are_not_looked_at() -> None:
    """Sixty different buffers: the bound says what is known without."""
    rows = beside(*[(2 * i + 1, 2 + i % 3) for i in range(60)])
    assert lower_bound(Problem(rows)).kind in {"load", "aligned load"}


@pytest.mark.parametrize(
    ("rows", "alignment", "bound"),
    [
        ([], 1, Bound(0, "empty")),
        ([(0, 4, 0)], 16, Bound(0, "empty")),
        ([Buffer(0, 4, 0, offset=64)], 1, Bound(0, "empty")),
        ([(0, 2, 60), (1, 3, 50)], 1, Bound(110, "load", 1, (0, 1))),
        ([(0, 2, 60), (2, 3, 70)], 1, Bound(70, "load", 2, (1,))),
        ([(0, 2, 50), (1, 3, 50), (2, 4, 50)], 32, Bound(114, "aligned load", 1, (0, 1))),
        # Padding may move the bound to another step: 33 + 33 + 1 against 3 x 32 + 1.
        ([(0, 1, 67), (1, 2, 33), (1, 2, 33), (1, 2, 1)], 32, Bound(129, "aligned load", 1, None)),  # type: ignore[arg-type]
        ([(0, 2, 64), (1, 3, 64)], 32, Bound(128, "load", 1, (0, 1))),
        # Rounding 3 up to 4 would give 8, but 4 at 0 and 3 at 4 need 7.
        ([Buffer(0, 2, 3), Buffer(0, 2, 4, alignment=4)], 1, Bound(7, "load", 0, (0, 1))),
        ([Buffer(0, 2, 8, offset=90), Buffer(1, 3, 9)], 1, Bound(98, "pin", 0, (0,))),
        ([Buffer(0, 2, 8, offset=0), Buffer(0, 2, 9)], 1, Bound(17, "load", 0, (0, 1))),
    ],
)
def test_bounds_with_their_reasons(rows: list[Buffer], alignment: int, bound: Bound) -> None:
    """Known problems give the bound, its kind, step and ids; of equal ones the load is named."""
    found = lower_bound(Problem(rows, alignment=alignment))
    expected = (bound.value, bound.kind, bound.step, bound.ids or found.ids)
    assert (found.value, found.kind, found.step, found.ids) == expected


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (Bound(0, "empty"), "empty"),
        (Bound(8, "load", 3, ("a",)), "load at step 3 (1 buffer)"),
        (Bound(9, "aligned load", -1, ("a", "b")), "aligned load at step -1 (2 buffers)"),
        (Bound(9, "packing", 0, ("a", "b")), "packing at step 0 (2 buffers)"),
        (Bound(9, "pin", 2, ("a",)), "pin of buffer 'a'"),
        (Bound(9, "search"), "search"),
    ],
)
def test_bounds_in_words(bound: Bound, words: str) -> None:
    """The reason of a bound in a few words, as errors and summaries use them."""
    assert str(bound) == words


# -- reachable peaks -------------------------------------------------------------------------


@examples(80)
@given(problems(max_buffers=6), st.integers(0, 40))
def test_reachable_peaks_are_sums_of_sizes(problem: Problem, value: int) -> None:
    """The next reachable peak is the next sum of some of the sizes, and the optimum is one."""
    sizes = problem.size.tolist()
    sums = {sum(some) for k in range(len(sizes) + 1) for some in combinations(sizes, k)}
    reachable = Reachable(problem, 100)
    assert reachable.above(value) == min((s for s in sums if s > value), default=value + 1)
    best = optimum(problem)
    assert best == 0 or reachable.above(best - 1) == best


@examples(100)
@given(problems(max_buffers=5, alignments=True, pins=True))
def test_no_optimum_is_skipped(problem: Problem) -> None:
    """With alignments or pins, too, the optimum is never jumped over."""
    best = optimum(problem)
    assert all(
        Reachable(problem, 500).above(value) <= best for value in range(max(best - 5, 0), best)
    )


# -- maxima over ranges ----------------------------------------------------------------------


@st.composite
def ranges(draw: st.DrawFn) -> tuple[int, list[tuple[int, int, int]]]:
    """A number of sections, and ranges of them with a value each."""
    count = draw(st.integers(1, 20))
    ends = st.tuples(st.integers(0, count), st.integers(0, count), st.integers(0, 99))
    rows = draw(st.lists(ends, max_size=12))
    return count, [(min(a, b), max(a, b), value) for a, b, value in rows]


@examples(80)
@given(ranges(), st.randoms(use_true_random=False))
def test_maxima_of_ranges(case: tuple[int, list[tuple[int, int, int]]], random: object) -> None:
    """`range_max` and `cover_max` against loops."""
    count, rows = case
    columns = np.array(rows, np.int64).reshape(-1, 3)
    start, stop, value = columns.T
    numbers = [(7 * i) % 11 for i in range(count)]
    assert range_max(np.array(numbers), start, stop).tolist() == [
        max(numbers[a:b], default=0) for a, b, _ in rows
    ]
    assert cover_max(start, stop, value, count).tolist() == [
        max((v for a, b, v in rows if a <= s < b), default=0) for s in range(count)
    ]

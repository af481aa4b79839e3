"""Periodic problems: one period stands for all trips, judged by what would happen in each."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa import Buffer, InvalidProblemError, Problem, plan, validate
from dsa.periodic import periodic
from dsa.testing import optimum
from tests.shared import examples

PERIOD = 6


@st.composite
def buffers(draw: Any, longest: int = PERIOD) -> list[Buffer]:
    """A few buffers of a period, some with a hole, in any trip."""
    rows = []
    for i in range(draw(st.integers(1, 5))):
        lower, length = draw(st.integers(-9, 9)), draw(st.integers(1, longest))
        holes = []
        if length > 2 and draw(st.booleans()):
            first = draw(st.integers(lower + 1, lower + length - 2))
            holes.append((first, draw(st.integers(first + 1, lower + length - 1))))
        rows.append(Buffer(lower, lower + length, draw(st.integers(1, 9)), id=f"b{i}", holes=holes))
    return rows


def live(buffer: Buffer, step: int) -> bool:
    """Whether a buffer, not repeated, holds its bytes at a step."""
    inside = buffer.lower <= step < buffer.upper
    return inside and not any(hole[0] <= step < hole[1] for hole in buffer.holes)


def clashes(rows: list[Buffer], offset: Any, trips: int = 4) -> list[tuple[Any, Any]]:
    """Instances of buffers that share bytes at some step, when all is repeated so many times.

    `offset` gives that of a buffer in a trip.
    """
    everything = [(row, trip) for row in rows for trip in range(trips)]
    found = []
    for (a, trip), (b, other) in combinations(everything, 2):
        p, q = offset(a.id, trip), offset(b.id, other)
        if p < q + b.size and q < p + a.size:
            steps = range(-9, PERIOD * trips + 20)
            if any(live(a, s - PERIOD * trip) and live(b, s - PERIOD * other) for s in steps):
                found.append(((a.id, trip), (b.id, other)))
    return found


@given(buffers())
@examples(60)
def test_a_plan_of_one_period_holds_in_every_trip(rows: list[Buffer]) -> None:
    """No two instances share bytes while both are live, in whatever trips they are."""
    p = plan(periodic(rows, PERIOD), "strip-packing")
    assert clashes(rows, lambda name, trip: p[name]) == []


@given(buffers(), st.data())
@examples(60)
def test_one_period_forbids_nothing_else(rows: list[Buffer], data: Any) -> None:
    """Any offsets that hold in every trip are a plan of the period, and the other way round."""
    offsets = {row.id: data.draw(st.integers(0, 12)) for row in rows}
    problem = Problem(periodic(rows, PERIOD))
    broken = validate([offsets[id] for id in problem.ids], problem)
    instances = clashes(rows, lambda name, trip: offsets[name], trips=4)
    pairs = {frozenset((a[0], b[0])) for a, b in instances}
    assert {frozenset(violation.ids) for violation in broken} == pairs


@given(buffers(longest=2 * PERIOD))
@examples(40)
def test_unrolled_trips_take_turns(rows: list[Buffer]) -> None:
    """What is live longer than a period has an offset for each trip, in turn."""
    p = plan(periodic(rows, PERIOD, unroll=2), "strip-packing")
    assert clashes(rows, lambda name, trip: p[name, trip % 2], trips=5) == []


@given(buffers())
@examples(40)
def test_bounds_hold(rows: list[Buffer]) -> None:
    """The lower bound of the period is not above its optimum."""
    problem = Problem(periodic(rows, PERIOD))
    assert plan(problem, "best-fit").lower_bound <= optimum(problem)


@given(buffers(), st.integers(-20, 20))
@examples(40)
def test_the_trip_does_not_matter(rows: list[Buffer], trips: int) -> None:
    """Lifetimes given in another trip are the same problem."""
    shift = trips * PERIOD
    later = [
        Buffer(
            *(row.lower + shift, row.upper + shift, row.size),
            id=row.id,
            holes=[(first + shift, last + shift) for first, last in row.holes],
        )
        for row in rows
    ]
    assert periodic(later, PERIOD) == periodic(rows, PERIOD)


def test_what_does_not_wrap_stays_as_it_is() -> None:
    """Within one period nothing changes; pins, alignments, ids and windows are kept."""
    rows = [Buffer(1, 4, 8, id="a", alignment=4, offset=4, holes=[(2, 3, 0, 4)]), Buffer(0, 6, 8)]
    first, second = periodic(rows, PERIOD)
    assert first == rows[0]
    assert (second.lower, second.upper, second.holes) == (0, 6, ())


def test_a_circle_needs_more_than_the_load() -> None:
    """Three lifetimes of which two meet at each step, all in pairs: the bound sees the clique."""
    p = plan(periodic([(0, 2, 8), (1, 3, 8), (2, 4, 8)], period=3))
    assert (p.peak, p.lower_bound, p.problem.load) == (24, 24, 16)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (([(0, 7, 8)], 6), InvalidProblemError, "2 instances of it are live at once.*unroll=2"),
        (([(0, 19, 8)], 6), InvalidProblemError, "4 instances of it are live at once.*unroll=4"),
        (([(0, 5, 8)], 0), InvalidProblemError, "period must be at least 1, got 0"),
        (([(0, 5, 8)], 1.5), InvalidProblemError, "period must be an integer"),
        (([(0, 0, 8)], 6), InvalidProblemError, "is empty"),
        ((Problem([(0, 5, 8)]), 6), TypeError, "give the buffers, not a Problem"),
    ],
)
def test_what_cannot_repeat_is_refused(arguments: Any, error: type[Exception], words: str) -> None:
    """The message says why, and what to do."""
    with pytest.raises(error, match=words):
        periodic(*arguments)


def test_a_pinned_buffer_is_not_unrolled() -> None:
    """Its instances could not all be where it is pinned."""
    with pytest.raises(InvalidProblemError, match="buffer 'a': pinned to offset 4, but unroll=2"):
        periodic([Buffer(0, 2, 8, id="a", offset=4)], PERIOD, unroll=2)

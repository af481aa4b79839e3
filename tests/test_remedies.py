"""What would make a problem fit: every change named is one that works."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dsa import Buffer, Constraints, InvalidProblemError, Problem, plan
from dsa.remedies import Remedy, remedies
from dsa.testing import problems


def changed(problem: Problem, remedy: Remedy) -> Problem:
    """The problem after the change."""
    rows = []
    for b in problem:
        lower, upper, size = b.lower, b.upper, b.size
        if b.id == remedy.id:
            if remedy.change == "drop":
                continue
            assert remedy.value is not None
            size = remedy.value if remedy.change == "shrink" else size
            upper = remedy.value if remedy.change == "end" else upper
            lower = remedy.value if remedy.change == "begin" else lower
        rows.append(Buffer(lower, upper, size, id=b.id, alignment=b.alignment, offset=b.offset))
    return Problem(rows)


@given(problem=problems(max_buffers=6, alignments=True, pins=True), less=st.integers(1, 3))
@settings(max_examples=50, deadline=None)
def test_each_change_works(problem: Problem, less: int) -> None:
    """After any one of them an exact solver finds a plan that fits; none does before."""
    problem = problem.with_capacity(None)
    capacity = plan(problem, "exact").peak - less
    assume(capacity >= 0)
    for remedy in remedies(problem, capacity):
        fits = plan(changed(problem, remedy), "exact", capacity=capacity)
        assert fits.peak <= remedy.peak <= capacity


def test_the_least_change_is_named() -> None:
    """Two buffers that meet in two steps: either goes, or one makes room for the other."""
    rows = [Buffer(0, 4, 60, id="x"), Buffer(2, 6, 50, id="y")]
    assert list(map(str, remedies(rows, 100))) == [
        "drop or spill buffer 'x' (peak 50 B)",
        "shrink buffer 'x' to 50 B (peak 100 B)",
        "end buffer 'x' at step 2 (peak 60 B)",
        "drop or spill buffer 'y' (peak 60 B)",
        "shrink buffer 'y' to 40 B (peak 100 B)",
        "begin buffer 'y' at step 4 (peak 60 B)",
    ]


def test_where_one_change_is_not_enough_none_is_named() -> None:
    """Three too many by two buffers each."""
    assert remedies([(0, 1, 60)] * 4, 100) == ()


def test_constraints_count() -> None:
    """Buffers that are to be apart are too large together, though never live at once."""
    rows = [Buffer(0, 1, 60, id="a"), Buffer(1, 2, 60, id="b")]
    found = remedies(rows, 100, constraints=Constraints(apart=[("a", "b")]))
    assert [(r.change, r.id, r.value) for r in found] == [
        ("drop", "a", None),
        ("shrink", "a", 40),
        ("drop", "b", None),
        ("shrink", "b", 40),
    ]


def test_tail_padding_counts() -> None:
    """What is missing is missing beside the padding."""
    rows = [Buffer(0, 1, 60, id="a"), Buffer(0, 1, 60, id="b")]
    found = remedies(rows, 124, constraints=Constraints(tail_padding=8))
    assert [(r.change, r.id, r.value) for r in found if r.change == "shrink"] == [
        ("shrink", "a", 56),
        ("shrink", "b", 56),
    ]


def test_what_fits_needs_no_remedy() -> None:
    """The error says so."""
    with pytest.raises(InvalidProblemError, match="nothing to explain"):
        remedies([(0, 1, 60)], 100)

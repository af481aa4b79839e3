"""`explain_infeasible`: buffers that do not fit, each of which is needed."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dsa import (
    Buffer,
    CapacityError,
    Constraints,
    InvalidProblemError,
    Problem,
    explain_infeasible,
)
from dsa.explain import Explanation
from dsa.proof import check as check_proof
from dsa.solvers import FEATURES
from dsa.testing import optimum as reference_optimum
from dsa.testing import problems
from tests.shared import examples

ROWS = [(0, 1, 2), (0, 2, 2), (1, 3, 1), (1, 4, 1), (2, 4, 1), (3, 5, 2), (4, 5, 2)]


def test_too_much_load() -> None:
    """The fewest buffers live at one step that are too large together, and the first such step."""
    rows = [(0, 2, 30), (0, 2, 40), (1, 3, 50), (2, 5, 60), (5, 6, 40), (5, 6, 60), (5, 6, 1)]
    assert explain_infeasible(rows, 99) == Explanation((2, 3), 99, 110, "load", 2)
    assert explain_infeasible(rows, 110) == Explanation((0, 1, 2), 110, 120, "load", 1)


def test_a_pin_is_enough() -> None:
    """Too much load is no reason to name three buffers where one is pinned too high."""
    rows = [Buffer(4, 7, 1, id="a"), Buffer(4, 6, 4, id="b"), Buffer(3, 5, 3, id="c", offset=6)]
    assert explain_infeasible(rows, 7) == Explanation(("c",), 7, 9, "pin", 3)


def test_an_infeasible_packing_among_others() -> None:
    """The seven buffers that need five bytes are found among others; the proof is of them."""
    others = [(5, 9, 4), (9, 12, 1), (9, 12, 2), (11, 14, 1)]
    named = [Buffer(*row, id=f"b{i}") for i, row in enumerate([*others, *ROWS])]
    found = explain_infeasible(named, 4)
    assert found.ids == tuple(f"b{i}" for i in range(4, 11))
    assert (found.kind, found.step, found.lower_bound) == ("search", None, 5)
    assert found.irreducible
    assert found.proof is not None
    assert set(found.proof.ids) == set(found.ids)
    assert check_proof(Problem(named), found.proof) == 5


@settings(max_examples=100)
@given(problem=problems(max_buffers=7, alignments=True, pins=True), less=st.integers(1, 3))
def test_none_can_be_spared(problem: Problem, less: int) -> None:
    """The buffers named do not fit, and they do without any one of them."""
    capacity = reference_optimum(problem) - less
    assume(capacity >= 0)
    found = explain_infeasible(problem, capacity)
    members = [problem[problem.index(id)] for id in found.ids]
    assert capacity < found.lower_bound <= reference_optimum(Problem(members))
    assert found.irreducible
    for i in range(len(members)):
        assert reference_optimum(Problem(members[:i] + members[i + 1 :])) <= capacity


KINDS = sorted(set(FEATURES) & {field.name for field in fields(Constraints)})


@pytest.mark.parametrize("kinds", [*([kind] for kind in KINDS), ["holes"], [*KINDS, "holes"]])
def test_none_can_be_spared_with_constraints(kinds: list[str]) -> None:
    """With each kind of constraint, and all of them mixed, against every plan there is."""
    holes = "holes" in kinds
    constraints = set(kinds) - {"holes"}
    drawn = problems(
        max_buffers=5, alignments=True, pins=True, holes=holes, constraints=constraints
    )

    @examples(10)
    @given(problem=drawn, less=st.integers(1, 3))
    def check(problem: Problem, less: int) -> None:
        problem = problem.with_capacity(None)
        capacity = reference_optimum(problem) - less
        assume(capacity >= 0)
        found = explain_infeasible(problem, capacity)
        positions = np.array([problem.index(id) for id in found.ids])
        members = problem.select(positions)
        assert capacity < found.lower_bound <= reference_optimum(members)
        assert found.irreducible
        for i in range(len(positions)):
            assert reference_optimum(problem.select(np.delete(positions, i))) <= capacity
        if found.proof is not None:
            assert capacity < check_proof(members, found.proof) <= found.lower_bound

    check()


SIX = [Buffer(i, i + 2, 8, id=id) for i, id in enumerate("abcdef")]


@pytest.mark.parametrize(
    ("rules", "capacity", "ids", "least"),
    [
        ({"apart": [("a", "c"), ("b", "c")]}, 23, "abc", 24),
        ({"aliases": [("c", "d", 4), ("d", "f", 8)]}, 19, "def", 24),
        ({"relative": [("b", "e", 40)]}, 47, "be", 48),
        ({"reserved": [(4, 12)]}, 27, "de", 28),
        ({"reserved": [(4, 12)]}, 12, "f", 20),
        ({"chunk": 12}, 19, "de", 20),
        ({"exclusive": [("a", "b"), ("c", "d")]}, 15, "de", 16),
        ({"in_place": [("a", "b"), ("d", "e")]}, 15, "ef", 16),
        ({"tail_padding": 5}, 20, "ab", 16),
    ],
)
def test_what_constraints_make_too_large(
    rules: dict[str, Any], capacity: int, ids: str, least: int
) -> None:
    """Few buffers, and what they need, none of which can be spared."""
    found = explain_infeasible(SIX, capacity, constraints=Constraints(**rules))
    assert ("".join(map(str, found.ids)), found.lower_bound) == (ids, least)
    assert found.irreducible


def test_what_fits_needs_no_explanation() -> None:
    """The error says that a plan fits."""
    with pytest.raises(InvalidProblemError, match="nothing to explain: a plan fits into 5 B"):
        explain_infeasible(ROWS, 5)


def test_what_cannot_be_told_is_not_claimed() -> None:
    """Without a proof for all buffers there is no explanation, but the best plan in an error."""
    with pytest.raises(CapacityError) as caught:
        explain_infeasible(ROWS, 4, nodes=1)
    assert caught.value.plan.peak == 5


def test_a_capacity_is_needed() -> None:
    """A capacity that is no number of bytes is refused; the problem's own does not count."""
    with pytest.raises(InvalidProblemError, match="capacity"):
        explain_infeasible(ROWS, -1)
    assert explain_infeasible(Problem(ROWS, capacity=100), 3).capacity == 3


@pytest.mark.parametrize(
    ("rows", "capacity", "text"),
    [
        ([(0, 1, 8)], 7, "1 buffer does not fit into 7 B; it needs 8 B (load at step 0)"),
        (
            ROWS,
            3,
            "2 buffers do not fit into 3 B, none of which can be spared; they need 4 B (load "
            "at step 0)",
        ),
        (
            Problem(ROWS, constraints=Constraints(tail_padding=2)),
            5,
            "2 buffers do not fit into 5 B, none of which can be spared; they need 4 B and 2 B of "
            "tail padding (load at step 0)",
        ),
    ],
)
def test_in_words(rows: Any, capacity: int, text: str) -> None:
    """One line says how many, why, and how much they need."""
    assert str(explain_infeasible(rows, capacity)) == text

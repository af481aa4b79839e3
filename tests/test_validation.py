"""The validator against the definition, and against one planted fault of each kind."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa import (
    Buffer,
    Constraints,
    InvalidPlanError,
    InvalidProblemError,
    Plan,
    Problem,
    plan,
    validate,
)
from dsa.testing import assert_valid, problems
from tests import oracle
from tests.shared import examples

# -- against the definition ------------------------------------------------------------------


@st.composite
def planned(draw: st.DrawFn) -> tuple[Problem, list[int]]:
    """A problem and offsets for it, so crowded that most rules are broken in most examples."""
    problem = draw(problems(max_buffers=10, alignments=True, pins=True))
    highest = draw(st.sampled_from([6, 40, 200]))
    offset = st.integers(-2, highest)
    offsets = draw(st.lists(offset, min_size=len(problem), max_size=len(problem)))
    capacity = draw(st.none() | st.integers(0, highest))
    return problem.with_capacity(capacity), offsets


def found(problem: Problem, offsets: Any) -> set[tuple[str, frozenset[int]]]:
    """Kind of each violation and the positions of its buffers; none may be listed twice."""
    violations = validate(offsets, problem)
    result = {(v.kind, frozenset(map(problem.index, v.ids))) for v in violations}
    assert len(result) == len(violations)
    return result


@examples(250)
@given(planned())
def test_every_broken_rule_is_found_and_no_other(case: tuple[Problem, list[int]]) -> None:
    """On plans broken at random the violations are those of the O(n^2) definition."""
    problem, offsets = case
    assert found(problem, offsets) == oracle.broken_rules(problem, offsets)


@examples(100)
@given(planned())
def test_overlaps_come_with_the_steps_and_bytes_shared(case: tuple[Problem, list[int]]) -> None:
    """The witness of an overlap is the intersection of the two rectangles, and in the words."""
    problem, offsets = case
    for violation in validate(offsets, problem):
        if violation.kind != "overlap":
            continue
        i, j = map(problem.index, violation.ids)
        a, b = problem[i], problem[j]
        assert violation.steps == (max(a.lower, b.lower), min(a.upper, b.upper))
        ends = offsets[i] + a.size, offsets[j] + b.size
        assert violation.bytes == (max(offsets[i], offsets[j]), min(ends))
        assert i < j
        assert violation.bytes is not None
        for witness in (*violation.ids, *violation.steps, *violation.bytes):
            assert str(witness) in violation.message


@examples(80)
@given(problems(alignments=True, pins=True, huge=True), st.data())
def test_a_valid_plan_with_one_buffer_moved(problem: Problem, data: st.DataObject) -> None:
    """A plan that holds is passed, and judged by the definition once a buffer was moved."""
    offsets = list(plan(problem, solver="greedy-by-size").offsets)
    assert found(problem, offsets) == oracle.broken_rules(problem, offsets) == set()
    if offsets:
        i = data.draw(st.integers(0, len(offsets) - 1))
        offsets[i] = data.draw(st.sampled_from([0, *offsets]))
        assert found(problem, offsets) == oracle.broken_rules(problem, offsets)


@pytest.mark.parametrize("last", range(4))
def test_every_rectangle_is_looked_at(last: int) -> None:
    """Two equal rectangles overlap wherever they stand in the list, also at its end.

    The validator of rectpack stops before the last rectangle and passes two identical ones.
    """
    rows = [(10 * i, 10 * i + 5, 8) for i in range(4)]
    rows[last] = rows[last - 1]
    (violation,) = validate([0] * 4, rows)
    assert set(violation.ids) == {last, (last - 1) % 4}


@pytest.mark.parametrize(
    ("rows", "offsets"),
    [
        ([(0, 3, 8), (3, 6, 8)], [0, 0]),  # one ends where the other starts
        ([(3, 6, 8), (0, 3, 8)], [0, 0]),
        ([(0, 3, 8), (0, 3, 8)], [0, 8]),  # one lies on the other
        ([(0, 3, 8), (0, 3, 8)], [8, 0]),
        ([(0, 3, 8), (3, 6, 8), (0, 6, 2)], [0, 0, 8]),  # a corner
        ([(0, 9, 8), (2, 3, 0)], [0, 4]),  # size 0 inside another
        ([(2, 3, 0), (2, 3, 0)], [4, 4]),
    ],
)
def test_rectangles_may_touch(rows: list[tuple[int, int, int]], offsets: list[int]) -> None:
    """Neighbours in steps or bytes do not overlap, nor does what has no size."""
    assert validate(offsets, rows) == ()


@pytest.mark.parametrize(
    ("rows", "offsets", "steps", "bytes"),
    [
        ([(0, 3, 8), (2, 6, 8)], [0, 7], (2, 3), (7, 8)),  # one byte, one step
        ([(0, 9, 9), (4, 5, 1)], [0, 4], (4, 5), (4, 5)),  # inside
        ([(4, 5, 1), (0, 9, 9)], [4, 0], (4, 5), (4, 5)),
        ([(0, 9, 1), (4, 5, 9)], [4, 0], (4, 5), (4, 5)),  # across
        ([(-5, 2**60, 2**60), (0, 1, 2**59)], [0, 2**60 - 1], (0, 1), (2**60 - 1, 2**60)),
    ],
)
def test_rectangles_that_overlap(
    rows: list[tuple[int, int, int]],
    offsets: list[int],
    steps: tuple[int, int],
    bytes: tuple[int, int],
) -> None:
    """Any shared byte in any shared step is an overlap, with exactly those as witness."""
    (violation,) = validate(offsets, rows)
    assert (violation.kind, violation.ids) == ("overlap", (0, 1))
    assert (violation.steps, violation.bytes) == (steps, bytes)


# -- one fault of each kind ------------------------------------------------------------------

PROBLEM = Problem(
    [
        Buffer(0, 4, 8, id="a"),
        Buffer(2, 6, 8, id="b", alignment=8),
        Buffer(4, 9, 8, id="c"),
        Buffer(0, 9, 16, id="pin", offset=32),
        Buffer(3, 5, 0, id="empty", alignment=4),
    ],
    capacity=48,
)
GOOD = {"a": 0, "b": 8, "c": 0, "pin": 32, "empty": 0}

# What is changed in GOOD; then kind, ids, steps, bytes and words of the one violation.
FAULTS: list[tuple[dict[str, Any], tuple[Any, ...]]] = [
    (
        {"a": 8},
        ("overlap", ("a", "b"), (2, 4), (8, 16), "'a' and 'b' share bytes [8, 16) in steps [2, 4)"),
    ),
    (
        {"c": 15},
        ("overlap", ("b", "c"), (4, 6), (15, 16), "'b' and 'c' share bytes [15, 16) in steps"),
    ),
    (
        {"a": 29},
        ("overlap", ("a", "pin"), (0, 4), (32, 37), "'a' and 'pin' share bytes [32, 37)"),
    ),
    ({"b": 12}, ("misaligned", ("b",), None, None, "'b' has offset 12, no multiple of its align")),
    ({"empty": 2}, ("misaligned", ("empty",), None, None, "'empty' has offset 2, no multiple of")),
    ({"pin": 31}, ("moved pin", ("pin",), None, None, "'pin' is pinned to 32, not 31")),
    (
        {"c": 63},
        ("over capacity", ("c",), None, (63, 71), "'c' ends at 71, 23 bytes over 48"),
    ),
    ({"b": 48}, ("over capacity", ("b",), None, (48, 56), "'b' ends at 56, 8 bytes over 48")),
    ({"c": -8}, ("negative", ("c",), None, None, "'c' has offset -8")),
    ({"empty": -4}, ("negative", ("empty",), None, None, "'empty' has offset -4")),
    ({"c": None}, ("missing", ("c",), None, None, "'c' has offset None")),
    ({"zz": 0}, ("extra", ("zz",), None, None, "offset for 'zz', which is no buffer")),
    ({"zz": None}, ("extra", ("zz",), None, None, "offset for 'zz', which is no buffer")),
    ({"c": 0.0}, ("not an integer", ("c",), None, None, "'c' has offset 0.0")),
    ({"c": float("nan")}, ("not an integer", ("c",), None, None, "'c' has offset nan")),
    ({"c": "0"}, ("not an integer", ("c",), None, None, "'c' has offset '0'")),
    ({"c": False}, ("not an integer", ("c",), None, None, "'c' has offset False")),
    (
        {"c": np.bool_(False)},
        ("not an integer", ("c",), None, None, f"'c' has offset {np.bool_(False)!r}"),
    ),
    ({"c": 2**62}, ("over capacity", ("c",), None, None, "'c' has offset 4611686018427387904")),
    ({"c": 10**30}, ("over capacity", ("c",), None, None, f"'c' has offset {10**30}")),
    ({"c": -(2**62)}, ("negative", ("c",), None, None, "'c' has offset -4611686018427387904")),
    ({"c": -(10**30)}, ("negative", ("c",), None, None, f"'c' has offset {-(10**30)}")),
]


def test_the_plan_without_a_fault_is_valid() -> None:
    """The plan into which faults are planted breaks no rule."""
    assert validate(GOOD, PROBLEM) == ()


@pytest.mark.parametrize(("change", "expected"), FAULTS, ids=lambda value: str(value)[:40])
def test_a_planted_fault_is_found_alone(change: dict[str, Any], expected: tuple[Any, ...]) -> None:
    """One fault gives one violation: its kind, buffers, witness and words."""
    (violation,) = validate(GOOD | change, PROBLEM)
    kind, ids, steps, bytes, words = expected
    assert (violation.kind, violation.ids) == (kind, ids)
    assert (violation.steps, violation.bytes) == (steps, bytes)
    assert words in violation.message
    assert str(violation) == f"{kind}: {violation.message}"


@pytest.mark.parametrize("id", GOOD)
def test_a_missing_offset_is_found(id: str) -> None:
    """A mapping that lacks a buffer is no plan."""
    without = {key: value for key, value in GOOD.items() if key != id}
    (violation,) = validate(without, PROBLEM)
    assert (violation.kind, violation.ids) == ("missing", (id,))
    assert violation.message == f"buffer {id!r} has no offset"


def test_faults_of_all_kinds_are_found_together() -> None:
    """One fault does not hide another, not even in the same buffer."""
    offsets = {"a": 44, "b": -4, "c": "x", "pin": 33, "zz": 1}
    assert [(v.kind, *v.ids) for v in validate(offsets, PROBLEM)] == [
        ("missing", "empty"),
        ("extra", "zz"),
        ("not an integer", "c"),
        ("negative", "b"),
        ("misaligned", "b"),
        ("moved pin", "pin"),
        ("over capacity", "a"),
        ("over capacity", "pin"),
        ("overlap", "a", "pin"),
    ]


def test_capacity_is_that_of_the_problem_or_another() -> None:
    """A capacity given to `validate` replaces that of the problem."""
    assert validate([0, 8], [(0, 2, 8), (0, 2, 8)]) == ()
    assert validate([0, 8], [(0, 2, 8), (0, 2, 8)], capacity=16) == ()
    (violation,) = validate([0, 8], [(0, 2, 8), (0, 2, 8)], capacity=15)
    assert (violation.kind, violation.bytes) == ("over capacity", (15, 16))
    assert validate(GOOD, PROBLEM, capacity=47)[0].kind == "over capacity"
    assert validate([0], Problem([(0, 1, 8)], capacity=2**80)) == ()
    assert validate([8], Problem([(0, 1, 0)], capacity=4)) == ()  # no bytes, so none over


# -- forms of a plan -------------------------------------------------------------------------

LIST = list(GOOD.values())


@pytest.mark.parametrize(
    "offsets",
    [
        LIST,
        tuple(LIST),
        np.array(LIST),
        np.array(LIST, np.uint8),
        np.array(LIST, object),
        [np.int32(value) for value in LIST],
        GOOD,
        dict(reversed(GOOD.items())),
        OrderedDict(GOOD),
        MappingProxyType(GOOD),
    ],
    ids=lambda value: type(value).__name__,
)
def test_offsets_may_come_in_any_form(offsets: Any) -> None:
    """A sequence or an array in the order of the buffers, or a mapping from id in any order."""
    assert validate(offsets, PROBLEM) == ()
    assert validate(offsets, list(PROBLEM), capacity=48) == ()


def test_sequences_too_short_or_too_long() -> None:
    """What has no partner at the end of a sequence is named: a buffer's id or a position."""
    short, long = validate(LIST[:3], PROBLEM), validate([*LIST, 4, 5], PROBLEM)
    assert [(v.kind, v.ids) for v in short] == [("missing", ("pin",)), ("missing", ("empty",))]
    assert [(v.kind, v.ids) for v in long] == [("extra", (5,)), ("extra", (6,))]
    assert [v.kind for v in validate([], [(0, 1, 8)])] == ["missing"]
    assert validate([], []) == ()


def test_an_array_of_another_shape_or_type_is_no_plan() -> None:
    """Floats and rows of offsets are not integers."""
    two = [(0, 1, 8), (2, 3, 8)]
    assert [v.kind for v in validate(np.zeros(2), two)] == ["not an integer"] * 2
    assert [v.kind for v in validate(np.zeros((2, 1), int), two)] == ["not an integer"] * 2


def test_offsets_alone_cannot_be_judged() -> None:
    """Without a `Plan` the intervals are needed."""
    for offsets in ([0], {"a": 0}, np.array([0])):
        with pytest.raises(TypeError, match="needs the intervals"):
            validate(offsets)


@pytest.mark.parametrize(
    "offsets",
    [5, None, {0, 8}, iter([0, 8]), b"ab", bytearray(2), "ab", np.array(0), PROBLEM],
    ids=["int", "None", "set", "iterator", "bytes", "bytearray", "text", "0-d", "problem"],
)
@pytest.mark.parametrize("intervals", [None, [(0, 2, 8), (1, 4, 8)]], ids=["alone", "beside"])
def test_what_holds_no_offsets_cannot_be_judged(offsets: Any, intervals: Any) -> None:
    """What is neither a plan, nor a mapping, nor offsets in order is a mistake of the caller."""
    words = "takes a Plan, a mapping from id to offset, or offsets in the order of the buffers"
    with pytest.raises(TypeError, match=rf"validate\(\) {words}, not {type(offsets).__name__}"):
        validate(offsets, intervals)


def test_every_sequence_of_offsets_is_judged() -> None:
    """Offsets come as a list, a tuple, a range or an array."""
    for offsets in ([0, 8], (0, 8), range(0, 16, 8), np.array([0, 8])):
        assert validate(offsets, [(0, 2, 8), (1, 4, 8)]) == ()


def test_the_problem_is_checked_too() -> None:
    """Offsets for something that is no problem are not judged but refused."""
    with pytest.raises(InvalidProblemError, match="lifetime"):
        validate([0], [(3, 3, 8)])


# -- a plan against other lifetimes ----------------------------------------------------------


def other(**changes: dict[str, Any]) -> list[Buffer]:
    """The buffers a and b, with some fields changed."""
    rows = {"a": Buffer(0, 2, 8, id="a"), "b": Buffer(2, 4, 8, id="b")}
    return [replace(row, **changes.get(id, {})) for id, row in rows.items()]


def test_a_plan_is_judged_by_its_own_problem() -> None:
    """A `Plan` brings the problem it was made for."""
    assert validate(plan(other())) == plan(other()).validate() == ()


@pytest.mark.parametrize(
    ("rows", "kinds"),
    [
        (other(), []),
        (other()[::-1], []),
        (other(b={"lower": 1}), ["overlap"]),
        (other(b={"lower": 1})[::-1], ["overlap"]),
        (other(a={"upper": 3}), ["overlap"]),
        (other(a={"size": 80}, b={"size": 80}), []),
        (other(b={"offset": 8}), ["moved pin"]),
        (other(b={"id": "c"}), ["missing", "extra"]),
        (other()[:1], ["extra"]),
        ([*other(), Buffer(9, 10, 8, id="c")], ["missing"]),
    ],
)
def test_a_plan_is_judged_by_other_lifetimes(rows: list[Buffer], kinds: list[str]) -> None:
    """Offsets follow the ids when a plan is checked against buffers that it was not made for."""
    made = plan(other())
    assert made.offsets == (0, 0)
    assert [v.kind for v in validate(made, rows)] == kinds
    assert [v.kind for v in made.validate(rows)] == kinds


def test_many_unknown_ids_are_reported_in_linear_time() -> None:
    """A plan for other buffers altogether is compared at once, not id by id."""
    n = 20_000
    ids = [f"other{i}" for i in range(n)]
    problem = Problem.from_columns(range(n), range(1, n + 1), [1] * n, ids=ids)
    violations = validate(dict.fromkeys(range(n), 0), problem)
    assert len(violations) == 2 * n


def test_a_hundred_thousand_buffers() -> None:
    """Large plans, valid and with one fault, are judged exactly."""
    n = 100_000
    step = np.arange(n, dtype=np.int64)
    problem = Problem.from_columns(step, step + 4, np.full(n, 8))
    offsets = 8 * (step % 4)
    assert validate(offsets, problem) == ()
    offsets[n // 2] += 1
    assert {v.ids for v in validate(offsets, problem)} == {
        (n // 2, n // 2 + 1),
        (n // 2 - 3, n // 2),
    }


# -- cases of CONSTRAINTS.md 5.9 that concern plain problems ---------------------------------

THREE = [(0, 1, 2), (1, 2, 1), (1, 2, 1)]
VELA = [Buffer(4, 9, 10_000, id="a", alignment=16), Buffer(7, 13, 2_000, id="b", alignment=16)]

JUDGED: dict[str, tuple[Any, Any, int | None, list[str]]] = {
    "mm_val_good": ([(0, 1, 2), (1, 3, 1), (2, 4, 1), (3, 5, 1)], [0, 0, 1, 0], 2, []),
    "mm_val_count": (THREE, [0, 0], 2, ["missing"]),
    "mm_val_fixed": ([*THREE[:2], Buffer(1, 2, 1, offset=0)], [0, 0, 1], 2, ["moved pin"]),
    "mm_val_neg": (THREE, [0, 0, -1], 2, ["negative"]),
    "mm_val_range": (THREE, [0, 0, 2], 2, ["over capacity"]),
    "mm_val_overlap": (THREE, [0, 0, 0], 2, ["overlap"]),
    "mm_val_align": ([(0, 1, 2), Buffer(1, 2, 1, alignment=2)], [0, 1], 2, ["misaligned"]),
    "vela_val": (VELA, {"a": 16, "b": 32}, None, ["overlap"]),
    "vela_val_ok": (VELA, {"a": 16, "b": 160_000}, None, []),
    "armnn_val_1": (
        Problem.from_closed([(0, 5, 20), (6, 10, 10), (11, 15, 15), (16, 20, 20), (21, 25, 5)]),
        [0] * 5,
        None,
        [],
    ),
    "armnn_val_2": (
        Problem.from_closed([(0, 5, 20), (0, 10, 10), (0, 15, 15), (0, 20, 20), (0, 25, 5)]),
        [0] * 5,
        None,
        ["overlap"] * 10,
    ),
    "armnn_val_3": (
        Problem.from_closed([(0, 2, 20), (0, 3, 10), (0, 5, 15), (0, 6, 20), (0, 8, 5)]),
        [0, 21, 37, 58, 79],
        None,
        [],
    ),
    "armnn misses it": (Problem.from_closed([(0, 2, 10), (1, 3, 10)]), [0, 5], None, ["overlap"]),
    "om_val_unplaced": ([(0, 1, 8), (2, 3, 8)], [0, None], None, ["missing"]),
}


@pytest.mark.parametrize("case", JUDGED)
def test_verdicts_of_other_validators(case: str) -> None:
    """Cases of MiniMalloc, Vela, ArmNN and OmniMalloc get the verdict they should."""
    problem, offsets, capacity, kinds = JUDGED[case]
    assert [v.kind for v in validate(offsets, problem, capacity=capacity)] == kinds


def test_duplicate_ids_are_no_problem() -> None:
    """om_val_dup: two buffers with one id are refused before anything is judged."""
    with pytest.raises(InvalidProblemError, match="two buffers have this id"):
        validate([0, 8], [Buffer(0, 1, 8, id="a"), Buffer(0, 1, 8, id="a")])


@pytest.mark.parametrize("peak", [1, 3, 4])
def test_a_height_must_be_exact(peak: int) -> None:
    """mm_val_height_low, mm_val_height_high: a recorded peak that is not that of the offsets."""
    data = plan(THREE).to_dict()
    assert Plan.from_dict(data).peak == 2
    with pytest.raises(InvalidPlanError, match="claims peak"):
        Plan.from_dict(data | {"peak": peak})


def pairs_apart(concurrent: bool) -> Problem:
    """Two buffers in a partial order, as a conflict graph: apart unless one precedes the other."""
    rules = Constraints(apart=[("a", "b")] if concurrent else [])
    return Problem([Buffer(0, 1, 8, id="a"), Buffer(1, 2, 8, id="b")], constraints=rules)


def two_with_holes(first: tuple[int, int], second: tuple[int, int]) -> Problem:
    """MiniMalloc's pair: live 0..9 and 5..14, each with a gap."""
    return Problem([Buffer(0, 10, 2, holes=[first]), Buffer(5, 15, 2, holes=[second])])


@pytest.mark.parametrize(
    ("problem", "kinds"),
    [
        pytest.param(two_with_holes((1, 9), (6, 14)), [], id="mm_val_gaps"),
        pytest.param(two_with_holes((1, 8), (8, 14)), [], id="mm_val_gaps_edge"),
        pytest.param(two_with_holes((1, 7), (8, 14)), ["overlap"], id="mm_val_gap_overlap"),
        pytest.param(pairs_apart(True), ["not apart"], id="om_val_vector"),
        pytest.param(pairs_apart(False), [], id="om_val_vector_ok"),
    ],
)
def test_verdicts_on_holes_and_partial_orders(problem: Problem, kinds: list[str]) -> None:
    """Both at offset 0: right only where no step, or no order, forbids it."""
    assert [v.kind for v in validate([0, 0], problem)] == kinds


# -- words -----------------------------------------------------------------------------------


def test_assert_valid_lists_every_violation() -> None:
    """The error of `assert_valid` holds all violations in words; a valid plan raises nothing."""
    assert_valid(GOOD, PROBLEM)
    assert_valid(plan(PROBLEM))
    with pytest.raises(AssertionError) as caught:
        assert_valid(GOOD | {"a": 8, "b": 12}, PROBLEM)
    assert str(caught.value).splitlines() == [
        "the plan is invalid:",
        "misaligned: buffer 'b' has offset 12, no multiple of its alignment 8",
        "overlap: buffers 'a' and 'b' share bytes [12, 16) in steps [2, 4)",
    ]

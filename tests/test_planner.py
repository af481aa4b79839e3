"""`plan()` and the `Plan` it returns: arguments, what is proven, and what is said when it fails."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given

from dsa import (
    Buffer,
    CapacityError,
    DsaError,
    InfeasibleError,
    InvalidPlanError,
    InvalidProblemError,
    Plan,
    Problem,
    SolverError,
    SolverUnavailableError,
    UnsupportedError,
    plan,
)
from dsa.bounds import Bound
from dsa.budget import Budget, Progress
from dsa.result import Solution, kebab
from dsa.solvers import Solver
from dsa.solvers.greedy import Greedy
from dsa.solvers.naive import Naive
from dsa.testing import assert_valid, problems
from tests.shared import examples

# Entry 23 of CASES.md: largest first needs 124 where 88 is enough.
ROWS = [(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)]
# Entry 29: the optimum, 112, is above the load, 96.
TIGHT = [(0, 1, 48), (0, 2, 48), (1, 3, 32), (1, 4, 16), (2, 4, 32), (3, 5, 48), (4, 5, 48)]


@dataclass(frozen=True)
class Answers(Solver):
    """Returns what it was told to."""

    offsets: Any = ()
    bound: int | None = None

    supports: ClassVar[frozenset[str]] = frozenset({"alignment", "pins"})

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        return Solution(self.offsets, self.bound)


# -- arguments -------------------------------------------------------------------------------


def test_the_signature_is_the_documented_one() -> None:
    """The names and defaults that callers rely on."""
    parameters = inspect.signature(plan).parameters.values()
    assert [(p.name, p.default) for p in parameters if p.default is not p.empty] == [
        ("solver", "auto"),
        ("capacity", None),
        ("alignment", 1),
        ("constraints", None),
        ("time_limit", None),
        ("target", None),
        ("hint", None),
        ("progress", None),
    ]
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    assert keywords == [
        *("capacity", "alignment", "constraints"),
        *("time_limit", "target", "hint", "progress"),
    ]


def test_a_name_is_shorthand_for_a_solver_object() -> None:
    """Options of a name are fields of the object; both give the same plan and the same record."""
    by_name = plan(ROWS, "greedy", order="lower", fit="first")
    by_object = plan(ROWS, Greedy(order="lower", fit="first"))
    assert by_name == by_object
    assert by_name.solver == by_object.solver == "Greedy(order='lower', fit='first')"


def test_an_option_that_the_solver_does_not_have_is_a_type_error() -> None:
    """A misspelt option is an error that lists the options there are."""
    with pytest.raises(TypeError, match=r"'greedy'.*'ordre' \(options: order, fit\)"):
        plan(ROWS, "greedy", ordre="lower")
    with pytest.raises(TypeError, match=r"pass them to Greedy\(\.\.\.\)"):
        plan(ROWS, Greedy(), order="lower")
    with pytest.raises(TypeError, match="expected a solver's name or a configured solver"):
        plan(ROWS, Greedy)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a solver's name or a configured solver"):
        plan(ROWS, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "field", "words"),
    [
        ({"capacity": -1}, "capacity", "capacity must be at least 0, got -1"),
        ({"capacity": "1MiB"}, "capacity", "capacity must be an integer, got '1MiB'"),
        ({"alignment": 0}, "alignment", "alignment must be at least 1, got 0"),
        ({"alignment": 1.5}, "alignment", "alignment must be an integer, got 1.5"),
        ({"target": -1}, "target", "target must be at least 0, got -1"),
        ({"target": 0.5}, "target", "target must be an integer, got 0.5"),
        ({"time_limit": -1}, "time_limit", "time_limit must be a number of seconds, at least 0"),
        ({"time_limit": float("nan")}, "time_limit", "at least 0, got nan"),
        ({"time_limit": True}, "time_limit", "at least 0, got True"),
        ({"time_limit": "60"}, "time_limit", "at least 0, got '60'"),
    ],
)
def test_bad_arguments_are_refused(arguments: Any, field: str, words: str) -> None:
    """Every argument is checked, and the error names it and its value."""
    with pytest.raises(InvalidProblemError) as caught:
        plan(ROWS, **arguments)
    assert words in str(caught.value)
    assert (caught.value.field, str(caught.value.value)) == (field, str(arguments[field]))


def test_bad_buffers_are_refused() -> None:
    """`plan` checks its buffers as `Problem` does."""
    with pytest.raises(InvalidProblemError, match="buffer 'x': size must be an integer") as caught:
        plan([Buffer(0, 1, 1.5, id="x")])  # type: ignore[arg-type]
    assert (caught.value.id, caught.value.field, caught.value.value) == ("x", "size", 1.5)


@pytest.mark.parametrize(
    "intervals",
    [ROWS, [Buffer(*row) for row in ROWS], np.array(ROWS), Problem(ROWS), iter(ROWS)],
    ids=lambda value: type(value).__name__,
)
def test_every_form_of_buffers_is_planned(intervals: Any) -> None:
    """What `Problem` reads, `plan` plans."""
    assert plan(intervals, "greedy-by-size").offsets == plan(ROWS, "greedy-by-size").offsets


def test_alignment_is_that_of_every_buffer() -> None:
    """The argument joins the buffers' own alignments; sizes stay as they are asked for."""
    p = plan([Buffer(0, 2, 50), Buffer(1, 3, 50, alignment=48), Buffer(2, 4, 50)], alignment=32)
    assert all(offset % 32 == 0 for offset in p.offsets)
    assert p[1] % 96 == 0
    assert p.base_alignment == 96


@pytest.mark.parametrize("rows", [[], [(0, 1, 0)], [(0, 1, 0), (0, 3, 0)]])
def test_nothing_to_place_is_optimal(rows: list[tuple[int, int, int]]) -> None:
    """No buffers, or none with a size: peak 0, bound 0, gap 0, optimal."""
    p = plan(rows)
    assert (p.peak, p.lower_bound, p.gap, p.status, p.arena_size) == (0, 0, 0.0, "optimal", 0)
    assert p.offsets == (0,) * len(rows)
    assert plan(rows, capacity=0).peak == 0
    assert str(p)
    assert p.summary()


def test_pins_of_size_0_are_kept() -> None:
    """A pinned buffer without a size stays where it is pinned and does not raise the peak."""
    p = plan([Buffer(0, 1, 0, offset=64), Buffer(0, 1, 0)])
    assert (p.offsets, p.peak) == ((64, 0), 0)


# -- target, time, progress --------------------------------------------------------------------


def test_a_target_is_good_enough() -> None:
    """The search stops at the target; a target below the bound is the bound."""
    told: list[Progress] = []
    p = plan(TIGHT, "strip-packing", target=128, progress=told.append)
    assert p.peak <= 128
    assert len(told) == 1
    assert told[0].target == 128
    assert plan(ROWS, target=0).peak == plan(ROWS).peak == 88


def test_no_time_gives_a_plan_all_the_same() -> None:
    """A time limit of 0 leaves time for one pass."""
    assert_valid(plan(TIGHT, time_limit=0))
    assert_valid(plan(TIGHT, "hill-climb", time_limit=0))


def test_progress_tells_of_better_plans() -> None:
    """Reports fall, end at the peak of the plan, and come with the time and the target."""
    told: list[Progress] = []
    p = plan(TIGHT, "hill-climb", progress=told.append)
    peaks = [report.peak for report in told]
    assert peaks == sorted(set(peaks), reverse=True)
    assert peaks[-1] == p.peak
    assert all(report.target == 96 for report in told)
    assert all(0 <= report.seconds <= p.seconds for report in told)


# -- capacity --------------------------------------------------------------------------------


def test_too_much_load_is_infeasible_without_a_search() -> None:
    """The error says by how much, when and because of which buffers, before any solver runs."""
    rows = [Buffer(0, 2, 60, id="a"), Buffer(1, 3, 50, id="b"), Buffer(5, 6, 9, id="c")]
    with pytest.raises(InfeasibleError) as caught:
        plan(rows, Answers(offsets="never looked at"), capacity=100)
    error = caught.value
    assert (error.capacity, error.lower_bound, error.short_by) == (100, 110, 10)
    assert (error.step, error.ids) == (1, ("a", "b"))
    assert str(error) == (
        "no plan fits into 100 B: every plan needs 110 B, 10 B more, "
        "because of the load at step 1 (2 buffers)"
    )
    assert plan(rows, capacity=110).peak == 110


@pytest.mark.parametrize(
    ("rows", "capacity", "bound", "words"),
    [
        ([(0, 1, 8)], 0, 8, "because of the load at step 0 (1 buffer)"),
        ([Buffer(0, 1, 8, offset=64, id="x")], 71, 72, "because of the pin of buffer 'x'"),
        ([Buffer(0, 1, 9, alignment=8)] * 2, 24, 25, "because of the aligned load at step 0"),
    ],
)
def test_every_bound_can_make_a_capacity_infeasible(
    rows: list[Buffer], capacity: int, bound: int, words: str
) -> None:
    """Load, padding and pins each prove that a capacity is too small."""
    with pytest.raises(InfeasibleError) as caught:
        plan(rows, capacity=capacity)
    assert words in str(caught.value)
    assert (caught.value.lower_bound, caught.value.short_by) == (bound, bound - capacity)
    assert plan(rows, capacity=bound).peak == bound


def test_a_search_can_prove_a_capacity_infeasible() -> None:
    """Live bytes fit, but no packing exists: proven by an exact solver, not guessed by others."""
    with pytest.raises(InfeasibleError) as caught:
        plan(TIGHT, "exact", capacity=96)
    assert (caught.value.lower_bound, caught.value.short_by) == (112, 16)
    assert caught.value.step is None
    with pytest.raises(CapacityError):
        plan(TIGHT, "greedy-by-size", capacity=96)
    assert plan(TIGHT, "exact", capacity=112).status == "optimal"


def test_a_heuristic_that_misses_the_capacity_proves_nothing() -> None:
    """The error carries the best valid plan and says that another solver may do better."""
    with pytest.raises(CapacityError) as caught:
        plan(ROWS, "greedy-by-size", capacity=100)
    error = caught.value
    assert (error.capacity, error.over_by) == (100, 24)
    assert (error.plan.peak, error.plan.lower_bound) == (124, 88)
    assert_valid(error.plan.offsets, ROWS)
    assert "the best has peak 124 B, 24 B over; 88 B of it are live at once" in str(error)
    assert not isinstance(error, InfeasibleError)
    assert plan(ROWS, "exact", capacity=100).peak <= 100


def test_capacity_is_no_objective() -> None:
    """The peak is minimised however much room there is; the plan remembers the capacity."""
    p = plan(ROWS, capacity=1000)
    assert (p.peak, p.problem.capacity) == (88, 1000)
    assert plan(Problem(ROWS, capacity=88)).peak == 88


# -- nothing is believed -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answers((0, 0)), "returned an invalid plan: 1 violations, the first is overlap: buffers"),
        (Answers((0,)), "the first is missing: buffer 1 has no offset"),
        (Answers((0, 8, 16)), "the first is extra: offset for 2"),
        (Answers((0, -8)), "the first is negative: buffer 1 has offset -8"),
        (Answers((0, 8.0)), "the first is not an integer: buffer 1 has offset 8.0"),
        (Answers((0, None)), "the first is missing: buffer 1 has offset None"),
        (Answers((0, float("nan"))), "the first is not an integer"),
        (Answers(np.array([0.0, 8.0])), "the first is not an integer"),
        (Answers((0, 8), bound=17), "claims that no plan is below 17 B, but returned one with"),
    ],
)
def test_a_wrong_answer_is_the_solvers_bug(answer: Answers, words: str) -> None:
    """What a solver returns is validated, and a false claim is noticed."""
    with pytest.raises(SolverError, match="this is a bug of the solver") as caught:
        plan([(0, 2, 8), (1, 3, 8)], answer)
    assert words in str(caught.value)
    assert "Answers(" in str(caught.value)


@pytest.mark.parametrize("offsets", [None, {0, 8}, 7])
def test_what_is_no_offsets_is_a_bug_of_the_solver(offsets: Any) -> None:
    """A solver that returns something else is blamed, not the caller."""
    with pytest.raises(SolverError, match="returned no offsets"):
        plan([(0, 2, 8), (1, 3, 8)], Answers(offsets))


def test_offsets_over_capacity_are_no_bug() -> None:
    """A valid plan that is too high is a `CapacityError`, not a violation."""
    with pytest.raises(CapacityError):
        plan([(0, 2, 8), (1, 3, 8)], Answers((0, 16)), capacity=16)


def test_optimal_is_an_equation() -> None:
    """The status follows from peak and bound; what a solver proves counts if it is higher."""
    rows = [(0, 2, 8), (1, 3, 8)]
    assert plan(rows, Answers((0, 8))).status == "optimal"
    assert plan(rows, Answers((0, 12))).status == "feasible"
    assert plan(rows, Answers((0, 12), bound=4)).bound_witness.kind == "load"
    proved = plan(rows, Answers((0, 12), bound=20))
    assert (proved.status, proved.bound_witness) == ("optimal", Bound(20, "search"))
    assert plan(rows, Answers((0, 12))).gap == 0.25


@dataclass(frozen=True)
class Plain(Naive):
    """Supports nothing beyond sizes and lifetimes."""

    supports: ClassVar[frozenset[str]] = frozenset()


@pytest.mark.parametrize(
    ("row", "feature"),
    [(Buffer(0, 1, 8, alignment=4), "alignment"), (Buffer(0, 1, 8, offset=4), "pins")],
)
def test_unsupported_features_are_refused_by_name(row: Buffer, feature: str) -> None:
    """The refusal names the feature and the solvers that have it."""
    assert plan([(0, 1, 8)], Plain()).peak == 8
    with pytest.raises(UnsupportedError) as caught:
        plan([row], Plain())
    assert str(caught.value).startswith(f"Plain cannot honour {feature}; these can: auto, ")


@dataclass(frozen=True)
class Needy(Naive):
    """Needs what nobody has."""

    requires: ClassVar[tuple[str, ...]] = ("numpy", "no_such_package", "nor_this")


def test_missing_packages_are_named() -> None:
    """A solver whose packages are missing says what to install, before it runs."""
    with pytest.raises(SolverUnavailableError) as caught:
        plan(ROWS, Needy())
    assert "Needy needs no_such_package, nor_this" in str(caught.value)
    assert "pip install no_such_package nor_this" in str(caught.value)


# -- the plan --------------------------------------------------------------------------------

PLAN = plan(
    [
        Buffer(0, 3, 8, id="a"),
        Buffer(2, 5, 8, id="b", alignment=4),
        Buffer(4, 6, 8, id="c", alignment=6),
        Buffer(0, 6, 5, id="d", offset=16),
    ],
    "greedy-by-size",
    capacity=64,
)


def test_a_plan_is_read_by_id_by_position_and_in_pairs() -> None:
    """Offsets are Python integers, whichever way they are read."""
    assert PLAN.offsets == tuple(PLAN[id] for id in "abcd")
    assert [(buffer.id, offset) for buffer, offset in PLAN] == [
        *zip("abcd", PLAN.offsets, strict=True)
    ]
    assert len(PLAN) == 4
    assert {type(offset) for offset in PLAN.offsets} == {int}
    assert type(PLAN.peak) is type(PLAN.lower_bound) is int
    with pytest.raises(KeyError):
        PLAN["z"]


def test_what_a_plan_says_of_itself() -> None:
    """Peak, arena and base alignment are apart, and the summary holds them all."""
    assert (PLAN.peak, PLAN.base_alignment, PLAN.arena_size) == (21, 12, 24)
    assert (PLAN.lower_bound, PLAN.status) == (21, "optimal")
    assert str(PLAN).startswith("4 buffers, peak 21 B, lower bound 21 B: optimal (greedy-by-size, ")
    assert repr(PLAN) == f"<Plan: {PLAN}>"
    summary = PLAN.summary()
    for words in (str(PLAN), "21 B, load at step", "24 B at an address that is a multiple of 12"):
        assert words in summary
    assert "29 B without reuse, 1 pinned" in summary
    assert PLAN.solver in summary
    assert str(plan(ROWS, "greedy-by-size")).startswith(
        "4 buffers, peak 124 B, lower bound 88 B: gap 40.9 %"
    )
    assert str(plan(ROWS[:1])).startswith("1 buffer, peak")


def test_whose_plan_it_is() -> None:
    """A solver that calls others names the one that found the plan."""
    found = Plan(
        PLAN.problem, PLAN.offsets_array, PLAN.bound_witness, "Auto()", 0.0, {"found_by": "mip"}
    )
    assert "(auto -> mip, " in str(found)
    assert [kebab(name) for name in ("Auto", "StripPacking", "GreedyBySize")] == [
        "auto",
        "strip-packing",
        "greedy-by-size",
    ]


def test_a_plan_cannot_be_changed() -> None:
    """Offsets, statistics and fields are read-only."""
    with pytest.raises(ValueError, match="read-only"):
        PLAN.offsets_array[0] = 1
    with pytest.raises(TypeError):
        PLAN.stats["x"] = 1  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        PLAN.solver = "mine"  # type: ignore[misc]


def test_plans_are_equal_if_problem_and_offsets_are() -> None:
    """Who found a plan and how long it took does not matter."""
    other = plan(PLAN.problem, Answers(PLAN.offsets))
    assert (other == PLAN, hash(other) == hash(PLAN)) == (True, True)
    assert other != plan(PLAN.problem.with_capacity(None), Answers(PLAN.offsets))
    assert PLAN.offsets != PLAN


@examples(60)
@given(problems(alignments=True, pins=True, huge=True))
def test_plans_survive_being_copied_and_written(problem: Problem) -> None:
    """Pickle, copy and JSON give an equal plan with the same record."""
    p = plan(problem, "greedy-by-size")
    written = json.loads(json.dumps(p.to_dict()))
    for again in (
        pickle.loads(pickle.dumps(p)),
        copy.deepcopy(p),
        Plan.from_dict(written),
        Plan.from_dict(written, problem),
        Plan.from_dict(written, list(problem)[::-1]),
    ):
        assert again == p
        assert again.to_dict() == p.to_dict()


def edited(**changes: Any) -> Callable[[dict[str, Any]], None]:
    """Replaces fields."""
    return lambda data: data.update(changes)


def buffer_changed(column: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Replaces a field of the first buffer."""

    def change(data: dict[str, Any]) -> None:
        data["problem"][column][0] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (edited(format="other"), "expected format 'dsa-plan' version 1, got 'other' version 1"),
        (edited(version=2), "got 'dsa-plan' version 2"),
        (lambda data: data.pop("format"), "got None version 1"),
        (lambda data: data.pop("offsets"), "the plan lacks 'offsets'"),
        (lambda data: data.pop("fingerprint"), "the plan lacks 'fingerprint'"),
        (lambda data: data.pop("problem"), "the plan lacks 'problem'"),
        (lambda data: data.pop("solver"), "the plan lacks 'solver'"),
        (lambda data: data.pop("bound_witness"), "the plan lacks 'bound_witness'"),
        (edited(offsets=None), "the plan's 'offsets' cannot be None"),
        (edited(peak="21"), "the plan's 'peak' cannot be '21'"),
        (edited(stats=[1]), "the plan's 'stats' cannot be [1]"),
        (edited(offsets=[0, 8, 0, 17]), "breaks 1 rules of its problem; the first is moved pin"),
        (edited(offsets=[0, 4, 0, 16]), "the first is overlap: buffers 'a' and 'b'"),
        (edited(offsets=[0, 8, 0]), "the first is missing: buffer 'd'"),
        (edited(offsets=[0, 8, 0, 16, 0]), "the first is extra: offset for 4"),
        (edited(offsets=[0, 8.0, 0, 16]), "the first is not an integer: buffer 'b'"),
        (edited(offsets=[0, None, 0, 16]), "the first is missing: buffer 'b' has offset None"),
        (
            edited(offsets=[0, 80, 0, 16]),
            "claims peak 21 and lower bound 21, but its offsets give peak 88",
        ),
        (edited(offsets=[0, 2**62, 0, 16]), "the first is over capacity: buffer 'b'"),
        (edited(peak=20), "claims peak 20 and lower bound 21, but its offsets give peak 21"),
        (edited(peak=22), "claims peak 22"),
        (edited(lower_bound=22), "claims peak 21 and lower bound 22"),
        (edited(lower_bound=22, bound_witness={"kind": "search"}), "lower bound 22"),
        (buffer_changed("size", 7), "its fingerprint is not that of the problem beside it"),
        (buffer_changed("lower", 1), "its fingerprint is not that of the problem beside it"),
        (buffer_changed("ids", "z"), "its fingerprint is not that of the problem beside it"),
        (edited(fingerprint="0" * 64), "was made for another problem"),
        (edited(version=True), "got 'dsa-plan' version True"),
        (edited(version=1.0), "got 'dsa-plan' version 1.0"),
        (edited(status="feasible"), "claims to be 'feasible', but peak 21 and lower bound 21"),
        (edited(lower_bound=20), "claims to be 'optimal', but peak 21 and lower bound 20"),
        (edited(status=["optimal"]), "claims to be ['optimal']"),
        (edited(status=None), "claims to be None"),
        (edited(lower_bound=-1, status="feasible"), "the plan's 'lower_bound' cannot be -1"),
        (edited(peak=True), "the plan's 'peak' cannot be True"),
        (edited(seconds=-0.5), "the plan's 'seconds' cannot be -0.5"),
        (edited(seconds=float("nan")), "the plan's 'seconds' cannot be nan"),
        (edited(seconds=float("inf")), "the plan's 'seconds' cannot be inf"),
        (edited(seconds=10**400), "the plan's 'seconds' cannot be 1000"),
        (buffer_changed("size", -1), "the plan's problem: buffer 'a': size must be at least 0"),
        (edited(problem={}), "the plan's problem: the problem lacks lower, size, upper"),
    ],
)
def test_plans_read_back_are_not_believed(
    change: Callable[[dict[str, Any]], None], words: str
) -> None:
    """Format, count, rules, peak, bound and fingerprint are checked, and the fault is named."""
    data = json.loads(json.dumps(PLAN.to_dict()))
    change(data)
    with pytest.raises(InvalidPlanError) as caught:
        Plan.from_dict(data)
    assert words in str(caught.value)


def test_a_lower_bound_that_was_stored_too_low_does_no_harm() -> None:
    """The bound is found anew; one below it was true, and so was the status beside it."""
    data = PLAN.to_dict() | {"lower_bound": 20, "status": "feasible"}
    assert (Plan.from_dict(data).lower_bound, Plan.from_dict(data).status) == (21, "optimal")


@pytest.mark.parametrize("data", [[], None, 3, "plan"])
def test_only_a_mapping_is_a_plan(data: Any) -> None:
    """What is no mapping of fields is refused as no plan."""
    with pytest.raises(InvalidPlanError, match="expected a mapping of fields, got"):
        Plan.from_dict(data)


def test_a_problem_that_is_invalid_is_not_blamed_on_the_plan() -> None:
    """The plan is well; the problem that it is wanted for has no lifetime."""
    with pytest.raises(InvalidProblemError, match=r"lifetime \[3, 3\) is empty"):
        Plan.from_dict(PLAN.to_dict(), [(3, 3, 8)])


def test_a_plan_for_another_problem_is_refused() -> None:
    """A plan that is wanted for changed buffers does not get past its fingerprint."""
    changed = [Buffer(b.lower, b.upper + (b.id == "c"), b.size, id=b.id) for b in PLAN.problem]
    with pytest.raises(InvalidPlanError, match="its fingerprint is not that of this problem"):
        Plan.from_dict(PLAN.to_dict(), changed)


def test_a_searched_bound_is_kept() -> None:
    """A bound that only a search can give is read back as it was recorded."""
    p = plan(TIGHT, "exact")
    assert (p.lower_bound, p.bound_witness.kind) == (112, "search")
    assert Plan.from_dict(json.loads(json.dumps(p.to_dict()))).lower_bound == 112


def test_the_readme_example() -> None:
    """The example on the first screen of the design."""
    p = plan(
        [
            Buffer(0, 3, 4, id="a"),
            Buffer(3, 9, 4, id="b"),
            Buffer(0, 9, 4, id="c"),
            Buffer(9, 21, 4, id="d"),
            Buffer(0, 21, 4, id="e"),
        ]
    )
    assert str(p).startswith("5 buffers, peak 12 B, lower bound 12 B: optimal (auto")
    assert isinstance(p["d"], int)


def test_no_error_is_anonymous() -> None:
    """Whatever `plan` raises on purpose can be caught as a `DsaError`."""
    for arguments in ({"capacity": 1}, {"solver": "no-such"}, {"capacity": -1}):
        with pytest.raises(DsaError):
            plan(ROWS, **arguments)


def test_a_plan_over_capacity_can_be_written_and_read_back() -> None:
    """What a CapacityError carries survives JSON, and still says that it does not fit."""
    rows = [(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)]
    with pytest.raises(CapacityError) as caught:
        plan(rows, solver="greedy-by-size", capacity=100)
    again = Plan.from_dict(caught.value.plan.to_dict())
    assert again == caught.value.plan
    assert {violation.kind for violation in again.validate()} == {"over capacity"}

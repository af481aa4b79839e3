"""Slots: vectors of other planners, the solvers against all partitions, the judge, the errors."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa import (
    Buffer,
    CapacityError,
    InfeasibleError,
    InvalidPlanError,
    InvalidProblemError,
    Problem,
    SolverError,
    UnknownSolverError,
    UnsupportedError,
    load,
    plan,
)
from dsa.budget import Budget
from dsa.slots import SlotPlan, SlotSolution, plan_slots, positional_maxima, validate_slots
from dsa.slots.mip import Mip
from dsa.slots.planner import SOLVERS
from dsa.testing import problems
from tests.oracle import conflicts, live_sets
from tests.shared import examples, needs_shared, read_table

every_solver = pytest.mark.parametrize("solver", SOLVERS)
GREEDY = [name for name in SOLVERS if name != "mip"]

# -- vectors -----------------------------------------------------------------------------------

# From CONSTRAINTS.md 5.1: slot of each buffer, size of each slot.
VECTORS: dict[tuple[str, str], tuple[list[int], list[int]]] = {
    ("gpu_chain", "greedy-by-breadth"): ([0, 1, 0, 1, 0], [64, 32]),
    ("gpu_chain", "greedy-by-size"): ([0, 1, 0, 1, 0], [64, 32]),
    ("gpu_complex", "greedy-by-breadth"): ([0, 4, 2, 1, 3, 0, 2, 3, 1], [64, 16, 8, 8, 32]),
    ("gpu_complex", "greedy-by-size"): ([1, 0, 2, 1, 3, 0, 1, 2, 0], [64, 32, 8, 8]),
}
BOUNDS = {"gpu_chain": (64, 32), "gpu_complex": (64, 32, 8, 8)}
BEST = {"gpu_chain": 96, "gpu_complex": 112, "armnn_fsrcnn": 28_569_600}


def vector(name: str) -> Problem:
    """The buffers of a vector, whose lifetimes are closed."""
    rows = [row for row in read_table("vectors/rows.csv") if row["vec"] == name]
    return Problem.from_closed(
        [tuple(int(row[c]) for c in ("lower", "upper", "size")) for row in rows]
    )


@needs_shared
@pytest.mark.parametrize(("name", "solver"), VECTORS)
def test_greedy_slots_are_those_of_the_source(name: str, solver: str) -> None:
    """Each buffer is in the slot, and each slot has the size, that TFLite's tests expect."""
    p = plan_slots(vector(name), solver)
    slots, sizes = VECTORS[name, solver]
    assert (list(p.slots), list(p.sizes)) == (slots, sizes)


# Of algorithms that there are not here: their slots hold, and have the total that they claim.
OTHERS = {
    "equality, chain": ("gpu_chain", [0, 1, 2, 3, 1], [16, 8, 64, 32]),
    "in order, chain": ("gpu_chain", [0, 1, 0, 1, 0], [64, 32]),
    "min cost flow, chain": ("gpu_chain", [0, 1, 0, 1, 0], [64, 32]),
    "equality": ("gpu_complex", [0, 1, 2, 3, 4, 5, 4, 2, 3], [32, 32, 8, 16, 8, 64]),
    "in order": ("gpu_complex", [0, 1, 0, 2, 3, 1, 3, 2, 0], [32, 64, 16, 8]),
    "min cost flow": ("gpu_complex", [0, 1, 2, 0, 3, 1, 3, 2, 0], [32, 64, 8, 8]),
}


@needs_shared
@pytest.mark.parametrize("case", OTHERS)
def test_slots_of_others_are_judged(case: str) -> None:
    """They break no rule, their slots are as large as needed, and mip needs no more."""
    name, slots, sizes = OTHERS[case]
    problem = vector(name)
    assert validate_slots(slots, problem, sizes=sizes) == ()
    assert replace(plan_slots(problem), slots=tuple(slots)).sizes == tuple(sizes)
    assert plan_slots(problem, "mip").total <= sum(sizes)


@needs_shared
@pytest.mark.parametrize("name", BOUNDS)
def test_positional_maxima_are_those_of_the_source(name: str) -> None:
    """The k-th largest size live, at most, over all steps."""
    assert positional_maxima(vector(name)) == BOUNDS[name]


@needs_shared
@pytest.mark.parametrize("name", BEST)
@pytest.mark.parametrize("solver", ["greedy-by-size", "mip"])
def test_best_totals_of_the_source(name: str, solver: str) -> None:
    """The bound is met: it is what min-cost flow and ArmNN's bins reach."""
    p = plan_slots(vector(name), solver)
    assert (p.total, p.lower_bound, p.status) == (BEST[name], BEST[name], "optimal")


def test_slots_to_offsets() -> None:
    """The vector of 5.1: offsets by laying slot upon slot."""
    sizes, slots = [16, 8, 32, 32, 4, 16], [2, 0, 2, 1, 3, 3, 1, 5]
    rows = [(10 * i, 10 * i + 1, size) for i, size in enumerate(sizes)]
    rows += [(1000 + i, 1001 + i, 1) for i in range(len(slots))]
    p = replace(plan_slots(rows), slots=(*range(len(sizes)), *slots))
    assert p.sizes == tuple(sizes)
    assert p.as_plan().offsets[len(sizes) :] == (24, 0, 24, 16, 56, 56, 16, 92)


def test_offsets_need_less_than_slots() -> None:
    """Entry 61 of CASES: two slots, where offsets find room for two buffers in one's bytes."""
    rows = [(0, 2, 49152), (2, 4, 32768), (2, 4, 16384)]
    assert plan_slots(rows, "mip").total == 65536
    assert plan(rows).peak == 49152


# -- against the definitions ---------------------------------------------------------------------


def partitions(problem: Problem) -> Iterator[list[int]]:
    """Every way to put the buffers with a size into slots, but for the slots' numbers."""
    solid = [i for i, row in enumerate(problem) if row.size]
    apart = conflicts(problem)

    def extend(slots: list[list[int]], rest: list[int]) -> Iterator[list[list[int]]]:
        if not rest:
            yield slots
            return
        i = rest[0]
        for k, members in enumerate(slots):
            if not any((j, i) in apart for j in members):
                yield from extend([*slots[:k], [*members, i], *slots[k + 1 :]], rest[1:])
        yield from extend([*slots, [i]], rest[1:])

    for groups in extend([], solid):
        slot = [0] * len(problem)
        for k, members in enumerate(groups):
            for i in members:
                slot[i] = k
        yield slot


def total(problem: Problem, slots: list[int]) -> int:
    """Sum over the slots of the largest size in each."""
    sizes = dict.fromkeys(slots, 0)
    for row, slot in zip(problem, slots, strict=True):
        sizes[slot] = max(sizes[slot], row.size)
    return sum(sizes.values())


small = problems(max_buffers=7, alignments=True)


@examples(60)
@given(small)
def test_mip_is_as_good_as_all_partitions(problem: Problem) -> None:
    """The fewest bytes of all partitions, and proven; no greedy solver has fewer."""
    best = min(total(problem, slots) for slots in partitions(problem))
    p = plan_slots(problem, "mip")
    assert (p.total, p.lower_bound, p.status) == (best, best, "optimal")
    for solver in GREEDY:
        assert plan_slots(problem, solver).total >= best


@examples(200)
@given(problems(max_buffers=20))
def test_positional_maxima_by_definition(problem: Problem) -> None:
    """Sort the sizes live at each step, take the largest of each rank."""
    rows = [
        sorted((problem[i].size for i in live), reverse=True)
        for live in live_sets(problem).values()
    ]
    ranks = max(map(len, rows), default=0)
    expected = [max(row[k] for row in rows if k < len(row)) for k in range(ranks)]
    assert positional_maxima(problem) == tuple(expected)


@pytest.mark.parametrize("solver", GREEDY)
@examples(200)
@given(problems(max_buffers=20, alignments=True, huge=True))
def test_slots_hold(solver: str, problem: Problem) -> None:
    """No rule is broken; the total is that of the definition, and not below the bound."""
    p = plan_slots(problem, solver)
    assert p.validate() == ()
    assert all(p.slots[i] != p.slots[j] for i, j in conflicts(problem))
    assert p.total == total(problem, list(p.slots)) >= p.lower_bound
    assert p.lower_bound == sum(positional_maxima(problem)) >= problem.load
    assert set(p.slots) == set(range(len(p.sizes)))


@examples(200)
@given(problems(max_buffers=20, alignments=True))
def test_slots_are_a_plan(problem: Problem) -> None:
    """Slot upon slot is a valid plan; without alignments its peak is the total."""
    p = plan_slots(problem)
    offsets = p.as_plan()
    assert offsets.validate() == ()
    assert offsets.peak >= p.total
    if "alignment" not in problem.features:
        assert offsets.peak == p.total


@pytest.mark.parametrize("solver", GREEDY)
@examples(100)
@given(problems(max_buffers=12), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(solver: str, problem: Problem, random: Any) -> None:
    """Buffers in another order, under the same ids, share slots as before."""
    named = Problem([replace(row, id=str(row.id)) for row in problem])
    order = list(range(len(named)))
    random.shuffle(order)
    shuffled = plan_slots(named.select(np.array(order, np.int64)), solver)
    p = plan_slots(named, solver)
    assert [p[id] for id in named.ids] == [shuffled[id] for id in named.ids]


# -- the exact solver ----------------------------------------------------------------------------

# The positional maxima 8 + 6 + 3 + 2 are too few; the greedy solvers need 22, the best slots 20.
ABOVE_THE_BOUND = [(2, 6, 6), (4, 8, 2), (3, 5, 7), (6, 8, 7), (5, 9, 3), (5, 9, 3), (1, 2, 8)]


def test_mip_proves_more_than_the_bound() -> None:
    """Where the positional maxima cannot be met, the search proves by how much they are missed."""
    p = plan_slots(ABOVE_THE_BOUND, "mip")
    assert (sum(positional_maxima(p.problem)), p.lower_bound, p.total) == (19, 20, 20)
    assert (p.status, str(p.bound_witness)) == ("optimal", "search")
    assert [plan_slots(ABOVE_THE_BOUND, solver).total for solver in GREEDY] == [22, 22]
    assert p.stats["backend_status"] == "optimal"


@pytest.mark.parametrize("backend", ["cbc", "highs"])
def test_backends_agree(backend: str) -> None:
    """Both prove the same total."""
    if backend == "highs":
        pytest.importorskip("highspy", reason="HiGHS is not installed")
    p = plan_slots(load("tflite-mediapipe-hand-landmark-full"), "mip", backend=backend)
    assert (p.total, p.status) == (5_406_468, "optimal")


def test_mip_within_its_limits() -> None:
    """Too many variables, or no time: the better greedy plan, and the reason."""
    p = plan_slots(ABOVE_THE_BOUND, "mip", max_variables=10)
    assert (p.total, p.lower_bound, p.status) == (22, 19, "feasible")
    assert "not started" in p.stats["backend_status"]
    assert plan_slots(ABOVE_THE_BOUND, "mip", time_limit=0).total == 22


@pytest.mark.parametrize("size", [1, 2**20, 2**40])
def test_large_numbers_and_proofs(size: int) -> None:
    """Many bytes in one unit are proven like few; without a unit a proof may not be claimed."""
    p = plan_slots([(lower, upper, size * s) for lower, upper, s in ABOVE_THE_BOUND], "mip")
    assert (p.total, p.status) == (20 * size, "optimal")
    odd = [(lower, upper, size * s + i) for i, (lower, upper, s) in enumerate(ABOVE_THE_BOUND)]
    p = plan_slots(odd, "mip")
    assert p.total == min(total(p.problem, slots) for slots in partitions(p.problem))
    assert p.status == "optimal" or "too large" in p.stats["backend_status"]


@pytest.mark.parametrize(
    "options", [{"seconds": -1}, {"max_variables": -1}, {"max_variables": 1.5}]
)
def test_bad_options_of_mip(options: dict[str, Any]) -> None:
    """Limits that are no numbers are refused when the solver is made."""
    with pytest.raises(ValueError, match=next(iter(options))):
        Mip(**options)


# -- the judge -----------------------------------------------------------------------------------

ROWS = [
    Buffer(0, 2, 8, id="a"),
    Buffer(1, 4, 6, id="b"),
    Buffer(2, 4, 8, id="c"),
    Buffer(0, 4, 0, id="z"),
]
HOLDS = (0, 1, 0, 0)

FAULTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "overlap: buffers 'a' and 'b' are both in slot 0 in steps [1, 2)": ((0, 0, 1, 0), {}),
    "overlap: buffers 'b' and 'c' are both in slot 1 in steps [2, 4)": ((0, 1, 1, 0), {}),
    "missing: buffer 'z' has no slot": ((0, 1, 0), {}),
    "extra: a slot for buffer 4, which does not exist": ((0, 1, 0, 0, 1), {}),
    "no slot: buffer 'a' is in -1, which is no slot": ((-1, 1, 0, 0), {}),
    "no slot: buffer 'b' is in 1.0, which is no slot": ((0, 1.0, 0, 0), {}),
    "no slot: buffer 'b' is in 2, which is no slot": ((0, 2, 0, 0), {"sizes": (8, 6)}),
    "too large: buffer 'b' of 6 bytes is in slot 1 of 5": (HOLDS, {"sizes": (8, 5)}),
    "over capacity: the slots have 14 bytes, 1 over 13": (HOLDS, {"capacity": 13}),
    "over capacity: the slots have 16 bytes, 2 over 14": (
        HOLDS, {"capacity": 14, "sizes": (8, 8)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str) -> None:
    """Each kind of fault is named with its witness, and nothing else is."""
    slots, options = FAULTS[fault]
    capacity = options.get("capacity")
    violations = validate_slots(slots, Problem(ROWS, capacity=capacity), sizes=options.get("sizes"))
    assert [str(violation) for violation in violations] == [fault]


def test_slots_that_hold_have_no_faults() -> None:
    """Without a fault there is no violation, with or without sizes."""
    assert validate_slots(HOLDS, Problem(ROWS, capacity=14)) == ()
    assert validate_slots(HOLDS, ROWS, sizes=(8, 6)) == ()


def test_slots_by_id() -> None:
    """In any order, and for other buffers."""
    by_id = dict(zip("abcz", HOLDS, strict=True))
    assert validate_slots(by_id, ROWS[::-1]) == ()
    assert list(
        map(str, validate_slots(by_id | {"x": 0}, [*ROWS[:3], Buffer(0, 1, 8, id="y")]))
    ) == [
        "missing: buffer 'y' has no slot",
        "extra: a slot for buffer 'z', which does not exist",
        "extra: a slot for buffer 'x', which does not exist",
    ]
    p = plan_slots(ROWS)
    assert p.validate(ROWS[::-1]) == ()
    later = [*ROWS[1:], Buffer(0, 3, 8, id="a")]
    assert [v.ids for v in p.validate(later)] == [("a", "c")]


@pytest.mark.parametrize("slots", [3, "01", None, plan_slots([])])
def test_what_holds_no_slots_is_refused(slots: Any) -> None:
    """A number, text, a plan: `SlotPlan.validate` is for that."""
    with pytest.raises(TypeError, match="takes a mapping from id to slot"):
        validate_slots(slots, ROWS)
    with pytest.raises(TypeError, match="sizes of slots must be integers"):
        validate_slots(HOLDS, ROWS, sizes=["8", "8"])  # type: ignore[list-item]


@examples(200)
@given(problems(max_buffers=10), st.data())
def test_the_judge_by_definition(problem: Problem, data: Any) -> None:
    """It lists exactly the conflicting pairs that share a slot."""
    slots = data.draw(st.lists(st.integers(0, 3), min_size=len(problem), max_size=len(problem)))
    found = {frozenset(violation.ids) for violation in validate_slots(slots, problem)}
    expected = {
        frozenset({problem.ids[i], problem.ids[j]})
        for i, j in conflicts(problem)
        if slots[i] == slots[j]
    }
    assert found == expected


# -- the call ------------------------------------------------------------------------------------


@every_solver
@pytest.mark.parametrize("rows", [[], [Buffer(0, 1, 0, id="z")]], ids=["none", "size 0"])
def test_nothing_to_place(solver: str, rows: list[Buffer]) -> None:
    """Total 0, bound 0, gap 0, optimal; a buffer of size 0 has a slot all the same."""
    p = plan_slots(rows, solver)
    assert (p.total, p.lower_bound, p.gap, p.status) == (0, 0, 0.0, "optimal")
    assert all(p.sizes[slot] == 0 for _, slot in p)


def test_alignments_of_slots() -> None:
    """A slot is aligned for all tenants; sizes and total are as asked, offsets are aligned."""
    rows = [Buffer(0, 2, 10, alignment=4), Buffer(2, 4, 9, alignment=6), Buffer(0, 4, 7)]
    p = plan_slots(rows, alignment=2)
    assert (p.sizes, p.alignments, p.total) == ((10, 7), (12, 2), 17)
    assert p.slots == (0, 0, 1)
    assert p.as_plan().validate() == ()


def test_what_offsets_can_and_slots_cannot() -> None:
    """A pin is refused by name."""
    with pytest.raises(UnsupportedError, match="slots cannot honour pins"):
        plan_slots([Buffer(0, 1, 8, offset=0)])


def test_capacities() -> None:
    """Below the bound: infeasible. Between the bound and the plan: not found, with the plan."""
    with pytest.raises(InfeasibleError, match="positional maxima") as proven:
        plan_slots(ABOVE_THE_BOUND, capacity=18)
    assert (proven.value.short_by, proven.value.kind) == (1, "positional maxima")
    with pytest.raises(CapacityError, match="the best have 22 B, 3 B over") as found:
        plan_slots(ABOVE_THE_BOUND, capacity=19)
    assert (found.value.over_by, found.value.plan.peak) == (3, 22)
    with pytest.raises(InfeasibleError, match="because of the search"):
        plan_slots(ABOVE_THE_BOUND, "mip", capacity=19)
    assert plan_slots(ABOVE_THE_BOUND, "mip", capacity=20).total == 20


def test_solvers_by_name() -> None:
    """A typo has a hint, an unknown option and a class are TypeErrors, an object is taken."""
    with pytest.raises(UnknownSolverError, match="did you mean 'greedy-by-size'"):
        plan_slots([], "greedy-by-siez")
    with pytest.raises(UnknownSolverError, match="there are greedy-by-size"):
        plan_slots([], "zzz")
    with pytest.raises(TypeError):
        plan_slots([], "mip", colour="red")
    with pytest.raises(TypeError, match="configured solver"):
        plan_slots([], Mip)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="beside a configured solver"):
        plan_slots([], Mip(), seconds=3)
    assert plan_slots([(0, 1, 8)], "Greedy_by_size") == plan_slots([(0, 1, 8)], Mip())


@dataclass(frozen=True)
class Stub:
    """A solver that returns what it is told to."""

    slots: tuple[int, ...]
    lower_bound: int | None = None

    def __call__(self, problem: Problem, budget: Budget, /) -> SlotSolution:
        return SlotSolution(self.slots, self.lower_bound)


def test_a_solver_that_is_wrong_is_blamed() -> None:
    """Slots that break a rule, or a bound above the total, are never returned."""
    rows = [(0, 2, 8), (1, 3, 8)]
    with pytest.raises(SolverError, match=r"Stub.*break 1 rules"):
        plan_slots(rows, Stub((0, 0)))
    with pytest.raises(SolverError, match=r"claims that no total is below 17"):
        plan_slots(rows, Stub((0, 1), 17))
    assert plan_slots(rows, Stub((7, 3))).slots == (1, 0)


def test_bad_buffers_are_named() -> None:
    """The gate is that of `plan`."""
    with pytest.raises(InvalidProblemError, match="buffer 'x': size"):
        plan_slots([Buffer(0, 1, -1, id="x")])


def test_a_plan_of_slots_is_a_value() -> None:
    """It pickles, compares, hashes and prints; its offsets draw."""
    p = plan_slots(ROWS)
    copy: SlotPlan = pickle.loads(pickle.dumps(p))
    assert (copy, hash(copy), copy.stats) == (p, hash(p), p.stats)
    assert p != plan_slots(ROWS[:2])
    assert p != 3
    assert repr(p).startswith("<SlotPlan: 4 buffers in 2 slots, total 14 B, lower bound 14 B: opt")
    assert [(row.id, slot) for row, slot in p] == list(zip("abcz", p.slots, strict=True))
    assert p.as_plan().to_text()
    assert math.isclose(replace(p, slots=(0, 1, 2, 0)).gap, 22 / 14 - 1)


@examples(100)
@given(problems(max_buffers=12, alignments=True, huge=True))
def test_slots_in_json(problem: Problem) -> None:
    """What is written is read back, to the last field."""
    p = plan_slots(problem)
    back = SlotPlan.from_dict(json.loads(json.dumps(p.to_dict())), problem)
    assert (back, back.to_dict()) == (p, p.to_dict())


def test_a_searched_bound_in_json() -> None:
    """It is believed."""
    p = plan_slots(ABOVE_THE_BOUND, "mip")
    assert SlotPlan.from_dict(p.to_dict()).status == "optimal"


BROKEN: dict[str, dict[str, Any]] = {
    "expected slots of format": {"version": 2},
    "the slots' problem": {"problem": {}},
    "another problem": {"fingerprint": "0"},
    "'slots' cannot be 3": {"slots": 3},
    "'sizes' cannot be 'x'": {"sizes": "x"},
    "'sizes' must be integers": {"sizes": [8, None]},
    r"'fingerprint' cannot be \[1\]": {"fingerprint": [1]},
    "'solver' cannot be None": {"solver": None},
    "'stats' cannot be 3": {"stats": 3},
    "'total' cannot be True": {"total": True},
    "'bound' cannot be 'luck'": {"bound": "luck"},
    r"claim alignments \[2, 2\], but need \(1, 1\)": {"alignments": [2, 2]},
    "break 2 rules .* overlap": {"slots": [0, 0, 0, 0]},
    "break 1 rules .* too large": {"sizes": [8, 5]},
    "break 1 rules .* missing": {"slots": [0, 1, 0]},
    "total 13": {"total": 13},
    r"claim sizes \[8, 7\]": {"sizes": [8, 7]},
    "total 14 and lower bound 15": {"lower_bound": 15, "bound": "search"},
    "total 14 and lower bound 13": {"lower_bound": 13},
    "total 14 and lower bound 14, feasible": {"status": "feasible"},
}


@pytest.mark.parametrize("message", BROKEN)
def test_broken_json(message: str) -> None:
    """Whatever can be checked is checked."""
    data = {**plan_slots(ROWS).to_dict(), **BROKEN[message]}
    with pytest.raises(InvalidPlanError, match=message):
        SlotPlan.from_dict(data)


def test_json_that_lacks_something() -> None:
    """Fields that are missing are named, a mapping is asked for, another problem is refused."""
    data = plan_slots(ROWS).to_dict()
    with pytest.raises(InvalidPlanError, match="lack 'sizes'"):
        SlotPlan.from_dict({k: v for k, v in data.items() if k not in {"total", "sizes"}})
    with pytest.raises(InvalidPlanError, match="expected slots"):
        SlotPlan.from_dict(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidPlanError, match="another problem"):
        SlotPlan.from_dict(data, ROWS[:2])

"""Numbers from elsewhere: tests of other planners (`vectors`), and public bug reports (`CASES`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from dsa import (
    Buffer,
    CapacityError,
    InfeasibleError,
    InvalidProblemError,
    Plan,
    Problem,
    plan,
    validate,
)
from dsa.solvers import names, solver_class
from dsa.testing import assert_valid, optimum
from tests.shared import SHARED, needs_shared, read_table

# -- vectors of other planners -----------------------------------------------------------------

EXPECTED = {row["vec"]: row for row in read_table("vectors/expectations.csv")}
ROWS: dict[str, list[dict[str, str]]] = {}
for _row in read_table("vectors/rows.csv"):
    ROWS.setdefault(_row["vec"], []).append(_row)

every_vector = pytest.mark.parametrize("vector", ROWS)

# Algorithms that are a plain order and fit: ours gives the same offsets.
PLAIN: dict[str, tuple[str, dict[str, Any]]] = {
    "bump": ("naive", {}),
    "best fit in call order": ("greedy", {"order": "given", "fit": "best"}),
    "trace order best fit": ("greedy", {"order": "given", "fit": "best"}),
    "first fit in input order": ("greedy", {"order": "given", "fit": "first"}),
    "greedy_by_size offsets": ("greedy-by-size", {}),
    "size desc + best fit": ("greedy-by-size", {}),
    "tflm_greedy": ("greedy-by-size", {}),
    "xla kSpatial": ("greedy-by-size", {}),
}

# Buffers of equal size go by `lower` with us, by position in the columns gbs_*: two differ.
OTHER_TIES = {"ov_optim": 6, "mm_small_e": 12}


def problem_of(vector: str) -> Problem:
    """The buffers of a vector; `inc` says that both ends are live."""
    closed = EXPECTED[vector]["conv"] == "inc"
    return Problem(
        [
            Buffer(
                int(row["lower"]),
                int(row["upper"]) + closed,
                int(row["size"]),
                id=int(row["id"]),
                alignment=int(row["alignment"]),
                offset=int(row["pin"]) if row["pin"] else None,
            )
            for row in ROWS[vector]
        ]
    )


def number(vector: str, column: str) -> int | None:
    """An expected number, if the vector has it."""
    text = EXPECTED[vector][column]
    return int(text) if text else None


@needs_shared
@every_vector
def test_vectors_are_read_as_meant(vector: str) -> None:
    """Number of buffers and load are those of the source: lifetimes are not off by one."""
    problem = problem_of(vector)
    assert (len(problem), problem.load) == (number(vector, "n"), number(vector, "load"))


@needs_shared
@pytest.mark.parametrize("vector", [v for v in ROWS if all(row["offset"] for row in ROWS[v])])
def test_offsets_of_others_are_judged(vector: str) -> None:
    """Their offsets break no rule and have the peak they claim."""
    problem = problem_of(vector)
    offsets = [int(row["offset"]) for row in ROWS[vector]]
    assert_valid(offsets, problem)
    assert max(at + b.size for b, at in zip(problem, offsets, strict=True)) == number(
        vector, "peak"
    )


@needs_shared
@pytest.mark.parametrize("vector", [v for v in ROWS if EXPECTED[v]["algo"] in PLAIN])
def test_plain_orders_and_fits_give_the_same_offsets(vector: str) -> None:
    """Where the source names an order and a fit, ours places every buffer where theirs does."""
    solver, options = PLAIN[EXPECTED[vector]["algo"]]
    p = plan(problem_of(vector), solver, **options)
    assert p.peak == number(vector, "peak")
    assert [str(offset) for offset in p.offsets] == [row["offset"] for row in ROWS[vector]]


@needs_shared
@every_vector
@pytest.mark.parametrize(("column", "fit"), [("gbs_bf", "best"), ("gbs_ff", "first")])
def test_greedy_by_size(vector: str, column: str, fit: str) -> None:
    """Largest first, in both fits; the peaks agree but for ties between equal sizes."""
    problem = problem_of(vector)
    stable = problem.select(np.argsort(-problem.size, kind="stable"))
    assert plan(stable, "greedy", order="given", fit=fit).peak == number(vector, column)
    expected = OTHER_TIES.get(vector, number(vector, column))
    assert plan(problem, "greedy-by-size", fit=fit).peak == expected


@needs_shared
@every_vector
def test_greedy_by_lifetime(vector: str) -> None:
    """Longest first, best fit: the column dbs_bf."""
    p = plan(problem_of(vector), "greedy", order="lifetime", fit="best")
    assert p.peak == number(vector, "dbs_bf")


@needs_shared
@every_vector
def test_every_solver_plans_every_vector(vector: str, solver: str) -> None:
    """Valid, not below the optimum, and at it if the solver is exact."""
    p = plan(problem_of(vector), solver)
    best = number(vector, "opt")
    assert_valid(p)
    assert best is not None
    assert p.lower_bound <= best <= p.peak
    if solver_class(solver).exact:
        assert (p.peak, p.status) == (best, "optimal")


@needs_shared
@pytest.mark.parametrize("vector", [v for v in ROWS if EXPECTED[v]["capacity"]])
def test_capacities_of_vectors(vector: str) -> None:
    """What fits is found by the exact search, what does not fit is proven not to."""
    capacity = int(EXPECTED[vector]["capacity"])
    if EXPECTED[vector]["status"] == "infeasible":
        with pytest.raises(InfeasibleError) as caught:
            plan(problem_of(vector), "exact", capacity=capacity)
        assert caught.value.lower_bound == number(vector, "opt")
    else:
        assert plan(problem_of(vector), "exact", capacity=capacity).peak <= capacity


@needs_shared
@pytest.mark.parametrize("vector", [v for v in EXPECTED if v not in ROWS])
def test_vectors_without_buffers(vector: str) -> None:
    """Vectors whose buffers the shared data lacks cannot be tested, and are named."""
    pytest.skip(f"rows.csv does not have {vector}")


# -- cases from bug reports --------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Buffers, what is expected of their plans, and why.

    `wrong` is the peak that the reported bug led to. With `everyone`, all solvers that reuse
    memory reach the optimum.
    """

    why: str
    rows: list[Any]
    load: int
    best: int
    everyone: bool = False
    peaks: dict[str, int] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    wrong: int | None = None


def b(
    id: str, lower: int, upper: int, size: int, alignment: int = 1, pin: int | None = None
) -> Buffer:
    """A row of the table."""
    return Buffer(lower, upper, size, id=id, alignment=alignment, offset=pin)


GREEDY: dict[str, tuple[str, dict[str, Any]]] = {
    "size_ff": ("greedy-by-size", {"fit": "first"}),
    "size_bf": ("greedy-by-size", {"fit": "best"}),
    "breadth": ("greedy-by-breadth", {}),
    "input_ff": ("greedy", {"order": "given", "fit": "first"}),
    "lower": ("greedy", {"order": "lower"}),
    "bump": ("naive", {}),
}

CASES = {
    "T01": Case(
        "lifetimes that touch share bytes",
        [b("a", 0, 3, 64), b("b", 3, 6, 64)],
        64, 64, everyone=True, offsets={"a": 0, "b": 0}, wrong=128,
    ),
    "T01c": Case(
        "the same numbers meant as closed: both are live at step 3",
        [b("a", 0, 4, 64), b("b", 3, 7, 64)],
        128, 128, everyone=True,
    ),
    "T02": Case(
        "the gap below the first live block is a gap",
        [b("A", 0, 2, 96), b("B", 1, 3, 72), b("C", 2, 4, 48)],
        168, 168, peaks={"size_ff": 168, "size_bf": 168},
        offsets={"A": 0, "B": 96, "C": 0}, wrong=216,
    ),
    "T03": Case(
        "a result that nobody reads is live for its own step",
        [b("x", 0, 3, 256), b("dead", 2, 3, 128), b("y", 2, 4, 64)],
        448, 448, everyone=True, wrong=320,
    ),
    "T04": Case(
        "size 0 gets an offset, conflicts with nothing and never raises the peak",
        [b("z", 0, 4, 0), b("a", 0, 2, 32), b("b", 1, 3, 32)],
        64, 64, everyone=True,
    ),
    "T06": Case(
        "the topmost buffer needs no padding: 64 + 50, not 2 x 64",
        [b("a", 0, 2, 50, 32), b("b", 1, 3, 50, 32), b("c", 2, 4, 50, 32)],
        100, 114, peaks={"size_ff": 114, "size_bf": 114},
        offsets={"a": 0, "b": 64, "c": 0}, wrong=128,
    ),
    "T08": Case(
        "after a header of 1000 bytes the next multiple of 64 is 1024",
        [b("stack", 0, 10, 1000, pin=0), b("v", 2, 5, 128, 64)],
        1128, 1152, everyone=True, offsets={"stack": 0, "v": 1024}, wrong=1128,
    ),
    "T09": Case(
        "an alignment that is no power of two: masking bits gives 16",
        [b("a", 0, 2, 10, 48), b("b", 0, 2, 10, 48)],
        20, 58, everyone=True, wrong=26,
    ),
    "T10": Case(
        "sums beyond 2**32",
        [b("a", 0, 2, 3_000_000_000), b("b", 1, 3, 3_000_000_000)],
        6_000_000_000, 6_000_000_000, everyone=True, wrong=1_705_032_704,
    ),
    "T11": Case(
        "2**35 and one byte: cut to 32 bits the size is 0",
        [b("a", 0, 2, 2**35), b("b", 1, 3, 1)],
        2**35 + 1, 2**35 + 1, everyone=True,
    ),
    "T13": Case(
        "one byte beside 10**8 is less than the tolerance of a MIP with big M",
        [b("a", 0, 2, 10**8), b("b", 0, 2, 1), b("c", 0, 2, 1)],
        10**8 + 2, 10**8 + 2, everyone=True, wrong=10**8,
    ),
    "T19": Case(
        "largest first puts c above a, although only d should be high",
        [b("a", 0, 2, 44), b("b", 1, 3, 36), b("c", 2, 5, 40), b("d", 4, 5, 48)],
        88, 88, peaks={"size_ff": 124, "size_bf": 124, "breadth": 124, "lower": 88},
    ),
    "T20": Case(
        "size beats breadth",
        [b("a", 1, 2, 48), b("b", 1, 4, 12), b("c", 2, 4, 44), b("d", 3, 4, 8)],
        64, 64, peaks={"size_ff": 68, "size_bf": 68, "breadth": 104},
    ),
    "T21": Case(
        "breadth beats size",
        [b("a", 0, 3, 44), b("b", 1, 2, 48), b("c", 2, 4, 36), b("d", 3, 4, 40)],
        92, 92, peaks={"size_ff": 128, "size_bf": 128, "breadth": 92},
    ),
    "T23": Case(
        "a and b halve the space, c and d share a half, so do d and e: c, d, e need 80 in 48",
        [
            *(b("a", 0, 1, 48), b("b", 0, 2, 48), b("c", 1, 3, 32), b("d", 1, 4, 16)),
            *(b("e", 2, 4, 32), b("f", 3, 5, 48), b("g", 4, 5, 48)),
        ],
        96, 112, peaks={"size_ff": 112, "size_bf": 112, "breadth": 128},
    ),
    "T25": Case(
        "an input is overwritten once it has been read",
        [b("in", 0, 1, 40), b("t1", 0, 2, 24), b("t2", 1, 3, 40), b("out", 2, 3, 32)],
        72, 72, peaks={"size_ff": 72},
    ),
    "T25 persistent": Case(
        "an input that must survive is live to the end, which costs its 40 bytes",
        [b("in", 0, 3, 40), b("t1", 0, 2, 24), b("t2", 1, 3, 40), b("out", 2, 3, 32)],
        112, 112, peaks={"size_ff": 112, "input_ff": 136},
    ),
    "X03": Case(
        "p is read on every trip of the loop, so it lives to the loop's end",
        [b("p", 0, 6, 80), b("l", 2, 4, 80)],
        160, 160, everyone=True, wrong=80,
    ),
    "X05": Case(
        "bytes on both sides of a pin are used; a watermark above it gives 48",
        [b("f", 0, 4, 8, pin=16), b("a", 0, 4, 16), b("b", 0, 4, 8)],
        32, 32, peaks={"size_ff": 32}, offsets={"f": 16, "a": 0, "b": 24}, wrong=48,
    ),
    "X05 other order": Case(
        "b before a takes the bottom, and a no longer fits below the pin",
        [b("f", 0, 4, 8, pin=16), b("b", 0, 4, 8), b("a", 0, 4, 16)],
        32, 32, peaks={"input_ff": 40},
    ),
    "X12a": Case(
        "time is given: neither rotation nor waiting makes room",
        [b("a", 0, 10, 2), b("b", 0, 2, 10)],
        12, 12, everyone=True, wrong=10,
    ),
    "X12b": Case(
        "equal sizes by start reach the load",
        [b("a", 0, 3, 16), b("b", 1, 4, 16), b("c", 2, 5, 16), b("d", 4, 7, 16), b("e", 5, 8, 16)],
        48, 48, peaks={"lower": 48},
    ),
    # Entries of CASES.md that have no rows in cases.csv.
    "entry 2": Case(
        "two buffers end at the step at which the third starts",
        [b("a", 0, 4, 16), b("b", 2, 4, 16), b("c", 4, 6, 32)],
        32, 32, everyone=True,
    ),
    "entry 3": Case(
        "one step is a lifetime: what it holds is not free before it is held",
        [b("A", 5, 6, 384), b("B", 5, 6, 384)],
        768, 768, everyone=True, wrong=384,
    ),
    "entry 10": Case(
        "an inner graph is planned above the bytes that are live outside",
        [b("o0", 0, 5, 128, pin=0), b("inner1", 3, 4, 64)],
        192, 192, everyone=True, offsets={"o0": 0, "inner1": 128},
    ),
    "entry 16": Case(
        "4 at 0 and 3 at 4 need 7; rounding 3 up to 4 gives 8, which is no lower bound",
        [b("p", 0, 2, 3), b("q", 0, 2, 4, 4)],
        7, 7, peaks={"size_ff": 7, "bump": 8},
    ),
    "entry 42": Case(
        "2**24 + 1 has more digits than a file with six",
        [b("a", 0, 2, 2**24 + 1), b("b", 1, 3, 7)],
        2**24 + 8, 2**24 + 8, everyone=True, wrong=16_777_200,
    ),
    "entry 41": Case(
        "2**53 + 1 is no double",
        [b("a", 0, 2, 2**53 + 1), b("b", 1, 3, 1)],
        2**53 + 2, 2**53 + 2, everyone=True,
    ),
    "entry 41, four": Case(
        "10**9 beside single bytes: HiGHS calls it infeasible",
        [b("a", 0, 2, 10**9), b("b", 0, 2, 1), b("c", 0, 2, 1), b("d", 0, 2, 1)],
        10**9 + 3, 10**9 + 3, everyone=True,
    ),
    "entry 41, scaled": Case(
        "T23 in units of 2**30: HiGHS proves 292057776128 optimal",
        [
            *(b("a", 0, 1, 48 << 30), b("b", 0, 2, 48 << 30), b("c", 1, 3, 32 << 30)),
            *(b("d", 1, 4, 16 << 30), b("e", 2, 4, 32 << 30)),
            *(b("f", 3, 5, 48 << 30), b("g", 4, 5, 48 << 30)),
        ],
        96 << 30, 112 << 30, wrong=292_057_776_128,
    ),
    "entry 58": Case(
        "time stamps in microseconds make no array over all steps",
        [
            b("a", 1_700_000_000_000_000, 1_700_000_000_000_500, 10),
            b("b", 1_700_000_000_000_400, 1_700_000_000_000_900, 10),
        ],
        20, 20, everyone=True,
    ),
    "entry 58, repaired": Case(
        "a free without an alloc is live from the start, an alloc without a free to the end",
        [b("X", 0, 1, 512), b("Y", 2, 4, 256), b("Z", 3, 6, 128)],
        512, 512, everyone=True, peaks={"bump": 896},
    ),
    "entry 59": Case(
        "equal buffers are placed by their ids, whatever the order of the input",
        [b("d", 0, 1, 10), b("b", 0, 1, 10), b("a", 0, 1, 10), b("c", 0, 1, 10)],
        40, 40, everyone=True, offsets={"a": 0, "b": 10, "c": 20, "d": 30},
    ),
}  # fmt: skip

every_case = pytest.mark.parametrize("case", CASES)


@every_case
def test_the_expected_numbers_of_a_case_agree(case: str) -> None:
    """Load and optimum are what the definition and an exhaustive search give."""
    expected = CASES[case]
    problem = Problem(expected.rows)
    assert (problem.load, optimum(problem)) == (expected.load, expected.best)


@every_case
def test_every_solver_plans_every_case(case: str, solver: str) -> None:
    """Valid; at the optimum if the solver is exact, or if everybody who reuses memory is."""
    expected = CASES[case]
    p = plan(expected.rows, solver)
    assert_valid(p)
    assert p.lower_bound <= expected.best <= p.peak
    if solver_class(solver).exact:
        assert (p.peak, p.status) == (expected.best, "optimal")
    if expected.everyone and solver != "naive":
        assert p.peak == expected.best


@pytest.mark.parametrize(
    ("case", "algorithm"), [(case, name) for case in CASES for name in CASES[case].peaks]
)
def test_greedy_peaks_of_a_case(case: str, algorithm: str) -> None:
    """The greedy solvers reach what the table says, better or worse."""
    solver, options = GREEDY[algorithm]
    assert plan(CASES[case].rows, solver, **options).peak == CASES[case].peaks[algorithm]


@pytest.mark.parametrize("case", [case for case in CASES if CASES[case].offsets])
def test_offsets_of_a_case(case: str) -> None:
    """Largest first places the buffers where the table says, in any order of the input."""
    rows = CASES[case].rows
    for order in (rows, rows[::-1], rows[1:] + rows[:1]):
        p = plan(order, "greedy-by-size")
        assert {id: p[id] for id in CASES[case].offsets} == CASES[case].offsets


@pytest.mark.parametrize("case", [case for case in CASES if CASES[case].wrong is not None])
def test_the_reported_peak_is_not_repeated(case: str) -> None:
    """No solver gives the peak that the bug led to; below the optimum it is called infeasible."""
    rows, wrong, best = CASES[case].rows, CASES[case].wrong, CASES[case].best
    assert wrong is not None
    assert plan(rows).peak != wrong
    if wrong < best:
        with pytest.raises(InfeasibleError):
            plan(rows, "exact", capacity=wrong)


@needs_shared
def test_every_case_of_the_file_is_here() -> None:
    """cases.csv holds no case that is not in this file, by its own id."""
    text = (SHARED / "vectors" / "cases.csv").read_text("utf-8")
    ids = {line.split(",")[0] for line in text.splitlines() if line and not line.startswith("#")}
    elsewhere = {"T03e", "T05a", "T05b", "T09e", "T10n", "T17a", "T17b", "T17c", "X04", "X05e"}
    elsewhere |= {"X01", "X02a", "X02b"}  # in test_constraints
    elsewhere |= {"X06", "X07"}  # in test_pools
    assert ids == (CASES.keys() & ids) | elsewhere


# -- cases that are errors, or more than a peak ------------------------------------------------


def test_an_empty_lifetime_names_the_buffer() -> None:
    """T03e: the lifetime of an unread result must not be empty."""
    with pytest.raises(ValueError, match=r"'dead'.*still lives for its own step"):
        plan([b("dead", 2, 2, 128)])


@pytest.mark.parametrize("rows", [[], [b("z", 0, 1, 0)]], ids=["T05a", "T05b"])
def test_nothing_to_place(rows: list[Buffer]) -> None:
    """T05: peak 0, bound 0, gap 0, optimal."""
    p = plan(rows)
    assert (p.peak, p.lower_bound, p.gap, p.status) == (0, 0, 0.0, "optimal")


def test_peak_and_arena_are_apart() -> None:
    """T06: the peak has no padding at the end; the arena does, and says how to align its start."""
    p = plan(CASES["T06"].rows)
    assert (p.peak, p.arena_size, p.base_alignment) == (114, 128, 32)


@pytest.mark.parametrize("alignment", [0, -4, 1.5])
def test_bad_alignments(alignment: Any) -> None:
    """T09e: no alignment below 1, none that is no integer."""
    with pytest.raises(InvalidProblemError, match="alignment must be"):
        plan([b("a", 0, 2, 10, alignment)])


def test_narrow_integers() -> None:
    """T10n: sizes of NumPy's int32 add up beyond it."""
    rows = [(0, 2, np.int32(2_000_000_000)), (1, 3, np.int32(2_000_000_000))]
    assert plan(rows).peak == 4_000_000_000  # type: ignore[arg-type]


def test_duplicates_and_bad_numbers() -> None:
    """T17: a repeated id, an odd size or a reversed lifetime is an error that names it."""
    with pytest.raises(ValueError, match="'a': two buffers have this id"):
        plan([b("a", 0, 2, 8), b("a", 1, 3, 8)])
    for size in (-1, float("nan"), float("inf"), 10.5, True, "8", None):
        with pytest.raises(InvalidProblemError, match="buffer 'a': size must be") as caught:
            plan([b("a", 0, 2, size)])  # type: ignore[arg-type]
        assert (caught.value.id, caught.value.field) == ("a", "size")
    with pytest.raises(ValueError, match=r"\[3, 1\) is empty"):
        plan([b("a", 3, 1, 8)])
    assert plan([b("a", 0, 1, np.int64(8))]).peak == 8  # type: ignore[arg-type]


def test_capacity_between_greedy_and_optimum() -> None:
    """T19 at 100: the exact search fits, a greedy one only failed to."""
    rows = CASES["T19"].rows
    assert plan(rows, "exact", capacity=100).peak == 88
    with pytest.raises(CapacityError) as caught:
        plan(rows, "greedy-by-size", capacity=100)
    assert (caught.value.plan.peak, caught.value.plan.lower_bound) == (124, 88)


def test_capacity_that_no_packing_meets() -> None:
    """T23 at 96: the live bytes fit, but the search proves that 16 more are needed."""
    with pytest.raises(InfeasibleError) as caught:
        plan(CASES["T23"].rows, "exact", capacity=96)
    assert caught.value.short_by == 16


def test_capacity_below_the_load() -> None:
    """X04: by how much, when, and because of whom."""
    rows = [b("a", 0, 2, 60), b("b", 1, 3, 50)]
    with pytest.raises(InfeasibleError) as caught:
        plan(rows, capacity=100)
    error = caught.value
    assert (error.lower_bound, error.short_by, error.step, error.ids) == (110, 10, 1, ("a", "b"))
    assert plan(rows, capacity=110).peak == 110


def test_pins_that_collide_name_both() -> None:
    """X05e, om_pin_collide: two pins that share bytes are no problem to plan."""
    for other in (b("g", 2, 6, 8, pin=20), b("g", 0, 1, 30, pin=0)):
        with pytest.raises(InvalidProblemError, match="'f' and 'g' are live together"):
            plan([b("f", 0, 4, 8, pin=16), other])


MM_FIXED = [(1, 2, 1), (0, 2, 1), (2, 3, 2), (1, 3, 1), (0, 1, 2)]


def test_minimalloc_pins() -> None:
    """mm_fixed_ok and mm_fixed_bad: one pin leaves room for the others, another does not."""
    rows = [Buffer(*row) for row in MM_FIXED]
    good = plan([*rows[:2], replace(rows[2], offset=1), *rows[3:]], "exact", capacity=3)
    assert good[2] == 1
    with pytest.raises(InfeasibleError):
        plan([replace(rows[0], offset=0), *rows[1:]], "exact", capacity=3)


def test_a_plan_for_a_changed_graph() -> None:
    """Entry 57: an old plan is judged by the new lifetimes."""
    old = plan([b("a", 0, 2, 8), b("b", 2, 4, 8)])
    assert old.offsets == (0, 0)
    (violation,) = validate(old, [b("a", 0, 2, 8), b("b", 1, 4, 8)])
    assert (violation.ids, violation.bytes, violation.steps) == (("a", "b"), (0, 8), (1, 2))


def test_nothing_new_is_moved_onto_the_old() -> None:
    """5.10, staged: what was planned is pinned, more is added, and the whole holds."""
    first = plan([Buffer(i, i + 3, 16, id=f"a{i}") for i in range(8)])
    kept = [replace(buffer, offset=offset) for buffer, offset in first]
    second = plan([*kept, *(Buffer(i, i + 5, 24, id=f"b{i}") for i in range(4))])
    assert second.offsets[:8] == first.offsets
    assert second.validate() == ()


@pytest.mark.parametrize("solver", [n for n in names() if not solver_class(n).requires])
def test_thousands_of_buffers_in_a_chain(solver: str) -> None:
    """Entry 60: a long chain is planned at its load by every solver that needs no backend."""
    n = 20_000 if solver in {"greedy-by-size", "strip-packing"} else 4_000
    step = np.arange(n)
    p: Plan = plan(Problem.from_columns(step, step + 2, np.full(n, 64)), solver)
    assert p.peak == 128 or solver == "naive"

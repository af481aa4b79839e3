"""Holes and constraints: numbers from elsewhere, faults that are caught, and what changes nothing.

That every solver's plans are valid, and not below an exhaustive optimum, is in test_contract.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa import (
    Buffer,
    Constraints,
    InfeasibleError,
    InvalidPlanError,
    InvalidProblemError,
    Plan,
    Problem,
    plan,
    validate,
)
from dsa.constraints import NONE
from dsa.lifetimes import persist
from dsa.solvers import FEATURES, solver_class
from dsa.testing import assert_valid, optimum, problems
from tests import oracle
from tests.shared import examples

RULES = set(FEATURES) & {field.name for field in fields(Constraints)}

# -- vectors of other planners, and cases from bug reports ----------------------------------------


@dataclass(frozen=True)
class Case:
    """Buffers and constraints, the least peak, and why it is that.

    With `everyone`, all solvers that reuse memory reach it. `theirs` are offsets of the source,
    which hold; `wrong` is a peak that was wrong there.
    """

    why: str
    rows: list[Buffer]
    best: int
    rules: Constraints = NONE
    everyone: bool = True
    theirs: list[int] | None = None
    wrong: int | None = None

    @property
    def problem(self) -> Problem:
        return Problem(self.rows, constraints=self.rules)


def b(
    id: str,
    lower: int,
    upper: int,
    size: int,
    *holes: tuple[int, ...],
    alignment: int = 1,
    pin: int | None = None,
) -> Buffer:
    """A row of the table."""
    return Buffer(lower, upper, size, id=id, alignment=alignment, offset=pin, holes=holes)


def closed(*rows: Buffer) -> list[Buffer]:
    """Rows whose upper, also of holes, is the last step live."""
    return [
        replace(row, upper=row.upper + 1, holes=tuple((a, z + 1, *w) for a, z, *w in row.holes))
        for row in rows
    ]


def colocated(pair: tuple[str, str]) -> Constraints:
    """Two buffers at one offset."""
    return Constraints(aliases=[pair])


def graph(
    sizes: dict[str, int], edges: list[tuple[str, str]], best: int, why: str, *, live: bool
) -> Case:
    """Conflicts without lifetimes: all live with exclusive pairs, or none with pairs apart."""
    joined = {frozenset(edge) for edge in edges}
    if live:
        rows = [b(id, 0, 1, size) for id, size in sizes.items()]
        free = [pair for pair in combinations(sizes, 2) if frozenset(pair) not in joined]
        return Case(why, rows, best, Constraints(exclusive=free), everyone=False)
    rows = [b(id, i, i + 1, size) for i, (id, size) in enumerate(sizes.items())]
    return Case(why, rows, best, Constraints(apart=edges), everyone=False)


def one_sided(lists: str) -> list[tuple[str, str]]:
    """Edges of lists such as ``a>bc b>ace``, as they are written, but for those to oneself."""
    return [(one[0], other) for one in lists.split() for other in one[2:] if other != one[0]]


LINEAR = {"a": 10, "b": 20, "c": 100, "d": 40, "e": 50, "f": 50}
FANOUT = {"a": 10, "b": 20, "c": 100, "d": 40, "e": 50, "f": 60, "g": 70}
RESNET = {"sid_2": 720000, "sid_6": 5760000, "sid_7": 720000, "sid_8": 720000, "P": 720000}
RESNET |= {"P1": 758912, "P2": 720000, "P3": 720000, "C": 256, "C1": 256, "C2": 256, "C3": 256}
RESNET_LISTS = {
    "sid_7": ["P1", "sid_2", "C1", "P2"],
    "C3": ["P3", "sid_6"],
    "sid_6": ["C2", "P2", "sid_2", "P3"],
    "C": ["sid_8", "sid_2", "P"],
    "P3": ["sid_2"],
    "C2": ["P2", "sid_2"],
    "P1": ["sid_8", "sid_2", "C1"],
    "C1": ["sid_2"],
    "P": ["sid_2", "sid_8"],
    "sid_8": ["sid_2"],
    "P2": ["sid_2"],
}
RESNET_EDGES = [(one, other) for one, others in RESNET_LISTS.items() for other in others]
GRAPHS = {
    "usmp_names": ({"a": 10, "b": 10, "c": 10}, one_sided("a>b b>c c>a"), 30, "a triangle"),
    "usmp_linear": (LINEAR, one_sided("a>b b>c c>d d>e e>f"), 140, "c and d, whatever else"),
    "usmp_fanout": (
        FANOUT,
        one_sided("a>bc b>ace c>eabd d>bfce e>cfbd f>def g>f"),
        210,
        "d-b is listed on one side only: the source's 190 lets the two share bytes",
    ),
    "usmp_resnet": (RESNET, RESNET_EDGES, 7200256, "the heaviest clique"),
}

CASES: dict[str, Case] = {
    # 5.6: time-varying size and lifetime gaps
    "mm_gap_hole": Case(
        "the second lives in the hole of the first",
        [b("b0", 0, 4, 2, (1, 3)), b("b1", 1, 3, 2)],
        2,
        theirs=[0, 0],
    ),
    "mm_gap_tetris": Case(
        "each keeps the half that the other lacks, so they interlock",
        [b("b0", 0, 10, 2, (0, 5, 0, 1)), b("b1", 0, 10, 2, (5, 10, 1, 2))],
        3,
        everyone=False,
        theirs=[0, 1],
    ),
    "mm_gap_stairs": Case(
        "six buffers that shrink in stairs",
        [
            b("b0", 0, 108, 30, (36, 72, 10, 30), (72, 108, 20, 30)),
            b("b1", 36, 144, 50, (36, 72, 20, 30), (72, 108, 10, 40)),
            b("b2", 84, 144, 42, (114, 129, 0, 28), (129, 144, 0, 14)),
            b("b3", 84, 129, 42, (99, 114, 14, 42), (114, 129, 28, 42)),
            b("b4", 99, 144, 70, (99, 114, 28, 42), (114, 129, 14, 56)),
            b("b5", 0, 144, 30, (72, 108, 0, 20), (108, 144, 0, 10)),
        ],
        144,
        everyone=False,
        theirs=[30, 10, 60, 102, 74, 0],
    ),
    "mm_gap_eff1": Case("no gaps: both in full", [b("A", 0, 2, 4), b("B", 1, 3, 5)], 9),
    "mm_gap_eff2": Case("never live together", [b("A", 0, 2, 4), b("B", 3, 5, 5)], 5),
    "mm_gap_eff3": Case(
        "live together only while one is in its gap",
        [b("A", 0, 10, 4, (1, 9)), b("B", 5, 15, 5, (6, 14))],
        5,
    ),
    "mm_gap_eff4": Case(
        "two gaps each, but both are whole at step 5",
        [b("A", 0, 10, 4, (1, 4), (6, 9)), b("B", 5, 15, 5, (6, 9), (11, 14))],
        9,
    ),
    "mm_gap_eff5": Case(
        "growing and shrinking byte by byte: one byte above is enough",
        [
            b("A", 0, 15, 3, (0, 5, 0, 1), (5, 10, 0, 2)),
            b("B", 0, 15, 3, (5, 10, 1, 3), (10, 15, 2, 3)),
        ],
        4,
        everyone=False,
        theirs=[0, 1],
    ),
    "xla_slices": Case(
        "slices that appear one after the other, the later one of E below the earlier",
        closed(
            b("A", 0, 15, 2),
            b("B", 11, 21, 3),
            b("C", 16, 25, 4, (16, 21, 0, 2)),
            b("D", 26, 33, 4, (26, 29, 0, 2)),
            b("E", 19, 25, 2, (19, 21, 1, 2)),
            b("F", 26, 29, 2),
        ),
        6,
        everyone=False,
        theirs=[0, 2, 0, 0, 4, 2],
    ),
    "tinyengine": Case(
        "after a stride of 2 in place, a quarter of the tensor is left",
        [b("act", 0, 6, 16, (3, 6, 0, 4)), b("next", 3, 6, 12)],
        16,
        theirs=[0, 4],
    ),
    # 5.3: aliases and colocation
    "xla_coloc_1": Case(
        "b lies between the members of the group, in time, on the same bytes",
        closed(b("a", 0, 1, 40), b("b", 2, 3, 20), b("c", 4, 5, 40)),
        40,
        colocated(("c", "a")),
        theirs=[0, 0, 0],
    ),
    "xla_coloc_2": Case(
        "b is live with c, and a is where c is",
        closed(b("a", 0, 1, 40), b("b", 2, 5, 20), b("c", 3, 4, 40)),
        60,
        colocated(("c", "a")),
        theirs=[0, 40, 0],
    ),
    "xla_coloc_3": Case(
        "the group above b, or below",
        closed(b("a", 0, 1, 10), b("b", 2, 5, 30), b("c", 3, 4, 10)),
        40,
        colocated(("c", "a")),
        theirs=[30, 0, 30],
    ),
    "xla_coloc_small": Case(
        "the source takes the group to be as large as its largest member, and needs 60",
        closed(b("a", 0, 1, 40), b("b", 2, 5, 20), b("c", 3, 4, 30)),
        50,
        colocated(("c", "a")),
        theirs=[0, 40, 0],
    ),
    "xla_coloc_big": Case(
        "the larger member is the one that meets b",
        closed(b("a", 0, 1, 40), b("b", 2, 5, 20), b("c", 3, 4, 50)),
        70,
        colocated(("c", "a")),
        theirs=[0, 50, 0],
    ),
    "xla_repack_coloc": Case(
        "x goes where y can be",
        closed(b("x", 0, 2, 10), b("y", 10, 20, 10), b("z", 5, 25, 15)),
        25,
        colocated(("x", "y")),
        theirs=[15, 15, 0],
    ),
    "xla_repack_coloc_sizes": Case(
        "members of different sizes, each with neighbours of its own",
        closed(b("x", 0, 2, 5), b("y", 10, 20, 10), b("u", 9, 11, 2), b("v", 1, 2, 2)),
        12,
        colocated(("x", "y")),
        theirs=[0, 0, 10, 5],
    ),
    "X01": Case(
        "an alias keeps its storage alive: 160 put right onto what left still reads",
        [b("src", 0, 2, 160), b("left", 1, 4, 160), b("right", 2, 4, 160)],
        320,
        colocated(("src", "left")),
        wrong=160,
    ),
    # 5.10: in-place
    "X02a": Case(
        "an output takes over its input's bytes",
        [b("a", 0, 2, 64), b("o", 1, 3, 64)],
        64,
        Constraints(in_place=[("a", "o")]),
        theirs=[0, 0],
        wrong=128,
    ),
    "in place, three in a row": Case(
        "each is the input of the next",
        [b("a", 0, 2, 64), b("o", 1, 3, 64), b("p", 2, 4, 32)],
        64,
        Constraints(in_place=[("a", "o"), ("o", "p")]),
    ),
    "in place, of two inputs": Case(
        "the output can be in place of one of two, and the other lies beside",
        [b("a", 0, 2, 64), b("c", 0, 2, 48), b("o", 1, 3, 48)],
        112,
        Constraints(in_place=[("a", "o"), ("c", "o")]),
    ),
    "in place is a choice": Case(
        "o is pinned elsewhere, so it is not in place, and both have their bytes",
        [b("a", 0, 2, 8), b("o", 1, 3, 8, pin=8)],
        16,
        Constraints(in_place=[("a", "o")]),
    ),
    # Entry 15: neighbours
    "entry 15": Case(
        "the inputs of a concatenation lie side by side, and t beside them",
        [b("x", 0, 3, 32), b("y", 1, 3, 32), b("t", 0, 1, 32)],
        64,
        Constraints(relative=[("x", "y", 32)]),
        everyone=False,
    ),
    "entry 15, reordered": Case(
        "x above y although x is placed first",
        [b("x", 0, 3, 32), b("y", 1, 3, 32), b("t", 0, 1, 16)],
        64,
        Constraints(relative=[("y", "x", 32)]),
        everyone=False,
    ),
    # 5.8: separations and reserved ranges
    "rp_separation": Case(
        "never live together, and yet apart",
        [b("0", 0, 2, 64, alignment=32), b("1", 2, 4, 64, alignment=32)],
        128,
        Constraints(apart=[("0", "1")]),
        wrong=64,
    ),
    "rp_strict": Case(
        "three that are apart two by two",
        [
            b(id, *steps, 64, alignment=32)
            for id, steps in zip("012", [(0, 2), (2, 4), (2, 5)], strict=True)
        ],
        192,
        Constraints(apart=[("0", "1"), ("0", "2")]),
        wrong=128,
    ),
    "rp_reserved": Case(
        "48 after the first reserved range, 64 on the first multiple of 64 after the second",
        [b("0", 0, 2, 48, alignment=32), b("1", 0, 2, 64, alignment=64)],
        192,
        Constraints(reserved=[(0, 32), (96, 128)]),
    ),
    "a chunk that nobody crosses": Case(
        "two of 40 would fit into 80, but not without crossing 64",
        [b("a", 0, 2, 40), b("b", 0, 2, 40), b("c", 0, 2, 24)],
        104,
        Constraints(chunk=64),
        everyone=False,
    ),
    # 5.7: pins
    "pins beside a reserved range": Case(
        "what is pinned stays, and the rest goes around it and the range",
        [b("f", 0, 4, 8, pin=16), b("a", 0, 4, 16), b("c", 0, 4, 8)],
        40,
        Constraints(reserved=[(8, 12)]),
        everyone=False,
    ),
    **{
        f"{name}, {'exclusive' if live else 'apart'}": graph(sizes, edges, best, why, live=live)
        for name, (sizes, edges, best, why) in GRAPHS.items()
        for live in (True, False)
    },
}

every_case = pytest.mark.parametrize("case", CASES)
SMALL = [case for case, expected in CASES.items() if expected.best <= 256]


@pytest.mark.parametrize("case", SMALL)
def test_the_best_peak_of_a_case(case: str) -> None:
    """The number in the table is that of an exhaustive search by definition."""
    assert optimum(CASES[case].problem) == CASES[case].best


@every_case
def test_every_solver_plans_every_case(case: str, solver: str) -> None:
    """Valid, not below the best, at it if the solver is exact or the case is easy."""
    expected = CASES[case]
    p = plan(expected.rows, solver, constraints=expected.rules)
    assert_valid(p)
    assert oracle.broken_rules(p.problem, p.offsets) == set()
    assert p.lower_bound <= expected.best <= p.peak
    if solver_class(solver).exact:
        assert (p.peak, p.status) == (expected.best, "optimal")
    if expected.everyone and solver != "naive":
        assert p.peak == expected.best
    assert p.peak != expected.wrong or solver == "naive"


@pytest.mark.parametrize("case", [case for case, it in CASES.items() if it.theirs is not None])
def test_offsets_of_others_hold(case: str) -> None:
    """The offsets that the source gives break no rule."""
    assert_valid(CASES[case].theirs or [], CASES[case].problem)


@pytest.mark.parametrize("case", [case for case, it in CASES.items() if it.wrong is not None])
def test_below_the_best_is_infeasible(case: str, solver: str) -> None:
    """What does not fit is proven not to, by who can prove; nobody returns it."""
    expected = CASES[case]
    if not solver_class(solver).exact:
        pytest.skip(f"{solver} proves nothing")
    with pytest.raises(InfeasibleError) as caught:
        plan(expected.problem, solver, capacity=expected.best - 1)
    assert caught.value.lower_bound == expected.best


def test_offsets_of_a_group() -> None:
    """Entry 12: two names of one storage have one offset, with any solver, whatever the order."""
    rules = Constraints(aliases=[("a", "c"), ("c", "e", 8)])
    rows = [b("a", 0, 2, 64), b("b", 1, 5, 16), b("c", 3, 5, 64), b("e", 4, 6, 8)]
    for order in (rows, rows[::-1]):
        p = plan(order, constraints=rules)
        assert p["a"] == p["c"] == p["e"] - 8


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([b("a", 0, 3, 64), b("o", 1, 3, 64)], "born at step 1, and the other dies at 3"),
        ([b("a", 0, 2, 64), b("o", 3, 4, 64)], "born at step 3, and the other dies at 2"),
        ([b("a", 0, 2, 64), b("o", 1, 3, 65)], "it has 65 bytes, the other only 64"),
    ],
    ids=["X02b", "too late", "too large"],
)
def test_in_place_that_would_be_wrong(rows: list[Buffer], message: str) -> None:
    """X02b, entry 13: an input that is read again, or is too small, is an error that says so."""
    with pytest.raises(InvalidProblemError, match=message):
        plan(rows, constraints=Constraints(in_place=[("a", "o")]))
    assert plan(rows).peak in (64, 128, 129)


def test_a_conflict_graph_is_symmetric() -> None:
    """usmp_fanout: which side lists a conflict makes no difference to problem or plan."""
    edges = one_sided("a>bc b>ace c>eabd d>bfce e>cfbd f>def g>f")
    turned = [(two, one) for one, two in edges]
    rows = [b(id, i, i + 1, size) for i, (id, size) in enumerate(FANOUT.items())]
    peaks = {plan(rows, "exact", constraints=Constraints(apart=e)).peak for e in (edges, turned)}
    assert peaks == {210}
    with pytest.raises(InfeasibleError):
        plan(rows, "exact", capacity=190, constraints=Constraints(apart=edges))


def test_one_pool_of_ten() -> None:
    """usmp_nopool: three of 10 that conflict do not fit into 10."""
    case = graph({"a": 10, "b": 10, "c": 10}, one_sided("a>b b>c c>a"), 30, "", live=False)
    with pytest.raises(InfeasibleError) as caught:
        plan(case.problem, capacity=10)
    assert caught.value.short_by == 20


def test_alignment_and_what_is_used() -> None:
    """5.10, Glow: offsets 0, 10 use 20, then 0, 20 use 40; 65 before 64, at 64, use 192."""
    for size, offsets, used in ((9, (0, 10), 20), (19, (0, 20), 40)):
        p = plan([(0, 1, size)] * 2, alignment=10)
        assert (p.offsets, p.arena_size) == (offsets, used)
    rows = [b("65", 0, 1, 65), b("64", 0, 1, 64)]
    p = plan(rows, "greedy-by-size", alignment=64, capacity=192)
    assert (p["65"], p["64"], p.peak) == (0, 128, 192)
    assert plan(rows, "exact", alignment=64).peak == 129  # the odd one on top
    with pytest.raises(InfeasibleError):
        plan([(0, 1, 100)], alignment=64, capacity=10)
    p = plan([(0, 1, 6), (0, 1, 9)], "greedy", order="given", alignment=4)  # TFLite, two inputs
    assert (p.offsets, p.arena_size) == ((0, 8), 20)


# -- lifetimes in a partial order: of two that the order does not compare, either may be live ------

Clock: TypeAlias = tuple[int, ...]
CLOCKS: dict[str, tuple[list[tuple[int, Clock, Clock]], int]] = {
    "two_plus_two": (
        [
            *((8, (0, 0), (1, 0)), (16, (1, 0), (2, 0))),
            *((32, (0, 0), (0, 1)), (64, (0, 1), (0, 2))),
        ],
        80,
    ),
    "lockstep": ([(100, (0, 0), (4, 4)), (50, (2, 2), (6, 6)), (25, (5, 5), (8, 8))], 150),
    "scalar": ([(100, (0,), (4,)), (50, (2,), (6,)), (25, (6,), (8,))], 150),
    "disjoint": ([(100, (0,), (2,)), (50, (2,), (4,))], 100),
    "linearizable": (
        [(100, (0, 0), (2, 1)), (50, (1, 0), (3, 2)), (25, (3, 2), (4, 3))],
        150,
    ),
    "om_pin_vector": ([(10, (0, 0), (4, 1)), (10, (0, 0), (1, 4))], 20),
    "om_val_vector": ([(10, (0, 5), (1, 6)), (10, (2, 0), (3, 1))], 20),
    "om_val_vector_ok": ([(10, (0, 0), (2, 1)), (10, (2, 1), (3, 2))], 10),
}


def ordered(rows: list[tuple[int, Clock, Clock]]) -> Problem:
    """Buffers with vector clocks: one step, in which those share that come one after another."""

    def before(end: Clock, start: Clock) -> bool:
        return all(a <= b for a, b in zip(end, start, strict=True))

    exclusive = [
        (i, j)
        for (i, (_, lower, upper)), (j, (_, begin, end)) in combinations(enumerate(rows), 2)
        if before(upper, begin) or before(end, lower)
    ]
    sizes = [Buffer(0, 1, size) for size, _, _ in rows]
    return Problem(sizes, constraints=Constraints(exclusive=exclusive))


@pytest.mark.parametrize("name", CLOCKS)
def test_lifetimes_in_a_partial_order(name: str, solver: str) -> None:
    """5.12: vector clocks are a graph of conflicts; the best peak is its heaviest antichain."""
    rows, best = CLOCKS[name]
    p = plan(ordered(rows), solver)
    assert_valid(p)
    assert p.lower_bound <= best <= p.peak
    if solver_class(solver).exact:
        assert (p.peak, p.status) == (best, "optimal")


def test_verdicts_and_pins_in_a_partial_order() -> None:
    """om_val_vector, om_val_vector_ok, om_pin_vector: only concurrent ones may not share bytes."""
    concurrent, sequential = (ordered(CLOCKS[f"om_val_vector{end}"][0]) for end in ("", "_ok"))
    assert [v.kind for v in validate([0, 0], concurrent)] == ["overlap"]
    assert validate([0, 0], sequential) == ()
    pinned = ordered(CLOCKS["om_pin_vector"][0])
    pinned = Problem([replace(pinned[0], offset=64), pinned[1]], constraints=pinned.constraints)
    assert plan(pinned).offsets == (64, 0)


# -- cases that are more than a peak ---------------------------------------------------------------


def test_lifetimes_of_a_scope() -> None:
    """Entry 5: a plan for lifetimes that end too soon is judged by the true ones."""
    short = plan([b("buf", 0, 2, 64), b("tmp", 4, 6, 64)])
    (violation,) = validate(short, [b("buf", 0, 8, 64), b("tmp", 4, 6, 64)])
    assert (short.peak, violation.ids, violation.steps) == (64, ("buf", "tmp"), (4, 6))
    assert plan([b("buf", 0, 8, 64), b("tmp", 4, 6, 64)]).peak == 128


def test_an_output_by_alias() -> None:
    """Entry 9: the view that is returned keeps the bytes of its base to the end."""
    rows = [b("s", 0, 2, 96), b("v", 1, 2, 96), b("t", 2, 4, 96)]
    returned = persist(rows, outputs=["v"], end=5)
    assert plan(returned, constraints=colocated(("s", "v"))).peak == 192
    assert plan(rows, constraints=colocated(("s", "v"))).peak == 96


def test_reuse_switched_off() -> None:
    """Entry 14: with naive no two buffers share bytes, but aliases still do."""
    rows = [b("a", 0, 1, 8), b("view", 0, 2, 8), b("c", 3, 4, 8)]
    p = plan(rows, "naive", constraints=colocated(("a", "view")))
    assert (p["a"], p.peak) == (p["view"], 16)


def test_a_buffer_larger_than_the_chunk() -> None:
    """Entry 35: it is named, with the chunk."""
    with pytest.raises(
        InvalidProblemError, match=r"'big' fits at no offset, because of chunks of 64"
    ) as caught:
        plan([b("big", 0, 2, 65)], constraints=Constraints(chunk=64))
    assert caught.value.id == "big"
    assert plan([b("a", 0, 2, 40), b("c", 0, 2, 40)], constraints=Constraints(chunk=64)).peak == 104


def test_a_pin_beyond_the_capacity() -> None:
    """Entry 36: a pin is honoured or refused, never moved."""
    with pytest.raises(InfeasibleError, match="the pin of buffer 'f'") as caught:
        plan([b("f", 0, 4, 8, pin=16)], capacity=20)
    assert (caught.value.ids, caught.value.short_by) == (("f",), 4)
    with pytest.raises(InvalidProblemError, match="pinned offset 18 is not a multiple"):
        plan([b("f", 0, 4, 8, alignment=4, pin=18)])


def test_a_buffer_that_grows() -> None:
    """5.10, N2D2: 1024 and 2048 use 3072; with 512 more, 3584, and nobody has moved."""
    before = plan([b("a", 0, 2, 1024), b("c", 0, 2, 2048)], "greedy", order="given")
    after = plan([b("a", 0, 2, 1024), b("c", 0, 2, 2560)], hint=before)
    assert (before.peak, after.peak, after.offsets) == (3072, 3584, before.offsets)


def test_bytes_beyond_the_end() -> None:
    """Entry 19: padding that kernels may read is in the arena and the capacity, not in the peak."""
    rules = Constraints(tail_padding=16)
    p = plan([(0, 1, 50)], alignment=32, constraints=rules)
    assert (p.peak, p.lower_bound, p.arena_size) == (50, 50, 96)
    assert plan([(0, 1, 48)], capacity=64, constraints=rules).peak == 48
    with pytest.raises(InfeasibleError, match=r"no plan fits into 48 B \(64 B less 16 B"):
        plan([(0, 1, 49)], capacity=64, constraints=rules)


LEFT_OUT = {
    "rp_penalty, rp_bad_penalty, rp_relaxed, rp_relax_inactive, rp_secondary": "no soft penalties",
    "graph-compiler traces, TFLite simple graph": "the source's buffers are not in the data",
    "doc_plan_wrong": "rows.csv does not have tflm_shim_doc",
    "5.11": "sizes are numbers",
}


@pytest.mark.parametrize("vectors", LEFT_OUT)
def test_vectors_that_are_left_out(vectors: str) -> None:
    """What CONSTRAINTS.md has and this file has not, and why."""
    pytest.skip(f"{vectors}: {LEFT_OUT[vectors]}")


# -- what contradicts itself ----------------------------------------------------------------------

TWO = [b("a", 0, 2, 8), b("b", 1, 3, 8)]
PINNED = [b("a", 0, 2, 8, pin=4), b("b", 4, 5, 8)]
FAR = 2**62 - 1


@pytest.mark.parametrize(
    ("rows", "rules", "message"),
    [
        (TWO, {"apart": ["ab"]}, "apart must be a list of pairs of ids, but has 'ab'"),
        (TWO, {"apart": [("a", "z")]}, "apart: there is no buffer 'z'"),
        (TWO, {"apart": [("a", "a")]}, "buffer 'a' is paired with itself"),
        (TWO, {"apart": [("a", "b")], "exclusive": [("b", "a")]}, "'[ab]' .*'[ab]', and excl"),
        (TWO, {"apart": [("a", "b")], "aliases": [("b", "a")]}, "'[ab]' .*'[ab]', and exclus"),
        (TWO, {"apart": [("a", "b")], "in_place": [("a", "b")]}, "'[ab]' .*'[ab]', and in pl"),
        (TWO, {"in_place": [("b", "a")]}, "'a' cannot be in place of buffer 'b'"),
        (
            TWO,
            {"aliases": [("a", "b"), ("a", "b", 4)]},
            "'b' .* 4 bytes above buffer 'a', but .* 0",
        ),
        (TWO, {"aliases": [("a", "b")], "relative": [("a", "b", 8)]}, "'b' .* 8 .* 'a', but .* 0"),
        (TWO, {"relative": [("a", "b", 8), ("b", "a", 8)]}, "'b' .* -8 .* 'a', but .* put it 8"),
        (TWO, {"relative": [("a", "b", 4)]}, "'b' lies at a fixed distance from buffer 'a' at wh"),
        (TWO, {"relative": [("a", "b", FAR)]}, "add up to 2\\*\\*62"),
        (TWO, {"reserved": [(0, FAR)]}, "add up to 2\\*\\*62"),
        (
            [*TWO, b("c", 0, 1, 8)],
            {"relative": [("a", "b", FAR), ("b", "c", FAR)]},
            "'b' lies 2\\*\\*62 bytes or more above buffer 'a'|'c' lies .* above buffer 'a'",
        ),
        (TWO, {"reserved": [(0, -1)]}, "reserved must be at least 0, got -1"),
        (TWO, {"tail_padding": -1}, "tail_padding must be at least 0, got -1"),
        (TWO, {"chunk": 4}, "'a' fits at no offset, because of chunks of 4"),
        (
            [b("a", 0, 1, 6, alignment=8), b("b", 0, 1, 6)],
            {"chunk": 8, "relative": [("a", "b", 4)]},
            "'b' lies at a fixed distance from buffer 'a' at which they share",
        ),
        (
            [b("a", 0, 1, 6, alignment=8), b("b", 2, 3, 6)],
            {"chunk": 8, "relative": [("a", "b", 4)]},
            "'a' fits at no offset, because of its alignment and chunks of 8",
        ),
        (
            [b("a", 0, 1, 8, alignment=8), b("b", 4, 5, 8, alignment=8)],
            {"aliases": [("a", "b", 4)]},
            "'b' lies at a fixed distance from buffer 'a', and at no such distance are both al",
        ),
        (PINNED, {"reserved": [(8, 9)]}, "'a' is pinned to 4, where it would use reserved .*8, 9"),
        (PINNED, {"chunk": 8}, "'a' is pinned to 4, where it would lie across a multiple of 8"),
        (PINNED, {"aliases": [("a", "b", -6)]}, "'a' .*to 4, where buffer 'b', .* at -2, below 0"),
        (
            [PINNED[0], b("b", 4, 5, 8, alignment=8)],
            {"relative": [("a", "b", 8)]},
            "'a' is pinned to 4, where buffer 'b', .* lie at 12, no multiple of its alignment 8",
        ),
        (
            [PINNED[0], b("b", 4, 5, 8, pin=6)],
            {"aliases": [("a", "b")]},
            "'b' is pinned to 6, .* from buffer 'a', pinned to 4",
        ),
        (
            [PINNED[0], b("b", 4, 5, 8, pin=6)],
            {"apart": [("a", "b")]},
            "'b' is pinned to bytes that buffer 'a', pinned too",
        ),
    ],
)
def test_contradictions_name_both_sides(
    rows: list[Buffer], rules: dict[str, Any], message: str
) -> None:
    """What no plan could honour is refused, and everything that is concerned is named."""
    with pytest.raises(InvalidProblemError, match=message):
        Problem(rows, constraints=Constraints(**rules))


def test_where_a_body_may_lie_is_found_at_once() -> None:
    """An offset that is aligned and crosses no chunk may be far up; none is tried in between."""
    odd = 2**31 - 1
    rows = [b("a", 0, 1, 8, alignment=odd), b("b", 0, 1, 8, alignment=odd)]
    assert plan(rows, constraints=Constraints(chunk=2**31)).offsets == (0, 8 * odd)
    whole = [replace(row, size=2**31) for row in rows]
    with pytest.raises(InvalidProblemError, match=r"add up to 2\*\*62"):
        plan(whole, constraints=Constraints(chunk=2**31))


@examples(300)
@given(st.data())
def test_domains_by_definition(data: st.DataObject) -> None:
    """The first allowed offset from any on is the first that breaks no rule."""
    draw, small = data.draw, st.integers(1, 9)
    modulus, chunk = draw(small), draw(st.integers(6, 12))
    remainder = draw(st.integers(0, modulus - 1))
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    rows = [Buffer(2 * i, 2 * i + 1, size, id=i) for i, size in enumerate(sizes)]
    deltas = [(0, i, draw(st.integers(0, 12))) for i in range(1, len(rows))]
    reserved = [(start, start + draw(small)) for start in draw(st.lists(st.integers(0, 30)))]
    rules = Constraints(chunk=chunk, relative=deltas, reserved=reserved)
    rows[0] = replace(rows[0], alignment=modulus)
    last = 4 * max(chunk * modulus, 40)
    offsets = [0, *(delta for _, _, delta in deltas)]

    def holds(at: int) -> bool:
        where = [at + offset for offset in offsets]
        return not any(
            start % chunk + size > chunk
            or any(start < stop and begin < start + size for begin, stop in reserved)
            for start, size in zip(where, sizes, strict=True)
        )

    allowed = [at for at in range(0, last, modulus) if holds(at)]
    if not allowed:
        with pytest.raises(InvalidProblemError, match="fits at no offset"):
            Problem(rows, constraints=rules)
        return
    (domain,) = Problem(rows, constraints=rules).bodies.domain
    start = draw(st.integers(0, 40)) + remainder
    assert domain.first(start) == next(at for at in allowed if at >= start)


# -- 5.9: what validators must say ----------------------------------------------------------------

GAPS = [b("0", 0, 10, 2, (1, 9)), b("1", 5, 15, 2, (6, 14))]
THREE = [b("0", 0, 1, 2), b("1", 1, 2, 1), b("2", 1, 2, 1)]
VELA = closed(b("a", 4, 8, 10000, alignment=16), b("b", 7, 12, 2000, alignment=16))
ARMNN = [(0, 5, 20), (6, 10, 10), (11, 15, 15), (16, 20, 20), (21, 25, 5)]


@pytest.mark.parametrize(
    ("rows", "offsets", "capacity", "kinds"),
    [
        pytest.param(
            [(0, 1, 2), (1, 3, 1), (2, 4, 1), (3, 5, 1)], [0, 0, 1, 0], 2, [], id="mm_val_good"
        ),
        pytest.param(GAPS, [0, 0], 2, [], id="mm_val_gaps"),
        pytest.param(
            [b("0", 0, 10, 2, (1, 8)), b("1", 5, 15, 2, (8, 14))], [0, 0], 2, [],
            id="mm_val_gaps_edge",
        ),
        pytest.param(
            [b("0", 0, 10, 2, (1, 7)), b("1", 5, 15, 2, (8, 14))], [0, 0], 2, ["overlap"],
            id="mm_val_gap_overlap",
        ),
        pytest.param(THREE, [0, 0], 2, ["missing"], id="mm_val_count"),
        pytest.param(
            [*THREE[:2], replace(THREE[2], offset=0)][::2], [0, 1], 2, ["moved pin"],
            id="mm_val_fixed",
        ),
        pytest.param(THREE, [0, 0, -1], 2, ["negative"], id="mm_val_neg"),
        pytest.param(THREE, [0, 0, 2], 2, ["over capacity"], id="mm_val_range"),
        pytest.param(THREE, [0, 0, 0], 2, ["overlap"], id="mm_val_overlap"),
        pytest.param(
            [b("0", 0, 1, 2), b("1", 1, 2, 1, alignment=2)], [0, 1], 2, ["misaligned"],
            id="mm_val_align",
        ),
        pytest.param(VELA, [16, 32], None, ["overlap"], id="vela_val"),
        pytest.param(VELA, [16, 160000], None, [], id="vela_val_ok"),
        pytest.param(closed(*(Buffer(*row) for row in ARMNN)), [0] * 5, None, [], id="armnn_val_1"),
        pytest.param(
            [(0, 6 * k, size) for k, (_, _, size) in enumerate(ARMNN, 1)], [0] * 5, None,
            ["overlap"] * 10, id="armnn_val_2",
        ),
        pytest.param(
            [(0, 3, 20), (0, 4, 10), (0, 6, 15), (0, 7, 20), (0, 9, 5)], [0, 21, 37, 58, 79], None,
            [], id="armnn_val_3",
        ),
        pytest.param([(0, 3, 10), (1, 4, 10)], [0, 5], None, ["overlap"], id="armnn misses this"),
        pytest.param(THREE, [0, 0, None], None, ["missing"], id="om_val_unplaced"),
    ],
)  # fmt: skip
def test_verdicts(rows: Any, offsets: Any, capacity: int | None, kinds: list[str]) -> None:
    """Each planner's own validator cases get the verdict that its source gives."""
    assert [v.kind for v in validate(offsets, rows, capacity=capacity)] == kinds


def test_two_allocations_of_one_id() -> None:
    """om_val_dup."""
    with pytest.raises(InvalidProblemError, match="two buffers have this id"):
        Problem([b("a", 0, 1, 8), b("a", 1, 2, 8)])


@pytest.mark.parametrize("height", [2, 4])
def test_a_height_must_be_exact(height: int) -> None:
    """mm_val_height_low and mm_val_height_high: a plan cannot claim another peak than it has."""
    p = plan([*THREE[:2], replace(THREE[2], offset=2)])
    assert p.peak == 3
    with pytest.raises(InvalidPlanError, match=f"claims peak {height}"):
        Plan.from_dict(p.to_dict() | {"peak": height})


# -- the validator --------------------------------------------------------------------------------

CONSTRAINED = problems(max_buffers=6, alignments=True, pins=True, holes=True, constraints=RULES)


def verdict(problem: Problem, offsets: Any) -> set[tuple[str, frozenset[int]]]:
    """Kinds and positions of what `validate` says."""
    return {(v.kind, frozenset(map(problem.index, v.ids))) for v in validate(offsets, problem)}


@examples(200)
@given(CONSTRAINED, st.data())
def test_the_validator_agrees_with_the_definition(problem: Problem, data: st.DataObject) -> None:
    """It finds just the broken rules that the definition does, for any offsets."""
    n = len(problem)
    offsets = data.draw(st.lists(st.integers(0, 24), min_size=n, max_size=n))
    assert verdict(problem, offsets) == oracle.broken_rules(problem, offsets)


@examples(100)
@given(CONSTRAINED, st.data())
def test_a_fault_in_a_plan_is_found(problem: Problem, data: st.DataObject) -> None:
    """One buffer of a valid plan is moved: what that breaks is found, and nothing else."""
    offsets = list(plan(problem, "greedy-by-size").offsets)
    assert verdict(problem, offsets) == oracle.broken_rules(problem, offsets) == set()
    i = data.draw(st.integers(0, len(problem) - 1))
    offsets[i] = max(offsets[i] + data.draw(st.integers(-9, 9)), 0)
    assert verdict(problem, offsets) == oracle.broken_rules(problem, offsets)


X, Y = b("x", 0, 2, 8), b("y", 1, 3, 8)


@pytest.mark.parametrize(
    ("rows", "rules", "good", "bad", "message"),
    [
        (
            [b("x", 0, 4, 8, (1, 3)), b("y", 1, 3, 8)], {}, [0, 0], None, "",
        ),
        (
            [b("x", 0, 4, 8, (1, 3)), b("y", 1, 4, 8)], {}, [0, 8], [0, 0],
            "overlap: buffers 'x' and 'y' share bytes [0, 8) in steps [3, 4)",
        ),
        (
            [b("x", 0, 4, 8, (1, 4, 0, 2)), b("y", 1, 4, 8)], {}, [0, 2], [0, 1],
            "overlap: buffers 'x' and 'y' share bytes [1, 2) in steps [1, 4)",
        ),
        (
            [X, b("z", 5, 6, 4)], {"apart": [("x", "z")]}, [0, 8], [0, 6],
            "not apart: buffers 'x' and 'z' share bytes [6, 8)",
        ),
        (
            [X, Y], {"exclusive": [("x", "y")]}, [0, 3], None, "",
        ),
        (
            [X, Y], {"in_place": [("x", "y")]}, [0, 0], [0, 4],
            "overlap: buffers 'x' and 'y' share bytes [4, 8) in steps [1, 2)",
        ),
        (
            [X, Y], {"aliases": [("x", "y", 4)]}, [0, 4], [0, 0],
            "wrong distance: buffer 'y' lies 0 bytes above 'x', not 4",
        ),
        (
            [X, Y], {"relative": [("x", "y", 8)]}, [0, 8], [8, 0],
            "wrong distance: buffer 'y' lies -8 bytes above 'x', not 8",
        ),
        (
            [X], {"reserved": [(4, 6)]}, [6], [0],
            "reserved: buffer 'x' uses reserved bytes [4, 6)",
        ),
        (
            [X], {"chunk": 12}, [4], [6],
            "across a chunk: buffer 'x' lies across a multiple of 12: bytes [6, 14)",
        ),
    ],
)  # fmt: skip
def test_planted_faults(
    rows: list[Buffer], rules: dict[str, Any], good: list[int], bad: list[int] | None, message: str
) -> None:
    """A fault of each kind is told in words, with its buffers, bytes and steps."""
    problem = Problem(rows, constraints=Constraints(**rules))
    assert validate(good, problem) == ()
    if bad is not None:
        assert list(map(str, validate(bad, problem))) == [message]


# -- constraints that ask for nothing -----------------------------------------------------------

IDLE = {
    "reserved far above": {"reserved": [(2**40, 2**41)]},
    "one huge chunk": {"chunk": 2**50},
}


@pytest.mark.parametrize("rules", IDLE.values(), ids=IDLE.keys())
@pytest.mark.parametrize(
    "solver", ["linear-scan", "greedy-by-size", "greedy-by-breadth", "best-fit", "strip-packing"]
)
def test_a_rule_that_asks_for_nothing(solver: str, rules: dict[str, Any]) -> None:
    """Solvers that place one by one give the plan that they give without the rule."""

    @examples(50)
    @given(problems(alignments=True, pins=True))
    def check(problem: Problem) -> None:
        ruled = Problem(problem, constraints=Constraints(**rules))
        assert plan(ruled, solver).offsets == plan(problem, solver).offsets

    check()


@examples(50)
@given(problems(max_buffers=6, alignments=True, pins=True))
def test_a_hole_that_is_none(problem: Problem) -> None:
    """A window as large as the buffer changes neither the bound nor what exact finds."""
    rows = [
        replace(row, holes=((row.lower, row.upper, 0, row.size),)) for row in problem if row.size
    ]
    plain = Problem([replace(row, holes=()) for row in rows])
    assert plan(rows, "exact").peak == plan(plain, "exact").peak
    assert Problem(rows).load == plain.load


@examples(50)
@given(problems(max_buffers=6, alignments=True, pins=True), st.data())
def test_pairs_that_are_apart_anyway(problem: Problem, data: st.DataObject) -> None:
    """To say of buffers that are live together that they are apart changes no peak."""
    conflicts = sorted(oracle.conflicts(problem))
    chosen = data.draw(st.lists(st.sampled_from(conflicts), unique=True)) if conflicts else []
    rules = Constraints(apart=[(problem.ids[i], problem.ids[j]) for i, j in chosen])
    ruled = plan(problem, "exact", constraints=rules)
    assert ruled.peak == plan(problem, "exact").peak


@examples(50)
@given(CONSTRAINED)
def test_the_order_of_rules_does_not_matter(problem: Problem) -> None:
    """Rows of constraints in another order, pairs turned round: one fingerprint, one peak."""
    rules = problem.constraints
    turned = Constraints(
        apart=[(y, x) for x, y in rules.apart[::-1]],
        exclusive=[(y, x) for x, y in rules.exclusive[::-1]],
        in_place=rules.in_place[::-1],
        aliases=[(y, x, -delta) for x, y, delta in rules.aliases[::-1]],
        relative=[(y, x, -delta) for x, y, delta in rules.relative[::-1]],
        reserved=rules.reserved[::-1],
        chunk=rules.chunk,
    )
    other = Problem(problem, constraints=turned)
    assert plan(other, "exact").peak == plan(problem, "exact").peak
    again = Constraints(**{name: getattr(rules, name) for name in RULES})
    assert Problem(problem, constraints=again).fingerprint == problem.fingerprint


@examples(30)
@given(CONSTRAINED)
def test_backwards_in_time(problem: Problem) -> None:
    """Time reversed, holes too, the optimum is the same (in-place pairs have a direction)."""
    rules = {name: getattr(problem.constraints, name) for name in RULES if name != "in_place"}
    forwards = Problem(problem, constraints=Constraints(**rules))
    rows = [
        replace(
            row,
            lower=-row.upper,
            upper=-row.lower,
            holes=tuple((-z, -a, *window) for a, z, *window in row.holes[::-1]),
        )
        for row in forwards
    ]
    backwards = Problem(rows, constraints=forwards.constraints)
    assert plan(backwards, "exact").peak == plan(forwards, "exact").peak


def test_bounds_know_a_clique_without_a_step() -> None:
    """Three that meet two by two, no three at one step, need all three: more than the load."""
    rows = [b("a", 1, 6, 4, (2, 5)), b("b", 1, 4, 3), b("c", 3, 6, 2)]
    p = plan(rows, "greedy-by-size")
    assert (p.problem.load, p.lower_bound, p.peak, p.status) == (7, 9, 9, "optimal")
    assert (p.bound_witness.kind, set(p.bound_witness.ids)) == ("clique", {"a", "b", "c"})


def test_a_peak_below_the_load() -> None:
    """Exclusive buffers that share bytes are live together: the summary says so."""
    rules = Constraints(exclusive=[("a", "b")])
    p = plan([b("a", 0, 2, 64), b("b", 0, 2, 64)], constraints=rules)
    assert "peak:    64 B, 64 B below the load" in p.summary()


def test_ids_are_pythons_own() -> None:
    """Rules with ids of NumPy are those with Python's, and can be written as JSON."""
    rules = Constraints(apart=[(np.int64(0), np.int64(1))], aliases=[(np.str_("a"), "b")])
    assert rules == Constraints(apart=[(0, 1)], aliases=[("a", "b")])
    assert json.loads(json.dumps(rules.to_dict())) == {
        "apart": [[0, 1]],
        "aliases": [["a", "b", 0]],
    }


def test_columns_of_holes() -> None:
    """Holes as an array of columns are those of the buffers."""
    rows = np.array([[0, 1, 3, 0, 0], [1, 2, 4, 1, 5]])
    problem = Problem.from_columns([0, 0], [5, 5], [8, 8], holes=rows)
    assert problem == Problem(
        [Buffer(0, 5, 8, holes=[(1, 3)]), Buffer(0, 5, 8, holes=[(2, 4, 1, 5)])]
    )

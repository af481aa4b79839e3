"""Proofs: what the search logs is accepted, what does not hold is not."""

from __future__ import annotations

import json
import pickle
import random
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dsa import Buffer, InfeasibleError, InvalidPlanError, InvalidProofError, Plan, Problem, plan
from dsa.bench.proofs import EIGHT, SEVEN, chained, noisy, scaled
from dsa.bounds import lower_bound
from dsa.kernels import compiled
from dsa.kernels.search import FOUND, REFUTED
from dsa.kernels.searcher import Searcher
from dsa.proof import Proof, check
from dsa.testing import optimum as reference_optimum
from dsa.testing import problems

Row = tuple[int, int, int]

SWITCHES = ("symmetry", "one_machine", "components", "backjumping", "nogoods")

FAMILIES = {
    "seven": SEVEN,
    "eight": EIGHT,
    "scaled": scaled(SEVEN, 1000),
    "beside others": [*scaled(SEVEN, 10), (5, 7, 45), (7, 9, 40), (0, 9, 3)],
    "above two": [*scaled(SEVEN, 4), (0, 5, 3), (0, 5, 9)],
    "two chained": chained(SEVEN, 2, 10),
    "three chained": chained(SEVEN, 3, 2),
    "two eights": chained(EIGHT, 2, 10),
    "noise": noisy(scaled(SEVEN, 20), 3, seed=3),
    "more noise": noisy(scaled(EIGHT, 20), 4, seed=1),
    "chained noise": noisy(chained(SEVEN, 2, 3), 2, seed=1),
}


def refutation(
    problem: Problem, capacity: int, *, seed: int = 0, rule: int = 0, **options: bool
) -> Proof | None:
    """The kernel's own log, for a random rank; None if a plan fits."""
    searcher = Searcher(problem, log=True, **options)
    order = np.random.default_rng(seed).permutation(len(problem))
    searcher.begin(np.argsort(order), capacity=capacity, rule=rule)
    status = searcher.run(1 << 40)
    assert status in (FOUND, REFUTED)
    if status == FOUND:
        return None
    return Proof(
        tuple(problem.ids[i] for i in order.tolist()),
        capacity,
        symmetry=options.get("symmetry", True),
        one_machine=options.get("one_machine", False),
        log=tuple(searcher.log),
    )


def proved(problem: Problem, capacity: int, **options: Any) -> Proof:
    """The same where it is known that no plan fits."""
    proof = refutation(problem, capacity, **options)
    assert proof is not None
    return proof


# -- what holds ------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", FAMILIES.values(), ids=FAMILIES)
def test_bounds_above_the_load_are_proven(rows: list[Row]) -> None:
    """`exact` proves optima above the load, and the checker accepts the proof of the very bound."""
    p = plan(rows, "exact", proof=True, nodes=20_000)
    assert p.status == "optimal"
    assert p.lower_bound > p.problem.load
    assert p.proof is not None
    assert check(p.problem, p.proof) == p.lower_bound


@pytest.mark.parametrize("rule", range(5))
@pytest.mark.parametrize("switches", list(product([True, False], repeat=len(SWITCHES))))
def test_logs_of_every_kind_of_search_are_accepted(rule: int, switches: tuple[bool, ...]) -> None:
    """Whatever the search leaves out, its log is a proof."""
    problem = Problem(FAMILIES["two chained"])
    options = dict(zip(SWITCHES, switches, strict=True))
    assert check(problem, proved(problem, 45, rule=rule, **options)) == 50


@settings(max_examples=100)
@given(
    problem=problems(max_buffers=7, alignments=True, pins=True, zero_sizes=False),
    seed=st.integers(0, 9),
    rule=st.integers(0, 4),
    options=st.fixed_dictionaries({name: st.booleans() for name in SWITCHES}),
)
def test_each_capacity_below_the_optimum_is_refuted(
    problem: Problem, seed: int, rule: int, options: dict[str, bool]
) -> None:
    """The log proves a bound above the capacity, and none above the optimum."""
    assume(len(problem))
    optimum = reference_optimum(problem)
    for capacity in range(lower_bound(problem).value, optimum + 1):
        proof = refutation(problem, capacity, seed=seed, rule=rule, **options)
        assert (proof is None) == (capacity >= optimum)
        if proof is not None:
            assert capacity < check(problem, proof) <= optimum


@pytest.mark.parametrize("backjumping", [True, False])
def test_a_pinned_buffer_between_twins_changes_nothing(backjumping: bool) -> None:
    """Equal buffers are twins to search and checker alike, also if one between them is pinned."""
    problem = Problem([Buffer(3, 5, 2), Buffer(3, 5, 2, offset=3), Buffer(0, 5, 2)])
    searcher = Searcher(problem, log=True, backjumping=backjumping)
    searcher.begin(np.arange(3), capacity=6)
    assert searcher.run(100) == REFUTED
    assert searcher.log == [0, 0]
    assert check(problem, Proof((0, 1, 2), 6, log=(0, 0))) == 7


@settings(max_examples=100)
@given(problem=problems(max_buffers=7, alignments=True, pins=True))
def test_what_the_solver_proves_is_what_it_claims(problem: Problem) -> None:
    """A plan of `exact` with a searched bound has a proof of it, through all reductions."""
    p = plan(problem, "exact", proof=True, nodes=2000)
    assert (p.proof is not None) == (p.bound_witness.kind == "search")
    if p.proof is not None:
        assert check(problem, p.proof) == p.lower_bound <= reference_optimum(problem)


@pytest.mark.parametrize("name", ["three chained", "chained noise"])
def test_compiled_logs_are_the_same(name: str) -> None:
    """The compiled kernel writes the log that the other writes."""
    if not compiled.available():
        pytest.skip("numba is not installed")
    problem = Problem(FAMILIES[name])
    logs = []
    for compile in (False, True):
        searcher = Searcher(problem, log=True)
        searcher.begin(np.arange(len(problem)), capacity=problem.load)
        assert searcher.run(1 << 40, compile=compile) == REFUTED
        logs.append(searcher.log)
    assert logs[0] == logs[1]


def test_pauses_leave_no_trace_in_the_log() -> None:
    """A search that is paused after each node writes the same log."""
    problem = Problem(FAMILIES["three chained"])
    searcher = Searcher(problem, log=True)
    searcher.begin(np.arange(len(problem)), capacity=problem.load)
    while searcher.run(1) != REFUTED:
        pass
    paused = searcher.log
    searcher.begin(np.arange(len(problem)), capacity=problem.load)
    searcher.run(1 << 40)
    assert paused == searcher.log


@pytest.mark.parametrize(
    ("kinds", "needed"),
    [
        ([(17, 32), (17, 32)], 49),
        ([(17, 32), (17, 64), (9, 1)], 49),
        ([(1, 1), (1, 4), (1, 6)], 5),
        ([(2, 4), (5, 6), (1, 1), (12, 12)], 22),
        ([(7, 6)] * 20 + [(5, 4)] * 20, 355),
    ],
)
def test_what_is_live_together_needs_no_log(kinds: list[tuple[int, int]], needed: int) -> None:
    """What padding proves is proven by an empty log, and no more than that."""
    rows = [Buffer(i % 2, 2 + i % 2, size, alignment=a) for i, (size, a) in enumerate(kinds)]
    problem = Problem([*rows, Buffer(5, 6, 7)])
    proof = Proof(tuple(range(len(rows))), needed - 1)
    assert check(problem, proof) == needed
    with pytest.raises(InvalidProofError, match="the log ends after 0 entries"):
        check(problem, replace(proof, capacity=needed))


# -- what does not hold ----------------------------------------------------------------------


@settings(max_examples=100)
@given(
    problem=problems(max_buffers=7, alignments=True, pins=True, zero_sizes=False),
    data=st.data(),
)
def test_no_forged_proof_proves_what_is_false(problem: Problem, data: st.DataObject) -> None:
    """Whatever log is presented: it is rejected, or the bound is true all the same."""
    assume(len(problem))
    optimum = reference_optimum(problem)
    forged = Proof(
        tuple(data.draw(st.permutations(problem.ids))),
        data.draw(st.integers(max(problem.load - 1, 0), optimum + 1)),
        unit=data.draw(st.sampled_from([1, 1, 1, 2, 3])),
        symmetry=data.draw(st.booleans()),
        one_machine=data.draw(st.booleans()),
        log=tuple(data.draw(st.lists(st.integers(0, max(len(problem.sections) - 1, 0))))),
    )
    with suppress(InvalidProofError):
        assert check(problem, forged) <= optimum


@st.composite
def edits(draw: st.DrawFn, log: tuple[int, ...], sections: int) -> tuple[int, ...]:
    """The log with a few entries changed, left out, put in or moved."""
    edited = list(log)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(edited)))
        entry = draw(st.integers(-2 - len(edited), sections - 1))
        end = draw(st.integers(at, min(at + 2, len(edited))))
        edited[at:end] = draw(st.sampled_from([[], [entry], edited[at:end] * 2]))
    return tuple(edited)


@settings(max_examples=100)
@given(
    case=st.sampled_from([(SEVEN, 5), (EIGHT, 10), (chained(SEVEN, 2, 2), 10)]),
    kind=st.tuples(st.integers(0, 9), st.integers(0, 4)),
    more=st.integers(0, 1),
    data=st.data(),
)
def test_an_edited_log_proves_nothing_false(
    case: tuple[list[Row], int], kind: tuple[int, int], more: int, data: st.DataObject
) -> None:
    """A log that was accepted, edited, perhaps of more capacity: rejected, or true all the same."""
    problem, optimum = Problem(case[0]), case[1]
    proof = proved(problem, optimum - 1, seed=kind[0], rule=kind[1])
    log = data.draw(edits(proof.log, len(problem.sections)))
    with suppress(InvalidProofError):
        assert check(problem, replace(proof, log=log, capacity=optimum - 1 + more)) <= optimum


@settings(max_examples=15)
@given(
    problem=problems(max_buffers=7, alignments=True, pins=True, zero_sizes=False),
    random=st.randoms(use_true_random=False),
    symmetry=st.booleans(),
)
def test_no_prover_refutes_the_optimum(
    problem: Problem, random: random.Random, symmetry: bool
) -> None:
    """Whoever adds whatever entry the checker takes, citing all it can, never gets to the end."""
    assume(len(problem))
    ids, optimum = tuple(random.sample(problem.ids, len(problem))), reference_optimum(problem)
    log: tuple[int, ...] = ()
    for _ in range(30):
        cited = random.sample(range(-1 - len(log), 0), min(len(log) + 1, 6))
        opened = random.sample(range(len(problem.sections)), len(problem.sections))
        for entry in [*cited, *opened]:
            proof = Proof(ids, optimum, symmetry=symmetry, log=(*log, entry))
            with pytest.raises(InvalidProofError) as caught:
                check(problem, proof)
            if caught.value.entry == len(log) + 1:  # it ends there, but has held so far
                log = proof.log
                break


def errors_in(proof: Proof, sections: int) -> list[Proof]:
    """The proof with an error in each place."""
    log = proof.log
    logs = [log[:i] + log[i + 1 :] for i in range(len(log))]
    logs += [log[:i] for i in range(len(log))]
    entries = range(-2 - len(log), sections + 1)
    logs += [(*log[:i], s, *log[i + 1 :]) for i in range(len(log)) for s in entries]
    logs += [(*log, s) for s in entries]
    ids = [
        (*proof.ids[:i], proof.ids[i + 1], proof.ids[i], *proof.ids[i + 2 :])
        for i in range(len(proof.ids) - 1)
    ]
    subsets = [proof.ids[:i] + proof.ids[i + 1 :] for i in range(len(proof.ids))]
    return [
        *[replace(proof, log=log) for log in logs if log != proof.log],
        *[replace(proof, ids=order) for order in ids + subsets],
        *[replace(proof, capacity=proof.capacity + more) for more in (1, 5, 50)],
        *[replace(proof, symmetry=False), replace(proof, one_machine=True)],
        *[replace(proof, unit=2), replace(proof, bottom=proof.ids[:1], ids=proof.ids[1:])],
    ]


@pytest.mark.parametrize(("times", "kinds"), [(1, {"open", "back"}), (2, {"open", "back", "cite"})])
def test_planted_errors_are_caught(times: int, kinds: set[str]) -> None:
    """Each change is rejected, but for those that leave a proof of the bound."""
    problem, optimum = Problem(chained(SEVEN, times, 2)), 10
    proof = proved(problem, optimum - 1, rule=2)
    assert {"open" if e >= 0 else "back" if e == -1 else "cite" for e in proof.log} == kinds
    forgeries, accepted = errors_in(proof, len(problem.sections)), []
    for forged in forgeries:
        with suppress(InvalidProofError):
            assert check(problem, forged) <= optimum
            accepted.append(forged)
    assert len(accepted) < len(forgeries) / 4
    assert [forged for forged in accepted if forged.capacity != proof.capacity] == []


PROOF = proved(Problem(SEVEN), 4)


@pytest.mark.parametrize(
    ("change", "entry", "message"),
    [
        ({"log": PROOF.log[:3]}, 3, "the log ends after 3 entries, but not all is refuted"),
        ({"log": (*PROOF.log, 0, 0)}, 9, "entry 9 of the log: all is refuted, yet 2 entries"),
        ({"log": (-2,)}, 0, "entry 0 of the log: entry 0 is not refuted, or not by itself"),
        ({"log": (0, -2)}, 1, "entry 1 of the log: entry 0 is not refuted, or not by itself"),
        ({"log": (9,)}, 0, "entry 0 of the log: no buffer waits over section 9"),
        ({"log": (-1,)}, 0, "entry 0 of the log: no buffer waits over section -1"),
        ({"log": (0, 0)}, 1, "entry 1 of the log: section 0 is in no niche: the floor is lower"),
        ({"log": ()}, 0, "the log ends after 0 entries"),
        ({"ids": ()}, None, "the proof is about no buffers"),
        ({"ids": (0, 1, 1)}, None, "buffer 1 occurs twice"),
        ({"ids": (0, 1, 2), "bottom": (2,)}, None, "buffer 2 occurs twice"),
        ({"ids": (0, "x")}, None, "buffer 'x' is none of the problem's"),
        ({"ids": (0, 7)}, None, "buffer 7 has size 0"),
        ({"unit": 2}, None, "the unit 2 does not divide size and pin of buffer"),
        ({"unit": 0}, None, "the unit cannot be 0"),
        (
            {"ids": (0, 1), "bottom": (6,)},
            None,
            "buffer 6 cannot go to the bottom, below 0: they do not conflict",
        ),
    ],
)
def test_the_error_says_where_a_proof_fails(
    change: dict[str, Any], entry: int | None, message: str
) -> None:
    """It names the entry of the log, or the buffer."""
    with pytest.raises(InvalidProofError, match="^" + message.replace("(", r"\(")) as caught:
        check(Problem([*SEVEN, (0, 1, 0)]), replace(PROOF, **change))
    assert caught.value.entry == entry


@pytest.mark.parametrize(
    ("lowest", "other", "why"),
    [
        (Buffer(0, 9, 8), Buffer(1, 2, 4, offset=8), "one of them is pinned"),
        (Buffer(0, 9, 8, offset=0), Buffer(1, 2, 4), "one of them is pinned"),
        (Buffer(0, 9, 8), Buffer(1, 2, 4, alignment=3), "8 is no multiple of the alignment 3"),
    ],
)
def test_not_every_buffer_can_go_to_the_bottom(lowest: Buffer, other: Buffer, why: str) -> None:
    """Pins and alignments may forbid to put a buffer below the others."""
    with pytest.raises(InvalidProofError, match=why):
        check(Problem([lowest, other]), Proof((1,), 1, bottom=(0,)))


def test_a_unit_must_go_with_the_alignments() -> None:
    """A unit that neither divides an alignment nor is a multiple of it may lose plans."""
    problem = Problem([Buffer(0, 2, 6), Buffer(1, 3, 6, alignment=4)])
    with pytest.raises(InvalidProofError, match="unit 6 neither divides the alignment 4"):
        check(problem, Proof((0, 1), 11, unit=6))
    assert check(problem, Proof((0, 1), 11, unit=2)) == 12


# -- where it is carried -----------------------------------------------------------------------


def test_a_plan_carries_its_proof() -> None:
    """Through JSON and pickle; what is read back has been checked again."""
    p = plan(FAMILIES["above two"], "exact", proof=True)
    assert p.proof is not None
    assert len(p.proof.bottom) == 2
    data = json.loads(json.dumps(p.to_dict()))
    for again in (Plan.from_dict(data), pickle.loads(pickle.dumps(p))):
        assert (again.proof, again.bound_witness) == (p.proof, p.bound_witness)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"proof": {"log": []}}, "the proof lacks or does not know 'bottom', 'capacity', 'ids'"),
        ({"proof": 7}, "the plan's 'proof' cannot be 7"),
        ({"log": "0"}, "the proof's 'log' cannot be '0'"),
        ({"log": [0, "1"]}, "the proof's log cannot hold '1'"),
        ({"symmetry": 1}, "the proof's 'symmetry' cannot be 1"),
        ({"log": [0]}, "the plan's proof does not hold: the log ends after 1 entries"),
        ({"ids": [{}, 1]}, "the proof cannot be about {}"),
    ],
)
def test_a_plan_with_a_wrong_proof_is_not_read(change: dict[str, Any], message: str) -> None:
    """The error says that it is the proof, and what is wrong with it."""
    data = plan(SEVEN, "exact", proof=True).to_dict()
    data |= change if "proof" in change else {"proof": data["proof"] | change}
    with pytest.raises(InvalidPlanError, match=message):
        Plan.from_dict(data)


def test_a_proof_of_less_than_the_claim_is_not_enough() -> None:
    """A plan whose proof holds, but of a lower bound than it claims, is refused."""
    low = plan(SEVEN, "exact", proof=True)
    high = plan(SEVEN, "naive").to_dict() | {"bound_witness": {"kind": "search"}}
    assert low.proof is not None
    with pytest.raises(InvalidPlanError, match="lower bound 11"):
        Plan.from_dict(high | {"proof": low.proof.to_dict(), "lower_bound": 11})


def test_without_the_option_there_is_no_proof() -> None:
    """A bound that a search gave is claimed, not proven, by default."""
    p = plan(SEVEN, "exact")
    assert (p.lower_bound, p.bound_witness.kind, p.proof) == (5, "search", None)


def test_an_infeasible_capacity_comes_with_the_proof() -> None:
    """The error says that a search proved it, of which buffers, and carries the proof."""
    with pytest.raises(InfeasibleError, match="because a search refuted all below") as caught:
        plan(FAMILIES["beside others"], "exact", proof=True, capacity=50)
    error = caught.value
    assert (error.kind, error.lower_bound, error.step) == ("search", 53, None)
    assert error.proof is not None
    assert set(error.ids) == {0, 1, 2, 3, 4, 5, 6, 9}
    assert check(Problem(FAMILIES["beside others"]), error.proof) == 53

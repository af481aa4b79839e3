"""The search by pairs, and the checker of its proofs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dsa import InvalidProofError, Problem, plan
from dsa.bench.proofs import EIGHT, SEVEN, noisy, scaled
from dsa.bounds import lower_bound
from dsa.budget import Budget
from dsa.kernels.placement import stack
from dsa.proof import Proof, check
from dsa.result import peak
from dsa.solvers.disjunctive import PairSearch
from dsa.testing import optimum, problems
from dsa.validation import validate

SMALL = problems(max_buffers=6, alignments=True, pins=True, zero_sizes=False)


def searched(problem: Problem, *, keep_log: bool = False, steps: int | None = None) -> PairSearch:
    """To the end, from a plan without reuse; perhaps so many nodes at a time."""
    start = np.asarray(plan(problem, "naive").offsets)
    search = PairSearch(problem.bodies, list(range(len(problem))), start, keep_log=keep_log)
    while not search.proved:
        search.run(Budget(), -1, None if steps is None else search.nodes + steps)
    return search


def proved(problem: Problem) -> Proof:
    """That nothing is below the optimum."""
    search = searched(problem, keep_log=True)
    return Proof(problem.ids, search.peak - 1, pairs=True, log=tuple(search.log))


@settings(max_examples=100)
@given(problem=SMALL, steps=st.one_of(st.none(), st.integers(1, 3)))
def test_it_ends_at_the_optimum(problem: Problem, steps: int | None) -> None:
    """In one go or a few nodes at a time, with a valid plan."""
    assume(len(problem))
    search = searched(problem, steps=steps)
    assert search.peak == optimum(problem) == peak(problem, search.offsets)
    assert not validate(search.offsets, problem)


@settings(max_examples=100)
@given(problem=SMALL)
def test_its_log_proves_that_nothing_is_lower(problem: Problem) -> None:
    """The checker accepts it; and refuses it for the optimum itself, and a log without its end."""
    assume(len(problem))
    proof = proved(problem)
    best = optimum(problem)
    assert check(problem, proof) == best
    with pytest.raises(InvalidProofError):
        check(problem, replace(proof, capacity=best))
    if proof.log:
        with pytest.raises(InvalidProofError, match="not all is refuted"):
            check(problem, replace(proof, log=proof.log[:-1]))


@pytest.mark.parametrize("rows", [SEVEN, EIGHT], ids=["seven", "eight"])
@pytest.mark.parametrize("seed", range(4))
def test_decisions_without_a_part_are_not_in_the_log(
    rows: list[tuple[int, int, int]], seed: int
) -> None:
    """Where the search jumps back, what it undid is left out, and the rest is a proof."""
    problem = Problem(noisy(scaled(rows, 20), 6, seed))
    search = searched(problem, keep_log=True)
    proof = Proof(problem.ids, search.peak - 1, pairs=True, log=tuple(search.log))
    assert check(problem, proof) == search.peak
    assert len(search.log) < search.nodes


@settings(max_examples=100)
@given(problem=SMALL, data=st.data())
def test_no_edited_log_proves_what_is_false(problem: Problem, data: st.DataObject) -> None:
    """Whatever the log says, a capacity that is enough is not refuted."""
    assume(len(problem))
    log = data.draw(st.lists(st.integers(-2, len(problem) ** 2), max_size=8))
    capacity = optimum(problem) + data.draw(st.integers(0, 3))
    with pytest.raises(InvalidProofError):
        check(problem, Proof(problem.ids, capacity, pairs=True, log=tuple(log)))


def test_planted_errors_are_told() -> None:
    """An entry too many, a pair that does not conflict, and a capacity beyond what is added up."""
    problem = Problem(noisy(scaled(SEVEN, 20), 8, seed=1))
    proof = proved(problem)
    assert len(proof.log) > 10
    with pytest.raises(InvalidProofError, match="yet 1 entries follow"):
        check(problem, replace(proof, log=(*proof.log, 1)))
    with pytest.raises(InvalidProofError, match="entry 0 of the log: no such pair conflicts"):
        check(problem, replace(proof, log=(0, *proof.log[1:])))
    with pytest.raises(InvalidProofError, match="cannot be about more than"):
        check(problem, replace(proof, capacity=1 << 60))


@pytest.mark.parametrize(("rows", "count"), [(SEVEN, 8), (SEVEN, 12), (EIGHT, 8), (EIGHT, 16)])
def test_small_buffers_do_not_hide_the_optimum(
    rows: list[tuple[int, int, int]], count: int
) -> None:
    """`exact` proves what small buffers at many levels kept from it, and leaves a proof."""
    problem = Problem(noisy(scaled(rows, 20), count, seed=1))
    p = plan(problem, "exact", proof=True, nodes=20_000)
    assert p.status == "optimal"
    assert p.lower_bound > lower_bound(problem).value
    assert p.proof is not None
    assert check(problem, p.proof) == p.peak


def test_a_lower_plan_from_elsewhere_is_gone_on_from() -> None:
    """The peak falls, and the log begins again."""
    problem = Problem(SEVEN)
    high = stack(problem, np.arange(len(problem)))
    search = PairSearch(problem.bodies, list(range(7)), high, keep_log=True)
    search.run(Budget(), -1, 2)
    search.improve(np.asarray(plan(problem, "exact").offsets))
    assert (search.peak, search.log) == (5, [])

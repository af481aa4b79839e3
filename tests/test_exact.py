"""The exact search: right on everything small, the same however it is run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsa import Buffer, InfeasibleError, Problem, plan
from dsa.io import read_csv
from dsa.kernels import compiled
from dsa.kernels.search import FOUND, PAUSED, REFUTED
from dsa.kernels.searcher import Searcher
from dsa.solvers.exact import RULES, Exact
from dsa.testing import optimum as reference_optimum
from dsa.testing import problems
from dsa.validation import validate
from tests.record import compare_small, searched_from_the_worst
from tests.shared import SHARED, needs_shared

# THEORY 4.5: the smallest problem whose optimum, 5, is above its load, 4.
ABOVE = [(0, 1, 2), (0, 2, 2), (1, 3, 1), (1, 4, 1), (2, 4, 1), (3, 5, 2), (4, 5, 2)]

SWITCHES = ("one_machine", "cores", "repair", "components", "backjumping", "nogoods", "symmetry")

needs_numba = pytest.mark.skipif(not compiled.available(), reason="numba is not installed")


def switches() -> st.SearchStrategy[dict[str, bool]]:
    """Any combination of the search's ideas."""
    return st.fixed_dictionaries({name: st.booleans() for name in SWITCHES})


@settings(max_examples=150)
@given(
    problems(max_buffers=7, alignments=True, pins=True),
    switches(),
    st.sampled_from(sorted(RULES)),
)
def test_every_combination_of_ideas_finds_and_proves_the_optimum(
    problem: Problem, options: dict[str, Any], rule: str
) -> None:
    """Whatever is switched on or off, peak and bound meet at the optimum of exhaustive search."""
    solver = Exact(accelerate=False, rules=(rule,), **options)
    found = searched_from_the_worst(problem, solver)
    assert not validate(found.offsets, problem)
    assert found.peak(problem) == reference_optimum(problem) >= (found.lower_bound or 0)
    assert plan(problem, solver).status == "optimal"


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_a_sample_of_the_record_run(first: int) -> None:
    """Random problems and options, with proofs and capacities, as in `tests.record`."""
    for i in range(first, first + 20):
        compare_small(i)


def test_a_core_proves_what_the_whole_hides() -> None:
    """Small buffers that leave room everywhere: the bound comes from the seven large ones."""
    rows = [
        *((a, b, 20 * size) for a, b, size in ABOVE),
        (1, 2, 2),
        (4, 5, 2),
        (0, 4, 1),
        (2, 3, 2),
    ]
    found, without = (
        plan(rows, Exact(nodes=5_000, cores=cores, pairs=False)) for cores in (True, False)
    )
    assert (found.peak, found.status) == (100, "optimal")
    assert without.lower_bound < 100


def chain(times: int, scale: int) -> list[Buffer]:
    """ABOVE so many times in a row, with a buffer across each seam."""
    rows = [
        Buffer(lower + 5 * k, upper + 5 * k, size * scale)
        for k in range(times)
        for lower, upper, size in ABOVE
    ]
    return rows + [Buffer(5 * k - 1, 5 * k + 1, 0) for k in range(1, times)]


@pytest.mark.parametrize(("times", "scale"), [(1, 1), (1, 2**40), (3, 1024), (4, 12345)])
def test_an_optimum_above_the_load_is_proven(times: int, scale: int) -> None:
    """No bound but the refutation reaches 5 / 4 of the load; the witness says so."""
    result = plan(chain(times, scale), solver="exact")
    assert (result.problem.load, result.peak, result.lower_bound) == (
        4 * scale,
        5 * scale,
        5 * scale,
    )
    assert result.bound_witness.kind == "search"


def test_a_capacity_below_the_optimum_is_proven_infeasible() -> None:
    """The load fits, no plan does: an error with the proven shortfall."""
    with pytest.raises(InfeasibleError) as caught:
        plan([(a, b, 16 * size) for a, b, size in ABOVE], solver="exact", capacity=64)
    assert (caught.value.lower_bound, caught.value.short_by) == (80, 16)


@pytest.mark.parametrize("unit", [2**24, 10**6, 2**40])
def test_the_bound_does_not_creep_where_sizes_have_no_unit(unit: int) -> None:
    """Sizes that differ by a few bytes: the search goes by halves, and from sum to sum."""
    rows = [(a, b, size * unit + i) for i, (a, b, size) in enumerate(ABOVE)]
    result = plan(rows, solver="exact", nodes=20_000)
    assert result.status == "optimal"
    assert result.peak // unit == 5
    with pytest.raises(InfeasibleError):
        plan(rows, solver="exact", nodes=20_000, capacity=4 * unit + unit // 2)


def test_mixed_alignments_are_searched_by_halves() -> None:
    """With alignments no sum helps; a plan far below the first one is found and proven."""
    big = [Buffer(a, b, size, alignment=2**21, id=i) for i, (a, b, size) in enumerate(ABOVE)]
    result = plan([*big, Buffer(0, 5, 3, alignment=3, id="q")], solver="exact", nodes=20_000)
    assert (result.peak, result.status) == (2**22 + 1, "optimal")


@pytest.mark.parametrize("solver", ["auto", "exact", "hill-climb"])
def test_a_common_multiple_of_alignments_may_pass_any_limit(solver: str) -> None:
    """Nothing computes with the least common multiple in 64 bits."""
    rows = [Buffer(0, 1, 1, alignment=2**40, id=0), Buffer(0, 1, 1, alignment=3**25, id=1)]
    assert plan(rows, solver=solver, time_limit=1).peak == 3**25 + 1


def test_a_target_above_the_capacity_does_not_end_the_search() -> None:
    """What does not fit is not good enough."""
    assert plan(ABOVE, solver="exact", capacity=5, target=100).peak == 5


def ranked(problem: Problem) -> Any:
    """Ranks by size, largest first."""
    return np.argsort(np.argsort(-problem.size, kind="stable"), kind="stable")


def run_in_steps(problem: Problem, capacity: int, step: int, compile: bool) -> tuple[Any, ...]:
    """Status, offsets and counters of one search, paused after every few nodes."""
    searcher = Searcher(problem)
    searcher.begin(ranked(problem), capacity=capacity, rule=0)
    status = PAUSED
    while status == PAUSED and searcher.nodes < 3000:
        status = searcher.run(min(step, 3000 - searcher.nodes), compile=compile)
    return status, searcher.offsets.tolist(), searcher.register


def hard(seed: int) -> Problem:
    """Thirty buffers that leave some decisions to undo."""
    random = np.random.default_rng(seed)
    lower = random.integers(0, 20, 30)
    return Problem(
        np.stack([lower, lower + random.integers(1, 12, 30), random.integers(1, 9, 30)], 1)
    )


@pytest.mark.parametrize("seed", range(6))
def test_a_pause_changes_nothing(seed: int) -> None:
    """Stopping after every node, or after every seven, leads to the same end."""
    problem = hard(seed)
    whole = run_in_steps(problem, problem.load, 3000, compile=False)
    assert run_in_steps(problem, problem.load, 1, compile=False) == whole
    assert run_in_steps(problem, problem.load, 7, compile=False) == whole


@needs_numba
@pytest.mark.parametrize("seed", range(6))
def test_compiled_and_uncompiled_are_bit_identical(seed: int) -> None:
    """The same offsets and the same counters, node for node."""
    problem = hard(seed)
    for capacity in (problem.load, problem.load + 1):
        uncompiled = run_in_steps(problem, capacity, 500, compile=False)
        assert run_in_steps(problem, capacity, 500, compile=True) == uncompiled


@needs_numba
def test_a_search_may_change_over_while_it_runs() -> None:
    """Half of the nodes uncompiled, the rest compiled: the same as either alone."""
    problem = hard(1)
    searcher = Searcher(problem)
    searcher.begin(ranked(problem), capacity=problem.load)
    searcher.run(40, compile=False)
    status = searcher.run(2960, compile=True)
    end = (status, searcher.offsets.tolist(), searcher.register)
    assert end == run_in_steps(problem, problem.load, 3000, compile=False)


def test_refuted_components_outlive_a_start_but_not_a_higher_capacity() -> None:
    """What was refuted at 4 says nothing about 5."""
    problem = Problem(ABOVE)
    searcher = Searcher(problem)
    for capacity, status in ((4, REFUTED), (4, REFUTED), (5, FOUND), (4, REFUTED)):
        searcher.begin(ranked(problem), capacity=capacity)
        assert searcher.run(1000) == status


def test_a_number_of_nodes_gives_the_same_plan_twice() -> None:
    """Runs that nodes end are equal in plan, bound and statistics."""
    problem = hard(3)
    solver = Exact(nodes=500, accelerate=False)
    first, second = plan(problem, solver), plan(problem, solver)
    assert first == second
    assert first.lower_bound == second.lower_bound
    assert dict(first.stats) == dict(second.stats)
    assert first.stats.get("nodes", 0) <= 500


def test_a_component_too_large_to_search_is_filled_and_says_so() -> None:
    """Above `max_pairs` nothing is searched, with nodes as with seconds for a limit."""
    for solver in (Exact(max_pairs=1, nodes=10), Exact(max_pairs=1, seconds=0.05)):
        result = plan(ABOVE, solver)
        assert (result.peak, result.status) == (5, "feasible")
        assert "exceed max_pairs" in result.stats["search"]


@pytest.mark.parametrize("options", [{"rules": ("best",)}, {"orders": ("best",)}, {"orders": ()}])
def test_unknown_rules_and_orders_are_refused(options: dict[str, Any]) -> None:
    """The error lists those that exist."""
    with pytest.raises(ValueError, match=r"there are|at least one"):
        Exact(**options)


@pytest.mark.parametrize(
    "options",
    [{"nodes": -1}, {"nodes": True}, {"seed": -1}, {"seconds": float("nan")}, {"seconds": -1}],
)
def test_options_that_count_nothing_are_refused(options: dict[str, Any]) -> None:
    """When the solver is made, by the option's own name."""
    with pytest.raises(ValueError, match=f"^{next(iter(options))} must be"):
        Exact(**options)


@needs_shared
@pytest.mark.parametrize("name", ["A", "B", "C", "F", "H", "I", "K"])
def test_minimalloc_is_solved_at_its_load(name: str) -> None:
    """Within 15,000 nodes, uncompiled: the published tools take minutes or prove nothing."""
    problem = read_csv(SHARED / "instances" / "minimalloc" / f"{name}.1048576.csv")
    result = plan(problem, solver="exact", nodes=15_000, accelerate=False)
    assert result.peak == result.problem.load

"""The search that lets buffers overlap: its moves against the definition, its plans."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dsa import Problem, plan
from dsa.bench.proofs import SEVEN, noisy, scaled
from dsa.bounds import lower_bound
from dsa.budget import Budget
from dsa.io import read_csv
from dsa.kernels import compiled
from dsa.kernels.repair import CAPACITY, CLASHING, DRAWS, FIXED, Repair, conflicting
from dsa.problem import FREE, IntArray
from dsa.result import peak
from dsa.solvers.exact import Exact
from dsa.testing import optimum, problems
from dsa.validation import validate
from tests.shared import SHARED

# Its optimum is above the load, and small buffers hide that.
STUBBORN = noisy(scaled(SEVEN, 20), 8, seed=0)
MIXED = problems(max_buffers=8, alignments=True, pins=True, zero_sizes=False)


def begun(problem: Problem, seed: int = 0) -> Repair:
    """From a plan without reuse."""
    return Repair(problem, np.asarray(plan(problem, "naive").offsets), seed)


@settings(max_examples=200)
@given(problem=MIXED, seed=st.integers(0, 9), moves=st.integers(0, 300))
def test_what_it_finds_is_a_plan(problem: Problem, seed: int, moves: int) -> None:
    """Valid, of the peak it says, never above where it began, never below the optimum."""
    assume(len(problem))
    search = begun(problem, seed)
    before = search.peak
    search.run(Budget(), least=lower_bound(problem).value, moves=moves)
    assert not validate(search.offsets, problem)
    assert search.peak == peak(problem, search.offsets)
    assert optimum(problem) <= search.peak <= before
    assert search.moves <= moves


@settings(max_examples=100)
@given(problem=problems(max_buffers=6, zero_sizes=False), seed=st.integers(0, 9))
def test_small_problems_end_at_the_optimum(problem: Problem, seed: int) -> None:
    """A few thousand moves are enough for six buffers."""
    assume(len(problem))
    search = begun(problem, seed)
    search.run(Budget(), least=optimum(problem), moves=5000)
    assert search.peak == optimum(problem)


@settings(max_examples=100)
@given(problem=MIXED, moves=st.lists(st.integers(1, 40), max_size=5))
def test_its_state_is_true(problem: Problem, moves: list[int]) -> None:
    """All within the capacity and aligned, pins where they were, and clashes as they are."""
    assume(len(problem))
    search = begun(problem)
    for some in moves:
        search.run(Budget(), least=lower_bound(problem).value, moves=some)
    assume(search._state)
    offset, clashes, clashing, place, register = search._state
    free = problem.pin == FREE
    end = offset + problem.size
    assert (offset >= 0).all()
    assert (offset[free] % problem.alignment[free] == 0).all()
    assert (offset[~free] == problem.pin[~free]).all()
    assert (end[free] <= register[CAPACITY]).all()
    one, other = conflicting(problem)
    overlap = (offset[one] < end[other]) & (offset[other] < end[one])
    pairs = np.concatenate([one[overlap], other[overlap]])
    assert clashes.tolist() == np.bincount(pairs, minlength=len(problem)).tolist()
    listed = clashing[: register[CLASHING]]
    assert sorted(listed) == np.flatnonzero((clashes > 0) & free).tolist()
    assert place[listed].tolist() == list(range(len(listed)))
    assert (place[~free] == FIXED).all()


@settings(max_examples=200)
@given(problem=MIXED, draws=st.lists(st.integers(0, 2**62 - 1), min_size=2, max_size=40))
def test_each_move_takes_the_least_weight(problem: Problem, draws: list[int]) -> None:
    """Nowhere in the capacity, at any aligned offset, does the buffer overlap what weighs less."""
    assume(len(problem))
    search = begun(problem)
    least = lower_bound(problem).value
    assume(search.peak > least)
    search._capacity = least
    search._aim(least)
    capacity = int(search._state[4][CAPACITY])
    assume(capacity <= 500)
    first, neighbour, mirror = search._fixed[:3]
    for k in range(0, len(draws) - 1, DRAWS):
        offset, _, clashing, _, register = (column.copy() for column in search._state)
        if register[CLASHING] == 0:
            break
        weight = search._rows[2].copy()
        x = int(clashing[draws[k] % register[CLASHING]])

        begin, end = first[x], first[x + 1]

        def weighs(
            level: int,
            x: int = x,
            row: IntArray = neighbour[begin:end],
            bottom: IntArray = offset,
            weight: IntArray = weight[begin:end],
        ) -> int:
            top = bottom[row] + problem.size[row]
            return int(weight[(bottom[row] < level + problem.size[x]) & (top > level)].sum())

        search._random = cast(Any, Fixed(draws[k : k + DRAWS]))
        search._make(1, compile=False)
        room, step = capacity - int(problem.size[x]), int(problem.alignment[x])
        lowest = min(weighs(level) for level in range(0, room + 1, step))
        chosen = int(search._state[0][x])
        assert weighs(chosen) == lowest
        stayed = chosen == offset[x]
        assert (search._rows[2].sum() > weight.sum()) == stayed
        assert (search._rows[2] == search._rows[2][mirror]).all()
        assert not stayed or lowest == weighs(int(offset[x]))


class Fixed:
    """Random numbers that were drawn before."""

    def __init__(self, draws: list[int]) -> None:
        self._draws = draws

    def integers(self, low: int, high: int, count: int) -> Any:
        """The numbers, as many as are asked for."""
        assert count == len(self._draws)
        return np.array(self._draws)


@pytest.mark.skipif(not compiled.available(), reason="numba is not installed")
@pytest.mark.parametrize("seed", range(3))
def test_compiled_it_is_the_same(seed: int) -> None:
    """Equal plan, equal weights, equal number of moves."""
    problem = scattered(40, seed)
    runs = [begun(problem, seed), begun(problem, seed)]
    for search, compile in zip(runs, (False, True), strict=True):
        search.run(Budget(), least=problem.load, moves=2000, compile=compile)
    a, b = runs
    assert (a.peak, a.moves) == (b.peak, b.moves)
    for one, other in zip([*a._rows, *a._state], [*b._rows, *b._state], strict=True):
        assert one.tolist() == other.tolist()


def scattered(n: int, seed: int) -> Problem:
    """Random lifetimes of a fifth of the time."""
    random = np.random.default_rng(seed)
    lower = random.integers(0, 4 * n, n)
    return Problem.from_columns(
        lower=lower, upper=lower + random.integers(1, n, n), size=random.integers(1, 100, n)
    )


def test_a_buffer_amid_others_moves_alone() -> None:
    """It goes under those that it lay on, and they stay where they are.

    ::

        6  [    z   ]
           [ u ][ v ]      peak 10            [ u ][ v ]     peak 6
                                         ->   [    z   ]
    """
    problem = Problem([(0, 2, 2), (2, 4, 2), (0, 4, 4)])
    search = Repair(problem, np.array([4, 4, 6]), seed=0)
    search.run(Budget(), least=6, moves=100)
    assert search.peak == 6


def test_it_stops_at_the_target_and_at_the_end_of_time() -> None:
    """And makes no move then."""
    problem = scattered(20, 0)
    for budget in (Budget(target=10**9), Budget(time_limit=1.0, started=0.0)):
        search = begun(problem)
        assert budget.done(search.peak)
        search.run(budget, least=problem.load, moves=1000)
        assert search.moves == 0


def test_weights_are_halved_once_all_steps_were_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only then do they fall; below 1 they never do."""
    monkeypatch.setattr("dsa.kernels.repair.PATIENCE", 2)
    problem = Problem(SEVEN)  # no plan is at its load
    search = Repair(problem, plan(problem, "exact").offsets_array, seed=0)
    for _ in range(200):
        before, halvings = search._rows[2].copy(), search._halvings
        search.run(Budget(), least=problem.load, moves=1)
        wrapped = search._halvings < halvings
        assert (search._rows[2].sum() < before.sum()) == wrapped
        assert (search._rows[2] >= 1).all()
    assert search._rows[2].max() > 1


def test_it_takes_note_of_lower_plans_only() -> None:
    """A higher one is of no use to it."""
    problem = scattered(20, 0)
    better = plan(problem, "strip-packing").offsets_array
    search = begun(problem)
    known = search.offsets, search.peak
    search.know(better, peak(problem, better))
    assert search.peak == peak(problem, better) < known[1]
    search.know(*known)
    assert search.peak == peak(problem, better)


def test_exact_can_do_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is switched off, or there are too many conflicts to hold, no moves are counted."""
    solver = Exact(nodes=3000, cores=False, pairs=False)
    assert plan(STUBBORN, solver).stats["moves"] > 1000
    assert "moves" not in plan(STUBBORN, replace(solver, repair=False)).stats
    monkeypatch.setattr("dsa.solvers.exact.MOST", 10)
    assert "moves" not in plan(STUBBORN, solver).stats


@pytest.mark.slow
@pytest.mark.skipif(not compiled.available(), reason="numba is not installed")
@pytest.mark.parametrize(("seed", "millions", "peak_at_most"), [(0, 3, 1_008_640), (1, 7, 989_184)])
def test_j_is_lower_than_any_published_plan(seed: int, millions: int, peak_at_most: int) -> None:
    """MiniMalloc's J: no tool is known to reach 1,008,640 bytes; 989,184 is its load."""
    path = SHARED / "instances/minimalloc/J.1048576.csv"
    if not path.exists():
        pytest.skip("the instances of MiniMalloc are not beside the project")
    problem = read_csv(path)
    start = plan(problem, "strip-packing", restarts=0, moves=0).offsets_array
    search = Repair(problem, start, seed)
    for _ in range(millions):
        search.run(Budget(), least=problem.load, moves=1_000_000, compile=True)
    assert search.peak <= peak_at_most
    assert not validate(search.offsets, problem)

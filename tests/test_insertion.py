"""Insertion search: plans stay plans, peaks never rise, and it is the same compiled or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa import Problem, load, plan, validate
from dsa.budget import Budget, Progress
from dsa.kernels import insertion as kernel
from dsa.kernels.compiled import available
from dsa.kernels.insertion import insertion
from dsa.result import peak
from dsa.testing import problems
from tests.shared import examples

# Stacked in this order, 124; 88 is the load.
ROWS = [(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)]


def stacked(problem: Problem, seed: int = 0) -> Any:
    """Offsets of the buffers, one on top of the other in a random order, each aligned."""
    offsets, top = np.zeros(len(problem), np.int64), 0
    for i in np.random.default_rng(seed).permutation(len(problem)).tolist():
        offsets[i] = -(-top // problem.alignment[i]) * problem.alignment[i]
        top = int(offsets[i] + problem.size[i])
    return offsets


@given(problems(pins=False), st.integers(0, 3))
@examples(100)
def test_plans_stay_plans_and_peaks_never_rise(problem: Problem, seed: int) -> None:
    """From any plan to a valid one that is not higher, under alignments too."""
    start = stacked(problem, seed)
    found, made = insertion(problem, start, Budget(), moves=10, seed=seed)
    assert validate(found, problem.with_capacity(None)) == ()
    assert peak(problem, found) <= peak(problem, start)
    assert made <= 10


def test_it_finds_what_one_move_away_is() -> None:
    """A plan that is wrong in one place is put right, and the search ends at the target."""
    problem = Problem(ROWS)
    found, made = insertion(
        problem, np.array([0, 44, 80, 120]), Budget(target=88), moves=99, seed=0
    )
    assert peak(problem, found) == 88
    assert made < 99


def test_a_number_of_moves_gives_one_plan() -> None:
    """Equal seeds give equal plans; the seed matters."""
    problem = load("eager-resnet18-b4-train")
    start = stacked(problem)
    plans = [insertion(problem, start, Budget(), moves=9, seed=s)[0].tolist() for s in (0, 0, 1)]
    assert plans[0] == plans[1] != plans[2]


def test_pauses_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the clock is looked at, the moves are the same."""
    problem = load("infer-mobilenet-v2-b1")
    start = stacked(problem)
    at_once = insertion(problem, start, Budget(), moves=20, seed=3)
    monkeypatch.setattr(kernel, "SLICE", 0.0)
    paused = insertion(problem, start, Budget(), moves=20, seed=3)
    assert (at_once[0].tolist(), at_once[1]) == (paused[0].tolist(), paused[1])


@pytest.mark.skipif(not available(), reason="numba is not installed")
def test_compiled_or_not_the_plan_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel gives equal offsets either way, with alignments and without."""
    rows = load("infer-mobilenet-v2-b1")
    for problem in (rows, Problem(rows, alignment=4096)):
        results = []
        for compiled in (False, True):
            monkeypatch.setattr(kernel.MOVE, "bought", compiled)
            monkeypatch.setattr(kernel.MOVE, "_worth", lambda seconds, compiled=compiled: compiled)
            results.append(insertion(problem, stacked(problem), Budget(), moves=60, seed=1))
        assert results[0][0].tolist() == results[1][0].tolist()
        assert results[0][1] == results[1][1]


def test_better_plans_are_reported_and_time_ends_it() -> None:
    """The callback hears falling peaks; without time no move is made."""
    heard: list[Progress] = []
    problem = Problem(ROWS)
    start = np.array([0, 44, 80, 120])
    insertion(problem, start, Budget(progress=heard.append), moves=50, seed=0)
    assert [progress.peak for progress in heard] == [88]
    found, made = insertion(problem, start, Budget(time_limit=0), moves=None, seed=0)
    assert made == 0
    assert validate(found, problem) == ()


@pytest.mark.parametrize("rows", [[], [(0, 1, 8)], [(0, 1, 0), (0, 1, 0)]])
def test_what_has_no_two_buffers_stays(rows: list[tuple[int, int, int]]) -> None:
    """There is nowhere to move a single buffer."""
    problem = Problem(rows)
    found, made = insertion(problem, np.zeros(len(rows), np.int64), Budget(), moves=5, seed=0)
    assert (found.tolist(), made) == ([0] * len(rows), 0)


def test_it_betters_what_restarts_do_not() -> None:
    """On a model on which the skyline leaves a gap, moves close part of it."""
    problem = load("eager-gpt2-small4-generate-short")
    filled = plan(problem, "strip-packing", restarts=0)
    moved = plan(problem, "strip-packing", restarts=0, moves=100)
    assert moved.peak < filled.peak
    assert moved.stats["moves"] == 100

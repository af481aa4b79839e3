"""`strip-packing` with time to spend: restarts in any number of processes, then moves."""

from __future__ import annotations

import concurrent.futures
import os
import pickle
import signal
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

from dsa import Buffer, Problem, load, plan
from dsa.solvers import strip_packing
from dsa.solvers.strip_packing import StripPacking, lower_by_component

# The optimum, 112, is above the load, 96: no search ends at its target.
TIGHT = [(0, 1, 48), (0, 2, 48), (1, 3, 32), (1, 4, 16), (2, 4, 32), (3, 5, 48), (4, 5, 48)]
GAP = "eager-resnet18-b4-train"  # a model on which no pass reaches the load


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes are started at once and given little at a time."""
    monkeypatch.setattr(strip_packing, "PATIENCE", 1e-9)
    monkeypatch.setattr(strip_packing, "CHUNK", 0.01)


class NoProcesses:
    """Stands for processes that must not be started."""

    def __init__(self, workers: int) -> None:
        raise AssertionError("a process was started")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("restarts", [1, 7, 30])
def test_workers_do_not_change_the_plan(restarts: int) -> None:
    """One process or several: the same plan, for several components as for one."""
    model = load(GAP)
    twice = [*model, *(Buffer(b.lower + 10**9, b.upper + 10**9, b.size, id=-i - 1)
                       for i, b in enumerate(model))]  # fmt: skip
    for problem in (model, Problem(twice)):
        plans = [
            plan(problem, "strip-packing", restarts=restarts, workers=workers, seed=2)
            for workers in (1, 2)
        ]
        assert plans[0] == plans[1]


@pytest.mark.usefixtures("impatient")
def test_a_process_is_given_the_problem_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sent for each chunk of mixtures is their numbers and what they must come below."""
    sent: list[int] = []

    class Scales(concurrent.futures.ProcessPoolExecutor):
        """Weighs what it sends."""

        def submit(self, function: Any, /, *arguments: Any, **options: Any) -> Any:
            sent.append(len(pickle.dumps((function, arguments, options))))
            return super().submit(function, *arguments, **options)

    monkeypatch.setattr(concurrent.futures, "ProcessPoolExecutor", Scales)
    problem = load(GAP)
    plan(problem, "strip-packing", restarts=30, workers=2)
    assert sent
    assert max(sent) < len(pickle.dumps(problem)) / 10


@pytest.mark.usefixtures("impatient")
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_lost_process_costs_nothing_but_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it was to do is done here; the plan is the same."""
    parent = os.getpid()
    ours = strip_packing._mixture

    def deadly(*arguments: Any) -> Any:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return ours(*arguments)

    expected = plan(load(GAP), "strip-packing", restarts=9)
    monkeypatch.setattr(strip_packing, "_mixture", deadly)
    found = plan(load(GAP), "strip-packing", restarts=9, workers=2)
    assert (found, found.stats) == (expected, expected.stats)


def test_small_problems_start_no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is done in a moment is done here, however many workers there may be."""
    monkeypatch.setattr(concurrent.futures, "ProcessPoolExecutor", NoProcesses)
    plan([(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 60)], "strip-packing", restarts=9, workers=8)


def restart_with_workers() -> None:
    """What `test_a_daemon_works_alone` does in a process of its own."""
    plan(load(GAP), "strip-packing", restarts=3, workers=2)


@pytest.mark.usefixtures("impatient")
def test_a_daemon_works_alone() -> None:
    """A process that may start none, as workers of other libraries are, does without."""
    process = get_context().Process(target=restart_with_workers, daemon=True)
    process.start()
    process.join()
    assert process.exitcode == 0


@pytest.mark.usefixtures("impatient")
def test_one_worker_is_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default no process is ever started."""
    monkeypatch.setattr(concurrent.futures, "ProcessPoolExecutor", NoProcesses)
    assert plan(load(GAP), "strip-packing", restarts=3).stats["passes"] == 13


def test_a_restart_needs_no_other() -> None:
    """The mixtures are those of one stream of random numbers, whoever takes them."""
    problem = load("infer-mobilenet-v2-b1")
    random = np.random.default_rng(4)
    for restart in range(3):
        alpha, beta, noise = random.uniform((0.8, 0.6, 0.0), (1.5, 1.3, 0.8))
        sections = problem.sections
        spans = (problem.upper - problem.lower, sections.stop - sections.start)
        score = alpha * np.log(problem.size) + beta * np.log(spans[restart % 2])
        score += noise * random.uniform(-0.5, 0.5, len(problem))
        order = strip_packing._mixture(problem, 4, restart)
        assert (np.diff(score[order]) <= 0).all()


def test_moves_are_made_only_where_they_may_be() -> None:
    """As many as asked for, or as there is time for; none with pins or constraints."""
    order = ("given",)
    assert "moves" not in plan(TIGHT, StripPacking(orders=order)).stats
    assert plan(TIGHT, StripPacking(orders=order, moves=5)).stats["moves"] == 5
    timed = plan(TIGHT, StripPacking(orders=order), time_limit=0.1)
    assert timed.stats["passes"] > 1
    assert timed.stats["moves"] > 0
    assert "moves" not in plan(TIGHT, StripPacking(orders=order, restarts=3), time_limit=9).stats
    pinned = [*(Buffer(*row) for row in TIGHT[:-1]), Buffer(*TIGHT[-1], offset=200)]
    assert "moves" not in plan(pinned, StripPacking(orders=order, moves=5)).stats


def test_options_are_checked() -> None:
    """Counts are whole numbers; there is at least one worker."""
    for wrong in ({"moves": -1}, {"moves": 1.5}, {"workers": -1}, {"restarts": True}):
        with pytest.raises(ValueError, match="must be a whole number"):
            StripPacking(**wrong)
    with pytest.raises(ValueError, match="at least one worker"):
        StripPacking(workers=0)


def test_components_that_are_low_enough_are_left_alone() -> None:
    """So that the plan does not depend on what is tried after it is good enough."""
    problem = Problem([(0, 1, 8), (1, 2, 8)])
    high, low = np.array([9, 20]), np.array([0, 0])
    assert lower_by_component(problem, high, low, enough=20).tolist() == [9, 0]
    assert lower_by_component(problem, high, low).tolist() == [0, 0]

"""`plan_many()`: results in order, one for each problem, whatever becomes of the workers."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from concurrent.futures import ThreadPoolExecutor as Threads
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa import Buffer, InfeasibleError, InvalidProblemError, Plan, Problem, plan, plan_many
from dsa.budget import Budget
from dsa.result import Solution
from dsa.solvers import Solver
from dsa.solvers.naive import Naive
from dsa.testing import problems
from tests.shared import examples

ROWS = [(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)]


@dataclass(frozen=True)
class Acts(Solver):
    """Does something when a problem has three buffers."""

    act: Callable[[], Any] = bool

    supports: ClassVar[frozenset[str]] = frozenset({"alignment", "pins"})

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        if len(problem) == 3:
            self.act()
        return Naive()(problem, budget)


def die() -> None:
    """End this process as the system does when memory runs out."""
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    """Raise what no solver should."""
    raise KeyError("three")


def leave() -> None:
    """Raise what is no Exception."""
    raise SystemExit("three")


class Inline(Executor):
    """Runs everything at once, in the caller's thread."""

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*args, **kwargs))
        return future


def sized(count: int) -> Iterator[list[tuple[int, int, int]]]:
    """Problems of 0, 1, 2, ... buffers."""
    return ([(0, 1, 8)] * size for size in range(count))


# -- results ---------------------------------------------------------------------------------


@given(st.lists(problems(), max_size=6))
@examples(30)
def test_plans_are_those_of_plan(many: list[Problem]) -> None:
    """One by one or many at once: the same plans, in the order of the problems."""
    with Threads(3) as threads:
        results = list(plan_many(many, "strip-packing", executor=threads, restarts=3))
    assert results == [plan(problem, "strip-packing", restarts=3) for problem in many]


@pytest.mark.parametrize("method", [None, "spawn"])
def test_processes_give_the_same_plans(method: str | None) -> None:
    """In processes of our own and in those of the caller, even if they share nothing."""
    many = [ROWS[:size] for size in (4, 3, 4)]
    if method is None:
        results = list(plan_many(many, "greedy", order="size"))
    else:
        with ProcessPoolExecutor(1, get_context(method)) as executor:
            results = list(plan_many(many, "greedy", order="size", executor=executor))
    assert results == [plan(rows, "greedy", order="size") for rows in many]


def test_no_problems_give_no_results() -> None:
    """Nothing in, nothing out; and no process is started before the first result is asked for."""
    assert list(plan_many([])) == []


def test_arguments_are_those_of_plan() -> None:
    """Capacity, alignment and target reach every problem."""
    (result,) = plan_many(
        [ROWS], "naive", executor=Inline(), capacity=400, alignment=64, target=256
    )
    assert result == plan(ROWS, "naive", capacity=400, alignment=64, target=256)


def test_a_problem_that_fails_does_not_end_the_others() -> None:
    """Its exception stands in its place, as `plan` would have raised it."""
    many = [ROWS, [(0, 1, -1)], [(0, 1, 500)], [(3, 3, 1)], 5, [(0, 1, 8)] * 3, ROWS]
    with Threads(2) as threads:
        results = list(plan_many(many, Acts(fail), executor=threads, capacity=168))  # type: ignore[arg-type]
    kinds = [type(result) for result in results]
    bad = InvalidProblemError
    assert kinds == [Plan, bad, InfeasibleError, bad, bad, KeyError, Plan]
    assert "size must be at least 0, got -1" in str(results[1])


def test_ids_stay_the_same_objects() -> None:
    """A buffer is found by its id even where a copy of the id would not equal it."""
    id = object()
    (result,) = plan_many([[Buffer(0, 1, 8, id=id)]], "naive")
    assert isinstance(result, Plan)
    assert result[id] == 0


def test_problems_are_read_as_results_are_taken() -> None:
    """No more than `ahead` problems are on their way, so that an endless supply is no trouble."""
    read: list[int] = []

    def supply() -> Iterator[list[tuple[int, int, int]]]:
        while True:
            read.append(len(read))
            yield ROWS

    with Threads(2) as threads:
        results = plan_many(supply(), "naive", executor=threads, ahead=5)
        assert read == []
        for taken in range(1, 30):
            next(results)
            assert taken <= len(read) <= taken + 4
        results.close()  # type: ignore[attr-defined]
        assert threads.submit(bool).result() is False  # the caller's executor is left running


def test_progress_comes_before_its_turn() -> None:
    """The callback hears of each result once, when it is there, in the thread that iterates."""
    gate, heard = threading.Event(), []

    def progress(position: int, result: Plan | Exception) -> None:
        heard.append((position, threading.current_thread()))
        if position == 1:
            gate.set()

    with Threads(2) as threads:
        many = [[(0, 1, 8)] * 3, ROWS]
        list(plan_many(many, Acts(gate.wait), executor=threads, progress=progress))
    assert heard == [(1, threading.current_thread()), (0, threading.current_thread())]


def test_what_the_callback_raises_ends_it() -> None:
    """An exception of the caller's own is not mistaken for one of a problem."""

    def progress(position: int, result: Plan | Exception) -> None:
        raise ZeroDivisionError

    with Threads(1) as threads, pytest.raises(ZeroDivisionError):
        list(plan_many([ROWS], executor=threads, progress=progress))


def test_what_the_problems_raise_ends_it() -> None:
    """An iterable that fails has no further problems; its exception is the caller's to see."""

    def supply() -> Iterator[list[tuple[int, int, int]]]:
        yield ROWS
        raise OSError("disk")

    with Threads(1) as threads, pytest.raises(OSError, match="disk"):
        list(plan_many(supply(), executor=threads))


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"solver": "best-fti"}, ValueError, "did you mean 'best-fit'"),
        ({"solver": "greedy", "ordre": "size"}, TypeError, "ordre"),
        ({"capacity": -1}, InvalidProblemError, "capacity must be at least 0"),
        ({"alignment": 0}, InvalidProblemError, "alignment must be at least 1"),
        ({"time_limit": -1}, InvalidProblemError, "time_limit must be"),
        ({"target": 1.5}, InvalidProblemError, "target must be an integer"),
        ({"ahead": 0}, ValueError, "ahead must be a whole number, at least 1, got 0"),
        ({"executor": 4}, TypeError, "executor must be a concurrent.futures.Executor, got 4"),
    ],
)
def test_what_is_wrong_for_every_problem_is_said_at_once(
    arguments: Any, error: type[Exception], words: str
) -> None:
    """The call raises, before a result is asked for."""
    with pytest.raises(error, match=words):
        plan_many([ROWS], **arguments)


# -- workers that are lost -------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_process_that_dies_takes_only_its_own_problem_along() -> None:
    """Others that were on their way are planned again, those that follow as if nothing was."""
    results = list(plan_many(sized(9), Acts(die), ahead=4))
    lost = [position for position, result in enumerate(results) if not isinstance(result, Plan)]
    assert lost == [3]
    assert isinstance(results[3], BrokenExecutor)


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL")
def test_a_broken_executor_of_the_caller_is_not_mended() -> None:
    """What was planned before is kept; what follows fails, one result for each problem."""
    with ProcessPoolExecutor(1) as executor:
        results = list(plan_many(sized(9), Acts(die), ahead=1, executor=executor))
    assert [type(result) for result in results] == [Plan] * 3 + [BrokenProcessPool] * 6


def test_an_executor_that_was_shut_down_fails_every_problem() -> None:
    """As it cannot be told from one that breaks half-way."""
    executor = Threads()
    executor.shutdown()
    results = list(plan_many(sized(3), executor=executor))
    assert [type(result) for result in results] == [RuntimeError] * 3


def test_what_cannot_be_pickled_is_a_failure_of_its_problem() -> None:
    """Neither the other problems nor the processes are lost."""
    many: list[Any] = [ROWS, [Buffer(0, 1, 8, id=lambda: None)], ROWS]
    results = list(plan_many(many, "naive"))
    assert isinstance(results[1], (pickle.PicklingError, AttributeError, TypeError))
    assert [type(result) for result in results[::2]] == [Plan, Plan]


def test_an_exit_is_no_result() -> None:
    """What is no Exception is raised, not returned."""
    with Threads(1) as threads, pytest.raises(SystemExit):
        list(plan_many(sized(5), Acts(leave), executor=threads))


def test_a_future_that_somebody_cancels_is_a_failure_of_its_problem() -> None:
    """The results before it and after it stay."""
    gate = threading.Event()

    class Cancels(Threads):
        def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = super().submit(function, *args, **kwargs)
            if len(args[0]) == 2:
                future.cancel()
                gate.set()
            return future

    with Cancels(1) as executor:
        executor.submit(gate.wait, [])
        results = list(plan_many(sized(4), "naive", executor=executor))
    assert [type(result).__name__ for result in results] == [
        *("Plan", "Plan", "CancelledError", "Plan")
    ]

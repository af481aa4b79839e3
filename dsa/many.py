"""Many problems: each is planned as `plan` would, by the workers of an executor."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from functools import partial
from itertools import count, islice
from queue import SimpleQueue
from typing import Any, TypeAlias

from dsa.errors import InvalidProblemError
from dsa.planner import plan
from dsa.problem import Intervals, Problem
from dsa.result import Plan
from dsa.solvers import Solver, build

__all__ = ["plan_many"]

Result: TypeAlias = Plan | Exception
Call: TypeAlias = Callable[[Problem], tuple[Any, ...]]


def plan_many(
    problems: Iterable[Intervals],
    solver: str | Solver = "auto",
    *,
    executor: Executor | None = None,
    ahead: int | None = None,
    capacity: int | None = None,
    alignment: int = 1,
    time_limit: float | None = None,
    target: int | None = None,
    progress: Callable[[int, Result], None] | None = None,
    **options: Any,
) -> Iterator[Result]:
    """Plan each problem as `plan` would, several at a time; yield the results in order.

    A problem that fails does not end the others: in its place stands the exception that `plan`
    would have raised. Results come as an iterator, and problems are read a little ahead of it,
    so that neither has to fit into memory: ``list(plan_many(...))`` if it does.

    Parameters
    ----------
    problems
        Any iterable, read as it goes, of what `plan` accepts as buffers.
    solver, capacity, alignment, time_limit, target, **options
        As for `plan`, for each problem. A time limit starts when its problem does.
    executor
        Any `concurrent.futures.Executor`: threads, or what Dask, Ray or MPI offer. It is not
        shut down. If None, processes of this machine, one for each processor; a script must
        then guard its main part by ``if __name__ == "__main__"``.
    ahead
        How many problems may be on their way, from being read to being yielded: bounds the
        memory. If None, 16 for each processor.
    progress
        Called with position and result of each problem when it is finished, which may be before
        its turn. It runs in the thread that iterates.

    Yields
    ------
    Plan or Exception
        One for each problem. Exceptions are those of `plan`, and those of an executor that lost
        a problem (broken, shut down, or unable to pickle it). Of processes that it started
        itself, it loses only the problem whose process died, and starts others.

    Raises
    ------
    DsaError, TypeError, ValueError
        At once, if the arguments are wrong for every problem.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> rows = [[(0, 2, 60), (1, 3, 50)], [(0, 2, -1)], [(0, 2, 8)]]
    >>> with ThreadPoolExecutor() as threads:
    ...     for result in plan_many(rows, executor=threads):
    ...         print(result if isinstance(result, Exception) else result.peak)
    110
    buffer 0: size must be at least 0, got -1
    8
    """
    if executor is not None and not isinstance(executor, Executor):
        raise TypeError(
            f"executor must be a concurrent.futures.Executor, got {executor!r}; most libraries "
            "that distribute work can make one (a Dask client: client.get_executor())"
        )
    ahead = 16 * (os.cpu_count() or 1) if ahead is None else ahead
    if not isinstance(ahead, int) or ahead < 1:
        raise ValueError(f"ahead must be a whole number, at least 1, got {ahead!r}")
    configured = build(solver, options)
    limits: dict[str, Any] = {"time_limit": time_limit, "target": target}
    whole: dict[str, Any] = {"capacity": capacity, "alignment": alignment}
    plan([], configured, **whole, **limits)  # refuses what would be refused for every problem
    call = partial(_plan, solver=configured, **limits)
    workers = _Processes(call) if executor is None else _Given(executor, call)
    read = partial(Problem, **whole)
    return _results(iter(problems), read, workers, ahead, progress)


def _plan(problem: Problem, **arguments: Any) -> tuple[Any, ...]:
    """A plan less its problem, which whoever asked has: so ids stay the same objects."""
    made = plan(problem, **arguments)
    stats = dict(made.stats)
    return made.offsets_array, made.bound_witness, made.solver, made.seconds, stats, made.proof


def _results(
    problems: Iterator[Intervals],
    read: Callable[[Intervals], Problem],
    workers: _Given,
    ahead: int,
    progress: Callable[[int, Result], None] | None,
) -> Iterator[Result]:
    started = 0
    running: dict[Future[Any], tuple[int, Problem | None]] = {}
    finished: SimpleQueue[Future[Any]] = SimpleQueue()
    results: dict[int, Result] = {}  # those whose turn has not come
    try:
        for position in count():
            for intervals in islice(problems, position + ahead - started):
                problem: Problem | None = None
                try:
                    problem = read(intervals)
                    future = workers.submit(problem)
                except InvalidProblemError as error:
                    future = _failed(error)
                running[future] = started, problem
                future.add_done_callback(finished.put)
                started += 1
            if position == started:
                return
            while position not in results:
                future = finished.get()
                at, problem = running.pop(future)
                results[at] = workers.result(future, problem)
                if progress is not None:
                    progress(at, results[at])
            yield results.pop(position)
    finally:
        for future in running:
            future.cancel()
        workers.close()


class _Given:
    """The caller's executor: once it takes no more work, every further problem fails."""

    def __init__(self, executor: Executor, call: Call) -> None:
        self._executor, self._call = executor, call

    def submit(self, problem: Problem) -> Future[Any]:
        try:
            return self._executor.submit(self._call, problem)
        except RuntimeError as error:  # broken, or shut down
            return _failed(error)

    def result(self, future: Future[Any], problem: Problem | None) -> Result:
        return _result(future, problem)

    def close(self) -> None:
        """Leave it to the caller."""


class _Processes(_Given):
    """Processes of our own. When one dies, all that are under way are lost with it.

    Each of their problems then gets a process to itself, so that only one that is deadly is lost
    for good; for those that follow, all are started anew.
    """

    def __init__(self, call: Call) -> None:
        super().__init__(_processes(), call)

    def submit(self, problem: Problem) -> Future[Any]:
        try:
            return self._executor.submit(self._call, problem)
        except BrokenExecutor:
            self._executor = _processes()
            return self._executor.submit(self._call, problem)

    def result(self, future: Future[Any], problem: Problem | None) -> Result:
        result = _result(future, problem)
        if problem is None or not isinstance(result, BrokenExecutor):
            return result
        with _processes(1) as alone:
            try:
                alone.submit(_nothing).result()
            except BrokenExecutor as error:
                error.add_note(
                    "No process can be started: does the script guard its main part by "
                    'if __name__ == "__main__"? Threads need no such thing: pass an executor.'
                )
                raise
            return _result(alone.submit(self._call, problem), problem)

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)


def _processes(count: int | None = None) -> Executor:
    from concurrent.futures import ProcessPoolExecutor  # a sixth of what importing dsa would cost

    return ProcessPoolExecutor(count)


def _nothing() -> None:
    """Show that a process can be started."""


def _failed(error: Exception) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def _result(future: Future[Any], problem: Problem | None) -> Result:
    """What came of a problem; an interruption or an exit is no result and is raised."""
    try:
        error = future.exception()
    except CancelledError as cancelled:
        return cancelled
    if error is None:
        assert problem is not None  # it was read
        return Plan(problem, *future.result())
    if isinstance(error, Exception):
        return error
    raise error

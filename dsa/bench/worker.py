"""What happens in the process of one run: warm up, plan, and send what it gave and took."""

from __future__ import annotations

import os
import resource
import sys
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from dsa.bench.memory import forget_peak, peak_memory
from dsa.bench.peers import ClaimedPeakError, NoPlanError
from dsa.bench.warm import warm_up
from dsa.budget import Progress
from dsa.errors import DsaError, SolverError, SolverUnavailableError, UnsupportedError
from dsa.planner import plan
from dsa.problem import Problem
from dsa.solvers import Solver

__all__ = ["work"]

# Why there is no plan: the first that matches.
_ENDINGS: dict[type[DsaError], str] = {
    ClaimedPeakError: "claimed",
    NoPlanError: "none",
    UnsupportedError: "refused",
    SolverUnavailableError: "unavailable",
    SolverError: "invalid",
}


def work(
    pipe: Connection,
    problem: Problem,
    solver: Solver,
    time_limit: float,
    memory_limit: int | None,
    output: str,
) -> None:
    """Run a solver, in a process made for that, and send the result through the pipe.

    First comes the word "warm", then pairs of seconds and peak, whenever the solver reports
    progress; last a mapping with fields of a `Record`, and the offsets. An error that is not the
    library's ends the process: its last words are in `output`.
    """
    os.setsid()  # so that programs which a peer starts can be stopped with it
    _redirect(output)
    if memory_limit is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_limit, memory_limit))
    try:
        with suppress(DsaError):  # what goes wrong will do so again
            warm_up(solver)
        pipe.send("warm")
        result = _measured(pipe, problem, solver, time_limit)
    except tuple(_ENDINGS) as error:
        status = next(word for kind, word in _ENDINGS.items() if isinstance(error, kind))
        result = {"status": status, "message": str(error), "peak": getattr(error, "peak", None)}
    pipe.send({"made": repr(solver), "reference": _reference(), **result})


def _redirect(output: str) -> None:
    """What peers print goes to a file."""
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    sys.stdout.flush()
    sys.stderr.flush()
    for stream in (1, 2):
        os.dup2(descriptor, stream)


def _measured(
    pipe: Connection, problem: Problem, solver: Solver, time_limit: float
) -> dict[str, Any]:
    def report(progress: Progress) -> None:
        pipe.send((progress.seconds, progress.peak))

    # Progress is told of each part apart. A copy derives what takes time, for us and for peers.
    parts = int(problem.with_capacity(None).component.max(initial=-1)) + 1
    memory = forget_peak()
    before, began = _cpu(), time.perf_counter()
    result = plan(problem, solver, time_limit=time_limit, progress=report if parts == 1 else None)
    return {
        "status": result.status,
        "peak": result.peak,
        "bound": result.lower_bound,
        "wall": time.perf_counter() - began,
        "cpu": _cpu() - before,
        "memory": peak_memory() - memory,
        "offsets": result.offsets_array,
    }


# -- measuring ----------------------------------------------------------------------------------


def _cpu() -> float:
    """Seconds of all threads of this process, and of the programs that it ran."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _reference() -> float:
    """Cpu seconds of a fixed workload of the kind that solvers are: loops, lists, columns."""
    began = time.process_time()
    values = (np.arange(50_000) * 48_271) % 65_537
    for _ in range(10):
        values = np.argsort(values, kind="stable")
    listed = values.tolist()
    total = 0
    for a, b in zip(listed, sorted(listed), strict=True):
        total += a if a < b else b
    return time.process_time() - began

"""Run solvers on instances, each run in a process of its own.

A run that does not end is killed, with all that it started; one that crashes takes nothing with
it. Needs processes that can be forked: Linux, macOS.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from dsa import __version__
from dsa.bench.instances import Instance
from dsa.bench.records import Record
from dsa.bench.warm import PRELOADED, has_option
from dsa.bench.worker import work
from dsa.problem import IntArray
from dsa.solvers import Solver

__all__ = ["Limits", "plan_runs", "run"]

WARMING = 60.0  # seconds for what the solver imports

Keep = Callable[[Record, Instance, IntArray], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may take.

    Parameters
    ----------
    seconds
        Of wall time, which the solver is told.
    grace
        Seconds beyond that until it is killed; None for as much again, 20 at least. Who has only
        one pass to make makes it whatever the limit.
    memory
        Bytes of address space; None for no limit.
    """

    seconds: float = 2.0
    grace: float | None = None
    memory: int | None = None

    @property
    def patience(self) -> float:
        """Seconds until a run is killed."""
        return self.seconds + (max(self.seconds, 20.0) if self.grace is None else self.grace)


@dataclass(frozen=True, slots=True)
class Run:
    """A run to be made: the record of it, as far as it is known beforehand."""

    instance: Instance
    solver: Solver
    record: Record


def plan_runs(
    instances: Iterable[Instance],
    solvers: Mapping[str, Solver],
    limits: Limits,
    seeds: Sequence[int] = (0,),
    repeats: int = 1,
) -> Iterator[Run]:
    """All runs, instance by instance. A solver without a seed runs once, whatever the seeds."""
    for instance in instances:
        for name, solver in solvers.items():
            for seed in seeds if has_option(solver, "seed") else (None,):
                seeded = solver if seed is None else replace(solver, seed=seed)  # type: ignore[type-var]
                for repeat in range(repeats):
                    record = Record(
                        instance.name,
                        instance.problem.fingerprint,
                        len(instance.problem),
                        instance.problem.load,
                        name,
                        repr(seeded),
                        seed,
                        repeat,
                        limits.seconds,
                        bound=instance.bound,
                        version=_versions(),
                        machine=_machine(),
                    )
                    yield Run(instance, seeded, record)


def run(
    runs: Iterable[Run],
    limits: Limits,
    *,
    jobs: int = 1,
    done: Collection[tuple[Any, ...]] = (),
    keep: Keep | None = None,
) -> Iterator[Record]:
    """Make the runs and give a record of each, in the order in which they end.

    Parameters
    ----------
    runs
        As `plan_runs` gives them.
    limits
        What each may take.
    jobs
        How many to make at once. With more than one they disturb each other's times.
    done
        Keys of records that there are already: these runs are left out.
    keep
        Called with a record, its instance and the offsets, for each run that gave a plan.
    """
    pending = (run for run in runs if run.record.key not in done)
    with tempfile.TemporaryDirectory() as folder:
        active = [_start(run, limits, folder) for run in islice(pending, jobs)]
        try:
            while active:
                first = min(process.deadline for process in active)
                wait([p.pipe for p in active], timeout=max(first - time.monotonic(), 0))
                for process in active.copy():
                    if not process.ended():
                        continue
                    active.remove(process)
                    process.stop()
                    record, offsets = process.result()
                    if keep is not None and record.planned:
                        keep(record, process.run.instance, offsets)
                    yield record
                    active += [_start(run, limits, folder) for run in islice(pending, 1)]
        finally:
            for process in active:
                process.stop()


@dataclass(slots=True)
class _Process:
    """A run on its way."""

    run: Run
    process: Any
    pipe: Connection
    output: Path
    deadline: float  # of warming up, then of the run
    patience: float
    curve: list[tuple[float, int]] = field(default_factory=list)
    outcome: dict[str, Any] = field(default_factory=dict)

    def ended(self) -> bool:
        """Read what has arrived; whether nothing more will come."""
        try:
            while not self.outcome and self.pipe.poll():
                message = self.pipe.recv()
                if isinstance(message, dict):
                    self.outcome = message
                elif message == "warm":
                    self.deadline = time.monotonic() + self.patience
                else:
                    self._note(*message)
        except (EOFError, ConnectionError):  # it crashed
            self.process.join()
            return True
        if not self.outcome and time.monotonic() >= self.deadline:
            self.outcome = {"status": "timeout", "message": "killed"}
        return bool(self.outcome)

    def _note(self, seconds: float, peak: int) -> None:
        if not self.curve or peak < self.curve[-1][1]:
            self.curve.append((seconds, peak))

    def stop(self) -> None:
        """End the process and all that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()  # which has no group of its own yet if it has hardly begun
        self.process.join()
        self.pipe.close()

    def result(self) -> tuple[Record, Any]:
        """The record, and the offsets if there are any."""
        outcome = dict(self.outcome) or {"status": "crash", "message": self._last_words()}
        offsets = outcome.pop("offsets", None)
        record = replace(self.run.record, **outcome)
        record = record.bounded(max(record.bound, self.run.record.bound))
        if record.planned and record.peak is not None:
            self._note(record.wall, record.peak)
        return replace(record, curve=tuple(self.curve)), offsets

    def _last_words(self) -> str:
        lines = (
            self.output.read_text("utf-8", "replace").split("\n") if self.output.exists() else []
        )
        said = [line for line in lines if line.strip()]
        code = self.process.exitcode
        how = signal.Signals(-code).name if code and code < 0 else f"exit status {code}"
        return f"{how}: {said[-1].strip()}" if said else how


def _start(run: Run, limits: Limits, folder: str) -> _Process:
    context = server()
    ours, theirs = context.Pipe(duplex=False)
    output = Path(tempfile.mkstemp(dir=folder)[1])
    process = context.Process(
        target=work,
        args=(
            theirs,
            run.instance.problem.with_capacity(None),  # the peak is what is measured
            run.solver,
            limits.seconds,
            limits.memory,
            str(output),
        ),
    )
    process.start()
    theirs.close()
    deadline = time.monotonic() + WARMING + limits.patience
    return _Process(run, process, ours, output, deadline, limits.patience)


@cache
def server() -> Any:
    """Where processes come from, once it has warmed up: until then none would start."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    first = context.Process()
    first.start()
    first.join()
    return context


# -- where it ran -------------------------------------------------------------------------------


@cache
def _versions() -> dict[str, str]:
    """Of the library, of Python, and of what a solver may use."""
    versions = {"dsa": __version__, "python": platform.python_version()}
    for package in ("numpy", "numba", "pulp", "highspy", "ortools", "omnimalloc", "ethos-u-vela"):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


@cache
def _machine() -> str:
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or sys.platform

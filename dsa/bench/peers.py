"""Other planners behind our protocol, so that they run beside our solvers and meet our validator.

Each adapter speaks the peer's own conventions: closed or half-open lifetimes, steps that must be
few, sizes that must not be 0. A peer without alignments gets one that all buffers share as its
unit; what it cannot honour at all is refused before it runs.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from dsa import io, solvers
from dsa.budget import Budget
from dsa.errors import DsaError, SolverUnavailableError, UnsupportedError
from dsa.problem import FREE, IntArray, Problem
from dsa.result import Solution
from dsa.solvers import Solver

__all__ = [
    "PEERS",
    "ClaimedPeakError",
    "Idealloc",
    "MiniMalloc",
    "NoPlanError",
    "OmniMalloc",
    "OrTools",
    "Rectpack",
    "Vela",
    "introduce",
]

PEERS = {
    "omnimalloc": "dsa.bench.peers:OmniMalloc",
    "or-tools": "dsa.bench.peers:OrTools",
    "vela": "dsa.bench.peers:Vela",
    "rectpack": "dsa.bench.peers:Rectpack",
    "minimalloc": "dsa.bench.peers:MiniMalloc",
    "idealloc": "dsa.bench.peers:Idealloc",
}


class NoPlanError(DsaError):
    """A peer ended without a plan, and says no more than that."""


class ClaimedPeakError(DsaError):
    """A peer names a peak, but no offsets that could be validated.

    Attributes
    ----------
    peak
        Bytes.
    """

    def __init__(self, message: str, *, peak: int) -> None:
        super().__init__(message)
        self.peak = peak


def introduce() -> None:
    """Make the peers known by name, for this process: see `dsa.solvers.register`."""
    known = solvers.names()
    for name, target in PEERS.items():
        if name not in known:
            solvers.register(name, target)


# -- libraries ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class OmniMalloc(Solver):
    """The allocators of omnimalloc: half-open lifetimes, pins with some of them.

    Parameters
    ----------
    allocator
        One of theirs, such as ``omni``, ``supermalloc``, ``best_fit`` or ``greedy_by_all``. Those
        that take a time limit get ours.
    """

    allocator: str = "omni"

    supports: ClassVar[frozenset[str]] = frozenset({"alignment", "pins"})
    requires: ClassVar[tuple[str, ...]] = ("omnimalloc",)

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        from omnimalloc import Allocation, allocate
        from omnimalloc.allocators import BaseAllocator

        kind = BaseAllocator.get(self.allocator)
        timed = "timeout" in inspect.signature(kind).parameters
        allocator = kind(timeout=_seconds(budget)) if timed else kind()
        unit, rows = _rows(problem)
        wanted = [
            Allocation(i, size, lower, upper, None if pin == FREE else pin)
            for i, lower, upper, size, pin in rows
        ]
        if not allocator.supports(tuple(wanted)):
            raise UnsupportedError(f"omnimalloc's {self.allocator} does not honour pins")
        offsets = np.zeros(len(problem), np.int64)
        for placed in allocate(wanted, allocator):
            offsets[placed.id] = unit * placed.offset
        return Solution(offsets)


@dataclass(frozen=True)
class OrTools(Solver):
    """CP-SAT as people use it for this problem, without a plan to start from.

    Parameters
    ----------
    model
        ``"2d"``: rectangles that do not overlap, and the sum of those live is at most the peak.
        ``"sections"``: one no-overlap for each maximal set of buffers live together.
    workers
        Threads.
    """

    model: str = "2d"
    workers: int = 2

    exact: ClassVar[bool] = True
    supports: ClassVar[frozenset[str]] = frozenset({"alignment", "pins"})
    requires: ClassVar[tuple[str, ...]] = ("ortools",)

    def __post_init__(self) -> None:
        if self.model not in ("2d", "sections"):
            raise ValueError(f"model must be '2d' or 'sections', got {self.model!r}")

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        from ortools.sat.python import cp_model

        model = cp_model.CpModel()
        unit, rows = _rows(problem, aligned=True)
        listed = list(rows)
        alignment = (problem.alignment // unit).tolist()
        ceiling = sum(size + alignment[i] + max(pin, 0) for i, _, _, size, pin in listed)
        peak = model.new_int_var(-(-budget.target // unit), ceiling, "peak")
        offsets, taken, live = {}, {}, {}
        for i, lower, upper, size, pin in listed:
            low, high = (0, ceiling - size) if pin == FREE else (pin, pin)
            step = model.new_int_var(low // alignment[i], high // alignment[i], "")
            offsets[i] = alignment[i] * step
            taken[i] = model.new_fixed_size_interval_var(offsets[i], size, "")
            live[i] = model.new_fixed_size_interval_var(lower, upper - lower, "")
            model.add(offsets[i] + size <= peak)
        if self.model == "2d":
            model.add_no_overlap_2d(list(live.values()), list(taken.values()))
            model.add_cumulative(list(live.values()), [row[3] for row in listed], peak)
        else:
            start, stop = problem.sections.start, problem.sections.stop
            for section in range(len(problem.sections)):
                members = np.flatnonzero((start <= section) & (section < stop)).tolist()
                model.add_no_overlap([taken[i] for i in members])
        model.minimize(peak)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = self.workers
        solver.parameters.max_time_in_seconds = budget.remaining()
        status = solver.solve(model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            raise NoPlanError(f"CP-SAT says {solver.status_name(status).lower()}")
        found = np.zeros(len(problem), np.int64)
        for i, offset in offsets.items():
            found[i] = unit * solver.value(offset)
        return Solution(found)


@dataclass(frozen=True)
class Vela(Solver):
    """The allocators of Arm's Vela, the compiler for Ethos-U: closed lifetimes, alignments.

    Parameters
    ----------
    search
        Its hill climb, with its own limits of iterations, stopped with its best plan when the time
        is up; without it its greedy allocator.
    """

    search: bool = True

    supports: ClassVar[frozenset[str]] = frozenset({"alignment"})
    requires: ClassVar[tuple[str, ...]] = ("ethosu",)

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        solid = np.flatnonzero(problem.size)
        ranges = [_LiveRange(problem, i) for i in solid.tolist()]
        offsets = np.zeros(len(problem), np.int64)
        offsets[solid] = (_climbed if self.search else _allocated)(ranges, budget)
        return Solution(offsets)


class _LiveRange:
    """What Vela's allocators read of its class of this name, and the address that they set."""

    def __init__(self, problem: Problem, i: int) -> None:
        # Sections instead of steps, for it keeps a list for each step.
        self.start_time = int(problem.sections.start[i])
        self.end_time = int(problem.sections.stop[i]) - 1
        self.size = int(problem.size[i])
        self.alignment = int(problem.alignment[i])
        self.name = i
        self.address = 0

    def get_alignment(self) -> int:
        return self.alignment

    def set_address(self, address: int) -> int:
        self.address = address
        return address

    def __lt__(self, other: _LiveRange) -> bool:
        return self.name < other.name


def _climbed(ranges: list[_LiveRange], budget: Budget) -> list[int]:
    from ethosu.vela.hillclimb_allocation import HillClimbAllocator

    class Limited(HillClimbAllocator):  # type: ignore[misc]
        def allocate_indices(self, indices: list[int]) -> int:
            if budget.expired() and hasattr(self, "allocated_addresses"):
                raise TimeoutError
            size: int = super().allocate_indices(indices)
            return size

    allocator = Limited(ranges, None, budget.target)
    try:
        addresses: list[int] = allocator.allocate()
    except TimeoutError:
        addresses = allocator.allocated_addresses
    return addresses


def _allocated(ranges: list[_LiveRange], budget: Budget) -> list[int]:
    from types import SimpleNamespace

    from ethosu.vela.greedy_allocation import GreedyAllocator

    GreedyAllocator(SimpleNamespace(lrs=ranges)).allocate_live_ranges(alignment=1)
    return [placed.address for placed in ranges]


@dataclass(frozen=True)
class Rectpack(Solver):
    """A packer of rectangles, which may move them in time: mostly its answer is no plan.

    It is here so that nobody has to find that out again.
    """

    requires: ClassVar[tuple[str, ...]] = ("rectpack",)

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        import rectpack

        _, rows = _rows(problem)
        listed = list(rows)
        horizon = max(upper for _, _, upper, *_ in listed) - min(lower for _, lower, *_ in listed)
        packer = rectpack.newPacker(rotation=False)
        packer.add_bin(horizon, sum(size for *_, size, _ in listed))
        for i, lower, upper, size, _ in listed:
            packer.add_rect(upper - lower, size, rid=i)
        packer.pack()
        offsets = np.zeros(len(problem), np.int64)
        for _, _, y, _, _, i in packer.rect_list():
            offsets[i] = y
        return Solution(offsets)


# -- programs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class MiniMalloc(Solver):
    """The program of google/minimalloc: it fits buffers into a capacity, so it is asked often.

    First for the target, then for capacities above it that grow from 1/64 to twice as much; each
    gets its share of the time that is left.

    Parameters
    ----------
    path
        Of the program.
    """

    path: str = "minimalloc"

    supports: ClassVar[frozenset[str]] = frozenset({"alignment"})

    SLACK: ClassVar[tuple[float, ...]] = (0, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        solid = np.flatnonzero(problem.size)  # size 0 makes it say that there is no plan
        offsets = np.zeros(len(problem), np.int64)
        with tempfile.TemporaryDirectory() as folder:
            given, answer = Path(folder, "problem.csv"), Path(folder, "plan.csv")
            io.write_csv(problem.select(solid), given)
            for number, slack in enumerate(self.SLACK):
                share = budget.remaining() / (len(self.SLACK) - number)
                options = {
                    "capacity": int(budget.target * (1 + slack)),
                    "input": given,
                    "output": answer,
                    "timeout": "inf" if share == float("inf") else f"{share:.3f}s",
                }
                _execute([self.path, *(f"--{key}={value}" for key, value in options.items())])
                if answer.exists() and answer.stat().st_size:
                    placed = io.read_plan(answer)
                    offsets[solid] = [placed[id] for id in problem.select(solid).ids]
                    return Solution(offsets)
        raise NoPlanError("no capacity up to twice the load was met in time")


@dataclass(frozen=True)
class Idealloc(Solver):
    """The program of cappadokes/idealloc: it prints a peak, but no offsets.

    Parameters
    ----------
    path
        Of the program.
    lives
        How often it may try in vain to find a better plan.
    """

    path: str = "idealloc"
    lives: int = 1

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        with tempfile.TemporaryDirectory() as folder:
            given = Path(folder, "problem.csv")
            io.write_csv(problem.select(np.flatnonzero(problem.size)), given)
            lives = f"--max-lives={self.lives}"
            said = _execute([self.path, f"--input={given}", lives, "in-ex-csv"])
        makespan = re.search(r"Makespan:\s*(\d+) bytes", said)
        if makespan is None:
            raise NoPlanError(f"idealloc says {said.strip()[-200:]!r}")
        raise ClaimedPeakError("idealloc prints no offsets", peak=int(makespan[1]))


def _execute(command: list[str]) -> str:
    """What a program prints; it is stopped from outside if it takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise SolverUnavailableError(f"{command[0]} cannot be started: {error}") from error
    if done.returncode < 0:
        raise NoPlanError(f"{command[0]} was ended by signal {-done.returncode}")
    return done.stdout + done.stderr


# -- conventions --------------------------------------------------------------------------------


def _seconds(budget: Budget) -> float | None:
    return None if budget.time_limit is None else budget.remaining()


def _rows(
    problem: Problem, aligned: bool = False
) -> tuple[int, Iterator[tuple[int, int, int, int, int]]]:
    """A unit, and (position, lower, upper, size, pin) of each buffer that has a size, in units.

    The unit divides all pins, and all alignments if the peer is able to honour them (`aligned`).
    Otherwise it is a multiple of the one that all buffers share, and sizes are rounded up to it.
    Lifetimes are those of the sections, which no planner can tell from steps.
    """
    solid = np.flatnonzero(problem.size)
    distinct = np.unique(problem.alignment[solid])
    pins = problem.pin[solid]
    pinned = pins != FREE
    unit = int(np.gcd.reduce(np.concatenate([problem.size[solid], pins[pinned]])))
    if aligned:
        unit = int(np.gcd.reduce(distinct, initial=unit))
    elif len(distinct) > 1:
        raise UnsupportedError("it knows no alignments, and these buffers have different ones")
    elif unit % distinct[0] != 0:
        unit = int(distinct[0])
    columns: tuple[IntArray, ...] = (
        solid,
        problem.sections.start[solid],
        problem.sections.stop[solid],
        -(-problem.size[solid] // unit),
        np.where(pinned, pins // unit, FREE),
    )
    return unit, zip(*(column.tolist() for column in columns), strict=True)

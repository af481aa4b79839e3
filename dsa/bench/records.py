"""Records: one run of one solver on one problem, a line of JSON each."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

from dsa.errors import FileFormatError

__all__ = ["STATUSES", "Record", "append", "read"]

# How a run can end. Only the first two have a peak that counts: their plan has been validated.
STATUSES = {
    "optimal": "a valid plan whose peak equals the lower bound",
    "feasible": "a valid plan",
    "claimed": "a peak without a plan that could be validated",
    "refused": "the problem asks for what the solver does not do",
    "unavailable": "not installed, or it does not work here",
    "invalid": "what it returned is no plan",
    "none": "it ended without a plan",
    "timeout": "stopped from outside, after the time limit and a grace",
    "crash": "its process died",
}
PLANNED = ("optimal", "feasible")


@dataclass(frozen=True, slots=True)
class Record:
    """What a run gave and what it took.

    Parameters
    ----------
    instance, fingerprint, buffers, load
        The problem.
    solver
        What the run was asked for, as on the command line.
    made
        The solver with all its options, as an expression that makes it again.
    seed, repeat
        The seed, None where the solver has none; and which of several equal runs it was.
    time_limit
        Seconds that the solver was given.
    status
        One of `STATUSES`.
    message
        What went wrong, if something did.
    peak, bound
        Of the plan, in bytes. The bound is the largest known: the load, what the solver proved,
        and what the registry knows.
    wall, cpu
        Seconds of the call of `plan()`, validation included.
    memory
        Bytes by which the peak memory of the process grew.
    curve
        Pairs of seconds and peak: how the peak fell.
    reference
        Cpu seconds of a fixed workload in the same process: what a second is worth here.
    version, machine
        Of the library and what it used; of the computer.

    Examples
    --------
    >>> record = Record("a", "f", 3, 100, "auto", status="feasible", peak=110, bound=100)
    >>> record.ratio, record.planned
    (1.1, True)
    """

    instance: str
    fingerprint: str
    buffers: int
    load: int
    solver: str
    made: str = ""
    seed: int | None = None
    repeat: int = 0
    time_limit: float = 0.0
    status: str = "none"
    message: str = ""
    peak: int | None = None
    bound: int = 0
    wall: float = 0.0
    cpu: float = 0.0
    memory: int = 0
    curve: tuple[tuple[float, int], ...] = ()
    reference: float = 0.0
    version: Mapping[str, str] = field(default_factory=dict)
    machine: str = ""

    @property
    def planned(self) -> bool:
        """Whether there is a valid plan."""
        return self.status in PLANNED

    @property
    def ratio(self) -> float:
        """Peak over bound, at least 1; infinity without a valid plan."""
        if not self.planned or self.peak is None:
            return math.inf
        return self.peak / self.bound if self.bound else 1.0

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes two runs the same: if one of them is recorded, the other is not needed."""
        return (*self.asked, self.version.get("dsa"))

    @property
    def asked(self) -> tuple[Any, ...]:
        """What was run, whatever came of it and whichever version it was."""
        return self.fingerprint, self.solver, self.seed, self.repeat, self.time_limit

    @property
    def paced(self) -> list[tuple[float, int]]:
        """The curve in cpu seconds, as if they had been spent evenly over the wall time."""
        pace = self.cpu / self.wall if self.wall else 1.0
        return [(seconds * pace, peak) for seconds, peak in self.curve]

    def bounded(self, bound: int) -> Record:
        """The record with another bound, which its status follows."""
        if not self.planned:
            return replace(self, bound=bound)
        status = "optimal" if self.peak == bound else "feasible"
        return replace(self, bound=bound, status=status)

    @property
    def line(self) -> str:
        """The record as a line of JSON."""
        return json.dumps(asdict(self), separators=(",", ":"))


_NAMES = {column.name for column in fields(Record)}


def read(path: str | PathLike[str]) -> list[Record]:
    """The records of a file.

    Raises
    ------
    FileFormatError
        Naming the line that is no record. A last line that was cut off is left out: the run that
        wrote it was stopped.
    """
    records = []
    text = Path(path).read_text("utf-8")
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if line.endswith("\n") and line.strip():
            records.append(_record(line, f"{path}, line {number}"))
    return records


def _record(line: str, where: str) -> Record:
    try:
        data = json.loads(line)
    except json.JSONDecodeError as error:
        raise FileFormatError(f"{where}: no JSON: {error}") from error
    if not isinstance(data, dict) or not data.keys() <= _NAMES:
        raise FileFormatError(f"{where}: no record of a run")
    data["curve"] = tuple((seconds, peak) for seconds, peak in data.get("curve", ()))
    try:
        return Record(**data)
    except TypeError as error:
        raise FileFormatError(f"{where}: {error}") from error


def append(path: str | PathLike[str], records: Iterable[Record]) -> Iterator[Record]:
    """Write each record to the end of a file as it comes, and hand it on.

    A last line that was cut off is taken away.
    """
    if Path(path).exists():
        text = Path(path).read_text("utf-8")
        Path(path).write_text(text[: text.rfind("\n") + 1], "utf-8")
    with open(path, "a", encoding="utf-8") as file:
        for record in records:
            file.write(record.line + "\n")
            file.flush()
            yield record

"""What got better and what got worse between two sets of records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dsa.bench.records import Record

__all__ = ["Change", "changes", "cost"]

TOLERANCE = 4.0  # times the cost: machines differ, and others use them too
LEAST = 0.02  # cpu seconds below which a run is not timed well enough to be judged


@dataclass(frozen=True, slots=True)
class Change:
    """One line: what changed, and whether to the worse.

    Examples
    --------
    >>> old = Record("a", "f", 3, 100, "auto", status="feasible", peak=110, bound=100)
    >>> new = Record("a", "f", 3, 100, "auto", status="feasible", peak=121, bound=100)
    >>> for change in changes([old], [new]):
    ...     print(change)
    worse: a, auto: peak 110 -> 121
    """

    worse: bool
    instance: str
    solver: str
    what: str

    def __str__(self) -> str:
        return f"{'worse' if self.worse else 'better'}: {self.instance}, {self.solver}: {self.what}"


def cost(record: Record) -> float:
    """Cpu seconds of a run in units of the reference workload of its own process."""
    return max(record.cpu, LEAST) / record.reference if record.reference else 0.0


def changes(
    old: Iterable[Record], new: Iterable[Record], tolerance: float = TOLERANCE
) -> Iterator[Change]:
    """Compare the runs that both have: quality exactly, cost as a ratio.

    Parameters
    ----------
    old, new
        Records; of equal runs the last counts.
    tolerance
        How many times dearer a run must be to be worse.
    """
    before = {_run(record): record for record in old}
    for key, after in {_run(record): record for record in new}.items():
        if key in before:
            for worse, what in _differences(before[key], after, tolerance):
                yield Change(worse, after.instance, after.solver, what)


def _run(record: Record) -> tuple[object, ...]:
    return record.fingerprint, record.solver, record.seed, record.repeat


def _differences(old: Record, new: Record, tolerance: float) -> Iterator[tuple[bool, str]]:
    if old.planned != new.planned:
        yield old.planned, f"{old.status} -> {new.status} {new.message}".rstrip()
        return
    if new.peak is None or old.peak is None:
        return
    if new.peak != old.peak:
        yield new.peak > old.peak, f"peak {old.peak} -> {new.peak}"
    if new.bound != old.bound:
        yield new.bound < old.bound, f"bound {old.bound} -> {new.bound}"
    if old.reference and new.reference:
        ratio = cost(new) / cost(old)
        if not 1 / tolerance <= ratio <= tolerance:
            yield ratio > 1, f"{ratio:.2g} times the cost"

"""Tables made from records alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, median_high

from dsa.bench.records import Record
from dsa.errors import DsaError

__all__ = [
    "Group",
    "Loss",
    "best_ratios",
    "duels",
    "grouped",
    "losses",
    "markdown",
    "origin",
    "table",
]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, the first column left-aligned and the others right-aligned.

    Examples
    --------
    >>> print(table(["name", "n"], [["a", "1"]]))
    | name | n |
    | --- | ---: |
    | a | 1 |
    """
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@dataclass(frozen=True, slots=True)
class Group:
    """The runs of one solver on one instance: seeds and repeats.

    Its figures are medians; where half of the runs or more gave no plan, the ratio is infinite and
    the status is that of the first that failed.
    """

    records: tuple[Record, ...]

    @property
    def instance(self) -> str:
        """Its name."""
        return self.records[0].instance

    @property
    def solver(self) -> str:
        """As on the command line."""
        return self.records[0].solver

    @property
    def ratio(self) -> float:
        """Peak over bound."""
        return median_high(record.ratio for record in self.records)

    @property
    def status(self) -> str:
        """How the runs ended."""
        wanted = math.isinf(self.ratio)
        return next(r.status for r in self.records if math.isinf(r.ratio) == wanted)

    @property
    def planned(self) -> bool:
        """Whether most runs gave a plan."""
        return not math.isinf(self.ratio)

    @property
    def wall(self) -> float:
        """Seconds of wall time."""
        return median(record.wall for record in self.records)

    @property
    def cpu(self) -> float:
        """Seconds of cpu time, of all threads."""
        return median(record.cpu for record in self.records)

    @property
    def memory(self) -> int:
        """Bytes, the most of any run."""
        return max(record.memory for record in self.records)


def agreed(records: Iterable[Record]) -> list[Record]:
    """The records, each with the highest bound that any of them has for its problem.

    Raises
    ------
    DsaError
        If there is a valid plan below a bound: then one of two solvers is wrong.
    """
    listed = list(records)
    bounds: dict[str, Record] = {}
    for record in listed:
        best = bounds.setdefault(record.fingerprint, record)
        bounds[record.fingerprint] = max(best, record, key=lambda r: r.bound)
    for record in listed:
        best = bounds[record.fingerprint]
        if record.planned and record.peak is not None and record.peak < best.bound:
            raise DsaError(
                f"{record.instance}: {record.solver} has a valid plan of {record.peak}, below the "
                f"bound of {best.bound} in the record of {best.solver}; one of them is wrong"
            )
    return [record.bounded(bounds[record.fingerprint].bound) for record in listed]


def grouped(records: Iterable[Record]) -> list[Group]:
    """The runs by instance and solver, in the order in which these come up."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in agreed(records):
        groups.setdefault((record.instance, record.solver), []).append(record)
    return [Group(tuple(group)) for group in groups.values()]


def best_ratios(records: Iterable[Record]) -> dict[str, float]:
    """The lowest ratio on each instance."""
    best: dict[str, float] = {}
    for group in grouped(records):
        best[group.instance] = min(best.get(group.instance, math.inf), group.ratio)
    return best


@dataclass(frozen=True, slots=True)
class Loss:
    """An instance on which a peer is better than the best of ours: see `losses`."""

    instance: str
    peer: str
    peer_gap: float
    peer_seconds: float
    ours: str
    our_gap: float
    our_seconds: float


def losses(groups: Sequence[Group], is_peer: Callable[[str], bool]) -> list[Loss]:
    """Where a peer has a lower peak than ours, or the same peak much sooner.

    Ours is `auto`, what one gets without asking; without runs of it, the best of our solvers. Much
    sooner is with less than half its cpu seconds, and more than 0.1 s fewer. On each instance the
    best peer is named.
    """
    found = []
    default = any(group.solver == "auto" for group in groups)
    for instance in dict.fromkeys(group.instance for group in groups):
        planned = [g for g in groups if g.instance == instance and g.planned]
        ours = [g for g in planned if (g.solver == "auto" if default else not is_peer(g.solver))]
        theirs = [g for g in planned if is_peer(g.solver)]
        if not ours or not theirs:
            continue
        best, peer = (min(some, key=lambda g: (g.ratio, g.cpu)) for some in (ours, theirs))
        sooner = peer.cpu < best.cpu / 2 and peer.cpu < best.cpu - 0.1
        if peer.ratio < best.ratio or (peer.ratio == best.ratio and sooner):
            gaps = peer.ratio - 1, best.ratio - 1
            found.append(
                Loss(instance, peer.solver, gaps[0], peer.cpu, best.solver, gaps[1], best.cpu)
            )
    return found


def duels(groups: Sequence[Group]) -> dict[str, tuple[int, int, int]]:
    """For each solver: on how many instances the peak of `auto` is lower, the same, higher.

    Only where both have a plan; empty without runs of `auto`.
    """
    ours = {g.instance: g.ratio for g in groups if g.solver == "auto" and g.planned}
    counts = {g.solver: [0, 0, 0] for g in groups} if ours else {}
    for group in groups:
        if group.planned and group.instance in ours:
            own = ours[group.instance]
            counts[group.solver][1 + (own > group.ratio) - (own < group.ratio)] += 1
    return {name: (lower, same, higher) for name, (lower, same, higher) in counts.items()}


def markdown(records: Sequence[Record]) -> str:
    """The records as Markdown: one solver in full, several side by side."""
    if not records:
        return f"{origin(records)}\n"
    names = list(dict.fromkeys(record.solver for record in records))
    body = _in_full(records) if len(names) == 1 else _side_by_side(records, names)
    return f"{body}\n\n{origin(records)}\n"


def _in_full(records: Sequence[Record]) -> str:
    head = ["instance", "buffers", "load", "peak", "peak / load", "bound", "status", "seconds"]
    rows = [
        [
            record.instance,
            f"{record.buffers:,}",
            f"{record.load:,}",
            "-" if record.peak is None else f"{record.peak:,}",
            _ratio(record.peak / record.load if record.peak and record.load else math.inf),
            f"{record.bound:,}",
            record.status,
            f"{record.wall:.2f}",
        ]
        for record in records
    ]
    optimal = sum(record.status == "optimal" for record in records)
    seconds = sum(record.wall for record in records)
    return (
        f"{table(head, rows)}\n\n`{records[0].solver}`: {optimal} of {len(records)} proven "
        f"optimal, {seconds:.1f} s in all."
    )


def _ratio(value: float) -> str:
    return "-" if math.isinf(value) else f"{value:.5f}"


def _side_by_side(records: Sequence[Record], names: Sequence[str]) -> str:
    """Peak over bound of each solver on each instance, the lowest in bold; totals below."""
    best = best_ratios(records)
    cells = {(group.instance, group.solver): group for group in grouped(records)}
    rows = []
    for instance in dict.fromkeys(record.instance for record in records):
        row = [instance]
        for name in names:
            group = cells.get((instance, name))
            row.append("" if group is None else _cell(group, best[instance]))
        rows.append(row)
    return f"{table(['instance', *names], rows)}\n\n{_totals(records, names)}"


def _cell(group: Group, best: float) -> str:
    if not group.planned:
        return group.status
    text = f"{group.ratio:.4f}"
    return f"**{text}**" if group.ratio == best else text


def _totals(records: Sequence[Record], names: Sequence[str]) -> str:
    head = ["solver", "optimal", "valid", "runs", "mean ratio", "worst ratio", "cpu s", "MiB"]
    duel = duels(grouped(records))
    if duel:
        head.append("auto lower / same / higher")
    rows = []
    for name in names:
        groups = [group for group in grouped(records) if group.solver == name]
        ratios = [group.ratio for group in groups if group.planned]
        rows.append(
            [
                name,
                str(sum(group.status == "optimal" for group in groups)),
                str(len(ratios)),
                str(len(groups)),
                f"{fmean(ratios):.4f}" if ratios else "-",
                f"{max(ratios):.4f}" if ratios else "-",
                f"{sum(group.cpu for group in groups):.1f}",
                f"{max(group.memory for group in groups) / 2**20:.0f}",
                *([" / ".join(map(str, duel[name]))] if duel else []),
            ]
        )
    return table(head, rows)


def origin(records: Sequence[Record]) -> str:
    """Where and with what the figures were measured, and with which time limit."""
    if not records:
        return "Nothing has been measured."
    record = records[0]
    versions = ", ".join(f"{name} {version}" for name, version in record.version.items())
    limits = " or ".join(f"{limit:g}" for limit in sorted({r.time_limit for r in records}))
    return f"Measured on {record.machine}, with {versions}; {limits} s a run."

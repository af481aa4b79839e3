"""Tables made from records alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, median_high

from dsa.bench.records import Record

__all__ = ["Group", "best_ratios", "grouped", "markdown", "table"]


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
        return self.records[0].instance

    @property
    def solver(self) -> str:
        return self.records[0].solver

    @property
    def ratio(self) -> float:
        return median_high(record.ratio for record in self.records)

    @property
    def status(self) -> str:
        wanted = math.isinf(self.ratio)
        return next(r.status for r in self.records if math.isinf(r.ratio) == wanted)

    @property
    def wall(self) -> float:
        return median(record.wall for record in self.records)

    @property
    def cpu(self) -> float:
        return median(record.cpu for record in self.records)

    @property
    def memory(self) -> int:
        return max(record.memory for record in self.records)


def grouped(records: Iterable[Record]) -> list[Group]:
    """The runs by instance and solver, in the order in which these come up."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.instance, record.solver), []).append(record)
    return [Group(tuple(group)) for group in groups.values()]


def best_ratios(records: Iterable[Record]) -> dict[str, float]:
    """The lowest ratio on each instance."""
    best: dict[str, float] = {}
    for group in grouped(records):
        best[group.instance] = min(best.get(group.instance, math.inf), group.ratio)
    return best


def markdown(records: Sequence[Record]) -> str:
    """The records as Markdown: one solver in full, several side by side."""
    if not records:
        return "No records.\n"
    names = list(dict.fromkeys(record.solver for record in records))
    body = _in_full(records) if len(names) == 1 else _side_by_side(records, names)
    return f"{body}\n\n{_origin(records)}\n"


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
    if math.isinf(group.ratio):
        return group.status
    text = f"{group.ratio:.4f}"
    return f"**{text}**" if group.ratio == best else text


def _totals(records: Sequence[Record], names: Sequence[str]) -> str:
    head = ["solver", "optimal", "valid", "runs", "mean ratio", "worst ratio", "cpu s", "MiB"]
    rows = []
    for name in names:
        groups = [group for group in grouped(records) if group.solver == name]
        ratios = [group.ratio for group in groups if not math.isinf(group.ratio)]
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
            ]
        )
    return table(head, rows)


def _origin(records: Sequence[Record]) -> str:
    """Where and with what the figures were measured, and with which time limit."""
    record = records[0]
    versions = ", ".join(f"{name} {version}" for name, version in record.version.items())
    return f"Measured on {record.machine}, with {versions}; {record.time_limit:g} s a run."

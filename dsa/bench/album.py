"""The best and the worst plan of each instance, kept in a folder for the report's pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dsa import io
from dsa.bench.instances import Instance
from dsa.bench.records import Record
from dsa.bounds import Bound
from dsa.problem import IntArray
from dsa.result import Plan
from dsa.units import format_size

__all__ = ["Album", "pictures"]

DRAWN = 400  # buffers at most, of which something can be seen


@dataclass(frozen=True)
class Album:
    """A folder of plans.

    Parameters
    ----------
    folder
        Where the plans are written, as JSON; it is made if it is not there.
    """

    folder: Path
    _peaks: dict[str, tuple[int, int]] = field(default_factory=dict)

    def keep(self, record: Record, instance: Instance, offsets: IntArray) -> None:
        """Write the plan if none was better, or none worse, on its instance."""
        peak = record.peak or 0
        low, high = self._peaks.get(instance.name, (peak + 1, peak - 1))
        self._peaks[instance.name] = min(low, peak), max(high, peak)
        bound = Bound(record.bound, "search")
        plan = Plan(instance.problem, offsets, bound, record.made, record.wall)
        self.folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"\W+", "-", instance.name)
        for word, better in (("best", peak < low), ("worst", peak > high)):
            if better:
                io.write_json(plan, self.folder / f"{name}.{word}.json")


def pictures(folder: Path, count: int = 3) -> Iterator[tuple[str, Plan]]:
    """Plans to draw and words below them: the pairs of best and worst that differ most."""
    pairs = []
    for best in sorted(folder.glob("*.best.json")):
        name = best.name.removesuffix(".best.json")
        pair = io.read_plan(best), io.read_plan(folder / f"{name}.worst.json")
        if len(pair[0]) <= DRAWN:
            pairs.append((pair[1].peak / max(pair[0].peak, 1), name, pair))
    for ratio, name, pair in sorted(pairs, key=lambda pair: -pair[0])[:count]:
        for word, plan in zip(("best", "worst"), pair, strict=True):
            peak, share = format_size(plan.peak), "" if word == "best" else f", {ratio:.2f} times"
            yield f"{name}: the {word} plan, {peak}{share} ({plan.origin})", plan

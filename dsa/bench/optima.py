"""How near to proven optima does a solver come? ``python -m dsa.bench.optima FOLDER``.

Plans every CSV file of a folder and prints a Markdown table: peak over load, the gap to the
proven bound, and what it took. Each plan has been validated by `plan()`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from dsa.io import read_csv
from dsa.planner import plan
from dsa.result import Plan

__all__ = ["main"]

COLUMNS = ("instance", "buffers", "load", "peak", "peak / load", "bound", "status", "seconds")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit code is 0."""
    parser = argparse.ArgumentParser(prog="python -m dsa.bench.optima", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, help="CSV files, or folders of them")
    parser.add_argument("--solver", default="exact")
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="SECONDS")
    options = parser.parse_args(arguments)

    write = sys.stdout.write
    write(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}\n")
    plans = []
    for path in _files(options.paths):
        result = plan(read_csv(path), options.solver, time_limit=options.time_limit)
        plans.append(result)
        write(f"| {' | '.join(_row(path.stem, result))} |\n")
        sys.stdout.flush()
    optimal = sum(result.status == "optimal" for result in plans)
    seconds = sum(result.seconds for result in plans)
    write(f"\n{optimal} of {len(plans)} proven optimal, {seconds:.1f} s in all.\n")
    return 0


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        yield from sorted(path.glob("*.csv")) if path.is_dir() else [path]


def _row(name: str, result: Plan) -> list[str]:
    load = result.problem.load
    return [
        name,
        str(len(result)),
        str(load),
        str(result.peak),
        f"{result.peak / load if load else 1:.5f}",
        str(result.lower_bound),
        result.status,
        f"{result.seconds:.2f}",
    ]


if __name__ == "__main__":
    sys.exit(main())

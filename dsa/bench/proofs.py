"""How far do proofs above the load reach? ``dsa bench proofs``.

Plans problems whose optimum is above their load, with a proof, and has it checked. Prints a
Markdown table: nodes and entries of the log, seconds of cpu to find and prove the optimum and to
check the proof.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence

from dsa.bench.generators import FAMILIES
from dsa.planner import plan
from dsa.problem import Intervals
from dsa.proof import check

__all__ = ["EIGHT", "SEVEN", "chained", "main", "noisy", "scaled"]

Row = tuple[int, int, int]

# The smallest problem whose optimum is above the load, 5 to 4; and one of 10 to 8 that is not made
# of it. Found by exhaustive search.
SEVEN = [(0, 1, 2), (0, 2, 2), (1, 3, 1), (1, 4, 1), (2, 4, 1), (3, 5, 2), (4, 5, 2)]
EIGHT = [
    *[(0, 3, 4), (0, 2, 4), (2, 8, 2), (2, 6, 2)],
    *[(4, 7, 2), (4, 6, 2), (6, 9, 4), (8, 9, 4)],
]


def scaled(rows: list[Row], k: int, later: int = 0) -> list[Row]:
    """The rows with sizes times k, some steps later."""
    return [(lower + later, upper + later, k * size) for lower, upper, size in rows]


def chained(rows: list[Row], times: int, k: int) -> list[Row]:
    """Copies one after the other, each held together with the next by a buffer of size 1."""
    end = max(upper for _, upper, _ in rows)
    copies = [row for i in range(times) for row in scaled(rows, k, i * end)]
    return copies + [(i * end - 1, i * end + 1, 1) for i in range(1, times)]


def noisy(rows: list[Row], count: int, seed: int) -> list[Row]:
    """The rows, and small buffers of random lifetimes."""
    randomness, end = random.Random(seed), max(upper for _, upper, _ in rows)
    lowers = [randomness.randrange(end) for _ in range(count)]
    return rows + [
        (lower, randomness.randint(lower + 1, end), randomness.randint(1, 2)) for lower in lowers
    ]


def cases() -> dict[str, Intervals]:
    """Problems above their load, by name."""
    chains = {f"chain of {times}": chained(SEVEN, times, 10) for times in (2, 5, 10, 20)}
    noises = {f"seven and {n} small": noisy(scaled(SEVEN, 20), n, 1) for n in (2, 4, 8, 16)}
    mixed = {f"chain of {k}, {2 * k} small": noisy(chained(SEVEN, k, 20), 2 * k, 1) for k in (2, 5)}
    return {
        "seven": SEVEN,
        "seven, 1000 times the size": scaled(SEVEN, 1000),
        "eight": EIGHT,
        "chain of 5 eights": chained(EIGHT, 5, 10),
        **chains,
        **noises,
        **mixed,
        **{f"above-load:{n}:0": FAMILIES["above-load"](n, 0) for n in (100, 1000)},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit code is 0."""
    parser = argparse.ArgumentParser(prog="dsa bench proofs", description=__doc__)
    parser.add_argument("--nodes", type=int, default=60_000, help="of each search")
    options = parser.parse_args(arguments)
    columns = ("problem", "buffers", "load", "proven", "peak", "nodes", "entries", "plan", "check")
    sys.stdout.write(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}\n")
    for name, rows in cases().items():
        began = time.process_time()
        result = plan(rows, "exact", proof=True, nodes=options.nodes)
        planned = time.process_time()
        proven = check(result.problem, result.proof) if result.proof else result.problem.load
        checked = time.process_time()
        entries = len(result.proof.log) if result.proof else 0
        nodes = result.stats.get("nodes", 0)
        numbers = (len(result), result.problem.load, proven, result.peak, nodes, entries)
        cells = [*map(str, numbers), f"{planned - began:.2f}", f"{checked - planned:.2f}"]
        sys.stdout.write(f"| {name} | {' | '.join(cells)} |\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())

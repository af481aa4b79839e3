"""Exactness with constraints, for the record: ``python -m tests.record_constraints 20000``.

Random small problems with all features mixed: `exact` against every plan there is, by definition;
and no heuristic below it. Problem i depends on i alone, so that a run can be split.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from random import Random
from typing import Any

from dsa import Buffer, Constraints, InvalidProblemError, Plan, Problem, plan
from dsa.testing import optimum
from tests import oracle

HEURISTICS = ("naive", "greedy-by-size", "greedy-by-breadth", "linear-scan", "strip-packing")


def random_problem(i: int) -> Problem:
    """Problem i: two to five buffers; InvalidProblemError where its rules contradict each other."""
    random = Random(i)
    rows = [random_buffer(random, k) for k in range(random.randint(2, 5))]

    def pair(chance: float, *more: int) -> list[tuple[Any, ...]]:
        if random.random() >= chance:
            return []
        a, b = random.sample(range(len(rows)), 2)
        return [(a, b, *more)]

    rules: dict[str, Any] = {
        "apart": pair(0.2),
        "exclusive": pair(0.25),
        "in_place": pair(0.4),
        "aliases": pair(0.25, random.randint(-2, 2)),
        "relative": pair(0.2, random.randint(-4, 4)),
        "chunk": random.randint(4, 8) if random.random() < 0.15 else None,
    }
    if random.random() < 0.2:
        start = random.randint(0, 5)
        rules["reserved"] = [(start, start + random.randint(1, 3))]
    for a, b in rules["in_place"]:  # mostly a pair that may be
        lower, size = rows[a].upper - 1, min(rows[a].size, rows[b].size)
        rows[b] = Buffer(lower, lower + random.randint(1, 3), size, id=b)
    return Problem(rows, constraints=Constraints(**rules))


def random_buffer(random: Random, id: int) -> Buffer:
    """A buffer with perhaps an alignment, a pin and holes."""
    lower = random.randint(0, 4)
    upper, size = lower + random.randint(1, 4), random.randint(random.random() > 0.1, 4)
    holes, step = [], lower
    while step < upper and random.random() < 0.35:
        begin = random.randint(step, upper - 1)
        step = random.randint(begin + 1, upper)
        start = random.randint(0, size)
        window = (start, random.randint(start, size)) if random.random() < 0.5 else ()
        holes.append((begin, step, *window))
    alignment = random.choice((1, 1, 1, 2, 3, 4))
    pin = random.randint(0, 6) if random.random() < 0.1 else None
    return Buffer(lower, upper, size, id=id, alignment=alignment, offset=pin, holes=holes)


def compare(i: int) -> Counter[str]:
    """Problem i: the optimum is one, and nobody is below it; what was compared."""
    try:
        problem = random_problem(i)
    except InvalidProblemError:
        return Counter(contradictory=1)
    best = plan(problem, "exact")
    assert best.status == "optimal"
    check(best)
    assert best.peak == optimum(problem)
    for name in HEURISTICS:
        found = plan(problem, name)
        check(found)
        assert best.peak <= found.peak
        assert found.lower_bound <= best.peak
    features = dict.fromkeys(problem.features, 1)
    return Counter(problems=1, by_search=best.bound_witness.kind == "search", **features)


def check(found: Plan) -> None:
    """The definition agrees that it is a plan."""
    broken = oracle.broken_rules(found.problem, found.offsets)
    assert not broken, f"{found.solver}: {broken}"


def main(arguments: list[str] | None = None) -> int:
    """Compare, and print the counts; an error names the first problem that differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.record_constraints", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    cpu, end = time.process_time(), options.first + options.count
    for i in range(options.first, end):
        try:
            counts += compare(i)
        except Exception as error:
            error.add_note(f"in problem {i}")
            raise
        if (i + 1) % 1000 == 0 or i + 1 == end:
            took = f"{time.process_time() - cpu:.0f} s of cpu"
            sys.stdout.write(f"{i + 1}: {dict(sorted(counts.items()))}, {took}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())

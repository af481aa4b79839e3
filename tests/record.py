"""Exactness, for the record: ``python -m tests.record 100000``.

Random small problems, each solved by `exact` with random options from a plan without reuse, and
compared with exhaustive search; a thousandth as many larger ones, compared with `mip` and `cp`.
Problem i depends on i alone, so that a run can be split.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from importlib.util import find_spec
from random import Random

import numpy as np

from dsa import Buffer, DsaError, InfeasibleError, Problem, plan
from dsa.budget import Budget
from dsa.presolve import solve_parts
from dsa.proof import check
from dsa.result import Solution
from dsa.solvers.exact import RULES, Exact, Minimiser
from dsa.solvers.naive import Naive
from dsa.solvers.orders import ORDERS
from dsa.testing import optimum
from dsa.validation import validate

SWITCHES = (
    "one_machine",
    "cores",
    "pairs",
    "repair",
    "components",
    "backjumping",
    "nogoods",
    "symmetry",
    "proof",
)
ALIGNMENTS = (1, 1, 2, 3, 4, 6)
MEDIUM = 1000  # small problems for each larger one


def small(i: int) -> tuple[Problem, Exact]:
    """Problem i, and the solver for it."""
    random = Random(i)
    return random_problem(random, random.randint(2, 7)), random_solver(random)


def random_problem(random: Random, count: int) -> Problem:
    """A crowded problem of so many buffers: one of three has alignments, one of three pins."""
    aligned, pinned, steps = random.random() < 1 / 3, random.random() < 1 / 3, random.randint(3, 8)
    rows: list[Buffer] = []
    for _ in range(count):
        lower = random.randrange(steps)
        upper = random.randint(lower + 1, steps)
        alignment = random.choice(ALIGNMENTS) if aligned else 1
        offset = alignment * random.randrange(8) if pinned and random.random() < 0.3 else None
        row = Buffer(lower, upper, random.randint(1, 6), alignment=alignment, offset=offset)
        rows += [] if any(_clash(row, other) for other in rows) else [row]
    return Problem(rows)


def _clash(a: Buffer, b: Buffer) -> bool:
    if a.offset is None or b.offset is None:
        return False
    together = a.lower < b.upper and b.lower < a.upper
    return together and a.offset < b.offset + b.size and b.offset < a.offset + a.size


def random_solver(random: Random) -> Exact:
    """Each switch on or off, one rule, one order."""
    return Exact(
        rules=(random.choice(sorted(RULES)),),
        orders=(random.choice(sorted(ORDERS.keys() - {"given"})),),
        guided=random.randint(0, 1),
        seed=random.randrange(10),
        accelerate=False,
        **{name: random.random() < 0.5 for name in SWITCHES},
    )


class Eager(Minimiser):
    """Tries cores and pairs from the first start."""

    PATIENCE = 0


def searched_from_the_worst(problem: Problem, solver: Exact) -> Solution:
    """The search starts from a plan without reuse, so that it has to work."""
    minimiser = Eager if solver.seed % 2 else Minimiser
    return solve_parts(
        lambda part, share: minimiser(
            solver, part.problem, share, np.asarray(Naive()(part.problem, share).offsets)
        ).run(),
        problem,
        Budget(),
    )


def compare_small(i: int) -> Counter[str]:
    """Problem i: peak, bound, proof and refusal against exhaustive search; what was compared."""
    problem, solver = small(i)
    best = optimum(problem)
    found = searched_from_the_worst(problem, solver)
    assert not validate(found.offsets, problem)
    assert found.peak(problem) == best >= (found.lower_bound or 0)
    if found.proof is not None:
        assert check(problem, found.proof) == found.lower_bound
    capacity = best + i % 4 - 2
    try:
        fits = plan(problem, solver, capacity=max(capacity, 0)).peak == best
    except InfeasibleError:
        fits = False
    assert fits == (capacity >= best)
    return Counter(
        small=1,
        above_load=best > problem.load,
        proofs=found.proof is not None,
        infeasible=not fits,
        aligned="alignment" in problem.features,
        pinned="pins" in problem.features,
    )


def compare_medium(i: int) -> Counter[str]:
    """Problem i, larger: `exact`, `mip` and `cp` contradict each other in nothing they prove."""
    problem = random_problem(Random(-i - 1), 12)
    found = {"exact": plan(problem, "exact")}
    for name, module in (("mip", "pulp"), ("cp", "ortools")):
        if find_spec(module):
            found[name] = plan(problem, name, time_limit=60)
    peak, bound = (min(p.peak for p in found.values()), max(p.lower_bound for p in found.values()))
    assert bound <= peak  # so those that prove an optimum prove the same
    optimal = {f"medium_by_{name}": p.status == "optimal" for name, p in found.items()}
    return Counter(medium=1, **optimal)


def main(arguments: list[str] | None = None) -> int:
    """Compare, and print the counts; an AssertionError names the first problem that differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.record", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    wall, cpu = time.time(), time.process_time()
    for i in range(options.first, options.first + options.count):
        try:
            counts += compare_small(i) + (compare_medium(i) if i % MEDIUM == 0 else Counter())
        except (AssertionError, DsaError) as error:
            error.add_note(f"in problem {i}, by {small(i)[1]}")
            raise
        if (i + 1) % 5000 == 0 or i + 1 == options.first + options.count:
            took = f"{time.process_time() - cpu:.0f} s of cpu, {time.time() - wall:.0f} s"
            sys.stdout.write(f"{i + 1}: {dict(counts)}, {took}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())

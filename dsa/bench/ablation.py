"""What is each idea of the exact search worth? ``dsa bench ablation FOLDER``.

Plans every CSV file of a folder with `exact` as it is, and then with one idea changed at a time,
each for the same number of nodes. Prints a Markdown table: the nodes until the optimum was proven,
or how far the peak was above the bound when the nodes were used up. Each plan is validated.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dsa.bounds import lower_bound
from dsa.budget import Budget
from dsa.io import read_csv
from dsa.presolve import solve_parts
from dsa.problem import Problem
from dsa.result import Solution
from dsa.solvers.exact import Exact
from dsa.validation import validate

__all__ = ["VARIANTS", "main"]

# What is changed, by the name of the row.
VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "one section rule: fewest": {"rules": ("fewest",)},
    "one section rule: lowest": {"rules": ("lowest",)},
    "one value order: span": {"orders": ("span",)},
    "no start guided by the best plan": {"guided": 0},
    "with the one-machine bound": {"one_machine": True},
    "without cores": {"cores": False},
    "without repair": {"repair": False},
    "without components": {"components": False},
    "without backjumping": {"backjumping": False},
    "without nogoods": {"nogoods": False},
    "without symmetry": {"symmetry": False},
    "without reductions": {},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit code is 0."""
    parser = argparse.ArgumentParser(prog="dsa bench ablation", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, help="CSV files, or folders of them")
    parser.add_argument("--nodes", type=int, default=20_000, help="of each run")
    parser.add_argument("--only", help="a part of the names of the rows to print")
    options = parser.parse_args(arguments)

    files = [file for path in options.paths for file in _files(path)]
    problems = {file.stem.partition(".")[0]: _problem(file) for file in files}
    write = sys.stdout.write
    write(
        f"| | {' | '.join(problems)} | proven | cpu seconds |\n|{' --- |' * (len(problems) + 3)}\n"
    )
    for name, changes in VARIANTS.items():
        if options.only and options.only not in name:
            continue
        solver = replace(Exact(nodes=options.nodes), **changes)
        solve = _whole if name == "without reductions" else _by_parts
        began = time.process_time()
        cells = [_cell(problem, solve(solver, problem)) for problem in problems.values()]
        seconds = time.process_time() - began
        proven = sum(not cell.startswith("+") for cell in cells)
        write(f"| {name} | {' | '.join(cells)} | {proven} | {seconds:.1f} |\n")
        sys.stdout.flush()
    return 0


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("*.csv")) if path.is_dir() else [path]


def _problem(path: Path) -> Problem:
    """What a file holds, without capacity and without what has no size."""
    problem = read_csv(path).with_capacity(None)
    return problem.select(np.flatnonzero(problem.size))


def _by_parts(solver: Exact, problem: Problem) -> Solution:
    """As `plan()` does it: components, without what lies at the bottom, in units."""
    budget = Budget(target=lower_bound(problem).value)
    return solve_parts(lambda part, share: solver(part.problem, share), problem, budget)


def _whole(solver: Exact, problem: Problem) -> Solution:
    """The problem as it is given."""
    return solver(problem, Budget(target=lower_bound(problem).value))


def _cell(problem: Problem, solution: Solution) -> str:
    """Nodes until the proof, or what is left above the bound, in per cent."""
    violations = validate(solution.offsets, problem)
    if violations:
        raise AssertionError(f"the plan is invalid: {violations[0]}")
    bound = max(solution.lower_bound or 0, lower_bound(problem).value)
    peak = solution.peak(problem)
    if peak == bound:
        return f"{solution.stats.get('nodes', 0):,}"
    return f"+{100 * (peak / bound - 1):.2g} %"


if __name__ == "__main__":
    sys.exit(main())

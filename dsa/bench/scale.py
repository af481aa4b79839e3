"""How solvers grow with the number of buffers. ``dsa bench scale``.

Each solver, and each stage of the way there and back, runs in a process of its own on problems
of growing size from seeded families. Prints a Markdown table: cpu seconds, peak memory, and the
growth: the exponent e for which the seconds grew as n^e since the size before.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType

from dsa import io
from dsa.bench import peers
from dsa.bench.cli import solver_named
from dsa.bench.instances import Instance, find
from dsa.bench.memory import forget_peak, peak_memory
from dsa.bench.runner import Limits, plan_runs, run, server
from dsa.bounds import lower_bound
from dsa.draw import svg
from dsa.kernels.skyline import skyline
from dsa.problem import Problem
from dsa.result import Plan
from dsa.solvers.orders import order_by
from dsa.validation import validate

__all__ = ["STAGES", "main"]

FAMILIES = ("layered", "transformer", "pipeline", "random")
SOLVERS = (
    *("auto", "strip-packing", "best-fit", "linear-scan", "naive"),
    *("greedy-by-size", "greedy:order=size:fit=first", "greedy-by-breadth", "hill-climb", "exact"),
)
COLUMNS = ("instance", "what", "cpu seconds", "growth", "memory in MB", "peak / load")


def _there_and_back(
    write: Callable[[Problem, Path], object], suffix: str
) -> Callable[[Plan], object]:
    def stage(plan: Plan) -> Problem:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"problem{suffix}"
            write(plan.problem, path)
            return io.load(path)

    return stage


def _columns(plan: Plan) -> Problem:
    problem = plan.problem
    columns = (problem.lower, problem.upper, problem.size)
    return Problem.from_columns(*columns, alignment=problem.alignment, offset=problem.pin)


# What is done with a plan, before or after solving.
STAGES: MappingProxyType[str, Callable[[Plan], object]] = MappingProxyType(
    {
        "from columns": _columns,
        "sections": lambda plan: _columns(plan).sections,
        "bound": lambda plan: lower_bound(plan.problem),
        "one skyline pass": lambda plan: skyline(plan.problem, order_by(plan.problem, "area")),
        "validator": lambda plan: validate(plan.offsets_array, plan.problem),
        "NPZ there and back": _there_and_back(io.write_numpy, ".npz"),
        "CSV there and back": _there_and_back(io.write_csv, ".csv"),
        "JSON there and back": _there_and_back(io.write_json, ".json"),
        "SVG": svg,
    }
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; the exit status is 0."""
    options = _parser().parse_args(arguments)
    if options.uncompiled:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
    else:
        importlib.import_module("dsa.bench.warmed")
    peers.introduce()
    names = options.instances or [
        f"{family}:{int(size)}:0" for family in options.families for size in options.sizes
    ]
    write = sys.stdout.write
    write(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}\n")
    seen: dict[tuple[str, str], tuple[int, float]] = {}
    for instance in find(names):
        family, n = instance.name.partition(":")[0], len(instance.problem)
        for what, seconds, memory, ratio in _measure(instance, options):
            before = seen.get((family, what))
            seen[family, what] = n, seconds
            cells = (instance.name, what, f"{seconds:.2f}", _growth(before, (n, seconds)))
            write(f"| {' | '.join(cells)} | {memory / 1e6:.0f} | {ratio} |\n")
            sys.stdout.flush()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dsa bench scale", description=__doc__)
    parser.add_argument("instances", nargs="*", help="instead of families: see `dsa bench list`")
    parser.add_argument("--families", nargs="+", default=FAMILIES)
    parser.add_argument("--sizes", nargs="+", type=float, default=(1e4, 1e5, 1e6))
    parser.add_argument("--solvers", nargs="*", default=SOLVERS, help="NAME:OPTION=VALUE")
    parser.add_argument("--stages", nargs="*", default=tuple(STAGES), choices=tuple(STAGES))
    parser.add_argument("--time-limit", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("--grace", type=float, default=600.0, metavar="SECONDS")
    parser.add_argument("--uncompiled", action="store_true", help="as if numba were not there")
    return parser


def _measure(
    instance: Instance, options: argparse.Namespace
) -> Iterator[tuple[str, float, float, str]]:
    """What was run, cpu seconds, bytes, and peak over load."""
    problem = instance.problem
    offsets = skyline(problem, order_by(problem, "area"))
    plan = Plan(problem, offsets, lower_bound(problem), "skyline")
    for stage in options.stages:
        yield (stage, *_apart(stage, plan), "")
    solvers = {name: solver_named(name) for name in options.solvers}
    limits = Limits(options.time_limit, options.grace)
    for record in run(plan_runs([instance], solvers, limits), limits):
        load = problem.load or 1
        told = f"{record.peak / load:.5f}" if record.peak is not None else record.status
        yield record.solver, record.cpu, record.memory, told


def _apart(stage: str, plan: Plan) -> tuple[float, float]:
    """Cpu seconds and bytes of a stage, in a process of its own, which has its own copy of all."""
    context = server()
    pipe, other = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(other, stage, plan))
    process.start()
    other.close()
    try:
        seconds, memory = pipe.recv()
    finally:
        process.join()
    return seconds, memory


def _work(pipe: Connection, stage: str, plan: Plan) -> None:
    problem = plan.problem
    _ = problem.sections, problem.id_rank  # derived once, before all stages but the first two
    memory, began = forget_peak(), time.process_time()
    STAGES[stage](plan)
    pipe.send((time.process_time() - began, peak_memory() - memory))


def _growth(before: tuple[int, float] | None, now: tuple[int, float]) -> str:
    """The exponent; nothing where there is none, or where the seconds are too few to tell."""
    if before is None or before[0] >= now[0] or min(before[1], now[1]) < 0.01:
        return ""
    exponent = math.log(now[1] / before[1]) / math.log(now[0] / before[0])
    return f"{exponent:.2f}"


if __name__ == "__main__":
    sys.exit(main())

"""The command line: what the library does, on files."""

from __future__ import annotations

import argparse
import inspect
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, Self

import numpy as np

from dsa import __version__, io
from dsa.bounds import Bound, lower_bound
from dsa.budget import Progress
from dsa.constraints import Constraints
from dsa.errors import (
    CapacityError,
    DsaError,
    InfeasibleError,
    InvalidPlanError,
    SolverError,
    SolverUnavailableError,
)
from dsa.planner import plan
from dsa.pools import Pool, PoolPlan, plan_pools
from dsa.problem import FREE, LIMIT, IntArray, Problem
from dsa.proof import Proof
from dsa.result import Plan
from dsa.slots import SlotPlan, plan_slots
from dsa.slots.planner import SOLVERS as SLOT_SOLVERS
from dsa.solvers import FEATURES, missing_packages, names, solver_class
from dsa.solvers.options import build_from_text
from dsa.units import format_size, parse_size
from dsa.validation import Violation, validate

__all__ = ["main"]

_HELP = """\
FILE is a path (.csv, .json, either with .gz, .npy, .npz), a model (.onnx, .tflite, .pt2, each with
the extra that reads it), the name of a model that comes with dsa (`dsa info` lists them), or - for
CSV or JSON from standard input. A SIZE is a number of bytes, such as 4096, 64KiB or 1.5MiB.

exit status:
  0  done
  1  no plan fits into the capacity, or the plan, its bound or its proof does not hold
  2  wrong usage or bad input
  3  a solver failed: a bug, please report it
"""
_STATUS: dict[type[Exception], int] = {  # the first that matches
    InfeasibleError: 1,
    CapacityError: 1,
    InvalidPlanError: 1,
    SolverError: 3,
    DsaError: 2,
    OSError: 2,
    UnicodeError: 2,  # of a terminal that cannot show a name
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status; a usage error raises `SystemExit`.

    Parameters
    ----------
    arguments
        Without the name of the program; those of the process if None.
    """
    options = _parser().parse_args(arguments)
    try:
        status: int = options.command(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + 13
    except KeyboardInterrupt:
        _say("interrupted")
        return 128 + 2
    except tuple(_STATUS) as error:
        _say("; ".join([f"{error}", *getattr(error, "__notes__", ())]))
        return next(code for kind, code in _STATUS.items() if isinstance(error, kind))
    return status


def _say(message: str) -> None:
    print(f"dsa: {message}", file=sys.stderr)


# -- usage ------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    shape: dict[str, Any] = {
        "epilog": _HELP,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }
    parser = argparse.ArgumentParser(
        prog="dsa", description="Offsets for buffers with known lifetimes.", **shape
    )
    parser.add_argument("--version", action="version", version=f"dsa {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], about: str) -> Any:
        sub = commands.add_parser(name, help=about, description=about, **shape)
        sub.set_defaults(command=run)
        return sub

    add = command(
        "plan", _plan, "Give every buffer an offset, so that the peak is low."
    ).add_argument
    add("file", metavar="FILE")
    add("-s", "--solver", default="auto", metavar="NAME", help="default: auto")
    add(
        "--option",
        action="append",
        default=[],
        type=_option,
        metavar="KEY=VALUE",
        help="an option of the solver, such as fit=first, seed=7, mirrored=false or "
        "orders=area,size; may be repeated",
    )
    add("--capacity", type=_size, metavar="SIZE", help="bytes available")
    _add_constraints(add)
    add("--alignment", type=_size, default=1, metavar="SIZE", help="of every offset")
    add("--time-limit", type=float, metavar="SECONDS", help="then take the best plan so far")
    add("--target", type=_size, metavar="SIZE", help="a peak that is good enough")
    add("--hint", metavar="PLAN", help="an earlier plan: keep many of its offsets")
    add(
        "-o",
        "--output",
        type=_output,
        metavar="OUT",
        help="write the plan to a .csv or .json file (either with .gz), or to standard output as "
        "CSV with -; nothing is written if no plan fits into the capacity",
    )
    add("--json", action="store_true", help="write the plan to standard output as JSON")
    add("--svg", metavar="FILE", help="draw the plan, even one over the capacity")
    add("--text", action="store_true", help="draw the plan with characters, even one over")

    add = command(
        "pools", _pools, "Choose a pool for every buffer, and an offset in it."
    ).add_argument
    add("file", metavar="FILE")
    add(
        "--pool",
        action="append",
        required=True,
        type=_pool,
        metavar="NAME[=SIZE]",
        help="a pool and its capacity; repeated, the one that is preferred first",
    )
    add(
        "--prefer",
        action="append",
        default=[],
        type=_option,
        metavar="ID=NAME[,NAME...]",
        help="the pools that a buffer may go to, the best first; may be repeated",
    )
    add("--spill", choices=("in-order", "least"), default="in-order", help="default: in-order")
    add("-s", "--solver", default="auto", metavar="NAME", help="of each pool; default: auto")
    _add_constraints(add)
    add("--alignment", type=_size, default=1, metavar="SIZE", help="of every offset")
    add("--time-limit", type=float, default=10.0, metavar="SECONDS", help="default: 10")
    _add_outputs(add, "pools")

    add = command(
        "slots", _slots, "Give every buffer a whole slot, for targets without offsets."
    ).add_argument
    add("file", metavar="FILE")
    add(
        "-s",
        "--solver",
        default="greedy-by-size",
        choices=tuple(SLOT_SOLVERS),
        help="default: greedy-by-size",
    )
    add("--capacity", type=_size, metavar="SIZE", help="bytes available for all slots")
    add("--alignment", type=_size, default=1, metavar="SIZE", help="of every buffer")
    add("--time-limit", type=float, metavar="SECONDS", help="then take the best slots so far")
    _add_outputs(add, "slots")

    about = "JSON, also of pools or slots, or CSV with a column offset; - for standard input"
    add = command("validate", _validate, "Check a plan, perhaps for other lifetimes.").add_argument
    add("plan", metavar="PLAN", help=about)
    add("problem", nargs="?", metavar="PROBLEM", help="the buffers that the plan must hold for")
    add("--capacity", type=_size, metavar="SIZE", help="bytes available")
    _add_constraints(add)

    add = command("verify", _verify, "Check a plan, its bound and its proof.").add_argument
    add("plan", metavar="PLAN", help=about)

    add = command("info", _info, "Describe a problem; without FILE, list the models.").add_argument
    add("file", nargs="?", metavar="FILE")
    _add_constraints(add)

    command("solvers", _solvers, "List the solvers, and which of them work here.")

    bench = commands.add_parser(
        "bench", help="Measure solvers: `dsa bench --help`.", add_help=False, prefix_chars="\0"
    )
    bench.set_defaults(command=_bench)
    bench.add_argument("arguments", nargs="*")
    return parser


def _add_constraints(add: Callable[..., Any]) -> None:
    add(
        "--constraints",
        metavar="RULES",
        help="a JSON file of what holds between the buffers, instead of what FILE says of it",
    )


def _add_outputs(add: Callable[..., Any], what: str) -> None:
    add("--json", action="store_true", help=f"write the {what} to standard output as JSON")
    add("--svg", metavar="FILE", help=f"draw the {what}")
    add("--text", action="store_true", help=f"draw the {what} with characters")


def _size(text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _pool(text: str) -> Pool:
    name, equals, capacity = text.partition("=")
    if not name:
        raise argparse.ArgumentTypeError(f"expected NAME or NAME=SIZE, got {text!r}")
    return Pool(name, _size(capacity) if equals else None)


def _output(text: str) -> str:
    # Found out now, not after an hour of solving.
    if text != "-" and not text.removesuffix(".gz").endswith((".csv", ".json")):
        raise argparse.ArgumentTypeError(f"{text!r} must end in .csv or .json")
    if not Path(text).parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no directory {str(Path(text).parent)!r}")
    return text


def _option(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got {text!r}")
    return key, value


# -- commands ---------------------------------------------------------------------------------


def _plan(options: argparse.Namespace) -> int:
    if options.json and options.output == "-":
        raise DsaError("--json and -o - both write to standard output; choose one")
    report = sys.stderr if options.json or options.output == "-" else sys.stdout
    solver = build_from_text(options.solver, dict(options.option))
    problem = _read(options.file, _rules(options))
    if problem.constraints and options.output is not None and not _is_json(options.output):
        raise DsaError("CSV has no room for constraints; write the plan as JSON")
    try:
        with _ProgressLine() as progress:
            result = plan(
                problem,
                solver,
                capacity=options.capacity,
                alignment=options.alignment,
                time_limit=options.time_limit,
                target=options.target,
                hint=None if options.hint is None else _hint(options.hint, problem),
                progress=progress,
            )
    except CapacityError as error:
        _say(f"{error}")
        if options.output is not None:
            _say(f"{options.output} is not written")
        _draw(error.plan, options, report)
        return 1
    print(result.summary(), file=report)
    if options.hint is not None:
        print(f"kept:    {result.stats['kept']} buffers where the hint has them", file=report)
    _draw(result, options, report)
    if options.json:
        io.write_json(result, sys.stdout)
    if options.output is not None:
        write = io.write_json if _is_json(options.output) else io.write_csv
        write(result, sys.stdout if options.output == "-" else options.output)
    return 0


def _pools(options: argparse.Namespace) -> int:
    problem = _read(options.file, _rules(options))
    result = plan_pools(
        problem,
        options.pool,
        prefer=_prefer(options.prefer, problem),
        spill=options.spill,
        solver=options.solver,
        alignment=options.alignment,
        time_limit=options.time_limit,
    )
    report = sys.stderr if options.json else sys.stdout
    print(result, file=report)
    for name, pooled in result.plans.items():
        print(f"{name}: {pooled}", file=report)
    _draw(result, options, report)
    if options.json:
        io.write_json(result, sys.stdout)
    return 0


def _prefer(pairs: list[tuple[str, str]], problem: Problem) -> dict[Any, list[str]]:
    """Names of pools, under the ids of the problem."""
    known = {str(id): id for id in problem.ids}
    return {known.get(id, id): names.split(",") for id, names in pairs}


def _slots(options: argparse.Namespace) -> int:
    report = sys.stderr if options.json else sys.stdout
    try:
        result = plan_slots(
            _read(options.file),
            options.solver,
            capacity=options.capacity,
            alignment=options.alignment,
            time_limit=options.time_limit,
        )
    except CapacityError as error:
        _say(f"{error}")
        _draw(error.plan, options, report)
        return 1
    print(result, file=report)
    tenants: list[list[str]] = [[] for _ in result.sizes]
    for buffer, slot in result:
        tenants[slot].append(str(buffer.id))
    for slot, (size, ids) in enumerate(zip(result.sizes, tenants, strict=True)):
        more = f" and {len(ids) - 8} more" if len(ids) > 8 else ""
        print(f"slot {slot}: {_bytes(size)}: {', '.join(ids[:8])}{more}", file=report)
    _draw(result.as_plan(), options, report)
    if options.json:
        io.write_json(result, sys.stdout)
    return 0


def _hint(file: str, problem: Problem) -> dict[Any, Any]:
    """Offsets of an earlier plan, under the ids of the problem."""
    earlier = io.read_plan(file)
    return io.offsets_by_id(earlier.problem.ids, earlier.offsets, problem)


def _is_json(file: str) -> bool:
    return file.removesuffix(".gz").endswith(".json")


def _rules(options: argparse.Namespace) -> Constraints | None:
    return None if options.constraints is None else io.read_constraints(options.constraints)


def _read(file: str, rules: Constraints | None = None) -> Problem:
    problem = io.read_problem(sys.stdin.buffer) if file == "-" else io.load(file)
    return Problem(problem, constraints=rules)


def _draw(result: Plan | PoolPlan, options: argparse.Namespace, report: IO[str]) -> None:
    if options.text:
        print(result.to_text(*shutil.get_terminal_size()), file=report)
    if options.svg is not None:
        result.to_svg(options.svg)


class _ProgressLine:
    """The best peak so far: on a terminal only, after a second, and gone in the end."""

    def __init__(self) -> None:
        self.width = 0

    def __enter__(self) -> Self:
        return self

    def __call__(self, progress: Progress) -> None:
        if progress.seconds >= 1 and sys.stderr.isatty():
            peak, target = format_size(progress.peak), format_size(progress.target)
            self._show(f"{progress.seconds:.0f} s, peak {peak}, target {target}")

    def __exit__(self, *_: object) -> None:
        if self.width:
            self._show("")  # blanks over it
            self._show("")  # and back to the first column

    def _show(self, text: str) -> None:
        print(f"\r{text:<{self.width}}", end="", file=sys.stderr, flush=True)
        self.width = len(text)


def _read_plan(
    path: str, rules: Constraints | None = None
) -> Plan | PoolPlan | SlotPlan | Sequence[Violation]:
    """The plan, or the rules that it breaks."""
    try:
        return io.read_any_plan(sys.stdin.buffer if path == "-" else path, constraints=rules)
    except InvalidPlanError as error:
        if not error.violations:
            raise
        return error.violations


def _validate(options: argparse.Namespace) -> int:
    if options.plan == options.problem == "-":
        raise DsaError("PLAN and PROBLEM cannot both come from standard input")
    rules = _rules(options)
    wanted = None if options.problem is None else _read(options.problem, rules)
    given = _read_plan(options.plan, rules if wanted is None else wanted.constraints)
    if isinstance(given, (PoolPlan, SlotPlan)):
        return _validate_others(given, wanted, options)
    if not isinstance(given, Plan):
        return _report(options.plan, given)
    problem = Problem(given.problem, constraints=rules) if wanted is None else wanted
    offsets = io.offsets_by_id(given.problem.ids, given.offsets, problem)
    violations = validate(offsets, problem, capacity=options.capacity)
    if violations:
        return _report(options.plan, violations)
    placed = np.array([offsets[id] for id in problem.ids], np.int64)
    print(f"valid: {Plan(problem, placed, lower_bound(problem), given.solver).headline}")
    return 0


def _validate_others(
    given: PoolPlan | SlotPlan, wanted: Problem | None, options: argparse.Namespace
) -> int:
    """Of pools and of slots, in which ids are as the problem has them."""
    if options.capacity is not None or options.constraints is not None:
        raise DsaError("--capacity and --constraints are of plans with offsets in one memory")
    violations = given.validate(wanted)
    if violations:
        return _report(options.plan, violations)
    print(f"valid: {given}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    given = _read_plan(options.plan)
    if isinstance(given, PoolPlan):
        print(f"pools: valid, {given}")
        return max((_verify_one(plan, options.plan) for plan in given.plans.values()), default=0)
    if isinstance(given, SlotPlan):
        print(f"slots: valid, total {_bytes(given.total)}")
        return _verify_bound(given.bound_witness, None, options.plan)
    return (
        _verify_one(given, options.plan)
        if isinstance(given, Plan)
        else _report(options.plan, given)
    )


def _verify_one(given: Plan, file: str) -> int:
    print(f"plan:  valid, peak {_bytes(given.peak)}")
    return _verify_bound(given.bound_witness, given.proof, file)


def _verify_bound(bound: Bound, proof: Proof | None, file: str) -> int:
    print(f"bound: {_bytes(bound.value)}, {bound}")
    if proof is not None:
        print(f"proof: {proof}")
    elif bound.kind == "search":
        _say(f"{file} has no proof of its bound: plan it with a solver that keeps one")
        return 1
    return 0


def _report(file: str, violations: Sequence[Violation]) -> int:
    print(*violations, sep="\n")
    rules = "a rule" if len(violations) == 1 else f"{len(violations)} rules"
    _say(f"{file} breaks {rules}")
    return 1


def _info(options: argparse.Namespace) -> int:
    if options.file is None:
        print(*io.bundled(), sep="\n")
        return 0
    for label, text in _facts(_read(options.file, _rules(options))).items():
        print(f"{label:<13} {text}")
    return 0


def _facts(problem: Problem) -> dict[str, str]:
    size, bound = problem.size, lower_bound(problem)
    first, last = int(problem.lower.min(initial=LIMIT)), int(problem.upper.max(initial=-LIMIT))
    facts = {
        "buffers": f"{len(problem)}, {int((size == 0).sum())} of size 0, "
        f"{int((problem.pin != FREE).sum())} pinned",
        "steps": f"{last - first}, from {first} up to {last}" if len(problem) else "none",
        "sections": f"{len(problem.sections)}",
        "components": f"{int(problem.component.max(initial=-1)) + 1}",
        "sizes": _spread(size) if len(problem) else "none",
        "alignments": ", ".join(map(str, np.unique(problem.alignment).tolist())) or "none",
        "without reuse": _bytes(sum(size.tolist())),
        "load": f"{_bytes(problem.load)}{_most_live(problem)}",
        "lower bound": f"{_bytes(bound.value)}, {bound}",
    }
    if len(problem.holes):
        holed = len(np.unique(problem.holes[:, 0]))
        facts["holes"] = f"{len(problem.holes)}, in {holed} of the buffers"
    if problem.constraints:
        facts["constraints"] = ", ".join(
            f"{len(value)} {name}" if isinstance(value, list) else f"{name} {value}"
            for name, value in problem.constraints.to_dict().items()
        )
    if problem.capacity is not None:
        facts["capacity"] = _bytes(problem.capacity)
    return facts


def _spread(size: IntArray) -> str:
    return (
        f"{_bytes(int(size.min()))} to {_bytes(int(size.max()))}, "
        f"median {_bytes(int(np.median(size)))}"
    )


def _most_live(problem: Problem) -> str:
    """When the load is reached, and who is to blame for it."""
    step = problem.load_step
    if step is None:
        return ""
    live = np.flatnonzero((problem.lower <= step) & (step < problem.upper) & (problem.size > 0))
    i, lower, upper, start, stop = problem.holes.T
    live = np.setdiff1d(live, i[(lower <= step) & (step < upper) & (start == stop)])
    largest = live[np.argsort(-problem.size[live], kind="stable")][:5].tolist()
    named = ", ".join(f"{problem.ids[i]!r} ({format_size(int(problem.size[i]))})" for i in largest)
    return f" at step {step}, {len(live)} live, the largest: {named}"


def _bytes(size: int) -> str:
    return f"{size} B" if size < 1024 else f"{size} B ({format_size(size)})"


def _bench(options: argparse.Namespace) -> int:
    from dsa.bench import cli  # which nothing else needs

    return cli.main(options.arguments)


def _solvers(options: argparse.Namespace) -> int:
    table = [("name", "installed", "exact", "honours", "what it is")]
    table += [_describe(name) for name in names()]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        print("  ".join(map(str.ljust, row, widths)).rstrip())
    print(f"everything: {', '.join(FEATURES)}")
    return 0


def _describe(name: str) -> tuple[str, str, str, str, str]:
    try:
        solver = solver_class(name)
    except SolverUnavailableError as error:
        return name, "no", "", "", str(error)
    missing = missing_packages(solver)
    return (
        name,
        f"needs {', '.join(missing)}" if missing else "yes",
        "yes" if solver.exact else "no",
        _honoured(solver.supports),
        (inspect.getdoc(solver) or "").partition("\n")[0],
    )


def _honoured(supports: frozenset[str]) -> str:
    if supports >= set(FEATURES):
        return "everything"
    return ", ".join(feature for feature in FEATURES if feature in supports) or "nothing"

"""``dsa bench``: run, report, compare, check, list."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dsa import solvers
from dsa.bench import gate, page, peers, report
from dsa.bench.album import Album, pictures
from dsa.bench.generators import FAMILIES
from dsa.bench.instances import Instance, Known, find, improve, known, registry, write_registry
from dsa.bench.records import Record, append, read
from dsa.bench.runner import Keep, Limits, plan_runs, run
from dsa.errors import DsaError
from dsa.problem import IntArray
from dsa.solvers import Solver
from dsa.solvers.options import build_from_text

__all__ = ["main", "solver_named"]

_HELP = """\
An INSTANCE is a file, a folder of files, the name of a model that comes with dsa, a seeded family
as FAMILY:BUFFERS:SEED, or one of the words small (the default) and models. `dsa bench list` lists
them.

A SOLVER is a name, of ours or of a peer, or MODULE:CLASS for one of your own; options follow as
:KEY=VALUE, such as greedy:order=area:fit=first or omnimalloc:allocator=supermalloc.
"""
BASELINE = Path(__file__).with_name("baseline.jsonl")
# Commands that have a module of their own, with a function `main`.
ELSEWHERE = {
    "replay": "What real allocators do with the same requests.",
    "ablation": "What each idea of the exact search is worth.",
    "proofs": "How far proofs above the load reach.",
    "scale": "How solvers grow with the number of buffers.",
}
DEFAULT_SOLVERS = ("greedy-by-size", "strip-packing", "auto")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of the benchmark and return its exit status.

    Parameters
    ----------
    arguments
        Without ``dsa bench``; those of the process if None.
    """
    options = _parser().parse_args(arguments)
    peers.introduce()
    status: int = options.command(options)
    return status


def _parser() -> argparse.ArgumentParser:
    shape: dict[str, Any] = {
        "epilog": _HELP,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
        "allow_abbrev": False,
    }
    parser = argparse.ArgumentParser(
        prog="dsa bench", description="Measure solvers and peers on the same inputs.", **shape
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], about: str) -> Any:
        sub = commands.add_parser(name, help=about, description=about, **shape)
        sub.set_defaults(command=run)
        return sub

    _describe_run(command("run", _run, "Run solvers on instances; print a table."))

    add = command("report", _report, "Make a table or a page of records.").add_argument
    add("records", nargs="+", type=Path, metavar="RECORDS")
    add("-o", "--output", type=Path, metavar="OUT", help="a .md or .html file; default: a table")
    add("--plans", type=Path, metavar="FOLDER", help="plans that run kept, to be drawn")

    add = command("compare", _compare, "What is better and worse in other records.").add_argument
    add("old", type=Path, metavar="OLD")
    add("new", type=Path, metavar="NEW")
    add("--tolerance", type=float, default=gate.TOLERANCE, help="in cost; default: 4 times")

    add = command("check", _check, "Run the baseline again; fail if a line is worse.").add_argument
    add("instances", nargs="*", metavar="INSTANCE", help="of the baseline; default: all")
    add("--baseline", type=Path, default=BASELINE, metavar="RECORDS")
    add("--tolerance", type=float, default=gate.TOLERANCE, help="in cost; default: 4 times")
    add("-j", "--jobs", type=int, default=1, metavar="N", help="runs at once; default: 1")

    add = command("list", _list, "What is known of instances; peers and families.").add_argument
    add("instances", nargs="*", metavar="INSTANCE", help="default: all of the registry")

    for name, about in ELSEWHERE.items():
        sub = commands.add_parser(name, help=about, add_help=False, prefix_chars="\0")
        sub.set_defaults(command=_elsewhere, module=f"dsa.bench.{name}")
        sub.add_argument("arguments", nargs="*")
    return parser


def _describe_run(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("instances", nargs="*", default=["small"], metavar="INSTANCE")
    add("-s", "--solver", action="append", metavar="SOLVER", help="may be repeated")
    add("--time-limit", type=float, default=2.0, metavar="SECONDS", help="of each run; default: 2")
    add("--grace", type=float, metavar="SECONDS", help="beyond the limit, until a run is killed")
    add("--memory", type=float, metavar="GIB", help="that a run may take")
    add(
        "--seeds", type=int, default=1, metavar="N", help="seeds 0 to N - 1, where a solver has one"
    )
    add("--repeats", type=int, default=1, metavar="N", help="of each run, for its times")
    add("-j", "--jobs", type=int, default=1, metavar="N", help="runs at once; default: 1")
    add(
        "-o",
        "--output",
        metavar="RECORDS",
        help="a line of JSON for each run; runs that are there already are not made again",
    )
    add("--plans", type=Path, metavar="FOLDER", help="keep best and worst plans, for a report")
    add("--improve", action="store_true", help="enter what is news into the registry")


def _elsewhere(options: argparse.Namespace) -> int:
    status: int = importlib.import_module(options.module).main(options.arguments)
    return status


# -- run ----------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> int:
    chosen = {name: solver_named(name) for name in options.solver or DEFAULT_SOLVERS}
    memory = None if options.memory is None else int(options.memory * 2**30)
    limits = Limits(options.time_limit, options.grace, memory)
    instances = find(options.instances)
    runs = list(plan_runs(instances, chosen, limits, range(options.seeds), options.repeats))
    earlier = _earlier(options.output, {run.record.key for run in runs})
    done = {record.key for record in earlier}
    made = run(runs, limits, jobs=options.jobs, done=done, keep=_keeper(options))
    if options.output is not None:
        made = append(options.output, made)
    records = earlier + list(_shown(made, len(runs) - len(done)))
    if options.improve:
        write_registry()
    sys.stdout.write(report.markdown(records))
    return 0


def _earlier(path: str | None, wanted: Collection[tuple[Any, ...]]) -> list[Record]:
    """The runs of these that were made before."""
    if path is None or not Path(path).exists():
        return []
    return [record for record in read(path) if record.key in wanted]


def _keeper(options: argparse.Namespace) -> Keep | None:
    """What is done with each plan."""
    keepers: list[Callable[[Record, Instance, IntArray], object]] = []
    if options.plans is not None:
        keepers.append(Album(options.plans).keep)
    if options.improve:
        keepers.append(improve)

    def keep(record: Record, instance: Instance, offsets: IntArray) -> None:
        for keeper in keepers:
            keeper(record, instance, offsets)

    return keep if keepers else None


def solver_named(text: str) -> Solver:
    """The solver that a name on the command line means, with its options.

    Parameters
    ----------
    text
        ``name``, or ``module:Class``, followed by any number of ``:key=value``.

    Examples
    --------
    >>> solver_named("greedy:order=area:fit=first")
    Greedy(order='area', fit='first')
    """
    parts = text.split(":")
    words = [part for part in parts if "=" not in part]
    options = dict(part.split("=", 1) for part in parts if "=" in part)
    name = ":".join(words)
    if len(words) == 2:
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
        with suppress(ValueError):  # it has been introduced before
            solvers.register(name, name)
    return build_from_text(name, options)


def _shown(records: Iterable[Record], total: int) -> Iterator[Record]:
    """The records, counted by a progress bar on a terminal, if tqdm is installed."""
    if find_spec("tqdm") is None or not sys.stderr.isatty():
        yield from records
        return
    from tqdm import tqdm

    bar = tqdm(total=total, unit="run", leave=False)
    for record in records:
        bar.set_postfix_str(f"{record.instance} {record.solver}", refresh=False)
        bar.update()
        yield record
    bar.close()


# -- report -------------------------------------------------------------------------------------


def _report(options: argparse.Namespace) -> int:
    records = [record for path in options.records for record in read(path)]
    if options.output is None:
        sys.stdout.write(report.markdown(records))
    elif options.output.suffix == ".html":
        drawn = {} if options.plans is None else dict(pictures(options.plans))
        options.output.write_text(page.page(records, drawn), "utf-8")
    else:
        options.output.write_text(report.markdown(records), "utf-8")
    return 0


# -- compare and check --------------------------------------------------------------------------


def _compare(options: argparse.Namespace) -> int:
    return _judged(read(options.old), read(options.new), options.tolerance)


def _check(options: argparse.Namespace) -> int:
    """Each run of the baseline, made again under its own limit."""
    baseline = [
        record
        for record in read(options.baseline)
        if not options.instances or record.instance in options.instances
    ]
    if not baseline:
        raise DsaError(f"{options.baseline} has no run of {', '.join(options.instances)}")
    made: list[Record] = []
    for seconds in sorted({record.time_limit for record in baseline}):
        some = [record for record in baseline if record.time_limit == seconds]
        limits = Limits(seconds)
        chosen = {record.solver: solver_named(record.solver) for record in some}
        instances = find(dict.fromkeys(record.instance for record in some))
        wanted = {record.asked for record in some}
        runs = [r for r in plan_runs(instances, chosen, limits) if r.record.asked in wanted]
        made += _shown(run(runs, limits, jobs=options.jobs), len(runs))
    return _judged(baseline, made, options.tolerance)


def _judged(old: Sequence[Record], new: Sequence[Record], tolerance: float) -> int:
    """Print what changed; the exit status is 1 if anything is worse."""
    found = sorted(gate.changes(old, new, tolerance), key=lambda change: not change.worse)
    for change in found:
        sys.stdout.write(f"{change}\n")
    worse = sum(change.worse for change in found)
    sys.stdout.write(f"{len(new)} runs: {worse} worse, {len(found) - worse} better\n")
    return 1 if worse else 0


# -- list ---------------------------------------------------------------------------------------


def _list(options: argparse.Namespace) -> int:
    rows: list[Known]
    if options.instances:
        rows = [known(instance) for instance in find(options.instances)]
    else:
        rows = list(registry().values())
    head = ["instance", "buffers", "load", "best", "by", "bound", "why"]
    cells = [
        [
            *(row.name, f"{row.buffers:,}", f"{row.load:,}"),
            *(f"{row.best:,}", row.best_from, f"{row.bound:,}", row.bound_from),
        ]
        for row in rows
    ]
    sys.stdout.write(report.table(head, cells) + "\n")
    if not options.instances:
        families = [[name, family.about] for name, family in FAMILIES.items()]
        sys.stdout.write("\n" + report.table(["family", "what it is"], families) + "\n")
        found = [[name, _missing(name)] for name in peers.PEERS]
        sys.stdout.write("\n" + report.table(["peer", "here"], found) + "\n")
    return 0


def _missing(name: str) -> str:
    kind = solvers.solver_class(name)
    missing = solvers.missing_packages(kind)
    if missing:
        return f"needs {', '.join(missing)}"
    return "needs :path=PROGRAM" if "path" in kind.__annotations__ else "yes"

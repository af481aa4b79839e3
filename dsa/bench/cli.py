"""``dsa bench``: run, report, compare, check, list."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dsa import solvers
from dsa.bench import page, peers, report
from dsa.bench.instances import find
from dsa.bench.records import Record, append, read
from dsa.bench.runner import Limits, plan_runs, run
from dsa.errors import DsaError
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

    add = command("run", _run, "Run solvers on instances; print a table.").add_argument
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
    add("--plans", type=Path, metavar="FOLDER", help="keep the best plan of each instance here")

    add = command("report", _report, "Make a table or a page of records.").add_argument
    add("records", nargs="+", metavar="RECORDS")
    add("-o", "--output", type=Path, metavar="OUT", help="a .md or .html file; default: a table")
    return parser


# -- run ----------------------------------------------------------------------------------------


def _run(options: argparse.Namespace) -> int:
    names = options.solver or DEFAULT_SOLVERS
    chosen = {name: solver_named(name) for name in names}
    memory = None if options.memory is None else int(options.memory * 2**30)
    limits = Limits(options.time_limit, options.grace, memory)
    instances = list(find(options.instances))
    runs = list(plan_runs(instances, chosen, limits, range(options.seeds), options.repeats))
    earlier: list[Record] = []
    if options.output is not None and Path(options.output).exists():
        wanted = {run.record.key for run in runs}
        earlier = [record for record in read(options.output) if record.key in wanted]
    done = {record.key for record in earlier}
    made = run(runs, limits, jobs=options.jobs, done=done)
    if options.output is not None:
        made = append(options.output, made)
    records = earlier + list(_shown(made, len(runs) - len(done)))
    sys.stdout.write(report.markdown(records))
    return 0


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
        with suppress(ValueError):  # it has been introduced before
            solvers.register(name, name)
    return build_from_text(name, options)


def _shown(records: Iterable[Record], total: int) -> Iterator[Record]:
    """The records, counted by a progress bar if somebody looks at a terminal."""
    if not sys.stderr.isatty():
        yield from records
        return
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise DsaError("a progress bar needs tqdm: pip install tqdm") from error
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
        options.output.write_text(page.page(records), "utf-8")
    else:
        options.output.write_text(report.markdown(records), "utf-8")
    return 0

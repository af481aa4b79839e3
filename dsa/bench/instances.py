"""Instances by name: real models, files and folders, seeded families; and what is known of them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from dsa import io
from dsa.bench.generators import FAMILIES
from dsa.bench.records import Record
from dsa.bounds import lower_bound
from dsa.errors import InvalidProblemError
from dsa.planner import plan
from dsa.problem import IntArray, Problem
from dsa.result import peak
from dsa.validation import validate

__all__ = ["SMALL", "Instance", "Known", "find", "improve", "known", "registry", "write_registry"]

NUMBERS = ("buffers", "load", "best", "bound")
REGISTRY = Path(__file__).with_name("registry.csv")
SUFFIXES = (".csv", ".json", ".npy", ".npz", ".csv.gz", ".json.gz")

# What is run by default: a minute for a few solvers.
SMALL = (
    "infer-mobilenet-v2-b1",
    "infer-resnet50-b1",
    "train-gpt2-small-b8",
    "eager-gpt2-small4-generate-short",
    *(f"{family}:100:0" for family in FAMILIES),
)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of an instance: a row of the registry.

    Parameters
    ----------
    name
        By which people know it.
    fingerprint
        Of the problem, without which the rest would be hearsay.
    buffers, load
        Of the problem.
    best, best_from
        The lowest peak of a valid plan, and whose it is.
    bound, bound_from
        The highest proven lower bound, and why it holds.
    """

    name: str
    fingerprint: str
    buffers: int
    load: int
    best: int
    best_from: str
    bound: int
    bound_from: str


@dataclass(frozen=True)
class Instance:
    """A problem with its name.

    Examples
    --------
    >>> [instance.name for instance in find(["packing:50:1", "infer-resnet50-b1"])]
    ['packing:50:1', 'infer-resnet50-b1']
    """

    name: str
    problem: Problem
    optimum: int | None = None

    @property
    def known(self) -> Known | None:
        """Its row of the registry, found by the fingerprint."""
        return registry().get(self.problem.fingerprint)

    @property
    def bound(self) -> int:
        """The highest lower bound that is known without solving anything."""
        proven = 0 if self.known is None else self.known.bound
        return max(lower_bound(self.problem).value, self.optimum or 0, proven)


def find(names: Iterable[str]) -> Iterator[Instance]:
    """The instances of names, one after another, read when they are asked for.

    Parameters
    ----------
    names
        Each a file, a folder of files, the name of a model that comes with the library, a family
        as ``family:buffers:seed`` (the seed may be left out), or one of the words ``models`` (all
        that come with the library) and ``small`` (a little of everything).

    Raises
    ------
    InvalidProblemError
        If a name is nothing of this.
    """
    for name in names:
        family, _, numbers = name.partition(":")
        if name == "small":
            yield from find(SMALL)
        elif name == "models":
            yield from find(io.bundled())
        elif family in FAMILIES:
            yield _generated(family, numbers)
        elif Path(name).is_dir():
            yield from _folder(Path(name))
        else:
            problem = io.load(name)
            yield Instance(_file_name(Path(name)) if Path(name).exists() else name, problem)


def _generated(family: str, numbers: str) -> Instance:
    try:
        n, seed = (
            int(number) for number in (numbers if ":" in numbers else f"{numbers}:0").split(":")
        )
    except ValueError as error:
        raise InvalidProblemError(
            f"a family is written family:buffers:seed, such as {family}:1000:0, not "
            f"{family}:{numbers}",
            field="name",
            value=numbers,
        ) from error
    problem = FAMILIES[family](n, seed)
    return Instance(f"{family}:{n}:{seed}", problem, FAMILIES[family].least_peak(problem))


def _folder(folder: Path) -> Iterator[Instance]:
    files = sorted(file for file in folder.iterdir() if file.name.lower().endswith(SUFFIXES))
    if not files:
        raise InvalidProblemError(
            f"{folder} has no file that ends in {', '.join(SUFFIXES)}",
            field="name",
            value=str(folder),
        )
    for file in files:
        yield Instance(_file_name(file), io.load(file))


def _file_name(file: Path) -> str:
    """With its folder; a capacity at the end is left out: ``A.1048576.csv`` is ``minimalloc/A``."""
    name = file.name.lower().removesuffix(".gz")
    stem = file.name[: name.rfind(".")]
    return f"{file.resolve().parent.name}/{re.sub(r'[.][0-9]+$', '', stem)}"


@cache
def registry() -> dict[str, Known]:
    """What is known, by fingerprint."""
    with REGISTRY.open(newline="", encoding="utf-8") as file:
        return {row["fingerprint"]: _known(row) for row in csv.DictReader(file)}


def improve(record: Record, instance: Instance, offsets: IntArray) -> bool:
    """Enter into the registry what a run achieved, if it is news; whether it was.

    The plan is validated once more, here. A bound is taken from a solver of ours that is exact.
    """
    problem, row = instance.problem, known(instance)
    if validate(offsets, problem):
        return False
    reached = peak(problem, offsets)
    if reached < row.best:
        row = replace(row, best=reached, best_from=_origin(record))
    if record.bound > row.bound:
        row = replace(row, bound=record.bound, bound_from=f"a search by {_origin(record)}")
    news = row != instance.known
    registry()[problem.fingerprint] = row
    return news


def _origin(record: Record) -> str:
    seed = f", seed {record.seed}" if record.seed else ""
    return f"{record.solver}, {record.time_limit:g} s{seed}"


def known(instance: Instance) -> Known:
    """Its row of the registry, or what is known without one: a bound, and a plan without reuse."""
    problem = instance.problem
    return instance.known or Known(
        instance.name,
        problem.fingerprint,
        len(problem),
        problem.load,
        best=plan(problem.with_capacity(None), "naive").peak,
        best_from="naive",
        bound=instance.bound,
        bound_from="its construction" if instance.optimum else lower_bound(problem).kind,
    )


def write_registry() -> None:
    """Write the registry as it is now, by name."""
    rows = sorted(map(asdict, registry().values()), key=lambda row: str(row["name"]))
    with REGISTRY.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(
            file, [column.name for column in fields(Known)], lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(rows)


def _known(row: dict[str, str]) -> Known:
    numbers: dict[str, Any] = {name: int(row[name]) for name in NUMBERS}
    return Known(**{**row, **numbers})

"""Warming up: what is loaded and compiled only once shall not be counted.

The processes of the runs are forked from a server that has imported `dsa.bench.warmed`, and so has
every kernel compiled.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace

import dsa.kernels
from dsa.bench.generators import SEVEN
from dsa.kernels.compiled import Kernel, available
from dsa.planner import plan
from dsa.solvers import Solver

__all__ = ["PRELOADED", "has_option", "warm_up"]

# What the server imports; what is not installed is left out.
PRELOADED = [
    "__main__",
    "dsa.bench.worker",
    "dsa.bench.warmed",
    "pulp",
    "ortools.sat.python.cp_model",
]


def warm_up(solver: Solver) -> None:
    """Plan a tiny problem, so that what the solver imports or compiles is there."""
    if available() and has_option(solver, "accelerate"):
        solver = replace(solver, accelerate=True)  # type: ignore[type-var]
    plan(SEVEN, solver, time_limit=1.0)


def kernels() -> Iterator[Kernel]:
    """The kernels that compile themselves once it pays, the validator's among them."""
    modules = pkgutil.iter_modules(dsa.kernels.__path__, "dsa.kernels.")
    for name in (*(module.name for module in modules), "dsa.validation"):
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, Kernel):
                yield value


def has_option(solver: Solver, name: str) -> bool:
    """Whether a solver has an option of this name."""
    return is_dataclass(solver) and any(option.name == name for option in fields(solver))

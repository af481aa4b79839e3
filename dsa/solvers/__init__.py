"""The solver protocol and the one table of names.

A solver is a frozen dataclass whose fields are its options. Nothing is imported before it is
asked for.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, cast

from dsa.budget import Budget
from dsa.errors import SolverUnavailableError, UnknownSolverError, UnsupportedError
from dsa.problem import Problem
from dsa.result import Solution

__all__ = [
    "ALL",
    "FEATURES",
    "Solver",
    "build",
    "check",
    "check_counts",
    "names",
    "register",
    "solver_class",
]

# What a problem may ask of a solver (`Problem.features`).
FEATURES = (
    *("alignment", "pins", "holes", "apart", "exclusive", "in_place"),
    *("aliases", "relative", "reserved", "chunk"),
)
ALL = frozenset(FEATURES)

_TABLE = {
    "auto": "dsa.solvers.auto:Auto",
    "strip-packing": "dsa.solvers.strip_packing:StripPacking",
    "best-fit": "dsa.solvers.best_fit:BestFit",
    "greedy": "dsa.solvers.greedy:Greedy",
    "greedy-by-size": "dsa.solvers.greedy:GreedyBySize",
    "greedy-by-breadth": "dsa.solvers.greedy:GreedyByBreadth",
    "linear-scan": "dsa.solvers.linear_scan:LinearScan",
    "naive": "dsa.solvers.naive:Naive",
    "hill-climb": "dsa.solvers.hill_climb:HillClimb",
    "exact": "dsa.solvers.exact:Exact",
    "mip": "dsa.solvers.mip:Mip",
    "cp": "dsa.solvers.cp:Cp",
}
_registered: dict[str, str] = {}


class Solver(Protocol):
    """What the planner asks of a solver; subclass it to inherit the defaults.

    A solver returns offsets and at most a bound it proved. It never modifies its input, prints,
    uses global random state, or looks at a clock other than the budget's. It stops as soon as its
    peak meets ``budget.target``.

    Attributes
    ----------
    exact
        Whether it proves optimality, given the time.
    supports
        The members of `FEATURES` that it honours; a problem that uses another is refused.
    requires
        Packages it needs beyond numpy.
    searches
        Whether it gains from `dsa.presolve`: it is then called for each component apart, in
        reduced units.
    """

    exact: ClassVar[bool] = False
    supports: ClassVar[frozenset[str]] = frozenset()
    requires: ClassVar[tuple[str, ...]] = ()
    searches: ClassVar[bool] = False

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        """Place the buffers."""
        ...


def names() -> tuple[str, ...]:
    """Names of all solvers: ours, then those registered, then those of entry points.

    Examples
    --------
    >>> names()[:3]
    ('auto', 'strip-packing', 'best-fit')
    """
    return tuple(dict.fromkeys([*_TABLE, *_registered, *_advertised()]))


def register(name: str, target: str) -> None:
    """Make a solver known by name, for this process.

    Distributions do the same for every process by an entry point of the group ``dsa.solvers``.

    Parameters
    ----------
    name
        In kebab-case; no other solver may have it.
    target
        ``"package.module:Class"``, imported when the solver is asked for.

    Raises
    ------
    ValueError
        If the name is taken or the target is malformed.
    """
    name = _canonical(name)
    if name in names():
        raise ValueError(f"a solver named {name!r} exists already: {_target(name)}")
    if not all(target.partition(":")):
        raise ValueError(f"target must look like 'package.module:Class', got {target!r}")
    _registered[name] = target


def solver_class(name: str) -> type[Solver]:
    """The class of a solver; ``-`` and ``_`` are the same in a name.

    Raises
    ------
    UnknownSolverError
        If there is none, with the nearest name.
    SolverUnavailableError
        If the solver's module cannot be imported.

    Examples
    --------
    >>> solver_class("greedy_by_size")
    <class 'dsa.solvers.greedy.GreedyBySize'>
    >>> solver_class("best-fti")
    Traceback (most recent call last):
    dsa.errors.UnknownSolverError: no solver is named 'best-fti'; did you mean 'best-fit'?
    """
    canonical = _canonical(name)
    target = _target(canonical)
    if target is None:
        near = difflib.get_close_matches(canonical, names(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names())}"
        raise UnknownSolverError(f"no solver is named {name!r}; {hint}")
    module, _, attribute = target.partition(":")
    try:
        return cast(type[Solver], getattr(importlib.import_module(module), attribute))
    except (ImportError, AttributeError) as error:
        raise SolverUnavailableError(
            f"solver {canonical!r} cannot be imported from {target}: {error}"
        ) from error


def build(solver: str | Solver, options: Mapping[str, Any] = MappingProxyType({})) -> Solver:
    """A solver object from a name and options; a configured object is returned as it is.

    Raises
    ------
    TypeError
        For an option the solver does not have, options beside a configured object, or what is
        no solver.
    """
    if isinstance(solver, str):
        cls = solver_class(solver)
        try:
            return cls(**options)
        except TypeError as error:
            known: list[str] = [option.name for option in fields(cls)] if is_dataclass(cls) else []
            raise TypeError(
                f"solver {solver!r}: {error} (options: {', '.join(known) or 'none'})"
            ) from error
    needed = ("__call__", *Solver.__annotations__)
    if isinstance(solver, type) or not all(hasattr(solver, name) for name in needed):
        raise TypeError(f"expected a solver's name or a configured solver, got {solver!r}")
    if options:
        raise TypeError(
            f"options {', '.join(options)} beside a configured solver: pass them to "
            f"{type(solver).__name__}(...)"
        )
    return solver


def missing_packages(solver: Solver | type[Solver]) -> tuple[str, ...]:
    """Packages that the solver requires and that are not installed; nothing is imported."""
    return tuple(package for package in solver.requires if find_spec(package) is None)


def check(solver: Solver, problem: Problem) -> None:
    """Refuse, before anything runs, what the solver cannot do.

    Raises
    ------
    SolverUnavailableError
        Naming the packages to install.
    UnsupportedError
        Naming the features and the solvers that have them.
    """
    missing = missing_packages(solver)
    if missing:
        raise SolverUnavailableError(
            f"{type(solver).__name__} needs {', '.join(missing)}: pip install {' '.join(missing)}"
        )
    lacking = problem.features - solver.supports
    if lacking:
        able = [name for name in names() if problem.features <= _supported(name)]
        raise UnsupportedError(
            f"{type(solver).__name__} cannot honour {', '.join(sorted(lacking))}; these can: "
            f"{', '.join(able)}"
        )


def _supported(name: str) -> frozenset[str]:
    try:
        return solver_class(name).supports
    except SolverUnavailableError:
        return frozenset()


def check_counts(solver: Solver, *options: str) -> None:
    """Refuse options that are not whole numbers, at least 0; None passes where it is the default.

    Raises
    ------
    ValueError
        Naming the option and its value.
    """
    for name in options:
        value = getattr(solver, name)
        if value is None and getattr(type(solver), name) is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError(f"{name} must be a whole number, at least 0, got {value!r}")


def _target(name: str) -> str | None:
    # Installed packages are searched last: it takes milliseconds, and nobody replaces a built-in
    # solver by accident.
    return _TABLE.get(name) or _registered.get(name) or _advertised().get(name)


def _advertised() -> dict[str, str]:
    from importlib.metadata import entry_points  # half of what importing dsa would cost

    return {_canonical(e.name): e.value for e in entry_points(group="dsa.solvers")}


def _canonical(name: str) -> str:
    return name.replace("_", "-").lower()

"""The table of solvers: names, options, what is registered, and what is said about mistakes."""

from __future__ import annotations

import sys
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass
from importlib.metadata import EntryPoint
from typing import Any, ClassVar

import pytest

from dsa import Problem, SolverUnavailableError, UnknownSolverError, plan, solvers
from dsa.budget import Budget
from dsa.result import Solution, kebab
from dsa.solvers import FEATURES, Solver, build, missing_packages, names, register, solver_class
from dsa.solvers.greedy import Greedy
from dsa.solvers.naive import Naive


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What is registered during a test only."""
    table: dict[str, str] = {}
    monkeypatch.setattr(solvers, "_registered", table)
    return table


@dataclass(frozen=True)
class Outside(Solver):
    """A solver of another package."""

    factor: int = 1

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        return Naive()(problem, budget)


# -- the table -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names())
def test_a_name_is_that_of_its_class(name: str) -> None:
    """The name in the table is the class's in kebab-case, so a plan's record leads back to it."""
    assert kebab(solver_class(name).__name__) == name


@pytest.mark.parametrize("name", names())
def test_a_solver_is_a_frozen_record_of_its_options(name: str) -> None:
    """Every option has a default, cannot be changed afterwards, and is in the repr."""
    solver: Any = build(name)
    assert is_dataclass(solver)
    again: Any = build(name)
    assert again == solver
    assert all(f"{field.name}=" in repr(solver) for field in fields(solver))
    for field in fields(solver):
        with pytest.raises(FrozenInstanceError):
            setattr(solver, field.name, None)


@pytest.mark.parametrize("name", names())
def test_a_solver_says_what_it_can(name: str) -> None:
    """Supported features are known ones, required packages are named as they are imported."""
    cls = solver_class(name)
    assert isinstance(cls.exact, bool)
    assert isinstance(cls.searches, bool)
    assert cls.supports <= set(FEATURES)
    assert all(package.isidentifier() for package in cls.requires)


def test_the_default_comes_first() -> None:
    """`auto` leads the list, and no name occurs twice."""
    assert names()[0] == "auto"
    assert len(set(names())) == len(names())


@pytest.mark.parametrize("name", ["greedy-by-size", "greedy_by_size", "Greedy-By-Size"])
def test_dash_underscore_and_case_do_not_matter(name: str) -> None:
    """A solver's name may be written as an identifier or a title."""
    assert solver_class(name).__name__ == "GreedyBySize"
    assert plan([(0, 1, 8)], name).solver.startswith("GreedyBySize(")


# -- mistakes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gredy", "no solver is named 'gredy'; did you mean 'greedy'?"),
        ("strip packing", "did you mean 'strip-packing'?"),
        ("HILLCLIMB", "no solver is named 'HILLCLIMB'; did you mean 'hill-climb'?"),
        ("simplex", "no solver is named 'simplex'; there are auto, strip-packing, "),
        ("", "no solver is named ''; there are auto"),
    ],
)
def test_an_unknown_name_gets_a_hint(name: str, words: str) -> None:
    """The nearest name, or all of them."""
    with pytest.raises(UnknownSolverError) as caught:
        solver_class(name)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("greedy", {"oder": "size"}, "'greedy': .*'oder' \\(options: order, fit\\)"),
        ("naive", {"x": 1}, "\\(options: reset\\)"),
        ("greedy", {"order": "height"}, "no order is named 'height'; there are size, lifetime"),
        ("greedy", {"fit": "worst"}, "fit must be 'first' or 'best', got 'worst'"),
        ("best-fit", {"order": "height"}, "no order is named 'height'"),
        ("strip-packing", {"orders": ("height",)}, "no order is named 'height'"),
        ("strip-packing", {"orders": ()}, "at least one order"),
    ],
)
def test_a_bad_option_is_refused_when_the_solver_is_made(
    name: str, options: dict[str, Any], words: str
) -> None:
    """Unknown options are a TypeError, bad values a ValueError, before anything is planned."""
    with pytest.raises((TypeError, ValueError), match=words):
        build(name, options)


@pytest.mark.parametrize("solver", [None, 5, Greedy, lambda: None, [Greedy()]])
def test_what_is_no_solver_is_refused(solver: Any) -> None:
    """Classes, functions and other objects lack what the planner asks of a solver."""
    with pytest.raises(TypeError, match="expected a solver's name or a configured solver"):
        build(solver)


def test_options_beside_a_configured_solver_are_refused() -> None:
    """They belong into the object."""
    with pytest.raises(TypeError, match=r"options fit beside .* pass them to Greedy"):
        build(Greedy(), {"fit": "first"})


# -- registering -----------------------------------------------------------------------------


def test_a_registered_solver_is_like_ours(registered: dict[str, str]) -> None:
    """It is listed, built by name with options, and used by `plan`."""
    register("Out_Side", f"{__name__}:Outside")
    assert names()[-1] == "out-side"
    assert build("out-side", {"factor": 3}) == Outside(3)
    assert plan([(0, 1, 8)], "out_side", factor=2).solver == "Outside(factor=2)"


@pytest.mark.parametrize(
    ("name", "target", "words"),
    [
        ("greedy", "m:C", "a solver named 'greedy' exists already: dsa.solvers.greedy:Greedy"),
        ("Greedy_By_Size", "m:C", "a solver named 'greedy-by-size' exists already"),
        ("new", "module.Class", "target must look like 'package.module:Class'"),
        ("new", "module:", "target must look like"),
        ("new", ":Class", "target must look like"),
    ],
)
def test_bad_registrations_are_refused(
    registered: dict[str, str], name: str, target: str, words: str
) -> None:
    """No name is taken twice, whatever its spelling, and a target names a class."""
    with pytest.raises(ValueError, match=words):
        register(name, target)
    assert registered == {}


def test_nothing_is_imported_before_it_is_asked_for(registered: dict[str, str]) -> None:
    """Registering and listing import nothing; asking for a missing module is one clear error."""
    register("gone", "no_such_module.at_all:Class")
    assert "gone" in names()
    with pytest.raises(SolverUnavailableError, match="'gone' cannot be imported from no_such"):
        solver_class("gone")
    register("wrong", "dsa.solvers.greedy:NoSuchClass")
    with pytest.raises(SolverUnavailableError, match="'wrong' cannot be imported"):
        solver_class("wrong")


def test_installed_packages_can_add_solvers(
    registered: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entry points of the group `dsa.solvers` are found, and never replace a solver of ours."""
    advertised = [
        EntryPoint("out_side", f"{__name__}:Outside", "dsa.solvers"),
        EntryPoint("greedy", f"{__name__}:Outside", "dsa.solvers"),
    ]

    def entry_points(group: str) -> list[EntryPoint]:
        return [point for point in advertised if point.group == group]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    assert names()[-1] == "out-side"
    assert names().count("greedy") == 1
    assert build("out-side") == Outside()
    assert solver_class("greedy") is Greedy
    with pytest.raises(ValueError, match="exists already"):
        register("out-side", "m:C")


def test_a_broken_solver_does_not_hide_the_able_ones(registered: dict[str, str]) -> None:
    """The list of solvers that can honour a feature leaves out what cannot be imported."""
    register("gone", "no_such_module:Class")
    with pytest.raises(ValueError, match="Outside cannot honour alignment; these can: auto, ") as e:
        plan([(0, 1, 8)], Outside(), alignment=4)
    assert "gone" not in str(e.value)


def test_missing_packages_are_looked_for_without_importing_them() -> None:
    """Only packages that are not there are missing, and looking imports none."""

    @dataclass(frozen=True)
    class Needy(Outside):
        requires: ClassVar[tuple[str, ...]] = ("numpy", "this_is_not_there", "wave")

    sys.modules.pop("wave", None)
    assert missing_packages(Needy) == missing_packages(Needy()) == ("this_is_not_there",)
    assert "wave" not in sys.modules

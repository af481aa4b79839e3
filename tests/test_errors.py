"""Every exception: what it is, what it carries, and that it survives a trip between processes."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

import dsa
import dsa.errors
from dsa import Buffer, DsaError, Plan, Problem, plan, validate
from dsa.budget import Budget
from dsa.io import read_csv
from dsa.proof import Proof, check
from dsa.result import Solution
from dsa.solvers.naive import Naive

ROWS = [(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)]
PLAN = plan(ROWS, "naive")


@dataclass(frozen=True)
class Plain(Naive):
    """Supports nothing."""

    supports: ClassVar[frozenset[str]] = frozenset()


@dataclass(frozen=True)
class Needy(Naive):
    """Needs a package that nobody has."""

    requires: ClassVar[tuple[str, ...]] = ("no_such_package",)


@dataclass(frozen=True)
class Overlapping(Naive):
    """Puts everything at the bottom."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        return Solution([0] * len(problem))


# For each type: a call that raises it, the built-in type it also is, and its attributes.
RAISED: dict[type[DsaError], tuple[Callable[[], object], type[Exception], dict[str, Any]]] = {
    dsa.InvalidProblemError: (
        lambda: Problem([Buffer(0, 1, -1, id="x")]),
        ValueError,
        {"id": "x", "field": "size", "value": -1},
    ),
    dsa.FileFormatError: (
        lambda: read_csv(io.StringIO("id,lower,upper,size\nx,0,1,many\n")),
        dsa.InvalidProblemError,
        {"field": "size", "value": "many"},
    ),
    dsa.UnknownSolverError: (lambda: plan(ROWS, "gredy"), ValueError, {}),
    dsa.SolverUnavailableError: (lambda: plan(ROWS, Needy()), ImportError, {}),
    dsa.UnsupportedError: (lambda: plan([Buffer(0, 1, 8, offset=0)], Plain()), ValueError, {}),
    dsa.InfeasibleError: (
        lambda: plan([(0, 2, 60), (1, 3, 50)], capacity=100),
        DsaError,
        {
            "capacity": 100,
            "lower_bound": 110,
            "short_by": 10,
            "kind": "load",
            "step": 1,
            "ids": (0, 1),
            "proof": None,
        },
    ),
    dsa.CapacityError: (
        lambda: plan(ROWS, "naive", capacity=100),
        DsaError,
        {"capacity": 100, "over_by": 68, "plan": plan(Problem(ROWS, capacity=200), "naive")},
    ),
    dsa.InvalidPlanError: (
        lambda: Plan.from_dict(PLAN.to_dict() | {"offsets": [0, 0, 0, 0]}),
        ValueError,
        {"violations": validate([0, 0, 0, 0], PLAN.problem)},
    ),
    dsa.InvalidProofError: (
        lambda: check(PLAN.problem, Proof(ids=(0, 1, 2, 3), capacity=88, log=(1, 9))),
        ValueError,
        {"entry": 1},
    ),
    dsa.SolverError: (lambda: plan(ROWS, Overlapping()), DsaError, {}),
}


def raised(kind: type[DsaError]) -> DsaError:
    """An error of the type, raised by the library."""
    with pytest.raises(kind) as caught:
        RAISED[kind][0]()
    assert type(caught.value) is kind
    return caught.value


def test_every_error_is_tested_here() -> None:
    """The table holds all types of `dsa.errors` but the root, and `dsa` exports them all."""
    types = {kind for _, kind in inspect.getmembers(dsa.errors, inspect.isclass)}
    types = {kind for kind in types if kind.__module__ == "dsa.errors"}
    assert types == {DsaError, *RAISED}
    assert types == {getattr(dsa, kind.__name__) for kind in types}


@pytest.mark.parametrize("kind", RAISED)
def test_errors_are_what_callers_expect(kind: type[DsaError]) -> None:
    """Each is a `DsaError`, is caught as the built-in type it stands for, and says something."""
    error = raised(kind)
    _, builtin, attributes = RAISED[kind]
    assert isinstance(error, (DsaError, builtin))
    assert issubclass(kind, builtin)
    assert str(error)
    for name, value in attributes.items():
        found = getattr(error, name)
        same = found.offsets == value.offsets if isinstance(value, Plan) else found == value
        assert same, name


@pytest.mark.parametrize("kind", RAISED)
def test_errors_survive_being_copied(kind: type[DsaError]) -> None:
    """Pickled or copied, an error keeps type, message and attributes."""
    error = raised(kind)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is kind
        assert str(again) == str(error)
        assert vars(again) == vars(error)


@pytest.mark.parametrize("kind", RAISED)
def test_errors_document_their_attributes(kind: type[DsaError]) -> None:
    """Whatever an error carries is in the documentation of its type."""
    documentation = inspect.getdoc(kind) or ""
    assert documentation
    if kind is not dsa.FileFormatError:  # documented where it inherits from
        assert all(f"\n{name}\n" in f"\n{documentation}\n" for name in vars(raised(kind)))


def test_cannot_and_did_not_are_different() -> None:
    """A proof of infeasibility is never caught as a failure to find a plan, nor the reverse."""
    assert not issubclass(dsa.InfeasibleError, dsa.CapacityError)
    assert not issubclass(dsa.CapacityError, dsa.InfeasibleError)

"""Who imports whom, what `import dsa` costs, and what is public and documented."""

from __future__ import annotations

import ast
import doctest
import inspect
import json
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import dsa
from dsa.solvers import names, solver_class

ROOT = Path(dsa.__file__).parent
MODULES = sorted(
    ".".join(("dsa", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in ROOT.rglob("*.py")
)

# Each level may import those above it in this list, and its own.
LEVELS = [
    {"dsa.errors", "dsa.units"},
    {"dsa.gate", "dsa.constraints", "dsa.bodies", "dsa.problem"},
    {
        *("dsa.validation", "dsa.proof", "dsa.pairs", "dsa.bounds", "dsa.cliques", "dsa.presolve"),
        *("dsa.kernels", "dsa.result", "dsa.budget", "dsa.lifetimes", "dsa.periodic"),
    },
    {"dsa.solvers"},
    {
        *("dsa.planner", "dsa.many", "dsa.pools", "dsa.joint"),
        *("dsa.remedies", "dsa.explain", "dsa.slots"),
    },
    {"dsa.table", "dsa.io", "dsa.draw", "dsa.replay"},
    {"dsa"},
    {"dsa.cli", "dsa.bench", "dsa.testing", "dsa.exhaustive"},
    {"dsa.__main__"},
]
# The one exception: methods of plans that write files, when they are called.
UPWARDS_IN_METHODS = {("dsa.result", "dsa.io"), ("dsa.result", "dsa.draw")}
UPWARDS_IN_METHODS |= {("dsa.pools", "dsa.draw")}

# Packages that only some have installed, or that take long to import.
OPTIONAL = {"pulp", "numba", "ortools", "highspy", "matplotlib", "hypothesis", "pytest"}
OPTIONAL |= {"torch", "onnx", "tflite", "tqdm", "omnimalloc", "ethosu", "rectpack"}


def parsed(module: str) -> tuple[ast.Module, bool]:
    """The syntax tree of a module, and whether it is a package."""
    path = ROOT.joinpath(*module.split(".")[1:])
    package = path.is_dir()
    path = path / "__init__.py" if package else path.with_suffix(".py")
    return ast.parse(path.read_text("utf-8")), package


def imports(module: str) -> Iterator[tuple[str, bool]]:
    """Names of the modules imported, and whether that happens when the module is."""

    def walk(node: ast.AST, at_once: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.Import):
                yield from ((alias.name, at_once) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{module}: a relative import"
                yield from ((full_name(child.module or "", a.name), at_once) for a in child.names)
            else:
                inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
                yield from walk(child, at_once and not inside)

    yield from walk(parsed(module)[0], True)


def full_name(module: str, name: str) -> str:
    """`from dsa import io` imports the module dsa.io, `from dsa import plan` only dsa."""
    return f"{module}.{name}" if f"{module}.{name}" in MODULES else module


def room(module: str) -> str:
    """The module or package of the list of levels to which a module belongs."""
    return ".".join(module.split(".")[:2])


def level(module: str) -> int:
    """Position in the list of levels."""
    return next(i for i, rooms in enumerate(LEVELS) if room(module) in rooms)


# -- the rule --------------------------------------------------------------------------------


def test_every_module_has_a_level() -> None:
    """No module is outside the rule."""
    unknown = [module for module in MODULES if not any(room(module) in rooms for rooms in LEVELS)]
    assert unknown == []


@pytest.mark.parametrize("module", MODULES)
def test_nothing_imports_upwards(module: str) -> None:
    """A module imports only what is on its level or below, wherever the import stands."""
    for imported, at_once in imports(module):
        if imported.split(".")[0] != "dsa":
            continue
        allowed = level(imported) <= level(module)
        if not at_once and (room(module), room(imported)) in UPWARDS_IN_METHODS:
            allowed = True
        assert allowed, f"{module} imports {imported}"


def test_the_exceptions_are_needed() -> None:
    """Each exception to the rule is one that a module makes use of."""
    found = {(room(module), room(name)) for module in MODULES for name, at_once in imports(module)}
    assert found >= UPWARDS_IN_METHODS


@pytest.mark.parametrize("judge", ["dsa.validation", "dsa.proof", "dsa.pairs"])
def test_a_judge_shares_no_code_with_what_it_judges(judge: str) -> None:
    """It imports the problem and the errors, a part of its own, and nothing else of the library."""
    ours = {name for name, _ in imports(judge) if name.startswith("dsa")}
    # How a loop is compiled is no opinion on plans.
    assert ours <= {"dsa.gate", "dsa.problem", "dsa.errors", "dsa.kernels.compiled", "dsa.pairs"}


def test_the_judge_of_slots_shares_no_code_with_what_it_judges() -> None:
    """It imports the problem and the words of the other judge, and nothing that assigns slots."""
    ours = {name for name, _ in imports("dsa.slots.validation") if name.startswith("dsa")}
    assert ours <= {"dsa.gate", "dsa.problem", "dsa.validation"}


def test_nothing_imports_in_a_circle() -> None:
    """Following the imports made at once never leads back to where it began."""
    edges = {
        module: {name for name, at_once in imports(module) if at_once and name in MODULES}
        for module in MODULES
    }
    while edges:
        leaves = {module for module, targets in edges.items() if not targets & edges.keys()}
        assert leaves, f"a circle among {sorted(edges)}"
        edges = {module: targets for module, targets in edges.items() if module not in leaves}


def test_optional_packages_are_imported_only_when_used() -> None:
    """Neither the library nor a solver's module imports at once what takes long or may be absent.

    A module that only a function imports may do so: it is not there before it is used.
    """
    solver_modules = {solver_class(name).__module__ for name in names()} & set(MODULES)
    sources = {module for module in MODULES if module.startswith("dsa.bench.sources")}
    pending = {"dsa", "dsa.cli", "dsa.testing", "dsa.replay", *solver_modules, *sources}
    reached: set[str] = set()
    while pending:
        module = pending.pop()
        reached.add(module)
        at_once = {name for name, at_once in imports(module) if at_once}
        optional = {name.split(".")[0] for name in at_once} & OPTIONAL
        assert not optional, f"{module} imports {optional}"
        pending |= at_once & set(MODULES) - reached


@pytest.mark.parametrize("module", [module for module in MODULES if module != "dsa.cli"])
def test_only_the_command_line_prints(module: str) -> None:
    """No other module calls print or writes to stdout or stderr."""
    for node in ast.walk(parsed(module)[0]):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id != "print", f"{module}, line {node.lineno}"


@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_swallowed(module: str) -> None:
    """No bare except and no except Exception."""
    for node in ast.walk(parsed(module)[0]):
        if isinstance(node, ast.ExceptHandler):
            caught = "" if node.type is None else ast.unparse(node.type)
            assert caught not in {"", "Exception", "BaseException"}, f"line {node.lineno}"


# -- what an import costs ----------------------------------------------------------------------

_LOADED = "import sys; {}; import json; print(json.dumps(sorted(sys.modules)))"


def loaded(statement: str) -> set[str]:
    """Names of the modules that a fresh interpreter has after a statement."""
    command = [sys.executable, "-c", _LOADED.format(statement)]
    output = subprocess.run(command, cwd=ROOT.parent, stdout=subprocess.PIPE, check=True).stdout
    return set(json.loads(output))


def test_importing_dsa_is_light() -> None:
    """It imports no optional package, no solver, and nothing that it does not need at once."""
    modules = loaded("import dsa")
    assert not {name.split(".")[0] for name in modules} & OPTIONAL
    solvers = {name for name in modules if name.startswith("dsa.solvers.")}
    assert solvers == set()
    assert not {"dsa.testing", "multiprocessing"} & modules


def test_listing_solvers_imports_none() -> None:
    """Asking for the names does not import the solvers or their packages."""
    modules = loaded("import dsa.solvers; dsa.solvers.names()")
    assert not {name for name in modules if name.startswith("dsa.solvers.")}
    assert not {name.split(".")[0] for name in modules} & OPTIONAL


def test_planning_imports_one_solver() -> None:
    """A plan by a greedy solver needs neither Hypothesis nor a MIP backend nor a compiler."""
    modules = loaded("import dsa; dsa.plan([(0, 1, 8)], 'greedy-by-size')")
    assert "dsa.solvers.greedy" in modules
    assert "dsa.solvers.strip_packing" not in modules
    assert not {name.split(".")[0] for name in modules} & OPTIONAL


def test_the_test_helpers_work_without_hypothesis() -> None:
    """`check_solver` and `assert_valid` import nothing that is not required."""
    modules = loaded("from dsa.testing import check_solver; check_solver('naive')")
    assert "hypothesis" not in modules


# -- what is public ----------------------------------------------------------------------------


def test_the_public_names() -> None:
    """The names that `dsa` exports: a change here is a change of the interface."""
    assert set(dsa.__all__) == {
        *("plan", "plan_many", "validate", "load", "explain_infeasible"),
        *("Buffer", "Problem", "Constraints", "Plan", "Violation"),
        *("DsaError", "InvalidProblemError", "FileFormatError", "UnknownSolverError"),
        *("SolverUnavailableError", "UnsupportedError", "InfeasibleError", "CapacityError"),
        *("InvalidPlanError", "InvalidProofError", "SolverError"),
    }
    assert dsa.__all__ == sorted(dsa.__all__)
    assert all(hasattr(dsa, name) for name in dsa.__all__)


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """What a module lists in `__all__`, and the public methods of its classes."""
    for name in getattr(module, "__all__", ()):
        found = getattr(module, name)
        if not (inspect.isclass(found) or inspect.isfunction(found)):
            continue
        yield name, found
        if inspect.isclass(found) and found.__module__ == module.__name__:
            for member, value in vars(found).items():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    yield f"{name}.{member}", value


@pytest.mark.parametrize("module", [module for module in MODULES if "__main__" not in module])
def test_what_is_public_is_documented(module: str) -> None:
    """Modules, classes, functions and methods say what they are for."""
    imported = import_module(module)
    assert imported.__doc__
    assert [name for name, found in public(imported) if not inspect.getdoc(found)] == []


@pytest.mark.parametrize("module", [module for module in MODULES if module.count(".") == 1])
def test_all_lists_what_exists(module: str) -> None:
    """`from module import *` works."""
    imported = import_module(module)
    assert all(hasattr(imported, name) for name in getattr(imported, "__all__", ()))


@pytest.mark.parametrize("name", names())
def test_every_solver_has_an_example(name: str) -> None:
    """The documentation of a solver shows it at work, and the example is one that is run."""
    cls = solver_class(name)
    documentation = inspect.getdoc(cls) or ""
    assert "Examples\n--------" in documentation
    assert doctest.DocTestParser().get_examples(documentation)


@pytest.mark.parametrize("name", names())
def test_every_solver_documents_its_options(name: str) -> None:
    """Each option is described, by the solver or by the one it is a preset of."""
    cls = solver_class(name)
    described = "\n".join(inspect.getdoc(base) or "" for base in cls.__mro__ if base is not object)
    parameters = described.partition("Parameters\n")[2]
    for option in getattr(cls, "__dataclass_fields__", ()):
        listed = any(option in line.split(", ") for line in parameters.splitlines())
        assert listed, f"{name}: {option}"


def test_every_module_is_in_the_package() -> None:
    """Nothing lies beside the packages: every folder with code can be imported."""
    found = {module.name for module in pkgutil.walk_packages([str(ROOT)], "dsa.")}
    assert found | {"dsa"} == set(MODULES)

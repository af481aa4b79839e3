"""CBC, HiGHS and others through PuLP: started from a plan, silent, stopped in time.

Imports PuLP, and is itself imported only when there is a model to solve.
"""

from __future__ import annotations

import copy
import math
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from operator import mul
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pulp

from dsa.budget import Budget
from dsa.errors import SolverUnavailableError

__all__ = ["Answer", "solve", "variable"]

GRACE = 1.0  # seconds past its limit after which a child process is killed
LOOSEST = 1e-5  # integrality tolerance of a backend we know nothing about

# What a backend raises that is missing, broken or out of its depth.
FAILURES = (
    pulp.PulpError,
    OSError,
    subprocess.SubprocessError,
    ArithmeticError,
    LookupError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """How a backend ended. The values it found are in the variables of the model.

    Parameters
    ----------
    backend
        Its name.
    words
        Its status or its error, for people.
    seconds
        Wall time it took.
    found
        Whether it says that it has a solution: only then do the values mean anything.
    proved
        Whether it says, within its time, that none is better.
    tolerance
        How far from 0 or 1 it may leave a binary.
    """

    backend: str
    words: str
    seconds: float
    found: bool = False
    proved: bool = False
    tolerance: float = LOOSEST


def variable(
    model: Any, name: str, low: int, high: int, *, start: int, integer: bool = True
) -> Any:
    """A new variable of a model, with the value at which a backend may start."""
    make = getattr(model, "add_variable", pulp.LpVariable)  # the former only from PuLP 3.3 on
    made = make(name, low, high, pulp.LpInteger if integer else pulp.LpContinuous)
    made.varValue = start
    return made


def solve(model: Any, backend: Any, budget: Budget) -> Answer:
    """Solve a model in place, starting from the values that its variables have.

    Parameters
    ----------
    model
        A ``pulp.LpProblem``.
    backend
        ``"cbc"``, ``"highs"``, or a PuLP solver object, which is left as it is. None is HiGHS if
        `highspy` is installed, otherwise CBC.
    budget
        When to stop.

    Raises
    ------
    SolverUnavailableError
        If the backend fails on this model, and on a trivial one as well.
    """
    configured = _configured(backend, budget)
    began = budget.seconds()
    try:
        _run(model, configured)
    except subprocess.TimeoutExpired:
        return Answer(configured.name, "killed past the time limit", budget.seconds() - began)
    except FAILURES as error:
        words = f"{type(error).__name__}: {error}"
        _probe(backend, words)
        return Answer(configured.name, f"failed: {words}", budget.seconds() - began)
    seconds = budget.seconds() - began
    # `status` is "Optimal" even where the time ran out; `sol_status` tells the difference.
    status = model.sol_status
    if status not in (pulp.LpSolutionOptimal, pulp.LpSolutionIntegerFeasible):
        solved = model.status == pulp.LpStatusOptimal
        words = pulp.LpSolution[status] if solved else pulp.LpStatus[model.status]
        return Answer(configured.name, words.lower(), seconds)
    # Some have claimed a proof when they were stopped: one that comes too late is none.
    proved = status == pulp.LpSolutionOptimal and not budget.expired()
    return Answer(
        configured.name,
        "optimal" if proved else "feasible",
        seconds,
        found=True,
        proved=proved,
        tolerance=getattr(configured, "tolerance", LOOSEST),
    )


def _run(model: Any, configured: Any) -> None:
    variables = model.variables()
    configured.start = {variable.name: variable.varValue for variable in variables}
    for variable in variables:
        variable.varValue = None  # whatever stands here afterwards was found
    with TemporaryDirectory(prefix="dsa-") as configured.tmpDir:
        model.solve(configured)


def _probe(backend: Any, words: str) -> None:
    """Blame the backend for an error if it cannot even stack two buffers of one byte."""
    model = pulp.LpProblem("probe")
    peak = variable(model, "peak", 0, 2, start=2)
    below = variable(model, "below", 0, 1, start=0)
    model += peak
    model += below + 1 <= peak
    model += 2 - below <= peak
    configured = _configured(backend, Budget(time_limit=10))
    try:
        _run(model, configured)
        works = peak.varValue is not None and round(peak.varValue) == 2
    except FAILURES:
        works = False
    if not works:
        raise SolverUnavailableError(
            f"the backend {configured.name} of solver 'mip' does not work here ({words}); choose "
            "another with backend='cbc' (comes with PuLP), backend='highs' (pip install highspy) "
            "or any PuLP solver object, or use the solver 'exact' or 'greedy'"
        )


class _Cbc(pulp.COIN_CMD):  # type: ignore[misc]
    """CBC as PuLP runs it, but killed when it does not stop, and tidy when it fails."""

    name = "CBC"
    tolerance = 1e-6
    start: dict[str, Any]
    remaining: Callable[[], float]

    def actualSolve(self, model: Any) -> int:  # noqa: N802
        """Write the model, run CBC in the folder, read what it found."""
        folder = Path(self.tmpDir)
        variables, columns, rows, _ = model.writeMPS(str(folder / "model.mps"), rename=1)
        lines = ["Stopped on time - objective value 0"]
        lines += [f"{i} {columns[v.name]} {self.start[v.name]} 0" for i, v in enumerate(variables)]
        (folder / "start.mst").write_text("\n".join(lines) + "\n")
        self._run(folder)
        status, values, _, _, _, sol_status = self.readsol_MPS(
            str(folder / "found.sol"), model, variables, columns, rows
        )
        model.assignVarsVals(values)
        model.assignStatus(status, sol_status)
        return int(status)

    def _run(self, folder: Path) -> None:
        executable = shutil.which(self.path)
        if executable is None:
            raise pulp.PulpSolverError(f"{self.path} cannot be executed")
        switches = {name: self.optionsDict.get(name) for name in ("presolve", "cuts")}
        options = [
            *self.options,
            *self.getOptions(),
            *(f"{name} {'on' if on else 'off'}" for name, on in switches.items() if on is not None),
            "integerTolerance 1e-7",  # its default; our proofs allow for ten times that
        ]
        seconds = self.remaining()
        if seconds < math.inf:
            options.append(f"seconds {seconds}")
        command = [os.path.abspath(executable), "model.mps", "-mips", "start.mst"]
        for option in options:
            command += f"-{option}".split()
        command += ["-solve", "-printingOptions", "all", "-solution", "found.sol"]
        subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=seconds + GRACE if seconds < math.inf else None,
            check=True,
        )


class _Highs(pulp.HiGHS):  # type: ignore[misc]
    """HiGHS as PuLP runs it, but without its banner, and from a start."""

    name = "HiGHS"
    tolerance = 1e-6
    start: dict[str, Any]
    remaining: Callable[[], float]

    def createAndConfigureSolver(self, model: Any) -> None:  # noqa: N802
        """Make the `highspy` object."""
        highspy: Any = import_module("highspy")

        class Silent(highspy.Highs):  # type: ignore[misc]
            def enableCallbacks(self) -> None:  # noqa: N802
                self.silent()  # the first one in a process prints a banner here
                super().enableCallbacks()

        model.solverModel = Silent()
        options = {
            # Not one thread: HiGHS refuses when the process has used it with another number.
            "parallel": "off",
            **self.optionsDict,
            "mip_rel_gap": float(self.gapRel),
            "mip_abs_gap": float(self.gapAbs),
            "mip_feasibility_tolerance": self.tolerance,
        }
        for name, value in options.items():
            model.solverModel.setOptionValue(name, value)

    def callSolver(self, model: Any) -> None:  # noqa: N802
        """Solve from the start."""
        solver = model.solverModel
        start = import_module("highspy").HighsSolution()
        start.col_value = [self.start[variable.name] for variable in model.variables()]
        solver.setSolution(start)
        solver.setOptionValue("time_limit", self.remaining())
        solver.run()
        if self._contradicts_itself(solver):
            solver.clearSolver()  # the start, too
            solver.setOptionValue("time_limit", self.remaining())
            solver.run()

    @staticmethod
    def _contradicts_itself(solver: Any) -> bool:
        """Whether its values have another objective, a whole number, than it says.

        Presolve may find a start better than it is: then 1.16 returns the start, under the
        objective of what it did not find.
        """
        values, costs = solver.getSolution().col_value, solver.getLp().col_cost_
        found = math.fsum(map(mul, costs, values)) if len(values) == len(costs) else math.nan
        return bool(abs(found - solver.getInfo().objective_function_value) > 0.25)

    def findSolutionValues(self, model: Any) -> tuple[int, int]:  # noqa: N802
        """Read what was found; PuLP would look for values where there are none."""
        found = model.solverModel
        if not found.getSolution().value_valid:
            raise pulp.PulpSolverError(found.modelStatusToString(found.getModelStatus()).lower())
        status, sol_status = super().findSolutionValues(model)
        if self._contradicts_itself(found):
            sol_status = pulp.LpSolutionIntegerFeasible
        return int(status), int(sol_status)


# PuLP's own classes are run by ours, with the options of the object.
_OURS = {pulp.HiGHS: _Highs, pulp.COIN_CMD: _Cbc, pulp.PULP_CBC_CMD: _Cbc}


def _configured(backend: Any, budget: Budget) -> Any:
    """A copy of the backend that is silent, stops in time, and not before the gap is 0."""
    if backend is None:
        backend = "highs" if find_spec("highspy") else "cbc"
    if backend == "highs":
        backend = pulp.HiGHS()
    elif backend == "cbc":
        backend = pulp.COIN_CMD(path=pulp.PULP_CBC_CMD.pulp_cbc_path)
    configured = copy.copy(backend)
    configured.__class__ = _OURS.get(type(backend), type(backend))
    configured.mip, configured.msg = True, False
    limit = budget.remaining()
    configured.timeLimit = None if limit == math.inf else limit
    configured.remaining = budget.remaining  # which is less once the model has been handed over
    gaps = {"gapRel": 0, "gapAbs": 0}
    if isinstance(configured, pulp.HiGHS):
        vars(configured).update(gaps)
    else:
        configured.optionsDict = {**backend.optionsDict, **gaps}
    return configured

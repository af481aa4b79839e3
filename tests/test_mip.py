"""The MIP solver: right where the backend is, and unharmed where the backend is wrong."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pulp
import pytest
from hypothesis import given

import dsa
from dsa import Buffer, Constraints, Problem, SolverUnavailableError, plan
from dsa.budget import Budget
from dsa.result import Solution
from dsa.solvers import backends, build, mip, starts
from dsa.solvers.mip import Mip
from dsa.testing import assert_valid, problems
from dsa.testing import optimum as reference_optimum
from tests.reference import swept_optimum
from tests.shared import examples

highs = pytest.param(
    "highs",
    marks=pytest.mark.skipif(
        not pulp.HiGHS(msg=False).available(), reason="highspy is not installed"
    ),
)
each_backend = pytest.mark.parametrize("backend", ["cbc", highs])

# Loads 4 and 8, optima 5 and 10; no smaller one of 7 buffers is known (THEORY 4.5).
SEVEN = [(0, 1, 2), (0, 2, 2), (1, 3, 1), (1, 4, 1), (2, 4, 1), (3, 5, 2), (4, 5, 2)]
EIGHT = [(0, 3, 4), (0, 2, 4), (2, 8, 2), (2, 6, 2)]
EIGHT += [(4, 7, 2), (4, 6, 2), (6, 9, 4), (8, 9, 4)]


@pytest.fixture
def from_naive(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan to start from is that of no reuse, so that a backend has all the work to do."""
    monkeypatch.setattr(starts, "STARTS", {"naive": {}})


# -- what a backend proves -------------------------------------------------------------------


def chained(base: list[tuple[int, int, int]], copies: int, seed: int) -> Problem:
    """Copies one after the other, scaled, perturbed, and linked by buffers of one byte."""
    noise = random.Random(seed)
    span = max(upper for _, upper, _ in base)
    scale = 8 // max(size for _, _, size in base)
    rows = []
    for start in range(0, copies * span, span):
        rows += [(start + a, start + b, scale * s + noise.randint(0, 1)) for a, b, s in base]
        rows.append((start + span - 1, start + span + 1, 1))
    return Problem(rows)


@each_backend
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("base", "copies"), [(SEVEN, 3), (SEVEN, 4), (EIGHT, 3)])
def test_optima_above_the_load_are_proved(
    base: list[tuple[int, int, int]], copies: int, seed: int, backend: str
) -> None:
    """On 24 to 32 buffers that need more than the load, peak and proof are those of the sweep."""
    problem = chained(base, copies, seed)
    optimum = swept_optimum(problem)
    result = plan(problem, Mip(backend))
    assert problem.load < optimum
    assert (result.peak, result.lower_bound, result.status) == (optimum, optimum, "optimal")


@each_backend
@pytest.mark.usefixtures("from_naive")
@pytest.mark.parametrize("scale", [1, 3, 2**30, 2**40 + 1])
def test_a_common_factor_does_not_matter(scale: int, backend: str) -> None:
    """Sizes of any magnitude are proved if their greatest common divisor brings them down."""
    result = plan([(a, b, scale * s) for a, b, s in SEVEN], Mip(backend))
    assert (result.peak, result.status) == (5 * scale, "optimal")


@each_backend
@pytest.mark.usefixtures("from_naive")
def test_answers_are_those_of_the_reference(backend: str) -> None:
    """With alignments, pins and sizes of 0, from a bad start, the optimum is found and proved."""

    @examples(60)
    @given(problems(max_buffers=7, alignments=True, pins=True))
    def check(problem: Problem) -> None:
        optimum = reference_optimum(problem)
        result = plan(problem, Mip(backend))
        assert_valid(result)
        assert (result.peak, result.lower_bound, result.status) == (optimum, optimum, "optimal")

    check()


def test_the_references_agree() -> None:
    """Both optimisers that the tests trust give the same optimum."""

    @examples(100)
    @given(problems(max_buffers=5, alignments=True, pins=True))
    def check(problem: Problem) -> None:
        assert reference_optimum(problem) == swept_optimum(problem)

    check()


def test_the_model_holds_the_plan_it_starts_from() -> None:
    """The values at which a backend starts satisfy every row of the model, whatever the plan."""

    @examples(100)
    @given(problems(alignments=True, pins=True))
    def check(problem: Problem) -> None:
        offsets = np.array(build("naive")(problem, Budget()).offsets)
        program = mip._Model(problem, problem.load, offsets).program
        assert program.valid(eps=1e-9)
        assert all(variable.valid(1e-9) for variable in program.variables())

    check()


# -- large numbers (CASES 41) ----------------------------------------------------------------

LARGE = {
    "one byte beside 10**8": [(0, 2, 10**8), (0, 2, 1), (0, 2, 1)],
    "one byte beside 10**9": [(0, 2, 10**9), (0, 2, 1), (0, 2, 1), (0, 2, 1)],
    "one byte beside 2**35": [(0, 2, 2**35), (1, 3, 1)],
    "one byte beside 2**53": [(0, 2, 2**53 + 1), (1, 3, 1)],
    "seven digits beside one": [(0, 2, 16777217), (1, 3, 7)],
}
# The same with a few bytes apart in time, so that no reuse is worse than the optimum.
LARGE |= {f"{name}, apart": [*rows, (7, 9, 2), (2, 8, 1)] for name, rows in LARGE.items()}
LARGE["gigabytes"] = [(a, b, 2**30 * s) for a, b, s in SEVEN]
LARGE["gigabytes and odd bytes"] = [(a, b, 2**30 * s + a) for a, b, s in SEVEN]
LARGE["four bytes beside megabytes"] = [(0, 2, 2 * 10**6), *[(i, i + 2, 1) for i in range(4)]]


@each_backend
@pytest.mark.usefixtures("from_naive")
@pytest.mark.parametrize("presolved", [True, False])
@pytest.mark.parametrize("rows", LARGE.values(), ids=LARGE)
def test_large_numbers_make_no_false_proof(
    rows: list[tuple[int, int, int]], presolved: bool, backend: str
) -> None:
    """Plans stay valid and no bound is above the optimum, where tolerances buy whole buffers."""
    problem = Problem(rows)
    solver, optimum = Mip(backend, seconds=10), reference_optimum(problem)
    if presolved:
        result = plan(problem, solver)
        assert result.lower_bound <= optimum <= result.peak
    else:
        solution = solver(problem, Budget())
        assert_valid(solution.offsets, problem)
        assert (solution.lower_bound or 0) <= optimum <= solution.peak(problem)


def test_large_numbers_are_right_from_the_usual_start() -> None:
    """Every peak of the table is the optimum, and all but one are proved."""
    plans = {name: plan(rows, "mip") for name, rows in LARGE.items()}
    assert {name for name, p in plans.items() if p.status != "optimal"} == {
        "gigabytes and odd bytes"
    }
    for name, result in plans.items():
        assert result.peak == reference_optimum(Problem(LARGE[name]))


# -- what backends say -----------------------------------------------------------------------

PROBLEM = Problem(SEVEN)
OFFSETS = [2, 0, 3, 2, 4, 0, 2]  # of an optimal plan


class Stub(pulp.LpSolver):  # type: ignore[misc]
    """A backend that gives a fixed answer."""

    name = "stub"

    def __init__(
        self,
        status: int = pulp.LpStatusOptimal,
        sol_status: int = pulp.LpSolutionOptimal,
        offsets: list[Any] | None = None,
        peak: Any = 5,
        seconds: float = 0,
    ) -> None:
        super().__init__()
        self.answer = status, sol_status
        self.values = {f"o{i}": value for i, value in enumerate(offsets or [])} | {"peak": peak}
        self.seconds = seconds

    def actualSolve(self, model: Any) -> int:  # noqa: N802
        time.sleep(self.seconds)
        for variable in model.variables():
            if variable.name in self.values:
                variable.varValue = self.values[variable.name]
        model.assignStatus(*self.answer)
        return self.answer[0]


def solve(backend: Any, problem: Problem = PROBLEM, **options: Any) -> Solution:
    """What the solver makes of a backend's answer; the plan is valid whatever that is."""
    solution = Mip(backend, **options)(problem, Budget())
    assert_valid(solution.offsets, problem)
    return solution


BELIEVED = {
    "proved": Stub(offsets=OFFSETS),
    "7 digits": Stub(offsets=[2 - 1e-7, 1e-7, 3 + 1e-7, 2, 4 - 1e-7, 0, 2], peak=5 + 1e-7),
    "one below an integer": Stub(offsets=[1.9999999, 0, 2.9999999, 2, 4, 0, 2], peak=4.9999999),
    "negative zero": Stub(offsets=[2, -0.0, 3, 2, 4, -1e-9, 2]),
}


@pytest.mark.usefixtures("from_naive")
@pytest.mark.parametrize("stub", BELIEVED.values(), ids=BELIEVED)
def test_a_proof_that_integers_bear_out_is_believed(stub: Stub) -> None:
    """The order is taken, the peak is that of the integers, and equals the bound."""
    solution = solve(stub)
    assert solution.peak(PROBLEM) == solution.lower_bound == 5
    assert solution.stats["backend_status"] == "optimal"
    assert "found_by" not in solution.stats


N = math.nan
NOT_BELIEVED = {
    "time limit": (Stub(sol_status=2, offsets=OFFSETS), "feasible", 5),
    "not solved": (Stub(0, 0), "not solved", 11),
    "not solved, with values": (Stub(0, 0, offsets=OFFSETS), "not solved", 11),
    "infeasible": (Stub(-1, -1), "wrong: infeasible, where there is a plan of 11", 11),
    "unbounded": (Stub(-2, -2), "wrong: unbounded, where there is a plan of 11", 11),
    "undefined": (Stub(-3, 0), "undefined", 11),
    "optimal without a solution": (Stub(1, 0), "no solution found", 11),
    "no values": (Stub(offsets=[None] * 7, peak=None), "wrong: optimal, but not all", 11),
    "values never set": (Stub(peak=11), "wrong: optimal, but not all", 11),
    "one value missing": (Stub(offsets=[None, *OFFSETS[1:]]), "wrong: optimal, but not all", 11),
    "not a number": (Stub(offsets=[N] * 7, peak=N), "wrong: optimal, but not all", 11),
    "infinite": (Stub(offsets=[math.inf] * 7), "wrong: optimal, but not all", 11),
    "no peak": (Stub(offsets=OFFSETS, peak=None), "wrong: optimal at nan", 5),
    "infinite peak": (Stub(offsets=OFFSETS, peak=math.inf), "wrong: optimal at inf", 5),
    "huge": (Stub(offsets=[1e300] * 7, peak=1e300), "wrong: optimal at 1e+300", None),
    "overlapping": (Stub(offsets=[0] * 7, peak=4), "wrong: optimal at 4, where", None),
    "above a known plan": (Stub(offsets=OFFSETS, peak=12), "wrong: optimal at 12, where", 5),
    "peak below the offsets": (Stub(offsets=OFFSETS, peak=4), "wrong: optimal at 4, where", 5),
    "peak above the offsets": (Stub(offsets=OFFSETS, peak=6), "wrong: optimal at 6, where", 5),
    "order of a worse plan": (
        Stub(offsets=[0, 5, 1, 4, 3, 2, 6]),
        "wrong: optimal at 5, where there is a plan of 6",
        6,
    ),
}


@pytest.mark.usefixtures("from_naive")
@pytest.mark.parametrize(("stub", "words", "peak"), NOT_BELIEVED.values(), ids=NOT_BELIEVED)
def test_what_is_no_proof_proves_nothing(stub: Stub, words: str, peak: int | None) -> None:
    """No bound above the cheap one, no plan worse than the start, and the words are kept."""
    solution = solve(stub)
    assert solution.lower_bound == 4
    assert solution.stats["backend_status"].startswith(words)
    assert solution.peak(PROBLEM) in ([peak] if peak is not None else range(5, 12))
    assert solution.stats.get("found_by") == ("naive" if solution.peak(PROBLEM) == 11 else None)


def test_a_proof_that_comes_too_late_is_none() -> None:
    """What a backend claims after the time limit is a plan, not a proof; the overrun is told."""
    solution = Mip(Stub(offsets=OFFSETS, seconds=0.3))(PROBLEM, Budget(time_limit=0.2))
    assert solution.lower_bound == 4
    assert solution.stats["backend_status"] == "feasible"
    assert solution.stats["overrun_seconds"] > 0


def test_numbers_too_large_for_a_proof_are_not_believed() -> None:
    """At 50,000 units and a tolerance of 10^-5, a binary may buy half a unit."""
    for scale, proved in ((9_999, True), (10_000, False)):
        problem = Problem([(a, b, scale * s) for a, b, s in SEVEN])
        solution = solve(Stub(offsets=[scale * o for o in OFFSETS], peak=5 * scale), problem)
        assert (solution.lower_bound == 5 * scale) == proved
        assert solution.stats["backend_status"].startswith("optimal")


def test_a_target_need_not_be_undercut() -> None:
    """A plan that meets the target proves nothing about what lies below it."""
    solution = Mip(Stub(offsets=OFFSETS))(PROBLEM, Budget(target=5))
    assert (solution.peak(PROBLEM), solution.lower_bound) == (5, 4)


# -- backends that fail ----------------------------------------------------------------------


class Raising(Stub):
    """A backend that raises an error, always or only on a model larger than the probe."""

    def __init__(self, error: Exception, always: bool) -> None:
        super().__init__()
        self.error, self.always = error, always

    def actualSolve(self, model: Any) -> int:  # noqa: N802
        if self.always or len(model.variables()) > 2:
            raise self.error
        self.values = {"peak": 2}
        return super().actualSolve(model)


ERRORS = [
    pulp.PulpSolverError("cannot execute"),
    FileNotFoundError("no such file"),
    OSError("exec format error"),
    subprocess.CalledProcessError(-11, "solver"),
    ValueError("could not convert string to float"),
    IndexError("list index out of range"),
    OverflowError("int too large to convert to float"),
]


@pytest.mark.usefixtures("from_naive")
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_backend_that_fails_on_one_model_leaves_the_best_plan(error: Exception) -> None:
    """If it can still stack two buffers, the failure is a statistic and the start is the plan."""
    solution = solve(Raising(error, always=False))
    assert solution.peak(PROBLEM) == 11
    assert solution.stats["backend_status"] == f"failed: {type(error).__name__}: {error}"


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_backend_that_always_fails_is_unavailable(error: Exception) -> None:
    """One error says which backend, why, and what to use instead."""
    with pytest.raises(SolverUnavailableError) as caught:
        solve(Raising(error, always=True))
    for words in ("stub", str(error), "backend='cbc'", "pip install highspy", "exact", "greedy"):
        assert words in str(caught.value)


def script(path: Path, text: str) -> pulp.COIN_CMD:
    """CBC whose executable is a shell script."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return pulp.COIN_CMD(path=str(path))


posix = pytest.mark.skipif(os.name != "posix", reason="stands a shell script in for CBC")


def test_a_missing_executable_is_unavailable(tmp_path: Path) -> None:
    """The error names the path that was tried."""
    path = str(tmp_path / "cbc")
    with pytest.raises(SolverUnavailableError, match="CBC") as caught:
        solve(pulp.COIN_CMD(path=path))
    assert path in str(caught.value)


@posix
@pytest.mark.parametrize("text", ["exit 1", "exit 0", "kill -9 $$", "echo Nonsense > found.sol"])
def test_a_broken_executable_is_unavailable(tmp_path: Path, text: str) -> None:
    """It may crash, do nothing or write what nobody can read."""
    with pytest.raises(SolverUnavailableError, match="CBC"):
        solve(script(tmp_path / "cbc", text))


@posix
def test_a_backend_that_does_not_stop_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child process that runs on past its limit is ended, and the plan is that of the start."""
    monkeypatch.setattr(backends, "GRACE", 0.1)
    hanging = script(tmp_path / "cbc", f"echo $$ > {tmp_path}/pid\nexec sleep 1000")
    solution = Mip(hanging)(PROBLEM, Budget(time_limit=0.5))
    assert solution.stats["backend_status"] == "killed past the time limit"
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@posix
@pytest.mark.parametrize("text", [None, "exit 1"])
def test_no_file_is_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    """The folder of the model goes, whether the backend works or fails."""
    folder = tmp_path / "with a space"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.chdir(folder)
    backend = "cbc" if text is None else script(tmp_path / "cbc", text)
    try:
        assert solve(backend).lower_bound == 5
    except SolverUnavailableError:
        assert text is not None
    assert list(folder.iterdir()) == []


# -- behaviour -------------------------------------------------------------------------------

_FRESH = """
import sys
import pulp
from dsa import plan
from dsa.solvers.mip import Mip
print(plan({rows}, Mip({backend})).peak)
"""


@each_backend
@pytest.mark.parametrize("given", ["{0!r}", "pulp.{1}()"])
def test_nothing_is_printed(backend: str, given: str) -> None:
    """Not even the banner that HiGHS prints once in a process, nor for an object with a log."""
    made = given.format(backend, {"cbc": "PULP_CBC_CMD", "highs": "HiGHS"}[backend])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FRESH.format(rows=SEVEN, backend=made)],
        cwd=Path(dsa.__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("5\n", "")


@pytest.mark.skipif(not pulp.HiGHS(msg=False).available(), reason="highspy is not installed")
def test_highs_may_have_been_used_before() -> None:
    """It refuses to change its number of threads within a process; so none is asked for."""
    code = (
        "import highspy; used = highspy.Highs(); used.setOptionValue('threads', 2); "
        "used.addVar(0, 1); used.changeColIntegrality(0, highspy.HighsVarType.kInteger); used.run()"
    )
    code += _FRESH.format(rows=SEVEN, backend=repr("highs"))
    subprocess.run([sys.executable, "-c", code], cwd=Path(dsa.__file__).parents[1], check=True)


def test_pulp_is_not_imported_before_it_is_needed() -> None:
    """A plan at the load is a proof for free: no backend is started, or even looked for."""
    code = (
        "import sys; from dsa import plan; "
        "p = plan([(0, 2, 8), (1, 3, 8)], 'mip', backend='cbc'); "
        "assert p.status == 'optimal' and 'pulp' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=Path(dsa.__file__).parents[1], check=True)


@each_backend
def test_a_given_object_is_left_as_it_is(backend: str) -> None:
    """Its gap does not weaken the proof, and the object can be used again."""
    make: Callable[..., Any] = pulp.HiGHS if backend == "highs" else pulp.COIN_CMD
    path = {} if backend == "highs" else {"path": pulp.PULP_CBC_CMD.pulp_cbc_path}
    given = make(gapRel=0.9, gapAbs=9, timeLimit=1000, **path)
    before = repr(sorted(vars(given).items()))
    assert solve(given).lower_bound == 5
    assert repr(sorted(vars(given).items())) == before
    assert type(given) is make


@each_backend
def test_ids_may_be_anything(backend: str) -> None:
    """Names that a model file could not hold reach no backend."""
    ids: list[Any] = ["a b", "", "-x", "e1", ("t", 1), 3.5, "ünïcode\n"]
    rows = [Buffer(a, b, s, id=id) for (a, b, s), id in zip(SEVEN, ids, strict=True)]
    assert plan(rows, Mip(backend)).status == "optimal"


@each_backend
@pytest.mark.usefixtures("from_naive")
def test_the_same_plan_again(backend: str) -> None:
    """Equal problems get equal plans."""
    problem = chained(EIGHT, 2, seed=1)
    assert plan(problem, Mip(backend)).offsets == plan(problem, Mip(backend)).offsets


@pytest.mark.parametrize(
    ("options", "limits", "words"),
    [
        ({"max_pairs": 8}, {}, "not started: 9 conflicting pairs are more than max_pairs=8"),
        ({}, {"time_limit": 0}, "not started: the time was up"),
        ({"seconds": 0}, {}, "not started: the time was up"),
        ({}, {"target": 5}, "not started: the target was met without it"),
    ],
)
def test_where_no_backend_is_started(
    options: dict[str, Any], limits: dict[str, Any], words: str
) -> None:
    """The plan is the best of the start, it is said why, and a backend would not be missed."""
    result = plan(SEVEN, Mip(Raising(OSError(), always=True), **options), **limits)
    assert_valid(result)
    assert result.stats["backend_status"] == words
    assert (result.stats["found_by"], result.lower_bound) == ("strip-packing", 4)


def test_a_limit_of_pairs_counts_conflicts() -> None:
    """Exactly so many pairs as there are conflicts are allowed."""

    @examples(50)
    @given(problems())
    def check(problem: Problem) -> None:
        rows = [row for row in problem if row.size]
        pairs = sum(
            a.lower < b.upper and b.lower < a.upper for i, a in enumerate(rows) for b in rows[:i]
        )
        assert starts.count_pairs(problem) == pairs

    check()


def test_the_repr_of_a_given_object_makes_it_again() -> None:
    """PuLP's own way to make a solver by name stands in for its repr, which is an address."""
    solver = Mip(pulp.HiGHS_CMD(msg=False, threads=2, options=["a=1"]), seconds=3)
    copy = eval(repr(solver), {"Mip": Mip, "pulp": pulp})
    assert repr(copy) == repr(solver)
    assert type(copy.backend) is pulp.HiGHS_CMD
    assert copy.backend.toDict() == solver.backend.toDict()


@pytest.mark.parametrize("backend", ["gurobi", "CBC", 3, pulp.HiGHS])
def test_what_is_no_backend_is_refused(backend: Any) -> None:
    """At once, with what may be given."""
    with pytest.raises(ValueError, match="backend must be 'cbc', 'highs', None or a PuLP solver"):
        Mip(backend)


@each_backend
def test_a_start_that_presolve_mistakes(backend: str) -> None:
    """HiGHS 1.16 returns this start, of 6, under the objective 5 that it did not find."""
    rows = [
        Buffer(6, 8, 2, id="a"),
        Buffer(1, 3, 3, id="b"),
        Buffer(4, 7, 2, id="c"),
        Buffer(3, 4, 2, id="d", alignment=4, holes=[(3, 4)]),
    ]
    rules = Constraints(apart=[("d", "b")], in_place=[("c", "a")])
    p = plan(rows, "mip", backend=backend, constraints=rules)
    assert (p.peak, p.status) == (5, "optimal")

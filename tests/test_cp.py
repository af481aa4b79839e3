"""The CP solver: the optimum and its proof are right, and unharmed where the backend is wrong."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given

from dsa import Problem, SolverUnavailableError, plan
from dsa.budget import Budget
from dsa.solvers import build, cp, missing_packages, starts
from dsa.solvers.cp import Cp
from dsa.testing import assert_valid, problems
from dsa.testing import optimum as reference_optimum
from tests.reference import swept_optimum
from tests.shared import examples
from tests.test_mip import EIGHT, LARGE, SEVEN, chained

needs_ortools = pytest.mark.skipif(bool(missing_packages(Cp)), reason="ortools is not installed")


@pytest.fixture
def from_naive(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan to start from is that of no reuse, so that CP-SAT has all the work to do."""
    monkeypatch.setattr(starts, "STARTS", {"naive": {}})


# -- what is proved --------------------------------------------------------------------------


@needs_ortools
@pytest.mark.usefixtures("from_naive")
def test_answers_are_those_of_the_reference() -> None:
    """With alignments, pins and sizes of 0, from a bad start, the optimum is found and proved."""

    @examples(100)
    @given(problems(max_buffers=7, alignments=True, pins=True))
    def check(problem: Problem) -> None:
        optimum = reference_optimum(problem)
        result = plan(problem, "cp")
        assert_valid(result)
        assert (result.peak, result.lower_bound, result.status) == (optimum, optimum, "optimal")

    check()


@needs_ortools
@pytest.mark.usefixtures("from_naive")
def test_presolve_is_not_what_makes_it_right() -> None:
    """The bare solver, on whole problems in bytes with sizes of 0, finds the same optima."""

    @examples(100)
    @given(problems(max_buffers=6, alignments=True, pins=True))
    def check(problem: Problem) -> None:
        solution = Cp()(problem, Budget(target=problem.load))
        assert_valid(solution.offsets, problem)
        assert solution.peak(problem) == solution.lower_bound == reference_optimum(problem)

    check()


@needs_ortools
@pytest.mark.usefixtures("from_naive")
@pytest.mark.parametrize("scale", [1, 10, 3 * 2**30])
@pytest.mark.parametrize(("rows", "load", "optimum"), [(SEVEN, 4, 5), (EIGHT, 8, 10)])
def test_the_smallest_optima_above_the_load_are_proved(
    rows: list[tuple[int, int, int]], load: int, optimum: int, scale: int
) -> None:
    """No plan at the load is found, and the bound is the optimum (THEORY 4.5), in any unit."""
    result = plan([(a, b, scale * s) for a, b, s in rows], "cp")
    assert (result.problem.load, result.peak) == (scale * load, scale * optimum)
    assert (result.status, result.bound_witness.kind) == ("optimal", "search")


@needs_ortools
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("base", "copies"), [(SEVEN, 3), (SEVEN, 4), (EIGHT, 3)])
def test_chained_optima_above_the_load_are_proved(
    base: list[tuple[int, int, int]], copies: int, seed: int
) -> None:
    """On 24 to 32 buffers that need more than the load, peak and proof are those of the sweep."""
    problem = chained(base, copies, seed)
    optimum = swept_optimum(problem)
    result = plan(problem, "cp")
    assert problem.load < optimum
    assert (result.peak, result.lower_bound, result.status) == (optimum, optimum, "optimal")


@needs_ortools
@pytest.mark.usefixtures("from_naive")
def test_ten_times_the_bytes_is_ten_times_the_peak() -> None:
    """Without the division by the greatest common divisor, too (CASES 49)."""

    @examples(60)
    @given(problems(max_buffers=8, zero_sizes=False))
    def check(problem: Problem) -> None:
        assume(len(problem))
        larger = Problem.from_columns(problem.lower, problem.upper, 10 * problem.size)
        small = Cp()(problem, Budget(target=problem.load))
        large = Cp()(larger, Budget(target=larger.load))
        assert small.lower_bound == small.peak(problem)
        assert large.lower_bound == large.peak(larger) == 10 * small.peak(problem)

    check()


@needs_ortools
@pytest.mark.usefixtures("from_naive")
@pytest.mark.parametrize("rows", LARGE.values(), ids=LARGE)
def test_large_numbers_are_proved(rows: list[tuple[int, int, int]]) -> None:
    """One byte beside gigabytes counts (CASES 39, 41); above 2**53 units CP-SAT is not started."""
    problem = Problem(rows)
    solution = Cp(seconds=20)(problem, Budget(target=problem.load))
    assert_valid(solution.offsets, problem)
    if solution.stats["backend_status"].startswith("not started: a peak of"):
        assert solution.peak(problem) > 2**53
        assert solution.lower_bound == problem.load
    else:
        assert solution.peak(problem) == solution.lower_bound == reference_optimum(problem)


def test_the_model_holds_the_plan_it_starts_from() -> None:
    """The hints satisfy the model, whatever the plan, so that "infeasible" is never an answer."""
    cp_model = pytest.importorskip("ortools.sat.python.cp_model", reason="ortools is missing")

    @examples(60)
    @given(problems(alignments=True, pins=True))
    def check(problem: Problem) -> None:
        offsets = np.array(build("naive")(problem, Budget()).offsets)
        model, _ = cp._model(problem, offsets, problem.load)
        solver = cp_model.CpSolver()
        solver.parameters.fix_variables_to_their_hinted_value = True
        assert solver.solve(model) == cp_model.OPTIMAL

    check()


# -- what CP-SAT says ------------------------------------------------------------------------

PROBLEM = Problem(SEVEN)
OPTIMAL = [2, 0, 3, 2, 4, 0, 2]
STACKED = [0, 2, 4, 5, 6, 7, 9]  # peak 11
ANSWERS: dict[str, tuple[str, list[int] | None, float, int, str]] = {
    "proved": ("optimal", OPTIMAL, 5.0, 5, "optimal"),
    "stopped with the proof": ("feasible", OPTIMAL, 5.0, 5, "feasible"),
    "stopped": ("feasible", OPTIMAL, 4.0, 0, "feasible"),
    "stopped without a plan": ("unknown", None, 5.0, 5, "unknown"),
    "stopped at once": ("unknown", None, -math.inf, 0, "unknown"),
    "start refuted": ("unknown", None, 11.0, 11, "unknown"),
    "infeasible": ("infeasible", None, 0.0, 0, "wrong: infeasible, where there is a plan of 11"),
    "invalid": ("model invalid", None, 0.0, 0, "wrong: model invalid, where"),
    "bound too high": ("unknown", None, 12.0, 0, "wrong: unknown, bound 12, where"),
    "bound above the plan": ("optimal", OPTIMAL, 6.0, 0, "wrong: optimal, bound 6, where"),
    "plan above the bound": ("optimal", STACKED, 5.0, 0, "wrong: optimal, bound 5, where"),
    "overlapping": ("optimal", [0] * 7, 5.0, 0, "wrong: optimal, bound 5, where"),
}


@pytest.mark.parametrize(
    ("words", "offsets", "claimed", "bound", "status"), ANSWERS.values(), ids=ANSWERS
)
def test_a_bound_counts_where_it_agrees_with_the_plans(
    words: str, offsets: list[int] | None, claimed: float, bound: int, status: str
) -> None:
    """A bound is claimed as an integer, unless plans belie it; what was said is kept."""
    answer = None if offsets is None else np.array(offsets)
    found = cp._interpret(PROBLEM, np.array(STACKED), 4, words, answer, claimed)
    assert found.lower_bound == bound
    assert found.status.startswith(status)
    if found.offsets is not None:
        assert_valid(found.offsets, PROBLEM)


def test_a_target_need_not_be_undercut() -> None:
    """A plan that meets the target proves nothing about what lies below it."""
    found = cp._interpret(PROBLEM, np.array(STACKED), 6, "optimal", np.array(OPTIMAL), 6.0)
    assert (found.lower_bound, found.status) == (0, "optimal")


# -- behaviour -------------------------------------------------------------------------------


@needs_ortools
@pytest.mark.usefixtures("from_naive")
def test_the_same_plan_again() -> None:
    """Equal problems get equal plans."""
    problem = chained(EIGHT, 3, seed=1)
    assert plan(problem, "cp").offsets == plan(problem, "cp").offsets


@needs_ortools
@pytest.mark.usefixtures("from_naive")
@pytest.mark.parametrize("workers", [1, 2])
def test_workers_prove_the_same(workers: int) -> None:
    """The number of threads changes neither peak nor proof."""
    result = plan(SEVEN, "cp", workers=workers)
    assert (result.peak, result.status) == (5, "optimal")


# Far too much to search in a second.
CROWDED = Problem([(i % 83, i % 83 + 1 + i % 7, 1 + 37 * i % 101) for i in range(500)])


@needs_ortools
@pytest.mark.usefixtures("from_naive")
def test_the_time_limit_reaches_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """CP-SAT gets what is left of the time, and what it is stopped with is a plan, not a proof."""
    cp_model = pytest.importorskip("ortools.sat.python.cp_model")
    limits: list[float] = []

    class Watched(cp_model.CpSolver):  # type: ignore[misc, name-defined, unused-ignore]
        def solve(self, *arguments: Any) -> Any:
            limits.append(self.parameters.max_time_in_seconds)
            return super().solve(*arguments)

    monkeypatch.setattr(cp_model, "CpSolver", Watched)
    result = plan(CROWDED, "cp", time_limit=1)
    assert_valid(result)
    assert 0 < limits[0] < 1
    assert result.stats["backend_status"] in ("feasible", "unknown")
    assert result.status == "feasible"


@needs_ortools
@pytest.mark.usefixtures("from_naive")
def test_a_better_plan_is_reported() -> None:
    """What CP-SAT finds reaches the progress callback, and the plan is nobody else's."""
    peaks: list[int] = []
    result = plan(SEVEN, "cp", progress=lambda progress: peaks.append(progress.peak))
    assert peaks == [5]
    assert "found_by" not in result.stats


@pytest.mark.parametrize(
    ("options", "limits", "words"),
    [
        ({"max_pairs": 8}, {}, "not started: 9 conflicting pairs are more than max_pairs=8"),
        ({}, {"time_limit": 0}, "not started: the time was up"),
        ({"seconds": 0}, {}, "not started: the time was up"),
        ({}, {"target": 5}, "not started: the target was met without it"),
    ],
)
def test_where_the_backend_is_not_started(
    options: dict[str, Any],
    limits: dict[str, Any],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The plan is the best of the start, it is said why, and OR-tools are not even imported."""
    monkeypatch.setattr("dsa.solvers.find_spec", lambda package: package)
    monkeypatch.setitem(sys.modules, "ortools", None)
    result = plan(SEVEN, "cp", **options, **limits)
    assert_valid(result)
    assert result.stats["backend_status"] == words
    assert (result.stats["found_by"], result.lower_bound) == ("strip-packing", 4)


def test_it_is_unavailable_without_ortools(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the package and how to install it."""
    monkeypatch.setattr("dsa.solvers.find_spec", lambda package: None)
    with pytest.raises(SolverUnavailableError, match="Cp needs ortools: pip install ortools"):
        plan(SEVEN, "cp")


@pytest.mark.parametrize("workers", [0, -1])
def test_workers_are_at_least_one(workers: int) -> None:
    """CP-SAT would take 0 for as many as there are cores."""
    with pytest.raises(ValueError, match=f"workers must be at least 1, got {workers}"):
        Cp(workers=workers)

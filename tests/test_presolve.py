"""Reductions: they keep the optimum, and what they set aside can be put back."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa import Buffer, Problem
from dsa.bounds import lower_bound
from dsa.budget import Budget, Progress
from dsa.kernels.placement import place
from dsa.presolve import Part, divide, solve_parts, split
from dsa.result import Solution
from dsa.solvers.orders import order_by
from dsa.testing import assert_valid, optimum, problems
from tests import oracle
from tests.shared import examples

Solve = Callable[[Part, Budget], Solution]


def best_order(part: Part, budget: Budget) -> Solution:
    """An optimal solution, by trying all orders."""
    orders = permutations(range(len(part.problem)))
    plans = [Solution(place(part.problem, np.array(order, np.int64))) for order in orders]
    return min(plans, key=lambda solution: solution.peak(part.problem))


def given_order(part: Part, budget: Budget) -> Solution:
    """Some solution."""
    return Solution(place(part.problem, np.arange(len(part.problem))))


# -- units -----------------------------------------------------------------------------------


@examples(100)
@given(problems(max_buffers=5, alignments=True, pins=True), st.sampled_from([1, 2, 6, 64, 2**40]))
def test_units_keep_the_optimum(problem: Problem, factor: int) -> None:
    """The optimum in units times the unit is the optimum, and sizes lose nothing."""
    columns = problem.columns()
    columns["size"] = factor * problem.size
    columns["offset"] = np.where(problem.pin < 0, -1, factor * problem.pin)
    larger = Problem.from_columns(**columns)
    scaled, unit = divide(larger)
    assert (scaled.size * unit == larger.size).all()
    assert optimum(scaled) * unit == optimum(larger)


@pytest.mark.parametrize(
    ("rows", "unit", "alignments"),
    [
        ([(0, 1, 64), (0, 1, 96)], 32, [1, 1]),
        ([(0, 1, 64), (0, 1, 97)], 1, [1, 1]),
        ([(0, 1, 64), (0, 1, 0)], 64, [1, 1]),
        ([(0, 1, 0)], 1, [1]),
        ([Buffer(0, 1, 64, alignment=16)], 64, [1]),  # holds by itself
        ([Buffer(0, 1, 64, alignment=256)], 64, [4]),  # still matters
        ([Buffer(0, 1, 64, alignment=48)], 16, [3]),  # neither divides the other
        ([Buffer(0, 1, 64, alignment=48), Buffer(0, 1, 64, alignment=40)], 8, [6, 5]),
        ([Buffer(0, 1, 64, offset=32)], 32, [1]),
        ([Buffer(0, 1, 64, offset=0)], 64, [1]),
    ],
)
def test_units_of_known_problems(rows: list[Any], unit: int, alignments: list[int]) -> None:
    """The largest unit that divides sizes and pins and that alignments agree with."""
    scaled, found = divide(Problem(rows))
    assert (found, scaled.alignment.tolist()) == (unit, alignments)


def test_capacity_is_measured_in_units() -> None:
    """A capacity that is no multiple of the unit loses what no plan could use."""
    scaled, _ = divide(Problem([(0, 1, 64), (0, 1, 96)], capacity=191))
    assert scaled.capacity == 5


# -- parts -----------------------------------------------------------------------------------


@examples(100)
@given(problems(alignments=True, pins=True), st.integers(0, 40))
def test_parts_are_apart_and_the_rest_is_placed(problem: Problem, enough: int) -> None:
    """Parts share no buffer and no conflict; all other buffers stand where nobody is in the way."""
    parts, offsets = split(problem, enough)
    taken = [int(i) for part in parts for i in part.positions]
    assert len(taken) == len(set(taken))
    group = {int(i): k for k, part in enumerate(parts) for i in part.positions}
    conflicts = oracle.conflicts(problem)
    assert all(group[i] == group[j] for i, j in conflicts if i in group and j in group)
    rest = np.array([i for i in range(len(problem)) if i not in group], np.int64)
    assert_valid(offsets[rest], problem.select(rest))
    for part in parts:
        under = [
            i
            for i in rest.tolist()
            for j in part.positions.tolist()
            if (min(i, j), max(i, j)) in conflicts
        ]
        assert all(offsets[i] + problem.size[i] <= part.base for i in under)


@pytest.mark.parametrize("solve", [best_order, given_order])
def test_solutions_are_put_together(solve: Solve) -> None:
    """Whatever solves the parts, the whole is a plan, and its bound is below the optimum."""

    @examples(60)
    @given(problems(max_buffers=5, alignments=True, pins=True))
    def check(problem: Problem) -> None:
        solution = solve_parts(solve, problem, Budget())
        assert_valid(solution.offsets, problem)
        best = optimum(problem)
        assert (solution.lower_bound or 0) <= best <= solution.peak(problem)
        if solve is best_order:
            assert solution.peak(problem) == best

    check()


@examples(80)
@given(problems(max_buffers=6, alignments=True), st.integers(0, 30))
def test_targets_are_passed_on(problem: Problem, target: int) -> None:
    """A part is aimed at what the whole is aimed at, in its own units and above its base."""
    target = max(target, lower_bound(problem).value)
    aims = []

    def solve(part: Part, budget: Budget) -> Solution:
        aims.append((part, budget))
        return best_order(part, budget)

    solution = solve_parts(solve, problem, Budget(target=target))
    reached = target
    for part, budget in aims:
        assert budget.target >= lower_bound(part.problem).value
        assert part.base + budget.target * part.unit <= max(reached, optimum(problem))
        reached = max(reached, solution.peak(problem))
    assert solution.peak(problem) <= max(target, optimum(problem))


# The optimum of these, 7, is above their load, 6; largest first reaches it.
HARD = [(0, 1, 3), (0, 2, 3), (1, 3, 2), (1, 4, 1), (2, 4, 2), (3, 5, 3), (4, 5, 3)]


def proved(part: Part, budget: Budget) -> Solution:
    """Largest first, claimed to be optimal."""
    offsets = place(part.problem, order_by(part.problem, "size"))
    return Solution(offsets, Solution(offsets).peak(part.problem))


def test_the_heaviest_component_comes_first() -> None:
    """Light components are solved last, and no lower than the heaviest one needs."""
    light = [(lower + 50, upper + 50, 3 * size) for lower, upper, size in HARD]
    heavy = [(lower, upper, 4 * size) for lower, upper, size in HARD]
    middle = [(lower + 90, upper + 90, size) for lower, upper, size in [*HARD, (0, 5, 17)]]
    seen = []

    def solve(part: Part, budget: Budget) -> Solution:
        seen.append((part.base, part.problem.load, part.unit, budget.target))
        return proved(part, budget)

    problem = Problem(light + middle + heavy)
    assert solve_parts(solve, problem, Budget(target=24)).peak(problem) == 28
    assert seen == [(0, 6, 4, 6), (17, 6, 1, 28 - 17), (0, 6, 3, 28 // 3)]


def test_bounds_of_parts_count_what_lies_below() -> None:
    """What is proved of a part holds above its base, in bytes."""
    rows = [(lower, upper, 16 * size) for lower, upper, size in HARD]
    problem = Problem([*rows, (0, 5, 40)])
    solution = solve_parts(proved, problem, Budget())
    assert solution.lower_bound == solution.peak(problem) == 40 + 16 * 7


def test_what_fits_anyway_is_stacked() -> None:
    """A component that cannot reach the bound is not handed to the solver."""

    def refuse(part: Part, budget: Budget) -> Solution:
        raise AssertionError("nothing is left to solve")

    rows = [(0, 2, 50), (10, 12, 8), (11, 13, 9), (12, 14, 7)]
    solution = solve_parts(refuse, Problem(rows), Budget(target=50))
    assert_valid(solution.offsets, rows)
    assert (solution.peak(Problem(rows)), solution.lower_bound) == (50, 50)


def test_buffers_live_throughout_go_to_the_bottom() -> None:
    """They come off the problem, which may fall apart without them, again and again."""
    rows = [(0, 9, 5), (0, 5, 2), (0, 2, 3), (1, 3, 4), (2, 4, 3), (3, 5, 4), (5, 9, 1), (5, 7, 2)]
    parts, offsets = split(Problem(rows), 0)
    (part,) = parts
    assert (part.positions.tolist(), part.base) == ([2, 3, 4, 5], 7)
    assert offsets[[0, 1, 6, 7]].tolist() == [0, 5, 5, 6]


def test_progress_is_reported_in_bytes_of_the_whole() -> None:
    """Peaks of a part are told in the caller's bytes, base and unit included."""
    told: list[Progress] = []

    def solve(part: Part, budget: Budget) -> Solution:
        solution = best_order(part, budget)
        budget.report(solution.peak(part.problem))
        return solution

    rows = [(0, 5, 40), (0, 2, 80), (1, 3, 160), (2, 4, 80), (3, 5, 160)]
    solve_parts(solve, Problem(rows), Budget(target=280, progress=told.append))
    assert [(report.peak, report.target) for report in told] == [(280, 280)]


def test_statistics_are_added_up() -> None:
    """Numbers of several parts are summed; words are those of the heaviest part."""

    def solve(part: Part, budget: Budget) -> Solution:
        stats = {"nodes": part.unit, "rule": f"unit {part.unit}", "proved": True}
        return Solution(best_order(part, budget).offsets, stats=stats)

    chain = [(0, 2, 3), (1, 3, 5), (2, 4, 3), (3, 5, 5), (4, 6, 3)]
    rows = [(lower, upper, 7 * size) for lower, upper, size in chain]
    rows += [(lower + 9, upper + 9, 5 * size) for lower, upper, size in chain]
    solution = solve_parts(solve, Problem(rows), Budget())
    assert dict(solution.stats) == {"nodes": 7 + 5, "rule": "unit 7", "proved": True}

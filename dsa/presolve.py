"""Make a problem smaller without changing its optimum, and undo it for the solution.

For solvers that search: each component is solved apart, in units of the greatest common divisor
of its sizes. What fits under the bound anyway is stacked without a search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsa.bounds import lower_bound
from dsa.budget import Budget
from dsa.problem import FREE, IntArray, Problem
from dsa.result import Solution

__all__ = ["Part", "divide", "solve_parts", "split"]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A component, reduced.

    Parameters
    ----------
    problem
        The buffers of the component, their sizes, alignments and pins in units.
    positions
        Their positions in the whole problem.
    unit
        Bytes in a unit.
    """

    problem: Problem
    positions: IntArray
    unit: int


def split(problem: Problem, enough: int) -> tuple[list[Part], IntArray]:
    """Components that need a search, heaviest first, and offsets for all other buffers.

    A component whose buffers, one on top of the other, stay within `enough` bytes cannot decide
    the peak: it is stacked. Buffers of size 0 get offset 0. Pinned buffers keep their pins.
    """
    offsets = np.where(problem.pin == FREE, 0, problem.pin)
    component = problem.component
    count = int(component.max(initial=-1)) + 1
    order = np.argsort(component, kind="stable")
    bounds = np.searchsorted(component[order], np.arange(count + 1))
    padded = problem.size + problem.alignment - 1
    parts = []
    for k in range(count):
        members = order[bounds[k] : bounds[k + 1]]
        free = not (problem.pin[members] != FREE).any()
        if len(members) == 1 and free:
            continue
        if free and int(padded[members].sum()) <= enough:
            _stack(problem, members, offsets)
        else:
            parts.append(_part(problem, members))
    parts.sort(key=lambda part: -part.problem.load * part.unit)
    return parts, offsets


def _part(problem: Problem, members: IntArray) -> Part:
    scaled, unit = divide(problem.select(members))
    return Part(scaled, members, unit)


def _stack(problem: Problem, members: IntArray, offsets: IntArray) -> None:
    top = 0
    for i in members.tolist():
        alignment = int(problem.alignment[i])
        offsets[i] = -(-top // alignment) * alignment
        top = int(offsets[i] + problem.size[i])


def divide(problem: Problem) -> tuple[Problem, int]:
    """The problem in the largest unit that loses nothing, and that unit in bytes.

    Buffers of a plan that has been pushed down rest at 0, on a pin's end, or on one another, each
    offset rounded up to the alignment. So if the unit g divides sizes and pins, and each
    alignment divides g (then it holds by itself) or is a multiple of g (then rounding up stays
    on multiples of g), all offsets are multiples of g.
    """
    pinned = problem.pin != FREE
    unit = int(np.gcd.reduce(np.concatenate([problem.size, problem.pin[pinned]])))
    alignments = np.unique(problem.alignment)
    while True:
        apart = alignments[(unit % alignments != 0)]
        smaller = int(np.gcd.reduce(np.append(apart, unit)))
        if smaller == unit:
            break
        unit = smaller
    if unit <= 1:
        return problem, 1
    scaled = Problem.from_columns(
        problem.lower,
        problem.upper,
        problem.size // unit,
        alignment=np.maximum(problem.alignment // unit, 1),
        offset=np.where(pinned, problem.pin // unit, FREE),
        ids=problem.ids,
        capacity=None if problem.capacity is None else problem.capacity // unit,
    )
    return scaled, unit


def solve_parts(
    solve: Callable[[Problem, Budget], Solution], problem: Problem, budget: Budget
) -> Solution:
    """Solve each component apart and put the solutions together.

    Once one component has reached a peak, the others need not be lower.

    Parameters
    ----------
    solve
        The solver, called with each reduced component and its share of the budget.
    problem, budget
        The whole.
    """
    bound = lower_bound(problem).value
    parts, offsets = split(problem, max(bound, budget.target))
    enough, stats = budget.target, []
    for part in parts:
        aim = budget.aimed(max(enough // part.unit, lower_bound(part.problem).value), part.unit)
        solution = solve(part.problem, aim)
        offsets[part.positions] = np.asarray(solution.offsets, np.int64) * part.unit
        enough = max(enough, solution.peak(part.problem) * part.unit)
        bound = max(bound, (solution.lower_bound or 0) * part.unit)
        stats.append(dict(solution.stats))
    return Solution(offsets, bound, _merge(stats))


def _merge(stats: list[dict[str, Any]]) -> dict[str, Any]:
    """One component: its statistics; several: numbers added up, words of the heaviest one."""
    merged: dict[str, Any] = {}
    for one in stats:
        for name, value in one.items():
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            merged[name] = (
                merged[name] + value if number and name in merged else merged.get(name, value)
            )
    return merged

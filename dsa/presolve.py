"""Make a problem smaller without changing its optimum, and undo it for the solution.

For solvers that search: each component is solved apart, in units of the greatest common divisor
of its sizes. What fits under the bound anyway is stacked without a search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from dsa.bounds import lower_bound
from dsa.budget import Budget
from dsa.problem import FREE, LIMIT, IntArray, Problem
from dsa.proof import Proof
from dsa.result import Solution

__all__ = ["Part", "divide", "solve_parts", "split"]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A component, reduced.

    Parameters
    ----------
    problem
        Buffers of the component, their sizes, alignments and pins in units.
    positions
        Their positions in the whole problem.
    unit
        Bytes in a unit.
    base
        Bytes at the bottom that buffers live throughout the component have taken.
    bottom
        Positions of these buffers in the whole problem, the lowest first.
    """

    problem: Problem
    positions: IntArray
    unit: int
    base: int
    bottom: IntArray


def split(problem: Problem, enough: int) -> tuple[list[Part], IntArray]:
    """Components that need a search, heaviest first, and offsets for all other buffers.

    A component whose buffers, one on top of the other, stay within `enough` bytes cannot decide
    the peak: it is stacked. A buffer live throughout its component conflicts with all others; it
    goes to the bottom, for everything below it can be shifted up by its size. What is left may
    fall apart again. Buffers of size 0 get offset 0, pinned buffers keep their pins. A problem
    with constraints stays as it is: what they connect need not be live together.
    """
    if problem.constrained:
        everything = np.arange(len(problem))
        return [Part(problem, everything, 1, 0, everything[:0])], np.zeros(len(problem), np.int64)
    offsets = np.where(problem.pin == FREE, 0, problem.pin)
    parts: list[Part] = []
    pending = [(members, 0, members[:0]) for members in _components(problem)]
    while pending:
        members, base, bottom = pending.pop()
        free = not (problem.pin[members] != FREE).any()
        if free and _stacked_size(problem, members, base) <= enough:
            _stack(problem, members, base, offsets)
            continue
        part = problem.select(members)
        throughout = _throughout(part)
        if throughout.any():
            top = _stack(problem, members[throughout], base, offsets)
            bottom = np.concatenate([bottom, members[throughout]])
            rest = members[~throughout]
            inner = _components(problem.select(rest))
            pending += [(rest[positions], top, bottom) for positions in inner]
        else:
            if problem.capacity is not None:
                part = part.with_capacity(max(problem.capacity - base, 0))
            scaled, unit = divide(part)
            parts.append(Part(scaled, members, unit, base, bottom))
    parts.sort(key=lambda part: -part.base - part.problem.load * part.unit)
    return parts, offsets


def _components(problem: Problem) -> list[IntArray]:
    """Positions of the buffers of each component."""
    component = problem.component
    order = np.argsort(component, kind="stable")
    starts = np.searchsorted(component[order], np.arange(component.max(initial=-1) + 2))
    return [order[i:j] for i, j in pairwise(starts.tolist())]


def _throughout(part: Problem) -> npt.NDArray[np.bool_]:
    """Buffers live throughout the component, if they may go to the bottom.

    Shifting the others up by their size must leave pins and alignments as they are.
    """
    sections = part.sections
    everywhere = (sections.start == 0) & (sections.stop == len(sections))
    # A common multiple above the limit divides no size, nor does the limit in its place.
    multiple = min(part.base_alignment, LIMIT)
    movable = (part.pin == FREE).all() & (part.size % multiple == 0)
    return np.asarray(everywhere & movable, bool)


def _stacked_size(problem: Problem, members: IntArray, base: int) -> int:
    return base + int((problem.size + problem.alignment - 1)[members].sum())


def _stack(problem: Problem, members: IntArray, base: int, offsets: IntArray) -> int:
    """Put buffers one on top of the other; return where the last one ends."""
    top = base
    for i in members.tolist():
        alignment = int(problem.alignment[i])
        offsets[i] = -(-top // alignment) * alignment
        top = int(offsets[i] + problem.size[i])
    return top


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
    solve: Callable[[Part, Budget], Solution], problem: Problem, budget: Budget
) -> Solution:
    """Solve each component apart and put the solutions together.

    Once one component has reached a peak, the others need not be lower.

    Parameters
    ----------
    solve
        Called with each reduced component and its share of the budget.
    problem, budget
        The whole.
    """
    bound, proof = lower_bound(problem).value, None
    parts, offsets = split(problem, max(bound, budget.target))
    enough, stats = budget.target, []
    for part in parts:
        least = lower_bound(part.problem).value
        aim = max((enough - part.base) // part.unit, least)
        solution = solve(part, budget.aimed(aim, part.unit, part.base))
        offsets[part.positions] = part.base + np.asarray(solution.offsets) * part.unit
        enough = max(enough, part.base + solution.peak(part.problem) * part.unit)
        proved = part.base + max(solution.lower_bound or 0, least) * part.unit
        if proved > bound:
            bound, proof = proved, _lift(solution.proof, part, problem)
        stats.append(dict(solution.stats))
    return Solution(offsets, bound, _merge(stats), proof)


def _lift(proof: Proof | None, part: Part, problem: Problem) -> Proof | None:
    """A proof about a component as one about the whole, in bytes."""
    if proof is None:
        return None
    bottom = tuple(problem.ids[i] for i in part.bottom.tolist())
    capacity = part.base + proof.capacity * part.unit
    return replace(proof, bottom=bottom, unit=part.unit, capacity=capacity)


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

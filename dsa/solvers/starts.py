"""Around a model: a plan to start from, when a backend is worth starting, what it must beat.

For the solvers that hand a model of the problem to a backend.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dsa.bounds import lower_bound
from dsa.budget import Budget
from dsa.problem import FREE, IntArray, Problem
from dsa.result import Solution, peak
from dsa.solvers import build
from dsa.solvers.orders import conflicts

__all__ = ["Found", "count_pairs", "equals", "equals_in_order", "improve", "kinds", "members"]

# Solvers whose best plan is where a backend starts, and what it has to beat.
STARTS = {
    "strip-packing": {"restarts": 16, "moves": 0},
    "greedy-by-size": {},
    "greedy-by-breadth": {},
}

LARGEST = 2**53  # up to here, integers are floating-point numbers


@dataclass(frozen=True, slots=True)
class Found:
    """What came back from a backend.

    Parameters
    ----------
    offsets
        Of a valid plan; None if there is none.
    lower_bound
        What it proved no plan can be below; 0 if it proved nothing.
    status
        What the backend said, for people.
    stats
        What else there is to tell.
    """

    offsets: IntArray | None
    lower_bound: int
    status: str
    stats: dict[str, Any] = field(default_factory=dict)


def improve(
    search: Callable[[Problem, IntArray, int, Budget], Found],
    problem: Problem,
    budget: Budget,
    *,
    seconds: float,
    max_pairs: int,
) -> Solution:
    """The best of a few cheap plans, or a better one by a backend, if one is worth starting.

    Parameters
    ----------
    search
        Starts the backend; called with the problem, a plan to start from, the peak that need
        not be undercut, and the budget.
    problem, budget
        As for a solver.
    seconds
        Time limit if the budget has none.
    max_pairs
        Conflicting pairs above which `search` is not called.
    """
    if budget.time_limit is None:
        budget = budget.limited(seconds)
    name, best = _best_start(problem, budget)
    ceiling = peak(problem, best)
    bound = lower_bound(problem).value  # that of a component may be above that of the whole
    floor = max(bound, budget.target)
    pairs = count_pairs(problem)
    stats: dict[str, Any] = {"found_by": name, "pairs": pairs}

    def unsolved(why: str) -> Solution:
        return Solution(best, bound, stats | {"backend_status": f"not started: {why}"})

    if ceiling <= floor:
        return unsolved("the target was met without it")
    if budget.expired():
        return unsolved("the time was up")
    if pairs > max_pairs:
        return unsolved(f"{pairs} conflicting pairs are more than max_pairs={max_pairs}")
    if ceiling > LARGEST:
        return unsolved(f"a peak of {ceiling} is no floating-point number")

    found = search(problem, best, floor, budget)
    stats |= {**found.stats, "backend_status": found.status}
    limit = budget.time_limit
    if limit is not None and budget.seconds() > limit:
        stats["overrun_seconds"] = round(budget.seconds() - limit, 3)
    if found.offsets is not None and peak(problem, found.offsets) < ceiling:
        best = found.offsets
        del stats["found_by"]
        budget.report(peak(problem, best))
    return Solution(best, max(bound, found.lower_bound), stats)


def _best_start(problem: Problem, budget: Budget) -> tuple[str, IntArray]:
    """The lowest plan of `STARTS`, and whose it is."""
    name, lowest = "", None
    for candidate, options in STARTS.items():
        solution = build(candidate, options)(problem, budget)
        if lowest is None or solution.peak(problem) < lowest.peak(problem):
            if lowest is not None:  # the first one has reported for itself
                budget.report(solution.peak(problem))
            name, lowest = candidate, solution
        if budget.done(lowest.peak(problem)):
            break
    assert lowest is not None
    return name, np.array(lowest.offsets, np.int64)


def count_pairs(problem: Problem) -> int:
    """Pairs of buffers that are live together, without a list of them; or of bodies in the way."""
    if problem.constrained:
        return sum(len(problem.bodies.forbidden(i)) for i in range(len(problem.bodies))) // 2
    return int(conflicts(problem).sum()) // 2


def members(problem: Problem) -> list[list[int]]:
    """Positions of the buffers in each section."""
    sections = problem.sections
    live: list[list[int]] = [[] for _ in range(len(sections))]
    for i, (start, stop) in enumerate(zip(sections.start, sections.stop, strict=True)):
        for section in range(start, stop):
            live[section].append(i)
    return live


def kinds(problem: Problem) -> list[tuple[int, ...]]:
    """What buffers have in common that can be exchanged; each pinned one is a kind of its own."""
    sections = problem.sections
    columns = (sections.start, sections.stop, problem.size, problem.alignment)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    free = (problem.pin == FREE).tolist()
    return [row if free[i] else (i,) for i, row in enumerate(rows)]


def equals(problem: Problem) -> list[list[int]]:
    """Positions of the buffers of each kind."""
    alike = defaultdict(list)
    for i, kind in enumerate(kinds(problem)):
        alike[kind].append(i)
    return list(alike.values())


def equals_in_order(problem: Problem, offsets: IntArray) -> IntArray:
    """The same plan, but of equal buffers an earlier one lies lower."""
    offsets = offsets.copy()
    for alike in equals(problem):
        offsets[alike] = np.sort(offsets[alike])
    return offsets

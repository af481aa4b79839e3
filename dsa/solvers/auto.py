"""The default: cheap solvers first, a search only while something is left to gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dsa.budget import Budget, check_seconds
from dsa.kernels.placement import place_below, stack
from dsa.presolve import Part, solve_parts
from dsa.problem import IntArray, Problem
from dsa.result import Solution, kebab, peak
from dsa.solvers import ALL, Solver
from dsa.solvers.exact import Exact
from dsa.solvers.greedy import Greedy, GreedyBySize
from dsa.solvers.linear_scan import LinearScan
from dsa.solvers.orders import order_by
from dsa.solvers.strip_packing import (
    StripPacking,
    above,
    component_peaks,
    lower_by_component,
)

__all__ = ["Auto"]

# What wins where the skyline does not: pipelines, crowds of pins, size before shape.
RIVALS: tuple[Greedy, ...] = (
    LinearScan(),
    GreedyBySize(),
    Greedy(order="conflict-bytes", fit="first"),
)
MANY = 5_000  # buffers: of more only the first, which shows early whether it is in vain


@dataclass(frozen=True)
class Auto(Solver):
    """Run solvers from cheap to dear until the peak meets the bound or the time is up.

    First `strip-packing`, which ends most problems: its peak is the load. In the components whose
    peak is still above the target a few greedy orders follow, if they are not too large; then
    `exact` searches them, each from the plan there is. Of more than 5,000 buffers `linear-scan`
    is next after the first order of `strip-packing`.

    Parameters
    ----------
    seconds
        Time limit if the call has none.

    Notes
    -----
    Complexity: near-linear until the load is reached; then as much as the time limit allows.
    Guarantee: never worse than `strip-packing` without restarts, if there is time for it.
    Ties: as in the solvers it runs. The plan depends on the clock only if the time limit ended
    the search.

    Examples
    --------
    >>> from dsa import plan
    >>> print(plan([(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)]).stats["found_by"])
    strip-packing
    """

    seconds: float = 2.0

    exact: ClassVar[bool] = True
    supports: ClassVar[frozenset[str]] = ALL

    def __post_init__(self) -> None:
        check_seconds("seconds", self.seconds)

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        if budget.time_limit is None:
            budget = budget.limited(self.seconds)
        many = len(problem) > MANY
        passes = StripPacking(restarts=0, moves=0)
        first = StripPacking(passes.orders[:1], mirrored=False, restarts=0, moves=0)
        filled = (first if many else passes)(problem, budget)
        offsets = np.array(filled.offsets)
        stats = {"found_by": "strip-packing", **filled.stats}
        if budget.done(peak(problem, offsets)):
            return Solution(offsets, stats=stats)

        if many:
            stats["found_by"] = _rivals(problem, budget, offsets, RIVALS[:1]) or "strip-packing"
            reached = peak(problem, offsets)
            filled = passes.improve(problem, budget, offsets)
            offsets = np.array(filled.offsets)
            stats["passes"] += filled.stats["passes"]
            if peak(problem, offsets) < reached:
                stats["found_by"] = "strip-packing"
            if budget.done(peak(problem, offsets)):  # late, to set up a search takes longer still
                return Solution(offsets, stats=stats)

        if len(above(problem, offsets, budget.target)) <= MANY:
            stats["found_by"] = _rivals(problem, budget, offsets, RIVALS) or stats["found_by"]
        reached = peak(problem, offsets)
        rest = above(problem, offsets, budget.target)
        part, known = problem.select(rest), offsets[rest]

        def search(part: Part, share: Budget) -> Solution:
            start = stack(part.problem, known[part.positions])
            return Exact().improve(part.problem, share, start)

        found = solve_parts(search, part, budget)
        offsets[rest] = found.offsets
        if peak(problem, offsets) < reached:
            stats["found_by"] = "exact"
        return Solution(offsets, found.lower_bound, dict(found.stats) | stats)


def _rivals(problem: Problem, budget: Budget, offsets: IntArray, rivals: tuple[Greedy, ...]) -> str:
    """Put into the offsets what is better in some component; whose was last to lower the peak."""
    rest = above(problem, offsets, budget.target)
    part, best, name = problem.select(rest), offsets[rest], ""
    for rival in rivals:
        if budget.done(peak(part, best)):
            break
        order, ceilings = order_by(part, rival.order), component_peaks(part, best)
        found = place_below(part, order, rival.fit, budget, ceilings)
        if found is None:
            continue
        better = lower_by_component(part, best, found)
        if peak(part, better) < peak(part, best):
            budget.report(peak(part, better))
            name = kebab(type(rival).__name__)
        best = better
    offsets[rest] = best
    return name

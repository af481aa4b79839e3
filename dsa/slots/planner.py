"""The one call for slots: read, solve, validate, and say what is proven."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from dsa.bounds import Bound
from dsa.budget import Budget
from dsa.errors import (
    CapacityError,
    InfeasibleError,
    SolverError,
    UnknownSolverError,
    UnsupportedError,
)
from dsa.problem import Intervals, Problem
from dsa.slots.greedy import GreedyByBreadth, GreedyBySize
from dsa.slots.maxima import positional_maxima
from dsa.slots.mip import Mip
from dsa.slots.result import POSITIONAL, SlotPlan, SlotSolution
from dsa.slots.validation import validate_slots
from dsa.units import format_size

__all__ = ["SOLVERS", "plan_slots"]

SOLVERS: dict[str, Callable[..., Any]] = {
    "greedy-by-size": GreedyBySize,
    "greedy-by-breadth": GreedyByBreadth,
    "mip": Mip,
}


def plan_slots(
    intervals: Intervals,
    solver: str | Callable[[Problem, Budget], SlotSolution] = "greedy-by-size",
    *,
    capacity: int | None = None,
    alignment: int = 1,
    time_limit: float | None = None,
    **options: Any,
) -> SlotPlan:
    """Give every buffer a slot, so that no two live buffers share one and the total is low.

    Parameters
    ----------
    intervals
        Buffers, as for `dsa.plan`. Lifetimes are half-open.
    solver
        ``"greedy-by-size"``, ``"greedy-by-breadth"``, ``"mip"``, or a configured solver object.
    capacity
        Bytes available for all slots together.
    alignment
        Of every buffer, besides its own. A slot is aligned for all of its tenants; sizes stay as
        they are, and the total has no padding, for slots need not lie side by side.
    time_limit
        Seconds of wall time after which `mip` returns the best it has.
    **options
        Options of the solver, if it is given by name.

    Returns
    -------
    SlotPlan
        Validated. Its status is ``"optimal"`` only if its total equals its lower bound.

    Raises
    ------
    InvalidProblemError
        If the buffers are no problem; names buffer, field and value.
    UnsupportedError
        For pins, holes and all else that offsets can honour and slots cannot.
    InfeasibleError
        If it is proven that no slots fit into the capacity.
    CapacityError
        If none were found that do; carries the best as a plan with offsets.
    UnknownSolverError, SolverUnavailableError
        If the solver does not exist, or its backend does not work.
    TypeError
        For an option that the solver does not have.

    Notes
    -----
    To find the fewest bytes in slots is NP-hard; it is known as max-colouring of interval graphs
    (Pemmaraju, Raman and Varadarajan, *Buffer minimization using max-coloring*, 2004).

    Examples
    --------
    >>> p = plan_slots([(0, 2, 96), (1, 3, 72), (2, 4, 48)])
    >>> print(p)
    3 buffers in 2 slots, total 168 B, lower bound 168 B: optimal (greedy-by-size)
    >>> p.slots
    (0, 1, 0)
    """
    budget = Budget(time_limit=time_limit)
    problem = Problem(intervals, capacity=capacity, alignment=alignment)
    configured = _build(solver, options)
    _refuse_features(problem)
    bound = Bound(sum(positional_maxima(problem)), POSITIONAL)
    _refuse_infeasible(problem, bound)

    budget = budget.aimed(bound.value)
    solution = _solve(configured, problem, budget)
    if solution.lower_bound is not None and solution.lower_bound > bound.value:
        bound = Bound(solution.lower_bound, "search")
    slots = _checked(configured, problem, solution)
    plan = SlotPlan(problem, slots, bound, repr(configured), budget.seconds(), solution.stats)
    if plan.total < bound.value:
        raise SolverError(
            f"{configured!r} claims that no total is below {bound.value} B, but returned slots of "
            f"{plan.total} B; this is a bug of the solver"
        )
    _refuse_infeasible(problem, bound)
    if problem.capacity is not None and plan.total > problem.capacity:
        raise CapacityError(
            f"no slots found that fit into {format_size(problem.capacity)}: the best have "
            f"{plan.total} B, {plan.total - problem.capacity} B over, and the lower bound is "
            f"{bound.value} B, so there may be some; try the solver 'mip' or a longer time limit",
            plan=plan.as_plan(),
            capacity=problem.capacity,
        )
    return plan


def _build(solver: str | Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    if not isinstance(solver, str):
        if isinstance(solver, type) or not callable(solver):
            raise TypeError(f"expected a solver's name or a configured solver, got {solver!r}")
        if options:
            raise TypeError(f"options {', '.join(options)} beside a configured solver")
        return solver
    name = solver.replace("_", "-").lower()
    if name not in SOLVERS:
        near = difflib.get_close_matches(name, SOLVERS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(SOLVERS)}"
        raise UnknownSolverError(f"no solver of slots is named {solver!r}; {hint}")
    built: Callable[..., Any] = SOLVERS[name](**options)
    return built


def _refuse_features(problem: Problem) -> None:
    lacking = problem.features - {"alignment"}
    if lacking:
        raise UnsupportedError(
            f"slots cannot honour {', '.join(sorted(lacking))}: a slot holds one buffer at a time "
            "and has no offsets within; use dsa.plan"
        )


def _refuse_infeasible(problem: Problem, bound: Bound) -> None:
    capacity = problem.capacity
    if capacity is None or bound.value <= capacity:
        return
    raise InfeasibleError(
        f"no slots fit into {format_size(capacity)}: they need {bound.value} B, "
        f"{bound.value - capacity} B more, because of the {bound}",
        capacity=capacity,
        lower_bound=bound.value,
        kind=bound.kind,
    )


def _solve(
    solver: Callable[[Problem, Budget], SlotSolution], problem: Problem, budget: Budget
) -> SlotSolution:
    if not (problem.size > 0).any():
        return SlotSolution([0] * len(problem))
    return solver(problem, budget)


def _checked(
    solver: Callable[..., Any], problem: Problem, solution: SlotSolution
) -> tuple[int, ...]:
    """The solver's slots, numbered without gaps in its order, if they hold."""
    violations = validate_slots(solution.slots, problem.with_capacity(None))
    if violations:
        raise SolverError(
            f"{solver!r} returned slots that break {len(violations)} rules, the first is "
            f"{violations[0]}; this is a bug of the solver"
        )
    solid = [slot for slot, size in zip(solution.slots, problem.size.tolist(), strict=True) if size]
    number = {slot: n for n, slot in enumerate(sorted(set(solid)))}
    return tuple(number.get(slot, 0) for slot in solution.slots)

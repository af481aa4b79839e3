"""The one call: read, solve, validate, and say what is proven."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from dsa.bounds import Bound, lower_bound
from dsa.budget import Budget, Progress
from dsa.constraints import Constraints
from dsa.errors import CapacityError, InfeasibleError, SolverError
from dsa.gate import as_natural
from dsa.kernels.placement import place
from dsa.presolve import solve_parts
from dsa.problem import Intervals, Problem
from dsa.proof import Proof
from dsa.result import Plan, Solution
from dsa.solvers import Solver, build, check
from dsa.units import format_size
from dsa.validation import validate

__all__ = ["plan"]


def plan(
    intervals: Intervals,
    solver: str | Solver = "auto",
    *,
    capacity: int | None = None,
    alignment: int = 1,
    constraints: Constraints | None = None,
    time_limit: float | None = None,
    target: int | None = None,
    hint: Plan | Mapping[Any, int] | None = None,
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Plan:
    """Give every buffer an offset, so that no two live buffers overlap and the peak is low.

    Parameters
    ----------
    intervals
        Buffers: `Buffer` objects, ``(lower, upper, size)`` tuples, objects with those
        attributes, an integer array of shape (n, 3), or a `Problem`. Lifetimes are half-open.
    solver
        A name (`dsa.solvers.names()` lists them) or a configured solver object.
    capacity
        Bytes available: a constraint. The peak is minimised all the same.
    alignment
        Every offset is a multiple of this, besides its buffer's own alignment.
    constraints
        What holds between buffers, and which addresses are not to be used: see `Constraints`.
    time_limit
        Seconds of wall time after which a solver returns the best plan it has; None leaves it
        to the solver. A first plan is made whatever the limit: by solvers of one pass (`greedy`,
        `best-fit`, `linear-scan`, `naive`) it is never cut short.
    target
        Peak that is good enough; the lower bound if None.
    hint
        An earlier plan, or offsets by id: of plans that are as low, one that keeps many of these
        offsets. Ids that the problem does not have are ignored; ``stats["kept"]`` counts the
        buffers kept.
    progress
        Called with a `Progress` whenever a solver has a better plan.
    **options
        Options of the solver, if it is given by name.

    Returns
    -------
    Plan
        Validated. Its status is ``"optimal"`` only if its peak equals its lower bound.

    Raises
    ------
    InvalidProblemError
        If the buffers are no problem; names buffer, field and value.
    InfeasibleError
        If it is proven that no plan fits into the capacity.
    CapacityError
        If the solver found none that does, which proves nothing; carries the best plan.
    UnknownSolverError, SolverUnavailableError, UnsupportedError
        If the solver does not exist, is not installed, or cannot honour the problem.
    TypeError
        For an option that the solver does not have.

    Notes
    -----
    The same input gives the same plan, except where a time limit ends a search.

    Examples
    --------
    >>> p = plan([(0, 3, 4), (3, 9, 4), (0, 9, 4), (9, 21, 4), (0, 21, 4)])
    >>> p.peak, p.status
    (12, 'optimal')
    >>> plan([(0, 2, 60), (1, 3, 50)], capacity=100)
    Traceback (most recent call last):
    dsa.errors.InfeasibleError: no plan fits into 100 B: every plan needs 110 B, 10 B more, \
because of the load at step 1 (2 buffers)
    """
    budget = Budget(time_limit=time_limit, progress=progress)
    problem = Problem(intervals, capacity=capacity, alignment=alignment, constraints=constraints)
    configured = build(solver, options)
    check(configured, problem)
    bound = lower_bound(problem)
    _refuse_infeasible(problem, bound)

    wanted = 0 if target is None else as_natural(target, "target")
    room = problem.room
    if room is not None:
        wanted = min(wanted, room)  # what does not fit is not good enough
    budget = replace(budget, target=max(wanted, bound.value))
    solution = _solve(configured, problem.with_capacity(room), budget)
    if hint is not None:
        solution = _follow(problem, solution, hint, budget)
    if solution.lower_bound is not None and solution.lower_bound > bound.value:
        bound = Bound(solution.lower_bound, "search")
    result = Plan(
        problem,
        _checked(configured, problem, bound, solution),
        bound,
        repr(configured),
        budget.seconds(),
        solution.stats,
        solution.proof if bound.kind == "search" else None,
    )
    _refuse_infeasible(problem, bound, result.proof)
    if room is not None and result.peak > room:
        raise CapacityError(
            f"no plan found that fits into {_room(problem)}: the best has peak {result.peak} B, "
            f"{result.peak - room} B over; {problem.load} B of it are live at once, the rest is "
            f"fragmentation. The lower bound is {bound.value} B, so one may exist: try an exact "
            "solver or a longer time limit",
            plan=result,
            capacity=room,
        )
    return result


def _follow(
    problem: Problem,
    solution: Solution,
    hint: Plan | Mapping[Any, int],
    budget: Budget,
) -> Solution:
    """The solution, or one no higher that is nearer to an earlier plan."""
    from dsa.solvers.hints import follow, kept, read_hint

    if isinstance(hint, Plan):
        hint = dict(zip(hint.problem.ids, hint.offsets, strict=True))
    if not isinstance(hint, Mapping):
        raise TypeError(f"hint must be a Plan or a mapping from id to offset, got {hint!r}")
    wishes = read_hint(problem, hint)
    offsets = np.asarray(solution.offsets, np.int64)
    if not validate(offsets, problem.with_capacity(None)):  # otherwise the solver is to blame
        offsets = follow(problem, offsets, wishes, budget)
    stats = {**solution.stats, "kept": kept(problem, offsets, wishes)}
    return replace(solution, offsets=offsets, stats=stats)


def _solve(solver: Solver, problem: Problem, budget: Budget) -> Solution:
    if not (problem.size > 0).any():
        return Solution(place(problem, np.arange(len(problem))))
    if solver.searches:
        return solve_parts(lambda part, share: solver(part.problem, share), problem, budget)
    return solver(problem, budget)


def _checked(
    solver: Solver, problem: Problem, bound: Bound, solution: Solution
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The solver's offsets, if they are a plan and its claims agree with it."""
    try:
        violations = validate(solution.offsets, problem.with_capacity(None))
    except TypeError as error:
        raise SolverError(
            f"{solver!r} returned no offsets: {error}; this is a bug of the solver"
        ) from error
    if violations:
        raise SolverError(
            f"{solver!r} returned an invalid plan: {len(violations)} violations, the first is "
            f"{violations[0]}; this is a bug of the solver"
        )
    if solution.peak(problem) < bound.value:
        raise SolverError(
            f"{solver!r} claims that no plan is below {bound.value} B, but returned one with peak "
            f"{solution.peak(problem)} B; this is a bug of the solver"
        )
    return np.asarray(solution.offsets, np.int64)


def _refuse_infeasible(problem: Problem, bound: Bound, proof: Proof | None = None) -> None:
    room = problem.room
    if room is None or bound.value <= room:
        return
    why = f"because of the {bound}"
    if bound.kind == "search":
        why = (
            f"because a search refuted all below ({problem.load} B are live at once, the rest is "
            "fragmentation)"
        )
    raise InfeasibleError(
        f"no plan fits into {_room(problem)}: every plan needs {bound.value} B, "
        f"{bound.value - room} B more, {why}",
        capacity=room,
        lower_bound=bound.value,
        kind=bound.kind,
        step=bound.step,
        ids=bound.ids if proof is None else (*proof.bottom, *proof.ids),
        proof=proof,
    )


def _room(problem: Problem) -> str:
    """``100 B``, or ``36 B (100 B less 64 B of tail padding)``."""
    assert problem.capacity is not None
    assert problem.room is not None
    padding = problem.constraints.tail_padding
    less = f" ({format_size(problem.capacity)} less {padding} B of tail padding)"
    return format_size(problem.room) + (less if padding else "")

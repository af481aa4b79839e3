"""Stay near an earlier plan: as many buffers as possible where they were, at no cost in peak."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from dsa.budget import Budget
from dsa.errors import InvalidProblemError
from dsa.gate import LIMIT, as_integer
from dsa.kernels.placement import place
from dsa.problem import FREE, IntArray, Problem
from dsa.result import peak
from dsa.validation import validate

__all__ = ["follow", "kept", "read_hint"]

ROUNDS = 64  # to take back what was let go


def read_hint(problem: Problem, hint: Mapping[Any, Any]) -> IntArray:
    """Offsets wished for, in the order of the buffers; -1 for those that are not in the mapping.

    Raises
    ------
    InvalidProblemError
        For a wish that is no offset; None is no wish.
    """
    wishes = np.full(len(problem), FREE, np.int64)
    for i, id in enumerate(problem.ids):
        offset = hint.get(id)
        if offset is None:
            continue
        try:
            wishes[i] = as_integer(offset)
        except (TypeError, OverflowError):
            wishes[i] = FREE
        if not 0 <= wishes[i] < LIMIT:
            raise InvalidProblemError(
                f"hint: buffer {id!r} cannot be wished at {offset!r}: an offset is an integer, "
                "at least 0",
                id=id,
                field="hint",
                value=offset,
            )
    return wishes


def kept(problem: Problem, offsets: IntArray, hint: IntArray) -> int:
    """Buffers that have a size and lie where the hint has them."""
    return int(((offsets == hint) & (problem.size > 0)).sum())


def follow(problem: Problem, offsets: IntArray, hint: IntArray, budget: Budget) -> IntArray:
    """A plan no higher than this one, with as many buffers as possible where the hint has them.

    All that can stay are pinned there, and the rest is placed around them, the largest first.
    While that needs more than the peak there is, those in the way of what is too high are let go,
    ever more of them. Then they are taken back, by halves, as long as the rest still fits. At
    last whatever has its place free goes back to it.

    Parameters
    ----------
    problem
        What is planned.
    offsets
        Of a valid plan: how high a plan may be.
    hint
        Offsets wished for; -1 where there is no wish.
    budget
        Its time limit ends the search for better.

    Notes
    -----
    Complexity: at most about a hundred greedy placements.
    Guarantee: valid, not higher, and no fewer buffers in their places. The most that could stay
    is not promised: which buffers to let go is a guess.
    Ties: none; the same for the same input, unless a time limit ends it.

    Examples
    --------
    >>> problem = Problem([(0, 2, 4), (1, 3, 4), (2, 4, 4)])
    >>> follow(problem, np.array([0, 4, 0]), np.array([4, 0, -1]), Budget()).tolist()
    [4, 0, 4]
    """
    ceiling = peak(problem, offsets)
    stay, few = _compatible(problem, hint, ceiling), 1
    gone: list[IntArray] = []
    planned = _around(problem, hint, stay)
    while len(stay) and peak(problem, planned) > ceiling and not budget.expired():
        gone.append(_in_the_way(problem, planned, stay, ceiling, few))
        stay, few = np.setdiff1d(stay, gone[-1]), 2 * few
        planned = _around(problem, hint, stay)
    if peak(problem, planned) > ceiling:
        return _back(problem, offsets, hint)
    pending = gone[::-1]
    for _ in range(ROUNDS):
        if not pending or budget.expired():
            break
        again = np.union1d(stay, some := pending.pop())
        tried = _around(problem, hint, again)
        if peak(problem, tried) <= ceiling:
            stay, planned = again, tried
        elif len(some) > 1:
            pending += [some[len(some) // 2 :], some[: len(some) // 2]]
    plans = (_back(problem, plan, hint) for plan in (planned, offsets))
    return max(plans, key=lambda plan: kept(problem, plan, hint))


def _compatible(problem: Problem, hint: IntArray, ceiling: int) -> IntArray:
    """Positions whose wishes break no rule, alone or together; who breaks most goes first."""
    stay = np.flatnonzero((hint != FREE) & (problem.size > 0) & (problem.pin == FREE))
    fixed = np.flatnonzero(problem.pin != FREE)
    wished = np.where(problem.pin == FREE, hint, problem.pin)
    while True:
        chosen = np.union1d(stay, fixed)
        part = problem.select(chosen)
        broken = Counter(
            id
            for violation in validate(wished[chosen], part, capacity=ceiling)
            for id in violation.ids
            if problem.pin[problem.index(id)] == FREE
        )
        if not broken:
            return stay
        # A quarter of them at once, so that a hint from another world is given up soon.
        worst = [id for id, _ in broken.most_common(max(len(broken) // 4, 1))]
        stay = np.setdiff1d(stay, [problem.index(id) for id in worst])


def _around(problem: Problem, hint: IntArray, stay: IntArray) -> IntArray:
    """All others placed around those that are pinned where they are wished."""
    pinned = problem.columns()
    pinned["offset"] = problem.pin.copy()
    pinned["offset"][stay] = hint[stay]
    try:
        fixed = Problem.from_columns(**pinned, constraints=problem.constraints)
    except InvalidProblemError:  # what lies at a fixed distance from one of them cannot be there
        return np.full(len(problem), LIMIT // 2, np.int64)
    return place(fixed, np.argsort(-fixed.size, kind="stable"), "best")


def _in_the_way(
    problem: Problem, offsets: IntArray, stay: IntArray, ceiling: int, few: int
) -> IntArray:
    """Of those that stayed, the highest few that each buffer which is too high meets."""
    over = np.flatnonzero((offsets + problem.size > ceiling) & (problem.size > 0))
    way = [stay[:0]]
    for i in over.tolist():
        meets = (problem.lower[stay] < problem.upper[i]) & (problem.upper[stay] > problem.lower[i])
        near = stay[meets]
        way.append(near[np.argsort(-offsets[near], kind="stable")][:few])
    found = np.unique(np.concatenate(way))
    return found if len(found) else stay[-few:]


def _back(problem: Problem, offsets: IntArray, hint: IntArray) -> IntArray:
    """Each buffer to where it is wished, if nothing is in its way there and it was not higher."""
    if problem.constrained:
        return offsets
    result, ceiling = offsets.copy(), peak(problem, offsets)
    lower, upper, size, alignment = problem.lower, problem.upper, problem.size, problem.alignment
    wishes = (hint != FREE) & (hint != offsets) & (size > 0) & (problem.pin == FREE)
    wishes &= (hint % alignment == 0) & (hint + size <= ceiling)
    for i in np.flatnonzero(wishes).tolist():
        at = int(hint[i])
        meets = (lower < upper[i]) & (upper > lower[i]) & (size > 0)
        meets &= (result < at + size[i]) & (result + size > at)
        meets[i] = False
        if not meets.any():
            result[i] = at
    return result

"""Several graphs in one arena: buffers that they share lie at the same offset in all plans."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from dsa.bounds import lower_bound
from dsa.constraints import PAIRED, Constraints
from dsa.errors import InvalidProblemError
from dsa.planner import plan
from dsa.problem import Intervals, Problem
from dsa.result import Plan
from dsa.solvers import Solver

__all__ = ["plan_jointly"]


def plan_jointly(
    problems: Iterable[Intervals],
    shared: Iterable[Hashable],
    solver: str | Solver = "auto",
    **options: Any,
) -> tuple[Plan, ...]:
    """Plan problems that run one after another in one arena.

    Parameters
    ----------
    problems
        The buffers of each graph, as for `plan`.
    shared
        Ids of buffers that lie at the same offset in each problem that has them: state that
        several entry points use. In between they keep their bytes only if each problem has them
        as long as it runs.
    solver, options
        As for `plan`; a capacity is that of the arena. Ids in a hint, and in errors, are
        ``(number of the problem, id)``.

    Returns
    -------
    tuple of Plan
        One for each problem, each with the bound of its own. The arena is as large as the
        highest of them; ``stats["joint_peak"]`` is that.

    Raises
    ------
    InvalidProblemError
        If no problem has a shared buffer, if what two problems say of the arena differs (capacity,
        chunk, reserved bytes, tail padding), or if shared buffers cannot be where each needs them.

    Notes
    -----
    The graphs become one problem, one after another in time, whose shared buffers are at
    distance 0.

    Examples
    --------
    >>> from dsa import Buffer
    >>> prefill = [Buffer(0, 3, 64, id="cache"), Buffer(0, 2, 32, id="x")]
    >>> decode = [Buffer(0, 2, 48, id="y"), Buffer(0, 2, 64, id="cache")]
    >>> first, second = plan_jointly([prefill, decode], shared=["cache"])
    >>> first["cache"] == second["cache"], max(first.peak, second.peak)
    (True, 112)
    """
    parts = [Problem(intervals) for intervals in problems]
    together = plan(_join(parts, tuple(shared)), solver, **options)
    plans, begin = [], 0
    for part in parts:
        offsets = together.offsets_array[begin : begin + len(part)]
        begin += len(part)
        stats = {**together.stats, "joint_peak": together.peak}
        bound = lower_bound(part)
        plans.append(Plan(part, offsets, bound, together.solver, together.seconds, stats))
    return tuple(plans)


def _join(parts: list[Problem], shared: tuple[Hashable, ...]) -> Problem:
    """One problem with ids ``(number of the graph, id)``, each graph after the one before."""
    places = {id: [k for k, part in enumerate(parts) if id in set(part.ids)] for id in shared}
    for id, where in places.items():
        if not where:
            raise InvalidProblemError(
                f"shared: no problem has a buffer {id!r}", id=id, field="shared", value=id
            )
    arena = {"capacity": [part.capacity for part in parts]}
    for field in ("chunk", "reserved", "tail_padding"):
        arena[field] = [getattr(part.constraints, field) for part in parts]
    for field, values in arena.items():
        if len(set(values)) > 1:
            raise InvalidProblemError(
                f"problems that share an arena must have the same {field}, not "
                f"{' and '.join(map(str, sorted(set(values), key=str)))}",
                field=field,
            )
    rows: dict[str, Any] = {
        field: [row for k, part in enumerate(parts) for row in _rules(k, part, field)]
        for field in PAIRED
    }
    rows["relative"] += [
        ((where[0], id), (k, id), 0) for id, where in places.items() for k in where[1:]
    ]
    rows |= {field: values[0] for field, values in arena.items() if values}
    capacity = rows.pop("capacity", None)
    ids = [(k, id) for k, part in enumerate(parts) for id in part.ids]
    rules = Constraints(**rows)
    return Problem.from_columns(**_columns(parts), ids=ids, capacity=capacity, constraints=rules)


def _rules(k: int, part: Problem, field: str) -> list[tuple[Any, ...]]:
    """The rows of one constraint of a problem, with the ids of the whole."""
    return [((k, a), (k, b), *rest) for a, b, *rest in getattr(part.constraints, field)]


def _columns(parts: list[Problem]) -> dict[str, Any]:
    """Columns of all problems, their events numbered so that one begins where the last has ended.

    Numbers, as the steps of all problems together may be too many.
    """
    columns: dict[str, list[Any]] = {
        name: [] for name in ("lower", "upper", "size", "alignment", "offset", "holes")
    }
    step = position = 0
    for part in parts:
        events = np.unique(np.concatenate([part.lower, part.upper, *part.holes.T[1:3]]))
        moved, holes = part.columns(), part.holes.copy()
        for name in ("lower", "upper"):
            moved[name] = np.searchsorted(events, moved[name]) + step
        holes[:, 0] += position
        holes[:, 1:3] = np.searchsorted(events, holes[:, 1:3]) + step
        for name in columns:
            columns[name].append(holes if name == "holes" else moved[name])
        step += len(events)
        position += len(part)
    if not parts:
        return {"lower": [], "upper": [], "size": []}
    return {name: np.concatenate(values) for name, values in columns.items()}

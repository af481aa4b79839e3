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
        As for `plan`; a capacity is that of the arena.

    Returns
    -------
    tuple of Plan
        One for each problem, each with the bound of its own. The arena is as large as the
        highest of them; ``stats["joint_peak"]`` is that.

    Raises
    ------
    InvalidProblemError
        If no problem has a shared buffer, or the chunks or reserved bytes of two problems differ.

    Notes
    -----
    The graphs become one problem, one after another in time, whose shared buffers are aliases.

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
    for field in ("chunk", "reserved"):
        values = {getattr(part.constraints, field) for part in parts}
        if len(values) > 1:
            raise InvalidProblemError(
                f"problems that share an arena must have the same {field}, not "
                f"{' and '.join(map(str, sorted(values, key=str)))}",
                field=field,
            )
    rows: dict[str, Any] = {
        field: [row for k, part in enumerate(parts) for row in _rules(k, part, field)]
        for field in PAIRED
    }
    rows["aliases"] += [
        ((where[0], id), (k, id)) for id, where in places.items() for k in where[1:]
    ]
    rules = Constraints(
        **rows,
        reserved=parts[0].constraints.reserved if parts else (),
        chunk=parts[0].constraints.chunk if parts else None,
    )
    columns = _columns(parts)
    ids = [(k, id) for k, part in enumerate(parts) for id in part.ids]
    return Problem.from_columns(**columns, ids=ids, constraints=rules)


def _rules(k: int, part: Problem, field: str) -> list[tuple[Any, ...]]:
    """The rows of one constraint of a problem, with the ids of the whole."""
    return [((k, a), (k, b), *rest) for a, b, *rest in getattr(part.constraints, field)]


def _columns(parts: list[Problem]) -> dict[str, Any]:
    """Columns of all problems, their steps moved so that one begins where the last has ended."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("lower", "upper", "size", "alignment", "offset", "holes")
    }
    step = position = 0
    for part in parts:
        shift = step - int(part.lower.min(initial=0))
        moved = part.columns() | {"lower": part.lower + shift, "upper": part.upper + shift}
        holes = part.holes + np.array([position, shift, shift, 0, 0])
        for name in columns:
            columns[name].append(holes if name == "holes" else moved[name])
        step = int(moved["upper"].max(initial=step))
        position += len(part)
    if not parts:
        return {"lower": [], "upper": [], "size": []}
    return {name: np.concatenate(values) for name, values in columns.items()}

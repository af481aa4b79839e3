"""What would make a problem fit into a capacity: single changes that are known to work."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dsa.bounds import lower_bound
from dsa.constraints import Constraints
from dsa.errors import CapacityError, InfeasibleError, InvalidProblemError
from dsa.explain import explain_infeasible
from dsa.planner import plan
from dsa.problem import Intervals, Problem
from dsa.units import format_size

__all__ = ["Remedy", "remedies"]


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change after which a plan fits.

    Parameters
    ----------
    change
        ``"drop"``: leave the buffer out, or spill it to another pool. ``"shrink"``: make it
        smaller. ``"end"``, ``"begin"``: end its lifetime sooner, begin it later.
    id
        The buffer.
    value
        Its new size, `upper` or `lower`; None if it is dropped.
    peak
        Of a plan that fits, after the change.

    Examples
    --------
    >>> print(Remedy("shrink", "a", 48, peak=96))
    shrink buffer 'a' to 48 B (peak 96 B)
    """

    change: str
    id: Hashable
    value: int | None
    peak: int

    def __str__(self) -> str:
        what = {
            "drop": f"drop or spill buffer {self.id!r}",
            "shrink": f"shrink buffer {self.id!r} to {self.value} B",
            "end": f"end buffer {self.id!r} at step {self.value}",
            "begin": f"begin buffer {self.id!r} at step {self.value}",
        }
        return f"{what[self.change]} (peak {format_size(self.peak)})"


def remedies(
    intervals: Intervals,
    capacity: int,
    *,
    alignment: int = 1,
    constraints: Constraints | None = None,
    nodes: int = 5_000,
) -> tuple[Remedy, ...]:
    """Single changes after which a plan is known that fits into the capacity.

    Parameters
    ----------
    intervals, capacity, alignment, constraints, nodes
        As for `dsa.explain_infeasible`.

    Returns
    -------
    tuple of Remedy
        Buffer by buffer, in the order of the problem. There may be others that `nodes` do not
        suffice to find; empty if no single change is known to be enough.

    Raises
    ------
    InvalidProblemError, CapacityError
        As `dsa.explain_infeasible`: if a plan fits, or it is not known that none does.

    Notes
    -----
    A change that helps must touch the buffers which do not fit by themselves, so only those of
    `dsa.explain_infeasible` are tried: each is dropped, shrunk by what is missing to the lower
    bound, and made to end before, or to begin after, another of them.

    Examples
    --------
    >>> for remedy in remedies([(0, 4, 60), (2, 6, 50), (3, 5, 8)], 100):
    ...     print(remedy)
    drop or spill buffer 0 (peak 58 B)
    shrink buffer 0 to 42 B (peak 100 B)
    end buffer 0 at step 2 (peak 60 B)
    drop or spill buffer 1 (peak 68 B)
    shrink buffer 1 to 32 B (peak 100 B)
    begin buffer 1 at step 4 (peak 68 B)
    """
    problem = Problem(intervals, alignment=alignment, constraints=constraints)
    stuck = [problem.index(id) for id in explain_infeasible(problem, capacity, nodes=nodes).ids]
    known = []
    for i in stuck:
        for change, choices in _changes(problem, i, stuck, capacity):
            for value in choices:  # the smallest change first
                peak = _peak(problem, i, change, value, capacity, nodes)
                if peak is not None:
                    known.append(Remedy(change, problem.ids[i], value, peak))
                    break
    return tuple(known)


def _changes(
    problem: Problem, i: int, stuck: list[int], capacity: int
) -> Iterator[tuple[str, Sequence[int | None]]]:
    """Kinds of change of a buffer and the values to try, the least change first."""
    yield "drop", [None]
    missing = lower_bound(problem).value + problem.constraints.tail_padding - capacity
    yield "shrink", [int(problem.size[i]) - missing] if 0 < missing < problem.size[i] else []
    lower, upper = int(problem.lower[i]), int(problem.upper[i])
    others = [j for j in stuck if j != i]
    ends = {int(problem.lower[j]) for j in others}
    begins = {int(problem.upper[j]) for j in others}
    yield "end", sorted((step for step in ends if lower < step < upper), reverse=True)
    yield "begin", sorted(step for step in begins if lower < step < upper)


def _peak(
    problem: Problem, i: int, change: str, value: int | None, capacity: int, nodes: int
) -> int | None:
    """Peak of a plan that fits after the change; None if none is known."""
    column = {"shrink": "size", "end": "upper", "begin": "lower"}.get(change)
    try:
        if column is None or value is None:
            changed = problem.select(np.delete(np.arange(len(problem)), i))
        else:
            columns = problem.columns()
            columns[column] = columns[column].copy()
            columns[column][i] = value
            changed = Problem.from_columns(**columns, constraints=problem.constraints)
        return plan(changed, "exact", capacity=capacity, target=capacity, nodes=nodes).peak
    except (InfeasibleError, CapacityError, InvalidProblemError):
        return None  # the last: a hole or a constraint rules the change out

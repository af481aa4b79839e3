"""Why a capacity is too small: few buffers that do not fit into it by themselves."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

import numpy as np

from dsa.constraints import Constraints
from dsa.errors import CapacityError, InfeasibleError, InvalidProblemError
from dsa.gate import as_natural
from dsa.planner import plan
from dsa.problem import Intervals, Problem
from dsa.proof import Proof
from dsa.units import format_size

__all__ = ["Explanation", "explain_infeasible"]


@dataclass(frozen=True)
class Explanation:
    """Buffers that do not fit into a capacity, however they are planned.

    Parameters
    ----------
    ids
        Ids of the buffers, in the order of the problem.
    capacity
        Bytes into which they do not fit.
    lower_bound
        Bytes that a plan of these buffers needs, at least.
    kind
        ``"load"``: they are live at one step. ``"search"``: a search found no plan of them.
        Also the other kinds of a `dsa.bounds.Bound`.
    step
        A step at which all of them are live, or None.
    irreducible
        Whether each of them is needed: a plan of all others fits. False if the search could
        not tell that of some.
    proof
        For ``"search"``: what `dsa.proof.check` accepts for these buffers; None if the search for
        it was too long, or constraints are between them.
    tail_padding
        Bytes of the capacity that buffers may not use.
    """

    ids: tuple[Hashable, ...]
    capacity: int
    lower_bound: int
    kind: str
    step: int | None = None
    irreducible: bool = True
    proof: Proof | None = None
    tail_padding: int = 0

    def __str__(self) -> str:
        one = len(self.ids) == 1
        count = "1 buffer does" if one else f"{len(self.ids)} buffers do"
        need = "it needs" if one else "they need"
        when = "" if self.step is None else f" at step {self.step}"
        padding = f" and {self.tail_padding} B of tail padding" if self.tail_padding else ""
        none = ", none of which can be spared" if self.irreducible and not one else ""
        return (
            f"{count} not fit into {format_size(self.capacity)}{none}; {need} "
            f"{self.lower_bound} B{padding} ({self.kind}{when})"
        )


def explain_infeasible(
    intervals: Intervals,
    capacity: int,
    *,
    alignment: int = 1,
    constraints: Constraints | None = None,
    nodes: int = 5_000,
) -> Explanation:
    """Find few buffers that cannot fit into a capacity, none of which can be spared.

    Parameters
    ----------
    intervals
        The buffers, as for `plan`.
    capacity
        Bytes that are too few.
    alignment, constraints
        As for `plan`.
    nodes
        Most nodes to search for each question whether some of the buffers fit.

    Raises
    ------
    InvalidProblemError
        If a plan fits into the capacity.
    CapacityError
        If the search found none, but could not prove that there is none.

    Notes
    -----
    If the load is above the capacity: the fewest buffers live at one step that are too large
    together; of several steps the first. Otherwise a deletion filter: leave out parts of the
    buffers, halves first, single buffers last, as long as the rest is proven not to fit. What
    is left depends on the order, which is that of their lifetimes; there may be fewer.
    Complexity: about two searches for each buffer, at worst. Equal input, equal answer.

    Examples
    --------
    >>> rows = [(0, 1, 2), (0, 2, 2), (1, 3, 1), (1, 4, 1), (2, 4, 1), (3, 5, 2), (4, 5, 2)]
    >>> print(explain_infeasible([*rows, (3, 9, 1), (5, 9, 3)], 3))
    2 buffers do not fit into 3 B, none of which can be spared; they need 4 B (load at step 0)
    >>> found = explain_infeasible([*rows, (5, 9, 3)], 4)
    >>> found.ids, found.kind, found.lower_bound, found.irreducible
    ((0, 1, 2, 3, 4, 5, 6), 'search', 5, True)
    """
    problem = Problem(intervals, alignment=alignment, constraints=constraints)
    problem = problem.with_capacity(as_natural(capacity, "capacity"))
    padding = problem.constraints.tail_padding
    if problem.load > capacity - padding and not problem.constrained:
        found = _too_much_load(problem, capacity)
        if problem.features:  # a pin, or padding, may be too much for fewer of them
            few = np.array([problem.index(id) for id in found.ids])
            found = _filtered(problem.select(few), capacity, nodes)
    else:
        found = _filtered(problem, capacity, nodes)
    return replace(found, tail_padding=padding)


def _too_much_load(problem: Problem, capacity: int) -> Explanation:
    """At each section the largest buffers until they are too large; the fewest of these."""
    sections, choices = problem.sections, []
    room = capacity - problem.constraints.tail_padding
    for section in np.flatnonzero(sections.load > room).tolist():
        live = np.flatnonzero((sections.start <= section) & (section < sections.stop))
        live = live[np.argsort(-problem.size[live], kind="stable")]
        enough = int((np.cumsum(problem.size[live]) <= room).sum()) + 1
        choices.append((enough, int(sections.step[section]), live[:enough]))
    _, step, largest = min(choices, key=lambda choice: choice[0])
    members = problem.select(np.sort(largest))
    return Explanation(members.ids, capacity, int(members.size.sum()), "load", step)


def _filtered(problem: Problem, capacity: int, nodes: int) -> Explanation:
    """The deletion filter, from halves to single buffers, in the order of the lifetimes."""
    found = _refuted(problem, nodes)
    if isinstance(found, CapacityError):
        raise found
    if found is None:
        raise InvalidProblemError(
            f"there is nothing to explain: a plan fits into {format_size(capacity)}",
            field="capacity",
            value=capacity,
        )
    kept = np.lexsort((problem.upper, problem.lower))
    irreducible, size = True, len(kept)
    while size > 1:
        size = (size + 1) // 2
        at = 0
        while at < len(kept):
            rest = np.delete(kept, slice(at, at + size))
            answer = _refuted(problem.select(rest), nodes)
            if isinstance(answer, InfeasibleError):
                kept, found = rest, answer
            else:
                at += size
                irreducible &= size > 1 or answer is None
    members = problem.select(np.sort(kept))
    explanation = Explanation(
        members.ids, capacity, found.lower_bound, found.kind, found.step, irreducible
    )
    if found.kind != "search":
        return explanation
    proven = _refuted(members, nodes, proof=True)
    proof = proven.proof if isinstance(proven, InfeasibleError) else None
    return replace(explanation, proof=proof)


def _refuted(
    problem: Problem, nodes: int, *, proof: bool = False
) -> InfeasibleError | CapacityError | None:
    """Proof that the buffers do not fit; or that nobody knows; or None, they fit."""
    try:
        plan(problem, "exact", target=problem.capacity, nodes=nodes, proof=proof)
    except (InfeasibleError, CapacityError) as error:
        return error
    return None

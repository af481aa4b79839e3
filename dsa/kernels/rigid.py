"""Place bodies one by one: what `placement` does, for problems with holes and constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dsa.bodies import Bodies, merge
from dsa.problem import IntArray, Problem

if TYPE_CHECKING:
    from dsa.kernels.placement import Fit

__all__ = ["place_bodies", "place_body"]

UNPLACED = -1


def place_bodies(problem: Problem, order: IntArray, fit: Fit = "first") -> IntArray:
    """Offsets when the bodies are placed in the order of their first buffers, pinned ones first.

    O(parts x bodies) in whole columns, and what each body meets in Python. Plain buffers get
    what `dsa.kernels.placement.place` gives them.

    Examples
    --------
    >>> from dsa.problem import Buffer
    >>> holed = Problem([Buffer(0, 9, 8, holes=[(2, 6)]), Buffer(2, 6, 8), Buffer(5, 8, 4)])
    >>> place_bodies(holed, np.array([0, 1, 2])).tolist()
    [0, 0, 8]
    """
    bodies = problem.bodies
    offsets = np.full(len(bodies), UNPLACED, np.int64)
    for i, domain in enumerate(bodies.domain):
        if domain.pin is not None:
            offsets[i] = domain.pin
    _, first = np.unique(bodies.body[order], return_index=True)
    for i in bodies.body[order][np.sort(first)].tolist():
        if offsets[i] == UNPLACED:
            offsets[i] = place_body(bodies, i, offsets, fit)
    return bodies.restore(offsets)


def place_body(bodies: Bodies, i: int, offsets: IntArray, fit: Fit = "first") -> int:
    """Offset for body `i`: in the first or the smallest gap that holds it, else above all.

    Parameters
    ----------
    bodies, i
        The bodies, and one that is not pinned.
    offsets
        Of the bodies; -1 for those not placed yet.
    fit
        As for `place`.
    """
    domain = bodies.domain[i]
    other, low, high = bodies.against(i)
    placed = offsets[other] != UNPLACED
    at = offsets[other[placed]]
    ranges = zip((at + low[placed]).tolist(), (at + high[placed]).tolist(), strict=True)
    offset, least, best = domain.first(0), 0, UNPLACED
    for start, stop in merge([*ranges, *domain.blocked]):
        if offset < start:
            if fit == "first":
                return offset
            if best == UNPLACED or start - offset < least:
                least, best = start - offset, offset
        if offset < stop:
            offset = domain.first(stop)
    return offset if best == UNPLACED else best

"""Place bodies one by one: what `placement` does, for problems with holes and constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dsa.bodies import Bodies
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
    at = offsets[other]
    placed = at != UNPLACED
    start, stop = (at + low)[placed], (at + high)[placed]
    if domain.blocked:
        blocked = np.array(domain.blocked, np.int64)
        start, stop = np.append(start, blocked[:, 0]), np.append(stop, blocked[:, 1])
    order = start.argsort(kind="stable")
    start = start[order]
    # Where each gap begins, not yet raised to an offset that is allowed; the last is above all.
    floor = np.zeros(len(start) + 1, np.int64)
    np.maximum.accumulate(stop[order], out=floor[1:])
    np.maximum(floor, 0, out=floor)
    if domain.chunk is not None:
        floor = np.array([domain.first(f) for f in floor.tolist()], np.int64)
    elif domain.modulus > 1 or domain.remainder:
        floor += (domain.remainder - floor) % domain.modulus
    room = start - floor[:-1]
    gaps = np.flatnonzero(room > 0)
    if not len(gaps):
        return int(floor[-1])
    return int(floor[gaps[0] if fit == "first" else gaps[room[gaps].argmin()]])

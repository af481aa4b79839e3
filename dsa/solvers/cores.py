"""Few of a problem's buffers, that may by themselves need more than the bound.

A plan of all buffers holds a plan of some of them. Where small buffers leave room everywhere, the
tree of all of them is hopeless, that of the large ones is not: a *core* is what of the buffers
live in a window of sections has at least some size.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dsa.problem import IntArray, Problem

__all__ = ["cores"]

HALVINGS = (1, 2, 3, 4, 5, 6, 62)  # the least size: a half of the load, a quarter, ...; none
SECTIONS = 4  # the narrowest windows
LEAST = 4  # buffers of a core: fewer of them never need more than their load
WORTH = 3 / 2  # times the load of a core must be more than the bound


def cores(problem: Problem, bound: int) -> Iterator[IntArray]:
    """Positions of the buffers of each core, wide windows and large buffers first.

    Parameters
    ----------
    problem
        Its cores; all of it is none.
    bound
        What a core would have to be above.

    Examples
    --------
    >>> rows = [(0, 1, 2), (0, 2, 2), (1, 3, 1), (1, 4, 1), (2, 4, 1), (3, 5, 2), (4, 5, 2)]
    >>> problem = Problem([*((a, b, 20 * size) for a, b, size in rows), (1, 5, 1), (0, 3, 2)])
    >>> [core.tolist() for core in cores(problem, problem.load)]
    [[0, 1, 5, 6], [0, 1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6, 8]]
    """
    sections, seen = problem.sections, {bytes(np.arange(len(problem)))}
    width = len(sections)
    while width >= min(SECTIONS, len(sections)):
        step = max(width // 2, 1)
        for low in range(0, len(sections) - width + step, step):
            live = (sections.start < low + width) & (low < sections.stop)
            for halving in HALVINGS:
                core = np.flatnonzero(live & (problem.size << halving >= problem.load))
                new = len(core) >= LEAST and bytes(core) not in seen
                seen.add(bytes(core))
                if new and problem.select(core).load * WORTH > bound:
                    yield core
        width //= 2

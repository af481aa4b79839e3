"""The lower bound of slots: the positional maxima."""

from __future__ import annotations

import numpy as np

from dsa.problem import Problem

__all__ = ["positional_maxima"]


def positional_maxima(problem: Problem) -> tuple[int, ...]:
    """Largest first, what the slots of every plan are at least: their sum is a lower bound.

    The k-th is the largest size of which k buffers, of that size or larger, are live together. They
    are in different slots, so the k-th largest slot is at least that large::

        step   sizes live, sorted
        0      64  32                    in every plan the largest slot is at least 64,
        1      48  40   8                the second at least 40,
               --------------            the third at least 8
               64  40   8

    O(sections x different sizes).

    Examples
    --------
    >>> positional_maxima(Problem([(0, 1, 64), (0, 1, 32), (1, 2, 48), (1, 2, 40), (1, 2, 8)]))
    (64, 40, 8)
    """
    sections = problem.sections
    change = np.zeros(len(sections) + 1, np.int64)
    maxima: list[int] = []
    for size in np.unique(problem.size[problem.size > 0])[::-1]:
        of_size = np.flatnonzero(problem.size == size)
        np.add.at(change, sections.start[of_size], 1)
        np.add.at(change, sections.stop[of_size], -1)
        together = int(np.cumsum(change).max())
        maxima += [int(size)] * (together - len(maxima))
    return tuple(maxima)

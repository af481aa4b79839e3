"""Maxima over ranges of sections, by sparse tables: O((n + m) log m), no loop over buffers.

Level k of a table has one entry for each range of 2**k sections::

    level 1   [0,1] [1,2] [2,3] ...       a range of 3 sections is the union of
    level 0   0  1  2  3 ...              two ranges of 2, which may overlap
"""

from __future__ import annotations

import numpy as np

from dsa.problem import IntArray

__all__ = ["cover_max", "range_max"]


def range_max(values: IntArray, start: IntArray, stop: IntArray) -> IntArray:
    """For each range ``start .. stop - 1`` the largest of `values`; 0 for an empty range.

    Examples
    --------
    >>> range_max(np.array([3, 1, 2]), np.array([0, 1]), np.array([2, 3])).tolist()
    [3, 2]
    """
    result = np.zeros(len(start), np.int64)
    length, level, width = stop - start, values, 1
    while width <= len(values):
        at = np.flatnonzero((length >= width) & (length < 2 * width))
        result[at] = np.maximum(level[start[at]], level[stop[at] - width])
        level = np.maximum(level[:-width], level[width:])
        width *= 2
    return result


def cover_max(start: IntArray, stop: IntArray, values: IntArray, count: int) -> IntArray:
    """For each of `count` sections the largest value of a range that covers it, at least 0.

    Examples
    --------
    >>> cover_max(np.array([0, 1]), np.array([2, 3]), np.array([5, 7]), 4).tolist()
    [5, 7, 7, 0]
    """
    length = stop - start
    width = 1 << max(int(length.max(initial=0)).bit_length() - 1, 0)
    level = np.zeros(count, np.int64)
    while width:
        at = np.flatnonzero((length >= width) & (length < 2 * width))
        np.maximum.at(level, start[at], values[at])
        np.maximum.at(level, stop[at] - width, values[at])
        half = width // 2
        if half:
            below = level.copy()
            np.maximum(below[half:], level[:-half], out=below[half:])
            level = below
        width = half
    return level

"""Orders in which buffers are placed: one key each, one rule for ties."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from dsa.kernels.ranges import range_max
from dsa.problem import IntArray, Problem

__all__ = ["ORDERS", "check_order", "conflicts", "order_by", "sort_by"]

Key = npt.NDArray[np.int64] | npt.NDArray[np.float64]


def order_by(problem: Problem, name: str) -> IntArray:
    """Positions of the buffers in an order of `ORDERS`.

    Ties: larger size, then earlier `lower`, then earlier `upper`, then id; so the order does not
    depend on the order of the input (except `given`).

    Raises
    ------
    ValueError
        If there is no such order.

    Examples
    --------
    >>> order_by(Problem([(0, 2, 8), (1, 3, 32), (2, 4, 16)]), "size").tolist()
    [1, 2, 0]
    """
    check_order(name)
    return sort_by(problem, *ORDERS[name](problem))


def check_order(name: str) -> None:
    """Raise ValueError unless there is an order of this name."""
    if name not in ORDERS:
        raise ValueError(f"no order is named {name!r}; there are {', '.join(ORDERS)}")


def sort_by(problem: Problem, *keys: Key, mirrored: bool = False) -> IntArray:
    """Positions of the buffers by these keys, ascending, the first being the most important.

    Ties as in `order_by`; if `mirrored`, as they are when time runs backwards.
    """
    ties = problem.mirrored_ties if mirrored else problem.ties
    return ties[np.lexsort([key[ties] for key in keys[::-1]])]


def _area(problem: Problem, length: IntArray) -> Key:
    # Bytes x steps may pass 2**63; in double precision near ties may fall either way.
    return problem.size.astype(np.float64) * length


def conflicts(problem: Problem) -> IntArray:
    """Buffers live together with each: those that start before its end, less those that ended."""
    solid = problem.size > 0
    started = np.searchsorted(np.sort(problem.lower[solid]), problem.upper, "left")
    ended = np.searchsorted(np.sort(problem.upper[solid]), problem.lower, "right")
    return np.where(solid, started - ended - 1, 0)


def _heaviest(problem: Problem) -> IntArray:
    """Load of the heaviest section each buffer covers."""
    sections = problem.sections
    return range_max(sections.load, sections.start, sections.stop)


def _breadth_rank(problem: Problem) -> IntArray:
    """When each buffer is first met if steps are visited by breadth, then by time.

    The sections do for the steps: at any other step fewer bytes are live, all of them in a
    section that has been visited.
    """
    sections = problem.sections
    count = len(sections)
    visited = np.empty(count, np.int64)
    visited[np.argsort(-sections.load, kind="stable")] = np.arange(count)
    return count - range_max(count - visited, sections.start, sections.stop)


# Most important key first; each ascending.
ORDERS: MappingProxyType[str, Callable[[Problem], tuple[Key, ...]]] = MappingProxyType(
    {
        "size": lambda p: (-p.size,),
        "lifetime": lambda p: (p.lower - p.upper,),
        "area": lambda p: (-_area(p, p.upper - p.lower),),
        "sections": lambda p: (-_area(p, p.sections.stop - p.sections.start),),
        "span": lambda p: (p.sections.start - p.sections.stop,),
        "conflicts": lambda p: (-conflicts(p),),
        "conflict-bytes": lambda p: (-_area(p, conflicts(p)),),
        "urgency": lambda p: (-_heaviest(p), p.lower - p.upper, p.lower),
        "heaviest": lambda p: (-_heaviest(p), -_area(p, p.sections.stop - p.sections.start)),
        "breadth": lambda p: (_breadth_rank(p),),
        "lower": lambda p: (p.lower,),
        "given": lambda p: (np.arange(len(p)),),
    }
)

"""Greedy placement: buffers in some order, each into a gap between those already placed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, get_args

from dsa.budget import Budget
from dsa.kernels.placement import Fit, place
from dsa.problem import Problem
from dsa.result import Solution
from dsa.solvers import ALL, Solver
from dsa.solvers.orders import check_order, order_by

__all__ = ["Greedy", "GreedyByBreadth", "GreedyBySize"]


@dataclass(frozen=True)
class Greedy(Solver):
    """Place buffers in an order, each in the first or the smallest gap that holds it.

    Pinned buffers are placed before all others. The gap below the lowest buffer counts; a buffer
    that fits into no gap goes above all that it conflicts with.

    Parameters
    ----------
    order
        ``"size"``, ``"lifetime"``, ``"area"`` (bytes x steps), ``"sections"`` (bytes x
        sections), ``"conflicts"``, ``"conflict-bytes"`` (bytes x conflicts: OmniMalloc), each
        largest first; ``"urgency"`` (heaviest section covered,
        then lifetime: Arm Vela); ``"breadth"`` (steps by the bytes live at them); ``"lower"``
        (by start); ``"given"`` (the input's).
    fit
        ``"best"``: smallest gap, of equal ones the lowest. ``"first"``: lowest gap.

    Notes
    -----
    Complexity: near-linear, O(n) memory: see `dsa.kernels.gaps`.
    Ties: larger size, earlier `lower`, earlier `upper`, id; the input's order does not matter.
    Guarantee: none in general. By start, equal sizes reach the load.
    Source: Pisarchyk and Lee, *Efficient Memory Management for Deep Neural Net Inference*, 2020.

    Examples
    --------
    >>> from dsa import plan
    >>> rows = [(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)]
    >>> plan(rows, solver="greedy", order="size").peak
    124
    >>> plan(rows, solver="greedy", order="lower").peak
    88
    """

    order: str = "size"
    fit: Fit = "best"

    supports: ClassVar[frozenset[str]] = ALL

    def __post_init__(self) -> None:
        check_order(self.order)
        if self.fit not in get_args(Fit):
            raise ValueError(f"fit must be 'first' or 'best', got {self.fit!r}")

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        return Solution(place(problem, order_by(problem, self.order), self.fit))


@dataclass(frozen=True)
class GreedyBySize(Greedy):
    """Largest buffer first: TFLite's default, and a good one for inference graphs.

    `Greedy` with ``order="size"``: see there.

    Examples
    --------
    >>> from dsa import plan
    >>> plan([(0, 2, 96), (1, 3, 72), (2, 4, 48)], solver="greedy-by-size").offsets
    (0, 96, 0)
    """


@dataclass(frozen=True)
class GreedyByBreadth(Greedy):
    """Steps by the bytes live at them, most first; at each, the largest buffer first.

    `Greedy` with ``order="breadth"``: see there. Of equal steps the earlier comes first.

    Examples
    --------
    >>> from dsa import plan
    >>> rows = [(0, 3, 44), (1, 2, 48), (2, 4, 36), (3, 4, 40)]
    >>> plan(rows, solver="greedy-by-breadth").peak, plan(rows, solver="greedy-by-size").peak
    (92, 128)
    """

    order: str = "breadth"

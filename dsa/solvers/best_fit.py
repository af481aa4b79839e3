"""Best fit on the skyline: longest lifetime first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, overload

from dsa.budget import Budget
from dsa.kernels.placement import place
from dsa.kernels.skyline import Skyline
from dsa.problem import FREE, IntArray, Problem
from dsa.result import Solution, peak
from dsa.solvers import ALL, Solver
from dsa.solvers.orders import check_order, order_by

__all__ = ["BestFit", "Filling"]


@dataclass(frozen=True)
class BestFit(Solver):
    """Fill the lowest place first, with the longest-lived buffer that fits into it.

    Burke's best fit for strip packing, with time given: see `dsa.kernels.skyline`.

    Parameters
    ----------
    order
        Which of the buffers that fit is preferred: a name of `dsa.solvers.orders.ORDERS`.

    Notes
    -----
    Complexity: near-linear, O(n) memory.
    Ties: larger size, earlier `lower`, earlier `upper`, id; the input's order does not matter.
    Guarantee: none; every buffer rests on another or on the bottom.
    Pins and constraints: the skyline is filled without them; the buffers are then placed around
    the pins and by the rules, in order of the offsets found.
    Source: Sekiyama, Imai, Negishi, Imamichi and Raymond, *Profile-guided memory optimization for
    deep neural networks*, 2018, after Burke, Kendall and Whitwell 2004.

    Examples
    --------
    >>> from dsa import plan
    >>> plan([(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)], solver="best-fit").peak
    88
    """

    order: str = "lifetime"

    supports: ClassVar[frozenset[str]] = ALL

    def __post_init__(self) -> None:
        check_order(self.order)

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        return Solution(Filling(problem).fill(order_by(problem, self.order)))


class Filling:
    """The skyline of a problem, filled in any number of orders.

    Buffers are placed anew if there are pins or constraints.

    Examples
    --------
    >>> import numpy as np
    >>> Filling(Problem([(0, 2, 96), (1, 3, 72), (2, 4, 48)])).fill(np.array([0, 1, 2])).tolist()
    [0, 96, 0]
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._skyline = Skyline(problem)
        self._as_it_is = bool((problem.pin == FREE).all()) and not problem.constrained

    @overload
    def fill(self, order: IntArray) -> IntArray: ...
    @overload
    def fill(self, order: IntArray, budget: Budget, ceilings: IntArray) -> IntArray | None: ...
    def fill(
        self, order: IntArray, budget: Budget | None = None, ceilings: IntArray | None = None
    ) -> IntArray | None:
        """Offsets; with a budget and ceilings None if late or in vain, as `Skyline.fill` says."""
        problem = self._problem
        offsets = self._skyline.fill(order, budget, ceilings if self._as_it_is else None)
        if offsets is None or self._as_it_is:
            return offsets
        placed = place(problem, offsets.argsort(kind="stable"))
        if problem.constrained:
            # The skyline knows nothing of what may share bytes: the order itself may do better.
            given = place(problem, order, "best")
            return given if peak(problem, given) < peak(problem, placed) else placed
        return placed

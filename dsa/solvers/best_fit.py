"""Best fit on the skyline: longest lifetime first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, overload

from dsa.budget import Budget
from dsa.kernels.placement import place
from dsa.kernels.skyline import skyline
from dsa.problem import FREE, IntArray, Problem
from dsa.result import Solution, peak
from dsa.solvers import ALL, Solver
from dsa.solvers.orders import check_order, order_by

__all__ = ["BestFit", "fill"]


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
        return Solution(fill(problem, order_by(problem, self.order)))


@overload
def fill(problem: Problem, order: IntArray) -> IntArray: ...
@overload
def fill(problem: Problem, order: IntArray, budget: Budget) -> IntArray | None: ...
def fill(problem: Problem, order: IntArray, budget: Budget | None = None) -> IntArray | None:
    """Offsets by the skyline in this order; placed anew if there are pins or constraints.

    With a budget, None if its time is up on the way.

    Examples
    --------
    >>> import numpy as np
    >>> fill(Problem([(0, 2, 96), (1, 3, 72), (2, 4, 48)]), np.array([0, 1, 2])).tolist()
    [0, 96, 0]
    """
    offsets = skyline(problem, order) if budget is None else skyline(problem, order, budget)
    if offsets is None or ((problem.pin == FREE).all() and not problem.constrained):
        return offsets
    placed = place(problem, offsets.argsort(kind="stable"))
    if problem.constrained:
        # The skyline knows nothing of what may share bytes: the order itself may do better.
        given = place(problem, order, "best")
        return given if peak(problem, given) < peak(problem, placed) else placed
    return placed

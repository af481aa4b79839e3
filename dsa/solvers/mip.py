"""The classic mixed-integer model: order any two conflicting buffers by a binary."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from dsa.budget import Budget, check_seconds
from dsa.kernels.placement import place
from dsa.problem import FREE, IntArray, Problem
from dsa.result import Solution, peak
from dsa.solvers import ALL, Solver, check_counts
from dsa.solvers.body_models import BodyModel
from dsa.solvers.disjunctive import descend
from dsa.solvers.starts import Found, equals_in_order, improve, kinds, members

if TYPE_CHECKING:
    from dsa.solvers.backends import Answer

__all__ = ["Mip"]


@dataclass(frozen=True, repr=False)
class Mip(Solver):
    """Mixed-integer programming through PuLP, by CBC, HiGHS or another backend.

    A backend works with floating-point numbers and tolerances. So only the order of the offsets
    is taken from it: the buffers are placed anew in that order, in integers. The plan is never
    worse than the best of `strip-packing`, `greedy-by-size` and `greedy-by-breadth`, which are
    run first; where one of them meets the target, no backend is started.

    Parameters
    ----------
    backend
        ``"cbc"`` (comes with PuLP), ``"highs"`` (needs `highspy`), or any PuLP solver object; None
        is HiGHS if it is installed, otherwise CBC. An object is copied and made silent; its time
        limit and gap are set; of CBC's and HiGHS's own classes no files or logs are kept.
    seconds
        Time limit, for each component, if the call has none.
    max_pairs
        Above so many conflicting pairs no backend is started: the plan is the best of the
        solvers above, and ``stats["backend_status"]`` says so.

    Raises
    ------
    SolverUnavailableError
        If the backend is missing or does not work; it is not looked for before it is needed.

    Notes
    -----
    For buffers i and j that are live together, z_ij = 1 if i lies below j, and S is a section::

        minimise  peak
        so that   o_i + s_i <= o_j + M_ij (1 - z_ij)               M_ij = most of o_i + s_i - o_j
                  z_ij + z_ji = 1                                  z_ij = 1 for i < j if equal
                  sum of s_i z_ij over i in S <= o_j               all that is below j in S
                  o_j + s_j + sum of s_i z_ji over i in S <= peak  all that is above j in S
                  lower bound <= peak <= peak of the best plan so far

    An offset is a multiple of an integer variable where it must be aligned, a constant where it is
    pinned. Without the sums over sections the relaxation is worth little more than the largest
    buffer; with them it is worth the load. With constraints, see
    `dsa.solvers.body_models.BodyModel`.

    Complexity: exponential; a variable for each ordered pair of conflicting buffers.
    Ties: the backend's, the same every time (one thread) unless the time limit ends it.
    Guarantee: optimal if the status says so. A proof is claimed only if the backend ended by
    itself, its optimum is the peak of the plan placed anew in its order, and a binary that is off
    by the backend's tolerance buys less than half a unit: peaks below 500,000 units (50,000 for a
    backend other than CBC and HiGHS), a unit being the greatest common divisor of the sizes.
    ``stats["backend_status"]`` keeps what the backend said, also if it was wrong.
    Source: Sekiyama et al. 2018 and OLLA (Steiner et al. 2022) for the disjunctive model.

    Examples
    --------
    >>> from dsa import plan
    >>> rows = [(0, 1, 2), (0, 2, 2), (1, 3, 1), (1, 4, 1), (2, 4, 1), (3, 5, 2), (4, 5, 2)]
    >>> p = plan(rows, solver="mip")
    >>> p.problem.load, p.peak, p.status, p.stats["backend_status"]
    (4, 5, 'optimal', 'optimal')
    """

    backend: Any = None
    seconds: float = 60.0
    max_pairs: int = 5_000

    exact: ClassVar[bool] = True
    supports: ClassVar[frozenset[str]] = ALL
    requires: ClassVar[tuple[str, ...]] = ("pulp",)
    searches: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_counts(self, "max_pairs")
        check_seconds("seconds", self.seconds)
        named = self.backend in (None, "cbc", "highs")
        given = hasattr(self.backend, "actualSolve") and not isinstance(self.backend, type)
        if not named and not given:
            raise ValueError(
                "backend must be 'cbc', 'highs', None or a PuLP solver object, got "
                f"{self.backend!r}"
            )

    def __repr__(self) -> str:
        backend = repr(self.backend)
        if hasattr(self.backend, "toDict"):
            options = self.backend.toDict()
            arguments = [repr(options.pop("solver")), *(f"{k}={v!r}" for k, v in options.items())]
            backend = f"pulp.getSolver({', '.join(arguments)})"
        return f"Mip(backend={backend}, seconds={self.seconds!r}, max_pairs={self.max_pairs!r})"

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        return improve(
            self._search, problem, budget, seconds=self.seconds, max_pairs=self.max_pairs
        )

    def _search(self, problem: Problem, start: IntArray, floor: int, budget: Budget) -> Found:
        from dsa.solvers import backends  # which imports PuLP

        model = (BodyModel if problem.constrained else _Model)(problem, floor, start)
        answer = backends.solve(model.program, self.backend, budget)
        stats = {"backend": answer.backend, "backend_seconds": round(answer.seconds, 3)}
        return Found(*_interpret(problem, model, answer), stats)


# -- the model -------------------------------------------------------------------------------


class _Model:
    """The model of `Mip`, in the words of its docstring; variables are named by position.

    Parameters
    ----------
    problem
        What is to be solved.
    floor
        Peak that need not be undercut.
    start
        Offsets of a plan: the backend starts there, and has to stay within its peak.

    Attributes
    ----------
    program
        The ``pulp.LpProblem``.
    floor, ceiling
        Least and largest value of the peak.
    widest
        Bytes that a binary decides about, at most.
    """

    def __init__(self, problem: Problem, floor: int, start: IntArray) -> None:
        import pulp

        from dsa.solvers.backends import variable

        self._problem = problem
        self._size: list[int] = problem.size.tolist()
        self._start: list[int] = equals_in_order(problem, start).tolist()
        self.floor, self.ceiling = floor, peak(problem, start)
        self.widest = self.ceiling
        self._live = members(problem)
        self._sum = pulp.LpAffineExpression
        self.program = pulp.LpProblem("dsa")
        self._variable = partial(variable, self.program)
        self._peak = self._variable("peak", self.floor, self.ceiling, start=self.ceiling)
        self.program += self._peak
        self._place()
        self._order()
        self._stack()

    def _place(self) -> None:
        """An expression for each offset, and the range it is in."""
        alignments, pins = self._problem.alignment.tolist(), self._problem.pin.tolist()
        self._offset: dict[int, Any] = {}
        self._range: dict[int, tuple[int, int]] = {}
        for i in np.flatnonzero(self._problem.size).tolist():
            alignment, pin, start = alignments[i], pins[i], self._start[i]
            low, high = (0, self.ceiling - self._size[i]) if pin == FREE else (pin, pin)
            low, high, start = low // alignment, high // alignment, start // alignment
            steps = self._variable(f"o{i}", low, high, start=start, integer=alignment > 1)
            self._offset[i] = alignment * steps
            self._range[i] = alignment * low, alignment * high

    def _order(self) -> None:
        """Two binaries for each pair, one for each way to lie on one another."""
        kind = kinds(self._problem)
        self._below: dict[tuple[int, int], Any] = {}
        for i, j in dict.fromkeys(pair for live in self._live for pair in combinations(live, 2)):
            first = int(kind[i] == kind[j])
            up, down = int(self._start[i] < self._start[j]), int(self._start[i] > self._start[j])
            self._below[i, j] = self._variable(f"z{i}_{j}", first, 1, start=up)
            self._below[j, i] = self._variable(f"z{j}_{i}", 0, 1, start=down)
            self.program += self._below[i, j] + self._below[j, i] == 1
        for (i, j), below in self._below.items():
            most = self._range[i][1] + self._size[i] - self._range[j][0]
            end = self._offset[i] + self._size[i]
            self.program += end <= self._offset[j] + most * (1 - below)

    def _stack(self) -> None:
        """What lies below and above each buffer in each of its sections."""
        for live in self._live:
            for j in live:
                others = [i for i in live if i != j]
                under = self._sum([(self._below[i, j], self._size[i]) for i in others])
                over = self._sum([(self._below[j, i], self._size[i]) for i in others])
                self.program += under <= self._offset[j]
                self.program += self._offset[j] + self._size[j] + over <= self._peak

    def values(self) -> tuple[npt.NDArray[np.float64], float]:
        """Offsets and peak as the backend left them; NaN where it left none."""
        offsets = np.zeros(len(self._problem))
        for i, offset in self._offset.items():
            value = offset.value()
            offsets[i] = math.nan if value is None else value
        value = self._peak.value()
        return offsets, math.nan if value is None else value


# -- what the answer is worth ----------------------------------------------------------------


def _in_integers(problem: Problem, values: npt.NDArray[np.float64]) -> IntArray | None:
    """The plan that these values mean: placed anew in their order, or with their choices."""
    if problem.constrained:
        return descend(problem, values)
    return place(problem, values.argsort(kind="stable"), "first")


def _interpret(
    problem: Problem, model: _Model | BodyModel, answer: Answer
) -> tuple[IntArray | None, int, str]:
    """A plan in the order of the answer, a bound that is proved, and what to say of it."""
    ceiling, floor = model.ceiling, model.floor
    if answer.words in ("infeasible", "unbounded"):
        return None, 0, f"wrong: {answer.words}, where there is a plan of {ceiling}"
    if not answer.found:
        return None, 0, answer.words
    values, claimed = model.values()
    if not np.isfinite(values).all():
        return None, 0, f"wrong: {answer.words}, but not all offsets have a value"
    offsets = _in_integers(problem, values)
    if offsets is None:
        return None, 0, f"wrong: {answer.words}, but no plan makes its choices"
    reached = peak(problem, offsets)
    if not answer.proved or reached <= floor:
        return offsets, 0, answer.words
    if not math.isfinite(claimed) or not round(claimed) == reached <= ceiling:
        there = min(reached, ceiling)
        return offsets, 0, f"wrong: optimal at {claimed}, where there is a plan of {there}"
    if model.widest * answer.tolerance >= 0.5:
        return offsets, 0, "optimal, but in numbers too large for a proof"
    return offsets, reached, "optimal"

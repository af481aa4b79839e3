"""Models of rigid bodies for backends: what `mip` and `cp` hand over where there are constraints.

For each pair of bodies one of the ranges of `dsa.solvers.disjunctive.Alternatives` is chosen, for
each body one of the ranges of its domain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dsa.bodies import Domain, merge
from dsa.gate import LIMIT
from dsa.problem import IntArray, Problem
from dsa.result import peak
from dsa.solvers.disjunctive import Alternatives

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntVar

__all__ = ["BodyModel", "constraint_program"]


class BodyModel:
    """A mixed-integer model; variables are named by body.

    For the ranges ``low <= o_i - o_j <= high`` of a pair, of which one binary z is 1::

        minimise  peak
        so that   o_i - o_j >= low - M (1 - z)       for each range of each pair
                  o_i - o_j <= high + M (1 - z)
                  sum of z over the ranges = 1       the same for ranges of one offset
                  o_i + height_i <= peak

    Parameters
    ----------
    problem
        What is to be solved.
    floor
        Peak that need not be undercut.
    start
        Offsets of a plan: the backend has to stay within its peak.

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

        bodies = problem.bodies
        self._bodies = bodies
        self.floor, self.ceiling = floor, peak(problem, start)
        self.widest = 2 * self.ceiling
        self.program = pulp.LpProblem("dsa")
        self._sum = pulp.lpSum
        self._variable = partial(variable, self.program)
        self._peak = self._variable("peak", floor, self.ceiling, start=self.ceiling)
        self.program += self._peak
        at = bodies.offsets_of(start)
        self._offset = [self._place(i, int(at[i])) for i in range(len(bodies))]
        table = Alternatives.of(bodies, list(range(len(bodies))))
        difference = at[table.i] - at[table.j]
        chosen = (table.low <= difference) & (difference <= table.high)
        rows: dict[int, list[tuple[Any, int, int, bool]]] = {}
        columns = (table.pair, table.i, table.j, table.low, table.high, chosen)
        for pair, i, j, low, high, now in zip(*(c.tolist() for c in columns), strict=True):
            rows.setdefault(pair, []).append((self._offset[i] - self._offset[j], low, high, now))
        for pair, ranges in rows.items():
            self._choose(f"z{pair}", ranges, self.ceiling)

    def _place(self, i: int, start: int) -> Any:
        """An expression for the offset of a body that obeys its domain."""
        domain, height = self._bodies.domain[i], int(self._bodies.height[i])
        if domain.pin is not None:
            low = high = domain.pin
        else:
            low, high = 0, max(self.ceiling - height, start)
        modulus, remainder = domain.modulus, domain.remainder % domain.modulus
        steps = self._variable(
            f"o{i}",
            -(-(low - remainder) // modulus),
            (high - remainder) // modulus,
            start=(start - remainder) // modulus,
            integer=True,
        )
        offset = modulus * steps + remainder
        ranges = [(offset, a, b, a <= start <= b) for a, b in allowed(domain, high)]
        if domain.pin is None and ranges != [(offset, 0, high, True)]:
            self._choose(f"r{i}", ranges, high)
        if height:
            self.program += offset + height <= self._peak
        return offset

    def _choose(self, name: str, ranges: list[tuple[Any, int, int, bool]], largest: int) -> None:
        """One of several ranges for expressions whose values are within plus or minus `largest`."""
        choices = []
        for k, (expression, low, high, now) in enumerate(ranges):
            choice = self._variable(f"{name}_{k}", 0, 1, start=int(now))
            choices.append(choice)
            if low > -largest:
                self.program += expression >= low - (low + largest) * (1 - choice)
            if high < largest:
                self.program += expression <= high + (largest - high) * (1 - choice)
        self.program += self._sum(choices) == 1

    def values(self) -> tuple[npt.NDArray[np.float64], float]:
        """Offsets of the bodies and peak as the backend left them; NaN where it left none."""
        values = [offset.value() for offset in self._offset]
        values.append(self._peak.value())
        array = np.array([np.nan if value is None else value for value in values], np.float64)
        return array[:-1], float(array[-1])


def constraint_program(
    problem: Problem, start: IntArray, floor: int
) -> tuple[CpModel, list[IntVar]]:
    """The same choices for CP-SAT, and a variable for the offset of each body."""
    from ortools.sat.python import cp_model

    bodies, model = problem.bodies, cp_model.CpModel()
    ceiling = peak(problem, start)
    highest = model.new_int_var(floor, ceiling, "peak")
    model.add_hint(highest, ceiling)
    offsets = []
    for i, at in enumerate(bodies.offsets_of(start).tolist()):
        domain, height = bodies.domain[i], int(bodies.height[i])
        top = max(ceiling - height, at)
        ranges = [[domain.pin] * 2] if domain.pin is not None else allowed(domain, top)
        offset = model.new_int_var_from_domain(cp_model.Domain.from_intervals(ranges), "")
        model.add_hint(offset, at)
        if domain.modulus > 1:
            steps = model.new_int_var(0, top // domain.modulus + 1, "")
            model.add(offset == domain.modulus * steps + domain.remainder % domain.modulus)
        if height:
            model.add(offset + height <= highest)
        offsets.append(offset)
    table = Alternatives.of(bodies, list(range(len(bodies))))
    for rows in np.split(np.arange(len(table.pair)), table.first[1:]):
        if len(rows):
            i, j = int(table.i[rows[0]]), int(table.j[rows[0]])
            choice = np.column_stack([table.low[rows], table.high[rows]]).tolist()
            model.add_linear_expression_in_domain(
                offsets[i] - offsets[j], cp_model.Domain.from_intervals(choice)
            )
    model.minimize(highest)
    return model, offsets


def allowed(domain: Domain, top: int) -> list[tuple[int, int]]:
    """Closed ranges of the offsets up to `top` that a domain allows, alignment apart."""
    return [(start, stop - 1) for start, stop in merge(_allowed(domain, top))]


def _allowed(domain: Domain, top: int) -> Iterator[tuple[int, int]]:
    plain = replace(domain, modulus=1, remainder=0)
    low = plain.first(0)
    while low <= top:
        stop = min((start for start, _ in domain.blocked if start > low), default=LIMIT)
        if domain.chunk is not None:
            at = low % domain.chunk
            stop = min(stop, next(low + b - at for a, b in domain.within if a <= at < b))
        yield low, min(stop, top + 1)
        low = plain.first(stop)

"""Exact search over rigid bodies: what `exact` does where there are holes or constraints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dsa.bodies import Bodies
from dsa.bounds import lower_bound
from dsa.budget import Budget
from dsa.gate import LIMIT
from dsa.problem import IntArray, Problem
from dsa.result import Solution, peak

__all__ = ["Alternatives", "Closure", "descend", "minimise"]

LARGEST = 150  # bodies of a component: with more of them a node takes too long
HIGHEST = LIMIT // 16  # peak up to which three paths can be added up
NEVER = -LIMIT // 4  # no path: far below every path there is


def minimise(problem: Problem, budget: Budget, offsets: IntArray, nodes: int | None) -> Solution:
    """The lowest plan, component by component, and what was proved on the way.

    For each pair of bodies a plan chooses one of the ranges between the forbidden differences of
    their offsets::

        x[a] - x[b]    ...allowed] forbidden [allowed] forbidden [allowed...

    What has been chosen is a system of inequalities ``x[j] >= x[i] + c``, which has a least
    solution; what the domains forbid (alignment, reserved bytes, chunks) only raises it. While
    the least solution breaks no rule of an undecided pair it is a plan, and no other plan of this
    branch is lower in any offset. Otherwise such a pair is branched on. A choice that the
    inequalities rule out is left out; a pair with one choice left is decided.

    Parameters
    ----------
    problem, budget
        As for a solver.
    offsets
        Of a valid plan.
    nodes
        Of the search at most; None for no such limit.

    Notes
    -----
    Complexity: exponential; a node costs O(bodies^2) for each pair that it decides. Components of
    more than `LARGEST` bodies, or a peak above `HIGHEST`, are left as they are.
    Guarantee: optimal if it ends before the budget does. Complete for every domain: raising the
    least solution to the next allowed offset keeps it least.
    Source: disjunctive graphs of machine scheduling (Roy and Sussmann 1964), with more than two
    choices for a pair.
    """
    bodies, component = problem.bodies, problem.component
    best = np.array(offsets, np.int64)
    bound = lower_bound(problem).value
    aim = max(bound, budget.target)
    stats: dict[str, Any] = {"nodes": 0}
    for members in _components(bodies, component, best + problem.size):
        if len(members) > LARGEST or peak(problem, best) > HIGHEST:
            stats["search"] = f"not run: {len(members)} bodies, the limits are {LARGEST} bodies "
            stats["search"] += f"and a peak of {HIGHEST} B"
            continue
        search = _Search(bodies, members, bodies.offsets_of(best)[members])
        search.run(budget, aim, None if nodes is None else nodes - stats["nodes"])
        stats["nodes"] += search.nodes
        for i, offset in zip(members, search.offsets.tolist(), strict=True):
            best[bodies.members[i]] = offset + bodies.shift[bodies.members[i]]
        if search.proved:
            bound = max(bound, search.peak)
        aim = max(aim, search.peak)  # the others need not be lower
    return Solution(best, bound if peak(problem, best) >= bound else None, stats)


def descend(problem: Problem, offsets: npt.NDArray[Any]) -> IntArray | None:
    """The least plan that makes the choices of these offsets of bodies, for buffers.

    Parameters
    ----------
    problem
        With constraints.
    offsets
        Of its bodies, perhaps as floating-point numbers that are a little off.

    Returns
    -------
    array or None
        Offsets of the buffers; None if no plan makes these choices.
    """
    bodies = problem.bodies
    search = _Search(bodies, list(range(len(bodies))), np.zeros(len(bodies), np.int64))
    closure = search.chosen(np.rint(offsets).astype(np.int64))
    return None if closure is None else bodies.restore(closure.least)


def _components(bodies: Bodies, component: IntArray, ends: IntArray) -> list[list[int]]:
    """Bodies of each component, the highest first."""
    tops: dict[int, int] = {}
    grouped: dict[int, list[int]] = {}
    for i, members in enumerate(bodies.members):
        number = int(component[members[0]])
        if number >= 0:
            grouped.setdefault(number, []).append(i)
            tops[number] = max(tops.get(number, 0), int(ends[members].max()))
    return [grouped[number] for number in sorted(grouped, key=lambda number: -tops[number])]


class Closure:
    """What follows from inequalities between offsets: the longest path between every two.

    ``path[i, j] = c`` says that x[j] >= x[i] + c. The last row and column are the bottom: what
    follows from it are the least offsets, and how far a body may rise follows back to it.
    """

    def __init__(self, path: IntArray) -> None:
        self.path = path

    @classmethod
    def of(cls, count: int) -> Closure:
        """Of so many bodies at offset 0 or more."""
        path = np.full((count + 1, count + 1), NEVER, np.int64)
        np.fill_diagonal(path, 0)
        path[count, :] = 0
        return cls(path)

    def copy(self) -> Closure:
        """An independent copy."""
        return Closure(self.path.copy())

    @property
    def least(self) -> IntArray:
        """The least offsets."""
        return self.path[-1, :-1]

    def add(self, i: int, j: int, distance: int) -> bool:
        """Demand x[j] >= x[i] + distance; False if that contradicts what there is. O(bodies^2)."""
        path = self.path
        if path[i, j] >= distance:
            return True
        if path[j, i] + distance > 0:
            return False
        through = path[:, i, None] + (distance + path[None, j, :])
        np.maximum(path, through, out=path)
        np.maximum(path, NEVER, out=path)
        return True


@dataclass(frozen=True, slots=True, eq=False)
class Alternatives:
    """All ranges that pairs of bodies may choose from, as columns.

    Attributes
    ----------
    pair
        Number of the pair; the rows of a pair are next to each other.
    i, j
        Its bodies, as positions among those searched.
    low, high
        ``low <= x[i] - x[j] <= high``.
    first
        Row at which each pair begins.
    """

    pair: IntArray
    i: IntArray
    j: IntArray
    low: IntArray
    high: IntArray
    first: IntArray

    @classmethod
    def of(cls, bodies: Bodies, members: list[int]) -> Alternatives:
        """Those of some of the bodies."""
        place = {body: k for k, body in enumerate(members)}
        rows: list[tuple[int, int, int, int, int]] = []
        first: list[int] = []
        for body in members:
            for other, ranges in bodies.forbidden(body).items():
                if other > body and other in place:
                    starts = [-LIMIT, *(stop for _, stop in ranges)]
                    stops = [*(start - 1 for start, _ in ranges), LIMIT]
                    number = len(first)
                    first.append(len(rows))
                    rows += [
                        (number, place[body], place[other], low, high)
                        for low, high in zip(starts, stops, strict=True)
                    ]
        pair, i, j, low, high = np.array(rows, np.int64).reshape(-1, 5).T
        return cls(pair, i, j, low, high, np.array(first, np.int64))

    def ranges(self, closure: Closure) -> tuple[IntArray, IntArray]:
        """Least and greatest difference that each row leaves, given what follows already."""
        path = closure.path
        low = np.maximum(self.low, path[self.j, self.i])
        high = np.minimum(self.high, -path[self.i, self.j])
        return low, high


class _Search:
    """Depth-first search for ever lower plans of one component."""

    def __init__(self, bodies: Bodies, members: list[int], offsets: IntArray) -> None:
        self._height = bodies.height[members]
        self._domain = [bodies.domain[i] for i in members]
        self._alternatives = Alternatives.of(bodies, members)
        self.offsets = offsets
        self.peak = self._top(self.offsets)
        self.nodes = 0
        self.proved = False

    def chosen(self, offsets: IntArray) -> Closure | None:
        """What follows from the ranges that offsets are in, or nearest to; None if nothing can."""
        table, closure = self._alternatives, self._root()
        difference = offsets[table.i] - offsets[table.j]
        off = np.maximum(table.low - difference, difference - table.high)
        for rows in np.split(np.arange(len(off)), table.first[1:]):
            if len(rows) and not self._take(closure, int(rows[off[rows].argmin()])):
                return None
        return closure if self._settle(closure) else None

    def _root(self) -> Closure:
        root = Closure.of(len(self._height))
        for k, domain in enumerate(self._domain):
            if domain.pin is not None:
                root.add(k, len(self._height), -domain.pin)
        return root

    def _take(self, closure: Closure, row: int) -> bool:
        """Add the range of a row; False if it contradicts what there is."""
        table = self._alternatives
        i, j = int(table.i[row]), int(table.j[row])
        low, high = int(table.low[row]), int(table.high[row])
        return (low == -LIMIT or closure.add(j, i, low)) and (
            high == LIMIT or closure.add(i, j, -high)
        )

    def _top(self, offsets: IntArray) -> int:
        return int((offsets + self._height)[self._height > 0].max(initial=0))

    def run(self, budget: Budget, aim: int, nodes: int | None) -> None:
        """Search until nothing lower is left, the aim is met, or the budget ends it."""
        pending = [self._root()]
        while pending:
            if self.peak <= aim or budget.expired() or (nodes is not None and self.nodes >= nodes):
                return
            self.nodes += 1
            closure = pending.pop()
            if self._cap(closure) and self._propagate(closure):
                children = list(self._branch(closure))
                if children:
                    pending += reversed(children)
                else:
                    self.offsets = closure.least.copy()
                    self.peak = self._top(self.offsets)
                    budget.report(max(self.peak, aim))
        self.proved = True

    def _cap(self, closure: Closure) -> bool:
        """Demand a peak below the best one."""
        bottom = len(self._height)
        return all(
            closure.add(k, bottom, height - (self.peak - 1))
            for k, height in enumerate(self._height.tolist())
            if height
        )

    def _propagate(self, closure: Closure) -> bool:
        """Add all that follows: offsets their domains allow, pairs with one choice left."""
        table = self._alternatives
        while True:
            if not self._settle(closure):
                return False
            low, high = table.ranges(closure)
            open_rows = low <= high
            choices = np.add.reduceat(open_rows, table.first) if len(table.first) else low
            if (choices == 0).any():
                return False
            forced = open_rows & (choices == 1)[table.pair]
            path = closure.path
            news = (path[table.j, table.i] < table.low) & (table.low > -LIMIT)
            news |= (path[table.i, table.j] < -table.high) & (table.high < LIMIT)
            rows = np.flatnonzero(forced & news).tolist()
            if not rows:
                return True
            if not all(self._take(closure, row) for row in rows):
                return False

    def _settle(self, closure: Closure) -> bool:
        """Raise the least offsets to what the domains allow."""
        bottom, moved = len(self._height), True
        while moved:
            moved = False
            for k, domain in enumerate(self._domain):
                offset = int(closure.least[k])
                allowed = domain.first(offset)
                if allowed > offset:
                    moved = True
                    if allowed >= LIMIT or not closure.add(bottom, k, allowed):
                        return False
        return True

    def _branch(self, closure: Closure) -> Iterator[Closure]:
        """Children for a pair whose rule the least solution breaks; none if it is a plan."""
        table, least = self._alternatives, closure.least
        if not len(table.first):
            return
        difference = least[table.i] - least[table.j]
        kept = (table.low <= difference) & (difference <= table.high)
        broken = np.add.reduceat(kept, table.first) == 0
        if not broken.any():
            return
        low, high = table.ranges(closure)
        push = np.maximum(low - difference, difference - high)
        push[(low > high) | ~broken[table.pair]] = LIMIT
        # The pair that costs most, whatever is chosen; of equal ones the first.
        cheapest = np.where(broken, np.minimum.reduceat(push, table.first), -1)
        pair = int(cheapest.argmax())
        rows = np.flatnonzero((table.pair == pair) & (low <= high))
        for row in sorted(rows.tolist(), key=lambda row: int(push[row])):
            child = closure.copy()
            if self._take(child, row):
                yield child

"""Exact search over rigid bodies: what `exact` does where there are holes or constraints."""

from __future__ import annotations

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

__all__ = ["LARGEST", "Alternatives", "Closure", "PairSearch", "descend", "minimise"]

LARGEST = 150  # bodies of a component: with more of them a node takes too long
HIGHEST = LIMIT // 16  # peak up to which three paths can be added up
LAST = 62  # decisions from this on share a bit
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
    inequalities rule out is left out; a pair with one choice left is decided. Each inequality
    knows the decisions it follows from: those that have no part in a contradiction are undone
    without trying their other choices.

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
    choices for a pair; pairs weighted by failures after Boussemart et al. 2004; backjumping after
    Prosser 1993.
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
        search = PairSearch(bodies, members, bodies.offsets_of(best)[members])
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
    search = PairSearch(bodies, list(range(len(bodies))), np.zeros(len(bodies), np.int64))
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
    ``why[i, j]`` are the decisions it follows from, a bit for each; those from `LAST` on share one.
    """

    def __init__(self, path: IntArray, why: IntArray) -> None:
        self.path, self.why = path, why

    @classmethod
    def of(cls, count: int) -> Closure:
        """Of so many bodies at offset 0 or more."""
        path = np.full((count + 1, count + 1), NEVER, np.int64)
        np.fill_diagonal(path, 0)
        path[count, :] = 0
        return cls(path, np.zeros_like(path))

    def copy(self) -> Closure:
        """An independent copy."""
        return Closure(self.path.copy(), self.why.copy())

    @property
    def least(self) -> IntArray:
        """The least offsets."""
        return self.path[-1, :-1]

    def add(self, i: int, j: int, distance: int, why: int = 0) -> int | None:
        """Demand x[j] >= x[i] + distance. O(bodies^2).

        Returns
        -------
        int or None
            The decisions that this contradicts, with those it is demanded for; None if nothing.
        """
        path = self.path
        if path[i, j] >= distance:
            return None
        if path[j, i] + distance > 0:
            return int(self.why[j, i]) | why
        through = path[:, i, None] + (distance + path[None, j, :])
        longer = through > path
        np.copyto(path, through, where=longer)
        np.maximum(path, NEVER, out=path)
        np.copyto(self.why, self.why[:, i, None] | self.why[None, j, :] | why, where=longer)
        return None


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


class PairSearch:
    """Depth-first search for ever lower plans of one component, which goes on where it stopped.

    Parameters
    ----------
    bodies
        Of the problem.
    members
        Those of the component.
    offsets
        Of a plan, one for each of them.
    keep_log
        Whether to keep `log`. The search begins again whenever the peak falls then: a proof is
        about one capacity.

    Attributes
    ----------
    offsets, peak
        The best plan.
    nodes
        How many there were.
    proved
        Whether there is no lower plan.
    log
        Of each pair of buffers a and b that was branched on, in preorder, ``a * len(members) + b``
        if the first child has a below b, counted within `members`.
    """

    def __init__(
        self, bodies: Bodies, members: list[int], offsets: IntArray, *, keep_log: bool = False
    ) -> None:
        self._height = bodies.height[members]
        self._domain = [bodies.domain[i] for i in members]
        self._modulus = np.array([domain.modulus for domain in self._domain], np.int64)
        self._remainder = np.array([domain.remainder for domain in self._domain], np.int64)
        self._special = np.array(
            [bool(d.blocked) or d.pin is not None or d.chunk is not None for d in self._domain],
            bool,
        )
        self._alternatives = Alternatives.of(bodies, members)
        self._weight = np.ones(len(self._alternatives.first), np.int64)
        self._decided = 0  # the pair that was decided last
        self._keep_log = keep_log
        self.offsets = offsets
        self.peak = self._top(self.offsets)
        self.nodes = 0
        self.proved = False
        self._begin()

    def _begin(self) -> None:
        self._node: Closure | None = self._root()  # to be opened next
        self._branch: list[_Frame] = []  # the decisions above it
        self.log: list[int] = []

    def improve(self, offsets: IntArray) -> None:
        """Go on from this plan, if it is lower than the best one."""
        if self._top(offsets) < self.peak:
            self.offsets, self.peak = offsets, self._top(offsets)
            if self._keep_log:
                self._begin()

    def chosen(self, offsets: IntArray) -> Closure | None:
        """What follows from the ranges that offsets are in, or nearest to; None if nothing can."""
        table, closure = self._alternatives, self._root()
        difference = offsets[table.i] - offsets[table.j]
        off = np.maximum(table.low - difference, difference - table.high)
        for rows in np.split(np.arange(len(off)), table.first[1:]):
            if len(rows) and self._take(closure, int(rows[off[rows].argmin()]), 0) is not None:
                return None
        return closure if self._settle(closure) is None else None

    def _root(self) -> Closure:
        root = Closure.of(len(self._height))
        for k, domain in enumerate(self._domain):
            if domain.pin is not None:
                root.add(k, len(self._height), -domain.pin)
        return root

    def _take(self, closure: Closure, row: int, why: int) -> int | None:
        """Add the range of a row; the decisions it contradicts, if it does."""
        table = self._alternatives
        i, j, self._decided = int(table.i[row]), int(table.j[row]), int(table.pair[row])
        low, high = int(table.low[row]), int(table.high[row])
        blame = None if low == -LIMIT else closure.add(j, i, low, why)
        if blame is None and high != LIMIT:
            blame = closure.add(i, j, -high, why)
        return blame

    def _top(self, offsets: IntArray) -> int:
        return int((offsets + self._height)[self._height > 0].max(initial=0))

    def run(self, budget: Budget, aim: int, nodes: int | None) -> None:
        """Search until nothing lower is left, the aim is met, or the budget ends it."""
        while self._node is not None:
            if self.peak <= aim or budget.expired() or (nodes is not None and self.nodes >= nodes):
                return
            self.nodes += 1
            blame = self._propagate(self._node)
            if blame is None:
                rows = self._choices(self._node)
                if rows:
                    self._branch.append(_Frame(self._node, rows, len(self.log)))
                    if self._keep_log:
                        self.log.append(self._entry(rows[0]))
                else:
                    blame = -1  # all decisions: only by another is there a lower plan
                    self.improve(self._node.least.copy())
                    budget.report(max(self.peak, aim))
                    if self._keep_log:
                        continue
            elif self._branch:
                self._weight[self._decided] += 1
            self._node = self._next(blame)
        self.proved = True

    def _next(self, blame: int | None) -> Closure | None:
        """The next node to open, after one that is refuted by the decisions to blame, if any."""
        while self._branch:
            frame, depth = self._branch[-1], len(self._branch) - 1
            bit = 1 << min(depth, LAST)
            if blame is not None and not blame & bit:  # refuted without this decision
                del self.log[frame.entry : frame.child]
                self._branch.pop()
                continue
            if blame is not None:
                frame.blame |= blame if depth > LAST else blame & ~bit
            if frame.rows:
                frame.child = len(self.log)
                child = frame.node.copy() if len(frame.rows) > 1 else frame.node
                blame = self._take(child, frame.rows.pop(0), bit)
                if blame is None:
                    return child
            else:
                blame = frame.blame
                self._branch.pop()
        return None

    def _entry(self, row: int) -> int:
        table = self._alternatives
        i, j = int(table.i[row]), int(table.j[row])
        below, above = (i, j) if table.low[row] == -LIMIT else (j, i)
        return below * len(self._height) + above

    def _propagate(self, closure: Closure) -> int | None:
        """Add all that follows from a lower peak, the domains, and pairs with one choice left.

        The decisions to blame if there is a contradiction.
        """
        table, path, why = self._alternatives, closure.path, closure.why
        bottom = len(self._height)
        for k, height in enumerate(self._height.tolist()):
            blame = closure.add(k, bottom, height - (self.peak - 1)) if height else None
            if blame is not None:
                return blame
        while True:
            blame = self._settle(closure)
            if blame is not None:
                return blame
            low, high = table.ranges(closure)
            open_rows = low <= high
            choices = np.add.reduceat(open_rows, table.first) if len(table.first) else low
            # A range is ruled out by the path to its one side or to its other.
            against = np.where(
                path[table.j, table.i] > table.high, why[table.j, table.i], why[table.i, table.j]
            )
            against[open_rows] = 0
            reasons = np.bitwise_or.reduceat(against, table.first) if len(table.first) else low
            if (choices == 0).any():
                return int(reasons[choices.argmin()])
            forced = open_rows & (choices == 1)[table.pair]
            news = (path[table.j, table.i] < table.low) & (table.low > -LIMIT)
            news |= (path[table.i, table.j] < -table.high) & (table.high < LIMIT)
            rows = np.flatnonzero(forced & news).tolist()
            if not rows:
                return None
            for row in rows:
                blame = self._take(closure, row, int(reasons[table.pair[row]]))
                if blame is not None:
                    return blame

    def _settle(self, closure: Closure) -> int | None:
        """Raise the least offsets to what the domains allow; the decisions to blame if none is."""
        bottom, moved = len(self._height), True
        while moved:
            moved = False
            off_grid = (self._remainder - closure.least) % self._modulus != 0
            for k in np.flatnonzero(off_grid | self._special).tolist():
                offset = int(closure.least[k])
                allowed = self._domain[k].first(offset)
                if allowed > offset:
                    moved, why = True, int(closure.why[bottom, k])
                    blame = why if allowed >= LIMIT else closure.add(bottom, k, allowed, why)
                    if blame is not None:
                        return blame
        return None

    def _choices(self, closure: Closure) -> list[int]:
        """Choices for a pair whose rule the least solution breaks; none if it is a plan."""
        table, least = self._alternatives, closure.least
        if not len(table.first):
            return []
        difference = least[table.i] - least[table.j]
        kept = (table.low <= difference) & (difference <= table.high)
        broken = np.add.reduceat(kept, table.first) == 0
        if not broken.any():
            return []
        low, high = table.ranges(closure)
        push = np.maximum(low - difference, difference - high)
        push[low > high] = LIMIT
        # The pair that costs most, whatever is chosen, and was often decided just before a
        # contradiction; of equal ones the first.
        cost = np.minimum.reduceat(push, table.first).astype(np.float64) * self._weight
        pair = int(np.where(broken, cost, -1).argmax())
        rows = np.flatnonzero((table.pair == pair) & (low <= high))
        return sorted(rows.tolist(), key=lambda row: int(push[row]))


@dataclass(slots=True)
class _Frame:
    """A node that has been opened."""

    node: Closure
    rows: list[int]  # choices to come
    entry: int  # of the log
    child: int = 0  # where the log of the child begins
    blame: int = 0  # decisions above that refuted those tried

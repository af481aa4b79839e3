"""Lower bounds on the peak, each with its witness."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from dsa.cliques import heaviest_clique
from dsa.kernels.ranges import cover_max
from dsa.problem import Problem

__all__ = ["Bound", "Reachable", "lower_bound"]


@dataclass(frozen=True, slots=True)
class Bound:
    """A number no plan can be below, with its reason.

    Parameters
    ----------
    value
        Bytes.
    kind
        ``"load"``: all of `ids` are live at `step`. ``"aligned load"``: they are, and their
        sizes are padded. ``"pin"``: the buffer in `ids` is pinned that high. ``"search"``: a
        solver refuted everything below. ``"clique"``: no two of `ids` can share bytes (at
        `step`, unless it is None). ``"empty"``: nothing has a size.
    step
        A step at which all of `ids` are live.
    ids
        Ids of the buffers that the bound rests on.

    Examples
    --------
    >>> print(Bound(110, "load", step=1, ids=("a", "b")))
    load at step 1 (2 buffers)
    """

    value: int
    kind: str
    step: int | None = None
    ids: tuple[Hashable, ...] = ()

    def __str__(self) -> str:
        if self.kind == "pin":
            return f"pin of buffer {self.ids[0]!r}"
        buffers = "1 buffer" if len(self.ids) == 1 else f"{len(self.ids)} buffers"
        if self.step is None:
            return f"{self.kind} of {buffers}" if self.ids else self.kind
        return f"{self.kind} at step {self.step} ({buffers})"


def lower_bound(problem: Problem) -> Bound:
    """The best bound that costs next to nothing: O(n log n).

    The maximum of the load, of the load with padding, and of the ends of pinned buffers; of
    equal ones the first in this order.

    Notes
    -----
    With padding: let g be the greatest common divisor of all alignments, so that every offset is
    a multiple of g. Of buffers live together, each but the topmost takes up its size rounded up
    to g, hence ``sum(rounded) - max(padding)``. Rounding each size up to the buffer's *own*
    alignment would be no bound: sizes 4 and 3 with alignments 4 and 1 fit into 7.

    Examples
    --------
    >>> lower_bound(Problem([(0, 2, 50), (1, 3, 50), (2, 4, 50)], alignment=32)).value
    114
    """
    if problem.constrained:
        return Bound(*heaviest_clique(problem))
    if not len(problem.sections):
        return Bound(0, "empty")
    bounds = [_load(problem), _aligned_load(problem), _pin(problem)]
    return max(bounds, key=lambda bound: bound.value)


def _load(problem: Problem) -> Bound:
    return _section_bound(problem, int(problem.sections.load.argmax()), problem.load, "load")


def _aligned_load(problem: Problem) -> Bound:
    grid = int(np.gcd.reduce(problem.alignment[problem.size > 0]))
    padding = -problem.size % grid
    if not padding.any():
        return _load(problem)
    sections = problem.sections
    change = np.zeros(len(sections) + 1, np.int64)
    np.add.at(change, sections.start, padding)
    np.add.at(change, sections.stop, -padding)
    highest = cover_max(sections.start, sections.stop, padding, len(sections))
    padded = sections.load + np.cumsum(change)[:-1] - highest
    best = int(padded.argmax())
    return _section_bound(problem, best, int(padded[best]), "aligned load")


def _pin(problem: Problem) -> Bound:
    end = np.where((problem.pin >= 0) & (problem.size > 0), problem.pin + problem.size, 0)
    top = int(end.argmax())
    return Bound(int(end[top]), "pin", int(problem.lower[top]), (problem.ids[top],))


def _section_bound(problem: Problem, section: int, value: int, kind: str) -> Bound:
    sections = problem.sections
    live = np.flatnonzero((sections.start <= section) & (section < sections.stop))
    ids = tuple(problem.ids[i] for i in live.tolist())
    return Bound(value, kind, int(sections.step[section]), ids)


class Reachable:
    """Which peaks a plan that has been pushed down can have.

    Its highest buffer stands on a buffer, and so on down to the bottom: without alignments and
    pins the peak is a sum of some of the sizes. So once every peak up to some number is refuted,
    the bound rises to the next sum, not just by one byte.

    Parameters
    ----------
    problem
        Whose sizes count.
    limit
        Peaks of interest, at most. Up to `BITS` the sums are the bits of one integer, O(n x limit
        / 64); above, they are listed if there are no more than `SUMS`. If there are more, every
        number counts as reachable; so it does with alignments or pins.

    Examples
    --------
    >>> Reachable(Problem([(0, 1, 6), (0, 1, 10)]), 16).above(6)
    10
    >>> Reachable(Problem([(0, 1, 6 * 10**9), (0, 1, 10**10)]), 16 * 10**9).above(6 * 10**9)
    10000000000
    """

    BITS = 2**20
    SUMS = 2**14

    def __init__(self, problem: Problem, limit: int) -> None:
        self._bits, self._sums = 0, np.zeros(0, np.int64)
        if problem.features:
            return
        if limit <= self.BITS:
            mask, self._bits = (1 << limit + 1) - 1, 1
            for size in problem.size.tolist():
                self._bits |= self._bits << size & mask
        elif len(problem) <= 1000:
            sums = np.zeros(1, np.int64)
            for size in problem.size.tolist():
                sums = np.union1d(sums, sums[sums <= limit - size] + size)
                if len(sums) > self.SUMS:
                    return
            self._sums = sums

    def above(self, value: int) -> int:
        """The least peak above a value that is reachable, as far as is known."""
        rest = self._bits >> value + 1
        if rest:
            return value + (rest & -rest).bit_length()
        next_sum = int(self._sums.searchsorted(value, "right"))
        return int(self._sums[next_sum]) if next_sum < len(self._sums) else value + 1

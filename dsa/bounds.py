"""Lower bounds on the peak, each with its witness."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from dsa.cliques import heaviest_clique
from dsa.kernels.ranges import cover_max
from dsa.problem import IntArray, Problem

__all__ = ["Bound", "Reachable", "lower_bound"]

ALIGNMENTS = 16  # the most frequent ones are looked at
SECTIONS = 4  # the heaviest ones are packed in all orders
STATES = 2048  # sets of their buffers, at most


@dataclass(frozen=True, slots=True)
class Bound:
    """A number no plan can be below, with its reason.

    Parameters
    ----------
    value
        Bytes.
    kind
        ``"load"``: all of `ids` are live at `step`. ``"aligned load"``: they are, and their
        sizes are padded to what divides all their alignments. ``"packing"``: they are, and in
        whatever order they lie on one another, their alignments waste that much. ``"pin"``: the
        buffer in `ids` is pinned that high. ``"search"``: a solver refuted everything below.
        ``"clique"``: no two of `ids` can share bytes (at `step`, unless it is None).
        ``"empty"``: nothing has a size.
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
    """The best bound that costs next to nothing: O(n log n) for each alignment.

    The maximum of the load, of the load with padding, of the ends of pinned buffers, and of what
    a section needs in whatever order its buffers lie; of equal ones the first in this order.

    Notes
    -----
    With padding: let g divide the alignments of some buffers live together, so that their offsets
    are multiples of g. Each but the topmost takes up its size rounded up to g, hence
    ``sum(rounded) - max(padding)``. Rounding each size up to the buffer's *own* alignment would be
    no bound: sizes 4 and 3 with alignments 4 and 1 fit into 7.

    In whatever order: the least top of some of a section's buffers is that of all but one, rounded
    up to the alignment of that one, and its size; for a lower top is never worse. It is looked up
    for the few heaviest sections, if there are not too many such sets: buffers of the same
    alignment, and of the same size modulo all alignments, count as equal.

    Examples
    --------
    >>> lower_bound(Problem([(0, 2, 50), (1, 3, 50), (2, 4, 50)], alignment=32)).value
    114
    >>> from dsa import Buffer
    >>> mixed = [Buffer(0, 1, 5, alignment=4), Buffer(0, 1, 5, alignment=6), Buffer(0, 1, 3)]
    >>> print(lower_bound(Problem(mixed)), lower_bound(Problem(mixed)).value)
    load at step 0 (3 buffers) 13
    """
    if problem.constrained:
        return Bound(*heaviest_clique(problem))
    if not len(problem.sections):
        return Bound(0, "empty")
    bounds = [_load(problem), *_aligned_loads(problem), _pin(problem)]
    best = max(bounds, key=lambda bound: bound.value)
    return max([best, *_packings(problem, best.value)], key=lambda bound: bound.value)


def _load(problem: Problem) -> Bound:
    return _section_bound(problem, int(problem.sections.load.argmax()), problem.load, "load")


def _aligned_loads(problem: Problem) -> Iterator[Bound]:
    """For each alignment the buffers that have a multiple of it; first for what divides all."""
    solid = problem.size > 0
    alignments, count = np.unique(problem.alignment[solid], return_counts=True)
    common = alignments[np.argsort(-count, kind="stable")][:ALIGNMENTS]
    for grid in {int(np.gcd.reduce(alignments)): None, **dict.fromkeys(common.tolist())}:
        some = solid & (problem.alignment % grid == 0)
        padding = np.where(some, -problem.size % grid, 0)
        if padding.any():
            yield _aligned_load(problem, some, padding)


def _aligned_load(problem: Problem, some: npt.NDArray[np.bool_], padding: IntArray) -> Bound:
    sections = problem.sections
    change = np.zeros(len(sections) + 1, np.int64)
    padded = np.where(some, problem.size + padding, 0)
    np.add.at(change, sections.start, padded)
    np.add.at(change, sections.stop, -padded)
    highest = cover_max(sections.start, sections.stop, padding, len(sections))
    height = np.cumsum(change)[:-1] - highest
    best = int(height.argmax())
    return _section_bound(problem, best, int(height[best]), "aligned load", some)


def _packings(problem: Problem, least: int) -> Iterator[Bound]:
    """Of the heaviest sections that need more in the order of alignments than a bound says."""
    if len(np.unique(problem.alignment[problem.size > 0])) == 1:
        return
    sections = problem.sections
    for section in np.argsort(-sections.load, kind="stable")[:SECTIONS].tolist():
        live = np.flatnonzero((sections.start <= section) & (section < sections.stop))
        sizes, alignments = problem.size[live].tolist(), problem.alignment[live].tolist()
        if _stacked(sizes, alignments) > least:
            yield _section_bound(problem, section, _least_top(sizes, alignments), "packing")


def _stacked(sizes: list[int], alignments: list[int]) -> int:
    """Top of buffers that lie on one another, the greatest alignments lowest."""
    top = 0
    for alignment, size in sorted(zip(alignments, sizes, strict=True), reverse=True):
        top += -top % alignment + size
    return top


def _least_top(sizes: list[int], alignments: list[int]) -> int:
    """Least top of buffers that lie on one another; 0 if there are too many ways."""
    common = math.lcm(*alignments)
    kinds = Counter(
        (size % common, alignment)
        for size, alignment in zip(sizes, alignments, strict=True)
        if size % common  # the others go to the bottom, and cost no padding
    )
    if math.prod(count + 1 for count in kinds.values()) > STATES:
        return 0
    tops = {(0,) * len(kinds): 0}
    for chosen in product(*(range(count + 1) for count in kinds.values())):
        for i, (size, alignment) in enumerate(kinds):
            if chosen[i]:
                below = tops[*chosen[:i], chosen[i] - 1, *chosen[i + 1 :]]
                top = below + -below % alignment + size
                tops[chosen] = min(top, tops.get(chosen, top))
    return sum(size - size % common for size in sizes) + tops[tuple(kinds.values())]


def _pin(problem: Problem) -> Bound:
    end = np.where((problem.pin >= 0) & (problem.size > 0), problem.pin + problem.size, 0)
    top = int(end.argmax())
    return Bound(int(end[top]), "pin", int(problem.lower[top]), (problem.ids[top],))


def _section_bound(
    problem: Problem,
    section: int,
    value: int,
    kind: str,
    some: npt.NDArray[np.bool_] | bool = True,
) -> Bound:
    sections = problem.sections
    live = np.flatnonzero((sections.start <= section) & (section < sections.stop) & some)
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

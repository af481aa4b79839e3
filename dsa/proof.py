"""Proofs that no plan fits into a capacity, and the checker that accepts or rejects them.

The checker shares no code with the search that wrote the proof. It is simple and slow: each node
is a copy of the one above with what a decision changes. It rests on this.

**Some buffers are enough.** A plan of all buffers holds a plan of some of them.

**The bottom.** A buffer that conflicts with all others has each of them wholly above or wholly
below it. Take it out and let down by its size what is above: if its size is a multiple of the
others' alignments, and none is pinned, what is left is a plan. So if the others do not fit into
the capacity less its size, all together do not fit into the capacity.

**Pushing down.** While some unpinned buffer could have a lower aligned offset, whatever lies
between, just below where it is now, let it down. This ends, and the peak has not risen. Then
each unpinned buffer *rests*: its offset is 0, or the end of a buffer below it, rounded up to its
alignment. So offsets are multiples of any unit that divides sizes and pins, and that each
alignment divides or is a multiple of; and if there are no alignments and no pins, the peak is a
sum of sizes.

**Order.** Of two buffers of the same sections and alignment, neither pinned, one may change
places with the other if they have the same size (*twins*), or, without alignments, if one rests
on the other (a *stack*): together they take up the same bytes. Of all plans within the capacity
that have been pushed down, take the one in which the first buffer, by the order of the proof,
lies lowest, then the second, and so on. In it no twin lies above a later one, and in no stack
does the later buffer lie below.

**Niches.** Let P be that plan, and let some of its buffers be placed, so that all others lie on
or above a *floor* over each section: the ends of the placed buffers, what a gap has raised it to,
and no lower than the lowest offset of any buffer waiting over the section; that is the highest
floor under it, rounded up, or its pin. A *niche* is a run of sections of one floor, the level,
bounded on each side by a higher floor, or by a place that no waiting buffer spans. A waiting
buffer that can lie at the level lies within the niche, for elsewhere the floor under it is
higher. What it rests on there ends at or below the level, so it is placed.

**Children.** Over any section of a niche, exactly one of these holds in P:

* a waiting buffer lies at the level, which is its lowest offset; it rests on a placed buffer or
  on the bottom, unless it is pinned there. If one is pinned there, there is no other case. The
  order excuses a buffer with a twin that is earlier and waiting, and one that is earlier than
  what it would be stacked on;
* none does: a *gap*. The lowest buffer that waits over the section has a lowest offset above the
  level; or it rests, above the level, on a buffer x. Then x waits too, it is not over the
  section, and it is in the niche: its end is no lower than its lowest offset and its size. The
  floor of the section rises to the least of all these.

So if each child of a node is refuted, no such P exists, and nothing fits. A node is refuted at
once if a waiting buffer would end above the capacity or has been lifted above its pin, or if
floor and bytes waiting over a section pass the capacity.

**Components.** Where no waiting buffer spans two sections, what waits on one side does not
concern the other. So the *component* of a node, the sections about the one it decides that
waiting buffers connect, is refuted by what waits there: by the lowest offset of each buffer, and
whether it could rest there. (A gap may have raised a floor to where nothing rests.) Wherever the
same buffers wait in the same sections, none of others with them, with the same lowest offsets, and
none can rest that could not before, the component is refuted again: a plan of what waits, in the
order of the proof, would be one there. Two things must not be left out:

* a decision whose children failed for another component than its own says nothing of its own;
* nor does one that has excused a buffer because of what was placed before it: the other order of
  that stack was tried elsewhere. If the component is refuted by itself, though, whatever the last
  decision was about, the node above is refuted with it, for what it relies on is placed there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dsa.errors import InvalidProofError
from dsa.gate import id_from_data, id_to_data
from dsa.pairs import replay
from dsa.problem import Buffer, Problem

__all__ = ["Proof", "check"]

BACK, SAME = -1, -2  # entries of a log that decide no section
STACKED = 1 << 12  # sets of the same number of buffers of a section that are looked at
SUMS_LISTED = 1 << 16  # how many sums are listed at most where they cannot be bits
SUMS_LIMIT = 1 << 24  # the highest capacity, in units, above which sums of sizes are looked at


@dataclass(frozen=True, slots=True)
class Proof:
    """That some buffers of a problem do not fit into a capacity.

    Made by ``Exact(proof=True)``; `check` judges it.

    Parameters
    ----------
    ids
        Ids of the buffers that were searched, in the order in which children are tried.
    bottom
        Ids of buffers that conflict with each other and with all of `ids`. They were put at the
        bottom, the first one lowest.
    unit
        Bytes in a unit; sizes, alignments and pins of `ids` are divided by it.
    capacity
        Bytes into which `ids` and `bottom` do not fit.
    symmetry
        Whether twins and stacks are tried in one order only.
    one_machine
        Whether a node is also refuted by Jackson's bound: the buffers waiting over a section,
        each no lower than its lowest offset, one above the other.
    pairs
        Whether the search decided which of two buffers lies below, instead of what lies over a
        section; `dsa.pairs` says what its log means then.
    log
        In preorder, the children of a node in order, the gap last; a child that is refuted at
        once has no entry. An entry is the section decided at a node, numbered within `ids`; or
        -1: the decision that led to what was just refuted has no part in it, so the node above
        is refuted too; or -2 - e: what waits at a node has been refuted at entry e. Empty if
        what is live together, with padding, is above the capacity.

    Examples
    --------
    >>> problem = Problem([(0, 2, 8), (1, 3, 8)], alignment=10)
    >>> proof = Proof(ids=(0, 1), capacity=17)
    >>> print(proof)
    2 buffers do not fit into 17 B, by a search of 0 nodes
    >>> check(problem, proof)
    18
    """

    ids: tuple[Hashable, ...]
    capacity: int
    bottom: tuple[Hashable, ...] = ()
    unit: int = 1
    symmetry: bool = True
    one_machine: bool = False
    pairs: bool = False
    log: tuple[int, ...] = ()

    def __str__(self) -> str:
        count, nodes = len(self.ids) + len(self.bottom), sum(entry >= 0 for entry in self.log)
        return (
            f"{count} buffers do not fit into {self.capacity} B, by a search of {nodes} "
            f"{'node' if nodes == 1 else 'nodes'}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The proof as plain data for JSON."""
        return {
            "ids": list(map(id_to_data, self.ids)),
            "bottom": list(map(id_to_data, self.bottom)),
            "unit": self.unit,
            "capacity": self.capacity,
            "symmetry": self.symmetry,
            "one_machine": self.one_machine,
            "pairs": self.pairs,
            "log": list(self.log),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Proof:
        """Read back what `to_dict` wrote.

        Raises
        ------
        InvalidProofError
            If a field is missing, unknown, or of another type.
        """
        kinds = {name: type(value) for name, value in cls((), 0).to_dict().items()}
        if data.keys() != kinds.keys():
            wrong = ", ".join(sorted(map(repr, data.keys() ^ kinds.keys())))
            raise InvalidProofError(f"the proof lacks or does not know {wrong}")
        for name, kind in kinds.items():
            if type(data[name]) is not kind:
                raise InvalidProofError(f"the proof's {name!r} cannot be {data[name]!r}")
        for entry in data["log"]:
            if type(entry) is not int:
                raise InvalidProofError(f"the proof's log cannot hold {entry!r}")
        lists = {name: id_from_data(data[name]) for name, kind in kinds.items() if kind is list}
        for id in (*lists["ids"], *lists["bottom"]):
            try:
                id_to_data(id)
            except TypeError as error:
                raise InvalidProofError(f"the proof cannot be about {id!r}: {error}") from None
        return cls(**{**data, **lists})


def check(problem: Problem, proof: Proof) -> int:
    """The lower bound in bytes that a proof establishes.

    Parameters
    ----------
    problem
        Its capacity does not matter.
    proof
        That some of its buffers do not fit into some capacity.

    Returns
    -------
    int
        The next peak above the refuted capacity that is reachable: with neither alignments nor
        pins the next sum of sizes, otherwise the next multiple of the unit.

    Raises
    ------
    InvalidProofError
        If anything does not hold, with the place in the log.

    Notes
    -----
    Complexity: for each node and each of its children the (buffer, section) pairs; of a search by
    pairs, the square of the buffers for each that is decided.
    """
    rows, base = _searched(problem, proof)
    claim = _Claim(rows, proof.unit, (proof.capacity - base) // proof.unit, proof)
    root = claim.root()
    if proof.pairs:
        pairs = [(b, x) for b, others in enumerate(claim.meets) for x in others if b < x]
        replay(claim.size, claim.alignment, claim.pin, pairs, claim.capacity, proof.log)
    elif not (claim.packed_load() > claim.capacity or claim.is_refuted(root)):
        _Replay(claim, proof.log).run(root)
    return base + claim.next_peak() * proof.unit


def _searched(problem: Problem, proof: Proof) -> tuple[list[Buffer], int]:
    """The buffers searched, in order, and the bytes at the bottom under them."""
    unknown = problem.features - {"alignment", "pins"}
    if unknown:
        raise InvalidProofError(f"proofs are not about problems with {', '.join(sorted(unknown))}")
    known, seen = set(problem.ids), set()
    for id in (*proof.bottom, *proof.ids):
        if id not in known or id in seen:
            what = "occurs twice" if id in seen else "is none of the problem's"
            raise InvalidProofError(f"buffer {id!r} {what}")
        seen.add(id)
        if not problem[problem.index(id)].size:
            raise InvalidProofError(f"buffer {id!r} has size 0: it cannot have a part in a proof")
    if not proof.ids:
        raise InvalidProofError("the proof is about no buffers")
    bottom = [problem[problem.index(id)] for id in proof.bottom]
    rows = [problem[problem.index(id)] for id in proof.ids]
    for i, row in enumerate(bottom):
        for other in (*bottom[i + 1 :], *rows):
            _check_bottom(row, other)
    _check_unit(rows, proof.unit)
    return rows, sum(row.size for row in bottom)


def _check_bottom(row: Buffer, other: Buffer) -> None:
    """Whether a buffer may go below another."""
    if row.lower >= other.upper or other.lower >= row.upper:
        why = "they do not conflict"
    elif row.offset is not None or other.offset is not None:
        why = "one of them is pinned"
    elif row.size % other.alignment:
        why = f"its size {row.size} is no multiple of the alignment {other.alignment}"
    else:
        return
    raise InvalidProofError(f"buffer {row.id!r} cannot go to the bottom, below {other.id!r}: {why}")


def _check_unit(rows: list[Buffer], unit: int) -> None:
    """Whether all offsets of a plan that has been pushed down are multiples of the unit."""
    if unit < 1:
        raise InvalidProofError(f"the unit cannot be {unit}")
    for row in rows:
        if row.size % unit or (row.offset or 0) % unit:
            raise InvalidProofError(
                f"the unit {unit} does not divide size and pin of buffer {row.id!r}"
            )
        if row.alignment % unit and unit % row.alignment:
            raise InvalidProofError(
                f"the unit {unit} neither divides the alignment {row.alignment} of buffer "
                f"{row.id!r} nor is a multiple of it"
            )


@dataclass(frozen=True, slots=True)
class _Node:
    """What waits, and what is placed, after some decisions."""

    depth: int  # how many decisions
    lowest: dict[int, int]  # of each waiting buffer: the least offset left to it
    rests: set[int]  # those that a placed buffer, the bottom or a pin supports there
    crossing: list[int]  # how many wait over each section and the one before it
    placed: dict[int, tuple[int, int]]  # of each placed buffer: its offset, and which decision

    def copy(self) -> _Node:
        """For the next decision."""
        return _Node(
            self.depth + 1,
            self.lowest.copy(),
            self.rests.copy(),
            self.crossing[:],
            self.placed.copy(),
        )


@dataclass(frozen=True, slots=True)
class _Lemma:
    """A component that has been refuted: its sections, and what waits there."""

    low: int
    high: int
    lowest: dict[int, int]
    rests: set[int]


@dataclass(slots=True)
class _Frame:
    """A node whose section is being decided."""

    node: _Node
    entry: int
    low: int  # sections low .. high - 1: the component
    high: int
    children: Iterator[_Node]  # to come
    relies_on: float  # the highest decision that was needed; -1 if the component is not to blame


class _Replay:
    """A walk through the log."""

    def __init__(self, claim: _Claim, log: tuple[int, ...]) -> None:
        self._claim, self._log, self._read = claim, log, 0
        self._cited = {SAME - entry for entry in log if entry <= SAME}
        self._lemmas: dict[int, _Lemma] = {}  # of the cited entries
        self._branch: list[_Frame] = []  # the nodes above
        self._failed: tuple[_Lemma, float] | None = None  # what was just refuted, relying on what

    def run(self, root: _Node) -> None:
        """Refute a node, by all entries of the log."""
        node: _Node | None = root
        while node is not None:
            if self._read == len(self._log):
                raise InvalidProofError(
                    f"the log ends after {self._read} entries, but not all is refuted",
                    entry=self._read,
                )
            self._refute(node)
            node = self._next()
        if self._read < len(self._log):
            left = len(self._log) - self._read
            raise self._error(f"all is refuted, yet {left} entries follow")

    def _refute(self, node: _Node) -> None:
        """Open a node, or cite an earlier entry that refutes it."""
        entry = self._log[self._read]
        if entry > SAME:
            try:
                self._branch.append(self._claim.open(node, entry, self._read))
            except InvalidProofError as error:
                raise self._error(str(error)) from error
        else:
            lemma = self._lemmas.get(SAME - entry)
            if lemma is None:
                raise self._error(f"entry {SAME - entry} is not refuted, or not by itself")
            if not self._claim.applies(lemma, node):
                raise self._error(f"what waits is not what entry {SAME - entry} refuted")
            self._failed = lemma, math.inf
        self._read += 1

    def _next(self) -> _Node | None:
        """The next node that is to be refuted; None if there is none left."""
        while self._branch:
            frame = self._branch[-1]
            if self._failed is not None:
                lemma, relies_on = self._failed
                inside = frame.low <= lemma.low and lemma.high <= frame.high
                if not inside and self._log[self._read : self._read + 1] == (BACK,):
                    self._step_back(frame)
                    continue
                frame.relies_on = min(frame.relies_on, relies_on if inside else -1)
                self._failed = None
            child = next(frame.children, None)
            if child is not None:
                return child
            self._close(self._branch.pop())
        return None

    def _step_back(self, frame: _Frame) -> None:
        """What was refuted was so before the last decision: the node above it is refuted too."""
        assert self._failed is not None
        lemma, relies_on = self._failed
        if relies_on < 0:
            raise self._error("the component refuted last was not to blame")
        if not self._claim.applies(lemma, frame.node):
            raise self._error("the last decision had a part in what was refuted")
        self._branch.pop()
        self._read += 1

    def _close(self, frame: _Frame) -> None:
        """All children of a node are refuted."""
        lemma = self._claim.lemma(frame.node, frame.low, frame.high)
        itself = frame.relies_on > frame.node.depth
        if itself and frame.entry in self._cited:
            self._lemmas[frame.entry] = lemma
        self._failed = lemma, math.inf if itself else frame.relies_on

    def _error(self, message: str) -> InvalidProofError:
        return InvalidProofError(f"entry {self._read} of the log: {message}", entry=self._read)


class _Claim:
    """The buffers in units, by their place in the order, and the capacity to be refuted."""

    def __init__(self, rows: list[Buffer], unit: int, capacity: int, proof: Proof) -> None:
        self.capacity = capacity
        self.symmetry, self.one_machine = proof.symmetry, proof.one_machine
        self.size = [row.size // unit for row in rows]
        self.alignment = [max(row.alignment // unit, 1) for row in rows]
        self.pin = [None if row.offset is None else row.offset // unit for row in rows]
        self.span, self.sections = _sections(rows)
        self.over: list[list[int]] = [[] for _ in range(self.sections)]
        for b, (start, stop) in enumerate(self.span):
            for s in range(start, stop):
                self.over[s].append(b)
        everything = range(len(rows))
        self.meets = [[x for x in everything if x != b and self._meet(b, x)] for b in everything]
        self.alike = [
            [x for x in self.meets[b] if self.pin[x] is None and self._is_alike(b, x)]
            for b in everything
        ]

    def _meet(self, b: int, x: int) -> bool:
        return self.span[b][0] < self.span[x][1] and self.span[x][0] < self.span[b][1]

    def _is_alike(self, b: int, x: int) -> bool:
        return self.span[b] == self.span[x] and self.alignment[b] == self.alignment[x]

    def next_peak(self) -> int:
        """The least peak above the capacity that a plan could have."""
        plain = max(self.alignment) == 1 and all(pin is None for pin in self.pin)
        limit = self.capacity + max(self.size)
        if not plain or self.capacity < 0:
            return self.capacity + 1
        if limit > SUMS_LIMIT:
            return self.next_listed_sum(limit)
        sums, mask = 1, (1 << limit + 1) - 1
        for size in self.size:
            sums |= sums << size & mask
        above = sums >> self.capacity + 1
        return self.capacity + (above & -above).bit_length() if above else sum(self.size)

    def next_listed_sum(self, limit: int) -> int:
        """The same where a bit for each number would be too many, if the sums are few."""
        sums = {0}
        for size in self.size:
            sums |= {total + size for total in sums if total + size <= limit}
            if len(sums) > SUMS_LISTED:
                return self.capacity + 1
        return min(total for total in sums if total > self.capacity)

    def packed_load(self) -> int:
        """Most units that buffers live together take up, whatever the rest does."""
        return max(max(self._padded(live), self._stacked(live)) for live in self.over)

    def _padded(self, live: list[int]) -> int:
        """What those take up whose alignments some number divides.

        Each but the topmost has its size rounded up to that number.
        """
        alignments, most = [self.alignment[b] for b in live], 0
        for grid in {math.gcd(*alignments), *alignments}:
            some = [b for b in live if self.alignment[b] % grid == 0]
            padding = [-self.size[b] % grid for b in some]
            most = max(most, sum(self.size[b] for b in some) + sum(padding) - max(padding))
        return most

    def _stacked(self, live: list[int]) -> int:
        """What they take up in the best order; 0 if there are too many orders to look at.

        Set by set, from the bottom up: a lower top is never worse. What is a multiple of all
        alignments can go to the bottom. Modulo these, equal sizes of equal alignment are equal.
        """
        every = math.lcm(*(self.alignment[b] for b in live))
        kinds = Counter((self.size[b] % every, self.alignment[b]) for b in live)
        kinds = Counter({kind: count for kind, count in kinds.items() if kind[0]})
        tops = {tuple(kinds.values()): 0}  # by what is left of each kind
        for _ in range(kinds.total()):
            higher: dict[tuple[int, ...], int] = {}
            for left, top in tops.items():
                for i, (size, alignment) in enumerate(kinds):
                    if left[i]:
                        rest = (*left[:i], left[i] - 1, *left[i + 1 :])
                        placed = _rounded_up(top, alignment) + size
                        higher[rest] = min(placed, higher.get(rest, placed))
            tops = higher
            if len(tops) > STACKED:
                return 0
        return min(tops.values()) + sum(self.size[b] // every * every for b in live)

    def root(self) -> _Node:
        """All wait on the bottom, or at their pins."""
        crossing = [0] * (self.sections + 1)
        for start, stop in self.span:
            for s in range(start + 1, stop):
                crossing[s] += 1
        lowest = {b: pin or 0 for b, pin in enumerate(self.pin)}
        return _Node(0, lowest, set(lowest), crossing, {})

    def waiting(self, node: _Node, low: int, high: int) -> set[int]:
        """The buffers that wait over any of the sections low .. high - 1."""
        return {b for s in range(low, high) for b in self.over[s] if b in node.lowest}

    def component(self, node: _Node, section: int) -> tuple[int, int]:
        """The sections that waiting buffers connect with this one."""
        low, high = section, section + 1
        while node.crossing[low]:
            low -= 1
        while node.crossing[high]:
            high += 1
        return low, high

    def lemma(self, node: _Node, low: int, high: int) -> _Lemma:
        """That what waits over these sections cannot be planned."""
        lowest = {b: node.lowest[b] for b in self.waiting(node, low, high)}
        return _Lemma(low, high, lowest, node.rests & lowest.keys())

    def applies(self, lemma: _Lemma, node: _Node) -> bool:
        """Whether it refutes a node."""
        waiting = self.waiting(node, lemma.low, lemma.high)
        return (
            waiting == lemma.lowest.keys()
            and all(node.lowest[b] == lowest for b, lowest in lemma.lowest.items())
            and node.rests & waiting <= lemma.rests
        )

    def is_refuted(self, node: _Node) -> bool:
        """Whether a capacity or a pin is violated, whatever comes."""
        too_high = any(self._is_too_high(node, b) for b in node.lowest)
        return too_high or self._is_too_full(node, 0, self.sections)

    def _is_too_high(self, node: _Node, b: int) -> bool:
        lowest, pin = node.lowest[b], self.pin[b]
        return lowest + self.size[b] > self.capacity or (pin is not None and lowest > pin)

    def _is_too_full(self, node: _Node, low: int, high: int) -> bool:
        return any(self._least_top(node, s) > self.capacity for s in range(low, high))

    def _least_top(self, node: _Node, section: int) -> int:
        """No plan is lower over a section."""
        waiting = [b for b in self.over[section] if b in node.lowest]
        if not waiting:
            return 0
        if not self.one_machine:
            return min(node.lowest[b] for b in waiting) + sum(self.size[b] for b in waiting)
        top = 0
        for b in sorted(waiting, key=node.lowest.__getitem__):
            top = max(top, node.lowest[b]) + self.size[b]
        return top

    def open(self, node: _Node, section: int, entry: int) -> _Frame:
        """Decide a section: its component, and the children of the node, to be asked for."""
        over = []
        if 0 <= section < self.sections:
            over = [b for b in self.over[section] if b in node.lowest]
        if not over:
            raise InvalidProofError(f"no buffer waits over section {section}")
        level = min(node.lowest[b] for b in over)
        left, right = self._niche(node, section, level)
        resting, relies_on = [], math.inf
        for b in over:
            if node.lowest[b] == level and b in node.rests:
                excuse = self._excuse(node, b, level)
                relies_on = min(relies_on, math.inf if excuse is None else excuse)
                resting += [b] if excuse is None else []
        gap = self._gap(node, over, level, self.waiting(node, left, right).difference(over))
        pinned = [b for b in over if self.pin[b] is not None and node.lowest[b] == level]
        if pinned:
            resting, relies_on, gap = pinned, math.inf, None
        children = self._children(node, resting, level, section, gap)
        return _Frame(node, entry, *self.component(node, section), children, relies_on)

    def _gap(self, node: _Node, over: list[int], level: int, beside: set[int]) -> int | None:
        """How far the floor rises if nothing lies at the level; None if nothing fits then."""
        floors = [node.lowest[b] for b in over if node.lowest[b] > level]
        floors += [node.lowest[x] + self.size[x] for x in beside]
        floor = min(floors, default=self.capacity)
        return floor if floor + sum(self.size[b] for b in over) <= self.capacity else None

    def _children(
        self, node: _Node, resting: list[int], level: int, section: int, gap: int | None
    ) -> Iterator[_Node]:
        """Those that are not refuted at once."""
        for b in resting:
            child = node.copy()
            if self._place(child, b, level):
                yield child
        if gap is not None:
            child = node.copy()
            if self._lift(child, self.over[section], gap, (section, section + 1), solid=False):
                yield child

    def _niche(self, node: _Node, section: int, level: int) -> tuple[int, int]:
        """The sections left .. right - 1 of the niche that a section lies in."""
        left, right = section, section + 1
        while node.crossing[left] and self._floor(node, left - 1) == level:
            left -= 1
        while node.crossing[right] and self._floor(node, right) == level:
            right += 1
        for at, beside in ((left, left - 1), (right, right)):
            if node.crossing[at] and self._floor(node, beside) < level:
                raise InvalidProofError(
                    f"section {section} is in no niche: the floor is lower over section {beside}"
                )
        return left, right

    def _floor(self, node: _Node, section: int) -> int:
        return min(node.lowest[b] for b in self.over[section] if b in node.lowest)

    def _excuse(self, node: _Node, b: int, level: int) -> float | None:
        """If the order forbids a buffer at this level: which decision that relies on.

        Infinity for none. None if nothing forbids it.
        """
        if not self.symmetry:
            return None
        for x in self.alike[b]:
            if x in node.lowest:
                if x < b and self.size[x] == self.size[b]:
                    return math.inf
            elif x > b and self.alignment[b] == 1:
                offset, decision = node.placed[x]
                if offset + self.size[x] == level:
                    return decision
        return None

    def _place(self, node: _Node, b: int, offset: int) -> bool:
        """Place a buffer; False if the node is refuted at once then."""
        start, stop = self.span[b]
        del node.lowest[b]
        node.rests.discard(b)
        node.placed[b] = offset, node.depth
        for s in range(start + 1, stop):
            node.crossing[s] -= 1
        return self._lift(node, self.meets[b], offset + self.size[b], (start, stop), solid=True)

    def _lift(
        self, node: _Node, buffers: list[int], floor: int, span: tuple[int, int], *, solid: bool
    ) -> bool:
        """Lift what waits to a floor over some sections; False if the node is refuted at once then.

        A floor that is `solid` supports what comes to lie on it.
        """
        low, high = span
        for b in buffers:
            if b not in node.lowest:
                continue
            lowest = _rounded_up(floor, self.alignment[b])
            if lowest > node.lowest[b]:
                node.lowest[b] = lowest
                node.rests.discard(b)
                if self._is_too_high(node, b):
                    return False
                low, high = min(low, self.span[b][0]), max(high, self.span[b][1])
            if solid and lowest == node.lowest[b]:
                node.rests.add(b)
        return not self._is_too_full(node, low, high)


def _sections(rows: list[Buffer]) -> tuple[list[tuple[int, int]], int]:
    """For each buffer its first section and the one after its last, and how many there are.

    A new section begins where the first buffer starts after one has ended.
    """
    events = sorted(
        [(row.upper, 0, b) for b, row in enumerate(rows)]
        + [(row.lower, 1, b) for b, row in enumerate(rows)]
    )
    start, stop = {}, {}
    count, ended = 0, True
    for _, starts, b in events:
        if starts:
            count += ended
            start[b] = count - 1
        else:
            stop[b] = count
        ended = not starts
    return [(start[b], stop[b]) for b in range(len(rows))], count


def _rounded_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple

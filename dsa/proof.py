"""Proofs that no plan fits into a capacity, and the checker that accepts or rejects them.

The checker shares no code with the search that wrote the proof. It is simple and slow: it
computes what it needs from the buffers placed so far, again at each node. It rests on this.

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
floor and bytes waiting over a section pass the capacity. Components need no rule: where
unplaced buffers have fallen apart, any section of the part that cannot be planned will do.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dsa.errors import InvalidProofError
from dsa.problem import Buffer, Problem

__all__ = ["Proof", "check"]

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
    log
        The section decided at each node, numbered within `ids`, in preorder: the children of a
        node in order, the gap last. A child that is refuted at once has no entry, nor has a
        decision that was found to have no part in the refutation. Empty if the load, with
        padding, is above the capacity.

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
    log: tuple[int, ...] = ()

    def __str__(self) -> str:
        count, nodes = len(self.ids) + len(self.bottom), len(self.log)
        return (
            f"{count} buffers do not fit into {self.capacity} B, by a search of {nodes} "
            f"{'node' if nodes == 1 else 'nodes'}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The proof as plain data for JSON."""
        return {
            "ids": list(self.ids),
            "bottom": list(self.bottom),
            "unit": self.unit,
            "capacity": self.capacity,
            "symmetry": self.symmetry,
            "one_machine": self.one_machine,
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
        for id in (*data["ids"], *data["bottom"]):
            if not isinstance(id, (str, int)):
                raise InvalidProofError(f"the proof cannot be about {id!r}")
        lists = {name: tuple(data[name]) for name, kind in kinds.items() if kind is list}
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
    Complexity: for each node and each of its children the (buffer, section) pairs.
    """
    rows, base = _searched(problem, proof)
    claim = _Claim(rows, proof.unit, (proof.capacity - base) // proof.unit, proof)
    root = _Node({}, [0] * claim.sections)
    if not (claim.padded_load() > claim.capacity or claim.is_refuted(root)):
        _replay(claim, root, proof.log)
    return base + claim.next_peak() * proof.unit


def _replay(claim: _Claim, root: _Node, log: tuple[int, ...]) -> None:
    """Walk through the log: each entry opens the next node that is not refuted at once."""
    branch: list[Iterator[_Node]] = [iter([root])]  # of each node above, the children to come

    def advance() -> _Node | None:
        while branch:
            for child in branch[-1]:
                if not claim.is_refuted(child):
                    return child
            branch.pop()
        return None

    for entry, section in enumerate(log):
        node = advance()
        if node is None:
            raise InvalidProofError(
                f"entry {entry} of the log: all is refuted, yet {len(log) - entry} entries follow",
                entry=entry,
            )
        try:
            branch.append(iter(claim.children(node, section)))
        except InvalidProofError as error:
            raise InvalidProofError(f"entry {entry} of the log: {error}", entry=entry) from error
    if advance() is not None:
        raise InvalidProofError(
            f"the log ends after {len(log)} entries, but not all is refuted", entry=len(log)
        )


def _searched(problem: Problem, proof: Proof) -> tuple[list[Buffer], int]:
    """The buffers searched, in order, and the bytes at the bottom under them."""
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
    """What is decided: offsets of the placed buffers, and the ground that they and gaps make."""

    offset: dict[int, int]
    ground: list[int]  # by section


@dataclass(frozen=True, slots=True)
class _View:
    """What follows from a node."""

    lowest: dict[int, int]  # of each waiting buffer
    floor: list[int]  # by section
    over: list[list[int]]  # buffers waiting over each section, in order


class _Claim:
    """The buffers in units, by their place in the order, and the capacity to be refuted."""

    def __init__(self, rows: list[Buffer], unit: int, capacity: int, proof: Proof) -> None:
        self.capacity = capacity
        self.symmetry, self.one_machine = proof.symmetry, proof.one_machine
        self.size = [row.size // unit for row in rows]
        self.alignment = [max(row.alignment // unit, 1) for row in rows]
        self.pin = [None if row.offset is None else row.offset // unit for row in rows]
        self.span, self.sections = _sections(rows)

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

    def padded_load(self) -> int:
        """Most units that buffers live together take up, whatever the rest does.

        Each but the topmost has its size rounded up to what divides all alignments.
        """
        grid, most = math.gcd(*self.alignment), 0
        for live in self.view(_Node({}, [0] * self.sections)).over:
            padding = [-self.size[b] % grid for b in live]
            most = max(most, sum(self.size[b] for b in live) + sum(padding) - max(padding))
        return most

    def view(self, node: _Node) -> _View:
        """Lowest offsets and floors, by their definitions."""
        lowest: dict[int, int] = {}
        over: list[list[int]] = [[] for _ in range(self.sections)]
        floor = list(node.ground)
        for b, (start, stop) in enumerate(self.span):
            if b in node.offset:
                continue
            ground = _rounded_up(max(node.ground[start:stop]), self.alignment[b])
            lowest[b] = max(ground, self.pin[b] or 0)
            for s in range(start, stop):
                over[s].append(b)
        for s, waiting in enumerate(over):
            floor[s] = max(floor[s], min((lowest[b] for b in waiting), default=0))
        return _View(lowest, floor, over)

    def is_refuted(self, node: _Node) -> bool:
        """Whether a capacity or a pin is violated, whatever comes."""
        view = self.view(node)
        for b, at in view.lowest.items():
            pin = self.pin[b]
            if at + self.size[b] > self.capacity or (pin is not None and at > pin):
                return True
        return any(
            self._least_top(view, s) > self.capacity
            for s, waiting in enumerate(view.over)
            if waiting
        )

    def _least_top(self, view: _View, section: int) -> int:
        """No plan is lower over a section."""
        if not self.one_machine:
            return view.floor[section] + sum(self.size[b] for b in view.over[section])
        top = view.floor[section]
        for b in sorted(view.over[section], key=view.lowest.__getitem__):
            top = max(top, view.lowest[b]) + self.size[b]
        return top

    def children(self, node: _Node, section: int) -> Iterator[_Node]:
        """The children of a node at a section, in order, each once it is asked for."""
        view = self.view(node)
        if not (0 <= section < self.sections and view.over[section]):
            raise InvalidProofError(f"no buffer waits over section {section}")
        left, right = self._niche(view, section)
        return self._children(node, view, section, left, right)

    def _niche(self, view: _View, section: int) -> tuple[int, int]:
        """The sections left .. right - 1 of the niche that a section lies in."""
        level, left, right = view.floor[section], section, section + 1
        while self._spanned(view, left) and view.floor[left - 1] == level:
            left -= 1
        while self._spanned(view, right) and view.floor[right] == level:
            right += 1
        for at, beside in ((left, left - 1), (right, right)):
            if self._spanned(view, at) and view.floor[beside] < level:
                raise InvalidProofError(
                    f"section {section} is in no niche: the floor is lower over section {beside}"
                )
        return left, right

    def _spanned(self, view: _View, section: int) -> bool:
        """Whether a waiting buffer is over this section and the one before it."""
        return 0 < section < self.sections and any(
            self.span[b][0] < section for b in view.over[section]
        )

    def _children(
        self, node: _Node, view: _View, section: int, left: int, right: int
    ) -> Iterator[_Node]:
        level, over = view.floor[section], view.over[section]
        resting = [b for b in over if view.lowest[b] == level]
        for b in resting:
            if self.pin[b] is not None:
                yield self._place(node, b, level)
                return
        for b in resting:
            if self._is_supported(node, b, level) and not self._is_excused(node, b, level):
                yield self._place(node, b, level)
        next_tops = [view.lowest[b] for b in over if view.lowest[b] > level]
        for x, lowest in view.lowest.items():
            start, stop = self.span[x]
            if start < right and left < stop and not start <= section < stop:
                next_tops.append(lowest + self.size[x])
        if next_tops and min(next_tops) + sum(self.size[b] for b in over) <= self.capacity:
            ground = list(node.ground)
            ground[section] = min(next_tops)
            yield _Node(node.offset, ground)

    def _is_supported(self, node: _Node, b: int, level: int) -> bool:
        """Whether a buffer at this level would rest on the bottom or on a placed buffer."""
        return level == 0 or any(
            self._meet(b, x) and _rounded_up(at + self.size[x], self.alignment[b]) == level
            for x, at in node.offset.items()
        )

    def _is_excused(self, node: _Node, b: int, level: int) -> bool:
        """Whether the order forbids a buffer at this level."""
        if not self.symmetry:
            return False
        for x in range(len(self.span)):
            alike = self.span[x] == self.span[b] and self.alignment[x] == self.alignment[b]
            if not alike or self.pin[x] is not None:
                continue
            waiting = x not in node.offset
            if waiting and x < b and self.size[x] == self.size[b]:
                return True
            stacked = not waiting and node.offset[x] + self.size[x] == level
            if stacked and x > b and self.alignment[b] == 1:
                return True
        return False

    def _meet(self, b: int, x: int) -> bool:
        return self.span[b][0] < self.span[x][1] and self.span[x][0] < self.span[b][1]

    def _place(self, node: _Node, b: int, offset: int) -> _Node:
        ground, top = list(node.ground), offset + self.size[b]
        for s in range(*self.span[b]):
            ground[s] = max(ground[s], top)
        return _Node({**node.offset, b: offset}, ground)


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

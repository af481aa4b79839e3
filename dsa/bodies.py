"""Buffers as rigid bodies: the one form in which solvers see holes and constraints.

A *body* is a set of parts in (steps x bytes) that one offset moves. A plain buffer is a body of
one part; a hole takes a part out of it; buffers at a fixed distance, aliases among them, are one
body::

    bytes  +------+      +---+       What is between two bodies is only which differences of
           |  a   +------+ a |       their offsets are forbidden: for two plain buffers a and b
           +------+ hole +---+       that are live together all of -size(b) + 1 .. size(a) - 1.
           |  b (0 bytes above)|     What a body may do alone is its `Domain`.
    steps  0      2      4   6
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, NoReturn

import numpy as np

from dsa.constraints import Constraints
from dsa.errors import InvalidProblemError
from dsa.gate import FREE, LIMIT, IntArray

__all__ = ["Bodies", "Domain", "Ranges", "merge"]

REMEMBERED = 5_000_000  # rows of `against`: more are found again each time

# Half-open ranges of integers, disjoint and in order.
Ranges = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Domain:
    """Where a body may lie, whatever else there is.

    Parameters
    ----------
    modulus, remainder
        Its offset is `remainder` more than a multiple of `modulus`.
    blocked
        Ranges of offsets at which it would use reserved bytes.
    pin
        The only offset; None if there are others.
    chunk
        No member may lie across a multiple of this; None if there is no such rule for any.
    within
        Ranges of what the offset may be modulo `chunk`.
    """

    modulus: int = 1
    remainder: int = 0
    blocked: Ranges = ()
    pin: int | None = None
    chunk: int | None = None
    within: Ranges = ()

    def first(self, offset: int) -> int:
        """The lowest allowed offset that is not below this one; `LIMIT` if there is none.

        Examples
        --------
        >>> Domain(modulus=8, blocked=((6, 20),)).first(3)
        24
        >>> Domain(chunk=10, within=((0, 7),)).first(7)
        10
        """
        if self.pin is not None:
            return self.pin if offset <= self.pin else LIMIT
        while offset < LIMIT:
            moved = self._past_blocked(self._on_grid(offset))
            if moved == offset:
                return offset
            offset = moved
        return LIMIT

    def _on_grid(self, offset: int) -> int:
        """The first offset that is aligned, and at which no member lies across a chunk."""
        offset += (self.remainder - offset) % self.modulus
        if self.chunk is None:
            return offset
        at, step = offset % self.chunk, self.modulus % self.chunk
        steps = [
            first_multiple(step, self.chunk, (start - at) % self.chunk, stop - start)
            for start, stop in self.within
        ]
        least = min((count for count in steps if count is not None), default=LIMIT)
        return offset + self.modulus * least

    def _past_blocked(self, offset: int) -> int:
        for start, stop in self.blocked:
            if start <= offset < stop:
                return stop
        return offset


class _Part(NamedTuple):
    """Bytes of a buffer, relative to the offset of its body, in some steps."""

    body: int
    buffer: int
    lower: int
    upper: int
    start: int
    stop: int


class Bodies:
    """The bodies of a problem, numbered in the order of their first buffers.

    Made by `Problem.bodies`; constraints that contradict one another are refused on the way.

    Attributes
    ----------
    body, shift
        For each buffer its body, and its offset less that of the body.
    height
        For each body the end of its highest member, above the body's offset.
    domain
        For each body where it may lie.
    parts
        Array of shape (parts, 6): body, buffer, lower, upper, start, stop. The bytes are
        relative to the offset of the body.
    """

    def __init__(
        self,
        ids: Sequence[Hashable],
        lower: list[int],
        upper: list[int],
        size: list[int],
        alignment: list[int],
        pin: list[int],
        *,
        holes: list[list[int]],
        constraints: Constraints,
    ) -> None:
        self._ids, self._lower, self._upper, self._size = ids, lower, upper, size
        self._alignment = alignment
        self._constraints = constraints
        self._position = {id: i for i, id in enumerate(ids)}
        self.body, self.shift = self._tie()
        count = int(self.body.max(initial=-1)) + 1
        self.members: list[list[int]] = [[] for _ in range(count)]
        for i, body in enumerate(self.body.tolist()):
            self.members[body].append(i)
        ends = self.shift + np.array(size, np.int64)
        self.height = np.zeros(count, np.int64)
        np.maximum.at(self.height, self.body, np.where(np.array(size, np.int64) > 0, ends, 0))
        self._may_share, self._apart, self._in_place = self._relations()
        self._parts: list[list[_Part]] = [[] for _ in range(count)]
        for part in self._find_parts(holes):
            self._parts[part.body].append(part)
        listed = [part for parts in self._parts for part in parts]
        self.parts = np.array(listed, np.int64).reshape(-1, 6)
        self.domain = [self._domain(body, pin) for body in range(count)]
        self._against: dict[int, IntArray] = {}
        self._remembered = 0
        self._forbidden: dict[int, dict[int, Ranges]] = {}

    def __len__(self) -> int:
        return len(self.height)

    # -- what a solver asks --------------------------------------------------------------------

    def against(self, i: int) -> tuple[IntArray, IntArray, IntArray]:
        """Columns (other, low, high): body `i` may not lie at ``offset[other] + [low, high)``.

        Ranges of one other body may overlap. O(parts) for each part of `i`, the first time.
        """
        known = self._against.get(i)
        if known is None:
            rows = [self._of_part(part) for part in self._parts[i]]
            rows += [self._of_apart(i)] if self._apart else []
            known = np.concatenate(rows, axis=1) if rows else np.zeros((3, 0), np.int64)
            if self._remembered < REMEMBERED:
                self._remembered += known.shape[1]
                self._against[i] = known
        return known[0], known[1], known[2]

    def forbidden(self, i: int) -> dict[int, Ranges]:
        """For each body that `i` is not free of, the ranges of `against`, merged."""
        known = self._forbidden.get(i)
        if known is None:
            ranges = defaultdict(list)
            for other, low, high in zip(*(c.tolist() for c in self.against(i)), strict=True):
                ranges[other].append((low, high))
            known = {other: merge(rows) for other, rows in sorted(ranges.items())}
            self._forbidden[i] = known
        return known

    def restore(self, offsets: IntArray) -> IntArray:
        """Offsets of the buffers, given those of the bodies."""
        result: IntArray = offsets[self.body] + self.shift
        return result

    def offsets_of(self, offsets: IntArray) -> IntArray:
        """Offsets of the bodies, given those of the buffers: the inverse of `restore`."""
        first = [members[0] for members in self.members]
        result: IntArray = np.asarray(offsets)[first] - self.shift[first]
        return result

    def component(self) -> IntArray:
        """For each buffer the number of its component; -1 for those whose bodies have no bytes."""
        number = np.full(len(self), -1, np.int64)
        found = 0
        for first in range(len(self)):
            if number[first] >= 0 or not self.height[first]:
                continue
            pending = [first]
            number[first] = found
            while pending:
                for other in set(self.against(pending.pop())[0].tolist()):
                    if number[other] < 0:
                        number[other] = found
                        pending.append(other)
            found += 1
        result: IntArray = number[self.body]
        return result

    @cached_property
    def load(self) -> tuple[int, int | None]:
        """Most bytes that bodies keep at one step, and the first such step; None for no bytes."""
        most: tuple[int, int | None] = (0, None)
        for step, live in self.sections():
            total = sum(live.values())
            if total > most[0]:
                most = total, step
        return most

    def sections(self) -> Iterator[tuple[int, dict[int, int]]]:
        """Steps at which a part begins, and the bytes that each body keeps at it."""
        events = [(int(p[2]), 1, k) for k, p in enumerate(self.parts)]
        events += [(int(p[3]), 0, k) for k, p in enumerate(self.parts)]
        live: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)
        kept: dict[int, int] = {}
        events.sort()
        for at, (step, begins, k) in enumerate(events):
            body, _, _, _, start, stop = self.parts[k].tolist()
            if begins:
                live[body][k] = (start, stop)
            else:
                del live[body][k]
            kept[body] = sum(b - a for a, b in merge(live[body].values()))
            if not kept[body]:
                del kept[body]
            if begins and (at + 1 == len(events) or events[at + 1][:2] != (step, 1)):
                yield step, kept

    def certain(self, i: int, j: int) -> bool:
        """Whether two bodies can never share a byte of their heights, wherever they lie."""
        wide = (1 - int(self.height[i]), int(self.height[j]))
        return any(low <= wide[0] and high >= wide[1] for low, high in self.forbidden(i).get(j, ()))

    def keeps_all(self, i: int) -> bool:
        """Whether each byte up to the body's height is kept at some step."""
        kept = merge((part.start, part.stop) for part in self._parts[i])
        return not self.height[i] or kept == ((0, int(self.height[i])),)

    def odd(self) -> list[int]:
        """Bodies that may be in cliques which share no step."""
        return [
            i
            for i, members in enumerate(self.members)
            if len(self._parts[i]) > 1 or any(member in self._apart for member in members)
        ]

    def loose(self, i: int) -> set[int]:
        """Bodies that may share bytes with body `i` although both keep them at one step."""
        buffers = [
            other
            for member in self.members[i]
            for other in (*self._may_share.get(member, ()), *self._in_place.get(member, ()))
        ]
        return {int(self.body[other]) for other in buffers} - {i}

    def _of_part(self, part: _Part) -> IntArray:
        """Rows of `against` for one part."""
        body, buffer, lower, upper, start, stop = self.parts.T
        meets = (lower < part.upper) & (upper > part.lower) & (body != part.body)
        meets &= ~np.isin(buffer, list(self._may_share.get(part.buffer, ())))
        rows = np.array([body[meets], start[meets] - part.stop + 1, stop[meets] - part.start])
        who = buffer[meets]
        for other in sorted(self._in_place.get(part.buffer, ())):
            # All but the one difference at which both buffers have the same offset.
            same, of = int(self.shift[other] - self.shift[part.buffer]), who == other
            above = rows[:, of]
            above[1] = np.maximum(above[1], same + 1)
            rows[2, of] = np.minimum(rows[2, of], same)
            rows, who = np.concatenate([rows, above], axis=1), np.concatenate([who, who[of]])
        return rows[:, rows[1] < rows[2]]

    def _of_apart(self, i: int) -> IntArray:
        """Rows of `against` for the pairs that never share bytes."""
        rows = [
            (self.body[other], a - b - self._size[member] + 1, a - b + self._size[other])
            for member in self.members[i]
            for other in sorted(self._apart.get(member, ()))
            for a, b in [(int(self.shift[other]), int(self.shift[member]))]
            if self.body[other] != i and self._size[member] and self._size[other]
        ]
        return np.array(rows, np.int64).reshape(-1, 3).T

    # -- buffers to bodies ---------------------------------------------------------------------

    def _at(self, id: Hashable, field: str) -> int:
        try:
            return self._position[id]
        except KeyError:
            raise InvalidProblemError(
                f"{field}: there is no buffer {id!r}", id=id, field=field, value=id
            ) from None

    def _tie(self) -> tuple[IntArray, IntArray]:
        """Body and shift of each buffer; the lowest member of a body has shift 0."""
        ties: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
        for field in ("aliases", "relative"):
            for a, b, delta in getattr(self._constraints, field):
                i, j = self._at(a, field), self._at(b, field)
                ties[i].append((j, delta, field))
                ties[j].append((i, -delta, field))
        n = len(self._ids)
        body, shift = np.full(n, -1, np.int64), np.zeros(n, np.int64)
        for count, first in enumerate(self._firsts(body)):
            body[first], place, pending = count, {first: 0}, [first]
            while pending:
                i = pending.pop()
                for j, delta, field in ties.get(i, ()):
                    wanted = place[i] + delta
                    if j not in place:
                        body[j], place[j] = count, wanted
                        pending.append(j)
                    elif place[j] != wanted:
                        self._refuse(
                            i,
                            j,
                            field,
                            f"is to lie {delta} bytes above buffer {self._ids[i]!r}, but other "
                            f"aliases or relative offsets put it {place[j] - place[i]} above",
                        )
            lowest = min(place, key=place.__getitem__)
            for i, at in place.items():
                shift[i] = min(at - place[lowest], LIMIT)
                if shift[i] == LIMIT:
                    far = f"lies 2**62 bytes or more above buffer {self._ids[lowest]!r}"
                    self._refuse(lowest, i, "relative", far)
        return body, shift

    @staticmethod
    def _firsts(body: IntArray) -> Iterator[int]:
        """Buffers that have no body yet, as the caller gives them one."""
        return (i for i in range(len(body)) if body[i] < 0)

    def _relations(self) -> tuple[dict[int, set[int]], dict[int, set[int]], dict[int, set[int]]]:
        """By position: who may share bytes, who never may, who may be in place of whom."""
        tables = []
        for field in ("exclusive", "apart", "in_place"):
            table: dict[int, set[int]] = defaultdict(set)
            for a, b in getattr(self._constraints, field):
                i, j = self._at(a, field), self._at(b, field)
                if field == "in_place":
                    self._check_in_place(i, j)
                table[i].add(j)
                table[j].add(i)
            tables.append(table)
        may_share, apart, in_place = tables
        for storage in self._storages():
            for i in storage:
                may_share[i] |= storage - {i}
        for i in list(apart):
            for j in apart[i] & may_share.get(i, set()):
                also = "is to be apart from buffer {!r}, and exclusive or an alias of it"
                self._refuse(i, j, "apart", also.format(self._ids[i]))
            for j in apart[i] & in_place.get(i, set()):
                also = "is to be apart from buffer {!r}, and in place of it or the reverse"
                self._refuse(i, j, "apart", also.format(self._ids[i]))
        return may_share, apart, in_place

    def _check_in_place(self, i: int, j: int) -> None:
        born, dies = self._lower[j], self._upper[i]
        if dies not in (born, born + 1):
            self._refuse(
                i,
                j,
                "in_place",
                f"cannot be in place of buffer {self._ids[i]!r}: it is born at step {born}, and "
                f"the other dies at {dies}; its last step must be the one that writes this one",
            )
        if self._size[j] > self._size[i]:
            self._refuse(
                i,
                j,
                "in_place",
                f"cannot be in place of buffer {self._ids[i]!r}: it has {self._size[j]} bytes, "
                f"the other only {self._size[i]}",
            )

    def _storages(self) -> list[set[int]]:
        """Buffers connected by aliases."""
        storage: dict[int, set[int]] = {}
        for a, b, _ in self._constraints.aliases:
            i, j = self._at(a, "aliases"), self._at(b, "aliases")
            joined = storage.get(i, {i}) | storage.get(j, {j})
            for member in joined:
                storage[member] = joined
        return list({id(members): members for members in storage.values()}.values())

    def _find_parts(self, holes: list[list[int]]) -> Iterator[_Part]:
        of: dict[int, list[list[int]]] = defaultdict(list)
        for i, *hole in holes:
            of[i].append(hole)
        for i, size in enumerate(self._size):
            body, shift = int(self.body[i]), int(self.shift[i])
            step = self._lower[i]
            for lower, upper, start, stop in [*of[i], [self._upper[i]] * 2 + [0, 0]]:
                if step < lower and size:
                    yield _Part(body, i, step, lower, shift, shift + size)
                if lower < upper and start < stop:
                    yield _Part(body, i, lower, upper, shift + start, shift + stop)
                step = upper

    def _domain(self, body: int, pin: list[int]) -> Domain:
        members = self.members[body]
        solid = tuple((int(self.shift[i]), self._size[i]) for i in members if self._size[i])
        modulus, remainder = 1, 0
        for i in members:
            joined = _both(modulus, remainder, self._alignment[i], -int(self.shift[i]))
            if joined is None:
                self._refuse(
                    members[0],
                    i,
                    "alignment",
                    f"lies at a fixed distance from buffer {self._ids[members[0]]!r}, and at no "
                    "such distance are both aligned",
                )
            modulus, remainder = joined
        kept = {(part.start, part.stop) for part in self._parts[body]}
        blocked = merge(
            (begin - stop + 1, end - start)
            for begin, end in self._constraints.reserved
            for start, stop in kept
        )
        chunk = self._constraints.chunk if solid else None
        within = () if chunk is None else _within(chunk, solid)
        domain = Domain(modulus, remainder, blocked, None, chunk, within)
        return replace(domain, pin=self._pin(members, pin, domain))

    def _pin(self, members: list[int], pin: list[int], domain: Domain) -> int | None:
        """The offset of the body, if one of its members is pinned."""
        pinned = [i for i in members if pin[i] != FREE]
        if not pinned:
            return None
        offsets = [pin[i] - int(self.shift[i]) for i in pinned]
        for i, offset in zip(pinned, offsets, strict=True):
            if offset != offsets[0]:
                self._refuse(
                    pinned[0],
                    i,
                    "offset",
                    f"is pinned to {pin[i]}, which is not at its "
                    f"distance from buffer {self._ids[pinned[0]]!r}, pinned to {pin[pinned[0]]}",
                )
        if offsets[0] < 0 or domain.first(offsets[0]) != offsets[0]:
            i, why = next(self._broken(members, offsets[0]))
            who = "it" if i == pinned[0] else f"buffer {self._ids[i]!r}, at a distance from it,"
            self._refuse_one(
                pinned[0], "offset", f"is pinned to {pin[pinned[0]]}, where {who} would {why}"
            )
        return offsets[0]

    def _broken(self, members: list[int], offset: int) -> Iterator[tuple[int, str]]:
        """Rules that members of a body break alone, with the body at this offset."""
        chunk = self._constraints.chunk
        for i in members:
            at = offset + int(self.shift[i])
            end = at + self._size[i]
            if at < 0:
                yield i, f"lie at {at}, below 0"
            if at % self._alignment[i]:
                yield i, f"lie at {at}, no multiple of its alignment {self._alignment[i]}"
            if chunk and self._size[i] and at // chunk != (end - 1) // chunk:
                yield i, f"lie across a multiple of {chunk}"
        for part in self._parts[int(self.body[members[0]])]:
            for start, stop in self._constraints.reserved:
                low, high = max(offset + part.start, start), min(offset + part.stop, stop)
                if low < high:
                    yield part.buffer, f"use reserved bytes [{low}, {high})"

    # -- checks that need all of it --------------------------------------------------------------

    def check(self) -> None:
        """Refuse bodies that break a rule wherever they lie, and pins that do.

        Raises
        ------
        InvalidProblemError
            Naming both buffers.
        """
        for body, members in enumerate(self.members):
            if len(members) > 1:
                self._check_inside(body, members)
        self._check_room()
        pinned = [i for i in range(len(self)) if self.domain[i].pin is not None]
        for i in pinned:
            other, low, high = self.against(i)
            for j, a, b in zip(other.tolist(), low.tolist(), high.tolist(), strict=True):
                mine, its = self.domain[i].pin, self.domain[j].pin
                if mine is not None and its is not None and a <= mine - its < b:
                    self._refuse(
                        self.members[i][0],
                        self.members[j][0],
                        "offset",
                        f"is pinned to bytes that buffer {self._ids[self.members[i][0]]!r}, "
                        "pinned too, must have to itself",
                    )

    def _check_room(self) -> None:
        """Every body fits somewhere, and all of them, one upon another, below 2**62."""
        rows = list(zip(self.domain, self.members, self.height.tolist(), strict=True))
        top = max((d.pin + height for d, _, height in rows if d.pin is not None), default=0)
        for domain, members, height in rows:
            if domain.pin is not None:
                continue
            if domain.first(0) >= LIMIT:
                rules = {
                    "its alignment": domain.modulus > 1,
                    "reserved bytes": bool(domain.blocked),
                    f"chunks of {domain.chunk}": domain.chunk is not None,
                }
                names = " and ".join(rule for rule, there in rules.items() if there)
                field = "chunk" if domain.chunk is not None else "reserved"
                self._refuse_one(members[0], field, f"fits at no offset, because of {names}")
            top = domain.first(top) + height
            if top >= LIMIT:
                raise InvalidProblemError(
                    "sizes, offsets and constraints add up to 2**62 bytes or more; "
                    "measure in a larger unit",
                    field="constraints",
                )

    def _check_inside(self, body: int, members: list[int]) -> None:
        """No two members of one body overlap that may not share."""
        parts = self._parts[body]
        for k, p in enumerate(parts):
            for q in parts[k + 1 :]:
                allowed = q.buffer == p.buffer or q.buffer in self._may_share.get(p.buffer, ())
                if q.buffer in self._in_place.get(p.buffer, ()) and (
                    self.shift[p.buffer] == self.shift[q.buffer]
                ):
                    allowed = True
                steps = p.lower < q.upper and q.lower < p.upper
                if not allowed and steps and p.start < q.stop and q.start < p.stop:
                    self._refuse(
                        p.buffer,
                        q.buffer,
                        "relative",
                        "lies at a fixed distance from "
                        f"buffer {self._ids[p.buffer]!r} at which they share bytes while both "
                        "are live",
                    )
        for i in members:
            for j in self._apart.get(i, set()) & set(members):
                a, b = int(self.shift[i]), int(self.shift[j])
                if a < b + self._size[j] and b < a + self._size[i]:
                    self._refuse(
                        i,
                        j,
                        "apart",
                        f"is to be apart from buffer {self._ids[i]!r}, "
                        "and at a distance from it at which they share bytes",
                    )

    def _refuse(self, i: int, j: int, field: str, message: str) -> NoReturn:
        raise InvalidProblemError(
            f"{field}: buffer {self._ids[j]!r} {message}",
            id=self._ids[j],
            field=field,
            value=(self._ids[i], self._ids[j]),
        )

    def _refuse_one(self, i: int, field: str, message: str) -> NoReturn:
        raise InvalidProblemError(
            f"buffer {self._ids[i]!r} {message}", id=self._ids[i], field=field, value=self._ids[i]
        )


def merge(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The union of half-open ranges of integers.

    Examples
    --------
    >>> merge([(4, 6), (0, 2), (2, 3), (5, 9)])
    ((0, 3), (4, 9))
    """
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if start >= stop:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], stop)
        else:
            merged.append((start, stop))
    return tuple(merged)


def first_multiple(step: int, modulus: int, start: int, length: int) -> int | None:
    """The least k for which ``step * k`` modulo `modulus` is one of `length` values from `start`.

    The values go round: after ``modulus - 1`` comes 0. None if there is no such k.
    Complexity: as Euclid's algorithm, of which it is a form.

    Examples
    --------
    >>> first_multiple(7, 10, 4, 2), first_multiple(7, 10, 9, 2), first_multiple(4, 10, 5, 1)
    (2, 0, None)
    """
    low, high = start, start + length - 1
    if low == 0 or high >= modulus:
        return 0
    if step == 0:
        return None
    if 2 * step > modulus:  # backwards is shorter
        step, low, high = modulus - step, modulus - high, modulus - low
    k = -(-low // step)
    if step * k <= high:
        return k
    # No multiple of the step is in the range: how many rounds until one is?
    rounds = first_multiple(-modulus % step, step, low % step, high - low + 1)
    return None if rounds is None else -(-(low + modulus * rounds) // step)


def _within(chunk: int, members: Iterable[tuple[int, int]]) -> Ranges:
    """What an offset may be modulo the chunk, so that no member, (shift, size), lies across it."""
    within: Ranges = ((0, chunk),)
    for shift, size in members:
        start, length = -shift % chunk, chunk - size + 1
        stop = start + max(length, 0)
        allowed = ((start, min(stop, chunk)), (0, stop - chunk))
        within = merge((max(a, c), min(b, d)) for a, b in within for c, d in allowed)
    return within


def _both(modulus: int, remainder: int, other: int, least: int) -> tuple[int, int] | None:
    """What is `remainder` modulo one number and `least` modulo the other, as one such rule."""
    common = math.gcd(modulus, other)
    if (least - remainder) % common:
        return None
    # remainder + modulus * k = least (mod other)
    k = (least - remainder) // common * pow(modulus // common, -1, other // common)
    joined = math.lcm(modulus, other)
    return joined, (remainder + modulus * k) % joined

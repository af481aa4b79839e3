"""Buffers and problems: the one gate where input is checked.

Everything behind the gate may rely on it: int64 columns, non-empty lifetimes, pins that agree
with one another, and sums that cannot overflow.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dsa import gate
from dsa.bodies import Bodies
from dsa.constraints import NONE, PAIRED, Constraints
from dsa.errors import InvalidProblemError
from dsa.gate import FREE, LIMIT, IntArray

__all__ = ["FREE", "LIMIT", "Buffer", "IntArray", "Intervals", "Problem", "Sections"]

Integers: TypeAlias = Sequence[int] | npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Buffer:
    """A block of memory with a lifetime and a size.

    A plain record: it is checked when a `Problem` is made of it.

    Parameters
    ----------
    lower
        First step at which the buffer is live.
    upper
        First step at which it is no longer live; the lifetime is half-open, ``[lower, upper)``.
    size
        Bytes, at least 0. A buffer of size 0 gets an offset and conflicts with nothing.
    id
        Any hashable; the position in the problem if None.
    alignment
        The offset must be a multiple of this positive integer (not only powers of two).
    offset
        Where the buffer is pinned; None leaves the choice to the solver.
    holes
        Parts of the lifetime in which the buffer need not keep all its bytes: ``(lower, upper)``,
        steps in which it keeps none, or ``(lower, upper, start, stop)``, steps in which it keeps
        only its own bytes ``start`` to ``stop - 1``.

    Examples
    --------
    >>> Buffer(0, 3, 4, id="a")
    Buffer(lower=0, upper=3, size=4, id='a', alignment=1, offset=None, holes=())
    """

    lower: int
    upper: int
    size: int
    id: Hashable = None
    alignment: int = 1
    offset: int | None = None
    holes: tuple[tuple[int, ...], ...] = ()

    def __init__(
        self,
        lower: int,
        upper: int,
        size: int,
        *,
        id: Hashable = None,
        alignment: int = 1,
        offset: int | None = None,
        holes: Iterable[Sequence[int]] = (),
    ) -> None:
        rows = tuple(map(tuple, holes)) if isinstance(holes, (list, tuple)) else holes
        values = (lower, upper, size, id, alignment, offset, rows)
        for name, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, name, value)


class Interval(Protocol):
    """Anything with a lifetime and a size; `id`, `alignment` and `offset` are read if present."""

    @property
    def lower(self) -> int: ...
    @property
    def upper(self) -> int: ...
    @property
    def size(self) -> int: ...


Intervals: TypeAlias = "Problem | Iterable[Interval | Sequence[int]] | npt.NDArray[Any]"


@dataclass(frozen=True, slots=True, eq=False)
class Sections:
    """The maximal sets of buffers live together, in time order.

    ::

        step      0   1   2   3   4   5        A section begins at a start that follows an end:
        a         [=======)                    here {a, b}, then {b, c}. Every conflict and
        b         [===============)            every bound lives in some section, so solvers
        c                 [===========)        work on sections and huge steps cost nothing.
        section   0 0 0 0 1 1 1 1 1 1 1

    Attributes
    ----------
    start, stop
        Buffer ``i`` covers the sections ``start[i] .. stop[i] - 1``. Buffers of size 0 are in
        no section: ``start[i] == stop[i] == 0``.
    step
        A step at which all buffers of the section are live.
    load
        Bytes live in each section.
    """

    start: IntArray
    stop: IntArray
    step: IntArray
    load: IntArray

    def __len__(self) -> int:
        return len(self.step)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Problem:
    """An immutable set of buffers to be placed, as read-only int64 columns.

    Parameters
    ----------
    intervals
        `Buffer` objects, ``(lower, upper, size)`` tuples, objects with those attributes (and
        perhaps `id`, `alignment`, `offset`, `holes`), an integer array of shape (n, 3), or a
        `Problem`.
    capacity
        Bytes available, or None for no limit: a constraint, not the objective.
    alignment
        Every offset must be a multiple of this too, besides its buffer's own alignment.
    constraints
        What holds between buffers, and which addresses are not to be used; None for nothing
        (or, of a `Problem`, what it has already).

    Attributes
    ----------
    lower, upper, size, alignment
        Columns of shape (n,).
    pin
        Column of pinned offsets; -1 where the solver chooses.
    ids
        Tuple of the n ids.
    holes
        Array of shape (holes, 5): position of the buffer, lower, upper, start, stop.

    Raises
    ------
    InvalidProblemError
        Naming the buffer, the field and the value.

    Examples
    --------
    >>> problem = Problem([(0, 2, 60), (1, 3, 50)])
    >>> len(problem), problem.load, problem.load_step
    (2, 110, 1)
    >>> Problem([(3, 1, 8)])
    Traceback (most recent call last):
    dsa.errors.InvalidProblemError: buffer 0: lifetime [3, 1) is empty: lower must be below upper
    """

    lower: IntArray
    upper: IntArray
    size: IntArray
    alignment: IntArray
    pin: IntArray
    ids: tuple[Hashable, ...]
    holes: IntArray
    constraints: Constraints
    capacity: int | None

    def __init__(
        self,
        intervals: Intervals,
        *,
        capacity: int | None = None,
        alignment: int = 1,
        constraints: Constraints | None = None,
    ) -> None:
        if isinstance(intervals, Problem):
            capacity = intervals.capacity if capacity is None else capacity
            if constraints is None and gate.as_natural(alignment, "alignment", least=1) == 1:
                self.__dict__.update(intervals.with_capacity(capacity).__dict__)
                return
            constraints = intervals.constraints if constraints is None else constraints
            columns = intervals.columns()
        else:
            columns = gate.read(intervals)
        self._fill(
            capacity=capacity,
            every_alignment=alignment,
            constraints=NONE if constraints is None else constraints,
            **columns,
        )

    @classmethod
    def from_columns(
        cls,
        lower: Integers,
        upper: Integers,
        size: Integers,
        *,
        alignment: Integers | None = None,
        offset: Sequence[int | None] | npt.NDArray[Any] | None = None,
        ids: Sequence[Hashable] | None = None,
        holes: Sequence[Sequence[int]] | npt.NDArray[Any] = (),
        capacity: int | None = None,
        constraints: Constraints = NONE,
    ) -> Problem:
        """Build a problem from columns, without an object for each buffer.

        Parameters
        ----------
        lower, upper, size, alignment
            Integer columns of one length; `alignment` is 1 everywhere if None.
        offset
            Pinned offsets; None (or -1 in an array) where the solver chooses.
        ids
            Hashable and distinct; the positions if None.
        holes
            Rows ``(position, lower, upper, start, stop)``: see `Buffer`.
        capacity
            Bytes available, or None for no limit.
        constraints
            As for `Problem`.

        Raises
        ------
        InvalidProblemError
            Naming the buffer, the field and the value.

        Examples
        --------
        >>> Problem.from_columns([0, 1], [2, 3], [60, 50]).load
        110
        """
        problem = cls.__new__(cls)
        problem._fill(lower, upper, size, alignment, offset, ids, holes, capacity, 1, constraints)
        return problem

    @classmethod
    def from_closed(
        cls,
        intervals: Intervals,
        *,
        capacity: int | None = None,
        alignment: int = 1,
        constraints: Constraints = NONE,
    ) -> Problem:
        """Build a problem from closed lifetimes, ``[lower, upper]``: both steps live.

        Parameters
        ----------
        intervals, capacity, alignment, constraints
            As for `Problem`, except that the buffers are still live at `upper`, and in a hole
            at its `upper`.

        Examples
        --------
        >>> Problem.from_closed([(0, 3, 64), (3, 6, 64)]).load
        128
        """
        if isinstance(intervals, Problem):
            raise TypeError("a Problem is half-open already; from_closed reads closed intervals")
        columns = gate.read(intervals)
        ids = columns["ids"]
        columns["upper"] = [value + 1 for value in gate.integers(columns["upper"], "upper", ids)]
        columns["holes"] = [(i, a, b + 1, *window) for i, a, b, *window in columns["holes"]]
        problem = cls.__new__(cls)
        problem._fill(
            capacity=capacity, every_alignment=alignment, constraints=constraints, **columns
        )
        return problem

    # -- the gate ----------------------------------------------------------------------------

    def _fill(
        self,
        lower: Any,
        upper: Any,
        size: Any,
        alignment: Any = None,
        offset: Any = None,
        ids: Sequence[Hashable] | None = None,
        holes: Any = (),
        capacity: int | None = None,
        every_alignment: int = 1,
        constraints: Constraints = NONE,
    ) -> None:
        size = gate.listed(size, "size")
        lower, upper = gate.listed(lower, "lower"), gate.listed(upper, "upper")
        alignment = None if alignment is None else gate.listed(alignment, "alignment")
        offset = None if offset is None else gate.listed(offset, "offset")
        n = len(size)
        given = {"lower": lower, "upper": upper, "alignment": alignment, "offset": offset}
        for field, values in given.items():
            if values is not None and len(values) != n:
                raise InvalidProblemError(
                    f"column {field!r} has {len(values)} values where {n} buffers have a size",
                    field=field,
                )
        names = None if ids is None else gate.check_ids(ids, n)
        columns = {
            "lower": gate.column(lower, "lower", names),
            "upper": gate.column(upper, "upper", names),
            "size": gate.column(size, "size", names),
        }
        ones, free = np.ones(n, np.int64), np.full(n, FREE, np.int64)
        columns["alignment"] = (
            ones if alignment is None else gate.column(alignment, "alignment", names)
        )
        columns["pin"] = (
            free if offset is None else gate.column(gate.pins(offset, names), "offset", names)
        )
        columns["holes"] = gate.holes(holes, n, names)
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        object.__setattr__(self, "ids", tuple(range(n)) if names is None else names)
        limit = None if capacity is None else gate.as_natural(capacity, "capacity")
        object.__setattr__(self, "capacity", limit)
        if not isinstance(constraints, Constraints):
            raise TypeError(f"constraints must be Constraints(...), got {constraints!r}")
        object.__setattr__(self, "constraints", constraints)
        self._check_rows()
        self._check_holes()
        self._align(gate.as_natural(every_alignment, "alignment", least=1))
        self._check_sums()
        if self.constrained:
            self.bodies.check()
        else:
            self._check_pins()
        for column in columns.values():
            column.flags.writeable = False

    def _check_rows(self) -> None:
        self._refuse(self.size < 0, "size", "size must be at least 0, got {size}")
        self._refuse(
            self.alignment < 1, "alignment", "alignment must be at least 1, got {alignment}"
        )
        self._refuse(self.pin < FREE, "offset", "offset must be at least 0, got {pin}")
        for field in ("lower", "upper"):
            column = getattr(self, field)
            too_far = (column <= -LIMIT) | (column >= LIMIT)
            self._refuse(too_far, field, f"{field} {gate.RANGE}, got {{{field}}}")
        self._refuse(
            self.lower == self.upper,
            "upper",
            "lifetime [{lower}, {upper}) is empty: a result that nobody reads still lives for its "
            "own step, so upper must be at least lower + 1",
        )
        self._refuse(
            self.lower > self.upper,
            "upper",
            "lifetime [{lower}, {upper}) is empty: lower must be below upper",
        )

    def _check_holes(self) -> None:
        last: tuple[int, int] | None = None
        for i, lower, upper, start, stop in self.holes.tolist():
            steps = f"hole [{lower}, {upper})"
            if not self.lower[i] <= lower < upper <= self.upper[i]:
                why = f"{steps} is no part of the lifetime [{self.lower[i]}, {self.upper[i]})"
            elif not 0 <= start <= stop <= self.size[i]:
                why = f"{steps} keeps bytes [{start}, {stop}) of the {self.size[i]} there are"
            elif last is not None and last[0] == i and lower < last[1]:
                why = f"{steps} begins before the hole before it ends, at {last[1]}"
            else:
                last = (i, upper)
                continue
            hole = (lower, upper, start, stop)
            id = self.ids[i]
            raise InvalidProblemError(f"buffer {id!r}: {why}", id=id, field="holes", value=hole)
        self.holes[self.holes[:, 3] == self.holes[:, 4], 3:] = 0  # no bytes, written in one way

    def _align(self, every: int) -> None:
        distinct = np.unique(self.alignment).tolist()
        if max((math.lcm(alignment, every) for alignment in distinct), default=1) > LIMIT:
            raise InvalidProblemError(
                f"alignment {every} and the buffers' own have a common multiple above 2**62",
                field="alignment",
                value=every,
            )
        self.alignment[:] = np.lcm(self.alignment, every)

    def _check_sums(self) -> None:
        # No plan worth making is higher than all buffers, padded, on top of the highest pin.
        highest = int(self.pin.max(initial=0))
        if _sum(self.size) + _sum(self.alignment - 1) + highest >= LIMIT:
            raise InvalidProblemError(
                "sizes, alignments and offsets add up to 2**62 bytes or more; "
                "measure in a larger unit",
                field="size",
            )

    def _check_pins(self) -> None:
        self._refuse(
            (self.pin != FREE) & (self.pin % self.alignment != 0),
            "offset",
            "pinned offset {pin} is not a multiple of its alignment {alignment}",
        )
        clash = _pin_clash(self)
        if clash is not None:
            i, j = clash
            raise InvalidProblemError(
                f"buffers {self.ids[i]!r} and {self.ids[j]!r} are live together and pinned to "
                f"overlapping bytes [{self.pin[i]}, {self.pin[i] + self.size[i]}) and "
                f"[{self.pin[j]}, {self.pin[j] + self.size[j]})",
                id=self.ids[j],
                field="offset",
                value=int(self.pin[j]),
            )

    def _refuse(self, bad: npt.NDArray[np.bool_], field: str, message: str) -> None:
        if not bad.any():
            return
        i = int(bad.argmax())
        row = {name: int(getattr(self, name)[i]) for name in _COLUMNS}
        raise InvalidProblemError(
            f"buffer {self.ids[i]!r}: {message.format(**row)}",
            id=self.ids[i],
            field=field,
            value=row["pin" if field == "offset" else field],
        )

    # -- reading -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.size)

    def __iter__(self) -> Iterator[Buffer]:
        columns = (getattr(self, name).tolist() for name in _COLUMNS)
        holes = self._holes_of
        for i, (id, *row) in enumerate(zip(self.ids, *columns, strict=True)):
            yield _buffer(id, *row, holes=holes.get(i, ()))

    def __getitem__(self, position: int) -> Buffer:
        """Buffer at a position; use `index` to find the position of an id."""
        row = (int(getattr(self, name)[position]) for name in _COLUMNS)
        holes = self._holes_of.get(range(len(self))[position], ())
        return _buffer(self.ids[position], *row, holes=holes)

    def __eq__(self, other: object) -> bool:
        """Equal if ids, columns and capacity are, in the same order."""
        if not isinstance(other, Problem):
            return NotImplemented
        return (
            self.ids == other.ids
            and self.capacity == other.capacity
            and self.constraints == other.constraints
            and all(np.array_equal(getattr(self, c), getattr(other, c)) for c in _COLUMNS)
            and np.array_equal(self.holes, other.holes)
        )

    def __hash__(self) -> int:
        return hash((self.ids, self.size.tobytes()))

    def __repr__(self) -> str:
        capacity = "" if self.capacity is None else f", capacity={self.capacity}"
        return f"<Problem: {len(self)} buffers, load {self.load}{capacity}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.columns(), self.capacity, self.constraints)

    def index(self, id: Hashable) -> int:
        """Position of the buffer with this id.

        Raises
        ------
        KeyError
            If no buffer has the id.
        """
        return self._positions[id]

    def columns(self) -> dict[str, Any]:
        """The columns, by the names that `from_columns` gives them."""
        return {
            "lower": self.lower,
            "upper": self.upper,
            "size": self.size,
            "alignment": self.alignment,
            "offset": self.pin,
            "ids": self.ids,
            "holes": self.holes,
        }

    def with_capacity(self, capacity: int | None) -> Problem:
        """The same buffers under another capacity, or None for no limit.

        Examples
        --------
        >>> Problem([(0, 2, 60)]).with_capacity(64)
        <Problem: 1 buffers, load 60, capacity=64>
        """
        limit = None if capacity is None else gate.as_natural(capacity, "capacity")
        problem = Problem.__new__(Problem)
        problem.__dict__.update(self.__dict__, capacity=limit)  # columns and what is derived
        return problem

    def select(self, positions: IntArray) -> Problem:
        """The problem of some of the buffers, given by position, in that order.

        Constraints between two buffers hold on where both are selected. All in their order are
        this problem itself, with all that has been derived.
        """
        if np.array_equal(positions, np.arange(len(self))):
            return self
        columns = {name: getattr(self, name)[positions] for name in _COLUMNS}
        columns["offset"] = columns.pop("pin")
        ids = tuple(self.ids[i] for i in positions.tolist())
        if self.constrained or self.constraints:
            place = {position: i for i, position in enumerate(positions.tolist())}
            holes = [(place[i], *hole) for i, *hole in self.holes.tolist() if i in place]
            columns |= {"holes": holes, "constraints": self.constraints.among(ids)}
        return Problem.from_columns(**columns, ids=ids, capacity=self.capacity)

    def to_dict(self) -> dict[str, Any]:
        """The problem as plain data for JSON; ids must be text, integers, or tuples of such.

        Raises
        ------
        InvalidProblemError
            Naming an id that JSON cannot hold.
        """
        data: dict[str, Any] = {"ids": []}
        for id in self.ids:
            try:
                data["ids"].append(gate.id_to_data(id))
            except TypeError as error:
                raise InvalidProblemError(
                    f"buffer {id!r}: this id cannot be written: {error}",
                    id=id,
                    field="id",
                    value=id,
                ) from None
        data |= {name: getattr(self, name).tolist() for name in _COLUMNS}
        data["offset"] = [None if pin == FREE else pin for pin in data.pop("pin")]
        data["capacity"] = self.capacity
        if len(self.holes):
            data["holes"] = self.holes.tolist()
        if self.constraints:
            data["constraints"] = self.constraints.to_dict()
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Problem:
        """Read back what `to_dict` wrote; all but `lower`, `upper` and `size` may be absent.

        Raises
        ------
        InvalidProblemError
            If a column is missing or unknown, or the problem is invalid.
        """
        if not isinstance(data, Mapping):
            raise InvalidProblemError(f"expected a mapping of columns, got {data!r}", value=data)
        columns = {"ids", "lower", "upper", "size", "alignment", "offset", "holes"}
        known = columns | {"capacity", "constraints"}
        missing, unknown = {"lower", "upper", "size"} - data.keys(), data.keys() - known
        if missing or unknown:
            what, names = ("lacks", missing) if missing else ("has unknown columns", unknown)
            raise InvalidProblemError(f"the problem {what} {', '.join(sorted(map(str, names)))}")
        for name, values in data.items():
            if name in columns and not isinstance(values, (list, tuple, np.ndarray)):
                raise InvalidProblemError(
                    f"column {name!r} must be a list, got {values!r}", field=name, value=values
                )
        constraints = Constraints.from_dict(data.get("constraints", {}))
        if isinstance(data.get("ids"), list):
            data = {**data, "ids": list(map(gate.id_from_data, data["ids"]))}
        return cls.from_columns(**{**data, "constraints": constraints})

    # -- derived, computed once --------------------------------------------------------------

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {id: i for i, id in enumerate(self.ids)}

    @cached_property
    def features(self) -> frozenset[str]:
        """What the problem asks of a solver beyond lifetimes and sizes."""
        used = {
            "alignment": bool((self.alignment > 1).any()),
            "pins": bool((self.pin >= 0).any()),
            "holes": len(self.holes) > 0,
        }
        return (
            frozenset(name for name, there in used.items() if there) | self.constraints.features()
        )

    @cached_property
    def constrained(self) -> bool:
        """Whether there is more to the problem than lifetimes, sizes, alignments and pins."""
        return bool(self.constraints.features()) or len(self.holes) > 0

    @property
    def room(self) -> int | None:
        """Bytes that buffers may use: the capacity less the tail padding, at least 0."""
        if self.capacity is None:
            return None
        return max(self.capacity - self.constraints.tail_padding, 0)

    @cached_property
    def bodies(self) -> Bodies:
        """The buffers as rigid bodies: how a solver sees holes and constraints."""
        columns = (getattr(self, name).tolist() for name in _COLUMNS)
        return Bodies(self.ids, *columns, holes=self.holes.tolist(), constraints=self.constraints)

    @cached_property
    def _holes_of(self) -> dict[int, tuple[tuple[int, ...], ...]]:
        holes: dict[int, tuple[tuple[int, ...], ...]] = {}
        for i, lower, upper, start, stop in self.holes.tolist():
            window = () if start == stop else (start, stop)
            holes[i] = (*holes.get(i, ()), (lower, upper, *window))
        return holes

    @cached_property
    def base_alignment(self) -> int:
        """Alignment that the start of the arena needs: the least common multiple of all."""
        return math.lcm(*np.unique(self.alignment).tolist())

    @cached_property
    def sections(self) -> Sections:
        """The sections, found by one sort of the lifetimes' ends: O(n log n)."""
        solid = np.flatnonzero(self.size)
        k = len(solid)
        step = np.concatenate([self.upper[solid], self.lower[solid]])
        begins = np.repeat([False, True], k)
        order = np.lexsort((begins, step))  # at one step, ends come before starts
        begins = begins[order]
        opens, closes = begins.copy(), begins.copy()
        opens[1:] &= ~begins[:-1]
        closes[:-1] &= ~begins[1:]
        section = np.cumsum(opens) - 1
        bytes_live = np.cumsum(np.concatenate([-self.size[solid], self.size[solid]])[order])
        last_start = np.flatnonzero(closes)

        at_event = np.empty(2 * k, np.int64)
        at_event[order] = section
        start, stop = np.zeros(len(self), np.int64), np.zeros(len(self), np.int64)
        stop[solid] = at_event[:k] + 1
        start[solid] = at_event[k:]
        sections = Sections(start, stop, step[order][last_start], bytes_live[last_start])
        for column in (sections.start, sections.stop, sections.step, sections.load):
            column.flags.writeable = False
        return sections

    @cached_property
    def load(self) -> int:
        """Most bytes live at one step; without constraints no plan has a lower peak.

        Bytes of a storage that has aliases count once, and those in holes not at all.
        """
        if self.constrained:
            return self.bodies.load[0]
        return int(self.sections.load.max(initial=0))

    @cached_property
    def load_step(self) -> int | None:
        """The first step at which the load is reached; None if nothing has a size."""
        if self.constrained:
            return self.bodies.load[1]
        sections = self.sections
        return int(sections.step[sections.load.argmax()]) if len(sections) else None

    @cached_property
    def component(self) -> IntArray:
        """For each buffer the number of its component, in time order; -1 for size 0.

        Buffers in one component are connected by conflicts; without constraints, components
        never share a step.
        """
        if self.constrained:
            return self.bodies.component()
        sections = self.sections
        solid = self.size > 0
        spanning = np.zeros(len(sections) + 1, np.int64)  # buffers across the start of a section
        np.add.at(spanning, sections.start[solid] + 1, 1)
        np.add.at(spanning, sections.stop[solid], -1)
        component = np.cumsum(np.cumsum(spanning[: len(sections)]) == 0) - 1
        result = np.full(len(self), -1, np.int64)
        result[solid] = component[sections.start[solid]]
        result.flags.writeable = False
        return result

    @cached_property
    def id_rank(self) -> IntArray:
        """Rank of each id, for breaking ties: integers, then strings, then the rest as given."""

        def key(i: int) -> tuple[int, int, str]:
            id = self.ids[i]
            if isinstance(id, int):
                return 0, id, ""
            return (1, 0, id) if isinstance(id, str) else (2, i, "")

        # Where all are of one kind, they compare by themselves, which is quicker.
        alike = set(map(type, self.ids)) in ({int}, {str})
        by: Callable[[int], Any] = self.ids.__getitem__ if alike else key
        rank = np.empty(len(self), np.int64)
        rank[sorted(range(len(self)), key=by)] = np.arange(len(self))
        rank.flags.writeable = False
        return rank

    @cached_property
    def ties(self) -> IntArray:
        """Positions by larger size, earlier `lower`, earlier `upper`, then id."""
        return np.lexsort((self.id_rank, self.upper, self.lower, -self.size))

    @cached_property
    def mirrored_ties(self) -> IntArray:
        """As `ties`, but as if time ran backwards."""
        return np.lexsort((self.id_rank, -self.lower, -self.upper, -self.size))

    @cached_property
    def fingerprint(self) -> str:
        """Digest of ids, lifetimes, sizes, alignments and pins, whatever their order.

        A plan carries it, so that it cannot be applied to another problem by mistake.
        """
        digest = hashlib.sha256()
        names = [repr(gate.plain(id)) for id in self.ids]
        order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
        for name in _COLUMNS:
            digest.update(getattr(self, name)[order].astype("<i8").tobytes())
        digest.update("\n".join(sorted(names)).encode())
        if self.constrained or self.constraints:
            digest.update(self._rules().encode())
        return digest.hexdigest()

    def _rules(self) -> str:
        """Holes and constraints as text, whatever their order."""
        holes = [(repr(gate.plain(self.ids[i])), *hole) for i, *hole in self.holes.tolist()]
        rules = [
            (name, [repr(gate.plain(value)) for value in row])
            for name in (*PAIRED, "reserved")
            for row in getattr(self.constraints, name)
        ]
        numbers = self.constraints.chunk, self.constraints.tail_padding
        return repr((sorted(holes), sorted(rules), *numbers))


_COLUMNS = ("lower", "upper", "size", "alignment", "pin")


def _buffer(
    id: Hashable,
    lower: int,
    upper: int,
    size: int,
    alignment: int,
    pin: int,
    *,
    holes: tuple[tuple[int, ...], ...],
) -> Buffer:
    offset = None if pin == FREE else pin
    return Buffer(lower, upper, size, id=id, alignment=alignment, offset=offset, holes=holes)


def _rebuild(columns: dict[str, Any], capacity: int | None, constraints: Constraints) -> Problem:
    return Problem.from_columns(**columns, capacity=capacity, constraints=constraints)


def _sum(column: IntArray) -> int:
    """Exact sum of a column, whose int64 sum might wrap."""
    if len(column) * int(np.abs(column).max(initial=0)) < 2**63:
        return int(column.sum())
    return sum(column.tolist())


def _pin_clash(problem: Problem) -> tuple[int, int] | None:
    """Two pinned buffers that are live together and share bytes, if any: O(p log p)."""
    pinned = np.flatnonzero((problem.pin >= 0) & (problem.size > 0))
    events = [(int(problem.upper[i]), 0, int(i)) for i in pinned]
    events += [(int(problem.lower[i]), 1, int(i)) for i in pinned]
    live: list[tuple[int, int]] = []  # (offset, position), disjoint: only neighbours can clash
    for _, begins, i in sorted(events):
        entry = (int(problem.pin[i]), i)
        if not begins:
            del live[bisect_left(live, entry)]
            continue
        at = bisect_left(live, entry)
        for offset, j in live[max(at - 1, 0) : at + 1]:
            if offset < entry[0] + problem.size[i] and entry[0] < offset + problem.size[j]:
                return j, i
        insort(live, entry)
    return None

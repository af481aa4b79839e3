"""Buffers and problems: the one gate where input is checked.

Everything behind the gate may rely on it: int64 columns, non-empty lifetimes, pins that agree
with one another, and sums that cannot overflow.
"""

from __future__ import annotations

import hashlib
import math
import operator
from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dsa.errors import InvalidProblemError

__all__ = ["Buffer", "IntArray", "Intervals", "Problem", "Sections"]

IntArray: TypeAlias = npt.NDArray[np.int64]
Integers: TypeAlias = Sequence[int] | npt.NDArray[Any]

# Steps and sums of bytes stay below this, so that no int64 sum or difference of two can wrap.
LIMIT = 2**62
_RANGE = "must lie between -2**62 and 2**62"
FREE = -1  # in the column of pins: the solver chooses the offset


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

    Examples
    --------
    >>> Buffer(0, 3, 4, id="a")
    Buffer(lower=0, upper=3, size=4, id='a', alignment=1, offset=None)
    """

    lower: int
    upper: int
    size: int
    id: Hashable = None
    alignment: int = 1
    offset: int | None = None

    def __init__(
        self,
        lower: int,
        upper: int,
        size: int,
        *,
        id: Hashable = None,
        alignment: int = 1,
        offset: int | None = None,
    ) -> None:
        values = (lower, upper, size, id, alignment, offset)
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
        perhaps `id`, `alignment`, `offset`), an integer array of shape (n, 3), or a `Problem`.
    capacity
        Bytes available, or None for no limit: a constraint, not the objective.
    alignment
        Every offset must be a multiple of this too, besides its buffer's own alignment.

    Attributes
    ----------
    lower, upper, size, alignment
        Columns of shape (n,).
    pin
        Column of pinned offsets; -1 where the solver chooses.
    ids
        Tuple of the n ids.

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
    capacity: int | None

    def __init__(
        self, intervals: Intervals, *, capacity: int | None = None, alignment: int = 1
    ) -> None:
        if isinstance(intervals, Problem):
            capacity = intervals.capacity if capacity is None else capacity
            if as_natural(alignment, "alignment", least=1) == 1:
                self.__dict__.update(intervals.with_capacity(capacity).__dict__)
                return
            columns = intervals.columns()
        else:
            columns = _read(intervals)
        self._fill(capacity=capacity, every_alignment=alignment, **columns)

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
        capacity: int | None = None,
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
        capacity
            Bytes available, or None for no limit.

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
        problem._fill(lower, upper, size, alignment, offset, ids, capacity)
        return problem

    @classmethod
    def from_closed(
        cls, intervals: Intervals, *, capacity: int | None = None, alignment: int = 1
    ) -> Problem:
        """Build a problem from closed lifetimes, ``[lower, upper]``: both steps live.

        Parameters
        ----------
        intervals, capacity, alignment
            As for `Problem`, except that the buffers are still live at `upper`.

        Examples
        --------
        >>> Problem.from_closed([(0, 3, 64), (3, 6, 64)]).load
        128
        """
        if isinstance(intervals, Problem):
            raise TypeError("a Problem is half-open already; from_closed reads closed intervals")
        columns = _read(intervals)
        ids = columns["ids"]
        columns["upper"] = [value + 1 for value in _integers(columns["upper"], "upper", ids)]
        problem = cls.__new__(cls)
        problem._fill(capacity=capacity, every_alignment=alignment, **columns)
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
        capacity: int | None = None,
        every_alignment: int = 1,
    ) -> None:
        size = _listed(size, "size")
        lower, upper = _listed(lower, "lower"), _listed(upper, "upper")
        alignment = None if alignment is None else _listed(alignment, "alignment")
        offset = None if offset is None else _listed(offset, "offset")
        n = len(size)
        given = {"lower": lower, "upper": upper, "alignment": alignment, "offset": offset}
        for field, values in given.items():
            if values is not None and len(values) != n:
                raise InvalidProblemError(
                    f"column {field!r} has {len(values)} values where {n} buffers have a size",
                    field=field,
                )
        names = None if ids is None else _check_ids(ids, n)
        columns = {
            "lower": _column(lower, "lower", names),
            "upper": _column(upper, "upper", names),
            "size": _column(size, "size", names),
        }
        ones, free = np.ones(n, np.int64), np.full(n, FREE, np.int64)
        columns["alignment"] = ones if alignment is None else _column(alignment, "alignment", names)
        columns["pin"] = free if offset is None else _column(_pins(offset, names), "offset", names)
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        object.__setattr__(self, "ids", tuple(range(n)) if names is None else names)
        limit = None if capacity is None else as_natural(capacity, "capacity")
        object.__setattr__(self, "capacity", limit)
        self._check_rows()
        self._align(as_natural(every_alignment, "alignment", least=1))
        self._check_sums()
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
            self._refuse(too_far, field, f"{field} {_RANGE}, got {{{field}}}")
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
        for id, *row in zip(self.ids, *columns, strict=True):
            yield _buffer(id, *row)

    def __getitem__(self, position: int) -> Buffer:
        """Buffer at a position; use `index` to find the position of an id."""
        row = (int(getattr(self, name)[position]) for name in _COLUMNS)
        return _buffer(self.ids[position], *row)

    def __eq__(self, other: object) -> bool:
        """Equal if ids, columns and capacity are, in the same order."""
        if not isinstance(other, Problem):
            return NotImplemented
        return (
            self.ids == other.ids
            and self.capacity == other.capacity
            and all(np.array_equal(getattr(self, c), getattr(other, c)) for c in _COLUMNS)
        )

    def __hash__(self) -> int:
        return hash((self.ids, self.size.tobytes()))

    def __repr__(self) -> str:
        capacity = "" if self.capacity is None else f", capacity={self.capacity}"
        return f"<Problem: {len(self)} buffers, load {self.load}{capacity}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.columns(), self.capacity)

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
        }

    def with_capacity(self, capacity: int | None) -> Problem:
        """The same buffers under another capacity, or None for no limit.

        Examples
        --------
        >>> Problem([(0, 2, 60)]).with_capacity(64)
        <Problem: 1 buffers, load 60, capacity=64>
        """
        limit = None if capacity is None else as_natural(capacity, "capacity")
        problem = Problem.__new__(Problem)
        problem.__dict__.update(self.__dict__, capacity=limit)  # columns and what is derived
        return problem

    def select(self, positions: IntArray) -> Problem:
        """The problem of some of the buffers, given by position, in that order."""
        columns = {name: getattr(self, name)[positions] for name in _COLUMNS}
        columns["offset"] = columns.pop("pin")
        ids = tuple(self.ids[i] for i in positions.tolist())
        return Problem.from_columns(**columns, ids=ids, capacity=self.capacity)

    def to_dict(self) -> dict[str, Any]:
        """The problem as plain data for JSON; ids must be strings or integers.

        Raises
        ------
        InvalidProblemError
            Naming an id that JSON cannot hold.
        """
        for id in self.ids:
            if not isinstance(id, (str, int)):
                raise InvalidProblemError(
                    f"buffer {id!r}: only an id that is a string or an integer can be written",
                    id=id,
                    field="id",
                    value=id,
                )
        data = {name: getattr(self, name).tolist() for name in _COLUMNS}
        data["offset"] = [None if pin == FREE else pin for pin in data.pop("pin")]
        return {"ids": list(self.ids), **data, "capacity": self.capacity}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Problem:
        """Read back what `to_dict` wrote; `ids`, `alignment`, `offset`, `capacity` may be absent.

        Raises
        ------
        InvalidProblemError
            If a column is missing or unknown, or the problem is invalid.
        """
        if not isinstance(data, Mapping):
            raise InvalidProblemError(f"expected a mapping of columns, got {data!r}", value=data)
        known = {"ids", "lower", "upper", "size", "alignment", "offset", "capacity"}
        missing, unknown = {"lower", "upper", "size"} - data.keys(), data.keys() - known
        if missing or unknown:
            what, names = ("lacks", missing) if missing else ("has unknown columns", unknown)
            raise InvalidProblemError(f"the problem {what} {', '.join(sorted(map(str, names)))}")
        for name, values in data.items():
            if name != "capacity" and not isinstance(values, (list, tuple, np.ndarray)):
                raise InvalidProblemError(
                    f"column {name!r} must be a list, got {values!r}", field=name, value=values
                )
        return cls.from_columns(**data)

    # -- derived, computed once --------------------------------------------------------------

    @cached_property
    def _positions(self) -> dict[Hashable, int]:
        return {id: i for i, id in enumerate(self.ids)}

    @cached_property
    def features(self) -> frozenset[str]:
        """What the problem asks of a solver beyond lifetimes and sizes."""
        used = {"alignment": bool((self.alignment > 1).any()), "pins": bool((self.pin >= 0).any())}
        return frozenset(name for name, present in used.items() if present)

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
        """Most bytes live at one step: no plan has a lower peak."""
        return int(self.sections.load.max(initial=0))

    @cached_property
    def load_step(self) -> int | None:
        """The first step at which the load is reached; None if nothing has a size."""
        sections = self.sections
        return int(sections.step[sections.load.argmax()]) if len(sections) else None

    @cached_property
    def component(self) -> IntArray:
        """For each buffer the number of its component, in time order; -1 for size 0.

        Buffers in one component are connected by conflicts; components never share a step.
        """
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

        rank = np.empty(len(self), np.int64)
        rank[sorted(range(len(self)), key=key)] = np.arange(len(self))
        rank.flags.writeable = False
        return rank

    @cached_property
    def fingerprint(self) -> str:
        """Digest of ids, lifetimes, sizes, alignments and pins, whatever their order.

        A plan carries it, so that it cannot be applied to another problem by mistake.
        """
        digest = hashlib.sha256()
        names = [repr(_plain(id)) for id in self.ids]
        order = np.array(sorted(range(len(names)), key=names.__getitem__), np.int64)
        for name in _COLUMNS:
            digest.update(getattr(self, name)[order].astype("<i8").tobytes())
        digest.update("\n".join(sorted(names)).encode())
        return digest.hexdigest()


_COLUMNS = ("lower", "upper", "size", "alignment", "pin")


def _buffer(id: Hashable, lower: int, upper: int, size: int, alignment: int, pin: int) -> Buffer:
    offset = None if pin == FREE else pin
    return Buffer(lower, upper, size, id=id, alignment=alignment, offset=offset)


def _rebuild(columns: dict[str, Any], capacity: int | None) -> Problem:
    return Problem.from_columns(**columns, capacity=capacity)


def _read(intervals: Any) -> dict[str, Any]:
    if isinstance(intervals, np.ndarray) and (intervals.dtype != np.object_ or not intervals.ndim):
        return _read_array(intervals)
    return _read_rows(intervals)


def _read_array(array: npt.NDArray[Any]) -> dict[str, Any]:
    if array.ndim != 2 or array.shape[1] != 3:
        raise InvalidProblemError(
            f"an array of buffers has the shape (n, 3) - lower, upper, size - not {array.shape}"
        )
    return {"lower": array[:, 0], "upper": array[:, 1], "size": array[:, 2], "ids": None}


def _read_rows(rows: Iterable[Any]) -> dict[str, Any]:
    columns: dict[str, list[Any]] = {
        name: [] for name in ("lower", "upper", "size", "alignment", "offset", "ids")
    }
    if isinstance(rows, (str, bytes)) or not isinstance(rows, Iterable):
        raise InvalidProblemError(
            f"expected an iterable of buffers, got {type(rows).__name__} {rows!r}", value=rows
        )
    for position, row in enumerate(rows):
        for name, value in zip(columns, _read_row(row, position), strict=True):
            columns[name].append(value)
    return columns


def _read_row(row: Any, position: int) -> tuple[Any, ...]:
    if hasattr(row, "lower") and hasattr(row, "upper") and hasattr(row, "size"):
        id = getattr(row, "id", None)
        return (
            row.lower,
            row.upper,
            row.size,
            getattr(row, "alignment", 1),
            getattr(row, "offset", None),
            position if id is None else id,
        )
    values = row.tolist() if isinstance(row, np.ndarray) else row
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes)) and len(values) == 3:
        return (*values, 1, None, position)
    raise InvalidProblemError(
        f"buffer {position}: expected a Buffer, a (lower, upper, size) tuple or an object with "
        f"those attributes, got {row!r}",
        id=position,
        value=row,
    )


def _listed(values: Any, field: str) -> Any:
    """A column as a list, a tuple or an array; refuses what has no order or is a single value."""
    if isinstance(values, (list, tuple)):
        return values
    if isinstance(values, np.ndarray) and np.any(getattr(values, "mask", False)):
        raise InvalidProblemError(
            f"column {field!r} has masked values; fill them or leave their buffers out", field=field
        )
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return np.asarray(values)
    unfit = (str, bytes, set, frozenset, Mapping, np.ndarray)
    if isinstance(values, unfit) or not isinstance(values, Iterable):
        raise InvalidProblemError(
            f"column {field!r} must be a list or an array of one dimension, got {values!r}",
            field=field,
            value=values,
        )
    return list(values)


def _check_ids(ids: Sequence[Hashable], n: int) -> tuple[Hashable, ...]:
    listed = ids if isinstance(ids, str) else _listed(ids, "id")
    names = tuple(listed.tolist() if isinstance(listed, np.ndarray) else map(_unboxed, listed))
    if len(names) != n:
        raise InvalidProblemError(f"{len(names)} ids for {n} buffers", field="id")
    try:
        distinct = len(set(names)) == n
    except TypeError as error:
        raise InvalidProblemError(f"an id must be hashable: {error}", field="id") from error
    if not distinct:
        seen: set[Hashable] = set()
        twice = next(id for id in names if id in seen or seen.add(id))  # type: ignore[func-returns-value]
        raise InvalidProblemError(
            f"buffer {twice!r}: two buffers have this id", id=twice, field="id", value=twice
        )
    for id in names:
        if id != id:  # NaN
            raise InvalidProblemError(
                f"buffer {id!r}: an id must equal itself", id=id, field="id", value=id
            )
    return names


def _unboxed(id: Hashable) -> Hashable:
    """A NumPy scalar as Python's own; what Python has no type for stays as it is."""
    return id.item() if isinstance(id, (np.number, np.bool_, np.character)) else id


def _plain(id: Hashable) -> Hashable:
    """The id, written in one way: equal ids become the same text."""
    id = _unboxed(id)
    if isinstance(id, tuple):
        return tuple(map(_plain, id))
    if isinstance(id, int) or (isinstance(id, float) and id.is_integer()):
        return int(id)
    return str.__str__(id) if isinstance(id, str) else id


def _pins(offset: Any, ids: Sequence[Hashable] | None) -> Any:
    """None becomes -1; a -1 that somebody gave as an offset is a mistake, unless in an array."""
    if isinstance(offset, np.ndarray) and offset.dtype != np.object_:
        return offset
    pins = list(offset)
    for i, value in enumerate(pins):
        if isinstance(value, (int, np.integer)) and value == FREE:
            id = i if ids is None else ids[i]
            raise InvalidProblemError(
                f"buffer {id!r}: offset must be at least 0, got -1; None leaves it to the solver",
                id=id,
                field="offset",
                value=FREE,
            )
    return [FREE if value is None else value for value in pins]


def _column(values: Any, field: str, ids: Sequence[Hashable] | None) -> IntArray:
    """A new int64 array of the values; refuses everything that is not an integer."""
    if (
        isinstance(values, np.ndarray)
        and values.dtype.kind in "iu"
        and values.ndim == 1
        and (values.dtype.kind == "i" or int(values.max(initial=0)) < 2**63)
    ):
        return values.astype(np.int64)
    integers = _integers(values, field, ids)
    try:
        return np.array(integers, np.int64)
    except OverflowError:
        i = next(i for i, value in enumerate(integers) if not -(2**63) <= value < 2**63)
        id = i if ids is None else ids[i]
        raise InvalidProblemError(
            f"buffer {id!r}: {field} {_RANGE}, got {integers[i]}",
            id=id,
            field=field,
            value=integers[i],
        ) from None


def _integers(values: Any, field: str, ids: Sequence[Hashable] | None) -> list[int]:
    if isinstance(values, list) and set(map(type, values)) == {int}:  # a long file's columns
        return values
    result = []
    for i, value in enumerate(values):
        try:
            result.append(as_integer(value))
        except TypeError:
            id = i if ids is None else ids[i]
            raise InvalidProblemError(
                f"buffer {id!r}: {field} must be an integer, got {value!r}",
                id=id,
                field=field,
                value=value,
            ) from None
    return result


def as_integer(value: Any) -> int:
    """The value as an int, exactly; a TypeError for what is no integer."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError("a bool is not a number of bytes or steps")
    return operator.index(value)


def as_natural(value: Any, field: str, least: int = 0) -> int:
    """A single integer argument, checked like the columns."""
    try:
        number = as_integer(value)
    except TypeError:
        raise InvalidProblemError(
            f"{field} must be an integer, got {value!r}", field=field, value=value
        ) from None
    if number < least:
        raise InvalidProblemError(
            f"{field} must be at least {least}, got {number}", field=field, value=value
        )
    return number


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

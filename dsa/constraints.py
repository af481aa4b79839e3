"""What holds between buffers, and which addresses are not to be used."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from dsa.errors import InvalidProblemError
from dsa.gate import as_integer, id_from_data, unboxed

__all__ = ["NONE", "PAIRED", "Constraints"]

Pairs: TypeAlias = "tuple[tuple[Hashable, Hashable], ...]"
Distances: TypeAlias = "tuple[tuple[Hashable, Hashable, int], ...]"


@dataclass(frozen=True, slots=True)
class Constraints:
    """Rules beyond lifetimes, by the ids of the buffers: what `Problem` takes besides buffers.

    The first five fields list pairs; the order of the pairs does not matter.

    Parameters
    ----------
    apart
        ``(a, b)``: never share bytes, even if they are never live together.
    exclusive
        ``(a, b)``: may share bytes although live together: branches of which one runs.
    in_place
        ``(input, output)``: the output may have the very offset of the input, although both are
        live at the one step that reads the one and writes the other; the solver chooses. The
        input dies where the output is born: ``input.upper`` is ``output.lower + 1`` (or
        ``output.lower``), and the output is no larger.
    aliases
        ``(a, b)`` or ``(a, b, delta)``: one storage, b begins `delta` bytes above a (0 if
        absent), and they may share bytes: views, and buffers that somebody has colocated.
    relative
        ``(a, b, delta)``: b lies `delta` bytes above a, and they may not share bytes while both
        are live: the parts of a concatenation, in order.
    reserved
        ``(start, stop)``: bytes that no buffer may use.
    chunk
        No buffer may lie across a multiple of this; None for no such limit.
    tail_padding
        Bytes of the arena above the peak that nobody may count on but kernels may read: part of
        `Plan.arena_size` and of what a capacity must hold, not of the peak.

    Examples
    --------
    >>> from dsa import Buffer, plan
    >>> buffers = [Buffer(0, 2, 64, id="x"), Buffer(1, 3, 64, id="y")]
    >>> plan(buffers).peak
    128
    >>> plan(buffers, constraints=Constraints(in_place=[("x", "y")])).peak
    64
    """

    apart: Pairs = ()
    exclusive: Pairs = ()
    in_place: Pairs = ()
    aliases: Distances = ()
    relative: Distances = ()
    reserved: tuple[tuple[int, int], ...] = ()
    chunk: int | None = None
    tail_padding: int = 0

    def __init__(
        self,
        *,
        apart: Iterable[Sequence[Any]] = (),
        exclusive: Iterable[Sequence[Any]] = (),
        in_place: Iterable[Sequence[Any]] = (),
        aliases: Iterable[Sequence[Any]] = (),
        relative: Iterable[Sequence[Any]] = (),
        reserved: Iterable[Sequence[Any]] = (),
        chunk: int | None = None,
        tail_padding: int = 0,
    ) -> None:
        checked = {
            "apart": _pairs(apart, "apart"),
            "exclusive": _pairs(exclusive, "exclusive"),
            "in_place": _pairs(in_place, "in_place"),
            "aliases": _distances(aliases, "aliases"),
            "relative": _distances(relative, "relative"),
            "reserved": _ranges(reserved),
            "chunk": None if chunk is None else _integer(chunk, "chunk", least=1),
            "tail_padding": _integer(tail_padding, "tail_padding", least=0),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __bool__(self) -> bool:
        """Whether it asks for anything."""
        return bool(self._used())

    def features(self) -> frozenset[str]:
        """Names of the fields that ask something of a solver."""
        return self._used() - {"tail_padding"}

    def _used(self) -> frozenset[str]:
        return frozenset(f.name for f in fields(self) if getattr(self, f.name) not in ((), None, 0))

    def among(self, ids: Iterable[Hashable]) -> Constraints:
        """Those that concern the buffers of these ids only."""
        kept = set(ids)
        if not self:
            return self
        data: dict[str, Any] = {
            name: [row for row in getattr(self, name) if row[0] in kept and row[1] in kept]
            for name in PAIRED
        }
        data |= {name: getattr(self, name) for name in ("reserved", "chunk", "tail_padding")}
        return Constraints(**data)

    def to_dict(self) -> dict[str, Any]:
        """The fields that ask for something, as plain data for JSON."""
        values = {name: getattr(self, name) for name in sorted(self._used())}
        return {
            name: list(map(list, value)) if isinstance(value, tuple) else value
            for name, value in values.items()
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Constraints:
        """Read back what `to_dict` wrote.

        Raises
        ------
        InvalidProblemError
            Naming what is no field, or the value that it cannot have.
        """
        if not isinstance(data, Mapping):
            raise InvalidProblemError(
                f"constraints must be a mapping, got {data!r}", field="constraints", value=data
            )
        known = {field.name for field in fields(cls)}
        unknown = sorted(map(str, data.keys() - known))
        if unknown:
            raise InvalidProblemError(
                f"no constraint is named {unknown[0]!r}; there are {', '.join(sorted(known))}",
                field="constraints",
                value=unknown[0],
            )
        return cls(**data)


# The fields that list pairs of buffers.
PAIRED = ("apart", "exclusive", "in_place", "aliases", "relative")


def _rows(values: Any, field: str, lengths: tuple[int, ...], what: str) -> list[tuple[Any, ...]]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InvalidProblemError(
            f"{field} must be a list of {what}, got {values!r}", field=field, value=values
        )
    rows = []
    for row in values:
        if (
            not isinstance(row, Sequence)
            or isinstance(row, (str, bytes))
            or len(row) not in lengths
        ):
            raise InvalidProblemError(
                f"{field} must be a list of {what}, but has {row!r}", field=field, value=row
            )
        # Ids are Python's own, as those of buffers; JSON has lists for tuples.
        rows.append(tuple(unboxed(id_from_data(value)) for value in row))
    return rows


def _pairs(values: Any, field: str) -> Pairs:
    rows = _rows(values, field, (2,), "pairs of ids")
    for a, b in rows:
        _check_pair(a, b, field)
    return tuple(rows)


def _distances(values: Any, field: str) -> Distances:
    lengths = (2, 3) if field == "aliases" else (3,)
    rows = [
        (*row, 0) if len(row) == 2 else row
        for row in _rows(values, field, lengths, "(id, id, bytes between their offsets)")
    ]
    for a, b, _ in rows:
        _check_pair(a, b, field)
    return tuple((a, b, _integer(delta, f"{field} of {a!r} and {b!r}")) for a, b, delta in rows)


def _check_pair(a: Any, b: Any, field: str) -> None:
    for id in (a, b):
        if not isinstance(id, Hashable):
            raise InvalidProblemError(f"{field}: {id!r} is no id", field=field, value=id)
    if a == b:
        raise InvalidProblemError(
            f"{field}: buffer {a!r} is paired with itself", id=a, field=field, value=(a, b)
        )


def _ranges(values: Any) -> tuple[tuple[int, int], ...]:
    ranges = []
    for start, stop in _rows(values, "reserved", (2,), "(start, stop) ranges of bytes"):
        start, stop = _integer(start, "reserved", least=0), _integer(stop, "reserved", least=0)
        if start >= stop:
            raise InvalidProblemError(
                f"reserved range [{start}, {stop}) is empty: start must be below stop",
                field="reserved",
                value=(start, stop),
            )
        ranges.append((start, stop))
    return tuple(sorted(ranges))


def _integer(value: Any, field: str, least: int | None = None) -> int:
    try:
        number = as_integer(value)
    except TypeError:
        raise InvalidProblemError(
            f"{field} must be an integer, got {value!r}", field=field, value=value
        ) from None
    lowest = 1 - 2**62 if least is None else least
    if not lowest <= number < 2**62:
        wanted = "below 2**62" if number > 0 else f"at least {lowest}"
        raise InvalidProblemError(
            f"{field} must be {wanted}, got {number}",
            field=field,
            value=number,
        )
    return number


NONE = Constraints()

"""The gate's checks: what users pass, as integers, columns and ids; errors name what is wrong.

Used by `Problem` and `Constraints`, behind which every value is what it claims to be.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dsa.errors import InvalidProblemError

__all__ = [
    "FREE",
    "LIMIT",
    "RANGE",
    "IntArray",
    "as_integer",
    "as_natural",
    "cell_of_id",
    "check_ids",
    "column",
    "holes",
    "id_from_data",
    "id_in_cell",
    "id_to_data",
    "integers",
    "listed",
    "pins",
    "plain",
    "read",
]

IntArray: TypeAlias = npt.NDArray[np.int64]

# Steps and sums of bytes stay below this, so that no int64 sum or difference of two can wrap.
LIMIT = 2**62
RANGE = "must lie between -2**62 and 2**62"
NO_HOLES: tuple[()] = ()  # there is one empty tuple
FREE = -1  # in the column of pins: the solver chooses the offset


def read(intervals: Any) -> dict[str, Any]:
    """Columns of whatever `Problem` takes: an array, or an iterable of rows."""
    if isinstance(intervals, np.ndarray) and (intervals.dtype != np.object_ or not intervals.ndim):
        return _read_array(intervals)
    return _read_rows(intervals)


def _read_array(array: npt.NDArray[Any]) -> dict[str, Any]:
    if array.ndim != 2 or array.shape[1] != 3:
        raise InvalidProblemError(
            f"an array of buffers has the shape (n, 3) - lower, upper, size - not {array.shape}"
        )
    columns = {"lower": array[:, 0], "upper": array[:, 1], "size": array[:, 2]}
    return {**columns, "ids": None, "holes": ()}


def _read_rows(rows: Iterable[Any]) -> dict[str, Any]:
    if isinstance(rows, (str, bytes)) or not isinstance(rows, Iterable):
        raise InvalidProblemError(
            f"expected an iterable of buffers, got {type(rows).__name__} {rows!r}", value=rows
        )
    table = [_read_row(row, position) for position, row in enumerate(rows)]
    names = ("lower", "upper", "size", "alignment", "offset", "ids", "holes")
    columns: dict[str, Any] = {name: [row[k] for row in table] for k, name in enumerate(names)}
    columns["holes"] = [
        (i, *hole)
        for i, rows in enumerate(columns["holes"])
        if rows is not NO_HOLES
        for hole in _hole_rows(rows, i)
    ]
    return columns


def _hole_rows(rows: Any, i: int) -> Iterable[Sequence[Any]]:
    if isinstance(rows, (list, tuple)) and all(isinstance(row, Sequence) for row in rows):
        return rows
    raise InvalidProblemError(
        f"buffer {i}: holes must be a list of (lower, upper) or (lower, upper, start, stop), "
        f"got {rows!r}",
        id=i,
        field="holes",
        value=rows,
    )


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
            getattr(row, "holes", NO_HOLES),
        )
    values = row.tolist() if isinstance(row, np.ndarray) else row
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes)) and len(values) == 3:
        return (*values, 1, None, position, NO_HOLES)
    raise InvalidProblemError(
        f"buffer {position}: expected a Buffer, a (lower, upper, size) tuple or an object with "
        f"those attributes, got {row!r}",
        id=position,
        value=row,
    )


def listed(values: Any, field: str) -> Any:
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


def check_ids(ids: Sequence[Hashable], n: int) -> tuple[Hashable, ...]:
    """Ids as a tuple: one for each buffer, hashable and distinct."""
    given = ids if isinstance(ids, str) else listed(ids, "id")
    if isinstance(given, np.ndarray):
        names = tuple(given.tolist())
    elif set(map(type, given)) <= {int, str}:  # a long file's ids
        names = tuple(given)
    else:
        names = tuple(map(unboxed, given))
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


def unboxed(id: Hashable) -> Hashable:
    """A NumPy scalar as Python's own; what Python has no type for stays as it is."""
    return id.item() if isinstance(id, (np.number, np.bool_, np.character)) else id


def plain(id: Hashable) -> Hashable:
    """The id, written in one way: equal ids become the same text."""
    id = unboxed(id)
    if isinstance(id, tuple):
        return tuple(map(plain, id))
    if isinstance(id, int) or (isinstance(id, float) and id.is_integer()):
        return int(id)
    return str.__str__(id) if isinstance(id, str) else id


def id_to_data(id: Hashable) -> Any:
    """The id as JSON holds it, a tuple as a list; a TypeError for what it cannot hold."""
    id = unboxed(id)
    if isinstance(id, tuple):
        return list(map(id_to_data, id))
    if not isinstance(id, (str, int)):
        raise TypeError(f"{id!r} is neither text, an integer nor a tuple of such")
    return id


def id_from_data(data: Any) -> Any:
    """The id that `id_to_data` wrote."""
    return tuple(map(id_from_data, data)) if isinstance(data, list) else data


def id_in_cell(cell: str) -> Hashable:
    """The id that a cell of CSV holds: text, or a tuple as JSON writes it, ``["conv", 0]``."""
    if cell.startswith("["):
        with suppress(ValueError, TypeError, RecursionError):
            id: Hashable = id_from_data(json.loads(cell))
            id_to_data(id)
            return id
    return cell


def cell_of_id(id: Hashable) -> str | None:
    """The cell for an id; None if it would not come back from there."""
    with suppress(TypeError):
        cell = json.dumps(id_to_data(id)) if isinstance(id, tuple) else str(id)
        plain = type(id) is int or id_in_cell(cell) == id
        return cell if plain and cell.isprintable() and cell and cell == cell.strip() else None
    return None


def pins(offset: Any, ids: Sequence[Hashable] | None) -> Any:
    """None becomes -1; a -1 that somebody gave as an offset is a mistake, unless in an array."""
    if isinstance(offset, np.ndarray) and offset.dtype != np.object_:
        return offset
    pins = list(offset)
    if set(map(type, pins)) == {NoneType}:  # as of most lists of buffers
        return np.full(len(pins), FREE)
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


def holes(rows: Any, n: int, ids: Sequence[Hashable] | None) -> IntArray:
    """Rows (position, lower, upper, start, stop), in order; without a window nothing is kept."""
    table = []
    for row in rows.tolist() if isinstance(rows, np.ndarray) else rows:
        if not isinstance(row, Sequence) or len(row) not in (3, 5):
            raise InvalidProblemError(
                "a hole is (position, lower, upper), or these and (start, stop) of the bytes "
                f"kept, got {row!r}",
                field="holes",
                value=row,
            )
        i = as_natural(row[0], "holes: position")
        if i >= n:
            raise InvalidProblemError(
                f"holes: there is no buffer at position {i} of {n}", field="holes", value=i
            )
        name = [i if ids is None else ids[i]] * 4
        values = integers([*row[1:], 0, 0][:4], "holes", name)
        if max(map(abs, values)) >= LIMIT:
            raise InvalidProblemError(
                f"buffer {name[0]!r}: holes {RANGE}, got {tuple(values)}",
                id=name[0],
                field="holes",
                value=tuple(values),
            )
        table.append((i, *values))
    return np.array(sorted(table), np.int64).reshape(-1, 5)


def column(values: Any, field: str, ids: Sequence[Hashable] | None) -> IntArray:
    """A new int64 array of the values; refuses everything that is not an integer."""
    if (
        isinstance(values, np.ndarray)
        and values.dtype.kind in "iu"
        and values.ndim == 1
        and (values.dtype.kind == "i" or int(values.max(initial=0)) < 2**63)
    ):
        return values.astype(np.int64)
    exact = integers(values, field, ids)
    try:
        return np.array(exact, np.int64)
    except OverflowError:
        i = next(i for i, value in enumerate(exact) if not -(2**63) <= value < 2**63)
        id = i if ids is None else ids[i]
        raise InvalidProblemError(
            f"buffer {id!r}: {field} {RANGE}, got {exact[i]}",
            id=id,
            field=field,
            value=exact[i],
        ) from None


def integers(values: Any, field: str, ids: Sequence[Hashable] | None) -> list[int]:
    """The values as Python integers; refuses everything that is not one."""
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

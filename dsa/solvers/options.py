"""Options as people write them on a command line: text, read as the types of a solver's fields."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from dsa.errors import DsaError
from dsa.solvers import Solver, build, solver_class

__all__ = ["build_from_text"]


def build_from_text(name: str, options: Mapping[str, str]) -> Solver:
    """A solver from its name and options in words.

    Raises
    ------
    DsaError
        If there is no such option, or the solver refuses the value.

    Examples
    --------
    >>> build_from_text("strip-packing", {"mirrored": "false", "orders": "area,size"})
    StripPacking(orders=('area', 'size'), mirrored=False, restarts=None, ...)
    """
    kinds = get_type_hints(solver_class(name))
    values: dict[str, Any] = {}
    for key, text in options.items():
        try:
            values[key] = _value(text, kinds.get(key, str))
        except ValueError as error:
            raise DsaError(f"solver {name!r}: {key} cannot be {text!r}") from error
    try:
        return build(name, values)
    except (TypeError, ValueError) as error:  # no such option, or the solver refuses the value
        raise DsaError(f"{error}") from error


def _value(text: str, kind: Any) -> Any:
    """The text as a value of the type; ValueError if it is none."""
    parts = get_args(kind)
    if get_origin(kind) in (Union, UnionType):
        if NoneType in parts and text.lower() == "none":
            return None
        return _value(text, next(part for part in parts if part is not NoneType))
    if get_origin(kind) is tuple:
        return tuple(_value(part, parts[0]) for part in text.split(","))
    if kind is bool:
        return ("false", "true").index(text.lower()) == 1
    return kind(text) if kind in (int, float) else text

"""Bytes for people: 1572864 is written 1.5 MiB and read from "1.5MiB"."""

from __future__ import annotations

import re

__all__ = ["format_size", "parse_size"]

_BINARY = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_FACTORS: dict[str, int] = {"": 1, "b": 1}
_FACTORS |= {unit.lower(): 1024**k for k, unit in enumerate(_BINARY, start=1)}
_FACTORS |= {unit: 1000**k for k, unit in enumerate(("kb", "mb", "gb", "tb", "pb", "eb"), start=1)}


def format_size(size: int) -> str:
    """Bytes in the largest binary unit that leaves at least 1, to four digits.

    Examples
    --------
    >>> format_size(12), format_size(1536), format_size(1039360)
    ('12 B', '1.5 KiB', '1015 KiB')
    """
    power = min(max((abs(size).bit_length() - 1) // 10, 0), len(_BINARY))
    if not power:
        return f"{size} B"
    scaled = size / 1024**power
    text = f"{scaled:.4g}" if scaled < 1000 else f"{scaled:.0f}"
    return f"{text} {_BINARY[power - 1]}"


def parse_size(text: str) -> int:
    """A number of bytes with an optional unit: binary (KiB) or decimal (kB), in any case.

    Raises
    ------
    ValueError
        If the text is no size, or no whole number of bytes.

    Examples
    --------
    >>> parse_size("1MiB"), parse_size("1.5 KiB"), parse_size("4096")
    (1048576, 1536, 4096)
    """
    match = re.fullmatch(r"\s*(\d+)(?:\.(\d+))?\s*([a-zA-Z]*)\s*", text)
    if match is None or match[3].lower() not in _FACTORS:
        raise ValueError(f"{text!r} is no size; write for example 4096, 64KiB or 1.5MiB")
    decimals = match[2] or ""
    scaled = int(match[1] + decimals) * _FACTORS[match[3].lower()]
    size, rest = divmod(scaled, int("1" + "0" * len(decimals)))
    if rest:
        raise ValueError(f"{text!r} is no whole number of bytes")
    return size

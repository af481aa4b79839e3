"""A CSV file as a table: what its columns mean, and which cell is to blame for an error."""

from __future__ import annotations

import csv
import difflib
import math
import re
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import StringIO
from itertools import filterfalse, islice
from typing import Any, NoReturn

from dsa.errors import FileFormatError, InvalidProblemError
from dsa.gate import id_in_cell
from dsa.problem import FREE, Problem

__all__ = ["NEEDED", "Table", "written_holes"]

# What the columns are called, MiniMalloc's older names included, and what they mean to us.
_MEANING = {
    "id": "id",
    "buffer": "id",
    "buffer_id": "id",
    "lower": "lower",
    "begin": "lower",
    "start": "lower",
    "upper": "upper",
    "end": "upper",  # closed: the last step at which the buffer is live
    "size": "size",
    "alignment": "alignment",
    "offset": "offset",
    "hint": "hint",
    "gaps": "holes",
    "holes": "holes",
}
NEEDED = ("lower", "upper", "size")
ROWS = 256  # cut at a time: too few to wake the garbage collector
_HEADER = -1  # where a buffer's position is asked for
_EMPTY = {"alignment": 1, "offset": None}  # what an empty cell says
_UNSUPPORTED = {"hint": ("", "-1")}  # and the cells that ask for nothing
# Names that would be ignored although they, or nearly they, say what one of the columns says.
_SUSPECT = {name: _MEANING[name] for name in (*NEEDED, "alignment", "offset", "hint")}
_SUSPECT |= {"align": "alignment", "pin": "offset", "pinned": "offset", "address": "offset"}
_SUSPECT |= {"gaps": "gaps", "holes": "holes"}

_INTEGER = re.compile("[+-]?[0-9]{1,40}")
_HOLE = re.compile(r"(-?\d{1,40})-(-?\d{1,40})(?:@(\d{1,40}):(\d{1,40}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV file, cut into columns of cells.

    Attributes
    ----------
    file, text
        What errors call it, and what it holds.
    header
        The columns' names, as the file has them.
    at, cells
        Position and cells of the columns that mean something to us.
    """

    file: str
    text: str
    header: list[str]
    at: dict[str, int] = field(default_factory=dict)
    cells: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, file: str, text: str) -> Table:
        """Cut the text; a column that cannot be honoured is refused."""
        rows = filterfalse(_blank, _reader(text))
        try:
            header = next(rows, None)
            if header is None:
                raise FileFormatError(
                    f"{file} is empty; its first line must name the columns, such as "
                    "id,lower,upper,size"
                )
            table = cls(file, text, [name.strip() for name in header])
            table._find_columns()
            table._cut(rows)
        except csv.Error as error:
            raise FileFormatError(f"{file}, line {_line(text)}: no CSV: {error}") from error
        table._refuse_unsupported()
        return table

    def _find_columns(self) -> None:
        for position, name in enumerate(self.header):
            meaning = _MEANING.get(name.lower())
            if meaning in self.at:
                other = self.header[self.at[meaning]]
                self.refuse(f"says the same as column {other!r}; keep one", _HEADER, name)
            if meaning is not None:
                self.at[meaning] = position
        for name in self.header:
            meant = _almost(name.lower())
            if meant is not None and meant not in self.at:
                self.refuse(
                    f"is unknown; call it {meant!r} if it is that, otherwise rename it "
                    "(what is clearly another column is ignored)",
                    _HEADER,
                    name,
                )
        for meaning in NEEDED:
            self.need(meaning)

    def _cut(self, rows: Iterator[list[str]]) -> None:
        """Cells by column."""
        for meaning in self.at:
            self.cells[meaning] = []
        first = 0
        while some := list(islice(rows, ROWS)):
            for i, row in enumerate(some, first):
                if len(row) != len(self.header):
                    self.refuse(f"{len(row)} cells under {len(self.header)} columns: {row}", i)
            columns = list(zip(*some, strict=True))
            for meaning, position in self.at.items():
                self.cells[meaning] += map(str.strip, columns[position])
            first += len(some)

    def _refuse_unsupported(self) -> None:
        for meaning, harmless in _UNSUPPORTED.items():
            for i, cell in enumerate(self.cells.get(meaning, ())):
                if cell not in harmless:
                    message = (
                        f"{cell!r} is a wish, and a problem holds none; give an earlier plan, "
                        "with offsets, as --hint or hint=, and leave this column out"
                    )
                    self.refuse(message, i, meaning, cell)

    def need(self, meaning: str) -> None:
        """Refuse a file that lacks a column."""
        if meaning not in self.at:
            names = " or ".join(repr(name) for name, what in _MEANING.items() if what == meaning)
            has = ", ".join(map(repr, self.header))
            self.refuse(f"no column {names} among {has}; the first line names them", _HEADER)

    def integers(self, meaning: str) -> list[Any]:
        """A column of numbers; None for an empty cell, or what it stands for."""
        cells, empty = self.cells[meaning], meaning in _EMPTY
        numbers = _plain_integers(cells)
        if numbers is not None:
            return numbers
        for i, cell in enumerate(cells):
            if not (_INTEGER.fullmatch(cell) or (empty and not cell)):
                what = f"{cell!r} is no integer" if cell else "is empty"
                self.refuse(f"{what}; write for example 4096", i, meaning, cell)
        return [int(cell) if cell else _EMPTY[meaning] for cell in cells]

    def holes(self) -> Iterator[tuple[int, ...]]:
        """Rows (position, lower, upper), and (start, stop) where there is a window."""
        for i, cell in enumerate(self.cells["holes"]):
            for text in cell.split():
                hole = _HOLE.fullmatch(text)
                if hole is None:
                    message = "is no hole; write for example 3-5, or 3-5@0:16 to keep 16 bytes"
                    self.refuse(f"{text!r} {message}", i, "holes", text)
                lower, upper, *window = (int(number) for number in hole.groups() if number)
                yield i, lower, upper + self._closed(), *window

    def ids(self) -> list[Any] | None:
        """The column of ids; None if there is none."""
        if "id" not in self.at:
            return None
        cells = self.cells["id"]
        if "" in cells:
            message = "is empty; name every buffer or remove the column"
            self.refuse(message, cells.index(""), "id", "")
        numbers = _plain_integers(cells)
        if numbers is not None and list(map(str, numbers)) == cells:
            return numbers
        return list(map(id_in_cell, cells))

    def problem(self, *, pinned: bool) -> Problem:
        """The problem of all columns; without pins, offsets are left to be read as a plan."""
        columns: dict[str, Any] = {name: self.integers(name) for name in NEEDED}
        if self._closed():
            columns["upper"] = [last + 1 for last in columns["upper"]]
        if "alignment" in self.at:
            columns["alignment"] = self.integers("alignment")
        if pinned and "offset" in self.at:
            pins = columns["offset"] = self.integers("offset")
            if FREE in pins:
                message = "is -1; empty the cell if the solver may choose"
                self.refuse(message, pins.index(FREE), "offset", FREE)
        if "holes" in self.at:
            columns["holes"] = list(self.holes())
        ids = self.ids()
        try:
            return Problem.from_columns(**columns, ids=ids)
        except InvalidProblemError as error:
            self._blame(error, range(len(columns["size"])) if ids is None else ids)

    def _closed(self) -> bool:
        return self.header[self.at["upper"]].lower() == "end"

    def _blame(self, error: InvalidProblemError, ids: Sequence[Hashable]) -> NoReturn:
        """Refuse as the gate did, with the line of the buffer that it names."""
        message = str(error)
        buffers = [i for i, id in enumerate(ids) if id == error.id]
        if len(buffers) > 1:
            message += f", the first on line {_line(self.text, buffers[0] + 1)}"
        if error.field in ("upper", "holes") and self._closed():
            message += "; 'end' is the last step live, so upper is end + 1"
        self.refuse(message, buffers[-1] if buffers else None, error.field, error.value, error.id)

    def refuse(
        self,
        message: str,
        buffer: int | None = None,
        column: str | None = None,
        value: object = None,
        id: Hashable = None,
    ) -> NoReturn:
        """Raise, naming the place; the column goes by its name in the file or by its meaning."""
        if column in self.at and column not in self.header:
            column = self.header[self.at[column]]
        place = self.file if buffer is None else f"{self.file}, line {_line(self.text, buffer + 1)}"
        if column in self.header:
            place += f", column {column!r}"
        raise FileFormatError(f"{place}: {message}", id=id, field=column, value=value)


def _almost(name: str) -> str | None:
    """What a column that we do not know was probably meant to be."""
    if name in _MEANING:
        return None
    near = difflib.get_close_matches(name, _SUSPECT, n=1, cutoff=0.7)
    return _SUSPECT[near[0]] if near else None


def _reader(text: str) -> Any:
    return csv.reader(StringIO(text, newline=""), strict=True)


def _blank(row: list[str]) -> bool:
    return not "".join(row).strip()


def _plain_integers(cells: list[str]) -> list[int] | None:
    """The numbers, at once; None if some cell is none, or is written as only Python would."""
    text = "".join(cells)
    if "_" in text or not text.isascii():
        return None
    try:
        return list(map(int, cells))
    except ValueError:
        return None


def _line(text: str, record: float = math.inf) -> int:
    """On which line a record begins; the header is record 0, and blank lines are none.

    Where there is no such record, the line after the last one that can be read.
    """
    reader, line = _reader(text), 1
    with suppress(csv.Error):
        for row in reader:
            if not _blank(row):
                if not record:
                    break
                record -= 1
            line = reader.line_num + 1
    return line


def written_holes(problem: Problem) -> list[str]:
    """The cells of the column ``gaps``, as MiniMalloc writes them."""
    cells = [""] * len(problem)
    for i, lower, upper, start, stop in problem.holes.tolist():
        window = f"@{start}:{stop}" if start < stop else ""
        cells[i] += f" {lower}-{upper}{window}"
    return [cell.lstrip() for cell in cells]

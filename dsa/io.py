"""Files: MiniMalloc's CSV, JSON and NumPy arrays, and the real models that come with the library.

An error names the file, the line and the column, and says what to do. What cannot be honoured or
written is refused; the two things that CSV has no room for are named at `write_csv`.

What only some files need (gzip, zipfile) is imported for them: `import dsa` should cost little.
"""

from __future__ import annotations

import csv
import difflib
import json
import os
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from io import BytesIO, StringIO
from pathlib import Path, PurePath
from typing import IO, Any, NoReturn, TypeAlias

import numpy as np

from dsa.bounds import lower_bound
from dsa.errors import FileFormatError, InvalidPlanError, InvalidProblemError
from dsa.problem import FREE, Intervals, Problem
from dsa.result import FORMAT as PLAN_FORMAT
from dsa.result import Plan
from dsa.validation import validate

__all__ = [
    "bundled",
    "load",
    "offsets_by_id",
    "read_csv",
    "read_json",
    "read_numpy",
    "read_plan",
    "read_problem",
    "write_csv",
    "write_json",
    "write_numpy",
]

Source: TypeAlias = "str | os.PathLike[str] | IO[str] | IO[bytes]"
Target: TypeAlias = "str | os.PathLike[str] | IO[str]"

FORMAT = "dsa-problem"
VERSION = 1


# -- by name or path --------------------------------------------------------------------------


def load(name_or_path: str | os.PathLike[str]) -> Problem:
    """Read a problem: a file, or a real model that comes with the library.

    Parameters
    ----------
    name_or_path
        A path that ends in ``.csv``, ``.json`` (both perhaps with ``.gz``), ``.npy`` or
        ``.npz``; a model that ends in ``.onnx``, ``.tflite`` or ``.pt2``, for which the extra
        ``onnx``, ``tflite`` or ``torch`` is needed; or one of the names that `bundled` lists, in
        which ``-`` and ``_`` are the same.

    Raises
    ------
    InvalidProblemError
        If it is neither; with the nearest name.
    FileFormatError
        If the file does not hold what its format asks for.
    SolverUnavailableError
        If the package that reads such a model is not installed.
    OSError
        If the file cannot be read.

    Notes
    -----
    MiniMalloc's benchmarks carry a capacity in the name of the file (``A.1048576.csv``). It is
    not applied: pass ``capacity=1048576`` to `plan`.

    Examples
    --------
    >>> load("infer-resnet50-b1")
    <Problem: 175 buffers, load 9633792>
    """
    reader = _READERS.get(PurePath(str(name_or_path).lower().removesuffix(".gz")).suffix)
    if isinstance(reader, str):
        module, _, function = reader.partition(":")
        reader = getattr(import_module(module), function)
    if reader is not None:
        return reader(name_or_path)
    name = str(name_or_path).replace("_", "-").lower()
    if name in bundled():
        with (_models() / f"{name}.csv.gz").open("rb") as file:
            return read_csv(file)
    near = difflib.get_close_matches(name, bundled(), n=1)
    hint = f"did you mean {near[0]!r}?" if near else "dsa.io.bundled() lists those that do"
    raise InvalidProblemError(
        f"no model named {str(name_or_path)!r} comes with dsa, and files end in "
        f"{', '.join(_READERS)}; {hint}",
        field="name",
        value=name_or_path,
    )


@cache
def bundled() -> tuple[str, ...]:
    """Names of the real models that come with the library; ``bench/models/models.csv`` has more.

    Examples
    --------
    >>> bundled()[:2]
    ('eager-bert-small-b8-train', 'eager-gpt2-small4-generate-short')
    """
    index = (_models() / "models.csv").read_text("utf-8")
    return tuple(row["name"] for row in csv.DictReader(index.splitlines()))


def _models() -> Any:
    from importlib.resources import files

    return files("dsa") / "bench" / "models"


def read_problem(source: Source) -> Problem:
    """Read a problem from CSV or JSON, whichever it is: JSON begins with a brace."""
    file, text = read_text(source)
    return _json_problem(file, text) if _is_json(text) else _csv_problem(file, text)


def read_plan(source: Source, problem: Intervals | None = None) -> Plan:
    """Read a plan from CSV or JSON, believing nothing that can be checked.

    Parameters
    ----------
    source
        A path or an open file. In CSV the column ``offset`` holds the plan, not pins.
    problem
        The problem that the plan is wanted for; the one in the file if None. A plan in JSON must
        have been made for this very problem. The offsets of a CSV file go to the buffers of the
        same id, and must hold for them.

    Raises
    ------
    InvalidPlanError
        If the plan breaks a rule of the problem, or claims what does not hold: see
        `Plan.from_dict`.
    FileFormatError
        If the file is no plan.
    """
    file, text = read_text(source)
    if _is_json(text):
        data = parse_json(file, text)
        try:
            return Plan.from_dict(data, problem)
        except InvalidPlanError as error:
            if isinstance(error.__cause__, InvalidProblemError):
                raise _in_file(file, error.__cause__) from error
            raise InvalidPlanError(f"{file}: {error}", violations=error.violations) from error
    table = _Table.read(file, text)
    table.need("offset")
    stored = table.problem(pinned=False)
    wanted = stored if problem is None else Problem(problem)
    offsets = offsets_by_id(stored.ids, table.integers("offset"), wanted)
    violations = validate(offsets, wanted)
    if violations:
        raise InvalidPlanError(
            f"{file}: the plan breaks {len(violations)} rules of its problem; the first is "
            f"{violations[0]}",
            violations=violations,
        )
    array = np.array([offsets[id] for id in wanted.ids], np.int64)
    return Plan(wanted, array, lower_bound(wanted), "unknown")


def offsets_by_id(
    ids: Iterable[Hashable], offsets: Iterable[int | None], problem: Problem
) -> dict[Hashable, int | None]:
    """Offsets under the ids of a problem; an id that only reads the same is the same.

    CSV has no types: what is ``"7"`` in one file may be 7 in another.

    Examples
    --------
    >>> offsets_by_id([7], [64], Problem.from_columns([0], [1], [8], ids=["7"]))
    {'7': 64}
    """
    known = {str(id): id for id in problem.ids} | {id: id for id in problem.ids}
    pairs = zip(ids, offsets, strict=True)
    return {known.get(id, known.get(str(id), id)): offset for id, offset in pairs}


# -- CSV --------------------------------------------------------------------------------------

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
    "gaps": "gaps",
}
_NEEDED = ("lower", "upper", "size")
_HEADER = -1  # where a buffer's position is asked for
_EMPTY = {"alignment": 1, "offset": None}  # what an empty cell says
_UNSUPPORTED = {"hint": ("", "-1"), "gaps": ("",)}  # and the cells that ask for nothing
# Names that would be ignored although they, or nearly they, say what one of the columns says.
_SUSPECT = {name: _MEANING[name] for name in (*_NEEDED, "alignment", "offset", "hint", "gaps")}
_SUSPECT |= {"align": "alignment", "pin": "offset", "pinned": "offset", "address": "offset"}

_INTEGER = re.compile("[+-]?[0-9]{1,40}")
_OPTIONAL_INTEGER = re.compile(f"({_INTEGER.pattern})?")
_CANONICAL = re.compile("0|-?[1-9][0-9]{0,40}")  # as Python writes an integer


def read_csv(source: Source) -> Problem:
    r"""Read a problem from a CSV file with MiniMalloc's columns.

    Parameters
    ----------
    source
        A path or an open file, of text or bytes; perhaps compressed with gzip.

    Raises
    ------
    FileFormatError
        Naming file, line and column.

    Notes
    -----
    ===========================  =====================================================
    column                       holds
    ===========================  =====================================================
    ``lower`` (begin, start)     first step live
    ``upper``                    first step no longer live
    ``end`` instead of upper     last step live: ``upper = end + 1``
    ``size``                     bytes
    ``id`` (buffer, buffer_id)   name; the position if there is no such column
    ``alignment``                1 if empty
    ``offset``                   a pin; empty where the solver chooses
    ``hint``, ``gaps``           not supported yet: refused unless empty (or hint -1)
    ===========================  =====================================================

    The first line names the columns, in any order and case. Every other column is ignored,
    except that one whose name is nearly that of a column the file lacks is refused as a mistake.
    Blank lines and spaces around a cell do not count. Ids are text; only where all of them are
    integers as Python writes them, they are integers.

    Examples
    --------
    >>> from io import StringIO
    >>> read_csv(StringIO("id,lower,upper,size\na,0,2,60\nb,1,3,50\n"))
    <Problem: 2 buffers, load 110>
    >>> read_csv(StringIO("begin,end,size\n0,2,60\n2,3,50k\n"))
    Traceback (most recent call last):
    dsa.errors.FileFormatError: the file, line 3, column 'size': '50k' is no integer; ...
    """
    return _csv_problem(*read_text(source))


def write_csv(plan_or_problem: Plan | Problem, target: Target) -> None:
    r"""Write buffers, and the offsets of a plan, as CSV that `read_csv` and MiniMalloc can read.

    Columns ``id,lower,upper,size``, then ``alignment`` if any is not 1, then ``offset``: those of
    a plan, or the pins of a problem that has any (MiniMalloc itself wants all or none pinned).
    There is no column for a capacity, or for the pins of a plan: `write_json` keeps them.

    Parameters
    ----------
    plan_or_problem
        What to write.
    target
        A path (compressed if it ends in ``.gz``) or a file open for text.

    Raises
    ------
    InvalidProblemError
        Naming an id that CSV cannot hold: only integers and printable text without spaces at its
        ends, no two of which read the same.

    Examples
    --------
    >>> from io import StringIO
    >>> file = StringIO()
    >>> write_csv(Problem([(0, 2, 60), (1, 3, 50)]), file)
    >>> file.getvalue()
    'id,lower,upper,size\n0,0,2,60\n1,1,3,50\n'
    """
    problem = plan_or_problem.problem if isinstance(plan_or_problem, Plan) else plan_or_problem
    columns: dict[str, Iterable[Any]] = {"id": _csv_ids(problem)}
    columns |= {name: getattr(problem, name).tolist() for name in _NEEDED}
    if (problem.alignment != 1).any():
        columns["alignment"] = problem.alignment.tolist()
    if isinstance(plan_or_problem, Plan):
        columns["offset"] = plan_or_problem.offsets
    elif (problem.pin != FREE).any():
        columns["offset"] = ["" if pin == FREE else pin for pin in problem.pin.tolist()]
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")  # MiniMalloc chokes on a carriage return
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    _write_text(target, text.getvalue())


def _csv_ids(problem: Problem) -> list[str]:
    seen: dict[str, Hashable] = {}
    for id in problem.ids:
        name = str(id)
        if type(id) not in (int, str) or not name or not name.isprintable() or name != name.strip():
            raise InvalidProblemError(
                f"buffer {id!r}: CSV cannot hold this id, only an integer or printable text "
                "without spaces at its ends; write JSON, or give it another id",
                id=id,
                field="id",
                value=id,
            )
        if name in seen:
            raise InvalidProblemError(
                f"buffers {seen[name]!r} and {id!r} have ids that read the same in CSV; write "
                "JSON, or give one another id",
                id=id,
                field="id",
                value=id,
            )
        seen[name] = id
    return list(seen)


def _csv_problem(file: str, text: str) -> Problem:
    return _Table.read(file, text).problem(pinned=True)


@dataclass(frozen=True, slots=True)
class _Table:
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
    def read(cls, file: str, text: str) -> _Table:
        rows: list[list[str]] = []
        try:
            for row in _reader(text):
                if not _blank(row):
                    rows.append(row)
        except csv.Error as error:
            line = _line(text, len(rows))
            raise FileFormatError(f"{file}, line {line}: no CSV: {error}") from error
        if not rows:
            raise FileFormatError(
                f"{file} is empty; its first line must name the columns, such as "
                "id,lower,upper,size"
            )
        table = cls(file, text, [name.strip() for name in rows[0]])
        table._find_columns()
        table._cut(rows[1:])
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
        for meaning in _NEEDED:
            self.need(meaning)

    def _cut(self, rows: list[list[str]]) -> None:
        for i, row in enumerate(rows):
            if len(row) != len(self.header):
                self.refuse(f"{len(row)} cells under {len(self.header)} columns: {row}", i)
        columns = list(zip(*rows, strict=True)) or [()] * len(self.header)
        for meaning, position in self.at.items():
            self.cells[meaning] = list(map(str.strip, columns[position]))

    def _refuse_unsupported(self) -> None:
        for meaning, harmless in _UNSUPPORTED.items():
            for i, cell in enumerate(self.cells.get(meaning, ())):
                if cell not in harmless:
                    message = f"{cell!r} is not supported yet; empty the cell to plan without it"
                    self.refuse(message, i, meaning, cell)

    def need(self, meaning: str) -> None:
        if meaning not in self.at:
            names = " or ".join(repr(name) for name, what in _MEANING.items() if what == meaning)
            has = ", ".join(map(repr, self.header))
            self.refuse(f"no column {names} among {has}; the first line names them", _HEADER)

    def integers(self, meaning: str) -> list[Any]:
        cells = self.cells[meaning]
        pattern = _OPTIONAL_INTEGER if meaning in _EMPTY else _INTEGER
        if not all(map(pattern.fullmatch, cells)):
            i = next(i for i, cell in enumerate(cells) if not pattern.fullmatch(cell))
            what = f"{cells[i]!r} is no integer" if cells[i] else "is empty"
            self.refuse(f"{what}; write for example 4096", i, meaning, cells[i])
        return [int(cell) if cell else _EMPTY[meaning] for cell in cells]

    def ids(self) -> list[Any] | None:
        if "id" not in self.at:
            return None
        cells = self.cells["id"]
        if "" in cells:
            message = "is empty; name every buffer or remove the column"
            self.refuse(message, cells.index(""), "id", "")
        return list(map(int, cells)) if all(map(_CANONICAL.fullmatch, cells)) else cells

    def problem(self, *, pinned: bool) -> Problem:
        columns: dict[str, Any] = {name: self.integers(name) for name in _NEEDED}
        if self._closed():
            columns["upper"] = [last + 1 for last in columns["upper"]]
        if "alignment" in self.at:
            columns["alignment"] = self.integers("alignment")
        if pinned and "offset" in self.at:
            pins = columns["offset"] = self.integers("offset")
            if FREE in pins:
                message = "is -1; empty the cell if the solver may choose"
                self.refuse(message, pins.index(FREE), "offset", FREE)
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
        if error.field == "upper" and self._closed():
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
    return not any(map(str.strip, row))


def _line(text: str, record: int) -> int:
    """On which line a record begins; the header is record 0, and blank lines are none."""
    reader, line = _reader(text), 1
    with suppress(csv.Error):
        for row in reader:
            if not _blank(row):
                if not record:
                    break
                record -= 1
            line = reader.line_num + 1
    return line


# -- JSON -------------------------------------------------------------------------------------


def read_json(source: Source) -> Problem:
    """Read a problem that `write_json` wrote.

    Raises
    ------
    FileFormatError
        Naming the file, and line and column where it is no JSON.
    """
    return _json_problem(*read_text(source))


def write_json(plan_or_problem: Plan | Problem, target: Target) -> None:
    """Write a problem or a plan as JSON, with nothing left out.

    Parameters
    ----------
    plan_or_problem
        What to write.
    target
        A path (compressed if it ends in ``.gz``) or a file open for text.

    Raises
    ------
    InvalidProblemError
        Naming an id that is neither a string nor an integer.

    Examples
    --------
    >>> from io import StringIO
    >>> file = StringIO()
    >>> write_json(Problem([(0, 2, 60), (1, 3, 50)]), file)
    >>> print(file.getvalue())
    {
     "format": "dsa-problem",
     "version": 1,
     "ids": [0, 1],
     "lower": [0, 1],
     "upper": [2, 3],
     "size": [60, 50],
     "alignment": [1, 1],
     "offset": [null, null],
     "capacity": null
    }
    """
    data = plan_or_problem.to_dict()
    if isinstance(plan_or_problem, Problem):
        data = {"format": FORMAT, "version": VERSION, **data}
    lines = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in data.items())
    _write_text(target, "{\n" + ",\n".join(lines) + "\n}\n")


def _is_json(text: str) -> bool:
    return text.lstrip().startswith("{")


def parse_json(file: str, text: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise FileFormatError(
            f"{file}, line {error.lineno}, column {error.colno}: no JSON: {error.msg}"
        ) from error
    except RecursionError as error:
        raise FileFormatError(f"{file}: no JSON: it is nested too deeply") from error
    except ValueError as error:  # an integer of more digits than Python reads
        raise FileFormatError(f"{file}: no JSON: {error}") from error
    if not isinstance(data, dict):
        raise FileFormatError(f"{file}: expected an object, got {type(data).__name__}")
    return data


def _json_problem(file: str, text: str) -> Problem:
    data = parse_json(file, text)
    format, version = data.pop("format", None), data.pop("version", None)
    if format != FORMAT or type(version) is not int or version != VERSION:
        hint = "; it is a plan, see read_plan" if format == PLAN_FORMAT else ""
        raise FileFormatError(
            f"{file}: expected format {FORMAT!r} version {VERSION}, got {format!r} version "
            f"{version!r}{hint}"
        )
    try:
        return Problem.from_dict(data)
    except InvalidProblemError as error:
        raise _in_file(file, error) from error


# -- NumPy ------------------------------------------------------------------------------------


def read_numpy(source: str | os.PathLike[str] | IO[bytes]) -> Problem:
    """Read a problem from an ``.npy`` or ``.npz`` file.

    An ``.npy`` file holds an integer array of shape (n, 3): lower, upper, size. An ``.npz`` file
    holds integer columns under the names that `Problem.from_columns` gives them, of which
    ``lower``, ``upper`` and ``size`` are needed; a free offset is -1.

    Raises
    ------
    FileFormatError
        Naming the file, the column, the buffer and the value.
    """
    from zipfile import BadZipFile
    from zlib import error as zlib_error

    file, content = read_bytes(source)
    try:
        loaded = np.load(BytesIO(content), allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return Problem(loaded)
        columns = dict(loaded)
    except InvalidProblemError as error:
        raise _in_file(file, error) from error
    except (ValueError, EOFError, OSError, BadZipFile, zlib_error) as error:
        raise FileFormatError(f"{file}: no NumPy file: {error}") from error
    for name, column in columns.items():
        if column.ndim != (name != "capacity"):
            raise FileFormatError(f"{file}: {name!r} has the shape {column.shape}", field=name)
    if "ids" in columns:
        columns["ids"] = columns["ids"].tolist()
    if "capacity" in columns:
        columns["capacity"] = columns["capacity"].item()
    try:
        return Problem.from_dict(columns)
    except InvalidProblemError as error:
        raise _in_file(file, error) from error


def write_numpy(problem: Problem, path: str | os.PathLike[str]) -> None:
    """Write a problem as ``.npy`` or ``.npz``, as the path ends.

    Raises
    ------
    InvalidProblemError
        If the problem has what an ``.npy`` file cannot hold (ids other than the positions,
        alignments, pins, a capacity), or ids that are neither all integers nor all text.
    """
    columns: dict[str, Any] = {name: getattr(problem, name) for name in _NEEDED}
    extra: dict[str, Any] = {}
    if problem.ids != tuple(range(len(problem))):
        extra["ids"] = _array_of_ids(problem)
    if (problem.alignment != 1).any():
        extra["alignment"] = problem.alignment
    if (problem.pin != FREE).any():
        extra["offset"] = problem.pin
    if problem.capacity is not None:
        extra["capacity"] = problem.capacity
    suffix = PurePath(path).suffix
    if suffix == ".npz":
        np.savez(path, **columns, **extra)
    elif suffix != ".npy":
        raise ValueError(f"the path must end in .npy or .npz, got {os.fspath(path)!r}")
    elif extra:
        raise InvalidProblemError(
            f"an array of lifetimes and sizes cannot hold {', '.join(extra)}; write .npz",
            field=next(iter(extra)),
        )
    else:
        np.save(path, np.stack(list(columns.values()), axis=1))


def _array_of_ids(problem: Problem) -> Any:
    if {type(id) for id in problem.ids} in ({int}, {str}):
        array = np.array(problem.ids)
        if array.dtype.kind in "iU" and tuple(array.tolist()) == problem.ids:
            return array
    raise InvalidProblemError(
        "NumPy can hold ids if all are text, or all are integers of 64 bits; write JSON", field="id"
    )


# -- bytes and text -----------------------------------------------------------------------------


def read_bytes(source: Source) -> tuple[str, bytes]:
    """What errors call the file, and what it holds, decompressed."""
    if isinstance(source, (str, os.PathLike)):
        file, content = os.fspath(source), Path(source).read_bytes()
    else:
        name, read = getattr(source, "name", None), source.read()
        file = name if isinstance(name, str) else "the file"
        content = read.encode("utf-8", "surrogatepass") if isinstance(read, str) else read
    return file, _unzip(file, content) if content.startswith(b"\x1f\x8b") else content


def _unzip(file: str, content: bytes) -> bytes:
    import gzip
    import zlib

    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise FileFormatError(f"{file}: broken gzip: {error}") from error


def read_text(source: Source) -> tuple[str, str]:
    file, content = read_bytes(source)
    try:
        return file, content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FileFormatError(
            f"{file}, line {line}: byte {content[error.start]:#04x} is no UTF-8; save the file as "
            "UTF-8 text"
        ) from error


def _write_text(target: Target, text: str) -> None:
    if not isinstance(target, (str, os.PathLike)):
        target.write(text)
        return
    content = text.encode()
    if PurePath(target).suffix == ".gz":
        import gzip

        content = gzip.compress(content, mtime=0)  # no date: the same plan gives the same bytes
    Path(target).write_bytes(content)


def _in_file(file: str, error: InvalidProblemError) -> FileFormatError:
    return FileFormatError(f"{file}: {error}", id=error.id, field=error.field, value=error.value)


# What a path ends in, and who reads it. A name, "module:function", is looked up when it is needed:
# models of frameworks are read above this module, by packages that only some have installed.
_READERS: dict[str, Callable[[Any], Problem] | str] = {
    ".csv": read_csv,
    ".json": read_json,
    ".npy": read_numpy,
    ".npz": read_numpy,
    ".onnx": "dsa.bench.sources.onnx:read",
    ".tflite": "dsa.bench.sources.tflite:read",
    ".pt2": "dsa.bench.sources.fx:read",
}

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
from collections.abc import Callable, Hashable, Iterable
from functools import cache
from importlib import import_module
from io import BytesIO, StringIO
from pathlib import Path, PurePath
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dsa.bounds import lower_bound
from dsa.constraints import Constraints
from dsa.errors import FileFormatError, InvalidPlanError, InvalidProblemError
from dsa.gate import cell_of_id
from dsa.problem import FREE, Intervals, Problem
from dsa.result import FORMAT as PLAN_FORMAT
from dsa.result import Plan
from dsa.table import NEEDED, Table, written_holes
from dsa.validation import validate

if TYPE_CHECKING:
    from dsa.pools import PoolPlan
    from dsa.slots import SlotPlan

__all__ = [
    "bundled",
    "load",
    "offsets_by_id",
    "read_any_plan",
    "read_constraints",
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


def read_constraints(source: Source) -> Constraints:
    """Read constraints from a JSON file, for buffers that are in another: see `Constraints`.

    Raises
    ------
    FileFormatError
        Naming the file, and what is wrong in it.

    Examples
    --------
    >>> from io import StringIO
    >>> rules = read_constraints(StringIO('{"in_place": [["x", "y"]], "chunk": 65536}'))
    >>> rules.in_place, rules.chunk
    ((('x', 'y'),), 65536)
    """
    file, text = read_text(source)
    data = parse_json(file, text)
    try:
        return Constraints.from_dict(data)
    except InvalidProblemError as error:
        raise _in_file(file, error) from error


def read_plan(
    source: Source,
    problem: Intervals | None = None,
    *,
    constraints: Constraints | None = None,
) -> Plan:
    """Read a plan from CSV or JSON, believing nothing that can be checked.

    Parameters
    ----------
    source
        A path or an open file. In CSV the column ``offset`` holds the plan, not pins.
    problem
        The problem that the plan is wanted for; the one in the file if None. A plan in JSON must
        have been made for this very problem. The offsets of a CSV file go to the buffers of the
        same id, and must hold for them.
    constraints
        Those of the buffers in a CSV file, which cannot hold any; JSON has them in the plan.

    Raises
    ------
    InvalidPlanError
        If the plan breaks a rule of the problem, or claims what does not hold: see
        `Plan.from_dict`.
    FileFormatError
        If the file is no plan.
    """
    return _read_plan(*read_text(source), problem, constraints)


def _read_plan(
    file: str, text: str, problem: Intervals | None, constraints: Constraints | None
) -> Plan:
    if _is_json(text):
        data = parse_json(file, text)
        try:
            return Plan.from_dict(data, problem)
        except InvalidPlanError as error:
            if isinstance(error.__cause__, InvalidProblemError):
                raise _in_file(file, error.__cause__) from error
            raise InvalidPlanError(f"{file}: {error}", violations=error.violations) from error
    table = Table.read(file, text)
    table.need("offset")
    stored = table.problem(pinned=False)
    wanted = Problem(stored if problem is None else problem, constraints=constraints)
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


def read_any_plan(
    source: Source, *, constraints: Constraints | None = None
) -> Plan | PoolPlan | SlotPlan:
    """Read a plan, one of pools, or slots, whichever it is, each as checked as by `read_plan`.

    Parameters
    ----------
    source, constraints
        As for `read_plan`.

    Raises
    ------
    InvalidPlanError, FileFormatError
        As `read_plan`, `PoolPlan.from_dict` and `SlotPlan.from_dict`.
    """
    from dsa import pools, slots  # which few files need

    file, text = read_text(source)
    data = parse_json(file, text) if _is_json(text) else {}
    try:
        if data.get("format") == pools.FORMAT:
            return pools.PoolPlan.from_dict(data)
        if data.get("format") == slots.result.FORMAT:
            return slots.SlotPlan.from_dict(data)
    except InvalidPlanError as error:
        raise InvalidPlanError(f"{file}: {error}", violations=error.violations) from error
    return _read_plan(file, text, None, constraints)


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
    ``gaps`` (holes)             holes with spaces between: ``3-5`` keeps no byte in steps
                                 3 and 4, ``3-5@0:16`` keeps the buffer's bytes 0 to 15
                                 (beside ``end``, the last step is closed here, too)
    ``hint``                     refused unless empty or -1: a wish is no part of a problem,
                                 see ``plan(hint=)``
    ===========================  =====================================================

    The first line names the columns, in any order and case. Every other column is ignored,
    except that one whose name is nearly that of a column the file lacks is refused as a mistake.
    Blank lines and spaces around a cell do not count. Ids are text; only where all of them are
    integers as Python writes them, they are integers. An id ``["conv", 0]``, a list of JSON, is
    the tuple ``("conv", 0)``.

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

    Columns ``id,lower,upper,size``, then ``alignment`` if any is not 1, ``gaps`` if there are
    holes, and ``offset``: those of a plan, or the pins of a problem that has any (MiniMalloc
    itself wants all or none pinned). There is no column for a capacity, or for the pins of a
    plan: `write_json` keeps them. Nor is there one for constraints, but without them the file
    would be another problem: they are refused.

    Parameters
    ----------
    plan_or_problem
        What to write.
    target
        A path (compressed if it ends in ``.gz``) or a file open for text.

    Raises
    ------
    InvalidProblemError
        Naming the constraints, or an id that CSV cannot hold: only integers, printable text
        without spaces at its ends, and tuples of such, no two of which read the same.

    Examples
    --------
    >>> from io import StringIO
    >>> file = StringIO()
    >>> write_csv(Problem([(0, 2, 60), (1, 3, 50)]), file)
    >>> file.getvalue()
    'id,lower,upper,size\n0,0,2,60\n1,1,3,50\n'
    """
    problem = plan_or_problem.problem if isinstance(plan_or_problem, Plan) else plan_or_problem
    if problem.constraints:
        rules = ", ".join(sorted(problem.constraints.features()))
        raise InvalidProblemError(
            f"CSV has no room for constraints ({rules}); write JSON", field="constraints"
        )
    columns: dict[str, Iterable[Any]] = {"id": _csv_ids(problem)}
    columns |= {name: getattr(problem, name).tolist() for name in NEEDED}
    if (problem.alignment != 1).any():
        columns["alignment"] = problem.alignment.tolist()
    if len(problem.holes):
        columns["gaps"] = written_holes(problem)
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
    if set(map(type, problem.ids)) == {int}:
        return list(map(str, problem.ids))
    seen: dict[str, Hashable] = {}
    for id in problem.ids:
        name = cell_of_id(id)
        if name is None:
            raise InvalidProblemError(
                f"buffer {id!r}: CSV cannot hold this id, only an integer, printable text without "
                "spaces at its ends, or a tuple of such; write JSON, or give it another id",
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
    return Table.read(file, text).problem(pinned=True)


# -- JSON -------------------------------------------------------------------------------------


def read_json(source: Source) -> Problem:
    """Read a problem that `write_json` wrote.

    Raises
    ------
    FileFormatError
        Naming the file, and line and column where it is no JSON.
    """
    return _json_problem(*read_text(source))


def write_json(plan_or_problem: Plan | PoolPlan | SlotPlan | Problem, target: Target) -> None:
    """Write a problem or a plan, also of pools or slots, as JSON, with nothing left out.

    Parameters
    ----------
    plan_or_problem
        What to write.
    target
        A path (compressed if it ends in ``.gz``) or a file open for text.

    Raises
    ------
    InvalidProblemError
        Naming an id that is neither text nor an integer nor a tuple of such.

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


_DIMENSIONS = {"holes": 2, "capacity": 0, "constraints": 0}  # of all others 1


def read_numpy(source: str | os.PathLike[str] | IO[bytes]) -> Problem:
    """Read a problem from an ``.npy`` or ``.npz`` file.

    An ``.npy`` file holds an integer array of shape (n, 3): lower, upper, size. An ``.npz`` file
    holds integer columns under the names that `Problem.from_columns` gives them, of which
    ``lower``, ``upper`` and ``size`` are needed; a free offset is -1. Constraints are text, as
    `Constraints.to_dict` gives them for JSON.

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
        if column.ndim != _DIMENSIONS.get(name, 1):
            raise FileFormatError(f"{file}: {name!r} has the shape {column.shape}", field=name)
    if "ids" in columns:
        columns["ids"] = columns["ids"].tolist()
    if "capacity" in columns:
        columns["capacity"] = columns["capacity"].item()
    if "constraints" in columns:
        columns["constraints"] = parse_json(file, str(columns["constraints"]))
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
        alignments, pins, holes, a capacity, constraints), or ids that are neither all integers
        nor all text.
    """
    columns: dict[str, Any] = {name: getattr(problem, name) for name in NEEDED}
    extra: dict[str, Any] = {}
    if problem.ids != tuple(range(len(problem))):
        extra["ids"] = _array_of_ids(problem)
    if (problem.alignment != 1).any():
        extra["alignment"] = problem.alignment
    if (problem.pin != FREE).any():
        extra["offset"] = problem.pin
    if len(problem.holes):
        extra["holes"] = problem.holes
    if problem.capacity is not None:
        extra["capacity"] = problem.capacity
    if problem.constraints:
        extra["constraints"] = json.dumps(problem.constraints.to_dict())
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

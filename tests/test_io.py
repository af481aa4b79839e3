"""Files: what comes back, and what is refused with file, line and column."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from collections.abc import Callable
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsa
from dsa import (
    Buffer,
    Constraints,
    FileFormatError,
    InvalidPlanError,
    InvalidProblemError,
    Plan,
    Problem,
    io,
    plan,
)
from dsa.pools import Pool, plan_pools
from dsa.slots import plan_slots
from dsa.solvers import FEATURES
from dsa.testing import problems
from tests.shared import SHARED, needs_shared

MODELS = Path(dsa.__file__).parent / "bench" / "models"
INDEX = list(csv.DictReader((MODELS / "models.csv").read_text().splitlines()))

EXAMPLE = Problem.from_columns(
    [0, 3, 0, 9, 0],
    [3, 9, 9, 21, 21],
    [4, 4, 4, 4, 4],
    ids=["b1", "b2", "b3", "b4", "b5"],
)
# The example of MiniMalloc's README, and its solution.
EXAMPLE_CSV = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"
SOLUTION_CSV = (
    "id,lower,upper,size,offset\nb1,0,3,4,8\nb2,3,9,4,8\nb3,0,9,4,4\nb4,9,21,4,4\nb5,0,21,4,0\n"
)


def read(text: str) -> Problem:
    """The problem in a CSV text."""
    return io.read_csv(StringIO(text))


def written(write: Callable[..., None], what: Problem | Plan) -> str:
    """What a function writes into a file."""
    file = StringIO()
    write(what, file)
    return file.getvalue()


def renamed(problem: Problem, ids: list[Any]) -> Problem:
    """The problem under other ids."""
    return Problem.from_columns(**{**problem.columns(), "ids": ids}, capacity=problem.capacity)


@st.composite
def named_problems(draw: st.DrawFn, names: st.SearchStrategy[Any]) -> Problem:
    """Problems of every kind, with ids from a strategy."""
    problem = draw(problems(alignments=True, pins=True, huge=True, holes=True))
    n = len(problem)
    return renamed(problem, draw(st.lists(names, min_size=n, max_size=n, unique_by=str)))


# Ids that CSV can hold; with a letter, so that not all of them read as integers.
WORDS = st.text(st.characters(exclude_categories=["C", "Zl", "Zp", "Zs"]), max_size=5).map(
    "v{}".format
)
NAMES = st.one_of(WORDS, st.tuples(WORDS, WORDS).map(' ,"'.join))
PARTS = st.recursive(st.text() | st.integers(), lambda part: st.lists(part, max_size=3).map(tuple))
TUPLES = st.lists(PARTS, max_size=3).map(tuple)

# Problems with everything that there is.
CONSTRAINED = problems(
    alignments=True,
    pins=True,
    holes=True,
    constraints=set(FEATURES) - {"alignment", "pins", "holes"},
)


# -- there and back ---------------------------------------------------------------------------


@given(
    named_problems(NAMES)
    | named_problems(st.integers())
    | named_problems(TUPLES)
    | problems(pins=True, alignments=True)
)
def test_csv_round_trip(problem: Problem) -> None:
    """A problem comes back from CSV as it was, whatever its ids, alignments, pins and holes."""
    assert read(written(io.write_csv, problem)) == problem


@given(
    named_problems(st.text() | st.integers() | TUPLES) | CONSTRAINED,
    st.none() | st.integers(0, 2**60),
)
def test_json_round_trip(problem: Problem, capacity: int | None) -> None:
    """A problem comes back from JSON as it was, with capacity, constraints and any text as id."""
    problem = problem.with_capacity(capacity)
    assert io.read_json(StringIO(written(io.write_json, problem))) == problem


@given(
    named_problems(NAMES) | named_problems(st.integers(-(2**63), 2**63 - 1)) | CONSTRAINED,
    st.none() | st.integers(0, 2**60),
)
def test_npz_round_trip(
    tmp_path_factory: pytest.TempPathFactory, problem: Problem, capacity: int | None
) -> None:
    """A problem comes back from an .npz file as it was."""
    path = tmp_path_factory.mktemp("npz") / "problem.npz"
    io.write_numpy(problem.with_capacity(capacity), path)
    assert io.load(path) == problem.with_capacity(capacity)


@given(problems())
def test_npy_round_trip(tmp_path_factory: pytest.TempPathFactory, problem: Problem) -> None:
    """Lifetimes and sizes come back from an .npy file as they were."""
    path = tmp_path_factory.mktemp("npy") / "problem.npy"
    problem = renamed(problem, list(range(len(problem))))
    io.write_numpy(problem, path)
    assert io.load(path) == problem


@given(named_problems(NAMES) | CONSTRAINED)
def test_plan_round_trip(problem: Problem) -> None:
    """A plan comes back from JSON as it was, and is written the same again."""
    p = plan(problem, solver="greedy-by-size")
    text = written(io.write_json, p)
    again = io.read_plan(StringIO(text))
    assert again == p
    assert (again.peak, again.bound_witness, again.solver) == (p.peak, p.bound_witness, p.solver)
    assert written(io.write_json, again) == text
    assert io.read_plan(StringIO(text), problem) == p


@given(named_problems(NAMES) | named_problems(st.integers()))
def test_plan_csv_round_trip(problem: Problem) -> None:
    """Offsets come back from CSV; given the problem, its pins are checked as well."""
    p = plan(problem, solver="greedy-by-size")
    text = written(io.write_csv, p)
    assert io.read_plan(StringIO(text)).offsets == p.offsets
    assert io.read_plan(StringIO(text), problem) == p


def test_a_found_bound_survives() -> None:
    """A bound that a search proved comes back with its plan; one from the buffers is made anew."""
    p = plan([(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)], solver="greedy-by-size")
    data = p.to_dict()
    data["lower_bound"], data["bound_witness"]["kind"] = 100, "search"
    again = Plan.from_dict(data)
    assert (again.lower_bound, again.bound_witness.kind) == (100, "search")
    data["lower_bound"], data["bound_witness"]["kind"] = 80, "load"  # by an older version, say
    assert Plan.from_dict(data).lower_bound == 88


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".json", ".json.gz"])
def test_same_bytes(tmp_path: Path, suffix: str) -> None:
    """A problem is written with the same bytes every time, compressed or not."""
    write = io.write_csv if "csv" in suffix else io.write_json
    paths = [tmp_path / f"first{suffix}", tmp_path / f"second{suffix}"]
    for path in paths:
        write(EXAMPLE, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert io.load(paths[0]) == EXAMPLE


def test_same_arrays(tmp_path: Path) -> None:
    """An .npz file has the same bytes every time: it carries no date."""
    for name in ("first.npz", "second.npz"):
        io.write_numpy(EXAMPLE, tmp_path / name)
    assert (tmp_path / "first.npz").read_bytes() == (tmp_path / "second.npz").read_bytes()


# -- CSV --------------------------------------------------------------------------------------


def test_minimalloc() -> None:
    """Reads and writes what MiniMalloc does: its README's example and solution."""
    assert read(EXAMPLE_CSV) == EXAMPLE
    assert written(io.write_csv, EXAMPLE) == EXAMPLE_CSV
    solution = io.read_plan(StringIO(SOLUTION_CSV))
    assert (solution.offsets, solution.peak, solution.status) == ((8, 8, 4, 4, 0), 12, "optimal")
    assert written(io.write_csv, solution) == SOLUTION_CSV


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("id,begin,end,size\na,0,1,60\nb,1,2,50\n", id="closed"),
        pytest.param("buffer,start,upper,size\na,0,2,60\nb,1,3,50\n", id="older names"),
        pytest.param("buffer_id,start,end,size\na,0,1,60\nb,1,2,50\n", id="oldest names"),
        pytest.param("size,upper,lower,id\n60,2,0,a\n50,3,1,b\n", id="any order"),
        pytest.param("ID, Lower ,UPPER,Size\n a , 0,2 ,60\nb,1,3,50\n", id="case and spaces"),
        pytest.param("\ufeffid,lower,upper,size\na,0,2,60\nb,1,3,50\n", id="byte order mark"),
        pytest.param("id,lower,upper,size\r\na,0,2,60\r\nb,1,3,50\r\n", id="carriage returns"),
        pytest.param("\n\nid,lower,upper,size\n\na,0,2,60\n , ,,\n\nb,1,3,50", id="blank lines"),
        pytest.param("id,lower,upper,size,op\na,0,2,60,conv\nb,1,3,50,add\n", id="extra column"),
        pytest.param("id,lower,upper,size,,\na,0,2,60,,\nb,1,3,50,,\n", id="unnamed columns"),
        pytest.param("id,lower,upper,size,sizes\na,0,2,60,7\nb,1,3,50,7\n", id="size is there"),
        pytest.param("id,lower,upper,size,hint,gaps\na,0,2,60,-1,\nb,1,3,50,, \n", id="no hint"),
        pytest.param("id,lower,upper,size,alignment\na,0,2,60,1\nb,1,3,50,\n", id="alignment 1"),
        pytest.param("id,lower,upper,size,offset\na,0,2,60,\nb,1,3,50,\n", id="no pins"),
        pytest.param('"id",lower,upper,size\n"a",0,"2",+60\nb,1,3,050\n', id="quoted, signed"),
    ],
)
def test_dialects(text: str) -> None:
    """One problem, written in the ways in which files differ."""
    assert read(text) == Problem.from_columns([0, 1], [2, 3], [60, 50], ids=["a", "b"])


def test_bytes_or_text() -> None:
    """An open file may give text or bytes, compressed or not."""
    raw = EXAMPLE_CSV.encode()
    for file in (StringIO(EXAMPLE_CSV), BytesIO(raw), BytesIO(gzip.compress(raw))):
        assert io.read_csv(file) == EXAMPLE


@pytest.mark.parametrize(
    ("cells", "ids"),
    [
        (["0", "1"], (0, 1)),
        (["7", "-3"], (7, -3)),
        (["0", "01"], ("0", "01")),
        (["1", "+2"], ("1", "+2")),
        (["1", "a"], ("1", "a")),
        (["1", "-0"], ("1", "-0")),
        (["1", "1_0"], ("1", "1_0")),
        (['"[""conv"", 0]"', '"[[""f.py"",12],1]"'], (("conv", 0), (("f.py", 12), 1))),
        (["[3]", "3"], ((3,), "3")),
        (["[]", "[3"], ((), "[3")),
        (["[null]", "[1.5]"], ("[null]", "[1.5]")),
        (["[" * 9000, "[[[]"], ("[" * 9000, "[[[]")),
    ],
)
def test_ids(cells: list[str], ids: tuple[Any, ...]) -> None:
    """Ids are text, unless all are integers as Python writes them; tuples are lists of JSON."""
    assert read("id,lower,upper,size\n" + "".join(f"{id},0,1,8\n" for id in cells)).ids == ids


def test_no_ids() -> None:
    """Without a column of ids, buffers go by their positions."""
    assert read("lower,upper,size\n0,2,60\n1,3,50\n").ids == (0, 1)
    assert len(read("lower,upper,size\n")) == 0


def test_pins_and_alignments() -> None:
    """Empty cells leave the offset to the solver, and the alignment at 1."""
    problem = read("lower,upper,size,alignment,offset\n0,2,60,32,64\n1,3,50,,\n")
    assert problem.alignment.tolist() == [32, 1]
    assert problem.pin.tolist() == [64, -1]
    assert written(io.write_csv, problem).splitlines()[1:] == ["0,0,2,60,32,64", "1,1,3,50,1,"]


def test_gaps() -> None:
    """MiniMalloc's column: with spaces between, and a window after @; closed beside `end`."""
    holed = Problem(
        [
            Buffer(0, 9, 8, id="a", holes=[(1, 3), (4, 6, 2, 8)]),
            Buffer(-5, 5, 4, id="b", holes=[(-3, -1)]),
        ]
    )
    text = "id,lower,upper,size,gaps\na,0,9,8,1-3 4-6@2:8\nb,-5,5,4,-3--1\n"
    assert written(io.write_csv, holed) == text
    assert read(text) == read(text.replace("gaps", "Holes").replace(" ", "  ")) == holed
    closed = "id,lower,end,size,gaps\na,0,8,8,1-2 4-5@2:8\nb,-5,4,4,-3--2@1:1\n"
    assert read(closed) == holed


def test_gaps_beside_offsets() -> None:
    """A plan keeps its holes in CSV, and is read back by them: here both have offset 0."""
    p = plan([Buffer(0, 4, 2, id="a", holes=[(1, 3)]), Buffer(1, 3, 2, id="b")])
    text = written(io.write_csv, p)
    assert text == "id,lower,upper,size,gaps,offset\na,0,4,2,1-3,0\nb,1,3,2,,0\n"
    assert io.read_plan(StringIO(text)).problem == p.problem


def test_csv_does_not_drop_constraints(tmp_path: Path) -> None:
    """A problem, or a plan of one, whose constraints would be lost is not written as CSV."""
    rules = Constraints(exclusive=[("a", "b")], chunk=64)
    problem = Problem([Buffer(0, 2, 8, id=id) for id in "ab"], constraints=rules)
    for what in (problem, plan(problem)):
        with pytest.raises(InvalidProblemError, match=r"\(chunk, exclusive\); write JSON"):
            io.write_csv(what, tmp_path / "model.csv")
    assert not list(tmp_path.iterdir())


def test_no_capacity_from_a_name(tmp_path: Path) -> None:
    """MiniMalloc's capacity in the name of a file is not applied in silence."""
    (tmp_path / "A.12.csv").write_text(EXAMPLE_CSV)
    assert io.load(tmp_path / "A.12.csv").capacity is None


HEAD = "id,lower,upper,size"
LONG = "".join(f"{i},0,2,8\n" for i in range(1000))  # more rows than are cut at a time, and a blank


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "", "is empty; its first line must name the columns, such as id,lower,upper,size"),
        (" \n,,\n", "", "is empty"),
        ("\nid,lower,size\n", ", line 2", "no column 'upper' or 'end' among 'id', 'lower', 'size'"),
        ("id;lower;upper;size\n", ", line 1", "no column 'lower' or 'begin' or 'start' among"),
        ("0,0,3,4\n", ", line 1", "no column 'lower'"),
        ("lower,upper\n", ", line 1", "no column 'size'"),
        (f"{HEAD},begin", ", line 1, column 'begin'", "says the same as column 'lower'; keep one"),
        (f"end,{HEAD}", ", line 1, column 'upper'", "says the same as column 'end'"),
        (f"{HEAD},Size", ", line 1, column 'Size'", "says the same as column 'size'"),
        (f"{HEAD},buffer", ", line 1, column 'buffer'", "says the same as column 'id'"),
        (f"{HEAD},aligment", ", line 1, column 'aligment'", "call it 'alignment' if it is that"),
        (f"{HEAD},align", ", line 1, column 'align'", "call it 'alignment'"),
        (f"{HEAD},Ofset", ", line 1, column 'Ofset'", "call it 'offset'"),
        (f"{HEAD},pin", ", line 1, column 'pin'", "call it 'offset'"),
        (f"{HEAD},gap", ", line 1, column 'gap'", "call it 'gaps'"),
        ("lower,uper,size", ", line 1, column 'uper'", "call it 'upper'"),
        (f"{HEAD}\na,0,2\n", ", line 2", "3 cells under 4 columns: ['a', '0', '2']"),
        (f"{HEAD}\na,0,2,8\n\nb,0,2,8,9\n", ", line 4", "5 cells under 4 columns"),
        (f'{HEAD}\n"a\nb",0,2,8\nc,0,2\n', ", line 4", "3 cells under 4 columns"),
        (f'{HEAD}\na,0,2,8\n"b,0,2,8\nc,0,2,8\n', ", line 3", "no CSV: unexpected end of data"),
        (f"{HEAD}\n{LONG}\nx,0,2\n", ", line 1003", "3 cells under 4 columns"),
        (f'{HEAD}\n{LONG}\n"x"y,0,2,8\n', ", line 1003", "no CSV: ',' expected after"),
        (f"{HEAD}\n{LONG}\nx,0,2,8.5\n", ", line 1003, column 'size'", "'8.5' is no integer"),
        (f'{HEAD}\n"a"b,0,2,8\n', ", line 2", "no CSV: ',' expected after '\"'"),
        (f"{HEAD}\na,0,2,8.0\n", ", line 2, column 'size'", "'8.0' is no integer; write for"),
        (f"{HEAD}\na,0,2,4KiB\n", ", line 2, column 'size'", "'4KiB' is no integer"),
        (f"{HEAD}\na,0,2,1_000\n", ", line 2, column 'size'", "'1_000' is no integer"),
        (f"{HEAD}\na,0,2,\u0661\n", ", line 2, column 'size'", "'\u0661' is no integer"),
        (f"{HEAD}\na,0,2,{'9' * 5000}\n", ", line 2, column 'size'", "is no integer"),
        (f"{HEAD}\na,0,2,\n", ", line 2, column 'size'", "is empty; write for example 4096"),
        (f"{HEAD}\na,0,2,8\n,0,2,8\n", ", line 3, column 'id'", "is empty; name every buffer or"),
        (f"{HEAD},alignment\na,0,2,8,x\n", ", line 2, column 'alignment'", "'x' is no integer"),
        (f"{HEAD},offset\na,0,2,8,top\n", ", line 2, column 'offset'", "'top' is no integer"),
        (f"{HEAD},offset\na,0,2,8,-1\n", ", line 2, column 'offset'", "is -1; empty the cell if"),
        (
            f"{HEAD},hint\na,0,2,8,64\n",
            ", line 2, column 'hint'",
            "'64' is a wish, and a problem holds none; give an",
        ),
        (f"{HEAD},hole", ", line 1, column 'hole'", "call it 'holes'"),
        (f"{HEAD},gaps,holes", ", line 1, column 'holes'", "says the same as column 'gaps'"),
        (f"{HEAD},gaps\na,0,9,8,2-4@3\n", ", line 2, column 'gaps'", "'2-4@3' is no hole; write"),
        (f"{HEAD},gaps\na,0,9,8,2-4;5-6\n", ", line 2, column 'gaps'", "'2-4;5-6' is no hole"),
        (f"{HEAD},gaps\na,0,9,8,2\n", ", line 2, column 'gaps'", "'2' is no hole"),
        (
            f"{HEAD},gaps\na,0,9,8,\nb,0,9,8,7-10\n",
            ", line 3, column 'gaps'",
            "buffer 'b': hole [7, 10) is no part of the lifetime [0, 9)",
        ),
        (
            f"{HEAD},holes\na,0,9,8,2-4@0:9\n",
            ", line 2, column 'holes'",
            "hole [2, 4) keeps bytes [0, 9) of the 8 there are",
        ),
        (f"{HEAD},gaps\na,0,9,8,2-{'9' * 30}\n", ", line 2, column 'gaps'", "must lie between"),
        (
            "lower,end,size,gaps\n0,8,8,4-9\n",
            ", line 2, column 'gaps'",
            "hole [4, 10) is no part of the lifetime [0, 9); 'end' is the last step live",
        ),
        # What the gate refuses is told with the line that it came from.
        (f"{HEAD}\na,0,2,8\nb,3,3,8\n", ", line 3, column 'upper'", "buffer 'b': lifetime [3, 3)"),
        (
            "begin,end,size\n\n0,1,8\n3,2,8\n",
            ", line 4, column 'end'",
            "upper must be at least lower + 1; 'end' is the last step live, so upper is end + 1",
        ),
        (f"{HEAD}\na,0,2,-8\n", ", line 2, column 'size'", "buffer 'a': size must be at least 0"),
        (f"{HEAD}\na,0,2,{2**70}\n", ", line 2, column 'size'", "size must lie between"),
        (f"{HEAD},offset\na,0,2,8,-2\n", ", line 2, column 'offset'", "must be at least 0"),
        (f"{HEAD},alignment\na,0,2,8,0\n", ", line 2, column 'alignment'", "must be at least 1"),
        (
            f"{HEAD},alignment,offset\na,0,2,8,16,8\n",
            ", line 2, column 'offset'",
            "pinned offset 8 is not a multiple of its alignment 16",
        ),
        (
            f"{HEAD},offset\na,0,2,8,0\nb,1,3,8,4\n",
            ", line 3, column 'offset'",
            "buffers 'a' and 'b' are live together and pinned to overlapping bytes",
        ),
        (
            f"{HEAD}\na,0,2,8\nb,0,2,8\na,0,2,8\n",
            ", line 4, column 'id'",
            "buffer 'a': two buffers have this id, the first on line 2",
        ),
        (f"{HEAD}\na,0,2,{2**62}\nb,0,2,1\n", ", column 'size'", "offsets add up to 2**62 bytes"),
    ],
)
def test_csv_errors(tmp_path: Path, text: str, place: str, message: str) -> None:
    """Whatever is wrong in a CSV file is refused with file, line, column and what to do."""
    path = tmp_path / "model.csv"
    path.write_bytes(text.encode())
    with pytest.raises(FileFormatError) as caught:
        io.read_csv(path)
    assert str(caught.value).startswith(f"{path}{place}")
    assert message in str(caught.value)
    if place:
        assert str(caught.value).removeprefix(f"{path}{place}").startswith(": ")


def test_error_attributes() -> None:
    """An error about a cell carries the id, the column as the file calls it, and the value."""
    with pytest.raises(FileFormatError) as caught:
        read("id,begin,end,size\nb,3,1,8\n")
    assert (caught.value.id, caught.value.field, caught.value.value) == ("b", "end", 2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"id,lower,upper,size\na,0,2,8\n\xe9,0,2,8\n", ", line 3: byte 0xe9 is no UTF-8; save"),
        ("id,lower,upper,size\n".encode("utf-16"), ", line 1: byte 0xff is no UTF-8"),
        (gzip.compress(EXAMPLE_CSV.encode())[:-9], ": broken gzip: "),
        (b"\x1f\x8b\x08 no gzip at all", ": broken gzip: "),
    ],
)
def test_undecodable(tmp_path: Path, content: bytes, message: str) -> None:
    """A file that is no text, or broken gzip, is refused by name."""
    path = tmp_path / "model.csv"
    path.write_bytes(content)
    with pytest.raises(FileFormatError) as caught:
        io.load(path)
    assert f"{path}{message}" in str(caught.value)


@pytest.mark.parametrize(
    "id", ["", " a", "a ", "a\nb", "a\rb", "a\0b", "\ud800", (1, 2.0), None, 1.5, '["a", 0]']
)
def test_ids_csv_cannot_hold(tmp_path: Path, id: Any) -> None:
    """An id that would not come back from CSV is refused, and nothing is written."""
    problem = Problem.from_columns([0], [1], [8], ids=[id])
    with pytest.raises(InvalidProblemError, match="CSV cannot hold this id") as caught:
        io.write_csv(problem, tmp_path / "model.csv")
    assert (caught.value.id, caught.value.field) == (id, "id")
    assert not list(tmp_path.iterdir())


def test_ids_that_read_the_same() -> None:
    """Two ids of different types that look alike cannot both go into CSV."""
    problem = Problem.from_columns([0, 0], [1, 1], [8, 8], ids=[1, "1"])
    with pytest.raises(InvalidProblemError, match="1 and '1' have ids that read the same"):
        written(io.write_csv, problem)


# -- JSON -------------------------------------------------------------------------------------


def test_detects_the_format() -> None:
    """A problem is read from JSON or CSV, whichever the file turns out to be."""
    assert io.read_problem(StringIO("\n " + written(io.write_json, EXAMPLE))) == EXAMPLE
    assert io.read_problem(StringIO(EXAMPLE_CSV)) == EXAMPLE


def tampered(**changes: Any) -> str:
    """The example as JSON, with other values in some places."""
    return json.dumps(json.loads(written(io.write_json, EXAMPLE)) | changes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": "dsa-problem",\n "version": }', ", line 2, column 13: no JSON: Expecting"),
        ("[]", ": expected an object, got list"),
        ("{}", ": expected format 'dsa-problem' version 1, got None version None"),
        (tampered(version=2), ": expected format 'dsa-problem' version 1, got 'dsa-problem'"),
        (tampered(version=True), "got 'dsa-problem' version True"),
        (tampered(version=1.0), "got 'dsa-problem' version 1.0"),
        (tampered(format="dsa-plan"), "it is a plan, see read_plan"),
        (tampered(gaps=[]), ": the problem has unknown columns gaps"),
        (tampered(lower=3), ": column 'lower' must be a list, got 3"),
        (tampered(lower="01234"), ": column 'lower' must be a list, got '01234'"),
        (tampered(size=[4]), "column 'lower' has 5 values where 1 buffers have a size"),
        (tampered(size=[4, 4, 4, 4, 4.0]), ": buffer 'b5': size must be an integer, got 4.0"),
        (tampered(size=[4, 4, 4, 4, None]), ": buffer 'b5': size must be an integer, got None"),
        (tampered(ids=["a", "a", "b", "c", "d"]), ": buffer 'a': two buffers have this id"),
        (tampered(ids=[{}, "b", "c", "d", "e"]), ": an id must be hashable"),
        (tampered(capacity="1MiB"), ": capacity must be an integer, got '1MiB'"),
        (tampered(holes=3), ": column 'holes' must be a list, got 3"),
        (tampered(holes=[[0, 1]]), ": a hole is (position, lower, upper), or these and"),
        (tampered(holes=[3]), ": a hole is (position, lower, upper), or these and"),
        (tampered(holes=[[5, 0, 1]]), ": holes: there is no buffer at position 5 of 5"),
        (tampered(holes=[[4, 5, 30]]), ": buffer 'b5': hole [5, 30) is no part of the lifetime"),
        (tampered(holes=[[4, 5, 6.5]]), ": buffer 'b5': holes must be an integer, got 6.5"),
        (tampered(constraints=[]), ": constraints must be a mapping, got []"),
        (tampered(constraints={"alias": []}), ": no constraint is named 'alias'; there are alias"),
        (tampered(constraints={"apart": 3}), ": apart must be a list of pairs of ids, got 3"),
        (tampered(constraints={"apart": [["b1"]]}), "list of pairs of ids, but has ['b1']"),
        (tampered(constraints={"apart": [["b1", "x"]]}), ": apart: there is no buffer 'x'"),
        (tampered(constraints={"apart": [["b1", {}]]}), ": apart: {} is no id"),
        (tampered(constraints={"reserved": [[4, 4]]}), ": reserved range [4, 4) is empty"),
        (tampered(constraints={"reserved": [[4, "8"]]}), ": reserved must be an integer, got '8'"),
        (tampered(constraints={"chunk": 0}), ": chunk must be at least 1, got 0"),
        (tampered(constraints={"chunk": 3}), "fits at no offset, because of chunks of 3"),
        (
            tampered(constraints={"in_place": [["b1", "b4"]]}),
            ": in_place: buffer 'b4' cannot be in place of buffer 'b1': it is born at step 9",
        ),
        (
            tampered(constraints={"aliases": [["b1", "b2", 4], ["b2", "b1", 4]]}),
            ": aliases: buffer 'b2' is to lie",
        ),
    ],
)
def test_json_errors(tmp_path: Path, text: str, message: str) -> None:
    """Whatever is wrong in a JSON file is refused with its name, and line and column of syntax."""
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(FileFormatError) as caught:
        io.read_json(path)
    assert f"{path}{message}" in str(caught.value) or message in str(caught.value)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize("read", [io.read_json, io.read_problem, io.read_plan])
@pytest.mark.parametrize(
    ("value", "message"),
    [("[" * 200_000, "it is nested too deeply"), ("1" * 5000, "Exceeds the limit")],
    ids=["deep", "long"],
)
def test_json_that_python_cannot_hold(
    read: Callable[..., object], value: str, message: str
) -> None:
    """Endless nesting and endless integers are refused like any other broken file."""
    with pytest.raises(FileFormatError, match=f"^the file: no JSON: {message}"):
        read(StringIO('{"capacity": ' + value))


@pytest.mark.parametrize("write", [io.write_json, io.write_csv])
def test_unwritable_ids(write: Callable[..., None]) -> None:
    """An id with something else in it than text, integers and tuples is refused by name."""
    with pytest.raises(InvalidProblemError, match=r"buffer \(1, 2.5\)"):
        written(write, Problem.from_columns([0], [1], [8], ids=[(1, 2.5)]))


# -- plans that were tampered with ------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "dsa-problem"}, "expected format 'dsa-plan' version 1, got 'dsa-problem'"),
        ({"version": 2}, "got 'dsa-plan' version 2"),
        ({"fingerprint": "0" * 64}, "made for another problem: its fingerprint is not that of the"),
        ({"offsets": [8, 8, 4, 4]}, "breaks 1 rules of its problem; the first is missing"),
        ({"offsets": [8, 8, 4, 4, 0, 0]}, "the first is extra"),
        ({"offsets": [8, 8, 4, 4, 8]}, "the first is overlap: buffers 'b1' and 'b5' share bytes"),
        ({"offsets": [8, 8, 4, 4, -4]}, "the first is negative"),
        ({"offsets": [8, 8, 4, 4, 0.0]}, "the first is not an integer"),
        ({"offsets": [8, 8, 4, 4, None]}, "the first is missing"),
        ({"offsets": [8, 8, 4, 4, 2**64]}, "the first is over capacity"),
        ({"offsets": {"b1": 8}}, "the plan's 'offsets' cannot be"),
        ({"peak": 8}, "claims peak 8 and lower bound 12, but its offsets give peak 12"),
        ({"peak": "12"}, "the plan's 'peak' cannot be '12'"),
        ({"lower_bound": 13}, "claims peak 12 and lower bound 13"),
        ({"lower_bound": 13, "bound_witness": {"kind": "search"}}, "lower bound 13"),
        ({"bound_witness": None}, "the plan's 'bound_witness' cannot be None"),
        ({"solver": 7}, "the plan's 'solver' cannot be 7"),
        ({"seconds": "fast"}, "the plan's 'seconds' cannot be 'fast'"),
        ({"stats": [1]}, r"the plan's 'stats' cannot be [1]"),
    ],
)
def test_tampered_plan(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    """A plan is believed in nothing that can be checked, and the error names the file."""
    path = tmp_path / "plan.json"
    data = plan(EXAMPLE, solver="greedy-by-size").to_dict()
    path.write_text(json.dumps(data | changes))
    with pytest.raises(InvalidPlanError) as caught:
        io.read_plan(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize("name", list(plan(EXAMPLE, solver="naive").to_dict()))
def test_incomplete_plan(name: str) -> None:
    """A plan that lacks what it needs is refused; some of what it tells may be absent."""
    data = plan(EXAMPLE, solver="greedy-by-size").to_dict()
    del data[name]
    if name in ("status", "seconds", "stats", "proof"):
        assert Plan.from_dict(data).offsets == tuple(data["offsets"])
        return
    with pytest.raises(InvalidPlanError, match=name if name != "format" else "expected format"):
        Plan.from_dict(data)


def test_plan_with_a_broken_problem(tmp_path: Path) -> None:
    """What is wrong with the problem inside a plan is told with the name of the file."""
    path = tmp_path / "plan.json"
    data = plan(EXAMPLE, solver="greedy-by-size").to_dict()
    data["problem"]["upper"][1] = 3
    path.write_text(json.dumps(data))
    with pytest.raises(FileFormatError) as caught:
        io.read_plan(path)
    assert str(caught.value).startswith(f"{path}: buffer 'b2': lifetime [3, 3) is empty")


def test_plan_for_a_changed_problem() -> None:
    """A plan in JSON is not handed out for another problem than the one it was made for."""
    text = written(io.write_json, plan(EXAMPLE, solver="greedy-by-size"))
    changed = Problem([*EXAMPLE][:4])
    with pytest.raises(InvalidPlanError, match="its fingerprint is not that of this problem"):
        io.read_plan(StringIO(text), changed)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (EXAMPLE_CSV, FileFormatError, "line 1: no column 'offset'"),
        (SOLUTION_CSV.replace("21,4,0", "21,4,0,0"), FileFormatError, "6 cells under 5 columns"),
        (SOLUTION_CSV.replace("b1,0,3,4,8", "b1,0,3,4,x"), FileFormatError, "column 'offset'"),
        (SOLUTION_CSV.replace("b1,0,3,4,8", "b1,0,3,4,"), InvalidPlanError, "is missing"),
        (SOLUTION_CSV.replace("b1,0,3,4,8", "b1,0,3,4,-8"), InvalidPlanError, "is negative"),
        (SOLUTION_CSV.replace("b1,0,3,4,8", "b1,0,3,4,6"), InvalidPlanError, "is overlap"),
    ],
)
def test_bad_csv_plans(text: str, error: type[Exception], message: str) -> None:
    """A CSV file with offsets is a plan only if they hold for its own lifetimes."""
    with pytest.raises(error, match=message):
        io.read_plan(StringIO(text))


def test_csv_plan_for_a_problem() -> None:
    """Offsets go to the buffers of the same id, in any order, and must hold for their lifetimes."""
    rows = SOLUTION_CSV.splitlines()
    shuffled = "\n".join([rows[0], *reversed(rows[1:])])
    assert io.read_plan(StringIO(shuffled), EXAMPLE).offsets == (8, 8, 4, 4, 0)
    later = Problem.from_columns([0, 2], [3, 9], [4, 4], ids=["b1", "b2"])
    with pytest.raises(InvalidPlanError) as caught:
        io.read_plan(StringIO(SOLUTION_CSV), later)
    assert [v.kind for v in caught.value.violations] == ["extra"] * 3 + ["overlap"]
    assert caught.value.violations[-1].steps == (2, 3)


def test_ids_that_look_alike() -> None:
    """What is 7 in a CSV file is "7" in a problem whose ids are text, and the other way round."""
    text = "id,lower,upper,size,offset\n7,0,1,8,64\n"
    for id in ("7", 7):
        problem = Problem.from_columns([0], [1], [8], ids=[id])
        assert io.read_plan(StringIO(text), problem)[id] == 64


# -- NumPy ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arrays", "message"),
    [
        ("a.npy", np.zeros((2, 2), np.int64), "has the shape (n, 3)"),
        ("a.npy", np.zeros((2, 3)), "buffer 0: lower must be an integer, got "),
        ("a.npz", {"lower": np.zeros(2, np.int64)}, "the problem lacks size, upper"),
        ("a.npz", {"lower": 0, "upper": 1, "size": 1}, "'lower' has the shape ()"),
        ("a.npz", {"lower": [0], "upper": [1], "size": [8], "gaps": [0]}, "unknown columns gaps"),
        ("a.npz", {"lower": [0], "upper": [1], "size": [8.0]}, "buffer 0: size must be an integer"),
        ("a.npz", {"lower": [0], "upper": [1], "size": [-8]}, "buffer 0: size must be at least 0"),
        ("a.npz", {"lower": [0], "upper": [1], "size": [8], "capacity": 0.5}, "capacity must be"),
        ("a.npz", {"lower": [0], "upper": [1], "size": [8], "capacity": [9]}, "shape (1,)"),
        ("a.npz", {"lower": [0], "upper": [1], "size": [8], "holes": [0]}, "'holes' has the shape"),
        (
            "a.npz",
            {"lower": [0], "upper": [1], "size": [8], "holes": [[0, 0, 2, 0, 0]]},
            "buffer 0: hole [0, 2) is no part of the lifetime [0, 1)",
        ),
        ("a.npz", {"lower": [0], "upper": [1], "size": [8], "constraints": "{"}, "no JSON"),
        (
            "a.npz",
            {"lower": [0], "upper": [1], "size": [8], "constraints": '{"apart": [[0, 1]]}'},
            "apart: there is no buffer 1",
        ),
        ("a.npz", b"no arrays", "no NumPy file"),
        ("a.npy", b"", "no NumPy file"),
        ("a.npy", np.array([None]), "no NumPy file: Object arrays cannot be loaded"),
    ],
)
def test_numpy_errors(tmp_path: Path, name: str, arrays: Any, message: str) -> None:
    """A NumPy file that holds no problem is refused by name, and nothing in it is executed."""
    path = tmp_path / name
    if isinstance(arrays, bytes):
        path.write_bytes(arrays)
    elif isinstance(arrays, dict):
        np.savez(path, **arrays)
    else:
        np.save(path, arrays)
    with pytest.raises(FileFormatError) as caught:
        io.read_numpy(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({"ids": ["a"]}, "ids"),
        ({"alignment": [4]}, "alignment"),
        ({"offset": [4]}, "offset"),
        ({"holes": [(0, 0, 1)]}, "holes"),
        ({"capacity": 64}, "capacity"),
        ({"constraints": Constraints(chunk=64)}, "constraints"),
    ],
)
def test_npy_drops_nothing(tmp_path: Path, changes: dict[str, Any], lost: str) -> None:
    """What an array of three columns cannot hold is refused, not dropped."""
    problem = Problem.from_columns([0], [1], [8], **changes)
    with pytest.raises(InvalidProblemError, match=f"cannot hold {lost}; write .npz"):
        io.write_numpy(problem, tmp_path / "problem.npy")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ids", [["a", 1], ["a\0", "b"], [2**70, 1], [(1,), (1, 2)], [True, "a"]])
def test_npz_ids(tmp_path: Path, ids: list[Any]) -> None:
    """Ids that NumPy would change are refused."""
    problem = Problem.from_columns([0, 0], [1, 1], [8, 8], ids=ids)
    with pytest.raises(InvalidProblemError, match="NumPy can hold ids if all are text"):
        io.write_numpy(problem, tmp_path / "problem.npz")


def test_numpy_needs_a_suffix(tmp_path: Path) -> None:
    """The name says which of the two formats to write."""
    with pytest.raises(ValueError, match=r"must end in \.npy or \.npz"):
        io.write_numpy(EXAMPLE, tmp_path / "problem")


# -- by name or path --------------------------------------------------------------------------


def test_load_by_suffix(tmp_path: Path) -> None:
    """A path is read by the end of its name, in any case."""
    for name in ("a.csv", "b.csv.gz", "c.JSON", "d.json.gz", "e.npz"):
        write = io.write_numpy if ".npz" in name else io.write_json
        (io.write_csv if ".csv" in name else write)(EXAMPLE, tmp_path / name)
        assert dsa.load(str(tmp_path / name)) == EXAMPLE


@pytest.mark.parametrize("name", ["infer-resnet50-b1", "infer_resnet50_b1", "Infer-ResNet50-b1"])
def test_load_by_name(name: str) -> None:
    """A model that comes with the library goes by its name; - and _ are the same."""
    assert len(dsa.load(name)) == 175


def test_unknown_names(tmp_path: Path) -> None:
    """An unknown name gets the nearest one, or where they are listed; a missing file does not."""
    with pytest.raises(InvalidProblemError, match="did you mean 'infer-resnet50-b1'"):
        dsa.load("infer-resnet50-b2")
    with pytest.raises(InvalidProblemError, match=r"dsa\.io\.bundled\(\) lists those that do"):
        dsa.load("qqq")
    with pytest.raises(FileNotFoundError):
        dsa.load(tmp_path / "infer-resnet50-b1.csv")


def test_number_of_models() -> None:
    """Models of every kind come with the library, and all of them weigh less than 1 MB."""
    kinds = {name.partition("-")[0] for name in io.bundled()}
    assert kinds == {"eager", "inductor", "infer", "onnx", "sched", "tflite", "train"}
    assert {"infer-resnet50-b1", "train-clip-vit-b32-b8-noopt"} <= set(io.bundled())
    assert sum(path.stat().st_size for path in MODELS.iterdir()) < 10**6
    files = {path.name.removesuffix(".csv.gz") for path in MODELS.glob("*.gz")}
    assert sorted(files) == [row["name"] for row in INDEX] == list(io.bundled())


@pytest.mark.parametrize("row", INDEX, ids=[row["name"] for row in INDEX])
def test_models_are_intact(row: dict[str, str]) -> None:
    """Each model has the digest, the buffers and the load of the index."""
    text = gzip.decompress((MODELS / f"{row['name']}.csv.gz").read_bytes())
    assert hashlib.sha256(text).hexdigest() == row["sha256"]
    problem = dsa.load(row["name"])
    assert (len(problem), problem.load) == (int(row["buffers"]), int(row["load"]))
    assert row["kind"]
    assert row["source"]


@needs_shared
@pytest.mark.parametrize("name", io.bundled())
def test_models_are_the_originals(name: str) -> None:
    """Each model is the shared instance of the same name, byte for byte."""
    original = SHARED / "instances" / "models" / f"{name.replace('-', '_')}.csv"
    assert gzip.decompress((MODELS / f"{name}.csv.gz").read_bytes()) == original.read_bytes()


@needs_shared
@pytest.mark.parametrize("folder", ["minimalloc", "idealloc"])
def test_shared_instances(folder: str) -> None:
    """The other shared instances are read in their own notation."""
    for path in (SHARED / "instances" / folder).glob("*.csv"):
        assert len(dsa.load(path)) == len(path.read_text().splitlines()) - 1


# -- plans of any kind ------------------------------------------------------------------------

ANY = [Buffer(0, 2, 100, id="a"), Buffer(1, 3, 100, id="b"), Buffer(0, 3, 20, id="c")]
KINDS: dict[str, Callable[[], Any]] = {
    "offsets": lambda: plan(ANY),
    "pools": lambda: plan_pools(ANY, [Pool("fast", 128), Pool(2)], spill="least"),
    "slots": lambda: plan_slots(ANY),
}


@pytest.mark.parametrize("kind", KINDS)
def test_plans_of_any_kind(kind: str, tmp_path: Path) -> None:
    """What write_json wrote is read back; what does not hold is refused, with the file's name."""
    path = tmp_path / "plan.json.gz"
    made = KINDS[kind]()
    io.write_json(made, path)
    back = io.read_any_plan(path)
    assert type(back) is type(made)
    assert (back.to_dict(), [back[id] for id in "abc"]) == (
        made.to_dict(),
        [made[id] for id in "abc"],
    )
    path.write_text(json.dumps(made.to_dict() | {"version": 7}))
    with pytest.raises(InvalidPlanError, match=r"plan\.json\.gz: expected"):
        io.read_any_plan(path)


def test_a_plan_of_any_kind_from_csv() -> None:
    """CSV holds offsets, and takes the constraints that it has no room for."""
    text = "id,lower,upper,size,offset\na,0,2,8,0\nb,3,4,8,0\n"
    assert io.read_any_plan(StringIO(text)).validate() == ()
    with pytest.raises(InvalidPlanError, match="not apart"):
        io.read_any_plan(StringIO(text), constraints=Constraints(apart=[("a", "b")]))

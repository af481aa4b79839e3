"""Problems: what is accepted, what is refused and how, and what is derived from the columns."""

from __future__ import annotations

import copy
import json
import pickle
from collections import deque, namedtuple
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, dataclass
from enum import StrEnum
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa import Buffer, Constraints, InvalidProblemError, Problem
from dsa.testing import orders, problems
from tests import oracle
from tests.shared import examples

# -- what is refused -------------------------------------------------------------------------

NOT_INTEGERS = [True, False, 1.0, 10.5, float("nan"), float("inf"), "8", b"8", Fraction(8), None]
NOT_INTEGERS += [[8], np.float64(8), np.bool_(True), np.array([8]), np.array([1, 2]), object()]

FIELDS = ["lower", "upper", "size", "alignment", "offset"]
NOT_FIELDS = [
    (field, value)
    for field in FIELDS
    for value in NOT_INTEGERS
    if not (field == "offset" and value is None)  # which leaves the offset to the solver
]


def with_bad(field: str, value: object) -> list[Buffer]:
    """Two buffers; the second, "bad", holds the value."""
    good: dict[str, Any] = {"lower": 0, "upper": 9, "size": 8, "alignment": 4, "offset": 16}
    return [Buffer(0, 9, 8, id="good"), Buffer(**(good | {field: value}), id="bad")]


@pytest.mark.parametrize(("field", "value"), NOT_FIELDS, ids=repr)
def test_what_is_no_integer_is_refused(field: str, value: object) -> None:
    """Bools, floats, strings and the rest are refused in every field, naming buffer and value."""
    with pytest.raises(InvalidProblemError) as caught:
        Problem(with_bad(field, value))
    error = caught.value
    assert (error.id, error.field) == ("bad", field)
    assert error.value is value
    assert str(error) == f"buffer 'bad': {field} must be an integer, got {value!r}"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("size", -1, "size must be at least 0, got -1"),
        ("size", -(2**62), "size must be at least 0"),
        ("size", 2**63, "size must lie between -2**62 and 2**62, got 9223372036854775808"),
        ("size", 2**200, "size must lie between -2**62 and 2**62"),
        ("alignment", 0, "alignment must be at least 1, got 0"),
        ("alignment", -4, "alignment must be at least 1, got -4"),
        ("alignment", 2**64, "alignment must lie between -2**62 and 2**62"),
        ("offset", -1, "offset must be at least 0, got -1; None leaves it to the solver"),
        ("offset", -8, "offset must be at least 0, got -8"),
        ("offset", 18, "pinned offset 18 is not a multiple of its alignment 4"),
        ("offset", 2**70, "offset must lie between -2**62 and 2**62"),
        ("lower", -(2**62), "lower must lie between -2**62 and 2**62, got -4611686018427387904"),
        ("lower", -(2**63) - 1, "lower must lie between"),
        ("upper", 2**62, "upper must lie between -2**62 and 2**62, got 4611686018427387904"),
        ("upper", 2**63, "upper must lie between"),
        (
            "upper",
            0,
            "lifetime [0, 0) is empty: a result that nobody reads still lives for its own",
        ),
        ("upper", -3, "lifetime [0, -3) is empty: lower must be below upper"),
    ],
)
def test_values_out_of_range_are_refused(field: str, value: int, words: str) -> None:
    """A number that its field cannot hold is refused, naming buffer, field and value."""
    with pytest.raises(InvalidProblemError) as caught:
        Problem(with_bad(field, value))
    error = caught.value
    assert (error.id, error.field, error.value) == ("bad", field, value)
    assert str(error).startswith("buffer 'bad': ")
    assert words in str(error)


@pytest.mark.parametrize(
    ("intervals", "words", "attributes"),
    [
        (5, "expected an iterable of buffers, got int 5", (None, None, 5)),
        (None, "expected an iterable of buffers, got NoneType None", (None, None, None)),
        ("abc", "expected an iterable of buffers, got str 'abc'", (None, None, "abc")),
        (b"abc", "expected an iterable of buffers, got bytes", (None, None, b"abc")),
        ([(0, 1)], "buffer 0: expected a Buffer, a (lower, upper, size) tuple", (0, None, (0, 1))),
        ([(0, 1, 2), (0, 1, 2, 3)], "buffer 1: expected a Buffer", (1, None, (0, 1, 2, 3))),
        ([7], "buffer 0: expected a Buffer", (0, None, 7)),
        ([None], "buffer 0: expected a Buffer", (0, None, None)),
        (["012"], "buffer 0: expected a Buffer", (0, None, "012")),
        ([b"012"], "buffer 0: expected a Buffer", (0, None, b"012")),
        ([{"lower": 0, "upper": 1, "size": 2}], "buffer 0: expected a Buffer", None),
        ([SimpleNamespace(lower=0, upper=1)], "buffer 0: expected a Buffer", None),
        ([np.array(5)], "buffer 0: expected a Buffer", None),
        (np.zeros((2, 4), int), "shape (n, 3) - lower, upper, size - not (2, 4)", None),
        (np.zeros(3, int), "shape (n, 3) - lower, upper, size - not (3,)", None),
        (np.array(5), "shape (n, 3) - lower, upper, size - not ()", None),
        (np.zeros((0, 2), int), "not (0, 2)", None),
        (np.array([[0.0, 1, 2]]), "buffer 0: lower must be an integer", (0, "lower", 0.0)),
        (np.array([[True, True, True]]), "buffer 0: lower must be an integer", (0, "lower", True)),
        (np.array([[0, 2**63, 1]], np.uint64), "buffer 0: upper must lie", (0, "upper", 2**63)),
        ([Buffer(0, 1, 8, id="a")] * 2, "buffer 'a': two buffers have this id", ("a", "id", "a")),
        ([Buffer(0, 1, 8, id=1), (0, 1, 8)], "buffer 1: two buffers have this id", (1, "id", 1)),
        (
            [SimpleNamespace(lower=0, upper=1, size=8, id=[])],
            "an id must be hashable",
            (None, "id", None),
        ),
    ],
    ids=lambda value: None if isinstance(value, np.ndarray) else str(value)[:40],
)
def test_what_is_no_list_of_buffers_is_refused(
    intervals: Any, words: str, attributes: tuple[object, ...] | None
) -> None:
    """Input of another shape is refused, naming the position and what was found there."""
    with pytest.raises(InvalidProblemError) as caught:
        Problem(intervals)
    error = caught.value
    assert words in str(error)
    if attributes is not None:
        assert (error.id, error.field, error.value) == attributes


@pytest.mark.parametrize("value", [value for value in NOT_INTEGERS if value is not None], ids=repr)
@pytest.mark.parametrize("field", ["capacity", "alignment"])
@pytest.mark.parametrize("source", [[(0, 2, 8)], Problem([(0, 2, 8)])], ids=["rows", "problem"])
def test_arguments_are_checked_like_fields(source: Any, field: str, value: object) -> None:
    """Capacity and alignment of the whole problem must be integers, whatever they come with."""
    with pytest.raises(InvalidProblemError) as caught:
        Problem(source, **{field: value})  # type: ignore[arg-type]
    assert caught.value.field == field
    assert caught.value.value is value
    assert str(caught.value) == f"{field} must be an integer, got {value!r}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"capacity": -1}, "capacity must be at least 0, got -1"),
        ({"alignment": 0}, "alignment must be at least 1, got 0"),
        ({"alignment": -16}, "alignment must be at least 1, got -16"),
        ({"alignment": 2**63}, "alignment 9223372036854775808 and the buffers' own have a common"),
        ({"alignment": 2**40 + 1}, "have a common multiple above 2**62"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments: dict[str, Any], words: str) -> None:
    """Capacity and alignment of the whole problem must be numbers that it can hold."""
    with pytest.raises(InvalidProblemError) as caught:
        Problem([Buffer(0, 1, 8, alignment=2**30)], **arguments)
    assert words in str(caught.value)
    assert (caught.value.field, caught.value.value) == next(iter(arguments.items()))


@pytest.mark.parametrize(
    "rows",
    [
        [Buffer(0, 1, 2**61), Buffer(5, 6, 2**61)],
        [Buffer(0, 1, 2**62 - 1), Buffer(0, 1, 1)],
        [Buffer(0, 1, 2**61, offset=2**61)],
        [Buffer(0, 1, 1, alignment=2**61), Buffer(0, 1, 1, alignment=2**61)],
        [Buffer(0, 1, 2**62 - 1)] * 9,
    ],
)
def test_sums_that_might_overflow_are_refused(rows: list[Buffer]) -> None:
    """Sizes, padding and the highest pin must add up to less than 2**62."""
    named = [Buffer(b.lower, b.upper, b.size, alignment=b.alignment, offset=b.offset) for b in rows]
    with pytest.raises(InvalidProblemError, match=r"add up to 2\*\*62 bytes or more") as caught:
        Problem(named)
    assert caught.value.field == "size"


def test_the_largest_numbers_are_accepted() -> None:
    """Right below the limits nothing wraps: lifetime, load and sections are exact."""
    most = 2**62 - 1
    problem = Problem([(-most, most, most - 7), (-most, 1 - most, 7)])
    assert problem.load == most
    assert int((problem.upper - problem.lower)[0]) == 2 * most
    assert problem.load_step == -most
    Problem([Buffer(0, 1, 5, offset=most - 5)])


@pytest.mark.parametrize(
    ("pins", "clash"),
    [
        ([(0, 5, 10, 0), (1, 6, 10, 5)], ("a", "b")),
        ([(0, 5, 10, 5), (1, 6, 10, 0)], ("a", "b")),
        ([(0, 5, 10, 0), (4, 6, 1, 9)], ("a", "b")),
        ([(0, 5, 10, 0), (0, 5, 10, 0)], ("a", "b")),
        ([(0, 9, 4, 0), (0, 9, 4, 8), (2, 3, 6, 3)], ("a", "c")),
        ([(0, 9, 4, 0), (0, 9, 4, 8), (2, 3, 6, 4)], ("b", "c")),
        ([(0, 9, 9, 0), (0, 9, 4, 20), (2, 3, 1, 4)], ("a", "c")),
        ([(0, 5, 10, 0), (5, 9, 10, 5)], None),
        ([(0, 5, 10, 0), (0, 5, 10, 10)], None),
        ([(0, 5, 10, 0), (0, 5, 0, 5)], None),
        ([(0, 9, 4, 0), (0, 9, 4, 8), (2, 3, 4, 4)], None),
    ],
)
def test_pins_that_overlap_are_refused(
    pins: list[tuple[int, int, int, int]], clash: tuple[str, str] | None
) -> None:
    """Two buffers live together and pinned to the same bytes are refused, naming both."""
    rows = [
        Buffer(lower, upper, size, id=id, offset=offset)
        for id, (lower, upper, size, offset) in zip("abc", pins, strict=False)
    ]
    if clash is None:
        assert Problem(rows).pin.tolist() == [offset for *_, offset in pins]
        return
    with pytest.raises(InvalidProblemError, match="are live together and pinned to") as caught:
        Problem(rows)
    assert caught.value.field == "offset"
    assert caught.value.id in clash
    assert all(f"{id!r}" in str(caught.value) for id in clash)


@examples(120)
@given(
    st.lists(
        st.tuples(st.integers(0, 6), st.integers(1, 4), st.integers(0, 4), st.integers(0, 9)),
        max_size=7,
    )
)
def test_a_clash_of_pins_is_found_exactly_if_there_is_one(
    rows: list[tuple[int, int, int, int]],
) -> None:
    """Pinned buffers are accepted exactly if no two of them overlap in steps and bytes."""
    buffers = [Buffer(start, start + steps, size, offset=at) for start, steps, size, at in rows]
    free = Problem([Buffer(b.lower, b.upper, b.size) for b in buffers])
    clash = bool(oracle.broken_rules(free, [at for *_, at in rows]))
    if not clash:
        Problem(buffers)
        return
    with pytest.raises(InvalidProblemError, match="overlapping bytes"):
        Problem(buffers)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"lower": [0, 1]}, "column 'lower' has 2 values where 1 buffers have a size"),
        ({"lower": [0, "x"], "ids": "a"}, "column 'lower' has 2 values"),
        ({"upper": []}, "column 'upper' has 0 values"),
        ({"alignment": [1, 2, 3]}, "column 'alignment' has 3 values"),
        ({"offset": [None, None]}, "column 'offset' has 2 values"),
        ({"ids": ["a", "b"]}, "2 ids for 1 buffers"),
        ({"ids": [["a"]]}, "an id must be hashable"),
        ({"ids": [float("nan")]}, "buffer nan: an id must equal itself"),
        ({"ids": [np.float32("nan")]}, "buffer nan: an id must equal itself"),
        ({"ids": 7}, "column 'id' must be a list or an array of one dimension, got 7"),
        ({"ids": {"a"}}, "column 'id' must be a list or an array of one dimension, got {'a'}"),
        ({"size": np.zeros((1, 1), int)}, "column 'size' must be a list or an array of one dim"),
        ({"size": np.array(8)}, "column 'size' must be a list or an array of one dimension"),
        ({"size": 8}, "column 'size' must be a list or an array of one dimension, got 8"),
        ({"size": {8}}, "column 'size' must be a list or an array of one dimension, got {8}"),
        ({"lower": {0: 0}}, "column 'lower' must be a list or an array of one dimension"),
        ({"upper": None}, "column 'upper' must be a list or an array of one dimension"),
        ({"upper": "1"}, "column 'upper' must be a list or an array of one dimension"),
        ({"alignment": 4}, "column 'alignment' must be a list or an array of one dimension"),
        ({"offset": np.array(None)}, "column 'offset' must be a list or an array of one dim"),
        ({"size": np.ma.array([8], mask=[True])}, "column 'size' has masked values"),
        ({"upper": np.ma.array([1], mask=[True])}, "column 'upper' has masked values"),
        ({"lower": [True]}, "buffer 0: lower must be an integer, got True"),
        ({"lower": np.array([0.0])}, "buffer 0: lower must be an integer"),
        ({"lower": np.array(["2020"], "datetime64[Y]")}, "buffer 0: lower must be an integer"),
        ({"offset": np.array([-2])}, "buffer 0: offset must be at least 0, got -2"),
        ({"offset": [-1]}, "buffer 0: offset must be at least 0, got -1"),
        ({"offset": np.array([np.nan])}, "buffer 0: offset must be an integer, got"),
        ({"alignment": [None]}, "buffer 0: alignment must be an integer, got None"),
        ({"lower": [2**63], "ids": ["z"]}, "buffer 'z': lower must lie between"),
    ],
)
def test_bad_columns_are_refused(columns: dict[str, Any], words: str) -> None:
    """Columns of other lengths or contents are refused by name."""
    good: dict[str, Any] = {"lower": [0], "upper": [1], "size": [8]}
    with pytest.raises(InvalidProblemError) as caught:
        Problem.from_columns(**(good | columns))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "intervals",
    [
        np.array(8),
        np.array(None),
        np.ma.array([[0, 1, 8]], mask=[[False, False, True]]),
        [np.array(8)],
        [np.ma.array([0, 1, 8], mask=[False, False, True])],
    ],
    ids=["0-d", "0-d of objects", "masked", "row 0-d", "row masked"],
)
def test_arrays_without_rows_or_values_are_refused(intervals: Any) -> None:
    """Neither an array without dimension nor one with masked values holds buffers."""
    for read in (Problem, Problem.from_closed):
        with pytest.raises(InvalidProblemError):
            read(intervals)


@pytest.mark.parametrize("data", [None, [], 3, "size"])
def test_only_a_mapping_is_plain_data(data: Any) -> None:
    """What is no mapping of columns is refused as no problem."""
    with pytest.raises(InvalidProblemError, match="expected a mapping of columns, got"):
        Problem.from_dict(data)


def test_unknown_columns_of_any_name_are_refused() -> None:
    """Names that cannot be sorted are listed all the same."""
    data: dict[Any, Any] = {"lower": [0], "upper": [1], "size": [8], 1: [], "x": []}
    with pytest.raises(InvalidProblemError, match="has unknown columns 1, x"):
        Problem.from_dict(data)


# -- what is accepted ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [iter, tuple, deque, np.array, np.ma.array, lambda values: dict.fromkeys(values).keys()],
    ids=["iterator", "tuple", "deque", "array", "unmasked", "keys"],
)
def test_every_ordered_column_is_accepted(column: Callable[[list[int]], Any]) -> None:
    """Iterators, views and arrays without masked values are columns like lists."""
    columns: dict[str, Any] = {"lower": [0, 1], "upper": [2, 3], "size": [8, 16], "ids": [5, 6]}
    columns |= {"alignment": [1, 2], "offset": [0, 8]}
    made = Problem.from_columns(**{name: column(values) for name, values in columns.items()})
    assert made == Problem.from_columns(**columns)


Row = namedtuple("Row", "lower upper size")  # noqa: PYI024 (plain ones are met in the wild)
ROWS = [(0, 3, 8), (2, 5, 16), (4, 6, 24)]


@dataclass
class Interval:
    """Somebody else's type, with more than we read."""

    name: str
    lower: int
    upper: int
    size: int


class Lazy:
    """An object that computes its fields."""

    def __init__(self, row: tuple[int, int, int]) -> None:
        self._row = row

    lower = property(lambda self: self._row[0])
    upper = property(lambda self: self._row[1])
    size = property(lambda self: self._row[2])


def generated() -> Iterator[tuple[int, int, int]]:
    """The rows, once."""
    yield from ROWS


ACCEPTED: dict[str, Callable[[], Any]] = {
    "Buffers": lambda: [Buffer(*row) for row in ROWS],
    "tuples": lambda: ROWS,
    "lists": lambda: [list(row) for row in ROWS],
    "namedtuples": lambda: [Row(*row) for row in ROWS],
    "dataclasses": lambda: [Interval("x", *row) for row in ROWS],
    "namespaces": lambda: [SimpleNamespace(**Row(*row)._asdict()) for row in ROWS],
    "properties": lambda: [Lazy(row) for row in ROWS],
    "mixed": lambda: [ROWS[0], Buffer(*ROWS[1]), np.array(ROWS[2])],
    "generator": generated,
    "tuple": lambda: tuple(ROWS),
    "dict values": lambda: dict(enumerate(ROWS)).values(),
    "objects": lambda: np.array([Buffer(*row) for row in ROWS], object),
    "object array": lambda: np.array(ROWS, object),
    "numpy scalars": lambda: [tuple(np.uint16(value) for value in row) for row in ROWS],
    "problem": lambda: Problem(ROWS),
    "rows of an array": lambda: list(np.array(ROWS)),
    "fortran order": lambda: np.asfortranarray(np.array(ROWS)),
    "strided": lambda: np.repeat(np.array(ROWS), 2, axis=0)[::2],
    "big endian": lambda: np.array(ROWS, ">i4"),
}
INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


@pytest.mark.parametrize("form", ACCEPTED)
def test_every_accepted_form_means_the_same(form: str) -> None:
    """Whatever the buffers come as, the problem is the same."""
    problem = Problem(ACCEPTED[form]())
    assert problem == Problem(ROWS)
    assert problem.ids == (0, 1, 2)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_arrays_of_every_integer_type_are_exact(dtype: type[np.integer[Any]]) -> None:
    """Columns are int64 whatever the array was, and later changes to it do not matter."""
    array = np.array(ROWS, dtype)
    problem = Problem(array)
    columns = Problem.from_columns(*array.T, alignment=np.ones(3, dtype))
    array[:] = 1
    assert problem == columns == Problem(ROWS)
    assert problem.size.dtype == np.int64


def test_narrow_integers_do_not_wrap() -> None:
    """Sizes that fit into their type are added up exactly, although their sum does not."""
    sizes = np.array([2_000_000_000, 2_000_000_000], np.int32)
    assert Problem.from_columns([0, 1], [2, 3], sizes).load == 4_000_000_000
    assert Problem([(0, 2, sizes[0]), (1, 3, sizes[1])]).load == 4_000_000_000


def test_columns_are_read_by_name() -> None:
    """`from_columns` takes what `columns` returns, with pins, alignments and ids."""
    problem = Problem([Buffer(0, 2, 8, id="a", alignment=4, offset=12), Buffer(1, 3, 8, id="b")])
    assert Problem.from_columns(**problem.columns()) == problem
    assert Problem.from_columns([0, 1], [2, 3], [8, 8], offset=[12, None]).pin.tolist() == [12, -1]
    assert Problem.from_columns([0, 1], [2, 3], [8, 8], offset=np.array([12, -1])).pin[1] == -1


def test_ids_of_an_array_become_python_integers() -> None:
    """No NumPy scalar gets into the ids by way of a column."""
    problem = Problem.from_columns([0], [1], [8], ids=np.array([7]))  # type: ignore[arg-type]
    assert type(problem.ids[0]) is int


def test_optional_fields_of_objects_are_read() -> None:
    """Objects may bring id, alignment and offset; None stands for no id and no pin."""
    rows = [
        SimpleNamespace(lower=0, upper=2, size=8, id="a", alignment=4, offset=8),
        SimpleNamespace(lower=0, upper=2, size=8, id=None, offset=None),
    ]
    problem = Problem(rows)
    assert list(problem) == [
        Buffer(0, 2, 8, id="a", alignment=4, offset=8),
        Buffer(0, 2, 8, id=1),
    ]


def test_alignment_of_the_problem_joins_that_of_the_buffers() -> None:
    """Every offset is a multiple of both, also when a problem is read again."""
    problem = Problem([Buffer(0, 2, 8, alignment=6), Buffer(0, 2, 8)], alignment=4)
    assert problem.alignment.tolist() == [12, 4]
    assert problem.base_alignment == 12
    assert Problem(problem, alignment=5).alignment.tolist() == [60, 20]
    assert Problem(problem).alignment.tolist() == [12, 4]


def test_capacity_is_kept_until_another_is_given() -> None:
    """A problem made of a problem keeps its capacity; `with_capacity` can also remove it."""
    problem = Problem([(0, 2, 8)], capacity=16)
    assert Problem(problem).capacity == 16
    assert Problem(problem, alignment=4).capacity == 16
    assert Problem(problem, capacity=9).capacity == 9
    assert problem.with_capacity(None).capacity is None
    assert problem.capacity == 16
    assert Problem([(0, 2, 8)], capacity=2**80).capacity == 2**80


def test_nothing_is_a_problem() -> None:
    """No buffers, or none with a size, make a problem with load 0."""
    for rows in ([], np.zeros((0, 3), int), [(0, 1, 0)]):
        problem = Problem(rows)
        assert (problem.load, problem.load_step, len(problem.sections)) == (0, None, 0)
        assert set(problem.component.tolist()) <= {-1}


# -- closed lifetimes ------------------------------------------------------------------------


def test_closed_lifetimes_are_widened() -> None:
    """`from_closed` adds one to `upper`, so that buffers that touch conflict."""
    rows = [(0, 3, 64), (3, 6, 64), (7, 7, 64)]
    closed = Problem.from_closed(rows)
    assert closed == Problem([(lower, upper + 1, size) for lower, upper, size in rows])
    assert (closed.load, Problem(rows[:2]).load) == (128, 64)
    assert Problem.from_closed(np.array(rows)) == closed
    assert Problem.from_closed(Buffer(*row) for row in rows) == closed
    assert Problem.from_closed(np.array(rows, np.uint8)) == closed
    assert Problem.from_closed([], capacity=4).capacity == 4
    assert Problem.from_closed(rows, alignment=16).base_alignment == 16


def test_closed_lifetimes_of_a_problem_are_refused() -> None:
    """A problem is half-open already, so it cannot be read as closed by mistake."""
    with pytest.raises(TypeError, match="half-open already"):
        Problem.from_closed(Problem([(0, 3, 64)]))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ((3, 2, 8), "buffer 0: lifetime [3, 3) is empty"),
        ((0, 2**62 - 1, 8), "buffer 0: upper must lie between"),
        ((0, 2.0, 8), "buffer 0: upper must be an integer, got 2.0"),
        ((0, np.nan, 8), "buffer 0: upper must be an integer, got nan"),
    ],
)
def test_bad_closed_lifetimes_are_refused(row: Any, words: str) -> None:
    """The gate is the same for closed lifetimes."""
    with pytest.raises(InvalidProblemError) as caught:
        Problem.from_closed([row])
    assert words in str(caught.value)


# -- immutable data --------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["lower", "upper", "size", "alignment", "pin"])
def test_columns_are_read_only(column: str) -> None:
    """No column can be written to or replaced."""
    problem = Problem(ROWS)
    with pytest.raises(ValueError, match="read-only"):
        getattr(problem, column)[0] = 1
    with pytest.raises(FrozenInstanceError):
        setattr(problem, column, np.zeros(3, np.int64))


def test_what_is_derived_is_read_only() -> None:
    """Arrays that are computed once and shared cannot be written to either."""
    problem = Problem(ROWS)
    sections = problem.sections
    shared = [sections.start, sections.stop, sections.step, sections.load]
    for array in [*shared, problem.component, problem.id_rank]:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_buffers_are_frozen_records() -> None:
    """A buffer cannot be changed, compares by value, and is written as it is made."""
    buffer = Buffer(0, 3, 4, id="a", alignment=16, offset=32)
    with pytest.raises(FrozenInstanceError):
        buffer.size = 5  # type: ignore[misc]
    assert buffer == eval(repr(buffer))
    assert len({buffer, eval(repr(buffer))}) == 1
    assert pickle.loads(pickle.dumps(buffer)) == copy.deepcopy(buffer) == buffer
    with pytest.raises(TypeError):
        Buffer(0, 3, 4, "a")  # type: ignore[call-arg]


@examples(100)
@given(problems(alignments=True, pins=True, huge=True))
def test_problems_survive_being_copied(problem: Problem) -> None:
    """Pickling, copying and plain data give the problem back, with its fingerprint."""
    capped = problem.with_capacity(2**62)
    for again in (
        pickle.loads(pickle.dumps(capped)),
        copy.deepcopy(capped),
        Problem(capped),
        Problem(list(capped), capacity=2**62),
        Problem.from_dict(capped.to_dict()),
        capped.select(np.arange(len(capped))),
    ):
        assert again == capped
        assert again.fingerprint == capped.fingerprint
        assert hash(again) == hash(capped)


def test_equality_looks_at_everything() -> None:
    """Problems differ if a column, an id, the order or the capacity does."""
    problem = Problem(ROWS)
    others = [
        Problem(ROWS[::-1]),
        Problem(ROWS[:2]),
        Problem(ROWS, capacity=99),
        Problem(ROWS, alignment=2),
        Problem.from_columns(*np.array(ROWS).T, ids="abc"),
        Problem([Buffer(*ROWS[0], offset=0), *ROWS[1:]]),
    ]
    assert all(problem != other for other in others)
    assert problem != "a problem"


def test_reading_by_position_and_by_id() -> None:
    """Buffers come back as they were given; ids lead to positions."""
    rows = [Buffer(0, 2, 8, id="x", offset=4), Buffer(1, 3, 8, id=("y", 1), alignment=2)]
    problem = Problem(rows)
    assert [problem[i] for i in (0, 1, -1)] == [*rows, rows[-1]]
    assert [problem.index("x"), problem.index(("y", 1))] == [0, 1]
    assert type(problem[0].lower) is int
    with pytest.raises(KeyError):
        problem.index("z")
    with pytest.raises(IndexError):
        problem[2]


def test_select_keeps_pins_ids_and_order() -> None:
    """Some of the buffers, in the order asked for."""
    rows = [Buffer(i, i + 2, 8, id=f"b{i}", alignment=4, offset=8 * i or None) for i in range(4)]
    chosen = Problem(rows, capacity=64).select(np.array([3, 1]))
    assert chosen == Problem([rows[3], rows[1]], capacity=64)


def test_to_select_all_costs_nothing() -> None:
    """All buffers in their order are the problem itself; in another order they are not."""
    problem = Problem([(i, i + 2, 8) for i in range(4)])
    assert problem.select(np.arange(4)) is problem
    assert problem.select(np.arange(4)[::-1]).ids == (3, 2, 1, 0)


# -- plain data ------------------------------------------------------------------------------


def test_problems_become_plain_data() -> None:
    """`to_dict` gives lists of Python integers, with None where the solver chooses."""
    problem = Problem([Buffer(0, 2, 8, id="a", offset=4), Buffer(1, 3, 8, id=7)], capacity=64)
    assert problem.to_dict() == {
        "ids": ["a", 7],
        "lower": [0, 1],
        "upper": [2, 3],
        "size": [8, 8],
        "alignment": [1, 1],
        "offset": [4, None],
        "capacity": 64,
    }


def test_ids_that_json_cannot_hold_are_refused() -> None:
    """Text, integers and tuples can be written; the error names the id and what is wrong in it."""
    with pytest.raises(InvalidProblemError, match=r"buffer \('a', None\): .* None is neither"):
        Problem([Buffer(0, 1, 8, id=("a", None))]).to_dict()


def test_tuples_are_lists_in_plain_data() -> None:
    """JSON has no tuples; read back, the ids of buffers and constraints are tuples again."""
    constraints = Constraints(apart=[(("a", 0), ("a", 1))], relative=[(("a", 0), "b", 8)])
    rows = [Buffer(0, 1, 8, id=id) for id in (("a", 0), ("a", 1), "b")]
    problem = Problem(rows, constraints=constraints)
    data = json.loads(json.dumps(problem.to_dict()))
    assert data["ids"] == [["a", 0], ["a", 1], "b"]
    assert Problem.from_dict(data) == problem


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"lower": [0], "upper": [1]}, "the problem lacks size"),
        ({}, "the problem lacks lower, size, upper"),
        ({"lower": [0], "upper": [1], "size": [1], "pool": [0]}, "has unknown columns pool"),
        ({"lower": [0.5], "upper": [1], "size": [1]}, "buffer 0: lower must be an integer"),
        ({"lower": [0], "upper": [1], "size": [1], "offset": [-1]}, "offset must be at least 0"),
        ({"lower": [0], "upper": [1], "size": [1], "capacity": "1"}, "capacity must be an integer"),
    ],
)
def test_bad_plain_data_is_refused(data: dict[str, Any], words: str) -> None:
    """What `to_dict` would not have written is refused by name."""
    with pytest.raises(InvalidProblemError, match=words):
        Problem.from_dict(data)


# -- the fingerprint -------------------------------------------------------------------------


@examples(100)
@given(st.data())
def test_the_fingerprint_does_not_depend_on_the_order(data: st.DataObject) -> None:
    """The same buffers in another order have the same fingerprint, whatever their ids are."""
    problem = data.draw(problems(alignments=True, pins=True))
    order = data.draw(orders(problem))
    for name in (lambda i: i, lambda i: f"b{i}", lambda i: ("b", i), lambda i: i / 2):
        ids = [name(i) for i in range(len(problem))]
        named = Problem.from_columns(**(problem.columns() | {"ids": ids}))
        assert named.select(order).fingerprint == named.fingerprint


FINGERPRINTED = [Buffer(0, 2, 8, id="a"), Buffer(1, 3, 8, id="b")]


class Text(StrEnum):
    """Text with another `repr`."""

    A = "a"


@pytest.mark.parametrize(
    ("id", "other"),
    [
        (1, np.int64(1)),
        (1, True),
        (1, 1.0),
        (True, np.bool_(True)),
        (0.5, np.float64(0.5)),
        ("a", np.str_("a")),
        ("a", Text.A),
        (("a", 1), ("a", np.int64(1))),
        (("a", 1), ("a", True)),
    ],
    ids=repr,
)
def test_equal_problems_have_one_hash_and_fingerprint(id: Any, other: Any) -> None:
    """Ids that are equal are the same, whatever their types."""
    a, b = (Problem([Buffer(0, 2, 8, id=name)]) for name in (id, other))
    assert (a == b, hash(a) == hash(b), a.fingerprint == b.fingerprint) == (True, True, True)


def test_ids_are_no_numpy_scalars() -> None:
    """A NumPy scalar becomes what Python, and JSON, have for it."""
    problem = Problem([Buffer(0, 2, 8, id=np.int64(3)), Buffer(0, 2, 8, id=np.str_("a"))])
    assert list(map(type, problem.ids)) == [int, str]
    assert problem.to_dict()["ids"] == [3, "a"]


@pytest.mark.parametrize(
    "rows",
    [
        [],
        FINGERPRINTED[:1],
        [*FINGERPRINTED, Buffer(0, 1, 0, id="c")],
        [Buffer(0, 2, 8, id="b"), Buffer(1, 3, 8, id="a")],
        [Buffer(0, 2, 8, id="a"), Buffer(1, 3, 8, id="c")],
        [Buffer(0, 2, 8, id="a"), Buffer(0, 3, 8, id="b")],
        [Buffer(0, 2, 8, id="a"), Buffer(1, 4, 8, id="b")],
        [Buffer(0, 2, 8, id="a"), Buffer(1, 3, 9, id="b")],
        [Buffer(0, 2, 8, id="a"), Buffer(1, 3, 8, id="b", alignment=2)],
        [Buffer(0, 2, 8, id="a"), Buffer(1, 3, 8, id="b", offset=0)],
        [Buffer(0, 2, 8), Buffer(1, 3, 8)],
    ],
)
def test_the_fingerprint_notices_every_change(rows: list[Buffer]) -> None:
    """Another id, lifetime, size, alignment or pin gives another fingerprint."""
    assert Problem(rows).fingerprint != Problem(FINGERPRINTED).fingerprint


def test_the_fingerprint_tells_numbers_from_words_and_ignores_the_capacity() -> None:
    """Ids 1 and "1" are different; the capacity is no property of the buffers."""
    as_number, as_word = Problem([Buffer(0, 1, 8, id=1)]), Problem([Buffer(0, 1, 8, id="1")])
    assert as_number.fingerprint != as_word.fingerprint
    assert as_number.with_capacity(9).fingerprint == as_number.fingerprint


# -- sections, load, components --------------------------------------------------------------


@examples(120)
@given(problems(max_buffers=10, huge=True))
def test_sections_are_the_maximal_sets_live_together(problem: Problem) -> None:
    """Sections are the maximal cliques, in time order, with a step and the bytes of each."""
    sections = problem.sections
    members = [
        frozenset(np.flatnonzero((sections.start <= s) & (s < sections.stop)).tolist())
        for s in range(len(sections))
    ]
    assert members == oracle.maximal_live_sets(problem)
    live = oracle.live_sets(problem)
    assert members == [live[step] for step in sections.step.tolist()]
    assert sections.load.tolist() == [sum(problem[i].size for i in one) for one in members]
    empty = problem.size == 0
    assert not sections.start[empty].any()
    assert not sections.stop[empty].any()


@examples(100)
@given(problems(max_buffers=10, huge=True))
def test_the_load_is_the_most_bytes_live_at_a_step(problem: Problem) -> None:
    """Load and the first step where it is reached, against the definition."""
    assert problem.load == oracle.load(problem)
    live = oracle.live_sets(problem)
    heaviest = [s for s in live if sum(problem[i].size for i in live[s]) == problem.load]
    assert problem.load_step == (heaviest[0] if heaviest else None)


@examples(100)
@given(problems(max_buffers=10))
def test_components_are_connected_by_conflicts(problem: Problem) -> None:
    """Components against the definition, numbered in time order."""
    component = problem.component
    groups = {
        frozenset(np.flatnonzero(component == k).tolist())
        for k in range(int(component.max(initial=-1)) + 1)
    }
    assert groups == oracle.components(problem)
    assert ((component == -1) == (problem.size == 0)).all()
    starts = [int(problem.lower[component == k].min()) for k in range(len(groups))]
    assert starts == sorted(starts)


def test_ids_are_ranked_for_ties() -> None:
    """Integers by value, then strings, then other ids as given."""
    ids = ["b10", 10, (2, 1), "b9", 9, (1, 2), -1]
    problem = Problem([Buffer(0, 1, 8, id=id) for id in ids])
    ranked = sorted(range(len(ids)), key=problem.id_rank.tolist().__getitem__)
    assert [ids[i] for i in ranked] == [-1, 9, 10, "b10", "b9", (2, 1), (1, 2)]


@pytest.mark.parametrize(
    ("rows", "features"),
    [
        ([(0, 1, 8)], set()),
        ([Buffer(0, 1, 8, alignment=2)], {"alignment"}),
        ([Buffer(0, 1, 8, offset=0)], {"pins"}),
        ([Buffer(0, 1, 8, alignment=2, offset=0)], {"alignment", "pins"}),
    ],
)
def test_features_say_what_a_solver_must_support(rows: Any, features: set[str]) -> None:
    """A feature is named exactly if a buffer uses it."""
    assert Problem(rows).features == features


def test_repr_says_what_there_is() -> None:
    """One line with the number of buffers, the load and the capacity."""
    assert repr(Problem(ROWS)) == "<Problem: 3 buffers, load 40>"
    assert repr(Problem(ROWS, capacity=64)) == "<Problem: 3 buffers, load 40, capacity=64>"

"""Kernels: compiled and not, both against loops; and when compiling them is worth it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dsa import Problem, validate, validation
from dsa.bench.generators import FAMILIES
from dsa.budget import Budget
from dsa.kernels import compiled, gaps, placement
from dsa.kernels import skyline as filling
from dsa.kernels.compiled import Kernel
from dsa.kernels.gaps import UNPLACED
from dsa.kernels.placement import Fit, Placement, place, place_again, place_below, stack
from dsa.kernels.skyline import Skyline, skyline
from dsa.problem import IntArray
from dsa.solvers.orders import order_by
from dsa.solvers.strip_packing import component_peaks
from dsa.testing import assert_valid, orders, problems
from tests import oracle
from tests.shared import examples

KERNELS = [filling.FILL, gaps.FILL, gaps.STACK, validation.SWEEP]


@pytest.fixture(params=["as it is", "compiled"])
def mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All kernels run as they are, or all run compiled."""
    if request.param == "compiled" and not compiled.available():
        pytest.skip("numba is not installed")
    for kernel in KERNELS:
        monkeypatch.setattr(kernel, "bought", request.param == "compiled")
        monkeypatch.setattr(kernel, "SMALL", float("inf"))


def many(seed: int, count: int, **columns: Any) -> Problem:
    """Buffers, some of size 0, over few enough steps that they are in each other's way."""
    random = np.random.default_rng(seed)
    lower = random.integers(0, count, count)
    upper = lower + random.integers(1, max(count // 8, 2), count)
    return Problem.from_columns(lower, upper, random.integers(0, 40, count), **columns)


# -- both give the same -------------------------------------------------------------------------


def look_along(problem: Problem, order: IntArray, fit: Fit) -> IntArray:
    """Placed by looking along all that has been placed."""
    placed, offsets = Placement(problem), np.maximum(problem.pin, 0)
    for i in order.tolist():
        if offsets[i] == problem.pin[i] and problem.size[i]:
            placed.insert(i, int(offsets[i]))
    for i in order.tolist():
        if problem.pin[i] < 0 and problem.size[i]:
            offsets[i] = placed.find(i, fit)
            placed.insert(i, int(offsets[i]))
    return offsets


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("fit", ["first", "best"])
def test_gaps_are_those_between_all_that_is_placed(
    fit: Fit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tree of blocked bytes against a look along all buffers, with alignments and pins."""
    monkeypatch.setattr(placement, "FEW", 0)

    @examples(60)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        problem = data.draw(problems(alignments=True, pins=True, huge=True))
        order = data.draw(orders(problem))
        offsets = place(problem, order, fit)
        assert offsets.tolist() == look_along(problem, order, fit).tolist()
        assert_valid(offsets, problem)

    check()


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("fit", ["first", "best"])
@pytest.mark.parametrize("alignment", [1, 6])
def test_a_full_pool_is_enlarged(fit: Fit, alignment: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many buffers that lists move to larger rooms, and the pool grows on the way."""
    monkeypatch.setattr(placement, "FEW", 0)
    problem = many(1, 700, alignment=np.full(700, alignment))
    order = np.random.default_rng(2).permutation(700)
    assert place(problem, order, fit).tolist() == look_along(problem, order, fit).tolist()


class Counted(list[int]):
    """A pool that counts how often it is read."""

    reads = 0

    def __getitem__(self, key: Any) -> Any:
        self.reads += 1
        return super().__getitem__(key)


@pytest.mark.parametrize("best", [False, True])
def test_gaps_that_are_too_small_do_not_concern_other_lists(best: bool) -> None:
    """What a gap costs that one list leaves does not depend on how many lists there are."""
    crowd = [end for i in range(200) for end in (4 * i, 4 * i + 3)]  # gaps of one byte
    reads = []
    for others in (1, 20):
        pool = Counted([*crowd, *(1000, 1001) * others])
        begin = [0, *range(len(crowd), len(pool), 2)]
        end = [*begin[1:], len(pool)]
        assert gaps._find(pool, begin, end, len(begin), 2, 1, best) == 799
        reads.append(pool.reads)
    assert reads[1] < 2 * reads[0]


@pytest.mark.usefixtures("mode")
def test_plans_are_pushed_down_alike() -> None:
    """By a tree of tops as by slices of sections, with alignments and pins; nothing rises."""

    @examples(60)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        problem = data.draw(problems(alignments=True, pins=True, huge=True))
        some = place(problem, data.draw(orders(problem)))
        stacked = []
        for long in (-1, placement.LONG):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(placement, "LONG", long)
                patch.setattr(gaps.STACK, "bought", gaps.STACK.bought and long < 0)
                stacked.append(stack(problem, some).tolist())
        assert stacked[0] == stacked[1]
        assert (np.array(stacked[0]) <= some).all()
        assert_valid(stacked[0], problem)

    check()


@pytest.mark.usefixtures("mode")
def test_the_validator_finds_what_overlaps() -> None:
    """The sweep says whether there is an overlap as the definition does, for any offsets."""

    @examples(80)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        problem = data.draw(problems(alignments=False, pins=False))
        some = st.lists(st.integers(0, 60), min_size=len(problem), max_size=len(problem))
        offsets = data.draw(some)
        clash = any(
            max(offsets[i], offsets[j])
            < min(offsets[i] + problem[i].size, offsets[j] + problem[j].size)
            for i, j in oracle.conflicts(problem)
        )
        assert bool(validate(offsets, problem)) == clash

    check()


@pytest.mark.parametrize("seed", range(3))
def test_the_skyline_is_the_same_compiled(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled and not, pauses included, bit by bit."""
    if not compiled.available():
        pytest.skip("numba is not installed")
    problem = many(seed, 5000, alignment=np.random.default_rng(seed).choice([1, 4, 6], 5000))
    order = np.random.default_rng(seed).permutation(5000)
    offsets = []
    for bought in (False, True):
        monkeypatch.setattr(filling.FILL, "bought", bought)
        monkeypatch.setattr(filling.FILL, "SMALL", float("inf"))
        offsets.append(skyline(problem, order).tolist())
    assert offsets[0] == offsets[1]
    assert_valid(offsets[0], problem)


def edge_cases() -> Iterator[Problem]:
    """Nothing, one, all of size 0, all live together, a chain, huge sizes, one spanning all."""
    yield Problem([])
    yield Problem([(0, 1, 8)])
    yield Problem([(0, 1, 0), (0, 9, 0)])
    yield Problem([(0, 9, size % 7) for size in range(300)])
    yield Problem([(i, i + 2, 1 + i % 3) for i in range(300)])
    yield Problem([(-(2**61), 2**61, 2**60), (0, 1, 2**61), (-1, 2, 1)])
    yield Problem([(0, 100, 5), *((i, i + 1, i % 9) for i in range(100))])


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("problem", edge_cases(), ids=repr)
@pytest.mark.parametrize("fit", ["first", "best"])
def test_extremes(problem: Problem, fit: Fit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every kernel on what is empty, flat, long or huge."""
    monkeypatch.setattr(placement, "FEW", -1)
    order = np.arange(len(problem))
    offsets = place(problem, order, fit)
    assert offsets.tolist() == look_along(problem, order, fit).tolist()
    assert_valid(offsets, problem)
    assert_valid(skyline(problem, order), problem)


# -- what is looked at --------------------------------------------------------------------------


def test_lists_stay_short_where_plans_are_dense() -> None:
    """Buffers that touch are one range: no list of a dense plan has more than a few ends."""
    n = 512
    problem = Problem([(i % 64, i % 64 + 4, 8) for i in range(n)])
    sections, order = problem.sections, np.argsort(problem.lower, kind="stable")
    leaves = 1 << (len(sections) + 1).bit_length()
    lists = np.zeros((3, 4 * leaves), np.int64)
    lists[2] = gaps.UNUSED
    columns: list[Any] = [
        *(sections.start, sections.stop, problem.size, problem.alignment, order),
        *np.zeros((2, 0), np.int64),
        *(lists, np.zeros((4, 128), np.int64), np.array([0, 0, n, -1]), np.full(n, UNPLACED)),
    ]
    run, columns = Kernel(gaps._fill).ready_for(0, *columns, np.zeros(1 << 16, np.int64))
    assert run(False, *columns)
    assert max(columns[7][1]) <= 8


def test_a_swap_changes_only_what_follows_from_it() -> None:
    """Placed again after a swap as if all were placed anew."""

    @examples(80)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        problem = data.draw(problems(alignments=True, pins=True, zero_sizes=False))
        assume(len(problem))
        order = data.draw(orders(problem))
        pair = st.integers(0, len(problem) - 1)
        swapped = np.unique([data.draw(pair), data.draw(pair)])
        other = order.copy()
        other[swapped] = order[swapped[::-1]]
        again = place_again(problem, other, place(problem, order), swapped)
        assert again.tolist() == place(problem, other).tolist()

    check()


@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("how", ["skyline", "gaps"])
def test_a_pass_is_given_up_only_in_vain(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends as without ceilings, or not at all where no component would be below its own."""
    monkeypatch.setattr(placement, "FEW", 0)
    given_up = ended = 0

    def fill(problem: Problem, order: IntArray, ceilings: IntArray | None = None) -> Any:
        if how == "skyline":
            return Skyline(problem).fill(order, ceilings=ceilings)
        return place_below(problem, order, "first", ceilings=ceilings)

    @examples(60)
    @given(st.integers(0, 2**32 - 1), st.integers(130, 300), st.integers(1, 9), st.data())
    def check(seed: int, count: int, length: int, data: st.DataObject) -> None:
        nonlocal given_up, ended
        random = np.random.default_rng(seed)
        lower = random.integers(0, 200, count)
        columns = (
            lower,
            lower + random.integers(1, length + 1, count),
            random.integers(0, 9, count),
        )
        problem = Problem.from_columns(*columns, alignment=random.choice([1, 1, 2, 3], count))
        order = random.permutation(count)
        offsets = fill(problem, order)
        peaks = component_peaks(problem, offsets)
        ceilings = peaks + data.draw(st.integers(-2, 1)) + random.integers(-1, 2, len(peaks))
        ceilings = np.where(peaks > 0, np.maximum(ceilings, 0), 0)
        found = fill(problem, order, ceilings)
        if found is None:
            assert (peaks >= ceilings)[:-1].all()
            given_up += 1
        else:
            assert found.tolist() == offsets.tolist()
            ended += 1

    check()
    assert given_up
    assert ended


@pytest.mark.skipif(not compiled.available(), reason="numba is not installed")
def test_a_pass_that_is_given_up_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled, what a generator holds is lost unless it runs to its end; nor if it is late."""
    problem = FAMILIES["random"](5000)
    ceilings = component_peaks(problem, skyline(problem, order_by(problem, "area")))
    monkeypatch.setattr(filling.FILL, "bought", True)
    ready_for, held = filling.FILL.ready_for, []

    def watched(seconds: float, *columns: IntArray, left: float) -> Any:
        held.append(weakref.ref(columns[-1]))
        return ready_for(seconds, *columns, left=left)

    monkeypatch.setattr(filling.FILL, "ready_for", watched)
    passes = Skyline(problem)
    assert passes.fill(order_by(problem, "size"), ceilings=ceilings) is None
    assert passes.fill(order_by(problem, "size"), Budget(time_limit=0)) is None
    assert [reference() for reference in held] == [None, None]


def test_what_is_wasted_ends_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass in vain ends long before its last buffer, and before anything reaches the ceiling."""
    problem, given = FAMILIES["random"](3000), {}
    ceilings = component_peaks(problem, skyline(problem, order_by(problem, "area")))

    def ready_for(seconds: float, *columns: IntArray, left: float) -> Any:
        given["columns"] = [column.tolist() for column in columns]
        return filling._fill, given["columns"]

    monkeypatch.setattr(filling.FILL, "ready_for", ready_for)
    assert Skyline(problem).fill(order_by(problem, "size"), ceilings=ceilings) is None
    best, (heights, *_) = given["columns"][6:8]
    placed = best[len(best) // 2 :][: len(problem)].count(best[0])
    assert 0 < placed < len(problem) / 5
    assert max(heights) < ceilings.max() / 2


def test_a_pass_ends_when_the_time_is_up() -> None:
    """The clock is looked at on the way; a short pass is made anyway."""
    late, early = Budget(time_limit=0), Budget(time_limit=1e6)
    long, short = many(0, 5000), many(0, 500)
    assert Skyline(long).fill(np.arange(5000), late) is None
    assert Skyline(short).fill(np.arange(500), late) is not None
    assert place_below(long, np.arange(5000), "first", late) is None
    assert place_below(short, np.arange(500), "first", late) is not None
    in_time = Skyline(long).fill(np.arange(5000), early)
    assert in_time is not None
    assert in_time.tolist() == skyline(long, np.arange(5000)).tolist()


# -- when to compile ----------------------------------------------------------------------------


def one(values: Any) -> Any:
    """Stand for a kernel."""
    return values


@pytest.fixture
def buys(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[bool]]:
    """Whether a kernel is compiled after each of several runs of so many seconds."""

    def run(seconds: list[float], *, there: bool = True, loaded: bool = False) -> list[bool]:
        monkeypatch.setattr(compiled, "available", lambda: there)
        monkeypatch.setattr(compiled, "ready", lambda *functions: loaded)
        monkeypatch.setattr(compiled, "compiled", lambda *functions: functions[0])
        kernel, result = Kernel(one), []
        for one_run in seconds:
            kernel.ready_for(one_run, np.arange(2))
            result.append(kernel.bought)
        return result

    return run


@pytest.mark.parametrize(
    ("seconds", "options", "expected"),
    [
        ([0.01] * 2000, {"loaded": True}, [False] * 2000),  # small problems never wait
        ([0.3, 0.3, 0.01], {"loaded": True}, [False, True, True]),  # the rent adds up
        ([6, 5, 0.01], {}, [False, True, True]),
        ([60], {}, [True]),  # worth it at once
        ([60], {"there": False}, [False]),
    ],
)
def test_a_kernel_is_compiled_when_it_pays(
    buys: Callable[..., list[bool]],
    seconds: list[float],
    options: dict[str, bool],
    expected: list[bool],
) -> None:
    """Once the time spent without reaches the price; then also for small problems."""
    assert buys(seconds, **options) == expected


def test_columns_are_lists_or_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel gets what it runs best on."""
    monkeypatch.setattr(compiled, "compiled", lambda *functions: functions[0])
    kernel = Kernel(one)
    assert kernel.ready_for(0, np.arange(2))[1] == [[0, 1]]
    kernel.bought = True
    assert isinstance(kernel.ready_for(0, np.arange(2))[1][0], np.ndarray)

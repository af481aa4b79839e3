"""The arena: planned bytes for those who follow the plan, other bytes for those who stray."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa import Buffer, InvalidPlanError, InvalidProblemError, Plan, Problem, io, plan
from dsa.bench.networks import (
    NETWORKS,
    Branches,
    Convolutional,
    Memory,
    Ordinary,
    Planned,
    Transformer,
)
from dsa.bench.networks import planned as planned_network
from dsa.cli import main
from dsa.replay import Arena, Recorder, Tally
from dsa.testing import problems
from tests.shared import examples

# Three buffers in a row: the first and the last share bytes.
ROW = [Buffer(0, 2, 64, id="a"), Buffer(1, 3, 32, id="b"), Buffer(2, 4, 64, id="c")]


def arena_of(*buffers: Buffer, guard: bool = False) -> Arena:
    """An arena for a few buffers."""
    return Arena(plan(buffers or ROW, alignment=16), guard=guard)


def bytes_of(arena: Arena, id: Hashable, size: int) -> range:
    """Addresses of a buffer that has a size."""
    start = arena.view(id, size).ctypes.data
    return range(start, start + size)


def meet(one: range, other: range) -> bool:
    """Whether two ranges share bytes."""
    return one.start < other.stop and other.start < one.stop


# -- from the record to the arena -------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".json", ".csv"])
def test_a_record_is_planned_from_a_shell(suffix: str, tmp_path: Path) -> None:
    """Recorder, file, `dsa plan`, file, arena: sites are what they were, and nothing strays."""
    sites: list[Hashable] = ["conv", 7, ("model.py", 12), 'a "b", c', ""]
    recorder = Recorder()
    for site in sites * 2:
        recorder.allocate(site, 64)
    model, planned = tmp_path / f"record{suffix}", tmp_path / f"plan{suffix}"
    write = io.write_json if suffix == ".json" else io.write_csv
    write(recorder.problem(), model)
    assert main(["plan", str(model), "--alignment", "16", "-o", str(planned)]) == 0
    assert main(["validate", str(planned), str(model)]) == 0
    arena = Arena(io.read_plan(planned), guard=True)
    with arena.run():
        assert [arena.allocate(site, 64) for site in sites * 2] == list(recorder.problem().ids)
    assert (arena.tally.planned, arena.tally.strays) == (2 * len(sites), 0)


# -- as planned ---------------------------------------------------------------------------------


def test_who_follows_the_plan_gets_its_bytes() -> None:
    """Every buffer is at its offset, in a block that begins where the plan wants it."""
    arena = arena_of()
    with arena.run():
        a, b = arena.allocate("a", 64), arena.allocate("b", 32)
        start = bytes_of(arena, a, 64).start - arena.plan["a"]
        assert bytes_of(arena, b, 32).start == start + arena.plan["b"]
        arena.free(a)
        c = arena.allocate("c", 64)
        assert bytes_of(arena, c, 64).start == start + arena.plan["c"]
        assert start % 64 == 0
    assert arena.tally == Tally(runs=1, planned=3, survivors=2, peak=arena.plan.peak)
    assert arena.tally.strays == 0


@pytest.mark.parametrize("alignment", [1, 3, 48, 64, 4096])
def test_the_block_is_aligned_as_the_plan_wants(alignment: int) -> None:
    """Any positive integer, in every run."""
    arena = Arena(plan([(0, 1, 10)], alignment=alignment))
    assert arena.view(0, 1).ctypes.data % alignment == 0


def test_the_nth_allocation_of_a_site_is_its_nth_buffer() -> None:
    """The ordinals begin anew with each run."""
    recorder = Recorder()
    for size in (8, 16, 24):
        recorder.allocate("conv", size)
    arena = Arena(plan(recorder.problem(alignment=8)))
    for _ in range(2):
        with arena.run():
            ids = [arena.allocate("conv", size) for size in (8, 16, 24)]
            assert ids == [("conv", 0), ("conv", 1), ("conv", 2)]
    assert arena.tally.planned == 6


def test_a_smaller_size_is_served_as_planned() -> None:
    """It fits."""
    arena = arena_of()
    with arena.run():
        assert arena.view(arena.allocate("a", 10), 10).nbytes == 10
    assert arena.tally.planned == 1


def test_size_0_holds_nothing() -> None:
    """It meets nobody, wherever it is."""
    arena = arena_of(Buffer(0, 2, 0, id="none"), Buffer(0, 2, 8, id="some"), guard=True)
    with arena.run():
        for site, size in (("none", 0), ("some", 8), ("none", 0)):
            assert arena.view(arena.allocate(site, size), size).nbytes == size
        arena.free("none")
    assert (arena.tally.planned, arena.tally.unknown) == (2, 1)


def test_an_empty_buffer_beyond_the_peak_is_served() -> None:
    """Where nothing is, nothing is missing."""
    arena = arena_of(Buffer(0, 1, 0, id="none", offset=1024), Buffer(0, 1, 8, id="some"))
    with arena.run():
        assert arena.view(arena.allocate("none", 0), 0).nbytes == 0
    assert arena.view("none", 0).nbytes == 0


def test_an_empty_plan_serves_nothing() -> None:
    """Everything strays, and is served."""
    arena = Arena(plan([]), guard=True)
    with arena.run():
        arena.view(arena.allocate("a", 8), (2, 1), "f4")[:] = 1
    assert arena.tally.unknown == 1


# -- views --------------------------------------------------------------------------------------


def test_a_view_is_an_array_over_the_bytes() -> None:
    """Of any shape and type that fits; two views of a buffer share its bytes."""
    arena = arena_of()
    with arena.run():
        a = arena.allocate("a", 64)
        arena.view(a, (2, 2), np.float64)[:] = 1.5
        assert arena.view(a, 4, "f8").tolist() == [1.5] * 4
        assert arena.view(a, (), np.int32).shape == ()


def test_outside_a_run_a_view_is_where_the_plan_has_it() -> None:
    """So that it can be bound once: each run finds it there."""
    arena = arena_of()
    bound = arena.view("c", 64)
    with arena.run():
        c = arena.allocate("c", 64)
        assert arena.view(c, 64).ctypes.data == bound.ctypes.data


@pytest.mark.parametrize(
    ("id", "shape", "error", "message"),
    [
        ("a", (17,), ValueError, r"buffer 'a': an array of shape \(17,\) and type float32 needs"),
        ("b", (1,), KeyError, "buffer 'b' is not live in this run: allocate it first"),
        ("z", (1,), KeyError, "buffer 'z' is not live in this run"),
    ],
)
def test_a_view_that_cannot_be(
    id: str, shape: tuple[int, ...], error: type[Exception], message: str
) -> None:
    """The error names the buffer."""
    arena = arena_of()
    with arena.run():
        arena.allocate("a", 64)
        with pytest.raises(error, match=message):
            arena.view(id, shape, np.float32)


def test_outside_a_run_only_the_plan_counts() -> None:
    """An id that it does not have is a KeyError; allocating and freeing need a run."""
    arena = arena_of()
    with pytest.raises(KeyError, match="the plan has no buffer 'z'"):
        arena.view("z", 1)
    with pytest.raises(RuntimeError, match="no run is under way on this thread"):
        arena.allocate("a", 64)
    with pytest.raises(RuntimeError, match="no run is under way on this thread"):
        arena.free("a")


# -- straying -----------------------------------------------------------------------------------


def test_an_unknown_site_is_served_elsewhere() -> None:
    """By the ordinary allocator, aligned like the plan."""
    arena = arena_of()
    with arena.run():
        x = arena.allocate("x", 128)
        arena.view(x, 128)[:] = 7
        assert bytes_of(arena, x, 128).start % 64 == 0
        arena.free(x)
    assert (arena.tally.unknown, arena.tally.strays, arena.tally.peak) == (1, 1, 0)


def test_a_larger_size_is_served_elsewhere() -> None:
    """All the others still get their own."""
    arena = arena_of()
    with arena.run():
        a, b = arena.allocate("a", 65), arena.allocate("b", 32)
        assert not meet(bytes_of(arena, a, 65), bytes_of(arena, b, 32))
    assert (arena.tally.larger, arena.tally.planned) == (1, 1)


def test_bytes_that_are_held_are_not_handed_out() -> None:
    """A buffer that lives longer than planned keeps its bytes; who should have them strays."""
    arena = arena_of()
    with arena.run():
        a, c = arena.allocate("a", 64), arena.allocate("c", 64)
        assert not meet(bytes_of(arena, a, 64), bytes_of(arena, c, 64))
        arena.free(a)
        arena.free(c)
        again = arena.allocate("b", 32)
        assert arena.view(again, 32).nbytes == 32
    assert (arena.tally.occupied, arena.tally.planned, arena.tally.reordered) == (1, 2, 0)


def test_another_order_strays() -> None:
    """Who comes after one that begins later is served elsewhere, though its bytes are free."""
    arena = arena_of()
    with arena.run():
        for site in ("b", "a"):
            arena.allocate(site, 32)
    assert (arena.tally.reordered, arena.tally.planned, arena.tally.strays) == (1, 1, 1)


def test_steps_may_be_negative() -> None:
    """The first allocation of a run is in order, wherever its lifetime begins."""
    arena = Arena(plan([Buffer(-9, -5, 8, id="a"), Buffer(-8, 3, 8, id="b")]))
    with arena.run():
        arena.allocate("a", 8)
        arena.allocate("b", 8)
    assert (arena.tally.planned, arena.tally.strays) == (2, 0)


def test_a_double_free_is_counted() -> None:
    """And does no harm to whoever has the bytes by then."""
    arena = arena_of()
    with arena.run():
        a = arena.allocate("a", 64)
        arena.free(a)
        c = arena.allocate("c", 64)
        arena.free(a)
        arena.free("nobody")
        assert arena.view(c, 64).nbytes == 64
    assert (arena.tally.unknown_frees, arena.tally.survivors) == (2, 1)


def test_a_size_beyond_all_memory_is_a_memory_error() -> None:
    """As of the ordinary allocator; the run goes on."""
    arena = arena_of()
    with arena.run():
        with pytest.raises(MemoryError):
            arena.allocate("x", 2**60)
        assert arena.allocate("a", 64) == "a"


def test_a_plan_beyond_all_memory_is_a_memory_error() -> None:
    """When the first run begins, and the arena is as good as before."""
    arena = Arena(plan([(0, 1, 2**60)]))
    for _ in range(2):
        with pytest.raises(MemoryError), arena.run():
            raise AssertionError("the run cannot begin")


# -- runs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("guard", [False, True])
def test_an_exception_ends_the_run(guard: bool) -> None:
    """It is passed on, and the next run begins with nothing held."""
    arena = arena_of(guard=guard)

    def run(divisor: int) -> None:
        with arena.run():
            arena.allocate("a", 64)
            assert 1 // divisor

    with pytest.raises(ZeroDivisionError):
        run(0)
    run(1)
    assert arena.tally == Tally(runs=2, planned=2, survivors=2, peak=arena.tally.peak)


def test_a_thread_has_one_run_at_a_time() -> None:
    """A second one is refused, and the first goes on."""
    arena = arena_of()
    with arena.run():
        with pytest.raises(RuntimeError, match="a run is under way on this thread"), arena.run():
            raise AssertionError("the run cannot begin")
        assert arena.allocate("a", 64) == "a"
    assert arena.tally.runs == 1


def test_threads_have_blocks_of_their_own() -> None:
    """Runs at the same time do not meet, and all are counted."""
    arena = arena_of()
    ready, ranges = threading.Barrier(4), list[range]()

    def work(number: int) -> None:
        with arena.run():
            a = arena.allocate("a", 64)
            arena.view(a, 64)[:] = number
            ranges.append(bytes_of(arena, a, 64))
            ready.wait()
            assert (arena.view(a, 64) == number).all()
            ready.wait()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert arena.tally == Tally(runs=4, planned=4, survivors=4, peak=arena.tally.peak)
    assert not any(meet(x, y) for i, x in enumerate(ranges) for y in ranges[:i])


def test_the_same_thread_keeps_its_block() -> None:
    """So that its pages stay warm."""
    arena, seen = arena_of(), set()
    for _ in range(3):
        with arena.run():
            seen.add(bytes_of(arena, arena.allocate("a", 64), 64))
    assert len(seen) == 1


def test_an_arena_pickles_as_its_plan() -> None:
    """Even in the middle of a run."""
    arena = arena_of(guard=True)
    with arena.run():
        arena.allocate("a", 64)
        copy = pickle.loads(pickle.dumps(arena))
    assert copy.plan == arena.plan
    assert copy.guard
    assert copy.tally == Tally()


def test_two_ids_of_one_allocation_are_refused() -> None:
    """An id that is no (site, ordinal) is a site that allocates once."""
    with pytest.raises(InvalidPlanError, match=r"ids 'a' and \('a', 0\) are the same allocation"):
        arena_of(Buffer(0, 1, 8, id="a"), Buffer(0, 1, 8, id=("a", 0)))


def test_a_tally_reads_as_a_sentence() -> None:
    """What did not happen is not told."""
    assert str(Tally(runs=2, planned=3, peak=8)) == (
        "2 runs: 3 allocations served as planned, up to byte 8"
    )
    assert "1 strayed (0 unknown, 1 larger, 0 occupied, 0 in another order)" in str(Tally(larger=1))


# -- guard mode ---------------------------------------------------------------------------------


def with_fault(good: Plan, id: Hashable, offset: int) -> Plan:
    """The plan, with one buffer elsewhere: nobody has validated it."""
    offsets = good.offsets_array.copy()
    offsets[good.problem.index(id)] = offset
    return replace(good, offsets_array=offsets)


def test_the_guard_finds_a_fault_of_the_plan() -> None:
    """Two buffers live together on the same bytes: the error has both, and the bytes."""
    faulty = with_fault(plan(ROW, alignment=16), "b", plan(ROW, alignment=16)["a"])

    def run(arena: Arena) -> None:
        with arena.run():
            a, b = arena.allocate("a", 64), arena.allocate("b", 32)
            assert not meet(bytes_of(arena, a, 64), bytes_of(arena, b, 32))

    with pytest.raises(InvalidPlanError, match="'a' and 'b' share bytes") as caught:
        run(Arena(faulty, guard=True))
    assert caught.value.violations[0].kind == "overlap"
    unguarded = Arena(faulty)
    run(unguarded)
    assert unguarded.tally.occupied == 1


def test_the_guard_takes_a_run_that_strays_for_what_it_is() -> None:
    """Bytes held longer than planned are no fault of the plan."""
    arena = arena_of(guard=True)
    with arena.run():
        arena.allocate("a", 64)
        arena.allocate("c", 64)
    assert arena.tally.occupied == 1


def write_too_late(arena: Arena, then: Callable[[], object]) -> None:
    """Write to a buffer that has been freed, and go on."""
    with arena.run():
        a = arena.allocate("a", 64)
        kept = arena.view(a, 64)
        arena.free(a)
        kept[5] = 1
        then()


def write_too_far(arena: Arena) -> None:
    """Write into the byte after the end of a buffer."""
    with arena.run():
        view = arena.view(arena.allocate("a", 8), 8)
        np.lib.stride_tricks.as_strided(view, (9,))[8] = 1


def test_the_guard_finds_a_write_after_the_free() -> None:
    """When the run ends, or before: when the bytes are handed out again."""
    arena = arena_of(guard=True)
    with pytest.raises(InvalidPlanError, match="was written while no buffer held it; look for"):
        write_too_late(arena, lambda: None)
    with pytest.raises(InvalidPlanError, match=r"was written .*, before buffer 'c' got it"):
        write_too_late(arena, lambda: arena.allocate("c", 64))
    write_too_late(arena_of(), lambda: None)  # without a guard nobody looks


def test_the_guard_finds_a_write_beyond_the_end() -> None:
    """Into bytes that nobody holds."""
    with pytest.raises(InvalidPlanError, match="or a write beyond its end"):
        write_too_far(arena_of(guard=True))


def test_the_guard_finds_a_write_after_the_run() -> None:
    """When the next run of the thread begins; once told, it is done with."""
    arena = arena_of(guard=True)
    with arena.run():
        kept = arena.view(arena.allocate("a", 64), 64)
    kept[5] = 1
    for expected in (pytest.raises(InvalidPlanError, match="before the run began"), nullcontext()):
        with expected, arena.run():
            arena.allocate("a", 64)
    assert arena.tally.planned == 2


def test_the_guard_does_not_hide_an_exception() -> None:
    """What went wrong in the run is told, not what it left behind."""
    with pytest.raises(ZeroDivisionError):
        write_too_late(arena_of(guard=True), lambda: 1 // 0)


# -- any run ------------------------------------------------------------------------------------

calls = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), st.integers(0, 5), st.integers(0, 64)),
        st.tuples(st.just("free"), st.integers(0, 30), st.just(0)),
    ),
    max_size=40,
)


def run_tagged(arena: Arena, todo: Sequence[tuple[str, Any, int]]) -> None:
    """Write a tag of its own over each buffer, and find it untouched when the buffer is freed."""
    live: dict[Hashable, np.ndarray[Any, Any]] = {}
    tags: dict[Hashable, int] = {}

    def end(id: Hashable) -> None:
        assert (live.pop(id) == tags[id]).all()
        arena.free(id)

    with arena.run():
        made: list[Hashable] = []
        for number, (what, which, size) in enumerate(todo):
            if what == "allocate":
                id = arena.allocate(which, size)
                assert id not in live
                live[id], tags[id] = arena.view(id, size), number % 199
                live[id][:] = tags[id]
                made.append(id)
            elif which < len(made) and made[which] in live:
                end(made[which])
            else:
                arena.free(made[which] if which < len(made) else "nobody")
        for id in list(live):
            end(id)


@examples(150)
@given(problems(alignments=True), calls, st.booleans())
def test_no_run_is_served_overlapping_bytes(
    problem: Problem, todo: list[tuple[str, Any, int]], guard: bool
) -> None:
    """Whatever a run does, its buffers keep what was written to them, and all is counted."""
    arena = Arena(plan(problem, "greedy-by-size"), guard=guard)
    known = [*problem.ids, "x", "y"]
    todo = [(what, known[i % len(known)] if what == "allocate" else i, n) for what, i, n in todo]
    for _ in range(2):
        run_tagged(arena, todo)
    tally = arena.tally
    allocations = sum(what == "allocate" for what, _, _ in todo)
    assert tally.planned + tally.strays == 2 * allocations
    assert tally.runs == 2
    assert tally.survivors == 0
    assert tally.peak <= arena.plan.peak


@examples(100)
@given(problems(alignments=True), st.data())
def test_no_plan_makes_a_run_overlap(problem: Problem, data: st.DataObject) -> None:
    """Offsets that nobody has validated are served all the same, and never the same bytes twice."""
    offsets = np.array([data.draw(st.integers(0, 40)) for _ in problem], np.int64)
    faulty = replace(plan(problem, "naive"), offsets_array=offsets)
    todo = [("allocate", id, int(n)) for id, n in zip(problem.ids, problem.size, strict=True)]
    run_tagged(Arena(faulty), todo)


def follow(arena: Arena) -> None:
    """Allocate, write and free along the lifetimes of the plan; at a step, frees come first."""
    problem = arena.plan.problem
    events = [(int(upper), False, i) for i, upper in enumerate(problem.upper)]
    events += [(int(lower), True, i) for i, lower in enumerate(problem.lower)]
    with arena.run():
        for _, begins, i in sorted(events):
            id, size = problem.ids[i], int(problem.size[i])
            if begins:
                arena.view(arena.allocate(id, size), size)[:] = i
            else:
                arena.free(id)


@examples(100)
@given(problems(alignments=True), st.booleans(), st.data())
def test_the_guard_judges_as_the_validator_does(
    problem: Problem, spoil: bool, data: st.DataObject
) -> None:
    """A run along the plan is served by it if the plan holds, and stopped by the guard if not."""
    good = plan(problem, "greedy-by-size")
    offsets = good.offsets_array.copy()
    if spoil and len(problem):
        i = data.draw(st.integers(0, len(problem) - 1))
        offsets[i] = data.draw(st.integers(0, 20)) * int(problem.alignment[i])
    judged = replace(good, offsets_array=offsets)
    arena = Arena(judged, guard=True)
    if judged.validate():
        with pytest.raises(InvalidPlanError, match="the plan does not hold: overlap"):
            follow(arena)
    else:
        follow(arena)
        assert arena.tally.planned == len(problem)
        assert arena.tally.peak == judged.peak


# -- what is no allocation ----------------------------------------------------------------------


@pytest.mark.parametrize("size", [2.0, "8", None, True, -1, -(2**70), 2**62])
@pytest.mark.parametrize("site", ["a", "never planned"])
def test_a_size_that_is_none_is_refused(site: str, size: Any) -> None:
    """The error names the site and the value, and the site's next allocation is still its first."""
    arena = arena_of()
    with arena.run():
        with pytest.raises(InvalidProblemError, match=f"site '{site}': size must") as caught:
            arena.allocate(site, size)
        assert (caught.value.field, caught.value.value) == ("size", size)
        assert arena.allocate("a", 64) == "a"
    assert (arena.tally.planned, arena.tally.strays) == (1, 0)


@pytest.mark.parametrize("given", [Problem(ROW), ROW, None])
def test_an_arena_is_made_of_a_plan(given: Any) -> None:
    """What has no offsets yet is refused, and the error says what to do."""
    with pytest.raises(TypeError, match=r"an arena is made of a Plan, got .*; give it plan\("):
        Arena(given)


# -- views that must not be ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        (-1, "u1", r"shape \(-1,\) has a length below 0"),  # NumPy takes all bytes that follow
        ((2, -1), "u1", r"shape \(2, -1\) has a length below 0"),
        ((-2, -2), "u1", r"shape \(-2, -2\) has a length below 0"),
        (2.0, "u1", "shape must be an integer or several, got 2.0"),
        ("22", "u1", "shape must be an integer or several, got '22'"),
        ((2, True), "u1", r"shape must be an integer or several, got \(2, True\)"),
        (None, "u1", "shape must be an integer or several, got None"),
        (2, object, "type object has references, and these bytes are none"),
        (2, [("x", "u1"), ("y", "O")], "has references"),
        (2, "S", r"type \|S0 has no size"),  # NumPy makes it a type of another size
        (2, "U", "type <U0 has no size"),
        (65, "u1", "needs 65 B, but the buffer has 64 B"),
        (2, ("u1", (33,)), "needs 66 B, but the buffer has 64 B"),
        ((2**40, 2**40), "u1", "but the buffer has 64 B"),
    ],
)
@pytest.mark.parametrize("running", [False, True])
def test_a_view_is_never_beyond_its_buffer(
    running: bool, shape: Any, dtype: Any, message: str
) -> None:
    """Whatever shape and type are asked for: an error that names the buffer, and no array."""
    arena = arena_of()
    with arena.run() if running else nullcontext():
        if running:
            arena.allocate("a", 64)
        with pytest.raises(ValueError, match=f"buffer 'a': .*{message}"):
            arena.view("a", shape, dtype)


# -- networks -----------------------------------------------------------------------------------

SMALL: list[Callable[[Memory], Any]] = [
    Convolutional(channels=4, width=8, blocks=2),
    Transformer(tokens=8, width=16, blocks=2),
    Branches(channels=4, width=8, blocks=2),
]


def test_every_network_is_tested() -> None:
    """Those of the benchmark are here, smaller."""
    assert [type(network) for network in SMALL] == [type(network) for network in NETWORKS]


@pytest.mark.parametrize("network", SMALL, ids=repr)
@pytest.mark.parametrize("guard", [False, True])
def test_a_network_runs_out_of_its_arena(network: Any, guard: bool) -> None:
    """Run after run the same bits as by the ordinary allocator, at the peak of the plan."""
    expected = network(Ordinary())
    arena = planned_network(network, guard=guard)
    for _ in range(3):
        with arena.run():
            assert np.array_equal(network(Planned(arena)), expected)
    tally = arena.tally
    assert (tally.strays, tally.reordered, tally.survivors) == (0, 0, 0)
    assert tally.peak == arena.plan.peak
    assert arena.plan.validate() == ()


def test_a_network_that_strays_still_computes() -> None:
    """A plan of a smaller network serves what it can of a larger one."""
    small, large = SMALL[0], Convolutional(channels=4, width=8, blocks=3)
    arena = planned_network(small)
    with arena.run():
        result = large(Planned(arena))
    assert np.array_equal(result, large(Ordinary()))
    assert arena.tally.unknown > 0
    assert arena.tally.planned > 0


def test_networks_run_in_threads() -> None:
    """Each out of its own block, all with the same bits."""
    network = SMALL[2]
    expected, arena, results = network(Ordinary()), planned_network(network), []

    def work() -> None:
        for _ in range(5):
            with arena.run():
                results.append(network(Planned(arena)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 20
    assert all(np.array_equal(result, expected) for result in results)
    assert arena.tally.strays == 0

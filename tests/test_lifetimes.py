"""Lifetimes from events, over loops, to the ends of a run, around regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa import Buffer, InvalidProblemError, Problem, plan
from dsa.lifetimes import (
    Event,
    Repairs,
    extend_over_loops,
    lifetimes_from_events,
    persist,
    region,
    region_offsets,
)
from dsa.testing import problems
from tests.shared import examples

Lives = dict[Any, tuple[int, int]]


def lives(buffers: Sequence[Buffer]) -> Lives:
    """Lifetime of each id."""
    return {buffer.id: (buffer.lower, buffer.upper) for buffer in buffers}


# -- events --------------------------------------------------------------------------------------

EVENTS: dict[str, tuple[list[tuple[Any, ...]], Lives, Repairs]] = {
    "nothing": ([], {}, Repairs()),
    "as it should be": (
        [(0, "alloc", "a", 8), (1, "alloc", "b", 4), (2, "free", "a"), (5, "free", "b", 4)],
        {"a": (0, 2), "b": (1, 5)},
        Repairs(),
    ),
    "entry 58 of CASES": (
        [(1, "free", "X", 512), (2, "alloc", "Y", 256), (3, "alloc", "Z", 128), (4, "free", "Y")],
        {"X": (0, 1), "Y": (2, 4), "Z": (3, 5)},
        Repairs(lost_allocs=("X",), still_live=("Z",)),
    ),
    "an id again is another buffer": (
        [(0, "alloc", "a", 8), (1, "free", "a"), (2, "alloc", "a", 4), (3, "free", "a")],
        {"a": (0, 1), ("a", 2): (2, 3)},
        Repairs(),
    ),
    "allocated again before it was freed: live until then": (
        [(0, "alloc", "a", 8), (3, "alloc", "a", 4), (5, "free", "a")],
        {"a": (0, 3), ("a", 2): (3, 5)},
        Repairs(lost_frees=("a",)),
    ),
    "freed twice, with a size: a buffer since the first free": (
        [(0, "alloc", "a", 8), (2, "free", "a", 8), (5, "free", "a", 4)],
        {"a": (0, 2), ("a", 2): (2, 5)},
        Repairs(lost_allocs=(("a", 2),)),
    ),
    "freed twice, without a size: nothing is known": (
        [(0, "alloc", "a", 8), (2, "free", "a"), (5, "free", "a")],
        {"a": (0, 2)},
        Repairs(ignored=("a",)),
    ),
    "an unread result lives for its own step": (
        [(3, "alloc", "a", 8), (3, "free", "a")],
        {"a": (3, 4)},
        Repairs(),
    ),
    "freed after an alloc in its step: both are live in it": (
        [(0, "alloc", "a", 8), (3, "alloc", "b", 8), (3, "free", "a"), (4, "free", "b")],
        {"a": (0, 4), "b": (3, 4)},
        Repairs(),
    ),
    "freed before an alloc in its step: the bytes are free": (
        [(0, "alloc", "a", 8), (3, "free", "a"), (3, "alloc", "b", 8), (4, "free", "b")],
        {"a": (0, 3), "b": (3, 4)},
        Repairs(),
    ),
    "time stamps in microseconds": (
        [(1_700_000_000_000_000, "alloc", "a", 10), (1_700_000_000_000_500, "free", "a")],
        {"a": (1_700_000_000_000_000, 1_700_000_000_000_500)},
        Repairs(),
    ),
}


@pytest.mark.parametrize("case", EVENTS)
def test_events(case: str) -> None:
    """Lifetimes and repairs are what the case says; the buffers are a problem."""
    events, expected, repairs = EVENTS[case]
    buffers, found = lifetimes_from_events(events)
    assert (lives(buffers), found) == (expected, repairs)
    assert len(Problem(buffers)) == len(expected)


@pytest.mark.parametrize("case", [case for case in EVENTS if EVENTS[case][2].faults])
def test_strict_refuses_lost_events(case: str) -> None:
    """Each kind of loss is an error that says what was lost."""
    events, _, repairs = EVENTS[case]
    with pytest.raises(InvalidProblemError, match="events were lost: 1 ") as caught:
        lifetimes_from_events(events, strict=True)
    assert str(repairs) in str(caught.value)


def test_strict_allows_what_is_still_live() -> None:
    """An output is live when the trace ends; that is no loss."""
    buffers, repairs = lifetimes_from_events([(0, "alloc", "a", 8)], strict=True, end=9)
    assert lives(buffers) == {"a": (0, 9)}
    assert (repairs.faults, str(repairs)) == (0, "1 still live ('a')")


def test_repairs_in_words() -> None:
    """Nothing to repair is said, too."""
    assert str(Repairs()) == "no repairs"
    assert str(Repairs(ignored=(1, 2))) == "2 ignored (1, 2)"


BAD_EVENTS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    r"event 0: expected \(step, kind, id\)": ([3], {}),
    r"event 1: expected \(step, kind, id\)": ([(0, "alloc", "a", 8), (1, "free")], {}),
    r"event 0: \('a', \[\]\) is no id": ([(0, "alloc", ("a", []), 8)], {}),
    "buffer 'a': kind must be 'alloc' or 'free', got 'malloc'": ([(0, "malloc", "a", 8)], {}),
    "buffer 'a': size must be an integer, got None": ([(0, "alloc", "a")], {}),
    "buffer 'a': size must be an integer, got 1.5": ([(0, "free", "a", 1.5)], {}),
    "buffer 'a': size must be at least 0, got -8": ([(0, "alloc", "a", -8)], {}),
    r"event 1: \['a'\] is no id": ([(0, "alloc", "a", 8), (1, "free", ["a"])], {}),
    "buffer 'a': step must be an integer, got 0.5": ([(0.5, "alloc", "a", 8)], {}),
    "buffer 'b': alloc at step 1 comes after step 2: sort": (
        [(2, "alloc", "a", 8), (1, "alloc", "b", 8)], {},
    ),
    "buffer 'a': allocated with size 8 at step 0, freed with size 9 at step 1": (
        [(0, "alloc", "a", 8), (1, "free", "a", 9)], {},
    ),
    "begin is 1, but there is an event at step 0": ([(0, "alloc", "a", 8)], {"begin": 1}),
    "end is 3, but there is an event at step 4": ([(4, "alloc", "a", 8)], {"end": 3}),
}  # fmt: skip


@pytest.mark.parametrize("message", BAD_EVENTS)
def test_bad_events(message: str) -> None:
    """What is no trace is refused, naming the buffer and the value."""
    events, options = BAD_EVENTS[message]
    with pytest.raises(InvalidProblemError, match=message):
        lifetimes_from_events(events, **options)


def traces() -> st.SearchStrategy[list[Event]]:
    """Complete traces in order; several events may have one step."""
    kinds = st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 99)), max_size=30)
    return kinds.map(_trace)


def _trace(choices: list[tuple[int, bool, int]]) -> list[Event]:
    events: list[Event] = []
    live: list[int] = []
    step = 0
    for wait, begins, choice in choices:
        step += wait
        if begins or not live:
            live.append(len(events))
            events.append(Event(step, "alloc", len(events), choice))
        else:
            events.append(Event(step, "free", live.pop(choice % len(live))))
    return events + [Event(step + 1, "free", id) for id in live]


def together(events: list[Event]) -> set[frozenset[Any]]:
    """Pairs of ids that are both allocated after some event."""
    live: set[Any] = set()
    pairs: set[frozenset[Any]] = set()
    for event in events:
        (live.add if event.kind == "alloc" else live.discard)(event.id)
        pairs |= {frozenset({event.id, other}) for other in live - {event.id} if event.id in live}
    return pairs


def overlapping(buffers: Sequence[Buffer]) -> set[frozenset[Any]]:
    """Pairs of ids whose lifetimes meet."""
    return {
        frozenset({a.id, b.id})
        for a in buffers
        for b in buffers
        if a.id != b.id and a.lower < b.upper and b.lower < a.upper
    }


@examples(200)
@given(traces())
def test_what_was_live_together_is(events: list[Event]) -> None:
    """Buffers that existed at the same moment conflict; with a step an event, no others do."""
    buffers, repairs = lifetimes_from_events(events)
    assert repairs == Repairs()
    assert overlapping(buffers) >= together(events)
    numbered = [event._replace(step=step) for step, event in enumerate(events)]
    assert overlapping(lifetimes_from_events(numbered)[0]) == together(events)


@examples(200)
@given(traces(), st.data())
def test_a_lost_event_makes_lifetimes_longer(events: list[Event], data: Any) -> None:
    """Without one of the events, its buffer lives at least as long; the others as they did."""
    sizes = {event.id: event.size for event in events if event.kind == "alloc"}
    events = [event._replace(size=sizes[event.id], step=i) for i, event in enumerate(events)]
    if not events:
        return
    lost = data.draw(st.integers(0, len(events) - 1))
    before = lives(lifetimes_from_events(events)[0])
    buffers, repairs = lifetimes_from_events(
        events[:lost] + events[lost + 1 :], begin=0, end=len(events)
    )
    after = lives(buffers)
    id = events[lost].id
    assert after.keys() == before.keys()
    assert after[id][0] <= before[id][0] < before[id][1] <= after[id][1]
    assert {k: v for k, v in after.items() if k != id} == {
        k: v for k, v in before.items() if k != id
    }
    assert len(repairs.lost_allocs) + len(repairs.still_live) == 1


# -- loops ---------------------------------------------------------------------------------------

LOOPS: dict[str, tuple[tuple[int, int], list[tuple[int, int]], tuple[int, int]]] = {
    "read in the loop": ((0, 4), [(2, 6)], (0, 6)),
    "written in the loop, read afterwards": ((3, 8), [(2, 6)], (2, 8)),
    "within one trip": ((3, 5), [(2, 6)], (3, 5)),
    "as long as the loop": ((2, 6), [(2, 6)], (2, 6)),
    "longer than the loop": ((0, 9), [(2, 6)], (0, 9)),
    "ends where the loop begins": ((0, 2), [(2, 6)], (0, 2)),
    "begins where the loop ends": ((6, 8), [(2, 6)], (6, 8)),
    "the inner loop only": ((2, 5), [(1, 9), (4, 7)], (2, 7)),
    "into the inner loop from outside both": ((0, 5), [(1, 9), (4, 7)], (0, 9)),
    "out of the inner loop, within the outer": ((5, 8), [(4, 7), (1, 9)], (4, 8)),
    "from one loop into the next": ((2, 6), [(1, 4), (5, 8)], (1, 8)),
    "the same loop twice": ((0, 4), [(2, 6), (2, 6)], (0, 6)),
    "no loops": ((0, 4), [], (0, 4)),
}


@pytest.mark.parametrize("case", LOOPS)
def test_loops(case: str) -> None:
    """A lifetime that crosses a loop's boundary is widened over the loop, others stay."""
    (lower, upper), loops, expected = LOOPS[case]
    (buffer,) = extend_over_loops([Buffer(lower, upper, 8, id="x", alignment=4)], loops)
    assert (buffer.lower, buffer.upper) == expected
    assert (buffer.id, buffer.size, buffer.alignment) == ("x", 8, 4)


def test_entry_6_of_cases() -> None:
    """A scratch later in the body cannot take the bytes of what every trip reads."""
    rows = [Buffer(0, 2, 80, id="p"), Buffer(2, 4, 80, id="l")]
    assert plan(rows).peak == 80
    assert plan(extend_over_loops(rows, [(1, 6)])).peak == 160


def test_holes_and_loops() -> None:
    """A hole within the loop stays, one that crosses its boundary is filled."""
    rows = [Buffer(0, 9, 8, holes=[(3, 4), (5, 7)])]
    (buffer,) = extend_over_loops(rows, [(2, 6)])
    assert buffer.holes == ((3, 4),)


@pytest.mark.parametrize(
    ("loops", "message"),
    [
        ([(3, 3)], r"loop \[3, 3\) is empty"),
        ([(0, 4), (2, 6)], r"loops \[0, 4\) and \[2, 6\) overlap"),
        ([(0, 1.5)], "loops must be an integer, got 1.5"),
        ([3], r"a loop is \(begin, end\), steps from and to, got 3"),
        (["36"], "a loop is .* got '36'"),
    ],
)
def test_bad_loops(loops: Any, message: str) -> None:
    """Empty loops, what is no loop, and two of which neither is within the other, are named."""
    with pytest.raises(InvalidProblemError, match=message):
        extend_over_loops([(0, 1, 8)], loops)


@st.composite
def nested(draw: Any) -> list[tuple[int, int]]:
    """Loops, any two of which are disjoint or nested."""
    loops: list[tuple[int, int]] = []
    for a, b in draw(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=6)):
        loop = (min(a, b), max(a, b) + 1)
        if all(
            loop[1] <= x[0] or x[1] <= loop[0] or _within(loop, x) or _within(x, loop)
            for x in loops
        ):
            loops.append(loop)
    return loops


def _within(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return b[0] <= a[0] and a[1] <= b[1]


@examples(200)
@given(problems(), nested(), st.randoms(use_true_random=False))
def test_loops_in_any_order(problem: Problem, loops: list[tuple[int, int]], random: Any) -> None:
    """No boundary is crossed afterwards, once more changes nothing, nor does the loops' order."""
    once = extend_over_loops(list(problem), loops)
    for before, after in zip(problem, once, strict=True):
        assert after.lower <= before.lower < before.upper <= after.upper
        for loop in loops:
            meets = after.lower < loop[1] and loop[0] < after.upper
            steps = after.lower, after.upper
            assert not meets or _within(steps, loop) or _within(loop, steps)
    assert extend_over_loops(once, loops) == once
    random.shuffle(loops)
    assert extend_over_loops(list(problem), loops) == once


# -- inputs and outputs --------------------------------------------------------------------------

RUN = [
    Buffer(0, 1, 40, id="in"),
    Buffer(0, 2, 24, id="t1"),
    Buffer(1, 3, 40, id="t2"),
    Buffer(2, 3, 32, id="out"),
]


def test_entry_8_of_cases() -> None:
    """An input that the next run reads again is live to the end, which costs its 40 bytes."""
    assert plan(RUN).peak == 72
    assert plan(persist(RUN, inputs=["in"], outputs=["in", "out"])).peak == 112


def test_inputs_and_outputs() -> None:
    """Inputs live from the first step, outputs to the last; the rest stays."""
    assert lives(persist(RUN, inputs=["t2"], outputs=["t1"], begin=-2, end=7)) == {
        "in": (0, 1), "t1": (0, 7), "t2": (-2, 3), "out": (2, 3),
    }  # fmt: skip
    assert persist(RUN) == tuple(RUN)
    assert persist([]) == ()
    assert lives(persist([(1, 2, 8), (0, 3, 8)], inputs=[0], outputs=[0])) == {0: (0, 3), 1: (0, 3)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inputs": ["x"]}, "no buffer has the id 'x'"),
        ({"outputs": ["y"]}, "no buffer has the id 'y'"),
        ({"outputs": [["t1"]]}, r"no buffer has the id \['t1'\]"),
        ({"inputs": "t1"}, "inputs must be a list of ids, got 't1'"),
        ({"outputs": None}, "outputs must be a list of ids, got None"),
        (
            {"inputs": ["t1"], "begin": 1},
            r"buffer 't1' is live in \[0, 2\), outside the run \[1, 3\)",
        ),
        (
            {"outputs": ["t2"], "end": 2},
            r"buffer 't2' is live in \[1, 3\), outside the run \[0, 2\)",
        ),
    ],
)
def test_bad_inputs_and_outputs(options: dict[str, Any], message: str) -> None:
    """An unknown id, and a buffer that is live outside the run, are named."""
    with pytest.raises(InvalidProblemError, match=message):
        persist(RUN, **options)


def test_a_problem_is_refused() -> None:
    """Its capacity and constraints would be lost."""
    with pytest.raises(TypeError, match="not a Problem"):
        persist(Problem(RUN))
    with pytest.raises(TypeError, match="not a Problem"):
        extend_over_loops(Problem(RUN), [])


# -- regions -------------------------------------------------------------------------------------


def test_entry_10_of_cases() -> None:
    """The region lies above what is live outside while it runs."""
    inner = plan([Buffer(0, 1, 64, id="inner1")])
    outer = plan([Buffer(0, 5, 128, id="o0", offset=0), region("if", 3, 4, [inner])])
    assert outer.peak == 192
    assert region_offsets(outer, "if", inner) == {"inner1": 128}


def test_arms_share_and_are_aligned() -> None:
    """Room for the largest arm, aligned for all of them."""
    arms = [plan([Buffer(0, 1, 10, alignment=4)]), plan([Buffer(0, 1, 7, alignment=6)]), plan([])]
    assert region("if", 3, 4, arms) == Buffer(3, 4, 10, id="if", alignment=12)
    assert region("if", 3, 4, []).size == 0


@examples(50)
@given(problems(max_buffers=6, alignments=True), problems(max_buffers=6, alignments=True))
def test_a_region_in_a_region(inner: Problem, outer: Problem) -> None:
    """Laid into the outer arena, twice nested, every buffer is aligned and disjoint from others."""
    body = plan(inner)
    middle = plan([Buffer(0, 3, 5, id="m"), region("body", 1, 2, [body])])
    whole = plan([*outer, region("middle", 4, 5, [middle])])
    inside = region_offsets(middle, "body", body, base=whole["middle"])
    outside = region_offsets(whole, "middle", middle)
    assert inside.keys() == set(inner.ids)
    taken = [
        (at, at + row.size) for row, at in whole
        if row.id != "middle" and row.size and row.lower <= 4 < row.upper
    ]  # fmt: skip
    taken.append((outside["m"], outside["m"] + 5))
    for row in inner:
        at = inside[row.id]
        assert at % row.alignment == 0
        assert row.size == 0 or all(at + row.size <= low or high <= at for low, high in taken)


def test_a_region_that_does_not_fit() -> None:
    """Another plan than the one that room was kept for is refused."""
    outer = plan([Buffer(0, 1, 8, id="if")])
    with pytest.raises(
        InvalidProblemError, match="'if' has 8 bytes at 0; the region's plan needs 9"
    ):
        region_offsets(outer, "if", plan([(0, 1, 9)]))
    with pytest.raises(InvalidProblemError, match="at a multiple of 3"):
        region_offsets(outer, "if", plan([Buffer(0, 1, 8, alignment=3)]), base=1)
    with pytest.raises(InvalidProblemError, match="no buffer has the id 'else'"):
        region_offsets(outer, "else", plan([]))

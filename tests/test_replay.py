"""The recorder: events to lifetimes, with what does not fit together repaired and counted."""

from __future__ import annotations

import gzip
import json
import pickle
import threading
from collections.abc import Callable
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsa import FileFormatError, InvalidProblemError, Problem, plan
from dsa.replay import Recorder, Repairs, read_snapshot, read_trace
from dsa.replay.recorder import EARLIER, Event
from dsa.testing import assert_valid
from tests.shared import examples


def rows(problem: Problem) -> dict[Any, tuple[int, int, int]]:
    """Lower, upper and size of each buffer by its id."""
    return {buffer.id: (buffer.lower, buffer.upper, buffer.size) for buffer in problem}


def recorded(text: str) -> Recorder:
    """Events from words: ``+x8`` allocates block x with 8 bytes at site x, ``-x`` frees it."""
    events: list[Event] = []
    for word in text.split():
        block, size = word[1], int(word[2:]) if word[2:] else None
        kind = "alloc" if word[0] == "+" else "free"
        events.append((kind, block, size, block if kind == "alloc" else None))
    return Recorder(events)


# -- what fits together -------------------------------------------------------------------------


def test_a_site_counts_its_allocations() -> None:
    """The id of a buffer is its site and how often that site had allocated before."""
    recorder = Recorder()
    first = recorder.allocate("conv", 8)
    recorder.free(first)
    recorder.free(recorder.allocate("conv", 4))
    assert rows(recorder.problem()) == {("conv", 0): (1, 2, 8), ("conv", 1): (3, 4, 4)}
    assert recorder.repairs == Repairs()


def test_a_block_that_is_used_again_is_another_buffer() -> None:
    """An address has one buffer after the other."""
    recorder = Recorder()
    for site in ("a", "b"):
        recorder.allocate(site, 16, block=4096)
        recorder.free(4096)
    assert set(rows(recorder.problem())) == {("a", 0), ("b", 0)}


@pytest.mark.parametrize("site", ["conv", 7, None, ("file.py", 12), frozenset({1})])
def test_a_site_is_any_hashable(site: Any) -> None:
    """Whatever can be hashed names a site."""
    recorder = Recorder()
    recorder.allocate(site, 8)
    assert recorder.problem().ids == ((site, 0),)


def test_what_is_never_freed_lives_to_the_end() -> None:
    """Survivors are counted, but are no fault."""
    recorder = recorded("+a8 +b8 -b")
    assert rows(recorder.problem(strict=True)) == {("a", 0): (1, 4, 8), ("b", 0): (2, 3, 8)}
    assert recorder.repairs == Repairs(survivors=1)


def test_an_empty_record_is_an_empty_problem() -> None:
    """No events, no buffers, no repairs."""
    assert len(Recorder().problem()) == 0
    assert str(Recorder().repairs) == "no repairs"


def test_a_size_of_0_is_a_buffer() -> None:
    """It conflicts with nothing, and its ordinal counts."""
    recorder = recorded("+a0 -a +a8 -a")
    assert rows(recorder.problem()) == {("a", 0): (1, 2, 0), ("a", 1): (3, 4, 8)}


def test_the_alignment_is_that_of_the_problem() -> None:
    """Every offset of a plan for the record is aligned."""
    problem = recorded("+a3 +b5 +c7").problem(alignment=64)
    assert problem.alignment.tolist() == [64, 64, 64]


# -- what does not ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected", "repairs"),
    [
        ("+a8 +a4 -a", {("a", 0): (1, 2, 8), ("a", 1): (2, 3, 4)}, Repairs(lost_frees=1)),
        ("+a8 -a +b4 -a", {("a", 0): (1, 4, 8), ("b", 0): (3, 5, 4)}, Repairs(0, 1, 0, 0, 1)),
        ("+b4 -a", {("b", 0): (1, 3, 4)}, Repairs(unknown_frees=1, survivors=1)),
        ("-a16 +b4", {(EARLIER, 0): (0, 1, 16), ("b", 0): (2, 3, 4)}, Repairs(0, 0, 1, 0, 1)),
        ("-a16 -a16", {(EARLIER, 0): (0, 2, 16)}, Repairs(0, 1, 1)),
        ("+a8 -a16", {("a", 0): (1, 2, 16)}, Repairs(mismatches=1)),
        ("+a16 -a8", {("a", 0): (1, 2, 16)}, Repairs(mismatches=1)),
        # Two threads recorded in the wrong order: b's free is a's, and the last one is b's.
        ("+a8 +a8 -a +c8 -a", {("a", 0): (1, 2, 8), ("a", 1): (2, 5, 8), ("c", 0): (4, 6, 8)},
         Repairs(1, 1, 0, 0, 1)),
    ],
)  # fmt: skip
def test_faults_are_repaired_and_counted(
    text: str, expected: dict[Any, tuple[int, int, int]], repairs: Repairs
) -> None:
    """Every repair makes a lifetime or a size as large as it may have been."""
    recorder = recorded(text)
    assert rows(recorder.problem()) == expected
    assert recorder.repairs == repairs


def test_a_strict_reading_refuses_faults() -> None:
    """The error counts them."""
    with pytest.raises(InvalidProblemError, match="the record has faults: 1 lost frees"):
        recorded("+a8 +a4 -a").problem(strict=True)


def test_earlier_blocks_can_be_left_out() -> None:
    """A run that is replayed does not allocate what was there before."""
    assert recorded("-a16 +b4").problem(earlier=False).ids == (("b", 0),)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([("alloc", 1, 2.5, "a")], "event 0: its size must be an integer, got 2.5"),
        ([("alloc", 1, None, "a")], "event 0: its size must be an integer, got None"),
        ([("free", 1, "8", None)], "event 0: its size must be an integer, got '8'"),
        ([("alloc", 1, 8, "a"), ("grow", 1, 8, "a")], "event 1: its kind must be 'alloc' or"),
        ([("alloc", 1, -8, "a")], r"buffer \('a', 0\): size must be at least 0, got -8"),
        ([("alloc", 1, True, "a")], "event 0: its size must be an integer, got True"),
        (
            [("alloc", 1, 8)],
            r"event 0: expected \(kind, block, size, site\), got \('alloc', 1, 8\)",
        ),
        ([7], r"event 0: expected \(kind, block, size, site\), got 7"),
        ([("alloc", [1], 8, "a")], r"event 0: its block must be hashable, got \[1\]"),
        ([("free", [1], 8, None)], r"event 0: its block must be hashable, got \[1\]"),
        ([("alloc", 1, 8, ["a"])], r"event 0: its site must be hashable, got \['a'\]"),
    ],
)
def test_what_is_no_event_is_refused(events: list[Any], message: str) -> None:
    """The error names the event, or the buffer, and the value."""
    with pytest.raises(InvalidProblemError, match=message):
        Recorder(events).problem()


def test_a_record_pickles() -> None:
    """Blocks that the recorder named itself are still themselves afterwards."""
    recorder = Recorder()
    recorder.free(recorder.allocate("a", 8))
    copy = pickle.loads(pickle.dumps(recorder))
    assert copy.problem() == recorder.problem()
    assert copy.repairs == Repairs()


streams = st.lists(
    st.one_of(
        st.tuples(
            st.just("alloc"), st.integers(0, 3), st.integers(0, 2**40), st.sampled_from("pq")
        ),
        st.tuples(st.just("free"), st.integers(0, 3), st.none() | st.integers(0, 2**40), st.none()),
    ),
    max_size=30,
)


@examples(300)
@given(streams)
def test_any_stream_of_events_has_a_plan(events: list[Event]) -> None:
    """Lost, doubled, reordered: no crash, every allocation is a buffer, and its life covers it."""
    recorder = Recorder(events)
    problem, repairs = recorder.problem(), recorder.repairs
    assert_valid(plan(problem, "greedy-by-size"))
    allocs = [step for step, event in enumerate(events, start=1) if event[0] == "alloc"]
    lives = sorted(buffer.lower for buffer in problem if buffer.id[0] != EARLIER)  # type: ignore[index]
    assert lives == allocs
    frees = len(events) - len(allocs)
    # Each free ended a buffer or is counted, and each buffer was ended by something.
    ended = frees - repairs.double_frees - repairs.unknown_frees
    assert len(allocs) == ended + repairs.lost_frees + repairs.survivors
    assert Recorder(events).problem() == problem


@examples(300)
@given(streams)
def test_a_life_ends_as_late_as_it_can(events: list[Event]) -> None:
    """By the definition: at the last free before the block is allocated again, or else then."""
    numbered = list(enumerate(events, start=1))
    lives = {buffer.lower: buffer for buffer in Recorder(events).problem(earlier=False)}
    for step, (kind, block, size, site) in numbered:
        if kind == "free":
            continue
        again = [t for t, e in numbered if t > step and e[0] == "alloc" and e[1] == block]
        until = again[0] if again else len(events) + 1
        frees = [(t, e[2]) for t, e in numbered if step < t < until and e[1] == block]
        assert lives[step].upper == (frees[-1][0] if frees else until)
        assert lives[step].size == max([size or 0, *(s for _, s in frees if s is not None)])
        assert lives[step].id[0] == site  # type: ignore[index]


def test_threads_record_into_one_order() -> None:
    """Nothing is lost when many threads allocate and free at once."""
    recorder = Recorder()

    def work(site: int) -> None:
        for _ in range(500):
            recorder.free(recorder.allocate(site, 8))

    threads = [threading.Thread(target=work, args=(site,)) for site in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    problem = recorder.problem(strict=True)
    assert len(problem) == 2000
    assert set(problem.ids) == {(site, n) for site in range(4) for n in range(500)}
    assert problem.load <= 4 * 8


# -- files of PyTorch ---------------------------------------------------------------------------


def snapshot(*words: str) -> dict[str, Any]:
    """A memory snapshot: the events as `recorded` reads them, all at one line of Python."""
    trace = [{"action": "segment_alloc", "addr": 0, "size": 2**20, "frames": []}]
    for _, block, size, site in recorded(" ".join(words)).events:
        frames = [
            {"filename": "??", "line": 0, "name": "at::empty"},
            {"filename": "model.py", "line": 3, "name": str(site)},
        ]
        action = "free_completed" if site is None else "alloc"
        if site is None:
            trace.append({"action": "free_requested", "addr": ord(str(block)), "size": size})
        trace.append({"action": action, "addr": ord(str(block)), "size": size, "frames": frames})
    return {"device_traces": [trace], "segments": []}


def alloc(size: Any) -> dict[str, Any]:
    """An entry of a snapshot."""
    return {"action": "alloc", "addr": 1, "size": size, "frames": []}


def test_a_snapshot_is_read_as_it_happened() -> None:
    """Case 58: what was there before, what ended, what is still live; the site is our own line."""
    recorder = read_snapshot(snapshot("-x512", "+y256", "+z128", "-y256"))
    assert rows(recorder.problem()) == {
        (EARLIER, 0): (0, 1, 512),
        ("model.py:3 y", 0): (2, 4, 256),
        ("model.py:3 z", 0): (3, 5, 128),
    }
    assert recorder.repairs == Repairs(unknown_frees=1, survivors=1)
    assert plan(recorder.problem()).peak == 512


def test_blocks_of_a_snapshot_that_no_event_names_were_there_before() -> None:
    """They live throughout; blocks of other devices and free ones do not count."""
    data = snapshot("+y256")
    blocks = [
        {"size": 64, "state": "active_allocated"},
        {"size": 32, "state": "inactive"},
        {"size": 16, "state": "active_pending_free"},
        {"size": 256, "state": "active_allocated", "address": ord("y")},
    ]
    data["segments"] = [
        {"device": 0, "address": 4096, "blocks": blocks},
        {"device": 1, "address": 8192, "blocks": blocks[:1]},
    ]
    problem = read_snapshot(data).problem()
    assert sorted(buffer.size for buffer in problem if buffer.id[0] == EARLIER) == [16, 64]  # type: ignore[index]
    assert problem.load == 16 + 64 + 256


def test_a_snapshot_is_a_pickle(tmp_path: Path) -> None:
    """The file is read like the data, compressed or not."""
    data, path = snapshot("+y256", "-y"), tmp_path / "snapshot.pickle"
    path.write_bytes(gzip.compress(pickle.dumps(data)))
    assert read_snapshot(path).problem() == read_snapshot(data).problem()


def test_a_snapshot_cannot_run_code() -> None:
    """A pickle that would import something is refused."""
    with pytest.raises(FileFormatError, match="it would import"):
        read_snapshot(BytesIO(pickle.dumps({"device_traces": print})))


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"device_traces": []},
        {"device_traces": [[{"action": "alloc"}]]},
        {"device_traces": 7},
        snapshot("+y8") | {"segments": [{"device": 0, "address": 1, "blocks": [{"size": "8"}]}]},
        *({"device_traces": [[alloc(size)]], "segments": []} for size in (2.5, "8", -8, 2**70)),
    ],
)
def test_what_is_no_snapshot_is_refused(data: dict[str, Any]) -> None:
    """The error says what is missing."""
    with pytest.raises(FileFormatError, match="the snapshot: no memory snapshot: "):
        read_snapshot(data)


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"nonsense", pickle.dumps([1, 2])[:-3], pickle.dumps(7)),
        b"\x80\x04}]\x94a.",  # appends to a dictionary
        b"\x80\x04\x95" + b"\xff" * 8 + b".",  # a frame of 2**64 - 1 bytes
        b"\x80\x04\x8e" + b"\xff" * 7 + b"\x7f.",  # bytes that no memory holds
    ],
)
def test_a_broken_snapshot_is_refused(content: bytes) -> None:
    """Whatever the bytes are, the error says that they are no snapshot."""
    with pytest.raises(FileFormatError, match="no memory snapshot"):
        read_snapshot(BytesIO(content))


def written(*entries: dict[str, Any]) -> bytes:
    """A trace of a profiler, with entries out of order."""
    return json.dumps({"traceEvents": list(reversed(entries))}).encode()


def trace_file(*entries: dict[str, Any]) -> BytesIO:
    """The same as an open file."""
    return BytesIO(written(*entries))


def operator(name: str, ts: float, dur: float, tid: int = 1) -> dict[str, Any]:
    """An operator that runs for some time in a thread."""
    return {"ph": "X", "cat": "cpu_op", "name": name, "ts": ts, "dur": dur, "tid": tid}


def memory(ts: float, size: float, address: Any, device: int = -1, tid: int = 1) -> dict[str, Any]:
    """Bytes allocated, or freed if negative."""
    arguments = {"Addr": address, "Bytes": size, "Device Id": device}
    return {"ph": "i", "name": "[memory]", "ts": ts, "tid": tid, "args": arguments}


def test_a_trace_names_the_operator_that_allocates() -> None:
    """The innermost in the same thread, but not one that does nothing else than allocate."""
    source = trace_file(
        operator("aten::conv2d", 0.5, 10),
        operator("aten::empty", 1, 2),
        memory(1.5, 64, 7),
        operator("aten::relu", 20, 5),
        memory(21, 32, 8),
        memory(22, -64, 7),
        memory(23, 16, 9, tid=2),
        memory(24, 1000, 9, device=0),
    )
    assert rows(read_trace(source).problem()) == {
        ("conv2d", 0): (1, 3, 64),
        ("relu", 0): (2, 5, 32),
        ("python", 0): (4, 5, 16),
    }
    source.seek(0)
    assert read_trace(source, device=0).problem().load == 1000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{}", "no trace of a profiler: KeyError: 'traceEvents'"),
        (b'{"traceEvents": []}', "no memory events of device -1; profile with profile_memory=True"),
        (b"[]", "expected an object"),
        (b'{"traceEvents": [{"name": "[memory]", "ts": 1}]}', "no trace of a profiler"),
        (written(memory(1, 8, [7])), "no trace of a profiler: InvalidProblemError: event 0: its"),
        (written(memory(1, 2.5, 7)), "event 0: its size must be an integer, got 2.5"),
        (written(memory(1, 2**70, 7)), "size must lie between"),
    ],
)
def test_what_is_no_trace_is_refused(content: bytes, message: str) -> None:
    """The error says what is missing."""
    with pytest.raises(FileFormatError) as caught:
        read_trace(BytesIO(content))
    assert message in str(caught.value)


@pytest.mark.parametrize("read", [read_snapshot, read_trace])
def test_a_missing_file_is_an_oserror(read: Callable[[Any], Recorder], tmp_path: Path) -> None:
    """As of any other file."""
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none")


def test_events_of_equal_time_stay_in_order() -> None:
    """Time stamps of microseconds since 1970 cost nothing, and ties keep the file's order."""
    entries = [memory(1.7e15, 64 * (n + 1), n) for n in range(4)]
    source = BytesIO(json.dumps({"traceEvents": entries}).encode())
    sizes = read_trace(source).problem().size.tolist()
    assert all(a < b for a, b in pairwise(sizes))

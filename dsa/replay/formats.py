"""Records in files: PyTorch's memory snapshots, and the traces of its profiler.

Neither needs PyTorch to be read. Both are read as they are written today; what they lack is a
`FileFormatError`.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import IO, Any, TypeAlias

from dsa.errors import FileFormatError
from dsa.io import parse_json, read_bytes, read_text
from dsa.replay.recorder import ALLOC, EARLIER, FREE, Event, Recorder

__all__ = ["read_snapshot", "read_trace"]

File: TypeAlias = "str | os.PathLike[str] | IO[bytes]"

# Operators that only allocate: whoever calls them says more about the site.
_PLAIN = {
    f"aten::{name}"
    for name in ("empty", "empty_strided", "empty_like", "new_empty", "resize_", "zeros")
} | {"aten::zeros_like"}


def read_snapshot(source: File | Mapping[str, Any], device: int = 0) -> Recorder:
    """Read a snapshot of PyTorch's caching allocator.

    Parameters
    ----------
    source
        What ``torch.cuda.memory._dump_snapshot(path)`` wrote after ``_record_memory_history()``,
        or what ``_snapshot()`` returned. A pickle may run code; this reader refuses one that
        holds anything but plain data.
    device
        Index of the device whose events are wanted.

    Returns
    -------
    Recorder
        A site is the innermost line of Python, ``"model.py:12 forward"``. Blocks that are
        allocated although no event names them were there before the record.

    Raises
    ------
    FileFormatError
        If it is no snapshot, or has no such device.

    Examples
    --------
    >>> frames = [{"filename": "model.py", "line": 12, "name": "forward"}]
    >>> events = [{"action": "alloc", "addr": 4096, "size": 512, "frames": frames},
    ...           {"action": "free_completed", "addr": 4096, "size": 512, "frames": []}]
    >>> recorder = read_snapshot({"device_traces": [events], "segments": []})
    >>> recorder.problem()[0]
    Buffer(lower=1, upper=2, size=512, id=('model.py:12 forward', 0), alignment=1, offset=None...)
    """
    file, data = ("the snapshot", source) if isinstance(source, Mapping) else _unpickle(source)
    return _checked(file, "memory snapshot", lambda: _snapshot_events(data, device))


def read_trace(source: File, device: int = -1) -> Recorder:
    """Read a trace of PyTorch's profiler.

    Parameters
    ----------
    source
        What ``export_chrome_trace(path)`` of a profile with ``profile_memory=True`` wrote; perhaps
        compressed with gzip.
    device
        Index of the device whose events are wanted; -1 for the host.

    Returns
    -------
    Recorder
        A site is the innermost operator that does more than allocate, without ``aten::``.

    Raises
    ------
    FileFormatError
        If it is no trace, or one without memory events.
    """
    file, text = read_text(source)
    data = parse_json(file, text)
    recorder = _checked(file, "trace of a profiler", lambda: _trace_events(data, device))
    if not len(recorder):
        raise FileFormatError(
            f"{file}: no memory events of device {device}; profile with profile_memory=True"
        )
    return recorder


def _checked(file: str, what: str, events: Callable[[], Iterable[Event]]) -> Recorder:
    try:
        recorder = Recorder(events())
        recorder.problem()  # what the gate refuses is a fault of the file
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise FileFormatError(f"{file}: no {what}: {type(error).__name__}: {error}") from error
    return recorder


# -- snapshots --------------------------------------------------------------------------------


class _PlainData(pickle.Unpickler):
    """Reads dictionaries, lists, text and numbers, and nothing that could run."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it would import {module}.{name}")


# What the unpickler raises for bytes that are none, some of which claim to be larger than memory.
_UNPICKLABLE = (
    *(pickle.UnpicklingError, EOFError, LookupError, TypeError, ValueError),
    *(AttributeError, OverflowError, MemoryError),
)


def _unpickle(source: File) -> tuple[str, Any]:
    from io import BytesIO

    file, content = read_bytes(source)
    try:
        return file, _PlainData(BytesIO(content)).load()
    except _UNPICKLABLE as error:
        what = f"{type(error).__name__}: {error}"
        raise FileFormatError(f"{file}: no memory snapshot: {what}") from error


def _snapshot_events(data: Any, device: int) -> list[Event]:
    """The events of a device, after those of the blocks that were there before."""
    events: list[Event] = []
    for entry in data["device_traces"][device]:
        address, size = entry["addr"], entry["size"]
        if entry["action"] == "alloc":
            events.append((ALLOC, address, size, _line(entry.get("frames", ()))))
        elif entry["action"] == "free_completed":  # "free_requested" is only the wish
            events.append((FREE, address, size, None))
    named = {address for _, address, _, _ in events}
    before = [
        (ALLOC, address, size, EARLIER)
        for address, size in _allocated(data["segments"], device)
        if address not in named
    ]
    return before + events


def _allocated(segments: Iterable[Any], device: int) -> Iterator[tuple[int, int]]:
    for segment in segments:
        address = segment["address"]
        for block in segment["blocks"]:
            address = block.get("address", address)
            if segment["device"] == device and block["state"].startswith("active"):
                yield address, block["size"]
            address += block["size"]


def _line(frames: Iterable[Mapping[str, Any]]) -> str:
    listed = list(frames)
    ours = [frame for frame in listed if str(frame["filename"]).endswith(".py")] or listed
    return "{filename}:{line} {name}".format_map(ours[0]) if ours else "unknown"


# -- traces of a profiler ---------------------------------------------------------------------


def _trace_events(data: Any, device: int) -> list[Event]:
    """Memory events in order of time, each under the operator that was running in its thread."""
    events: list[Event] = []
    running: dict[Any, list[tuple[float, str]]] = {}  # of each thread: when an operator ends
    for entry in sorted(filter(_is_told, data["traceEvents"]), key=itemgetter("ts")):
        stack = running.setdefault(entry["tid"], [])
        while stack and stack[-1][0] < entry["ts"]:
            stack.pop()
        if entry["name"] != "[memory]":
            stack.append((entry["ts"] + entry["dur"], entry["name"]))
            continue
        block, size = entry["args"]["Addr"], entry["args"]["Bytes"]
        if entry["args"]["Device Id"] != device:
            continue
        if size > 0:
            names = [name for _, name in stack if name not in _PLAIN]
            site = names[-1].removeprefix("aten::") if names else "python"
            events.append((ALLOC, block, size, site))
        elif size < 0:
            events.append((FREE, block, -size, None))
    return events


def _is_told(entry: Mapping[str, Any]) -> bool:
    return entry["name"] == "[memory]" or (
        entry.get("ph") == "X" and entry.get("cat") in ("cpu_op", "user_annotation")
    )

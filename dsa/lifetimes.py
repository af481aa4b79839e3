"""Lifetimes for integrators: from events, over loops, to the ends of a run, around regions.

Pure functions: buffers or events in, buffers out. They know nothing of a framework's graph, only
which steps a value must survive. Closed lifetimes are read by `dsa.Problem.from_closed`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from dsa.errors import InvalidProblemError
from dsa.problem import Buffer, as_integer

__all__ = ["Event", "Repairs", "lifetimes_from_events"]


# -- events ----------------------------------------------------------------------------------


class Event(NamedTuple):
    """One event of a trace; any tuple with these values will do.

    Parameters
    ----------
    step
        When: an operator, a time stamp, or simply the number of the event. Never decreases.
    kind
        ``"alloc"`` or ``"free"``.
    id
        Whose memory. An id that is allocated again after its free is another buffer.
    size
        Bytes. A free may leave it out.

    Examples
    --------
    >>> Event(3, "free", "x")
    Event(step=3, kind='free', id='x', size=None)
    """

    step: int
    kind: str
    id: Hashable
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Repairs:
    """What was missing from a trace; each field holds the ids of the buffers, in time order.

    Parameters
    ----------
    lost_allocs
        Freed, but never allocated: live since the free before of the same id, or since `begin`.
    lost_frees
        Allocated again before they were freed: live until then.
    still_live
        Never freed: live to `end`. At the end of a trace that is no fault.
    ignored
        Freed without a size, and never allocated: nothing is known of them, so they are no
        buffers.

    Examples
    --------
    >>> print(Repairs(lost_allocs=("x", "y"), still_live=("z",)))
    2 lost allocs ('x', 'y'), 1 still live ('z')
    """

    lost_allocs: tuple[Hashable, ...] = ()
    lost_frees: tuple[Hashable, ...] = ()
    still_live: tuple[Hashable, ...] = ()
    ignored: tuple[Hashable, ...] = ()

    @property
    def faults(self) -> int:
        """Events that must have been lost: all but what is still live at the end."""
        return len(self.lost_allocs) + len(self.lost_frees) + len(self.ignored)

    def __str__(self) -> str:
        found = {field.name.replace("_", " "): getattr(self, field.name) for field in fields(self)}
        texts = [
            f"{len(ids)} {name} ({', '.join(map(repr, ids))})" for name, ids in found.items() if ids
        ]
        return ", ".join(texts) or "no repairs"


def lifetimes_from_events(
    events: Iterable[Event | Sequence[Any]],
    *,
    begin: int | None = None,
    end: int | None = None,
    strict: bool = False,
) -> tuple[tuple[Buffer, ...], Repairs]:
    """Turn allocs and frees into buffers; lost events are put where lifetimes are longest.

    ::

        step      0   1   2   3   4   5   6
        event         -X  +Y  +Z  -Y
        X         [===)                          freed at 1, never allocated: since the beginning
        Y                 [=======)
        Z                     [===========)      never freed: to the end

    A lifetime is never shorter than it was. If an alloc comes before a free in the same step, the
    two buffers were live together, so the freed one is still live in that step.

    Parameters
    ----------
    events
        ``(step, kind, id)`` or ``(step, kind, id, size)``: see `Event`.
    begin, end
        First step of the trace and the step after its last; one step before the first event and
        one after the last if None.
    strict
        Refuse a trace that has lost events.

    Returns
    -------
    tuple of Buffer
        In the order of their starts. The second buffer of an id is called ``(id, 2)``, and so on.
    Repairs
        What had to be repaired.

    Raises
    ------
    InvalidProblemError
        If an event is none, the steps decrease, a buffer is freed with another size than it was
        allocated with, or `strict` is set and events were lost.

    Notes
    -----
    O(n log n).

    Examples
    --------
    >>> trace = [(1, "free", "X", 512), (2, "alloc", "Y", 256), (3, "alloc", "Z", 128),
    ...          (4, "free", "Y")]
    >>> buffers, repairs = lifetimes_from_events(trace, begin=0, end=6)
    >>> for b in buffers:
    ...     print(b.id, b.lower, b.upper, b.size)
    X 0 1 512
    Y 2 4 256
    Z 3 6 128
    >>> print(repairs)
    1 lost allocs ('X'), 1 still live ('Z')
    """
    trace = [_event(event, position) for position, event in enumerate(events)]
    if not trace:
        return (), Repairs()
    first, last = trace[0].step, trace[-1].step
    reader = _Reader(first - 1 if begin is None else _within("begin", begin, first, begin <= first))
    for event in trace:
        reader.read(event)
    repairs = reader.finish(last + 1 if end is None else _within("end", end, last, end >= last))
    if strict and repairs.faults:
        raise InvalidProblemError(f"events were lost: {repairs}")
    return tuple(sorted(reader.buffers, key=lambda buffer: buffer.lower)), repairs


class _Reader:
    """What is live after the events read so far."""

    def __init__(self, begin: int) -> None:
        self.buffers: list[Buffer] = []
        self._live: dict[Hashable, Event] = {}
        self._freed: dict[Hashable, int] = {}  # when an id was last freed
        self._count: Counter[Hashable] = Counter()
        self._begin = self._step = begin
        self._allocs = 0  # in the current step
        self._lost_allocs: list[Hashable] = []
        self._lost_frees: list[Hashable] = []
        self._ignored: list[Hashable] = []

    def read(self, event: Event) -> None:
        """End or begin a buffer, or both."""
        self._advance(event)
        alloc = self._live.pop(event.id, None)
        # What was live together with an earlier alloc of this step is still live in the step.
        upper = event.step + (self._allocs > 0)
        if event.kind == "alloc":
            if alloc is not None:
                self._lost_frees.append(self._add(alloc, alloc.step, upper))
            self._live[event.id] = event
            self._allocs += 1
            return
        if alloc is not None:
            _check_size(alloc, event)
            self._add(alloc, alloc.step, upper)
        elif event.size is not None:
            lower = self._freed.get(event.id, self._begin)
            self._lost_allocs.append(self._add(event, lower, upper))
        else:
            self._ignored.append(event.id)
        self._freed[event.id] = event.step

    def finish(self, end: int) -> Repairs:
        """End all that is live."""
        still_live = [self._add(alloc, alloc.step, end) for alloc in self._live.values()]
        found = (self._lost_allocs, self._lost_frees, still_live, self._ignored)
        return Repairs(*map(tuple, found))

    def _advance(self, event: Event) -> None:
        if event.step < self._step:
            raise InvalidProblemError(
                f"buffer {event.id!r}: {event.kind} at step {event.step} comes after step "
                f"{self._step}: sort the events by time",
                id=event.id,
                field="step",
                value=event.step,
            )
        if event.step > self._step:
            self._step, self._allocs = event.step, 0

    def _add(self, event: Event, lower: int, upper: int) -> Hashable:
        """Note a buffer, live for a step at least, and return its id."""
        self._count[event.id] += 1
        count = self._count[event.id]
        id = event.id if count == 1 else (event.id, count)
        assert event.size is not None  # only a free may lack it, and is then ignored
        self.buffers.append(Buffer(lower, max(upper, lower + 1), event.size, id=id))
        return id


def _event(event: Event | Sequence[Any], position: int) -> Event:
    """The event, checked."""
    if not isinstance(event, (tuple, list)) or len(event) not in (3, 4):
        raise InvalidProblemError(
            f"event {position}: expected (step, kind, id) or (step, kind, id, size), got {event!r}",
            value=event,
        )
    step, kind, id, size = Event(*event)
    if kind not in ("alloc", "free"):
        raise InvalidProblemError(
            f"buffer {id!r}: kind must be 'alloc' or 'free', got {kind!r}",
            id=id,
            field="kind",
            value=kind,
        )
    if size is not None or kind == "alloc":
        size = _integer(size, "size", id)
    return Event(_integer(step, "step", id), kind, id, size)


def _integer(value: Any, field: str, id: Hashable) -> int:
    try:
        return as_integer(value)
    except TypeError:
        raise InvalidProblemError(
            f"buffer {id!r}: {field} must be an integer, got {value!r}",
            id=id,
            field=field,
            value=value,
        ) from None


def _check_size(alloc: Event, free: Event) -> None:
    if free.size not in (None, alloc.size):
        raise InvalidProblemError(
            f"buffer {free.id!r}: allocated with size {alloc.size} at step {alloc.step}, freed "
            f"with size {free.size} at step {free.step}",
            id=free.id,
            field="size",
            value=free.size,
        )


def _within(field: str, value: int, event: int, holds: bool) -> int:
    if not holds:
        raise InvalidProblemError(
            f"{field} is {value}, but there is an event at step {event}", field=field, value=value
        )
    return value

"""Lifetimes for integrators: from events, over loops, to the ends of a run, around regions.

Pure functions: buffers or events in, buffers out. They know nothing of a framework's graph, only
which steps a value must survive. Closed lifetimes are read by `dsa.Problem.from_closed`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, NamedTuple, cast

from dsa.errors import InvalidProblemError
from dsa.gate import LIMIT, as_integer, as_natural
from dsa.problem import Buffer, Intervals, Problem
from dsa.result import Plan

__all__ = [
    "Event",
    "Repairs",
    "extend_over_loops",
    "lifetimes_from_events",
    "persist",
    "region",
    "region_offsets",
]


def _read(intervals: Intervals) -> Problem:
    """The buffers, checked."""
    if isinstance(intervals, Problem):
        raise TypeError(
            "give the buffers, not a Problem: its capacity and constraints would be lost"
        )
    return Problem(intervals)


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
    for before, event in pairwise(trace):
        _check_order(before, event)
    first, last = trace[0].step, trace[-1].step
    begin = first - 1 if begin is None else _within("begin", begin, first, begin <= first)
    end = last + 1 if end is None else _within("end", end, last, end >= last)
    lives, freed = Lives(), dict[Hashable, int]()  # freed: when an id last was
    lost_allocs, ignored = list[Life](), list[Hashable]()
    for step, kind, id, size in trace:
        if kind == "alloc":
            lives.allocate(id, cast(int, size), step, site=id)
            continue
        life = lives.free(id, step)
        if life is not None:
            _check_size(id, life, step, size)
        elif size is None:
            ignored.append(id)
        else:
            lost_allocs.append(lives.add(id, size, freed.get(id, begin), site=id))
            lives.free(id, step)
        freed[id] = step
    repairs = Repairs(
        lost_allocs=tuple(map(_name, lost_allocs)),
        lost_frees=tuple(map(_name, lives.lost_frees)),
        still_live=tuple(map(_name, lives.finish(end))),
        ignored=tuple(ignored),
    )
    if strict and repairs.faults:
        raise InvalidProblemError(f"events were lost: {repairs}")
    buffers = (Buffer(x.lower, x.upper, x.size, id=_name(x)) for x in lives.all)
    return tuple(sorted(buffers, key=lambda buffer: buffer.lower)), repairs


@dataclass(slots=True, eq=False)
class Life:
    """A block of memory, from an alloc to its free; at least one step.

    Parameters
    ----------
    site, ordinal
        Who allocated it, and how often the site had allocated before.
    lower, upper, size
        As of a buffer.
    live
        Whether the free has yet to come.
    """

    site: Hashable
    ordinal: int
    lower: int
    upper: int
    size: int
    live: bool = True


class Lives:
    """The lives that allocs and frees in order of time tell of: all events are read here.

    An alloc of a block that is live has lost a free before it. What a free of another block means
    is for the caller to say, who may know of an alloc to `add`, or make the `last` life longer.

    Attributes
    ----------
    all
        In the order in which they were found.
    last
        Of each block.
    lost_frees
        Those that ended because their block was allocated again.
    """

    def __init__(self) -> None:
        self.all: list[Life] = []
        self.last: dict[Hashable, Life] = {}
        self.lost_frees: list[Life] = []
        self._ordinals: Counter[Hashable] = Counter()
        self._allocated: int | None = None  # the step of the last alloc

    def allocate(self, block: Hashable, size: int, step: int, *, site: Hashable) -> None:
        """Begin the life of a block at a step, and end the one it has."""
        lost = self.free(block, step)
        if lost is not None:
            self.lost_frees.append(lost)
        self.add(block, size, step, site=site)
        self._allocated = step

    def free(self, block: Hashable, step: int) -> Life | None:
        """End the life of a block at a step, and return it; None if it has none."""
        life = self.last.get(block)
        if life is None or not life.live:
            return None
        # What was live together with an earlier alloc of this step is still live in the step.
        self._end(life, step + (step == self._allocated))
        return life

    def add(self, block: Hashable, size: int, lower: int, *, site: Hashable) -> Life:
        """Let the life of a block begin at a step that may be past, and return it."""
        life = self.last[block] = Life(site, self._ordinals[site], lower, lower + 1, size)
        self._ordinals[site] += 1
        self.all.append(life)
        return life

    def finish(self, end: int) -> list[Life]:
        """End all that is live, and return it."""
        survivors = [life for life in self.all if life.live]
        for life in survivors:
            self._end(life, end)
        return survivors

    def _end(self, life: Life, upper: int) -> None:
        life.upper, life.live = max(upper, life.lower + 1), False


def _name(life: Life) -> Hashable:
    return (life.site, life.ordinal + 1) if life.ordinal else life.site


def _event(event: Event | Sequence[Any], position: int) -> Event:
    """The event, checked."""
    if not isinstance(event, (tuple, list)) or len(event) not in (3, 4):
        raise InvalidProblemError(
            f"event {position}: expected (step, kind, id) or (step, kind, id, size), got {event!r}",
            value=event,
        )
    step, kind, id, size = Event(*event)
    try:
        hash(id)
    except TypeError:
        raise InvalidProblemError(
            f"event {position}: {id!r} is no id", field="id", value=id
        ) from None
    if kind not in ("alloc", "free"):
        raise InvalidProblemError(
            f"buffer {id!r}: kind must be 'alloc' or 'free', got {kind!r}",
            id=id,
            field="kind",
            value=kind,
        )
    if size is not None or kind == "alloc":
        size = _integer(size, "size", id)
        if size < 0:
            raise InvalidProblemError(
                f"buffer {id!r}: size must be at least 0, got {size}",
                id=id,
                field="size",
                value=size,
            )
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


def _check_order(before: Event, event: Event) -> None:
    if event.step < before.step:
        raise InvalidProblemError(
            f"buffer {event.id!r}: {event.kind} at step {event.step} comes after step "
            f"{before.step}: sort the events by time",
            id=event.id,
            field="step",
            value=event.step,
        )


def _check_size(id: Hashable, life: Life, step: int, size: int | None) -> None:
    if size not in (None, life.size):
        raise InvalidProblemError(
            f"buffer {id!r}: allocated with size {life.size} at step {life.lower}, freed with "
            f"size {size} at step {step}",
            id=id,
            field="size",
            value=size,
        )


def _within(field: str, value: int, event: int, holds: bool) -> int:
    if not holds:
        raise InvalidProblemError(
            f"{field} is {value}, but there is an event at step {event}", field=field, value=value
        )
    return value


# -- loops -----------------------------------------------------------------------------------


def extend_over_loops(intervals: Intervals, loops: Iterable[tuple[int, int]]) -> tuple[Buffer, ...]:
    """Widen every lifetime that crosses the boundary of a loop over the whole loop.

    The body of a loop is numbered once and run many times::

        step       0   1   2   3   4   5   6
        loop               [===============)
        before     [===============)            read in the loop: needed on every trip,
        becomes    [=======================)    so it lives to the loop's end
        after                  [=============)  written on every trip, read afterwards: what
        becomes            [=================)  one trip leaves must survive the next
        within                 [===)            begins and ends in one trip: stays as it is

    A value that is carried from trip to trip must cross a boundary, too: give its buffer the
    lifetime from its first value before the loop, or to its last use after it.

    Parameters
    ----------
    intervals
        Buffers, as for `dsa.Problem`, with lifetimes in the order of the text.
    loops
        Half-open ranges of steps, in any order; two are disjoint, or one is within the other.

    Returns
    -------
    tuple of Buffer
        In the order given. Holes that cross a boundary are gone: their bytes are needed.

    Raises
    ------
    InvalidProblemError
        If the intervals are no problem, a loop is empty, or two loops overlap.

    Notes
    -----
    O(buffers x loops).

    Examples
    --------
    >>> rows = [Buffer(0, 2, 80, id="p"), Buffer(2, 4, 80, id="l")]
    >>> [(b.id, b.lower, b.upper) for b in extend_over_loops(rows, [(1, 6)])]
    [('p', 0, 6), ('l', 2, 4)]
    """
    ranges = list(map(_loop, loops))
    for first in ranges:
        for second in ranges:
            if _crosses(first, second) and _crosses(second, first):
                raise InvalidProblemError(
                    f"loops [{first[0]}, {first[1]}) and [{second[0]}, {second[1]}) overlap, and "
                    "neither is within the other"
                )
    return tuple(_widened(buffer, ranges) for buffer in _read(intervals))


def _loop(loop: Any) -> tuple[int, int]:
    if not isinstance(loop, Sequence) or isinstance(loop, str) or len(loop) != 2:
        raise InvalidProblemError(
            f"a loop is (begin, end), steps from and to, got {loop!r}", field="loops", value=loop
        )
    begin, end = (as_natural(step, "loops", least=1 - LIMIT) for step in loop)
    if begin >= end:
        raise InvalidProblemError(f"loop [{begin}, {end}) is empty", field="loops", value=begin)
    return begin, end


def _crosses(steps: Sequence[int], loop: tuple[int, int]) -> bool:
    """Whether steps meet a loop and are not within it."""
    meets = steps[0] < loop[1] and loop[0] < steps[1]
    return meets and not (loop[0] <= steps[0] and steps[1] <= loop[1])


def _widened(buffer: Buffer, loops: list[tuple[int, int]]) -> Buffer:
    # As no two loops overlap, widening over one never makes a lifetime cross another anew.
    crossed = [loop for loop in loops if _crosses((buffer.lower, buffer.upper), loop)]
    return replace(
        buffer,
        lower=min([buffer.lower, *(loop[0] for loop in crossed)]),
        upper=max([buffer.upper, *(loop[1] for loop in crossed)]),
        holes=tuple(hole for hole in buffer.holes if not any(_crosses(hole, x) for x in loops)),
    )


# -- inputs and outputs ------------------------------------------------------------------------


def persist(
    intervals: Intervals,
    *,
    inputs: Iterable[Hashable] = (),
    outputs: Iterable[Hashable] = (),
    begin: int | None = None,
    end: int | None = None,
) -> tuple[Buffer, ...]:
    """Let inputs live from the first step on, and outputs to the last.

    What must survive the run, such as an input that the next run reads again, or a weight, is
    both.

    Parameters
    ----------
    intervals
        Buffers, as for `dsa.Problem`.
    inputs, outputs
        Ids.
    begin, end
        First step of the run and the step after its last; those of the buffers if None.

    Returns
    -------
    tuple of Buffer
        In the order given.

    Raises
    ------
    InvalidProblemError
        If the intervals are no problem, no buffer has an id, or it is live outside the run.

    Examples
    --------
    >>> rows = [Buffer(0, 1, 40, id="in"), Buffer(0, 2, 24, id="x"), Buffer(2, 3, 32, id="out")]
    >>> [(b.id, b.lower, b.upper) for b in persist(rows, inputs=["in"], outputs=["in", "out"])]
    [('in', 0, 3), ('x', 0, 2), ('out', 2, 3)]
    """
    problem = _read(intervals)
    for field, ids in (("inputs", inputs), ("outputs", outputs)):
        if isinstance(ids, str) or not isinstance(ids, Iterable):
            raise InvalidProblemError(
                f"{field} must be a list of ids, got {ids!r}", field=field, value=ids
            )
    if not len(problem):
        begin = end = 0
    first = int(problem.lower.min()) if begin is None else begin
    last = int(problem.upper.max()) if end is None else end
    buffers = list(problem)
    for id in inputs:
        i = _position(problem, id)
        buffers[i] = replace(buffers[i], lower=first)
    for id in outputs:
        i = _position(problem, id)
        buffers[i] = replace(buffers[i], upper=last)
    for buffer, given in zip(buffers, problem, strict=True):
        if buffer.lower > given.lower or buffer.upper < given.upper:
            raise InvalidProblemError(
                f"buffer {buffer.id!r} is live in [{given.lower}, {given.upper}), outside the run "
                f"[{first}, {last})",
                id=buffer.id,
            )
    return tuple(buffers)


def _position(problem: Problem, id: Hashable) -> int:
    try:
        return problem.index(id)
    except (KeyError, TypeError):  # the second: it is not hashable
        raise InvalidProblemError(f"no buffer has the id {id!r}", id=id, field="id") from None


# -- regions -----------------------------------------------------------------------------------


def region(id: Hashable, lower: int, upper: int, plans: Iterable[Plan]) -> Buffer:
    """A buffer that keeps room for a nested region: the body of a loop, the arms of a branch.

    The region is planned first, by itself. The outer plan sees one buffer, as large as the
    region's peak, that is live while the region runs. So nothing live outside is overwritten from
    within, and the solver chooses where the region lies::

        step     3   4   5
        outer    [a =======)
        region       [===)      as large as the larger arm:
        then         [x )       only one of them runs,
        else         [y z]      so they share the bytes

    Parameters
    ----------
    id
        Of the new buffer.
    lower, upper
        Steps of the outer problem in which the region runs.
    plans
        Of the region's bodies, of which only one runs at a time: one plan for a loop, one for
        each arm of a branch.

    Examples
    --------
    >>> from dsa import plan
    >>> then, otherwise = plan([(0, 2, 64)]), plan([(0, 2, 32), (1, 3, 16)])
    >>> room = region("if", 3, 4, [then, otherwise])
    >>> room.size
    64
    >>> outer = plan([Buffer(0, 5, 128, id="a", offset=0), room])
    >>> region_offsets(outer, "if", otherwise)
    {0: 128, 1: 160}
    """
    bodies = list(plans)
    return Buffer(
        lower,
        upper,
        max((body.peak for body in bodies), default=0),
        id=id,
        alignment=math.lcm(*(body.base_alignment for body in bodies)),
    )


def region_offsets(outer: Plan, id: Hashable, inner: Plan, *, base: int = 0) -> dict[Hashable, int]:
    """Where the buffers of a region lie in the outer arena, by their ids.

    Parameters
    ----------
    outer
        A plan with the buffer that `region` made.
    id
        Of that buffer.
    inner
        A plan that it was made of.
    base
        Where the outer plan begins, if it is itself one of a region.

    Raises
    ------
    InvalidProblemError
        If no buffer has the id, or it is too small or not aligned for the inner plan.

    Examples
    --------
    >>> from dsa import plan
    >>> body = plan([Buffer(0, 1, 8, id="t")])
    >>> loop = plan([Buffer(0, 4, 16, id="sum"), region("body", 2, 4, [body])])
    >>> outer = plan([Buffer(0, 9, 32, id="x"), region("loop", 3, 5, [loop])])
    >>> region_offsets(loop, "body", body, base=outer["loop"])
    {'t': 48}
    """
    room = outer.problem[_position(outer.problem, id)]
    start = base + outer[id]
    if room.size < inner.peak or start % inner.base_alignment:
        raise InvalidProblemError(
            f"buffer {id!r} has {room.size} bytes at {start}; the region's plan needs "
            f"{inner.peak} at a multiple of {inner.base_alignment}",
            id=id,
        )
    return {buffer.id: start + offset for buffer, offset in inner}

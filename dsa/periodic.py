"""Problems that repeat: lifetimes that wrap around the end of a period.

A training step or a decoding loop does the same in every trip. A value that is made late in one
trip and read early in the next is live at both ends of the period, and not between::

    trips            |.........|.........|.........|
    a value               [======)  [======)  [======)
    one period       |==)..[===|    as a buffer: live throughout, with a hole

So a periodic problem needs no rules of its own: with holes its buffers are ordinary ones, and
every solver, bound, validator and file that knows holes knows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dsa.errors import InvalidProblemError
from dsa.gate import as_natural
from dsa.problem import Buffer, Intervals, Problem

__all__ = ["periodic"]


def periodic(intervals: Intervals, period: int, *, unroll: int = 1) -> list[Buffer]:
    """The buffers of something repeated, as buffers of one period.

    What is live in ``[lower, upper)`` is live again in ``[lower + period, upper + period)``, at
    the same offset, and so on. Steps are taken modulo the period, so it does not matter in which
    trip a lifetime is given.

    Parameters
    ----------
    intervals
        Buffers, as `plan` takes them, with alignments, pins and holes; no `Problem`. A lifetime
        may go beyond the end of the period.
    period
        Steps from the beginning of a trip to that of the next.
    unroll
        Trips after which offsets repeat. With more than one, each buffer has an offset for each
        of them, and there is a buffer ``(id, trip)`` for each: what is live for more than one
        period needs it, for two instances of it are live at once.

    Raises
    ------
    InvalidProblemError
        If a buffer is live longer than all unrolled trips take; the message says how many would
        do. Also for an unrolled buffer that is pinned: its instances would be at one offset.

    Examples
    --------
    >>> from dsa import plan
    >>> for buffer in periodic([Buffer(0, 4, 8, id="a"), Buffer(3, 6, 8, id="b")], period=5):
    ...     print(buffer.id, buffer.lower, buffer.upper, buffer.holes)
    a 0 4 ()
    b 0 5 ((1, 3),)

    Two of these three are live at every step; but no two of them can share bytes:

    >>> plan(periodic([(0, 2, 8), (1, 3, 8), (2, 4, 8)], period=3)).peak
    24
    """
    if isinstance(intervals, Problem):
        raise TypeError("give the buffers, not a Problem: its constraints would be lost")
    period = as_natural(period, "period", least=1)
    unroll = as_natural(unroll, "unroll", least=1)
    buffers = []
    for buffer in Problem(intervals):
        trips = -(-(buffer.upper - buffer.lower) // period)
        if trips > unroll:
            raise InvalidProblemError(
                f"buffer {buffer.id!r}: lifetime [{buffer.lower}, {buffer.upper}) is longer than "
                f"{unroll} periods of {period}, so {trips} instances of it are live at once, "
                f"which cannot be at {unroll} offsets; give unroll={trips}",
                id=buffer.id,
                field="upper",
                value=buffer.upper,
            )
        if unroll == 1:
            buffers.append(_wrapped(buffer, 0, period))
            continue
        if buffer.offset is not None:
            raise InvalidProblemError(
                f"buffer {buffer.id!r}: pinned to offset {buffer.offset}, but unroll={unroll} "
                "asks for an offset for each trip; unroll the buffers yourself and pin each",
                id=buffer.id,
                field="offset",
                value=buffer.offset,
            )
        for trip in range(unroll):
            named = replace(buffer, id=(buffer.id, trip))
            buffers.append(_wrapped(named, trip * period, unroll * period))
    return buffers


def _wrapped(buffer: Buffer, later: int, period: int) -> Buffer:
    """The buffer, so many steps later, in one period: whole, or at both ends with a hole."""
    lower = (buffer.lower + later) % period
    upper = lower + buffer.upper - buffer.lower
    holes = []
    for first, last, *window in buffer.holes:
        shift = lower - buffer.lower
        holes += [(*span, *window) for span in _spans(first + shift, last + shift, period)]
    if upper > period:
        if upper - period < lower:
            holes.append((upper - period, lower))
        lower, upper = 0, period
    return replace(buffer, lower=lower, upper=upper, holes=tuple(sorted(holes)))


def _spans(first: int, last: int, period: int) -> Iterator[tuple[int, int]]:
    """Steps ``[first, last)`` in one period: one span, or two at its ends."""
    if last <= period:
        yield first, last
    elif first >= period:
        yield first - period, last - period
    else:
        yield first, period
        yield 0, last - period

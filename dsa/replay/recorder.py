"""The recorder: allocations and frees of a run, read as lifetimes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, NoReturn, TypeAlias, cast

from dsa.errors import InvalidProblemError
from dsa.gate import as_integer
from dsa.lifetimes import Life, Lives
from dsa.problem import Problem

__all__ = ["EARLIER", "Event", "Recorder", "Repairs"]

Event: TypeAlias = tuple[str, Hashable, "int | None", Hashable]  # kind, block, size, site
ALLOC, FREE = "alloc", "free"

EARLIER = "before the record"  # the site of blocks that were there when it began


@dataclass(frozen=True, slots=True)
class Repairs:
    """How many events of a record did not fit together, and how it was read all the same.

    Every repair makes a lifetime longer, never shorter: a plan for the repaired record holds for
    the run.

    Parameters
    ----------
    lost_frees
        Blocks allocated again before they were freed: live until then.
    double_frees
        Frees of a block that is free already: it is taken to be live up to the last of them.
    unknown_frees
        Frees of blocks that the record did not see allocated. They were there before: live from
        the beginning, if the free says how large they are; otherwise nothing is known of them.
    mismatches
        Frees with another size than the block was allocated with: the larger one counts.
    survivors
        Blocks never freed: live to the end. That is no fault.

    Examples
    --------
    >>> print(Repairs(lost_frees=1, survivors=3))
    1 lost frees, 3 survivors
    """

    lost_frees: int = 0
    double_frees: int = 0
    unknown_frees: int = 0
    mismatches: int = 0
    survivors: int = 0

    @property
    def faults(self) -> int:
        """Events that did not fit: all but the survivors."""
        return self.lost_frees + self.double_frees + self.unknown_frees + self.mismatches

    def __str__(self) -> str:
        counts = {field.name.replace("_", " "): getattr(self, field.name) for field in fields(self)}
        return ", ".join(f"{n} {name}" for name, n in counts.items() if n) or "no repairs"


class Recorder:
    """Allocations and frees of one run, in the order in which they happen.

    Recording appends a tuple to a list, which is safe from any number of threads. Record an
    allocation after it is made and a free before it is done; then no thread can be recorded to get
    a block that another still has.

    Parameters
    ----------
    events
        Recorded elsewhere: ``("alloc", block, size, site)`` and ``("free", block, size, None)``,
        in which the size of a free may be None.

    Attributes
    ----------
    events
        All so far.

    Examples
    --------
    >>> recorder = Recorder()
    >>> x = recorder.allocate("conv", 64)
    >>> y = recorder.allocate("relu", 64)
    >>> recorder.free(x)
    >>> z = recorder.allocate("conv", 32)
    >>> for buffer in recorder.problem():
    ...     print(buffer.id, buffer.lower, buffer.upper, buffer.size)
    ('conv', 0) 1 3 64
    ('relu', 0) 2 5 64
    ('conv', 1) 4 5 32
    >>> print(recorder.repairs)
    2 survivors
    """

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.events: list[Event] = list(events)

    def __len__(self) -> int:
        return len(self.events)

    def __repr__(self) -> str:
        return f"<Recorder: {len(self)} events>"

    def allocate(self, site: Hashable, size: int, block: Hashable = None) -> Hashable:
        """Record an allocation and return its block.

        Parameters
        ----------
        site
            Who allocates: the name of an operator, a place in the code.
        size
            Bytes.
        block
            What names the memory until it is freed, such as its address; something new if None.
        """
        if block is None:
            block = object()
        self.events.append((ALLOC, block, size, site))
        return block

    def free(self, block: Hashable, size: int | None = None) -> None:
        """Record a free; the size helps where the allocation was not recorded."""
        self.events.append((FREE, block, size, None))

    def problem(self, *, alignment: int = 1, earlier: bool = True, strict: bool = False) -> Problem:
        """The buffers of the run, each under the id ``(site, ordinal)``.

        The ordinal counts the allocations of a site from 0. Steps count the events from 1; step 0
        is before the record.

        Parameters
        ----------
        alignment
            Of every offset.
        earlier
            Whether blocks that were there before are buffers, too. A run that is replayed does
            not allocate them.
        strict
            Refuse a record that has faults.

        Raises
        ------
        InvalidProblemError
            If a size is none, an event is of no known kind, or `strict` is set and there are
            faults.
        """
        lives, repairs = self._read()
        if strict and repairs.faults:
            raise InvalidProblemError(f"the record has faults: {repairs}")
        kept = sorted(
            (life for life in lives if earlier or life.site != EARLIER),
            key=lambda life: life.lower,
        )
        problem = Problem.from_columns(
            [life.lower for life in kept],
            [life.upper for life in kept],
            [life.size for life in kept],
            ids=[(life.site, life.ordinal) for life in kept],
        )
        return Problem(problem, alignment=alignment)

    @property
    def repairs(self) -> Repairs:
        """What did not fit together in the record."""
        return self._read()[1]

    def _read(self) -> tuple[list[Life], Repairs]:
        """All lives, and what was repaired: O(n)."""
        lives, counts, step = Lives(), Counter[str](), 0
        for step, event in enumerate(list(self.events), start=1):
            kind, block, size, site = _checked(event, step - 1)
            if kind == ALLOC:
                lives.allocate(block, cast(int, size), step, site=site)
            else:
                counts.update(_free(lives, block, size, step))
        survivors = len(lives.finish(step + 1))
        return lives.all, Repairs(len(lives.lost_frees), **counts, survivors=survivors)


def _free(lives: Lives, block: Hashable, size: int | None, step: int) -> Iterator[str]:
    """End a life, and say what did not fit."""
    if block not in lives.last:
        yield "unknown_frees"
        if size is None:
            return
        lives.add(block, size, 0, site=EARLIER)
    life = lives.last[block]
    if lives.free(block, step) is None:
        yield "double_frees"
        life.upper = step
    if size not in (None, life.size):
        yield "mismatches"
        life.size = max(size, life.size)


def _checked(event: Any, position: int) -> Event:
    """The event, if it is one."""
    if not isinstance(event, (tuple, list)) or len(event) != 4:
        raise InvalidProblemError(
            f"event {position}: expected (kind, block, size, site), got {event!r}", value=event
        )
    kind, block, size, site = event

    def refuse(field: str, what: str, value: Any) -> NoReturn:
        raise InvalidProblemError(
            f"event {position}: its {field} must be {what}, got {value!r}", field=field, value=value
        )

    if kind not in (ALLOC, FREE):
        refuse("kind", f"{ALLOC!r} or {FREE!r}", kind)
    for field, value in (("block", block), ("site", site)):
        try:
            hash(value)
        except TypeError:
            refuse(field, "hashable", value)
    try:
        size = None if size is None and kind == FREE else as_integer(size)
    except TypeError:
        refuse("size", "an integer", size)
    return kind, block, size, site

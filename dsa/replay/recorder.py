"""The recorder: allocations and frees of a run, read as lifetimes."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from dsa.errors import InvalidProblemError
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
        lives = _Lives.read(self.events)
        if strict and lives.repairs().faults:
            raise InvalidProblemError(f"the record has faults: {lives.repairs()}")
        kept = [i for i, (site, _) in enumerate(lives.ids) if earlier or site != EARLIER]
        kept.sort(key=lives.lower.__getitem__)
        columns = (lives.lower, lives.upper, lives.size)
        problem = Problem.from_columns(
            *([column[i] for i in kept] for column in columns), ids=[lives.ids[i] for i in kept]
        )
        return Problem(problem, alignment=alignment)

    @property
    def repairs(self) -> Repairs:
        """What did not fit together in the record."""
        return _Lives.read(self.events).repairs()


class _Lives:
    """Lifetimes by the events read so far, as columns."""

    def __init__(self) -> None:
        self.lower: list[int] = []
        self.upper: list[int] = []
        self.size: list[int] = []
        self.ids: list[tuple[Hashable, int]] = []
        self._last: dict[Hashable, int] = {}  # the buffer that had a block last
        self._live: set[Hashable] = set()
        self._ordinals: Counter[Hashable] = Counter()
        self._counts: Counter[str] = Counter()

    @classmethod
    def read(cls, events: Iterable[Event]) -> _Lives:
        """Read a whole record: O(n)."""
        lives, step = cls(), 0
        for step, (kind, block, size, site) in enumerate(list(events), start=1):
            if kind == ALLOC:
                lives._begin(block, size, site, step)
            elif kind == FREE:
                lives._end(block, size, step)
            else:
                raise InvalidProblemError(
                    f"event {step - 1}: its kind must be {ALLOC!r} or {FREE!r}, got {kind!r}",
                    field="kind",
                    value=kind,
                )
        for block in lives._live:
            lives.upper[lives._last[block]] = step + 1
        return lives

    def repairs(self) -> Repairs:
        """The counts."""
        return Repairs(**self._counts, survivors=len(self._live))

    def _begin(self, block: Hashable, size: int | None, site: Hashable, step: int) -> None:
        if block in self._live:
            self._counts["lost_frees"] += 1
            self.upper[self._last[block]] = step
        self._live.add(block)
        self._add(block, _bytes(size, step), site, step)

    def _end(self, block: Hashable, size: int | None, step: int) -> None:
        size = None if size is None else _bytes(size, step)
        if block in self._last:
            i = self._last[block]
            if block not in self._live:
                self._counts["double_frees"] += 1
            if size is not None and size != self.size[i]:
                self._counts["mismatches"] += 1
                self.size[i] = max(size, self.size[i])
            self.upper[i] = step
        else:
            self._counts["unknown_frees"] += 1
            if size is not None:
                self._add(block, size, EARLIER, 0)
                self.upper[-1] = step
        self._live.discard(block)

    def _add(self, block: Hashable, size: int, site: Hashable, lower: int) -> None:
        self._last[block] = len(self.ids)
        self.ids.append((site, self._ordinals[site]))
        self._ordinals[site] += 1
        self.lower.append(lower)
        self.upper.append(lower + 1)
        self.size.append(size)


def _bytes(size: Any, step: int) -> int:
    try:
        return operator.index(size)
    except TypeError:
        raise InvalidProblemError(
            f"event {step - 1}: its size must be an integer, got {size!r}",
            field="size",
            value=size,
        ) from None

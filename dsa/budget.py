"""What a solver may spend, and how it says how far it got."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from dsa.errors import InvalidProblemError

__all__ = ["Budget", "Progress", "check_seconds"]


@dataclass(frozen=True, slots=True)
class Progress:
    """What a progress callback gets.

    Parameters
    ----------
    seconds
        Since the call of `plan()`.
    peak
        Lowest peak so far of the part being solved, in the caller's bytes.
    target
        Peak at which the search will stop.
    """

    seconds: float
    peak: int
    target: int


@dataclass(frozen=True, slots=True)
class Budget:
    """Deadline, target and progress of one call: the only clock a solver looks at.

    Parameters
    ----------
    target
        Peak that is good enough: a solver stops as soon as it has a plan this low.
    time_limit
        Seconds from now; None for no limit. A solver that has only one pass to make makes it
        whatever the limit.
    progress
        Called with a `Progress` whenever a better plan is found.
    unit, base
        Bytes in one unit of `target` and bytes below 0, for problems that were reduced.

    Examples
    --------
    >>> budget = Budget(target=12)
    >>> budget.done(peak=16), budget.done(peak=12), budget.remaining()
    (False, True, inf)
    """

    target: int = 0
    time_limit: float | None = None
    progress: Callable[[Progress], None] | None = None
    unit: int = 1
    base: int = 0
    started: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if self.time_limit is not None:
            check_seconds("time_limit", self.time_limit)

    def seconds(self) -> float:
        """Seconds since the budget was made."""
        return time.monotonic() - self.started

    def remaining(self) -> float:
        """Seconds left, at least 0; infinity without a limit."""
        return float("inf") if self.time_limit is None else max(self.time_limit - self.seconds(), 0)

    def expired(self) -> bool:
        """Whether the time is up."""
        return self.remaining() <= 0

    def done(self, peak: int) -> bool:
        """Whether a solver whose best plan has this peak should stop."""
        return peak <= self.target or self.expired()

    def report(self, peak: int) -> None:
        """Tell the progress callback of a better plan."""
        if self.progress is not None:
            peak, target = (self.base + value * self.unit for value in (peak, self.target))
            self.progress(Progress(self.seconds(), peak, target))

    def limited(self, seconds: float) -> Budget:
        """The same budget, but with at most this many seconds from now."""
        check_seconds("seconds", seconds)
        return replace(self, time_limit=self.seconds() + min(self.remaining(), seconds))

    def aimed(self, target: int, unit: int = 1, base: int = 0) -> Budget:
        """The same deadline with another target, in units of so many of ours, above a base."""
        base = self.base + base * self.unit
        return replace(self, target=target, unit=self.unit * unit, base=base)


def check_seconds(name: str, value: object) -> None:
    """Refuse what is no number of seconds: NaN, negative, a bool, no number at all.

    Raises
    ------
    InvalidProblemError
        Naming the argument and its value.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise InvalidProblemError(
            f"{name} must be a number of seconds, at least 0, got {value!r}",
            field=name,
            value=value,
        )

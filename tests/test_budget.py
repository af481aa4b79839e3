"""Budgets: deadline, target, units and progress."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dsa.budget import Budget, Progress


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still until its first entry is changed."""
    now = [100.0]
    monkeypatch.setattr("dsa.budget.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def started(**options: Any) -> Budget:
    """A budget that was made when the clock stood at 100."""
    return Budget(**options, started=100.0)


def test_time_runs_out(clock: list[float]) -> None:
    """Seconds are counted from the start, and what remains is never negative."""
    budget = started(time_limit=3)
    assert (budget.seconds(), budget.remaining(), budget.expired()) == (0, 3, False)
    clock[0] += 2
    assert (budget.seconds(), budget.remaining(), budget.expired()) == (2, 1, False)
    clock[0] += 2
    assert (budget.seconds(), budget.remaining(), budget.expired()) == (4, 0, True)


def test_without_a_limit_time_never_runs_out(clock: list[float]) -> None:
    """No limit leaves infinitely much."""
    budget = started()
    clock[0] += 10**9
    assert (budget.remaining(), budget.expired()) == (float("inf"), False)


def test_done_at_the_target_or_when_time_is_up(clock: list[float]) -> None:
    """A peak at or below the target ends a search, and so does the deadline."""
    budget = started(target=12, time_limit=1)
    assert [budget.done(peak) for peak in (13, 12, 11)] == [False, True, True]
    clock[0] += 1
    assert budget.done(13)


def test_a_share_ends_no_later_than_the_whole(clock: list[float]) -> None:
    """`limited` counts from now, and never beyond the deadline."""
    budget = started(time_limit=10)
    clock[0] += 4
    assert budget.limited(2).remaining() == 2
    assert budget.limited(60).remaining() == 6
    assert started().limited(2).remaining() == 2
    share = budget.limited(2)
    clock[0] += 3
    assert (share.expired(), budget.expired()) == (True, False)
    assert share.limited(60).remaining() == 0


def test_reports_are_in_the_callers_bytes(clock: list[float]) -> None:
    """Units and bases of reductions in reductions are undone for the progress callback."""
    told: list[Progress] = []
    budget = started(target=100, progress=told.append)
    inner = budget.aimed(9, unit=8, base=20).aimed(3, unit=2, base=1)
    clock[0] += 5
    budget.report(120)
    inner.report(4)
    assert told == [
        Progress(5, 120, 100),
        Progress(5, 20 + 8 * (1 + 2 * 4), 20 + 8 * (1 + 2 * 3)),
    ]
    Budget().report(7)  # nobody listens


@pytest.mark.parametrize("limit", [-1, -0.001, float("nan"), True, "1", [1]])
def test_bad_limits_are_refused(limit: Any) -> None:
    """A limit is a number of seconds, at least 0."""
    with pytest.raises(ValueError, match="time_limit must be a number of seconds, at least 0"):
        Budget(time_limit=limit)


@pytest.mark.parametrize("limit", [None, 0, 0.5, 10**9, float("inf")])
def test_good_limits_are_accepted(limit: Any) -> None:
    """Also none at all."""
    assert Budget(time_limit=limit).time_limit == limit

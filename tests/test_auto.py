"""`auto` in a crowd: what runs when, and that nothing found is lost."""

from __future__ import annotations

import pytest

from dsa import plan
from dsa.bench.generators import FAMILIES
from dsa.solvers import auto
from dsa.testing import assert_valid


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few hundred buffers count as many."""
    monkeypatch.setattr(auto, "MANY", 100)


@pytest.mark.usefixtures("crowd")
@pytest.mark.parametrize("family", ["pipeline", "random", "packing", "pinned", "aligned"])
def test_a_crowd_loses_nothing(family: str) -> None:
    """No solver that has run has a lower peak alone."""
    problem = FAMILIES[family](400, 3)
    found = plan(problem, time_limit=1)
    alone = [
        plan(problem, "strip-packing", restarts=0, moves=0),
        plan(problem, "linear-scan"),
    ]
    assert found.peak <= min(p.peak for p in alone)


@pytest.mark.usefixtures("crowd")
def test_a_crowd_in_a_pipeline_is_scanned() -> None:
    """The plan of `linear-scan` is found, and found before the other orders are tried."""
    problem = FAMILIES["pipeline"](2000, 0)
    peaks: list[int] = []
    plan(problem, time_limit=2, progress=lambda progress: peaks.append(progress.peak))
    first = plan(problem, "strip-packing", orders=("area",), mirrored=False, restarts=0)
    assert peaks[:2] == [first.peak, plan(problem, "linear-scan").peak]


@pytest.mark.usefixtures("crowd")
def test_a_crowd_in_no_time() -> None:
    """The first order is filled whatever the time limit; no search is set up."""
    problem = FAMILIES["random"](400, 3)
    found = plan(problem, time_limit=0)
    assert_valid(found.offsets, problem)
    assert found.stats == {"found_by": "strip-packing", "passes": 1}

"""Peers: their conventions, and that what they answer meets our validator.

The libraries are tested where they are installed; the programs by stand-ins that speak the same
language.
"""

from __future__ import annotations

import stat
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from dsa import Problem, plan, solvers
from dsa.bench.peers import (
    PEERS,
    ClaimedPeakError,
    Idealloc,
    MiniMalloc,
    NoPlanError,
    OmniMalloc,
    OrTools,
    Vela,
    introduce,
)
from dsa.errors import SolverError, SolverUnavailableError, UnsupportedError
from dsa.solvers import Solver, missing_packages
from dsa.testing import assert_valid

# Sizes of 0, lifetimes that touch, a step far away, and a least peak of 110.
ROWS = [(0, 2, 60), (1, 3, 50), (2, 10**12, 60), (5, 6, 0), (10**11, 10**12, 30)]

# Speaks the protocol of google/minimalloc: options, a CSV file in, a CSV file with offsets out.
# It stacks the buffers, so it says "no" to a capacity below their sum.
STACKING = """#!{python}
import csv, sys
given = dict(word[2:].split("=") for word in sys.argv[1:])
assert given["timeout"].endswith(("s", "inf")), given
with open(given["input"]) as file:
    rows = list(csv.DictReader(file))
assert all(int(row["size"]) > 0 for row in rows)
top = 0
for row in rows:
    row["offset"], top = top, top + int(row["size"])
if top > int(given["capacity"]):
    sys.exit(1)
with open(given["output"], "w") as file:
    writer = csv.DictWriter(file, rows[0])
    writer.writeheader()
    writer.writerows(rows)
"""

# Speaks that of cappadokes/idealloc.
TALKING = """#!{python}
import sys
assert sys.argv[3] == "in-ex-csv" and sys.argv[1].startswith("--input="), sys.argv
print("Total allocation time: 7 us")
print("Makespan:\\t130 bytes\\nLOAD:\\t\\t110 bytes\\nFragmentation:\\t 18.18%")
"""


def program(folder: Path, text: str) -> str:
    """A program made of a script."""
    path = folder / "program"
    path.write_text(text.format(python=sys.executable))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def needs(solver: Solver) -> Solver:
    """The solver, if what it requires is installed."""
    if missing_packages(solver):
        pytest.skip(f"{type(solver).__name__} needs {', '.join(solver.requires)}")
    return solver


LIBRARIES = [
    OmniMalloc(),
    OmniMalloc("supermalloc"),
    OmniMalloc("best_fit"),
    OrTools(),
    OrTools("sections"),
    Vela(),
    Vela(search=False),
]
each_library = pytest.mark.parametrize("peer", LIBRARIES, ids=repr)


@each_library
def test_lifetimes_are_half_open_for_every_peer(peer: Solver) -> None:
    """Buffers that touch share bytes; sizes of 0 and long steps do not matter."""
    result = plan(ROWS, needs(peer), time_limit=10)
    assert_valid(result)
    assert result.peak == 110


@each_library
def test_an_alignment_that_all_share_is_kept(peer: Solver) -> None:
    """By peers that know none, too: it is their unit."""
    result = plan(ROWS, needs(peer), alignment=32, time_limit=10)
    assert_valid(result)
    assert result.peak <= 64 + 64 + 60


def test_pins_are_kept_or_refused() -> None:
    """By those of omnimalloc that can, and by CP-SAT."""
    pinned = Problem.from_columns([0, 0], [2, 2], [8, 8], offset=[8, None])
    for peer in (needs(OmniMalloc()), needs(OrTools()), needs(OrTools("sections"))):
        assert plan(pinned, peer, time_limit=10).offsets == (8, 0)
    with pytest.raises(UnsupportedError, match="pins"):
        plan(pinned, OmniMalloc("supermalloc"))


def test_different_alignments_are_kept_or_refused() -> None:
    """Refused by those who know none, rather than planned wrongly."""
    mixed = Problem.from_columns([0, 0], [2, 2], [8, 8], alignment=[8, 64])
    with pytest.raises(UnsupportedError, match="different"):
        plan(mixed, needs(OmniMalloc()))
    for peer in (needs(OrTools()), needs(OrTools("sections")), needs(Vela())):
        assert_valid(plan(mixed, peer, time_limit=10))


def test_an_unknown_model_is_refused() -> None:
    """With those that there are."""
    with pytest.raises(ValueError, match="'2d' or 'sections', got '3d'"):
        OrTools("3d")


@pytest.mark.skipif(find_spec("rectpack") is None, reason="Rectpack needs rectpack")
def test_a_packer_that_moves_buffers_in_time_gives_no_plan() -> None:
    """The validator says so."""
    with pytest.raises(SolverError, match="overlap"):
        plan([(0, 1, 60), (0, 1, 50), (1, 2, 50)], "rectpack")


@pytest.fixture(autouse=True)
def introduced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers are known by name, during a test."""
    monkeypatch.setattr(solvers, "_registered", {})
    introduce()


def test_peers_are_known_by_name() -> None:
    """Each name leads to a class, and introducing them twice is no mistake."""
    introduce()
    for name in PEERS:
        assert solvers.solver_class(name).__module__ == "dsa.bench.peers"


# -- programs -----------------------------------------------------------------------------------


def test_minimalloc_is_asked_for_more_until_it_answers(tmp_path: Path) -> None:
    """Its plan is read from its file; sizes of 0 are not shown to it."""
    path = program(tmp_path, STACKING)
    rows = [(0, 2, 60), (1, 3, 50), (3, 4, 20), (3, 4, 0)]
    result = plan(rows, MiniMalloc(path), time_limit=10)
    assert_valid(result)
    assert result.offsets == (0, 60, 110, 0)


def test_minimalloc_may_find_nothing(tmp_path: Path) -> None:
    """Which is not to say that there is nothing."""
    path = program(tmp_path, STACKING)
    with pytest.raises(NoPlanError, match="up to twice the load"):
        plan([(i, i + 1, 8) for i in range(5)], MiniMalloc(path), time_limit=10)


def test_idealloc_names_a_peak_only(tmp_path: Path) -> None:
    """What could not be validated is told apart from what was."""
    with pytest.raises(ClaimedPeakError) as caught:
        plan(ROWS, Idealloc(program(tmp_path, TALKING), lives=3))
    assert caught.value.peak == 130


def test_idealloc_may_say_something_else(tmp_path: Path) -> None:
    """Then that is what is told."""
    path = program(tmp_path, "#!/bin/sh\necho thread main panicked")
    with pytest.raises(NoPlanError, match="panicked"):
        plan(ROWS, Idealloc(path))


@pytest.mark.parametrize("peer", [MiniMalloc("/nowhere"), Idealloc("/nowhere")])
def test_a_program_that_is_not_there_is_unavailable(peer: Solver) -> None:
    """With its path."""
    with pytest.raises(SolverUnavailableError, match="/nowhere cannot be started"):
        plan(ROWS, peer)


@pytest.mark.parametrize("peer", [MiniMalloc, Idealloc])
def test_a_program_that_dies_gives_no_plan(tmp_path: Path, peer: type[MiniMalloc]) -> None:
    """Its signal is told."""
    with pytest.raises(NoPlanError, match="signal 9"):
        plan(ROWS, peer(program(tmp_path, "#!/bin/sh\nkill -9 $$")))

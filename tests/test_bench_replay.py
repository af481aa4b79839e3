"""The benchmark of planned runs, on small inputs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dsa import DsaError
from dsa.bench import replay
from dsa.bench.replay import _events, _found, main
from dsa.problem import Problem

linux = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="peaks of memory are read from /proc"
)
QUICK = ["--rounds", "1", "--runs", "2", "--threads", "1", "2"]


@linux
def test_it_compares_a_network_with_and_without_arena(capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each memory and number of threads; the plan's bytes count for each thread."""
    names = ["--models", "transformer", "--memories", "ordinary", "arena"]
    assert main(["--kinds", "numpy", *names, *QUICK]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    table = {(row[1], row[2]): row for row in rows if row[0] == "transformer"}
    assert set(table) == {(m, t) for m in ("ordinary", "arena") for t in ("1", "2")}
    assert [table["arena", t][-1] for t in "12"] == ["0.8", "1.5"]
    for row in table.values():
        assert 0 < float(row[3]) <= float(row[4])
        assert float(row[7]) == pytest.approx(
            float(row[5]) / float(table["arena", row[2]][5]), abs=0.01
        )
    assert "Command: `dsa bench replay --kinds numpy" in "\n".join(lines)


@linux
def test_an_unknown_memory_is_refused() -> None:
    """The error lists those that are there."""
    with pytest.raises(DsaError, match="no allocator 'magic' on this machine; found"):
        main(["--kinds", "numpy", "--models", "branches", "--memories", "magic", *QUICK])


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--threads", "0", "it must be at least 1, got 0"),
        ("--runs", "-1", "it must be at least 1, got -1"),
        ("--rounds", "0", "it must be at least 1, got 0"),
        ("--models", "lenet", "invalid choice: 'lenet'"),
    ],
)
def test_options_that_measure_nothing_are_refused(
    option: str, value: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything runs."""
    with pytest.raises(SystemExit, match="2"):
        main([option, value])
    assert message in capsys.readouterr().err


def test_what_cannot_run_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A kind whose packages are missing is left out, and the table says so."""
    monkeypatch.setitem(replay._NEEDS, "torch", ["no_such_package"])
    monkeypatch.setattr(replay, "_machine", lambda: "a machine")
    assert main(["--kinds", "torch"]) == 0
    assert "torch: left out, it needs no_such_package" in capsys.readouterr().out


@linux
def test_the_traffic_of_a_trace(capsys: pytest.CaptureFixture[str]) -> None:
    """Compiled code, on a recorded model."""
    pytest.importorskip("numba", reason="needs the package numba")
    names = ["--models", "eager-gpt2-small4-generate-short", "--memories", "ordinary", "arena"]
    assert main(["--kinds", "traffic", *names, *QUICK]) == 0
    assert capsys.readouterr().out.count("| eager-gpt2-small4-generate-short |") == 4


@linux
@pytest.mark.skipif(not _found(), reason="needs jemalloc, tcmalloc or mimalloc")
def test_another_allocator_is_preloaded(capsys: pytest.CaptureFixture[str]) -> None:
    """The process makes sure that it is."""
    name = next(iter(_found()))
    command = ["--kinds", "numpy", "--models", "branches", "--memories", name, *QUICK]
    assert main(command) == 0
    assert capsys.readouterr().out.count(f"| branches | {name} |") == 2


def test_events_are_in_order_of_time() -> None:
    """Frees of a step come before its allocations."""
    begins, buffer = _events(Problem([(0, 2, 8), (2, 3, 8), (1, 2, 4)]))
    assert list(zip(begins.tolist(), buffer.tolist(), strict=True)) == [
        (True, 0),
        (True, 2),
        (False, 0),
        (False, 2),
        (True, 1),
        (False, 1),
    ]


def test_the_process_of_a_job_is_this_module() -> None:
    """It is started by name, so it must be found by name."""
    assert replay.__spec__ is not None
    assert replay.__spec__.name == "dsa.bench.replay"
    assert sys.modules["dsa.bench.replay"] is replay

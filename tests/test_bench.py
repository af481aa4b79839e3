"""The benchmark: instances, runs in processes of their own, records, tables, the gate."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from dsa import Problem, solvers
from dsa.bench.cli import main, solver_named
from dsa.bench.instances import Instance, find
from dsa.bench.records import Record, read
from dsa.bench.runner import Limits, plan_runs, run
from dsa.budget import Budget
from dsa.errors import DsaError, FileFormatError, InvalidProblemError, UnsupportedError
from dsa.io import write_csv
from dsa.result import Solution
from dsa.solvers import Solver

ONE = Problem([(0, 2, 60), (1, 3, 50)])
TWO = Problem([(0, 2, 8), (1, 3, 8), (2, 4, 8)])


@pytest.fixture(autouse=True)
def unregistered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names of peers, and of solvers of one's own, go with the test that introduced them."""
    monkeypatch.setattr(solvers, "_registered", {})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two problems."""
    path = tmp_path / "mine"
    path.mkdir()
    write_csv(ONE, path / "one.csv")
    write_csv(TWO, path / "two.1048576.csv")
    return path


@dataclass(frozen=True)
class Stacked(Solver):
    """A solver that behaves as it is told, once it is past the warming up."""

    how: str = "well"
    seed: int = 0

    supports: ClassVar[frozenset[str]] = frozenset()

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        tops = problem.size.cumsum() - problem.size
        if len(problem) == 7 or self.how == "well":  # seven buffers are those of the warming up
            return Solution(tops)
        if self.how == "badly":
            return Solution(tops * 0)
        if self.how == "refuses":
            raise UnsupportedError("not today")
        if self.how == "raises":
            raise ZeroDivisionError("one over none")
        if self.how == "dies":
            os.abort()
        budget.report(int(problem.size.sum()))
        time.sleep(600)
        raise AssertionError("it was not stopped")


def records(*solvers: Solver, instance: Instance | None = None, **options: float) -> list[Record]:
    """What the runs of some solvers on an instance give."""
    named = {repr(solver): solver for solver in solvers}
    limits = Limits(0.5, grace=0.5)
    runs = plan_runs([instance or Instance("one", ONE)], named, limits)
    return list(run(runs, limits))


# -- instances ----------------------------------------------------------------------------------


def test_a_folder_gives_its_files(folder: Path) -> None:
    """By the name of the folder and of the file, in order."""
    found = list(find([str(folder)]))
    assert [instance.name for instance in found] == ["mine/one", "mine/two"]
    assert [instance.problem.load for instance in found] == [110, 16]


@pytest.mark.parametrize("name", ["packing:x", "nowhere", "packing:1:2:y"])
def test_what_is_no_instance_is_refused(name: str) -> None:
    """With the name in the message."""
    with pytest.raises(InvalidProblemError, match=name.partition(":")[0]):
        list(find([name]))


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    """Nothing to run is a mistake."""
    with pytest.raises(InvalidProblemError, match="no file that ends in"):
        list(find([str(tmp_path)]))


# -- runs ---------------------------------------------------------------------------------------


def test_a_run_is_recorded() -> None:
    """Quality, cost, the solver as an expression, and where it ran."""
    (record,) = records(Stacked())
    assert (record.instance, record.buffers, record.load, record.peak) == ("one", 2, 110, 110)
    assert (record.status, record.ratio, record.made) == ("optimal", 1.0, repr(Stacked()))
    assert record.wall > 0
    assert record.reference > 0
    assert record.curve[-1] == (record.wall, 110)
    assert record.version["dsa"]
    assert record.machine


@pytest.mark.parametrize(
    ("how", "status", "message"),
    [
        ("badly", "invalid", "share bytes"),
        ("refuses", "refused", "not today"),
        ("raises", "crash", "ZeroDivisionError: one over none"),
        ("dies", "crash", "SIGABRT"),
        ("sleeps", "timeout", "killed"),
    ],
)
def test_a_failure_is_recorded_as_what_it_is(how: str, status: str, message: str) -> None:
    """And neither ends the others nor outlasts its time."""
    failed, fine = records(Stacked(how), Stacked())
    assert (failed.status, failed.peak) == (status, None)
    assert message in failed.message
    assert fine.planned


def test_what_was_reported_before_a_timeout_is_kept() -> None:
    """The curve of a run that had to be stopped, though no plan of it counts."""
    (record,) = records(Stacked("sleeps"))
    assert [peak for _, peak in record.curve] == [110]
    assert record.ratio == float("inf")


def test_a_problem_that_asks_for_more_is_refused() -> None:
    """A solver without alignments, in a problem with them."""
    aligned = Problem([(0, 2, 60), (1, 3, 50)], alignment=64)
    (record,) = records(Stacked(), instance=Instance("aligned", aligned))
    assert record.status == "refused"


def test_a_known_optimum_is_the_bound() -> None:
    """What the load does not prove counts as proven if the instance knows it."""
    (record,) = records(Stacked(), instance=Instance("one", ONE, optimum=110))
    assert (record.bound, record.status) == (110, "optimal")
    (instance,) = find(["above-load:8:0"])
    (record,) = records(solver_named("strip-packing"), instance=instance)
    assert record.bound == instance.problem.load * 9 // 8


def test_seeds_and_repeats() -> None:
    """A solver with a seed runs once for each, one without runs once; all of it repeated."""
    named = {"seeded": Stacked(), "unseeded": solver_named("naive")}
    runs = list(plan_runs([Instance("one", ONE)], named, Limits(), seeds=(3, 4), repeats=2))
    made = [(r.record.solver, r.record.seed, r.record.repeat) for r in runs]
    assert made == [
        *[("seeded", seed, repeat) for seed in (3, 4) for repeat in (0, 1)],
        *[("unseeded", None, repeat) for repeat in (0, 1)],
    ]
    assert runs[2].solver == Stacked(seed=4)


def test_runs_at_once_give_what_they_give_one_by_one() -> None:
    """The same records, perhaps in another order."""
    named = {name: solver_named(name) for name in ("naive", "linear-scan", "best-fit")}
    limits = Limits()
    runs = list(plan_runs([Instance("one", ONE), Instance("two", TWO)], named, limits))
    peaks = [
        sorted((r.instance, r.solver, r.peak or 0) for r in run(runs, limits, jobs=jobs))
        for jobs in (1, 3)
    ]
    assert peaks[0] == peaks[1]


# -- records ------------------------------------------------------------------------------------


def test_a_record_survives_its_file(tmp_path: Path) -> None:
    """Written and read it is the same; a line that was cut off is left out."""
    record = Record("a", "f", 1, 8, "auto", status="feasible", peak=9, bound=8, curve=((0.1, 9),))
    path = tmp_path / "records.jsonl"
    path.write_text(record.line + "\n" + record.line[:20])
    assert read(path) == [record]


@pytest.mark.parametrize("line", ["{", "[]", '{"instance": "a"}', '{"colour": "red"}'])
def test_what_is_no_record_is_refused(tmp_path: Path, line: str) -> None:
    """With file and line."""
    path = tmp_path / "records.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(FileFormatError, match=r"records\.jsonl, line 1"):
        read(path)


# -- the command line ---------------------------------------------------------------------------


def test_one_solver_is_shown_in_full(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each file of a folder, and the last line but one counts what is proven."""
    assert main(["run", str(folder), "--solver", "exact", "--time-limit", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("| mine/one | 2 | 110 | 110 | 1.00000 | 110 | optimal |")
    assert lines[3].startswith("| mine/two | 3 | 16 | 16 | 1.00000 | 16 | optimal |")
    assert lines[5].startswith("`exact`: 2 of 2 proven optimal")
    assert lines[7].startswith("Measured on")


def test_several_solvers_stand_side_by_side(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Peak over bound of each, the best in bold, and what became of those without a plan."""
    chosen = ["-s", "naive", "-s", "exact", "-s", f"{__name__}:Stacked:how=badly"]
    assert main(["run", str(folder), *chosen]) == 0
    out = capsys.readouterr().out
    assert "| mine/one | **1.0000** | **1.0000** | invalid |" in out
    assert "| mine/two | 1.5000 | **1.0000** | invalid |" in out
    assert "| naive | 1 | 2 | 2 | 1.2500 | 1.5000 |" in out


def test_a_run_goes_on_where_it_was_stopped(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is in the file of records is not made again, and is in the table."""
    path = tmp_path / "records.jsonl"
    assert main(["run", str(folder / "one.csv"), "-s", "naive", "-o", str(path)]) == 0
    (first,) = read(path)
    assert main(["run", str(folder), "-s", "naive", "-o", str(path)]) == 0
    assert read(path)[0] == first
    assert len(read(path)) == 2
    assert "2 of 2" not in capsys.readouterr().out.splitlines()[-3]


@pytest.mark.parametrize("name", ["exakt", "greedy:order", "greedy:colour=red", "no_module:Class"])
def test_a_solver_that_does_not_exist_is_refused(name: str) -> None:
    """With a message, before anything runs."""
    with pytest.raises(DsaError):
        main(["run", "-s", name])

"""The benchmark: instances, runs in processes of their own, records, tables, the gate."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from dsa import Problem, solvers
from dsa.bench import instances
from dsa.bench.album import pictures
from dsa.bench.cli import main, solver_named
from dsa.bench.gate import changes
from dsa.bench.instances import Instance, find
from dsa.bench.records import Record, read
from dsa.bench.report import agreed, duels, grouped, losses
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


def test_a_run_goes_on_where_it_was_stopped(folder: Path, tmp_path: Path) -> None:
    """What is in the file of records is not made again, and is in the table."""
    path = tmp_path / "records.jsonl"
    assert main(["run", str(folder / "one.csv"), "-s", "naive", "-o", str(path)]) == 0
    (first,) = read(path)
    assert main(["run", str(folder), "-s", "naive", "-o", str(path)]) == 0
    assert read(path)[0] == first
    assert len(read(path)) == 2
    with path.open("a") as file:
        file.write(first.line[:20])  # the machine went down
    assert main(["run", str(folder), "-s", "naive", "-s", "best-fit", "-o", str(path)]) == 0
    assert [record.solver for record in read(path)] == 2 * ["naive"] + 2 * ["best-fit"]


@pytest.mark.parametrize("name", ["exakt", "greedy:order", "greedy:colour=red", "no_module:Class"])
def test_a_solver_that_does_not_exist_is_refused(name: str) -> None:
    """With a message, before anything runs."""
    with pytest.raises(DsaError):
        main(["run", "-s", name])


# -- plans, reports, the registry ---------------------------------------------------------------


@pytest.fixture
def measured(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A file of records of three solvers, and a folder of plans beside it."""
    path = tmp_path / "records.jsonl"
    chosen = ["-s", "naive", "-s", "exact", "-s", f"{__name__}:Stacked:how=badly"]
    plans = ["--plans", str(tmp_path / "plans"), "-o", str(path)]
    assert main(["run", str(folder), *chosen, *plans]) == 0
    capsys.readouterr()
    return path


def test_best_and_worst_plans_are_kept(measured: Path) -> None:
    """Of each instance, as files that can be read and validated."""
    drawn = dict(pictures(measured.parent / "plans"))
    assert [plan.peak for plan in drawn.values()] == [16, 24, 110, 110]
    assert list(drawn)[:2] == [
        "mine-two: the best plan, 16 B (exact)",
        "mine-two: the worst plan, 24 B, 1.50 times (naive)",
    ]
    assert all(not plan.validate() for plan in drawn.values())


def test_a_page_holds_everything(measured: Path, tmp_path: Path) -> None:
    """Self-contained, well formed, each instance and solver named, plans drawn."""
    out = tmp_path / "page.html"
    assert main(["report", str(measured), "--plans", str(tmp_path / "plans"), "-o", str(out)]) == 0
    text = out.read_text("utf-8")
    assert text.count("<svg") == text.count("</svg>")
    assert 'class="dsa-plan"' in text
    for needed in ("mine/one", "mine/two", "naive", "exact", "invalid", "Measured on"):
        assert needed in text
    for outside in ("http:", "https:", "src=", "<script", "<link"):
        assert outside not in text.replace("http://www.w3.org/2000/svg", "")


def test_a_report_is_made_of_records_alone(
    measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table on standard output and in a file are the same."""
    out = tmp_path / "table.md"
    assert main(["report", str(measured), "-o", str(out)]) == 0
    assert main(["report", str(measured)]) == 0
    assert capsys.readouterr().out == out.read_text("utf-8")


def test_no_records_give_a_page_and_a_table(tmp_path: Path) -> None:
    """Nothing divides by their number."""
    empty = tmp_path / "none.jsonl"
    empty.write_text("")
    for name in ("page.html", "table.md"):
        assert main(["report", str(empty), "-o", str(tmp_path / name)]) == 0


def test_all_records_of_a_problem_get_its_best_bound() -> None:
    """What one solver proved makes another's plan optimal."""
    common = {"status": "feasible", "peak": 9}
    low = Record("a", "f", 1, 8, "greedy", bound=8, **common)  # type: ignore[arg-type]
    high = Record("a", "f", 1, 8, "exact", bound=9, **common)  # type: ignore[arg-type]
    assert [r.status for r in agreed([low, high])] == ["optimal", "optimal"]


def test_a_plan_below_a_bound_is_an_error() -> None:
    """Somebody is wrong, and the report is not made."""
    plan = Record("a", "f", 1, 8, "greedy", status="feasible", peak=8, bound=8)
    proof = Record("a", "f", 1, 8, "exact", status="optimal", peak=9, bound=9)
    with pytest.raises(DsaError, match="greedy has a valid plan of 8, below the bound of 9"):
        agreed([plan, proof])


def test_the_registry_takes_what_is_better(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    """A lower peak with a valid plan, a higher bound; and it can be read again."""
    path = tmp_path / "registry.csv"
    path.write_text("name,fingerprint,buffers,load,best,best_from,bound,bound_from\n")
    monkeypatch.setattr(instances, "REGISTRY", path)
    instances.registry.cache_clear()
    try:
        assert main(["run", str(folder), "-s", "exact", "-s", "naive", "--improve"]) == 0
        instances.registry.cache_clear()
        rows = list(instances.registry().values())
    finally:
        instances.registry.cache_clear()
    assert [(row.name, row.best, row.bound, row.bound_from) for row in rows] == [
        ("mine/one", 110, 110, "load"),
        ("mine/two", 16, 16, "load"),
    ]
    assert rows[1].best_from.startswith("exact, ")


def test_an_invalid_plan_does_not_enter_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the record says."""
    monkeypatch.setattr(instances, "registry", dict)
    record = Record("one", ONE.fingerprint, 2, 110, "x", status="optimal", peak=60, bound=60)
    assert not instances.improve(record, Instance("one", ONE), np.array([0, 0]))


def test_the_registry_agrees_with_what_is_bundled() -> None:
    """Each model that comes with the library is in it, with its load, and no bound above a peak."""
    for instance in find(["models"]):
        known = instance.known
        assert known is not None, instance.name
        assert known.buffers == len(instance.problem)
        assert instance.problem.load == known.load <= known.bound <= known.best


# -- the gate -----------------------------------------------------------------------------------

PAST = Record(
    *("a", "f", 3, 100, "auto"),
    status="feasible",
    peak=110,
    bound=100,
    cpu=1.0,
    reference=0.1,
)


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({}, []),
        ({"peak": 111}, ["worse: a, auto: peak 110 -> 111"]),
        ({"peak": 109}, ["better: a, auto: peak 110 -> 109"]),
        ({"bound": 99}, ["worse: a, auto: bound 100 -> 99"]),
        ({"status": "crash", "message": "boom"}, ["worse: a, auto: feasible -> crash boom"]),
        ({"cpu": 3.9}, []),
        ({"cpu": 4.1}, ["worse: a, auto: 4.1 times the cost"]),
        ({"cpu": 4.1, "reference": 0.41}, []),
        ({"cpu": 0.2}, ["better: a, auto: 0.2 times the cost"]),
        ({"fingerprint": "g", "peak": 200}, []),
    ],
)
def test_the_gate_tells_what_changed(now: dict[str, Any], said: list[str]) -> None:
    """Quality exactly, cost in units of the reference, and only for what both have."""
    assert [str(change) for change in changes([PAST], [replace(PAST, **now)])] == said


def test_compare_fails_if_something_is_worse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the lines that got worse first."""
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    old.write_text(PAST.line + "\n")
    new.write_text(replace(PAST, peak=120, bound=105).line + "\n")
    assert main(["compare", str(old), str(new)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "worse: a, auto: peak 110 -> 120",
        "better: a, auto: bound 100 -> 105",
        "1 runs: 1 worse, 1 better",
    ]
    assert main(["compare", str(new), str(old)]) == 1
    assert main(["compare", str(old), str(old)]) == 0


def test_check_runs_the_baseline_again(
    measured: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record that claims more than the solver gives is a line that got worse."""
    claims = [replace(r, instance=str(folder / f"{r.instance[-3:]}.csv")) for r in read(measured)]
    claims = [r for r in claims if r.instance.endswith("one.csv")]
    measured.write_text("".join(record.line + "\n" for record in claims))
    assert main(["check", "--baseline", str(measured), "--tolerance", "1000"]) == 0
    boast = [replace(record, peak=100) if record.planned else record for record in claims]
    measured.write_text("".join(record.line + "\n" for record in boast))
    assert main(["check", "--baseline", str(measured), "--tolerance", "1000"]) == 1
    assert "naive: peak 100 -> 110" in capsys.readouterr().out


def test_check_of_nothing_is_a_mistake(measured: Path) -> None:
    """An instance that the baseline does not have."""
    with pytest.raises(DsaError, match="has no run of nowhere"):
        main(["check", "nowhere", "--baseline", str(measured)])


def test_list_shows_what_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    """Instances with their bests and bounds, families, peers."""
    assert main(["list", "above-load:8:0"]) == 0
    assert "| above-load:8:0 | 8 |" in capsys.readouterr().out
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert "| packing | A full rectangle" in out
    assert "| minimalloc | needs :path=PROGRAM |" in out


def test_duels_count_where_auto_is_lower_the_same_and_higher() -> None:
    """Instance by instance, where both have a plan."""
    runs = {"a": (8, 9), "b": (8, 8), "c": (9, 8), "d": (8, None)}
    made = [
        Record(name, name, 1, 8, solver, status="feasible" if peak else "none", peak=peak, bound=8)
        for name, peaks in runs.items()
        for solver, peak in zip(("auto", "naive"), peaks, strict=True)
    ]
    assert duels(grouped(made)) == {"auto": (0, 4, 0), "naive": (1, 1, 1)}


def test_losses_are_where_a_peer_is_better_than_auto() -> None:
    """In peak, or much sooner at the same peak."""
    runs = {"a": (9, 1.0, 8, 1.0), "b": (8, 1.0, 8, 0.3), "c": (8, 1.0, 8, 0.9), "d": (8, 1, 9, 0)}
    made = []
    for name, (ours, our_cpu, theirs, their_cpu) in runs.items():
        common = {"status": "feasible", "bound": 8}
        made.append(Record(name, name, 1, 8, "auto", peak=ours, cpu=our_cpu, **common))  # type: ignore[arg-type]
        made.append(Record(name, name, 1, 8, "vela", peak=theirs, cpu=their_cpu, **common))  # type: ignore[arg-type]
    found = losses(grouped(made), lambda name: name == "vela")
    assert [loss.instance for loss in found] == ["a", "b"]

"""The command line: what it prints where, its exit status, and no traceback for a mistake."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import ClassVar

import pytest

import dsa
from dsa import Buffer, Constraints, Problem, io, solvers
from dsa.budget import Budget
from dsa.cli import main
from dsa.result import Solution
from dsa.solvers import Solver

CSV = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"
# The largest first is not best here: the load is 88, greedy-by-size needs 124.
HARD = "lower,upper,size\n0,2,44\n1,3,36\n2,5,40\n4,5,48\n"
GREEDY = ("-s", "greedy-by-size")


@dataclass(frozen=True)
class Stacked(Solver):
    """A solver that is wrong: everything at offset 0.

    It is here to see how bugs are reported.
    """

    supports: ClassVar[frozenset[str]] = frozenset()

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        return Solution([0] * len(problem))


@dataclass(frozen=True)
class Slow(Solver):
    """A solver that reports one plan after a second, then interrupts itself if it is told to."""

    interrupt: bool = False

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        late = Budget(target=budget.target, progress=budget.progress, started=time.monotonic() - 2)
        late.report(4096)
        if self.interrupt:
            raise KeyboardInterrupt
        offsets = problem.size.cumsum() - problem.size
        return Solution(offsets)


@pytest.fixture
def model(tmp_path: Path) -> str:
    """Path of the example as CSV."""
    path = tmp_path / "model.csv"
    path.write_text(CSV)
    return str(path)


@pytest.fixture
def hard(tmp_path: Path) -> str:
    """Path of a problem that the greedy solvers cannot plan well."""
    path = tmp_path / "hard.csv"
    path.write_text(HARD)
    return str(path)


def stdin(monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    """Let standard input hold this."""
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(content.encode())))


def run(*arguments: str, **settings: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "dsa", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **settings)  # type: ignore[call-overload, no-any-return]


# -- plan -------------------------------------------------------------------------------------


def test_plan(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without -o, `plan` prints the summary and nothing else."""
    assert main(["plan", model]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("5 buffers, peak 12 B, lower bound 12 B: optimal (auto")
    assert err == ""


def test_plan_to_a_file(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """-o writes CSV or JSON, as the name ends; the summary still goes to standard output."""
    for name in ("plan.csv", "plan.csv.gz", "plan.json", "plan.json.gz"):
        assert main(["plan", model, *GREEDY, "-o", str(tmp_path / name)]) == 0
        assert "peak 12 B" in capsys.readouterr().out
        assert io.read_plan(tmp_path / name).peak == 12
    assert (tmp_path / "plan.csv").read_text().startswith("id,lower,upper,size,offset\nb1,0,3,4,")


@pytest.mark.parametrize(
    ("name", "begins"),
    [("r.json.csv", "id,"), ("r.json.csv.gz", "id,"), ("r.csv.json", "{"), ("r.csv.json.gz", "{")],
)
def test_only_the_last_suffix_counts(model: str, tmp_path: Path, name: str, begins: str) -> None:
    """A name with both suffixes is of the kind that it ends in, before .gz."""
    path = tmp_path / name
    assert main(["plan", model, *GREEDY, "-o", str(path)]) == 0
    content = path.read_bytes()
    text = gzip.decompress(content) if name.endswith(".gz") else content
    assert text.decode().startswith(begins)


def test_plan_to_stdout(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """-o - writes CSV to standard output, --json writes JSON; the summary goes to stderr."""
    assert main(["plan", model, *GREEDY, "-o", "-"]) == 0
    out, err = capsys.readouterr()
    assert io.read_plan(StringIO(out)).peak == 12
    assert "peak 12 B" in err
    assert main(["plan", model, *GREEDY, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["peak"] == 12
    assert "peak 12 B" in err
    assert main(["plan", model, *GREEDY, "--json", "-o", "-"]) == 2
    assert "both write to standard output" in capsys.readouterr().err


def test_plan_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    """A model that comes with the library is planned by its name."""
    assert main(["plan", "infer_resnet50_b1", *GREEDY]) == 0
    assert capsys.readouterr().out.startswith("175 buffers, peak ")


@pytest.mark.parametrize("content", [CSV, None])
def test_plan_from_stdin(
    content: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """- reads standard input, CSV or JSON."""
    if content is None:
        file = StringIO()
        io.write_json(io.read_csv(StringIO(CSV)), file)
        content = file.getvalue()
    stdin(monkeypatch, content)
    assert main(["plan", "-", *GREEDY]) == 0
    assert "5 buffers, peak 12 B" in capsys.readouterr().out


def test_sizes_and_options(hard: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Sizes have units, and options reach the solver with their types."""
    arguments = ["--capacity", "1KiB", "--alignment", "0.0625KiB", "--target", "1MB"]
    options = ["-s", "greedy", "--option", "order=lower", "--option", "fit=first"]
    assert main(["plan", hard, *options, *arguments, "--time-limit", "1.5", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["solver"] == "Greedy(order='lower', fit='first')"
    assert data["problem"]["capacity"] == 1024
    assert set(data["problem"]["alignment"]) == {64}
    assert main(["plan", hard, "-s", "naive", "--option", "reset=False"]) == 0
    assert "solver:  Naive(reset=False)" in capsys.readouterr().out
    seeds = ["--option", "orders=area,size", "--option", "restarts=3", "--option", "mirrored=False"]
    assert main(["plan", hard, "-s", "strip_packing", *seeds]) == 0
    assert "orders=('area', 'size'), mirrored=False, restarts=3" in capsys.readouterr().out
    one = ["--option", "orders=area", "--option", "restarts=none"]
    assert main(["plan", hard, "-s", "strip_packing", *one]) == 0
    assert "orders=('area',), mirrored=True, restarts=None" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", ["csv", "svg"])
def test_same_bytes(model: str, tmp_path: Path, suffix: str) -> None:
    """A second run writes the same bytes."""
    paths = [tmp_path / f"{name}.{suffix}" for name in ("first", "second")]
    for path in paths:
        option = "--svg" if suffix == "svg" else "-o"
        assert main(["plan", model, *GREEDY, option, str(path)]) == 0
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_same_json(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A second run gives the same JSON, but for the seconds."""
    texts = []
    for _ in range(2):
        assert main(["plan", model, *GREEDY, "--json"]) == 0
        texts.append(re.sub(r'"seconds": [^,]+', "", capsys.readouterr().out))
    assert texts[0] == texts[1]


def test_drawings(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--text draws after the summary, --svg into a file."""
    assert main(["plan", model, *GREEDY, "--text", "--svg", str(tmp_path / "plan.svg")]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 10
    assert "<svg" in (tmp_path / "plan.svg").read_text()


# -- constraints ------------------------------------------------------------------------------

BRANCHES = "id,lower,upper,size\nthen,0,2,8\nelse,0,2,6\n"
EXCLUSIVE = '{"exclusive": [["then", "else"]]}'


@pytest.fixture
def branches(tmp_path: Path) -> tuple[str, str]:
    """Paths of buffers in CSV and of their constraints."""
    paths = tmp_path / "branches.csv", tmp_path / "rules.json"
    for path, text in zip(paths, (BRANCHES, EXCLUSIVE), strict=True):
        path.write_text(text)
    return str(paths[0]), str(paths[1])


def test_constraints(
    branches: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """--constraints adds what CSV cannot hold; the plan in JSON carries it on."""
    model, rules = branches
    out = tmp_path / "plan.json"
    assert main(["plan", model, "--constraints", rules, "-o", str(out)]) == 0
    assert "peak 8 B" in capsys.readouterr().out
    assert main(["plan", model]) == 0
    assert "peak 14 B" in capsys.readouterr().out
    for more in ([], ["--constraints", rules], [model, "--constraints", rules]):
        assert main(["validate", str(out), *more]) == 0
    assert main(["verify", str(out)]) == 0
    capsys.readouterr()
    assert main(["validate", str(out), model]) == 1
    assert "share bytes [0, 6) in steps [0, 2)" in capsys.readouterr().out
    assert main(["info", model, "--constraints", rules]) == 0
    assert "constraints   1 exclusive" in capsys.readouterr().out


def test_constraints_of_a_plan_in_csv(
    branches: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Offsets in CSV hold under constraints from another file, or from that of the problem."""
    model, rules = branches
    theirs, problem = tmp_path / "theirs.csv", tmp_path / "problem.json"
    theirs.write_text("id,lower,upper,size,offset\nthen,0,2,8,0\nelse,0,2,6,2\n")
    with_rules = Problem(io.load(model), constraints=io.read_constraints(rules))
    io.write_json(with_rules, problem)
    assert main(["validate", str(theirs)]) == 1
    assert main(["validate", str(theirs), "--constraints", rules]) == 0
    assert main(["validate", str(theirs), model, "--constraints", rules]) == 0
    assert main(["validate", str(theirs), str(problem)]) == 0
    assert io.read_plan(theirs, constraints=with_rules.constraints).problem == with_rules
    capsys.readouterr()


@pytest.mark.parametrize("out", ["{}/plan.csv", "-"])
def test_constraints_are_not_lost_in_csv(
    branches: tuple[str, str], tmp_path: Path, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan with constraints is not written as CSV, which is said before anything is planned."""
    model, rules = branches
    arguments = ["--constraints", rules, "-o", out.format(tmp_path)]
    assert main(["plan", model, *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.err == "dsa: CSV has no room for constraints; write the plan as JSON\n"
    assert captured.out == ""
    assert not (tmp_path / "plan.csv").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", ": expected an object, got list"),
        ("{", ", line 1, column 2: no JSON"),
        ('{"exclude": []}', ": no constraint is named 'exclude'; there are aliases, apart"),
        ('{"chunk": 0}', ": chunk must be at least 1, got 0"),
    ],
)
def test_bad_constraints(
    branches: tuple[str, str], text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is wrong in the file is told with its name."""
    model, rules = branches
    Path(rules).write_text(text)
    assert main(["plan", model, "--constraints", rules]) == 2
    assert f"dsa: {rules}{message}" in capsys.readouterr().err


def test_constraints_on_unknown_buffers(
    branches: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A rule about a buffer that there is not is bad input."""
    model, rules = branches
    Path(rules).write_text('{"apart": [["then", "otherwise"]]}')
    assert main(["plan", model, "--constraints", rules]) == 2
    assert capsys.readouterr().err == "dsa: apart: there is no buffer 'otherwise'\n"


# -- cannot fit -------------------------------------------------------------------------------


def test_infeasible(hard: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A proof that nothing fits is exit 1, says by how much and why, and writes nothing."""
    out = tmp_path / "plan.csv"
    assert main(["plan", hard, *GREEDY, "--capacity", "80", "-o", str(out)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("dsa: no plan fits into 80 B: every plan needs 88 B, 8 B more")
    assert not out.exists()


def test_over_capacity(hard: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan over the capacity is exit 1; it can be looked at, but is not written."""
    out, svg = tmp_path / "plan.csv", tmp_path / "plan.svg"
    arguments = ["--capacity", "100", "-o", str(out), "--svg", str(svg), "--text"]
    assert main(["plan", hard, *GREEDY, *arguments]) == 1
    captured = capsys.readouterr()
    assert "the best has peak 124 B, 24 B over" in captured.err
    assert f"{out} is not written" in captured.err
    assert captured.out != ""
    assert svg.exists()
    assert not out.exists()


# -- validate ---------------------------------------------------------------------------------


@pytest.fixture
def planned(model: str, tmp_path: Path) -> dict[str, str]:
    """Paths of plans of the example, by suffix."""
    paths = {suffix: str(tmp_path / f"plan.{suffix}") for suffix in ("csv", "json")}
    for path in paths.values():
        assert main(["plan", model, *GREEDY, "-o", path]) == 0
    return paths


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_validate(
    planned: dict[str, str], model: str, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A valid plan is exit 0, by itself, within a capacity, and for its problem's file."""
    for more in ([], ["--capacity", "12"], [model]):
        capsys.readouterr()
        assert main(["validate", planned[suffix], *more]) == 0
        assert capsys.readouterr().out == (
            "valid: 5 buffers, peak 12 B, lower bound 12 B: optimal\n"
        )


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_validate_for_other_lifetimes(
    planned: dict[str, str], model: str, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan that does not hold for another problem is exit 1, with every rule it breaks."""
    Path(model).write_text(CSV.replace("b2,3,9", "b2,2,9"))
    capsys.readouterr()
    assert main(["validate", planned[suffix], model]) == 1
    out, err = capsys.readouterr()
    assert re.fullmatch(
        r"overlap: buffers 'b1' and 'b2' share bytes \[\d+, \d+\) in steps \[2, 3\)\n", out
    )
    assert err == f"dsa: {planned[suffix]} breaks a rule\n"


def test_validate_another_problem_in_which_it_holds(
    planned: dict[str, str], model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rules count, not fingerprints: a shorter lifetime breaks none."""
    Path(model).write_text(CSV.replace("b2,3,9", "b2,4,9"))
    assert main(["validate", planned["json"], model]) == 0


def test_validate_from_stdin(
    planned: dict[str, str],
    model: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The plan or the problem may come from standard input, but not both."""
    stdin(monkeypatch, Path(planned["json"]).read_text())
    assert main(["validate", "-", model]) == 0
    stdin(monkeypatch, CSV)
    assert main(["validate", planned["csv"], "-"]) == 0
    assert main(["validate", "-", "-"]) == 2
    assert "cannot both come from standard input" in capsys.readouterr().err


def test_invalid_plans(
    planned: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An invalid plan is exit 1: over capacity, not for its own lifetimes, or tampered with."""
    assert main(["validate", planned["csv"], "--capacity", "8"]) == 1
    assert "over capacity: buffer " in capsys.readouterr().out
    bad = tmp_path / "bad.csv"
    bad.write_text("id,lower,upper,size,offset\na,0,2,8,0\nb,1,3,8,4\nc,1,3,8,-4\n")
    assert main(["validate", str(bad)]) == 1
    out, err = capsys.readouterr()
    assert [line.partition(":")[0] for line in out.splitlines()] == ["negative"] + ["overlap"] * 2
    assert err == f"dsa: {bad} breaks 3 rules\n"
    data = json.loads(Path(planned["json"]).read_text()) | {"fingerprint": ""}
    bad.write_text(json.dumps(data))
    assert main(["validate", str(bad)]) == 1
    assert f"dsa: {bad}: the plan was made for another problem" in capsys.readouterr().err


# -- verify -----------------------------------------------------------------------------------

SEVEN = "lower,upper,size\n0,1,2\n0,2,2\n1,3,1\n1,4,1\n2,4,1\n3,5,2\n4,5,2\n"  # load 4, needs 5


def searched(tmp_path: Path, *more: str) -> Path:
    """A file with a plan whose bound comes from a search."""
    (tmp_path / "seven.csv").write_text(SEVEN)
    path = tmp_path / "seven.json"
    assert main(["plan", str(tmp_path / "seven.csv"), "-s", "exact", *more, "-o", str(path)]) == 0
    return path


def test_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line each for the plan, its bound and its proof."""
    path = searched(tmp_path, "--option", "proof=true")
    capsys.readouterr()
    assert main(["verify", str(path)]) == 0
    assert re.fullmatch(
        "plan:  valid, peak 5 B\n"
        "bound: 5 B, search\n"
        r"proof: 7 buffers do not fit into 4 B, by a search of \d+ nodes\n",
        capsys.readouterr().out,
    )


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_verify_a_load(
    planned: dict[str, str], suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bound that anyone can add up needs no proof."""
    capsys.readouterr()
    assert main(["verify", planned[suffix]]) == 0
    assert "\nbound: 12 B, load at step " in capsys.readouterr().out


def test_verify_refuses_what_is_only_claimed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bound that a search gave does not stand without a proof."""
    assert main(["verify", str(searched(tmp_path))]) == 1
    assert "has no proof of its bound" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log": []}, "the plan's proof does not hold: the log ends after 0 entries"),
        ({"capacity": 5}, "the plan's proof does not hold: entry "),
        ({"capacity": 3, "log": []}, "claims peak 5 and lower bound 5"),
    ],
)
def test_verify_refuses_a_wrong_proof(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, object], message: str
) -> None:
    """A proof that does not hold, or of less than is claimed, ends with status 1."""
    path = searched(tmp_path, "--option", "proof=true")
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {"proof": data["proof"] | change}))
    assert main(["verify", str(path)]) == 1
    assert message in capsys.readouterr().err


def test_verify_refuses_a_wrong_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The rules that the plan breaks are listed."""
    path = searched(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"offsets": [0] * 7}))
    assert main(["verify", str(path)]) == 1
    assert "overlap: buffers 0 and 1 share bytes" in capsys.readouterr().out


# -- info and solvers -------------------------------------------------------------------------


def test_info(hard: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`info` says what there is to know without planning."""
    assert main(["info", hard]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "buffers       4, 0 of size 0, 0 pinned",
        "steps         5, from 0 up to 5",
        "sections      3",
        "components    1",
        "sizes         36 B to 48 B, median 42 B",
        "alignments    1",
        "without reuse 168 B",
        "load          88 B at step 4, 2 live, the largest: 3 (48 B), 2 (40 B)",
        "lower bound   88 B, load at step 4 (2 buffers)",
    ]


def test_info_of_more(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`info` counts pins, empty buffers and alignments, and knows a capacity."""
    problem = Problem.from_columns(
        [0, 0, 4],
        [2, 2, 5],
        [2048, 0, 7],
        alignment=[16, 1, 1],
        offset=[64, None, None],
        capacity=4096,
    )
    file = StringIO()
    io.write_json(problem, file)
    stdin(monkeypatch, file.getvalue())
    assert main(["info", "-"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "buffers       3, 1 of size 0, 1 pinned"
    assert "components    2" in lines
    assert "alignments    1, 16" in lines
    assert "lower bound   2112 B (2.062 KiB), pin of buffer 0" in lines
    assert lines[-1] == "capacity      4096 B (4 KiB)"


def test_info_of_constraints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`info` counts holes and constraints; who is in a hole is not live."""
    rules = Constraints(apart=[("a", "c")], reserved=[(0, 4), (8, 9)], chunk=64)
    rows = [Buffer(0, 9, 8, id="a", holes=[(2, 4), (6, 8, 0, 2)]), Buffer(2, 4, 9, id="b")]
    problem = Problem([*rows, Buffer(3, 4, 1, id="c")], constraints=rules)
    file = StringIO()
    io.write_json(problem, file)
    stdin(monkeypatch, file.getvalue())
    assert main(["info", "-"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "holes         2, in 1 of the buffers" in lines
    assert "constraints   1 apart, chunk 64, 2 reserved" in lines
    assert "load          10 B at step 3, 2 live, the largest: 'b' (9 B), 'c' (1 B)" in lines


def test_info_of_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A problem without buffers can be described, planned and checked."""
    empty = "id,lower,upper,size,offset\n"
    for command in ("info", "plan", "validate"):
        stdin(monkeypatch, empty)
        assert main([command, "-"]) == 0
    assert "steps         none" in capsys.readouterr().out


def test_info_lists_models(capsys: pytest.CaptureFixture[str]) -> None:
    """`info` without a file lists the models that come with the library."""
    assert main(["info"]) == 0
    assert tuple(capsys.readouterr().out.split()) == io.bundled()


def test_solvers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`solvers` lists every solver with what is missing and the first line of its docstring."""
    monkeypatch.setitem(solvers._registered, "stacked", "tests.test_cli:Stacked")
    monkeypatch.setitem(solvers._registered, "broken", "no_such_module:Solver")
    monkeypatch.setattr(Stacked, "requires", ("no_such_package",))
    assert main(["solvers"]) == 0
    out, err = capsys.readouterr()
    rows = {line.split()[0]: line for line in out.splitlines()}
    assert list(rows) == ["name", *solvers.names(), "everything:"]
    assert rows["everything:"] == f"everything: {', '.join(solvers.FEATURES)}"
    assert re.match(r"greedy +yes +no +everything +Place buffers in an order", rows["greedy"])
    assert re.match(
        r"stacked +needs no_such_package +no +nothing +A solver that is wrong", rows["stacked"]
    )
    assert re.match(r"broken +no +solver 'broken' cannot be imported", rows["broken"])
    assert err == ""


# -- mistakes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan", "nope.csv"], "dsa: [Errno 2] No such file or directory: 'nope.csv'"),
        (["plan", "nope"], "dsa: no model named 'nope' comes with dsa"),
        (["plan", "infer-resnet50-b2"], "did you mean 'infer-resnet50-b1'?"),
        (["plan", "."], "dsa: no model named '.' comes with dsa"),
        (["plan", "{model}", "-s", "gredy"], "dsa: no solver is named 'gredy'; did you mean"),
        (["plan", "{model}", "-s", "greedy", "--option", "ordr=size"], "(options: order, fit)"),
        (["plan", "{model}", "-s", "greedy", "--option", "fit=worst"], "fit must be 'first' or"),
        (["plan", "{model}", "-s", "naive", "--option", "reset=no"], "reset cannot be 'no'"),
        (["plan", "{model}", "-s", "hill-climb", "--option", "seed=x"], "seed cannot be 'x'"),
        (["plan", "{model}", "--alignment", "0"], "dsa: alignment must be at least 1, got 0"),
        (["plan", "{model}", "--time-limit", "-1"], "time_limit must be a number of seconds"),
        (["plan", "{model}", "--time-limit", "nan"], "time_limit must be a number of seconds"),
        (["plan", "{bad}"], "{bad}, line 2, column 'size': '4k' is no integer"),
        (["info", "{bad}"], "{bad}, line 2, column 'size': '4k' is no integer"),
        (["validate", "{bad}"], "{bad}, line 1: no column 'offset'"),
        (["validate", "{model}"], "{model}, line 1: no column 'offset'"),
        (["validate", "nope.json"], "dsa: [Errno 2] No such file or directory: 'nope.json'"),
        (["plan", "{model}", "--svg", "no/such/plan.svg"], "dsa: [Errno 2] No such file or"),
    ],
)
def test_bad_input(
    arguments: Sequence[str], message: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistake in a file or a value is exit 2 and one line on stderr."""
    bad = Path(model).with_name("bad.csv")
    bad.write_text("lower,upper,size\n0,1,4k\n")
    names = {"model": model, "bad": str(bad)}
    assert main([argument.format(**names) for argument in arguments]) == 2
    err = capsys.readouterr().err
    assert message.format(**names) in err
    assert err.startswith("dsa: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["pln", "x"], "invalid choice: 'pln'"),
        (["plan"], "the following arguments are required: FILE"),
        (["plan", "x", "--capacity", "1 MiBB"], "'1 MiBB' is no size; write for example 4096"),
        (["plan", "x", "--capacity", "1.5"], "'1.5' is no whole number of bytes"),
        (["plan", "x", "--time-limit", "soon"], "invalid float value: 'soon'"),
        (["plan", "x", "--option", "order"], "expected KEY=VALUE, got 'order'"),
        (["plan", "x", "--cap", "4"], "unrecognized arguments: --cap 4"),
        (["plan", "x", "-o", "plan.txt"], "'plan.txt' must end in .csv or .json"),
        (["plan", "x", "-o", "no/such/plan.csv"], "there is no directory 'no/such'"),
    ],
)
def test_wrong_usage(
    arguments: Sequence[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Wrong usage is exit 2, before anything is read."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    """--help documents the exit status, --version the version."""
    for arguments in (["--help"], ["plan", "--help"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 0
        assert "1  no plan fits into the capacity" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"dsa {dsa.__version__}\n"


def test_a_bug_in_a_solver(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A solver that returns an invalid plan is exit 3, not taken for a capacity too small."""
    monkeypatch.setitem(solvers._registered, "stacked", "tests.test_cli:Stacked")
    assert main(["plan", model, "-s", "stacked"]) == 3
    assert "this is a bug of the solver" in capsys.readouterr().err


def test_unsupported(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A solver that cannot honour the problem, or is not installed, is exit 2."""
    monkeypatch.setitem(solvers._registered, "stacked", "tests.test_cli:Stacked")
    assert main(["plan", model, "-s", "stacked", "--alignment", "64"]) == 2
    assert "Stacked cannot honour alignment; these can: auto" in capsys.readouterr().err
    monkeypatch.setattr(Stacked, "requires", ("no_such_package",))
    assert main(["plan", model, "-s", "stacked"]) == 2
    assert "pip install no_such_package" in capsys.readouterr().err


# -- terminals and processes ------------------------------------------------------------------


class Terminal(StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_progress(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal a long run shows its best peak in one line, which is gone in the end."""
    monkeypatch.setitem(solvers._registered, "slow", "tests.test_cli:Slow")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert main(["plan", model, "-s", "slow"]) == 0
    line = "2 s, peak 4 KiB, target 12 B"
    assert terminal.getvalue() == f"\r{line}\r{' ' * len(line)}\r"


def test_no_progress(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No progress line goes into a file or a pipe."""
    monkeypatch.setitem(solvers._registered, "slow", "tests.test_cli:Slow")
    assert main(["plan", model, "-s", "slow"]) == 0
    assert capsys.readouterr().err == ""


def test_interrupt(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An interrupt ends the run without a traceback, with the status that shells expect."""
    monkeypatch.setitem(solvers._registered, "slow", "tests.test_cli:Slow")
    assert main(["plan", model, "-s", "slow", "--option", "interrupt=true"]) == 130
    assert capsys.readouterr().err == "dsa: interrupted\n"


def test_process(model: str) -> None:
    """The same from a shell, with pipes between the commands."""
    planned = run("plan", "-", *GREEDY, "-o", "-", input=CSV)
    assert (planned.returncode, planned.stderr.partition(":")[0]) == (
        0,
        "5 buffers, peak 12 B, lower bound 12 B",
    )
    checked = run("validate", "-", model, input=planned.stdout)
    assert (checked.returncode, checked.stderr) == (0, "")
    failed = run("plan", model, *GREEDY, "--capacity", "4")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert run("plan", model, "--capacity", "x").returncode == 2
    wrong = run("info", "-", input="lower,upper,size\n0,0,8\n")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("dsa: <stdin>, line 2, column 'upper': buffer 0: lifetime")
    for process in (planned, checked, failed, wrong):
        assert "Traceback" not in process.stderr


def test_broken_pipe() -> None:
    """A reader that closes the pipe early is no error of ours."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dsa", "plan", "infer-resnet50-b1", *GREEDY, "-o", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    with process.stderr:
        assert "Error" not in process.stderr.read()
    assert process.wait() == 141


def test_a_terminal_that_cannot_show_a_name(tmp_path: Path) -> None:
    """A name outside the terminal's alphabet is exit 2, not a traceback."""
    path = tmp_path / "model.csv"
    path.write_text("id,lower,upper,size\n\u00e9,0,1,8\n", "utf-8")
    shown = run("plan", str(path), "-o", "-", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert shown.returncode == 2
    assert "Traceback" not in shown.stderr


# -- pools and slots ----------------------------------------------------------------------------

THREE = "id,lower,upper,size\n1,0,2,100\n2,1,3,100\n3,0,3,20\n"
SPILLED = "3 buffers: fast 120 B, slow 100 B; 100 B spilled: feasible\n"
SLOTTED = "3 buffers in 3 slots, total 220 B, lower bound 220 B: optimal (greedy-by-size)\n"
KINDS = {
    "pools": (["pools", "--pool", "fast=128", "--pool", "slow"], SPILLED),
    "slots": (["slots"], SLOTTED),
}


@pytest.fixture
def three(tmp_path: Path) -> str:
    """Three buffers, two of which do not fit together into 128 bytes."""
    path = tmp_path / "three.csv"
    path.write_text(THREE)
    return str(path)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_read_and_judged(
    kind: str, three: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON goes to standard output, the report beside it; validate and verify take it."""
    arguments, headline = KINDS[kind]
    assert main([*arguments, three, "--json"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith(headline)
    written = tmp_path / "written.json"
    written.write_text(out)
    for more in ([], [three]):
        assert main(["validate", str(written), *more]) == 0
        assert capsys.readouterr().out == f"valid: {headline}"
    assert main(["verify", str(written)]) == 0
    assert capsys.readouterr().out.startswith(f"{kind}: valid, ")
    other = tmp_path / "other.csv"
    other.write_text(THREE + "4,0,1,8\n")
    assert main(["validate", str(written), str(other)]) == 1
    assert "missing: buffer 4 " in capsys.readouterr().out
    assert main(["validate", str(written), "--capacity", "8"]) == 2
    assert "are of plans with offsets in one memory" in capsys.readouterr().err
    assert main(["plan", three, "--hint", str(written)]) == 1
    assert "expected format 'dsa-plan'" in capsys.readouterr().err


@pytest.mark.parametrize("kind", KINDS)
def test_pools_and_slots_are_drawn(
    kind: str, three: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As SVG and with characters."""
    arguments, headline = KINDS[kind]
    picture = tmp_path / "picture.svg"
    assert main([*arguments, three, "--svg", str(picture), "--text"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(headline)
    assert "peak = lower bound" in out
    assert picture.read_text().startswith("<svg")


def test_slots_from_a_shell(three: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each slot with its size and its tenants; what does not fit is not found, or proven not to."""
    assert main(["slots", three]) == 0
    report = f"{SLOTTED}slot 0: 100 B: 1\nslot 1: 100 B: 2\nslot 2: 20 B: 3\n"
    assert capsys.readouterr().out == report
    assert main(["slots", three, "--capacity", "219"]) == 1
    assert "no slots fit into 219 B" in capsys.readouterr().err


def test_slots_that_are_not_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The best there are can be drawn."""
    rows = [(2, 6, 6), (4, 8, 2), (3, 5, 7), (6, 8, 7), (5, 9, 3), (5, 9, 3), (1, 2, 8)]
    path = tmp_path / "hard.csv"
    path.write_text("lower,upper,size\n" + "".join(f"{a},{b},{s}\n" for a, b, s in rows))
    assert main(["slots", str(path), "--capacity", "20", "--text"]) == 1
    out, err = capsys.readouterr()
    assert "no slots found that fit into 20 B" in err
    assert "capacity" in out
    assert main(["slots", str(path), "--capacity", "20", "--solver", "mip"]) == 0
    assert "slot 0: 8 B: " in capsys.readouterr().out


def test_many_tenants_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line names the first of them."""
    path = tmp_path / "chain.csv"
    path.write_text("lower,upper,size\n" + "".join(f"{i},{i + 1},8\n" for i in range(11)))
    assert main(["slots", str(path)]) == 0
    assert "slot 0: 8 B: 0, 1, 2, 3, 4, 5, 6, 7 and 3 more\n" in capsys.readouterr().out


def test_preferences_from_a_shell(three: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Ids are those of the file; an unknown pool or buffer, and a pool that is full, are named."""
    arguments = ["pools", three, "--pool", "fast=128", "--pool", "slow"]
    assert main([*arguments, "--prefer", "3=slow", "--prefer", "1=slow,fast"]) == 0
    assert capsys.readouterr().out.startswith("3 buffers: fast 100 B, slow 120 B; 0 B spilled")
    for wrong, message in {
        "3=sram": "buffer 3: there is no pool 'sram'; there are 'fast', 'slow'",
        "7=slow": "prefer: there is no buffer '7'",
    }.items():
        assert main([*arguments, "--prefer", wrong]) == 2
        assert message in capsys.readouterr().err
    assert main([*arguments, "--prefer", "1=fast", "--prefer", "2=fast"]) == 1
    assert "; in pool 'fast'" in capsys.readouterr().err


def test_a_hint_whose_ids_only_read_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A CSV file has the id 7 where JSON has "7"."""
    rows = [Buffer(0, 2, 8, id="7"), Buffer(0, 2, 8, id="8")]
    new, earlier = tmp_path / "new.json", tmp_path / "earlier.csv"
    io.write_json(Problem(rows), new)
    earlier.write_text("id,lower,upper,size,offset\n7,0,2,8,8\n8,0,2,8,0\n")
    assert main(["plan", str(new), "--hint", str(earlier)]) == 0
    assert "kept:    2 buffers" in capsys.readouterr().out

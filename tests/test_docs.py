"""The documentation: its examples run, its links lead somewhere, its lists are complete.

The info string of a fence says what it is::

    ```python             a session (>>>), run as a doctest
    ```console            shell commands ($) and what they print, run as one, too
    ```csv model.csv      a file, of any language, that the examples of its page find
    ```sh                 set-up on a fresh machine; .ci/run takes it from the README
    ```text, ```toml      only to be read
"""

from __future__ import annotations

import doctest
import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import dsa
from dsa import solvers
from dsa.cli import _parser

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]

_FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_NEEDS = re.compile(r"<!-- needs (\w+) -->")
_COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())


class Fence(NamedTuple):
    """A block of a page, where its body begins, and the file that it stands for, if any."""

    language: str
    file: str | None
    body: str
    line: int


def fences(page: Path) -> list[Fence]:
    """All fences of a page."""
    text = page.read_text("utf-8")
    return [Fence(m[1], m[2], m[3], text.count("\n", 0, m.start(3))) for m in _FENCE.finditer(text)]


def prose(page: Path) -> str:
    """What is not in a fence."""
    return _FENCE.sub("", page.read_text("utf-8"))


# -- examples -----------------------------------------------------------------------------------


def examples(page: Path) -> Iterator[doctest.Example]:
    """Everything that a page does, in its order, as statements of Python."""
    for language, file, body, line in fences(page):
        if file is not None:
            yield doctest.Example(f"write({file!r}, {body!r})", "", lineno=line)
        elif language == "python":
            for example in doctest.DocTestParser().get_examples(body):
                example.lineno += line
                yield example
        elif language == "console":
            for command in _COMMAND.finditer(body):
                source, at = f"shell({command[1]!r})", line + body.count("\n", 0, command.start())
                yield doctest.Example(source, command[2], lineno=at)


def write(file: str, body: str) -> None:
    """Save a file that a page shows."""
    Path(file).write_text(body, "utf-8")


def shell(command: str) -> None:
    """Run a command with bash, with our `dsa`; whatever it writes is printed."""
    script = Path(sys.executable).with_name("dsa")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "dsa"]
    done = subprocess.run(
        ["bash", "-c", f'dsa() {{ {shlex.join(program)} "$@"; }}; {command}'],
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", "LINES": "24"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    sys.stdout.write(done.stdout)
    assert done.returncode == 0, f"exit status {done.returncode}"


@each_page
def test_the_examples_of_a_page_do_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """Sessions, commands and files of a page give what it shows, and draw its pictures."""
    for package in _NEEDS.findall(page.read_text("utf-8")):
        if find_spec(package) is None:
            pytest.skip(f"{page.name} needs {package}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(solvers, "_registered", {})  # what a page registers goes with it
    flags = sum(
        doctest.OPTIONFLAGS_BY_NAME[name] for name in pytestconfig.getini("doctest_optionflags")
    )
    names: dict[str, Any] = {"write": write, "shell": shell}
    test = doctest.DocTest(list(examples(page)), names, page.name, str(page), 0, None)
    report = StringIO()
    failures, _ = doctest.DocTestRunner(optionflags=flags).run(test, out=report.write)
    assert not failures, report.getvalue()
    for image in _IMAGE.findall(prose(page)):
        drawn, committed = Path(image).name, page.parent / image
        assert Path(drawn).read_bytes() == committed.read_bytes(), f"{drawn} looks different now"


@each_page
def test_every_fence_is_of_a_known_kind(page: Path) -> None:
    """No example escapes the tests: what is neither a session nor a file cannot be Python."""
    assert page.read_text("utf-8").count("```") == 2 * len(fences(page))
    for language, file, body, line in fences(page):
        where = f"{page.name}, line {line}"
        if file is None:
            assert language in {"python", "console", "sh", "text", "toml"}, where
            assert language != "python" or body.startswith(">>> "), where
            assert language != "console" or body.startswith("$ "), where
            assert language != "sh" or page == README, where


# -- links --------------------------------------------------------------------------------------


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Files and anchors that a page points at; whatever is elsewhere is not looked up."""
    for target in _LINK.findall(prose(page)):
        if "://" not in target:
            file, _, anchor = target.partition("#")
            yield (page.parent / file).resolve() if file else page, anchor


def anchors(page: Path) -> set[str]:
    """Headings as GitHub spells them in a link."""
    headings = (heading.lower() for heading in _HEADING.findall(prose(page)))
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


@each_page
def test_every_link_leads_somewhere(page: Path) -> None:
    """Files that a page links to exist, and so do the headings."""
    for file, anchor in links(page):
        assert file.exists(), f"{page.name} links to {file}"
        assert not anchor or anchor in anchors(file), f"{page.name} links to {file}#{anchor}"


def test_every_page_is_reached_from_the_readme() -> None:
    """Following links from the README leads to every page."""
    reached, pending = set(), [README]
    while pending:
        page = pending.pop()
        if page not in reached:
            reached.add(page)
            pending += [file for file, _ in links(page) if file.suffix == ".md"]
    assert set(PAGES) <= reached


# -- lists --------------------------------------------------------------------------------------


def rows(page: Path) -> list[list[str]]:
    """Cells of every line of every table on a page, without code marks and links."""
    lines = [line for line in prose(page).splitlines() if line.startswith("|")]
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", line).replace("`", "") for line in lines]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in plain]


def test_the_readme_lists_every_solver() -> None:
    """Its table holds names, summaries and proofs as the table of names and the classes do."""
    expected = []
    for name in solvers.names():
        solver = solvers.solver_class(name)
        summary = (inspect.getdoc(solver) or "").partition("\n")[0]
        expected.append([name, summary, "yes" if solver.exact else "no"])
    assert [row for row in rows(README) if row[0] in solvers.names()] == expected


def test_the_table_of_features_is_what_solvers_say() -> None:
    """Which solver honours what, on the page that helps to choose one, is what each supports."""
    expected = [["solver", *solvers.FEATURES]]
    for name in solvers.names():
        supports = solvers.solver_class(name).supports
        row = ["yes" if feature in supports else "no" for feature in solvers.FEATURES]
        expected.append([name, *row])
    page = DOCS / "how-to" / "choose-a-solver.md"
    wide = [row for row in rows(page) if len(row) == len(expected[0]) and row[0] != "---"]
    assert wide == expected


@pytest.mark.parametrize("name", solvers.names())
def test_a_solvers_page_lists_its_options(name: str) -> None:
    """The page that the README links a solver to has each of its options, with the default."""
    page = re.search(rf"\[`{name}`\]\(([^)]+)\)", README.read_text("utf-8"))
    assert page is not None
    solver: Any = solvers.solver_class(name)
    defaults = {(option.name, repr(option.default)) for option in fields(solver)}
    assert defaults <= {(row[0], row[1].replace('"', "'")) for row in rows(ROOT / page[1])}


def test_the_reference_lists_every_public_name() -> None:
    """What `dsa` exports has a row each, and so have the errors' attributes."""
    described = {row[0] for row in rows(DOCS / "reference.md")}
    assert set(dsa.__all__) <= {name.partition("(")[0] for name in described}


def test_the_reference_lists_the_command_line() -> None:
    """Every command and every option of the command line has a row."""
    described = {name for row in rows(DOCS / "reference.md") for name in row[0].split(", ")}
    commands = next(action.choices for action in _parser()._actions if action.choices)
    assert isinstance(commands, dict)
    for name, parser in commands.items():
        options = {option for action in parser._actions for option in action.option_strings}
        assert {f"dsa {name}"} | options - {"-h", "--help"} <= described


def test_the_changelog_has_the_version() -> None:
    """A version that can be installed says what is new in it."""
    assert f"## [{dsa.__version__}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")

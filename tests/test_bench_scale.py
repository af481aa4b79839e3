"""How solvers grow: the table, and the exponent in it."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from dsa.bench.scale import STAGES, _growth, main
from dsa.bench.warm import kernels
from dsa.bounds import lower_bound
from dsa.kernels.compiled import Kernel
from dsa.kernels.skyline import skyline
from dsa.problem import Problem
from dsa.result import Plan
from dsa.solvers.orders import order_by


def test_each_stage_and_solver_has_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each size, and what each gave."""
    asked = ["--families", "layered", "--sizes", "20", "40", "--stages", "sections"]
    assert main([*asked, "--solvers", "naive", "--time-limit", "1"]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [(row[0], row[1]) for row in rows] == [
        (f"| layered:{n}:0", what) for n in (20, 40) for what in ("sections", "naive")
    ]
    assert float(rows[1][5].strip(" |")) > 1


@pytest.mark.parametrize("stage", STAGES)
def test_stages_do_what_they_are_called(stage: str) -> None:
    """Each runs on a plan; what there and back gives is the problem."""
    problem = Problem([(0, 2, 8), (1, 3, 8)])
    plan = Plan(problem, skyline(problem, order_by(problem, "area")), lower_bound(problem), "none")
    given = STAGES[stage](plan)
    assert given == problem if "there and back" in stage else given is not None


def test_every_kernel_is_warmed_up() -> None:
    """Wherever in the library one is, or the first large problem would wait for it."""
    modules = [importlib.import_module(name) for name in sys.modules if name.startswith("dsa.")]
    defined = {
        id(value): value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Kernel)
    }
    assert {id(kernel) for kernel in kernels()} == defined.keys()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks are not forgotten there")
def test_memory_is_counted_from_a_moment_on() -> None:
    """What was taken and given back before does not hide what is taken later."""
    program = (
        "import numpy as np; from dsa.bench.memory import forget_peak, peak_memory;"
        "np.ones(32_000_000); before = forget_peak(); np.ones(8_000_000);"
        "print(peak_memory() - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert 60e6 < int(done.stdout) < 70e6


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ((100, 1.0), (1000, 10.0), "1.00"),
        ((100, 1.0), (1000, 100.0), "2.00"),
        (None, (1000, 10.0), ""),
        ((100, 0.001), (1000, 10.0), ""),  # too short to be told
    ],
)
def test_growth_is_an_exponent(
    before: tuple[int, float] | None, now: tuple[int, float], expected: str
) -> None:
    """Seconds as a power of the number of buffers, where they can be told."""
    assert _growth(before, now) == expected

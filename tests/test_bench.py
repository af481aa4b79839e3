"""The benchmark commands, on small inputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsa import Problem
from dsa.bench.optima import main
from dsa.io import write_csv


def test_optima_prints_a_row_for_each_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each CSV file of a folder is planned, and the last line counts what is proven."""
    write_csv(Problem([(0, 2, 60), (1, 3, 50)]), tmp_path / "one.csv")
    write_csv(Problem([(0, 2, 8), (2, 4, 8)]), tmp_path / "two.csv")
    assert main([str(tmp_path), "--time-limit", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("| one | 2 | 110 | 110 | 1.00000 | 110 | optimal |")
    assert lines[3].startswith("| two | 2 | 8 | 8 | 1.00000 | 8 | optimal |")
    assert lines[-1].startswith("2 of 2 proven optimal")

"""A sample of the record run with constraints: see `tests.record_constraints`."""

from __future__ import annotations

import pytest

from tests.record_constraints import compare


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_exact_is_exhaustive_with_constraints(first: int) -> None:
    """Twenty random problems with all features mixed; no heuristic is below the optimum."""
    for i in range(first, first + 20):
        compare(i)

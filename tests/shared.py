"""Where the instances and vectors beside the project are, and how tests skip without them."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest
from hypothesis import settings

SHARED = Path(os.environ.get("DSA_SHARED", Path(__file__).parents[2] / "shared"))

needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason=f"the shared instances are not at {SHARED}; set DSA_SHARED"
)


def read_table(path: str) -> list[dict[str, str]]:
    """Rows of a CSV file of the shared data; none where the shared data is absent."""
    if not SHARED.is_dir():
        return []
    with open(SHARED / path, newline="") as file:
        return list(csv.DictReader(file))


def examples(count: int) -> settings:
    """Settings for a property test: so many examples, more under the profile "explore"."""
    return settings(max_examples=count * settings().max_examples // 100)

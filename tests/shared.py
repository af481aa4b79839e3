"""Where the instances and vectors beside the project are, and how tests skip without them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("DSA_SHARED", Path(__file__).parents[2] / "shared"))

needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason=f"the shared instances are not at {SHARED}; set DSA_SHARED"
)

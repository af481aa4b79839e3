"""Pictures."""

from typing import Any


def write_svg(plan: Any, path: Any) -> None:
    """To come."""
    raise NotImplementedError


def text(plan: Any, width: int, height: int) -> str:
    """To come."""
    raise NotImplementedError

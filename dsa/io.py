"""Files."""

from typing import Any


def load(name: Any) -> Any:
    """To come."""
    raise NotImplementedError


def write_csv(plan: Any, path: Any) -> None:
    """To come."""
    raise NotImplementedError

"""Compile a kernel with numba, if it is there and worth it.

A kernel is a function of plain loops over sequences of integers, with helpers of the same kind.
It runs as it is on lists, and compiled on arrays, with equal results.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

__all__ = ["available", "compiled", "ready"]


@cache
def available() -> bool:
    """Whether numba is installed; it is not imported to find out."""
    return find_spec("numba") is not None


@cache
def compiled(entry: Callable[..., Any], *helpers: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel compiled, from numba's cache on disk if it has been compiled before.

    Importing numba takes about half a second, compiling a kernel some ten seconds, once for each
    installation (NUMBA_CACHE_DIR says where the cache is kept).
    """
    import numba
    from numba.extending import register_jitable

    for helper in helpers:
        register_jitable(helper)
    dispatcher: Callable[..., Any] = numba.njit(entry, cache=True, error_model="numpy")
    return dispatcher


def ready(entry: Callable[..., Any], *helpers: Callable[..., Any]) -> bool:
    """Whether the kernel has been compiled before, here or by an earlier process."""
    dispatcher: Any = compiled(entry, *helpers)
    if dispatcher.signatures:
        return True
    # The index on disk, which is empty once the source has changed. numba offers no public way
    # to ask without compiling.
    return bool(dispatcher._cache._cache_file._load_index())

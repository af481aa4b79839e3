"""Compile a kernel with numba, if it is there and worth it.

A kernel is a function of plain loops over sequences of integers, with helpers of the same kind.
It runs as it is on lists, and compiled on arrays, with equal results.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

from dsa.problem import IntArray

__all__ = ["Kernel", "available", "compiled", "ready"]


class Kernel:
    """A kernel that runs as it is until compiling it pays.

    Whoever runs it says how many seconds that takes uncompiled, roughly. As with skis, which one
    may rent or buy: once the rent adds up to the price, buy. So never much more than twice the
    time is spent that would have been with foresight, and small problems never meet a compiler.

    Parameters
    ----------
    entry
        A function, perhaps a generator that pauses now and then.
    helpers
        What it calls.

    Attributes
    ----------
    bought
        Whether it runs compiled from now on.
    """

    SMALL = 0.05  # what takes less is never kept waiting
    LOADING = 0.5  # seconds to import numba and load what has been compiled before
    COMPILING = 10.0

    def __init__(self, entry: Callable[..., Any], *helpers: Callable[..., Any]) -> None:
        self._functions = (entry, *helpers)
        self.bought = False
        self._spent = 0.0

    def ready_for(
        self, seconds: float, *columns: IntArray, left: float = float("inf")
    ) -> tuple[Callable[..., Any], list[Any]]:
        """The kernel as it shall run now, and the columns as it wants them: lists or arrays.

        It is not compiled in the `left` seconds of a caller unless this run alone is worth it.

        Examples
        --------
        >>> import numpy as np
        >>> def add(values, result):
        ...     for i in range(len(values)):
        ...         result[i] += values[i]
        >>> run, columns = Kernel(add).ready_for(1e-6, np.array([1, 2]), np.array([5, 5]))
        >>> run(*columns)
        >>> columns[1]
        [6, 7]
        """
        if self._worth(seconds, left):
            return compiled(*self._functions), list(columns)
        return self._functions[0], [column.tolist() for column in columns]

    def _worth(self, seconds: float, left: float) -> bool:
        if not self.bought and seconds >= self.SMALL and available():
            self._spent += seconds
            if self._spent >= self.LOADING:
                compiles = self._spent >= self.COMPILING and max(seconds, left) >= self.COMPILING
                self.bought = compiles or ready(*self._functions)
        return self.bought


@cache
def available() -> bool:
    """Whether numba is installed, and not switched off by ``NUMBA_DISABLE_JIT=1``.

    It is not imported to find out.
    """
    return find_spec("numba") is not None and os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"


@cache
def compiled(entry: Callable[..., Any], *helpers: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel compiled, from numba's cache on disk if it has been compiled before.

    Importing numba takes about half a second, compiling a kernel some ten seconds, once for each
    installation (NUMBA_CACHE_DIR says where the cache is kept).
    """
    import numba
    from numba.extending import register_jitable

    _teach_bisect()
    for helper in helpers:
        register_jitable(helper)
    dispatcher: Callable[..., Any] = numba.njit(entry, cache=True, error_model="numpy")
    return dispatcher


@cache
def _teach_bisect() -> None:
    """Let kernels call `bisect_left` and `bisect_right`, which numba does not know."""
    from numba.extending import overload

    @overload(bisect_left)
    def first_not_below(a: Any, x: Any, lo: Any, hi: Any) -> Any:
        def search(a: Any, x: Any, lo: Any, hi: Any) -> Any:
            while lo < hi:
                middle = (lo + hi) // 2
                if a[middle] < x:
                    lo = middle + 1
                else:
                    hi = middle
            return lo

        return search

    @overload(bisect_right)
    def first_above(a: Any, x: Any, lo: Any, hi: Any) -> Any:
        def search(a: Any, x: Any, lo: Any, hi: Any) -> Any:
            while lo < hi:
                middle = (lo + hi) // 2
                if x < a[middle]:
                    hi = middle
                else:
                    lo = middle + 1
            return lo

        return search


def ready(entry: Callable[..., Any], *helpers: Callable[..., Any]) -> bool:
    """Whether the kernel has been compiled before, here or by an earlier process."""
    dispatcher: Any = compiled(entry, *helpers)
    if dispatcher.signatures:
        return True
    # The index on disk, which is empty once the source has changed. numba offers no public way
    # to ask without compiling.
    return bool(dispatcher._cache._cache_file._load_index())

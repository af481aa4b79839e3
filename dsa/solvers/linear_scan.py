"""Linear scan: what an allocator does that sees the buffers come and go."""

from __future__ import annotations

from dataclasses import dataclass

from dsa.kernels.placement import Fit
from dsa.solvers.greedy import Greedy

__all__ = ["LinearScan"]


@dataclass(frozen=True)
class LinearScan(Greedy):
    """Buffers by start, each at the lowest free place among those live then.

    `Greedy` with ``order="lower"`` and ``fit="first"``. Nothing that starts later has been
    placed, so this is an online first-fit (or best-fit) allocator with merging of free blocks.

    Notes
    -----
    Guarantee: equal sizes reach the load; in general up to about half the logarithm of the
    largest size times the load (Robson 1974).
    Source: Poletto and Sarkar 1999; Wimmer and Mössenböck 2005, for registers.

    Examples
    --------
    >>> from dsa import plan
    >>> plan([(0, 3, 16), (1, 4, 16), (2, 5, 16), (4, 7, 16)], solver="linear-scan").peak
    48
    """

    order: str = "lower"
    fit: Fit = "first"

"""Importing this loads and compiles the kernels: each solver plans a tiny problem."""

from __future__ import annotations

from contextlib import suppress

from dsa import solvers
from dsa.bench.warm import kernels, warm_up
from dsa.errors import DsaError
from dsa.kernels.compiled import Kernel, available

__all__: list[str] = []

if available():
    for kernel in kernels():
        kernel.ready_for(Kernel.COMPILING)
    for name in solvers.names():
        solver = solvers.build(name)
        if not solvers.missing_packages(solver) and not solver.requires:
            with suppress(DsaError):  # it will be recorded when it runs
                warm_up(solver)

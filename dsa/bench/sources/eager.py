"""Runs of PyTorch as they are: every allocation and free of one call, told by the profiler.

That includes what no graph shows: workspaces of kernels, values that Python keeps alive, shapes
that depend on the data.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dsa.bench.sources import require
from dsa.replay import Recorder, read_trace

__all__ = ["record"]


def record(function: Callable[..., Any], *arguments: Any, warm_up: int = 2) -> Recorder:
    """Record what one call allocates on the host.

    Parameters
    ----------
    function
        Called with the arguments; a module, or one iteration of training. What it returns is kept
        until the record ends.
    warm_up
        Calls before the one that is recorded, in which caches and states of optimizers come into
        being.

    Returns
    -------
    Recorder
        A site is the operator that allocates. Blocks that the call frees but did not allocate
        were there before: see `Repairs`.

    Raises
    ------
    SolverUnavailableError
        If torch is not installed.
    FileFormatError
        If the call allocates nothing.
    """
    torch = require("torch", "recording eager runs")
    for _ in range(warm_up):
        function(*arguments)
    gc.collect()
    collecting = gc.isenabled()
    gc.disable()  # it would free at moments of its own
    try:
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
        ) as profiler:
            kept = function(*arguments)
    finally:
        if collecting:
            gc.enable()
    del kept
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        return read_trace(path)

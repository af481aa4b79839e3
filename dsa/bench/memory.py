"""How much memory a process takes at most, from some moment on."""

from __future__ import annotations

import ctypes
import resource
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["forget_peak", "peak_memory"]

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def forget_peak() -> int:
    """Begin anew with the peak, where the system can (Linux); return it, in bytes.

    What was read or unpacked before is then no longer in it, unless it is still there. Elsewhere
    a later peak is seen only if it is higher than all before.
    """
    with suppress(OSError, AttributeError):  # what has been freed goes back to the system first
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        _CLEAR.write_text("5")
    return peak_memory()


def peak_memory() -> int:
    """Most bytes that this process, or one of the programs that it ran, has had at once."""
    unit = 1 if sys.platform == "darwin" else 1024
    ours, programs = (
        unit * resource.getrusage(who).ru_maxrss
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    with suppress(OSError):
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                ours = 1024 * int(line.split()[1])
    return max(ours, programs)

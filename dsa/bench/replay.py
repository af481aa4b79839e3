"""Does a plan pay at run time? ``python -m dsa.bench.replay``, or ``dsa bench replay``.

Two tables in Markdown. *Traffic*: what the allocator alone costs. The allocations and frees of a
recorded model, in their order, with a byte of every page touched, as compiled code (which needs the
extra ``fast``). *Models*: what is left of that in a run that computes. Each model runs by the
ordinary allocator, by others that are on this machine (LD_PRELOAD), and out of an arena.

Every memory of every model is a process of its own. In it 1, 2, ... threads run the model at the
same time, each by itself, on one core at most. Of all runs of all threads the tables have the
median and the 99th percentile: of the wall time, and of the processor's time that the thread took,
kernel included, which holds on a busy machine, too; and the median of the latter as a multiple of
the planned run's: below 1, planning does not pay. Memory is the peak resident set above that before
the first run.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import pickle
import platform
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dsa.bench.modules import MODULES
from dsa.bench.networks import NETWORKS, Ordinary, Planned, planned
from dsa.errors import DsaError
from dsa.io import load
from dsa.planner import plan
from dsa.problem import Problem
from dsa.replay import Arena

__all__ = ["main"]

TRACES = (
    *("infer-resnet50-b1", "infer-bert-base-b1", "infer-densenet121-b1"),
    "eager-gpt2-small4-generate-short",
)
LIBRARIES = {  # the allocators to preload, and what their libraries are called
    "jemalloc": "libjemalloc.so.2",
    "tcmalloc": "libtcmalloc_minimal.so.4",
    "mimalloc": "libmimalloc.so.2",
}
FOLDERS = ("/usr/lib", "/usr/lib64", "/usr/local/lib", f"/usr/lib/{platform.machine()}-linux-gnu")
ORDINARY, ARENA = "ordinary", "arena"
PAGE, MIB = 4096, 2**20
COLUMNS = (
    *("model", "memory", "threads", "wall ms", "wall p99", "CPU ms", "CPU p99"),
    *("CPU / arena", "peak MiB", "plan MiB"),
)


class Job(NamedTuple):
    """What one process measures.

    Parameters
    ----------
    kind
        ``"traffic"``, ``"numpy"`` or ``"torch"``.
    model
        Its name.
    memory
        ``"arena"``, ``"ordinary"``, or an allocator that has been preloaded.
    threads
        Numbers of threads, one after another.
    runs
        Of each thread.
    file
        What the parent left: of a network, with its plan.
    """

    kind: str
    model: str
    memory: str
    threads: Sequence[int]
    runs: int
    file: str


class Measured(NamedTuple):
    """What a process measured with one number of threads.

    Parameters
    ----------
    threads
        The number.
    seconds
        Of each run: wall time, and the processor's.
    peak, planned
        Bytes: resident at most, and of the plan.
    """

    threads: int
    seconds: Sequence[tuple[float, float]]
    peak: int
    planned: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; the exit code is 0."""
    parser = argparse.ArgumentParser(
        prog="dsa bench replay",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--kinds", nargs="+", default=list(_RUNNERS), choices=list(_RUNNERS), help="of tables")
    models = list(dict.fromkeys(name for names in _MODELS.values() for name in names))
    add("--models", nargs="+", metavar="NAME", choices=models, help=f"of {', '.join(models)}")
    add("--memories", nargs="+", metavar="NAME", help="default: ordinary, those found, arena")
    add("--threads", nargs="+", type=_positive, default=[1, 2, 4], metavar="N")
    add("--runs", type=_positive, default=100, metavar="N", help="of each thread in each round")
    add("--rounds", type=_positive, default=2, metavar="N", help="of all processes, in turn")
    add("--job", help=argparse.SUPPRESS)  # what this program starts itself with
    options = parser.parse_args(arguments)
    write = sys.stdout.write
    if options.job is not None:
        for measured in _measure(Job(*json.loads(options.job))):
            write(json.dumps(measured) + "\n")
        return 0
    write(f"{_machine()}\n\nCommand: `{parser.prog} {shlex.join(arguments or sys.argv[1:])}`\n")
    for kind in options.kinds:
        missing = [name for name in _NEEDS[kind] if find_spec(name) is None]
        if missing:
            write(f"\n{kind}: left out, it needs {', '.join(missing)}\n")
            continue
        write(f"\n## {kind}\n\n| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}\n")
        for model in _MODELS[kind]:
            if options.models is None or model in options.models:
                write("".join(f"| {' | '.join(row)} |\n" for row in _compare(kind, model, options)))
                sys.stdout.flush()
    return 0


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"it must be at least 1, got {number}")
    return number


# -- all processes of a model -----------------------------------------------------------------


def _compare(kind: str, model: str, options: argparse.Namespace) -> Iterator[Sequence[str]]:
    """Rows of the table: each memory with each number of threads."""
    memories = [ORDINARY, *_found(), ARENA] if options.memories is None else options.memories
    results: dict[tuple[int, str], list[Measured]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "model.pickle")
        if kind == "numpy":
            network = _network(model)
            Path(file).write_bytes(pickle.dumps((planned(network), network)))
        for _ in range(options.rounds):
            for memory in memories:
                job = Job(kind, model, memory, options.threads, options.runs, file)
                for measured in _run_process(job):
                    results[measured.threads, memory].append(measured)
    for threads in options.threads:
        times = {memory: _milliseconds(results[threads, memory]) for memory in memories}
        for memory in memories:
            found = results[threads, memory]
            ratio = f"{times[memory][2] / times[ARENA][2]:.2f}" if ARENA in times else ""
            peak = float(np.median([one.peak for one in found])) / MIB
            whole = f"{found[0].planned * threads / MIB:.1f}" if memory == ARENA else ""
            numbers = (f"{value:.3f}" for value in times[memory])
            yield model, memory, str(threads), *numbers, ratio, f"{peak:.1f}", whole


def _milliseconds(results: Sequence[Measured]) -> Sequence[float]:
    """Median and 99th percentile of the wall time, and of the processor's."""
    seconds = np.concatenate([result.seconds for result in results])
    times: Sequence[float] = (1000 * np.percentile(seconds, (50, 99), axis=0)).T.ravel().tolist()
    return times


def _found() -> dict[str, Path]:
    """The allocators of this machine that can be preloaded."""
    paths = {
        name: next((path for folder in FOLDERS if (path := Path(folder, file)).exists()), None)
        for name, file in LIBRARIES.items()
    }
    return {name: path for name, path in paths.items() if path is not None}


def _run_process(job: Job) -> Iterator[Measured]:
    """Start a process under the allocator that the job names, and read what it measures."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **single}
    if job.memory not in (ORDINARY, ARENA):
        if job.memory not in _found():
            raise DsaError(f"no allocator {job.memory!r} on this machine; found {list(_found())}")
        environment["LD_PRELOAD"] = str(_found()[job.memory])
    command = [sys.executable, "-W", "ignore", "-m", __spec__.name, "--job", json.dumps(job)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DsaError(f"{job.kind} {job.model} with {job.memory} failed:\n{done.stderr}")
    for line in done.stdout.splitlines():
        if line.startswith("["):
            yield Measured(*json.loads(line))


def _machine() -> str:
    """Where and when this is measured."""
    cpu = platform.processor() or platform.machine()
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
    packages = (name for names in _NEEDS.values() for name in names if find_spec(name))
    versions = [f"{name} {sys.modules[name].__version__}" for name in packages if _imported(name)]
    return (
        f"{cpu}, {os.cpu_count()} cores; {platform.system()} {platform.release()}, "
        f"{' '.join(platform.libc_ver())}; Python {platform.python_version()}, "
        f"{', '.join([f'numpy {np.__version__}', *versions])}; {datetime.now(UTC):%Y-%m-%d}"
    )


def _imported(name: str) -> bool:
    __import__(name)
    return True


# -- the process that measures ----------------------------------------------------------------


def _measure(job: Job) -> Iterator[Measured]:
    """Run a model by more and more threads."""
    preloaded = os.environ.get("LD_PRELOAD", "")
    if not any(Path(preloaded).name.split(".so")[0] in line for line in _lines("/proc/self/maps")):
        raise DsaError(f"{preloaded} is not loaded")
    run, planned_bytes = _RUNNERS[job.kind](job)
    gc.collect()
    before = _begin_peak()
    for threads in job.threads:
        seconds = _run_threads(run, threads, job.runs)
        yield Measured(threads, seconds, _status("VmHWM") - before, planned_bytes)


def _run_threads(run: Callable[[], object], threads: int, runs: int) -> list[tuple[float, float]]:
    """Times of all runs of all threads, which begin together when all are warm."""
    ready = threading.Barrier(threads)

    def work() -> list[tuple[float, float]]:
        try:
            run()
        finally:  # nobody waits for a thread that failed
            ready.wait()
        clocks = [(time.perf_counter(), time.thread_time())]
        for _ in range(runs):
            run()
            clocks.append((time.perf_counter(), time.thread_time()))
        return [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(clocks)]

    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(work) for _ in range(threads)]
        return [seconds for future in futures for seconds in future.result()]


def _begin_peak() -> int:
    """Forget the peak of the resident set so far, and say what the set is now."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)  # what setting up left behind
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(field: str) -> int:
    """Bytes that Linux reports of this process."""
    (line,) = (line for line in _lines("/proc/self/status") if line.startswith(f"{field}:"))
    return 1024 * int(line.split()[1])


def _lines(path: str) -> list[str]:
    return Path(path).read_text("utf-8", "replace").splitlines()


# -- models -----------------------------------------------------------------------------------


def _network(name: str) -> Any:
    return next(n for n in NETWORKS if type(n).__name__.lower() == name)


def _numpy(job: Job) -> tuple[Callable[[], object], int]:
    """A network of `dsa.bench.networks`."""
    arena, network = pickle.loads(Path(job.file).read_bytes())

    def run() -> None:
        with arena.run():
            network(Planned(arena))

    return (run if job.memory == ARENA else lambda: network(Ordinary())), arena.plan.peak


def _torch(job: Job) -> tuple[Callable[[], object], int]:
    """A module of `dsa.bench.modules`: its graph, rewritten or not."""
    import torch

    from dsa.bench.planned import PlannedModule

    torch.set_num_threads(1)
    module, x = MODULES[job.model]()
    ours = PlannedModule(module, (x,))
    run = ours if job.memory == ARENA else ours.ordinary
    return lambda: run(x), ours.arena.plan.peak


def _traffic(job: Job) -> tuple[Callable[[], object], int]:
    """The allocations and frees of a trace, and a byte written to each page, compiled."""
    problem = load(job.model)
    arena = Arena(plan(problem, alignment=64))
    begins, buffer = _events(problem)
    replay = _compiled(job.memory == ARENA)
    replay(begins[:0], buffer[:0], problem.size, arena.plan.offsets_array + 0)  # compiles it
    local = threading.local()

    def run() -> None:
        if not hasattr(local, "address"):
            local.block = arena.view(problem.ids[0], 0)  # keeps the memory
            local.address = arena.plan.offsets_array + (
                local.block.ctypes.data - arena.plan.offsets[0]
            )
        replay(begins, buffer, problem.size, local.address)

    return run, arena.plan.peak


def _compiled(planned: bool) -> Callable[..., None]:
    """A function that replays events; an ordinary run finds out the addresses for itself."""
    from numba import njit

    malloc, free, memset = _functions()

    @njit(nogil=True)
    def replay(begins: Any, buffer: Any, size: Any, planned_address: Any) -> None:
        address = planned_address.copy()
        for event in range(len(buffer)):
            at = buffer[event]
            if not planned and begins[event]:
                address[at] = malloc(size[at])
            if begins[event]:
                for offset in range(0, size[at], PAGE):
                    memset(address[at] + offset, 1, 1)
            elif not planned:
                free(address[at])

    return replay


def _events(problem: Problem) -> tuple[Any, Any]:
    """Allocations and frees in order of time, frees first: which of them they are, and whose."""
    n = len(problem)
    step = np.concatenate([problem.upper, problem.lower])
    begins = np.repeat([False, True], n)
    order = np.lexsort((begins, step))
    return begins[order], np.tile(np.arange(n), 2)[order]


def _functions() -> tuple[Any, Any, Any]:
    """The allocator of this process, as functions of integers."""
    library = ctypes.CDLL(None)
    malloc, free, memset = library.malloc, library.free, library.memset
    number = ctypes.c_ssize_t
    malloc.argtypes, malloc.restype = [number], number
    free.argtypes, free.restype = [number], None
    memset.argtypes, memset.restype = [number, ctypes.c_int, number], number
    return malloc, free, memset


_RUNNERS: dict[str, Callable[[Job], tuple[Callable[[], object], int]]] = {
    "traffic": _traffic,
    "numpy": _numpy,
    "torch": _torch,
}
_NEEDS = {"traffic": ["numba"], "numpy": [], "torch": ["torch"]}
_MODELS = {
    "traffic": list(TRACES),
    "numpy": [type(network).__name__.lower() for network in NETWORKS],
    "torch": list(MODULES),
}

if __name__ == "__main__":
    sys.exit(main())

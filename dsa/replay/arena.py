"""The arena: the memory of a plan, and who holds which bytes of it in a run.

An allocation is served as planned if the plan knows it, it is not larger than planned, it comes in
the plan's order, and nobody holds those bytes. The last is looked up, not taken from the plan:
bytes are never handed out twice, however a run strays and whatever the plan says.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from dsa.errors import InvalidPlanError, InvalidProblemError
from dsa.gate import LIMIT, as_integer
from dsa.result import Plan
from dsa.validation import validate

__all__ = ["Arena", "Tally"]

Bytes: TypeAlias = npt.NDArray[np.uint8]

_LINE = 64  # bytes of a cache line: every block starts at one
_FILL = 0xDB  # what bytes that nobody holds are filled with in guard mode


@dataclass(frozen=True, slots=True)
class Tally:
    """How the allocations of all finished runs were served.

    Parameters
    ----------
    runs
        Finished, by whatever thread.
    planned
        Allocations served from the arena, at the offset of the plan.
    unknown, larger, occupied, reordered
        Allocations served by the ordinary allocator: the plan has no buffer for them, has a
        smaller one, has bytes that another buffer of the run still held, or has one that begins
        before another that was served already.
    unknown_frees
        Frees of what was not live.
    survivors
        Not freed when their run ended.
    peak
        Highest byte of the arena that a run held.

    Examples
    --------
    >>> Tally(runs=1, planned=7, larger=1, peak=4096).strays
    1
    """

    runs: int = 0
    planned: int = 0
    unknown: int = 0
    larger: int = 0
    occupied: int = 0
    reordered: int = 0
    unknown_frees: int = 0
    survivors: int = 0
    peak: int = 0

    @property
    def strays(self) -> int:
        """Allocations that the ordinary allocator served."""
        return self.unknown + self.larger + self.occupied + self.reordered

    def __str__(self) -> str:
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        parts = [f"{runs}: {self.planned} allocations served as planned, up to byte {self.peak}"]
        if self.strays:
            parts.append(
                f"{self.strays} strayed ({self.unknown} unknown, {self.larger} larger, "
                f"{self.occupied} occupied, {self.reordered} in another order)"
            )
        others = {
            "unknown frees": self.unknown_frees,
            "still live at the end": self.survivors,
        }
        return "; ".join(parts + [f"{count} {what}" for what, count in others.items() if count])


class _Place(NamedTuple):
    """Where the plan puts a buffer."""

    id: Hashable
    offset: int
    size: int
    lower: int


class _Held(NamedTuple):
    """Where a buffer of a run is: at an offset of some memory."""

    memory: Bytes
    offset: int
    size: int


class _Run:
    """What one thread holds during one run."""

    __slots__ = (
        *("memory", "ordinals", "live", "starts", "ends", "owner"),
        *("counts", "lower", "peak"),
    )

    def __init__(self, memory: Bytes) -> None:
        self.memory = memory
        self.ordinals: dict[Hashable, int] = {}
        self.live: dict[Hashable, _Held] = {}
        # Bytes held in the arena: disjoint ranges in order, and the end and owner of each.
        self.starts: list[int] = []
        self.ends: dict[int, int] = {}
        self.owner: dict[int, Hashable] = {}
        self.counts: Counter[str] = Counter()
        self.lower, self.peak = -LIMIT, 0  # of what was served last; highest byte held

    def take(self, place: _Place, size: int) -> int | None:
        """Hold bytes of the arena; if some are held already, do not, and return where those begin.

        The ranges held are disjoint, so only the last one that begins before our end can meet us.
        """
        start, end = place.offset, place.offset + size
        at = bisect_left(self.starts, end)
        if at and self.ends[self.starts[at - 1]] > start:
            return self.starts[at - 1]
        self.starts.insert(at, start)
        self.ends[start] = end
        self.owner[start] = place.id
        self.peak = max(self.peak, end)
        return None

    def release(self, start: int) -> None:
        """Hold a range no longer."""
        del self.starts[bisect_left(self.starts, start)]
        del self.ends[start], self.owner[start]


class _Local(threading.local):
    """What each thread has: its block of memory, and its run."""

    memory: Bytes | None = None
    run: _Run | None = None


class Arena:
    """Memory laid out by a plan: one block for each thread that runs, allocated when it first does.

    The n-th allocation of a site in a run is the buffer with the id ``(site, n)``, counted from 0.
    Any other id is a site that allocates once.

    Parameters
    ----------
    plan
        Of a recorded run: what is not in it comes from the ordinary allocator. Its alignment is
        that of the views; make it 64 for kernels that want cache lines.
    guard
        Prove at run time that the plan holds: bytes that nobody holds are filled with a pattern,
        which must be intact when they are handed out, and when a run begins or ends; and two
        buffers that the plan itself puts onto the same bytes are an error. Costs a few passes over
        the bytes.

    Raises
    ------
    InvalidPlanError
        If two ids of the plan are the same allocation, ``"a"`` and ``("a", 0)``.

    Notes
    -----
    An allocation or a free takes O(log k) comparisons if k buffers are live, and no lock.

    A view must not be used after its buffer is freed or its run has ended, for its bytes are
    somebody else's then: copy what should last. In guard mode writing to it is found out.

    An arena pickles as its plan, without memory or tally.

    Examples
    --------
    >>> from dsa import Buffer, plan
    >>> arena = Arena(plan([Buffer(0, 2, 32, id="x"), Buffer(1, 3, 16, id="y")]))
    >>> with arena.run():
    ...     x = arena.allocate("x", 32)
    ...     arena.view(x, (4, 2), "f4")[:] = 1
    ...     arena.free(x)
    ...     z = arena.allocate("z", 64)
    >>> print(arena.tally)
    1 run: 1 allocations served as planned, up to byte 32; 1 strayed (1 unknown, 0 larger, \
0 occupied, 0 in another order); 1 still live at the end
    """

    def __init__(self, plan: Plan, *, guard: bool = False) -> None:
        if not isinstance(plan, Plan):
            raise TypeError(f"an arena is made of a Plan, got {plan!r}; give it plan(...) of that")
        self.plan = plan
        self.guard = guard
        self._places = _places(plan)
        self._by_id = {place.id: place for place in self._places.values()}
        self._alignment = math.lcm(plan.base_alignment, _LINE)
        self._local = _Local()
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._peak = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.plan, self.guard)

    def __repr__(self) -> str:
        return f"<Arena: {self.plan.headline}>"

    @contextmanager
    def run(self) -> Iterator[None]:
        """Begin a run on this thread, and end it with the block, whatever happens in it.

        Raises
        ------
        RuntimeError
            If a run is under way on this thread.
        MemoryError
            If there is no memory for the block.
        InvalidPlanError
            In guard mode, if bytes that nobody held were written, also since the last run.
        """
        if self._local.run is not None:
            raise RuntimeError("a run is under way on this thread; end it before the next")
        run = self._local.run = _Run(self._memory())
        try:
            if self.guard:
                _check_filled(run.memory, 0, self.plan.peak, "before the run began")
            yield
            if self.guard:
                self._check_free(run)
        finally:
            if self.guard:
                run.memory.fill(_FILL)
            self._local.run = None
            self._count(run)

    def allocate(self, site: Hashable, size: int) -> Hashable:
        """Serve the next allocation of a site in this thread's run, and return its id.

        Parameters
        ----------
        site
            As it was recorded.
        size
            Bytes, at least 0.

        Raises
        ------
        RuntimeError
            If no run is under way on this thread.
        InvalidProblemError
            If the size is no integer, negative, or 2**62 or more.
        InvalidPlanError
            In guard mode, if the plan gives the bytes to two buffers live together, or they were
            written while nobody held them.
        """
        run, size = self._running(), _size(size, site)
        ordinal = run.ordinals.get(site, 0)
        run.ordinals[site] = ordinal + 1
        place = self._places.get((site, ordinal))
        if place is None:
            return self._stray(run, "unknown", (site, ordinal), size)
        if size > place.size:
            return self._stray(run, "larger", place.id, size)
        if place.lower < run.lower:
            return self._stray(run, "reordered", place.id, size)
        if size:
            holder = run.take(place, size)
            if holder is not None:
                if self.guard:
                    self._check_plan(run.owner[holder], place.id)
                return self._stray(run, "occupied", place.id, size)
            if self.guard:
                before = f"before buffer {place.id!r} got it"
                _check_filled(run.memory, place.offset, place.offset + size, before)
        run.live[place.id] = _Held(run.memory, place.offset, size)
        run.counts["planned"] += 1
        run.lower = place.lower
        return place.id

    def free(self, id: Hashable) -> None:
        """Free a buffer of this thread's run; an id that is not live is counted and ignored.

        Raises
        ------
        RuntimeError
            If no run is under way on this thread.
        """
        run = self._running()
        held = run.live.pop(id, None)
        if held is None:
            run.counts["unknown_frees"] += 1
        elif held.memory is run.memory and held.size:
            run.release(held.offset)
            if self.guard:
                held.memory[held.offset : held.offset + held.size] = _FILL

    def view(
        self, id: Hashable, shape: int | Sequence[int], dtype: npt.DTypeLike = np.uint8
    ) -> npt.NDArray[Any]:
        """A NumPy array over the bytes of a buffer.

        In a run, wherever the run has put it. Outside a run, where the plan puts it in this
        thread's block: for those who bind all views once and follow the plan by themselves.

        Parameters
        ----------
        id
            What `allocate` returned; outside a run, an id of the plan.
        shape, dtype
            Of the array, in C order; at most as many bytes as the buffer has.

        Raises
        ------
        KeyError
            If the buffer is not live in the run, or not in the plan.
        ValueError
            If the array does not fit into the buffer, or bytes cannot be one: a length below 0, a
            type without a size or with references to objects.
        """
        run = self._local.run
        if run is not None:
            if id not in run.live:
                raise KeyError(f"buffer {id!r} is not live in this run: allocate it first")
            memory, offset, size = run.live[id]
        elif id in self._by_id:
            memory, offset, size = self._memory(), self._by_id[id].offset, self._by_id[id].size
        else:
            raise KeyError(f"the plan has no buffer {id!r}, and no run is under way on this thread")
        try:
            lengths, kind = _lengths(shape), _kind(dtype)
        except ValueError as error:
            raise ValueError(f"buffer {id!r}: {error}") from None
        wanted = math.prod(lengths) * kind.itemsize
        if wanted > size:
            raise ValueError(
                f"buffer {id!r}: an array of shape {lengths} and type {kind} needs {wanted} B, "
                f"but the buffer has {size} B"
            )
        return np.ndarray(lengths, kind, memory, offset)

    @property
    def tally(self) -> Tally:
        """How the finished runs were served."""
        with self._lock:
            return Tally(**self._counts, peak=self._peak)

    # -- inside ------------------------------------------------------------------------------

    def _memory(self) -> Bytes:
        if self._local.memory is None:
            self._local.memory = _aligned(self.plan.peak, self._alignment)
            if self.guard:
                self._local.memory.fill(_FILL)
        return self._local.memory

    def _running(self) -> _Run:
        run = self._local.run
        if run is None:
            raise RuntimeError("no run is under way on this thread; begin one: with arena.run()")
        return run

    def _stray(self, run: _Run, why: str, id: Hashable, size: int) -> Hashable:
        run.live[id] = _Held(_aligned(size, self._alignment), 0, size)
        run.counts[why] += 1
        return id

    def _count(self, run: _Run) -> None:
        with self._lock:
            self._counts += run.counts
            self._counts["runs"] += 1
            self._counts["survivors"] += len(run.live)
            self._peak = max(self._peak, run.peak)

    # -- guard mode --------------------------------------------------------------------------

    def _check_plan(self, *ids: Hashable) -> None:
        """Refuse two buffers that the plan itself puts onto the same bytes; else the run strays."""
        problem = self.plan.problem
        pair = np.array([problem.index(id) for id in ids])
        violations = validate(self.plan.offsets_array[pair], problem.select(pair))
        if violations:
            raise InvalidPlanError(
                f"the plan does not hold: {violations[0]}", violations=violations
            )

    def _check_free(self, run: _Run) -> None:
        """Refuse a write to bytes between those that are held."""
        free = 0
        for start in run.starts:
            _check_filled(run.memory, free, start)
            free = run.ends[start]
        _check_filled(run.memory, free, self.plan.peak)


def _check_filled(memory: Bytes, start: int, end: int, when: str = "") -> None:
    intact = memory[start:end] == _FILL
    if intact.all():
        return
    at = start + int(intact.argmin())
    raise InvalidPlanError(
        f"the plan does not hold for this run: byte {at} was written while no buffer held it"
        f"{when and ', '}{when}; look for a view used after its free, or a write beyond its end"
    )


def _size(size: int, site: Hashable) -> int:
    """The size, checked."""
    try:
        size, what = as_integer(size), f"be at least 0 and below 2**62, got {size}"
        if 0 <= size < LIMIT:
            return size
    except TypeError:
        what = f"be an integer, got {size!r}"
    raise InvalidProblemError(f"site {site!r}: size must {what}", field="size", value=size)


def _lengths(shape: int | Sequence[int]) -> tuple[int, ...]:
    """The shape, checked: NumPy would let a length of -1 be all the memory that follows."""
    try:
        several = isinstance(shape, Sequence) and not isinstance(shape, str)
        values: Any = shape if several else (shape,)
        lengths = tuple(map(as_integer, values))
    except TypeError:
        raise ValueError(f"shape must be an integer or several, got {shape!r}") from None
    if min(lengths, default=0) < 0:
        raise ValueError(f"shape {lengths} has a length below 0")
    return lengths


def _kind(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """The type, checked: bytes of an arena are no references, which NumPy would follow."""
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise ValueError(f"type {kind} has references, and these bytes are none")
    if not kind.itemsize:
        raise ValueError(f"type {kind!s} has no size")
    return kind


def _rebuild(plan: Plan, guard: bool) -> Arena:
    return Arena(plan, guard=guard)


def _places(plan: Plan) -> dict[tuple[Hashable, int], _Place]:
    """What the plan has for the n-th allocation of a site."""
    problem = plan.problem
    columns = (plan.offsets, problem.size.tolist(), problem.lower.tolist())
    places: dict[tuple[Hashable, int], _Place] = {}
    for id, offset, size, lower in zip(problem.ids, *columns, strict=True):
        place = _Place(id, offset if size else 0, size, lower)  # nothing may be beyond the peak
        key = _key(id)
        if key in places:
            raise InvalidPlanError(
                f"ids {places[key].id!r} and {id!r} are the same allocation: the first of "
                f"site {key[0]!r}"
            )
        places[key] = place
    return places


def _key(id: Hashable) -> tuple[Hashable, int]:
    if isinstance(id, tuple) and len(id) == 2 and isinstance(id[1], int):
        return id
    return id, 0


def _aligned(size: int, alignment: int) -> Bytes:
    """Memory that begins at a multiple of the alignment."""
    raw = np.empty(size + alignment - 1, np.uint8)
    start = -raw.ctypes.data % alignment
    return raw[start : start + size]

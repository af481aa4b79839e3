"""The Python side of `search`: columns in, restarts, room to grow, compiled or not."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from dsa.kernels import search as kernel
from dsa.kernels.compiled import compiled
from dsa.kernels.search import (
    CHILD,
    DEPTH,
    FULL,
    LOG,
    NODES,
    POOL,
    TRAIL,
    Frames,
    Model,
    Options,
    State,
    search,
)
from dsa.problem import IntArray, Problem

__all__ = ["HELPERS", "Searcher"]

HELPERS = tuple(
    function
    for name, function in inspect.getmembers(kernel, inspect.isfunction)
    if name.startswith("_")
)
TABLE = 1 << 16  # entries of the table of refuted components
POOL_LIMIT = 1 << 22  # integers that describe them


class Searcher:
    """A component being searched: begin at a capacity, run for some nodes, begin again.

    Refuted components are kept from one beginning to the next, as long as the capacity does not
    rise. The results do not depend on whether the kernel is compiled, which may change between
    runs.

    Examples
    --------
    >>> searcher = Searcher(Problem([(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)]))
    >>> searcher.begin(np.arange(4), capacity=88)
    >>> searcher.run(100) == kernel.FOUND, searcher.offsets.tolist()
    (True, [44, 0, 48, 0])
    """

    def __init__(
        self,
        problem: Problem,
        *,
        one_machine: bool = False,
        components: bool = True,
        backjumping: bool = True,
        nogoods: bool = True,
        symmetry: bool = True,
        log: bool = False,
    ) -> None:
        self._switches = (one_machine, components, backjumping, nogoods, symmetry, log)
        sections = problem.sections
        self._order = np.lexsort((sections.stop, sections.start))
        self._problem = problem
        columns = {
            "start": sections.start,
            "stop": sections.stop,
            "size": problem.size,
            "alignment": problem.alignment,
            "pin": problem.pin,
        }
        self._columns = {name: column[self._order] for name, column in columns.items()}
        self._lay_out(len(sections))
        self._capacity = -1
        self._compiled = False
        self._model: Any = None
        self._state: Any = None
        self._frames: Any = None
        self._table: Any = np.full(TABLE, -1)
        self._pool: Any = np.zeros(1 << 12, np.int64)
        self._log: Any = np.zeros(1 << 10, np.int64)

    def _lay_out(self, count: int) -> None:
        """The static part: pairs, slots and the state before the first decision."""
        start, stop = self._columns["start"], self._columns["stop"]
        n, length = len(start), stop - start
        pair = np.concatenate([[0], np.cumsum(length)])
        buffer = np.repeat(np.arange(n), length)
        section = np.arange(pair[-1]) - np.repeat(pair[:-1] - start, length)
        order = np.argsort(section, kind="stable")
        live = np.bincount(section, minlength=count)
        slot = np.concatenate([[0], np.cumsum(live)])
        buffers, place = buffer[order], np.empty(len(order), np.int64)
        place[order] = np.arange(len(order)) - np.repeat(slot[:-1], live)
        crossing = np.zeros(count + 1, np.int64)
        np.add.at(crossing, start + 1, 1)
        np.add.at(crossing, stop, -1)
        crossing = np.cumsum(crossing)
        lowest = np.maximum(self._columns["pin"], 0)
        floor = np.minimum.reduceat(lowest[buffers], slot[:-1])
        at_floor = lowest[buffers] == np.repeat(floor, live)
        self._static = {
            "first": np.searchsorted(start, np.arange(count + 1)),
            "pair": pair,
            "slot": slot,
        }
        self._initial = {
            "floor": floor,
            "rest": np.add.reduceat(self._columns["size"][buffers], slot[:-1]),
            "waiting": np.add.reduceat(at_floor.astype(np.int64), slot[:-1]),
            "children": np.add.reduceat(at_floor.astype(np.int64), slot[:-1]),
            "crossing": crossing,
            "live": live,
            "beneath": np.full(count, -1),
            "lowest": lowest,
            "support": lowest,
            "offset": np.zeros(n, np.int64),
            "placed": np.zeros(n, np.int64),
            "buffers": buffers,
            "place": place,
            "dirty": np.zeros(count, np.int64),
            "stamp": np.zeros(count, np.int64),
            "scratch": np.zeros(n, np.int64),
        }

    @property
    def pairs(self) -> int:
        """How many (buffer, section) pairs there are: what the memory and a node may cost."""
        return len(self._initial["buffers"])

    def begin(self, rank: IntArray, *, capacity: int, rule: int = 0) -> None:
        """Start at the root.

        Parameters
        ----------
        rank
            Preference of each buffer of the problem: the least is tried first.
        capacity
            Bytes within which a plan is looked for.
        rule
            Which section is decided next: 0, fewest children, then most bytes unplaced; 1, the
            same, but three children or more are equal; 2, fewest children, then least slack; 3,
            lowest floor; 4, least slack.
        """
        if capacity > self._capacity:
            self._table, self._pool = np.full(TABLE, -1), np.zeros(1 << 12, np.int64)
            used = 0
        else:
            used = self._state.register[POOL]
        self._capacity = capacity
        rank = rank[self._order]
        twin = self._twins(rank)
        self._model = Model(**self._columns, rank=rank, twin=twin, **self._static)
        room = 8 * (7 * len(self._initial["floor"]) + 2 * len(rank))
        register = np.zeros(16, np.int64)
        register[POOL] = used
        self._state = State(
            **{name: column.copy() for name, column in self._initial.items()},
            trail_entry=np.zeros(room, np.int64),
            trail_value=np.zeros(room, np.int64),
            register=register,
        )
        size = len(rank) + 256
        self._frames = Frames(*(np.zeros(size, np.int64) for _ in Frames._fields))
        shift = max(capacity.bit_length() - 30, 0)
        self._options = Options(capacity, shift, rule, *self._switches)
        self._convert(self._compiled)

    def _twins(self, rank: IntArray) -> IntArray:
        """For each buffer the one before it, by rank, that differs in nothing else."""
        kind = np.stack([self._columns[name] for name in ("start", "stop", "size", "alignment")])
        order = np.lexsort((rank, *kind))
        same = (kind[:, order[1:]] == kind[:, order[:-1]]).all(axis=0)
        pinned = self._columns["pin"][order] >= 0
        same &= ~pinned[1:] & ~pinned[:-1]
        twin = np.full(len(rank), -1)
        twin[order[1:][same]] = order[:-1][same]
        return twin

    def run(self, nodes: int, *, compile: bool = False) -> int:
        """Search on for at most `nodes` nodes; see `search` for what is returned.

        Parameters
        ----------
        compile
            Whether to run the compiled kernel.
        """
        if compile != self._compiled:
            self._convert(compile)
        run = compiled(search, *HELPERS) if compile else search
        register = self._state.register
        stop = int(register[NODES]) + nodes
        while True:
            left = stop - int(register[NODES])
            status: int = run(
                self._model,
                self._state,
                self._frames,
                self._table,
                self._pool,
                self._log,
                self._options,
                left,
            )
            if status != FULL:
                return status
            self._grow()

    def _grow(self) -> None:
        """Twice the room for what is short of it; a pool at its limit starts afresh."""
        register, state, frames = self.register, self._state, self._frames
        count, sections = len(self._order), len(state.floor)
        if register[TRAIL] + 7 * sections + 2 * count > len(state.trail_entry):
            self._state = state._replace(
                trail_entry=self._double(state.trail_entry),
                trail_value=self._double(state.trail_value),
            )
        if register[DEPTH] + 1 >= len(frames.section):
            columns = {name: self._double(getattr(frames, name)) for name in Frames._fields[:-1]}
            self._frames = frames._replace(**columns)
        if register[CHILD] + count > len(frames.children):
            self._frames = self._frames._replace(children=self._double(frames.children))
        if register[LOG] + 1 >= len(self._log):
            self._log = self._double(self._log)
        if register[POOL] + 3 + sections + count > len(self._pool):
            if len(self._pool) < POOL_LIMIT:
                self._pool = self._double(self._pool)
            else:
                state.register[POOL] = 0
                self._table = self._native(np.full(TABLE, -1))

    def _double(self, column: Any) -> Any:
        return np.concatenate([column, column]) if self._compiled else column * 2

    def _native(self, column: Any) -> Any:
        """Arrays for the compiled kernel, lists otherwise."""
        if self._compiled:
            return np.asarray(column, np.int64)
        return column.tolist() if isinstance(column, np.ndarray) else column

    def _convert(self, compile: bool) -> None:
        self._compiled = compile
        self._model = Model(*map(self._native, self._model))
        self._state = State(*map(self._native, self._state))
        self._frames = Frames(*map(self._native, self._frames))
        self._table, self._pool = self._native(self._table), self._native(self._pool)
        self._log = self._native(self._log)

    @property
    def nodes(self) -> int:
        """Nodes since `begin`."""
        return int(self._state.register[NODES])

    @property
    def register(self) -> list[int]:
        """The kernel's counters."""
        return [int(value) for value in self._state.register]

    @property
    def log(self) -> list[int]:
        """Sections decided, in preorder, without what had no part in the refutation."""
        return [int(value) for value in self._log[: self._state.register[LOG]]]

    @property
    def offsets(self) -> IntArray:
        """The plan found, in the order of the problem's buffers."""
        offsets = np.empty(len(self._order), np.int64)
        offsets[self._order] = np.asarray(self._state.offset, np.int64)
        return offsets

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
    Layout,
    Options,
    search,
)
from dsa.problem import IntArray, Problem

__all__ = ["HELPERS", "Searcher"]

HELPERS = tuple(
    function
    for name, function in inspect.getmembers(kernel, inspect.isfunction)
    if name.startswith("_")
)
TABLE = 1 << 16  # entries of the table of refuted components, at most
POOL_LIMIT = 1 << 22  # integers that describe them
REGISTERS = 16
FRAME = Layout._fields[Layout._fields.index("section") : Layout._fields.index("frames_room")]


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
    (True, [0, 44, 0, 40])
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
        nogoods = nogoods and (components or not log)  # a log knows nogoods of components only
        self._logs = log
        self._switches = (one_machine, components, backjumping, nogoods, symmetry, log)
        sections = problem.sections
        self._order = np.lexsort((sections.stop, sections.start))
        columns = {
            "start": sections.start,
            "stop": sections.stop,
            "size": problem.size,
            "alignment": problem.alignment,
            "pin": problem.pin,
        }
        self._columns = {name: column[self._order] for name, column in columns.items()}
        kinds = np.stack(list(self._columns.values()))
        self._kind = np.unique(kinds, axis=1, return_inverse=True)[1].ravel()
        self._sections = len(sections)
        self._add_columns()
        self._initial = np.concatenate(list(self._columns.values()))
        self._capacity = -1
        self._compiled = False
        n = len(self._order)
        room = {"choices": 4 * n + 256, **dict.fromkeys(FRAME, n + 256)}
        room["trail"] = 16 * (4 * self._sections + 3 * n + 3)
        grown = {name: np.zeros(length, np.int64) for name, length in room.items()}
        self._memory: Any = self._native(self._lay_out({**self._columns, **grown}))
        self._table: Any = self._native(self._empty_table())
        self._pool: Any = self._native(np.zeros(1 << 12, np.int64))
        self._log: Any = self._native(np.zeros(1 << 10, np.int64))

    def _empty_table(self) -> IntArray:
        return np.full(min(TABLE, 256 * len(self._order)), -1)

    def _add_columns(self) -> None:
        """What does not depend on a capacity: pairs, slots, the state before any decision."""
        count = self._sections
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
        self._columns |= {
            "register": np.zeros(REGISTERS, np.int64),
            "rank": np.zeros(n, np.int64),
            "twin": np.zeros(n, np.int64),
            "pair": pair,
            "first": np.searchsorted(start, np.arange(count + 1)),
            "slot": slot,
            "floor": floor,
            "rest": np.add.reduceat(self._columns["size"][buffers], slot[:-1]),
            "waiting": np.add.reduceat(at_floor.astype(np.int64), slot[:-1]),
            "children": np.add.reduceat(at_floor.astype(np.int64), slot[:-1]),
            "crossing": crossing,
            "live": live,
            "beneath": np.full(count, -1),
            "arrivals": np.zeros(count, np.int64),
            "lowest": lowest,
            "support": lowest,
            "offset": np.zeros(n, np.int64),
            "placed": np.zeros(n, np.int64),
            "scratch": np.zeros(n, np.int64),
            "buffers": buffers,
            "place": place,
        }

    def begin(
        self, rank: IntArray, *, capacity: int, rule: int = 0, undone: int = kernel.INFINITY
    ) -> None:
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
        undone
            Decisions that may be undone before the search is given up.
        """
        used = self.register[POOL]
        if capacity > self._capacity or self._logs:  # a log cannot refer to an earlier one
            self._table, used = self._native(self._empty_table()), 0
        self._capacity = capacity
        base, n, rank = self._base, len(rank), rank[self._order]
        self._initial[base.register + POOL] = used
        self._initial[base.rank : base.rank + n] = rank
        self._initial[base.twin : base.twin + n] = self._twins(rank)
        self._memory[: len(self._initial)] = self._native(self._initial)
        shift = max(capacity.bit_length() - 30, 0)
        self._options = Options(capacity, shift, rule, undone, *self._switches)

    def _lay_out(self, columns: dict[str, IntArray]) -> IntArray:
        """Put the columns into one block of memory."""
        ends = np.cumsum([len(column) for column in columns.values()]).tolist()
        begins = dict(zip(columns, [0, *ends], strict=False))
        self._base = Layout(
            section_count=self._sections,
            buffer_count=len(self._order),
            trail_room=len(columns["trail"]),
            frames_room=len(columns["section"]),
            choices_room=len(columns["choices"]),
            **begins,
        )
        return np.concatenate(list(columns.values()))

    def _twins(self, rank: IntArray) -> IntArray:
        """For each buffer the one before it, by rank, that differs in nothing else."""
        order = np.lexsort((rank, self._kind))
        same = self._kind[order[1:]] == self._kind[order[:-1]]  # no two are pinned to one place
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
        stop = self.nodes + nodes
        while True:
            status: int = run(
                self._memory,
                self._base,
                self._table,
                self._pool,
                self._log,
                self._options,
                stop - self.nodes,
            )
            if status != FULL:
                return status
            self._grow()

    def _grow(self) -> None:
        """Twice the room for what is short of it; a pool at its limit starts afresh."""
        register, base = self.register, self._base
        short: list[str] = []
        if register[TRAIL] + 4 * base.section_count + 3 * base.buffer_count + 3 > base.trail_room:
            short.append("trail")
        if register[DEPTH] + 1 >= base.frames_room:
            short += FRAME
        if register[CHILD] + base.buffer_count > base.choices_room:
            short.append("choices")
        if short:
            self._double_columns(short)
        if register[LOG] + register[DEPTH] + 1 >= len(self._log):
            self._log = self._double(self._log)
        if register[POOL] + 4 + base.section_count + base.buffer_count > len(self._pool):
            if len(self._pool) < POOL_LIMIT:
                self._pool = self._double(self._pool)
            else:
                self._memory[base.register + POOL] = 0
                self._table = self._native(self._empty_table())

    def _double_columns(self, names: list[str]) -> None:
        begins = self._base._asdict()
        for name in ("section_count", "buffer_count", "trail_room", "frames_room", "choices_room"):
            del begins[name]
        order = sorted(begins, key=begins.__getitem__)
        memory = np.asarray(self._memory, np.int64)
        parts = np.split(memory, [begins[name] for name in order[1:]])
        columns = dict(zip(order, parts, strict=True))
        for name in names:
            columns[name] = np.concatenate([columns[name], np.zeros_like(columns[name])])
        self._memory = self._native(self._lay_out(columns))

    def _double(self, column: Any) -> Any:
        return np.concatenate([column, column]) if self._compiled else column * 2

    def _native(self, column: Any) -> Any:
        """Arrays for the compiled kernel, lists otherwise."""
        if self._compiled:
            return np.asarray(column, np.int64)
        return column.tolist() if isinstance(column, np.ndarray) else column

    def _convert(self, compile: bool) -> None:
        self._compiled = compile
        self._memory = self._native(self._memory)
        self._table, self._pool = self._native(self._table), self._native(self._pool)
        self._log = self._native(self._log)

    @property
    def nodes(self) -> int:
        """Nodes since `begin`."""
        return int(self._memory[self._base.register + NODES])

    @property
    def given_up(self) -> bool:
        """Whether as many decisions are undone as may be."""
        register = self.register
        return register[NODES] - register[DEPTH] >= self._options.undone

    @property
    def register(self) -> list[int]:
        """The kernel's counters."""
        begin = self._base.register
        return [int(value) for value in self._memory[begin : begin + REGISTERS]]

    @property
    def log(self) -> list[int]:
        """What was decided and refuted, as `dsa.proof.Proof` describes it."""
        return [int(value) for value in self._log[: self.register[LOG]]]

    @property
    def offsets(self) -> IntArray:
        """The plan found, in the order of the problem's buffers."""
        begin = self._base.offset
        offsets = np.empty(len(self._order), np.int64)
        offsets[self._order] = self._memory[begin : begin + len(offsets)]
        return offsets

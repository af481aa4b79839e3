"""The definitions, written to be obviously right and not fast."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from dsa import Problem


def conflicts(problem: Problem) -> set[tuple[int, int]]:
    """Pairs of positions, lower first, of buffers with a size whose lifetimes meet."""
    rows = list(enumerate(problem))
    return {
        (i, j)
        for (i, a), (j, b) in combinations(rows, 2)
        if a.size and b.size and a.lower < b.upper and b.lower < a.upper
    }


def live_sets(problem: Problem) -> dict[int, frozenset[int]]:
    """Positions of the buffers with a size that are live at each step where a buffer starts."""
    solid = [(i, row) for i, row in enumerate(problem) if row.size]
    return {
        step: frozenset(i for i, row in solid if row.lower <= step < row.upper)
        for step in sorted(row.lower for _, row in solid)
    }


def maximal_live_sets(problem: Problem) -> list[frozenset[int]]:
    """Those live sets that no other contains, in time order."""
    live = list(live_sets(problem).values())
    maximal = [one for one in live if not any(one < other for other in live)]
    return list(dict.fromkeys(maximal))


def load(problem: Problem) -> int:
    """Most bytes live at a step where a buffer starts."""
    sums = [sum(problem[i].size for i in live) for live in live_sets(problem).values()]
    return max(sums, default=0)


def components(problem: Problem) -> set[frozenset[int]]:
    """Sets of positions connected by conflicts."""
    groups = [{i} for i, row in enumerate(problem) if row.size]
    for i, j in conflicts(problem):
        joined = [group for group in groups if i in group or j in group]
        groups = [group for group in groups if group not in joined] + [set().union(*joined)]
    return {frozenset(group) for group in groups}


def broken_rules(problem: Problem, offsets: Sequence[int]) -> set[tuple[str, frozenset[int]]]:
    """Kind of each broken rule and the positions of the buffers concerned."""
    rows = list(zip(problem, offsets, strict=True))
    broken = {("negative", frozenset({i})) for i, (_, at) in enumerate(rows) if at < 0}
    for i, (row, at) in enumerate(rows):
        if at % row.alignment:
            broken.add(("misaligned", frozenset({i})))
        if row.offset is not None and at != row.offset:
            broken.add(("moved pin", frozenset({i})))
        if problem.capacity is not None and row.size and at + row.size > problem.capacity:
            broken.add(("over capacity", frozenset({i})))
    for i, j in conflicts(problem):
        if shared_bytes(problem, offsets, i, j)[0] < shared_bytes(problem, offsets, i, j)[1]:
            broken.add(("overlap", frozenset({i, j})))
    return broken


def shared_bytes(problem: Problem, offsets: Sequence[int], i: int, j: int) -> tuple[int, int]:
    """The bytes that two buffers both hold, from and to; nothing if from is not below to."""
    ends = offsets[i] + problem[i].size, offsets[j] + problem[j].size
    return max(offsets[i], offsets[j]), min(ends)

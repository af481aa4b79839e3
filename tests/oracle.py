"""The definitions, written to be obviously right and not fast."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations, permutations

from dsa import Buffer, Problem


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
    return broken | _broken_alone(problem, offsets) | _broken_between(problem, offsets)


def _broken_alone(problem: Problem, offsets: Sequence[int]) -> set[tuple[str, frozenset[int]]]:
    """Buffers on reserved bytes or across a chunk."""
    rules, broken = problem.constraints, set()
    for i, (row, at) in enumerate(zip(problem, offsets, strict=True)):
        if rules.chunk and row.size and at // rules.chunk != (at + row.size - 1) // rules.chunk:
            broken.add(("across a chunk", frozenset({i})))
        for step in steps(problem):
            used = kept(row, step, at)
            if any(common(used, reserved) for reserved in rules.reserved):
                broken.add(("reserved", frozenset({i})))
    return broken


def _broken_between(problem: Problem, offsets: Sequence[int]) -> set[tuple[str, frozenset[int]]]:
    """Pairs that share bytes, or are not at their distance."""
    rules, broken = problem.constraints, set()
    rows = list(enumerate(zip(problem, offsets, strict=True)))
    for (i, (a, at)), (j, (b, bt)) in permutations(rows, 2):
        pair = frozenset({i, j})
        for name, other, delta in (*rules.aliases, *rules.relative):
            if (name, other) == (a.id, b.id) and bt - at != delta:
                broken.add(("wrong distance", pair))
        if (a.id, b.id) in rules.apart and common((at, at + a.size), (bt, bt + b.size)):
            broken.add(("not apart", pair))
        in_place = {(a.id, b.id), (b.id, a.id)} & set(rules.in_place) and at == bt
        if not (in_place or may_share(problem, a.id, b.id)) and any(
            common(kept(a, step, at), kept(b, step, bt)) for step in steps(problem)
        ):
            broken.add(("overlap", pair))
    return broken


def steps(problem: Problem) -> set[int]:
    """Steps between which nothing changes."""
    holes = {step for row in problem for hole in row.holes for step in hole[:2]}
    return holes | {row.lower for row in problem}


def kept(row: Buffer, step: int, at: int) -> tuple[int, int]:
    """The bytes that a buffer at an offset keeps at a step, from and to."""
    if not row.lower <= step < row.upper:
        return at, at
    for lower, upper, *window in row.holes:
        if lower <= step < upper:
            return (at + window[0], at + window[1]) if window else (at, at)
    return at, at + row.size


def common(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether two ranges of bytes, from and to, have a byte in common."""
    return max(a[0], b[0]) < min(a[1], b[1])


def may_share(problem: Problem, a: Hashable, b: Hashable) -> bool:
    """Whether two buffers are exclusive, or aliases, perhaps by way of others."""
    if {(a, b), (b, a)} & set(problem.constraints.exclusive):
        return True
    reached, pending = set(), [a]
    while pending:
        id = pending.pop()
        reached.add(id)
        for x, y, _ in problem.constraints.aliases:
            pending += [
                other for one, other in ((x, y), (y, x)) if one == id and other not in reached
            ]
    return b in reached

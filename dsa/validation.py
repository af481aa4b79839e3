"""The judge: which rules of its problem a plan breaks.

Imports nothing that places buffers: what is judged here was made elsewhere.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dsa.gate import as_integer
from dsa.kernels.compiled import Kernel
from dsa.problem import FREE, LIMIT, Intervals, Problem

__all__ = ["Violation", "validate"]


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule and its witness.

    Parameters
    ----------
    kind
        ``"overlap"``: two buffers live together share bytes. ``"misaligned"``: an offset is no
        multiple of its alignment. ``"moved pin"``: a pinned buffer is elsewhere.
        ``"over capacity"``, ``"negative"``, ``"not an integer"``: of one offset. ``"missing"``:
        a buffer has no offset. ``"extra"``: an offset has no buffer. ``"not apart"``,
        ``"wrong distance"``, ``"reserved"``, ``"across a chunk"``: a constraint of that name is
        broken, the second one of `aliases` or `relative`.
    ids
        The buffers concerned: two for an overlap or a rule between two, otherwise one.
    message
        The rule and the values, in words.
    steps
        Half-open range of the steps at which the rule is broken, if it concerns steps.
    bytes
        Half-open range of the bytes concerned, if it concerns bytes.

    Examples
    --------
    >>> for violation in validate([0, 0], [(0, 2, 8), (1, 4, 8)]):
    ...     print(violation)
    overlap: buffers 0 and 1 share bytes [0, 8) in steps [1, 2)
    """

    kind: str
    ids: tuple[Hashable, ...]
    message: str
    steps: tuple[int, int] | None = None
    bytes: tuple[int, int] | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class _Planned(Protocol):
    """What is read of a `Plan` (which this module does not import)."""

    @property
    def problem(self) -> Problem: ...
    @property
    def offsets(self) -> Sequence[int]: ...


Offsets: TypeAlias = "_Planned | Mapping[Any, Any] | Sequence[Any] | npt.NDArray[Any]"


def validate(
    plan: Offsets, intervals: Intervals | None = None, *, capacity: int | None = None
) -> tuple[Violation, ...]:
    """List every rule that a plan breaks; an empty result proves that the plan holds.

    O(n log n) for a valid plan. A plan with overlaps, or with constraints, is swept once more to
    list every pair, O(n x most buffers live together).

    Parameters
    ----------
    plan
        A `Plan`, a mapping from id to offset, or offsets in the order of the buffers.
    intervals
        The problem to check against, as for `Problem`. A `Plan` brings its own, but may be
        checked against other lifetimes: offsets then belong to buffers of the same id.
    capacity
        Bytes available; that of the problem if None.

    Returns
    -------
    tuple of Violation
        Kind by kind, each in order of the buffers; overlaps last.

    Raises
    ------
    TypeError
        If `plan` holds no offsets, or its intervals are needed and not given.
    InvalidProblemError
        If the intervals are no problem.

    Examples
    --------
    >>> validate([0, 8], [(0, 2, 8), (1, 4, 8)])
    ()
    >>> [v.kind for v in validate([4], [(0, 1, 8)], capacity=8)]
    ['over capacity']
    """
    _check_kind(plan)
    if intervals is None:
        if isinstance(plan, (Mapping, Sequence, np.ndarray)):
            raise TypeError("validate() needs the intervals, unless it is given a Plan")
        intervals = plan.problem
    problem = Problem(intervals, capacity=capacity)
    given, violations = _match(plan, problem)
    offsets, placed, unfit = _read(given, problem)
    violations += unfit
    violations += _single(problem, offsets, placed)
    solid = np.flatnonzero(placed & (problem.size > 0))
    if problem.constrained:
        violations += _broken_rules(problem, offsets.tolist(), set(np.flatnonzero(placed).tolist()))
        violations += _overlaps_of_parts(problem, offsets, solid.tolist())
    elif _overlap_exists(problem, offsets, solid):
        violations += _overlaps(problem, offsets, solid)
    return tuple(violations)


def _check_kind(plan: Any) -> None:
    """Refuse what holds no offsets, or none in order."""
    listed = isinstance(plan, (Mapping, Sequence)) and not isinstance(plan, (str, bytes, bytearray))
    array = isinstance(plan, np.ndarray) and plan.ndim > 0
    if not (listed or array or (hasattr(plan, "problem") and hasattr(plan, "offsets"))):
        raise TypeError(
            "validate() takes a Plan, a mapping from id to offset, or offsets in the order of the "
            f"buffers, not {type(plan).__name__}: {plan!r}"
        )


_ABSENT: Any = object()


def _match(plan: Offsets, problem: Problem) -> tuple[Any, list[Violation]]:
    """Offsets as given, one for each buffer or `_ABSENT`, and what has no partner."""
    given: Any = plan
    if not isinstance(plan, (Mapping, Sequence, np.ndarray)):
        own = plan.problem
        given = getattr(plan, "offsets_array", None)
        if given is None:
            given = plan.offsets
        if own is not problem and own.ids != problem.ids:
            given = dict(zip(own.ids, given, strict=True))
    if isinstance(given, Mapping):
        known = set(problem.ids)
        extra = [id for id in given if id not in known]
        given = [given.get(id, _ABSENT) for id in problem.ids]
        missing = [id for id, offset in zip(problem.ids, given, strict=True) if offset is _ABSENT]
    else:
        missing = list(problem.ids[len(given) :])
        extra = list(range(len(problem), len(given)))
        array = isinstance(given, np.ndarray)
        given = given[: len(problem)] if array else list(islice(given, len(problem)))
    violations = [Violation("missing", (id,), f"buffer {id!r} has no offset") for id in missing]
    violations += [
        Violation("extra", (id,), f"offset for {id!r}, which is no buffer of the problem")
        for id in extra
    ]
    return given, violations


def _read(
    given: Any, problem: Problem
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], list[Violation]]:
    """Offsets, which of them are there, and what is no offset."""
    n = len(problem)
    offsets, placed = np.zeros(n, np.int64), np.zeros(n, bool)
    whole = _as_column(given)
    if whole is not None and len(whole) == n and ((whole > -LIMIT) & (whole < LIMIT)).all():
        return whole, ~placed, []
    violations = []
    for i, value in enumerate(given.tolist() if isinstance(given, np.ndarray) else given):
        if value is _ABSENT:
            continue
        try:
            offset = as_integer(value)
        except TypeError:
            kind = "missing" if value is None else "not an integer"
            violations.append(_of_one(problem, i, kind, f"has offset {value!r}"))
            continue
        if abs(offset) >= LIMIT:
            kind = "negative" if offset < 0 else "over capacity"
            violations.append(_of_one(problem, i, kind, f"has offset {offset}"))
            continue
        offsets[i], placed[i] = offset, True
    return offsets, placed, violations


def _as_column(given: Any) -> npt.NDArray[np.int64] | None:
    """The offsets at once, where all are plain integers of 64 bits; None where one may not be."""
    if isinstance(given, np.ndarray):
        plain = type(given) is np.ndarray and given.dtype.kind == "i" and given.ndim == 1
        return given.astype(np.int64) if plain else None
    if set(map(type, given)) != {int}:
        return None
    try:
        return np.array(given, np.int64)
    except OverflowError:
        return None


def _of_one(problem: Problem, i: int, kind: str, message: str, **witness: Any) -> Violation:
    id = problem.ids[i]
    return Violation(kind, (id,), f"buffer {id!r} {message}", **witness)


def _single(
    problem: Problem, offsets: npt.NDArray[np.int64], placed: npt.NDArray[np.bool_]
) -> Iterator[Violation]:
    """Rules that concern one buffer, found on whole columns."""
    for i in _where(placed & (offsets < 0)):
        yield _of_one(problem, i, "negative", f"has offset {offsets[i]}")
    for i in _where(placed & (offsets % problem.alignment != 0)):
        message = f"has offset {offsets[i]}, no multiple of its alignment {problem.alignment[i]}"
        yield _of_one(problem, i, "misaligned", message)
    for i in _where(placed & (problem.pin != FREE) & (offsets != problem.pin)):
        message = f"is pinned to {problem.pin[i]}, not {offsets[i]}"
        yield _of_one(problem, i, "moved pin", message)
    room = problem.room
    if room is not None:
        end = offsets + problem.size
        for i in _where(placed & (problem.size > 0) & (end > room)):
            yield _of_one(
                problem,
                i,
                "over capacity",
                f"ends at {end[i]}, {end[i] - room} bytes over {room}",
                bytes=(int(max(offsets[i], room)), int(end[i])),
            )


def _where(mask: npt.NDArray[np.bool_]) -> list[int]:
    positions: list[int] = np.flatnonzero(mask).tolist()
    return positions


def _events(
    problem: Problem, solid: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Positions, and whether each begins, in the order of time; at one step ends come first."""
    step = np.concatenate([problem.upper[solid], problem.lower[solid]])
    begins = np.repeat([False, True], len(solid))
    order = np.lexsort((begins, step))
    return np.concatenate([solid, solid])[order], begins[order]


def _overlap_exists(
    problem: Problem, offsets: npt.NDArray[np.int64], solid: npt.NDArray[np.int64]
) -> bool:
    """Sweep over time, the live buffers marked in a row of all buffers by offset.

    Until the first overlap the live buffers are disjoint, so a new one can only overlap its
    two neighbours::

        ...[ left )    [ new )  [ right )...
    """
    positions, begins = _events(problem, solid)
    order = solid[np.argsort(offsets[solid], kind="stable")]
    place = np.empty(len(problem), np.int64)
    place[order] = np.arange(1, len(order) + 1)  # what is at either end is live and in nobody's way
    ends = (offsets + problem.size)[order]
    leaves = 1 << (len(order) + 1).bit_length()
    sweep, columns = SWEEP.ready_for(
        SECONDS * len(solid),
        np.where(begins, place[positions], -place[positions]),
        np.concatenate([[-LIMIT], offsets[order], [2 * LIMIT - 1]]),
        np.concatenate([[-LIMIT], ends, [2 * LIMIT - 1]]),
        np.zeros(2 * leaves, np.int8),
    )
    return bool(sweep(*columns))


SECONDS = 1.5e-5  # that a buffer takes uncompiled


def _sweep(
    events: Sequence[int],
    starts: Sequence[int],
    ends: Sequence[int],
    live: MutableSequence[int],
) -> bool:
    """Whether a new buffer overlaps a neighbour.

    The marks are the leaves of a binary tree; a node is live if something below it is. On its way
    up a new mark meets the nearest on either side.
    """
    leaves = len(live) // 2
    _mark(live, leaves)
    _mark(live, leaves + len(starts) - 1)
    for event in events:
        if event < 0:
            node = leaves - event
            live[node] = 0
            while not live[node ^ 1]:
                node >>= 1
                live[node] = 0
            continue
        node, left, right = leaves + event, 0, 0
        while not left or not right:
            live[node] = 1
            if node & 1:
                if not left and live[node - 1]:
                    left = node - 1
            elif not right and live[node + 1]:
                right = node + 1
            node >>= 1
        while left < leaves:
            left = 2 * left + live[2 * left + 1]
        while right < leaves:
            right = 2 * right + 1 - live[2 * right]
        if ends[left - leaves] > starts[event] or starts[right - leaves] < ends[event]:
            return True
    return False


def _mark(live: MutableSequence[int], node: int) -> None:
    while not live[node]:
        live[node] = 1
        node >>= 1


SWEEP = Kernel(_sweep, _mark)


def _overlaps(
    problem: Problem, offsets: npt.NDArray[np.int64], solid: npt.NDArray[np.int64]
) -> list[Violation]:
    """Every overlapping pair: each new buffer against all that are live."""
    live: dict[int, None] = {}
    violations = []
    end = offsets + problem.size
    for i, begins in zip(*(column.tolist() for column in _events(problem, solid)), strict=True):
        if not begins:
            del live[i]
            continue
        others = np.fromiter(live, np.int64, len(live))
        shared = (offsets[others] < end[i]) & (offsets[i] < end[others])
        violations += [_overlap(problem, offsets, end, j, i) for j in others[shared].tolist()]
        live[i] = None
    return violations


def _overlap(
    problem: Problem,
    offsets: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    i: int,
    j: int,
) -> Violation:
    i, j = sorted((i, j))
    steps = (
        int(max(problem.lower[i], problem.lower[j])),
        int(min(problem.upper[i], problem.upper[j])),
    )
    shared = int(max(offsets[i], offsets[j])), int(min(end[i], end[j]))
    return _shared(problem, (i, j), steps, shared)


def _shared(
    problem: Problem, pair: tuple[int, int], steps: tuple[int, int], shared: tuple[int, int]
) -> Violation:
    a, b = (problem.ids[i] for i in pair)
    message = (
        f"buffers {a!r} and {b!r} share bytes [{shared[0]}, {shared[1]}) "
        f"in steps [{steps[0]}, {steps[1]})"
    )
    return Violation("overlap", (a, b), message, steps=steps, bytes=shared)


# -- holes and constraints ---------------------------------------------------------------------


def _broken_rules(problem: Problem, offsets: list[int], placed: set[int]) -> Iterator[Violation]:
    """Constraints that concern addresses, and pairs wherever and whenever they are live."""
    rules, size = problem.constraints, problem.size.tolist()
    for i in sorted(placed):
        start, end = offsets[i], offsets[i] + size[i]
        if rules.chunk is not None and size[i] and start // rules.chunk != (end - 1) // rules.chunk:
            message = f"lies across a multiple of {rules.chunk}: bytes [{start}, {end})"
            yield _of_one(problem, i, "across a chunk", message, bytes=(start, end))
    if rules.reserved:
        for i, _, _, low, high in _parts(problem, sorted(placed)):
            for start, stop in rules.reserved:
                shared = max(offsets[i] + low, start), min(offsets[i] + high, stop)
                if shared[0] < shared[1]:
                    message = f"uses reserved bytes [{shared[0]}, {shared[1]})"
                    yield _of_one(problem, i, "reserved", message, bytes=shared)
    for a, b, delta in (*rules.aliases, *rules.relative):
        i, j = problem.index(a), problem.index(b)
        if {i, j} <= placed and offsets[j] - offsets[i] != delta:
            message = f"buffer {b!r} lies {offsets[j] - offsets[i]} bytes above {a!r}, not {delta}"
            yield Violation("wrong distance", (a, b), message)
    for a, b in rules.apart:
        i, j = problem.index(a), problem.index(b)
        shared = max(offsets[i], offsets[j]), min(offsets[i] + size[i], offsets[j] + size[j])
        if {i, j} <= placed and shared[0] < shared[1]:
            message = f"buffers {a!r} and {b!r} share bytes [{shared[0]}, {shared[1]})"
            yield Violation("not apart", (a, b), message, bytes=shared)


def _parts(problem: Problem, positions: list[int]) -> Iterator[tuple[int, int, int, int, int]]:
    """(position, lower, upper, start, stop): the bytes that buffers keep, relative to them."""
    holes: dict[int, list[list[int]]] = {}
    for i, *hole in problem.holes.tolist():
        holes.setdefault(i, []).append(hole)
    for i in positions:
        size, upper = int(problem.size[i]), int(problem.upper[i])
        step = int(problem.lower[i])
        for lower, after, start, stop in holes.get(i, []):
            if step < lower and size:
                yield i, step, lower, 0, size
            if start < stop:
                yield i, lower, after, start, stop
            step = after
        if step < upper and size:
            yield i, step, upper, 0, size


def _sharing(problem: Problem) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Pairs of positions, both ways round, that may share bytes; and that may at one offset."""
    rules = problem.constraints
    index = problem.index
    free = {(index(a), index(b)) for a, b in rules.exclusive}
    storages: list[set[int]] = []
    for a, b, _ in rules.aliases:
        joined = {index(a), index(b)}
        apart = [storage for storage in storages if not storage & joined]
        joined.update(*(storage for storage in storages if storage & joined))
        storages = [*apart, joined]
    free |= {(i, j) for storage in storages for i in storage for j in storage}
    in_place = {(index(a), index(b)) for a, b in rules.in_place}
    return free | {(j, i) for i, j in free}, in_place | {(j, i) for i, j in in_place}


def _overlaps_of_parts(
    problem: Problem, offsets: npt.NDArray[np.int64], solid: list[int]
) -> list[Violation]:
    """Every pair of buffers that share bytes at a step at which both keep them, once."""
    free, in_place = _sharing(problem)
    table = np.array(list(_parts(problem, solid)), np.int64).reshape(-1, 5)
    owner, lower, upper = table[:, 0], table[:, 1], table[:, 2]
    start, end = offsets[owner] + table[:, 3], offsets[owner] + table[:, 4]
    seen: dict[tuple[int, int], Violation] = {}
    for k in np.argsort(lower, kind="stable").tolist():
        shared = (lower <= lower[k]) & (lower[k] < upper) & (start < end[k]) & (start[k] < end)
        for other in np.flatnonzero(shared).tolist():
            i, j = sorted((int(owner[other]), int(owner[k])))
            same_place = (i, j) in in_place and offsets[i] == offsets[j]
            if i == j or (i, j) in free or (i, j) in seen or same_place:
                continue
            seen[i, j] = _shared(
                problem,
                (i, j),
                (int(lower[k]), int(min(upper[other], upper[k]))),
                (int(max(start[other], start[k])), int(min(end[other], end[k]))),
            )
    return list(seen.values())

"""The judge of slots. Imports `problem` and `validation`, and nothing that assigns slots."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dsa.gate import as_integer
from dsa.problem import Intervals, Problem
from dsa.validation import Violation

__all__ = ["validate_slots"]


def validate_slots(
    slots: Sequence[int] | Mapping[Any, int],
    intervals: Intervals,
    *,
    sizes: Sequence[int] | None = None,
) -> tuple[Violation, ...]:
    """List every rule that slots break; an empty result proves that they hold.

    O(n log n) for slots that hold.

    Parameters
    ----------
    slots
        Slot of each buffer, in the order of the buffers or by id.
    intervals
        The problem, as for `Problem`.
    sizes
        Of each slot; as large as its largest tenant if None.

    Returns
    -------
    tuple of Violation
        Of the kinds ``"missing"`` and ``"extra"`` (buffers without slots, slots without buffers),
        ``"no slot"`` (not a number of a slot), ``"too large"`` (for its slot), ``"over capacity"``
        (all slots together) and ``"overlap"`` (two buffers live together in one slot).

    Examples
    --------
    >>> validate_slots([0, 1], [(0, 2, 8), (1, 4, 8)])
    ()
    >>> print(*validate_slots([0, 0], [(0, 2, 8), (1, 4, 8)]))
    overlap: buffers 0 and 1 are both in slot 0 in steps [1, 2)
    """
    if isinstance(slots, str) or not isinstance(slots, (Mapping, Sequence, np.ndarray)):
        raise TypeError(
            "validate_slots() takes a mapping from id to slot, or slots in the order of the "
            f"buffers, not {type(slots).__name__}: {slots!r}"
        )
    if sizes is not None and not all(isinstance(size, (int, np.integer)) for size in sizes):
        raise TypeError(f"sizes of slots must be integers, got {sizes!r}")
    problem = Problem(intervals)
    missing: Sequence[Hashable]
    extra: Sequence[Hashable]
    if isinstance(slots, Mapping):
        given = [(i, slots[id]) for i, id in enumerate(problem.ids) if id in slots]
        missing = [id for id in problem.ids if id not in slots]
        known = set(problem.ids)
        extra = [id for id in slots if id not in known]
    else:
        given = list(enumerate(slots[: len(problem)]))
        missing, extra = problem.ids[len(slots) :], range(len(problem), len(slots))
    violations = [Violation("missing", (id,), f"buffer {id!r} has no slot") for id in missing]
    violations += [
        Violation("extra", (id,), f"a slot for buffer {id!r}, which does not exist") for id in extra
    ]
    tenants: dict[int, list[int]] = defaultdict(list)
    for i, slot in given:
        if _is_slot(slot, None if sizes is None else len(sizes)):
            tenants[slot].append(i)
        else:
            id = problem.ids[i]
            message = f"buffer {id!r} is in {slot!r}, which is no slot"
            violations.append(Violation("no slot", (id,), message))
    if sizes is not None:
        violations += _too_large(problem, tenants, sizes)
    violations += _over_capacity(problem, tenants, sizes)
    for slot, members in sorted(tenants.items()):
        violations += _overlaps(problem, slot, members)
    return tuple(violations)


def _is_slot(value: object, count: int | None) -> bool:
    try:
        slot = as_integer(value)
    except TypeError:
        return False
    return slot >= 0 and (count is None or slot < count)


def _too_large(
    problem: Problem, tenants: dict[int, list[int]], sizes: Sequence[int]
) -> Iterator[Violation]:
    size = problem.size.tolist()
    for slot, members in sorted(tenants.items()):
        for i in members:
            if size[i] > sizes[slot]:
                id = problem.ids[i]
                message = f"buffer {id!r} of {size[i]} bytes is in slot {slot} of {sizes[slot]}"
                yield Violation("too large", (id,), message)


def _over_capacity(
    problem: Problem, tenants: dict[int, list[int]], sizes: Sequence[int] | None
) -> Iterator[Violation]:
    if problem.capacity is None:
        return
    size = problem.size.tolist()
    largest = [max(size[i] for i in members) for members in tenants.values()]
    total = sum(largest if sizes is None else sizes)
    if total > problem.capacity:
        over = total - problem.capacity
        message = f"the slots have {total} bytes, {over} over {problem.capacity}"
        yield Violation("over capacity", (), message)


def _overlaps(problem: Problem, slot: int, members: list[int]) -> Iterator[Violation]:
    """By start, a tenant meets those before it that have not ended."""
    lower, upper, size = problem.lower.tolist(), problem.upper.tolist(), problem.size.tolist()
    live: list[int] = []
    for j in sorted((i for i in members if size[i]), key=lambda i: (lower[i], i)):
        live = [i for i in live if upper[i] > lower[j]]
        for i in live:
            steps = lower[j], min(upper[i], upper[j])
            yield Violation(
                "overlap",
                (problem.ids[i], problem.ids[j]),
                f"buffers {problem.ids[i]!r} and {problem.ids[j]!r} are both in slot {slot} in "
                f"steps [{steps[0]}, {steps[1]})",
                steps=steps,
            )
        live.append(j)

"""Lower bounds for problems with constraints: bodies of which no two can share bytes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import TypeAlias
from weakref import WeakKeyDictionary

from dsa.bodies import Bodies, Ranges, merge
from dsa.problem import Problem

__all__ = ["heaviest_clique"]

MANY = 200  # cliques without a common step that are looked for


def heaviest_clique(problem: Problem) -> tuple[int, str, int | None, tuple[Hashable, ...]]:
    """Value, kind, step and ids of the best bound found; see `dsa.bounds.Bound`.

    A *clique* is a set of bodies that need bytes apart, two by two. At one step all that are
    live do, except where branches exclude each other or one may be in place of the other. With
    holes, or buffers that are to be apart, there are cliques without a common step::

        a  [===)   [===)      a and b meet in step 1, b and c in step 3, c and a in step 5: a plan
        b  [=======)          needs all three sizes, though never more than two are live.
        c      [=======)

    They are found greedily, the heaviest body first: a clique that is too light costs strength,
    never truth. To its bytes comes the padding that alignments force on all but the topmost, or
    the reserved bytes below (of which padding may be a part).
    """
    value, kind, step, members = _heaviest(problem.bodies, problem.constraints.reserved)
    bodies = problem.bodies
    ids = tuple(problem.ids[j] for i in members for j in bodies.members[i] if problem.size[j])
    return value, kind, step, ids


_Found: TypeAlias = "tuple[int, str, int | None, list[int]]"
_KNOWN: WeakKeyDictionary[Bodies, _Found] = WeakKeyDictionary()  # asked for again and again


def _heaviest(bodies: Bodies, reserved: Ranges) -> _Found:
    """Value, kind, step and bodies of the bound; the reserved ranges go with the bodies."""
    if bodies in _KNOWN:
        return _KNOWN[bodies]
    best: _Found = (0, "empty", None, [])
    reserved = merge(reserved)
    for step, members, weights in _cliques(bodies):
        value = _stacked(bodies, members, weights)
        if step is not None or all(bodies.keeps_all(i) for i in members):
            value = max(value, _above(reserved, sum(weights)))
        if value > best[0]:
            best = value, "clique", step, members
    for i, (domain, height) in enumerate(zip(bodies.domain, bodies.height.tolist(), strict=True)):
        lowest = domain.first(0) + height
        if domain.pin is None and height and lowest > best[0]:
            best = lowest, "clique", None, [i]
        if domain.pin is not None and bodies.height[i] and domain.pin + bodies.height[i] > best[0]:
            best = domain.pin + int(bodies.height[i]), "pin", None, [i]
    _KNOWN[bodies] = best
    return best


def _cliques(bodies: Bodies) -> Iterator[tuple[int | None, list[int], list[int]]]:
    """Step, bodies and bytes of each."""
    loose = {i: others for i in range(len(bodies)) if (others := bodies.loose(i))}
    for step, live in bodies.sections():
        members = [i for i in live if i not in loose]
        # What may share bytes is taken up one by one, the heaviest first.
        for i in sorted(live.keys() & loose.keys(), key=lambda i: (-live[i], i)):
            if loose[i].isdisjoint(members):
                members.append(i)
        yield step, members, [live[i] for i in members]
    heights = bodies.height.tolist()
    yield from ((None, [i], [height]) for i, height in enumerate(heights) if height)
    for first in sorted(bodies.odd(), key=lambda i: (-heights[i], i))[:MANY]:
        members = [first]
        for i in sorted(bodies.forbidden(first), key=lambda i: (-heights[i], i)):
            if all(bodies.certain(j, i) for j in members):
                members.append(i)
        yield None, members, [heights[i] for i in members]


def _stacked(bodies: Bodies, members: list[int], weights: list[int]) -> int:
    """What the clique needs: its bytes, and padding if whole bodies have offsets on one grid."""
    total = sum(weights)
    domains = [bodies.domain[i] for i in members]
    grid = math.gcd(*(domain.modulus for domain in domains))
    whole = all(weight == bodies.height[i] for i, weight in zip(members, weights, strict=True))
    if not whole or len({domain.remainder % grid for domain in domains}) > 1:
        return total
    padding = [-weight % grid for weight in weights]
    return total + sum(padding) - max(padding)


def _above(reserved: Ranges, value: int) -> int:
    """The least peak that leaves so many bytes beside the reserved ones."""
    for start, stop in reserved:
        if start >= value:
            break
        value += stop - start
    return value

"""Better a plan by moving one buffer at a time to another place in the order of stacking.

Buffers are stacked in an order, each onto the highest one it conflicts with. Through each runs a
longest chain of conflicts, and a longest one of all makes the peak::

    |        [   z   ]  |  tail(x): the most that is stacked onto x       peak = head + size + tail
    |    [ x ]          |                                                 for every buffer of a
    |    [    y    ]    |  head(x): the most that x is stacked onto       longest chain

A move takes one buffer out and puts it in elsewhere. Heads and tails of the others, without it,
are found in one sweep each, up and down; then the peak after an insertion at any place is known
at once: ``max(peak without it, highest below + its size + highest above)``.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence

import numpy as np

from dsa.budget import Budget
from dsa.kernels.compiled import Kernel
from dsa.problem import IntArray, Problem

__all__ = ["insertion"]

SECONDS = 4e-7  # that a buffer and a section it covers take in a move, uncompiled
SLICE = 0.1  # seconds between two looks at the clock
FASTER = 40  # times, compiled
PEAK, BEST, TARGET, LIMIT = range(4)
DRAWS = 3  # random numbers that a move takes


def insertion(
    problem: Problem, offsets: IntArray, budget: Budget, *, moves: int | None, seed: int
) -> tuple[IntArray, int]:
    """Offsets of the lowest plan met, and the number of moves made.

    Three of four moves take a buffer from a longest chain, the fourth takes any. It goes to the
    best place if that gives a new lowest peak, otherwise to a random one of those that keep the
    peak below the lowest so far and a little (1/512) more, so that the search can drift. O(pairs
    of a buffer and a section it covers) for each move, O(n + sections) memory. Alignments are
    honoured; pins and constraints are not looked at. Deterministic for a number of moves.

    Parameters
    ----------
    problem
        To be planned.
    offsets
        Of some plan.
    budget
        Ends the search at its target or when the time is up.
    moves
        How many to make; None goes on until the budget ends it.
    seed
        Of the choices.

    Examples
    --------
    >>> problem = Problem([(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)])
    >>> found, moves = insertion(problem, np.array([36, 0, 48, 0]), Budget(), moves=20, seed=0)
    >>> int((found + problem.size).max())
    88
    """
    sections, n = problem.sections, len(problem)
    order = np.argsort(offsets, kind="stable")
    order = order[problem.size[order] > 0]
    pairs = int((sections.stop - sections.start).sum())
    work = SECONDS * max(pairs, 1)
    random = np.random.default_rng(seed)
    fixed = (sections.start, sections.stop, problem.size, problem.alignment)
    register = np.array([-1, 0, budget.target, 0])
    columns: list[IntArray] = [
        *(order, register, np.array(offsets, np.int64)),
        *np.zeros((2, n), np.int64),
        *np.zeros((2, len(order) + 1), np.int64),
        np.zeros(len(sections), np.int64),
    ]
    made, lowest = 0, int((offsets + problem.size).max(initial=0))
    # What is ahead counts at once, so that it is compiled before and not half-way; compiling may
    # take half of the time there is.
    ahead = min(budget.remaining() / 2, float("inf") if moves is None else moves * work)
    while len(order) > 1 and (moves is None or made < moves):
        run, given = MOVE.ready_for(ahead, *fixed, *columns)
        ahead = 0.0
        compiled = isinstance(given[0], np.ndarray)
        pace = work / FASTER if compiled else work
        count = int(min(max(SLICE, pace), budget.remaining()) / pace)
        if not count:
            break
        count = count if moves is None else min(count, moves - made)
        draws = random.integers(0, 2**62, DRAWS * count)
        made += run(draws if compiled else draws.tolist(), *given)
        columns = [np.asarray(column, np.int64) for column in given[len(fixed) :]]
        reached = int(columns[1][BEST])
        if reached < lowest:
            budget.report(reached)
        lowest = min(reached, lowest)
        if budget.done(lowest):
            break
    return columns[2], made


def _move(
    draws: Sequence[int],
    start: Sequence[int],
    stop: Sequence[int],
    size: Sequence[int],
    alignment: Sequence[int],
    order: MutableSequence[int],
    register: MutableSequence[int],
    best: MutableSequence[int],
    head: MutableSequence[int],
    tail: MutableSequence[int],
    over: MutableSequence[int],
    cost: MutableSequence[int],
    top: MutableSequence[int],
) -> int:
    """Make a move for every three draws; stop at the target. Returns how many were made."""
    n = len(order)
    if register[PEAK] < 0:
        register[PEAK] = _heads(order, n, 0, start, stop, size, alignment, top, head)
        register[BEST] = register[PEAK]
        for i in range(len(best)):
            best[i] = head[i]
    else:
        _heads(order, n, 0, start, stop, size, alignment, top, head)
    _tails(order, n, n, start, stop, size, top, tail)
    for made in range(len(draws) // DRAWS):
        if register[BEST] <= register[TARGET]:
            return made
        old = _pick(order, n, size, head, tail, register[PEAK], draws, DRAWS * made)
        x = order[old]
        for k in range(old, n - 1):
            order[k] = order[k + 1]
        rest = _heads(order, n - 1, old, start, stop, size, alignment, top, head)
        _tails(order, n - 1, old, start, stop, size, top, tail)
        new = _place(
            *(order, x, rest, start, stop, size, alignment),
            *(head, tail, over, cost, register, draws[DRAWS * made + 2]),
        )
        for k in range(n - 1, new, -1):
            order[k] = order[k - 1]
        order[new] = x
        reached = _heads(order, n, new, start, stop, size, alignment, top, head)
        if reached > register[LIMIT]:  # only alignments can have raised it: take it back
            for k in range(new, n - 1):
                order[k] = order[k + 1]
            for k in range(n - 1, old, -1):
                order[k] = order[k - 1]
            order[old] = x
            reached = _heads(order, n, 0, start, stop, size, alignment, top, head)
            _tails(order, n, n, start, stop, size, top, tail)
        else:
            _tails(order, n, new + 1, start, stop, size, top, tail)
        register[PEAK] = reached
        if reached < register[BEST]:
            register[BEST] = reached
            for i in range(len(best)):
                best[i] = head[i]
    return len(draws) // DRAWS


def _heads(
    order: Sequence[int],
    count: int,
    first: int,
    start: Sequence[int],
    stop: Sequence[int],
    size: Sequence[int],
    alignment: Sequence[int],
    top: MutableSequence[int],
    head: MutableSequence[int],
) -> int:
    """Heads of the first `count` buffers of the order, known before place `first`; their peak."""
    for s in range(len(top)):
        top[s] = 0
    peak = 0
    for k in range(count):
        i = order[k]
        if k >= first:
            highest = 0
            for s in range(start[i], stop[i]):
                if top[s] > highest:
                    highest = top[s]
            head[i] = -(-highest // alignment[i]) * alignment[i]
        end = head[i] + size[i]
        for s in range(start[i], stop[i]):
            top[s] = end
        if end > peak:
            peak = end
    return peak


def _tails(
    order: Sequence[int],
    count: int,
    first: int,
    start: Sequence[int],
    stop: Sequence[int],
    size: Sequence[int],
    top: MutableSequence[int],
    tail: MutableSequence[int],
) -> None:
    """Tails of the first `count` buffers of the order, known from place `first` on."""
    for s in range(len(top)):
        top[s] = 0
    for k in range(count - 1, -1, -1):
        i = order[k]
        if k < first:
            highest = 0
            for s in range(start[i], stop[i]):
                if top[s] > highest:
                    highest = top[s]
            tail[i] = highest
        end = tail[i] + size[i]
        for s in range(start[i], stop[i]):
            top[s] = end


def _pick(
    order: Sequence[int],
    n: int,
    size: Sequence[int],
    head: Sequence[int],
    tail: Sequence[int],
    peak: int,
    draws: Sequence[int],
    at: int,
) -> int:
    """Place in the order of a buffer to move: on a longest chain, or anywhere."""
    if draws[at] % 4 == 0:
        return draws[at + 1] % n
    least = peak
    for k in range(n):  # with alignments, padding may leave no chain as long as the peak
        least = min(least, peak - head[order[k]] - size[order[k]] - tail[order[k]])
    count = 0
    for k in range(n):
        if peak - head[order[k]] - size[order[k]] - tail[order[k]] == least:
            count += 1
    nth = draws[at + 1] % count
    for k in range(n):
        if peak - head[order[k]] - size[order[k]] - tail[order[k]] == least:
            if nth == 0:
                return k
            nth -= 1
    return n - 1


def _place(
    order: Sequence[int],
    x: int,
    rest: int,
    start: Sequence[int],
    stop: Sequence[int],
    size: Sequence[int],
    alignment: Sequence[int],
    head: Sequence[int],
    tail: Sequence[int],
    over: MutableSequence[int],
    cost: MutableSequence[int],
    register: MutableSequence[int],
    draw: int,
) -> int:
    """Where to insert buffer `x` among the others, whose peak is `rest`."""
    count = len(order) - 1
    highest = 0  # of what would be stacked onto it
    over[count] = 0
    for k in range(count - 1, -1, -1):
        y = order[k]
        if start[y] < stop[x] and stop[y] > start[x]:
            highest = max(highest, tail[y] + size[y])
        over[k] = highest
    highest, least = 0, -1  # of what it would be stacked onto
    for k in range(count + 1):
        # Between two neighbours in the order that it does not conflict with, nothing changes.
        cost[k] = -1
        below = -1 if k == 0 else order[k - 1]
        if below < 0 or (start[below] < stop[x] and stop[below] > start[x]):
            if below >= 0:
                highest = max(highest, head[below] + size[below])
            offset = -(-highest // alignment[x]) * alignment[x]
            cost[k] = max(rest, offset + size[x] + over[k])
            if least < 0 or cost[k] < least:
                least = cost[k]
    limit = least
    if least >= register[BEST]:
        limit = max(least, register[BEST] + register[BEST] // 512)
    register[LIMIT] = max(limit, register[PEAK])
    places = 0
    for k in range(count + 1):
        if 0 <= cost[k] <= limit:
            places += 1
    nth = draw % places
    for k in range(count + 1):
        if 0 <= cost[k] <= limit:
            if nth == 0:
                return k
            nth -= 1
    return count


MOVE = Kernel(_move, _heads, _tails, _pick, _place)

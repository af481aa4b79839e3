"""Seeded families of problems, of any number of buffers.

Each family is a function of a number of buffers and a seed; the same two give the same problem.
Everything but the adversary is built from whole columns: a million buffers take a
second or two.

Some families are made backwards from a plan, so that their optimum is known: see `Family`.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import cycle
from typing import Any, TypeAlias

import numpy as np

from dsa.problem import FREE, IntArray, Problem

__all__ = ["FAMILIES", "Family"]

Random: TypeAlias = np.random.Generator
Columns: TypeAlias = tuple[IntArray, IntArray, IntArray]  # lower, upper, size

UNIT = 64  # bytes: sizes of networks are multiples of this


@dataclass(frozen=True, slots=True)
class Family:
    """A family of problems.

    Parameters
    ----------
    make
        From a number of buffers and a seed to a problem.
    optimum
        The least peak of each problem, in loads, known by construction; None where it is not.

    Examples
    --------
    >>> FAMILIES["packing"](n=100, seed=0)
    <Problem: 100 buffers, load 1073741824>
    >>> FAMILIES["above-load"].optimum
    Fraction(9, 8)
    """

    make: Callable[[int, int], Problem]
    optimum: Fraction | None = None

    def __call__(self, n: int, seed: int = 0) -> Problem:
        return self.make(n, seed)

    def least_peak(self, problem: Problem) -> int | None:
        """The optimum of one of the family's problems, in bytes, if it is known."""
        return None if self.optimum is None else int(problem.load * self.optimum)

    @property
    def about(self) -> str:
        """What the problems are, in one line."""
        return (self.make.__doc__ or "").partition("\n")[0]


# -- networks -----------------------------------------------------------------------------------


def layered(n: int, seed: int) -> Problem:
    """A network run once, layer by layer, with skip connections."""
    random = np.random.default_rng(seed)
    step = np.arange(n)
    skip = (random.random(n) < 0.2) * random.geometric(0.1, n)
    # Stages of 24 layers: channels double where the picture is halved twice, then start again.
    base = 2.0 ** (20 - step // 24 % 6)
    return Problem.from_columns(step, step + 2 + skip, _around(base, 0.6, random))


def transformer(n: int, seed: int) -> Problem:
    """Training of a transformer that keeps a checkpoint a layer and computes the rest again.

    ::

        layer     0   1   2   2   1   0     steps run to the right
        kept      [=======================)  the checkpoint of layer 0
                      [===============)      of layer 1
        inside    --  --  --  ----  ----     activations, twice: forward, and again before backward
        gradient                [=========)  of the weights of layer 2, until the optimiser's step
    """
    random = np.random.default_rng(seed)
    # Of one layer, in units of its input: queries, keys and values, scores, context, projection,
    # the two halves of the feed-forward part, output.
    inside = np.array([3, 4, 1, 1, 4, 4, 1])
    width, per_layer = len(inside), 3 * len(inside) + 2
    layers = -(-n // per_layer)
    layer, op = np.arange(layers)[:, None], np.arange(width)[None, :]
    length = width + 1
    forward = layer * length
    backward = (layers + 2 * (layers - 1 - layer)) * length
    end = np.full((layers, 1), 3 * layers * length + 1)
    unit = UNIT * int(random.integers(256, 4096)) * random.integers(1, 3, (layers, 1))
    activation = unit * inside
    parts = [
        (forward + width, backward + 2 * length, unit),  # the checkpoint
        (forward + op, forward + op + 2, activation),
        (backward + op, backward + 2 * length - op, activation),  # again, read in reverse
        (backward + length + op, backward + length + op + 2, activation[:, ::-1]),  # gradients
        (backward + length, end, 3 * unit),  # of the weights
    ]
    return _first(n, parts)


def unet(n: int, seed: int) -> Problem:
    """Steps of a diffusion model: each goes down five levels and up again, with a skip a level."""
    random = np.random.default_rng(seed)
    depth, ops = 5, 4
    passes = -(-n // (2 * depth * ops))
    start = np.arange(passes)[:, None, None] * (2 * depth * ops)
    level, op = np.arange(depth)[None, :, None], np.arange(ops)[None, None, :]
    down = start + level * ops + op
    up = start + (2 * depth - 1 - level) * ops + op
    size = _around(2.0**22 / 2.0**level * np.ones(down.shape), 0.3, random)
    last = op == ops - 1
    parts = [
        (down, np.where(last, up - ops + 2, down + 2), size),  # the skip: read on the way up
        (up, up + 2, size[:, :, ::-1]),
    ]
    return _first(n, parts)


def pipeline(n: int, seed: int) -> Problem:
    """One stage of a pipeline: one microbatch forward, one backward, eight of them in flight."""
    random = np.random.default_rng(seed)
    layers, flight = 12, 8
    batches = -(-n // (2 * layers))
    batch, layer = np.arange(batches)[:, None], np.arange(layers)[None, :]
    # Slots of a forward and of a backward pass of a microbatch: 0 1 .. 7 then 8, 10, 12 ...
    flight = min(flight, batches)
    slot = np.where(batch < flight, batch, 2 * batch - flight + 1)
    back = np.where(batch < batches - flight, 2 * batch + flight, batches + flight + batch - flight)
    size = _around(2.0 ** random.integers(16, 22, (1, layers)) * np.ones((batches, 1)), 0.1, random)
    forward, backward = slot * layers + layer, back * layers + (layers - 1 - layer)
    parts = [
        (forward, backward + 1, size),  # activations wait for their backward pass
        (backward, backward + 2, size),  # gradients for the next layer's
    ]
    return _first(n, parts)


def decode(n: int, seed: int) -> Problem:
    """Token by token decoding: each step copies every layer's cache into one that is longer."""
    random = np.random.default_rng(seed)
    layers = 8
    tokens = -(-n // (2 * layers))
    token, layer = np.arange(tokens)[:, None], np.arange(layers)[None, :]
    starts = random.random(tokens) < 1 / 64  # a new sequence, after 64 tokens on average
    first = np.maximum.accumulate(np.where(starts, token[:, 0], 0))
    prompt = random.integers(1, 128, tokens)[first]
    length = (prompt + token[:, 0] - first + 1)[:, None]
    made = token * layers + layer
    unit = UNIT * int(random.integers(4, 33))
    ends = made + layers + 1
    return _first(n, [(made, ends, length * unit), (made, ends, length * unit)])


# -- shapes -------------------------------------------------------------------------------------


def uniform(n: int, seed: int) -> Problem:
    """Starts anywhere, some 30 buffers live at a step, sizes from 64 B to 1 MiB."""
    random = np.random.default_rng(seed)
    lower = random.integers(0, max(n, 1), n)
    size = UNIT * np.rint(2 ** random.uniform(0, 14, n)).astype(np.int64)
    return Problem.from_columns(lower, lower + random.geometric(1 / 30, n), size)


def tiny_and_huge(n: int, seed: int) -> Problem:
    """Ninety-nine buffers in a hundred tiny and short-lived, the hundredth huge and long-lived."""
    random = np.random.default_rng(seed)
    huge = random.random(n) < 0.01
    lower = random.integers(0, max(n, 1), n)
    length = np.where(huge, random.geometric(1 / 500, n), random.geometric(1 / 20, n))
    size = np.where(huge, random.integers(2**14, 2**18, n), random.integers(1, 65, n))
    return Problem.from_columns(lower, lower + length, UNIT * size)


def powers_of_two(n: int, seed: int) -> Problem:
    """Sizes are powers of two, the larger the rarer."""
    random = np.random.default_rng(seed)
    lower = random.integers(0, max(n, 1), n)
    size = UNIT * 2 ** np.minimum(random.geometric(0.3, n), 16)
    return Problem.from_columns(lower, lower + random.geometric(1 / 30, n), size)


# -- made backwards from a plan -----------------------------------------------------------------


def packing(n: int, seed: int) -> Problem:
    """A full rectangle cut into pieces: every byte is in use at every step."""
    lower, upper, size, _ = _cut(n, np.random.default_rng(seed))
    return Problem.from_columns(lower, upper, size)


def aligned(n: int, seed: int) -> Problem:
    """A packing whose buffers ask for the alignment that they have in it, up to 4 KiB."""
    lower, upper, size, offset = _cut(n, np.random.default_rng(seed))
    alignment = np.gcd(offset, 4096)
    return Problem.from_columns(lower, upper, size, alignment=alignment)


def pinned(n: int, seed: int) -> Problem:
    """A packing in which one buffer in ten is pinned to its place."""
    random = np.random.default_rng(seed)
    lower, upper, size, offset = _cut(n, random)
    pin = np.where(random.random(n) < 0.1, offset, FREE)
    return Problem.from_columns(lower, upper, size, offset=pin)


def _cut(n: int, random: Random) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Columns and offsets of a rectangle cut ``n - 1`` times, each piece across its longer side."""
    side = 2**24
    pieces = np.array([[0, side, 0, side]] if n else np.empty((0, 4)), np.int64)
    while len(pieces) < n:
        cut, kept = np.split(pieces[random.permutation(len(pieces))], [n - len(pieces)])
        width, height = cut[:, 1] - cut[:, 0], cut[:, 3] - cut[:, 2]
        axis = np.where(width > height, 0, 2)
        row = np.arange(len(cut))
        length = np.maximum(width, height)
        at = cut[row, axis] + np.rint(length * random.uniform(0.2, 0.8, len(cut))).astype(np.int64)
        below, above = cut.copy(), cut.copy()
        below[row, axis + 1] = above[row, axis] = at
        pieces = np.concatenate([kept, below, above])
    lower, upper, bottom, top = pieces[random.permutation(len(pieces))].T
    return lower, upper, UNIT * (top - bottom), UNIT * bottom


# No plan of these has a peak of 4, their load: the smallest known such problem.
SEVEN = np.array(
    [(0, 1, 2), (0, 2, 2), (1, 3, 1), (1, 4, 1), (2, 4, 1), (3, 5, 2), (4, 5, 2)], np.int64
)


def above_load(n: int, seed: int) -> Problem:
    """Knots of seven buffers that need 5/4 of their load, beside one buffer that lives throughout.

    The long buffer makes them one component. It takes up as much as the load of a knot: of what
    lies below it and above it in any plan, together, a knot needs its 5/4 as if it were not there.
    The number of buffers is rounded down to what knots give, one knot at least.
    """
    random = np.random.default_rng(seed)
    knots, scale = max((n - 1) // len(SEVEN), 1), 2**12
    scales = random.integers(1, scale + 1, knots)
    scales[random.integers(knots)] = scale
    lower, upper, size = np.tile(SEVEN, (knots, 1)).T
    turned = np.repeat(random.random(knots) < 0.5, len(SEVEN))  # a knot may run backwards in time
    lower, upper = np.where(turned, 5 - upper, lower), np.where(turned, 5 - lower, upper)
    start = np.repeat(5 * np.arange(knots), len(SEVEN))
    size = size * np.repeat(scales, len(SEVEN))
    return Problem.from_columns(
        np.append(lower + start, 0),
        np.append(upper + start, 5 * knots),
        UNIT * np.append(size, 4 * scale),
    )


# -- an adversary -------------------------------------------------------------------------------

Live: TypeAlias = list[tuple[int, int, int]]  # (offset, end, buffer), by offset


def adversary(n: int, seed: int) -> Problem:
    """Robson's adversary against all who place by time, who never learn when a buffer will end.

    In round k all requests are for ``2**k`` units. Before it, whatever covers no unit that is
    ``residue`` modulo ``2**k`` is given back: the holes are then just too small for what follows,
    for first fit as for best fit. Here it plays against first fit.

    J. M. Robson, Bounds for some functions concerning dynamic storage allocation, JACM 21 (1974).
    """
    random = np.random.default_rng(seed)
    memory = max(int(random.integers(n // 2, 5 * n // 8 + 1)), 1)  # about n requests are a game
    live: Live = []
    rows: list[list[int]] = []
    step = residue = 0
    for size in cycle(2**k for k in range(memory.bit_length())):
        if size > 1:
            halves = residue, residue + size // 2
            residue = max(halves, key=lambda half: _wasted(live, half, size))
        spared = [block for block in live if size > 1 and _covers(block, residue, size)]
        step += 1
        for block in set(live).difference(spared):
            rows[block[2]][1] = step
        live = spared
        free = memory - sum(end - offset for offset, end, _ in live)
        for _ in range(min(free // size, n - len(rows))):
            offset = _first_fit(live, size)
            insort(live, (offset, offset + size, len(rows)))
            rows.append([step, 0, UNIT * size])
            step += 1
        if len(rows) == n:
            break
    for _, _, buffer in live:
        rows[buffer][1] = step
    return Problem(np.array(rows, np.int64).reshape(-1, 3))


def _wasted(live: Live, residue: int, size: int) -> int:
    """Free bytes beside the blocks that would be spared, of which no request will fit in."""
    return sum(size - (end - at) for at, end, i in live if _covers((at, end, i), residue, size))


def _covers(block: tuple[int, int, int], residue: int, modulus: int) -> bool:
    offset, end, _ = block
    return offset + (residue - offset) % modulus < end


def _first_fit(live: Live, size: int) -> int:
    below = 0
    for offset, end, _ in live:
        if offset - below >= size:
            break
        below = end
    return below


# -- columns ------------------------------------------------------------------------------------


def _around(base: Any, spread: float, random: Random) -> IntArray:
    """Sizes log-normally around a base, whole units, at least one."""
    size = np.asarray(base) * np.exp(random.normal(0, spread, np.shape(base)))
    units: IntArray = np.maximum(np.rint(size / UNIT), 1).astype(np.int64)
    return UNIT * units


def _first(n: int, parts: list[tuple[Any, ...]]) -> Problem:
    """The first buffers in time of parts, each with a row for every layer, batch or token."""
    lower, upper, size = (
        np.concatenate([np.broadcast_to(part[c], _shape(part)).ravel() for part in parts])
        for c in range(3)
    )
    chosen = np.argsort(lower, kind="stable")[:n]
    last = int(lower[chosen].max(initial=0)) + 1  # what came later is not there to read it
    return Problem.from_columns(lower[chosen], np.minimum(upper[chosen], last), size[chosen])


def _shape(part: tuple[Any, ...]) -> tuple[int, ...]:
    return np.broadcast_shapes(*(np.shape(column) for column in part))


FAMILIES = {
    "layered": Family(layered),
    "transformer": Family(transformer),
    "u-net": Family(unet),
    "pipeline": Family(pipeline),
    "decode": Family(decode),
    "random": Family(uniform),
    "tiny-and-huge": Family(tiny_and_huge),
    "powers-of-two": Family(powers_of_two),
    "packing": Family(packing, optimum=Fraction(1)),
    "aligned": Family(aligned, optimum=Fraction(1)),
    "pinned": Family(pinned, optimum=Fraction(1)),
    "above-load": Family(above_load, optimum=Fraction(9, 8)),
    "adversary": Family(adversary),
}

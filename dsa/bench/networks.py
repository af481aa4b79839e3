"""Three networks in NumPy that take all their memory from elsewhere: the allocator, or an arena.

Every array comes from ``memory.new`` and goes back by ``memory.free``; kernels write with ``out=``.
So one and the same code runs by the ordinary allocator, under a recorder, and out of an arena, and
its results are the same bits.

>>> network = Branches(channels=4, width=8)
>>> expected = network(Ordinary())
>>> arena = planned(network)
>>> with arena.run():
...     result = network(Planned(arena))
>>> bool((result == expected).all()), arena.tally.peak == arena.plan.peak, arena.tally.strays
(True, True, 0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dsa.planner import plan
from dsa.replay import Arena, Recorder

__all__ = [
    "NETWORKS",
    "Branches",
    "Convolutional",
    "Memory",
    "Ordinary",
    "Planned",
    "Recorded",
    "Transformer",
    "planned",
]

Array: TypeAlias = npt.NDArray[np.float32]


# -- memories ---------------------------------------------------------------------------------


class Memory(Protocol):
    """Where a network has its arrays from."""

    def new(self, site: str, *shape: int) -> Array:
        """An array of arbitrary content."""
        ...

    def free(self, *arrays: Array) -> None:
        """The arrays are not used any more."""
        ...


class Ordinary(Memory):
    """The ordinary allocator, which frees an array when nobody refers to it any more."""

    def new(self, site: str, *shape: int) -> Array:
        return np.empty(shape, np.float32)

    def free(self, *arrays: Array) -> None:
        pass


class Recorded(Ordinary):
    """The ordinary allocator, with a recorder looking on."""

    def __init__(self) -> None:
        self.recorder = Recorder()

    def new(self, site: str, *shape: int) -> Array:
        array = super().new(site, *shape)
        self.recorder.allocate(site, array.nbytes, id(array))
        return array

    def free(self, *arrays: Array) -> None:
        for array in arrays:
            self.recorder.free(id(array))


class Planned(Memory):
    """An arena, in a run of this thread."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self._ids: dict[int, Any] = {}

    def new(self, site: str, *shape: int) -> Array:
        name = self.arena.allocate(site, 4 * math.prod(shape))
        array = self.arena.view(name, shape, np.float32)
        self._ids[id(array)] = name
        return array

    def free(self, *arrays: Array) -> None:
        for array in arrays:
            self.arena.free(self._ids.pop(id(array)))


def planned(network: Callable[[Memory], Array], *, guard: bool = False) -> Arena:
    """Record a run of a network, plan it, and make its arena."""
    memory = Recorded()
    network(memory)
    return Arena(plan(memory.recorder.problem(alignment=64)), guard=guard)


# -- layers -----------------------------------------------------------------------------------


class Weights:
    """Weights by the name of their layer, made when they are first asked for."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(7)
        self._made: dict[str, Array] = {}

    def __call__(self, site: str, *shape: int) -> Array:
        """The weights of a layer."""
        if site not in self._made:
            values = self._random.standard_normal(shape) / np.sqrt(shape[-1])
            self._made[site] = values.astype(np.float32)
        return self._made[site]

    def into(self, memory: Memory, site: str, *shape: int) -> Array:
        """A copy of an input, in the network's memory."""
        x = memory.new(site, *shape)
        x[:] = self(site, *shape)
        return x


def _convolve(memory: Memory, weights: Weights, site: str, x: Array, out: int, k: int) -> Array:
    """A convolution of ``k x k`` that keeps height and width, as one product of matrices."""
    channels, height, width = x.shape
    edge = k // 2
    padded = memory.new(f"{site}.padded", channels, height + 2 * edge, width + 2 * edge)
    padded.fill(0)
    padded[:, edge : edge + height, edge : edge + width] = x
    columns = memory.new(f"{site}.columns", channels, k, k, height, width)
    for i in range(k):
        for j in range(k):
            columns[:, i, j] = padded[:, i : i + height, j : j + width]
    memory.free(padded)
    y = memory.new(site, out, height, width)
    kernel = weights(site, out, channels * k * k)
    np.matmul(kernel, columns.reshape(channels * k * k, -1), out=y.reshape(out, -1))
    memory.free(columns)
    return y


def _relu(x: Array) -> Array:
    return np.maximum(x, 0, out=x)


def _linear(memory: Memory, weights: Weights, site: str, x: Array, out: int) -> Array:
    y = memory.new(site, x.shape[0], out)
    return np.matmul(x, weights(site, x.shape[1], out), out=y)


def _softmax(memory: Memory, site: str, x: Array) -> Array:
    """In place, over the last axis."""
    row = memory.new(f"{site}.row", *x.shape[:-1], 1)
    np.max(x, axis=-1, keepdims=True, out=row)
    np.exp(np.subtract(x, row, out=x), out=x)
    np.sum(x, axis=-1, keepdims=True, out=row)
    np.divide(x, row, out=x)
    memory.free(row)
    return x


# -- networks ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Convolutional:
    """Residual blocks of two convolutions."""

    channels: int = 32
    width: int = 56
    blocks: int = 4
    weights: Weights = field(default_factory=Weights, repr=False)

    def __call__(self, memory: Memory) -> Array:
        """What the network makes of its image."""
        x = self.weights.into(memory, "image", self.channels, self.width, self.width)
        for n in range(self.blocks):
            x = self._block(memory, f"block{n}", x)
        return _result(memory, x)

    def _block(self, memory: Memory, site: str, x: Array) -> Array:
        first = _convolve(memory, self.weights, f"{site}.first", x, self.channels, 3)
        y = _convolve(memory, self.weights, f"{site}.second", _relu(first), self.channels, 3)
        memory.free(first)
        _relu(np.add(y, x, out=y))
        memory.free(x)
        return y


@dataclass(frozen=True)
class Transformer:
    """Attention and two linear layers, each added to what it was given."""

    tokens: int = 128
    width: int = 256
    blocks: int = 4
    heads: int = 4
    weights: Weights = field(default_factory=Weights, repr=False)

    def __call__(self, memory: Memory) -> Array:
        """What the network makes of its words."""
        x = self.weights.into(memory, "words", self.tokens, self.width)
        for n in range(self.blocks):
            self._attend(memory, f"block{n}", x)
            self._think(memory, f"block{n}", x)
        return _result(memory, x)

    def _attend(self, memory: Memory, site: str, x: Array) -> None:
        q, k, v = (_linear(memory, self.weights, f"{site}.{part}", x, self.width) for part in "qkv")
        scores = memory.new(f"{site}.scores", self.heads, self.tokens, self.tokens)
        np.matmul(self._by_head(q), self._by_head(k).transpose(0, 2, 1), out=scores)
        memory.free(q, k)
        del q, k
        _softmax(memory, site, scores)
        mixed = memory.new(f"{site}.mixed", self.tokens, self.width)
        np.matmul(scores, self._by_head(v), out=self._by_head(mixed))
        memory.free(scores, v)
        del scores, v
        y = _linear(memory, self.weights, f"{site}.out", mixed, self.width)
        np.add(x, y, out=x)
        memory.free(mixed, y)

    def _by_head(self, x: Array) -> Array:
        return x.reshape(self.tokens, self.heads, -1).transpose(1, 0, 2)

    def _think(self, memory: Memory, site: str, x: Array) -> None:
        hidden = _relu(_linear(memory, self.weights, f"{site}.up", x, 4 * self.width))
        y = _linear(memory, self.weights, f"{site}.down", hidden, self.width)
        np.add(x, y, out=x)
        memory.free(hidden, y)


@dataclass(frozen=True)
class Branches:
    """Blocks of four branches side by side, whose results are joined."""

    channels: int = 32
    width: int = 56
    blocks: int = 3
    weights: Weights = field(default_factory=Weights, repr=False)

    def __call__(self, memory: Memory) -> Array:
        """What the network makes of its image."""
        x = self.weights.into(memory, "image", self.channels, self.width, self.width)
        for n in range(self.blocks):
            parts = [
                self._branch(memory, f"block{n}.branch{b}", x, windows)
                for b, windows in enumerate(([1], [1, 3], [1, 3, 3], [5]))
            ]
            memory.free(x)
            x = memory.new(f"block{n}.joined", self.channels, self.width, self.width)
            np.concatenate(parts, out=x)
            memory.free(*parts)
            del parts
        return _result(memory, x)

    def _branch(self, memory: Memory, site: str, x: Array, windows: Sequence[int]) -> Array:
        y = x
        for depth, window in enumerate(windows):
            here = f"{site}.{depth}"
            z = _relu(_convolve(memory, self.weights, here, y, self.channels // 4, window))
            if y is not x:
                memory.free(y)
            y = z
        return y


def _result(memory: Memory, x: Array) -> Array:
    """A copy in memory of its own, for the caller."""
    result = x.copy()
    memory.free(x)
    return result


NETWORKS: tuple[Callable[[Memory], Array], ...] = (Convolutional(), Transformer(), Branches())

"""The part of the checker of proofs that replays a search by pairs.

Of two buffers that conflict, one lies wholly below the other: ``x[b] >= x[a] + size[a]``, or the
other way round. So a plan is a choice for each such pair, and what has been chosen is a system of
inequalities ``x[j] >= x[i] + c``. What follows from it is the longest path between every two::

    bottom --0--> a --size[a]--> b --size[b]--> c     c is no lower than size[a] + size[b]

The last row and column stand for the bottom: from it each buffer has its lowest offset, and the
capacity and pins are paths back to it. A lowest offset that is not aligned is raised to the next
that is: no plan has been lost. A pair of which one choice contradicts the paths, by a cycle longer
than 0, must take the other; if both do, nothing fits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dsa.errors import InvalidProofError

__all__ = ["HIGHEST", "replay"]

HIGHEST = 1 << 58  # capacity up to which paths can be added up
NO_PATH = -1 << 60

Paths = npt.NDArray[np.int64]


def replay(
    sizes: Sequence[int],
    alignments: Sequence[int],
    pins: Sequence[int | None],
    conflicts: Sequence[tuple[int, int]],
    capacity: int,
    log: Sequence[int],
) -> None:
    """Refute that buffers fit into a capacity, by all entries of a log.

    Parameters
    ----------
    sizes, alignments, pins
        Of each buffer.
    conflicts
        Pairs of buffers that cannot share bytes.
    capacity
        In the unit of sizes and pins.
    log
        In preorder, for each node that does not contradict itself the pair it decides, as
        ``a * len(sizes) + b``: the first child has a below b, the second b below a.

    Raises
    ------
    InvalidProofError
        If the log does not refute it.

    Notes
    -----
    Complexity: for each decision, and each that follows from it, the square of the buffers.

    Examples
    --------
    >>> replay([3, 2, 2], [1, 1, 1], [None] * 3, [(0, 1), (0, 2), (1, 2)], 7, [1])
    Traceback (most recent call last):
        ...
    dsa.errors.InvalidProofError: the log ends after 1 entries, but not all is refuted
    """
    if capacity > HIGHEST:
        raise InvalidProofError(f"a proof by pairs cannot be about more than {HIGHEST} units")
    count, pairs = len(sizes), np.array(conflicts, np.int64).reshape(-1, 2)
    meets, size = {*conflicts}, np.array(sizes, np.int64)
    pending, read = [_root(sizes, pins, capacity)], 0
    while pending:
        paths = pending.pop()
        if paths is None or not _follow(paths, size, alignments, pairs):
            continue
        if read == len(log):
            raise InvalidProofError(
                f"the log ends after {read} entries, but not all is refuted", entry=read
            )
        a, b = divmod(log[read], count)
        if (a, b) not in meets and (b, a) not in meets:
            raise InvalidProofError(f"entry {read} of the log: no such pair conflicts", entry=read)
        read += 1
        for below, above in ((b, a), (a, b)):
            child = paths.copy()
            pending.append(child if _add(child, below, above, sizes[below]) else None)
    if read < len(log):
        raise InvalidProofError(
            f"entry {read} of the log: all is refuted, yet {len(log) - read} entries follow",
            entry=read,
        )


def _root(sizes: Sequence[int], pins: Sequence[int | None], capacity: int) -> Paths | None:
    """All above the bottom and within the capacity; those that are pinned at their pins."""
    bottom = len(sizes)
    paths = np.full((bottom + 1, bottom + 1), NO_PATH)
    np.fill_diagonal(paths, 0)
    for b, (size, pin) in enumerate(zip(sizes, pins, strict=True)):
        least, most = (0, capacity - size) if pin is None else (pin, min(pin, capacity - size))
        if not (_add(paths, bottom, b, least) and _add(paths, b, bottom, -most)):
            return None
    return paths


def _add(paths: Paths, i: int, j: int, length: int) -> bool:
    """Demand x[j] >= x[i] + length, and all that follows; False if it contradicts the paths."""
    if paths[j, i] + length > 0:
        return False
    if paths[i, j] < length:
        np.maximum(paths, paths[:, i, None] + length + paths[None, j, :], out=paths)
        np.maximum(paths, NO_PATH, out=paths)
    return True


def _follow(paths: Paths, size: Paths, alignments: Sequence[int], pairs: Paths) -> bool:
    """Align lowest offsets and decide pairs with one choice left; False if nothing fits."""
    bottom, (a, b), changed = len(size), pairs.T, True
    while changed:
        before = paths.copy()
        for i, alignment in enumerate(alignments):
            if not _add(paths, bottom, i, -(-int(paths[bottom, i]) // alignment) * alignment):
                return False
        below, above = paths[b, a] + size[a] <= 0, paths[a, b] + size[b] <= 0
        if not (below | above).all():
            return False
        for k in np.flatnonzero(below != above).tolist():
            low, high = (a[k], b[k]) if below[k] else (b[k], a[k])
            if not _add(paths, low, high, size[low]):
                return False
        changed = bool((paths != before).any())
    return True

"""The plan on Matplotlib's axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dsa.draw.picture import PALETTE, Picture, colours, title
from dsa.result import Plan
from dsa.units import format_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["figure"]

SHARED: dict[str, Any] = {"edgecolors": "black", "linestyles": "dashed", "alpha": 0.6}
STYLES = {"peak": "solid", "lower bound": "dashed", "capacity": "dotted"}


def figure(plan: Plan, ax: Axes | None = None) -> Figure | SubFigure:
    """Draw the plan with Matplotlib (the extra `plot`), in steps and bytes.

    Parameters
    ----------
    plan
        A plan.
    ax
        Where to draw; on a new figure if None.

    Raises
    ------
    ImportError
        If Matplotlib is not installed.
    """
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure

    if ax is None:
        ax = Figure(figsize=(9.6, 5.4), layout="constrained").subplots()
    picture = Picture(plan)
    first, last = picture.extent
    scale = np.array([last - first, picture.height])
    events = first + (last - first) * picture.at(picture.events)
    colour = colours(plan, len(PALETTE))
    styles = {False: {"linewidths": 0}} | ({True: SHARED} if picture.shares else {})
    for shares, style in styles.items():
        pieces = [
            piece
            for piece in picture.pieces
            if (int(picture.buffer[piece.start]) in picture.shares) == shares
        ]
        outlines = [np.array(picture.outline(piece)) * scale + [first, 0] for piece in pieces]
        fill = [PALETTE[colour[picture.buffer[piece.start]]] for piece in pieces]
        ax.add_collection(PolyCollection(outlines, facecolors=fill, **style))
    for low, high in picture.reserved:
        bottom, top = low * picture.height, high * picture.height
        ax.axhspan(bottom, top, fill=False, hatch="///", linewidth=0, alpha=0.4)
    for at in picture.chunks:
        ax.axhline(at * picture.height, color="black", linewidth=0.8, linestyle=(0, (1, 4)))
    ax.step(
        events, picture.load, where="post", color="black", linewidth=1, label=picture.curve_label
    )
    for size, names in picture.levels.items():
        label = f"{' = '.join(names)} {format_size(size)}"
        ax.axhline(size, color="black", linestyle=STYLES[names[0]], label=label)
    steps, sizes = picture.step_ticks(100), picture.size_ticks(8)
    ax.set_xticks([first + (last - first) * share for share, _ in steps], [s for _, s in steps])
    ax.set_yticks([picture.height * share for share, _ in sizes], [s for _, s in sizes])
    ax.set(xlim=(first, last), ylim=(0, 1.02 * picture.height))
    ax.set_xlabel(picture.time_label, loc="left")
    ax.set_title(title(plan, 100))
    ax.legend(loc="upper right", bbox_to_anchor=(1, -0.06), ncols=4, frameon=False)
    return ax.figure

"""The plan on Matplotlib's axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dsa.draw.picture import PALETTE, Picture, colours, title
from dsa.result import Plan
from dsa.units import format_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["figure"]

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
    left, right, events = (
        first + (last - first) * share
        for share in (picture.left, picture.right, picture.at(picture.events))
    )
    bottom, top = picture.height * picture.bottom, picture.height * picture.top
    corners = [left, bottom, left, top, right, top, right, bottom]
    outlines = list(np.stack(corners, axis=1).reshape(-1, 4, 2))
    fill = [PALETTE[colour] for colour in colours(plan, len(PALETTE))[picture.solid]]
    ax.add_collection(PolyCollection(outlines, facecolors=fill, linewidths=0))
    ax.step(events, picture.load, where="post", color="black", linewidth=1, label="load")
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

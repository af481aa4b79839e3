"""Pictures of a plan: ASCII for terminals, SVG for everything else, Matplotlib on demand.

Steps run to the right and bytes upwards::

    peak    ______________________
            |    b    |          |     A buffer is a rectangle: its lifetime wide, its size
            |_________|___   d   |     high. What no rectangle covers is free.
            |     a      |       |
    0       |____________|_______|
            first step           last
"""

from dsa.draw.axes import figure
from dsa.draw.characters import text
from dsa.draw.vector import svg, write_svg

__all__ = ["figure", "svg", "text", "write_svg"]

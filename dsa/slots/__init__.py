"""Slots: whole objects shared by buffers, for targets where a buffer cannot have an offset.

A GPU texture or an opaque handle cannot be cut up. Each buffer then gets a whole slot, buffers live
together get different ones, and a slot is as large as its largest tenant. What is minimised is the
total of the slots' sizes::

    step     0   1   2   3   4   5
    slot 0   [a, 64 ====)[c, 48 ===)      64 bytes: c leaves 16 of them unused
    slot 1       [b, 32 ====)[d, 8 )      32 bytes

Every slot plan is a plan with offsets, too: slot upon slot. The reverse does not hold, so slots
need more bytes, or the same.

>>> from dsa.slots import plan_slots
>>> p = plan_slots([(0, 2, 64), (1, 3, 32), (2, 4, 48), (3, 5, 8)])
>>> p.slots, p.sizes, p.total, p.status
((0, 1, 0, 1), (64, 32), 96, 'optimal')
"""

from dsa.slots.maxima import positional_maxima
from dsa.slots.planner import plan_slots
from dsa.slots.result import SlotPlan, SlotSolution
from dsa.slots.validation import validate_slots

__all__ = ["SlotPlan", "SlotSolution", "plan_slots", "positional_maxima", "validate_slots"]

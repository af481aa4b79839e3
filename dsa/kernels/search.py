"""Depth-first search for a plan within a capacity, bottom up along the skyline.

What is placed is closed downwards. ``floor[s]`` is a height below which nothing more can come
over section s; ``lowest[b]`` is the least offset left to buffer b. A *niche* is a run of sections
of equal floor between higher walls. Over any section s of any niche, at its level, exactly one of
these holds in a finished plan that has been pushed down:

* some buffer rests there: one child for each unplaced buffer over s that can: it lies inside the
  niche, or its lowest offset would be higher, and rests on a placed buffer or on the bottom,
  for in a plan that has been pushed down nothing floats;
* nothing does: the *gap* child. What comes next over s is a buffer whose lowest offset is higher
  already, or one that stands on a buffer beside s in the niche; floor[s] rises to the lesser::

    |                  [====     gap over s: what comes next stands on a buffer beside s,
    |====]             [====     at least as high as the top of x could be, or has a lowest
    |====]  [ x ] s    [====     offset that is higher already
    +-----------------------     level

Choosing the section with the fewest children makes the tree small. Where unplaced buffers fall
apart in time, a component that fails fails whatever the others do: decisions that did not touch
it are undone without trying their alternatives. A component that has failed is remembered with
its floors, its unplaced buffers and which of them could rest, and compared in full when it is met
again. (A gap may have raised a floor to where nothing rests; the same floor may elsewhere be the
top of a buffer, and more is possible then.)

The kernel is written once: it runs as it is, on lists, and is compiled on arrays (`compiled`).
It stops after a number of nodes, and goes on where it stopped when it is called again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["FOUND", "FULL", "PAUSED", "REFUTED", "Layout", "Options", "search"]

FOUND, REFUTED, PAUSED, FULL = 1, 0, -1, -2

INFINITY = 1 << 62
REMEMBERED = 2048  # sections of the largest components that are remembered: most cost, least use
HASH_FACTOR, HASH_MASK = 461845907, (1 << 31) - 1  # no step of the hash can pass 2**63
# Registers: counters that outlive a call.
TRAIL, DEPTH, CHILD, NODES, HITS, RECORDED, POOL, LOG = range(8)
DESCEND, RETREAT, ADVANCE = 0, 1, 2  # open a node; undo a decision; try the next child
NONE, GAP = -1, -2  # in place of a buffer: nothing tried yet; the gap child
# In place of a section in the log: the decision above has no part in the failure; and the
# component has been refuted before, at entry e: SAME - e.
BACK, SAME = -1, -2


class Layout(NamedTuple):
    """Where each column begins in the memory of a search, and how much there is of it.

    One block of integers holds everything, so that the kernel has one argument to hand around.
    """

    section_count: int
    buffer_count: int  # sorted by start
    register: int
    # Of the component, by buffer; it covers the sections start .. stop - 1.
    start: int
    stop: int
    size: int
    alignment: int
    pin: int
    rank: int  # preference among children
    twin: int  # the buffer before it of the same lifetime, size and alignment, or -1
    pair: int  # where its (buffer, section) pairs begin
    # Of the component, by section.
    first: int  # first buffer that starts here or later
    slot: int  # where its slots begin
    # What changes along a branch, by section.
    floor: int
    rest: int  # bytes unplaced over it
    waiting: int  # unplaced buffers over it whose lowest offset is its floor
    children: int  # those of them that would rest there on a placed buffer or on the bottom
    crossing: int  # unplaced buffers across its start
    live: int  # unplaced buffers over it: the first so many of its slots
    beneath: int  # topmost placed buffer over it
    arrivals: int  # buffers that wait from here on, less those that did as far as here
    # What changes along a branch, by buffer.
    lowest: int
    support: int  # the highest aligned top under it
    offset: int
    placed: int  # depth at which it was placed; 0 while it is not
    scratch: int
    buffers: int  # by slot
    place: int  # by pair: the slot within the section
    trail: int  # how to undo it: for each decision, the state of what it changed
    trail_room: int
    # The branch: one frame for each decision.
    section: int
    level: int
    child: int  # next child to try
    last_child: int
    first_child: int
    gap: int  # floor of the gap child, or -1 where there is none
    taken: int  # buffer placed, or NONE, or GAP
    mark: int  # of the trail
    low: int  # component: sections low .. high - 1
    high: int
    depends: int  # depth of the highest decision that a skipped child relied on
    key: int  # hash of the component
    log: int  # its entry in the log
    frames_room: int
    choices: int  # children of all frames, one after another
    choices_room: int


class Options(NamedTuple):
    """What the search does."""

    capacity: int
    shift: int  # brings the capacity below 2**30, for keys that hold two numbers
    rule: int
    undone: int  # decisions that may be undone before the search is given up
    one_machine: bool
    components: bool
    backjumping: bool
    nogoods: bool
    symmetry: bool
    log: bool


def search(
    memory: Any,
    base: Layout,
    table: Any,
    pool: Any,
    log: Any,
    options: Options,
    nodes: int,
) -> int:
    """Go on for at most `nodes` nodes.

    Returns
    -------
    int
        FOUND: the column `offset` is a plan. REFUTED: there is none. PAUSED: the nodes are used
        up, or as many decisions as may be are undone. FULL: trail, frames, children or log need
        more room before the search can go on.
    """
    register = base.register
    sections, count = base.section_count, base.buffer_count
    low, high = 0, sections
    fail_low, fail_high, fail_depends = 0, sections, INFINITY
    stop = memory[register + NODES] + nodes
    mode = DESCEND
    depth = memory[register + DEPTH]
    if depth > 0:
        low, high = memory[base.low + depth - 1], memory[base.high + depth - 1]

    while True:
        depth = memory[register + DEPTH]
        if mode == DESCEND:
            opened = memory[register + NODES]
            if opened >= stop or opened - depth >= options.undone:
                return PAUSED
            if (
                memory[register + TRAIL] + 4 * sections + 3 * count + 3 > base.trail_room
                or depth + 1 >= base.frames_room
                or memory[register + CHILD] + count > base.choices_room
                or memory[register + LOG] + depth + 1 >= len(log)
                or memory[register + POOL] + 4 + sections + count > len(pool)
            ):
                return FULL
            above = depth - 1
            while True:  # nothing left in this component: go on in the one it was split from
                while low < high and memory[base.live + low] == 0:
                    low += 1
                while low < high and memory[base.live + high - 1] == 0:
                    high -= 1
                if low < high or above < 0:
                    break
                above -= 1
                low = memory[base.low + above] if above >= 0 else 0
                high = memory[base.high + above] if above >= 0 else sections
            if low >= high:
                return FOUND
            memory[register + NODES] += 1
            section = _choose(memory, base, options, low, high)
            if options.components:
                low, high = _component(memory, base, section, low, high)
            else:
                low, high = 0, sections
            key = NONE
            if options.nogoods and high - low <= REMEMBERED:
                key = _hash(memory, base, low, high)
                if _is_dead(memory, base, table, pool, key, low, high):
                    memory[register + HITS] += 1
                    if options.log:
                        at = table[key % len(table)]
                        _write(memory, base, log, SAME - pool[at + 2])
                    fail_low, fail_high, fail_depends = low, high, INFINITY
                    mode = RETREAT
                    continue
            _open(memory, base, options, section, low, high, key)
            if options.log:
                _write(memory, base, log, section)
            mode = ADVANCE

        elif mode == RETREAT:
            if depth == 0:
                return REFUTED
            at = depth - 1
            _take_back(memory, base, at)
            inside = memory[base.low + at] <= fail_low and fail_high <= memory[base.high + at]
            if inside or not options.backjumping:
                if not inside:
                    fail_depends = -1
                memory[base.depends + at] = min(memory[base.depends + at], fail_depends)
                mode = ADVANCE
            else:  # this decision has no part in the failure
                if options.log:
                    _write(memory, base, log, BACK)
                memory[register + CHILD] = memory[base.first_child + at]
                memory[register + DEPTH] = at

        else:
            at = depth - 1
            low, high = memory[base.low + at], memory[base.high + at]
            if memory[base.child + at] < memory[base.last_child + at]:
                buffer = memory[base.choices + memory[base.child + at]]
                memory[base.child + at] += 1
                memory[base.taken + at] = buffer
                alive = _put(memory, base, options, buffer, memory[base.level + at], depth)
            elif memory[base.gap + at] >= 0:
                memory[base.taken + at] = GAP
                section = memory[base.section + at]
                floor = memory[base.gap + at]
                alive = _settle(memory, base, options, section, section + 1, floor, NONE)
                memory[base.gap + at] = NONE
            else:
                if memory[base.key + at] >= 0 and memory[base.depends + at] >= depth:
                    _record(memory, base, table, pool, at)
                fail_depends = memory[base.depends + at]
                if fail_depends >= depth:
                    fail_depends = INFINITY
                fail_low, fail_high = low, high
                memory[register + CHILD] = memory[base.first_child + at]
                memory[register + DEPTH] = at
                mode = RETREAT
                continue
            mode = DESCEND
            if not alive:
                fail_low, fail_high, fail_depends = low, high, INFINITY
                mode = RETREAT


def _choose(memory: Any, base: Layout, options: Options, low: int, high: int) -> int:
    """The section to decide: of all niches, the first with the least key of the rule."""
    best, found = INFINITY, low
    section = low
    while section < high:
        floor, end = memory[base.floor + section], section + 1
        if memory[base.live + section] == 0:
            section = end
            continue
        while end < high and memory[base.crossing + end] > 0 and memory[base.floor + end] == floor:
            end += 1
        walled = (
            memory[base.crossing + section] == 0 or memory[base.floor + section - 1] > floor
        ) and (memory[base.crossing + end] == 0 or memory[base.floor + end] > floor)
        if walled:
            for s in range(section, end):
                slack = options.capacity - floor - memory[base.rest + s]
                children = memory[base.children + s] + (1 if slack > 0 else 0)
                rest = memory[base.rest + s] >> options.shift
                if options.rule == 0:
                    key = (children << 32) - rest
                elif options.rule == 1:
                    key = (min(children, 3) << 32) - rest
                elif options.rule == 2:
                    key = (children << 32) + (slack >> options.shift)
                elif options.rule == 3:
                    key = ((floor >> options.shift) << 16) + children
                else:
                    key = ((slack >> options.shift) << 16) + children
                if key < best:
                    best, found = key, s
        section = end
    return found


def _component(memory: Any, base: Layout, section: int, low: int, high: int) -> tuple[int, int]:
    """The sections connected with this one by unplaced buffers."""
    first, last = section, section + 1
    while first > low and memory[base.crossing + first] > 0:
        first -= 1
    while last < high and memory[base.crossing + last] > 0:
        last += 1
    return first, last


def _open(
    memory: Any,
    base: Layout,
    options: Options,
    section: int,
    low: int,
    high: int,
    key: int,
) -> None:
    """Push a frame with all children of this section."""
    register = base.register
    depth, first = memory[register + DEPTH], memory[register + CHILD]
    level = memory[base.floor + section]
    last, forced, depends, higher = first, NONE, INFINITY, INFINITY
    begin = memory[base.slot + section]
    for slot in range(begin, begin + memory[base.live + section]):
        buffer = memory[base.buffers + slot]
        if memory[base.lowest + buffer] != level:
            higher = min(higher, memory[base.lowest + buffer])
            continue
        if memory[base.pin + buffer] >= 0:
            forced = buffer
        elif memory[base.support + buffer] != level:
            continue
        if options.symmetry:
            twin = memory[base.twin + buffer]
            if twin >= 0 and memory[base.placed + twin] == 0:
                continue
            under = memory[base.beneath + memory[base.start + buffer]]
            if under >= 0 and _swappable(memory, base, under, buffer, level):
                depends = min(depends, memory[base.placed + under])
                continue
        at = last
        while (
            at > first
            and memory[base.rank + memory[base.choices + at - 1]] > memory[base.rank + buffer]
        ):
            memory[base.choices + at] = memory[base.choices + at - 1]
            at -= 1
        memory[base.choices + at] = buffer
        last += 1
    gap = NONE
    if forced >= 0:
        memory[base.choices + first] = forced
        last = first + 1
        depends = INFINITY
    elif options.capacity - level - memory[base.rest + section] > 0:
        gap = min(higher, _next_top(memory, base, section, low, high))
        if gap + memory[base.rest + section] > options.capacity:
            gap = NONE
    memory[base.section + depth], memory[base.level + depth] = section, level
    (
        memory[base.child + depth],
        memory[base.first_child + depth],
        memory[base.last_child + depth],
    ) = first, first, last
    memory[base.gap + depth], memory[base.taken + depth], memory[base.mark + depth] = (
        gap,
        NONE,
        memory[register + TRAIL],
    )
    memory[base.low + depth], memory[base.high + depth] = low, high
    memory[base.depends + depth], memory[base.key + depth], memory[base.log + depth] = (
        depends,
        key,
        memory[register + LOG],
    )
    memory[register + CHILD], memory[register + DEPTH] = last, depth + 1


def _swappable(memory: Any, base: Layout, under: int, buffer: int, level: int) -> bool:
    """Whether `buffer` on top of `under` is the mirror image of a stack that is tried elsewhere.

    Two buffers of the same lifetime, one on the other, may change places; the preferred one
    goes below.
    """
    return bool(
        memory[base.start + under] == memory[base.start + buffer]
        and memory[base.stop + under] == memory[base.stop + buffer]
        and memory[base.rank + under] > memory[base.rank + buffer]
        and memory[base.alignment + under] == 1
        and memory[base.alignment + buffer] == 1
        and memory[base.pin + under] < 0
        and memory[base.pin + buffer] < 0
        and memory[base.offset + under] + memory[base.size + under] == level
    )


def _next_top(memory: Any, base: Layout, section: int, low: int, high: int) -> int:
    """Least top of an unplaced buffer in the niche of a section that is not over the section."""
    level, left, right = memory[base.floor + section], section, section + 1
    while (
        left > low and memory[base.crossing + left] > 0 and memory[base.floor + left - 1] == level
    ):
        left -= 1
    while (
        right < high and memory[base.crossing + right] > 0 and memory[base.floor + right] == level
    ):
        right += 1
    least = INFINITY
    for slot in range(
        memory[base.slot + left], memory[base.slot + left] + memory[base.live + left]
    ):
        buffer = memory[base.buffers + slot]
        if memory[base.stop + buffer] <= section:
            least = min(least, memory[base.lowest + buffer] + memory[base.size + buffer])
    for buffer in range(memory[base.first + left + 1], memory[base.first + right]):
        over = memory[base.start + buffer] <= section < memory[base.stop + buffer]
        if memory[base.placed + buffer] == 0 and not over:
            least = min(least, memory[base.lowest + buffer] + memory[base.size + buffer])
    return least


def _put(memory: Any, base: Layout, options: Options, buffer: int, offset: int, depth: int) -> bool:
    """Place a buffer; False if nothing can come of it."""
    start, stop, size = (
        memory[base.start + buffer],
        memory[base.stop + buffer],
        memory[base.size + buffer],
    )
    memory[base.placed + buffer], memory[base.offset + buffer] = depth, offset
    for s in range(start, stop):
        _detach(memory, base, buffer, s)
        memory[base.rest + s] -= size
        if s > start:
            memory[base.crossing + s] -= 1
    return _settle(memory, base, options, start, stop, offset + size, buffer)


def _settle(
    memory: Any, base: Layout, options: Options, low: int, high: int, floor: int, under: int
) -> bool:
    """Give sections low .. high - 1 a new floor, and raise what must rise: offsets, then floors.

    Each unplaced buffer over them is live at the first or starts later. One round is a fixpoint:
    a floor that rises to the least of the lowest offsets over its section raises none of them.
    Only the top of a buffer, `under`, supports others; a gap's new floor does not. False if
    something is too high then.

    How many buffers wait on the new floor is counted where they begin and end over it, and added
    up from left to right.
    """
    solid = under >= 0
    for s in range(low, high):
        memory[base.arrivals + s] = 0
    left, right, moved = low, high, 0  # the sections of buffers that rise, or gain a support
    begin, live = memory[base.slot + low], memory[base.live + low]
    later = memory[base.first + low + 1] - live
    for k in range(live + memory[base.first + high] - memory[base.first + low + 1]):
        if k < live:
            buffer = memory[base.buffers + begin + k]
        else:
            buffer = later + k
            if memory[base.placed + buffer] != 0:
                continue
        old, new = memory[base.lowest + buffer], _aligned(memory, base, buffer, floor)
        if old > new:
            continue
        if new > old and (
            memory[base.pin + buffer] >= 0 or new + memory[base.size + buffer] > options.capacity
        ):
            return False
        start, stop = memory[base.start + buffer], memory[base.stop + buffer]
        if new > old or (solid and memory[base.support + buffer] != old):
            memory[base.scratch + moved] = buffer
            moved += 1
            left, right = min(left, start), max(right, stop)
        if new == floor:
            memory[base.arrivals + max(start, low)] += 1
            if stop < high:
                memory[base.arrivals + stop] -= 1
    _save(memory, base, left, right, moved)
    arrived = 0
    for s in range(low, high):
        memory[base.floor + s] = floor
        if solid:
            arrived += memory[base.arrivals + s]
            memory[base.waiting + s], memory[base.children + s] = arrived, arrived
            memory[base.beneath + s] = under
    for k in range(moved):
        _lift(memory, base, memory[base.scratch + k], low, high, floor, solid)
    for s in range(left, right):
        if memory[base.live + s] == 0:
            continue
        if memory[base.waiting + s] == 0 or (not solid and low <= s < high):
            _count_children(memory, base, s)
        if memory[base.floor + s] + memory[base.rest + s] > options.capacity:
            return False
        if options.one_machine and _one_machine(memory, base, s) > options.capacity:
            return False
    return True


def _lift(
    memory: Any, base: Layout, buffer: int, low: int, high: int, floor: int, solid: bool
) -> None:
    """Raise the lowest offset of a buffer to a new floor over sections low .. high - 1.

    It no longer waits, or waits with a support, over other sections; over these that is counted
    elsewhere.
    """
    old, new = memory[base.lowest + buffer], _aligned(memory, base, buffer, floor)
    leaves = int(new > old)
    rests = int(memory[base.support + buffer] == old) if leaves else -1
    memory[base.lowest + buffer] = new
    if solid:
        memory[base.support + buffer] = new
    start, stop = memory[base.start + buffer], memory[base.stop + buffer]
    for s in range(start, low):
        if memory[base.floor + s] == old:
            memory[base.waiting + s] -= leaves
            memory[base.children + s] -= rests
    for s in range(max(start, high), stop):
        if memory[base.floor + s] == old:
            memory[base.waiting + s] -= leaves
            memory[base.children + s] -= rests


def _aligned(memory: Any, base: Layout, buffer: int, floor: int) -> int:
    """The lowest offset that a buffer may have above a floor."""
    alignment: int = memory[base.alignment + buffer]
    return -(-floor // alignment) * alignment if alignment > 1 else floor


def _count_children(memory: Any, base: Layout, section: int) -> None:
    """Raise the floor to the least of the lowest offsets, and count the buffers that have it."""
    least, waiting, children = INFINITY, 0, 0
    begin = memory[base.slot + section]
    for slot in range(begin, begin + memory[base.live + section]):
        buffer = memory[base.buffers + slot]
        lowest = memory[base.lowest + buffer]
        if lowest < least:
            least, waiting, children = lowest, 0, 0
        if lowest == least:
            waiting += 1
            children += memory[base.support + buffer] == lowest
    memory[base.waiting + section], memory[base.children + section] = waiting, children
    memory[base.floor + section] = max(memory[base.floor + section], least)


def _one_machine(memory: Any, base: Layout, section: int) -> int:
    """Jackson's bound: buffers over a section, each no lower than it may, one above the other."""
    begin, live = memory[base.slot + section], memory[base.live + section]
    for x in range(live):
        buffer = memory[base.buffers + begin + x]
        at = base.scratch + x
        while at > base.scratch and (
            memory[base.lowest + memory[at - 1]] > memory[base.lowest + buffer]
        ):
            memory[at] = memory[at - 1]
            at -= 1
        memory[at] = buffer
    top = 0
    for x in range(live):
        buffer = memory[base.scratch + x]
        top = max(top, memory[base.lowest + buffer]) + memory[base.size + buffer]
    return top


def _detach(memory: Any, base: Layout, buffer: int, section: int) -> None:
    """Swap a buffer behind the live slots of a section; reattaching is then one increment."""
    begin, last = memory[base.slot + section], memory[base.live + section] - 1
    pair = memory[base.pair + buffer] + section - memory[base.start + buffer]
    at, other = memory[base.place + pair], memory[base.buffers + begin + last]
    memory[base.buffers + begin + at], memory[base.buffers + begin + last] = other, buffer
    memory[base.place + memory[base.pair + other] + section - memory[base.start + other]] = at
    memory[base.place + pair] = last
    memory[base.live + section] = last


def _take_back(memory: Any, base: Layout, at: int) -> None:
    """Undo the decision of a frame, in reverse."""
    buffer = memory[base.taken + at]
    if buffer >= 0:
        start = memory[base.start + buffer]
        for s in range(start, memory[base.stop + buffer]):
            memory[base.live + s] += 1
            memory[base.rest + s] += memory[base.size + buffer]
            if s > start:
                memory[base.crossing + s] += 1
        memory[base.placed + buffer] = 0
    memory[base.taken + at] = NONE
    trail, begin = base.register + TRAIL, base.trail + memory[base.mark + at]
    if memory[trail] == memory[base.mark + at]:
        return
    left, right, moved = memory[begin], memory[begin + 1], memory[begin + 2]
    begin += 3
    for column in (base.floor, base.waiting, base.children, base.beneath):
        memory[column + left : column + right] = memory[begin : begin + right - left]
        begin += right - left
    for entry in range(begin, begin + 3 * moved, 3):
        buffer = memory[entry]
        memory[base.lowest + buffer] = memory[entry + 1]
        memory[base.support + buffer] = memory[entry + 2]
    memory[trail] = memory[base.mark + at]


def _save(memory: Any, base: Layout, left: int, right: int, moved: int) -> None:
    """Note the state of some sections, and of the first buffers of `scratch`, on the trail."""
    trail = base.register + TRAIL
    at = base.trail + memory[trail]
    memory[at], memory[at + 1], memory[at + 2] = left, right, moved
    at += 3
    for column in (base.floor, base.waiting, base.children, base.beneath):
        memory[at : at + right - left] = memory[column + left : column + right]
        at += right - left
    for k in range(moved):
        buffer = memory[base.scratch + k]
        memory[at], memory[at + 1], memory[at + 2] = (
            buffer,
            memory[base.lowest + buffer],
            memory[base.support + buffer],
        )
        at += 3
    memory[trail] = at - base.trail


def _hash(memory: Any, base: Layout, low: int, high: int) -> int:
    """Hash of a component: its sections, their floors, the bytes unplaced over them."""
    key = high
    for s in range(low, high):
        # No section waits for the one before it: the sum is over what each has mixed for itself.
        x = memory[base.floor + s] & HASH_MASK
        x = (x * HASH_FACTOR + memory[base.rest + s] + s) & HASH_MASK
        key += (x ^ x >> 15) * HASH_FACTOR & HASH_MASK
    return key & HASH_MASK


def _is_dead(
    memory: Any, base: Layout, table: Any, pool: Any, key: int, low: int, high: int
) -> bool:
    """Whether this very component has been refuted: compared in full, not by hash.

    Buffers that could rest then need not be able to now.
    """
    at = table[key % len(table)]
    if at < 0 or pool[at] != low or pool[at + 1] != high:
        return False
    at += 3
    for s in range(low, high):
        if pool[at] != memory[base.floor + s]:
            return False
        at += 1
    for buffer in range(memory[base.first + low], memory[base.first + high]):
        if memory[base.placed + buffer] == 0:
            rests = memory[base.support + buffer] == memory[base.lowest + buffer]
            if pool[at] >> 1 != buffer or (rests and pool[at] & 1 == 0):
                return False
            at += 1
    return bool(pool[at] == NONE)


def _record(memory: Any, base: Layout, table: Any, pool: Any, frame: int) -> None:
    """Remember the refuted component of a frame, if there is room left for it."""
    register, low, high = base.register, memory[base.low + frame], memory[base.high + frame]
    need = 4 + (high - low) + (memory[base.first + high] - memory[base.first + low])
    if memory[register + POOL] + need > len(pool):
        return
    at = memory[register + POOL]
    table[memory[base.key + frame] % len(table)] = at
    pool[at], pool[at + 1], pool[at + 2] = low, high, memory[base.log + frame]
    at += 3
    for s in range(low, high):
        pool[at] = memory[base.floor + s]
        at += 1
    for buffer in range(memory[base.first + low], memory[base.first + high]):
        if memory[base.placed + buffer] == 0:
            rests = memory[base.support + buffer] == memory[base.lowest + buffer]
            pool[at] = 2 * buffer + rests
            at += 1
    pool[at] = NONE
    memory[register + POOL] = at + 1
    memory[register + RECORDED] += 1


def _write(memory: Any, base: Layout, log: Any, entry: int) -> None:
    log[memory[base.register + LOG]] = entry
    memory[base.register + LOG] += 1

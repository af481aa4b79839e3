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

        |      wall    |                 gap over s: not before `level + size of x`, the
        |      [=======|                 smallest buffer beside s, or the next lowest offset
    ====]   s          [====
    ....[---x---]......                  level

Choosing the section with the fewest children makes the tree small. Where unplaced buffers fall
apart in time, a component that fails fails whatever the others do: decisions that did not touch
it are undone without trying their alternatives. A component that has failed is remembered with
its floors and its unplaced buffers, and compared in full when it is met again.

The kernel is written once: it runs as it is, on lists, and is compiled on arrays (`compiled`).
It stops after a number of nodes, and goes on where it stopped when it is called again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["FOUND", "FULL", "PAUSED", "REFUTED", "Frames", "Model", "Options", "State", "search"]

FOUND, REFUTED, PAUSED, FULL = 1, 0, -1, -2

INFINITY = 1 << 62
HASH_FACTOR, HASH_MASK = 461845907, (1 << 31) - 1  # no step of the hash can pass 2**63
# What an entry of the trail restores.
FLOOR, WAITING, CHILDREN, LOWEST, SUPPORT, BENEATH = range(6)
# Registers: counters that outlive a call.
TRAIL, STAMP, DEPTH, CHILD, NODES, HITS, RECORDED, POOL, LOG = range(9)
DESCEND, RETREAT, ADVANCE = 0, 1, 2  # open a node; undo a decision; try the next child
NONE, GAP = -1, -2  # in place of a buffer: nothing tried yet; the gap child


class Model(NamedTuple):
    """The component: buffers sorted by start, each in sections ``start .. stop - 1``."""

    start: Any
    stop: Any
    size: Any
    alignment: Any
    pin: Any
    rank: Any  # preference among children
    twin: Any  # the buffer before it of the same lifetime, size and alignment, or -1
    first: Any  # first buffer that starts at a section or later
    pair: Any  # where a buffer's (buffer, section) pairs begin
    slot: Any  # where a section's slots begin


class State(NamedTuple):
    """Everything that changes along a branch, and the trail to change it back."""

    floor: Any
    rest: Any  # bytes unplaced over a section
    waiting: Any  # unplaced buffers over a section whose lowest offset is its floor
    children: Any  # those of them that would rest there on a placed buffer or on the bottom
    crossing: Any  # unplaced buffers across the start of a section
    live: Any  # unplaced buffers over a section: the first so many of its slots
    beneath: Any  # topmost placed buffer over a section
    lowest: Any
    support: Any  # the highest aligned top under an unplaced buffer
    offset: Any
    placed: Any  # depth at which a buffer was placed, plus 1; 0 while unplaced
    buffers: Any  # by slot
    place: Any  # by pair: the slot within the section
    trail_entry: Any
    trail_value: Any
    dirty: Any
    stamp: Any
    scratch: Any
    register: Any


class Frames(NamedTuple):
    """The branch: one frame for each decision."""

    section: Any
    level: Any
    child: Any  # next child to try
    last_child: Any
    first_child: Any
    gap: Any  # floor of the gap child, or -1 where there is none
    taken: Any  # buffer placed, or NONE, or GAP
    mark: Any  # of the trail
    low: Any  # component: sections low .. high - 1
    high: Any
    depends: Any  # depth of the highest decision that a skipped child relied on
    key: Any  # hash of the component
    log: Any  # where the frame's part of the log begins
    children: Any  # of all frames, one after another


class Options(NamedTuple):
    """What the search does."""

    capacity: int
    shift: int  # brings the capacity below 2**30, for keys that hold two numbers
    rule: int
    one_machine: bool
    components: bool
    backjumping: bool
    nogoods: bool
    symmetry: bool
    log: bool


def search(
    model: Model,
    state: State,
    frames: Frames,
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
        FOUND: ``state.offset`` is a plan. REFUTED: there is none. PAUSED: the nodes are used up.
        FULL: trail, frames, children or log need more room before the search can go on.
    """
    register = state.register
    sections, count = len(state.floor), len(model.size)
    low, high = 0, sections
    fail_low, fail_high, fail_depends = 0, sections, INFINITY
    stop = register[NODES] + nodes
    mode = DESCEND
    if register[DEPTH] > 0:
        low, high = frames.low[register[DEPTH] - 1], frames.high[register[DEPTH] - 1]

    while True:
        depth = register[DEPTH]
        if mode == DESCEND:
            if register[NODES] >= stop:
                return PAUSED
            if (
                register[TRAIL] + 7 * sections + 2 * count > len(state.trail_entry)
                or depth + 1 >= len(frames.section)
                or register[CHILD] + count > len(frames.children)
                or register[LOG] + 1 >= len(log)
                or register[POOL] + 3 + sections + count > len(pool)
            ):
                return FULL
            above = depth - 1
            while True:  # nothing left in this component: go on in the one it was split from
                while low < high and state.live[low] == 0:
                    low += 1
                while low < high and state.live[high - 1] == 0:
                    high -= 1
                if low < high or above < 0:
                    break
                above -= 1
                low = frames.low[above] if above >= 0 else 0
                high = frames.high[above] if above >= 0 else sections
            if low >= high:
                return FOUND
            register[NODES] += 1
            section = _choose(state, options, low, high)
            if options.components:
                low, high = _component(state, section, low, high)
            else:
                low, high = 0, sections
            key = 0
            if options.nogoods:
                key = _hash(model, state, low, high)
                if _is_dead(model, state, table, pool, key, low, high):
                    register[HITS] += 1
                    fail_low, fail_high, fail_depends = low, high, INFINITY
                    mode = RETREAT
                    continue
            _open(model, state, frames, options, section, low, high, key)
            if options.log:
                log[register[LOG]] = section
                register[LOG] += 1
            mode = ADVANCE

        elif mode == RETREAT:
            if depth == 0:
                return REFUTED
            at = depth - 1
            _take_back(model, state, frames, at)
            inside = frames.low[at] <= fail_low and fail_high <= frames.high[at]
            if inside or not options.backjumping:
                if not inside:
                    fail_depends = -1
                frames.depends[at] = min(frames.depends[at], fail_depends)
                mode = ADVANCE
            else:  # this decision has no part in the failure
                if options.log:
                    _forget(frames, log, register, at)
                register[CHILD] = frames.first_child[at]
                register[DEPTH] = at

        else:
            at = depth - 1
            low, high = frames.low[at], frames.high[at]
            if frames.child[at] < frames.last_child[at]:
                buffer = frames.children[frames.child[at]]
                frames.child[at] += 1
                frames.taken[at] = buffer
                alive = _put(model, state, options, buffer, frames.level[at], depth)
            elif frames.gap[at] >= 0:
                frames.taken[at] = GAP
                alive = _raise(model, state, options, frames.section[at], frames.gap[at])
                frames.gap[at] = NONE
            else:
                if options.nogoods and frames.depends[at] >= depth:
                    _record(model, state, table, pool, frames.key[at], low, high)
                fail_depends = frames.depends[at]
                if fail_depends >= depth:
                    fail_depends = INFINITY
                fail_low, fail_high = low, high
                register[CHILD] = frames.first_child[at]
                register[DEPTH] = at
                mode = RETREAT
                continue
            mode = DESCEND
            if not alive:
                fail_low, fail_high, fail_depends = low, high, INFINITY
                mode = RETREAT


def _choose(state: State, options: Options, low: int, high: int) -> int:
    """The section to decide: of all niches, the first with the least key of the rule."""
    best, found = INFINITY, low
    section = low
    while section < high:
        floor, end = state.floor[section], section + 1
        if state.live[section] == 0:
            section = end
            continue
        while end < high and state.crossing[end] > 0 and state.floor[end] == floor:
            end += 1
        walled = (state.crossing[section] == 0 or state.floor[section - 1] > floor) and (
            state.crossing[end] == 0 or state.floor[end] > floor
        )
        if walled:
            for s in range(section, end):
                slack = options.capacity - floor - state.rest[s]
                children = state.children[s] + (1 if slack > 0 else 0)
                rest = state.rest[s] >> options.shift
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


def _component(state: State, section: int, low: int, high: int) -> tuple[int, int]:
    """The sections connected with this one by unplaced buffers."""
    first, last = section, section + 1
    while first > low and state.crossing[first] > 0:
        first -= 1
    while last < high and state.crossing[last] > 0:
        last += 1
    return first, last


def _open(
    model: Model,
    state: State,
    frames: Frames,
    options: Options,
    section: int,
    low: int,
    high: int,
    key: int,
) -> None:
    """Push a frame with all children of this section."""
    register = state.register
    depth, first = register[DEPTH], register[CHILD]
    level = state.floor[section]
    last, forced, depends, higher = first, NONE, INFINITY, INFINITY
    begin = model.slot[section]
    for slot in range(begin, begin + state.live[section]):
        buffer = state.buffers[slot]
        if state.lowest[buffer] != level:
            higher = min(higher, state.lowest[buffer])
            continue
        if model.pin[buffer] >= 0:
            forced = buffer
        elif state.support[buffer] != level:
            continue
        if options.symmetry:
            twin = model.twin[buffer]
            if twin >= 0 and state.placed[twin] == 0:
                continue
            under = state.beneath[model.start[buffer]]
            if under >= 0 and _swappable(model, state, under, buffer, level):
                depends = min(depends, state.placed[under])
                continue
        at = last
        while at > first and model.rank[frames.children[at - 1]] > model.rank[buffer]:
            frames.children[at] = frames.children[at - 1]
            at -= 1
        frames.children[at] = buffer
        last += 1
    gap = NONE
    if forced >= 0:
        frames.children[first] = forced
        last = first + 1
        depends = INFINITY
    elif options.capacity - level - state.rest[section] > 0:
        beside = _smallest_beside(model, state, section, low, high)
        gap = min(higher, level + beside)
        if gap + state.rest[section] > options.capacity:
            gap = NONE
    frames.section[depth], frames.level[depth] = section, level
    frames.child[depth], frames.first_child[depth], frames.last_child[depth] = first, first, last
    frames.gap[depth], frames.taken[depth], frames.mark[depth] = gap, NONE, register[TRAIL]
    frames.low[depth], frames.high[depth] = low, high
    frames.depends[depth], frames.key[depth], frames.log[depth] = depends, key, register[LOG]
    register[CHILD], register[DEPTH] = last, depth + 1


def _swappable(model: Model, state: State, under: int, buffer: int, level: int) -> bool:
    """Whether `buffer` on top of `under` is the mirror image of a stack that is tried elsewhere.

    Two buffers of the same lifetime, one on the other, may change places; the preferred one
    goes below.
    """
    return bool(
        model.start[under] == model.start[buffer]
        and model.stop[under] == model.stop[buffer]
        and model.rank[under] > model.rank[buffer]
        and model.alignment[under] == 1
        and model.alignment[buffer] == 1
        and model.pin[under] < 0
        and model.pin[buffer] < 0
        and state.offset[under] + model.size[under] == level
    )


def _smallest_beside(model: Model, state: State, section: int, low: int, high: int) -> int:
    """Least size of an unplaced buffer in the niche of a section that is not over it."""
    level, smallest = state.floor[section], INFINITY
    for step in (-1, 1):
        s = section + step
        while low <= s < high and state.floor[s] == level and state.live[s] > 0:
            begin = model.slot[s]
            for slot in range(begin, begin + state.live[s]):
                buffer = state.buffers[slot]
                if model.size[buffer] < smallest and not (
                    model.start[buffer] <= section < model.stop[buffer]
                ):
                    smallest = model.size[buffer]
            s += step
    return smallest


def _put(
    model: Model, state: State, options: Options, buffer: int, offset: int, depth: int
) -> bool:
    """Place a buffer; False if nothing can come of it."""
    register = state.register
    register[STAMP] += 1
    start, stop, size = model.start[buffer], model.stop[buffer], model.size[buffer]
    state.placed[buffer], state.offset[buffer] = depth, offset
    top = offset + size
    for s in range(start, stop):
        _detach(model, state, buffer, s)
        _save(state, FLOOR, s, state.floor[s])
        _save(state, WAITING, s, state.waiting[s])
        _save(state, CHILDREN, s, state.children[s])
        _save(state, BENEATH, s, state.beneath[s])
        state.rest[s] -= size
        state.floor[s] = top
        state.beneath[s] = buffer
        if s > start:
            state.crossing[s] -= 1
        state.dirty[s - start] = s
        state.stamp[s] = register[STAMP]
    return _propagate(model, state, options, stop - start, True)


def _raise(model: Model, state: State, options: Options, section: int, floor: int) -> bool:
    """Leave a section empty up to a new floor; False if nothing can come of it."""
    register = state.register
    register[STAMP] += 1
    _save(state, FLOOR, section, state.floor[section])
    _save(state, WAITING, section, state.waiting[section])
    _save(state, CHILDREN, section, state.children[section])
    state.floor[section] = floor
    state.dirty[0] = section
    state.stamp[section] = register[STAMP]
    return _propagate(model, state, options, 1, False)


def _propagate(model: Model, state: State, options: Options, raised: int, solid: bool) -> bool:
    """Raise lowest offsets over the first `raised` dirty sections, then floors; False if too high.

    One round is a fixpoint: a floor that rises to the least of the lowest offsets over its
    section raises none of them. Only a `solid` floor, the top of a buffer, supports others.
    """
    floor, lowest, support, capacity = state.floor, state.lowest, state.support, options.capacity
    stamp, dirty = state.register[STAMP], raised
    for x in range(raised):
        s = state.dirty[x]
        begin = model.slot[s]
        for slot in range(begin, begin + state.live[s]):
            buffer = state.buffers[slot]
            old, new, alignment = lowest[buffer], floor[s], model.alignment[buffer]
            if alignment > 1:
                new = -(-new // alignment) * alignment
            if old > new or (old == new and (support[buffer] == new or not solid)):
                continue
            if model.pin[buffer] >= 0:
                if new > old:
                    return False
                continue
            if new + model.size[buffer] > capacity:
                return False
            rises, stood = new > old, support[buffer] == old
            if rises:
                _save(state, LOWEST, buffer, old)
                lowest[buffer] = new
            if solid:
                _save(state, SUPPORT, buffer, support[buffer])
                support[buffer] = new
            for q in range(model.start[buffer], model.stop[buffer]):
                if state.stamp[q] != stamp:
                    state.stamp[q] = stamp
                    state.dirty[dirty] = q
                    dirty += 1
                    _save(state, WAITING, q, state.waiting[q])
                    _save(state, CHILDREN, q, state.children[q])
                if floor[q] == old:
                    if rises:
                        state.waiting[q] -= 1
                        state.children[q] -= stood
                    else:
                        state.children[q] += 1
    for x in range(dirty):
        s = state.dirty[x]
        if state.live[s] == 0:
            continue
        if x < raised or state.waiting[s] == 0:
            _count_children(model, state, s)
        if floor[s] + state.rest[s] > capacity:
            return False
    if options.one_machine:
        for x in range(dirty):
            if _one_machine(model, state, state.dirty[x]) > capacity:
                return False
    return True


def _count_children(model: Model, state: State, section: int) -> None:
    """Raise the floor to the least of the lowest offsets, and count the buffers that have it."""
    least, waiting, children = INFINITY, 0, 0
    begin = model.slot[section]
    for slot in range(begin, begin + state.live[section]):
        buffer = state.buffers[slot]
        lowest = state.lowest[buffer]
        if lowest < least:
            least, waiting, children = lowest, 0, 0
        if lowest == least:
            waiting += 1
            children += state.support[buffer] == lowest
    state.waiting[section], state.children[section] = waiting, children
    if least > state.floor[section]:
        _save(state, FLOOR, section, state.floor[section])
        state.floor[section] = least


def _one_machine(model: Model, state: State, section: int) -> int:
    """Jackson's bound: buffers over a section, each no lower than it may, one above the other."""
    scratch, begin = state.scratch, model.slot[section]
    live = state.live[section]
    for x in range(live):
        buffer = state.buffers[begin + x]
        at = x
        while at > 0 and state.lowest[scratch[at - 1]] > state.lowest[buffer]:
            scratch[at] = scratch[at - 1]
            at -= 1
        scratch[at] = buffer
    top = 0
    for x in range(live):
        top = max(top, state.lowest[scratch[x]]) + model.size[scratch[x]]
    return top


def _detach(model: Model, state: State, buffer: int, section: int) -> None:
    """Swap a buffer behind the live slots of a section; reattaching is then one increment."""
    begin, last = model.slot[section], state.live[section] - 1
    pair = model.pair[buffer] + section - model.start[buffer]
    at, other = state.place[pair], state.buffers[begin + last]
    state.buffers[begin + at], state.buffers[begin + last] = other, buffer
    state.place[model.pair[other] + section - model.start[other]] = at
    state.place[pair] = last
    state.live[section] = last


def _take_back(model: Model, state: State, frames: Frames, at: int) -> None:
    """Undo the decision of a frame, in reverse."""
    buffer = frames.taken[at]
    if buffer >= 0:
        start = model.start[buffer]
        for s in range(start, model.stop[buffer]):
            state.live[s] += 1
            state.rest[s] += model.size[buffer]
            if s > start:
                state.crossing[s] += 1
        state.placed[buffer] = 0
    frames.taken[at] = NONE
    register = state.register
    while register[TRAIL] > frames.mark[at]:
        register[TRAIL] -= 1
        entry, value = state.trail_entry[register[TRAIL]], state.trail_value[register[TRAIL]]
        index, kind = entry >> 3, entry & 7
        if kind == FLOOR:
            state.floor[index] = value
        elif kind == WAITING:
            state.waiting[index] = value
        elif kind == CHILDREN:
            state.children[index] = value
        elif kind == LOWEST:
            state.lowest[index] = value
        elif kind == SUPPORT:
            state.support[index] = value
        else:
            state.beneath[index] = value


def _save(state: State, kind: int, index: int, value: int) -> None:
    at = state.register[TRAIL]
    state.trail_entry[at], state.trail_value[at] = index * 8 + kind, value
    state.register[TRAIL] = at + 1


def _hash(model: Model, state: State, low: int, high: int) -> int:
    """Hash of a component: its sections, their floors, its unplaced buffers."""
    key = (low << 16 ^ high) & HASH_MASK
    for s in range(low, high):
        key = (key * HASH_FACTOR + state.floor[s]) & HASH_MASK
    for buffer in range(model.first[low], model.first[high]):
        if state.placed[buffer] == 0:
            key = (key * HASH_FACTOR + buffer) & HASH_MASK
    return key >> 8  # the high bits depend on all that went in


def _is_dead(
    model: Model, state: State, table: Any, pool: Any, key: int, low: int, high: int
) -> bool:
    """Whether this very component has been refuted: compared in full, not by hash."""
    at = table[key % len(table)]
    if at < 0 or pool[at] != low or pool[at + 1] != high:
        return False
    at += 2
    for s in range(low, high):
        if pool[at] != state.floor[s]:
            return False
        at += 1
    for buffer in range(model.first[low], model.first[high]):
        if state.placed[buffer] == 0:
            if pool[at] != buffer:
                return False
            at += 1
    return bool(pool[at] == NONE)


def _record(
    model: Model, state: State, table: Any, pool: Any, key: int, low: int, high: int
) -> None:
    """Remember a refuted component, if there is room left for it."""
    register = state.register
    need = 3 + (high - low) + (model.first[high] - model.first[low])
    if register[POOL] + need > len(pool):
        return
    at = register[POOL]
    table[key % len(table)] = at
    pool[at], pool[at + 1] = low, high
    at += 2
    for s in range(low, high):
        pool[at] = state.floor[s]
        at += 1
    for buffer in range(model.first[low], model.first[high]):
        if state.placed[buffer] == 0:
            pool[at] = buffer
            at += 1
    pool[at] = NONE
    register[POOL] = at + 1
    register[RECORDED] += 1


def _forget(frames: Frames, log: Any, register: Any, at: int) -> None:
    """Cut a decision that has no part in the failure out of the log, with all it had refuted."""
    # The failed component's part of the log is the last: it begins where the frame above began.
    begin = frames.log[at]
    tail = frames.log[at + 1]
    for x in range(tail, register[LOG]):
        log[begin + x - tail] = log[x]
    register[LOG] -= tail - begin
    frames.log[at] = begin

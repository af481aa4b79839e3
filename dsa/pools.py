"""Several address spaces: which pool each buffer goes to, and where in it.

Buffers prefer some pools to others; what does not fit into its first pool is *spilled* to a later
one. Once that is settled, the pools are problems of their own.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import gcd
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from dsa.bodies import Bodies
from dsa.budget import Budget
from dsa.constraints import Constraints
from dsa.errors import (
    CapacityError,
    InfeasibleError,
    InvalidPlanError,
    InvalidProblemError,
)
from dsa.gate import as_natural, read
from dsa.kernels.rigid import place_body
from dsa.planner import plan
from dsa.problem import FREE, Intervals, Problem
from dsa.result import Plan
from dsa.solvers import Solver
from dsa.solvers.orders import order_by
from dsa.units import format_size
from dsa.validation import Violation, validate

__all__ = ["Pool", "PoolPlan", "plan_pools"]

FORMAT = "dsa-pool-plan"
VERSION = 1

Spill: TypeAlias = Literal["in-order", "least"]
_Make: TypeAlias = Callable[[int, list[int]], Plan]


@dataclass(frozen=True, slots=True)
class Pool:
    """An address space: its offsets start at 0, and it shares no bytes with another.

    Parameters
    ----------
    name
        Any hashable.
    capacity
        Bytes available, or None for no limit.
    alignment
        Every offset in it is a multiple of this, besides its buffer's own alignment.
    reserved
        ``(start, stop)`` ranges of bytes that no buffer may use.
    """

    name: Hashable
    capacity: int | None = None
    alignment: int = 1
    reserved: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, Hashable):
            raise InvalidProblemError(
                f"a pool cannot be named {self.name!r}: a name is hashable",
                field="name",
                value=self.name,
            )
        if self.capacity is not None:
            as_natural(self.capacity, f"capacity of pool {self.name!r}")
        as_natural(self.alignment, f"alignment of pool {self.name!r}", least=1)
        object.__setattr__(self, "reserved", Constraints(reserved=self.reserved).reserved)


@dataclass(frozen=True, repr=False)
class PoolPlan:
    """A plan for each pool. ``plan[id]`` is the pool of a buffer and its offset there.

    Parameters
    ----------
    plans
        By the pool's name; each has its own peak and bound.
    spilled
        What the choice of pools costs: for each buffer its size, once for each pool that it
        prefers to its own.
    least_spilled
        What every choice costs at least, as far as it is proven.
    """

    plans: Mapping[Hashable, Plan]
    spilled: int
    least_spilled: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "plans", MappingProxyType(dict(self.plans)))

    @cached_property
    def pool(self) -> Mapping[Hashable, Hashable]:
        """The name of each buffer's pool, by id."""
        pools = {id: name for name, plan in self.plans.items() for id in plan.problem.ids}
        return MappingProxyType(pools)

    @property
    def peaks(self) -> dict[Hashable, int]:
        """The peak of each pool."""
        return {name: plan.peak for name, plan in self.plans.items()}

    @property
    def status(self) -> str:
        """``"optimal"`` if nothing less can be spilled, otherwise ``"feasible"``."""
        return "optimal" if self.spilled == self.least_spilled else "feasible"

    def to_svg(self, path: str | os.PathLike[str]) -> None:
        """Draw the pools one below another as SVG: see `dsa.draw.svg`."""
        from dsa.draw import write_svg

        write_svg(self, path)

    def to_text(self, width: int = 80, height: int = 24) -> str:
        """Draw each pool with characters: see `dsa.draw.text`."""
        from dsa.draw import text

        return text(self, width, height)

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        from dsa.draw import svg

        return svg(self)

    def __getitem__(self, id: Hashable) -> tuple[Hashable, int]:
        name = self.pool[id]
        return name, self.plans[name][id]

    def __len__(self) -> int:
        return len(self.pool)

    def __reduce__(self) -> tuple[Any, ...]:
        return PoolPlan, (dict(self.plans), self.spilled, self.least_spilled)

    def __str__(self) -> str:
        peaks = ", ".join(f"{name} {format_size(peak)}" for name, peak in self.peaks.items())
        buffers = "1 buffer" if len(self) == 1 else f"{len(self)} buffers"
        return f"{buffers}: {peaks}; {format_size(self.spilled)} spilled: {self.status}"

    def __repr__(self) -> str:
        return f"<PoolPlan: {self}>"

    def to_dict(self) -> dict[str, Any]:
        """The plans and the choice as plain data for JSON.

        Raises
        ------
        InvalidProblemError
            Naming an id, or a name of a pool, that is neither a string nor an integer.
        """
        for name in self.plans:
            if not isinstance(name, (str, int)):
                raise InvalidProblemError(
                    f"pool {name!r}: only a name that is a string or an integer can be written",
                    field="name",
                    value=name,
                )
        return {
            "format": FORMAT,
            "version": VERSION,
            "pools": [{"name": name, "plan": plan.to_dict()} for name, plan in self.plans.items()],
            "spilled": self.spilled,
            "least_spilled": self.least_spilled,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PoolPlan:
        """Read back what `to_dict` wrote; each plan is checked as `Plan.from_dict` does.

        Raises
        ------
        InvalidPlanError
            If the data is of another format or version, or a plan in it does not hold.
        """
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise InvalidPlanError(f"expected format {FORMAT!r}, got {data!r:.80}")
        if data.get("version") != VERSION:
            raise InvalidPlanError(f"expected version {VERSION}, got {data.get('version')!r}")
        spilled, least = data.get("spilled"), data.get("least_spilled")
        if not (type(spilled) is type(least) is int and 0 <= least <= spilled):
            raise InvalidPlanError(f"{least!r} of {spilled!r} bytes cannot be spilled at least")
        pools = data.get("pools")
        if not isinstance(pools, list) or not all(
            isinstance(pool, Mapping)
            and {"name", "plan"} <= pool.keys()
            and isinstance(pool["name"], (str, int))
            for pool in pools
        ):
            raise InvalidPlanError("the plan lacks its 'pools', each with a name and a plan")
        plans = {pool["name"]: Plan.from_dict(pool["plan"]) for pool in pools}
        ids = [id for plan in plans.values() for id in plan.problem.ids]
        for what, seen in (("pools", [pool["name"] for pool in pools]), ("buffers", ids)):
            twice = [one for one, count in Counter(seen).items() if count > 1]
            if twice:
                raise InvalidPlanError(f"the plan has two {what} {twice[0]!r}")
        return cls(plans, spilled, least)

    def validate(self, intervals: Intervals | None = None) -> tuple[Violation, ...]:
        """List the rules that the plan of any pool breaks, perhaps for other buffers.

        Of the kinds of `dsa.validate`; what is at a fixed distance but in two pools is at a
        ``"wrong distance"``.

        Parameters
        ----------
        intervals
            The buffers that all pools together must hold for; each pool's own if None.
        """
        if intervals is None:
            return tuple(violation for plan in self.plans.values() for violation in plan.validate())
        problem, pins = _read(intervals, 1, None)
        violations = [
            Violation("missing", (id,), f"buffer {id!r} is in no pool")
            for id in problem.ids
            if id not in self.pool
        ]
        for name, planned in self.plans.items():
            here = [i for i, id in enumerate(problem.ids) if self.pool.get(id, self) == name]
            part, own = problem.select(np.array(here, np.int64)), planned.problem
            columns = part.columns() | {"offset": [pins[i] for i in here]}
            rules = replace(part.constraints, reserved=own.constraints.reserved)
            wanted = Problem.from_columns(**columns, capacity=own.capacity, constraints=rules)
            violations += validate(dict(zip(own.ids, planned.offsets, strict=True)), wanted)
        rules = problem.constraints
        for a, b, _ in (*rules.aliases, *rules.relative):
            pools = [self.pool[id] for id in (a, b) if id in self.pool]
            if len(set(pools)) > 1:
                message = f"buffers {a!r} and {b!r} are in pools {pools[0]!r} and {pools[1]!r}"
                violations.append(Violation("wrong distance", (a, b), message))
        return tuple(violations)


def plan_pools(
    intervals: Intervals,
    pools: Iterable[Pool],
    *,
    prefer: Mapping[Any, Sequence[Hashable]] | None = None,
    spill: Spill = "in-order",
    solver: str | Solver = "auto",
    alignment: int = 1,
    constraints: Constraints | None = None,
    time_limit: float = 10.0,
    **options: Any,
) -> PoolPlan:
    """Choose a pool for every buffer, and an offset in it.

    Parameters
    ----------
    intervals, alignment, constraints
        The buffers, as for `plan`. Buffers of one storage or at a fixed distance share a pool;
        the other constraints hold within each pool. A pinned buffer is pinned in its first pool.
        The capacity of a `Problem` is that of one address space, and does not count.
    pools
        Names must be distinct.
    prefer
        Names of the pools that a buffer may go to, the best first, by id; all pools as given for
        a buffer that is not there.
    spill
        ``"in-order"``: the largest buffer first, each to the first of its pools in which
        `greedy-by-size` finds a place for it within the capacity. ``"least"``: so that the least
        is spilled (see `PoolPlan.spilled`), by a mixed-integer program over the choices and
        `solver` on each pool; what it proves not to fit is forbidden, and the program solved
        again. Never worse than ``"in-order"``.
    solver, options
        As for `plan`, for each pool.
    time_limit
        Seconds for all of it.

    Raises
    ------
    InvalidProblemError
        If a pool is unknown or named twice, or the buffers of one body have none in common.
    InfeasibleError, CapacityError
        If the buffers do not fit, or no plan was found; a note names the pool.

    Notes
    -----
    One pool without a capacity gets exactly the plan that `plan` makes. A pool is planned by
    `solver`; where that finds nothing within the capacity, the plan is that of `greedy-by-size`.
    Guarantee: with ``"least"``, optimal if the status says so: the program's bound is met, and
    nothing was forbidden that was not proven.

    Examples
    --------
    >>> from dsa import Buffer
    >>> buffers = [Buffer(0, 2, 100, id="a"), Buffer(1, 3, 100, id="b"), Buffer(0, 3, 20, id="c")]
    >>> p = plan_pools(buffers, [Pool("fast", 128), Pool("slow")])
    >>> print(p)
    3 buffers: fast 120 B, slow 100 B; 100 B spilled: feasible
    >>> p["b"], plan_pools(buffers, [Pool("fast", 128), Pool("slow")], spill="least").status
    (('slow', 0), 'optimal')
    """
    if spill not in get_args(Spill):
        raise ValueError(f"spill must be 'in-order' or 'least', got {spill!r}")
    problem, pins = _read(intervals, alignment, constraints)
    choices = _Choices(problem, pins, tuple(pools), {} if prefer is None else prefer)
    budget = Budget(time_limit=time_limit)
    make = partial(_plan_pool, choices, solver, options, budget)
    if spill == "least":
        return _least(choices, make, budget)
    chosen = _in_order(choices)
    return PoolPlan(
        {pool.name: make(k, chosen) for k, pool in enumerate(choices.pools)}, choices.cost(chosen)
    )


def _read(
    intervals: Intervals, alignment: int, constraints: Constraints | None
) -> tuple[Problem, list[Any]]:
    """The buffers without their pins, and these: what overlaps may be in different pools."""
    given = isinstance(intervals, Problem)
    columns = intervals.columns() if isinstance(intervals, Problem) else read(intervals)
    pins = list(columns.pop("offset", [None] * len(columns["size"])))
    if given:
        pins = [None if pin == FREE else int(pin) for pin in pins]
    if isinstance(intervals, Problem) and constraints is None:
        constraints = intervals.constraints
    free = Problem.from_columns(**columns)
    return Problem(free, alignment=alignment, constraints=constraints), pins


@dataclass(frozen=True, eq=False)
class _Choices:
    """Bodies and the pools they may go to, by number, the best first."""

    problem: Problem
    pins: list[Any]
    pools: tuple[Pool, ...]
    prefer: Mapping[Any, Sequence[Hashable]]
    number: dict[Hashable, int] = field(init=False)

    def __post_init__(self) -> None:
        number: dict[Hashable, int] = {}
        for k, pool in enumerate(self.pools):
            if not isinstance(pool, Pool):
                raise TypeError(f"pools must be a list of Pool(...), but has {pool!r}")
            if number.setdefault(pool.name, k) != k:
                raise InvalidProblemError(
                    f"two pools are named {pool.name!r}", field="pools", value=pool.name
                )
        if not number:
            raise InvalidProblemError("there must be a pool", field="pools", value=())
        object.__setattr__(self, "number", number)
        if not isinstance(self.prefer, Mapping):
            raise TypeError(f"prefer must map ids to names of pools, got {self.prefer!r}")
        known = set(self.problem.ids)
        for id in self.prefer:
            if id not in known:
                raise InvalidProblemError(
                    f"prefer: there is no buffer {id!r}", id=id, field="prefer", value=id
                )

    @property
    def bodies(self) -> Bodies:
        return self.problem.bodies

    @cached_property
    def allowed(self) -> list[list[int]]:
        """For each body the numbers of its pools, in the order of its first member."""
        return [self._allowed(members) for members in self.bodies.members]

    def _allowed(self, members: list[int]) -> list[int]:
        ids = [self.problem.ids[i] for i in members]
        lists = [self._of(id) for id in ids]
        common = [k for k in lists[0] if all(k in others for others in lists)]
        if not common:
            raise InvalidProblemError(
                f"prefer: buffers {', '.join(map(repr, ids))} share a storage or lie at fixed "
                "distances, but there is no pool that all of them may go to",
                id=ids[0],
                field="prefer",
                value=tuple(ids),
            )
        pinned = any(self.pins[i] is not None for i in members)
        return common[:1] if pinned else common

    def _of(self, id: Hashable) -> list[int]:
        names = self.prefer.get(id, list(self.number))
        if isinstance(names, str) or not isinstance(names, Iterable):
            names = [names]
        names = list(names)
        for name in names:
            if not isinstance(name, Hashable) or name not in self.number:
                raise InvalidProblemError(
                    f"buffer {id!r}: there is no pool {name!r}; there are "
                    f"{', '.join(map(repr, self.number))}",
                    id=id,
                    field="prefer",
                    value=name,
                )
        return [self.number[name] for name in names]

    @cached_property
    def size(self) -> list[int]:
        """Bytes of the buffers of each body."""
        size = self.problem.size
        return [int(size[members].sum()) for members in self.bodies.members]

    def cost(self, chosen: list[int]) -> int:
        """What it costs to put each body into the pool of this number."""
        columns = zip(self.size, self.allowed, chosen, strict=True)
        return sum(size * allowed.index(k) for size, allowed, k in columns)

    def part(self, k: int, bodies: Iterable[int]) -> Problem:
        """The problem of pool `k` with these bodies."""
        positions = sorted(i for body in bodies for i in self.bodies.members[body])
        part, pool = self.problem.select(np.array(positions, np.int64)), self.pools[k]
        columns = part.columns() | {"offset": [self.pins[i] for i in positions]}
        reserved = (*part.constraints.reserved, *pool.reserved)
        return Problem(
            Problem.from_columns(**columns),
            capacity=pool.capacity,
            alignment=pool.alignment,
            constraints=replace(part.constraints, reserved=reserved),
        )

    def room(self, k: int) -> int | None:
        """Bytes of pool `k` that buffers may use; None for no limit."""
        capacity = self.pools[k].capacity
        padding = self.problem.constraints.tail_padding
        return None if capacity is None else max(capacity - padding, 0)


def _plan_pool(
    choices: _Choices,
    solver: str | Solver,
    options: Mapping[str, Any],
    budget: Budget,
    k: int,
    chosen: list[int],
) -> Plan:
    """A plan of the bodies that are to go to pool `k`, within its capacity."""
    pool = choices.pools[k]
    part = choices.part(k, [body for body, at in enumerate(chosen) if at == k])
    seconds = max(budget.remaining(), 0.01)
    try:
        return plan(part, solver, time_limit=seconds, **options)
    except CapacityError as error:
        try:
            return plan(part, "greedy-by-size")
        except CapacityError:
            error.add_note(f"in pool {pool.name!r}")
            raise error from None
    except InfeasibleError as error:
        error.add_note(f"in pool {pool.name!r}")
        raise


def _in_order(choices: _Choices) -> list[int]:
    """The largest body first, each into the first pool that has a place for it.

    One that none has a place for goes to its last pool: `solver` may find one there.
    """
    bodies = choices.bodies
    able = [
        [i for i, allowed in enumerate(choices.allowed) if k in allowed]
        for k in range(len(choices.pools))
    ]
    parts = [choices.part(k, able[k]) for k in range(len(choices.pools))]
    number = [
        {
            i: int(part.bodies.body[part.index(choices.problem.ids[bodies.members[i][0]])])
            for i in able[k]
        }
        for k, part in enumerate(parts)
    ]
    offsets = [np.full(len(part.bodies), -1, np.int64) for part in parts]
    chosen = [-1] * len(bodies)
    for i, allowed in enumerate(choices.allowed):
        pin = parts[allowed[0]].bodies.domain[number[allowed[0]][i]].pin
        if pin is not None:
            chosen[i] = allowed[0]
            offsets[allowed[0]][number[allowed[0]][i]] = pin
    for i in dict.fromkeys(bodies.body[order_by(choices.problem, "size")].tolist()):
        if chosen[i] >= 0:
            continue
        chosen[i] = choices.allowed[i][-1]
        for k in choices.allowed[i]:
            part, body, room = parts[k].bodies, number[k][i], parts[k].room
            offset = place_body(part, body, offsets[k], "best")
            if room is None or offset + int(part.height[body]) <= room:
                chosen[i] = k
                offsets[k][body] = offset
                break
    return chosen


def _least(choices: _Choices, make: _Make, budget: Budget) -> PoolPlan:
    """Start in order; then solve the program, plan the pools, forbid what does not fit, again.

    What was forbidden without a proof may have been the best choice: then nothing is claimed.
    """
    program, proven = _Program(choices), True
    best, failure = _try(choices, make, _in_order(choices))
    while (best is None or best.spilled > 0) and not budget.expired():
        answer = program.solve(budget)
        if answer is None:
            break
        chosen, least = answer
        if best is not None and best.spilled <= least:
            return replace(best, least_spilled=best.spilled if proven else 0)
        found, failure = _try(choices, make, chosen, program)
        if found is not None:
            best = min(best or found, found, key=lambda plan: plan.spilled)
            return replace(best, least_spilled=least if proven else 0)
        proven = proven and isinstance(failure, InfeasibleError)
    if best is not None:
        return best
    assert failure is not None
    raise failure


def _try(
    choices: _Choices, make: _Make, chosen: list[int], program: _Program | None = None
) -> tuple[PoolPlan | None, CapacityError | InfeasibleError | None]:
    """Plans of all pools, or why there are none; the program learns what does not fit."""
    plans: dict[Hashable, Plan] = {}
    failures: list[CapacityError | InfeasibleError] = []
    for k, pool in enumerate(choices.pools):
        try:
            plans[pool.name] = make(k, chosen)
        except (CapacityError, InfeasibleError) as error:
            failures.append(error)
            if program is not None:
                program.forbid(k, chosen, getattr(error, "ids", ()))
    if failures:
        unproven = (error for error in failures if isinstance(error, CapacityError))
        return None, next(unproven, failures[0])
    return PoolPlan(plans, choices.cost(chosen)), None


class _Program:
    """The choices as binaries: one pool for each body, no step above a capacity."""

    def __init__(self, choices: _Choices) -> None:
        import pulp

        from dsa.solvers.backends import variable

        self._choices = choices
        self._sum = pulp.lpSum
        self._unit = gcd(*choices.size) or 1
        self._program = pulp.LpProblem("pools")
        make = partial(variable, self._program)
        self._goes = [
            {k: make(f"y{i}_{k}", 0, 1, start=int(k == allowed[0])) for k in allowed}
            for i, allowed in enumerate(choices.allowed)
        ]
        self._program += self._sum(
            (choices.size[i] // self._unit) * allowed.index(k) * self._goes[i][k]
            for i, allowed in enumerate(choices.allowed)
            for k in allowed
        )
        for goes in self._goes:
            self._program += self._sum(goes.values()) == 1
        self._limit_load()

    def _limit_load(self) -> None:
        """What is live at one step fits into each pool, where all of it needs bytes apart."""
        bodies = self._choices.bodies
        loose = {i for i in range(len(bodies)) if bodies.loose(i)}
        for _, live in bodies.sections():
            for k in range(len(self._choices.pools)):
                here = [(size, i) for i, size in live.items() if k in self._goes[i]]
                here = [(size, i) for size, i in here if i not in loose]
                room = self._choices.room(k)
                if room is not None and sum(size for size, _ in here) > room:
                    total = self._sum(size * self._goes[i][k] for size, i in here)
                    self._program += total <= room

    def forbid(self, k: int, chosen: list[int], ids: Sequence[Hashable]) -> None:
        """Never again all of these buffers, or all that were there, in pool `k` together."""
        problem, bodies = self._choices.problem, self._choices.bodies
        there = {int(bodies.body[problem.index(id)]) for id in ids}
        there = there or {i for i, at in enumerate(chosen) if at == k}
        self._program += self._sum(self._goes[i][k] for i in there) <= len(there) - 1

    def solve(self, budget: Budget) -> tuple[list[int], int] | None:
        """The choice that spills least, and what every choice spills at least; None if none is."""
        from dsa.solvers import backends

        answer = backends.solve(self._program, None, budget)
        if not answer.found:
            return None
        chosen = [max(goes, key=lambda k: goes[k].value() or 0.0) for goes in self._goes]
        cost = self._choices.cost(chosen)
        sure = answer.proved and cost // self._unit * answer.tolerance < 0.5
        return chosen, cost if sure else 0

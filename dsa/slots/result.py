"""What a slot solver hands to the planner, and what the planner hands to the caller."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from dsa.bounds import Bound, lower_bound
from dsa.errors import InvalidPlanError, InvalidProblemError
from dsa.problem import Buffer, Intervals, Problem
from dsa.result import Plan, kebab
from dsa.slots.maxima import positional_maxima
from dsa.slots.validation import validate_slots
from dsa.units import format_size
from dsa.validation import Violation

__all__ = ["SlotPlan", "SlotSolution"]

FORMAT = "dsa-slots"
VERSION = 1
_FIELDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("fingerprint", "bound", "status", "solver"), str),
    **dict.fromkeys(("slots", "sizes", "alignments"), list),
    **dict.fromkeys(("total", "lower_bound"), int),
    **dict.fromkeys(("problem", "stats"), Mapping),
    "seconds": (int, float),
}
POSITIONAL = "positional maxima"  # the kind of a bound that no search gave


@dataclass(frozen=True, slots=True)
class SlotSolution:
    """What a slot solver returns: a slot for each buffer, and at most a bound that it proved.

    Parameters
    ----------
    slots
        Numbers from 0, one for each buffer, in order; those of buffers of size 0 do not count.
    lower_bound
        Bytes that the solver proved no total can be below; None if it proved nothing.
    stats
        Whatever the solver wants to tell about its run.
    """

    slots: Sequence[int]
    lower_bound: int | None = None
    stats: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class SlotPlan:
    """A slot for each buffer of a problem, validated, with a bound to judge the total by.

    Made by `plan_slots()`; ``plan[id]`` is a slot, iteration gives ``(buffer, slot)`` pairs.

    Parameters
    ----------
    problem
        What was planned.
    slots
        Slot of each buffer, in the order of the buffers.
    bound_witness
        The lower bound on the total, with its reason: the positional maxima, or a search.
    solver
        The solver with all its options, as an expression that makes it again.
    seconds
        Wall time of the call.
    stats
        What the solver told about its run.

    Examples
    --------
    >>> from dsa.slots import plan_slots
    >>> rows = [Buffer(0, 2, 64, id="a"), Buffer(2, 4, 48, id="b"), Buffer(1, 3, 8, id="c")]
    >>> p = plan_slots(rows)
    >>> p["b"], p.sizes, p.total
    (0, (64, 8), 72)
    >>> p.as_plan().offsets
    (0, 0, 64)
    """

    problem: Problem
    slots: tuple[int, ...]
    bound_witness: Bound
    solver: str
    seconds: float = 0.0
    stats: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "slots", tuple(self.slots))
        object.__setattr__(self, "stats", MappingProxyType(dict(self.stats)))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Size of each slot: that of its largest tenant."""
        sizes = [0] * (max(self.slots, default=-1) + 1)
        for slot, size in zip(self.slots, self.problem.size.tolist(), strict=True):
            sizes[slot] = max(sizes[slot], size)
        return tuple(sizes)

    @cached_property
    def alignments(self) -> tuple[int, ...]:
        """Alignment that each slot needs: the least common multiple of its tenants'."""
        alignments = [1] * len(self.sizes)
        for slot, alignment in zip(self.slots, self.problem.alignment.tolist(), strict=True):
            alignments[slot] = math.lcm(alignments[slot], alignment)
        return tuple(alignments)

    @property
    def total(self) -> int:
        """Bytes of all slots together: what is minimised."""
        return sum(self.sizes)

    @property
    def lower_bound(self) -> int:
        """Bytes that no total can be below; `bound_witness` says why."""
        return self.bound_witness.value

    @property
    def gap(self) -> float:
        """``total / lower_bound - 1``; 0 means proven optimal."""
        return self.total / self.lower_bound - 1 if self.lower_bound else 0.0

    @property
    def status(self) -> str:
        """``"optimal"`` if the total equals the lower bound, otherwise ``"feasible"``."""
        return "optimal" if self.total == self.lower_bound else "feasible"

    @cached_property
    def slot_offsets(self) -> tuple[int, ...]:
        """Where each slot starts if they lie one upon another, each aligned."""
        offsets, end = [], 0
        for size, alignment in zip(self.sizes, self.alignments, strict=True):
            offsets.append(-(-end // alignment) * alignment)
            end = offsets[-1] + size
        return tuple(offsets)

    def as_plan(self) -> Plan:
        """The same as a plan with offsets, slot upon slot, to be drawn or written to a file.

        Its peak is the total, plus the padding between slots where there are alignments. Its bound
        is the one of offsets, which is lower.
        """
        return Plan(
            self.problem,
            np.array([self.slot_offsets[slot] for slot in self.slots], np.int64),
            lower_bound(self.problem),
            self.solver,
            self.seconds,
            self.stats,
        )

    def to_dict(self) -> dict[str, Any]:
        """The slots and their problem as plain data for JSON; ids must be strings or integers."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "fingerprint": self.problem.fingerprint,
            "problem": self.problem.to_dict(),
            "slots": list(self.slots),
            "sizes": list(self.sizes),
            "alignments": list(self.alignments),
            "total": self.total,
            "lower_bound": self.lower_bound,
            "bound": self.bound_witness.kind,
            "status": self.status,
            "solver": self.solver,
            "seconds": self.seconds,
            "stats": dict(self.stats),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], intervals: Intervals | None = None) -> SlotPlan:
        """Read back what `to_dict` wrote, believing nothing that can be checked.

        A bound that a search gave is believed.

        Parameters
        ----------
        data
            As `to_dict` returned it.
        intervals
            The problem that the slots are wanted for; that in the data if None.

        Raises
        ------
        InvalidPlanError
            If the data is of another format or version, lacks a field, was made for another
            problem or for none that is valid, or its slots, sizes or bound do not hold.

        Examples
        --------
        >>> from dsa.slots import plan_slots
        >>> p = plan_slots([(0, 2, 64), (1, 3, 8)])
        >>> SlotPlan.from_dict(p.to_dict()) == p
        True
        """
        if not isinstance(data, Mapping) or (data.get("format"), data.get("version")) != (
            FORMAT,
            VERSION,
        ):
            raise InvalidPlanError(f"expected slots of format {FORMAT!r} version {VERSION}")
        for name, kinds in _FIELDS.items():
            if name not in data:
                raise InvalidPlanError(f"the slots lack {name!r}")
            if not isinstance(data[name], kinds) or isinstance(data[name], bool):
                raise InvalidPlanError(f"the slots' {name!r} cannot be {data[name]!r}")
        try:
            problem = Problem.from_dict(data["problem"])
        except InvalidProblemError as error:
            raise InvalidPlanError(f"the slots' problem: {error}") from error
        wanted = problem if intervals is None else Problem(intervals)
        if {problem.fingerprint, wanted.fingerprint} != {data["fingerprint"]}:
            raise InvalidPlanError("the slots were made for another problem")
        _check_slots(data, problem)
        kind, value = data["bound"], data["lower_bound"]
        if kind not in (POSITIONAL, "search"):
            raise InvalidPlanError(f"the slots' 'bound' cannot be {kind!r}")
        least = sum(positional_maxima(problem))
        bound = Bound(value if kind == "search" else least, kind)
        plan = cls(problem, data["slots"], bound, data["solver"], data["seconds"], data["stats"])
        claims = (data["sizes"], data["total"], value, data["status"])
        found = (list(plan.sizes), plan.total, plan.lower_bound, plan.status)
        if data["alignments"] != list(plan.alignments):
            raise InvalidPlanError(
                f"the slots claim alignments {data['alignments']}, but need {plan.alignments}"
            )
        if claims != found or not least <= value <= plan.total:
            raise InvalidPlanError(
                f"the slots claim sizes {claims[0]}, total {claims[1]} and lower bound {value}, "
                f"{claims[3]}, but have sizes {found[0]}, and the positional maxima are {least}"
            )
        return plan

    def validate(self, intervals: Intervals | None = None) -> tuple[Violation, ...]:
        """List the rules that the plan breaks, perhaps for other buffers: see `validate_slots`."""
        problem = self.problem if intervals is None else Problem(intervals)
        slots = dict(zip(self.problem.ids, self.slots, strict=True))
        return validate_slots(slots, problem, sizes=self.sizes)

    def __getitem__(self, id: Hashable) -> int:
        """Slot of the buffer with this id."""
        return self.slots[self.problem.index(id)]

    def __len__(self) -> int:
        return len(self.problem)

    def __iter__(self) -> Iterator[tuple[Buffer, int]]:
        return zip(self.problem, self.slots, strict=True)

    def __eq__(self, other: object) -> bool:
        """Equal if problem and slots are."""
        if not isinstance(other, SlotPlan):
            return NotImplemented
        return self.problem == other.problem and self.slots == other.slots

    def __hash__(self) -> int:
        return hash((self.problem, self.slots))

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self.problem, self.slots, self.bound_witness, self.solver)
        return SlotPlan, (*arguments, self.seconds, dict(self.stats))

    def __str__(self) -> str:
        buffers = "1 buffer" if len(self) == 1 else f"{len(self)} buffers"
        slots = "1 slot" if len(self.sizes) == 1 else f"{len(self.sizes)} slots"
        quality = "optimal" if self.status == "optimal" else f"gap {100 * self.gap:.3g} %"
        return (
            f"{buffers} in {slots}, total {format_size(self.total)}, lower bound "
            f"{format_size(self.lower_bound)}: {quality} ({kebab(self.solver.partition('(')[0])})"
        )

    def __repr__(self) -> str:
        return f"<SlotPlan: {self}>"


def _check_slots(data: Mapping[str, Any], problem: Problem) -> None:
    slots, sizes = data["slots"], data["sizes"]
    if not all(type(size) is int for size in sizes):
        raise InvalidPlanError(f"the slots' 'sizes' must be integers, got {sizes!r}")
    violations = validate_slots(slots, problem.with_capacity(None), sizes=sizes)
    if violations:
        raise InvalidPlanError(
            f"the slots break {len(violations)} rules of their problem; the first is "
            f"{violations[0]}",
            violations=violations,
        )

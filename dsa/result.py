"""What a solver hands to the planner, and what the planner hands to the caller."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from types import MappingProxyType, NoneType
from typing import Any

import numpy as np

from dsa.bounds import Bound, lower_bound
from dsa.errors import InvalidPlanError, InvalidProblemError, InvalidProofError
from dsa.gate import id_to_data
from dsa.problem import Buffer, IntArray, Intervals, Problem
from dsa.proof import Proof, check
from dsa.units import format_size
from dsa.validation import Violation, validate

__all__ = ["Plan", "Solution"]

FORMAT = "dsa-plan"
VERSION = 1
_FIELDS: dict[str, Any] = {
    "fingerprint": str,
    "problem": Mapping,
    "offsets": list,
    "peak": int,
    "lower_bound": int,
    "bound_witness": Mapping,
    "solver": str,
    "seconds": (int, float),
    "stats": Mapping,
    "proof": (Mapping, NoneType),
}
_NUMBERS = ("peak", "lower_bound", "seconds")


@dataclass(frozen=True, slots=True)
class Solution:
    """What a solver returns: offsets, and at most a bound that it proved.

    Parameters
    ----------
    offsets
        One for each buffer of the problem, in order.
    lower_bound
        Bytes that the solver proved no plan can be below; None if it proved nothing.
    stats
        Whatever the solver wants to tell about its run. Under ``"found_by"`` a solver that
        calls others names the one whose plan this is.
    proof
        Of the bound, where it is more than the load and the solver kept one.
    """

    offsets: Sequence[int] | IntArray
    lower_bound: int | None = None
    stats: Mapping[str, Any] = field(default_factory=dict)
    proof: Proof | None = None

    def peak(self, problem: Problem) -> int:
        """Highest end of a buffer that has a size, in the problem's units."""
        return peak(problem, self.offsets)


def peak(problem: Problem, offsets: Sequence[int] | IntArray) -> int:
    """``max(offset + size)`` over the buffers that have a size; 0 if none has."""
    ends = (np.asarray(offsets, np.int64) + problem.size)[problem.size > 0]
    return int(ends.max(initial=0))


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """Offsets for the buffers of a problem, validated, with a bound to judge them by.

    Made by `plan()`; ``plan[id]`` is an offset, iteration gives ``(buffer, offset)`` pairs.

    Parameters
    ----------
    problem
        What was planned.
    offsets_array
        Offsets in the order of the buffers, a read-only int64 array.
    bound_witness
        The lower bound on the peak, with its reason.
    solver
        The solver with all its options, as an expression that makes it again.
    seconds
        Wall time of the call.
    stats
        What the solver told about its run.
    proof
        Of a bound that only a search can give, if the solver was asked for it:
        `dsa.proof.check` judges it.

    Examples
    --------
    >>> from dsa import plan
    >>> p = plan([Buffer(0, 2, 8, id="a"), Buffer(2, 4, 8, id="b"), Buffer(1, 3, 4, id="c")])
    >>> p.offsets, p.peak, p.lower_bound, p.status
    ((0, 0, 8), 12, 12, 'optimal')
    >>> p["c"]
    8
    """

    problem: Problem
    offsets_array: IntArray
    bound_witness: Bound
    solver: str
    seconds: float = 0.0
    stats: Mapping[str, Any] = field(default_factory=dict)
    proof: Proof | None = None

    def __post_init__(self) -> None:
        array = np.array(self.offsets_array, np.int64)
        array.flags.writeable = False
        object.__setattr__(self, "offsets_array", array)
        object.__setattr__(self, "stats", MappingProxyType(dict(self.stats)))

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Offsets as Python integers, in the order of the buffers."""
        return tuple(self.offsets_array.tolist())

    @cached_property
    def peak(self) -> int:
        """``max(offset + size)``: bytes that the plan needs."""
        return peak(self.problem, self.offsets_array)

    @property
    def lower_bound(self) -> int:
        """Bytes that no plan can be below; `bound_witness` says why."""
        return self.bound_witness.value

    @property
    def gap(self) -> float:
        """``peak / lower_bound - 1``; 0 means proven optimal."""
        return self.peak / self.lower_bound - 1 if self.lower_bound else 0.0

    @property
    def status(self) -> str:
        """``"optimal"`` if the peak equals the lower bound, otherwise ``"feasible"``."""
        return _status(self.peak, self.lower_bound)

    @property
    def base_alignment(self) -> int:
        """Alignment that the start of the arena needs."""
        return self.problem.base_alignment

    @property
    def arena_size(self) -> int:
        """Peak and tail padding, rounded up to the base alignment, for arenas side by side."""
        end = self.peak + self.problem.constraints.tail_padding
        return -(-end // self.base_alignment) * self.base_alignment

    def __getitem__(self, id: Hashable) -> int:
        """Offset of the buffer with this id."""
        return self.offsets[self.problem.index(id)]

    def __len__(self) -> int:
        return len(self.problem)

    def __iter__(self) -> Iterator[tuple[Buffer, int]]:
        return zip(self.problem, self.offsets, strict=True)

    def __eq__(self, other: object) -> bool:
        """Equal if problem and offsets are."""
        if not isinstance(other, Plan):
            return NotImplemented
        return self.problem == other.problem and self.offsets == other.offsets

    def __hash__(self) -> int:
        return hash((self.problem, self.offsets))

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self.problem, self.offsets_array, self.bound_witness, self.solver)
        return Plan, (*arguments, self.seconds, dict(self.stats), self.proof)

    def __str__(self) -> str:
        return f"{self.headline} ({self.origin}, {_duration(self.seconds)})"

    def __repr__(self) -> str:
        return f"<Plan: {self}>"

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        from dsa.draw import svg

        return svg(self)

    @property
    def headline(self) -> str:
        """``5 buffers, peak 12 B, lower bound 12 B: optimal``."""
        buffers = "1 buffer" if len(self) == 1 else f"{len(self)} buffers"
        quality = "optimal" if self.status == "optimal" else f"gap {100 * self.gap:.3g} %"
        return (
            f"{buffers}, peak {format_size(self.peak)}, lower bound "
            f"{format_size(self.lower_bound)}: {quality}"
        )

    @property
    def origin(self) -> str:
        """``auto -> strip-packing``: the solver's name, and whose plan it returned."""
        name = kebab(self.solver.partition("(")[0])
        found_by = self.stats.get("found_by", name)
        return name if found_by == name else f"{name} -> {found_by}"

    def summary(self) -> str:
        """Several lines: the plan, why its bound holds, and how the arena is to be allocated."""
        free, alignment = self.problem.pin < 0, self.base_alignment
        above = self.peak - self.problem.load  # below it where exclusive buffers share bytes
        lines = [
            str(self),
            f"bound:   {self.lower_bound} B, {self.bound_witness}",
            f"peak:    {self.peak} B, {abs(above)} B {'above' if above >= 0 else 'below'} the load",
            f"arena:   {self.arena_size} B at an address that is a multiple of {alignment}",
            f"buffers: {int(self.problem.size.sum())} B without reuse, {int((~free).sum())} pinned",
            f"solver:  {self.solver}",
        ]
        return "\n".join(lines)

    def validate(
        self, intervals: Intervals | None = None, *, capacity: int | None = None
    ) -> tuple[Violation, ...]:
        """List the rules that the plan breaks, perhaps against other lifetimes: see `validate`.

        Examples
        --------
        >>> from dsa import plan
        >>> p = plan([Buffer(0, 2, 8, id="a"), Buffer(2, 4, 8, id="b")])
        >>> p.validate()
        ()
        >>> later = [Buffer(0, 2, 8, id="a"), Buffer(1, 4, 8, id="b")]
        >>> print(*p.validate(later))
        overlap: buffers 'a' and 'b' share bytes [0, 8) in steps [1, 2)
        """
        return validate(self, intervals, capacity=capacity)

    def to_dict(self) -> dict[str, Any]:
        """The plan and its problem as plain data for JSON; ids as in `Problem.to_dict`."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "fingerprint": self.problem.fingerprint,
            "problem": self.problem.to_dict(),
            "offsets": list(self.offsets),
            "peak": self.peak,
            "lower_bound": self.lower_bound,
            "bound_witness": {
                "kind": self.bound_witness.kind,
                "step": self.bound_witness.step,
                "ids": list(map(id_to_data, self.bound_witness.ids)),
            },
            "status": self.status,
            "solver": self.solver,
            "seconds": self.seconds,
            "stats": dict(self.stats),
            "proof": None if self.proof is None else self.proof.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], intervals: Intervals | None = None) -> Plan:
        """Read back what `to_dict` wrote, believing nothing that can be checked.

        A bound that a search gave is believed if no proof comes with it. A plan over capacity is
        read, for a `CapacityError` carries one; `validate` says by how much it is over.

        Parameters
        ----------
        data
            As `to_dict` returned it.
        intervals
            The problem that the plan is wanted for; that in the data if None.

        Raises
        ------
        InvalidPlanError
            If the data is of another format or version, was made for another problem or for none
            that is valid, breaks a rule of its problem, or claims a peak, a bound, a status or a
            proof that does not hold. A bound that is lower than it could be is found anew.
        """
        data = _read_fields(data)
        try:
            stored = Problem.from_dict(data["problem"])
        except InvalidProblemError as error:
            raise InvalidPlanError(f"the plan's problem: {error}") from error
        for problem, whose in ((stored, "the problem beside it"), (intervals, "this problem")):
            if problem is not None and Problem(problem).fingerprint != data["fingerprint"]:
                raise InvalidPlanError(
                    f"the plan was made for another problem: its fingerprint is not that of {whose}"
                )
        violations = validate(data["offsets"], stored.with_capacity(None))
        if violations:
            raise InvalidPlanError(
                f"the plan breaks {len(violations)} rules of its problem; the first is "
                f"{violations[0]}",
                violations=violations,
            )
        proof = _read_proof(data)
        plan = cls(
            stored,
            np.array(data["offsets"], np.int64),
            _read_bound(data, stored, proof),
            data["solver"],
            data["seconds"],
            data["stats"],
            proof,
        )
        if plan.peak != data["peak"] or not data["lower_bound"] <= plan.lower_bound <= plan.peak:
            raise InvalidPlanError(
                f"the plan claims peak {data['peak']} and lower bound {data['lower_bound']}, but "
                f"its offsets give peak {plan.peak} and its problem {plan.lower_bound}"
            )
        status = _status(data["peak"], data["lower_bound"])
        if data.get("status", status) != status:
            raise InvalidPlanError(
                f"the plan claims to be {data['status']!r}, but peak {data['peak']} and lower "
                f"bound {data['lower_bound']} make it {status!r}"
            )
        return plan

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write buffers and offsets as CSV: see `dsa.io.write_csv`."""
        from dsa.io import write_csv

        write_csv(self, path)

    def to_svg(self, path: str | PathLike[str]) -> None:
        """Draw the plan as SVG: see `dsa.draw.svg`."""
        from dsa.draw import write_svg

        write_svg(self, path)

    def to_text(self, width: int = 80, height: int = 24) -> str:
        """Draw the plan with characters: see `dsa.draw.text`."""
        from dsa.draw import text

        return text(self, width, height)


def _status(peak: int, lower_bound: int) -> str:
    return "optimal" if peak == lower_bound else "feasible"


def _read_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a plan, all there and of their types."""
    if not isinstance(data, Mapping):
        raise InvalidPlanError(f"expected a mapping of fields, got {data!r}")
    format, version = data.get("format"), data.get("version")
    if format != FORMAT or type(version) is not int or version != VERSION:
        raise InvalidPlanError(
            f"expected format {FORMAT!r} version {VERSION}, got {format!r} version {version!r}"
        )
    fields = {"seconds": 0.0, "stats": {}, "proof": None, **data}
    for name, kind in _FIELDS.items():
        if name not in fields:
            raise InvalidPlanError(f"the plan lacks {name!r}")
        value = fields[name]
        if not isinstance(value, kind) or isinstance(value, bool) or not _in_range(name, value):
            raise InvalidPlanError(f"the plan's {name!r} cannot be {value!r}")
    return fields


def _in_range(name: str, value: Any) -> bool:
    """Whether a number is at least 0, and finite (which NaN is not)."""
    return name not in _NUMBERS or 0 <= value <= sys.float_info.max


def _read_proof(data: Mapping[str, Any]) -> Proof | None:
    try:
        return None if data["proof"] is None else Proof.from_dict(data["proof"])
    except InvalidProofError as error:
        raise InvalidPlanError(f"{error}") from error


def _read_bound(data: Mapping[str, Any], problem: Problem, proof: Proof | None) -> Bound:
    """The bound anew; one that only a search can give needs its proof, if there is one."""
    bound, recorded = lower_bound(problem), data["bound_witness"]
    if proof is not None:
        try:
            bound = max(bound, Bound(check(problem, proof), "search"), key=lambda b: b.value)
        except InvalidProofError as error:
            raise InvalidPlanError(f"the plan's proof does not hold: {error}") from error
    elif recorded.get("kind") == "search" and data["lower_bound"] > bound.value:
        return Bound(data["lower_bound"], "search")
    return bound


def kebab(name: str) -> str:
    """``StripPacking`` is called ``strip-packing``."""
    return "".join("-" + c.lower() if c.isupper() else c for c in name).lstrip("-")


def _duration(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"

"""Every exception the library raises on purpose.

"Cannot" and "did not" are different types: `InfeasibleError` is a proof, `CapacityError` is
the best that was found.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsa.proof import Proof
    from dsa.result import Plan
    from dsa.validation import Violation


class DsaError(Exception):
    """Root of all errors raised on purpose by `dsa`."""

    # Exceptions are rebuilt from `args` when unpickled; ours take keywords, so the
    # attributes travel as state instead.
    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[DsaError], args: tuple[Any, ...], state: dict[str, Any]) -> DsaError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class InvalidProblemError(DsaError, ValueError):
    """The input does not describe a problem.

    Attributes
    ----------
    id
        Id of the offending buffer, or None where no single buffer is at fault.
    field
        Name of the offending field.
    value
        What the field held.
    """

    def __init__(
        self, message: str, *, id: Hashable = None, field: str | None = None, value: object = None
    ) -> None:
        super().__init__(message)
        self.id = id
        self.field = field
        self.value = value


class FileFormatError(InvalidProblemError):
    """A file does not hold what its format asks for; the message names file, line and column."""


class UnknownSolverError(DsaError, ValueError):
    """No solver has this name; the message lists those that exist."""


class SolverUnavailableError(DsaError, ImportError):
    """A solver or its backend is not installed, or does not work here; says what to install."""


class UnsupportedError(DsaError, ValueError):
    """A solver was given a feature it cannot honour; the message lists solvers that can."""


class InfeasibleError(DsaError):
    """Proven: no plan fits into the capacity.

    Attributes
    ----------
    kind
        Of the bound that proves it: see `dsa.bounds.Bound`.
    capacity
        Bytes available.
    lower_bound
        Bytes that every plan needs.
    short_by
        ``lower_bound - capacity``.
    step
        A step at which the buffers do not fit, or None where the proof names none.
    ids
        Ids of the buffers that the proof rests on, as far as they are known.
    proof
        The proof of a search, if one was kept.
    """

    def __init__(
        self,
        message: str,
        *,
        capacity: int,
        lower_bound: int,
        kind: str,
        step: int | None = None,
        ids: Sequence[Hashable] = (),
        proof: Proof | None = None,
    ) -> None:
        super().__init__(message)
        self.capacity = capacity
        self.lower_bound = lower_bound
        self.short_by = lower_bound - capacity
        self.kind = kind
        self.step = step
        self.ids = tuple(ids)
        self.proof = proof


class CapacityError(DsaError):
    """Not proven: the solver found no plan within the capacity, which does not mean there is none.

    Attributes
    ----------
    plan
        The best valid plan found, over capacity.
    capacity
        Bytes available.
    over_by
        ``plan.peak - capacity``.
    """

    def __init__(self, message: str, *, plan: Plan, capacity: int) -> None:
        super().__init__(message)
        self.plan = plan
        self.capacity = capacity
        self.over_by = plan.peak - capacity


class InvalidPlanError(DsaError, ValueError):
    """A plan breaks its problem's rules.

    Attributes
    ----------
    violations
        One `Violation` for each rule broken, with its witness.
    """

    def __init__(self, message: str, *, violations: Sequence[Violation] = ()) -> None:
        super().__init__(message)
        self.violations = tuple(violations)


class InvalidProofError(DsaError, ValueError):
    """A proof does not hold.

    Attributes
    ----------
    entry
        The entry of its log at which it fails, or None where it fails before the log is read.
    """

    def __init__(self, message: str, *, entry: int | None = None) -> None:
        super().__init__(message)
        self.entry = entry


class SolverError(DsaError):
    """A solver returned something that is no plan: a bug in the solver, never the caller's."""

"""Memory planning: offsets for buffers with known lifetimes, so that the peak is low.

>>> from dsa import plan
>>> p = plan([(0, 3, 4), (3, 9, 4), (0, 9, 4), (9, 21, 4), (0, 21, 4)])
>>> p.peak, p.status
(12, 'optimal')
"""

from dsa.constraints import Constraints
from dsa.errors import (
    CapacityError,
    DsaError,
    FileFormatError,
    InfeasibleError,
    InvalidPlanError,
    InvalidProblemError,
    InvalidProofError,
    SolverError,
    SolverUnavailableError,
    UnknownSolverError,
    UnsupportedError,
)
from dsa.explain import explain_infeasible
from dsa.io import load
from dsa.many import plan_many
from dsa.planner import plan
from dsa.problem import Buffer, Problem
from dsa.result import Plan
from dsa.validation import Violation, validate

__all__ = [
    "Buffer",
    "CapacityError",
    "Constraints",
    "DsaError",
    "FileFormatError",
    "InfeasibleError",
    "InvalidPlanError",
    "InvalidProblemError",
    "InvalidProofError",
    "Plan",
    "Problem",
    "SolverError",
    "SolverUnavailableError",
    "UnknownSolverError",
    "UnsupportedError",
    "Violation",
    "explain_infeasible",
    "load",
    "plan",
    "plan_many",
    "validate",
]

__version__ = "0.1.0"

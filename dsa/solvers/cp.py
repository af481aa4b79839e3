"""Constraint programming: each section is a machine, each buffer occupies its bytes on it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dsa.budget import Budget, check_seconds
from dsa.kernels.placement import place
from dsa.problem import FREE, IntArray, Problem
from dsa.result import Solution, peak
from dsa.solvers import ALL, Solver, check_counts
from dsa.solvers.body_models import constraint_program
from dsa.solvers.starts import Found, equals, equals_in_order, improve, members

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntVar

__all__ = ["Cp"]


@dataclass(frozen=True)
class Cp(Solver):
    """Constraint programming by OR-tools CP-SAT, one no-overlap for each section.

    The plan is never worse than the best of `strip-packing`, `greedy-by-size` and
    `greedy-by-breadth`, which are run first; where one of them meets the target, CP-SAT is not
    started.

    Parameters
    ----------
    seconds
        Time limit, for each component, if the call has none.
    workers
        Threads of CP-SAT. With more than one, the plan may differ from run to run.
    max_pairs
        Above so many conflicting pairs CP-SAT is not started: the plan is the best of the
        solvers above, and ``stats["backend_status"]`` says so.

    Notes
    -----
    For an offset o_i and a size s_i of each buffer i::

        minimise  peak
        so that   [o_i, o_i + s_i) are disjoint      for all i in a section
                  o_i + s_i <= peak
                  o_i + s_i <= o_j                   for i < j if equal
                  lower bound <= peak <= peak of the best plan so far

    An offset is a multiple of an integer variable where it must be aligned, a constant where it is
    pinned. Sections are the maximal sets of buffers live together, so they hold every conflict.
    With constraints each two bodies have a choice of ranges instead, between the forbidden
    differences of their offsets: see `dsa.solvers.body_models`.

    Complexity: exponential; memory for each pair of conflicting buffers.
    Ties: CP-SAT's, the same every time (one worker, a fixed seed) unless the time limit ends it.
    Guarantee: optimal if the status says so. CP-SAT works with integers, and its bound counts even
    if the time limit ended it. It must agree with the plan, though, whose buffers are placed anew
    in its order; and the model holds the plan it starts from, so that "infeasible" is no proof but
    an error. Peaks above 2**53 units, a unit being the greatest common divisor of the sizes, are
    left alone, because CP-SAT gives its bound as a floating-point number.
    ``stats["backend_status"]`` keeps what it said, also if it was wrong.
    An interrupt (Ctrl-C) ends CP-SAT, not the call: the plan is the best so far.
    Source: ours; the model is a job shop whose jobs need several machines at once.

    Examples
    --------
    >>> from importlib.util import find_spec
    >>> from dsa import plan
    >>> rows = [(0, 1, 2), (0, 2, 2), (1, 3, 1), (1, 4, 1), (2, 4, 1), (3, 5, 2), (4, 5, 2)]
    >>> solver = "cp" if find_spec("ortools") else "exact"  # the extra "cp" installs it
    >>> p = plan(rows, solver)
    >>> p.problem.load, p.peak, p.status
    (4, 5, 'optimal')
    """

    seconds: float = 60.0
    workers: int = 1
    max_pairs: int = 100_000

    exact: ClassVar[bool] = True
    supports: ClassVar[frozenset[str]] = ALL
    requires: ClassVar[tuple[str, ...]] = ("ortools",)
    searches: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_counts(self, "max_pairs")
        check_seconds("seconds", self.seconds)
        if self.workers < 1:
            raise ValueError(f"workers must be at least 1, got {self.workers!r}")

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        return improve(
            self._search, problem, budget, seconds=self.seconds, max_pairs=self.max_pairs
        )

    def _search(self, problem: Problem, start: IntArray, floor: int, budget: Budget) -> Found:
        began = budget.seconds()
        from ortools.sat.python import cp_model  # which takes a second

        build = constraint_program if problem.constrained else _model
        model, variables = build(problem, start, floor)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = self.workers
        solver.parameters.random_seed = 0
        solver.parameters.max_time_in_seconds = budget.remaining()
        status = solver.solve(model)
        offsets = None
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            offsets = _placed(problem, np.array([solver.value(v) for v in variables], np.int64))
        found = _interpret(
            problem,
            start,
            floor,
            solver.status_name(status).lower().replace("_", " "),
            offsets,
            solver.best_objective_bound,
        )
        found.stats.update(backend="CP-SAT", backend_seconds=round(budget.seconds() - began, 3))
        return found


def _model(problem: Problem, start: IntArray, floor: int) -> tuple[CpModel, list[IntVar]]:
    """The model of `Cp`, in the words of its docstring, and the multiples of the alignments."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    ceiling = peak(problem, start)
    highest = model.new_int_var(floor, ceiling, "peak")
    model.add_hint(highest, ceiling)
    columns = (problem.size, problem.alignment, problem.pin, equals_in_order(problem, start))
    steps, offsets, ends, taken = [], [], [], []
    for size, alignment, pin, at in zip(*(column.tolist() for column in columns), strict=True):
        low, high = (0, ceiling - size) if pin == FREE else (pin, pin)
        step = model.new_int_var(low // alignment, high // alignment, "")
        model.add_hint(step, at // alignment)
        steps.append(step)
        offsets.append(alignment * step)
        ends.append(alignment * step + size)
        taken.append(model.new_fixed_size_interval_var(offsets[-1], size, ""))
        model.add(ends[-1] <= highest)
    for live in members(problem):
        model.add_no_overlap([taken[i] for i in live])
    for alike in equals(problem):
        for i, j in pairwise(alike):
            model.add(ends[i] <= offsets[j])
    model.minimize(highest)
    model.add_decision_strategy(steps, cp_model.CHOOSE_LOWEST_MIN, cp_model.SELECT_MIN_VALUE)
    return model, steps


def _placed(problem: Problem, values: IntArray) -> IntArray:
    """Offsets of the buffers: what the variables of either model are."""
    if problem.constrained:
        return problem.bodies.restore(values)
    return problem.alignment * values


def _interpret(
    problem: Problem,
    start: IntArray,
    floor: int,
    words: str,
    offsets: IntArray | None,
    claimed: float,
) -> Found:
    """What an answer is worth: a plan in its order, and a bound if that agrees with the plans."""
    said = reached = peak(problem, start)
    if words in ("infeasible", "model invalid"):
        return Found(None, 0, f"wrong: {words}, where there is a plan of {reached}")
    if offsets is not None:
        said = peak(problem, offsets)
        if not problem.constrained:
            offsets = place(problem, np.argsort(offsets, kind="stable"), "first")
        reached = min(reached, peak(problem, offsets))
    bound = round(claimed) if math.isfinite(claimed) else 0  # an integer, given as a float
    if min(bound, reached) <= floor:  # the model holds no peak below the floor
        return Found(offsets, 0, words)
    if bound > reached or (words == "optimal" and not bound == reached == said):
        return Found(
            offsets, 0, f"wrong: {words}, bound {bound}, where there is a plan of {reached}"
        )
    return Found(offsets, bound, words)

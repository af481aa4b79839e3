"""One contract for every solver in the table, and faulty solvers that it must notice."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import Phase, assume, find, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

import dsa
from dsa import Buffer, Constraints, Plan, Problem, plan
from dsa.budget import Budget
from dsa.result import Solution
from dsa.solvers import FEATURES, Solver, build, missing_packages, names, solver_class
from dsa.solvers.naive import Naive
from dsa.testing import assert_valid, buffers, check_solver, optimum, orders, problems
from tests import oracle
from tests.shared import examples


def supported(name: str, *, huge: bool = False, max_buffers: int = 12) -> SearchStrategy[Problem]:
    """Problems that use everything the solver supports."""
    features = solver_class(name).supports
    return problems(
        max_buffers=max_buffers,
        alignments="alignment" in features,
        pins="pins" in features,
        huge=huge,
    )


def ruled(name: str, max_buffers: int = 6) -> SearchStrategy[Problem]:
    """Problems with holes and constraints of every kind that the solver supports."""
    features = solver_class(name).supports
    return problems(
        max_buffers=max_buffers,
        alignments="alignment" in features,
        pins="pins" in features,
        holes="holes" in features,
        constraints=features & {field.name for field in fields(Constraints)},
    )


def few(name: str, count: int) -> settings:
    """So many examples; fewer for solvers that search, fewest for those that start a backend."""
    cls = solver_class(name)
    share = 12 if cls.requires else 4 if cls.searches or cls.exact else 1
    return examples(max(count // share, 4))


# -- every solver ----------------------------------------------------------------------------


def test_the_solver_keeps_the_contract(solver: str) -> None:
    """`check_solver` passes: valid, deterministic, honest, within budget, without side effects."""
    check_solver(solver)


def test_plans_of_random_problems_hold(solver: str) -> None:
    """Valid, and load <= bound <= peak, with every feature, size 0, ties and huge numbers."""

    @few(solver, 60)
    @given(supported(solver) | supported(solver, huge=True) | ruled(solver))
    def check(problem: Problem) -> None:
        result = plan(problem, solver, time_limit=0.05)
        assert_valid(result)
        assert problem.constrained or problem.load <= result.lower_bound
        assert result.lower_bound <= result.peak
        assert oracle.broken_rules(problem, result.offsets) == set()

    check()


def test_random_plans_are_above_the_optimum(solver: str) -> None:
    """No peak is below the optimum, no bound above it, and an exact solver meets it."""

    @few(solver, 80)
    @given(supported(solver, max_buffers=6) | ruled(solver, max_buffers=5))
    def check(problem: Problem) -> None:
        result, best = plan(problem, solver), optimum(problem)
        assert result.lower_bound <= best <= result.peak
        if solver_class(solver).exact:
            assert (result.peak, result.status) == (best, "optimal")

    check()


def test_no_bound_is_above_any_peak() -> None:
    """Whatever one solver proves, no other undercuts: bounds and peaks certify one another."""
    able = [name for name in names() if not missing_packages(solver_class(name))]

    @examples(15)
    @given(problems(max_buffers=8, alignments=True, pins=True) | ruled("exact", max_buffers=8))
    def check(problem: Problem) -> None:
        plans = [
            plan(problem, name) for name in able if problem.features <= solver_class(name).supports
        ]
        assert max(p.lower_bound for p in plans) <= min(p.peak for p in plans)

    check()


_HASHED = """
import json
from dsa import Buffer, plan
from dsa.solvers import missing_packages, names, solver_class
rows = [Buffer(i % 5, i % 5 + 1 + i % 3, 1 + 7 * i % 5, id=f"b{i}") for i in range(14)]
able = [name for name in names() if not missing_packages(solver_class(name))]
print(json.dumps({name: plan(rows, name).offsets for name in able}))
"""


def test_plans_do_not_depend_on_the_hash_seed() -> None:
    """Every solver gives the same offsets in another process, whatever PYTHONHASHSEED is."""
    source = Path(dsa.__file__).parents[1]
    plans = [
        subprocess.run(
            [sys.executable, "-c", _HASHED],
            env=os.environ | {"PYTHONHASHSEED": seed},
            cwd=source,
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert plans[0] == plans[1]
    assert len(json.loads(plans[0])) > 1


# -- what a change of the problem does to the plan ---------------------------------------------

# Offsets of these follow the order of the input, as their documentation says.
IN_INPUT_ORDER = {"naive"}


def changed(problem: Problem, **columns: Any) -> Problem:
    """The problem with other columns."""
    return Problem.from_columns(**(problem.columns() | columns))


exact_only = pytest.mark.parametrize(
    "solver", [name for name in names() if solver_class(name).exact], indirect=True
)
any_order = pytest.mark.parametrize(
    "solver", [name for name in names() if name not in IN_INPUT_ORDER], indirect=True
)


def related(
    solver: str, change: Callable[[Problem], Problem], check: Callable[[Plan, Plan], None]
) -> None:
    """Plan random problems before and after a change, and compare."""

    @few(solver, 30)
    @given(supported(solver))
    def compare(problem: Problem) -> None:
        check(plan(problem, solver), plan(change(problem), solver))

    compare()


def same_offsets(before: Plan, after: Plan) -> None:
    """The plans are the same."""
    assert after.offsets == before.offsets


def test_later_is_the_same(solver: str) -> None:
    """Steps shifted and doubled change nothing."""

    def later(problem: Problem) -> Problem:
        return changed(problem, lower=2 * problem.lower + 7, upper=2 * problem.upper + 7)

    related(solver, later, same_offsets)


def test_larger_is_the_same(solver: str) -> None:
    """Sizes, alignments and pins times k give offsets times k."""

    @few(solver, 30)
    @given(supported(solver), st.sampled_from([2, 3, 2**40]))
    def compare(problem: Problem, factor: int) -> None:
        larger = changed(
            problem,
            size=factor * problem.size,
            alignment=np.where(problem.alignment > 1, factor * problem.alignment, 1),
            offset=np.where(problem.pin < 0, -1, factor * problem.pin),
        )
        before, after = plan(problem, solver), plan(larger, solver)
        assert after.offsets == tuple(factor * offset for offset in before.offsets)
        assert after.peak == factor * before.peak

    compare()


def test_backwards_is_as_good(solver: str) -> None:
    """A plan for reversed time holds forwards, and has the same peak if the solver is exact."""

    def backwards(problem: Problem) -> Problem:
        return changed(problem, lower=-problem.upper, upper=-problem.lower)

    def check(before: Plan, after: Plan) -> None:
        assert_valid(after.offsets, before.problem)
        assert after.peak == before.peak or not solver_class(solver).exact

    related(solver, backwards, check)


def test_only_the_order_of_steps_matters(solver: str) -> None:
    """Steps relabelled in the same order: the plan holds, and an exact one has the same peak."""

    def cubed(problem: Problem) -> Problem:
        return changed(problem, lower=problem.lower**3, upper=problem.upper**3)

    def check(before: Plan, after: Plan) -> None:
        assert_valid(after.offsets, before.problem)
        assert after.peak == before.peak or not solver_class(solver).exact

    related(solver, cubed, check)


@any_order
def test_the_order_of_the_input_does_not_matter(solver: str) -> None:
    """Buffers in another order get a plan with the same peak."""

    def check(before: Plan, after: Plan) -> None:
        assert after.peak == before.peak

    related(solver, lambda problem: problem.select(np.arange(len(problem))[::-1]), check)


@exact_only
def test_without_a_buffer_the_optimum_is_no_higher(solver: str) -> None:
    """An exact solver finds nothing worse when a buffer is taken away."""

    def check(before: Plan, after: Plan) -> None:
        assert after.peak <= before.peak

    related(solver, lambda problem: problem.select(np.arange(len(problem))[1:]), check)


@exact_only
def test_problems_apart_in_time_do_not_meet(solver: str) -> None:
    """An exact solver needs for two problems, one after the other, what the worse one needs."""

    @few(solver, 40)
    @given(supported(solver), supported(solver))
    def check(one: Problem, two: Problem) -> None:
        rows = [
            Buffer(b.lower, b.upper, b.size, alignment=b.alignment, offset=b.offset) for b in one
        ]
        rows += [
            Buffer(b.lower + 100, b.upper + 100, b.size, alignment=b.alignment, offset=b.offset)
            for b in two
        ]
        apart = max(plan(one, solver).peak, plan(two, solver).peak)
        assert plan(rows, solver).peak == apart

    check()


def test_a_capacity_is_met_refused_or_missed(solver: str) -> None:
    """At its peak a plan fits; below its bound none exists; between them it says which."""

    @few(solver, 25)
    @given(supported(solver))
    def check(problem: Problem) -> None:
        free = plan(problem, solver)
        assert plan(problem, solver, capacity=free.peak).peak <= free.peak
        if not free.peak:
            return
        expected = dsa.InfeasibleError if free.status == "optimal" else dsa.CapacityError
        with pytest.raises(expected) as caught:
            plan(problem, solver, capacity=free.peak - 1)
        if isinstance(caught.value, dsa.CapacityError):
            assert_valid(caught.value.plan.offsets, problem)

    check()


# -- the contract notices --------------------------------------------------------------------


@dataclass(frozen=True)
class Stub(Solver):
    """Stacks the buffers: a solver without a fault."""

    supports: ClassVar[frozenset[str]] = frozenset(FEATURES)

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        return Naive()(problem, budget)


@dataclass(frozen=True)
class Plain(Stub):
    """Leaves alignments and pins to others."""

    supports: ClassVar[frozenset[str]] = frozenset()


@dataclass(frozen=True)
class Overlaps(Stub):
    """Puts everything at the bottom."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        return Solution(np.maximum(problem.pin, 0))


@dataclass(frozen=True)
class Unaligned(Stub):
    """Forgets alignments."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        return Naive()(changed(problem, alignment=None), budget)


@dataclass(frozen=True)
class Unpinned(Stub):
    """Forgets pins."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        return Naive()(changed(problem, offset=None), budget)


@dataclass(frozen=True)
class Short(Stub):
    """Loses a buffer."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        return Solution(Naive()(problem, budget).offsets[:-1])


@dataclass(frozen=True)
class Floats(Stub):
    """Returns what is no integer."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        return Solution([float(offset) for offset in Naive()(problem, budget).offsets])  # type: ignore[misc]


@dataclass(frozen=True)
class Boasts(Stub):
    """Claims that its plan is optimal."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        solution = Naive()(problem, budget)
        return Solution(solution.offsets, solution.peak(problem))


@dataclass(frozen=True)
class Overboasts(Stub):
    """Claims that there is no plan like its own."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        solution = Naive()(problem, budget)
        return Solution(solution.offsets, solution.peak(problem) + 1)


@dataclass(frozen=True)
class CallsItselfExact(Stub):
    """Is none the better for it."""

    exact: ClassVar[bool] = True


@dataclass(frozen=True)
class Erratic(Stub):
    """Moves everything up each time."""

    calls: ClassVar[list[int]] = []

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        self.calls.append(1)
        step = int(problem.base_alignment) * len(self.calls)
        offsets = np.asarray(Naive()(problem, budget).offsets)
        return Solution(np.where(problem.pin < 0, offsets + step, offsets))


@dataclass(frozen=True)
class Meddles(Stub):
    """Changes the problem."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        solution = Naive()(problem, budget)
        problem.size.flags.writeable = True
        problem.size[:] += 1
        return solution


@dataclass(frozen=True)
class Prints(Stub):
    """Says something in Python."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        print("hello", file=sys.stderr)  # noqa: T201 (that is its fault)
        return Naive()(problem, budget)


@dataclass(frozen=True)
class PrintsBelow(Stub):
    """Says something behind Python's back."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        os.write(1, b"hello")
        return Naive()(problem, budget)


@dataclass(frozen=True)
class Seeds(Stub):
    """Seeds the global random state."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        random.seed(0)
        return Naive()(problem, budget)


@dataclass(frozen=True)
class SeedsNumpy(Stub):
    """Draws from the global random state of NumPy."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        np.random.random()  # noqa: NPY002 (that is its fault)
        return Naive()(problem, budget)


@dataclass(frozen=True)
class NeverStops(Stub):
    """Searches until the peak is 0, whatever the time is."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        while budget.time_limit is not None and not budget.done(10**9):
            pass
        while budget.time_limit is not None:
            budget.expired()
        return Naive()(problem, budget)


@dataclass(frozen=True)
class IgnoresTheTarget(Stub):
    """Goes on although the target is met."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        solution = Naive()(problem, budget)
        budget.report(solution.peak(problem))
        budget.report(solution.peak(problem) - 1)
        return solution


@dataclass(frozen=True)
class ReportsWorse(Stub):
    """Reports what is no better."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        solution = Naive()(problem, budget)
        budget.report(solution.peak(problem))
        budget.report(solution.peak(problem))
        return solution


@dataclass(frozen=True)
class DependsOnTheTarget(Stub):
    """Is worse if a target is given."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        offsets = np.asarray(Naive()(problem, budget).offsets)
        if budget.target > problem.load:
            offsets = np.where(problem.pin < 0, offsets + problem.base_alignment, offsets)
        return Solution(offsets)


@dataclass(frozen=True)
class Unprintable(Stub):
    """Its repr says too little."""

    size: int = 0

    def __repr__(self) -> str:
        return f"Unprintable({self.size + 1})"


@dataclass(frozen=True)
class Forgetful(Stub):
    """Loses an option when it is pickled."""

    option: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return Forgetful, (1,)


@dataclass(frozen=True)
class Leaks(Stub):
    """Its statistics are not plain data."""

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        return Solution(Naive()(problem, budget).offsets, stats={"passes": np.int64(1)})


@dataclass(frozen=True)
class Invents(Stub):
    """Supports what nobody asks for."""

    supports: ClassVar[frozenset[str]] = frozenset({"speed"})


@dataclass(frozen=True)
class Fails(Stub):
    """Has a bug."""

    table: dict[int, int] = field(default_factory=dict)

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        return Solution([self.table[len(problem)]])


FAULTY: list[tuple[type[Solver], type[Exception], str]] = [
    (Overlaps, AssertionError, "overlap: buffers"),
    (Unaligned, AssertionError, "misaligned: buffer"),
    (Unpinned, AssertionError, "moved pin: buffer"),
    (Short, AssertionError, "missing: buffer"),
    (Floats, AssertionError, "not an integer: buffer"),
    (Boasts, AssertionError, "claims a lower bound of"),
    (Overboasts, AssertionError, "claims that no plan is below"),
    (CallsItselfExact, AssertionError, "but the optimum is"),
    (Erratic, AssertionError, "not deterministic"),
    (Meddles, AssertionError, "changed its input"),
    (Prints, AssertionError, "printed: hello"),
    (PrintsBelow, AssertionError, "printed: hello"),
    (Seeds, AssertionError, "global random state"),
    (SeedsNumpy, AssertionError, "global random state"),
    (NeverStops, AssertionError, "although the time was up"),
    (IgnoresTheTarget, AssertionError, "meets the target"),
    (ReportsWorse, AssertionError, "as better than"),
    (DependsOnTheTarget, AssertionError, "missed the target"),
    (Unprintable, AssertionError, "made again by its repr, the solver is"),
    (Forgetful, AssertionError, "unpickled, the solver is"),
    (Leaks, TypeError, "not JSON serializable"),
    (Invents, AssertionError, "supports what nobody asks for"),
    (Fails, KeyError, "1"),
]


def test_a_solver_without_fault_passes() -> None:
    """The solver that the faulty ones are made of keeps the contract."""
    check_solver(Stub())
    check_solver(build("naive"))


@pytest.mark.parametrize(("faulty", "error", "words"), FAULTY)
def test_a_faulty_solver_is_found_out(
    faulty: type[Solver], error: type[Exception], words: str
) -> None:
    """Each breach of the contract is named, with the solver and the problem."""
    with pytest.raises(error, match=words) as caught:
        check_solver(faulty())
    assert any(faulty.__name__ in note for note in caught.value.__notes__)


def test_unsupported_features_must_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that supports nothing passes as long as the planner refuses for it."""
    check_solver(Plain())
    monkeypatch.setattr("dsa.planner.check", lambda solver, problem: None)
    with pytest.raises(AssertionError, match="planned although it does not support"):
        check_solver(Plain())


# -- the yardstick and the strategies ----------------------------------------------------------


@examples(80)
@given(problems(max_buffers=3, alignments=True, pins=True))
def test_the_optimum_is_that_of_all_offsets(problem: Problem) -> None:
    """`optimum` against every combination of offsets, for up to three buffers."""
    best = optimum(problem)
    choices = [range(best + 1) if b.offset is None else [b.offset] for b in problem]
    assume(math.prod(map(len, choices)) < 3000)
    peaks = [
        max((at + b.size for b, at in zip(problem, offsets, strict=True) if b.size), default=0)
        for offsets in itertools.product(*choices)
        if not oracle.broken_rules(problem, offsets)
    ]
    assert min(peaks) == best


@examples(50)
@given(st.data())
def test_the_strategies_give_what_they_promise(data: st.DataObject) -> None:
    """Without the flags there are no alignments, pins or sizes 0; orders are permutations."""
    buffer = data.draw(buffers(zero_sizes=False))
    assert (buffer.alignment, buffer.offset) == (1, None)
    assert 1 <= buffer.size <= 9
    problem = data.draw(problems(zero_sizes=False))
    assert problem.features == frozenset()
    assert (problem.size > 0).all()
    assert sorted(data.draw(orders(problem)).tolist()) == list(range(len(problem)))


CORNERS: dict[str, Callable[[Problem], Any]] = {
    "no buffers": lambda p: len(p) == 0,
    "as many as allowed": lambda p: len(p) == 8,
    "alignments and pins": lambda p: p.features == {"alignment", "pins"},
    "size 0": lambda p: (p.size == 0).any(),
    "a size beyond 32 bits": lambda p: (p.size > 2**32).any(),
    "a step beyond doubles": lambda p: p.upper.max(initial=0) > 2**53,
    "equal sizes": lambda p: len(set(p.size.tolist())) < len(p),
    "equal lifetimes": lambda p: len({*zip(p.lower, p.upper, strict=True)}) < len(p),
    "no power of two": lambda p: (p.alignment == 20).any(),
    "names": lambda p: isinstance((*p.ids, 0)[0], str),
    "several components": lambda p: p.component.max(initial=0) > 1,
    "an optimum above the load": lambda p: optimum(p) > p.load,
}


@pytest.mark.parametrize("corner", CORNERS)
def test_the_strategies_reach_every_corner(corner: str) -> None:
    """Problems of each kind occur, whatever constants Hypothesis takes from loaded modules."""
    options = settings(max_examples=5000, database=None, phases=[Phase.generate])
    some = problems(max_buffers=8, alignments=True, pins=True, huge=True)
    find(
        some,
        lambda problem: bool(CORNERS[corner](problem)),
        settings=options,
        random=random.Random(0),
    )

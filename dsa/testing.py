"""For tests of solvers and integrations: problems to plan, and what must hold of every plan.

`assert_valid`, `check_solver` and `optimum` need nothing beyond dsa. The strategies need Hypothesis
(the extra ``test``), which is imported when one of them is called.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import pickle
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, fields, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from dsa.budget import Budget, Progress
from dsa.constraints import Constraints
from dsa.errors import InvalidProblemError, SolverError, UnsupportedError
from dsa.exhaustive import least_peak
from dsa.planner import plan
from dsa.problem import Buffer, IntArray, Intervals, Problem
from dsa.result import Plan, Solution
from dsa.solvers import FEATURES, Solver, build
from dsa.validation import validate

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["assert_valid", "buffers", "check_solver", "optimum", "orders", "problems"]


# -- strategies ------------------------------------------------------------------------------


def buffers(
    *,
    alignments: bool = False,
    pins: bool = False,
    zero_sizes: bool = True,
    huge: bool = False,
    holes: bool = False,
) -> SearchStrategy[Buffer]:
    """Hypothesis strategy: buffers so small and crowded that conflicts and ties abound.

    Parameters
    ----------
    alignments
        Whether some have an alignment, also one that is no power of two.
    pins
        Whether some are pinned.
    zero_sizes
        Whether some have size 0.
    huge
        Whether some have lifetimes and sizes that 32 bits or a double cannot hold.
    holes
        Whether some have holes, in which they keep no bytes or a window of them.
    """
    from hypothesis import strategies as st

    step, size = st.integers(0, 12), st.integers(0 if zero_sizes else 1, 9)
    if huge:
        step |= st.integers(1 - 2**62, 2**62 - 1)
        size |= st.sampled_from([2**31, 2**32 - 1, 2**53, 2**53 + 1]) | st.integers(1, 2**55)
    return st.builds(
        _buffer,
        st.lists(step, min_size=2, max_size=2, unique=True),
        size,
        alignment=st.sampled_from([1, 2, 3, 4, 6, 16, 20]) if alignments else st.just(1),
        slot=st.none() | st.integers(0, 9) if pins else st.none(),
        cuts=st.lists(step, max_size=4, unique=True) if holes else st.just([]),
        windows=st.tuples(size, size, size, size) if holes else st.just((0, 0, 0, 0)),
    )


def problems(
    *,
    max_buffers: int = 12,
    alignments: bool = False,
    pins: bool = False,
    zero_sizes: bool = True,
    huge: bool = False,
    holes: bool = False,
    constraints: Iterable[str] = (),
) -> SearchStrategy[Problem]:
    """Hypothesis strategy: problems with any number of buffers up to `max_buffers`, also none.

    Parameters
    ----------
    max_buffers
        At most 60 with `huge`, or the sizes may add up to more than a problem can hold.
    alignments, pins, zero_sizes, huge, holes
        As for `buffers`; pins never clash.
    constraints
        Fields of `Constraints` that some use, such as ``["apart", "chunk"]``; they never
        contradict one another.

    Examples
    --------
    >>> from hypothesis import given
    >>> from dsa import plan
    >>> @given(problems(pins=True))
    ... def test_my_solver(problem):
    ...     assert_valid(plan(problem, solver="greedy-by-size"))
    """
    from hypothesis import strategies as st

    buffer = buffers(
        alignments=alignments, pins=pins, zero_sizes=zero_sizes, huge=huge, holes=holes
    )
    kinds = sorted(constraints)
    rows = st.lists(buffer, min_size=min(3, max_buffers) if kinds else 0, max_size=max_buffers)
    plain = st.builds(_problem, rows, named=st.booleans())
    if not kinds:
        return plain
    number = st.integers(0, 12)
    rules = st.lists(
        st.tuples(st.sampled_from(kinds), number, number, number), min_size=1, max_size=6
    )
    return st.builds(_constrained, plain, rules)


def orders(problem: Problem) -> SearchStrategy[IntArray]:
    """Hypothesis strategy: orders of the buffers of a problem, as arrays of positions."""
    from hypothesis import strategies as st

    positions = st.permutations(range(len(problem)))
    return positions.map(lambda order: np.array(order, np.int64))


def _buffer(
    steps: list[int],
    size: int,
    alignment: int,
    slot: int | None,
    cuts: list[int],
    windows: tuple[int, ...],
) -> Buffer:
    lower, upper = min(steps), max(steps)
    inside = sorted(cut for cut in cuts if lower <= cut <= upper)
    ends = [byte % (size + 1) for byte in windows]
    holes = [
        (begin, end, *((min(window), max(window)) if min(window) < max(window) else ()))
        for begin, end, window in zip(inside[::2], inside[1::2], (ends[:2], ends[2:]), strict=False)
    ]
    offset = None if slot is None else slot * alignment
    return Buffer(lower, upper, size, alignment=alignment, offset=offset, holes=holes)


def _problem(rows: list[Buffer], named: bool) -> Problem:
    kept: list[Buffer] = []
    for i, row in enumerate(rows):
        if any(_clash(row, other) for other in kept):
            row = replace(row, offset=None)
        # Backwards, so that neither the order of the ids nor that of their digits is the input's.
        kept.append(replace(row, id=f"b{len(rows) - i}") if named else row)
    return Problem(kept)


def _constrained(problem: Problem, drawn: list[tuple[str, int, int, int]]) -> Problem:
    """The problem with those rules, of the ones drawn, that contradict neither it nor others."""
    rules: dict[str, Any] = {}
    for kind, x, y, z in drawn:
        rule = _rule(problem, kind, x, y, z)
        if rule is None:
            continue
        wider = rules | {kind: rule if kind == "chunk" else [*rules.get(kind, ()), rule]}
        try:
            problem = Problem(problem, constraints=Constraints(**wider))
        except InvalidProblemError:
            continue  # it contradicts
        rules = wider
    return problem


def _rule(problem: Problem, kind: str, x: int, y: int, z: int) -> Any:
    """A row of `Constraints`, made of three numbers; None if the problem has no such pair."""
    if kind == "chunk":
        return 4 + x + y
    if kind == "reserved":
        return x, x + 1 + y
    rows = list(problem)
    pairs = [
        (a.id, b.id)
        for a in rows
        for b in rows
        if a.id != b.id
        and (kind != "in_place" or (a.upper in (b.lower, b.lower + 1) and b.size <= a.size))
    ]
    if not pairs:
        return None
    pair = pairs[(13 * x + y) % len(pairs)]
    return pair if kind in ("apart", "exclusive", "in_place") else (*pair, 2 * z - 12)


def _clash(a: Buffer, b: Buffer) -> bool:
    if a.offset is None or b.offset is None:
        return False
    together = a.lower < b.upper and b.lower < a.upper
    return together and a.offset < b.offset + b.size and b.offset < a.offset + a.size


# -- what must hold --------------------------------------------------------------------------


def assert_valid(
    plan: Plan | Mapping[Any, Any] | Sequence[Any] | npt.NDArray[Any],
    problem: Intervals | None = None,
) -> None:
    """Raise an AssertionError that lists in words every rule a plan breaks.

    Parameters
    ----------
    plan, problem
        As for `dsa.validate`: a `Plan`, a mapping from id to offset, or offsets in order; and
        the buffers, unless the `Plan` brings them.

    Examples
    --------
    >>> assert_valid([0, 8], [(0, 2, 8), (1, 4, 8)])
    >>> assert_valid([0, 4], [(0, 2, 8), (1, 4, 8)])
    Traceback (most recent call last):
    AssertionError: the plan is invalid:
    overlap: buffers 0 and 1 share bytes [4, 8) in steps [1, 2)
    """
    violations = validate(plan, problem)
    _hold(not violations, "the plan is invalid:\n" + "\n".join(map(str, violations)))


def optimum(problem: Problem) -> int:
    """The lowest peak of any plan, by trying all orders: a yardstick for up to 9 buffers or so.

    Shares no code with the solvers. Pinned buffers are placed first, then the others by rising
    offset (by position where equal), each at the lowest free place. Some such plan is optimal:
    push the buffers of an optimal plan down until none can move, and take them by offset. What is
    not placed yet at some step then lies above the last offset and above what is placed there.
    With holes or constraints that is not so, and all offsets are tried: for some tens of bytes
    only.

    Examples
    --------
    >>> optimum(Problem([(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)]))
    88
    """
    if problem.constrained:
        return least_peak(problem)
    placed = [(row, row.offset) for row in problem if row.offset is not None and row.size]
    free = [row for row in problem if row.offset is None and row.size]
    best = sum(row.size + row.alignment for row in free)
    best += max((offset + row.size for row, offset in placed), default=0)

    def search(above: list[tuple[Buffer, int]], rest: list[int], last: int, floor: int) -> None:
        nonlocal best
        peak = max((offset + row.size for row, offset in placed + above), default=0)
        for step in {row.lower for row in free}:
            top = max((offset + row.size for row, offset in above if _live(row, step)), default=0)
            waiting = [free[i].size for i in rest if _live(free[i], step)]
            peak = max(peak, max(floor, top) + sum(waiting)) if waiting else peak
        if peak >= best:
            return
        if not rest:
            best = peak
        for i in rest:
            offset = _lowest(free[i], placed + above)
            if (offset, i) > (floor, last):
                search([*above, (free[i], offset)], [j for j in rest if j != i], i, offset)

    search([], list(range(len(free))), -1, 0)
    return best


def _live(row: Buffer, step: int) -> bool:
    return row.lower <= step < row.upper


def _lowest(row: Buffer, placed: list[tuple[Buffer, int]]) -> int:
    """The lowest offset at which a buffer shares no bytes with those placed: 0 or above one."""
    taken = [
        (offset, offset + other.size)
        for other, offset in placed
        if row.lower < other.upper and other.lower < row.upper
    ]
    starts = (-(-end // row.alignment) * row.alignment for end in (0, *sorted(e for _, e in taken)))
    return next(
        at for at in starts if all(at + row.size <= start or end <= at for start, end in taken)
    )


def check_solver(solver: str | Solver) -> None:
    """Hold a solver to its contract: the one call that its own tests need to make.

    It is run through `plan()` on a fixed set of small problems (nothing to place, ties,
    alignments, pins, numbers near the limits, plans above the load, holes, constraints of every
    kind) and must

    - return a valid plan with ``load <= lower bound <= peak`` (with constraints, buffers live
      together may share bytes, and the load may be above both), and no bound that is above the
      optimum; an exact solver must reach the optimum and prove it;
    - return the same plan again, also after it was pickled, and a valid one for the buffers in
      another order (with the same peak, if it is exact);
    - stop when the target is met, and when the time is up, even from the start;
    - leave its input and the global random states alone, and print nothing, also below Python;
    - be refused by `plan()`, by the name of the feature, where it does not support one;
    - be made again by its repr, in its module's names.

    It takes about a second for a greedy solver.

    Parameters
    ----------
    solver
        A name or a configured solver.

    Raises
    ------
    AssertionError
        Saying what was broken, by which solver, on which problem.
    SolverUnavailableError
        If a package that the solver requires is missing.

    Examples
    --------
    >>> check_solver("greedy-by-size")
    """
    configured = build(solver)
    with _Context(f"by {configured!r}"):
        _check_record(configured)
    for name, problem in _examples().items():
        with _Context(f"by {configured!r} on the problem {name!r}: {list(problem)}"):
            if problem.features <= configured.supports:
                _check_plans(configured, problem)
            else:
                _check_refusal(configured, problem)


# -- the contract, rule by rule --------------------------------------------------------------


def _hold(condition: bool, otherwise: str) -> None:
    if not condition:
        raise AssertionError(otherwise)


class _Context:
    """Adds to an error where it happened."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            error.add_note(self.where)


def _check_record(solver: Solver) -> None:
    """A solver's repr is all there is to know about it."""
    _hold(solver.supports <= set(FEATURES), f"supports what nobody asks for: {solver.supports}")
    names = {**vars(sys.modules[type(solver).__module__]), type(solver).__name__: type(solver)}
    copies = {
        "unpickled": pickle.loads(pickle.dumps(solver)),
        "made again by its repr": eval(repr(solver), names),
    }
    for how, copy in copies.items():
        _hold(repr(copy) == repr(solver), f"{how}, the solver is {copy!r}")


def _check_plans(solver: Solver, problem: Problem) -> None:
    first = _plan(solver, problem)
    _check_bounds(solver, first)
    json.dumps([first.offsets, dict(first.stats), first.lower_bound])

    again = _plan(pickle.loads(pickle.dumps(solver)), problem)
    _hold(
        (again.offsets, again.lower_bound) == (first.offsets, first.lower_bound),
        f"not deterministic: first {first.offsets}, then {again.offsets}",
    )
    backwards = _plan(solver, problem.select(np.arange(len(problem))[::-1]))
    _hold(
        backwards.peak == first.peak or not solver.exact,
        f"the peak is {first.peak}, but {backwards.peak} with the buffers in another order",
    )
    # A target it has met before must be met again. At a target that any plan meets, and at a time
    # limit that has passed, the first plan is the answer: `_Reports` and `_Watch` see to that.
    aimed = _plan(solver, problem, target=first.peak)
    _hold(aimed.peak <= first.peak, f"missed the target {first.peak} that it can meet")
    _plan(solver, problem, target=2**62)
    _plan(solver, problem, time_limit=0)


def _check_bounds(solver: Solver, result: Plan) -> None:
    problem, peak, bound = result.problem, result.peak, result.lower_bound
    _hold(
        bound <= peak and (problem.constrained or problem.load <= bound),
        f"load {problem.load}, lower bound {bound} and peak {peak} are out of order",
    )
    if len(problem) <= 8:
        best = optimum(problem)
        _hold(bound <= best, f"claims a lower bound of {bound}, but there is a plan of {best}")
        _hold(peak >= best, f"returned {peak}, below the optimum {best}")
        _hold(
            peak == bound == best or not solver.exact,
            f"proved {bound} and reached {peak}, but the optimum is {best}",
        )


def _check_refusal(solver: Solver, problem: Problem) -> None:
    lacking = problem.features - solver.supports
    try:
        plan(problem, solver)
    except UnsupportedError as error:
        for feature in lacking:
            _hold(feature in str(error), f"the refusal does not name {feature!r}: {error}")
    else:
        raise AssertionError(f"planned although it does not support {', '.join(lacking)}")


def _plan(
    solver: Solver, problem: Problem, *, target: int | None = None, time_limit: float | None = None
) -> Plan:
    """As `plan()`, with a witness beside the solver."""
    witness = cast(Solver, _Witness(solver))
    with _undisturbed():
        try:
            result = plan(problem, witness, target=target, time_limit=time_limit)
        except SolverError as error:
            raise AssertionError(str(error)) from error
    assert_valid(result)
    return result


class _Witness:
    """Stands in for a solver, and looks at what it does to its arguments."""

    def __init__(self, solver: Solver) -> None:
        self.solver = solver
        self.exact, self.supports = solver.exact, solver.supports
        self.requires, self.searches = solver.requires, solver.searches

    def __repr__(self) -> str:
        return repr(self.solver)

    def __call__(self, problem: Problem, budget: Budget, /) -> Solution:
        before = pickle.dumps(_contents(problem))
        given = {f.name: getattr(budget, f.name) for f in fields(budget)}
        solution = self.solver(problem, _Watch(**given | {"progress": _Reports()}))
        _hold(pickle.dumps(_contents(problem)) == before, "the solver changed its input")
        return solution


def _contents(problem: Problem) -> tuple[Any, ...]:
    sections = problem.sections
    derived = (sections.start, sections.stop, sections.step, sections.load, problem.component)
    return problem.columns(), problem.capacity, derived, problem.id_rank


@dataclass(frozen=True, slots=True)
class _Watch(Budget):
    """A budget that objects to a search that goes on when the time is up."""

    late: list[float] = field(default_factory=list)

    def remaining(self) -> float:
        left = Budget.remaining(self)
        if left <= 0:
            self.late.append(left)
            _hold(len(self.late) < 1000, "searches on, although the time was up 1000 looks ago")
        return left


class _Reports:
    """A progress callback that objects to reports that get no better or come too late."""

    def __init__(self) -> None:
        self.last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        if self.last is not None:
            best, target = self.last.peak, progress.target
            _hold(progress.peak < best, f"reported {progress.peak} as better than {best}")
            _hold(best > target, f"searches on, although {best} meets the target {target}")
        self.last = progress


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Nothing is printed, and global random states stay as they are."""
    with _printed() as output:
        before = pickle.dumps(_random_states())
        yield
        unchanged = pickle.dumps(_random_states()) == before
    _hold(unchanged, "the solver used a global random state")
    _hold(not output(), f"the solver printed: {output()}")


def _random_states() -> tuple[Any, ...]:
    return random.getstate(), np.random.get_state()  # noqa: NPY002 (the state that must not change)


@contextmanager
def _printed() -> Iterator[Callable[[], str]]:
    """Whatever arrives at stdout and stderr, from Python, compiled code or child processes."""
    text, written = io.StringIO(), bytearray()
    with tempfile.TemporaryFile() as file:
        _flush()
        saved = {stream: os.dup(stream) for stream in (1, 2)}
        try:
            for stream in saved:
                os.dup2(file.fileno(), stream)
            with redirect_stdout(text), redirect_stderr(text):
                yield lambda: text.getvalue() + written.decode(errors="replace")
        finally:
            _flush()
            for stream, copy in saved.items():
                os.dup2(copy, stream)
                os.close(copy)
        file.seek(0)
        written += file.read()


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        ctypes.CDLL(None).fflush(None)  # what compiled code printed waits in C's own buffers


# -- the problems ----------------------------------------------------------------------------


def _examples() -> dict[str, Problem]:
    """Small problems, each for something that went wrong in some planner."""
    rows: dict[str, list[Any]] = {
        "nothing": [],
        "one buffer": [(3, 5, 7)],
        "all of size 0": [(0, 4, 0), (1, 2, 0), (1, 2, 0)],
        "some of size 0": [(0, 4, 0), (0, 2, 32), (1, 3, 32), (1, 2, 0)],
        "one step each": [(5, 6, 384), (5, 6, 384), (6, 7, 384)],
        "touching": [(0, 3, 64), (3, 6, 64), (6, 9, 64)],
        "same lifetimes": [(0, 2, 5), (0, 2, 3), (0, 2, 5), (0, 2, 1)],
        "same sizes": [(0, 3, 16), (1, 4, 16), (2, 5, 16), (4, 7, 16), (5, 8, 16)],
        "all the same": [(1, 4, 6)] * 6,
        "nested": [(0, 9, 1), (1, 8, 2), (2, 7, 3), (3, 6, 4), (4, 5, 5)],
        "gap below the first": [(0, 2, 96), (1, 3, 72), (2, 4, 48)],
        "largest first is wrong": [(0, 2, 44), (1, 3, 36), (2, 5, 40), (4, 5, 48)],
        "optimum above the load": [
            (0, 1, 48),
            (0, 2, 48),
            (1, 3, 32),
            (1, 4, 16),
            (2, 4, 32),
            (3, 5, 48),
            (4, 5, 48),
        ],
        "apart in time": [(0, 2, 9), (1, 3, 4), (10, 12, 5), (11, 13, 7), (20, 21, 2)],
        "before step 0": [(-5, -2, 3), (-3, 1, 4), (-1, 2, 5)],
        "a long chain": [(i, i + 2, 64) for i in range(200)],
        "one byte beside 10**8": [(0, 2, 10**8), (0, 2, 1), (0, 2, 1)],
        "beyond 32 bits": [(0, 2, 3 * 10**9), (1, 3, 3 * 10**9), (2, 4, 2**32 + 1)],
        "beyond doubles": [(0, 2, 2**53 + 1), (1, 3, 1), (2, 4, 2**53 + 1), (3, 5, 3)],
        "sizes near the limit": [(0, 2, 2**61 - 9), (1, 3, 2**60), (2, 4, 2**59 + 7)],
        "steps near the limit": [(1 - 2**62, 2**62 - 1, 3), (0, 1, 4), (2**62 - 2, 2**62 - 1, 5)],
        "one alignment": [Buffer(i, i + 2, 50, alignment=32) for i in range(3)],
        "no power of two": [
            Buffer(0, 2, 10, alignment=48),
            Buffer(0, 3, 10, alignment=20),
            Buffer(1, 3, 7, alignment=7),
        ],
        "mixed alignments": [Buffer(0, 2, 3), Buffer(0, 2, 4, alignment=4)],
        "aligned chain": [Buffer(i, i + 2, 8 * i + 8, alignment=128) for i in range(5)],
        "a header": [Buffer(0, 10, 1000, offset=0), Buffer(2, 5, 128, alignment=64)],
        "a pin in the middle": [Buffer(0, 4, 8, offset=16), Buffer(0, 4, 16), Buffer(0, 4, 8)],
        "a high pin": [Buffer(0, 2, 8, offset=2**40), Buffer(1, 3, 8), Buffer(2, 4, 8)],
        "all pinned": [Buffer(0, 2, 8, offset=8), Buffer(1, 3, 8, offset=0), Buffer(2, 4, 0)],
        "pinned size 0": [Buffer(0, 4, 0, offset=4), Buffer(0, 4, 8), Buffer(1, 2, 8)],
        "aligned pins": [
            Buffer(0, 3, 5, alignment=3, offset=6),
            Buffer(1, 4, 4, alignment=4),
            Buffer(2, 5, 6),
            Buffer(3, 6, 2, alignment=6, offset=0),
        ],
        "ids of all kinds": [
            Buffer(0, 2, 4, id=("layer", 1)),
            Buffer(0, 2, 4, id="weights"),
            Buffer(1, 3, 4, id=7),
            Buffer(1, 3, 4, id=2.5),
        ],
    }
    plain = {name: Problem(buffers) for name, buffers in rows.items()}
    return plain | _constrained_examples()


def _constrained_examples() -> dict[str, Problem]:
    """Small problems with holes and constraints, each kind alone and then all together."""
    x, y, z = (Buffer(i, i + 2, 4, id=id) for i, id in enumerate("xyz"))
    wide, halves = Buffer(0, 3, 8, id="wide"), [Buffer(2, 5, 4, id=id) for id in ("low", "high")]
    branches = [Buffer(1, 4, size, id=id) for size, id in ((6, "then"), (4, "else"), (3, "both"))]
    plain = {
        "a hole": [Buffer(0, 6, 8, holes=[(2, 4)]), Buffer(2, 4, 8), Buffer(3, 5, 4)],
        "windows that interlock": [
            Buffer(0, 10, 2, holes=[(0, 5, 0, 1)]),
            Buffer(0, 10, 2, holes=[(5, 10, 1, 2)]),
        ],
        "three that meet two by two": [
            Buffer(1, 6, 4, holes=[(2, 5)]),
            Buffer(1, 4, 3),
            Buffer(3, 6, 2),
        ],
        "nothing but a hole": [Buffer(0, 3, 8, holes=[(0, 3)]), Buffer(0, 3, 2)],
    }
    ruled: dict[str, tuple[list[Buffer], Constraints]] = {
        "never the same bytes": ([x, y, z], Constraints(apart=[("x", "z")])),
        "branches": (branches, Constraints(exclusive=[("then", "else")])),
        "in place, twice": ([x, y, z], Constraints(in_place=[("x", "y"), ("y", "z")])),
        "views": (
            [wide, *halves, Buffer(4, 6, 6, id="after")],
            Constraints(aliases=[("wide", "low"), ("wide", "high", 4)]),
        ),
        "a concatenation": (
            [x, y, Buffer(0, 1, 4, id="t"), Buffer(2, 3, 5, id="u")],
            Constraints(relative=[("x", "y", 4)]),
        ),
        "reserved bytes": ([x, y, z], Constraints(reserved=[(2, 5), (9, 10)])),
        "chunks": ([Buffer(0, 2, size) for size in (3, 3, 4, 5)], Constraints(chunk=6)),
        "all at once": (
            [
                replace(x, alignment=2),
                replace(y, holes=((2, 3, 1, 3),)),
                z,
                replace(branches[0], offset=12),
                *branches[1:],
            ],
            Constraints(
                in_place=[("x", "y")],
                exclusive=[("then", "else")],
                apart=[("x", "z")],
                aliases=[("else", "both", 1)],
                reserved=[(5, 6)],
                chunk=24,
            ),
        ),
    }
    return {name: Problem(buffers) for name, buffers in plain.items()} | {
        name: Problem(buffers, constraints=rules) for name, (buffers, rules) in ruled.items()
    }

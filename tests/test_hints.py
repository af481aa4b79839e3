"""Planning again near an earlier plan."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsa import Buffer, InfeasibleError, InvalidProblemError, Problem, load, plan
from dsa.cli import main
from dsa.testing import problems


@given(problem=problems(max_buffers=8), name=st.sampled_from(["greedy-by-size", "exact"]))
@settings(max_examples=40, deadline=None)
def test_a_plan_of_the_same_problem_is_kept_whole(problem: Problem, name: str) -> None:
    """Where nothing has changed, nothing moves."""
    problem = problem.with_capacity(None)
    options: dict[str, Any] = {"nodes": 1000} if name == "exact" else {}
    before = plan(problem, name, **options)
    after = plan(problem, name, hint=before, **options)
    assert after.offsets == before.offsets
    assert after.stats["kept"] == int((problem.size > 0).sum())


@given(
    problem=problems(max_buffers=7),
    wishes=st.lists(st.none() | st.integers(0, 40), min_size=7, max_size=7),
)
@settings(max_examples=60, deadline=None)
def test_a_hint_never_costs_anything(problem: Problem, wishes: list[int | None]) -> None:
    """The plan is valid and no higher, and no fewer wishes are met by chance."""
    problem = problem.with_capacity(None)
    hint = {id: wish for id, wish in zip(problem.ids, wishes, strict=False) if wish is not None}
    without, with_hint = plan(problem, "greedy"), plan(problem, "greedy", hint=hint)
    assert with_hint.validate() == ()
    assert with_hint.peak <= without.peak
    met = sum(hint.get(b.id) == offset and b.size > 0 for b, offset in without)
    assert with_hint.stats["kept"] >= met


def test_of_small_problems_all_that_can_stay_does() -> None:
    """Three buffers of one size live together: any order of them is as good, so the hint wins."""
    rows = [Buffer(0, 2, 8, id=id) for id in "abc"]
    for offsets in product((0, 8, 16), repeat=3):
        if len(set(offsets)) == 3:
            p = plan(rows, hint=dict(zip("abc", offsets, strict=True)))
            assert p.offsets == offsets


def test_a_small_change_moves_little() -> None:
    """One buffer of a real model lives a step longer: almost all others stay."""
    model = load("infer-resnet50-b1")
    before = plan(model)
    upper = model.upper.copy()
    upper[100] += 1
    columns = model.columns() | {"upper": upper}
    after = plan(Problem.from_columns(**columns), hint=before)
    moved = np.count_nonzero(after.offsets_array != before.offsets_array)
    assert after.status == "optimal"
    assert moved <= len(model) // 50


# 5.4: size, first and last step, preferred offset; the offset it gets, and the heap afterwards.
ONE_BY_ONE: list[tuple[int, int, int, int | None, int, int]] = [
    (5, 6, 10, 5, 5, 10),
    (10, 3, 5, None, 0, 10),
    (5, 2, 8, None, 10, 15),
    (5, 0, 2, 10, 0, 15),
    (10, 11, 13, 10, 10, 20),
    (5, 3, 5, 20, 20, 25),
    (10, 4, 8, 15, 25, 35),
]


def test_preferred_offsets_on_a_heap() -> None:
    """CONSTRAINTS 5.4: buffers come one by one, and those before stay.

    A preferred offset is taken where it is free, even if the heap grows for it: it is a pin,
    wherever it can be one.
    """
    placed: list[Buffer] = []
    for size, first, last, preferred, offset, heap in ONE_BY_ONE:
        try:
            p = plan([*placed, Buffer(first, last + 1, size, offset=preferred)], "best-fit")
        except InvalidProblemError:  # pinned onto another
            p = plan([*placed, Buffer(first, last + 1, size)], "best-fit")
        assert (p.offsets[-1], p.peak) == (offset, heap)
        placed = [replace(buffer, offset=at) for buffer, at in p]


def test_preferred_offsets_planned_at_once() -> None:
    """The same, as a hint: planning knows all that comes, and grows nothing for a wish.

    30 bytes do where the heap needs 35; of the five wishes those stay that cost nothing.
    """
    rows = [
        Buffer(first, last + 1, size, id=i) for i, (size, first, last, *_) in enumerate(ONE_BY_ONE)
    ]
    wishes = {i: wish for i, (*_, wish, _, _) in enumerate(ONE_BY_ONE) if wish is not None}
    p = plan(rows, "exact", hint=wishes)
    assert (p.peak, p.status, plan(rows, "exact").peak) == (30, "optimal", 30)
    most = max(
        sum(b.id in stay for b in rows)
        for count in range(len(wishes) + 1)
        for stay in combinations(wishes, count)
        if fits([replace(b, offset=wishes[b.id] if b.id in stay else None) for b in rows], 30)
    )
    assert p.stats["kept"] == most


def fits(rows: list[Buffer], capacity: int) -> bool:
    """Whether there is a plan, pins and all."""
    try:
        plan(rows, "exact", capacity=capacity)
    except (InvalidProblemError, InfeasibleError):
        return False
    return True


def test_what_is_gone_or_unknown_is_no_matter() -> None:
    """A hint may name buffers that the problem does not have, and leave others out."""
    p = plan([Buffer(0, 1, 8, id="new"), Buffer(0, 1, 8, id="old")], hint={"old": 0, "gone": 64})
    assert (p["old"], p["new"], p.stats["kept"]) == (0, 8, 1)


@pytest.mark.parametrize("wish", [-1, 1.5, "0", True, 2**62])
def test_a_wish_must_be_an_offset(wish: Any) -> None:
    """The error names the buffer and the value."""
    with pytest.raises(InvalidProblemError, match="hint: buffer 'a' cannot be wished at"):
        plan([Buffer(0, 1, 8, id="a")], hint={"a": wish})


def test_a_hint_is_a_plan_or_a_mapping() -> None:
    """A list of offsets might belong to another order of buffers."""
    with pytest.raises(TypeError, match="a Plan or a mapping"):
        plan([(0, 1, 8)], hint=[0])  # type: ignore[arg-type]


def test_a_hint_from_a_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An earlier plan, as `dsa plan -o` wrote it."""
    earlier = tmp_path / "earlier.csv"
    assert main(["plan", "infer-resnet50-b1", "-o", str(earlier)]) == 0
    capsys.readouterr()
    assert main(["plan", "infer-resnet50-b1", "--hint", str(earlier)]) == 0
    assert "kept:    175 buffers where the hint has them" in capsys.readouterr().out

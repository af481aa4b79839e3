"""Several graphs in one arena."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsa import Buffer, Constraints, InfeasibleError, InvalidProblemError, Problem, plan
from dsa.joint import plan_jointly
from dsa.testing import problems


def test_shared_buffers_lie_at_one_offset() -> None:
    """CASES 34: two entry points use the same state, and both plans hold."""
    first = [Buffer(0, 4, 64, id="state"), Buffer(0, 2, 32, id="a"), Buffer(1, 3, 32, id="b")]
    second = [Buffer(5, 6, 100, id="a"), Buffer(5, 9, 64, id="state"), Buffer(8, 9, 7, id="c")]
    plans = plan_jointly([first, second], ["state"])
    assert plans[0]["state"] == plans[1]["state"]
    assert [p.validate() for p in plans] == [(), ()]
    assert max(p.peak for p in plans) == plans[0].stats["joint_peak"] == 164


@given(graphs=st.lists(problems(max_buffers=6), max_size=3))
@settings(max_examples=30, deadline=None)
def test_graphs_that_share_nothing_are_planned_apart(graphs: list[Problem]) -> None:
    """Each plan is valid, and the arena is as large as the worst alone."""
    graphs = [graph.with_capacity(None) for graph in graphs]
    plans = plan_jointly(graphs, [], "exact", nodes=2000)
    alone = [plan(graph, "exact", nodes=2000) for graph in graphs]
    assert all(not p.validate() for p in plans)
    assert max((p.peak for p in plans), default=0) == max((p.peak for p in alone), default=0)


def test_constraints_and_holes_stay_with_their_graph() -> None:
    """Ids of two graphs may be the same; what holds in one does not hold in the other."""
    rows = [Buffer(3, 6, 8, id="x", holes=[(4, 5)]), Buffer(4, 5, 8, id="y")]
    rules = Constraints(apart=[("x", "y")])
    apart, free = plan_jointly([Problem(rows, constraints=rules), Problem(rows)], [], "exact")
    assert (apart.peak, free.peak) == (16, 8)


@pytest.mark.parametrize(
    ("rules", "shared", "message"),
    [
        ({}, ["z"], "no problem has a buffer 'z'"),
        ({"chunk": 64}, [], "must have the same chunk, not 64 and None"),
        ({"tail_padding": 64}, [], "must have the same tail_padding, not 0 and 64"),
    ],
)
def test_what_cannot_be_joined_is_named(rules: Any, shared: list[str], message: str) -> None:
    """Before anything is planned."""
    one = Problem([Buffer(0, 1, 8, id="a")], constraints=Constraints(**rules))
    with pytest.raises(InvalidProblemError, match=message):
        plan_jointly([one, [Buffer(0, 1, 8, id="a")]], shared)


def test_shared_buffers_are_no_aliases_in_other_graphs() -> None:
    """Two that are views of one storage in one graph, and live together in another: both named."""
    rows = [Buffer(0, 4, 8, id="s"), Buffer(4, 8, 8, id="u")]
    views = Problem(rows, constraints=Constraints(aliases=[("s", "u")]))
    with pytest.raises(InvalidProblemError, match=r"\(1, 'u'\) .* \(1, 's'\) at which they share"):
        plan_jointly([views, [Buffer(0, 4, 8, id="s"), Buffer(0, 4, 8, id="u")]], ["s", "u"])


def test_a_capacity_of_the_problems_is_that_of_the_arena() -> None:
    """All must have the same."""
    small, large = (Problem([Buffer(0, 1, 64, id="a")], capacity=c) for c in (32, 100))
    with pytest.raises(InfeasibleError, match="no plan fits into 32 B"):
        plan_jointly([small, small], ["a"])
    with pytest.raises(InvalidProblemError, match="the same capacity, not 100 and 32"):
        plan_jointly([small, large], ["a"])


def test_pins_of_shared_buffers_must_agree() -> None:
    """Both are named, with the numbers of their problems."""
    with pytest.raises(InvalidProblemError, match=r"\(1, 's'\) is pinned to 8, .* \(0, 's'\)"):
        plan_jointly([[Buffer(0, 1, 8, id="s", offset=at)] for at in (0, 8)], ["s"])
    plans = plan_jointly([[Buffer(0, 1, 8, id="s", offset=16)], [Buffer(0, 1, 8, id="s")]], ["s"])
    assert [p["s"] for p in plans] == [16, 16]


def test_steps_as_large_as_there_are() -> None:
    """Graphs whose steps together are beyond 2**62 are planned all the same."""
    graph = [Buffer(1 - 2**62, 2**62 - 1, 8, id="s"), Buffer(5, 7, 8, id="x", holes=[(6, 7)])]
    plans = plan_jointly([graph] * 3, ["s"])
    assert [p.validate() for p in plans] == [()] * 3
    assert plans[0].stats["joint_peak"] == 16

"""The families of problems: seeded, of the size that was asked for, with the optimum they claim."""

from __future__ import annotations

import numpy as np
import pytest

from dsa import plan
from dsa.bench.generators import FAMILIES

ROUNDED = {"above-load"}  # made of knots of seven buffers

each_family = pytest.mark.parametrize("name", FAMILIES)


@each_family
@pytest.mark.parametrize("n", [0, 1, 2, 7, 37, 1000])
def test_a_family_makes_as_many_buffers_as_asked_for(name: str, n: int) -> None:
    """Any number of them, but where the shape of the family rounds it down."""
    buffers = len(FAMILIES[name](n, seed=1))
    assert buffers == n or (name in ROUNDED and (n - 7 < buffers < n or buffers == 8))


@each_family
def test_the_seed_decides(name: str) -> None:
    """The same seed gives the same problem, another seed another one."""
    one, again, other = (FAMILIES[name](200, seed) for seed in (1, 1, 2))
    assert one == again
    assert one.fingerprint != other.fingerprint


@each_family
def test_every_family_says_what_it_is(name: str) -> None:
    """One line, for those who list them."""
    assert FAMILIES[name].about.endswith(".")


KNOWN = [name for name, family in FAMILIES.items() if family.optimum is not None]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", KNOWN)
def test_exact_reaches_the_known_optimum(name: str, seed: int) -> None:
    """Where the optimum is known by construction, `exact` finds it and proves it."""
    problem = FAMILIES[name](22, seed)
    result = plan(problem, "exact", time_limit=60)
    assert result.peak == FAMILIES[name].least_peak(problem)
    assert result.status == "optimal"


@pytest.mark.parametrize("name", KNOWN)
def test_nothing_beats_the_known_optimum(name: str, solver: str) -> None:
    """No solver, exact or not, has a peak below it."""
    problem = FAMILIES[name](60, 0)
    least = FAMILIES[name].least_peak(problem)
    assert least is not None
    assert plan(problem, solver, time_limit=0.05).peak >= least


@pytest.mark.parametrize("fit", ["first", "best"])
def test_the_adversary_wins(fit: str) -> None:
    """Whoever places by time needs four times what is live, with first fit and with best fit."""
    problem = FAMILIES["adversary"](2000, 0)
    assert plan(problem, "linear-scan", fit=fit).gap > 3


def test_every_byte_of_a_packing_is_in_use() -> None:
    """At every step the load is the same, and so is that of the pinned and the aligned one."""
    for name in ("packing", "aligned", "pinned"):
        problem = FAMILIES[name](300, 5)
        assert np.unique(problem.sections.load).size == 1
    assert "pins" in FAMILIES["pinned"](300, 5).features
    assert "alignment" in FAMILIES["aligned"](300, 5).features

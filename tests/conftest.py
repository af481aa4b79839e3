"""What all tests share: how Hypothesis searches, and one fixture that stands for every solver."""

from __future__ import annotations

import pytest
from hypothesis import settings

from dsa import solvers
from dsa.solvers import missing_packages, names, solver_class

# By default the same examples on every run. To look further, `pytest --hypothesis-profile=explore`
# takes other ones each time, and thirty times as many.
settings.register_profile("default", deadline=None, derandomize=True, database=None)
settings.register_profile("explore", deadline=None, max_examples=3000, print_blob=True)
settings.load_profile("default")


@pytest.fixture(autouse=True)
def no_solver_stays_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is known until its end."""
    monkeypatch.setattr(solvers, "_registered", dict(solvers._registered))


@pytest.fixture(scope="session", params=names())
def solver(request: pytest.FixtureRequest) -> str:
    """The name of each solver of the table in turn; skips where its packages are missing."""
    name = str(request.param)
    missing = missing_packages(solver_class(name))
    if missing:
        pytest.skip(f"{name} needs {', '.join(missing)}")
    return name

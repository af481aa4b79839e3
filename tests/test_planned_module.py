"""Modules of PyTorch that run out of an arena, with equal bits."""

from __future__ import annotations

import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the package torch")

from dsa import InvalidProblemError  # noqa: E402
from dsa.bench.modules import MODULES  # noqa: E402
from dsa.bench.planned import PlannedModule  # noqa: E402
from dsa.bench.sources import fx  # noqa: E402

# PyTorch deprecates a class of its own among itself, as a FutureWarning.
pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")

SMALL: dict[str, dict[str, int]] = {
    "convolutional": {"channels": 4, "width": 12, "blocks": 2},
    "transformer": {"tokens": 8, "width": 16, "blocks": 2},
    "branches": {"channels": 8, "width": 10, "blocks": 2},
    "pixels": {"width": 32},
}


@pytest.fixture(scope="module", params=MODULES)
def case(request: pytest.FixtureRequest) -> tuple[Any, Any, PlannedModule]:
    """A module, its input, and the module planned."""
    torch.set_num_threads(1)
    module, x = MODULES[request.param](**SMALL[request.param])
    return module, x, PlannedModule(module, (x,))


def test_the_results_are_the_same_bits(case: tuple[Any, Any, PlannedModule]) -> None:
    """Run after run, for other inputs, too."""
    module, x, planned = case
    with torch.no_grad():
        for given in (x, x.flip(1) * 0.5, x):
            expected = module(given)
            assert torch.equal(planned(given), expected)
            assert torch.equal(planned.ordinary(given), expected)


def test_all_results_lie_in_the_arena(case: tuple[Any, Any, PlannedModule]) -> None:
    """Up to the peak of the plan, which is valid; most are written there by their kernels."""
    _, x, planned = case
    planned(x)
    views = [view for view in planned.views() if view.numel()]
    ends = [view.data_ptr() + view.numel() * view.element_size() for view in views]
    start = min(view.data_ptr() for view in views)
    assert max(ends) - start == planned.arena.plan.peak
    assert planned.arena.plan.validate() == ()
    assert planned.direct > planned.copied
    assert sum(view.numel() > 0 for view in views) == int(
        (planned.arena.plan.problem.size > 0).sum()
    )


def test_every_node_writes_only_its_own_place(case: tuple[Any, Any, PlannedModule]) -> None:
    """Node by node, no value that is still to be read is changed by another node."""
    _, x, planned = case
    graph = planned._rewritten
    interpreter = torch.fx.Interpreter(graph, garbage_collect_values=False)
    interpreter.args_iter = iter([*planned._weights, x, *planned.views()])
    last = {used: node for node in graph.graph.nodes for used in node.all_input_nodes}
    seen: dict[Any, Any] = {}
    with torch.no_grad():
        for node in graph.graph.nodes:
            for earlier in node.all_input_nodes:
                if earlier in seen:
                    assert torch.equal(interpreter.env[earlier], seen[earlier]), (earlier, node)
            result = interpreter.env[node] = interpreter.run_node(node)
            if node.op == "call_function" and isinstance(result, torch.Tensor) and node in last:
                seen[node] = result.clone()


def test_a_result_is_the_callers() -> None:
    """The next run does not change it."""
    module, x = MODULES["branches"](**SMALL["branches"])
    planned = PlannedModule(module, (x,))
    first = planned(x)
    kept = first.clone()
    planned(x * 2)
    assert torch.equal(first, kept)


def test_threads_run_in_blocks_of_their_own() -> None:
    """All at once, with the same bits."""
    module, x = MODULES["transformer"](**SMALL["transformer"])
    planned = PlannedModule(module, (x,))
    with torch.no_grad():
        inputs = [x * (n + 1) for n in range(4)]
        expected = [module(given) for given in inputs]
    wrong, starts = [], set()

    def work(n: int) -> None:
        starts.add(planned.views()[0].data_ptr())
        for _ in range(20):
            if not torch.equal(planned(inputs[n]), expected[n]):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(starts) == 4


def test_outputs_keep_their_structure() -> None:
    """Several results come back as the module returns them, also inputs and views."""

    class Several(torch.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            y = x + 1
            return {"sum": y, "part": y[1:], "best": y.topk(2)}, x

    module, x = Several().eval(), torch.randn(6)
    planned = PlannedModule(module, (x,))
    expected, got = module(x), planned(x)
    assert torch.equal(got[0]["part"], expected[0]["part"])
    assert torch.equal(got[0]["sum"], expected[0]["sum"])
    assert torch.equal(got[0]["best"][1], expected[0]["best"].indices)
    assert torch.equal(got[1], x)


# -- what cannot be planned, or not be run --------------------------------------------------------


class Doubled(torch.nn.Module):  # type: ignore[misc,name-defined]
    """Twice its input, and what else it is told to return."""

    def __init__(self, *others: Any) -> None:
        super().__init__()
        self.others = others

    def forward(self, x: Any) -> Any:
        return (x * 2, *self.others)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ((torch.zeros(1, 8),), r"input 0 must be .* \(2, 8\) on the cpu, got .* \(1, 8\)"),
        ((torch.zeros(3, 8),), r"input 0 must be .* \(2, 8\) on the cpu, got .* \(3, 8\)"),
        ((torch.zeros(2, 8).double(),), r"got a torch.float64 of shape \(2, 8\)"),
        ((torch.zeros(2, 8).numpy(),), r"must be a torch.float32 .*, got array"),
        ((), "planned for 1 inputs, got 0"),
        ((torch.zeros(2, 8),) * 2, "planned for 1 inputs, got 2"),
    ],
)
def test_other_inputs_than_planned_are_refused(inputs: Any, message: str) -> None:
    """Kernels would resize the places of their results; the next run is as good as any."""
    x = torch.randn(2, 8)
    module = torch.nn.Linear(8, 4).eval()
    planned = PlannedModule(module, (x,))
    for run in (planned, planned.ordinary):
        with pytest.raises(ValueError, match=message):
            run(*inputs)
    with torch.no_grad():
        assert torch.equal(planned(x), module(x))


def test_a_result_may_be_no_tensor() -> None:
    """None and numbers are returned as they are."""
    x = torch.randn(2, 8)
    planned = PlannedModule(Doubled(None, 3).eval(), (x,))
    for run in (planned, planned.ordinary):
        doubled, *others = run(x)
        assert torch.equal(doubled, x * 2)
        assert others == [None, 3]


class Mutating(torch.nn.Module):  # type: ignore[misc,name-defined]
    """Changes its input."""

    def forward(self, x: Any) -> Any:
        return x.add_(1) * 2


@pytest.mark.parametrize("module", [Mutating().eval(), torch.nn.BatchNorm1d(8).train()])
def test_a_module_that_changes_what_it_is_given_is_refused(module: Any) -> None:
    """Its inputs, or running means in training."""
    with pytest.raises(InvalidProblemError, match=r"changes .*; PyTorch's mode eval"):
        PlannedModule(module, (torch.randn(2, 8),))


class Chosen(torch.nn.Module):  # type: ignore[misc,name-defined]
    """Has a result whose size depends on the data."""

    def forward(self, x: Any) -> Any:
        return x.nonzero() * 2


@pytest.mark.parametrize("use", [PlannedModule, fx.from_module])
def test_a_size_that_depends_on_the_data_is_refused(use: Any) -> None:
    """The error names the node."""
    with pytest.raises(InvalidProblemError, match=r"node 'nonzero': .* depends on the data"):
        use(Chosen().eval(), (torch.randn(2, 8),))


@pytest.mark.parametrize("use", [PlannedModule, fx.from_module])
def test_inputs_are_a_tuple(use: Any) -> None:
    """A tensor by itself would be taken apart into its rows."""
    with pytest.raises(TypeError, match=r"inputs must be a tuple of arguments, such as \(x,\)"):
        use(torch.nn.ReLU(), torch.randn(2, 8))


class Summed(torch.nn.Module):  # type: ignore[misc,name-defined]
    """Takes a pair."""

    def forward(self, pair: Any) -> Any:
        return pair[0] + pair[1]


def test_an_input_is_one_tensor() -> None:
    """No tuple or dictionary of several."""
    with pytest.raises(TypeError, match="input 0 is a tuple; every input must be a tensor"):
        PlannedModule(Summed().eval(), ((torch.zeros(2), torch.zeros(2)),))

"""Modules of PyTorch that run out of an arena, with equal bits."""

from __future__ import annotations

import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the package torch")

from dsa.bench.modules import MODULES  # noqa: E402
from dsa.bench.planned import PlannedModule  # noqa: E402

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

"""A module of PyTorch that runs out of an arena, on the CPU: ``out=`` wherever a kernel takes it.

The graph of the module is rewritten once. What a node makes gets an argument of its own, a tensor
over the bytes that the plan gives it, and the node writes there::

    add = aten.add.Tensor(x, y)         the graph        memory by the ordinary allocator
    add = aten.add.out(x, y, out=at_3)  rewritten        memory by the plan

Kernels that take no such argument compute as ever, and what they return is copied. Both kinds are
counted. What a kernel needs inside, a workspace, is no business of the graph: it stays with the
ordinary allocator.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dsa.bench.sources import fx, require
from dsa.errors import InvalidProblemError
from dsa.planner import plan
from dsa.replay import Arena

__all__ = ["PlannedModule"]


class PlannedModule:
    """A module whose results lie where a plan puts them.

    Parameters
    ----------
    module
        A `torch.nn.Module` in the mode `eval`, whose parameters stay as they are.
    inputs
        Its positional arguments: tensors of the shapes that every call will have.
    solver
        Of the plan, as for `dsa.plan`.

    Attributes
    ----------
    arena
        Of the plan, ``arena.plan``; every thread that calls has a block of its own.
    direct, copied
        Nodes whose kernel writes into the arena, and those whose results are copied there.
    ordinary
        The same graph without the arena: a function of the same inputs.

    Raises
    ------
    SolverUnavailableError
        If torch is not installed.
    InvalidProblemError
        If the module changes its inputs or buffers, or the size of a result depends on the data.
    TypeError
        If an input is neither a tensor nor a number.

    Notes
    -----
    Which kernel convolves depends on the number of PyTorch's threads: set it before. What a call
    returns is the caller's, copied out of the arena.
    """

    def __init__(self, module: Any, inputs: Sequence[Any], *, solver: str = "auto") -> None:
        require("torch", "running modules")
        program = fx.export(module, inputs)
        traced = fx.trace(program.graph_module)
        self.arena = Arena(plan(traced.problem, solver, alignment=64))
        self._weights = _weights(program)
        self._inputs = _inputs(program, inputs)
        self._shape = program.call_spec.out_spec
        self._graph = program.graph_module
        self._local = threading.local()
        rewriter = _Rewriter(program.graph_module, traced)
        self._rewritten, self._wanted = rewriter.rewrite()
        self.direct, self.copied = rewriter.direct, rewriter.copied

    def __call__(self, *inputs: Any) -> Any:
        """What the module returns, in memory of its own."""
        import torch

        self._check(inputs)
        with torch.no_grad():
            results = self._rewritten(*self._weights, *inputs, *self.views())
            return self._shaped([x.clone() if torch.is_tensor(x) else x for x in results])

    def ordinary(self, *inputs: Any) -> Any:
        """What the module returns, by the same graph and the ordinary allocator."""
        import torch

        self._check(inputs)
        with torch.no_grad():
            return self._shaped(list(self._graph(*self._weights, *inputs)))

    def _check(self, inputs: Sequence[Any]) -> None:
        """Refuse other shapes and types: kernels would resize the places of their results."""
        if len(inputs) != len(self._inputs):
            raise ValueError(f"planned for {len(self._inputs)} inputs, got {len(inputs)}")
        for position, (given, like) in enumerate(zip(inputs, self._inputs, strict=True)):
            if _signature(given) != like:
                raise ValueError(
                    f"input {position} must be {_told(like)}, got {_told(_signature(given))}; "
                    "make another PlannedModule for it"
                )

    def views(self) -> list[Any]:
        """Tensors over this thread's block, one for each result that the plan has a place for."""
        if not hasattr(self._local, "views"):
            self._local.views = [self._view(id, like) for id, like in self._wanted]
        views: list[Any] = self._local.views
        return views

    def _view(self, id: str, like: Any) -> Any:
        import torch

        size = int(like.untyped_storage().nbytes())
        data = torch.from_numpy(self.arena.view(id, size)).view(like.dtype)
        return data.as_strided(like.size(), like.stride(), like.storage_offset())

    def _shaped(self, results: list[Any]) -> Any:
        import torch

        return torch.utils._pytree.tree_unflatten(results, self._shape)


def _weights(program: Any) -> list[Any]:
    """Parameters, buffers and constants, in the order of the graph's inputs."""
    stored = {**program.state_dict, **program.constants}
    specs = program.graph_signature.input_specs
    return [stored[spec.target].detach() for spec in specs if spec.kind.name != "USER_INPUT"]


def _inputs(program: Any, inputs: Sequence[Any]) -> list[Any]:
    """What every call must give; a module that changes it is refused."""
    import torch

    for spec in program.graph_signature.output_specs:
        if spec.kind.name != "USER_OUTPUT":
            raise InvalidProblemError(
                f"the module changes {spec.target!r}; PyTorch's mode eval, or a copy, prevents it",
                value=spec.target,
            )
    for position, given in enumerate(inputs):
        if not isinstance(given, (torch.Tensor, int, float)):
            raise TypeError(
                f"input {position} is a {type(given).__name__}; every input must be a tensor"
            )
    return [_signature(given) for given in inputs]


def _signature(given: Any) -> Any:
    """Shape, type and device of a tensor; any other value itself."""
    import torch

    return (given.shape, given.dtype, given.device) if torch.is_tensor(given) else repr(given)


def _told(signature: Any) -> str:
    if isinstance(signature, str):
        return signature
    shape, dtype, device = signature
    return f"a {dtype} of shape {tuple(shape)} on the {device}"


# -- rewriting --------------------------------------------------------------------------------


class _Kernel(NamedTuple):
    """A call that writes its results into tensors, which it takes by the names `outs`."""

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outs: Sequence[str]


class _Rewriter:
    """Gives every result a place."""

    def __init__(self, module: Any, traced: fx.Trace) -> None:
        import torch

        self.graph = torch.fx.Graph()
        self.module = module
        self.traced = traced
        self.direct = self.copied = 0

    def rewrite(self) -> tuple[Any, list[tuple[str, Any]]]:
        """The rewritten module, and what its added inputs are: ids, and tensors to be like."""
        import torch

        new: dict[Any, Any] = {}
        wanted: list[tuple[str, Any]] = []
        nodes = list(self.module.graph.nodes)
        places: dict[str, Any] = {}
        last = [node for node in nodes if node.op == "placeholder"]
        for node in last:
            new[node] = self.graph.node_copy(node)
        for results in self.traced.made.values():
            for like, id in results:
                if id is not None:
                    places[id] = self.graph.placeholder(f"at_{len(wanted)}")
                    wanted.append((id, like))
        for node in nodes[len(last) :]:
            new[node] = self._node(node, new, places)
        self.graph.lint()
        return torch.fx.GraphModule(self.module, self.graph), wanted

    def _node(self, node: Any, new: dict[Any, Any], places: dict[str, Any]) -> Any:
        copy = new.__getitem__
        if node.name not in self.traced.made:
            return self.graph.node_copy(node, copy)
        results = self.traced.made[node.name]
        outs = [places.get(id) if id is not None else None for _, id in results]
        kernel = None if None in outs else _kernel(node)
        if kernel is not None and len(kernel.outs) == len(outs):
            self.direct += 1
            arguments = _mapped((kernel.args, kernel.kwargs), copy)
            kwargs = {**arguments[1], **dict(zip(kernel.outs, outs, strict=True))}
            return self.graph.call_function(kernel.function, arguments[0], kwargs)
        self.copied += 1
        computed = self.graph.node_copy(node, copy)
        return self.graph.call_function(_copied, (computed, tuple(outs)))


def _mapped(arguments: Any, copy: Callable[[Any], Any]) -> Any:
    import torch

    return torch.fx.node.map_arg(arguments, copy)


def _copied(computed: Any, outs: tuple[Any, ...]) -> Any:
    """The results, each in its place if it has one."""
    if not isinstance(computed, (tuple, list)):
        return outs[0].copy_(computed)
    return [x if out is None else out.copy_(x) for x, out in zip(computed, outs, strict=True)]


def _kernel(node: Any) -> _Kernel | None:
    """A kernel of the CPU that does the node's work, bit for bit, and takes its results' places."""
    known = _KERNELS.get(str(node.target))
    return known(*node.args, **node.kwargs) if known is not None else _overload(node)


def _overload(node: Any) -> _Kernel | None:
    """The operator's own overload with the same arguments and ``out``, if it is a real one."""
    base = node.target._schema
    for name in node.target.overloadpacket.overloads():
        overload = getattr(node.target.overloadpacket, name)
        outs = [a.name for a in overload._schema.arguments if a.is_out]
        others = [(a.name, str(a.type)) for a in overload._schema.arguments if not a.is_out]
        same = others == [(a.name, str(a.type)) for a in base.arguments]
        if outs and same and _on_cpu(overload):
            return _Kernel(overload, node.args, dict(node.kwargs), outs)
    return None


def _on_cpu(overload: Any) -> bool:
    """Whether it is written for the CPU; others allocate, compute and copy."""
    import torch

    found: bool = torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "CPU")
    return found


def _relu(x: Any) -> _Kernel:
    import torch

    return _Kernel(torch.ops.aten.clamp_min.out, (x, 0), {}, ["out"])


def _clone(x: Any, memory_format: Any = None) -> _Kernel:
    return _Kernel(_copy, (x,), {}, ["out"])


def _copy(x: Any, out: Any) -> Any:
    return out.copy_(x)


def _batch_norm(x: Any, *arguments: Any) -> _Kernel:
    import torch

    *statistics, momentum, epsilon = arguments
    return _Kernel(
        torch.ops.aten.native_batch_norm.out,
        (x, *statistics, False, momentum, epsilon),
        {},
        ["out", "save_mean", "save_invstd"],
    )


def _convolution(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, *others: Any
) -> _Kernel | None:
    """PyTorch's own convolution, if it is the one that an ordinary run would choose."""
    import torch

    real: list[Any] = [None if n is None else _like(n.meta["val"]) for n in (x, weight, bias)]
    sizes = None if bias is None else list(real[2].shape)
    chosen = torch._C._select_conv_backend(*real, stride, padding, dilation, *others, sizes)
    if chosen.name != "Slow2d":
        return None
    window = list(real[1].shape[2:])
    function = torch.ops.aten._slow_conv2d_forward.output
    return _Kernel(function, (x, weight, window, bias, stride, padding), {}, ["output"])


def _like(fake: Any) -> Any:
    import torch

    return torch.empty_strided(fake.size(), fake.stride(), dtype=fake.dtype)


# Operators whose own overload with `out` is not a real one, or is called something else.
_KERNELS: dict[str, Callable[..., _Kernel | None]] = {
    "aten.relu.default": _relu,
    "aten.clone.default": _clone,
    "aten._native_batch_norm_legit_no_training.default": _batch_norm,
    "aten.convolution.default": _convolution,
}

"""Graphs of PyTorch: `torch.export`, and lifetimes by a run on fake tensors.

Nothing is computed or allocated in such a run, yet every value has a storage. A view, or what an
operator changed in place, has the storage of its base, and so is the same buffer.
"""

from __future__ import annotations

import io
import os
import pickle
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

from dsa.bench.sources import require
from dsa.errors import FileFormatError, InvalidProblemError
from dsa.io import read_bytes
from dsa.problem import Problem

__all__ = ["Trace", "export", "from_module", "read", "trace"]


class Trace(NamedTuple):
    """Lifetimes of a graph, and who makes the buffers.

    Parameters
    ----------
    problem
        An id is the name of the node that makes the buffer, followed by its number, ``topk.1``,
        if the node makes several.
    made
        For each node that makes buffers the values of its results, each with the id of its
        buffer, or None where the result has no buffer of its own.
    """

    problem: Problem
    made: Mapping[str, Sequence[tuple[Any, str | None]]]


def read(source: str | os.PathLike[str] | IO[bytes]) -> Problem:
    """Read the buffers of an exported program, a ``.pt2`` file that `torch.export.save` wrote.

    Raises
    ------
    FileFormatError
        If it is none.
    InvalidProblemError
        Naming a node the size of whose result depends on the data.
    SolverUnavailableError
        If torch is not installed.
    """
    torch = require("torch", "reading exported programs")
    file, content = read_bytes(source)
    try:
        with zipfile.ZipFile(io.BytesIO(content)):
            program = torch.export.load(io.BytesIO(content))
    except _UNREADABLE as error:
        what = f"{type(error).__name__}: {error}"
        raise FileFormatError(f"{file}: no exported program: {what}") from error
    with _quiet():
        lowered = _lowered(program)
    return trace(lowered.graph_module).problem


# What PyTorch raises for archives that hold something else, besides errors of its own.
_UNREADABLE = (
    *(zipfile.BadZipFile, pickle.UnpicklingError, EOFError, RuntimeError, AssertionError),
    *(TypeError, ValueError, LookupError, AttributeError),
)


def from_module(module: Any, inputs: Sequence[Any]) -> Problem:
    """The buffers of a module run on inputs of these shapes, as an ahead-of-time runtime sees them.

    Parameters
    ----------
    module
        A `torch.nn.Module`; put it into the mode that is meant, `eval` or `train`.
    inputs
        Its positional arguments. Only their shapes and types count.

    Raises
    ------
    InvalidProblemError
        Naming a node the size of whose result depends on the data.
    SolverUnavailableError
        If torch is not installed.
    """
    return trace(export(module, inputs).graph_module).problem


def export(module: Any, inputs: Sequence[Any]) -> Any:
    """The module as a `torch.export.ExportedProgram` in core operators.

    Raises
    ------
    SolverUnavailableError
        If torch is not installed.
    """
    torch = require("torch", "tracing modules")
    if isinstance(inputs, torch.Tensor):
        raise TypeError("inputs must be a tuple of arguments, such as (x,), not a tensor")
    with torch.no_grad(), _quiet():
        return _lowered(torch.export.export(module, tuple(inputs), strict=False))


def _quiet() -> warnings.catch_warnings[None]:
    """PyTorch warns of a class of its own that it uses itself: nothing that a caller could help."""
    return warnings.catch_warnings(action="ignore", category=FutureWarning)


def _lowered(program: Any) -> Any:
    import torch

    table: Any = torch.export.default_decompositions()
    # Attention stays whole, as in every runtime: taken apart, it would fill a matrix with zeros.
    for operator in [op for op in table if "scaled_dot_product" in str(op)]:
        table.pop(operator)
    return program.run_decompositions(table)


def trace(module: Any, inputs: Sequence[Any] | None = None) -> Trace:
    """Run a graph on fake tensors and see when each storage is made and last used.

    Parameters
    ----------
    module
        A `torch.fx.GraphModule`.
    inputs
        One for each placeholder; fake tensors, or real ones that stand for their shapes. Those
        that the graph was traced with if None.

    Notes
    -----
    A step is a node that makes a storage or writes to one. Storages of inputs and attributes are
    no buffers. Outputs live to the end.
    """
    torch = require("torch", "tracing graphs")
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    if inputs is None:
        inputs = [n.meta.get("val") for n in module.graph.nodes if n.op == "placeholder"]
    given = list(_tensors(inputs))
    mode = next((t.fake_mode for t in given if isinstance(t, FakeTensor)), None)
    if mode is None:
        mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [
        mode.from_tensor(x) if isinstance(x, torch.Tensor) and not isinstance(x, FakeTensor) else x
        for x in inputs
    ]
    # Everything is kept, or the identity of a storage that is gone could be given to another.
    interpreter = torch.fx.Interpreter(module, garbage_collect_values=False)
    interpreter.args_iter = iter(fakes)
    lives = _Lives()
    with mode, torch.no_grad():
        for node in module.graph.nodes:
            used = list(_tensors([interpreter.env[n] for n in node.all_input_nodes]))
            result = interpreter.env[node] = interpreter.run_node(node)
            lives.see(node, used, list(_tensors(result)))
    return lives.trace()


class _Lives:
    """When the storages seen so far were made and last used."""

    def __init__(self) -> None:
        self.step = 0
        self.outside: set[int] = set()
        self.ids: dict[int, str] = {}
        self.lower: dict[int, int] = {}
        self.upper: dict[int, int] = {}
        self.size: dict[int, int] = {}
        self.made: dict[str, list[tuple[Any, str | None]]] = {}

    def see(self, node: Any, used: Sequence[Any], results: Sequence[Any]) -> None:
        """Take note of what a node did."""
        if node.op in ("placeholder", "get_attr"):
            self.outside.update(map(_storage, results))
        elif node.op == "output":
            self._use(results, self.step - 1)
        else:
            known = self.outside.union(self.ids, map(_storage, used))
            fresh = dict.fromkeys(s for s in map(_storage, results) if s not in known)
            if fresh or _writes(node.target):
                self._make(node.name, fresh, results)
                self._use((*used, *results), self.step)
                self.step += 1

    def trace(self) -> Trace:
        """All that was seen."""
        columns = ([column[s] for s in self.ids] for column in (self.lower, self.upper, self.size))
        return Trace(Problem.from_columns(*columns, ids=list(self.ids.values())), self.made)

    def _make(self, name: str, fresh: Mapping[int, None], results: Sequence[Any]) -> None:
        for number, storage in enumerate(fresh):
            self.ids[storage] = name if len(fresh) == 1 else f"{name}.{number}"
            self.lower[storage] = self.step
        for tensor in results:
            self.size.setdefault(_storage(tensor), _bytes(name, tensor))
        if fresh:
            self.made[name] = [
                (t, self.ids[_storage(t)] if _storage(t) in fresh else None) for t in results
            ]

    def _use(self, tensors: Sequence[Any], step: int) -> None:
        for storage in map(_storage, tensors):
            if storage in self.ids:
                self.upper[storage] = step + 1


def _tensors(values: Any) -> Iterator[Any]:
    import torch

    leaves = torch.utils._pytree.tree_leaves(values)
    return (leaf for leaf in leaves if isinstance(leaf, torch.Tensor))


def _storage(tensor: Any) -> int:
    """The same for a tensor and all views of it."""
    identity: int = tensor.untyped_storage()._cdata
    return identity


def _bytes(name: str, tensor: Any) -> int:
    """The size of a storage; an error if it depends on the data."""
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    try:
        return int(tensor.untyped_storage().nbytes())
    except GuardOnDataDependentSymNode as error:
        raise InvalidProblemError(
            f"node {name!r}: the size of its result depends on the data, and cannot be planned",
            id=name,
            field="size",
        ) from error


def _writes(target: Any) -> bool:
    """Whether an operator changes an argument."""
    schema = getattr(target, "_schema", None)
    arguments = () if schema is None else schema.arguments
    return any(a.alias_info is not None and a.alias_info.is_write for a in arguments)

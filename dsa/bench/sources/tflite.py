"""TFLite files: shapes as they are written, lifetimes by the order of the operators."""

from __future__ import annotations

import math
import os
import struct
from collections import Counter
from typing import IO, Any

from dsa.bench.sources import Operator, lifetimes, require
from dsa.errors import FileFormatError, InvalidProblemError
from dsa.io import read_bytes
from dsa.problem import Problem

__all__ = ["read"]

_ALIASES = {"RESHAPE", "SQUEEZE", "EXPAND_DIMS"}
_BITS = {"COMPLEX128": 128, "FLOAT16": 16, "BFLOAT16": 16, "BOOL": 8, "INT4": 4}
_BITS |= dict.fromkeys(("FLOAT64", "INT64", "UINT64", "COMPLEX64"), 64)
_BITS |= dict.fromkeys(("FLOAT32", "INT32", "UINT32"), 32)
_BITS |= dict.fromkeys(("INT16", "UINT16"), 16) | dict.fromkeys(("INT8", "UINT8"), 8)
_IDENTIFIER = b"TFL3"  # bytes 4 to 7 of every file


def read(source: str | os.PathLike[str] | IO[bytes]) -> Problem:
    """Read the buffers of a TFLite model.

    Parameters
    ----------
    source
        A path or an open file.

    Returns
    -------
    Problem
        An id is the name of the tensor; with its index, ``name#7``, where several have the name.

    Raises
    ------
    FileFormatError
        If it is no TFLite model.
    InvalidProblemError
        If it has several graphs, or a tensor whose size is not known.
    SolverUnavailableError
        If tflite is not installed.
    """
    tflite = require("tflite", "reading TFLite")
    file, content = read_bytes(source)
    if content[4:8] != _IDENTIFIER:
        raise FileFormatError(f"{file}: no TFLite model: it lacks the identifier TFL3")
    try:
        return _problem(tflite, tflite.Model.GetRootAsModel(content, 0), file)
    except (struct.error, IndexError, TypeError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{file}: broken TFLite model: {error}") from error


def _problem(tflite: Any, model: Any, file: str) -> Problem:
    if model.SubgraphsLength() != 1:
        raise InvalidProblemError(
            f"{file}: {model.SubgraphsLength()} graphs; only a model of one graph can be read"
        )
    graph = model.Subgraphs(0)
    tensors = [graph.Tensors(i) for i in range(graph.TensorsLength())]
    plain = [(tensor.Name() or b"").decode() for tensor in tensors]
    count = Counter(plain)
    names = [name if count[name] == 1 else f"{name}#{i}" for i, name in enumerate(plain)]
    index = {name: i for i, name in enumerate(names)}
    aliases = {getattr(tflite.BuiltinOperator, name) for name in _ALIASES}

    def named(indices: Any) -> list[str]:
        return [names[i] for i in indices if i >= 0]  # -1: an argument left out

    def operator(i: int) -> Operator:
        op = graph.Operators(i)
        code = model.OperatorCodes(op.OpcodeIndex())
        kind = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        reads = (op.Inputs(k) for k in range(op.InputsLength()))
        writes = (op.Outputs(k) for k in range(op.OutputsLength()))
        return Operator(named(reads), named(writes), kind in aliases)

    return lifetimes(
        map(operator, range(graph.OperatorsLength())),
        [
            name
            for name, tensor in zip(names, tensors, strict=True)
            if model.Buffers(tensor.Buffer()).DataLength() > 0
        ],
        named(graph.Outputs(k) for k in range(graph.OutputsLength())),
        lambda name: _size(tflite, tensors[index[name]], name, file),
    )


def _size(tflite: Any, tensor: Any, name: str, file: str) -> int:
    kinds = {value: kind for kind, value in vars(tflite.TensorType).items() if kind in _BITS}
    kind = kinds.get(tensor.Type())
    shape: list[int] = [tensor.Shape(k) for k in range(tensor.ShapeLength())]
    if kind is None or min(shape, default=1) < 0:
        raise InvalidProblemError(
            f"{file}: tensor {name!r} of shape {shape} and type {tensor.Type()} has no known size",
            id=name,
            field="size",
        )
    return -(-math.prod(shape) * _BITS[kind] // 8)

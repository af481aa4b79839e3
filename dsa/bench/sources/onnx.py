"""ONNX files: shapes by ONNX's own inference, lifetimes by the order of the nodes."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import IO, Any, cast

from dsa.bench.sources import Operator, lifetimes, require
from dsa.errors import FileFormatError, InvalidProblemError
from dsa.io import read_bytes
from dsa.problem import Problem

__all__ = ["read"]

_ALIASES = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"}
_BITS = {"INT2": 2, "UINT2": 2, "INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4}  # packed


def read(
    source: str | os.PathLike[str] | IO[bytes], dimensions: Mapping[str, int] | None = None
) -> Problem:
    """Read the buffers of an ONNX model; the id of each is the name of the value.

    Parameters
    ----------
    source
        A path or an open file.
    dimensions
        Sizes of the dimensions that the file leaves open, by their names: ``{"batch": 1}``.

    Raises
    ------
    FileFormatError
        If it is no ONNX model.
    InvalidProblemError
        Naming a value whose shape is not known, or a node that holds graphs of its own.
    SolverUnavailableError
        If onnx is not installed.
    """
    onnx = require("onnx", "reading ONNX")
    file, content = read_bytes(source)
    try:
        model = onnx.load_model_from_string(content)
        _set_dimensions(model.graph, dimensions or {})
        model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except (_decode_error(), onnx.shape_inference.InferenceError, ValueError) as error:
        raise FileFormatError(f"{file}: no ONNX model: {error}") from error
    graph = model.graph
    if not graph.node:
        raise FileFormatError(f"{file}: no ONNX model: its graph has no node")
    values = {value.name: value for value in (*graph.value_info, *graph.output, *graph.input)}
    constants = {tensor.name for tensor in graph.initializer}
    constants |= {tensor.values.name for tensor in graph.sparse_initializer}
    return lifetimes(
        (_operator(node, file) for node in graph.node),
        constants,
        (value.name for value in graph.output),
        lambda name: _size(onnx, name, values.get(name), file),
    )


def _decode_error() -> type[Exception]:
    """What the library under onnx raises for bytes that are no message."""
    error: type[Exception] = require("google.protobuf.message", "reading ONNX").DecodeError
    return error


def _set_dimensions(graph: Any, dimensions: Mapping[str, int]) -> None:
    for value in graph.input:
        for dimension in value.type.tensor_type.shape.dim:
            if dimension.dim_param in dimensions:
                dimension.dim_value = dimensions[dimension.dim_param]


def _operator(node: Any, file: str) -> Operator:
    if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
        raise InvalidProblemError(
            f"{file}: node {node.name!r} ({node.op_type}) holds graphs of its own, whose buffers "
            "cannot be told; simplify the model",
            value=node.op_type,
        )
    names = [name for name in node.input if name], [name for name in node.output if name]
    return Operator(*names, alias=node.op_type in _ALIASES)


def _length(dimension: Any) -> int | str:
    """How long a dimension is, or what an open one is called; some files have -1 for that."""
    if dimension.HasField("dim_value") and dimension.dim_value >= 0:
        return int(dimension.dim_value)
    return dimension.dim_param or "?"


def _size(onnx: Any, name: str, value: Any, file: str) -> int:
    """Bytes of a value, from its inferred type."""
    if value is None or not value.type.HasField("tensor_type"):
        raise InvalidProblemError(f"{file}: value {name!r} has no known type", id=name)
    kind = value.type.tensor_type
    shape = [_length(dimension) for dimension in kind.shape.dim]
    if not kind.HasField("shape") or not all(isinstance(d, int) for d in shape):
        raise InvalidProblemError(
            f"{file}: value {name!r} has the shape {shape}; give the open dimensions a size: "
            f"dsa.bench.sources.onnx.read(file, dimensions={{...}})",
            id=name,
            field="size",
            value=shape,
        )
    names = {number: name for name, number in onnx.TensorProto.DataType.items()}
    type_name = names.get(kind.elem_type, "UNDEFINED")
    if type_name in ("STRING", "UNDEFINED"):
        raise InvalidProblemError(
            f"{file}: value {name!r} is of type {type_name}, whose size is not known", id=name
        )
    unpacked: int = 8 * onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).itemsize
    bits = _BITS.get(type_name, unpacked)
    count: int = math.prod(cast("list[int]", shape))
    return -(-count * bits // 8)

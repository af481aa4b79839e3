"""Models as problems: ONNX, TFLite, graphs of PyTorch and its eager runs, on models made here."""

from __future__ import annotations

import sys
import zipfile
from contextlib import suppress
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import dsa
from dsa import FileFormatError, InvalidProblemError, Problem, SolverUnavailableError, plan
from dsa.bench.sources import Operator, eager, fx, lifetimes, onnx, tflite
from dsa.cli import main
from dsa.testing import assert_valid


def needs(package: str) -> pytest.MarkDecorator:
    """Skip where a framework is not installed."""
    return pytest.mark.skipif(find_spec(package) is None, reason=f"needs the package {package}")


def rows(problem: Problem) -> dict[Any, tuple[int, int, int]]:
    """Lower, upper and size of each buffer by its id."""
    return {buffer.id: (buffer.lower, buffer.upper, buffer.size) for buffer in problem}


# -- lists of operators -------------------------------------------------------------------------


def test_constants_fold_and_reshapes_alias() -> None:
    """What depends on constants only takes no step; a reshape keeps its input's buffer alive."""
    operators = [
        Operator(["w"], ["dequantized"]),
        Operator(["x", "dequantized"], ["a"]),
        Operator(["a", "shape"], ["b"], alias=True),
        Operator(["b"], ["again"], alias=True),
        Operator(["x"], ["c"]),
        Operator(["again", "c"], ["y"]),
    ]
    problem = lifetimes(operators, {"w", "shape"}, ["y"], lambda _: 8)
    assert rows(problem) == {"a": (0, 3, 8), "c": (1, 3, 8), "y": (2, 3, 8)}


def test_a_result_that_nobody_reads_lives_for_its_own_step() -> None:
    """And an output, even under another name, to the end."""
    operators = [
        Operator(["x"], ["kept", "unread"]),
        Operator(["kept"], ["out"], alias=True),
        Operator(["x"], ["later"]),
    ]
    problem = lifetimes(operators, (), ["out"], len)
    assert rows(problem) == {"kept": (0, 2, 4), "unread": (0, 1, 6), "later": (1, 2, 5)}


def test_a_reshape_of_a_constant_is_a_buffer() -> None:
    """If its shape is not constant: there is no buffer that it could keep."""
    problem = lifetimes([Operator(["w", "shape"], ["y"], alias=True)], {"w"}, ["y"], lambda _: 8)
    assert rows(problem) == {"y": (0, 1, 8)}


def test_a_model_without_operators_is_empty() -> None:
    """An input that is an output has no buffer."""
    assert len(lifetimes([], (), ["x"], lambda _: 8)) == 0


# -- where a framework is missing ---------------------------------------------------------------

SUFFIXES = {".onnx": "onnx", ".tflite": "tflite", ".pt2": "torch"}


@pytest.mark.parametrize(("suffix", "package"), SUFFIXES.items())
def test_a_model_needs_its_extra(
    suffix: str,
    package: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without the package the error names it and the extra, in Python and on the command line."""
    monkeypatch.setitem(sys.modules, package, None)
    path = tmp_path / f"model{suffix}"
    path.write_bytes(b"")
    message = f"needs the package {package}, which the extra '{package}' brings"
    with pytest.raises(SolverUnavailableError, match=message):
        dsa.load(path)
    assert main(["info", str(path)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("call", [lambda: fx.from_module(None, ()), lambda: eager.record(print)])
def test_modules_need_torch(call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the error names the extra."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SolverUnavailableError, match="the extra 'torch'"):
        call()


# -- ONNX ---------------------------------------------------------------------------------------


def onnx_file(
    batch: int | str = 2, nodes: list[Any] | None = None, y: tuple[int, Any] = (10, None)
) -> bytes:
    """A matrix product, a reshape and a sum, of ``batch`` rows; y is of float16 and any shape."""
    from onnx import TensorProto, helper

    if nodes is None:
        nodes = [
            helper.make_node("MatMul", ["x", "w"], ["a"]),
            helper.make_node("Reshape", ["a", "shape"], ["b"]),
            helper.make_node("Relu", ["b"], ["c"]),
            helper.make_node("Transpose", ["w"], ["folded"]),
            helper.make_node("Split", ["c"], ["left", "right"], axis=1, num_outputs=2),
            helper.make_node("Cast", ["left"], ["y"], to=TensorProto.FLOAT16),
        ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 4])],
        [helper.make_tensor_value_info("y", *y)],
        [
            helper.make_tensor("w", TensorProto.FLOAT, [4, 8], [0.5] * 32),
            helper.make_tensor("shape", TensorProto.INT64, [2], [-1, 8]),
        ],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ours", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    content: bytes = model.SerializeToString()
    return content


ONNX_ROWS = {
    "a": (0, 2, 64),
    "c": (1, 3, 64),
    "left": (2, 4, 32),
    "right": (2, 3, 32),
    "y": (3, 4, 16),
}


@needs("onnx")
def test_an_onnx_file_is_a_problem() -> None:
    """Ids are the names of the values; shapes are inferred, types have their sizes."""
    problem = onnx.read(BytesIO(onnx_file()))
    assert rows(problem) == ONNX_ROWS
    assert_valid(plan(problem, alignment=64))


@needs("onnx")
def test_the_command_line_reads_onnx(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`dsa plan` and `dsa info` take a model like any other file."""
    path = tmp_path / "small.onnx"
    path.write_bytes(onnx_file())
    assert main(["info", str(path)]) == 0
    assert "buffers       5, " in capsys.readouterr().out
    assert main(["plan", str(path), "-o", str(tmp_path / "plan.csv")]) == 0
    assert "5 buffers, peak 128 B, lower bound 128 B: optimal" in capsys.readouterr().out
    assert (tmp_path / "plan.csv").read_text("utf-8").startswith("id,lower,upper,size,offset\na,")


@needs("onnx")
def test_open_dimensions_are_given_by_name() -> None:
    """Without, the error names the value and its shape, and says how."""
    content = onnx_file(batch="rows")
    assert rows(onnx.read(BytesIO(content), {"rows": 2})) == ONNX_ROWS
    with pytest.raises(InvalidProblemError, match=r"value 'a' has the shape \['rows', 8\]; give"):
        onnx.read(BytesIO(content))


@needs("onnx")
def test_a_node_with_graphs_of_its_own_is_refused() -> None:
    """Their buffers cannot be told."""
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info("z", TensorProto.FLOAT, [1])
    branch = helper.make_graph([helper.make_node("Identity", ["x"], ["z"])], "b", [], [value])
    choice = helper.make_node("If", ["c"], ["y"], name="choice", then_branch=branch)
    with pytest.raises(InvalidProblemError, match=r"node 'choice' \(If\) holds graphs"):
        onnx.read(BytesIO(onnx_file(nodes=[choice])))


@needs("onnx")
def test_a_length_below_0_is_an_open_dimension() -> None:
    """Some exporters write -1 for it."""
    with pytest.raises(InvalidProblemError, match=r"value 'a' has the shape \['\?', 8\]; give"):
        onnx.read(BytesIO(onnx_file(batch=-1)))


@needs("onnx")
def test_an_unknown_type_is_refused() -> None:
    """One of a later version of ONNX, or of a broken file."""
    from onnx import helper

    node = helper.make_node("Later", ["x"], ["y"], domain="ours")
    with pytest.raises(InvalidProblemError, match="value 'y' is of type UNDEFINED"):
        onnx.read(BytesIO(onnx_file(nodes=[node], y=(99, [2]))))


@needs("onnx")
def test_an_alias_of_nothing_is_no_alias() -> None:
    """A node whose result nobody named only reads."""
    from onnx import helper

    nodes = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Identity", ["y"], [""])]
    assert rows(onnx.read(BytesIO(onnx_file(nodes=nodes, y=(1, [2, 4]))))) == {"y": (0, 2, 32)}


@needs("onnx")
@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x08\x07"])
def test_what_is_no_onnx_file_is_refused(content: bytes) -> None:
    """The error names the file."""
    with pytest.raises(FileFormatError, match="the file: no ONNX model"):
        onnx.read(BytesIO(content))


# -- TFLite -------------------------------------------------------------------------------------


def tflite_file(*, dynamic: bool = False, twice: bool = False, last: int | None = None) -> bytes:
    """Tensors x, w (constant), a, b, y: a = fc(x, w); b = reshape(a); y = relu(b)."""
    import flatbuffers
    import tflite as t

    builder = flatbuffers.Builder(1024)

    def vector(start: Any, items: list[int]) -> int:
        start(builder, len(items))
        for item in reversed(items):
            builder.PrependUOffsetTRelative(item)
        return int(builder.EndVector())

    def numbers(items: list[int]) -> int:
        builder.StartVector(4, len(items), 4)
        for item in reversed(items):
            builder.PrependInt32(item)
        return int(builder.EndVector())

    def tensor(name: str, shape: list[int], buffer: int, kind: int) -> int:
        text, dimensions = builder.CreateString(name), numbers(shape)
        t.TensorStart(builder)
        t.TensorAddName(builder, text)
        t.TensorAddShape(builder, dimensions)
        t.TensorAddBuffer(builder, buffer)
        t.TensorAddType(builder, kind)
        return int(t.TensorEnd(builder))

    def operator(code: int, reads: list[int], writes: list[int]) -> int:
        inputs, outputs = numbers(reads), numbers(writes)
        t.OperatorStart(builder)
        t.OperatorAddOpcodeIndex(builder, code)
        t.OperatorAddInputs(builder, inputs)
        t.OperatorAddOutputs(builder, outputs)
        return int(t.OperatorEnd(builder))

    def code(builtin: int) -> int:
        t.OperatorCodeStart(builder)
        t.OperatorCodeAddDeprecatedBuiltinCode(builder, min(builtin, 127))
        t.OperatorCodeAddBuiltinCode(builder, builtin)
        return int(t.OperatorCodeEnd(builder))

    def buffer(content: bytes) -> int:
        data = builder.CreateByteVector(content) if content else None
        t.BufferStart(builder)
        if data is not None:
            t.BufferAddData(builder, data)
        return int(t.BufferEnd(builder))

    tensors = [
        tensor("x", [-1 if dynamic else 1, 4], 0, t.TensorType.FLOAT32),
        tensor("w", [8, 4], 1, t.TensorType.INT8),
        tensor("a", [-1 if dynamic else 1, 8], 0, t.TensorType.FLOAT32),
        tensor("b", [2, 4], 0, t.TensorType.FLOAT32),
        tensor("a" if twice else "y", [2, 4], 0, t.TensorType.INT8),
    ]
    operators = [operator(0, [0, 1, -1], [2]), operator(1, [2], [3]), operator(2, [3], [4])]
    parts = [
        vector(t.SubGraphStartTensorsVector, tensors),
        vector(t.SubGraphStartOperatorsVector, operators),
        numbers([0]),
        numbers([4]),
    ]
    t.SubGraphStart(builder)
    t.SubGraphAddTensors(builder, parts[0])
    t.SubGraphAddOperators(builder, parts[1])
    t.SubGraphAddInputs(builder, parts[2])
    t.SubGraphAddOutputs(builder, parts[3])
    graph = t.SubGraphEnd(builder)
    kinds = (
        t.BuiltinOperator.FULLY_CONNECTED,
        t.BuiltinOperator.RESHAPE,
        t.BuiltinOperator.RELU if last is None else last,
    )
    graphs = vector(t.ModelStartSubgraphsVector, [graph])
    codes = vector(t.ModelStartOperatorCodesVector, [code(kind) for kind in kinds])
    buffers = vector(t.ModelStartBuffersVector, [buffer(b""), buffer(b"\1" * 32)])
    t.ModelStart(builder)
    t.ModelAddVersion(builder, 3)
    t.ModelAddSubgraphs(builder, graphs)
    t.ModelAddOperatorCodes(builder, codes)
    t.ModelAddBuffers(builder, buffers)
    builder.Finish(t.ModelEnd(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


@needs("tflite")
def test_a_tflite_file_is_a_problem() -> None:
    """Ids are the names of the tensors; inputs and constants are none, reshapes are aliases."""
    problem = tflite.read(BytesIO(tflite_file()))
    assert rows(problem) == {"a": (0, 2, 32), "y": (1, 2, 8)}


@needs("tflite")
@pytest.mark.parametrize("code", [32, 9999])
def test_an_operator_may_be_custom_or_newer(code: int) -> None:
    """Than the package tflite knows: it is read like any other."""
    assert rows(tflite.read(BytesIO(tflite_file(last=code)))) == {"a": (0, 2, 32), "y": (1, 2, 8)}


@needs("tflite")
def test_tensors_of_one_name_are_told_apart() -> None:
    """By their index."""
    assert tflite.read(BytesIO(tflite_file(twice=True))).ids == ("a#2", "a#4")


@needs("tflite")
def test_the_command_line_reads_tflite(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`dsa info` takes a model like any other file."""
    path = tmp_path / "small.tflite"
    path.write_bytes(tflite_file())
    assert main(["info", str(path)]) == 0
    assert "load          40 B at step 1" in capsys.readouterr().out


@needs("tflite")
def test_a_tensor_of_unknown_size_is_refused() -> None:
    """The error names it and its shape."""
    with pytest.raises(InvalidProblemError, match=r"tensor 'a' of shape \[-1, 8\]"):
        tflite.read(BytesIO(tflite_file(dynamic=True)))


@needs("tflite")
@pytest.mark.parametrize("content", [b"", b"nonsense", b"\xff\xff\xff\x7fTFL3"])
def test_what_is_no_tflite_file_is_refused(content: bytes) -> None:
    """The error names the file."""
    with pytest.raises(FileFormatError, match=r"the file: (no|broken) TFLite model"):
        tflite.read(BytesIO(content))


# -- PyTorch ------------------------------------------------------------------------------------

# PyTorch deprecates a class of its own among itself, as a FutureWarning.
quiet = pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")


def traced(function: Any, *shapes: tuple[int, ...]) -> dict[Any, tuple[int, int, int]]:
    """Rows of a function of tensors of these shapes."""
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    inputs = [torch.zeros(shape) for shape in shapes]
    return rows(fx.trace(make_fx(function)(*inputs), inputs).problem)


@needs("torch")
@quiet
def test_a_chain_overlaps_producer_and_consumer() -> None:
    """Ids are the names of the nodes."""
    assert traced(lambda x: (x + 1).exp().sum(), (8,)) == {
        "add": (0, 2, 32),
        "exp": (1, 3, 32),
        "sum_1": (2, 3, 4),
    }


@needs("torch")
@quiet
def test_a_view_keeps_its_base_and_takes_no_step() -> None:
    """Whatever is read through it."""

    def function(x: Any) -> Any:
        y = x + 1
        view = y.view(2, 4).t()
        z = x * 2
        return view.exp() + z.view(4, 2)

    assert traced(function, (8,))["add"] == (0, 3, 32)


@needs("torch")
@quiet
def test_a_change_in_place_is_a_use() -> None:
    """Of a buffer, or of an input, which is none."""
    assert list(traced(lambda x: (x + 1).relu_().mul_(2).sum(), (8,)).values()) == [
        (0, 4, 32),
        (3, 4, 4),
    ]
    assert list(traced(lambda x, y: x.add_(y).sum(), (8,), (8,)).values()) == [(1, 2, 4)]


@needs("torch")
@quiet
def test_several_results_are_numbered() -> None:
    """Those that nobody reads live for their own step."""
    found = traced(lambda x: x.topk(2).values.sum(), (8,))
    assert found == {"topk.0": (0, 2, 8), "topk.1": (0, 1, 16), "sum_1": (1, 2, 4)}


def small_module() -> tuple[Any, Any]:
    """A convolution, an activation, a linear layer; and an image."""
    import torch

    torch.manual_seed(7)
    layers = (
        torch.nn.Conv2d(3, 4, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 8 * 8, 10),
    )
    return torch.nn.Sequential(*layers).eval(), torch.randn(1, 3, 8, 8)


@needs("torch")
@quiet
def test_a_module_is_a_problem() -> None:
    """Weights and inputs are no buffers; flattening is an alias."""
    module, image = small_module()
    assert rows(fx.from_module(module, (image,))) == {
        "convolution": (0, 2, 1024),
        "relu": (1, 3, 1024),
        "addmm": (2, 3, 40),
    }


@needs("torch")
@quiet
def test_an_exported_program_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From a .pt2 file, in Python and on the command line."""
    import torch

    module, image = small_module()
    path = tmp_path / "small.pt2"
    torch.export.save(torch.export.export(module, (image,)), path)
    assert dsa.load(path) == fx.from_module(module, (image,))
    assert main(["plan", str(path)]) == 0
    assert "3 buffers, peak 2 KiB, lower bound 2 KiB: optimal" in capsys.readouterr().out


@needs("torch")
def test_what_is_no_exported_program_is_refused() -> None:
    """The error names the file."""
    with pytest.raises(FileFormatError, match="the file: no exported program"):
        fx.read(BytesIO(b"nonsense"))


@needs("torch")
@quiet
@pytest.mark.parametrize("part", ["model.json", "weights_config.json", "model.pt", "version"])
@pytest.mark.parametrize("instead", [b"", b"{}", b"null", None])
def test_a_broken_exported_program_is_refused(part: str, instead: bytes | None) -> None:
    """Whichever part of it is not what it should be, or not there, if that part is needed."""
    import torch

    module, image = small_module()
    whole, broken = BytesIO(), BytesIO()
    torch.export.save(torch.export.export(module, (image,)), whole)
    with zipfile.ZipFile(whole) as old, zipfile.ZipFile(broken, "w") as new:
        for name in old.namelist():
            if not name.endswith(part):
                new.writestr(name, old.read(name))
            elif instead is not None:
                new.writestr(name, instead)
    broken.seek(0)
    with suppress(FileFormatError):
        assert fx.read(broken) == fx.from_module(module, (image,))


@needs("torch")
@quiet
def test_the_graph_predicts_what_a_run_allocates() -> None:
    """Without workspaces of kernels, the load of the graph is that of a run, to the byte."""
    import torch

    from dsa.bench.modules import transformer
    from dsa.bench.planned import PlannedModule

    torch.set_num_threads(1)
    module, words = transformer(tokens=16, width=32, blocks=2)
    planned = PlannedModule(module, (words,))
    recorder = eager.record(planned.ordinary, words)
    recorded = recorder.problem(strict=True)
    assert recorded.load == planned.arena.plan.problem.load
    assert recorder.repairs.survivors == 1  # the result
    assert "addmm" in {id[0] for id in recorded.ids}  # type: ignore[index]


@needs("torch")
def test_a_run_that_allocates_nothing_is_no_record() -> None:
    """There is nothing to plan, and the error says so."""
    with pytest.raises(FileFormatError, match="no memory events"):
        eager.record(lambda: None)

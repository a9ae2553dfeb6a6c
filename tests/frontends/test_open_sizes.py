"""Programs that leave sizes open: imported for the shapes, and the integers, that they are called with."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import heron
from heron.cli.main import invoke
from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.frontends.stablehlo.importer import parse
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.types import F32
from heron.specializing import Specialized

X = np.arange(12, dtype=np.float32).reshape(3, 4)
ROWS = "%r = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>\n"
VECTOR = ROWS + "%v = stablehlo.reshape %r : (tensor<i32>) -> tensor<1xi32>\n"
PAIR = (
    VECTOR
    + """%four = stablehlo.constant dense<4> : tensor<1xi32>
  %d = stablehlo.concatenate %v, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
"""
)
CONSTANTS = """%zero = stablehlo.constant dense<0> : tensor<2xi32>
  %one = stablehlo.constant dense<1> : tensor<2xi32>
  %f = stablehlo.constant dense<2.0> : tensor<f32>
"""

#: operations on ``%x: tensor<?x4xf32>``, the type of the result, and the value for X
OPERATIONS = {
    "stablehlo.negate %x : tensor<?x4xf32>": ("?x4xf32", -X),
    "stablehlo.convert %x : (tensor<?x4xf32>) -> tensor<?x4xi32>": ("?x4xi32", X.astype(np.int32)),
    "stablehlo.bitcast_convert %x : (tensor<?x4xf32>) -> tensor<?x4x2xui16>": (
        "?x4x2xui16",
        X.view(np.uint16).reshape(3, 4, 2),
    ),
    "stablehlo.dynamic_broadcast_in_dim %f, %d, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x4xf32>": (
        "?x4xf32",
        np.full((3, 4), 2, np.float32),
    ),
    "stablehlo.dynamic_iota %v, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>": ("?xi32", np.arange(3, dtype=np.int32)),
    "stablehlo.dynamic_reshape %x, %d : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<?x?xf32>": ("?x?xf32", X),
    "stablehlo.dynamic_pad %x, %f, %d, %zero, %zero : (tensor<?x4xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, "
    "tensor<2xi32>) -> tensor<?x8xf32>": ("?x8xf32", np.pad(X, ((3, 0), (4, 0)), constant_values=2)),
    "stablehlo.real_dynamic_slice %x, %one, %d, %one : (tensor<?x4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) "
    "-> tensor<?x3xf32>": ("?x3xf32", X[1:, 1:]),
    '"stablehlo.dynamic_gather"(%x, %zero, %d) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], '
    "start_index_map = [0, 1]>}> : (tensor<?x4xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x4xf32>": ("?x4xf32", X),
    "stablehlo.dot_general %x, %x, contracting_dims = [1] x [1] : (tensor<?x4xf32>, tensor<?x4xf32>) -> "
    "tensor<?x?xf32>": ("?x?xf32", X @ X.T),
    "stablehlo.reduce(%x init: %f) applies stablehlo.add across dimensions = [1] : (tensor<?x4xf32>, tensor<f32>) -> "
    "tensor<?xf32>": ("?xf32", X.sum(1) + 2),
    "stablehlo.concatenate %x, %x, dim = 0 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>": (
        "?x4xf32",
        np.concatenate([X, X]),
    ),
    "chlo.broadcast_add %x, %f : (tensor<?x4xf32>, tensor<f32>) -> tensor<?x4xf32>": ("?x4xf32", X + 2),
    "stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %two) : (tensor<?x4xf32>, tensor<i32>) -> "
    "(tensor<?x2xf32>, tensor<?x2xi32>)": ("?x2xf32", X[:, :1:-1]),
}

#: operations of several devices, or drawn at random: the type of the result and its shape
SHAPES = {
    '"stablehlo.all_gather"(%x) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : '
    "(tensor<?x4xf32>) -> tensor<?x?xf32>": ("?x?xf32", (3, 8)),
    '"stablehlo.all_to_all"(%x) <{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, '
    "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<?x4xf32>) -> tensor<?x?xf32>": ("?x?xf32", (6, 2)),
    '"stablehlo.reduce_scatter"(%x) <{scatter_dimension = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}>'
    " ({^bb0(%p: tensor<f32>, %q: tensor<f32>):\n%s = stablehlo.add %p, %q : tensor<f32>\n"
    "stablehlo.return %s : tensor<f32>}) : (tensor<?x4xf32>) -> tensor<?x?xf32>": ("?x?xf32", (3, 2)),
    "stablehlo.rng %f, %f, %d, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi32>) -> tensor<?x4xf32>": (
        "?x4xf32",
        (3, 4),
    ),
    "stablehlo.custom_call @f(%x, %d) {indices_of_shape_operands = dense<[1]> : tensor<1xi64>} : "
    "(tensor<?x4xf32>, tensor<2xi32>) -> tensor<?x?xf32>": ("?x?xf32", (3, 4)),
}


@pytest.mark.parametrize("operation", SHAPES, ids=lambda text: re.split(r"[ (]", text.strip('"'))[0])
def test_an_operation_finds_the_shape(operation: str) -> None:
    kind, wanted = SHAPES[operation]
    text = f"""func.func @main(%x: tensor<?x4xf32>) -> tensor<{kind}> {{
  {PAIR}{CONSTANTS}  %o = {operation}
  return %o : tensor<{kind}>
}}"""
    module = parse(text, arguments=[shapes.row_major(F32, 3, 4)], verify=True)
    assert module.entry.root.shape.dims == wanted


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda text: re.split(r"[ (]", text.strip('"'))[0])
def test_an_operation_finds_the_sizes(operation: str) -> None:
    kind, wanted = OPERATIONS[operation]
    many = "top_k" in operation
    text = f"""func.func @main(%x: tensor<?x4xf32>) -> tensor<{kind}> {{
  {PAIR}{CONSTANTS}  %two = stablehlo.constant dense<2> : tensor<i32>
  %o{":2" if many else ""} = {operation}
  return %o{"#0" if many else ""} : tensor<{kind}>
}}"""
    module = parse(text, arguments=[shapes.row_major(F32, 3, 4)], verify=True)
    (found,) = evaluate(module, X)
    np.testing.assert_array_equal(found, wanted)


LOOP = f"""func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {{
  {VECTOR}%none = stablehlo.constant dense<0> : tensor<i32>
  %o:3 = stablehlo.while(%a = %none, %n = %r, %y = %x) : tensor<i32>, tensor<i32>, tensor<?x4xf32>
  cond {{
    %c = stablehlo.compare LT, %a, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %b = stablehlo.add %a, %one : tensor<i32>
    %s = func.call @ones(%n) : (tensor<i32>) -> tensor<?x4xf32>
    %z = stablehlo.add %y, %s : tensor<?x4xf32>
    stablehlo.return %b, %n, %z : tensor<i32>, tensor<i32>, tensor<?x4xf32>
  }}
  return %o#2 : tensor<?x4xf32>
}}
func.func private @ones(%n: tensor<i32>) -> tensor<?x4xf32> {{
  %v = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
  %four = stablehlo.constant dense<4> : tensor<1xi32>
  %d = stablehlo.concatenate %v, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
  %f = stablehlo.constant dense<1.0> : tensor<f32>
  %o = stablehlo.dynamic_broadcast_in_dim %f, %d, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x4xf32>
  return %o : tensor<?x4xf32>
}}"""


def test_loops_and_calls_know_the_sizes() -> None:
    (found,) = evaluate(parse(LOOP, arguments=[shapes.row_major(F32, 3, 4)], verify=True), X)
    np.testing.assert_array_equal(found, X + 3)


def test_a_call_with_effects_may_return_sizes() -> None:
    text = """func.func @main() -> tensor<?xi32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %t, %n = func.call @f(%c) : (tensor<i32>) -> (tensor<i32>, tensor<1xi64>)
  %o = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi64>) -> tensor<?xi32>
  return %o : tensor<?xi32>
}
func.func private @f(%x: tensor<i32>) -> (tensor<i32>, tensor<1xi64>) {
  stablehlo.custom_call @effect(%x) {has_side_effect = true} : (tensor<i32>) -> ()
  %n = stablehlo.constant dense<[4]> : tensor<1xi64>
  return %x, %n : tensor<i32>, tensor<1xi64>
}"""
    assert parse(text, verify=True).entry.root.shape.dims == (4,)


BY_VALUE = """func.func @main(%n: tensor<i64>, %k: tensor<2xui32>, %x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) {
  %d = stablehlo.reshape %n : (tensor<i64>) -> tensor<1xi64>
  %i = stablehlo.dynamic_iota %d, dim = 0 : (tensor<1xi64>) -> tensor<?xf32>
  %y = stablehlo.add %x, %x : tensor<?xf32>
  return %i, %y : tensor<?xf32>, tensor<?xf32>
}"""


def test_compiled_once_for_each_kind_of_arguments() -> None:
    program = heron.compile(BY_VALUE)
    assert isinstance(program, Specialized)
    found = set()
    for n, size, key in ((2, 3, 0), (2, 3, 1), (3, 3, 0), (2, 5, 0)):
        arrays = np.array(n), np.full(2, key, np.uint32), np.ones(size, np.float32)
        iota, twice = program(*arrays)
        np.testing.assert_array_equal(iota, np.arange(n, dtype=np.float32))
        np.testing.assert_array_equal(twice, np.full(size, 2, np.float32))
        found.add(program.executable(*arrays))
    assert len(found) == 3  # the key decides no size


def test_sizes_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "open.mlir").write_text(BY_VALUE)
    np.savez(tmp_path / "in.npz", np.array(2), np.zeros(2, np.uint32), np.ones(3, np.float32))
    assert invoke(["eval", str(tmp_path / "open.mlir"), "--inputs", str(tmp_path / "in.npz")]) == 0
    (tmp_path / "loop.mlir").write_text(LOOP)
    assert invoke(["eval", f"{tmp_path}/loop.mlir(f32[3,4])", "--random", "0"]) == 0
    assert "3x4" in capsys.readouterr().out


ASSERTION = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %r = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %c = stablehlo.compare GE, %r, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%c, %r) {error_message = "at least 2, not {0}"} : (tensor<i1>, tensor<i32>) -> ()
  return %x : tensor<?xf32>
}"""


@pytest.mark.parametrize(
    ("text", "arguments", "code", "says"),
    [
        (LOOP, [], "SHLO011", "dimension 0 of argument 0"),
        (LOOP, ["f32[3,5]"], "SHLO012", "f32[?,4]"),
        (LOOP, ["f32[3,4]", "f32[3,4]"], "SHLO012", "2 arguments"),
        (LOOP, ["s32[3,4]"], "SHLO012", "s32[3,4]"),
        (BY_VALUE, ["s64[]", "u32[2]", "f32[3]"], "SHLO011", "output_shape"),
        (BY_VALUE, [np.array(-1), "u32[2]", "f32[3]"], "SHLO004", "below zero"),
        (ASSERTION, ["f32[1]"], "SHLO013", "at least 2, not 1"),
        (LOOP, ["f32[3,4"], "JAX005", "is not a shape"),
        (LOOP, [object()], "JAX005", "cannot be an argument"),
    ],
)
def test_errors(text: str, arguments: list[object], code: str, says: str) -> None:
    with pytest.raises(HeronError) as caught:
        heron.load(text, arguments=arguments)
    assert caught.value.code == code
    assert says in str(caught.value)


def test_calls_that_never_end_are_refused() -> None:
    """Each function calls the next with one more element: importing must stop somewhere."""
    functions = [
        f"""func.func private @f{n}(%x: tensor<?xf32>) -> tensor<?xf32> {{
  %y = stablehlo.concatenate %x, %x, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  %z = func.call @f{n + 1}(%y) : (tensor<?xf32>) -> tensor<?xf32>
  return %z : tensor<?xf32>
}}"""
        for n in range(100)
    ]
    last = "func.func private @f100(%x: tensor<?xf32>) -> tensor<?xf32> {\n return %x : tensor<?xf32>\n}"
    main = functions[0].replace("private @f0", "@main").replace("@f1(", "@f0(")
    with pytest.raises(HeronError, match="SHLO007"):
        heron.load("\n".join([main, *functions, last]), arguments=["f32[1]"])


def test_a_dynamic_slice_of_known_size_may_begin_anywhere() -> None:
    text = f"""func.func @main(%x: tensor<?x4xf32>, %s: tensor<2xi32>) -> tensor<?x4xf32> {{
  {PAIR}%one = stablehlo.constant dense<1> : tensor<2xi32>
  %l = stablehlo.add %s, %d : tensor<2xi32>
  %o = "stablehlo.real_dynamic_slice"(%x, %s, %l, %one) :
    (tensor<?x4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x4xf32>
  return %o : tensor<?x4xf32>
}}"""
    module = heron.load(text, arguments=["f32[3,4]", "s32[2]"])
    (found,) = evaluate(module, X, np.zeros(2, np.int32))
    np.testing.assert_array_equal(found, X)

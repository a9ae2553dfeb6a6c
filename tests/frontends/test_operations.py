"""Each operation becomes the HLO it should; custom and generic forms alike."""

from __future__ import annotations

import re

import numpy as np
import pytest

from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.frontends.stablehlo.importer import parse
from heron.hlo import text as hlo_text

#: operands any snippet may use
ARGUMENTS = """%a: tensor<4x6xf32>, %b: tensor<4x6xf32>, %s: tensor<f32>, %i: tensor<i32>, %p: tensor<i1>,
  %n: tensor<4x6xi32>, %q: tensor<4x4xf32>, %u: tensor<2xui64>, %v: tensor<6xf32>, %t: !stablehlo.token"""

ADD = """({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32>
  })"""

CASES = {
    "stablehlo.add %a, %b : tensor<4x6xf32>": "f32[4,6]{1,0} add(a, b)",
    '"stablehlo.add"(%a, %b) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>': "f32[4,6]{1,0} add(a, b)",
    "stablehlo.exponential %a {result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-05, ulps = 1, "
    "mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4x6xf32>": "f32[4,6]{1,0} exponential(a), "
    "result_accuracy={tolerance={atol=1e-05,rtol=0,ulps=1}}",
    "stablehlo.compare LT, %a, %b, FLOAT : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>": (
        "pred[4,6]{1,0} compare(a, b), direction=LT"
    ),
    "stablehlo.compare  LT, %a, %b,  TOTALORDER : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>": (
        "pred[4,6]{1,0} compare(a, b), direction=LT, type=TOTALORDER"
    ),
    "stablehlo.select %p, %a, %b : tensor<i1>, tensor<4x6xf32>": "f32[4,6]{1,0} select(broadcast, a, b)",
    "stablehlo.clamp %s, %a, %s : (tensor<f32>, tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>": (
        "f32[4,6]{1,0} clamp(broadcast, a, broadcast)"
    ),
    "stablehlo.iota dim = 1 : tensor<4x6xi32>": "s32[4,6]{1,0} iota(), iota_dimension=1",
    "stablehlo.convert %n : (tensor<4x6xi32>) -> tensor<4x6xf8E4M3B11FNUZ>": "f8e4m3b11fnuz[4,6]{1,0} convert(n)",
    "stablehlo.bitcast_convert %n : (tensor<4x6xi32>) -> tensor<4x6xf32>": "f32[4,6]{1,0} bitcast-convert(n)",
    "stablehlo.reduce_precision %a, format = e5m10 : tensor<4x6xf32>": (
        "f32[4,6]{1,0} reduce-precision(a), exponent_bits=5, mantissa_bits=10"
    ),
    "stablehlo.complex %a, %b : tensor<4x6xcomplex<f32>>": "c64[4,6]{1,0} complex(a, b)",
    "stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<6xf32>) -> tensor<4x6xf32>": (
        "f32[4,6]{1,0} broadcast(v), dimensions={1}"
    ),
    "stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<6xf32>) -> tensor<1x6xf32>": "f32[1,6]{1,0} reshape(v)",
    "stablehlo.broadcast %v, sizes = [4] : (tensor<6xf32>) -> tensor<4x6xf32>": (
        "f32[4,6]{1,0} broadcast(v), dimensions={1}"
    ),
    "stablehlo.reshape %a : (tensor<4x6xf32>) -> tensor<24xf32>": "f32[24]{0} reshape(a)",
    "stablehlo.transpose %a, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>": (
        "f32[6,4]{1,0} transpose(a), dimensions={1,0}"
    ),
    "stablehlo.reverse %a, dims = [0] : tensor<4x6xf32>": "f32[4,6]{1,0} reverse(a), dimensions={0}",
    "stablehlo.concatenate %a, %b, dim = 0 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>": (
        "f32[8,6]{1,0} concatenate(a, b), dimensions={0}"
    ),
    "stablehlo.slice %a [1:3, 0:6:2] : (tensor<4x6xf32>) -> tensor<2x3xf32>": (
        "f32[2,3]{1,0} slice(a), slice={[1:3:1], [0:6:2]}"
    ),
    "stablehlo.pad %a, %s, low = [1, 0], high = [0, -1], interior = [0, 1] : "
    "(tensor<4x6xf32>, tensor<f32>) -> tensor<5x10xf32>": "f32[5,10]{1,0} pad(a, s), padding=1_0_0x0_-1_1",
    "stablehlo.dynamic_slice %a, %i, %i, sizes = [2, 2] : "
    "(tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>": (
        "f32[2,2]{1,0} dynamic-slice(a, i, i), dynamic_slice_sizes={2,2}"
    ),
    "stablehlo.dynamic_slice %s, , sizes = [] : (tensor<f32>) -> tensor<f32>": (
        "f32[] dynamic-slice(s), dynamic_slice_sizes={}"
    ),
    "stablehlo.optimization_barrier %a : tensor<4x6xf32>": "f32[4,6]{1,0} opt-barrier(a)",
    "stablehlo.dot_general %a, %b, contracting_dims = [1] x [1], precision = [DEFAULT, HIGHEST] : "
    "(tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x4xf32>": "f32[4,4]{1,0} dot(a, b), lhs_contracting_dims={1}, "
    "rhs_contracting_dims={1}, operand_precision={default,highest}",
    "stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [1] x [1], algorithm = "
    "<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, "
    "rhs_component_count = 1, num_primitive_operations = 3, allow_imprecise_accumulation = false> : "
    "(tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4xf32>": "f32[4]{0} dot(a, b), lhs_batch_dims={0}, "
    "lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={1}, algorithm=dot_tf32_tf32_f32_x3",
    '"stablehlo.dot_general"(%a, %b) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], '
    "rhs_contracting_dimensions = [1]>}> : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x4xf32>": (
        "f32[4,4]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}"
    ),
    "stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [1] : "
    "(tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>": "f32[4]{0} reduce(a, s), dimensions={1}, to_apply=add_f32",
    f'"stablehlo.reduce"(%a, %s) <{{dimensions = array<i64: 1>}}> {ADD} : '
    "(tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>": "f32[4]{0} reduce(a, s), dimensions={1}, to_apply=add_f32",
    f'"stablehlo.reduce_window"(%a, %s) <{{padding = dense<[[1, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = '
    f"array<i64: 2, 3>, window_strides = array<i64: 1, 3>}}> {ADD} : "
    "(tensor<4x6xf32>, tensor<f32>) -> tensor<4x2xf32>": (
        "f32[4,2]{1,0} reduce-window(a, s), window={size=2x3 stride=1x3 pad=1_0x0_0}, to_apply=add_f32"
    ),
    f'"stablehlo.map"(%a, %b) <{{dimensions = array<i64: 0, 1>}}> {ADD} : '
    "(tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>": (
        "f32[4,6]{1,0} map(a, b), dimensions={0,1}, to_apply=mapped"
    ),
    "stablehlo.cholesky %q, lower = true : tensor<4x4xf32>": "f32[4,4]{1,0} cholesky(q), lower=true",
    '"stablehlo.triangular_solve"(%q, %a) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose '
    "ADJOINT>, unit_diagonal = false}> : (tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>": (
        "f32[4,6]{1,0} triangular-solve(q, a), left_side=true, lower=true, transpose_a=ADJOINT"
    ),
    "stablehlo.fft %a, type = RFFT, length = [6] : (tensor<4x6xf32>) -> tensor<4x4xcomplex<f32>>": (
        "c64[4,4]{1,0} fft(a), fft_type=RFFT, fft_length={6}"
    ),
    "stablehlo.get_dimension_size %a, dim = 1 : (tensor<4x6xf32>) -> tensor<i32>": "s32[] constant(6)",
    "stablehlo.partition_id : tensor<ui32>": "u32[] partition-id()",
    f'"stablehlo.all_reduce"(%a) <{{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = '
    f"dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}}> {ADD} : (tensor<4x6xf32>) -> tensor<4x6xf32>": (
        "f32[4,6]{1,0} all-reduce(a), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, "
        "to_apply=add_f32"
    ),
    '"stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : '
    "(tensor<4x6xf32>) -> tensor<8x6xf32>": "f32[8,6]{1,0} all-gather(a), replica_groups={{0,1}}, dimensions={0}",
    '"stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : '
    "(tensor<4x6xf32>) -> tensor<4x6xf32>": "f32[4,6]{1,0} collective-permute(a), source_target_pairs={{0,1},{1,0}}",
    "stablehlo.custom_call @foo(%a) {api_version = 4 : i32, backend_config = {a = 1 : i64}, has_side_effect = true} : "
    "(tensor<4x6xf32>) -> tensor<4x6xf32>": 'f32[4,6]{1,0} custom-call(a), custom_call_target="foo", '
    "custom_call_has_side_effect=true, api_version=API_VERSION_TYPED_FFI, backend_config={a = 1 : i64}",
    'stablehlo.custom_call @foo(%a) {backend_config = "text", operand_layouts = [dense<[0, 1]> : tensor<2xindex>], '
    "result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<4x6xf32>) -> tensor<4x6xf32>": (
        'f32[4,6]{0,1} custom-call(a), custom_call_target="foo", operand_layout_constraints={f32[4,6]{0,1}}, '
        'backend_config="text"'
    ),
    "chlo.erf %a : tensor<4x6xf32> -> tensor<4x6xf32>": "f32[4,6]{1,0} erf(a)",
    "chlo.square %a : tensor<4x6xf32> -> tensor<4x6xf32>": "f32[4,6]{1,0} multiply(a, a)",
    "chlo.broadcast_add %a, %v : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>": (
        "f32[4,6]{1,0} add(a, broadcast)"
    ),
    "stablehlo.dynamic_reshape %a, %u : (tensor<4x6xf32>, tensor<2xui64>) -> tensor<6x4xf32>": (
        "f32[6,4]{1,0} reshape(a)"
    ),
}


def imported(line: str) -> str:
    """The root of a function that returns what `line` gives."""
    kind = re.findall(r"tensor<(?:[^<>]|<[^<>]*>)*>", line)[-1]
    source = f"func.func @main({ARGUMENTS}) -> {kind} {{\n  %r = {line}\n  return %r : {kind}\n}}"
    module = parse(source, verify=True)
    assert hlo_text.parse(str(module), verify=True)
    return str(module.entry.root)


@pytest.mark.parametrize("line", CASES)
def test_operation(line: str) -> None:
    shown = imported(line).replace("%", "")
    assert shown.partition(" = ")[2] == CASES[line]


WHILE = """
func.func @main(%a: tensor<4xf32>, %limit: tensor<i32>) -> tensor<4xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%n = %zero, %x = %a) : tensor<i32>, tensor<4xf32>
  cond {
    %c = stablehlo.compare LT, %n, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %m = stablehlo.add %n, %one : tensor<i32>
    %y = stablehlo.add %x, %a : tensor<4xf32>
    stablehlo.return %m, %y : tensor<i32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}
"""


def test_loops_carry_what_they_use_from_outside_and_repeat_constants() -> None:
    module = parse(WHILE, verify=True)
    (loop,) = (i for i in module.instructions() if i.opcode == "while")
    assert str(loop.shape.bare) == "(s32[], f32[4], s32[], f32[4])"  # and not the constant one
    assert "constant" in [i.opcode for i in loop.body.instructions]
    (result,) = evaluate(module, np.ones(4, np.float32), np.array(3, np.int32))
    assert result.tolist() == [4.0] * 4


def test_branches_are_passed_what_they_use() -> None:
    source = """
    func.func @main(%p: tensor<i1>, %a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
      %r = "stablehlo.if"(%p) ({
        %s = stablehlo.add %a, %b : tensor<4xf32>
        stablehlo.return %s : tensor<4xf32>
      }, {
        stablehlo.return %b : tensor<4xf32>
      }) : (tensor<i1>) -> tensor<4xf32>
      return %r : tensor<4xf32>
    }"""
    root = parse(source, verify=True).entry.root
    assert [str(o.shape.bare) for o in root.operands] == ["pred[]", "(f32[4], f32[4])", "f32[4]"]


def test_functions_are_computations_and_composites_calls_of_their_decomposition() -> None:
    source = """
    module @m {
      func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
        %0 = stablehlo.composite "my.op" %a
          {composite_attributes = {n = 1 : i64}, decomposition = @f, version = 2 : i32}
          : (tensor<4xf32>) -> tensor<4xf32>
        %1 = call @f(%0) : (tensor<4xf32>) -> tensor<4xf32>
        return %1 : tensor<4xf32>
      }
      func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> {
        %0 = stablehlo.negate %a : tensor<4xf32>
        return %0 : tensor<4xf32>
      }
      func.func private @unused(%a: tensor<4xf32>) -> tensor<4xf32> {
        return %a : tensor<4xf32>
      }
    }"""
    module = parse(source, verify=True)
    assert [c.name for c in module.computations] == ["f", "main"]
    composite, call = (i for i in module.entry.instructions if i.opcode == "call")
    assert composite.to_apply is call.to_apply and composite.is_composite and not call.is_composite
    assert composite.extras["frontend_attributes"]["composite.name"] == "my.op"


def test_header() -> None:
    source = """
    module @m attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
      sdy.mesh @mesh = <["x"=2]>
      func.func @main(%a: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %b: tensor<4xf32> {jax.buffer_donor = true},
          %c: tensor<4xf32> {mhlo.sharding = "{devices=[2]0,1}", sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
          -> (tensor<4xf32> {jax.result_info = "a", mhlo.sharding = "{replicated}"}, tensor<4xf32>) {
        return %b, %a : tensor<4xf32>, tensor<4xf32>
      }
    }"""
    module = parse(source, verify=True)
    assert module.header["input_output_alias"] == (((1,), 0, (), "may-alias"),)
    assert module.header["buffer_donor"] == ((1, ()),)
    assert module.header["num_partitions"] == 2 and "replica_count" not in module.header
    assert "xla.sdy.meshes" in module.header["frontend_attributes"]
    sharded = module.entry.parameters[2].extras
    assert sharded["sharding"] == "{devices=[2]0,1}" and "xla.sdy.sharding" in sharded["frontend_attributes"]
    assert module.entry.root.extras["sharding"] == "{{replicated}, {unknown}}"
    assert hlo_text.parse(str(module), verify=True)


def test_bounded_dimensions() -> None:
    kind = "tensor<?x4xf32, #stablehlo.bounds<8, ?>>"
    source = f"func.func @main(%a: {kind}) -> {kind} {{\n %0 = stablehlo.add %a, %a : {kind}\n return %0 : {kind}\n}}"
    assert str(parse(source, verify=True).entry.root.shape.bare) == "f32[<=8,4]"


@pytest.mark.parametrize("results", ["tensor<2xi32>", "(tensor<2xi32>)", '(tensor<2xi32> {jax.result_info = "x"})'])
def test_functions_without_arguments(results: str) -> None:
    source = f"""func.func @main() -> {results} {{
      %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
      return %0 : tensor<2xi32>
    }}"""
    (value,) = evaluate(parse(source, verify=True))
    assert value.tolist() == [1, 2]


_RAGGED = """
func.func @main(%x: tensor<6x2xf32>, %y: tensor<5x2xf32>, %a: tensor<2xi32>) -> tensor<5x2xf32> {
  %r = stablehlo.custom_call @ragged_all_to_all(%x, %y, %a, %a, %a, %a) {api_version = 4 : i32, backend_config = CONFIG} :
    (tensor<6x2xf32>, tensor<5x2xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<5x2xf32>
  return %r : tensor<5x2xf32>
}"""


def test_exchange_of_pieces_of_differing_length() -> None:
    config = "{channel_id = 1 : i64, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>}"
    root = parse(_RAGGED.replace("CONFIG", config)).entry.root
    assert (root.opcode, root.replica_groups, root.channel_id) == ("ragged-all-to-all", "{{0,2},{1,3}}", 1)


@pytest.mark.parametrize("name", ['"a b"', '"é"', '"x=y"', "a.b", '"1"'])
def test_attributes_of_any_name_print_and_read(name: str) -> None:
    kind = f'tensor<4xf32> {{mhlo.frontend_attributes = {{{name} = "v"}}}}'
    module = parse(f"func.func @main(%a: {kind}) -> tensor<4xf32> {{\n return %a : tensor<4xf32>\n}}")
    read = hlo_text.parse(hlo_text.print_module(module)).entry.root
    assert read.extras["frontend_attributes"] == {name.strip('"'): "v"}


@pytest.mark.parametrize(
    "config",
    [
        "{}",
        "{replica_groups = 1 : i64}",
        '"text"',
        "{channel_id = [1], replica_groups = dense<[[0]]> : tensor<1x1xi64>}",
    ],
)
def test_exchange_without_groups(config: str) -> None:
    with pytest.raises(HeronError, match="a table of integers replica_groups") as found:
        parse(_RAGGED.replace("CONFIG", config))
    assert found.value.code == "SHLO006"


def test_clamp_of_predicates_and_complex_numbers() -> None:
    """HLO's clamp takes neither: the smaller of the larger; of complex numbers by their real parts, as XLA has it."""
    module = parse("""
func.func @main(%p: tensor<2xi1>, %no: tensor<i1>, %z: tensor<3xcomplex<f32>>, %a: tensor<complex<f32>>,
                %b: tensor<complex<f32>>) -> (tensor<2xi1>, tensor<3xcomplex<f32>>) {
  %0 = stablehlo.clamp %no, %p, %no : (tensor<i1>, tensor<2xi1>, tensor<i1>) -> tensor<2xi1>
  %1 = stablehlo.clamp %a, %z, %b : (tensor<complex<f32>>, tensor<3xcomplex<f32>>, tensor<complex<f32>>) -> tensor<3xcomplex<f32>>
  return %0, %1 : tensor<2xi1>, tensor<3xcomplex<f32>>
}""")
    z = np.array([-2 + 3j, 0.5 + 9j, 3 - 3j], np.complex64)
    low, high = np.array(-1j, np.complex64), np.array(1 + 1j, np.complex64)
    flags, numbers = evaluate(module, np.array([True, False]), np.array(False), z, low, high)
    np.testing.assert_array_equal(flags, [False, False])
    np.testing.assert_array_equal(numbers, np.array([-1j, 0.5 + 9j, 1 + 1j], np.complex64))


def test_a_scatter_into_a_scalar_has_empty_dimension_numbers() -> None:
    source = f"""
    func.func @main(%x: tensor<f32>, %at: tensor<3x0xi32>, %updates: tensor<3xf32>) -> (tensor<f32>, tensor<3xf32>) {{
      %0 = "stablehlo.scatter"(%x, %at, %updates) <{{scatter_dimension_numbers = #stablehlo.scatter<index_vector_dim = 1>}}>
        {ADD} : (tensor<f32>, tensor<3x0xi32>, tensor<3xf32>) -> tensor<f32>
      %one = stablehlo.constant dense<0> : tensor<0xi32>
      %1 = "stablehlo.scatter"(%0, %one, %0) <{{scatter_dimension_numbers = #stablehlo.scatter<>}}>
        {ADD} : (tensor<f32>, tensor<0xi32>, tensor<f32>) -> tensor<f32>
      %2 = "stablehlo.gather"(%1, %at) <{{dimension_numbers = #stablehlo.gather<index_vector_dim = 1>, slice_sizes = array<i64>}}>
        : (tensor<f32>, tensor<3x0xi32>) -> tensor<3xf32>
      return %1, %2 : tensor<f32>, tensor<3xf32>
    }}"""
    at, updates = np.zeros((3, 0), np.int32), np.arange(3, dtype=np.float32)
    total, copies = evaluate(parse(source, verify=True), np.float32(2), at, updates)
    assert total == 10 and copies.tolist() == [10] * 3

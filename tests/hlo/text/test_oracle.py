"""XLA's own parser and printer (jaxlib) as the oracle, feature by feature: we print what it prints, it reads our text."""

from __future__ import annotations

import numpy as np
import pytest

from heron.hlo import types
from heron.hlo.compare import difference
from heron.hlo.text import PrintOptions, parse, print_module
from heron.hlo.text.floats import format_all

xla = pytest.importorskip("jaxlib._hlo")

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"


def by_xla(text: str) -> str:
    options = xla.HloPrintOptions()
    options.print_large_constants = True
    return xla.hlo_module_from_text(text).to_string(options)


def agree(text: str) -> None:
    ours = print_module(parse(text))
    assert ours == by_xla(text)
    assert by_xla(ours) == ours
    assert difference(parse(ours), parse(text)) is None


LINES = {
    "scalars": "c = f32[] constant(0.1)\n d = f64[] constant(0.1)\n e = bf16[] constant(0.1)\n f = f16[] constant(0.1)",
    "round-trip": "c = f32[5] constant({0.1, 16777216, 123456789, 1e-45, 1234567.8})",
    "double": "c = f64[4] constant({1.5, 3.141592653589793, 1e300, 5e-324})",
    "special": "c = f32[6] constant({inf, -inf, nan, -nan, nan(0x7fc01), -nan(0x1)})",
    "special-f64": "c = f64[3] constant({nan, -nan, nan(0x123456789)})",
    "bools": "c = pred[3] constant({true, false, 1})\n d = pred[] constant(true)\n e = pred[1,2] constant({{1, 0}})",
    "integers": "c = s4[3] constant({1,-8,7})\n d = u64[1] constant({18446744073709551615})\n e = s64[] constant(-9)",
    "complex": "c = c64[2] constant({(1,2), (3.5,nan)})\n d = c128[] constant((1,-2))",
    "nested": "c = f32[2,2] constant({{1,2},{3,4}})\n d = f32[1,2,2] constant({{{1,2},{3,4}}})",
    "deep": "c = s32[2,2,1,2,1] constant({{{{{1},{1}}},{{{1},{1}}}},{{{{1},{1}}},{{{1},{1}}}}})",
    "empty": "c = f32[0] constant({})\n d = f32[2,0] constant({{},{}})\n e = f32[0,2] constant({})\n f = f32[2,0,2] constant({{},{}})",
    "empty-deep": "c = f32[2,0,1,2] constant({{},{}})",
    "tuples": "c = ((f32[], pred[]), c64[2]) constant(((1, true), {(1,2), (3,4)}))",
    "large": f"c = s8[12] constant({{{','.join(map(str, range(12)))}}})",
    "order": "x = f32[2] parameter(1)\n y = f32[2] parameter(0)\n z = f32[2] add(x, y)\n w = f32[2] add(y, x)",
    "control": "x = f32[] parameter(0)\n y = f32[] negate(x)\n z = f32[] abs(x), control-predecessors={y, x}",
    "sharding": "x = f32[4] parameter(0), sharding={devices=[2,2]<=[4] last_tile_dim_replicate}, parameter_replication={true}",
    "frontend": 'x = f32[] parameter(0), frontend_attributes={b="x",a={"k":1},c="{}"}',
    "metadata": "x = f32[] parameter(0), metadata={op_type=\"t\" op_name=\"jit(f)/a\\\"b'c\" source_file=\"f.py\" "
    "source_line=3 source_end_line=4 source_column=5 source_end_column=7 deduplicated_name=\"q\" scheduling_name=\"s\"}",
    "config-text": 'x = f32[4] parameter(0)\n y = f32[4] exponential(x), backend_config="a\\"b\\n\\001é"',
    "config-braces": 'x = f32[4] parameter(0)\n y = f32[4] exponential(x), backend_config="{\\"a\\":[1]}"',
    "accuracy": "x = f32[4] parameter(0)\n y = f32[4] exponential(x), result_accuracy={mode=highest}, backend_config={}",
    "origin": 'x = f32[4] parameter(0), origin={{"x.1"}}',
    "slice": "x = f32[9,9] parameter(0)\n y = f32[4,3] slice(x), slice={[0:4], [1:9:3]}\n z = f32[2,2] slice(x), slice={[0:2], [0:2]}",
    "pad": "x = f32[2,2] parameter(0)\n c = f32[] constant(0)\n y = f32[5,1] pad(x, c), padding=1_2x0_-1\n z = f32[3,2] pad(x, c), padding=0_0_1x0_0",
    "window": "x = f32[9,9] parameter(0)\n c = f32[] constant(0)\n"
    " y = f32[5,7] reduce-window(x, c), window={size=2x3 stride=2x1 pad=0_1x0_0}, to_apply=add\n"
    " z = f32[16,9] reduce-window(x, c), window={size=2x1 lhs_dilate=2x1 rhs_reversal=1x0}, to_apply=add",
    "convolution": "x = f32[1,8,8,4] parameter(0)\n w = f32[3,3,4,4] parameter(1)\n"
    " y = f32[1,4,4,4] convolution(x, w), window={size=3x3 rhs_dilate=2x2}, dim_labels=b01f_01io->b01f",
    "dynamic": "x = f32[<=4,2] parameter(0)\n y = f32[<=4,2] negate(x)",
    "layouts": "x = f32[2,3]{1,0:T(8,128)(2,1)S(1)} parameter(0)\n y = f32[2,3]{0,1:T(8,128)E(4)S(1)} parameter(1)",
    "tokens": "t = token[] after-all()\n p = (f32[2,3], token[], (s32[], u8[])) parameter(0)",
    "many-operands": "x = f32[] parameter(0)\n y = (f32[], f32[], f32[], f32[], f32[], f32[], f32[]) tuple(x, x, x, x, x, x, x)",
    "inline": "x = f32[4] parameter(0)\n c = f32[] constant(0)\n y = f32[] reduce(x, c), dimensions={0}, "
    "to_apply={ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT m = f32[] maximum(a, b) }",
    "conditional": "p = pred[] parameter(0)\n q = s32[] parameter(1)\n x = f32[] constant(1)\n"
    " y = f32[] conditional(p, x, x), true_computation={ x = f32[] parameter(0) }, false_computation={ x = f32[] parameter(0) }\n"
    " z = f32[] conditional(q, x, x), branch_computations={{ x = f32[] parameter(0) }, { x = f32[] parameter(0) }}",
    "custom-call": 'x = f32[4] parameter(0)\n y = (f32[4], f32[4]) custom-call(x), custom_call_target="f", '
    "output_to_operand_aliasing={{0}: (0, {})}, operand_layout_constraints={f32[4]{0}}, custom_call_has_side_effect=true, "
    "api_version=API_VERSION_TYPED_FFI, called_computations={add}",
    "collective": "x = f32[4] parameter(0)\n y = f32[4] all-reduce(x), channel_id=1, replica_groups={{0,1},{2,3}}, "
    "use_global_device_ids=true, to_apply=add\n z = f32[4] collective-permute(x), source_target_pairs={{0,1},{1,0}}",
    "typed-operands": "x = f32[4]{0} parameter(0)\n y = f32[4]{0} add(f32[4]{0} %x, f32[4]{0} x)",
}


@pytest.mark.parametrize("name", LINES)
def test_instructions(name: str) -> None:
    agree(f"HloModule m\n{ADD}ENTRY e {{\n {LINES[name]}\n}}\n")


HEADERS = {
    "aliases": "input_output_alias={ {}: (0, {}, may-alias) }, buffer_donor={ (1, {}) }",
    "replicas": "replica_count=2, num_partitions=4",
    "frontend": 'frontend_attributes={b="x",a={"k":1}}',
    "spmd": "allow_spmd_sharding_propagation_to_parameters={false,false}, allow_spmd_sharding_propagation_to_output={true}",
    "scheduled": "is_scheduled=true",
    "layout": "entry_computation_layout={(f32[2,3]{0,1}, f32[2,3])->f32[2,3]{0,1}}",
    "passthrough": "alias_passthrough_params=true",
}


@pytest.mark.parametrize("name", HEADERS)
def test_header(name: str) -> None:
    layout = "{0,1}" if name == "layout" else ""
    agree(
        f"HloModule m, {HEADERS[name]}\nENTRY e {{\n x = f32[2,3]{layout} parameter(0)\n y = f32[2,3] parameter(1)\n"
        f" w = f32[2,3]{layout} negate(x)\n ROOT z = f32[2,3]{layout} abs(x)\n}}"
    )


def test_names_are_made_unique_alike() -> None:
    reducers = [ADD.replace("add {", f"{name} {{") for name in ("f", "g", "h")]
    calls = "\n".join(f" r{n} = f32[] reduce(a, c), dimensions={{0}}, to_apply={n}" for n in "fgh")
    agree(
        f"HloModule m\n{''.join(reducers)}ENTRY e {{\n a = f32[4] parameter(0)\n c = f32[] constant(0)\n"
        f" a.1 = f32[4] negate(a)\n c.7 = f32[] constant(1)\n{calls}\n}}"
    )


def test_execution_thread() -> None:
    agree('HloModule m\nENTRY e {\n x = f32[] parameter(0)\n}, execution_thread="other"')


SMALL_FLOATS = ["f8e5m2", "f8e4m3", "f8e4m3fn", "f8e3m4", "f8e5m2fnuz", "f8e4m3fnuz", "f8e4m3b11fnuz", "f16", "bf16"]


@pytest.mark.parametrize("name", SMALL_FLOATS)
def test_every_value_of_a_float_type(name: str) -> None:
    """Negative zero aside, which XLA's parser takes for an integer 0."""
    element_type = types.by_name(name)
    bits = np.arange(2**element_type.bits).astype(f"u{element_type.bits // 8}")
    words = format_all(element_type, bits.view(element_type.dtype))
    text = f"HloModule m\nENTRY e {{\n ROOT c = {name}[{len(words)}] constant({{{', '.join(words)}}})\n}}"
    assert by_xla(text) == print_module(parse(text)).replace("-0,", "0,")
    array = parse(text).entry.root.literal.array
    same = array.view(bits.dtype) == bits
    assert (same | np.isnan(array.astype(np.float32))).all()


def test_large_constants_are_elided_alike() -> None:
    words = ",".join(map(str, range(11)))
    text = f"HloModule m\nENTRY e {{\n c = s32[11] constant({{{words}}})\n ROOT t = (f32[]) constant((1))\n}}"
    ours = print_module(parse(text), PrintOptions(elide_large_constants=True))
    assert ours == xla.hlo_module_from_text(text).to_string()

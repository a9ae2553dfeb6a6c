"""Declarations against XLA: all opcodes, their attribute names, and the order attributes print in."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from heron.hlo.ir import op as ops
from heron.hlo.ir.attributes import fits
from heron.hlo.ir.op import AttrKind, Op, Trait
from heron.hlo.text import parse

OPCODES = """abs acos acosh add add-dependency after-all all-gather all-gather-done all-gather-start all-reduce
all-reduce-done all-reduce-start all-to-all and asin asinh async-done async-start async-update atan atan2 atanh
batch-norm-grad batch-norm-inference batch-norm-training bitcast bitcast-convert broadcast call cbrt ceil cholesky clamp
collective-broadcast collective-permute collective-permute-done collective-permute-start compare complex concatenate
conditional constant convert convolution copy copy-done copy-start cosh cosine count-leading-zeros custom-call divide
domain dot dynamic-reshape dynamic-slice dynamic-update-slice erf exponential exponential-minus-one fft floor fusion
gather get-dimension-size get-tuple-element imag infeed iota is-finite log log-plus-one logistic map maximum minimum
mulhi multiply negate not opt-barrier or outfeed pad parameter partition-id popcnt power ragged-all-to-all ragged-dot
real recv recv-done reduce reduce-precision reduce-scatter reduce-window remainder replica-id reshape reverse rng
rng-bit-generator rng-get-and-update-state round-nearest-afz round-nearest-even rsqrt scaled-dot scan scatter select
select-and-scatter send send-done set-dimension-size shift-left shift-right-arithmetic shift-right-logical sign sine
sinh slice sort sqrt stochastic-convert subtract tan tanh topk transpose triangular-solve tuple while xor""".split()

#: what any instruction may carry
COMMON = {
    "backend_config",
    "control-predecessors",
    "frontend_attributes",
    "metadata",
    "origin",
    "parameter_replication",
    "sharding",
    "statistics",
}
#: XLA reads these, then forgets them, or writes them for hardware of its own
XLA_ONLY = {
    "all-reduce": {"mode"},
    "all-reduce-start": {"mode"},
    "reduce-scatter": {"mode"},
    "ragged-all-to-all": {"dimensions"},
    "convolution": {"sparsity_config"},
    "custom-call": {"to_apply"},
}
#: ops that the installed XLA does not know yet
NEWER = {"atan"}
#: XLA's parser looks at the operands of the others before their attributes
UNASKED = NEWER | {"async-done", "async-start", "async-update", "conditional", "constant", "parameter", "tuple"}

_ASK = """
import json, re, sys
from jaxlib import _hlo
for name, count in json.load(sys.stdin):
    lines = "".join(f" p{k} = f32[2] parameter({k})\\n" for k in range(count))
    operands = ", ".join(f"p{k}" for k in range(count))
    try:
        body = f"{lines} ROOT r = f32[2] {name}({operands}), what=1"
        _hlo.hlo_module_from_text(f"HloModule m\\nENTRY e {{\\n{body}\\n}}\\n")
    except Exception as e:
        found = re.search(r"Allowed attributes: (.*)", str(e))
        print(json.dumps([name, found.group(1).split(", ") if found else str(e)]), flush=True)
"""


def _operand_count(op: Op) -> int:
    return op.min_operands or (2 if op.max_operands is None else 0)


def test_every_opcode_is_declared() -> None:
    assert [o.name for o in ops.all_ops()] == sorted(OPCODES)


def test_attribute_names_are_xlas() -> None:
    pytest.importorskip("jaxlib")
    asked = [(o.name, _operand_count(o)) for o in ops.all_ops() if o.name not in UNASKED]
    ran = subprocess.run([sys.executable, "-c", _ASK], input=json.dumps(asked), capture_output=True, text=True)
    answers = dict(map(json.loads, ran.stdout.splitlines()))
    assert answers.keys() == {name for name, _ in asked}, ran.stderr[-500:]
    for name, allowed in answers.items():
        ours = set(ops.get(name).attributes) | XLA_ONLY.get(name, set())
        assert ours == set(allowed) - COMMON, name


@pytest.mark.parametrize("op", ops.all_ops(), ids=lambda o: o.name)
def test_declaration_is_sound(op: Op) -> None:
    assert type(op).shape is not Op.shape
    for name, spec in op.attributes.items():
        assert not (spec.required and spec.default is not None), name
        if spec.default is not None:
            assert fits(spec, spec.default), name
            assert not spec.choices or spec.default in spec.choices, name
        assert not spec.choices or spec.kind is AttrKind.ENUM, name
    if op.is_elementwise:
        assert not op.has_side_effect
    assert not (Trait.ASSOCIATIVE in op.traits and op.max_operands != 2)


PRINTED = [
    "all-gather(p), channel_id=1, replica_groups={{0,1}}, constrain_layout=true, dimensions={0}, "
    "use_global_device_ids=true",
    "all-reduce(p), channel_id=2, replica_groups=[1,2]<=[2], constrain_layout=true, use_global_device_ids=true, "
    "to_apply=add",
    "all-reduce(p), replica_groups={}, to_apply=add",
    "reduce-scatter(p), channel_id=3, replica_groups={{0,1}}, use_global_device_ids=true, dimensions={0}, to_apply=add",
    "all-to-all(p), channel_id=3, replica_groups={{0,1}}, dimensions={0}",
    "collective-permute(p), channel_id=5, source_target_pairs={{0,1},{1,0}}",
    "dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={high,highest}, "
    "algorithm=dot_bf16_bf16_f32",
    "convolution(p, q), dim_labels=bf_io->bf, convolution_kind=wgrad, operand_precision={high,high}",
    "triangular-solve(p, q), left_side=true, lower=true, unit_diagonal=true, transpose_a=NO_TRANSPOSE",
    "compare(p, q), direction=LT, type=TOTALORDER",
    "reduce-precision(p), exponent_bits=5, mantissa_bits=10",
    "fusion(p), kind=kLoop, output_to_operand_aliasing={{}: (0, {})}, calls=same",
    "custom-call(p, q), window={size=2x2}, dim_labels=01bf_01io->01bf, feature_group_count=2, batch_group_count=3, "
    'operand_precision={high,default}, padding_type=PADDING_SAME, custom_call_target="foo", '
    "operand_layout_constraints={f32[4,4]{1,0}, f32[4,4]{1,0}}, custom_call_has_side_effect=true, "
    "output_to_operand_aliasing={{}: (0, {})}, schedule=SCHEDULE_EARLIEST, api_version=API_VERSION_STATUS_RETURNING, "
    'backend_config="xyz"',
    'custom-call(p), custom_call_target="foo", called_computations={same}, backend_config="xyz"',
    "call(p), to_apply=same, is_composite=true",
    "while(p), condition=never, body=same",
    "map(p, q), dimensions={0,1}, to_apply=add",
    "sort(p), dimensions={0}, is_stable=true, to_apply=before",
    "exponential(p), result_accuracy={mode=highest}",
]
_COMPUTATIONS = """add {
 a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b)
}
before {
 d = f32[] parameter(0)
 e = f32[] parameter(1)
 ROOT f = pred[] compare(d, e), direction=LT
}
same {
 ROOT g = f32[4,4] parameter(0)
}
never {
 h = f32[4,4] parameter(0)
 ROOT i = pred[] constant(false)
}
"""


@pytest.mark.parametrize("line", PRINTED, ids=lambda line: line[:30])
def test_attributes_print_in_xlas_order(line: str) -> None:
    hlo = pytest.importorskip("jaxlib._hlo")
    kind = "pred" if line.startswith("compare") else "f32"
    dims = {"all-gather": "8,4", "reduce-scatter": "2,4"}.get(line.split("(")[0], "4,4")
    text = (
        f"HloModule m\n{_COMPUTATIONS}ENTRY e {{\n p = f32[4,4] parameter(0)\n q = f32[4,4] parameter(1)\n"
        f" ROOT r = {kind}[{dims}] {line}\n}}\n"
    )
    assert str(parse(text)) == hlo.hlo_module_from_text(text).to_string()


def test_operands_are_found_by_their_names() -> None:
    text = "ENTRY e { x = f32[4] parameter(0)\n u = f32[2] parameter(1)\n n = s32[] parameter(2)\n"
    update = parse(f"HloModule m\n{text} ROOT r = f32[4] dynamic-update-slice(x, u, n) }}").entry.root
    assert update.operand("update").name == "u"
    with pytest.raises(KeyError):
        update.operand("start_indices")

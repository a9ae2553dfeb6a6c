"""Every rule against the meaning of its op: the op on parts, put together, is the op."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import heron
from heron.analysis.sharding.rule import FactorKind
from heron.analysis.sharding.rules import RULES, rule_of
from heron.errors import HeronError
from heron.evaluator import Evaluator
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.tools.op_examples import usual_program
from tests.analysis.sharding.parts import faults
from tests.hlo.generate import Program, programs

COMPUTATIONS = """
sum { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
largest { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] maximum(a, b) }
sums { a = f32[] parameter(0)
 b = f32[] parameter(1)
 c = f32[] parameter(2)
 d = f32[] parameter(3)
 e = f32[] add(a, c)
 f = f32[] add(d, b)
 ROOT r = (f32[], f32[]) tuple(e, f) }
less { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT r = pred[] compare(a, b), direction=LT }
less2 { a = f32[] parameter(0)
 b = f32[] parameter(1)
 c = f32[] parameter(2)
 d = f32[] parameter(3)
 ROOT r = pred[] compare(a, b), direction=LT }
"""

#: instructions on operands p0, p1, … of the shapes beside them
LINES = [
    ("f32[4,6,5] broadcast(p0), dimensions={2,0}", "f32[5,4]"),
    ("f32[6,4,5] transpose(p0), dimensions={2,0,1}", "f32[4,5,6]"),
    ("f32[4,9,5] reshape(p0)", "f32[6,6,5]"),
    ("f32[8,1,4] reshape(p0)", "f32[4,8]"),
    ("f32[2,12,3] reshape(p0)", "f32[8,9]"),
    ("f32[3,4] pad(p0, p1), padding=-1_1x0_0", "f32[3,4]", "f32[]"),
    ("f32[5,3] slice(p0), slice={[0:5], [1:6:2]}", "f32[5,7]"),
    ("f32[5,7] concatenate(p0, p1), dimensions={1}", "f32[5,3]", "f32[5,4]"),
    ("f32[5,3] reverse(p0), dimensions={1}", "f32[5,3]"),
    ("f32[5,3] select(p0, p1, p2)", "pred[]", "f32[5,3]", "f32[5,3]"),
    ("f32[5,3] clamp(p0, p1, p2)", "f32[]", "f32[5,3]", "f32[]"),
    ("u8[5,3,4] bitcast-convert(p0)", "f32[5,3]"),
    ("f32[5,3] bitcast-convert(p0)", "u8[5,3,4]"),
    ("f32[5,2] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={5,2}", "f32[5,7]", "s32[]", "s32[]"),
    ("f32[5,7] dynamic-update-slice(p0, p1, p2, p3)", "f32[5,7]", "f32[5,2]", "s32[]", "s32[]"),
    ("f32[4,5,7] dot(p0, p1), lhs_batch_dims={1}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
     "rhs_contracting_dims={1}", "f32[5,4,6]", "f32[4,6,7]"),
    ("f32[3,5,7] dot(p0, p1), lhs_contracting_dims={1,2}, rhs_contracting_dims={2,0}", "f32[3,4,6,5]", "f32[6,7,4]"),
    ("f32[6,5] ragged-dot(p0, p1, p2), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
     "rhs_group_dims={0}", "f32[6,4]", "f32[3,4,5]", "s32[3]"),
    ("f32[3,6,5] ragged-dot(p0, p1, p2), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}",
     "f32[6,4]", "f32[4,5]", "s32[3]"),
    ("f32[6,5] scaled-dot(p0, p1, p2, p3), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
     "f32[6,8]", "f32[8,5]", "f32[6,4]", "f32[4,5]"),
    ("f32[5] reduce(p0, p1), dimensions={0,2}, to_apply=sum", "f32[3,5,4]", "f32[]"),
    ("f32[5] reduce(p0, p1), dimensions={0,2}, to_apply=largest", "f32[3,5,4]", "f32[]"),
    ("(f32[5], f32[5]) reduce(p0, p1, p2, p3), dimensions={0}, to_apply=sums",
     "f32[4,5]", "f32[4,5]", "f32[]", "f32[]"),
    ("f32[4,3] reduce-window(p0, p1), window={size=1x2 stride=1x2}, to_apply=sum", "f32[4,6]", "f32[]"),
    ("f32[4,6] select-and-scatter(p0, p1, p2), window={size=1x2 stride=1x2}, select=less, scatter=sum",
     "f32[4,6]", "f32[4,3]", "f32[]"),
    ("f32[5,4] sort(p0), dimensions={1}, to_apply=less", "f32[5,4]"),
    ("(f32[5,4], f32[5,4]) sort(p0, p1), dimensions={0}, to_apply=less2", "f32[5,4]", "f32[5,4]"),
    ("(f32[5,2], s32[5,2]) topk(p0), k=2, largest=true", "f32[5,4]"),
    ("(f32[5,4], s32[5,4]) topk(p0), k=4, largest=true", "f32[5,4]"),
    ("c64[3,4,8] fft(p0), fft_type=FFT, fft_length={8}", "c64[3,4,8]"),
    ("c64[3,4,5] fft(p0), fft_type=RFFT, fft_length={4,8}", "f32[3,4,8]"),
    ("f32[5,2,2] cholesky(p0), lower=true", "f32[5,2,2]"),
    ("f32[5,2,3] triangular-solve(p0, p1), left_side=true, lower=true, transpose_a=TRANSPOSE",
     "f32[5,2,2]", "f32[5,2,3]"),
    ("f32[3,4,5] batch-norm-inference(p0, p1, p2, p3, p4), epsilon=1, feature_index=1",
     "f32[3,4,5]", "f32[4]", "f32[4]", "f32[4]", "f32[4]"),
    ("(f32[3,4,5], f32[4], f32[4]) batch-norm-training(p0, p1, p2), epsilon=1, feature_index=1",
     "f32[3,4,5]", "f32[4]", "f32[4]"),
    ("(f32[3,4,5], f32[4], f32[4]) batch-norm-grad(p0, p1, p2, p3, p4), epsilon=1, feature_index=1",
     "f32[3,4,5]", "f32[4]", "f32[4]", "f32[4]", "f32[3,4,5]"),
    # gathers: collapsed and kept dimensions, explicit batches, indices along another dimension
    ("f32[5,3,2] gather(p0, p1), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, "
     "index_vector_dim=2, slice_sizes={1,2}", "f32[6,2]", "s32[5,3]"),
    ("f32[2,5,4] gather(p0, p1), offset_dims={0,2}, collapsed_slice_dims={}, start_index_map={0,1}, "
     "index_vector_dim=1, slice_sizes={2,4}", "f32[6,4]", "s32[5,2]"),
    ("f32[4,3,2] gather(p0, p1), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, "
     "operand_batching_dims={0}, start_indices_batching_dims={1}, index_vector_dim=2, slice_sizes={1,1,2}",
     "f32[3,6,2]", "s32[4,3,1]"),
    ("f32[6,2] scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={0}, "
     "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum", "f32[6,2]", "s32[5,1]", "f32[5,2]"),
    ("f32[6,2] scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={0}, "
     "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=largest", "f32[6,2]", "s32[5,1]", "f32[5,2]"),
    ("f32[6,4] scatter(p0, p1, p2), update_window_dims={0,2}, inserted_window_dims={}, "
     "scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=sum", "f32[6,4]", "s32[5,2]", "f32[2,5,4]"),
    ("f32[3,6,2] scatter(p0, p1, p2), update_window_dims={2}, inserted_window_dims={1}, input_batching_dims={0}, "
     "scatter_indices_batching_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=2, to_apply=sum",
     "f32[3,6,2]", "s32[4,3,1]", "f32[4,3,2]"),
    # calls: batches pass through
    ("(f32[5,2,2], s32[5,2], s32[5]) custom-call(p0), custom_call_target=\"lapack_sgetrf_ffi\"", "f32[5,2,2]"),
    ("(f32[5,3,2], f32[5,2]) custom-call(p0), custom_call_target=\"lapack_sgeqrf_ffi\"", "f32[5,3,2]"),
    ("(f32[4,3], s32[4,3]) custom-call(p0), custom_call_target=\"TopK\"", "f32[4,3]"),
    ("f32[4,3] custom-call(p0), custom_call_target=\"Sharding\"", "f32[4,3]"),
    # convolutions: plain, feature groups, batch groups, dilated
    ("f32[3,4,5,6] convolution(p0, p1), window={size=2x3 pad=0_0x1_1}, dim_labels=bf01_oi01->bf01",
     "f32[3,2,6,6]", "f32[4,2,2,3]"),
    ("f32[3,8,5] convolution(p0, p1), window={size=2}, dim_labels=bf0_oi0->bf0, feature_group_count=4",
     "f32[3,8,6]", "f32[8,2,2]"),
    ("f32[2,8,5] convolution(p0, p1), window={size=2}, dim_labels=bf0_oi0->bf0, batch_group_count=4",
     "f32[8,3,6]", "f32[8,3,2]"),
    ("f32[3,4,7] convolution(p0, p1), window={size=2 lhs_dilate=2 rhs_dilate=4}, dim_labels=bf0_oi0->bf0",
     "f32[3,2,6]", "f32[4,2,2]"),
]  # fmt: skip


def program(line: str, *shapes: str) -> Module:
    entry = [f"  p{n} = {shape} parameter({n})" for n, shape in enumerate(shapes)]
    return heron.parse("\n".join(["HloModule m", COMPUTATIONS, "ENTRY e {", *entry, f"  ROOT r = {line}", "}", ""]))


def operands_of(i: Instruction) -> list[np.ndarray]:
    """Small whole numbers; positive definite matrices for decompositions."""
    rng = np.random.default_rng(len(str(i)))
    made = [_numbers(rng, o.shape, o.shape.element_type.is_integer) for o in i.operands]
    if i.opcode == "cholesky":
        made[0] = np.eye(made[0].shape[-1], dtype=np.float32) * (4 + np.abs(made[0]))
    if i.opcode == "triangular-solve":
        made[0] = made[0] + 8 * np.eye(made[0].shape[-1], dtype=np.float32)
    if i.opcode.startswith("batch-norm"):
        made = [np.abs(x) for x in made]
    if i.opcode == "ragged-dot":
        made[2] = np.ones(made[2].shape, np.int32)
    return made


def _numbers(rng: np.random.Generator, shape: Shape, is_index: bool) -> np.ndarray:
    low, high = (0, 4) if is_index else (-4, 5)
    return rng.integers(low, high, shape.dims).astype(shape.element_type.dtype)


@pytest.mark.parametrize("case", LINES, ids=lambda case: case[0].split("(p0")[0].split()[-1])
def test_parts_of_one_op(case: tuple[str, ...]):
    i = program(*case).entry.root
    assert rule_of(i) is not None
    assert not list(faults(i, operands_of(i)))


def test_a_wrong_rule_is_found(monkeypatch: pytest.MonkeyPatch):
    reversed_ = program("f32[5,3] reverse(p0), dimensions={1}", "f32[5,3]").entry.root
    monkeypatch.setitem(RULES, "reverse", RULES["negate"])
    assert len(list(faults(reversed_, operands_of(reversed_)))) == 2
    sort = program("f32[5,4] sort(p0), dimensions={1}, to_apply=less", "f32[5,4]").entry.root
    monkeypatch.setitem(RULES, "sort", RULES["negate"])
    assert list(faults(sort, operands_of(sort)))


#: their operands are no plain arrays of numbers, or their values no function of those
_UNTRIED = {"custom-call", "rng", "all-gather", "all-reduce", "all-to-all", "reduce-scatter"}


@pytest.mark.parametrize("opcode", sorted(set(RULES) - _UNTRIED))
def test_parts_of_the_example_of_each_op(opcode: str):
    module = heron.parse(usual_program(opcode))
    for i in module.entry.instructions:
        if i.opcode == opcode and all(o.shape.is_array for o in i.operands):
            try:
                assert not list(faults(i, operands_of(i)))
            except HeronError as e:
                assert e.code.startswith("EVAL"), e


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs(max_ops=8))
def test_parts_of_random_ops(case: Program):
    values: dict[Instruction, object] = {}
    evaluator = Evaluator(case.module, on_value=lambda i, value: values.__setitem__(i, value))
    evaluator.run(*case.inputs)
    values.update(zip(case.module.entry.parameters, case.inputs, strict=True))
    for i in case.module.entry.instructions:
        operands = [values.get(o) for o in i.operands]
        if i.opcode in RULES and all(isinstance(x, np.ndarray) for x in operands):
            assert not list(faults(i, operands))  # type: ignore[arg-type]


def test_kinds_that_are_not_tried_are_few():
    """Positional factors and those that move data are checked where they are partitioned."""
    tried = {FactorKind.PASS_THROUGH, FactorKind.REDUCTION}
    some = [rule_of(program(*case).entry.root) for case in LINES]
    kinds = [f.kind in tried and not f.is_positional for rule in some if rule for f in rule.factors]
    assert sum(kinds) > 0.6 * len(kinds)

"""Ops that declare operands in which they are linear, against their meaning."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.hlo import facts
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import all_ops
from heron.hlo.tools.op_examples import usual_program
from tests.analysis.sharding.parts import difference, results_of
from tests.analysis.sharding.test_parts import LINES, operands_of, program


def is_linear(i: Instruction, group: tuple[int, ...]) -> str:
    """The difference between the op of sums and the sum of the ops of the summands; empty when there is none."""
    x = operands_of(i)
    y = [np.flip(v).copy() if n in group else v for n, v in enumerate(x)]
    both = [a + b if n in group else a for n, (a, b) in enumerate(zip(x, y, strict=True))]
    total = [a + b for a, b in zip(results_of(i, x), results_of(i, y), strict=True)]
    return difference(results_of(i, both), total)


@pytest.mark.parametrize("opcode", [op.name for op in all_ops() if op.linear])
def test_example_of_each_linear_op(opcode: str):
    found = [i for i in heron.parse(usual_program(opcode)).entry.instructions if i.opcode == opcode]
    groups = [(i, group) for i in found for group in facts.linear_groups(i)]
    assert groups or "to_apply" in found[0].op.attributes
    for i, group in groups:
        assert not is_linear(i, group), f"{i} in operands {group}"


@pytest.mark.parametrize("case", LINES, ids=lambda case: case[0].split("(p0")[0].split()[-1])
def test_lines(case: tuple[str, ...]):
    i = program(*case).entry.root
    for group in facts.linear_groups(i):
        assert not is_linear(i, group), f"{i} in operands {group}"


@pytest.mark.parametrize(
    ("case", "groups"),
    [
        (("f32[4] add(p0, p1)", "f32[4]", "f32[4]"), [(0, 1)]),
        (("f32[4] multiply(p0, p1)", "f32[4]", "f32[4]"), [(0,), (1,)]),
        (("f32[4] maximum(p0, p1)", "f32[4]", "f32[4]"), []),
        (("f32[] reduce(p0, p1), dimensions={0}, to_apply=sum", "f32[4]", "f32[]"), [(0, 1)]),
        (("f32[] reduce(p0, p1), dimensions={0}, to_apply=largest", "f32[4]", "f32[]"), []),
        (("f32[4] select(p0, p1, p2)", "pred[4]", "f32[4]", "f32[4]"), [(1, 2)]),
        (("f32[8] concatenate(p0, p1), dimensions={0}", "f32[4]", "f32[4]"), [(0, 1)]),
        (("s32[] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}", "s8[4]", "s8[4]"), []),
        (("s32[] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}", "s32[4]", "s32[4]"), [(0,), (1,)]),
    ],
)
def test_groups(case: tuple[str, ...], groups: list[tuple[int, ...]]):
    assert facts.linear_groups(program(*case).entry.root) == groups

"""Programs made by the builder."""

from __future__ import annotations

import numpy as np
import pytest

from heron.errors import HeronError
from heron.hlo import shape as shapes
from heron.hlo.builder import Builder
from heron.hlo.shape import row_major, scalar
from heron.hlo.text import PrintOptions, parse, print_module
from heron.hlo.types import BF16, F32, PRED, S32


def test_a_program() -> None:
    b = Builder("norm")
    x = b.parameter(0, row_major(F32, 4, 8))
    total = b.reduce(b.multiply(x, x), 0, dimensions=[1], to_apply=b.reducer("add", F32))
    root = b.sqrt(b.add(total, 1e-6), name="root")
    module = b.build(root)
    assert print_module(module, PrintOptions.short()) == (
        "HloModule norm, entry_computation_layout={(f32[4,8]{1,0})->f32[4]{0}}\n\n"
        "add_f32 {\n"
        "  param_0.1 = f32[] parameter(0)\n"
        "  param_1 = f32[] parameter(1)\n"
        "  ROOT add = f32[] add(param_0.1, param_1)\n"
        "}\n\n"
        "ENTRY main {\n"
        "  param_0 = f32[4,8]{1,0} parameter(0)\n"
        "  multiply = f32[4,8]{1,0} multiply(param_0, param_0)\n"
        "  constant = f32[] constant(0)\n"
        "  reduce = f32[4]{0} reduce(multiply, constant), dimensions={1}, to_apply=add_f32\n"
        "  constant.1 = f32[] constant(1e-06)\n"
        "  broadcast = f32[4]{0} broadcast(constant.1), dimensions={}\n"
        "  add.1 = f32[4]{0} add(reduce, broadcast)\n"
        "  ROOT root = f32[4]{0} sqrt(add.1)\n"
        "}\n\n"
    )
    assert parse(print_module(module)).name == "norm"


def test_numbers_take_the_type_of_their_neighbours() -> None:
    b = Builder("m")
    x = b.parameter(0, row_major(BF16, 3))
    chosen = b.select(b.compare(x, 0.5, direction="GT"), x, 0.0)
    assert chosen.shape.element_type is BF16
    assert b.clamp(0, x, 1).operands[0].shape is x.shape
    piece = b.dynamic_slice(x, 1, dynamic_slice_sizes=[2])
    assert piece.operands[1].shape is scalar(S32)
    assert b.pad(x, 0, padding=[[1, 1, 0]]).operands[1].shape is scalar(BF16)
    assert b.add(x, np.ones(3, x.shape.element_type.dtype)).operands[1].opcode == "constant"


def test_shapes_without_layout_get_one() -> None:
    b = Builder("m")
    x = b.parameter(0, shapes.array(F32, (2,)))
    assert x.shape is row_major(F32, 2)
    assert b.broadcast(x, shape=shapes.array(F32, (2, 3)), dimensions=[0]).shape is row_major(F32, 2, 3)


def test_loops_and_branches() -> None:
    b = Builder("loop")
    state = shapes.tuple_([scalar(S32), row_major(F32, 4)])
    condition = b.nested("condition")
    s = condition.parameter(0, state)
    below = condition.finish(condition.compare(condition.get_tuple_element(s, index=0), 10, direction="LT"))
    body = b.nested("body")
    s = body.parameter(0, state)
    count = body.add(body.get_tuple_element(s, index=0), 1)
    step = body.finish(body.tuple(count, body.negate(body.get_tuple_element(s, index=1))))
    init = b.tuple(b.constant(0), b.full(1, row_major(F32, 4)))
    module = b.build(b.while_(init, condition=below, body=step))
    assert [c.name for c in module.post_order()] == ["condition", "body", "main"]
    assert module.entry.root.shape is state


def test_python_keywords() -> None:
    b = Builder("m")
    x = b.parameter(0, row_major(PRED, 2))
    assert [i.opcode for i in (b.and_(x, True), b.or_(x, x), b.not_(x))] == ["and", "or", "not"]


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda b, x: b.negat(x), "HLO003"),
        (lambda b, x: b.add(x), "HLO004"),
        (lambda b, x: b.negate(x, dimensions=[0]), "HLO005"),
        (lambda b, x: b.reduce(x, 0, dimensions=[0]), "HLO005"),
        (lambda b, x: b.add(x, b.constant([1, 2, 3], F32)), "HLO010"),
    ],
)
def test_errors(make, code: str) -> None:
    b = Builder("m")
    x = b.parameter(0, row_major(F32, 2))
    with pytest.raises(HeronError) as caught:
        make(b, x)
    assert caught.value.code == code

"""Programs made by the builder."""

from __future__ import annotations

import keyword
from typing import Any

import numpy as np
import pytest

from heron.errors import HeronError, Span
from heron.evaluator import evaluate
from heron.hlo.builder import Builder
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.broadcasting import common_dims
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.metadata import Metadata
from heron.hlo.ir.module import as_html
from heron.hlo.ir.op import Op, all_ops
from heron.hlo.ir.shape import row_major, scalar
from heron.hlo.ir.types import BF16, F32, PRED, S32
from heron.hlo.sharding import Sharding
from heron.hlo.text import PrintOptions, parse, print_module
from heron.hlo.tools.compare import difference
from heron.hlo.tools.op_examples import usual_program
from heron.hlo.verifier import verify


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


@pytest.mark.parametrize("op", all_ops(), ids=lambda o: o.name)
def test_every_op_can_be_built(op: Op) -> None:
    """Its example, made again by the builder's methods."""
    module = parse(usual_program(op.name))
    built, known = Builder("example"), {}
    for c in module.post_order():
        b = built if c is module.entry else built.nested(c.name)
        for i in c.post_order():
            known[i] = _again(b, i, [known[o] for o in i.operands], known)
        known[c] = b.finish(known[c.root])
    verify(built.module)
    built.module.entry_layout = module.entry_layout
    assert difference(built.module, module) is None


def _again(b: Builder, i: Instruction, operands: list[Instruction], known: dict[Any, Any]) -> Instruction:
    attrs = {n: known.get(v, v) if isinstance(v, Computation) else v for n, v in i.attrs.items()}
    for n, v in attrs.items():
        if isinstance(v, tuple) and v and isinstance(v[0], Computation):
            attrs[n] = [known[c] for c in v]
    if i.opcode == "parameter":
        return b.parameter(i.number, i.shape)
    if i.opcode == "constant":
        return b.constant(i.literal.array, i.shape.element_type)
    if i.opcode == "iota":
        return b.iota(i.shape, i.iota_dimension)
    attrs |= i.extras
    method = getattr(b, i.opcode.replace("-", "_") + "_" * keyword.iskeyword(i.opcode))
    try:
        inferred = method(*operands, **attrs)
    except HeronError as error:
        assert "must be given" in error.what or "the result shape" in error.what, error
    else:
        if inferred.shape is i.shape:
            return inferred
        b.computation.remove(inferred)
    return method(*operands, shape=i.shape, **attrs)


def test_elementwise_operands_spread() -> None:
    b = Builder("m")
    x, y, z = (b.parameter(n, row_major(F32, *dims)) for n, dims in enumerate(((4, 1), (1, 3), (3,))))
    total = b.add(x, y)
    assert str(total.shape) == "f32[4,3]{1,0}"
    assert [o.opcode for o in total.operands] == ["broadcast", "broadcast"]
    assert b.multiply(total, z).operands[1].dimensions == (1,)
    assert b.clamp(b.constant(0.0), total, z).operands[0].opcode == "constant"
    assert b.select(b.compare(y, 0, direction="GT"), total, 0).shape is total.shape
    module = b.build(b.add(x, z))
    values = [np.arange(n, dtype=np.float32).reshape(s) for n, s in ((4, (4, 1)), (3, (1, 3)), (3, (3,)))]
    np.testing.assert_equal(evaluate(module, *values)[0], values[0] + values[2])


def test_broadcasting() -> None:
    b = Builder("m")
    x = b.parameter(0, row_major(F32, 3, 1))
    assert b.broadcast_to(x, [3, 1]) is x
    assert b.broadcast_to(x, [2, 3, 4]).dimensions == (1,)
    assert [str(o.shape) for o in b.broadcast_together(x, np.ones(2, np.float32), 5)] == [
        "f32[3,2]{1,0}",
        "f32[3,2]{1,0}",
        "s32[3,2]{1,0}",
    ]
    assert common_dims((0, 1), (1, 5)) == (0, 5) and common_dims((2,), (3,)) is None and common_dims() == ()
    with pytest.raises(HeronError, match="do not broadcast together"):
        b.broadcast_together(x, np.ones((2, 2)))
    with pytest.raises(HeronError, match="does not broadcast to"):
        b.broadcast_to(x, [2])


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda b, x: b.negat(x), "HLO003"),
        (lambda b, x: b.add(x), "HLO004"),
        (lambda b, x: b.negate(x, dimensions=[0]), "HLO005"),
        (lambda b, x: b.reduce(x, 0, dimensions=[0]), "HLO005"),
        (lambda b, x: b.add(x, b.constant([1, 2, 3], F32)), "HLO010"),
        (lambda b, x: b.negate(b.nested("other").parameter(0, x.shape)), "HLO006"),
        (lambda b, x: b.constant("text"), "HLO002"),
        (lambda b, x: b.constant([[1], [2, 3]]), "HLO002"),
        (lambda b, x: b.constant("text", F32), "HLO002"),
        (lambda b, x: b.broadcast_to(x, [3, 3]), "HLO026"),
        (lambda b, x: x[5], "HLO026"),
        (lambda b, x: x @ b.full(1, row_major(F32, 3)), "HLO010"),
    ],
)
def test_errors(make, code: str) -> None:
    b = Builder("m")
    x = b.parameter(0, row_major(F32, 2))
    with pytest.raises(HeronError) as caught:
        make(b, x)
    assert caught.value.code == code
    assert code == "HLO003" or _here(caught.value)


def _here(error: HeronError) -> bool:
    """Whether the error shows a line of this file."""
    return isinstance(error.where, Span) and error.where.filename == __file__ and "lambda b, x" in error.where.text


def test_errors_show_the_line() -> None:
    b = Builder("m")
    x = b.parameter(0, row_major(F32, 2))
    with pytest.raises(HeronError) as caught:
        b.negate(x); b.concatenate(x, x, dimensions=[1])  # fmt: skip  # noqa: E702
    assert str(caught.value).splitlines()[2:4] == [
        "    " + "        b.negate(x); b.concatenate(x, x, dimensions=[1])  # fmt: skip  # noqa: E702",
        "    " + "                     " + "^" * len("b.concatenate(x, x, dimensions=[1])"),
    ]
    assert "the instruction is concatenate(f32[2]{0} %param_0, f32[2]{0} %param_0)" in str(caught.value)
    with pytest.raises(HeronError) as caught:
        b.concatenate(
            x,
            dimensions=[7],
        )
    assert isinstance(caught.value.where, Span) and caught.value.where.text == "        b.concatenate("
    with pytest.raises(HeronError) as caught:
        x + b.full(1, row_major(S32, 2))
    assert isinstance(caught.value.where, Span) and caught.value.where.length == len("x + b.full(1, row_major(S32, 2))")


def test_what_any_op_carries() -> None:
    b = Builder("m")
    x = b.parameter(0, row_major(F32, 4))
    y = b.negate(x, sharding=Sharding.tile((2,)), metadata=Metadata(op_name="n"), frontend_attributes={"a": "b"})
    assert str(y) == (
        '%negate = f32[4]{0} negate(%param_0), sharding={devices=[2]<=[2]}, frontend_attributes={a="b"}, '
        'metadata={op_name="n"}'
    )
    assert y.sharding == Sharding.tile((2,))
    assert parse(print_module(b.build(y))).entry.root.metadata == y.metadata


def test_notebooks_show_the_text() -> None:
    b = Builder("m")
    module = b.build(b.negate(b.parameter(0, row_major(F32, 2))))
    assert module._repr_html_().startswith("<pre>HloModule m, entry_computation_layout={(f32[2]{0})-&gt;")
    assert "negate(%param_0)" in module.entry._repr_html_()
    assert as_html("a\nb\nc", lines=1) == "<pre>a\n… 2 more lines</pre>"

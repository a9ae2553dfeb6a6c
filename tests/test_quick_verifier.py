"""The verifier of the tests refuses what xDSL's refuses, though it looks at equal ops once."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, f32, i1, i32
from xdsl.ir import Block, Operation, Region
from xdsl.utils.exceptions import VerifyException

from tests import quick_verifier


def constant(value: int, type_: object = i32) -> arith.ConstantOp:
    return arith.ConstantOp(IntegerAttr(value, type_))  # type: ignore[arg-type]


def added(operands: list[Operation], result: object = i32) -> Operation:
    return arith.AddiOp.create(
        operands=[o.results[0] for o in operands],
        result_types=[result],  # type: ignore[list-item]
        properties=arith.AddiOp(constant(1), constant(2)).properties,
    )


def test_equal_ops_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    usual = quick_verifier._verify_all
    monkeypatch.setattr(quick_verifier, "_verify_all", lambda d, op: (looked.append(op.name), usual(d, op)))
    monkeypatch.setattr(quick_verifier, "_seen", {})
    one, two = constant(1), constant(2)
    ops = [one, two, *[added([one, two]) for _ in range(3)]]
    for _ in range(2):
        ModuleOp(Region(Block(ops))).verify()
        for op in ops:
            op.detach()
    assert sorted(looked) == ["arith.addi", "arith.constant", "arith.constant", "builtin.module"]


@pytest.mark.parametrize("wrong", ["result", "operand", "operands", "property"])
def test_what_differs_is_looked_at(wrong: str) -> None:
    one, two = constant(1), constant(2)
    ModuleOp([one, two, added([one, two])]).verify()
    one, two, flag = constant(1), constant(2), constant(1, i1)
    op = {
        "result": lambda: added([one, two], f32),
        "operand": lambda: added([one, flag]),
        "operands": lambda: added([one, two, two]),
        "property": lambda: added([one, two]),
    }[wrong]()
    if wrong == "property":
        op.properties["unknown"] = IntegerAttr(1, i32)
    with pytest.raises(VerifyException):
        ModuleOp([one, two, flag, op]).verify()


def test_places_are_looked_at_each_time() -> None:
    """A yield that is not the last op of its block, in a loop that was right before."""

    def loop(ops: list[Operation]) -> ModuleOp:
        bounds = [constant(n, IndexType()) for n in (0, 8, 1)]
        body = Region(Block(ops, arg_types=[IndexType()]))
        return ModuleOp([*bounds, scf.ForOp(*bounds, [], body)])

    loop([constant(1), scf.YieldOp()]).verify()
    with pytest.raises(VerifyException):
        loop([scf.YieldOp(), constant(1)]).verify()

"""The functions in the place of xDSL's own do what those do: operands, results and the order of uses are the same."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir import Block, Operation, Region, SSAValue, core

from heron.codegen.ir import late_definitions  # noqa: F401  puts them there
from heron.codegen.ir.types import INDEX


def _as_written() -> ModuleType:
    """Another copy of xDSL's module, with its own functions."""
    spec = importlib.util.spec_from_file_location("plain_core", core.__file__)
    assert spec is not None and spec.loader is not None
    made = sys.modules["plain_core"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


PLAIN = _as_written()
NUMBERS = st.integers(0, 99)
MOVES = st.lists(
    st.tuples(st.sampled_from(["make", "insert", "give", "set", "replace", "erase"]), NUMBERS, NUMBERS, NUMBERS),
    max_size=40,
)


def play(ir: Any, moves: list[tuple[str, int, int, int]]) -> list[Any]:
    """Make, change and erase ops, and say what there is in the end."""
    kind = type("Op", (ir.Operation,), {"name": "test.op", "traits": ir.OpTraits(lambda: ())})
    block = ir.Block(arg_types=[INDEX, INDEX])
    ops: list[Any] = []
    for move, a, b, c in moves:
        values = [*block.args, *(r for op in ops for r in op.results)]
        one, other = values[a % len(values)], values[b % len(values)]
        if move == "make":
            op = kind.create(operands=[one, other, one][: c % 4], result_types=[INDEX] * (c % 3), attributes={})
            ops.append(op)
            block.add_op(op)
        elif move == "insert" and ops:
            op = kind.create(operands=[one], result_types=[INDEX])
            block.insert_op_before(op, ops[c % len(ops)])
            ops.insert(b % len(ops), op)
        elif move == "give" and ops:
            ops[c % len(ops)].operands = (one, *ops[c % len(ops)].operands[:2], other)[: a % 5]
        elif move == "set" and ops and len(ops[c % len(ops)].operands):
            op = ops[c % len(ops)]
            op.operands[a % len(op.operands)] = other
        elif move == "replace":
            one.name_hint = [None, "a"][c % 2]
            one.replace_all_uses_with(other)
        elif move == "erase" and ops and all(r.first_use is None for r in ops[c % len(ops)].results):
            op = ops.pop(c % len(ops))
            op.detach()
            op.erase()
    values = [*block.args, *(r for op in ops for r in op.results)]
    number = {id(v): n for n, v in enumerate(values)}
    place = {id(op): n for n, op in enumerate(ops)}
    assert all(type(op.operands[:1]) is ir.SSAValues and op in block.ops for op in ops)
    forward, backward, op = [], [], block.first_op
    while op is not None:
        forward.append(place[id(op)])
        op = op.next_op
    op = block.last_op
    while op is not None:
        backward.insert(0, place[id(op)])
        op = op.prev_op
    assert forward == backward
    return [
        forward,
        [[number.get(id(o), -1) for o in op.operands] for op in ops],
        [[(place[id(u.operation)], u.index) for u in v.uses] for v in values],
        [(v.name_hint, type(v).__name__, v.index) for v in values],
        [(op.attributes, op.properties, op.regions, len(op.successors), str(op.location)) for op in ops],
    ]


@given(MOVES)
def test_as_xdsl_does(moves: list[tuple[str, int, int, int]]) -> None:
    assert play(core, moves) == play(PLAIN, moves)


def test_what_xdsl_refuses() -> None:
    op = Operation.create.__func__(type("Op", (Operation,), {"name": "test.op"}), regions=[Region(Block())])  # type: ignore[attr-defined]
    block = Block()
    block.add_op(op)
    with pytest.raises(ValueError, match="already attached"):
        Block().add_op(op)
    with pytest.raises(ValueError, match="not in current block"):
        Block().insert_op_before(type("Op", (Operation,), {"name": "test.op"}).create(), op)
    op.detach()
    with pytest.raises(ValueError, match="contained in the operation"):
        op.regions[0].block.add_op(op)
    value: SSAValue = Block(arg_types=[INDEX]).args[0]
    user = type("Op", (Operation,), {"name": "test.op"}).create(operands=[value])
    with pytest.raises(ValueError, match="still has uses"):
        value.erase()
    assert hash(value) == hash(value) and value != user and len({value, value}) == 1

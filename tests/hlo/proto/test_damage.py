"""Bytes that are cut off, changed or made up give a module or a HeronError, never anything else."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from heron.errors import HeronError
from heron.hlo.proto import from_proto, load, to_proto
from heron.hlo.text import parse, print_module
from tests.hlo.proto.damage import MODULE, survives, tries
from tests.hlo.proto.programs import PROGRAMS, entry

FEATURES = to_proto(parse(PROGRAMS["features"]))


def test_cut_off_anywhere() -> None:
    for size in range(len(FEATURES)):
        survives(FEATURES[:size])
        survives(FEATURES[:size], load)


def test_changes() -> None:
    """``python -m tests.hlo.proto.damage --count 100000`` tries more."""
    for data in tries(seed=1, count=3000):
        survives(data)


def test_made_up() -> None:
    rnd = random.Random(2)
    for _ in range(500):
        survives(rnd.randbytes(rnd.randrange(200)), rnd.choice((from_proto, load)))


# -- one by one ------------------------------------------------------------------------------------------------------
def _first(proto: Any, opcode: str) -> Any:
    return next(i for c in proto.computations for i in c.instructions if i.opcode == opcode)


def _set(of: str, /, **fields: Any) -> Callable[[Any], None]:
    def change(proto: Any) -> None:
        for name, value in fields.items():
            setattr(_first(proto, of), name, value)

    return change


def _twice(proto: Any) -> None:
    proto.computations[0].instructions[1].id = proto.computations[0].instructions[0].id


CHANGES: dict[str, tuple[Callable[[Any], Any], str, str]] = {
    "entry": (lambda p: setattr(p, "entry_computation_id", 9), "PROTO002", "the entry computation, number 9"),
    "root": (lambda p: setattr(p.computations[0], "root_id", 99), "PROTO002", "the root, number 99"),
    "operand": (lambda p: _first(p, "reduce").operand_ids.__setitem__(0, 7), "PROTO002", "needs instruction 7"),
    "operands": (lambda p: _first(p, "pad").operand_ids.append(p.computations[1].instructions[0].id), "HLO004", "pad"),
    "twice": (_twice, "PROTO002", "two instructions have the number 0"),
    "computations": (lambda p: setattr(p.computations[1], "id", 0), "PROTO002", "two computations have the number 0"),
    "calls": (lambda p: _first(p, "reduce").called_computation_ids.append(0), "PROTO002", "1 computations too many"),
    "no call": (lambda p: _first(p, "reduce").ClearField("called_computation_ids"), "PROTO002", "'to_apply'"),
    "call": (lambda p: _first(p, "reduce").called_computation_ids.__setitem__(0, 1), "PROTO002", "computation 1 is"),
    "opcode": (_set("reduce", opcode="reduse"), "HLO003", "unknown op 'reduse'"),
    "type": (lambda p: setattr(_first(p, "pad").shape, "element_type", 99), "PROTO003", "element type 99"),
    "size": (lambda p: _first(p, "pad").shape.dimensions.__setitem__(0, 2**62), "PROTO003", "impossible dimensions"),
    "negative": (lambda p: _first(p, "pad").shape.dimensions.__setitem__(0, -1), "PROTO003", "impossible dimensions"),
    "layout": (lambda p: _first(p, "pad").shape.layout.minor_to_major.append(1), "PROTO003", "does not order"),
    "literal": (lambda p: _first(p, "constant").ClearField("literal"), "PROTO002", "the attribute 'literal'"),
    "data": (lambda p: setattr(_first(p, "constant").literal, "f32s", b""), "PROTO004", "0 elements instead of 1"),
    "api": (_set("custom-call", custom_call_api_version=77), "PROTO003", "77 is not the number of any of"),
    "sharding": (lambda p: setattr(_first(p, "parameter").sharding, "type", 77), "PROTO003", "sharding type 77"),
    "schedule": (
        lambda p: p.schedule.sequences[0].value.instruction_ids.append(0),
        "PROTO002",
        "the schedule of 'add' is not",
    ),
    "alias": (
        lambda p: setattr(p.input_output_alias.entries[0], "kind", 8),
        "PROTO003",
        "8 is not the number of any of",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_error(name: str) -> None:
    change, code, message = CHANGES[name]
    proto = MODULE.FromString(FEATURES)
    change(proto)
    with pytest.raises(HeronError) as caught:
        from_proto(proto.SerializeToString())
    assert (caught.value.code, message in str(caught.value)) == (code, True), caught.value


def test_places() -> None:
    proto = MODULE.FromString(FEATURES)
    _first(proto, "pad").shape.element_type = 99
    with pytest.raises(HeronError) as caught:
        from_proto(proto.SerializeToString())
    assert caught.value.where == "main: wide"


def test_large_shapes_take_no_memory() -> None:
    proto = MODULE.FromString(to_proto(parse(entry("ROOT c = f32[] constant(1)"))))
    constant = _first(proto, "constant")
    for shape in (constant.shape, constant.literal.shape):
        shape.dimensions.extend([2**40])
        shape.layout.minor_to_major.append(0)
    with pytest.raises(HeronError) as caught:
        from_proto(proto.SerializeToString())
    assert caught.value.code == "PROTO004"


def test_deep_shapes() -> None:
    """protobuf itself refuses what is nested more than 100 deep."""
    data = b"\x10\x0b"
    for _ in range(1000):
        data = b"\x10\x0d\x22" + _size(len(data)) + data
    instruction = b"\x1a" + _size(len(data)) + data
    computation = b"\x12" + _size(len(instruction)) + instruction
    with pytest.raises(HeronError) as caught:
        from_proto(b"\x1a" + _size(len(computation)) + computation)
    assert caught.value.code == "PROTO001"


def _size(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def test_names_that_text_does_not_allow() -> None:
    proto = MODULE.FromString(to_proto(parse(entry("ROOT c = f32[] constant(1)"))))
    proto.name, proto.computations[2].name = "a module", "9"
    _first(proto, "constant").name = "x y"
    module = from_proto(proto.SerializeToString())
    assert (module.name, module.entry.name, module.entry.root.name) == ("a_module", "_9", "x_y")
    parse(print_module(module))


@pytest.mark.parametrize(
    ("attribute", "text", "code"),
    [
        ("sharding", "{devices=[2]<=}", "HLO027"),
        ("sharding", "{" * 100, "HLO027"),
        ("origin", "{" + "(" * 100, "PROTO006"),
        ("statistics", "{max}", "PROTO006"),
    ],
)
def test_texts_that_cannot_be_written(attribute: str, text: str, code: str) -> None:
    module = parse(PROGRAMS["features"])
    module.entry.parameters[0].extras[attribute] = text
    with pytest.raises(HeronError) as caught:
        to_proto(module)
    assert caught.value.code == code


def test_a_module_that_is_not_whole() -> None:
    module = parse(PROGRAMS["features"])
    module._computations.pop(module.computation("add"))  # still called
    with pytest.raises(HeronError) as caught:
        to_proto(module)
    assert caught.value.code == "PROTO005"

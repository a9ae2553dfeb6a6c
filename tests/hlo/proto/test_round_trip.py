"""Module → bytes → Module is the identity; every declared attribute has a field."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from heron.errors import HeronError
from heron.hlo.builder import Builder
from heron.hlo.ir import types
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import all_ops
from heron.hlo.ir.shape import Shape, array, row_major
from heron.hlo.proto import from_hlo_proto, from_proto, load, looks_like, to_hlo_proto, to_proto
from heron.hlo.proto.fields import field_of
from heron.hlo.proto.schema import MESSAGES
from heron.hlo.proto.writer import CALLS
from heron.hlo.text import parse, print_module
from heron.hlo.tools.compare import difference
from tests.hlo.proto.programs import OURS, PROGRAMS, entry
from tests.support import NAMES, program


def same(a: Module, b: Module) -> None:
    assert difference(a, b, names=True, metadata=True) is None
    assert print_module(a) == print_module(b)
    for c, d in zip(a.computations, b.computations, strict=True):
        assert [i.name for i in c.instructions] == [i.name for i in d.instructions]  # inserted in the same order


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "thread-main"])  # an empty name is lost
def test_programs(name: str) -> None:
    module = parse(PROGRAMS[name])
    same(from_proto(to_proto(module)), module)


@pytest.mark.parametrize("name", OURS)
def test_what_xla_does_not_read(name: str) -> None:
    module = parse(entry(OURS[name]))
    same(from_proto(to_proto(module)), module)


@pytest.mark.parametrize("name", NAMES)
def test_large_workloads(name: str) -> None:
    """Text → proto → text; the small ones are compared with XLA, too."""
    for text in {program(name, small=False, platform=p).read_text() for p in ("cpu", "cuda")}:
        module = parse(text)
        data = to_proto(module)
        again = from_proto(data)
        assert print_module(again) == print_module(module)
        assert to_proto(again) == data


#: fields that are only read, with those that only snapshots and partitioned modules have
NOT_IN_TEXT = {
    "HloInstructionProto.all_reduce_id": "older programs' channel",
    "HloInstructionProto.replica_groups": "older programs' groups",
    "HloInstructionProto.backend_config_payload": "read, written as backend_config",
    "Payload.value": "likewise",
    "Payload.id": "likewise",
    "HloModuleProto.payloads": "likewise",
    "LiteralProto.dynamic_sizes": "refused with PROTO005: no literal has dynamic sizes",
    "LayoutProto.dim_level_types": "kept from messages; text drops them, as XLA's does",
    "LayoutProto.dim_unique": "likewise",
    "LayoutProto.dim_ordered": "likewise",
    "LayoutProto.physical_shape": "read; XLA writes it for sparse arrays, which neither side reads from text",
}
ELSEWHERE = {
    "CrossProgramPrefetch",
    "HloModuleConfigProto",
    "HloModuleProtoWithConfig",
    "HloModuleProto.cross_program_prefetches",
    "HloModuleProto.spmd_output_sharding",
    "HloModuleProto.spmd_parameters_shardings",
    "HloProto",
    "HloSnapshot",
}


def test_every_field_is_written() -> None:
    """By the programs of these tests, which XLA reads and writes alike; what is left out has a reason."""
    seen: set[str] = set()

    def visit(message: Any) -> None:
        for field, value in message.ListFields():
            seen.add(f"{message.DESCRIPTOR.name}.{field.name}")
            if field.message_type is not None:
                for part in value if hasattr(value, "add") else [value]:
                    visit(part)

    for text in [*PROGRAMS.values(), *map(entry, OURS.values())]:
        visit(MESSAGES["HloModuleProto"].FromString(to_proto(parse(text))))
    fields = {f"{name}.{f.name}" for name, m in MESSAGES.items() for f in m.DESCRIPTOR.fields}
    missing = {f for f in fields - seen if not {f, f.partition(".")[0]} & ELSEWHERE}
    assert missing == NOT_IN_TEXT.keys()


def test_levels_of_dimensions_are_kept() -> None:
    message = MESSAGES["HloModuleProto"].FromString(to_proto(parse(entry("a = f32[2,3] parameter(0)"))))
    layout = message.computations[-1].instructions[0].shape.layout
    layout.dim_level_types.extend([0, 2])
    layout.dim_unique.extend([True, False])
    layout.dim_ordered.extend([False, True])
    again = MESSAGES["HloModuleProto"].FromString(to_proto(from_proto(message.SerializeToString())))
    assert again.computations[-1].instructions[0].shape.layout == layout


def test_every_attribute_has_a_field() -> None:
    missing = [
        f"{op.name}: {name}"
        for op in all_ops()
        for name, spec in op.attributes.items()
        if spec.kind not in CALLS and field_of(op, name) is None
    ]
    assert missing == []


def test_what_only_the_header_says() -> None:
    text = (
        "HloModule m, replica_count=2, num_partitions=4, alias_passthrough_params=true,"
        " allow_spmd_sharding_propagation_to_output={true,false}, origin_recovery_table={field}\n"
        "ENTRY e { ROOT x = f32[] parameter(0) }"
    )
    module = parse(text)
    again = from_proto(to_proto(module))
    assert again.header == module.header
    same(again, module)


def test_what_no_text_says() -> None:
    module = parse("HloModule m\nENTRY e { ROOT x = f32[4] parameter(0) }")
    module.spmd_parameter_shardings = ("{devices=[2]<=[2]}",)
    module.spmd_output_sharding = "{replicated}"
    module.cross_program_prefetches = ((0, (1, 2), 64),)
    module.carried = b"\xaa\x01\x04gpu1"  # device_type, which heron does not read
    again = from_proto(to_proto(module.clone()))
    for name in ("spmd_parameter_shardings", "spmd_output_sharding", "cross_program_prefetches", "carried"):
        assert getattr(again, name) == getattr(module, name)


def test_fields_nobody_knows() -> None:
    """Of the module, its computations and instructions; clones carry them, too."""
    unread = b"\xaa\xc9\x01\x03abc"
    message = MESSAGES["HloModuleProto"].FromString(to_proto(parse(entry("a = f32[] parameter(0)"))))
    for part in (message, message.computations[0], message.computations[2].instructions[0]):
        part.MergeFromString(unread)
    data = message.SerializeToString(deterministic=True)
    for module in (from_proto(data), from_proto(data).clone()):
        assert to_proto(module) == data
    parameter = from_proto(data).entry.parameters[0]
    assert parameter.extras == {"carried": unread}
    parameter.extras["carried"] = b"\xff"
    module = parameter.parent.module if parameter.parent else None
    assert module is not None
    with pytest.raises(HeronError) as caught:
        to_proto(module)
    assert caught.value.code == "PROTO006"


def test_slices_of_a_tuple() -> None:
    """A message has their sizes in a row."""
    text = entry(
        "i = (f32[4,6], f32[8]) parameter(0)\n s = s32[] parameter(1)\n p = (s32[], s32[]) tuple(s, s)\n"
        " o = (s32[]) tuple(s)\n pp = ((s32[], s32[]), (s32[], s32[])) tuple(p, p)\n"
        " n = (((s32[], s32[]), (s32[], s32[])), (s32[])) tuple(pp, o)\n"
        " r = (f32[4,6], f32[8]) collective-permute(i, i, n, n), source_target_pairs={{0,1}},"
        " slice_sizes={{2,3},{1,3},{5}}"
    )
    module = parse(text)
    same(from_proto(to_proto(module)), module)


def test_insertion_order_and_schedule() -> None:
    b = Builder("m")
    x = b.parameter(0, row_major(types.F32, 4))
    late = b.negate(x)
    module = b.build(b.add(b.abs(x), late))
    module.entry.reorder([*reversed(module.entry.instructions)])
    same(from_proto(to_proto(module)), module)
    module.set_schedule({module.entry: module.entry.post_order()})
    again = from_proto(to_proto(module))
    same(again, module)
    assert again.schedule is not None
    assert [i.name for i in again.schedule[again.entry]] == [i.name for i in module.entry.post_order()]


def test_pickle() -> None:
    module = parse(program("kv_decode").read_text(), "kv.hlo")
    again = pickle.loads(pickle.dumps(module))
    same(again, module)
    assert again.filename == "kv.hlo"


# -- literals --------------------------------------------------------------------------------------------------------
ARRAYS = [t for t in types.ALL if t.byte_size]


@pytest.mark.parametrize("element_type", ARRAYS, ids=str)
@pytest.mark.parametrize("dims", [(), (5,), (2, 3, 4), (0, 3)], ids=str)
def test_random_bits(element_type: types.ElementType, dims: tuple[int, ...]) -> None:
    """Every bit survives: NaN payloads, signs of zeros, denormals."""
    rng = np.random.default_rng(0)
    shape = row_major(element_type, *dims)
    flat = rng.integers(0, 256, shape.num_elements * element_type.byte_size, np.uint8)
    if element_type.bits < 8 or element_type.kind == "pred":
        limit = 1 << min(element_type.bits, 8 if element_type.kind != "pred" else 1)
        values = (flat % limit).astype(np.int64) - (limit // 2 if element_type.is_signed else 0)
        as_bits = element_type.is_float
        data = values.astype(np.uint8).view(element_type.dtype) if as_bits else values.astype(element_type.dtype)
    else:
        data = flat.view(element_type.dtype)
    _survives(Literal(shape, data.reshape(dims)))


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1)])
def test_layouts_of_literals(order: tuple[int, ...]) -> None:
    from heron.hlo.ir.layout import layout

    for element_type in (types.F32, types.S32, types.S4, types.PRED):
        values = (np.arange(24) % 2).reshape(2, 3, 4).astype(element_type.dtype)
        _survives(Literal(array(element_type, (2, 3, 4), layout(order)), values))


def _survives(literal: Literal) -> None:
    b = Builder("m")
    module = b.build(b.computation.add("constant", (), literal.shape, literal=literal), verify=False)
    found = from_proto(to_proto(module)).entry.root.literal
    assert found == literal and found.shape is literal.shape


def test_bytes_that_are_no_text() -> None:
    b = Builder("m")
    x = b.parameter(0, row_major(types.F32, 4))
    module = b.build(b.custom_call(x, custom_call_target="f", shape=x.shape))
    module.entry.root.extras["backend_config"] = b"\xff\x00\xfe".decode("utf-8", "surrogateescape")
    data = to_proto(module)
    assert b"\xff\x00\xfe" in data
    assert from_proto(data).entry.root.extras == module.entry.root.extras


# -- kinds of messages -----------------------------------------------------------------------------------------------
def test_the_right_kind_is_found() -> None:
    from heron.hlo.proto import Snapshot, to_snapshot

    module = parse(PROGRAMS["dot"])
    for data in (to_proto(module), to_hlo_proto(module), to_snapshot(Snapshot(module))):
        assert looks_like(data)
        same(load(data), module)
    same(from_hlo_proto(to_hlo_proto(module)), module)


@pytest.mark.parametrize("text", ["", "\nHloModule m", "HloModule m", "\n" * 100, "module @m {}", "ML\xefR", "\x12"])
def test_texts_are_none(text: str) -> None:
    assert not looks_like(text.encode("latin-1"))
    with pytest.raises(HeronError) as caught:
        load(text.encode("latin-1"))
    assert caught.value.code == "PROTO001"


def test_verify() -> None:
    module = parse("HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT y = f32[3] negate(x) }")
    assert from_proto(to_proto(module)).entry.root.opcode == "negate"
    for read in (from_proto, load):
        with pytest.raises(HeronError) as caught:
            read(to_proto(module), verify=True)
        assert caught.value.code == "HLO108"


def test_snapshot() -> None:
    from heron.hlo.proto import Snapshot, from_snapshot, to_snapshot

    module = parse("HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT y = (f32[2], f32[2]) tuple(x, x) }")
    x = np.array([1, np.nan], np.float32)
    snapshot = Snapshot.of(module, x, result=(x, x), platform="host")
    again = from_snapshot(to_snapshot(snapshot))
    same(again.module, module)
    assert (again.arguments, again.result, again.platform) == (snapshot.arguments, snapshot.result, "host")
    assert again.result is not None and again.result.parts[0].array.tobytes() == x.tobytes()
    assert from_snapshot(to_snapshot(Snapshot(module))).result is None


def test_shapes_are_interned() -> None:
    module = from_proto(to_proto(parse(PROGRAMS["movement"])))
    shapes: list[Shape] = [i.shape for i in module.instructions() if str(i.shape) == "f32[4,3]{1,0}"]
    assert len(set(map(id, shapes))) == 1

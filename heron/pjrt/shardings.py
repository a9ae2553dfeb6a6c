"""Shardings of programs as clients see them: the header that the compiler reads, and the shardings it chose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from heron.analysis.cost.communication import communicates
from heron.errors import HeronError
from heron.hlo.facts import is_device_id
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding import Sharding, parse
from heron.once import once
from heron.pjrt.compile_options import CompileOptions

#: header fields that say for how many devices a program is
_COUNTS = ("replica_count", "num_partitions")
_TO_PARAMETERS = "allow_spmd_sharding_propagation_to_parameters"
_TO_OUTPUT = "allow_spmd_sharding_propagation_to_output"
_ALIAS = "alias_passthrough_params"
REPLICATED = str(Sharding.replicated())

#: what begins the names of attributes and custom calls by which Shardy talks to XLA
_SHARDY = "xla.sdy."
#: custom calls that a partitioner answers
_OF_PARTITIONERS = ("InspectSharding", "CustomSPMDPartitioning", "SPMDFullToShardShape", "SPMDShardToFullShape")


def works_together(source: Module, options: CompileOptions) -> bool:
    """Whether the devices share the work: values are spread over them, or they talk to each other.

    A program of which this is not true runs on each device as a program for one. Raises PJRT013 when devices would
    work together and the options are for one, PJRT029 for shardings that the compiler shall find.
    """
    if options.use_auto_spmd_partitioning:
        raise HeronError(
            "PJRT029",
            "use_auto_spmd_partitioning: heron does not search for shardings while it compiles",
            hint="give in_shardings, or take those that `heron shard --auto` finds",
        )
    counted = any(source.header.get(n, 1) > 1 for n in _COUNTS)
    several = options.num_replicas * options.num_partitions > 1
    if not several and not counted:
        return False
    is_spread = options.num_partitions > 1 or source.num_partitions > 1
    shared = next((i for i in source.instructions() if _talks(i) or is_spread and _is_cut(i)), None)
    if shared is not None and not several:
        raise _for_one(shared, source)
    return shared is not None


def _for_one(shared: Instruction, source: Module) -> HeronError:
    counts = ", ".join(f"{n}={source.header[n]}" for n in _COUNTS if n in source.header)
    return HeronError(
        "PJRT013",
        f"'{shared.name}' is work of several devices, and the options are for one",
        where=str(shared)[:200],
        why=f"the module says {counts}; num_replicas and num_partitions of the options are 1",
        hint="CompileOptions(num_partitions=…)",
    )


def _talks(i: Instruction) -> bool:
    return communicates(i) is not None or is_device_id(i)


def _is_cut(i: Instruction) -> bool:
    """Whether a sharding says that devices have parts of a value, or that one of them has it."""
    if is_of_partitioners(i):
        return True
    attributes = i.extras.get("frontend_attributes") or {}
    if any(name.startswith(_SHARDY) and _names_axes(str(value)) for name, value in attributes.items()):
        return True
    return i.sharding is not None and any(map(_spreads, i.sharding.elements or (i.sharding,)))


def is_of_partitioners(i: Instruction) -> bool:
    """Whether it is a custom call that a partitioner answers, by functions of Python among others."""
    return i.opcode == "custom-call" and i.custom_call_target in _OF_PARTITIONERS


def _spreads(sharding: Sharding) -> bool:
    named = sharding.named
    if named is not None:
        return bool(named.axes) or named.mesh.is_maximal
    return sharding.is_tiled or sharding.is_unreduced or sharding.unique_device is not None


def _names_axes(shardings: str) -> bool:
    """Whether axes of a mesh, which stand in quotes, are in Shardy's text."""
    return re.search(r'\{\\?"', shardings) is not None


def for_devices(source: Module, options: CompileOptions) -> Module:
    """A copy of a program whose devices work together, with what the options say of them in its header."""
    module = source.clone()
    header = module.header
    for name, value in ((_COUNTS[0], options.num_replicas), (_COUNTS[1], options.num_partitions)):
        header[name] = value
    results = sum(1 for _ in source.entry.root.shape.leaves())
    parameters = sum(1 for p in source.entry.parameters for _ in p.shape.leaves())
    for name, given, count in (
        (_TO_PARAMETERS, options.propagates_to_parameters, parameters),
        (_TO_OUTPUT, options.propagates_to_outputs, results),
    ):
        header[name] = _one_each(given, count, name)
    if options.alias_passthrough_params:
        header[_ALIAS] = True
    return module


def for_one_device(source: Module) -> Module:
    """The program that each device runs by itself."""
    if not any(n in source.header for n in _COUNTS):
        return source
    module = source.clone()
    for name in _COUNTS:
        module.header.pop(name, None)
    return module


def _one_each(given: Sequence[bool], count: int, name: str) -> tuple[bool, ...]:
    """Flags for `count` arrays; one flag stands for all. Raises PJRT006 for another number of them."""
    if len(given) <= 1:
        return (bool(given) and given[0],) * count
    if len(given) != count:
        raise HeronError("PJRT006", f"{name} has {len(given)} entries for {count} arrays", hint="one for each, or one")
    return tuple(given)


# -- what the compiler chose -------------------------------------------------------------------------------------------


def of_parameters(module: Module, shapes: Sequence[Shape]) -> tuple[str, ...]:
    """The shardings of a partitioned program's flat parameters, as tiles."""
    texts = module.spmd_parameter_shardings or (REPLICATED,) * len(shapes)
    return tuple(t for text, shape in zip(texts, shapes, strict=True) for t in _of_leaves(text, shape))


def of_outputs(module: Module, shape: Shape) -> tuple[str, ...]:
    """The shardings of its flat results, as tiles."""
    return tuple(_of_leaves(module.spmd_output_sharding or REPLICATED, shape))


def _of_leaves(text: str, shape: Shape) -> Iterable[str]:
    sharding = parse(text)
    for index, leaf in shape.leaves():
        yield as_tiles(sharding.for_leaf(shape, index)) if leaf.is_array else REPLICATED


def as_tiles(sharding: Sharding) -> str:
    """The text of a sharding without names of axes, as XLA writes it: ``{devices=[2,1]<=[2]}``."""
    return str(sharding.canonical())


@once
def as_bytes(text: str) -> bytes:
    """A sharding's text as the bytes of an OpSharding."""
    if text == REPLICATED:  # every field has its default. The messages take longer to load than a program to compile
        return b""
    from heron.hlo.proto.schema import MESSAGES
    from heron.hlo.proto.sharding import write_sharding

    proto = MESSAGES["OpSharding"]()
    write_sharding(text, proto)
    return proto.SerializeToString()


def shown(module: Module) -> Module:
    """A copy of a partitioned program as XLA shows it: shardings on the entry's parameters alone, as tiles."""
    copy = module.clone()
    for i in copy.instructions():
        i.extras.pop("sharding", None)
    chosen = module.spmd_parameter_shardings
    if chosen is not None:
        copy.spmd_parameter_shardings = tuple(as_tiles(parse(t)) for t in chosen)
        for p, text in zip(copy.entry.parameters, copy.spmd_parameter_shardings, strict=True):
            p.extras["sharding"] = text
    if module.spmd_output_sharding is not None:
        copy.spmd_output_sharding = as_tiles(parse(module.spmd_output_sharding))
    return copy

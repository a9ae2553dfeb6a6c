"""Modules as the bytes of XLA's messages, and back."""

from __future__ import annotations

from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.proto.reader import from_message, parse_message
from heron.hlo.proto.schema import MESSAGES
from heron.hlo.proto.snapshot import from_snapshot
from heron.hlo.proto.sniff import kind
from heron.hlo.proto.writer import serialize, to_message
from heron.hlo.verifier import verify as verify_module


def to_proto(module: Module) -> bytes:
    """The bytes of an HloModuleProto; the same for the same module.

    Facts of the header for which HloModuleProto has no field (replica and partition counts, flags) go into a field of
    heron's own, which XLA skips. Raises PROTO005 and PROTO006 for attributes that have no form there, HLO027 for
    shardings that are none.
    """
    return serialize(to_message(module))


def from_proto(data: bytes, filename: str = "<proto>", *, verify: bool = False) -> Module:
    """The module in the bytes of an HloModuleProto.

    Args:
        data: the bytes.
        filename: what the module remembers as its origin.
        verify: also run the verifier.

    Raises:
        HeronError: PROTO001 (no such message, cut off), PROTO002 (numbers that lead nowhere), PROTO003 (values nobody
            knows), PROTO004 (literals), PROTO005 (unsupported), HLO003 (unknown op), HLO004 (operand count), HLO027
            (groups of devices by axes of a mesh that it has not) and, with
            `verify`, HLO1xx.
    """
    return _verified(from_message(parse_message("HloModuleProto", data), filename), verify)


def to_hlo_proto(module: Module) -> bytes:
    """The bytes of an HloProto that holds the module. Raises what `to_proto` does."""
    to = MESSAGES["HloProto"]()
    to.hlo_module.CopyFrom(to_message(module))
    return serialize(to)


def to_proto_with_config(module: Module, replicas: int = 1, partitions: int = 1) -> bytes:
    """The bytes of an HloModuleProtoWithConfig: the module, its interface and how many devices run it. A module that
    says nothing of shardings is run by each of them on arguments of its own."""
    to = MESSAGES["HloModuleProtoWithConfig"]()
    to.hlo_module.CopyFrom(to_message(module))
    to.config.entry_computation_layout.CopyFrom(to.hlo_module.host_program_shape)
    to.config.replica_count, to.config.num_partitions = replicas, partitions
    if partitions > 1:
        to.config.use_spmd_partitioning = True
    if partitions > 1 and module.spmd_parameter_shardings is None:
        for _ in module.entry.parameters:
            to.hlo_module.spmd_parameters_shardings.add(type=_REPLICATED)
        result = to.hlo_module.spmd_output_sharding
        result.type = _REPLICATED
        parts = module.entry.root.shape.tuple_shapes
        if parts is not None:
            result.type = _TUPLE
            for _ in parts:
                result.tuple_shardings.add(type=_REPLICATED)
    return serialize(to)


#: OpSharding's types
_REPLICATED, _TUPLE = 0, 2


def from_hlo_proto(data: bytes, filename: str = "<proto>", *, verify: bool = False) -> Module:
    """The module in the bytes of an HloProto, whose buffer assignment is not read. Raises what `from_proto` does."""
    return _verified(from_message(parse_message("HloProto", data).hlo_module, filename), verify)


def load(data: bytes, filename: str = "<proto>", *, verify: bool = False) -> Module:
    """The module in the bytes of any of the three messages. Raises what `from_proto` does."""
    found = kind(data)
    if found is None:
        raise HeronError(
            "PROTO001",
            "these bytes are not an HloModuleProto, HloProto or HloSnapshot",
            where=filename,
            why=f"{len(data)} bytes, beginning {data[:8].hex(' ') or 'with nothing'}",
        )
    if found == "HloModuleProto":
        return from_proto(data, filename, verify=verify)
    if found == "HloProto":
        return from_hlo_proto(data, filename, verify=verify)
    return _verified(from_snapshot(data, filename).module, verify)


def _verified(module: Module, verify: bool) -> Module:
    if verify:
        verify_module(module)
    return module

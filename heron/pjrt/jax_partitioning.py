"""Partitioning of custom calls by functions of the user's: `jax.experimental.custom_partitioning`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heron.analysis.sharding.custom import PARTITIONERS, LocalCall
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding import Sharding, parse
from heron.pjrt.shardings import as_bytes, as_tiles

#: the target of the calls
_TARGET = "CustomSPMDPartitioning"


def install() -> None:
    """Let the partitioner find JAX's functions."""
    PARTITIONERS[_TARGET] = _OfJax()


class _OfJax:
    """Asks the functions that JAX keeps by a key, which is the call's configuration."""

    def partition(self, call: Instruction, operands: Sequence[Sharding], result: Sharding) -> LocalCall:
        """The call for one device. Raises what the user's function raises."""
        from jax._src import custom_partitioning

        from heron.frontends.stablehlo.bytecode import to_parts
        from heron.frontends.stablehlo.importer import parse as parse_module

        code, given, gives = custom_partitioning._custom_partitioning_partition(
            _shapes(call), _theirs(operands, call), _shape(call.shape), _their(result, call.shape), _key(call)
        )
        text, elsewhere = to_parts(code, call.name)
        module = parse_module(text, call.name, elsewhere=elsewhere)
        return LocalCall(module, tuple(map(_ours, given)), _ours(gives))

    def infer(self, call: Instruction, operands: Sequence[Sharding]) -> Sharding | None:
        """The result's sharding, where the user has a function that tells it."""
        from jax._src import custom_partitioning

        if custom_partitioning._sharding_callbacks[_key(call)].infer_sharding_from_operands is None:
            return None
        return _ours(
            custom_partitioning._custom_partitioning_infer_sharding_from_operands(
                _shapes(call), _theirs(operands, call), _shape(call.shape), _key(call)
            )
        )

    def from_user(self, call: Instruction, result: Sharding) -> Sharding:
        """The call's sharding for a user of its result."""
        from jax._src import custom_partitioning

        return _ours(
            custom_partitioning._custom_partitioning_propagate_user_sharding(
                _their(result, call.shape), _shape(call.shape), _key(call)
            )
        )


def _key(call: Instruction) -> bytes:
    return str(call.extras.get("backend_config", "")).strip('"').encode()


def _shapes(call: Instruction) -> list[Any]:
    return [_shape(o.shape) for o in call.operands]


def _shape(shape: Shape) -> Any:
    """A shape as jaxlib has it."""
    from jaxlib import xla_client

    if shape.tuple_shapes is not None:
        return xla_client.Shape.tuple_shape([_shape(s) for s in shape.tuple_shapes])
    return xla_client.Shape.array_shape(shape.element_type.dtype, shape.dims)


def _theirs(shardings: Sequence[Sharding], call: Instruction) -> list[Any]:
    return [_their(s, o.shape) for s, o in zip(shardings, call.operands, strict=True)]


def _their(sharding: Sharding, shape: Shape) -> Any:
    """A sharding as jaxlib has it."""
    from jaxlib import xla_client

    proto = xla_client.OpSharding()
    proto.ParseFromString(as_bytes(as_tiles(sharding.spread(shape))))
    return xla_client.HloSharding.from_proto(proto)


def _ours(sharding: Any) -> Sharding:
    from heron.hlo.proto.schema import MESSAGES
    from heron.hlo.proto.sharding import read_sharding

    return parse(read_sharding(MESSAGES["OpSharding"].FromString(sharding.to_proto().SerializeToString())))

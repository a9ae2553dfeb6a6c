"""Partitioning of custom calls by functions of the user's: `jax.experimental.custom_partitioning`, and
`jax.debug.inspect_array_sharding`, which only wants to know how its array is sharded."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

from heron.analysis.sharding.custom import PARTITIONERS, LocalCall
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding import Sharding, parse
from heron.hlo.text import parse as parse_hlo
from heron.pjrt import jax_lowering
from heron.pjrt.shardings import as_bytes, as_tiles

#: functions that ask for a sharding, by the configuration of their call; JAX keeps them as long as the program
_INSPECTORS: WeakValueDictionary[str, Callable[[Any], Any]] = WeakValueDictionary()
_NUMBERS = itertools.count()


def install() -> None:
    """Let the partitioner find JAX's functions."""
    from jaxlib import xla_client

    PARTITIONERS["CustomSPMDPartitioning"] = _OfJax()
    PARTITIONERS["InspectSharding"] = _Inspection()
    xla_client.encode_inspect_sharding_callback = _filing(xla_client.encode_inspect_sharding_callback)


def _filing(encode_any: Any) -> Any:
    """jaxlib's function that writes a callback's address into a call; for heron it is filed by a name instead."""

    @functools.wraps(encode_any)
    def encode(callback: Callable[[Any], Any]) -> bytes:
        if not jax_lowering.is_for_heron():
            return encode_any(callback)
        name = f"inspector {next(_NUMBERS)}"
        _INSPECTORS[name] = callback
        return name.encode()

    return encode


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


class _Inspection:
    """Tells a function of the user's how the operand of a call is sharded; the call itself does nothing."""

    def partition(self, call: Instruction, operands: Sequence[Sharding], result: Sharding) -> LocalCall:
        """The operand as it is. Raises what the user's function raises."""
        del result
        [sharding], [operand] = operands, call.operands
        inspector = _INSPECTORS.get(_key(call).decode())
        if inspector is not None:  # the program it is from may be gone, when another process compiles it again
            inspector(_their(sharding, operand.shape))
        local = sharding.tile_shape(operand.shape)
        module = parse_hlo(f"HloModule inspection\nENTRY e {{ ROOT value = {local} parameter(0) }}")
        return LocalCall(module, (sharding,), sharding)

    def infer(self, call: Instruction, operands: Sequence[Sharding]) -> Sharding | None:
        """That of the operand."""
        del call
        return operands[0]

    def from_user(self, call: Instruction, result: Sharding) -> Sharding:
        """That of the user."""
        del call
        return result


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

"""Global arrays cut into the shares of devices, and put together again, by the shardings of a partitioned program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heron.hlo.facts import is_device_id
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding import Sharding, parse
from heron.hlo.sharding.cutting import share, whole

#: names, ahead of a number, of header attributes with the shardings that callers see of parameters, and of leaves of
#: the result, where these are not by the axes of the program's mesh
PARAMETER_SHARDING, RESULT_SHARDING = "heron.parameter_sharding.", "heron.result_sharding."
#: frontend attributes with shardings of Shardy begin so, and custom calls about shardings and manual computations
_SHARDY = "xla.sdy."
_CALLS = frozenset({"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"})


def is_partitioned(module: Module) -> bool:
    """Whether a module is the program of one device, made from one on global arrays."""
    return module.spmd_parameter_shardings is not None


def is_global(module: Module) -> bool:
    """Whether a module for several devices is a program on global arrays with shardings.

    A program that asks which device it runs on, or has collectives outside of manual computations, is one of a single
    device already, although its parameters may tell how they were sharded.
    """
    if module.num_partitions <= 1 or is_partitioned(module):
        return False
    sharded = talks = manual = False
    for i in module.instructions():
        sharded = sharded or "sharding" in i.extras
        if i.opcode == "custom-call":
            target = i.custom_call_target
            sharded = sharded or target in _CALLS or target.startswith(_SHARDY)
            manual = manual or target in _CALLS or target.startswith(_SHARDY)
        elif any(name.startswith(_SHARDY) for name in i.extras.get("frontend_attributes", ())):
            sharded = True
        talks = talks or Trait.COLLECTIVE in i.op.traits or is_device_id(i)
    return sharded and (manual or not talks)


def shares(source: Module, made: Module, arrays: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    """For each device its shares of the global inputs of `source`, as `made`, its partitioned form, takes them."""
    texts = made.spmd_parameter_shardings or ()
    rows: list[list[np.ndarray]] = [[] for _ in range(made.num_partitions)]
    rest = iter(arrays)
    for i, text in zip(source.entry.parameters, texts, strict=True):
        for leaf, sharding in _leaves(i.shape, parse(text)):
            x = next(rest)
            for device, row in enumerate(rows):
                row.append(share(x, leaf, sharding, device))
    return rows


def joined(source: Module, made: Module, rows: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """The global results of `source` from the results of each device of `made`, its partitioned form."""
    assert made.spmd_output_sharding is not None
    leaves = _leaves(source.result_shape, parse(made.spmd_output_sharding))
    return [whole([np.asarray(row[n]) for row in rows], leaf, sharding) for n, (leaf, sharding) in enumerate(leaves)]


def _leaves(shape: Shape, sharding: Sharding) -> list[tuple[Shape, Sharding]]:
    return [(leaf, sharding.for_leaf(shape, index).plain) for index, leaf in shape.leaves() if leaf.is_array]

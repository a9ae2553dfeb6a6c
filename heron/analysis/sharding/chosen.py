"""The parameters and results whose shardings may be chosen: flags of the header, for each leaf."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding.tiles import reject

_FLAGS = "allow_spmd_sharding_propagation_to_"


def may_choose(module: Module) -> tuple[list[bool], list[bool]]:
    """For each leaf of the parameters, and for each of the result, whether it may get a sharding where it has none.

    The header has one flag for all, one for each parameter (for each part of a result or only parameter that is a
    tuple), or one for each leaf. Without flags all may be chosen. Flags that are equal may be of any number: XLA does
    not count them either. Raises HLO027 for others that do not fit.
    """
    parameters, result = [p.shape for p in module.entry.parameters], [module.entry.root.shape]
    return _flags(module, "parameters", parameters), _flags(module, "output", result)


def _flags(module: Module, what: str, shapes: Sequence[Shape]) -> list[bool]:
    given: Sequence[bool] = module.header.get(_FLAGS + what) or (True,)
    parts = shapes[0].tuple_shapes or shapes if len(shapes) == 1 else shapes
    owners = [n for n, part in enumerate(parts) for _ in part.leaves()]
    if len(set(given)) == 1:
        return [given[0]] * len(owners)
    if len(given) not in (len(parts), len(owners)):
        why = f"{len(given)} flags, {len(parts)} parts with {len(owners)} arrays"
        reject(f"{_FLAGS}{what} does not fit the program", why)
    return list(given) if len(given) == len(owners) else [given[n] for n in owners]

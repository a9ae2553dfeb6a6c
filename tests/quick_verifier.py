"""Verifies ops of MLIR as xDSL does, but looks only once at ops that do not differ.

Tests verify kernels after each transform, and most ops are as they were after the one before: xDSL's checks of them
were half the time of such tests. Whether a definition allows an op's operands, results, attributes and regions depends
on the facts below alone. Traits look at what is around an op, so they are asked each time.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation
from xdsl.irdl import OpDef
from xdsl.traits import OpTrait

_MOST = 20_000
_verify_all = OpDef.verify
#: facts by their ids, which stay theirs while the facts are kept
_seen: dict[tuple[int, ...], tuple[object, ...]] = {}
_asked: dict[int, tuple[OpTrait, ...]] = {}


def use() -> None:
    """Has xDSL verify this way in this process from now on."""
    OpDef.verify = _verify  # type: ignore[method-assign]


def _verify(self: OpDef, op: Operation) -> None:
    facts = tuple(_facts(op))
    key = tuple(map(id, facts))
    if key not in _seen:
        _verify_all(self, op)
        if len(_seen) >= _MOST:
            _seen.clear()
        _seen[key] = facts
        return
    for trait in _traits(self):
        trait.verify(op)


def _facts(op: Operation) -> Iterator[object]:
    yield type(op)
    for value in op.operands:
        yield value.type
    yield None
    for value in op.results:
        yield value.type
    for named in (op.properties, op.attributes):
        yield None
        for name, attribute in named.items():
            yield name
            yield attribute
    yield None
    for block in op.successors:
        yield type(block)
    for region in op.regions:
        yield len(region.blocks)
        if region.first_block is not None:
            for argument in region.first_block.args:
                yield argument.type


def _traits(definition: OpDef) -> tuple[OpTrait, ...]:
    """Those that check something."""
    known = _asked.get(id(definition))
    if known is None:
        found = (t for t in definition.traits if type(t).verify is not OpTrait.verify)
        known = _asked[id(definition)] = tuple(found)
    return known

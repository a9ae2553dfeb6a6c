"""Ops on tiles: values that vary along some axes only are kept that small until they meet others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    TensorType,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from heron.codegen.ir import origins
from heron.codegen.ir.dialects.triton import BroadcastOp, ExpandDimsOp, SplatOp, TransOp
from heron.records import dataclass

_NONE: Mapping[str, Attribute] = {}


@dataclass(frozen=True, slots=True)
class Tile:
    """A scalar, or a tensor with a dimension for each of ``axes``, by number, in the order of the axes."""

    value: SSAValue
    axes: tuple[int, ...] = ()

    @property
    def element(self) -> Attribute:
        """The type of one element."""
        type_ = self.value.type
        return type_.element_type if isinstance(type_, TensorType) else type_


@dataclass(frozen=True, slots=True)
class Axis:
    """``size``: elements along it, a power of two. ``order``: tensors have their axes by rising order."""

    size: int
    order: float


class TileBuilder:
    """Appends ops to a kernel's body and the loops in it; an op is made once, as far outside as its operands are."""

    def __init__(self, entry: Block) -> None:
        self.blocks = [entry]
        self.known: list[dict[object, SSAValue]] = [{}]
        self.axes: dict[int, Axis] = {}

    # -- ops -----------------------------------------------------------------------------------------------------------
    def level(self, value: SSAValue) -> int:
        """The number of loops around a value."""
        owner = value.owner
        block = owner if isinstance(owner, Block) else owner.parent
        return next(n for n, b in enumerate(self.blocks) if b is block)

    def op(
        self,
        kind: type[Operation],
        operands: Sequence[SSAValue] = (),
        type_: Attribute | None = None,
        properties: Mapping[str, Attribute] = _NONE,
    ) -> SSAValue:
        """The result of an op, of the first operand's type unless one is given."""
        result = operands[0].type if type_ is None else type_
        key = (kind, tuple(operands), result, tuple(properties.items()))
        for scope in self.known:
            if key in scope:
                return scope[key]
        made = kind.create(operands=operands, result_types=(result,), properties=dict(properties))
        level = max(map(self.level, operands), default=0)
        self.put(level, made)
        self.known[level][key] = made.results[0]
        return made.results[0]

    def add(self, op: Operation) -> Operation:
        """Append an op made elsewhere to the innermost block."""
        return self.put(-1, op)

    def put(self, level: int, op: Operation) -> Operation:
        """Append an op made elsewhere to the block inside that many loops."""
        if origins.noted is not None:
            origins.noted.note(op, None)
        self.blocks[level].add_op(op)
        return op

    @contextmanager
    def inside(self, block: Block) -> Iterator[None]:
        """Emit into the body of a loop."""
        self.blocks.append(block)
        self.known.append({})
        try:
            yield
        finally:
            self.blocks.pop()
            self.known.pop()

    @contextmanager
    def outside(self, level: int) -> Iterator[None]:
        """Emit what a loop needs that stands in fewer loops than the innermost one."""
        kept = self.blocks[level + 1 :], self.known[level + 1 :]
        del self.blocks[level + 1 :], self.known[level + 1 :]
        try:
            yield
        finally:
            self.blocks += kept[0]
            self.known += kept[1]

    def constant(self, attr: Attribute, type_: Attribute) -> SSAValue:
        return self.op(arith.ConstantOp, (), type_, {"value": attr})

    def integer(self, value: int, type_: Attribute = i32) -> SSAValue:
        return self.constant(IntegerAttr(value, type_), type_)  # type: ignore[call-overload]

    # -- tiles ---------------------------------------------------------------------------------------------------------
    def ordered(self, axes: Sequence[int]) -> tuple[int, ...]:
        """Axes, each once, in the order tensors have them."""
        return tuple(sorted(set(axes), key=lambda n: self.axes[n].order))

    def type_of(self, axes: Sequence[int], element: Attribute) -> Attribute:
        """The type of a tile."""
        return TensorType(element, [self.axes[n].size for n in axes]) if axes else element

    def spread(self, tile: Tile, axes: tuple[int, ...]) -> SSAValue:
        """A tile repeated along further axes, its dimensions in the order of `axes`."""
        if tile.axes == axes:
            return tile.value
        target = self.type_of(axes, tile.element)
        if not tile.axes:
            return self._splat(tile.value, target)
        value = tile.value
        wanted = tuple(n for n in axes if n in tile.axes)
        if wanted != tile.axes:
            order = DenseArrayBase.from_list(i32, [tile.axes.index(n) for n in wanted])
            value = self.op(TransOp, (value,), self.type_of(wanted, tile.element), {"order": order})
        shape = [self.axes[n].size for n in wanted]
        for at, n in enumerate(axes):
            if n not in wanted:
                shape.insert(at, 1)
                value = self.op(ExpandDimsOp, (value,), TensorType(tile.element, shape), {"axis": IntegerAttr(at, i32)})
        return value if value.type == target else self.op(BroadcastOp, (value,), target)

    def _splat(self, scalar: SSAValue, target: Attribute) -> SSAValue:
        owner = scalar.owner
        if isinstance(owner, arith.ConstantOp) and isinstance(target, TensorType):
            value = owner.properties["value"]
            assert isinstance(value, (IntegerAttr, FloatAttr))
            return self.constant(DenseIntOrFPElementsAttr.from_list(target, [value.value.data]), target)
        return self.op(SplatOp, (scalar,), target)

    def each(
        self,
        kind: type[Operation],
        *tiles: Tile,
        element: Attribute | None = None,
        properties: Mapping[str, Attribute] = _NONE,
    ) -> Tile:
        """An op on every element of tiles, along all their axes; ``element``: the result's, if not the operands'."""
        axes = self.ordered([n for t in tiles for n in t.axes])
        operands = [self.spread(t, axes) for t in tiles]
        return Tile(self.op(kind, operands, self.type_of(axes, element or tiles[0].element), properties), axes)

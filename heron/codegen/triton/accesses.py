"""Loads and stores of a block kernel: a tile of an array at an index, masked where the index lies outside."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    IntegerType,
    i8,
)
from xdsl.ir import Attribute, Block, SSAValue

from heron.analysis.blocks.config import BlockConfig
from heron.analysis.blocks.engine import address_of, descriptor_of
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.analysis.indexing.linear import linear_terms
from heron.codegen.ir.dialects.triton_memory import AddPtrOp, LoadOp, StoreOp
from heron.codegen.ir.types import scalar_type
from heron.codegen.triton.engine import fetch
from heron.codegen.triton.positions import Guard, Positions
from heron.codegen.triton.tiles import Tile
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import PRED, ElementType


class Accesses(Positions):
    """Accesses of the arrays of a kernel. ``pointers``: to the arrays that the fusion reads."""

    def __init__(self, block: Block, config: BlockConfig, pointers: dict[Instruction, SSAValue]) -> None:
        super().__init__(block)
        self.config, self.pointers = config, pointers
        #: operands of loops that the copy engine was to fetch, and why it does not, empty where it does
        self.engine: dict[Instruction, str] = {}

    def _address(self, pointer: SSAValue, i: Instruction, index: Index) -> Tile:
        terms, constant = linear_terms(self._simplifier.simplify(address_of(i, index)))
        scalars = [a for a in terms if not self._axes([a])]
        fixed: Expr = Const(constant)
        for atom in scalars:
            fixed = fixed + atom * terms[atom]
        moving: Expr = Const(0)
        for atom, factor in terms.items():
            if atom not in scalars:
                moving = moving + atom * factor
        address = Tile(pointer)
        if fixed != Const(0):
            address = Tile(self.b.op(AddPtrOp, (pointer, self.place(fixed).value)))
        return address if moving == Const(0) else self._moved(address, self.place(moving))

    def _load(self, i: Instruction, index: Index, guard: Guard) -> Tile:
        if self.config.tma and len(self.b.blocks) > 1 and (tile := self._fetched(i, index, guard)) is not None:
            return tile
        b, address, mask = self.b, self._address(self.pointers[i], i, index), self._mask(index, guard)
        stored = stored_type(i.shape.element_type)
        axes = b.ordered([*address.axes, *(mask.axes if mask else ())])
        operands = [b.spread(address, axes)]
        if mask is not None:
            zero = Tile(b.constant(zero_of(stored), stored))
            operands += [b.spread(mask, axes), b.spread(zero, axes)]
        level = max(map(b.level, operands))
        key = (LoadOp, tuple(operands))
        found = b.known[level].get(key)
        if found is None:
            op = LoadOp(operands)
            b.put(level, op)
            found = b.known[level][key] = op.result
        value = Tile(found, axes)
        return self._compare("ne", value, 0) if i.shape.element_type is PRED else value

    def _fetched(self, i: Instruction, index: Index, guard: Guard) -> Tile | None:
        """A tile of a loop by the copy engine; None, with the reason kept, where it has no descriptor."""
        found = descriptor_of(i, self._simplifier.simplify(address_of(i, index)), lambda n: self.b.axes[n].size)
        if guard:
            found = "an edge of a concatenation lies inside its tile"
        elif not isinstance(found, str) and self._level((found.base,)) > 0:
            found = "where it begins changes in the loop"
        self.engine[i] = found if isinstance(found, str) else ""
        if isinstance(found, str):
            return None
        pointer = self.pointers[i]
        if found.base != Const(0):
            pointer = self.b.op(AddPtrOp, (pointer, self.place(found.base).value))
        sides = [(n, self.positions[n].size, self.positions[n].start) for n in (found.rows, found.columns)]
        tile = fetch(self.b, pointer, stored_type(i.shape.element_type), found.stride, sides)
        return self._compare("ne", tile, 0) if i.shape.element_type is PRED else tile

    def _store(self, value: Tile, pointer: SSAValue, i: Instruction, index: Index) -> None:
        b = self.b
        if i.shape.element_type is PRED:
            value = b.each(arith.ExtUIOp, value, element=i8)
        address, mask = self._address(pointer, i, index), self._mask(index, ())
        axes = self._axes(index)
        operands = [b.spread(address, axes), b.spread(value, axes)]
        if mask is not None:
            operands.append(b.spread(mask, axes))
        b.add(StoreOp(operands))

    def _moved(self, address: Tile, offset: Tile) -> Tile:
        return Tile(self.b.op(AddPtrOp, (self.b.spread(address, offset.axes), offset.value)), offset.axes)


def stored_type(t: ElementType) -> Attribute:
    """The type of an element in memory."""
    return i8 if t is PRED or t.is_integer and t.bits < 8 else scalar_type(t)


def zero_of(element: Attribute) -> Attribute:
    return IntegerAttr(0, element) if isinstance(element, IntegerType) else FloatAttr(0.0, element)  # type: ignore

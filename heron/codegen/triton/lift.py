"""Elemental rules on tiles: the ops a rule emits for one element, each done on all elements of a tile.

So a block kernel computes exactly what heron's other kernels do. Where Triton means something else by an op (its
quotients and roots of f32 are approximate), or has none (functions), the op is replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import BoolAttr, Float32Type, Float64Type, FloatAttr, IntegerType, StringAttr, i1, i8
from xdsl.ir import Attribute, Block, Operation, SSAValue

from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.elemental import FunctionEmitter, KernelEmitter, Value
from heron.codegen.elemental.registry import load
from heron.codegen.ir.dialects.triton import BitcastOp, ExternElementwiseOp, FpToFpOp, PreciseDivOp, PreciseSqrtOp
from heron.codegen.ir.types import scalar_type
from heron.codegen.transforms.lib.math_names import FUNCTIONS
from heron.codegen.transforms.lib.nvptx_faults import avoid
from heron.codegen.triton.tiles import Tile, TileBuilder
from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction

#: as libdevice names them, where Triton has no op of its own
_FUNCTIONS: dict[type[Operation], str] = {
    **FUNCTIONS,
    math.RoundEvenOp: "rint",
    math.RoundOp: "round",
    math.TruncOp: "trunc",
    math.CopySignOp: "copysign",
    math.SqrtOp: "sqrt",
}
#: ops that are the same on tensors
_KEPT = frozenset({
    arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.MaximumfOp, arith.MinimumfOp,
    arith.MaxnumfOp, arith.MinnumfOp, arith.CmpfOp, arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.DivSIOp,
    arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, arith.MaxSIOp, arith.MaxUIOp, arith.MinSIOp, arith.MinUIOp,
    arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp, arith.CmpiOp, arith.SelectOp,
    arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp, arith.ExtFOp, arith.TruncFOp, arith.SIToFPOp, arith.UIToFPOp,
    arith.FPToSIOp, arith.FPToUIOp, math.AbsFOp, math.FloorOp, math.CeilOp, math.FmaOp,
})  # fmt: skip


#: elements of 4 bits, each in a byte, and what is done on them
_NIBBLE = IntegerType(4)
_OF_NIBBLES = frozenset({
    arith.ExtSIOp, arith.ExtUIOp, arith.SIToFPOp, arith.UIToFPOp, arith.TruncIOp, arith.BitcastOp,
})  # fmt: skip


class Scalars(FunctionEmitter):
    """Emits rules whose operands are given scalars."""

    def __init__(self, block: Block, given: dict[Instruction, SSAValue]) -> None:
        kernel = KernelEmitter("lifted", cast(Any, SimpleNamespace(functions={})))
        super().__init__(kernel, block, {})
        self._given = given

    def value(self, i: Instruction, index: Index) -> Value:
        return self._given[i]


def lift(b: TileBuilder, i: Instruction, operands: Sequence[Tile]) -> Tile:
    """The elementwise instruction (or scalar constant) `i` on tiles. Raises GEN015 for an op with no block form."""
    distinct = list(dict.fromkeys(i.operands))
    tiles = dict(zip(i.operands, operands, strict=True))
    block = Block(arg_types=[scalar_type(o.shape.element_type) for o in distinct])
    scalars = Scalars(block, dict(zip(distinct, block.args, strict=True)))
    result = load()[i.opcode](scalars, i, ())
    if not isinstance(result, SSAValue):
        raise no_form(i, "its value is complex")
    return replay(b, block, [tiles[o] for o in distinct], avoid(block, result), i)


def replay(b: TileBuilder, block: Block, tiles: Sequence[Tile], result: SSAValue, i: Instruction) -> Tile:
    """The ops of a block of scalars, done on tiles."""
    done: dict[SSAValue, Tile] = dict(zip(block.args, tiles, strict=True))
    for op in block.ops:
        if op.results[0].first_use is None and op.results[0] is not result:
            continue
        if isinstance(op, arith.ConstantOp):
            attr = op.properties["value"]
            done[op.results[0]] = Tile(b.constant(attr, op.results[0].type))
        else:
            done[op.results[0]] = _each(b, op, [done[o] for o in op.operands], i)
    return done[result]


def _each(b: TileBuilder, op: Operation, tiles: Sequence[Tile], i: Instruction) -> Tile:
    kind, element = type(op), op.results[0].type
    if _NIBBLE in (element, *(o.type for o in op.operands)):
        if kind not in _OF_NIBBLES:
            raise no_form(i, f"'{op.name}' is not done on elements of 4 bits")
        if element == _NIBBLE:  # the lower half of a byte; what the upper one has is nobody's
            element = i8
        else:
            tiles = [_unpacked(b, tiles[0], kind in (arith.ExtSIOp, arith.SIToFPOp))]
    if kind in (arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp, arith.BitcastOp) and element == tiles[0].element:
        return tiles[0]
    if kind is arith.BitcastOp:
        return b.each(BitcastOp, *tiles, element=element)
    if kind in (arith.ExtFOp, arith.TruncFOp) and 8 in (_bits(element), _bits(tiles[0].element)):
        return b.each(FpToFpOp, *tiles, element=element)
    if isinstance(element, Float32Type) and kind is arith.DivfOp:
        return b.each(PreciseDivOp, *tiles)
    if isinstance(element, Float32Type) and kind is math.SqrtOp:
        return b.each(PreciseSqrtOp, *tiles)
    if kind is arith.NegfOp:  # Triton has none: -0 - x is -x for every x
        zero = b.constant(FloatAttr(-0.0, element), element)  # type: ignore[call-overload]
        return b.each(arith.SubfOp, Tile(zero), *tiles)
    if kind in _FUNCTIONS and isinstance(element, (Float32Type, Float64Type)):
        return b.each(ExternElementwiseOp, *tiles, element=element, properties=function_of(_FUNCTIONS[kind], element))
    if kind not in _KEPT:
        raise no_form(i, f"there is no '{op.name}' on tiles")
    kept = {name: p for name, p in op.properties.items() if name == "predicate"}
    return b.each(kind, *tiles, element=i1 if kind in (arith.CmpfOp, arith.CmpiOp) else element, properties=kept)


def _unpacked(b: TileBuilder, x: Tile, signed: bool) -> Tile:
    """Elements of 4 bits as bytes of the same value."""
    if not signed:
        return b.each(arith.AndIOp, x, Tile(b.integer(15, i8)))
    four = Tile(b.integer(4, i8))
    return b.each(arith.ShRSIOp, b.each(arith.ShLIOp, x, four), four)


def function_of(name: str, element: Attribute) -> dict[str, Attribute]:
    """The meaning of a call of libdevice's function of that name on f32 or f64."""
    empty = StringAttr("")
    symbol = StringAttr(f"__nv_{name}{'f' if isinstance(element, Float32Type) else ''}")
    return {"libname": empty, "libpath": empty, "pure": BoolAttr.from_bool(True), "symbol": symbol}


def _bits(element: Attribute) -> int:
    return getattr(element, "bitwidth", 0)


def no_form(i: Instruction, why: str) -> HeronError:
    """GEN015: an instruction that block kernels cannot hold."""
    return HeronError(
        "GEN015", f"no block kernel can contain '{i.opcode}'", where=str(i), why=why, hint="compile with triton=off"
    )

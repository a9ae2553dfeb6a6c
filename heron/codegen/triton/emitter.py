"""From a fusion to a block kernel: the value of an instruction at an index that holds for a whole tile.

As in the other emitters, indices are expressions, here over *positions*: where in a dimension of the result a program
is (with a tile of it, or one element), or how far a sum has come. Moving elements costs nothing, and what a value
varies along follows from its index.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    UnitAttr,
    f32,
    i32,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from heron.analysis.blocks.config import WHOLE, BlockConfig
from heron.analysis.blocks.tiling import Tiling, factor_index, holds_rows, split, used, whole_dims
from heron.analysis.fusion.fusion import Fusion
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index, moves_elements, operand_index
from heron.analysis.indexing.simplify import Simplifier, simplifier
from heron.codegen.elemental.arithmetic import binary
from heron.codegen.elemental.convert import convert
from heron.codegen.elemental.floats import narrow, widen
from heron.codegen.elemental.values import scalar_of
from heron.codegen.ir import origins
from heron.codegen.ir.dialects.triton import (
    DotOp,
    FuncOp,
    GetProgramIdOp,
    ReduceOp,
    ReduceReturnOp,
    ReturnOp,
)
from heron.codegen.ir.dialects.triton_memory import PtrType
from heron.codegen.ir.types import compute_type, scalar_type
from heron.codegen.triton.accesses import Accesses, stored_type, zero_of
from heron.codegen.triton.lift import Scalars, lift, no_form, replay
from heron.codegen.triton.positions import Guard, Position
from heron.codegen.triton.tiles import Tile, TileBuilder
from heron.hlo import facts
from heron.hlo.facts import combiner
from heron.hlo.ir import types
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import S32, ElementType

#: programs that work on neighbouring rows at the same time, so that they share the columns they read in the L2 cache
GROUP = 8
#: types whose sums have more digits
_WIDE = frozenset({types.F64, types.S64, types.U64, types.U32})
#: elements of 8-bit floats that are added up as matrix units do it, in 14 bits, before they go to a sum in f32
IMPRECISE = 128


class BlockEmitter(Accesses):
    """Emits one kernel. ``config`` says the tiles of its result and of the steps of its sums."""

    def __init__(self, fusion: Fusion, config: BlockConfig, name: str) -> None:
        self.fusion, self.config, self.name = fusion, config, name
        shapes = [*(p.shape for p in fusion.inputs), *(o.shape for o in fusion.outputs)]
        self.block = Block(arg_types=[PtrType(stored_type(s.element_type)) for s in shapes])
        for n, argument in enumerate(self.block.args):
            argument.name_hint = "in" if n < len(fusion.inputs) else "out"
        self.pointers = dict(zip(fusion.inputs, self.block.args, strict=False))
        self.b = TileBuilder(self.block)
        self.positions: list[Position] = []
        self._simplifier: Simplifier = simplifier(())
        self._values: dict[object, Tile] = {}
        #: operands of loops that the copy engine was to fetch, and why it does not, empty where it does
        self.engine: dict[Instruction, str] = {}
        self._inside = frozenset(fusion.computation.instructions)
        # the result that tiles are of: the largest, for others are what is reduced for it
        self.main = max((o.instruction for o in fusion.outputs), key=lambda i: i.shape.num_elements)
        self._tiling = Tiling(self.main, self._inside, whole_dims(self.main.shape.dims, config.tiles))

    def emit(self) -> tuple[ModuleOp, int]:
        """The module of the kernel, and how many programs run it. Raises GEN015 for what has no block form."""
        for i, why in self._tiling.refusals:
            raise no_form(i, why)
        index, programs = self._root_index()
        pointers = self.block.args[len(self.fusion.inputs) :]
        outputs = [o.instruction for o in self.fusion.outputs]
        places = [self._place_of(i, index) for i in outputs]
        # all values first: an output may share its buffer with an input
        values = [self.value(i, place) for i, place in zip(outputs, places, strict=True)]
        for i, place, value, pointer in zip(outputs, places, values, pointers, strict=True):
            self._store(value, pointer, i, place)
        self.b.add(ReturnOp.create())
        _drop_unused(self.block)
        return ModuleOp([FuncOp(self.name, Region(self.block))]), programs

    def _place_of(self, i: Instruction, index: Index) -> Index:
        """The index of an output when the main one is at `index`."""
        if i.shape.dims == self.main.shape.dims:
            return index
        found = self._tiling.place_of(i)
        if found is None:
            raise no_form(i, "its elements do not follow the tiles of the fusion's largest result")
        return found

    # -- the grid ------------------------------------------------------------------------------------------------------
    def _root_index(self) -> tuple[Index, int]:
        """The index of the result that a program computes, from which program it is."""
        dims = self.main.shape.dims
        tiles = self.config.tiles
        counts = [-(-n // t) for n, t in zip(dims, tiles, strict=True)]
        places = self._places(counts)
        tiled = [d for d, t in enumerate(tiles) if t > 1]
        index: list[Expr] = []
        for d, (size, tile, place) in enumerate(zip(dims, tiles, places, strict=True)):
            order = float(d if d == tiled[0] else d * 1e6) if tiled else 0.0
            index.append(self._position(size, tile, order, place if counts[d] > 1 else None))
        return tuple(index), prod(counts)

    def _places(self, counts: list[int]) -> list[SSAValue]:
        """The tile along each dimension, from the program's number; tiles of the last two go in groups."""
        b = self.b
        rest = b.op(GetProgramIdOp, (), i32, {"axis": IntegerAttr(0, i32)})
        places: list[SSAValue] = []
        tiled = [d for d, t in enumerate(self.config.tiles) if t > 1][-2:]
        grid = [counts[d] for d in tiled]
        grouped = len(grid) == 2 and min(grid) > 1 and tiled[1] == len(counts) - 1 and tiled[0] == len(counts) - 2
        for d in reversed(range(len(counts))):
            if grouped and d >= len(counts) - 2:
                if d == len(counts) - 1:
                    inside = self._by(arith.RemSIOp, rest, prod(grid))
                    places += self._grouped(inside, grid[0], grid[1])
                    rest = self._by(arith.DivSIOp, rest, prod(grid))
                continue
            places.insert(0, self._by(arith.RemSIOp, rest, counts[d]))
            rest = self._by(arith.DivSIOp, rest, counts[d])
        return places

    def _grouped(self, place: SSAValue, rows: int, columns: int) -> list[SSAValue]:
        """Row and column of a place when places go down `GROUP` rows, then to the next column."""
        b = self.b
        first = b.op(arith.MuliOp, (self._by(arith.DivSIOp, place, GROUP * columns), b.integer(GROUP)))
        height = b.op(arith.MinSIOp, (b.op(arith.SubiOp, (b.integer(rows), first)), b.integer(GROUP)))
        inside = self._by(arith.RemSIOp, place, GROUP * columns)
        row = b.op(arith.AddiOp, (first, b.op(arith.RemSIOp, (inside, height))))
        return [row, b.op(arith.DivSIOp, (inside, height))]

    def _by(self, kind: type, value: SSAValue, n: int) -> SSAValue:
        return self.b.op(kind, (value, self.b.integer(n)))

    # -- values --------------------------------------------------------------------------------------------------------
    def value(self, i: Instruction, index: Index, guard: Guard = ()) -> Tile:
        """The tile of `i` at an index. Raises GEN015 for what has no block form."""
        key = (i, index, guard)
        found = self._values.get(key)
        if found is not None and self._is_live(found):
            return found
        with origins.computing(i.name):
            found = self._values[key] = self._compute(i, index, guard)
        return found

    def _is_live(self, tile: Tile) -> bool:
        owner = tile.value.owner
        block = owner if isinstance(owner, Block) else owner.parent
        return any(b is block for b in self.b.blocks)

    def _compute(self, i: Instruction, index: Index, guard: Guard) -> Tile:
        match i.opcode:
            case "parameter":
                return self._load(i, index, guard)
            case "iota":
                return self._number(index[i.iota_dimension], i.shape.element_type, i)
            case "concatenate":
                return self._concatenate(i, index, guard)
            case "reduce":
                return self._reduce(i, index, guard)
            case "dot":
                return self._dot(i, index, guard)
        if moves_elements(i) and not i.op.is_elementwise:
            return self.value(i.operands[0], self.simplify(operand_index(i, 0, index)), guard)
        if i.opcode != "constant" and not i.op.is_elementwise:
            raise no_form(i, "it has no rule")
        operands = [self.value(o, index if o.shape.dims == i.shape.dims else (), guard) for o in i.operands]
        return lift(self.b, i, operands)

    def _number(self, e: Expr, t: ElementType, i: Instruction) -> Tile:
        """An index expression as numbers of a type."""
        block = Block(arg_types=[i32])
        value = scalar_of(convert(Scalars(block, {}), block.args[0], S32, t))
        return replay(self.b, block, [self.place(e)], value, i)

    def _concatenate(self, i: Instruction, index: Index, guard: Guard) -> Tile:
        d = i.dimensions[0]
        at, start = index[d], 0
        least, most = self._simplifier.range_of(at)
        result: Tile | None = None
        for o in i.operands:
            size = o.shape.dims[d]
            first, start = start, start + size
            if most < first or least >= start:
                continue
            here = self._simplifier.simplify(at - first)
            inside = self.simplify([*index[:d], here, *index[d + 1 :]])
            alone = first <= least and most < start
            value = self.value(o, inside, guard if alone else (*guard, (here, 0, size - 1)))
            if result is None:
                result = value
            else:
                test = self._compare("sge", self.place(at), first)
                result = self.b.each(arith.SelectOp, test, value, result, element=value.element)
        assert result is not None
        return result

    def _only(self, value: Tile, inside: Tile | None, other: SSAValue) -> Tile:
        """`value` where `inside` is true, else `other`."""
        if inside is None:
            return value
        return self.b.each(arith.SelectOp, inside, value, Tile(other), element=value.element)

    # -- reductions ----------------------------------------------------------------------------------------------------
    def _reduce(self, i: Instruction, index: Index, guard: Guard) -> Tile:
        """Rows held whole, combined in the type arithmetic is done in."""
        opcode, t = combiner(i.to_apply), i.shape.element_type
        if opcode is None or len(i.operands) != 2:
            raise no_form(i, "its combination is no single operation")
        source, wide = i.operands[0], compute_type(t)
        gone, kept = set(i.dimensions), iter(index)
        full: list[Expr] = [Const(-1) if d in gone else next(kept) for d in range(source.shape.rank)]
        for d in sorted(gone):
            full[d] = self._whole(source.shape.dims[d], [e for e in full if e != Const(-1)])
        value = self._wide(self.value(source, tuple(full), guard), t, i)
        for d in sorted(gone):
            value = self._reduced(value, full[d], opcode, wide)
        start = self._wide(self.value(i.operands[1], ()), t, i)
        value = self._combined(value, start, opcode, wide, i)
        return self._narrow(value, t, i)

    def _reduced(self, value: Tile, row: Expr, opcode: str, t: ElementType) -> Tile:
        """A value combined along the axis of a position; what lies outside the dimension counts as nothing."""
        (axis,) = self._axes([row])
        axes = self.b.ordered([*value.axes, axis])
        value = self._only(Tile(self.b.spread(value, axes), axes), self._mask([row], ()), self._identity(opcode, t))
        return self._along(value, axis, opcode, t)

    def _identity(self, opcode: str, t: ElementType) -> SSAValue:
        return self.b.constant(_number(facts.identity(opcode, t), t), scalar_type(t))

    def _along(self, value: Tile, axis: int, opcode: str, t: ElementType) -> Tile:
        at = value.axes.index(axis)
        left = tuple(n for n in value.axes if n != axis)
        scalar = scalar_type(t)
        body = Block(arg_types=[scalar, scalar])
        result = _combine(body, opcode, t)
        body.add_op(ReduceReturnOp.create(operands=[result]))
        op = ReduceOp.create(
            operands=[value.value],
            result_types=[self.b.type_of(left, scalar)],
            properties={"axis": IntegerAttr(at, i32)},
            regions=[Region(body)],
        )
        self.b.put(self.b.level(value.value), op)
        return Tile(op.results[0], left)

    def _combined(self, a: Tile, c: Tile, opcode: str, t: ElementType, i: Instruction) -> Tile:
        block = Block(arg_types=[scalar_type(t)] * 2)
        return replay(self.b, block, [a, c], _combine(block, opcode, t), i)

    def _wide(self, value: Tile, t: ElementType, i: Instruction) -> Tile:
        block = Block(arg_types=[scalar_type(t)])
        return replay(self.b, block, [value], widen(Scalars(block, {}), block.args[0], t), i)

    def _narrow(self, value: Tile, t: ElementType, i: Instruction) -> Tile:
        block = Block(arg_types=[scalar_type(compute_type(t))])
        return replay(self.b, block, [value], narrow(Scalars(block, {}), block.args[0], t), i)

    # -- products ------------------------------------------------------------------------------------------------------
    def _dot(self, i: Instruction, index: Index, guard: Guard) -> Tile:
        """A product: all of the sum at once where it is short or its operands need rows whole, else in steps."""
        if any(x.shape.element_type in _WIDE for x in (i, *i.operands)):
            raise no_form(i, f"sums on tiles are in f32 or s32, it gives {i.shape.element_type}")
        size = i.operands[0].shape.dims[i.lhs_contracting_dims[0]]
        order = self._order_between(i, index)
        if size <= WHOLE or any(holds_rows(o, self._inside) for o in i.operands):
            k = self._whole(size, index, order)
            return self._result(self._product(i, index, k, guard, self._zeros(i, index)), i)
        with self.b.outside(self._level(index)):
            ways = self._together(i, index) if not guard else [index]
            for way, total in zip(ways, self._steps(i, ways, size, order, guard, self.config.block_k), strict=True):
                self._values[i, way, guard] = self._result(total, i)
        return self._values[i, index, guard]

    def _order_between(self, i: Instruction, index: Index) -> float:
        """The place of the sum's axis of a product: after its rows and before its columns, or the other way round."""
        _, m, n = split(i, index)
        return sum(self.b.axes[self._one_axis(part, i)].order for part in (m, n)) / 2

    def _together(self, i: Instruction, index: Index) -> list[Index]:
        """The places of the result where the same rows of a product are needed: their sums share a loop."""
        here = split(i, index)[:2]
        others = [way for way in self._tiling.values.get(i, ()) if way != index and split(i, way)[:2] == here]
        dims = len(self.config.tiles)
        same = [way for way in others if used(way) == used(index)]
        return [index, *(way for way in same if all(v < dims for v in used(way)))]

    def _steps(
        self, i: Instruction, ways: Sequence[Index], size: int, order: float, guard: Guard, step: int
    ) -> list[Tile]:
        """Sums of products in steps, for each of the places."""
        b = self.b
        starts = [self._zeros(i, way) for way in ways]
        body = Block(arg_types=[i32, *(s.value.type for s in starts)])
        with b.inside(body):
            k = self._position(size, step, order, body.args[0], step=1)
            carried = [Tile(v, s.axes) for v, s in zip(body.args[1:], starts, strict=True)]
            sums = [self._product(i, way, k, guard, c) for way, c in zip(ways, carried, strict=True)]
            b.add(scf.YieldOp(*(s.value for s in sums)))
        return self._loop(body, size, step, starts)

    def _loop(self, body: Block, size: int, step: int, starts: Sequence[Tile]) -> list[Tile]:
        """A loop over a dimension of `size` in steps; returns the carried values at its end."""
        low, high, by = (self.b.integer(v) for v in (0, -(-size // step) * step, step))
        loop = scf.ForOp(low, high, by, [s.value for s in starts], Region(body))
        if self.config.specialized:
            loop.attributes["tt.warp_specialize"] = UnitAttr()
        self.b.add(loop)
        return [Tile(v, s.axes) for v, s in zip(loop.results, starts, strict=True)]

    def _product(self, i: Instruction, index: Index, k: Expr, guard: Guard, start: Tile) -> Tile:
        b = self.b
        batch, m, n = split(i, index)
        k_axis = self._axes([k])[0]
        parts = []
        for number, (o, free) in enumerate(zip(i.operands, (m, n), strict=True)):
            value = self.value(o, self.simplify(factor_index(i, number, batch, k, free)), guard)
            if o.opcode != "parameter":  # what a load leaves out is 0 already
                zero = b.constant(zero_of(value.element), value.element)
                value = self._only(value, self._mask([k], ()), zero)
            parts.append(value)
        m_axis, n_axis = self._one_axis(m, i), self._one_axis(n, i)
        if b.axes[m_axis].order > b.axes[n_axis].order:  # the transposed product
            parts.reverse()
            m_axis, n_axis = n_axis, m_axis
        a = b.spread(parts[0], (m_axis, k_axis))
        c = b.spread(parts[1], (k_axis, n_axis))
        t, precision = i.operands[0].shape.element_type, self.config.precision if parts[0].element == f32 else "ieee"
        most = min(IMPRECISE, b.axes[k_axis].size) if t.is_float and t.bits == 8 else 0
        op = DotOp(a, c, start.value, precision, most)
        b.put(max(map(b.level, op.operands)), op)
        return Tile(op.result, start.axes)

    def _one_axis(self, index: Sequence[Expr], i: Instruction) -> int:
        axes = self._axes(index)
        if len(axes) != 1:
            raise no_form(i, f"its rows or columns lie along {len(axes)} axes of the tile")
        return axes[0]

    def _zeros(self, i: Instruction, index: Index) -> Tile:
        t, (_, m, n) = _sum_type(i), split(i, index)
        axes = self.b.ordered([self._one_axis(m, i), self._one_axis(n, i)])
        return Tile(self.b.spread(Tile(self.b.constant(zero_of(t), t)), axes), axes)

    def _result(self, total: Tile, i: Instruction) -> Tile:
        block = Block(arg_types=[total.element])
        of = S32 if total.element == i32 else types.F32
        value = scalar_of(convert(Scalars(block, {}), block.args[0], of, i.shape.element_type))
        return replay(self.b, block, [total], value, i)


def _drop_unused(block: Block) -> None:
    """Take out what nothing needs: constants that were only wanted as tensors."""
    for op in reversed(list(block.ops)):
        for region in op.regions:
            _drop_unused(region.block)
        if op.results and all(r.first_use is None for r in op.results):
            block.erase_op(op)


def _combine(block: Block, opcode: str, t: ElementType) -> SSAValue:
    """Two scalars, the block's arguments, combined."""
    bitwise = {"and": arith.AndIOp, "or": arith.OrIOp, "xor": arith.XOrIOp}.get(opcode)
    e, (x, y) = Scalars(block, {}), block.args
    return e.b.op(bitwise, x, y) if bitwise is not None else scalar_of(binary(e, opcode, x, y, t))


def _sum_type(dot: Instruction) -> Attribute:
    return i32 if dot.shape.element_type.is_integer else scalar_type(types.F32)


def _number(value: object, t: ElementType) -> Attribute:
    element = scalar_type(t)
    if t.is_float:
        return FloatAttr(float(value), element)  # type: ignore[arg-type]
    return IntegerAttr(int(value), element, truncate_bits=True)  # type: ignore[call-overload]

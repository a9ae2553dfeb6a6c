"""collective-reduction-expander: reductions that NCCL does not do, by exchanges of arrays that each device combines."""

from __future__ import annotations

import functools

from heron.hlo.facts import identity, is_order_free, opcodes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import F32, S32
from heron.hlo.meaning.batched import simple_opcode
from heron.hlo.verifier.groups import Mode, mode
from heron.passes.collectives.model.places import group_size, place_in_group, starts_at
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, convert, reshape, scalar, transpose
from heron.records import dataclass
from heron.targets.libnccl import combination

#: collectives that combine the operands of a group and are not begun by an op of their own
_COMBINING = opcodes(lambda op: Trait.COLLECTIVE in op.traits and "to_apply" in op.attributes and not op.done)


@register
@dataclass(frozen=True)
class CollectiveReductionExpander(Pass):
    """Replaces all-reduces and reduce-scatters that NCCL does not do as HLO means them.

    Those are reductions by an op, or of a type, that NCCL lacks, and extrema of floats, where it may lose a NaN (with
    `math=fast` it may). Every device gets the operands of all, or its part of each, and combines them in the order of
    ranks, narrow floats in f32.

    HloModule example, num_partitions=2

    most {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT m = f32[] maximum(a, b)
    }

    ROOT r = f32[4] all-reduce(f32[4] x), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true,
      to_apply=most
    ->
    HloModule example, num_partitions=2

    one = f32[1,4] reshape(x)
    g = f32[2,4] all-gather(one), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, dimensions={0}
    least = f32[] constant(-inf)
    ROOT r = f32[4] reduce(g, least), dimensions={0}, to_apply=most
    """

    name = "collective-reduction-expander"
    constraints = (
        Constraint("collective-reduction-expander", "map-inliner", "it makes maps of other reducers"),
        Constraint("all-reduce-promotion", "collective-reduction-expander", "a wider sum sends less than all operands"),
        Constraint("reduce-scatter-creator", "collective-reduction-expander", "that looks for all-reduces"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        exact, changed = not ctx.options.allows("finite-only"), False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode not in _COMBINING:
                    continue
                opcode = simple_opcode(i.to_apply)
                odd = {o.shape.element_type for o in i.operands if not _is_done(opcode, o, exact)}
                size = group_size(i, module) if odd else None
                if size is None:
                    continue
                told = f"NCCL does not combine {', '.join(sorted(t.name for t in odd))} by {opcode or 'this reducer'}"
                ctx.decide(True, told, subject=i.name)
                _Expansion(i, module, size, opcode, exact).run()
                changed = True
        return changed


def _is_done(opcode: str | None, operand: Instruction, exact: bool) -> bool:
    return combination(opcode, operand.shape.element_type, exact) is not None


class _Expansion:
    """One collective, among groups of `size` devices, with the `opcode` of its reducer if that is one op."""

    def __init__(self, i: Instruction, module: Module, size: int, opcode: str | None, exact: bool) -> None:
        assert i.parent is not None
        self.i, self.c, self.module, self.size, self.exact = i, i.parent, module, size, exact
        self.opcode = None if opcode == "second" else opcode

    def run(self) -> None:
        """Replace it: each array that NCCL does not combine by itself, the others one by one."""
        i, results = self.i, list[Instruction]()
        shapes = i.shape.tuple_shapes if i.shape.tuple_shapes is not None else (i.shape,)
        for x, shape in zip(i.operands, shapes, strict=True):
            if _is_done(self.opcode, x, self.exact):
                results.append(self.c.add(i.opcode, [x], shape, like=i, **i.attrs))
            elif i.opcode == "all-reduce":
                results.append(self.combined(self.gathered(x)))
            else:
                results.append(self.scattered(x, shape))
        self.c.replace(i, results[0] if i.shape.tuple_shapes is None else self.c.add("tuple", results, i.shape, like=i))

    def gathered(self, x: Instruction) -> Instruction:
        """The operands of all members, along a first dimension."""
        attrs = {k: v for k, v in self.i.attrs.items() if k not in ("to_apply", "dimensions")}
        one, whole = reshape(x, (1, *x.shape.dims)), array(x.shape.element_type, (self.size, *x.shape.dims))
        return self.c.add("all-gather", [one], whole, like=self.i, **attrs, dimensions=(0,))

    def scattered(self, x: Instruction, shape: Shape) -> Instruction:
        """This device's part of the combined operands.

        Groups of an all-to-all cannot name devices of several replicas: there all is gathered.
        """
        i, (dim,) = self.i, self.i.dimensions
        if mode(i) is not Mode.REPLICAS and self.module.replica_count > 1:
            at = self.c.add("multiply", [place_in_group(i, self.module), scalar(self.c, S32, shape.dims[dim])], None)
            starts = starts_at(i, dim, at, x.shape.rank)
            whole = self.combined(self.gathered(x))
            return self.c.add("dynamic-slice", [whole, *starts], shape, like=i, dynamic_slice_sizes=shape.dims)
        dims = x.shape.dims
        cut = reshape(x, (*dims[:dim], self.size, dims[dim] // self.size, *dims[dim + 1 :]))
        first = transpose(cut, (dim, *(d for d in range(len(dims) + 1) if d != dim)))
        kept = ("channel_id", "replica_groups")
        attrs = {k: v for k, v in i.attrs.items() if k in kept}
        return self.combined(self.c.add("all-to-all", [first], first.shape, like=i, **attrs, dimensions=(0,)))

    def combined(self, parts: Instruction) -> Instruction:
        """Parts reduced along their first dimension."""
        t, (size, *dims) = parts.shape.element_type, parts.shape.dims
        opcode, i = self.opcode, self.i
        start = identity(opcode, t) if opcode is not None and is_order_free(opcode) else None
        if start is not None:
            zero = scalar(self.c, t, start)
            return self.c.add("reduce", [parts, zero], array(t, dims), like=i, dimensions=(0,), to_apply=i.to_apply)
        wide, each = opcode is not None and t.is_float and t.bits < 32, list[Instruction]()
        for n in range(size):
            bounds = ((n, n + 1, 1), *((0, d, 1) for d in dims))
            part = reshape(self.c.add("slice", [parts], array(t, (1, *dims)), slice=bounds), dims)
            each.append(convert(part, F32) if wide else part)
        total = functools.reduce(self.applied, each)
        return convert(total, t) if wide else total

    def applied(self, a: Instruction, b: Instruction) -> Instruction:
        """The reducer, elementwise."""
        if self.opcode is not None:
            return self.c.add(self.opcode, [a, b], a.shape, like=self.i)
        dims = tuple(range(a.shape.rank))
        return self.c.add("map", [a, b], a.shape, like=self.i, dimensions=dims, to_apply=self.i.to_apply)

"""reduce-scatter-creator: an all-reduce of which each device takes its own part is a reduce-scatter."""

from __future__ import annotations

from heron.analysis.devices.groups import device_groups
from heron.analysis.devices.own_part import sliced_dimension, takes_own_part
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import reshape
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ReduceScatterCreator(Pass):
    """Replaces an all-reduce and the dynamic-slices of each device's own part by a reduce-scatter: half the bytes.

    The start of the slice is computed for every device, so that any spelling is found: arithmetic on the device's
    number, or a table. The parts must be as many as the group has devices, in the order of the group, and nothing else
    may need the whole sum. It may be reshaped before it is sliced, and end in elements that nobody takes.

    HloModule example, replica_count=2

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    r = f32[4] all-reduce(f32[4] x), to_apply=sum
    id = u32[] replica-id()
    two = u32[] constant(2)
    at = u32[] multiply(id, two)
    ROOT d = f32[2] dynamic-slice(r, at), dynamic_slice_sizes={2}
    ->
    HloModule example, replica_count=2

    ROOT d = f32[2] reduce-scatter(x), dimensions={0}, to_apply=sum
    """

    name = "reduce-scatter-creator"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                dim = _scattered_dimension(i, module) if i.opcode == "all-reduce" else None
                if dim is None:
                    continue
                slices = list(_form(i).users)
                attrs = {**i.attrs, "dimensions": (dim,)}
                scattered = c.add("reduce-scatter", [_whole(i, dim, module)], slices[0].shape, like=i, **attrs)
                for s in slices:
                    c.replace(s, scattered)
                ctx.decide(True, "each device needs its own part of the sum only", subject=i.name)
                changed = True
        return changed


def _form(i: Instruction) -> Instruction:
    """The sum, in the last form that it is reshaped to before anything else is done with it."""
    while len(i.users) == 1 and not i.is_root and next(iter(i.users)).opcode == "reshape":
        (i,) = i.users
    return i


def _scattered_dimension(i: Instruction, module: Module) -> int | None:
    """The dimension along which all users of an all-reduce take the own part of their device."""
    form = _form(i)
    if not is_alone(i) or form.is_root or not form.users or any(u.opcode != "dynamic-slice" for u in form.users):
        return None
    users = list(form.users)
    dim = sliced_dimension(users[0])
    if dim is None or any(u.shape.bare is not users[0].shape.bare or form in u.operands[1:] for u in users):
        return None
    groups = device_groups(i, module)
    sizes = {len(g) for g in groups}
    if len(sizes) != 1 or max(sizes) * users[0].shape.dims[dim] > form.shape.dims[dim]:
        return None
    return dim if all(takes_own_part(u, dim, groups, module) for u in users) else None


def _whole(i: Instruction, dim: int, module: Module) -> Instruction:
    """The operand of an all-reduce in the form that is sliced, as far as all parts together reach."""
    c, form = i.parent, _form(i)
    assert c is not None
    x = reshape(i.operands[0], form.shape.dims)
    count, part = len(device_groups(i, module)[0]), next(iter(form.users)).shape.dims[dim]
    if count * part == x.shape.dims[dim]:
        return x
    dims = tuple(count * part if d == dim else n for d, n in enumerate(x.shape.dims))
    return c.add("slice", [x], x.shape.with_dims(dims), like=i, slice=tuple((0, n, 1) for n in dims))

"""dynamic-slice-fusion-rewriter: a product reads slices of its operands where they lie."""

from __future__ import annotations

from collections.abc import Callable

from heron.analysis.fusion.roles import is_emitted, is_view
from heron.analysis.fusion.sliced_product import CONFIG, Place, place_of, takes_block
from heron.analysis.graph.donation import donated_parameters
from heron.hlo.facts import is_plain_product, plain_products, updated_operands
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.build import fuse
from heron.passes.rewriting.building import copy_body
from heron.records import dataclass

#: bytes of which the addresses that kernels take are multiples
_ALIGNMENT = 16


def _none(_: Instruction) -> bool:
    return False


@register
@dataclass(frozen=True)
class DynamicSliceFusionRewriter(Pass):
    """Fuses products with kernels that only copy a slice for them, such as one layer's weights out of all layers'.

    A slice of neighbouring bytes is an address, and the code of dots and convolutions takes any. So nothing is copied,
    and no memory needed for the copy. Numbers that say where a slice begins are computed before, by a kernel for
    scalars. A slice of an array that an update may overwrite is copied still: to keep that array could take a copy of
    the whole, and so is one at an odd address for a product that a kernel of heron's computes. ``most``: bytes of a
    product's result; ``takes_any``: whether a library computes a product, which takes any address.

    part {
      w = f32[8,64,64] parameter(0)
      n = s32[] parameter(1)
      zero = s32[] constant(0)
      s = f32[1,64,64] dynamic-slice(w, n, zero, zero), dynamic_slice_sizes={1,64,64}
      ROOT m = f32[64,64] reshape(s)
    }

    m = f32[64,64] fusion(f32[8,64,64] w, s32[] n), kind=kLoop, calls=part
    ROOT d = f32[32,64] dot(f32[32,64] x, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    sliced_dot {
      x = f32[32,64] parameter(2)
      w = f32[8,64,64] parameter(0)
      n = s32[] parameter(1)
      zero = s32[] constant(0)
      s = f32[1,64,64] dynamic-slice(w, n, zero, zero), dynamic_slice_sizes={1,64,64}
      m = f32[64,64] reshape(s)
      ROOT d = f32[32,64] dot(x, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }

    ROOT f = f32[32,64] fusion(w, n, x), kind=kCustom, calls=sliced_dot,
      backend_config={"fusion_backend_config":{"kind":"__sliced_product"}}
    """

    name = "dynamic-slice-fusion-rewriter"
    looks_for = plain_products()
    most: int = 1 << 62
    takes_any: Callable[[Instruction], bool] = _none
    constraints = (Constraint("instruction-fusion", "dynamic-slice-fusion-rewriter", "slices are kernels by then"),)

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in list(module.non_fusion_computations()):
            for product in [i for i in c.instructions if is_plain_product(i)]:
                changed |= self._run(product, ctx)
        return changed

    def _run(self, product: Instruction, ctx: PassContext) -> bool:
        if _is_ordered(product) or product.shape.byte_size > self.most:
            return False
        sliced = [n for n, o in enumerate(product.operands) if self._is_sliced(o, product, ctx)]
        if not sliced or not ctx.may_fire("slice", "dynamic_slice_fusion_rewriter.py", product):
            return False
        name, size = product.name, sum(product.operands[n].shape.byte_size for n in sliced)
        members = {product}
        for n in sliced:
            members |= _taken_in(product, n)
        made = fuse([product], members, prefix="sliced_")
        made.attrs["kind"] = "kCustom"
        made.extras["backend_config"] = CONFIG
        ctx.trace.became[name] = made.name
        ctx.decide(True, f"{size} bytes are read where they lie", subject=name, object=made.name)
        return True

    def _is_sliced(self, operand: Instruction, product: Instruction, ctx: PassContext) -> bool:
        """Whether an operand is a slice that is copied for products alone."""
        kernel = _behind_views(operand)
        if _is_ordered(kernel) or kernel.is_root or any(not is_plain_product(user) for user in _readers(kernel)):
            return False
        place = _place(kernel)
        if place is None:
            return False
        why = ""
        if any(n % _ALIGNMENT for n in (place.offset, *(s.bytes for s in place.starts))) and not self.takes_any(
            product
        ):
            why = "a kernel takes no such address"
        elif not _stays(_behind_views(place.array)):
            why = f"'{place.array.name}' may be overwritten before"
        if why:
            ctx.decide(False, why, subject=product.name, object=kernel.name)
        return not why


def _place(kernel: Instruction) -> Place | None:
    """The place of the slice that a kernel copies; None for one that does something else."""
    if takes_block(kernel):
        return place_of(kernel)
    if kernel.opcode != "fusion" or kernel.kind != "kLoop" or not kernel.shape.is_array:
        return None
    found = place_of(kernel.calls.root)
    is_part = found.array.opcode == "parameter" and found.array.shape.num_elements > kernel.shape.num_elements
    return Place(kernel.operands[found.array.number], found.offset, found.starts) if is_part else None


def _taken_in(product: Instruction, number: int) -> set[Instruction]:
    """Let an operand of a product be slices and views of an array; these, with the constants that they need."""
    home, views, kernel = product.parent, list[Instruction](), product.operands[number]
    assert home is not None
    while is_view(kernel):
        views.append(kernel)
        kernel = kernel.operands[0]
    value, made = kernel, set[Instruction]()
    if kernel.opcode == "fusion":
        copies = copy_body(home, kernel.calls, kernel.operands)
        value, made = copies[kernel.calls.root], set(copies.values()) - set(kernel.operands)
    members = _slices(value)
    for scalar in {s: None for i in members for s in i.operands[1:]}:
        if scalar.opcode == "constant":
            members.add(scalar)
        elif scalar in made:
            fuse([scalar], made - members)
    for view in reversed(views):
        value = home.attach(view.clone([value]))
        members.add(value)
    old = product.operands[number]
    product.set_operand(number, value)
    if not old.users:
        home.remove_dead_from(old)
    return members


def _is_ordered(i: Instruction) -> bool:
    return bool(i.control_predecessors or i.control_successors)


def _slices(value: Instruction) -> set[Instruction]:
    """The slices and views between a value and the array that it is a part of."""
    found = set[Instruction]()
    array = place_of(value).array
    while value is not array:
        found.add(value)
        value = value.operands[0]
    return found


def _behind_views(i: Instruction) -> Instruction:
    while is_view(i):
        i = i.operands[0]
    return i


def _readers(i: Instruction) -> list[Instruction]:
    """The readers of an array, through views."""
    found = list[Instruction]()
    for user in i.users:
        found += _readers(user) if is_view(user) and not user.is_root else [user]
    return found


def _stays(array: Instruction) -> bool:
    """Whether nothing overwrites an array while its computation runs, so that no copy of it is ever needed."""
    home = array.parent
    assert home is not None and home.module is not None
    if array.opcode == "parameter" and home.is_entry and (array.number, ()) not in donated_parameters(home.module):
        return True
    readers = _readers(array)
    if _is_invariant(array, home):
        readers = [user for user in readers if user is not home.root]
    return not any(_may_overwrite(user, array) for user in readers)


def _is_invariant(array: Instruction, home: Computation) -> bool:
    """Whether the state of a loop has the array in one place, before and after each step."""
    if array.opcode != "get-tuple-element" or array.operands[0].opcode != "parameter":
        return False
    root, state = home.root, array.operands[0].shape
    if root.opcode != "tuple" or root.shape != state:
        return False
    places = [n for n, part in enumerate(root.operands) if part is array]
    return places == [array.index]


def _may_overwrite(user: Instruction, array: Instruction) -> bool:
    """Whether an instruction may be done in the place of an array that it reads."""
    if user.opcode == "fusion":
        given = {p for p, o in zip(user.calls.parameters, user.operands, strict=True) if _behind_views(o) is array}
        updated = [_behind_views(o) for inner in user.calls.instructions for o in updated_operands(inner)]
        return any(o in given for o in updated)
    if is_emitted(user):
        return any(_behind_views(o) is array for o in updated_operands(user))
    return not (is_plain_product(user) or user.opcode == "copy")

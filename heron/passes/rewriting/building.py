"""Small things many passes build or ask for: constants, splats, combiners of reductions, inlined calls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heron.hlo.facts import combiner
from heron.hlo.ir import literal, shape
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import S32, S64, ElementType


def constant(c: Computation, value: Literal, like: Instruction | None = None) -> Instruction:
    """A constant holding `value`."""
    i = c.add("constant", (), value.shape, "constant", literal=value)
    if like is not None:
        i.metadata = like.metadata
    return i


def scalar(c: Computation, element_type: ElementType, value: object) -> Instruction:
    """A scalar constant."""
    return constant(c, literal.scalar(element_type, value))


def splat(c: Computation, of: Shape, value: object) -> Instruction:
    """An array of that shape filled with `value`: a scalar constant, broadcast unless the shape is scalar."""
    made = scalar(c, of.element_type, value)
    if of.rank == 0:
        return made
    return c.add("broadcast", [made], of.with_default_layout(), dimensions=())


def unwritten(c: Computation, of: Shape) -> Instruction:
    """An array of zero bytes, as who receives nothing has it; in f8e8m0fnu, which has no zero, the least number."""
    return splat(c, of, np.zeros((), of.element_type.dtype))


def applied(module: Module, opcode: str, element_type: ElementType) -> Computation:
    """A computation that applies `opcode` to two scalars, for reductions; one the module has, or a new one."""
    wanted = shape.scalar(element_type)
    for c in module.computations:
        if not c.is_entry and len(c) == 3 and combiner(c) == opcode and c.root.shape.bare is wanted.bare:
            return c
    c = Computation(opcode)
    parameters = [c.add_parameter(n, wanted) for n in range(2)]
    c.root = c.add(opcode, parameters, wanted)
    return module.add_computation(c)


def is_static(i: Instruction) -> bool:
    """Whether neither `i` nor an operand has a dynamic dimension."""
    for x in (i, *i.operands):
        shape = x.shape
        if shape.dynamic or shape.is_tuple and any(s.dynamic for _, s in shape.leaves()):
            return False
    return True


def same_type(a: Instruction, b: Instruction) -> bool:
    """Whether two values have equal shapes, whatever their layouts."""
    return a.shape is b.shape or a.shape.bare is b.shape.bare


def array(element_type: ElementType, dims: Sequence[int]) -> Shape:
    """An array shape with the default layout."""
    return shape.row_major(element_type, *dims)


def reshape(x: Instruction, dims: Sequence[int]) -> Instruction:
    """`x` with other dimensions; `x` itself when they are the same."""
    assert x.parent is not None
    if x.shape.dims == tuple(dims):
        return x
    return x.parent.add("reshape", [x], array(x.shape.element_type, dims), like=x)


def transpose(x: Instruction, permutation: Sequence[int]) -> Instruction:
    """`x` with dimension ``permutation[d]`` in place d; `x` itself for the identity."""
    assert x.parent is not None
    if list(permutation) == list(range(len(permutation))):
        return x
    dims = [x.shape.dims[d] for d in permutation]
    return x.parent.add("transpose", [x], array(x.shape.element_type, dims), like=x, dimensions=tuple(permutation))


def convert(x: Instruction, to: ElementType) -> Instruction:
    """`x` as another type; `x` itself when it is of that type."""
    assert x.parent is not None
    if x.shape.element_type is to:
        return x
    return x.parent.add("convert", [x], x.shape.with_type(to), like=x)


def counting(indices: Instruction, size: int) -> Instruction:
    """Integers as they are, or in a wider type if theirs does not hold the positions of a dimension of that size."""
    t = indices.shape.element_type
    if size <= 1 << (t.bits - t.is_signed):
        return indices
    return convert(indices, S32 if t.bits < 32 and size <= 1 << 31 else S64)


def bits_of(x: Instruction, to: ElementType) -> Instruction:
    """The bits of `x` as a type of the same width; `x` itself when it is of that type."""
    assert x.parent is not None
    if x.shape.element_type is to:
        return x
    return x.parent.add("bitcast-convert", [x], x.shape.with_type(to), like=x)


def own_body(i: Instruction) -> None:
    """Give a copied fusion a body of its own, and so the fusions in that: a body belongs to one fusion."""
    if i.opcode != "fusion":
        return
    assert i.parent is not None and i.parent.module is not None
    body = i.attrs["calls"] = i.parent.module.add_computation(i.attrs["calls"].clone())
    for inner in body.instructions:
        own_body(inner)


def is_movable(i: Instruction) -> bool:
    """Whether `i` may be computed elsewhere, more often or not at all: no effects, no order, no other devices."""
    return not (i.control_predecessors or i.control_successors) and is_pure(i)


def is_pure(i: Instruction) -> bool:
    """Whether `i` does nothing but give a value, the same each time: no effects, tokens or other devices."""
    if i.opcode == "parameter" or i.has_side_effect:
        return False
    if any(s.is_token for _, s in i.shape.leaves()):
        return False
    work, seen = [i], set(i.called)
    while work:
        j = work.pop()
        if Trait.COLLECTIVE in j.op.traits:
            return False
        for c in j.called:
            if j is i or c not in seen:
                seen.add(c)
                work += c.instructions
    return True


def inline(at: Instruction, callee: Computation, arguments: Sequence[Instruction], moves: bool = False) -> Instruction:
    """Copy `callee`'s body in place of `at`, its parameters being `arguments`; return what stands for `at` now.

    ``moves``: nothing else calls `callee`, which is left without a body.
    """
    caller = at.parent
    assert caller is not None
    if moves:
        made = [i for i in callee.instructions if i.opcode != "parameter"]
        result = caller.take_over(callee, arguments)
    else:
        copies = copy_body(caller, callee, arguments)
        made = [copy for i, copy in copies.items() if i.opcode != "parameter"]
        result = copies[callee.root]
    for before in at.control_predecessors:
        for copy in made:
            copy.add_control_predecessor(before)
    for after in at.control_successors:
        for copy in made:
            after.add_control_predecessor(copy)
    caller.replace(at, result)
    if at.parent is caller and not at.users:  # a call with side effects, which now stand in the caller
        caller.remove(at)
    return result


def copy_body(
    caller: Computation, callee: Computation, arguments: Sequence[Instruction]
) -> dict[Instruction, Instruction]:
    """Copy `callee`'s body into `caller`: what stands there for each instruction, `arguments` for its parameters."""
    copies: dict[Instruction, Instruction] = dict(zip(callee.parameters, arguments, strict=True))
    for i in callee.post_order():
        if i in copies:
            continue
        copy = copies[i] = caller.attach(i.clone([copies[o] for o in i.operands]))
        own_body(copy)
        for before in i.control_predecessors:
            copy.add_control_predecessor(copies[before])
    return copies

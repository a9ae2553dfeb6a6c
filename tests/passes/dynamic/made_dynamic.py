"""Static programs made dynamic: a dimension of a parameter gets a size at run time, and with it what is made of it."""

from __future__ import annotations

from collections.abc import Callable

from heron.analysis.dynamic_sizes import DynamicSizes, dynamic_places
from heron.analysis.dynamic_sizes.rules import runs
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, scalar
from heron.hlo.ir.types import S32
from heron.passes.rewriting.building import scalar as constant
from heron.passes.rewriting.expander import home

#: what takes dynamic operands; all else gets them at their bounds again, filled up with zeros
THROUGH = frozenset(
    "tuple get-tuple-element copy reverse bitcast-convert broadcast transpose reshape concatenate pad slice "
    "dynamic-slice dynamic-update-slice gather scatter reduce reduce-window select-and-scatter dot convolution sort "
    "clamp select topk batch-norm-training batch-norm-inference batch-norm-grad".split()
)
#: says, of the dimensions that could make up for the size of a reshape, which does
Choose = Callable[[list[int]], int]


def made_dynamic(module: Module, number: int, d: int, choose: Choose = lambda dims: dims[0]) -> Module:
    """A copy whose last parameter, one more, says how much of dimension `d` of a parameter counts."""
    module = module.clone()
    entry, p = module.entry, module.entry.parameters[number]
    users = list(p.users)
    size = entry.add_parameter(len(entry.parameters), scalar(S32), "size")
    cut = entry.add("set-dimension-size", [p, size], dimensions=(d,))
    p.replace_uses_with(cut, only=users)
    if entry.root is p:
        entry.root = cut
    found = DynamicSizes(module)
    for i in entry.post_order():
        if i is not cut and any(dynamic_places(o.shape) for o in i.operands):
            if i.opcode not in THROUGH and not (i.op.is_elementwise and i.operands[0].shape.rank == i.shape.rank):
                for n, o in enumerate(i.operands):
                    i.set_operand(n, _whole(o))
                continue
            _mark(i, found, choose)
    module.entry_layout = None
    return module


def _whole(x: Instruction) -> Instruction:
    """`x` at its bounds."""
    c = home(x)
    if x.shape.is_tuple:
        parts = [c.add("get-tuple-element", [x], index=n) for n in range(len(x.shape.tuple_shapes or ()))]
        return c.add("tuple", [_whole(part) for part in parts]) if dynamic_places(x.shape) else x
    for _, d in dynamic_places(x.shape):
        marks = tuple(n != d and marked for n, marked in enumerate(x.shape.dynamic))
        shape = shapes.array(x.shape.element_type, x.shape.dims, x.shape.layout, marks)
        x = c.add("set-dimension-size", [x, constant(c, S32, x.shape.dims[d])], shape, dimensions=(d,))
    return x


def _mark(i: Instruction, found: DynamicSizes, choose: Choose) -> None:
    """Mark the dimensions whose size is known at run time only."""
    if i.opcode == "slice":
        bounds = zip(i.slice, i.operands[0].shape.dims, i.operands[0].shape.dynamic, strict=True)
        i.shape = _marked(i.shape, {d for d, ((_, limit, _), n, marked) in enumerate(bounds) if marked and limit == n})
    if i.opcode == "reshape":
        marks = i.operands[0].shape.dynamic
        both = runs(i.operands[0].shape.dims, i.shape.dims)
        i.shape = _marked(i.shape, {choose(to) for of, to in both if to and any(marks[d] for d in of)})
    found.infer(i)
    sizes = found.of(i)
    if i.shape.is_tuple:
        parts = enumerate(i.shape.tuple_shapes or ())
        i.shape = shapes.tuple_([_marked(s, {d for ((m, *_), d) in sizes if m == n}) for n, s in parts])
    else:
        i.shape = _marked(i.shape, {d for _, d in sizes})


def _marked(s: Shape, dims: set[int]) -> Shape:
    return shapes.array(s.element_type, s.dims, s.layout, tuple(d in dims for d in range(s.rank)))

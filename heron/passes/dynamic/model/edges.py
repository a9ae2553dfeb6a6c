"""Dynamic sizes at the boundary of a program: the entry's parameters and result."""

from __future__ import annotations

from heron.analysis.dynamic_sizes import dynamic_places
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, ShapeIndex, scalar, tuple_
from heron.hlo.ir.types import S32
from heron.passes.dynamic.model.padded import Numbers, Padded, number, static
from heron.passes.rewriting.expander import home

PAD, SLICE = "PadToStatic", "SliceToDynamic"


def enter(p: Instruction, numbers: Numbers) -> None:
    """Make an entry parameter's padded value and sizes."""
    numbers.values[p] = numbers.padded(_entered(p, p, (), numbers), p)


def _entered(x: Instruction, p: Instruction, index: ShapeIndex, numbers: Numbers) -> Instruction:
    """`x`, the part of `p` at `index`, padded."""
    c, s = home(x), x.shape
    if s.tuple_shapes is not None:
        parts = [c.add("get-tuple-element", [x], part, index=n) for n, part in enumerate(s.tuple_shapes)]
        return c.add("tuple", [_entered(part, p, (*index, n), numbers) for n, part in enumerate(parts)])
    if not s.dynamic:
        return x
    result = tuple_([static(s), *(scalar(S32) for _ in s.dims)])
    both = c.add("custom-call", [x], result, like=x, custom_call_target=PAD)
    parts = [c.add("get-tuple-element", [both], part, index=n) for n, part in enumerate(result.tuple_shapes or ())]
    for d, marked in enumerate(s.dynamic):
        if marked:
            numbers.bring(p, (index, d), parts[d + 1])
    return parts[0]


def leave(value: Padded, s: Shape) -> Instruction:
    """A result of shape `s`, its dynamic parts cut to their sizes."""
    return _left(value.x, value, s, ())


def _left(x: Instruction, value: Padded, s: Shape, index: ShapeIndex) -> Instruction:
    c = home(x)
    if s.tuple_shapes is not None:
        parts = [c.add("get-tuple-element", [x], static(part), index=n) for n, part in enumerate(s.tuple_shapes)]
        shapes = zip(parts, s.tuple_shapes, strict=True)
        return c.add("tuple", [_left(part, value, t, (*index, n)) for n, (part, t) in enumerate(shapes)])
    if not s.dynamic:
        return x
    sizes = [value.number_at((index, d)) if marked else number(c, s.dims[d]) for d, marked in enumerate(s.dynamic)]
    return c.add("custom-call", [x, *sizes], s, custom_call_target=SLICE)


def at_edge(module: Module) -> set[Instruction]:
    """The instructions that deal with dynamic sizes only to bring them in or out."""
    found: set[Instruction] = set()
    work = list(module.entry.parameters)
    while work:  # parameters, taken apart, to PadToStatic
        i = work.pop()
        found.add(i)
        if i.opcode != "custom-call":
            work += [u for u in i.users if u.opcode == "get-tuple-element" or _calls(u, PAD)]
    work = [module.entry.root]
    while work:  # SliceToDynamic, put together, to the root
        i = work.pop()
        if i.opcode == "tuple":
            found.add(i)
            work += [o for o in i.operands if dynamic_places(o.shape)]
        elif is_cut(i):
            found.add(i)
        else:
            found.discard(i)  # a result that comes straight from a parameter
    return found


def is_cut(i: Instruction) -> bool:
    """Whether `i` cuts a result to its size."""
    return _calls(i, SLICE)


def _calls(i: Instruction, target: str) -> bool:
    return i.opcode == "custom-call" and i.custom_call_target == target

"""Where dynamic sizes come into a program and leave it: the entry's parameters and result."""

from __future__ import annotations

from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.hlo.shape import Shape, ShapeIndex, scalar, tuple_
from heron.hlo.types import S32
from heron.passes.dynamic.padded import Padded, dynamic_places, number, static
from heron.passes.expand.expander import home

PAD, SLICE = "PadToStatic", "SliceToDynamic"


def enter(x: Instruction) -> Padded:
    """An entry parameter, or a part of one, padded."""
    c, s = home(x), x.shape
    if s.tuple_shapes is not None:
        parts = [enter(c.add("get-tuple-element", [x], part, index=n)) for n, part in enumerate(s.tuple_shapes)]
        sizes = {((n, *index), d): size for n, p in enumerate(parts) for (index, d), size in p.sizes.items()}
        return Padded(c.add("tuple", [p.x for p in parts]), sizes)
    if not s.dynamic:
        return Padded(x)
    result = tuple_([static(s), *(scalar(S32) for _ in s.dims)])
    both = c.add("custom-call", [x], result, like=x, custom_call_target=PAD)
    parts = [c.add("get-tuple-element", [both], part, index=n) for n, part in enumerate(result.tuple_shapes or ())]
    return Padded(parts[0], {((), d): parts[d + 1] for d, marked in enumerate(s.dynamic) if marked})


def leave(value: Padded, s: Shape, index: ShapeIndex = ()) -> Instruction:
    """A result of shape `s`, or the part of it at `index`, cut to its size."""
    c, x = home(value.x), value.x
    if s.tuple_shapes is not None:
        parts: list[Instruction] = []
        for n, part in enumerate(s.tuple_shapes):
            piece = c.add("get-tuple-element", [x], static(part), index=n)
            parts.append(leave(Padded(piece, value.sizes), part, (*index, n)))
        return c.add("tuple", parts)
    if not s.dynamic:
        return x
    sizes = [value.sizes.get((index, d)) or number(c, n) for d, n in enumerate(s.dims)]
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
        elif _calls(i, SLICE):
            found.add(i)
        else:
            found.discard(i)  # a result that comes straight from a parameter
    return found


def _calls(i: Instruction, target: str) -> bool:
    return i.opcode == "custom-call" and i.custom_call_target == target

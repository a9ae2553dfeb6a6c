"""A padded program as one whose parameters and results have fixed sizes too: what is compiled.

Sizes come in as further parameters and go out as further results, all ``s32[]``, in the order of `dynamic_places` of
the parameters and the result. The callers' arrays are filled up and cut by `heron.runtime.dynamic_signature`.
"""

from __future__ import annotations

from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.hlo.shape import scalar
from heron.hlo.types import S32
from heron.passes.dynamic.edges import PAD, SLICE
from heron.passes.dynamic.padded import Place, dynamic_places, number, static


def fix_interface(module: Module) -> None:
    """Give a padded program's entry parameters and results of fixed sizes, and its sizes as numbers.

    Results no longer share memory with parameters.
    """
    entry = module.entry
    count = len(entry.parameters)
    for p in entry.parameters:
        sizes: dict[Place, Instruction] = {}
        for place in dynamic_places(p.shape):
            sizes[place] = entry.add_parameter(count, scalar(S32), f"{p.name}_size")
            count += 1
        if sizes:
            _take(p, (), sizes)
    places = dynamic_places(entry.root.shape)
    given = [_size(entry.root, *place) for place in places]
    if given:
        parts = list(entry.root.operands) if entry.root.opcode == "tuple" else [entry.root]
        entry.root = entry.add("tuple", [*map(_fixed, parts), *given])
        for name in ("input_output_alias", "buffer_donor"):
            module.header.pop(name, None)
    module.entry_layout = None
    for i in reversed(entry.post_order()):
        if not i.users and not i.is_root and i.opcode in ("tuple", "custom-call") and dynamic_places(i.shape):
            entry.remove(i)


def _take(x: Instruction, index: tuple[int, ...], sizes: dict[Place, Instruction]) -> None:
    """Make a part of a parameter static, and what pads it the part itself."""
    c = x.parent
    assert c is not None
    x.shape = static(x.shape)
    x.touch()
    for user in list(x.users):
        if user.opcode == "get-tuple-element":
            _take(user, (*index, user.index), sizes)
        elif user.opcode == "custom-call" and user.custom_call_target == PAD:
            known = [sizes[index, d] if (index, d) in sizes else number(c, n) for d, n in enumerate(x.shape.dims)]
            c.replace(user, c.add("tuple", [x, *known]))


def _size(x: Instruction, index: tuple[int, ...], d: int) -> Instruction:
    for n in index:
        x = x.operands[n]
    assert x.custom_call_target == SLICE
    return x.operands[d + 1]


def _fixed(x: Instruction) -> Instruction:
    """A result without the cut to its size."""
    if not dynamic_places(x.shape):
        return x
    if x.opcode == "tuple":
        assert x.parent is not None
        return x.parent.add("tuple", [_fixed(o) for o in x.operands])
    return x.operands[0]

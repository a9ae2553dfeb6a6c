"""Code size of a kernel: instructions for one element of each op, times the places that compute it.

A kernel computes an op once for all that read it at the same index, and anew for each other index: a concatenation, a
pad, a slice or a broadcast asks for its operand at an index of its own. So of ops that read each other at several
indices there are as many copies as there are ways from the root, which double with every step: the code, unlike the
number of ops, has no bound. A loop's body counts once, however often it runs.

    c = f32[8] sine(x)                            97 instructions, in two places
    ROOT r = f32[16] concatenate(c, reverse(c))
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from typing import TypeAlias

from heron.analysis.fusion.prefix_scan import is_long_scan
from heron.hlo.facts import is_tuple_op, root_parts
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.records import dataclass
from heron.targets import Target


@dataclass(frozen=True, slots=True)
class CodeLimit:
    """The code that kernels of a machine may have.

    ``most``: LLVM instructions for an element, ahead of the vectoriser. ``few``: elements up to which an array is
    computed in no more places than it has elements, because the loops that ask for them are written out. ``is_gpu``: a
    GPU's instructions are counted.
    """

    most: float
    few: int
    is_gpu: bool = False


#: a kernel without copies of anything stays far below; machine code takes LLVM some 0.2 ms for each
CPU_CODE = CodeLimit(2500.0, 16)
#: bytes of a GPU's machine code for an LLVM instruction: one of its own, 16 bytes long, more or less
_GPU_BYTES = 18
_GPU = CodeLimit(0.0, 0, is_gpu=True)

#: where an op is computed: ways of asking for it, each with how many copies it has
Places: TypeAlias = Mapping[object, int]

#: how much longer code is for wide floats and for pairs of them
_DOUBLE, _COMPLEX = 1.5, 4.0
#: how much of its own code a function has in a kernel with others: they share slow paths of quotients and roots
_IN_COMPANY = 0.75
#: the same for each of many elements of a thread, which have the constants in common, too
_OF_MANY = 0.7
#: positions of a window up to which its sum may be written out
_STRAIGHT = 16
#: ops that cost so little that only what they read is counted
_LONG = 16


def code_limit(target: Target | None) -> CodeLimit:
    """The code that kernels of a target may have. A GPU's threads have one element each: no loops are written out."""
    if target is None or not target.is_gpu:
        return CPU_CODE
    return CodeLimit(target.code_bytes / _GPU_BYTES, 0, is_gpu=True)


def op_code(i: Instruction, limit: CodeLimit) -> float:
    """LLVM instructions for one element of `i`, its operands' not included."""
    code = float(i.op.code + i.op.code_per_operand * len(i.operands))
    if limit.is_gpu and i.op.gpu_code and not _by_constant(i):
        code = float(i.op.gpu_code)
    if Trait.APPLIES in i.op.traits:
        bodies = sum(sum(op_code(x, limit) for x in c.instructions) for c in i.called)
        window = prod(w.size for w in i.window) if i.opcode == "reduce-window" and not is_long_scan(i) else 1
        code += bodies * (window if window <= _STRAIGHT else 1)
    code *= _in_line(i)
    shape = i.shape.tuple_shapes[0] if i.shape.tuple_shapes else i.shape
    if not shape.is_array:
        return code
    if limit.is_gpu and any(i.op.complex_code):
        given = i.operands[0].shape.element_type
        if given.is_complex:
            return i.op.complex_code[given.bits == 128] * _IN_COMPANY
    if shape.element_type.is_complex:
        return code * _COMPLEX * (2 if code > _LONG else 1)
    return code * _DOUBLE if shape.element_type.bits == 64 and code > _LONG else code


def gpu_bytes(i: Instruction) -> float:
    """Bytes of a GPU's machine code for one of many elements of `i` in a kernel, its operands' not included."""
    return op_code(i, _GPU) * _GPU_BYTES * _OF_MANY


def _in_line(i: Instruction) -> int:
    """The number of products of an element that are written out."""
    if i.opcode != "dot":
        return 1
    count = prod(i.operands[0].shape.dims[d] for d in i.attrs.get("lhs_contracting_dims") or ())
    return count if count <= _STRAIGHT else 1


def _by_constant(i: Instruction) -> bool:
    """Whether integers are divided by a constant: a product and a shift."""
    divisor = i.operands[-1]
    divisor = divisor.operands[0] if divisor.opcode == "broadcast" else divisor
    return divisor.opcode == "constant" and i.shape.element_type.is_integer


def code_at(i: Instruction, places: Places, limit: CodeLimit) -> float:
    """LLVM instructions for `i` in all these places."""
    return op_code(i, limit) * sum(places.values())


def places_of(
    i: Instruction, members: Mapping[Instruction, Places], users: Iterable[Instruction], limit: CodeLimit
) -> Places:
    """The places at which a kernel computes `i`: one for users at its own index, one for each other use.

    ``members``: the places of what the kernel computes; ``users``: those of them that read `i`.
    """
    found: dict[object, int] = {}
    for user in users:
        places = members[user]
        if _at_own_index(user, i):
            for place, copies in places.items():
                found[place] = max(found.get(place, 0), copies)
        else:
            copies = sum(places.values()) * _in_line(user)
            for n, o in enumerate(user.operands):
                if o is i:
                    found[user, n] = copies
    copies = sum(found.values())
    few = at_most(i, copies, limit)
    return found if few == copies else {i: few}


def at_most(i: Instruction, copies: int, limit: CodeLimit) -> int:
    """So many copies of `i`, but one of a number, and no more than it has elements where these are few."""
    if not i.shape.is_array or i.shape.num_elements > limit.few and not i.shape.is_scalar:
        return copies
    return min(copies, i.shape.num_elements or copies)


def code_of(roots: Sequence[Instruction], members: Collection[Instruction], limit: CodeLimit) -> float:
    """LLVM instructions of a kernel that computes ``members`` for ``roots``."""
    code, places = 0.0, dict[Instruction, Places]()
    starts = dict.fromkeys(roots)
    for i in _readers_first(roots, members):
        here = places_of(i, places, [u for u in i.users if u in places], limit)
        if i in starts:
            here = {**here, None: 1}
        places[i] = here
        code += code_at(i, here, limit)
    return code


def asked_of(i: Instruction) -> dict[Instruction, tuple[int, int]]:
    """For each operand whether `i` reads it at its own index, and in how many other places."""
    found: dict[Instruction, tuple[int, int]] = {}
    for o in i.operands:
        own, other = found.get(o, (0, 0))
        found[o] = (1, other) if _at_own_index(i, o) else (own, other + 1)
    return found


def fusion_code(i: Instruction, limit: CodeLimit) -> float:
    """LLVM instructions of a kernel: a fusion, or an op by itself."""
    if i.opcode != "fusion":
        return op_code(i, limit)
    inside = i.attrs["calls"]
    return code_of(root_parts(inside), inside.instructions, limit)


def _at_own_index(user: Instruction, i: Instruction) -> bool:
    if user.op.is_elementwise:
        return user.shape.dims == i.shape.dims or not i.shape.rank
    return is_tuple_op(user)


def _readers_first(roots: Sequence[Instruction], members: Collection[Instruction]) -> list[Instruction]:
    """The members that the roots need, each after all its users."""
    done: dict[Instruction, None] = {}
    inside = members if isinstance(members, (dict, set, frozenset)) else set(members)
    stack = [(r, iter(r.operands)) for r in dict.fromkeys(roots)]
    begun = set(roots)
    while stack:
        i, rest = stack[-1]
        following = next((o for o in rest if o in inside and o not in begun), None)
        if following is not None:
            begun.add(following)
            stack.append((following, iter(following.operands)))
        else:
            done[i] = None
            stack.pop()
    return list(reversed(done))

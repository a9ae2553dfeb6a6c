"""Reductions of few elements that each take long: vectors go along the results, not along what is reduced.

A thread that combines the elements of a result one after the other, where they are needed, computes single numbers:
LLVM makes vectors of a short loop only where it is written out, and code for a random number or a polynomial is too
long for that. A kernel shaped after the reduction keeps a tile of results instead, and each element joins all of them.

    bits = u32[4096,10] …                    some 200 instructions
    ROOT r = (f32[4096], s32[4096]) reduce(bits, iota, …), dimensions={1}, to_apply=larger
"""

from __future__ import annotations

from math import prod

from heron.analysis.cost.code_size import CPU_CODE, code_of
from heron.hlo.facts import combiner
from heron.hlo.ir.instruction import Instruction

#: results that fill a vector
FEWEST_RESULTS = 16
#: most elements of a result: more are combined in partial results, as soon as LLVM may take a combination apart
_FEW, _FEW_SUMMED = 63, 8
#: bits of numbers that processors gather
_GATHERED = 32
#: instructions of all elements up to which a loop over them is written out, and LLVM's own number for the shortest ones
_WRITTEN_OUT, _WRITTEN_OUT_BY_LLVM, _SHORTEST = 256, 1100, 4


def has_long_elements(i: Instruction) -> bool:
    """Whether a reduce in a CPU's kernel is one of few elements that take long."""
    dims = i.operands[0].shape.dims
    elements = prod(dims[d] for d in i.dimensions)
    along_rows = len(dims) - 1 in i.dimensions
    is_sum = combiner(i.to_apply) is not None and not i.shape.element_type.is_complex
    most = _FEW_SUMMED if is_sum and along_rows else _FEW
    if not 1 < elements <= most or prod(dims) < FEWEST_RESULTS * elements:
        return False
    limit = _WRITTEN_OUT_BY_LLVM if elements <= _SHORTEST else _WRITTEN_OUT
    computed, read = _computed(i)
    if along_rows and any(_is_narrow(p) and p.shape.num_elements > prod(dims) // elements for p in read):
        return False
    if len(computed) * elements <= _WRITTEN_OUT:
        return False
    return code_of(i.operands[: len(i.operands) // 2], computed, CPU_CODE) * elements > limit


def _is_narrow(p: Instruction) -> bool:
    """Whether elements that lie apart would be brought into a vector one by one."""
    return p.shape.is_array and p.shape.element_type.bits < _GATHERED


def _computed(i: Instruction) -> tuple[set[Instruction], set[Instruction]]:
    """The instructions of an element in a kernel, and the arrays that they read."""
    found: set[Instruction] = set()
    read: set[Instruction] = set()
    work = i.operands[: len(i.operands) // 2]
    while work:
        o = work.pop()
        if o.opcode == "parameter":
            read.add(o)
        elif o not in found:
            found.add(o)
            work.extend(o.operands)
    return found, read

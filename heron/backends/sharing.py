"""What our kernels may compute in place: `reads_in_step`, and reductions that hand out the array they reduce."""

from __future__ import annotations

from math import prod

from heron.analysis.fusion.analysis import analyse
from heron.analysis.fusion.reduction import Form
from heron.analysis.fusion.row_blocks import row_blocks_of
from heron.analysis.fusion.sharing import outputs_in_step, reads_in_step, remembered, same_steps, used_in_step
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.fingerprint import digest
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import ShapeIndex

_STEP = frozenset({"bitcast", "reshape", "copy", "convert", "bitcast-convert"})


def computes_in_place(i: Instruction, operand: int, output_index: ShapeIndex) -> bool:
    """Whether the output of `i` at `output_index` may overwrite the buffer of that operand as it is computed.

    A lone reduction visits each element once, and stores outputs of the reduced array's shape as it goes. One of all
    elements to one ends in one thread, which computes all that is made of numbers before it stores them. Kernels that
    go row by row take all sums of a row before they store any of it, and what they store reads the row in step.
    """
    if reads_in_step(i, operand, output_index):
        return _in_one_part(i, operand, output_index)
    if i.attrs.get("kind") == "kCustom":
        from heron.backends import row_blocks

        return row_blocks_of(i) is not None and row_blocks.shares(i, operand, output_index)
    if output_index and _feeds_numbers(i, operand, output_index):
        return _walk(i) == "to one"
    if not _feeds_reduces_of_its_size(i, operand, output_index):
        return False
    return _walk(i) in (("rows", "once", "to one") if output_index else ("rows",))


def _in_one_part(i: Instruction, operand: int, output_index: ShapeIndex) -> bool:
    """Whether all outputs made from an operand that is read in step are written by the same part of the kernel: the
    parts of a kernel with reductions run in any order, and none may read what another overwrites."""
    if not output_index or i.opcode != "fusion":
        return True
    body = i.attrs["calls"]
    parts = remembered(body, "parts", lambda: _reduction_parts(i))
    return not parts or len({parts[n] for n in outputs_in_step(body, operand) or ()}) <= 1


def _reduction_parts(i: Instruction) -> list[int]:
    """For each output of a kernel with reductions the number of the part that writes it; none for other kernels."""
    if all(inside.opcode != "reduce" for inside in i.attrs["calls"].instructions):
        return []
    analysis = analyse(i)
    form = analysis.form
    if not isinstance(form, Form):
        return []
    return [
        next((k for k, part in enumerate(form.parts) if n in part), -1) for n in range(len(analysis.fusion.outputs))
    ]


#: by the digest of a body; layers of a model have equal bodies, and every pair of operand and output asks
_WALKS: dict[str, str] = {}


def _walk(i: Instruction) -> str:
    """How the kernel of a fusion with reductions goes over what it reduces: `once`, once and all `to one` result, in
    `rows`, or otherwise (empty)."""
    body = i.attrs["calls"]
    if not remembered(body, "one kind", lambda: _reduces_one_kind(body)):
        return ""
    return remembered(body, "walk", lambda: _walk_of(i))


def _walk_of(i: Instruction) -> str:
    key = digest(i.attrs["calls"])
    known = _WALKS.get(key)
    if known is None:
        if len(_WALKS) >= 1 << 14:
            _WALKS.clear()
        known = _WALKS[key] = _find_walk(i)
    return known


def _reduces_one_kind(body: Computation) -> bool:
    """Whether all reductions are of equal arrays over the same dimensions, and all outputs of these arrays' size or of
    the results'. Asked first: it is quick."""
    reduces = [r for r in body.instructions if r.opcode == "reduce"]
    kinds = {(r.operands[0].shape.dims, tuple(sorted(r.attrs["dimensions"]))) for r in reduces}
    if len(kinds) != 1:
        return False
    ((dims, gone),) = kinds
    sizes = prod(dims), prod(n for d, n in enumerate(dims) if d not in gone)
    return all(s.num_elements in sizes for _, s in body.root.shape.leaves() if s.is_array)


def _find_walk(i: Instruction) -> str:
    analysis = analyse(i)
    form = analysis.form
    if not isinstance(form, Form) or len(form.reductions) != 1 or form.loose:
        return "rows" if analysis.kind == "rows" else ""
    return "to one" if form.reductions[0].rows == 1 else "once"


def _feeds_reduces_of_its_size(i: Instruction, operand: int, output_index: ShapeIndex) -> bool:
    """Whether a fusion computes from that operand, read once, only reductions and what has the output's elements."""
    if i.opcode != "fusion" or i.operands.count(i.operands[operand]) > 1:
        return False
    source, target = i.operands[operand].shape, i.shape.at(output_index)
    if not source.is_array or not same_steps(source, target):
        return False
    body = i.attrs["calls"]
    return remembered(body, ("feeds reduces", operand), lambda: _only_feeds_reduces(body.parameters[operand]))


def _feeds_numbers(i: Instruction, operand: int, output_index: ShapeIndex) -> bool:
    """Whether a fusion computes from that operand, read once, only numbers, as it is and the output is one."""
    if i.opcode != "fusion" or i.operands.count(i.operands[operand]) > 1:
        return False
    source, target = i.operands[operand].shape, i.shape.at(output_index)
    if not source.is_array or source.num_elements != 1 or not same_steps(source, target):
        return False
    return used_in_step(i.attrs["calls"].parameters[operand]) is not None


def _only_feeds_reduces(parameter: Instruction) -> bool:
    """Whether all that is computed from it is elementwise over as many elements, up to reduces of such arrays."""
    elements = parameter.shape.num_elements
    work, seen, reduces = [parameter], {parameter}, False
    while work:
        i = work.pop()
        for user in i.users:
            if user.opcode == "tuple" and user.is_root:
                continue
            if user.opcode == "reduce":
                if i in user.operands[len(user.operands) // 2 :]:
                    return False
                reduces = True
                continue
            if not user.shape.is_array or user.shape.num_elements != elements:
                return False
            if not (user.op.is_elementwise or user.opcode in _STEP):
                return False
            if user not in seen:
                seen.add(user)
                work.append(user)
    return reduces

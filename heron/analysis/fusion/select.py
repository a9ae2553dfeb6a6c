"""Which emitter a fusion gets, and why."""

from __future__ import annotations

from typing import NamedTuple

from heron.analysis.fusion import in_place_update, transpose
from heron.analysis.fusion.cuts import are_slices, cuts_of
from heron.analysis.fusion.fusion import Fusion, row_major
from heron.analysis.fusion.prefix_scan import scan_of
from heron.analysis.fusion.rowwise import rows_of
from heron.analysis.indexing.hlo_maps import moves_elements
from heron.hlo.ir.instruction import Instruction

#: elements a reduce must combine for an emitter of its own; fewer are summed in the thread that needs them
MIN_REDUCED = 64
#: ops between the root and a reduce hero that keep its elements in place
_EPILOGUE = frozenset({"bitcast", "reshape", "get-tuple-element", "copy"})


#: the emitter of each hero
_EMITTERS = {"reduce": "reduce", "reduce-window": "scan", "scatter": "scatter"}


class Choice(NamedTuple):
    """The emitter by name, the instruction it is chosen for, and the reason; ``asked``: the emitter the hero asked for,
    when it gets another."""

    emitter: str
    hero: Instruction | None
    reason: str
    asked: str = ""

    @property
    def wanted(self) -> str:
        return self.asked or self.emitter


def choose(fusion: Fusion, in_place: bool = True) -> Choice:
    """The emitter for `fusion`. Without `in_place`, outputs have buffers of their own."""
    if fusion.blocks is not None:
        inside = fusion.computation.instructions
        hero = min(inside, key=lambda i: ("dot", "reduce").index(i.opcode) if i.opcode in ("dot", "reduce") else 2)
        return Choice("block", hero, f"'{hero.name}' is computed tile by tile with what is around it")
    rows = rows_of(fusion)
    if rows is not None:
        names = ", ".join(f"'{i.name}'" for i in rows.reduces)
        return Choice("rows", rows.reduces[-1], f"a row is stored after {names}, which reduce it")
    if fusion.parts:
        return Choice("loop", None, f"it is done in {fusion.parts} parts")
    for output in fusion.outputs:
        found = find_hero(output.instruction)
        if found is not None:
            wanted, why = found
            name = _EMITTERS.get(wanted.opcode, "")
            if name == "scan" and not row_major(fusion):
                return Choice("loop", wanted, f"{why}, but not everything is row-major", name)
            if name:
                return Choice(name, wanted, why)
            return Choice("loop", wanted, f"{why}, but there is no {wanted.opcode} emitter", wanted.opcode)
    if in_place and not in_place_update.updates(fusion)[1]:
        return Choice("dus", fusion.outputs[0].instruction, "every output updates an input in place")
    turned = transpose.candidate(fusion)
    if turned is not None:
        return Choice("transpose", turned, f"'{turned.name}' changes which dimension lies innermost")
    return elementwise(fusion)


def elementwise(fusion: Fusion) -> Choice:
    """The emitter for a fusion whose elements are each computed by themselves."""
    if are_slices(fusion):
        return Choice("slices", fusion.outputs[0].instruction, f"all {len(fusion.outputs)} outputs are slices")
    cuts = cuts_of(fusion)
    if cuts is not None:
        return Choice("concatenate", cuts.hero, f"'{cuts.hero.name}' joins {len(cuts.hero.operands)} operands")
    return Choice("loop", None, "each output element is computed by itself")


def find_hero(root: Instruction) -> tuple[Instruction, str] | None:
    """The scatter, sort, scan or large reduce at `root`, or below elementwise ops of equal size, and why it is one."""
    seen: set[Instruction] = set()
    stack = [root]
    while stack:
        i = stack.pop()
        if i in seen:
            continue
        seen.add(i)
        if i.opcode in ("scatter", "sort"):
            return i, f"'{i.name}' is a {i.opcode}"
        scan = scan_of(i)
        if scan is not None:
            return i, f"'{i.name}' is a scan along dimension {scan.dimension}"
        if i.opcode == "reduce":
            source = i.operands[0].shape
            combined = source.num_elements // max(1, _result_elements(i))
            if combined >= MIN_REDUCED:
                return i, f"'{i.name}' reduces {combined} elements to one"
            continue
        if i.opcode in _EPILOGUE or i.opcode == "map" or (i.op.is_elementwise and moves_elements(i)):
            stack.extend(reversed(i.operands))
    return None


def _result_elements(i: Instruction) -> int:
    parts = i.shape.tuple_shapes
    return (parts[0] if parts is not None else i.shape).num_elements

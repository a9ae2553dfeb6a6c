"""bitcast-dtypes-expander: bits as elements of another width, by shifts."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import by_name
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import applied, array, bits_of, convert, scalar
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class BitcastDtypesExpander(Expander):
    """Writes a bitcast-convert to a narrower or wider type with shifts, for targets whose kernels keep one width.

    A wide element is shifted once for each narrow one it holds, lowest bits first; narrow ones are shifted to their
    places and joined by or.

    ROOT r = u8[3,4] bitcast-convert(u32[3] x)
    ->
    spread = u32[3,4] broadcast(x), dimensions={0}
    place = u32[3,4] iota(), iota_dimension=1
    width = u32[] constant(8)
    widths = u32[3,4] broadcast(width), dimensions={}
    by = u32[3,4] multiply(place, widths)
    down = u32[3,4] shift-right-logical(spread, by)
    ROOT r = u8[3,4] convert(down)
    """

    name = "bitcast-dtypes-expander"
    opcodes = frozenset({"bitcast-convert"})

    def matches(self, i: Instruction) -> bool:
        old, new = i.operands[0].shape.element_type, i.shape.element_type
        return old.bits != new.bits and "pred" not in (old.kind, new.kind) and not new.is_complex

    def expand(self, i: Instruction) -> Instruction:
        old, new = i.operands[0].shape.element_type, i.shape.element_type
        words = bits_of(i.operands[0], by_name(f"u{old.bits}"))
        return bits_of(_cut(words, i) if new.bits < old.bits else _joined(words, i), new)


def _cut(words: Instruction, i: Instruction) -> Instruction:
    t, to = words.shape.element_type, by_name(f"u{i.shape.element_type.bits}")
    wide = array(t, i.shape.dims)
    spread = home(i).add("broadcast", [words], wide, dimensions=tuple(range(words.shape.rank)))
    place = home(i).add("iota", [], wide, iota_dimension=wide.rank - 1)
    return convert(spread >> (place * to.bits), to)


def _joined(words: Instruction, i: Instruction) -> Instruction:
    bits, to = words.shape.element_type.bits, by_name(f"u{i.shape.element_type.bits}")
    c, wide, last = home(i), array(to, words.shape.dims), words.shape.rank - 1
    place = c.add("iota", [], wide, iota_dimension=last)
    moved = convert(words, to) << place * bits
    assert c.module is not None
    joiner = applied(c.module, "or", to)
    return c.add("reduce", [moved, scalar(c, to, 0)], array(to, i.shape.dims), dimensions=(last,), to_apply=joiner)

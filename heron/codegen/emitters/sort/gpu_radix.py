"""The common part of the GPU kernels of a sort by keys, and the first of them: it counts the values of all bytes.

`gpu_radix_pass` has the passes and their sources.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from heron.analysis.fusion.fusion import Fusion, Output
from heron.analysis.fusion.partition import partition
from heron.analysis.fusion.radix_plan import FIRST_BIN, RADIX, THREADS, RadixPlan
from heron.analysis.fusion.sort_keys import Key
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.codegen.elemental import FunctionEmitter, Value
from heron.codegen.elemental.positions import index_to_scalar
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.control_words import add, control_shape
from heron.codegen.emitters.loops import at_most
from heron.codegen.emitters.sort.keys import emit_key
from heron.codegen.ir.dialects.xla_gpu import (
    AllocateSharedOp,
    SyncThreadsOp,
)
from heron.codegen.ir.types import I32, INDEX
from heron.codegen.kernel import Kernel, Launch
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.shape import Shape
from heron.records import dataclass
from heron.targets import Target

#: loads under way at once while keys are counted, and blocks of a core
_COUNTED_AT_ONCE, _COUNTING_BLOCKS = 8, 4


@dataclass(frozen=True, slots=True)
class RadixSort:
    """Rows of `shapes`, equal but for their element types, sorted along the last dimension by `keys`. ``made``: the
    numbers of those that are not read, because they are positions along the rows."""

    shapes: tuple[Shape, ...]
    comparator: Computation
    keys: tuple[Key, ...]
    plan: RadixPlan
    made: tuple[int, ...] = ()

    @property
    def given(self) -> tuple[Shape, ...]:
        """The arrays that are read."""
        return tuple(s for n, s in enumerate(self.shapes) if n not in self.made)

    def element(self, frame: Frame, index: Index) -> list[Value]:
        """The value at an index: read from the first arguments, or the position itself."""
        e, tensors = frame.e, iter(frame.block.args)
        return [
            index_to_scalar(e, index[-1], s.element_type) if n in self.made else e.extract(next(tensors), index)
            for n, s in enumerate(self.shapes)
        ]

    @property
    def control(self) -> Shape:
        return control_shape(self.plan.words)

    def frame(self, name: str, target: Target, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> Frame:
        """The entry of a kernel with these arguments."""
        c = Computation(name)
        given = [c.add_parameter(n, s.with_default_layout()) for n, s in enumerate((*inputs, *outputs))]
        c.root = given[-1]
        parameters, results = given[: len(inputs)], given[len(inputs) :]
        fusion = Fusion(c, tuple(parameters), tuple(Output(r, None, r.shape) for r in results))
        return Frame.of(fusion, partition(parameters), name, target)

    def index(self, frame: Frame, row: Expr, position: Expr) -> Index:
        """The index of element `position` of a row."""
        return frame.e.simplify((*delinearize(row, self.shapes[0].dims[:-1]), position))

    def words(self, e: FunctionEmitter, element: Sequence[Value]) -> list[SSAValue]:
        """The keys of an element, the least significant first, as words that hold the widest."""
        words = [emit_key(key, e, self.comparator, element) for key in reversed(self.keys)]
        if max(key.bits for key in self.keys) > 32:
            return words
        return [e.b.op(arith.TruncIOp, word, type=I32) for word in words]

    @property
    def first_digits(self) -> list[int]:
        """For each of `words` the number of its first digit."""
        bits = [key.bits // 8 for key in reversed(self.keys)]
        return [sum(bits[:n]) for n in range(len(bits))]


def lowest_byte(e: FunctionEmitter, word: SSAValue, shift: SSAValue) -> SSAValue:
    """The byte that many bits up, as an `i32`."""
    if shift.type != word.type:
        shift = e.b.op(arith.ExtUIOp, shift, type=word.type)
    byte = e.b.op(arith.ShRUIOp, word, shift)
    byte = byte if byte.type == I32 else e.b.op(arith.TruncIOp, byte, type=I32)
    return e.b.op(arith.AndIOp, byte, e.b.integer(RADIX - 1, I32))


# -- counting ----------------------------------------------------------------------------------------------------------


def emit_count(sort: RadixSort, name: str, target: Target) -> Kernel:
    """Arguments: the operands, and the control words, to which it adds how often each byte has each value."""
    frame, plan = sort.frame(name, target, sort.given, (sort.control,)), sort.plan
    e, b = frame.e, frame.e.b
    step = THREADS * _COUNTED_AT_ONCE
    parts = max(1, min(-(-plan.length // step), _COUNTING_BLOCKS * target.cores // plan.rows))
    rounds = -(-plan.length // (parts * step))
    parts = -(-plan.length // (rounds * step))
    thread = e.variable(frame.thread_id(), 0, THREADS - 1)
    block = e.variable(frame.block_id(), 0, plan.rows * parts - 1)
    row, part = e.simplify((block // parts, block % parts))
    counts = b.op(AllocateSharedOp, type=TensorType(I32, [plan.digits, RADIX]))
    for n in range(plan.digits):
        counts = e.insert(b.integer(0, I32), counts, (Const(n), thread))
    (counts,) = b.add(SyncThreadsOp([counts])).results

    def count(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        first = (part * rounds + variables[0]) * step + thread
        places = [first + k * THREADS for k in range(_COUNTED_AT_ONCE)]
        elements = []
        for place in places:
            index = sort.index(frame, row, at_most(e, place, plan.length - 1))
            elements.append(sort.element(frame, index))
        (counts,) = carried
        for place, element in zip(places, elements, strict=True):
            (counts,) = e.loop([], [counts], _Counted(sort, frame, element).add, below(place, plan.length))
        return [counts]

    (counts,) = e.loop([rounds], [counts], count)
    (counts,) = b.add(SyncThreadsOp([counts])).results
    (control,) = frame.outputs
    for n in range(plan.digits):
        found = e.read(counts, (Const(n), thread))
        at = e.simplify((Const(FIRST_BIN) + (row * plan.digits + n) * RADIX + thread,))

        def tell(found: SSAValue = found, at: Index = at, control: SSAValue = control) -> list[SSAValue]:
            return [add(e, found, control, at)[1]]

        (control,) = e.guarded(b.cmpi("ne", found, b.integer(0, I32)), [control], tell)
    frame.outputs[:] = [control]
    launch = Launch((plan.rows * parts, 1, 1), (THREADS, 1, 1), 4 * plan.digits * RADIX)
    return frame.finish(launch, "sort", {"form": f"counts of {plan.digits} bytes"})


@dataclass(frozen=True, slots=True)
class _Counted:
    """An element, to be counted by each of its bytes."""

    sort: RadixSort
    frame: Frame
    element: Sequence[Value]

    def add(self, _: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        e, (counts,) = self.frame.e, carried
        words, ends = self.sort.words(e, self.element), [*self.sort.first_digits[1:], self.sort.plan.digits]
        for word, first, end in zip(words, self.sort.first_digits, ends, strict=True):
            for n in range(first, end):
                at = value_index(e, lowest_byte(e, word, e.b.integer(8 * (n - first), word.type)))
                counts = add(e, e.b.integer(1, I32), counts, (Const(n), at))[1]
        return [counts]


def value_index(e: FunctionEmitter, digit: SSAValue) -> Expr:
    return e.variable(e.b.op(arith.IndexCastOp, digit, type=INDEX), 0, RADIX - 1)


def below(place: Expr, length: int):  # type: ignore[no-untyped-def]
    return lambda _: [(place, 0, length - 1)]

"""Histograms on the GPU: whole numbers that many updates add to a few elements.

Each block has private sums in shared memory, to which its threads add; at the end it adds them to the result. So
memory sees one atomic update for each block and element instead of one for each update, and conflicts between the
threads of a block stay in shared memory. Sums of whole numbers are the same in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from heron.analysis.fusion import scatter_order as facts
from heron.analysis.fusion.scatter import Scatter
from heron.analysis.indexing.hlo_maps import Index, delinearize, linearize
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.control_words import add
from heron.codegen.emitters.scatter.code import place_of
from heron.codegen.ir.dialects.xla_gpu import AllocateSharedOp, SyncThreadsOp
from heron.codegen.ir.types import I32
from heron.codegen.kernel import Kernel, Launch
from heron.hlo.ir.shape import scalar
from heron.hlo.ir.types import S32, U32

_THREADS = 256
#: elements of the result at most: 32 KB of sums, of which a core holds several
MOST_ELEMENTS = 8192
#: updates for each element, and updates of a thread, from which a block's own sums pay
LEAST_EACH, _UPDATES = 16, 16
#: blocks a core has at most
_BLOCKS = 4


def fits(s: Scatter) -> bool:
    """Whether a scatter adds many 32-bit whole numbers to few elements."""
    elements, updates = prod(s.target_dims), prod(s.sizes)
    if len(s.operands) != 1 or s.i.operands[0].shape.element_type not in (S32, U32) or not facts.order_is_free(s.i):
        return False
    is_sum = s.i.to_apply.root.opcode == "add"
    return is_sum and 0 < elements <= MOST_ELEMENTS and updates >= max(LEAST_EACH * elements, _THREADS * _UPDATES)


def emit(frame: Frame, s: Scatter) -> Kernel:
    """The kernel: sums of 0, an addition for each update, and one for each element that got some."""
    e, b = frame.e, frame.e.b
    elements, updates = prod(s.target_dims), prod(s.sizes)
    blocks = min(-(-updates // (_THREADS * _UPDATES)), _BLOCKS * frame.target.cores)
    thread = e.variable(frame.thread_id(), 0, _THREADS - 1)
    block = e.variable(frame.block_id(), 0, blocks - 1)
    own = b.op(AllocateSharedOp, type=TensorType(I32, [elements]))
    turns, rounds = -(-elements // _THREADS), -(-updates // (blocks * _THREADS))
    zero, single = b.integer(0, I32), scalar(s.i.operands[0].shape.element_type)

    def clear(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        return [e.insert(zero, carried[0], (variables[0] * _THREADS + thread,))]

    def count(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        number = (variables[0] * blocks + block) * _THREADS + thread
        index = e.simplify(delinearize(number, s.sizes))
        where, constraints = place_of(e, s, index)

        def one(_: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            (update,) = e.pack(e.value(s.updates[0], index), single)
            return [add(e, update, tensors[0], (linearize(where, s.target_dims),))[1]]

        return e.loop([], carried, one, lambda _: constraints)

    def merge(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        at = variables[0] * _THREADS + thread
        found = e.read(own, (at,))
        target = e.simplify(delinearize(at, s.target_dims))
        return e.guarded(b.cmpi("ne", found, zero), carried, lambda: [add(e, found, carried[0], target)[1]])

    (own,) = e.loop([turns], [own], clear, lambda v: [(v[0] * _THREADS + thread, 0, elements - 1)])
    (own,) = b.add(SyncThreadsOp([own])).results
    (own,) = e.loop([rounds], [own], count, lambda v: [((v[0] * blocks + block) * _THREADS + thread, 0, updates - 1)])
    (own,) = b.add(SyncThreadsOp([own])).results
    frame.outputs[:] = e.loop([turns], frame.outputs, merge, lambda v: [(v[0] * _THREADS + thread, 0, elements - 1)])
    launch = Launch((blocks, 1, 1), (_THREADS, 1, 1), 4 * elements)
    return frame.finish(launch, "scatter", {"updates": "atomic in shared memory", "elements": str(elements)})

"""Custom calls of attention: cuDNN on a GPU, NumPy elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.calls.host import call, library_call, memory_order
from heron.errors import HeronError
from heron.hlo.calls import attention
from heron.hlo.ir.instruction import Instruction
from heron.runtime.cuda.libraries.cudnn_attention import Attention as Descriptor
from heron.runtime.host.attention import Attention
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering

_ROWS, _SEQUENCE_FIRST = (0, 1, 2, 3), (0, 2, 1, 3)


def attention_call(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """Attention forward; on a GPU `attention-expander` has written derivatives out. Raises GEN011 for one, GEN013."""
    config, operands = attention.read(i), len(i.operands)
    routine = Attention(config, operands)
    if lowering.target.kind == "cpu":
        return call(lowering, i, routine, "numpy")
    if config.backward:
        raise HeronError("GEN011", f"unsupported call '{i.custom_call_target}'", where=str(i),
                         hint="attention-expander writes it out")  # fmt: skip
    results = i.shape.tuple_shapes or (i.shape,)
    out = memory_order(results[0])
    for x in (*(o.shape for o in i.operands), *results[1:]):
        if memory_order(x) != tuple(range(x.rank)):
            raise _bad(i, "an array that is not row-major")
    if out not in (_ROWS, _SEQUENCE_FIRST):
        raise _bad(i, "an output in another order than its operands may have")
    facts = config.scale, config.heads_first, out == _ROWS, config.causal, config.has_bias, len(results) > 2
    return library_call(lowering, i, lambda arrays: Descriptor(arrays, *facts), routine)


def _bad(i: Instruction, what: str) -> HeronError:
    return HeronError("GEN013", f"'{i.name}' has {what}", where=str(i), hint="state the layouts JAX states")

"""Custom calls of attention: cuDNN on a GPU, NumPy elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.calls.host import call, library_call, memory_order, need_orders
from heron.errors import HeronError
from heron.hlo.calls import attention
from heron.hlo.ir.instruction import Instruction
from heron.runtime.cuda.libraries.cudnn_attention import Attention as Descriptor
from heron.runtime.host.attention import Attention
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering

_ROWS = (0, 1, 2, 3)


def lower(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """Attention forward; on a GPU `attention-expander` has written derivatives out. Raises GEN011 for one, GEN013."""
    config, operands = attention.read(i), len(i.operands)
    routine = Attention(config, operands)
    if not lowering.target.is_gpu:
        return call(lowering, i, routine, "numpy")
    if config.backward:
        what = f"unsupported custom call target '{i.custom_call_target}'"
        raise HeronError("GEN011", what, where=str(i), hint=attention.CALL.hint)
    results = i.shape.tuple_shapes or (i.shape,)
    out = memory_order(results[0])
    need_orders(i, attention.CALL)
    facts = config.scale, config.heads_first, out == _ROWS, config.causal, config.has_bias, len(results) > 2
    return library_call(lowering, i, lambda arrays: Descriptor(arrays, *facts), routine)

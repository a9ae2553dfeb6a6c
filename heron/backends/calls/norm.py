"""Custom calls of norms: cuDNN on a GPU, NumPy elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.calls.host import call, library_call, need_orders
from heron.hlo.calls import norm
from heron.hlo.ir.instruction import Instruction
from heron.runtime.cuda.libraries.cudnn_norm import Norm as Descriptor
from heron.runtime.host.norm import Norm
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def lower(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """A norm or its derivative. Raises GEN013 for arrays that are not row-major."""
    config, operands = norm.read(i), len(i.operands)
    routine = Norm(config, operands)
    if not lowering.target.is_gpu:
        return call(lowering, i, routine, "numpy")
    need_orders(i, norm.CALL)
    return library_call(lowering, i, lambda arrays: Descriptor(arrays, config.kind, config.epsilon, operands), routine)

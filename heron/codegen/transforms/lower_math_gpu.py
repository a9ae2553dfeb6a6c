"""math.* functions -> calls of NVIDIA's libdevice (`__nv_expf`, `__nv_exp`, …). f16 and bf16 compute in f32.

LLVM's NVPTX backend kills the process on most `llvm.*` math intrinsics, so none may reach it. Nor may `frem`, which it
computes from a rounded quotient: that is wrong by a whole divisor, or by more where the quotient has over 24 bits.

    %y = math.tanh %x : f32
    ->
    %y = func.call @__nv_tanhf(%x) : (f32) -> f32

What the backend computes wrongly without ending (`lib/nvptx_faults.py`) is written in another way.

With `TransformOptions.approximate`, f32 functions that the hardware approximates are those (`__nv_fast_tanhf`).
"""

from __future__ import annotations

from xdsl.dialects.builtin import Float64Type, ModuleOp
from xdsl.ir import Attribute, Operation

from heron.codegen.transforms.lib.math_names import lower_to_calls
from heron.codegen.transforms.lib.nvptx_faults import FAULTS
from heron.codegen.transforms.options import TransformOptions


def run(module: ModuleOp, options: TransformOptions | None = None) -> None:
    """Rewrites the module in place; what PTX has as an instruction (sqrt, floor, fma, …) stays."""
    lower_to_calls(module, _approximate if options is not None and options.approximate else _name, FAULTS)


def _name(function: str, type_: Attribute, _: Operation) -> str:
    return f"__nv_{function}" if isinstance(type_, Float64Type) else f"__nv_{function}f"


#: functions libdevice has an approximate form of, for f32
APPROXIMATED = frozenset("exp log log2 log10 pow sin cos tan tanh".split())


def _approximate(function: str, type_: Attribute, op: Operation) -> str:
    fast = function in APPROXIMATED and not isinstance(type_, Float64Type)
    return f"__nv_fast_{function}f" if fast else _name(function, type_, op)

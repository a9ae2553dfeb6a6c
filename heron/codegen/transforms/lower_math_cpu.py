"""math.* functions -> calls of the inline library (`heron.NAME.TYPE`, heron/codegen/llvm/inline).

The library's definitions are branch-free and inlined by LLVM before its loop vectoriser runs, so a loop over tanh
becomes vector code. f16 and bf16 compute in f32.

    %y = math.tanh %x : f32
    ->
    %y = func.call @heron.tanh.f32(%x) : (f32) -> f32
"""

from __future__ import annotations

from math import frexp

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from heron.codegen.llvm.inline import has
from heron.codegen.llvm.inline.remainder import NEAR
from heron.codegen.llvm.types import short_name
from heron.codegen.transforms.lib.math_names import lower_to_calls
from heron.codegen.transforms.options import TransformOptions


def run(module: ModuleOp, options: TransformOptions | None = None) -> None:
    """Rewrites the module in place; what LLVM has as an instruction (sqrt, floor, fma, …) stays."""
    lower_to_calls(module, _name)


def _name(function: str, type_: Attribute, op: Operation) -> str | None:
    kind = short_name(type_)
    if function == "fmod" and kind in NEAR and _is_near(op.operands[1], kind):
        return f"heron.fmod_near.{kind}"
    name = f"heron.{function}.{kind}"
    # LLVM has three instructions for a remainder of f64 by a power of two, and calls the C library for others
    return None if function == "fmod" and not has(name) else name


def _is_near(divisor: SSAValue, kind: str) -> bool:
    """Whether a divisor is a constant by which the library's remainder takes few steps."""
    value = divisor.owner.properties["value"] if isinstance(divisor.owner, arith.ConstantOp) else None
    if not isinstance(value, FloatAttr):
        return False
    (least, most), size = NEAR[kind], abs(value.value.data)
    return least <= size <= most and not (kind == "f64" and frexp(size)[0] == 0.5)

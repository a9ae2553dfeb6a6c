"""math.* functions -> calls of the inline library (`heron.NAME.TYPE`, heron/codegen/llvm/inline).

The library's definitions are branch-free and inlined by LLVM before its loop vectoriser runs, so a loop over tanh
becomes vector code. f16 and bf16 compute in f32.

    %y = math.tanh %x : f32
    ->
    %y = func.call @heron.tanh.f32(%x) : (f32) -> f32
"""

from __future__ import annotations

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
    near = f"heron.{function}_near.{short_name(type_)}"
    if function == "fmod" and has(near) and _is_near(op.operands[1]):
        return near
    name = f"heron.{function}.{short_name(type_)}"
    # LLVM calls the C library for the remainder of f64
    return None if function == "fmod" and not has(name) else name


def _is_near(divisor: SSAValue) -> bool:
    """Whether a divisor is a constant for which a remainder has few steps."""
    value = divisor.owner.properties["value"] if isinstance(divisor.owner, arith.ConstantOp) else None
    return isinstance(value, FloatAttr) and abs(value.value.data) >= NEAR

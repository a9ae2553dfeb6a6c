"""Function over inline-library functions, compiled and run on NumPy arrays."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

from heron.codegen.llvm.inline import definitions
from heron.codegen.llvm.inline.builder import LLVM_TYPES, REGISTRY
from heron.codegen.llvm.jit import Jit

JIT = Jit(level=2)


def loop_text(name: str, symbol: str, scales: bool = False) -> str:
    """LLVM text of `symbol`(arguments…, result, n): a loop that calls the library function on each element."""
    definition = REGISTRY[name]
    result = LLVM_TYPES[definition.result]
    types = [LLVM_TYPES[t] for t in definition.arguments]
    formal = ", ".join(f"ptr noalias %a{i}" for i in range(len(types)))
    loads = "\n".join(
        f"  %p{i} = getelementptr inbounds {t}, ptr %a{i}, i64 %i\n  %x{i} = load {t}, ptr %p{i}"
        for i, t in enumerate(types)
    )
    actual = ", ".join(f"{t} %x{i}" for i, t in enumerate(types))
    return f"""
define void @{symbol}({formal}, ptr noalias %out, i64 %n) nounwind {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i1, %body ]
  %c = icmp slt i64 %i, %n
  br i1 %c, label %body, label %done
body:
{loads}
  %y = call {result} @{name}({actual})
  %q = getelementptr inbounds {result}, ptr %out, i64 %i
  store {result} %y, ptr %q
  %i1 = add nsw i64 %i, 1
  br label %head
done:
  ret void
}}
{definitions([name], scales)}
"""


@cache
def compiled(name: str, scales: bool = False) -> object:
    symbol = "loop_" + name.replace(".", "_") + "_scales" * scales
    address = JIT.add(loop_text(name, symbol, scales), symbol).addresses[symbol]
    count = len(REGISTRY[name].arguments)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (count + 1), ctypes.c_int64)(address)


def run(name: str, *arrays: np.ndarray, dtype: object = None, scales: bool = False) -> np.ndarray:
    """The library function over whole arrays; ``scales``: by an instruction that AVX-512 has."""
    out = np.empty(arrays[0].shape, dtype or arrays[0].dtype)
    inputs = [np.ascontiguousarray(a) for a in arrays]
    compiled(name, scales)(*(a.ctypes.data for a in inputs), out.ctypes.data, out.size)  # type: ignore[operator]
    return out

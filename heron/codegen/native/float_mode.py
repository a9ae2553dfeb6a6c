"""The floating-point mode of a thread as LLVM text: whether denormals count or are taken for zero.

Arithmetic with denormals costs x86 a trap of some 150 cycles. ``i64 heron_float_mode()`` gives the mode of the calling
thread and ``heron_set_float_mode(i64)`` sets it. On machines other than x86-64 and AArch64 both do nothing.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping

from heron.codegen.llvm.text import Module
from heron.codegen.native.common_code import for_good
from heron.once import once
from heron.records import dataclass
from heron.runtime import compiled
from heron.runtime.cpu.call import HELPER as CALLER

READ, WRITE = "i64 @heron_float_mode()", "void @heron_set_float_mode(i64)"


@dataclass(frozen=True, slots=True)
class _Machine:
    """``flush``: the bits of the mode that take denormals for zero, as operands and as results."""

    flush: int
    read: str
    write: str


_NONE = _Machine(0, "  ret i64 0", "  ret void")
#: MXCSR, its bits FTZ and DAZ
_X86 = _Machine(
    0x8040,
    """  %at = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  %short = load i32, ptr %at
  %mode = zext i32 %short to i64
  ret i64 %mode""",
    """  %at = alloca i32
  %short = trunc i64 %mode to i32
  store i32 %short, ptr %at
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  ret void""",
)
#: FPCR, its bit FZ
_ARM = _Machine(
    1 << 24,
    "  %mode = call i64 @llvm.aarch64.get.fpcr()\n  ret i64 %mode",
    "  call void @llvm.aarch64.set.fpcr(i64 %mode)\n  ret void",
)
_MACHINES = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}


def _machine() -> _Machine:
    return _MACHINES.get(platform.machine().lower(), _NONE)


def flush_bits() -> int:
    """The bits of a mode that take denormals for zero; 0 where this machine cannot."""
    return _machine().flush


def _text(linkage: str) -> str:
    """LLVM text of both functions. They are not inlined: LLVM moves arithmetic across code that it knows to do none."""
    m = _machine()
    read = f"define {linkage}{READ} noinline nounwind {{\n{m.read}\n}}"
    write = f"define {linkage}{WRITE.replace('(i64)', '(i64 %mode)')} noinline nounwind {{\n{m.write}\n}}"
    return f"{read}\n\n{write}"


def write(module: Module, linkage: str = "internal ") -> None:
    """Both functions as a module's own."""
    for signature in (READ, WRITE):
        module.declared.define(_name(signature))
    module.functions.append(_text(linkage))


@once
def addresses() -> Mapping[str, int]:
    """The addresses of both functions by name, for programs: in each program they would be half a millisecond more for
    LLVM. They are in the code that calls programs, and where there is none, in code of their own."""
    called = compiled.functions(CALLER)
    if called is not None:
        return {_name(signature): called[_name(signature)] for signature in (READ, WRITE)}
    module = Module()
    write(module, linkage="")
    return for_good("float mode", module.text())


def _name(signature: str) -> str:
    return signature[signature.index("@") + 1 : signature.index("(")]

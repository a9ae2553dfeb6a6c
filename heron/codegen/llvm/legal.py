"""Checks that the NVPTX backend can select an IR. It would end the process otherwise, so heron refuses first.

The list was made by compiling each intrinsic in a process of its own (LLVM 22, sm_90).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from heron.errors import HeronError

if TYPE_CHECKING:
    from llvmlite.binding import ModuleRef

_ANY_FLOAT = frozenset(
    "fabs floor ceil trunc rint nearbyint roundeven round sqrt minnum maxnum minimum maximum minimumnum maximumnum "
    "copysign fma fmuladd canonicalize".split()
)
_OTHER = frozenset(
    "ctpop ctlz cttz bswap bitreverse smax smin umax umin abs sadd.sat uadd.sat ssub.sat usub.sat sshl.sat ushl.sat "
    "fshl fshr fptosi.sat fptoui.sat ldexp powi is.fpclass sadd.with.overflow uadd.with.overflow ssub.with.overflow "
    "usub.with.overflow smul.with.overflow umul.with.overflow scmp ucmp memcpy memmove memset assume expect "
    "lifetime.start lifetime.end "
    "experimental.noalias.scope.decl invariant.start invariant.end trap stacksave stackrestore dbg.value dbg.declare "
    "vector.reduce.add vector.reduce.mul vector.reduce.and vector.reduce.or vector.reduce.xor vector.reduce.fadd "
    "vector.reduce.fmul vector.reduce.smax vector.reduce.smin vector.reduce.umax vector.reduce.umin "
    "vector.reduce.fmax vector.reduce.fmin vector.insert vector.extract is.constant objectsize".split()
)
#: selectable only where approximation is allowed (the ``afn`` flag), and only for f32
_APPROXIMATE = frozenset({"sin", "cos", "tanh", "log2"})
_CALL = re.compile(r"call ([^@\n]*)@([\w.$]+)\(")
_SUFFIX = re.compile(r"(\.(v\d+)?(i\d+|f16|bf16|f32|f64|p\d+))+$")
_WIDE_DIVISION = re.compile(r"= (?:sdiv|udiv|srem|urem)(?: exact)? i(?:1[0-9][0-9]|[2-9][0-9][0-9])\b")
_VECTOR_ATOMIC = re.compile(r"atomicrmw [^\n]*<\d+ x ")
_REMAINDER = re.compile(r"= frem\b")
_WIDE_FLOAT = re.compile(r"\b(?:fp128|x86_fp80|ppc_fp128)\b")


def check(text: str) -> None:
    """Raises LLVM023, naming the line, for LLVM text the NVPTX backend cannot compile."""
    defined = set(re.findall(r"^define [^@\n]*@([\w.$]+)\(", text, re.MULTILINE))
    for match in _CALL.finditer(text):
        flags, name = match.groups()
        if name in defined or name.startswith("__nv_") or name == "vprintf":
            continue
        if not name.startswith("llvm."):
            raise _refuse(text, match.start(), f"function '{name}' is not defined and not in libdevice")
        if not _selectable(name.removeprefix("llvm."), flags):
            raise _refuse(text, match.start(), f"NVPTX has no instruction for '{name}'")
    for pattern, why in (
        (_WIDE_DIVISION, "NVPTX cannot divide integers wider than 64 bits"),
        (_VECTOR_ATOMIC, "NVPTX has no vector atomics through atomicrmw"),
        (_REMAINDER, "NVPTX computes 'frem' from a rounded quotient; __nv_fmodf and __nv_fmod are exact"),
        (_WIDE_FLOAT, "NVPTX has no floats wider than 64 bits"),
    ):
        if found := pattern.search(text):
            raise _refuse(text, found.start(), why)


def check_optimised(module: ModuleRef) -> None:
    """`check` of what the optimiser made of checked text: it may call other functions, and does nothing else new.

    So their names tell; the text is written and read only where they do not.
    """
    declared = (f.name for f in module.functions if f.is_declaration)
    if not all(n.startswith("llvm.") and _selectable(n.removeprefix("llvm."), "") for n in declared):
        check(str(module))


def _selectable(name: str, flags: str) -> bool:
    if name.startswith("nvvm."):
        return True
    suffix = _SUFFIX.search(name)
    base = name[: suffix.start()] if suffix else name
    if base in _ANY_FLOAT or base in _OTHER:
        return True
    is_f32 = suffix is not None and suffix.group(0) == ".f32"
    if base == "exp2":
        return is_f32
    return base in _APPROXIMATE and is_f32 and ("afn" in flags or "fast" in flags)


def _refuse(text: str, position: int, why: str) -> HeronError:
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    return HeronError(
        "LLVM023",
        "this IR cannot be compiled for an NVIDIA GPU",
        where=text[start : end if end > 0 else None].strip(),
        why=why,
        hint="lower maths with lower-math-gpu before translating",
    )

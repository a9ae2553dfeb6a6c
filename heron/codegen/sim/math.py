"""libdevice names on the host: `__nv_*` calls become the inline library's functions, or libm's.

`complete` makes LLVM text self-contained: it defines the `__nv_*` and `heron.*` functions the text calls and the
conversion routines x86 code generation may call.
"""

from __future__ import annotations

import re

from heron.codegen.llvm.declarations import declared
from heron.codegen.llvm.inline import definitions, has
from heron.errors import HeronError

#: libdevice functions the inline library does not have -> C name
_LIBM = {"fmod", "hypot", "lgamma", "tgamma", "erfc", "remainder", "exp10", "nextafter"}
_BINARY = {"pow", "atan2", "fmod", "hypot", "remainder", "nextafter"}
#: what x86 calls for conversions it has no instruction for
_SOFT = {
    "__truncsfbf2": ("f32", "float", "bf16", "bfloat"),
    "__truncdfbf2": ("f64", "double", "bf16", "bfloat"),
    "__truncdfhf2": ("f64", "double", "f16", "half"),
}


def complete(text: str) -> str:
    """The text with every library function it calls defined. Raises RUN072 for a `__nv_*` with no host equivalent."""
    called = set(re.findall(r"@(__nv_\w+)\(", text))
    text = re.sub(r"^declare [^\n]*@(?:__nv_\w+|heron\.[\w.]+)\([^\n]*\n", "", text, flags=re.MULTILINE)
    lines: list[str] = []
    for name in sorted(called - _defined(text)):
        lines += _wrapper(name)
    if "bfloat" in text or "half" in text:
        there = _defined(text)
        for name, (a, source, b, target) in _SOFT.items():
            if name in there:
                continue
            lines += _function("define", target, name, [source], f"heron.convert.{a}.{b}")
    text = "\n".join([text, *lines, ""])
    missing = set(re.findall(r"call [^@\n]*@(heron\.[\w.]+)\(", text)) - _defined(text)
    text = "\n".join([text, definitions(sorted(missing)), ""])
    known = set(re.findall(r"^declare [^@\n]*@([\w.]+)\(", text, re.MULTILINE))
    return text + declared(*(s for name, s in _libm_signatures(text).items() if name not in known)) + "\n"


def _defined(text: str) -> set[str]:
    return set(re.findall(r"^define [^@\n]*@([\w.]+)\(", text, re.MULTILINE))


def _wrapper(name: str) -> list[str]:
    base, kind = _split(name)
    scalar = "double" if kind == "f64" else "float"
    operands = [scalar] * (2 if base in _BINARY else 1)
    library = f"heron.{base}.{kind}"
    if has(library):
        return _function("define internal", scalar, name, operands, library)
    if base in _LIBM:
        return _function("define internal", scalar, name, operands, base + ("" if kind == "f64" else "f"))
    raise HeronError("RUN072", f"the simulated GPU has no '{name}'", hint="add it to heron/codegen/sim/math.py")


def _function(kind: str, result: str, name: str, operands: list[str], target: str) -> list[str]:
    arguments = ", ".join(f"{t} %a{i}" for i, t in enumerate(operands))
    inline = " alwaysinline" if "internal" in kind else ""
    return [
        f"{kind} {result} @{name}({arguments}){inline} nounwind {{",
        f"  %r = call {result} @{target}({arguments})",
        f"  ret {result} %r",
        "}",
    ]


def _libm_signatures(text: str) -> dict[str, str]:
    found = {}
    for base in _LIBM:
        for name, scalar in ((base, "double"), (base + "f", "float")):
            if f"@{name}(" in text:
                operands = ", ".join([scalar] * (2 if base in _BINARY else 1))
                found[name] = f"{scalar} @{name}({operands})"
    return found


def _split(name: str) -> tuple[str, str]:
    """``__nv_tanhf`` -> (tanh, f32); ``__nv_erf`` -> (erf, f64)."""
    base = name.removeprefix("__nv_")
    if base == "erf" or not base.endswith("f"):
        return base, "f64"
    return base[:-1], "f32"

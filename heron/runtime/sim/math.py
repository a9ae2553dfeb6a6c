"""libdevice names on the host: `__nv_*` calls become the inline library's functions, or libm's."""

from __future__ import annotations

import re

from heron.codegen.llvm.inline import definitions, has
from heron.errors import HeronError

_CALL = re.compile(r"@(__nv_\w+)\(")
#: names libdevice spells its own way -> C names
_LIBM = {"rcbrt": None, "fmod": "fmod", "hypot": "hypot", "lgamma": "lgamma", "tgamma": "tgamma", "erfc": "erfc",
         "remainder": "remainder", "exp10": "exp10", "nextafter": "nextafter"}  # fmt: skip
_BINARY = {"pow", "atan2", "fmod", "hypot", "remainder", "nextafter"}
#: what x86 calls for conversions it has no instruction for
_SOFT = {
    "__truncsfbf2": ("f32", "float", "bf16", "bfloat"),
    "__truncdfbf2": ("f64", "double", "bf16", "bfloat"),
    "__truncdfhf2": ("f64", "double", "f16", "half"),
}


def bind(text: str) -> str:
    """LLVM text that defines every ``__nv_*`` function ``text`` calls. Raises RUN072 for one with no host equivalent."""
    lines, needed, declared = [], set(), {}
    for name in sorted(set(_CALL.findall(text))):
        base, kind = _split(name)
        scalar = "double" if kind == "f64" else "float"
        count = 2 if base in _BINARY else 1
        library = f"heron.{base}.{kind}"
        if has(library):
            needed.add(library)
            target = library
        elif _LIBM.get(base):
            target = _LIBM[base] + ("" if kind == "f64" else "f")
            declared[target] = f"declare {scalar} @{target}({', '.join([scalar] * count)})"
        else:
            raise HeronError("RUN072", f"the simulated GPU has no '{name}'", hint="add it to heron/runtime/sim/math.py")
        formal = ", ".join(f"{scalar} %a{i}" for i in range(count))
        lines += [
            f"define internal {scalar} @{name}({formal}) alwaysinline nounwind {{",
            f"  %r = call {scalar} @{target}({formal})",
            f"  ret {scalar} %r",
            "}",
        ]
    library_text, more = definitions(sorted(needed)) if needed else ("", {})
    known = set(re.findall(r"define [^@\n]*@(heron[\w.]+)\(", text))
    if known & needed:
        library_text, more = definitions(sorted(needed - known))
    declared |= more
    lines += [line for symbol, line in declared.items() if f"@{symbol}(" not in _declarations(text)]
    return "\n".join([*lines, library_text])


def soft_conversions(text: str) -> str:
    """Definitions of the conversion routines x86 code generation calls for bf16 and f16."""
    if "bfloat" not in text and "half" not in text:
        return ""
    lines: list[str] = []
    needed = []
    for name, (a, from_type, b, to_type) in _SOFT.items():
        library = f"heron.convert.{a}.{b}"
        needed.append(library)
        lines += [
            f"define {to_type} @{name}({from_type} %x) nounwind {{",
            f"  %r = call {to_type} @{library}({from_type} %x)",
            f"  ret {to_type} %r",
            "}",
        ]
    known = set(re.findall(r"define [^@\n]*@(heron[\w.]+)\(", text))
    library_text, declared = definitions([name for name in needed if name not in known])
    lines += [line for symbol, line in declared.items() if f"@{symbol}(" not in _declarations(text)]
    return "\n".join([*lines, library_text])


def _declarations(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.startswith("declare "))


def _split(name: str) -> tuple[str, str]:
    """``__nv_tanhf`` -> (tanh, f32); ``__nv_erf`` -> (erf, f64)."""
    base = name.removeprefix("__nv_")
    known_double = {"erf"}
    if base in known_double or not base.endswith("f"):
        return base, "f64"
    return base[:-1], "f32"

"""Rules of PTX texts: code that kernels never have under IEEE's rules, and limits of every launch."""

from __future__ import annotations

from collections.abc import Iterator

from tests.ptx.text import Function, Instruction, Module

#: approximate instructions that NVIDIA's device library builds its functions of, for arguments it has brought near
BUILT_ON = frozenset(
    "ex2.approx.ftz.f32 lg2.approx.f32 lg2.approx.ftz.f32 rcp.approx.ftz.f32 rcp.approx.ftz.f64 rsqrt.approx.f32 "
    "rsqrt.approx.ftz.f32 rsqrt.approx.f64 rsqrt.approx.ftz.f64 div.approx.f32 div.approx.ftz.f32".split()
)
#: bytes of parameters that every driver takes, of shared memory that is not asked for, threads of a block
PARAMETERS, SHARED, THREADS = 4096, 48 << 10, 1024


def broken(module: Module) -> list[str]:
    """The rules that a module breaks, by function."""
    return [f"{f.name}: {what}" for f in module.functions.values() for what in (*_limits(f, module), *_code(f))]


def _limits(f: Function, module: Module) -> Iterator[str]:
    size = sum(v.size for v in f.parameters)
    if f.entry and size > PARAMETERS:
        yield f"{size} bytes of parameters, at most {PARAMETERS}"
    threads = 1
    for n in f.block:
        threads *= n
    if threads > THREADS:
        yield f"blocks of {threads} threads"
    shared = sum(v.size for v in f.locals_ if v.space == "shared")
    named = {o for i in f.body if isinstance(i, Instruction) for o in i.operands}
    shared += sum(v.size for v in module.variables if v.space == "shared" and v.name in named)
    if shared > SHARED:
        yield f"{shared} bytes of shared memory, at most {SHARED}"


def _code(f: Function) -> Iterator[str]:
    for i in f.body:
        if not isinstance(i, Instruction):
            continue
        name, *mods = i.opcode.split(".")
        if ({"approx", "full"} & set(mods)) and i.opcode not in BUILT_ON:
            yield f"line {i.line}: {i} is approximate"
        elif "ftz" in mods and "approx" not in mods and not (name == "mul" and f.name.startswith("__")):
            yield f"line {i.line}: {i} takes denormals for 0"
        elif name == "rem" and mods[-1][0] == "f":
            yield f"line {i.line}: {i} is no remainder of floats"

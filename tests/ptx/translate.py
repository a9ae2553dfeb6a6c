"""A PTX module as LLVM text for the simulator (`heron.codegen.sim`), which runs it with all its checks.

Nothing of LLVM's backend for NVIDIA's GPUs is in it: what a kernel gives by way of its PTX and what it gives by way of
the LLVM text that the PTX was made of agree only if the backend, and NVIDIA's device library, did right.
"""

from __future__ import annotations

from tests.ptx import floats, integers, memory  # noqa: F401  (registers meanings)
from tests.ptx.body import MEANINGS, Body, Unknown
from tests.ptx.memory import label
from tests.ptx.text import Instruction, Label, Module, Variable, bits_of, parse


def to_llvm(text: str | Module, kernel: str = "") -> str:
    """The LLVM text of a module, or of one of its kernels and what all may call. Raises `Unknown` for an instruction
    without a meaning here."""
    module = parse(text) if isinstance(text, str) else text
    wanted = [f for f in module.functions.values() if not (f.entry and kernel) or f.name == kernel]
    symbols, lines, called = {}, [], set[str]()
    grain = _grain(module)
    for v in module.variables:
        lines.append(_global(v, grain))
        symbols[v.name] = f"addrspacecast (ptr addrspace(3) @{v.name} to ptr)" if v.space == "shared" else f"@{v.name}"
    for function in wanted:
        if function.entry:
            for v in (v for v in function.locals_ if v.space == "shared"):
                lines.append(_global(v, grain))
                symbols[v.name] = f"addrspacecast (ptr addrspace(3) @{v.name} to ptr)"
    for function in wanted:
        body = Body(function, dict(symbols), module.functions)
        lines += _function(body)
        called |= body.called
    return "\n".join([*lines, *(f"declare {signature}" for signature in sorted(called)), ""])


def _grain(module: Module) -> int:
    """The bytes of the smallest access of shared memory: what the simulator tells accesses apart by."""
    found = [64]
    for function in module.functions.values():
        for i in function.body:
            if isinstance(i, Instruction) and ".shared" in i.opcode:
                found.append(bits_of(i.opcode.split(".")[-1]))
    return min(found) // 8


def _global(v: Variable, grain: int) -> str:
    if v.space == "shared":
        while v.size % grain:
            grain //= 2
        count, bits = v.size // grain, 8 * grain
        return f"@{v.name} = internal addrspace(3) global [{count} x i{bits}] undef, align {v.align}"
    data = "".join(f"\\{byte:02x}" for byte in v.data.ljust(v.size, b"\0"))
    return f'@{v.name} = internal constant [{v.size} x i8] c"{data}", align {v.align}'


def _function(b: Body) -> list[str]:
    function = b.function
    b.slots += [f"  {b.slot_of(r)} = alloca i{bits}" for r, bits in function.registers.items()]
    b.slots.append("  %ptx.carry = alloca i1")
    for v in function.locals_:
        if v.space == "local":
            b.declare(v)
    if function.entry:
        arguments = _enter(b)
    else:
        given = [*function.returns, *function.parameters]
        b.symbols |= {v.name: f"%{v.name}" for v in given}
        arguments = ", ".join(f"ptr %{v.name}" for v in given)
    for item in function.body:
        if isinstance(item, Label):
            b.label(label(item.name))
        elif isinstance(item, Variable):
            b.declare(item)
        else:
            _instruction(b, item)
    if not b.ended:
        b.end("ret void")
    kind = "ptx_kernel void" if function.entry else "internal void"
    return [f"define {kind} @{function.name}({arguments}) {{", "ptx.entry:", *b.slots, *b.lines, "}", ""]


def _enter(b: Body) -> str:
    """A kernel's parameters are pointers, kept in memory from where ``ld.param`` takes them."""
    names = []
    for v in b.function.parameters:
        if not v.pointer:
            raise Unknown(f"parameter {v.name} is no array")
        names.append(f"%{v.name}")
        b.declare(v)
        b.line(f"store ptr %{v.name}, ptr {b.symbols[v.name]}")
    shared = [s for s in b.symbols.values() if "addrspace(3)" in s]
    places = [*names, *shared][:2]
    if len(places) == 2:  # of two origins, which the simulator cannot tell apart: it looks at all arrays
        first = b.value(f"ptrtoint ptr {places[0]} to i64")
        b.anywhere = b.select(b.two("icmp eq", 64, first, 1), "ptr", *places)
    elif places:
        b.anywhere = places[0]
    return ", ".join(f"ptr {n}" for n in names)


def _instruction(b: Body, i: Instruction) -> None:
    name, *mods = i.opcode.replace("::", ".").split(".")
    meaning = MEANINGS.get(name)
    if meaning is None:
        raise Unknown(str(i))
    try:
        if not i.guard:
            meaning(b, i, mods)
            return
        yes, after = b.fresh("ptx.yes"), b.fresh("ptx.after")
        holds = b.read(i.guard.lstrip("!"), 1)
        where = (after, yes) if i.guard.startswith("!") else (yes, after)
        b.end(f"br i1 {holds}, label %{where[0]}, label %{where[1]}")
        b.label(yes)
        meaning(b, i, mods)
        b.label(after)
    except (Unknown, KeyError, ValueError) as error:
        raise Unknown(f"line {i.line}: {i}: {error}") from error

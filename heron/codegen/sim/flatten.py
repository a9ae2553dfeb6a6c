"""First step of the simulation: one GPU kernel as a single host function in canonical text.

Address spaces and the GPU calling convention go, device functions are inlined, SSA values get names. Of the GPU remain
the `llvm.nvvm.*` calls, which `coroutine` rewrites.
"""

from __future__ import annotations

import re

from heron.codegen.llvm.jit import host
from heron.codegen.llvm.optimize import LOCK, binding, free, parse
from heron.codegen.sim.math import complete
from heron.errors import HeronError
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Flat:
    """``head``: globals, declarations, attributes, metadata; ``body``: the lines of the kernel between its braces.

    ``arguments``: (type, name) pairs. ``shared``: shared-memory objects. ``constants``: other globals.
    """

    head: str
    arguments: tuple[tuple[str, str], ...]
    body: tuple[str, ...]
    shared: tuple[str, ...]
    constants: tuple[str, ...]


def flatten(text: str, name: str) -> Flat:
    """`text` with only kernel `name`, for the host. Raises RUN070 when the text has no such kernel."""
    shared = tuple(re.findall(r"^@([\w.$]+) = [^\n]*addrspace\(3\)", text, re.MULTILINE))
    text = _to_host(text)
    with LOCK:
        llvm, machine = binding(), host()
        target = llvm.Target.from_triple(machine.triple).create_target_machine(cpu=machine.cpu, opt=1)
        module = parse(complete(text), machine.triple, str(target.target_data))
        if not any(f.name == name and not f.is_declaration for f in module.functions):
            raise HeronError("RUN070", f"the module has no kernel '{name}'")
        for function in module.functions:
            if function.is_declaration or function.name == name or function.name.startswith("__trunc"):
                continue
            function.linkage = "internal"
            if function.name.startswith(("heron.", "__nv_")) or "noinline" not in str(function).split("{")[0]:
                function.add_function_attribute("alwaysinline")
        builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=1))
        manager = llvm.create_new_module_pass_manager()
        manager.add_always_inliner_pass()
        manager.add_global_dead_code_eliminate_pass()
        manager.add_sroa_pass()
        manager.add_simplify_cfg_pass()
        manager.add_instruction_namer_pass()
        manager.run(module, builder)
        free(manager)
        text = str(module)
    return _split(text, name, shared)


def _to_host(text: str) -> str:
    text = re.sub(r"^target [^\n]*$", "", text, flags=re.MULTILINE)
    text = re.sub(r" addrspace\(\d+\)", "", text).replace("ptx_kernel ", "").replace("ptx_device ", "")
    text = re.sub(r'syncscope\("[^"]*"\) ?', "", text)
    text = re.sub(r"addrspacecast \(ptr ([^\s()]+) to ptr\)", r"\1", text)
    text = text.replace("addrspacecast ptr", "bitcast ptr")
    text = re.sub(r"(@llvm\.(?:memcpy|memset|memmove)[\w.]*)", lambda m: re.sub(r"\.p\d+", ".p0", m.group(1)), text)
    # contents of shared memory are undefined on the GPU; here they are filled before each block
    return re.sub(r"^(@[^\n]* global [^\n]*?)\b(?:undef|poison)\b", r"\1zeroinitializer", text, flags=re.MULTILINE)


def _split(text: str, name: str, shared: tuple[str, ...]) -> Flat:
    match = re.search(rf"^define [^@\n]*@{re.escape(name)}\(([^\n]*)\{{\n(.*?)^}}$", text, re.MULTILINE | re.DOTALL)
    assert match is not None
    signature, body = match.group(1), match.group(2)
    arguments = []
    for part in split_arguments(signature):
        words = part.split()
        arguments.append((words[0], words[-1]))
    head = text[: match.start()] + text[match.end() :]
    kept = set(re.findall(r"^@([\w.$]+) =", head, re.MULTILINE))
    constants = tuple(g for g in kept if g not in shared)
    return Flat(head, tuple(arguments), tuple(body.splitlines()), tuple(g for g in shared if g in kept), constants)


def split_arguments(text: str) -> list[str]:
    """The comma-separated parts up to the closing parenthesis that matches an opening one before ``text``."""
    parts, depth, start = [], 0, 0
    for position, char in enumerate(text):
        if char in "([{<":
            depth += 1
        elif char in ")]}>":
            if depth == 0 and char == ")":
                parts.append(text[start:position])
                break
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return [part.strip() for part in parts if part.strip()]

"""Third step: the host module of one kernel: its thread, and `sim.launch`, which runs a range of blocks.

Kernels that never synchronise are plain loops over blocks and threads. Others get one coroutine per thread of the block
in flight, run by `scheduler`.
"""

from __future__ import annotations

import re
from math import prod

from heron.codegen.llvm.text import Function, Module
from heron.codegen.llvm.values import Value
from heron.codegen.sim.accesses import array_dims, type_size
from heron.codegen.sim.coroutine import Thread
from heron.codegen.sim.flatten import Flat
from heron.codegen.sim.math import complete
from heron.runtime.sim.code import Dims, Global
from heron.runtime.sim.state import Row, State

_ID_PARAMETERS = "ptr %sim.state, " + ", ".join(f"i32 %sim.{g}.{a}" for g in ("tid", "ctaid") for a in "xyz")
_ID_PARAMETERS += ", i32 %sim.lin"

#: what a thread may call
_CALLED = (
    "ptr @sim.frame(ptr, i64, i32)",
    "void @sim.exhausted(ptr, i32, i32)",
    "ptr @sim.access(ptr, ptr, i32)",
    "void @sim.meet(ptr, i32, i32, i32)",
    "void @sim.arrive(ptr, i32)",
    "i64 @sim.shuffle(ptr, i32, i32, i32, i32, i32, i32)",
)
_FOLDS = re.compile(r"@(sim\.(?:ballot|members|match|match_all|redux\.\w+))\(")


def globals_of(flat: Flat) -> list[Global]:
    """The globals, with sizes from their types; the math library's tables are no memory of the kernel's."""
    found = []
    for name in (*flat.shared, *sorted(flat.constants)):
        if name.startswith("heron."):
            continue
        match = re.search(rf"^@{re.escape(name)} = [^\n]*?\b(?:global|constant) ([^\n]*)$", flat.head, re.MULTILINE)
        type_ = match.group(1) if match else ""
        size, dims = type_size(type_), array_dims(type_)
        found.append(Global(name, size, name in flat.shared, dims, max(size // max(prod(dims), 1), 1)))
    return found


def host_module(
    flat: Flat, thread: Thread, globals_: list[Global], grid: Dims, block: Dims, check: bool, steps: int
) -> str:
    """The whole text. ``steps``: branches back a thread may take."""
    body = "\n".join(thread.lines)
    formal = ", ".join(f"{t} {n}" for t, n in flat.arguments)
    module = Module()
    module.declared.define("sim.thread")
    for signature in (*_CALLED, *(f"i64 @{name}(ptr, i32, i32, i64)" for name in sorted(set(_FOLDS.findall(body))))):
        module.declared.function(signature)
    _write_launch(module, flat, thread, globals_, grid, block, check)
    return complete("\n".join([flat.head, _thread_function(formal, body, thread, steps), module.text()]))


def _thread_function(formal: str, body: str, thread: Thread, steps: int) -> str:
    """The thread: a coroutine when it suspends, an inlined function otherwise."""
    parameters = f"{formal}, {_ID_PARAMETERS}" if formal else _ID_PARAMETERS
    first = re.match(r"([\w.$-]+):", body)
    entry = first.group(1) if first else "sim.entry"
    body = body if first else f"sim.entry:\n{body}"
    begin = f"  %sim.lane = and i32 %sim.lin, 31\n  %sim.left = alloca i64\n  store i64 {steps}, ptr %sim.left"
    if not thread.suspends:
        return (
            f"define internal void @sim.thread({parameters}) alwaysinline nounwind {{\nsim.begin:\n{begin}\n"
            f"  br label %{entry}\n{body}\nsim.final:\n  ret void\n}}\n"
        )
    return f"""
define internal ptr @sim.thread({parameters}) presplitcoroutine nounwind {{
sim.begin:
{begin}
  %sim.id = call token @llvm.coro.id(i32 0, ptr null, ptr null, ptr null)
  %sim.size = call i64 @llvm.coro.size.i64()
  %sim.frame = call ptr @sim.frame(ptr %sim.state, i64 %sim.size, i32 %sim.lin)
  %sim.handle = call noalias ptr @llvm.coro.begin(token %sim.id, ptr %sim.frame)
  br label %{entry}
{body}
sim.final:
  %sim.end = call i8 @llvm.coro.suspend(token none, i1 true)
  switch i8 %sim.end, label %sim.suspend [ i8 0, label %sim.never  i8 1, label %sim.suspend ]
sim.never:
  unreachable
sim.suspend:
  call void @llvm.coro.end(ptr %sim.handle, i1 false, token none)
  ret ptr %sim.handle
}}
"""


def _write_launch(
    module: Module, flat: Flat, thread: Thread, globals_: list[Global], grid: Dims, block: Dims, check: bool
) -> None:
    """`sim.launch(buffers…, state, first, end)`: loops over those blocks, and over threads within each."""
    formal = [f"{t} %sim.in{i}" for i, (t, _) in enumerate(flat.arguments)]  # no clash with our names
    with module.function(
        f"void @sim.launch({', '.join([*formal, 'ptr %sim.state, i64 %first, i64 %end'])}) nounwind"
    ) as f:
        *given, state, first, end = f.arguments
        launch = f.view(state, State)
        if check:
            rows = launch["rows"]
            for n, o in enumerate(globals_, len(given)):
                f.store("ptr", f"@{o.name}", f.view(rows, Row, n).at("base"))
        with f.loop(first, end) as b:
            f.call("void @sim.block(ptr, i64)", state, b)
            ids = [part.cast("trunc", "i32") for part in _parts(b, grid)]
            for o in globals_:
                if o.shared:
                    f.fill(f"@{o.name}", -1 if check else 0, o.size)
            with f.loop(0, block[0] * block[1] * block[2], type_="i32") as t:
                launch["current"] = t
                _call_thread(f, thread, [*given, state, *_parts(t, block), *ids, t])
            fine = f.call("i1 @sim.schedule(ptr)", state) if thread.suspends else launch["stopped"].eq(0)
            with f.unless(fine):
                f.ret()


def _parts(n: Value, dims: Dims) -> tuple[Value, Value, Value]:
    """A linear number as x, y and z."""
    rest = n // dims[0]
    return n % dims[0], rest % dims[1], rest // dims[1]


def _call_thread(f: Function, thread: Thread, arguments: list[Value]) -> None:
    """Run a thread: to its end, or until it first waits."""
    kinds = ", ".join(a.type for a in arguments)
    if not thread.suspends:
        f.call(f"void @sim.thread({kinds})", *arguments)
        return
    handle = f.call(f"ptr @sim.thread({kinds})", *arguments)
    f.call("void @sim.started(ptr, i32, ptr)", arguments[len(arguments) - 8], arguments[-1], handle)

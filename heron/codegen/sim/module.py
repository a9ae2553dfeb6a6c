"""Third step: the host module of one kernel: its thread, and `sim.launch`, which runs a range of blocks.

Kernels that never synchronise are plain loops over blocks and threads. Others get one coroutine per thread of the block
in flight, run by `scheduler`.
"""

from __future__ import annotations

import ctypes
import re
from math import prod

from heron.codegen.llvm.declarations import declared
from heron.codegen.sim.accesses import array_dims, type_size
from heron.codegen.sim.coroutine import Thread
from heron.codegen.sim.flatten import Flat
from heron.codegen.sim.math import complete
from heron.codegen.sim.short_forms import expand
from heron.runtime.sim.code import Dims, Global
from heron.runtime.sim.state import Row

_ID_PARAMETERS = "ptr %sim.state, " + ", ".join(f"i32 %sim.{g}.{a}" for g in ("tid", "ctaid") for a in "xyz")
_ID_PARAMETERS += ", i32 %sim.lin"

_DECLARATIONS = declared(
    "void @sim.block(ptr, i64)",
    "ptr @sim.frame(ptr, i64, i32)",
    "void @sim.started(ptr, i32, ptr)",
    "i1 @sim.schedule(ptr)",
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
    folds = declared(*(f"i64 @{name}(ptr, i32, i32, i64)" for name in sorted(set(_FOLDS.findall(body)))))
    text = [
        flat.head,
        _DECLARATIONS,
        folds,
        _thread_function(formal, body, thread, steps),
        expand(_launch(flat, thread, globals_, grid, block, check)),
    ]
    return complete("\n".join(text))


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


def _launch(flat: Flat, thread: Thread, globals_: list[Global], grid: Dims, block: Dims, check: bool) -> str:
    """`sim.launch(buffers…, state, first, end)`: loops over those blocks, and over threads within each."""
    formal = ", ".join(f"{t} %sim.in{i}" for i, (t, _) in enumerate(flat.arguments))  # no clash with our names
    actual = formal + ", " if formal else ""
    threads = block[0] * block[1] * block[2]
    ids = "ptr %sim.state, " + ", ".join(f"i32 %{g}.{a}" for g in ("t", "b") for a in "xyz") + ", i32 %t"
    fill = "\n".join(
        f"  call void @llvm.memset.p0.i64(ptr @{o.name}, i8 {-1 if check else 0}, i64 {o.size}, i1 false)"
        for o in globals_
        if o.shared
    )
    row = f"[{ctypes.sizeof(Row) // 8} x i64]"
    places = "\n".join(
        f"  %object{n} = getelementptr {row}, ptr %rows, i64 {len(flat.arguments) + n}\n"
        f"  store ptr @{o.name}, ptr %object{n}"
        for n, o in enumerate(globals_)
    )
    if thread.suspends:
        run = f"  %h = call ptr @sim.thread({actual}{ids})\n  call void @sim.started(ptr %sim.state, i32 %t, ptr %h)"
        after = "  %fine = call i1 @sim.schedule(ptr %sim.state)"
    else:
        run = f"  call void @sim.thread({actual}{ids})"
        after = "  %over = get i32 stopped\n  %fine = icmp eq i32 %over, 0"
    return f"""
define void @sim.launch({actual}ptr %sim.state, i64 %first, i64 %end) nounwind {{
entry:
  %rows = get ptr rows
{places if check else ""}
  br label %block.head
block.head:
  %b64 = phi i64 [ %first, %entry ], [ %b1, %block.next ]
  call void @sim.block(ptr %sim.state, i64 %b64)
  %b.x64 = urem i64 %b64, {grid[0]}
  %b.q = udiv i64 %b64, {grid[0]}
  %b.y64 = urem i64 %b.q, {grid[1]}
  %b.z64 = udiv i64 %b.q, {grid[1]}
  %b.x = trunc i64 %b.x64 to i32
  %b.y = trunc i64 %b.y64 to i32
  %b.z = trunc i64 %b.z64 to i32
{fill}
  br label %thread.head
thread.head:
  %t = phi i32 [ 0, %block.head ], [ %t1, %thread.next ]
  %t.x = urem i32 %t, {block[0]}
  %t.q = udiv i32 %t, {block[0]}
  %t.y = urem i32 %t.q, {block[1]}
  %t.z = udiv i32 %t.q, {block[1]}
  set i32 %t, current
{run}
  br label %thread.next
thread.next:
  %t1 = add i32 %t, 1
  %t.more = icmp ult i32 %t1, {threads}
  br i1 %t.more, label %thread.head, label %block.run
block.run:
{after}
  br i1 %fine, label %block.next, label %done
block.next:
  %b1 = add i64 %b64, 1
  %b.more = icmp ult i64 %b1, %end
  br i1 %b.more, label %block.head, label %done
done:
  ret void
}}
"""

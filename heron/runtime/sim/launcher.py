"""Third step: a native launcher that runs the whole grid, and the Python object that calls it.

Kernels that never synchronise are plain loops over blocks and threads. Others get one coroutine per thread of the
block in flight, run by `scheduler`.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from heron.codegen.llvm.jit import Jit
from heron.errors import HeronError
from heron.runtime.sim import checks, scheduler
from heron.runtime.sim.coroutine import Thread, rewrite
from heron.runtime.sim.flatten import Flat, flatten
from heron.runtime.sim.math import complete

Dims = tuple[int, int, int]
LARGE_GRID = 1 << 17  # threads
_ID_PARAMETERS = ", ".join(f"i32 %sim.{g}.{a}" for g in ("tid", "ctaid") for a in "xyz") + ", i32 %sim.lin"


@dataclass(frozen=True, slots=True)
class Object:
    """A shared or constant global: its number, bytes, first granule in the shadow memory."""

    name: str
    number: int
    size: int
    first: int
    shared: bool


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing a checked run found. Block and thread are linear numbers; see `describe` for the text."""

    kind: int
    block: int
    thread: int
    buffer: int
    offset: int
    size: int
    other: int
    site: int


class SimKernel:
    """A GPU kernel compiled for the host.

    Args:
        llvm_text: the module's LLVM text before PTX (nvvm intrinsics, address spaces).
        name: the kernel.
        grid, block: launch geometry; it is compiled in.
        check: hold every access against its buffer and watch shared memory for races (`Options.sim_check`).
        level: LLVM optimisation level of the host code; by default 1 for large grids, else 0 (five times faster to
            compile, up to four times slower to run).

    Raises:
        HeronError: RUN070 no such kernel, RUN071 a GPU intrinsic that is not simulated, RUN072 an unknown `__nv_*`,
            RUN073 a block larger than 1024 threads.
    """

    def __init__(
        self, llvm_text: str, name: str, grid: Dims, block: Dims, *, check: bool = False, level: int | None = None
    ) -> None:
        self.name, self.grid, self.block = name, grid, block
        self.check = check
        threads = block[0] * block[1] * block[2]
        if not 1 <= threads <= scheduler.MAX_THREADS:
            raise HeronError("RUN073", f"a block of {threads} threads", why="a GPU allows 1 to 1024")
        if level is None:
            level = int(threads * grid[0] * grid[1] * grid[2] >= LARGE_GRID)
        flat = flatten(llvm_text, name)
        self.thread = rewrite(flat, grid, block, self.check)
        self.arguments = [n for _, n in flat.arguments]
        self.objects = _objects(flat, self.thread.granule)
        self.text = _module(flat, self.thread, self.objects, self.arguments, grid, block, self.check)
        self._jit = Jit(level=level)
        compiled = self._jit.add(self.text, f"sim.{name}", exports=["sim.launch"])
        self._code = compiled  # machine code lives as long as this
        self.timing = compiled.timing
        signature = [ctypes.c_void_p] * (len(self.arguments) + 2)
        self._launch = ctypes.CFUNCTYPE(None, *signature)(compiled.addresses["sim.launch"])
        self._log = (ctypes.c_int64 * (1 + 8 * scheduler.MAX_FINDINGS))()
        self._lock = threading.Lock()

    def run(self, buffers: Sequence[tuple[int, int]]) -> list[Finding]:
        """Run the grid over (address, bytes) buffers, one per kernel argument; returns what was found."""
        if len(buffers) != len(self.arguments):
            raise HeronError(
                "RUN074", f"kernel '{self.name}' takes {len(self.arguments)} buffers, {len(buffers)} were given"
            )
        table = (ctypes.c_int64 * max(2 * len(buffers), 1))(*(v for pair in buffers for v in pair))
        with self._lock:  # shared memory is a global of the module
            self._log[0] = 0
            self._launch(*(address for address, _ in buffers), ctypes.addressof(table), ctypes.addressof(self._log))
            found = min(self._log[0], scheduler.MAX_FINDINGS)
            return [Finding(*self._log[8 * i + 1 : 8 * i + 9]) for i in range(found)]

    def __call__(self, buffers: Sequence[tuple[int, int]]) -> None:
        """`run`, raising RUN075 (bounds), RUN076 (race) or RUN077 (divergence) with the first finding."""
        findings = self.run(buffers)
        if findings:
            raise self.error(findings, list(buffers))

    def error(self, findings: list[Finding], buffers: list[tuple[int, int]]) -> HeronError:
        """The error that tells the first finding."""
        first = findings[0]
        code = "RUN077" if first.kind <= 3 else "RUN075" if first.kind <= 5 else "RUN076"
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        site = self.thread.sites[first.site] if 0 <= first.site < len(self.thread.sites) else None
        return HeronError(
            code,
            f"kernel '{self.name}': {self._what(first, buffers)}{more}",
            where=f"block {self._place(first.block, self.grid)} thread {self._place(first.thread, self.block)}: {site}",
            why=_WHY[first.kind],
        )

    def _what(self, f: Finding, buffers: list[tuple[int, int]]) -> str:
        other = self._place(f.other, self.block) if f.other >= 0 else "several threads"
        if f.kind == scheduler.DIVERGED_BARRIER:
            return f"threads wait at different barriers (thread {other} at another one)"
        if f.kind == scheduler.EARLY_EXIT:
            return f"a thread waits at a barrier that thread {other} never reached"
        if f.kind == scheduler.DIVERGED_WARP:
            return "lanes of a warp synchronise at different places or have exited"
        if f.kind == scheduler.OUT_OF_BOUNDS:
            if f.buffer < 0:
                return f"access of {f.size} bytes at {f.offset:#x}, in no buffer"
            length = buffers[f.buffer][1]
            return f"access of {f.size} bytes at offset {f.offset} of buffer {f.buffer} ({length} bytes)"
        name, length = self._object(f.buffer)
        if f.kind == scheduler.SHARED_BOUNDS:
            return f"access of {f.size} bytes at offset {f.offset} of '{name}' ({length} bytes)"
        how = "write and write" if f.kind == scheduler.RACE_WRITE else "read and write"
        return f"race on '{name}' offset {f.offset}: {how} with thread {other} and no barrier between"

    def _object(self, number: int) -> tuple[str, int]:
        return next(((o.name, o.size) for o in self.objects if o.number == number), ("shared memory", 0))

    @staticmethod
    def _place(linear: int, dims: Dims) -> str:
        x, y = linear % dims[0], linear // dims[0] % dims[1]
        return f"({x}, {y}, {linear // (dims[0] * dims[1])})"


_WHY = {
    scheduler.DIVERGED_BARRIER: "every thread of a block must reach the same barrier",
    scheduler.EARLY_EXIT: "every thread of a block must reach every barrier; on a GPU this hangs or is undefined",
    scheduler.DIVERGED_WARP: "every lane named in the mask must execute the same warp instruction",
    scheduler.OUT_OF_BOUNDS: "the access is outside the buffer",
    scheduler.SHARED_BOUNDS: "the access is outside the shared array",
    scheduler.RACE_WRITE: "two threads write the same shared memory in an undefined order",
    scheduler.RACE_READ: "one thread reads shared memory that another writes, in an undefined order",
}


def _objects(flat: Flat, granule: int) -> list[Object]:
    """Sizes of the globals, from their types; each starts on a granule of the shadow memory."""
    found, first = [], 0
    for number, name in enumerate((*flat.shared, *flat.constants)):
        match = re.search(rf"^@{re.escape(name)} = [^\n]*?\b(?:global|constant) ([^\n]*)$", flat.head, re.MULTILINE)
        size = type_size(match.group(1)) if match else 0
        found.append(Object(name, number, size, first, name in flat.shared))
        first += -(-size // granule) if name in flat.shared else 0
    return found


def type_size(text: str) -> int:
    """Bytes of the LLVM type ``text`` begins with: scalars and (nested) arrays."""
    if match := re.match(r"\[(\d+) x ", text):
        return int(match.group(1)) * type_size(text[match.end() :])
    if match := re.match(r"i(\d+)", text):
        return (int(match.group(1)) + 7) // 8
    word = re.match(r"\w+", text)
    return {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}.get(word.group(0) if word else "", 1)


def _module(
    flat: Flat, thread: Thread, objects: list[Object], arguments: list[str], grid: Dims, block: Dims, check: bool
) -> str:
    """The whole host module."""
    by_name = {f"@{o.name}": o for o in objects}
    positions = {name: i for i, name in enumerate(arguments)}
    body = "\n".join(thread.lines)
    body = re.sub(r"sim\.argument\((%[\w.]+)\)", lambda m: str(positions[m.group(1)]), body)
    for what, field in (("length", "size"), ("object", "number"), ("first", "first")):
        body = re.sub(rf"sim\.{what}\((@[\w.$]+)\)", lambda m, f=field: str(getattr(by_name[m.group(1)], f)), body)
    parts = [flat.head, scheduler.GLOBALS, scheduler.FINDING]
    if thread.suspends:
        parts += [scheduler.SCHEDULER, scheduler.SHUFFLE]
    if check:
        cells = sum(-(-o.size // thread.granule) for o in objects if o.shared)
        parts += [checks.GLOBAL_CHECK, checks.shared_check(cells + 1, thread.granule)]
    formal = ", ".join(f"{t} {n}" for t, n in flat.arguments)
    parts.append(_thread_function(formal, body, thread))
    parts.append(_launch(flat, thread, objects, grid, block, check))
    return complete("\n".join(parts) + "\ndeclare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n")


def _thread_function(formal: str, body: str, thread: Thread) -> str:
    """The thread: a coroutine when it suspends, an inlined function otherwise."""
    parameters = f"{formal}, {_ID_PARAMETERS}" if formal else _ID_PARAMETERS
    first = re.match(r"([\w.$-]+):", body)
    entry = first.group(1) if first else "sim.entry"
    body = body if first else f"sim.entry:\n{body}"
    lane = "  %sim.lane = and i32 %sim.lin, 31"
    if not thread.suspends:
        return (
            f"define internal void @sim.thread({parameters}) alwaysinline nounwind {{\nsim.begin:\n{lane}\n"
            f"  br label %{entry}\n{body}\nsim.final:\n  ret void\n}}\n"
        )
    return f"""
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare i64 @llvm.coro.size.i64()
declare ptr @llvm.coro.begin(token, ptr)
declare i8 @llvm.coro.suspend(token, i1)
declare void @llvm.coro.end(ptr, i1, token)
define internal ptr @sim.thread({parameters}) presplitcoroutine nounwind {{
sim.begin:
  %sim.id = call token @llvm.coro.id(i32 0, ptr null, ptr null, ptr null)
  %sim.size = call i64 @llvm.coro.size.i64()
  %sim.frame = call ptr @sim.frame(i64 %sim.size, i32 %sim.lin)
  %sim.handle = call noalias ptr @llvm.coro.begin(token %sim.id, ptr %sim.frame)
{lane}
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


def _launch(flat: Flat, thread: Thread, objects: list[Object], grid: Dims, block: Dims, check: bool) -> str:
    """`sim.launch(buffers…, table, log)`: loops over blocks, and over threads within each."""
    formal = ", ".join(f"{t} %sim.in{i}" for i, (t, _) in enumerate(flat.arguments))  # no clash with our names
    actual = formal + ", " if formal else ""
    blocks, threads = grid[0] * grid[1] * grid[2], block[0] * block[1] * block[2]
    ids = ", ".join(f"i32 %{g}.{a}" for g in ("t", "b") for a in "xyz") + ", i32 %t"
    fill = "\n".join(
        f"  call void @llvm.memset.p0.i64(ptr @{o.name}, i8 {-1 if check else 0}, i64 {o.size}, i1 false)"
        for o in objects
        if o.shared
    )
    setup = "  store ptr %sim.table.in, ptr @sim.table\n" if check else ""
    setup += f"  store i64 {len(flat.arguments)}, ptr @sim.buffers\n" if check else ""
    if thread.suspends:
        run = f"  store i32 %t, ptr @sim.current\n  %h = call ptr @sim.thread({actual}{ids})\n"
        run += "  %ph = getelementptr ptr, ptr @sim.handles, i32 %t\n  store ptr %h, ptr %ph\n"
        run += "  call void @sim.after(i32 %t, ptr %h)"
        after = f"  %fine = call i1 @sim.schedule(i32 {threads})\n  br i1 %fine, label %block.next, label %done"
        end = "  %arena = load ptr, ptr @sim.arena\n  call void @free(ptr %arena)\n  store ptr null, ptr @sim.arena"
    else:
        note = "  store i32 %t, ptr @sim.current\n" if check else ""
        run, after, end = f"{note}  call void @sim.thread({actual}{ids})", "  br label %block.next", ""
    return f"""
define void @sim.launch({actual}ptr %sim.table.in, ptr %sim.log.in) nounwind {{
entry:
  store i32 {threads}, ptr @sim.threads
  store ptr %sim.log.in, ptr @sim.findings
{setup}  br label %block.head
block.head:
  %b = phi i32 [ 0, %entry ], [ %b1, %block.next ]
  %b64 = zext i32 %b to i64
  store i64 %b64, ptr @sim.block
  %b.x = urem i32 %b, {grid[0]}
  %b.q = udiv i32 %b, {grid[0]}
  %b.y = urem i32 %b.q, {grid[1]}
  %b.z = udiv i32 %b.q, {grid[1]}
  %epoch = load i32, ptr @sim.epoch
  %epoch1 = add i32 %epoch, 1
  store i32 %epoch1, ptr @sim.epoch
{fill}
  br label %thread.head
thread.head:
  %t = phi i32 [ 0, %block.head ], [ %t1, %thread.next ]
  %t.x = urem i32 %t, {block[0]}
  %t.q = udiv i32 %t, {block[0]}
  %t.y = urem i32 %t.q, {block[1]}
  %t.z = udiv i32 %t.q, {block[1]}
{run}
  br label %thread.next
thread.next:
  %t1 = add i32 %t, 1
  %t.more = icmp ult i32 %t1, {threads}
  br i1 %t.more, label %thread.head, label %block.run
block.run:
{after}
block.next:
  %b1 = add i32 %b, 1
  %b.more = icmp ult i32 %b1, {blocks}
  br i1 %b.more, label %block.head, label %done
done:
{end}
  ret void
}}
"""

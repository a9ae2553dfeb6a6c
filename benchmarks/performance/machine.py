"""What this machine can do: flops of its vector units and bytes to and from memory, measured by plain loops."""

from __future__ import annotations

import ctypes
import dataclasses
import time
from dataclasses import dataclass

import numpy as np

from heron.codegen.llvm.jit import Jit, host
from heron.codegen.native import helpers  # noqa: F401  the pool of arrays is native code
from heron.runtime import array_pool
from heron.runtime.cpu.pool import Pool, thread_count
from heron.targets import Target
from heron.targets import get as get_target

#: arrays that no cache holds
_BYTES = 512 << 20
#: multiply-adds that wait for nothing: more of them than a unit's latency times its number
_CHAINS = 12
_ROUNDS = 1 << 14


@dataclass(frozen=True, slots=True)
class Rates:
    """Measured rates of one thread, or of several: flop/s by element type, bytes/s read, and copied (both ways)."""

    threads: int
    f32: float
    f64: float
    read: float
    copy: float

    @property
    def bandwidth(self) -> float:
        """The most bytes a second that went to or from memory."""
        return max(self.read, self.copy)


def measure(threads: int = 0, size: int = _BYTES, seconds: float = 0.6) -> Rates:
    """Rates of so many threads (0: those a program gets), each the best within some seconds."""
    threads = threads or thread_count(0)
    width = host().width
    jit = Jit(level=2)
    jit.add("\n".join([_flops("float", width // 32), _flops("double", width // 64), _moves(width // 32)]), "rates")
    a, b = (array_pool.empty((size // 4,), np.dtype(np.float32)) for _ in range(2))
    a[:], b[:] = 1.0, 2.0
    sink = np.zeros(64, np.float32)
    args = (ctypes.c_void_p * 3)(a.ctypes.data, b.ctypes.data, sink.ctypes.data)
    pool = Pool(threads)

    def best(name: str, items: int, work: float) -> float:
        found, end = float("inf"), time.perf_counter() + seconds
        while found == float("inf") or time.perf_counter() < end:
            start = time.perf_counter()
            pool.run(jit.address(name), ctypes.addressof(args), items)
            found = min(found, time.perf_counter() - start)
        return work / found

    try:
        parts = 16 * threads
        blocks = size // 4096
        return Rates(
            threads,
            best("flops_float", parts, 2.0 * parts * _ROUNDS * _CHAINS * (width // 32)),
            best("flops_double", parts, 2.0 * parts * _ROUNDS * _CHAINS * (width // 64)),
            best("read", blocks, float(size)),
            best("copy", blocks, 2.0 * size),
        )
    finally:
        pool.stop()


def measured_target(rates: Rates) -> Target:
    """This machine as a target whose rates are the measured ones."""
    plain = get_target("cpu")
    other = {name: rate for name, rate in plain.flops if name not in ("f32", "f64")}
    flops = tuple(sorted({**other, "f32": rates.f32, "f64": rates.f64}.items()))
    return dataclasses.replace(plain, memory_bandwidth=int(rates.bandwidth), flops=flops)


def processor() -> str:
    """The processor's name, as the system tells it."""
    try:
        with open("/proc/cpuinfo") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else host().cpu


# -- LLVM text: void (ptr args, i64 lo, i64 hi) ------------------------------------------------------------------------


def _flops(element: str, lanes: int) -> str:
    """Chains of multiply-adds in registers; each item is `_ROUNDS` of every chain."""
    vector = f"<{lanes} x {element}>"
    suffix = f"v{lanes}{'f32' if element == 'float' else 'f64'}"
    chains = range(_CHAINS)
    phis = "\n".join(f"  %x{n} = phi {vector} [ splat ({element} 1.0), %entry ], [ %y{n}, %loop ]" for n in chains)
    steps = "\n".join(
        f"  %y{n} = call {vector} @llvm.fma.{suffix}({vector} %x{n}, {vector} splat ({element} 0.5),"
        f" {vector} splat ({element} {n}.25))"
        for n in chains
    )
    sums = [f"  %s0 = fadd {vector} %y0, zeroinitializer"]
    sums += [f"  %s{n} = fadd {vector} %s{n - 1}, %y{n}" for n in chains if n]
    return f"""declare {vector} @llvm.fma.{suffix}({vector}, {vector}, {vector})
define void @flops_{element}(ptr %args, i64 %lo, i64 %hi) {{
entry:
  %items = sub i64 %hi, %lo
  %rounds = mul i64 %items, {_ROUNDS}
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
{phis}
{steps}
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %rounds
  br i1 %more, label %loop, label %done
done:
{chr(10).join(sums)}
  %first = extractelement {vector} %s{_CHAINS - 1}, i64 0
  %never = fcmp oeq {element} %first, -1.0
  br i1 %never, label %keep, label %end
keep:
  store {element} %first, ptr %args
  br label %end
end:
  ret void
}}"""


def _moves(lanes: int) -> str:
    """Items of 4096 bytes: summed, and copied by the library."""
    vector = f"<{lanes} x float>"
    vectors = 1024 // lanes
    sums = range(8)
    phis = "\n".join(f"  %x{n} = phi {vector} [ zeroinitializer, %entry ], [ %y{n}, %loop ]" for n in sums)
    steps = "\n".join(
        f"  %n{n} = add i64 %i, {n}\n  %p{n} = getelementptr {vector}, ptr %a, i64 %n{n}\n"
        f"  %v{n} = load {vector}, ptr %p{n}, align 16\n  %y{n} = fadd {vector} %x{n}, %v{n}"
        for n in sums
    )
    total = "\n".join(f"  %t{n} = fadd {vector} {f'%t{n - 1}' if n > 1 else '%y0'}, %y{n}" for n in sums if n)
    return f"""declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @read(ptr %args, i64 %lo, i64 %hi) {{
entry:
  %a = load ptr, ptr %args
  %from = mul i64 %lo, {vectors}
  %to = mul i64 %hi, {vectors}
  br label %loop
loop:
  %i = phi i64 [ %from, %entry ], [ %j, %loop ]
{phis}
{steps}
  %j = add i64 %i, 8
  %more = icmp ult i64 %j, %to
  br i1 %more, label %loop, label %done
done:
{total}
  %first = extractelement {vector} %t7, i64 0
  %never = fcmp oeq float %first, -1.0
  br i1 %never, label %keep, label %end
keep:
  %at.sink = getelementptr ptr, ptr %args, i64 2
  %sink = load ptr, ptr %at.sink
  store float %first, ptr %sink
  br label %end
end:
  ret void
}}
define void @copy(ptr %args, i64 %lo, i64 %hi) {{
  %a = load ptr, ptr %args
  %at.b = getelementptr ptr, ptr %args, i64 1
  %b = load ptr, ptr %at.b
  %items = sub i64 %hi, %lo
  %bytes = mul i64 %items, 4096
  %start = mul i64 %lo, 4096
  %from = getelementptr i8, ptr %a, i64 %start
  %to = getelementptr i8, ptr %b, i64 %start
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  ret void
}}"""

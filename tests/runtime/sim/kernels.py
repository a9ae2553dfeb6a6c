"""Hand-written GPU kernels as LLVM text, in the form the translation produces."""

from __future__ import annotations

_IDS = "\n".join(
    f"declare i32 @llvm.nvvm.read.ptx.sreg.{r}.{a}()" for r in ("tid", "ctaid", "ntid", "nctaid") for a in "xyz"
)
DECLARATIONS = f"""
{_IDS}
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
declare float @llvm.nvvm.shfl.sync.down.f32(i32, float, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.up.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)
declare float @__nv_tanhf(float)
"""

#: 256x256 f32, tiles of 32x32 through a 32x33 shared array; grid (8, 8), block (32, 8)
TRANSPOSE = f"""
@tile = internal addrspace(3) global [1056 x float] undef, align 16
define ptx_kernel void @transpose(ptr noalias readonly %a, ptr noalias %b) nounwind "nvvm.reqntid"="32,8,1" {{
entry:
  %tx = call range(i32 0, 32) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %ty = call range(i32 0, 8) i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %bx = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %by = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %ox = mul i32 %bx, 32
  %oy = mul i32 %by, 32
  %gx = add i32 %ox, %tx
  br label %read
read:
  %j = phi i32 [ 0, %entry ], [ %j1, %read ]
  %r = add i32 %ty, %j
  %gy = add i32 %oy, %r
  %row = mul i32 %gy, 256
  %g = add i32 %row, %gx
  %p = getelementptr inbounds float, ptr %a, i32 %g
  %v = load float, ptr %p, !invariant.load !0
  %srow = mul i32 %r, 33
  %s = add i32 %srow, %tx
  %q = getelementptr inbounds float, ptr addrspace(3) @tile, i32 %s
  store float %v, ptr addrspace(3) %q
  %j1 = add i32 %j, 8
  %c = icmp ult i32 %j1, 32
  br i1 %c, label %read, label %sync
sync:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %hx = add i32 %oy, %tx
  br label %write
write:
  %k = phi i32 [ 0, %sync ], [ %k1, %write ]
  %r2 = add i32 %ty, %k
  %hy = add i32 %ox, %r2
  %row2 = mul i32 %hy, 256
  %h = add i32 %row2, %hx
  %srow2 = mul i32 %tx, 33
  %s2 = add i32 %srow2, %r2
  %q2 = getelementptr inbounds float, ptr addrspace(3) @tile, i32 %s2
  %w = load float, ptr addrspace(3) %q2
  %p2 = getelementptr inbounds float, ptr %b, i32 %h
  store float %w, ptr %p2
  %k1 = add i32 %k, 8
  %c2 = icmp ult i32 %k1, 32
  br i1 %c2, label %write, label %end
end:
  ret void
}}
{DECLARATIONS}
!0 = !{{}}
"""


def _shuffle_tree(value: str) -> str:
    lines = []
    for step in (16, 8, 4, 2, 1):
        lines += [
            f"  {value}.o{step} = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float {value}, i32 {step}, i32 31)",
            f"  {value}.{step} = fadd float {value}, {value}.o{step}",
        ]
        value = f"{value}.{step}"
    return "\n".join(lines)


#: one block of 256 threads a row of 256: shuffles, then the first warp adds the 8 partial sums
REDUCE_ROWS = f"""
@partial = internal addrspace(3) global [8 x float] undef, align 16
define ptx_kernel void @reduce(ptr noalias readonly %a, ptr noalias %b) nounwind "nvvm.reqntid"="256,1,1" {{
entry:
  %t = call range(i32 0, 256) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %row = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %base = mul i32 %row, 256
  %g = add i32 %base, %t
  %p = getelementptr inbounds float, ptr %a, i32 %g
  %x = load float, ptr %p
{_shuffle_tree("%x")}
  %lane = and i32 %t, 31
  %warp = lshr i32 %t, 5
  %first = icmp eq i32 %lane, 0
  br i1 %first, label %store, label %sync
store:
  %q = getelementptr inbounds float, ptr addrspace(3) @partial, i32 %warp
  store float %x.16.8.4.2.1, ptr addrspace(3) %q
  br label %sync
sync:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %in_first = icmp eq i32 %warp, 0
  br i1 %in_first, label %last, label %end
last:
  %has = icmp ult i32 %lane, 8
  %slot = select i1 %has, i32 %lane, i32 0
  %q2 = getelementptr inbounds float, ptr addrspace(3) @partial, i32 %slot
  %y0 = load float, ptr addrspace(3) %q2
  %y = select i1 %has, float %y0, float 0.0
{_shuffle_tree("%y")}
  %first2 = icmp eq i32 %t, 0
  br i1 %first2, label %out, label %end
out:
  %p2 = getelementptr inbounds float, ptr %b, i32 %row
  store float %y.16.8.4.2.1, ptr %p2
  br label %end
end:
  ret void
}}
{DECLARATIONS}
"""

#: histogram of i32 values into 8 counters, and a float sum by a compare-and-swap loop
ATOMICS = f"""
define ptx_kernel void @atomics(ptr %in, ptr %counts, ptr %sum) nounwind {{
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %n = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %o = mul i32 %b, %n
  %i = add i32 %o, %t
  %p = getelementptr inbounds i32, ptr %in, i32 %i
  %v = load i32, ptr %p
  %q = getelementptr inbounds i32, ptr %counts, i32 %v
  %old = atomicrmw add ptr %q, i32 1 syncscope("device") monotonic
  %f = sitofp i32 %v to float
  %old2 = atomicrmw fadd ptr %sum, float %f syncscope("device") monotonic
  ret void
}}
{DECLARATIONS}
"""


def warp_kernel(body: str) -> str:
    """A kernel of one warp: ``body`` computes %r (i32) from %t; out[t] = %r."""
    return f"""
define ptx_kernel void @warp(ptr %out) nounwind {{
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
{body}
  %p = getelementptr inbounds i32, ptr %out, i32 %t
  store i32 %r, ptr %p
  ret void
}}
{DECLARATIONS}
"""


#: thread 0 leaves before the barrier
EARLY_EXIT = f"""
define ptx_kernel void @early(ptr %out) nounwind {{
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %c = icmp eq i32 %t, 0
  br i1 %c, label %end, label %sync
sync:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %end
end:
  ret void
}}
{DECLARATIONS}
"""

#: even and odd threads wait at different barriers
TWO_BARRIERS = f"""
define ptx_kernel void @two(ptr %out) nounwind {{
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %o = trunc i32 %t to i1
  br i1 %o, label %odd, label %even
odd:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  store i32 1, ptr %out
  br label %end
even:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %end
end:
  ret void
}}
{DECLARATIONS}
"""

#: three-dimensional ids and a device function: out[linear id] = tanh(linear id)
IDS_3D = f"""
define internal float @square(float %x) {{
  %y = fmul float %x, %x
  ret float %y
}}
define ptx_kernel void @ids(ptr %out) nounwind {{
entry:
  %tx = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %ty = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %tz = call i32 @llvm.nvvm.read.ptx.sreg.tid.z()
  %bx = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %by = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %bz = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
  %a0 = mul i32 %bz, 2
  %a1 = add i32 %a0, %by
  %a2 = mul i32 %a1, 3
  %a3 = add i32 %a2, %bx
  %a4 = mul i32 %a3, 2
  %a5 = add i32 %a4, %tz
  %a6 = mul i32 %a5, 3
  %a7 = add i32 %a6, %ty
  %a8 = mul i32 %a7, 4
  %i = add i32 %a8, %tx
  %f = uitofp i32 %i to float
  %g = fdiv float %f, 100.0
  %h = call float @__nv_tanhf(float %g)
  %s = call float @square(float %h)
  %p = getelementptr inbounds float, ptr %out, i32 %i
  store float %s, ptr %p
  ret void
}}
{DECLARATIONS}
"""

"""Planted bugs, one of each kind there is, and the programs next to them that are right."""

from __future__ import annotations

import _thread
import threading

import numpy as np
import pytest

from heron.codegen.sim.kernel import compile_kernel
from heron.runtime.sim.shadow import Shadow
from tests.runtime.sim.support import buffers, finding, kernel_text, launch
from tests.support import interruptible

SYNC = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n"
WARP_SYNC = "  call void @llvm.nvvm.bar.warp.sync(i32 -1)\n"
SHARED = "@s = internal addrspace(3) global [64 x i32] undef, align 16\n"


def at(name: str, index: str, base: str = "ptr %out", type_: str = "i32") -> str:
    return f"  {name} = getelementptr {type_}, {base}, i32 {index}\n"


def shared(name: str, index: str) -> str:
    return at(name, index, "ptr addrspace(3) @s")


# races in global memory

SAME_ELEMENT = at("%p", "0") + "  store i32 %t, ptr %p\n"
NEIGHBOUR = (
    at("%p", "%t")
    + "  store i32 %t, ptr %p\n"
    + "SYNC  %n = xor i32 %t, 32\n"
    + at("%q", "%n")
    + "  %v = load i32, ptr %q"
)


def test_two_threads_write_one_element() -> None:
    error = finding(kernel_text(SAME_ELEMENT), np.zeros(4, np.int32))
    assert error.code == "RUN076" and "race on argument 0 at byte 0 of 16" in error.what
    first, second = str(error.where).splitlines()
    assert first.startswith("write by block (0, 0, 0) thread (1, 0, 0): store i32 %t")
    assert second.strip().startswith("write by block (0, 0, 0) thread (0, 0, 0): store i32 %t")


def test_one_thread_writes_twice() -> None:
    launch(kernel_text(SAME_ELEMENT + "  store i32 5, ptr %p"), np.zeros(4, np.int32), block=(1, 1, 1), checks="all")


def test_a_barrier_orders_global_accesses_of_a_block() -> None:
    out = np.zeros(64, np.int32)
    launch(kernel_text(NEIGHBOUR.replace("SYNC", SYNC)), out, block=(64, 1, 1), checks="all")
    error = finding(kernel_text(NEIGHBOUR.replace("SYNC", "")), out, block=(64, 1, 1))
    assert error.code == "RUN076" and "write by block (0, 0, 0) thread (32, 0, 0)" in str(error.where)
    # a warp's meeting orders nothing between warps
    assert finding(kernel_text(NEIGHBOUR.replace("SYNC", WARP_SYNC)), out, block=(64, 1, 1)).code == "RUN076"


@pytest.mark.parametrize("end", ["", SYNC])
def test_nothing_orders_two_blocks(end: str) -> None:
    out = np.zeros(8, np.int32)
    error = finding(kernel_text(SAME_ELEMENT + end), out, grid=(3, 1, 1), block=(1, 1, 1))
    assert error.code == "RUN076" and error.why == "nothing orders the threads of two blocks"
    assert "block (1, 0, 0)" in str(error.where) and "block (0, 0, 0)" in str(error.where)


def test_a_block_writes_what_an_earlier_one_read() -> None:
    """Also when threads of its own block read it since, in order."""
    body = f"""  %p = getelementptr i32, ptr %out, i32 0
  %v = load i32, ptr %p
{SYNC}  %last = icmp eq i32 %b, 2
  %one = icmp eq i32 %t, 5
  %both = and i1 %last, %one
  br i1 %both, label %yes, label %end
yes:
  store i32 1, ptr %p
  br label %end
end:"""
    out = np.zeros(8, np.int32)
    error = finding(kernel_text(body), out, grid=(3, 1, 1), block=(64, 1, 1))
    assert error.code == "RUN076" and "read by block (0, 0, 0) thread (0, 0, 0)" in str(error.where)
    launch(kernel_text(body.replace("%b, 2", "%b, 0")), out, grid=(1, 1, 1), block=(64, 1, 1), checks="all")


def test_atomics_do_not_race_but_a_plain_write_with_one_does() -> None:
    add = at("%p", "0") + "  %o = atomicrmw add ptr %p, i32 1 monotonic\n"
    out = np.zeros(4, np.int32)
    launch(kernel_text(add), out, grid=(4, 1, 1), checks="all")
    assert out[0] == 128
    error = finding(kernel_text(add + "  store i32 0, ptr %p"), out)
    assert error.code == "RUN076"
    assert {line.split()[0] for line in str(error.where).splitlines()} == {"atomic", "write"}


def test_launches_do_not_race_with_each_other() -> None:
    out, shadow = np.zeros(32, np.int32), Shadow()
    kernel = compile_kernel(
        kernel_text(at("%p", "%t") + "  store i32 %t, ptr %p"), "k", (1, 1, 1), (32, 1, 1), checks="all"
    )
    for _ in range(3):
        kernel(buffers(out), shadow)


def test_two_arguments_that_are_one_buffer() -> None:
    body = at("%p", "%t", "ptr %a") + "  %v = load i32, ptr %p\n  %n = sub i32 31, %t\n" + at("%q", "%n", "ptr %b_")
    text = kernel_text(body + "  store i32 %v, ptr %q", "ptr %a, ptr %b_")
    a = np.zeros(32, np.int32)
    launch(text, a, a.copy(), checks="all")
    assert finding(text, a, a).code == "RUN076"


def test_bytes_of_one_word_are_apart() -> None:
    body = at("%p", "%t", type_="i8") + "  %v = trunc i32 %t to i8\n  store i8 %v, ptr %p"
    launch(kernel_text(body), np.zeros(32, np.uint8), checks="all")


# races in shared memory

EXCHANGE = (
    shared("%p", "%t") + "  store i32 %t, ptr addrspace(3) %p\nSYNC  %n = xor i32 %t, DISTANCE\n"
    + shared("%q", "%n") + "  %v = load i32, ptr addrspace(3) %q\nTHEN"
)  # fmt: skip


@pytest.mark.parametrize(
    ("sync", "distance", "then", "code"),
    [
        (SYNC, "32", "", ""),
        (WARP_SYNC, "1", "", ""),
        (WARP_SYNC, "32", "", "RUN076"),
        ("", "1", "", "RUN076"),
        (SYNC, "32", "  store i32 0, ptr addrspace(3) %p\n", "RUN076"),
        (SYNC, "32", SYNC + "  store i32 0, ptr addrspace(3) %p\n", ""),
        (SYNC, "1", WARP_SYNC + "  store i32 0, ptr addrspace(3) %p\n", ""),
    ],
)
def test_shared_memory_is_ordered_by_barriers(sync: str, distance: str, then: str, code: str) -> None:
    body = EXCHANGE.replace("SYNC", sync).replace("DISTANCE", distance).replace("THEN", then)
    text, out = kernel_text(body, globals_=SHARED), np.zeros(1, np.int32)
    if not code:
        launch(text, out, block=(64, 1, 1), checks="all")
        return
    error = finding(text, out, block=(64, 1, 1), checks="races")
    assert error.code == code and "race on shared 's' at byte" in error.what and "element [" in error.what


def test_lanes_that_met_before_know_what_others_did() -> None:
    """0 meets 1, then 1 meets 2: what 0 wrote is done for 2, but not for 3, who met nobody."""

    def meets(mask: int, label: str) -> str:
        return f"""  %{label}s = lshr i32 {mask}, %t
  %{label}c = trunc i32 %{label}s to i1
  br i1 %{label}c, label %{label}, label %{label}end
{label}:
  call void @llvm.nvvm.bar.warp.sync(i32 {mask})
  br label %{label}end
{label}end:
"""

    def text(reader: int) -> str:
        write = f"""  %w = icmp eq i32 %t, 0
  br i1 %w, label %write, label %go
write:
{shared("%p", "0")}  store i32 7, ptr addrspace(3) %p
  br label %go
go:
"""
        read = f"""  %r = icmp eq i32 %t, {reader}
  br i1 %r, label %read, label %end
read:
{shared("%q", "0")}  %v = load i32, ptr addrspace(3) %q
  br label %end
end:"""
        return kernel_text(write + meets(3, "a") + meets(6, "b_") + read, globals_=SHARED)

    launch(text(2), np.zeros(1, np.int32), checks="all")
    assert finding(text(3), np.zeros(1, np.int32), checks="races").code == "RUN076"


# memory nobody wrote


def test_shared_memory_nobody_wrote() -> None:
    body = shared("%p", "%t") + "  %v = load i32, ptr addrspace(3) %p"
    error = finding(kernel_text(body, globals_=SHARED), np.zeros(1, np.int32))
    assert error.code == "RUN078" and "nobody wrote: shared 's' at byte 0 of 256, element [0]" in error.what
    launch(kernel_text(body, globals_=SHARED), np.zeros(1, np.int32), checks="races,bounds,divergence")


def test_shared_memory_does_not_last_from_block_to_block() -> None:
    body = f"""{shared("%p", "%t")}  %first = icmp eq i32 %b, 0
  br i1 %first, label %write, label %read
write:
  store i32 1, ptr addrspace(3) %p
  br label %read
read:
  %v = load i32, ptr addrspace(3) %p"""
    text, out = kernel_text(body, globals_=SHARED), np.zeros(1, np.int32)
    launch(text, out, checks="all")
    assert "block (1, 0, 0)" in str(finding(text, out, grid=(2, 1, 1)).where)


def test_a_buffer_nobody_wrote() -> None:
    out, valid = np.zeros(32, np.int32), np.ones(128, np.uint8)
    body = at("%p", "%t") + "  %v = load i32, ptr %p"
    kernel = compile_kernel(kernel_text(body), "k", (1, 1, 1), (32, 1, 1), checks="uninit")
    kernel(buffers(out), valid=[valid.ctypes.data])
    valid[21] = 0
    assert [(f.row, f.offset, f.thread) for f in kernel.run(buffers(out), valid=[valid.ctypes.data])] == [(0, 20, 5)]
    write = kernel_text(at("%p", "%t") + "  store i32 1, ptr %p\n  %v = load i32, ptr %p")
    valid[:] = 0
    compile_kernel(write, "k", (1, 1, 1), (32, 1, 1), checks="all")(buffers(out), valid=[valid.ctypes.data])
    assert valid.all()


# bounds


def test_misaligned_vectors() -> None:
    load = "  %v = load <4 x float>, ptr %p, align 16"
    text = kernel_text("  %i = mul i32 %t, 2\n" + at("%p", "%i", type_="float") + load)
    out = np.zeros(128, np.float32)
    error = finding(text, out)
    assert error.code == "RUN075" and "an access of 16 bytes is not aligned to 16: argument 0 at byte 8" in error.what
    launch(text, out, checks="races")  # and the host does not mind


def test_a_pointer_that_may_be_of_two_buffers() -> None:
    body = """  %c = icmp ult i32 %t, 4
  %x = select i1 %c, ptr %a, ptr %b_
  %p = getelementptr i32, ptr %x, i32 %t
  store i32 %t, ptr %p"""
    text = kernel_text(body, "ptr %a, ptr %b_")
    a = np.zeros(64, np.int32)
    launch(text, a[:4], a[8:40], checks="all")
    error = finding(text, a[:4], a[8:30])
    assert error.code == "RUN075" and "is in no buffer" in error.what


def test_constants_have_bounds() -> None:
    table = "@c = internal addrspace(4) constant [4 x i32] [i32 1, i32 2, i32 3, i32 4]\n"
    body = at("%p", "%t", "ptr addrspace(4) @c") + "  %v = load i32, ptr addrspace(4) %p\n" + at("%q", "%t")
    error = finding(kernel_text(body + "  store i32 %v, ptr %q", globals_=table), np.zeros(32, np.int32))
    assert error.code == "RUN075" and "constant 'c' at byte 16 of 16" in error.what


# threads that do not meet, or never end


def test_a_barrier_in_a_loop_that_some_leave_early() -> None:
    body = f"""  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %j, %loop ]
{SYNC}  %j = add i32 %i, 1
  %more = icmp ult i32 %j, %t
  br i1 %more, label %loop, label %end
end:"""
    error = finding(kernel_text(body), np.zeros(1, np.int32), checks="")
    assert error.code == "RUN077" and "never reached" in error.what


FOR_EVER = """  %p = getelementptr i32, ptr %out, i32 0
  br label %loop
loop:
  %v = load atomic volatile i32, ptr %p monotonic, align 4
MORE  %wait = icmp eq i32 %v, 0
  br i1 %wait, label %loop, label %end
end:"""


@pytest.mark.parametrize("more", ["", SYNC, WARP_SYNC])
@pytest.mark.parametrize("checks", ["", "all"])
def test_a_loop_for_ever_ends(more: str, checks: str) -> None:
    error = finding(kernel_text(FOR_EVER.replace("MORE", more)), np.zeros(1, np.int32), checks=checks, steps=1000)
    assert error.code == "RUN079" and "br i1 %wait" in str(error.where)
    launch(kernel_text(FOR_EVER.replace("MORE", more)), np.ones(1, np.int32), checks=checks, steps=1000)


def test_barriers_of_some_threads() -> None:
    """Each half of the block has a barrier of its own; the upper half also announces itself to the lower."""
    body = f"""  %c = icmp ult i32 %t, 32
  br i1 %c, label %low, label %high
high:
{shared("%p", "%t")}  store i32 %t, ptr addrspace(3) %p
  call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 1, i32 64)
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 2, i32 32)
  br label %end
low:
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 64)
  %n = add i32 %t, 32
{shared("%q", "%n")}  %v = load i32, ptr addrspace(3) %q
{at("%o", "%t")}  store i32 %v, ptr %o
  br label %end
end:"""
    text, out = kernel_text(body, globals_=SHARED), np.zeros(32, np.int32)
    launch(text, out, block=(64, 1, 1), checks="all")
    assert (out == np.arange(32, 64)).all()
    assert finding(text.replace("i32 2, i32 32", "i32 2, i32 64"), out, block=(64, 1, 1)).code == "RUN077"


MANY = (1 << 16, 1 << 16, 1)


@pytest.mark.parametrize("checks", ["bounds", "all"])
def test_a_grid_that_is_all_wrong_ends_early(checks: str) -> None:
    """Four billion blocks take no memory of their own, and the run ends when the log is full."""
    text = kernel_text(at("%p", "64") + "  store i32 1, ptr %p\n" + at("%q", "0") + "  store i32 1, ptr %q")
    error = finding(text, np.zeros(4, np.int32), grid=MANY, checks=checks)
    assert error.code == "RUN075" and ("1 other place" in error.what) == (checks == "all")
    race = finding(text.replace("i32 64", "i32 1"), np.zeros(4, np.int32), grid=MANY, block=(1, 1, 1))
    assert race.code == "RUN076" and "earlier block, thread (0, 0, 0)" in str(race.where)


def test_ctrl_c_ends_a_long_launch() -> None:
    out, over = np.zeros(32, np.int32), threading.Event()
    kernel = compile_kernel(kernel_text(at("%p", "%t") + "  store i32 1, ptr %p"), "k", MANY, (32, 1, 1))

    def interrupt() -> None:
        while not out.all() and not over.wait(0.01):
            pass
        if out.all():  # a block has run
            _thread.interrupt_main()

    other = threading.Thread(target=interrupt)
    with interruptible(), pytest.raises(KeyboardInterrupt):
        try:
            other.start()
            kernel(buffers(out))
        finally:
            over.set()
    other.join()

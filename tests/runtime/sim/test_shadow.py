"""What is remembered of memory between accesses and launches."""

from __future__ import annotations

import numpy as np

from heron.buffers.assignment import Allocation, Slice
from heron.codegen.sim.kernel import compile_kernel
from heron.runtime.object_code import Object, Timing
from heron.runtime.sim import state
from heron.runtime.sim.code import Access, Global, KernelCode
from heron.runtime.sim.shadow import Shadow, Written, make_rows
from heron.runtime.sim.state import READ, WRITE
from tests.runtime.sim.support import buffers, kernel_text

RACY = kernel_text("  store i32 %t, ptr %out")
ALL = sum(state.CHECKS.values())


def test_written_bytes_follow_copies() -> None:
    written = Written([Allocation(0, "parameter", 16), Allocation(1, "temp", 64)])
    given, a, b = Slice(0, 0, 16), Slice(1, 0, 16), Slice(1, 32, 16)
    assert written.missing(given, 16) is None and written.address(given) == 0
    assert written.missing(a, 16) == 0
    written.mark(Slice(1, 0, 12))
    assert written.missing(a, 16) == 12 and written.missing(a, 12) is None
    written.copy(a, b)
    assert written.missing(b, 16) == 12
    written.copy(given, b)
    assert written.missing(b, 16) is None
    written.mark(b, 0)
    assert written.missing(b, 16) == 0


def test_a_run_of_very_many_launches_starts_its_clock_again() -> None:
    out, shadow = np.zeros(4, np.int32), Shadow()
    kernel = compile_kernel(RACY, "k", (1, 1, 1), (2, 1, 1), checks="races")
    assert len(kernel.run(buffers(out), shadow)) == 1
    shadow.tick = (1 << 32) - 8
    assert len(kernel.run(buffers(out), shadow)) == 1
    assert 0 < shadow.tick < 100
    shadow.tick = (1 << 32) - 8
    quiet = compile_kernel(kernel_text("  %v = load i32, ptr %out"), "k", (1, 1, 1), (2, 1, 1), checks="races")
    assert not quiet.run(buffers(out), shadow) and shadow.tick < 100


def rows(*args: tuple[int, int, str], accesses: list[Access], shared: tuple[Global, ...] = ()) -> list[state.Row]:
    names = [name for _, _, name in args]
    sizes = [(address, size) for address, size, _ in args]
    shadow = Shadow()
    code = KernelCode("k", (1, 1, 1), (1, 1, 1), ALL, names, shared, accesses, 0, 0, Object("k", b"", Timing()))
    table = make_rows(sizes, [0] * len(args), code, shadow)
    return list(table)


def test_only_memory_that_is_written_has_cells() -> None:
    a = Access("", 4, READ, 4, "%a")
    b = Access("", 8, WRITE, 4, "%b")
    found = rows((4096, 64, "%a"), (8192, 64, "%b"), accesses=[a, b])
    assert not found[0].cells and found[1].cells
    assert found[1].granule == 4  # what its alignment allows
    assert all(r.cells for r in rows((4096, 64, "%a"), (8192, 64, "%b"), accesses=[a, Access("", 8, WRITE, 8, "")]))


def test_overlapping_buffers_share_cells() -> None:
    a, b = Access("", 4, READ, 4, "%a"), Access("", 2, WRITE, 2, "%b")
    first, second = rows((4096, 64, "%a"), (4102, 8, "%b"), accesses=[a, b])
    assert (first.granule, second.granule) == (2, 2)
    assert second.cells - first.cells == 3 * 8 * 5


def test_shared_objects_have_cells_of_their_own() -> None:
    shared = (Global("s", 256, True, (64,), 4), Global("t", 4, True, (), 4), Global("c", 8, False, (), 8))
    accesses = [Access("", 4, WRITE, 4, "@s"), Access("", 4, READ, 4, "@t")]
    s, t, c = rows(accesses=accesses, shared=shared)
    assert t.cells - s.cells == 64 * 8 * 5 and not c.cells and s.shared and not c.shared

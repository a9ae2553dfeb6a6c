"""Work of the native program that the threads of a pool share: kernels with a grain, and ranges of work items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.codegen.native.collectives import field
from heron.runtime.collectives.state import Device
from heron.runtime.cpu.pool import MOST_POINTERS, PARALLEL_FOR, range_name

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter


def _kernel_range(name: str, arguments: int) -> str:
    """The function the pool calls for a kernel: pointers out of the packed arguments, then the kernel on the range."""
    # not optimised: there is nothing to find in it
    lines = [f"define internal void @{name}.range(ptr %args, i64 %lo, i64 %hi) nounwind noinline optnone {{"]
    for n in range(arguments):
        lines.append(f"  %at{n} = getelementptr ptr, ptr %args, i64 {n}")
        lines.append(f"  %a{n} = load ptr, ptr %at{n}")
    pointers = "".join(f"ptr %a{n}, " for n in range(arguments))
    return "\n".join([*lines, f"  call void @{name}({pointers}i64 %lo, i64 %hi) noinline", "  ret void", "}"])


def range_of(writer: ProgramWriter, name: str, arguments: int) -> str:
    """The name of the function that does a range of a kernel's work items for packed arguments.

    It is with the program, also where the kernel is elsewhere: LLVM's optimiser, which takes half a millisecond for any
    function, is spared most programs.
    """
    function = f"{name}.range"
    _declare(writer, name, arguments)
    writer.helpers.setdefault(function, _kernel_range(name, arguments))
    return function


def write_kernel(writer: ProgramWriter, name: str, pointers: list[str], items: int, grain: int) -> None:
    """Call kernel `name` on all its work items, in portions of `grain` or more.

    The pool has functions that call kernels: one for each kernel would take LLVM a quarter of a millisecond.
    """
    count, pool = len(pointers), writer.pool
    if not 0 < count <= MOST_POINTERS or pool is None:
        _fork(writer, range_of(writer, name, count), [f"ptr {p}" for p in pointers], items, grain)
        return
    _declare(writer, name, count)
    function = range_name(count)
    writer.externals[function] = pool.range_of(count)
    writer.declare(function, f"void @{function}(ptr, i64, i64)")
    _fork(writer, function, [f"ptr {p}" for p in (*pointers, f"@{name}")], items, grain)


def _declare(writer: ProgramWriter, kernel: str, pointers: int) -> None:
    """Declare a kernel that is in another module."""
    if kernel in writer.elsewhere:
        writer.declare(kernel, f"void @{kernel}({'ptr, ' * pointers}i64, i64)")


def write_range(writer: ProgramWriter, function: str, pointers: list[str], items: int, grain: int) -> None:
    """Call a function of packed pointers and a range of work items on all of them, `grain` or more at a time."""
    if writer.pool is not None and items > grain:
        _fork(writer, function, [f"ptr {p}" for p in pointers], items, grain)
        return
    pack(writer, [f"ptr {p}" for p in pointers])
    writer.line(f"call void @{function}(ptr %packed, i64 0, i64 {items})")


def _fork(writer: ProgramWriter, function: str, arguments: list[str], items: int, grain: int) -> None:
    """Pack the arguments on the stack and hand the range to the pool; on return all of it is done."""
    pool = writer.pool
    assert pool is not None
    writer.shares = True
    writer.externals[PARALLEL_FOR] = pool.parallel_for
    if writer.devices == 1:
        writer.externals["heron_pool"] = pool.address
        place = writer.declared.variable("@heron_pool = external global i8")
    else:  # each device has its own
        place = writer.value(f"load ptr, ptr {field(writer, Device.pool.offset)}")
    writer.declare(PARALLEL_FOR, f"void @{PARALLEL_FOR}(ptr, ptr, ptr, i64, i64)")
    pack(writer, arguments)
    writer.line(f"call void @{PARALLEL_FOR}(ptr {place}, ptr @{function}, ptr %packed, i64 {items}, i64 {grain})")


def pack(writer: ProgramWriter, arguments: list[str]) -> None:
    """Put arguments into the table on the stack."""
    writer.packed = max(writer.packed, len(arguments))
    for n, argument in enumerate(arguments):
        place = writer.value(f"getelementptr ptr, ptr %packed, i64 {n}") if n else "%packed"
        writer.line(f"store {argument}, ptr {place}")

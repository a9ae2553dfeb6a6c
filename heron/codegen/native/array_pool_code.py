"""Native code of `heron.runtime.array_pool`: the allocator NumPy calls for large arrays.

A thread that finds the blocks in use by another one goes without them, so nobody ever waits.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from heron.codegen.llvm.text import Function, Module
from heron.codegen.llvm.values import Value
from heron.codegen.native.common_code import for_good
from heron.runtime.array_pool import BLOCKS, FUNCTIONS, LARGE, Block, State

#: the part of the machine's memory that freed blocks may take
_SHARE = 8

_HUGE_PAGE = 1 << 21
_MADV_FREE, _MADV_HUGEPAGE = 8, 14
_MADVISE = "i32 @madvise(ptr, i64, i32)"
_FREE = "void @free(ptr)"

_NEW, _NEW_ZERO, _RESIZE, _DROP = FUNCTIONS


def make() -> Mapping[str, int]:
    """The addresses of the allocator's functions."""
    limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _SHARE
    return for_good("recycle", text(limit))


def text(limit: int) -> str:
    """LLVM text of the allocator, which keeps at most `limit` bytes of freed blocks."""
    module = Module()
    _write_new(module)
    _write_free(module, limit)
    with module.function(f"ptr @{_NEW_ZERO}(ptr %state, i64 %count, i64 %size) nounwind") as f:
        f.ret(f.call("ptr @calloc(i64, i64)", *f.arguments[1:]))
    with module.function(f"ptr @{_RESIZE}(ptr %state, ptr %block, i64 %size) nounwind") as f:
        f.ret(f.call("ptr @realloc(ptr, i64)", *f.arguments[1:]))
    return module.text()


def _enter(f: Function, state: Value) -> Value:
    """Whether the blocks are this thread's from now on."""
    return f.swap("i64", state, 0, 1, "acquire monotonic")


def _leave(f: Function, state: Value) -> None:
    f.store("i64", 0, state, order="release")


def _write_new(module: Module) -> None:
    """A kept block of exactly that size, or fresh memory: null where there is none."""
    with module.function(f"ptr @{_NEW}(ptr %state, i64 %size) nounwind") as f:
        state, size = f.arguments
        with f.when(_enter(f, state)):
            view = f.view(state, State)
            blocks = view.at("blocks")
            with f.loop(0, BLOCKS) as n:
                block = f.view(blocks, Block, n)
                address = block["address"]
                with f.when(address.ne("null") & block["bytes"].eq(size)):
                    block["address"] = "null"
                    block["bytes"] = 0
                    view["kept"] = view["kept"] - size
                    _leave(f, state)
                    f.ret(address)
            _leave(f, state)
        large = size.reaches(2 * _HUGE_PAGE)
        alignment = f.select(large, _HUGE_PAGE, 64, "i64")
        place = f.slot("ptr")
        failed = f.call("i32 @posix_memalign(ptr, i64, i64)", place, alignment, size)
        with f.when(failed.ne(0)):
            f.ret("null", "ptr")
        made = f.load("ptr", place)
        with f.when(large):
            f.call(_MADVISE, made, size & -_HUGE_PAGE, _MADV_HUGEPAGE)
        f.ret(made)


def _write_free(module: Module, limit: int) -> None:
    """Keep a block, or give it back. The blocks are a ring: a block takes the place of the one kept longest, and more
    of those go until the rest is within the limit."""
    with module.function(f"void @{_DROP}(ptr %state, ptr %block, i64 %size) nounwind") as f:
        state, block, size = f.arguments
        with f.when(size.below(LARGE)):
            f.call(_FREE, block)
            f.ret()
        with f.unless(_enter(f, state)):
            f.call(_FREE, block)
            f.ret()
        with f.when(size.reaches(2 * _HUGE_PAGE)):
            f.call(_MADVISE, block, size & -_HUGE_PAGE, _MADV_FREE)
        view = f.view(state, State)
        blocks = view.at("blocks")
        new, new_size = f.variable("ptr", block), f.variable("i64", size)
        turn = f.variable("i64", view["turn"])
        with f.repeat() as each:
            place = f.view(blocks, Block, turn.get())
            old, old_size = place["address"], place["bytes"]
            place["address"], place["bytes"] = new.get(), new_size.get()
            f.call(_FREE, old)
            kept = view["kept"] + new_size.get() - old_size
            view["kept"] = kept
            turn.set((turn.get() + 1) % BLOCKS)
            new.set("null")
            new_size.set(0)
            with f.when(kept.below(limit + 1)):
                each.leave()
        view["turn"] = turn.get()
        _leave(f, state)

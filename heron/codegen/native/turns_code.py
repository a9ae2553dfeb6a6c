"""Native code of devices that take turns on one thread: each has a stack of its own, and gives way where it waits.

A program that takes some microseconds would spend more time on waking threads than on its work. ``heron_turns`` has the
form of a program for one device; its table holds those of all devices, one after the other.
"""

from __future__ import annotations

import ctypes

from heron.codegen.llvm.text import Function, Module
from heron.codegen.llvm.values import Value, View
from heron.runtime.collectives.state import COMPUTES, ENDED, GIVEN_UP, TURNS, Device, World

#: a device gives its turn to the next one that has not ended
GIVE = "void @give_turn(ptr)"

_SWITCH = "i32 @swapcontext(ptr, ptr)"
#: bytes from the start of Linux's ucontext_t to the context that follows it, to its stack, and to that one's size
_LINK, _STACK, _STACK_SIZE = 8, 16, 32
_WORD = ctypes.sizeof(ctypes.c_void_p)


def write(module: Module) -> None:
    """The functions."""
    _write_give(module)
    _write_turn(module)
    _write_turns(module)


def _write_give(module: Module) -> None:
    with module.function("internal void @give_turn(ptr %device) nounwind") as f:
        device = f.view(f.arguments[0], Device)
        world = f.view(device["world"], World)
        world["idle"] = world["idle"] + 1
        with f.when(world["turns"].less(world["idle"])):
            f.store("i32", GIVEN_UP, world.at("failed"), order="monotonic")
            f.ret()
        _switch(f, device)


def _switch(f: Function, device: View) -> None:
    """Go on with the next device that has not ended."""
    following = f.variable("ptr", device["next"])
    with f.repeat() as each:
        at = f.load("i32", f.view(following.get(), Device).at("at"), order="monotonic")
        with f.when(at.ne(ENDED) | following.get().eq(device.address)):
            each.leave()
        following.set(f.view(following.get(), Device)["next"])
    with f.unless(following.get().eq(device.address)):
        f.call(_SWITCH, device["context"], f.view(following.get(), Device)["context"])


def _write_turn(module: Module) -> None:
    """A device from beginning to end; nothing comes back to one that has ended."""
    with module.function("internal void @turn(ptr %device) nounwind") as f:
        device = f.view(f.arguments[0], Device)
        world = f.view(device["world"], World)
        f.call(f"void {device['program']}(ptr)", device["buffers"])
        f.store("i32", ENDED, device.at("at"), order="monotonic")
        world["idle"], world["left"] = 0, world["left"] - 1
        with f.when(world["left"].eq(0)):
            f.call(_SWITCH, device["context"], world["context"])
        _switch(f, device)


def _write_turns(module: Module) -> None:
    with module.function(f"void @{TURNS}(ptr %buffers) nounwind") as f:
        buffers = f.arguments[0]
        first = f.view(f.load("ptr", buffers), Device)
        world = f.view(first["world"], World)
        count, stride = world["count"].cast("sext", "i64"), world["stride"]
        f.store("i32", 0, world.at("failed"), order="monotonic")
        with f.when(world["turns"].eq(0)):  # nobody ever waits
            with f.loop(0, count) as n:
                table = f.at(buffers, n * stride, "i8")
                f.call(f"void {first['program']}(ptr)", f.at(table, _WORD, "i8"))
            f.ret()
        taken = world["taken"]
        with f.repeat() as each:
            with f.when(f.swap("i32", taken, 0, 1, "acquire monotonic")):
                each.leave()
            f.call("i32 @sched_yield()")
        world["idle"], world["left"] = 0, world["count"]
        with f.loop(0, count) as n:
            table = f.at(buffers, n * stride, "i8")
            _begin(f, f.view(f.load("ptr", table), Device), f.at(table, _WORD, "i8"))
        f.call(_SWITCH, world["context"], first["context"])
        f.store("i32", 0, taken, order="release")


def _begin(f: Function, device: View, buffers: Value) -> None:
    """Let a device begin when its turn comes."""
    device["buffers"], device["failed"] = buffers, 0
    f.store("i32", COMPUTES, device.at("at"), order="monotonic")
    context = device["context"]
    f.call("i32 @getcontext(ptr)", context)
    f.store("ptr", "null", f.at(context, _LINK, "i8"))
    f.store("ptr", device["stack"], f.at(context, _STACK, "i8"))
    f.store("i64", device["stack_bytes"], f.at(context, _STACK_SIZE, "i8"))
    f.call("void @makecontext(ptr, ptr, i32, ...)", context, "@turn", 1, f"ptr {device.address}")

"""What the rehearsed driver refuses, as a real one does: each refusal names the call and the numbers."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from ctypes import byref, c_uint64, c_void_p

import numpy as np
import pytest

import heron
from heron.codegen.llvm.assemble import assemble, knows
from heron.errors import HeronError
from heron.targets import libcuda
from tests.gpu.reach import PROGRAMS
from tests.rehearsal.compiling import compile
from tests.rehearsal.declared import Declared, declared
from tests.rehearsal.driver import Recorder

PTX = b"""
.version 7.8
.target sm_90
.address_size 64
.visible .entry twice(
\t.param .u64 .ptr .global .align 16 twice_param_0,
\t.param .u32 twice_param_1
)
.reqntid 128, 1, 1
{
\t.shared .align 4 .b8 room[1024];
\t.reg .b32 %r<3>;
\t.reg .b64 %rd<3>;
\tld.param.u64 %rd1, [twice_param_0];
\tld.param.u32 %r1, [twice_param_1];
\tcvta.to.global.u64 %rd2, %rd1;
\tst.shared.u32 [room], %r1;
\tbar.sync 0;
\tld.shared.u32 %r2, [room];
\tst.global.u32 [%rd2], %r2;
\tret;
}
"""
Driver = tuple[Recorder, int, int]


@pytest.fixture
def driver() -> Iterator[Driver]:
    """A recorder with a context, a stream of it and the kernel ``twice``."""
    recorder, context = Recorder(), c_void_p()
    recorder.cuInit(0)
    recorder.cuDevicePrimaryCtxRetain(byref(context), 0)
    recorder.cuCtxSetCurrent(context)
    stream, module, function = c_void_p(), c_void_p(), c_void_p()
    recorder.cuStreamCreate(byref(stream), 0)
    recorder.known.learn(PTX, "twice", 1, lambda values: None, (16, 1))
    recorder.cuModuleLoadDataEx(byref(module), PTX, 0, None, None)
    assert recorder.cuModuleGetFunction(byref(function), module, b"twice") == 0
    yield recorder, stream.value or 0, function.value or 0


def launch(driver: Driver, address: int, block: int = 128, shared: int = 0) -> int:
    recorder, stream, function = driver
    value, number = c_uint64(address), ctypes.c_uint32(7)
    params = (c_void_p * 2)(ctypes.addressof(value), ctypes.addressof(number))
    config = libcuda.LaunchConfig()
    config.grid[:], config.block[:], config.shared_bytes = (1, 1, 1), (block, 1, 1), shared
    config.stream = stream
    return recorder.cuLaunchKernelEx(byref(config), function, params, None)


def allocated(recorder: Recorder, size: int = 256) -> int:
    out = c_uint64()
    assert recorder.cuMemAlloc_v2(byref(out), size) == 0
    return out.value


@pytest.mark.skipif(not knows("sm_90"), reason="no assembler for sm_90 is here (pip install '.[ptx]')")
def test_machine_code_declares_what_its_text_does() -> None:
    (text,), (code,) = declared(PTX).values(), declared(assemble(PTX.decode(), "sm_90").code).values()
    assert text == Declared((8, 4), (16, 1), (128, 1, 1))
    assert (code.sizes, code.block) == (text.sizes, text.block) and code.shared >= 1024


def test_a_launch_as_it_should_be(driver: Driver) -> None:
    recorder, stream, _ = driver
    assert launch(driver, allocated(recorder)) == 0 == recorder.cuStreamSynchronize(stream)
    assert recorder.launched == ["twice"] and not recorder.problems


LAUNCHES: dict[str, tuple[Callable[[Driver], int], str]] = {
    "another block": (lambda d: launch(d, allocated(d[0]), block=64), "blocks of (128, 1, 1), not (64, 1, 1)"),
    "an unaligned array": (lambda d: launch(d, allocated(d[0]) + 4), "no multiple of 16"),
    "shared memory unasked": (
        lambda d: launch(d, allocated(d[0]), shared=65536),
        "65536 bytes of shared memory, 0 asked",
    ),
}


@pytest.mark.parametrize("what", LAUNCHES)
def test_launches_that_are_refused(driver: Driver, what: str) -> None:
    do, said = LAUNCHES[what]
    assert do(driver) == 1
    (problem,) = driver[0].problems
    assert said in problem and "twice" in problem
    driver[0].problems.clear()
    assert launch(driver, allocated(driver[0])) == 0 == driver[0].cuStreamSynchronize(driver[1])


def test_shared_memory_that_is_asked_for(driver: Driver) -> None:
    recorder, _, function = driver
    assert recorder.cuFuncSetAttribute(function, libcuda.MAX_DYNAMIC_SHARED, 65536) == 0
    assert launch(driver, allocated(recorder), shared=65536) == 0 and not recorder.problems
    assert recorder.cuFuncSetAttribute(function, libcuda.MAX_DYNAMIC_SHARED, 240_000) == 1


def test_a_freed_array_is_a_fault_that_lasts(driver: Driver) -> None:
    recorder, stream, _ = driver
    address = allocated(recorder)
    assert launch(driver, address) == 0 == recorder.cuMemFree_v2(address)  # waits for the kernel
    assert launch(driver, address) == 0 and recorder.cuStreamSynchronize(stream) == 700
    assert recorder.cuMemAlloc_v2(byref(c_uint64()), 8) == 700
    assert "is in no allocation" in recorder.problems[0]


def test_functions_go_with_their_module(driver: Driver) -> None:
    recorder, _, function = driver
    module = next(h for h, thing in recorder._handles.items() if isinstance(thing, dict))
    assert recorder.cuModuleUnload(module) == 0
    assert launch(driver, allocated(recorder)) == 400 and "no Function" in recorder.problems[0]


CAPTURED: dict[str, Callable[[Driver, int], int]] = {
    "cuStreamSynchronize": lambda d, _: d[0].cuStreamSynchronize(d[1]),
    "cuMemAlloc_v2": lambda d, _: d[0].cuMemAlloc_v2(byref(c_uint64()), 64),
    "cuMemHostAlloc": lambda d, _: d[0].cuMemHostAlloc(byref(c_void_p()), 64, 0),
    "cuMemFree_v2": lambda d, address: d[0].cuMemFree_v2(address),
    "cuCtxSynchronize": lambda d, _: d[0].cuCtxSynchronize(),
}


@pytest.mark.parametrize("call", CAPTURED)
def test_calls_that_no_capture_survives(driver: Driver, call: str) -> None:
    recorder, stream, _ = driver
    address, graph = allocated(recorder), c_void_p()
    assert recorder.cuStreamBeginCapture_v2(stream, 1) == 0
    assert recorder.cuStreamBeginCapture_v2(stream, 1) == 401
    assert CAPTURED[call](driver, address) == 900
    assert recorder.cuStreamEndCapture(stream, byref(graph)) == 901
    (problem,) = recorder.problems
    assert call in problem and "capture" in problem
    assert recorder.cuStreamSynchronize(stream) == 0  # the stream is as it was


def test_a_child_graph_may_not_allocate(driver: Driver) -> None:
    recorder, stream, _ = driver
    child, parent, out = c_void_p(), c_void_p(), c_void_p()
    recorder.cuStreamBeginCapture_v2(stream, 1)
    assert recorder.cuMemAllocAsync(byref(c_uint64()), 64, stream) == 0
    assert recorder.cuStreamEndCapture(stream, byref(child)) == 0 == recorder.cuGraphCreate(byref(parent), 0)
    assert recorder.cuGraphAddChildGraphNode(byref(out), parent, None, 0, child) == 801
    assert recorder.problems == ["a child graph that allocates memory"]


@pytest.mark.parametrize("name", ["scan", "radix_sort"])
def test_control_words_of_an_earlier_run_are_a_fault(name: str) -> None:
    case, recorder = PROGRAMS[name], Recorder()
    arrays = case.inputs(np.random.default_rng(0), case.sizes[0])
    with libcuda.use(recorder):
        made = compile(case.module(full=False), recorder)
        for (image, kernel), (count, alignments, run) in recorder.known.kernels.items():
            if kernel.endswith("_clear"):
                recorder.known.kernels[image, kernel] = (count, alignments, once(run))
        wanted = made.run(arrays)
        with pytest.raises(HeronError, match="RUN044"):
            made.run(arrays)
    assert np.array_equal(wanted[0], heron.evaluate(case.module(full=False), *arrays)[0])
    assert any("finds control words of an earlier run" in problem for problem in recorder.problems)


def once(run: Callable[[list[int]], None]) -> Callable[[list[int]], None]:
    """What runs the first time and is forgotten after it."""
    ran: list[bool] = []

    def maybe(values: list[int]) -> None:
        if not ran:
            ran.append(True)
            run(values)

    return maybe

"""What goes wrong on a device: each failure is told with its place, and the device is usable afterwards."""

from __future__ import annotations

import ctypes
import dataclasses
import re
from typing import Any

import numpy as np
import pytest

import heron
from heron.codegen.llvm.assemble import assemble
from heron.errors import HeronError
from heron.options import Options
from heron.runtime.cuda import helpers
from heron.runtime.cuda.array import put
from heron.runtime.cuda.device import device, runs
from heron.runtime.cuda.driver import Driver
from heron.targets import libcuda
from tests.rehearsal.compiling import compile, rehearsed
from tests.rehearsal.driver import Recorder
from tests.runtime.cuda.programs import DIAMOND, SUM, close, matrices, parse


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libcuda, "library", lambda: None)
    executable = heron.compile(parse(SUM), target="cuda")
    with pytest.raises(HeronError, match="RUN030") as caught:
        executable(*matrices(shape=(1000,)))
    assert "libcuda.so.1" in str(caught.value) and "sim:sm_90" in str(caught.value)


@pytest.mark.parametrize(
    ("how", "code", "says"),
    [
        ({"devices": 0}, "RUN030", "CUDA_ERROR_NO_DEVICE"),
        ({"version": 11080}, "RUN040", "it knows CUDA 11.8"),
        ({"lacks": ["cuGraphAddKernelNode_v2"]}, "RUN040", "cuGraphAddKernelNode_v2"),
    ],
)
def test_drivers_that_will_not_do(how: dict[str, Any], code: str, says: str) -> None:
    executable = heron.compile(parse(SUM), target="sm_90")
    with rehearsed(**how), pytest.raises(HeronError, match=code) as caught:
        executable(*matrices(shape=(1000,)))
    assert says in str(caught.value)


def test_a_function_that_only_some_drivers_have() -> None:
    with rehearsed(lacks=["cuMemAllocAsync"]) as recorder, pytest.raises(HeronError, match="RUN040"):
        Driver(recorder).cuMemAllocAsync(None, 1, None)


def test_a_device_that_does_not_run_the_code() -> None:
    executable = heron.compile(parse(SUM), target="sm_90")
    with rehearsed(capability=(8, 0), name="A100"), pytest.raises(HeronError, match="RUN041") as caught:
        executable(*matrices(shape=(1000,)))
    assert "A100 (sm_80)" in str(caught.value)


@pytest.mark.parametrize(
    ("has", "sm", "machine_code", "wanted"),
    [
        ((9, 0), "sm_90", True, True),
        ((9, 0), "sm_80", False, True),
        ((9, 0), "sm_80", True, False),
        ((8, 9), "sm_80", True, True),
        ((8, 0), "sm_86", True, False),
        ((9, 0), "sm_90a", True, True),
        ((10, 0), "sm_90a", False, False),
        ((10, 3), "sm_100", True, True),
        ((12, 0), "sm_90", False, True),
    ],
)
def test_what_runs_where(has: tuple[int, int], sm: str, machine_code: bool, wanted: bool) -> None:
    assert runs(has, sm, machine_code) == wanted


def test_code_the_driver_refuses() -> None:
    module = parse(SUM)
    with rehearsed() as recorder:
        executable = compile(module, recorder)
        lacking = dataclasses.replace(executable.program.images[0], ptx=b"")
        executable.program = dataclasses.replace(executable.program, images=(lacking,))
        recorder.fail["cuModuleLoadDataEx"] = (222, 0)
        with pytest.raises(HeronError, match="RUN045") as caught:
            executable(*matrices(shape=(1000,)))
        assert "CUDA_ERROR_UNSUPPORTED_PTX_VERSION" in str(caught.value) and "update it" in str(caught.value)
        assert executable(*matrices(shape=(1000,))).shape == (1000,)
        with pytest.raises(HeronError, match="neither machine code nor PTX"):
            device().load(b"nonsense", "a test")


@pytest.mark.parametrize("result", [200, 209, 218, 222])
def test_another_form_of_the_code_is_tried(result: int) -> None:
    """Machine code of newer tools than the driver's, for example; the program runs, and says so."""
    module, (a, b) = parse(SUM), matrices(shape=(1000,))
    with rehearsed() as recorder:
        executable = compile(module, recorder)
        assert all(image.code and image.ptx for image in executable.program.images)
        recorder.fail["cuModuleLoadDataEx"] = (result, 0)
        np.testing.assert_array_equal(executable(a, b), a + b)
        assert any("their PTX was loaded" in note for note in executable.trace.notes)


def test_code_without_memory_for_it_is_not_tried_in_another_form() -> None:
    with rehearsed() as recorder:
        executable = compile(parse(SUM), recorder)
        recorder.fail["cuModuleLoadDataEx"] = (2, 0)
        with pytest.raises(HeronError):
            executable(*matrices(shape=(1000,)))
        assert recorder.count("cuModuleLoadDataEx") == 1


def test_code_is_assembled_where_the_driver_has_no_compiler() -> None:
    with rehearsed() as recorder:
        d = device()
        recorder.fail["cuModuleLoadDataEx"] = (221, 0)
        assert d.function(d.load(helpers.CONDITIONS.encode(), "a test"), "heron_while")
        recorder.fail["cuModuleLoadDataEx"] = (221, 0)
        with pytest.raises(HeronError, match="RUN045"):
            d.load(b"\x7fELF" + bytes(60), "a test")


@pytest.mark.parametrize("name", ["RANDOM", "CONDITIONS", "SWEEP", "DEVICES"])
@pytest.mark.parametrize("sm", ["sm_75", "sm_90", "sm_120"])
def test_the_kernels_of_the_runtime_assemble(name: str, sm: str) -> None:
    """The one function they call, cudaGraphSetConditional, stays open: the driver has it when it loads the code."""
    text = getattr(helpers, name)
    code = assemble(text, sm)
    assert sorted(code.resources) == sorted(re.findall(r"\.entry (\w+)", text))
    assert (b"cudaGraphSetConditional" in code.code) == (name == "CONDITIONS")
    assert not any(r.spill_bytes for r in code.resources.values())


def test_memory_runs_out() -> None:
    module, arrays = parse(DIAMOND.replace("16,16", "512,512")), matrices(shape=(512, 512))
    with rehearsed(memory=3 << 20) as recorder:
        executable = compile(module, recorder)
        with pytest.raises(HeronError, match="RUN043") as caught:
            executable(*arrays)
        message = str(caught.value)
        assert "temp 2,097,152" in message and "heron mem" in message and "free of 3,145,728" in message
        small = compile(parse(SUM), recorder)
        a, b = matrices(shape=(1000,))
        np.testing.assert_array_equal(small(a, b), a + b)


def test_a_limit_on_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERON_CUDA_MEMORY", "4096")
    with rehearsed() as recorder:
        executable = compile(parse(SUM), recorder)
        with pytest.raises(HeronError, match="limit 4,096"):
            executable(*matrices(shape=(1000,)))
    monkeypatch.setenv("HERON_CUDA_MEMORY", "lots")
    with rehearsed(), pytest.raises(HeronError, match="RUN046"):
        device()


@pytest.mark.parametrize("options", [Options(), Options(graphs=False)], ids=["graphs", "streams"])
def test_a_kernel_that_faults_is_named(options: Options) -> None:
    module, arrays = parse(DIAMOND), matrices()
    with rehearsed() as recorder:
        executable = compile(module, recorder, options=options)
        *_, kernel = executable.program.kernels
        recorder.faults.add(kernel)
        with pytest.raises(HeronError, match="RUN044") as caught:
            executable(*arrays)
        message = str(caught.value)
        assert f"kernel '{kernel}'" in message and "HLO " in message and "sim:sm_90 --check all" in message
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in message and "grid" in message
        recorder.faults.clear()
        close(executable(*arrays), module, *arrays)  # the device was reset, the program is loaded again


@pytest.mark.parametrize("on_device", [False, True])
def test_a_fault_that_a_reset_does_not_end(on_device: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    module, arrays = parse(DIAMOND), matrices()
    for steps in (False, True):
        monkeypatch.setenv("HERON_CUDA_STEPS", str(int(steps)))
        with rehearsed(lasting=True) as recorder:
            executable = compile(module, recorder)
            given = [put(a, executable.device) for a in arrays]
            *_, kernel = executable.program.kernels
            recorder.faults.add(kernel)
            with pytest.raises(HeronError, match="RUN044") as caught:
                if on_device:
                    executable.on_device(*given)[0].numpy()
                else:
                    executable(*arrays)
            message = str(caught.value)
            assert "gives it no new context" in message and (f"kernel '{kernel}'" in message) == steps
            assert ("HERON_CUDA_STEPS=1" in message) != steps
            with pytest.raises(HeronError, match="RUN054"):
                executable(*arrays)
            with pytest.raises(HeronError, match="RUN054"):
                put(arrays[0], device())


def test_arrays_do_not_survive_a_fault() -> None:
    module = parse(SUM)
    with rehearsed() as recorder:
        executable = compile(module, recorder)
        x, y = (put(a, executable.device) for a in matrices(shape=(1000,)))
        recorder.faults.update(executable.program.kernels)
        (z,) = executable.on_device(x, y)
        with pytest.raises(HeronError, match="RUN044") as caught:
            z.numpy()
        assert "the last program run there was sum" in str(caught.value) and "NumPy arrays" in str(caught.value)
        with pytest.raises(HeronError, match="RUN047"):
            x.numpy()


def test_arrays_that_do_not_fit() -> None:
    with rehearsed(devices=2) as recorder:
        executable = compile(parse(SUM), recorder)
        good = put(np.zeros(1000, np.float32), executable.device)
        elsewhere = put(np.zeros(1000, np.float32), device(1))
        cases: list[tuple[Any, str]] = [
            (put(np.zeros(1000), executable.device), "RUN002"),
            (put(np.zeros(999, np.float32), executable.device), "RUN003"),
            (np.zeros(1000, np.float32), "RUN049"),
            (elsewhere, "RUN049"),
        ]
        for bad, code in cases:
            with pytest.raises(HeronError, match=code):
                executable.on_device(good, bad)
        with pytest.raises(HeronError, match="RUN001"):
            executable.on_device(good)


def test_results_without_a_name() -> None:
    with rehearsed() as recorder:
        d = Driver(recorder)
        recorder.fail["cuInit"] = (12345, 0)
        with pytest.raises(HeronError, match="CUresult 12345"):
            d.cuInit(0)


def test_the_recorder_sees_freed_memory_used() -> None:
    recorder = Recorder()
    with libcuda.use(recorder):
        d = device()
        address = ctypes.c_uint64()
        d.driver.cuMemAlloc_v2(ctypes.byref(address), 64)
        d.driver.cuMemFree_v2(address.value)
        d.staging.to_device(np.zeros(8), address.value)
        with pytest.raises(HeronError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
            d.synchronize()


def test_structures_lie_as_the_driver_has_them() -> None:
    """Sizes and offsets a C compiler gives for cuda.h of CUDA 13.0 on 64-bit Linux."""
    c, k, m, n = libcuda.LaunchConfig, libcuda.KernelNode, libcuda.CopyNode, libcuda.Node
    assert (ctypes.sizeof(c), c.stream.offset, c.attribute_count.offset) == (56, 32, 48)
    assert (ctypes.sizeof(k), k.params.offset, k.context.offset) == (72, 40, 64)
    assert (ctypes.sizeof(m), m.source_device.offset, m.target_device.offset, m.width.offset) == (200, 48, 136, 176)
    assert (ctypes.sizeof(n), n.of.offset, libcuda.ConditionalNode.bodies.offset) == (256, 16, 16)

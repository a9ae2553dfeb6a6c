"""Programs through the CUDA runtime on a rehearsed device: values, graphs, streams, memory."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import heron
from heron.options import Options
from heron.runtime.cuda import helpers
from heron.runtime.cuda.array import put
from heron.runtime.cuda.device import Device, device
from heron.runtime.cuda.driver import Driver, driver
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.cuda.loaded import Loaded
from tests.rehearsal.compiling import compile, rehearsed
from tests.runtime.cuda.programs import BRANCHES, DIAMOND, FACTORS, LOOPS, RANDOM, SUM, close, matrices, parse

NO_GRAPHS = Options(graphs=False)


@pytest.mark.parametrize("options", [Options(), NO_GRAPHS], ids=["graphs", "streams"])
def test_values(options: Options) -> None:
    module, arrays = parse(DIAMOND), matrices()
    with rehearsed() as recorder:
        executable = compile(module, recorder, "cuda", options)
        for _ in range(2):  # its library call is not in a graph the first time
            close(executable(*arrays), module, *arrays)
        assert bool(recorder.count("cuGraphLaunch")) == options.graphs


@pytest.mark.parametrize("version", [13000, 12030], ids=["conditional nodes", "host loops"])
def test_loops_and_branches(version: int) -> None:
    module, (x,) = parse(LOOPS), matrices(count=1, shape=(8,))
    wanted = heron.evaluate(module, x)
    with rehearsed(version=version) as recorder:
        executable = compile(module, recorder)
        for _ in range(2):
            i, y = executable(x)
            assert i == wanted[0]
            np.testing.assert_allclose(y, wanted[1], rtol=1e-6)
        assert recorder.count("cuGraphInstantiateWithFlags") == 1 or version < 12040
        assert bool(recorder.count("cuGraphAddNode_v2")) == (version >= 12040)


def test_the_conditions_kernels_may_be_refused() -> None:
    module, (x,) = parse(LOOPS), matrices(count=1, shape=(8,))
    with rehearsed() as recorder:
        executable = compile(module, recorder)
        recorder.fail["cuModuleLoadDataEx"] = (218, 1)
        np.testing.assert_allclose(executable(x)[1], heron.evaluate(module, x)[1], rtol=1e-6)
        assert "driven by the host" in executable.load().notes[0]


def test_a_graph_the_driver_refuses_runs_step_by_step() -> None:
    module, arrays = parse(DIAMOND), matrices()
    with rehearsed() as recorder:
        executable = compile(module, recorder)
        recorder.fail["cuGraphInstantiateWithFlags"] = (801, 0)
        for _ in range(2):
            close(executable(*arrays), module, *arrays)
        assert recorder.count("cuGraphLaunch") == 0
        assert "CUDA_ERROR_NOT_SUPPORTED" in executable.load().notes[0]
        assert any("CUDA_ERROR_NOT_SUPPORTED" in note for note in executable.trace.notes)


def test_arrays_on_the_device_are_not_copied_and_graphs_are_used_again() -> None:
    module, (a, b) = parse(DIAMOND), matrices()
    with rehearsed() as recorder:
        executable = compile(module, recorder)
        device = executable.device
        x, y = put(a, device), put(b, device)
        for _ in range(2):
            (first,) = executable.on_device(x, y)
            del first
        recorder.calls.clear()
        (second,) = executable.on_device(x, y)
        assert recorder.calls == ["cuCtxSetCurrent", "cuGraphLaunch"]
        close(second.numpy(), module, a, b)


def test_other_addresses_change_the_nodes_that_use_them() -> None:
    module = parse(DIAMOND)
    with rehearsed() as recorder:
        executable = compile(module, recorder)
        device = executable.device
        held = []
        for seed in range(8):  # more than graphs are kept
            pair = matrices(seed)
            given = [put(a, device) for a in pair]
            (out,) = executable.on_device(*given)
            held.append((given, out))
            close(out.numpy(), module, *pair)
        assert recorder.count("cuGraphInstantiateWithFlags") == 4
        assert recorder.count("cuGraphExecChildGraphNodeSetParams") + recorder.count(
            "cuGraphExecKernelNodeSetParams_v2"
        )


def test_a_graph_that_cannot_be_changed_is_made_anew() -> None:
    module = parse(DIAMOND)
    with rehearsed() as recorder:
        executable = compile(module, recorder)
        held = []
        for seed in range(6):
            recorder.fail["cuGraphExecKernelNodeSetParams_v2"] = (910, 0)
            pair = matrices(seed)
            given = [put(a, executable.device) for a in pair]
            held.append((given, executable.on_device(*given)[0]))
            close(held[-1][1].numpy(), module, *pair)
        assert recorder.count("cuGraphInstantiateWithFlags") == 5
        assert any("made again for each address" in note for note in executable.trace.notes)


def test_library_calls_are_captured() -> None:
    module = parse(DIAMOND.replace("16,16", "128,128"))
    with rehearsed() as recorder:
        executable = compile(module, recorder)
        held = []
        for seed in range(6):  # the first call is not captured: libraries set themselves up in it
            pair = [a / 8 for a in matrices(seed, shape=(128, 128))]
            given = [put(a, executable.device) for a in pair]
            held.append((given, executable.on_device(*given)[0]))
            close(held[-1][1].numpy(), module, *pair)
            assert bool(recorder.count("cuStreamBeginCapture_v2")) == bool(seed)
        assert recorder.count("cuStreamEndCapture") == recorder.count("cuGraphAddChildGraphNode") + recorder.count(
            "cuGraphExecChildGraphNodeSetParams"
        )
        assert recorder.count("cuGraphExecChildGraphNodeSetParams")


def test_a_library_that_cannot_be_captured() -> None:
    module, arrays = parse(DIAMOND.replace("16,16", "128,128")), [a / 8 for a in matrices(shape=(128, 128))]
    with rehearsed() as recorder:
        executable = compile(module, recorder)
        recorder.fail["cuStreamBeginCapture_v2"] = (900, 0)
        for _ in range(2):
            close(executable(*arrays), module, *arrays)
        assert "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED" in executable.load().notes[0]
        assert recorder.count("cuGraphLaunch") == 0


def test_donated_arrays() -> None:
    module, (a, b) = parse(SUM), matrices(shape=(1000,))
    with rehearsed() as recorder:
        executable = compile(module, recorder)
        before = a.copy()
        np.testing.assert_array_equal(executable(a, b), a + b)
        np.testing.assert_array_equal(a, before)
        x, y = put(a, executable.device), put(b, executable.device)
        np.testing.assert_array_equal(executable.on_device(x, y)[0].numpy(), a + b)
        np.testing.assert_array_equal(x.numpy(), a)
        address = x.address
        (z,) = executable.on_device(x, y, donate=True)
        assert z.address == address and x.is_lost
        np.testing.assert_array_equal(z.numpy(), a + b)
        with pytest.raises(heron.HeronError, match="RUN047"):
            executable.on_device(x, y)


def test_random_numbers_go_on_from_call_to_call() -> None:
    simulated = heron.compile(parse(RANDOM), target="sim:sm_90")
    with rehearsed() as recorder:
        executable = compile(parse(RANDOM), recorder)
        for _ in range(3):
            np.testing.assert_array_equal(executable(), simulated())


def test_large_arrays_go_through_pinned_memory() -> None:
    text = SUM.replace("1000", "3000000")
    a, b = matrices(shape=(3000000,))
    with rehearsed() as recorder:
        executable = compile(parse(text), recorder)
        np.testing.assert_array_equal(executable(a, b), a + b)
        assert recorder.count("cuMemHostAlloc") == 4  # two blocks for large arrays, two for small ones


def test_small_arrays_go_through_pinned_memory() -> None:
    """Many of them, behind work that has not run: none is overwritten before the device has read it."""
    with rehearsed() as recorder:
        d = device()
        arrays = [np.full(30_000, n, np.uint8) for n in range(100)]  # more than both blocks hold
        given = [put(a, d) for a in arrays]
        for a, there in zip(arrays, given, strict=True):
            np.testing.assert_array_equal(there.numpy(), a)
        assert recorder.count("cuMemHostAlloc") == 2


def test_memory_is_given_back() -> None:
    module, arrays = parse(DIAMOND), matrices()
    with rehearsed() as recorder:
        executable = compile(module, recorder)
        executable(*arrays)
        held = executable.device.memory.statistics.held
        for _ in range(20):
            executable(*arrays)
        assert executable.device.memory.statistics.held == held
        device = executable.device
        executable.unload()
        device.memory.trim()
        assert device.memory.statistics.in_use == 0 and recorder.memory.used == 0
        close(executable(*arrays), module, *arrays)


@pytest.mark.parametrize("text", [DIAMOND, LOOPS, RANDOM])
def test_programs_nobody_has_any_more_give_everything_back(text: str) -> None:
    module = parse(text)
    arrays = [np.ones(p.shape.dims, np.float32) for p in module.entry.parameters]
    with rehearsed() as recorder:
        d = device()
        d.load(helpers.RANDOM.encode(), "a module that stays")
        for n in range(3):
            executable = compile(module, recorder)
            executable.run(arrays)
            executable.run(arrays)
            del executable
            gc.collect()
            d.give_back()
            assert not d.later and d.memory.allocate(1)  # takes back what was freed
            assert d.memory.statistics.in_use == 256 * (n + 1)
            assert recorder.count("cuModuleUnload") + 1 == recorder.count("cuModuleLoadDataEx")
            assert recorder.count("cuGraphExecDestroy") == recorder.count("cuGraphInstantiateWithFlags")


def test_threads_share_a_program() -> None:
    from concurrent.futures import ThreadPoolExecutor

    module = parse(DIAMOND)
    pairs = [matrices(seed) for seed in range(6)]
    with rehearsed() as recorder:
        executable = compile(module, recorder)
        with ThreadPoolExecutor(3) as threads:
            for pair, got in zip(pairs, threads.map(lambda p: executable(*p), pairs), strict=True):
                close(got, module, *pair)


def test_threads_that_come_first_share_what_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver, the device and the program on it are made once, however many threads find nothing there."""
    from concurrent.futures import ThreadPoolExecutor

    for kind, name in ((Driver, "__init__"), (Device, "__init__"), (CudaExecutable, "_load")):
        whole = getattr(kind, name)

        def slow(*arguments: Any, whole: Callable[..., Any] = whole) -> Any:
            time.sleep(0.05)
            return whole(*arguments)

        monkeypatch.setattr(kind, name, slow)
    module, arrays = parse(DIAMOND), matrices()
    begin = threading.Barrier(4)
    with rehearsed() as recorder:
        executable = compile(module, recorder)

        def first(_: int) -> tuple[Driver, Device, Loaded]:
            begin.wait(10)
            return driver(), device(), executable.load()

        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(first, range(4)))
        assert all(len({id(x) for x in row}) == 1 for row in zip(*found, strict=True))
        assert found[0][1].driver is found[0][0] and found[0][2].device is found[0][1]
        close(executable(*arrays), module, *arrays)


def test_calls_in_branches_not_taken_are_made_before_they_are_captured() -> None:
    """A first call in a capture allocates, which ends the capture: the recorder holds that against a program."""
    module = parse(BRANCHES)
    (x,) = matrices(count=1, shape=(128, 128))
    with rehearsed() as recorder:
        executable = compile(module, recorder)
        for n in (0, 0, 1, 1):
            close(executable(np.int32(n), x / 16), module, np.int32(n), x / 16)
        assert recorder.count("cuGraphLaunch") and not executable.load().notes


def test_no_memory_for_first_calls_is_a_note() -> None:
    module = parse(BRANCHES)
    (x,) = matrices(count=1, shape=(128, 128))
    with rehearsed() as recorder:
        executable = compile(module, recorder)
        executable.load()
        allocate = executable.device.memory.allocate
        warm = []

        def scarce(size: int) -> int:
            if size == 3 * 4 * 128 * 128 or size == 2 * 4 * 128 * 128:
                warm.append(size)
                raise heron.HeronError("RUN043", "no memory")
            return allocate(size)

        executable.device.memory.allocate = scarce  # type: ignore[method-assign]
        close(executable(np.int32(0), x / 16), module, np.int32(0), x / 16)
        assert warm and any("no first call of" in note for note in executable.load().notes)


def test_factorisations_run_between_graphs() -> None:
    module = parse(FACTORS)
    x = np.eye(8, dtype=np.float32) * 4 + 0.1
    with rehearsed() as recorder:
        executable = compile(module, recorder)
        for _ in range(3):
            close(executable(x, np.int32(0)), module, x, np.int32(0))
        assert "stream: " in executable.stage("graph")

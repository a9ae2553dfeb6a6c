"""Failures of programs on several rehearsed GPUs: each is told with its place, and the next run is right."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import heron
from heron.errors import HeronError
from heron.evaluator import evaluate_devices
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.runtime.collectives.current import device_number
from heron.runtime.cuda.device import device
from heron.runtime.cuda.devices import CudaDevices
from heron.runtime.cuda.nccl import team
from heron.runtime.cuda.nccl.cliques import Cliques
from heron.runtime.host.callbacks import Filed
from heron.targets import libnccl
from tests.rehearsal.compiling import compile_devices
from tests.rehearsal.nccl import Nccl, rehearsed_devices
from tests.runtime.collectives.test_exchange import inputs_of, module_of, reducer
from tests.runtime.collectives.test_failures import ALL, HEAD, divergent, rows

#: a collective of each kind of call
EVERY = """x = f32[8] parameter(0)
    e = f32[8] negate(x)
    a = f32[8] all-reduce(e), ALL, to_apply=f
    s = f32[2] reduce-scatter(a), ALL, dimensions={0}, to_apply=f
    g = f32[8] all-gather(s), ALL, dimensions={0}
    b = f32[8] collective-broadcast(g), channel_id=1, replica_groups={{2,1},{0,3}}
    p = f32[8] collective-permute(b), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
    ROOT r = f32[8] add(p, a)"""
CALLS = sorted(set(libnccl.FUNCTIONS) - libnccl.STRINGS - {"ncclGetVersion", "ncclCommDestroy"})
#: those that a launch makes only when it has failed, or hangs
LATE = {"ncclCommAbort", "ncclCommGetAsyncError"}


def every() -> Module:
    return module_of(EVERY, reducer("f32"))


def right(program: CudaDevices, module: Module) -> None:
    """It gives the right values, on streams or not."""
    inputs = inputs_of(module)
    for got, want in zip(program.run_devices(inputs), evaluate_devices(module, inputs), strict=True):
        assert all(np.array_equal(g, w) for g, w in zip(got, want, strict=True))


@pytest.fixture(scope="module", autouse=True)
def quick() -> Any:
    """Threads that never come back are given up sooner."""
    before, team.PATIENCE = team.PATIENCE, 2.0
    yield
    team.PATIENCE = before


@pytest.mark.parametrize("name", [c for c in CALLS if c not in LATE])
def test_each_call_fails_once(name: str) -> None:
    """In the first run the error has NCCL's words, the collective and the device; a capture that fails is a note."""
    module = every()
    with rehearsed_devices(4) as nccl:
        program = compile_devices(module, nccl.recorder)
        nccl.fail[name] = (2, 0)
        if name.startswith("ncclGroup"):
            program = _pairs(nccl)
            module = _PAIRS
        with pytest.raises(HeronError, match="RUN095") as error:
            program.run_devices(inputs_of(module))
        message = str(error.value)
        assert f"NCCL's {name} failed" in message and "ncclSystemError: rehearsed words" in message
        where = {"ncclGetUniqueId": "communicator", "ncclCommInitRank": "joins the communicator of devices"}
        assert where.get(name, "' on device ") in message
        right(program, module)
        right(program, module)
        assert nccl.recorder.count("cuGraphLaunch")


#: calls in a group
_PAIRS = module_of("""x = f32[8] parameter(0)
    e = f32[8] negate(x)
    ROOT r = f32[8] all-to-all(e), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}""")


def _pairs(nccl: Nccl) -> CudaDevices:
    return compile_devices(_PAIRS, nccl.recorder)


@pytest.mark.parametrize("name", ["ncclAllReduce", "cuStreamBeginCapture_v2", "cuGraphInstantiateWithFlags"])
def test_a_graph_that_is_refused_is_run_on_streams(name: str) -> None:
    module = every()
    with rehearsed_devices(4) as nccl:
        program = compile_devices(module, nccl.recorder)
        right(program, module)
        (nccl if name.startswith("nccl") else nccl.recorder).fail[name] = (5, 0)
        right(program, module)
        assert sum("no graph of" in note for note in program.trace.notes) == 1
        right(program, module)


@pytest.mark.parametrize("call", ["cuLaunchKernelEx", "cuMemcpyHtoDAsync_v2", "cuMemHostAlloc"])
def test_a_call_of_the_driver_fails_on_one_device(call: str) -> None:
    module = every()
    with rehearsed_devices(4) as nccl:
        program = compile_devices(module, nccl.recorder)
        nccl.recorder.fail[call] = (1, 2)
        with pytest.raises(HeronError, match="RUN042"):
            program.run_devices(inputs_of(module))
        right(program, module)
        right(program, module)


def test_a_kernel_faults_on_one_device() -> None:
    module = every()
    with rehearsed_devices(4) as nccl:
        program = compile_devices(module, nccl.recorder)
        right(program, module)
        kernel = next(iter(program.program.kernels))
        nccl.recorder.faults.add(kernel)
        with pytest.raises(HeronError, match="RUN044") as error:
            program.run_devices(inputs_of(module))
        assert "CUDA_ERROR_ILLEGAL_ADDRESS" in str(error.value)
        nccl.recorder.faults.clear()
        right(program, module)
        right(program, module)


def test_devices_that_wait_for_one_that_has_ended() -> None:
    module = divergent(f"ROOT a = f32[3] all-reduce(x), {ALL.format(1)}", "ROOT n = f32[3] negate(x)")
    with rehearsed_devices(4) as nccl:
        program = compile_devices(module, nccl.recorder)
        before = time.monotonic()
        with pytest.raises(HeronError, match="RUN087") as error:
            program.run_devices(rows(0, 0, 0, 1))
        assert time.monotonic() - before < 20  # at once, not when a limit ends
        why = error.value.why or ""
        assert error.value.what == "3 of 4 devices wait for each other forever"
        assert "device 0 waits at all-reduce" in why and "device 3 has ended" in why
        assert (program.run_devices(rows(0, 0, 0, 0))[2][0] == 4).all()


def test_devices_at_different_collectives() -> None:
    gather = "g = f32[12] all-gather(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, "
    gather += "dimensions={0} ROOT s = f32[3] slice(g), slice={[0:3]}"
    module = divergent(f"ROOT a = f32[3] all-reduce(x), {ALL.format(1)}", gather)
    with rehearsed_devices(4) as nccl:
        program = compile_devices(module, nccl.recorder, options=Options(device_timeout=1))
        with pytest.raises(HeronError, match="RUN087") as error:
            program.run_devices(rows(0, 1, 1, 0))
        why = error.value.why or ""
        assert "different collectives" in error.value.what and "at all-reduce" in why and "at all-gather" in why
        assert nccl.noted and (program.run_devices(rows(0, 0, 0, 0))[2][0] == 4).all()


def waiting(nccl: Nccl, held: threading.Event, timeout: int) -> CudaDevices:
    """A program in which device 1 does nothing until the event is set, and others wait for it."""

    def function(x: np.ndarray) -> tuple[np.ndarray]:
        if device_number() == 1:
            held.wait(60)
        return (x,)

    filed = Filed(function)
    _KEPT.append(filed)
    text = f"""{HEAD}ENTRY main {{
      x = f32[3] parameter(0)
      y = f32[3] custom-call(x), custom_call_target="xla_ffi_python_cpu_callback",
        api_version=API_VERSION_TYPED_FFI, custom_call_has_side_effect=true,
        backend_config="{{index = {filed.number} : i64}}"
      ROOT a = f32[3] all-reduce(y), {ALL.format(1)}
    }}"""
    return compile_devices(heron.parse(text), nccl.recorder, options=Options(device_timeout=timeout))


_KEPT: list[Filed] = []
X = [[np.ones(3, np.float32)]] * 4


def while_it_hangs(nccl: Nccl, timeout: int, meanwhile: Callable[[], None] = lambda: None) -> HeronError:
    """The error of a launch in which a device does not come; afterwards all is well."""
    held = threading.Event()
    program = waiting(nccl, held, timeout)

    def release() -> None:
        while nccl.count("ncclAllReduce") < 3:
            time.sleep(0.01)
        meanwhile()
        while not any("Abort" in text for _, text in nccl.calls):
            time.sleep(0.01)
        held.set()

    thread = threading.Thread(target=release, daemon=True)
    thread.start()
    with pytest.raises(HeronError) as error:
        program.run_devices(X)
    thread.join(10)
    assert (program.run_devices(X)[3][0] == 4).all()
    return error.value


def test_a_device_that_comes_too_late() -> None:
    with rehearsed_devices(4) as nccl:
        error = while_it_hangs(nccl, 1)
    assert error.code == "RUN088" and "device 0 waits at all-reduce" in (error.why or "")
    assert "device 1 computes" in (error.why or "")


@pytest.mark.parametrize("by_call", [False, True])
def test_an_error_that_nccl_reports_later(by_call: bool) -> None:
    with rehearsed_devices(4) as nccl:

        def report() -> None:
            if by_call:
                nccl.fail["ncclCommGetAsyncError"] = (6, 1)
            else:
                next(iter(nccl.comms.values())).error = 6

        error = while_it_hangs(nccl, 600, report)
    assert error.code == "RUN095" and "in the communicator of devices 0, 1, 2, 3" in str(error)
    assert "ncclRemoteError" in str(error)


def test_communicators_that_not_all_join() -> None:
    with rehearsed_devices(4) as nccl:
        program = compile_devices(every(), nccl.recorder, options=Options(device_timeout=1))
        gone = nccl.ncclCommInitRank
        holds = threading.Event()

        def never(out: Any, size: int, of: Any, rank: int) -> int:
            if rank == 2:
                holds.wait(30)
            return gone(out, size, of, rank)

        nccl.ncclCommInitRank = never
        with pytest.raises(HeronError, match="RUN088") as error:
            program.run_devices(inputs_of(every()))
        assert "devices 0, 1, 2, 3" in (error.value.why or "") and "join a communicator" in error.value.what
        nccl.ncclCommInitRank = gone
        right(program, every())
        holds.set()


def test_nccl_that_will_not_do() -> None:
    module = every()
    for how, code, says in (
        ({"version": 21005}, "RUN093", "it is 2.10.5; heron needs 2.18.0"),
        ({"version": 2708}, "RUN093", "it is 2.7.8"),
        ({"lacks": ("ncclCommAbort",)}, "RUN093", "it lacks ncclCommAbort"),
    ):
        with rehearsed_devices(4, **how) as nccl:
            program = compile_devices(module, nccl.recorder)
            with pytest.raises(HeronError, match=code) as error:
                program.run_devices(inputs_of(module))
            assert says in str(error.value) and not nccl.recorder.launched
    with rehearsed_devices(4) as nccl, libnccl.use("libnccl.so.2: cannot open shared object file"):
        program = compile_devices(module, nccl.recorder)
        with pytest.raises(HeronError, match="RUN090") as error:
            program.run_devices(inputs_of(module))
        assert "cannot open" in str(error.value) and "heron[nccl]" in str(error.value)


def test_too_few_gpus() -> None:
    with rehearsed_devices(2) as nccl:
        program = compile_devices(every(), nccl.recorder)
        with pytest.raises(HeronError, match="RUN089") as error:
            program.run_devices(inputs_of(every()))
        assert "4 devices of the program need as many GPUs, this process has 2" in str(error.value)


def test_two_ranks_on_one_gpu() -> None:
    """NCCL refuses it; whoever has got that far is told."""
    with rehearsed_devices(4) as nccl:
        program = compile_devices(every(), nccl.recorder)
        program.run_devices(inputs_of(every()))
        (made,) = program._teams.values()
        for one in made.each:
            one.gpu = device(0)
        made.cliques = Cliques(made.cliques.nccl, {one.place.number: one.gpu for one in made.each})
        with pytest.raises(HeronError, match="RUN095") as error:
            program.run_devices(inputs_of(every()))
        assert "ncclInvalidUsage" in str(error.value) and "two ranks on one GPU" in str(error.value)


def test_a_reduction_that_nothing_does() -> None:
    """Groups of several sizes cannot be gathered into one array."""
    body = "x = f32[3] parameter(0) ROOT r = f32[3] all-reduce(x), channel_id=1, "
    body += "replica_groups={{0,1,2},{3}}, use_global_device_ids=true, to_apply=f"
    with pytest.raises(HeronError, match="GEN012") as error:
        heron.compile(module_of(body, reducer("f32", "maximum")), "sm_90")
    assert "it does not combine f32 by maximum" in str(error.value)
    with rehearsed_devices(4) as nccl:
        module = module_of(body, reducer("f32"))
        right(compile_devices(module, nccl.recorder), module)


def test_who_comes_late_does_not_join_what_is_aborted() -> None:
    module = every()
    with rehearsed_devices(4) as nccl:
        program = compile_devices(module, nccl.recorder)
        right(program, module)
        cliques = next(iter(program._teams.values())).cliques
        kept = list(cliques._kept.values())
        cliques.abort(kept)
        with pytest.raises(HeronError, match="it was aborted"):
            cliques.join(kept[0], kept[0].members[0])
        right(program, module)

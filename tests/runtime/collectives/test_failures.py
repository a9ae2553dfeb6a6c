"""Devices that fail, go different ways or never come: an error that names them, and the next launch works."""

from __future__ import annotations

import pathlib
import threading
import time

import numpy as np
import pytest

import heron
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.runtime.collectives.current import device_number
from heron.runtime.executable import Executable
from heron.runtime.host.callbacks import Filed
from tests.runtime.collectives.stress import compiled, stress

ADD = "f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
ALL = "channel_id={}, replica_groups={{{{0,1,2,3}}}}, use_global_device_ids=true, to_apply=f"
HEAD = "HloModule m, num_partitions=4\n" + ADD


def divergent(yes: str, no: str) -> Module:
    """Device 0 takes one branch, the others the other one."""
    return heron.parse(f"""{HEAD}
    yes {{ x = f32[3] parameter(0) {yes} }}
    no {{ x = f32[3] parameter(0) {no} }}
    ENTRY main {{
      x = f32[3] parameter(0)
      c = s32[] parameter(1)
      ROOT r = f32[3] conditional(c, x, x), branch_computations={{yes, no}}
    }}""")


def rows(*choices: int) -> list[list[np.ndarray]]:
    return [[np.ones(3, np.float32), np.array(c, np.int32)] for c in choices]


def test_devices_that_wait_forever() -> None:
    program = heron.compile(divergent(f"ROOT a = f32[3] all-reduce(x), {ALL.format(1)}", "ROOT n = f32[3] negate(x)"))
    before = time.monotonic()
    with pytest.raises(HeronError, match="RUN087") as error:
        program.run_devices(rows(0, 0, 0, 1))
    assert time.monotonic() - before < 5
    assert error.value.what == "3 of 4 devices wait for each other forever"
    assert "device 0 waits at all-reduce 'a" in (error.value.why or "") and "device 3 has ended" in (
        error.value.why or ""
    )
    assert (program.run_devices(rows(0, 0, 0, 0))[2][0] == 4).all()


def test_devices_at_different_collectives() -> None:
    gather = "g = f32[12] all-gather(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, "
    gather += "dimensions={0} ROOT s = f32[3] slice(g), slice={[0:3]}"
    program = heron.compile(divergent(f"ROOT a = f32[3] all-reduce(x), {ALL.format(1)}", gather))
    with pytest.raises(HeronError, match="RUN087") as error:
        program.run_devices(rows(0, 1, 1, 0))
    why = error.value.why or ""
    assert "different collectives" in error.value.what and "at all-reduce 'a" in why and "at all-gather 'g" in why
    assert (program.run_devices(rows(0, 0, 0, 0))[2][0] == 4).all()


def calling(filed: Filed, timeout: int = 600) -> Executable:
    """A program that calls a Python function on each device, and then adds up what it gives."""
    text = f"""{HEAD}ENTRY main {{
      x = f32[3] parameter(0)
      y = f32[3] custom-call(x), custom_call_target="xla_ffi_python_cpu_callback",
        api_version=API_VERSION_TYPED_FFI, custom_call_has_side_effect=true,
        backend_config="{{index = {filed.number} : i64}}"
      ROOT a = f32[3] all-reduce(y), {ALL.format(1)}
    }}"""
    return heron.compile(heron.parse(text), options=heron.Options(device_timeout=timeout))


X = [[np.ones(3, np.float32)]] * 4


def test_functions_of_python_on_each_device() -> None:
    filed = Filed(lambda x: (x * 10.0 ** device_number(),))
    assert (calling(filed).run_devices(X)[0][0] == 1111).all()


def test_a_function_that_fails_on_one_device() -> None:
    fails = [True]

    def function(x: np.ndarray) -> tuple[np.ndarray]:
        if fails[0] and device_number() == 2:
            raise ValueError("on device 2")
        return (x,)

    filed = Filed(function)
    program = calling(filed)
    for _ in range(2):
        before = time.monotonic()
        with pytest.raises(ValueError, match="on device 2"):
            program.run_devices(X)
        assert time.monotonic() - before < 5
    fails[0] = False
    assert (program.run_devices(X)[3][0] == 4).all()


def test_a_device_that_comes_too_late() -> None:
    waits = [True]

    def function(x: np.ndarray) -> tuple[np.ndarray]:
        if waits[0] and device_number() == 1:
            time.sleep(2)
        return (x,)

    filed = Filed(function)
    program = calling(filed, timeout=1)
    with pytest.raises(HeronError, match="RUN088") as error:
        program.run_devices(X)
    why = error.value.why or ""
    assert "device 0 waits at all-reduce 'a" in why and "device 1 computes" in why
    waits[0] = False
    assert (program.run_devices(X)[3][0] == 4).all()


def test_launches_side_by_side() -> None:
    program = heron.compile(heron.parse(f"{HEAD}ENTRY main {{ x = f32[3] parameter(0) ROOT a = f32[3] all-reduce(x), "
                                        f"{ALL.format(1)} }}"))  # fmt: skip
    found: list[float] = []

    def launch(k: int) -> None:
        for _ in range(20):
            outputs = program.run_devices([[np.full(3, k, np.float32)]] * 4)
            found.append(float(outputs[3][0][2]) / k)

    threads = [threading.Thread(target=launch, args=(k,)) for k in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [4.0] * 60


def test_no_threads_are_left_over() -> None:
    program = heron.compile(heron.parse(f"{HEAD}ENTRY main {{ x = f32[3] parameter(0) ROOT a = f32[3] all-reduce(x), "
                                        f"{ALL.format(1)} }}"))  # fmt: skip

    def count() -> int:
        return sum(1 for _ in pathlib.Path("/proc/self/task").iterdir())

    program.run_devices(X)
    before = count()
    for _ in range(30):
        program.run_devices(X)
    assert count() == before


def test_many_launches() -> None:
    assert stress([compiled(1), compiled(2)], launches=6, callers=2) == 12


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("header", ["replica_count=4294967296", "replica_count=65536, num_partitions=65536"])
def test_more_devices_than_a_process_runs_are_refused(header: str, target: str) -> None:
    module = heron.parse(f"HloModule m, {header}\nENTRY e {{ x = f32[3] parameter(0) ROOT r = f32[3] negate(x) }}")
    with pytest.raises(HeronError, match="RUN089"):
        heron.compile(module, target=target)(np.ones(3, np.float32))

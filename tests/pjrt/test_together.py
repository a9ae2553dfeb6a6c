"""Programs whose devices work together: launches, their order, donation and errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from heron import HeronError, pjrt
from heron.hlo.ir import types

SUM = """HloModule sum, num_partitions=4
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[3]{0} parameter(0)
  i = u32[] partition-id()
  n = s32[] convert(i)
  y = f32[3]{0} all-reduce(x), replica_groups={{0,1,2,3}}, channel_id=1, use_global_device_ids=true, to_apply=add
  ROOT t = (f32[3]{0}, s32[]) tuple(y, n) }
"""
DONATES = SUM.replace("num_partitions=4", "num_partitions=4, input_output_alias={ {0}: (0, {}, may-alias) }")


@pytest.fixture(scope="module")
def client() -> pjrt.Client:
    return pjrt.Client("cpu", devices=8)


#: called with a launch's arguments, and whether they are donated
Hook = Callable[[list[list[np.ndarray]], bool], None]


def loaded(
    client: pjrt.Client, text: str = SUM, devices: Sequence[int] = (), hook: Hook | None = None
) -> pjrt.LoadedExecutable:
    """A program for four devices."""
    assignment = (tuple(devices),) * bool(devices)
    program = client.compile(text, pjrt.CompileOptions(num_partitions=4, device_assignment=assignment))
    run = program.program.run_devices

    def run_devices(arguments: list[list[np.ndarray]], *, donate: bool = False) -> list[list[np.ndarray]]:
        if hook is not None:
            hook(arguments, donate)
        return run(arguments, donate=donate)

    program.program.run_devices = run_devices  # type: ignore[method-assign]
    return program


def rows(client: pjrt.Client, devices: Sequence[int] = range(4)) -> list[list[pjrt.Buffer]]:
    return [[client.buffer_from_host(np.full(3, n + 1, np.float32), client.devices[d])] for n, d in enumerate(devices)]


def test_one_launch_over_all_devices(client: pjrt.Client) -> None:
    program = loaded(client)
    assert program.about.together and program.num_partitions == 4
    outputs, events = program.execute_sharded(rows(client))
    for event in events:
        event.await_()
    assert [(np.asarray(y).tolist(), int(np.asarray(n))) for y, n in outputs] == [([10] * 3, k) for k in range(4)]
    assert [row[0].device.id for row in outputs] == [0, 1, 2, 3]


def test_other_devices_in_another_order(client: pjrt.Client) -> None:
    """What a program calls partition 0 is the first device of the assignment."""
    devices = (7, 2, 5, 4)
    program = loaded(client, devices=devices)
    outputs, _ = program.execute_sharded(rows(client, devices))
    assert [(row[0].device.id, int(np.asarray(row[1]))) for row in outputs] == [(7, 0), (2, 1), (5, 2), (4, 3)]


def test_launches_run_in_the_order_of_the_calls(client: pjrt.Client) -> None:
    """Whatever their arguments wait for: another process makes the same calls, and would wait for ever."""
    seen: list[float] = []
    program = loaded(client, hook=lambda given, _: seen.append(float(given[0][0][0])))
    late = client.pending(types.F32, (3,))
    first = rows(client)
    first[0] = [late]
    one, _ = program.execute_sharded(first)
    two, events = program.execute_sharded(rows(client))
    assert not any(e.is_ready for e in events) and seen == []
    late.fulfil(np.full(3, 5, np.float32))
    assert np.asarray(two[3][0])[0] == 10 and np.asarray(one[3][0])[0] == 14
    assert seen == [5, 1]


def test_an_error_is_that_of_all_devices(client: pjrt.Client) -> None:
    program = loaded(client)
    late = client.pending(types.F32, (3,))
    given = rows(client)
    given[2] = [late]
    outputs, events = program.execute_sharded(given)
    late.fail(ValueError("no data"))
    for row, event in zip(outputs, events, strict=True):
        event.wait()
        assert isinstance(event.error, ValueError)
        with pytest.raises(ValueError, match="no data"):
            row[0].to_host()
    again, _ = program.execute_sharded(rows(client))  # and the next launch is well
    assert np.asarray(again[0][0])[0] == 10


def test_donation(client: pjrt.Client) -> None:
    donated: list[bool] = []
    program = loaded(client, DONATES, hook=lambda _, donate: donated.append(donate))
    given = rows(client)
    program.execute_sharded(given)[1][0].await_()
    assert all(row[0].deleted for row in given)
    given = rows(client)
    program.execute_sharded(given, pjrt.ExecuteOptions(non_donatable=frozenset({0})))[1][0].await_()
    assert not any(row[0].deleted for row in given)
    assert donated == [True, False]


def test_arguments_for_other_devices(client: pjrt.Client) -> None:
    program = loaded(client)
    with pytest.raises(HeronError, match="PJRT007.*4 devices, arguments are for 1"):
        program.execute(rows(client)[0])
    program.delete()
    with pytest.raises(HeronError, match="PJRT008"):
        program.execute_sharded(rows(client))


def test_a_program_of_several_devices_compiled_for_one(client: pjrt.Client) -> None:
    with pytest.raises(HeronError, match="(?s)PJRT013.*num_partitions=4"):
        client.compile(SUM)


def test_callers_may_come_from_several_threads(client: pjrt.Client) -> None:
    results: list[float] = []
    under_way = 0

    def alone(_: object, __: bool) -> None:
        nonlocal under_way
        under_way += 1
        assert under_way == 1
        time.sleep(0.001)
        under_way -= 1

    program = loaded(client, hook=alone)
    assert program.is_small  # callers run it themselves, where none is under way

    def call() -> None:
        for _ in range(5):
            results.append(float(np.asarray(program.execute_sharded(rows(client))[0][1][0])[0]))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert results == [10] * 20


REPEATS = """HloModule repeats, num_partitions=4
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
body { s = f32[3]{0} parameter(0)
  ROOT y = f32[3]{0} all-reduce(s), replica_groups={{0,1,2,3}}, channel_id=1, use_global_device_ids=true, to_apply=add }
condition { s = f32[3]{0} parameter(0)
  most = f32[] constant(1e6)
  e = f32[1]{0} slice(s), slice={[0:1]}
  first = f32[] reshape(e)
  ROOT c = pred[] compare(first, most), direction=LT }
ENTRY e { x = f32[3]{0} parameter(0)
  ROOT w = f32[3]{0} while(x), condition=condition, body=body }
"""


def test_a_loop_of_unknown_length_is_no_small_program(client: pjrt.Client) -> None:
    """Devices that took turns on the calling thread would leave all other processors idle for as long as it runs."""
    assert loaded(client).runs_at_once
    program = loaded(client, REPEATS)
    assert not program.runs_at_once
    results = program.program.run_devices([[np.ones(3, np.float32)]] * 4)
    assert all(r[0].tolist() == [4.0**10] * 3 for r in results)

"""The client in Python: buffers, programs, events, errors."""

from __future__ import annotations

import doctest
import gc
import importlib
import threading

import numpy as np
import pytest

from heron import HeronError, pjrt
from heron.hlo.ir import types
from heron.hlo.text import parse
from heron.pjrt.event import Event, all_of

ADD = """HloModule add
ENTRY e {
  x = f32[4]{0} parameter(0)
  y = f32[4]{0} parameter(1)
  ROOT z = f32[4]{0} add(x, y)
}
"""
LOOP = """HloModule loop
body { p = (s32[], f32[1000]{0}) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  x = f32[1000]{0} get-tuple-element(p), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
  y = f32[1000]{0} sine(x)
  ROOT t = (s32[], f32[1000]{0}) tuple(m, y) }
cond { p = (s32[], f32[1000]{0}) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  k = s32[] constant(2000)
  ROOT l = pred[] compare(n, k), direction=LT }
ENTRY e { x = f32[1000]{0} parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[1000]{0}) tuple(zero, x)
  w = (s32[], f32[1000]{0}) while(t), condition=cond, body=body
  ROOT r = f32[1000]{0} get-tuple-element(w), index=1 }
"""
DONATES = """HloModule d, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e { x = f32[4]{0} parameter(0)
  ROOT y = f32[4]{0} negate(x) }
"""


@pytest.fixture(scope="module")
def client() -> pjrt.Client:
    return pjrt.Client("cpu", devices=2)


@pytest.fixture
def x(client: pjrt.Client) -> pjrt.Buffer:
    return client.buffer_from_host(np.arange(4, dtype=np.float32))


@pytest.mark.parametrize("name", ["", ".event", ".device", ".buffer", ".compile_options", ".client", ".loaded"])
def test_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"heron.pjrt{name}")).failed == 0


def test_runs(client: pjrt.Client, x: pjrt.Buffer) -> None:
    [z] = client.compile(ADD).execute([x, x])
    np.testing.assert_array_equal(z.to_host(), [0, 2, 4, 6])


def test_each_device_runs_a_replicated_program(client: pjrt.Client) -> None:
    program = client.compile(ADD, pjrt.CompileOptions(num_replicas=2))
    rows = [[client.buffer_from_host(np.full(4, n, np.float32), d)] * 2 for n, d in enumerate(client.devices)]
    outputs, events = program.execute_sharded(rows)
    for e in events:
        e.await_()
    assert [np.asarray(row[0])[0] for row in outputs] == [0, 2]
    assert [row[0].device.id for row in outputs] == [0, 1]


def test_long_programs_run_behind_the_caller(client: pjrt.Client) -> None:
    program = client.compile(LOOP)
    start = client.buffer_from_host(np.ones(1000, np.float32))
    [y] = program.execute([start])
    [z] = program.execute([y])  # y need not be there yet
    start.delete()  # nor need its argument
    expected = np.ones(1000)
    for _ in range(4000):
        expected = np.sin(expected)
    np.testing.assert_allclose(z.to_host(), expected, rtol=1e-3)


def test_errors_travel_with_what_depends_on_them(client: pjrt.Client) -> None:
    program = client.compile(ADD)
    b = client.pending(types.F32, (4,))
    [z] = program.execute([b, b])
    [w] = program.execute([z, z])
    b.fail(ValueError("no data"))
    with pytest.raises(ValueError, match="no data"):
        w.to_host()


def test_donated_arguments_are_gone(client: pjrt.Client, x: pjrt.Buffer) -> None:
    program = client.compile(DONATES)
    keep = pjrt.ExecuteOptions(non_donatable=frozenset({0}))
    np.testing.assert_array_equal(program.execute([x], keep)[0].to_host(), [0, -1, -2, -3])
    assert not x.deleted
    np.testing.assert_array_equal(program.execute([x])[0].to_host(), [0, -1, -2, -3])
    assert x.deleted
    with pytest.raises(HeronError, match="PJRT004"):
        program.execute([x])


def test_a_shared_array_is_not_written_when_donated(client: pjrt.Client) -> None:
    array = np.arange(4, dtype=np.float32)
    b = client.buffer_from_host(array, share=True)
    client.compile(DONATES).execute([b])[0].to_host()
    np.testing.assert_array_equal(array, [0, 1, 2, 3])


def test_a_view_tells_when_it_is_over(client: pjrt.Client) -> None:
    array, over = np.arange(6, dtype=np.int32), threading.Event()
    b = client.view(array.ctypes.data, types.S32, (2, 3), on_delete=over.set)
    np.testing.assert_array_equal(b.to_host(), array.reshape(2, 3))
    assert not over.is_set()
    del b
    gc.collect()
    assert over.is_set()


def test_dlpack(x: pjrt.Buffer) -> None:
    shared = np.from_dlpack(x)
    assert shared.ctypes.data == x.pointer


def test_wrong_arguments(client: pjrt.Client, x: pjrt.Buffer) -> None:
    program = client.compile(ADD)
    with pytest.raises(HeronError, match="PJRT007"):
        program.execute([x])
    with pytest.raises(HeronError, match=r"s32\[2\].*f32\[4\]"):
        program.execute([x, client.buffer_from_host(np.zeros(2, np.int32))])
    program.delete()
    with pytest.raises(HeronError, match="PJRT008"):
        program.execute([x, x])


def test_serialised_programs_come_back(client: pjrt.Client, x: pjrt.Buffer) -> None:
    program = client.compile(ADD, pjrt.CompileOptions(overrides={"heron_threads": 1}))
    data = program.serialize()
    again = client.deserialize(data)
    assert again.compile_options == program.compile_options and again.fingerprint == program.fingerprint
    np.testing.assert_array_equal(again.execute([x, x])[0].to_host(), [0, 2, 4, 6])
    with pytest.raises(HeronError, match="PJRT009"):
        client.deserialize(data[3:])


def test_machine_code_comes_back_without_a_compile(
    client: pjrt.Client, x: pjrt.Buffer, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = client.compile(DONATES)
    data = program.serialize()
    compiled: list[object] = []
    compile_it = pjrt.Client.compile
    monkeypatch.setattr(pjrt.Client, "compile", lambda *a: compiled.append(a) or compile_it(*a))
    again = client.deserialize(data)
    assert again.serialize() == data and again.fingerprint == program.fingerprint
    assert str(again.module) == str(program.module)
    assert again.cost_analysis() == program.cost_analysis() and again.program.memory == program.program.memory
    np.testing.assert_array_equal(again.execute([x])[0].to_host(), [0, -1, -2, -3])
    assert x.deleted and not compiled


def test_machine_code_that_does_not_fit_is_made_anew(
    client: pjrt.Client, x: pjrt.Buffer, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = client.compile(ADD)
    data = program.serialize()
    other = client.deserialize(data, pjrt.CompileOptions(overrides={"heron_math": "fast"}))
    assert other.serialize() != data and other.compile_options.options().math == "fast"
    monkeypatch.setattr("heron.pjrt.serialized._sources", lambda: "of another version")
    again = client.deserialize(data)
    assert again.serialize() != data and again.fingerprint == program.fingerprint != other.fingerprint
    np.testing.assert_array_equal(again.execute([x, x])[0].to_host(), [0, 2, 4, 6])


def test_fingerprints(client: pjrt.Client) -> None:
    """The same for the same program, as text or bytes; the same for the same module."""
    text, module = client.compile(ADD), client.compile(parse(ADD))
    assert text.fingerprint == client.compile(ADD.encode()).fingerprint == client.compile(ADD).fingerprint
    assert module.fingerprint == client.compile(parse(ADD)).fingerprint
    others = [client.compile(DONATES), client.compile(parse(DONATES))]
    others += [client.compile(p, pjrt.CompileOptions(overrides={"heron_threads": 1})) for p in (ADD, parse(ADD))]
    assert len({p.fingerprint for p in (text, module, *others)}) == 6


def test_devices_work_together(client: pjrt.Client) -> None:
    text = """HloModule m, replica_count=2
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e { x = f32[4]{0} parameter(0)
  ROOT y = f32[4]{0} all-reduce(x), replica_groups={{0,1}}, to_apply=add }
"""
    program = client.compile(text, pjrt.CompileOptions(num_replicas=2))
    rows = [[client.buffer_from_host(np.full(4, n + 1, np.float32), d)] for n, d in enumerate(client.devices)]
    for [y], device in zip(program.execute_sharded(rows)[0], client.devices, strict=True):
        assert y.to_host().tolist() == [3] * 4 and y.device is device


@pytest.mark.parametrize(("target", "code"), [("sm_90", "PJRT010"), ("cuda", "PJRT010"), ("nonsense", "TGT001")])
def test_targets_nothing_runs_on(target: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heron.targets.cuda.capability", lambda ordinal=0: None)
    with pytest.raises(HeronError, match=code):
        pjrt.Client(target)


def test_memory_is_counted() -> None:
    client = pjrt.Client()
    stats = client.devices[0].memory_stats
    b = client.buffer_from_host(np.zeros(1000, np.float32))
    assert (stats.bytes_in_use, stats.largest_alloc_size) == (4000, 4000)
    b.delete()
    assert (stats.bytes_in_use, stats.peak_bytes_in_use) == (0, 4000)


def test_cost_and_memory(client: pjrt.Client) -> None:
    program = client.compile(ADD)
    assert program.cost_analysis()["flops"] == 4
    assert program.program.memory.arguments == 32


def test_all_of_waits_for_the_last_and_keeps_the_first_error() -> None:
    a, b = Event(), Event()
    both = all_of([a, b, Event.done()])
    b.set(ValueError("b"))
    assert not both.is_ready
    a.set(KeyError("a"))
    assert isinstance(both.error, KeyError)


def test_the_simulated_gpu(x: pjrt.Buffer) -> None:
    client = pjrt.Client("sim:sm_90")
    b = client.buffer_from_host(np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(client.compile(ADD).execute([b, b])[0].to_host(), [0, 2, 4, 6])

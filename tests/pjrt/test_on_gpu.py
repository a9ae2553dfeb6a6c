"""The client on an NVIDIA GPU, rehearsed: buffers lie there, programs are enqueued, the device's thread waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import heron
from heron import HeronError, pjrt
from heron.hlo.ir import types
from heron.pjrt import shardings
from tests.pjrt.test_client import ADD, DONATES
from tests.pjrt.under_jax import run
from tests.rehearsal.compiling import learn, rehearsed
from tests.rehearsal.driver import Recorder
from tests.rehearsal.nccl import rehearsed_devices

X = np.arange(4, dtype=np.float32)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    with rehearsed() as made:
        yield made


@pytest.fixture
def client(recorder: Recorder) -> Iterator[pjrt.Client]:
    made = pjrt.Client("cuda")
    yield made
    made.close()


def _compile(client: pjrt.Client, recorder: Recorder, text: str) -> pjrt.LoadedExecutable:
    made: Any = client.compile(text)
    learn(made.program, made.source, recorder, heron.Options())
    return made


def test_a_buffer_lies_on_the_gpu(client: pjrt.Client, recorder: Recorder) -> None:
    b = client.buffer_from_host(X, share=True)
    assert recorder.count("cuMemcpyHtoDAsync_v2") == 1 and recorder.memory.room(b.pointer) >= X.nbytes
    np.testing.assert_array_equal(b.to_host(), X)
    host = b.copy_to(client.devices[0].memories[1])
    back = host.copy_to(client.devices[0].default_memory)
    assert host.memory.kind == "pinned_host" and host.held().ctypes.data == host.pointer
    np.testing.assert_array_equal(back.to_host(), X)
    assert back.pointer != b.pointer


def test_a_program_takes_and_gives_arrays_of_the_gpu(client: pjrt.Client, recorder: Recorder) -> None:
    program = _compile(client, recorder, ADD)
    b = client.buffer_from_host(X)
    [y] = program.execute([b, b])
    [z] = program.execute([y, b])
    z.ready.await_()
    assert recorder.count("cuMemcpyDtoHAsync_v2") == 0
    np.testing.assert_array_equal(z.to_host(), 3 * X)
    host = client.buffer_from_host(X, client.devices[0].memories[1])
    np.testing.assert_array_equal(program.execute([host, b])[0].to_host(), 2 * X)


def test_what_is_not_there_yet_is_waited_for(client: pjrt.Client, recorder: Recorder) -> None:
    program = _compile(client, recorder, ADD)
    late, never = client.pending(types.F32, (4,)), client.pending(types.F32, (4,))
    [y] = program.execute([late, late])
    [z] = program.execute([y, y])
    [w] = program.execute([never, y])
    late.fulfil(X)
    np.testing.assert_array_equal(z.to_host(), 4 * X)
    never.fail(ValueError("no data"))
    with pytest.raises(ValueError, match="no data"):
        w.to_host()


def test_donated_arrays_are_the_programs(client: pjrt.Client, recorder: Recorder) -> None:
    program = _compile(client, recorder, DONATES)
    b = client.buffer_from_host(X)
    where = b.pointer
    [kept] = program.execute([b], pjrt.ExecuteOptions(non_donatable=frozenset({0})))
    assert not b.deleted and kept.pointer != where
    [y] = program.execute([b])
    assert b.deleted and y.pointer == where
    np.testing.assert_array_equal(y.to_host(), -X)


def test_a_fault_fails_what_was_computed(client: pjrt.Client, recorder: Recorder) -> None:
    program: Any = _compile(client, recorder, ADD)
    b = client.buffer_from_host(X)
    recorder.faults |= set(program.program.program.kernels)
    outputs = program.execute([b, b])
    with pytest.raises(HeronError, match="RUN04"):
        outputs[0].to_host()
    recorder.faults.clear()
    again = client.buffer_from_host(X)
    np.testing.assert_array_equal(program.execute([again, again])[0].to_host(), 2 * X)


def test_an_executable_is_serialised_with_its_machine_code(client: pjrt.Client, recorder: Recorder) -> None:
    program = _compile(client, recorder, ADD)
    again: Any = client.deserialize(program.serialize())
    assert again.program.program.images == program.program.program.images  # type: ignore[attr-defined]
    b = client.buffer_from_host(X)
    np.testing.assert_array_equal(again.execute([b, b])[0].to_host(), 2 * X)


def test_memory_of_another_library_is_refused(client: pjrt.Client) -> None:
    with pytest.raises(HeronError, match="PJRT017"):
        client.view(4096, types.F32, (4,))


def test_jax_on_the_gpu() -> None:
    run(
        """
import heron
from heron import pjrt
from tests.rehearsal.compiling import learn, rehearsed
compile_it = pjrt.Client.compile
with rehearsed() as recorder:
    def compile_and_learn(*given):
        made = compile_it(*given)
        learn(made.program, made.source, recorder, heron.Options())
        return made
    pjrt.Client.compile = compile_and_learn
    import jax, jax.numpy as jnp, numpy as np
    x = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)
    a = jax.device_put(x)
    np.testing.assert_array_equal(np.asarray(a), x)
    assert not recorder.launched
    y = jax.jit(lambda a: (jnp.tanh(a).sum(axis=1), a * 2))(a)
    np.testing.assert_allclose(y[0], np.tanh(x).sum(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(y[1], x * 2)
    assert recorder.launched
    f = jax.jit(lambda a: a + 1, donate_argnums=0)
    b = f(f(a))
    assert a.is_deleted()
    np.testing.assert_array_equal(jax.device_get(b), x + 2)
    del a, b, y
    import gc; gc.collect()
""",
        HERON_TARGET="cuda",
    )


SHARED = """HloModule shared, num_partitions=2, input_output_alias={ {}: (0, {}, may-alias) }

f {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  s = f32[4] multiply(x, x)
  zero = f32[] constant(0)
  t = f32[] reduce(s, zero), dimensions={0}, to_apply=f
  b = f32[4] broadcast(t), dimensions={}
  ROOT y = f32[4] add(x, b), sharding={devices=[2]<=[2]}
}
"""


def test_a_program_on_several_gpus() -> None:
    """Arrays stay on their GPUs, a donated one is the program's."""
    with rehearsed_devices(3) as nccl:
        client = pjrt.Client("cuda", devices=3)
        assert [d.gpu and d.gpu.ordinal for d in client.devices] == [0, 1, 2]
        options = pjrt.CompileOptions(num_partitions=2, device_assignment=((1, 2),))
        program: Any = client.compile(SHARED, options)
        module = shardings.for_devices(program.source.clone(), options)
        learn(program.program, module, nccl.recorder, heron.Options())
        for _ in range(2):
            parts = [client.buffer_from_host(X[2 * n : 2 * n + 2], client.devices[1 + n]) for n in range(2)]
            before = nccl.recorder.count("cuMemcpyDtoHAsync_v2")
            outputs, events = program.execute_sharded([[p] for p in parts])
            for event in events:
                event.await_()
            assert nccl.recorder.count("cuMemcpyDtoHAsync_v2") == before
            np.testing.assert_array_equal(np.concatenate([row[0].to_host() for row in outputs]), X + 14)
            assert [row[0].device.id for row in outputs] == [1, 2] and all(p.deleted for p in parts)
        assert nccl.count("ncclAllReduce") == 4
        client.close()


def test_more_devices_than_gpus() -> None:
    with rehearsed(devices=2), pytest.raises(HeronError, match="TGT008"):
        pjrt.Client("cuda", devices=3)

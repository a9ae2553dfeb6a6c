"""Several processes of one job on this machine, as `jax.distributed` brings them up: alone, and joined by MPI."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from heron.pjrt.conformance.together import started
from tests.pjrt.under_jax import ROOT
from tests.runtime.collectives.test_mpi import NEEDS_MPI

_HEAD = """
import os, sys, threading
from heron.pjrt import jax_plugin
jax_plugin.initialize()
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
"""

_ALONE = """
index, port = int(sys.argv[1]), sys.argv[2]
jax.distributed.initialize(f"localhost:{port}", 2, index)

own = [[0], [1, 2]][index]
assert [d.id for d in jax.devices()] == [0, 1, 2] and [d.process_index for d in jax.devices()] == [0, 1, 1]
assert [d.id for d in jax.local_devices()] == own and jax.local_devices()[0].local_hardware_id == 0
assert (jax.process_count(), jax.process_index()) == (2, index)

assert (jax.jit(lambda x: x * 2)(jnp.ones(3)) == 2).all() and jnp.ones(3).devices() == {jax.local_devices()[0]}
last = jax.device_put(np.ones(4), jax.local_devices()[-1])
assert (last + 1).devices() == {jax.local_devices()[-1]}

everywhere = Mesh(jax.devices(), ("x",))
shared = jax.make_array_from_process_local_data(NamedSharding(everywhere, P()), np.ones(3))
assert shared.shape == (3,) and (np.asarray(shared + 1) == 2).all()  # each does it alone
cut = jax.make_array_from_callback((3,), NamedSharding(everywhere, P("x")), lambda _: np.ones(1))
try:
    jax.jit(jnp.sum)(cut)
except jax.errors.JaxRuntimeError as error:
    assert str(error).startswith("FAILED_PRECONDITION: error[PJRT030]: 'jit_sum' is work of processes 0, 1"), error
    assert "process 0: mpiexec did not start it" in str(error) and "mpiexec -n 2 python" in str(error), error
else:
    raise AssertionError("no error")
jax.distributed.shutdown()
print("done")
"""


def test_two_processes_know_of_each_other(tmp_path: Path) -> None:
    """Devices are numbered over both; each computes on its own, and says what it cannot."""
    for _ in range(5):
        told = _run_both(tmp_path)
        if not any("Address already in use" in text or "start RPC server" in text for text in told):
            break  # else somebody was given the port meanwhile
    assert all("done" in text for text in told), "\n---\n".join(text[-3000:] for text in told)


def _run_both(folder: Path) -> list[str]:
    """What both processes print, on a port that is free."""
    with socket.socket() as s:
        s.bind(("localhost", 0))
        port = str(s.getsockname()[1])
    started: list[subprocess.Popen[bytes]] = []
    files = [folder / f"{port}-{n}.txt" for n in range(2)]
    try:
        for n, file in enumerate(files):
            env = {**_environment(), "JAX_PLATFORMS": "heron", "HERON_DEVICES": str(n + 1)}
            command = [sys.executable, "-c", _HEAD + _ALONE, str(n), port]
            with file.open("wb") as out:
                started.append(subprocess.Popen(command, env=env, stdout=out, stderr=subprocess.STDOUT))
        codes = [process.wait(1200) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    return [f"{file.read_text()}\nexit code {code}" for file, code in zip(files, codes, strict=True)]


_JOINED = """
from jax import lax
from jax.experimental import multihost_utils
jax.distributed.initialize(cluster_detection_method="mpi4py")
index, n = jax.process_index(), jax.device_count()
assert (jax.process_count(), n, [d.process_index for d in jax.devices()]) == (2, 4, [0, 0, 1, 1])
assert jax.default_backend() == os.environ.get("HERON_AS", "heron") and "heron" in jax.devices()[0].client.platform_version
mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
turned = Mesh(np.array(jax.devices())[[2, 0, 3, 1]].reshape(2, 2), ("x", "y"))
a = np.arange(64, dtype=np.float32).reshape(8, 8) % 7

def on(*names, mesh=mesh):
    return NamedSharding(mesh, P(*names))

def put(array, *names, mesh=mesh):
    return jax.make_array_from_callback(array.shape, on(*names, mesh=mesh), lambda at: array[at], dtype=array.dtype)

def same(found, expected, *names, mesh=mesh):
    if names:
        assert found.sharding.is_equivalent_to(on(*names, mesh=mesh), found.ndim), found.sharding
    assert {s.device for s in found.addressable_shards} == set(jax.local_devices()) & found.sharding.device_set
    for shard in found.addressable_shards:
        np.testing.assert_array_equal(shard.data, np.asarray(expected)[shard.index])

def refused(work, *words):
    try:
        jax.block_until_ready(work())
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        assert all(w in str(error) for w in words), error
    else:
        raise AssertionError("no error")

# shardings over processes, devices in any order, local ones, and those of one process
for m in mesh, turned:
    s, t = put(a, "x", "y", mesh=m), put(a, "y", None, mesh=m)
    same(jax.jit(lambda p, q: p @ q, out_shardings=on("x", mesh=m))(s, t), a @ a, "x", mesh=m)
    same(jax.jit(lambda p: p - p.sum(0))(s), a - a.sum(0), mesh=m)
    same(jax.device_put(s, on("y", "x", mesh=m)), a, "y", "x", mesh=m)
    same(jax.device_put(s, on(mesh=m)), a)
    same(jax.shard_map(lambda p: lax.ppermute(p, "x", [(0, 1), (1, 0)]), mesh=m, in_specs=P("x"), out_specs=P("x"))(t),
         np.roll(a, 4, 0), mesh=m)
x = jax.make_array_from_process_local_data(on("x"), a[4 * index:4 * index + 4], a.shape)
same(x, a, "x")
same(jax.jit(lambda p: p + 1, donate_argnums=0)(x), a + 1, "x")
assert x.is_deleted()
own = Mesh(jax.local_devices(), ("x",))
same(jax.jit(lambda p: p.sum(0))(put(a, "x", mesh=own)), a.sum(0))
same(jax.pmap(lambda p: lax.psum(p, "i"), axis_name="i")(a[2 * index:2 * index + 2]), np.stack([a[:4].sum(0)] * 4))
one = Mesh(jax.devices()[2:], ("x",))
jax.jit(lambda p: p.sum(0))(put(a, "x", mesh=one))

# many launches, nobody waits for the results; threads have work of their own
state = put(np.zeros((8, 8), np.float32), "x")
step = jax.jit(lambda t, g: t + g - g.sum(0) * 0, donate_argnums=0, out_shardings=on("x"))
found = []
work = threading.Thread(target=lambda: found.extend(float(jax.jit(jnp.sum)(jnp.ones(9) * k)) for k in range(30)))
work.start()
s = put(a, "x")
for _ in range(40):
    state = step(state, s)
work.join()
same(state, 40 * a, "x")
assert found == [9 * k for k in range(30)]

# JAX's helpers
np.testing.assert_array_equal(multihost_utils.process_allgather(put(a, "x", "y"), tiled=True), a)
np.testing.assert_array_equal(multihost_utils.broadcast_one_to_all(a + index), a)
multihost_utils.sync_global_devices("here")
"""

_REFUSED = """
# callbacks on each device, and one that fails in one process
seen = []
def double(p):
    seen.append(p.shape)
    if fails and index:
        raise ValueError("in process 1")
    return np.asarray(p) * 2
def doubled(p):
    local = jax.pure_callback(double, jax.ShapeDtypeStruct(p.shape, p.dtype), p)
    return lax.psum(local, "x")
each = jax.jit(jax.shard_map(doubled, mesh=mesh, in_specs=P("x"), out_specs=P()))
fails = False
same(each(put(a, "x")), 2 * (a[:4] + a[4:]))
assert seen == [(4, 8)] * 2, seen
fails = True
refused(lambda: each(put(a, "x")), *(["in process 1"] if index else ["RUN082", "process 1 has failed", "in process 1"]))
same(jax.jit(lambda p: p.sum(0))(put(a, "x")), a.sum(0))

# other programs, in other orders
scale = index + 2
refused(lambda: jax.jit(lambda p: p.sum(0) * scale)(put(a, "x")), "RUN081", "both are named 'jit__lambda'", "text")
if index:  # the same program from another line
    same(jax.jit(lambda p: p.sum(0))(put(a, "x")), a.sum(0))
else:
    same(jax.jit(lambda p: p.sum(0))(put(a, "x")), a.sum(0))
f, g = jax.jit(lambda p: p.sum(0)), jax.jit(jnp.cumsum)
for program in (f, g) if index else (g, f):
    refused(lambda: program(put(a, "x")), "RUN081", "'jit__lambda'", "'jit_cumsum'")
same(f(put(a, "x")), a.sum(0))
"""


@NEEDS_MPI
def test_two_processes_that_mpi_joins() -> None:
    """Programs over both, on two devices each; what goes wrong in one."""
    _run_joined(_JOINED + _REFUSED)


@NEEDS_MPI
def test_in_the_place_of_the_cpu() -> None:
    _run_joined(_JOINED, JAX_PLATFORMS="cpu", HERON_AS="cpu")


def _run_joined(script: str, **environment: str) -> None:
    env = {**_environment(), "JAX_PLATFORMS": "heron", "HERON_DEVICES": "2", **environment}
    command = started([sys.executable, "-c", _HEAD + script + '\nprint("done")'], 2)
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stdout.count("done") == 2, (done.stdout + done.stderr)[-6000:]


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path}

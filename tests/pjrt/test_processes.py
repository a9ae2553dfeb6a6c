"""Several processes of one job on this machine, as `jax.distributed` brings them up."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from tests.pjrt.under_jax import ROOT

_PROCESS = """
import sys
from heron.pjrt import jax_plugin
jax_plugin.initialize()
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
index, port = int(sys.argv[1]), sys.argv[2]
jax.distributed.initialize(f"localhost:{port}", 2, index)

own = [[0], [1, 2]][index]
assert [d.id for d in jax.devices()] == [0, 1, 2] and [d.process_index for d in jax.devices()] == [0, 1, 1]
assert [d.id for d in jax.local_devices()] == own and jax.local_devices()[0].local_hardware_id == 0
assert (jax.process_count(), jax.process_index()) == (2, index)

assert (jax.jit(lambda x: x * 2)(jnp.ones(3)) == 2).all() and jnp.ones(3).devices() == {jax.local_devices()[0]}
last = jax.device_put(np.ones(4), jax.local_devices()[-1])
assert (last + 1).devices() == {jax.local_devices()[-1]}

def refused(work):
    try:
        work()
    except jax.errors.JaxRuntimeError as error:
        assert "PJRT025]: device" in str(error) and f"this is {index}" in str(error), error
        return True

everywhere = NamedSharding(Mesh(jax.devices(), ("x",)), PartitionSpec())
shared = jax.make_array_from_process_local_data(everywhere, np.ones(3))
assert shared.shape == (3,) and refused(lambda: shared + 1)
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
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    started: list[subprocess.Popen[bytes]] = []
    files = [folder / f"{port}-{n}.txt" for n in range(2)]
    try:
        for n, file in enumerate(files):
            env = {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "heron", "HERON_DEVICES": str(n + 1)}
            command = [sys.executable, "-c", _PROCESS, str(n), port]
            with file.open("wb") as out:
                started.append(subprocess.Popen(command, env=env, stdout=out, stderr=subprocess.STDOUT))
        codes = [process.wait(1200) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    return [f"{file.read_text()}\nexit code {code}" for file, code in zip(files, codes, strict=True)]

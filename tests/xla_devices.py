"""XLA:CPU as the oracle of programs for several devices: a process of its own, with eight host devices.

    outputs = run([(text, inputs_per_device, replicas, partitions), ...])    # outputs[case][device][n]

Partitions must run as written, so every entry instruction is annotated as already partitioned.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from typing import Any

import numpy as np

DEVICES = 8
Case = tuple[str, list[list[np.ndarray]], int, int]


def run(cases: list[Case]) -> list[list[list[np.ndarray]]]:
    """Each case's outputs on each device."""
    env = {**os.environ, "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, __file__], input=pickle.dumps(cases), capture_output=True, env=env)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    return pickle.loads(done.stdout)


def manual(text: str) -> str:
    """`text` with every instruction of the entry computation sharded by hand; its root must be a tuple."""
    head, entry = text.split("ENTRY", 1)
    lines = []
    for line in entry.splitlines():
        if re.search(r"= .*\)", line):
            line += (
                f", sharding={{{', '.join(['{manual}'] * _count(line))}}}" if "ROOT" in line else ", sharding={manual}"
            )
        lines.append(line)
    return head + "ENTRY" + "\n".join(lines)


def _count(root: str) -> int:
    """Operands of the root tuple."""
    return root.rsplit("tuple(", 1)[1].count(",") + 1


def _execute(case: Case) -> list[list[np.ndarray]]:
    import jax
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import _jax as lib
    from jaxlib import _hlo

    text, inputs, replicas, partitions = case
    count = replicas * partitions
    proto = _hlo.hlo_module_from_text(manual(text) if partitions > 1 else text).as_serialized_hlo_module_proto()
    devices = jax.devices()[:count]
    with mlir.make_ir_context():
        module = mlir.ir.Module.parse(lib.mlir.hlo_to_stablehlo(proto))
        options: Any = compiler.get_compile_options(
            replicas,
            partitions,
            device_assignment=np.arange(count).reshape(replicas, partitions),
            env_options_overrides={"xla_backend_optimization_level": "0"},
        )
        options.executable_build_options.use_spmd_partitioning = partitions > 1
        executable = devices[0].client.compile_and_load(module, lib.DeviceList(tuple(devices)), options)
    sharding = jax.sharding.NamedSharding(jax.sharding.Mesh(np.array(devices), ("d",)), jax.sharding.PartitionSpec("d"))
    arguments = []
    for parts in zip(*inputs, strict=True):
        shape = (count * parts[0].shape[0], *parts[0].shape[1:])
        held = [jax.device_put(p, d) for p, d in zip(parts, devices, strict=True)]
        arguments.append(jax.make_array_from_single_device_arrays(shape, sharding, held))
    found = executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
    return [[np.asarray(output[n]) for output in found] for n in range(count)]


if __name__ == "__main__":
    import jax

    jax.config.update("jax_enable_x64", True)
    answer = [_execute(case) for case in pickle.load(sys.stdin.buffer)]
    sys.stdout.buffer.write(pickle.dumps(answer))

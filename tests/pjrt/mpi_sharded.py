"""The sharded programs under JAX over several processes, to their goldens::

    HERON_DEVICES=4 JAX_PLATFORMS=heron mpiexec -n 2 python -m tests.pjrt.mpi_sharded

Programs by name may follow. Each process makes its parts of the global arrays and compares its parts of the results.
"""

from __future__ import annotations

import sys

import numpy as np

from heron.pjrt import jax_plugin
from tests.sharded_programs import FOLDER, NAMES, Program


def run(program: Program) -> list[str]:
    """Run a program on the first devices of all; what is wrong here."""
    import jax
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.sharding_impls import GSPMDSharding
    from jax.extend.backend import get_backend
    from jaxlib import xla_client

    backend, count = get_backend(), program.devices
    devices = tuple(jax.devices()[:count])
    options = compiler.get_compile_options(1, count, np.arange(count).reshape(1, count))
    build = options.executable_build_options
    build.allow_spmd_sharding_propagation_to_parameters = [True]
    build.allow_spmd_sharding_propagation_to_output = [True]
    with mlir.make_ir_context():
        module = mlir.ir.Module.parse((FOLDER / "stablehlo" / f"{program.name}.mlir").read_text())
        chosen = xla_client.DeviceList(devices)
        compiled = compiler.backend_compile_and_load(backend, module, chosen, options, [])
    given = [
        jax.make_array_from_callback(x.shape, GSPMDSharding(devices, s), lambda at, x=x: x[at], dtype=x.dtype)
        for x, s in zip(program.inputs(), compiled.get_parameter_shardings(), strict=True)
    ]
    found = compiled.execute_sharded(given).disassemble_into_single_device_arrays()
    wrong = list[str]()
    for n, (arrays, s) in enumerate(zip(found, compiled.get_output_shardings(), strict=True)):
        shape = program.outputs()[n].shape
        indices = GSPMDSharding(devices, s).devices_indices_map(shape)
        for array in arrays:
            [device] = array.devices()
            try:
                program.check_part(n, np.asarray(array), indices[device], tolerance=2e-4)
            except AssertionError as error:
                wrong.append(f"output {n} on {device}: {error}")
    return wrong


def main(names: list[str]) -> None:
    jax_plugin.initialize()
    import jax

    jax.distributed.initialize(cluster_detection_method="mpi4py")
    good = 0
    for name in names or NAMES:
        wrong = run(Program(name))
        good += not wrong
        print(f"process {jax.process_index()}: {name}: {wrong[0] if wrong else 'right'}", flush=True)
    print(f"process {jax.process_index()}: {good} of {len(names or NAMES)} right", flush=True)
    raise SystemExit(good < len(names or NAMES))


if __name__ == "__main__":
    main(sys.argv[1:])

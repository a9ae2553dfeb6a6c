"""The real programs through jaxlib's client of the platform heron, to XLA's values."""

from __future__ import annotations

from tests.pjrt.under_jax import run

SCRIPT = """
import json, sys
import jax, numpy as np
from jaxlib import xla_client
from heron.frontends.stablehlo.importer import parse
from tests.hlo.test_goldens import NOISE, close
from tests.support import NAMES, WORKLOADS, golden_values

device = jax.devices()[0]
devices = xla_client.DeviceList((device,))
failed = []
for name in NAMES[HALF::2]:
    text = (WORKLOADS / "stablehlo" / f"{name}.small.mlir").read_text()
    shapes = parse(text).entry
    try:
        program = device.client.compile_and_load(text, devices, xla_client.CompileOptions())
        with np.load(golden_values(name)) as stored:
            inputs = [stored[f"in{k}"] for k in json.loads(str(stored["meta"]))["kept_inputs"]]
            wanted = [stored[f"out{k}"] for k in range(sum(k.startswith("out") for k in stored.files))]
        leaves = [p.shape for p in shapes.parameters]
        given = [jax.device_put(a.view(s.element_type.dtype), device) for a, s in zip(inputs, leaves, strict=True)]
        results = program.execute_sharded(given).disassemble_into_single_device_arrays()
        outputs = [s for _, s in shapes.root.shape.leaves()]
        for n, (got, raw, shape) in enumerate(zip(results, wanted, outputs, strict=True)):
            got = np.asarray(got[0])
            ok = close(got, raw.view(shape.element_type.dtype), shape)
            if (name, n) in NOISE:
                ok[NOISE[name, n]] = True
            assert ok.all(), f"output {n}: {(~ok).sum()} of {ok.size} differ"
    except Exception as error:
        failed.append(name)
        print(name, type(error).__name__, str(error)[:500], file=sys.stderr)
assert not failed, failed
"""


def test_first_half() -> None:
    run(f"HALF = 0\n{SCRIPT}")


def test_second_half() -> None:
    run(f"HALF = 1\n{SCRIPT}")

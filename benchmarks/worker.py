"""One side of a comparison, in a process of its own: ``python -m benchmarks.worker heron|xla|numpy``.

Reads one JSON request a line from stdin and answers with one JSON line, so that the parent decides whose turn it is.
While it waits it uses no CPU.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any, Protocol

import numpy as np

_WARM_UP = "HloModule w\n\nENTRY e {\n  x = f32[64]{0} parameter(0)\n  ROOT y = f32[64]{0} exponential(x)\n}\n"


class Side(Protocol):
    """What both compilers can do."""

    def parse(self, text: str) -> None:
        """Take a program in, untimed."""

    def compile(self) -> None:
        """Compile it; timed."""

    def temp_bytes(self) -> int:
        """Scratch memory the compiled program needs besides arguments and outputs."""
        ...

    def optimised(self) -> str:
        """The program as its compiler left it, as HLO text."""
        ...

    def bind(self, arrays: list[np.ndarray]) -> None:
        """Put the arguments where the program wants them, untimed."""

    def run(self) -> None:
        """Run once, to the end, into fresh outputs; timed."""

    def outputs(self) -> list[np.ndarray]:
        """What the last run gave."""
        ...


class Heron:
    """heron on this machine's CPU."""

    def __init__(self, target: str = "cpu") -> None:
        self.target = target

    def parse(self, text: str) -> None:
        from heron.hlo.text import parse
        from heron.hlo.verifier import verify

        self.module = parse(text)
        verify(self.module)

    def compile(self) -> None:
        import heron
        from heron.codegen.llvm.jit import MADE

        MADE.clear()  # each compile is as the first of its program
        self.executable = heron.compile(self.module, target=self.target)

    def temp_bytes(self) -> int:
        return self.executable.memory["temp"]

    def optimised(self) -> str:
        return self.executable.stage("scheduled")

    def bind(self, arrays: list[np.ndarray]) -> None:
        self.arguments = arrays

    def run(self) -> None:
        self.result = self.executable(*self.arguments)

    def outputs(self) -> list[np.ndarray]:
        from heron.cli.report import flat

        return flat(self.result)


class Xla:
    """XLA:CPU as jaxlib ships it, fed the same HLO text."""

    def __init__(self) -> None:
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax
        import jax.numpy as jnp

        # loads LAPACK's kernels, without which programs that call it crash
        jax.block_until_ready(jax.jit(jnp.linalg.qr)(jnp.eye(2)))
        jax.block_until_ready(jax.jit(jnp.linalg.cholesky)(jnp.eye(2)))
        self.jax, self.device = jax, jax.devices()[0]

    def parse(self, text: str) -> None:
        from jaxlib import _hlo, _jax  # type: ignore[attr-defined]

        self.stablehlo = _jax.mlir.hlo_to_stablehlo(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())

    def compile(self) -> None:
        from jax._src import compiler
        from jax._src.interpreters import mlir
        from jaxlib import xla_client
        from jaxlib.mlir import ir

        with mlir.make_ir_context():
            module = ir.Module.parse(self.stablehlo)
            devices = xla_client.DeviceList((self.device,))
            options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
            self.executable = self.device.client.compile_and_load(module, devices, options)

    def temp_bytes(self) -> int:
        return self.executable.get_compiled_memory_stats().temp_size_in_bytes

    def optimised(self) -> str:
        return self.executable.hlo_modules()[0].to_string()

    def bind(self, arrays: list[np.ndarray]) -> None:
        self.arguments = [self.jax.device_put(a, self.device) for a in arrays]
        self.jax.block_until_ready(self.arguments)

    def run(self) -> None:
        self.result = self.executable.execute(self.arguments)
        self.jax.block_until_ready(self.result)

    def outputs(self) -> list[np.ndarray]:
        return [np.asarray(a) for a in self.result]


class Numpy:
    """NumPy's form of a program, which needs no compiling."""

    def __init__(self, name: str) -> None:
        from benchmarks.performance.numpy_forms import FORMS

        self.form = FORMS[name]

    def parse(self, text: str) -> None:
        return

    def compile(self) -> None:
        return

    def temp_bytes(self) -> int:
        return 0

    def optimised(self) -> str:
        return ""

    def bind(self, arrays: list[np.ndarray]) -> None:
        self.arguments = arrays

    def run(self) -> None:
        self.result = self.form(*self.arguments)

    def outputs(self) -> list[np.ndarray]:
        from heron.cli.report import flat

        return flat(self.result)


def answer(side: Side, request: dict[str, Any]) -> dict[str, Any]:
    """Do what one request asks for."""
    from heron.cli import values

    match request["do"]:
        case "parse":
            side.parse(Path(request["path"]).read_text())
            return {}
        case "compile":
            start = time.perf_counter()
            side.compile()
            seconds = time.perf_counter() - start
            return {"seconds": seconds, "temp_bytes": side.temp_bytes(), "peak_bytes": peak_bytes()}
        case "optimised":
            return {"text": side.optimised()}
        case "bind":
            side.bind(values.read(request["path"]).inputs)
            return {}
        case "run":
            start = time.perf_counter()
            side.run()
            return {"seconds": time.perf_counter() - start}
        case "outputs":
            values.write(request["path"], [], side.outputs())
            return {}
    raise ValueError(request)


def peak_bytes() -> int:
    """The most memory this process has had; 0 where the system does not tell."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    found = re.search(r"^VmHWM:\s*(\d+) kB", status, re.M)
    return int(found[1]) * 1024 if found else 0


def warm_up(side: Side) -> None:
    """Pay for imports and one-time set-up before anything is timed."""
    side.parse(_WARM_UP)
    side.compile()
    side.bind([np.zeros(64, np.float32)])
    side.run()


def main() -> None:
    """Serve requests until stdin ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever libraries print goes to stderr
    kind, *rest = sys.argv[1:]
    side: Side = Xla() if kind == "xla" else Numpy(*rest) if kind == "numpy" else Heron(*rest)
    problem = ""
    try:
        if not isinstance(side, Numpy):
            warm_up(side)
    except Exception as error:  # told with the first request; the peer can still be measured
        problem = f"{type(error).__name__}: {error}".splitlines()[0]
    for line in sys.stdin:
        try:
            reply = {"error": problem} if problem else answer(side, json.loads(line))
        except Exception as error:  # a program one side refuses is a row of the table, not the end
            reply = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()

"""One side on the GPU, in a process of its own: ``python -m benchmarks.gpu.worker heron|xla|torch [--rehearse]``.

Requests and answers are those of `benchmarks.worker`. A run is `CALLS` calls enqueued one behind the other, then one
wait: what counts is the time of a call among many, on arrays that are on the device.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.worker import Xla, answer, warm_up

CALLS = 20


class HeronGpu:
    """heron on the first GPU, or on a rehearsed one."""

    def __init__(self, recorder: Any = None) -> None:
        self.recorder = recorder

    def parse(self, text: str) -> None:
        from heron.hlo.text import parse

        self.module = parse(text)

    def compile(self) -> None:
        if self.recorder is not None:
            from tests.rehearsal.compiling import compile

            self.executable = compile(self.module, self.recorder)
        else:
            from heron.backends import compiler
            from heron.runtime.cuda.executable import CudaExecutable

            made = compiler.compile(self.module, "cuda")
            assert isinstance(made, CudaExecutable)
            self.executable = made
        self.executable.load()

    def temp_bytes(self) -> int:
        return self.executable.memory["temp"]

    def bind(self, arrays: list[np.ndarray]) -> None:
        self.arguments = self.executable.put(arrays)

    def run(self) -> None:
        for _ in range(CALLS):
            self.result = self.executable.on_device(*self.arguments)
        self.executable.device.synchronize()

    def outputs(self) -> list[np.ndarray]:
        return [r.numpy() for r in self.result]


class XlaGpu(Xla):
    """XLA on JAX's first device, fed the same HLO text."""

    def __init__(self) -> None:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        import jax

        self.jax, self.device = jax, jax.devices()[0]

    def run(self) -> None:
        for _ in range(CALLS):
            self.result = self.executable.execute(self.arguments)
        self.jax.block_until_ready(self.result)


class Torch:
    """PyTorch's own program of that name, compiled by torch.compile."""

    def __init__(self) -> None:
        torch: Any = importlib.import_module("torch")

        from benchmarks.gpu.torch_programs import programs

        self.torch, self.programs = torch, programs(torch)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"

    def name(self, name: str) -> None:
        """Which program comes next. Raises KeyError for one that is not written for PyTorch."""
        self.function = self.programs[name]

    def parse(self, text: str) -> None:
        pass

    def compile(self) -> None:
        self.torch._dynamo.reset()
        self.compiled = self.torch.compile(self.function, mode="max-autotune-no-cudagraphs")

    def temp_bytes(self) -> int:
        return 0

    def bind(self, arrays: list[np.ndarray]) -> None:
        self.arguments = [self._tensor(a) for a in arrays]

    def _tensor(self, a: np.ndarray) -> Any:
        if a.dtype.name == "bfloat16":
            return self.torch.from_numpy(a.view(np.uint16)).view(self.torch.bfloat16).to(self.device)
        return self.torch.from_numpy(np.ascontiguousarray(a)).to(self.device)

    def run(self) -> None:
        with self.torch.no_grad():
            for _ in range(CALLS):
                self.result = self.compiled(*self.arguments)
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def outputs(self) -> list[np.ndarray]:
        flat = self.result if isinstance(self.result, tuple) else (self.result,)
        return [self._array(t.cpu()) for t in flat]

    def _array(self, t: Any) -> np.ndarray:
        import ml_dtypes

        if t.dtype == self.torch.bfloat16:
            return t.contiguous().view(self.torch.uint16).numpy().view(ml_dtypes.bfloat16)
        return t.numpy()


def make(kind: str, recorder: Any) -> Any:
    """The side of that name."""
    if kind == "torch":
        return Torch()
    return HeronGpu(recorder) if kind == "heron" else XlaGpu()


def main() -> None:
    """Serve requests until stdin ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever libraries print goes to stderr
    kind, rehearse = sys.argv[1], "--rehearse" in sys.argv[2:]
    problem = ""
    with contextlib.ExitStack() as stack:
        side: Any = None
        try:
            recorder = None
            if rehearse and kind == "heron":
                from tests.rehearsal.compiling import rehearsed

                recorder = stack.enter_context(rehearsed(memory=8 << 30))
            side = make(kind, recorder)
            if kind != "torch":
                warm_up(side)
        except Exception as error:  # told with the first request; the peers can still be measured
            problem = f"{type(error).__name__}: {error}".splitlines()[0]
        for line in sys.stdin:
            request = json.loads(line)
            try:
                if problem:
                    reply: dict[str, Any] = {"error": problem}
                else:
                    if kind == "torch" and request["do"] == "parse":
                        side.name(Path(request["path"]).name.split(".")[0])
                    reply = answer(side, request)
            except Exception as error:  # a program one side refuses is a row of the table, not the end
                reply = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
            print(json.dumps(reply), file=replies, flush=True)


if __name__ == "__main__":
    main()

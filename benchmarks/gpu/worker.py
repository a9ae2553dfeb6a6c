"""One side on the GPU, in a process of its own: ``python -m benchmarks.gpu.worker heron|xla|torch``.

Requests and answers are those of `benchmarks.worker`; heron also tells what the device is (``device``) and times its
kernels (``kernels``). ``--rehearse``: heron on a driver that records, its peers on the CPU. A run is `CALLS` calls
enqueued one behind the other, then one wait: what counts is the time of a call among many, on arrays that are on the
device.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from benchmarks.worker import Xla, answer, warm_up

if TYPE_CHECKING:
    from benchmarks.gpu.prepare import Prepared
    from heron.runtime.cuda.executable import CudaExecutable
    from heron.runtime.cuda.timer import Timer

CALLS = 20


class HeronGpu:
    """heron on the first GPU, or on a rehearsed one. ``prepared``: a folder of compiled programs."""

    def __init__(self, recorder: Any = None, prepared: str = "") -> None:
        self.recorder, self.prepared = recorder, prepared
        self.made: Prepared | None = None
        self._timer: Timer | None = None
        self._copy = 0.0

    def name(self, name: str, small: bool) -> None:
        """Which program comes next."""
        if self.made is not None:
            self.made.executable.unload()
        self.program, self.small, self.made = name, small, None

    def parse(self, text: str) -> None:
        self.text = text

    def compile(self) -> None:
        from benchmarks.gpu import prepare

        if self.recorder is not None:
            from benchmarks.gpu import sources
            from heron.hlo.text import parse
            from tests.rehearsal.compiling import compile

            executable = compile(parse(self.text), self.recorder, options=sources.options(self.program))
            self.made = prepare.Prepared(executable, prepare.facts_of(executable), 0.0)
        else:
            self.made = prepare.find(self.prepared, self.program, self.small)
        self.made.executable.load()

    @property
    def executable(self) -> CudaExecutable:
        """The program that was compiled last."""
        assert self.made is not None
        return self.made.executable

    def temp_bytes(self) -> int:
        return self.executable.memory["temp"]

    def bind(self, arrays: list[np.ndarray]) -> None:
        self.arrays, self.arguments = arrays, self.executable.put(arrays)

    def run(self) -> None:
        for _ in range(CALLS):
            self.result = self.executable.on_device(*self.arguments)
        self.executable.device.synchronize()

    def outputs(self) -> list[np.ndarray]:
        return [r.numpy() for r in self.result]

    def _ready(self) -> Timer:
        """The timer, with the copy's rate known."""
        from benchmarks.gpu.kernels import COPY, copy_bandwidth
        from heron.runtime.cuda.device import device
        from heron.runtime.cuda.timer import SWEEP, Timer

        if self._timer is None:
            d, small = device(), self.recorder is not None
            with d.at_work():
                self._timer = Timer(d, 1 << 20, 0.0, 0.0) if small else Timer(d, SWEEP)
                self._copy = copy_bandwidth(d, self._timer, 1 << 20 if small else COPY)
        return self._timer

    def device(self) -> dict[str, Any]:
        """What the device is, and what a copy and nothing at all take on it."""
        from heron import targets
        from heron.runtime.cuda.device import device

        timer, d = self._ready(), device()
        with d.at_work():
            nothing = timer.seconds(lambda: None, 9)
        return {
            "device": d.name,
            "capability": list(d.capability),
            "driver": d.driver.version,
            "copy_bytes_per_second": self._copy,
            "empty_seconds": nothing,
            "clocks": clocks(),
            "memory_bandwidth": targets.get("cuda").memory_bandwidth,
        }

    def facts(self) -> dict[str, Any]:
        """The state of the program's graphs: a figure of launches one by one must not pass for one of graphs."""
        return self.executable.load().facts()

    def kernels(self, repeats: int) -> list[dict[str, Any]]:
        """Every kernel of the program bound last, alone."""
        from benchmarks.gpu.kernels import measure
        from benchmarks.gpu.report import kernel_figures, plain

        assert self.made is not None
        timer = self._ready()
        rows = measure(self.program, self.executable, self.made.kernels, self.arrays, self._copy, timer, repeats)
        return [plain(kernel_figures(r)) for r in rows]


def clocks() -> str:
    """Clocks and power of the first device as nvidia-smi tells them; empty where it does not."""
    asked = ["nvidia-smi", "--query-gpu=clocks.sm,clocks.mem,power.draw", "--format=csv,noheader", "--id=0"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


class XlaGpu(Xla):
    """XLA on JAX's first device, fed the same HLO text."""

    def __init__(self, platform: str = "cuda") -> None:
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        os.environ["JAX_PLATFORMS"] = platform
        import jax

        self.jax, self.device = jax, jax.devices()[0]

    def versions(self) -> str:
        """What it is."""
        return f"jaxlib {self.jax.lib.__version__} on {self.device.device_kind}"

    def run(self) -> None:
        for _ in range(CALLS):
            self.result = self.executable.execute(self.arguments)
        self.jax.block_until_ready(self.result)


class Torch:
    """PyTorch's own program of that name, compiled by torch.compile."""

    #: ``max-autotune-no-cudagraphs`` measures products for up to 100 s each
    mode = os.environ.get("HERON_TORCH_MODE", "default")

    def __init__(self, device: str = "cuda") -> None:
        torch: Any = importlib.import_module("torch")

        from benchmarks.gpu.torch_programs import programs

        self.torch, self.programs, self.device = torch, programs(torch), device
        torch.zeros(1, device=device)  # says so at once where there is none

    def versions(self) -> str:
        """What it is."""
        kind = self.torch.cuda.get_device_name() if self.device == "cuda" else "cpu"
        return f"torch {self.torch.__version__} on {kind}"

    def name(self, name: str, small: bool) -> None:
        """Which program comes next. Raises ValueError for one that is not written for PyTorch."""
        if name not in self.programs:
            raise ValueError("not written for PyTorch")
        self.function = self.programs[name]

    def parse(self, text: str) -> None:
        pass

    def compile(self) -> None:
        self.torch._dynamo.reset()
        self.compiled = self.torch.compile(self.function, mode=self.mode)

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


def make(kind: str, recorder: Any, prepared: str, rehearse: bool) -> Any:
    """The side of that name."""
    if kind == "torch":
        return Torch("cpu" if rehearse else "cuda")
    return HeronGpu(recorder, prepared) if kind == "heron" else XlaGpu("cpu" if rehearse else "cuda")


def reply_of(side: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Do what one request asks for."""
    match request["do"]:
        case "device":
            return side.device()
        case "versions":
            return {"versions": side.versions()}
        case "facts":
            return {"facts": side.facts()}
        case "kernels":
            return {"kernels": side.kernels(request["repeats"])}
        case "parse" if hasattr(side, "name"):
            stem = Path(request["path"]).name.removesuffix(".hlo")
            side.name(stem.removesuffix(".small"), stem.endswith(".small"))
    return answer(side, request)


@click.command()
@click.argument("kind", type=click.Choice(["heron", "xla", "torch"]))
@click.option("--rehearse", is_flag=True)
@click.option("--prepared", default="")
def main(kind: str, rehearse: bool, prepared: str) -> None:
    """Serve requests until stdin ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever libraries print goes to stderr
    problem = ""
    with contextlib.ExitStack() as stack:
        side: Any = None
        try:
            recorder = None
            if rehearse and kind == "heron":
                from tests.rehearsal.compiling import rehearsed

                recorder = stack.enter_context(rehearsed(memory=8 << 30))
            side = make(kind, recorder, prepared, rehearse)
            if kind == "xla":
                warm_up(side)
        except Exception as error:  # told with the first request; the others can still be measured
            problem = _line(error)
        for line in sys.stdin:
            try:
                reply = {"error": problem} if problem else reply_of(side, json.loads(line))
            except Exception as error:  # a program one side refuses is a row of the table, not the end
                reply = {"error": _line(error)}
            print(json.dumps(reply), file=replies, flush=True)


def _line(error: Exception) -> str:
    said = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {' '.join(s.strip() for s in said[:4])}"[:600]


if __name__ == "__main__":
    main()

"""Programs for parts of the GPU path that no real program reaches: ``python -m tests.gpu.reach NAME [--rehearse]``.

Each runs four times on NumPy arrays and eight times on arrays of the device, whose addresses change, and is held against
the evaluator. The last line printed is JSON: whether values agree, what is wrong if not, what became of its graphs. The
exit status is 1 for wrong values. A program of block kernels is skipped without Triton. ``--full``: at the size of `benchmarks.gpu`, not of a rehearsal.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import click
import numpy as np

import heron
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.runtime.cuda.array import DeviceArray, put
from heron.runtime.cuda.executable import CudaExecutable
from heron.targets.triton import missing
from tests.gpu.texts import ATOMICS, EMPTY_BRANCH, F8, GELU, HISTOGRAM, HOST, LAYERS, OFFLOADED, PAIRS, SCAN, SORT
from tests.runtime.cuda.programs import BRANCHES, FACTORS, LOOPS, SUM

#: calls on arrays of the device: more than graphs are kept, so that nodes of one are changed to other addresses
CALLS = 8


@dataclass(frozen=True)
class Reach:
    """A program and the part of the path that it is for.

    Attributes:
        text: HLO with ``{n}`` for its size, ``{n-1}`` for one less; ``sizes``: of a rehearsal, and in full.
        inputs: made from a generator and the size.
        options: of the compile; ``environment``: variables of the run.
        emitters: of kernels that the program must have.
        steps: texts that ``--to graph`` must hold.
        rtol, atol: of values; integers are compared exactly.
        same_bits: whether every call gives the same bits; ``offloads``: whether it keeps arrays on the host.
        refusal: the code of the error that calls must end with.
    """

    text: str
    sizes: tuple[int, int]
    inputs: Callable[[np.random.Generator, int], list[np.ndarray]]
    options: Options = field(default_factory=Options)
    environment: tuple[tuple[str, str], ...] = ()
    emitters: frozenset[str] = frozenset()
    steps: tuple[str, ...] = ()
    rtol: float = 1e-5
    atol: float = 1e-5
    same_bits: bool = True
    donates: bool = False
    offloads: bool = False
    refusal: str = ""

    def source(self, full: bool) -> str:
        """The program at its size, as HLO."""
        n = self.sizes[full]
        return self.text.replace("{n}", str(n)).replace("{n-1}", str(n - 1))

    def module(self, full: bool) -> Module:
        """The program at its size."""
        return heron.parse(self.source(full))


def _numbers(r: np.random.Generator, n: int) -> list[np.ndarray]:
    return [r.integers(-(2**31), 2**31 - 1, n).astype(np.int32)]


def _floats(r: np.random.Generator, n: int) -> list[np.ndarray]:
    x = r.standard_normal(n, np.float32)
    x[:: max(1, n // 7)] = -0.0
    x[1 :: max(1, n // 5)] = np.nan
    return [x]


def _bins(r: np.random.Generator, n: int) -> list[np.ndarray]:
    return [r.integers(-3, 260, (n, 1)).astype(np.int32)]


def _matrices(dtype: Any) -> Callable[[np.random.Generator, int], list[np.ndarray]]:
    return lambda r, n: [(r.standard_normal((n, n), np.float32) / np.sqrt(n)).astype(dtype) for _ in range(2)]


def _definite(r: np.random.Generator, n: int) -> list[np.ndarray]:
    return [np.eye(n, dtype=np.float32) * n + r.random((n, n), np.float32) / 4]


def _programs() -> dict[str, Reach]:
    import ml_dtypes

    small, full = 65536, 1 << 22
    bf16, f8 = _matrices(ml_dtypes.bfloat16), _matrices(ml_dtypes.float8_e4m3fn)
    product = Reach(GELU, (256, 2048), bf16, rtol=2e-2, atol=2e-2)
    return {
        "radix_sort": Reach(SORT, (small, full), _numbers),
        "sort_of_pairs": Reach(PAIRS, (small, full), _floats),
        "scan": Reach(SCAN, (small, full), _numbers),
        "histogram": Reach(HISTOGRAM, (small, full), _bins),
        "float_atomics": Reach(ATOMICS, (4096, full), _bins, Options(deterministic=False), same_bits=False),
        "copy_engine": replace(product, options=Options(tma="on"), emitters=frozenset({"block"})),
        "fetching_warps": replace(product, options=Options(tma="specialized"), emitters=frozenset({"block"})),
        "f8": Reach(F8, (64, 4096), f8, Options(math="reassociate"), rtol=1e-3, atol=1e-3),
        "host_step": Reach(
            HOST, (8, 512), _definite, Options(libraries="none"), steps=("host: ",), rtol=1e-3, atol=1e-3
        ),
        "library_between_graphs": Reach(
            FACTORS,
            (8, 8),
            lambda r, n: [*_definite(r, n), np.array(0, np.int32)],
            steps=("stream: ",),
            rtol=1e-3,
            atol=1e-3,
        ),
        "branches_not_taken": Reach(
            BRANCHES,
            (128, 128),
            lambda r, n: [np.array(0, np.int32), _matrices(np.float32)(r, n)[0]],
            rtol=1e-3,
            atol=1e-3,
        ),
        "empty_branch": Reach(
            EMPTY_BRANCH, (1000, full), lambda r, n: [np.array(1, np.int32), r.random(n, np.float32)]
        ),
        "loops": Reach(LOOPS, (8, 8), lambda r, n: [r.random(n, np.float32)], steps=("while ",)),
        "offloaded": Reach(
            OFFLOADED, (1000, full), lambda r, n: [r.random(n, np.float32)], offloads=True, steps=("copy #",)
        ),
        "offloaded_layers": Reach(
            LAYERS, (64, 1 << 18), lambda r, n: [r.random(n, np.float32)], offloads=True, steps=("while ",)
        ),
        "donation": Reach(SUM, (1000, 1000), lambda r, n: [r.random(n, np.float32) for _ in range(2)], donates=True),
        "pool_limit": Reach(
            GELU,
            (512, 2048),
            bf16,
            environment=(("HERON_CUDA_ALLOCATOR", "pool"), ("HERON_CUDA_MEMORY", "600000")),
            refusal="RUN043",
        ),
        "pool": Reach(GELU, (64, 2048), bf16, environment=(("HERON_CUDA_ALLOCATOR", "pool"),), rtol=2e-2, atol=2e-2),
    }


PROGRAMS = _programs()


def check(name: str, full: bool, recorder: Any) -> tuple[list[str], dict[str, Any]]:
    """Run a program; what is wrong, and what became of its graphs."""
    case = PROGRAMS[name]
    module = case.module(full)
    arrays = case.inputs(np.random.default_rng(0), case.sizes[full])
    wanted = list(heron.evaluate(module, *arrays))
    if recorder is None:
        made: Any = heron.compile(module, "cuda", case.options)
    else:
        from tests.rehearsal.compiling import compile

        made = compile(module, recorder, options=case.options)
    wrong = misses(case, made)
    if case.refusal:
        return wrong + _not_refused(case, made, arrays), {}
    for turn in range(4):
        wrong = wrong or [f"call {turn}: {w}" for w in _differences(case, made.run(arrays), wanted)]
    wrong = wrong or _on_device(case, made, arrays, wanted)
    facts = made.load().facts()
    return wrong + [f"no graph: {why}" for why in facts["refused"]], facts


def _not_refused(case: Reach, made: CudaExecutable, arrays: list[np.ndarray]) -> list[str]:
    """What is wrong with the error of calls: each must end with it, and say so for the program."""
    for _ in range(2):
        try:
            made.run(arrays)
        except HeronError as error:
            if error.code != case.refusal or not error.why:
                return [error.render()]
        else:
            return [f"no error {case.refusal}"]
    return []


def misses(case: Reach, made: CudaExecutable) -> list[str]:
    """The parts of the path that the program was to reach, and does not."""
    there, graph = {k.emitter for k in made.kernels}, made.stage("graph")
    missing = [f"no kernel of the emitter {e}, but {', '.join(sorted(there))}" for e in sorted(case.emitters - there)]
    if case.offloads and not made.assignment.host_bytes:
        missing.append("no array is in the host's memory")
    return missing + [f"nothing of the plan is '{s}'" for s in case.steps if s not in graph]


def _on_device(case: Reach, made: CudaExecutable, arrays: list[np.ndarray], wanted: list[np.ndarray]) -> list[str]:
    """Calls on arrays of the device, other addresses each time; results are kept until the end."""
    device, kept = made.device, []
    for _ in range(CALLS):
        given: list[DeviceArray] = [put(a, device) for a in arrays]
        kept.append(made.on_device(*given, donate=case.donates))
    found = [[a.numpy() for a in outputs] for outputs in kept]
    for n, outputs in enumerate(found):
        if wrong := _differences(case, outputs, wanted):
            return [f"call {n} on the device: {w}" for w in wrong]
    bits = {tuple(a.tobytes() for a in outputs) for outputs in found}
    return [f"{len(bits)} different results of {CALLS} calls"] if case.same_bits and len(bits) > 1 else []


def _differences(case: Reach, got: list[np.ndarray], wanted: list[np.ndarray]) -> list[str]:
    if len(got) != len(wanted):
        return [f"{len(got)} outputs instead of {len(wanted)}"]
    found = []
    for n, (a, b) in enumerate(zip(got, wanted, strict=True)):
        kind = np.float64 if a.dtype.kind not in "biu" else a.dtype
        close = {} if a.dtype.kind in "biu" else {"rtol": case.rtol, "atol": case.atol, "equal_nan": True}
        same = np.isclose(a.astype(kind), b.astype(kind), **close) if close else a == b
        if not np.all(same):
            found.append(f"output {n}: {np.size(same) - np.count_nonzero(same)} of {np.size(same)} elements differ")
    return found


@click.command()
@click.argument("name", type=click.Choice(sorted(PROGRAMS)))
@click.option("--full", is_flag=True, help="At full size.")
@click.option("--rehearse", is_flag=True, help="On a driver that records.")
def main(name: str, full: bool, rehearse: bool) -> None:
    """Run one of the programs."""
    facts: dict[str, Any] = {"name": name, "full": full}
    if "block" in PROGRAMS[name].emitters and (why := missing()):
        click.echo(json.dumps({**facts, "wrong": [], "skipped": why}))
        return
    os.environ.update(PROGRAMS[name].environment)
    with contextlib.ExitStack() as stack:
        recorder = None
        if rehearse:
            from tests.rehearsal.compiling import rehearsed

            recorder = stack.enter_context(rehearsed(memory=4 << 30))
        try:
            facts["wrong"], facts["device"] = check(name, full, recorder)
        except HeronError as error:
            facts["wrong"] = [error.render()]
    click.echo(json.dumps(facts))
    sys.exit(1 if facts["wrong"] else 0)


if __name__ == "__main__":
    main()

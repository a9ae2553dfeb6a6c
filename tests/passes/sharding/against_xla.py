"""Bytes on the wire and memory of a device, of sharded programs as heron compiles them and as XLA:CPU does.

    python -m tests.passes.sharding.against_xla [NAME ...] [--folder FOLDER] [--values]

Programs are those of `benchmarks.devices.wider`, or the files NAME.mlir of a folder, which are for 8 devices at most.
"memory" is arguments, results and scratch of a device, those that share memory once; XLA does not count constants. ``--values``: also run heron's
program on the evaluator's devices against JAX on one device.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8 " + os.environ.get("XLA_FLAGS", "")
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jax._src import compiler  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jax._src.lib import _jax as lib  # noqa: E402 # pyright: ignore[reportPrivateImportUsage]
from jax.sharding import NamedSharding, PartitionSpec  # noqa: E402

from benchmarks.devices import wider_ops  # noqa: E402, F401  it registers programs
from benchmarks.devices.case import Case  # noqa: E402
from benchmarks.devices.wider import WIDER  # noqa: E402
from heron import targets  # noqa: E402
from heron.backends.compiler import Compilation  # noqa: E402
from heron.buffers.memory import Memory  # noqa: E402
from heron.evaluator import evaluate_devices  # noqa: E402
from heron.frontends.loading import load  # noqa: E402
from heron.hlo.ir.module import Module  # noqa: E402
from heron.hlo.text import parse  # noqa: E402
from heron.options import Options  # noqa: E402
from heron.passes.framework.shares import joined, shares  # noqa: E402
from heron.trace import Trace  # noqa: E402
from tests.passes.sharding.programs import wire_bytes  # noqa: E402


@dataclass(frozen=True)
class Found:
    """Bytes of one device: on the wire, and of memory; and the collectives in words."""

    sent: float
    memory: int
    scratch: int
    collectives: str


def lowered(case: Case) -> Any:
    """A program as JAX lowers it."""

    def placed(specs: Any) -> Any:
        return jax.tree.map(
            lambda s: NamedSharding(case.mesh, s), specs, is_leaf=lambda s: isinstance(s, PartitionSpec)
        )

    more = {} if case.out_specs is None else {"out_shardings": placed(case.out_specs)}
    jitted = jax.jit(case.function, in_shardings=placed(case.in_specs), donate_argnums=case.donate, **more)
    return jitted.lower(*case.arguments)


def by_xla(text: str) -> Found:
    """What XLA:CPU makes of a program in StableHLO."""
    with mlir.make_ir_context():
        module = mlir.ir.Module.parse(text)  # pyright: ignore[reportPrivateImportUsage]
        count = int(str(module.operation.attributes["mhlo.num_partitions"]).split()[0])
        devices = jax.devices()[:count]
        options: Any = compiler.get_compile_options(1, count, device_assignment=np.arange(count).reshape(1, count))
        options.executable_build_options.use_spmd_partitioning = True
        options.executable_build_options.use_shardy_partitioner = "sdy.mesh" in text
        executable = devices[0].client.compile_and_load(module, lib.DeviceList(tuple(devices)), options)
    stats = executable.get_compiled_memory_stats()
    memory = stats.argument_size_in_bytes + stats.output_size_in_bytes - stats.alias_size_in_bytes
    made = parse(executable.hlo_modules()[0].to_string())
    sent, counts = wire_bytes(made)
    return Found(sent, memory + stats.temp_size_in_bytes, stats.temp_size_in_bytes, _words(counts))


def by_heron(module: Module) -> tuple[Found, Module]:
    """What heron makes of a program for the CPU, and its program of one device before it is optimised for one."""
    compilation = Compilation(module, targets.get("cpu"), Options(), Trace())
    made = compilation.passes("partitioned").clone()
    memory = Memory.of(compilation.buffers)
    sent, counts = wire_bytes(compilation.scheduled)
    return Found(sent, memory.peak - memory.constants, memory.temp, _words(counts)), made


def _words(counts: Any) -> str:
    return ", ".join(f"{n:g} {kind}" for kind, n in sorted(counts.items()))


def error(case: Case, module: Module, made: Module) -> float:
    """The largest difference of a result from JAX's on one device, divided by the largest magnitude in it."""
    want = jax.tree.leaves(jax.jit(case.function)(*case.arguments)) if not _is_manual(case) else None
    got = joined(module, made, evaluate_devices(made, shares(module, made, _kept(case, module))))
    if want is None:
        want = jax.tree.leaves(lowered(case).compile()(*case.arguments))
    worst = 0.0
    for a, b in zip(got, map(np.asarray, want), strict=True):
        wide = np.complex128 if b.dtype.kind == "c" else np.float64
        scale = max(float(np.abs(b.astype(wide)).max(initial=0.0)), 1e-30)
        worst = max(worst, float(np.abs(a.astype(wide) - b.astype(wide)).max(initial=0.0)) / scale)
    return worst


def _is_manual(case: Case) -> bool:
    return "shard_map" in str(case.function.__code__.co_names) + str(case.function.__code__.co_consts)


def _kept(case: Case, module: Module) -> list[np.ndarray]:
    leaves = [np.asarray(x) for x in jax.tree.leaves(case.arguments)]
    kept = sorted(lowered(case).compile()._executable._kept_var_idx)
    return [leaves[n] for n in kept] if len(kept) == len(module.entry.parameters) else leaves


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--values", action="store_true")
    args = parser.parse_args()
    known = sorted(p.stem for p in args.folder.glob("*.mlir")) if args.folder else list(WIDER)
    ratios: dict[str, list[float]] = {"bytes": [], "memory": []}
    bad = 0
    print(f"{'program':22s} {'bytes':>9s} {'XLA':>9s} {'ratio':>5s} {'memory':>9s} {'XLA':>9s} {'ratio':>5s} {'s':>5s}")
    for name in args.names or known:
        try:
            case = None if args.folder else WIDER[name]()
            text = (args.folder / f"{name}.mlir").read_text() if case is None else lowered(case).as_text()
            theirs = by_xla(text)
            module = load(text)
            began = time.process_time()
            ours, made = by_heron(module.clone())
            spent = time.process_time() - began
            pair = max(ours.sent, 1) / max(theirs.sent, 1), ours.memory / theirs.memory
            for key, ratio in zip(ratios, pair, strict=True):
                ratios[key].append(ratio)
            print(
                f"{name:22s} {ours.sent:9.0f} {theirs.sent:9.0f} {pair[0]:5.2f} {ours.memory:9d} {theirs.memory:9d}"
                f" {pair[1]:5.2f} {spent:5.2f}  {ours.collectives} | {theirs.collectives}",
                flush=True,
            )
            if args.values and case is not None:
                print(f"{'':22s} error {error(case, module, made):.1e}", flush=True)
        except Exception as problem:
            bad += 1
            print(f"{name:22s} {type(problem).__name__}: {(str(problem).splitlines() or [''])[0][:160]}", flush=True)
    for key, found in ratios.items():
        if found:
            mean = exp(sum(map(log, found)) / len(found))
            above = sum(r > 1 for r in found)
            print(
                f"{key}: geometric mean {mean:.2f}, the largest {max(found):.2f}, {above} of {len(found)} above XLA's"
            )
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()

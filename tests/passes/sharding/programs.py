"""Sharded programs of a folder: partitioned, run on the evaluator against their goldens, bytes and memory beside XLA's.

    python -m tests.passes.sharding.programs FOLDER [NAME …] [--write OUT]

The folder has `stablehlo/NAME.mlir`, `goldens/NAME.npz` (global arrays in0…, out0… and `meta`, a JSON text) and
`collectives.json`, which tells for each program the bytes that XLA's collectives send, as rings, by known trip counts,
and the memory of a device. "beyond" counts reshards in which a share on the way is larger than before and after:
gathers of whole arrays are among them. "memory" is arguments, results and scratch, as the CPU's program has them; XLA does not count
constants.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from heron import targets
from heron.analysis.cost.communication import WAYS
from heron.analysis.cost.program import trips_of
from heron.backends.compiler import Compilation
from heron.buffers.memory import Memory
from heron.evaluator import evaluate_devices
from heron.frontends.loading import load
from heron.hlo.ir import replica_groups
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.devices import device_pipelines
from heron.passes.framework.context import PassContext
from heron.passes.framework.shares import joined, shares
from heron.trace import Trace

#: relative to the largest value of an output
TOLERANCE = {"bfloat16": 3e-2, "float16": 1e-2}


def wire_bytes(module: Module) -> tuple[float, Counter[str]]:
    """The bytes that each device of a partitioned program sends in rings, and how often each collective runs.

    Loops count as often as their counter says, those without one once.
    """
    counts: Counter[str] = Counter()
    return _sent(module.entry, module.num_partitions, 1, counts), counts


def _sent(c: Computation, devices: int, times: float, counts: Counter[str]) -> float:
    total = 0.0
    for i in c.instructions:
        if i.opcode in WAYS:
            counts[i.opcode] += int(times)
            total += times * _sent_by(i, devices)
        inner = times * (trips_of(i) or 1) if i.opcode == "while" else times
        if i.opcode in ("while", "conditional", "call"):
            total += sum(_sent(callee, devices, inner, counts) for callee in i.called)
    return total


def _sent_by(i: Instruction, devices: int) -> float:
    result = sum(s.byte_size for _, s in i.shape.leaves())
    if i.opcode == "collective-permute":
        return result * any(s != t for s, t in i.source_target_pairs)
    groups = replica_groups.parse(i.replica_groups)
    members = len(groups[0]) if groups else devices
    return WAYS[i.opcode].part(members) * result * (members if i.opcode == "reduce-scatter" else 1)


def xla_bytes(entry: dict[str, Any]) -> float:
    """The bytes of XLA's program, by the same count."""
    return sum(kind["run_wire_bytes"] for kind in entry["totals"].values())


def xla_memory(entry: dict[str, Any]) -> int:
    """The bytes of a device in arguments, results and scratch of XLA's program."""
    return entry["argument_bytes"] + entry["output_bytes"] + entry["temp_bytes"]


def memory(made: Module) -> int:
    """The same of a partitioned program, compiled for the CPU."""
    found = Memory.of(Compilation(made.clone(), targets.get("cpu"), Options(), Trace()).buffers)
    return found.arguments + found.outputs + found.temp


def check(module: Module, made: Module, golden: Path) -> float:
    """The largest error relative to an output's largest value. Raises AssertionError for a wrong value."""
    z = np.load(golden)
    meta = json.loads(str(z["meta"]))
    inputs = [_typed(z[f"in{k}"], meta["inputs"][k]["dtype"]) for k in meta["kept_inputs"]]
    results = joined(module, made, evaluate_devices(made, shares(module, made, inputs)))
    worst = 0.0
    for k, (got, stated) in enumerate(zip(results, meta["outputs"], strict=True)):
        want = _typed(z[f"out{k}"], stated["dtype"])
        assert got.shape == want.shape and got.dtype == want.dtype, f"out{k}: {got.dtype}{got.shape}"
        if got.dtype.kind in "biu":
            assert (got == want).all(), f"out{k}: {int((got != want).sum())} elements differ"
            continue
        a, b = got.astype(np.complex128), want.astype(np.complex128)
        assert np.array_equal(np.isfinite(a), np.isfinite(b)), f"out{k}: other elements are finite"
        finite = np.isfinite(b)
        if finite.any():
            error = float(np.abs(a - b)[finite].max()) / max(float(np.abs(b[finite]).max()), 1e-30)
            assert error <= TOLERANCE.get(stated["dtype"], 1e-4), f"out{k}: relative error {error:.1e}"
            worst = max(worst, error)
    return worst


def _typed(x: np.ndarray, name: str) -> np.ndarray:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    return x if x.dtype == dtype else x.view(dtype)


def partitioned(path: Path, context: PassContext | None = None) -> tuple[Module, Module]:
    """The program on global arrays, and that of one device."""
    module = load(path.read_text())
    made = module.clone()
    context = context or PassContext()
    for pipeline in device_pipelines().values():
        pipeline.run(made, context)
    verify(made)
    return module, made


def beyond_ends(context: PassContext) -> int:
    """The reshards in which a device has more of the array on the way than before and after; no way needs less then."""
    return sum(not d.ok and "a share on the way" in d.reason for d in context.trace.decisions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", type=Path, help="write each partitioned program into this folder")
    parser.add_argument("--trace", action="store_true", help="print where an error was raised")
    args = parser.parse_args()
    known = json.loads((args.folder / "collectives.json").read_text())
    names = args.names or sorted(p.stem for p in (args.folder / "goldens").glob("*.npz"))
    ratios: list[float] = []
    room: list[float] = []
    beyond: list[int] = []
    bad = 0
    print(
        f"{'program':24s} {'error':>8s} {'bytes':>8s} {'XLA':>8s} {'ratio':>6s} {'memory':>7s} {'XLA':>7s} {'ratio':>6s} {'beyond':>6s} {'s':>5s}  collectives"
    )
    for name in names:
        start = time.perf_counter()
        try:
            context = PassContext()
            module, made = partitioned(args.folder / "stablehlo" / f"{name}.mlir", context)
            beyond.append(beyond_ends(context))
            seconds = time.perf_counter() - start
            if args.write:
                args.write.mkdir(parents=True, exist_ok=True)
                (args.write / f"{name}.hlo").write_text(str(made))
            sent, counts = wire_bytes(made)
            theirs = xla_bytes(known[name])
            ratios.append(max(sent, 1) / max(theirs, 1))
            taken, held = memory(made), xla_memory(known[name])
            room.append(taken / held)
            kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))
            error = check(module, made, args.folder / "goldens" / f"{name}.npz")
            print(
                f"{name:24s} {error:8.1e} {sent:8.0f} {theirs:8.0f} {ratios[-1]:6.2f}"
                f" {taken:7d} {held:7d} {room[-1]:6.2f} {beyond[-1]:6d} {seconds:5.2f}  {kinds}"
            )
        except Exception as error:
            bad += 1
            print(f"{name:24s} {type(error).__name__}: {(str(error).splitlines() or [''])[0][:160]}", flush=True)
            if args.trace:
                traceback.print_exc()
    if ratios:
        print(
            f"bytes: geometric mean of the ratios {np.exp(np.mean(np.log(ratios))):.3f}, the largest {max(ratios):.2f}"
        )
        print(f"memory: geometric mean of the ratios {np.exp(np.mean(np.log(room))):.3f}, the largest {max(room):.2f}")
        print(f"reshards with a larger share on the way: {sum(beyond)}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()

"""What ``--auto`` makes of programs without shardings: cost and memory promised, memory as compiled, values.

    python -m tests.passes.sharding.auto [NAME ...] [--mesh x=8 …] [--share 0.4] [--target cpu]

``--share``: the limit of memory, as a part of what one device needs. Columns: bytes that the program sends as
propagation leaves it and with `--auto`, estimated memory, memory of the compiled program of a device, error against JAX.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

import jax
import numpy as np

from benchmarks.devices.plain import PLAIN
from heron import targets
from heron.backends.compiler import Compilation
from heron.buffers.memory import Memory
from heron.cli.spread import Spread
from heron.errors import HeronError
from heron.evaluator import evaluate_devices
from heron.frontends.loading import load
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.passes.framework.context import PassContext
from heron.passes.framework.shares import joined, shares
from heron.targets import Target
from heron.trace import Trace
from tests.passes.sharding.programs import wire_bytes

MESHES = ("d=8", "data=2,model=4", "data=8,model=8")


def module_of(function: Any, arguments: Any) -> Module:
    return load(jax.jit(function).lower(*arguments).as_text())


def compiled(module: Module, target: Target) -> Memory:
    return Memory.of(Compilation(module, target, Options(), Trace()).buffers)


def row(name: str, mesh: str, share: float, target: Target) -> str:
    """The figures of one program over one mesh. Raises AssertionError for wrong values."""
    function, arguments = PLAIN[name]()
    module = module_of(function, arguments)
    alone = compiled(module.clone(), target).peak
    limit = alone * share
    spread = module.clone()
    began = time.process_time()
    auto = Spread(mesh, limit=limit).over(spread, PassContext(target=target))
    spent = time.process_time() - began
    assert auto is not None
    compilation = Compilation(spread.clone(), target, Options(), Trace())
    made = compilation.passes("partitioned").clone()
    sent, peak = wire_bytes(compilation.scheduled)[0], Memory.of(compilation.buffers).peak
    inputs = [np.asarray(x) for x in jax.tree.leaves(arguments)]
    got = joined(spread, made, evaluate_devices(made, shares(spread, made, inputs)))
    worst = 0.0
    for a, b in zip(got, map(np.asarray, jax.tree.leaves(jax.jit(function)(*arguments))), strict=True):
        worst = max(worst, float(np.abs(a - b).max()) / max(float(np.abs(b).max()), 1e-30))
    assert worst < 1e-4, f"{name} over {mesh}: error {worst:.1e}"
    before, after = auto.found.before, auto.found.after
    return (
        f"{name:22s} {mesh:15s} {before.cost:9.0f} {after.cost:9.0f} {sent:8.0f} {alone:8d} {limit:8.0f}"
        f" {after.memory:8.0f} {peak:8d}{'!' if peak > limit else ' '} {worst:7.0e} {spent:5.1f}  {' '.join(auto.options)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--mesh", nargs="*", default=MESHES)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--target", default="cpu")
    args = parser.parse_args()
    target, bad = targets.get(args.target), 0
    print(f"{'program':22s} {'mesh':15s} {'cost':>9s} {'--auto':>9s} {'sent':>8s} {'alone':>8s} {'limit':>8s}", end="")
    print(f" {'promised':>8s} {'compiled':>8s}  {'error':>7s} {'s':>5s}")
    for name in args.names or PLAIN:
        for mesh in args.mesh:
            try:
                print(row(name, mesh, args.share, target), flush=True)
            except (HeronError, AssertionError) as problem:
                bad += 1
                print(f"{name:22s} {mesh:15s} {str(problem).splitlines()[0][:120]}", flush=True)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()

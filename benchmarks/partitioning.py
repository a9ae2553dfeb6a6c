"""``python -m benchmarks.partitioning``: CPU time of propagation, auto-sharding and partitioning of large programs.

    python -m benchmarks.partitioning [--only TEXT] [--passes]

Programs: a train step of 7,401 instructions over 64 and 4,096 devices, with weights split over data and model; a
transformer by layers, over data, model and sequence; an unrolled loop by steps. "us" is microseconds an instruction:
where time grows with the program alone it stays. ``--passes`` adds the time of each pass. Times are the least of three.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from heron.cli.mesh import annotate, mesh_of_text
from heron.collector import collector_paused
from heron.frontends.loading import load
from heron.hlo.ir.module import Module
from heron.passes.devices import device_pipelines
from heron.passes.framework.context import PassContext

TRAIN_STEP = Path(__file__).parent.parent / "tests/workloads/hlo/gpt2_12l_train_step.hlo"


def train_step() -> tuple[Module, list[str]]:
    """The train step of GPT-2's shape: rows and columns of matrices over data and model, as by FSDP and Megatron."""
    module = load(TRAIN_STEP.read_text())
    return module, [f"{n}={s}" for n, p in enumerate(module.entry.parameters) if (s := _split(p.shape.dims))]


def _split(dims: tuple[int, ...]) -> str:
    if len(dims) == 1:
        return "model" if dims[0] > 768 else ""
    known: dict[tuple[int, ...], str] = {(50257, 768): "-,model", (64, 768): "data,-"}
    if dims in known:
        return known[dims]
    return {768: "data,model", 3072: "model,data"}.get(dims[0], "") if len(dims) == 2 else ""


def transformer(layers: int) -> tuple[Module, list[str]]:
    """Loss and gradients of a transformer whose layers are written out; batch over data, positions over sequence."""
    d, heads = 512, 16
    sizes = {"q": (d, d), "k": (d, d), "v": (d, d), "o": (d, d), "up": (d, 4 * d), "down": (4 * d, d)}
    splits = {"o": "model,-", "down": "model,-"}
    spec = jax.ShapeDtypeStruct
    weights = [{n: spec(s, np.float32) for n, s in sizes.items()} for _ in range(layers)]

    def layer(x: Any, w: Any) -> Any:
        b, t, _ = x.shape
        h = x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5)
        q, k, v = ((h @ w[n]).reshape(b, t, heads, d // heads) for n in "qkv")
        s = jnp.einsum("bqhd,bkhd->bhqk", q, k)
        s = jnp.where(jnp.tril(jnp.ones((t, t), bool)), s, -1e9)
        x = x + jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), v).reshape(b, t, d) @ w["o"]
        h = x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5)
        return x + jax.nn.gelu(h @ w["up"]) @ w["down"]

    def loss(ws: Any, x: Any) -> Any:
        for w in ws:
            x = layer(x, w)
        return jnp.mean(x * x)

    lowered = jax.jit(jax.value_and_grad(loss)).lower(weights, spec((64, 512, d), np.float32))
    module = load(lowered.as_text())
    names = [n for w in weights for n in sorted(w)]
    inputs = [f"{k}={splits.get(n, '-,model')}" for k, n in enumerate(names)]
    return module, [*inputs, f"{len(names)}=data,seq,-"]


def unrolled(steps: int) -> tuple[Module, list[str]]:
    """A recurrence written out, as by a Python loop."""
    spec = jax.ShapeDtypeStruct

    def f(w: Any, u: Any, xs: Any) -> Any:
        h = jnp.zeros((64, 256))
        for n in range(steps):
            h = jnp.tanh(h @ w + xs[n] @ u)
        return h

    shapes = [(256, 256), (64, 256), (steps, 64, 64)]
    lowered = jax.jit(f).lower(*(spec(s, np.float32) for s in shapes))
    return load(lowered.as_text()), ["0=-,model", "1=-,model", "2=-,data,-"]


def cases() -> Iterator[tuple[str, str, Any]]:
    """Name, mesh, and what makes the program."""
    for mesh in ("data=8,model=8", "data=64,model=64"):
        yield "train step", mesh, train_step
    for layers in (6, 12, 24):
        yield f"transformer, {layers} layers", "data=4,seq=2,model=8", lambda n=layers: transformer(n)
    for mesh in ("data=2,seq=2,model=2", "data=8,seq=8,model=8", "data=16,seq=16,model=16"):
        yield "transformer, 12 layers", mesh, lambda: transformer(12)
    for steps in (125, 250, 500):
        yield f"unrolled, {steps} steps", "data=8,model=8", lambda n=steps: unrolled(n)


def partition(module: Module, mesh: str, inputs: list[str]) -> tuple[float, dict[str, float], Module]:
    """CPU seconds, those by pass, and the program of one device."""
    made, by_pass = module.clone(), dict[str, float]()
    annotate(made, mesh_of_text(mesh), inputs, ())
    ctx = PassContext()
    with collector_paused():
        for pipeline in device_pipelines().values():
            for step in pipeline.steps:
                began = time.process_time()
                ctx.run_pass(step, made)
                by_pass[step.name] = by_pass.get(step.name, 0.0) + time.process_time() - began
    return sum(by_pass.values()), by_pass, made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="programs whose name has this text")
    parser.add_argument("--passes", action="store_true")
    args = parser.parse_args()
    print(f"{'program':24s} {'mesh':26s} {'devices':>7s} {'instructions':>12s} {'made':>6s} {'s':>6s} {'us':>5s}")
    for name, mesh, make in cases():
        if args.only not in name:
            continue
        module, inputs = make()
        count = sum(1 for _ in module.instructions())
        seconds, by_pass, made = min((partition(module, mesh, inputs) for _ in range(3)), key=lambda r: r[0])
        after = sum(1 for _ in made.instructions())
        devices = mesh_of_text(mesh).size
        each = 1e6 * seconds / count
        print(f"{name:24s} {mesh:26s} {devices:7,d} {count:12,d} {after:6d} {seconds:6.2f} {each:5.0f}", flush=True)
        if args.passes:
            for step, spent in sorted(by_pass.items(), key=lambda pair: -pair[1])[:5]:
                print(f"    {step:30s} {spent:.2f}")


if __name__ == "__main__":
    main()

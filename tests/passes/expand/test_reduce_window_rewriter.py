"""Scans of every form keep their values when cut in blocks; what is no long scan stays."""

from __future__ import annotations

import numpy as np
import pytest

from heron.evaluator import Evaluator
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext

REDUCERS = {
    "add": "a = T[] parameter(0) b = T[] parameter(1) ROOT c = T[] add(a, b)",
    "maximum": "a = T[] parameter(0) b = T[] parameter(1) ROOT c = T[] maximum(a, b)",
    # log(exp(a) + exp(b)), as jax.lax.cumlogsumexp has it but for NaNs
    "logaddexp": "a = T[] parameter(0) b = T[] parameter(1) m = T[] maximum(a, b) d = T[] subtract(a, b)"
    " e = T[] abs(d) n = T[] negate(e) x = T[] exponential(n) l = T[] log-plus-one(x) ROOT c = T[] add(m, l)",
}


def module_of(type_: str, dims: tuple[int, ...], window: str, reducer: str = "add", init: str = "0") -> Module:
    shape = f"{type_}[{','.join(map(str, dims))}]"
    return parse(f"""HloModule m
r {{ {REDUCERS[reducer].replace("T[", f"{type_}[")} }}
ENTRY e {{ x = {shape} parameter(0) z = {type_}[] constant({init})
  ROOT o = {shape} reduce-window(x, z), window={{{window}}}, to_apply=r }}""")


def rewritten(module: Module, block: int = 4) -> bool:
    changed = PassContext(Options(check="values")).run_pass(registry.get("reduce-window-rewriter", block=block), module)
    verify(module)
    return changed


def longest_window(module: Module) -> int:
    windows = [i.attrs["window"] for i in module.instructions() if i.opcode == "reduce-window"]
    return max(w.size for window in windows for w in window)


@pytest.mark.parametrize("n", [9, 16, 17, 23, 64, 65, 150])
@pytest.mark.parametrize("direction", ["prefix", "suffix", "exclusive prefix", "exclusive suffix"])
def test_lengths_and_directions(n: int, direction: str) -> None:
    pads = {
        "prefix": f"{n - 1}_0",
        "suffix": f"0_{n - 1}",
        "exclusive prefix": f"{n}_-1",
        "exclusive suffix": f"-1_{n}",
    }
    # an initial value that is no identity is counted once: integers are compared exactly
    module = module_of("s32", (2, n, 3), f"size=1x{n}x1 pad=0_0x{pads[direction]}x0_0", init="5")
    x = np.random.default_rng(n).integers(-9, 9, (2, n, 3)).astype(np.int32)
    wanted = Evaluator(module).run(x)
    assert rewritten(module)
    assert longest_window(module) <= 8
    np.testing.assert_array_equal(Evaluator(module).run(x), wanted)


@pytest.mark.parametrize("reducer", REDUCERS)
@pytest.mark.parametrize("type_", ["f32", "f64"])
@pytest.mark.parametrize("d", [0, 1])
def test_reducers(reducer: str, type_: str, d: int) -> None:
    window = ("size=40x1 pad=39_0x0_0", "size=1x40 pad=0_0x39_0")[d]
    init = "0" if reducer == "add" else "-1e30" if reducer == "logaddexp" else "-inf"
    assert rewritten(module_of(type_, ((40, 3), (3, 40))[d], window, reducer, init))


@pytest.mark.parametrize("pad", ["39_0", "0_39", "40_-1"])
def test_several_arrays_in_order(pad: str) -> None:
    """Composition of x -> a x + b does not commute."""
    module = parse(f"""HloModule m
r {{ a = s32[] parameter(0) b = s32[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3)
  e = s32[] multiply(a, c) f = s32[] multiply(b, c) g = s32[] add(f, d) ROOT t = (s32[], s32[]) tuple(e, g) }}
ENTRY e {{ x = s32[3,40] parameter(0) y = s32[3,40] parameter(1) one = s32[] constant(1) zero = s32[] constant(0)
  ROOT o = (s32[3,40], s32[3,40]) reduce-window(x, y, one, zero), window={{size=1x40 pad=0_0x{pad}}}, to_apply=r }}""")
    xs = [np.random.default_rng(3).integers(-2, 3, (3, 40)).astype(np.int32) for _ in range(2)]
    reference = _compositions(xs, pad)
    assert rewritten(module)
    for found, wanted in zip(Evaluator(module).run(*xs), reference, strict=True):
        np.testing.assert_array_equal(found, wanted)


def _compositions(xs: list[np.ndarray], pad: str) -> list[np.ndarray]:
    """The scan by definition, for a combiner that the evaluator may fold from either end."""
    a, b = xs
    n = a.shape[1]
    out = [np.ones_like(a), np.zeros_like(b)]
    for k in range(n):
        first, last = {"39_0": (0, k + 1), "0_39": (k, n), "40_-1": (0, k)}[pad]
        for j in range(first, last):
            out[0][:, k], out[1][:, k] = out[0][:, k] * a[:, j], out[1][:, k] * a[:, j] + b[:, j]
    return out


@pytest.mark.parametrize(
    ("dims", "window"),
    [
        ((3, 8), "size=1x8 pad=0_0x7_0"),  # short
        ((3, 40), "size=1x39 pad=0_0x38_0"),  # slides
        ((40, 40), "size=40x40 pad=39_0x39_0"),  # two dimensions
        ((3, 40), "size=1x40 pad=0_0x42_-3"),  # delayed by more than one
    ],
)
def test_others_stay(dims: tuple[int, ...], window: str) -> None:
    assert not rewritten(module_of("s32", dims, window))

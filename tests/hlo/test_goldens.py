"""The evaluator gives what XLA:CPU gave, for every real program."""

from __future__ import annotations

import json

import numpy as np
import pytest

from heron.evaluator import evaluate
from heron.hlo.ir.shape import Shape
from heron.hlo.text import parse
from tests.support import NAMES, golden_values, program

RTOL = {"f16": 1e-2, "bf16": 1e-2, "f32": 1e-5, "c64": 1e-5, "f64": 1e-10, "c128": 1e-10}

#: Key biases: attention does not change when a constant is added to all scores of a query, so their gradient is zero
#: in exact arithmetic. What either program has there is its own rounding noise, over Adam's epsilon; it must stay
#: noise: far below the learning rate of 1e-3 that any real gradient would move a bias by.
NOISE = {
    ("gpt2_train_step", 5): slice(16, 32),
    ("gpt2_12l_train_step", 5): slice(16, 32),
    ("gpt2_12l_train_step", 17): slice(16, 32),
    ("gpt2_12l_train_step", 29): slice(16, 32),
}
NOISE_BOUND = 1e-5


def close(got: np.ndarray, want: np.ndarray, shape: Shape) -> np.ndarray:
    """Where a result is right: integers exactly, floats within a tolerance relative to the largest value expected."""
    t = shape.element_type
    if t.name not in RTOL:
        return got == want
    wide = np.complex128 if t.is_complex else np.float64
    got, want = got.astype(wide), want.astype(wide)
    largest = np.abs(want[np.isfinite(want)]).max(initial=0)
    return np.isclose(got, want, rtol=RTOL[t.name], atol=RTOL[t.name] * largest, equal_nan=True)


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
@pytest.mark.parametrize("name", NAMES)
def test_golden(name: str, platform: str) -> None:
    module = parse(program(name, platform=platform).read_text())
    with np.load(golden_values(name)) as stored:
        kept = json.loads(str(stored["meta"]))["kept_inputs"]
        inputs = [stored[f"in{k}"] for k in kept]
        wanted = [stored[f"out{k}"] for k in range(sum(k.startswith("out") for k in stored.files))]
    leaves = [s for p in module.entry.parameters for _, s in p.shape.leaves()]
    results = evaluate(module, *(a.view(s.element_type.dtype) for a, s in zip(inputs, leaves, strict=True)))
    shapes = [s for _, s in module.entry.root.shape.leaves()]
    for n, (got, raw, shape) in enumerate(zip(results, wanted, shapes, strict=True)):
        want = raw.view(shape.element_type.dtype)
        assert got.shape == want.shape and got.dtype == want.dtype, f"output {n}"
        ok = close(got, want, shape)
        noise = NOISE.get((name, n))
        if noise is not None:
            assert max(np.abs(got[noise]).max(), np.abs(want[noise]).max()) < NOISE_BOUND
            ok[noise] = True
        assert ok.all(), f"output {n}: {(~ok).sum()} of {ok.size} differ: {got[~ok][:5]}, wanted {want[~ok][:5]}"

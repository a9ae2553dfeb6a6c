"""Table-driven tests: a small program must give the same values in the evaluator and in XLA:CPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import ElementType
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from tests import xla_cpu

TOLERANCE = {"f16": 1e-3, "bf16": 1e-2, "f64": 1e-12, "c128": 1e-12}


def program(body: str, before: str = "") -> str:
    """HLO text of a module with these instructions in its entry and these computations before it."""
    return f"HloModule test\n{before}\nENTRY entry {{\n{body.strip()}\n}}\n"


def reducer(name: str, element_type: str, opcode: str) -> str:
    """A computation of one op on two scalars."""
    t = element_type
    return (
        f"{name} {{\n {name}a = {t}[] parameter(0)\n {name}b = {t}[] parameter(1)\n"
        f" ROOT {name}c = {t}[] {opcode}({name}a, {name}b)\n}}\n"
    )


def draw(shape: Shape, random: np.random.Generator) -> np.ndarray:
    """Values of a shape: normal floats, small integers."""
    t, dims = shape.element_type, shape.dims
    if t.kind == "pred":
        return random.integers(0, 2, dims).astype(bool)
    if t.is_integer:
        low, high = max(-100, -(1 << (t.bits - 1))) if t.is_signed else 0, min(100, (1 << (t.bits - 1)) - 1)
        return random.integers(low, high, dims, endpoint=True).astype(t.dtype)
    value = random.normal(size=dims)
    return (value + 1j * random.normal(size=dims) if t.is_complex else value.astype(np.float32)).astype(t.dtype)


def inputs(module: Module, seed: int = 0) -> list[np.ndarray]:
    """Drawn inputs for a module's parameters."""
    random = np.random.default_rng(seed)
    return [draw(p.shape, random) for p in module.entry.parameters]


def same(got: np.ndarray, want: np.ndarray, t: ElementType, rtol: float | None = None) -> np.ndarray:
    """Where two results agree: integers exactly, floats within the type's tolerance, NaN with NaN."""
    if not (t.is_float or t.is_complex):
        return got == want
    rtol = TOLERANCE.get(t.name, 1e-5) if rtol is None else rtol
    wide = np.complex128 if t.is_complex else np.float64
    return np.isclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=rtol, equal_nan=True)


def check(text: str, *arrays: np.ndarray, rtol: float | None = None, bits: bool = False) -> None:
    """The evaluator and XLA:CPU agree on `text` for `arrays` (drawn when none are given)."""
    module = parse(text)
    verify(module)
    values: Sequence[np.ndarray] = arrays or inputs(module)
    got, want = evaluate(module, *values), xla_cpu.run(text, *values)
    shapes = [s for _, s in module.entry.root.shape.leaves()]
    assert len(got) == len(want) == len(shapes)
    for n, (ours, theirs, shape) in enumerate(zip(got, want, shapes, strict=True)):
        assert ours.dtype == shape.element_type.dtype and ours.shape == theirs.shape == shape.dims, f"output {n}"
        if bits:  # XLA gives random bits back as unsigned numbers, whatever the type asked for
            assert ours.tobytes() == theirs.tobytes(), f"output {n}"
            continue
        ok = same(ours, theirs, shape.element_type, rtol)
        at = np.argwhere(~ok)[:5].tolist()
        assert ok.all(), f"output {n} differs at {at}: {ours[~ok][:5]}, XLA has {theirs[~ok][:5]}"

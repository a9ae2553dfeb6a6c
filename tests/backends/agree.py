"""One-op programs on a target against the evaluator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import heron
from heron.compiling import compile
from heron.hlo.ir.module import Module
from heron.passes.framework.checks import random_array
from heron.runtime.executable import Executable

TARGETS = ("cpu", "sim:sm_90")
_TOLERANCE = {"f32": 2e-5, "f64": 1e-12, "c64": 2e-5, "c128": 1e-12, "bf16": 2e-2, "f16": 3e-3}


def program(parameters: Sequence[str], result: str, op: str, extra: str = "") -> Module:
    """``ROOT r = RESULT OP`` where OP speaks of parameters p0, p1, …; `extra` holds other computations."""
    lines = [f"  p{n} = {shape} parameter({n})" for n, shape in enumerate(parameters)]
    return heron.parse(
        f"HloModule m\n\n{extra}\nENTRY main {{\n" + "\n".join(lines) + f"\n  ROOT r = {result} {op}\n}}\n"
    )


def random_inputs(module: Module, seed: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [random_array(p.shape.element_type, p.shape.dims, rng) for p in module.entry.parameters]


def assert_agrees(module: Module, target: str, inputs: list[np.ndarray] | None = None) -> Executable:
    """Every output close to the evaluator's for its type, measured by the largest magnitude; integers equal."""
    inputs = random_inputs(module) if inputs is None else inputs
    exe = compile(module, target)
    wanted = heron.evaluate(module, *inputs)
    for n, (found, value, shape) in enumerate(zip(exe.run(inputs), wanted, exe.signature.outputs, strict=True)):
        assert found.dtype == value.dtype and found.shape == value.shape, n
        if shape.element_type.name not in _TOLERANCE:
            np.testing.assert_array_equal(found, value, f"output {n}")
            continue
        wide = np.complex128 if shape.element_type.is_complex else np.float64
        scale = float(np.abs(value[np.isfinite(value)].astype(wide)).max(initial=0))
        atol = _TOLERANCE[shape.element_type.name] * max(scale, 1e-30)
        np.testing.assert_allclose(found.astype(wide), value.astype(wide), rtol=0, atol=atol, err_msg=f"output {n}")
    return exe

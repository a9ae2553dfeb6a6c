"""The simplified programs still give XLA's values, and every pass on the way keeps them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from heron.evaluator import Evaluator
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from tests.passes import workloads
from tests.support import NAMES, golden_values, program

#: small ones that between them use loops, branches, gathers, scatters, sorts, dots and convolutions
CHECKED = ["cond_switch", "gather_scatter", "heat_while", "lstm_scan", "reductions", "resnet_block_grad", "sort_topk"]
#: a slice of ``python -m tests.passes.workloads``
ALONE = ["cond_switch", "gather_scatter", "sort_topk"]
IN_PIPELINES = ["cond_switch", "dtype_zoo", "gather_scatter", "heat_while", "linalg_lapack", "lstm_scan", "reductions"]
_TOLERANCE = {"float64": 1e-9, "bfloat16": 3e-2, "float16": 3e-2}


def simplified(name: str, options: Options | None = None) -> tuple[Module, PassContext]:
    module = parse(program(name).read_text())
    ctx = PassContext(options)
    for step in ("simplify", "dot-decomposer", "transpose-folding", "simplify"):
        ctx.run_pass(registry.pipeline(step) if step == "simplify" else registry.get(step), module)
    return module, ctx


@pytest.mark.parametrize("name", NAMES)
def test_goldens_hold_after_simplify(name: str) -> None:
    module, ctx = simplified(name)
    verify(module)
    assert not ctx.trace.notes
    stored = np.load(golden_values(name))
    kept = json.loads(str(stored["meta"]))["kept_inputs"]
    inputs = [
        stored[f"in{k}"].view(p.shape.element_type.dtype) for k, p in zip(kept, module.entry.parameters, strict=True)
    ]
    results = Evaluator(module).run(*inputs)
    for n, found in enumerate(results if isinstance(results, tuple) else [results]):
        _assert_close(found, stored[f"out{n}"].view(found.dtype), f"{name} output {n}")


def _assert_close(found: np.ndarray, wanted: np.ndarray, what: str) -> None:
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, wanted, what)
        return
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    a, b = found.astype(wide), wanted.astype(wide)
    tolerance = _TOLERANCE.get(found.dtype.name, 2e-5)
    # gradients that are 0 but for rounding are compared with 1, not with themselves
    scale = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0)))
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale, err_msg=what)


@pytest.mark.parametrize("name", CHECKED)
def test_every_pass_keeps_the_values(name: str) -> None:
    simplified(name, Options(check="values"))


@pytest.mark.parametrize("name", ALONE)
def test_every_pass_alone(name: str) -> None:
    wrong = [row for row in workloads.alone(name) if row.problem]
    assert not wrong, wrong


@pytest.mark.parametrize("name", IN_PIPELINES)
def test_pipelines_keep_the_values_after_every_pass(name: str) -> None:
    wrong = [row for row in workloads.in_pipelines(name) if row.problem]
    assert not wrong, wrong

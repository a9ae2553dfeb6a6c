"""The real programs as StableHLO mean what XLA computed, and are built like what JAX lowers to HLO."""

from __future__ import annotations

import collections
import functools
import json

import numpy as np
import pytest

from heron.evaluator import evaluate
from heron.frontends.stablehlo.importer import parse
from heron.hlo import text as hlo_text
from heron.hlo.ir.module import Module
from heron.hlo.tools.compare import difference
from tests.hlo.test_goldens import NOISE, close
from tests.support import NAMES, WORKLOADS, golden_values, program

#: ops neither side makes, drops or merges while importing
SOLID = (
    "dot convolution gather scatter reduce reduce-window select-and-scatter sort topk fft while custom-call call"
    " dynamic-slice dynamic-update-slice rng-bit-generator cholesky triangular-solve reverse"
).split()
#: JAX's own export simplified more here: duplicate functions merged, products and branches folded
SIMPLER = {"linalg_lapack"}


@functools.cache
def imported(name: str) -> Module:
    path = WORKLOADS / "stablehlo" / f"{name}.small.mlir"
    return parse(path.read_text(), str(path), verify=True)


@pytest.mark.parametrize("name", NAMES)
def test_golden(name: str) -> None:
    module = imported(name)
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
        if (name, n) in NOISE:
            ok[NOISE[name, n]] = True
        assert ok.all(), f"output {n}: {(~ok).sum()} of {ok.size} differ: {got[~ok][:5]}, wanted {want[~ok][:5]}"


@pytest.mark.parametrize("name", sorted({*NAMES} - SIMPLER))
def test_built_like_the_hlo(name: str) -> None:
    ours, theirs = (_counts(m) for m in (imported(name), hlo_text.parse(program(name).read_text())))
    assert ours == theirs


@pytest.mark.parametrize("name", ["conv_variants", "cond_switch", "lstm_scan", "linalg_lapack", "sort_topk"])
def test_hlo_text_of_an_import_reads_back(name: str) -> None:
    module = imported(name)
    assert difference(module, hlo_text.parse(str(module), verify=True)) is None


def _counts(module: Module) -> dict[str, int]:
    """How often each solid op occurs; parameters of the entry alone."""
    found = collections.Counter(i.opcode for i in module.instructions() if i.opcode in SOLID)
    return {**found, "parameter": len(module.entry.parameters)}

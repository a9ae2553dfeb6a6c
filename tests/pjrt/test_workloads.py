"""The real programs through `jax.jit` on the platform heron, to XLA's values."""

from __future__ import annotations

import pytest

from tests.pjrt.under_jax import run

SCRIPT = """
import json, sys
import jax, numpy as np
from jax import export, tree_util
from jax._src.export._export import _module_to_bytecode
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from heron.frontends.stablehlo.importer import parse
from tests.hlo.test_goldens import NOISE, close
from tests.support import NAMES, WORKLOADS, golden_values

jax.config.update("jax_enable_x64", True)


def function(name, text, shapes):
    '''The program as a function of JAX: an export of it, which JAX lowers as a part of what calls it.'''
    inputs = [p.shape for p in shapes.parameters]
    outputs = [s for _, s in shapes.root.shape.leaves()]
    with mlir.make_ir_context():
        code = _module_to_bytecode(ir.Module.parse(text))
    nothing = lambda shapes: (None,) * len(shapes)
    exported = export.Exported(
        fun_name=name,
        in_tree=tree_util.tree_structure((tuple(inputs), {})),
        in_avals=avals(inputs),
        out_tree=tree_util.tree_structure(list(outputs)),
        out_avals=avals(outputs),
        _has_named_shardings=False,
        _in_named_shardings=nothing(inputs),
        _out_named_shardings=nothing(outputs),
        in_shardings_hlo=nothing(inputs),
        out_shardings_hlo=nothing(outputs),
        nr_devices=1,
        platforms=("heron",),
        ordered_effects=(),
        unordered_effects=(),
        disabled_safety_checks=(),
        mlir_module_serialized=code,
        calling_convention_version=export.maximum_supported_calling_convention_version,
        module_kept_var_idx=tuple(range(len(inputs))),
        uses_global_constants=False,
        _get_vjp=None,
    )
    return jax.jit(exported.call)


def avals(shapes):
    return tuple(jax.core.ShapedArray(s.dims, s.element_type.dtype) for s in shapes)


failed = []
for name in NAMES[PART::2]:
    text = (WORKLOADS / "stablehlo" / f"{name}.small.mlir").read_text()
    shapes = parse(text).entry
    try:
        with np.load(golden_values(name)) as stored:
            inputs = [stored[f"in{k}"] for k in json.loads(str(stored["meta"]))["kept_inputs"]]
            wanted = [stored[f"out{k}"] for k in range(sum(k.startswith("out") for k in stored.files))]
        given = [a.view(p.shape.element_type.dtype) for a, p in zip(inputs, shapes.parameters, strict=True)]
        results = function(name, text, shapes)(*given)
        outputs = [s for _, s in shapes.root.shape.leaves()]
        for n, (got, raw, shape) in enumerate(zip(results, wanted, outputs, strict=True)):
            assert [d.platform for d in got.devices()] == ["heron"]
            ok = close(np.asarray(got), raw.view(shape.element_type.dtype), shape)
            if (name, n) in NOISE:
                ok[NOISE[name, n]] = True
            assert ok.all(), f"output {n}: {(~ok).sum()} of {ok.size} differ"
    except Exception as error:
        failed.append(name)
        print(name, type(error).__name__, str(error)[:500], file=sys.stderr)
assert not failed, failed
print("ran", len(NAMES[PART::2]))
"""


@pytest.mark.parametrize("part", [0, 1])
def test_all_workloads(part: int) -> None:
    assert "ran 21" in run(f"PART = {part}\n{SCRIPT}").stdout

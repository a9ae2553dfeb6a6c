"""Every hero with every element type, on the CPU and on the checked simulated GPU, against the evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from heron import targets
from heron.codegen.emit import emit_fusion
from heron.hlo.ir import types
from tests.codegen.run_kernel import check, root_fusion

TYPES = "pred s4 u8 s16 s32 u64 f8e4m3fn f8e5m2 f16 bf16 f32 f64 c64 c128".split()
#: the combiner of reduces and scatters, whose results are exact in every order
HEROES = {
    "loop": "f { x = T[70] parameter(0) y = T[5,14] parameter(1) z = T[70] reshape(y) ROOT r = T[70] maximum(x, z) }",
    "concatenate": """f { x = T[6,9] parameter(0) y = T[6,12] parameter(1)
  ROOT r = T[6,21] concatenate(x, y), dimensions={1} }""",
    "slices": """f { x = T[40] parameter(0) y = T[24] parameter(1)
  j = T[64] concatenate(x, y), dimensions={0} a = T[40] slice(j), slice={[0:40]} b = T[24] slice(j), slice={[40:64]}
  ROOT r = (T[40], T[24]) tuple(a, b) }""",
    "transpose": """f { x = T[48,50] parameter(0)
  ROOT r = T[50,48] transpose(x), dimensions={1,0} }""",
    "rows": """f { x = T[5,300] parameter(0) z = T[] parameter(1)
  ROOT r = T[5] reduce(x, z), dimensions={1}, to_apply=m }""",
    "normalised": """f { x = T[5,300] parameter(0) z = T[] parameter(1)
  q = T[5] reduce(x, z), dimensions={1}, to_apply=m
  b = T[5,300] broadcast(q), dimensions={0}
  ROOT r = T[5,300] maximum(x, b) }""",
    "columns": """f { x = T[130,5] parameter(0) z = T[] parameter(1)
  ROOT r = T[5] reduce(x, z), dimensions={0}, to_apply=m }""",
    "dus": """f { x = T[40] parameter(0) u = T[7] parameter(1) i = s32[] constant(9)
  ROOT r = T[40] dynamic-update-slice(x, u, i) }""",
    "scatter": """f { x = T[40] parameter(0) u = T[30] parameter(1) i = s32[30] iota(), iota_dimension=0
  two = s32[] constant(2) h = s32[30] broadcast(two), dimensions={} k = s32[30] divide(i, h)
  ROOT r = T[40] scatter(x, k, u), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=m }""",
    "many scattered": """f { x = T[40] parameter(0) u = T[300] parameter(1) i = s32[300] iota(), iota_dimension=0
  n = s32[] constant(7) h = s32[300] broadcast(n), dimensions={} k = s32[300] remainder(i, h)
  ROOT r = T[40] scatter(x, k, u), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=m }""",
}
EMITTERS = {"rows": "reduce", "normalised": "rows", "columns": "reduce", "many scattered": "scatter"}


def program(hero: str, t: str) -> str:
    """The fusion as a program; complex numbers are added where others have a maximum."""
    op = "add" if t[0] == "c" else "or" if t == "pred" else "maximum"
    body = HEROES[hero].replace("T[", f"{t}[").replace("maximum", op)
    parameters = [line for line in body.replace(") ", ")\n").splitlines() if "parameter(" in line]
    names = [p.split("=")[0].split("{")[-1].strip() for p in parameters]
    shapes = [p.split("=")[1].split("parameter")[0].strip() for p in parameters]
    (result,) = [line.split("= ")[1] for line in body.split("ROOT r ")[1:]]
    result = result[: result.index(")") + 1] if result.startswith("(") else result.split(" ")[0]
    call = f"ROOT k = {result} fusion({', '.join(names)}), kind=kInput, calls=f"
    lines = " ".join(f"{n} = {s} parameter({k})" for k, (n, s) in enumerate(zip(names, shapes, strict=True)))
    return f"""HloModule t
m {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] {op}(a, b) }}
{body}
ENTRY e {{ {lines} {call} }}"""


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("gpu", [False, True], ids=["cpu", "gpu"])
def test_heroes(t: str, gpu: bool) -> None:
    for hero in HEROES:
        source = program(hero, t)
        if hero == "many scattered" and gpu and t == "c128":
            source = source.replace("remainder(i, h)", "divide(i, h)").replace(
                "to_apply=m", "indices_are_sorted=true, to_apply=m"
            )
            source = source.replace("s32[] constant(7)", "s32[] constant(11)")
        kernel = emit_fusion(root_fusion(source), "k", targets.get("sim:sm_90" if gpu else "cpu"))
        wide = hero == "transpose" and t == "c128" and not gpu  # blocks turned in registers have elements of 64 bits
        assert kernel.emitter == ("loop" if wide else EMITTERS.get(hero, hero)), (hero, kernel.notes)
        rng = np.random.default_rng(len(hero))
        inputs = []
        for o in root_fusion(source).operands:
            high = 2 if t in ("pred", "s2", "u2") else 8
            values = rng.integers(0, high, o.shape.dims)
            inputs.append(np.asarray(values).astype(types.by_name(t).dtype))
        check(source, inputs, parts=2, gpu=gpu)

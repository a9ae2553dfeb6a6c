"""The IR and launch of one small fusion of each hero, on the CPU and on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from heron import targets
from heron.codegen.emit import emit_fusion
from heron.hlo import text

GOLDEN = Path(__file__).parent / "golden"
ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n"
HEROES = {
    "concatenate": """f { a = f32[8,24] parameter(0) b = f32[8,40] parameter(1) s = f32[8,64] parameter(2)
  c = f32[8,64] concatenate(a, b), dimensions={1}
  ROOT r = f32[8,64] multiply(c, s) }""",
    "slices": """f { a = f32[30] parameter(0) b = f32[50] parameter(1)
  n = f32[30] negate(a) m = f32[50] abs(b)
  j = f32[80] concatenate(n, m), dimensions={0}
  x = f32[30] slice(j), slice={[0:30]} y = f32[50] slice(j), slice={[30:80]}
  ROOT r = (f32[30], f32[50]) tuple(x, y) }""",
    "rows": """f { x = bf16[16,512] parameter(0) w = f32[16] parameter(1) z = f32[] constant(0)
  y = f32[16,512] convert(x)
  q = f32[16] reduce(y, z), dimensions={1}, to_apply=add
  ROOT r = f32[16] multiply(q, w) }""",
    "columns": """f { x = f32[96,40] parameter(0) z = f32[] constant(0)
  y = f32[96,40] multiply(x, x)
  ROOT r = f32[40] reduce(y, z), dimensions={0}, to_apply=add }""",
    "both_ways": """f { x = f32[96,128] parameter(0) z = f32[] constant(0)
  a = f32[128] reduce(x, z), dimensions={0}, to_apply=add
  b = f32[96] reduce(x, z), dimensions={1}, to_apply=add
  ROOT r = (f32[128], f32[96]) tuple(a, b) }""",
    "dus": """f { x = f32[40,8] parameter(0) u = f32[2,8] parameter(1) i = s32[] parameter(2) j = s32[] constant(0)
  d = f32[40,8] dynamic-update-slice(x, u, i, j)
  ROOT r = f32[320] bitcast(d) }""",
    "scatter_few": """f { x = f32[9,4] parameter(0) i = s32[20,1] parameter(1) u = f32[20,4] parameter(2)
  ROOT r = f32[9,4] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add }""",
    "scatter_sorted": """f { x = f32[9,4] parameter(0) i = s32[20,1] parameter(1) u = f32[20,4] parameter(2)
  ROOT r = f32[9,4] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, indices_are_sorted=true, to_apply=add }""",
    "scan": """f { x = f32[6,100] parameter(0) z = f32[] constant(0)
  ROOT r = f32[6,100] reduce-window(x, z), window={size=1x100 pad=0_0x99_0}, to_apply=add }""",
}


def fusion(body: str) -> str:
    """A program that is this fusion; its parameters are the fusion's."""
    module = text.parse(f"HloModule m\n{ADD}{body}\nENTRY e {{ ROOT c = f32[] constant(0) }}")
    (inner,) = [c for c in module.computations if c.name == "f"]
    shapes = [str(p.shape.bare) for p in inner.parameters]
    lines = " ".join(f"p{n} = {s} parameter({n})" for n, s in enumerate(shapes))
    names = ", ".join(f"p{n}" for n in range(len(shapes)))
    result = str(inner.root.shape.bare)
    call = f"ROOT k = {result} fusion({names}), kind=kInput, calls=f"
    return f"HloModule m\n{ADD}{body}\nENTRY e {{ {lines} {call} }}"


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
@pytest.mark.parametrize("name", HEROES)
def test_golden(name: str, target: str, golden: Callable[[Path, str], None]) -> None:
    root = text.parse(fusion(HEROES[name])).entry.root
    kernel = emit_fusion(root, "k", targets.get("x86-64-v3" if target == "cpu" else target))
    kernel.module.verify()
    launch = kernel.launch
    how = (
        f"{launch.work_items} work items"
        if target == "cpu"
        else f"{launch.grid} x {launch.block}, {launch.shared_bytes} bytes shared"
    )
    notes = ", ".join(f"{k}: {v}" for k, v in kernel.notes.items())
    golden(GOLDEN / f"{name}_{target}.mlir", f"// {kernel.emitter}, {how}\n// {notes}\n{kernel.module}\n")

"""Ops that call computations on scalars or choose one, against XLA:CPU. The rest is in tests/conformance."""

from __future__ import annotations

from tests.hlo.ops.agree import check, program, reducer


def test_map_and_conditional() -> None:
    angle = reducer("angle", "f32", "atan2")
    body = " p = f32[3,4] parameter(0)\n q = f32[3,4] parameter(1)\n"
    check(program(body + " ROOT r = f32[3,4] map(p, q), dimensions={0,1}, to_apply=angle", angle))
    branches = "".join(
        f"{n} {{\n {n}x = f32[] parameter(0)\n {n}k = f32[] constant({v})\n ROOT {n}s = f32[] add({n}x, {n}k)\n}}\n"
        for n, v in (("a", 1), ("b", 2), ("c", 3))
    )
    for index in (-1, 0, 1, 2, 7):
        body = f" p = f32[] parameter(0)\n i = s32[] constant({index})\n"
        body += " ROOT r = f32[] conditional(i, p, p, p), branch_computations={a, b, c}"
        check(program(body, branches))

from __future__ import annotations

from heron.analysis.cost import bytes_read, bytes_written, flops
from heron.hlo.text import parse


def last(line: str, parameters: str):  # noqa: ANN201
    given = "\n".join(f"  {p.split()[1]} = {p.split()[0]} parameter({n})" for n, p in enumerate(parameters.split("; ")))
    return parse(f"HloModule m\n\nENTRY e {{\n{given}\n  ROOT {line}\n}}\n").entry.root


def test_dot_and_elementwise() -> None:
    dot = last(
        "d = f32[4,16]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "f32[4,8]{1,0} x; f32[8,16]{1,0} y",
    )
    assert flops(dot) == 2 * 4 * 8 * 16
    assert (bytes_read(dot), bytes_written(dot)) == ((32 + 128) * 4, 64 * 4)
    assert flops(last("a = f32[8]{0} add(x, x)", "f32[8]{0} x")) == 8
    assert flops(last("e = f32[8]{0} exponential(x)", "f32[8]{0} x")) > 40


def test_updates_and_slices_touch_only_their_part() -> None:
    update = last("d = f32[100]{0} dynamic-update-slice(x, u, i)", "f32[100]{0} x; f32[4]{0} u; s32[] i")
    assert (bytes_read(update), bytes_written(update)) == (16 + 4, 16)
    assert bytes_read(last("s = f32[4]{0} slice(x), slice={[0:4]}", "f32[100]{0} x")) == 16

from __future__ import annotations

import pytest

from heron.analysis.fusion.in_place import InPlace, in_place_pairs
from heron.analysis.fusion.in_step import reads_in_step
from heron.analysis.fusion.sharing import may_share_buffer
from heron.hlo.ir.instruction import Instruction
from heron.hlo.text import parse


def fusion(body: str, operands: str = "f32[8]{0} x, f32[8]{0} y", result: str = "f32[8]{0}") -> Instruction:
    """A fusion of `body`, whose parameters are `operands` ("type name, …")."""
    lines, outer, names = [], [], []
    for n, operand in enumerate(operands.split("; ") if ";" in operands else operands.split(", ")):
        shape, name = operand.split(" ")
        lines.append(f"  {name} = {shape} parameter({n})")
        outer.append(f"  a{n} = {shape} parameter({n})")
        names.append(f"a{n}")
    inner = "\n".join([*lines, *("  " + line.strip() for line in body.strip().splitlines())])
    text = (
        f"HloModule m\n\nf {{\n{inner}\n}}\n\nENTRY main {{\n"
        + "\n".join(outer)
        + f"\n  ROOT r = {result} fusion({', '.join(names)}), kind=kLoop, calls=f\n}}\n"
    )
    return parse(text).entry.root


UPDATE = "f32[8]{0} x; f32[2]{0} u; s32[] i"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("ROOT d = f32[8]{0} dynamic-update-slice(x, u, i)", True),
        ("n = f32[2]{0} negate(u)\nROOT d = f32[8]{0} dynamic-update-slice(x, n, i)", True),
        ("n = f32[8]{0} negate(x)\nROOT d = f32[8]{0} dynamic-update-slice(n, u, i)", False),
        (  # reads another place of what it updates
            "s = f32[2]{0} slice(x), slice={[0:2]}\nn = f32[2]{0} add(s, u)\n"
            "ROOT d = f32[8]{0} dynamic-update-slice(x, n, i)",
            False,
        ),
        (  # reads the very place it updates
            "s = f32[2]{0} dynamic-slice(x, i), dynamic_slice_sizes={2}\nn = f32[2]{0} add(s, u)\n"
            "ROOT d = f32[8]{0} dynamic-update-slice(x, n, i)",
            True,
        ),
        ("d = f32[8]{0} dynamic-update-slice(x, u, i)\nROOT n = f32[8]{0} negate(d)", False),
    ],
)
def test_updates_inside_fusions(body: str, found: bool) -> None:
    assert in_place_pairs(fusion(body, UPDATE)) == ([InPlace(0, (), ())] if found else [])


def test_custom_calls_say_themselves() -> None:
    text = """HloModule m

ENTRY main {
  x = f32[4]{0} parameter(0)
  ROOT r = (f32[4]{0}, s32[]) custom-call(x), custom_call_target="f", output_to_operand_aliasing={{0}: (0, {})}
}
"""
    assert in_place_pairs(parse(text).entry.root) == [InPlace(0, (), (0,))]


@pytest.mark.parametrize(
    ("body", "first", "second"),
    [
        ("ROOT r = f32[8]{0} add(x, y)", True, True),
        ("n = f32[8]{0} negate(x)\nROOT r = f32[8]{0} add(n, y)", True, True),
        ("n = f32[8]{0} reverse(x), dimensions={0}\nROOT r = f32[8]{0} add(n, y)", False, True),
        ("n = f32[8]{0} reverse(x), dimensions={0}\na = f32[8]{0} add(n, x)\n"
         "ROOT r = f32[8]{0} add(a, y)", False, True),
        ("v = f32[2,4]{1,0} reshape(x)\nn = f32[2,4]{1,0} negate(v)\nw = f32[8]{0} reshape(n)\n"
         "ROOT r = f32[8]{0} add(w, y)", True, True),
    ],
)  # fmt: skip
def test_reads_in_step(body: str, first: bool, second: bool) -> None:
    i = fusion(body)
    assert (reads_in_step(i, 0, ()), reads_in_step(i, 1, ())) == (first, second)


def test_other_sizes_are_not_in_step() -> None:
    i = fusion("ROOT r = f64[8]{0} convert(x)", "f32[8]{0} x", "f64[8]{0}")
    assert not reads_in_step(i, 0, ())
    reduced = fusion(
        "b = f32[8,8]{1,0} broadcast(x), dimensions={0}\nROOT r = f32[8,8]{1,0} negate(b)", "f32[8]{0} x",
        "f32[8,8]{1,0}",
    )  # fmt: skip
    assert not reads_in_step(reduced, 0, ())


@pytest.mark.parametrize(
    ("body", "output", "found"),
    [
        ("a = f32[8]{0} negate(x)\nb = f32[4]{0} negate(y)\nROOT t = (f32[8]{0}, f32[4]{0}) tuple(a, b)", 0, True),
        # the loop of output 1 reads nothing of x, but runs when it likes: x may not be gone by then for nobody's sake
        (
            "a = f32[8]{0} negate(x)\nb = f32[8]{0} iota(), iota_dimension=0\nROOT t = (f32[8]{0}, f32[8]{0}) tuple(a, b)",
            1,
            False,
        ),
        # two loops read x
        (
            "a = f32[8]{0} negate(x)\nr = f32[2,4]{1,0} reshape(x)\nb = f32[2,4]{1,0} abs(r)\n"
            "ROOT t = (f32[8]{0}, f32[2,4]{1,0}) tuple(a, b)",
            0,
            False,
        ),
        ("a = f32[8]{0} negate(x)\nb = f32[8]{0} abs(x)\nROOT t = (f32[8]{0}, f32[8]{0}) tuple(a, b)", 1, True),
    ],
)
def test_only_the_loop_that_reads_it_may_overwrite_an_operand(body: str, output: int, found: bool) -> None:
    shapes = body.rpartition("ROOT t = ")[2].partition(" tuple")[0]
    assert reads_in_step(fusion(body, "f32[8]{0} x; f32[4]{0} y", shapes), 0, (output,)) is found


SUMS = """HloModule m

add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }

f {
  x = f32[16]{0} parameter(0)
  y = f32[32,16]{1,0} parameter(1)
  z = f32[16,20]{1,0} parameter(2)
  o = f32[] constant(0)
  c = f32[16]{0} reduce(y, o), dimensions={0}, to_apply=add
  r = f32[16]{0} reduce(z, o), dimensions={1}, to_apply=add
  p = f32[16]{0} multiply(x, c)
  q = f32[16]{0} multiply(x, r)
  ROOT t = (f32[16]{0}, f32[16]{0}) tuple(p, q)
}

ENTRY e {
  x = f32[16]{0} parameter(0)
  y = f32[32,16]{1,0} parameter(1)
  z = f32[16,20]{1,0} parameter(2)
  ROOT k = (f32[16]{0}, f32[16]{0}) fusion(x, y, z), kind=kInput, calls=f
}
"""


def test_reductions_that_run_in_any_order_leave_each_other_what_they_read() -> None:
    """On one machine at least these are two parts of the kernel."""
    assert not may_share_buffer(parse(SUMS).entry.root, 0, (0,))
    alone = parse(SUMS.replace("multiply(x, r)", "negate(r)")).entry.root
    assert may_share_buffer(alone, 0, (0,))
    assert not may_share_buffer(alone, 0, (1,))


TURNED = """HloModule m

add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT s = f32[] add(a, b) }

f {
  x = f32[8,8]{1,0} parameter(0)
  y = f32[8,8]{1,0} parameter(1)
  z = f32[8,8,70]{2,1,0} parameter(2)
  o = f32[] constant(0)
  r = f32[8,8]{1,0} reduce(z, o), dimensions={2}, to_apply=add
  t = f32[8,8]{1,0} transpose(r), dimensions={1,0}
  p = f32[8,8]{1,0} multiply(x, r)
  q = f32[8,8]{1,0} multiply(y, t)
  n = f32[8,8]{1,0} negate(y)
  ROOT all = (f32[8,8]{1,0}, f32[8,8]{1,0}, f32[8,8]{1,0}) tuple(p, q, n)
}

ENTRY e {
  x = f32[8,8]{1,0} parameter(0)
  y = f32[8,8]{1,0} parameter(1)
  z = f32[8,8,70]{2,1,0} parameter(2)
  ROOT k = (f32[8,8]{1,0}, f32[8,8]{1,0}, f32[8,8]{1,0}) fusion(x, y, z), kind=kInput, calls=f
}
"""


def test_a_result_is_stored_with_its_own_element_of_each_output() -> None:
    """Output 1 is stored at another place than the others; y is read at both."""
    i = parse(TURNED).entry.root
    assert [may_share_buffer(i, 0, (n,)) for n in range(3)] == [True, False, True]
    assert not any(may_share_buffer(i, 1, (n,)) for n in range(3))
    alone = parse(TURNED.replace("negate(y)", "negate(r)")).entry.root
    assert [may_share_buffer(alone, 1, (n,)) for n in range(3)] == [False, True, False]


def test_a_bitcast_to_another_order_of_memory_is_no_step() -> None:
    turned = "b = f32[4,4]{0,1} bitcast(x)\nc = f32[4,4]{1,0} copy(b)\nROOT y = f32[4,4]{1,0} negate(c)"
    assert not reads_in_step(fusion(turned, "f32[4,4]{1,0} x", "f32[4,4]{1,0}"), 0, ())

"""Comparison and fingerprints: what counts as the same program."""

from __future__ import annotations

import pytest

from heron.hlo.ir.fingerprint import digest, fingerprint
from heron.hlo.text import PrintOptions, parse, print_module
from heron.hlo.tools.compare import difference, equal, equal_computations

TEXT = """HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[4]{0} parameter(0)
  zero = f32[] constant(0)
  total = f32[] reduce(x, zero), dimensions={0}, to_apply=add
  wide = f32[4]{0} broadcast(total), dimensions={}
  y = f32[4]{0} divide(x, wide), metadata={op_name="div"}
  ROOT z = f32[4]{0} subtract(y, x)
}
"""

#: changes that leave the program what it is
SAME = {
    "names": TEXT.replace("wide", "other").replace("add", "plus").replace("plus(", "add("),
    "module-name": TEXT.replace("HloModule m", "HloModule n"),
    "metadata": TEXT.replace('op_name="div"', 'op_name="other"'),
    "order": TEXT.replace(
        "  x = f32[4]{0} parameter(0)\n  zero = f32[] constant(0)\n",
        "  zero = f32[] constant(0)\n  x = f32[4]{0} parameter(0)\n",
    ),
}

#: changes that make it another
OTHER = {
    "op": TEXT.replace("divide(", "multiply("),
    "operands": TEXT.replace("subtract(y, x)", "subtract(x, y)"),
    "constant": TEXT.replace("constant(0)", "constant(-0)"),
    "dimensions": TEXT.replace(
        "total = f32[] reduce(x, zero), dimensions={0}", "total = f32[] reduce(x, zero), dimensions={}"
    ),
    "callee": TEXT.replace("add(a, b)", "maximum(a, b)"),
    "shape": TEXT.replace("f32[4]", "f32[5]"),
    "config": TEXT.replace("subtract(y, x)", 'subtract(y, x), backend_config="k"'),
}


@pytest.mark.parametrize("name", SAME)
def test_same(name: str) -> None:
    a, b = parse(TEXT), parse(SAME[name])
    assert difference(a, b) is None
    assert equal_computations(a.entry, b.entry)
    assert fingerprint(a.entry) == fingerprint(b.entry)
    canonical = PrintOptions.module_fingerprint()
    assert print_module(a, canonical) == print_module(b, canonical)


@pytest.mark.parametrize("name", OTHER)
def test_other(name: str) -> None:
    a, b = parse(TEXT), parse(OTHER[name])
    assert not equal(a, b)
    assert difference(a, b)
    assert not equal_computations(a.entry, b.entry)
    assert fingerprint(a.entry) != fingerprint(b.entry)
    assert digest(a.entry) != digest(b.entry)


def test_strictness() -> None:
    a = parse(TEXT)
    assert not equal(a, parse(SAME["names"]), names=True)
    assert not equal(a, parse(SAME["module-name"]), names=True)
    assert not equal(a, parse(SAME["metadata"]), metadata=True)
    assert equal(a, a.clone(), names=True, metadata=True)


def test_layouts() -> None:
    a = parse("HloModule m\nENTRY e {\n x = f32[2,3]{1,0} parameter(0)\n}")
    b = parse("HloModule m\nENTRY e {\n x = f32[2,3]{0,1} parameter(0)\n}")
    assert not equal(a, b)
    assert equal(a, b, layouts=False)


def test_unused_parameters_show_in_the_fingerprint() -> None:
    one = parse("HloModule m\nENTRY e {\n x = f32[2] parameter(0)\n ROOT y = f32[2] negate(x)\n}")
    two = parse(
        "HloModule m\nENTRY e {\n x = f32[2] parameter(0)\n u = s32[] parameter(1)\n ROOT y = f32[2] negate(x)\n}"
    )
    assert fingerprint(one.entry) != fingerprint(two.entry)


def test_large_literals() -> None:
    def text(last: int) -> str:
        words = ",".join(["0"] * 99 + [str(last)])
        return f"HloModule m\nENTRY e {{\n ROOT c = s32[100] constant({{{words}}})\n}}"

    assert fingerprint(parse(text(1)).entry) == fingerprint(parse(text(1)).entry)
    assert fingerprint(parse(text(1)).entry) != fingerprint(parse(text(2)).entry)


def test_long_chains_of_calls() -> None:
    links = ["c0 {\n  ROOT a = f32[] parameter(0)\n}\n"]
    for n in range(1, 2000):
        links.append(f"c{n} {{\n  a = f32[] parameter(0)\n  ROOT b = f32[] call(a), to_apply=c{n - 1}\n}}\n")
    module = parse("HloModule m\n" + "".join(links), verify=True)
    assert equal(module, parse(print_module(module)))
    assert fingerprint(module.entry) == fingerprint(module.clone().entry)
    assert not module.entry.root.has_side_effect


@pytest.mark.parametrize(
    ("one", "other", "option"),
    [
        ("sharding={replicated}", "sharding={manual}", "sharding"),
        ('backend_config="a"', 'backend_config="b"', "backend_config"),
        ("channel_id=1", "channel_id=2", "channels"),
        ('origin={{"a"}}', 'origin={{"b"}}', "metadata"),
    ],
)
def test_what_may_be_left_out(one: str, other: str, option: str) -> None:
    text = (
        "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
        "ENTRY e { x = f32[4] parameter(0)\n ROOT y = f32[4] all-reduce(x), WHAT, to_apply=add }"
    )
    a, b = parse(text.replace("WHAT", one)), parse(text.replace("WHAT", other))
    assert not equal(a, b, **{option: True})
    assert equal(a, b, **{option: False})
    with pytest.raises(TypeError):
        equal(a, b, shardings=False)

"""A bisection names the pass and the rewrite that breaks a check, wherever they stand among others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from heron import targets
from heron.errors import HeronError
from heron.hlo.ir import literal
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import F32
from heron.hlo.text import parse
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.base import Pass
from heron.passes.framework.bisect import Bisection, Culprit, LimitedContext, values_check, verify_check
from heron.passes.framework.context import PassContext
from heron.passes.framework.loading import loaded
from heron.passes.framework.pipeline import Pipeline

TEXT = """
HloModule m

ENTRY main {
  x = f32[4] parameter(0)
  zero = f32[] constant(0)
  zeros = f32[4] broadcast(zero), dimensions={}
  a = f32[4] subtract(x, zeros)
  s1 = f32[4] sine(a)
  s2 = f32[4] sine(s1)
  k = f32[4] atan2(s2, x)
  s3 = f32[4] sine(k)
  c = f32[] constant(2)
  cs = f32[4] broadcast(c), dimensions={}
  ROOT r = f32[4] add(s3, cs)
}
"""

#: right for most sines, wrong for the one of an atan2
WRONG = """
import heron

@heron.rewrite("sine")
def planted(i, b):
    \"\"\"sin(x) == sin(x + 0), but for one\"\"\"
    x = i.operands[0]
    if x.opcode == "atan2":
        return b.add("cosine", [x])
    if x.opcode in ("parameter", "sine"):
        return b.add("sine", [b.add("add", [x, b.splat(i.shape, 0)])])
"""


@pytest.fixture
def planted(tmp_path: Path) -> Iterator[None]:
    path = tmp_path / "planted.py"
    path.write_text(WRONG)
    with loaded([path]):
        yield


@dataclass(frozen=True)
class Spoil(Pass):
    """Changes the program's constant 2, but only once it stands in a smaller program."""

    name = "spoil"

    def run(self, module: Module, ctx: PassContext) -> bool:
        for i in module.entry.instructions:
            if i.opcode == "constant" and i.attrs["literal"].item() == 2:
                i.attrs["literal"] = literal.scalar(F32, 3)
                return True
        return False


@dataclass(frozen=True)
class Fails(Pass):
    """Gives up."""

    name = "fails"

    def run(self, module: Module, ctx: PassContext) -> bool:
        raise HeronError("PASS999", "it gave up")


def _search(module: Module, *steps: Pass) -> Culprit | None:
    return Bisection(module, steps, values_check(module), Options(check="values")).search()


def test_nothing_to_find() -> None:
    module = parse(TEXT)
    assert _search(module, registry.pipeline("simplify")) is None
    assert str(module) == str(parse(TEXT))


@pytest.mark.usefixtures("planted")
def test_the_rewrite_is_found() -> None:
    found = _search(parse(TEXT), registry.pipeline("simplify"))
    assert found is not None
    assert (found.pass_name, found.pipeline) == ("algebraic-simplifier", "simplify/simplification")
    assert (found.rule, found.source_line) == ("planted", "planted.py:4")
    assert "sine(%k)" in found.instruction
    assert 1 < found.run < found.runs and 1 <= found.rewrite <= found.rewrites
    assert "-  %s3 = f32[4]{0} sine(%k)" in found.change and "cosine(%k)" in found.change
    assert "4 of 4 elements differ" in found.problem


def test_a_pass_without_rewrites_is_found() -> None:
    steps = [registry.get("dce"), Pipeline("inner", [registry.get("cse"), Spoil(), registry.get("dce")])]
    found = _search(parse(TEXT), *steps)
    assert found is not None
    assert (found.pass_name, found.pipeline, found.run, found.runs, found.rule) == ("spoil", "inner", 3, 4, "")
    assert "-  %c = f32[] constant(2)\n+  %c = f32[] constant(3)" in found.change


def test_a_pass_that_fails_is_found() -> None:
    found = _search(parse(TEXT), registry.get("dce"), Fails(), registry.get("cse"))
    assert found is not None
    assert (found.pass_name, found.run, found.problem) == ("fails", 2, "it gave up")


def test_the_check_must_hold_before() -> None:
    module = parse(TEXT)
    with pytest.raises(HeronError, match=r"PASS018(.|\n)*never"):
        Bisection(module, [registry.get("dce")], lambda m: "never", Options()).search()


def test_tries_are_told() -> None:
    tries: list[tuple[int, int]] = []
    module = parse(TEXT)
    steps = [registry.get("cse"), Spoil()]
    Bisection(module, steps, verify_check, Options(), None, lambda n, of: tries.append((n, of))).search()
    assert tries[0][0] == 1 and all(n <= of for n, of in tries)


RESHAPES = """HloModule m

ENTRY main {
  x = f32[2,3] parameter(0)
  y = f32[3,2] parameter(1)
  p = f32[6] reshape(x)
  q = f32[6] reshape(y)
  a = f32[6] sine(p)
  b = f32[6] cosine(q)
  ROOT t = (f32[6], f32[6]) tuple(a, b)
}
"""
SLICES = """HloModule m

ENTRY main {
  x = f32[8] parameter(0)
  a = f32[4] slice(x), slice={[0:4]}
  b = f32[4] slice(x), slice={[4:8]}
  c = f32[4] sine(a)
  d = f32[4] sine(b)
  e = f32[4] cosine(a)
  f = f32[4] cosine(b)
  ROOT t = (f32[4], f32[4], f32[4], f32[4]) tuple(c, d, e, f)
}
"""
CHAINS = """HloModule m

ENTRY main {
  x = f32[64] parameter(0)
  y = f32[128] parameter(1)
  a = f32[64] sine(x)
  b = f32[64] negate(a)
  c = f32[128] cosine(y)
  d = f32[128] negate(c)
  ROOT t = (f32[64], f32[128]) tuple(b, d)
}
"""
BESIDE = """HloModule m

ENTRY main {
  x = f32[64] parameter(0)
  y = f32[128] parameter(1)
  a = f32[64] sine(x)
  b = f32[64] negate(x)
  c = f32[128] cosine(y)
  d = f32[128] negate(y)
  ROOT t = (f32[64], f32[64], f32[128], f32[128]) tuple(a, b, c, d)
}
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("reshape-mover", RESHAPES),
        ("slice-sinker", SLICES),
        ("instruction-fusion", CHAINS),
        ("priority-fusion", CHAINS),
        ("multi-output-fusion", BESIDE),
    ],
)
def test_passes_stop_after_any_number_of_rewrites(name: str, text: str) -> None:
    module = parse(text)
    is_right = values_check(module)
    texts = set()
    for rewrites in range(3):
        copy = module.clone()
        ctx = LimitedContext(1, rewrites, Options(), targets.get("cpu" if name == "instruction-fusion" else "sm_90"))
        ctx.run_pass(registry.get(name), copy)
        assert len(ctx.rewrites) == rewrites and is_right(copy) is None
        texts.add(str(copy))
    assert len(texts) == 3

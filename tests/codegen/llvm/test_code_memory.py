"""LLVM gets a text once in a process, as long as there is room for its code."""

from __future__ import annotations

import re

import numpy as np
import pytest

import heron
from heron.codegen.llvm import jit
from heron.codegen.llvm.code_memory import CodeMemory

SOFTSIGN = """
HloModule softsign

ENTRY e {
  x = f32[20000] parameter(0)
  a = f32[20000] abs(x)
  one = f32[] constant(1)
  ones = f32[20000] broadcast(one), dimensions={}
  b = f32[20000] add(a, ones)
  ROOT y = f32[20000] divide(x, b)
}
"""


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts LLVM gets."""
    texts: list[str] = []
    original = jit._compile
    monkeypatch.setattr(jit, "MADE", CodeMemory())
    monkeypatch.setattr(jit, "_compile", lambda text, *more: texts.append(text) or original(text, *more))
    return texts


def test_the_same_program_again(compiled: list[str]) -> None:
    x = np.linspace(-3, 3, 20000, dtype=np.float32)
    first = heron.compile(heron.parse(SOFTSIGN))
    count = len(compiled)
    second = heron.compile(heron.parse(re.sub(r"\bsoftsign\b", "other", SOFTSIGN)))
    assert count and len(compiled) == count
    wanted = first(x)
    del first  # the second has code of its own
    np.testing.assert_array_equal(second(x), wanted)
    heron.compile(heron.parse(SOFTSIGN.replace("20000", "20001")))
    assert len(compiled) > count


def test_everything_code_depends_on_counts(compiled: list[str]) -> None:
    text = "define i64 @seven() {\n  ret i64 7\n}\n"
    ways = [jit.Jit(), jit.Jit(level=1), jit.Jit(shaped=True), jit.Jit(shaped=True, tidied=True)]
    for _ in range(2):
        for way in ways:
            way.compile(text)
    assert len(compiled) == len(ways)
    jit.MADE.clear()
    assert not jit.Jit().compile(text).cached and jit.Jit().compile(text).cached


def test_it_has_a_limit() -> None:
    memory = CodeMemory(limit=10)
    memory.put("a", b"1234")
    memory.put("b", b"1234")
    assert memory.get("a") == b"1234"
    memory.put("c", b"123")  # the one that was not asked for goes
    assert [memory.get(k) for k in "abc"] == [b"1234", None, b"123"]
    memory.put("a", b"12345678901")  # more than all of it may take
    assert [memory.get(k) for k in "abc"] == [None, None, None]
    memory.put("d", b"1234567890")
    assert memory.get("d") == b"1234567890"

"""Every pass on odd programs: a slice of ``python -m tests.fuzz --passes``, and what makes its findings small."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework import registry
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from tests.hlo.odd import odd
from tests.hlo.reduction import reduced
from tests.passes.alone import Subject, label
from tests.passes.search import faults

SLICE = 6


@pytest.mark.parametrize("start", range(0, 4 * SLICE, SLICE))
def test_passes(start: int) -> None:
    found = [f"{label(f.step)} on program {f.seed}: {f.problem}" for f in faults(range(start, start + SLICE))]
    assert not found, "\n".join(found)


def test_programs_are_valid_and_odd() -> None:
    programs = [p for p in map(odd, range(150)) if p is not None]
    assert len(programs) > 120
    opcodes: set[str] = set()
    for module, inputs in programs:
        verify(module)
        evaluate(module, *inputs)
        opcodes |= {i.opcode for i in module.instructions()}
    assert len(opcodes) > 85
    leaves = [s for p, _ in programs for i in p.instructions() for _, s in i.shape.leaves() if s.is_array]
    assert {s.rank for s in leaves} >= set(range(7)) and any(0 in s.dims for s in leaves)
    assert any(s.layout is not None and not s.layout.is_default for s in leaves) and any(any(s.dynamic) for s in leaves)


@dataclass(frozen=True)
class Wrong(Pass):
    """Takes every sine for a cosine; never registered."""

    name = "wrong"

    def run(self, module: Module, ctx: PassContext) -> bool:
        found = [i for i in module.entry.instructions if i.opcode == "sine"]
        for i in found:
            module.entry.replace_with(i, "cosine", i.operands, i.shape)
        return bool(found)


@dataclass(frozen=True)
class Silent(Wrong):
    """Does not tell what it does."""

    def run(self, module: Module, ctx: PassContext) -> bool:
        super().run(module, ctx)
        return False


TEXT = """
HloModule m

ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  e = f32[4] exponential(x)
  s = f32[4] sine(e)
  z = f32[4] multiply(s, y)
  n = f32[4] negate(y)
  ROOT t = (f32[4], f32[4]) tuple(z, n)
}
"""


def test_what_is_wrong_is_said() -> None:
    module = parse(TEXT)
    subject = Subject(module, [[np.float32([0, 1, 2, 3]), np.float32([1, 1, 1, 1])]])
    assert subject.under(Wrong()).problem.startswith("output 0: 4 of 4 elements differ; at [0]")
    assert subject.under(Silent()).problem == "does not tell that it changed something"
    assert not subject.under(registry.get("dce")).problem


def test_findings_are_made_small() -> None:
    def fails(module: Module, inputs: list[np.ndarray]) -> bool:
        return bool(Subject(module, [inputs]).under(Wrong()).problem)

    module, inputs = reduced(parse(TEXT), [np.float32([0, 1, 2, 3]), np.float32([1, 1, 1, 1])], fails)
    assert [i.opcode for i in module.entry.instructions] == ["parameter", "sine"] or module.entry.root.opcode == "sine"
    np.testing.assert_allclose(inputs[0], np.exp([0, 1, 2, 3]), rtol=1e-6)
    assert module.instruction_count() == 2

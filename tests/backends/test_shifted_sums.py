"""Sums of shifted arrays, such as gradients of differences: each term exists for a part of the rows only.

LLVM can join the tests for two such parts. If an index is computed between the tests, its vectoriser reads a wrong
element (see `heron.codegen.llvm.emit`), so these sums are compared with the evaluator at many sizes.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import heron
from heron.compiling import compile
from heron.evaluator import evaluate

LENGTHS = (5, 7, 9, 12, 13, 16, 17, 24, 31, 33, 40)
OPS = ("negate(v{0})", "abs(v{0})", "sine(v{0})", "multiply(v{0}, v{0})", "sqrt(v{0})")


class Sum:
    """HLO text of a sum of shifted terms, of `x`, and of `d`, which has an element a row."""

    def __init__(self, rng: Random) -> None:
        self.rng, self.rows, self.width = rng, rng.choice(LENGTHS), rng.choice((1, 2, 3, 4))
        self.whole = f"f32[{self.rows},{self.width}]"
        self.lines = [f"x = {self.whole} parameter(0)", f"d = f32[{self.rows}] parameter(1)", "z = f32[] constant(0)"]

    def term(self, n: int) -> str:
        rng, shift = self.rng, self.rng.choice((1, 1, 1, 2, 3))
        count, first = self.rows - shift, rng.randint(0, shift)
        part, rows = f"f32[{count},{self.width}]", f"[{first}:{first + count}]"
        edges = f"{shift}_0" if rng.random() < 0.5 else f"0_{shift}"
        self.lines += [
            f"s{n} = {part} slice(x), slice={{{rows}, [0:{self.width}]}}",
            f"e{n} = f32[{count}] slice(d), slice={{{rows}}}",
            f"f{n} = f32[{count}] {rng.choice(('sine', 'exponential', 'negate'))}(e{n})",
            f"h{n} = {part} broadcast(f{n}), dimensions={{0}}",
            f"u{n} = {part} multiply(s{n}, h{n})",
            f"v{n} = {part} abs(u{n})",
            f"o{n} = {part} {rng.choice(OPS).format(n)}",
            f"p{n} = {self.whole} pad(o{n}, z), padding={edges}x0_0",
        ]
        return f"p{n}"

    def text(self) -> str:
        total = self.term(0)
        for n in range(1, self.rng.randint(2, 4)):
            self.lines.append(
                f"t{n} = {self.whole} {self.rng.choice(('add', 'subtract', 'maximum'))}({total}, {self.term(n)})"
            )
            total = f"t{n}"
        result = f"ROOT r = ({self.whole}, {self.whole}, f32[]) tuple({total}, w, q)"
        last = [
            f"w = {self.whole} multiply({total}, x)",
            "q = f32[] reduce(w, z), dimensions={0,1}, to_apply=plus",
            result,
        ]
        add = "plus { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }"
        return "\n".join(["HloModule m", add, "ENTRY e {", *self.lines, *last, "}", ""])


@pytest.mark.parametrize("seed", [*range(40), 1655, 1663])  # of 5,000 the two that were wrong
def test_shifted_sums(seed: int) -> None:
    text = Sum(Random(seed)).text()
    module = heron.parse(text)
    values = np.random.default_rng(seed)
    inputs = [values.standard_normal(p.shape.dims).astype(np.float32) for p in module.entry.parameters]
    found, wanted = compile(module, "cpu").run(inputs), evaluate(heron.parse(text), *inputs)
    for ours, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-4, atol=1e-4)

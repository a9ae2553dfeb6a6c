"""A library whose call cannot be captured: the reason is told, and its next calls do not suffer for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import heron
from heron.errors import HeronError
from tests.rehearsal.compiling import compile, rehearsed
from tests.rehearsal.driver import Recorder
from tests.rehearsal.work import Stream

PRODUCT = """HloModule product

ENTRY main {
  x = f32[128,128] parameter(0)
  y = f32[128,128] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT z = f32[128,128] tanh(y)
}
"""


class Touchy:
    """A library that refuses captures, and tells the error of one once more in its next call."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder, self.usual = recorder, recorder.library_call
        self.stale, self.refusals = False, 0
        recorder.library_call = self  # type: ignore[method-assign]

    def __call__(self, stream: int, thunk: Any, addresses: Sequence[int]) -> None:
        if self.recorder._get(stream, Stream).capture is not None:
            self.stale, self.refusals = True, self.refusals + 1
            raise HeronError("RUN091", "cublaslt: cublasLtMatmul failed", why="status 14: it cannot be captured")
        if self.stale:
            self.stale = False
            raise HeronError("RUN091", "cublaslt: cublasLtMatmul failed", why="an error of before")
        self.usual(stream, thunk, addresses)


def test_the_reason_is_told_and_later_calls_are_right() -> None:
    module = heron.parse(PRODUCT)
    x = (np.arange(128 * 128, dtype=np.float32).reshape(128, 128) % 7 - 3) / 64
    (wanted,) = heron.evaluate(module, x)
    with rehearsed() as recorder:
        library = Touchy(recorder)
        made = compile(module, recorder, options=heron.Options(triton="off"))
        for _ in range(4):
            np.testing.assert_allclose(made.run([x])[0], wanted, rtol=1e-4, atol=1e-5)
        facts = made.load().facts()
        assert library.refusals == 1
        assert facts["graphs"] == 0
        assert facts["refused"] == ["cublaslt: cublasLtMatmul failed: status 14: it cannot be captured"]

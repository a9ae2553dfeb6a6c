"""A program that breaks a rule, evaluated or compiled unverified, is blamed for it where the work stumbles."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import blaming

PROGRAMS = {
    "all-reduce-start": (
        "s = (f32[3], f32[3]) all-reduce-start(p), replica_groups={}, to_apply=add\n"
        " ROOT d = f32[3] all-reduce-done(s)",
        "HLO108",
    ),
    "rng-bit-generator": (
        "k = u64[2] constant({1, 2})\n ROOT s = u32[3] rng-bit-generator(k), algorithm=rng_philox",
        "HLO010",
    ),
}
ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled(name: str) -> None:
    body, code = PROGRAMS[name]
    module = parse(f"HloModule m\n{ADD}ENTRY e {{\n p = f32[3] parameter(0)\n {body}\n}}")
    with pytest.raises(HeronError) as caught:
        heron.compile(module, target="cpu")
    assert caught.value.code == code and caught.value.where


def test_evaluated() -> None:
    text = "ROOT f = c64[1] fft(c64[1] parameter(0)), fft_type=FFT, fft_length={0}"
    with pytest.raises(HeronError, match="last dimensions must be"):
        heron.evaluate(parse(f"HloModule m\nENTRY e {{\n {text}\n}}"), np.ones(1, np.complex64))


def test_a_program_without_fault_is_not_blamed() -> None:
    module = parse("HloModule m\nENTRY e {\n ROOT p = f32[3] parameter(0)\n}")
    with pytest.raises(ZeroDivisionError), blaming(module):
        print(1 // 0)
    with pytest.raises(HeronError, match="said"), blaming(Module("m")):
        raise HeronError("TXT001", "said")

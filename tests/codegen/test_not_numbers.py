"""Constants that are no numbers keep their sign and their other bits: total orders go by them."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.hlo.ir.types import by_name

#: of each type the bits of some
BITS = {
    "f64": (0xFFF8_0000_0000_0000, 0x7FF8_0000_0000_0001, 0xFFFF_FFFF_FFFF_FFFF),
    "f32": (0xFFC0_0000, 0x7F80_0001, 0xFFFF_FFFF),
    "f16": (0xFE00, 0x7E01, 0xFFFF),
    "bf16": (0xFFC0, 0x7FC1, 0xFFFF),
    "f8e5m2": (0xFE, 0x7D, 0xFF),
}


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("t", BITS)
def test_bits(t: str, target: str) -> None:
    dtype = by_name(t).dtype
    word = f"u{8 * dtype.itemsize}"
    selects = [
        f"b{n} = {t}[3] broadcast({t}[] constant({_text(bits, dtype)})), dimensions={{}}\n"
        f"s{n} = {t}[3] select(p, x, b{n})\nr{n} = {word}[3] bitcast-convert(s{n})"
        for n, bits in enumerate(BITS[t])
    ]
    names = [f"r{n}" for n in range(len(selects))]
    lines = "\n".join(selects)
    kinds = ", ".join([f"{word}[3]"] * len(names))
    text = f"""HloModule m
ENTRY e {{
  p = pred[3] parameter(0)
  x = {t}[3] parameter(1)
  {lines}
  ROOT t = ({kinds}) tuple({", ".join(names)})
}}"""
    x = np.ones(3, dtype)
    one = int(x.view(f"u{dtype.itemsize}")[0])
    found = heron.compile(heron.parse(text), target).run([np.array([True, False, False]), x])
    for bits, got in zip(BITS[t], found, strict=True):
        assert got.tolist() == [one, bits, bits], f"{bits:#x}"


def _text(bits: int, dtype: np.dtype) -> str:
    """The number as HLO's text has it."""
    width = 8 * dtype.itemsize
    value = np.array(bits, f"u{dtype.itemsize}").view(dtype)
    mantissa = {"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7, "float8_e5m2": 2}.get(dtype.name, 3)
    sign = "-" * (bits >> (width - 1))
    assert value != value
    return f"{sign}nan(0x{bits & ((1 << mantissa) - 1):x})"


def test_first_of_a_row_with_places_to_fill() -> None:
    """Unevenly split rows are filled up with what comes last in the order, which is a negative NaN."""
    text = """HloModule m, num_partitions=2
ENTRY e {
  x = f32[17] parameter(0), sharding={devices=[2]<=[2]}
  ROOT t = (f32[2], s32[2]) topk(x), k=2, largest=true, sharding={{replicated}, {replicated}}
}"""
    values, places = heron.compile(heron.parse(text))(np.arange(17, dtype=np.float32))
    assert values.tolist() == [16, 15] and places.tolist() == [16, 15]

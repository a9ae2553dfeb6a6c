"""A sample of the products that `python -m tests.backends.mixed_products` makes: each rule of types, on each target."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.compiling import compile
from heron.hlo.ir.types import by_name
from heron.hlo.product_types import result_type, sum_type
from tests.backends.agree import TARGETS
from tests.backends.mixed_products import differences


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("lhs", "rhs", "results"),
    [
        ("f32", "f32", "s32 s8 u32 pred bf16 c64"),
        ("bf16", "s8", "s32 f32 bf16"),
        ("s8", "u8", "pred s8 s64 f32"),
        ("c64", "f64", "f32 s16 c64 pred"),
        ("pred", "f8e4m3fn", "pred s32 f16"),
    ],
)
def test_products_of_two_types(lhs: str, rhs: str, results: str, target: str) -> None:
    forms = ("matrices", "long sums", "vectors", "convolution")
    assert not list(differences(lhs, rhs, results.split(), target, forms))


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_beyond_an_integer_result_saturates(target: str) -> None:
    module = heron.parse("""HloModule m
ENTRY main {
  p = f32[1,4] parameter(0)
  q = f32[1,2] parameter(1)
  ROOT r = s8[4,2] dot(p, q), lhs_contracting_dims={0}, rhs_contracting_dims={0}
}""")
    p = np.array([[300, -1e30, np.nan, 2.75]], np.float32)
    q = np.array([[1, -1]], np.float32)
    wanted = np.array([[127, -128], [-128, 127], [0, 0], [2, -2]], np.int8)
    np.testing.assert_array_equal(heron.evaluate(module, p, q)[0], wanted)
    np.testing.assert_array_equal(compile(module, target).run([p, q])[0], wanted)


@pytest.mark.parametrize(
    ("types", "wanted"),
    [
        ("f32 f32 s32", "f32"),
        ("bf16 s8 s32", "f32"),
        ("f64 f32 bf16", "f64"),
        ("s64 s64 f32", "f32"),
        ("c64 f64 f32", "c128"),
        ("s8 u8 s64", "s64"),
        ("s8 s16 pred", "s16"),
        ("pred pred pred", "pred"),
        ("pred s8 pred", "s8"),
    ],
)
def test_the_type_that_is_summed_in(types: str, wanted: str) -> None:
    assert sum_type(*map(by_name, types.split())).name == wanted


def test_the_type_of_a_result_that_is_not_stated() -> None:
    for types, wanted in (("s32 bf16", "bf16"), ("f32 f64", "f64"), ("s8 s16", "s16")):
        assert result_type(*map(by_name, types.split())).name == wanted

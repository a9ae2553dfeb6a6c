"""`dense<…>` of every type and form."""

from __future__ import annotations

import numpy as np
import pytest

from heron.frontends.stablehlo.constants import dense
from heron.frontends.stablehlo.types import element_type, tensor
from heron.hlo.ir import types


@pytest.mark.parametrize(
    ("body", "kind", "want"),
    [
        ("1", "tensor<2x2xi32>", [[1, 1], [1, 1]]),
        ("[[1, 2], [-3, 4]]", "tensor<2x2xi8>", [[1, 2], [-3, 4]]),
        ("[18446744073709551615]", "tensor<1xui64>", [2**64 - 1]),
        ("0xFF", "tensor<i8>", -1),
        ("[true, false]", "tensor<2xi1>", [True, False]),
        ("[1.5, 0x7F800000, -2.0e+00]", "tensor<3xf32>", [1.5, np.inf, -2.0]),
        ("0xFF80", "tensor<bf16>", -np.inf),
        ("0x7E", "tensor<f8E4M3FN>", 448.0),
        ("(1.0, -2.0)", "tensor<2xcomplex<f32>>", [1 - 2j, 1 - 2j]),
        ("[(1.0, 0x7F800000), (0.5, 2.0)]", "tensor<2xcomplex<f32>>", [complex(1, np.inf), 0.5 + 2j]),
        ('"0x0000803F00000040"', "tensor<2xf32>", [1.0, 2.0]),
        ('"0x0000803F"', "tensor<2xf32>", [1.0, 1.0]),
        ('"0x05"', "tensor<3xi1>", [True, False, True]),
        ('"0xFF"', "tensor<3xi1>", [True, True, True]),
        ("", "tensor<0x3xf32>", np.empty((0, 3))),
        ("[-8, 7]", "tensor<2xi4>", [-8, 7]),
    ],
)
def test_dense(body: str, kind: str, want: object) -> None:
    shape = tensor(kind)
    got = dense(f"dense<{body}>", shape)
    assert got.dtype == shape.element_type.dtype and got.shape == shape.dims
    wide = np.complex128 if shape.element_type.is_complex else np.asarray(want).dtype
    np.testing.assert_array_equal(got.astype(wide), np.asarray(want))


def test_element_types() -> None:
    names = "i1 i4 ui8 i64 f8E4M3FN f8E5M2FNUZ f8E4M3B11FNUZ f8E8M0FNU f4E2M1FN bf16 f64 complex<f64>".split()
    want = "pred s4 u8 s64 f8e4m3fn f8e5m2fnuz f8e4m3b11fnuz f8e8m0fnu f4e2m1fn bf16 f64 c128".split()
    assert [element_type(n) for n in names] == [types.by_name(w) for w in want]

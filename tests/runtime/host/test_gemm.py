"""Products by NumPy, as libraries compute them on the simulated GPU: every number of batch, free and summed dimensions."""

from __future__ import annotations

from itertools import product as combinations

import numpy as np
import pytest

import heron
from heron.hlo.calls.gemm import GemmConfig
from heron.hlo.text import parse
from heron.runtime.host.gemm import product

FORMS = list(combinations(range(2), range(3), range(3), range(3)))


@pytest.mark.parametrize(("batch", "rows", "columns", "summed"), FORMS)
def test_products_of_all_forms(batch: int, rows: int, columns: int, summed: int) -> None:
    """Scalars as results among them: an inner product has neither batch nor rows nor columns."""
    letters = iter("abcdefgh")
    b, r, c, s = ("".join(next(letters) for _ in range(n)) for n in (batch, rows, columns, summed))
    x = np.arange(2.0 ** len(b + r + s)).reshape((2,) * len(b + r + s))
    y = np.arange(2.0 ** len(b + s + c)).reshape((2,) * len(b + s + c))
    given = GemmConfig(
        lhs_batch=tuple(range(batch)),
        rhs_batch=tuple(range(batch)),
        lhs_contracting=tuple(range(batch + rows, batch + rows + summed)),
        rhs_contracting=tuple(range(batch, batch + summed)),
    )
    found = product(x, y, given, np.dtype(np.float64))
    np.testing.assert_array_equal(found, np.einsum(f"{b}{r}{s},{b}{s}{c}->{b}{r}{c}", x, y))


def test_an_inner_product_with_an_algorithm_runs() -> None:
    module = parse("""HloModule m
ENTRY main {
  p = bf16[2] parameter(0)
  q = bf16[2] parameter(1)
  ROOT r = bf16[] dot(p, q), lhs_contracting_dims={0}, rhs_contracting_dims={0}, algorithm=dot_bf16_bf16_bf16
}""")
    x = np.array([1, 2]).astype(module.entry.parameters[0].shape.element_type.dtype)
    assert float(heron.compile(module, target="sim:sm_90")(x, x)) == 5

"""Arrays of one value are known whatever their size and the way they lie in memory."""

from __future__ import annotations

import numpy as np
import pytest

from heron.analysis.values.splat import splat_value
from heron.hlo.ir.instruction import make
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.shape import Shape, array
from heron.hlo.ir.types import BF16, F32, ElementType

LONG = 100_003


def _value(a: np.ndarray, shape: Shape) -> float | None:
    found = splat_value(make("constant", (), shape, literal=Literal(shape, a)))
    return None if found is None else float(found)


@pytest.mark.parametrize("of_type", [F32, BF16], ids=str)
def test_arrays_of_one_value(of_type: ElementType) -> None:
    shape = array(of_type, (LONG,))
    assert _value(np.full(LONG, 2.5, of_type.dtype), shape) == 2.5
    assert _value(np.broadcast_to(of_type.dtype.type(2.5), (LONG,)), shape) == 2.5


@pytest.mark.parametrize("n", [0, 1, 4097, LONG // 2, LONG - 1])
def test_one_other_element_anywhere(n: int) -> None:
    a = np.full(LONG, 2.5, np.float32)
    a[n] = 2
    assert _value(a, array(F32, (LONG,))) is None


def test_zeros_of_both_signs_are_two_values() -> None:
    assert _value(np.array([0.0, -0.0] * 4096, np.float32), array(F32, (8192,))) is None


def test_other_orders_in_memory_and_no_elements() -> None:
    a = np.full((128, 64), 3, np.float32)[::2, ::-1]
    assert _value(a, array(F32, (64, 64))) == 3
    assert _value(np.zeros((0, 3), np.float32), array(F32, (0, 3))) is None

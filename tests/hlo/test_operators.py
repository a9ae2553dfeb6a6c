"""Python's operators on instructions, against NumPy's on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.hlo.builder import Builder
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import BF16, F32, S32, U32, of_dtype

Function = Callable[..., Any]
F = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
G = np.linspace(0.5, 3, 12, dtype=np.float32).reshape(3, 4)
I = np.arange(-6, 6, dtype=np.int32).reshape(3, 4)  # noqa: E741
U = np.arange(12, dtype=np.uint32).reshape(3, 4) * np.uint32(0x0F0F0F0F)


def run(function: Function, *arrays: np.ndarray) -> Any:
    b = Builder("m")
    parameters = [b.parameter(n, row_major(of_dtype(a.dtype), *a.shape)) for n, a in enumerate(arrays)]
    return evaluate(b.build(function(*parameters)), *arrays)[0]


SAME_AS_NUMPY: dict[str, tuple[Function, tuple[np.ndarray, ...]]] = {
    "sums": (lambda x, y: x + y - 2 * x, (F, G)),
    "numbers": (lambda x: 1 - x * 0.5 + 3, (F,)),
    "quotients": (lambda x, y: x / y + 1 / y, (F, G)),
    "powers": (lambda x: x**2 + 2**x, (G,)),
    "signs": (lambda x: -abs(x), (F,)),
    "bits": (lambda x, y: ~(x & y | 12) ^ y, (I, I * 3)),
    "shifts": (lambda x: (x << 2) + (x >> 1), (I,)),
    "logical shift": (lambda x: x >> 3, (U,)),
    "array": (lambda x: np.full((3, 4), 2, np.float32) * x + G, (F,)),
    "scalar": (lambda x, s: s * x - s, (F, np.array(3, np.float32))),
    "product": (lambda x, y: x @ y, (F, G.reshape(4, 3))),
    "vectors": (lambda x, y: x[0] @ y @ x[0][:3], (F, G.reshape(4, 3))),
    "batches": (lambda x, y: x @ y, (F.reshape(3, 1, 2, 2), G.reshape(3, 1, 2, 2))),
    "elements": (lambda x: x[1, 2] + x[-1, -4], (F,)),
    "rows": (lambda x: x[1:, ::2], (F,)),
    "rest": (lambda x: x[..., 1] + x[:, -1], (F,)),
    "none": (lambda x: x[2:1], (F,)),
}


@pytest.mark.parametrize("name", SAME_AS_NUMPY)
def test_same_as_numpy(name: str) -> None:
    function, arrays = SAME_AS_NUMPY[name]
    expected = function(*arrays)
    found = run(function, *arrays)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_comparisons_are_methods() -> None:
    for name, apply in {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "ge": np.greater_equal}.items():
        np.testing.assert_equal(run(lambda x, name=name: getattr(x, name)(1), I), apply(I, 1))
    np.testing.assert_equal(run(lambda x, y: x.gt(y) | x.le(0.0), F, G), (F > G) | (F <= 0))


def test_integers_truncate() -> None:
    np.testing.assert_equal(run(lambda x: x / 4, I), np.trunc(I / 4))
    np.testing.assert_equal(run(lambda x: x % 4, I), np.fmod(I, 4))


def test_numbers_take_the_other_type() -> None:
    b = Builder("m")
    x = b.parameter(0, row_major(BF16, 3))
    assert (x + 0.1).shape is x.shape
    assert x.lt(1).operands[1].shape is x.shape


def test_equality_is_identity() -> None:
    b = Builder("m")
    x = b.parameter(0, row_major(F32, 3))
    assert (x == x) is True and (x == b.negate(x)) is False and x in [x]
    with pytest.raises(TypeError):
        iter(x)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        x + "text"  # type: ignore[operator]


REFUSED: dict[str, tuple[Function, str]] = {
    "fraction": (lambda i, f: i + 0.5, "0.5 is no s32"),
    "range": (lambda i, f: i + 2**40, "is no s32"),
    "index": (lambda i, f: i[9], "9 is not an index into dimension 0"),
    "indices": (lambda i, f: i[0, 0, 0], "3 indices"),
    "step": (lambda i, f: i[::-1], "step -1"),
    "bound": (lambda i, f: i["a":], "is not a slice"),
    "types": (lambda i, f: i + f, "add"),
    "shapes": (lambda i, f: f @ f, "dot"),
    "rank": (lambda i, f: f[0, 0] @ f, "rank 1 or more"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    function, message = REFUSED[name]
    b = Builder("m")
    i, f = b.parameter(0, row_major(S32, 3, 4)), b.parameter(1, row_major(F32, 3, 4))
    with pytest.raises(HeronError) as caught:
        function(i, f)
    assert caught.value.code in ("HLO026", "HLO010")
    assert message in str(caught.value)


def test_no_place_to_add_to() -> None:
    from heron.hlo.ir.instruction import make

    x: Instruction = make("parameter", (), row_major(U32, 3), number=0)
    with pytest.raises(HeronError) as caught:
        x + 1  # type: ignore[operator]
    assert caught.value.code == "HLO026"

"""What prints is read back as the same: odd programs, imported ones, and constants of any bits."""

from __future__ import annotations

import numpy as np
import pytest

from heron.frontends.stablehlo import importer
from heron.hlo.ir import types
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import row_major
from heron.hlo.text import PrintOptions, parse, print_module
from heron.hlo.text.literal_printer import print_literal
from heron.hlo.text.literals import parse_literal
from tests.hlo.odd import odd

FORMS = {"default": PrintOptions(), "long": PrintOptions(operand_shapes=True, async_sugar=False)}


def settles(module: Module) -> None:
    """One reading puts computations and instructions in the order they print; `Module.cleanup` does so, too."""
    for options in FORMS.values():
        once = print_module(parse(print_module(module, options)), options)
        assert print_module(parse(once), options) == once
    module.cleanup()
    for options in FORMS.values():
        printed = print_module(module, options)
        assert print_module(parse(printed), options) == printed


@pytest.mark.parametrize("seed", range(60))
def test_odd_programs(seed: int) -> None:
    drawn = odd(seed)
    if drawn is not None:
        settles(drawn.module)


IMPORTED = """
module @m {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xi32>) -> (tensor<f32>, tensor<i32>) {
    %e = call @expected() : () -> tensor<i32>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%arg0 init: %z) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
     reducer(%a: tensor<f32>, %b: tensor<f32>) {
      %2 = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }
    %1 = stablehlo.reduce(%arg1 init: %e) across dimensions = [0] : (tensor<4xi32>, tensor<i32>) -> tensor<i32>
     reducer(%a: tensor<i32>, %b: tensor<i32>) {
      %2 = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %2 : tensor<i32>
    }
    return %0, %1 : tensor<f32>, tensor<i32>
  }
  func.func private @expected() -> tensor<i32> {
    %0 = stablehlo.constant dense<6> : tensor<i32>
    return %0 : tensor<i32>
  }
}
"""


def test_an_imported_program_is_in_the_order_it_prints() -> None:
    printed = print_module(importer.parse(IMPORTED))
    assert print_module(parse(printed)) == printed


@pytest.mark.parametrize("name", [t.name for t in types.ALL if t.byte_size])
def test_constants_of_any_bits(name: str) -> None:
    t = types.by_name(name)
    shape = row_major(t, 3, 50)
    array = np.frombuffer(np.random.default_rng(1).bytes(150 * t.dtype.itemsize), t.dtype).reshape(3, 50)
    if t.kind == "pred":
        array = np.frombuffer(array.tobytes(), np.uint8).reshape(3, 50) % 2 == 1
    elif t.bits < 8:
        array = np.frombuffer(array.tobytes(), np.int8).reshape(3, 50).astype(t.dtype)
    if t.is_float and t.bits == 8 or t.is_complex:  # random numbers are seldom NaNs
        array = array.copy()
        array.reshape(-1).view(np.uint8)[:32] = 0xFF
    text = print_literal(Literal(shape, array))
    again = parse_literal(text, shape).array
    assert print_literal(Literal(shape, again)) == text
    same = again.view(np.uint8) == array.view(np.uint8)
    assert same.all() or name in ("f8e8m0fnu",)


@pytest.mark.parametrize("name", [t.name for t in types.ALL if t.byte_size])
def test_equal_elements_print_as_each_of_them_does(name: str) -> None:
    """Equal in their bits: zeros of both signs, and NaNs, are not equal elements for NumPy."""
    t = types.by_name(name)
    values = [0, 1, *([-0.0, np.nan] if t.is_float and t.bits >= 16 else [])]
    for one in values:
        for other in values:
            pair = np.array([one, other]).astype(t.dtype)
            alone = [print_literal(Literal(row_major(t, 1), pair[n : n + 1])).strip("{}") for n in (0, 1)]
            assert print_literal(Literal(row_major(t, 2), pair)) == "{" + ", ".join(alone) + "}"


@pytest.mark.parametrize("dims", [(3, 1), (1, 4), (2, 3), (2, 1, 3), (3, 2, 1), (2, 3, 2, 2), (1, 1)])
def test_equal_rows_print_as_rows_do(dims: tuple[int, ...]) -> None:
    equal, other = np.full(dims, 7, np.float32), np.full(dims, 7, np.float32)
    other.reshape(-1)[0] = 8
    texts = [print_literal(Literal(row_major(types.F32, *dims), array)) for array in (equal, other)]
    assert texts[0] == texts[1].replace("8", "7")


@pytest.mark.parametrize(
    ("dims", "text"), [("0,9000000000,3", "{  }"), ("0,99999999999", "{  }"), ("2,0,99999999999", "{ {  }, {  } }")]
)
def test_a_constant_of_no_elements_may_have_any_other_sizes(dims: str, text: str) -> None:
    printed = print_module(parse(f"HloModule m\nENTRY e {{\n  ROOT c = s8[{dims}] constant({text})\n}}"))
    assert f"constant({text})" in printed and print_module(parse(printed)) == printed

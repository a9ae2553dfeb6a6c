"""Programs behind XLA:CPU's passes: fusions, an order, custom calls of its own. `printed.py` takes many more."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.evaluator import evaluate
from heron.hlo.text import parse, print_module
from tests.hlo.printed import check

pytest.importorskip("jax")
#: a fusion of a product; a comparator with bitcasts; a loop; a variadic reduction; a library's call
NAMES = ("softmax", "argsort", "scan", "sum of pairs", "gather", "cholesky")


@pytest.mark.parametrize("name", NAMES)
def test_printed_programs_run(name: str) -> None:
    assert list(check(name)) == []


def test_bits_of_numbers_in_a_comparator() -> None:
    """A bitcast there changes the type, and the order with it: negative floats as integers go the other way round."""
    module = parse(
        """HloModule m
by_bits { a = f32[] parameter(0) b = f32[] parameter(1) i = s32[] bitcast(a) j = s32[] bitcast(b)
  k = s32[] constant(3) x = s32[] xor(i, k) y = s32[] xor(j, k) ROOT c = pred[] compare(x, y), direction=LT }
most { a = f32[] parameter(0) b = f32[] parameter(1) i = s32[] bitcast(a) j = s32[] bitcast(b) m = s32[] maximum(i, j)
  ROOT r = f32[] bitcast(m) }
ENTRY e { x = f32[4,5] parameter(0) z = f32[] constant(-inf) s = f32[4,5] sort(x), dimensions={1}, to_apply=by_bits
  m = f32[4] reduce(x, z), dimensions={1}, to_apply=most ROOT t = (f32[4,5], f32[4]) tuple(s, m) }
"""
    )
    x = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    keys = x.view(np.int32) ^ 3
    wanted = np.take_along_axis(x, np.argsort(keys, axis=1), 1)
    most = np.maximum(x.view(np.int32).max(1), np.float32(-np.inf).view(np.int32)).view(np.float32)
    for got in (evaluate(module, x), heron.compile(module)(x), heron.compile(module, target="sim:sm_90")(x)):
        np.testing.assert_array_equal(got[0], wanted)
        np.testing.assert_array_equal(got[1], most)


def test_what_fusions_apply_is_printed_in_its_order() -> None:
    """XLA's schedule has an order for all but bodies of fusions, also for reducers that only those apply."""
    text = """HloModule m, is_scheduled=true, entry_computation_layout={(f32[4]{0})->f32[]}

%add (a: f32[], b: f32[]) -> f32[] {
  %b = f32[] parameter(1)
  %a = f32[] parameter(0)
  ROOT %s = f32[] add(%a, %b)
}

%f (p: f32[4]) -> f32[] {
  %p = f32[4]{0} parameter(0)
  %z = f32[] constant(0)
  ROOT %r = f32[] reduce(%p, %z), dimensions={0}, to_apply=%add
}

ENTRY %e (x: f32[4]) -> f32[] {
  %x = f32[4]{0} parameter(0)
  ROOT %k = f32[] fusion(%x), kind=kInput, calls=%f
}
"""
    assert print_module(parse(text)).strip() == text.strip()


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("kind", ["kLoop", "kCustom"])
def test_a_reducer_that_holds_a_fusion(kind: str, target: str) -> None:
    module = parse(
        f"""HloModule m
inner {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }}
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT f = f32[] fusion(a, b), kind=kLoop, calls=inner }}
body {{ p = f32[6,40] parameter(0) z = f32[] constant(0) ROOT r = f32[6] reduce(p, z), dimensions={{1}}, to_apply=add }}
ENTRY e {{ x = f32[6,40] parameter(0) ROOT r = f32[6] fusion(x), kind={kind}, calls=body }}
"""
    )
    x = np.random.default_rng(0).integers(0, 9, (6, 40)).astype(np.float32)
    np.testing.assert_array_equal(heron.compile(module, target=target)(x), x.sum(1))

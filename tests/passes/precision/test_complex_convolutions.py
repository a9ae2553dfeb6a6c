"""complex-convolution-splitter: the values of complex convolutions of every form, infinite sums included."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from tests.backends.agree import random_inputs

FORMS = {
    "features last": ("[2,9,9,3]", "[3,2,3,4]", "[2,7,8,4]", "window={size=3x2}, dim_labels=b01f_01io->b01f"),
    "features first": ("[2,3,9]", "[4,3,3]", "[2,4,7]", "window={size=3}, dim_labels=bf0_oi0->bf0"),
    "apart": ("[2,4,4,3]", "[3,3,3,4]", "[2,8,8,4]", "window={size=3x3 lhs_dilate=2x2 pad=1_2x2_1}, dim_labels=b01f_01io->b01f"),
    "large": ("[4,12,16]", "[3,16,16]", "[4,10,16]", "window={size=3}, dim_labels=b0f_0io->b0f"),
    "groups": ("[2,6,8]", "[3,2,12]", "[2,4,12]", "window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=4"),
    "batch groups": ("[4,6,3]", "[3,3,8]", "[2,4,8]", "window={size=3}, dim_labels=b0f_0io->b0f, batch_group_count=2"),
    "no window": ("[3,5]", "[5,4]", "[3,4]", "dim_labels=bf_io->bf"),
}  # fmt: skip


def _module(form: str, *types: str) -> heron.Module:
    x, k, r, attributes = FORMS[form]
    return heron.parse(f"""HloModule m
ENTRY main {{
  x = {types[0]}{x} parameter(0)
  k = {types[1]}{k} parameter(1)
  ROOT r = {types[2]}{r} convolution(x, k), {attributes}
}}""")


@pytest.mark.parametrize("t", ["c64", "c128"])
@pytest.mark.parametrize("form", FORMS)
def test_values(form: str, t: str) -> None:
    module = _module(form, t, t, t)
    x, k = (np.array(a) for a in random_inputs(module))
    inputs = [(x, k)]
    if "dilate" not in FORMS[form][3]:  # what is not read makes no NaN of an infinity
        x, k = x.copy(), k.copy()
        x.flat[1], x.flat[-3], k.flat[-1] = complex(np.inf, 1), complex(0, -np.inf), complex(2, np.nan)
        inputs.append((x, k))
    wanted = [heron.evaluate(module, *given)[0] for given in inputs]
    compiled = heron.compile(module, "cpu")
    assert PassContext().run_pass(get("complex-convolution-splitter"), module)
    assert not any(i.shape.element_type.is_complex for i in module.entry.instructions if i.opcode == "convolution")
    near = 2e-5 if t == "c64" else 1e-12
    for given, right in zip(inputs, wanted, strict=True):
        for found in (heron.evaluate(module, *given)[0], compiled.run(list(given))[0]):
            np.testing.assert_allclose(np.real(found), np.real(right), rtol=near, atol=near)
            np.testing.assert_allclose(np.imag(found), np.imag(right), rtol=near, atol=near)


@pytest.mark.parametrize("types", [("f32", "c64", "c64"), ("c64", "c64", "c128"), ("f32", "f32", "f32")])
def test_others_stay(types: tuple[str, str, str]) -> None:
    assert not PassContext().run_pass(get("complex-convolution-splitter"), _module("large", *types))

"""Arrays without elements, however large their other dimensions are."""

from __future__ import annotations

import numpy as np

import heron
from heron.hlo.text import parse


def test_iota_of_a_huge_dimension_and_none() -> None:
    (found,) = heron.evaluate(
        parse("HloModule m\nENTRY e {\n ROOT i = f32[1000000000000,0] iota(), iota_dimension=0\n}")
    )
    assert found.shape == (10**12, 0)


def test_gather_from_nothing_gives_zeros() -> None:
    text = (
        "HloModule m\nENTRY e {\n p = f32[0,3] parameter(0)\n i = s32[2] parameter(1)\n"
        " ROOT g = f32[2,1] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={1},"
        " index_vector_dim=1, slice_sizes={0,1}\n}"
    )
    arrays = np.ones((0, 3), np.float32), np.zeros(2, np.int32)
    (found,) = heron.evaluate(parse(text), *arrays)
    np.testing.assert_array_equal(found, np.zeros((2, 1), np.float32))
    np.testing.assert_array_equal(heron.compile(parse(text), target="cpu").run(list(arrays))[0], found)


def test_transform_of_nothing() -> None:
    text = "HloModule m\nENTRY e {\n ROOT f = c64[1,0] fft(c64[1,0] parameter(0)), fft_type=FFT, fft_length={1}\n}"
    module, x = parse(text, verify=True), np.ones((1, 0), np.complex64)
    assert heron.evaluate(module, x)[0].shape == heron.compile(module, target="cpu").run([x])[0].shape == (1, 0)

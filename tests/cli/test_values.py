"""Values files: both formats, every dtype, round trips, and damage of all kinds."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heron
from heron import HeronError
from heron.cli import values
from tests.support import NAMES, golden_values, program


def _module(*shapes: str) -> heron.Module:
    parameters = "\n".join(f"  p{n} = {s} parameter({n})" for n, s in enumerate(shapes))
    names = ", ".join(f"p{n}" for n in range(len(shapes)))
    return heron.parse(
        f"HloModule m\n\nENTRY e {{\n{parameters}\n  ROOT t = ({', '.join(shapes)}) tuple({names})\n}}\n"
    )


@pytest.mark.parametrize("name", NAMES)
def test_goldens_fit_their_programs(name: str) -> None:
    found = values.read(str(golden_values(name)))
    module = heron.parse(program(name).read_text())
    assert len(values.fit(found.inputs, module, name)) == len(values.leaves(module))
    assert found.outputs


def test_round_trip(tmp_path: Path) -> None:
    arrays = [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.array([1.5, -2], ml_dtypes.bfloat16),
        np.array([1, -7], ml_dtypes.int4),
        np.array(3, np.int64),
        np.array([True, False]),
        np.array([1j]),
        np.zeros((0, 2), ml_dtypes.float8_e4m3fn),
    ]
    path = str(tmp_path / "x.npz")
    values.write(path, arrays[:3], arrays[3:])
    again = values.read(path)
    for kept, array in zip(again.inputs + again.outputs, arrays, strict=True):
        assert (kept.dtype, kept.shape) == (array.dtype, array.shape)
        assert kept.tobytes() == array.tobytes()


def test_plain_arrays_come_in_file_order(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", weights=np.ones(2), bias=np.zeros(3))
    assert [a.shape for a in values.read(str(tmp_path / "x.npz")).inputs] == [(2,), (3,)]
    np.save(tmp_path / "y.npy", np.ones(4))
    assert [a.shape for a in values.read(str(tmp_path / "y.npy")).inputs] == [(4,)]


def test_numbered_arrays_without_meta(tmp_path: Path) -> None:
    arrays = {f"in{n}": np.full(n, n) for n in range(12)}
    np.savez(tmp_path / "x.npz", allow_pickle=False, out0=np.ones(5), **arrays)
    found = values.read(str(tmp_path / "x.npz"))
    assert [a.size for a in found.inputs] == list(range(12))
    assert [a.size for a in found.outputs] == [5]


def test_unsigned_and_untyped_views_fit_narrow_parameters(tmp_path: Path) -> None:
    array = np.array([1, 2], ml_dtypes.bfloat16)
    np.savez(tmp_path / "x.npz", array)  # NumPy stores the bytes as V2
    module = _module("bf16[2]{0}")
    for stored in (values.read(str(tmp_path / "x.npz")).inputs[0], array.view(np.uint16)):
        (fitted,) = values.fit([stored], module, "x")
        assert fitted.dtype == array.dtype and (fitted == array).all()


@pytest.mark.parametrize(
    ("arrays", "code"),
    [
        ([], "RUN001"),
        ([np.zeros(2, np.float32)] * 2, "RUN001"),
        ([np.zeros(2)], "RUN002"),
        ([np.zeros(2, np.uint32)], "RUN002"),
        ([np.zeros(3, np.float32)], "RUN003"),
        ([np.zeros((2, 1), np.float32)], "RUN003"),
    ],
)
def test_what_does_not_fit(arrays: list[np.ndarray], code: str) -> None:
    with pytest.raises(HeronError) as caught:
        values.fit(arrays, _module("f32[2]{0}"), "x")
    assert caught.value.code == code


def test_random_is_reproducible_and_sensible() -> None:
    shapes = ("f32[100]{0}", "s32[100]{0}", "pred[100]{0}", "bf16[3]{0}", "c64[4]{0}", "u8[50]{0}", "s4[9]{0}", "f64[]")
    module = _module(*shapes)
    first, again, other = values.random(module, 0), values.random(module, 0), values.random(module, 1)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert not (first[0] == other[0]).all()
    assert 0 <= first[1].min() and first[1].max() < 8
    assert 0 < first[2].sum() < 100
    assert [a.dtype for a in first] == [s.element_type.dtype for _, s in values.leaves(module)]
    assert [a.shape for a in first] == [s.dims for _, s in values.leaves(module)]


def _golden() -> bytes:
    return golden_values("softmax").read_bytes()


@pytest.mark.parametrize("size", [0, 1, 10, 100, 1000, -1, -10, -100])
def test_truncated(tmp_path: Path, size: int) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(_golden()[:size])
    with pytest.raises(HeronError) as caught:
        values.read(str(path))
    assert caught.value.code == "CLI030"


@settings(max_examples=60)
@given(place=st.integers(0, 24_000), byte=st.integers(0, 255))
def test_damaged_files_load_or_are_refused(tmp_path_factory: pytest.TempPathFactory, place: int, byte: int) -> None:
    data = bytearray(_golden())
    data[place % len(data)] = byte
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    path.write_bytes(data)
    try:
        values.read(str(path))
    except HeronError as error:
        assert error.code in ("CLI030", "CLI031")


def test_pickles_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(HeronError, match="Python objects"):
        values.read(str(tmp_path / "x.npz"))


def test_not_there_and_not_a_file(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.npz", tmp_path):
        with pytest.raises(HeronError) as caught:
            values.read(str(path))
        assert caught.value.code == "CLI010"


@pytest.mark.parametrize(
    "meta",
    [
        "not json",
        "[]",
        "{}",
        json.dumps({"inputs": [], "outputs": []}),
        json.dumps({"inputs": [{"dtype": "float32"}], "outputs": []}),
        json.dumps({"inputs": [{"dtype": "no_such", "shape": [2]}], "outputs": []}),
        json.dumps({"inputs": [{"dtype": "float32", "shape": [3]}], "outputs": []}),
        json.dumps({"inputs": [{"dtype": "float32", "shape": [2]}], "outputs": [], "kept_inputs": [1]}),
        json.dumps({"inputs": [{"dtype": "float32", "shape": [2]}], "outputs": [], "kept_inputs": "all"}),
    ],
)
def test_meta_that_does_not_fit(tmp_path: Path, meta: str) -> None:
    np.savez(tmp_path / "x.npz", in0=np.zeros(2, np.float32), meta=np.array(meta))
    with pytest.raises(HeronError) as caught:
        values.read(str(tmp_path / "x.npz"))
    assert caught.value.code == "CLI031"


def test_missing_number(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", in0=np.zeros(2), in2=np.zeros(2))
    with pytest.raises(HeronError, match="no in1"):
        values.read(str(tmp_path / "x.npz"))


def test_random_matrices_of_a_program_with_cholesky_have_factors() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[3,5,5] parameter(0)
  y = f32[5,2] parameter(1)
  c = f32[3,5,5] cholesky(x), lower=true
  ROOT r = (f32[3,5,5], f32[5,2]) tuple(c, y)
}
"""
    x, y = values.random(heron.parse(text), 0)
    np.linalg.cholesky((x + x.swapaxes(1, 2)) / 2)
    assert float(y.max()) < 1

"""Products of sparse matrices, as JAX's sparse arrays call them on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import heron

PROGRAM = """HloModule m
ENTRY e {{
  data = f32[{entries}] parameter(0)
  starts = {index}[{after}] parameter(1)
  columns = {index}[{entries}] parameter(2)
  dense = f32[{dense}] parameter(3)
  ROOT r = f32[{result}] custom-call(data, starts, columns, dense), custom_call_target="cpu_csr_sparse_dense_ffi", api_version=API_VERSION_TYPED_FFI
}}
"""  # noqa: E501


@pytest.mark.parametrize("index", ["s32", "s64"])
@pytest.mark.parametrize("width", [None, 1, 4])
@pytest.mark.parametrize(("rows", "columns", "entries"), [(5, 7, 12), (1, 1, 1), (6, 3, 4), (3, 4, 0)])
def test_rows_may_be_empty_and_columns_repeated(
    index: str, width: int | None, rows: int, columns: int, entries: int
) -> None:
    rng = np.random.default_rng(rows * 100 + entries)
    dtype = np.dtype(index.replace("s", "int"))
    data = rng.integers(-4, 5, entries).astype(np.float32)
    starts = np.concatenate([[0], np.sort(rng.integers(0, entries + 1, rows - 1)), [entries]]).astype(dtype)
    at = rng.integers(0, columns, entries).astype(dtype)
    dims = (columns,) if width is None else (columns, width)
    dense = rng.integers(-4, 5, dims).astype(np.float32)
    wanted = scipy.sparse.csr_matrix((data, at, starts), shape=(rows, columns)) @ dense
    text = PROGRAM.format(
        entries=entries,
        index=index,
        after=rows + 1,
        dense=",".join(map(str, dims)),
        result=",".join(map(str, (rows, *dims[1:]))),
    )
    module = heron.parse(text)
    np.testing.assert_array_equal(heron.evaluate(module, data, starts, at, dense)[0], wanted)
    np.testing.assert_array_equal(heron.compile(module)(data, starts, at, dense), wanted)


def test_values_outside_of_the_matrix_do_not_count() -> None:
    module = heron.parse(PROGRAM.format(entries=4, index="s32", after=3, dense=3, result=2))
    data, columns = np.array([1, 2, 3, 4], np.float32), np.array([0, 3, 2, 1], np.int32)
    product = heron.compile(module)(data, np.array([0, 2, 3], np.int32), columns, np.array([10, 20, 30], np.float32))
    np.testing.assert_array_equal(product, [10, 90])


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("t", ["f64", "c64", "s32", "bf16"])
def test_kernels_compute_them(target: str, t: str) -> None:
    """Rows that begin late and end early, columns that are not there, and what these would multiply."""
    text = PROGRAM.format(entries=9, index="s32", after=6, dense="4,3", result="5,3").replace("f32", t)
    module = heron.parse(text)
    dtype = module.entry.parameters[0].shape.element_type.dtype
    data = np.arange(1, 10).astype(dtype)
    starts = np.array([1, 1, 4, 4, 7, 8], np.int32)
    columns = np.array([0, 3, 4, 1, 2, -1, 0, 3, 1], np.int32)
    dense = np.arange(12).reshape(4, 3).astype(dtype)
    compiled = heron.compile(module, target)
    np.testing.assert_array_equal(
        np.asarray(compiled.run([data, starts, columns, dense])[0], dtype),
        heron.evaluate(module, data, starts, columns, dense)[0],
    )
    assert compiled.kernels and "custom-call" not in str(compiled.stage("scheduled"))


def test_values_that_are_no_numbers_stay_in_their_rows() -> None:
    module = heron.parse(PROGRAM.format(entries=3, index="s32", after=3, dense=2, result=2))
    product = heron.compile(module)(
        np.array([1, 2, 3], np.float32),
        np.array([0, 1, 3], np.int32),
        np.array([1, 0, 5], np.int32),
        np.array([10, np.nan], np.float32),
    )
    np.testing.assert_array_equal(product, [np.nan, 20])

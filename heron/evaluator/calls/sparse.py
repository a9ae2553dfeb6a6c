"""Products of sparse matrices."""

from __future__ import annotations

import numpy as np

from heron.evaluator.calls.table import evaluates
from heron.hlo.calls import sparse
from heron.hlo.ir.instruction import Instruction


@evaluates(sparse.CSR_DENSE)
def csr_dense(
    i: Instruction, data: np.ndarray, starts: np.ndarray, columns: np.ndarray, dense: np.ndarray
) -> np.ndarray:
    """The product of a matrix by rows with a vector or a matrix. Values in columns that it has not count as zero.

    The row of a value is the number of rows that begin up to it, less one.
    """
    begun = np.bincount(np.clip(starts, 0, len(data)), minlength=len(data))
    rows = np.cumsum(begun[: len(data)]) - 1
    used = (rows >= 0) & (rows < len(starts) - 1) & (columns >= 0) & (columns < len(dense))
    factors = data[used].reshape(-1, *[1] * (dense.ndim - 1))
    product = np.zeros(i.shape.dims, i.shape.element_type.dtype)
    np.add.at(product, rows[used], factors * dense[columns[used]])
    return product

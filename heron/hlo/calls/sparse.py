"""Products of sparse matrices, as JAX calls them on the CPU."""

from __future__ import annotations

from heron.hlo.calls.declaration import EVALUATOR, Call

#: a matrix by rows: its values, the place where each row begins, the column of each value
CSR_DENSE = Call(
    "csr_dense",
    ("cpu_csr_sparse_dense_ffi",),
    "data:T[e], starts[m+1], columns[e], dense:T[k,*c] -> product:T[m,*c]",
    cpu=EVALUATOR,
    gpu=EVALUATOR,
)
CALLS = (CSR_DENSE,)

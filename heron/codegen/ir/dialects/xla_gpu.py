"""The `xla_gpu` dialect: the few ops a kernel needs beyond arith, math, scf, tensor, func and gpu.

A kernel is written in terms of tensors and indexing maps; `heron/codegen/transforms` lowers these ops away. The last
four, `xla_gpu.llvm_…`, exist because xDSL's `llvm` dialect has no atomics: they are LLVM's instructions one to one and
reach the LLVM translation.

The dialect of XLA:GPU, whose names these are, has a few ops more. Here an index is an expression while a function is
emitted, so that nothing has to be re-indexed afterwards (`reindex`); an access under a condition stands in `scf.if`
(`predicated_extract`, `predicated_insert`); values between loops are tensors or vectors the loops carry (`materialize`,
`insert`); dynamic sizes are scalars beside their arrays (`get_dynamic_dim_size`).

| op | meaning |
|---|---|
| `apply_indexing "map"(dims…)[syms…]` | the map's results at a point, as `index` values |
| `loop (dims…)[syms] -> (results) in "map" iter_args(…)` | runs its body for each point of the domain, s0 outermost |
| `yield` | ends a `loop` or `atomic_rmw` body |
| `pure_call @f(args)` | a call without side effects (may be shared, dropped, inlined) |
| `allocate_shared : tensor<…>` | a tensor in the block's shared memory |
| `sync_threads (%t…)` | a block barrier; its results are the tensors as they are after it |
| `shuffle_reduce @f(values) to N` | combines over lanes at distances N, N/2, …, 1; lane 0 has the whole |
| `shuffle_up (values) by N` | the values of the lane N below |
| `shuffle_first (values) of N` | the values of the first lane of each N |
| `transpose_block %s[idx…], %t[idx…]` | writes a square block of `%s` into `%t`, turned |
| `shuffle_from %v, %lane` | the value of the lane that each lane names |
| `ballot %c` | a bit for each lane of the warp where it holds |
| `match_any %v` | a bit for each lane of the warp with the same value |
| `atomic_rmw %t[idx…]` | replaces one element by its body's result, atomically |
| `fetch_add %v, %t[idx…]` | adds to one element, atomically; its result is what was there |
| `atomic_load`, `atomic_store` | an element that threads of other blocks write or read meanwhile |
| `llvm_atomicrmw`, `llvm_cmpxchg`, `llvm_load_atomic`, `llvm_store_atomic` | the LLVM instructions |
"""

from __future__ import annotations

from xdsl.ir import Dialect

from heron.codegen.ir.dialects.device_memory import (
    AtomicLoadOp,
    AtomicStoreOp,
    BallotOp,
    FetchAddOp,
    MatchAnyOp,
    ShuffleFromOp,
)
from heron.codegen.ir.dialects.indexed_loops import ApplyIndexingOp, LoopOp, PureCallOp, YieldOp
from heron.codegen.ir.dialects.indexing_map_attr import IndexingMapAttr
from heron.codegen.ir.dialects.llvm_atomics import LLVMAtomicLoadOp, LLVMAtomicRMWOp, LLVMAtomicStoreOp, LLVMCmpXchgOp
from heron.codegen.ir.dialects.syntax import INDEX
from heron.codegen.ir.dialects.thread_blocks import (
    AllocateSharedOp,
    AtomicRMWOp,
    ShuffleFirstOp,
    ShuffleReduceOp,
    ShuffleUpOp,
    SyncThreadsOp,
    TransposeBlockOp,
)

XlaGpu = Dialect(
    "xla_gpu",
    [
        ApplyIndexingOp,
        LoopOp,
        YieldOp,
        PureCallOp,
        AllocateSharedOp,
        SyncThreadsOp,
        ShuffleReduceOp,
        ShuffleUpOp,
        ShuffleFirstOp,
        ShuffleFromOp,
        MatchAnyOp,
        BallotOp,
        TransposeBlockOp,
        AtomicRMWOp,
        FetchAddOp,
        AtomicLoadOp,
        AtomicStoreOp,
        LLVMAtomicRMWOp,
        LLVMCmpXchgOp,
        LLVMAtomicLoadOp,
        LLVMAtomicStoreOp,
    ],
    [IndexingMapAttr],
)

__all__ = [
    "AllocateSharedOp", "ApplyIndexingOp", "AtomicLoadOp", "AtomicRMWOp", "AtomicStoreOp", "BallotOp", "FetchAddOp",
    "INDEX", "IndexingMapAttr", "LLVMAtomicLoadOp", "LLVMAtomicRMWOp", "LLVMAtomicStoreOp", "LLVMCmpXchgOp", "LoopOp",
    "MatchAnyOp", "PureCallOp", "ShuffleFirstOp", "ShuffleFromOp", "ShuffleReduceOp", "ShuffleUpOp", "SyncThreadsOp",
    "TransposeBlockOp", "XlaGpu", "YieldOp",
]  # fmt: skip

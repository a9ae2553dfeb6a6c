"""Making and remaking the custom call of a matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from heron.hlo.calls import gemm
from heron.hlo.calls.gemm import GemmConfig
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import BF16, C64, C128, F8E4M3FN, F8E5M2, F16, F32, F64, S8, S32, ElementType
from heron.passes.rewriting.expander import home

#: element types of A and B → types of the product that cuBLASLt computes from them
PRODUCTS: dict[ElementType, tuple[ElementType, ...]] = {
    BF16: (BF16, F32), F16: (F16, F32), F32: (F32,), F64: (F64,), C64: (C64,), C128: (C128,), S8: (S32,),
    F8E4M3FN: (BF16, F16, F32), F8E5M2: (BF16, F16, F32),
}  # fmt: skip
#: types of products that may be followed by a bias or an activation
WITH_EPILOGUE = frozenset({BF16, F16, F32})
#: algorithms a dot may ask for that cuBLASLt has; the rest are done by kernels of our own, in f32
ALGORITHMS = frozenset({
    "dot_f32_f32_f32", "dot_tf32_tf32_f32", "dot_bf16_bf16_f32", "dot_f16_f16_f32", "dot_f64_f64_f64",
    "dot_bf16_bf16_bf16", "dot_f16_f16_f16",
})  # fmt: skip


def config_of(dot: Instruction) -> GemmConfig:
    """The configuration of a plain call for that dot."""
    words = [str(w).upper() for w in dot.attrs.get("operand_precision") or ()]
    algorithm = dot.attrs.get("algorithm")
    return GemmConfig(
        tuple(dot.lhs_contracting_dims),
        tuple(dot.rhs_contracting_dims),
        tuple(dot.lhs_batch_dims),
        tuple(dot.rhs_batch_dims),
        precision=(words[0], words[1]) if len(words) > 1 else ("DEFAULT", "DEFAULT"),
        algorithm=f"ALG_{algorithm.upper()}" if algorithm else "ALG_UNSET",
        lhs_stride=_stride(dot.operands[0].shape, dot.lhs_batch_dims),
        rhs_stride=_stride(dot.operands[1].shape, dot.rhs_batch_dims),
    )


def _stride(shape: Shape, batch: Sequence[int]) -> int:
    """Elements from one matrix of a batch to the next."""
    return prod(n for d, n in enumerate(shape.dims) if d not in batch)


def call(
    like: Instruction, operands: Sequence[Instruction], shape: Shape, config: GemmConfig, target: str = gemm.MATMUL
) -> Instruction:
    """A call that will replace `like`: it has its metadata and takes its name."""
    made = home(like).add("custom-call", operands, shape, like=like, custom_call_target=target)
    made.name, like.name = like.name, made.name
    made.extras["backend_config"] = str(config)
    return made

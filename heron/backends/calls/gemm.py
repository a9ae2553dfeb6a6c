"""Custom calls of matrix products: cuBLASLt on a GPU, NumPy elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.calls.host import call, library_call
from heron.errors import HeronError
from heron.hlo.calls import gemm
from heron.hlo.calls.gemm import GemmConfig
from heron.hlo.calls.gemm_shape import product_shape
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F16, F64
from heron.options import Options
from heron.runtime.cuda.libraries.cublaslt import WORKSPACE
from heron.runtime.cuda.libraries.cublaslt import Matmul as Descriptor
from heron.runtime.host.gemm import Matmul
from heron.runtime.library_call import Array
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def lower(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """A product and its epilogue. Raises GEN010 for one that is not one matrix a batch in memory."""
    config = gemm.read(i)
    routine = Matmul(config, gemm.parts(i, config), len(i.operands))
    if not lowering.target.is_gpu:
        return call(lowering, i, routine, "numpy")
    return library_call(lowering, i, lambda arrays: describe(i, config, arrays, lowering.options), routine)


def describe(i: Instruction, config: GemmConfig, arrays: tuple[Array, ...], options: Options) -> Descriptor:
    """The call as cuBLASLt takes it. Raises GEN010."""
    numbers = config.lhs_batch, config.lhs_contracting, config.rhs_batch, config.rhs_contracting
    lhs, rhs = (o.shape for o in i.operands[:2])
    shape = product_shape(lhs, rhs, gemm.product(i), numbers)
    if shape is None:
        raise HeronError("GEN010", "this product is not in the form a matrix library takes", where=str(i))
    places, first = gemm.parts(i, config), len(i.operands)
    return Descriptor(
        arrays,
        shape,
        compute(config, arrays, first, options),
        first,
        config.alpha,
        config.beta,
        config.epilogue,
        c=places.c,
        bias=places.bias,
        aux=first + 1 if config.keeps_input else -1,
        amax=first + 1 if config.gives_amax else -1,
        lhs_scale=places.lhs_scale,
        rhs_scale=places.rhs_scale,
        out_scale=places.out_scale,
        candidate=max(config.selected, 0),
        workspace=config.workspace or WORKSPACE,
    )


def compute(config: GemmConfig, arrays: tuple[Array, ...], out: int, options: Options) -> str:
    """The type of the sums. f32 is rounded to tf32 only where the program or `Options.math` allows it."""
    operand, result = arrays[0].element_type, arrays[out].element_type
    if operand.is_integer:
        return "s32"
    if F64 in (operand, result) or operand.name == "c128":
        return "f64"
    if config.algorithm == "ALG_DOT_F16_F16_F16" and operand is F16:
        return "f16"
    if operand.name not in ("f32", "c64"):
        return "f32"
    if config.algorithm == "ALG_DOT_TF32_TF32_F32":
        return "tf32"
    if config.algorithm.startswith("ALG_DOT_BF16_BF16"):
        return "bf16 from f32"
    is_free = config.algorithm == "ALG_UNSET" and set(config.precision) == {"DEFAULT"}
    return "tf32" if is_free and options.allows("finite-only") else "f32"

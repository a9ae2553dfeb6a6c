"""cusolver-rewriter: Cholesky factorisations as calls of cuSOLVER."""

from __future__ import annotations

from heron.hlo.ir import shape as shapes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import C64, C128, F32, F64, PRED, S32
from heron.passes.calls.model.choice import absent
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, splat
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass

TARGET = "cusolver_potrf_ffi"


@register
@dataclass(frozen=True)
class CusolverRewriter(Expander):
    """Rewrites Cholesky factorisations to a call of cuSOLVER, as JAX makes it, and what the op adds to that.

    The routine leaves the other triangle as it was and says which matrices it could not factor: the one becomes zero,
    the others NaN. Without the library the op stays, for `cholesky-expander`.

    ROOT r = f32[3,3] cholesky(f32[3,3] a), lower=true
    ->
    ...
    """

    name = "cusolver-rewriter"
    aliases = ("gpusolver-rewriter",)
    opcodes = frozenset({"cholesky"})

    def run(self, module: Module, ctx: PassContext) -> bool:
        if why := absent("cusolver", ctx):
            for i in [i for i in module.instructions() if i.opcode == "cholesky"]:
                ctx.decide(False, why, subject=i.name, object="cusolver")
            return False
        return super().run(module, ctx)

    def matches(self, i: Instruction) -> bool:
        return i.shape.element_type in (F32, F64, C64, C128) and i.shape.num_elements > 0

    def expand(self, i: Instruction) -> Instruction:
        c, (a,), dims = home(i), i.operands, i.shape.dims
        batch = tuple(range(len(dims) - 2))
        info = array(S32, dims[:-2])
        result = shapes.tuple_([i.shape, info])
        aliasing = (((0,), 0, ()),)
        made = c.add(
            "custom-call", [a], result, like=i, custom_call_target=TARGET, output_to_operand_aliasing=aliasing,
            api_version="API_VERSION_TYPED_FFI",
        )  # fmt: skip
        made.extras["backend_config"] = "{lower = " + ("true" if i.lower else "false") + "}"
        factor, status = (c.add("get-tuple-element", [made], s, like=i, index=n) for n, s in enumerate((i.shape, info)))
        good = c.add("broadcast", [status.eq(splat(c, info, 0))], array(PRED, dims), dimensions=batch)
        rows, columns = (c.add("iota", (), array(S32, dims), iota_dimension=len(dims) - n) for n in (2, 1))
        inside = rows.ge(columns) if i.lower else rows.le(columns)
        kept = c.add("select", [inside, factor, splat(c, i.shape, 0)], i.shape, like=i)
        return c.add("select", [good, kept, splat(c, i.shape, float("nan"))], i.shape, like=i)

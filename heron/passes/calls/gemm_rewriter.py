"""gemm-rewriter: products become calls of cuBLASLt, with what follows them."""

from __future__ import annotations

from pathlib import PurePath

from heron.errors import HeronError
from heron.hlo.calls import gemm
from heron.hlo.calls.gemm_shape import gemm_shape
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.calls.model import gemm_f8
from heron.passes.calls.model.choice import CUBLASLT, OWN, absent
from heron.passes.calls.model.gemm import ALGORITHMS, PRODUCTS, call, config_of
from heron.passes.calls.model.gemm_epilogues import RULES, Fused, apply, product_of
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.hints import computed_by
from heron.passes.rewriting.building import is_static
from heron.records import dataclass


@register
@dataclass(frozen=True)
class GemmRewriter(Pass):
    """Rewrites dots to calls of cuBLASLt that take in scales, biases, activations and conversions which follow.

    A call that leaves a value unrounded between ops of narrow types changes values, so for these `math` decides. 8-bit
    floats that are widened, and scaled, before they are multiplied are operands as they are; a result stored in 8 bits
    again, and its largest magnitude, are results.

    d = f32[8,16] dot(f32[8,32] x, f32[32,16] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    bs = f32[8,16] broadcast(f32[16] b), dimensions={1}
    ROOT r = f32[8,16] add(d, bs)
    ->
    ...
    ROOT r = f32[8,16] custom-call(x, y, b), custom_call_target="__cublas$lt$matmul"
    """

    name = "gemm-rewriter"
    constraints = (
        Constraint("layout-assignment", "gemm-rewriter", "a call takes its operands as they lie", all_runs=True),
        Constraint("dot-normalizer", "gemm-rewriter", "only dots that sum over something are matrix products"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        missing = absent(CUBLASLT, ctx)
        changed = False
        for c in module.computations_to_rewrite():
            for dot in [i for i in c.post_order() if i.opcode == "dot"]:
                narrow = None if missing else _of_8_bits(dot, ctx)
                why = missing or ("" if narrow else refusal(dot))
                if why:
                    ctx.decide(False, why, subject=dot.name, object=CUBLASLT)
                    continue
                if not ctx.may_fire("gemm", _HERE, dot):
                    return changed
                changed = True
                ctx.fired("gemm", _HERE)
                if narrow:
                    operands, config = gemm_f8.operands_of(dot, narrow)
                    made = call(dot, operands, dot.shape, config, gemm.MATMUL_F8)
                else:
                    made = call(dot, dot.operands, dot.shape, config_of(dot))
                c.replace(dot, made)
                _take_in(made, ctx)
        return changed


def _of_8_bits(dot: Instruction, ctx: PassContext) -> tuple[gemm_f8.Scaled, gemm_f8.Scaled] | None:
    """The 8-bit arrays that the library multiplies as they are; why it does not becomes a decision."""
    found = gemm_f8.find_operands(dot) if is_static(dot) else None
    why = gemm_f8.refusal(dot, found, ctx) if found else ""
    if why:
        ctx.decide(False, why, subject=dot.name, object="8-bit product")
    return None if why else found


def _take_in(made: Instruction, ctx: PassContext) -> None:
    """Fuse what follows a call until nothing more fits; what is kept out, and why, becomes a decision."""
    followers: list[str] = []
    refused: dict[str, str] = {}
    name, again = made.name, True
    while again:
        again = False
        product = product_of(made)
        for rule in RULES:
            found = rule(product, ctx.options.allows)
            if isinstance(found, Fused):
                made, again = apply(product, found), True
                followers.append(rule.__name__)
                break
            if found is not None:
                refused[f"{rule.__name__} {found.what.name}"] = found.why
    ctx.decide(True, "with " + ", ".join(followers) if followers else "as it is", subject=name, object=CUBLASLT)
    for what, why in refused.items():
        ctx.decide(False, why, subject=name, object=what)


def refusal(dot: Instruction) -> str:
    """Why the library does not compute that dot; empty when it does."""
    if computed_by(dot) == OWN:
        return "it is to be computed by a kernel of our own"
    if not is_static(dot) or len(dot.operands) != 2:
        return "its sizes are known only when it runs"
    a, b = (o.shape.element_type for o in dot.operands)
    if a is not b or a.bits == 8 and a.is_float or dot.shape.element_type not in PRODUCTS.get(a, ()):
        return f"no product of {a} and {b} to {dot.shape.element_type}"
    algorithm = dot.attrs.get("algorithm")
    if algorithm and algorithm not in ALGORITHMS:
        return f"no algorithm {algorithm}"
    if 0 in dot.shape.dims or any(0 in o.shape.dims for o in dot.operands):
        return "it has no elements"
    try:
        gemm_shape(dot)
    except HeronError as error:
        return error.what
    return ""


_HERE = f"{PurePath(__file__).name}:{GemmRewriter.run.__code__.co_firstlineno}"

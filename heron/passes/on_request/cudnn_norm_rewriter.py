"""cudnn-norm-rewriter: layer norms become calls of cuDNN."""

from __future__ import annotations

from math import prod
from pathlib import PurePath

from heron.hlo.calls import norm
from heron.hlo.calls.norm import NormConfig
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import BF16, F16, F32, U8
from heron.passes.calls.model.choice import absent
from heron.passes.calls.model.layer_norm import LayerNorm, find_layer_norm
from heron.passes.calls.model.layer_norm_derivative import Derivative, find_derivative
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, is_static, reshape, splat
from heron.passes.rewriting.expander import home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class CudnnNormRewriter(Pass):
    """Rewrites layer norms along the last dimensions to the calls of cuDNN that XLA:GPU prints.

    Where a derivative wants them, the call gives means and factors too; the derivatives of x, scale and bias are a call
    as well where the program computes them, in whatever form (`row_algebra` sees through that). No pipeline has it: it
    sums in another order, and one kernel of heron's own moves as many bytes and does what is around the norm too.

    add {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    zero = f32[] constant(0)
    total = f32[8] reduce(f32[8,4] x, zero), dimensions={1}, to_apply=add
    quarter = f32[] constant(0.25)
    quarters = f32[8] broadcast(quarter), dimensions={}
    mean = f32[8] multiply(total, quarters)
    means = f32[8,4] broadcast(mean), dimensions={0}
    centred = f32[8,4] subtract(x, means)
    square = f32[8,4] multiply(centred, centred)
    squares = f32[8] reduce(square, zero), dimensions={1}, to_apply=add
    variance = f32[8] multiply(squares, quarters)
    tiny = f32[] constant(1e-5)
    tinies = f32[8] broadcast(tiny), dimensions={}
    more = f32[8] add(variance, tinies)
    factor = f32[8] rsqrt(more)
    factors = f32[8,4] broadcast(factor), dimensions={0}
    normal = f32[8,4] multiply(centred, factors)
    g = f32[8,4] broadcast(f32[4] scale), dimensions={1}
    scaled = f32[8,4] multiply(normal, g)
    b = f32[8,4] broadcast(f32[4] bias), dimensions={1}
    ROOT y = f32[8,4] add(scaled, b)
    ->
    ...
    """

    name = "cudnn-norm-rewriter"

    def run(self, module: Module, ctx: PassContext) -> bool:
        missing = absent("cudnn", ctx)
        changed = False
        for c in module.computations_to_rewrite():
            for i in [i for i in c.instructions if i.opcode == "add"]:
                found = find_layer_norm(i) if i.parent is c else None
                if found is None:
                    continue
                if why := missing or _refusal(found):
                    ctx.decide(False, why, subject=i.name, object="cudnn")
                    continue
                if not ctx.may_fire("layer-norm", _HERE, i):
                    return changed
                ctx.fired("layer-norm", _HERE)
                kind = norm.TRAINING if found.is_used_elsewhere else norm.INFERENCE
                derivative = find_derivative(found) if kind == norm.TRAINING and not found.divides else None
                why = kind if derivative is None else f"{kind} and {norm.BACKWARD} for '{derivative.dx.name}'"
                ctx.decide(True, why, subject=i.name, object="cudnn")
                _rewrite(found, kind, derivative)
                changed = True
        return changed


def _refusal(n: LayerNorm) -> str:
    """Why the library does not compute it; empty when it does."""
    if not is_static(n.root) or 0 in n.x.shape.dims:
        return "its sizes are known only when it runs, or there is nothing"
    if n.columns != tuple(range(n.x.shape.rank - len(n.columns), n.x.shape.rank)):
        return "its rows are not the last dimensions"
    if len(n.columns) > 3:
        return "cuDNN has three dimensions a row at most"
    if any(i.shape.element_type is not F32 for i in (n.root, n.scale, n.bias, n.factor)):
        return "cuDNN computes norms in f32"
    return ""


def _rewrite(n: LayerNorm, kind: str, derivative: Derivative | None) -> None:
    """The call on rows, in the place of the norm and, in training, of means and factors."""
    c, x, y = home(n.root), n.x, n.root
    row = [x.shape.dims[d] for d in n.columns]
    rows = x.shape.num_elements // prod(row)
    fill = [1] * (3 - len(row))
    # narrow arrays are read and written as they are: only the call computes in f32
    source = x.operands[0] if x.opcode == "convert" and x.operands[0].shape.element_type in (BF16, F16) else x
    user = next(iter(y.users)) if len(y.users) == 1 and not y.is_root else None
    t = source.shape.element_type
    result = user if user is not None and user.opcode == "convert" and user.shape.element_type is t is not F32 else y
    if result is y and t is not F32:
        source, t = x, F32
    one, many, each = (
        array(k, [m, *s, *fill]) for k, m, s in ((t, rows, row), (F32, rows, [1] * len(row)), (F32, 1, row))
    )
    operands = [reshape(source, one.dims), reshape(n.scale, each.dims), reshape(n.bias, each.dims)]
    arrays = [one] if kind == norm.INFERENCE else [one, many, many]
    made = c.add(
        "custom-call", operands, shapes.tuple_([*arrays, array(U8, (0,))]), like=y, custom_call_target=norm.TARGET
    )
    made.extras["backend_config"] = str(NormConfig(kind, n.epsilon))
    parts = [c.add("get-tuple-element", [made], s, like=y, index=k) for k, s in enumerate(arrays)]
    if derivative is not None:
        _derive(derivative, n, [reshape(n.x, one.dims), operands[1], *parts[1:]])
    if n.divides and len(parts) > 1:  # others want the root
        one = splat(c, parts[2].shape, 1)
        parts[2] = c.add("divide", [one, parts[2]], parts[2].shape, like=n.factor)
    for old, new in zip((result, n.mean, n.factor), parts, strict=False):
        _replace(old, reshape(new, old.shape.dims))


def _derive(d: Derivative, n: LayerNorm, given: list[Instruction]) -> None:
    """The call of the derivative, from rows, scale, means and factors, in the place of what it gives."""
    c, (x, scale, mean, factor) = home(d.dx), given
    operands = [x, scale, reshape(d.dy, x.shape.dims), mean, factor]
    arrays = [x.shape, scale.shape, scale.shape]
    result = shapes.tuple_([*arrays, array(U8, (0,))])
    made = c.add("custom-call", operands, result, like=d.dx, custom_call_target=norm.TARGET)
    made.extras["backend_config"] = str(NormConfig(norm.BACKWARD, n.epsilon))
    for k, (old, s) in enumerate(zip((d.dx, d.dscale, d.dbias), arrays, strict=True)):
        if old is not None:
            part = c.add("get-tuple-element", [made], s, like=old, index=k)
            _replace(old, reshape(part, old.shape.dims))


def _replace(old: Instruction, new: Instruction) -> None:
    home(new).replace(old, new)


_HERE = f"{PurePath(__file__).name}:{CudnnNormRewriter.run.__code__.co_firstlineno}"

"""Tuples, barriers, maps, conditionals, custom calls: what is looked through rather than computed."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.rules import Builder, rule

LAYOUTS = "kept"


@rule("get-tuple-element", operand="tuple")
def element_of_tuple(i: Instruction, b: Builder) -> Instruction | None:
    """get-tuple-element(tuple(x, y), n) == the n-th

    t = (f32[2], s32[]) tuple(f32[2] x, s32[] y)
    ROOT r = f32[2] get-tuple-element(t), index=0
    ->
    ROOT x
    """
    t = i.operands[0]
    return t.operands[i.attrs["index"]] if t.opcode == "tuple" else None


@rule("opt-barrier", operand="tuple")
def barrier_of_what_is_read(i: Instruction, b: Builder) -> Instruction | None:
    """opt-barrier(tuple(x, y)) == opt-barrier(tuple(x)) where nobody reads y behind it

    t = (f32[2], s32[]) tuple(f32[2] x, s32[] y)
    o = (f32[2], s32[]) opt-barrier(t)
    ROOT r = f32[2] get-tuple-element(o), index=0
    ->
    t = (f32[2]) tuple(x)
    o = (f32[2]) opt-barrier(t)
    p = f32[2] get-tuple-element(o), index=0
    n = (f32[2], s32[]) tuple(p, y)
    ROOT r = f32[2] get-tuple-element(n), index=0
    """
    t = i.operands[0]
    if t.opcode != "tuple" or i.is_root or any(u.opcode != "get-tuple-element" for u in i.users):
        return None
    used = {u.attrs["index"] for u in i.users} | {n for n, x in enumerate(t.operands) if _stays(x)}
    if len(used) == len(t.operands):
        return None
    order = sorted(used)
    barrier = b.add("opt-barrier", [b.add("tuple", [t.operands[n] for n in order])])
    parts = list(t.operands)
    for place, n in enumerate(order):
        parts[n] = b.add("get-tuple-element", [barrier], t.operands[n].shape, index=place)
    return b.add("tuple", parts, i.shape)


def _stays(x: Instruction) -> bool:
    return x.shape.is_token or x.has_side_effect


@rule("map", layouts="free")
def map_of_parameter(i: Instruction, b: Builder) -> Instruction | None:
    """map(x, y) by a function that gives one of its parameters == that operand; by a constant == the constant

    second {
      a = f32[] parameter(0)
      ROOT b = f32[] parameter(1)
    }

    ROOT r = f32[4] map(f32[4] x, f32[4] y), dimensions={0}, to_apply=second
    ->
    ROOT y
    """
    root = i.to_apply.root
    if root.opcode == "parameter":
        return i.operands[root.attrs["number"]]
    if root.opcode == "constant" and root.shape.rank == 0:
        return b.broadcast(b.constant(root.attrs["literal"]), i.shape.dims, ())
    return None


@rule("map", layouts="free")
def map_of_one_op(i: Instruction, b: Builder) -> Instruction | None:
    """map(x, y) by one elementwise op of parameters == that op on x and y

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b)
    }

    ROOT r = f32[4] map(f32[4] x, f32[4] y), dimensions={0}, to_apply=sum
    ->
    ROOT r = f32[4] add(x, y)
    """
    root = i.to_apply.root
    if not root.op.is_elementwise or root.has_side_effect:
        return None
    if not root.operands or any(o.opcode != "parameter" for o in root.operands):
        return None
    return b.like(root, [i.operands[o.attrs["number"]] for o in root.operands], i.shape)


@rule("conditional", operand="convert")
def conditional_on_truth(i: Instruction, b: Builder) -> Instruction | None:
    """conditional(convert(p), x, y) == conditional(p, y, x) with the branches the other way round

    twice {
      a = f32[] parameter(0)
      ROOT b = f32[] add(a, a)
    }

    square {
      a = f32[] parameter(0)
      ROOT b = f32[] multiply(a, a)
    }

    n = s32[] convert(pred[] p)
    ROOT r = f32[] conditional(n, f32[] x, f32[] y), branch_computations={twice, square}
    ->
    ROOT r = f32[] conditional(p, y, x), true_computation=square, false_computation=twice
    """
    n, *operands = i.operands
    if n.opcode != "convert" or n.operands[0].shape.element_type.kind != "pred" or len(operands) != 2:
        return None
    return b.add(
        "conditional",
        [n.operands[0], *reversed(operands)],
        i.shape,
        **{**i.attrs, "branch_computations": tuple(reversed(i.branch_computations))},
    )


@rule("custom-call", operand="get-tuple-element", layouts="free")
def padded_and_sliced(i: Instruction, b: Builder) -> Instruction | None:
    """SliceToDynamic of what PadToStatic gives == what that was given

    p = (f32[4], s32[]) custom-call(f32[4] x), custom_call_target="PadToStatic"
    q = f32[4] get-tuple-element(p), index=0
    n = s32[] get-tuple-element(p), index=1
    ROOT r = f32[4] custom-call(q, n), custom_call_target="SliceToDynamic"
    ->
    ROOT x
    """
    if i.custom_call_target != "SliceToDynamic" or len(i.operands) < 2:
        return None
    match i.operands[:2]:
        case [
            Instruction(opcode="get-tuple-element", operands=[p], attrs={"index": 0}),
            Instruction(opcode="get-tuple-element", operands=[q], attrs={"index": 1}),
        ] if p is q and p.opcode == "custom-call" and p.custom_call_target == "PadToStatic":
            return p.operands[0] if p.operands[0].shape.bare is i.shape.bare else None
    return None

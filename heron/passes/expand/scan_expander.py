"""scan-expander: scans as reduce-windows where they are one op, else as loops."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo import facts
from heron.hlo.facts import combiner
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import S32
from heron.hlo.ir.window import WindowDim
from heron.passes.expand.model.loops import State, counted
from heron.passes.framework.base import Constraint
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import applied, array, copy_body, reshape, scalar, splat
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ScanExpander(Expander):
    """Writes a scan as a loop over its dimension that reads a slice of each array and stores one of each output.

    A scan of one array whose function is one op on element and carry, given out as it is carried on, is a reduce-window
    over all elements so far, which is done in one pass: where the order makes no difference, or need not be kept
    (`is_associative`).

    sum {
      x = s32[] parameter(0)
      so_far = s32[] parameter(1)
      s = s32[] add(x, so_far)
      ROOT r = (s32[], s32[]) tuple(s, s)
    }

    ROOT r = (s32[4], s32[]) scan(s32[4] x, s32[] start), dimensions={0}, num_carries=1, to_apply=sum
    ->
    ...
    """

    name = "scan-expander"
    opcodes = looks_for = frozenset({"scan"})
    constraints = (
        Constraint("scan-expander", "call-inliner", "bodies of loops may hold calls"),
        Constraint("scan-expander", "conditional-canonicalizer", "bodies of loops may hold conditionals"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        """Until none is left: a loop's body may be a copy of a function with a scan of its own."""
        changed = False
        while super().run(module, ctx):
            changed = True
        return changed

    def expand(self, i: Instruction) -> Instruction:
        op = one_op(i)
        results = _as_loop(i) if op is None else _as_window(i, op)
        return home(i).add("tuple", results, i.shape, like=i) if i.shape.is_tuple else results[0]


def one_op(i: Instruction) -> str | None:
    """The op that a scan of one array combines by, if the order of its steps is free; None for any other scan."""
    if len(i.operands) != 2 or i.num_carries != 1 or len(i.shape.tuple_shapes or ()) != 2:
        return None
    root = i.to_apply.root
    if root.opcode != "tuple" or root.operands[0] is not root.operands[1]:
        return None
    scanned, start = (o.shape.element_type for o in i.operands)
    opcode = _combines(i.to_apply, root.operands[0])
    if opcode is None or scanned is not start or facts.identity(opcode, scanned) is None:
        return None
    rounds = scanned.is_float or scanned.is_complex
    return opcode if i.is_associative or facts.is_order_free(opcode) or not rounds else None


def _combines(c: Computation, value: Instruction) -> str | None:
    """The opcode when `value` is one commutative op on the two parameters of `c`, and nothing else is computed."""
    scalars = Computation(c.name)
    known = {p: scalars.add_parameter(p.number, row_major(p.shape.element_type)) for p in c.parameters}
    if len(c) != 4 or len(value.operands) != 2 or any(o not in known for o in value.operands):
        return None
    scalars.root = scalars.add(
        value.opcode, [known[o] for o in value.operands], row_major(value.shape.element_type), **value.attrs
    )
    return combiner(scalars)


def _as_window(i: Instruction, opcode: str) -> list[Instruction]:
    c, (x, start), (d,) = home(i), i.operands, i.dimensions
    n, t = x.shape.dims[d], x.shape.element_type
    if not n:
        return [splat(c, array(t, x.shape.dims), 0), start]
    assert c.module is not None
    along = WindowDim(n, pad_low=0 if i.is_reverse else n - 1, pad_high=n - 1 if i.is_reverse else 0)
    window = tuple(along if k == d else WindowDim(1) for k in range(x.shape.rank))
    so_far = c.add(
        "reduce-window",
        [x, scalar(c, t, facts.identity(opcode, t))],
        array(t, x.shape.dims),
        window=window,
        to_apply=applied(c.module, opcode, t),
    )
    others = tuple(k for k in range(x.shape.rank) if k != d)
    first = c.add("broadcast", [start], array(t, x.shape.dims), dimensions=others)
    output = c.add(opcode, [first, so_far], array(t, x.shape.dims))
    at = 0 if i.is_reverse else n - 1
    bounds = tuple((at, at + 1, 1) if k == d else (0, size, 1) for k, size in enumerate(x.shape.dims))
    sizes = tuple(1 if k == d else size for k, size in enumerate(x.shape.dims))
    last = c.add("slice", [output], array(t, sizes), slice=bounds)
    return [output, reshape(last, start.shape.dims)]


def _as_loop(i: Instruction) -> list[Instruction]:
    c, (d,), carries = home(i), i.dimensions, i.num_carries
    arrays, starts = i.operands[: len(i.operands) - carries], i.operands[len(i.operands) - carries :]
    shapes = i.shape.tuple_shapes or (i.shape,)
    made = shapes[: len(shapes) - carries]
    outputs = [splat(c, s, 0) for s in made]
    along = [*(a.shape for a in arrays), *made]
    count = along[0].dims[d] if along else 0

    def step(k: Instruction, state: State) -> State:
        body = home(k)
        place = scalar(body, S32, count - 1) - k if i.is_reverse else k
        so_far, read, stored = state[:carries], state[carries : carries + len(arrays)], state[carries + len(arrays) :]
        results = _applied(body, i.to_apply, [*(_slice(a, d, place) for a in read), *so_far])
        updated = [_updated(o, new, d, place) for o, new in zip(stored, results, strict=False)]
        return [*results[len(made) :], *read, *updated]

    state = counted(c, "scan", count, step, [*starts, *arrays, *outputs])
    return [*state[carries + len(arrays) :], *state[:carries]]


def _applied(c: Computation, function: Computation, arguments: Sequence[Instruction]) -> list[Instruction]:
    """The results of a function on these values, part by part."""
    root = copy_body(c, function, arguments)[function.root]
    if root.shape.tuple_shapes is None:
        return [root]
    if root.opcode == "tuple":
        return list(root.operands)
    return [c.add("get-tuple-element", [root], s, index=n) for n, s in enumerate(root.shape.tuple_shapes)]


def _places(c: Computation, rank: int, d: int, place: Instruction) -> list[Instruction]:
    return [place if k == d else scalar(c, S32, 0) for k in range(rank)]


def _slice(x: Instruction, d: int, place: Instruction) -> Instruction:
    c, dims = home(x), x.shape.dims
    sizes = tuple(1 if k == d else n for k, n in enumerate(dims))
    read = c.add(
        "dynamic-slice",
        [x, *_places(c, len(dims), d, place)],
        array(x.shape.element_type, sizes),
        dynamic_slice_sizes=sizes,
    )
    return reshape(read, (*dims[:d], *dims[d + 1 :]))


def _updated(x: Instruction, new: Instruction, d: int, place: Instruction) -> Instruction:
    c, dims = home(x), x.shape.dims
    row = reshape(new, tuple(1 if k == d else n for k, n in enumerate(dims)))
    return c.add("dynamic-update-slice", [x, row, *_places(c, len(dims), d, place)], x.shape)

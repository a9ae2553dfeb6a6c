"""The passes that bring ops to the forms code is written for: values stay, and a second run finds nothing to do."""

from __future__ import annotations

import numpy as np
import pytest

from heron.hlo import facts
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import BF16, C64, F16, F32, F64, PRED, S8, S32, ElementType
from heron.hlo.ir.window import ConvDims, WindowDim
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework.checks import ValueCheck
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from heron.passes.rewriting.building import applied, constant, scalar
from tests.passes.simplify.test_random_programs import random_program

Rng = np.random.Generator


def _module() -> tuple[Module, Computation]:
    module = Module("random")
    return module, module.add_computation(Computation("main"), entry=True)


def _dims(rng: Rng, rank: int, most: int = 4) -> list[int]:
    return [int(d) for d in rng.integers(1, most + 1, rank)]


def _dot(rng: Rng) -> Module:
    module, c = _module()
    batch, left, right = _dims(rng, int(rng.integers(4))), _dims(rng, int(rng.integers(2))), _dims(rng, 1)
    summed = [int(rng.choice([2, 3, 8, 64]))] * int(rng.integers(2))
    sides = []
    for n, free in enumerate((left, right)):
        kinds = [("b", d, size) for d, size in enumerate(batch)] + [("s", d, size) for d, size in enumerate(summed)]
        kinds += [("f", d, size) for d, size in enumerate(free)]
        if rng.integers(3) == 0:
            kinds = [kinds[k] for k in rng.permutation(len(kinds))]
        x = c.add_parameter(n, row_major(F32, *(size for _, _, size in kinds)))
        places = {kind: [at for at, k in enumerate(kinds) if k[0] == kind] for kind in "bs"}
        for kind in "bs":
            places[kind].sort(key=lambda at: kinds[at][1])
        sides.append((x, tuple(places["b"]), tuple(places["s"])))
    (x, lb, lc), (y, rb, rc) = sides
    attrs = {"lhs_batch_dims": lb, "lhs_contracting_dims": lc, "rhs_batch_dims": rb, "rhs_contracting_dims": rc}
    c.root = c.add("dot", [x, y], **attrs)
    return module


def _vector_dot(rng: Rng) -> Module:
    """A dot of a vector and a matrix of some types, batch dimensions anywhere in the matrix."""
    module, c = _module()
    types = [(F32, F32, F32), (BF16, BF16, F32), (F16, F16, F16), (F64, F64, F32), (S8, S8, S32), (C64, C64, C64)]
    x_type, y_type, t = types[int(rng.integers(len(types)))]
    sizes = {"b": _dims(rng, int(rng.integers(3))), "s": _dims(rng, int(rng.integers(1, 3)), 5), "f": _dims(rng, 1)}
    sides = []
    for n, kinds in enumerate(("bs", "bsf")):
        order = [(kind, k) for kind in kinds for k in range(len(sizes[kind]))]
        order = [order[int(k)] for k in rng.permutation(len(order))]
        x = c.add_parameter(n, row_major((x_type, y_type)[n], *(sizes[kind][k] for kind, k in order)))
        places = [tuple(order.index((kind, k)) for k in range(len(sizes[kind]))) for kind in "bs"]
        sides.append((x, *places))
    if rng.integers(2):
        sides.reverse()
    (x, lb, lc), (y, rb, rc) = sides
    attrs = {"lhs_batch_dims": lb, "lhs_contracting_dims": lc, "rhs_batch_dims": rb, "rhs_contracting_dims": rc}
    c.root = c.add("dot", [x, y], row_major(t, *(sizes["b"] + sizes["f"])), **attrs)
    return module


def _sharing_dots(rng: Rng) -> Module:
    """Dots of two arrays and of each other's results, most of which share an operand on one side or the other."""
    module, c = _module()
    values = [c.add_parameter(n, row_major(F32, 4, 4)) for n in range(2)]
    values.append(c.add_parameter(2, row_major(F32, 4, 3)))
    for _ in range(6):
        x, y = (values[int(k)] for k in rng.integers(0, len(values), 2))
        lhs, rhs = (int(k) for k in rng.integers(0, 2, 2))
        if x.shape.rank == y.shape.rank == 2 and x.shape.dims[lhs] == y.shape.dims[rhs]:
            attrs = {"lhs_contracting_dims": (lhs,), "rhs_contracting_dims": (rhs,)}
            values.append(c.add("dot", [x, y], **attrs))
    c.root = c.add("tuple", values[2:])
    return module


def _reduction(rng: Rng) -> Module:
    module, c = _module()
    t = (F32, S32)[int(rng.integers(2))]
    dims = [int(d) for d in rng.choice([1, 2, 3, 16], int(rng.integers(1, 5)))]
    x = c.add_parameter(0, row_major(t, *dims))
    count = int(rng.integers(1, len(dims) + 1))
    over = tuple(sorted(int(d) for d in rng.choice(len(dims), count, replace=False)))
    op = str(rng.choice(["add", "maximum", "minimum"]))
    init = scalar(c, t, 0 if op == "add" else facts.identity(op, t))
    c.root = c.add("reduce", [x, init], dimensions=over, to_apply=applied(module, op, t))
    return module


def _conversions(rng: Rng) -> Module:
    module, c = _module()
    types: list[ElementType] = [F16, BF16, F32, F64, S8, S32, PRED]
    values = [c.add_parameter(n, row_major(types[int(rng.integers(7))], 4, 2)) for n in range(2)]
    for _ in range(8):
        x = values[-1 - int(rng.integers(2))]
        match rng.integers(6):
            case 0:
                made = c.add("transpose", [x], dimensions=(1, 0))
            case 1:
                made = c.add("reshape", [x], row_major(x.shape.element_type, *reversed(x.shape.dims)))
            case 2:
                made = c.add("slice", [x], slice=tuple((0, n, 1) for n in x.shape.dims))
            case 3 if x.shape.element_type is not PRED:
                value = scalar(c, x.shape.element_type, [0, 1, 3, 1 / 3][int(rng.integers(4))])
                made = c.add("pad", [x, value], padding=((0, 0, 0), (0, 0, 0)))
            case _:
                made = c.add("convert", [x], x.shape.with_type(types[int(rng.integers(7))]))
        values.append(made)
    c.root = c.add("tuple", values[-3:])
    return module


def _convolution(rng: Rng) -> Module:
    module, c = _module()
    order = [tuple(int(d) for d in rng.permutation(3)) for _ in range(3)]
    batch, features, size, out = _dims(rng, 4)
    window = WindowDim(size=int(rng.integers(1, 3)), pad_low=1, pad_high=1)

    def arranged(sizes: list[int], places: tuple[int, ...]) -> list[int]:
        dims = [0, 0, 0]
        for n, d in zip(sizes, places, strict=True):
            dims[d] = n
        return dims

    x = c.add_parameter(0, row_major(F32, *arranged([batch, features, size + 2], order[0])))
    k = c.add_parameter(1, row_major(F32, *arranged([features, out, window.size], order[1])))
    labels = ConvDims(
        order[0][0],
        order[0][1],
        (order[0][2],),
        order[1][0],
        order[1][1],
        (order[1][2],),
        *order[2][:2],
        (order[2][2],),
    )
    c.root = c.add("convolution", [x, k], window=(window,), dim_labels=labels)
    return module


def _convolution_of_pixels(rng: Rng) -> Module:
    """Windows of one element; features first, last or elsewhere in input and result, which agree or not."""
    module, c = _module()
    batch, features, size, out = _dims(rng, 4)
    space = tuple(range(int(rng.integers(3))))
    labels = list(range(len(space) + 2))
    feature = int(rng.choice([0, labels[-1]]))
    kept = [d for d in labels if d != feature]
    around = kept if rng.integers(4) else kept[::-1]
    kernel = [int(d) for d in rng.permutation(labels)]
    image, weights = [size] * len(labels), [1] * len(labels)
    image[feature], image[kept[0]] = features, batch
    weights[kernel[0]], weights[kernel[1]] = features, out
    x = c.add_parameter(0, row_major(F32, *image))
    k = c.add_parameter(1, row_major(F32, *weights))
    dims = ConvDims(
        *(kept[0], feature, tuple(kept[1:])),
        *(kernel[0], kernel[1], tuple(kernel[2:])),
        *(around[0], feature, tuple(around[1:])),
    )
    c.root = c.add("convolution", [x, k], window=tuple(WindowDim(size=1) for _ in space), dim_labels=dims)
    return module


def _window(rng: Rng, types: list[ElementType], strides: int, features: int, out: int) -> Module:
    """A convolution in dimensions of any order: steps, holes, padding of both signs, either direction."""
    module, c = _module()
    rank = int(rng.integers(1, 3))
    t = types[rng.integers(len(types))]
    window = tuple(
        WindowDim(
            size=int(rng.integers(1, 4)),
            stride=int(rng.integers(1, strides + 1)),
            pad_low=int(rng.integers(-1, 3)),
            pad_high=int(rng.integers(-1, 3)),
            window_dilation=int(rng.integers(1, 3)),
            reversal=bool(rng.integers(2)),
        )
        for _ in range(rank)
    )
    orders = [tuple(int(d) for d in rng.permutation(rank + 2)) for _ in range(3)]

    def arranged(sizes: list[int], places: tuple[int, ...]) -> list[int]:
        return [sizes[places.index(d)] for d in range(len(sizes))]

    image = [int(rng.integers(1, 3)), features, *(int(rng.integers(8, 12)) for _ in range(rank))]
    x = c.add_parameter(0, row_major(t, *arranged(image, orders[0])))
    k = c.add_parameter(1, row_major(t, *arranged([features, out, *(w.size for w in window)], orders[1])))
    labels = ConvDims(*(part for o in orders for part in (o[0], o[1], o[2:])))
    c.root = c.add("convolution", [x, k], window=window, dim_labels=labels)
    return module


def _window_over_one_channel(rng: Rng) -> Module:
    return _window(rng, [F32, F64, BF16, S32], 2, 1, 1)


def _window_to_few_features(rng: Rng) -> Module:
    return _window(rng, [F32, F64], 1, int(rng.integers(16, 32)), int(rng.integers(1, 4)))


def _parts(rng: Rng) -> Module:
    """Elementwise ops on slices, reshapes and unsorted broadcasts of the same arrays."""
    module, c = _module()
    values = [c.add_parameter(n, row_major(F32, 4, 6)) for n in range(2)]
    made: list[Instruction] = []
    for start in range(0, 4, 2):
        cut = [c.add("slice", [x], slice=((start, start + 2, 1), (0, 6, 1))) for x in values]
        made.append(c.add("add", cut))
    turned = [c.add("transpose", [x], dimensions=(1, 0)) for x in values]
    made.append(c.add("multiply", turned))
    flat = [c.add("reshape", [x], row_major(F32, 24)) for x in values]
    made.append(c.add("maximum", flat))
    order = tuple(int(d) for d in rng.permutation(3)[:2])
    sizes = [5, 5, 5]
    sizes[order[0]], sizes[order[1]] = 4, 6
    made.append(c.add("broadcast", [values[0]], row_major(F32, *sizes), dimensions=order))
    made.append(c.add("concatenate", [values[int(n)] for n in rng.integers(0, 2, 7)], dimensions=(0,)))
    c.root = c.add("tuple", made)
    return module


def _moved(rng: Rng) -> Module:
    """Elementwise ops on reshaped and transposed arrays, repeated values and constants, some used elsewhere too."""
    module, c = _module()
    x, y = [c.add_parameter(n, row_major(F32, 3, 4)) for n in range(2)]
    row, column, one = [c.add_parameter(2 + n, row_major(F32, *dims)) for n, dims in enumerate([(4,), (3,), ()])]
    if rng.integers(2):
        dims, places = (4, 3), {row: 0, column: 1}
        values = [c.add("transpose", [v], dimensions=(1, 0)) for v in (x, y)]
    else:
        dims = ((1, 3, 4), (3, 1, 4), (3, 2, 2), (12,))[int(rng.integers(4))]
        places = {v: dims.index(v.shape.dims[0]) for v in (row, column) if v.shape.dims[0] in dims}
        values = [c.add("reshape", [v], row_major(F32, *dims)) for v in (x, y)]
    shape = row_major(F32, *dims)
    values += [c.add("broadcast", [v], shape, dimensions=(d,)) for v, d in places.items()]
    values.append(c.add("broadcast", [one], shape, dimensions=()))
    numbers = np.arange(12, dtype=np.float32).reshape(dims)
    values.append(constant(c, Literal(shape, numbers)))
    for _ in range(int(rng.integers(1, 7))):
        operands = [values[int(n)] for n in rng.integers(0, len(values), 2)]
        match rng.integers(4):
            case 0:
                made = c.add("negate", operands[:1])
            case 1:
                chosen = c.add("compare", operands, direction="LT")
                made = c.add("select", [chosen, *operands])
            case 2:
                made = c.add("clamp", [one, operands[0], one], shape)
            case _:
                made = c.add(str(rng.choice(["add", "multiply", "maximum"])), operands)
        values.append(made)
    total = c.add("reduce", [values[-1], one], dimensions=(0,), to_apply=applied(module, "maximum", F32))
    c.root = c.add("tuple", [total, values[-1], *(values[-2:-1] if rng.integers(2) else [])])
    return module


CASES = [
    ("dot-dimension-merger", {}, _dot),
    ("dot-normalizer", {}, _dot),
    ("dot-strength-reduction", {}, _dot),
    ("dot-strength-reduction", {}, _vector_dot),
    ("dot-merger", {}, _sharing_dots),
    ("splitk-rewriter", {"least": 2}, _dot),
    ("reduction-degenerate-dim-remover", {}, _reduction),
    ("reduction-dimension-grouper", {}, _reduction),
    ("reduction-splitter", {"least": 2}, _reduction),
    ("simplify-fp-conversions", {}, _conversions),
    ("convert-mover", {}, _conversions),
    ("convolution-dot-rewriter", {}, _convolution_of_pixels),
    ("convolution-canonicalization", {}, _convolution),
    ("convolution-strength-reduction", {}, _window_over_one_channel),
    ("convolution-product-rewriter", {}, _window_to_few_features),
    ("slice-sinker", {}, _parts),
    ("reshape-mover", {}, _parts),
    ("reshape-mover", {}, _moved),
    ("broadcast-canonicalizer", {}, _parts),
    ("variadic-op-splitter", {"most": 3}, _parts),
    ("slice-sinker", {}, random_program),
    ("reshape-mover", {}, random_program),
    ("broadcast-canonicalizer", {}, random_program),
    ("convert-mover", {}, random_program),
    ("sanitize-constant-names", {}, random_program),
]


@pytest.mark.parametrize(("name", "options", "draw"), CASES, ids=lambda c: getattr(c, "__name__", str(c)))
def test_values(name: str, options: dict[str, int], draw: object) -> None:
    assert callable(draw)
    fired = 0
    for seed in range(12):
        module = draw(np.random.default_rng([seed, 3]))
        verify(module)
        values = ValueCheck(module)
        if not PassContext(Options()).run_pass(get(name, **options), module):
            continue
        fired += 1
        verify(module)
        values.after(name, module)
        assert not get(name, **options).run(module, PassContext()), str(module)
    assert fired or draw is random_program


def test_constants_fold_in_any_order() -> None:
    module, c = _module()
    x = constant(c, Literal(row_major(S32, 2), np.array([7, 5], np.int32)))
    m = c.add("negate", [x])
    c.root = c.add("reverse", [c.add("abs", [m])], dimensions=(0,))
    c.reorder(list(reversed(c.instructions)))
    assert PassContext().run_pass(get("constant-folding"), module)
    assert c.root.opcode == "constant" and c.root.attrs["literal"].array.tolist() == [5, 7]


def test_a_sort_that_dies_with_another() -> None:
    module = parse("""HloModule m

by_second {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(c, d), direction=GT
}

ENTRY main {
  x = s32[4]{0} parameter(0)
  y = s32[4]{0} parameter(1)
  pair = (s32[4]{0}, s32[4]{0}) sort(x, y), dimensions={0}, is_stable=true, to_apply=by_second
  first = s32[4]{0} get-tuple-element(pair), index=0
  both = (s32[4]{0}, s32[4]{0}) sort(first, y), dimensions={0}, is_stable=true, to_apply=by_second
  ROOT r = s32[4]{0} get-tuple-element(both), index=1
}
""")
    module.entry.reorder(list(reversed(module.entry.instructions)))
    assert PassContext().run_pass(get("sort-simplifier"), module)
    verify(module)
    assert [i.opcode for i in module.entry.post_order() if i.opcode != "parameter"] == ["sort"]

"""Shape rules: what they infer, what they reject and how; nothing but a HeronError ever comes out."""

from __future__ import annotations

import random

import numpy as np
import pytest

from heron.errors import HeronError
from heron.hlo.ir import literal, types
from heron.hlo.ir import op as ops
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction, make
from heron.hlo.ir.layout import layout
from heron.hlo.ir.op import Attr, AttrKind
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import BF16, C64, F6E2M3FN, F32, F64, PRED, S8, S32, U32, U64
from heron.hlo.ir.window import ConvDims, WindowDim

f32 = shapes.row_major


def parameter(shape: Shape) -> Instruction:
    return make("parameter", (), shape, "p", number=0)


def reducer(opcode: str = "add", element_type: types.ElementType = F32, result: str | None = None) -> Computation:
    c = Computation(opcode)
    a, b = (c.add_parameter(n, shapes.scalar(element_type)) for n in range(2))
    c.root = c.add(opcode, [a, b], **({"direction": result} if result else {}))
    return c


ADD, LESS = reducer(), reducer("compare", result="LT")
CONV = ConvDims(0, 2, (1,), 1, 2, (0,), 0, 2, (1,))  # b0f_0io->b0f

INFERRED = [
    ("add", [f32(F32, 2, 3)] * 2, {}, "f32[2,3]{1,0}"),
    ("abs", [f32(C64, 2)], {}, "f32[2]{0}"),
    ("is-finite", [f32(BF16, 2)], {}, "pred[2]{0}"),
    ("complex", [f32(F64, 2)] * 2, {}, "c128[2]{0}"),
    ("compare", [f32(F32, 2)] * 2, {"direction": "LT"}, "pred[2]{0}"),
    ("add", [shapes.array(F32, (2, 3), layout((0, 1)))] * 2, {}, "f32[2,3]{1,0}"),
    ("transpose", [f32(F32, 2, 3, 4)], {"dimensions": (2, 0, 1)}, "f32[4,2,3]{2,1,0}"),
    ("concatenate", [f32(F32, 2, 3), f32(F32, 2, 5)], {"dimensions": (1,)}, "f32[2,8]{1,0}"),
    ("pad", [f32(F32, 4), f32(F32)], {"padding": ((1, -2, 1),)}, "f32[6]{0}"),
    ("slice", [f32(F32, 9, 4)], {"slice": ((1, 9, 3), (0, 2, 1))}, "f32[3,2]{1,0}"),
    ("dynamic-slice", [f32(F32, 9), f32(S32)], {"dynamic_slice_sizes": (4,)}, "f32[4]{0}"),
    (
        "dot",
        [f32(S8, 7, 2, 3), f32(S8, 7, 3, 5)],
        {
            "lhs_batch_dims": (0,),
            "rhs_batch_dims": (0,),
            "lhs_contracting_dims": (2,),
            "rhs_contracting_dims": (1,),
        },
        "s8[7,2,5]{2,1,0}",
    ),
    ("reduce", [f32(F32, 2, 3), f32(F32)], {"dimensions": (0,), "to_apply": ADD}, "f32[3]{0}"),
    (
        "reduce-window",
        [f32(F32, 9), f32(F32)],
        {"window": (WindowDim(3, 2, 1, 0),), "to_apply": ADD},
        "f32[4]{0}",
    ),
    (
        "convolution",
        [f32(F32, 2, 9, 4), f32(F32, 3, 4, 5)],
        {"window": (WindowDim(3, 2),), "dim_labels": CONV},
        "f32[2,4,5]{2,1,0}",
    ),
    ("sort", [f32(F32, 9)], {"dimensions": (0,), "to_apply": LESS}, "f32[9]{0}"),
    ("topk", [f32(F32, 2, 9)], {"k": 3, "largest": True}, "(f32[2,3]{1,0}, s32[2,3]{1,0})"),
    ("fft", [f32(F32, 2, 9)], {"fft_type": "RFFT", "fft_length": (9,)}, "c64[2,5]{1,0}"),
    ("tuple", [f32(F32), f32(S32, 2)], {}, "(f32[], s32[2]{0})"),
    ("get-dimension-size", [f32(F32, 2)], {"dimensions": (0,)}, "s32[]"),
    ("after-all", [], {}, "token[]"),
    ("partition-id", [], {}, "u32[]"),
    ("rng-get-and-update-state", [], {"delta": 1}, "u64[2]{0}"),
    ("set-dimension-size", [f32(F32, 4, 2), f32(S32)], {"dimensions": (0,)}, "f32[<=4,2]{1,0}"),
]


@pytest.mark.parametrize(
    ("opcode", "operands", "attrs", "want"), INFERRED, ids=lambda v: v if isinstance(v, str) else ""
)
def test_inferred(opcode: str, operands: list[Shape], attrs: dict[str, object], want: str) -> None:
    assert str(make(opcode, [parameter(s) for s in operands], **attrs).shape) == want


GATHER = {
    "offset_dims": (1,),
    "collapsed_slice_dims": (0,),
    "start_index_map": (0,),
    "index_vector_dim": 1,
    "slice_sizes": (1, 4),
}
SCATTER = {
    "update_window_dims": (1,),
    "inserted_window_dims": (0,),
    "scatter_dims_to_operand_dims": (0,),
    "index_vector_dim": 1,
    "to_apply": ADD,
}
TUPLE = shapes.tuple_((f32(F32, 2), f32(F32, 2)))

REJECTED: list[tuple[str, list[Shape], dict[str, object], Shape | None, str]] = [
    ("add", [f32(F32, 2), f32(F32, 3)], {}, None, "f32[2]{0} and f32[3]{0}"),
    ("add", [f32(F32, 2), f32(F64, 2)], {}, None, "f32 and f64"),
    ("add", [TUPLE, TUPLE], {}, None, "must be an array"),
    ("floor", [f32(S32, 2)], {}, None, "must be float"),
    ("popcnt", [f32(F32, 2)], {}, None, "signed, unsigned"),
    ("complex", [f32(BF16, 2)] * 2, {}, None, "bf16"),
    ("compare", [f32(F32, 2)] * 2, {}, None, "'direction' is missing"),
    ("compare", [f32(F32, 2)] * 2, {"direction": "UP"}, None, "UP is none of"),
    ("compare", [f32(C64, 2)] * 2, {"direction": "LT"}, None, "no order"),
    ("select", [f32(S32, 2), f32(F32, 2), f32(F32, 2)], {}, None, "type pred"),
    ("select", [f32(PRED, 3), f32(F32, 2), f32(F32, 2)], {}, None, "as large as"),
    ("clamp", [f32(F32, 3), f32(F32, 2), f32(F32)], {}, None, "min must be a scalar"),
    ("convert", [f32(F32, 2)], {}, None, "must be given"),
    ("convert", [f32(F32, 2)], {}, f32(S32, 3), "keeps the dimensions"),
    ("bitcast-convert", [f32(F32, 2)], {}, f32(S8, 2), "[2, 4]"),
    ("bitcast-convert", [f32(F32, 2)], {}, f32(F6E2M3FN, 2), "no whole number of elements"),
    ("bitcast", [f32(F32, 2)], {}, f32(F32, 3), "64"),
    ("broadcast", [f32(F32, 2)], {"dimensions": (1,)}, f32(F32, 2, 3), "dimension 0"),
    ("broadcast", [f32(F32, 2)], {"dimensions": (5,)}, f32(F32, 2, 3), "rank 2"),
    ("broadcast", [f32(F32, 2)], {"dimensions": 5}, f32(F32, 2, 3), "it must be ints"),
    ("reshape", [f32(F32, 2, 3)], {}, f32(F32, 7), "has 7"),
    ("transpose", [f32(F32, 2, 3)], {"dimensions": (0, 0)}, None, "twice"),
    ("transpose", [f32(F32, 2, 3)], {"dimensions": (0,)}, None, "1 given"),
    ("concatenate", [f32(F32, 2, 3), f32(F32, 3, 3)], {"dimensions": (1,)}, None, "operand 1"),
    ("concatenate", [], {"dimensions": (1,)}, None, "at least one"),
    ("pad", [f32(F32, 4), f32(F32)], {"padding": ((0, -9, 0),)}, None, "-5"),
    ("pad", [f32(F32, 4), f32(F32)], {"padding": ()}, None, "one entry a dimension"),
    ("slice", [f32(F32, 4)], {"slice": ((0, 5, 1),)}, None, "limit <= 4"),
    ("slice", [f32(F32, 4)], {"slice": ((0, 5),)}, None, "it must be slices"),
    ("dynamic-slice", [f32(F32, 4)], {"dynamic_slice_sizes": (2,)}, None, "one start index"),
    ("dynamic-slice", [f32(F32, 4), f32(F32)], {"dynamic_slice_sizes": (2,)}, None, "integer scalar"),
    ("dynamic-slice", [f32(F32, 4), f32(S32)], {"dynamic_slice_sizes": (5,)}, None, "size 4"),
    ("dynamic-update-slice", [f32(F32, 4), f32(F32, 5), f32(S32)], {}, None, "does not fit"),
    ("scaled-dot", [f32(S8, 2, 3), f32(S8, 3, 2), f32(F32), f32(F32)],
     {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,), "operand_precision": ("packed_nibble",) * 2}, None,
     "packed nibbles have no scales"),
    ("dot", [f32(F32, 2, 3), f32(F32, 4, 5)],
     {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,)}, None, "3 and 4"),
    ("dot", [f32(F32, 2, 3), f32(F32, 4, 5)], {"lhs_contracting_dims": (1,)}, None, "1 and 0"),
    ("dot", [f32(F32, 2), f32(F32, 2)], {"lhs_batch_dims": (0,), "rhs_batch_dims": (0,), "lhs_contracting_dims": (0,),
                                         "rhs_contracting_dims": (0,)}, None, "both batch and contracting"),
    ("reduce", [f32(F32, 2), f32(F32)], {"dimensions": (1,), "to_apply": ADD}, None, "rank 1"),
    ("reduce", [f32(F32, 2), f32(F32)], {"dimensions": (0,), "to_apply": LESS}, None, "returns pred[]"),
    ("reduce", [f32(F32, 2), f32(F32)], {"dimensions": (0,), "to_apply": reducer("add", S32)}, None, "s32[]"),
    ("reduce", [f32(F32, 2), f32(F32)],
     {"dimensions": (0,), "to_apply": Computation("empty")}, None, "takes 0 parameters"),
    ("reduce", [f32(F32, 2), f32(F32)], {"dimensions": (0,)}, None, "'to_apply' is missing"),
    ("reduce", [f32(F32, 2)], {"dimensions": (0,), "to_apply": ADD}, None, "1 operands given"),
    ("reduce-window", [f32(F32, 9), f32(F32)], {"to_apply": ADD}, None, "0 given for rank 1"),
    ("reduce-window", [f32(F32, 9), f32(F32)], {"window": (WindowDim(0),), "to_apply": ADD}, None, "size=0"),
    ("select-and-scatter", [f32(F32, 9), f32(F32, 2), f32(F32)],
     {"window": (WindowDim(3, 3),), "select": LESS, "scatter": ADD}, None, "[3]"),
    ("convolution", [f32(F32, 2, 9, 4), f32(F32, 3, 3, 5)],
     {"window": (WindowDim(3),), "dim_labels": CONV}, None, "4 and 3"),
    ("convolution", [f32(F32, 2, 9, 4), f32(F32, 3, 4, 5)],
     {"window": (WindowDim(2),), "dim_labels": CONV}, None, "size 2"),
    ("convolution", [f32(F32, 2, 9, 4), f32(F32, 3, 2, 5)],
     {"window": (WindowDim(3),), "dim_labels": CONV, "feature_group_count": 2}, None, "features 5"),
    ("gather", [f32(F32, 5, 4), f32(S32, 3, 2)], GATHER, None, "1 for 2"),
    ("gather", [f32(F32, 5, 4), f32(S32, 3, 1)], GATHER | {"slice_sizes": (2, 4)}, None, "at most 1"),
    ("gather", [f32(F32, 5, 4), f32(F32, 3, 1)], GATHER, None, "must be integers"),
    ("scatter", [f32(F32, 5, 4), f32(S32, 3, 1), f32(F32, 3, 9)], SCATTER, None, "wider than"),
    ("scatter", [f32(F32, 5, 4), f32(S32, 3, 1), f32(F32, 2, 4)], SCATTER, None, "the indices give 3"),
    ("scatter", [f32(F32, 5, 4), f32(S32, 3, 1), f32(F32, 3, 4)],
     SCATTER | {"to_apply": LESS}, None, "return one scalar"),
    ("sort", [f32(F32, 9)], {"dimensions": (0,), "to_apply": ADD}, None, "returns f32[]"),
    ("topk", [f32(F32, 9)], {"k": 10, "largest": True}, None, "k=10"),
    ("fft", [f32(F32, 9)], {"fft_type": "FFT", "fft_length": (9,)}, None, "c64 or c128"),
    ("fft", [f32(C64, 9)], {"fft_type": "FFT", "fft_length": (8,)}, None, "[8]"),
    ("cholesky", [f32(F32, 2, 3)], {}, None, "square"),
    ("triangular-solve", [f32(F32, 3, 3), f32(F32, 2, 4)], {"left_side": True}, None, "2 and 3"),
    ("batch-norm-training", [f32(F32, 2, 3), f32(F32, 2), f32(F32, 3)],
     {"epsilon": 1e-3, "feature_index": 1}, None, "3 features"),
    ("get-tuple-element", [TUPLE], {"index": 2}, None, "2 elements"),
    ("get-tuple-element", [f32(F32)], {"index": 0}, None, "must be a tuple"),
    ("while", [f32(F32)], {"condition": LESS, "body": LESS}, None, "takes 2 parameters"),
    ("conditional", [f32(F32), f32(F32)], {"branch_computations": (ADD,)}, None, "pred[] or s32[]"),
    ("map", [f32(F32, 2), f32(F32, 3)], {"to_apply": ADD}, None, "other dimensions"),
    ("fusion", [f32(F32), f32(F32)], {"kind": "kBig", "calls": ADD}, None, "kBig is none of"),
    ("all-gather", [f32(F32, 2)], {"dimensions": (0,)}, f32(F32, 3), "multiple"),
    ("collective-permute", [f32(F32, 2)], {"source_target_pairs": ((0, 1), (0, 2))}, None, "source twice"),
    ("rng-bit-generator", [f32(U32, 3)],
     {"algorithm": "rng_three_fry"}, shapes.tuple_((f32(U32, 3), f32(U32))), "64 bits"),
    ("rng-bit-generator", [f32(U64, 2)], {"algorithm": "rng_three_fry"}, f32(U32, 3), "(state, bits)"),
    ("rng-bit-generator", [f32(U64, 2)],
     {"algorithm": "rng_three_fry"}, shapes.tuple_((f32(U64, 2), f32(C64, 3))), "integer or float"),
    ("rng-bit-generator", [f32(U64, 2)],
     {"algorithm": "rng_three_fry"}, shapes.tuple_((f32(U64, 2), f32(PRED, 3))), "integer or float"),
    ("constant", [], {"literal": literal.of(np.zeros(2, np.float32))}, f32(F32, 3), "not the literal's"),
    ("custom-call", [f32(F32)], {}, f32(F32), "'custom_call_target' is missing"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("opcode", "operands", "attrs", "shape", "says"), REJECTED, ids=lambda v: v if isinstance(v, str) else ""
)
def test_rejected(opcode: str, operands: list[Shape], attrs: dict[str, object], shape: Shape | None, says: str) -> None:
    with pytest.raises(HeronError) as caught:
        i = make(opcode, [parameter(s) for s in operands], shape, **attrs)
        i.op.shape(i, *operands)
    assert caught.value.code == "HLO010"
    assert says in str(caught.value)
    assert caught.value.where and opcode in str(caught.value.where)


SHAPES = [
    *(f32(t, *dims) for t in (F32, S32, PRED, C64, U64) for dims in ((), (2,), (3,), (2, 3), (2, 2), (3, 2, 2), (0,))),
    TUPLE,
    shapes.tuple_(()),
    shapes.tuple_((TUPLE, f32(F32, 2), f32(U32))),
    shapes.tuple_((f32(F32, 2), f32(U32), shapes.token())),
    shapes.token(),
    shapes.array(F32, (2, 3), None, (True, False)),
]
VALUES: dict[AttrKind, list[object]] = {
    AttrKind.INT: [0, 1, 2, -1, 99],
    AttrKind.FLOAT: [0.5],
    AttrKind.BOOL: [True, False],
    AttrKind.STRING: ["", "main"],
    AttrKind.INTS: [(), (0,), (1,), (0, 1), (1, 0), (2,), (-1,), (0, 0), (2, 3), (1, 1)],
    AttrKind.COMPUTATION: [ADD, LESS, reducer("add", S32)],
    AttrKind.COMPUTATIONS: [(), (ADD,), (ADD, LESS)],
    AttrKind.SLICES: [(), ((0, 1, 1),), ((0, 2, 1), (0, 1, 1)), ((0, 1, 0),)],
    AttrKind.PADDING: [(), ((0, 0, 0),), ((1, -1, 2), (0, 0, 0)), ((-9, -9, -9),)],
    AttrKind.WINDOW: [(), (WindowDim(1),), (WindowDim(2, 2), WindowDim(1)), (WindowDim(1, 0),), (WindowDim(9),)],
    AttrKind.DIM_LABELS: [CONV, ConvDims(0, 1, (), 0, 1, (), 0, 1, ()), ConvDims(9, 9, (9,), 9, 9, (9,), 9, 9, (9,))],
    AttrKind.LITERAL: [literal.of(np.zeros(2, np.float32))],
    AttrKind.SHAPE: SHAPES[:3],
    AttrKind.SHAPES: [(), (SHAPES[0],)],
    AttrKind.WORDS: [(), ("high", "high")],
    AttrKind.RAW: ["{}"],
    AttrKind.REPLICA_GROUPS: ["{}", "{{0,1}}"],
    AttrKind.PAIRS: [(), ((0, 0),), ((0, 1), (0, 1))],
    AttrKind.INT_LISTS: [((1,),)],
    AttrKind.ALIASING: [()],
}
WRONG = [None, 3, 2.5, "word", (1, 2), ((1, 2), (3,)), {}, Computation("empty")]


def _value(spec: Attr, rand: random.Random) -> object:
    if rand.random() < 0.06:
        return rand.choice(WRONG)
    return rand.choice(list(spec.choices) or VALUES.get(spec.kind, ["dot_any"]))


@pytest.mark.parametrize("op", ops.all_ops(), ids=lambda o: o.name)
def test_any_arguments_give_a_shape_or_a_located_error(op: ops.Op) -> None:
    rand = random.Random(op.name)
    for _ in range(150):
        most = 7 if op.max_operands is None else op.max_operands
        same = rand.choice(SHAPES)
        operands = [
            same if rand.random() < 0.6 else rand.choice(SHAPES) for _ in range(rand.randint(op.min_operands, most))
        ]
        attrs = {n: _value(s, rand) for n, s in op.attributes.items() if s.required or rand.random() < 0.5}
        if rand.random() < 0.1 and attrs:
            attrs.pop(rand.choice(list(attrs)))
        shape = rand.choice([None, None, same, rand.choice(SHAPES)])
        try:
            i = make(op.name, [parameter(s) for s in operands], shape, **attrs)
            assert isinstance(i.op.shape(i, *operands), Shape)
        except HeronError as e:
            assert e.code == "HLO010", e
            assert e.where

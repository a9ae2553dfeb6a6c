"""cuDNN's calls as a recording keeps them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from heron import HeronError
from heron.hlo.ir.types import F32, S8, U8
from heron.runtime.cuda.libraries.base import Proposal
from heron.runtime.cuda.libraries.cudnn import Convolution, CuDnn
from heron.runtime.cuda.libraries.recording import Recording
from heron.runtime.library_call import Array

X, W, Y, NONE = Array(F32, (2, 6, 6, 3)), Array(F32, (4, 3, 3, 3)), Array(F32, (2, 4, 4, 4)), Array(U8, (0,))
WINDOW = (((0, 0), (0, 0)), (1, 1), (1, 1))


def library() -> tuple[CuDnn, Recording]:
    functions = Recording("cudnn")
    return CuDnn(lambda stream, size: 0xF000, functions), functions


def test_text() -> None:
    d = Convolution((X, W, Y, NONE), "forward", *WINDOW)
    assert str(d) == (
        "cudnn.convolution(f32[2,6,6,3], f32[4,3,3,3], f32[2,4,4,4], u8[0]; "
        "kind=forward, padding=[[0,0],[0,0]], strides=[1,1], dilations=[1,1])"
    )


def test_forward() -> None:
    lib, functions = library()
    d = Convolution((X, W, Y, NONE), "forward", *WINDOW)
    lib.call(5, [10, 20, 30, 0], d)
    assert functions.calls[1:] == [
        "cudnnCreateTensorDescriptor(&2)",
        "cudnnSetTensorNdDescriptor(2, 0, 4, [2, 3, 6, 6], [108, 1, 18, 3])",
        "cudnnCreateFilterDescriptor(&3)",
        "cudnnSetFilterNdDescriptor(3, 0, 1, 4, [4, 3, 3, 3])",
        "cudnnCreateTensorDescriptor(&4)",
        "cudnnSetTensorNdDescriptor(4, 0, 4, [2, 4, 4, 4], [64, 1, 16, 4])",
        "cudnnCreateConvolutionDescriptor(&5)",
        "cudnnSetConvolutionNdDescriptor(5, 2, [0, 0], [1, 1], [1, 1], 1, 0)",
        "cudnnSetConvolutionMathType(5, 3)",
        "cudnnGetConvolutionForwardWorkspaceSize(1, 2, 3, 5, 4, 1, &0)",
        "cudnnSetStream(1, 5)",
        "cudnnConvolutionForward(1, &1.0, 2, 10, 3, 20, 5, 1, 0, 0, &0.0, 4, 30)",
    ]
    lib.close()
    assert functions.calls[-1] == "cudnnDestroy(1)"


def test_features_outside_of_the_space() -> None:
    """Strides and the order of filters say so; a bias is the same."""
    lib, functions = library()
    arrays = Array(F32, (2, 3, 6, 5)), Array(F32, (4, 3, 3, 3)), Array(F32, (4,)), Array(F32, (2, 4, 4, 3)), NONE
    d = Convolution(arrays, "fused", *WINDOW, 3, activation="kRelu", features_outside=True)
    assert str(d).endswith("activation=kRelu, features_outside)")
    lib.prepare(d)
    assert [c for c in functions.calls if c.startswith(("cudnnSetTensorNd", "cudnnSetFilterNd"))] == [
        "cudnnSetTensorNdDescriptor(2, 0, 4, [2, 3, 6, 5], [90, 30, 5, 1])",
        "cudnnSetFilterNdDescriptor(3, 0, 0, 4, [4, 3, 3, 3])",
        "cudnnSetTensorNdDescriptor(4, 0, 4, [2, 4, 4, 3], [48, 12, 3, 1])",
        "cudnnSetTensorNdDescriptor(6, 0, 4, [1, 4, 1, 1], [4, 1, 4, 4])",
    ]


def test_epilogue() -> None:
    lib, functions = library()
    arrays = X, W, Array(F32, (4,)), Y, Y, NONE
    d = Convolution(arrays, "fused", *WINDOW, 4, activation="kRelu", scale=0.5, side_scale=2.0)
    lib.call(5, [10, 20, 30, 40, 50, 0], d)
    assert "cudnnSetTensorNdDescriptor(6, 0, 4, [1, 4, 1, 1], [4, 1, 4, 4])" in functions.calls
    assert "cudnnSetActivationDescriptor(7, 1, 1, 0.0)" in functions.calls
    assert functions.calls[-1] == (
        "cudnnConvolutionBiasActivationForward(1, &0.5, 2, 10, 3, 20, 5, 1, 0, 0, &2.0, 4, 40, 6, 30, 7, 4, 50)"
    )


@pytest.mark.parametrize(
    ("kind", "arrays", "last"),
    [
        ("backward input", (Y, W, X, NONE), "BackwardData(1, &1.0, 3, 20, 4, 10, 5, 1, 0, 0, &0.0, 2, 30)"),
        ("backward filter", (X, Y, W, NONE), "BackwardFilter(1, &1.0, 2, 10, 4, 20, 5, 1, 0, 0, &0.0, 3, 30)"),
    ],
)
def test_derivatives(kind: str, arrays: tuple[Array, ...], last: str) -> None:
    lib, functions = library()
    lib.call(5, [10, 20, 30, 0], Convolution(arrays, kind, *WINDOW))
    assert functions.calls[-1] == f"cudnnConvolution{last}"


def test_lines_are_planes_of_one_row() -> None:
    lib, functions = library()
    arrays = Array(S8, (2, 9, 4)), Array(S8, (8, 3, 4)), Array(F32, (2, 7, 8)), NONE
    lib.prepare(Convolution(arrays, "forward", ((0, 0),), (1,), (1,)))
    assert "cudnnSetTensorNdDescriptor(2, 3, 4, [2, 4, 1, 9], [36, 1, 36, 4])" in functions.calls
    assert "cudnnSetConvolutionNdDescriptor(5, 2, [0, 0], [1, 1], [1, 1], 1, 4)" in functions.calls


@pytest.mark.parametrize(
    "d",
    [
        Convolution((X, W, Y, NONE), "forward", ((0, 1), (0, 0)), (1, 1), (1, 1)),
        Convolution((X, W, Array(F32, (4,)), Y, NONE), "fused", *WINDOW, 3, activation="kElu"),
        Convolution((Array(U8, (2, 6, 6, 3)), W, Y, NONE), "forward", *WINDOW),
    ],
)
def test_what_it_does_not_do_is_an_error(d: Convolution) -> None:
    with pytest.raises(HeronError) as error:
        library()[0].prepare(d)
    assert error.value.code == "RUN091"


@pytest.mark.parametrize("kind", ["forward", "backward input", "backward filter"])
def test_proposals(kind: str) -> None:
    """Each algorithm once, in the library's order; none that fails, gives other bits each time, or wants too much."""
    rows = [(6, 0, 64, 1), (1, 0, 0, 1), (6, 0, 32, 1), (0, 3, 0, 1), (3, 0, 8, 0), (4, 0, 2 << 30, 1)]
    asked = []

    def answer(*arguments: Any) -> None:
        asked.append(tuple(a.value for a in arguments[:5]))
        found = arguments[7]
        for row, (algorithm, status, workspace, is_deterministic) in zip(found, rows, strict=False):
            row.algorithm, row.status, row.workspace, row.is_deterministic = (
                algorithm,
                status,
                workspace,
                is_deterministic,
            )
        arguments[6]._obj.value = min(len(rows), arguments[5].value)

    name = {"forward": "Forward", "backward input": "BackwardData", "backward filter": "BackwardFilter"}[kind]
    functions = Recording("cudnn", answers={f"cudnnGetConvolution{name}Algorithm_v7": answer})
    arrays = {"forward": (X, W, Y), "backward input": (Y, W, X), "backward filter": (X, Y, W)}[kind]
    lib = CuDnn(None, functions)
    assert lib.proposals(Convolution((*arrays, NONE), kind, *WINDOW), 8) == [Proposal(6, 64), Proposal(1, 0)]
    x, w, y, window = 2, 3, 4, 5
    order = {"forward": (x, w, window, y), "backward input": (w, y, window, x), "backward filter": (x, y, window, w)}
    assert asked == [(1, *order[kind])]


def test_without_an_activation_there_is_one_algorithm() -> None:
    d = Convolution((X, W, Array(F32, (4,)), Y, NONE), "fused", *WINDOW, 3)
    assert [p.number for p in library()[0].proposals(d, 8)] == [1]


@pytest.mark.parametrize(("width", "number"), [(4, 5), (32, 8)])
def test_features_side_by_side(width: int, number: int) -> None:
    """Sizes count all features; the type says how many there are of a group."""
    lib, functions = library()
    x, w, y = (Array(S8, (n, 2, *space, width)) for n, space in ((2, (6, 6)), (2 * width, (3, 3)), (2, (4, 4))))
    d = Convolution((x, w, y, NONE), "forward", *WINDOW, side_by_side=width)
    assert str(d).endswith(f"dilations=[1,1], side_by_side={width})")
    lib.call(5, [10, 20, 30, 0], d)
    made = [c for c in functions.calls if c.startswith(("cudnnSetTensorNd", "cudnnSetFilterNd"))]
    assert made == [
        f"cudnnSetTensorNdDescriptorEx(2, 2, {number}, 4, [2, {2 * width}, 6, 6])",
        f"cudnnSetFilterNdDescriptor(3, {number}, 2, 4, [{2 * width}, {2 * width}, 3, 3])",
        f"cudnnSetTensorNdDescriptorEx(4, 2, {number}, 4, [2, {2 * width}, 4, 4])",
    ]
    with pytest.raises(HeronError, match="RUN091(.|\n)*4 or 32"):
        lib.prepare(dataclasses.replace(d, side_by_side=8))


def _refusing(usual: int, *offered: tuple[int, int, int]) -> tuple[CuDnn, Recording]:
    """A library that refuses one algorithm. ``offered``: number, status and scratch memory of what it proposes."""

    def space(*arguments: Any) -> None:
        if arguments[5].value == usual:
            raise HeronError("RUN091", "cudnn failed", why="status 3000: not supported")
        arguments[6]._obj.value = 64

    def propose(*arguments: Any) -> None:
        arguments[6]._obj.value = len(offered)
        for n, (number, status, size) in enumerate(offered):
            p = arguments[7][n]
            p.algorithm, p.status, p.workspace, p.is_deterministic = number, status, size, 1

    names = "Forward", "BackwardFilter"
    answers = {f"cudnnGetConvolution{n}WorkspaceSize": space for n in names}
    answers |= {f"cudnnGetConvolution{n}Algorithm_v7": propose for n in names}
    functions = Recording("cudnn", answers=answers)
    return CuDnn(lambda stream, size: 0xF000, functions), functions


def test_another_algorithm_where_the_usual_one_is_refused() -> None:
    lib, functions = _refusing(1, (1, 0, 8), (6, 3000, 8), (0, 0, 128))
    d = Convolution((X, W, Y, NONE), "forward", *WINDOW)
    assert lib.prepare(d) == 128
    lib.call(5, [10, 20, 30, 0], d)
    assert functions.calls[-1].startswith("cudnnConvolutionForward(1, &1.0, 2, 10, 3, 20, 5, 0, ")
    assert lib.notes == ["cudnn: forward convolution by algorithm 0: 1 was refused (status 3000: not supported)"]


def test_the_refusal_stays_where_nothing_is_proposed() -> None:
    d = Convolution((X, W, Y, NONE), "forward", *WINDOW)
    for offered in ((), ((1, 0, 8),), ((0, 0, 1 << 40),)):
        with pytest.raises(HeronError, match="RUN091") as refused:
            _refusing(1, *offered)[0].prepare(d)
        assert refused.value.why == "status 3000: not supported"


def test_an_algorithm_that_is_asked_for_is_not_replaced() -> None:
    lib, _ = _refusing(1, (0, 0, 128))
    with pytest.raises(HeronError, match="RUN091"):
        lib.prepare(Convolution((X, W, Y, NONE), "forward", *WINDOW, algorithm=1))

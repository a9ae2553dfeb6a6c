"""cuDNN's graphs as a recording keeps them: descriptors, engines that refuse, calls, what is given back."""

from __future__ import annotations

from typing import Any

import pytest

from heron import HeronError
from heron.hlo.calls import norm
from heron.hlo.ir.types import BF16, F32, U8
from heron.runtime.cuda.libraries.cudnn import CuDnn
from heron.runtime.cuda.libraries.cudnn_attention import (
    ADD,
    DIV,
    EXP,
    INDEX,
    LOG,
    MUL,
    NOT_BELOW,
    SELECT,
    SUB,
    Attention,
)
from heron.runtime.cuda.libraries.cudnn_graph import row_major
from heron.runtime.cuda.libraries.cudnn_norm import Norm
from heron.runtime.cuda.libraries.recording import Recording
from heron.runtime.library_call import Array

X, ROW, ROWS, NONE = Array(BF16, (6, 4, 1, 1)), Array(F32, (1, 4, 1, 1)), Array(F32, (6, 1, 1, 1)), Array(U8, (0,))
FORWARD = Norm((X, ROW, ROW, X, NONE), norm.INFERENCE, 0.5)
RESULTS, WORKSPACE = 202, 402


def answer(*arguments: Any) -> None:
    """Two engines proposed; plans want 256 bytes."""
    attribute, count, out = arguments[1].value, arguments[4], arguments[5]
    if attribute == RESULTS:
        count._obj.value = 2
    elif attribute == WORKSPACE:
        out._obj.value = 256


def library() -> tuple[CuDnn, Recording]:
    functions = Recording("cudnn", answers={"cudnnBackendGetAttribute": answer})
    return CuDnn(lambda stream, size: 0xF000, functions), functions


def created(functions: Recording) -> list[int]:
    """The kinds of the descriptors made."""
    calls = [c for c in functions.calls if c.startswith("cudnnBackendCreateDescriptor")]
    return [int(c.split("(")[1].split(",")[0]) for c in calls]


def test_text() -> None:
    assert str(FORWARD) == (
        "cudnn.norm(bf16[6,4,1,1], f32[1,4,1,1], f32[1,4,1,1], bf16[6,4,1,1], u8[0]; kind=LAYER_FWD_INFER, epsilon=0.5)"
    )


def test_row_major() -> None:
    assert row_major((2, 3, 4)) == (12, 4, 1) and row_major((5,)) == (1,)


def test_a_norm_is_one_operation() -> None:
    lib, functions = library()
    assert lib.prepare(FORWARD) == 256
    assert created(functions) == [17, 17, 17, 17, 17, 29, 15, 4, *[3] * 8, 5]
    first = functions.calls[1:8]
    assert first == [
        "cudnnBackendCreateDescriptor(17, &2)",
        "cudnnBackendSetAttribute(2, 901, 1, 1, &9)",
        "cudnnBackendSetAttribute(2, 902, 3, 4, [6, 4, 1, 1])",
        "cudnnBackendSetAttribute(2, 903, 3, 4, [4, 1, 1, 1])",
        "cudnnBackendSetAttribute(2, 906, 3, 1, &0)",
        "cudnnBackendSetAttribute(2, 900, 3, 1, &16)",
        "cudnnBackendFinalize(2)",
    ]
    operation = [c for c in functions.calls if "(7, " in c]
    assert operation == [
        "cudnnBackendSetAttribute(7, 2000, 27, 1, &0)",
        "cudnnBackendSetAttribute(7, 2001, 28, 1, &0)",
        "cudnnBackendSetAttribute(7, 2002, 15, 1, &2)",
        "cudnnBackendSetAttribute(7, 2005, 15, 1, &3)",
        "cudnnBackendSetAttribute(7, 2006, 15, 1, &4)",
        "cudnnBackendSetAttribute(7, 2013, 15, 1, &5)",
        "cudnnBackendSetAttribute(7, 2007, 15, 1, &6)",
    ]
    assert "cudnnBackendSetAttribute(6, 908, 2, 1, &True)" in functions.calls  # epsilon, from the host


def test_a_call_hands_over_addresses() -> None:
    lib, functions = library()
    lib.call(7, [10, 20, 30, 40, 0], FORWARD)
    before = len(functions.calls)
    lib.call(7, [11, 21, 31, 41, 0], FORWARD)
    calls = functions.calls[before:]
    assert calls[0] == "cudnnSetStream(1, 7)"
    assert [c.split("(")[0] for c in calls[1:]] == [
        "cudnnBackendCreateDescriptor", *["cudnnBackendSetAttribute"] * 3, "cudnnBackendFinalize",
        "cudnnBackendExecute", "cudnnBackendDestroyDescriptor",
    ]  # fmt: skip
    assert ", 1000, 3, 5, [0, 1, 2, 3, 5])" in calls[2]
    assert ", 1001, 6, 5, [11, 21, 31, 41, " in calls[3]
    assert f", 1003, 6, 1, [{0xF000}])" in calls[4]


def test_training_and_its_derivative() -> None:
    lib, functions = library()
    lib.prepare(Norm((X, ROW, ROW, X, ROWS, ROWS, NONE), norm.TRAINING, 0.5))
    assert "cudnnBackendSetAttribute(9, 2001, 28, 1, &1)" in functions.calls
    assert "cudnnBackendSetAttribute(9, 2004, 15, 1, &7)" in functions.calls
    lib, functions = library()
    lib.prepare(Norm((X, ROW, X, ROWS, ROWS, X, ROW, ROW, NONE), norm.BACKWARD, 0.5, 5))
    given = [c for c in functions.calls if c.startswith("cudnnBackendSetAttribute(10, ")]
    assert [c.split(", ")[1] for c in given] == ["2100", "2101", "2105", "2104", "2102", "2103", "2109", "2107", "2108"]


def test_what_is_made_is_given_back() -> None:
    lib, functions = library()
    lib.prepare(FORWARD)
    lib.close()
    assert sum(c.startswith("cudnnBackendDestroyDescriptor") for c in functions.calls) == len(created(functions))
    assert functions.calls[-1] == "cudnnDestroy(1)"


class Picky(Recording):
    """Refuses to make plans, the first so many."""

    refusals = 1

    def call(self, function: str, *arguments: Any) -> None:
        if function == "cudnnBackendFinalize" and self.calls[-1].split(", ")[1] == "401" and self.refusals:
            self.refusals -= 1
            raise HeronError("RUN091", "cudnn: cudnnBackendFinalize failed", why="status 3000: not supported")
        super().call(function, *arguments)


@pytest.mark.parametrize("refusals", [1, 100])
def test_engines_are_tried_in_turn(refusals: int) -> None:
    functions = Picky("cudnn", answers={"cudnnBackendGetAttribute": answer})
    functions.refusals = refusals
    lib = CuDnn(lambda stream, size: 0xF000, functions)
    if refusals == 1:
        assert lib.prepare(FORWARD) == 256 and created(functions).count(5) == 2
        return
    with pytest.raises(HeronError, match="RUN091") as refused:
        lib.prepare(FORWARD)
    assert "3000" in (refused.value.why or "") and created(functions).count(5) == 4


Q, KV, Y = Array(BF16, (2, 16, 4, 8)), Array(BF16, (2, 24, 2, 8)), Array(BF16, (2, 4, 16, 8))
BIAS, ROWS_OF_ALL = Array(BF16, (1, 4, 16, 24)), Array(F32, (2, 4, 16))


def modes(functions: Recording) -> list[int]:
    """Of elementwise operations what they are, in order."""
    return [int(c.rsplit("&", 1)[1][:-1]) for c in functions.calls if ", 0, 14, 1, " in c]


def test_attention_is_two_products_and_a_softmax() -> None:
    lib, functions = library()
    d = Attention((Q, KV, KV, Y, NONE), 0.5, heads_first=False)
    assert str(d).endswith("u8[0]; scale=0.5, heads_first=False)")
    assert lib.prepare(d) == 256
    assert modes(functions) == [MUL, SUB, EXP, DIV]
    kinds = created(functions)
    assert (kinds.count(19), kinds.count(22), kinds.count(13)) == (2, 2, 4)
    sizes = [c.split(", ", 4)[4][:-1] for c in functions.calls if ", 902, " in c or ", 903, " in c]
    # queries, keys turned round, values: sizes and strides of what lies with the sequence first
    assert sizes[:6] == [
        "[2, 4, 16, 8]", "[512, 8, 32, 1]", "[2, 2, 8, 24]", "[384, 8, 1, 16]", "[2, 2, 24, 8]", "[384, 8, 16, 1]",
    ]  # fmt: skip
    lib.call(3, [10, 20, 30, 40, 0], d)
    pointers = next(c for c in functions.calls if ", 1001, 6, " in c)
    assert "[10, 20, 30, 40, " in pointers


def test_masks_biases_and_statistics() -> None:
    lib, functions = library()
    lib.prepare(Attention((Q, KV, KV, BIAS, Y, ROWS_OF_ALL, NONE), 0.5, False, True, True, True, True))
    assert modes(functions) == [MUL, ADD, INDEX, INDEX, NOT_BELOW, SELECT, SUB, EXP, LOG, ADD, DIV]
    assert sum(", 9, 3, 1, &2)" in c or ", 9, 3, 1, &3)" in c for c in functions.calls) == 2  # rows and keys
    assert sum(", 908, " in c for c in functions.calls) == 2  # the scale, and what is not seen
    lib.call(
        3,
        [10, 20, 30, 40, 50, 60, 0],
        Attention((Q, KV, KV, BIAS, Y, ROWS_OF_ALL, NONE), 0.5, False, True, True, True, True),
    )
    ids = next(c for c in functions.calls if ", 1000, 3, " in c)
    assert "[0, 1, 2, 3, 5, 4, " in ids

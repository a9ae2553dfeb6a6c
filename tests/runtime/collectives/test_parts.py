"""What members in another process need of an operand: no more than that goes into a message."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import pytest

from heron.runtime.collectives import exchange
from heron.runtime.collectives.exchange import Way
from heron.runtime.collectives.parts import ALIGNMENT, Message, of_arrays, of_chunks
from heron.runtime.collectives.state import Op, Piece, chunk_numbers

SIZE = 4
X = np.arange(3 * 8 * 4, dtype=np.float32).reshape(3, 8, 4)


def op_of(way: Way, pieces: Sequence[exchange.Piece]) -> tuple[Op, object]:
    names = [f[0] for f in Piece._fields_ if f[0] != "offset"]
    native = (Piece * len(pieces))(*[Piece(*[getattr(p, n) for n in names]) for p in pieces])
    return Op(way=int(way), arrays=len(pieces), pieces=ctypes.addressof(native)), native


Y = np.arange(2000, dtype=np.float32)
LONG = exchange.whole(Y.shape, 4)
WHOLE, CUT = exchange.whole(X.shape, 4), exchange.scattered(X.shape, 4, 1, SIZE)


@pytest.mark.parametrize(
    ("way", "pieces", "wanted", "size"),
    [
        (Way.ALL_REDUCE, [LONG], [], 2 * 4 * 976),  # of both operands the chunks that are summed up there
        (Way.REDUCE, [WHOLE], [], 2 * X.nbytes),
        (Way.EACH, [exchange.gathered(X.shape, 4, 1, SIZE)], [], 2 * X.nbytes),
        (Way.REDUCE, [CUT], [], 1 * X.nbytes),  # half of both: two of four receivers are there
        (Way.EACH, [exchange.exchanged(X.shape, 4, 1, SIZE)], [], 1 * X.nbytes),
        (Way.FROM, [WHOLE], [3, 1], 1 * X.nbytes),  # one sender is here
        (Way.FROM, [WHOLE], [3, -1], 0 * X.nbytes),
        (Way.PAIRED, [WHOLE] * SIZE, [], 4 * X.nbytes),  # of both senders the arrays of two receivers
    ],
)
def test_no_more_than_needed(way: Way, pieces: list[exchange.Piece], wanted: list[int], size: int) -> None:
    op, keep = op_of(way, pieces)
    parts = list(of_arrays(op, [0, 1], [2, 3], wanted, range(SIZE)))
    message = Message(op, SIZE, parts)
    x = Y if pieces == [LONG] else X
    assert message.bytes == ALIGNMENT + size
    operands = {s: [x + 100 * s + 1000 * n for n in range(len(pieces))] for s in (0, 1)}
    sent = np.empty(message.bytes, np.uint8)
    message.pack(sent, {s: [array.ctypes.data for array in arrays] for s, arrays in operands.items()})
    found, memory = message.addresses(sent)
    for part in parts:
        at, want = found[part.sender][part.n], operands[part.sender][part.n]
        assert at is not None
        if part.columns:  # those of receivers 2 and 3
            got = np.frombuffer((ctypes.c_uint8 * x.nbytes).from_address(at), np.float32).reshape(x.shape)
            np.testing.assert_array_equal(got[:, 4:8], want[:, 4:8])
        else:
            got = np.frombuffer((ctypes.c_uint8 * part.bytes).from_address(at + part.begin), np.float32)
            np.testing.assert_array_equal(got, want.reshape(-1)[part.begin // 4 :][: part.bytes // 4])
    del memory, keep


def test_chunks_of_sums() -> None:
    """All processes together compute each element once."""
    op, keep = op_of(Way.ALL_REDUCE, [LONG])
    processes = [1, 0, 0, 1]
    chunks = chunk_numbers(range(SIZE), processes)
    seen = np.zeros(Y.size)
    result = np.zeros_like(Y)
    for process in (0, 1):
        own = [r for r in range(SIZE) if processes[r] == process]
        [part] = parts = list(of_chunks(op, own[0], [chunks[r] for r in own], SIZE))
        message = Message(op, SIZE, parts)
        sent = np.empty(message.bytes, np.uint8)
        message.pack(sent, {own[0]: [Y.ctypes.data]})
        message.unpack(sent, [result.ctypes.data])
        seen[part.begin // 4 : (part.begin + part.bytes) // 4] += 1
    assert (seen == 1).all() and np.array_equal(result, Y)
    del keep

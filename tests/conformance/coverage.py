"""Ops that make, move or pack values, for every element type: results have the same bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from heron.hlo.ir import types
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.shape import row_major
from heron.hlo.text.literal_printer import print_literal
from tests.conformance import values
from tests.conformance.case import EXACT, Case, Closeness
from tests.conformance.values import ALL, COMPLEX, FLOATS

BITS = Closeness(bits=True)
#: op → body on a parameter of 2 by 3 elements; T is the type
MOVES = {
    "transpose": "ROOT r = T[3,2] transpose(p), dimensions={1,0}",
    "broadcast": "ROOT r = T[2,4,3] broadcast(p), dimensions={0,2}",
    "reshape": "ROOT r = T[6] reshape(p)",
    "reverse": "ROOT r = T[2,3] reverse(p), dimensions={0,1}",
    "slice": "ROOT r = T[1,2] slice(p), slice={[1:2], [0:3:2]}",
    "concatenate": "ROOT r = T[2,6] concatenate(p, p), dimensions={1}",
    "pad": "z = T[] constant(ONE)\n ROOT r = T[3,5] pad(p, z), padding=1_0x0_0_1",
    "bitcast": "ROOT r = T[3,2] bitcast(p)",
    "get-tuple-element": "t = (T[2,3], T[2,3]) tuple(p, p)\n ROOT r = T[2,3] get-tuple-element(t), index=1",
    "tuple": "n = T[2,3] copy(p)\n ROOT r = (T[2,3], T[2,3]) tuple(n, p)",
}


def cases() -> Iterator[Case]:
    for name in ALL:
        x = _moved(name)
        for op, body in MOVES.items():
            one = "(1, 0)" if name in COMPLEX else "true" if name == "pred" else "1"
            lines = f" p = {name}[2,3] parameter(0)\n {body.replace('T[', name + '[').replace('ONE', one)}"
            yield Case(op, name, lines, [x], close=BITS)
        yield _constant(name)
        if name != "pred":
            yield Case("iota", name, f" ROOT r = {name}[3,2] iota(), iota_dimension=0")
            yield Case("iota", name, f" ROOT r = {name}[5,300] iota(), iota_dimension=1", label="long")


def _moved(name: str) -> np.ndarray:
    """Six values, odd ones among them, but for NaNs with a payload."""
    corners = values.corners(name)
    if name in FLOATS + COMPLEX:
        corners = corners[~np.isnan(corners.astype(np.complex128))]
    return np.resize(corners[:: max(1, corners.size // 6)], (2, 3))


def _constant(name: str) -> Case:
    """Corners as a literal. XLA reads -0 as the integer 0, and not all complex numbers that it writes."""
    x, t = values.corners(name), types.by_name(name)
    if name in COMPLEX:
        x = x[np.isfinite(x) & (np.abs(x) < 1e30)][::8]
    if t.is_float or t.is_complex:
        x = x[~((np.real(x) == 0) & np.signbit(np.real(x)) | (np.imag(x) == 0) & np.signbit(np.imag(x)))]
    x = x[x.size % 2 :]
    literal = Literal(row_major(t, 2, x.size // 2), x.reshape(2, -1))
    body = f" ROOT r = {name}[2,{x.size // 2}] constant({print_literal(literal)})"
    return Case("constant", name, body, [], close=EXACT)

"""Tables of cases: HLO text in which ``T`` stands for an element type, written once for many types."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.conformance.case import EXACT, Case, Closeness

FLOATS = "bf16 f16 f32 f64"
WIDE = "f32 f64"
INTEGERS = "s8 u8 s16 u16 s32 u32 s64 u64"
SMALL_INTEGERS = "s4 u4"
COMPLEX = "c64 c128"
F8 = "f8e4m3fn f8e5m2"
#: one of each kind
SOME = "f32 bf16 f64 s32 s8 u8 pred c64"

#: sums of a few products: XLA rounds after each step (narrow types: to f32), the evaluator once
SUMS = {
    "f32": Closeness(ulps=4, floor=2e-6, zeros=False),
    "c64": Closeness(ulps=4, floor=2e-6, zeros=False),
    "f64": Closeness(ulps=8, floor=1e-14, zeros=False),
    "c128": Closeness(ulps=8, floor=1e-14, zeros=False),
    "f16": Closeness(ulps=2, floor=2e-3, zeros=False),
    "bf16": Closeness(ulps=1, floor=2e-6, zeros=False),
    "f8e4m3fn": Closeness(ulps=1, zeros=False),
    "f8e5m2": Closeness(ulps=1, zeros=False),
}
#: sums in steps: XLA rounds after each step to the type itself
STEPS = {**SUMS, "f16": Closeness(ulps=4, floor=4e-3, zeros=False), "bf16": Closeness(ulps=4, floor=2e-2, zeros=False)}
MOVES: dict[str, Closeness] = {}


def of_type(text: str, element_type: str) -> str:
    """`text` with that type for each ``T``; its scalar constants become complex where that is."""
    if element_type in COMPLEX:
        text = re.sub(r"(\bT\[\] constant)\(([^()]*)\)", r"\1((\2, 0))", text)
    return re.sub(r"\bT\b", element_type, text)


def table(
    op: str, types: str, bodies: Mapping[str, str], before: str = "", close: Mapping[str, Closeness] = MOVES
) -> list[Case]:
    """Every body for each of `types` (names with spaces between); `close` by type, else exact."""
    return [
        Case(op, t, of_type(body, t), label=label, before=of_type(before, t), close=close.get(t, EXACT))
        for label, body in bodies.items()
        for t in types.split()
    ]

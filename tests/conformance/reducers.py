"""Computations that cases reduce, select and scatter with, for the element type ``T``."""

from __future__ import annotations


def binary(opcode: str) -> str:
    """A computation, named as the opcode, of that op on two scalars."""
    return f"{opcode} {{\n a = T[] parameter(0)\n b = T[] parameter(1)\n ROOT r = T[] {opcode}(a, b)\n}}\n"


def comparison(name: str, direction: str) -> str:
    """A computation that compares two scalars."""
    return (
        f"{name} {{\n a = T[] parameter(0)\n b = T[] parameter(1)\n"
        f" ROOT r = pred[] compare(a, b), direction={direction}\n}}\n"
    )


#: the second of two values
SECOND = "second {\n a = T[] parameter(0)\n ROOT b = T[] parameter(1)\n}\n"

#: associative but not commutative, and no single op: the first value that is not zero
FIRST = """first {
 a = T[] parameter(0)
 b = T[] parameter(1)
 z = T[] constant(0)
 n = pred[] compare(a, z), direction=EQ
 ROOT r = T[] select(n, b, a)
}
"""

#: a sum through another computation
CALLED = """inner {
 a = T[] parameter(0)
 b = T[] parameter(1)
 ROOT r = T[] add(a, b)
}
called {
 a = T[] parameter(0)
 b = T[] parameter(1)
 ROOT r = T[] call(a, b), to_apply=inner
}
"""

#: of two pairs (value, position) the one with the larger value; of equals the earlier one
ARGMAX = """argmax {
 a = T[] parameter(0)
 i = s32[] parameter(1)
 b = T[] parameter(2)
 j = s32[] parameter(3)
 more = pred[] compare(a, b), direction=GT
 equal = pred[] compare(a, b), direction=EQ
 before = pred[] compare(i, j), direction=LT
 tie = pred[] and(equal, before)
 first = pred[] or(more, tie)
 v = T[] select(first, a, b)
 k = s32[] select(first, i, j)
 ROOT t = (T[], s32[]) tuple(v, k)
}
"""

#: a sum and a maximum side by side
SUM_AND_MAX = """both {
 a = T[] parameter(0)
 i = s32[] parameter(1)
 b = T[] parameter(2)
 j = s32[] parameter(3)
 s = T[] add(a, b)
 m = s32[] maximum(i, j)
 ROOT t = (T[], s32[]) tuple(s, m)
}
"""

#: adds the second value to the first until that is at least 10: more than elementwise ops
LOOP = """small {
 t = (T[], T[]) parameter(0)
 x = T[] get-tuple-element(t), index=0
 ten = T[] constant(10)
 low = pred[] compare(x, ten), direction=LT
 by = T[] get-tuple-element(t), index=1
 z = T[] constant(0)
 up = pred[] compare(by, z), direction=GT
 ROOT r = pred[] and(low, up)
}
grown {
 t = (T[], T[]) parameter(0)
 x = T[] get-tuple-element(t), index=0
 by = T[] get-tuple-element(t), index=1
 s = T[] add(x, by)
 ROOT r = (T[], T[]) tuple(s, by)
}
loop {
 a = T[] parameter(0)
 b = T[] parameter(1)
 t = (T[], T[]) tuple(a, b)
 w = (T[], T[]) while(t), condition=small, body=grown
 ROOT r = T[] get-tuple-element(w), index=0
}
"""

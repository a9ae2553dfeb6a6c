"""Ops that move elements, for every type, against XLA:CPU."""

from __future__ import annotations

from itertools import permutations

from tests.conformance.case import Case
from tests.conformance.runner import expect_agreement
from tests.conformance.tables import COMPLEX, F8, FLOATS, INTEGERS, SMALL_INTEGERS, SOME, table

BROADCASTS = {
    "a scalar": " p = T[] parameter(0)\n ROOT r = T[2,3] broadcast(p), dimensions={}",
    "a scalar to a scalar": " p = T[] parameter(0)\n ROOT r = T[] broadcast(p), dimensions={}",
    "in front": " p = T[3] parameter(0)\n ROOT r = T[2,3] broadcast(p), dimensions={1}",
    "behind": " p = T[3] parameter(0)\n ROOT r = T[3,2] broadcast(p), dimensions={0}",
    "between": " p = T[2,3] parameter(0)\n ROOT r = T[2,4,3] broadcast(p), dimensions={0,2}",
    "transposed": " p = T[3,4] parameter(0)\n ROOT r = T[4,2,3] broadcast(p), dimensions={2,0}",
    "of nothing": " p = T[0] parameter(0)\n ROOT r = T[2,0] broadcast(p), dimensions={1}",
    "to nothing": " p = T[3] parameter(0)\n ROOT r = T[0,3] broadcast(p), dimensions={1}",
    "size one": " p = T[1] parameter(0)\n ROOT r = T[1,1] broadcast(p), dimensions={1}",
}
RESHAPES = {
    "flat": " p = T[2,3,4] parameter(0)\n ROOT r = T[24] reshape(p)",
    "regrouped": " p = T[6,4] parameter(0)\n ROOT r = T[3,8] reshape(p)",
    "ones": " p = T[2,1,3] parameter(0)\n ROOT r = T[1,2,3,1] reshape(p)",
    "to a scalar": " p = T[1,1] parameter(0)\n ROOT r = T[] reshape(p)",
    "from a scalar": " p = T[] parameter(0)\n ROOT r = T[1] reshape(p)",
    "nothing": " p = T[0,3] parameter(0)\n ROOT r = T[5,0,2] reshape(p)",
    "of a transpose": """ p = T[2,3,4] parameter(0)
 t = T[4,2,3] transpose(p), dimensions={2,0,1}
 ROOT r = T[8,3] reshape(t)""",
}
REVERSES = {
    "one dimension": " p = T[3,4] parameter(0)\n ROOT r = T[3,4] reverse(p), dimensions={1}",
    "two": " p = T[3,4,2] parameter(0)\n ROOT r = T[3,4,2] reverse(p), dimensions={2,0}",
    "none": " p = T[3,4] parameter(0)\n ROOT r = T[3,4] reverse(p), dimensions={}",
    "nothing": " p = T[0,4] parameter(0)\n ROOT r = T[0,4] reverse(p), dimensions={0,1}",
    "a scalar": " p = T[] parameter(0)\n ROOT r = T[] reverse(p), dimensions={}",
}
CONCATENATIONS = {
    "two": " p = T[2,3] parameter(0)\n q = T[2,1] parameter(1)\n ROOT r = T[2,4] concatenate(p, q), dimensions={1}",
    "one": " p = T[2,3] parameter(0)\n ROOT r = T[2,3] concatenate(p), dimensions={0}",
    "one twice": " p = T[2,3] parameter(0)\n ROOT r = T[4,3] concatenate(p, p), dimensions={0}",
    "with nothing between": """ p = T[2] parameter(0)
 n = T[0] parameter(1)
 q = T[3] parameter(2)
 ROOT r = T[5] concatenate(p, n, q), dimensions={0}""",
    "nothing": " p = T[0,2] parameter(0)\n ROOT r = T[0,4] concatenate(p, p), dimensions={1}",
}


def _pad(shape: str, result: str, padding: str) -> str:
    return f" p = T[{shape}] parameter(0)\n z = T[] parameter(1)\n ROOT r = T[{result}] pad(p, z), padding={padding}"


PADS = {
    "edges": _pad("3,2", "6,2", "1_2x0_0"),
    "between": _pad("3,2", "7,5", "0_0_2x1_1_1"),
    "cut": _pad("5,4", "3,2", "-1_-1x-2_0"),
    "cut and pad": _pad("5", "5", "-2_2"),
    "cut between": _pad("4", "6", "-1_-3_2"),
    "cut into padding": _pad("2", "2", "-4_3_1"),
    "cut all": _pad("3", "0", "-3_0"),
    "cut all from behind": _pad("3,2", "3,0", "0_0x0_-2"),
    "cut all but padding": _pad("3", "2", "-5_4"),
    "between one": _pad("1", "3", "1_1_5"),
    "nothing": _pad("0,2", "3,2", "2_1_3x0_0"),
    "nothing at all": _pad("0", "0", "0_0_2"),
}

SLICES = {
    "part": " p = T[9,4] parameter(0)\n ROOT r = T[3,2] slice(p), slice={[1:4], [2:4]}",
    "strides": " p = T[9,4] parameter(0)\n ROOT r = T[3,2] slice(p), slice={[1:9:3], [0:3:2]}",
    "stride beyond": " p = T[9] parameter(0)\n ROOT r = T[1] slice(p), slice={[2:9:20]}",
    "nothing": " p = T[9,4] parameter(0)\n ROOT r = T[0,4] slice(p), slice={[3:3], [0:4]}",
    "nothing at the end": " p = T[9] parameter(0)\n ROOT r = T[0] slice(p), slice={[9:9:2]}",
    "a scalar": " p = T[] parameter(0)\n ROOT r = T[] slice(p), slice={}",
}


def _transposes() -> dict[str, str]:
    sizes = (2, 3, 4)
    bodies = {
        "no dimension": " p = T[] parameter(0)\n ROOT r = T[] transpose(p), dimensions={}",
        "nothing": " p = T[0,3] parameter(0)\n ROOT r = T[3,0] transpose(p), dimensions={1,0}",
        "four": " p = T[2,3,1,4] parameter(0)\n ROOT r = T[4,2,3,1] transpose(p), dimensions={3,0,1,2}",
    }
    for order in permutations(range(3)):
        words, result = (",".join(map(str, n)) for n in (order, (sizes[d] for d in order)))
        bodies[words] = f" p = T[2,3,4] parameter(0)\n ROOT r = T[{result}] transpose(p), dimensions={{{words}}}"
    return bodies


def movement_cases() -> list[Case]:
    every = f"{FLOATS} {INTEGERS} {COMPLEX} {F8} pred"
    return [
        *table("broadcast", SOME, BROADCASTS),
        *table("reshape", SOME, RESHAPES),
        *table("transpose", SOME, _transposes()),
        *table("reverse", SOME, REVERSES),
        *table("concatenate", SOME, CONCATENATIONS),
        *table("pad", SOME, PADS),
        *table("slice", SOME, SLICES),
        *table("transpose", f"{every} {SMALL_INTEGERS}", {"each type": _transposes()["2,0,1"]}),
        *table("pad", f"{every} {SMALL_INTEGERS}", {"each type": PADS["between"]}),
        *table("concatenate", f"{every} {SMALL_INTEGERS}", {"each type": CONCATENATIONS["two"]}),
        *table("slice", f"{every} {SMALL_INTEGERS}", {"each type": SLICES["strides"]}),
    ]


def test_movement() -> None:
    expect_agreement(movement_cases())

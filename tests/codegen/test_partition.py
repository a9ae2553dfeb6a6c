"""The partitioner: what becomes a function, what is repeated, what stays in line."""

from __future__ import annotations

import re

import pytest

from heron.codegen.heroes.base import as_fusion
from heron.codegen.partition import Partition, partition
from tests.codegen.run_kernel import root_fusion
from tests.codegen.test_elemental_indexing import source


def cut(shapes: list[str], body: str) -> Partition:
    return partition(as_fusion(root_fusion(source(shapes, body))).roots)


def called(p: Partition) -> dict[str, list[str]]:
    """Function name -> what it calls."""
    return {f.name: [p.functions[c].name for c in f.calls] for f in [*p.entries, *p.functions.values()]}


def test_elementwise_is_one_function() -> None:
    p = cut(["f32[8]"], "a = f32[8] exponential(p0)\n b = f32[8] add(a, a)\n ROOT r = f32[8] multiply(b, a)")
    assert called(p) == {"entry": []}
    assert [i.opcode for i in p.entries[0].instructions] == ["exponential", "add", "multiply"]


def test_log_transpose_add() -> None:
    p = cut(
        ["f32[4,4]"],
        "l = f32[4,4] log(p0)\n t = f32[4,4] transpose(l), dimensions={1,0}\n ROOT r = f32[4,4] add(l, t)",
    )
    assert called(p) == {"entry": ["l"], "l": []}
    text = re.sub(r"\.\d+", "", str(p))
    assert text == (
        "entry(p0, [4], [4]) -> r:\n  t = transpose(l)\n  r = add(l, t)\n  calls l\n"
        "l(p0, [4], [4]) -> l:\n  l = log(p0)"
    )


def test_slices_of_one_value_and_a_pad() -> None:
    p = cut(
        ["f32[8]", "f32[]"],
        "e = f32[8] exponential(p0)\n a = f32[4] slice(e), slice={[0:4]}\n b = f32[4] slice(e), slice={[4:8]}\n"
        " c = f32[4] add(a, b)\n ROOT r = f32[6] pad(c, p1), padding=1_1",
    )
    assert called(p) == {"entry": ["e"], "e": []}


def test_the_same_index_by_two_ways_is_one_place() -> None:
    """Two transposes that undo each other, a reshape there and back: the index is the same, so is the function."""
    p = cut(
        ["f32[4,6]"],
        "e = f32[4,6] exponential(p0)\n t = f32[6,4] transpose(e), dimensions={1,0}\n"
        " u = f32[4,6] transpose(t), dimensions={1,0}\n s = f32[24] reshape(e)\n v = f32[4,6] reshape(s)\n"
        " w = f32[4,6] add(u, v)\n ROOT r = f32[4,6] add(w, e)",
    )
    assert called(p) == {"entry": []}


def test_cheap_values_are_repeated() -> None:
    p = cut(
        ["bf16[4,4]", "f32[4]"],
        "c = f32[4,4] convert(p0)\n b = f32[4,4] broadcast(p1), dimensions={0}\n n = f32[4,4] negate(b)\n"
        " t = f32[4,4] transpose(c), dimensions={1,0}\n u = f32[4,4] transpose(n), dimensions={1,0}\n"
        " x = f32[4,4] add(c, t)\n y = f32[4,4] add(n, u)\n ROOT r = f32[4,4] add(x, y)",
    )
    assert called(p) == {"entry": []}


def test_regions_are_places_of_their_own() -> None:
    """A value read inside a reduction's loop and outside it is computed in both: the two never meet."""
    p = cut(
        ["f32[4,4]", "f32[]"],
        "e = f32[4,4] exponential(p0)\n s = f32[4] reduce(e, p1), dimensions={1}, to_apply=add\n"
        " b = f32[4,4] broadcast(s), dimensions={0}\n ROOT r = f32[4,4] divide(e, b)",
    )
    assert called(p) == {"entry": []}


def test_outputs_of_equal_dimensions_share_the_entry() -> None:
    body = (
        "e = f32[4,6] exponential(p0)\n n = f32[4,6] negate(e)\n t = f32[6,4] transpose(e), dimensions={1,0}\n"
        " ROOT r = (f32[4,6], f32[4,6]) tuple(e, n)"
    )
    assert called(cut(["f32[4,6]"], body)) == {"entry": [], "entry_1": []}
    other = body.replace("(f32[4,6], f32[4,6]) tuple(e, n)", "(f32[4,6], f32[6,4]) tuple(e, t)")
    assert called(cut(["f32[4,6]"], other)) == {"entry": [], "entry_1": []}


def test_boundaries_and_provided_values() -> None:
    root = as_fusion(root_fusion(source(["f32[8]"], "x = f32[8] exponential(p0)\n ROOT r = f32[8] tanh(x)"))).roots[0]
    a = root.operands[0]
    name = a.name.replace(".", "_")
    assert called(partition([root], boundaries=[a])) == {"entry": [name], name: []}
    p = partition([root], provided=[a])
    assert [i.opcode for i in p.entries[0].instructions] == ["tanh"] and p.entries[0].parameters == []


@pytest.mark.parametrize("depth", [3000])
def test_long_chains(depth: int) -> None:
    lines = ["x0 = f32[4] exponential(p0)"] + [f"x{n} = f32[4] sine(x{n - 1})" for n in range(1, depth)]
    p = cut(["f32[4]"], "\n".join([*lines, f"ROOT r = f32[4] negate(x{depth - 1})"]))
    assert len(p.entries[0].instructions) == depth + 1


def test_chains_do_not_double() -> None:
    """Rounds that each mix two values, both handed out at the end: no function calls two that call two …"""
    lines = ["x0 = u32[8] negate(p0)", "y0 = u32[8] not(p0)"]
    for n in range(12):
        lines.append(f"x{n + 1} = u32[8] add(x{n}, y{n})")
        lines.append(f"y{n + 1} = u32[8] xor(y{n}, x{n + 1})")
    body = "\n ".join([*lines, "ROOT r = u32[16] concatenate(x12, y12), dimensions={0}"])
    p = cut(["u32[8]"], body)
    assert sum(len(f.calls) for f in [*p.entries, *p.functions.values()]) <= 2

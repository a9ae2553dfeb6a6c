"""Sums of iotas as one expression of the index, and the loops that they leave joined."""

from __future__ import annotations

import numpy as np
import pytest

from heron import targets
from heron.analysis.indexing.expr import Dim
from heron.analysis.indexing.positions import position_sum
from heron.codegen.emit import emit_fusion
from tests.codegen.run_kernel import check, root_fusion
from tests.codegen.test_elemental_indexing import source

COUNTED = """a = {t}[{s}] iota(), iota_dimension=0
 b = {t}[{s}] iota(), iota_dimension=1
 n = {t}[] constant({n})
 ns = {t}[{s}] broadcast(n), dimensions={{}}
 m = {t}[{s}] multiply(ns, a)
 c = {t}[{s}] add(m, b)
"""
HASHED = "h = {t}[{s}] multiply(c, c)\n ROOT r = {t}[{s}] xor(h, p0)"


def body(t: str, sizes: str, n: int) -> str:
    return (COUNTED + HASHED).format(t=t, s=sizes, n=n)


@pytest.mark.parametrize("t", ["u32", "s32", "u64"])
@pytest.mark.parametrize(("sizes", "n", "loops"), [("50,3", 3, "2"), ("50,3", 4, "1x1"), ("3,50", 50, "2")])
def test_row_major_counters_are_one_loop(t: str, sizes: str, n: int, loops: str) -> None:
    text = source([f"{t}[{sizes}]"], body(t, sizes, n))
    assert emit_fusion(root_fusion(text), "k", targets.get("cpu")).notes["loops"] == loops
    given = (
        np.arange(150).reshape([int(x) for x in sizes.split(",")]).astype(t.replace("u", "uint").replace("s", "int"))
    )
    check(text, [given], parts=3)


@pytest.mark.parametrize(
    ("t", "n", "is_position"),
    [
        ("u32", 7, True),
        ("s32", 0, True),
        ("s32", -1, False),
        ("u32", 1 << 27, False),
        ("u16", 7, False),
        ("f32", 7, False),
    ],
)
def test_sums_that_fit_their_type(t: str, n: int, is_position: bool) -> None:
    fusion = root_fusion(source([f"{t}[40,2]"], COUNTED.format(t=t, s="40,2", n=n) + f"ROOT r = {t}[40,2] add(c, p0)"))
    (added,) = [i for i in fusion.attrs["calls"].instructions if i.name.startswith("c") and i.opcode == "add"]
    assert (position_sum(added, (Dim(0), Dim(1))) is not None) == is_position
    assert position_sum(fusion.attrs["calls"].root, (Dim(0), Dim(1))) is None  # a parameter is none

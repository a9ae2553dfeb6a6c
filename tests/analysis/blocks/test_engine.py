"""Which operands the copy engine fetches, with the reasons where it does not, and when the model wants it."""

from __future__ import annotations

import pytest

from heron import targets
from heron.analysis.blocks.config import BlockConfig, config_of
from heron.analysis.blocks.cost import Freedom, Plan, may_specialize, plans
from heron.analysis.blocks.engine import Descriptor, address_of, descriptor_of, has_engine
from heron.analysis.blocks.tiling import Refusal, Tiling
from heron.backends.compiler import Compilation
from heron.hlo.text import parse
from heron.options import Options
from heron.trace import Trace

SM = targets.get("sm_90")


def tiling_of(body: str) -> Tiling:
    entry = parse(f"HloModule m\nENTRY e {{\n{body}\n}}").entry
    return Tiling(entry.root, frozenset(entry.instructions))


def described(body: str, sizes: tuple[int, ...]) -> Descriptor | str:
    tiling = tiling_of(body)
    p = next(i for i in tiling.values if i.opcode == "parameter")
    (address,) = tiling.simplify((address_of(p, tiling.values[p][0]),))
    return descriptor_of(p, address, sizes.__getitem__)


@pytest.mark.parametrize(
    ("body", "sizes", "why"),
    [
        ("p = bf16[64,96] parameter(0)\nROOT n = bf16[64,96] negate(p)", (32, 32), ""),
        ("p = bf16[64,96] parameter(0)\nROOT t = bf16[96,64] transpose(p), dimensions={1,0}", (32, 32), ""),
        ("p = s8[3,64,96] parameter(0)\nROOT n = s8[3,64,96] negate(p)", (1, 32, 32), ""),
        ("p = bf16[64,96] parameter(0)\nROOT s = bf16[32,64] slice(p), slice={[8:40], [16:80]}", (32, 32), ""),
        ("p = bf16[64,96] parameter(0)\nROOT s = bf16[32,64] slice(p), slice={[8:40], [3:67]}", (32, 32), "begins"),
        ("p = bf16[64,96] parameter(0)\nROOT s = bf16[64,48] slice(p), slice={[0:64], [0:96:2]}", (32, 32), "side by"),
        ("p = bf16[64,96] parameter(0)\nROOT r = bf16[6144] reshape(p)", (32,), "1 of 2"),
        ("p = bf16[64,99] parameter(0)\nROOT n = bf16[64,99] negate(p)", (32, 32), "198 bytes apart"),
        ("p = s8[64,96] parameter(0)\nROOT n = s8[64,96] negate(p)", (32, 8), "16 bytes to"),
        (
            "p = bf16[6,8,96] parameter(0)\nt = bf16[8,6,96] transpose(p), dimensions={1,0,2}\n"
            "ROOT r = bf16[48,96] reshape(t)",
            (16, 16),
            "equal steps",
        ),
    ],
)
def test_descriptors(body: str, sizes: tuple[int, ...], why: str) -> None:
    found = described(body, sizes)
    assert not why and isinstance(found, Descriptor) or why and isinstance(found, str) and why in found, found


def test_a_descriptor() -> None:
    """Of a slice of one matrix of several: rows go along dimension 1, from a place ahead."""
    body = "p = bf16[4,64,96] parameter(0)\nROOT s = bf16[4,32,64] slice(p), slice={[0:4], [8:40], [16:80]}"
    found = described(body, (1, 32, 32))
    assert isinstance(found, Descriptor)
    assert (found.rows, found.columns, found.stride) == (1, 2, 96)
    assert found.base.evaluate([3, 0, 0]) == 3 * 64 * 96 + 8 * 96 + 16


def product(k: int) -> str:
    return f"""
HloModule m
ENTRY e {{
  x = s8[4096,{k}] parameter(0)
  w = bf16[{k},4096] parameter(1)
  c = bf16[4096,{k}] convert(x)
  d = bf16[4096,4096] dot(c, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT n = bf16[4096,4096] negate(d)
}}
"""


def best(k: int, engine: str) -> Plan:
    entry = parse(product(k)).entry
    found = plans(Tiling(entry.root, frozenset(entry.instructions)), SM, Freedom(engine=engine))
    assert not isinstance(found, Refusal)
    return found[0]


def test_long_sums_pay_for_descriptors() -> None:
    assert best(16384, "auto").config.tma and not best(512, "auto").config.tma
    assert best(512, "on").config.tma and not best(16384, "off").config.tma
    assert best(16384, "auto").seconds < best(16384, "off").seconds


@pytest.mark.parametrize(("target", "engine"), [("sm_80", False), ("sm_90", True), ("sm_120", True), ("cpu", False)])
def test_machines(target: str, engine: bool) -> None:
    assert has_engine(targets.get(target)) == engine


@pytest.mark.parametrize(("option", "wanted"), [("on", True), ("off", False), ("specialized", True)])
def test_the_option(option: str, wanted: bool) -> None:
    made = Compilation(parse(product(1024)), SM, Options(triton="on", tma=option), Trace()).passes("fused")
    (config,) = (c for i in made.instructions() if (c := config_of(i)) is not None)
    assert config.tma == wanted


def test_kernels_tell() -> None:
    """Which operands come by descriptors is among a kernel's facts."""
    text = product(1024).replace("4096", "512")
    _, uses = Compilation(parse(text), SM, Options(triton="on", tma="on"), Trace()).lowered
    (use,) = uses.values()
    assert use.kernel.notes["tma"].count("by descriptor") == 2


@pytest.mark.parametrize(
    ("tiles", "may"), [((128, 128), True), ((64, 64), True), ((64, 256), False), ((32, 128), False)]
)
def test_tiles_that_warps_of_their_own_may_fetch(tiles: tuple[int, int], may: bool) -> None:
    """Triton 3.9 splits a wider tile over two groups of warps, and refuses its product."""
    assert may_specialize(BlockConfig(tiles)) == may

"""What measuring may try beside the model's choice: all that fits, and nothing that does not."""

from __future__ import annotations

from heron import targets
from heron.analysis.blocks.config import BlockConfig
from heron.analysis.blocks.cost import plans, variants
from heron.analysis.blocks.tiling import Tiling
from heron.hlo.text import parse

SM = targets.get("sm_90")


def configs(target: targets.Target, tiles: tuple[int, int] = (128, 128)) -> tuple[BlockConfig, list[BlockConfig]]:
    """A plan's config for a product of bytes and bf16, and those of its variants."""
    entry = parse("""
HloModule m
ENTRY e {
  x = s8[4096,4096] parameter(0)
  w = bf16[4096,4096] parameter(1)
  c = bf16[4096,4096] convert(x)
  ROOT d = f32[4096,4096] dot(c, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
""").entry
    tiling = Tiling(entry.root, frozenset(entry.instructions))
    found = plans(tiling, target)
    assert isinstance(found, list)
    plan = next(p for p in found if p.config.tiles == tiles)
    return plan.config, [p.config for p in variants(plan, tiling, target)]


def test_variants() -> None:
    """Steps ahead, warps and the copy engine, with the same tiles."""
    chosen, others = configs(SM)
    assert chosen not in others and len(set(others)) == len(others)
    assert {c.tiles for c in others} == {chosen.tiles}
    assert {c.stages for c in others} >= {chosen.stages - 1, chosen.stages}
    assert {(c.tma, c.specialized) for c in others} == {(False, False), (True, False), (True, True)}
    assert {c.warps for c in others} == {4, 8, 16}
    assert all(BlockConfig.parse(str(c)) == c for c in others)


def test_what_has_no_room() -> None:
    """Registers: half the warps for 128x256 results hold too many each. Shared memory: no step more than fits."""
    chosen, others = configs(SM, (128, 256))
    assert min(c.warps for c in others) == chosen.warps
    for c in others:
        bytes_of_steps = (c.tiles[0] + c.tiles[1]) * c.block_k * 2 * c.stages
        assert bytes_of_steps <= SM.shared_bytes_per_block


def test_machines_without_the_engine() -> None:
    assert not any(c.tma for c in configs(targets.get("sm_80"))[1])

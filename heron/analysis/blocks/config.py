"""Tiles of a block kernel, as data: the content of a fusion's backend config."""

from __future__ import annotations

import json
import re
from math import prod
from typing import Any, Literal

from heron.hlo.calls.backend_config import hints, member, whole
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.records import dataclass

#: kinds of fusions in backend configs: with products, without, and with products whose operands are fusions
GEMM, ROWS, NESTED = "__triton_gemm", "__triton", "__triton_nested_gemm_fusion"
#: elements of a tile, those of a sum or row done at once, warps, and steps loaded ahead: Triton takes no more
MOST_TILE, MOST_STEP, MOST_WARPS, MOST_STAGES = 1 << 20, 1 << 16, 32, 16
#: a sum of at most so many elements is done at once, not in steps
WHOLE = 128
#: products of f32: as they are, or as three products of parts that matrix units take, 21 bits together
Precision = Literal["ieee", "tf32x3"]
_TEXT = re.compile(
    r"([\dx]+) step (\d+) warps (\d+) stages (\d+)(?: rows (\d+)( online)?)?( tf32x3)?(?: split (\d+))?"
    r"( tma)?( specialized)?"
)


@dataclass(frozen=True, slots=True)
class BlockConfig:
    """``tiles``: elements a program computes along each dimension of the result, powers of two. ``block_k``: of a
    product's sum, those added in one step. ``warps`` of 32 threads do it; ``stages``: steps loaded ahead. ``row``: of a
    row that is reduced, elements at hand at once; 0: all. ``online``: softmax and product of a row in one pass over it,
    what was summed so far scaled again when a larger element comes. ``precision``: how products of f32 are done.
    ``split``: in how many parts the sum of a product is done, each by programs of its own: `splitk-rewriter` makes two
    kernels of such a fusion, and ``tiles`` begins with a dimension for the parts. ``tma``: operands come by the
    machine's copy engine where it can read them so; ``specialized``: warps of their own give it work.
    """

    tiles: tuple[int, ...]
    block_k: int = 64
    warps: int = 4
    stages: int = 3
    row: int = 0
    online: bool = False
    precision: Precision = "ieee"
    split: int = 1
    tma: bool = False
    specialized: bool = False

    def __str__(self) -> str:
        sizes = "x".join(map(str, self.tiles))
        rows = f" rows {self.row}{' online' if self.online else ''}" if self.row else ""
        precision = "" if self.precision == "ieee" else f" {self.precision}"
        split = f" split {self.split}" if self.split > 1 else ""
        engine = f"{' tma' if self.tma else ''}{' specialized' if self.specialized else ''}"
        launch = f"step {self.block_k} warps {self.warps} stages {self.stages}"
        return f"{sizes} {launch}{rows}{precision}{split}{engine}"

    @staticmethod
    def parse(text: str) -> BlockConfig | None:
        """The config that `str` wrote so; None for any other text."""
        found = _TEXT.fullmatch(text)
        if found is None or not all(found[1].split("x")):
            return None
        tiles = tuple(map(int, found[1].split("x")))
        row, precision = int(found[5] or 0), "tf32x3" if found[7] else "ieee"
        config = BlockConfig(
            tiles, int(found[2]), int(found[3]), int(found[4]), row, bool(found[6]), precision,
            int(found[8] or 1), bool(found[9]), bool(found[10]),
        )  # fmt: skip
        sizes = (*tiles, config.block_k, config.warps, row or 1, config.split)
        return config if all(n and n & (n - 1) == 0 for n in sizes) else None

    def text(self, kind: str = GEMM) -> str:
        """The backend config of a fusion, as XLA writes it."""
        block = {
            "num_warps": str(self.warps),
            "output_tiles": [{"sizes": [str(t) for t in self.tiles]}],
            "num_ctas": 1,
            "num_stages": self.stages,
            "is_tma_allowed": self.tma,
            "is_warp_specialization_allowed": self.specialized,
            "waves_per_eu": 0,
        }
        if self.precision != "ieee":
            block["dot_precision"] = self.precision
        if self.row:
            block |= {"row_step": str(self.row), "is_online_softmax": self.online}
        if kind != GEMM:
            fusion: dict[str, object] = {"kind": kind, "block_level_fusion_config": block}
            return json.dumps({"fusion_backend_config": fusion}, separators=(",", ":"))
        cut = [t for t in self.tiles if t > 1] or [1]
        sizes = {"block_m": cut[0], "block_n": cut[-1], "block_k": self.block_k, "split_k": self.split}
        launch = {"num_stages": self.stages, "num_warps": self.warps, "num_ctas": 1}
        gemm = {name: str(n) for name, n in (sizes | launch).items()}
        fusion = {"kind": kind, "triton_gemm_config": gemm, "block_level_fusion_config": block}
        return json.dumps({"fusion_backend_config": fusion}, separators=(",", ":"))


def config_of(fusion: Instruction) -> BlockConfig | None:
    """The config of a fusion that is to be a block kernel; None for any other, and where it states no tiles that its
    largest result could be cut into.

    Tiles are rounded up to powers of two, as Triton does. Impossible values (a warp and a half) are treated as not
    stated.
    """
    given = _stated(fusion)
    block, gemm = member(given, "block_level_fusion_config"), member(given, "triton_gemm_config")
    split = whole(gemm.get("split_k"), 1, 1 << 10) or 1
    tiles = _tiles(fusion, block.get("output_tiles"), split)
    if tiles is None:
        return None
    precision = block.get("dot_precision")
    return BlockConfig(
        tiles,
        _power(gemm.get("block_k"), MOST_STEP) or 64,
        _power(block.get("num_warps"), MOST_WARPS) or 4,
        whole(block.get("num_stages"), 1, MOST_STAGES) or 1,
        _power(block.get("row_step"), MOST_STEP),
        block.get("is_online_softmax") is True,
        "tf32x3" if precision == "tf32x3" else "ieee",
        split if len(tiles) > largest(fusion).rank else 1,
        block.get("is_tma_allowed") is True,
        block.get("is_warp_specialization_allowed") is True,
    )


def kind_of(fusion: Instruction) -> str:
    """The kind of block kernel that a fusion's config names; empty for any other instruction."""
    return str(_stated(fusion).get("kind", ""))


def largest(fusion: Instruction) -> Shape:
    """The shape of a fusion's largest result: what tiles are of."""
    return max((s for _, s in fusion.shape.leaves()), key=lambda s: s.num_elements if s.is_array else -1)


def stated_gemm(fusion: Instruction) -> dict[str, int]:
    """``block_m``, ``block_n``, ``block_k``, ``num_warps`` and ``num_stages`` of a product's tile, those of them that a
    config states and that can be."""
    gemm = member(_stated(fusion), "triton_gemm_config")
    found = {name: _power(gemm.get(name), MOST_STEP) for name in ("block_m", "block_n", "block_k")}
    found["num_warps"] = _power(gemm.get("num_warps"), MOST_WARPS)
    found["num_stages"] = whole(gemm.get("num_stages"), 1, MOST_STAGES) or 0
    return {name: n for name, n in found.items() if n}


def _stated(fusion: Instruction) -> dict[str, Any]:
    """The stated configuration of a fusion's block kernel; nothing for any other instruction."""
    if fusion.opcode != "fusion" or fusion.kind != "kCustom" or ROWS not in fusion.extras.get("backend_config", ""):
        return {}
    given = member(hints(fusion), "fusion_backend_config")
    return given if given.get("kind") in (GEMM, ROWS, NESTED) else {}


def _tiles(fusion: Instruction, stated: Any, split: int) -> tuple[int, ...] | None:
    """The tiles of the largest result: the config has a list for each result, or one for that alone."""
    leaves = [s for _, s in fusion.shape.leaves()]
    if not isinstance(stated, list) or len(stated) not in (1, len(leaves)):
        return None
    main = largest(fusion)
    sizes = member(stated[next(n for n, s in enumerate(leaves) if s is main) if len(stated) > 1 else 0]).get("sizes")
    if not isinstance(sizes, list) or not main.is_array or len(sizes) not in (main.rank, main.rank + (split > 1)):
        return None
    found = tuple(_power(n, MOST_TILE) for n in sizes)
    return found if all(found) and prod(found) <= MOST_TILE else None


def _power(value: Any, most: int) -> int:
    """The least power of two that is at least a number; 0 where that is none from 1 to `most`."""
    found = whole(value, 1, most)
    return 0 if found is None else power_of_two(found)


def power_of_two(n: int) -> int:
    """The least power of two that is at least `n`."""
    return 1 << max(0, n - 1).bit_length()

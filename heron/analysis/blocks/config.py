"""How a block kernel is cut into tiles, as data: what a fusion's backend config says."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

from heron.hlo.instruction import Instruction

#: kinds of fusions in backend configs: with products, and without
GEMM, ROWS = "__triton_gemm", "__triton"
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
    """The config of a fusion that is to be a block kernel; None for any other instruction."""
    text = fusion.extras.get("backend_config", "") if fusion.opcode == "fusion" and fusion.kind == "kCustom" else ""
    if f'"kind":"{ROWS}' not in text:
        return None
    config = json.loads(text)["fusion_backend_config"]
    block = config["block_level_fusion_config"]
    gemm = config.get("triton_gemm_config", {})
    tiles = tuple(int(n) for n in block["output_tiles"][0]["sizes"])
    return BlockConfig(
        tiles,
        int(gemm.get("block_k", 64)),
        int(block["num_warps"]),
        int(block["num_stages"]),
        int(block.get("row_step", 0)),
        bool(block.get("is_online_softmax", False)),
        block.get("dot_precision", "ieee"),
        int(gemm.get("split_k", 1)),
        bool(block.get("is_tma_allowed", False)),
        bool(block.get("is_warp_specialization_allowed", False)),
    )


def power_of_two(n: int) -> int:
    """The least power of two that is at least `n`."""
    return 1 << max(0, n - 1).bit_length()

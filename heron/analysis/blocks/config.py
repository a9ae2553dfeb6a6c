"""How a block kernel is cut into tiles, as data: what a fusion's backend config says."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from heron.hlo.instruction import Instruction

KIND = "__triton_gemm"


@dataclass(frozen=True, slots=True)
class BlockConfig:
    """``tiles``: elements a program computes along each dimension of the result, powers of two. ``block_k``: of a
    product's sum, those added in one step. ``warps`` of 32 threads do it; ``stages``: steps loaded ahead."""

    tiles: tuple[int, ...]
    block_k: int = 64
    warps: int = 4
    stages: int = 3

    def __str__(self) -> str:
        sizes = "x".join(map(str, self.tiles))
        return f"{sizes} step {self.block_k} warps {self.warps} stages {self.stages}"

    @staticmethod
    def parse(text: str) -> BlockConfig | None:
        """The config that `str` wrote so; None for any other text."""
        found = re.fullmatch(r"([\dx]+) step (\d+) warps (\d+) stages (\d+)", text)
        if found is None or not all(found[1].split("x")):
            return None
        tiles = tuple(map(int, found[1].split("x")))
        config = BlockConfig(tiles, int(found[2]), int(found[3]), int(found[4]))
        sizes = (*tiles, config.block_k, config.warps)
        return config if all(n and n & (n - 1) == 0 for n in sizes) else None

    def text(self) -> str:
        """The backend config of a fusion, as XLA writes it."""
        block = {
            "num_warps": str(self.warps),
            "output_tiles": [{"sizes": [str(t) for t in self.tiles]}],
            "num_ctas": 1,
            "num_stages": self.stages,
            "is_tma_allowed": False,
            "is_warp_specialization_allowed": False,
            "waves_per_eu": 0,
        }
        cut = [t for t in self.tiles if t > 1]
        sizes = {"block_m": cut[0], "block_n": cut[-1], "block_k": self.block_k, "split_k": 1}
        launch = {"num_stages": self.stages, "num_warps": self.warps, "num_ctas": 1}
        gemm = {name: str(n) for name, n in (sizes | launch).items()}
        fusion = {"kind": KIND, "triton_gemm_config": gemm, "block_level_fusion_config": block}
        return json.dumps({"fusion_backend_config": fusion}, separators=(",", ":"))


def config_of(fusion: Instruction) -> BlockConfig | None:
    """The config of a fusion that is to be a block kernel; None for any other instruction."""
    text = fusion.extras.get("backend_config", "") if fusion.opcode == "fusion" and fusion.kind == "kCustom" else ""
    if KIND not in text:
        return None
    config = json.loads(text)["fusion_backend_config"]
    block = config["block_level_fusion_config"]
    tiles = tuple(int(n) for n in block["output_tiles"][0]["sizes"])
    return BlockConfig(
        tiles, int(config["triton_gemm_config"]["block_k"]), int(block["num_warps"]), int(block["num_stages"])
    )


def power_of_two(n: int) -> int:
    """The least power of two that is at least `n`."""
    return 1 << max(0, n - 1).bit_length()

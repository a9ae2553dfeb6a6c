"""From a block kernel's text to machine code, by Triton: no GPU is needed."""

from __future__ import annotations

import re
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from heron.analysis.blocks.config import BlockConfig
from heron.errors import HeronError
from heron.records import dataclass
from heron.targets.triton import missing


@dataclass(frozen=True, slots=True)
class BlockCode:
    """A block kernel as machine code, and how it is launched.

    ``warps``: of 32 threads, those that only give the copy engine work included. ``shared``: bytes of dynamic shared
    memory. Behind the kernel's own arguments come ``scratch_pointers`` more: the first is memory for the descriptors of
    the copy engine, ``scratch`` bytes for each program of the grid, null when that is 0; others are null.
    """

    name: str
    ptx: str
    cubin: bytes
    warps: int
    shared: int
    scratch_pointers: int = 2
    scratch: int = 0


def compile_block(text: str, name: str, config: BlockConfig, sm: str) -> BlockCode:
    """The code of the kernel `name` in `text` for a GPU such as `sm_90`. Raises GEN016 when Triton refuses."""
    made = _compiled(text, name, config, sm)
    facts = made.metadata
    scratch = facts.global_scratch_size
    if facts.profile_scratch_size or scratch and not config.tma:
        raise HeronError("GEN016", f"block kernel '{name}' needs scratch memory", why="only TMA descriptors get it")
    return BlockCode(name, made.asm["ptx"], made.asm["cubin"], facts.num_warps, facts.shared, scratch=scratch)


def stage_texts(text: str, name: str, config: BlockConfig, sm: str) -> dict[str, str]:
    """The texts of a kernel on Triton's way to PTX, by Triton's names. Raises GEN016 when Triton refuses."""
    made = _compiled(text, name, config, sm)
    return {stage: made.asm[stage] for stage in ("ttir", "ttgir", "llir", "ptx")}


def _compiled(text: str, name: str, config: BlockConfig, sm: str) -> Any:
    if why := missing():
        raise HeronError(
            "GEN016", f"block kernel '{name}' has no code", why=why, hint="install Triton, or compile with triton=off"
        )
    import triton
    from triton.backends.compiler import GPUTarget

    options = {
        "num_warps": config.warps,
        "num_stages": config.stages,
        "enable_fp_fusion": False,
        "enable_reflect_ftz": False,
    }
    target = GPUTarget("cuda", int(sm.removeprefix("sm_").rstrip("af")), 32)
    with tempfile.TemporaryDirectory(prefix="heron-") as folder:
        path = Path(folder) / f"{name}.ttir"
        path.write_text(spelled(text, versions()))
        try:
            return triton.compile(str(path), target=target, options=options)
        except Exception as error:  # MLIR's refusals come as exceptions of many kinds
            why = str(error).strip() or type(error).__name__
            raise HeronError("GEN016", f"Triton refuses block kernel '{name}'", why=why) from error


def spelled(text: str, version: str) -> str:
    """A block kernel's text as a version of Triton reads it: from 3.8 on, descriptors are of sizes, not of a tensor."""
    if tuple(map(int, version.split(".")[:2])) < (3, 8):
        return text
    return re.sub(r"<tensor<([^<>]*)>>", r"<\1>", text)


def versions() -> str:
    """The inputs of a block kernel's code besides its text."""
    return metadata.version("triton")

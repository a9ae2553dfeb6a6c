"""Block kernels among a program's kernels: they go to Triton, not through LLVM."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from heron.analysis.blocks.config import config_of
from heron.backends.lower import KernelUse
from heron.codegen.llvm import code_cache
from heron.codegen.triton.compile import BlockCode, compile_block, stage_texts, versions
from heron.codegen.triton.text import to_ttir
from heron.targets import Target

if TYPE_CHECKING:
    from heron.codegen.llvm.code_cache import CodeCache


def of(uses: dict[str, KernelUse]) -> dict[str, KernelUse]:
    """The block kernels."""
    return {name: use for name, use in uses.items() if use.kernel.emitter == "block"}


def without(uses: dict[str, KernelUse]) -> dict[str, KernelUse]:
    """All others."""
    return {name: use for name, use in uses.items() if use.kernel.emitter != "block"}


def texts(uses: dict[str, KernelUse]) -> Iterator[str]:
    """The Triton IR of each block kernel."""
    for use in of(uses).values():
        yield to_ttir(use.kernel.module)


def codes(uses: dict[str, KernelUse], target: Target, cache: CodeCache | None = None) -> dict[str, BlockCode]:
    """The machine code of each block kernel. Raises GEN016 without Triton, or when it refuses one."""
    return {name: _code(use, target, cache) for name, use in of(uses).items()}


def stages(use: KernelUse, target: Target) -> dict[str, str]:
    """The texts of a block kernel on Triton's way to PTX. Raises GEN016 without Triton, or when it refuses."""
    config = config_of(use.instruction)
    assert config is not None
    return stage_texts(to_ttir(use.kernel.module), use.kernel.name, config, target.llvm_cpu)


def _code(use: KernelUse, target: Target, cache: CodeCache | None) -> BlockCode:
    config = config_of(use.instruction)
    assert config is not None
    text, name = to_ttir(use.kernel.module), use.kernel.name
    if cache is None:
        return compile_block(text, name, config, target.llvm_cpu)
    key = code_cache.key("block", text, target.llvm_cpu, "", config=config.text(), triton=versions())
    made, _ = cache.fetch(key, name, lambda: _packed(compile_block(text, name, config, target.llvm_cpu)))
    return _unpacked(made)


def _packed(code: BlockCode) -> bytes:
    return json.dumps(asdict(code) | {"cubin": code.cubin.hex()}).encode()


def _unpacked(data: bytes) -> BlockCode:
    fields = json.loads(data)
    return BlockCode(**fields | {"cubin": bytes.fromhex(fields["cubin"])})

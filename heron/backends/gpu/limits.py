"""The limits of a launch on a GPU: threads, blocks and shared memory, checked before any code is made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod

from xdsl.dialects.builtin import ModuleOp, TensorType

from heron.backends.lower import KernelUse
from heron.codegen.ir.dialects.xla_gpu import AllocateSharedOp
from heron.codegen.ir.editing import functions, walk_blocks
from heron.codegen.transforms.lib.buffers import byte_size
from heron.errors import HeronError
from heron.hlo.facts import is_given
from heron.hlo.ir.instruction import Instruction
from heron.targets import Target


def check(use: KernelUse, target: Target) -> None:
    """Raise TGT006, with the numbers and the ops behind the kernel, when `target` cannot launch it.

    Registers need no check: the assembler fits them to the block, whose size the code states, and spills what is over.
    """
    kernel = use.kernel
    asked = [*_launch(kernel.launch.grid, kernel.launch.block, target)]
    shared = shared_bytes(kernel.module)
    if shared > target.static_shared_bytes:
        asked.append(f"a block has {shared:,} bytes of shared memory, at most {target.static_shared_bytes:,}")
    if asked:
        raise HeronError(
            "TGT006",
            f"kernel '{kernel.name}' asks for more than {target.name} has",
            where=f"{use.instruction.name} = {use.instruction.shape}: {ops(use.instruction)}",
            why="; ".join(asked),
            hint="make the arrays smaller, or split the program",
        )


def _launch(grid: tuple[int, int, int], block: tuple[int, int, int], target: Target) -> Iterator[str]:
    for what, sizes, most in (("blocks", grid, target.grid), ("threads of a block", block, target.block)):
        for axis, size, limit in zip("xyz", sizes, most, strict=True):
            if size > limit:
                yield f"{size:,} {what} along {axis}, at most {limit:,}"
    if prod(block) > target.threads_per_block:
        yield f"{prod(block):,} threads a block, at most {target.threads_per_block:,}"


def shared_bytes(module: ModuleOp) -> int:
    """Bytes of shared memory the functions of an emitted kernel allocate."""
    total = 0
    for function in functions(module):
        for block in walk_blocks(function.body.block):
            for op in block.ops:
                if isinstance(op, AllocateSharedOp):
                    type_ = op.result.type
                    assert isinstance(type_, TensorType)
                    total += prod(type_.get_shape()) * byte_size(type_.element_type)
    return total


def ops(i: Instruction) -> str:
    """The ops in a kernel, most frequent first: ``3 multiply, 2 add, reduce``."""
    if i.opcode != "fusion":
        return i.opcode
    counted = Counter(o.opcode for o in i.calls.instructions if not (is_given(o) or o.opcode == "tuple"))
    return ", ".join(name if n == 1 else f"{n} {name}" for name, n in counted.most_common(12))

"""collective-permute-decomposer: a permute as a send and a receive."""

from __future__ import annotations

from collections.abc import Iterator

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.replica_groups import spelled
from heron.hlo.ir.shape import scalar, token, tuple_
from heron.hlo.ir.types import U32
from heron.hlo.verifier.transfers import PAIRS
from heron.passes.collectives.model.grouping import free_channels
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.on_request.collective_permute_cycle_decomposer import closing_pairs
from heron.records import dataclass


@register
@dataclass(frozen=True)
class CollectivePermuteDecomposer(Pass):
    """Replaces a collective-permute without rings by recv, send, recv-done and send-done, in this order.

    A scheduler may then put work between each of them. ``least_bytes``: of the smallest array that is sent in this way.

    HloModule example, num_partitions=2

    ROOT p = f32[4] collective-permute(f32[4] x), channel_id=1, source_target_pairs={{0,1}}
    ->
    ...
    """

    name = "collective-permute-decomposer"
    least_bytes: int = 0

    def run(self, module: Module, ctx: PassContext) -> bool:
        # without a channel a transfer among several partitions would be one among replicas
        if module.replica_count > 1 and module.num_partitions > 1:
            return False
        changed = False
        channels = free_channels(module)
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode != "collective-permute" or not is_alone(i) or i.shape.byte_size < self.least_bytes:
                    continue
                pairs = i.source_target_pairs
                if not pairs or closing_pairs(pairs) or (i.channel_id is not None) != (module.num_partitions > 1):
                    continue
                c.replace(i, _sent(i, channels))
                ctx.decide(True, f"sent between {len(pairs)} pairs of devices", subject=i.name)
                changed = True
        return changed


def _sent(i: Instruction, channels: Iterator[int]) -> Instruction:
    c, channel = i.parent, next(channels)
    assert c is not None
    told = {**i.extras.get("frontend_attributes", {}), PAIRS: spelled(i.source_target_pairs)}

    def add(
        opcode: str, operands: list[Instruction], shape: object = None, after: Instruction | None = None
    ) -> Instruction:
        made = c.add(opcode, operands, shape, like=i, channel_id=channel)  # pyright: ignore[reportArgumentType]
        made.extras["frontend_attributes"] = dict(told)
        if after is not None:
            made.add_control_predecessor(after)
        return made

    begin = c.add("after-all", [], token())
    recv = add("recv", [begin], tuple_((i.shape, scalar(U32), token())))
    send = add("send", [i.operands[0], begin], after=recv)
    received = add("recv-done", [recv], after=send)
    add("send-done", [send], after=received)
    return c.add("get-tuple-element", [received], i.shape, like=i, index=0)

"""send-recv-combiner: transfers that do not depend on each other begin and end as one."""

from __future__ import annotations

from heron.analysis.graph.reachability import Reachability
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.verifier.asynchronous import GROUP
from heron.passes.collectives.model.transfers import Chain, chains_of
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.tuples import part_of
from heron.records import dataclass


@register
@dataclass(frozen=True)
class SendRecvCombiner(Pass):
    """Begins all transfers that do not depend on each other at once, and waits for all of them at once.

    A transfer is the receive and the send of one channel; one alone is a group as well. A network then sees one
    exchange in which devices send and receive both ways. Transfers to the host, and those whose halves stand in
    different computations, as in loops that begin one for their next round, are left as they are.

    HloModule example, num_partitions=2

    t = token[] after-all()
    r = (f32[4], u32[], token[]) recv(t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
    s = (f32[4], u32[], token[]) send(f32[4] x, t), channel_id=1,
    frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
    d = (f32[4], token[]) recv-done(r), channel_id=1
    e = token[] send-done(s), channel_id=1
    ROOT g = f32[4] get-tuple-element(d), index=0
    ->
    ...
    """

    name = "send-recv-combiner"
    constraints = (
        Constraint("collective-permute-decomposer", "send-recv-combiner", "that makes transfers"),
        Constraint("send-recv-combiner", "memory-scheduler", "what it makes must be scheduled"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for group in _groups(c):
                _combine(module, c, group)
                ctx.decide(True, f"one exchange for {len(group)} transfers", subject=group[0].send.name)
                changed = True
        return changed


def _groups(c: Computation) -> list[list[Chain]]:
    """Transfers that may begin together and end together, each in the first group that it fits.

    Instructions made one keep all that had to come before and after any of them, so the table is kept up to date.
    """
    groups: list[list[Chain]] = []
    chains = chains_of(c)
    reach = Reachability(c) if chains else None
    for chain in chains:
        assert reach is not None
        for group in [*groups, []]:
            if not _is_one([*group, chain], reach):
                continue
            if not group:
                groups.append(group)
            group.append(chain)
            starts, dones = _halves(group)
            for first, others in ((starts[0], starts[1:]), (dones[0], dones[1:])):
                for other in others:
                    reach.fuse(first, other)
            break
    return groups


def _halves(group: list[Chain]) -> tuple[list[Instruction], list[Instruction]]:
    """The starts of the transfers, sends first as they never wait, and their ends."""
    starts = [*(chain.send for chain in group), *(chain.recv for chain in group)]
    dones = [*(chain.send_done for chain in group), *(chain.recv_done for chain in group)]
    return starts, dones


def _is_one(group: list[Chain], reach: Reachability) -> bool:
    """Whether nothing must come behind the beginning of one transfer and ahead of that of another; nor of the ends."""
    starts, dones = _halves(group)
    members = {*starts, *dones}
    for last, firsts in ((starts, starts + dones), (dones, dones)):
        for i in last:
            before = (*i.operands, *i.control_predecessors)
            if last is starts and any(o in dones for o in before):
                return False
            outside = [o for o in before if o not in members]
            if any(reach.reaches(first, o) for first in firsts for o in outside):
                return False
    return True


def _combine(module: Module, c: Computation, group: list[Chain]) -> None:
    """An async-start of all that begins and an async-done for all that ends."""
    starts, dones = _halves(group)
    start = c.add("async-start", [o for i in starts for o in i.operands], like=starts[0], calls=_body(module, starts))
    start.extras["frontend_attributes"] = {GROUP: ""}
    done = c.add("async-done", [start], like=starts[0])
    _take_order(starts, start, {*starts, *dones})
    _take_order(dones, done, {*starts, *dones})
    for n, (begun, ended) in enumerate(zip(starts, dones, strict=True)):
        if ended.users or ended.is_root:
            value = part_of(done, (n, 2))
            if ended.shape.is_tuple:
                value = c.add("tuple", [part_of(done, (n, 0)), value], ended.shape, like=ended)
            ended.replace_uses_with(value)
        c.remove(ended)
        c.remove(begun)


def _take_order(gone: list[Instruction], made: Instruction, members: set[Instruction]) -> None:
    """Let `made` come before and after whatever those that it stands for had to."""
    for i in gone:
        for before in i.control_predecessors:
            if before not in members:
                made.add_control_predecessor(before)
        for after in i.control_successors:
            if after not in members:
                after.add_control_predecessor(made)
        i.drop_control_edges()


def _body(module: Module, starts: list[Instruction]) -> Computation:
    """The computation that begins all: their operands are its parameters, its value is a tuple of theirs."""
    body = Computation("send_recv_group")
    made: list[Instruction] = []
    for i in starts:
        at = len(body.parameters)
        given = [body.add_parameter(at + n, o.shape, "operand") for n, o in enumerate(i.operands)]
        made.append(body.attach(i.clone(given)))
    body.root = body.add("tuple", made)
    module.add_computation(body)
    return body

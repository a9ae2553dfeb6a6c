"""Candidate orders for memory-scheduler: depth-first by weight, and greedy by bytes freed."""

from __future__ import annotations

import heapq

from heron.analysis.dataflow import TRANSPARENT
from heron.analysis.ordering import post_order
from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.passes.schedule.peak import Costs


def plain_order(c: Computation, cost: Costs) -> list[Instruction]:
    """Operands just before their use, in operand order."""
    return post_order(c, {})


def dfs_order(c: Computation, cost: Costs) -> list[Instruction]:
    """Depth first, the operand with the largest subgraph first: what it needs is gone when the others begin."""
    weight: dict[Instruction, int] = {}
    for i in post_order(c, {}):
        below = sum(weight[o] for o in i.walk_operands())
        weight[i] = min(1 + cost.makes[i] + below, 1 << 60)  # shared subgraphs count again: only an estimate
    done: dict[Instruction, None] = dict.fromkeys(c.parameters)
    starts = sorted((i for i in c.instructions if not i.users and i is not c.root), key=lambda i: -weight[i])
    for start in [*starts, c.root, *c.instructions]:
        stack = [start]
        while stack:
            i = stack[-1]
            waiting = [] if i in done else [o for o in i.walk_operands() if o not in done]
            if waiting:
                waiting.sort(key=lambda o: weight[o])
                stack.extend(waiting)
                continue
            stack.pop()
            done[i] = None
    order = list(done)
    if order[-1] is not c.root and not c.root.users and not c.root.control_successors:
        order.remove(c.root)
        order.append(c.root)
    return order


def list_order(c: Computation, cost: Costs) -> list[Instruction]:
    """Of the instructions that are ready, always the one that frees the most bytes over what it makes."""
    position = {i: n for n, i in enumerate(post_order(c, {}))}
    waiting: dict[Instruction, int] = {}
    for i in c.instructions:
        waiting[i] = len(set(i.walk_operands()))
    left = dict(cost.readers)
    reading: dict[object, list[Instruction]] = {}
    for i, values in cost.reads.items():
        for v in values:
            reading.setdefault(v, []).append(i)

    def gain(i: Instruction) -> int:
        freed = sum(cost.frees.get(v, 0) for v in cost.reads[i] if left[v] == 1)
        return freed - cost.makes[i]

    ready: list[tuple[int, int, Instruction]] = []
    best: dict[Instruction, int] = {}

    def push(i: Instruction) -> None:
        best[i] = value = gain(i)
        heapq.heappush(ready, (-value, position[i], i))

    for i, count in waiting.items():
        if not count:
            push(i)
    order: list[Instruction] = []
    done: set[Instruction] = set()
    while ready:
        value, _, i = heapq.heappop(ready)
        if i in done or -value != best[i]:
            continue
        done.add(i)
        order.append(i)
        for v in cost.reads[i]:
            left[v] -= 1
            if left[v] == 1:  # its last reader frees it now
                for reader in reading[v]:
                    if reader in best and reader not in done:
                        push(reader)
        for after in {**i.users, **dict.fromkeys(i.control_successors)}:
            waiting[after] -= 1
            if not waiting[after]:
                push(after)
    if order and order[-1] is not c.root and not c.root.users and not c.root.control_successors:
        order.remove(c.root)
        order.append(c.root)
    return order


def eager(order: list[Instruction], cost: Costs) -> list[Instruction]:
    """`order` with instructions that free at least what they make moved up to where that becomes so."""
    waiting = {i: len(set(i.walk_operands())) for i in order}
    left = dict(cost.readers)
    reading: dict[object, list[Instruction]] = {}
    for i, values in cost.reads.items():
        for v in values:
            reading.setdefault(v, []).append(i)
    done: dict[Instruction, None] = {}
    last = order[-1]

    def pays(i: Instruction) -> bool:
        if i in done or waiting[i] or i is last:
            return False
        makes = cost.makes[i]
        if i.opcode in TRANSPARENT:
            return True
        return sum(cost.frees.get(v, 0) for v in cost.reads[i] if left[v] == 1) >= max(makes, 1)

    for start in order:
        if start in done:
            continue
        run = [start]
        while run:
            i = run.pop()
            if i in done or (i is not start and not pays(i)):
                continue
            done[i] = None
            for v in cost.reads[i]:
                left[v] -= 1
                if left[v] == 1:
                    run += [r for r in reading[v] if pays(r)]
            for after in {**i.users, **dict.fromkeys(i.control_successors)}:
                waiting[after] -= 1
                if pays(after):
                    run.append(after)
    return list(done)

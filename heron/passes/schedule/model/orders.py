"""Candidate orders for memory-scheduler: depth-first by weight, greedy by bytes freed, as given; frees first; late."""

from __future__ import annotations

import heapq

from heron.passes.schedule.model.groups import Groups
from heron.passes.schedule.model.steps import Steps


def post_order(groups: Groups) -> list[int]:
    """Each group as soon as what it needs is there, in the order given."""
    done = [False] * len(groups)
    order: list[int] = []
    for start in range(len(groups)):
        stack = [start]
        while stack:
            g = stack[-1]
            waiting = [] if done[g] else [b for b in groups.before[g] if not done[b]]
            if waiting:
                stack += sorted(waiting, reverse=True)
                continue
            stack.pop()
            if not done[g]:
                done[g] = True
                order.append(g)
    return order


def dfs_order(groups: Groups) -> list[int]:
    """Depth first, the operand with the largest subgraph first: what it needs is gone when the others begin."""
    order = post_order(groups)
    weight = [0] * len(groups)
    for g in order:  # shared subgraphs count again: only an estimate
        below = sum(weight[b] for b in groups.before[g])
        weight[g] = min(1 + max(0, groups.hump[g]) + below, 1 << 60)
    starts = sorted((g for g in order if not groups.after[g]), key=lambda g: -weight[g])
    done = [False] * len(groups)
    found: list[int] = []
    for start in starts:
        stack = [start]
        while stack:
            g = stack[-1]
            waiting = [] if done[g] else [b for b in groups.before[g] if not done[b]]
            if waiting:
                waiting.sort(key=lambda b: (weight[b], -b))
                stack += waiting
                continue
            stack.pop()
            if not done[g]:
                done[g] = True
                found.append(g)
    return found


def list_order(groups: Groups) -> list[int]:
    """Of the groups that are ready, always the one that frees the most bytes over what it makes."""
    position = {g: n for n, g in enumerate(post_order(groups))}
    waiting = [len(b) for b in groups.before]
    left, frees, reads = groups.readers.copy(), groups.frees, groups.reads
    reading = _reading(groups)
    ready: list[tuple[int, int, int]] = []
    best: dict[int, int] = {}

    def push(g: int) -> None:
        best[g] = value = groups.makes[g] - sum([frees[v] for v in reads[g] if left[v] == 1])
        heapq.heappush(ready, (value, position[g], g))

    for g, count in enumerate(waiting):
        if not count:
            push(g)
    order: list[int] = []
    done = [False] * len(groups)
    while ready:
        value, _, g = heapq.heappop(ready)
        if done[g] or value != best[g]:
            continue
        done[g] = True
        order.append(g)
        for v in reads[g]:
            left[v] -= 1
            if left[v] == 1 and frees[v]:  # its last reader frees it now
                for r in reading[v]:
                    if not done[r] and not waiting[r]:
                        push(r)
        for a in groups.after[g]:
            waiting[a] -= 1
            if not waiting[a]:
                push(a)
    return order


def eager(groups: Groups, order: list[int]) -> list[int]:
    """`order` with groups that free at least what they make moved up to where that becomes so."""
    waiting = [len(b) for b in groups.before]
    left, frees, reads, makes = groups.readers.copy(), groups.frees, groups.reads, groups.makes
    reading = _reading(groups)
    done = [False] * len(groups)
    found: list[int] = []

    def pays(g: int) -> bool:
        if done[g] or waiting[g]:
            return False
        freed = sum([frees[v] for v in reads[g] if left[v] == 1])
        return freed >= makes[g] and (freed > 0 or not groups.hump[g])

    for start in order:
        if done[start]:
            continue
        run = [start]
        while run:
            g = run.pop()
            if done[g] or (g != start and not pays(g)):
                continue
            done[g] = True
            found.append(g)
            for v in reads[g]:
                left[v] -= 1
                if left[v] == 1 and frees[v]:
                    run += [r for r in reading[v] if not done[r] and not waiting[r]]
            for a in groups.after[g]:
                waiting[a] -= 1
                if not waiting[a]:
                    run.append(a)
    return found


def late(steps: Steps, order: list[int]) -> list[int]:
    """`order` with steps whose operands live on anyway moved down to just ahead of whoever needs them first.

    That holds nothing longer, and what they make is still in caches when it is read.
    """
    waits = {n for n in order if steps.after[n] and not any(steps.frees[v] for v in steps.reads[n])}
    found: dict[int, None] = {}
    for start in order:
        if start in waits:
            continue
        stack = [start]
        while stack:
            n = stack[-1]
            waiting = sorted([b for b in steps.before[n] if b in waits and b not in found], reverse=True)
            if waiting:
                stack += waiting
                continue
            stack.pop()
            found[n] = None
    return list(found)


def _reading(groups: Groups) -> list[list[int]]:
    """The groups that read each value."""
    found: list[list[int]] = [[] for _ in groups.readers]
    for g, values in enumerate(groups.reads):
        for v in values:
            found[v].append(g)
    return found

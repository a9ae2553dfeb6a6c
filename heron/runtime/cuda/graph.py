"""A section of a plan as a CUDA graph: built once, launched by one call, its nodes changed when addresses change."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from heron.records import dataclass
from heron.runtime.cuda.commands import Bases, Command
from heron.runtime.cuda.driver import CallFailed, Driver
from heron.runtime.cuda.plan import Node, Section
from heron.runtime.thunks import ConditionalThunk, WhileThunk
from heron.targets import libcuda


@dataclass(frozen=True, slots=True)
class Controls:
    """Commands that conditional nodes need, made by whoever has their kernels.

    Each takes a node's thunk and a handle: ``start`` begins a counted loop, ``go_on`` tells a loop whether there is a
    turn to come, ``choose`` a branch, by its number, whether it is the one.
    """

    start: Callable[[WhileThunk, int], Command]
    go_on: Callable[[WhileThunk, int], Command]
    choose: Callable[[ConditionalThunk, int, int], Command]


@dataclass(slots=True)
class Graph:
    """A graph ready to run. ``nodes``: its commands and their nodes, by what allocation each depends on."""

    driver: Driver
    handle: int
    execution: int
    by_allocation: dict[int, list[tuple[Command, int]]] = field(default_factory=dict)
    bases: list[int] = field(default_factory=list)

    def launch(self, stream: int) -> None:
        self.driver.cuGraphLaunch(self.execution, stream)

    def move(self, bases: Bases) -> int:
        """Give nodes the addresses that differ from those they have; how many were changed.

        Raises RUN042 when the driver refuses, which leaves the graph of no use.
        """
        moved: dict[int, tuple[Command, int]] = {}
        for allocation, commands in self.by_allocation.items():
            if bases[allocation] != self.bases[allocation]:
                moved.update((node, (command, node)) for command, node in commands)
        for command, node in moved.values():
            command.point(bases)
            command.update(self.execution, node)
        self.bases = list(bases)
        return len(moved)

    def close(self) -> None:
        """Give it back to the driver."""
        self.driver.cuGraphExecDestroy(self.execution)
        self.driver.cuGraphDestroy(self.handle)


class Builder:
    """Builds the graph of a section. ``command``: the command of a thunk without parts, pointed at its addresses."""

    def __init__(self, driver: Driver, context: int, command: Callable[[Any], Command], controls: Controls) -> None:
        self.driver, self.context, self.command, self.controls = driver, context, command, controls

    def build(self, section: Section, bases: Bases) -> Graph:
        """Raises RUN042 when the driver refuses; nothing is left behind then."""
        d = self.driver
        handle = d.handle(d.cuGraphCreate, 0)
        made = Graph(d, handle, 0, bases=list(bases))
        try:
            self._fill(handle, section, made)
            made.execution = d.handle(d.cuGraphInstantiateWithFlags, handle, 0)
        except CallFailed:
            d.cuGraphDestroy(handle)
            raise
        return made

    def _fill(self, graph: int, section: Section, made: Graph, behind: Sequence[int] = ()) -> list[int]:
        """Add a section's nodes to a graph, behind others of it; what to wait for then."""
        ends: list[int] = []
        for node in section.nodes:
            after = [ends[m] for m in node.after] or list(behind)
            if not node.parts:
                ends.append(self._add(graph, self.command(node.thunk), after, made))
            elif isinstance(node.thunk, WhileThunk):
                ends.append(self._loop(graph, node, after, made))
            else:
                ends.append(self._branches(graph, node, after, made))
        awaited = {m for node in section.nodes for m in node.after}
        return [end for n, end in enumerate(ends) if n not in awaited] or list(behind)

    def _add(self, graph: int, command: Command, after: Sequence[int], made: Graph) -> int:
        command.point(made.bases)
        node = command.add(graph, _array(after), len(after))
        for allocation in {s.allocation for s in command.slices}:
            made.by_allocation.setdefault(allocation, []).append((command, node))
        return node

    def _loop(self, graph: int, node: Node, after: Sequence[int], made: Graph) -> int:
        """A while node. A counted loop counts in its body, another one asks its condition.

        Its handle is set in front of it each time: inside another loop the driver does not do it.
        """
        loop = node.thunk
        assert isinstance(loop, WhileThunk)
        condition, body = (Section(()), *node.parts)[-2:]
        handle = self._handle(graph)
        go_on = self.controls.go_on(loop, handle)
        if loop.trips is None:
            behind = self._fill(graph, condition, made, after)
            behind = [self._add(graph, go_on, behind, made)]
        else:
            behind = [self._add(graph, self.controls.start(loop, handle), after, made)]
        end, inside = self._conditional(graph, libcuda.WHILE, handle, behind)
        last = self._fill(inside, condition, made, self._fill(inside, body, made))
        self._add(inside, go_on, last, made)
        return end

    def _branches(self, graph: int, node: Node, after: Sequence[int], made: Graph) -> int:
        """An if node for each branch. All are told first: a branch may write where the selector lies."""
        choice = node.thunk
        assert isinstance(choice, ConditionalThunk)
        handles = [self._handle(graph) for _ in node.parts]
        before = list(after)
        for n, handle in enumerate(handles):
            before = [self._add(graph, self.controls.choose(choice, n, handle), before, made)]
        for handle, part in zip(handles, node.parts, strict=True):
            end, inside = self._conditional(graph, libcuda.IF, handle, before)
            self._fill(inside, part, made)
            before = [end]
        return before[0]

    def _handle(self, graph: int) -> int:
        made = ctypes.c_uint64()
        flags = libcuda.ASSIGN_DEFAULT
        self.driver.cuGraphConditionalHandleCreate(ctypes.byref(made), graph, self.context, 0, flags)
        return made.value

    def _conditional(self, graph: int, kind: int, handle: int, after: Sequence[int]) -> tuple[int, int]:
        """A conditional node and the graph inside it, empty yet."""
        node = libcuda.Node(type=libcuda.NODE_CONDITIONAL)
        node.of.conditional = libcuda.ConditionalNode(handle, kind, 1, None, self.context)
        add, address = self.driver.cuGraphAddNode_v2, ctypes.addressof(node)
        made = self.driver.handle(add, graph, _array(after), None, len(after), address)
        inside = ctypes.cast(node.of.conditional.bodies, ctypes.POINTER(ctypes.c_void_p))
        return made, inside[0] or 0


def _array(nodes: Sequence[int]) -> Any:
    return (ctypes.c_void_p * len(nodes))(*nodes) if nodes else None

"""Streams, events and graphs of the rehearsed device: work waits until somebody waits for it, and runs in an order that
a program with a dependency missing does not survive."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Work = Callable[[], None]


@dataclass
class Event:
    """``stream`` and ``position``: the work it stands for; no stream when never recorded. ``time``: when it was done."""

    stream: Stream | None = None
    position: int = 0
    time: float = 0.0


@dataclass
class Stream:
    """Work in order, as many as ``begun`` of it run so far. ``capture``: the graph its work goes to instead;
    ``captured_by``: the thread that captures; ``spoiled``: it did what no capture survives."""

    queue: deque[Work] = field(default_factory=deque)
    begun: int = 0
    capture: Graph | None = None
    captured_by: int = 0
    spoiled: bool = False

    @property
    def position(self) -> int:
        """How much work there was up to now."""
        return self.begun + len(self.queue)

    def push(self, work: Work) -> None:
        self.queue.append(work)

    def wait_for(self, event: Event) -> None:
        """Nothing more runs before the work the event stands for now."""
        stream, position = event.stream, event.position
        if stream is not None:
            self.push(lambda: stream.run(position))

    def run(self, until: int | None = None) -> None:
        """Run work up to a position, all by default; of other streams only what it waits for."""
        end = self.position if until is None else until
        while self.begun < end and self.queue:
            self.begun += 1
            self.queue.popleft()()


@dataclass
class GraphNode:
    """``kind``: kernel, copy, library, child, if or while; ``data`` is its parameters; ``inner``: the graph inside."""

    kind: str
    data: tuple[object, ...]
    after: tuple[int, ...]
    inner: Graph | None = None


@dataclass
class Graph:
    """Nodes by their handles, in the order they were added."""

    nodes: dict[int, GraphNode] = field(default_factory=dict)

    def find(self, handle: int) -> GraphNode | None:
        """A node of it or of graphs inside it."""
        if handle in self.nodes:
            return self.nodes[handle]
        for node in self.nodes.values():
            found = node.inner.find(handle) if node.inner is not None else None
            if found is not None:
                return found
        return None

    def all(self) -> Iterator[GraphNode]:
        """Every node, those inside others too."""
        for node in list(self.nodes.values()):
            yield node
            if node.inner is not None:
                yield from node.inner.all()

    def copied(self) -> Graph:
        """A copy that later changes of this graph leave alone."""
        return Graph(
            {
                handle: GraphNode(n.kind, n.data, n.after, n.inner.copied() if n.inner is not None else None)
                for handle, n in self.nodes.items()
            }
        )

    def run(self, do: Callable[[GraphNode], None]) -> None:
        """Every node after those it waits for; among those that are ready the one added last goes first."""
        waiting = {h: {m for m in node.after if m in self.nodes} for h, node in self.nodes.items()}
        followers: dict[int, list[int]] = {}
        for h, before in waiting.items():
            for m in before:
                followers.setdefault(m, []).append(h)
        ready = [h for h, before in waiting.items() if not before]
        order = {h: n for n, h in enumerate(self.nodes)}
        ran = 0
        while ready:
            h = max(ready, key=order.__getitem__)
            ready.remove(h)
            do(self.nodes[h])
            ran += 1
            for f in followers.get(h, ()):
                waiting[f].discard(h)
                if not waiting[f]:
                    ready.append(f)
        assert ran == len(self.nodes), "the graph has a cycle"

    def count(self) -> int:
        """Nodes, those inside others too."""
        return sum(1 + (n.inner.count() if n.inner is not None else 0) for n in self.nodes.values())

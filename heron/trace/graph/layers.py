"""Places for the boxes of a graph: in layers, operands above their users, few crossings, nothing overlapping.

The usual way (Sugiyama): a layer by the longest path from above, an order within layers by the mean of the neighbours'
places, a few times down and up; then x by the same means, pushed apart. Linear in edges for each sweep.
"""

from __future__ import annotations

from heron.trace.graph.boxes import Box, Graph

LINE, CHARACTER = 14.0, 6.6  # of text, in pixels
PAD, GAP_X, GAP_Y, TITLE = 8.0, 16.0, 26.0, 16.0
_SWEEPS = 6


def place(graph: Graph) -> None:
    """Fill in the sizes and places of all boxes, innermost graphs first; places are relative to the graph's corner."""
    for box in graph.boxes:
        _size(box)
    above: dict[Box, list[Box]] = {b: [] for b in graph.boxes}
    below: dict[Box, list[Box]] = {b: [] for b in graph.boxes}
    for a, b in graph.edges:
        above[b].append(a)
        below[a].append(b)
    layers = _layers(graph.boxes, above, below)
    _order(layers, above, below)
    _spread(layers, above, below)
    y = 0.0
    for layer in layers:
        for box in layer:
            box.y = y
        y += max(b.height for b in layer) + GAP_Y
    left = min((b.x for b in graph.boxes), default=0.0)
    for box in graph.boxes:
        box.x -= left
    graph.width = max((b.x + b.width for b in graph.boxes), default=0.0)
    graph.height = max(0.0, y - GAP_Y)


def _size(box: Box) -> None:
    text = max(len(line) for line in box.lines) * CHARACTER
    box.height = len(box.lines) * LINE + PAD
    box.width = text + 2 * PAD
    if not box.inside:
        return
    for inner in box.inside:
        place(inner)
    box.width = max(box.width, sum(g.width for g in box.inside) + GAP_X * (len(box.inside) + 1))
    box.height += max(g.height for g in box.inside) + TITLE + 2 * PAD


def _layers(boxes: list[Box], above: dict[Box, list[Box]], below: dict[Box, list[Box]]) -> list[list[Box]]:
    """`boxes`, operands first, by layer; a box without operands is directly above its first user."""
    level: dict[Box, int] = {}
    for box in boxes:
        level[box] = max((level[a] + 1 for a in above[box]), default=0)
    for box in boxes:
        if not above[box] and below[box]:
            level[box] = max(0, min(level[b] for b in below[box]) - 1)
    layers: list[list[Box]] = [[] for _ in range(max(level.values(), default=-1) + 1)]
    for box in boxes:
        layers[level[box]].append(box)
    return [layer for layer in layers if layer]


def _order(layers: list[list[Box]], above: dict[Box, list[Box]], below: dict[Box, list[Box]]) -> None:
    """Sort every layer by the places of its neighbours."""
    at = {box: float(n) for layer in layers for n, box in enumerate(layer)}
    for sweep in range(_SWEEPS):
        near, path = (above, layers) if sweep % 2 == 0 else (below, layers[::-1])
        for layer in path:
            wish = {b: _mean([at[n] for n in near[b]], at[b]) for b in layer}
            layer.sort(key=wish.__getitem__)
            for n, box in enumerate(layer):
                at[box] = float(n)


def _spread(layers: list[list[Box]], above: dict[Box, list[Box]], below: dict[Box, list[Box]]) -> None:
    """Give x: each box under the middle of its neighbours as far as its layer has room, the order kept."""
    for layer in layers:
        x = 0.0
        for box in layer:
            box.x, x = x, x + box.width + GAP_X
    for sweep in range(_SWEEPS):
        near, path = (above, layers) if sweep % 2 == 0 else (below, layers[::-1])
        for layer in path:
            wishes = [_mean([n.x + n.width / 2 for n in near[b]], b.x + b.width / 2) - b.width / 2 for b in layer]
            _push_apart(layer, wishes)


def _push_apart(layer: list[Box], wishes: list[float]) -> None:
    """Place a layer as near to its wishes as order and gaps allow: the mean of leftmost and rightmost placing."""
    right: list[float] = []
    for wish, before in zip(wishes, [None, *layer[:-1]], strict=True):
        least = right[-1] + before.width + GAP_X if before is not None else wish
        right.append(max(wish, least))
    left = [0.0] * len(layer)
    for n in range(len(layer) - 1, -1, -1):
        most = left[n + 1] - layer[n].width - GAP_X if n + 1 < len(layer) else wishes[n]
        left[n] = min(wishes[n], most)
    for box, a, b in zip(layer, left, right, strict=True):
        box.x = (a + b) / 2


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise

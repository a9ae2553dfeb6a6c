"""A placed graph as SVG, and as an HTML page with zoom and search."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from heron.trace.graph.boxes import Box, Graph
from heron.trace.graph.layers import GAP_X, LINE, PAD, TITLE, place

#: fill by op; outlines and the opcode in the label say the same without colour
_FILLS = {
    "parameter": "#ffe8a3", "constant": "#eeeeee", "dot": "#f4b6b6", "convolution": "#f4b6b6", "custom-call": "#f4b6b6",
    "reduce": "#cfe3c8", "scatter": "#cfe3c8", "reduce-window": "#cfe3c8", "sort": "#cfe3c8", "copy": "#f8cf9c",
    "fusion": "#dbe7f5", "while": "#ece0f6", "conditional": "#ece0f6", "call": "#ece0f6", "tuple": "#f4f4f4",
    "get-tuple-element": "#f4f4f4",
}  # fmt: skip

#: side of a mark
MARK = 8

_STYLE = (
    "text{font:11px ui-monospace,monospace;fill:#1d1d1f}path{fill:none;stroke:#70757d;stroke-width:1}"
    "rect{stroke:#9aa0a6;stroke-width:1}.root{stroke:#000;stroke-width:2}.chosen{stroke:#c1121f;stroke-width:3}"
)


def svg(graph: Graph, chosen: str = "") -> str:
    """The picture; the box named `chosen` has a red edge. Every box's title has its whole HLO line."""
    place(graph)
    width, height = graph.width + 2 * GAP_X, graph.height + 2 * GAP_X
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}"><title>{escape(graph.title)}</title><style>{_STYLE}</style>',
        '<defs><marker id="a" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0 0L6 3L0 6z" style="fill:#70757d;stroke:none"/></marker></defs>',
        *_graph(graph, GAP_X, GAP_X, chosen),
        "</svg>",
    ]
    return "\n".join(out) + "\n"


def html(graph: Graph, chosen: str = "") -> str:
    """The picture in a page of its own: drag to move, wheel to zoom, a field that finds boxes by name."""
    return _PAGE.replace("TITLE", escape(graph.title)).replace("PICTURE", svg(graph, chosen))


def _graph(graph: Graph, x: float, y: float, chosen: str) -> Iterator[str]:
    heads = _ports(graph, 1, 0)
    feet = _ports(graph, 0, 1)
    for edge in graph.edges:
        yield _edge(edge, x + feet[edge], x + heads[edge], y)
    for box in graph.boxes:
        yield from _box(box, x, y, chosen)


def _ports(graph: Graph, end: int, other: int) -> dict[tuple[Box, Box], float]:
    """The point at which each edge meets its box: side by side, in the order of the boxes at the other ends."""
    meeting: dict[Box, list[tuple[Box, Box]]] = {}
    for edge in graph.edges:
        meeting.setdefault(edge[end], []).append(edge)
    found: dict[tuple[Box, Box], float] = {}
    for box, edges in meeting.items():
        edges.sort(key=lambda e: e[other].x + e[other].width / 2)
        for n, edge in enumerate(edges):
            found[edge] = box.x + box.width * (n + 1) / (len(edges) + 1)
    return found


def _edge(edge: tuple[Box, Box], x1: float, x2: float, y: float) -> str:
    """From the foot of one box to the head of the other, upright at both ends."""
    y1, y2 = y + edge[0].y + edge[0].height, y + edge[1].y
    bend = max(10.0, (y2 - y1) / 2)
    return (
        f'<path d="M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2:.1f}" '
        'marker-end="url(#a)"/>'
    )


def _box(box: Box, x: float, y: float, chosen: str) -> Iterator[str]:
    left, top = x + box.x, y + box.y
    i = box.instruction
    mark = "chosen" if box.name == chosen else "root" if i is not None and i.is_root else ""
    fill = _FILLS.get(box.kind, "#ffffff")
    yield (
        f'<g data-name="{escape(box.name)}"><rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="3" fill="{fill}"' + (f' class="{mark}"' if mark else "") + ">"
        f"<title>{escape(str(i)) if i is not None else ''}</title></rect>"
    )
    for n, (colour, word) in enumerate(box.marks):
        yield (
            f'<rect x="{left + box.width - MARK * (n + 1):.1f}" y="{top:.1f}" width="{MARK}" height="{MARK}" '
            f'fill="{colour}"><title>{escape(word)}</title></rect>'
        )
    for n, line in enumerate(box.lines):
        yield f'<text x="{left + PAD:.1f}" y="{top + PAD / 2 + LINE * (n + 0.8):.1f}">{escape(line)}</text>'
    at, down = left + GAP_X, top + len(box.lines) * LINE + PAD + TITLE
    for inner in box.inside:
        yield f'<text x="{at:.1f}" y="{down - 5:.1f}" font-style="italic">{escape(inner.title)}</text>'
        yield from _graph(inner, at, down, chosen)
        at += inner.width + GAP_X
    yield "</g>"


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>TITLE</title>
<style>body{margin:0;overflow:hidden;font:13px sans-serif}#find{position:fixed;top:8px;left:8px;padding:4px}
svg{cursor:grab;transform-origin:0 0}.found>rect{stroke:#c1121f;stroke-width:3}</style></head>
<body><input id="find" placeholder="find by name" aria-label="find by name"><div id="all">PICTURE</div>
<script>
const s = document.querySelector("#all svg"); let x = 0, y = 40, k = 1, from = null;
const show = () => { s.style.transform = `translate(${x}px,${y}px) scale(${k})`; };
addEventListener("wheel", e => { e.preventDefault(); const f = Math.exp(-e.deltaY / 500);
  x = e.clientX - (e.clientX - x) * f; y = e.clientY - (e.clientY - y) * f; k *= f; show(); }, {passive: false});
addEventListener("mousedown", e => { if (e.target.id !== "find") from = [e.clientX - x, e.clientY - y]; });
addEventListener("mousemove", e => { if (from) { x = e.clientX - from[0]; y = e.clientY - from[1]; show(); } });
addEventListener("mouseup", () => { from = null; });
document.getElementById("find").addEventListener("change", e => {
  document.querySelectorAll(".found").forEach(g => g.classList.remove("found"));
  const g = [...document.querySelectorAll("[data-name]")].find(g => g.dataset.name.includes(e.target.value));
  if (!g) return; g.classList.add("found"); const r = g.getBoundingClientRect();
  x += innerWidth / 2 - (r.left + r.width / 2); y += innerHeight / 2 - (r.top + r.height / 2); show(); });
show();
</script></body></html>
"""

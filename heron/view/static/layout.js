// Asks for places of a graph's boxes: the layout runs in a worker, whose script is a text of the page.

let worker = null;
let job = 0;

/**
 * Gives boxes their left, up, width and height, and edges their points, band by band; onband(done, total) after each.
 * first: the box to begin with. A later call ends an earlier one.
 */
export function arrange(graph, first, onband) {
  worker ??= new Worker(URL.createObjectURL(new Blob([document.getElementById("layout").textContent], { type: "text/javascript" })));
  const mine = ++job;
  worker.onmessage = ({ data }) => {
    if (data.job !== mine) return;
    take(graph, data, 0, 0);
    onband(data.done, data.total);
  };
  worker.postMessage({ job: mine, graph: sizes(graph), first: graph.boxes.indexOf(first) });
}

function sizes(graph) {
  graph.boxes.forEach((box, n) => (box.number = n));
  graph.byEnds = new Map(graph.edges.map((edge) => [`${edge.from.number} ${edge.to.number}`, edge]));
  return {
    boxes: graph.boxes.map((box) => ({
      width: Math.max(70, box.label.length * 7.2 + 18, box.detail.length * 6 + 18),
      height: box.detail ? 38 : 24,
      inside: box.inside.map(sizes),
    })),
    edges: graph.edges.map(({ from, to }) => [from.number, to.number]),
  };
}

function take(graph, { places, edges }, x, y) {
  for (const p of places) {
    const box = graph.boxes[p.box];
    Object.assign(box, { left: p.x + x, up: p.y + y, width: p.width, height: p.height });
    p.inside.forEach((inner, n) => take(box.inside[n], inner, box.left + inner.x, box.up + inner.y));
  }
  for (const [a, b, points] of edges) graph.byEnds.get(`${a} ${b}`).points = points.map(([px, py]) => [px + x, py + y]);
}

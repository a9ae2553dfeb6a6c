// Places for the boxes of a graph: in layers, operands above their users, few crossings, nothing overlapping.
// A box may hold a graph of its own. The steps are those of heron/trace/graph/layers.py, which draws pictures.

const GAP_X = 18;
const GAP_Y = 30;
const PAD = 12;
const TITLE = 22;
const SWEEPS = 6;
/** A box that reads so many is a collection of results, such as a tuple at the end: nothing is drawn towards it. */
const MANY = 16;
/** Neighbours that are more layers away do not pull. */
const REACH = 12;

/** Gives every box x, y, width, height relative to its graph's corner, and the graph width and height. */
export function arrange(graph) {
  const above = graph.boxes.map(() => []);
  const below = graph.boxes.map(() => []);
  graph.boxes.forEach((box, n) => {
    box.number = n;
    measure(box);
  });
  for (const [a, b] of graph.edges) {
    above[b.number].push(a);
    below[a.number].push(b);
  }
  const layers = layered(graph.boxes, above, below);
  keepNear(layers, above);
  keepNear(layers, below);
  order(layers, above, below);
  spread(layers, above, below);
  let y = 0;
  for (const layer of layers) {
    const height = Math.max(...layer.map((b) => b.height));
    for (const box of layer) box.y = y;
    y += height + GAP_Y;
  }
  const left = graph.boxes.reduce((x, b) => Math.min(x, b.x), Infinity);
  let width = 0;
  for (const box of graph.boxes) {
    box.x -= left;
    width = Math.max(width, box.x + box.width);
  }
  graph.width = width;
  graph.height = Math.max(0, y - GAP_Y);
  return graph;
}

function measure(box) {
  box.width = Math.max(70, box.label.length * 7.2 + 18, box.detail.length * 6 + 18);
  box.height = box.detail ? 38 : 24;
  if (!box.inside.length) return;
  let x = PAD;
  let tallest = 0;
  for (const graph of box.inside) {
    arrange(graph);
    graph.x = x;
    graph.y = box.height + TITLE - 14;
    x += graph.width + PAD;
    tallest = Math.max(tallest, graph.height);
  }
  box.width = Math.max(box.width, x);
  box.height += tallest + TITLE;
}

/** Boxes by layer: below all that they read, and right above their first reader unless that one reads very many. */
function layered(boxes, above, below) {
  const level = new Int32Array(boxes.length);
  for (const box of boxes) for (const a of above[box.number]) level[box.number] = Math.max(level[box.number], level[a.number] + 1);
  for (let n = boxes.length - 1; n >= 0; n--) {
    let first = Infinity;
    for (const b of below[n]) if (above[b.number].length < MANY) first = Math.min(first, level[b.number]);
    if (first < Infinity) level[n] = Math.max(level[n], first - 1);
  }
  const layers = [];
  for (const box of boxes) (layers[level[box.number]] ??= []).push(box);
  return layers.filter(Boolean);
}

/** Leave of the neighbours of every box those that are near, if any are. */
function keepNear(layers, neighbours) {
  const level = [];
  layers.forEach((layer, n) => layer.forEach((box) => (level[box.number] = n)));
  neighbours.forEach((boxes, n) => {
    const near = boxes.filter((b) => Math.abs(level[b.number] - level[n]) <= REACH);
    if (near.length) neighbours[n] = near;
  });
}

function order(layers, above, below) {
  const at = [];
  for (const layer of layers) layer.forEach((box, n) => (at[box.number] = n));
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    const near = down ? above : below;
    for (const layer of down ? layers : [...layers].reverse()) {
      const wish = new Map(layer.map((b) => [b, mean(near[b.number], (n) => at[n.number], at[b.number])]));
      layer.sort((a, b) => wish.get(a) - wish.get(b));
      layer.forEach((box, n) => (at[box.number] = n));
    }
  }
}

function spread(layers, above, below) {
  for (const layer of layers) {
    let x = 0;
    for (const box of layer) {
      box.x = x;
      x += box.width + GAP_X;
    }
  }
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0;
    const near = down ? above : below;
    for (const layer of down ? layers : [...layers].reverse()) {
      pushApart(layer, layer.map((b) => mean(near[b.number], (n) => n.x + n.width / 2, b.x + b.width / 2) - b.width / 2));
    }
  }
}

/** As near to the wishes as order and gaps allow: the mean of the leftmost and the rightmost placing. */
function pushApart(layer, wishes) {
  const right = [];
  layer.forEach((box, n) => {
    const least = n ? right[n - 1] + layer[n - 1].width + GAP_X : -Infinity;
    right.push(Math.max(wishes[n], least));
  });
  let next = Infinity;
  for (let n = layer.length - 1; n >= 0; n--) {
    const left = Math.min(wishes[n], next - layer[n].width - GAP_X);
    next = left;
    layer[n].x = (left + right[n]) / 2;
  }
}

function mean(boxes, value, otherwise) {
  if (!boxes.length) return otherwise;
  let sum = 0;
  for (const box of boxes) sum += value(box);
  return sum / boxes.length;
}

// Places for the boxes of a graph, operands above their readers: dagre's, in a thread beside the page's.
//
// dagre's time grows faster than the graph, and a graph of 10,000 boxes is looked at in parts anyway. A graph is therefore
// cut into bands of layers, a band into its connected parts, and dagre places one part at a time. The page learns of a band as soon
// as it has a place: the band of the chosen box first, then those below and above it.

/** A band has about so many boxes. */
const BAND = 60;
/** An edge across more layers than this pulls at nothing: a chain of unseen boxes would have to carry it. */
const REACH = 8;
/** Nor does one of a box with more readers or operands than this. */
const MANY = 24;
/** A band's parts stand side by side up to this width in pixels. */
const WIDE = 6000;
const GAP_X = 18;
const GAP_Y = 30;
const PAD = 12;
const TITLE = 22;

/** Parts that have been placed before, by their sizes and edges: opening a cluster leaves most of them as they are. */
const known = new Map();
let current = 0;

onmessage = ({ data: { job, graph, first } }) => {
  current = job;
  const cut = bandsOf(graph);
  const start = Math.max(0, cut.bands.findIndex((band) => band.includes(first)));
  const order = cut.bands.map((_, n) => n).sort((a, b) => away(a, start) - away(b, start));
  const placed = [];
  const next = (done) => {
    const band = order[done];
    if (job !== current || band === undefined) return;
    placed[band] = joined(cut, band, placed, placeBand(graph, cut, band));
    postMessage({ job, ...placed[band], done: done + 1, total: order.length });
    setTimeout(() => next(done + 1));
  };
  next(0);
};

/** Bands below are as near as those above, and come first. */
const away = (band, start) => (band >= start ? 2 * (band - start) : 2 * (start - band) + 1);

/** The layer of each box, the band of each box, bands as lists of boxes, and the edges that pull. */
function bandsOf({ boxes, edges }) {
  const readers = new Int32Array(boxes.length);
  const operands = new Int32Array(boxes.length);
  for (const [a, b] of edges) {
    readers[a]++;
    operands[b]++;
  }
  const level = layered(boxes.length, edges, operands);
  const pulls = edges.filter(([a, b]) => level[b] - level[a] <= REACH && readers[a] <= MANY && operands[b] <= MANY);
  const full = layersOf(boxes.length, level, pulls);
  const across = crossings(full, pulls);
  const of = new Int32Array(boxes.length);
  const bands = [];
  for (let n = 0; n < full.length; ) {
    const end = bandEnd(full, across, n);
    const band = full.slice(n, end).flat();
    for (const box of band) of[box] = bands.length;
    bands.push(band);
    n = end;
  }
  return { bands, of, pulls };
}

/** Lists of boxes, from the top: layers, but a small connected part is in one list, and a long list of such parts is several. */
function layersOf(count, level, pulls) {
  const layers = [];
  const at = (n) => (layers[n] ??= { boxes: [], parts: [] });
  const all = Array.from({ length: count }, (_, n) => n);
  for (const { boxes } of partsOf(all, pulls)) {
    if (boxes.length > BAND) for (const n of boxes) at(level[n]).boxes.push(n);
    else at(Math.min(...boxes.map((n) => level[n]))).parts.push(boxes);
  }
  return layers.filter(Boolean).flatMap(({ boxes, parts }) => {
    const lists = [boxes];
    for (const part of parts) {
      if (lists.at(-1).length + part.length > BAND) lists.push([]);
      lists.at(-1).push(...part);
    }
    return lists.filter((list) => list.length);
  });
}

/** Layers by number: below all operands, and right above the first reader unless that one collects many results. */
function layered(count, edges, operands) {
  const level = new Int32Array(count);
  const below = Array.from({ length: count }, () => []);
  for (const [a, b] of edges) {
    level[b] = Math.max(level[b], level[a] + 1);
    below[a].push(b);
  }
  for (let n = count - 1; n >= 0; n--) {
    let first = Infinity;
    for (const b of below[n]) if (operands[b] <= MANY || !operands[n]) first = Math.min(first, level[b]);
    if (first < Infinity) level[n] = Math.max(level[n], first - 1);
  }
  return level;
}

/** How many pulling edges cross the line below each layer. */
function crossings(layers, pulls) {
  const place = [];
  layers.forEach((layer, n) => layer.forEach((box) => (place[box] = n)));
  const across = new Int32Array(layers.length + 1);
  for (const [a, b] of pulls) for (let n = place[a]; n < place[b]; n++) across[n]++;
  return across;
}

/** The layer at which a band that begins at layer `start` ends: where fewest edges cross, at about the wanted size. */
function bandEnd(layers, across, start) {
  let best = -1;
  let size = 0;
  for (let n = start; n < layers.length; n++) {
    size += layers[n].length;
    if (best >= 0 && size > 1.5 * BAND) return best + 1;
    if (size >= BAND / 2 && (best < 0 || across[n] < across[best])) best = n;
  }
  return layers.length;
}

/** The parts of a band side by side, in rows of at most WIDE pixels. */
function placeBand(graph, { bands, of, pulls }, number) {
  const edges = pulls.filter(([a, b]) => of[a] === number && of[b] === number);
  const found = { places: [], edges: [], width: 0, height: 0 };
  let x = 0;
  let y = 0;
  for (const part of partsOf(bands[number], edges)) {
    const at = placePart(graph, part);
    if (x && x + at.width > WIDE) {
      x = 0;
      y = found.height + GAP_Y;
    }
    found.places.push(...at.places.map((p, n) => ({ ...p, box: part.boxes[n], x: p.x + x, y: p.y + y })));
    found.edges.push(...at.edges.map(([a, b, points]) => [part.boxes[a], part.boxes[b], points.map((p) => [p[0] + x, p[1] + y])]));
    found.width = Math.max(found.width, x + at.width);
    found.height = Math.max(found.height, y + at.height);
    x += at.width + GAP_X;
  }
  return found;
}

/** The connected parts of some boxes, in the order of their first boxes. */
function partsOf(boxes, edges) {
  const up = new Map(boxes.map((box) => [box, box]));
  const top = (box) => {
    while (up.get(box) !== box) box = up.get(box);
    return box;
  };
  for (const [a, b] of edges) {
    const [p, q] = [top(a), top(b)];
    if (p !== q) up.set(Math.max(p, q), Math.min(p, q));
  }
  const parts = new Map();
  for (const box of boxes) {
    const root = top(box);
    if (!parts.has(root)) parts.set(root, { boxes: [], edges: [] });
    parts.get(root).boxes.push(box);
  }
  for (const edge of edges) parts.get(top(edge[0])).edges.push(edge);
  return [...parts.values()].sort((a, b) => a.boxes[0] - b.boxes[0]);
}

/** Places of a connected part's boxes, as numbered in it. */
function placePart(graph, { boxes, edges }) {
  const sized = boxes.map((n) => sizeOf(graph.boxes[n]));
  const number = new Map(boxes.map((box, n) => [box, n]));
  const local = edges.map(([a, b]) => [number.get(a), number.get(b)]);
  const key = JSON.stringify([sized.map((s) => [s.width, s.height]), local]);
  if (!known.has(key)) known.set(key, byDagre(sized, local));
  const { width, height, corners, routes } = known.get(key);
  return { width, height, places: sized.map((s, n) => ({ ...s, ...corners[n] })), edges: routes };
}

function byDagre(sized, edges) {
  const g = new dagre.Graph();
  g.setGraph({ ranker: "tight-tree", nodesep: GAP_X, ranksep: GAP_Y });
  g.setDefaultEdgeLabel(() => ({}));
  sized.forEach(({ width, height }, n) => g.setNode(String(n), { width, height }));
  for (const [a, b] of edges) g.setEdge(String(a), String(b));
  dagre.layout(g);
  const corners = sized.map(({ width, height }, n) => {
    const { x, y } = g.node(String(n));
    return { x: x - width / 2, y: y - height / 2 };
  });
  const routes = edges.map(([a, b]) => [a, b, g.edge(String(a), String(b)).points.map((p) => [p.x, p.y])]);
  return { width: g.graph().width, height: g.graph().height, corners, routes };
}

/** A box with the graphs inside it: its size, and theirs side by side below its title. */
function sizeOf({ width, height, inside }) {
  if (!inside.length) return { width, height, inside: [] };
  let x = PAD;
  let tallest = 0;
  const placed = inside.map((graph) => {
    const whole = { ...placeWhole(graph), x, y: height + TITLE - 14 };
    x += whole.width + PAD;
    tallest = Math.max(tallest, whole.height);
    return whole;
  });
  return { width: Math.max(width, x), height: height + tallest + TITLE, inside: placed };
}

/** All bands of a graph below each other. */
function placeWhole(graph) {
  const cut = bandsOf(graph);
  const placed = [];
  for (let n = 0; n < cut.bands.length; n++) placed[n] = joined(cut, n, placed, placeBand(graph, cut, n));
  const left = Math.min(...placed.map((b) => b.left), Infinity);
  const found = { places: [], edges: [], width: 0, height: 0 };
  for (const band of placed) {
    for (const p of band.places) found.places.push({ ...p, x: p.x - left });
    for (const [a, b, points] of band.edges) found.edges.push([a, b, points.map(([x, y]) => [x - left, y])]);
    found.width = Math.max(found.width, band.left + band.width - left);
    found.height = Math.max(found.height, band.top + band.height);
  }
  return found;
}

/** A band moved to its place beside a neighbour that has one: its boxes near those which they read or are read by. */
function joined({ pulls }, number, placed, band) {
  const isBelow = placed[number - 1] !== undefined;
  const beside = placed[isBelow ? number - 1 : number + 1];
  const top = !beside ? 0 : isBelow ? beside.top + beside.height + GAP_Y : beside.top - band.height - GAP_Y;
  const left = beside ? shift(pulls, beside, band) : 0;
  const move = (p) => ({ ...p, x: p.x + left, y: p.y + top });
  const edges = band.edges.map(([a, b, points]) => [a, b, points.map(([x, y]) => [x + left, y + top])]);
  return { left, top, width: band.width, height: band.height, places: band.places.map(move), edges };
}

/** How far right a band goes: the median of what its edges to the neighbour wish for. */
function shift(pulls, beside, band) {
  const middles = (b) => new Map(b.places.map((p) => [p.box, p.x + p.width / 2]));
  const [there, here] = [middles(beside), middles(band)];
  const wishes = [];
  for (const [a, b] of pulls) {
    if (there.has(a) && here.has(b)) wishes.push(there.get(a) - here.get(b));
    else if (there.has(b) && here.has(a)) wishes.push(there.get(b) - here.get(a));
  }
  if (!wishes.length) return beside.left + (beside.width - band.width) / 2;
  return wishes.sort((a, b) => a - b)[wishes.length >> 1];
}

// dagre's layout and the graph it takes, under one global name.
export { Graph, layout } from "@dagrejs/dagre";

/**
 * Runs beside the page: places nodes by dagre, so that the page never waits for a layout.
 *
 * A classic script, because a worker made from a Blob has no modules to import. The layout
 * library stands before it in the same text.
 */

/* global dagre */

/**
 * @param {{nodes: {id: string, width: number, height: number, parent: string|null}[],
 *          groups: {id: string, parent: string|null}[],
 *          edges: [string, string][]}} graph
 */
function layOut(graph) {
  const placed = new dagre.graphlib.Graph({ compound: graph.groups.length > 0 });
  const many = graph.nodes.length > 250;
  placed.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 34, edgesep: 8, marginx: 16, marginy: 16, ranker: many ? "longest-path" : "network-simplex" });
  placed.setDefaultEdgeLabel(() => ({}));
  for (const { id } of graph.groups) placed.setNode(id, {});
  for (const { id, width, height } of graph.nodes) placed.setNode(id, { width, height });
  for (const { id, parent } of [...graph.groups, ...graph.nodes]) if (parent !== null) placed.setParent(id, parent);
  for (const [from, to] of graph.edges) placed.setEdge(from, to);
  dagre.layout(placed);
  const box = (/** @type {string} */ id) => {
    const { x, y, width, height } = placed.node(id);
    return { id, x, y, width, height };
  };
  const { width, height } = placed.graph();
  return {
    width,
    height,
    nodes: graph.nodes.map(({ id }) => box(id)),
    groups: graph.groups.map(({ id }) => box(id)),
    edges: placed.edges().map((edge) => ({ from: edge.v, to: edge.w, points: placed.edge(edge).points })),
  };
}

if (typeof WorkerGlobalScope !== "undefined") {
  self.onmessage = ({ data }) => {
    try {
      self.postMessage({ number: data.number, placed: layOut(data.graph) });
    } catch (error) {
      self.postMessage({ number: data.number, error: String(error) });
    }
  };
} else {
  globalThis.veraxLayOut = layOut;
}

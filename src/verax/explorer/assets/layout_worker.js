/**
 * Runs beside the page: places nodes by dagre, so that the page never waits for a layout.
 *
 * A large graph is placed cluster by cluster, inner ones first: each is then a node of the
 * one around it. Laid out at once, each cluster would get a border at each rank, which is
 * more than the library can hold.
 *
 * A classic script, because a worker made from a Blob has no modules to import. The layout
 * library stands before it in the same text.
 */

/* global dagre */

const MANY = 250;
const SPACES = { rankdir: "TB", nodesep: 18, ranksep: 34, edgesep: 8, marginx: 16, marginy: 16 };
/** The room for the title of a cluster. */
const TITLE = 22;

/** @typedef {{id: string, x: number, y: number, width: number, height: number}} Box */
/** @typedef {{id: string, width: number, height: number, parent: string|null}} Sized */
/** @typedef {{nodes: Sized[], groups: {id: string, parent: string|null}[], edges: [string, string][]}} Drawing */

/** @param {Drawing} graph */
function layOut(graph) {
  return graph.groups.length && graph.nodes.length > MANY ? clusterByCluster(graph) : together(graph);
}

/** @param {Drawing} graph */
function together(graph) {
  const placed = new dagre.graphlib.Graph({ compound: graph.groups.length > 0 });
  const many = graph.nodes.length > MANY;
  placed.setGraph({ ...SPACES, ranker: many ? "longest-path" : "network-simplex" });
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

/** @param {Drawing} graph */
function clusterByCluster(graph) {
  const parents = new Map([...graph.groups, ...graph.nodes].map(({ id, parent }) => [id, parent]));
  const above = (/** @type {string} */ id) => {
    const found = [id];
    for (let home = parents.get(id); home; home = parents.get(home)) found.push(home);
    return found.reverse();
  };
  /** Edges between the items of each cluster, for those between what is inside them. @type {Map<string|null, Map<string, [string, string]>>} */
  const lifted = new Map();
  const lifts = graph.edges.map(([from, to]) => {
    const [left, right] = [above(from), above(to)];
    let at = 0;
    while (left[at] === right[at]) at++;
    const home = at ? left[at - 1] : null;
    const key = `${left[at]} ${right[at]}`;
    if (!lifted.has(home)) lifted.set(home, new Map());
    lifted.get(home)?.set(key, [left[at], right[at]]);
    return { from, to, home, key };
  });
  /** @type {Map<string|null, ReturnType<typeof together>>} */ const inner = new Map();
  const place = (/** @type {string|null} */ home) => {
    const groups = graph.groups.filter(({ parent }) => parent === home).map(({ id }) => {
      const { width, height } = place(id);
      return { id, width, height: height + TITLE, parent: null };
    });
    const nodes = graph.nodes.filter(({ parent }) => parent === home).map((node) => ({ ...node, parent: null }));
    const placed = together({ nodes: [...groups, ...nodes], groups: [], edges: [...(lifted.get(home)?.values() ?? [])] });
    inner.set(home, placed);
    return placed;
  };
  const { width, height } = place(null);
  /** @type {Map<string, Box>} */ const boxes = new Map();
  /** @type {Map<string|null, [number, number]>} */ const origins = new Map([[null, [0, 0]]]);
  const settle = (/** @type {string|null} */ home) => {
    const [left, top] = origins.get(home) ?? [0, 0];
    for (const box of inner.get(home)?.nodes ?? []) {
      const moved = { ...box, x: box.x + left, y: box.y + top };
      boxes.set(box.id, moved);
      if (!inner.has(box.id)) continue;
      origins.set(box.id, [moved.x - box.width / 2, moved.y - box.height / 2 + TITLE]);
      settle(box.id);
    }
  };
  settle(null);
  const between = new Map(
    [...inner].flatMap(([home, placed]) => placed.edges.map(({ from, to, points }) => [`${home} ${from} ${to}`, points])),
  );
  const edges = lifts.map(({ from, to, home, key }) => {
    const [left, top] = origins.get(home) ?? [0, 0];
    const [first, last] = [boxes.get(from), boxes.get(to)].map((box) => /** @type {Box} */ (box));
    const inside = (between.get(`${home} ${key}`) ?? []).slice(1, -1);
    const middle = inside.map((/** @type {{x: number, y: number}} */ point) => ({ x: point.x + left, y: point.y + top }));
    const points = [{ x: first.x, y: first.y + first.height / 2 }, ...middle, { x: last.x, y: last.y - last.height / 2 }];
    return { from, to, points };
  });
  const found = (/** @type {{id: string}[]} */ items) => items.map(({ id }) => boxes.get(id));
  return { width, height, nodes: found(graph.nodes), groups: found(graph.groups), edges };
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

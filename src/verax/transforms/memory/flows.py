"""Floor 3: minimum cuts of graphs, by the greatest flow from node 0 to node 1.

Large graphs are cut by SciPy, whose part for graphs takes a third of a second to load;
small ones, as of the body of a loop, by augmenting shortest paths (Edmonds and Karp
1972), a few milliseconds::

    source_side(3, [0, 2], [2, 1], [5.0, 3.0])     # node 0, and 2, from which 3 flow on
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from verax.rules.rows.row import NDArray

# Edges of graphs for which SciPy is not loaded.
SMALL: Final = 600

# SciPy's capacities are 32-bit integers: the sum of finite ones, and what is more.
LIMIT: Final = 2**30
WITHOUT_LIMIT: Final = 2**31 - 1


def source_side(
    count: int, rows: NDArray, columns: NDArray, weights: NDArray
) -> NDArray:
    """A mask of the nodes on the side of node 0 in a minimum cut from node 1.

    They are those that node 0 reaches through the capacity that a greatest flow leaves,
    so of all minimum cuts it is the one nearest to node 0. There are `count` nodes; the
    edges go from `rows` to `columns`, and their weights may be infinite.
    """
    finite = float(weights[np.isfinite(weights)].sum())
    scale = LIMIT / finite if finite > 0 else 1.0
    scaled = np.where(np.isfinite(weights), weights * scale, WITHOUT_LIMIT)
    whole = np.ceil(scaled).astype(np.int64)
    cut = by_paths if len(rows) <= SMALL else by_scipy
    return cut(count, rows, columns, whole)


def by_scipy(count: int, rows: NDArray, columns: NDArray, weights: NDArray) -> NDArray:
    """The same, by SciPy."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    given = (weights.astype(np.int32), (rows, columns))
    capacity = csr_array(given, shape=(count, count))
    left = capacity - maximum_flow(capacity, 0, 1).flow
    left.eliminate_zeros()
    near = np.zeros(count, bool)
    near[breadth_first_order(left, 0, return_predecessors=False)] = True
    return near


def by_paths(
    count: int,
    rows: Sequence[int] | NDArray,
    columns: Sequence[int] | NDArray,
    weights: Sequence[int] | NDArray,
) -> NDArray:
    """The same, by augmenting shortest paths."""
    left: list[dict[int, int]] = [{} for _ in range(count)]
    for row, column, weight in zip(
        map(int, rows), map(int, columns), map(int, weights), strict=True
    ):
        left[row][column] = left[row].get(column, 0) + weight
        left[column].setdefault(row, 0)
    while True:
        before = {0: 0}
        queue = [0]
        for node in queue:
            for other, room in left[node].items():
                if room > 0 and other not in before:
                    before[other] = node
                    queue.append(other)
            if 1 in before:
                break
        else:
            near = np.zeros(count, bool)
            near[queue] = True
            return near
        path = [1]
        while path[-1]:
            path.append(before[path[-1]])
        steps = list(zip(path[1:], path, strict=False))
        most = min([left[a][b] for a, b in steps])
        for a, b in steps:
            left[a][b] -= most
            left[b][a] += most

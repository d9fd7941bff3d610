"""Floor 3: the best choice within a budget, exactly, for programs of few steps.

Prices lead to the lower hull of work over memory only; between its corners lie choices
that fit a budget better. With x for values that are needed, y for steps that run again
and k for values that are kept, they are the points of an integer program::

    least work . y    where bytes . k <= limit,  k >= x - y,  x >= y of each reader
"""

from math import isfinite
from typing import Final

import numpy as np

from verax.ir.jaxpr import Var
from verax.transforms.memory.crossing import Graph

# Nodes of graphs that are solved exactly, and the seconds that may take.
FEW: Final = 400
SECONDS: Final = 2.0


def within(graph: Graph, limit: int) -> frozenset[Var]:
    """The values to keep in at most so many bytes: the best ones of small graphs."""
    best = best_within(graph, limit) if graph.count <= FEW else None
    return graph.within(limit) if best is None else best


def best_within(graph: Graph, limit: int) -> frozenset[Var] | None:
    """The values to keep in at most so many bytes for the least work.

    None if there are none, or if they were not found in time.
    """
    if not graph.values:
        return frozenset()
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    values, runs = list(graph.values), sorted(set(graph.runs.values()))
    place = {graph.values[v]: i for i, v in enumerate(values)}
    step = {run: len(values) + i for i, run in enumerate(runs)}
    kept = len(values) + len(runs)
    count = kept + len(values)
    low, high, work = np.zeros(count), np.ones(count), np.zeros(count)
    rows: list[tuple[dict[int, float], float]] = []
    sizes: dict[int, float] = {}
    for row, column, size, cost, _ in zip(*graph.arrays, strict=True):
        if row == 0:
            low[place[column]] = 1.0
        elif row in step and column == 1:
            work[step[row]] = cost if isfinite(cost) else 0.0
            high[step[row]] = 1.0 if isfinite(cost) else 0.0
        elif row in step:
            rows.append(({place[column]: 1.0, step[row]: -1.0}, 0.0))
        else:
            k = kept + place[row]
            sizes[k] = float(size)
            again = {} if column == 1 else {step[column]: 1.0}
            rows.append(({k: 1.0, place[row]: -1.0, **again}, 0.0))
    entries = [(i, j, w) for i, (line, _) in enumerate(rows) for j, w in line.items()]
    i, j, w = zip(*entries, strict=True) if entries else ((), (), ())
    ordered = coo_array((w, (i, j)), shape=(len(rows), count)).tocsr()
    held = np.zeros((1, count))
    held[0, list(sizes)] = list(sizes.values())
    solution = milp(
        work / max(work.max(initial=0.0), 1.0),
        integrality=np.ones(count),
        bounds=Bounds(low, high),
        constraints=[
            LinearConstraint(ordered, 0.0, np.inf),
            LinearConstraint(held / max(limit, 1), -np.inf, 1.0 if limit else 0.0),
        ],
        options={"time_limit": SECONDS, "mip_rel_gap": 1e-9},
    )
    if solution.status != 0:
        return None
    return frozenset([v for n, v in enumerate(values) if solution.x[kept + n] > 0.5])

"""How often a primitive is computed, by the interpreter under a table of its own.

One idea: a table is a value, so counting is a row whose evaluation counts::

    count, outs = evaluations(sin_p, verax.grad(f), x)
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import evolve

import verax
from verax.api.tracing.apply import ENGINE
from verax.ir.dtypes import stored_dtype
from verax.ir.walk import close
from verax.rules.rows.row import Engine, NDArray, Row, RuleTable
from verax.transforms.engine.engine import StandardEngine


def evaluations(row: Row[Any], fun: Callable[..., Any], *args: Any) -> tuple[int, Any]:
    """How often `row` is evaluated in `fun(*args)`, and the results, flat."""
    calls = []

    def counted(engine: Engine, p: Any, xs: Sequence[NDArray]) -> Sequence[NDArray]:
        calls.append(p)
        assert row.evaluate is not None
        return row.evaluate(engine, p, xs)

    jaxpr = close(verax.make_jaxpr(fun)(*args))
    slim, needed = ENGINE.dce(jaxpr, (True,) * len(jaxpr.outvars))
    table = RuleTable() | {row: evolve(row, evaluate=counted)}
    leaves = verax.tree_util.tree_leaves(args)
    given = [np.asarray(x) for x, flag in zip(leaves, needed, strict=True) if flag]
    typed = [
        x.astype(stored_dtype(a.dtype))
        for x, a in zip(given, slim.in_avals, strict=True)
    ]
    actual = StandardEngine(table, ENGINE.core).evaluate(slim, typed)
    return len(calls), actual

"""Cases of running: cached jit calls, eager operations, eager transformations.

The idea: each entry is an expression with its arguments made beforehand, called in a
loop as a user's program would call it.

    _eager(load("verax"))["add"]()  # one eager 8x8 addition
"""

import itertools
from collections.abc import Callable
from functools import partial, reduce
from operator import add
from typing import Any

import numpy

from . import programs
from .case import Case, Goal
from .measure import Looped, Work
from .namespace import Namespace, Scale, block

type Calls = dict[str, Callable[[], object]]

UFUNC, SHAPE, INDEX = Goal(0.5, 0.3), Goal(0.2, 0.1), Goal(0.1, 0.05)
FRESH, LARGE = Goal(None, 0.1), Goal(None, 1.0)
COMPOSITION = Goal(None, 0.5)
ONE_ARRAY, MANY_ARRAYS = Goal(1.5, 1.0), Goal(1.25, 1.0)


def _ufuncs(ns: Namespace, scale: Scale) -> Calls:
    np, x, y = ns.numpy, ns.array(8, 8), ns.array(8, 8, seed=1)
    return {
        "add": lambda: np.add(x, y),
        "operator_add": lambda: x + y,
        "operator_add_literal": lambda: x + 1.0,
        "lax_add": lambda: ns.lax.add(x, y),
        "sin": lambda: np.sin(x),
        "less": lambda: x < y,
        "where": lambda: np.where(x, x, y),
        "sum": lambda: np.sum(x),
        "mean_axis": lambda: np.mean(x, axis=0),
        "matmul": lambda: x @ y,
        "softmax": lambda: ns.nn.softmax(x),
    }


def _shapes(ns: Namespace, scale: Scale) -> Calls:
    np, x, y = ns.numpy, ns.array(8, 8), ns.array(8, 8, seed=1)
    return {
        "reshape": lambda: np.reshape(x, (4, 16)),
        "transpose": lambda: x.T,
        "slice": lambda: x[1:5, ::2],
        "concatenate": lambda: np.concatenate([x, y]),
        "expand_dims": lambda: x[:, None],
    }


def _indices(ns: Namespace, scale: Scale) -> Calls:
    np, x, y = ns.numpy, ns.array(8, 8), ns.array(8, 8, seed=1)
    index = np.asarray([1, 3, 5])
    return {
        "index_integer": lambda: x[3],
        "index_array": lambda: x[index],
        "at_set": lambda: x.at[3].set(1.0),
        "at_add_array": lambda: x.at[index].add(1.0),
        "einsum": lambda: np.einsum("ij,jk->ik", x, y),
        "zeros": lambda: np.zeros((8, 8)),
        "arange": lambda: np.arange(8),
        "asarray_list": lambda: np.asarray([1.0, 2.0, 3.0]),
        "asarray_scalar": lambda: np.asarray(1.5),
        "device_put": partial(ns.api.device_put, numpy.ones(8, numpy.float32)),
    }


def _compositions(ns: Namespace, scale: Scale) -> Calls:
    np, x, y = ns.numpy, ns.array(8, 8), ns.array(8, 8, seed=1)
    vector, line = ns.array(8), np.sort(ns.array(64))
    order = np.argsort(x, axis=1)
    return {
        "det": lambda: np.linalg.det(x),
        "inv": lambda: np.linalg.inv(x),
        "solve": lambda: np.linalg.solve(x, y),
        "polyval": lambda: np.polyval(vector, x),
        "quantile": lambda: np.quantile(x, 0.3),
        "median": lambda: np.median(x),
        "searchsorted": lambda: np.searchsorted(line, vector),
        "interp": lambda: np.interp(vector, line, line),
        "take_along_axis": lambda: np.take_along_axis(x, order, axis=1),
        "mean": lambda: np.mean(x),
    }


def _large(ns: Namespace, scale: Scale) -> Calls:
    np = ns.numpy
    x, y = ns.array(scale.elements), ns.array(scale.elements, seed=1)
    return {
        "add_large": lambda: block(np.add(x, y)),
        "sin_large": lambda: block(np.sin(x)),
        "sum_large": lambda: block(np.sum(x)),
    }


def _fresh(ns: Namespace, scale: Scale) -> Calls:
    np, grad, vmap = ns.numpy, ns.api.grad, ns.api.vmap
    x, batch = np.asarray(0.75), ns.array(8)
    forty, model = programs.scalars_operators(ns, 40), programs.mlp(ns, scale)
    return {
        "grad_x_sin_x": lambda: block(grad(lambda x: x * np.sin(x))(x)),
        "grad_40_scalars": lambda: block(grad(forty.fresh(ns.salt()))(x, x)),
        "grad_mlp": lambda: block(grad(model.fresh(ns.salt()))(*model.arguments)),
        "grad_grad_x_sin_x": lambda: block(grad(grad(lambda x: x * np.sin(x)))(x)),
        "vmap_x_sin_x": lambda: block(vmap(lambda x: x * np.sin(x))(batch)),
        "vmap_mlp": lambda: block(
            vmap(model.fresh(ns.salt()), in_axes=model.axes)(*model.batched)
        ),
    }


def _cached(ns: Namespace, scale: Scale) -> Calls:
    jit = ns.api.jit

    def total(*xs: Any) -> Any:
        return reduce(add, xs, 1.0)

    def call(count: int) -> Callable[[], object]:
        f, xs = jit(total), [ns.array(8, seed=i) for i in range(count)]
        return lambda: f(*xs)

    scalar, scaled = jit(lambda x: x * 2.0), jit(lambda d: {k: d[k] * 2.0 for k in d})
    single = numpy.float32(1.5)
    leaves = {f"k{i:02}": ns.array(8, seed=i) for i in range(20)}
    many = [ns.array(8, seed=i) for i in range(1000)]
    ends, tree = jit(lambda *xs: xs[0] + xs[-1]), dict(enumerate(many))
    pair = jit(lambda d: {**d, 0: d[0] * 2.0})
    host = numpy.ones(8, numpy.float32)
    power = jit(lambda x, n: x * n, static_argnums=1)
    named = jit(lambda x, n: x * n, static_argnames="n")
    counter = itertools.count(0.5)
    one, two = ns.array(8), ns.array(8, seed=1)
    product = jit(lambda x, y: x * y)
    ahead = product.lower(one, two).compile()
    ahead_named = product.lower(one, y=two).compile()
    of_pair, couple = jit(lambda xy: xy[0] * xy[1]), (one, two)
    used_up, state = jit(lambda x: x * 2.0, donate_argnums=0), [ns.array(8, seed=2)]

    def step() -> None:
        state[0] = used_up(state[0])

    return {
        "arrays_1": call(1),
        "arrays_10": call(10),
        "arrays_100": call(100),
        "arrays_1000": lambda: ends(*many),
        "new_scalar": lambda: scalar(next(counter)),
        "dict_1000": lambda: pair(tree),
        "static_argument": lambda: power(one, 3),
        "static_keyword": lambda: named(one, n=3),
        "keyword": lambda: product(one, y=two),
        "compiled": lambda: ahead(one, two),
        "compiled_keyword": lambda: ahead_named(one, y=two),
        "tuple_2": lambda: of_pair(couple),
        "donation": step,
        "numpy_scalar": lambda: scalar(single),
        "python_scalar": lambda: scalar(1.5),
        "numpy_array": lambda: scalar(host),
        "dict_20": lambda: scaled(leaves),
    }


CACHED_GOALS = {f"arrays_{n}": MANY_ARRAYS for n in (10, 100, 1000)}
TABLES: list[tuple[str, Callable[[Namespace, Scale], Calls], list[str], Goal]] = [
    (
        "cached",
        _cached,
        [
            *("arrays_1", "arrays_10", "arrays_100", "arrays_1000", "numpy_scalar"),
            *("python_scalar", "new_scalar", "numpy_array", "dict_20", "dict_1000"),
            *("static_argument", "static_keyword", "keyword", "tuple_2", "donation"),
            *("compiled", "compiled_keyword"),
        ],
        ONE_ARRAY,
    ),
    (
        "eager",
        _ufuncs,
        [
            *("add", "operator_add", "operator_add_literal", "lax_add", "sin", "less"),
            *("where", "sum", "mean_axis", "matmul", "softmax"),
        ],
        UFUNC,
    ),
    (
        "eager",
        _shapes,
        ["reshape", "transpose", "slice", "concatenate", "expand_dims"],
        SHAPE,
    ),
    (
        "eager",
        _indices,
        [
            *("index_integer", "index_array", "at_set", "at_add_array", "einsum"),
            *("zeros", "arange", "asarray_list", "asarray_scalar", "device_put"),
        ],
        INDEX,
    ),
    (
        "eager",
        _compositions,
        [
            *("det", "inv", "solve", "polyval", "quantile", "median", "searchsorted"),
            *("interp", "take_along_axis", "mean"),
        ],
        COMPOSITION,
    ),
    ("eager", _large, ["add_large", "sin_large", "sum_large"], LARGE),
    (
        "fresh",
        _fresh,
        [
            *("grad_x_sin_x", "grad_40_scalars", "grad_mlp", "grad_grad_x_sin_x"),
            *("vmap_x_sin_x", "vmap_mlp"),
        ],
        FRESH,
    ),
]


def _work(
    table: Callable[[Namespace, Scale], Calls], key: str, ns: Namespace, scale: Scale
) -> Work:
    return Looped(table(ns, scale)[key])


def cases() -> list[Case]:
    """Every case of this file; large arrays go by wall time, as they use threads."""
    made = []
    for group, table, keys, goal in TABLES:
        clock = "wall" if table is _large else "cpu"
        for key in keys:
            own = CACHED_GOALS.get(key, goal)
            build = partial(_work, table, key)
            made.append(Case(f"{group}/{key}", build, own, clock=clock))
    return made

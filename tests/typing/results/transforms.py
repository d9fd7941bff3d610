"""Types that mypy and pyright give to results of transformations, loops and trees."""

from functools import partial
from typing import Any, NamedTuple, assert_type

import numpy as np

import verax
import verax.numpy as vnp
from verax import Array, lax, tree


class Layer(NamedTuple):
    w: Array
    b: Array


x = vnp.ones(3)
layer = Layer(x, x)
host = np.ones(3, np.float32)


def step(c: Array, y: Array) -> tuple[Array, Array]:
    return c + y, c


def counted(c: Array, _: None) -> tuple[Array, None]:
    return c + 1, None


def moved(c: Layer, ys: tuple[Array, Array]) -> tuple[Layer, dict[str, Array]]:
    return Layer(c.w + ys[0], c.b + ys[1]), {"w": c.w}


def scans() -> None:
    assert_type(lax.scan(step, x, x), tuple[Array, Array])
    assert_type(lax.scan(step, 0.0, x), tuple[Array, Array])
    assert_type(lax.scan(step, np.float32(0), host), tuple[Array, Array])
    assert_type(lax.scan(step, x, host), tuple[Array, Array])
    assert_type(lax.scan(counted, x, None, 3), tuple[Array, None])
    assert_type(lax.scan(counted, 0.0, length=3), tuple[Array, None])
    assert_type(lax.scan(moved, layer, (x, x)), tuple[Layer, dict[str, Array]])
    assert_type(lax.scan(verax.jit(step), x, x), tuple[Array, Array])
    assert_type(lax.scan(verax.checkpoint(step), x, x), tuple[Array, Array])
    assert_type(lax.scan(partial(step), x, x), tuple[Array, Array])
    assert_type(lax.scan(lambda c, y: (c + y, c), x, x), tuple[Array, Array])
    assert_type(lax.scan(lambda c, y: (c + y.sum(), c), 0.0, x), tuple[Array, Array])
    assert_type(lax.scan(lambda c, _: (c + 1, None), x, length=2), tuple[Array, None])
    pair = lax.scan(lambda c, y: ((c[0] + y, c[1]), None), (x, x), x)
    assert_type(pair, tuple[tuple[Array, Array], None])


def less(c: Array) -> Array:
    return c < 3


def up(c: Array) -> Array:
    return c + 1


def up_both(c: tuple[Array, Array]) -> tuple[Array, Array]:
    return c[0] + 1, c[1]


def indexed(i: Any, c: Layer) -> Layer:
    return Layer(c.w + i, c.b)


def loops() -> None:
    assert_type(lax.while_loop(less, up, 0), Array)
    assert_type(lax.while_loop(less, up, x[0]), Array)
    assert_type(lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, x), Array)
    both = lax.while_loop(lambda c: c[0] < 3, up_both, (x[0], x))
    assert_type(both, tuple[Array, Array])
    assert_type(lax.fori_loop(0, 3, lambda i, c: c + x[i], 0.0), Array)
    assert_type(lax.fori_loop(0, 3, lambda i, c: c.at[i].add(1), x), Array)
    assert_type(lax.fori_loop(0, 3, indexed, layer), Layer)
    assert_type(lax.map(up, x), Array)
    assert_type(lax.map(up, host), Array)
    assert_type(lax.map(lambda c: c.w.sum(), layer), Array)
    assert_type(lax.map(lambda c: (c, c), x), tuple[Array, Array])
    assert_type(lax.associative_scan(vnp.maximum, host), Array)
    assert_type(lax.associative_scan(lambda a, b: a * b, x), Array)
    assert_type(
        lax.associative_scan(lambda a, b: (a[0] * b[0], b[1]), (x, x)),
        tuple[Array, Array],
    )


def split(c: Array) -> tuple[Array, Array]:
    return c, -c


def branches() -> None:
    assert_type(lax.cond(True, up, vnp.sin, x), Array)
    assert_type(lax.cond(x[0] > 0, split, split, x), tuple[Array, Array])
    assert_type(lax.cond(True, lambda: None, lambda: None), None)
    assert_type(lax.switch(1, (up, vnp.sin), x), Array)
    assert_type(lax.switch(1, [split, split], x), tuple[Array, Array])
    assert_type(lax.platform_dependent(x, cpu=up, default=up), Array)


def with_aux(c: Array, scale: float = 1.0) -> tuple[Array, dict[str, Array]]:
    return (c * scale).sum(), {"c": c}


def derivatives() -> None:
    value, _ = verax.value_and_grad(vnp.sum)(x)
    assert_type(value, Array)
    (value, aux), _ = verax.value_and_grad(with_aux, has_aux=True)(x, scale=2.0)
    assert_type(aux, dict[str, Array])
    _, aux = verax.grad(with_aux, has_aux=True)(x)
    assert_type(aux, dict[str, Array])
    out, pull = verax.vjp(up, x)
    assert_type(out, Array)
    pull(1.0)
    out, pull, aux = verax.vjp(with_aux, x, has_aux=True)
    assert_type(aux, dict[str, Array])
    assert_type(verax.jvp(split, (x,), (x,))[1], tuple[Array, Array])
    assert_type(verax.jvp(with_aux, (x,), (x,), has_aux=True)[2], dict[str, Array])
    out, push = verax.linearize(up, x)
    assert_type(push(x), Array)
    assert_type(verax.eval_shape(up, x), verax.ShapeDtypeStruct)
    assert_type(verax.eval_shape(lambda: layer), Layer)
    _, shapes = verax.make_jaxpr(split, return_shape=True)(x)
    assert_type(shapes, tuple[Array, Array])
    assert_type(verax.make_jaxpr(split)(x).eqns[0].primitive.name, str)


def dynamic(flag: bool) -> None:
    verax.value_and_grad(with_aux, has_aux=flag)(x)
    verax.value_and_grad(with_aux, 0, flag)(x)
    verax.grad(with_aux, has_aux=flag)(x)
    verax.vjp(with_aux, x, has_aux=flag)
    verax.make_jaxpr(split, return_shape=flag)(x)


def wrapped() -> None:
    assert_type(verax.jit(with_aux)(x, scale=2.0), tuple[Array, dict[str, Array]])
    assert_type(verax.vmap(split)(x), tuple[Array, Array])
    assert_type(verax.checkpoint(up)(x), Array)
    assert_type(verax.jit(lambda: layer)(), Layer)


def places() -> None:
    assert_type(verax.device_put(host), Array)
    assert_type(verax.device_put(1.0), Array)
    assert_type(verax.block_until_ready(layer), Layer)
    assert_type(verax.device_get(x), np.ndarray)
    assert_type(lax.stop_gradient(layer), Layer)
    assert_type(lax.optimization_barrier((x, x)), tuple[Array, Array])
    assert_type(x.is_deleted(), bool)
    assert_type(x.is_ready(), bool)
    assert_type(x.is_fully_addressable, bool)


def indices() -> None:
    assert_type(x.at[0].set(1.0), Array)
    assert_type(x.at[0, ..., None].add(x, mode="drop", unique_indices=True), Array)
    assert_type(x.at[x > 0].get(mode="fill", fill_value=0), Array)
    assert_type(x.at[1:].apply(vnp.sin), Array)
    assert_type(x.at[0].mul(host), Array)


def trees() -> None:
    assert_type(tree.map(vnp.zeros_like, layer), Layer)
    assert_type(tree.map(vnp.add, layer, layer), Layer)
    assert_type(tree.map(up, {"a": x}), dict[str, Array])
    assert_type(lax.sort(x), Array)
    assert_type(lax.sort((x, x)), tuple[Array, ...])
    assert_type(lax.reduce(x, 0.0, lax.add, (0,)), Array)


def callbacks() -> None:
    shape = verax.ShapeDtypeStruct((3,), np.float32)
    assert_type(verax.pure_callback(np.sin, shape, x), Array)


def collectives() -> None:
    def mean(c: Array) -> tuple[Array, Layer]:
        return lax.pmean(c, "i"), lax.psum(Layer(c, c), "i")

    assert_type(verax.vmap(mean, axis_name="i")(x), tuple[Array, Layer])

"""Arrays of float0, the tangents of integers, pass every border of a program.

They are NumPy's, as in JAX, and go in and out wherever arrays do.
"""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.dtypes import float0

N = vnp.arange(3)
M = vnp.array([True, False, True])
X = vnp.array([1.0, -2.0, 3.0])
Z = np.zeros(3, float0)


def is_float0(x: Any, shape: tuple[int, ...] = (3,)) -> None:
    assert type(x) is np.ndarray
    assert x.dtype == float0
    assert x.shape == shape


def pulled(x: Any, m: Any) -> Any:
    return verax.vjp(lambda x, m: vnp.where(m, x, 0.0).sum(), x, m)[1](1.0)


def total(x: Any, i: Any) -> Any:
    return (x * i).sum()


def test_out_of_jit() -> None:
    for _ in range(2):
        x, m = verax.jit(pulled)(X, M)
        assert x.tolist() == [1, 0, 1]
        is_float0(m)
    gradient = verax.jit(verax.grad(total, argnums=(0, 1), allow_int=True))
    for _ in range(2):
        x, i = gradient(X, N)
        assert x.tolist() == [0, 1, 2]
        is_float0(i)
    is_float0(verax.jit(verax.grad(lambda n: 2.0 * n, allow_int=True))(3), ())
    is_float0(verax.jit(lambda n: np.zeros(n.shape, float0))(N))
    is_float0(verax.jit(lambda: np.zeros((0, 2), float0))(), (0, 2))
    is_float0(verax.jit(lambda: verax.jit(lambda: Z)())())
    _, tangent = verax.jit(lambda n: verax.jvp(lambda n: n + 1, (n,), (Z,)))(N)
    is_float0(tangent)


def test_into_jit() -> None:
    for f in (verax.jit(lambda z: z), verax.jit(lambda z: {"a": (z, 1.0)}["a"][0])):
        for z in (Z, Z, np.zeros((), float0), np.zeros((2, 0), float0)):
            is_float0(f(z), z.shape)
    push = verax.jit(lambda n, z: verax.jvp(lambda n: n * 2, (n,), (z,)))
    value, tangent = push(N, Z)
    assert value.tolist() == [0, 2, 4]
    is_float0(tangent)
    pull = verax.jit(lambda x, ct: verax.vjp(lambda x: (x, N), x)[1](ct))
    assert pull(X, (X, Z))[0].tolist() == X.tolist()
    assert verax.jit(lambda x, z: x, keep_unused=True)(X, Z).tolist() == X.tolist()
    donated = verax.jit(lambda x, z: (x + 1, z), donate_argnums=0)
    is_float0(donated(X + 0, Z)[1])


def test_ahead_of_time_and_in_files() -> None:
    def both(x: Any, z: Any) -> tuple[Any, Any]:
        return x + 1, z

    compiled = verax.jit(both).lower(X, Z).compile()
    x, z = compiled(X, Z)
    assert x.tolist() == [2, -1, 4]
    is_float0(z)
    assert "i1" in verax.jit(both).lower(X, Z).as_text()
    is_float0(verax.jit(both).trace(X, Z).lower().compile()(X, Z)[1])
    exported = verax.export.export(verax.jit(pulled))(X, M)
    is_float0(exported.call(X, M)[1])
    again = verax.export.deserialize(exported.serialize())
    is_float0(again.call(X, M)[1])
    shown = verax.make_jaxpr(both)(X, Z)
    assert "float0[3]" in str(shown)
    assert verax.eval_shape(both, X, Z)[1].dtype == float0


@pytest.mark.parametrize("jitted", [False, True])
def test_loops_and_branches(jitted: bool) -> None:
    run: Any = verax.jit if jitted else lambda f: f
    z = np.zeros((), float0)
    carry, ys = run(lambda x: lax.scan(lambda c, x: (c + x, z), 1.0, x))(X)
    assert float(carry) == 3
    is_float0(ys)
    (carry, held), _ = run(
        lambda x: lax.scan(lambda c, x: ((c[0] + x, c[1]), None), (1.0, Z), x)
    )(X)
    is_float0(held)
    _, ys = run(lambda zs: lax.scan(lambda c, z: (c, z), 0, zs))(Z)
    is_float0(ys)
    is_float0(run(lambda x: lax.cond(x[0] > 0, lambda: Z, lambda: Z))(X))
    is_float0(run(lambda x, z: lax.cond(x[0] > 0, lambda z: z, lambda z: z, z))(X, Z))
    _, held = run(
        lambda x: lax.while_loop(
            lambda c: c[0].sum() < 9, lambda c: (c[0] + 1, c[1]), (x, Z)
        )
    )(X)
    is_float0(held)
    is_float0(run(lambda x: lax.fori_loop(0, 3, lambda i, z: z, Z))(X))
    is_float0(run(verax.checkpoint(lambda z: z))(Z))
    grads = run(
        verax.grad(
            lambda x, i: lax.scan(lambda c, r: (c * r[0] + r[1], c), x[0], (x, i))[
                1
            ].sum(),
            argnums=(0, 1),
            allow_int=True,
        )
    )(X, N)
    is_float0(grads[1])


@pytest.mark.parametrize("jitted", [False, True])
def test_vmap(jitted: bool) -> None:
    run: Any = verax.jit if jitted else lambda f: f
    xs, ids = vnp.stack([X, X]), vnp.stack([N, N])
    x, i = run(verax.vmap(verax.grad(total, (0, 1), allow_int=True)))(xs, ids)
    assert x.tolist() == [[0, 1, 2]] * 2
    is_float0(i, (2, 3))
    is_float0(run(verax.vmap(lambda z: z))(Z), (3,))
    is_float0(
        run(verax.vmap(lambda z: z, out_axes=1))(np.zeros((2, 3), float0)), (3, 2)
    )
    is_float0(run(verax.vmap(lambda x: Z))(xs), (2, 3))
    is_float0(run(verax.vmap(lambda x, z: z, (0, None)))(X, Z), (3, 3))
    rows = run(verax.vmap(lambda x: lax.scan(lambda c, r: (c, Z), 0.0, x)[1]))(xs)
    is_float0(rows, (2, 3, 3))


@pytest.mark.parametrize("jitted", [False, True])
def test_custom_rules(jitted: bool) -> None:
    run: Any = verax.jit if jitted else lambda f: f

    @verax.custom_vjp
    def scaled(x: Any, i: Any) -> Any:
        return x * i

    def backward(i: Any, ct: Any) -> Any:
        return ct * i, np.zeros(i.shape, float0)

    scaled.defvjp(lambda x, i: (x * i, i), backward)
    x, i = run(lambda x, i: verax.vjp(scaled, x, i)[1](X))(X, N)
    assert x.tolist() == [0, -2, 6]
    is_float0(i)

    @verax.custom_jvp
    def shifted(x: Any, i: Any) -> Any:
        return x + i, i + 1

    @shifted.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        assert tangents[1].dtype == float0
        return shifted(*primals), (2 * tangents[0], tangents[1])

    _, tangents = run(lambda x, i, z: verax.jvp(shifted, (x, i), (x, z)))(X, N, Z)
    assert tangents[0].tolist() == [2, -4, 6]
    is_float0(tangents[1])

    @verax.custom_batching.custom_vmap
    def kept(x: Any, z: Any) -> Any:
        return x, z

    @kept.def_vmap
    def many(size: int, batched: Any, x: Any, z: Any) -> Any:
        return (x, z), tuple(batched)

    is_float0(run(kept)(X, Z)[1])
    is_float0(run(verax.vmap(kept))(X, Z)[1])
    is_float0(run(lambda z: verax.checkpoint(lambda z: (z, X))(z))(Z)[0])


def test_on_several_devices() -> None:
    mesh = verax.sharding.Mesh(np.array(verax.devices()[:1]), ("a",))
    place = verax.NamedSharding(mesh, verax.sharding.PartitionSpec("a"))
    x = verax.device_put(X, place)
    for _ in range(2):
        _, m = verax.jit(pulled)(x, M)
        is_float0(m)
        is_float0(verax.jit(lambda x, z: (x + 1, z))(x, Z)[1])


@pytest.mark.parametrize("dtype", ["int32", "int8", "bool", "float32"])
def test_any_cotangent_of_the_shape_stands_for_that_of_an_integer(dtype: str) -> None:
    _, pull = verax.vjp(lambda x: (x * 2.0, vnp.arange(3)), 1.0)
    (slope,) = pull((1.0, vnp.ones(3, dtype)))
    assert float(slope) == 2.0
    with pytest.raises(ValueError, match="output 1"):
        pull((1.0, vnp.ones(2, dtype)))

"""Reductions over axes that an enclosing `vmap` or `shard_map` names."""

from collections.abc import Callable

import numpy as np
import pytest

import verax
from verax import lax, nn, numpy as vnp, random

TABLE = vnp.arange(24.0).reshape(2, 3, 4) ** 2 % 7
REDUCTIONS: dict[str, Callable[..., verax.Array]] = {
    "sum": vnp.sum,
    "mean": vnp.mean,
    "max": vnp.max,
    "min": vnp.min,
    "var": vnp.var,
    "std": vnp.std,
    "ptp": vnp.ptp,
    "nansum": vnp.nansum,
}


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("asked", "axes"), [("i", (0,)), (("i", 0), (0, 1)), ((-1, "i"), (0, 2))]
)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_named_axis_is_one_of_the_dimensions(
    name: str,
    asked: object,
    axes: tuple[int, ...],
    compiled: bool,
) -> None:
    reduction = REDUCTIONS[name]
    f = verax.vmap(lambda x: reduction(x, axis=asked), axis_name="i", out_axes=None)
    if compiled:
        f = verax.jit(f)
    expected = reduction(TABLE, axis=axes)
    np.testing.assert_allclose(f(TABLE), expected, rtol=1e-6)


def test_several_names_and_what_stays() -> None:
    def f(x: verax.Array) -> verax.Array:
        return x.sum(axis=("i", "j"), keepdims=True)

    nested = verax.vmap(verax.vmap(f, axis_name="j"), axis_name="i")
    assert nested(TABLE).tolist() == [[TABLE.sum((0, 1)).tolist()] * 3] * 2

    def g(x: verax.Array) -> verax.Array:
        return vnp.mean(x, axis=("i", 0), keepdims=True)

    assert verax.vmap(g, axis_name="i", out_axes=None)(TABLE).shape == (1, 4)


@pytest.mark.parametrize("reduction", [vnp.sum, vnp.mean, vnp.var])
def test_masks(reduction: Callable[..., verax.Array]) -> None:
    f = verax.vmap(
        lambda x: reduction(x, axis=("i", 0), where=x > 2),
        axis_name="i",
        out_axes=None,
    )
    expected = reduction(TABLE, axis=(0, 1), where=TABLE > 2)
    np.testing.assert_allclose(f(TABLE), expected, rtol=1e-6)


def test_what_is_subtracted_from_the_count_and_the_starting_value() -> None:
    f = verax.vmap(
        lambda x: (
            vnp.var(x, axis="i", ddof=1),
            vnp.sum(x, axis="i", initial=5),
            vnp.max(x, axis="i", initial=5, where=x < 2),
        ),
        axis_name="i",
        out_axes=None,
    )
    var, total, top = f(TABLE)
    np.testing.assert_allclose(var, TABLE.var(0, ddof=1), rtol=1e-6)
    np.testing.assert_allclose(total, TABLE.sum(0) + 5)
    np.testing.assert_allclose(top, TABLE.max(0, initial=5, where=TABLE < 2))


def test_dtypes() -> None:
    for dtype, total in ((np.int8, np.int32), (np.float16, np.float16), (bool, "i4")):
        x = np.ones((3, 2), dtype)
        out = verax.vmap(lambda x: x.sum(axis="i"), axis_name="i")(x)
        assert out.dtype == total
        assert out.tolist() == [[3, 3]] * 3
    mean = verax.vmap(lambda x: x.mean(axis="i"), axis_name="i")(np.ones(3, np.int8))
    assert mean.dtype == np.float32


def test_gradients() -> None:
    x = random.normal(random.key(0), (4, 3))

    def named(x: verax.Array) -> verax.Array:
        f = verax.vmap(lambda x: x - x.mean(axis="i"), axis_name="i")
        return vnp.sum(f(x) ** 3)

    expected = verax.grad(lambda x: ((x - x.mean(0)) ** 3).sum())(x)
    np.testing.assert_allclose(verax.grad(named)(x), expected, rtol=1e-5, atol=1e-6)


def test_names_of_a_mesh() -> None:
    mesh = verax.make_mesh((1,), ("x",))
    spec = verax.P("x")

    def f(x: verax.Array) -> verax.Array:
        return vnp.max(x, axis=("x", 0))

    out = verax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=verax.P())(TABLE)
    assert out.tolist() == TABLE.max(0).tolist()


@pytest.mark.parametrize("reduction", [vnp.sum, vnp.max, vnp.mean, vnp.var, vnp.std])
def test_a_name_that_is_not_in_scope(reduction: Callable[..., verax.Array]) -> None:
    with pytest.raises(NameError, match="unbound axis name: j"):
        verax.vmap(lambda x: reduction(x, axis="j"), axis_name="i")(TABLE)
    with pytest.raises(NameError, match="unbound axis name: j"):
        reduction(TABLE, axis="j")


@pytest.mark.parametrize("name", ["prod", "any", "all"])
def test_what_no_collective_computes(name: str) -> None:
    f = getattr(vnp, name)
    with pytest.raises(
        NotImplementedError, match=rf"Named reductions not implemented for jnp.{name}\("
    ):
        verax.vmap(lambda x: f(x, axis=("i", 0)), axis_name="i")(TABLE)
    assert lax.psum(1, ()) == 1


@pytest.mark.parametrize(("asked", "axes"), [("i", 0), ((0, "i"), (0, 1))])
@pytest.mark.parametrize(
    "name", ["softmax", "log_softmax", "logsumexp", "logmeanexp", "standardize"]
)
def test_functions_made_of_reductions(
    name: str, asked: object, axes: int | tuple[int, ...]
) -> None:
    f = getattr(nn, name)
    whole = name in ("logsumexp", "logmeanexp")
    mapped = verax.vmap(
        lambda x: f(x, axis=asked), axis_name="i", out_axes=None if whole else 0
    )
    np.testing.assert_allclose(mapped(TABLE), f(TABLE, axis=axes), rtol=1e-5)
    chosen = verax.vmap(
        lambda x: f(x, axis=asked, where=x > 1), axis_name="i", out_axes=0
    )(TABLE)
    expected = f(TABLE, axis=axes, where=TABLE > 1)
    np.testing.assert_allclose(chosen[0] if whole else chosen, expected, rtol=1e-5)

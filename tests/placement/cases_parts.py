"""Collectives of `shard_map`: each is one of the compiled program, both ways.

The truth is `vmap` with named axes, which needs one device.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.sharding import Mesh, NamedSharding, PartitionSpec as P

ORDER = [3, 1, 0, 2, 6, 7, 5, 4]
MESH = Mesh(np.array(verax.devices(), object)[ORDER].reshape(2, 4), ("x", "y"))
VALUES = np.random.default_rng(0).normal(size=(2 * 4, 4 * 8)).astype(np.float32)
RING = [(i, (i + 1) % 4) for i in range(4)]
KINDS = "collective-permute all-to-all all-gather reduce-scatter all-reduce"


def part(x: Any) -> Any:
    """What elements lack in common, so that no compiler finds them alike."""
    return vnp.sin(x) * (1 + lax.axis_index("y") + 2 * lax.axis_index("x"))


def in_a_loop(x: Any) -> Any:
    def step(state: Any, _: None) -> tuple[Any, None]:
        return vnp.sin(lax.ppermute(state, "y", RING)), None

    return lax.scan(step, part(x), None, length=3)[0]


FUNCTIONS: dict[str, tuple[Callable[..., Any], str, str]] = {
    "a ring": (
        lambda x: lax.ppermute(part(x), "y", RING),
        "collective-permute",
        "collective-permute",
    ),
    "the other axis": (
        lambda x: lax.ppermute(part(x), "x", [(0, 1), (1, 0)]),
        "collective-permute",
        "collective-permute",
    ),
    "some": (
        lambda x: lax.ppermute(part(x), "y", [(0, 2), (3, 1)]),
        "collective-permute",
        "collective-permute",
    ),
    "a loop": (in_a_loop, "collective-permute", "collective-permute"),
    "mapped": (
        lambda x: verax.vmap(lambda r: lax.ppermute(r, "y", RING), 1, 1)(part(x)),
        "collective-permute",
        "collective-permute",
    ),
    "shares": (
        lambda x: lax.psum_scatter(part(x), "y", scatter_dimension=1, tiled=True),
        "reduce-scatter",
        "all-gather",
    ),
    "shares of rows": (
        lambda x: lax.psum_scatter(part(x), "y")[None],
        "reduce-scatter",
        "all-gather",
    ),
    "mapped shares": (
        lambda x: verax.vmap(lambda r: lax.psum_scatter(r, "y", tiled=True), 0, 1)(
            part(x)
        ),
        "reduce-scatter",
        "all-gather",
    ),
    "all": (
        lambda x: vnp.cos(lax.all_gather(part(x), "y", tiled=True)) * part(x)[0],
        "all-gather",
        "all-reduce",
    ),
    "all of the other axis": (
        lambda x: vnp.cos(lax.all_gather(part(x), "x", tiled=True)) * part(x)[0],
        "all-gather",
        "all-reduce",
    ),
    "shares of the other axis": (
        lambda x: lax.psum_scatter(part(x), "x", tiled=True),
        "reduce-scatter",
        "all-gather",
    ),
    "exchange": (
        lambda x: lax.all_to_all(part(x), "y", 1, 0, tiled=True),
        "all-to-all",
        "all-to-all",
    ),
}


def of_parts(f: Callable[[Any], Any], check: bool = False) -> Callable[[Any], Any]:
    return verax.shard_map(
        f, mesh=MESH, in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=check
    )


def of_elements(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same on one device."""
    mapped = verax.vmap(verax.vmap(f, axis_name="y"), axis_name="x")

    def whole(x: Any) -> Any:
        rows, columns = x.shape[0] // 2, x.shape[1] // 4
        stack = x.reshape(2, rows, 4, columns).transpose(0, 2, 1, 3)
        out = mapped(stack).transpose(0, 2, 1, 3)
        return out.reshape(2 * out.shape[1], 4 * out.shape[3])

    return whole


def square(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: vnp.sum(f(x) ** 2)


def kinds_of(f: Callable[[Any], Any], x: Any) -> Counter[str]:
    """The collectives of the compiled program."""
    text = verax.jit(f).lower(x).compile().as_text()
    return Counter(
        kind
        for kind in KINDS.split()
        for _ in re.findall(rf"= [^=]* {kind}(?:-start)?\(", text)
    )


def placed() -> Any:
    return verax.device_put(VALUES, NamedSharding(MESH, P("x", "y")))


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_derivatives_are_those_of_elements(name: str, check: bool) -> None:
    f, x = FUNCTIONS[name][0], placed()
    own, truth = of_parts(f, check), of_elements(f)
    tangent = np.cos(VALUES)
    np.testing.assert_allclose(verax.jit(own)(x), truth(VALUES), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(own(x), truth(VALUES), rtol=1e-5, atol=1e-6)
    derivatives: list[Callable[..., Any]] = [
        lambda f: verax.grad(square(f)),
        lambda f: lambda x: verax.jvp(f, (x,), (tangent,))[1],
        lambda f: verax.vmap(f, in_axes=None, axis_size=2),
        lambda f: verax.grad(lambda x: vnp.sum(verax.grad(square(f))(x) ** 2)),
    ]
    for derivative in derivatives:
        np.testing.assert_allclose(
            verax.jit(derivative(own))(x),
            derivative(truth)(VALUES),
            rtol=2e-4,
            atol=1e-4,
        )


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_is_one_of_the_compiled_program(name: str, check: bool) -> None:
    f, there, back = FUNCTIONS[name]
    assert kinds_of(of_parts(f, check), placed()) == {there: 1}
    both = kinds_of(verax.grad(square(of_parts(f, check))), placed())
    assert both == Counter([there]) + Counter([back])


PLAIN: dict[str, Callable[[Any], Any]] = {
    "ring": lambda x: lax.ppermute(x, "y", RING),
    "some": lambda x: lax.ppermute(x, "y", [(0, 2), (3, 1)]),
    "one": lambda x: lax.ppermute(x, "x", [(0, 1)]),
    "scattered": lambda x: lax.psum_scatter(x, "y", tiled=True),
    "scattered along x": lambda x: lax.psum_scatter(x, "x", tiled=True),
    "gathered": lambda x: lax.all_gather(x, "y", tiled=True),
    "gathered along x": lambda x: lax.all_gather(x, "x", tiled=True),
    "exchanged": lambda x: lax.all_to_all(x, "y", 1, 0, tiled=True),
    "both": lambda x: lax.psum(lax.psum_scatter(x, "x", tiled=True), "y"),
    "both, twice": lambda x: lax.psum_scatter(
        lax.ppermute(vnp.sin(x), "x", [(1, 0)]), "y", tiled=True
    ),
}


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("axes", ["", "x", "y", "xy"])
@pytest.mark.parametrize("name", PLAIN)
def test_operands_that_are_alike_along_an_axis(
    name: str, axes: str, check: bool
) -> None:
    """What is no stack along an axis meets along it all the same."""
    f = PLAIN[name]
    spec = P("x" if "x" in axes else None, "y" if "y" in axes else None)
    rows, columns = (2 if "x" in axes else 1), (4 if "y" in axes else 1)
    values = VALUES[: 4 * rows, : 8 * columns]
    whole = P("x", "y")

    def own(x: Any) -> Any:
        varied = f if not check else lambda x: vary(f(x))
        return verax.shard_map(
            varied, mesh=MESH, in_specs=spec, out_specs=whole, check_vma=check
        )(x)

    def vary(y: Any) -> Any:
        zero = 0 * (lax.axis_index("x") + lax.axis_index("y"))
        return y + zero

    def truth(x: Any) -> Any:
        stack = x.reshape(rows, 4, columns, 8).transpose(0, 2, 1, 3)
        stack = stack[0] if rows == 1 else stack
        stack = (stack[0] if rows == 1 else stack[:, 0]) if columns == 1 else stack
        inner = verax.vmap(
            f, in_axes=0 if columns > 1 else None, axis_name="y", axis_size=4
        )
        outer = verax.vmap(
            inner, in_axes=0 if rows > 1 else None, axis_name="x", axis_size=2
        )
        out = outer(stack).transpose(0, 2, 1, 3)
        return out.reshape(2 * out.shape[1], 4 * out.shape[3])

    weights = np.cos(np.arange(np.size(truth(values)))).reshape(truth(values).shape)
    np.testing.assert_allclose(
        verax.jit(own)(values), truth(values), rtol=1e-5, atol=1e-6
    )
    one, other = (
        verax.jit(verax.grad(lambda x, g=g: vnp.sum(weights * g(x) ** 2)))(values)
        for g in (own, truth)
    )
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("check", [True, False])
def test_shares_of_what_is_summed_along_the_other_axis(check: bool) -> None:
    """Each device has its part of the work: nothing is sent before the shares are."""

    def f(w: Any, x: Any) -> Any:
        slope = x.T @ vnp.tanh(x @ lax.all_gather(w, "y", tiled=True))
        return lax.psum(lax.psum_scatter(slope, "y", tiled=True), "x")

    own = verax.shard_map(
        f,
        mesh=MESH,
        in_specs=(P("y"), P(("x", "y"))),
        out_specs=P("y"),
        check_vma=check,
    )
    w, x = np.ones((8, 8), np.float32), np.ones((64, 8), np.float32)
    text = verax.jit(own).lower(w, x).compile().as_text()
    kinds = Counter(re.findall(r" (all-\w+|reduce-scatter)(?:-start)?\(", text))
    assert kinds == {"all-gather": 1, "reduce-scatter": 1, "all-reduce": 1}
    expected = x.T @ np.tanh(x @ w)
    np.testing.assert_allclose(verax.jit(own)(w, x), expected, rtol=1e-5)


def test_batches_of_stacks() -> None:
    """A dimension that no axis of the mesh names."""
    f = FUNCTIONS["mapped shares"][0]
    xs = np.stack([VALUES, 2 * VALUES], 1)
    actual = verax.jit(verax.vmap(of_parts(f), 1))(xs)
    expected = verax.vmap(of_elements(f), 1)(xs)
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_programs_of_one_device_say_what_is_meant() -> None:
    """A stack may be computed where there is no mesh: eagerly, or for export."""
    mesh = verax.make_mesh((1,), ("y",))
    for name in ("shares", "shares of rows"):
        g = {
            "shares": lambda x: lax.psum_scatter(x, "y", tiled=True),
            "shares of rows": lambda x: lax.psum_scatter(x, "y")[None],
        }[name]
        f = verax.shard_map(
            g,
            mesh=mesh,
            in_specs=P("y") if name == "shares" else P(None, "y"),
            out_specs=P("y"),
            check_vma=False,
        )
        x = VALUES if name == "shares" else VALUES[:1]
        np.testing.assert_allclose(verax.jit(f)(x), x, rtol=1e-6)

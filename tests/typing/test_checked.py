"""`verax.typing.checked`: annotations of jaxtyping hold when a function is traced."""

import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import Array, lax
from verax.typing import checked

pytest.importorskip("jaxtyping", reason="jaxtyping is not installed")
pytest.importorskip("beartype", reason="beartype is not installed")

from jaxtyping import Float, TypeCheckError  # the lines above come first

X, W = vnp.ones((2, 3)), vnp.ones((3, 4))
TWO: Any = "2"
HOST: Any = np.ones((3, 4), np.float32)


@checked
def dense(
    x: Float[Array, "batch inner"],
    w: Float[Array, "inner outer"],
    *biases: Float[Array, " outer"],
    scale: float | Array = 1.0,
) -> Float[Array, "batch outer"]:
    return sum(biases, scale * (x @ w))


@checked
def shrunk(x: Float[Array, "batch inner"]) -> Float[Array, "batch inner"]:
    return x[:, 1:]


@checked
def repeated(x: Float[Array, " n"], n: int) -> Float[Array, "{n} n"]:
    return vnp.broadcast_to(x, (n, *x.shape))


@checked
def listed(xs: dict[str, Float[Array, " n"]]) -> Float[Array, " n"]:
    return sum(xs.values(), vnp.zeros(()))


@pytest.mark.parametrize("run", [lambda f: f, verax.jit])
def test_what_fits_passes(run: Callable[..., Callable[..., Array]]) -> None:
    assert run(dense)(X, W, vnp.ones(4), scale=2.0).tolist() == [[7.0] * 4] * 2
    assert run(lambda x: repeated(x, 3))(vnp.ones(2)).shape == (3, 2)
    assert run(listed)({"a": vnp.ones(2), "b": vnp.ones(2)}).tolist() == [2, 2]


def test_under_transformations() -> None:
    xs = vnp.stack([X, X])
    assert verax.vmap(dense, in_axes=(0, None))(xs, W).shape == (2, 2, 4)
    slope = verax.grad(lambda w: dense(X, w).sum())(W)
    assert slope.tolist() == [[2.0] * 4] * 3
    _, ys = lax.scan(lambda c, x: (c, dense(x, W)), 0.0, xs)
    assert ys.shape == (2, 2, 4)
    with pytest.raises(TypeError, match=r"w is f32\[2,3\], .* where batch=2, inner=3"):
        verax.jit(verax.vmap(lambda x: dense(x, x)))(vnp.ones((5, 2, 3)))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: verax.jit(dense)(X, vnp.ones((4, 4))),
            r"dense \(.*test_checked.py:\d+\): w is f32\[4,4\], not "
            r"Float\[Array, 'inner outer'\] where batch=2, inner=3; called at .*:\d+",
        ),
        (lambda: dense(X, W.astype(int)), r"w is i32\[3,4\], not Float"),
        (lambda: dense(X, HOST), r"w is array\(\[\[1"),
        (lambda: dense(X, W, vnp.ones(4), vnp.ones(5)), r"biases is "),
        (lambda: dense(X, W, scale=TWO), r"scale is '2', not float"),
        (lambda: shrunk(X), r"shrunk .*: the result is .*, not Float"),
        (lambda: listed({"a": vnp.ones((2, 2))}), r"xs is .*, not dict\[str, Float"),
        (lambda: repeated(vnp.ones(2), TWO), r"n is '2', not int"),
    ],
)
def test_what_does_not_is_said(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(TypeCheckError, match=text) as caught:
        call()
    assert isinstance(caught.value, TypeError)
    assert len(re.findall(r"\n", str(caught.value))) == 0


def test_the_innermost_function_speaks() -> None:
    @checked
    def outer(x: Float[Array, "a b"]) -> Array:
        return shrunk(x)

    with pytest.raises(TypeError, match=r"^shrunk "):
        outer(X)


def test_a_compiled_call_checks_nothing() -> None:
    traced = []

    @verax.jit
    @checked
    def f(x: Float[Array, " n"]) -> Array:
        traced.append(x.shape)
        return x

    f(vnp.ones(3))
    f(vnp.ones(3))
    assert traced == [(3,)]


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jaxtyping", None)
    with pytest.raises(ImportError, match=r"verax\[shapes\]"):
        checked(lambda x: x)
    with pytest.raises(TypeError, match="callable"):
        checked(3)  # type: ignore[arg-type]  # on purpose

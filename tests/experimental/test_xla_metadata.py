"""Metadata stands on operations, survives transformations, and changes no values."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.experimental.xla_metadata import (
    fuse_limit,
    must_fuse_call,
    set_xla_metadata,
    xla_metadata_call,
    xla_metadata_call2,
)
from verax.ir.forms.parser import parse_jaxpr
from verax.ir.text.printer import print_jaxpr
from verax.ops.table import PRIMITIVES

X = np.float32(0.7)


def lines(f: Any, *args: Any, op: str) -> list[str]:
    """The operations of one kind in the lowered program."""
    text = verax.jit(f).lower(*args).as_text()
    return [line for line in text.splitlines() if f"stablehlo.{op}" in line]


def attributes(text: str) -> str:
    """What an operation tells the compiler."""
    _, _, rest = text.partition("mhlo.frontend_attributes = {")
    return rest.partition("}")[0]


def told(f: Any, *args: Any, op: str) -> list[str]:
    return [attributes(line) for line in lines(f, *args, op=op)]


def test_a_block_tells_of_its_operations_only() -> None:
    def f(x: Any) -> Any:
        with set_xla_metadata(a="b", flag=True, level=3):
            y = vnp.sin(x)
        return vnp.cos(y)

    assert told(f, X, op="sine") == ['a = "b", flag = "true", level = "3"']
    assert told(f, X, op="cosine") == [""]
    np.testing.assert_allclose(verax.jit(f)(X), np.cos(np.sin(X)), rtol=1e-6)


def test_blocks_add_and_none_takes_away() -> None:
    def f(x: Any) -> Any:
        with set_xla_metadata(a="b"):
            with set_xla_metadata(c="d"):
                x = vnp.sin(x)
            with set_xla_metadata(a=None):
                x = vnp.exp(x)
            with set_xla_metadata(a="e"):
                x = vnp.tanh(x)
            return vnp.cos(x)

    assert told(f, X, op="sine") == ['a = "b", c = "d"']
    assert told(f, X, op="exponential") == [""]
    assert told(f, X, op="tanh") == ['a = "e"']
    assert told(f, X, op="cosine") == ['a = "b"']


def test_a_block_around_reaches_what_is_traced_in_it() -> None:
    jitted = verax.jit(lambda x: vnp.sin(x))
    with set_xla_metadata(a="b"):
        inside = jitted.lower(X).as_text()
    assert 'frontend_attributes = {a = "b"}' in inside
    assert "frontend_attributes" not in jitted.lower(X).as_text()

    def branches(x: Any) -> Any:
        with fuse_limit():
            y = verax.lax.cond(x > 0, vnp.sin, vnp.cos, x)
            return verax.lax.fori_loop(0, 3, lambda i, z: vnp.tanh(z), y)

    for op in ("sine", "cosine", "tanh", "case", "while"):
        actual = verax.jit(branches).lower(X).as_text()
        assert f"stablehlo.{op}" in actual
    assert told(branches, X, op="sine") == ['FUSE_LIMIT = "true"']
    assert told(branches, X, op="tanh") == ['FUSE_LIMIT = "true"']
    np.testing.assert_allclose(
        verax.jit(branches)(X), np.tanh(np.tanh(np.tanh(np.sin(X)))), rtol=1e-6
    )


def test_a_decorated_function_keeps_its_methods() -> None:
    @set_xla_metadata(a="b")
    @verax.jit
    def f(x: Any) -> Any:
        return vnp.sin(x)

    assert 'frontend_attributes = {a = "b"}' in f.lower(X).as_text()
    assert f.__name__ == "f"
    np.testing.assert_allclose(f(X), np.sin(X), rtol=1e-6)


@pytest.mark.parametrize(
    "transform",
    [
        verax.grad,
        verax.value_and_grad,
        lambda f: lambda x: verax.jvp(f, (x,), (x,)),
        lambda f: verax.vmap(f, axis_size=2, in_axes=None),
        lambda f: verax.vmap(verax.grad(f), axis_size=2, in_axes=None),
        verax.checkpoint,
        lambda f: verax.grad(verax.checkpoint(f)),
        lambda f: verax.grad(verax.grad(f)),
    ],
)
def test_transformations_keep_metadata_and_values(transform: Any) -> None:
    def plain(x: Any) -> Any:
        return vnp.sin(x) * vnp.tanh(x)

    def block(x: Any) -> Any:
        with set_xla_metadata(a="b"):
            return plain(x)

    for f in (block, xla_metadata_call(plain, a="b")):
        text = verax.jit(transform(f)).lower(X).as_text()
        assert 'mhlo.frontend_attributes = {a = "b"}' in text
        expected = verax.tree.leaves(transform(plain)(X))
        for g in (transform(f), verax.jit(transform(f))):
            actual = verax.tree.leaves(g(X))
            for one, other in zip(actual, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5)


def test_python_branches_in_a_block_under_grad() -> None:
    def f(x: Any) -> Any:
        with set_xla_metadata(a="b"):
            y = x * x
            return vnp.sin(y) if y > 0 else y

    np.testing.assert_allclose(verax.grad(f)(X), 2 * X * np.cos(X * X), rtol=1e-6)


def test_a_value_marks_the_operation_that_made_it() -> None:
    def f(x: Any, y: Any) -> Any:
        return set_xla_metadata({"p": vnp.sin(x) * y, "x": x}, breakpoint=True)

    assert told(f, X, X, op="multiply") == ['breakpoint = "true"']
    assert told(f, X, X, op="sine") == [""]
    text = verax.jit(verax.vmap(f)).lower(np.ones(3), np.ones(3)).as_text("hlo")
    assert text.count('frontend_attributes={breakpoint="true"}') == 1

    def twice(x: Any) -> Any:
        with set_xla_metadata(a="b"):
            y = vnp.sin(x)
        return set_xla_metadata(y, c='say "d"')

    text = verax.jit(twice).lower(X).as_text("hlo")
    assert 'frontend_attributes={a="b",c="say' in text
    assert verax.jit(twice)(X) == verax.jit(vnp.sin)(X)


def test_values_made_by_loops_and_calls_are_marked() -> None:
    def loop(x: Any) -> Any:
        y = verax.lax.fori_loop(0, 3, lambda i, z: vnp.sin(z), x)
        return set_xla_metadata(y, a="b")

    assert 'frontend_attributes={a="b"}' in verax.jit(loop).lower(X).as_text("hlo")
    inner = verax.jit(vnp.sin)
    text = verax.jit(lambda x: set_xla_metadata(inner(x), a="b")).lower(X).as_text()
    assert any("call" in line and 'a = "b"' in line for line in text.splitlines())


@pytest.mark.parametrize(
    ("ad", "forward", "backward"),
    [("same", True, True), ("drop", True, False), ({"a": "c"}, True, False)],
)
def test_derivatives_may_have_other_metadata(
    ad: Any, forward: bool, backward: bool
) -> None:
    @xla_metadata_call2({"a": "b"}, ad_metadata=ad)
    def f(x: Any) -> Any:
        return vnp.sin(x) * vnp.cos(x)

    text = verax.jit(verax.grad(f)).lower(X).as_text()
    calls = [attributes(line) for line in text.splitlines() if " call @" in line]
    assert calls[0] == 'a = "b"'
    assert (calls[-1] == 'a = "b"') is backward
    assert (calls[-1] == 'a = "c"') is isinstance(ad, dict)


def test_calls_close_over_tracers_and_take_trees() -> None:
    def f(x: Any) -> Any:
        call = must_fuse_call("1")(lambda d, scale=1.0: d["x"] * x * scale)
        return call({"x": vnp.sin(x)}, scale=2.0)

    np.testing.assert_allclose(verax.jit(f)(X), 2 * X * np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(f(X), 2 * X * np.sin(X), rtol=1e-6)
    assert 'MUST_FUSE="1"' in verax.jit(f).lower(X).as_text("hlo")


def test_programs_print_and_parse() -> None:
    def f(x: Any) -> Any:
        with set_xla_metadata(a="b"):
            y = xla_metadata_call2(vnp.sin, {"c": 1}, ad_metadata="drop")(x)
        return set_xla_metadata(y, d=True)

    jaxpr = verax.make_jaxpr(f)(X).jaxpr
    assert parse_jaxpr(print_jaxpr(jaxpr), PRIMITIVES) == jaxpr
    plain = verax.make_jaxpr(vnp.sin)(X).jaxpr
    assert jaxpr != plain


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="expected a callable"):
        xla_metadata_call2(3, {"a": "b"})  # type: ignore[arg-type]  # on purpose
    with pytest.raises(TypeError, match="must be a dict"):
        xla_metadata_call2(vnp.sin, "a")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(TypeError, match="metadata values must be"):
        xla_metadata_call(vnp.sin, a=object())
    with pytest.raises(TypeError, match="ad_metadata must be"):
        xla_metadata_call2(vnp.sin, {"a": 1}, ad_metadata="keep")

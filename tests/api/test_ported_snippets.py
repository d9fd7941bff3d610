"""Small programs written for JAX that once did something else; figures of jax 0.12."""

import importlib
import inspect
from typing import Any

import numpy as np
import pytest

import verax as jax
import verax.numpy as jnp
from verax import lax


def compile_time(x: Any) -> Any:
    with jax.ensure_compile_time_eval():
        known = jnp.arange(3).sum()
        assert isinstance(known, jax.Array)
        assert not isinstance(known, jax.core.Tracer)
        double = jax.jit(lambda a: a * 2)
        assert not isinstance(double(jnp.ones(3)), jax.core.Tracer)
        slope = jax.grad(lambda q: q * x)(2.0)
        rows = jax.vmap(lambda q: q * x)(jnp.arange(3.0))
        chosen = lax.cond(x > 0, lambda: x, lambda: 2 * x)
        total, _ = lax.scan(lambda c, _: (c + x, c), 0.0, None, length=2)
        closure = jax.jit(lambda y: x + y)(2.0) - 2
        assert not isinstance(jax.jit(lambda: 1.0)(), jax.core.Tracer)
        here = closure - x + jnp.sin(x) + jnp.zeros(3).at[0].set(x)
        return int(known) + double(x) + slope + rows.sum() + chosen + total + here.sum()


@pytest.mark.slow
def test_tracers_in_a_compile_time_block_belong_to_the_trace_around() -> None:
    def plain(x: Any) -> Any:
        return 3 + 2 * x + x + 3 * x + x + 2 * x + 3 * jnp.sin(x) + x

    expected = float(plain(1.0))
    assert float(jax.jit(compile_time)(1.0)) == pytest.approx(expected)
    assert float(compile_time(1.0)) == pytest.approx(expected)
    assert jax.vmap(compile_time)(jnp.ones(2)) == pytest.approx(expected)
    assert float(jax.grad(compile_time)(1.0)) == pytest.approx(jax.grad(plain)(1.0))


def test_make_jaxpr_has_outer_tracers_as_constants() -> None:
    @jax.jit
    def f(x: Any) -> Any:
        held = jnp.arange(2.0)
        closed = jax.make_jaxpr(lambda y: (y + x, y * held))(1.0)
        assert len(closed.consts) == len(closed.jaxpr.constvars) == 2
        return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, 2.0)

    total, product = f(3.0)
    assert float(total) == 5
    assert product.tolist() == [0, 2]


def test_eval_shape_of_a_function_that_returns_structs() -> None:
    struct = jax.ShapeDtypeStruct((3,), jnp.int8)
    actual = jax.eval_shape(lambda x: {"a": struct, "b": x, "c": 1.0}, struct)
    assert actual["a"] == actual["b"] == struct
    assert actual["c"].weak_type
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        jax.jit(lambda: struct)()


def test_struct_like_an_array() -> None:
    like = jax.ShapeDtypeStruct.like
    x = jnp.ones((2, 3), jnp.bfloat16)
    assert like(x) == jax.ShapeDtypeStruct(x.shape, x.dtype)  # it may lie anywhere
    y = jax.device_put(x, jax.devices()[0])
    assert like(y) == jax.ShapeDtypeStruct(y.shape, y.dtype, sharding=y.sharding)
    assert like(2.0) == jax.ShapeDtypeStruct((), jnp.float32, weak_type=True)
    assert like(like(x)) == like(x)
    assert not like(x).is_ref
    with pytest.raises(TypeError, match="str"):
        like("a")


def test_shaped_array_takes_what_stands_for_a_dtype() -> None:
    aval = jax.core.ShapedArray((3,), jnp.float32)
    assert aval.dtype == np.dtype("float32")
    assert isinstance(aval.dtype, np.dtype)
    assert aval == jax.typeof(jnp.ones(3)) == jax.core.ShapedArray([3], "float32")


def test_static_arguments_of_checkpoint_need_no_hash() -> None:
    f = jax.checkpoint(lambda x, *, k: x * k["a"], static_argnames="k")
    assert float(jax.grad(lambda x: f(x, k={"a": 2.0}))(1.0)) == 2
    g = jax.checkpoint(lambda k, x: x * k["a"], static_argnums=0)
    assert float(jax.jit(jax.grad(lambda x: g({"a": 2.0}, x)))(1.0)) == 2


def test_checkpoint_passes_arrays_eagerly() -> None:
    kinds: list[bool] = []

    def f(x: Any, *, y: Any) -> Any:
        kinds.extend([isinstance(x["a"], jax.Array), isinstance(y, jax.Array)])
        return x["a"] + y

    assert float(jax.checkpoint(f)({"a": 1.0}, y=2)) == 3
    assert kinds == [True, True]
    with pytest.raises(TypeError, match="str"):
        jax.checkpoint(lambda x: x)("a")


def test_static_positions_and_names_hold_as_they_are_if_both_are_passed() -> None:
    f = jax.jit(lambda n, b: b["a"] * n, static_argnums=(0,), static_argnames=("b",))
    assert float(f(2, {"a": jnp.ones(())})) == 2
    g = jax.jit(
        lambda n, x, b: x * n if b == "up" else x,
        static_argnums=0,
        static_argnames="b",
    )
    assert float(g(2, 1.0, b="up")) == 2
    with pytest.raises(ValueError, match="not hashable"):
        jax.jit(lambda n, b: n, static_argnums=1)(1, b=[2])


def test_the_neutral_element_of_another_dtype_is_an_initial_value() -> None:
    x, window = jnp.arange(6), ((2,), (2,), "VALID")
    assert lax.reduce_window(x, -jnp.inf, lax.max, *window).tolist() == [1, 3, 5]
    assert lax.reduce_window(x, jnp.inf, lax.min, *window).tolist() == [0, 2, 4]
    assert lax.reduce_window(x, np.float32(0), lax.add, *window).tolist() == [1, 5, 9]
    assert lax.reduce(x, -np.inf, lax.max, (0,)).dtype == x.dtype
    assert lax.reduce(x.astype(jnp.uint8), -np.inf, lax.max, (0,)) == 5
    assert lax.reduce(x > 3, -np.inf, lax.max, (0,)).tolist() is True
    with pytest.raises(TypeError, match="does not fit"):
        lax.reduce(x, 0.5, lax.add, (0,))
    with pytest.raises(TypeError, match="does not fit"):
        lax.reduce(x, -1.0, lax.max, (0,))


def test_a_jitted_function_has_its_signature_itself() -> None:
    f = jax.jit(lambda a, b=1: a)
    assert str(inspect.signature(f, follow_wrapped=False)) == "(a, b=1)"
    assert str(inspect.signature(f)) == "(a, b=1)"
    assert list(inspect.signature(type(f)).parameters) == ["fun", "settings"]


def test_expm_is_finite_under_debug_nans() -> None:
    expm = importlib.import_module("verax.scipy.linalg").expm
    with jax.debug_nans(True):
        assert float(expm(jnp.eye(2))[0, 0]) == pytest.approx(np.e)
    large = expm(jnp.stack([jnp.eye(2) * 1e9, -jnp.eye(2)]))
    assert bool(jnp.isnan(large[0]).all())
    assert large[1].tolist() == expm(-jnp.eye(2)).tolist()
    assert bool(jnp.isfinite(jax.grad(lambda x: expm(x).sum())(jnp.eye(2))).all())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["normal", "uniform", "truncated_normal"])
def test_the_scale_of_an_initializer_may_be_traced(name: str) -> None:
    make, key = getattr(jax.nn.initializers, name), jax.random.key(0)

    def draw(scale: Any) -> Any:
        return make(scale)(key, (2, 3), jnp.bfloat16)

    traced = jax.jit(draw)(0.1)
    assert traced.dtype == jnp.bfloat16
    assert np.allclose(traced.astype("float32"), draw(0.1).astype("float32"), rtol=0.02)
    kind = jax.nn.initializers.orthogonal
    actual = jax.jit(lambda scale: kind(scale)(key, (2, 2)))(3.0)
    assert np.allclose(actual @ actual.T, 9 * np.eye(2), atol=1e-4)


def test_types_answer_as_in_jax() -> None:
    aval = jax.core.ShapedArray((2, 3), jnp.float32, weak_type=True, sharding=None)
    assert [aval.str_short(), aval.str_short(short_dtypes=True)] == [
        "float32[2,3]",
        "f32[2,3]",
    ]
    assert [len(aval), aval.itemsize, aval.nbytes] == [2, 4, 24]
    strong = jax.core.ShapedArray((2, 3), jnp.float32)
    assert aval.strip_weak_type() == aval.update_weak_type(False) == strong
    assert aval.to_tangent_aval() == aval.at_least_vspace() == strong
    changed = aval.update(shape=(1,), dtype=jnp.int8)
    assert changed == jax.core.ShapedArray((1,), jnp.int8, weak_type=True)
    assert changed.to_tangent_aval().str_short() == "float0[1]"
    with pytest.raises(TypeError, match="no dimensions"):
        len(aval.update(shape=()))
    with pytest.raises(TypeError, match="sharding of a type is a NamedSharding"):
        jax.core.ShapedArray((2,), jnp.int8, sharding=jnp.ones(2).sharding)


def test_closed_jaxprs_have_the_variables_of_their_jaxprs() -> None:
    held = jnp.arange(3.0)
    closed = jax.make_jaxpr(lambda x: jnp.sin(x) * held)(1.0)
    jaxpr = closed.jaxpr
    assert closed.invars == jaxpr.invars
    assert closed.outvars == jaxpr.outvars
    assert closed.constvars == jaxpr.constvars
    assert closed.all_invars == jaxpr.all_invars == (*jaxpr.constvars, *jaxpr.invars)
    assert closed.num_consts == jaxpr.num_consts == 1
    assert closed.pretty_print(use_color=False) == str(closed) == jaxpr.pretty_print()
    assert not closed.is_high
    other = closed.replace(consts=[jnp.ones(3)])
    (actual,) = jax.core.jaxpr_as_fun(other)(0.5)
    assert np.allclose(actual, np.sin(0.5))
    assert closed.replace(jaxpr=jaxpr) == closed

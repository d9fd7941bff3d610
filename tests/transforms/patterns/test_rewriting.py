"""Rewrite rules: where they match, what stays, and what is said of wrong ones."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import ir, lax, nn
from verax.rewrites import (
    Rewrite,
    RewriteError,
    RewriteLoop,
    algebra,
    apply,
    cheaper,
    rewrite,
    stable,
)

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@rewrite(lambda x: vnp.log(1 + x))
def log1p_of(x: Any) -> Any:
    return vnp.log1p(x)


@rewrite(lambda x, y: vnp.sin(x) * vnp.cos(y))
def half_sum(x: Any, y: Any) -> Any:
    return (vnp.sin(x + y) + vnp.sin(x - y)) / 2


def names(program: ir.ClosedJaxpr) -> list[str]:
    return [eqn.primitive.name for _, eqn in ir.walk(program.jaxpr)]


def after(rules: Any, f: Any, *args: Any) -> list[str]:
    program = apply(rules)(verax.make_jaxpr(f)(*args))
    verax.transforms.check(program)
    return names(program)


def test_operands_of_commutative_primitives_match_both_ways() -> None:
    for f in (lambda x: vnp.log(1 + x), lambda x: vnp.log(x + 1)):
        assert after([log1p_of], f, X) == ["log1p"]
    assert after([half_sum], lambda x, y: vnp.cos(x) * vnp.sin(y), X, X).count("sin")
    assert after([], lambda x: vnp.log(1 - x), X) == ["sub", "log"]
    assert after([log1p_of], lambda x: vnp.log(1 - x), X) == ["sub", "log"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "float16"])
@pytest.mark.parametrize("shape", [(), (0,), (4,), (2, 1, 3)])
def test_a_rule_holds_for_every_shape_and_dtype(dtype: str, shape: Any) -> None:
    x = vnp.ones(shape, dtype)
    assert after([log1p_of], lambda x: vnp.log(1 + x), x) == ["log1p"]


def test_rules_of_calls_are_rewritten_folded_and_joined_too() -> None:
    def f(x: Any, y: Any) -> Any:
        @verax.custom_vjp
        def scaled(x: Any) -> Any:
            return x * y

        def backward(x: Any, ct: Any) -> Any:
            return (ct * vnp.log(1 + x) * y * vnp.log(1 + x) * vnp.sin(0.0),)

        scaled.defvjp(lambda x: (x * y, x), backward)
        return scaled(x)

    program = verax.make_jaxpr(f)(2.0, 3.0)
    assert names(program).count("log") == 2
    assert names(apply([log1p_of])(program)).count("log1p") == 2
    assert names(verax.transforms.cse(program)).count("log") == 1
    assert names(verax.transforms.fold(program)).count("sin") == 0
    for made in (apply([log1p_of])(program), verax.transforms.fold(program)):
        verax.transforms.check(made)
        (value,) = verax.transforms.evaluate(made, 2.0, 3.0)
        assert value == 6.0


def test_literals_match_by_value() -> None:
    assert after([log1p_of], lambda x: vnp.log(2 + x), X) == ["add", "log"]
    assert after(algebra(), lambda x: x + 0.0, X) == ["add"]
    assert after(algebra(), lambda x: x + -0.0, X) == []
    assert after(algebra(fast=True), lambda x: x + 0.0, X) == []


def test_a_variable_stands_for_one_value() -> None:
    assert after(algebra(), lambda x, y: vnp.maximum(x, x), X, X) == []
    assert after(algebra(), lambda x, y: vnp.maximum(x, y), X, X) == ["max"]


def test_what_is_read_elsewhere_stays() -> None:
    def f(x: Any) -> Any:
        one_more = 1 + x
        return vnp.log(one_more), one_more

    assert after([log1p_of], f, X) == ["add", "log1p"]


def test_params_are_read_from_the_program() -> None:
    for axes in ((0,), (0, 2), (0, 1, 2)):
        x = np.full((2, 3, 4), 200, np.float32)

        def f(x: Any, axes: Any = axes) -> Any:
            return vnp.log(vnp.sum(vnp.exp(x), axis=axes))

        actual = apply(stable())(f)(x)
        np.testing.assert_allclose(actual, nn.logsumexp(x, axis=axes))
        assert np.isinf(f(x)).all()


def test_several_results() -> None:
    @rewrite(lambda x: (vnp.sin(x), vnp.cos(x)))
    def both(x: Any) -> Any:
        half = vnp.tan(x / 2)
        scale = 1 + half * half
        return 2 * half / scale, (1 - half * half) / scale

    def f(x: Any, y: Any) -> Any:
        return vnp.cos(x) + y, vnp.sin(y), vnp.sin(x)

    actual = after([both], f, X, X)
    assert (actual.count("tan"), actual.count("sin"), actual.count("cos")) == (1, 1, 0)
    for a, b in zip(apply(both)(f)(X, X), f(X, X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4)


def test_rules_reach_into_every_body() -> None:
    def inner(x: Any) -> Any:
        return vnp.log(1 + x)

    def f(x: Any) -> Any:
        x = lax.scan(lambda c, _: (inner(c), None), x, None, length=3)[0]
        x = lax.cond(x[0, 0] > 1, inner, vnp.sin, x)
        x = lax.while_loop(lambda v: inner(v).sum() > 9, lambda v: inner(v), x)
        return verax.checkpoint(verax.jit(inner))(x)

    actual = after([log1p_of], f, X)
    assert actual.count("log1p") == 5
    assert "log" not in actual
    np.testing.assert_allclose(apply(log1p_of)(f)(X), f(X), rtol=1e-5)


def test_rules_follow_each_other_to_the_end() -> None:
    def f(x: Any, y: Any) -> Any:
        return -(lax.neg(lax.neg(lax.neg((x * 1 - -y) / 1)))) / 4

    program = apply([*algebra(), *cheaper()])(verax.make_jaxpr(f)(X, X))
    assert names(program) == ["add", "mul"]


def test_equations_know_their_line_and_rule() -> None:
    program = apply(log1p_of)(verax.make_jaxpr(lambda x: vnp.log(1 + x))(X))
    (eqn,) = program.eqns
    assert eqn.source.origin == "rewrite(log1p_of)"
    assert "test_rewriting.py" in eqn.source.file
    derived = apply(stable())(verax.make_jaxpr(verax.grad(stretch))(1.0))
    assert "rewrite(exp_minus_one)(jvp)" in {e.source.origin for e in derived.eqns}


def stretch(x: Any) -> Any:
    return (vnp.exp(x) - 1) ** 2


def test_effects_stay() -> None:
    def f(x: Any) -> Any:
        verax.debug.print("{x}", x=1 + x)
        return vnp.log(1 + x)

    program = verax.make_jaxpr(f)(X)
    actual = apply(log1p_of)(program)
    assert actual.effects == program.effects != frozenset()
    assert "log1p" in names(actual)


def test_functions_compose_with_the_other_transformations() -> None:
    def f(x: Any) -> Any:
        return vnp.log(vnp.exp(x).sum())

    safe = apply(stable())(f)
    x = vnp.array([1000.0, 1000.0])
    for g in (
        verax.grad(safe),
        verax.jit(verax.grad(safe)),
        verax.grad(verax.jit(safe)),
    ):
        np.testing.assert_allclose(g(x), [0.5, 0.5])
    assert not np.isfinite(verax.grad(f)(x)).any()
    assert verax.vmap(safe)(vnp.stack([x, x])).shape == (2,)
    np.testing.assert_allclose(verax.jacfwd(safe)(x), [0.5, 0.5])


def test_functions_keep_pytrees_names_and_python_control_flow() -> None:
    @apply(algebra())
    def f(tree: dict[str, Any], *, flip: bool = False) -> dict[str, Any]:
        """Says so."""
        if tree["a"] > 0:
            return {"b": -lax.neg(tree["a"])}
        return {"b": tree["a"]}

    assert (f.__name__, f.__doc__) == ("f", "Says so.")
    assert float(f({"a": 2.0})["b"]) == 2
    assert float(f({"a": -2.0}, flip=False)["b"]) == -2


def test_programs_that_are_stable_stay() -> None:
    for f in (
        nn.logsumexp, nn.log_softmax, nn.softplus, nn.log_sigmoid, nn.softmax,
        lambda x: vnp.logaddexp(x, 2 * x),
    ):  # fmt: skip
        program = verax.make_jaxpr(f)(X)
        assert apply(stable())(program) == program


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (lambda x: vnp.log(nn.softmax(x)), [-200.0, 0.0], [-200.0, 0.0]),
        (lambda x: vnp.log(vnp.exp(x) / vnp.exp(x).sum(keepdims=True)), [200.0, 0.0],
         [0.0, -200.0]),
        (lambda x: vnp.exp(x) / vnp.exp(x).sum(keepdims=True), [200.0, 0.0], [1, 0]),
        (lambda x: vnp.log(nn.sigmoid(x)), [-200.0], [-200.0]),
        (lambda x: vnp.log(1 - nn.sigmoid(x)), [200.0], [-200.0]),
        (lambda x: vnp.log1p(vnp.exp(x)), [200.0], [200.0]),
        (lambda x: vnp.log(vnp.exp(x) + 1), [200.0], [200.0]),
        (lambda x: vnp.log(vnp.exp(x) + vnp.exp(2 * x)), [200.0], [400.0]),
        (lambda x: vnp.log(1 + x), [1e-10], [1e-10]),
        (lambda x: vnp.log(1 - x), [1e-10], [-1e-10]),
        (lambda x: vnp.exp(x) - 1, [1e-10], [1e-10]),
    ],
)  # fmt: skip
def test_stable_rules_save_what_was_lost(f: Any, x: Any, expected: Any) -> None:
    x = vnp.array(x)
    assert not np.allclose(f(x), expected, rtol=1e-5, atol=0)
    np.testing.assert_allclose(apply(stable())(f)(x), expected, rtol=1e-5)


def test_a_circle_of_rules_is_named() -> None:
    @rewrite(lambda x, y: x + y)
    def swapped(x: Any, y: Any) -> Any:
        return y + x

    @rewrite(vnp.sin)
    def grown(x: Any) -> Any:
        return vnp.sin(x * 2)

    with pytest.raises(RewriteLoop, match=r"\(the program repeats\): swapped"):
        apply([swapped, *algebra()])(lambda x: x + X)(X)
    with pytest.raises(RewriteLoop, match=r"\(not finished after 7 passes\): grown"):
        apply([grown], passes=7)(vnp.sin)(X)


def wrong(pattern: Any, replacement: Any, **options: Any) -> Rewrite:
    return rewrite(pattern, name="planted", **options)(replacement)


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        (wrong(lambda x: x, lambda x: x), "returns a variable or a constant"),
        (wrong(lambda x: (x + 1, 2.0), lambda x: x), "returns a variable or a const"),
        (wrong(lambda x, y: x + 1, lambda x, y: x), "does not use its variable y"),
        (wrong(lambda x: x @ 3, lambda x: x), "cannot be traced on any"),
        (
            wrong(lambda x, y: x + y, lambda x, y: x, types=[["f32[]"]]),
            "types must have 2 entries",
        ),
        (wrong(lambda x, n=(7,): vnp.sin(x), lambda x, n: x), "has a param equal to"),
        (wrong(vnp.sin, lambda x: vnp.sum(x)), r"returns \(f32\[\]\), but the pattern"),
        (wrong(vnp.sin, lambda x: (x, x)), "the replacement returns"),
        (wrong(vnp.sin, lambda x: x.astype("int32")), "the replacement returns"),
    ],
)
def test_wrong_rules_are_explained(rule: Rewrite, complaint: str) -> None:
    with pytest.raises(RewriteError, match=f"rewrite planted: .*{complaint}"):
        apply([rule])(lambda x: vnp.sin(x) + 1)(X)


def test_what_is_not_a_rule_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"call a function that returns rules: apply\(stable\(\)\)"
    ):
        apply(stable)  # type: ignore[arg-type]  # the subject
    with pytest.raises(TypeError, match=r"is not a rewrite rule"):
        apply([vnp.sin])  # type: ignore[list-item]  # the subject
    with pytest.raises(TypeError, match=r"functions and jaxprs, not 3"):
        apply(stable())(3)  # type: ignore[call-overload]  # the subject


def test_guards_see_types_literals_and_what_makes_an_operand() -> None:
    seen: list[Any] = []

    def guard(x: Any, c: Any) -> bool:
        seen.append((x.shape, x.ndim, str(x.dtype), x.primitive, c.literal))
        return bool(c.literal is not None and x.operands[0].primitive is None)

    @rewrite(lambda x, c: x / c, where=guard, types=[("f32[2,3]", "f32[]")])
    def times(x: Any, c: Any) -> Any:
        return x * (1 / float(c))

    assert after([times], lambda x: vnp.sin(x) / 5, X) == ["sin", "mul"]
    assert seen == [((2, 3), 2, "float32", "sin", np.float32(5))]
    assert after([times], lambda x, c: vnp.sin(x) / c, X, 2.0)[-1] == "div"


def test_wide_programs_are_rewritten_while_x64_is_off() -> None:
    with verax.enable_x64():
        program = verax.make_jaxpr(lambda x: (vnp.log(1 + x), x / 4))(np.float64(0.5))
    actual = apply([*stable(), *cheaper()])(program)
    assert names(actual) == ["log1p", "mul"]
    assert [str(aval.dtype) for aval in actual.out_avals] == ["float64"] * 2

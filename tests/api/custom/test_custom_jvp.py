"""Functions with a forward-mode rule: values, derivatives, arguments, bad rules."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.custom_derivatives import SymbolicZero


def close(x: Any, y: Any) -> None:
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), 1e-5, 1e-5)


def marked(factor: float = 10.0) -> Any:
    """The sine, with its derivative times a factor: who loses the rule is seen."""

    @verax.custom_jvp
    def f(x: Any) -> Any:
        return vnp.sin(x)

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        return f(*primals), factor * vnp.cos(primals[0]) * tangents[0]

    return f


XS = np.linspace(0, 1, 4, dtype=np.float32)


def test_rule_in_forward_and_reverse_mode() -> None:
    f = marked()
    close(f(1.0), np.sin(1))
    close(verax.jvp(f, (1.0,), (2.0,))[1], 20 * np.cos(1))
    close(verax.grad(f)(1.0), 10 * np.cos(1))
    close(verax.linearize(f, 1.0)[1](1.0), 10 * np.cos(1))
    close(verax.grad(verax.grad(f))(1.0), -10 * np.sin(1))


def test_rule_survives_jit_and_vmap() -> None:
    f = marked()
    close(verax.grad(verax.jit(f))(1.0), 10 * np.cos(1))
    close(verax.jit(verax.grad(f))(1.0), 10 * np.cos(1))
    close(verax.grad(lambda x: verax.vmap(f)(x).sum())(XS), 10 * np.cos(XS))
    close(verax.vmap(verax.grad(f))(XS), 10 * np.cos(XS))
    twice = verax.vmap(verax.vmap(f))
    close(verax.grad(lambda x: twice(x).sum())(XS[None]), 10 * np.cos(XS[None]))


def test_rule_that_python_calls_in_eager_code() -> None:
    @verax.custom_jvp
    def f(x: Any) -> Any:
        return vnp.sin(x) if x > 0 else vnp.cos(x)

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return f(x), 2 * t if x > 0 else 3 * t

    close(f(-1.0), np.cos(-1))
    close(verax.grad(f)(1.0), 2)
    close(verax.grad(f)(-1.0), 3)
    close(verax.grad(lambda x: f(x) * f(-x))(1.0), 2 * np.cos(1) - 3 * np.sin(1))


def test_defjvps() -> None:
    f = verax.custom_jvp(lambda x, y: x * y)
    f.defjvps(lambda t, out, x, y: 7 * t * y, None)
    close(verax.grad(f, (0, 1))(2.0, 3.0), (21, 0))
    f.defjvps(None, None)
    close(verax.grad(f, (0, 1))(2.0, 3.0), (0, 0))
    f.defjvps(lambda t, out, x, y: t)
    with pytest.raises(TypeError, match="got 1 rules for 2 arguments"):
        verax.grad(f)(2.0, 3.0)


def test_trees_integers_and_keywords() -> None:
    @verax.custom_jvp
    def f(p: Any, n: Any, scale: Any = 2.0) -> Any:
        return {"out": p["a"] * p["b"][0] * scale, "n": n + 1}

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        p, n, scale = primals
        t, m, _ = tangents
        assert m.dtype == verax.float0
        out = f(p, n, scale)
        pushed = 5 * t["a"] * p["b"][0] * scale
        return out, {"out": pushed, "n": m}

    p = {"a": 3.0, "b": [4.0]}
    slope = verax.grad(lambda p: f(p, 1)["out"])(p)
    close(slope["a"], 40)
    close(slope["b"][0], 0)
    close(verax.grad(lambda p: f(p, scale=3.0, n=1)["out"])(p)["a"], 60)
    assert int(verax.jit(f)(p, 1)["n"]) == 2


def test_nondifferentiable_arguments() -> None:
    @partial(verax.custom_jvp, nondiff_argnums=(0,))
    def apply(fun: Callable[..., Any], x: Any) -> Any:
        return fun(x)

    @apply.defjvp
    def apply_jvp(fun: Callable[..., Any], primals: Any, tangents: Any) -> Any:
        return apply(fun, *primals), 3 * tangents[0]

    close(apply(vnp.sin, 1.0), np.sin(1))
    close(verax.jit(verax.grad(partial(apply, vnp.sin)))(1.0), 3)
    # What the function closes over is differentiated as the function says.
    close(verax.grad(lambda a: apply(lambda x: x * a, a))(2.0), 3 + 2)

    named = verax.custom_jvp(lambda x, mode: x, nondiff_argnames="mode")
    named.defjvp(lambda mode, p, t: (p[0], {"two": 2, "six": 6}[mode] * t[0]))
    close(verax.grad(lambda x: named(x, mode="six"))(1.0), 6)
    close(verax.grad(lambda x: named(x, "two"))(1.0), 2)


def test_nondifferentiable_arrays() -> None:
    f = verax.custom_jvp(lambda x, w: x * w.sum(), nondiff_argnums=1)
    f.defjvp(lambda w, p, t: (f(p[0], w), 2 * t[0] * w.sum()))
    close(verax.grad(lambda x: f(x, np.ones(3, np.float32)))(1.0), 6)
    close(verax.jit(verax.grad(lambda x: f(x, vnp.ones(3))))(1.0), 6)


def test_closed_over_tracers_become_operands() -> None:
    def outer(a: Any) -> Any:
        @verax.custom_jvp
        def f(x: Any) -> Any:
            return x * a * a

        @f.defjvp
        def f_jvp(primals: Any, tangents: Any) -> Any:
            return f(*primals), 10 * a * tangents[0]

        return f(2 * a)

    # 10 a for the argument, times 2; and the function's own derivative in a.
    expected = 20 * XS + 4 * XS * XS
    close(verax.grad(outer)(3.0), 60 + 36)
    close(verax.grad(verax.jit(outer))(3.0), 60 + 36)
    close(verax.vmap(verax.grad(outer))(XS), expected)
    close(verax.jit(verax.vmap(outer))(XS), 2 * XS**3)
    close(verax.grad(lambda x: verax.vmap(outer)(x).sum())(XS), expected)
    close(verax.grad(verax.grad(outer))(3.0), 20 + 24)


def test_symbolic_zeros() -> None:
    seen: list[Any] = []
    f = verax.custom_jvp(lambda x, y: (x * y, y))

    def rule(primals: Any, tangents: Any) -> Any:
        seen.append([isinstance(t, SymbolicZero) for t in tangents])
        t, u = tangents
        pushed = t if isinstance(t, SymbolicZero) else 5 * t
        return f(*primals), (pushed, u)

    f.defjvp(rule, symbolic_zeros=True)
    verax.jit(verax.grad(lambda x: f(x, 2.0)[0]))(1.0)
    assert seen == [[False, True]]
    close(verax.jvp(f, (1.0, 2.0), (1.0, 0.0))[1][0], 5)
    close(verax.grad(lambda y: f(1.0, y)[0])(2.0), 0)


def test_methods_and_unused_results() -> None:
    class Scale:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @partial(verax.custom_jvp, nondiff_argnums=(0,))
        def __call__(self, x: Any) -> Any:
            return x * self.factor, x

        @__call__.defjvp
        def rule(self, primals: Any, tangents: Any) -> Any:
            return self(*primals), (7 * tangents[0], tangents[0])

    model: Any = Scale(3.0)
    close(verax.jit(lambda x: model(x)[0])(2.0), 6)
    close(verax.grad(lambda x: verax.jit(lambda y: model(y)[0])(x))(2.0), 7)


def test_traces_are_equal_and_print() -> None:
    f = marked()
    first, second = verax.make_jaxpr(f)(1.0), verax.make_jaxpr(f)(1.0)
    assert first == second
    assert hash(first) == hash(second)
    assert "custom_jvp_call[" in str(first)
    assert "rule=UserJvp(name=f)" in str(first)


def test_rule_is_traced_once_per_types(capsys: pytest.CaptureFixture[str]) -> None:
    f = verax.custom_jvp(lambda x: x * x)

    def rule(primals: Any, tangents: Any) -> Any:
        print("traced")
        return f(*primals), tangents[0]

    f.defjvp(rule)
    for _ in range(3):
        verax.grad(lambda x: f(x) + f(2 * x))(1.0)
    assert capsys.readouterr().out == "traced\n"


def bad(rule: Any, match: str, fun: Any = lambda x: x) -> None:
    fun.__name__ = "f"
    f = verax.custom_jvp(fun)
    f.defjvp(rule)
    with pytest.raises(TypeError, match=match):
        verax.grad(f)(1.0)
    with pytest.raises(TypeError, match=match):
        verax.jit(verax.grad(f))(1.0)


def test_rules_that_do_not_fit() -> None:
    bad(
        lambda p, t: ((p[0], p[0]), (t[0], t[0])),
        r"(?s)equal in value .* structure:\n    \(float32\[\], float32\[\]\)\nwhile "
        r"the custom_jvp-decorated function f had output .*:\n    float32\[\]\.",
    )
    bad(lambda p, t: p[0], "f must produce a pair")
    bad(
        lambda p, t: (p, t[0]),
        "f must produce primal and tangent outputs with equal container",
    )
    bad(
        lambda p, t: (p[0], t),
        "f must produce primal and tangent outputs with equal container",
    )
    bad(
        lambda p, t: (p[0], vnp.ones(3) * t[0]),
        r"Expected float32\[\] .* got float32\[3\].*0 of the jvp rule of f",
    )
    bad(
        lambda p, t: (vnp.ones(2, np.int8), t[0]),
        r"of the jvp rule of f: got JVP output type int8\[2\] which doesn't match",
    )


def test_missing_rule_and_bad_calls() -> None:
    f = verax.custom_jvp(lambda x: x)
    with pytest.raises(
        AttributeError, match=r"No JVP .* custom_jvp function .* using defjvp"
    ):
        f(1.0)
    f.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(TypeError, match="too many positional arguments"):
        verax.jit(f)(1.0, 2.0)
    with pytest.raises(TypeError, match="not an array"):
        verax.jit(lambda: f("text"))()
    with pytest.raises(ValueError, match=r"nondiff_argnames names 'z'"):
        verax.custom_jvp(lambda x: x, nondiff_argnames="z")
    with pytest.raises(ValueError, match="must hold non-negative"):
        verax.custom_jvp(lambda x: x, nondiff_argnums=-1)
    keyword = verax.custom_jvp(lambda x, *, y: x)
    keyword.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(TypeError, match="could not be resolved to positions: "):
        verax.jit(keyword)(1.0, y=2.0)


def test_leaked_tracers_in_rules_are_errors() -> None:
    f: verax.custom_jvp = marked()

    def store(a: Any) -> Any:
        @f.defjvp
        def late(primals: Any, tangents: Any) -> Any:
            return primals[0], tangents[0] * a

        return a

    verax.jit(store)(1.0)
    with pytest.raises(verax.LeakedTracer):
        verax.grad(f)(1.0)


def test_widths_may_change_after_a_rule_was_traced() -> None:
    """What a rule is traced under is no setting of this thread."""
    f = verax.custom_jvp(lambda x: 2 * x)
    f.defjvp(lambda primals, tangents: (f(*primals), 2 * tangents[0]))
    verax.grad(f)(1.0)
    before = verax.config.read("enable_x64")
    try:
        verax.config.update("enable_x64", not before)
        assert (vnp.sin(np.array([0.3])).dtype == np.float64) is not before
    finally:
        verax.config.update("enable_x64", before)


def test_a_collective_of_what_is_not_batched_stays_unbatched() -> None:
    @verax.custom_jvp
    def total(x: Any) -> Any:
        return verax.lax.psum(x, "i")

    total.defjvp(lambda p, t: (verax.lax.psum(p[0], "i"), t[0]))

    @verax.custom_vjp
    def pulled(x: Any) -> Any:
        return verax.lax.psum(x, "i")

    pulled.defvjp(lambda x: (pulled(x), None), lambda _, ct: (ct,))
    xs = vnp.arange(4.0)
    for f in (total, pulled):
        actual = verax.vmap(lambda _, x, f=f: f(x), (0, None), None, axis_name="i")
        assert actual(xs, 2.0) == 8.0

        def weighed(x: Any, f: Any = f) -> Any:
            each = verax.vmap(lambda a, x: a * f(x), (0, None), axis_name="i")
            return each(xs, x).sum()

        assert verax.grad(weighed)(2.0) == 6.0


def test_a_rule_may_not_differ_between_elements_where_its_function_does_not() -> None:
    @verax.custom_jvp
    def total(x: Any) -> Any:
        return verax.lax.psum(x, "i")

    @total.defjvp
    def rule(p: Any, t: Any) -> Any:
        return verax.lax.psum(p[0], "i"), t[0] * verax.lax.axis_index("i")

    each = verax.vmap(lambda _, x: total(x), (0, None), axis_name="i")
    with pytest.raises(ValueError, match="batched along the mapped axis"):
        verax.jvp(lambda x: each(vnp.arange(3.0), x), (2.0,), (1.0,))

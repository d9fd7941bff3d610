"""Functions with reverse-mode rules, and what is made of them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.api.tracing.apply import ENGINE
from verax.custom_derivatives import CustomVJPPrimal, SymbolicZero, linear_call


def close(x: Any, y: Any) -> None:
    np.testing.assert_allclose(np.asarray(x), np.asarray(y), 1e-5, 1e-5)


XS = np.linspace(0, 1, 4, dtype=np.float32)


@verax.custom_vjp
def product(x: Any, y: Any) -> Any:
    """x sin(y), with derivatives that are 3 and 5 times too large."""
    return x * vnp.sin(y)


def product_fwd(x: Any, y: Any) -> Any:
    return x * vnp.sin(y), {"x": x, "y": [y]}


def product_bwd(saved: Any, ct: Any) -> Any:
    x, (y,) = saved["x"], saved["y"]
    return 3 * ct * vnp.sin(y), 5 * ct * x * vnp.cos(y)


product.defvjp(product_fwd, product_bwd)


def test_rules_in_reverse_mode() -> None:
    expected = (3 * np.sin(3), 10 * np.cos(3))
    close(product(2.0, 3.0), 2 * np.sin(3))
    close(verax.grad(product, (0, 1))(2.0, 3.0), expected)
    close(verax.jit(verax.grad(product, (0, 1)))(2.0, 3.0), expected)
    close(verax.grad(verax.jit(product), (0, 1))(2.0, 3.0), expected)
    close(verax.grad(lambda x: verax.grad(product)(x, 3 * x))(2.0), 9 * np.cos(6))
    close(verax.jvp(verax.grad(product, 1), (2.0, 3.0), (1.0, 0.0))[1], 5 * np.cos(3))


def test_cotangents_of_what_is_not_batched_are_summed() -> None:
    def total(x: Any, y: Any) -> Any:
        return verax.vmap(product, (0, None))(x, y).sum()

    slopes = verax.grad(total, (0, 1))(XS, 2.0)
    close(slopes[0], 3 * np.sin(2) * np.ones(4))
    close(slopes[1], 5 * XS.sum() * np.cos(2))
    twice = verax.vmap(verax.vmap(product, (None, 0)), (0, None), 1)
    slopes = verax.grad(lambda x, y: twice(x, y).sum(), (0, 1))(XS, XS)
    close(slopes[0], 3 * np.sin(XS).sum() * np.ones(4))
    close(slopes[1], 5 * XS.sum() * np.cos(XS))
    close(verax.vmap(verax.grad(product), (0, None))(XS, 2.0), 3 * np.sin(2))


def test_forward_mode_is_an_error_that_says_so() -> None:
    runs: list[Callable[[], Any]] = [
        lambda: verax.jvp(product, (1.0, 2.0), (1.0, 1.0)),
        lambda: verax.jit(lambda x: verax.jvp(product, (x, x), (x, x)))(1.0),
        lambda: verax.linearize(product, 1.0, 2.0)[1](1.0, 1.0),
        lambda: verax.jacfwd(product)(1.0, 2.0),
    ]
    for run in runs:
        with pytest.raises(TypeError, match=r"can't apply forward-mode .* product"):
            run()


def test_none_and_integers() -> None:
    f = verax.custom_vjp(lambda x, n, p: x * n)
    f.defvjp(lambda x, n, p: (x * n, n), lambda n, ct: (2 * ct * n, None, None))
    slope = verax.grad(f, (0, 2))(3.0, 4, {"a": 1.0, "b": [2.0]})
    close(slope[0], 8)
    close(slope[1]["b"][0], 0)
    assert verax.grad(f, 1, allow_int=True)(3.0, 4, 1.0).dtype == verax.float0
    g = verax.custom_vjp(lambda p: p["a"] * p["b"])
    g.defvjp(lambda p: (g(p), p), lambda p, ct: ({"a": ct * 9, "b": None},))
    close(verax.grad(g)({"a": 1.0, "b": 2.0})["a"], 9)


@verax.custom_vjp
def recording(x: Any, state: Any) -> Any:
    """`x`, and as the gradient of `state` what `state` is afterwards."""
    return x


recording.defvjp(lambda x, state: (x, state), lambda state, ct: (None, state + 7.0))


@verax.custom_vjp
def second(x: Any, y: Any) -> Any:
    return 2 * y


second.defvjp(lambda x, y: (second(x, y), None), lambda _, ct: (None, ct))


def test_a_rule_is_called_with_zeros_that_another_rule_returned() -> None:
    def total(x: Any, state: Any) -> Any:
        return second(3.0 * recording(x, state), x).sum()

    def unused(x: Any, state: Any) -> Any:
        recording(x, state)
        return x.sum()

    x = vnp.ones(3)
    for wrap in (lambda f: f, verax.jit, verax.checkpoint):
        slope, state = verax.grad(wrap(total), (0, 1))(x, 1.0)
        assert (slope.tolist(), float(state)) == ([1, 1, 1], 8)
        assert float(verax.grad(wrap(unused), 1)(x, 1.0)) == 0
    _, transposed = verax.linearize(total, x, 1.0)
    pulled = verax.linear_transpose(transposed, x, 1.0)(1.0)
    assert [vnp.asarray(ct).tolist() for ct in pulled] == [[1, 1, 1], 8]


def test_nondifferentiable_arguments() -> None:
    @partial(verax.custom_vjp, nondiff_argnums=(1,))
    def clipped(x: Any, bound: Any) -> Any:
        return x

    clipped.defvjp(
        lambda x, bound: (x, None),
        lambda bound, saved, ct: (vnp.clip(ct, -bound, bound),),
    )
    close(verax.grad(lambda x: 5 * clipped(x, 1.0))(1.0), 1)
    close(verax.jit(verax.grad(lambda x: 5 * clipped(x, bound=2.0)))(1.0), 2)
    close(verax.grad(lambda x: (5 * clipped(x, vnp.ones(4))).sum())(XS), 1)


def test_closed_over_tracers_become_operands() -> None:
    def outer(a: Any) -> Any:
        @verax.custom_vjp
        def f(x: Any) -> Any:
            return x * a * a

        f.defvjp(lambda x: (f(x), x), lambda x, ct: (10 * a * ct,))
        return f(2 * a)

    expected = 20 * XS + 4 * XS * XS
    close(verax.grad(outer)(3.0), 96)
    close(verax.grad(verax.jit(outer))(3.0), 96)
    close(verax.vmap(verax.grad(outer))(XS), expected)
    close(verax.grad(lambda x: verax.vmap(outer)(x).sum())(XS), expected)
    close(verax.grad(verax.grad(outer))(3.0), 44)


def test_rules_that_branch_on_values() -> None:
    f = verax.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, 2.0 if x > 0 else 3.0), lambda k, ct: (k * ct,))
    close(verax.grad(f)(1.0), 2)
    close(verax.grad(f)(-1.0), 3)


def test_symbolic_zeros() -> None:
    seen: list[Any] = []
    f = verax.custom_vjp(lambda x, y: (x * y, x + y))

    def fwd(x: CustomVJPPrimal, y: CustomVJPPrimal) -> Any:
        seen.append((x.perturbed, y.perturbed))
        return f(x.value, y.value), y.value

    def bwd(y: Any, cts: Any) -> Any:
        seen.append(tuple(isinstance(ct, SymbolicZero) for ct in cts))
        return 2 * cts[0] * y, SymbolicZero(cts[0].aval)

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    close(verax.jit(verax.grad(lambda x: f(x, 3.0)[0]))(1.0), 6)
    assert seen == [(True, False), (False, True)]


def test_unused_results() -> None:
    f = verax.custom_vjp(lambda x: (x, 2 * x, x + 1))
    f.defvjp(lambda x: (f(x), x), lambda x, cts: (cts[0] + 10 * cts[1] + cts[2],))
    inner = verax.jit(lambda x: f(x)[1])
    close(verax.jit(inner)(2.0), 4)
    close(verax.grad(lambda x: verax.jit(inner)(x))(2.0), 10)


def test_rules_that_do_not_fit() -> None:
    def bad(fwd: Any, bwd: Any, match: str) -> None:
        @verax.custom_vjp
        def f(x: Any, y: Any) -> Any:
            return x * y

        f.defvjp(fwd, bwd)
        with pytest.raises(TypeError, match=match):
            verax.grad(f)(1.0, 2.0)

    def good(x: Any, y: Any) -> Any:
        return x * y, (x, y)

    bad(
        lambda x, y: x,
        lambda r, ct: (ct, ct),
        "fwd rule .* function f must produce a pair",
    )
    bad(
        lambda x, y: ([x], y),
        lambda r, ct: (ct, ct),
        r"(?s)for function f must produce a pair .* and the second element represents "
        r"residuals .* structure:\n    \[float32\[\]\]\nwhile .*:\n    float32\[\]\.",
    )
    bad(
        lambda x, y: (vnp.ones((3,)), y),
        lambda r, ct: (ct, ct),
        r"of the fwd rule of f: got fwd output type float32\[3\] which doesn't match",
    )
    bad(
        good,
        lambda r, ct: (ct,),
        "bwd rule .* function f must produce a tuple of 2",
    )
    bad(
        good,
        lambda r, ct: ct,
        "bwd rule .* function f must produce a tuple of 2",
    )
    bad(
        good,
        lambda r, ct: (ct, vnp.ones(3)),
        r"output\[1\] the bwd rule attached to f .* float32\[3\], .* argument 1 .*\[\]",
    )
    bad(
        good,
        lambda r, ct: ([ct], ct),
        "bwd rule .* function f must produce the cotangent of argument 0",
    )
    with pytest.raises(
        AttributeError, match=r"No VJP .* custom_vjp function .* using defvjp"
    ):
        verax.custom_vjp(lambda x: x)(1.0)


def test_custom_gradient() -> None:
    @verax.custom_gradient
    def f(x: Any, y: Any) -> Any:
        return {"out": x * y}, lambda ct: (10 * ct["out"] * y, 20 * ct["out"] * x)

    def out(x: Any, y: Any) -> Any:
        return f(x, y)["out"]

    close(verax.grad(out, (0, 1))(2.0, 3.0), (30, 40))
    close(verax.jit(verax.grad(out, (0, 1)))(2.0, 3.0), (30, 40))
    close(verax.vmap(verax.grad(out), (0, None))(XS, 3.0), 30)
    close(verax.grad(verax.grad(out, 1))(2.0, 3.0), 20)
    close(verax.grad(verax.custom_gradient(lambda x: (x, lambda ct: 4 * ct)))(1.0), 4)


def test_closure_convert() -> None:
    @partial(verax.custom_vjp, nondiff_argnums=(0,))
    def apply(fun: Any, x: Any, *constants: Any) -> Any:
        return fun(x, *constants)

    apply.defvjp(
        lambda fun, x, *cs: (fun(x, *cs), (x, cs)),
        lambda fun, saved, ct: (ct, *[7 * ct * saved[0] for _ in saved[1]]),
    )

    def outer(a: Any) -> Any:
        converted, constants = verax.closure_convert(lambda x: x * a, 1.0)
        assert len(constants) == 1
        return apply(converted, 3.0, *constants)

    close(verax.grad(outer)(2.0), 21)
    close(verax.jit(verax.grad(outer))(2.0), 21)
    converted, constants = verax.closure_convert(lambda p: p["a"] + 1, {"a": 1.0})
    assert constants == []
    close(converted({"a": 2.0}), 3)
    with pytest.raises(TypeError, match="arguments with the structure"):
        converted(2.0)


def test_linear_call() -> None:
    def scale(r: Any, x: Any) -> Any:
        return linear_call(
            lambda r, x: {"y": vnp.sin(r) * x},
            lambda r, ct: 100 * ct["y"] * r,
            r,
            x,
        )["y"]

    close(scale(2.0, 3.0), 3 * np.sin(2))
    close(verax.grad(scale, 1)(2.0, 3.0), 200)
    close(verax.grad(scale, 0)(2.0, 3.0), 3 * np.cos(2))
    close(verax.jvp(scale, (2.0, 3.0), (0.0, 1.0))[1], np.sin(2))
    close(verax.linear_transpose(lambda x: scale(2.0, x), 1.0)(1.0)[0], 200)
    twice = verax.linear_transpose(lambda x: scale(2.0, x), 1.0)
    close(verax.linear_transpose(lambda ct: twice(ct)[0], 1.0)(1.0)[0], np.sin(2))
    close(verax.vmap(verax.grad(scale, 1))(XS, XS), 100 * XS)
    total = verax.jit(verax.grad(lambda x: verax.vmap(scale, (0, None))(XS, x).sum()))
    close(total(3.0), 100 * XS.sum())

    def pair(r: Any, x: Any) -> Any:
        return linear_call(
            lambda r, x: (r[0] * x[0], r[1] * x[1]),
            lambda r, ct: (r[0] * ct[0] * 10, r[1] * ct[1] * 100),
            r,
            x,
        )

    _, pull = verax.vjp(lambda x: pair((2.0, 3.0), x), (4.0, 5.0))
    close(pull((1.0, 2.0))[0], (20, 600))
    _, pull = verax.vjp(
        lambda x: linear_call(lambda r, x: x, lambda r, c: c, (), x), 1.0
    )
    close(pull(3.0)[0], 3)
    with pytest.raises(TypeError, match=r"float32\[2\] as the cotangent of leaf 0"):
        verax.jit(
            lambda x: linear_call(lambda r, x: x, lambda r, c: vnp.ones(2), 1.0, x)
        )(1.0)


def test_stop_gradient_of_trees() -> None:
    def f(p: Any) -> Any:
        held = verax.lax.stop_gradient(p)
        return held["a"] * p["a"] * held["n"]

    close(verax.grad(lambda a: f({"a": a, "n": 2}))(3.0), 6)


def test_custom_vmap() -> None:
    seen: list[Any] = []
    f = verax.custom_batching.custom_vmap(lambda x, y: x * y)

    @f.def_vmap
    def rule(axis_size: int, in_batched: Any, x: Any, y: Any) -> Any:
        seen.append((axis_size, in_batched))
        return x * y + 1, in_batched[0] or in_batched[1]

    close(f(2.0, 3.0), 6)
    close(verax.vmap(f, (0, None))(XS, 2.0), 2 * XS + 1)
    close(verax.jit(verax.vmap(f, (1, None), 0))(XS[None], 2.0), 2 * XS[:, None] + 1)
    assert seen[0] == (4, [True, False])
    close(verax.grad(f)(2.0, 3.0), 3)
    close(verax.vmap(verax.grad(f), (0, None))(XS, 3.0), 3)
    values, slopes = verax.vmap(verax.value_and_grad(f), (0, None))(XS, 3.0)
    close(values, 3 * XS + 1)
    close(slopes, 3)
    value, tangent = verax.vmap(
        lambda x, t: verax.jvp(lambda x: f(x, 2.0), (x,), (t,)), (None, 0)
    )(1.0, XS)
    close(tangent, 2 * XS)
    close(value, 3)
    f.def_vmap(lambda size, flags, x, y: (x, True))
    with pytest.raises(TypeError, match=r"vmap rule of .* is float32\[\], but float32"):
        verax.vmap(lambda y: f(1.0, y))(XS[:2])


def of_three(x: Any, n: Any, y: Any) -> Any:
    return vnp.sin(x) * y, n + 1, 2 * y


@pytest.mark.parametrize("moving", [("x",), ("y",), ("x", "y")])
def test_derivatives_of_custom_vmap_are_batched_by_the_rule(
    moving: tuple[str, ...],
) -> None:
    calls = []
    f = verax.custom_batching.custom_vmap(of_three)

    @f.def_vmap
    def rule(size: int, in_batched: Any, *args: Any) -> Any:
        calls.append(size)
        x, n, y = in_batched
        mask = x or y, n, y
        axes, out_axes = (
            tuple([0 if flag else None for flag in flags])
            for flags in (in_batched, mask)
        )
        return verax.vmap(of_three, axes, out_axes)(*args), mask

    values = {"x": XS[:3], "y": XS[1:] + 2}

    def along(fun: Any) -> Any:
        def pushed(x: Any, n: Any, y: Any, *ts: Any) -> Any:
            def of(given: Any) -> Any:
                both = {"x": x, "y": y} | given
                a, b, c = fun(both["x"], n, both["y"])
                return {"a": a, "c": c}, b

            point = {name: {"x": x, "y": y}[name] for name in moving}
            return verax.jvp(of, (point,), (dict(zip(moving, ts, strict=True)),), True)

        return pushed

    for flags in np.ndindex(*(2,) * (3 + len(moving))):
        if sum(flags) % 2 == 0:
            continue  # half of the ways are enough
        place = flags[0]
        axes = [place if flag else None for flag in flags]
        args: list[Any] = [values["x"], np.arange(3), values["y"]]
        args += [values[name] * 5 - 1 for name in moving]
        own = [
            np.stack([x, x + 1], place) if flag else x
            for x, flag in zip(args, flags, strict=True)
        ]
        actual = verax.vmap(along(f), axes)(*own)
        due = verax.vmap(along(of_three), axes)(*own)
        for ours, theirs in zip(*map(verax.tree.leaves, (actual, due)), strict=True):
            close(ours, theirs)
    assert calls


def test_unused_tangents_leave_the_rule_of_custom_vmap() -> None:
    def g(c: Any, x: Any, y: Any) -> Any:
        f = verax.custom_batching.custom_vmap(lambda x, y: (x + y, c * x * y))
        f.def_vmap(lambda size, flags, x, y: ((x, 5 * x * y), (flags[0], True)))
        return verax.jvp(f, (x, y), (1.0, 2.0))

    jaxpr = verax.make_jaxpr(lambda *xs: g(*xs)[0][1])(2.0, 3.0, 4.0).jaxpr
    slim, needed = ENGINE.dce(jaxpr, (True,))
    assert needed == (True,) * 3
    (call,) = slim.eqns
    assert len(call.invars) == 3
    assert len(call.outvars) == 1
    given = [np.array(2.0, np.float32), XS, np.array(4.0, np.float32)]
    batched, axes = ENGINE.batch(slim, 4, (None, 0, None))
    assert axes == (0,)
    (actual,) = ENGINE.evaluate(batched, given)
    close(actual, 20 * XS)
    whole = verax.make_jaxpr(lambda *xs: g(*xs)[1][0])(2.0, 3.0, 4.0).jaxpr
    kept, _ = ENGINE.dce(whole, (True,))
    assert len(kept.eqns[-1].outvars) == 4, "tangents all or none"
    batched, _ = ENGINE.batch(kept, 4, (None, 0, None))
    close(ENGINE.evaluate(batched, given)[0], 1.0)


def test_linear_derivative_batched_and_transposed() -> None:
    _, push = verax.linearize(lambda x: product(x, 2.0), 1.0)
    mapped = verax.linear_transpose(verax.vmap(push), XS)
    close(mapped(XS)[0], 3 * np.sin(2) * XS)


def test_linear_derivative_is_its_own_derivative() -> None:
    _, push = verax.linearize(product, 2.0, 3.0)
    slopes = 3 * np.sin(3), 10 * np.cos(3)

    def both(a: Any, b: Any, s: Any, t: Any) -> Any:
        return verax.jvp(push, (a, b), (s, t))[1]

    def first(a: Any, b: Any, s: Any) -> Any:
        return verax.jvp(lambda a: push(a, b), (a,), (s,))[1]

    def second(a: Any, b: Any, t: Any) -> Any:
        return verax.jvp(lambda b: push(a, b), (b,), (t,))[1]

    def at_a_point(s: Any) -> Any:
        return verax.jvp(lambda a: push(a, 1.0), (0.0,), (s,))[1]

    close(verax.linear_transpose(both, *[1.0] * 4)(1.0), (0, 0, *slopes))
    close(verax.linear_transpose(first, *[1.0] * 3)(1.0), (0, 0, slopes[0]))
    close(verax.linear_transpose(second, *[1.0] * 3)(1.0), (0, 0, slopes[1]))
    pull = verax.linear_transpose(at_a_point, 1.0)
    close(pull(1.0)[0], slopes[0])
    close(verax.jit(pull)(1.0)[0], slopes[0])


def test_several_results_of_a_derivative_batched_and_transposed() -> None:
    @verax.custom_vjp
    def both(x: Any) -> Any:
        return vnp.sin(x), x * vnp.ones(3)

    def backward(x: Any, cts: Any) -> Any:
        return (3 * cts[0] * vnp.cos(x) + 5 * cts[1].sum(),)

    both.defvjp(lambda x: (both(x), x), backward)
    _, push = verax.linearize(both, 1.0)
    pull = verax.linear_transpose(verax.vmap(push), XS)
    (actual,) = pull((XS, vnp.ones((4, 3))))
    close(actual, 3 * np.cos(1) * XS + 15)
    _, push = verax.linearize(verax.vmap(both), XS)
    pull = verax.linear_transpose(verax.vmap(push, 1), vnp.zeros((4, 2)))
    (actual,) = pull((vnp.ones((2, 4)), vnp.zeros((2, 4, 3))))
    close(actual, np.stack([3 * np.cos(XS)] * 2, 1))


def test_sequential_vmap() -> None:
    f = verax.custom_batching.sequential_vmap(lambda x, p: {"y": x * p["w"]})
    out = verax.vmap(f, (0, None))(XS, {"w": 3.0})["y"]
    close(out, 3 * XS)
    twice = verax.vmap(verax.vmap(f, (0, None)), (None, 0))(XS, {"w": XS})["y"]
    close(twice, XS[:, None] * XS)
    assert "scan" in str(verax.make_jaxpr(verax.vmap(f, (0, None)))(XS, {"w": 3.0}))


def test_rules_of_the_wrong_number_of_arguments_are_told() -> None:
    def f(x: Any, y: Any) -> Any:
        return x * y

    few = verax.custom_vjp(f)
    few.defvjp(lambda x: (x, None), lambda r, g: (g, g))
    words = (
        r"fwd rule of f is called with what f takes: 2 positional.*signature is \(x\)"
    )
    with pytest.raises(TypeError, match=words):
        verax.grad(few)(1.0, 2.0)
    back = verax.custom_vjp(f)
    back.defvjp(lambda x, y: (x, None), lambda g: (g, g))
    with pytest.raises(TypeError, match=r"bwd rule of f is called with the residuals"):
        verax.grad(back)(1.0, 2.0)
    held = verax.custom_vjp(f, nondiff_argnums=0)
    held.defvjp(lambda x, y: (x * y, None), lambda r, g: (g,))
    with pytest.raises(TypeError, match=r"nondifferentiable arguments, the residuals"):
        verax.grad(held, 1)(1.0, 2.0)
    forward = verax.custom_jvp(f)
    forward.defjvp(lambda primals: primals)
    with pytest.raises(TypeError, match=r"jvp rule of f is called with the primals"):
        verax.jvp(forward, (1.0, 2.0), (1.0, 1.0))
    mapped = verax.custom_batching.custom_vmap(f)
    mapped.def_vmap(lambda size, x, y: (x, True))
    with pytest.raises(TypeError, match=r"vmap rule of f is called with the axis size"):
        verax.vmap(mapped)(XS, XS)


def test_type_errors_of_rules_are_their_own() -> None:
    def inner(x: Any) -> Any:
        return x

    f = verax.custom_vjp(lambda x: x)
    f.defvjp(lambda x: inner(x, x), lambda r, g: (g,))  # type: ignore[call-arg]  # on purpose
    with pytest.raises(TypeError, match=r"inner\(\) takes 1 positional"):
        verax.grad(f)(1.0)


def test_rules_of_functions_within() -> None:
    """`custom_vjp(custom_vmap(f)).def_vmap` gives the rule to the inner function."""
    f = verax.custom_vjp(verax.custom_batching.custom_vmap(lambda x: x + 1))
    f.defvjp(lambda x: (f(x), None), lambda _, ct: (2 * ct,))
    f.def_vmap(lambda size, batched, x: (x + size, batched[0]))
    assert verax.vmap(f)(vnp.zeros(3)).tolist() == [3, 3, 3]
    assert float(verax.grad(f)(1.0)) == 2
    g = verax.custom_batching.custom_vmap(verax.custom_jvp(lambda x: x + 1))
    g.defjvp(lambda primals, tangents: (g(*primals), 5 * tangents[0]))
    g.def_vmap(lambda size, batched, x: (x, batched[0]))
    assert float(verax.jvp(g, (1.0,), (1.0,))[1]) == 5
    assert verax.vmap(g)(vnp.zeros(2)).tolist() == [0, 0]
    with pytest.raises(AttributeError, match=r"'custom_vjp' object has no .*'other'"):
        _ = f.other
    with pytest.raises(AttributeError, match="def_vmap"):
        _ = verax.custom_vjp(lambda x: x).def_vmap

"""Primitives of a program's own, as programs for JAX make them."""

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import verax
import verax.lax as lax
import verax.numpy as vnp
from verax.errors import MissingRule
from verax.jax.overlays import ad, batching, core, mlir
from verax.jax.primitives import Primitive


def scaled() -> Primitive:
    """A linear primitive of one result with a keyword."""
    scale_p = Primitive("scale")
    scale_p.def_abstract_eval(lambda x, *, by: x)
    scale_p.def_impl(lambda x, *, by: x * by)
    ad.deflinear(scale_p, lambda ct, by: [scale_p.bind(ct, by=by)])
    batching.defvectorized(scale_p)
    mlir.register_lowering(scale_p, mlir.lower_fun(lambda x, *, by: x * by, False))
    return scale_p


def divided() -> Primitive:
    """A primitive of two results."""
    divide_p = Primitive("divide")
    divide_p.multiple_results = True
    divide_p.def_abstract_eval(lambda x, y: [x, x])
    divide_p.def_impl(lambda x, y: [vnp.floor(x / y), x % y])
    return divide_p


def test_all_transformations_of_a_primitive() -> None:
    scale_p = scaled()

    def f(x: Any) -> Any:
        return scale_p.bind(x, by=3.0)

    x = vnp.arange(3.0)
    assert f(x).tolist() == verax.jit(f)(x).tolist() == [0, 3, 6]
    assert verax.vmap(f)(x).tolist() == [0, 3, 6]
    assert verax.grad(lambda x: f(x).sum())(x).tolist() == [3, 3, 3]
    assert verax.jvp(f, (x,), (x,))[1].tolist() == [0, 3, 6]
    assert verax.jit(verax.vmap(verax.grad(f)))(x).tolist() == [3, 3, 3]


def test_equations_know_their_primitive() -> None:
    scale_p, divide_p = scaled(), divided()

    def f(x: Any) -> Any:
        return divide_p.bind(scale_p.bind(x, by=2.0), x)

    first, second = verax.make_jaxpr(f)(4.0).jaxpr.eqns
    names = {scale_p: "scale", divide_p: "divide", lax.sin_p: "sin"}
    assert names[first.primitive] == "scale"
    assert names[second.primitive] == "divide"
    assert first.primitive == scale_p == first.primitive
    assert first.primitive != divide_p
    assert divide_p != first.primitive
    assert [p.multiple_results for p in (first.primitive, second.primitive)] == [
        False,
        True,
    ]
    assert dict(first.params) == {"by": 2.0}
    assert "by" in first.params
    assert len(second.params) == 0
    assert all(isinstance(p, Primitive) for p in (first.primitive, scale_p, lax.sin_p))
    assert core.Primitive is Primitive

    class Special(Primitive):
        """A class of a library's own."""

    assert not isinstance(first.primitive, Special)
    assert isinstance(Special("s"), Special)


def test_programs_that_walk_equations() -> None:
    scale_p, divide_p = scaled(), divided()

    def f(x: Any) -> Any:
        quotient, rest = divide_p.bind(scale_p.bind(x, by=2.0), 3.0)
        return vnp.sin(quotient) + rest

    closed = verax.make_jaxpr(f)(4.0)
    env: dict[Any, Any] = dict(zip(closed.jaxpr.invars, [4.0], strict=True))
    for eqn in closed.jaxpr.eqns:
        operands = [getattr(a, "value", None) or env.get(a) for a in eqn.invars]
        params = eqn.primitive.get_bind_params(eqn.params)
        actual = eqn.primitive.bind(*operands, **params)
        outs = actual if eqn.primitive.multiple_results else [actual]
        env |= dict(zip(eqn.outvars, outs, strict=True))
    (out,) = closed.jaxpr.outvars
    np.testing.assert_allclose(env[out], f(4.0), rtol=1e-6)


def test_rules_may_change() -> None:
    change_p = Primitive("change")
    change_p.def_abstract_eval(lambda x: x)
    change_p.def_impl(lambda x: x + 1)
    before = change_p.row()
    assert verax.jit(change_p.bind)(1.0) == 2
    assert change_p.row() is before
    change_p.def_impl(lambda x: x + 2)
    assert verax.jit(change_p.bind)(1.0) == 3
    after = change_p.row()
    assert before != after
    assert change_p == before
    assert change_p == after
    assert hash(before) == hash(after) == hash(change_p)


def test_derivatives_by_operand() -> None:
    times_p = Primitive("times")
    times_p.def_abstract_eval(lambda x, y: x)
    times_p.def_impl(lambda x, y: x * y)
    ad.defjvp(times_p, lambda t, x, y: t * y, lambda t, x, y: x * t)
    assert verax.grad(times_p.bind, (0, 1))(2.0, 3.0) == (3.0, 2.0)
    assert verax.jvp(lambda x: times_p.bind(x, 3.0), (2.0,), (1.0,))[1] == 3
    power_p = Primitive("exponential")
    power_p.def_abstract_eval(lambda x: x)
    power_p.def_impl(vnp.exp)
    ad.defjvp2(power_p, lambda t, answer, x: t * answer)
    assert verax.grad(power_p.bind)(0.0) == 1


def test_transposes_see_undefined_primals() -> None:
    times_p = Primitive("times")
    times_p.def_abstract_eval(lambda x, y: x)
    times_p.def_impl(lambda x, y: x * y)
    seen: list[tuple[bool, ...]] = []

    def jvp(primals: Any, tangents: Any) -> Any:
        (x, y), (t, zero) = primals, tangents
        assert type(zero) is ad.Zero
        return times_p.bind(x, y), times_p.bind(ad.instantiate_zeros(t), y)

    def transpose(ct: Any, x: Any, y: Any) -> Any:
        seen.append((ad.is_undefined_primal(x), ad.is_undefined_primal(y)))
        assert isinstance(x, ad.UndefinedPrimal)
        assert x.aval.shape == ct.shape
        return ct * y, None

    ad.primitive_jvps[times_p] = jvp
    ad.primitive_transposes[times_p] = transpose
    assert verax.grad(lambda x: times_p.bind(x, 3.0))(2.0) == 3
    assert seen == [(True, False)]
    zero = ad.Zero.from_primal_value(vnp.arange(3))
    assert ad.instantiate_zeros(zero).shape == (3,)


def test_batch_rules_of_both_kinds() -> None:
    count_p = Primitive("count")
    count_p.def_abstract_eval(lambda x: x)
    count_p.def_impl(lambda x: x)

    def plain(args: Sequence[Any], dims: Sequence[Any]) -> Any:
        return count_p.bind(args[0] + 1), dims[0]

    batching.primitive_batchers[count_p] = plain
    x = vnp.zeros((2, 3))
    assert verax.vmap(count_p.bind, 1, 1)(x).tolist() == [[1] * 3] * 2
    size_p = Primitive("size")
    size_p.def_abstract_eval(lambda x: x)
    size_p.def_impl(lambda x: x)

    def with_axis(data: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
        return args[0] + data.size, dims[0]

    batching.fancy_primitive_batchers[size_p] = with_axis
    assert verax.vmap(size_p.bind, axis_name="i")(x).tolist() == [[2] * 3] * 2


def test_params_without_a_hash() -> None:
    pick_p = Primitive("pick")
    pick_p.def_abstract_eval(lambda x, *, table: x)
    pick_p.def_impl(lambda x, *, table: x * table["by"])
    table = {"by": 3.0}
    assert verax.jit(lambda x: pick_p.bind(x, table=table))(2.0) == 6
    (eqn,) = verax.make_jaxpr(lambda x: pick_p.bind(x, table=table))(2.0).jaxpr.eqns
    assert eqn.params["table"] is table


def test_refusals() -> None:
    with pytest.raises(NotImplementedError, match="sin is a primitive of verax"):
        ad.primitive_jvps[lax.sin_p] = lambda primals, tangents: None
    with pytest.raises(NotImplementedError, match="sin is a primitive of verax"):
        batching.defvectorized(lax.sin_p)  # type: ignore[arg-type]  # refused
    built_p = Primitive("built")
    built_p.def_abstract_eval(lambda x: x)
    mlir.register_lowering(built_p, lambda ctx, x: [ctx.builder.op(x)])
    with pytest.raises(MissingRule, match="no attribute 'builder'"):
        verax.jit(built_p.bind)(1.0)
    unsaid_p = Primitive("unsaid")
    unsaid_p.def_abstract_eval(lambda x: x)
    with pytest.raises(MissingRule, match=r"primitive unsaid has no lowering"):
        verax.jit(unsaid_p.bind)(1.0)
    with pytest.raises(NotImplementedError, match="no abstract evaluation rule"):
        Primitive("bare").bind(1.0)


def test_what_moves_is_told_from_what_does_not() -> None:
    seen: list[bool] = []

    def f(x: Any) -> Any:
        fixed = vnp.ones(3) * 2
        inner = verax.jit(lambda a, b: (a * 2, b * 3))
        for y in (x, x * 2, fixed, *inner(x, fixed), lax.stop_gradient(x), x > 1, 1.0):
            seen.append(isinstance(y, ad.JVPTracer))
        return x

    verax.jvp(f, (vnp.ones(3),), (vnp.ones(3),))
    due = [True, True, False, True, False, False, False, False]
    assert seen == due
    verax.jit(lambda x: verax.jvp(f, (x,), (x,)))(vnp.ones(3))
    assert seen[len(due) :] == due
    with pytest.raises(NotImplementedError, match="makes the tracers"):
        ad.JVPTracer(None)


def test_a_lowering_that_calls_python() -> None:
    calls: list[str] = []
    look_p = Primitive("look")
    look_p.multiple_results = True

    def look(x: Any) -> list[Any]:
        calls.append("impl")
        return [x + float(x.max())]  # so it needs the value

    look_p.def_impl(look)
    look_p.def_abstract_eval(lambda x: [x])

    def host(x: Any) -> Any:
        calls.append("host")
        return (np.asarray(x) + np.asarray(x).max(),)

    def lowering(ctx: Any, x: Any) -> Any:
        actual, token, keep = mlir.emit_python_callback(
            ctx, host, None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False
        )
        ctx.module_context.add_keepalive(keep)
        assert token is None
        return actual

    mlir.register_lowering(look_p, lowering)
    x = vnp.array([1.0, 2.0])
    assert look_p.bind(x)[0].tolist() == [3, 4]
    assert calls == ["impl"]
    assert verax.jit(lambda x: look_p.bind(x * 2)[0])(x).tolist() == [6, 8]
    assert calls[-1] == "host"


def test_a_lowering_that_builds_a_module() -> None:
    """With the bindings of MLIR, as rules for JAX are written."""
    dialect: Any = importlib.import_module("jaxlib.mlir.dialects.stablehlo")
    made_p = Primitive("made")
    made_p.def_abstract_eval(lambda x, y, *, by: x)

    def rule(ctx: Any, x: Any, y: Any, *, by: float) -> list[Any]:
        (aval, _) = ctx.avals_in
        assert str(x.type) == str(mlir.aval_to_ir_type(aval))
        factor = mlir.ir_constant(np.full(aval.shape, by, aval.dtype))
        return [dialect.AddOp(dialect.MulOp(x, factor), y).result]

    mlir.register_lowering(made_p, rule)
    x, y = vnp.arange(3.0), vnp.ones(3)

    def f(x: Any, y: Any) -> Any:
        return made_p.bind(x, y, by=2.0)

    assert f(x, y).tolist() == verax.jit(f)(x, y).tolist() == [1, 3, 5]
    stacked = vnp.stack([x, x])
    assert verax.vmap(f, (0, None))(stacked, y).tolist() == [[1, 3, 5]] * 2
    with pytest.raises(NotImplementedError, match="rule for 'made' not implemented"):
        verax.jvp(lambda x: f(x, y), (x,), (x,))
    ad.primitive_jvps[made_p] = lambda xs, ts, by: (
        made_p.bind(*xs, by=by),
        ts[0] * by + ad.instantiate_zeros(ts[1]),
    )
    assert verax.grad(lambda x: f(x, y).sum())(x).tolist() == [2, 2, 2]


def test_programs_have_the_lowering_and_eager_calls_the_implementation() -> None:
    dialect: Any = importlib.import_module("jaxlib.mlir.dialects.stablehlo")
    both_p, odd_p = Primitive("both"), Primitive("odd")
    for primitive in (both_p, odd_p):
        primitive.def_abstract_eval(lambda x: x)
        primitive.def_impl(lambda x: x + 1)
    mlir.register_lowering(both_p, lambda ctx, x: [dialect.NegOp(x).result])
    mlir.register_lowering(odd_p, lambda ctx, x: ctx.nothing_that_verax_has)
    x = vnp.arange(3.0)
    assert both_p.bind(x).tolist() == [1, 2, 3]
    assert verax.jit(both_p.bind)(x).tolist() == [0, -1, -2]
    assert verax.vmap(verax.jit(both_p.bind))(x).tolist() == [0, -1, -2]
    # What no lowering can do here, the implementation does.
    assert odd_p.bind(x).tolist() == verax.jit(odd_p.bind)(x).tolist() == [1, 2, 3]


def test_a_type_rule_returns_one_type_or_several() -> None:
    one_p, several_p = Primitive("one"), Primitive("several")
    several_p.multiple_results = True
    one_p.def_abstract_eval(lambda x: [x])
    several_p.def_abstract_eval(lambda x: x)
    for p in (one_p, several_p):
        p.def_impl(lambda x: x)
        message = rf"{p.name}.abstract_eval\(\) method should return a tuple or list"
        with pytest.raises(ValueError, match=message):
            verax.jit(p.bind)(1.0)

"""What `narrow` makes of programs: where casts stand, and what goes through bodies."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import verax
import verax.numpy as vnp
from verax import lax
from verax.extend import NO_PARAMS, elementwise, opened as opened_function, stablehlo
from verax.ir.dtypes import bfloat16, float16, float64, is_inexact
from verax.ir.jaxpr import Eqn, Jaxpr
from verax.ir.walk import walk
from verax.ops.contraction.dot import DotParams, dot_general_p
from verax.ops.control.scan import scan_p
from verax.ops.elementwise.convert import convert_element_type_p
from verax.rules.rows.row import Narrow
from verax.transforms.narrowing.plan import Keep, Narrowing
from verax.transforms.narrowing.report import casts_in
from verax.transforms.narrowing.writer import narrowed

PLAN = Narrowing(bfloat16)
X = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((8, 8)).astype(np.float32) / 3


def program_of(fun: Callable[..., Any], *args: Any) -> Jaxpr:
    return opened_function(fun, args).jaxpr


def narrow_program(
    fun: Callable[..., Any], *args: Any, plan: Narrowing = PLAN
) -> Jaxpr:
    return narrowed(plan, program_of(fun, *args))


def names(jaxpr: Jaxpr) -> list[str]:
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def casts(jaxpr: Jaxpr) -> list[Eqn]:
    """All conversions, in programs inside too."""
    return [eqn for _, eqn in walk(jaxpr) if eqn.primitive is convert_element_type_p]


def products(jaxpr: Jaxpr) -> list[Eqn]:
    return [eqn for _, eqn in walk(jaxpr) if eqn.primitive is dot_general_p]


def is_narrow(eqn: Eqn) -> bool:
    return all([a.aval.dtype == bfloat16 for a in eqn.invars])


def test_operands_are_narrow_and_sums_wide() -> None:
    (first, second, product) = narrow_program(lambda x, w: x @ w, X, W).eqns
    assert first.primitive is second.primitive is convert_element_type_p
    assert is_narrow(product)
    assert product.outvars[0].aval.dtype == np.float32


def test_a_value_is_rounded_once_however_many_products_read_it() -> None:
    jaxpr = narrow_program(lambda x, w: (x @ w) + (x @ w.T) + (w @ x), X, W)
    assert len(casts(jaxpr)) == 2


def test_a_rounding_of_the_users_is_shared() -> None:
    def f(x: Any, w: Any) -> Any:
        return x.astype(vnp.bfloat16), x @ w

    assert len(casts(narrow_program(f, X, W))) == 2


def test_a_value_that_was_narrow_is_not_rounded_again() -> None:
    def f(x: Any, w: Any) -> Any:
        return x.astype(vnp.bfloat16).astype(vnp.float32) @ w

    (up, down) = casts(program_of(lambda x, w: f(x, w), X, W))
    assert up.outvars[0].aval.dtype == bfloat16
    assert down.outvars[0].aval.dtype == np.float32
    jaxpr = narrow_program(f, X, W)
    assert len(casts(jaxpr)) == casts_in(PLAN, jaxpr) == 2


def test_a_wide_value_is_not_replaced_by_a_rounded_one() -> None:
    def f(x: Any, w: Any) -> Any:
        return x @ w, x + 1.0

    jaxpr = narrow_program(f, X, W)
    (add,) = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "add"]
    assert add.invars[0] is jaxpr.invars[0]


def test_rows_are_picked_before_they_are_rounded() -> None:
    def f(table: Any, i: Any, w: Any) -> Any:
        return table[i] @ w

    table = np.zeros((1000, 8), np.float32)
    jaxpr = narrow_program(f, table, np.array([1, 2]), W)
    sizes = [eqn.outvars[0].aval.size for eqn in casts(jaxpr) if is_float_cast(eqn)]
    assert max(sizes) == W.size


def is_float_cast(eqn: Eqn) -> bool:
    return is_inexact(eqn.outvars[0].aval.dtype)


def test_what_is_split_is_rounded_as_a_whole() -> None:
    def f(x: Any, w: Any) -> Any:
        q, k = x[:, :4], x[:, 4:]
        return q @ k.T

    assert len(casts(narrow_program(f, X, W))) == 1


def test_products_of_vectors_are_sums_and_stay_wide() -> None:
    jaxpr = program_of(lambda x: x @ x, X[0])
    assert narrowed(PLAN, jaxpr) is jaxpr


def test_a_requested_precision_stays() -> None:
    jaxpr = program_of(lambda x: vnp.matmul(x, x, precision="highest"), X)
    assert narrowed(PLAN, jaxpr) is jaxpr


def test_weights_are_rounded_outside_of_their_loop() -> None:
    def f(w: Any, x: Any) -> Any:
        return lax.scan(lambda h, _: (vnp.tanh(h @ w), None), x, None, length=3)[0]

    jaxpr = narrow_program(f, W, X)
    (loop,) = [eqn for eqn in jaxpr.eqns if eqn.primitive is scan_p]
    inside = next(iter(loop.params.subjaxprs()))
    assert len(casts(inside)) == 1  # of the state; the weights come narrow
    assert loop.invars[0].aval.dtype == bfloat16


def test_arrays_that_a_loop_closes_over_are_rounded_outside() -> None:
    w = vnp.array(W)

    def f(x: Any) -> Any:
        return lax.scan(lambda h, _: (vnp.tanh(h @ w), None), x, None, length=3)[0]

    (loop,) = [e for e in narrow_program(f, X).eqns if e.primitive is scan_p]
    assert len(casts(next(iter(loop.params.subjaxprs())))) == 1  # of the state


def test_a_loop_stacks_what_is_only_read_narrow_as_narrow() -> None:
    def loss(w: Any, x: Any) -> Any:
        h, _ = lax.scan(lambda h, w: (vnp.sin(h @ w), None), x, w)
        return vnp.sum(h**2)

    jaxpr = narrow_program(verax.grad(loss), np.stack([W, W, W]), X)
    loop = next(eqn for eqn in jaxpr.eqns if eqn.primitive is scan_p)
    stacks = [v.aval.dtype for v in loop.outvars if v.aval.shape == (3, 8, 8)]
    assert bfloat16 in stacks


def test_a_branch_a_while_loop_and_a_checkpoint_are_narrow_inside() -> None:
    def branch(x: Any) -> Any:
        return lax.cond(x[0, 0] > 0, lambda x: x @ x, lambda x: x - 1, x)

    def loop(x: Any) -> Any:
        go = lambda c: c[0] < 3  # noqa: E731  # short
        return lax.while_loop(go, lambda c: (c[0] + 1, vnp.tanh(c[1] @ c[1])), (0, x))

    again = verax.grad(lambda x: vnp.sum(verax.checkpoint(lambda x: vnp.sin(x @ x))(x)))
    for fun in (branch, loop, again, verax.jit(lambda x: x @ x)):
        jaxpr = narrow_program(fun, X)
        assert products(jaxpr)
        assert all(map(is_narrow, products(jaxpr)))


def test_functions_with_rules_of_their_own_are_narrow_inside() -> None:
    @verax.custom_jvp
    def f(x: Any) -> Any:
        return x @ x

    @verax.custom_vjp
    def g(x: Any) -> Any:
        return x @ x

    f.defjvp(lambda x, t: (f(*x), x[0] @ t[0] + t[0] @ x[0]))
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (ct @ x.T + x.T @ ct,))
    for fun in (f, g):
        assert all(map(is_narrow, products(narrow_program(fun, X))))


@pytest.mark.parametrize(
    "place",
    [
        "dot_general",
        "kept_function",
        lambda eqn: eqn.primitive is dot_general_p,
        "line",
    ],
    ids=["primitive", "function", "predicate", "line"],
)
def test_places_stay_wide(place: Any) -> None:
    def kept_function(x: Any) -> Any:
        return x @ x

    line = kept_function.__code__.co_firstlineno + 1
    if place == "line":
        place = f"{Path(__file__).name}:{line}"
    jaxpr = program_of(kept_function, X)
    assert narrowed(Narrowing(bfloat16, (Keep(place),)), jaxpr) is jaxpr
    assert narrowed(Narrowing(bfloat16, (Keep(line + 1),)), jaxpr) is not jaxpr


def test_a_jitted_function_is_kept_by_its_name() -> None:
    @verax.jit
    def head(x: Any) -> Any:
        return x @ x

    jaxpr = narrow_program(
        lambda x: head(x) @ x, X, plan=Narrowing(bfloat16, (Keep("head"),))
    )
    assert [is_narrow(eqn) for eqn in products(jaxpr)] == [False, True]


def test_a_primitive_of_ones_own_is_wide_unless_its_row_says_that_it_moves() -> None:
    wide_p = elementwise("halved", lambda x: x * 0.5, lower=stablehlo("negate"))
    traits = evolve(wide_p.traits, narrow=Narrow.MOVES)
    moves_p = evolve(wide_p, name="moved", traits=traits)
    for row, dtype in ((wide_p, np.float32), (moves_p, bfloat16)):
        jaxpr = narrow_program(lambda x, row=row: row.call(NO_PARAMS, x) @ x, X)
        own = [eqn for eqn in jaxpr.eqns if eqn.primitive is row]
        assert [eqn.outvars[0].aval.dtype for eqn in own] == [dtype]


def test_a_product_of_ones_own_says_how_it_sums() -> None:
    row = evolve(dot_general_p, name="mine")
    params = DotParams((((1,), (0,)), ((), ())))
    (_, product) = narrow_program(lambda x: row.call(params, x, x), X).eqns
    assert product.primitive is row
    assert is_narrow(product)
    assert product.outvars[0].aval.dtype == np.float32


def test_light_operations_are_narrow_if_that_is_asked() -> None:
    def f(x: Any, w: Any) -> Any:
        return vnp.exp(verax.nn.relu(x @ w + 1) @ w)

    jaxpr = narrow_program(f, X, W, plan=Narrowing(bfloat16, elementwise=True))
    kinds = {e.primitive.name: e.outvars[0].aval.dtype for e in jaxpr.eqns}
    assert kinds["add"] == bfloat16
    assert kinds["exp"] == np.float32
    assert len(casts(jaxpr)) == 3


def test_sums_over_devices_are_narrow_if_that_is_asked() -> None:
    def f(x: Any) -> Any:
        return verax.vmap(lambda x: lax.psum(x @ x, "i"), axis_name="i")(x)

    x = np.stack([X, X])
    wide = narrow_program(f, x)
    narrow = narrow_program(f, x, plan=Narrowing(bfloat16, sums=True))
    for jaxpr, dtype in ((wide, np.float32), (narrow, bfloat16)):
        (total,) = [e for e in jaxpr.eqns if e.primitive.name == "reduce_sum"]
        assert total.invars[0].aval.dtype == dtype


def test_double_precision_becomes_narrow_too() -> None:
    with verax.enable_x64():
        jaxpr = program_of(lambda x: x @ x, X.astype(np.float64))
        (_, product) = narrowed(Narrowing(np.dtype(np.float32)), jaxpr).eqns
    assert product.invars[0].aval.dtype == np.float32
    assert product.outvars[0].aval.dtype == float64


def test_integers_and_complex_numbers_stay() -> None:
    for dtype in (np.int32, np.complex64):
        jaxpr = program_of(lambda x: x @ x, X.astype(dtype))
        assert narrowed(PLAN, jaxpr) is jaxpr


def test_overflow_is_infinite_in_float16_and_harmless_in_bfloat16() -> None:
    big = np.full((4, 4), 1e6, np.float32)
    for dtype, finite in ((float16, False), (bfloat16, True)):
        jaxpr = narrow_program(lambda x: x @ x, big, plan=Narrowing(dtype))
        (out,) = verax.transforms.evaluate(jaxpr, big)
        assert np.isfinite(out).all() == finite

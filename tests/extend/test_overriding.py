"""Rows of one's own in place of the library's, under every transformation."""

from typing import Any

import numpy as np
import pytest
from attrs import evolve

import verax
import verax.numpy as vnp
from verax import lax
from verax.extend import PRIMITIVES, Row, standard, with_rules

STRAIGHT: Row[Any] = evolve(
    PRIMITIVES["round"],
    jvp=lambda engine, p, xs, ts: (lax.round_p.bind(p, *xs), ts),
)
RULES = standard | {lax.round_p: STRAIGHT}


def quantised(x: Any) -> Any:
    return vnp.round(x) * x


def test_a_table_holds_under_every_transformation() -> None:
    f = with_rules(quantised, RULES)
    x = vnp.array([1.6, 2.4])
    assert f(x).tolist() == quantised(x).tolist()
    for slope in (
        verax.vmap(verax.grad(f)),
        verax.jit(verax.vmap(verax.grad(f))),
        lambda x: verax.jvp(f, (x,), (vnp.ones(2),))[1],
        lambda x: verax.linearize(f, x)[1](vnp.ones(2)),
        verax.vmap(verax.grad(with_rules(verax.jit(quantised), RULES))),
    ):
        np.testing.assert_allclose(slope(x), [3.6, 4.4], rtol=1e-6)
    np.testing.assert_allclose(verax.vmap(verax.grad(quantised))(x), [2, 2])
    program = verax.make_jaxpr(f)(1.6)
    assert program.jaxpr.eqns[0].primitive is STRAIGHT


def test_a_table_holds_in_loops_and_branches() -> None:
    def f(x: Any) -> Any:
        def step(c: Any, r: Any) -> Any:
            return lax.cond(r > 0, vnp.round, lambda c: c, c) * x, None

        return lax.scan(step, x, vnp.arange(3.0))[0]

    want = verax.grad(lambda x: x**4)(2.0)
    assert float(verax.grad(with_rules(f, RULES))(2.0)) == float(want)
    assert float(verax.grad(f)(2.0)) != float(want)


def test_a_lowering_of_ones_own_is_compiled() -> None:
    slow: Row[Any] = evolve(PRIMITIVES["sin"], lower=PRIMITIVES["cos"].lower)
    f = with_rules(lambda x: vnp.sin(x), {lax.sin_p: slow})
    assert float(verax.jit(f)(0.0)) == 1.0
    assert float(verax.jit(vnp.sin)(0.0)) == 0.0


def test_tracers_around_are_seen_through() -> None:
    def outer(y: Any) -> Any:
        return with_rules(lambda x: vnp.round(x) * y, RULES)(1.6)

    assert float(verax.jit(verax.grad(outer))(3.0)) == 2.0


def test_wrong_tables_are_refused() -> None:
    with pytest.raises(TypeError, match="map primitives to the rows"):
        with_rules(quantised, {"round": STRAIGHT})  # type: ignore[dict-item]  # on purpose
    with pytest.raises(TypeError, match="so it cannot replace sin"):
        with_rules(quantised, {lax.sin_p: STRAIGHT})
    with pytest.raises(TypeError, match="with_rules takes a function"):
        with_rules(3, RULES)(1.0)  # type: ignore[arg-type]  # on purpose

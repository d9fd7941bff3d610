"""Programs with control flow: what they cost, and that the interpreter agrees."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.test_control_flow import ALL, root, rows, scanned, spread, total
from verax import lax
from verax.ir.jaxpr import Jaxpr
from verax.ir.reports.check import check_jaxpr
from verax.ir.walk import close, count_eqns, walk
from verax.rules.rows.infer import infer
from verax.verify.checking.functions import ENGINE


def inner_of(jaxpr: Jaxpr, name: str) -> list[Any]:
    return [eqn for _, eqn in walk(jaxpr) if eqn.primitive.name == name]


def test_size_does_not_depend_on_the_length() -> None:
    sizes = set()
    for length in (2, 50, 1000):
        f = verax.vmap(verax.grad(total(scanned(False, 1)), ALL), (0, None, None))
        closed = verax.make_jaxpr(f)(vnp.ones(2), 0.4, rows(length))
        sizes.add(count_eqns(closed.jaxpr))
    assert len(sizes) == 1


def test_what_is_not_batched_stays_single() -> None:
    def f(x: Any, n: Any) -> Any:
        return lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, c[1], c[1] * c[2]), (0, 2.0, x)
        )[2]

    closed = verax.make_jaxpr(verax.vmap(f, (0, None)))(vnp.ones(3), 4)
    (loop,) = inner_of(closed.jaxpr, "while")
    assert [v.aval.shape for v in loop.outvars] == [(), (), (3,)]
    assert loop.params.cond_jaxpr.out_avals[0].shape == ()
    closed = verax.make_jaxpr(verax.vmap(f, (None, 0)))(2.0, vnp.arange(3))
    assert len(inner_of(closed.jaxpr, "while")) == 1
    assert not inner_of(closed.jaxpr, "scan"), "lanes are not run one by one"
    closed = verax.make_jaxpr(verax.vmap(total(scanned(False, 1)), (None, 0, None)))(
        0.7, vnp.ones(5), rows(3)
    )
    (scan,) = inner_of(closed.jaxpr, "scan")
    assert [v.aval.shape for v in scan.outvars[:2]] == [(5,), ()]
    closed = verax.make_jaxpr(verax.vmap(root, (None, 0, None)))(True, vnp.ones(3), 0.1)
    assert len(inner_of(closed.jaxpr, "cond")) == 1


def test_residuals_are_few() -> None:
    """Rows that are only read, and what no step changes, are not stacked."""

    def f(w: Any, c: Any, xs: Any) -> Any:
        return lax.scan(lambda c, x: (c * x * vnp.exp(w), None), c, xs)[0]

    closed = verax.make_jaxpr(verax.grad(f, 0))(0.5, 1.0, vnp.ones(7))
    forward, _ = inner_of(closed.jaxpr, "scan")
    stacks = [v.aval.shape for v in forward.outvars if v.aval.shape]
    assert len(stacks) <= 2
    assert not inner_of(forward.params.jaxpr, "exp")

    def g(c: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            grown = vnp.exp(c * x)
            return grown, grown

        return lax.scan(step, c, xs)[1].sum()

    closed = verax.make_jaxpr(verax.grad(g, (0, 1)))(1.0, vnp.ones(7))
    forward, _ = inner_of(closed.jaxpr, "scan")
    # What a step gives anyway, and the carry before it; its row is an operand.
    assert [v.aval.shape for v in forward.outvars] == [(), (7,), (7,)]
    closed = verax.make_jaxpr(verax.grad(f, 1))(0.5, 1.0, vnp.ones(7))
    (backward,) = [e for e in inner_of(closed.jaxpr, "scan") if e.params.reverse]
    assert backward.params.length == 7


def test_rewritten_programs_are_well_formed_and_lose_dead_carries() -> None:
    def f(x: Any, n: Any) -> Any:
        return lax.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x, vnp.sin(c[2])), (0, x, x)
        )[1]

    closed = verax.make_jaxpr(f)(vnp.float32(0.5), np.int32(3))
    slim, _ = ENGINE.dce(closed.jaxpr, (True,))
    check_jaxpr(slim, infer)
    assert not inner_of(slim, "sin")
    g = total(scanned(False, 1))
    k, c, xs = vnp.float32(0.7), vnp.float32(0.4), rows(3)
    for closed in (
        verax.make_jaxpr(g)(k, c, xs),
        verax.make_jaxpr(verax.vmap(g, (None, 0, None)))(k, vnp.ones(2), xs),
        verax.make_jaxpr(verax.grad(g, ALL))(k, c, xs),
    ):
        check_jaxpr(closed.jaxpr, infer)


def flowing(k: Any, c: Any, xs: Any) -> Any:
    """Every construct, and keys among the carries."""

    def body(carry: Any, x: Any) -> Any:
        c, key = carry
        key, other = verax.random.split(key)
        chosen = lax.switch(n_of(x), [vnp.sin, lambda c: c * k, lambda c: c + x], c)
        doubled = lax.while_loop(lambda v: abs(v) < 1.0, lambda v: v * 2.0 + k, chosen)
        return (doubled, key), verax.random.uniform(other) * doubled

    def n_of(x: Any) -> Any:
        return vnp.floor(x * 3).astype(np.int32)

    (c, _), ys = lax.scan(body, (c, verax.random.key(7)), xs, reverse=True)
    return c + ys.sum()


FLOWS = {
    "value": (flowing, (None, None, None)),
    "vmap": (verax.vmap(flowing, (None, 0, None)), (None, 0, None)),
    "vmap of rows": (verax.vmap(flowing, (None, None, 0)), (None, None, 0)),
    "jvp": (verax.jacfwd(flowing, ALL), (None, None, None)),
    "vmap of jvp": (
        verax.vmap(verax.jacfwd(flowing, ALL), (0, None, 0)),
        (0, None, 0),
    ),
    "jvp of vmap": (
        verax.jacfwd(verax.vmap(flowing, (None, 0, None)), ALL),
        (None, 0, None),
    ),
}


@pytest.mark.parametrize("name", FLOWS)
def test_interpreter_agrees_with_compiled_code(name: str) -> None:
    fun, axes = FLOWS[name]
    args = spread((np.float32(0.7), np.float32(0.4), vnp.arange(3.0) / 3), axes, 4)
    args = [vnp.asarray(x, np.float32) for x in args]
    jaxpr = close(verax.make_jaxpr(fun)(*args))
    check_jaxpr(jaxpr, infer)
    slim, _ = ENGINE.dce(jaxpr, (True,) * len(jaxpr.outvars))
    actual = ENGINE.evaluate(slim, [np.asarray(x) for x in args])
    due = verax.tree_util.tree_leaves(verax.jit(fun)(*args))
    for x, y, aval in zip(actual, due, jaxpr.out_avals, strict=True):
        assert (x.shape, x.dtype) == (aval.shape, aval.dtype)
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4)

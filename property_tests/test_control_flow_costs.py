"""What control flow costs, asserted on the programs and not on the clock."""

from typing import Any

import numpy as np

import verax
import verax.numpy as vnp
from property_tests.test_control_flow import ALL, root, rows, scanned, total
from verax import lax
from verax.ir.check import check_jaxpr
from verax.ir.jaxpr import Jaxpr
from verax.ir.walk import count_eqns, walk
from verax.rules.infer import infer
from verax.verify.standard import ENGINE


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

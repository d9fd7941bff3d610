"""Policies of `checkpoint` see into loops and choices that it is around."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import crossed
from verax import checkpoint_policies as policies, lax
from verax.ad_checkpoint import checkpoint_name
from verax.ir.walk import walk

W = 0.5 * np.random.default_rng(0).standard_normal((3, 3)).astype(np.float32)
XS = np.random.default_rng(1).standard_normal((6, 3)).astype(np.float32)

type F = Callable[..., Any]


def products(f: F, *args: Any) -> int:
    """How many products the program has, each body counted once."""
    program = verax.make_jaxpr(f)(*args)
    return sum(e.primitive.name == "dot_general" for _, e in walk(program.jaxpr))


def loop(w: Any, xs: Any, reverse: bool = False, unroll: int = 1) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = vnp.tanh(vnp.sin(checkpoint_name(w @ h, "product")) + x)
        return h, h.sum()

    h, ys = lax.scan(step, vnp.full(3, 0.1), xs, reverse=reverse, unroll=unroll)
    return (h**2).sum() + (ys**2).sum()


def nest(w: Any, xs: Any) -> Any:
    def outer(h: Any, x: Any) -> Any:
        def inner(h: Any, _: Any) -> Any:
            return vnp.sin(w @ h), None

        return lax.scan(inner, h * x, None, length=2)[0], h[0]

    h, ys = lax.scan(outer, vnp.ones(3), xs)
    return h.sum() * ys.sum()


def choices(w: Any, xs: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = lax.cond(
            x[0] > 0,
            lambda h: vnp.sin(w @ h),
            lambda h: vnp.cos(vnp.exp(-((w.T @ h) ** 2)) * h),
            h,
        )
        return h + x, None

    return (lax.scan(step, vnp.ones(3), xs)[0] ** 2).sum()


def drawn(w: Any, xs: Any) -> Any:
    def step(carry: Any, x: Any) -> Any:
        key, h = carry
        key, own = verax.random.split(key)
        noise = verax.random.normal(own, (3,))
        return (key, vnp.tanh(w @ (h * noise) + x)), None

    return lax.scan(step, (verax.random.key(0), vnp.ones(3)), xs)[0][1].sum()


PROGRAMS: dict[str, F] = {
    "loop": loop,
    "reversed": lambda w, xs: loop(w, xs, reverse=True, unroll=2),
    "nest": nest,
    "choices": choices,
    "drawn": drawn,
}
POLICIES: dict[str, Any] = {
    "nothing": policies.nothing_saveable,
    "dots": policies.dots_saveable,
    "everything": policies.everything_saveable,
    "names": policies.save_only_these_names("product"),
    "sines": lambda prim, *_, **params: prim.name in ("sin", "exp"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "policy"), crossed(PROGRAMS, POLICIES))
@pytest.mark.usefixtures("little_effort")
def test_derivatives_are_those_of_the_function(name: str, policy: str) -> None:
    f = PROGRAMS[name]
    kept = verax.checkpoint(f, policy=POLICIES[policy])
    due = verax.grad(f, (0, 1))(W, XS)
    for run in (verax.grad(kept, (0, 1)), verax.jit(verax.grad(kept, (0, 1)))):
        for x, y in zip(run(W, XS), due, strict=True):
            np.testing.assert_allclose(x, y, 1e-5, 1e-5)
    stacks = np.stack([XS, XS[::-1]])
    lanes = verax.vmap(verax.grad(kept), (None, 0))(W, stacks)
    inside = verax.checkpoint(
        lambda w, xs: verax.vmap(f, (None, 0))(w, xs).sum(), policy=POLICIES[policy]
    )
    np.testing.assert_allclose(lanes[0], due[0], 1e-5, 1e-5)
    np.testing.assert_allclose(verax.grad(inside)(W, stacks), lanes.sum(0), 1e-4, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["dots", "names"])
def test_second_derivatives(policy: str) -> None:
    kept = verax.checkpoint(loop, policy=POLICIES[policy])
    due = verax.hessian(loop)(W, XS)
    np.testing.assert_allclose(verax.hessian(kept)(W, XS), due, 1e-4, 1e-4)
    twice = verax.jacrev(verax.grad(kept))(W, XS)
    np.testing.assert_allclose(twice, due, 1e-4, 1e-4)


@pytest.mark.parametrize("f", [loop, nest])
def test_kept_products_are_not_made_again(f: F) -> None:
    """One is of the function and two are of its derivative."""
    counts = {
        name: products(verax.grad(verax.checkpoint(f, policy=policy)), W, XS)
        for name, policy in POLICIES.items()
    }
    assert counts["nothing"] == 4
    assert counts["dots"] == counts["everything"] == 3


def test_names_inside_of_a_loop_are_found() -> None:
    kept = verax.checkpoint(loop, policy=POLICIES["names"])
    assert products(verax.grad(kept), W, XS) == 3
    others = verax.checkpoint(loop, policy=policies.save_only_these_names("other"))
    assert products(verax.grad(others), W, XS) == 4


def test_choices_keep_what_the_branch_that_ran_has() -> None:
    dots = verax.checkpoint(choices, policy=POLICIES["dots"])
    nothing = verax.checkpoint(choices, policy=POLICIES["nothing"])
    assert products(verax.grad(dots), W, XS) == 6
    assert products(verax.grad(nothing), W, XS) == 8


def test_what_is_shown_is_shown_once(capfd: Any) -> None:
    def f(w: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            verax.debug.print("step {}", x[0].astype(int))
            return vnp.sin(w @ h) + x, None

        return lax.scan(step, vnp.ones(3), xs)[0].sum()

    kept = verax.checkpoint(f, policy=POLICIES["dots"])
    slope = verax.jit(verax.grad(kept))(W, XS)
    verax.effects_barrier()
    assert capfd.readouterr().out.count("step") == len(XS)
    np.testing.assert_allclose(slope, verax.grad(f)(W, XS), 1e-5, 1e-5)


def test_rows_wait_in_another_memory() -> None:
    policy = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["product"],
        offload_src="device",
        offload_dst="pinned_host",
    )
    kept = verax.grad(verax.checkpoint(loop, policy=policy))
    assert "pinned_host" in str(verax.make_jaxpr(kept)(W, XS))
    assert products(kept, W, XS) == 3
    np.testing.assert_allclose(kept(W, XS), verax.grad(loop)(W, XS), 1e-5, 1e-5)

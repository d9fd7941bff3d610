"""`memory=`: programs within a budget, which compute what they did without one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax, random
from verax.api.memory.budgets import bytes_in, written
from verax.errors import MemoryBudgetExceeded
from verax.memory import Offload
from verax.transforms.memory.plan import Host, Plan, Planner, planned
from verax.transforms.memory.storage import flat, hosted
from verax.transforms.public import hoist


def total(function: Any, *args: object) -> int:
    """The bytes of a compiled call."""
    found = function.lower(*args).compile().memory_analysis()
    return int(found.arguments + found.outputs + found.temporaries - found.aliased)


def chain(weights: list[Any], x: Any) -> Any:
    """A network of many layers."""
    for w in weights:
        x = vnp.tanh(vnp.exp(-((x @ w) ** 2)) + x)
    return vnp.mean(x**2)


def layers(count: int = 12, width: int = 16, rows: int = 512) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    weights = [
        rng.normal(size=(width, width)).astype(np.float32) / 4 for _ in range(count)
    ]
    return weights, rng.normal(size=(rows, width)).astype(np.float32)


def recurrent(weights: Any, x: Any) -> Any:
    """A loop of 64 steps over a state."""

    def step(h: Any, _: None) -> tuple[Any, None]:
        return vnp.tanh(vnp.sin(h @ weights) + vnp.cos(h)), None

    return vnp.sum(lax.scan(step, x, None, length=64)[0] ** 2)


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, Any]]]] = {
    "layers": (chain, layers),
    "loop": (recurrent, lambda: (layers(1)[0][0], layers(1, rows=64)[1])),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("share", [0.75, 0.5])
@pytest.mark.usefixtures("little_effort")
def test_a_gradient_within_a_share(name: str, share: float) -> None:
    loss, arguments = PROGRAMS[name]
    args = arguments()
    whole = total(verax.jit(verax.value_and_grad(loss)), *args)
    limited = verax.value_and_grad(loss, memory=share)
    assert total(limited, *args) <= share * whole
    value, gradient = limited(*args)
    plain, expected = verax.jit(verax.value_and_grad(loss))(*args)
    np.testing.assert_allclose(value, plain, rtol=1e-6)
    for one, other in zip(
        verax.tree.leaves(gradient), verax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-6)


@pytest.mark.slow
def test_bytes_and_text() -> None:
    args = layers()
    whole = total(verax.jit(verax.grad(chain)), *args)
    for budget in (int(0.6 * whole), f"{0.6 * whole / 1000:.1f}kB"):
        assert total(verax.grad(chain, memory=budget), *args) <= 0.601 * whole
    assert bytes_in("2GiB") == 2 * 1024**3
    assert bytes_in(" 1.5 mb ") == 1_500_000
    assert written(2_340_000) == "2.34MB"


@pytest.mark.slow
def test_a_long_loop_goes_in_blocks() -> None:
    """Less than what each step carries is enough: blocks of steps run again."""

    def loss(weights: Any, x: Any) -> Any:
        def step(h: Any, _: None) -> tuple[Any, None]:
            return vnp.tanh(vnp.tanh(h) @ weights), None

        return vnp.sum(lax.scan(step, x, None, length=900)[0] ** 2)

    weights, x = layers(1)[0][0], layers(1, rows=64)[1]
    carried = 900 * x.nbytes
    plain = verax.jit(verax.value_and_grad(loss, (0, 1)))
    limited = verax.value_and_grad(loss, (0, 1), memory=carried // 8)
    assert total(limited, weights, x) <= carried // 8
    for one, other in zip(
        verax.tree.leaves(limited(weights, x)),
        verax.tree.leaves(plain(weights, x)),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_two_loops_go_in_blocks_of_blocks() -> None:
    """Each of two loops stacks much, and a block of steps is too much."""

    def loss(weights: Any, x: Any) -> Any:
        def once(x: Any, slope: float) -> Any:
            def step(h: Any, _: None) -> tuple[Any, None]:
                return vnp.tanh(vnp.sin(h @ weights) * slope + h), None

            return lax.scan(step, x, None, length=512)[0]

        return vnp.sum(once(once(x, 0.5), 0.25) ** 2)

    weights, x = layers(1)[0][0], layers(1, rows=64)[1]
    plain = verax.jit(verax.value_and_grad(loss, (0, 1)))
    limited = verax.value_and_grad(loss, (0, 1), memory=50 * x.nbytes)
    assert total(limited, weights, x) <= 50 * x.nbytes < total(plain, weights, x) / 50
    for one, other in zip(
        verax.tree.leaves(limited(weights, x)),
        verax.tree.leaves(plain(weights, x)),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=2e-3, atol=1e-4)


def test_what_fits_is_left_as_it_is() -> None:
    args = layers()
    plain = verax.jit(chain).trace(*args).jaxpr
    assert str(verax.jit(chain, memory="1GB").trace(*args).jaxpr) == str(plain)


def test_values_that_wait_on_the_host() -> None:
    """Programs for CUDA move them; a plan for a device with a host needs less."""
    args = layers()
    jaxpr = verax.jit(verax.grad(chain)).trace(*args).traced.jaxpr
    limit = Plan.of(flat(jaxpr)).peak // 5
    least, plan = planned(jaxpr, limit), planned(jaxpr, limit, Host("pinned_host", 0))
    assert plan.peak <= limit < least.peak
    assert plan.work < least.work
    leaves = verax.tree.leaves(args)
    moved = verax.jit(verax.core.jaxpr_as_fun(hoist(plan.jaxpr)))
    text = moved.trace(*leaves).lower(lowering_platforms=("cuda",)).as_text()
    count = len(hosted(plan.jaxpr))
    assert text.count('_xla_buffer_placement = "pinned_host"') == count > 0
    assert text.count('_xla_buffer_placement = "device"') == count
    outs = verax.grad(chain)(*args)
    for one, other in zip(moved(*leaves), outs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_what_loops_stack_waits_on_the_host() -> None:
    """The stacks of one loop, while others run; for CUDA the program moves them."""

    def two_loops(w: Any, x: Any) -> Any:
        def first(c: Any, w: Any) -> tuple[Any, None]:
            return vnp.tanh(vnp.sin(c @ w) + c), None

        def second(c: Any, w: Any) -> tuple[Any, None]:
            return vnp.cos(vnp.sin(c @ w) + c), None

        return vnp.mean(lax.scan(second, lax.scan(first, x, w)[0], w)[0] ** 2)

    weights, x = layers()
    args = np.stack(weights), x
    jaxpr = verax.jit(verax.grad(two_loops)).trace(*args).traced.jaxpr
    limit = int(0.6 * Plan.of(flat(jaxpr)).peak)
    least, plan = planned(jaxpr, limit), planned(jaxpr, limit, Host("pinned_host", 0))
    assert plan.peak <= limit
    assert plan.work < least.work
    stacks = [v for v in hosted(plan.jaxpr) if v.aval.shape == (12, *x.shape)]
    assert len(stacks) >= 2
    moved = verax.jit(verax.core.jaxpr_as_fun(hoist(plan.jaxpr)))
    text = moved.trace(*args).lower(lowering_platforms=("cuda",)).as_text()
    count = len(hosted(plan.jaxpr))
    assert text.count('_xla_buffer_placement = "pinned_host"') == count
    assert text.count('_xla_buffer_placement = "device"') == count
    (out,) = moved(*args)
    expected = verax.grad(two_loops)(*args)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-7)


def test_a_dear_transfer_does_not_pay() -> None:
    """What loops stack is then computed again, as without a host."""
    args = layers(1)[0][0], layers(1, rows=64)[1]
    jaxpr = verax.jit(verax.grad(recurrent)).trace(*args).traced.jaxpr
    limit = int(0.5 * Plan.of(flat(jaxpr)).peak)
    plan = planned(jaxpr, limit, Host("pinned_host", 1e9))
    assert str(plan.jaxpr) == str(planned(jaxpr, limit).jaxpr)


@pytest.mark.slow
@pytest.mark.parametrize("host", [None, Host("pinned_host", 30.0)])
def test_limits_one_after_another_have_the_plans_of_each(host: Host | None) -> None:
    """What was played for one limit is used for the next, and changes nothing."""
    args = layers()
    jaxpr = verax.jit(verax.grad(chain)).trace(*args).traced.jaxpr
    planner, peak = Planner(jaxpr, host), Plan.of(flat(jaxpr)).peak
    for share in (0.8, 0.3, 0.5, 0.0, 0.8):
        limit = int(share * peak)
        one, other = planner.within(limit), planned(jaxpr, limit, host)
        assert str(one.jaxpr) == str(other.jaxpr)
        assert (one.peak, one.work) == (other.peak, other.work)


@pytest.mark.slow
def test_offloading_on_a_cpu_is_a_budget() -> None:
    args = layers()
    plain: Any = verax.grad(chain, memory=0.5)
    moved: Any = verax.grad(chain, memory=Offload(0.5, price=0))
    assert str(moved.trace(*args).jaxpr) == str(plain.trace(*args).jaxpr)


def test_plans_for_a_host_are_reported() -> None:
    args = layers()
    report = verax.debug.memory(verax.grad(chain), budget=Offload(0.3, price=0))
    plan = report(*args).plan
    assert plan is not None
    assert plan.fits
    assert not plan.again or plan.extra < 0.05
    assert plan.away[0].bytes > 100_000
    assert "on the host" in plan.title
    assert "waits on the host" in str(plan)


@pytest.mark.parametrize(
    ("make", "args", "error", "text"),
    [
        (Offload, [True], TypeError, "memory is True"),
        (Offload, [None], TypeError, "Offload takes bytes"),
        (Offload, [Offload(1)], TypeError, "Offload takes bytes"),
        (Offload, [0.5, "x", -1], ValueError, "price=-1 is no number"),
        (Offload, [0.5, "x", np.nan], ValueError, "price=nan is no number"),
        (
            verax.checkpoint_policies.budget,
            [Offload(1)],
            TypeError,
            "budget takes bytes",
        ),
    ],
)
def test_offloading_that_is_none(
    make: Any, args: list[Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        make(*args)


@pytest.mark.slow
def test_too_small_a_budget_says_how_much_is_needed() -> None:
    args = layers()
    limited = verax.grad(chain, memory="100kB")
    with pytest.raises(MemoryBudgetExceeded, match=r"does not run in 100kB") as caught:
        limited(*args)
    needed = int(str(caught.value).partition("memory=")[2].split()[0])
    assert total(verax.grad(chain, memory=needed), *args) <= needed


@pytest.mark.parametrize(
    ("budget", "error", "text"),
    [
        ("2 apples", ValueError, "says no number of bytes"),
        ("0MB", ValueError, "says no number of bytes"),
        (0, ValueError, "leaves no memory"),
        (-5, ValueError, "leaves no memory"),
        (1.5, ValueError, "no share between 0 and 1; for bytes pass 1"),
        (float("nan"), ValueError, "no share between 0 and 1"),
        (True, TypeError, "pass bytes"),
        ([1], TypeError, "pass bytes"),
    ],
)
def test_budgets_that_are_none(budget: Any, error: type[Exception], text: str) -> None:
    for make in (verax.jit, verax.grad, verax.value_and_grad):
        with pytest.raises(error, match=text):
            make(chain, memory=budget)


def test_symbolic_shapes_have_no_known_memory() -> None:
    from verax import export

    (n,) = export.symbolic_shape("n")
    x = verax.ShapeDtypeStruct((n, 16), np.float32)
    with pytest.raises(ValueError, match="symbolic"):
        verax.jit(chain, memory="1MB").trace(layers()[0], x)


@pytest.mark.slow
def test_inside_other_transformations() -> None:
    """Within jit, vmap and another derivative, the plan is part of the program."""
    weights, x = layers(6, rows=64)
    limited = verax.grad(chain, memory=0.7)
    expected = verax.grad(chain)(weights, x)
    outer = verax.jit(lambda w, x: limited(w, x))(weights, x)
    np.testing.assert_allclose(outer[0], expected[0], rtol=2e-4, atol=1e-6)

    xs = np.stack([x, x + 1])
    each = verax.vmap(limited, (None, 0))(weights, xs)
    plain = verax.vmap(verax.grad(chain), (None, 0))(weights, xs)
    np.testing.assert_allclose(each[3], plain[3], rtol=2e-4, atol=1e-6)

    def slope(f: Callable[..., Any]) -> Any:
        return verax.grad(lambda x: vnp.sum(f(weights, x)[0] ** 2))(x)

    np.testing.assert_allclose(
        slope(limited), slope(verax.grad(chain)), rtol=1e-3, atol=1e-5
    )


@pytest.mark.slow
def test_effects_happen_once() -> None:
    """What the host is asked for is kept, never asked for again."""
    asked: list[int] = []

    def ask(x: Any) -> Any:
        asked.append(1)
        return np.asarray(x) * np.float32(0.5)

    def loss(weights: list[Any], x: Any) -> Any:
        for w in weights:
            half = verax.pure_callback(
                ask, verax.ShapeDtypeStruct(x.shape, x.dtype), lax.stop_gradient(x)
            )
            x = vnp.tanh(x @ w) * half + vnp.sin(x)
        return vnp.mean(x**2)

    weights, x = layers(6, rows=128)
    verax.jit(verax.grad(loss))(weights, x)[0].block_until_ready()
    once = len(asked)
    asked.clear()
    verax.grad(loss, memory=0.75)(weights, x)[0].block_until_ready()
    assert len(asked) == once == 6


@pytest.mark.slow
def test_randomness_is_the_same_again() -> None:
    """Keys are values: what runs again draws what it drew."""

    def loss(weights: list[Any], x: Any, key: Any) -> Any:
        for w in weights:
            key, ours = random.split(key)
            kept = random.bernoulli(ours, 0.5, x.shape)
            x = vnp.where(kept, vnp.tanh(x @ w), 0.1 * x)
        return vnp.mean(x**2)

    weights, x = layers(8)
    key = random.key(3)
    limited = verax.grad(loss, memory=0.6)(weights, x, key)
    plain = verax.jit(verax.grad(loss))(weights, x, key)
    for one, other in zip(limited, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-7)


@pytest.mark.slow
def test_auxiliary_outputs_and_argnums() -> None:
    def loss(x: Any, weights: list[Any]) -> tuple[Any, Any]:
        return chain(weights, x), {"norm": vnp.sum(x)}

    weights, x = layers(6)
    how: dict[str, Any] = {"argnums": (0, 1), "has_aux": True}
    (value, aux), slopes = verax.value_and_grad(loss, memory=0.7, **how)(x, weights)
    (plain, _), expected = verax.value_and_grad(loss, **how)(x, weights)
    np.testing.assert_allclose(value, plain, rtol=1e-6)
    np.testing.assert_allclose(aux["norm"], np.sum(x), rtol=1e-4)
    np.testing.assert_allclose(slopes[0], expected[0], rtol=2e-4, atol=1e-6)


def held(tree: Any) -> int:
    return sum(x.nbytes for x in verax.tree.leaves(tree))


@pytest.mark.parametrize("share", [0.8, 0.5, 0.25])
def test_pullbacks_and_pushforwards_that_hold_less(share: float) -> None:
    args = layers(6, rows=64)
    _, plain = verax.vjp(chain, *args)
    value, pull = verax.vjp(chain, *args, memory=share)
    own = held(args)
    assert held(pull) - own <= share * (held(plain) - own) + own
    assert held(pull) < held(plain)
    for one, other in zip(
        verax.tree.leaves(pull(value)), verax.tree.leaves(plain(value)), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    _, push = verax.linearize(chain, *args, memory=share)
    _, wide = verax.linearize(chain, *args)
    np.testing.assert_array_equal(push(*args), wide(*args))
    assert held(push) < held(wide)


def test_a_policy_with_a_budget() -> None:
    weights, x = layers(6, rows=64)
    budget = verax.checkpoint_policies.budget
    kept = [
        held(verax.vjp(verax.checkpoint(chain, policy=budget(m)), weights, x)[1])
        for m in ("1GB", "30kB", "10kB")
    ]
    assert kept == sorted(kept, reverse=True)
    assert len(set(kept)) == 3
    with pytest.raises(TypeError, match="not None"):
        budget(None)  # type: ignore[arg-type]  # a wrong call
    with pytest.raises(ValueError, match="says no number of bytes"):
        verax.vjp(chain, weights, x, memory="much")

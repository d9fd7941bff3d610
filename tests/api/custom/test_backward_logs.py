"""What backward rules log, beside the gradient at the same point of the program."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import ad, lax


@verax.custom_gradient(with_logs=True)
def seen(x: Any) -> Any:
    """The identity; it logs the cotangent."""
    return x, lambda ct: (ct, {"ct": ct, "both": (x, {"ct": ct})})


def scanned(reverse: bool) -> Callable[..., Any]:
    def body(x: Any, at: Callable[[Any, int], Any]) -> Any:
        def step(c: Any, i: Any) -> tuple[Any, Any]:
            y = at(vnp.sin(c * x[i]), i)
            return c + y**2, y

        last, ys = lax.scan(step, x[0], vnp.arange(3), reverse=reverse)
        return last * ys.sum()

    return body


def nested(x: Any, at: Callable[[Any, Any], Any]) -> Any:
    def outer(c: Any, i: Any) -> tuple[Any, None]:
        def inner(j: Any, c: Any) -> Any:
            return c * at(vnp.cos(c) + x[j], (i, j))

        return lax.fori_loop(0, 2, inner, c), None

    return lax.scan(outer, x[0], vnp.arange(3))[0]


LOOPS = {
    "scan": (scanned(False), (3,)),
    "reversed": (scanned(True), (3,)),
    "nested": (nested, (3, 2)),
    "checkpointed": (verax.checkpoint(scanned(False), static_argnums=1), (3,)),
}


@pytest.mark.slow
@pytest.mark.parametrize("around", [lambda f: f, verax.jit])
@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.usefixtures("little_effort")
def test_a_loop_logs_a_row_for_each_step(name: str, around: Any) -> None:
    """The cotangent at a point is the gradient for what is added there."""
    body, shape = LOOPS[name]
    x = vnp.array([0.3, 1.1, 0.7])
    added = vnp.zeros(shape)
    due = verax.grad(lambda e: body(x, lambda y, i: y + e[i]))(added)
    run = around(lambda x: body(x, lambda y, i: seen(y)))
    out, pull = verax.vjp(run, x)
    cotangents, logs = pull.with_logs(vnp.ones_like(out))
    np.testing.assert_allclose(logs["ct"], due, rtol=1e-5)
    np.testing.assert_allclose(logs["both"][1]["ct"], due, rtol=1e-5)
    np.testing.assert_allclose(cotangents[0], verax.grad(run)(x), rtol=1e-6)
    compiled = verax.jit(lambda x: verax.vjp(run, x)[1].with_logs(1.0))
    np.testing.assert_allclose(compiled(x)[1]["ct"], due, rtol=1e-5)


def test_a_batch_is_the_first_dimension() -> None:
    x = vnp.arange(6.0).reshape(2, 3)
    f = verax.vmap(lambda row: seen(row[1] * row), in_axes=0, out_axes=1)
    _, logs = verax.vjp(f, x)[1].with_logs(vnp.arange(6.0).reshape(3, 2))
    assert logs["ct"].tolist() == [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]]
    inside = verax.vmap(lambda row: verax.vjp(seen, row)[1].with_logs(row)[1]["ct"])
    assert inside(x).tolist() == x.tolist()


def test_a_choice_has_a_slot_for_each_branch() -> None:
    def f(x: Any, i: Any) -> Any:
        branches = [lambda x: 3 * seen(x), vnp.sin, lambda x: seen(2 * x)]
        return lax.switch(i, branches, x)

    for i, factors in enumerate([(3.0, 0.0), (0.0, 0.0), (0.0, 1.0)]):
        _, logs = verax.vjp(lambda x, i=i: f(x, vnp.int32(i)), 2.0)[1].with_logs(1.0)
        assert isinstance(logs["ct"], ad.CondSum)
        assert int(logs["ct"].index) == i
        assert logs["ct"].branches[1] is None
        first, _, third = logs["ct"].branches
        assert [float(first), float(third)] == list(factors)


def test_a_choice_in_a_loop_stacks_its_slots() -> None:
    def f(xs: Any) -> Any:
        def step(c: Any, x: Any) -> tuple[Any, None]:
            return lax.cond(x > 0, lambda c: c * seen(x), lambda c: c + x, c), None

        return lax.scan(step, 1.0, xs)[0]

    xs = vnp.array([2.0, -1.0, 3.0])
    cotangents, logs = verax.vjp(f, xs)[1].with_logs(1.0)
    assert logs["ct"].index.tolist() == [1, 0, 1]
    assert logs["ct"].branches[0] is None
    assert logs["ct"].branches[1].tolist() == [3.0, 0.0, 1.0]
    assert cotangents[0].tolist() == [3.0, 3.0, 1.0]
    mapped = verax.vmap(lambda xs: verax.vjp(f, xs)[1].with_logs(1.0)[1]["ct"])
    both = mapped(vnp.stack([xs, -xs]))
    assert both.index.tolist() == [[1, 0, 1], [0, 1, 0]]
    assert both.branches[1].tolist() == [[3.0, 0.0, 1.0], [0.0, -1.0, 0.0]]


def test_of_one_key_the_first_call_is_kept() -> None:
    _, pull = verax.vjp(lambda x: 5 * seen(2 * seen(x)), 1.0)
    assert pull.with_logs(1.0)[1]["ct"] == 10.0
    assert pull(1.0) == (10.0,)


def test_without_logs_and_under_more_derivatives() -> None:
    assert verax.vjp(vnp.sin, 1.0)[1].with_logs(1.0)[1] == {}
    f = verax.jit(lambda x: seen(x) ** 3)
    assert verax.grad(verax.grad(f))(2.0) == 12.0
    assert verax.hessian(f)(2.0) == 12.0
    slopes = verax.jacfwd(lambda x: verax.vjp(f, x)[1].with_logs(1.0)[1]["ct"])
    assert slopes(2.0) == 12.0


def test_results_may_go_into_references() -> None:
    total = verax.new_ref(1.0)
    _, pull = verax.vjp(lambda x, y: seen(x) * y, 3.0, 2.0)
    out, logs = pull.with_logs.with_refs(total, ad.DontWant())(1.0)
    assert isinstance(out[1], ad.DidntWant)
    assert [float(total[...]), float(logs["ct"])] == [3.0, 2.0]


def test_it_is_a_pytree() -> None:
    leaves, tree = verax.tree.flatten(verax.vjp(seen, 2.0)[1].with_logs)
    assert verax.tree.unflatten(tree, leaves)(4.0)[1]["ct"] == 4.0
    assert verax.tree.map(lambda x: x + 1, ad.CondSum(1, [None, 2])).branches == (
        None,
        3,
    )


def test_bad_logs_are_refused() -> None:
    f = verax.custom_vjp(lambda x: x)
    f.defvjp_with_logs(lambda x: (x, None), lambda _, ct: (ct,))
    with pytest.raises(TypeError, match=r"bwd rule <lambda> .* must produce a pair"):
        verax.grad(f)(1.0)
    f.defvjp_with_logs(lambda x: (x, None), lambda _, ct: ((ct,), [1.0]))
    with pytest.raises(TypeError, match="None or a dict as its backward-pass log"):
        verax.grad(f)(1.0)
    f.defvjp_with_logs(lambda x: (x, None), lambda _, ct: ((ct,), {"x": "text"}))
    with pytest.raises(TypeError, match=r"logs .text. .* under .x.; logs are pytrees"):
        verax.grad(f)(1.0)


def test_a_loop_must_say_how_often_it_runs() -> None:
    @verax.custom_vjp
    def f(x: Any) -> Any:
        return x

    def bwd(_: None, ct: Any) -> Any:
        def halve(ct: Any) -> Any:
            return verax.vjp(seen, ct)[1](ct)[0] / 2

        return (lax.while_loop(lambda ct: ct > 1, halve, ct),)

    f.defvjp(lambda x: (x, None), bwd)
    assert verax.grad(f)(1.0) == 1.0
    with pytest.raises(ValueError, match="does not say how often it runs"):
        verax.vjp(f, 1.0)[1].with_logs(1.0)

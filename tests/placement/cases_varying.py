"""Types inside `shard_map`, and the derivatives that are taken there.

One idea: what a function of parts means is a function of whole arrays, so a derivative
that is taken inside has a truth on one device. For weights that all devices have, and a
loss that is a sum over all of them, it is the gradient of the loss of the whole batch.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import NIGHTLY, by_turns, rarely
from verax import lax
from verax.errors import ShardingTypeError
from verax.experimental import ode
from verax.scipy.sparse.linalg import gmres
from verax.sharding import (
    AxisType,
    ManualAxisType,
    NamedSharding,
    PartitionSpec as P,
)

N = 4
MESH = verax.make_mesh((N,), ("m",), axis_types=(AxisType.Auto,))
GRID = verax.make_mesh((2, 4), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
W = vnp.arange(4.0) + 1
X = vnp.sin(vnp.arange(24.0)).reshape(8, 3)


def over(f: Callable[..., Any], ins: Any, outs: Any, **options: Any) -> Any:
    return verax.shard_map(f, mesh=MESH, in_specs=ins, out_specs=outs, **options)


def near(actual: Any, expected: Any) -> None:
    verax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6),
        actual,
        expected,
    )


def total(x: Any) -> Any:
    return lax.psum(vnp.sum(x), "m")


# ------------------------------------------------------------------ weights all have


@verax.custom_vjp
def scaled(p: Any, x: Any) -> Any:
    return p * x


def scaled_back(kept: Any, ct: Any) -> Any:
    p, x = kept
    return lax.psum(vnp.sum(ct * x), "m"), p * ct


scaled.defvjp(lambda p, x: (p * x, (p, x)), scaled_back)


@verax.custom_jvp
def bent(x: Any) -> Any:
    return vnp.sin(x)


bent.defjvp(lambda xs, ts: (vnp.sin(xs[0]), vnp.cos(xs[0]) * ts[0]))


def looped(p: Any, x: Any, add: Callable[[Any], Any]) -> Any:
    def step(c: Any, row: Any) -> Any:
        c = vnp.cos(c * p) + add(vnp.sum(row * p))
        return c, c * p

    c, ys = lax.scan(step, p, x.reshape(2, -1))
    return c + vnp.sum(ys)


def chosen(p: Any, x: Any) -> Any:
    return lax.cond(p > 1, lambda p, x: vnp.sin(p * x), lambda p, x: x, p, x)


def repeated(p: Any, x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, y: vnp.sin(y * p), x)


LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "square": lambda p, x: (p * x) ** 2,
    "all meet": lambda p, x: p * x * total(vnp.sin(p * x)),
    "mean": lambda p, x: vnp.sin(p * x) * lax.pmean(vnp.sum(p * x), "m"),
    "checkpoint": verax.checkpoint(lambda p, x: vnp.sin(vnp.sin(p * x))),
    "jit": verax.jit(lambda p, x: vnp.sin(p * x)),
    "vmap": lambda p, x: verax.vmap(lambda row: vnp.sum(row * p) ** 2)(x),
    "custom_jvp": lambda p, x: bent(p) * bent(x),
    "cond": chosen,
    "fori_loop": repeated,
    "while_loop": lambda p, x: lax.while_loop(
        lambda c: vnp.max(c[0]) < 0,
        lambda c: (c[0] * c[1], c[1]),
        (x * p, p),
        max_steps=3,
    )[0],
    "choice by device": lambda p, x: lax.cond(
        lax.axis_index("m") < 2, lambda p, x: vnp.sin(p * x), lambda p, x: x, p, x
    ),
    "indices": lambda p, x: (p * x)[vnp.array([1, 0, 1])] ** 2,
    "where": lambda p, x: vnp.where(x > 0, p * x, p),
    "matmul": lambda p, x: (x * p) @ (x.T * p),
    "sort": lambda p, x: vnp.sort(p * x, axis=1)[:, 0] ** 2,
    "constant": lambda p, x: p * vnp.ones(3) + 0 * x,
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_for_weights_that_all_devices_have(name: str) -> None:
    """The loss of the parts is written out, each with what all others give it."""
    f, p = LOSSES[name], vnp.float32(1.3)

    def inside(p: Any, x: Any) -> Any:
        return verax.value_and_grad(lambda p: total(f(p, x)))(p)

    def stacked(p: Any) -> Any:
        each = verax.vmap(lambda x: vnp.sum(f(p, x)), axis_name="m")
        return vnp.sum(each(X.reshape(N, 2, 3)))

    value, gradient = over(inside, (P(), P("m")), P())(p, X)
    near((value, gradient), verax.value_and_grad(stacked)(p))
    step = vnp.float32(1e-2)
    slope = (stacked(p + step) - stacked(p - step)) / (2 * step)
    if name not in ("sort", "while_loop"):
        np.testing.assert_allclose(gradient, slope, rtol=2e-2, atol=2e-2)


def test_second_derivatives() -> None:
    def loss(p: Any, x: Any) -> Any:
        return total(vnp.sin(vnp.sum(p) * x)) + vnp.sum(p**3)

    p, v = vnp.array([0.3, -0.2]), vnp.array([1.0, 0.5])

    def forward_of_reverse(p: Any, x: Any) -> Any:
        gradient = verax.grad(loss)
        return verax.jvp(lambda p: gradient(p, x), (p,), (v,))[1]

    def reverse_of_reverse(p: Any, x: Any) -> Any:
        return verax.grad(lambda p: vnp.vdot(verax.grad(loss)(p, x), v))(p)

    whole = verax.hessian(lambda p: vnp.sum(vnp.sin(vnp.sum(p) * X)) + vnp.sum(p**3))(p)
    for f in (forward_of_reverse, reverse_of_reverse):
        near(over(f, (P(), P("m")), P())(p, X), whole @ v)
    inside = over(lambda p, x: verax.hessian(loss)(p, x), (P(), P("m")), P())
    near(inside(p, X), whole)


def test_scans_sum_cotangents_once() -> None:
    p = vnp.float32(0.7)

    def inside(p: Any, x: Any) -> Any:
        return verax.grad(
            lambda p: lax.psum(looped(lax.pcast(p, "m", to="varying"), x, total), "m")
        )(p)

    def whole(p: Any) -> Any:
        parts = X.reshape(N, 2, 3)
        each = verax.vmap(
            lambda x: looped(p, x, lambda s: lax.psum(s, "m")), axis_name="m"
        )
        return vnp.sum(each(parts))

    near(over(inside, (P(), P("m")), P())(p, X), verax.grad(whole)(p))


def test_custom_rules_give_cotangents_of_the_type_of_their_primals() -> None:
    def inside(p: Any, x: Any) -> Any:
        return verax.grad(lambda p: total(scaled(p, x) ** 2))(p)

    p = vnp.float32(1.5)
    whole = verax.grad(lambda p: vnp.sum((p * X) ** 2))(p)
    near(over(inside, (P(), P("m")), P())(p, X), whole)
    wrong = verax.custom_vjp(lambda p, x: p * x)
    wrong.defvjp(lambda p, x: (p * x, x), lambda x, ct: (vnp.sum(ct * x), ct))
    with pytest.raises(ValueError, match=r"must produce an output with the same.*psum"):
        over(
            lambda p, x: verax.grad(lambda p: total(wrong(p, x)))(p), (P(), P("m")), P()
        )(p, X)


TURN = [(i, (i + 1) % N) for i in range(N)]

STEPS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: x * y,
    lambda x, y: vnp.sin(x) + y,
    lambda x, y: vnp.where(x > y, x, 0.5 * y),
    lambda x, y: lax.psum(x, "m") * 0.2,
    lambda x, y: x - lax.pmean(y, "m"),
    lambda x, y: lax.ppermute(x, "m", TURN) * y,
    lambda x, y: lax.all_gather(x, "m").sum(0) * y,
    lambda x, y: lax.psum_scatter(vnp.stack([x, y, x * y, y]), "m"),
    lambda x, y: lax.all_to_all(vnp.stack([x, y, y, x]), "m", 0, 0).sum(0),
    lambda x, y: x * lax.axis_index("m"),
    verax.checkpoint(lambda x, y: vnp.cos(x * y)),
    verax.jit(lambda x, y: vnp.cos(x) * lax.psum(y, "m") * 0.3),
    lambda x, y: lax.cond(True, lambda x, y: x * y, lambda x, y: x + y, x, y),
    lambda x, y: lax.fori_loop(0, 2, lambda i, c: vnp.sin(c * y) + x, x * y),
    lambda x, y: verax.vmap(lambda a, b: a * b.sum(), (0, None))(x, y),
    # Of a value that varies: of what all have alike, the devices sum the gradients.
    lambda x, y: verax.grad(lambda x: vnp.sum(vnp.sin(x * y)))(
        x + 0.0 * lax.axis_index("m")
    ),
    lambda x, y: bent(x) * y,
)


@pytest.mark.parametrize("seed", by_turns(range(24), 2, NIGHTLY))
def test_law_derivatives_inside_are_those_of_the_whole(seed: int) -> None:
    """Random programs of collectives, loops, rules and derivatives on two values."""
    choose = Random(seed)
    plan = [
        (choose.choice(STEPS), choose.random() < 0.5)
        for _ in range(choose.randint(2, 6))
    ]

    def program(p: Any, x: Any) -> Any:
        values = [p, x]
        for step, turned in plan:
            one, other = values[-1], values[-2]
            new = step(other, one) if turned else step(one, other)
            values.append(vnp.tanh(new))
        return sum([vnp.sum(v) for v in values[1:]])

    def inside(p: Any, x: Any) -> Any:
        return verax.grad(lambda p, x: total(program(p, x)), (0, 1))(p, x)

    def stacked(p: Any, x: Any) -> Any:
        each = verax.vmap(lambda x: program(p, x), axis_name="m")
        return vnp.sum(each(x.reshape(N, 2, 3)))

    p = vnp.cos(vnp.arange(6.0)).reshape(2, 3)
    actual = over(inside, (P(), P("m")), (P(), P("m")))(p, X)
    for a, b in zip(actual, verax.grad(stacked, (0, 1))(p, X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4 * np.abs(b).max())


# ------------------------------------------------------------------- weights in parts


def test_gradients_for_weights_in_parts() -> None:
    def gathered(w: Any, x: Any) -> Any:
        return verax.grad(
            lambda w: total((lax.all_gather(w, "m", tiled=True).sum() * x) ** 2)
        )(w)

    whole = verax.grad(lambda w: vnp.sum((w.sum() * X) ** 2))(W)
    near(over(gathered, P("m"), P("m"))(W, X), whole)
    square = over(lambda w: verax.grad(lambda w: total(w**2))(w), P("m"), P("m"))
    near(square(W), 2 * W)


def test_gradients_of_a_ring() -> None:
    turn = [(i, (i + 1) % N) for i in range(N)]

    def inside(w: Any) -> Any:
        def loss(w: Any) -> Any:
            product = other = w
            for _ in range(N - 1):
                other = lax.ppermute(other, "m", turn)
                product = product * other
            return total(vnp.sin(product))

        return verax.grad(loss)(w)

    near(
        over(inside, P("m"), P("m"))(W), verax.grad(lambda w: N * vnp.sin(w.prod()))(W)
    )


def test_gradients_of_exchanges() -> None:
    def scattered(w: Any) -> Any:
        rows = vnp.outer(w, vnp.arange(4.0))
        return lax.psum_scatter(rows, "m", scatter_dimension=1, tiled=True) ** 2

    def dealt(w: Any) -> Any:
        return lax.all_to_all(w, "m", 0, 0) ** 2 * lax.axis_index("m")

    def inside(f: Callable[[Any], Any]) -> Any:
        return lambda w: verax.grad(lambda w: total(f(w)))(w)

    near(
        over(inside(scattered), P("m"), P("m"))(W),
        verax.grad(lambda w: vnp.sum((w.sum() * vnp.arange(4.0)) ** 2))(W),
    )
    w = vnp.arange(16.0)
    whole = verax.grad(lambda w: vnp.sum(w.reshape(4, 4) ** 2 * vnp.arange(4.0)))(w)
    near(over(inside(dealt), P("m"), P("m"))(w), whole)


def test_gradients_of_a_layer_in_parts() -> None:
    w1, w2 = (
        vnp.cos(vnp.arange(24.0)).reshape(3, 8),
        vnp.sin(vnp.arange(16.0)).reshape(8, 2),
    )

    def loss(w1: Any, w2: Any, x: Any, add: Callable[[Any], Any]) -> Any:
        return vnp.sum(add(vnp.tanh(x @ w1) @ w2) ** 2)

    def inside(w1: Any, w2: Any, x: Any) -> Any:
        add = lambda y: lax.psum(y, "m")  # noqa: E731
        return verax.grad(loss, (0, 1, 2))(w1, w2, x, add)

    specs = (P(None, "m"), P("m"), P())
    actual = over(inside, specs, specs)(w1, w2, X)
    near(actual, verax.grad(loss, (0, 1, 2))(w1, w2, X, lambda y: y))


@pytest.mark.parametrize("to", ["varying", "reduced"])
def test_what_is_gathered(to: str) -> None:
    def inside(w: Any, x: Any) -> Any:
        def loss(w: Any) -> Any:
            return total((lax.all_gather(w, "m", tiled=True, to=to).sum() * x) ** 2)

        return verax.grad(loss)(w)

    whole = verax.grad(lambda w: vnp.sum((w.sum() * X) ** 2))(W)
    near(over(inside, (P("m"), P("m")), P("m"))(W, X), whole)
    same = over(
        lambda w: lax.all_gather(w, "m", tiled=True, to="invarying"), P("m"), P()
    )
    near(same(W), W)
    own = over(
        lambda w: verax.grad(
            lambda w: vnp.sum(lax.all_gather(w, "m", tiled=True, to="invarying") ** 3)
        )(w),
        P("m"),
        P("m"),
    )
    near(own(W), 3 * W**2)


def test_without_the_check_each_device_has_a_cotangent_of_its_own() -> None:
    def inside(w: Any) -> Any:
        assert str(verax.typeof(w)) == "f32[1]"
        return verax.grad(lambda w: total(w**2))(w)

    near(over(inside, P("m"), P("m"), check_vma=False)(W), 2 * N * W)


# ------------------------------------------------------------------------------ types


def test_types_say_along_which_axes_values_vary() -> None:
    seen: list[str] = []

    def f(x: Any, y: Any, z: Any) -> Any:
        seen.extend(
            str(verax.typeof(v))
            for v in (
                x,
                y,
                z,
                x + z,
                x[0] * y[0],
                lax.psum(x, "a"),
                lax.psum(x + y[0], ("a", "b")),
                lax.axis_index("b"),
                lax.pcast(z, ("a", "b"), to="varying"),
                lax.all_gather(x, "a"),
                lax.pmax(y, "b"),
                vnp.ones(2),
                vnp.zeros_like(x),
                verax.random.bits(verax.random.key(0), (2,)),
            )
        )
        return lax.psum(x, "a")

    verax.shard_map(f, mesh=GRID, in_specs=(P("a"), P("b"), P()), out_specs=P())(
        vnp.ones((4, 2)), vnp.ones((4, 2)), vnp.ones(2)
    )
    assert seen == [
        "f32[2,2]{V:a}",
        "f32[1,2]{V:b}",
        "f32[2]",
        "f32[2,2]{V:a}",
        "f32[2]{V:(a,b)}",
        "f32[2,2]",
        "f32[2,2]",
        "i32[]{V:b}",
        "f32[2]{V:(a,b)}",
        "f32[2,2,2]{V:a}",
        "f32[1,2]",
        "f32[2]",
        "f32[2,2]{V:a}",
        "u32[2]",
    ]


def test_manual_axis_type() -> None:
    types: list[Any] = []

    def f(x: Any) -> Any:
        types.append(verax.typeof(x))
        return x

    over(f, P("m"), P("m"))(W)
    (aval,) = types
    assert aval.vma == frozenset({"m"})
    assert aval.manual_axis_type == aval.mat == ManualAxisType(varying={"m"})
    assert aval.update(manual_axis_type=ManualAxisType()).vma == frozenset()
    assert aval.strip_weak_type() is aval
    with pytest.raises(ValueError, match="varying and unreduced"):
        ManualAxisType(varying={"m"}, unreduced={"m"})


def test_types_vary_along_the_axes_of_the_mesh_that_they_are_given() -> None:
    manual = MESH.abstract_mesh.update_axis_types({"m": AxisType.Manual})
    varying = ManualAxisType(varying={"m"})
    for spec in (P(), P(None, None)):
        place = NamedSharding(manual, spec)
        aval = verax.core.ShapedArray(
            (2, 2), W.dtype, sharding=place, manual_axis_type=varying
        )
        assert str(aval) == "f32[2,2]{V:m}"
    with pytest.raises(ValueError, match="manual_axis_type names 'm'"):
        verax.core.ShapedArray((2,), W.dtype, manual_axis_type=varying)


def test_operands_are_not_cast_where_an_option_says_so() -> None:
    def product(x: Any, y: Any) -> Any:
        return x * y

    def told(x: Any, y: Any) -> Any:
        return x * lax.pcast(y, "m", to="varying")

    mapped, cast = [
        verax.shard_map(f, mesh=MESH, in_specs=(P("m"), P()), out_specs=P("m"))
        for f in (product, told)
    ]
    due = mapped(W, W[:1])
    for g in (mapped, verax.jit(mapped)):
        with (
            verax.auto_pcast(False),
            pytest.raises(ValueError, match="requires varying manual axes to match"),
        ):
            g(W, W[:1])
    with verax.auto_pcast(False):
        assert np.array_equal(cast(W, W[:1]), due)
    assert np.array_equal(mapped(W, W[:1]), due)
    with pytest.raises(TypeError, match="set or frozenset"):
        ManualAxisType(varying="m")  # type: ignore[arg-type]  # what is refused


def test_casts() -> None:
    def terms(w: Any) -> Any:
        part = lax.pcast(w, "m", to="unreduced")
        assert str(verax.typeof(part)) == "f32[1]{U:m}"
        return lax.psum(part * 2, "m")

    near(over(terms, P("m"), P())(W), [20.0])

    def reduced(p: Any, x: Any) -> Any:
        def loss(p: Any) -> Any:
            same = lax.pcast(p, "m", to="reduced")
            assert str(verax.typeof(same)) == "f32[]{R:m}"
            return total(same * x)

        return verax.grad(loss)(p)

    near(over(reduced, (P(), P("m")), P())(vnp.float32(2), W), W.sum())
    for to, spec, text in (
        ("varying", P("m"), "it is that already"),
        ("reduced", P("m"), "Unsupported pcast from='varying' to='reduced'"),
        ("unreduced", P(), "Unsupported pcast from='invarying' to='unreduced'"),
        ("whole", P(), "Allowed `to` values"),
    ):
        with pytest.raises(ValueError, match=text):
            over(lambda x, to=to: lax.pcast(x, "m", to=to), spec, P("m"))(W)
    with pytest.raises(TypeError, match="must be a tuple or a str"):
        over(lambda x: lax.pcast(x, {"m"}, to="varying"), P(), P("m"))(W)  # type: ignore[arg-type]  # what is refused


def test_carries_and_branches_agree_in_what_varies() -> None:
    def carried(x: Any) -> Any:
        return lax.fori_loop(0, 2, lambda i, c: c + x, vnp.zeros(1))

    with pytest.raises(
        TypeError,
        match=r"applying `jax.lax.pcast\(..., \('m',\), to='varying'\)` to the initial",
    ):
        over(carried, P("m"), P("m"))(W)
    alone = over(
        lambda x: lax.fori_loop(0, 2, lambda i, c: 0 * c + 1, x), P("m"), P("m")
    )
    near(alone(W), [1, 1, 1, 1])
    with pytest.raises(TypeError, match="to the output of true_fun"):
        over(
            lambda x: lax.cond(True, lambda x: vnp.ones(1), lambda x: x, x),
            P("m"),
            P("m"),
        )(W)


def test_what_depends_on_the_device_varies() -> None:
    """A choice, or a number of steps, that differs between devices does."""

    def chosen(x: Any) -> Any:
        return lax.cond(lax.axis_index("m") == 0, lambda: 1.0, lambda: 2.0)

    with pytest.raises(ValueError, match="require replication"):
        over(chosen, P("m"), P())(W)
    near(over(lambda x: chosen(x)[None], P("m"), P("m"))(W), [1, 2, 2, 2])

    def counted(x: Any) -> Any:
        go = lambda c: c[0] < lax.axis_index("m")  # noqa: E731
        return lax.while_loop(go, lambda c: (c[0] + 1, c[1] * 2), (0, 1.0))[1]

    with pytest.raises(ValueError, match="require replication"):
        over(counted, P("m"), P())(W)
    near(over(lambda x: counted(x)[None], P("m"), P("m"))(W), [1, 2, 4, 8])


def test_choices_by_device_are_not_differentiated_in_what_they_capture() -> None:
    """The cotangents would have to be summed within a branch that some devices take."""

    def inside(p: Any, x: Any) -> Any:
        def loss(p: Any) -> Any:
            return total(lax.cond(x[0, 0] > 0, lambda x: p * x, lambda x: x, x))

        return verax.grad(loss)(p)

    with pytest.raises(ShardingTypeError, match=r"cast it before, by verax.lax.pcast"):
        over(inside, (P(), P("m")), P())(vnp.float32(2), X)


def test_wrong_calls() -> None:
    with pytest.raises(ValueError, match=r"only varying across mesh axes \{\} and not"):
        over(lambda x: x, P("m"), P())(W)
    with pytest.raises(ValueError, match="combining the tangents first"):
        over(
            lambda p, x: verax.jvp(lambda p: p * 2, (p,), (x,))[1],
            (P(), P("m")),
            P("m"),
        )(W[:1], W)
    with pytest.raises(ShardingTypeError, match="unreduced"):
        over(
            lambda w: lax.psum(lax.pcast(w, "m", to="unreduced") + w, "m"), P("m"), P()
        )(W)


def test_maps_inside_of_maps() -> None:
    def outer(x: Any) -> Any:
        def inner(y: Any) -> Any:
            assert verax.typeof(y).vma == {"a", "b"}
            return verax.grad(lambda y: lax.psum(vnp.sum(y**2), ("a", "b")))(y)

        assert verax.typeof(x).vma == {"a"}
        return verax.shard_map(
            inner, in_specs=P("b"), out_specs=P("b"), axis_names={"b"}
        )(x)

    x = vnp.arange(8.0)
    f = verax.shard_map(
        outer, mesh=GRID, in_specs=P("a"), out_specs=P("a"), axis_names={"a"}
    )
    near(f(x), 2 * x)
    near(verax.grad(lambda x: (f(x) ** 2).sum())(x), 8 * x)


def test_references_hold_what_varies() -> None:
    ref = verax.new_ref(vnp.zeros(8))

    def body(ref: Any, x: Any) -> Any:
        ref[...] = lax.psum(x, "m")
        ref[...] *= x
        return x

    over(body, P("m"), P("m"))(ref, vnp.arange(8.0))
    assert np.asarray(ref[...]).tolist() == [0, 16, 24, 48, 48, 80, 72, 112]


# ------------------------------------------------------------ the library's own loops


def solved(x: Any) -> Any:
    times = vnp.linspace(0.0, 1.0, 3)
    return ode.odeint(lambda y, t: -y * x * (t + 1.0), vnp.ones(2), times)[-1]


KEYS = verax.random.split(verax.random.key(0), N)
SYSTEM = 3 * vnp.eye(2) + 0.1
OWN_LOOPS: dict[str, Callable[[Any, Any], Any]] = {
    "gamma": verax.random.gamma,
    "beta": lambda k, x: verax.random.beta(k, x, vnp.ones(2)),
    "poisson": lambda k, x: verax.random.poisson(k, 5 * x).astype(float),
    "binomial": lambda k, x: verax.random.binomial(k, 9.0, x / 9),
    "one key": lambda k, x: verax.random.gamma(verax.random.key(3), x),
    "gcd": lambda k, x: vnp.gcd(6, (4 * x).astype(int)).astype(float),
    "gmres": lambda k, x: gmres(SYSTEM, x)[0],
    "odeint": lambda k, x: solved(x),
    "batch": lambda k, x: verax.vmap(solved)(vnp.stack([x, x + 1.0]))[1],
    "keys": lambda k, x: verax.vmap(lambda k: verax.random.gamma(k, x))(
        verax.random.split(k, 2)
    )[1],
}


@pytest.mark.parametrize(
    "name", rarely(OWN_LOOPS, "beta", "poisson", "binomial", "one key", "batch", "keys")
)
def test_loops_of_the_library_vary_as_they_must(name: str) -> None:
    f = OWN_LOOPS[name]
    xs = (vnp.arange(2.0 * N) + 2).reshape(N, 2) / 3

    def both(k: Any, x: Any) -> Any:
        loss = lambda x: vnp.sum(f(k[0], x[0]) * vnp.arange(1.0, 3.0))  # noqa: E731
        return f(k[0], x[0])[None], verax.grad(loss)(x)

    actual = over(both, (P("m"), P("m")), P("m"))(KEYS, xs)
    alone = [both(KEYS[i : i + 1], xs[i : i + 1]) for i in range(N)]
    for got, due in zip(actual, zip(*alone, strict=True), strict=True):
        np.testing.assert_allclose(got, vnp.concatenate(due), rtol=2e-3, atol=1e-4)


def test_a_map_of_a_loop_whose_elements_end_at_different_times() -> None:
    def halvings(x: Any) -> Any:
        return lax.while_loop(lambda c: c > 1.0, lambda c: c / 2, x)

    xs = vnp.arange(8.0) + 1
    actual = over(verax.vmap(halvings), P("m"), P("m"))(xs)
    near(actual, verax.vmap(halvings)(xs))


def test_loops_of_users_say_themselves_what_varies() -> None:
    def body(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, c: c + x[0], vnp.float32(0))[None]

    with pytest.raises(TypeError, match="pcast"):
        over(body, P("m"), P("m"))(vnp.arange(4.0))


# ---------------------------------------------------------------- rules and structs


def summed_in_rules(collective: Callable[[Any], Any]) -> Any:
    """A function without collectives, with one in both of its rules."""
    f = verax.custom_vjp(vnp.tan)
    f.defvjp(
        lambda x: (collective(x), x),
        lambda x, ct: (vnp.cos(x) * collective(ct),),
    )
    return f


@pytest.mark.parametrize("wrapped", [lambda f: f, verax.checkpoint, verax.jit])
@pytest.mark.parametrize("check", [True, False])
def test_collectives_of_rules_alone_where_no_operand_varies(
    wrapped: Callable[..., Any], check: bool
) -> None:
    f = wrapped(summed_in_rules(lambda x: lax.pmean(x, "m")))
    g = over(lambda x: f(x) ** 2, P(), P(), check_vma=check)
    x = vnp.arange(4.0)
    near(verax.grad(lambda x: g(x).sum())(x), 2 * x * vnp.cos(x))
    near(g(x), vnp.tan(x) ** 2)


def test_collectives_of_rules_alone_under_vmap() -> None:
    f = summed_in_rules(lambda x: lax.psum(x, "i") / 5)
    x, z = vnp.arange(3.0), vnp.arange(5.0)

    def loss(x: Any) -> Any:
        return vnp.sum(verax.vmap(lambda z: f(x) * z, axis_name="i")(z))

    near(verax.grad(loss)(x), 10 * vnp.cos(x))


def test_the_identity_whose_cotangents_are_summed() -> None:
    f: Any = verax.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, ct: (lax.psum(ct, "m"),))
    g = over(lambda x, w: f(x) * w, (P(), P("m")), P("m"), check_vma=False)
    w = vnp.arange(8.0)
    near(verax.grad(lambda x: g(x, w).sum())(vnp.ones(1)), [N * w.sum()])


def test_a_forward_rule_with_a_collective_alone() -> None:
    f: Any = verax.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda xs, ts: (xs[0] * 2, 2 * lax.pmean(ts[0], "m")))
    x = vnp.arange(3.0)
    near(verax.jvp(over(f, P(), P()), (x,), (x,)), (2 * x, 2 * x))


def test_structs_say_what_varies() -> None:
    def body(w: Any, x: Any) -> Any:
        actual = verax.eval_shape(lambda w, x: (w * x).sum(), w, x)
        assert actual.manual_axis_type == ManualAxisType(varying={"m"})
        assert verax.eval_shape(lambda w: w, w).manual_axis_type is None
        assert verax.eval_shape(lambda y: y * 2, actual).manual_axis_type
        like = verax.ShapeDtypeStruct.like(x)
        assert like.manual_axis_type == ManualAxisType(varying={"m"})
        for one in (lax.full_like(actual, 1), vnp.ones_like(actual)):
            assert verax.typeof(one).vma == {"m"}
        _, pull = verax.vjp(lambda x: (w * x).sum(), x)
        return pull(lax.full_like(actual, 1))[0]

    near(over(body, (P(), P("m")), P("m"))(2.0, vnp.arange(8.0)), np.full(8, 2.0))
    assert verax.eval_shape(lambda x: x, vnp.ones(2)).manual_axis_type is None


def test_jacobians_inside() -> None:
    def body(w: Any, x: Any) -> Any:
        f = lambda x: vnp.sin(x @ w).sum(-1)  # noqa: E731
        return verax.jacrev(f)(x), verax.jacfwd(f)(x)

    w, x = vnp.arange(6.0).reshape(3, 2), X[:4]
    with verax.enable_checks(True):
        backward, forward = over(body, (P(), P("m")), P("m"))(w, x)
    near(backward, forward)
    near(backward[:, 0], verax.vmap(verax.grad(lambda x: vnp.sin(x @ w).sum()))(x))


@pytest.mark.parametrize("checks", [True, False])
def test_a_map_along_an_explicit_axis_inside_another(checks: bool) -> None:
    mesh = verax.make_mesh((2, 2, 2), ("x", "y", "z"))
    values = vnp.arange(32.0).reshape(4, 8)

    def outer(x: Any) -> Any:
        factor = vnp.sin(verax.sharding.reshard(x, P(None, None)))[0, :1]

        def loss(x: Any) -> Any:
            inner = verax.smap(
                lambda b: b * b * factor, in_axes=0, out_axes=0, axis_name="y"
            )
            return lax.psum(verax.sharding.reshard(inner(x), P()).sum(), "x")

        return verax.grad(loss)(x)

    with verax.set_mesh(mesh), verax.enable_checks(checks):
        x = verax.device_put(values, P("x", "y"))
        f = verax.smap(outer, out_axes=0, axis_name="x")
        actual, again = f(x), verax.jit(f)(x)
    factors = vnp.repeat(vnp.sin(values[::2, :1]), 2, axis=0)
    near(actual, 2 * values * factors)
    near(again, actual)

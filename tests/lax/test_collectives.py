"""Collectives under `vmap(axis_name=)`, held to what NumPy makes of the whole stack."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax

RNG = np.random.default_rng(0)
NO_NAME: Any = 3
X = RNG.normal(size=(4, 4, 3)).astype(np.float32)


def over(f: Any, *args: Any, **options: Any) -> Any:
    """`f` over the axis "i", eagerly and compiled, which must agree."""
    mapped = verax.vmap(f, axis_name="i", **options)
    eager, compiled = mapped(*args), verax.jit(mapped)(*args)
    np.testing.assert_allclose(eager, compiled, rtol=1e-6, atol=1e-6)
    return np.asarray(eager)


def test_reductions() -> None:
    total = X.sum(0, keepdims=True)
    np.testing.assert_allclose(over(lambda x: x - lax.psum(x, "i"), X), X - total, 1e-5)
    got = over(lambda x: lax.pmean(x, "i"), X, out_axes=None)
    np.testing.assert_allclose(got, X.mean(0), rtol=1e-5)
    assert np.array_equal(over(lambda x: lax.pmax(x, "i"), X, out_axes=None), X.max(0))
    assert np.array_equal(over(lambda x: lax.pmin(x, "i"), X, out_axes=None), X.min(0))
    assert over(lambda x: lax.pmean(x, "i"), np.arange(4), out_axes=None) == 1.5
    flags = np.array([True, False, True, True])
    assert over(lambda x: lax.psum(x, "i"), flags, out_axes=None) == 3


def test_numbers_and_unmapped_values_count_once_for_each_element() -> None:
    assert over(lambda x: x * lax.psum(1, "i"), vnp.ones(4)).tolist() == [4.0] * 4
    mapped = verax.vmap(
        lambda x, y: x + lax.psum(y, "i"), in_axes=(0, None), axis_name="i"
    )
    assert mapped(vnp.zeros(4), 2.0).tolist() == [8.0] * 4
    only = verax.vmap(lambda: lax.psum(vnp.ones(2), "i"), axis_name="i", axis_size=3)
    assert only().tolist() == [[3.0, 3.0]] * 3


def test_trees_go_leaf_by_leaf() -> None:
    out = verax.vmap(lambda t: lax.psum(t, "i"), axis_name="i", out_axes=None)(
        {"a": X, "b": (X[:, 0],)}
    )
    np.testing.assert_allclose(out["b"][0], X[:, 0].sum(0), rtol=1e-5)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_all_gather(axis: int) -> None:
    got = over(lambda x: lax.all_gather(x, "i", axis=axis), X, out_axes=None)
    assert np.array_equal(got, np.moveaxis(X, 0, axis if axis >= 0 else 2))
    flat = over(lambda x: lax.all_gather(x, "i", axis=axis, tiled=True), X)
    assert np.array_equal(flat[2], np.concatenate(list(X), axis=axis))


def test_psum_scatter() -> None:
    got = over(lambda x: lax.psum_scatter(x, "i"), X)
    np.testing.assert_allclose(got, X.sum(0), rtol=1e-5, atol=1e-6)
    wide = RNG.normal(size=(4, 2, 8)).astype(np.float32)
    got = over(
        lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True), wide
    )
    want = np.stack(np.split(wide.sum(0), 4, axis=1))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_all_to_all() -> None:
    got = over(lambda x: lax.all_to_all(x, "i", 0, 1), X)
    want = [np.stack([X[j][i] for j in range(4)], axis=1) for i in range(4)]
    assert np.array_equal(got, want)
    tall = np.arange(4 * 8 * 3).reshape(4, 8, 3)
    got = over(lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True), tall)
    want = [
        np.concatenate([tall[j][2 * i : 2 * i + 2] for j in range(4)], axis=1)
        for i in range(4)
    ]
    assert np.array_equal(got, want)


def test_ppermute_and_pshuffle() -> None:
    pairs = [(0, 1), (1, 2), (3, 0)]
    got = over(lambda x: lax.ppermute(x, "i", pairs), X)
    want = np.zeros_like(X)
    for source, target in pairs:
        want[target] = X[source]
    assert np.array_equal(got, want)
    got = over(lambda x: lax.pshuffle(x, "i", [3, 1, 0, 2]), X)
    assert np.array_equal(got, X[[3, 1, 0, 2]])


def test_index_and_size() -> None:
    got = over(lambda x: x * 0 + lax.axis_index("i") * lax.axis_size("i"), vnp.ones(4))
    assert got.tolist() == [0, 4, 8, 12]
    alone = verax.vmap(lambda: lax.axis_index("i"), axis_name="i", axis_size=3)
    assert alone().tolist() == [0, 1, 2]


def test_two_axes() -> None:
    x = vnp.arange(6.0).reshape(2, 3)

    def nested(f: Any) -> Any:
        inner = verax.vmap(f, axis_name="j")
        return verax.jit(verax.vmap(inner, axis_name="i"))(x)

    assert nested(lambda v: lax.psum(v, ("i", "j"))).tolist() == [[15.0] * 3] * 2
    assert nested(lambda v: lax.psum(v, "i")).tolist() == [[3.0, 5.0, 7.0]] * 2
    assert nested(lambda v: lax.psum(v, "j")).tolist() == [[3.0] * 3, [12.0] * 3]
    assert nested(lambda v: v * 0 + lax.axis_index(("i", "j"))).tolist() == [
        [0, 1, 2],
        [3, 4, 5],
    ]
    assert nested(lambda v: lax.all_gather(v, ("i", "j")))[1, 1].tolist() == [
        0,
        1,
        2,
        3,
        4,
        5,
    ]
    assert nested(lambda v: lax.pmax(v, ("j", "i"))).tolist() == [[5.0] * 3] * 2
    shadowed = verax.vmap(
        verax.vmap(lambda v: lax.psum(v, "i"), axis_name="i"), axis_name="i"
    )
    assert shadowed(x).tolist() == [[3.0] * 3, [12.0] * 3]


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize(("split", "joined"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_two_axes_are_one_of_all_their_elements(
    split: int, joined: int, tiled: bool
) -> None:
    x = vnp.arange(2 * 3 * 24.0).reshape(2, 3, *((6, 4) if split == 0 else (4, 6)))

    def exchange(v: Any, names: Any) -> Any:
        return lax.all_to_all(v, names, split, joined, tiled=tiled)

    def scatter(v: Any, names: Any) -> Any:
        return lax.psum_scatter(v, names, scatter_dimension=split, tiled=tiled)

    for f in (exchange, scatter):
        inner = verax.vmap(lambda v, f=f: f(v, ("i", "j")), axis_name="j")
        actual = verax.vmap(inner, axis_name="i")(x)
        flat = x.reshape(6, *x.shape[2:])
        expected = verax.vmap(lambda v, f=f: f(v, "k"), axis_name="k")(flat)
        assert (actual == expected.reshape(actual.shape)).all()


def test_inside_calls_loops_and_branches() -> None:
    inner = verax.jit(lambda x: lax.psum(x, "i"))
    assert over(lambda x: inner(x), vnp.arange(4.0)).tolist() == [6.0] * 4
    assert over(lambda x: inner(2.0) + x, vnp.zeros(4)).tolist() == [8.0] * 4

    def loop(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, y: lax.psum(y, "i") / 4 + y, x)

    want = np.arange(4.0)
    for _ in range(3):
        want = want.mean() + want
    assert np.allclose(over(loop, vnp.arange(4.0)), want)

    def numbered(_: Any) -> Any:
        carry, outs = lax.scan(
            lambda c, _: (c + lax.axis_index("i"), c), vnp.int32(0), None, length=3
        )
        return carry + outs.sum()

    assert over(numbered, vnp.zeros(4)).tolist() == [0, 6, 12, 18]

    def branch(x: Any) -> Any:
        return lax.cond(x > 1, lambda y: y + lax.axis_index("i"), lambda y: -y, x)

    assert over(branch, vnp.arange(4)).tolist() == [0, -1, 4, 6]
    with pytest.raises(NameError, match="'i'"):
        inner(1.0)


@pytest.mark.parametrize("run", [lambda f: f, verax.jit])
def test_choices_whose_branches_meet(run: Any) -> None:
    branches = [
        lambda v: (lax.psum(v, "i"), v[0, 1]),
        lambda v: (v, 1.0 * lax.axis_index("i")),
        lambda v: (-v, lax.psum(v.sum(), "i")),
    ]

    def f(i: Any, v: Any) -> Any:
        return lax.switch(i, branches, v)

    index = np.array([2, 0, 1, 0])
    first, second = run(verax.vmap(f, in_axes=(0, 1), axis_name="i"))(index, X)
    lanes = np.moveaxis(X, 1, 0)
    total = lanes.sum(0)
    want = np.stack([-lanes[0], total, lanes[2], total])
    np.testing.assert_allclose(first, want, rtol=1e-5, atol=1e-5)
    want = np.array([X.sum(), lanes[1, 0, 1], 2.0, lanes[3, 0, 1]])
    np.testing.assert_allclose(second, want, rtol=1e-4)


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (lambda x: lax.all_gather(x, "i", axis=0, tiled=True), (16, 3)),
        (lambda x: lax.all_gather(x, "i", axis=1, tiled=True), (4, 12)),
        (
            lambda x: verax.vjp(
                lambda y: lax.psum_scatter(y, "i", tiled=True), vnp.zeros((16, 3))
            )[1](x)[0],
            (16, 3),
        ),
        (lambda x: lax.psum_scatter(x, "i", tiled=True), (1, 3)),
        (
            lambda x: lax.psum_scatter(
                x.reshape(1, 12, 1), "i", scatter_dimension=1, tiled=True
            ),
            (1, 3, 1),
        ),
        (lambda x: lax.all_gather(x, "i", axis=1), (4, 4, 3)),
        (lambda x: lax.psum_scatter(x, "i"), (3,)),
        (lambda x: lax.psum_scatter(x[:, :2].T, "i", scatter_dimension=1), (2,)),
        (lambda x: lax.all_to_all(x, "i", 0, 1), (3, 4)),
        (lambda x: lax.ppermute(x, "i", [(0, 1)]), (4, 3)),
    ],
)
def test_types_are_known_while_tracing(call: Any, shape: Any) -> None:
    seen = []

    def f(x: Any) -> Any:
        y = call(x)
        seen.append(y.shape)
        return y

    inside = verax.make_jaxpr(f, axis_env=[("i", 4)])(X[0])
    assert seen == [shape]
    assert inside.out_avals[0].shape == shape
    assert verax.vmap(f, axis_name="i")(X).shape == (4, *shape)


def test_derivatives() -> None:
    stack = vnp.array(X)

    def spread(x: Any) -> Any:
        return verax.vmap(
            lambda v: vnp.sin(v) * lax.psum(v * v, "i") + lax.pmax(v, "i"),
            axis_name="i",
        )(x).sum()

    def plain(x: Any) -> Any:
        return (vnp.sin(x) * (x * x).sum(0) + x.max(0)).sum()

    np.testing.assert_allclose(
        verax.grad(spread)(stack), verax.grad(plain)(stack), rtol=1e-4, atol=1e-5
    )
    _, tangent = verax.jvp(spread, (stack,), (stack,))
    np.testing.assert_allclose(
        tangent, verax.jvp(plain, (stack,), (stack,))[1], rtol=1e-4
    )
    inside = verax.vmap(verax.grad(lambda x: lax.psum(x, "i")), axis_name="i")
    assert inside(vnp.ones(3)).tolist() == [3.0] * 3, "each pulls on all of the others"


ROUND = [
    lambda x: lax.all_gather(x, "i"),
    lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
    lambda x: lax.psum_scatter(x, "i"),
    lambda x: lax.all_to_all(x, "i", 0, 1),
    lambda x: lax.all_to_all(x, "i", 0, 1, tiled=True),
    lambda x: lax.ppermute(x, "i", [(0, 2), (1, 0)]),
    lambda x: lax.psum(x, "i"),
]


@pytest.mark.parametrize("number", range(len(ROUND)))
def test_transposes_are_adjoint(number: int) -> None:
    f = verax.vmap(ROUND[number], axis_name="i")
    out, pull = verax.vjp(f, X)
    ct = RNG.normal(size=out.shape).astype(np.float32)
    (back,) = pull(ct)
    np.testing.assert_allclose((ct * out).sum(), (back * X).sum(), rtol=1e-3, atol=1e-3)
    # Within the map: the rule of the collective itself, element by element.
    pulled = verax.vmap(
        lambda x, c: verax.vjp(ROUND[number], x)[1](c)[0], axis_name="i"
    )(X, ct)
    np.testing.assert_allclose(pulled, back, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("number", range(len(ROUND)))
def test_another_vmap_around_or_inside(number: int) -> None:
    f = ROUND[number]
    stack = RNG.normal(size=(2, 4, 4, 3)).astype(np.float32)
    want = np.stack([verax.vmap(f, axis_name="i")(x) for x in stack])
    outside = verax.vmap(verax.vmap(f, axis_name="i"))(stack)
    np.testing.assert_allclose(outside, want, rtol=1e-5, atol=1e-6)
    inside = verax.vmap(verax.vmap(f), in_axes=1, out_axes=1, axis_name="i")(stack)
    np.testing.assert_allclose(inside, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: lax.psum(x, "j"),
            NameError,
            r"unbound axis name: j\..*Axes in scope: 'i'",
        ),
        (lambda x: lax.psum(x, (NO_NAME,)), TypeError, "axis names must be strings"),
        (lambda x: lax.axis_size("k"), NameError, "axis name: k"),
        (lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)]), ValueError, "at most once"),
        (lambda x: lax.ppermute(x, "i", [(0, 9)]), ValueError, "0 to 3"),
        (lambda x: lax.pshuffle(x, "i", [0, 0, 1, 2]), ValueError, "permutation"),
        (lambda x: lax.psum_scatter(x[:3], "i"), ValueError, "size 3.*4 elements"),
        (lambda x: lax.all_to_all(x, "i", 1, 0), ValueError, "size 3"),
        (
            lambda x: lax.psum(x, "i", axis_index_groups=[[0], [1]]),
            ValueError,
            "axis_index_groups",
        ),
    ],
)
def test_wrong_calls(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        verax.vmap(call, axis_name="i")(X)


GROUPS = (
    [[0, 1], [2, 3]],
    [[0, 2], [1, 3]],
    [[3, 0], [1, 2]],
    [[2], [0], [3], [1]],
    [[3, 1, 0, 2]],
)
UNEVEN = ([[0, 1, 2], [3]], [[1], [3, 0, 2]])


def own_group(groups: Any, i: int) -> Any:
    return next(group for group in groups if i in group)


def by_group(groups: Any, f: Any, stack: Any = X) -> Any:
    """`f` of what the group of each element has, and of the place of the element."""
    actual = []
    for i in range(4):
        group = own_group(groups, i)
        actual.append(f(stack[group], group.index(i)))
    return np.stack(actual)


@pytest.mark.slow
@pytest.mark.parametrize("groups", GROUPS + UNEVEN)
def test_reductions_in_groups(groups: Any) -> None:
    got = over(lambda x: lax.psum(x, "i", axis_index_groups=groups), X)
    np.testing.assert_allclose(got, by_group(groups, lambda v, _: v.sum(0)), 1e-5)
    got = over(lambda x: lax.pmean(x, "i", axis_index_groups=groups), X)
    np.testing.assert_allclose(got, by_group(groups, lambda v, _: v.mean(0)), 1e-5)
    got = over(lambda x: lax.pmax(x, "i", axis_index_groups=groups), X)
    assert np.array_equal(got, by_group(groups, lambda v, _: v.max(0)))
    got = over(lambda x: lax.pmin(x, "i", axis_index_groups=groups), X)
    assert np.array_equal(got, by_group(groups, lambda v, _: v.min(0)))
    flags = np.array([True, False, True, True])
    got = over(lambda x: lax.psum(x, "i", axis_index_groups=groups), flags)
    assert got.tolist() == [flags[own_group(groups, i)].sum() for i in range(4)]
    got = over(lambda x: x + lax.psum(1, "i", axis_index_groups=groups), vnp.zeros(4))
    assert got.tolist() == [len(own_group(groups, i)) for i in range(4)]


@pytest.mark.slow
@pytest.mark.parametrize("groups", GROUPS)
def test_exchanges_in_groups(groups: Any) -> None:
    m = len(groups[0])

    def run(f: Any, stack: Any, **options: Any) -> Any:
        return over(lambda x: f(x, "i", axis_index_groups=groups, **options), stack)

    got = run(lax.all_gather, X, axis=1)
    expected = by_group(groups, lambda v, _: np.moveaxis(v, 0, 1))
    assert np.array_equal(got, expected)
    got = run(lax.all_gather, X, axis=-1, tiled=True)
    assert np.array_equal(got, by_group(groups, lambda v, _: np.concatenate(v, -1)))
    wide = RNG.normal(size=(4, 3, m)).astype(np.float32)
    got = run(lax.psum_scatter, wide, scatter_dimension=1)
    expected = by_group(groups, lambda v, i: v.sum(0)[:, i], wide)
    np.testing.assert_allclose(got, expected, 1e-5, 1e-6)
    got = over(lambda x: lax.all_to_all(x, "i", 1, 0, axis_index_groups=groups), wide)
    assert np.array_equal(got, by_group(groups, lambda v, i: v[:, :, i], wide))
    swapped = over(lambda x: lax.pswapaxes(x, "i", 1, axis_index_groups=groups), wide)
    assert np.array_equal(swapped, np.moveaxis(got, 1, 2))


@pytest.mark.slow
def test_several_axes_are_one_for_groups_and_pairs() -> None:
    groups = [[0, 5], [4, 1], [2, 3]]
    pairs = [(0, 5), (3, 1), (5, 4)]
    x = vnp.array(RNG.normal(size=(2, 3, 2, 4)).astype(np.float32))
    calls = [
        lambda v, names: lax.psum(v, names, axis_index_groups=groups),
        lambda v, names: lax.pmax(v, names, axis_index_groups=groups),
        lambda v, names: lax.all_gather(v, names, axis_index_groups=groups, axis=1),
        lambda v, names: lax.psum_scatter(v, names, axis_index_groups=groups),
        lambda v, names: lax.psum_scatter(
            v, names, axis_index_groups=groups, tiled=True, scatter_dimension=1
        ),
        lambda v, names: lax.all_to_all(v, names, 0, 1, axis_index_groups=groups),
        lambda v, names: lax.all_to_all(
            v, names, 1, 0, axis_index_groups=groups, tiled=True
        ),
        lambda v, names: lax.ppermute(v, names, pairs),
        lambda v, names: lax.pshuffle(v, names, [3, 1, 0, 2, 5, 4]),
        lambda v, names: lax.pbroadcast(v, names, 4),
    ]
    for call in calls:
        inner = verax.vmap(lambda v, call=call: call(v, ("i", "j")), axis_name="j")
        actual = verax.jit(verax.vmap(inner, axis_name="i"))(x)
        flat = x.reshape(6, 2, 4)
        expected = verax.vmap(lambda v, call=call: call(v, "k"), axis_name="k")(flat)
        np.testing.assert_allclose(actual, expected.reshape(actual.shape), 1e-6)


def test_groups_under_other_maps_and_derivatives() -> None:
    groups = [[0, 3], [2, 1]]

    def f(x: Any) -> Any:
        g = verax.vmap(
            lambda v: (
                vnp.sin(v) * lax.psum(v * v, "i", axis_index_groups=groups)
                + lax.all_gather(v, "i", axis_index_groups=groups)[0]
            ),
            axis_name="i",
        )
        return verax.vmap(g, in_axes=1)(x).sum()

    def plain(x: Any) -> Any:
        group = vnp.array([[0, 3], [2, 1], [2, 1], [0, 3]])
        return (vnp.sin(x) * (x[group] ** 2).sum(1) + x[group][:, 0]).sum()

    stack = vnp.array(X)
    np.testing.assert_allclose(f(stack), plain(stack), rtol=1e-4)
    np.testing.assert_allclose(
        verax.grad(f)(stack), verax.grad(plain)(stack), rtol=1e-4, atol=1e-5
    )


def test_what_are_no_groups() -> None:
    def call(f: Any, groups: Any, **options: Any) -> Any:
        return over(lambda x: f(x, "i", axis_index_groups=groups, **options), X)

    for groups in ([[0, 1], [2]], [[0, 1], [1, 2, 3]], [[0, 1], [2, 4]], []):
        with pytest.raises(ValueError, match="must name each of the 4 elements"):
            call(lax.psum, groups)
    for f in (lax.all_gather, lax.psum_scatter):
        with pytest.raises(ValueError, match="of one size"):
            call(f, UNEVEN[0])
    with pytest.raises(ValueError, match="must be 2"):
        call(lax.psum_scatter, GROUPS[0])


def test_pbroadcast_and_pcast() -> None:
    got = over(lambda x: lax.pbroadcast({"a": x}, "i", 2)["a"], X)
    assert np.array_equal(got, np.broadcast_to(X[2], X.shape))
    got = over(lambda x, n: lax.pbroadcast(x, "i", n), X, np.array([3, 0, 4, -1]))
    assert np.array_equal(got, np.stack([X[3], X[0], 0 * X[0], 0 * X[0]]))
    with pytest.raises(TypeError, match="number of an element"):
        over(lambda x: lax.pbroadcast(x, "i", 1.0), X)
    assert np.array_equal(over(lambda x: lax.pcast(x, "i", to="varying"), X), X)
    assert np.array_equal(over(lambda x: lax.pvary(x, "i"), X), X)
    with pytest.raises(ValueError, match="varying"):
        over(lambda x: lax.pcast(x, "i", to="reduced"), X)
    with pytest.raises(NameError, match="unbound"):
        lax.pcast(1.0, "i", to="varying")


@pytest.mark.parametrize("runs", [1, 2])
def test_ragged_all_to_all(runs: int) -> None:
    rng = np.random.default_rng(runs)
    n, k = 3, 3 * runs
    sent = rng.integers(0, 4, (n, k)).astype(np.int32)
    starts = (np.cumsum(sent, 1) - sent).astype(np.int32)
    x = rng.normal(size=(n, sent.sum(1).max() + 1, 2)).astype(np.float32)
    received = sent.reshape(n, n, runs).transpose(1, 0, 2).reshape(n, k)
    at = np.cumsum(received, 1) - received
    places = at.reshape(n, n, runs).transpose(1, 0, 2).reshape(n, k).astype(np.int32)
    out = rng.normal(size=(n, received.sum(1).max() + 2, 2)).astype(np.float32)
    expected = out.copy()
    for i in range(n):
        for run in range(k):
            to, length = run // runs, sent[i, run]
            rows = x[i, starts[i, run] : starts[i, run] + length]
            expected[to, places[i, run] : places[i, run] + length] = rows

    def send(*args: Any) -> Any:
        return lax.ragged_all_to_all(*args, axis_name="i")

    args = (starts, sent, places, received)
    assert np.array_equal(over(send, x, out, *args), expected)
    ct = rng.normal(size=out.shape).astype(np.float32)
    _, pull = verax.vjp(
        lambda x, y: verax.vmap(send, axis_name="i")(x, y, *args), x, out
    )
    dx, dout = pull(vnp.array(ct))
    np.testing.assert_allclose(
        (dx * x).sum() + (dout * out).sum(), (ct * expected).sum(), rtol=1e-4
    )
    with pytest.raises(ValueError, match="send_sizes"):
        over(send, x, out, starts, sent[:, 1:], places, received)
    with pytest.raises(TypeError, match="one dtype"):
        over(send, x, out.astype(int), *args)

"""Control flow under the laws: loops and choices mean the same, however transformed.

One idea: each construct stands beside the Python loop or choice that it means, and
both go through one chain of transformations; what comes out must agree.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import verax
import verax.numpy as vnp
from property_tests.levels import by_turns
from verax import Array, lax
from verax.verify.cases.case import double_precision

type Function = Callable[..., Any]
ALL = (0, 1, 2)
POINT = (np.float64(0.7), np.float64(0.4))
LOOPS = [(3, False, 1), (3, True, 2), (1, False, 1), (2, True, True)]
CHAINS: dict[str, Callable[[Function], Function]] = {
    "value": lambda f: f,
    "grad": lambda f: verax.grad(f, ALL),
    "jacfwd": lambda f: verax.jacfwd(f, ALL),
    "forward over reverse": lambda f: verax.jacfwd(verax.jacrev(f, ALL), ALL),
    "reverse over reverse": lambda f: verax.jacrev(verax.jacrev(f, ALL), ALL),
    "reverse over forward": lambda f: verax.jacrev(verax.jacfwd(f, ALL), ALL),
}
AXES = [(0, None, None), (None, 0, None), (None, None, 0), (0, 0, 0)]


def agree(result: Any, due: Any) -> None:
    """Two trees of numbers are the same, NaN included."""
    left, right = (verax.tree_util.tree_leaves(tree) for tree in (result, due))
    for x, y in zip(left, right, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-10)


def step(k: Any) -> Function:
    """A step with a float and an integer carry, where the rows are used as they are."""

    def body(carry: Any, x: Any) -> Any:
        h, n = carry
        new = vnp.sin(k * h) * SCALE[0] + x * h + vnp.cos(k)
        return (new, n + 1), new * x + vnp.where(n > 1, k, 2.0)

    return body


SCALE = np.array([0.3, 0.7])


def total(loop: Function) -> Function:
    """A scalar function of (k, carry, xs) that goes through a loop."""

    def f(k: Any, c: Any, xs: Any) -> Any:
        (h, _), ys = loop(step(k), (c, 0), xs)
        return h * ys.sum() + vnp.sum(vnp.sin(ys))

    return f


def unrolled(reverse: bool) -> Function:
    def loop(f: Function, carry: Any, xs: Any) -> Any:
        count = xs.shape[0]
        ys: list[Any] = [None] * count
        for i in reversed(range(count)) if reverse else range(count):
            carry, ys[i] = f(carry, xs[i])
        return carry, vnp.stack(ys) if ys else vnp.zeros((0,))

    return loop


def scanned(reverse: bool, unroll: int | bool) -> Function:
    return lambda f, carry, xs: lax.scan(f, carry, xs, reverse=reverse, unroll=unroll)


def loop_of_while(f: Function, carry: Any, xs: Any) -> Any:
    """The loop by `while_loop`, which writes the results itself."""

    def body(state: Any) -> Any:
        i, carry, ys = state
        carry, y = f(carry, lax.dynamic_index_in_dim(xs, i, keepdims=False))
        return i + 1, carry, ys.at[i].set(y)

    state = (0, carry, vnp.zeros(xs.shape))
    return lax.while_loop(lambda s: s[0] < xs.shape[0], body, state)[1:]


def rows(length: int) -> Array:
    return vnp.array(np.linspace(-0.8, 1.1, length))


def stacked(f: Function, axes: Sequence[int | None], size: int) -> Function:
    """`vmap` as a Python loop."""

    def g(*args: Any) -> Any:
        outs = [
            f(*[x if a is None else x[i] for x, a in zip(args, axes, strict=True)])
            for i in range(size)
        ]
        return verax.tree_util.tree_map(lambda *xs: vnp.stack(xs), *outs)

    return g


def summed(f: Function) -> Function:
    return lambda *args: f(*args).sum()


def spread(args: Sequence[Any], axes: Sequence[int | None], size: int) -> list[Any]:
    """Arguments with another value for each of `size` elements where mapped."""
    shifts = vnp.array(np.linspace(0.0, 0.3, size))
    return [
        x if axis is None else vnp.stack([vnp.asarray(x) + s for s in shifts])
        for x, axis in zip(args, axes, strict=True)
    ]


@pytest.mark.parametrize(("length", "reverse", "unroll"), LOOPS)
@pytest.mark.parametrize("chain", by_turns(CHAINS))
@settings(max_examples=1 + settings().max_examples // 50)
@given(seed=st.integers(0, 1 << 16))
def test_scan_is_the_unrolled_loop(
    chain: str, length: int, reverse: bool, unroll: int | bool, seed: int
) -> None:
    with double_precision():
        k, c = np.random.default_rng(seed).uniform(-1.0, 1.0, 2)
        change, args = CHAINS[chain], (k, c, rows(length))
        due = change(total(unrolled(reverse)))(*args)
        f = change(total(scanned(reverse, unroll)))
        agree(f(*args), due)
        agree(verax.jit(f)(*args), due)


@pytest.mark.parametrize(("axes", "chain"), by_turns(product(AXES, CHAINS), 5))
def test_vmap_of_scan_in_every_order(axes: Sequence[int | None], chain: str) -> None:
    with double_precision():
        change, args = CHAINS[chain], spread((*POINT, rows(3)), axes, 2)
        f, g = total(scanned(False, 1)), total(unrolled(False))
        agree(verax.vmap(change(f), axes)(*args), stacked(change(g), axes, 2)(*args))
        inside = change(summed(verax.vmap(f, axes)))
        agree(inside(*args), change(summed(stacked(g, axes, 2)))(*args))


def test_scan_is_while() -> None:
    with double_precision():
        args = (*POINT, rows(3))
        f, g = total(scanned(False, 1)), total(loop_of_while)
        for push in (lambda h: h, third, lambda h: verax.jit(third(h))):
            agree(push(g)(*args), push(f)(*args))
        agree(third(g)(*args), third(total(unrolled(False)))(*args))


def third(f: Function) -> Function:
    return verax.jacfwd(verax.jacfwd(verax.jacfwd(f)))


@pytest.mark.parametrize("length", [0, 1, 3])
def test_lengths(length: int) -> None:
    powers: list[Function] = [
        lambda x: lax.scan(lambda c, _: (c * x, c), x, None, length)[0],
        lambda x: lax.scan(lambda c, y: (c * x * y, c), x, vnp.ones(length))[0],
        lambda x: lax.fori_loop(0, length, lambda i, c: c * x, x),
    ]
    for fun in powers:
        agree(fun(2.0), 2.0 ** (1 + length))
        agree(verax.grad(fun)(2.0), (1 + length) * 2.0**length)
        agree(verax.jvp(fun, (2.0,), (1.0,))[1], (1 + length) * 2.0**length)
        agree(verax.jit(verax.vmap(fun))(vnp.ones(2)), np.ones(2))
        assert verax.vmap(fun)(vnp.ones(0)).shape == (0,)
    ys = lax.scan(lambda c, x: (c, x * c), 2.0, vnp.ones((length, 2)))[1]
    assert ys.shape == (length, 2)


PREDICATES = np.array([True, False, True, False])
ROOTS = np.array([0.5, 0.0, 0.2, -1.0])


def root(p: Any, x: Any, y: Any) -> Any:
    """NaN, or an infinite slope, in the branch that is not taken."""
    return lax.cond(
        p, lambda x, y: vnp.sqrt(x) * y, lambda x, y: x * x + vnp.sin(y), x, y
    )


def root_in_python(p: Any, x: Any, y: Any) -> Any:
    return vnp.sqrt(x) * y if bool(p) else x * x + vnp.sin(y)


@pytest.mark.parametrize("axes", [(0, 0, 0), (0, None, 0), (None, 0, 0), (0, 0, None)])
@pytest.mark.parametrize("chain", by_turns(CHAINS))
def test_cond_drops_what_other_branches_make(
    axes: Sequence[int | None], chain: str
) -> None:
    with double_precision():
        p, x, y = vnp.array(PREDICATES), vnp.array(ROOTS), vnp.array(ROOTS) + 2.0
        args = [
            value if axis == 0 else value[1]
            for value, axis in zip((p, x, y), axes, strict=True)
        ]

        rest = (args[1], args[2], 1.5)

        def whole(f: Function) -> Function:
            return lambda x, y, z: f(args[0], x, y).sum() * z

        change = CHAINS[chain]
        mapped = change(whole(verax.vmap(root, axes)))
        due = change(whole(stacked(root_in_python, axes, 4)))
        agree(mapped(*rest), due(*rest))
        agree(verax.jit(mapped)(*rest), due(*rest))
        each = [change(three_of(root, q)) for q in PREDICATES]
        slow = [change(three_of(root_in_python, q)) for q in PREDICATES]
        for f, g, a in zip(each, slow, ROOTS, strict=True):
            agree(f(a, 0.3, 1.5), g(a, 0.3, 1.5))


def three_of(f: Function, p: Any) -> Function:
    return lambda x, y, z: f(p, x, y) * z


NESTED = [
    ((0, 0, None), (0, 0, None), True),
    ((0, None, None), (0, 0, None), True),
    ((0, None, None), (None, 0, None), False),
]


@pytest.mark.parametrize(("first", "second", "every"), NESTED)
def test_nested_vmap_of_cond_with_partly_batched_operands(
    first: Sequence[int | None], second: Sequence[int | None], every: bool
) -> None:
    with double_precision():
        p = vnp.array([[True, False, True], [False, True, False]])
        x = vnp.array([[0.6, 1.1, 0.3], [0.1, 0.4, 0.4]])
        flags, xs = p if every else p[0], x if first[1] == 0 else x[:, 0]

        def fast(x: Any, y: Any) -> Any:
            return verax.vmap(verax.vmap(root, first), second)(flags, x, y).sum()

        def slow(x: Any, y: Any) -> Any:
            inner = stacked(root_in_python, first, 3)
            return stacked(inner, second, 2)(flags, x, y).sum()

        agree(fast(xs, 0.3), slow(xs, 0.3))
        agree(verax.grad(fast, (0, 1))(xs, 0.3), verax.grad(slow, (0, 1))(xs, 0.3))


def iterated(x: Any, n: Any) -> Any:
    return lax.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, vnp.sin(c[1]) * x + c[1]), (0, x)
    )[1]


def iterated_in_python(x: Any, n: Any) -> Any:
    c = x
    for _ in range(int(n)):
        c = vnp.sin(c) * x + c
    return c


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_vmap_of_while_over_differing_trip_counts(
    axes: Sequence[int | None], order: int
) -> None:
    with double_precision():
        x, n = vnp.array([0.1, 0.2, 0.3, 0.4]), vnp.array([0, 3, 1, 5])
        args = [v if a == 0 else v[1] for v, a in zip((x, n), axes, strict=True)]
        f, g = iterated, iterated_in_python
        for _ in range(order):
            f, g = verax.jacfwd(f), verax.jacfwd(g)
        due = stacked(g, axes, 4)(*args)
        agree(verax.vmap(f, axes)(*args), due)
        agree(verax.jit(verax.vmap(f, axes))(*args), due)


def logarithms(x: Any, n: Any) -> Any:
    return lax.while_loop(
        lambda c: c[0] < n, lambda c: (c[0] + 1, vnp.log(c[1])), (0, x)
    )[1]


def test_lanes_that_have_ended_make_no_nan() -> None:
    x, n = vnp.array([0.5, 20.0]), vnp.array([1, 3])
    inside = verax.vmap(verax.jacfwd(logarithms))(x, n)
    outside = verax.jacfwd(lambda x: verax.vmap(logarithms)(x, n))(x)
    assert np.isfinite(verax.vmap(logarithms)(x, n)).all()
    assert np.isfinite(inside).all()
    np.testing.assert_allclose(np.diag(outside), inside, rtol=1e-6)


def nested(k: Any, c: Any, xs: Any) -> Any:
    """A scan in a cond in a scan, with a loop of known length inside."""

    def inner(c: Any, x: Any) -> Any:
        actual = lax.scan(lambda d, z: (vnp.sin(d) * k + z, d * x), c, xs)[0]
        return lax.fori_loop(0, 2, lambda i, v: v * k + i, actual)

    def outer(c: Any, x: Any) -> Any:
        return lax.cond(x > 0, lambda c: inner(c, x), lambda c: c * k, c), c * x

    c, ys = lax.scan(outer, c, xs)
    return c + ys.sum()


def nested_in_python(k: Any, c: Any, xs: Any) -> Any:
    total: Any = 0.0
    for x in xs:
        total = total + c * x
        if not bool(x > 0):
            c = c * k
            continue
        d = c
        for z in xs:
            d = vnp.sin(d) * k + z
        c = (d * k) * k + 1
    return c + total


@pytest.mark.parametrize("chain", by_turns(CHAINS, 3))
def test_scan_in_cond_in_scan(chain: str) -> None:
    with double_precision():
        change, xs = CHAINS[chain], vnp.array([0.5, -0.2, 0.3])
        due = change(nested_in_python)(*POINT, xs)
        agree(change(nested)(*POINT, xs), due)
        axes = (None, None, 0)
        batch = vnp.stack([xs, -xs])
        agree(
            verax.vmap(change(nested), axes)(*POINT, batch),
            stacked(change(nested_in_python), axes, 2)(*POINT, batch),
        )


def test_transposes_of_linear_loops() -> None:
    def doubled(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, v: v * 2 + v * i, x)

    agree(verax.linear_transpose(doubled, 1.0)(1.5)[0], 1.5 * 2 * 3 * 4)

    def decayed(xs: Any) -> Any:
        return lax.scan(lambda v, x: (v * 2 + x, v), 0.0, xs)

    ct = (1.5, vnp.ones(3))
    pulled = verax.linear_transpose(decayed, vnp.ones(3))(ct)
    agree(pulled, verax.vjp(decayed, vnp.ones(3))[1](ct))

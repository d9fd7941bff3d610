"""`vmap` of a choice whose branches hold loops that end only on their own side."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import Array, lax

N = np.array([3.0, 4.0, 0.0], np.float32)


def up(n: Array) -> Any:
    return lax.while_loop(lambda c: c != n, lambda c: c + 1, 0.0)


def down(n: Array) -> Any:
    return lax.while_loop(lambda c: c != -n, lambda c: c - 1, 0.0)


def until(n: Array) -> Any:
    """The number of steps of a loop that never ends where n is positive."""
    body: Callable[[Any], Any] = lambda c: (c[0], c[1] + 1.0)  # noqa: E731
    return lax.while_loop(lambda c: c[0] < n, body, (0.0, 0.0))[1]


def times_ten(n: Array) -> Any:
    return n * 10


@pytest.mark.parametrize("run", [lambda f: f, verax.jit], ids=["eager", "jit"])
class TestBranches:
    @pytest.mark.parametrize("takes", [(1, 0, 1), (1, 1, 1), (0, 0, 0)])
    def test_both_sides_loop(self, run: Any, takes: tuple[int, ...]) -> None:
        signs = np.where(np.array(takes), 1, -1)
        f = run(verax.vmap(lambda p, n: lax.cond(p, up, down, n)))
        np.testing.assert_array_equal(f(np.array(takes, bool), N), signs * N)

    def test_an_endless_loop_on_the_other_side(self, run: Any) -> None:
        f = run(verax.vmap(lambda p, n: lax.cond(p, lambda n: -n, until, n)))
        np.testing.assert_array_equal(f(np.array([True, True]), N[:2]), [-3, -4])
        n = np.array([1.0, -2.0], np.float32)
        np.testing.assert_array_equal(f(np.array([True, False]), n), [-1, 0])

    def test_two_maps_and_indices_out_of_range(self, run: Any) -> None:
        branches = [up, times_ten, down]
        f = verax.vmap(verax.vmap(lambda i, n: lax.switch(i, branches, n)))
        index = np.array([[0, 1, 2], [7, -3, 0]])
        n = np.arange(6, dtype=np.float32).reshape(2, 3)
        expected = [[0, 10, -2], [-3, 4, 5]]
        np.testing.assert_array_equal(run(f)(index, n), expected)

    def test_loop_below_a_call(self, run: Any) -> None:
        f = verax.vmap(lambda p, n: lax.cond(p, verax.jit(up), verax.jit(down), n))
        np.testing.assert_array_equal(
            run(f)(np.array([False, True, False]), N), [-3, 4, 0]
        )

    def test_keys_go_through(self, run: Any) -> None:
        keys = verax.random.split(verax.random.key(0), 3)
        takes = np.array([True, False, False])

        def f(p: Array, key: Array, n: Array) -> Any:
            same: Callable[..., Any] = lambda k, n: (n, k)  # noqa: E731
            return lax.cond(p, lambda k, n: (up(n), k), same, key, n)

        n = np.array([2.0, -1.0, 0.5], np.float32)
        actual, left = run(verax.vmap(f))(takes, keys, n)
        np.testing.assert_array_equal(actual, n)
        assert (left == keys).all()

    def test_a_batch_of_no_elements(self, run: Any) -> None:
        f = run(verax.vmap(lambda p, n: lax.cond(p, up, down, n)))
        assert f(np.zeros(0, bool), N[:0]).shape == (0,)

    def test_derivatives(self, run: Any) -> None:
        def powers(n: Array) -> Any:
            return lax.while_loop(lambda c: c < 100.0, lambda c: c * c * n, 2.0 * n)

        def f(n: Array) -> Any:
            takes = vnp.array([True, False])
            return verax.vmap(lambda p, n: lax.cond(p, powers, lambda n: n * 3, n))(
                takes, n
            )

        # 2n, 4 n^3, 16 n^7, 256 n^15
        n = np.array([1.0, -5.0], np.float32)
        np.testing.assert_allclose(run(f)(n), [256.0, -15.0])
        np.testing.assert_allclose(run(verax.jacfwd(f))(n), [[3840.0, 0], [0, 3.0]])


def test_what_all_branches_pass_on_is_not_batched() -> None:
    def f(x: Any, y: Any) -> Any:
        return lax.cond(
            x < 3, lambda x, y: (x * 2, y, y), lambda x, y: (x * 3, y, -y), x, y
        )

    x, y = vnp.arange(5), vnp.array([3.0, 4.0])
    mapped = verax.vmap(f, in_axes=(0, None), out_axes=(0, None, 0))
    for run in (mapped, verax.jit(mapped)):
        doubled, passed, chosen = run(x, y)
        assert doubled.tolist() == [0, 2, 4, 9, 12]
        assert passed.tolist() == [3, 4]
        assert chosen.tolist() == [[3, 4]] * 3 + [[-3, -4]] * 2
    twice = verax.vmap(verax.vmap(f, (0, None)), (0, 0))(vnp.stack([x, x]), vnp.eye(2))
    assert twice[1].tolist() == [[[1, 0]] * 5, [[0, 1]] * 5]
    kept = verax.vmap(
        lambda i, y: lax.switch(i, [lambda y: y, lambda y: y], y), (0, None), None
    )
    assert kept(vnp.arange(3), y).tolist() == [3, 4]

    def total(y: Any) -> Any:
        return sum([v.sum() for v in verax.vmap(f, (0, None))(1.0 * x, y)])

    assert verax.grad(total)(y).tolist() == [6, 6]


def test_bodies_do_not_write_into_arrays_of_the_caller() -> None:
    def body(carry: Any) -> Any:
        x, y = carry
        x += 1
        return x, y + x

    value = np.array(1.0)
    with verax.disable_jit():
        assert lax.while_loop(lambda c: c[0] < 10, body, (value, value))[1] == 55
        assert lax.fori_loop(0, 9, lambda _, c: body(c), (value, value))[1] == 55
    assert value == 1


def test_what_branches_pass_on_through_loops_is_not_batched() -> None:
    def kept(x: Array, y: Array) -> Any:
        return lax.scan(lambda y, _: (y, None), y, None, length=2)[0]

    def called(x: Array, y: Array) -> Any:
        return verax.jit(lambda y, x: y)(y, x)

    def doubled(x: Array, y: Array) -> Any:
        return lax.scan(lambda y, _: (2 * y, None), y, None, length=2)[0]

    def choice(*branches: Any) -> Any:
        return lambda x, y: lax.cond(x < 2, *branches, x, y)

    one = verax.vmap(choice(kept, called), (0, None), None)
    assert one(N, 3.0).tolist() == verax.jit(one)(N, 3.0).tolist() == 3.0
    for branches in ((kept, doubled), (kept, lambda x, y: x)):
        with pytest.raises(ValueError, match="mapped output"):
            verax.vmap(choice(*branches), (0, None), None)(N, 3.0)
    many = verax.vmap(choice(kept, doubled), (0, None))(N, 3.0)
    assert many.tolist() == [12, 12, 3]

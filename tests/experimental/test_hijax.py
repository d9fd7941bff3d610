"""Primitives as classes: their rules under every transformation."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.experimental import hijax
from verax.experimental.hijax import HiPrim, Zero, instantiate_zeros
from verax.test_util import check_grads


class Unary(HiPrim):
    def __init__(self, aval: Any, **params: Any) -> None:
        self.in_avals, self.out_aval, self.params = (aval,), aval, params
        super().__init__()


class Binary(HiPrim):
    def __init__(self, x: Any, y: Any) -> None:
        self.in_avals, self.out_aval, self.params = (x, y), x, {}
        super().__init__()


class SinTimes(Binary):
    """sin(x) y with rules for both modes; both count how often they are asked."""

    def expand(self, x: Any, y: Any) -> Any:
        return vnp.sin(x) * y

    def vjp_fwd(self, nzs_in: Any, /, x: Any, y: Any) -> tuple[Any, Any]:
        return self(x, y), (x, y)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        x, y = res
        return vnp.cos(x) * y * outgrad, vnp.sin(x) * outgrad

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        (x, y), (dx, dy) = primals, map(instantiate_zeros, tangents)
        return self(x, y), vnp.cos(x) * y * dx + vnp.sin(x) * dy


def sin_times(x: Any, y: Any) -> Any:
    return SinTimes(verax.typeof(x), verax.typeof(y))(x, y)


def plain(x: Any, y: Any) -> Any:
    return vnp.sin(x) * y


X, Y = vnp.arange(3.0), vnp.arange(1.0, 4.0)
PROGRAMS: dict[str, Any] = {
    "value": lambda f: f(X, Y),
    "jit": lambda f: verax.jit(f)(X, Y),
    "grad": lambda f: verax.grad(lambda x, y: f(x, y).sum(), (0, 1))(X, Y),
    "jit of grad": lambda f: verax.jit(verax.grad(lambda x: f(x, Y).sum()))(X),
    "jvp": lambda f: verax.jvp(f, (X, Y), (Y, X)),
    "jvp in one": lambda f: verax.jvp(lambda x: f(x, Y), (X,), (Y,)),
    "linearize": lambda f: verax.linearize(f, X, Y)[1](Y, X),
    "vmap": lambda f: verax.vmap(f)(X, Y),
    "vmap of one": lambda f: verax.vmap(f, (None, 0))(X, vnp.ones((2, 3))),
    "vmap along another": lambda f: verax.vmap(f, (1, 0), 1)(
        vnp.ones((3, 2)) * X[:, None], vnp.ones((2, 3))
    ),
    "vmap of grad": lambda f: verax.vmap(verax.grad(f, (0, 1)))(X, Y),
    "grad of vmap": lambda f: verax.grad(
        lambda x, y: verax.vmap(f, (0, None))(x, y).sum(), (0, 1)
    )(X, vnp.float32(2)),
    "vmap of vmap": lambda f: verax.vmap(verax.vmap(f, (0, None)), (None, 0))(X, Y),
    "jvp of vmap": lambda f: verax.jvp(verax.vmap(f), (X, Y), (Y, X)),
    "hessian": lambda f: verax.hessian(f, (0, 1))(vnp.float32(1), vnp.float32(2)),
    "grad of grad": lambda f: verax.grad(verax.grad(f))(1.0, 2.0),
    "jacfwd of jacfwd": lambda f: verax.jacfwd(verax.jacfwd(f))(1.0, 2.0),
    "jacrev": lambda f: verax.jacrev(f)(X, Y),
    "checkpoint": lambda f: verax.grad(verax.checkpoint(lambda x: f(x, Y).sum()))(X),
    "scan": lambda f: verax.grad(
        lambda x: verax.lax.scan(lambda c, y: (f(c, y), None), x, Y)[0]
    )(1.0),
    "cond": lambda f: verax.grad(
        lambda x: verax.lax.cond(x > 0, f, lambda x, y: x * y, x, 2.0)
    )(1.0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_primitive_means_its_expansion(name: str) -> None:
    actual, expected = (PROGRAMS[name](f) for f in (sin_times, plain))
    verax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
        actual,
        expected,
    )


def test_a_derivative_in_some_directions_is_transposed() -> None:
    pushed = verax.linearize(sin_times, X, Y)[1]
    zero = vnp.zeros(3)
    back = verax.linear_transpose(lambda t: pushed(t, zero), X)
    np.testing.assert_allclose(back(Y)[0], np.cos(X) * Y * Y, rtol=1e-6)
    mixed = verax.grad(lambda x: verax.jvp(sin_times, (x, Y), (X, zero))[1].sum())
    np.testing.assert_allclose(mixed(X), -np.sin(X) * Y * X, rtol=1e-5)


def test_its_derivatives_are_slopes() -> None:
    check_grads(sin_times, (X, Y), order=2, modes=("fwd", "rev"))
    check_grads(lambda x: verax.vmap(sin_times, (0, None))(x, 2.0), (X,), order=2)


def test_it_is_one_equation() -> None:
    jaxpr: Any = verax.make_jaxpr(sin_times)(X, Y)
    (eqn,) = jaxpr.eqns
    assert "SinTimes" in str(jaxpr)
    assert SinTimes(verax.typeof(X), verax.typeof(Y)) == eqn.params.prim
    assert hash(eqn.params.prim) == hash(SinTimes(verax.typeof(X), verax.typeof(Y)))


def test_params_are_attributes_and_part_of_it() -> None:
    class Power(Unary):
        power: int

        def expand(self, x: Any) -> Any:
            return x**self.power

    two, three = (Power(verax.typeof(X), power=n) for n in (2, 3))
    assert two(X).tolist() == [0, 1, 4]
    assert verax.jit(three)(X).tolist() == [0, 1, 8]
    assert two != three
    assert repr(two) == "Power[power=2]"


def test_rules_branch_on_values() -> None:
    class Sided(Unary):
        def expand(self, x: Any) -> Any:
            return vnp.sin(x) if x > 0 else vnp.cos(x)

        def vjp_fwd(self, nzs_in: Any, /, x: Any) -> tuple[Any, Any]:
            return self(x), x

        def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
            return (2 * outgrad,) if res > 0 else (3 * outgrad,)

    f = lambda x: Sided(verax.typeof(x))(x)  # noqa: E731  # short
    assert [float(verax.grad(f)(x)) for x in (1.0, -1.0)] == [2, 3]


class Sine(Unary):
    def expand(self, x: Any) -> Any:
        return vnp.sin(x)

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        (x,), (dx,) = primals, tangents
        return self(x), vnp.cos(x) * dx


class DerivedSine(Sine):
    lin, linearized = hijax.linearize_from_jvp
    vjp_fwd, vjp_bwd_retval = hijax.vjp_from_lin


class LinearSine(Unary):
    def expand(self, x: Any) -> Any:
        return vnp.sin(x)

    def lin(self, nzs_in: Any, *primals: Any) -> tuple[Any, Any]:
        assert nzs_in == (True,)
        return self(*primals), vnp.cos(primals[0])

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        return residuals * tangents[0]

    jvp = hijax.jvp_from_lin


@pytest.mark.parametrize("kind", [Sine, DerivedSine, LinearSine])
def test_forward_rules_serve_both_modes(kind: type[Unary]) -> None:
    def f(x: Any) -> Any:
        return kind(verax.typeof(x))(x)

    np.testing.assert_allclose(verax.grad(f)(0.5), np.cos(0.5), rtol=1e-6)
    np.testing.assert_allclose(verax.jvp(f, (0.5,), (2.0,))[1], 2 * np.cos(0.5))
    np.testing.assert_allclose(verax.grad(verax.grad(f))(0.5), -np.sin(0.5))
    np.testing.assert_allclose(verax.vmap(verax.grad(f))(X), np.cos(X), rtol=1e-6)


class Point(NamedTuple):
    x: Any
    y: Any


class OfPoint(HiPrim):
    def __init__(self, point: Any) -> None:
        self.in_avals = (point,)
        self.out_aval = {"a": point.x, "b": (point.x, point.y)}
        self.params = {}
        super().__init__()

    def expand(self, point: Any) -> Any:
        return {"a": point.x**2, "b": (vnp.sin(point.x), vnp.cos(point.y))}

    def vjp_fwd(self, nzs_in: Any, /, point: Any) -> tuple[Any, Any]:
        assert nzs_in == (Point(True, False),)
        return self(point), point

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        assert isinstance(outgrad["b"][0], Zero)
        return (Point(2 * res.x * outgrad["a"], None),)


def test_pytrees_and_what_is_zero() -> None:
    def f(x: Any) -> Any:
        point = Point(x, vnp.float32(2))
        return OfPoint(verax.tree.map(verax.typeof, point))(point)["a"]

    assert float(verax.grad(f)(3.0)) == 6


def test_cotangents_may_be_added_up() -> None:
    class Product(Binary):
        def expand(self, x: Any, y: Any) -> Any:
            return x * y

        def vjp_fwd(self, nzs_in: Any, /, x: Any, y: Any) -> tuple[Any, Any]:
            saved = (x if nzs_in[1] else None, y if nzs_in[0] else None)
            return self(x, y), (saved, "kept")

        def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> Any:
            (x, y), word = res
            assert word == "kept"
            to_x, to_y = arg_accums
            to_x.accum(None if y is None else outgrad * y)
            to_x.accum(Zero(verax.typeof(outgrad)))
            to_y.accum(None if x is None else outgrad * x)

    def f(x: Any, y: Any) -> Any:
        return Product(verax.typeof(x), verax.typeof(y))(x, y)

    assert float(verax.grad(f)(2.0, 3.0)) == 3
    assert [float(x) for x in verax.grad(f, (0, 1))(2.0, 3.0)] == [3, 2]


def test_a_rule_for_stacks() -> None:
    sizes: list[Any] = []

    class Sum(HiPrim):
        def __init__(self, aval: Any) -> None:
            self.in_avals = (aval,)
            self.out_aval, self.params = aval.update(shape=()), {}
            super().__init__()

        def expand(self, x: Any) -> Any:
            return x.sum()

        def batch(self, axis_data: Any, args: Any, dims: Any) -> tuple[Any, Any]:
            sizes.append((axis_data.size, axis_data.name, dims))
            return vnp.sum(vnp.moveaxis(args[0], dims[0], 0), 1), 0

    out = verax.vmap(lambda x: Sum(verax.typeof(x))(x), 1, axis_name="i")(
        vnp.ones((3, 2))
    )
    assert out.tolist() == [3, 3]
    assert sizes == [(2, "i", (1,))]


def test_what_is_missing_or_wrong_says_so() -> None:
    class Square(Unary):
        def expand(self, x: Any) -> Any:
            return x * x

    class Wrong(Square):
        def expand(self, x: Any) -> Any:
            return x.sum()

    class Backward(Square):
        def vjp_fwd(self, nzs_in: Any, /, x: Any) -> tuple[Any, Any]:
            return self(x), x

        def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
            return (2 * res * outgrad,)

    class Unset(HiPrim):
        def __init__(self) -> None:
            super().__init__()

    scalar = verax.typeof(1.0)
    assert float(verax.grad(Backward(scalar))(3.0)) == 6
    for use, kind, words in (
        (lambda: verax.grad(Square(scalar))(1.0), NotImplementedError, "`vjp_fwd`"),
        (lambda: verax.jvp(Backward(scalar), (1.0,), (1.0,)), TypeError, "forward"),
        (lambda: Square(scalar)(X), TypeError, r"Square takes ~f32\[\], but got"),
        (lambda: Square(scalar)(1.0, 2.0), TypeError, "structure"),
        (lambda: Wrong(verax.typeof(X))(X), TypeError, "is declared"),
        (Unset, AttributeError, "self.in_avals"),
        (
            lambda: verax.jit(Square(scalar, power=[2]))(1.0),
            TypeError,
            "cannot be hashed",
        ),
    ):
        with pytest.raises(kind, match=words):
            use()


class Telling(HiPrim):
    """The sine, whose backward rule logs what it is given."""

    def __init__(self, aval: Any) -> None:
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        super().__init__()

    def expand(self, x: Any) -> Any:
        return vnp.sin(x)

    def vjp_fwd(self, nzs_in: Any, /, x: Any) -> tuple[Any, Any]:
        return self(x), x

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> Any:
        arg_accums[0].accum(outgrad * vnp.cos(res))
        return {"seen": outgrad}


def test_each_element_logs() -> None:
    xs = vnp.arange(6.0).reshape(2, 3)

    def f(x: Any) -> Any:
        return Telling(verax.typeof(x))(x)

    cts = xs + 1
    for run in (f, verax.vmap(f), verax.vmap(verax.vmap(f), in_axes=1, out_axes=1)):
        (slopes,), logs = verax.vjp(run, xs)[1].with_logs(cts)
        assert np.allclose(slopes, cts * np.cos(xs))
        seen = np.asarray(logs["seen"])
        assert np.array_equal(seen if seen.shape == cts.shape else seen.T, cts)


def test_rules_that_exclude_each_other() -> None:
    class Twice(Telling):
        def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
            return (outgrad,)

    with pytest.raises(AttributeError, match="should not override both `vjp_bwd` and"):
        Twice(verax.typeof(vnp.ones(2)))

    class Circular(HiPrim):
        def __init__(self, aval: Any) -> None:
            self.in_avals, self.out_aval, self.params = (aval,), aval, {}
            super().__init__()

        def expand(self, x: Any) -> Any:
            return x

        jvp = hijax.jvp_from_lin
        lin, linearized = hijax.linearize_from_jvp

    x = vnp.ones(2)
    act = Circular(verax.typeof(x))
    assert act(x).tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="can't set both `jvp = jvp_from_lin` and"):
        verax.jvp(act, (x,), (x,))


def test_a_tangent_of_float0_is_none() -> None:
    class Flat(Unary):
        def expand(self, x: Any) -> Any:
            return vnp.round(x)

        def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
            return self(*primals), np.empty(primals[0].shape, verax.dtypes.float0)

    x = vnp.ones(5)
    flat = Flat(verax.typeof(x))
    assert verax.jvp(flat, (x,), (x,))[1].tolist() == [0.0] * 5
    assert verax.linearize(flat, x)[1](x).tolist() == [0.0] * 5
    assert verax.grad(lambda x: (flat(x) * x).sum())(x).tolist() == [1.0] * 5

"""Operations of a program's own, as classes, within `shard_map`."""

from typing import Any

import numpy as np
import pytest
from attrs import frozen

import verax
import verax.numpy as vnp
from verax.experimental.hijax import (
    HiPrim,
    HiPspec,
    HiType,
    ShapedArray,
    linearize_from_jvp,
    register_hitype,
    vjp_from_jvp,
)
from verax.sharding import PartitionSpec as P

X = np.linspace(-1, 1, 16).astype(np.float32).reshape(8, 2)


class Operation(HiPrim):
    """A function of one array."""

    def __init__(self, aval: Any) -> None:
        self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        super().__init__()

    def expand(self, x: Any) -> Any:
        return vnp.sin(x) * x


class Backward(Operation):
    """With a rule of reverse mode."""

    def vjp_fwd(self, nzs_in: Any, /, x: Any) -> tuple[Any, Any]:
        return self(x), x

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        return (outgrad * (vnp.cos(res) * res + vnp.sin(res)),)


class Forward(Operation):
    """With a rule of forward mode, from which the other follows."""

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        ((x,), (t,)) = primals, tangents
        return self(x), t * (vnp.cos(x) * x + vnp.sin(x))

    lin, linearized = linearize_from_jvp
    vjp_fwd, vjp_bwd_retval = vjp_from_jvp


class Logged(Operation):
    """With a rule that tells what it sees."""

    vjp_fwd = Backward.vjp_fwd

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> Any:
        arg_accums[0].accum(outgrad * (vnp.cos(res) * res + vnp.sin(res)))
        return {"seen": outgrad.sum()}


def applied(kind: type[Operation], typed: bool) -> Any:
    """The operation on any array; `typed` types say along which axes it varies."""

    def f(x: Any) -> Any:
        plain = verax.ShapeDtypeStruct(x.shape, x.dtype)
        return kind(verax.typeof(x if typed else plain))(x)

    return f


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("kind", [Backward, Forward])
@pytest.mark.parametrize("spec", [P("i"), P(("i", "j")), P("i", "j"), P()])
def test_values_and_derivatives_are_those_of_one_device(
    kind: type[Operation], spec: P, typed: bool
) -> None:
    mesh = verax.make_mesh((4, 2), ("i", "j"))
    own = applied(kind, typed)
    f: Any = verax.shard_map(own, mesh=mesh, in_specs=spec, out_specs=spec)
    assert np.allclose(f(X), np.sin(X) * X, atol=1e-6)
    ct = np.cos(X)
    due = np.cos(X) * X + np.sin(X)
    for run in (f, verax.jit(f)):
        _, pullback = verax.vjp(run, X)
        assert np.allclose(pullback(ct)[0], ct * due, atol=1e-6)
        if kind is Forward:
            assert np.allclose(verax.jvp(run, (X,), (ct,))[1], ct * due, atol=1e-6)
    twice = verax.grad(lambda x: (verax.grad(lambda y: f(y).sum())(x) * ct).sum())(X)
    assert np.allclose(twice, ct * (2 * np.cos(X) - np.sin(X) * X), atol=1e-5)


def test_within_the_map() -> None:
    mesh = verax.make_mesh((8,), ("i",))
    own = applied(Backward, True)

    def local(x: Any) -> Any:
        value, slope = verax.value_and_grad(lambda x: verax.vmap(own)(x).sum())(x)
        return verax.lax.psum(value, "i"), slope

    f = verax.shard_map(local, mesh=mesh, in_specs=P("i"), out_specs=(P(), P("i")))
    value, slope = verax.jit(f)(X)
    assert np.allclose(value, (np.sin(X) * X).sum(), atol=1e-5)
    assert np.allclose(slope, np.cos(X) * X + np.sin(X), atol=1e-6)


def test_loops_and_operands_that_do_not_vary() -> None:
    mesh = verax.make_mesh((8,), ("i",))
    own = applied(Backward, True)

    def local(x: Any, w: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            return own(carry) * own(w), None

        return verax.lax.scan(body, x, None, length=3)[0]

    def whole(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = vnp.sin(x) * x * (vnp.sin(w) * w)
        return x

    f = verax.shard_map(local, mesh=mesh, in_specs=(P("i"), P()), out_specs=P("i"))
    w = np.array([[0.5, 1.5]], np.float32)
    due = verax.grad(lambda x, w: whole(x, w).sum(), (0, 1))(X, w)
    assert np.allclose(f(X, w), whole(X, w), atol=1e-5)
    slopes = verax.grad(lambda x, w: f(x, w).sum(), (0, 1))
    for run in (slopes, verax.jit(slopes)):
        for slope, expected in zip(run(X, w), due, strict=True):
            assert np.allclose(slope, expected, atol=1e-5)


def test_logs_have_a_row_for_each_device() -> None:
    mesh = verax.make_mesh((8,), ("i",))
    f = verax.shard_map(
        applied(Logged, True), mesh=mesh, in_specs=P("i"), out_specs=P("i")
    )
    pullback = verax.vjp(f, X)[1]
    cotangents, logs = pullback.with_logs(X)
    assert np.allclose(cotangents[0], X * (np.cos(X) * X + np.sin(X)), atol=1e-6)
    assert np.allclose(logs["seen"], X.sum(1), atol=1e-6)


class Pair:
    """Arrays of two shapes."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


@frozen
class Pairs(HiType):
    """The type; tangents are pairs, too."""

    shapes: tuple[tuple[int, ...], ...]

    def lo_ty(self) -> list[Any]:
        return [ShapedArray(shape, np.dtype("float32")) for shape in self.shapes]

    def lower_val(self, hi_val: Any, /) -> list[Any]:
        return [hi_val.a, hi_val.b]

    def raise_val(self, *lo_vals: Any) -> Any:
        return Pair(*lo_vals)

    def to_tangent_aval(self) -> Any:
        return self


class Split(HiPspec):
    """The first array is split, the second is not."""

    def to_lo(self) -> tuple[Any, ...]:
        return P("i"), P()


register_hitype(Pair, lambda p: Pairs((tuple(p.a.shape), tuple(p.b.shape))))


def test_the_arrays_of_a_value_are_split_one_by_one() -> None:
    mesh = verax.make_mesh((8,), ("i",))

    def local(p: Any) -> Any:
        return p.a.sum(0) + p.b

    f = verax.shard_map(local, mesh=mesh, in_specs=Split(), out_specs=P("i"))
    b = np.arange(3, dtype=np.float32)
    for run in (f, verax.jit(f)):
        actual = run(Pair(vnp.asarray(X), vnp.asarray(b[:2])))
        assert np.allclose(np.reshape(actual, (8, 2)), X + b[:2])

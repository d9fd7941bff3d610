"""Types of a program's own: values that are arrays inside, with tangents of a type."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import frozen

import verax
import verax.numpy as vnp
from verax import lax
from verax.experimental.hijax import (
    HiPrim,
    HiType,
    MappingSpec,
    ShapedArray,
    Zero,
    register_hitype,
)

FLOAT, BYTE = vnp.dtype("float32"), vnp.dtype("int8")


class Quantized:
    """Rows of bytes with a scale each."""

    def __init__(self, values: Any, scale: Any) -> None:
        self.values, self.scale = values, scale


@frozen
class Quantity(HiType):
    """The type: tangents are floats."""

    shape: tuple[int, ...]

    def lo_ty(self) -> list[Any]:
        return [ShapedArray(self.shape, BYTE), ShapedArray(self.shape[:-1], FLOAT)]

    def lower_val(self, hi_val: Any, /) -> list[Any]:
        return [hi_val.values, hi_val.scale]

    def raise_val(self, *lo_vals: Any) -> Any:
        return Quantized(*lo_vals)

    def to_tangent_aval(self) -> Any:
        return ShapedArray(self.shape, FLOAT)

    def dec_rank(self, size: int | None, spec: MappingSpec) -> Any:
        assert isinstance(spec, Rows)
        return Quantity(self.shape[1:])

    def inc_rank(self, size: int | None, spec: MappingSpec) -> Any:
        assert size is not None
        return Quantity((size, *self.shape))


class Rows(MappingSpec):
    """Values are mapped along their first dimension."""


register_hitype(Quantized, lambda q: Quantity(tuple(q.values.shape)))


class Quantize(HiPrim):
    def __init__(self, aval: Any) -> None:
        self.in_avals, self.out_aval, self.params = (aval,), Quantity(aval.shape), {}
        super().__init__()

    def expand(self, x: Any) -> Any:
        scale = vnp.max(vnp.abs(x), -1) / 127
        return Quantized(vnp.round(x / scale[..., None]).astype(BYTE), scale)

    def vjp_fwd(self, nzs_in: Any, /, x: Any) -> tuple[Any, Any]:
        return self(x), None

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        return (outgrad,)

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        return self(*primals), tangents[0]


class Dequantize(HiPrim):
    def __init__(self, ty: Quantity) -> None:
        self.in_avals, self.params = (ty,), {}
        self.out_aval = ShapedArray(ty.shape, FLOAT)
        super().__init__()

    def expand(self, q: Quantized) -> Any:
        return q.values.astype(FLOAT) * q.scale[..., None]

    def vjp_fwd(self, nzs_in: Any, /, q: Quantized) -> tuple[Any, Any]:
        return self(q), None

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        return (outgrad,)

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        return self(*primals), tangents[0]


class Matmul(HiPrim):
    """A product with a quantized matrix, which the backward rule reads again."""

    def __init__(self, x: Any, ty: Quantity) -> None:
        self.in_avals, self.params = (x, ty), {}
        self.out_aval = ShapedArray((x.shape[0], ty.shape[1]), FLOAT)
        super().__init__()

    def expand(self, x: Any, q: Quantized) -> Any:
        return (x * q.scale) @ q.values.astype(FLOAT)

    def vjp_fwd(self, nzs_in: Any, /, x: Any, q: Quantized) -> tuple[Any, Any]:
        return self(x, q), (x, q)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        x, q = res
        assert not isinstance(outgrad, Zero)
        return outgrad @ dequantize(q).T, x.T @ outgrad


def kind(x: Any) -> Any:
    """The type of a value, which is no type of arrays."""
    return verax.typeof(x)


def quantize(x: Any) -> Any:
    return Quantize(verax.typeof(x))(x)


def dequantize(q: Any) -> Any:
    return Dequantize(kind(q))(q)


def matmul(x: Any, q: Any) -> Any:
    return Matmul(verax.typeof(x), kind(q))(x, q)


X = vnp.array([[1.0, 2.0, 3.0], [4.0, -5.0, 6.0]])
Q = quantize(X)


def close(actual: Any, expected: Any) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_values_have_the_type_everywhere() -> None:
    assert isinstance(Q, Quantized)
    assert kind(Q) == Quantity((2, 3))
    close(dequantize(Q), dequantize(verax.jit(quantize)(X)))
    close(verax.jit(dequantize)(Q), dequantize(Q))
    assert float(vnp.abs(dequantize(Q) - X).max()) < 0.03
    seen: list[Any] = []

    def look(q: Any) -> Any:
        seen.append(kind(q))
        return dequantize(q)

    verax.jit(look)(Q)
    assert seen == [Quantity((2, 3))]


def test_derivatives_go_through_as_the_rules_say() -> None:
    def loss(x: Any) -> Any:
        return (dequantize(quantize(x)) ** 2).sum()

    expected = 2 * dequantize(Q)
    close(verax.grad(loss)(X), expected)
    close(verax.jit(verax.grad(loss))(X), expected)
    close(verax.jvp(loss, (X,), (X,))[1], (expected * X).sum())
    close(verax.vmap(verax.grad(loss))(X), 2 * verax.vmap(roundtrip)(X))


def roundtrip(x: Any) -> Any:
    return dequantize(quantize(x))


@pytest.mark.parametrize("wrap", [lambda f: f, verax.jit])
def test_gradients_by_values_have_the_type_of_tangents(wrap: Any) -> None:
    def loss(x: Any, q: Any) -> Any:
        return (matmul(x, q) ** 2).sum()

    def plain(x: Any, w: Any) -> Any:
        return ((x @ w) ** 2).sum()

    x = vnp.arange(8.0).reshape(4, 2)
    value, (to_x, to_q) = verax.value_and_grad(wrap(loss), (0, 1))(x, Q)
    expected, (due_x, due_q) = verax.value_and_grad(plain, (0, 1))(x, dequantize(Q))
    close(value, expected)
    close(to_x, due_x)
    close(to_q, due_q)
    close(verax.grad(wrap(loss), 1)(x, Q), due_q)
    close(
        verax.grad(lambda q: (dequantize(q["w"]) ** 2).sum())({"w": Q})["w"],
        2 * dequantize(Q),
    )


def test_vmap_by_specs() -> None:
    xs = vnp.arange(1.0, 25.0).reshape(4, 2, 3)
    stacked = verax.vmap(quantize, out_axes=Rows())(xs)
    assert kind(stacked) == Quantity((4, 2, 3))
    close(dequantize(stacked), verax.vmap(roundtrip)(xs))
    back = verax.vmap(dequantize, in_axes=Rows(), axis_size=4)(stacked)
    close(back, dequantize(stacked))
    both = verax.vmap(lambda q, x: dequantize(q) + x, in_axes=(Rows(), 0))
    close(both(stacked, xs), dequantize(stacked) + xs)


def test_loops_carry_and_stack_values() -> None:
    xs = vnp.arange(1.0, 25.0).reshape(4, 2, 3)

    def step(total: Any, x: Any) -> tuple[Any, Any]:
        return quantize(dequantize(total) + x), quantize(2 * x)

    def unrolled(start: Any) -> Any:
        total = start
        for x in xs:
            total, _ = step(total, x)
        return total

    last, made = lax.scan(step, quantize(X), xs)
    close(dequantize(last), dequantize(unrolled(quantize(X))))
    assert kind(made) == Quantity((4, 2, 3))
    total, _ = lax.scan(
        lambda c, q: (c + dequantize(q).sum(), None), 0.0, made, length=4
    )
    close(total, dequantize(made).sum())

    def loss(x: Any, run: Any) -> Any:
        return (dequantize(run(quantize(x))) ** 2).sum()

    loops = verax.grad(lambda x: loss(x, lambda q: lax.scan(step, q, xs)[0]))(X)
    close(loops, verax.grad(lambda x: loss(x, unrolled))(X))
    chosen = lax.cond(True, lambda q: q, lambda q: quantize(2 * dequantize(q)), Q)
    close(dequantize(chosen), dequantize(Q))


def test_what_is_wrong_says_so() -> None:
    class Bare(HiType):
        pass

    class Opaque:
        pass

    register_hitype(Opaque, lambda x: Bare())
    with pytest.raises(NotImplementedError, match="Bare to implement the `lo_ty`"):
        Bare().lo_ty()
    with pytest.raises(NotImplementedError, match=r"vmap requires Bare .*`dec_rank`"):
        verax.vmap(lambda x: x, Rows(), Rows(), axis_size=3)(Opaque())
    for wrong in (quantize(X[:1]), X):
        with pytest.raises(TypeError, match="Dequantize takes"):
            Dequantize(Quantity((2, 3)))(wrong)
    uses: list[Callable[[], Any]] = [
        lambda: verax.vjp(dequantize, Q),
        lambda: verax.jvp(quantize, (X,), (X,)),
        lambda: verax.linearize(dequantize, Q),
    ]
    for use in uses:
        with pytest.raises(NotImplementedError, match="Quantity"):
            use()


class Pair:
    """Two arrays."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


@frozen
class Pairs(HiType):
    """The type: tangents are pairs, too."""

    shape: tuple[int, ...] = ()

    def lo_ty(self) -> list[Any]:
        return [ShapedArray(self.shape, FLOAT)] * 2

    def lower_val(self, hi_val: Any, /) -> list[Any]:
        return [hi_val.a, hi_val.b]

    def raise_val(self, *lo_vals: Any) -> Any:
        return Pair(*lo_vals)

    def to_tangent_aval(self) -> Any:
        return self


register_hitype(Pair, lambda p: Pairs(tuple(p.a.shape)))


@pytest.mark.parametrize("jitted", [False, True])
def test_custom_vjp_gives_them_cotangents(jitted: bool) -> None:
    f = verax.custom_vjp(lambda p, y: p.a * p.b * y)
    f.defvjp(
        lambda p, y: (p.a * p.b * y, (p.a, p.b, y)),
        lambda res, ct: (Pair(ct * res[1] * res[2], ct * res[0] * res[2]), None),
    )
    slope = verax.grad(f, (0, 1))
    p, y = Pair(vnp.float32(2), vnp.float32(3)), vnp.float32(5)
    dp, dy = (verax.jit(slope) if jitted else slope)(p, y)
    close([dp.a, dp.b, dy], [15.0, 10.0, 0.0])
    g = verax.custom_vjp(lambda q, y: q.scale.sum() * y)  # a float array is due
    g.defvjp(
        lambda q, y: (q.scale.sum() * y, q.values),
        lambda res, ct: (ct * vnp.ones(res.shape, FLOAT), ct),
    )
    close(verax.grad(g)(Q, 2.0), np.ones(Q.values.shape))
    f.defvjp(lambda p, y: (p.a * p.b * y, None), lambda _, ct: (None, ct))
    close(verax.grad(f)(p, y).a, 0.0)

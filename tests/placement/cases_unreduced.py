"""Sums over explicit axes that are left to be made; eight devices."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.errors import ShardingTypeError
from verax.ir import ShapedArray
from verax.sharding import (
    AxisType,
    NamedSharding,
    PartitionSpec as P,
    UnreducedKind,
    reshard,
)

MESH = verax.make_mesh((2, 2), ("x", "y"), (AxisType.Explicit,) * 2)
VALUES = np.arange(16, dtype=np.float32).reshape(4, 4)
X, Y = frozenset("x"), frozenset("y")


SPEC: Any = P


def lying(spec: P, values: np.ndarray = VALUES) -> verax.Array:
    """Values on the mesh, as a spec says."""
    actual: verax.Array = verax.device_put(values, NamedSharding(MESH, spec))
    return actual


def parts(x: verax.Array) -> list[Any]:
    """What each device holds."""
    return [np.asarray(shard.data).tolist() for shard in x.addressable_shards]


def test_a_spec_has_unreduced_and_reduced_axes() -> None:
    spec = P("x", None, unreduced={"y"})
    assert spec.unreduced == Y
    assert spec.reduced == frozenset()
    assert spec.unreduced_kind is UnreducedKind.sum
    assert repr(spec) == "P('x', None, unreduced={'y'}, unreduced_kind=sum)"
    assert repr(P(reduced={"y", "x"})) == "P(reduced={'x', 'y'})"
    assert spec != P("x", None)
    assert spec != P("x", None, reduced={"y"})
    assert spec == P("x", None, unreduced=Y)
    assert hash(spec) == hash(P("x", None, unreduced=Y))
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert spec.update([None, "x"]) == P(None, "x", unreduced={"y"})
    more = P("x", unreduced={"y"}) + P(None, unreduced={"z"})
    assert more == P("x", None, unreduced={"y", "z"})
    assert NamedSharding(MESH, spec) != NamedSharding(MESH, P("x", None))
    assert not NamedSharding(MESH, spec).is_fully_replicated


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: SPEC(unreduced=["x"]), TypeError, "takes a set as unreduced"),
        (lambda: SPEC(reduced="x"), TypeError, "takes a set as reduced"),
        (lambda: SPEC(unreduced={None}), ValueError, "unreduced cannot contain None"),
        (lambda: P(unreduced={"x"}, reduced={"x"}), ValueError, "cannot overlap"),
        (lambda: P("x", unreduced={"x"}), ValueError, "cannot overlap with unreduced"),
        (lambda: P(("y", "x"), reduced={"x"}), ValueError, "overlap with reduced"),
        (lambda: P(unreduced_kind=UnreducedKind.max), ValueError, "no unreduced axes"),
        (
            lambda: SPEC(unreduced={"x"}, unreduced_kind="max"),
            TypeError,
            "UnreducedKind",
        ),
        (lambda: P("y") + P(unreduced={"x"}), TypeError, "have one unreduced_kind"),
        (lambda: P("y", unreduced={"x"}).__add__(("z",)), TypeError, "cannot be added"),
        (lambda: P("y", reduced={"x"}).__radd__(("z",)), TypeError, "cannot be added"),
        (lambda: lying(P(unreduced={"z"})), ValueError, "not found in mesh Mesh"),
        (
            lambda: NamedSharding(
                MESH.update(axis_types=(AxisType.Auto,) * 2), P(reduced={"x"})
            ),
            ValueError,
            "can only refer to mesh axes of type Explicit",
        ),
    ],
)
def test_what_a_spec_refuses(make: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        make()


def test_types_print_terms() -> None:
    place = NamedSharding(MESH, P("x", unreduced={"y"}))
    aval = ShapedArray((4, 2), np.float32, sharding=place)
    assert str(aval) == "f32[4@x,2]{U:y}"
    assert aval.str_short() == "float32[4@x,2]{U:y}"
    assert str(aval.cotangent()) == "f32[4@x,2]{R:y}"
    assert aval.cotangent().cotangent() is aval
    assert pickle.loads(pickle.dumps(aval)) is aval
    both = NamedSharding(MESH, P(unreduced={"x"}, reduced={"y"}))
    assert str(aval.update(sharding=both)) == "f32[4,2]{U:x, R:y}"
    top = P(unreduced={"y", "x"}, unreduced_kind=UnreducedKind.max)
    largest = aval.update(sharding=NamedSharding(MESH, top))
    assert str(largest) == "f32[4,2]{U_max:(x,y)}"
    assert str(largest.cotangent()) == "f32[4,2]"
    assert aval.sharding.spec == P("x", None, unreduced={"y"})


def test_a_product_leaves_its_sum_to_be_made() -> None:
    x, y = lying(P("x", "y")), lying(P("y", None))
    with verax.set_mesh(MESH):
        out = vnp.matmul(x, y, out_sharding=P("x", unreduced={"y"}))
        assert str(out.aval) == "f32[4@x,4]{U:y}"
        assert out.sharding == NamedSharding(MESH, P("x", None, unreduced={"y"}))
        halves = VALUES[:2, :2] @ VALUES[:2], VALUES[:2, 2:] @ VALUES[2:]
        assert parts(out)[:2] == [half.tolist() for half in halves]
        compiled = verax.jit(
            lambda x, y: vnp.matmul(x, y, out_sharding=P("x", unreduced={"y"}))
        ).lower(x, y)
        assert "all-reduce" not in str(compiled.compile().as_text())
        assert np.array_equal(np.asarray(reshard(out, P("x"))), VALUES @ VALUES)
        doubled = verax.jit(lambda z: reshard(z + z, P(None, "y")))(out)
        assert str(doubled.aval) == "f32[4,4@y]"
        assert np.array_equal(np.asarray(doubled), 2 * VALUES @ VALUES)


@pytest.mark.parametrize("spec", [P(), P("x"), P("x", "y"), P(("x", "y"))], ids=str)
@pytest.mark.parametrize(
    "due",
    [P(unreduced={"x"}), P(unreduced={"x", "y"}), P(None, "y", unreduced={"x"})],
    ids=str,
)
def test_there_and_back(spec: P, due: P) -> None:
    x = lying(spec)
    with verax.set_mesh(MESH):
        out = reshard(x, due)
        assert out.sharding.is_equivalent_to(NamedSharding(MESH, due), 2)
        assert np.array_equal(np.asarray(out), VALUES)
        assert np.array_equal(np.asarray(reshard(out, spec)), VALUES)
        put = verax.device_put(x, due)
        assert put.aval is out.aval
        assert np.array_equal(np.asarray(put), VALUES)
        assert np.array_equal(np.asarray(verax.device_put(put, P())), VALUES)
        identity = verax.jit(lambda x: x, out_shardings=P())(out)
        assert np.array_equal(np.asarray(identity), VALUES)


def test_an_unreduced_array_has_its_value() -> None:
    x = lying(P(unreduced={"x"}))
    assert parts(x)[0] == VALUES.tolist()
    assert parts(x)[3] == np.zeros((4, 4)).tolist()
    assert np.array_equal(np.asarray(x), VALUES)
    assert "12" in repr(x)
    assert np.array_equal(np.asarray(copy.deepcopy(x)), VALUES)
    assert copy.deepcopy(x).aval is x.aval
    assert str(pickle.loads(pickle.dumps(x)).aval) == "f32[4,4]"
    assert not x.is_fully_replicated
    one = verax.device_put(x, verax.devices()[5])
    assert np.array_equal(np.asarray(one), VALUES)
    with pytest.raises(NotImplementedError, match="another kind than `sum`"):
        lying(P(unreduced={"x"}, unreduced_kind=UnreducedKind.max))


LINEAR: list[tuple[Callable[[verax.Array, verax.Array], verax.Array], str]] = [
    (lambda x, r: x + x, "f32[4,4]{U:x}"),
    (lambda x, r: -x.T, "f32[4,4]{U:x}"),
    (lambda x, r: x.reshape(2, 8)[:1], "f32[1,8]{U:x}"),
    (lambda x, r: x.sum(0), "f32[4]{U:x}"),
    (lambda x, r: x * r, "f32[4,4]{U:x}"),
    (lambda x, r: vnp.ones((4, 4)) * x, "f32[4,4]{U:x}"),
    (lambda x, r: x / (r + 1), "f32[4,4]{U:x}"),
    (lambda x, r: vnp.concatenate([x, x]), "f32[8,4]{U:x}"),
    (lambda x, r: vnp.where(vnp.ones((4, 4)) > 0, x, x), "f32[4,4]{U:x}"),
    (lambda x, r: x[vnp.array([0, 2])], "f32[2,4]{U:x}"),
    (lambda x, r: x.astype(vnp.bfloat16), "bf16[4,4]{U:x}"),
    (lambda x, r: vnp.broadcast_to(x[:1], (3, 4)), "f32[3,4]{U:x}"),
    (lambda x, r: vnp.tile(x, (1, 3)), "f32[4,12]{U:x}"),
    (lambda x, r: x + x[:, :1], "f32[4,4]{U:x}"),
    (lambda x, r: x[:1] / (r + 1), "f32[4,4]{U:x}"),
    (lambda x, r: vnp.sin(r), "f32[4,4]{R:x}"),
    (lambda x, r: r.max(0), "f32[4]{R:x}"),
    (lambda x, r: r * 2, "f32[4,4]{R:x}"),
]


@pytest.mark.parametrize(("f", "text"), LINEAR)
def test_linear_operations_keep_terms(
    f: Callable[[verax.Array, verax.Array], verax.Array], text: str
) -> None:
    x, r = lying(P(unreduced={"x"})), lying(P(reduced={"x"}))
    due = np.asarray(f(vnp.asarray(VALUES), vnp.asarray(VALUES)))
    with verax.set_mesh(MESH):
        for out in (f(x, r), verax.jit(f)(x, r)):
            assert str(out.aval) == text
            np.testing.assert_allclose(np.asarray(out), due, 1e-6)


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x, r, s: vnp.sin(x), "the operands cannot be unreduced"),
        (lambda x, r, s: x + r, "unreduced along the same mesh axes"),
        (lambda x, r, s: x + 1.0, "lhs is unreduced while rhs is not"),
        (lambda x, r, s: x * x, "cannot both be unreduced"),
        (lambda x, r, s: x * s, "cannot be split along the axes"),
        (lambda x, r, s: r / x, "The denominator cannot be unreduced passed to `div`"),
        (lambda x, r, s: r * s, "Inputs cannot be sharded/varying on the same axes"),
        (lambda x, r, s: x @ r, "cannot be unreduced"),
        (lambda x, r, s: x.astype(int), "cannot be unreduced"),
        (lambda x, r, s: r + lying(P(reduced={"y"})), "reduced across the same mesh"),
        (
            lambda x, r, s: lax.reduce_sum(s, (0,), out_sharding=P(unreduced={"y"})),
            "out_sharding's unreduced axes should be in operand's specs",
        ),
        (
            lambda x, r, s: vnp.matmul(s, s, out_sharding=P(unreduced={"x"})),
            "contracting dims should be sharded identically",
        ),
    ],
)
def test_what_is_refused(f: Any, words: str) -> None:
    x, r, s = (lying(p) for p in (P(unreduced={"x"}), P(reduced={"x"}), P("x")))
    with verax.set_mesh(MESH), pytest.raises(ShardingTypeError, match=words):
        verax.jit(f)(x, r, s)


@pytest.mark.parametrize(
    ("reduce", "kind", "first"),
    [
        (lax.reduce_sum, UnreducedKind.sum, [4, 6, 8, 10]),
        (lax.reduce_max, UnreducedKind.max, [4, 5, 6, 7]),
        (lax.reduce_min, UnreducedKind.min, [0, 1, 2, 3]),
    ],
)
def test_a_reduction_leaves_the_last_step(
    reduce: Any, kind: UnreducedKind, first: list[int]
) -> None:
    x = lying(P("x"))
    spec = P(None, unreduced={"x"}, unreduced_kind=kind)
    with verax.set_mesh(MESH):
        out = verax.jit(lambda x: reduce(x, (0,), out_sharding=spec))(x)
        assert out.sharding == NamedSharding(MESH, spec)
        assert parts(out)[0] == first
        expected = np.asarray(reduce(VALUES, (0,)))
        assert np.array_equal(np.asarray(out), expected)
        assert np.array_equal(np.asarray(reshard(out, P("x"))), expected)
        if kind is UnreducedKind.sum:
            return
        with pytest.raises(ValueError, match="must be unreduced of kind"):
            reduce(x, (0,), out_sharding=P(unreduced={"x"}))
        with pytest.raises(ValueError, match="cannot be more unreduced"):
            reshard(x, spec)
        with pytest.raises(ValueError, match="should be the same"):
            reshard(out, P(unreduced={"x"}))


def test_cotangents_of_what_is_reduced_are_unreduced() -> None:
    x, w = lying(P("x")), lying(P(reduced={"x"}))

    def loss(w: verax.Array, x: verax.Array) -> verax.Array:
        found: verax.Array = (vnp.tanh(x @ w / 500) ** 2).sum()
        return found

    plain = verax.grad(loss)(vnp.asarray(VALUES), vnp.asarray(VALUES))
    with verax.set_mesh(MESH):
        for gradient in (verax.grad(loss), verax.jit(verax.grad(loss))):
            found = gradient(w, x)
            assert found.sharding.spec == P(None, None, unreduced={"x"})
            assert np.allclose(np.asarray(found), plain, rtol=1e-5)
        text = verax.jit(verax.grad(loss)).lower(w, x).compile().as_text()
        assert "all-reduce" not in str(text)
        back = verax.grad(lambda x: reshard(x * 2, P()).sum())(lying(P(unreduced=X)))
        assert str(back.aval) == "f32[4,4]{R:x}"
        assert np.array_equal(np.asarray(back), np.full((4, 4), 2.0))


def test_gradients_of_small_batches_are_summed_once() -> None:
    w, xs = lying(P(reduced={"x"})), lying(P(None, "x"), np.stack([VALUES, -VALUES]))

    def loss(w: verax.Array, x: verax.Array) -> verax.Array:
        found: verax.Array = (vnp.tanh(x @ w / 500) ** 2).sum()
        return found

    @verax.jit
    def step(w: verax.Array, xs: verax.Array) -> verax.Array:
        def body(total: verax.Array, x: verax.Array) -> tuple[verax.Array, None]:
            return total + verax.grad(loss)(w, x), None

        start = reshard(vnp.zeros((4, 4)), P(unreduced={"x"}))
        total, _ = lax.scan(body, start, xs)
        assert str(total.aval) == "f32[4,4]{U:x}"
        found: verax.Array = reshard(w, P()) - reshard(total, P())
        return found

    with verax.set_mesh(MESH):
        found = step(w, xs)
        text = str(step.lower(w, xs).compile().as_text())
    assert text.count("all-reduce(") == 1
    whole, batches = vnp.asarray(VALUES), [VALUES, -VALUES]
    expected = whole - sum([verax.grad(loss)(whole, vnp.asarray(b)) for b in batches])
    assert np.allclose(np.asarray(found), expected, atol=1e-5)


def test_loops_choices_and_custom_rules_have_terms() -> None:
    w, x = lying(P(reduced={"x"})), lying(P("x"))

    @verax.custom_vjp
    def product(x: verax.Array, w: verax.Array) -> verax.Array:
        return x @ w

    def forward(x: verax.Array, w: verax.Array) -> Any:
        return x @ w, (x, w)

    def backward(saved: Any, ct: verax.Array) -> Any:
        x, w = saved
        due = NamedSharding(MESH, P(unreduced={"x"}))
        return ct @ w.T, vnp.matmul(x.T, ct, out_sharding=due)

    product.defvjp(forward, backward)

    def loss(w: verax.Array, x: verax.Array) -> verax.Array:
        def layer(h: verax.Array, _: Any) -> tuple[verax.Array, None]:
            return vnp.tanh(verax.checkpoint(product)(h, w) / 500), None

        h, _ = lax.scan(layer, x, None, length=2)
        h = lax.cond(True, lambda h: h @ w, lambda h: product(h, w) * 2, h)
        total: verax.Array = (h**2).sum()
        return total

    plain = verax.grad(loss)(vnp.asarray(VALUES), vnp.asarray(VALUES))
    with verax.set_mesh(MESH):
        actual = verax.jit(verax.grad(loss))(w, x)
        assert actual.sharding.spec == P(None, None, unreduced={"x"})
        assert np.allclose(np.asarray(actual), plain, rtol=1e-4)


def test_vmap_keeps_terms() -> None:
    x = lying(P(None, "y", unreduced={"x"}))
    with verax.set_mesh(MESH):
        out = verax.vmap(lambda row: row[:2] + row[2:], in_axes=1)(x)
        assert str(out.aval) == "f32[4@y,2]{U:x}"
        assert np.array_equal(np.asarray(out), (VALUES[:2] + VALUES[2:]).T)


def test_loops_take_no_rows_of_terms() -> None:
    x = lying(P(unreduced={"x"}))
    with (
        verax.set_mesh(MESH),
        pytest.raises(ShardingTypeError, match="rows of what is unreduced"),
    ):
        verax.jit(lambda x: lax.map(lambda row: row / 2, x))(x)


def test_gradients_of_stacked_layers_are_unreduced() -> None:
    layers = np.stack([VALUES / 9, VALUES])
    ws, x = lying(P(reduced={"x"}), layers), lying(P("x"))

    def loss(ws: verax.Array, x: verax.Array) -> verax.Array:
        def layer(h: verax.Array, w: verax.Array) -> tuple[verax.Array, None]:
            return vnp.tanh(h @ w / 500), None

        found: verax.Array = lax.scan(layer, x, ws)[0].sum()
        return found

    plain = verax.grad(loss)(vnp.asarray(layers), vnp.asarray(VALUES))
    with verax.set_mesh(MESH):
        found = verax.jit(verax.grad(loss))(ws, x)
        assert str(found.aval) == "f32[2,4,4]{U:x}"
        assert np.allclose(np.asarray(found), plain, rtol=1e-4)


def test_only_explicit_axes_are_unreduced_outside_of_a_map() -> None:
    mesh = verax.make_mesh((2,), ("m",), (AxisType.Auto,))
    for spec in (P(unreduced={"m"}), P(reduced={"m"})):
        f = verax.shard_map(
            lambda x: x, mesh=mesh, in_specs=P("m"), out_specs=spec, check_vma=False
        )
        with pytest.raises(ValueError, match="all of type `Explicit`"):
            f(np.arange(4.0))


def test_what_is_not_linear_has_no_rule_for_terms() -> None:
    x = lying(P(unreduced={"x"}))
    with verax.set_mesh(MESH), pytest.raises(NotImplementedError, match="rule for sin"):
        vnp.sin(x)


def test_equal_equations_on_terms_keep_them() -> None:
    """What stands in a program twice may be a function, which knows of no terms."""
    rows, one = lying(P("y", unreduced={"x"})), lying(P(unreduced={"x"}), VALUES[1, 1])

    @verax.jit
    def twice(x: Any, y: Any) -> Any:
        return x + y, (x - y) + y

    for actual, expected in zip(
        twice(rows, one), (VALUES + VALUES[1, 1], VALUES), strict=True
    ):
        assert actual.sharding.spec.unreduced == {"x"}
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)

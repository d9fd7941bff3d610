"""What `shard_map` takes and gives: terms of sums, and what other explicit axes split.

One idea: a function of parts means a function of wholes, so values and derivatives have
a truth on one device, and types and shards say what each device holds.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.ir.meshes import mesh_known
from verax.ops.parallel.stacks import collect, spread
from verax.sharding import AxisType, NamedSharding, PartitionSpec as P, reshard

MESH = verax.make_mesh((2, 2, 2), ("x", "y", "z"))
X: frozenset[str] = frozenset("x")
TABLE = vnp.sin(vnp.arange(64.0)).reshape(8, 8)
W = vnp.cos(vnp.arange(32.0)).reshape(8, 4)


def at(spec: P, values: Any = TABLE) -> verax.Array:
    """Values on the mesh as a spec says."""
    actual: verax.Array = verax.device_put(values, NamedSharding(MESH, spec))
    return actual


def near(actual: Any, expected: Any) -> None:
    verax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5),
        actual,
        expected,
    )


def spec(x: verax.Array) -> P:
    assert isinstance(x.sharding, NamedSharding)
    return x.sharding.spec


def mapped(f: Callable[..., Any], **options: Any) -> Any:
    return verax.shard_map(f, mesh=MESH, **options)


def holds(f: Callable[..., Any], truth: Callable[..., Any], *args: verax.Array) -> None:
    """A function of split arrays is that of whole ones, as are its derivatives."""
    whole = [vnp.asarray(np.asarray(x)) for x in args]
    argnums = tuple(range(len(args)))
    tangents = [vnp.asarray(np.cos(np.asarray(x))) for x in args]

    def loss(g: Callable[..., Any]) -> Callable[..., Any]:
        def scalar(*xs: Any) -> Any:
            y = g(*xs)
            weights = vnp.cos(vnp.arange(y.size, dtype=y.dtype)).reshape(y.shape)
            return vnp.sum(reshard(y, P()) * weights) if y.ndim else y

        return scalar

    def both(g: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *xs: (g(*xs), verax.grad(loss(g), argnums)(*xs))

    @verax.jit
    def expected(*xs: Any) -> Any:
        return both(truth)(*xs), verax.jvp(loss(truth), xs, tuple(tangents))[1]

    (value, due), pushed = expected(*whole)
    near(f(*args), value)
    out, actual = verax.jit(both(f))(*args)
    near(out, value)
    near(tuple([reshard(g, P()) for g in actual]), due)
    pairs = zip(tangents, args, strict=True)
    split = tuple([verax.device_put(t, x.sharding) for t, x in pairs])
    if not any([spec(x).unreduced or spec(x).reduced for x in args]):
        near(verax.jvp(loss(f), args, split)[1], pushed)


# ------------------------------------------------- explicit axes that are not mapped


def test_types_inside_say_what_other_axes_split() -> None:
    seen: list[Any] = []

    def body(x: Any) -> Any:
        inner = verax.sharding.get_abstract_mesh()
        seen.append((str(verax.typeof(x)), inner.manual_axes, inner.explicit_axes))
        return vnp.sin(x).T

    with verax.set_mesh(MESH):
        f = mapped(body, out_specs=P(None, "x"), axis_names={"x"})
        out = f(at(P("x", "y")))
    assert seen[0] == ("f32[4,8@y]{V:x}", ("x",), ("y", "z"))
    assert spec(out) == P("y", "x")
    near(out, np.sin(TABLE).T)


def test_axes_split_the_parts_of_a_dimension_further() -> None:
    def body(x: Any) -> Any:
        assert str(verax.typeof(x)) == "f32[4@y,8]{V:x}"
        return x * 2

    with verax.set_mesh(MESH):
        out = mapped(body, out_specs=P("x"), axis_names=X)(at(P(("x", "y"))))
        assert spec(out) == P(("x", "y"), None)
        near(out, TABLE * 2)
        with pytest.raises(ValueError, match="outside of those that are"):
            mapped(body, out_specs=P("x"), axis_names=X)(at(P(("y", "x"))))


def test_what_is_ambiguous_inside_is_an_error_there() -> None:
    with verax.set_mesh(MESH):
        f = mapped(lambda x: x @ x.T, out_specs=P("x"), axis_names=X)
        with pytest.raises(verax.errors.ShardingTypeError, match="dot_general"):
            f(at(P("x", "y")))


def test_derivatives_beside_other_axes() -> None:
    def layer(x: Any, w: Any) -> Any:
        hidden = vnp.tanh(vnp.matmul(x, w, out_sharding=P(None, None)))
        return hidden - lax.pmean(hidden.mean(0), "x")

    def truth(x: Any, w: Any) -> Any:
        hidden = vnp.tanh(x @ w)
        return hidden - hidden.mean(0)

    with verax.set_mesh(MESH):
        f = mapped(layer, in_specs=(P("x"), P()), out_specs=P("x"), axis_names=X)
        holds(f, truth, at(P("x", "y")), at(P("y", "z"), W))
        holds(f, truth, at(P("x")), at(P(), W))


def test_loops_and_gradients_inside_beside_other_axes() -> None:
    def body(x: Any, w: Any) -> Any:
        def step(c: Any, row: Any) -> Any:
            c = vnp.sin(c * row + w)
            return c, c.sum()

        c, ys = lax.scan(step, x[0], x)
        inner = verax.grad(lambda v: lax.psum(vnp.sum(v * v * x), "x"))(w)
        return c + lax.psum(ys.sum(), "x") + inner

    def truth(x: Any, w: Any) -> Any:
        halves = x.reshape(2, 4, 8)

        def one(half: Any) -> Any:
            def step(c: Any, row: Any) -> Any:
                c = vnp.sin(c * row + w)
                return c, c.sum()

            return lax.scan(step, half[0], half)

        cs, ys = verax.vmap(one)(halves)
        inner = 2 * w * x.sum(0)
        return (cs + ys.sum() + inner).reshape(16)

    with verax.set_mesh(MESH):
        f = mapped(body, in_specs=(P("x"), P()), out_specs=P("x"), axis_names=X)
        holds(f, truth, at(P("x", "y")), at(P("y"), TABLE[0]))


def test_maps_inside_of_maps_over_explicit_axes() -> None:
    def inner(x: Any) -> Any:
        assert str(verax.typeof(x)) == "f32[4,4@z]{V:(x,y)}"
        return x - lax.pmean(x, ("x", "y"))

    def outer(x: Any) -> Any:
        assert str(verax.typeof(x)) == "f32[4,8@(y,z)]{V:x}"
        return verax.shard_map(inner, out_specs=P(None, "y"), axis_names={"y"})(x)

    def truth(x: Any) -> Any:
        mean = x.reshape(2, 4, 2, 4).mean((0, 2))
        return x - vnp.tile(mean, (2, 2))

    with verax.set_mesh(MESH):
        f = mapped(outer, in_specs=P("x"), out_specs=P("x"), axis_names=X)
        holds(f, truth, at(P("x", ("y", "z"))))


def test_vmap_of_a_map_beside_other_axes() -> None:
    def body(x: Any) -> Any:
        return vnp.cumsum(x, 0) * lax.psum(x.sum(), "x")

    def truth(x: Any) -> Any:
        parts = vnp.cumsum(x.reshape(2, 4), 1)
        return parts.reshape(8) * x.sum()

    with verax.set_mesh(MESH):
        f = mapped(body, in_specs=P("x"), out_specs=P("x"), axis_names=X)
        holds(verax.vmap(f), verax.vmap(truth), at(P(None, "x")))
        holds(verax.vmap(f), verax.vmap(truth), at(P("y", "x")))


# --------------------------------------------------------------------- terms of sums


def terms(x: Any) -> list[Any]:
    """What the first devices along each axis hold."""
    return [np.asarray(s.data).tolist() for s in x.addressable_shards]


def test_terms_go_in_and_out() -> None:
    def half(x: Any) -> Any:
        x = lax.pcast(x, "x", to="unreduced")
        return lax.dynamic_slice_in_dim(x, lax.axis_index("y") * 4, 4, 1)

    def scattered(x: Any) -> Any:
        assert str(verax.typeof(x)) == "f32[4,4]{V:y, U:x}"
        return lax.psum_scatter(x, "x", tiled=True)

    held = P(None, "y", unreduced={"x"})
    give = mapped(half, in_specs=P("x"), out_specs=held)
    take = mapped(scattered, in_specs=held, out_specs=P("x", "y"))

    with verax.set_mesh(MESH):
        out = verax.jit(give)(at(P("x")))
        assert str(verax.typeof(out)) == "f32[4,8@y]{U:x}"
        near(out.addressable_shards[0].data, TABLE[:4, :4])
        near(out.addressable_shards[4].data, TABLE[4:, :4])
        near(reshard(out, P()), TABLE[:4] + TABLE[4:])

        near(take(out), TABLE[:4] + TABLE[4:])
        holds(lambda x: take(give(x)), lambda x: x[:4] + x[4:], at(P("x")))


def test_gradients_of_what_all_have_are_terms() -> None:
    """The sum of a gradient over the batch is left to be made, and is right."""

    def loss(w: Any, x: Any) -> Any:
        assert str(verax.typeof(w)) == "f32[8,4]{R:x}"
        return lax.psum(vnp.sum(vnp.tanh(x @ w) ** 2), "x")

    with verax.set_mesh(MESH):
        f = mapped(loss, in_specs=(P(reduced=X), P("x")), out_specs=P())
        w = at(P(reduced=X), W)
        step = verax.jit(verax.grad(f))
        actual = step(w, at(P("x")))
        assert str(verax.typeof(actual)) == "f32[8,4]{U:x}"
        due = verax.grad(lambda w: vnp.sum(vnp.tanh(TABLE @ w) ** 2))(W)
        near(reshard(actual, P()), due)
        halves = [
            verax.grad(lambda w, x=half: vnp.sum(vnp.tanh(x @ w) ** 2))(W)
            for half in (TABLE[:4], TABLE[4:])
        ]
        near(actual.addressable_shards[0].data, halves[0])
        near(actual.addressable_shards[4].data, halves[1])
        text = step.lower(w, at(P("x"))).compile().as_text()
        assert text is not None
        assert "f32[8,4]{1,0} all-reduce" not in text


def test_gathered_weights_and_scattered_gradients() -> None:
    """Weights are split, gathered as `reduced`, and their gradients are scattered."""

    def gather(w: Any) -> Any:
        return lax.all_gather(w, "x", tiled=True, to="reduced")

    def model(w: Any, x: Any) -> Any:
        full = mapped(gather, in_specs=P("x"), out_specs=P(reduced=X))(w)
        assert str(verax.typeof(full)) == "f32[8,4]{R:x}"
        return vnp.tanh(x @ full)

    with verax.set_mesh(MESH):
        w, x = at(P("x"), W), at(P("x"))
        holds(model, lambda w, x: vnp.tanh(x @ w), w, x)
        g = verax.jit(verax.grad(lambda w, x: vnp.sum(model(w, x) ** 2)))(w, x)
        assert spec(g) == P("x", None)


def test_terms_of_products_are_summed_in_a_map() -> None:
    def model(x: Any, w: Any) -> Any:
        z = vnp.matmul(x, w, out_sharding=P(unreduced=X))
        f = mapped(
            lambda z: lax.psum_scatter(z, "x", scatter_dimension=1, tiled=True),
            in_specs=P(unreduced=X),
            out_specs=P(None, "x"),
        )
        return f(z)

    with verax.set_mesh(MESH):
        args = at(P(None, "x")), at(P("x"), W)
        holds(model, lambda x, w: x @ w, *args)
        out = verax.jit(model)(*args)
        assert spec(out) == P(None, "x")


def test_unchecked_terms_are_what_devices_hold() -> None:
    give = mapped(
        lambda x: x, in_specs=P("x"), out_specs=P(unreduced=X), check_vma=False
    )
    take = mapped(
        lambda x: x, in_specs=P(unreduced=X), out_specs=P("x"), check_vma=False
    )
    with verax.set_mesh(MESH):
        out = give(at(P("x")))
        assert str(verax.typeof(out)) == "f32[4,8]{U:x}"
        near(take(out), TABLE)
        copies = mapped(
            lambda x: x, in_specs=P(), out_specs=P(unreduced=X), check_vma=False
        )
        near(reshard(copies(at(P())), P()), TABLE * 2)
        holds(lambda x: take(give(x)), lambda x: x, at(P("x")))


@pytest.mark.parametrize(
    ("place", "ins", "outs", "body", "words"),
    [
        (P(unreduced=X), P(), P(), lambda x: x, "in_specs containing unreduced"),
        (P(), P(unreduced=X), P(), lambda x: x, "in_specs containing unreduced"),
        (P(reduced=X), P(), P(), lambda x: x, "in_specs containing reduced"),
        (P(), P(), P(unreduced=X), lambda x: x, "out_specs passed to shard_map should"),
        (P(reduced=X), P(reduced=X), P(), lambda x: x, "equal to the reduced present"),
    ],
)
def test_specs_and_types_must_agree(
    place: P, ins: P, outs: P, body: Any, words: str
) -> None:
    with verax.set_mesh(MESH), pytest.raises(ValueError, match=words):
        mapped(body, in_specs=ins, out_specs=outs)(at(place))


def test_axes_of_terms_must_be_mapped() -> None:
    with verax.set_mesh(MESH):
        f = mapped(
            lambda x: x, in_specs=P(unreduced=X), out_specs=P(), axis_names={"y"}
        )
        with pytest.raises(ValueError, match="refers to 'x'"):
            f(at(P(unreduced=X)))


def test_terms_along_axes_that_are_not_mapped_stay() -> None:
    with verax.set_mesh(MESH):
        x = verax.jit(
            lambda x, w: vnp.matmul(x, w, out_sharding=P("x", unreduced={"y"}))
        )(at(P("x", "y")), at(P("y"), W))
        f = mapped(lambda x: x * 2, in_specs=P("x"), out_specs=P("x"), axis_names=X)
        out = verax.jit(f)(x)
        assert str(verax.typeof(out)) == "f32[8@x,4]{U:y}"
        near(reshard(out, P()), TABLE @ W * 2)


def test_auto_axes_beside_explicit_ones() -> None:
    mesh = verax.make_mesh(
        (2, 2, 2),
        ("x", "y", "z"),
        axis_types=(AxisType.Explicit, AxisType.Explicit, AxisType.Auto),
    )

    def body(x: Any) -> Any:
        assert str(verax.typeof(x)) == "f32[4,8@y]{V:x}"
        return vnp.sin(x) * lax.psum(x.sum(), "x")

    with verax.set_mesh(mesh):
        x = verax.device_put(TABLE, P("x", "y"))
        f = verax.shard_map(body, out_specs=P("x"), axis_names={"x"})
        out = verax.jit(f)(x)
        assert str(verax.typeof(out)) == "f32[8@x,8@y]"
        near(out, np.sin(TABLE) * TABLE.sum())
        due = verax.grad(lambda x: vnp.sum(vnp.sin(x) * x.sum()))(TABLE)
        near(verax.jit(verax.grad(lambda x: vnp.sum(f(x))))(x), due)


# ---------------------------------------------------------------------------- stacks

KIND = mesh_known(MESH)
AXES = ("x", "z")
STACK = vnp.sin(vnp.arange(16.0)).reshape(2, 2, 4)


def test_stacks_of_what_devices_hold() -> None:
    with verax.set_mesh(MESH):
        total = collect(STACK, AXES, KIND, "unreduced")
        assert str(verax.typeof(total)) == "f32[4]{U:(x,z)}"
        near(reshard(total, P()), STACK.sum((0, 1)))
        near(spread(total, AXES, KIND, "unreduced"), STACK)
        copies = vnp.broadcast_to(STACK[0, 0], (2, 2, 4))
        whole = collect(copies, AXES, KIND, "reduced")
        assert str(verax.typeof(whole)) == "f32[4]{R:(x,z)}"
        near(reshard(whole, P()), STACK[0, 0])
        near(spread(whole, AXES, KIND, "reduced"), copies)


def test_what_stacks_mean_without_devices() -> None:
    def evaluated(f: Callable[..., Any], x: Any) -> Any:
        return verax.transforms.evaluate(verax.make_jaxpr(f)(x), np.asarray(x))[0]

    near(
        evaluated(lambda x: collect(x, AXES, KIND, "unreduced"), STACK),
        STACK.sum((0, 1)),
    )
    near(evaluated(lambda x: collect(x, AXES, KIND, "reduced"), STACK), STACK[0, 0])
    terms = evaluated(lambda x: spread(x, AXES, KIND, "unreduced"), STACK[0, 0])
    near(terms, vnp.zeros((2, 2, 4)).at[0, 0].set(STACK[0, 0]))
    copies = evaluated(lambda x: spread(x, AXES, KIND, "reduced"), STACK[0, 0])
    near(copies, vnp.broadcast_to(STACK[0, 0], (2, 2, 4)))


@pytest.mark.parametrize("state", ["unreduced", "reduced"])
@pytest.mark.parametrize("axis", range(4))
def test_maps_of_stacks(state: str, axis: int) -> None:
    def f(x: Any) -> Any:
        return collect(x, AXES, KIND, state)

    with verax.set_mesh(MESH):
        many = vnp.stack([STACK, STACK * 2, STACK - 1])
        actual = verax.vmap(f, in_axes=axis)(vnp.moveaxis(many, 0, axis))
        for x, y in zip(many, actual, strict=True):
            near(reshard(y, P()), reshard(f(x), P()))


# ------------------------------------------------------------- specs and what fits them


def test_what_has_no_spec_is_passed_on_as_it_is() -> None:
    options, seen = object(), []

    def body(settings: Any, x: Any, size: int) -> Any:
        seen.append((settings["a"], size))
        return x + vnp.ones(size) * settings["b"]

    specs = ({"a": None, "b": P()}, P("x"), None)
    f = mapped(body, in_specs=specs, out_specs=P("x"))
    near(f({"a": options, "b": 2.0}, TABLE[0], 4), TABLE[0] + 2)
    near(verax.jit(lambda x: f({"a": options, "b": 2.0}, x, 4))(TABLE[0]), TABLE[0] + 2)
    assert seen == [(options, 4)] * 2
    w = vnp.ones(())
    alone = mapped(lambda w, x: w * x, in_specs=(None, P("x")), out_specs=P("x"))
    gradient = verax.grad(lambda w: vnp.sum(alone(w, TABLE[0])))(w)
    near(gradient, TABLE[0].sum())


def test_results_lie_as_specs_say_also_along_axes_of_size_one() -> None:
    mesh = verax.make_mesh((1, 2), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
    f = verax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=P("a"), out_specs=P("a"))
    assert spec(f(TABLE)) == P("a")


@pytest.mark.parametrize(
    ("specs", "args", "words"),
    [
        ((P("x", "y", None),), (TABLE,), "which has rank 2"),
        (({"hi": P("x")},), ({"hi": [vnp.float32(3)]},), "an in_specs entry of `P"),
        ((P("x"),), (vnp.ones(3),), "not evenly divisible"),
        (([P("x")],), ([TABLE, TABLE],), r"shard_map in_specs\[0\]"),
        ((P("w"),), (TABLE,), "in_specs refers to 'w'|Resource axis: w"),
    ],
)
def test_specs_that_do_not_fit(specs: Any, args: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        mapped(lambda x: (), in_specs=specs, out_specs=())(*args)


def test_what_is_refused_inside_a_map() -> None:
    with pytest.raises(ValueError, match="out_specs entry which is too long"):
        mapped(lambda: 3.0, in_specs=(), out_specs=P("x"))()
    pairs = zip([0, 1], [1, 0], strict=True)
    with pytest.raises(TypeError, match="must be a list or a tuple"):
        mapped(
            lambda x: lax.ppermute(x, "x", pairs),  # type: ignore[arg-type]  # refused
            in_specs=P("x"),
            out_specs=P("x"),
        )(TABLE)
    auto = verax.make_mesh((2, 4), ("a", "b"), axis_types=(AxisType.Auto,) * 2)
    with pytest.raises(ValueError, match="contains a manual axes 'a'"):
        verax.shard_map(
            lambda x: lax.with_sharding_constraint(x, NamedSharding(auto, P("a"))),
            mesh=auto,
            in_specs=P("a"),
            out_specs=P("a"),
            axis_names={"a"},
        )(TABLE)
    with verax.set_mesh(auto), pytest.raises(TypeError, match="in_axes was not"):
        verax.smap(lambda x: x, out_axes=0, axis_name="a")(TABLE)


def test_types_say_along_which_axes_all_have_the_same() -> None:
    def body(x: Any) -> Any:
        mesh = verax.sharding.get_abstract_mesh()
        assert verax.typeof(x).mat.invarying(mesh) == {"y", "z"}
        return x

    mapped(body, in_specs=P("x"), out_specs=P("x"))(TABLE)
    assert verax.typeof(TABLE).mat.invarying(MESH) == frozenset()


def test_branches_that_were_cast_along_different_axes() -> None:
    def body(x: Any, y: Any) -> Any:
        return lax.cond(
            True,
            lambda x, y: lax.pcast(x, "y", to="varying"),
            lambda x, y: lax.pcast(y, "x", to="varying"),
            x,
            y,
        )

    grid = verax.make_mesh((2, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    f = verax.shard_map(
        body, mesh=grid, in_specs=(P("x"), P("y")), out_specs=P(("x", "y"))
    )
    actual = f(vnp.arange(4.0), vnp.arange(4.0))
    assert actual.tolist() == [0, 1, 0, 1, 2, 3, 2, 3]

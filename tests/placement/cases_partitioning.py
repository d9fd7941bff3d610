"""`custom_partitioning` on eight devices."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jaxlib import lapack

import verax
import verax.numpy as vnp
from verax import ffi, lax
from verax.api.config.config import override
from verax.experimental.custom_partitioning import (
    BATCHING,
    SdyShardingRule,
    custom_partitioning,
)
from verax.experimental.serialize_executable import deserialize_and_load, serialize
from verax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

MESH = verax.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
VALUES = np.arange(64, dtype=np.float32).reshape(16, 4) / 9


def placed(x: Any, *spec: Any, mesh: Mesh = MESH) -> Any:
    return verax.device_put(x, NamedSharding(mesh, P(*spec)))


def by_parts(
    function: Callable[..., Any], part: Callable[..., Any], rule: Any, **factors: Any
) -> custom_partitioning:
    """A function of one array whose parts are those that the compiler chose."""
    f = custom_partitioning(function)

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        places = verax.tree.map(lambda s: s.sharding, args)
        return mesh, part, verax.tree.map(lambda s: s.sharding, result), places

    f.def_partition(partition, sharding_rule=rule, **factors)
    return f


def test_a_product_with_its_sum_over_devices() -> None:
    seen: list[Any] = []

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        left, right = [a.sharding.spec for a in args]
        seen.append((left, right, result.sharding.spec))

        def part(x: Any, w: Any) -> Any:
            product = x @ w
            return lax.psum(product, left[1]) if left[1] else product

        specs = P(left[0], right[1]), P(left[0], left[1]), P(left[1], right[1])
        out, a, b = [NamedSharding(mesh, spec) for spec in specs]
        return mesh, part, out, (a, b)

    f = custom_partitioning(lambda x, w: x @ w)
    f.def_partition(
        partition, sharding_rule="i j, j k -> i k", reduction_factors=("j",)
    )
    w = np.arange(12, dtype=np.float32).reshape(4, 3)
    for a, b, spec in (
        (("x", "y"), ("y",), P("x")),
        (((("x", "y"),)), (), P(("x", "y"))),
        ((None, "x"), ("x",), P()),
        ((), (), P()),
    ):
        out = verax.jit(f)(placed(VALUES, *a), placed(w, *b))
        np.testing.assert_allclose(out, VALUES @ w, rtol=1e-6)
        assert out.sharding.is_equivalent_to(NamedSharding(MESH, spec), 2)
    assert seen[0] == (P("x", "y"), P("y", None), P("x", None))
    np.testing.assert_allclose(f(VALUES, w), VALUES @ w, rtol=1e-6)
    text = verax.jit(f).lower(placed(VALUES, "x", "y"), placed(w, "y")).as_text()
    assert "([i, j], [j, k])->([i, k]) {i=16, j=4, k=3} reduction={j}, custom" in text


SHARES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "psum": (
        lambda x: x.sum(0) * vnp.ones((4, 1)),
        lambda x: lax.psum(x.sum(0, keepdims=True), "x"),
    ),
    "pmax": (
        lambda x: x.max(0) * vnp.ones((4, 1)),
        lambda x: lax.pmax(x.max(0, keepdims=True), "x"),
    ),
    "all_gather": (
        lambda x: x.reshape(4, 4, 4)[:, 0].sum(0) * vnp.ones((4, 1)),
        lambda x: lax.all_gather(x[0], "x").sum(0)[None],
    ),
    "tiled": (
        lambda x: vnp.tile(x, (4, 1)),
        lambda x: lax.all_gather(x, "x", tiled=True),
    ),
    "psum_scatter": (
        lambda x: x.reshape(4, 4, 4).sum(0),
        lambda x: lax.psum_scatter(x, "x", tiled=True),
    ),
    "untiled": (
        lambda x: x.reshape(4, 4, 4).sum(0),
        lambda x: lax.psum_scatter(x, "x")[None],
    ),
    "all_to_all": (
        lambda x: x.reshape(4, 4, 4).swapaxes(0, 1).reshape(16, 4),
        lambda x: lax.all_to_all(x, "x", 0, 0, tiled=True),
    ),
    "moved": (
        lambda x: x.reshape(4, 4, 4).transpose(1, 2, 0).reshape(16, 4),
        lambda x: lax.all_to_all(x, "x", 0, 1),
    ),
    "ppermute": (
        lambda x: vnp.roll(x, 4, 0),
        lambda x: lax.ppermute(x, "x", [(i, (i + 1) % 4) for i in range(4)]),
    ),
    "incomplete": (
        lambda x: vnp.zeros_like(x).at[12:].set(x[:4]),
        lambda x: lax.ppermute(x, "x", [(0, 3)]),
    ),
    "axis_index": (
        lambda x: x + vnp.arange(16)[:, None] // 4,
        lambda x: x + lax.axis_index("x"),
    ),
    "groups": (
        lambda x: (
            x.reshape(2, 2, 4, 4).sum(1, keepdims=True).repeat(2, 1).reshape(16, 4)
        ),
        lambda x: lax.psum(x, "x", axis_index_groups=[[0, 1], [2, 3]]),
    ),
    "both axes": (
        lambda x: x * 8,
        lambda x: lax.psum(x, ("x", "y")) - lax.psum(lax.psum(x, "x"), "y") + 8 * x,
    ),
    "a loop": (
        lambda x: x.reshape(4, 4, 4).sum((0, 2), keepdims=True) * vnp.ones((4, 4, 1)),
        lambda x: lax.fori_loop(
            0, 2, lambda i, y: y + lax.psum(x.sum(1), "x") / 2, vnp.zeros(4)
        )[None, :, None],
    ),
}


@pytest.mark.parametrize("name", SHARES)
def test_collectives_between_the_parts(name: str) -> None:
    """The devices of the mesh are not in the order of their numbers."""
    whole, part = SHARES[name]
    order = np.array(verax.devices(), object)[[3, 1, 0, 2, 6, 7, 5, 4]].reshape(4, 2)
    mesh = Mesh(order, ("x", "y"))
    expected = whole(VALUES)
    f = custom_partitioning(whole)

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        split = NamedSharding(mesh, P("x"))
        return mesh, part, split, (split,)

    f.def_partition(partition, sharding_rule="i j -> " + "k l m"[: 2 * expected.ndim])
    out = verax.jit(f)(placed(VALUES, "x", mesh=mesh))
    np.testing.assert_allclose(out, expected, rtol=1e-5)


def test_many_values_in_trees_and_static_arguments() -> None:
    def partition(scale: int, power: int, mesh: Any, args: Any, result: Any) -> Any:
        assert (scale, power) == (3, 2)
        assert args[0]["a"].shape == (16, 4)
        assert result[1].dtype == np.int32
        place = args[0]["a"].sharding

        def part(tree: Any, other: Any) -> Any:
            return tree["a"] * other * scale, (tree["b"] ** power)

        return mesh, part, (place, place), ({"a": place, "b": place}, place)

    @partial(custom_partitioning, static_argnums=(3, 1))
    def f(tree: Any, power: int, other: Any, scale: int = 3) -> Any:
        return tree["a"] * other * scale, (tree["b"] ** power)

    f.def_partition(partition, sharding_rule="...,..., ... -> ..., ...")
    tree = {"a": placed(VALUES, "x"), "b": vnp.arange(64).reshape(16, 4)}
    actual = verax.jit(f, static_argnums=1)(tree, 2, VALUES)
    eager = f({"a": VALUES, "b": np.arange(64).reshape(16, 4)}, power=2, other=VALUES)
    for x, y in zip(actual, eager, strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y)


def test_rules_that_a_function_makes() -> None:
    def rule(axis: int, mesh: Any, args: Any, results: Any) -> Any:
        assert (axis, dict(mesh.shape)) == (1, {"x": 4, "y": 2})
        names = [f"d{i}" for i in range(len(args[0].shape))]
        text = " ".join(names)
        whole = (names[axis],)
        return f"{text} -> {text}", {"need_replication_factors": whole}

    f = custom_partitioning(lambda x, axis: vnp.flip(x, axis), static_argnums=(1,))
    seen = []

    def partition(axis: int, mesh: Any, args: Any, result: Any) -> Any:
        seen.append(args[0].sharding.spec)
        # The compiler need not heed the rule: the partition says what it takes.
        kept = [None if i == axis else s for i, s in enumerate(seen[0])]
        place = NamedSharding(mesh, P(*kept))
        return mesh, lambda x: vnp.flip(x, axis), place, (place,)

    f.def_partition(partition, sharding_rule=rule)
    out = verax.jit(f, static_argnums=1)(placed(VALUES, "x", "y"), 1)
    assert np.array_equal(out, VALUES[:, ::-1])
    assert seen == [P("x", "y")]
    f.def_partition(partition, sharding_rule=lambda *args: 3)
    with pytest.raises(ValueError, match="must produce either an SdyShardingRule"):
        verax.jit(f, static_argnums=1)(placed(VALUES, "x"), 0)


def test_compound_factors_and_a_reshape() -> None:
    def partition(mesh: Any, args: Any, result: Any) -> Any:
        places = tuple(a.sharding for a in args)
        assert args[0].sharding.spec == P("x", None)
        return mesh, lambda x, y: x.reshape(y.shape) + y, result.sharding, places

    f = custom_partitioning(lambda x, y: x.reshape(-1) + y)
    f.def_partition(
        partition,
        sharding_rule="(i k) j, (i k j) -> (i k j)",
        i=4,
        k=4,
        need_replication_factors=("k",),
    )
    out = verax.jit(f)(placed(VALUES, "x"), placed(VALUES.ravel(), "x"))
    assert np.array_equal(out, VALUES.ravel() * 2)
    assert out.sharding.is_equivalent_to(NamedSharding(MESH, P("x")), 1)


def test_uneven_parts() -> None:
    seen = []

    def part(x: Any) -> Any:
        seen.append(x.shape)
        return x * 2

    f = by_parts(lambda x: x * 2, part, "i -> i")
    spread = partial(lax.with_sharding_constraint, shardings=NamedSharding(MESH, P()))
    x = np.arange(8.0)
    out = verax.jit(lambda x: spread(f(x)[:6]))(placed(x, "x"))
    assert np.array_equal(out, x[:6] * 2)
    assert seen == [(2,)]


def test_nested_in_jit_loops_and_custom_derivatives() -> None:
    double = by_parts(lambda x: x * 2, lambda x: x * 2, "... -> ...")
    inner = by_parts(lambda x: x + 1, lambda x: double(x) - x + 1, "... -> ...")

    @verax.custom_vjp
    def g(x: Any) -> Any:
        return double(x)

    g.defvjp(lambda x: (double(x), None), lambda _, ct: (double(ct),))

    def f(x: Any) -> Any:
        y, _ = lax.scan(lambda c, _: (inner(c), None), x, None, length=3)
        return g(y) + verax.jit(double)(y)

    x = placed(VALUES, "x")
    np.testing.assert_allclose(verax.jit(f)(x), (VALUES + 3) * 4, rtol=1e-6)
    gradient = verax.jit(verax.grad(lambda x: g(x).sum()))(x)
    assert np.array_equal(gradient, np.full_like(VALUES, 2))


def test_transformations_that_the_rule_does_not_know() -> None:
    f = by_parts(lambda x: x * 2, lambda x: x * 2, "... -> ...")
    with pytest.raises(NotImplementedError, match="vmap of the custom_partitioning"):
        verax.jit(verax.vmap(f))(VALUES)
    with pytest.raises(NotImplementedError, match="custom_vjp"):
        verax.jit(verax.grad(lambda x: f(x).sum()))(VALUES)
    with pytest.raises(NotImplementedError, match="transpose"):
        verax.linear_transpose(f, VALUES)(VALUES)


BAD: dict[str, tuple[Callable[..., Any], type[Exception], str]] = {
    "raises": (lambda mesh, args, result: 1 / 0, ZeroDivisionError, "division"),
    "nothing": (lambda mesh, args, result: None, TypeError, "must return the mesh"),
    "three": (lambda mesh, args, result: (mesh, abs, args), TypeError, "the mesh"),
    "no mesh": (
        lambda mesh, args, result: (3, abs, result.sharding, (args[0].sharding,)),
        TypeError,
        "must return a Mesh first",
    ),
    "no function": (
        lambda mesh, args, result: (mesh, 3, result.sharding, (args[0].sharding,)),
        TypeError,
        "callable",
    ),
    "a spec": (
        lambda mesh, args, result: (mesh, abs, P("x"), (args[0].sharding,)),
        ValueError,
        "must return Sharding",
    ),
    "another tree": (
        lambda mesh, args, result: (mesh, abs, result.sharding, args[0].sharding),
        TypeError,
        "shardings of the arguments",
    ),
    "another shape": (
        lambda mesh, args, result: (
            mesh,
            lambda x: x[:1],
            result.sharding,
            (args[0].sharding,),
        ),
        ValueError,
        "Mismatch in result shapes",
    ),
    "another mesh": (
        lambda mesh, args, result: (
            mesh,
            abs,
            NamedSharding(Mesh(verax.devices()[:2], ("z",)), P()),
            (args[0].sharding,),
        ),
        ValueError,
        "devices are not those",
    ),
    "part raises": (
        lambda mesh, args, result: (
            mesh,
            lambda x: x.no_such_method(),
            result.sharding,
            (args[0].sharding,),
        ),
        AttributeError,
        "no_such_method",
    ),
    "a callback": (
        lambda mesh, args, result: (
            mesh,
            lambda x: verax.pure_callback(abs, x, x),
            result.sharding,
            (args[0].sharding,),
        ),
        TypeError,
        "take the callbacks out",
    ),
    "too few arguments": (lambda mesh: None, TypeError, "is called with"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_a_rule_gets_wrong(name: str) -> None:
    """Each is an exception of Python's, and the next program compiles."""
    rule, kind, message = BAD[name]
    f = custom_partitioning(lambda x: abs(x))
    f.def_partition(rule, sharding_rule="... -> ...")
    with pytest.raises(kind, match=message):
        verax.jit(f)(placed(VALUES, "x"))
    good = by_parts(abs, abs, "... -> ...")
    assert np.array_equal(verax.jit(good)(placed(VALUES, "x")), VALUES)


def test_effects_are_refused() -> None:
    def shown(x: Any) -> Any:
        verax.debug.print("{}", x)
        return x

    f = by_parts(shown, lambda x: x, "... -> ...")
    with pytest.raises(TypeError, match="has effects"):
        verax.jit(f)(placed(VALUES, "x"))


def test_captured_arrays_stay_with_the_function() -> None:
    added = vnp.full((16, 4), 5.0)
    f = by_parts(lambda x: x + added, lambda x: x + 5, "i j -> i j")
    assert np.array_equal(verax.jit(f)(placed(VALUES, "x")), VALUES + 5)
    assert np.array_equal(verax.jit(f)(VALUES), VALUES + 5)


def test_programs_are_not_kept_on_disk(tmp_path: Path) -> None:
    with (
        override("enable_compilation_cache", True),
        override("compilation_cache_dir", str(tmp_path)),
        override("persistent_cache_min_compile_time_secs", 0.0),
    ):
        for factor in (2.0, 3.0):
            f = by_parts(lambda x: x * 2, lambda x, by=factor: x * by, "i j -> i j")
            out = verax.jit(f)(placed(VALUES, "x"))
            np.testing.assert_allclose(out, VALUES * factor, rtol=1e-6)
        assert not list(tmp_path.iterdir())
        verax.jit(lambda x: x * 2)(placed(VALUES, "x"))
        assert list(tmp_path.glob("*.verax"))


def test_the_text_does_not_depend_on_what_ran_before() -> None:
    def text() -> str:
        f = by_parts(lambda x: x * 2, lambda x: x * 2, "i j -> i j")
        lowered = verax.jit(f).lower(placed(VALUES, "x"))
        lowered.compile()
        return lowered.as_text()

    assert text() == text()
    actual = text()
    assert "custom_call @verax_custom_partitioning" in actual


def test_a_rule_as_an_object() -> None:
    rule = SdyShardingRule(((BATCHING, "i"),), ((BATCHING, "i"),))
    f = by_parts(lambda x: x * 2, lambda x: x * 2, rule)
    out = verax.jit(f)(placed(VALUES, "x", "y"))
    assert np.array_equal(out, VALUES * 2)
    assert out.sharding.is_equivalent_to(NamedSharding(MESH, P("x", "y")), 2)


def test_compiled_programs_can_be_saved() -> None:
    f = by_parts(lambda x: x * 2, lambda x: x * 2, "i j -> i j")
    x = placed(VALUES, "x")
    compiled = verax.jit(f).lower(x).compile()
    loaded = deserialize_and_load(*serialize(compiled))
    assert np.array_equal(loaded(x), VALUES * 2)


def test_a_batch_of_foreign_calls_stays_where_it_is() -> None:
    lapack.prepare_lapack_call("geqrf", np.float32)
    routines = {name: routine for name, routine, _ in lapack.registrations()["cpu"]}
    ffi.register_ffi_target("parts_of_geqrf", routines["lapack_sgeqrf_ffi"])
    ffi.register_ffi_target_as_batch_partitionable("parts_of_geqrf")

    def factor(x: Any) -> Any:
        types = (x, verax.ShapeDtypeStruct(x.shape[-1:], x.dtype))
        call = ffi.ffi_call(
            "parts_of_geqrf",
            [verax.ShapeDtypeStruct(t.shape, t.dtype) for t in types],
            input_layouts=[(1, 0)],
            output_layouts=[(1, 0), None],
            input_output_aliases={0: 0},
            vmap_method="broadcast_all",
        )
        return call(x)

    values = np.random.default_rng(0).normal(size=(8, 4, 3)).astype(np.float32)
    want = [np.stack(xs) for xs in zip(*map(factor, values), strict=True)]
    mapped = verax.jit(verax.vmap(factor))
    parts = verax.shard_map(
        verax.vmap(factor), mesh=MESH, in_specs=P("x"), out_specs=P("x")
    )
    x = verax.device_put(values, NamedSharding(MESH, P("x")))
    for f in (mapped, verax.jit(parts)):
        for actual, due in zip(f(x), want, strict=True):
            np.testing.assert_allclose(actual, due, rtol=1e-5)
            assert actual.sharding.is_equivalent_to(
                NamedSharding(MESH, P("x")), actual.ndim
            )
        assert "all-gather" not in f.lower(x).compile().as_text()


def test_the_devices_of_a_map_compute_the_function_itself() -> None:
    f = by_parts(vnp.sin, vnp.cos, "... i -> ... i")
    mapped = verax.shard_map(f, mesh=MESH, in_specs=P("x", "y"), out_specs=P("x", "y"))
    for run in (mapped, verax.jit(mapped)):
        np.testing.assert_allclose(run(VALUES), np.sin(VALUES), atol=1e-6)

"""Shardings come back as the user wrote them, and structs carry them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.sharding import AxisType, NamedSharding, PartitionSpec, SingleDeviceSharding

P = PartitionSpec
AUTO = (AxisType.Auto,) * 3
CUBE = verax.make_mesh((1, 8, 1), ("x", "y", "z"), AUTO)
ONE = verax.make_mesh((1,), ("x",), AUTO[:1])
PAIR = verax.make_mesh((2,), ("x",), AUTO[:1])
TYPED = verax.make_mesh((2,), ("x",), (AxisType.Explicit,))


def spec(x: Any) -> Any:
    assert isinstance(x.sharding, NamedSharding)
    return x.sharding.spec


@pytest.mark.parametrize("mesh", [CUBE, ONE], ids=["several", "one"])
def test_axes_of_size_one_stay_in_specs(mesh: Any) -> None:
    own = P("x", "y", "z") if mesh is CUBE else P("x")
    place = NamedSharding(mesh, own)
    x = verax.device_put(np.ones((2, 8, 3), np.float32), place)
    unused = verax.device_put(np.ones(8, np.float32), NamedSharding(mesh, P()))
    for f in (vnp.sin, lambda x: x, lambda x: x + 1):
        assert (f(x).sharding, verax.jit(f)(x).sharding) == (place, place)
    two = verax.jit(lambda unused, x: (x, x.sum()))
    assert spec(two(unused, x)[0]) == own
    assert spec(two(unused, x)[1]) == P()
    assert verax.jit(verax.grad(lambda x: vnp.sin(x).sum()))(x).sharding == place
    compiled = verax.jit(lambda x: x * 2).lower(x).compile()
    assert compiled(x).sharding == place
    assert compiled.output_shardings == place


def test_trailing_dimensions_stay_in_specs() -> None:
    place = NamedSharding(PAIR, P("x", None))
    x = verax.device_put(np.ones((8, 2), np.float32), place)
    assert verax.jit(vnp.sin)(x).sharding == place
    assert spec(verax.jit(lambda x: x.T)(x)) == P(None, "x")


def test_what_is_there_is_not_put_again() -> None:
    place = NamedSharding(PAIR, P("x"))
    x = verax.device_put(np.arange(8), place)
    assert verax.device_put(x, place) is x
    assert verax.device_put(x, place, may_alias=True) is x
    assert verax.device_put(x) is x
    assert verax.device_put(x, place, may_alias=False) is not x
    assert verax.device_put(x, NamedSharding(PAIR, P())) is not x
    free = vnp.arange(8)
    there = verax.device_put(free, verax.devices()[0])
    assert there is not free
    assert there.committed
    gone = verax.device_put(there, verax.devices()[0], donate=True)
    assert gone is not there
    assert there.is_deleted()


def test_structs_of_arrays() -> None:
    x = vnp.arange(8)
    assert verax.ShapeDtypeStruct.like(x).sharding is None
    for place in (SingleDeviceSharding(verax.devices()[1]), NamedSharding(PAIR, P())):
        assert verax.ShapeDtypeStruct.like(verax.device_put(x, place)).sharding == place
    with verax.set_mesh(TYPED):
        typed = verax.device_put(x, P("x"))

        @verax.jit
        def ones(x: Any) -> Any:
            struct = verax.ShapeDtypeStruct.like(x)
            return vnp.ones(struct.shape, struct.dtype, out_sharding=struct.sharding)

        assert spec(ones(typed)) == P("x")


def test_specs_in_structs() -> None:
    struct = verax.ShapeDtypeStruct((8, 2), np.float32, sharding=P("x"))
    assert struct == verax.ShapeDtypeStruct((8, 2), np.float32, sharding=P("x"))
    assert struct.update(shape=(4, 2)).shape == (4, 2)
    with pytest.raises(TypeError, match="the context mesh cannot be empty"):
        _ = struct.sharding
    with verax.set_mesh(CUBE):
        assert struct.sharding == NamedSharding(CUBE, P("x"))
    with verax.set_mesh(PAIR):
        assert struct.sharding == NamedSharding(PAIR, P("x"))
        compiled = verax.jit(lambda x: x * 2).lower(struct).compile()
        x = verax.device_put(np.ones((8, 2), np.float32), P("x"))
        assert spec(compiled(x)) == P("x")
    with verax.set_mesh(ONE), pytest.raises(ValueError, match="not found in mesh"):
        _ = struct.update(sharding=P("y")).sharding
    for place in (P(None, None, "x"), NamedSharding(PAIR, P(None, None, "x"))):
        with pytest.raises(ValueError, match=r"rank at least 3, .* of rank 2"):
            struct.update(sharding=place)


def test_arrays_like_structs_lie_where_these_say() -> None:
    place = NamedSharding(PAIR, P("x"))
    struct = verax.ShapeDtypeStruct((8, 2), np.float32, sharding=place)
    for f in (vnp.zeros_like, vnp.ones_like, lambda a: vnp.full_like(a, 3)):
        assert f(struct).sharding == place
    assert vnp.zeros_like(struct, shape=(3,)).sharding != place
    typed = NamedSharding(TYPED.abstract_mesh, P("x"))
    struct = struct.update(sharding=typed)
    with verax.set_mesh(TYPED):
        assert vnp.zeros_like(struct).sharding.mesh == TYPED
        assert spec(vnp.zeros_like(struct))[0] == "x"
    assert vnp.zeros_like(struct).sharding == SingleDeviceSharding(verax.devices()[0])


def test_eval_shape_says_the_shardings_that_were_asked_for() -> None:
    place = NamedSharding(PAIR, P("x"))
    f = verax.jit(lambda x: {"y": x * 2, "z": x}, out_shardings={"y": place, "z": None})
    out = f.eval_shape(np.arange(8))
    assert out["y"].sharding == place
    assert out["z"].sharding is None


def test_types_within_a_mesh_say_nothing_of_places() -> None:
    place = NamedSharding(PAIR, P("x"))
    with PAIR:
        aval = verax.core.ShapedArray((8, 2), np.float32)
        lowered = verax.jit(lambda x: x * 2, in_shardings=place).lower(aval)
        x = verax.device_put(np.ones((8, 2), np.float32), place)
        assert lowered.compile()(x).sharding == place
    f = verax.pmap(lambda x: x - verax.lax.pmean(x, "i"), axis_name="i")
    y = np.arange(16, dtype=np.float32).reshape(8, 2)
    compiled = f.lower(verax.core.ShapedArray(y.shape, y.dtype)).compile()
    np.testing.assert_array_equal(compiled(y), f(y))


HALVES = NamedSharding(PAIR, P("x"))
JOIN: Any = verax.make_array_from_single_device_arrays
WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no list": (lambda: JOIN((8,), HALVES, vnp.arange(8)), TypeError, "`arrays` arg"),
    "traced": (
        lambda: verax.jit(lambda x: JOIN((8,), HALVES, [x, x]))(np.ones(4)),
        ValueError,
        "requires a list of concrete arrays",
    ),
    "two shards": (
        lambda: JOIN((8,), HALVES, [verax.device_put(np.ones(8), HALVES)]),
        ValueError,
        r"one shard each. An argument array had 2 shard\(s\)",
    ),
    "no dtype": (lambda: JOIN((8,), HALVES, []), ValueError, "`dtype` must be provid"),
    "no parts": (
        lambda: JOIN((8,), HALVES, [], dtype=int),
        ValueError,
        "there is no part for cpu:0, cpu:1",
    ),
    "another dtype": (
        lambda: JOIN((8,), NamedSharding(ONE, P()), [vnp.ones(8)], dtype=int),
        ValueError,
        "must match the dtype of the addressable shards. Got int32, but .* float32",
    ),
    "a nested tuple": (lambda: P("x", ("y", ("z",))), ValueError, "a nested tuple"),
    "an axis None": (
        lambda: P(unreduced={"y", None}),  # type: ignore[arg-type]  # the error is what is tested
        ValueError,
        "unreduced cannot contain None",
    ),
    "no kind of terms": (
        lambda: P(unreduced={"y"}, unreduced_kind=frozenset()),  # type: ignore[arg-type]  # the error is what is tested
        TypeError,
        "unreduced_kind to be of type UnreducedKind, but got frozenset",
    ),
    "terms over automatic axes": (
        lambda: NamedSharding(PAIR, P(unreduced={"x"})),
        ValueError,
        "can only refer to mesh axes of type Explicit",
    ),
    "sizes that are no integers": (
        lambda: verax.make_mesh((2.5,), ("x",)),  # type: ignore[arg-type]  # the error is what is tested
        ValueError,
        "should be a sequence of ints",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said(name: str) -> None:
    make, kind, words = WRONG[name]
    with pytest.raises(kind, match=words):
        make()


def test_specs_have_no_subclasses() -> None:
    with pytest.raises(TypeError, match=r"Subclassing `verax.P` is prohibited.* Own "):
        type("Own", (P,), {})


def test_shardings_without_devices_know_no_memory_unless_told() -> None:
    mesh = CUBE.abstract_mesh
    assert NamedSharding(mesh, P()).memory_kind is None
    assert NamedSharding(mesh, P(), memory_kind="pinned_host").kind == "pinned_host"
    assert NamedSharding(CUBE, P()).memory_kind == "device"
    with pytest.raises(ValueError, match="Got invalid memory kind 'attic'"):
        NamedSharding(mesh, P(), memory_kind="attic")


def test_shardings_without_devices_are_compared_by_their_meshes() -> None:
    mesh = CUBE.abstract_mesh
    one = NamedSharding(mesh, P("x", "y"))
    assert one.is_equivalent_to(NamedSharding(mesh, P(None, "y", None)), 3)
    assert one.is_equivalent_to(NamedSharding(mesh, P("x", ("y", "z"))), 2)
    assert not one.is_equivalent_to(NamedSharding(mesh, P("y")), 2)
    assert not one.is_equivalent_to(NamedSharding(PAIR.abstract_mesh, P("x")), 2)
    assert not one.is_equivalent_to(SingleDeviceSharding(verax.devices()[0]), 2)


def test_specs_that_mean_the_same_share_a_program() -> None:
    mesh = verax.make_mesh((8,), ("x",), AUTO[:1])
    specs = [P("x"), P("x", None), P("x", None, None), P()]
    host = np.arange(48, dtype=np.float32).reshape(8, 3, 2)
    f = verax.jit(lambda x: (x * 3, x.sum(0), x + 1, x.transpose(1, 0, 2)))
    counts = []
    for own in specs:
        x = verax.device_put(host, NamedSharding(mesh, own))
        before = verax.metrics()["compiles"]
        like, total, more, turned = f(x)
        compiled = f.lower(x).compile()
        counts.append(verax.metrics()["compiles"] - before)
        assert [spec(like), spec(more), spec(total)] == [own, own, P()]
        assert spec(turned) == (P() if own == P() else P(None, "x"))
        assert compiled.input_shardings == ((x.sharding,), {})
        assert compiled.output_shardings[0] == x.sharding
        np.testing.assert_array_equal(turned, host.transpose(1, 0, 2))
    assert counts[1:3] == [0, 0]
    assert counts[0] == counts[3] > 0


@pytest.mark.parametrize("kind", [AxisType.Explicit, AxisType.Auto])
def test_results_given_back_need_no_other_program(kind: AxisType) -> None:
    mesh = verax.make_mesh((8,), ("x",), (kind,))

    @verax.jit
    def step(w: Any, state: Any) -> Any:
        moment, count = state
        slope = verax.grad(lambda w: (vnp.sin(w) ** 2).sum())(w)
        moment = 0.9 * moment + slope
        return w - moment / (count + 1), (moment, count + 1)

    w = verax.device_put(np.ones((8, 3), np.float32), NamedSharding(mesh, P("x")))
    # The count is on one device at first, and then on all of them.
    count: Any = np.float32(0)
    if kind is AxisType.Explicit:  # there it would have a type of its own
        count = verax.device_put(count, NamedSharding(mesh, P()))
    w, state = step(w, (vnp.zeros_like(w), count))
    before = verax.metrics()["compiles"]
    for _ in range(2):
        w, state = step(w, state)
    assert verax.metrics()["compiles"] == before
    assert spec(w) == (P("x", None) if kind is AxisType.Explicit else P("x"))
    assert spec(state[1]) == P()


def test_a_result_has_the_spec_that_was_asked_for() -> None:
    mesh = verax.make_mesh((8,), ("x",), AUTO[:1])
    x = np.ones((8, 3), np.float32)
    for own in (P("x"), P("x", None), P("x", None)):
        f = verax.jit(lambda x: x * 5, out_shardings=NamedSharding(mesh, own))
        assert spec(f(x)) == own

"""Explicit mesh axes: types that say how values are split; eight devices."""

import copy
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax, random
from verax.errors import ShardingTypeError
from verax.ir import ParseError, ShapedArray, parse_closed, parse_jaxpr
from verax.sharding import (
    AxisType,
    NamedSharding,
    PartitionSpec as P,
    auto_axes,
    explicit_axes,
    reshard,
)

MESH = verax.make_mesh((2, 4), ("x", "y"), (AxisType.Explicit,) * 2)
VALUES = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)


def split(*axes: Any, values: np.ndarray = VALUES) -> verax.Array:
    """Values on the mesh, whose dimensions these axes split."""
    actual: verax.Array = verax.device_put(values, NamedSharding(MESH, P(*axes)))
    return actual


def test_a_type_says_how_axes_split_it() -> None:
    x = split("x")
    assert str(verax.typeof(x)) == "f32[8@x,8]"
    assert x.aval.str_short() == "float32[8@x,8]"
    assert x.aval.sharding.spec == P("x", None)
    assert x.aval.sharding.mesh == MESH.abstract_mesh
    assert str(split(("x", "y")).aval) == "f32[8@(x,y),8]"
    assert x.aval is split("x").aval
    assert x.aval is not split().aval
    assert pickle.loads(pickle.dumps(x.aval)) is x.aval
    assert x.aval.update(weak_type=True).strip_weak_type() is x.aval
    assert verax.typeof(split()).sharding.spec == P(None, None)


def test_the_text_of_a_type_is_read_with_its_mesh() -> None:
    def f(w: verax.Array, x: verax.Array) -> verax.Array:
        return (vnp.tanh(reshard(x, P(None, ("y", "x"))) @ reshard(w, P()))).sum()

    with verax.set_mesh(MESH):
        program = verax.make_jaxpr(verax.grad(f))(split("y"), split("x"))
    for mesh in (MESH, MESH.abstract_mesh):
        assert parse_closed(str(program), consts=program.consts, mesh=mesh) == program
    for word in (
        "f32[8@x,2]",
        "i8[8@(x,y),2]",
        "i8[8@x]{R:y}",
        "f32[]{U:(x,y)}",
        "f32[4]{U_max:x}",
    ):
        jaxpr = parse_jaxpr(f"{{ lambda ; a:{word}. let in (a,) }}", mesh=MESH)
        assert str(jaxpr.in_avals[0]) == word
        assert jaxpr.in_avals[0].sharding.mesh == MESH.abstract_mesh


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        ("f32[8@z]", "names 'z', which is not an axis of mesh"),
        ("f32[7@x]", "does not evenly divide the dimension size 7"),
        ("f32[8]{U:z}", "names 'z'"),
    ],
)
def test_the_text_of_a_type_that_cannot_be(word: str, complaint: str) -> None:
    with pytest.raises(ParseError, match=complaint):
        parse_jaxpr(f"{{ lambda ; a:{word}. let in (a,) }}", mesh=MESH)


def test_the_text_of_a_split_type_needs_a_mesh() -> None:
    with pytest.raises(ParseError, match=r"split f32\[8@x\]: pass mesh= to read it"):
        parse_jaxpr("{ lambda ; a:f32[8@x]. let in (a,) }")


@pytest.mark.parametrize("staged", [False, True])
def test_vmap_splits_what_is_the_same_for_all_elements(staged: bool) -> None:
    def f(x: verax.Array, scale: float) -> Any:
        one = verax.vmap(lambda row: (vnp.zeros(4), scale), out_axes=(-1, 0))(x)
        return (*one, verax.vmap(lambda row: row.sum())(x))

    with verax.set_mesh(MESH):
        actual = (verax.jit(f) if staged else f)(split("x"), 2.0)
    assert [str(x.aval) for x in actual] == ["f32[4,8@x]", "~f32[8@x]", "f32[8@x]"]
    assert actual[0].sharding == NamedSharding(MESH, P(None, "x"))
    assert actual[1].tolist() == [2.0] * 8


def test_a_single_element_is_whole() -> None:
    x = split("x", "y")
    for actual in (x[3, 1], verax.jit(lambda x: x[3, 1])(x)):
        assert str(actual.aval) == "f32[]"
        assert actual == VALUES[3, 1]
    assert str(lax.slice(x, (7, 2), (8, 3)).aval) == "f32[1,1]"
    gradient = verax.jit(verax.grad(lambda x: x[3, 1] ** 2))(x)
    assert str(gradient.aval) == "f32[8@x,8@y]"
    assert gradient[3, 1] == 2 * VALUES[3, 1]
    assert vnp.abs(gradient).sum() == abs(2 * VALUES[3, 1])
    with pytest.raises(ShardingTypeError, match="does not evenly divide"):
        x[3]


def test_random_bits_are_split_as_they_are_asked_for() -> None:
    key = np.arange(4, dtype=np.uint32)

    def f(key: Any) -> Any:
        return lax.rng_bit_generator(key, (4, 8), out_sharding=P("x"))

    with verax.set_mesh(MESH):
        for actual in (f(key), verax.jit(f)(key)):
            assert [str(x.aval) for x in actual] == ["u32[4]", "u32[4@x,8]"]
            assert actual[1].sharding == NamedSharding(MESH, P("x", None))
            alone = lax.rng_bit_generator(key, (4, 8))
            assert all(map(np.array_equal, actual, alone))


def test_an_array_like_one_that_is_split() -> None:
    like = split("x", values=np.ones((8, 2), np.float32))
    struct = verax.ShapeDtypeStruct((8, 2), np.float32, sharding=like.sharding)
    for other in (like, struct):
        actual = lax.broadcast_like(np.arange(2.0, dtype=np.float32), other)
        assert str(actual.aval) == "f32[8@x,2]"
        assert actual.tolist() == [[0.0, 1.0]] * 8
    assert lax.broadcast_like(1.0, verax.ShapeDtypeStruct((2,), np.int8)).shape == (2,)


def test_the_type_follows_the_place() -> None:
    x = split("x")
    assert str(pickle.loads(pickle.dumps(x)).aval) == "f32[8,8]"
    assert str(verax.device_put(x, verax.devices()[1]).aval) == "f32[8,8]"
    auto = NamedSharding(verax.make_mesh((8,), ("x",), (AxisType.Auto,)), P("x"))
    assert str(verax.device_put(x, auto).aval) == "f32[8,8]"
    assert str(x.addressable_shards[0].data.aval) == "f32[4,8]"
    assert copy.deepcopy(x).aval is vnp.array(x).aval is x.aval


def test_a_type_takes_a_sharding() -> None:
    place = NamedSharding(MESH, P("x"))
    actual = ShapedArray((8, 2), np.dtype("float32"), sharding=place)
    assert str(actual) == "f32[8@x,2]"
    with pytest.raises(ValueError, match="not evenly divide the dimension size 7"):
        ShapedArray((7, 2), np.dtype("float32"), sharding=place)
    long = NamedSharding(MESH, P("x", None))
    with pytest.raises(ValueError, match="1 dimensions"):
        ShapedArray((8,), np.dtype("float32"), sharding=long)


def test_axes_that_are_not_explicit_are_not_in_types() -> None:
    mesh = MESH.update(axis_types=(AxisType.Auto, AxisType.Explicit))
    x = verax.device_put(VALUES, NamedSharding(mesh, P("x", "y")))
    assert str(x.aval) == "f32[8,8@y]"
    assert str(x.sharding.spec) == "P('x', 'y')"


MAKERS: dict[str, Callable[[], Any]] = {
    "zeros": lambda: vnp.zeros((4, 2)),
    "ones": lambda: vnp.ones(()),
    "empty": lambda: vnp.empty((0, 3)),
    "full": lambda: vnp.full(3, 2.5),
    "zeros_like": lambda: vnp.zeros_like(np.ones(3)),
    "full_like": lambda: vnp.full_like(vnp.ones(3), 2),
    "arange": lambda: vnp.arange(5),
    "arange of bools": lambda: vnp.arange(2, dtype=bool),
    "linspace": lambda: vnp.linspace(0, 1, 3),
    "logspace": lambda: vnp.logspace(0, 1, 3),
    "geomspace": lambda: vnp.geomspace(1, 2, 3),
    "eye": lambda: vnp.eye(3),
    "tri": lambda: vnp.tri(3),
    "array": lambda: vnp.array([1, 2]),
    "array of NumPy": lambda: vnp.array(np.ones((2, 2))),
    "asarray": lambda: vnp.asarray(1.5),
    "dtype": lambda: vnp.float32(2),
    "frombuffer": lambda: vnp.frombuffer(b"12345678", dtype=np.int32),
    "lax.full": lambda: lax.full((2,), 1.0),
    "lax.iota": lambda: lax.iota(np.int32, 4),
    "lax.broadcasted_iota": lambda: lax.broadcasted_iota(np.int32, (2, 3), 1),
    "key": lambda: random.key(0),
    "PRNGKey": lambda: random.PRNGKey(0),
    "split": lambda: random.split(random.key(0)),
    "normal": lambda: random.normal(random.key(0), (3,)),
}


@pytest.mark.parametrize("name", MAKERS)
def test_new_arrays_lie_whole_on_the_explicit_mesh_in_force(name: str) -> None:
    plain = MAKERS[name]()
    with verax.set_mesh(MESH):
        x = MAKERS[name]()
        elsewhere = vnp.zeros(2, device=verax.devices()[1])
        split_one = vnp.zeros((8, 2), out_sharding=P("x"))
        traced = verax.make_jaxpr(lambda: vnp.zeros(2) + vnp.array([1.0, 2.0]))()
    assert not plain.committed
    assert x.committed
    assert x.sharding.is_equivalent_to(NamedSharding(MESH, P()), x.ndim)
    assert x.aval is plain.aval
    words = random.key_data if name in ("key", "split") else np.asarray
    assert np.array_equal(words(x), words(plain))
    assert len(x.addressable_shards) == 8
    assert elsewhere.devices() == {verax.devices()[1]}
    assert str(split_one.aval) == "f32[8@x,2]"
    assert not any(v.committed for v in traced.consts)


def test_new_arrays_lie_on_one_device_where_axes_are_not_explicit() -> None:
    mesh = MESH.update(axis_types=(AxisType.Explicit, AxisType.Auto))
    with verax.set_mesh(mesh):
        assert len(vnp.zeros(2).devices()) == 1
    with verax.set_mesh(MESH):
        known = vnp.asarray(plain := verax.device_put(np.ones(2)))
        assert known is plain
        moved = vnp.zeros(8) + split("x").sum(0)
    assert len(known.devices()) == 1
    assert moved.sharding.is_equivalent_to(NamedSharding(MESH, P()), 1)


CASES: Sequence[tuple[str, Callable[..., Any], tuple[P, ...], P]] = (
    ("sin", vnp.sin, (P("x", "y"),), P("x", "y")),
    ("add", vnp.add, (P("x"), P(None, "y")), P("x", "y")),
    ("add whole", vnp.add, (P("x"), P()), P("x", None)),
    ("where", lambda x, y: vnp.where(x > 0, x, 0.0), (P("x"), P()), P("x", None)),
    ("sum", lambda x: x.sum(0), (P("x", "y"),), P("y")),
    ("mean", lambda x: x.mean(1), (P("x", "y"),), P("x")),
    ("total", lambda x: x.sum(), (P("x", "y"),), P()),
    ("argmax", lambda x: x.argmax(0), (P("x", "y"),), P("y")),
    ("cumsum", lambda x: vnp.cumsum(x, 1), (P("x"),), P("x", None)),
    ("sort", lambda x: vnp.sort(x, 1), (P("x"),), P("x", None)),
    ("top_k", lambda x: lax.top_k(x, 3)[0], (P("x"),), P("x", None)),
    ("transpose", lambda x: x.T, (P("x", "y"),), P("y", "x")),
    ("split", lambda x: x.reshape(2, 4, 8), (P("x", "y"),), P("x", None, "y")),
    ("merge", lambda x: x.reshape(64), (P("x"),), P("x")),
    ("merge all", lambda x: x.reshape(64), (P("x", "y"),), P(("x", "y"))),
    ("insert", lambda x: x[:, None], (P("x", "y"),), P("x", None, "y")),
    ("squeeze", lambda x: x[:, None].squeeze(1), (P("x", "y"),), P("x", "y")),
    ("dot", vnp.dot, (P("x"), P(None, "y")), P("x", "y")),
    ("dot in", vnp.dot, (P("x", "y"), P()), P("x", None)),
    ("slice", lambda x: x[:4], (P("x"),), P("x", None)),
    ("pad", lambda x: vnp.pad(x, ((0, 0), (1, 1))), (P("x"),), P("x", None)),
    ("join", lambda x, y: vnp.concatenate([x, y]), (P("x"), P("x")), P("x", None)),
    ("flip", lambda x: x[::-1], (P("x"),), P("x", None)),
    ("gather", lambda x: x[:, np.array([1, 2])], (P("x"),), P("x", None)),
    ("scatter", lambda x: x.at[:, 0].add(1.0), (P("x"),), P("x", None)),
    ("softmax", verax.nn.softmax, (P("x"),), P("x", None)),
    ("relu", verax.nn.relu, (P("x", "y"),), P("x", "y")),
    ("fft", vnp.fft.fft, (P("x"),), P("x", None)),
    ("astype", lambda x: x.astype("float16"), (P("x", "y"),), P("x", "y")),
    ("view", lambda x: x.view("int32"), (P("x", "y"),), P("x", "y")),
)


@pytest.mark.parametrize(("name", "f", "specs", "expected"), CASES)
def test_results_are_split_as_their_operands(
    name: str, f: Callable[..., Any], specs: tuple[P, ...], expected: P
) -> None:
    args = [split(*spec) for spec in specs]
    seen: list[Any] = []

    def traced(*xs: Any) -> Any:
        y = f(*xs)
        seen.append(y.aval.sharding.spec)
        return y

    plain = np.asarray(f(*[vnp.asarray(VALUES) for _ in specs]))
    for result in (verax.jit(traced)(*args), f(*args)):
        assert result.sharding == NamedSharding(MESH, expected)
        assert np.allclose(np.asarray(result), plain, atol=1e-5)
    assert [axes or None for axes in seen[0]] == [axes or None for axes in expected]


def choose(x: Any, y: Any) -> Any:
    """Either of two arrays, by a flag that nothing splits."""
    return lax.select(vnp.zeros((8, 8), bool), x, y)


WRONG: Sequence[tuple[str, Callable[..., Any], tuple[P, ...]]] = (
    ("incompatible shardings for broadcasting", vnp.add, (P("x"), P("y"))),
    ("illegally sharded result: f32.8@x,8@x", vnp.add, (P("x"), P(None, "x"))),
    ("ambiguous how the output", vnp.dot, (P(None, "x"), P("x"))),
    ("unsharded over the axis being reduced", lambda x: vnp.cumsum(x, 0), (P("x"),)),
    ("cumprod: The input should be fully replic", vnp.cumprod, (P("x"),)),
    ("unsharded along dimension 0", lambda x: vnp.sort(x, 0), (P("x"),)),
    ("select cases must have the same shardings", choose, (P("x"), P("y"))),
    ("sharded where its tiling", lambda x: vnp.tile(x, (2, 1)), (P("x"),)),
    ("on the unstacking axis 0", vnp.unstack, (P("x"),)),
    ("on the unstacking axis 1", lambda x: lax.unstack(x, 1), (P(None, "x"),)),
    ("`out_sharding` argument", lambda x: x.reshape(64), (P(None, "x"),)),
    ("get.out_sharding=", lambda x: x[np.array([0, 2])], (P("x"),)),
    ("evenly divide", lambda x: x[:3], (P("x"),)),
    ("Arguments to lu must", vnp.linalg.inv, (P("x"),)),
)


@pytest.mark.parametrize(("message", "f", "specs"), WRONG)
def test_what_is_ambiguous_is_an_error(
    message: str, f: Callable[..., Any], specs: tuple[P, ...]
) -> None:
    args = [split(*spec) for spec in specs]
    calls: list[Callable[..., Any]] = [f, verax.jit(f)]
    for call in calls:
        with pytest.raises(ShardingTypeError, match=message):
            call(*args)


def test_meshes_do_not_mix() -> None:
    other = verax.make_mesh((4, 2), ("x", "y"), (AxisType.Explicit,) * 2)
    y = verax.device_put(VALUES, NamedSharding(other, P("x")))
    with pytest.raises(ValueError, match="inputs should be equal"):
        split("x") + y


def test_programs_say_it_to_the_compiler() -> None:
    text = verax.jit(lambda x: vnp.sin(x).sum(1)).lower(split("x", "y")).as_text()
    assert '#sdy.sharding<@mesh, [{"x"}, {"y"}]>' in text
    assert text.count("sdy.sharding_constraint") == 2
    assert '-> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})' in text
    assert "sdy" not in verax.jit(lambda x: vnp.sin(x).sum(1)).lower(VALUES).as_text()


def test_reshard() -> None:
    x = split("x")
    with verax.set_mesh(MESH):
        calls: list[Callable[[Any], Any]] = [
            lambda x: reshard(x, P(None, "y")),
            verax.jit(lambda x: reshard(x, P(None, "y"))),
        ]
        for call in calls:
            y = call(x)
            assert y.sharding == NamedSharding(MESH, P(None, "y"))
            assert np.array_equal(np.asarray(y), VALUES)
        whole = reshard({"a": x}, P())["a"]
        assert whole.sharding.is_fully_replicated
        ct = verax.grad(lambda x: (reshard(x, P(None, "y")) * 2).sum())(x)
        assert str(ct.aval) == "f32[8@x,8]"
    with pytest.raises(ValueError, match="needs a mesh"):
        reshard(x, P())
    auto = verax.make_mesh((8,), ("x",), (AxisType.Auto,))
    with pytest.raises(ValueError, match="Explicit"):
        reshard(x, NamedSharding(auto, P("x")))


def test_auto_axes_leave_it_to_the_compiler() -> None:
    x = split("x", "y")
    seen: list[Any] = []

    def product(x: Any, y: Any) -> Any:
        seen.append((x.aval.sharding.spec, verax.get_abstract_mesh().axis_types))
        return x @ y

    with verax.set_mesh(MESH):
        calls: Any = (
            auto_axes(product, out_sharding=P("x")),
            verax.jit(auto_axes(product, out_sharding=P("x"))),
            lambda x, y: auto_axes(product)(x, y, out_sharding=P("x")),
        )
        for call in calls:
            y = call(x, x)
            assert y.sharding == NamedSharding(MESH, P("x", None))
            assert np.allclose(y, VALUES @ VALUES, atol=1e-5)
        assert set(seen) == {(P(None, None), (AxisType.Auto,) * 2)}
        ct = verax.grad(lambda x: auto_axes(product)(x, x, out_sharding=P("x")).sum())
        assert str(ct(x).aval) == "f32[8@x,8@y]"
        with pytest.raises(TypeError, match="needs out_sharding"):
            auto_axes(product)(x, x)
    assert np.allclose(auto_axes(vnp.sin, out_sharding=P())(VALUES), np.sin(VALUES))
    with pytest.raises(ValueError, match="Context mesh cannot be empty"):
        auto_axes(vnp.sin, out_sharding=P("x"))(VALUES)


def test_programs_within_an_explicit_mesh_are_over_its_devices() -> None:
    double = verax.jit(lambda x: x * 2)
    assert double(VALUES).sharding.num_devices == 1
    with verax.set_mesh(MESH):
        assert double(VALUES).sharding == NamedSharding(MESH, P(None, None))
        assert (split("x") + vnp.ones(8)).sharding == NamedSharding(MESH, P("x", None))
    assert double(VALUES).sharding.num_devices == 1


def test_auto_axes_along_some() -> None:
    x = split("x", "y")
    seen: list[str] = []

    def f(x: Any) -> Any:
        seen.append(str(x.aval))
        return x * 2

    with verax.set_mesh(MESH):
        y = auto_axes(f, axes="y", out_sharding=P("x", "y"))(x)
    assert (seen, str(y.aval)) == (["f32[8@x,8]"], "f32[8@x,8@y]")
    assert np.array_equal(y, VALUES * 2)


def test_explicit_axes_within_auto_ones() -> None:
    auto = MESH.update(axis_types=(AxisType.Auto,) * 2)
    x = verax.device_put(VALUES, NamedSharding(auto, P("x", "y")))
    seen: list[str] = []

    def f(x: Any) -> Any:
        seen.append(str((x * 2).aval))
        return x * 2

    with verax.set_mesh(auto):
        y = verax.jit(explicit_axes(f, in_sharding=P("x")))(x)
    assert seen == ["f32[8@x,8]"]
    assert str(y.aval) == "f32[8,8]"
    assert np.array_equal(y, VALUES * 2)


MADE: Sequence[tuple[Callable[..., verax.Array], P]] = (
    (lambda s: vnp.zeros((8, 2), out_sharding=s), P("x", None)),
    (lambda s: vnp.ones(8, out_sharding=s), P("x")),
    (lambda s: vnp.full((8, 2), 3.0, out_sharding=s), P("x", None)),
    (lambda s: vnp.arange(8, out_sharding=s), P("x")),
    (lambda s: vnp.array(VALUES, out_sharding=s), P("x", None)),
    (lambda s: vnp.zeros_like(VALUES, out_sharding=s), P("x", None)),
    (lambda s: lax.full((8, 2), 3.0, sharding=s), P("x", None)),
    (lambda s: lax.broadcasted_iota("int32", (8, 2), 0, out_sharding=s), P("x", None)),
    (lambda s: random.normal(random.key(0), (8,), out_sharding=s), P("x")),
    (lambda s: random.uniform(random.key(0), (8, 2), out_sharding=s), P("x", None)),
    (lambda s: random.randint(random.key(0), (8,), 0, 9, out_sharding=s), P("x")),
    (lambda s: verax.nn.one_hot(vnp.arange(8), 4, out_sharding=s), P("x", None)),
)


@pytest.mark.parametrize(("make", "expected"), MADE)
def test_new_arrays_are_split(
    make: Callable[[object], verax.Array], expected: P
) -> None:
    plain = np.asarray(make(None))
    with verax.set_mesh(MESH):
        for actual in (make(P("x")), verax.jit(lambda: make(P("x")))()):
            assert actual.sharding == NamedSharding(MESH, expected)
            assert np.allclose(actual, plain)


def test_an_out_sharding_needs_explicit_axes() -> None:
    auto = NamedSharding(verax.make_mesh((8,), ("x",), (AxisType.Auto,)), P("x"))
    with pytest.raises(ValueError, match="Explicit"):
        vnp.zeros(8, out_sharding=auto)
    with pytest.raises(ValueError, match="Explicit"):
        vnp.dot(VALUES, VALUES, out_sharding=auto)
    place = NamedSharding(MESH, P("x"))
    with pytest.raises(ValueError, match="not both"):
        vnp.zeros(8, device=place, out_sharding=place)


TAKEN: Sequence[tuple[Callable[..., verax.Array], tuple[P, ...]]] = (
    (lambda s, x, y: vnp.dot(x, y, out_sharding=s), (P(None, "x"), P("x"))),
    (lambda s, x, y: vnp.matmul(x, y, out_sharding=s), (P("x", "y"), P("y"))),
    (lambda s, x, y: vnp.einsum("ij,jk->ik", x, y, out_sharding=s), (P("x"), P("x"))),
    (lambda s, x, y: vnp.tensordot(x, y, 1, out_sharding=s), (P(None, "y"), P("y"))),
    (lambda s, x: x.at[np.array([0, 2])].get(out_sharding=s), (P("x"),)),
    (lambda s, x: x.at[0].set(1.0, out_sharding=s), (P("x"),)),
    (lambda s, x: vnp.reshape(x, (2, 32), out_sharding=s), (P(None, "y"),)),
    (lambda s, x: lax.reshape(x, (2, 32), out_sharding=s), (P(None, "y"),)),
    (lambda s, x: vnp.repeat(x, 2, 0, out_sharding=s), (P("x"),)),
)


@pytest.mark.parametrize(("f", "specs"), TAKEN)
def test_out_sharding_decides(f: Callable[..., Any], specs: tuple[P, ...]) -> None:
    args = [split(*spec) for spec in specs]
    plain = np.asarray(f(None, *[vnp.asarray(VALUES) for _ in specs]))
    with verax.set_mesh(MESH):
        for actual in (f(P("x"), *args), verax.jit(lambda *xs: f(P("x"), *xs))(*args)):
            assert actual.sharding == NamedSharding(MESH, P("x", None))
            assert np.allclose(actual, plain, atol=1e-5)


def loss(params: list[Any], x: Any, y: Any) -> Any:
    """The error of a network with one hidden layer."""
    first, bias, second = params
    hidden = vnp.tanh(x @ first + bias)
    return vnp.mean((hidden @ second - y) ** 2)


@pytest.mark.parametrize(
    ("specs", "data"),
    [
        ((P(), P(), P()), P("x")),
        ((P(), P(), P()), P(("x", "y"))),
        ((P(None, "y"), P("y"), P()), P("x")),
    ],
)
@pytest.mark.parametrize("compiled", [True, False])
def test_gradients_of_a_network_are_split_as_its_parameters(
    specs: tuple[P, ...], data: P, compiled: bool
) -> None:
    first, bias, second = VALUES, VALUES[0], VALUES[:, :4]
    plain = verax.grad(loss)([first, bias, second], VALUES, VALUES[:, :4])
    params = [
        split(*spec, values=value)
        for spec, value in zip(specs, (first, bias, second), strict=True)
    ]
    gradient = verax.jit(verax.grad(loss)) if compiled else verax.grad(loss)
    actual = gradient(params, split(*data), split(*data, values=VALUES[:, :4]))
    for got, expected, param in zip(actual, plain, params, strict=True):
        assert got.aval is param.aval
        assert got.sharding.is_equivalent_to(param.sharding, param.ndim)
        assert np.allclose(got, expected, atol=1e-6)


def test_forward_mode_and_second_derivatives() -> None:
    x, w = split("x"), split(None, "y")

    def f(w: Any) -> Any:
        return (vnp.sin(x @ w) ** 2).sum()

    def plain(w: Any) -> Any:
        return (vnp.sin(VALUES @ w) ** 2).sum()

    orders: list[Callable[[Callable[[Any], Any]], Callable[[Any], Any]]] = [
        lambda f: lambda w: verax.jvp(verax.grad(f), (w,), (w,))[1],
        lambda f: verax.grad(lambda w: (verax.grad(f)(w) * w).sum()),
    ]
    for second in orders:
        actual = verax.jit(second(f))(w)
        assert str(actual.aval) == "f32[8,8@y]"
        assert np.allclose(actual, second(plain)(VALUES), atol=1e-4)


def test_vmap_keeps_the_axes_of_the_mapped_dimension() -> None:
    x, w = split("x"), split(None, "y")
    seen: list[str] = []

    def f(row: Any, w: Any) -> Any:
        seen.append(str(row.aval))
        return vnp.sin(row @ w)

    actual = verax.jit(verax.vmap(f, (0, None)))(x, w)
    assert (seen, str(actual.aval)) == (["f32[8]"], "f32[8@x,8@y]")
    assert np.allclose(actual, np.sin(VALUES @ VALUES), atol=1e-5)
    each = verax.vmap(verax.grad(lambda row, w: f(row, w).sum()), (0, None))
    plain = each(VALUES, VALUES)
    assert str(each(x, w).aval) == "f32[8@x,8]"
    assert np.allclose(each(x, w), plain, atol=1e-5)
    with pytest.raises(ValueError, match="should be sharded the same"):
        verax.vmap(vnp.add)(split("x"), split("y"))


def test_vmap_keeps_them_where_gradients_are_whole_again() -> None:
    def f(row: Any) -> Any:
        return vnp.cos(reshard(row, P("y"))).sum()

    with verax.set_mesh(MESH):
        actual = verax.jit(verax.vmap(verax.grad(f)))(split("x"))
    assert str(actual.aval) == "f32[8@x,8]"
    assert np.allclose(actual, -np.sin(VALUES), atol=1e-6)


def test_loops_and_choices() -> None:
    x = split("x", "y")

    def f(x: Any) -> Any:
        y, ys = lax.scan(lambda c, _: (vnp.sin(c), c.sum(1)), x, None, 3)
        z = lax.fori_loop(0, 2, lambda _, c: c * 2, y)
        found = lax.cond(z.sum() > -1, lambda z: z + 1, lambda z: -z, z)
        return verax.checkpoint(vnp.cos)(found), ys

    found, rows = verax.jit(f)(x)
    plain, plain_rows = verax.jit(f)(VALUES)
    assert (str(found.aval), str(rows.aval)) == ("f32[8@x,8@y]", "f32[3,8@x]")
    assert np.allclose(found, plain, atol=1e-5)
    assert np.allclose(rows, plain_rows, atol=1e-5)

    def total(x: Any) -> Any:
        y, _ = lax.scan(lambda c, _: (vnp.sin(c @ VALUES), None), x, None, 3)
        return y.sum()

    ct = verax.jit(verax.grad(total))(split("x"))
    assert str(ct.aval) == "f32[8@x,8]"
    assert np.allclose(ct, verax.grad(total)(VALUES), atol=1e-5)


def test_a_constraint_is_an_assertion_along_explicit_axes() -> None:
    x = split("x")
    with verax.set_mesh(MESH):
        assert lax.with_sharding_constraint(x, P("x")).aval is x.aval
        for call in (
            lax.with_sharding_constraint,
            verax.jit(
                lambda x, s: lax.with_sharding_constraint(x, s), static_argnums=1
            ),
        ):
            with pytest.raises(AssertionError, match="reshard"):
                call(x, P("y"))


def test_a_loop_goes_over_what_is_whole() -> None:
    with pytest.raises(ValueError, match="should be replicated"):
        verax.jit(lambda x: lax.scan(lambda c, row: (c, row), 0, x))(split("x"))
    actual = lax.map(lambda row: row * 2, split(None, "y"))
    assert str(actual.aval) == "f32[8,8@y]"


def test_a_struct_says_it() -> None:
    struct = verax.ShapeDtypeStruct((8, 8), "float32", sharding=split("x").sharding)
    actual = verax.eval_shape(lambda x: x.T * 2, struct)
    assert actual.sharding.spec == P(None, "x")
    text = verax.jit(vnp.sin).lower(struct).as_text()
    assert text.count("sdy.sharding_constraint") == 1
    again = verax.eval_shape(verax.jit(lambda x: x.T * 2), actual)
    assert again.sharding.spec == P("x", None)


def test_in_shardings_stand_in_types() -> None:
    place, seen = NamedSharding(MESH, P("x")), []

    def f(x: Any) -> Any:
        seen.append(str(x.aval))
        return x.sum(1)

    actual = verax.jit(f, in_shardings=place)(VALUES)
    assert (seen, str(actual.aval)) == (["f32[8@x,8]"], "f32[8@x]")
    assert np.allclose(actual, VALUES.sum(1))


def test_shard_map_takes_its_specs_from_types() -> None:
    x = split("x", "y")

    def f(x: Any) -> Any:
        assert x.shape == (4, 2)
        assert str(x.aval) == "f32[4,2]{V:(x,y)}"
        return x - lax.pmean(x, ("x", "y"))

    with verax.set_mesh(MESH):
        actual = verax.shard_map(f, out_specs=P("x", "y"))(x)
        plain = verax.shard_map(f, in_specs=P("x", "y"), out_specs=P("x", "y"))(VALUES)
        assert str(actual.aval) == "f32[8@x,8@y]"
        assert np.allclose(actual, plain)
        parts = verax.shard_map(f, out_specs=P("x", "y"))
        ct = verax.jit(verax.grad(lambda x: (parts(x) ** 2).sum()))(x)
        assert ct.aval is x.aval
        mapped = verax.smap(lambda x: x[::-1], out_axes=0, axis_name="x")
        assert str(mapped(split("x")).aval) == "f32[8@x,8]"
        assert np.array_equal(mapped(split("x"))[:4], split("x")[3::-1])
    auto = verax.make_mesh((8,), ("x",), (AxisType.Auto,))
    with pytest.raises(TypeError, match="in_specs was not specified"):
        verax.shard_map(f, mesh=auto, out_specs=P("x"))(VALUES)


def test_one_of_two_axes_is_explicit() -> None:
    mesh = MESH.update(axis_types=(AxisType.Explicit, AxisType.Auto))
    x = verax.device_put(VALUES, NamedSharding(mesh, P("x", "y")))
    compiled = verax.jit(lambda x: vnp.sin(x) @ VALUES)
    actual = compiled(x)
    assert str(actual.aval) == "f32[8@x,8]"
    assert np.allclose(actual, np.sin(VALUES) @ VALUES, atol=1e-5)
    assert '[{"x", ?}, {?}]' in compiled.lower(x).as_text()


def test_bits_are_folded_where_they_are_whole() -> None:
    x = split("x", values=VALUES > 0)
    for call in (vnp.any, vnp.all):
        assert bool(verax.jit(call)(x)) == bool(call(VALUES > 0))
    with pytest.raises(ShardingTypeError, match="unsharded along dimension 0"):
        lax.reduce_xor(x, (0,))


def test_windows_and_pads_that_the_compiler_cannot_split() -> None:
    x = split("x")
    assert str(lax.pad(x, 0.0, [(2, 0, 0), (1, 1, 1)]).aval) == "f32[10@x,17]"
    for config in ([(0, 0, 1), (0, 0, 0)], [(-2, 0, 0), (0, 0, 0)]):
        with pytest.raises(ShardingTypeError, match="unsharded along dimension 0"):
            lax.pad(x, 0.0, config)
    windows = (1, 2), (1, 2), "VALID"
    actual = lax.reduce_window(x, 1.0, lax.mul, *windows)
    assert str(actual.aval) == "f32[8@x,4]"
    assert np.allclose(actual, VALUES[:, ::2] * VALUES[:, 1::2])
    with pytest.raises(ShardingTypeError, match="unsharded along dimension 0"):
        lax.reduce_window(x, 1.0, lax.mul, (2, 1), (2, 1), "VALID")


@verax.custom_vjp
def wave(x: Any) -> Any:
    """A sine whose derivative is given by hand."""
    return vnp.sin(x)


wave.defvjp(lambda x: (vnp.sin(x), x), lambda x, ct: (ct * vnp.cos(x),))
ROWS = np.arange(8, dtype=np.int32)
BLOCKS = np.linspace(0, 1, 128, dtype=np.float32).reshape(8, 4, 4)
IMAGES = np.linspace(-1, 1, 384, dtype=np.float32).reshape(8, 3, 4, 4)


def folded(row: Any) -> Any:
    """A loop whose carry is a number to begin with."""
    return lax.scan(lambda c, x: (vnp.sin(c) + x, None), 0.0, row)[0]


def counted(row: Any) -> Any:
    """A loop that ends for each row at another time."""
    return lax.while_loop(lambda c: c.sum() < 3, lambda c: c + 1.0, row)


def solved(blocks: Any) -> Any:
    return vnp.linalg.inv(blocks + 5 * np.eye(4, dtype=np.float32)).sum()


vmap: Callable[..., Any] = verax.vmap
grad: Callable[..., Any] = verax.grad
jacrev: Callable[..., Any] = verax.jacrev
hessian: Callable[..., Any] = verax.hessian
PROGRAMS: Sequence[tuple[Callable[..., Any], tuple[Any, ...], str]] = (
    (vmap(folded), (("x", VALUES),), "f32[8@x]"),
    (vmap(grad(folded)), (("x", VALUES),), "f32[8@x,8]"),
    (vmap(counted), (("x", VALUES),), "f32[8@x,8]"),
    (
        vmap(lambda r: lax.cond(r.sum() > 0, vnp.sin, vnp.cos, r)),
        (("x", VALUES),),
        "f32[8@x,8]",
    ),
    (
        vmap(lambda i, r: lax.switch(i, [vnp.sin, vnp.cos, vnp.abs], r)),
        (("x", ROWS % 3), ("x", VALUES)),
        "f32[8@x,8]",
    ),
    (grad(lambda x: wave(x).sum()), (("x", VALUES),), "f32[8@x,8]"),
    (vmap(grad(lambda x: wave(x).sum())), (("x", VALUES),), "f32[8@x,8]"),
    (jacrev(lambda v: VALUES @ v), (("x", VALUES[0]),), "f32[8,8@x]"),
    (hessian(lambda v: (v**3).sum()), (("x", VALUES[0]),), "f32[8@x,8]"),
    (grad(solved), (("x", BLOCKS),), "f32[8@x,4,4]"),
    (
        grad(lambda x: (vnp.sort(x, 1) * VALUES).sum()),
        (("x", VALUES),),
        "f32[8@x,8]",
    ),
    (
        grad(lambda x: x[:, np.array([0, 0, 2])].sum()),
        (("x", VALUES),),
        "f32[8@x,8]",
    ),
    (
        grad(lambda x: (vnp.cumsum(x, 1) ** 2).sum()),
        (("x", VALUES),),
        "f32[8@x,8]",
    ),
    (
        grad(lambda k, x: (lax.conv(x, k, (1, 1), "SAME") ** 2).sum(), argnums=0),
        (((), IMAGES[:4, :, :3, :3]), ("x", IMAGES)),
        "f32[4,3,3,3]",
    ),
    (
        grad(lambda q: verax.nn.dot_product_attention(q, q, q).sum()),
        (("x", BLOCKS[:, :, None]),),
        "f32[8@x,4,1,4]",
    ),
    (
        vmap(vmap(vnp.multiply)),
        ((("x", "y"), VALUES), (("x", "y"), VALUES)),
        "f32[8@x,8@y]",
    ),
)


@pytest.mark.parametrize(("f", "operands", "expected"), PROGRAMS)
def test_programs_are_typed_and_keep_their_values(
    f: Callable[..., Any], operands: tuple[Any, ...], expected: str
) -> None:
    args = [
        split(*axes, values=value)
        if isinstance(axes, tuple)
        else split(axes, values=value)
        for axes, value in operands
    ]
    plain = verax.jit(f)(*[value for _, value in operands])
    for actual in (verax.jit(f)(*args), f(*args)):
        assert str(actual.aval) == expected
        assert np.allclose(actual, plain, atol=1e-4)


def test_spmd_axis_name_may_say_what_types_say() -> None:
    x = split("x", "y")
    mapped = verax.vmap(vnp.sin, spmd_axis_name="x")
    assert str(verax.jit(mapped)(x).aval) == "f32[8@x,8@y]"
    other = verax.vmap(vnp.sin, spmd_axis_name="y")
    with pytest.raises(ValueError, match="Only one of spmd_axis_name"):
        other(x)

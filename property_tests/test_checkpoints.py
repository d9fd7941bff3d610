"""Saving and restoring is the identity, and damage is one error.

Trees of every container that has a form, with leaves of every dtype and shape, on all
devices that there are: `tests/placement` runs this file on eight. Then bits of the
files change, and what is read is what was written, or CheckpointError.
"""

import json
import zlib
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from attrs import frozen
from hypothesis import HealthCheck, given, settings, strategies as st

import verax
from property_tests.test_damaged_files import OTHERS, changed, places
from verax.experimental import checkpoint
from verax.experimental.checkpoint import CheckpointError, Checkpoints
from verax.export import register_namedtuple_serialization
from verax.sharding import AxisType, NamedSharding, PartitionSpec as P
from verax.tree_util import GetAttrKey, register_pytree_with_keys

COUNT = verax.device_count()
SIZES = (COUNT // 2, 2) if COUNT > 1 else (1, 1)
MESH = verax.make_mesh(SIZES, ("x", "y"), axis_types=(AxisType.Auto, AxisType.Auto))
NAMED = (
    "bool int8 uint8 int16 uint16 int32 uint32 float16 bfloat16 float32 complex64 "
    "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz "
    "float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn int4 uint4 int2 uint2"
)
DTYPES = NAMED.split()
SHAPES = [(), (0,), (1,), (8,), (3,), (4, 2), (8, 8), (0, 8), (8, 0), (1, 1, 1)]
SHARED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


class Move(NamedTuple):
    """A class of containers that a file can name."""

    left: Any
    right: Any


@frozen
class Layer:
    """One that it cannot, and whose leaves have one key."""

    weights: Any
    bias: Any


register_namedtuple_serialization(Move, serialized_name="laws.Move")
register_pytree_with_keys(
    Layer,
    lambda x: ([(GetAttrKey("value"), x.weights), (GetAttrKey("value"), x.bias)], None),
    lambda _, children: Layer(*children),
)


def bits_of(seed: int, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Values of a dtype with any bits, among them NaNs of every kind."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    draw = np.random.default_rng(seed)
    if name.startswith(("int", "uint", "bool")):
        return draw.integers(-8, 8, shape).astype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    most = 16 if name.startswith("float4") else 256
    return draw.integers(0, most, size, np.uint8).view(dtype).reshape(shape)


@st.composite
def shardings(draw: st.DrawFn, shape: tuple[int, ...]) -> NamedSharding:
    """A sharding over the mesh that divides the shape."""
    left, spec = ["x", "y"], list[Any]()
    for size in shape:
        fits = [name for name in left if size % MESH.shape[name] == 0]
        names: list[Any] = [None, *fits]
        if len(left) == 2 and size % COUNT == 0:
            names.append(("y", "x"))
        chosen = draw(st.sampled_from(names))
        spec.append(chosen)
        left = [name for name in left if name not in (chosen or ())]
    return NamedSharding(MESH, P(*spec))


@st.composite
def arrays(draw: st.DrawFn) -> Any:
    """An array somewhere on the devices, or a NumPy array, or a scalar of NumPy."""
    shape = draw(st.sampled_from(SHAPES))
    host = bits_of(draw(st.integers(0, 99)), shape, draw(st.sampled_from(DTYPES)))
    kind = draw(st.sampled_from(["array", "placed", "placed", "numpy", "scalar"]))
    if kind == "placed":
        return verax.device_put(host, draw(shardings(shape)))
    if kind == "scalar":
        return host.ravel()[0] if host.size else host.dtype.type(0)
    return verax.numpy.asarray(host) if kind == "array" else host


@st.composite
def keys(draw: st.DrawFn) -> Any:
    """Typed keys, somewhere on the devices."""
    shape = draw(st.sampled_from(SHAPES))
    impl = draw(st.sampled_from(["threefry2x32", "rbg"]))
    made = verax.random.key(draw(st.integers(0, 99)), impl=impl)
    made = verax.random.split(made, shape)
    return verax.device_put(made, draw(shardings(shape))) if shape else made


NUMBERS = st.one_of(
    st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text()
)
NAMES = st.one_of(st.text(), st.sampled_from(["a", "a']['b", "['a']", ".first", "[0]"]))


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Containers of every class."""
    numbered = st.one_of(st.integers(), st.floats(allow_nan=False), st.booleans())
    return st.one_of(
        st.dictionaries(NAMES, inner, max_size=3),
        st.dictionaries(numbered, inner, max_size=3),
        st.dictionaries(st.tuples(st.integers()), inner, max_size=1),
        st.lists(st.tuples(NAMES, inner), max_size=3).map(OrderedDict),
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.builds(Move, inner, inner),
        st.builds(Layer, inner, inner),
    )


LEAVES = st.one_of(arrays(), arrays(), keys(), NUMBERS, st.none())
TREES = st.recursive(LEAVES, containers, max_leaves=6)
FOLDERS = count()


def has_form(tree: Any) -> bool:
    """Whether a file can hold the structure."""
    if isinstance(tree, dict):
        plain = not any(isinstance(key, tuple) for key in tree)
        return plain and all(map(has_form, tree.values()))
    if isinstance(tree, list | tuple):
        return all(map(has_form, tree))
    return not isinstance(tree, Layer)


def same_leaf(result: Any, leaf: Any, placed: bool) -> None:
    """Raise AssertionError unless a leaf returned as it was."""
    assert type(result) is type(leaf)
    if not hasattr(leaf, "dtype"):
        assert repr(result) == repr(leaf)
        return
    assert (result.dtype, result.shape) == (leaf.dtype, leaf.shape)
    if placed and isinstance(leaf, verax.Array):
        assert result.committed == leaf.committed
        assert result.sharding == leaf.sharding or not leaf.committed
    if verax.dtypes.issubdtype(leaf.dtype, verax.dtypes.prng_key):
        result, leaf = verax.random.key_data(result), verax.random.key_data(leaf)
    result, leaf = np.asarray(result), np.asarray(leaf)
    assert result.tobytes() == leaf.tobytes()


def same_tree(result: Any, tree: Any, placed: bool) -> None:
    """Raise AssertionError unless a tree returned as it was."""
    assert verax.tree.structure(result) == verax.tree.structure(tree)
    pairs = zip(verax.tree.leaves(result), verax.tree.leaves(tree), strict=True)
    for one, other in pairs:
        same_leaf(one, other, placed)


@given(tree=TREES)
@settings(suppress_health_check=SHARED, deadline=None)
def test_what_is_saved_is_what_is_restored(tree: Any, tmp_path: Path) -> None:
    folder = tmp_path / str(next(FOLDERS))
    checkpoint.save(folder, tree)
    same_tree(checkpoint.restore(folder, tree), tree, placed=True)
    if has_form(tree):
        same_tree(checkpoint.restore(folder), tree, placed=False)
    elif verax.tree.leaves(tree):
        with pytest.raises(CheckpointError, match="pass `like`"):
            checkpoint.restore(folder)


@given(data=st.data(), name=st.sampled_from(DTYPES), shape=st.sampled_from(SHAPES))
@settings(suppress_health_check=SHARED, deadline=None)
def test_arrays_come_to_other_places(
    data: st.DataObject, name: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    x = verax.device_put(bits_of(0, shape, name), data.draw(shardings(shape)))
    folder = tmp_path / str(next(FOLDERS))
    checkpoint.save(folder, x)
    place = data.draw(shardings(shape))
    like = verax.ShapeDtypeStruct(shape, x.dtype, sharding=place)
    actual = checkpoint.restore(folder, like)
    assert actual.sharding == place
    same_leaf(actual, x, placed=False)
    same_leaf(checkpoint.restore(folder, sharding=place), actual, placed=True)


@frozen
class Written:
    """A run with one step and what was saved there."""

    run: Checkpoints
    tree: Any


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """What the files hold that are changed."""
    scalars = [bits_of(1, (), name) for name in DTYPES]
    tree = {
        "arrays": [verax.numpy.asarray(x) for x in scalars],
        "w": verax.device_put(
            bits_of(2, (8, 8), "float32"), NamedSharding(MESH, P("x"))
        ),
        "key": verax.random.split(verax.random.key(0), 3),
        "host": np.zeros(3, [("a", "i4"), ("b", "f8")]),
        "numbers": (1, 0.5, 1j, True, "text", None),
    }
    run = Checkpoints(tmp_path_factory.mktemp("run"))
    run.save(1, tree, metadata={"loss": 0.5})
    return Written(run, tree)


def changed_file(data: st.DataObject, file: bytes) -> bytes:
    """A file with a few other bits, or cut."""
    made, places = bytearray(file), st.integers(0, 8 * len(file) - 1)
    for place in data.draw(st.lists(places, min_size=1, max_size=3)):
        made[place // 8] ^= 1 << place % 8
    whole = data.draw(st.integers(0, 9)) > 0
    return bytes(made if whole else made[: data.draw(st.integers(0, len(made)))])


def only_damage(read: Callable[[], Any], expected: Any) -> None:
    """Raise AssertionError unless reading gives what was written or CheckpointError."""
    try:
        actual = read()
    except CheckpointError:
        return
    same_tree(actual, expected, placed=False)


@given(data=st.data(), place=st.sampled_from(["manifest.json", "values-1/*.npz"]))
@settings(
    suppress_health_check=SHARED,
    deadline=None,
    max_examples=10 * settings().max_examples,
)
def test_changed_bits_are_one_error(
    data: st.DataObject, place: str, written: Written
) -> None:
    folder = written.run.folder(1)
    (file,) = folder.glob(place)
    like = data.draw(st.sampled_from([written.tree, None]))
    good = file.read_bytes()
    try:
        file.write_bytes(changed_file(data, good))
        only_damage(lambda: written.run.restore(like=like), (1, written.tree))
        only_damage(lambda: checkpoint.read_metadata(folder), {"loss": 0.5})
        assert written.run.steps() == [1]
    finally:
        file.write_bytes(good)


@given(data=st.data())
@settings(suppress_health_check=SHARED, deadline=None)
def test_changed_manifests_are_one_error(data: st.DataObject, written: Written) -> None:
    """As an editor would leave them, with a checksum that is right."""
    file = written.run.folder(1) / "manifest.json"
    good = file.read_bytes()
    document = json.loads(good)
    contents = document["contents"]
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(places(contents)))
        how = data.draw(st.sampled_from(["replace", "remove", "more"]))
        contents = changed(contents, path, how, data.draw(st.sampled_from(OTHERS)))
    text = json.dumps(contents, separators=(",", ":"))
    document |= {"contents": contents, "checksum": zlib.crc32(text.encode())}
    like = data.draw(st.sampled_from([written.tree, None]))
    try:
        file.write_text(json.dumps(document))
        with suppress(CheckpointError):
            written.run.restore(like=like)
    finally:
        file.write_bytes(good)

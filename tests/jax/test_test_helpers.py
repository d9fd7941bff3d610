"""What libraries' tests ask of jax's internals."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import tree_util
from verax.experimental import multihost_utils
from verax.jax.internals import xla_bridge
from verax.jax.internals.functions.public_test_util import check_close
from verax.jax.internals.functions.tree_util import prefix_errors
from verax.jax.internals.types import dtypes

SOURCE = Path(__file__).parents[2] / "src"


def test_close_trees_pass() -> None:
    check_close({"a": 1.0, "b": (3,)}, {"a": np.float32(1.0 + 1e-7), "b": (3,)})
    check_close(vnp.ones(3, vnp.bfloat16), np.full(3, 1.02, np.float32), atol=0.01)
    check_close(np.ones(1000), np.full(1000, 1.0 + 5e-4), rtol={"float32": 1e-6})
    check_close(np.array([np.nan, np.inf]), np.array([np.nan, np.inf]))


@pytest.mark.parametrize(
    ("x", "y", "limits"),
    [
        (np.float32(1.0), np.float32(1.001), {}),
        (np.ones(2), np.ones(3), {}),
        (np.int32(2), np.int32(3), {}),
        (np.float32(1.0), np.float32(1.1), {"rtol": {"float32": 1e-2}}),
        (np.float32(1.0), np.float32(1.1), {"rtol": {"float64": 1.0}}),
        (np.ones(1, vnp.bfloat16), np.full(1, 1.1), {}),
    ],
)
def test_distant_trees_fail(x: object, y: object, limits: dict[str, object]) -> None:
    with pytest.raises(AssertionError):
        check_close([x], [y], **limits)  # type: ignore[arg-type]  # of several kinds


def test_complex_dtypes_have_the_width_of_the_real_ones() -> None:
    wide = [name for name in NAMES if dtypes.to_complex_dtype(name) == "complex128"]
    assert wide == ["float64", "int64", "complex128"]


NAMES = [
    "bool",
    "int32",
    "uint8",
    "float16",
    "float32",
    "float64",
    "int64",
    "complex64",
    "complex128",
]


@pytest.mark.slow
def test_backends_are_there_once_they_have_started() -> None:
    code = (
        "from verax.jax.internals.xla_bridge import _backends as b\n"
        "import verax\n"
        "assert not b and 'cpu' not in b and len(b) == 0\n"
        "verax.devices()\n"
        "assert list(b) == ['cpu'] and b['cpu'].platform == 'cpu'\n"
    )
    env = os.environ | {"PYTHONPATH": str(SOURCE), "VERAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, "-c", code], env=env, check=True, timeout=60)


def test_backends_can_be_asked_for_by_name() -> None:
    verax.devices()
    assert xla_bridge._backends.get("no such platform") is None


def test_structs_are_not_taken_for_containers() -> None:
    struct = verax.ShapeDtypeStruct((2,), np.float32)
    assert not hasattr(struct, "__attrs_attrs__")  # by which dm-tree knows containers
    assert tree_util.tree_leaves(struct) == [struct]
    assert struct.update(shape=()).update(dtype=np.int8) == verax.ShapeDtypeStruct(
        (), np.int8
    )
    with pytest.raises(TypeError):
        struct.update(size=3)


def test_precisions_print_as_their_names() -> None:
    assert [str(p) for p in verax.lax.Precision] == ["DEFAULT", "HIGH", "HIGHEST"]


def test_equations_have_what_interpreters_of_libraries_ask() -> None:
    closed = verax.make_jaxpr(verax.grad(vnp.sin))(1.0)
    (eqn,) = [e for e in closed.eqns if e.primitive.name == "cos"]
    assert str(eqn.source_info.name_stack) == eqn.source_info.origin != ""
    assert not eqn.primitive.call_primitive
    assert not eqn.primitive.map_primitive
    (call,) = verax.make_jaxpr(verax.jit(vnp.sin))(1.0).eqns
    fields = call.params.copy()
    assert fields.pop("name") == "sin"
    assert call.params["name"] == "sin"


def test_values_of_the_only_process() -> None:
    tree = {"a": vnp.ones((2, 3)), "b": 1.0}
    stacked = multihost_utils.process_allgather(tree)
    joined = multihost_utils.process_allgather(tree, tiled=True)
    assert (stacked["a"].shape, stacked["b"].shape) == ((1, 2, 3), (1,))
    assert (joined["a"].shape, joined["b"].shape) == ((2, 3), ())
    same = multihost_utils.broadcast_one_to_all(tree)
    assert type(same["a"]) is np.ndarray
    assert same["a"].shape == (2, 3)
    multihost_utils.sync_global_devices("step")
    multihost_utils.assert_equal(tree, "differs")
    assert not multihost_utils.reached_preemption_sync_point(3)
    mesh = verax.make_mesh((1,), ("x",))
    specs = {"a": verax.P(), "b": verax.P("x")}
    local = {"a": (np.ones(2), np.ones(3)), "b": np.arange(4.0)}
    placed = multihost_utils.host_local_array_to_global_array(local, mesh, specs)
    assert placed["b"].sharding.spec == verax.P("x")
    back = multihost_utils.global_array_to_host_local_array(placed, mesh, specs)
    assert back["b"].tolist() == [0, 1, 2, 3]


def test_errors_of_prefixes_name_the_place() -> None:
    errors = prefix_errors({"a": [0], "b": None}, {"a": (1,), "b": None})
    (error,) = [make("in_axes") for make in errors]
    assert isinstance(error, ValueError)
    assert "key path\n    in_axes['a']\nexpected list, got tuple" in str(error)
    errors = prefix_errors([{"a": 1}, [2]], [{"a": 1, "b": 2}, [3, 4]])
    keys, lengths = [str(make("in_axes")) for make in errors]
    assert "different numbers of pytree children at key path\n    in_axes[0]\n" in keys
    assert keys.endswith("the symmetric difference on key sets is\n    ['b']")
    assert "different lengths of list at key path\n    in_axes[1]\n" in lengths
    assert prefix_errors((0, [1]), ({"x": 2}, [3])) == []

"""Run by test_private.py under `python -m verax.jax`: what libraries take from below.

Each block uses names as a library was seen to use them.
"""

import importlib
import pickle
import pickletools
import sys
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from verax.jax.views import RECORD

NAMES = """
_src.numpy.util.promote_dtypes_complex _src.numpy.util.check_arraylike
_src.numpy.util.promote_dtypes _src.numpy.ufuncs.ufunc
_src.numpy.index_tricks.CClass _src.numpy.lax_numpy.split
_src.numpy.vectorize._parse_gufunc_signature
_src.numpy.array_methods._IndexUpdateHelper _src.lax.control_flow.scan
_src.lax.lax.top_k _src.lax.linalg.eigh_p _src.config.enable_x64
_src.core.concrete_or_error _src.interpreters.batching.is_vmappable
_src.interpreters.partial_eval.TracingEqn _src.dispatch.apply_primitive
_src.lib.xla_client.XlaRuntimeError _src.typing.DTypeLike
_src.sharding_impls.canonicalize_sharding _src.pjit.auto_axes
_src.scipy.special.gammaln _src.nn.functions.glu _src.stages.Lowered
_src.array.ArrayImpl _src.effects.Effect _src.ad_checkpoint.remat_p
_src.lax.lax._const _src.image.scale.resize _src.random.prng.threefry_prng_impl
_src.lib.mlir.dialects.hlo.AddOp _src.state.AbstractRef
_src.source_info_util.current interpreters.partial_eval.DynamicJaxprTracer
interpreters.partial_eval.JaxprTracer interpreters.batching.register_vmappable
interpreters.ad.get_primitive_transpose api_util.argnums_partial
ffi.ffi_lowering numpy.__array_namespace_info__ core.Value
distributed.is_initialized experimental.compute_on.compute_on
experimental.custom_partitioning.custom_partitioning experimental.key_reuse
experimental.random.stateful_rng experimental.layout.with_layout_constraint
extend.mlir.ir.Module extend.mlir.dialects.func.FuncOp
"""


def check_names() -> None:
    for name in NAMES.split():
        module, _, attribute = f"jax.{name}".rpartition(".")
        assert getattr(importlib.import_module(module), attribute) is not None


def check_utilities() -> None:
    from jax._src import config, util
    from jax._src.numpy import util as arrays, vectorize

    assert util.split_list([1, 2, 3, 4], [1, 2]) == [[1], [2, 3], [4]]
    assert util.partition_list([True, False], "ab") == (["b"], ["a"])
    assert util.merge_lists([True, False], ["b"], ["a"]) == ["a", "b"]
    assert util.unzip2([(1, 2), (3, 4)]) == ((1, 3), (2, 4))
    assert util.curry(lambda a, b: (a, b))(1)(2) == (1, 2)
    assert util.canonicalize_axis(-1, 3) == 2
    assert arrays.promote_dtypes_complex(1, 2.0)[0].dtype == "complex64"
    assert vectorize._parse_gufunc_signature("(n,m),(m)->(n)") == (
        [("n", "m"), ("m",)],
        [("n",)],
    )
    assert config.enable_x64.value is False
    with config.enable_x64(True):
        assert config.enable_x64.value is True


def check_arrays_on_devices() -> None:
    """jaxlib asks modules below jax._src, too, which it must not take for jax's."""
    from jax._src import literals, named_sharding, sharding_impls

    assert literals.TypedInt
    assert named_sharding.NamedSharding is jax.sharding.NamedSharding
    mesh = jax.make_mesh((4, 2), ("x", "y"))
    place = jax.sharding.NamedSharding(mesh, jax.P("x", "y"))
    x = jax.device_put(jnp.arange(32.0).reshape(8, 4), place)
    assert [s.data.shape for s in x.addressable_shards] == [(2, 2)] * 8
    assert (jax.jit(jax.grad(lambda x: (x * x).sum()))(x) == 2 * x).all()
    assert float(x.addressable_shards[3].data.sum()) == 50
    one = sharding_impls.make_single_device_sharding(jax.devices()[1])
    assert type(one) is jax.sharding.SingleDeviceSharding
    assert jax.device_put(1.0, one).devices() == {jax.devices()[1]}
    assert (jax.device_put(x, one) + 1 == np.asarray(x) + 1).all()


def check_trees() -> None:
    from jax._src.tree_util import _registry

    entry = _registry[dict]
    assert entry.to_iter({"a": 1}) == ((1,), ("a",))
    assert entry.from_iter(("a",), [2]) == {"a": 2}


def check_tracers() -> None:
    from jax.interpreters import partial_eval as pe

    seen: list[bool] = []

    def look(x: object) -> object:
        seen.append(isinstance(x, pe.DynamicJaxprTracer))
        seen.append(isinstance(jnp.ones(2), pe.JaxprTracer))
        return x

    jax.jit(look)(1.0)
    jax.vmap(look)(jnp.ones(1))
    assert seen == [True, True, True, False]


def check_identity() -> None:
    x = jnp.ones(2)
    assert type(x).__module__.split(".")[0] == "jaxlib"
    jax.jit(lambda y: y if type(y).__module__ == "jax.core" else 1 / 0)(1.0)
    assert x.__array_namespace__() is jnp
    info = jnp.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] == "float32"
    jax.config.update("jax_traceback_filtering", "quiet_remove_frames")
    with pytest.raises(TypeError, match=r"Use jax\.numpy\.sin"):
        jax.jit(lambda x: np.sin(x))(1.0)
    counts = dict(RECORD.counts)
    with pytest.raises(TypeError, match=r"jax\.numpy"):
        jax.jit(lambda x: np.cos(x))(1.0)
    assert counts == RECORD.counts
    assert (pickle.loads(pickle.dumps(x)) == x).all()
    assert b"jax.numpy" in pickletools.optimize(pickle.dumps(jnp))
    assert pickle.loads(pickle.dumps(jnp)) is jnp


def check_options() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        jax.config.update("jax_dump_ir_to", "somewhere")
        jax.config.update("jax_threefry_partitionable", False)
    assert ["is always" in str(w.message) for w in seen] == [True, True]
    level = jax.CompilerEffortLevel.O1
    f = jax.jit(lambda x: x + 1, compiler_options={"optimization_level": level})
    assert float(f(1.0)) == 2.0


def check_primitives() -> None:
    from jax._src import dispatch
    from jax.extend.core import Primitive
    from jax.interpreters import mlir

    late = Primitive("late")
    late.def_impl(np.add)
    assert late.bind(1.0, 2.0) == 3.0

    itself = Primitive("itself")
    itself.def_abstract_eval(lambda x: x)
    itself.def_impl(lambda x: jax.jit(itself.bind)(x))
    mlir.register_lowering(itself, mlir.lower_fun(lambda x: x * 2, False))
    assert float(itself.bind(jnp.float32(1))) == float(jax.jit(itself.bind)(1.0)) == 2

    foreign = Primitive("foreign")
    foreign.def_abstract_eval(lambda x: x)
    foreign.def_impl(lambda x: dispatch.apply_primitive(foreign, x))
    mlir.register_lowering(
        foreign, lambda ctx, x: jax.ffi.ffi_lowering("no_target")(ctx, x)
    )
    with pytest.raises(jax.errors.JaxRuntimeError, match="no_target"):
        jax.jit(foreign.bind)(jnp.ones(3))

    endless = Primitive("endless")
    endless.def_abstract_eval(lambda x: x)
    mlir.register_lowering(endless, mlir.lower_fun(endless.bind, False))
    with pytest.raises(NotImplementedError, match="which does not end"):
        jax.jit(endless.bind)(1.0)

    doubled = Primitive("doubled")
    doubled.def_abstract_eval(lambda x: x)
    doubled.def_impl(lambda x: np.multiply(np.asarray(x), np.float32(2)))
    assert float(jax.jit(doubled.bind)(jnp.float32(2))) == 4


jax.config.update("jax_num_cpu_devices", 8)
for name, check in list(globals().items()):
    if name.startswith("check_"):
        check()
assert not [m for m in sys.modules.values() if "/jax/_src/" in str(m)]
print("looked below")

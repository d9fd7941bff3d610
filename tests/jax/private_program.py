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
_src.config.int_flag _src.config.bool_env _src.config.ExplicitX64Mode _src.lib.version
_src.dtypes.is_weakly_typed _src.dtypes.promote_types _src.dtypes.to_inexact_dtype
_src.dtypes.int4 _src.dtypes.default_float_dtype _src.core.new_ref _src.indexing.Slice
_src.core.ShardingTypeError _src.core.ConcretizationTypeError _src.shard_map.shard_map
_src.debugging.debug_print _src.random.prng.PRNGKeyArray _src.random.rbg.rbg_prng_impl
_src.lax.lax._convert_element_type _src.lax.utils.int_dtype_for_dim
_src.api_util.resolve_kwargs _src.ad_checkpoint.nothing_saveable
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

    one = literals.TypedInt(1, np.dtype(np.int32))
    assert pickle.loads(pickle.dumps(one)).dtype == one.dtype
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


def check_types_and_numbers() -> None:
    from jax._src import dtypes
    from jax._src.api_util import resolve_kwargs
    from jax._src.lax.lax import _convert_element_type
    from jax._src.lax.utils import int_dtype_for_dim, int_dtype_for_shape
    from jax._src.random.prng import PRNGKeyArray

    assert dtypes.is_weakly_typed(1.0)
    assert not dtypes.is_weakly_typed(jnp.ones(2))
    assert dtypes.dtype(1.0) == dtypes.default_float_dtype() == "float32"
    assert dtypes.default_types["u"]() == "uint32"
    assert dtypes.to_inexact_dtype("int8") == "float32"
    assert dtypes.to_inexact_dtype("bfloat16") == "bfloat16"
    assert dtypes.to_numeric_dtype("bool") == "int32"
    assert dtypes.safe_to_cast("int8", "float32")
    assert not dtypes.safe_to_cast("float32", "int8")
    assert dtypes.check_and_canonicalize_user_dtype("float64") == "float32"
    assert _convert_element_type(1, "float32", weak_type=True).weak_type
    assert not _convert_element_type(1.0).weak_type
    assert int_dtype_for_dim(2**31, signed=True) == "int64"
    assert int_dtype_for_dim(2**31, signed=False) == "uint32"
    assert int_dtype_for_shape((2, 2**40), signed=True) == "int64"
    assert resolve_kwargs(lambda a, b=2: a, (), {"a": 1}) == (1, 2)
    assert isinstance(jax.random.key(0), PRNGKeyArray)
    assert not isinstance(jax.random.PRNGKey(0), PRNGKeyArray)


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
        jax.config.update("jax_array_garbage_collection_guard", "log")
    assert ["is always" in str(w.message) for w in seen] == [True, True]
    level = jax.CompilerEffortLevel.O1
    f = jax.jit(lambda x: x + 1, compiler_options={"optimization_level": level})
    assert float(f(1.0)) == 2.0


def check_arrays() -> None:
    x, key = jnp.arange(3.0), jax.random.key(0)
    assert list(x._value) == [0, 1, 2]
    assert not x._committed
    assert [part.shape for part in x._arrays] == [(3,)]
    assert key._impl.name == "threefry2x32"
    assert key._base_array.shape == (2,)
    with pytest.raises(AttributeError, match="random keys"):
        x._impl  # noqa: B018  # it is read
    x._check_if_deleted()
    x.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        x._check_if_deleted()


def check_shardings_and_programs() -> None:
    from jax._src import op_shardings

    devices, auto = jax.devices(), jax.sharding.AxisType.Auto
    turned = np.array(devices[::-1]).reshape(4, 2)
    place = jax.NamedSharding(jax.sharding.Mesh(turned, ("x", "y")), jax.P("x"))
    assert place._device_assignment == tuple(devices[::-1])
    xla = place._to_xla_hlo_sharding(2)
    assert op_shardings.get_num_ways_dim_sharded(xla) == ([4, 1], 2)
    assert list(xla.tile_assignment_devices()) == list(range(8))
    whole = place.update(spec=jax.P())._to_xla_hlo_sharding(2)
    assert op_shardings.is_hlo_sharding_replicated(whole)
    assert not op_shardings.are_hlo_shardings_equal(whole, xla)
    one = jax.sharding.SingleDeviceSharding(devices[1])
    assert one._device_assignment == (devices[1],)

    from jax._src.lax.lax import _convert_element_type

    split = jax.NamedSharding(jax.make_mesh((8,), "x", (auto,)), jax.P("x"))
    for due in (split, one):
        out = _convert_element_type(np.arange(8), np.float32, sharding=due)
        assert (out.dtype, out.sharding) == (np.float32, due)

    f = jax.jit(lambda x: x + 1)
    assert jax.config._read("jax_enable_x64") is False
    told = jax.print_environment_info(return_string=True)
    assert told.startswith(f"jax:    {jax.__version__}\nverax:  ")
    sizes = [f._cache_size()]
    for x in (1.0, 2.0, 3):
        f(x)
        sizes.append(f._cache_size())
    assert sizes == [0, 1, 1, 2]


def check_primitives() -> None:
    from jax._src import core, dispatch, linear_util
    from jax._src.lax.eval_jaxpr import eval_jaxpr_p
    from jax.extend.core import Primitive
    from jax.interpreters import mlir

    closed = jax.make_jaxpr(lambda x: [jnp.sin(x), x * 2])(1.0)
    for call_p in (core.call_p, core.closed_call_p, eval_jaxpr_p):
        outs = jax.jit(lambda x, p=call_p: p.bind(x, call_jaxpr=closed))(2.0)
        assert [float(x) for x in outs] == [float(jnp.sin(2.0)), 4]
        wrapped = linear_util.wrap_init(lambda x: [x + 1])
        assert float(call_p.bind(wrapped, 1.0)[0]) == 2
        with pytest.raises(TypeError, match="takes a program as call_jaxpr"):
            call_p.bind(1.0)

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

    countdown = Primitive("countdown")  # recursive, but it ends
    countdown.def_abstract_eval(lambda x, n: x)
    mlir.register_lowering(
        countdown,
        mlir.lower_fun(lambda x, n: countdown.bind(x * 2, n=n - 1) if n else x, False),
    )
    assert float(jax.jit(lambda x: countdown.bind(x, n=5))(1.0)) == 32

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

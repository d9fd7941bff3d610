"""verax: array programs as immutable jaxprs, rewritten by pure rules and run on PJRT.

The roof of the package: it joins the floors (which interpreter is the default one,
which functions stand behind the methods of arrays) and re-exports the public names.

>>> import verax
>>> verax.grad(lambda x: x ** 2)(3.0)
Array(6., dtype=float32, weak_type=True)
"""

from verax.rules.collector import keeping

# What is imported is kept: the garbage collector would look at it again and again.
with keeping():
    from verax import nn, scipy

from verax import (
    ad_checkpoint,
    checkpoint_policies,
    core,
    custom_batching,
    custom_derivatives,
    debug,
    dlpack,
    dtypes,
    errors,
    experimental,
    export,
    extend,
    flatten_util,
    image,
    ir,
    lax,
    monitoring,
    numpy,
    ops,
    profiler,
    random,
    rewrites,
    sharding,
    stages,
    test_util,
    transforms,
    tree,
    tree_util,
    typing,
)
from verax.api.autodiff import jvp, linearize, vjp
from verax.api.callbacks import effects_barrier, pure_callback
from verax.api.checkpoint import checkpoint
from verax.api.config import (
    check_tracer_leaks,
    config,
    debug_infs,
    debug_nans,
    default_device,
    default_matmul_precision,
    default_prng_impl,
    disable_jit,
    enable_x64,
    explain_cache_misses,
    from_environment,
    numpy_dtype_promotion,
    threefry_partitionable,
)
from verax.api.custom_gradient import closure_convert, custom_gradient
from verax.api.custom_jvp import custom_jvp
from verax.api.custom_vjp import custom_vjp
from verax.api.engine import EAGER
from verax.api.forward_backward import fwd_and_bwd
from verax.api.grad import grad, value_and_grad
from verax.api.inspection import eval_shape, linear_transpose, make_jaxpr
from verax.api.jacobian import hessian, jacfwd, jacrev
from verax.api.jit_decorator import jit
from verax.api.pmap import pmap
from verax.api.purity import ImpureFunction, check_purity
from verax.api.resources import clear_caches, live_arrays, typeof
from verax.api.runtime import (
    block_until_ready,
    copy_to_host_async,
    devices,
    local_devices,
    print_environment_info,
)
from verax.api.scopes import (
    ensure_compile_time_eval,
    named_call,
    named_scope,
)
from verax.api.shard_map import shard_map
from verax.api.structs import ShapeDtypeStruct
from verax.api.transfer import (
    device_get,
    device_put,
    device_put_replicated,
    device_put_sharded,
    make_array_from_callback,
    make_array_from_single_device_arrays,
)
from verax.api.vectorize import vmap
from verax.backend.client import (
    Device,
    default_backend,
    device_count,
    local_device_count,
    process_count,
    process_index,
    process_indices,
)
from verax.backend.mesh import Mesh, PartitionSpec as P, make_mesh
from verax.backend.sharding import NamedSharding
from verax.ir.dtypes import float0
from verax.ir.library import Library
from verax.monitoring import metrics
from verax.ops.table import PRIMITIVES
from verax.rules.array import Array, Operators
from verax.rules.builder import LeakedTracer
from verax.rules.infer import infer
from verax.rules.state import State

__version__ = "0.1.0"
jacobian = jacrev
remat = checkpoint
checking_leaks = check_tracer_leaks

State.interpreter = State.eager = EAGER
Operators.namespace = numpy
Library.primitives = PRIMITIVES
Library.typing = staticmethod(infer)
from_environment()

__all__ = [
    "Array",
    "Device",
    "ImpureFunction",
    "LeakedTracer",
    "Mesh",
    "NamedSharding",
    "P",
    "ShapeDtypeStruct",
    "ad_checkpoint",
    "block_until_ready",
    "check_purity",
    "check_tracer_leaks",
    "checking_leaks",
    "checkpoint",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "config",
    "copy_to_host_async",
    "core",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "debug",
    "debug_infs",
    "debug_nans",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "default_prng_impl",
    "device_count",
    "device_get",
    "device_put",
    "device_put_replicated",
    "device_put_sharded",
    "devices",
    "disable_jit",
    "dlpack",
    "dtypes",
    "effects_barrier",
    "enable_x64",
    "ensure_compile_time_eval",
    "errors",
    "eval_shape",
    "experimental",
    "explain_cache_misses",
    "export",
    "extend",
    "flatten_util",
    "float0",
    "fwd_and_bwd",
    "grad",
    "hessian",
    "image",
    "ir",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jit",
    "jvp",
    "lax",
    "linear_transpose",
    "linearize",
    "live_arrays",
    "local_device_count",
    "local_devices",
    "make_array_from_callback",
    "make_array_from_single_device_arrays",
    "make_jaxpr",
    "make_mesh",
    "metrics",
    "monitoring",
    "named_call",
    "named_scope",
    "nn",
    "numpy",
    "numpy_dtype_promotion",
    "ops",
    "pmap",
    "print_environment_info",
    "process_count",
    "process_index",
    "process_indices",
    "profiler",
    "pure_callback",
    "random",
    "remat",
    "rewrites",
    "scipy",
    "shard_map",
    "sharding",
    "stages",
    "test_util",
    "threefry_partitionable",
    "transforms",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "value_and_grad",
    "vjp",
    "vmap",
]

# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
from verax import (
    ad as ad, ad_checkpoint as ad_checkpoint, api_util as api_util,
    checkpoint_policies as checkpoint_policies, core as core,
    custom_batching as custom_batching, custom_derivatives as custom_derivatives,
    debug as debug, distributed as distributed, dlpack as dlpack, dtypes as dtypes,
    errors as errors, example_libraries as example_libraries,
    experimental as experimental, export as export, extend as extend, ffi as ffi,
    flatten_util as flatten_util, image as image, ir as ir, lax as lax,
    memory as memory, monitoring as monitoring, nn as nn, numpy as numpy, ops as ops,
    profiler as profiler, random as random, ref as ref, rewrites as rewrites,
    scipy as scipy, sharding as sharding, stages as stages, test_util as test_util,
    transforms as transforms, tree as tree, tree_util as tree_util, typing as typing,
)
from verax.api.arguments.jit_options import Inline as Inline
from verax.api.autodiff.grad import (
    fwd_and_bwd as fwd_and_bwd, grad as grad, value_and_grad as value_and_grad,
)
from verax.api.autodiff.jacobian import (
    hessian as hessian, jacfwd as jacfwd, jacrev as jacrev,
)
from verax.api.autodiff.jvp_vjp import jvp as jvp, linearize as linearize, vjp as vjp
from verax.api.config.caches import (
    clear_caches as clear_caches, live_arrays as live_arrays, typeof as typeof,
)
from verax.api.config.config import (
    auto_pcast as auto_pcast, check_tracer_leaks as check_tracer_leaks,
    config as config, debug_infs as debug_infs, debug_key_reuse as debug_key_reuse,
    debug_nans as debug_nans, default_device as default_device,
    default_matmul_precision as default_matmul_precision,
    default_prng_impl as default_prng_impl, disable_jit as disable_jit,
    enable_checks as enable_checks, enable_custom_prng as enable_custom_prng,
    enable_x64 as enable_x64, explain_cache_misses as explain_cache_misses,
    explicit_x64_dtypes as explicit_x64_dtypes, legacy_prng_key as legacy_prng_key,
    log_compiles as log_compiles, make_user_context as make_user_context,
    no_execution as no_execution, no_tracing as no_tracing,
    numpy_dtype_promotion as numpy_dtype_promotion,
    numpy_rank_promotion as numpy_rank_promotion,
    remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
    threefry_partitionable as threefry_partitionable, transfer_guard as transfer_guard,
    transfer_guard_device_to_device as transfer_guard_device_to_device,
    transfer_guard_device_to_host as transfer_guard_device_to_host,
    transfer_guard_host_to_device as transfer_guard_host_to_device,
)
from verax.api.config.unchanging import (
    allow_f16_reductions as allow_f16_reductions,
    array_garbage_collection_guard as array_garbage_collection_guard,
    jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions,
    softmax_custom_jvp as softmax_custom_jvp, thread_guard as thread_guard,
)
from verax.api.custom.checkpoint import checkpoint as checkpoint
from verax.api.custom.vjp import (
    closure_convert as closure_convert, custom_gradient as custom_gradient,
    custom_vjp as custom_vjp,
)
from verax.api.custom.jvp import custom_jvp as custom_jvp
from verax.api.host.callbacks import (
    effects_barrier as effects_barrier, pure_callback as pure_callback,
)
from verax.api.inspect.make_jaxpr import (
    eval_shape as eval_shape, linear_transpose as linear_transpose,
    make_jaxpr as make_jaxpr, ensure_compile_time_eval as ensure_compile_time_eval,
    named_call as named_call, named_scope as named_scope,
)
from verax.api.inspect.purity import (
    check_purity as check_purity, ImpureFunction as ImpureFunction,
)
from verax.api.jit import jit as jit
from verax.api.parallel.device_put import (
    block_until_ready as block_until_ready, copy_to_host_async as copy_to_host_async,
    device_get as device_get, device_put as device_put,
    device_put_replicated as device_put_replicated,
    device_put_sharded as device_put_sharded, devices as devices,
    local_devices as local_devices,
    make_array_from_callback as make_array_from_callback,
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
)
from verax.api.parallel.environment import (
    print_environment_info as print_environment_info,
)
from verax.api.parallel.specs import reshard as reshard
from verax.api.parallel.pmap import pmap as pmap
from verax.api.parallel.process_data import (
    make_array_from_process_local_data as make_array_from_process_local_data,
)
from verax.api.parallel.shard_map import shard_map as shard_map, smap as smap
from verax.api.tracing.references import (
    empty_ref as empty_ref, free_ref as free_ref, freeze as freeze, new_ref as new_ref,
)
from verax.api.tracing.structs import ShapeDtypeStruct as ShapeDtypeStruct
from verax.api.vmap import vmap as vmap
from verax.backend.arrays.concrete import Shard as Shard
from verax.backend.placement.mesh import (
    make_mesh as make_mesh, Mesh as Mesh, PartitionSpec,
)
from verax.backend.placement.mesh_context import (
    get_abstract_mesh as get_abstract_mesh, get_mesh as get_mesh, set_mesh as set_mesh,
    use_abstract_mesh as use_abstract_mesh,
)
from verax.backend.placement.sharding import NamedSharding as NamedSharding
from verax.backend.runtime.client import (
    default_backend as default_backend, Device as Device, device_count as device_count,
    process_count as process_count, process_index as process_index,
    process_indices as process_indices, local_device_count as local_device_count,
)
from verax.backend.xla.compile_options import CompilerEffortLevel as CompilerEffortLevel
from verax.explorer.exploration import explore as explore
from verax.ir.dtypes import float0 as float0
from verax.monitoring import metrics as metrics
from verax.numpy.indexing.slices import dslice
from verax.rules.rows.leaks import LeakedTracer as LeakedTracer
from verax.rules.values.array import Array as Array
from verax.rules.values.reference import Ref as Ref
jacobian = jacrev
checking_leaks = check_tracer_leaks
remat = checkpoint
P = PartitionSpec
host_count = process_count
host_id = process_index
host_ids = process_indices
ds = dslice
__version__: str
__version_info__: tuple[int, int, int]
__all__ = [
    "Array", "CompilerEffortLevel", "Device", "ImpureFunction", "Inline",
    "LeakedTracer", "Mesh", "NamedSharding", "P", "Ref", "ShapeDtypeStruct", "Shard",
    "ad", "ad_checkpoint", "allow_f16_reductions", "api_util",
    "array_garbage_collection_guard", "auto_pcast", "block_until_ready", "check_purity",
    "check_tracer_leaks", "checking_leaks", "checkpoint", "checkpoint_policies",
    "clear_caches", "closure_convert", "config", "copy_to_host_async", "core",
    "custom_batching", "custom_derivatives", "custom_gradient", "custom_jvp",
    "custom_vjp", "debug", "debug_infs", "debug_key_reuse", "debug_nans",
    "default_backend", "default_device", "default_matmul_precision",
    "default_prng_impl", "device_count", "device_get", "device_put",
    "device_put_replicated", "device_put_sharded", "devices", "disable_jit",
    "distributed", "dlpack", "ds", "dtypes", "effects_barrier", "empty_ref",
    "enable_checks", "enable_custom_prng", "enable_x64", "ensure_compile_time_eval",
    "errors", "eval_shape", "example_libraries", "experimental", "explain_cache_misses",
    "explicit_x64_dtypes", "explore", "export", "extend", "ffi", "flatten_util",
    "float0", "free_ref", "freeze", "fwd_and_bwd", "get_abstract_mesh", "get_mesh",
    "grad", "hessian", "host_count", "host_id", "host_ids", "image", "ir", "jacfwd",
    "jacobian", "jacrev", "jax2tf_associative_scan_reductions", "jit", "jvp", "lax",
    "legacy_prng_key", "linear_transpose", "linearize", "live_arrays",
    "local_device_count", "local_devices", "log_compiles", "make_array_from_callback",
    "make_array_from_process_local_data", "make_array_from_single_device_arrays",
    "make_jaxpr", "make_mesh", "make_user_context", "memory", "metrics", "monitoring",
    "named_call", "named_scope", "new_ref", "nn", "no_execution", "no_tracing", "numpy",
    "numpy_dtype_promotion", "numpy_rank_promotion", "ops", "pmap",
    "print_environment_info", "process_count", "process_index", "process_indices",
    "profiler", "pure_callback", "random", "ref", "remat",
    "remove_size_one_mesh_axis_from_type", "reshard", "rewrites", "scipy", "set_mesh",
    "shard_map", "sharding", "smap", "softmax_custom_jvp", "stages", "test_util",
    "thread_guard", "threefry_partitionable", "transfer_guard",
    "transfer_guard_device_to_device", "transfer_guard_device_to_host",
    "transfer_guard_host_to_device", "transforms", "tree", "tree_util", "typeof",
    "typing", "use_abstract_mesh", "value_and_grad", "vjp", "vmap",
]

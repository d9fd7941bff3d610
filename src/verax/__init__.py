"""verax: array programs as immutable jaxprs, rewritten by pure rules and run on PJRT.

The package shows the public names and loads what is behind one when it is first read;
importing it runs only `verax.wiring`, which joins the floors.

>>> import verax
>>> verax.grad(lambda x: x ** 2)(3.0)
Array(6., dtype=float32, weak_type=True)
"""

from verax.rules.guards import keeping

# What is imported stays: keep the garbage collector from looking at it repeatedly.
with keeping():
    from verax.ir.facade import facade

__version__ = "1.0.0"
__version_info__ = (1, 0, 0)

__getattr__, __dir__ = facade(
    __name__,
    {
        ".api.arguments.jit_options": "Inline",
        ".api.autodiff.grad": "fwd_and_bwd grad value_and_grad",
        ".api.autodiff.jacobian": "hessian jacfwd jacobian=jacrev jacrev",
        ".api.autodiff.jvp_vjp": "jvp linearize vjp",
        ".api.config.caches": "clear_caches live_arrays typeof",
        ".api.config.config": (
            "auto_pcast check_tracer_leaks checking_leaks=check_tracer_leaks config "
            "debug_infs debug_key_reuse debug_nans default_device "
            "default_matmul_precision default_prng_impl disable_jit enable_checks "
            "enable_custom_prng enable_x64 explain_cache_misses explicit_x64_dtypes "
            "legacy_prng_key log_compiles make_user_context no_execution no_tracing "
            "numpy_dtype_promotion numpy_rank_promotion "
            "remove_size_one_mesh_axis_from_type threefry_partitionable "
            "transfer_guard transfer_guard_device_to_device "
            "transfer_guard_device_to_host transfer_guard_host_to_device"
        ),
        ".api.config.unchanging": (
            "allow_f16_reductions array_garbage_collection_guard "
            "jax2tf_associative_scan_reductions softmax_custom_jvp thread_guard"
        ),
        ".api.custom.checkpoint": "checkpoint remat=checkpoint",
        ".api.custom.vjp": "closure_convert custom_gradient custom_vjp",
        ".api.custom.jvp": "custom_jvp",
        ".api.host.callbacks": "effects_barrier pure_callback",
        ".api.inspect.make_jaxpr": (
            "eval_shape linear_transpose make_jaxpr ensure_compile_time_eval "
            "named_call named_scope"
        ),
        ".api.inspect.purity": "check_purity ImpureFunction",
        ".api.jit": "jit",
        ".api.parallel.device_put": (
            "block_until_ready copy_to_host_async device_get device_put "
            "device_put_replicated device_put_sharded devices local_devices "
            "make_array_from_callback make_array_from_single_device_arrays"
        ),
        ".api.parallel.environment": "print_environment_info",
        ".api.parallel.specs": "reshard",
        ".api.parallel.pmap": "pmap",
        ".api.parallel.process_data": "make_array_from_process_local_data",
        ".api.parallel.shard_map": "shard_map smap",
        ".api.tracing.references": "empty_ref free_ref freeze new_ref",
        ".api.tracing.structs": "ShapeDtypeStruct",
        ".api.vmap": "vmap",
        ".backend.arrays.concrete": "Shard",
        ".backend.placement.mesh": "make_mesh Mesh P=PartitionSpec",
        ".backend.placement.mesh_context": (
            "get_abstract_mesh get_mesh set_mesh use_abstract_mesh"
        ),
        ".backend.placement.sharding": "NamedSharding",
        ".backend.runtime.client": (
            "default_backend Device device_count host_count=process_count "
            "host_id=process_index host_ids=process_indices local_device_count "
            "process_count process_index process_indices"
        ),
        ".backend.xla.compile_options": "CompilerEffortLevel",
        ".explorer.exploration": "explore",
        ".ir.dtypes": "float0",
        ".monitoring": "metrics",
        ".numpy.indexing.slices": "ds=dslice",
        ".rules.rows.leaks": "LeakedTracer",
        ".rules.values.array": "Array",
        ".rules.values.reference": "Ref",
    },
    modules=(
        "ad ad_checkpoint api_util checkpoint_policies core custom_batching "
        "custom_derivatives debug distributed dlpack dtypes errors "
        "example_libraries experimental "
        "export extend ffi flatten_util image ir lax memory monitoring nn numpy ops "
        "profiler random ref rewrites scipy sharding stages test_util transforms tree "
        "tree_util typing"
    ),
)

with keeping():
    from verax import wiring as wiring

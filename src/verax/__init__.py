"""verax: array programs as immutable jaxprs, rewritten by pure rules and run on PJRT.

One idea: this package shows the public names and loads what stands behind one when it
is first read; `verax.roof`, which joins the floors, is all that importing it runs.

>>> import verax
>>> verax.grad(lambda x: x ** 2)(3.0)
Array(6., dtype=float32, weak_type=True)
"""

from verax.rules.collector import keeping

# What is imported is kept: the garbage collector would look at it again and again.
with keeping():
    from verax.ir.facade import facade

__version__ = "0.1.0"

__getattr__, __dir__ = facade(
    __name__,
    {
        ".api.autodiff": "jvp linearize vjp",
        ".api.callbacks": "effects_barrier pure_callback",
        ".api.checkpoint": "checkpoint remat=checkpoint",
        ".api.config": (
            "check_tracer_leaks checking_leaks=check_tracer_leaks config debug_infs "
            "debug_nans default_device default_matmul_precision default_prng_impl "
            "disable_jit enable_x64 explain_cache_misses numpy_dtype_promotion "
            "threefry_partitionable"
        ),
        ".api.custom_gradient": "closure_convert custom_gradient",
        ".api.custom_jvp": "custom_jvp",
        ".api.custom_vjp": "custom_vjp",
        ".api.forward_backward": "fwd_and_bwd",
        ".api.grad": "grad value_and_grad",
        ".api.inspection": "eval_shape linear_transpose make_jaxpr",
        ".api.jacobian": "hessian jacfwd jacobian=jacrev jacrev",
        ".api.jit_decorator": "jit",
        ".api.pmap": "pmap",
        ".api.purity": "ImpureFunction check_purity",
        ".api.resources": "clear_caches live_arrays typeof",
        ".api.runtime": (
            "block_until_ready copy_to_host_async devices local_devices "
            "print_environment_info"
        ),
        ".api.scopes": "ensure_compile_time_eval named_call named_scope",
        ".api.shard_map": "shard_map",
        ".api.structs": "ShapeDtypeStruct",
        ".api.transfer": (
            "device_get device_put device_put_replicated device_put_sharded "
            "make_array_from_callback make_array_from_single_device_arrays"
        ),
        ".api.vectorize": "vmap",
        ".backend.client": (
            "Device default_backend device_count local_device_count process_count "
            "process_index process_indices"
        ),
        ".backend.mesh": "Mesh P=PartitionSpec make_mesh",
        ".backend.sharding": "NamedSharding",
        ".ir.dtypes": "float0",
        ".monitoring": "metrics",
        ".rules.array": "Array",
        ".rules.builder": "LeakedTracer",
    },
    modules=(
        "ad_checkpoint checkpoint_policies core custom_batching custom_derivatives "
        "debug dlpack dtypes errors experimental export extend flatten_util image ir "
        "lax monitoring nn numpy ops profiler random rewrites scipy sharding stages "
        "test_util transforms tree tree_util typing"
    ),
)

with keeping():
    from verax import roof as roof

"""The packages that JAX keeps under `jax.experimental`, by the same names (floor 6).

This module only gives names; the work is done in `verax.api`.

    >>> import numpy as np
    >>> from verax.experimental import io_callback
    >>> io_callback(lambda: np.float32(2), np.float32(0))
    Array(2., dtype=float32)
"""

from verax.ir.facade import facade

__getattr__, __dir__ = facade(
    __name__,
    {
        "verax.api.host.callbacks": "io_callback",
    },
    modules=(
        "checkify checkpoint compilation_cache compute_on custom_partitioning jet "
        "key_reuse layout mesh_utils multihost_utils ode pjit serialize_executable "
        "shard_map sparse topologies xla_metadata"
    ),
)

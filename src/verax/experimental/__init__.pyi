# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
from verax.experimental import (
    checkify as checkify, checkpoint as checkpoint,
    compilation_cache as compilation_cache, compute_on as compute_on,
    custom_partitioning as custom_partitioning, jet as jet, key_reuse as key_reuse,
    layout as layout, mesh_utils as mesh_utils, multihost_utils as multihost_utils,
    ode as ode, pjit as pjit, serialize_executable as serialize_executable,
    shard_map as shard_map, sparse as sparse, topologies as topologies,
    xla_metadata as xla_metadata,
)
from verax.api.host.callbacks import io_callback as io_callback
__all__ = [
    "checkify", "checkpoint", "compilation_cache", "compute_on", "custom_partitioning",
    "io_callback", "jet", "key_reuse", "layout", "mesh_utils", "multihost_utils", "ode",
    "pjit", "serialize_executable", "shard_map", "sparse", "topologies", "xla_metadata",
]

"""Functions that the user partitions, `jax.experimental.custom_partitioning` (floor 6).

This module only gives names; the work is done in `verax.api`::

    f = custom_partitioning(matmul)
    f.def_partition(partition, sharding_rule="i j, j k -> i k")
"""

from verax.api.custom.partitioning import custom_partitioning
from verax.api.custom.sharding_rules import (
    BATCHING,
    ArrayMapping,
    CompoundFactor,
    SdyShardingRule,
)
from verax.ops.custom.partitioned import custom_partitioning_p

__all__ = [
    "BATCHING",
    "ArrayMapping",
    "CompoundFactor",
    "SdyShardingRule",
    "custom_partitioning",
    "custom_partitioning_p",
]

"""`shard_map` under its former name and parameters (floor 6).

New programs use `verax.shard_map`::

    shard_map(f, mesh, in_specs=P("x"), out_specs=P(), check_rep=False)
"""

from collections.abc import Callable
from typing import Any

from verax.api.parallel import shard_map as current
from verax.backend.placement.abstract_mesh import AbstractMesh
from verax.backend.placement.mesh import Mesh

__all__ = ["shard_map"]


def shard_map(
    f: Callable[..., object],
    mesh: Mesh | AbstractMesh,
    in_specs: object,
    out_specs: object,
    check_rep: bool = True,
) -> Any:
    """`verax.shard_map` over all axes, where `check_vma` was called `check_rep`.

    >>> import numpy as np, verax
    >>> from verax.sharding import PartitionSpec as P
    >>> mesh = verax.make_mesh((1,), ("x",))
    >>> shard_map(lambda x: x * 2, mesh, P("x"), P("x"))(np.ones(2))
    Array([2., 2.], dtype=float32)
    """
    return current.shard_map(
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep
    )

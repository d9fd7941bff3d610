"""Floor 5: arrays over several processes from what each process has.

One idea: a process holds the parts of its devices side by side, so along each dimension
the parts that it has, in order, are the parts of its own data::

    make_array_from_process_local_data(NamedSharding(mesh, P("x")), batch)
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from verax.api.parallel.device_put import make_array_from_callback
from verax.api.sharding_args import place_leaves
from verax.backend import pytrees
from verax.backend.placement.sharding import Sharding, check_present, is_local
from verax.ir.avals import Shape
from verax.rules.values.array import Array


def make_array_from_process_local_data(
    sharding: object, local_data: object, global_shape: object = None
) -> Any:
    """Arrays over all processes, each of which passes its own part.

    `sharding` and `global_shape` are prefix trees of `local_data`. Where the local data
    is as long along a dimension as `global_shape` says, it holds the whole dimension;
    elsewhere it holds the parts of this process, one after another. Without
    `global_shape` it holds the parts of this process along every dimension.

    Raises:
        TypeError: a leaf has no sharding.
        ValueError: the local data does not have the shape that its sharding asks for.

    >>> import numpy as np, verax
    >>> place = verax.sharding.SingleDeviceSharding(verax.devices()[0])
    >>> make_array_from_process_local_data(place, np.arange(3, dtype=np.int32)).tolist()
    [0, 1, 2]
    """
    name = "make_array_from_process_local_data"
    leaves, tree = pytrees.flatten(local_data)
    places = place_leaves(f"{name} sharding", sharding, local_data)
    if isinstance(global_shape, tuple) and all(
        isinstance(n, int) for n in global_shape
    ):
        shapes: Sequence[Sequence[int] | None] = [global_shape] * len(leaves)
    elif global_shape is None:
        shapes = [None] * len(leaves)
    else:
        shapes = tree.flatten_up_to(global_shape)
    outs = []
    for leaf, place, shape in zip(leaves, places, shapes, strict=True):
        if place is None:
            raise TypeError(f"{name} needs a sharding for each leaf, got None")
        outs.append(from_local(place, np.asarray(leaf), shape))
    return tree.unflatten(outs)


def from_local(
    sharding: Sharding, data: np.ndarray, global_shape: Sequence[int] | None
) -> Array:
    """One array from the part of this process."""
    check_present(sharding)
    tiling = sharding.tiling(data.ndim)
    own = parts_of_process(sharding, data.ndim)
    shape = whole_shape(data.shape, tiling.counts, own, global_shape)
    sizes = sharding.shard_shape(shape)
    expected = [
        n if n == size else part * len(places)
        for n, size, part, places in zip(data.shape, shape, sizes, own, strict=True)
    ]
    if list(data.shape) != expected:
        raise ValueError(
            f"an array of shape {shape} under {sharding} takes data of shape "
            f"{tuple(expected)} from this process, not {data.shape}"
        )

    def part(index: tuple[slice, ...]) -> np.ndarray:
        out = []
        for i, where in enumerate(index):
            if data.shape[i] == shape[i]:
                out.append(where)
                continue
            first = own[i].index((where.start or 0) // sizes[i]) * sizes[i]
            out.append(slice(first, first + sizes[i]))
        return data[tuple(out)]

    return make_array_from_callback(shape, sharding, part, dtype=data.dtype)


def parts_of_process(sharding: Sharding, ndim: int) -> list[list[int]]:
    """For each dimension, the numbers of the parts on this process's devices."""
    devices = zip(sharding.ordered, sharding.tiling(ndim).places, strict=True)
    mine = [place for device, place in devices if is_local(device)]
    return [sorted({place[i] for place in mine}) for i in range(ndim)]


def whole_shape(
    local: Shape,
    counts: Sequence[int],
    own: Sequence[Sequence[int]],
    global_shape: Sequence[int] | None,
) -> Shape:
    """The shape of the whole array."""
    if global_shape is None:
        return tuple(
            [
                n // len(places) * count
                for n, count, places in zip(local, counts, own, strict=True)
            ]
        )
    shape = tuple(global_shape)
    if len(shape) != len(local):
        raise ValueError(
            f"global_shape={shape} has {len(shape)} dimensions, but the data of this "
            f"process has {len(local)}"
        )
    return shape

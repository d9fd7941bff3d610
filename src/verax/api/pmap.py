"""Floor 5: `pmap`: `vmap` with each element on a device of its own.

One idea: a mesh of one axis, along which the mapped dimension is split, and `vmap`
under `jit` do it; the name of the axis is that of the mesh::

    pmap(lambda x: x / psum(x, "i"), axis_name="i")(xs)
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from verax.api.jit_decorator import jit
from verax.api.places import constrained
from verax.api.statics import numbers
from verax.api.tracing import describe_arguments, function_name, leaf_avals
from verax.api.transfer import device_put
from verax.api.vectorize import flat_axes, mapped_size, place_axes, vmap
from verax.backend import pytrees
from verax.backend.client import Device, local_devices
from verax.backend.mesh import Mesh, PartitionSpec
from verax.backend.sharding import NamedSharding
from verax.rules.row import Axis


@frozen(eq=False)
class Settings:
    """What `pmap` was told."""

    name: str
    in_axes: Any
    out_axes: Any
    static: tuple[int, ...]
    donated: tuple[int, ...]
    devices: tuple[Device, ...] | None
    backend: str | None

    def mesh(self, fun: object, size: int) -> Mesh:
        """The first devices, one for each element.

        Raises:
            ValueError: there are too few.
        """
        owned = self.devices or tuple(local_devices(self.backend))
        if size > len(owned):
            raise ValueError(
                f"pmap of {function_name(fun)} maps {size} elements, but there are "
                f"{len(owned)} devices; on CPU set their number with "
                'verax.config.update("num_cpu_devices", n) before the first array'
            )
        return Mesh(np.array(owned[:size], object), (self.name,))

    def moving(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments that are not static."""
        return tuple([x for i, x in enumerate(args) if i not in self.static])

    def moving_axes(self, count: int) -> tuple[Any, ...]:
        """The entries of `in_axes` for them."""
        axes = self.in_axes
        if axes is None or isinstance(axes, int):
            return (axes,) * (count - len(self.static))
        if len(axes) != count:
            raise ValueError(
                f"pmap in_axes has {len(axes)} entries for {count} arguments"
            )
        return self.moving(axes)

    def filled(self, args: Sequence[Any], moving: Sequence[Any]) -> list[Any]:
        """All arguments, the moving ones replaced."""
        left = iter(moving)
        return [x if i in self.static else next(left) for i, x in enumerate(args)]


def pmap(
    fun: Callable[..., Any],
    axis_name: str | None = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> Callable[..., Any]:
    """`fun` on one element of its arguments per device: `vmap`, each element elsewhere.

    `in_axes` and `out_axes` are those of `vmap`; the results are spread over the
    devices along their mapped dimension. `devices` are those to use, in order.

    Raises:
        ValueError: there are fewer devices than elements, or sizes disagree.

    >>> import numpy as np, verax
    >>> verax.pmap(lambda x: x / verax.lax.psum(x, "i"), axis_name="i")(np.ones((1, 2)))
    Array([[1., 1.]], dtype=float32)
    """
    if not callable(fun):
        raise TypeError(f"pmap takes a function, not {fun!r}")
    settings = Settings(
        axis_name or "_pmap",
        in_axes,
        out_axes,
        numbers("static_broadcasted_argnums", static_broadcasted_argnums),
        numbers("donate_argnums", donate_argnums),
        None if devices is None else tuple(devices),
        backend,
    )

    @functools.cache
    def program(size: int) -> tuple[Callable[..., Any], Mesh]:
        mesh = settings.mesh(fun, size)
        return parallel(fun, settings, mesh), mesh

    @functools.wraps(fun)
    def mapped(*args: Any) -> Any:
        rest, axes = settings.moving(args), settings.moving_axes(len(args))
        leaves, tree = pytrees.flatten((rest, {}))
        describe = describe_arguments(fun, tree)
        avals = leaf_avals(leaves, describe)
        where = place_axes(avals, flat_axes("in_axes", axes, rest), describe)
        run, mesh = program(mapped_size(fun, avals, where, axis_size, describe))
        moved = [
            device_put(x, place_at(mesh, axis, aval.ndim))
            for x, axis, aval in zip(leaves, where, avals, strict=True)
        ]
        return run(*settings.filled(args, tree.unflatten(moved)[0]))

    return mapped


def parallel(
    fun: Callable[..., Any], settings: Settings, mesh: Mesh
) -> Callable[..., Any]:
    """The compiled function over all elements, its results spread over the mesh."""
    name, size = settings.name, mesh.size

    def body(*args: Any) -> Any:
        def element(*parts: Any) -> Any:
            return fun(*settings.filled(args, parts))

        axes, out_axes = settings.moving_axes(len(args)), settings.out_axes
        over = vmap(element, axes, out_axes, name, size, spmd_axis_name=name)
        out = over(*settings.moving(args))
        leaves, tree = pytrees.flatten(out)
        where = flat_axes("out_axes", out_axes, out)
        places = [
            place_at(mesh, axis, x.ndim) for axis, x in zip(where, leaves, strict=True)
        ]
        return tree.unflatten(constrained(leaves, tuple(places)))

    return jit(body, static_argnums=settings.static, donate_argnums=settings.donated)


def place_at(mesh: Mesh, axis: Axis, ndim: int) -> NamedSharding:
    """One element of dimension `axis` on each device; all of it where that is None."""
    if axis is None:
        return NamedSharding(mesh, PartitionSpec())
    before, after = axis % ndim, ndim - axis % ndim - 1
    spec = (*[None] * before, mesh.axis_names[0], *[None] * after)
    return NamedSharding(mesh, PartitionSpec(*spec))

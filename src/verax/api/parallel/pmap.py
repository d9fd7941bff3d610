"""Floor 5: `pmap`: `vmap` with each element on its own device.

One idea: a mesh of one axis, along which the mapped dimension is split, and `vmap`
under `jit` do it; the name of the axis is that of the mesh::

    pmap(lambda x: x / psum(x, "i"), axis_name="i")(xs)
"""

import inspect
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

import numpy as np
from attrs import frozen

from verax.api.arguments.call_keys import numbers
from verax.api.explain.report import Explanation
from verax.api.jit import Copyable, PjitFunction, jit
from verax.api.parallel.device_put import device_put
from verax.api.sharding_args import constrained
from verax.api.stages.stages import Lowered, Traced
from verax.api.tracing.reference_checks import check_parts
from verax.api.tracing.structs import (
    ShapeDtypeStruct,
    out_info,
    struct_avals,
    struct_of,
)
from verax.api.tracing.wrapping import (
    describe_arguments,
    function_name,
    look_like,
    wraps,
)
from verax.api.trees.pytrees import tree_map
from verax.api.vmap import axes_from_front, flat_axes, mapped_size, vmap
from verax.backend import pytrees
from verax.backend.placement.mesh import Mesh, PartitionSpec
from verax.backend.placement.sharding import NamedSharding
from verax.backend.runtime.client import Device, local_devices
from verax.ir.avals import ShapedArray
from verax.ir.records import ReprMixin, Unchanging
from verax.rules.rows.row import Axis
from verax.rules.values.conversions import check_callable


@frozen(eq=False, repr=False)
class Settings(Unchanging, ReprMixin):
    """The settings of `pmap`."""

    name: str
    in_axes: object
    out_axes: object
    static: tuple[int, ...]
    donated: tuple[int, ...]
    devices: tuple[Device, ...] | None
    backend: str | None
    axis_size: int | None

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
                'verax.config.update("num_cpu_devices", n) before making the first '
                "array"
            )
        return Mesh(np.array(owned[:size], object), (self.name,))

    def held(self, count: int) -> tuple[int, ...]:
        """The positions of static arguments among `count`, in order."""
        return tuple(sorted({i % count for i in self.static if -count <= i < count}))

    def moving[T](self, args: Sequence[T]) -> tuple[T, ...]:
        """The arguments that are not static."""
        if any([i >= len(args) for i in self.static]):
            count = f"{len(args)} positional argument{'s' * (len(args) != 1)}"
            raise ValueError(
                f"pmapped function has static_broadcasted_argnums={self.static} but "
                f"was called with only {count}. All static broadcasted arguments must "
                f"be passed positionally."
            )
        held = self.held(len(args))
        return tuple([x for i, x in enumerate(args) if i not in held])

    def moving_axes(self, count: int) -> tuple[object, ...]:
        """The entries of `in_axes` for them."""
        axes = self.in_axes
        if not isinstance(axes, Sequence):
            return (axes,) * (count - len(self.held(count)))
        if len(axes) != count:
            raise ValueError(
                f"pmap in_axes has {len(axes)} entries for {count} arguments by "
                "position; each argument passed by keyword is mapped over its axis 0"
            )
        return self.moving(axes)

    def given_up(
        self,
        args: Sequence[object],
        moving: Sequence[object],
        leaves: int,
        donated: Sequence[int],
    ) -> list[bool]:
        """Flags of the `donated` leaves; the last, of keyword arguments, are not."""
        count = len(args)
        given = {i % count for i in donated if -count <= i < count}
        marks = self.moving([i in given for i in range(count)])
        out = [
            mark
            for mark, arg in zip(marks, moving, strict=True)
            for _ in pytrees.flatten(arg)[0]
        ]
        return out + [False] * (leaves - len(out))

    def filled(self, args: Sequence[object], moving: Sequence[object]) -> list[object]:
        """All arguments, the moving ones replaced."""
        left, held = iter(moving), self.held(len(args))
        return [x if i in held else next(left) for i, x in enumerate(args)]


def pmap(
    fun: Callable[..., object],
    axis_name: str | None = None,
    *,
    in_axes: object = 0,
    out_axes: object = 0,
    static_broadcasted_argnums: int | Sequence[int] = (),
    devices: Sequence[Device] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Sequence[int] = (),
) -> "PmapFunction":
    """`fun` on one element of its arguments per device: `vmap`, each element elsewhere.

    `in_axes` and `out_axes` are those of `vmap`, keyword arguments run over dimension
    0, and donated arguments are those by position; the results are spread over the
    devices along their mapped dimension, or are what the first device has where
    `out_axes` is None. `devices` are those to use, in order.

    Raises:
        ValueError: there are fewer devices than elements, `devices` is empty, or sizes
            disagree.

    >>> import numpy as np, verax
    >>> verax.pmap(lambda x: x / verax.lax.psum(x, "i"), axis_name="i")(np.ones((1, 2)))
    Array([[1., 1.]], dtype=float32)
    """
    check_callable("pmap", fun)
    if devices is not None and not devices:
        raise ValueError(
            "'devices' argument to pmap must be non-empty, or None for those of the "
            "process"
        )
    settings = Settings(
        axis_name or "_pmap",
        in_axes,
        out_axes,
        numbers("static_broadcasted_argnums", static_broadcasted_argnums),
        numbers("donate_argnums", donate_argnums),
        None if devices is None else tuple(devices),
        backend,
        axis_size,
    )
    return PmapFunction(fun, settings)


class PmapFunction(Copyable):
    """A function under pmap: one jitted function for each number of elements."""

    def __init__(self, fun: Callable[..., object], settings: Settings) -> None:
        look_like(self, fun)
        self.fun = fun
        self.settings = settings
        self.begin()

    def begin(self) -> None:
        """Start without programs; see `Copyable`."""
        self.programs: dict[int, tuple[PjitFunction[..., object], Mesh]] = {}

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The results, spread over the devices."""
        run, args, kwargs = self.on_devices(args, kwargs, self.settings.donated)
        return run(*args, **kwargs)

    def trace(self, *args: object, **kwargs: object) -> Traced:
        """See `jit`: arguments may be `ShapeDtypeStruct`s, too."""
        run, args, kwargs = self.on_devices(args, kwargs)
        return run.trace(*args, **kwargs)

    def lower(self, *args: object, **kwargs: object) -> Lowered:
        """See `jit`."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: object, **kwargs: object) -> Any:
        """The types of the outputs, without computing anything."""
        return out_info(self.trace(*args, **kwargs).traced)

    def explain(self, *args: object, **kwargs: object) -> Explanation:
        """Whether a call would find its program, and why not; see `jit(f).explain`."""
        run, args, kwargs = self.on_devices(args, kwargs)
        return run.explain(*args, **kwargs)

    def clear_cache(self) -> None:
        """Forget every trace and every program of this function."""
        self.programs.clear()

    def program(self, size: int) -> tuple[PjitFunction[..., Any], Mesh]:
        """The jitted function for `size` elements, and the devices it runs on."""
        entry = self.programs.get(size)
        if entry is None:
            mesh = self.settings.mesh(self.fun, size)
            made = (parallel(self.fun, self.settings, mesh), mesh)
            entry = self.programs.setdefault(size, made)
        return entry

    def on_devices(
        self,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        donated: tuple[int, ...] = (),
    ) -> tuple[PjitFunction[..., Any], tuple[object, ...], dict[str, object]]:
        """The function for `size` elements, and its arguments on their devices.

        Arguments at the positions `donated` give up their memory.
        """
        fun, settings = self.fun, self.settings
        rest, axes = settings.moving(args), settings.moving_axes(len(args))
        leaves, tree = pytrees.flatten((rest, kwargs))
        describe = describe_arguments(fun, tree, settings.held(len(args)))
        avals = struct_avals(leaves, describe)
        asked = flat_axes("in_axes", (axes, 0), (rest, kwargs), "pmap")
        where = axes_from_front(avals, asked, describe, "pmap")
        check_parts("pmap", (rest, kwargs), leaves, [axis is None for axis in where])
        if settings.axis_size is None and all([axis is None for axis in where]):
            raise ValueError(
                "pmap requires at least one argument with a mapped axis. The call of "
                f"{function_name(fun)} has none: give it one, or axis_size"
            )
        size = mapped_size(
            fun, avals, where, settings.axis_size, describe, (rest, kwargs)
        )
        run, mesh = self.program(size)
        given = settings.given_up(args, rest, len(leaves), donated)
        moved = [
            put(x, place_at(mesh, axis, aval.ndim), give)
            for x, axis, aval, give in zip(leaves, where, avals, given, strict=True)
        ]
        parts, named = tree.unflatten(moved)
        return run, tuple(settings.filled(args, parts)), named

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<pmap of {function_name(self.fun)}>"


def put(x: object, place: NamedSharding, give: bool) -> Any:
    """An argument, or the type of one, on its devices."""
    if isinstance(x, ShapedArray):
        x = struct_of(x)
    if isinstance(x, ShapeDtypeStruct):
        return x.update(sharding=place)
    return device_put(x, place, donate=give)


def parallel(
    fun: Callable[..., object], settings: Settings, mesh: Mesh
) -> PjitFunction[..., Any]:
    """The compiled function over all elements, its results spread over the mesh."""
    name, size = settings.name, mesh.size

    @wraps(fun)
    def body(*args: object, **kwargs: object) -> Any:
        def element(*parts: object, **named: object) -> Any:
            return fun(*settings.filled(args, parts), **named)

        axes, out_axes = settings.moving_axes(len(args)), settings.out_axes
        stacked = tree_map(front_if_none, out_axes, is_leaf=lambda x: x is None)
        over = vmap(element, axes, stacked, name, size, spmd_axis_name=name)
        out = over(*settings.moving(args), **kwargs)
        leaves, tree = pytrees.flatten(out)
        where = flat_axes("out_axes", out_axes, out, "pmap")
        pairs = list(zip(where, leaves, strict=True))
        leaves = [x[0] if axis is None else x for axis, x in pairs]
        places = [
            place_at(mesh, axis, x.ndim) for axis, x in zip(where, leaves, strict=True)
        ]
        return tree.unflatten(constrained(leaves, tuple(places)))

    body.__name__ = function_name(fun)
    # Without names: being static or donated by position does not hold by keyword.
    vars(body)["__signature__"] = inspect.signature(lambda *args, **kwargs: None)
    return jit(body, static_argnums=settings.static, donate_argnums=settings.donated)


def front_if_none(axis: Axis) -> Axis:
    """The dimension along which results are stacked, before the first is taken."""
    return 0 if axis is None else axis


def place_at(mesh: Mesh, axis: Axis, ndim: int) -> NamedSharding:
    """One element of dimension `axis` on each device; all of it where that is None."""
    if axis is None:
        return NamedSharding(mesh, PartitionSpec())
    before, after = axis % ndim, ndim - axis % ndim - 1
    spec = (*[None] * before, mesh.axis_names[0], *[None] * after)
    return NamedSharding(mesh, PartitionSpec(*spec))

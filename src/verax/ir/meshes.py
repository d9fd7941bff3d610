"""Floor 0: how an array is spread over devices, as plain data that params can hold.

One idea: devices are numbers and axes are names, so that a program can say where its
values lie, print it and compare it without knowing any runtime::

    MeshAxes(("x", "y"), (2, 2), (0, 1, 2, 3)), (("x",), ())
"""

from typing import ClassVar

from attrs import frozen

from verax.ir.records import ReprMixin

FIRST_DEVICE = "  sdy.mesh @first_device = <[], device_ids=[0]>\n"
"""The declaration of the first device alone, where calls of the host are made."""

type Split = tuple[str, ...] | None
"""The axes that split a dimension, outer first; None leaves it to the compiler."""


@frozen(cache_hash=True, repr=False)
class MeshAxes(ReprMixin):
    """Named axes over devices; the numbers of the devices are in row-major order."""

    transient: ClassVar[bool] = False

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    devices: tuple[int, ...]

    def size(self, name: str) -> int:
        """How many devices lie along an axis."""
        return self.sizes[self.names.index(name)]


@frozen(cache_hash=True, repr=False)
class Layout(ReprMixin):
    """The axes of `mesh` that split each dimension; further dimensions are whole."""

    transient: ClassVar[bool] = False

    mesh: MeshAxes
    splits: tuple[Split, ...] = ()


def mesh_text(mesh: MeshAxes, order: tuple[int, ...]) -> str:
    """A Shardy mesh; `order` are the devices of the program, by position.

    >>> mesh_text(MeshAxes(("x",), (2,), (7, 9)), (7, 9))
    '<["x"=2]>'
    >>> mesh_text(MeshAxes(("x",), (2,), (9, 7)), (7, 9))
    '<["x"=2], device_ids=[1, 0]>'
    """
    axes = ", ".join(
        f'"{name}"={size}' for name, size in zip(mesh.names, mesh.sizes, strict=True)
    )
    places = [order.index(device) for device in mesh.devices]
    if places == list(range(len(places))):
        return f"<[{axes}]>"
    return f"<[{axes}], device_ids={places}>"


def layout_text(symbol: str, splits: tuple[Split, ...], ndim: int) -> str:
    """A Shardy sharding of an array with `ndim` dimensions.

    >>> layout_text("@mesh", (("x", "y"), None), 3)
    '#sdy.sharding<@mesh, [{"x", "y"}, {?}, {}]>'
    """
    whole: tuple[Split, ...] = ((),) * (ndim - len(splits))
    dims = ", ".join(map(split_text, (*splits, *whole)))
    return f"#sdy.sharding<{symbol}, [{dims}]>"


def split_text(split: Split) -> str:
    """One dimension of a Shardy sharding."""
    if split is None:
        return "{?}"
    return "{" + ", ".join(f'"{name}"' for name in split) + "}"


def first_device_text(results: int) -> str:
    """The Shardy sharding of an operation that the first device does for all.

    >>> first_device_text(2)
    '#sdy.sharding_per_value<[<@first_device, []>, <@first_device, []>]>'
    """
    values = ", ".join(["<@first_device, []>"] * max(1, results))
    return f"#sdy.sharding_per_value<[{values}]>"

"""Floor 4: the meshes that a module over several devices declares and names.

A mesh gets a symbol when something is first placed on it, and programs for one device
declare none::

    Meshes((0, 1)).layout(layout, aval)     # '#sdy.sharding<@mesh, [{"x"}]>'
"""

from math import prod

import numpy as np
from attrs import evolve

from verax.backend.lowering.mlir_text import stored_shape
from verax.ir.avals import ShapedArray
from verax.ir.meshes import (
    FIRST_DEVICE,
    NO_TERMS,
    AxisType,
    BaseMesh,
    Layout,
    MeshAxes,
    MeshType,
    explicit_layout_text,
    first_device_text,
    layout_text,
    mesh_text,
    terms_of,
)


class Meshes:
    """Symbols of meshes; `order` are the devices of the program, by number.

    `mesh` is the one over which the program is spread. In the program of each device
    of a mesh, `own` has its axes, and `order` is empty.
    """

    def __init__(
        self,
        order: tuple[int, ...] = (),
        mesh: BaseMesh | None = None,
        own: MeshAxes | None = None,
    ) -> None:
        self.order = order
        self.mesh = mesh
        self.own = own
        self.symbols: dict[MeshAxes, str] = {}
        self.typed: dict[tuple[MeshType, ShapedArray], str] = {}
        self.first_device = False

    def lines(self) -> list[str]:
        """The declarations of the meshes named so far."""
        found = [
            f"  sdy.mesh {symbol} = {mesh_text(mesh, self.order)}\n"
            for mesh, symbol in self.symbols.items()
        ]
        return [*found, FIRST_DEVICE] if self.first_device else found

    def layout(self, layout: Layout, aval: ShapedArray) -> str | None:
        """See `Emitter.layout`."""
        if len(self.order) < 2:
            return None
        symbol = self.symbol(layout.mesh)
        ndim = len(stored_shape(aval))
        terms = layout.terms if aval.size else NO_TERMS  # XLA drops constraints of none
        return layout_text(symbol, layout.splits, ndim, terms)

    def numbered(self, layout: Layout | None) -> Layout | None:
        """The layout, whose devices are positions in this program, over its devices."""
        if layout is None:
            return None
        devices = tuple([self.order[place] for place in layout.mesh.devices])
        return evolve(layout, mesh=evolve(layout.mesh, devices=devices))

    def typed_layout(self, mesh: MeshType, aval: ShapedArray) -> str | None:
        """See `Emitter.typed_layout`."""
        if len(self.order) < 2:
            return None
        key = (mesh, aval)
        found = self.typed.get(key)
        if found is None:
            found = self.typed[key] = self.written_layout(mesh, aval)
        return found

    def written_layout(self, mesh: MeshType, aval: ShapedArray) -> str:
        """The text of `typed_layout`."""
        explicit = aval.explicit
        splits = ((),) * aval.ndim if explicit is None else explicit.splits
        free = AxisType.Auto in mesh.types
        ndim = len(stored_shape(aval))
        symbol = self.symbol(self.concrete(mesh))
        terms = terms_of(explicit) if aval.size else NO_TERMS
        return explicit_layout_text(symbol, splits, ndim, free, terms)

    def concrete(self, mesh: MeshType) -> MeshAxes:
        """The devices along the axes of a type: those of the program's own mesh."""
        own = self.mesh
        if own is not None and (own.axis_names, own.axis_sizes) == (
            mesh.names,
            mesh.sizes,
        ):
            axes: MeshAxes | None = getattr(own, "axes", None)
            if axes is not None:
                return axes
        return MeshAxes(mesh.names, mesh.sizes, self.order)

    def symbol(self, mesh: MeshAxes) -> str:
        """The name of a mesh in the module."""
        number = len(self.symbols)
        return self.symbols.setdefault(mesh, f"@mesh_{number}" if number else "@mesh")

    def sharding_attribute(self, layout: Layout | None, aval: ShapedArray) -> str:
        """The attribute of an argument or result with this layout."""
        text = None if layout is None else self.layout(layout, aval)
        return "" if text is None else f"sdy.sharding = {text}"

    def meeting(self, axes: tuple[str, ...]) -> tuple[tuple[int, ...], ...] | None:
        """See `Emitter.meeting`: programs have devices in the order of their numbers.

        >>> own = MeshAxes(("x", "y"), (2, 2), (0, 1, 3, 2))
        >>> Meshes(own=own).meeting(("y",)), Meshes(own=own).meeting(("x",))
        (((0, 1), (3, 2)), ((0, 3), (1, 2)))
        """
        mesh = self.own
        if mesh is None or not set(axes) <= set(mesh.names):
            return None
        order = sorted(mesh.devices)
        places = np.array([order.index(i) for i in mesh.devices]).reshape(mesh.sizes)
        found = np.moveaxis(
            places, [mesh.names.index(name) for name in axes], range(-len(axes), 0)
        )
        count = prod([mesh.size(name) for name in axes])
        return tuple([tuple(row) for row in found.reshape(-1, count).tolist()])

    def on_first_device(self, results: int) -> dict[str, str]:
        """The attribute of a call that one device of several makes for all."""
        if len(self.order) < 2:
            return {}
        self.first_device = True
        return {"sdy.sharding": first_device_text(results)}

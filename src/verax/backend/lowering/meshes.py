"""Floor 4: the meshes that a module over several devices declares and names.

One idea: a mesh gets a symbol when something is first placed on it, and programs for
one device declare none::

    Meshes((0, 1)).layout(layout, aval)     # '#sdy.sharding<@mesh, [{"x"}]>'
"""

from verax.backend.lowering.mlir_text import stored_shape
from verax.ir.avals import ShapedArray
from verax.ir.meshes import (
    FIRST_DEVICE,
    Layout,
    MeshAxes,
    first_device_text,
    layout_text,
    mesh_text,
)


class Meshes:
    """Symbols of meshes; `order` are the devices of the program, by number."""

    def __init__(self, order: tuple[int, ...] = ()) -> None:
        self.order = order
        self.symbols: dict[MeshAxes, str] = {}
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
        number = len(self.symbols)
        symbol = self.symbols.setdefault(
            layout.mesh, f"@mesh_{number}" if number else "@mesh"
        )
        return layout_text(symbol, layout.splits, len(stored_shape(aval)))

    def sharding_attribute(self, layout: Layout | None, aval: ShapedArray) -> str:
        """The attribute of an argument or result with this layout."""
        text = None if layout is None else self.layout(layout, aval)
        return "" if text is None else f"sdy.sharding = {text}"

    def on_first_device(self, results: int) -> dict[str, str]:
        """The attribute of a call that one device of several makes for all."""
        if len(self.order) < 2:
            return {}
        self.first_device = True
        return {"sdy.sharding": first_device_text(results)}

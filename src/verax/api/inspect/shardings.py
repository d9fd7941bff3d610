"""Floor 5: how arrays lie on devices, as values and as a picture in text.

A sharding says which part of an array each device holds, so a picture of it is a table
whose cells are the parts, as wide and high as these, with the devices that hold them::

    visualize_sharding((8, 8), x.sharding)      # ┌───────┬───────┐
                                                # │ CPU 0 │ CPU 1 │
                                                # └───────┴───────┘
"""

import colorsys
import sys
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from typing import TypedDict, Unpack

from attrs import field, frozen

from verax.api.host.callbacks import Held
from verax.api.tracing.wrapping import function_name
from verax.backend import pytrees
from verax.backend.arrays.concrete import default_place
from verax.backend.placement.mesh import PartitionSpec
from verax.backend.placement.sharding import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
)
from verax.backend.runtime.client import Device
from verax.ir.avals import ShapedArray
from verax.ir.meshes import BaseMesh, TypeSharding
from verax.ir.records import ReprMixin
from verax.ops.calls.inspect_sharding import InspectParams, inspect_sharding_p
from verax.rules.rows.builder import Tracer, program
from verax.rules.rows.emitter import Part
from verax.rules.values.array import Array
from verax.rules.values.conversions import check_callable, described
from verax.rules.values.state import STATE, interpreting

type Color = str | Sequence[float]
type ColorMap = Callable[[float], Color]


class Drawing(TypedDict, total=False):
    """How a picture is drawn, see `visualize_sharding`."""

    use_color: bool
    scale: float
    min_width: int
    max_width: int
    color_map: ColorMap | None


ASPECT = 2.5
"""The height of a character over its width."""
HEIGHT = 10
"""The lines of a picture at scale 1."""


def inspect_array_sharding(
    value: object, *, callback: Callable[[Sharding], object]
) -> None:
    """Call `callback` with the sharding of each array of a pytree.

    Inside `jit` the compiler decides how values lie, so it is called when the program
    is compiled, once for each value, and never by later calls. Under `vmap` it is told
    how the whole batch lies, and inside `shard_map` how the part of each device does.

    Raises:
        TypeError: a leaf is not an array.

    >>> import verax
    >>> inspect_array_sharding(verax.numpy.zeros(3), callback=print)
    SingleDeviceSharding(device=CpuDevice(id=0))
    >>> @verax.jit
    ... def f(x):
    ...     inspect_array_sharding(x + 1, callback=print)
    ...     return x
    >>> f(f(1.0))
    SingleDeviceSharding(device=CpuDevice(id=0))
    Array(1., dtype=float32, weak_type=True)
    """
    for leaf in pytrees.flatten(value)[0]:
        inspect_leaf(leaf, callback)


def inspect_leaf(x: object, callback: Callable[[Sharding], object]) -> None:
    """Call `callback` with the sharding of an array, now or by the compiler."""
    if isinstance(x, Tracer):
        check_callable("inspect_array_sharding", callback)
        inspect_sharding_p.bind(InspectParams(ShardingViewer(Held(callback))), x)
        return
    if not isinstance(x, Array):
        raise TypeError(f"inspect_array_sharding takes arrays, not {described(x)}")
    callback(x.sharding)


@frozen(cache_hash=True, repr=False)
class ShardingViewer(ReprMixin):
    """A function that is told the shardings of values; see `Viewer` of floor 1."""

    callback: Held[Callable[[Sharding], object]] = field(repr=False)

    @property
    def __name__(self) -> str:
        return function_name(self.callback.value)

    @property
    def transient(self) -> bool:
        """Whether a memo must not keep the function alive."""
        return self.callback.transient

    def of(self, aval: ShapedArray, parts: int) -> "ShardingView":
        """See `Viewer.of`."""
        return ShardingView(self, aval, parts)

    def alone(self, device: object) -> None:
        """See `View.alone`."""
        place = SingleDeviceSharding(device) if isinstance(device, Device) else None
        self.tell(place or default_place())

    def tell(self, place: Sharding) -> None:
        """Call the function, outside of any trace."""
        with interpreting(STATE.eager):
            self.callback.value(place)


@frozen(cache_hash=True, repr=False)
class ShardingView(ReprMixin):
    """One value of which a viewer is told; see `View` of floor 1."""

    viewer: ShardingViewer
    aval: ShapedArray
    parts: int

    @property
    def transient(self) -> bool:
        """Whether a memo must not keep the function alive."""
        return self.viewer.transient

    def alone(self, device: object) -> None:
        """See `View.alone`."""
        self.viewer.alone(device)

    def factors(self, mesh: BaseMesh) -> str | None:
        """See `Partitioner.factors`: whatever lies as it does."""
        return None

    def part(
        self,
        mesh: BaseMesh,
        ins: Sequence[TypeSharding],
        outs: Sequence[TypeSharding],
    ) -> Part:
        """See `Partitioner.part`: each device keeps its part."""
        (place,) = ins
        assert isinstance(place, NamedSharding)
        entries = [*place.spec][self.parts : self.aval.ndim]
        self.viewer.tell(place.update(spec=PartitionSpec(*entries)))
        shape = place.shard_shape(self.aval.shape)
        tile = self.aval.with_explicit(None).with_shape(shape)
        return Part(program([tile], lambda x: [x]), mesh, (place,), (place,))


def visualize_array_sharding(arr: Array, **kwargs: Unpack[Drawing]) -> None:
    """Print which device holds which part of an array of one or two dimensions.

    Inside `jit` it prints when the program is compiled. Keywords are those of
    `visualize_sharding`.

    >>> import verax
    >>> visualize_array_sharding(verax.numpy.zeros(5))
    ┌───────┐
    │ CPU 0 │
    └───────┘
    """
    inspect_leaf(arr, partial(visualize_sharding, tuple(arr.shape), **kwargs))


def visualize_sharding(
    shape: Sequence[int],
    sharding: Sharding,
    *,
    use_color: bool = True,
    scale: float = 1.0,
    min_width: int = 9,
    max_width: int = 80,
    color_map: ColorMap | None = None,
) -> None:
    """Print which device would hold which part of an array of this shape.

    Args:
        shape: of the array, which has one or two dimensions.
        sharding: how it lies on devices.
        use_color: give each part a colour instead of a frame, where the standard output
            is a terminal.
        scale: the size of the picture.
        min_width: of a part, its frame included.
        max_width: of the whole picture.
        color_map: a function from numbers between 0 and 1 to colours, as those of
            matplotlib are: (red, green, blue, ...) between 0 and 1, or "#rrggbb".

    Raises:
        ValueError: the array has no dimension, or more than two.
    """
    if len(shape) not in (1, 2):
        raise ValueError(
            "visualize_sharding draws arrays of one or two dimensions, not of "
            f"{len(shape)}: select a part of the array first"
        )
    cells = Cells.of(tuple(shape), sharding, scale, min_width, max_width)
    if use_color and sys.stdout.isatty():
        lines = cells.colored(color_map or rainbow)
    else:
        lines = cells.framed()
    sys.stdout.write("".join(line + "\n" for line in lines))


@frozen(repr=False)
class Cells(ReprMixin):
    """A table of parts: what each says, and how wide and high it is in its frame."""

    words: tuple[tuple[str, ...], ...]
    widths: tuple[int, ...]
    height: int

    @classmethod
    def of(
        cls,
        shape: tuple[int, ...],
        sharding: Sharding,
        scale: float,
        min_width: int,
        max_width: int,
    ) -> "Cells":
        """The parts of an array; one of one dimension is a row."""
        words = holders(shape, sharding)
        rows, columns = len(words), len(words[0])
        high = int(HEIGHT * scale)
        across = shape[1] if len(shape) == 2 else 1
        wide = int(high * across / max(shape[0], 1)) / columns * ASPECT
        width = min(max(int(wide), min_width), max_width) - 2
        share = (max_width - 1) // columns - 1
        widths = [
            max(min(width, share), *[len(row[i]) for row in words], 1)
            for i in range(columns)
        ]
        height = int(high / rows) - 1 if len(shape) == 2 else 1
        return cls(words, tuple(widths), max(height, 1))

    def framed(self) -> list[str]:
        """The lines of the table, with frames around its cells."""
        bars = ["─" * width for width in self.widths]
        between = f"├{'┼'.join(bars)}┤"
        lines = [f"┌{'┬'.join(bars)}┐"]
        for i, row in enumerate(self.words):
            lines += [between] * (i > 0)
            for middle in self.places():
                cells = [
                    centred(word if middle else "", width)
                    for word, width in zip(row, self.widths, strict=True)
                ]
                lines.append(f"│{'│'.join(cells)}│")
        return [*lines, f"└{'┴'.join(bars)}┘"]

    def colored(self, color_map: ColorMap) -> list[str]:
        """The lines of the table, each cell on a ground of its own colour."""
        columns = len(self.widths)
        count = len(self.words) * columns
        lines = []
        for i, row in enumerate(self.words):
            grounds = [color_map(part(i * columns + j, count)) for j in range(columns)]
            for middle in self.places():
                cells = [
                    painted(centred(word if middle else "", width + 2), ground)
                    for word, width, ground in zip(
                        row, self.widths, grounds, strict=True
                    )
                ]
                lines.append("".join(cells))
        return lines

    def places(self) -> list[bool]:
        """The lines of a row that have the words."""
        return [i == (self.height - 1) // 2 for i in range(self.height)]


def holders(shape: tuple[int, ...], sharding: Sharding) -> tuple[tuple[str, ...], ...]:
    """The devices that hold each part, as a table."""
    kind = sharding.ordered[0].platform.upper()
    tiling = sharding.tiling(len(shape))
    sharding.check(shape)
    rows, columns = (1, *tiling.counts)[-2:]
    out: list[list[list[int]]] = [[[] for _ in range(columns)] for _ in range(rows)]
    for device, place in zip(sharding.ordered, tiling.places, strict=True):
        row, column = (0, *place)[-2:]
        out[row][column].append(device.id)
    return tuple(
        tuple(f"{kind} {','.join(map(str, sorted(ids)))}" for ids in row) for row in out
    )


def centred(word: str, width: int) -> str:
    """A word in the middle, or half a character to the left of it."""
    left = max(width - len(word), 0) // 2
    return (" " * left + word).ljust(width)


def part(number: int, count: int) -> float:
    """A number between 0 and 1 for each of `count`, far from that of its neighbours."""
    half = ceil(count / 2)
    order = number // 2 if number % 2 == 0 else half + number // 2
    return order / max(count - 1, 1)


def rainbow(x: float) -> Color:
    """Pale colours around the wheel."""
    return colorsys.hsv_to_rgb(x * 0.9, 0.45, 0.9)


def painted(text: str, ground: Color) -> str:
    """Text on a colour, black or white, whichever is easier to read."""
    if isinstance(ground, str):
        red, green, blue = bytes.fromhex(ground.lstrip("#"))[:3]
    else:
        red, green, blue = [int(x * 255) for x in ground[:3]]
    ink = 30 if 0.299 * red + 0.587 * green + 0.114 * blue > 150 else 97
    return f"\x1b[48;2;{red};{green};{blue}m\x1b[{ink}m{text}\x1b[0m"

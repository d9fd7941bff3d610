"""Floor 4: arrays with values: read-only NumPy memory, a device buffer, or both.

One idea: an eager result stays in NumPy until a compiled program wants it, and a
compiled result stays on its device until Python wants it; either is made from the
other without a copy where the memory allows, and kept::

    x = from_host(np.ones(3, np.float32), ShapedArray((3,), float32))
    x.device_buffer(), x.numpy()
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Final

import numpy as np
from attrs import field, frozen
from jaxlib import _jax

from verax.backend.arrays.places import (
    Exchangeable,
    Placed,
    copied,
    is_elsewhere,
    spread,
    stored_aval,
    to_numpy,
)
from verax.backend.placement.mesh import (
    AbsentDevice,
    Mesh,
    PartitionSpec,
    current_mesh,
)
from verax.backend.placement.sharding import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    check_present,
    is_local,
    runtime_sharding,
)
from verax.backend.runtime import buffers
from verax.backend.runtime.buffers import Buffer
from verax.backend.runtime.client import Device, local_devices
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import (
    INTEGER_SET,
    ExtendedDType,
    KeyDType,
    bool_,
    device_value,
    float0,
)
from verax.ir.records import ReprMixin
from verax.rules.values.array import Array
from verax.rules.values.conversions import ConcretizationTypeError, Refusal
from verax.rules.values.memo import memo, pure
from verax.rules.values.state import (
    STATE,
    Context,
    State,
    current_context,
    user_source,
)

# -----------------------------------------------------------------------------
# How the elements of an array follow each other in memory.
#
# A layout is the order of the dimensions, slowest first; a format is a layout at a
# place. verax keeps every argument and result row-major, so formats are read-only::


type Tiles = tuple[tuple[int, ...], ...]


def as_order(sizes: Iterable[int]) -> tuple[int, ...]:
    return tuple(sizes)


def as_tiles(tiling: Iterable[Iterable[int]] | None) -> Tiles | None:
    return None if tiling is None else tuple(map(tuple, tiling))


@frozen(repr=False)
class Layout(ReprMixin):
    """The order of the dimensions in memory, the one that varies slowest first.

    `tiling` are the tiles of devices that store arrays in tiles, None if unspecified;
    `sub_byte_element_size_in_bits` is not 0 where elements share bytes.
    """

    __module__ = "verax.experimental.layout"

    AUTO: ClassVar["AutoLayout"]
    major_to_minor: tuple[int, ...] = field(converter=as_order)
    tiling: Tiles | None = field(default=None, converter=as_tiles)
    sub_byte_element_size_in_bits: int = 0

    @classmethod
    def row_major(cls, ndim: int) -> "Layout":
        """The layout of NumPy's ordinary arrays."""
        return cls(tuple(range(ndim)), ())

    @property
    def in_rows(self) -> bool:
        """Whether the last dimension varies fastest, without tiles."""
        order = tuple(range(len(self.major_to_minor)))
        return self.major_to_minor == order and not self.tiling

    @classmethod
    def from_runtime(cls, layout: _jax.PjRtLayout, ndim: int) -> "Layout":
        """The layout that jaxlib reports; the first `ndim` dimensions are the user's.

        An array of keys has one dimension more on the device than for its user.
        """
        out = layout._xla_layout()
        order = reversed(out.minor_to_major())
        return cls(
            tuple([i for i in order if i < ndim]),
            out.tiling(),
            out.element_size_in_bits(),
        )


class AutoLayout:
    """The layout that the compiler chooses: `Layout.AUTO`."""

    def __repr__(self) -> str:
        return "AutoLayout"


Layout.AUTO = AutoLayout()


@frozen(repr=False)
class Format(ReprMixin):
    """A memory layout and a sharding; either may be None, for unspecified.

    Raises:
        TypeError: `layout` is not a `Layout`, or `sharding` not a `Sharding`.
        ValueError: there is a layout but no sharding.
    """

    __module__ = "verax.experimental.layout"

    layout: Layout | AutoLayout | None = None
    sharding: Sharding | None = None

    def __attrs_post_init__(self) -> None:
        if not isinstance(self.layout, Layout | AutoLayout | None):
            raise TypeError(f"a Format takes a Layout or None, not {self.layout!r}")
        if not isinstance(self.sharding, Sharding | None):
            raise TypeError(f"a Format takes a Sharding or None, not {self.sharding!r}")
        if isinstance(self.layout, Layout) and self.sharding is None:
            raise ValueError(
                "a Format with a layout needs a sharding: layouts belong to devices"
            )


# -----------------------------------------------------------------------------
# Arrays with values: read-only NumPy memory, a device buffer, or both.


# NumPy numbers the dtypes of other packages, such as bfloat16, from here.
FIRST_OF_USERS = 256


class OnDevices(Array):
    """The facts about its place that an array states.

    `kind` is what compiled programs are looked up by. It is the array's type, the very
    object `aval`, unless the array has a place of its own: what is plain takes the
    short paths, which ask `x.kind is x.aval`.
    """

    __slots__ = ("kind",)
    kind: ShapedArray | Placed

    @property
    def placed(self) -> Placed | None:
        """The place of its own that the array has, if it has one."""
        kind = self.kind
        return kind if type(kind) is Placed else None

    @property
    def committed(self) -> bool:
        """Whether the user chose the device."""
        own = self.placed
        return own is not None and own.committed

    @property
    def sharding(self) -> Sharding:
        """The device or devices of the values: the first device, unless placed."""
        own = self.placed
        return SingleDeviceSharding(local_devices()[0]) if own is None else own.place

    @property
    def device(self) -> Any:
        """The device of the values; of an array on several devices, its sharding."""
        sharding = self.sharding
        return (
            next(iter(sharding.device_set)) if sharding.num_devices == 1 else sharding
        )

    def devices(self) -> set[Device]:
        """The devices that hold the values."""
        return self.sharding.device_set

    def platform(self) -> str:
        """The platform of the devices that hold the values, such as "cpu"."""
        return next(iter(self.devices())).platform

    def clone(self) -> Array:
        """A copy in memory of its own."""
        return copy(self)

    @property
    def format(self) -> Format:
        """The device or devices of the values, and their layout: row-major."""
        return Format(Layout.row_major(self.ndim), self.sharding)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can reach all of the values."""
        return self.sharding.is_fully_addressable

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device of the array holds all of it."""
        return self.sharding.is_fully_replicated


def words(keys: np.ndarray) -> np.ndarray:
    """The 32-bit words of stored keys, in the last dimension."""
    return np.ascontiguousarray(keys).reshape(*keys.shape, 1).view(np.uint32)


class InNotebooks(Exchangeable):
    """What notebooks show of arrays of random keys; ordinary ones are shown as text."""

    __slots__ = ()

    @property
    def _repr_html_(self) -> Callable[[], str]:
        if not isinstance(self.aval.dtype, KeyDType):
            raise AttributeError("only arrays of keys have an HTML representation")
        assert isinstance(self, ConcreteArray), "it is the only subclass"
        return partial(keys_html, self, self.aval.dtype)


class ConcreteArray(OnDevices, InNotebooks):
    """An array of values; made by the library, never by calling the class.

    `host` and `buffer` hold the same values, at least one of them unless the array
    was deleted. `ended` is set only then, and says how. An array holds nothing else
    but its `aval` and its `kind`, because each call makes some.
    """

    __slots__ = ("__weakref__", "buffer", "ended", "host")

    host: np.ndarray | None
    buffer: Buffer | None
    ended: str

    def numpy(self) -> np.ndarray:
        """The values as a read-only NumPy array; waits for them.

        Raises:
            RuntimeError: the array was deleted or donated.
        """
        if self.host is not None:
            return self.host
        buffer = self.buffer  # one read: another thread may delete the array
        if buffer is None or buffers.is_deleted(buffer):
            raise self.gone()
        own = self.placed
        if own is None:
            values = buffers.to_numpy(buffer)
        else:
            values = to_numpy(buffer, own.place, stored_aval(self.aval))
        self.host = values
        return values

    def stored(self) -> np.ndarray:
        return self.numpy()

    def __iter__(self) -> Iterator[Array]:
        """The rows one after the other, each made when it is asked for."""
        if self.kind is not self.aval or not self.shape:
            return super().__iter__()  # the rows lie where the array does
        keys = isinstance(self.aval.dtype, ExtendedDType)  # whose uses are counted
        far = State.accelerated and self.host is None  # the rows stay on the device
        if keys or far or not STATE.interpreter.immediate:
            return super().__iter__()  # a trace writes the rows
        return rows_of(self.numpy(), self.aval)

    def device_buffer(self, copy: bool = False) -> Buffer:
        """The values on a device: where they are, or on the default device.

        With `copy`, values that are not on a device yet get memory of the runtime's,
        which a program may take over.

        Raises:
            RuntimeError: the array was deleted or donated.
        """
        if (buffer := self.buffer) is not None:
            return buffer
        if (host := self.host) is None:
            raise self.gone()
        own = self.placed
        if own is None:
            buffer = to_buffer(host, self.aval, copy)
        else:
            buffer = spread(host, self.aval, own.place, copy=copy)
        self.buffer = buffer
        return buffer

    @property
    def addressable_shards(self) -> list["Shard"]:
        """The parts of the array that the devices of this process hold."""
        return [shard for shard in self.global_shards if shard.data is not None]

    @property
    def global_shards(self) -> list["Shard"]:
        """The parts on all devices; those of other processes have no data."""
        own = self.placed
        if own is None:
            return [Shard(self.device, (slice(None),) * self.ndim, 0, self)]
        return shards_of(self, own.place)

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.aval.weak_type else ""
        if unreadable(self) or self.nbytes >= LONG:
            return f"Array(shape={self.shape}, dtype={self.aval.dtype.name}{weak})"
        if isinstance(self.aval.dtype, ExtendedDType):
            return (
                f"Array({self.aval.shape}, dtype={self.aval.dtype.name}) overlaying:\n"
                f"{words(self.numpy())}"
            )
        text = np.array2string(
            printable(self.numpy()), separator=", ", prefix="Array(", suffix=","
        )
        name = self.aval.dtype.name
        shape = f", shape={self.shape}" if 0 in self.shape and self.ndim > 1 else ""
        return f"Array({text}{shape}, dtype={name}{weak})"

    def __str__(self) -> str:
        if isinstance(self.aval.dtype, ExtendedDType) or unreadable(self):
            return repr(self)
        return str(printable(self.numpy()))

    def __format__(self, spec: str) -> str:
        if isinstance(self.aval.dtype, ExtendedDType) or unreadable(self):
            return format(str(self), spec)
        values = printable(self.numpy())
        return format(values if self.shape else values[()], spec)

    def concrete(
        self, expected: str, refusal: Refusal = ConcretizationTypeError
    ) -> np.ndarray:
        return self.numpy()

    def block_until_ready(self) -> "ConcreteArray":
        """Wait until the values are computed; returns the array itself."""
        block_all((self,))
        return self

    def copy_to_host_async(self) -> None:
        """Start the transfer to the host, without waiting for it.

        What other processes hold has no transfer here: reading it raises.
        """
        if self.host is None and self.is_fully_addressable:
            buffers.copy_to_host_async((self.device_buffer(),))

    def is_ready(self) -> bool:
        """Whether the values are computed; never waits."""
        return self.host is not None or buffers.is_ready(self.device_buffer())

    def is_deleted(self) -> bool:
        """Whether the memory was given back or donated."""
        return self.host is None and (
            self.buffer is None or buffers.is_deleted(self.buffer)
        )

    def delete(self) -> None:
        """Give the memory back now; every later use raises RuntimeError.

        Memory that NumPy or another library still sees stays until they let it go.
        """
        if not self.is_deleted():
            self.end(f"by x.delete() at {user_source(1)}")

    def end(self, how: str) -> None:
        """Forget the values; `how` goes into "Array has been deleted {how}"."""
        buffer = self.buffer
        self.ended = how
        self.host = self.buffer = None
        if buffer is not None:
            buffers.release(buffer)

    def gone(self) -> RuntimeError:
        """The error for any use of the array once it is deleted."""
        how = getattr(self, "ended", "with its memory")
        return RuntimeError(
            f"Array has been deleted with shape={self.aval.str_short()}. It was "
            f"deleted {how}: keep a copy of what you still need, or do not delete or "
            "donate it"
        )

    def __reduce__(self) -> tuple[object, ...]:
        # Devices belong to a process, so what is pickled are the values.
        return from_host, (np.array(self.numpy()), self.aval.with_explicit(None))

    def __copy__(self) -> "ConcreteArray":
        own = self.placed
        if own is None:
            return from_host(self.numpy(), self.aval)
        return placed(*own, buffer=self.device_buffer())

    def __deepcopy__(self, memo: object) -> "ConcreteArray":
        own = self.placed
        if own is None:
            return from_host(self.numpy().copy(), self.aval)
        if not own.place.is_fully_addressable:
            buffer = copied(self.device_buffer(), own.place, self.aval)
            return placed(*own, buffer=buffer)
        return placed(*own, host=self.numpy().copy())


ConcreteArray.__name__ = "Array"  # as errors of Python call it

LONG: Final = 1 << 20
"""Bytes from which on `repr` leaves out the values, as in JAX."""


def unreadable(x: ConcreteArray) -> bool:
    """Whether values of the array are in other processes only."""
    own = x.placed
    return own is not None and x.host is None and is_elsewhere(own.place)


SHOWN_KEYS: Final = 8
"""So many keys are shown with their words."""


def keys_html(keys: ConcreteArray, dtype: KeyDType) -> str:
    """The facts about an array of keys, and the words of the first ones."""
    from verax.ir.text.html import report, table
    from verax.ops.random.generators import generator

    facts = [
        ("shape", str(keys.shape)),
        ("implementation", generator(dtype.impl).name),
        ("dtype", dtype.name),
    ]
    if keys.is_deleted():
        facts.append(("words", "the array has been deleted"))
    elif unreadable(keys):
        facts.append(("words", "on devices of other processes"))
    elif keys.nbytes >= LONG:
        facts.append(("words", f"not shown: {keys.nbytes:,} bytes"))
    parts = [table("Random keys", (), facts)]
    if len(facts) == 3 and keys.size:
        left = keys.size - SHOWN_KEYS
        rest = f"and {left:,} more keys" if left > 0 else ""
        parts.append(table("Keys", ("index", "words"), word_rows(keys), rest=rest))
    return report(*parts)


def word_rows(keys: ConcreteArray) -> list[tuple[str, str]]:
    """The indices of the first keys, and their words in decimal."""
    places = [
        ", ".join(map(str, place))
        for place in islice(np.ndindex(keys.shape), SHOWN_KEYS)
    ]
    rows = words(keys.numpy()).reshape(keys.size, -1)[:SHOWN_KEYS]
    texts = [" ".join(map(str, row)) for row in rows.tolist()]
    return [(f"[{place}]", text) for place, text in zip(places, texts, strict=False)]


@frozen(eq=False, repr=False)
class Shard(ReprMixin):
    """The part of an array on one device.

    `index` says which part, `replica_id` which of the copies of that part it is.
    """

    __module__ = "verax"

    device: Device
    index: tuple[slice, ...]
    replica_id: int
    data: OnDevices | None


def printable(array: np.ndarray) -> np.ndarray:
    """The array in a dtype that NumPy prints well: its own, or a wider one."""
    if array.dtype.num < FIRST_OF_USERS:
        return array
    return array.astype(np.int32 if array.dtype in INTEGER_SET else np.float32)


def rows_of(values: np.ndarray, aval: ShapedArray) -> Iterator[Array]:
    """Arrays of the rows of NumPy values, whose type is `aval`."""
    row = aval.with_shape(aval.shape[1:])
    for i in range(len(values)):
        yield from_host(values[i, ...], row)


def from_host(array: np.ndarray, aval: ShapedArray) -> ConcreteArray:
    """An array of NumPy values of `aval`'s type, not to be written to any more."""
    made = ConcreteArray()  # half the time of `__new__`
    made.aval = made.kind = aval
    made.host = array
    made.buffer = None
    return made


def from_buffer(buffer: Buffer, aval: ShapedArray) -> ConcreteArray:
    """An array of values on a device."""
    made = ConcreteArray()  # half the time of `__new__`
    made.aval = made.kind = aval
    made.host = None
    made.buffer = buffer
    return made


def placed(
    aval: ShapedArray,
    place: Sharding,
    committed: bool,
    *,
    host: np.ndarray | None = None,
    buffer: Buffer | None = None,
) -> ConcreteArray:
    """An array of read-only values of NumPy, or of a buffer that lies as `place` says.

    Values that are on the host belong on the devices of `place` all the same.
    """
    if host is not None:
        check_present(place)
    return of_kind(kind_at(aval, place, committed), host, buffer)


def of_kind(
    kind: Placed, host: np.ndarray | None, buffer: Buffer | None
) -> ConcreteArray:
    """An array with a place of its own; see `placed`."""
    made = ConcreteArray()
    made.aval, made.kind, made.host, made.buffer = kind.aval, kind, host, buffer
    return made


def kind_at(aval: ShapedArray, place: Sharding, committed: bool) -> Placed:
    """The kind of an array with a place of its own, the type included."""
    if place.explicit or aval.explicit is not None:
        aval = typed_at(current_context(), aval, place)
    return Placed(aval, place, committed)


@memo(1 << 12)
def typed_at(context: Context, aval: ShapedArray, place: Sharding) -> ShapedArray:
    """The type of an array at a place: explicit mesh axes that split it are in it."""
    if not place.explicit:
        return aval.with_explicit(None)
    return aval.update(sharding=place)


def shards_of(x: ConcreteArray, place: Sharding) -> list[Shard]:
    """The shards on all devices; copies of one part are numbered from 0."""
    buffer = x.device_buffer()
    stored = stored_aval(x.aval)
    indices = place.devices_indices_map(stored.shape)
    tiles = place.tiling(x.ndim).places
    held = iter(buffers.parts_of(buffer))
    copies: dict[tuple[int, ...], int] = {}
    out = []
    for device, tile in zip(place.ordered, tiles, strict=True):
        number = copies.get(tile, 0)
        copies[tile] = number + 1
        index = indices[device][: x.ndim]
        data = None
        if is_local(device):
            shape = place.shard_shape(x.shape)
            own = SingleDeviceSharding(device, memory_kind=place.kind)
            aval = x.aval.with_explicit(None).with_shape(shape)
            part = buffers.retyped(next(held), stored_aval(aval))
            data = placed(aval, own, True, buffer=part)
        out.append(Shard(device, index, number, data))
    return out


def to_buffer(values: np.ndarray, aval: ShapedArray, copy: bool = False) -> Buffer:
    """NumPy values of type `aval` on the default device, copied only if necessary."""
    if not isinstance(aval.dtype, np.dtype):
        aval = ShapedArray(values.shape, aval.dtype.element_dtype)
    if aval.dtype == float0:
        values, aval = device_value(values, float0), ShapedArray(values.shape, bool_)
    return buffers.from_numpy(values, local_devices()[0], copy=copy, aval=aval)  # type: ignore[arg-type]  # extended dtypes are gone


def block_all(arrays: Sequence[object]) -> None:
    """Wait until every concrete array among `arrays` is computed.

    Raises:
        RuntimeError: one was deleted or donated.
    """
    waiting = []
    for x in arrays:
        if isinstance(x, ConcreteArray):
            buffer = x.buffer
            if buffer is not None and not buffer.is_deleted():
                waiting.append(buffer)
            elif x.is_deleted():
                raise x.gone()
    if waiting:
        buffers.block_until_ready(waiting)


# -----------------------------------------------------------------------------
# Arrays with a chosen place: on one device, or split over several.
#
# An array without a chosen place is on the first device and takes the short paths;
# every other says in its `kind` where it is::
#
#     x = put(values, SingleDeviceSharding(device), committed=True)
#     x.sharding, x.committed, x.addressable_shards


def default_place() -> SingleDeviceSharding:
    """The place of arrays without one, in this thread, now."""
    device = STATE.default_device
    return SingleDeviceSharding(local_devices()[0] if device is None else device)


def is_plain(place: Sharding, committed: bool) -> bool:
    """Whether an array with this place is an ordinary one."""
    if committed or place.other_memory is not None:
        return False
    return place.ordered == (local_devices()[0],)


def fresh(values: np.ndarray, aval: ShapedArray) -> ConcreteArray:
    """A new array of read-only NumPy values, on the default device."""
    if STATE.default_device is None:
        return from_host(values, aval)
    place = default_place()
    if is_plain(place, False):
        return from_host(values, aval)
    return placed(aval, place, False, host=values)


def beside(x: Array, *models: object) -> Array:
    """A new array of the host where the first of `models` with a place is committed to.

    For results that are computed without a row: what a row computes goes there by
    itself. Arrays that are split over devices say nothing.
    """
    if not isinstance(x, ConcreteArray) or x.committed:
        return x
    for model in models:
        if isinstance(model, ConcreteArray) and model.committed:
            place = model.sharding
            return put(x, place, committed=True) if place.num_devices == 1 else x
    return x


def at_home(x: Array) -> Array:
    """A new array where new arrays go: whole on the mesh in force, if it is explicit.

    Tracers, and arrays that have a place already, stay as they are.
    """
    mesh = current_mesh()
    if mesh is None or not STATE.interpreter.immediate:
        return x
    if not isinstance(x, ConcreteArray) or x.kind is not x.aval:
        return x
    place = whole_place(mesh, x.ndim)
    return x if place is None else put(x, place, committed=True)


@pure()
def whole_place(mesh: Mesh, ndim: int) -> NamedSharding | None:
    """Whole on every device of an explicit mesh, if the process sees these devices."""
    absent = any([isinstance(device, AbsentDevice) for device in mesh.devices.flat])
    if absent or not mesh.are_all_axes_explicit:
        return None
    return NamedSharding(mesh, PartitionSpec(*[None] * ndim))


def wrapper(
    aval: ShapedArray, place: Sharding, committed: bool
) -> Callable[[Buffer], ConcreteArray]:
    """Makes an array from a result that lies as `place` says."""
    kind = result_kind(aval, place, committed)
    if isinstance(kind, Placed):
        return lambda buffer: of_kind(kind, None, buffer)
    return lambda buffer: from_buffer(buffer, kind)


def result_kind(
    aval: ShapedArray, place: Sharding, committed: bool
) -> ShapedArray | Placed:
    """The kind of an array that lies as `place` says."""
    if is_plain(place, committed):
        return aval.with_explicit(None)
    return kind_at(aval, place, committed)


def put(x: ConcreteArray, place: Sharding, committed: bool) -> ConcreteArray:
    """The array at another place; memory is shared where it is there already.

    Raises:
        RuntimeError: the array was deleted or donated.
        ValueError: an array of this shape cannot lie so.
    """
    place.check(x.shape, f"an array {x.aval}")
    wrap = wrapper(x.aval, place, committed)
    if x.is_deleted():
        raise x.gone()
    if x.buffer is not None or x.host is None:
        buffer = x.device_buffer()
        if x.sharding.is_equivalent_to(place, x.ndim):
            return keeping_host(wrap(buffer), x)
        if is_whole(place) and is_whole(x.sharding):
            return wrap(buffers.copy_to_device(buffer, place.ordered[0]))
    if is_plain(place, committed):
        return from_host(x.numpy(), x.aval.with_explicit(None))
    return placed(x.aval, place, committed, host=x.numpy())


def is_whole(place: Sharding) -> bool:
    """Whether arrays lie undivided in the own memory of a device."""
    return place.num_devices == 1 and place.other_memory is None


def keeping_host(made: ConcreteArray, x: ConcreteArray) -> ConcreteArray:
    made.host = x.host
    return made


def buffer_at(x: ConcreteArray, place: Sharding) -> Buffer:
    """The values of an array on the devices of `place`."""
    if x.sharding.is_equivalent_to(place, x.ndim):
        return x.device_buffer()
    if x.buffer is not None:
        from verax.backend.runtime.transfers import check_transfer

        check_transfer("device_to_device", f"{x.aval} from {x.sharding} to {place}")
    return put(x, place, committed=True).device_buffer()


def joined(parts: Sequence[object], aval: ShapedArray, place: Sharding) -> Buffer:
    """One buffer of the parts on the local devices, in the order of their numbers."""
    stored = stored_aval(aval)
    local = [device for device in place.ordered if is_local(device)]
    sharding = runtime_sharding(place, len(stored.shape))
    return buffers.put_parts(stored, sharding, parts, local)


def devices_text(devices: Sequence[Device]) -> str:
    """Devices as messages name them."""
    return ", ".join(str(device) for device in devices)

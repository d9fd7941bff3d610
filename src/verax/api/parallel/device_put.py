"""Floor 5: arrays to devices and back.

One idea: a function on pytrees is a function on the leaves, and a place for each leaf
comes from a prefix of the tree::

    device_put({"w": w, "b": b}, NamedSharding(mesh, P("x")))
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

import numpy as np

from verax.api.jit import jit
from verax.api.sharding_args import (
    as_place,
    at_place,
    place_entries,
)
from verax.api.tracing.apply import as_array, is_tracing
from verax.api.tracing.trace import leaf_avals
from verax.api.tracing.wrapping import describe_leaves
from verax.backend import pytrees
from verax.backend.arrays.concrete import (
    ConcreteArray,
    block_all,
    buffer_at,
    fresh,
    is_plain,
    joined,
    placed,
    put,
    unreadable,
)
from verax.backend.eager.guarded import is_guarded
from verax.backend.placement.mesh import Mesh, PartitionSpec
from verax.backend.placement.sharding import (
    MemorySpace,
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    is_local,
)
from verax.backend.runtime.client import (
    Device,
    devices as client_devices,
    local_devices as client_local_devices,
    process_indices,
)
from verax.backend.runtime.transfers import check_transfer
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DTypeLike, as_dtype, canonical, is_extended, stored_dtype
from verax.ir.meshes import UnreducedKind
from verax.ops.structure.reshard import in_memory
from verax.rules.rows.builder import Tracer
from verax.rules.rows.leaks import UnexpectedTracerError
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import HostArray, described, shown
from verax.rules.values.state import STATE, UNCHANGED, State, asked_dtype, changing


@overload
def device_put(
    x: Array | HostArray,
    device: object = None,
    *,
    src: object = None,
    donate: object = False,
    may_alias: object = None,
) -> Array: ...
@overload
def device_put(
    x: object,
    device: object = None,
    *,
    src: object = None,
    donate: object = False,
    may_alias: object = None,
) -> Any: ...
def device_put(
    x: object,
    device: object = None,
    *,
    src: object = None,
    donate: object = False,
    may_alias: object = None,
) -> Any:
    """The tree with its leaves as arrays at `device`, committed to it.

    `device` is a device, a `Sharding` or `Format`, a `PartitionSpec` (within a mesh),
    a `memory.Space`, which leaves arrays on their devices, or a prefix tree of these;
    where it is None arrays stay where they are, and other leaves go to the default
    device, uncommitted. An array that is there already is returned itself, unless it is
    donated or `may_alias` is False. `src` is checked but not used, since arrays know
    where they are. `donate` gives up the arrays that were passed; `may_alias=False`
    asks for a copy, True allows shared memory, None allows it unless `donate`. Both are
    trees, or one value for all.

    In a trace a `NamedSharding` becomes a constraint, and a device is ignored; a memory
    (`memory.Space`, or the `memory_kind` of a sharding) is asked of the compiler.

    Raises:
        TypeError: a leaf is not an array, or a place is none.
        ValueError: `donate` and `may_alias` are both True; an array cannot lie as the
            sharding says.

    >>> import verax, verax.numpy as vnp
    >>> x = verax.device_put(vnp.ones(2), verax.devices()[0])
    >>> x.committed, x.devices() == {verax.devices()[0]}
    (True, True)
    """
    plainly = device is None and src is None and donate is False and may_alias is None
    numeric = type(x) is np.ndarray and x.dtype.kind in "biufc"
    if plainly and numeric and STATE.interpreter.immediate and not is_guarded():
        return as_array(x)
    leaves, tree = pytrees.flatten(x)
    places = [
        entry
        if isinstance(entry, MemorySpace)
        else as_place("device_put device", entry, ValueError)
        for entry in place_entries("device_put device", device, x)
    ]
    for entry in place_entries("device_put src", src, x):
        if not isinstance(entry, MemorySpace):
            as_place("device_put src", entry, ValueError)
    donations = place_entries("device_put donate", donate, x)
    aliases = place_entries("device_put may_alias", may_alias, x)
    for give, share in zip(donations, aliases, strict=True):
        check_semantics(give, share)
    leaf_avals(leaves, describe_leaves("device_put", tree))
    outs = []
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Tracer) or is_tracing():
            outs.append(put_later(leaf, places[i]))
        else:
            place = memory_place(leaf, places[i])
            outs.append(put_leaf(leaf, place, donations[i], aliases[i]))
    return tree.unflatten(outs)


def put_later(leaf: object, place: Sharding | MemorySpace | None) -> Any:
    """A leaf in a trace: constrained to its place, in the memory that this asks for."""
    x, kind = as_array(leaf), None if place is None else place.kind
    if not isinstance(place, MemorySpace):
        x = at_place(x, place)
    return x if kind is None else in_memory(x, kind)


def memory_place(leaf: object, place: Sharding | MemorySpace | None) -> Sharding | None:
    """The place for a leaf: with a memory alone, where it is, in that memory."""
    if not isinstance(place, MemorySpace):
        return place
    own = as_array(leaf).sharding
    kind = place.kind
    return None if kind in (None, own.memory_kind) else own.with_memory_kind(kind)


def check_semantics(donate: object, may_alias: object) -> None:
    """Raise unless the two are booleans that go together."""
    if not isinstance(donate, bool) or not isinstance(may_alias, bool | None):
        raise TypeError(
            "device_put takes booleans for donate and may_alias (or None), not "
            f"{donate!r} and {may_alias!r}"
        )
    if donate and may_alias:
        raise ValueError(
            "device_put: may_alias and donate cannot be True at the same time: an "
            "array that gives up its memory cannot share it"
        )


def put_leaf(
    leaf: object, place: Sharding | None, donate: bool, may_alias: bool | None
) -> ConcreteArray:
    """One leaf as an array at its place, under one of the three copy semantics."""
    array = as_array(leaf)
    assert isinstance(array, ConcreteArray)
    if is_guarded():
        ask(array, place, array is leaf)
    if array.is_deleted():
        raise array.gone()
    committed = array.committed or place is not None
    target = place or array.sharding
    target.check(array.shape, f"an array {array.aval}")
    if may_alias is False and not donate and array is leaf and not unreadable(array):
        own = np.array(array.numpy())
        own.flags.writeable = False
        return with_buffer(placed_at(own, array.aval, target, committed))
    there = array.committed and target == array.sharding and array is leaf
    stays = place is None or (there and not donate)
    made = array if stays else moved(array, target, committed)
    if donate and array is leaf:
        made = made if made is not array else put(array, target, committed)
        # The memory lives on in what is returned; the old array forgets it.
        array.host = array.buffer = None
        array.ended = "when its memory was donated to device_put"
    return made


def ask(array: ConcreteArray, place: Sharding | None, ours: bool) -> None:
    """Ask for the transfer of what the user puts somewhere; `ours` was an array.

    What lies on the same devices in another way is no transfer, as in JAX.

    Raises:
        JaxRuntimeError: it is not allowed.
    """
    what = f"{array.aval}, an argument of device_put"
    if not ours:
        check_transfer("host_to_device", what, explicit=True)
    elif place is not None and not place.is_equivalent_to(array.sharding, array.ndim):
        own = array.sharding
        stay = own.num_devices > 1 and own.device_set == place.device_set
        if not stay or own.other_memory != place.other_memory:
            check_transfer("device_to_device", what, explicit=True)


def with_buffer(x: ConcreteArray) -> ConcreteArray:
    """The array, its transfer started.

    Of an array over several processes only the parts are kept that are here: what the
    others have may be something else.
    """
    x.device_buffer()
    if State.joined and not x.is_fully_addressable:
        x.host = None
    return x


def same(x: Array) -> Array:
    return x


def moved(x: ConcreteArray, place: Sharding, committed: bool) -> ConcreteArray:
    """The array at another place; over several processes a program moves it.

    Raises:
        ValueError: that would need other devices than those of the array.
    """
    if unreduced_of(place) or unreduced_of(x.sharding):
        if x.sharding.is_equivalent_to(place, x.ndim):
            return with_buffer(put(x, place, committed))
        check_sums(place)
        if set(x.sharding.ordered) <= set(place.ordered):
            return resharded(x, place)
    if not (State.joined and unreadable(x)):
        return with_buffer(put(x, place, committed))
    if x.sharding.ordered != place.ordered:
        raise ValueError(
            f"device_put cannot move {x.aval} from {x.sharding}, which spans several "
            f"processes, to other devices, those of {place}: it can only be divided "
            "otherwise over its own. Read its addressable_shards, or bring it to every "
            "process with verax.experimental.multihost_utils.process_allgather"
        )
    place.check(x.shape, f"an array {x.aval}")
    return resharded(x, place)


def unreduced_of(place: Sharding) -> frozenset[str]:
    """The axes along which devices hold terms of an array that lies so."""
    return place.spec.unreduced if isinstance(place, NamedSharding) else frozenset()


def check_sums(place: Sharding) -> None:
    """Raise NotImplementedError for terms that are not those of a sum."""
    if isinstance(place, NamedSharding) and place.spec.unreduced_kind not in (
        None,
        UnreducedKind.sum,
    ):
        raise NotImplementedError(
            f"device_put cannot make terms of another kind than `sum`, as {place} asks "
            "for; a reduction with out_sharding can"
        )


def resharded(x: ConcreteArray, place: Sharding) -> ConcreteArray:
    """The array at another place, where a program moves it."""
    out = jit(same, out_shardings=place)(x)
    assert isinstance(out, ConcreteArray)
    return out


def placed_at(
    values: np.ndarray, aval: ShapedArray, place: Sharding, committed: bool
) -> ConcreteArray:
    """NumPy values that are not written to elsewhere, as an array with a place."""
    if is_plain(place, committed):
        return fresh(values, aval)
    return placed(aval, place, committed, host=values)


def stack_place(devices: Sequence[Device]) -> Sharding:
    """One element of a first dimension on each device."""
    given = list(devices) if isinstance(devices, Iterable) else []
    if not given or not all(isinstance(d, Device) for d in given):
        raise ValueError(
            "device_put_sharded and device_put_replicated take a non-empty sequence "
            f"of devices, such as verax.devices(), not {shown(devices)}"
        )
    if len(given) == 1:
        return SingleDeviceSharding(given[0])
    return NamedSharding(Mesh(np.array(given, object), ("_",)), PartitionSpec("_"))


def device_put_sharded(shards: Sequence[object], devices: Sequence[Device]) -> Any:
    """One array from a sequence of trees: shard i is on device i.

    The leaves are stacked along a new first dimension, which is split over `devices`.

    Raises:
        ValueError: the numbers of shards and devices, or the types of the shards,
            disagree.

    >>> import verax
    >>> verax.device_put_sharded([1.0], verax.devices()[:1]).tolist()
    [1.0]
    """
    place = stack_place(devices)
    if not isinstance(shards, Sequence):
        raise TypeError(
            "device_put_sharded takes a sequence with a tree for each device, not "
            f"{described(shards)}"
        )
    if len(shards) != len(devices):
        raise ValueError(
            f"device_put_sharded got {len(shards)} shards for {len(devices)} devices"
        )
    flat = [pytrees.flatten(shard) for shard in shards]
    tree = flat[0][1]
    if any(other != tree for _, other in flat):
        raise ValueError(
            "the shards of device_put_sharded must have the same structure"
        )
    outs = []
    for parts in zip(*[leaves for leaves, _ in flat], strict=True):
        avals = {aval_of(part) for part in parts}
        if len(avals) != 1:
            types = ", ".join(sorted(map(str, avals)))
            raise ValueError(
                f"the shards of device_put_sharded must have the same type, not {types}"
            )
        (aval,) = avals
        values = np.stack([stored_values(part, aval) for part in parts])
        whole = aval.with_shape((len(parts), *aval.shape))
        outs.append(with_buffer(placed(whole, place, True, host=values)))
    return tree.unflatten(outs)


def stored_values(x: object, aval: ShapedArray) -> np.ndarray:
    """An operand in NumPy, in the dtype of its type."""
    if isinstance(x, ConcreteArray):
        return x.numpy()
    return np.asarray(x, stored_dtype(aval.dtype))


def device_put_replicated(x: object, devices: Sequence[Device]) -> Any:
    """The tree with copies of each leaf on all devices, in a new first dimension.

    Raises:
        ValueError: there are no devices.

    >>> import verax
    >>> verax.device_put_replicated(1.0, verax.devices()[:1]).shape
    (1,)
    """
    stack_place(devices)
    return device_put_sharded([x] * len(devices), devices)


@overload
def device_get(x: Array) -> np.ndarray: ...
@overload
def device_get(x: object) -> Any: ...
def device_get(x: object) -> Any:
    """The tree with its arrays as NumPy arrays; all transfers start before any waits.

    Random keys and leaves that are not arrays stay what they are.

    >>> import verax, verax.numpy as vnp
    >>> verax.device_get((vnp.ones(2), 3))
    (array([1., 1.], dtype=float32), 3)
    """
    leaves, tree = pytrees.flatten(x)
    for leaf in leaves:
        if isinstance(leaf, ConcreteArray):
            leaf.copy_to_host_async()
    asked = STATE.transfer_guard_device_to_host is not None
    with changing({"fetching": True}) if asked else UNCHANGED:
        return tree.unflatten([fetched(leaf) for leaf in leaves])


def fetched(leaf: object) -> object:
    """A leaf in NumPy; keys, of which NumPy has none, are waited for and stay."""
    if not isinstance(leaf, ConcreteArray):
        return leaf
    if is_extended(leaf.dtype):
        return leaf.block_until_ready()
    return np.asarray(leaf)


def make_array_from_callback(
    shape: Sequence[int],
    sharding: Sharding,
    data_callback: Callable[[tuple[slice, ...]], object],
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """An array whose parts `data_callback(index)` returns, called once for each index.

    Raises:
        TypeError: parts have different dtypes.
        UnexpectedTracerError: a function is being traced.
        ValueError: the array cannot lie so, or a part has the wrong shape.

    >>> import numpy as np, verax
    >>> place = verax.sharding.SingleDeviceSharding(verax.devices()[0])
    >>> values = np.arange(3, dtype=np.int32)
    >>> make_array_from_callback((3,), place, lambda index: values[index]).tolist()
    [0, 1, 2]
    """
    size = tuple(shape)
    known: dict[str, tuple[np.ndarray, ShapedArray]] = {}
    parts = []
    if is_tracing():
        raise UnexpectedTracerError(
            "verax.make_array_from_callback cannot be called within a traced context: "
            "make the array outside of the function, and pass it"
        )
    if not isinstance(sharding, Sharding):
        raise TypeError(
            "make_array_from_callback takes a sharding as its second argument, not "
            f"{sharding!r}"
        )
    expected = sharding.shard_shape(size)
    for index in sharding.addressable_devices_indices_map(size).values():
        key = repr(index)
        if key not in known:
            known[key] = part = stored_part(data_callback(index), dtype)
            if part[1].shape != expected:
                raise ValueError(
                    f"Expected shard shape {expected} doesn't match the single device "
                    f"array shape {part[1].shape}, which data_callback returned for "
                    f"{index}"
                )
        parts.append(known[key])
    kinds = {aval.dtype for _, aval in parts}
    if len(kinds) != 1:
        raise TypeError(f"data_callback returned parts of different dtypes: {kinds}")
    aval = ShapedArray(size, kinds.pop())
    hosts = [values for values, _ in parts]
    if sharding.num_devices == 1:
        return with_buffer(placed(aval, sharding, True, host=hosts[0]))
    buffer = joined(hosts, aval, sharding)
    return placed(aval, sharding, True, buffer=buffer)


def stored_part(
    result: object, dtype: DTypeLike | None
) -> tuple[np.ndarray, ShapedArray]:
    """A part of an array as it is stored, and its type; keys stay keys."""
    if isinstance(result, Array) and is_extended(result.aval.dtype):
        return result.stored(), result.aval
    values = np.asarray(result)
    named = as_dtype(dtype or values.dtype)
    own = asked_dtype(named) if dtype else canonical(named, STATE.enable_x64)
    stored = np.array(values, stored_dtype(own), order="C")
    return stored, ShapedArray(stored.shape, own)


def device_of_part(what: str, part: object) -> Device:
    """The device of one of the parts of an array.

    Raises:
        ValueError: it is traced, or lies on several.
        TypeError: it is not an array.
    """
    if isinstance(part, Tracer):
        raise ValueError(
            f"{what} requires a list of concrete arrays as input, but one is traced: "
            f"{part!r}"
        )
    if not isinstance(part, ConcreteArray):
        raise TypeError(f"the parts must be arrays on devices, not {shown(part)}")
    if len(part.devices()) != 1:
        raise ValueError(
            "When making an array from single-device arrays the input arrays must have "
            f"one shard each. An argument array had {len(part.devices())} shard(s). It "
            f"lies on {part.sharding}"
        )
    (device,) = part.devices()
    return device


def make_array_from_single_device_arrays(
    shape: Sequence[int],
    sharding: Sharding,
    arrays: Sequence[object],
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """One array from parts that are on their devices already; nothing is moved.

    `dtype` is that of the parts, for processes that have none.

    Raises:
        ValueError: a device has no part or several, a part is traced, lies on several
            devices or has the wrong shape, `dtype` is not that of the parts, or there
            are none and no `dtype`.
        TypeError: `arrays` is not a list or tuple, a part is not an array, or parts
            have different dtypes.
    """
    what = "verax.make_array_from_single_device_arrays"
    if not isinstance(arrays, list | tuple):
        raise TypeError(
            f"{what} `arrays` argument must be a list or tuple, not {shown(arrays)}"
        )
    size = tuple(shape)
    expected = sharding.shard_shape(size)
    result: dict[Device, ConcreteArray] = {}
    for part in arrays:
        device = device_of_part(what, part)
        if device in result or device not in sharding.device_set:
            raise ValueError(
                f"{sharding} takes one part on each of its devices; got a part on "
                f"{part.sharding}"
            )
        if part.shape != expected:
            raise ValueError(
                f"the part on {device} has the shape {part.shape}, but the parts of an "
                f"array of shape {size} have {expected}"
            )
        result[device] = part
    local = [device for device in sharding.ordered if is_local(device)]
    if not result and dtype is None:
        raise ValueError(
            "If the Array has no addressable shards, `dtype` must be provided via the "
            f"`dtype` argument to `{what}`. The list of parts is empty"
        )
    missing = [str(device) for device in local if device not in result]
    if missing:
        raise ValueError(f"there is no part for {', '.join(missing)}")
    avals = {part.aval for part in result.values()}
    if len(avals) != 1:
        raise TypeError(f"the parts have different types: {sorted(map(str, avals))}")
    aval = avals.pop().with_shape(size)
    due = aval.dtype if dtype is None else canonical(as_dtype(dtype), STATE.enable_x64)
    if due != aval.dtype:
        raise ValueError(
            f"If `dtype` is provided to `{what}`, it must match the dtype of the "
            f"addressable shards. Got {due}, but they have {aval.dtype}"
        )
    parts = [result[device] for device in local]
    if sharding.num_devices == 1:
        return put(parts[0], sharding, committed=True)
    held = [buffer_at(part, part.sharding) for part in parts]
    return placed(aval, sharding, True, buffer=joined(held, aval, sharding))


# -----------------------------------------------------------------------------
# Devices and waiting.
#
# A function on pytrees is a function on the leaves::
#
#     block_until_ready({"w": x, "b": y})


def block_until_ready[T](x: T) -> T:
    """Wait until every array in the tree is computed; returns the tree.

    >>> import verax, verax.numpy as vnp
    >>> verax.block_until_ready(vnp.ones(2) + 1).tolist()
    [2.0, 2.0]
    """
    if isinstance(x, ConcreteArray):  # most often: spares the tree
        x.block_until_ready()
    else:
        block_all(pytrees.flatten(x)[0])
    return x


def copy_to_host_async[T](x: T) -> T:
    """Start the transfers of all arrays of the tree to the host; returns the tree.

    Leaves of other classes that have a method of this name are asked too.

    >>> import verax, verax.numpy as vnp
    >>> verax.copy_to_host_async([vnp.ones(2), 3])
    [Array([1., 1.], dtype=float32), 3]
    """
    for leaf in pytrees.flatten(x)[0]:
        if (start := getattr(leaf, "copy_to_host_async", None)) is not None:
            start()
    return x


def devices(backend: str | None = None) -> list[Device]:
    """All devices of the platform, the default one first."""
    return client_devices(backend)


def local_devices(
    process_index: int | None = None,
    backend: str | None = None,
    host_id: int | None = None,
) -> list[Device]:
    """The devices of one process, which is this one unless `process_index` says which.

    `host_id` is a former name of `process_index`, and warns.

    Raises:
        ValueError: there is no such process.

    >>> import verax
    >>> verax.local_devices() == verax.local_devices(verax.process_index())
    True
    """
    if host_id is not None:
        warnings.warn(
            "local_devices: host_id is now called process_index",
            UserWarning,
            stacklevel=2,
        )
        process_index = host_id
    if process_index is None:
        return client_local_devices(backend)
    if process_index not in process_indices(backend):
        raise ValueError(
            f"there is no process {process_index!r}; the processes are "
            f"{process_indices(backend)}"
        )
    every = client_devices(backend)
    return [device for device in every if device.process_index == process_index]

"""Floor 5: calling functions of the host from inside traced programs.

One idea: the user's function with everything that surrounds it (the structure of its
arguments and results, what is not an array) is one value that takes and gives arrays of
NumPy; under a trace it goes into an equation, and otherwise it is called::

    y = pure_callback(np.sin, ShapeDtypeStruct(x.shape, x.dtype), x)
"""

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np
from attrs import field, frozen

from verax.api.tracing.apply import is_tracing
from verax.api.tracing.structs import ShapeDtypeStruct
from verax.api.tracing.trace import leaf_avals
from verax.api.tracing.wrapping import describe_arguments, function_name
from verax.backend import pytrees
from verax.backend.arrays.concrete import from_host
from verax.backend.placement.mesh import current_mesh
from verax.backend.programs.placement import committed_place
from verax.backend.pytrees import PyTreeDef
from verax.backend.xla.callback_runs import RUNS
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DType, ExtendedDType, as_dtype, canonical, stored_dtype
from verax.ir.effects import IO, ORDERED_IO, Effect
from verax.ir.jaxpr import Source
from verax.ir.memos import holds
from verax.ir.meshes import MeshAxes
from verax.ir.records import ReprMixin
from verax.ops.calls.callbacks import (
    METHODS,
    CallbackParams,
    io_callback_p,
    pure_callback_p,
)
from verax.rules.programs.host import WrongStructure, called
from verax.rules.rows.row import Row
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import described, shown
from verax.rules.values.state import STATE, user_source


class Held[T]:
    """Any object as a value: equal by its own equality if it hashes, else itself."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def hashed(self) -> int | None:
        try:
            return hash(self.value)
        except TypeError:
            return None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Held):
            return False
        if self.value is other.value:
            return True
        out = self.hashed()
        return out is not None and (
            out == other.hashed() and bool(self.value == other.value)
        )

    @property
    def transient(self) -> bool:
        """Whether a memo must not keep the value alive."""
        return holds(self.value)

    def __hash__(self) -> int:
        out = self.hashed()
        return id(self.value) if out is None else out


@frozen(cache_hash=True, repr=False)
class UserFunction(ReprMixin):
    """A user's function on arrays of NumPy: see `HostFunction` of floor 1.

    `statics` are the leaves of the arguments that are not arrays, with their places;
    without `out_tree`, what the function returns is of no interest.
    """

    name: str = field(repr=False)
    function: Held[Callable[..., object]] = field(repr=False)
    tree: PyTreeDef = field(repr=False)
    dtypes: tuple[DType, ...] = field(repr=False)
    statics: tuple[tuple[int, Held[object]], ...] = field(repr=False)
    out_tree: PyTreeDef | None = field(repr=False)
    source: Source = field(eq=False, repr=False)

    @property
    def transient(self) -> bool:
        """Whether a memo must not keep the function alive."""
        trees = [tree for tree in (self.tree, self.out_tree) if tree is not None]
        return any(map(holds, (self.function, self.statics))) or any(
            map(pytrees.tree_holds, trees)
        )

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, *arrays: np.ndarray) -> Sequence[object]:
        leaves: list[object] = [
            from_host(x, array_type(x, dtype))
            for x, dtype in zip(arrays, self.dtypes, strict=True)
        ]
        for i, held in self.statics:
            leaves.insert(i, held.value)
        args, kwargs = self.tree.unflatten(leaves)
        out = self.function.value(*args, **kwargs)
        if self.out_tree is None:
            return ()
        result, tree = pytrees.flatten(out)
        if len(result) != self.out_tree.num_leaves:  # as in JAX, a list is a tuple
            raise WrongStructure(
                f"the structure {tree}, where result_shape_dtypes has {self.out_tree}"
            )
        return result


def array_type(x: np.ndarray, dtype: DType) -> ShapedArray:
    """The type of stored values: keys have the dimensions of their words at the end."""
    extra = len(dtype.element_shape) if isinstance(dtype, ExtendedDType) else 0
    return ShapedArray(x.shape[: x.ndim - extra], dtype)


def call_host(
    row: Row[CallbackParams],
    function: UserFunction,
    leaves: Sequence[object],
    results: tuple[ShapedArray, ...],
    effect: Effect | None,
    vmap_method: str | None,
    partitioned: bool = False,
) -> Sequence[object]:
    """The results of a callback: called now, or written into the current trace."""
    if not is_tracing() and all([committed_place(x) is None for x in leaves]):
        arrays = [host_values(x) for x in leaves]
        values = called(function, results, arrays)
        return [from_host(x, aval) for x, aval in zip(values, results, strict=True)]
    flags = (False,) * len(leaves)
    mesh = mesh_of_parts()
    params = CallbackParams(
        function,
        results,
        effect,
        vmap_method,
        (),
        flags,
        mesh,
        partitioned=partitioned,
    )
    return row.bind(params, *leaves)


def host_values(x: object) -> np.ndarray:
    """The read-only values of a concrete operand."""
    aval = aval_of(x)
    if isinstance(x, Array):
        return x.stored()
    values = np.array(x, stored_dtype(aval.dtype))
    values.flags.writeable = False
    return values


def result_types(
    result_shape_dtypes: object,
) -> tuple[tuple[ShapedArray, ...], PyTreeDef]:
    """The declared types of results.

    Raises:
        TypeError: a leaf has no shape and dtype, or is a key.
        ValueError: a leaf has 64 bits while x64 is off.
    """
    leaves, tree = pytrees.flatten(result_shape_dtypes)
    return tuple([result_type(leaf) for leaf in leaves]), tree


def result_type(leaf: object) -> ShapedArray:
    shape, given = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
    if shape is None or given is None:
        raise TypeError(
            f"result_shape_dtypes contains {described(leaf)}, which has no shape and "
            "dtype; pass verax.ShapeDtypeStruct(shape, dtype)"
        )
    dtype = as_dtype(given)
    if isinstance(dtype, ExtendedDType):
        raise TypeError(
            f"a callback cannot return keys ({dtype.name}): let it return their words "
            "as uint32, and make keys from those with verax.random.wrap_key_data"
        )
    if canonical(dtype, STATE.enable_x64) != dtype:
        raise ValueError(
            "result_shape_dtypes cannot specify 64-bit types while they are off, but "
            f"has {dtype.name}; use {canonical(dtype, False).name}, or enable them "
            '(verax.config.update("enable_x64", True))'
        )
    return ShapedArray(tuple(shape), dtype)


def check_sharding(name: str, sharding: object) -> None:
    """Raise unless `sharding` is one device, where the function runs anyway."""
    devices = getattr(sharding, "device_set", (sharding,))
    if sharding is not None and len(devices) != 1:
        raise ValueError(
            f"{name} takes a sharding over one device, from which the callback is "
            f"called, not {shown(sharding)}"
        )


def user_function(
    callback: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, Any],
    out_tree: PyTreeDef,
) -> tuple[UserFunction, Sequence[object]]:
    """The function as a value, and its operands.

    Raises:
        TypeError: it is not a function, or an argument is not an array.
    """
    if not callable(callback):
        raise TypeError(f"a callback must be a function, not {shown(callback)}")
    leaves, tree = pytrees.flatten((args, kwargs))
    avals = leaf_avals(leaves, describe_arguments(callback, tree))
    name, dtypes = function_name(callback), tuple([a.dtype for a in avals])
    held = Held(callback)
    source = user_source(2)
    return UserFunction(name, held, tree, dtypes, (), out_tree, source), leaves


def mesh_of_parts() -> MeshAxes | None:
    """The mesh over all of whose axes a `shard_map` maps this function, if it does."""
    mesh = current_mesh()
    return mesh.axes if mesh is not None and mesh.are_all_axes_manual else None


@overload
def pure_callback(
    callback: Callable[..., object],
    result_shape_dtypes: ShapeDtypeStruct | Array,
    *args: object,
    sharding: object = None,
    vmap_method: str | None = None,
    **kwargs: object,
) -> Array: ...
@overload
def pure_callback(
    callback: Callable[..., object],
    result_shape_dtypes: object,
    *args: object,
    sharding: object = None,
    vmap_method: str | None = None,
    **kwargs: object,
) -> Any: ...
def pure_callback(
    callback: Callable[..., object],
    result_shape_dtypes: object,
    *args: object,
    sharding: object = None,
    vmap_method: str | None = None,
    **kwargs: object,
) -> Any:
    """The results of a pure Python function, which is called while the program runs.

    The function gets arrays in the structure of `args` and `kwargs` and returns arrays
    in that of `result_shape_dtypes`, whose leaves have a `shape` and a `dtype`. It must
    be pure: a program may call it more or less often than written, or not at all.

    Under `vmap`, `vmap_method` decides: "sequential" and "sequential_unrolled" call it
    for each element in turn; "expand_dims" calls it once, with the batch as the leading
    dimension, which has length 1 for arguments that are the same for all elements;
    "broadcast_all" repeats those, and "legacy_vectorized" passes them as they are. With
    None, `vmap` is an error. Inside `shard_map` and `pmap` it is called for the part of
    each device, whatever `vmap_method` is, in `shard_map` from a thread of its own. It
    has no derivative; give the function around it one with `custom_jvp` or
    `custom_vjp`.

    Raises:
        TypeError, ValueError: an argument is wrong; the message says which.
        CallbackError: the function raised an exception, or returned something else.
            Compiled programs raise it when they run.

    >>> import numpy as np
    >>> import verax, verax.numpy as vnp
    >>> x = vnp.arange(3.0)
    >>> double = lambda x: verax.pure_callback(lambda x: np.asarray(x) * 2, x, x)
    >>> verax.jit(double)(x).tolist()
    [0.0, 2.0, 4.0]
    """
    if vmap_method is not None and vmap_method not in METHODS:
        raise ValueError(
            f"vmap_method must be one of {', '.join(map(repr, METHODS))} or None, not "
            f"{vmap_method!r}"
        )
    check_sharding("pure_callback", sharding)
    results, out_tree = result_types(result_shape_dtypes)
    function, leaves = user_function(callback, args, kwargs, out_tree)
    outs = call_host(pure_callback_p, function, leaves, results, None, vmap_method)
    return out_tree.unflatten(outs)


def io_callback(
    callback: Callable[..., object],
    result_shape_dtypes: object,
    *args: object,
    sharding: object = None,
    ordered: bool = False,
    **kwargs: object,
) -> Any:
    """The results of a Python function with effects, called while the program runs.

    It is called exactly as often as the program says: it is never repeated, nor dropped
    when its results are unused. With `ordered`, all ordered callbacks are called in the
    order of the program. Under `vmap` it is called for each element in turn, in order.
    Arguments and results are as for `pure_callback`.

    Raises:
        TypeError, ValueError: an argument is wrong; the message says which.
        CallbackError: the function raised an exception, or returned something else.

    >>> import verax
    >>> from verax.experimental import io_callback
    >>> seen = []
    >>> @verax.jit
    ... def f(x):
    ...     io_callback(lambda x: seen.append(float(x)), None, x, ordered=True)
    ...     return x + 1
    >>> y = f(2.0)
    >>> verax.effects_barrier()
    >>> seen
    [2.0]
    """
    check_sharding("io_callback", sharding)
    results, out_tree = result_types(result_shape_dtypes)
    function, leaves = user_function(callback, args, kwargs, out_tree)
    effect = ORDERED_IO if ordered else IO
    outs = call_host(io_callback_p, function, leaves, results, effect, "sequential")
    return out_tree.unflatten(outs)


def effects_barrier() -> None:
    """Wait until the effects of all programs that were started have happened.

    `block_until_ready` waits for results; a program without any may still be running.
    Within a callback it does nothing: the program that called it cannot end before.

    Raises:
        CallbackError: a callback failed in a program whose results were not waited for.
    """
    RUNS.wait()

"""Floor 5: what the process holds: types of values, living arrays, caches.

One idea: nothing is registered while a program runs; these functions look::

    typeof(x), live_arrays(), clear_caches()
"""

import gc

from verax.api.custom.snapshots import Home
from verax.api.jit import PjitFunction
from verax.api.tracing.structs import ShapeDtypeStruct, struct_aval
from verax.api.trees.hitypes import HI, hi_typeof, is_hi
from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.runtime.client import check_backend
from verax.backend.runtime.host_memory import return_memory
from verax.ir.avals import ShapedArray, is_reference
from verax.ir.memos import Recent
from verax.rules.guards import every_object
from verax.rules.values.constants import aval_of
from verax.rules.values.memo import CLASS_OF_MEMOS, ByFunction, is_memo

KEEPERS = (PjitFunction, Home, CLASS_OF_MEMOS, Recent, ByFunction)
"""The classes of what `clear_caches` clears; memos of others are of one, too."""


def typeof(x: object) -> ShapedArray:
    """The type of an array, tracer, scalar or reference: shape, dtype and weakness.

    Of a `ShapeDtypeStruct` it is the type that it describes.

    Raises:
        TypeError: `x` is none of them.

    >>> print(typeof(1.0))
    ~f32[]
    """
    if is_reference(x):
        return x.aval
    if HI.types and is_hi(x):
        return hi_typeof(x)  # type: ignore[return-value]  # a type of the program's own
    return struct_aval(x) if isinstance(x, ShapeDtypeStruct) else aval_of(x)


def live_arrays(platform: str | None = None) -> list[ConcreteArray]:
    """All arrays with values that are still alive, on `platform` if that is passed.

    This goes through the objects of the process, which takes a while if it is large.
    Those that `gc.freeze` has put aside are put back among the others.
    """
    result = [x for x in every_object() if type(x) is ConcreteArray]
    held = [x for x in result if hasattr(x, "aval") and not x.is_deleted()]
    if platform is None:
        return held
    check_backend(platform)
    return [x for x in held if {d.platform for d in x.devices()} == {platform}]


def clear_caches() -> None:
    """Forget all traces, rewrites and compiled programs.

    This goes through the objects of the process, as `live_arrays` does. The memory of
    what nobody else holds goes back to the system, where it takes memory back.
    """
    every = every_object()
    # Objects are many, their classes few; these need not be hashable.
    classes = {id(kind): kind for kind in map(type, every)}
    keepers = {key for key, kind in classes.items() if issubclass(kind, KEEPERS)}
    for result in [x for x in every if id(type(x)) in keepers]:
        if isinstance(result, PjitFunction | Home):
            result.clear_cache()
        elif is_memo(result) or isinstance(result, Recent | ByFunction):
            result.cache_clear()
    del every, classes
    gc.collect()
    return_memory()

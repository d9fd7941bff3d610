"""What arrays and messages say of themselves where verax has the name of jax.

Libraries that serve several frameworks look at the module of an array's class, or ask
an array for its functions; people read messages, and type what these name::

    type(x).__module__           # 'jaxlib._jax'
    x.__array_namespace__()      # jax.numpy
    # Use jax.numpy.where, ...
"""

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

from attrs import evolve

from verax.api.config.config import Config, config
from verax.api.config.tracebacks import SPOKEN, watch
from verax.api.jit import PjitFunction
from verax.backend.arrays.concrete import ConcreteArray
from verax.backend.placement.sharding import NamedSharding, Sharding, hlo_sharding
from verax.backend.runtime.client import Device
from verax.ir.dtypes import KeyDType
from verax.ops.random.generators import generator
from verax.ops.random.keys import random_unwrap
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array

QUIET: Final = MappingProxyType(
    {"programs_warn_count": -1, "captured_constants_warn_bytes": 2_000_000_000}
)
"""Options without which there are warnings that jax lacks: a test may forbid all."""


def checked(x: ConcreteArray) -> None:
    """Raise RuntimeError for an array that was deleted."""
    if x.is_deleted():
        raise x.gone()


def of_keys(x: ConcreteArray) -> KeyDType:
    """The dtype of random keys.

    Raises:
        AttributeError: the array holds something else.
    """
    if not isinstance(x.aval.dtype, KeyDType):
        raise AttributeError("only arrays of random keys have it")
    return x.aval.dtype


def words_of(x: ConcreteArray) -> Array:
    """The words of an array of random keys."""
    of_keys(x)
    return random_unwrap(x)


def assignment(place: Sharding) -> tuple[Device, ...]:
    """The devices of a sharding, in the order of its mesh."""
    if isinstance(place, NamedSharding):
        return tuple(place.concrete.devices.flat)
    return place.ordered


def in_xla(place: Sharding, num_dimensions: int) -> object:
    """XLA's own form of a sharding, which numbers devices as `assignment` does."""
    tiling = place.tiling(num_dimensions)
    order = [place.ordered.index(device) for device in assignment(place)]
    tiling = evolve(
        tiling,
        places=tuple([tiling.places[i] for i in order]),
        terms=tuple([tiling.terms[i] for i in order if tiling.terms]),
    )
    return hlo_sharding(tiling, place.num_devices)


def cache_size(f: PjitFunction[..., object]) -> int:
    """The number of compiled programs of a jitted function."""
    return len(f.programs)


OF_ARRAYS: Final = MappingProxyType(
    {
        "_value": property(ConcreteArray.numpy),
        "_committed": property(lambda x: x.committed),
        "_arrays": property(lambda x: [part.data for part in x.addressable_shards]),
        "_check_if_deleted": checked,
        "_impl": property(lambda x: generator(of_keys(x).impl)),
        "_base_array": property(words_of),
    }
)
OF_SHARDINGS: Final = MappingProxyType(
    {"_device_assignment": property(assignment), "_to_xla_hlo_sharding": in_xla}
)


def option(config: Config, name: str) -> object:
    """The value of an option, by JAX's name for it."""
    return config.read(name.removeprefix("jax_"))


OF_FUNCTIONS: Final = MappingProxyType({"_cache_size": cache_size})
PRIVATE: Final[Sequence[tuple[type, Mapping[str, object]]]] = (
    (ConcreteArray, OF_ARRAYS),
    (Sharding, OF_SHARDINGS),
    (PjitFunction, OF_FUNCTIONS),
    (Config, MappingProxyType({"_read": option})),
)
"""What programs for JAX read of its objects, by the class."""


def take_identity() -> None:
    """From now on, arrays and messages of this process name jax."""
    for kind, attributes in PRIVATE:
        for name, attribute in attributes.items():
            setattr(kind, name, attribute)
    ConcreteArray.__module__, ConcreteArray.__name__ = "jaxlib._jax", "ArrayImpl"
    Array.__module__ = "jax"
    Tracer.__module__ = "jax.core"
    Array.shown_as = staticmethod(shown_namespace)
    SPOKEN.name = "jax"
    for option, value in QUIET.items():
        if f"VERAX_{option.upper()}" not in os.environ:
            config.update(option, value)
    watch(filtering=True)


def shown_namespace() -> Any:
    """The module of array functions, as the program knows it."""
    return import_module("jax.numpy")

"""What arrays and messages say of themselves where verax has the name of jax.

Libraries that serve several frameworks look at the module of an array's class, or ask
an array for its functions; people read messages, and type what these name::

    type(x).__module__           # 'jaxlib._jax'
    x.__array_namespace__()      # jax.numpy
    # Use jax.numpy.where, ...
"""

import os
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

from verax.api.config.config import config
from verax.api.config.tracebacks import SPOKEN, watch
from verax.backend.arrays.concrete import ConcreteArray
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array

QUIET: Final = MappingProxyType(
    {"programs_warn_count": -1, "captured_constants_warn_bytes": 2_000_000_000}
)
"""Options without which there are warnings that jax lacks: a test may forbid all."""


def take_identity() -> None:
    """From now on, arrays and messages of this process name jax."""
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

"""Floor 4: functions in other languages, under names that XLA knows.

The table of targets is XLA's, one for the process; here a pointer is checked before it
gets there::

    register_ffi_target("rms_norm", pycapsule(library.RmsNorm))
"""

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import jaxlib
from jaxlib import _jax, xla_client

from verax.backend.runtime.cuda import register_batch_target
from verax.rules.values.conversions import shown

PLATFORMS: Final = {"cpu": "Host", "cuda": "CUDA", "gpu": "CUDA", "rocm": "ROCM"}
"""XLA's names of the platforms; others are named as they are."""
POINTERS: Final = (
    int,
    ctypes.c_void_p,
    type(ctypes.pythonapi.PyCapsule_New).__mro__[1],
)
"""An address, a pointer, a function of a library."""


def register_ffi_target(
    name: str,
    fn: object,
    platform: str = "cpu",
    api_version: int = 1,
    *,
    traits: int = 0,
) -> None:
    """Give XLA a function under a name, for the whole process.

    Args:
        name: what `ffi_call` calls it.
        fn: a capsule that holds a pointer, see `pycapsule`, or a dictionary from the
            stages of a call ("instantiate", "prepare", "initialize", "execute") to
            capsules.
        platform: where it runs: "cpu", "cuda", "rocm".
        api_version: 1 for a function of XLA's typed interface, 0 for an older one.
        traits: flags of XLA's for the function, which are added: 1 if it may be
            recorded in a command buffer of a GPU.

    Raises:
        TypeError: `fn` is neither a capsule nor a dictionary of capsules.
    """
    capsules = list(fn.values()) if isinstance(fn, Mapping) else [fn]
    if not capsules or not all(map(is_capsule, capsules)):
        raise TypeError(
            f"the FFI target {name!r} must be a capsule, or a dictionary from stages "
            f"to capsules, not {shown(fn)}; wrap a function of ctypes with "
            "verax.ffi.pycapsule"
        )
    xla = PLATFORMS.get(platform.lower(), platform)
    _jax.register_custom_call_target(name, fn, xla, api_version, traits)


def register_ffi_type(
    name: str, type_registration: Mapping[str, object], platform: str = "cpu"
) -> None:
    """Give XLA the identity of a type that functions keep state in.

    Args:
        name: a name that no other type of the process has.
        type_registration: "type_id" and perhaps "type_info", each a capsule.
        platform: where functions of this type run.
    """
    xla = PLATFORMS.get(platform.lower(), platform)
    xla_client.register_custom_type(name, dict(type_registration), platform=xla)


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Say that a target treats the leading dimensions of its operands as batches.

    A program over several devices then calls it on the part that each device has.
    """
    register_batch_target(name)


def is_capsule(x: object) -> bool:
    return type(x).__name__ == "PyCapsule"


def pycapsule(funcptr: object) -> Any:
    """A capsule that holds a pointer of ctypes, as `register_ffi_target` takes it.

    Raises:
        TypeError, ValueError: this is not a pointer, or it is null.
    """
    if isinstance(funcptr, bool) or not isinstance(funcptr, POINTERS):
        raise TypeError(
            f"pycapsule takes a function of a library that ctypes has loaded, not "
            f"{shown(funcptr)}"
        )
    builder = ctypes.pythonapi.PyCapsule_New
    builder.restype = ctypes.py_object
    builder.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return builder(funcptr, None, None)


def include_dir() -> str:
    """The folder of the headers with which functions for XLA are compiled.

    >>> (Path(include_dir()) / "xla" / "ffi" / "api" / "ffi.h").exists()
    True
    """
    return str(Path(jaxlib.__path__[0]).resolve() / "include")

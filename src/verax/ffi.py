"""Functions in other languages as operations of a program (floor 6).

This module only gives names; the work is done in `verax.api`::

    register_ffi_target("rms_norm", pycapsule(library.RmsNorm))
    f = ffi_call("rms_norm", ShapeDtypeStruct(x.shape, x.dtype))
    y = f(x, eps=np.float32(1e-5))
"""

from verax.api.host.ffi import ffi_call
from verax.backend.xla.foreign_targets import (
    include_dir,
    pycapsule,
    register_ffi_target,
    register_ffi_target_as_batch_partitionable,
    register_ffi_type,
)

__all__ = [
    "ffi_call",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_target_as_batch_partitionable",
    "register_ffi_type",
]

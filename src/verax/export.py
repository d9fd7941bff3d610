"""Exported functions: programs that outlive the process that traced them (floor 6).

This module only gives names; the work is done in `verax.api`::

    data = export(verax.jit(f))(x).serialize(vjp_order=1)
    deserialize(data).call(x)

>>> import verax
>>> export(verax.jit(lambda x: x + 1.0))(2.0).fun_name
'<lambda>'
"""

from verax.api.export.export import (
    CALLING_CONVENTIONS,
    DisabledSafetyCheck,
    Exported,
    deserialize,
    export,
)
from verax.api.export.symbolic import (
    is_symbolic_dim,
    symbolic_args_specs,
    symbolic_dim_bounds,
    symbolic_shape,
)
from verax.api.trees.serialization import (
    register_namedtuple_serialization,
    register_pytree_node_serialization,
)
from verax.backend.runtime.client import default_backend as default_export_platform
from verax.ops.symbols.parse import SymbolicScope

maximum_supported_calling_convention_version = CALLING_CONVENTIONS[-1]
minimum_supported_calling_convention_version = CALLING_CONVENTIONS[0]

__all__ = [
    "DisabledSafetyCheck",
    "Exported",
    "SymbolicScope",
    "default_export_platform",
    "deserialize",
    "export",
    "is_symbolic_dim",
    "maximum_supported_calling_convention_version",
    "minimum_supported_calling_convention_version",
    "register_namedtuple_serialization",
    "register_pytree_node_serialization",
    "symbolic_args_specs",
    "symbolic_dim_bounds",
    "symbolic_shape",
]

"""Floor 4: the LAPACK routines of jaxlib, as targets of custom calls.

One idea: a program that names a routine needs it registered before it is compiled, so
the text is searched, and the first program that names one pays for the registration::

    require_routines(lowered.text)
"""

import numpy as np
from jaxlib import _jax, lapack

from verax.rules.values.memo import pure

# In a text of ours, and in one that MLIR has printed.
PREFIXES = ('"lapack_', "@lapack_", '"tridiagonal_solve_', "@tridiagonal_solve_")


def require_routines(text: str) -> None:
    """Register the routines if a module in `text` calls one."""
    if any(prefix in text for prefix in PREFIXES):
        register_routines()


@pure()
def register_routines() -> None:
    """Hand jaxlib's LAPACK routines, which are SciPy's, to XLA on CPU; once."""
    lapack.prepare_lapack_call("potrf", np.float32)  # finds SciPy's routines
    for name, routine, version in lapack.registrations()["cpu"]:
        _jax.register_custom_call_target(name, routine, "Host", version)
    for name in lapack.batch_partitionable_targets():
        _jax.register_custom_call_as_batch_partitionable(name)

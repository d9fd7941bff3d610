"""What JAX keeps under `jax.experimental`, under the same names (floor 6).

One idea: a shop window; the work is done in `verax.api`.

    >>> import numpy as np
    >>> from verax.experimental import io_callback
    >>> io_callback(lambda: np.float32(2), np.float32(0))
    Array(2., dtype=float32)
"""

from verax.api.callbacks import io_callback
from verax.experimental import layout, serialize_executable

__all__ = ["io_callback", "layout", "serialize_executable"]

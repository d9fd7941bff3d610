"""The only floor that sees jaxlib (floor 4).

One idea: all of jaxlib is private to another project, so each of its entry points is
used in one small typed module here and nowhere above.

    >>> from verax.backend.runtime.client import default_client
    >>> default_client().platform
    'cpu'
"""

import os

# XLA prints INFO lines for every client unless this is set before jaxlib is loaded, and
# this module runs before any other of the package. A value set by the user stays; jax
# sets the same.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

"""verax under the name of jax, for programs and libraries that import jax.

Nothing below imports this package. A program runs unchanged::

    python -m verax.jax train.py --steps 100
"""

from verax.jax.finder import install, installed

__all__ = ["install", "installed", "load_ipython_extension"]


def load_ipython_extension(shell: object) -> None:
    """`%load_ext verax.jax` in a notebook: from then on `import jax` gives verax."""
    install()

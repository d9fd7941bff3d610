"""Values of running programs, under JAX's names (floor 6).

One idea: a shop window; the work is done in `verax.api`.

    >>> import verax
    >>> verax.debug.print("hello {}", 1)
    hello 1
"""

from verax.api.debugging import debug_callback as callback, debug_print as print

__all__ = ["callback", "print"]

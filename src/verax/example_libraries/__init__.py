"""Small optimizers, as `jax.example_libraries` has them (floor 6).

They are examples of how such libraries are written::

    from verax.example_libraries import optimizers
"""

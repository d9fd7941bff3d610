"""Random nested programs, under chains of transformations, with jax beside them."""

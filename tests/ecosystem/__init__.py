"""Libraries that import jax, run with verax in its place and compared with jax."""

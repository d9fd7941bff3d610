"""The part of jaxlib's client module that `verax.backend` uses."""

from jaxlib._jax import Client

def make_cpu_client(
    asynchronous: bool = True,
    num_devices: int | None = None,
) -> Client: ...

"""Floor 6: the memories of devices, under JAX's name.

Arrays live in the memory of their device, which is what a program may ask for::

    verax.device_put(x, verax.memory.Space.Device)
"""

from verax.api.memory.budgets import Offload as Offload
from verax.backend.placement.sharding import MemorySpace as Space

__all__ = ["Offload", "Space"]

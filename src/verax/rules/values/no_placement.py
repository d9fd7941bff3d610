"""Floor 1: what arrays say of the place where their values live, for types' sake.

One idea: arrays with values fill these in two floors up; a tracer has no place, since
only the finished program says where it runs::

    x.sharding, x.devices(), x.committed
"""

from collections.abc import Callable
from typing import Any, NoReturn


class Located:
    """The attributes of arrays that tell where they are."""

    __slots__ = ()

    def nowhere(self, name: str) -> NoReturn:
        raise AttributeError(
            f"{name} of a traced value is not available: only a compiled program has "
            "devices. Look at the array outside the traced function"
        )

    @property
    def committed(self) -> bool:
        """Whether the user chose the device."""
        self.nowhere("committed")

    @property
    def sharding(self) -> Any:
        """The sharding of the values, a `verax.sharding.Sharding`."""
        raise AttributeError(
            "The 'sharding' attribute is not available on a traced array, since only a "
            "compiled program has devices. To query sharding information on tracers, "
            "use `verax.typeof(x)`"
        )

    @property
    def device(self) -> Any:
        """The device of the values; of an array on several devices, its sharding."""
        self.nowhere("device")

    def devices(self) -> set[Any]:
        """The devices that hold the values."""
        self.nowhere("devices")

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process can reach all of the values."""
        self.nowhere("is_fully_addressable")

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device of the array holds all of it."""
        self.nowhere("is_fully_replicated")

    @property
    def addressable_shards(self) -> list[Any]:
        """The parts of the array that the devices of this process hold."""
        self.nowhere("addressable_shards")

    @property
    def global_shards(self) -> list[Any]:
        """The parts on all devices; those of other processes have no data."""
        self.nowhere("global_shards")

    @property
    def format(self) -> Any:
        """The layout in memory and the sharding, a `Format`."""
        self.nowhere("format")

    @property
    def addressable_data(self) -> Callable[[int], Any]:
        """The part that the device of this number holds, among those of the process."""
        self.nowhere("addressable_data")

    @property
    def unsafe_buffer_pointer(self) -> Callable[[], int]:
        """The address of the values on their one device."""
        self.nowhere("unsafe_buffer_pointer")

    @property
    def copy_to_host_async(self) -> Callable[[], None]:
        """Start the transfer to the host, without waiting for it."""
        self.nowhere("copy_to_host_async")

    @property
    def is_ready(self) -> Callable[[], bool]:
        """Whether the values are computed; never waits."""
        self.nowhere("is_ready")

    @property
    def is_deleted(self) -> Callable[[], bool]:
        """Whether the memory was given back or donated."""
        self.nowhere("is_deleted")

    @property
    def delete(self) -> Callable[[], None]:
        """Give the memory back now; every later use raises RuntimeError."""
        self.nowhere("delete")

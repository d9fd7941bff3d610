"""The PJRT client of the process: platform, devices, live buffers (floor 4).

One idea: nothing starts before a device is needed, and requests are checked in Python
first, because the runtime aborts where Python would raise.

    >>> from verax.backend.runtime.client import default_backend, local_devices
    >>> default_backend(), local_devices()[0].platform
    ('cpu', 'cpu')
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from attrs import field, frozen
from jaxlib._jax import ArrayImpl, Client, Device, DeviceList

from verax.backend.runtime.environment import first_variable, gpu_files
from verax.backend.runtime.host_memory import keep_memory
from verax.ir.locks import new_lock
from verax.ir.records import ReprMixin
from verax.ir.system import after_fork
from verax.rules.values.state import STATE, State, refresh

__all__ = [
    "Client",
    "ClientOptions",
    "Device",
    "DeviceList",
    "configure_client",
    "default_backend",
    "default_client",
    "device_count",
    "devices",
    "live_buffers",
    "local_device_count",
    "local_devices",
    "platform_name",
    "process_index",
    "process_indices",
    "start_client",
]

# Process p numbers its devices from p * 2048: more would clash between processes.
MAXIMUM_DEVICE_COUNT: Final = 2048
PLATFORM_VARIABLES: Final = ("VERAX_PLATFORMS", "JAX_PLATFORMS")
DEVICE_COUNT_VARIABLES: Final = ("VERAX_NUM_CPU_DEVICES", "JAX_NUM_CPU_DEVICES")


# What starts clients is loaded when one is started.


def start_cpu_client(device_count: int | None) -> Client:
    """A client for the processor; `None` leaves the count to `XLA_FLAGS`, else 1."""
    if STATE.keep_cpu_memory:
        keep_memory()
    if State.joined:
        from verax.backend.runtime import cluster

        return cluster.start_cpu_client(device_count)
    from jaxlib.xla_client import make_cpu_client

    return make_cpu_client(num_devices=device_count)


def start_cuda_client(device_count: int | None) -> Client:
    """A client for the GPUs; see `cuda.start_cuda_client`."""
    from verax.backend.runtime import cuda

    return cuda.start_cuda_client(device_count)


STARTERS: Final[Mapping[str, Callable[[int | None], Client]]] = MappingProxyType(
    {"cpu": start_cpu_client, "cuda": start_cuda_client}
)
ALIASES: Final[Mapping[str, str]] = MappingProxyType({"gpu": "cuda"})


def platform_name(client: Client) -> str:
    """The platform of a client: "cuda", which jaxlib may call "gpu".

    >>> platform_name(default_client())
    'cpu'
    """
    return ALIASES.get(client.platform, client.platform)


def check_platform(platform: str, origin: str) -> str:
    """The platform itself if verax can start it, else an error with those it can."""
    platform = ALIASES.get(platform, platform)
    if platform in STARTERS:
        return platform
    known = ", ".join(sorted(STARTERS))
    raise ValueError(
        f"{origin} asks for the platform {platform!r}, which verax does not know; "
        f"known platforms: {known}."
    )


def check_device_count(count: object, origin: str) -> int:
    """The count itself if it is an integer that one process can have."""
    if isinstance(count, bool) or not isinstance(count, int):
        raise TypeError(f"{origin} must be an integer, got {count!r}.")
    if not 1 <= count <= MAXIMUM_DEVICE_COUNT:
        raise ValueError(
            f"{origin} must lie between 1 and {MAXIMUM_DEVICE_COUNT}, got {count}."
        )
    return count


def platform_from_environment() -> str:
    """The first platform named in the environment, after a check of all.

    Without one it is cuda if there is a GPU with a plugin, else cpu.
    """
    if (setting := first_variable(PLATFORM_VARIABLES)) is None:
        # Without a GPU, what looks for its plugin is not even loaded.
        if not gpu_files():
            return "cpu"
        from verax.backend.runtime.cuda import find_plugin

        return "cpu" if find_plugin() is None else "cuda"
    variable, value = setting
    names = [part.strip().lower() for part in value.split(",") if part.strip()]
    if not names:
        return "cpu"
    first, *_ = [
        check_platform(name, f"The environment variable {variable}") for name in names
    ]
    return first


def device_count_from_environment() -> int | None:
    """The number of CPU devices that the environment asks for, if it does."""
    if (setting := first_variable(DEVICE_COUNT_VARIABLES)) is None:
        return None
    variable, value = setting
    try:
        count = int(value)
    except ValueError:
        raise ValueError(f"{variable} must be an integer, got {value!r}.") from None
    return check_device_count(count, variable)


@frozen(repr=False)
class ClientOptions(ReprMixin):
    """Options for starting the client: what is `None` comes from the environment.

    The platform is read from `VERAX_PLATFORMS`, else `JAX_PLATFORMS`, else it is
    `cuda` where a plugin and a GPU are, else `cpu`; the number of CPU devices from
    `VERAX_NUM_CPU_DEVICES`, else `JAX_NUM_CPU_DEVICES`, else `XLA_FLAGS`, else it is 1.

    >>> ClientOptions(device_count=4)
    ClientOptions(platform=None, device_count=4)
    """

    platform: str | None = field(default=None)
    device_count: int | None = field(default=None)

    def __attrs_post_init__(self) -> None:
        """Refuse what the runtime would abort on."""
        if self.platform is not None:
            check_platform(self.platform, "The option platform")
        if self.device_count is not None:
            check_device_count(self.device_count, "The option device_count")


def start_client(options: ClientOptions) -> Client:
    """Start a new client; most callers want `default_client`."""
    asked = options.platform or platform_from_environment()
    platform = ALIASES.get(asked, asked)
    count = options.device_count or device_count_from_environment()
    return STARTERS[platform](count)


def serves(client: Client, options: ClientOptions) -> bool:
    """Whether a running client is what the options ask for."""
    asked = options.platform or client.platform
    platform = ALIASES.get(asked, asked) == platform_name(client)
    count = options.device_count in (None, len(client.local_devices()))
    return platform and count


def note_fork() -> None:
    """In a forked child: the threads that would run its programs do not exist.

    Calls of jit are looked up by what this changes, so that none is found any more.
    """
    State.forked = True
    refresh()


def check_not_forked() -> None:
    """Raise rather than wait forever.

    Raises:
        RuntimeError: this process was forked after the client had started.
    """
    if STATE.forked:
        raise RuntimeError(
            "This process was forked from one in which verax had started its devices. "
            "A fork does not copy their threads, so a compiled program would hang. "
            "Start processes with multiprocessing's 'spawn' or 'forkserver', or fork "
            "before the first device is asked for. Eager operations that run in NumPy "
            "still work."
        )


class ClientSlot:
    """The slot of the one client of the process, empty until it is asked for."""

    __slots__ = ("client", "lock", "options", "others")

    def __init__(self) -> None:
        """Empty: nothing has started."""
        self.lock = new_lock()
        self.options = ClientOptions()
        self.client: Client | None = None
        self.others: dict[str, Client] = {}

    def get_for(self, platform: str) -> Client:
        """The client of another platform beside the default one."""
        client = self.get()
        if platform == platform_name(client):
            return client
        with self.lock:
            if platform not in self.others:
                count = self.options.device_count or device_count_from_environment()
                self.others[platform] = STARTERS[platform](count)
            return self.others[platform]

    def get(self) -> Client:
        """The client, started by whichever thread comes first.

        Raises:
            RuntimeError: this process was forked from one that had started it.
        """
        check_not_forked()
        if (client := self.client) is not None:
            return client
        with self.lock:
            if self.client is None:
                self.client = start_client(self.options)
                after_fork(note_fork)
                if platform_name(self.client) != "cpu":
                    State.accelerate()
            return self.client

    def configure(self, options: ClientOptions) -> None:
        """Set the options, which is possible only before the client starts."""
        with self.lock:
            if self.client is not None and not serves(self.client, options):
                raise RuntimeError(
                    "The client has already started, so its options can no longer "
                    "change: set them before the first array or device is asked for. "
                    f"It has {len(self.client.local_devices())} devices of platform "
                    f"{self.client.platform!r}, but {options} was requested."
                )
            self.options = options


SLOT: Final = ClientSlot()


def configure_client(options: ClientOptions) -> None:
    """Choose how the default client will start.

    Raises:
        RuntimeError: the client is already running, with other options.

    >>> default_client().platform
    'cpu'
    >>> configure_client(ClientOptions(device_count=2048))
    Traceback (most recent call last):
    RuntimeError: The client has already started, ...
    """
    SLOT.configure(options)


def default_client() -> Client:
    """The client of this process, started on the first call; threads share it.

    >>> default_client() is default_client()
    True
    """
    return SLOT.get()


def default_platform() -> str:
    """The platform of this process, also in one that was forked and cannot use it."""
    return platform_name(SLOT.client or SLOT.get())


def check_backend(backend: str | None) -> Client:
    """The client of the platform `backend`; the default one if that is None."""
    client = default_client()
    if backend is None or backend == client.platform:
        return client
    platform = ALIASES.get(backend, backend)
    if platform in STARTERS:
        return SLOT.get_for(platform)
    raise RuntimeError(
        f"Unknown backend {backend!r}: this process runs on {client.platform!r}. "
        f"Choose another with the environment variable {PLATFORM_VARIABLES[0]} before "
        "it starts."
    )


def devices(backend: str | None = None) -> list[Device]:
    """All devices of the backend, those of other processes included.

    >>> [device.id for device in devices()][0]
    0
    """
    return check_backend(backend).devices()


def local_devices(backend: str | None = None) -> list[Device]:
    """The devices that this process can use directly.

    >>> local_devices()[0].process_index == process_index()
    True
    """
    return check_backend(backend).local_devices()


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes that have devices, in order.

    >>> process_indices()
    [0]
    """
    return sorted({device.process_index for device in check_backend(backend).devices()})


def process_count(backend: str | None = None) -> int:
    """The number of processes that share the devices.

    >>> process_count()
    1
    """
    return len(process_indices(backend))


def device_count(backend: str | None = None) -> int:
    """The number of all devices.

    >>> device_count() == len(devices())
    True
    """
    return check_backend(backend).device_count()


def local_device_count(backend: str | None = None) -> int:
    """The number of devices of this process.

    >>> local_device_count() == len(local_devices())
    True
    """
    return len(check_backend(backend).local_devices())


def default_backend() -> str:
    """The name of the platform on which the process runs.

    >>> default_backend()
    'cpu'
    """
    return default_client().platform


def process_index(backend: str | None = None) -> int:
    """The number of this process among those that share the client.

    >>> process_index()
    0
    """
    return check_backend(backend).process_index()


def live_buffers(backend: str | None = None) -> list[ArrayImpl]:
    """The buffers of the backend that are alive now, in no particular order.

    >>> isinstance(live_buffers(), list)
    True
    """
    return check_backend(backend).live_arrays()

"""The CUDA plugin: where it is installed, and how its client starts (floor 4).

One idea: the plugin's own starting code imports jax, so that only its files are used:
the library is loaded and its kernels are registered here, step by step::

    plugin = find_plugin()            # None without a plugin or without a GPU
    client = start_cuda_client()

The packages are those of JAX (`jax-cuda13-plugin`, `jax-cuda13-pjrt`), in the version
of jaxlib; the extras `cuda12` and `cuda13` install them. Memory is
set by the variables that JAX reads: `XLA_PYTHON_CLIENT_PREALLOCATE`,
`XLA_CLIENT_MEM_FRACTION`, `XLA_PYTHON_CLIENT_MEM_FRACTION`,
`XLA_PYTHON_CLIENT_ALLOCATOR`; `VERAX_CUDA_VISIBLE_DEVICES` or
`JAX_CUDA_VISIBLE_DEVICES` lists the numbers of the GPUs to use.
"""

import ctypes
import functools
import importlib.metadata
import importlib.util
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from attrs import frozen
from jaxlib import _profiler, plugin_support, xla_client

from verax.backend.runtime.cluster import CLUSTER, start_joined
from verax.backend.runtime.environment import GPU_FILES, first_variable, gpu_files
from verax.backend.runtime.errors import trimmed
from verax.ir.facade import module_named
from verax.ir.records import ReprMixin
from verax.rules.values.state import State

NAME: Final = "cuda"
PLATFORM: Final = "CUDA"
NAMESPACE: Final = "jax_plugins"
FOLDERS: Final = ("xla_cuda13", "xla_cuda12")
LIBRARY: Final = "xla_cuda_plugin.so"
VISIBLE_VARIABLES: Final = ("VERAX_CUDA_VISIBLE_DEVICES", "JAX_CUDA_VISIBLE_DEVICES")
# What the plugin needs, by the pip package of NVIDIA's that has it; in this order.
NVIDIA_LIBRARIES: Final[Sequence[tuple[str, Sequence[str]]]] = (
    ("cuda_runtime", ("libcudart.so.12",)),
    ("cu13", ("libcudart.so.13",)),
    ("cuda_nvrtc", ("libnvrtc.so.12",)),
    ("cu13", ("libnvrtc.so.13",)),
    ("cublas", ("libcublas.so.12", "libcublasLt.so.12")),
    ("cu13", ("libcublas.so.13", "libcublasLt.so.13")),
    ("nccl", ("libnccl.so.2",)),
    ("cuda_cupti", ("libcupti.so.12",)),
    ("cu13", ("libcupti.so.13",)),
    ("cusparse", ("libcusparse.so.12",)),
    ("cu13", ("libcusparse.so.12",)),
    ("cusolver", ("libcusolver.so.11",)),
    ("cu13", ("libcusolver.so.12",)),
    ("cufft", ("libcufft.so.11",)),
    ("cu13", ("libcufft.so.12",)),
    ("nvshmem", ("libnvshmem_host.so.3",)),
    ("cudnn", ("libcudnn.so.9",)),
)
BATCH_KERNELS: Final = ("gpu_solver", "gpu_linalg", "gpu_sparse")
KERNELS: Final = (*BATCH_KERNELS, "gpu_prng")
DRIVER: Final = "libcuda.so.1"
NUMBERS: Final = re.compile(r"\d+(?:\.\d+)*")
FAILED: Final = "The platform 'cuda' failed to initialize"
# What the runtime says when it does not start, and what to do about it.
ADVICE: Final[Sequence[tuple[re.Pattern[str], str]]] = (
    (
        re.compile("RESOURCE_EXHAUSTED|OUT_OF_MEMORY|out of memory", re.IGNORECASE),
        "The GPU has no free memory: nvidia-smi lists the processes that hold it. End "
        "them, choose other GPUs with VERAX_CUDA_VISIBLE_DEVICES, or take less with "
        "XLA_PYTHON_CLIENT_PREALLOCATE=false or XLA_PYTHON_CLIENT_MEM_FRACTION=.3",
    ),
    (
        re.compile("INSUFFICIENT_DRIVER|SYSTEM_DRIVER_MISMATCH|driver version"),
        "NVIDIA's driver is older than the plugin needs: update it, or install "
        "verax[cuda12] if you have verax[cuda13]",
    ),
    (
        re.compile("NO_DEVICE|no supported devices|No visible GPU", re.IGNORECASE),
        "The driver shows no GPU: look at CUDA_VISIBLE_DEVICES and nvidia-smi; a "
        "container must be started with its GPUs. VERAX_PLATFORMS=cpu does without",
    ),
)


@frozen(repr=False)
class CudaPlugin(ReprMixin):
    """An installed plugin: its shared library, and the packages it came in.

    `kernels` is the package of the plugin's kernels, which has the same version.
    """

    library: Path
    package: str
    kernels: str


def package_folders(name: str) -> list[Path]:
    """The folders of a package, without importing it; empty if it is not installed."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.submodule_search_locations is None:
        return []
    return [Path(folder) for folder in spec.submodule_search_locations]


def find_plugin() -> CudaPlugin | None:
    """The newest CUDA plugin that is installed; None without one, or without a GPU."""
    if not gpu_files():
        return None
    for folder in FOLDERS:
        for place in package_folders(NAMESPACE):
            library = place / folder / LIBRARY
            if library.exists():
                name = "jax-" + folder.removeprefix("xla_")
                return CudaPlugin(library, f"{name}-pjrt", f"{name}-plugin")
    return None


def version_of(package: str) -> str | None:
    """The version of an installed package, if its metadata is there."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_versions(plugin: CudaPlugin) -> None:
    """Refuse a plugin of another version than jaxlib's.

    The two share structures that change between versions. Files without metadata are
    taken as they are.

    Raises:
        RuntimeError: a package of the plugin has another version.
    """
    jaxlib = version_of("jaxlib") or ""
    for package in (plugin.package, plugin.kernels):
        version = version_of(package)
        if version is not None and numbers(version) != numbers(jaxlib):
            raise RuntimeError(
                f"{FAILED}: {package} has version {version}, but jaxlib {jaxlib}. "
                "Install them in one version: pip install "
                f"'{plugin.kernels}[with-cuda]=={jaxlib}'"
            )


def numbers(version: str) -> str:
    """The numbers that a version starts with.

    >>> numbers("0.12.0.dev20261016")
    '0.12.0'
    """
    match = NUMBERS.match(version)
    return match[0] if match else version


def driver_is_there() -> bool:
    """Whether NVIDIA's driver library can be loaded."""
    try:
        ctypes.CDLL(DRIVER)
    except OSError:
        return False
    return True


def failure(error: Exception) -> RuntimeError:
    """The meaning of a failed start, and what to do."""
    words = trimmed(str(error))
    for pattern, advice in ADVICE:
        if pattern.search(str(error)):
            return RuntimeError(f"{FAILED}: {words}\n{advice}.")
    if not driver_is_there():
        advice = (
            f"NVIDIA's driver is not here ({DRIVER} cannot be loaded): install it; a "
            "container must be started with its GPUs"
        )
        return RuntimeError(f"{FAILED}: {words}\n{advice}.")
    return RuntimeError(f"{FAILED}: {words}")


def load_nvidia_libraries() -> list[Path]:
    """Load NVIDIA's libraries from their pip packages, so that the plugin finds them.

    Returns those that were loaded; what is not installed so, the system may have.
    """
    loaded = []
    for package, names in NVIDIA_LIBRARIES:
        for folder in package_folders("nvidia"):
            for name in names:
                path = folder / package / "lib" / name
                if path.exists():
                    ctypes.CDLL(str(path))
                    loaded.append(path)
    return loaded


def visible_devices() -> Sequence[int] | None:
    """The numbers of the GPUs to use, if the environment lists them.

    Raises:
        ValueError: the list holds something that is not a number.
    """
    setting = first_variable(VISIBLE_VARIABLES)
    if setting is None or setting[1] == "all":
        return None
    variable, value = setting
    try:
        return [int(part) for part in value.split(",")]
    except ValueError:
        raise ValueError(
            f"{variable} must list numbers of GPUs, as in 0,2, or be 'all'; got "
            f"{value!r}."
        ) from None


def client_options() -> dict[str, object]:
    """The options of the client: memory and devices, from the environment.

    Raises:
        ValueError: a variable has a value that it cannot have.
    """
    options: dict[str, object] = dict(xla_client.generate_pjrt_gpu_plugin_options())
    chosen = visible_devices()
    if (connection := CLUSTER.connection) is not None:
        settings = connection.settings
        options |= {"node_id": settings.index, "num_nodes": settings.count}
        if settings.partition_index is not None:
            options["partition_index"] = settings.partition_index
        chosen = chosen if settings.local_devices is None else settings.local_devices
    if chosen is not None:
        options["visible_devices"] = list(chosen)
    return options


def register_kernels(c_api: object) -> None:
    """Make the plugin's kernels known: those of its extension and of jaxlib's modules.

    Without the extension, or with one of another version than jaxlib's, programs run
    that need no kernels of their own; jaxlib warns of the latter.
    """
    extension = plugin_support.import_from_plugin(NAME, "cuda_plugin_extension")
    if extension is None:
        return
    on_type = functools.partial(extension.register_custom_type, c_api)
    on_call = functools.partial(extension.register_custom_call_target, c_api)
    xla_client.register_custom_type_handler(PLATFORM, on_type)
    xla_client.register_custom_call_handler(PLATFORM, on_call)
    for name, value in extension.ffi_types().items():
        xla_client.register_custom_type(name, value, platform=PLATFORM)
    for name, value in extension.ffi_handlers().items():
        register_target(name, value, 1)
    for module in KERNELS:
        registrations = module_named(f"jaxlib.{module}").registrations()
        register_all(registrations.get(PLATFORM, ()))
    for name in batch_targets():
        xla_client.register_custom_call_as_batch_partitionable(name, c_api)
    # Kernels that call LAPACK on the host look it up in SciPy once.
    module_named("jaxlib.gpu_solver").initialize_hybrid_kernels()


def batch_targets() -> Iterator[str]:
    """The kernels that compute each part of a batch alone."""
    for module in BATCH_KERNELS:
        kernels = module_named(f"jaxlib.{module}")
        yield from kernels.batch_partitionable_targets()
    yield from LOADED.batch_targets


def register_batch_target(name: str) -> None:
    """Say that a function of the user's computes each part of a batch alone.

    The library of the plugin has a table of its own, and hears of it when it starts.
    """
    xla_client.register_custom_call_as_batch_partitionable(name)
    if LOADED.c_api is None:
        LOADED.batch_targets = (*LOADED.batch_targets, name)
    else:
        xla_client.register_custom_call_as_batch_partitionable(name, LOADED.c_api)


def register_all(kernels: Iterable[tuple[str, object, int]]) -> None:
    """Kernels by name, each with the version of its calling convention."""
    for name, value, version in kernels:
        register_target(name, value, version)


def register_target(name: str, value: object, version: int) -> None:
    xla_client.register_custom_call_target(
        name, value, platform=PLATFORM, api_version=version
    )


class LoadedPlugin:
    """The functions of the plugin, as jaxlib takes them; None until its client starts.

    A plugin is loaded once for the process. Until then `batch_targets` are what it is
    to be told.
    """

    c_api: object = None
    batch_targets: tuple[str, ...] = ()


LOADED: Final = LoadedPlugin()


def start_cuda_client(device_count: int | None = None) -> xla_client.Client:
    """A client for the GPUs of this machine; `device_count` is for processors only.

    Raises:
        RuntimeError: no plugin is installed, there is no GPU, or it does not start.
        ValueError: a variable of the environment has a value that it cannot have.
    """
    plugin = find_plugin()
    if plugin is None:
        reason = (
            "no plugin is installed: pip install 'verax[cuda13]', or 'verax[cuda12]' "
            "for a driver of CUDA 12 (jax-cuda13-plugin in the version of jaxlib)"
            if gpu_files()
            else f"this machine has no NVIDIA GPU (no {' and no '.join(GPU_FILES)})"
        )
        raise RuntimeError(f"{FAILED}: {reason}.")
    check_versions(plugin)
    options = client_options()
    try:
        load_plugin(plugin)
        return make_client(options)
    except (RuntimeError, OSError) as error:
        raise failure(error) from error


def load_plugin(plugin: CudaPlugin) -> None:
    """Load the plugin and what it needs, and make its kernels known."""
    load_nvidia_libraries()
    c_api = xla_client.load_pjrt_plugin_dynamically(NAME, str(plugin.library))
    LOADED.c_api = c_api
    _profiler.register_plugin_profiler(c_api)
    register_kernels(c_api)
    if not xla_client.pjrt_plugin_initialized(NAME):
        xla_client.initialize_pjrt_plugin(NAME)


def make_client(options: dict[str, object]) -> xla_client.Client:
    """The plugin's client, which joins the other processes if there are any."""
    if not State.joined:
        return xla_client.make_c_api_client(NAME, options)
    return start_joined(
        lambda connection: xla_client.make_c_api_client(
            NAME, options, connection.client
        )
    )

"""The modules that `jax` has here, and what shows them: a frozen table.

The first module that has a name answers for it: the overlays of this package stand
before the modules of verax::

    "jax.api_util": ("verax.jax.overlays.api_util", "verax.api_util"),
    "jax.core": ("verax.jax.overlays.core", "verax.core")
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

from verax.jax.private import PRIVATE, SCIPY

VERSION = "0.12.0"
"""The version of jax whose public surface verax follows."""

VERSION_INFO = (0, 12, 0)

SAME = (
    "ad ad_checkpoint checkpoint_policies custom_batching custom_derivatives "
    "debug distributed dlpack dtypes errors example_libraries "
    "example_libraries.optimizers example_libraries.stax experimental.checkify "
    "experimental.compilation_cache "
    "experimental.compilation_cache.compilation_cache experimental.compute_on "
    "experimental.custom_partitioning experimental.jet experimental.key_reuse "
    "experimental.layout "
    "experimental.mesh_utils experimental.ode experimental.pjit experimental.random "
    "experimental.serialize_executable experimental.shard_map experimental.topologies "
    "experimental.xla_metadata export extend extend.backend extend.mlir extend.random "
    "flatten_util image memory monitoring nn nn.initializers numpy "
    "numpy.fft numpy.linalg ops profiler random ref scipy "
    + " ".join([f"scipy.{name}" for name in (*SCIPY.split(), "interpolate")])
    + " sharding stages test_util tree tree_util typing"
).split()
"""Modules that verax has under the same name."""

OVERLAID: dict[str, tuple[str, ...]] = {
    "jax": ("verax.jax.overlays.top", "verax"),
    "jax.api_util": ("verax.jax.overlays.api_util", "verax.api_util"),
    "jax.core": ("verax.jax.overlays.core", "verax.core", "verax.extend.core"),
    "jax.experimental": ("verax.jax.overlays.experimental", "verax.experimental"),
    "jax.export": ("verax.jax.overlays.export", "verax.export"),
    "jax.ffi": ("verax.jax.overlays.mlir", "verax.ffi"),
    "jax.extend.core": ("verax.jax.overlays.core", "verax.extend.core", "verax.core"),
    "jax.extend.core.primitives": ("verax.jax.overlays.known_primitives",),
    "jax.extend.ifrt_programs": (),
    "jax.extend.mlir.ir": ("jaxlib.mlir.ir",),
    "jax.extend.mlir.dialects": ("jaxlib.mlir.dialects",),
    "jax.extend.linear_util": ("verax.jax.overlays.linear_util",),
    "jax.extend.source_info_util": ("verax.jax.overlays.source_info_util",),
    "jax.version": ("verax.jax.overlays.top",),
    "jax.lax": ("verax.lax", "verax.jax.overlays.known_primitives"),
    "jax.lax.linalg": ("verax.lax.linalg", "verax.jax.overlays.known_primitives"),
    "jax.interpreters": (),
    "jax.lib": ("jaxlib.version",),
    "jax.interpreters.ad": ("verax.jax.overlays.ad",),
    "jax.interpreters.batching": ("verax.jax.overlays.batching",),
    "jax.interpreters.mlir": ("verax.jax.overlays.mlir",),
    "jax.interpreters.partial_eval": ("verax.jax.overlays.partial_eval",),
    "jax.interpreters.pxla": ("verax.jax.overlays.xla",),
    "jax.interpreters.xla": ("verax.jax.overlays.xla",),
    "jax.experimental.sparse.linalg": ("verax.experimental.sparse.linalg",),
    "jax.experimental.sparse.util": (
        "verax.experimental.sparse.util",
        "verax.jax.internals.functions.sparse",
    ),
    **{
        f"jax.experimental.sparse{name}": ("verax.experimental.sparse",)
        for name in ("", ".ad", ".api", ".transform")
    },
    **{
        f"jax.experimental.sparse.{name}": (
            "verax.experimental.sparse",
            "verax.jax.internals.functions.sparse",
        )
        for name in ("bcoo", "bcsr", "coo", "csr")
    },
    "jax.experimental.sparse.random": ("verax.experimental.sparse",),
    "jax.experimental.colocated_python": ("verax.jax.colocated",),
    "jax._src.random.stateful_rng": ("verax.experimental.random",),
    "jax.experimental.colocated_python.func": (),
    "jax.experimental.colocated_python.serialization": (),
    "jax.experimental.array_serialization": (),
    "jax.experimental.array_serialization.serialization": (),
    "jax.experimental.multihost_utils": ("verax.experimental.multihost_utils",),
    "jax.experimental.pallas": (),
    "jax.experimental.pallas.ops": (),
    "jax.experimental.pallas.triton": (),
    "jax.experimental.jax2tf": (),
    "jax.experimental.pallas.ops.tpu": (),
    "jax.experimental.pallas.ops.tpu.splash_attention": (),
    "jax.experimental.hijax": (
        "verax.jax.internals.types.hijax",
        "verax.experimental.hijax",
    ),
}

MODULES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {f"jax.{name}": (f"verax.{name}",) for name in SAME} | dict(PRIVATE) | OVERLAID
)


# -----------------------------------------------------------------------------
# Names of jax that verax has nothing for: they can be imported, not used.
#
# A class serves `isinstance`, and nothing is one; making one, or calling a function,
# raises an error that names it. What a library only mentions does not stop it so::
#
#     isinstance(x, hijax.HiType)     # False
#     hijax.HiType()                  # NotImplementedError


WHY: Mapping[str, str] = MappingProxyType(
    {
        "jax._src.earray": "arrays of another class for keys",
        "jax._src.state": "parts of references: they are read and written at once",
        "jax.experimental.hijax": "types whose values change",
        "jax.extend.ifrt_programs": "programs of IFRT's plugins",
        "jax.experimental.colocated_python": "programs on other hosts",
        "jax.experimental.colocated_python.serialization": "programs on other hosts",
        "jax.experimental.array_serialization.serialization": (
            "arrays of several hosts in files"
        ),
        "jax.experimental.jax2tf": "TensorFlow",
        "jax.experimental.pallas": "kernels of a program's own",
        "jax.experimental.pallas.ops.tpu.splash_attention": "kernels for TPUs",
        "jax.experimental.pallas.triton": "kernels of a program's own",
    }
)
"""The reasons why verax has no such names, by module."""

CLASSES: Mapping[str, str] = MappingProxyType(
    {
        "jax._src.earray": "EArray",
        "jax._src.state": "TransformedRef",
        "jax.experimental.hijax": "MutableHiType QDD TransformedRef",
        "jax.extend.ifrt_programs": "ifrt_programs",
        "jax.experimental.colocated_python.serialization": "DeviceList",
        "jax.experimental.array_serialization.serialization": (
            "GlobalAsyncCheckpointManager GlobalAsyncCheckpointManagerBase"
        ),
    }
)
FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "jax.experimental.array_serialization.serialization": "get_tensorstore_spec",
        "jax.experimental.colocated_python": "colocated_python colocated_python_class",
        "jax.experimental.pallas.ops.tpu.splash_attention": (
            "splash_attention_kernel splash_attention_mask"
        ),
        "jax.experimental.colocated_python.serialization": "",
        "jax.experimental.jax2tf": "convert call_tf",
    }
)


class Inert(type):
    """The type of classes that nothing is an instance of."""

    home: str

    def __call__(cls, *args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(refusal(cls.home, cls.__name__))

    def __getattr__(cls, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(refusal(cls.home, f"{cls.__name__}.{name}"))


def refusal(module: str, name: str) -> str:
    """The error about the use of a name."""
    return f"{module}.{name}: verax has no {WHY[module]}"


class InertFunction:
    """A function that says, when it is called, that verax has nothing for it."""

    def __init__(self, module: str, name: str) -> None:
        self.__module__, self.__name__ = module, name

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(refusal(self.__module__, self.__name__))


def inert_names(module: str) -> dict[str, Any]:
    """The names of a module that can only be mentioned."""
    classes = {
        name: Inert(name, (), {"home": module, "__module__": module})
        for name in CLASSES.get(module, "").split()
    }
    functions = {
        name: InertFunction(module, name) for name in FUNCTIONS.get(module, "").split()
    }
    return classes | functions

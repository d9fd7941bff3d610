"""Names of jax that verax has nothing for: they can be imported, not used.

A class serves `isinstance`, and nothing is one; making one, or calling a function,
raises an error that names it. What a library only mentions does not stop it so::

    isinstance(x, hijax.HiType)     # False
    hijax.HiType()                  # NotImplementedError
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

WHY: Mapping[str, str] = MappingProxyType(
    {
        "jax.experimental.hijax": "types of a program's own",
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
"""What verax would need for the names of a module."""

CLASSES: Mapping[str, str] = MappingProxyType(
    {
        "jax.experimental.hijax": "HiType HiPrim VJPHiPrimitive MutableHiType QDD",
        "jax.extend.ifrt_programs": "ifrt_programs",
        "jax.experimental.colocated_python.serialization": "DeviceList",
        "jax.experimental.array_serialization.serialization": (
            "GlobalAsyncCheckpointManager GlobalAsyncCheckpointManagerBase"
        ),
    }
)
FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "jax.experimental.hijax": "instantiate_zeros",
        "jax.experimental.array_serialization.serialization": "get_tensorstore_spec",
        "jax.experimental.colocated_python": ("colocated_python colocated_cpu_devices"),
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
    """What an error says about the use of a name."""
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

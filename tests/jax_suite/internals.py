"""What the helpers of JAX's tests ask of JAX's internals, in terms of verax.

Names of `jax._src` that no library needs: they are here for the tests alone.
"""

import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import Any

import jaxlib
import ml_dtypes
import numpy as np

import verax
from verax import lax
from verax.dtypes import bfloat16
from verax.extend import random
from verax.jax.internals import config as flags


class States(Mapping[str, Any]):
    """The options by JAX's names, each with its block."""

    def __getitem__(self, name: str) -> Any:
        return flags.State(name.removeprefix("jax_"))

    def __iter__(self) -> Iterator[str]:
        return (f"jax_{name}" for name in dir(verax.config))

    def __len__(self) -> int:
        return len(dir(verax.config))


class Values(Mapping[str, Any]):
    """The values of the options outside of any block."""

    def copy(self) -> dict[str, Any]:
        names = [n for n in dir(verax.config) if not n.startswith("_")]
        return {
            f"jax_{name}": value
            for name in names
            if not callable(value := getattr(verax.config, name))
        }

    def __getitem__(self, name: str) -> Any:
        return getattr(verax.config, name.removeprefix("jax_"))

    def __iter__(self) -> Iterator[str]:
        return iter(self.copy())

    def __len__(self) -> int:
        return len(self.copy())


def nothing(*args: object, **kwargs: object) -> None:
    """Do nothing."""


def always_true() -> bool:
    """Yes."""
    return True


def read(name: str) -> Any:
    """The value of an option; False for a flag of the tests' own."""
    return getattr(verax.config, name.removeprefix("jax_"), False)


@functools.lru_cache
def compiled_primitive() -> None:
    """A memo that stays empty: verax compiles no primitive on its own."""


def remaining(original: Sequence[Any], *removed: Sequence[Any]) -> list[Any]:
    """What is left of a list without the elements of others."""
    return [x for x in original if not any([x in others for others in removed])]


def like_select_and_gather(
    tangents: Any, x: Any, select: Any, dimensions: Any, strides: Any, *more: Any
) -> Any:
    """An array of the shape that `_select_and_gather_add` has: what is asked of it."""

    def either(a: Any, b: Any) -> Any:
        return a

    return lax.reduce_window(x, x.dtype.type(0), either, dimensions, strides, *more)


def is_constant_shape(shape: Sequence[object]) -> bool:
    """Whether all sizes are numbers."""
    return all([isinstance(size, int) for size in shape])


def no(*args: object) -> bool:
    """Not a build that sanitises memory or threads, not a TPU."""
    return False


EVENTS = MappingProxyType(
    {
        "traces": ("trace_to_jaxpr",),
        "lowerings": ("lower_jaxpr_to_module",),
        "compiles": (
            "pxla_cached_compilation",
            "compile_after_persistent_compilation_miss",
        ),
        "program_misses": ("jit_cpp_cache_miss",),
        "trace_misses": ("infer_params_cache_miss",),
    }
)
"""What the tests count, by what verax counts (`verax.monitoring`)."""


def tell(event: str, amount: float) -> None:
    """Tell the tests that something has happened that they count."""
    listener = getattr(sys.modules.get("jax._src.util"), "test_event_listener", None)
    if listener is not None:
        for name in EVENTS.get(event, ()):
            for _ in range(int(amount)):
                listener(name)


FLOAT8 = """
float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2
float8_e5m2fnuz float8_e8m0fnu
""".split()  # noqa: SIM905
NUMBERS = """
bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64
complex64 complex128
""".split()  # noqa: SIM905
KINDS: tuple[str | type[np.generic], ...] = (*NUMBERS, bfloat16)
GENERATORS = {
    "threefry2x32": random.threefry_prng_impl,
    "rbg": random.rbg_prng_impl,
    "unsafe_rbg": random.unsafe_rbg_prng_impl,
}

NAMES: Mapping[str, Mapping[str, Any]] = {
    "jax._src.util": {
        "install_failure_signal_handler": nothing,
        "test_event_listener": None,
    },
    "jax._src.core": {
        "is_constant_shape": is_constant_shape,
        "reset_trace_state": always_true,
    },
    "jax._src.dispatch": {"xla_primitive_callable": compiled_primitive},
    "jax._src.compilation_cache": {"_cache": None, "reset_cache": nothing},
    "jax._src.config": {
        "config_states": States(),
        "abstract_mesh_context_manager": SimpleNamespace(set_local=nothing),
        "device_context": SimpleNamespace(set_local=verax.set_mesh),
        "_read": read,
        "read": read,
    },
    "jax._src.ad_util": {"add_any_p": lax.add_p},
    "jax._src.dtypes": {
        "float6_e2m3fn": ml_dtypes.float6_e2m3fn,
        "float6_e3m2fn": ml_dtypes.float6_e3m2fn,
        "_jax_types": [np.dtype(name) for name in KINDS],
        "_weak_types": [int, float, complex],
        "_float8_dtypes": [np.dtype(getattr(ml_dtypes, name)) for name in FLOAT8],
    },
    "jax._src.dlpack": {
        "SUPPORTED_DTYPES_SET": frozenset([np.dtype(name) for name in KINDS])
    },
    "jax._src.lax.windowed_reductions": {
        "_select_and_gather_add": like_select_and_gather
    },
    "jax._src.lax.control_flow.common": {
        "_dedup_consts": compiled_primitive,
        "_pad_constvars": compiled_primitive,
    },
    "jax._src.lax.lax": {"remaining": remaining},
    "jax.experimental.sparse._lowerings": {
        "SUPPORTED_DATA_DTYPES": [np.dtype("float32"), np.dtype("float64")]
    },
    "jax._src.random.prng": {"prngs": GENERATORS},
    "jax._src.xla_bridge": {"num_cpu_devices": SimpleNamespace(value=8)},
    "jax._src.cloud_tpu_init": {
        "is_libtpu_at_least": no,
        "running_in_cloud_tpu_vm": False,
    },
    "jax._src.lib": {
        "_jax": SimpleNamespace(
            is_optimized_build=always_true,
            is_asan=no,
            is_msan=no,
            is_tsan=no,
            is_sanitized=no,
        ),
        "cuda_versions": None,
        "version_str": jaxlib.__version__,
    },
    "jax._src.interpreters.mlir": {
        "_platforms_with_donation": ["cpu", "cuda", "rocm", "tpu"]
    },
}
"""Names by the module that has them under jax."""

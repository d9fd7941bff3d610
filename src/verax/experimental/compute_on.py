"""The processor for a part of a program, `jax.experimental.compute_on` (floor 6).

The compiler is told so by attributes of the operations, as `xla_metadata` tells it;
derivatives and batches of the part have them, too::

    update = compute_on(
        adam, compute_type="device_host", out_memory_spaces=Space.Host
    )

>>> import verax, verax.numpy as vnp
>>> from verax.memory import Space
>>> f = compute_on(
...     vnp.sin, compute_type="device_host", out_memory_spaces=Space.Device
... )
>>> '{_xla_compute_type = "host"}' in verax.jit(f).lower(1.0).as_text()
True
"""

import functools
import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from verax.api.parallel.device_put import device_put
from verax.api.tracing.wrapping import wraps
from verax.experimental.xla_metadata import MetadataBlock, xla_metadata_call2
from verax.rules.values.conversions import check_callable, shown
from verax.rules.values.state import STATE

__all__ = ["compute_on"]

COMPUTE: Final = "_xla_compute_type"
STREAM: Final = "_xla_stream_annotation"
TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {"device_host": "host", "device": "dense", "tpu_sparsecore": "sparseoffload"}
)
"""The compiler's names of each kind of processor."""
GPU_STREAM: Final = "gpu_stream:"


def compute_on(
    f: Callable[..., object] | None = None,
    *,
    compute_type: str,
    out_memory_spaces: object,
    compiler_options: Mapping[str, object] | None = None,
) -> Callable[..., Any]:
    """`f`, computed by another processor than the rest of a program.

    Args:
        f: the function; without it, this is a decorator.
        compute_type: "device_host" for the processor of the host, "device",
            "tpu_sparsecore", or "gpu_stream:1" for a stream of a GPU by its number.
        out_memory_spaces: where the results are then, as a tree of `memory.Space`s
            that is a prefix of the output.
        compiler_options: what the compiler is told of this part besides, as JSON.

    A processor that a platform does not have is ignored there: the CPU has one only.

    Raises:
        TypeError: `f` is not a function, or `compute_type` not a string.
        ValueError: there is no such processor, the spaces are not a prefix of the
            output, or one such function calls another.
    """
    attributes = told_of(compute_type)
    if f is None:
        return functools.partial(
            compute_on,
            compute_type=compute_type,
            out_memory_spaces=out_memory_spaces,
            compiler_options=compiler_options,
        )
    check_callable("compute_on", f)
    options = None if compiler_options is None else json.dumps(dict(compiler_options))
    if options is None and compute_type in ("device", "tpu_sparsecore"):
        options = "{}"
    whole = attributes if options is None else {**attributes, "backend_config": options}
    part = xla_metadata_call2(MetadataBlock(attributes)(f), whole)

    @wraps(f)
    def computed(*args: object, **kwargs: object) -> Any:
        around = dict(STATE.xla_metadata)
        if COMPUTE in around or STREAM in around:
            raise ValueError(
                "Nesting `compute_on` with different compute types is not allowed"
            )
        return device_put(part(*args, **kwargs), out_memory_spaces)

    return computed


def told_of(compute_type: object) -> dict[str, str]:
    """The compiler's instructions for each operation."""
    if not isinstance(compute_type, str):
        raise TypeError(
            "`compute_on`'s compute_type argument must be a string, not "
            f"{shown(compute_type)}"
        )
    if compute_type.startswith(GPU_STREAM):
        number = compute_type.removeprefix(GPU_STREAM)
        return {STREAM: number, "inlineable": "false"}
    if compute_type not in TYPES:
        raise ValueError(
            f"Invalid compute type {compute_type}. Current supported values are "
            "`device_host`, `device`, `tpu_sparsecore`, and `gpu_stream:#`"
        )
    return {COMPUTE: TYPES[compute_type]}

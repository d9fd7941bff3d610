"""Floor 5: compiled functions from bytes: without tracing, lowering and compiling.

One idea: what is loaded is a `Compiled` like any other; the process that loads it needs
no Python code of the function::

    data = verax.jit(f).lower(x).compile().serialize()
    deserialize(data)(x)
"""

from collections.abc import Sequence

from verax.api.stages.serialization import read, written
from verax.api.stages.stages import Compiled
from verax.backend.pytrees import PyTreeDef
from verax.backend.runtime.client import Client, Device


def deserialize(
    data: bytes | bytearray,
    *,
    backend: str | None = None,
    execution_devices: Sequence[Device] | None = None,
) -> Compiled:
    """The compiled function that `Compiled.serialize` wrote.

    It runs on the first devices of this process, or of the platform `backend`, or on
    `execution_devices`, in the order of their numbers. The bytes are machine code: load
    only what you trust.

    Raises:
        TypeError: `data` is not bytes.
        ValueError: it is not a compiled function, is damaged, was compiled by another
            jaxlib, for another platform, processor, kind or number of devices, or names
            a class that is not registered here.

    >>> import verax
    >>> data = verax.jit(lambda x: {"y": x * 2}).lower(1.0).compile().serialize()
    >>> deserialize(data)(4.0)
    {'y': Array(8., dtype=float32, weak_type=True)}
    """
    return Compiled(*read(data, None, backend, execution_devices))


def serialize(compiled: Compiled) -> tuple[bytes, PyTreeDef, PyTreeDef]:
    """The compiled function as bytes, and the structures of what goes in and out.

    Raises:
        TypeError: it is not a compiled function.
        ValueError: it calls functions of this process, or runs on devices of others.
    """
    if not isinstance(compiled, Compiled):
        raise TypeError(
            "serialize takes what verax.jit(f).lower(...).compile() returns, not "
            f"{compiled!r}"
        )
    data = written(compiled.interface, compiled.program, trees=False)
    return data, compiled.in_tree, compiled.out_tree


def deserialize_and_load(
    serialized: bytes | bytearray,
    in_tree: PyTreeDef,
    out_tree: PyTreeDef,
    backend: str | Client | None = None,
    execution_devices: Sequence[Device] | None = None,
) -> Compiled:
    """The compiled function that `serialize` wrote; see `verax.stages.deserialize`.

    Raises:
        TypeError: `serialized` is not bytes.
        ValueError: the function cannot run here, or the structures have other numbers
            of leaves than its arguments and results.

    >>> import verax
    >>> compiled = verax.jit(lambda x: x * 2).lower(1.0).compile()
    >>> deserialize_and_load(*serialize(compiled))(4.0)
    Array(8., dtype=float32, weak_type=True)
    """
    name = backend.platform if isinstance(backend, Client) else backend
    trees = in_tree, out_tree
    return Compiled(*read(serialized, trees, name, execution_devices))

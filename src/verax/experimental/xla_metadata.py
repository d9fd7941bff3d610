"""Words for the compiler about operations, `jax.experimental.xla_metadata` (floor 6).

They are attributes of operations in StableHLO and HLO (`frontend_attributes`), which
passes of XLA read; they change no values, and transformations keep them::

    with set_xla_metadata(block="attention"):
        y = x @ w

>>> import verax, verax.numpy as vnp
>>> f = verax.jit(xla_metadata_call(vnp.sin, tag="wave"))
>>> 'frontend_attributes={tag="wave"}' in f.lower(1.0).as_text("hlo")
True
"""

import functools
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, overload

from verax.api.tracing.apply import enclosing_scope, is_tracing
from verax.api.tracing.trace import leaf_avals, trace
from verax.api.tracing.wrapping import describe_arguments, wraps
from verax.api.trees.pytrees import tree_map
from verax.backend import pytrees
from verax.ops.calls.call import Attributes, CallParams, Metadata, jit_p
from verax.ops.calls.metadata import marked, told
from verax.rules.values.conversions import shown
from verax.rules.values.state import STATE, changing

__all__ = [
    "fuse_limit",
    "must_fuse_call",
    "set_xla_metadata",
    "xla_metadata_call",
    "xla_metadata_call2",
]


def word(value: object) -> str:
    """A value as the compiler reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def telling(updates: Mapping[str, object]) -> Generator[None]:
    """A block whose operations have attributes besides those of the blocks around."""
    outer = STATE.xla_metadata
    values = dict(outer) | {key: word(v) for key, v in updates.items()}
    inner = tuple(sorted([(k, v) for k, v in values.items() if updates.get(k, v)]))
    builder = enclosing_scope()
    start = 0 if builder is None else len(builder.eqns)
    with changing({"xla_metadata": inner}):
        yield
    if builder is not None and builder.alive and (inner or outer):
        builder.eqns[start:] = told(builder.eqns[start:], inner)


class MetadataBlock:
    """The value of `set_xla_metadata`: a block, which may be entered again."""

    def __init__(self, updates: Mapping[str, object]) -> None:
        self.updates = updates
        self.entered: list[AbstractContextManager[None]] = []

    def __enter__(self) -> None:
        block = telling(self.updates)
        block.__enter__()
        self.entered.append(block)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.entered.pop().__exit__(kind, error, traceback)

    def __call__(self, function: Callable[..., object], /) -> "Told":
        """The function, which runs in such a block."""
        return Told(function, self.updates)


class Told:
    """A function that runs in a block of metadata, as do its methods.

    So `lower` of a jitted function knows the metadata too.
    """

    def __init__(
        self, function: Callable[..., object], updates: Mapping[str, object]
    ) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.updates = updates

    def __call__(self, *args: object, **kwargs: object) -> Any:
        with telling(self.updates):
            return self.function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        out = getattr(self.function, name)
        return Told(out, self.updates) if callable(out) else out


@overload
def set_xla_metadata(x: None = None, **kwargs: object) -> MetadataBlock: ...
@overload
def set_xla_metadata[T](x: T, **kwargs: object) -> T: ...
def set_xla_metadata(x: object = None, **kwargs: object) -> object:
    """Attributes for the operations of a block, or for the one that made a value.

    Without `x` this is a block and a decorator. Blocks add to those around them; the
    value None takes a key away. With `x`, a pytree of arrays, the operations that made
    its leaves have the attributes in compiled programs, and `x` is the result.

    >>> import verax, verax.numpy as vnp
    >>> @verax.jit
    ... def f(x):
    ...     with set_xla_metadata(fast=True):
    ...         return vnp.sin(x)
    >>> 'mhlo.frontend_attributes = {fast = "true"}' in f.lower(1.0).as_text()
    True
    """
    if x is None:
        return MetadataBlock(kwargs)
    attributes = tuple(sorted([(key, word(value)) for key, value in kwargs.items()]))
    return tree_map(lambda leaf: marked(leaf, attributes), x)


def fuse_limit() -> MetadataBlock:
    """A block whose operations XLA fuses with no others: `FUSE_LIMIT` is true."""
    return set_xla_metadata(FUSE_LIMIT=True)


def must_fuse_call(identifier: str) -> Callable[..., Any]:
    """A decorator of functions that XLA fuses whole: `MUST_FUSE` is the identifier."""
    return xla_metadata_call(MUST_FUSE=identifier)


def xla_metadata_call(
    f: Callable[..., object] | None = None, /, **meta: object
) -> Callable[..., object]:
    """`f` as a call with attributes in compiled programs; without `f`, a decorator.

    Derivatives of the call have the attributes, too; see `xla_metadata_call2`.

    Raises:
        TypeError: a value is not a string, a boolean or a number.
    """
    return xla_metadata_call2(f, meta)


def xla_metadata_call2(
    f: Callable[..., object] | Mapping[str, object] | None = None,
    /,
    metadata: Mapping[str, object] | None = None,
    *,
    ad_metadata: str | Mapping[str, object] = "same",
) -> Callable[..., Any]:
    """`xla_metadata_call` with a dict of attributes, and others for derivatives.

    Args:
        f: the function; without it, this is a decorator.
        ad_metadata: the attributes of what `linearize`, `vjp` and `grad` derive from
            it: "same", "drop" for none, or a dict.

    Raises:
        TypeError: `f` is not a function, or a value not a string, boolean or number.

    >>> import verax, verax.numpy as vnp
    >>> g = xla_metadata_call2(vnp.sin, {"layer": 3}, ad_metadata={"layer": "3 back"})
    >>> text = verax.jit(verax.grad(g)).lower(1.0).as_text()
    >>> '{layer = "3 back"}' in text
    True
    """
    if isinstance(f, Mapping) and metadata is None:
        f, metadata = None, f
    if f is None:
        return functools.partial(
            xla_metadata_call2, metadata=metadata, ad_metadata=ad_metadata
        )
    if not callable(f):
        raise TypeError(f"xla_metadata_call expected a callable, not {shown(f)}")
    told = Metadata(checked({} if metadata is None else metadata), derived(ad_metadata))
    return with_metadata(f, told)


def checked(metadata: object) -> Attributes:
    """The attributes of a dict.

    Raises:
        TypeError: it is not a dict, or a value has another type.
    """
    if not isinstance(metadata, Mapping):
        raise TypeError(f"metadata must be a dict, not {shown(metadata)}")
    for key, value in metadata.items():
        if not isinstance(value, str | bool | int | float):
            raise TypeError(
                "metadata values must be strings, booleans or numbers, but that of "
                f"{key!r} is {value!r} of type {type(value).__name__}"
            )
    return tuple(sorted([(key, word(value)) for key, value in metadata.items()]))


def derived(ad_metadata: object) -> Attributes | None:
    """The attributes of derivatives, None for the same.

    Raises:
        TypeError: they are neither "same" nor "drop" nor a dict.
    """
    if ad_metadata == "same":
        return None
    if ad_metadata == "drop":
        return ()
    if not isinstance(ad_metadata, Mapping):
        raise TypeError(
            f"ad_metadata must be 'same', 'drop' or a dict, not {shown(ad_metadata)}"
        )
    return checked(ad_metadata)


def with_metadata(
    fun: Callable[..., object], metadata: Metadata
) -> Callable[..., object]:
    """`fun` as a call with metadata; eagerly it is `fun` itself."""

    @wraps(fun)
    def called(*args: object, **kwargs: object) -> object:
        if not is_tracing():
            return fun(*args, **kwargs)
        leaves, tree = pytrees.flatten((args, kwargs))
        describe = describe_arguments(fun, tree)
        avals = leaf_avals(leaves, describe)
        opened = trace(
            fun, tree, avals, "xla_metadata_call", describe=describe, values=leaves
        ).opened
        params = CallParams("xla_metadata_call", opened.jaxpr, False, metadata)
        return opened.out_tree.unflatten(jit_p.bind(params, *opened.captured, *leaves))

    return called

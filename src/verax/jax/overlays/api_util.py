"""`jax.api_util`: functions of trees as functions of their leaves."""

from collections.abc import Callable, Sequence

from attrs import frozen

from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.records import ReprMixin
from verax.jax.overlays.linear_util import (
    Running,
    WrappedFun,
    with_aux,
)

__all__ = [
    "DebugInfo",
    "argnums_partial",
    "debug_info",
    "flatten_fun",
    "flatten_fun_nokwargs",
]


@frozen(repr=False)
class DebugInfo(ReprMixin):
    """The purpose of a function's trace, and the names of its arguments."""

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None = None
    result_paths: tuple[str, ...] | None = None


def debug_info(
    traced_for: str,
    fun: Callable[..., object],
    args: Sequence[object],
    kwargs: dict[str, object],
    **_: object,
) -> DebugInfo:
    """The names for messages of a function that is about to be traced."""
    return DebugInfo(traced_for, getattr(fun, "__name__", str(fun)))


def argnums_partial(
    f: WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence[object],
    require_static_args_hashable: bool = True,
) -> tuple[WrappedFun, tuple[object, ...]]:
    """A function of some of its arguments, with the others fixed, and these arguments.

    Raises:
        ValueError: a fixed argument cannot be hashed, though it has to be.
    """
    chosen = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    places = [i % len(args) for i in chosen]
    for i, x in enumerate(args):
        if i not in places and require_static_args_hashable:
            try:
                hash(x)
            except TypeError as error:
                raise ValueError(
                    f"argument {i} is static, but {x} cannot be hashed"
                ) from error
    fixed = tuple(args)

    def step(*given: object, **kwargs: object) -> Running:
        every = list(fixed)
        for i, x in zip(places, given, strict=True):
            every[i] = x
        yield (yield tuple(every), kwargs)

    return f.wrap((step, (), None)), tuple([args[i] for i in places])


def flat_call(in_tree: PyTreeDef, *leaves: object) -> Running:
    args, kwargs = in_tree.unflatten(leaves)
    result = yield args, kwargs
    yield pytrees.flatten(result)


def flat_call_nokwargs(in_tree: PyTreeDef, *leaves: object) -> Running:
    result = yield in_tree.unflatten(leaves), {}
    yield pytrees.flatten(result)


def flatten_fun(
    fun: WrappedFun, in_tree: PyTreeDef
) -> tuple[WrappedFun, Callable[[], PyTreeDef]]:
    """A function of the leaves of (args, kwargs), and its structure of results."""
    return with_aux(flat_call, fun, in_tree)


def flatten_fun_nokwargs(
    fun: WrappedFun, in_tree: PyTreeDef
) -> tuple[WrappedFun, Callable[[], PyTreeDef]]:
    """A function of the leaves of args, and its structure of results."""
    return with_aux(flat_call_nokwargs, fun, in_tree)

"""`jax.api_util`: functions of trees as functions of their leaves."""

from collections.abc import Callable, Generator, Sequence
from typing import Any

from attrs import frozen

from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.records import ReprMixin
from verax.jax.overlays.linear_util import (
    WrappedFun,
    with_aux,
)

__all__ = ["DebugInfo", "debug_info", "flatten_fun", "flatten_fun_nokwargs"]


@frozen(repr=False)
class DebugInfo(ReprMixin):
    """The purpose of a function's trace, and the names of its arguments."""

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None = None
    result_paths: tuple[str, ...] | None = None


def debug_info(
    traced_for: str,
    fun: Callable[..., Any],
    args: Sequence[object],
    kwargs: dict[str, Any],
    **_: object,
) -> DebugInfo:
    """The names for messages of a function that is about to be traced."""
    return DebugInfo(traced_for, getattr(fun, "__name__", str(fun)))


def flat_call(in_tree: PyTreeDef, *leaves: object) -> Generator[Any, Any, None]:
    args, kwargs = in_tree.unflatten(leaves)
    result = yield args, kwargs
    yield pytrees.flatten(result)


def flat_call_nokwargs(
    in_tree: PyTreeDef, *leaves: object
) -> Generator[Any, Any, None]:
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

"""`jax._src.numpy`: promotion, and the parts of `vectorize`."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import verax.numpy as vnp
from verax.numpy.applying.vectorize_apply import checked, core_sizes, parsed
from verax.numpy.arguments.arguments import (
    as_array,
    broadcast_shapes_of,
    check_arraylike as check_arraylike,
    promote_args as promote_args,
    promote_args_inexact as promote_args_inexact,
    promote_dtypes as promote_dtypes,
    promote_dtypes_inexact as promote_dtypes_inexact,
    promote_numeric as promote_args_numeric,
)
from verax.numpy.indexing.getitem_and_at import (
    Mode,
    Update as _IndexUpdateRef,
    Updates as _IndexUpdateHelper,
)
from verax.rules.values.array import Array
from verax.scipy.tables import to_complex
from verax.typing import ArrayLike

__all__ = [
    "CClass",
    "RClass",
    "_IndexUpdateHelper",
    "_IndexUpdateRef",
    "check_arraylike",
    "ensure_arraylike",
    "promote_args",
    "promote_args_inexact",
    "promote_args_numeric",
    "promote_dtypes",
    "promote_dtypes_complex",
    "promote_dtypes_inexact",
    "promote_dtypes_numeric",
    "promote_shapes",
]

CClass = type(vnp.c_)
RClass = type(vnp.r_)
type Core = tuple[str, ...]


def check_arraylike_or_none(fun_name: str, *args: object) -> None:
    """Raise TypeError for what is neither an array, a scalar nor None."""
    check_arraylike(fun_name, *[x for x in args if x is not None])


def ensure_arraylike(fun_name: str, /, *args: ArrayLike) -> Any:
    """The arguments as arrays; one alone is no tuple."""
    check_arraylike(fun_name, *args)
    out = tuple([as_array(fun_name, x, i) for i, x in enumerate(args)])
    return out[0] if len(out) == 1 else out


def promote_dtypes_complex(*args: ArrayLike) -> list[Array]:
    """The arguments in their common dtype, a complex one."""
    return [to_complex(vnp.asarray(x)) for x in promote_dtypes_inexact(*args)]


def promote_dtypes_numeric(*args: ArrayLike) -> list[Array]:
    """The arguments in their common dtype; booleans count as integers."""
    return list(promote_args_numeric("promote_dtypes_numeric", *args))


def promote_shapes(fun_name: str, *args: ArrayLike) -> list[Array]:
    """The arguments with dimensions of size 1 before their own, up to one rank."""
    arrays = [vnp.asarray(x) for x in args]
    rank = len(broadcast_shapes_of(fun_name, [x.shape for x in arrays]))
    return [
        x if x.ndim in (0, rank) else x.reshape((1,) * (rank - x.ndim) + x.shape)
        for x in arrays
    ]


def _parse_gufunc_signature(signature: str) -> tuple[list[Core], list[Core]]:
    """The dimensions of the operands and of the results that a signature names."""
    ins, outs = parsed(signature)
    return list(ins), list(outs)


def _parse_input_dimensions(
    args: Sequence[object], input_core_dims: Sequence[Core], error_context: str = ""
) -> tuple[tuple[int, ...], dict[str, int]]:
    """The leading shape of the operands together, and the sizes by name."""
    sizes: dict[str, int] = {}
    arrays = [vnp.asarray(x) for x in args]
    leading = core_sizes(arrays, tuple(input_core_dims), sizes)
    return broadcast_shapes_of("vectorize", leading) if leading else (), sizes


def _check_output_dims(
    func: Callable[..., object],
    dim_sizes: dict[str, int],
    expected_output_core_dims: Sequence[Core],
    error_context: str = "",
) -> Callable[..., Any]:
    """The function, whose results are compared with the dimensions it promised."""

    def wrapped(*args: object, **kwargs: object) -> Any:
        names = ((), tuple(expected_output_core_dims))
        return checked(func(*args, **kwargs), names, dict(dim_sizes))

    return wrapped


def _apply_excluded(
    func: Callable[..., object],
    excluded: Collection[object],
    args: Sequence[object],
    kwargs: dict[str, object],
) -> tuple[Callable[..., Any], Sequence[object], dict[str, object]]:
    """The function of the arguments that are not excluded, and these arguments."""
    if not excluded:
        return func, args, kwargs
    rest = [arg for i, arg in enumerate(args) if i not in excluded]
    named = {key: value for key, value in kwargs.items() if key not in excluded}
    fixed = {key: value for key, value in kwargs.items() if key in excluded}

    def new_func(*given: object, **named: object) -> Any:
        left = iter(given)
        every = [arg if i in excluded else next(left) for i, arg in enumerate(args)]
        return func(*every, **fixed, **named)

    return new_func, rest, named


def rewriting_take(
    arr: ArrayLike,
    idx: object,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: Mode = None,
    fill_value: object = None,
    normalize_indices: bool = True,
    out_sharding: object = None,
    strategy: object = None,
) -> Array:
    """`arr[idx]`, see `x.at[idx].get`; how it is computed, verax decides itself."""
    options = {} if out_sharding is None else {"out_sharding": out_sharding}
    out: Array = (
        vnp.asarray(arr)
        .at[idx]
        .get(
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
            fill_value=fill_value,
            wrap_negative_indices=normalize_indices,
            **options,
        )
    )
    return out


_rewriting_take = rewriting_take

"""`jax._src.util`: small functions on lists, tuples and functions."""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from verax.api_util import safe_map as safe_map
from verax.rules.values.array import Array
from verax.rules.values.sizes import as_axis

wraps = functools.wraps
concatenate = itertools.chain.from_iterable


def safe_zip[T](*args: Iterable[T]) -> list[tuple[T, ...]]:
    """`zip` of sequences of one length."""
    return list(zip(*args, strict=True))


def foreach(f: Callable[..., object], *args: Iterable[object]) -> None:
    """Call `f` on the items of sequences of one length."""
    for items in zip(*args, strict=True):
        f(*items)


def unzip2[A, B](pairs: Iterable[tuple[A, B]]) -> tuple[tuple[A, ...], tuple[B, ...]]:
    """The first items and the second items."""
    rows = list(pairs)
    return tuple([a for a, _ in rows]), tuple([b for _, b in rows])


def unzip3[A, B, C](
    triples: Iterable[tuple[A, B, C]],
) -> tuple[tuple[A, ...], tuple[B, ...], tuple[C, ...]]:
    """The first items, the second items and the third items."""
    rows = list(triples)
    return tuple([a for a, _, _ in rows]), *unzip2([(b, c) for _, b, c in rows])


def split_list[T](args: Sequence[T], sizes: Sequence[int]) -> list[list[T]]:
    """Lists of these lengths, one after the other, and the rest."""
    ends = [0, *itertools.accumulate(sizes)]
    starts = list(itertools.pairwise([*ends, len(args)]))
    return [list(args[start:end]) for start, end in starts]


def split_list_checked[T](args: Sequence[T], sizes: Sequence[int]) -> list[list[T]]:
    """`split_list` without a rest.

    Raises:
        ValueError: the lengths do not add up to that of the list.
    """
    if sum(sizes) != len(args):
        raise ValueError(f"the sizes {list(sizes)} do not add up to {len(args)}")
    return split_list(args, sizes)[:-1]


def partition_list[T](
    which: Sequence[bool], args: Sequence[T]
) -> tuple[list[T], list[T]]:
    """The items that are not marked, and those that are."""
    pairs = list(zip(which, args, strict=True))
    return [x for flag, x in pairs if not flag], [x for flag, x in pairs if flag]


def merge_lists[T](
    which: Sequence[bool], unmarked: Sequence[T], marked: Sequence[T]
) -> list[T]:
    """One list of the two that `partition_list` gives."""
    first, second = iter(unmarked), iter(marked)
    return [next(second) if flag else next(first) for flag in which]


def subs_list[T](
    places: Sequence[int | None], source: Sequence[T], base: Sequence[T]
) -> list[T]:
    """The items of a source where there is a place, those of the base elsewhere."""
    left = iter(base)
    return [next(left) if i is None else source[i] for i in places]


def subvals[T](items: Iterable[T], changes: Iterable[tuple[int, T]]) -> tuple[T, ...]:
    """The items with some replaced."""
    out = list(items)
    for i, x in changes:
        out[i] = x
    return tuple(out)


def flatten[T](lists: Iterable[Iterable[T]]) -> list[T]:
    """The items of all lists."""
    return list(itertools.chain.from_iterable(lists))


def unflatten[T](items: Iterable[T], sizes: Iterable[int]) -> list[list[T]]:
    """Lists of these lengths."""
    left = iter(items)
    return [list(itertools.islice(left, size)) for size in sizes]


def curry(f: Callable[..., object]) -> Callable[..., Any]:
    """`f` that takes its first arguments first."""
    return functools.wraps(f)(functools.partial(functools.partial, f))


def memoize(call: Callable[..., object]) -> Callable[..., Any]:
    """A memo of a function of hashable arguments, as long as it lives."""
    results = {}

    @functools.wraps(call)
    def remembered(*args: object, **kwargs: object) -> Any:
        key = (args, tuple(kwargs.items()))
        if key not in results:
            results[key] = call(*args, **kwargs)
        return results[key]

    return remembered


def cache(*options: object, **named: object) -> Any:
    """A memo of a function, or a decorator that makes one; settings are not needed."""
    return memoize(options[0]) if options and callable(options[0]) else memoize


def weakref_lru_cache(call: Callable[..., object], maxsize: int | None = 2048) -> Any:
    """A memo of a function."""
    return memoize(call)


def canonicalize_axis(axis: object, num_dims: int) -> int:
    """The number of a dimension, counted from the first.

    Raises:
        ValueError: there is no such dimension.
    """
    return as_axis("canonicalize_axis", axis, num_dims)


def canonicalize_axis_tuple(
    axis: object, ndim: int, allow_duplicate: bool = False
) -> tuple[int, ...]:
    """The numbers of several dimensions; all of them for None."""
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if not isinstance(axis, Sequence) else tuple(axis)
    out = tuple([canonicalize_axis(i, ndim) for i in axes])
    if len(set(out)) != len(out) and not allow_duplicate:
        raise ValueError(f"duplicate value in 'axis': {axis}")
    return out


def moveaxis(x: Array, src: object, dst: object) -> Any:
    """`x` with a dimension elsewhere."""
    return x.__array_namespace__().moveaxis(x, src, dst)


def tuple_insert[T](t: tuple[T, ...], place: int, value: T) -> tuple[T, ...]:
    """The tuple with one item more."""
    return (*t[:place], value, *t[place:])


def tuple_delete[T](t: tuple[T, ...], place: int) -> tuple[T, ...]:
    """The tuple without one item."""
    return (*t[:place], *t[place + 1 :])


def tuple_update[T](t: tuple[T, ...], place: int, value: T) -> tuple[T, ...]:
    """The tuple with one item replaced."""
    return (*t[:place], value, *t[place + 1 :])


def ceil_of_ratio(x: int, y: int) -> int:
    """The quotient, rounded up."""
    return -(-x // y)


def prod(xs: Iterable[object]) -> Any:
    """The product of numbers."""
    return math.prod(xs)


def fun_name(f: object, default: str = "<unnamed function>") -> str:
    """The name of a function, through `functools.partial`."""
    while isinstance(f, functools.partial):
        f = f.func
    return str(getattr(f, "__name__", default))


fun_qual_name = fun_name


def wrap_name(transform: str, name: str) -> str:
    """The name of what a transformation makes of a function."""
    return f"{transform}({name})"


def set_module[T](module: str) -> Callable[[T], T]:
    """A decorator that sets the `__module__` of a function or class."""

    def wrapper(thing: T) -> T:
        thing.__module__ = module
        return thing

    return wrapper


def stable_unique[T](items: Iterable[T]) -> Iterable[T]:
    """The items without repetitions, in the order of their first."""
    return dict.fromkeys(items).keys()


class HashableFunction:
    """A function that equals another with the same closure."""

    def __init__(self, f: Callable[..., object], closure: object) -> None:
        self.f, self.closure = f, closure

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, HashableFunction)
            and self.f.__code__ is other.f.__code__
            and self.closure == other.closure
        )

    def __hash__(self) -> int:
        return hash((self.f.__code__, self.closure))

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.f(*args, **kwargs)


class HashablePartial:
    """`functools.partial` that equals another of the same function and arguments."""

    def __init__(
        self, f: Callable[..., object], *args: object, **kwargs: object
    ) -> None:
        self.f, self.args, self.kwargs = f, args, kwargs

    def key(self) -> tuple[object, ...]:
        return self.f.__code__, self.args, tuple(sorted(self.kwargs.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashablePartial) and other.key() == self.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self.f(*self.args, *args, **self.kwargs, **kwargs)

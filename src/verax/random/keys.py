"""Floor 6: random keys: made from a seed, split, folded; typed or as raw words.

One idea: a key is a value and there is no hidden state: whoever needs two independent
streams splits the key, and equal keys give equal numbers::

    key(0)                         # an array of dtype key<fry>
    PRNGKey(0)                     # its words, uint32[2]
    first, second = split(key(0))

Every function of `verax.random` takes either form; `split` and `fold_in` give back
the form that they were given.
"""

import warnings
from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import NewType

import numpy as np

from verax.api.config.tracebacks import in_words
from verax.backend.arrays.concrete import at_home
from verax.ir import dtypes
from verax.ir.dtypes import KEY_WORDS, KeyDType, is_integer, uint32
from verax.numpy.arguments.arguments import ArrayLike, shown
from verax.numpy.elementwise.arithmetic import add
from verax.ops.elementwise.convert import convert
from verax.ops.random.generators import (
    GENERATORS as BUILT_IN,
    TAGS as GENERATORS,
    Generator,
    dtype_of,
    generator,
)
from verax.ops.random.keys import (
    impl_of,
    random_fold_in,
    random_seed,
    random_split,
    random_unwrap,
    random_wrap,
)
from verax.ops.structure.shape import reshape
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.state import STATE

LONG_NAMES: Mapping[str, str] = MappingProxyType({v: k for k, v in GENERATORS.items()})

NUMBERS = {1: "one", 2: "two", 4: "four"}

type Impl = str | KeyDType | Generator

Key = NewType("Key", Array)
"""For annotations: an array of one or more typed keys."""


def resolved(
    impl: Impl | dtypes.Impl | None, dtype: KeyDType | None = None
) -> dtypes.Impl:
    """The short name of a generator, or one of the user's as it is.

    Raises:
        TypeError: `impl` is neither a name nor a dtype nor a generator.
        ValueError: there is no such generator, or both are given.
    """
    if impl is not None and dtype is not None:
        raise ValueError("Cannot specify both `impl` and `dtype`: pass one of them")
    chosen = impl or dtype or STATE.default_prng_impl or "threefry2x32"
    if isinstance(chosen, KeyDType):
        return chosen.impl
    if isinstance(chosen, Generator):
        return chosen.tag if BUILT_IN.get(chosen.tag) == chosen else chosen
    if not isinstance(chosen, str):
        raise TypeError(
            f"unrecognized type {type(chosen).__name__} of a PRNG implementation: impl "
            f"must be the name of a generator, not {shown(chosen)}"
        )
    entry = GENERATORS.get(chosen, chosen if chosen in LONG_NAMES else None)
    if entry is None:
        raise ValueError(
            f"unrecognized PRNG implementation {chosen!r}; use one of "
            f"{', '.join(GENERATORS)}"
        )
    return entry


def key_dtype(impl_spec: Impl | None = None) -> KeyDType:
    """The dtype of the typed keys of a generator.

    Args:
        impl_spec: a generator, its name, or the dtype of its keys; None for the default
            generator, threefry2x32 unless it is configured.

    Returns:
        A dtype that only arrays of keys have.

    Raises:
        TypeError: it is none of these.
        ValueError: there is no generator of that name.

    >>> from verax import random
    >>> random.key_dtype(), random.key_dtype("rbg")
    (key<fry>, key<rbg>)
    """
    return dtype_of(resolved(impl_spec))


def is_typed(x: object) -> bool:
    """Whether `x` is an array of typed keys."""
    return isinstance(x, Array) and isinstance(x.aval.dtype, KeyDType)


def typed_keys(name: str, key: object, impl: Impl | dtypes.Impl | None = None) -> Array:
    """Keys in either form, as typed ones.

    Raw keys belong to `impl` if it is given, else to the default generator if they have
    as many words as its keys, else to threefry (two words) or rbg (four).

    Raises:
        TypeError: `key` holds no keys.
    """
    if isinstance(key, Array) and isinstance(key.aval.dtype, KeyDType):
        return key
    if not isinstance(key, Array | np.ndarray):
        raise TypeError(
            f"{name} takes a key, but argument 0 is {shown(key)} of type "
            f"{type(key).__name__}; make one with verax.random.key(seed)"
        )
    aval = aval_of(key)
    own = resolved(impl)
    words = generator(own).key_shape
    if impl is None and aval.shape[-len(words) :] != words:
        own = "rbg" if aval.shape[-1:] == (4,) else "fry"
        words = KEY_WORDS[own]
    right = not words or aval.shape[-len(words) :] == words
    if aval.dtype != uint32 or key.dtype != uint32 or not right:
        count = NUMBERS.get(prod(words), str(prod(words)))
        raise TypeError(
            f"JAX encountered invalid PRNG key data in {name}: a raw "
            f"{generator(own).name} key has {count} words, uint32{list(words)}, not "
            f"{key.dtype}{list(key.shape)}; make one with verax.random.key(seed)"
        )
    if STATE.legacy_prng_key != "allow" and impl is None:
        legacy(name)
    return random_wrap(key, own)


def legacy(name: str) -> None:
    """Warn or raise, as `legacy_prng_key` says: `name` was called with a raw key.

    Raises:
        ValueError: the option is "error".
    """
    text = (
        f"Legacy uint32 key array passed as key to verax.random function {name}; make "
        "a typed one with verax.random.key(seed), or wrap it with "
        "verax.random.wrap_key_data"
    )
    if STATE.legacy_prng_key == "error":
        raise ValueError(text)
    warnings.warn(in_words(text), stacklevel=4)


def one_key(name: str, key: object) -> Array:
    """One key in either form, as a typed one.

    Raises:
        TypeError: `key` is not a key.
        ValueError: it is several.
    """
    out = typed_keys(name, key)
    if out.aval.shape:
        raise ValueError(
            f"{name} accepts a single key, but was given a key array of shape "
            f"{out.shape}; map "
            "over them with verax.vmap"
        )
    return out


def new_key(name: str, seed: int | ArrayLike, impl: dtypes.Impl) -> Array:
    """A typed key from a seed and, if that is configured, an offset."""
    if is_typed(seed):
        raise TypeError(f"{name} accepts a scalar seed, an integer, not a key")
    if isinstance(seed, int) and not -(1 << 63) <= seed < 1 << 63:
        raise OverflowError(
            f"{name}: the seed {seed} has more than 64 bits; fold the others in with "
            "verax.random.fold_in"
        )
    aval = aval_of(seed)
    if aval.shape:
        raise TypeError(
            f"{name} accepts a scalar seed, but was given {aval}; map over seeds with "
            "verax.vmap"
        )
    if not is_integer(aval.dtype):
        if isinstance(seed, bool | np.bool_):
            return new_key(name, int(seed), impl)
        raise TypeError(f"PRNG key seed must be an integer: {name} was given {aval}")
    offset = STATE.random_seed_offset
    if offset:
        moved = seed + offset if isinstance(seed, int) else add(seed, offset)
        return random_seed(moved, impl)
    return random_seed(seed, impl)


def key(
    seed: int | ArrayLike, *, impl: Impl | None = None, dtype: KeyDType | None = None
) -> Array:
    """The typed key of an integer seed, a scalar of dtype key<fry>.

    Args:
        seed: an integer, or an integer array without dimensions; a Python integer of at
            most 64 bits.
        impl: the generator of what is drawn with it: threefry2x32, rbg, unsafe_rbg,
            philox2x32, philox4x32, threefry4x32, or one of your own; None for the
            default, threefry2x32 unless it is configured.
        dtype: the dtype of keys of the generator, instead of `impl`.

    Returns:
        One key, an array without dimensions.

    Raises:
        TypeError: the seed is not an integer, or several.
        ValueError: the generator is unknown.
        OverflowError: a Python integer has more than 64 bits.

    >>> import verax
    >>> verax.random.key(0).dtype
    key<fry>
    """
    return at_home(new_key("key", seed, resolved(impl, dtype)))


def PRNGKey(seed: int | ArrayLike, *, impl: Impl | None = None) -> Array:
    """The raw key of an integer seed: its words.

    Args:
        seed: an integer, or an integer array without dimensions; a Python integer of at
            most 64 bits.
        impl: the generator of what is drawn with it: threefry2x32, rbg, unsafe_rbg,
            philox2x32, philox4x32, threefry4x32, or one of your own; None for the
            default, threefry2x32 unless it is configured.

    Returns:
        A vector of uint32: of two words, four for rbg and unsafe_rbg, one for
        philox2x32; with `enable_custom_prng` the typed key.

    Raises:
        TypeError: the seed is not an integer, or several.
        ValueError: the generator is unknown.
        OverflowError: a Python integer has more than 64 bits.

    >>> import verax
    >>> verax.random.PRNGKey(7)
    Array([0, 7], dtype=uint32)
    """
    typed = new_key("PRNGKey", seed, resolved(impl))
    return at_home(typed if STATE.enable_custom_prng else random_unwrap(typed))


def key_data(keys: ArrayLike) -> Array:
    """The words of keys.

    Args:
        keys: an array of keys of any shape, typed or raw.

    Returns:
        An array of uint32, of shape (*keys.shape, 2), or (*keys.shape, 4) for rbg and
        unsafe_rbg.

    Raises:
        TypeError: it holds no keys.

    >>> from verax import random
    >>> random.key_data(random.key(7))
    Array([0, 7], dtype=uint32)
    >>> random.key_data(random.split(random.key(7), 3)).shape
    (3, 2)
    """
    if is_typed(keys):
        return random_unwrap(keys)
    typed = typed_keys("key_data", keys)
    return keys if isinstance(keys, Array) else random_unwrap(typed)


def wrap_key_data(
    key_bits_array: ArrayLike,
    *,
    impl: Impl | None = None,
    dtype: KeyDType | None = None,
) -> Array:
    """Typed keys from their words: the inverse of `key_data`.

    Args:
        key_bits_array: an array of uint32, of shape (*s, 2), or (*s, 4) for rbg and
            unsafe_rbg.
        impl: the generator that the keys are of, or its name; None for the default one.
        dtype: the dtype of keys of the generator, instead of `impl`.

    Returns:
        An array of keys of shape s.

    Raises:
        TypeError: the words have another dtype or shape.
        ValueError: there is no such generator.

    >>> from verax import random
    >>> import verax.numpy as vnp
    >>> key = random.wrap_key_data(vnp.array([0, 7], vnp.uint32))
    >>> bool(key == random.key(7))
    True
    """
    if is_typed(key_bits_array):
        raise TypeError("wrap_key_data takes raw key data, not typed keys")
    return typed_keys("wrap_key_data", key_bits_array, resolved(impl, dtype))


def key_impl(keys: ArrayLike) -> str | Generator:
    """The name of the generator of keys; one of the user's is given as it is.

    Args:
        keys: an array of keys of any shape, typed or raw.

    Returns:
        A string, or the generator.

    Raises:
        TypeError: it holds no keys.

    >>> import verax
    >>> verax.random.key_impl(verax.random.key(0))
    'threefry2x32'
    """
    dtype = typed_keys("key_impl", keys).aval.dtype
    assert isinstance(dtype, KeyDType)
    out = generator(dtype.impl)
    return out.name if BUILT_IN.get(out.tag) == out else out


def like(given: object, keys: Array) -> Array:
    """Typed keys in the form in which `given` holds keys."""
    return keys if is_typed(given) else random_unwrap(keys)


def split(key: ArrayLike, num: int | Sequence[int] = 2) -> Array:
    """New keys, independent of each other and of `key`.

    Args:
        key: one key, as `random.key` makes it.
        num: how many keys, a number or a shape; by default 2.

    Returns:
        An array of keys, of shape (num,) or num, typed or raw as `key` is.

    Raises:
        TypeError: `key` is not a key.
        ValueError: it is several.

    >>> import verax
    >>> first, second = verax.random.split(verax.random.key(0))
    >>> verax.random.split(first, (2, 3)).shape
    (2, 3)
    """
    shape = tuple(num) if isinstance(num, Sequence) else (num,)
    return like(key, random_split(one_key("split", key), shape))


def fold_in(key: ArrayLike, data: int | ArrayLike) -> Array:
    """A new key from a key and an integer of 32 bits, such as the number of a step.

    Args:
        key: one key, as `random.key` makes it.
        data: a number without dimensions: a Python integer from 0 to 2**32 - 1, or an
            integer array, whose elements are taken modulo 2**32.

    Returns:
        One key, typed or raw as `key` is.

    Raises:
        TypeError: `key` is not a key, or `data` is several numbers.
        OverflowError: `data` is a Python integer that is not a uint32.
        ValueError: `key` is several.

    >>> from verax import random
    >>> key = random.key(0)
    >>> for step in range(3):
    ...     print(random.uniform(random.fold_in(key, step)).round(2))
    0.84
    0.01
    0.9
    """
    typed = one_key("fold_in", key)
    if isinstance(data, bool | int | float) and not isinstance(data, np.generic):
        word: object = np.asarray(int(data), np.uint32)
    else:
        aval = aval_of(data)
        if aval.shape:
            raise TypeError(
                f"fold_in takes one number, but was given {aval}; map over them with "
                "verax.vmap"
            )
        word = convert(data, uint32)
    return like(key, random_fold_in(typed, word))


def clone(key: ArrayLike) -> Array:
    """The same key, but a new one for checks that keys are used only once.

    Args:
        key: an array of keys of any shape, typed or raw.

    Returns:
        An array of the same keys.

    Raises:
        TypeError: it holds no keys.

    >>> import verax
    >>> key = verax.random.key(0)
    >>> with verax.debug_key_reuse():
    ...     x = verax.random.bits(key)
    ...     y = verax.random.bits(verax.random.clone(key))
    """
    typed = typed_keys("clone", key)
    if is_typed(key) and (STATE.debug_key_reuse or isinstance(key, Tracer)):
        return random_wrap(random_unwrap(typed), impl_of("clone", typed))
    return key if isinstance(key, Array) else random_unwrap(typed)


def pieces(x: Array) -> list[Array]:
    """The elements along the first dimension."""
    rest = x.aval.shape[1:]
    return [reshape(slice_in_dim(x, i, i + 1), rest) for i in range(x.aval.shape[0])]


def several(key: Array, count: int) -> list[Array]:
    """`count` new keys from one."""
    return pieces(random_split(key, (count,)))

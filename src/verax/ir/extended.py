"""Floor 0: dtypes that NumPy does not know, such as those of typed random keys.

One idea: an array of an extended dtype is stored as a larger array of an ordinary one,
so that code that moves elements needs only two attributes::

    key = KeyDType("fry", (2,))    # prints as key<fry>
    key.element_dtype, key.element_shape    # (dtype('uint64'), ())
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import prod
from types import MappingProxyType
from typing import ClassVar, Final, Protocol

import numpy as np
from attrs import frozen

type NumpyDType = np.dtype[np.generic]

KEY_WORDS: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    {"fry": (2,), "rbg": (4,), "urbg": (4,)}
)


class Tagged(Protocol):
    """A generator of the user's; its tag is its short name."""

    @property
    def tag(self) -> str: ...


type Impl = str | Tagged
"""A generator of random bits: the short name of one of ours, or one of the user's."""

# What holds so many words of a key as one element.
STORED: Final[Mapping[int, type[np.generic]]] = MappingProxyType(
    {1: np.uint32, 2: np.uint64, 4: np.complex128}
)


class extended(np.generic):
    """The scalar class of every extended dtype; it has no instances."""

    __module__ = "verax.dtypes"


class prng_key(extended):
    """The scalar class of typed random keys; it has no instances."""

    __module__ = "verax.dtypes"


class ExtendedDType(ABC):
    """A dtype that NumPy does not know, stored as an array of one that it does.

    An array of this dtype and shape `s` is stored as an array of `element_dtype` and
    shape `s + element_shape`.
    """

    transient: ClassVar[bool] = False

    __slots__ = ()

    @property
    def kind(self) -> str:
        return "V"

    @property
    def itemsize(self) -> int:
        return prod(self.element_shape) * self.element_dtype.itemsize

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def type(self) -> type[extended]: ...

    @property
    @abstractmethod
    def element_shape(self) -> tuple[int, ...]: ...

    @property
    @abstractmethod
    def element_dtype(self) -> NumpyDType: ...


@frozen(repr=False, cache_hash=True)
class KeyDType(ExtendedDType):
    """The dtype of typed random keys: the generator and the shape of a key's words.

    A key of two 32-bit words is stored as one 64-bit element, the first word lowest, so
    that whatever moves elements moves keys; one of four as the bits of a complex number
    of 128 bits, for the same reason. Other keys are stored word by word.

    >>> KeyDType("fry", (2,)), KeyDType("fry", (2,)).itemsize
    (key<fry>, 8)
    """

    impl: Impl
    word_shape: tuple[int, ...]

    @property
    def name(self) -> str:
        if not isinstance(self.impl, str):
            return f"key<{self.impl.tag}>"
        if KEY_WORDS.get(self.impl) == self.word_shape:
            return f"key<{self.impl}>"
        return f"key<{self.impl}:{'x'.join(map(str, self.word_shape))}>"

    @property
    def type(self) -> type[prng_key]:
        return prng_key

    @property
    def element_shape(self) -> tuple[int, ...]:
        return () if prod(self.word_shape) in STORED else self.word_shape

    @property
    def element_dtype(self) -> NumpyDType:
        return np.dtype(STORED.get(prod(self.word_shape), np.uint32))

    def element(self, word: int) -> np.ndarray:
        """The stored element of the key whose words are all `word`.

        >>> KeyDType("fry", (2,)).element(-1)
        array(18446744073709551615, dtype=uint64)
        """
        words = np.full(self.word_shape, word & 0xFFFFFFFF, np.uint32)
        return words.view(self.element_dtype).reshape(self.element_shape)

    def __repr__(self) -> str:
        return self.name


def key_from_name(name: str) -> KeyDType | None:
    """The key dtype whose name is `name`, or None if that is not a key's name.

    >>> key_from_name("key<fry>") == KeyDType("fry", (2,))
    True
    """
    if not (name.startswith("key<") and name.endswith(">")):
        return None
    impl, colon, words = name[4:-1].partition(":")
    if not colon:
        known = KEY_WORDS.get(impl)
        return None if known is None else KeyDType(impl, known)
    return KeyDType(impl, tuple(int(size) for size in words.split("x") if size))

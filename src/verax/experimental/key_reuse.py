"""Random keys in functions: used up, made and passed on (floor 6).

The checks of `debug_key_reuse`, for tests of functions: their result is a value, and
assertions inside a function look at what its trace has done so far::

    check_key_reuse(step, key)               # KeyReuseError where a key is used twice
    key_reuse_signature(step, key)           # KeyReuseSignature(Sink(0), Source(1))
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from verax.api.inspect.make_jaxpr import make_jaxpr
from verax.backend.eager.key_checks import USED
from verax.ir.records import Unchanging
from verax.ops.random.keys import impl_of, random_bits
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.conversions import shown
from verax.rules.values.state import STATE
from verax.transforms.passes.key_reuse import (
    KeyReuseError,
    Ledger,
    Mask,
    Signature,
    signature_of,
)

__all__ = [
    "Forward",
    "KeyReuseError",
    "KeyReuseSignature",
    "Sink",
    "Source",
    "assert_consumed",
    "assert_unconsumed",
    "check_key_reuse",
    "consume",
    "key_reuse_signature",
]


class Masked(Unchanging):
    """An input or output by number, and which of its elements are meant."""

    __slots__ = ("idx", "mask")
    idx: int
    mask: Mask

    def __init__(self, idx: int, mask: Mask = True) -> None:
        if not isinstance(idx, int):
            raise TypeError(f"idx must be an integer, not {shown(idx)}")
        elements = np.array(mask)
        if elements.dtype != bool:
            raise TypeError(f"mask must be boolean, not {elements.dtype}")
        elements.flags.writeable = False
        # One element that says the same for all equals the mask of all.
        same = elements.all() or not elements.any()
        result: Mask = bool(elements.any()) if same else elements
        object.__setattr__(self, "idx", idx)
        object.__setattr__(self, "mask", result)

    def __setattr__(self, name: str, value: object) -> None:
        raise ValueError(f"{type(self).__name__} is immutable")

    def key(self) -> tuple[object, ...]:
        """A key that equal ones have in common, in an order for printing."""
        elements = np.asarray(self.mask)
        return type(self).__name__, self.idx, elements.shape, elements.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Masked) and self.key() == other.key()

    def __hash__(self) -> int:
        return hash(self.key())

    def __repr__(self) -> str:
        rest = "" if self.mask is True else f", {self.mask}"
        return f"{type(self).__name__}({self.idx}{rest})"


class Sink(Masked):
    """An input whose keys are used up, or some of them.

    >>> Sink(0), Sink(1, np.array([True, False]))
    (Sink(0), Sink(1, [ True False]))
    """

    __slots__ = ()


class Source(Masked):
    """An output that holds new keys."""

    __slots__ = ()


class Forward(NamedTuple):
    """An output that is an input."""

    in_idx: int
    out_idx: int

    def __repr__(self) -> str:
        return f"Forward({self.in_idx}, {self.out_idx})"


type Part = Sink | Source | Forward


class KeyReuseSignature(Unchanging):
    """The keys of a function, as a set of sinks, sources and forwards.

    >>> KeyReuseSignature(Source(0), Sink(1)) == KeyReuseSignature(Sink(1), Source(0))
    True
    """

    __slots__ = ("parts",)
    parts: frozenset[Part]

    def __init__(self, *args: Part) -> None:
        object.__setattr__(self, "parts", frozenset(args))

    @property
    def sinks(self) -> Iterator[Sink]:
        """The inputs that it uses up."""
        return (part for part in self.parts if isinstance(part, Sink))

    @property
    def sources(self) -> Iterator[Source]:
        """The outputs that are new keys."""
        return (part for part in self.parts if isinstance(part, Source))

    @property
    def forwards(self) -> Iterator[Forward]:
        """The outputs that are inputs."""
        return (part for part in self.parts if isinstance(part, Forward))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyReuseSignature) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    def __repr__(self) -> str:
        masked = sorted((*self.sinks, *self.sources), key=Masked.key)
        shown = [*masked, *sorted(self.forwards)]
        return f"KeyReuseSignature({', '.join(map(repr, shown))})"


def key_reuse_signature(
    fun: Callable[..., object], /, *args: object
) -> KeyReuseSignature:
    """The signature of `fun` in the keys among the leaves of its arguments.

    It is traced, not run. Numbers are those of the leaves of arguments and results;
    keys that it has captured come after the arguments.

    Raises:
        KeyReuseError: it uses a key twice.

    >>> import verax
    >>> key = verax.random.key(0)
    >>> key_reuse_signature(lambda key: (key, verax.random.fold_in(key, 1)), key)
    KeyReuseSignature(Source(1), Forward(0, 0))
    >>> key_reuse_signature(verax.random.split, key)
    KeyReuseSignature(Sink(0), Source(0))
    """
    jaxpr = make_jaxpr(fun)(*args).jaxpr
    return public(signature_of(jaxpr), len(jaxpr.constvars), len(jaxpr.invars))


def public(signature: Signature, consts: int, inputs: int) -> KeyReuseSignature:
    """A signature with the captured keys behind the others."""

    def number(i: int) -> int:
        return i - consts if i >= consts else i + inputs

    return KeyReuseSignature(
        *[Sink(number(i), mask) for i, mask in signature.uses.items() if np.any(mask)],
        *[Source(i) for i in signature.makes],
        *[Forward(number(i), out) for out, i in signature.passes.items()],
    )


def check_key_reuse(fun: Callable[..., object], /, *args: object) -> None:
    """Raise if `fun` uses a key twice; see `key_reuse_signature`.

    Raises:
        KeyReuseError: it does.
        AssertionError: `assert_consumed` or `assert_unconsumed` in it fails.
    """
    key_reuse_signature(fun, *args)


def consume(key: Array) -> Array:
    """The same key, used up, as by drawing numbers from it.

    Raises:
        TypeError: `key` is not a typed key.
    """
    impl_of("consume", key)
    random_bits(key, 8, (0,))
    out: Array = key
    return out


def used(name: str, key: object) -> Mask | None:
    """The used elements of keys, as far as it is known here.

    Of a tracer its trace knows it, and of an array the check while it is on.

    Raises:
        TypeError: `key` is not a typed key.
    """
    impl_of(name, key)
    if isinstance(key, Tracer):
        ledger = Ledger()
        for eqn in key.builder.eqns:
            ledger.add(eqn)
        return ledger.used.get(ledger.root(key.atom), False)
    if STATE.debug_key_reuse and isinstance(key, Array):
        return USED.of(key)
    return None


def assert_consumed(key: object, value: Mask = True) -> None:
    """Raise unless a key is used up, at this place in the function.

    Of an array of keys `value` says which elements must be. Keys outside traces are
    looked at while `debug_key_reuse` is on.

    Raises:
        AssertionError: others are used up.
        TypeError: `key` is not a typed key.
    """
    values = used("assert_consumed", key)
    if values is not None and not np.all(np.asarray(values) == np.asarray(value)):
        raise AssertionError(
            f"of {key!r} {elements(value)} should be used up, but {elements(values)} "
            "are"
        )


def elements(mask: Mask) -> str:
    """A mask in words."""
    words = {True: "all elements", False: "no elements"}
    return words[mask] if isinstance(mask, bool) else f"the elements {mask}"


def assert_unconsumed(key: object) -> None:
    """Raise if a key is used up, or an element of an array of keys is.

    Raises:
        AssertionError: it is.
        TypeError: `key` is not a typed key.

    >>> import verax
    >>> def draw(key):
    ...     assert_unconsumed(key)
    ...     x = verax.random.normal(key)
    ...     assert_consumed(key)
    ...     return x
    >>> check_key_reuse(draw, verax.random.key(0))
    """
    assert_consumed(key, value=False)

"""Floor 4: random keys that are used once: of eager operations and calls of programs.

An array does not know whether its keys are used, so a table does while the array lives;
the check is an interpreter around the eager one, and is free when off::

    key_checking(eager).bind(random_bits_p, params, (key,))     # the second time raises
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, TypeGuard

import numpy as np
from attrs import frozen

from verax.backend.pytrees import flatten
from verax.ir.jaxpr import Jaxpr, Params, Primitive, Source
from verax.ir.locks import Lock, locked
from verax.ir.records import ReprMixin
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.memo import pure
from verax.rules.values.state import Interpreter, user_source
from verax.transforms.passes.key_reuse import (
    KeyReuseError,
    Mask,
    Signature,
    eqn_signature,
    is_key,
    signature_of,
)


@locked
class UsedKeys:
    """The masks of used keys, for the arrays that hold them."""

    __slots__ = ("masks",)
    lock: ClassVar[Lock]

    def __init__(self) -> None:
        self.masks: dict[int, tuple[weakref.ref[Array], Mask, Source]] = {}

    def of(self, keys: Array) -> Mask:
        """The used elements of an array, as flags."""
        entry = self.masks.get(id(keys))
        return entry[1] if entry is not None and entry[0]() is keys else False

    def first(self, keys: Array) -> str:
        """Where elements of an array were used first."""
        entry = self.masks.get(id(keys))
        return f" at {entry[2]}" if entry is not None else ""

    def set(self, keys: Array, mask: Mask) -> None:
        """Say which elements are used, as long as the array lives."""
        number = id(keys)
        known = self.masks.get(number)
        where = user_source(1) if known is None or known[0]() is not keys else known[2]

        def forget(dead: weakref.ref[Array]) -> None:
            entry = self.masks.get(number)
            if entry is not None and entry[0] is dead:
                self.masks.pop(number, None)

        with self.lock:
            self.masks[number] = weakref.ref(keys, forget), mask, where


USED: Final = UsedKeys()


def holds_keys(x: object) -> TypeGuard[Array]:
    """Whether `x` is an array of typed keys."""
    return isinstance(x, Array) and is_key(x.aval)


def check(name: str, signature: Signature, args: Sequence[object]) -> None:
    """Raise if a key that `name` uses is used already.

    Raises:
        KeyReuseError: it is.
    """
    for number, mask in signature.uses.items():
        keys = args[number]
        if holds_keys(keys) and np.any(USED.of(keys) & mask):
            raise KeyReuseError(
                f"Previously-consumed key passed to {name} at index {number}, at "
                f"{user_source(1)}: the {keys.aval} was used before{USED.first(keys)}. "
                "Use each key once, and split it with verax.random.split for more"
            )


def take_down(
    signature: Signature, args: Sequence[object], outs: Sequence[object]
) -> None:
    """Remember what is used now."""
    before = [USED.of(x) if holds_keys(x) else False for x in args]
    for number, mask in signature.uses.items():
        keys = args[number]
        if holds_keys(keys):
            USED.set(keys, before[number] | mask)
    for i, out in enumerate(outs):
        if not holds_keys(out) or i in signature.makes:
            continue
        source = signature.passes.get(i)
        given = None if source is None else args[source]
        USED.set(out, bool(np.any(USED.of(given))) if holds_keys(given) else True)


@frozen(eq=False, repr=False)
class KeyCheckingInterpreter(ReprMixin):
    """An eager interpreter that raises where a key is used twice."""

    immediate: ClassVar[bool] = True
    inner: Interpreter

    def bind(
        self, primitive: Primitive, params: Params, args: Sequence[object]
    ) -> tuple[Array, ...]:
        """The results, as arrays.

        Raises:
            KeyReuseError: the operation uses a used key.
        """
        nested = next(iter(params.subjaxprs()), None) is not None
        if not nested and not any(map(holds_keys, args)):
            return self.inner.bind(primitive, params, args)
        name, avals = primitive.name, [aval_of(x) for x in args]
        result = eqn_signature(name, params, avals, 1)
        check(name, result, args)
        outs = self.inner.bind(primitive, params, args)
        take_down(result, args, outs)
        return outs


@pure(64)
def key_checking(inner: Interpreter) -> Interpreter:
    """An eager interpreter with this check."""
    return KeyCheckingInterpreter(inner)


def checked_keys(
    name: str, jaxpr: Jaxpr, run: Callable[[Sequence[object]], object]
) -> Callable[[Sequence[object]], object]:
    """A call of a program that checks the keys which it uses.

    One that it has captured is not remembered from call to call.

    Raises:
        KeyReuseError: the program itself uses a key twice.
    """
    result = signature_of(jaxpr)

    def call(leaves: Sequence[object]) -> Any:
        check(f"jit-compiled function {name}", result, leaves)
        out = run(leaves)
        take_down(result, leaves, flatten(out)[0])
        return out

    return call

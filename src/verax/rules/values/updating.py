"""What `x.at[index]` offers, as type checkers see it (floor 2).

The NumPy frontend implements these protocols; `Array.at` is annotated with them.
"""

from collections.abc import Callable
from typing import Protocol, TypedDict, Unpack

from verax.rules.values.conversions import HostArray


class UpdateOptions(TypedDict, total=False):
    """The options of every update; `Update.get` explains them."""

    indices_are_sorted: bool
    unique_indices: bool
    mode: object
    fill_value: object
    wrap_negative_indices: bool
    out_sharding: object


class AtIndex[A](Protocol):
    """Reads and updates of the elements at one index; every result is a new array."""

    def get(self, **options: Unpack[UpdateOptions]) -> A:
        """The elements."""
        ...

    def set(self, values: A | HostArray, **options: Unpack[UpdateOptions]) -> A:
        """The array with `values` at the index."""
        ...

    def add(self, values: A | HostArray, **options: Unpack[UpdateOptions]) -> A:
        """The array with `values` added at the index."""
        ...

    def subtract(self, values: A | HostArray, **options: Unpack[UpdateOptions]) -> A:
        """The array with `values` subtracted at the index."""
        ...

    def multiply(self, values: A | HostArray, **options: Unpack[UpdateOptions]) -> A:
        """The array with the elements at the index multiplied by `values`."""
        ...

    def mul(self, values: A | HostArray, **options: Unpack[UpdateOptions]) -> A:
        """The same as `multiply`."""
        ...

    def divide(self, values: A | HostArray, **options: Unpack[UpdateOptions]) -> A:
        """The array with the elements at the index divided by `values`."""
        ...

    def power(self, values: A | HostArray, **options: Unpack[UpdateOptions]) -> A:
        """The array with the elements at the index raised to `values`."""
        ...

    def min(self, values: A | HostArray, **options: Unpack[UpdateOptions]) -> A:
        """The array with the lesser of the elements at the index and `values`."""
        ...

    def max(self, values: A | HostArray, **options: Unpack[UpdateOptions]) -> A:
        """The array with the greater of the elements at the index and `values`."""
        ...

    def apply(self, func: Callable[[A], A], **options: Unpack[UpdateOptions]) -> A:
        """The array with `func` of the elements at the index."""
        ...


class At[A](Protocol):
    """`x.at`: what an index turns into an `AtIndex`."""

    def __getitem__(self, index: object, /) -> AtIndex[A]: ...

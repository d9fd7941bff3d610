"""`jax._src.frozen_dict`: a dictionary that can be hashed."""

from collections.abc import Iterable, Iterator, Mapping


class FrozenDict[K, V](Mapping[K, V]):
    """A mapping that does not change, equal to another with the same items."""

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        self.items_by_key = dict(items)

    def __getitem__(self, key: K) -> V:
        return self.items_by_key[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self.items_by_key)

    def __len__(self) -> int:
        return len(self.items_by_key)

    def __hash__(self) -> int:
        return hash(frozenset(self.items_by_key.items()))

    def __repr__(self) -> str:
        return f"FrozenDict({self.items_by_key!r})"

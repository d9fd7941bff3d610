"""`jax._src.flattree`: values in groups, as the params of loops describe operands.

Only the sizes of the groups matter there, not the values::

    groups = pack((nones(2), nones(1)))
    [group.vals for group in groups.update([a, b, c]).unpack()]    # [(a, b), (c,)]
"""

from collections.abc import Iterator, Sequence

from attrs import frozen

from verax.ir.records import ReprMixin


@frozen(repr=False)
class FlatTree(ReprMixin):
    """Values, and how many of them each group has; None if they are one group."""

    vals: tuple[object, ...]
    sizes: tuple[int, ...] | None = None

    def update(self, vals: Sequence[object]) -> "FlatTree":
        """Other values in the same groups."""
        if len(vals) != len(self.vals):
            raise ValueError(f"expected {len(self.vals)} values, got {len(vals)}")
        return FlatTree(tuple(vals), self.sizes)

    def unpack(self) -> "tuple[FlatTree, ...]":
        """The groups."""
        if self.sizes is None:
            raise ValueError("these values are not in groups")
        groups, start = [], 0
        for size in self.sizes:
            groups.append(FlatTree(self.vals[start : start + size]))
            start += size
        return tuple(groups)

    def __len__(self) -> int:
        return len(self.vals)

    def __iter__(self) -> Iterator[object]:
        return iter(self.vals)


def nones(count: int) -> FlatTree:
    """One group, whose values do not matter."""
    return FlatTree((None,) * count)


def pack(groups: Sequence[FlatTree]) -> FlatTree:
    """The values of several groups, one group after another."""
    vals = [x for group in groups for x in group.vals]
    return FlatTree(tuple(vals), tuple([len(group) for group in groups]))

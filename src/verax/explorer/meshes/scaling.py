"""Meshes too large to compile for: smaller ones of the same axes, carried on (floor 6).

One idea: all sizes of a program's arrays stay, and its mesh alone is smaller. Then each
array on a device has 1/n of its bytes along each axis that splits it, so everything
that is counted is a sum of products of such shares, linear in 1/n along each axis; two
sizes of an axis say which line it is, and the line says it for any other size::

    ends = shrunk({"data": 2048, "model": 8}, 512)      # {"data": (32, 64)}
    extended({(32,): 48.0, (64,): 32.0}, [(32, 64, 2048)])     # 16.5
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Final

from attrs import evolve, frozen

from verax.explorer.collectives import Collective
from verax.explorer.meshes.living import Room
from verax.explorer.meshes.timing import Place, Region, Sent, Work
from verax.ir.records import ReprMixin

type Ends = Mapping[str, tuple[int, int]]
"""Two sizes of each axis that is smaller than it should be."""


@frozen(eq=False, repr=False)
class Sample(ReprMixin):
    """What is known of a program on one mesh.

    `memory` and `groups` are bytes of one device, `model` the operations of the traced
    program, of all devices together. `alike` is false of a sample that was carried on
    from others whose programs are not of one form.
    """

    name: str
    sizes: Mapping[str, int]
    memory: Mapping[str, float]
    groups: Mapping[str, float]
    works: Sequence[Work]
    sent: Sequence[Sent]
    model: float
    room: Room
    alike: bool = True


# -----------------------------------------------------------------------------
# Which smaller meshes.


def smaller(size: int, whole: int) -> int | None:
    """The next smaller divisor of the `whole` size of an axis; None below 2.

    >>> smaller(64, 64), smaller(6, 12), smaller(2, 4)
    (32, 4, None)
    """
    return next((n for n in range(size - 1, 1, -1) if whole % n == 0), None)


def shrunk(sizes: Mapping[str, int], most: int) -> dict[str, tuple[int, int]]:
    """Two smaller sizes of some axes, so that a mesh has `most` devices if it can.

    The longest axis gets shorter first, and none has fewer than two devices.

    >>> shrunk({"data": 2048, "model": 8}, 512), shrunk({"data": 4}, 512)
    ({'data': (32, 64)}, {})
    """
    top = dict(sizes)
    while prod(top.values()) > most:
        following: dict[str, int] = {}
        for name, size in top.items():
            lower = smaller(size, sizes[name])
            if lower is not None and smaller(lower, sizes[name]) is not None:
                following[name] = lower
        if not following:
            break
        name = max(following, key=lambda name: top[name])
        top[name] = following[name]
    out: dict[str, tuple[int, int]] = {}
    for name, size in top.items():
        lower = smaller(size, sizes[name])
        if size < sizes[name] and lower is not None:
            out[name] = lower, size
    return out


def corners(sizes: Mapping[str, int], ends: Ends) -> list[dict[str, int]]:
    """The meshes to compile for: each axis with each of its sizes."""
    picks = product(*ends.values())
    return [{**sizes, **dict(zip(ends, pick, strict=True))} for pick in picks]


# -----------------------------------------------------------------------------
# From them to the mesh that is meant.


def reciprocal(size: int) -> float:
    """The share of an array that each device has."""
    return 1 / size


def extended(
    values: Mapping[tuple[int, ...], float],
    ends: Sequence[tuple[int, int, int]],
    of: Callable[[int], float] = reciprocal,
) -> float:
    """What is linear in `of` each size, known at both ends, at a third size.

    What grows with an axis, as values do that hold something of each of its devices, is
    linear in its size.

    >>> extended({(2,): 8.0, (4,): 4.0}, [(2, 4, 64)])
    0.25
    >>> extended({(2,): 4.0, (4,): 8.0}, [(2, 4, 64)])
    128.0
    """
    if not ends:
        return values[()]
    (low, high, at), *rest = ends
    first, last = [
        extended({k[1:]: v for k, v in values.items() if k[0] == end}, rest, of)
        for end in (low, high)
    ]
    of = of if last <= first else float
    share = (of(at) - of(low)) / (of(high) - of(low))
    return first + share * (last - first)


class Carried:
    """Carries the samples of smaller meshes on to another one."""

    def __init__(self, samples: Sequence[Sample], sizes: Mapping[str, int], ends: Ends):
        self.sizes, self.samples = sizes, samples
        self.keys = [tuple([one.sizes[name] for name in ends]) for one in samples]
        self.ends = [(*pair, sizes[name]) for name, pair in ends.items()]
        self.alike = True

    def value(
        self, values: Iterable[float], of: Callable[[int], float] = reciprocal
    ) -> float:
        """A number that each sample has; none is below 0."""
        known = dict(zip(self.keys, values, strict=True))
        return max(extended(known, self.ends, of), 0.0)

    def numbers(self, maps: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """Numbers by name."""
        names = dict.fromkeys([name for one in maps for name in one])
        return {
            name: float(round(self.value([one.get(name, 0.0) for one in maps])))
            for name in names
        }

    def sample(self) -> Sample:
        """What is expected on the mesh."""
        sent = self.sent()
        return Sample(
            self.samples[-1].name,
            self.sizes,
            self.memory(),
            self.numbers([one.groups for one in self.samples]),
            self.works(),
            sent,
            self.value([one.model for one in self.samples], float),
            self.samples[-1].room,
            self.alike,
        )

    def memory(self) -> dict[str, float]:
        """The memory of a device: results packed in the order of the largest program.

        What the compiler itself sets aside for that one corrects it.
        """
        out = self.numbers([one.memory for one in self.samples])
        last = self.samples[-1]
        packed = last.room.most(last.room.sizes)
        if packed:
            share = last.memory["temporaries"] / packed
            expected = last.room.most(self.sizes_of_results())
            out["temporaries"] = float(round(share * expected))
        return out

    def sizes_of_results(self) -> dict[str, float]:
        """The sizes of results in the largest program, on the mesh."""
        last = self.samples[-1].room
        out = dict(last.sizes)
        for axis, (low, high, size) in enumerate(self.ends):
            key = (*self.keys[-1][:axis], low, *self.keys[-1][axis + 1 :])
            other = self.samples[self.keys.index(key)].room
            powers = powers_of(last, other, high / low)
            even = sum([last.sizes[n] for n in powers]) or 1.0
            share = sum([last.sizes[n] for n, p in powers.items() if p > 0]) / even
            for name in out:
                if name in powers:
                    out[name] *= (high / size) ** powers[name]
                else:
                    out[name] *= 1 - share + share * high / size
        return out

    def works(self) -> list[Work]:
        """What is computed, by region and line."""
        tables = [{(w.region, w.place): w for w in one.works} for one in self.samples]
        keys: dict[tuple[Region, Place], None] = {}
        for table in tables:
            keys |= dict.fromkeys(table)
        return [self.work([table.get(key) for table in tables]) for key in keys]

    def work(self, given: Sequence[Work | None]) -> Work:
        """The work for a line, which some samples may not have."""
        known = [one for one in given if one is not None]
        widths = dict.fromkeys([width for one in known for width in one.flops])
        flops = {
            width: self.value(
                [one.flops.get(width, 0.0) if one else 0.0 for one in given]
            )
            for width in widths
        }
        moved = self.value([one.bytes if one else 0.0 for one in given])
        sure = all([one.estimated for one in known])
        return Work(known[0].region, known[0].place, flops, moved, sure)

    def sent(self) -> list[Sent]:
        """The collectives: each if all samples have it, others by their sum."""
        tables = [by_form(one.sent) for one in self.samples]
        keys: dict[tuple[Region, Collective], None] = {}
        for table in tables:
            keys |= dict.fromkeys(table)
        out: list[Sent] = []
        for key in keys:
            lists = [table.get(key, []) for table in tables]
            if len({len(one) for one in lists}) == 1:
                out += map(self.one, zip(*lists, strict=True))
            else:
                self.alike = False
                out += self.together(lists)
        return out

    def one(self, given: Sequence[Sent]) -> Sent:
        """A collective that all samples have."""
        entries = [one.entry for one in given]
        entry = evolve(
            entries[-1],
            devices=self.devices(entries[-1]),
            bytes=round(self.value([one.bytes for one in entries])),
            times=self.value([one.times for one in entries], float),
        )
        messages = self.value([one.messages for one in given], float)
        return evolve(given[-1], entry=entry, messages=messages)

    def devices(self, entry: Collective) -> int:
        """How many talk: all along the axes, or else as many as in a sample."""
        if not entry.whole or not entry.axes:
            return entry.devices
        return prod([self.sizes[name] for name in entry.axes])

    def together(self, lists: Sequence[Sequence[Sent]]) -> list[Sent]:
        """Those of the largest sample that has some, with the expected sum of bytes."""
        given = next(one for one in reversed(lists) if one)
        sums = [sum([each.entry.total for each in one]) for one in lists]
        own = sum([each.entry.total for each in given])
        share = self.value(sums) / own if own else 0.0
        if not share:
            return []
        return [
            evolve(
                each,
                entry=evolve(
                    each.entry,
                    bytes=round(each.entry.bytes * share),
                    devices=self.devices(each.entry),
                ),
            )
            for each in given
        ]


def powers_of(last: Room, other: Room, times: float) -> dict[str, int]:
    """With which power of 1/n the sizes of results go, by name; see `power`.

    Programs name and count their results anew, so those of one kind are compared in
    their order; what has no fellow in the other program is left out.
    """
    out: dict[str, int] = {}
    theirs = other.kinds
    for kind, names in last.kinds.items():
        sizes = [other.sizes[name] for name in theirs.get(kind, ())]
        pairs = zip(names, sizes, strict=False) if len(sizes) == len(names) else ()
        grows = {n for n, size in pairs if power(size, last.sizes[n], times) == -1}
        for name in names:
            known = [power(size, last.sizes[name], times) for size in sizes]
            place = next((i for i, p in enumerate(known) if p in (1, 0)), None)
            if place is not None:
                out[name] = known[place] or 0
                sizes = sizes[place + 1 :]
            elif name in grows:
                out[name] = -1
    return out


def power(other: float, size: float, times: float) -> int | None:
    """1 of a share, which is larger where an axis is so many times shorter; else 0.

    -1 of what grows with the axis, and None of what does none of these.

    >>> [power(other, 4.0, 2.0) for other in (8.0, 4.0, 2.0, 64.0)]
    [1, 0, -1, None]
    """
    for exponent in (1, 0, -1):
        expected = size * times**exponent
        if abs(other - expected) <= NEAR * expected:
            return exponent
    return None


NEAR: Final = 0.1
"""How far from it a size may be, of what is split into uneven parts."""


def by_form(sent: Iterable[Sent]) -> dict[tuple[Region, Collective], list[Sent]]:
    """Collectives by all that does not depend on sizes, in their order."""
    out: dict[tuple[Region, Collective], list[Sent]] = {}
    for one in sent:
        form = evolve(one.entry, bytes=0, devices=0, times=0.0)
        out.setdefault((one.region, form), []).append(one)
    return out

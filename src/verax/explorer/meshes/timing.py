"""How long a device works and talks: a roofline, and a model of links (floor 6).

One idea: a line takes as long as the slower of its operations and its bytes, a
collective as long as its steps and the bytes that its devices send; within a loop's
body, or the program around loops, the two run side by side if they overlap::

    talk_time("all-reduce", 4e6, Route({"x": 8}, {"x": link}))

The formulas: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective
communication operations in MPICH" (2005), for what any algorithm sends and the steps
through a switch; J. Austin et al., "How to Scale Your Model" (2025), part 3, for
rings with links in both directions.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from attrs import frozen

from verax.explorer.collectives import Collective, operands_sent
from verax.explorer.meshes.devices import Device, Link
from verax.ir.records import ReprMixin

COMPUTE: Final = "compute"
MEMORY: Final = "memory"
LATENCY: Final = "latency"
ALONG: Final = "along "


class Seconds(NamedTuple):
    """The time of a collective: of its bytes, and of its steps for each message."""

    bytes: float
    steps: float


@frozen(repr=False)
class Route(ReprMixin):
    """The axes along which devices talk, with their sizes and links."""

    sizes: Mapping[str, int]
    links: Mapping[str, Link]

    @property
    def slowest(self) -> Link:
        """The link with which all of it has to wait."""
        return min(self.links.values(), key=lambda link: link.bandwidth)

    def steps(self, count: int) -> float:
        """The seconds of all steps along each axis, if so many devices talk in all."""
        known = {name: self.sizes[name] for name in self.links}
        if len(known) == 1:
            known = dict.fromkeys(known, count)
        return sum(
            [self.links[n].steps(k) * self.links[n].latency for n, k in known.items()]
        )


def as_sent(entry: Collective) -> str:
    """The kind of a collective on an accelerator: a sliced one sends less."""
    return "reduce-scatter" if entry.sliced else entry.kind


def talk_time(kind: str, size: float, count: int, route: Route) -> Seconds:
    """The seconds of one collective of so many bytes among `count` devices.

    Along several axes the slowest link carries all of it; steps add up.

    >>> link = Link("cable", bandwidth=1e9, latency=1e-6)
    >>> talk_time("all-reduce", 4e6, 4, Route({"x": 4}, {"x": link}))
    Seconds(bytes=0.006, steps=4e-06)
    """
    if count <= 1 or not route.links:
        return Seconds(0.0, 0.0)
    link, steps = route.slowest, route.steps(count)
    rate = link.bandwidth
    if kind in ("collective-permute", "collective-broadcast"):
        far = kind == "collective-broadcast"
        return Seconds(size / rate, steps if far else link.latency)
    if kind in ("all-to-all", "ragged-all-to-all") and link.ring:
        # What goes half round the ring and less, a quarter of it on average.
        return Seconds(size * count / (8 * rate), steps)
    rate *= 2 if link.ring else 1
    rounds = 2 if kind == "all-reduce" else 1
    return Seconds(size * operands_sent(kind, count) / rate, rounds * steps)


# -----------------------------------------------------------------------------
# What a device does, by the loop in which it does it.


type Region = tuple[int, ...]
"""Which loop: the number of each loop in the one around it; none of them is ()."""


class Place(NamedTuple):
    """A line, and whether a gradient does it on the way back."""

    file: str
    line: int
    function: str
    code: str
    backward: bool


@frozen(repr=False)
class Work(ReprMixin):
    """What one device computes for a line: in a region, in all of its runs.

    `flops` are by the size in bytes of what is computed with.
    """

    region: Region
    place: Place
    flops: Mapping[int, float]
    bytes: float
    estimated: bool = True


@frozen(repr=False)
class Sent(ReprMixin):
    """A collective with its region, and as how many messages its runs count."""

    region: Region
    entry: Collective
    messages: float


def work_time(work: Work, device: Device) -> tuple[float, str]:
    """The seconds of a line's work, and what it waits for."""
    compute = sum([n / device.peak(size) for size, n in work.flops.items()])
    moving = work.bytes / device.bandwidth
    return (compute, COMPUTE) if compute >= moving else (moving, MEMORY)


def route_of(
    entry: Collective, sizes: Mapping[str, int], links: Mapping[str, Link]
) -> Route:
    """The way that a collective takes; over all links if its axes are not known."""
    own = {name: links[name] for name in entry.axes if name in links}
    return Route(sizes, own or links)


def sent_time(
    sent: Sent, sizes: Mapping[str, int], links: Mapping[str, Link]
) -> Seconds:
    """The seconds of a collective, in all of its runs."""
    entry = sent.entry
    route = route_of(entry, sizes, links)
    one = talk_time(as_sent(entry), entry.bytes, entry.devices, route)
    return Seconds(one.bytes * entry.times, one.steps * sent.messages)


@frozen(repr=False)
class Times(ReprMixin):
    """The seconds of a step by what they are spent on.

    `busy` are all of them; `exposed` are those that count, where the rest goes on at
    the same time.
    """

    busy: Mapping[str, float]
    exposed: Mapping[str, float]

    @property
    def total(self) -> float:
        """The seconds of a step."""
        return sum(self.exposed.values())

    @property
    def bound(self) -> str:
        """What most of the time is spent on."""
        return max(self.exposed, key=lambda name: self.exposed[name], default=COMPUTE)


def added(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """The sums by name, the greatest first."""
    out: dict[str, float] = {}
    for part in parts:
        for name, seconds in part.items():
            out[name] = out.get(name, 0.0) + seconds
    return dict(sorted(out.items(), key=lambda one: -one[1]))


def times_of(
    works: Sequence[Work],
    sent: Sequence[Sent],
    device: Device,
    sizes: Mapping[str, int],
    links: Mapping[str, Link],
    overlap: bool,
) -> Times:
    """The time of a step: in each region the longer of work and talk, or their sum."""
    work: dict[Region, list[Mapping[str, float]]] = {}
    talk: dict[Region, list[Mapping[str, float]]] = {}
    for one in works:
        seconds, bound = work_time(one, device)
        work.setdefault(one.region, []).append({bound: seconds})
    for each in sent:
        time = sent_time(each, sizes, links)
        axes = ", ".join(each.entry.axes) or "the mesh"
        parts = {f"{ALONG}{axes}": time.bytes, LATENCY: time.steps}
        talk.setdefault(each.region, []).append(parts)
    busy: list[Mapping[str, float]] = []
    exposed: list[Mapping[str, float]] = []
    for region in dict.fromkeys([*work, *talk]):
        sides = added(work.get(region, ())), added(talk.get(region, ()))
        busy += sides
        longer = max(sides, key=lambda side: sum(side.values()))
        exposed += [longer] if overlap else sides
    return Times(added(busy), added(exposed))

"""Devices and the links between them, as plain records (floor 6).

One idea: what a device and a link can do is a few numbers from the maker's data sheet,
and whoever has another one writes them down::

    Device("chip", flops=1e14, bandwidth=1e12, memory=32e9)
    Link("cable", bandwidth=25e9, latency=5e-6)
"""

from collections.abc import Mapping
from math import ceil, log2
from types import MappingProxyType
from typing import Final

from attrs import frozen

from verax.ir.records import ReprMixin
from verax.rules.values.conversions import shown


@frozen(repr=False)
class Device(ReprMixin):
    """What a device can do: operations and bytes in a second, bytes of memory.

    `flops` are of float32; `half` of 16-bit floats, which is the same where it is left
    out. Sizes in bits of other dtypes scale: float64 has half of float32.

    >>> import verax
    >>> chip = verax.debug.Device("chip", flops=1e12, bandwidth=1e11, memory=1e9)
    >>> chip.peak(4), chip.peak(8)
    (1000000000000.0, 500000000000.0)
    """

    __module__ = "verax.debug"

    name: str
    flops: float
    bandwidth: float
    memory: float
    half: float | None = None

    def peak(self, itemsize: int) -> float:
        """Operations in a second on elements of so many bytes."""
        if itemsize <= 2:
            return self.half or self.flops
        return self.flops * 4 / itemsize if itemsize > 4 else self.flops


@frozen(repr=False)
class Link(ReprMixin):
    """What joins the devices along an axis of a mesh.

    Attributes:
        name: for reports.
        bandwidth: bytes that one device sends in a second: through a switch to all
            others together, in a ring to each of its two neighbours.
        latency: the seconds of one step, from a device to the next.
        ring: whether a device reaches its neighbours alone, as in a torus, so that
            steps grow with the number of devices and not with its logarithm.

    >>> import verax
    >>> cable = verax.debug.Link("cable", bandwidth=25e9, latency=5e-6)
    >>> cable.steps(8), verax.debug.Link("torus", 50e9, 1e-6, ring=True).steps(8)
    (3, 4)
    """

    __module__ = "verax.debug"

    name: str
    bandwidth: float
    latency: float
    ring: bool = False

    def steps(self, count: int) -> int:
        """Steps until each of so many devices has heard of all others."""
        return count // 2 if self.ring else ceil(log2(max(count, 1)))


@frozen(repr=False)
class Fabric(ReprMixin):
    """How devices of a kind are joined: `together` of them inside of something."""

    inside: Link
    together: int
    across: Link


# -----------------------------------------------------------------------------
# A handful, from the makers' data sheets: dense, float32 outside of matrix units.
#
# NVIDIA V100, A100 80GB, H100, H200 data sheets (SXM) and that of HGX B200; Google,
# Cloud TPU documentation, "TPU v4", "TPU v5e", "TPU v5p", "TPU v6e". A TPU has no
# figure for float32: six passes with bfloat16 make one product of that precision.


def tpu(name: str, half: float, bandwidth: float, memory: float) -> Device:
    """A TPU by its operations on bfloat16."""
    return Device(name, half / 6, bandwidth, memory, half)


KNOWN: Final[Mapping[str, Device]] = MappingProxyType(
    {
        "h100": Device("h100", 67e12, 3.35e12, 80e9, 989e12),
        "h200": Device("h200", 67e12, 4.8e12, 141e9, 989e12),
        "b200": Device("b200", 80e12, 8e12, 180e9, 2250e12),
        "a100": Device("a100", 19.5e12, 2.04e12, 80e9, 312e12),
        "v100": Device("v100", 15.7e12, 0.9e12, 32e9, 125e12),
        "tpu-v4": tpu("tpu-v4", 275e12, 1.2e12, 32e9),
        "tpu-v5e": tpu("tpu-v5e", 197e12, 0.819e12, 16e9),
        "tpu-v5p": tpu("tpu-v5p", 459e12, 2.765e12, 95e9),
        "tpu-v6e": tpu("tpu-v6e", 918e12, 1.64e12, 32e9),
    }
)

# Links of GPUs: half of what the data sheets say for NVLink, which is of both
# directions; one InfiniBand adapter for each GPU, as in the DGX systems. Latencies are
# those with which NCCL chooses its algorithms (`src/graph/tuning.cc`, rings, LL128).
# Links of TPUs: Austin et al., "How to Scale Your Model" (2025), part 2, with the 25
# GB/s that a host has to other pods shared by its chips; the latency of a hop is from
# part 3 there, that of the network between pods is assumed.

NVLINK, NETWORK, HOP, PODS = 1.9e-6, 4e-6, 1e-6, 1e-5


def gpus(nvlink: float, infiniband: float) -> Fabric:
    """Boards of eight GPUs, by the bytes in a second of NVLink and of an adapter."""
    inside = Link("NVLink", nvlink, NVLINK)
    return Fabric(inside, 8, Link("InfiniBand", infiniband, NETWORK))


def pods(one_way: float, chips: int, host: int) -> Fabric:
    """Pods of TPUs, by the bytes in a second of a port, and the chips of a host."""
    inside = Link("ICI", one_way, HOP, ring=True)
    return Fabric(inside, chips, Link("DCN", 25e9 / host, PODS))


FABRICS: Final[Mapping[str, Fabric]] = MappingProxyType(
    {
        "h100": gpus(450e9, 50e9),
        "h200": gpus(450e9, 50e9),
        "b200": gpus(900e9, 50e9),
        "a100": gpus(300e9, 25e9),
        "v100": gpus(150e9, 12.5e9),
        "tpu-v4": pods(45e9, 4096, 4),
        "tpu-v5e": pods(50e9, 256, 8),
        "tpu-v5p": pods(100e9, 8960, 4),
        "tpu-v6e": pods(100e9, 256, 8),
    }
)


type Links = Mapping[str, Link] | Link | None


def links_of(device: Device, axes: Mapping[str, int], given: Links) -> dict[str, Link]:
    """The link along each axis of a mesh: the given one, or that of the device.

    Devices are numbered row by row, so the last axes join those of one board, as long
    as all devices along them fit on it. An axis of one device has no link.

    Raises:
        TypeError: `given` is neither a link nor links by axis.
        ValueError: there is a link for no axis of the mesh, or an axis has none.

    >>> {a: l.name for a, l in links_of(KNOWN["h100"], {"x": 4, "y": 8}, None).items()}
    {'x': 'InfiniBand', 'y': 'NVLink'}
    """
    own = checked_links(given, axes)
    fabric, out, count = FABRICS.get(device.name), {}, 1
    for name, size in reversed(list(axes.items())):
        count *= size
        if size == 1:
            continue
        if name in own:
            out[name] = own[name]
        elif fabric is None:
            raise ValueError(
                f"plan: how the devices of {device.name} are joined along {name!r} is "
                "not known: pass links={" + repr(name) + ": verax.debug.Link(name, "
                "bandwidth, latency)}, or one Link for all axes"
            )
        else:
            out[name] = fabric.inside if count <= fabric.together else fabric.across
    return {name: out[name] for name in axes if name in out}


def checked_links(given: Links, axes: Mapping[str, int]) -> dict[str, Link]:
    """The links of a user, by axis."""
    if given is None:
        return {}
    if isinstance(given, Link):
        return dict.fromkeys(axes, given)
    if not isinstance(given, Mapping):
        raise TypeError(
            "plan: links takes a verax.debug.Link, or a mapping of axes to links, not "
            f"{shown(given)}"
        )
    for name, link in given.items():
        if not isinstance(link, Link):
            raise TypeError(
                f"plan: the link of axis {name!r} is {shown(link)}, and not a "
                "verax.debug.Link(name, bandwidth, latency)"
            )
        if name not in axes:
            known = ", ".join(map(repr, axes)) or "none"
            raise ValueError(
                f"plan: links has {name!r}, but the axes of the mesh are {known}"
            )
    return dict(given)

"""Meshes and shardings as notebooks show them: tables of axes and devices (floor 4).

One idea: whatever the number of axes, the devices are one table: the last axis runs
along its rows, all others down its columns, and devices of one colour belong together::

    mesh_parts("Mesh", mesh, mesh.devices)    # its axes, its devices
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from verax.backend.runtime.client import Device
from verax.ir.meshes import BaseMesh
from verax.ir.text.html import Cell, Row, hue_of, report, table

CELLS: Final = 64
"""So many devices are shown."""


def counted(mesh: BaseMesh) -> str:
    """The number of devices in words."""
    return "1 device" if mesh.size == 1 else f"{mesh.size:,} devices"


def mesh_page(
    title: str,
    mesh: BaseMesh,
    devices: np.ndarray | None,
    groups: Mapping[int, int] | None = None,
    ahead: Sequence[str] = (),
) -> str:
    """The report on a mesh, after the parts `ahead`; its size stands in `title`."""
    return report(
        *ahead, *mesh_parts(title.format(counted(mesh)), mesh, devices, groups)
    )


def axis_tables(title: str, split: Sequence[Row], whole: Sequence[Row]) -> list[str]:
    """The tables of the dimensions, and of the axes that split none of them."""
    parts = [table(title, ("dimension", "split along", "parts"), split)]
    if whole:
        parts.append(table("Axes that split no dimension", (), whole))
    return parts


def mesh_parts(
    title: str,
    mesh: BaseMesh,
    devices: np.ndarray | None,
    groups: Mapping[int, int] | None = None,
) -> list[str]:
    """The tables of the axes and of the devices, if there are any.

    `groups` numbers the devices that get one colour, by device; without, each has one
    of its own.
    """
    trios = zip(mesh.axis_names, mesh.axis_sizes, mesh.axis_types, strict=True)
    axes = [(name, f"{size:,}", kind.name) for name, size, kind in trios]
    parts = [table(title, ("axis", "size", "type"), axes)]
    if devices is not None and mesh.size:
        parts.append(grid(mesh.axis_names, devices, groups))
    return parts


def grid(
    names: tuple[str, ...], devices: np.ndarray, groups: Mapping[int, int] | None
) -> str:
    """The devices, as many as are shown; each in a cell."""
    shape = devices.shape or (1,)
    across = min(shape[-1], CELLS)
    down = max(CELLS // across, 1)
    rows = devices.reshape(-1, shape[-1])
    places = list(np.ndindex(shape[:-1]))[:down]
    last = names[-1] if names else ""
    heads = ["", *[f"{last} = {i}" for i in range(across)]] if names else []
    lines: list[Row] = []
    for place, row in zip(places, rows, strict=False):
        others = zip(names, place, strict=False)  # the last axis has the columns
        head = ", ".join([f"{name} = {i}" for name, i in others])
        cells = [device_cell(device, groups) for device in row[:across]]
        lines.append([head or "device", *cells])
    left = devices.size - len(lines) * across
    rest = f"and {left:,} more devices" if left else ""
    caption = "Devices" if groups is None else "Devices, one colour for each part"
    return table(caption, heads, lines, rest=rest, kind="grid")


def device_cell(device: Device, groups: Mapping[int, int] | None) -> Cell:
    """The cell of a device of a mesh."""
    number = device.id if groups is None else groups[device.id]
    if device.process_index < 0:
        return Cell(f"absent {device.id}", hue_of(number), "not seen by this process")
    tip = f"{device.device_kind}, process {device.process_index}"
    return Cell(f"{device.platform.upper()} {device.id}", hue_of(number), tip)

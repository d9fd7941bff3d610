"""The picture of `data_parallel.py`: which device holds which rows, and the loss.

    python -m verax.distributed run -n 2 -m docs.examples.data_parallel_picture

All processes train; the first one draws.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import verax
from docs.examples.data_parallel import BATCH, FEATURES, batch_of, train
from docs.examples.drawing import Panel, label, write_svg
from verax.sharding import NamedSharding, PartitionSpec as P


def draw(path: Path, losses: Sequence[float]) -> None:
    """A batch and the weights, coloured by device, and the loss."""
    mesh = verax.make_mesh((verax.device_count(),), ("batch",))
    rows = NamedSharding(mesh, P("batch")).devices_indices_map((BATCH, FEATURES))
    values = np.abs(batch_of(0)[0])
    shade = 0.25 + 0.75 * values / values.max()
    marks = [label(60, 34, f"A batch of {BATCH} rows", "head")]
    marks.append(label(330, 34, "The weights, everywhere", "head"))
    for i, (device, index) in enumerate(rows.items()):
        part = shade[index]
        kind, top = f"f{i % 5}", 64 + 300 * (index[0].start or 0) / BATCH
        height = 300 * len(part) / BATCH
        marks.append(
            Panel((60, top, 120, height - 5), (0, 1), (0, 1)).cells(part, kind)
        )
        copy = Panel((330, top, 190, height - 5), (0, 1), (0, 1))
        marks.append(copy.cells(np.full((1, 1), 0.6), kind))
        marks.append(label(192, top + height / 2 - 6, f"device {device.id}"))
        marks.append(
            label(192, top + height / 2 + 11, f"process {device.process_index}")
        )
    steps = np.arange(1, len(losses) + 1)
    curve = Panel((600, 64, 320, 300), (0, float(len(steps))), (0.4, max(losses)))
    marks += [
        curve.axes("step", "the same in every process", "Loss"),
        curve.line(steps, losses, "s0", 2.2),
        curve.dots(steps, losses, "f0", 3),
    ]
    write_svg(path, (960, 410), "A batch divided over the devices", *marks)


def main(argv: Sequence[str] | None = None) -> list[float]:
    """Train, and draw in the first process."""
    parser = argparse.ArgumentParser(description="Draw what data_parallel.py does.")
    parser.add_argument("--out", type=Path, default=Path("build/data_parallel.svg"))
    options = parser.parse_args(argv)
    losses = train()
    if verax.process_index() == 0:
        draw(options.out, losses)
    print(f"loss {losses[-1]:.3f} on {verax.device_count()} devices")
    return losses


if __name__ == "__main__":
    verax.distributed.initialize()
    main()

"""Checkpoints that several processes write, and read on another mesh."""

import os
from pathlib import Path

import numpy as np
import pytest

import verax
from verax.experimental import checkpoint
from verax.experimental.checkpoint import CheckpointError, Checkpoints, saving
from verax.sharding import NamedSharding, PartitionSpec as P

FOLDER = Path(os.environ["CHECKS_FOLDER"])
COUNT, INDEX = verax.process_count(), verax.process_index()
VALUES = np.arange(64, dtype=np.float32).reshape(8, 8)
SPECS = [P(), P("x"), P("x", "y"), P(None, "y"), P(("y", "x"), None)]
MESH = verax.make_mesh((COUNT, 2), ("x", "y"))
OTHER = verax.make_mesh((2, COUNT), ("x", "y"))


def spread(mesh: verax.sharding.Mesh, spec: P) -> verax.Array:
    place = NamedSharding(mesh, spec)
    actual: verax.Array = verax.make_array_from_callback(
        VALUES.shape, place, lambda index: VALUES[index]
    )
    return actual


def same(x: verax.Array) -> None:
    for shard in x.addressable_shards:
        np.testing.assert_array_equal(shard.data, VALUES[shard.index])


def check_every_spec() -> None:
    tree = {str(spec): spread(MESH, spec) for spec in SPECS}
    checkpoint.save(FOLDER / "specs", {**tree, "own": np.ones(3), "step": 7})
    for spec in SPECS:
        place = NamedSharding(OTHER, spec)
        like = {
            name: verax.ShapeDtypeStruct((8, 8), np.float32, sharding=place)
            for name in tree
        }
        actual = checkpoint.restore(FOLDER / "specs", like, partial=True)
        for x in actual.values():
            assert x.sharding == place
            same(x)


def check_each_process_writes_its_own_part() -> None:
    (folder,) = (FOLDER / "specs").glob("values-*")
    assert sorted(file.name for file in folder.iterdir()) == [
        f"process-{i}.npz" for i in range(COUNT)
    ]
    with np.load(folder / f"process-{INDEX}.npz") as parts:
        sizes = [parts[name].size for name in parts]
    # Without the copies of others: all of the split arrays is shared out evenly.
    assert sum(sizes) >= 3 * VALUES.size // COUNT


def check_saves_in_threads_while_collectives_run() -> None:
    x = spread(MESH, P("x", "y"))
    total = verax.jit(lambda x: (x * 2).sum())
    kept = Checkpoints(FOLDER / "run", keep=2)
    for step in range(6):
        kept.save(step, {"x": x, "step": step}, wait=False)
        for _ in range(5):
            assert total(x) == 2 * VALUES.sum()
    kept.wait()
    assert kept.steps() == [4, 5]
    step, state = kept.restore(like={"x": x, "step": 0})
    assert step == state["step"] == 5
    same(state["x"])


def check_a_process_that_fails_is_named() -> None:
    x = spread(MESH, P("x"))
    checkpoint.save(FOLDER / "failing", 1)

    def fail(*args: object) -> None:
        raise OSError("the disk of process 1 is full")

    with pytest.MonkeyPatch.context() as patch:
        if INDEX == 1:
            patch.setattr(saving, "write_parts", fail)
        kind, match = (
            (OSError, "^the disk of process 1 is full")
            if INDEX == 1
            else (CheckpointError, "process 1 could not do .* process 1 is full")
        )
        with pytest.raises(kind, match=match):
            checkpoint.save(FOLDER / "failing", {"x": x}, overwrite=True)
    assert checkpoint.restore(FOLDER / "failing") == 1
    checkpoint.save(FOLDER / "failing", {"x": x}, overwrite=True)
    same(checkpoint.restore(FOLDER / "failing", {"x": x})["x"])


def check_a_folder_that_cannot_be_made() -> None:
    (FOLDER / f"file{INDEX}").write_text("")
    kind = FileExistsError if INDEX == 0 else CheckpointError
    with pytest.raises(kind, match="File exists"):
        checkpoint.save(FOLDER / "file0", 1)

"""Checkpoints: every kind of leaf, errors that name it, saves that are cut short."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.experimental import checkpoint
from verax.experimental.checkpoint import CheckpointError, Checkpoints

DTYPES = [
    "bool int4 uint4 int8 uint8 int16 uint16 int32 uint32 float16 bfloat16 float32",
    "complex64 float8_e4m3fn float8_e5m2",
]


class Pair(NamedTuple):
    first: Any
    second: Any


def same(x: Any, y: Any) -> None:
    assert type(x) is type(y)
    if not hasattr(x, "dtype"):
        assert repr(x) == repr(y)
        return
    assert (x.dtype, x.shape) == (y.dtype, y.shape)
    if verax.dtypes.issubdtype(x.dtype, verax.dtypes.prng_key):
        x, y = verax.random.key_data(x), verax.random.key_data(y)
    assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


LEAVES: dict[str, Any] = {
    **{
        name: vnp.arange(6).reshape(2, 3).astype(name)
        for name in " ".join(DTYPES).split()
    },
    "empty": vnp.zeros((0, 3)),
    "scalar": vnp.float32(0.1),
    "keys": verax.random.split(verax.random.key(3), (2, 2)),
    "rbg": verax.random.key(3, impl="rbg"),
    "words": verax.random.PRNGKey(3),
    "NumPy": np.arange(6.0).reshape(2, 3).T,
    "big-endian": np.arange(3, dtype=">i4"),
    "NumPy bfloat16": np.ones(3, ml_dtypes.bfloat16),
    "strings": np.array(["a", "bc"]),
    "dates": np.array(["2020-01-01"], "M8[s]"),
    "records": np.zeros(2, [("a", "i4"), ("b", "f8")]),
    "float64": np.float64(0.1),
    "int": 2**80,
    "float": float("nan"),
    "negative zero": -0.0,
    "complex": complex(-0.0, float("inf")),
    "bool": True,
    "str": "ä\n",
}


@pytest.mark.parametrize("name", LEAVES)
def test_a_leaf_returns_as_it_was(name: str, tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "x", LEAVES[name])
    same(checkpoint.restore(tmp_path / "x"), LEAVES[name])
    same(checkpoint.restore(tmp_path / "x", LEAVES[name]), LEAVES[name])


def test_trees_return_with_their_structure(tmp_path: Path) -> None:
    tree = {"a": [1, (2, None)], "b": {}, "c": {"d": vnp.ones(2)}}
    checkpoint.save(tmp_path / "x", tree, metadata={"step": 3})
    assert str(checkpoint.restore(tmp_path / "x")) == str(tree)
    assert checkpoint.read_metadata(tmp_path / "x") == {"step": 3}


def test_a_class_without_a_written_form_needs_like(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "x", Pair(1, vnp.ones(2)))
    with pytest.raises(CheckpointError, match=r"'Pair', which has no .*pass `like`"):
        checkpoint.restore(tmp_path / "x")
    found = checkpoint.restore(tmp_path / "x", Pair(0, vnp.zeros(2)))
    assert isinstance(found, Pair)
    assert found.second.tolist() == [1, 1]


def test_what_cannot_be_saved_is_named(tmp_path: Path) -> None:
    for leaf, match in [
        (object(), r"the leaf \['a'\]\[1\] is object"),
        (np.array([None]), r"the leaf \['a'\]\[1\] is ndarray"),
        (b"", r"is bytes"),
    ]:
        with pytest.raises(TypeError, match=match):
            checkpoint.save(tmp_path / "x", {"a": [1, leaf]})
    with pytest.raises(TypeError, match="a traced value"):
        verax.jit(lambda x: checkpoint.save(tmp_path / "x", x))(1.0)
    with pytest.raises(TypeError, match="JSON"):
        checkpoint.save(tmp_path / "x", 1, metadata={"f": object()})
    assert not (tmp_path / "x").exists()


def test_like_that_differs_names_the_leaf(tmp_path: Path) -> None:
    tree = {"w": vnp.ones((2, 3)), "k": verax.random.key(0), "n": 1}
    checkpoint.save(tmp_path / "x", tree)
    changes: list[tuple[dict[str, Any], str]] = [
        ({"w": vnp.ones((3, 2))}, r"\['w'\] .*float32\[2, 3\].*float32\[3, 2\]"),
        ({"w": vnp.ones((2, 3), "int32")}, r"float32\[2, 3\].* int32\[2, 3\]"),
        ({"w": 1.0}, r"\['w'\] was saved as an array, but `like` has float"),
        ({"k": verax.random.key(0, impl="rbg")}, r"key<fry>\[\].*key<rbg>\[\]"),
        ({"n": 1.0}, r"\['n'\] was saved as a Python int, but `like` has float"),
        ({"m": 1}, r"Missing in the checkpoint: \['m'\]\."),
    ]
    for change, match in changes:
        with pytest.raises(CheckpointError, match=match):
            checkpoint.restore(tmp_path / "x", {**tree, **change})
    with pytest.raises(CheckpointError, match=r"Missing in `like`: \['k'\], \['n'\]"):
        checkpoint.restore(tmp_path / "x", {"w": tree["w"]})
    found = checkpoint.restore(tmp_path / "x", {"w": tree["w"]}, partial=True)
    assert found["w"].shape == (2, 3)


def test_64_bits_are_not_rounded(tmp_path: Path) -> None:
    with verax.enable_x64(True):
        x = vnp.asarray([0.1], "float64")
        checkpoint.save(tmp_path / "x", {"x": x})
        assert checkpoint.restore(tmp_path / "x")["x"].dtype == np.float64
    with pytest.raises(CheckpointError, match=r"\['x'\] was saved as float64.*x64"):
        checkpoint.restore(tmp_path / "x")
    like = {"x": np.zeros(1)}
    assert checkpoint.restore(tmp_path / "x", like)["x"].tolist() == [0.1]


def test_a_checkpoint_is_replaced_only_on_request(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "x", 1)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        checkpoint.save(tmp_path / "x", 2)
    checkpoint.save(tmp_path / "x", 3, overwrite=True)
    assert checkpoint.restore(tmp_path / "x") == 3
    names = sorted([file.name for file in (tmp_path / "x").iterdir()])
    assert names == ["manifest.json", "values-2"]


def test_any_changed_byte_of_values_is_found(tmp_path: Path) -> None:
    values = np.arange(100, dtype=np.float32)
    checkpoint.save(tmp_path / "x", {"w": vnp.asarray(values)})
    (file,) = tmp_path.glob("x/values-*/process-0.npz")
    good = file.read_bytes()
    draw, told = random.Random(0), []
    for _ in range(60):
        bad = bytearray(good)
        bad[draw.randrange(len(bad))] ^= 1 << draw.randrange(8)
        file.write_bytes(bad)
        try:
            found = checkpoint.restore(tmp_path / "x")["w"]
        except CheckpointError as error:
            told.append(str(error))
        else:  # a byte that means nothing, such as the date of a file
            np.testing.assert_array_equal(found, values)
    assert len(told) > 40
    assert all("['w']" in text and "damaged" in text for text in told)
    file.write_bytes(good[:-10])
    with pytest.raises(CheckpointError, match="not a zip file"):
        checkpoint.restore(tmp_path / "x")
    file.unlink()
    with pytest.raises(CheckpointError, match="No such file"):
        checkpoint.restore(tmp_path / "x")


def test_a_changed_manifest_is_found(tmp_path: Path) -> None:
    checkpoint.save(tmp_path / "x", {"w": vnp.ones(4)})
    file = tmp_path / "x" / "manifest.json"
    good = file.read_text()
    for bad, match in [
        (good.replace("float32", "float64"), "checksum"),
        (good[: len(good) // 2], "damaged"),
        ("[]", "not the manifest"),
        (good.replace('"version": 1', '"version": 2'), "has version 2"),
    ]:
        file.write_text(bad)
        with pytest.raises(CheckpointError, match=match):
            checkpoint.restore(tmp_path / "x")
    file.unlink()
    with pytest.raises(FileNotFoundError, match="values-1 did not finish"):
        checkpoint.restore(tmp_path / "x")
    with pytest.raises(FileNotFoundError, match="no such folder"):
        checkpoint.restore(tmp_path / "y")


def test_a_save_in_a_thread_writes_what_was_there(tmp_path: Path) -> None:
    x, host = vnp.arange(10_000.0), np.arange(10_000.0)
    saving = checkpoint.save_async(tmp_path / "x", {"x": x, "host": host})
    verax.jit(lambda x: -x, donate_argnums=0)(x)
    host[:] = 0
    saving.wait(60)
    assert saving.done
    assert "done" in repr(saving)
    found = checkpoint.restore(tmp_path / "x")
    assert found["x"].sum() == found["host"].sum() == sum(range(10_000))


def test_a_save_in_a_thread_that_fails_says_so_when_waited_for(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("a file, not a folder")
    saving = checkpoint.save_async(tmp_path / "x", 1)
    with pytest.raises(FileExistsError):
        saving.wait(60)
    assert "failed" in repr(saving)


def test_the_last_steps_are_kept(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path / "run", keep=2)
    assert kept.latest() is None
    assert kept.steps() == []
    with pytest.raises(FileNotFoundError, match="no complete checkpoint"):
        kept.restore()
    for step in (1, 10, 9, 20):
        kept.save(step, {"step": step}, wait=step != 20)
    kept.wait()
    assert kept.steps() == [10, 20]
    assert kept.latest() == 20
    assert kept.restore() == (20, {"step": 20})
    assert kept.restore(10, {"step": 0}) == (10, {"step": 10})
    (tmp_path / "run" / "step-20" / "manifest.json").unlink()
    assert kept.restore() == (10, {"step": 10})
    with pytest.raises(ValueError, match="keep must be at least 1"):
        Checkpoints(tmp_path, keep=0)
    with pytest.raises(ValueError, match="must not be negative"):
        kept.save(-1, 0)


def test_a_failed_save_of_a_step_is_raised_by_the_next(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path)
    (tmp_path / "step-1").write_text("a file, not a folder")
    kept.save(1, 0, wait=False)
    with pytest.raises(FileExistsError):
        kept.save(2, 0)
    kept.save(2, 0)
    assert kept.steps() == [2]


SAVER = """
import sys, numpy as np
from verax.experimental import checkpoint
x = np.zeros(300_000, np.float32)
for step in range(10_000):
    tree = {"a": x + step, "b": {str(i): np.full(10, step) for i in range(5)}}
    checkpoint.save(sys.argv[1], tree, overwrite=True)
    print(step, flush=True)
"""


def test_a_save_killed_at_any_time_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    draw = random.Random(0)
    path = tmp_path / "x"
    command = [sys.executable, "-c", SAVER, str(path)]
    for _ in range(4):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            for _ in range(3):
                time.sleep(draw.random() * 0.02)
                process.send_signal(signal.SIGSTOP)  # to readers as if killed here
                found = checkpoint.restore(path)
                steps = {
                    float(found["a"][0]),
                    *[float(b[0]) for b in found["b"].values()],
                }
                assert len(steps) == 1
                assert (found["a"] == found["a"][0]).all()
                process.send_signal(signal.SIGCONT)
            process.kill()
        found = checkpoint.restore(path)
        assert (found["a"] == found["b"]["0"][0]).all()
    checkpoint.save(path, 1, overwrite=True)
    assert len(list(path.iterdir())) == 2
    assert json.loads((path / "manifest.json").read_bytes())["version"] == 1

"""Checkpoints: every kind of leaf, errors that name it, saves that are cut short."""

import json
import os
import random
import signal
import subprocess
import sys
import time
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.processes import started
from verax.experimental import checkpoint
from verax.experimental.checkpoint import CheckpointError, Checkpoints

DTYPES = [
    "bool int4 uint4 int8 uint8 int16 uint16 int32 uint32 float16 bfloat16 float32",
    "complex64 float8_e4m3fn float8_e5m2",
]


GOLDENS = Path(__file__).parents[1] / "goldens"


class Pair(NamedTuple):
    first: Any
    second: Any


class Careless:
    """A class of containers whose leaves have one key."""

    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second


class Single:
    """A class of containers with that key, and one leaf."""

    def __init__(self, value: Any) -> None:
        self.value = value


KEY = verax.tree_util.GetAttrKey("value")
verax.tree_util.register_pytree_with_keys(
    Careless,
    lambda pair: ([(KEY, pair.first), (KEY, pair.second)], None),
    lambda _, children: Careless(*children),
)
verax.tree_util.register_pytree_with_keys(
    Single,
    lambda one: ([(KEY, one.value)], None),
    lambda _, children: Single(*children),
)


def same(x: Any, y: Any) -> None:
    assert type(x) is type(y)
    if not hasattr(x, "dtype"):
        assert x == y if isinstance(x, int) else repr(x) == repr(y)
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
    "long double": np.ones(2, np.longdouble) / 3,
    "float0": np.zeros(2, verax.dtypes.float0),
    "float6": np.ones((), ml_dtypes.float6_e2m3fn),
    "int1": np.zeros(2, ml_dtypes.int1),
    "int": 2**80,
    "long int": -(10**5000),
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
    actual = checkpoint.restore(tmp_path / "x", Pair(0, vnp.zeros(2)))
    assert isinstance(actual, Pair)
    assert actual.second.tolist() == [1, 1]


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
    actual = checkpoint.restore(tmp_path / "x", {"w": tree["w"]}, partial=True)
    assert actual["w"].shape == (2, 3)


def test_64_bits_are_not_rounded(tmp_path: Path) -> None:
    with verax.enable_x64(True):
        x = vnp.asarray([0.1], "float64")
        checkpoint.save(tmp_path / "x", {"x": x})
        assert checkpoint.restore(tmp_path / "x")["x"].dtype == np.float64
    with pytest.raises(CheckpointError, match=r"\['x'\] was saved as float64.*x64"):
        checkpoint.restore(tmp_path / "x")
    like = {"x": np.zeros(1)}
    assert checkpoint.restore(tmp_path / "x", like)["x"].tolist() == [0.1]


SCALARS = (
    "bfloat16 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz "
    "float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn int4 uint4 int2 uint2"
)


def test_dtypes_that_files_of_numpy_lack(tmp_path: Path) -> None:
    shapes: list[tuple[int, ...]] = [(), (1,), (0,), (2, 0), (1, 1)]
    kinds = [getattr(ml_dtypes, name) for name in SCALARS.split()]
    hosts = [np.full(shape, 1, kind) for shape in shapes for kind in kinds]
    tree = [hosts, list(map(vnp.asarray, hosts)), [kind(1) for kind in kinds]]
    checkpoint.save(tmp_path / "x", tree)
    for actual in (
        checkpoint.restore(tmp_path / "x"),
        checkpoint.restore(tmp_path / "x", tree),
    ):
        verax.tree.map(same, actual, tree)


def test_scalars_that_a_former_version_wrote_as_vectors() -> None:
    actual = checkpoint.restore(GOLDENS / "checkpoint_of_scalars")
    assert actual.pop("vector").shape == (1,)
    same(actual.pop("NumPy"), np.array(1.5, ml_dtypes.bfloat16))
    same(actual.pop("scalar"), ml_dtypes.bfloat16(1.5))
    assert len(actual) == 8
    for name, value in actual.items():
        same(value, vnp.asarray(np.array(1, getattr(ml_dtypes, name))))


def test_leaves_with_one_path_stay_apart(tmp_path: Path) -> None:
    pair = Careless(vnp.float32(1), vnp.float32(2))
    checkpoint.save(tmp_path / "x", {"a": pair, "b": 3})
    actual = checkpoint.restore(
        tmp_path / "x", {"a": Careless(vnp.zeros(()), vnp.zeros(())), "b": 0}
    )
    assert (float(actual["a"].first), float(actual["a"].second)) == (1, 2)
    with pytest.raises(CheckpointError, match=r"Missing in `like`: \['a'\]\.value;"):
        checkpoint.restore(tmp_path / "x", {"a": Single(vnp.zeros(())), "b": 0})


def test_arrays_of_which_a_part_would_be_lost_are_refused(tmp_path: Path) -> None:
    swapped = np.dtype(ml_dtypes.bfloat16).newbyteorder(">")
    for leaf, match in [
        (np.ma.masked_array([1, 2], [False, True]), r"\['a'\] is a masked array"),
        (np.zeros(2, [("x", ml_dtypes.bfloat16)]), r"\['a'\] has the dtype \[\('x'"),
        (np.ones(2, swapped), r"\['a'\] has the dtype >V2"),
    ]:
        with pytest.raises(TypeError, match=match):
            checkpoint.save(tmp_path / "x", {"a": leaf})
    assert not (tmp_path / "x").exists()


def test_metadata_returns_as_it_was_or_is_refused(tmp_path: Path) -> None:
    refused: list[Any] = [{1: 0, "1": 0}, {"a": [{1: 0}]}, {"a": ({None: 0},)}]
    for one in refused:
        with pytest.raises(TypeError, match="only strings as keys: write '"):
            checkpoint.save(tmp_path / "x", 0, metadata=one)
    metadata = {"losses": [1.0]}
    saving = checkpoint.save_async(tmp_path / "x", np.zeros(100_000), metadata=metadata)
    metadata["losses"].append(2.0)
    saving.wait()
    assert checkpoint.read_metadata(tmp_path / "x") == {"losses": [1.0]}


def test_files_are_read_from_the_folder_of_the_checkpoint_alone(
    tmp_path: Path,
) -> None:
    checkpoint.save(tmp_path / "other", {"w": vnp.ones(4)})
    checkpoint.save(tmp_path / "x", {"w": vnp.zeros(4)})
    other = tmp_path / "other" / "values-1"
    for key, bad in [
        ("process-0.npz", str(other / "process-0.npz")),
        ("process-0.npz", "../../other/values-1/process-0.npz"),
        ("process-0.npz", ".."),
        ("values-1", "../other/values-1"),
        ("values-1", str(other)),
    ]:
        with (
            edited(tmp_path / "x" / "manifest.json", key, bad),
            pytest.raises(CheckpointError, match="is not the name of a file inside"),
        ):
            checkpoint.restore(tmp_path / "x")
    assert checkpoint.restore(tmp_path / "x")["w"].tolist() == [0, 0, 0, 0]


@contextmanager
def edited(file: Path, text: str, by: str) -> Iterator[None]:
    """The manifest with another text, and a checksum that is right."""
    good = file.read_bytes()
    contents = json.dumps(json.loads(good)["contents"], separators=(",", ":"))
    contents = contents.replace(json.dumps(text), json.dumps(by))
    document = {**json.loads(good), "checksum": zlib.crc32(contents.encode())}
    file.write_text(json.dumps({**document, "contents": json.loads(contents)}))
    try:
        yield
    finally:
        file.write_bytes(good)


def test_a_file_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(FileNotFoundError, match="it is a file, not a folder"):
        checkpoint.restore(tmp_path / "x")


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
            actual = checkpoint.restore(tmp_path / "x")["w"]
        except CheckpointError as error:
            told.append(str(error))
        else:  # a byte that means nothing, such as the date of a file
            np.testing.assert_array_equal(actual, values)
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
    actual = checkpoint.restore(tmp_path / "x")
    assert actual["x"].sum() == actual["host"].sum() == sum(range(10_000))


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
    for step in (1, 9, 10, 20):
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
    with pytest.raises(TypeError, match="float"):
        kept.save(5.0, 0)  # type: ignore[arg-type]  # not an integer


def test_a_run_that_goes_back_keeps_what_it_saves(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, keep=1)
    kept.save(100, 100)
    with pytest.warns(UserWarning, match="step 5 is saved below step 100, the latest"):
        kept.save(5, 5)
    assert (kept.steps(), kept.restore()) == ([5], (5, 5))


def test_the_latest_step_is_the_one_that_was_saved_last(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, keep=3)
    for step in (10, 20, 30):
        kept.save(step, step)
    kept = Checkpoints(tmp_path, keep=3)
    kept.restore(20)
    with pytest.warns(UserWarning, match=r"below step 30.*that\s+went back") as told:
        kept.save(21, 21)
    assert told[0].filename == __file__
    assert (kept.steps(), kept.latest()) == ([20, 21, 30], 21)
    for step in (22, 23):
        os.utime(kept.folder(21), (0, 0))  # clocks do not matter
        kept.save(step, step)
    assert (kept.steps(), kept.latest()) == ([21, 22, 23], 23)
    with pytest.warns(UserWarning, match="step 21 is saved below step 23"):
        kept.save(21, -21, overwrite=True)
    assert kept.restore() == (21, -21)


def test_a_warning_that_is_an_error_leaves_the_step(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path)
    kept.save(2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="below step 2"):
            kept.save(1, 1)
    assert kept.restore() == (1, 1)


def test_steps_without_a_place_in_the_order_come_first(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path, keep=2)
    for step in (10, 9):
        checkpoint.save(kept.folder(step), step)  # as runs of former versions
    assert kept.latest() == 10
    with pytest.warns(UserWarning, match="below step 10"):
        kept.save(8, 8)
    assert (kept.steps(), kept.latest()) == ([8, 10], 8)


def test_steps_are_those_that_can_be_restored(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path)
    for name in ("step-007", "step-٣", "step--1", "step-x", "astep-1", "step-1\n"):
        checkpoint.save(tmp_path / name, 0)
    checkpoint.save(tmp_path / "step-0", 1)
    assert kept.steps() == [0]
    assert kept.restore() == (0, 1)


def test_an_order_that_changed_on_the_disk_is_none(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path)
    for step in (1, 2, 3):
        kept.save(step, step)
    file = kept.folder(2) / "manifest.json"
    file.write_text(file.read_text().replace('"order": 2', '"order": 9'))
    assert kept.latest() == 3


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


@pytest.mark.slow
def test_a_save_killed_at_any_time_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    draw = random.Random(0)
    path = tmp_path / "x"
    command = [sys.executable, "-c", SAVER, str(path)]
    for _ in range(4):
        with started(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            for _ in range(3):
                time.sleep(draw.random() * 0.02)
                process.send_signal(signal.SIGSTOP)  # to readers as if killed here
                actual = checkpoint.restore(path)
                steps = {
                    float(actual["a"][0]),
                    *[float(b[0]) for b in actual["b"].values()],
                }
                assert len(steps) == 1
                assert (actual["a"] == actual["a"][0]).all()
                process.send_signal(signal.SIGCONT)
        actual = checkpoint.restore(path)
        assert (actual["a"] == actual["b"]["0"][0]).all()
    checkpoint.save(path, 1, overwrite=True)
    assert len(list(path.iterdir())) == 2
    assert json.loads((path / "manifest.json").read_bytes())["version"] == 1

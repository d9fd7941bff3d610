"""Compiled functions as bytes: the same results, and refusals before jaxlib reads."""

import hashlib
import json
import os
import pickle
import struct
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax, stages
from verax.api.config.config import override
from verax.backend.programs.serialize import FRAME, pack, unpack
from verax.experimental.serialize_executable import deserialize_and_load, serialize

SOURCE = Path(verax.__file__).parent.parent
X = np.arange(6, dtype=np.float32).reshape(2, 3)
TABLE = np.linspace(0, 1, 3, dtype=np.float32)
HALF = vnp.asarray(np.arange(3), ml_dtypes.bfloat16)
KEY = verax.random.key(7)


def compiled(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    return verax.jit(function, **options).lower(*args).compile()


def through(stage: Any) -> list[Any]:
    """The same function through both pairs, and twice."""
    once = stages.deserialize(stage.serialize())
    other = deserialize_and_load(*serialize(stage))
    return [once, other, stages.deserialize(once.serialize())]


def squares(x: Any) -> Any:
    return (vnp.tanh(x) ** 2).sum()


def nothing_in() -> Any:
    return vnp.arange(3)


def nothing_out(x: Any) -> Any:
    return ()


PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "elementwise": (lambda x: vnp.sin(x) * 2, (X,)),
    "captured": (lambda x: x * TABLE + vnp.asarray(TABLE), (X,)),
    "captured bfloat16": (lambda x: x * HALF, (X,)),
    "captured key": (lambda x: x + verax.random.normal(KEY, (3,)), (X,)),
    "captured bool": (lambda x: vnp.where(np.array([True, False, True]), x, 0), (X,)),
    "captured empty": (lambda x: vnp.concatenate([x, np.ones((0, 3), "f4")]), (X,)),
    "captured in a loop": (
        lambda x: lax.fori_loop(0, 3, lambda i, c: c * TABLE, x),
        (X,),
    ),
    "nothing in": (nothing_in, ()),
    "nothing out": (nothing_out, (X,)),
    "output is input": (lambda x, y: (y, x, 1.5), (X, 2)),
    "unused": (lambda x, y, z: (x + 1, z), (X, X, 3)),
    "gradient": (verax.grad(squares), (X,)),
    "batched": (verax.vmap(vnp.cumsum), (X,)),
    "routine": (lambda x: vnp.linalg.qr(x @ x.T)[0], (X,)),
    "transform": (lambda x: vnp.fft.rfft(x), (X,)),
    "keys": (lambda k: verax.random.split(k, 2), (KEY,)),
    "trees": (
        lambda d, t: OrderedDict(b=d["x"] * 2, a=[t[0], None, {"z": t[1]}]),
        ({"x": X, "n": None}, (1, True)),
    ),
    "complex": (lambda x: x * (1 + 2j), (X,)),
}


@pytest.mark.slow(jaxlib=True)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loaded_function_computes_the_same(name: str) -> None:
    function, args = PROGRAMS[name]
    stage = compiled(function, *args)
    due, tree = verax.tree.flatten(stage(*args))
    for actual in through(stage):
        leaves, other = verax.tree.flatten(actual(*args))
        assert other == tree
        assert [x.aval for x in leaves] == [x.aval for x in due]
        for x, y in zip(leaves, due, strict=True):
            assert str(x) == str(y)
        assert str(actual.args_info) == str(stage.args_info)
        assert str(actual.out_info) == str(stage.out_info)
        assert actual.fun_name == stage.fun_name
        assert actual.input_shardings == stage.input_shardings
        assert actual.output_formats == stage.output_formats


def test_sixty_four_bits() -> None:
    with verax.enable_x64():
        x = np.arange(3, dtype=np.float64) + 1e-12
        table = np.array([2**40, 1, 2])
        stage = compiled(lambda x: (x / 3, table), x)
        for actual in through(stage):
            assert actual(x)[0].dtype == np.float64
            assert np.array_equal(actual(x)[0], stage(x)[0])
            assert actual(x)[1].tolist() == table.tolist()


def test_captured_arrays_are_those_of_the_compilation() -> None:
    table = np.ones(3, np.float32)
    stage = compiled(lambda x: x + table, X)
    data = stage.serialize()
    table[:] = 100
    assert np.array_equal(stages.deserialize(data)(X), X + 1)
    assert np.array_equal(stages.deserialize(stage.serialize())(X), X + 1)


def test_the_code_holds_no_captured_arrays() -> None:
    secret = np.frombuffer(b"a captured array of bytes, secret" * 8, np.uint8)
    held = vnp.asarray(secret)
    data = compiled(lambda x: x + held.sum() + secret[:6].sum(), X).serialize()
    _, (code, text, *arrays) = unpack(data)
    assert b"secret" not in code + text
    assert sum(b"secret" in array for array in arrays) >= 1


def test_donation_and_errors_of_calls_are_the_same() -> None:
    stage = compiled(lambda x, y: {"z": x + y}, X, 1.0, donate_argnums=0)
    for actual in through(stage):
        x: Any = vnp.asarray(X) + 0
        assert actual.donate_argnums == (0,)
        actual(x, 1.0)
        assert x.is_deleted()
        with pytest.raises(RuntimeError, match="donated to <lambda>"):
            actual(x, 1.0)
        with pytest.raises(
            TypeError, match=r"Argument 'x' .* called with float32\[3\]"
        ):
            actual(TABLE, 1.0)
        with pytest.raises(TypeError, match="by position, but was called with 1"):
            actual(X)


def test_programs_from_the_disk_cache(tmp_path: Path) -> None:
    with (
        override("enable_compilation_cache", True),
        override("compilation_cache_dir", tmp_path),
        override("persistent_cache_min_compile_time_secs", 0),
    ):
        stage = [compiled(lambda x: vnp.sin(x) * TABLE, X) for _ in range(2)][1]
    assert stage.program.executable.origin == "disk"
    for actual in through(stage):
        assert np.array_equal(actual(X), stage(X))
        assert actual.program.executable.origin == "bytes"


def test_structures_may_stay_with_the_caller() -> None:
    class Pair:
        def __init__(self, x: Any, y: Any) -> None:
            self.x, self.y = x, y

    verax.tree_util.register_pytree_node(
        Pair, lambda p: ((p.x, p.y), None), lambda _, xs: Pair(*xs)
    )
    stage = compiled(lambda p: Pair(p.y, p.x), Pair(1, 2.0))
    actual = deserialize_and_load(*serialize(stage))(Pair(3, 4.0))
    assert (float(actual.x), int(actual.y)) == (4, 3)
    with pytest.raises(TypeError, match=r"Pair.*no serialised form"):
        stage.serialize()
    data, in_tree, out_tree = serialize(stage)
    with pytest.raises(ValueError, match="deserialize_and_load"):
        stages.deserialize(data)
    with pytest.raises(ValueError, match="2 input leaves, which in_tree="):
        deserialize_and_load(data, verax.tree.structure(1), out_tree)
    wrong: Any = "tree"
    with pytest.raises(ValueError, match="2 output leaves, which out_tree=tree"):
        deserialize_and_load(data, in_tree, wrong)
    plain = compiled(lambda x: {"y": x}, X)
    triple = pickle.loads(pickle.dumps(serialize(plain)))
    assert np.array_equal(deserialize_and_load(*triple)(X)["y"], X)


@pytest.fixture(scope="module")
def file() -> bytes:
    """A good file."""
    data: bytes = compiled(lambda x: x + TABLE, X).serialize()
    return data


def test_truncated_files(file: bytes) -> None:
    for size in (*range(0, len(file), 157), len(file) - 1):
        with pytest.raises(ValueError, match=r"every compiled program|is damaged"):
            stages.deserialize(file[:size])


def test_damaged_files(file: bytes) -> None:
    data = bytearray(file)
    for position in range(len(FRAME.magic) + 4, len(data), 101):
        broken = bytearray(data)
        broken[position] ^= 1 << position % 8
        with pytest.raises(ValueError, match=r"is damaged"):
            stages.deserialize(broken)
    for wrong in (b"", b"verax", b"\0" * 500, data + b"\0"):
        with pytest.raises(ValueError, match=r"every compiled program|is damaged"):
            stages.deserialize(wrong)
    for kind in ("text", None, 3):
        with pytest.raises(TypeError, match="a compiled program must be bytes, not"):
            stages.deserialize(kind)  # type: ignore[arg-type]  # the error is what is tested
    newer = FRAME.magic + (2).to_bytes(4, "little")
    with pytest.raises(ValueError, match="version 2, but this verax reads version 1"):
        stages.deserialize(newer + data[len(newer) :])


@pytest.mark.parametrize(
    ("what", "value", "message"),
    [
        ("jaxlib", "0.4.0", r"compiled with jaxlib '0.4.0', but this process has"),
        ("platform", "abacus", "with platform 'abacus', but this process has 'cpu'"),
        ("platform version", "x", "with platform version 'x'"),
        ("processor", "other", "a processor with other features"),
        ("devices", ["pram"], r"of the kinds \['pram'\]"),
        ("devices", ["cpu"] * 5000, "runs on 5000 different devices, but there"),
    ],
)
def test_files_from_elsewhere(
    what: str,
    value: object,
    message: str,
    file: bytes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    description, parts = unpack(file)
    description["program"]["machine"][what] = value
    sizes = description.pop("sizes")
    assert sizes == [len(part) for part in parts]
    monkeypatch.setattr("verax.backend.programs.serialize.executable_of", None)
    with pytest.raises(ValueError, match=message):
        stages.deserialize(pack(description, parts))


def test_code_that_jaxlib_refuses_is_an_error(file: bytes) -> None:
    description, (_, *rest) = unpack(file)
    del description["sizes"]
    with pytest.raises(RuntimeError):
        stages.deserialize(pack(description, [b"checksummed, and no code", *rest]))


def test_what_cannot_be_saved() -> None:
    kind = verax.ShapeDtypeStruct((2, 3), np.float32)
    stage = compiled(lambda x: verax.pure_callback(np.sin, kind, x), X)
    for save in (stages.Compiled.serialize, serialize):
        with pytest.raises(ValueError, match="callbacks cannot be serialised"):
            save(stage)
    not_compiled: Any = verax.jit(lambda x: x)
    with pytest.raises(TypeError, match=r"compile\(\) returns"):
        serialize(not_compiled)


def test_devices_are_checked(file: bytes) -> None:
    (device, *_) = verax.devices()
    data = file
    actual = stages.deserialize(data, execution_devices=[device], backend="cpu")
    assert np.array_equal(actual(X), X + TABLE)
    with pytest.raises(
        ValueError, match="runs on 1 different devices, but there are 0"
    ):
        stages.deserialize(data, execution_devices=[])
    wrong: Any = ["cpu:0"]
    with pytest.raises(TypeError, match=r"verax.devices\(\), not on 'cpu:0'"):
        stages.deserialize(data, execution_devices=wrong)
    with pytest.raises(RuntimeError, match="Unknown backend 'abacus'"):
        stages.deserialize(data, backend="abacus")


def test_the_description_is_plain(file: bytes) -> None:
    head = struct.Struct("<I32sQ")
    _, checksum, size = head.unpack_from(file, len(FRAME.magic))
    body = file[len(FRAME.magic) + head.size :]
    assert checksum == hashlib.sha256(body).digest()
    actual = json.loads(body[:size])
    assert actual["interface"]["in_avals"] == ["f32[2,3]"]
    assert actual["program"]["constants"] == [["f32[3]", 0]]


FRESH = """
import os, sys, pickle
import numpy as np
from verax import stages
from verax.experimental.serialize_executable import deserialize_and_load
files = pickle.load(sys.stdin.buffer)
x = np.arange(6, dtype=np.float32).reshape(2, 3)
results = [np.asarray(stages.deserialize(data)(x)) for data in files["own"]]
results += [np.asarray(deserialize_and_load(*files["jax"])({"x": x}))]
assert "verax.backend.xla.lapack" in sys.modules
sys.stdout.buffer.write(pickle.dumps(results))
"""


@pytest.mark.slow(jaxlib=True)
def test_a_fresh_process_computes_the_same() -> None:
    names = ("captured", "captured key", "captured in a loop", "routine", "gradient")
    files = [compiled(PROGRAMS[name][0], X).serialize() for name in names]
    tree = serialize(compiled(lambda d: d["x"] * TABLE, {"x": X}))
    done = subprocess.run(
        [sys.executable, "-c", FRESH],
        input=pickle.dumps({"own": files, "jax": tree}),
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    *actual, last = pickle.loads(done.stdout)
    for name, values in zip(names, actual, strict=True):
        np.testing.assert_array_equal(values, compiled(PROGRAMS[name][0], X)(X))
    np.testing.assert_array_equal(last, X * TABLE)

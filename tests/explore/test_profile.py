"""Measured times: of each row, and back to the user's lines."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.explorer.exploration import explore
from verax.explorer.pipeline import seconds_of, shared_times, write_times
from verax.explorer.rows.row import Row
from verax.profiler import ProfileData

W = np.full((256, 256), 0.01, np.float32)


def number(value: int) -> bytes:
    """A number as protocol buffers write it."""
    low, rest = value & 127, value >> 7
    return bytes([low]) if not rest else bytes([low | 128]) + number(rest)


def fields(*pairs: tuple[int, int | bytes]) -> bytes:
    """A message of numbers, and of strings or messages."""
    return b"".join(
        number(key << 3) + number(value)
        if isinstance(value, int)
        else number(key << 3 | 2) + number(len(value)) + value
        for key, value in pairs
    )


type Events = Sequence[tuple[str, str | None, int]]


def plane(name: str, lines: Mapping[str, Events]) -> bytes:
    """A plane of XSpace: lines of events, each with an instruction and microseconds."""
    names, parts = [""], list[tuple[int, int | bytes]]()
    for line, events in lines.items():
        actual: list[tuple[int, int | bytes]] = [(2, line.encode())]
        for kernel, instruction, spent in events:
            names.append(kernel)
            stats: list[tuple[int, int | bytes]] = [
                (1, len(names) - 1),
                (3, spent * 10**6),
            ]
            if instruction is not None:
                stats.append((4, fields((1, 1), (5, instruction.encode()))))
            actual.append((4, fields(*stats)))
        parts.append((3, fields(*actual)))
    for i, kernel in enumerate(names):
        named = fields((1, i), (2, kernel.encode()))
        parts.append((4, fields((1, i), (2, named))))
    stat = fields((1, 1), (2, fields((1, 1), (2, b"hlo_op"))))
    return fields((2, name.encode()), *parts, (5, stat))


def test_kernels_of_a_gpu_say_for_which_instruction_they_ran() -> None:
    """As its profiler writes them, with lines that tools add and those of the host."""
    stream = [("loop_fusion_4", "fusion.1", 30), ("gemm_f32", "dot.2", 50)]
    again = [("gemm_f32", "dot.2", 20), ("MemcpyD2H", None, 9)]
    gpu = plane(
        "/device:GPU:0",
        {
            "Stream #13(Compute)": stream,
            "Stream #14(Compute)": again,
            "XLA Ops": [("dot.2", "dot.2", 70)],
        },
    )
    host = plane("/host:CPU", {"main": [("dot.2", None, 5), ("fusion.1", None, 5)]})
    rows = {"fusion.1": 3, "dot.2": 4}

    def seconds(*planes: bytes) -> dict[int, float]:
        space = fields(*[(1, each) for each in planes])
        return seconds_of(ProfileData.from_serialized_xspace(space), rows, 10)

    assert seconds(host, gpu) == pytest.approx({3: 3e-6, 4: 7e-6})
    assert seconds(host) == pytest.approx({3: 0.5e-6, 4: 0.5e-6})
    assert seconds(host, plane("/device:GPU:0", {})) == seconds(host)


def heavy(w: Any, x: Any) -> Any:
    y = vnp.sin(x)
    for _ in range(8):
        y = y @ w
    return y.sum()


def test_every_product_has_a_time_in_every_stage() -> None:
    actual = explore(heavy, profile=True)(W, W)
    assert actual.content.profile is not None
    assert actual.content.profile.runs >= 3
    assert actual.content.profile.seconds > 0
    for stage in actual.content.stages[:-1]:
        times: dict[str, float] = defaultdict(float)
        for row in stage.rows:
            times[row.op.rpartition(".")[2]] += row.time or 0.0
        products = sum([v for name, v in times.items() if "dot" in name])
        assert products > 0
    trace = actual.content.stages[0]
    dots = [row for row in trace.rows if row.op == "dot_general"]
    assert all([row.time is not None and row.time > 0 for row in dots])
    document: Any = actual.document
    assert document["profile"]["runs"] == actual.content.profile.runs


def test_times_within_loops_and_donated_arguments() -> None:
    def run(x: Any) -> Any:
        return lax.scan(lambda c, _: (c @ c * 0.01, None), x, None, length=4)[0]

    fun = verax.jit(run, donate_argnums=0)
    trace = explore(fun, profile=True)(vnp.asarray(W)).content.stages[0]
    (scan,) = [row for row in trace.rows if row.op == "scan"]
    (dot,) = [row for row in trace.rows if row.op == "dot_general"]
    assert scan.time is not None
    assert dot.time is not None
    assert scan.time >= dot.time > 0


def test_references_keep_their_values() -> None:
    total = verax.new_ref(W)

    def add(x: Any) -> Any:
        total[...] += vnp.sin(x)
        return total[...].sum()

    explore(add, profile=True)(W)
    assert np.array_equal(np.asarray(total[...]), W)


def test_shares_are_equal_and_sums_are_kept() -> None:
    rows = [Row(0, "a", "", "", 0, -1), Row(0, "b", "", "", 0, -1)]
    rows[0].origins, rows[1].origins = [0, 2], [2]
    assert shared_times(rows, {0: 1.0, 1: 3.0}) == {0: 0.5, 2: 3.5}
    nested = [Row(0, "scan", "", "", 0, -1), Row(4, "", "", "", 1, 0)]
    nested.append(Row(0, "sin", "", "", 2, 1))
    write_times(nested, {0: 1.0, 2: 2.0})
    assert [row.time for row in nested] == [3.0, 2.0, 2.0]


def test_types_have_no_times() -> None:
    struct = verax.ShapeDtypeStruct((8,), np.float32)
    with pytest.raises(TypeError, match="x of <lambda> is a type without a value"):
        explore(lambda x: x * 2.0, profile=True)(struct)
    with pytest.raises(ValueError, match="needs compile"):
        explore(heavy, profile=True, compile=False)

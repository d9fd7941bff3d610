"""Laws of plans for meshes: what is sent is what stands in the program of a device."""

import re
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

import verax
import verax.numpy as vnp
from verax.debug import collectives, plan
from verax.explorer.meshes.living import Span, packed
from verax.explorer.meshes.scaling import corners, extended, shrunk
from verax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

AUTO = (AxisType.Auto,) * 2
SPECS = [P(), P("data"), P("model"), P(None, "data"), P(None, "model")]
SPECS += [P("data", "model"), P("model", "data"), P(("data", "model"))]
SENT = re.compile(r"= (.*?) (all-[\w\-]+|collective-permute|reduce-scatter)\(")
ARRAY = re.compile(r"f32\[([\d,]*)\]")


@st.composite
def chains(draw: st.DrawFn) -> tuple[AbstractMesh, list[Any]]:
    """A mesh, and matrices whose product is defined, split in any way."""
    sizes = draw(st.sampled_from([(2, 2), (4, 2), (2, 4), (8, 1)]))
    mesh = AbstractMesh(sizes, ("data", "model"), axis_types=AUTO)
    count = draw(st.integers(2, 4))
    widths = draw(
        st.lists(st.sampled_from([8, 16, 32]), min_size=count + 1, max_size=5)
    )
    places = [NamedSharding(mesh, draw(st.sampled_from(SPECS))) for _ in range(count)]
    return mesh, [
        verax.ShapeDtypeStruct(shape, vnp.float32, sharding=place)
        for shape, place in zip(pairwise(widths), places, strict=False)
    ]


def product(*matrices: Any) -> Any:
    out = matrices[0]
    for matrix in matrices[1:]:
        out = out @ matrix
    return out


def written(text: str) -> dict[str, int]:
    """The bytes of results of collectives by kind, read off a program without loops."""
    out: dict[str, int] = {}
    for kind, name in SENT.findall(text):
        arrays = [
            prod(map(int, filter(None, a.split(",")))) for a in ARRAY.findall(kind)
        ]
        out[name] = out.get(name, 0) + 4 * sum(arrays)
    return out


@settings(max_examples=settings().max_examples // 4)
@given(chains())
def test_a_plan_has_what_stands_in_the_program(
    chain: tuple[AbstractMesh, list[Any]],
) -> None:
    mesh, matrices = chain
    report = plan(product)(*matrices)
    text = collectives(product)(*matrices).program
    found: dict[str, int] = {}
    for one in report.collectives:
        size = one.bytes * (one.devices if one.kind == "all-gather" else 1)
        found[one.kind] = found.get(one.kind, 0) + round(size * one.times)
    assert found == written(text)
    asked = sum(
        2 * prod((matrices[0].shape[0], *matrix.shape)) for matrix in matrices[1:]
    )
    assert report.model_flops == asked
    assert report.flops * mesh.size >= asked
    assert sum(report.memory.groups.values()) == report.memory.arguments
    assert report.memory.peak >= report.memory.arguments


SIZES = st.lists(st.sampled_from([1, 2, 6, 8, 32, 96]), min_size=1, max_size=3)
TERM = st.tuples(st.integers(0, 1 << 20), st.tuples(*[st.integers(0, 1)] * 3))


@given(SIZES, st.lists(TERM, max_size=5), st.integers(2, 64))
def test_sums_of_shares_are_carried_on_exactly(
    sizes: list[int], terms: list[tuple[int, tuple[int, ...]]], most: int
) -> None:
    axes = {f"axis{i}": size for i, size in enumerate(sizes)}
    ends = shrunk(axes, most)
    meshes = corners(axes, ends)

    def bytes_on(mesh: dict[str, int]) -> float:
        out = 0.0
        for count, powers in terms:
            pairs = zip(mesh.values(), powers, strict=False)
            out += count / prod([size**power for size, power in pairs])
        return out

    values = {tuple(mesh[name] for name in ends): bytes_on(mesh) for mesh in meshes}
    at = [(*pair, axes[name]) for name, pair in ends.items()]
    assert np.isclose(extended(values, at), bytes_on(axes), rtol=1e-9, atol=1e-6)
    for mesh in meshes:
        assert all(axes[name] % size == 0 for name, size in mesh.items())
        assert all(size >= min(2, axes[name]) for name, size in mesh.items())


SPANS = st.lists(
    st.builds(
        lambda size, start, length: Span(size, start, start + length),
        st.integers(1, 64),
        st.integers(0, 12),
        st.integers(0, 6),
    ),
    max_size=12,
)


@given(SPANS)
def test_packed_memory_holds_all_that_is_alive_and_no_more_than_all(
    spans: list[Span],
) -> None:
    alive = [sum(s.size for s in spans if s.start <= t <= s.end) for t in range(20)]
    assert max(alive) <= packed(spans) <= sum(s.size for s in spans)

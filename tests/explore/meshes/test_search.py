"""What a search for shardings reads of a program, expects of plans, and proposes."""

from typing import Any

import pytest

import verax
import verax.numpy as vnp
from tests.explore.meshes.programs import CASES, CHIP, CORD
from verax import lax
from verax.debug import Link, propose
from verax.explorer.search.families import Program, read_program
from verax.explorer.search.labels import Labels, labels_of
from verax.explorer.search.model import MeshModel, moving, summing
from verax.extend import opened
from verax.ops.calls.call import inline
from verax.sharding import AbstractMesh, PartitionSpec as P


def labels(f: Any, *shapes: tuple[int, ...]) -> Labels:
    """The labels of the last equation of a function."""
    return labels_of(opened(f, [vnp.ones(s) for s in shapes]).jaxpr.eqns[-1])


def test_labels_of_a_product() -> None:
    out = labels(lambda x, w: vnp.einsum("bld,dhk->blhk", x, w), (2, 3, 4), (4, 5, 6))
    (b, t, d), (e, h, k) = out.ins
    assert d == e
    assert out.outs == ((b, t, h, k),)
    assert len({b, t, d, h, k}) == 5
    assert out.kept == {b, t, h, k}


def test_labels_of_what_is_moved() -> None:
    out = labels(lambda x: x.reshape(6, 4), (2, 3, 4))
    assert out.ins == ((0, None, 1),)
    assert out.outs == ((0, 1),)
    assert labels(lambda x: x[:, :2], (4, 4)) == Labels(((0, None),), ((0, None),))
    out = labels(lambda x, y: lax.concatenate([x, y], 1), (4, 4), (4, 2))
    assert out == Labels(((0, None), (0, None)), ((0, None),))


def test_rows_of_indices_may_be_anywhere() -> None:
    words, tokens = vnp.ones((16, 8)), vnp.zeros((4, 3), vnp.int32)
    eqns = opened(lambda w, t: w[t], [words, tokens]).jaxpr.eqns
    (gather,) = [e for e in eqns if e.primitive.name == "gather"]
    (v, d), (b, t, last) = labels_of(gather).ins
    assert v is None is last
    assert labels_of(gather).outs == ((b, t, d),)
    assert len({b, t, d}) == 3


def test_features_of_a_convolution_are_summed_over() -> None:
    def conv(x: Any, k: Any) -> Any:
        return lax.conv_general_dilated(x, k, (1, 1), "SAME")

    (batch, inner, *_), (outer, summed, *_) = labels(
        conv, (2, 3, 8, 8), (5, 3, 3, 3)
    ).ins
    assert inner == summed
    assert len({batch, inner, outer}) == 3


def read(name: str) -> Program:
    step, types = CASES[name]()
    traced = verax.jit(step).trace(*types)
    names = [text for text, _ in traced.interface.arguments()]
    return read_program(inline(traced.traced.jaxpr), names)


def test_layers_in_a_list_are_decided_together() -> None:
    """And moments apart from parameters, which may be whole (ZeRO-1)."""
    program = read("perceptron")
    layers = [program.of[v][0] for v in program.inputs[:9]]
    assert layers[:3] == layers[3:6] == layers[6:9]
    assert len(set(layers)) == 3
    moments = [program.of[v][0] for v in program.inputs[9:11]]
    assert not set(moments) & set(layers)
    assert set(layers) <= set(program.state)


def test_what_comes_back_lies_as_what_went_in() -> None:
    program = read("decoder")
    weights = [program.of[v] for v in program.inputs[:7]]
    assert [program.of[v or 0] for v in program.outputs[1:8]] == weights


MESH = MeshModel(("x", "y"), (4, 2), {"x": CORD, "y": CORD}, CHIP)


def test_moves() -> None:
    each, step = 1 / CORD.bandwidth, CORD.latency
    assert moving(800, (0, -1), (0, -1), MESH) == 0
    assert moving(800, (-1, -1), (0, 1), MESH) == 0, "a slice costs nothing"
    whole = moving(800, (0, -1), (-1, -1), MESH)
    assert whole == pytest.approx(3 * 200 * each + 2 * step)
    across = moving(800, (0, -1), (1, -1), MESH)
    assert across == pytest.approx(0.75 * 200 * each + 2 * step)


def test_sums() -> None:
    each, step = 1 / CORD.bandwidth, CORD.latency
    reduced = summing(800, (-1, -1), (-1, -1), (True, False), MESH)
    assert reduced == pytest.approx(2 * 0.75 * 800 * each + 4 * step)
    parts = summing(800, (-1, -1), (0, -1), (True, False), MESH)
    assert parts == pytest.approx(0.75 * 800 * each + 2 * step)


def product(w: Any, x: Any) -> Any:
    return vnp.tanh(x @ w)


def types(rows: int, width: int) -> tuple[Any, Any]:
    one = verax.ShapeDtypeStruct((width, width), vnp.float32)
    return one, verax.ShapeDtypeStruct((rows, width), vnp.float32)


def test_a_batch_is_split() -> None:
    out = propose(product, devices=8, judged=1)(*types(1 << 16, 64))
    assert out.in_shardings == (P(), P("data"))
    assert out.mesh.size == 8
    assert "data: x[0]" in str(out)
    assert not out.candidates[0].refused


def test_what_does_not_fit_is_stored_in_parts() -> None:
    """Each device may have a little more than its part of the weights."""

    def step(w: Any, m: Any, x: Any) -> Any:
        slope = verax.grad(lambda w: (product(w, x) ** 2).sum())(w)
        m = 0.9 * m + slope
        return w - m, m

    w, x = types(64, 512)
    mesh = AbstractMesh((8,), ("data",))
    slow = Link("slow", bandwidth=1e7, latency=1e-6)

    memory = 6e5  # of 1 MB of weights, and as much of moments
    out = propose(
        step,
        mesh=mesh,
        device=CHIP,
        links=slow,
        donate_argnums=(0, 1),
        memory=memory,
        judged=1,
    )(w, w, x)
    assert out.plan.memory.peak <= memory
    assert all(isinstance(spec, P) and "data" in spec for spec in out.in_shardings[:2])


def test_nothing_fits() -> None:
    with pytest.raises(ValueError, match="no plan of product fits into 1kB on a dev"):
        propose(product, devices=2, memory=1e3, judged=1)(*types(64, 64))


def test_bad_requests() -> None:
    args = types(8, 8)
    with pytest.raises(TypeError, match="either a mesh or a number of devices"):
        propose(product)
    with pytest.raises(TypeError, match="takes a verax AbstractMesh as mesh, not 8"):
        propose(product, mesh=8)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="devices must be positive, not 0"):
        propose(product, devices=0)
    with pytest.raises(ValueError, match="judged must be positive, not 0"):
        propose(product, devices=2, judged=0)
    with pytest.raises(TypeError, match="donate_argnums are options of jit"):
        propose(verax.jit(product), devices=2, donate_argnums=0)
    with pytest.raises(ValueError, match="static arguments; bind them"):
        propose(verax.jit(product, static_argnums=1), devices=2)(args[0], 2)


@pytest.mark.parametrize(
    ("memory", "kind", "text"),
    [
        ("lots", ValueError, "says no number of bytes"),
        (-3, ValueError, "leaves no memory"),
        (float("nan"), ValueError, "no share between 0 and 1"),
        (True, TypeError, "memory is True: pass the bytes of a device"),
        (verax.memory.Offload("1GB"), TypeError, "pass the bytes of a device"),
    ],
)
def test_memory_that_is_none(memory: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        propose(product, devices=2, memory=memory)


def test_a_proposal_is_for_its_program() -> None:
    out = propose(product, devices=1, judged=1)(*types(8, 8))
    run = verax.jit(out.apply(product))
    with pytest.raises(ValueError, match="a proposal needs a mesh"):
        run(vnp.ones((8, 8)), vnp.ones((8, 8)))
    mesh = verax.make_mesh((1,), ("data",), (verax.sharding.AxisType.Auto,))
    with verax.set_mesh(mesh):
        with pytest.raises(ValueError, match="not the program for which"):
            run(vnp.ones((8, 8)), vnp.ones((16, 8)))
        assert run(vnp.ones((8, 8)), vnp.ones((8, 8))).shape == (8, 8)

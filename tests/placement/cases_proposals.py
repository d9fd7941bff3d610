"""Programs over eight devices, split as `debug.propose` says, are those of one."""

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import rarely
from tests.explore.meshes.programs import CASES, CHIP, CORD
from verax import lax
from verax.debug import Proposal, propose
from verax.sharding import AxisType

draw = np.random.default_rng(0).normal


def filled(x: Any) -> Any:
    """An array of a type; numbers of words for integers."""
    if np.issubdtype(x.dtype, np.integer):
        return np.random.default_rng(1).integers(0, 16, x.shape).astype(x.dtype)
    return vnp.asarray(0.3 * draw(size=x.shape), x.dtype)


def check(step: Callable[..., Any], proposal: Proposal, args: Any) -> None:
    """The values on the proposal's mesh are those of one device."""
    names, sizes = proposal.mesh.axis_names, proposal.mesh.axis_sizes
    mesh = verax.make_mesh(sizes, names, (AxisType.Auto,) * len(names))
    expected = verax.jit(step)(*args)
    with verax.set_mesh(mesh):
        run = verax.jit(
            proposal.apply(step),
            in_shardings=proposal.in_shardings,
            out_shardings=proposal.out_shardings,
        )
        actual = run(*args)
    specs = verax.tree.leaves(proposal.out_shardings)
    for x, y, spec in zip(
        verax.tree.leaves(actual), verax.tree.leaves(expected), specs, strict=True
    ):
        assert x.sharding.is_equivalent_to(
            verax.sharding.NamedSharding(mesh, spec), x.ndim
        )
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-5)


MESHES = [
    *[(name, (4, 2)) for name in CASES],
    ("decoder", (8,)),
    ("perceptron", (2, 2, 2)),
]


@pytest.mark.parametrize(
    ("name", "mesh"),
    rarely(MESHES, ("decoder", (4, 2)), ("perceptron", (2, 2, 2))),
)
def test_values_and_gradients_are_those_of_one_device(
    name: str, mesh: tuple[int, ...]
) -> None:
    step, types = CASES[name]()
    axes = ("data", "model", "more")[: len(mesh)]
    place = verax.sharding.AbstractMesh(mesh, axes)
    proposal = propose(step, mesh=place, device=CHIP, links=CORD, judged=1)(*types)
    specs = verax.tree.leaves(proposal.in_shardings)
    assert any(entry for spec in specs for entry in spec), "nothing is split"
    check(step, proposal, verax.tree.map(filled, types))


@pytest.mark.parametrize("seed", rarely(range(4), 1, 2, 3))
def test_chains_that_are_drawn(seed: int) -> None:
    """Whatever is proposed fits, and gives the values of one device."""
    random = Random(seed)
    sizes = [random.choice((8, 16, 24, 32)) for _ in range(5)]
    kinds = [random.choice(("tanh", "gate", "mean", "turn")) for _ in sizes[1:]]

    def chain(weights: Any, x: Any) -> Any:
        for w, kind in zip(weights, kinds, strict=True):
            x = x @ w
            if kind == "tanh":
                x = vnp.tanh(x)
            elif kind == "gate":
                x = x * (x > 0) + vnp.exp(-x * x)
            elif kind == "mean":
                x = x - x.mean(-1, keepdims=True)
            else:
                x = lax.rev(x, (1,)) + 0.5 * x
        return (x**2).sum()

    types = [verax.ShapeDtypeStruct(shape, vnp.float32) for shape in pairwise(sizes)]
    rows = verax.ShapeDtypeStruct((64, sizes[0]), vnp.float32)
    step, memory = verax.value_and_grad(chain), 60e3
    proposal = propose(
        step, devices=8, device=CHIP, links=CORD, memory=memory, judged=1
    )(types, rows)
    assert proposal.plan.memory.peak <= memory
    check(step, proposal, verax.tree.map(filled, (types, rows)))

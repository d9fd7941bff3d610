"""Stacks of matrices over eight devices: each device factors those that it has."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.numpy import linalg
from verax.sharding import AxisType, NamedSharding, PartitionSpec as P

MESH = verax.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
MATRICES = np.random.default_rng(0).normal(size=(16, 4, 4)).astype(np.float32)
MATRICES = np.swapaxes(MATRICES, 1, 2) @ MATRICES + np.eye(4, dtype=np.float32)
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "cholesky": linalg.cholesky,
    "lu": lambda x: lax.linalg.lu(x),
    "qr": linalg.qr,
    "pivoted qr": lambda x: lax.linalg.qr(x, pivoting=True, full_matrices=False),
    "svd": linalg.svd,
    "svd by QR": lambda x: lax.linalg.svd(x, algorithm="QR"),
    "eigh": linalg.eigh,
    "eig": linalg.eigvals,
    "schur": lax.linalg.schur,
    "hessenberg": lax.linalg.hessenberg,
    "tridiagonal": lax.linalg.tridiagonal,
    "solve": lambda x: linalg.solve(x, x[..., :2]),
    "triangular": lambda x: lax.linalg.triangular_solve(x, x, lower=True),
    "inverse": linalg.inv,
    "determinant": linalg.det,
    "gradient": verax.grad(lambda x: vnp.sum(linalg.svdvals(x) ** 2)),
    "two dimensions of stacks": lambda x: linalg.cholesky(x.reshape(8, 2, 4, 4)),
    "shard_map": verax.shard_map(
        linalg.inv, mesh=MESH, in_specs=P("x"), out_specs=P("x")
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_device_needs_the_matrices_of_others(name: str) -> None:
    f = PROGRAMS[name]
    x = verax.device_put(MATRICES, NamedSharding(MESH, P(("x",))))
    compiled = verax.jit(f).lower(x).compile()
    text = compiled.as_text()
    assert text is not None
    assert "custom-call(" in text
    assert "all-gather" not in text
    expected = verax.jit(f)(MATRICES)
    for y, z in zip(
        verax.tree.leaves(compiled(x)), verax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(y, z, rtol=1e-4, atol=1e-4)


def test_matrices_that_are_split_are_put_together_first() -> None:
    x = verax.device_put(MATRICES, NamedSharding(MESH, P("x", "y")))
    y = verax.jit(linalg.inv)(x)
    np.testing.assert_allclose(y, np.linalg.inv(MATRICES), rtol=1e-3, atol=1e-3)

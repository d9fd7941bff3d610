"""Products and Einstein's sums against NumPy."""

from typing import Any

import numpy as np
import pytest

import verax
from tests.numpy.against import agree, equations, error_of

jnp: Any = verax.numpy

RANDOM = np.random.default_rng(3)


def draw(*shape: int) -> Any:
    return RANDOM.normal(size=shape).astype(np.float32)


PAIRS = [
    ((3,), (3,)),
    ((2, 3), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((1, 2, 3), (5, 3, 4)),
    ((5, 1, 2, 3), (4, 3, 2)),
    ((1, 1, 2, 3), (1, 4, 3, 2)),
    ((4, 6, 1, 2, 3), (6, 7, 3, 2)),
    ((2, 0), (0, 2)),
    ((3,), (5, 3, 4)),
]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_matmul(left: Any, right: Any) -> None:
    agree(jnp.matmul, np.matmul, draw(*left), draw(*right))


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [
        ("dot", (5, 2, 3), (4, 3, 6)),
        ("dot", (2, 3), (3,)),
        ("dot", (2, 3), ()),
        ("inner", (2, 3), (4, 3)),
        ("outer", (2, 3), (4,)),
        ("vdot", (2, 3), (2, 3)),
        ("vecdot", (4, 3), (2, 1, 3)),
        ("cross", (4, 3), (4, 3)),
        ("kron", (2, 3), (3, 4)),
        ("kron", (2,), (3, 4)),
        ("tensordot", (4, 2, 3), (2, 3)),
    ],
)
def test_products(name: str, left: Any, right: Any) -> None:
    agree(getattr(jnp, name), getattr(np, name), draw(*left), draw(*right))


@pytest.mark.parametrize(
    "axes", [0, 1, ((0, 1), (1, 0)), (0, 1), ((-1,), (0,))], ids=str
)
def test_tensordot(axes: Any) -> None:
    x, y = draw(2, 3), draw(3, 2)
    agree(
        lambda a, b: jnp.tensordot(a, b, axes),
        lambda a, b: np.tensordot(a, b, axes),
        x,
        y,
    )


SUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,kj->ki", (2, 3), (4, 3)),
    ("bqhd,bkhd->bhqk", (2, 5, 3, 4), (2, 6, 3, 4)),
    ("bhqk,bkhd->bqhd", (2, 3, 5, 6), (2, 6, 3, 4)),
    ("ii", (3, 3)),
    ("iij->ij", (3, 3, 2)),
    ("iii->i", (3, 3, 3)),
    ("ij->ji", (2, 3)),
    ("ij->", (2, 3)),
    ("i,j->ij", (2,), (3,)),
    ("i,i->i", (3,), (3,)),
    ("...ij,...jk->...ik", (5, 2, 3), (1, 3, 4)),
    ("...i->...", (5, 2, 3)),
    ("i...,j...->ij...", (5, 2, 3), (4, 1, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ab,bc,ca->", (2, 3), (3, 4), (4, 2)),
    ("ij,kl->jl", (2, 3), (4, 5)),
    ("iij,jk->ik", (3, 3, 2), (2, 4)),
    ("ij,jk->ik", (2, 0), (0, 4)),
    ("ab,ab,ab->ab", (2, 3), (2, 3), (2, 3)),
    ("ba,b->", (2, 3), (2,)),
]


@pytest.mark.parametrize("case", SUMS, ids=str)
def test_einsum(case: Any) -> None:
    subscripts, *shapes = case
    agree(
        lambda *a: jnp.einsum(subscripts, *a),
        lambda *a: np.einsum(subscripts, *a),
        *[draw(*shape) for shape in shapes],
    )


@pytest.mark.parametrize(
    "optimize", [True, False, "greedy", [(0, 1, 2)], [(1, 2), (0, 1)]]
)
def test_einsum_paths(optimize: Any) -> None:
    agree(
        lambda *a: jnp.einsum("ij,jk,kl->il", *a, optimize=optimize),
        lambda *a: np.einsum("ij,jk,kl->il", *a),
        draw(2, 3),
        draw(3, 4),
        draw(4, 5),
    )


def test_einsum_names_in_lists() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    due = (x @ y).astype(np.float32).tolist()
    given: Any = (x, ("row", "inner"), y, ("inner", "zone"))
    assert jnp.einsum(*given).tolist() == due
    assert jnp.einsum(*given, ("zone", "row")).T.tolist() == due
    with pytest.raises(TypeError, match="compared with each other"):
        jnp.einsum(x, ("row", 1))


def test_einsum_lists() -> None:
    agree(
        lambda x, y: jnp.einsum(x, [0, 1], y, [1, 2], [0, 2]),
        np.matmul,
        draw(2, 3),
        draw(3, 4),
    )


def test_equations() -> None:
    x, y = draw(2, 5, 3, 4), draw(2, 6, 3, 4)
    assert equations(jnp.matmul, draw(2, 3), draw(3, 4)) == ["dot_general"]
    names = equations(lambda a, b: jnp.einsum("bqhd,bkhd->bhqk", a, b), x, y)
    assert names == ["dot_general"]
    names = equations(
        lambda a, b: jnp.einsum("ij,kj->ki", a, b), draw(2, 3), draw(4, 3)
    )
    assert names == ["dot_general"]


def test_dtypes() -> None:
    x = jnp.ones((2, 2), jnp.bfloat16)
    assert (x @ x).dtype == x.dtype
    actual = jnp.matmul(x, x, preferred_element_type=jnp.float32)
    assert actual.dtype == np.float32
    assert jnp.dot(jnp.ones(2, jnp.int8), jnp.ones(2, jnp.float32)).dtype == np.float32
    assert jnp.einsum("i->", x[0]).dtype == x.dtype


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: jnp.matmul(draw(2, 3), draw(2, 3)), TypeError, "sizes 3 and 2"),
        (lambda: jnp.matmul(1.0, draw(3)), ValueError, "at least one dimension"),
        (lambda: jnp.einsum("ij,jk->i", draw(2, 3), draw(4, 4)), ValueError, "'j'"),
        (lambda: jnp.einsum("ij->z", draw(2, 3)), ValueError, "'z'"),
        (lambda: jnp.tensordot(draw(2), draw(3), 1), TypeError, "same shape"),
        (lambda: jnp.cross(draw(4), draw(4)), ValueError, "2 or 3"),
    ],
)
def test_errors(call: Any, kind: type[Exception], text: str) -> None:
    assert text in error_of(call, kind)


def test_einsum_takes_a_path() -> None:
    shapes = ((2, 3), (3, 4), (4, 5))
    operands = [np.ones(shape, np.float32) for shape in shapes]
    expected = np.einsum("ij,jk,kl->il", *operands)
    paths = [
        jnp.einsum_path("ij,jk,kl->il", *operands)[0],
        np.einsum_path("ij,jk,kl->il", *operands)[0],
        [(0, 1), (0, 1)],
        ["einsum_path", (0, 1, 2)],
        [(1, 2), [0, 1]],
        None,
    ]
    for path in paths:
        actual = jnp.einsum("ij,jk,kl->il", *operands, optimize=path)
        np.testing.assert_array_equal(actual, expected)
    order = jnp.einsum_path(
        operands[0], [0, 1], operands[1], [1, 2], operands[2], [2, 3], [0, 3]
    )
    assert order[0] == paths[0] == [(0, 1), (0, 1)]
    assert jnp.einsum_path("ij,jk,kl->il", *operands, optimize=False)[0] == paths[2]
    assert "not a path" in error_of(
        lambda: jnp.einsum("ij,jk", *operands[:2], optimize=["greed"]), ValueError
    )

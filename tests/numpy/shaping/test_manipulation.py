"""Shapes, joins, splits and rearrangements against NumPy."""

from typing import Any, cast

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.numpy.against import agree, equations, error_of

jnp: Any = verax.numpy

RANDOM = np.random.default_rng(2)
X = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
M = RANDOM.normal(size=(3, 4)).astype(np.float32)

# Name, positional arguments after the array, keyword arguments.
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("reshape", ((4, -1),), {}),
    ("reshape", ((4, -1),), {"order": "F"}),
    ("ravel", ("F",), {}),
    ("transpose", (), {}),
    ("transpose", ((1, -1, 0),), {}),
    ("swapaxes", (0, -1), {}),
    ("moveaxis", ((0, -1), (1, 0)), {}),
    ("rollaxis", (2, 1), {}),
    ("matrix_transpose", (), {}),
    ("expand_dims", ((0, -1),), {}),
    ("broadcast_to", ((5, 2, 3, 4),), {}),
    ("resize", ((5, 7),), {}),
    ("atleast_3d", (), {}),
    ("split", (2, -1), {}),
    ("split", ([1, 3], -1), {}),
    ("array_split", (3, 2), {}),
    ("hsplit", (3,), {}),
    ("dsplit", ([1],), {}),
    ("unstack", (), {"axis": 1}),
    ("tile", ((2, 1, 3, 1),), {}),
    ("tile", (0,), {}),
    ("repeat", (2,), {}),
    ("repeat", ([1, 0, 2], 1), {}),
    ("flip", ((0, 2),), {}),
    ("fliplr", (), {}),
    ("rot90", (), {"k": -1, "axes": (2, 0)}),
    ("roll", (5,), {}),
    ("roll", ((1, -2), (0, 1)), {}),
    ("roll", ((1, 2), 0), {}),
    ("delete", (1, 1), {}),
    ("delete", (slice(0, 4, 2), -1), {}),
    ("delete", ([0, 5, -1],), {}),
    ("insert", (1, 9.0, 0), {}),
    ("insert", ([0, 2], 9.0, 2), {}),
    ("diagonal", (-1, 1, 2), {}),
    ("trace", (1, 0, 2), {}),
    ("diff", (), {"n": 2, "axis": 1}),
    ("diff", (), {"prepend": 1.0}),
    ("ediff1d", (), {}),
    ("gradient", (), {}),
    ("gradient", (2.0,), {"axis": 1}),
    ("gradient", (np.array([0.0, 1.0, 3.0]),), {"axis": 1}),
    ("trapezoid", (), {"dx": 0.5, "axis": 0}),
]


@pytest.mark.parametrize(("name", "args", "options"), CALLS, ids=str)
def test_like_numpy(name: str, args: Any, options: Any) -> None:
    agree(
        lambda x: getattr(jnp, name)(x, *args, **options),
        lambda x: getattr(np, name)(x, *args, **options),
        X,
    )


@pytest.mark.parametrize(
    "name", ["concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"]
)
@pytest.mark.parametrize("shape", [(3, 4), (4,)])
def test_joins(name: str, shape: Any) -> None:
    x = RANDOM.normal(size=shape)
    agree(
        lambda a, b: getattr(jnp, name)((a, b)),
        lambda a, b: getattr(np, name)((a, b)),
        x,
        x + 1,
    )


def test_more_joins() -> None:
    agree(lambda a, b: jnp.stack((a, b), -1), lambda a, b: np.stack((a, b), -1), M, M)
    agree(
        lambda a, b: jnp.concatenate((a, b), axis=None),
        lambda a, b: np.concatenate((a, b), axis=None),
        M,
        M[0],
    )
    agree(
        lambda a, b: jnp.block([[a, b], [b, a]]),
        lambda a, b: np.block([[a, b], [b, a]]),
        M,
        M,
    )
    assert jnp.stack([1.0, 2]).tolist() == [1, 2]
    assert jnp.concatenate([jnp.ones(1), jnp.arange(2)]).dtype == np.float32


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("sizes", [(5, 3), (3, 5), (4, 4), (6, 2), (2, 5), (1, 4)])
def test_convolve(mode: Any, sizes: Any) -> None:
    x, y = [RANDOM.normal(size=n) for n in sizes]
    agree(
        lambda a, b: jnp.convolve(a, b, mode),
        lambda a, b: np.convolve(a, b, mode),
        x,
        y,
    )
    agree(
        lambda a, b: jnp.correlate(a, b, mode),
        lambda a, b: np.correlate(a, b, mode),
        x,
        y,
    )


def test_interp() -> None:
    t = np.array([-1, 0, 0.3, 1, 1.5, 2, 7])
    knots, values = np.array([0.0, 1, 2]), np.array([0.0, 10, 5])
    agree(jnp.interp, np.interp, t, knots, values)
    for options in ({"left": -7.0, "right": 8.0}, {"period": 2.5}):
        agree(
            lambda *a, o=options: jnp.interp(*a, **o),
            lambda *a, o=options: np.interp(*a, **o),
            t,
            knots,
            values,
        )


def test_traced_shift() -> None:
    agree(
        lambda x, s: jnp.roll(x, s, 1), lambda x, s: np.roll(x, s, 1), M, np.int32(-5)
    )


def test_equations() -> None:
    assert equations(lambda x: jnp.reshape(x, (-1,)), M) == ["reshape"]
    assert equations(lambda x: jnp.reshape(x, x.shape), M) == []
    assert equations(lambda x: jnp.squeeze(x), M) == []
    assert equations(lambda x: jnp.pad(x, 1), M) == ["pad"]
    assert equations(lambda x: jnp.where(x > 0, x, 0.0), M) == ["gt", "select_n"]


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: jnp.reshape(M, (5, -1)), TypeError, "cannot reshape"),
        (lambda: jnp.reshape(M, (-1, -1)), ValueError, "more than one"),
        (lambda: jnp.transpose(M, (0,)), ValueError, "not a permutation"),
        (lambda: jnp.stack([]), ValueError, "at least one"),
        (lambda: jnp.concatenate([M, X]), ValueError, "the same shape"),
        (lambda: jnp.squeeze(M, 0), ValueError, "size is not 1"),
        (lambda: jnp.reshape([1, 2], (2,)), TypeError, "asarray"),
        (lambda: jnp.split(M, 2), ValueError, "equal parts"),
        (lambda: jnp.broadcast_to(M, (2, 4)), ValueError, "does not broadcast"),
    ],
)
def test_errors(call: Any, kind: type[Exception], text: str) -> None:
    assert text in error_of(call, kind)


def test_axes_and_sizes_are_arrays_too() -> None:
    x = vnp.ones((2, 3))
    swap: Any = np.array([1, 0])
    both: Any = np.array([0, 1])
    zero: Any = np.array([0])
    one: Any = np.array([1])
    last: Any = np.int64(1)
    size: Any = np.array(2)
    assert vnp.transpose(x, swap).shape == (3, 2)
    assert vnp.sum(x, axis=both).shape == ()
    assert vnp.moveaxis(x, zero, one).shape == (3, 2)
    assert vnp.expand_dims(x, both).shape == (1, 1, 2, 3)
    assert vnp.tile(x, swap + 1).shape == (4, 3)
    assert vnp.flip(x, axis=last).shape == (2, 3)
    assert vnp.zeros(size).shape == (2,)


def test_shapes_of_what_is_no_array() -> None:
    """NumPy's answers, as in JAX: libraries ask for the shape of None."""
    with pytest.warns(DeprecationWarning, match="shape requires ndarray or scalar"):
        assert vnp.shape(cast(Any, None)) == ()
    with pytest.warns(DeprecationWarning, match="ndim requires"):
        assert vnp.ndim(cast(Any, [[1, 2]])) == 2
    with pytest.warns(DeprecationWarning, match="size requires"):
        assert vnp.size(cast(Any, None)) == 1
    assert vnp.size(np.ones((2, 3)), 1) == 3


class Blocks:
    """Arrays that can be counted and read by their numbers; no `Sequence`."""

    def __init__(self, *parts: object) -> None:
        self.parts = parts

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, place: int) -> object:
        return self.parts[place]


@pytest.mark.parametrize(
    "name", ["concatenate", "concat", "stack", "vstack", "hstack", "column_stack"]
)
def test_joins_of_containers_that_are_no_sequences(name: str) -> None:
    """As in JAX; NumPy wants sequences."""
    join: Any = getattr(vnp, name)
    parts = [vnp.ones(2), vnp.zeros(2, int)]
    expected = join(parts).tolist()
    assert join(dict(enumerate(parts)).values()).tolist() == expected
    assert join(Blocks(*parts)).tolist() == expected
    for wrong in (iter(parts), 3, None):
        with pytest.raises(TypeError, match=f"{name} takes a sequence of arrays"):
            join(wrong)
    with pytest.raises(ValueError, match="at least one array"):
        join({}.values())

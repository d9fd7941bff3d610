"""Linear recurrences are loops on a CPU, and their derivatives are such again."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.rules.families.cumulative import LONGEST

CASES = {
    "one run": ((7,), 0),
    "in parts": ((LONGEST + 77,), 0),
    "few rows in parts": ((2, LONGEST + 3), 1),
    "few columns in parts": ((LONGEST + 3, 2), -2),
    "rows": ((9, 33), 1),
    "columns": ((13, 21), 0),
    "in the middle": ((11, 4, 3), 1),
    "one element": ((1, 3), 0),
    "none": ((0, 3), 0),
    "no rows": ((0, 3), 1),
}
DTYPES = ["float32", "float64", "float16", "bfloat16", "complex64"]


def drawn(shape: tuple[int, ...], dtype: str) -> list[Any]:
    """Factors up to one in size, some of them zero, and values."""
    rng = np.random.default_rng(len(shape))
    a, x = (rng.uniform(-1, 1, shape) for _ in range(2))
    a[rng.uniform(size=shape) < 0.1] = 0
    if dtype.startswith("complex"):
        a, x = a * np.exp(1j * x), x + 1j * a
    return [vnp.asarray(v, dtype) for v in (a, x)]


def due(a: Any, x: Any, axis: int, reverse: bool) -> np.ndarray:
    """The recurrence, one step after the other."""
    wide = "c16" if a.dtype.kind == "c" else "f8"
    a, x = (np.moveaxis(np.asarray(v, wide), axis, 0) for v in (a, x))
    y = x.copy()
    order = range(len(y))[::-1] if reverse else range(len(y))
    for before, i in pairwise(order):
        y[i] = a[i] * y[before] + x[i]
    return np.moveaxis(y, 0, axis)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_values(case: str, dtype: str) -> None:
    shape, axis = CASES[case]
    with verax.enable_x64(dtype == "float64"):
        a, x = drawn(shape, dtype)
        for reverse in (False, True):
            f = partial(lax.linear_recurrence, axis=axis, reverse=reverse)
            results = [f(a, x), verax.jit(f)(a, x)]
            if dtype in {"float32", "complex64"} and max(shape) < 50:
                results.append(verax.jit(f, cpu_lowerings="xla")(a, x))
            for y in results:
                assert (y.shape, y.dtype) == (x.shape, x.dtype)
                eps = float(vnp.finfo(dtype).eps)
                actual = np.asarray(y, "c16" if "complex" in dtype else "f8")
                np.testing.assert_allclose(
                    actual, due(a, x, axis, reverse), 8 * eps, 8 * eps
                )


def agree(actual: Any, expected: Any, bound: float) -> None:
    """Raise unless the trees hold the same numbers."""
    leaves = verax.tree.leaves
    for one, other in zip(leaves(actual), leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, bound, bound)


def by_hand(a: Any, x: Any, reverse: bool = False) -> Any:
    """The recurrence of six numbers, written out."""
    order = range(6)[::-1] if reverse else range(6)
    ys: dict[int, Any] = {}
    for before, i in zip((None, *order), order, strict=False):
        ys[i] = x[i] if before is None else a[i] * ys[before] + x[i]
    return vnp.stack([ys[i] for i in range(6)])


def third(f: Callable[..., Any], a: Any, x: Any) -> Any:
    def pushed(a: Any) -> Any:
        return verax.jvp(f, (a, x), (x, a))[1].sum()

    return verax.jvp(verax.grad(pushed), (a,), (x,))


TRANSFORMATIONS: dict[str, Callable[..., Any]] = {
    "jvp": lambda f: lambda a, x: verax.jvp(f, (a, x), (x, a)),
    "vjp": lambda f: lambda a, x: verax.vjp(f, a, x)[1](a + x),
    "hessian": lambda f: verax.hessian(lambda a, x: (f(a, x) ** 2).sum(), (0, 1)),
    "third derivative": lambda f: lambda a, x: third(f, a, x),
    "transposed": lambda f: (
        lambda a, x: verax.linear_transpose(lambda x: f(a, x), x)(a)
    ),
    "batch of factors": lambda f: (
        lambda a, x: verax.vmap(f, (0, None))(vnp.stack([a, x]), x)
    ),
    "batch of values at the end": lambda f: (
        lambda a, x: verax.vmap(f, (None, 1), 1)(a, vnp.stack([a, x], 1))
    ),
    "batch of both": lambda f: (
        lambda a, x: verax.vmap(f, (1, 0))(vnp.stack([a, x], 1), vnp.stack([x, a]))
    ),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
@pytest.mark.parametrize("reverse", [False, True])
def test_derivatives_and_batches_are_those_of_the_steps(
    name: str, reverse: bool
) -> None:
    transformation = TRANSFORMATIONS[name]
    f = partial(lax.linear_recurrence, reverse=reverse)
    a = np.array([0.5, -0.25, 2, 0, 1, -3], "f4")
    x = np.array([1, 2, -3, 0.5, 2, 1], "f4")
    actual = transformation(f)
    expected = transformation(lambda a, x: by_hand(a, x, reverse))(a, x)
    agree(actual(a, x), expected, 1e-5)
    agree(verax.jit(actual)(a, x), expected, 1e-5)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_factor_of_zero_forgets_infinities_and_nan(reverse: bool) -> None:
    a = np.array([1, 1, 0, 1, 0, 1], "f4")
    x = np.array([1, np.inf, 2, np.nan, 3, 4], "f4")
    due = [np.inf, np.inf, 2, np.nan, 3, 4] if reverse else [1, np.inf, 2, np.nan, 3, 7]
    f = partial(lax.linear_recurrence, reverse=reverse)
    for y in (f(a, x), verax.jit(f)(a, x), verax.jit(f, cpu_lowerings="xla")(a, x)):
        np.testing.assert_array_equal(y, due)


def test_the_first_factor_multiplies_nothing() -> None:
    for size in (3, LONGEST + 5):
        a, x = np.full(size, 0.5, "f4"), np.ones(size, "f4")
        a[0] = np.nan
        for y in (lax.linear_recurrence(a, x), verax.jit(lax.linear_recurrence)(a, x)):
            assert y[0] == 1
            assert y[1] == 1.5
            assert np.isfinite(y).all()
        a[:2] = np.inf, 0
        y = verax.jit(lambda a: lax.linear_recurrence(a, a))(a)
        assert y[0] == np.inf
        assert np.isfinite(y[1:]).all()


def test_derivatives_of_running_folds_do_not_grow_with_their_length() -> None:
    for fold in (lax.cumprod, lax.cummax, lax.cumlogsumexp):
        slope = verax.jit(verax.grad(lambda x, f=fold: (f(x) ** 2).sum()))
        texts = [slope.lower(np.ones(n, "f4")).as_text() for n in (64, 4000)]
        lines = [len(text.splitlines()) for text in texts]
        assert max(lines) - min(lines) < 10, fold


def test_the_axis_of_a_derivative_may_be_symbolic() -> None:
    (n,) = verax.export.symbolic_shape("n")
    x = np.array([1.5, 0.5, 2, 2, 1], "f4")
    for fold in (lax.cumprod, lax.cummax, lax.cumlogsumexp):
        slope = verax.jit(verax.grad(lambda x, f=fold: (f(x) ** 2).sum()))
        exported = verax.export.export(slope)(verax.ShapeDtypeStruct((n,), "f4"))
        np.testing.assert_allclose(exported.call(x), slope(x), 1e-6)


def test_bad_input() -> None:
    x = vnp.ones((2, 3))
    with pytest.raises(TypeError, match="same shape and dtype"):
        lax.linear_recurrence(x, x.T)
    with pytest.raises(TypeError, match="same shape and dtype"):
        lax.linear_recurrence(x.astype("float16"), x)
    with pytest.raises(TypeError, match="linear_recurrence"):
        lax.linear_recurrence(x.astype(int), x.astype(int))
    with pytest.raises(ValueError, match="axis"):
        lax.linear_recurrence(x, x, 2)
    with pytest.raises(verax.errors.MissingRule, match="is not linear in the operands"):
        verax.linear_transpose(lambda a: lax.linear_recurrence(a, x), x)(x)

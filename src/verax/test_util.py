"""Derivatives against differences, in one call: `verax.test_util` (floor 6).

Along a random direction the derivative of a function is the slope of a chord, up to a
small power of its length; the derivative of the derivative likewise::

    check_grads(f, (x,), order=2)          # says nothing, or raises AssertionError

`verax.verify.check_function` knows more laws, and shrinks what breaks them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from verax.api.autodiff.jvp_vjp import jvp, vjp
from verax.api.trees.pytrees import (
    keystr,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
)
from verax.ir.dtypes import DType, as_dtype, float0, is_complex, is_float, numpy_dtype
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of

__all__ = ["check_grads", "check_jvp", "check_vjp"]

type Tolerance = float | Mapping[Any, float] | None

# By the bytes of a real number: how far differences and rules may be apart, and the
# length of the chord: near the cube root of the unit roundoff, but in float32 shorter,
# so that it seldom meets a kink; rounding has a margin there.
TOLERANCES: Final = {1: 0.5, 2: 0.1, 4: 3e-3, 8: 1e-6}
LENGTHS: Final = {1: 0.5, 2: 0.1, 4: 5e-4, 8: 1e-5}


def check_grads(
    f: Callable[..., object],
    args: Sequence[object],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
) -> None:
    """Compare the derivatives of `f` at `args` up to `order` with central differences.

    Args:
        f: a function of pytrees of arrays; it may be compiled.
        args: the positional arguments.
        order: 1 for first derivatives, 2 for those of these as well, and so on.
        modes: "fwd" checks `jvp`, "rev" checks `vjp`.
        atol: the absolute tolerance, or tolerances by dtype; by default, and for a
            dtype that is not among them, what the dtype allows.
        rtol: the tolerance relative to the difference quotient, in the same forms.
        eps: the step along the random direction; by default what suits the dtype.

    Raises:
        AssertionError: a derivative is not the slope; the message says which.
        ValueError: there is no such mode, or the order is not positive.

    >>> import verax.numpy as vnp
    >>> check_grads(lambda x: vnp.sin(x) * x, (0.3,), order=2)
    """
    expected = (modes,) if isinstance(modes, str) else tuple(modes)
    unknown = [mode for mode in expected if mode not in ("fwd", "rev")]
    if unknown or not expected:
        raise ValueError(
            f"modes must be 'fwd' and 'rev', or one of them, not {list(modes)}"
        )
    if order < 1:
        raise ValueError(f"order is {order}, but the first derivative has order 1")
    limits = atol, rtol, eps
    if "fwd" in expected:
        check_forward(f, tuple(args), order, limits, "jvp")
    if "rev" in expected:
        check_reverse(f, tuple(args), order, limits, "vjp")


type Limits = tuple[Tolerance, Tolerance, float | None]


def check_forward(
    f: Callable[..., object],
    args: tuple[object, ...],
    order: int,
    limits: Limits,
    name: str,
) -> None:
    """Forward mode, and forward mode of it until the order is reached."""
    check_jvp(f, lambda xs, ts: jvp(f, xs, ts), args, *limits, err_msg=name)
    if order > 1:
        direction = directions(args, seed=order)

        def pushed(*xs: object) -> Any:
            return jvp(f, xs, direction)[1]

        check_forward(pushed, args, order - 1, limits, f"jvp of the {name}")


def check_reverse(
    f: Callable[..., object],
    args: tuple[object, ...],
    order: int,
    limits: Limits,
    name: str,
) -> None:
    """Reverse mode, and reverse mode of it until the order is reached."""
    check_vjp(f, lambda *xs: vjp(f, *xs), args, *limits, err_msg=name)
    if order > 1:
        cotangent = directions(f(*args), seed=order)

        def pulled(*xs: object) -> Any:
            return differentiable(vjp(f, *xs)[1](cotangent))

        check_reverse(pulled, args, order - 1, limits, f"vjp of the {name}")


def check_jvp(
    f: Callable[..., object],
    f_jvp: Callable[..., Any],
    args: Sequence[object],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare `f_jvp(args, tangents)`, value and tangent, with differences of `f`.

    Raises:
        AssertionError: the value is not that of `f`, or the tangent is not the slope.

    >>> import verax
    >>> square = lambda x: x * x
    >>> check_jvp(square, lambda xs, ts: verax.jvp(square, xs, ts), (3.0,))
    """
    xs = tuple(args)
    direction = directions(xs, seed=0)
    value, tangent = f_jvp(xs, direction)
    name = err_msg or "jvp"
    limits = allowed((xs, value), atol, rtol)
    compare(f"{name}: the value", value, f(*xs), limits)
    slope = quotient(f, xs, direction, eps)
    compare(f"{name}: the tangent", differentiable(tangent), slope, limits)


def check_vjp(
    f: Callable[..., object],
    f_vjp: Callable[..., Any],
    args: Sequence[object],
    atol: Tolerance = None,
    rtol: Tolerance = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare `f_vjp(*args)`, a value and its pullback, with differences of `f`.

    The pullback is held to the pairing <ct, slope> = <pullback(ct), direction>.

    Raises:
        AssertionError: the value is not that of `f`, or the pairings differ.

    >>> import verax
    >>> square = lambda x: x * x
    >>> check_vjp(square, lambda *xs: verax.vjp(square, *xs), (3.0,))
    """
    xs = tuple(args)
    direction = directions(xs, seed=0)
    value, pullback = f_vjp(*xs)
    name = err_msg or "vjp"
    limits = allowed((xs, value), atol, rtol)
    compare(f"{name}: the value", value, f(*xs), limits)
    slope = quotient(f, xs, direction, eps)
    cotangent = directions(value, seed=1)
    there = pairing(differentiable(cotangent), slope)
    back = pairing(differentiable(pullback(cotangent)), differentiable(direction))
    compare(f"{name}: <cotangents, directions>", back, there, limits)


def is_differentiable(x: object) -> bool:
    dtype = aval_of(x).dtype
    return dtype != float0 and (is_float(dtype) or is_complex(dtype))


def differentiable(tree: object) -> list[Any]:
    """The leaves of floating point."""
    return [x for x in tree_leaves(tree) if is_differentiable(x)]


def directions(tree: object, seed: int) -> Any:
    """Numbers of size 0.5 to 1.5 for each leaf; float0 where it has no tangent."""
    random = np.random.default_rng(seed)

    def numbers(shape: tuple[int, ...]) -> np.ndarray:
        return random.choice((-1.0, 1.0), shape) * random.uniform(0.5, 1.5, shape)

    def direction(x: object) -> Any:
        aval = aval_of(x)
        if not is_differentiable(x):
            return np.zeros(aval.shape, float0)
        values = numbers(aval.shape)
        if is_complex(aval.dtype):
            values = values + 1j * numbers(aval.shape)
        return np.asarray(values).astype(numpy_dtype(aval.dtype))

    return tree_map(direction, tree)


def real_bytes(tree: object) -> int:
    """The bytes of a real number in the narrowest floating leaf; 8 if there is none."""
    sizes = [
        x.dtype.itemsize // (2 if is_complex(x.dtype) else 1)
        for x in (aval_of(leaf) for leaf in differentiable(tree))
    ]
    return min(sizes, default=8)


def quotient(
    f: Callable[..., object], xs: object, direction: object, eps: float | None
) -> Any:
    """The slope of the chord along a direction, in double precision, leaf by leaf."""
    step = LENGTHS[real_bytes(xs)] if eps is None else eps

    def moved(sign: float) -> list[Any]:
        def along(x: object, t: object) -> Any:
            if not is_differentiable(x):
                return x
            values = wide(x) + sign * step * wide(t)
            return values.astype(numpy_dtype(aval_of(x).dtype))

        return [wide(y) for y in differentiable(f(*tree_map(along, xs, direction)))]

    pairs = zip(moved(1.0), moved(-1.0), strict=True)
    return [risen(high, low) / (2.0 * step) for high, low in pairs]


def risen(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """high - low, which is 0 where both are the same infinity."""
    out = np.zeros_like(high)
    np.subtract(high, low, out=out, where=high != low)
    return out


def wide(x: object) -> np.ndarray:
    """The values in double precision."""
    kind = np.complex128 if is_complex(aval_of(x).dtype) else np.float64
    held = x if isinstance(x, Array | np.ndarray | np.generic) else np.asarray(x)
    return np.asarray(held).astype(kind)


def pairing(xs: Sequence[object], ys: Sequence[object]) -> np.ndarray:
    """The sum of x * y, real part, over all elements of all leaves."""
    parts = [np.sum(wide(x) * wide(y)).real for x, y in zip(xs, ys, strict=True)]
    return np.asarray(sum(parts, 0.0))


def tolerance(trees: object, chosen: Tolerance) -> float:
    """The tolerance for results computed from these leaves: that of the coarsest."""
    if chosen is not None and not isinstance(chosen, Mapping):
        return chosen
    by_dtype = {dtype_key(key): value for key, value in (chosen or {}).items()}
    leaves = differentiable(trees)
    return max(
        (by_dtype.get(aval_of(x).dtype, TOLERANCES[real_bytes(x)]) for x in leaves),
        default=TOLERANCES[8],
    )


def dtype_key(key: Any) -> DType | np.dtype[np.generic]:
    """The dtype to which a tolerance belongs; NumPy may know more of them than arrays.

    Raises:
        TypeError: it is not a dtype.
    """
    try:
        return as_dtype(key)
    except TypeError:
        out: np.dtype[np.generic] = np.dtype(key)
        return out


def allowed(trees: object, atol: Tolerance, rtol: Tolerance) -> tuple[float, float]:
    """The absolute and the relative tolerance."""
    return tolerance(trees, atol), tolerance(trees, rtol)


def compare(
    name: str, result: object, expected: object, limits: tuple[float, float]
) -> None:
    """Raise AssertionError unless two pytrees agree within (atol, rtol)."""
    paths = [keystr(path) for path, _ in tree_flatten_with_path(result)[0]]
    pairs = zip(paths, tree_leaves(result), tree_leaves(expected), strict=True)
    for path, ours, theirs in pairs:
        if aval_of(ours).dtype == float0:
            continue
        atol, rtol = limits
        np.testing.assert_allclose(
            wide(ours), wide(theirs), rtol, atol, err_msg=f"{name} {path} is off"
        )

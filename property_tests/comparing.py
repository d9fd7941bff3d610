"""Functions held to a reference, on arguments that are made from a seed.

One idea: a function is a line of a table: what to hold it to, where its arguments come
from and how far it may be off. The unit is the rounding error of the result, and what
the mathematics makes of a rounding error of the arguments is measured, not guessed::

    Pointwise("special.gammainc", gammainc, scipy.special.gammainc, (POSITIVE,) * 2)
    Whole("signal.detrend", detrend, scipy.signal.detrend, calls)

Where a line differs from its reference on purpose, it says at which arguments, why, and
where possible which value is due there.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np
from attrs import field, frozen

import verax
from verax import tree_util
from verax.ir.avals import finfo

type NDArray = np.ndarray[Any, np.dtype[Any]]
type Reference = Callable[..., Any]

BFLOAT16: Final = np.dtype(ml_dtypes.bfloat16)
SPECIAL: Final = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 1e-30, 1e30)
NARROW: Final[Mapping[Any, Any]] = {
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.complex64),
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
}
RANDOM: Final = 400


# ------------------------------------------------------------------------- elementwise


@frozen
class Points:
    """From where an operand is drawn: an interval, and points of special interest.

    Half of the numbers are drawn evenly, half with magnitudes of every size.
    """

    low: float
    high: float
    special: tuple[float, ...] = SPECIAL
    whole: bool = False

    def drawn(self, random: np.random.Generator, count: int) -> NDArray:
        """So many numbers of the interval."""
        even = random.uniform(self.low, self.high, count)
        top = max(abs(self.low), abs(self.high))
        sizes = top * 10.0 ** random.uniform(-6, 0, count)
        scaled = sizes * random.choice([-1.0, 1.0], count)
        inside = (scaled >= self.low) & (scaled <= self.high)
        both = np.where((np.arange(count) % 2 == 0) & inside, scaled, even)
        return np.round(both) if self.whole else both


LINE: Final = Points(-30, 30)
POSITIVE: Final = Points(0, 30)
UNIT: Final = Points(0, 1, (0.0, 1.0, 0.5, 1e-30, 1e-6, 0.999999, -0.1, 1.1, np.nan))
COUNT: Final = Points(0, 20, (0.0, 1.0, 2.0, 7.0), whole=True)


@frozen
class Known:
    """Arguments at which a function differs from its reference, and why.

    `value` gives what is due there instead, from the same arguments; where it is None
    the result is open.
    """

    reason: str
    where: Callable[..., Any]
    value: Callable[..., Any] | None = None


@frozen
class Pointwise:
    """A function of numbers and its reference on arrays in double precision.

    Of a result y at x, `ulps` units in the last place of y are allowed, plus `back`
    times what y changes when any x moves by one unit, plus `ulps` units of
    `scale(x)`, the size of what cancels on the way. `double` are the units in double
    precision, where most references are themselves no better.
    """

    name: str
    ours: Callable[..., Any]
    reference: Reference
    points: tuple[Points, ...]
    ulps: float = 8.0
    back: float = 2.0
    double: float = 1e4
    scale: Callable[..., Any] | None = None
    known: tuple[Known, ...] = ()
    small: bool = field(default=True)
    """Whether it takes floats of 16 bits."""


def operands(line: Pointwise, random: np.random.Generator, dtype: Any) -> list[NDArray]:
    """The special points of all operands together, then random ones."""
    specials = [np.array(p.special) for p in line.points]
    if len(specials) <= 2:
        grid = [x.ravel() for x in np.meshgrid(*specials, indexing="ij")]
    else:
        grid = [random.choice(x, 2 * RANDOM) for x in specials]
    mixed = [
        np.where(
            random.random(RANDOM) < 0.2,
            random.choice(s, RANDOM),
            p.drawn(random, RANDOM),
        )
        for s, p in zip(specials, line.points, strict=True)
    ]
    with np.errstate(all="ignore"):
        return [
            np.concatenate([g, p.drawn(random, RANDOM), m]).astype(dtype)
            for g, p, m in zip(grid, line.points, mixed, strict=True)
        ]


def held(line: Pointwise, seed: int, dtype: Any, compiled: bool = True) -> None:
    """Compare a line, eager and compiled, with its reference at the points of a seed.

    What is smaller than single precision compiles to that, and is not compiled anew.

    Raises:
        AssertionError: it is further away than allowed; the worst point is named.
    """
    xs = operands(line, np.random.default_rng(seed), dtype)
    kind = np.dtype(dtype)
    due = bounds(line, [x.astype(np.float64) for x in xs], kind)
    with verax.enable_x64(kind == np.float64):
        runs = {"eager": leaves(line.ours(*xs))}
        if compiled and kind.itemsize > 2:
            runs["jit"] = leaves(verax.jit(line.ours)(*xs))
    for way, actual in runs.items():
        for i, (got, want, allowed) in enumerate(zip(actual, *due, strict=True)):
            text = f"{line.name} {way} {kind}, output {i}"
            assert got.dtype == kind, f"{text}: dtype {got.dtype}"
            wrong = apart(got.astype(np.float64), want, allowed, kind)
            assert not wrong.any(), report(text, xs, got, want, allowed, wrong)


def bounds(
    line: Pointwise, exact: Sequence[NDArray], kind: Any
) -> tuple[list[NDArray], list[NDArray]]:
    """What is due at the points, and the distances that are allowed."""
    eps = float(finfo(kind).eps)
    ulps = line.double if kind == np.float64 else line.ulps
    # SciPy ends the process where a warning of its own is an error.
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        want = leaves(line.reference(*exact))
        allowed = [ulps * eps * np.abs(w) for w in want]
        for i, x in enumerate(exact):
            for side in (-np.inf, np.inf):
                near = list(exact)
                near[i] = np.nextafter(x.astype(kind), kind.type(side)).astype(float)
                moved = leaves(line.reference(*near))
                spread = [np.abs(m - w) for m, w in zip(moved, want, strict=True)]
                allowed = [
                    a + line.back * np.where(np.isfinite(s), s, 0.0)
                    for a, s in zip(allowed, spread, strict=True)
                ]
        if line.scale is not None:
            size = np.abs(line.scale(*exact))
            extra = ulps * eps * np.where(np.isfinite(size), size, 0.0)
            allowed = [a + extra for a in allowed]
        for known in line.known:
            at = np.broadcast_to(known.where(*exact), want[0].shape)
            if known.value is None:
                allowed = [np.where(at, np.nan, a) for a in allowed]
            else:
                due = leaves(known.value(*exact))
                want = [np.where(at, d, w) for d, w in zip(due, want, strict=True)]
    return want, allowed


def apart(got: NDArray, want: NDArray, allowed: NDArray, kind: Any) -> NDArray:
    """Where a result is too far away; NaN in `allowed` means that anything will do."""
    limits = finfo(kind)
    top, tiny = float(limits.max), float(limits.tiny)
    with np.errstate(all="ignore"):
        allowed = np.where(np.isnan(allowed), np.inf, allowed + tiny)
        same = (got == want) | (np.isnan(got) & np.isnan(want)) | np.isinf(allowed)
        near = np.abs(got - want) <= allowed
        edge = top - np.minimum(allowed + top * 1e-6, top / 2)
        full = (np.abs(got) >= edge) & (np.abs(want) >= edge)
        full &= np.sign(got) == np.sign(want)
    return np.asarray(~(same | near | full))


def report(
    text: str,
    xs: Sequence[NDArray],
    got: NDArray,
    want: NDArray,
    allowed: NDArray,
    wrong: NDArray,
) -> str:
    """The worst points of a result, in words."""
    eps = float(finfo(got.dtype).eps)
    with np.errstate(all="ignore"):
        far = np.abs(got.astype(np.float64) - want) / np.maximum(np.abs(want), 1e-300)
        far = np.where(np.isnan(far), np.inf, far) / eps
    lines = [f"{text}: {wrong.sum()} of {wrong.size} wrong"]
    seen = set()
    for i in np.argsort(-np.where(wrong, far, -1.0), kind="stable")[: wrong.sum()]:
        at = ", ".join(str(float(x[i])) for x in xs)
        if at not in seen:
            lines.append(
                f"  at {at}: {float(got[i])!r} for {float(want[i])!r} "
                f"({far[i]:.4g} units, allowed {allowed[i]:.3g})"
            )
            seen.add(at)
        if len(seen) == 12:
            break
    return "\n".join(lines)


def leaves(tree: Any) -> list[NDArray]:
    """The arrays of a result, as NumPy's."""
    return [np.asarray(x) for x in tree_util.tree_leaves(tree)]


def shapes_held(line: Pointwise) -> None:
    """Scalars, empty arrays, broadcasting, integers, booleans: shapes and dtypes."""
    count = len(line.points)
    shapes: list[list[tuple[int, ...]]] = [[()] * count, [(0,)] * count, [(1,)] * count]
    shapes.append([(2, 1), (3,), (), (1, 1), (1,)][:count])
    for shape in shapes:
        for dtype in (np.float32, np.int32, np.bool_):
            structs = [verax.ShapeDtypeStruct(s, dtype) for s in shape]
            for out in tree_util.tree_leaves(verax.eval_shape(line.ours, *structs)):
                assert out.shape == np.broadcast_shapes(*shape), (line.name, shape)
                assert out.dtype == np.float32, (line.name, dtype, out.dtype)


# ------------------------------------------------------------------- whole arrays


@frozen
class Call:
    """Arguments of one call; the reference gets arrays in double precision."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(factory=dict)
    note: str = ""

    def __str__(self) -> str:
        shown = [
            f"{x.dtype}{list(x.shape)}" if isinstance(x, np.ndarray) else repr(x)
            for x in self.args
        ]
        shown += [
            f"{k}={v.dtype}{list(v.shape)}"
            if isinstance(v, np.ndarray)
            else f"{k}={v!r}"
            for k, v in self.kwargs.items()
        ]
        return f"({', '.join(shown)}){self.note and ' ' + self.note}"


type Calls = Callable[[np.random.Generator], Iterable[Call]]


@frozen
class Whole:
    """A function of whole arrays, its reference, and its calls.

    A result may be `ulps` units in the last place of its largest element away from
    the reference, for sums over whole arrays round like their largest terms; `take`
    turns both results into what they determine (a product of factors, say).
    """

    name: str
    ours: Callable[..., Any]
    reference: Reference
    calls: Calls
    ulps: float = 16.0
    take: Callable[..., Any] | None = None
    dtypes: bool = True
    """Whether the dtype is the reference's, with 32 bits for 64."""


def called(*args: Any, **kwargs: Any) -> Call:
    return Call(args, kwargs)


def varied(args: Sequence[Any], **options: Sequence[Any]) -> Iterator[Call]:
    """The call itself, then with each value of each option alone."""
    yield Call(tuple(args))
    for name, values in options.items():
        for value in values:
            yield Call(tuple(args), {name: value})


def widened(x: Any) -> Any:
    """Floats in double precision; all else as it is."""
    if isinstance(x, np.ndarray) and x.dtype.kind in "fcV":
        return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    if isinstance(x, tuple | list):
        return type(x)(map(widened, x))
    return x


def whole_held(line: Whole, seed: int) -> None:
    """Compare a line with its reference in all calls of a seed.

    Raises:
        AssertionError: a call differs in value, shape or dtype.
    """
    count = 0
    for call in line.calls(np.random.default_rng(seed)):
        count += 1
        compared(line, call, as_array if seed % 2 else unchanged)
    assert count, f"{line.name} has no calls"


def unchanged(x: Any) -> Any:
    return x


def as_array(x: Any) -> Any:
    """An array, where NumPy's was drawn."""
    return verax.numpy.asarray(x) if isinstance(x, np.ndarray) else x


def compared(line: Whole, call: Call, leaf: Callable[[Any], Any]) -> None:
    wide = {k: widened(v) for k, v in call.kwargs.items()}
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        want = line.reference(*[widened(x) for x in call.args], **wide)
    try:
        actual = line.ours(*map(leaf, call.args), **call.kwargs)
    except Exception as error:
        raise AssertionError(f"{line.name}{call}: {error!r}") from error
    if line.take is not None:
        actual, want = (
            line.take(tree_util.tree_map(np.asarray, actual)),
            line.take(want),
        )
    ours, theirs = leaves(actual), leaves(want)
    assert len(ours) == len(theirs), f"{line.name}{call}: {len(ours)} results"
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        text = f"{line.name}{call} output {i}"
        assert a.shape == b.shape, f"{text}: shape {a.shape} for {b.shape}"
        if line.dtypes:
            due = NARROW.get(b.dtype, b.dtype)
            if due == np.float32 and any(is_half(x) for x in call.args):
                due = np.dtype(np.float16)
            single = NARROW.get(a.dtype, a.dtype)
            assert single == due, f"{text}: dtype {a.dtype} for {due}"
        near(a, b, line.ulps, text)


def is_half(x: object) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == np.float16


def near(got: NDArray, want: NDArray, ulps: float, text: str) -> None:
    """Raise AssertionError unless two arrays are equal up to units of the largest."""
    if got.size == 0:
        return
    if got.dtype.kind not in "fcV":
        wrong = got != want
    else:
        part = got.real.dtype if got.dtype.kind == "c" else got.dtype
        eps = float(finfo(part).eps)
        a = got.astype(np.complex128 if got.dtype.kind == "c" else np.float64)
        with np.errstate(all="ignore"):
            size = np.abs(want)
            size = size[np.isfinite(size)]
            allowed = ulps * eps * (float(size.max()) if size.size else 0.0)
            far = np.abs(a - want)
            wrong = ~((a == want) | (np.isnan(a) & np.isnan(want)) | (far <= allowed))
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(
            f"{text}: {wrong.sum()} of {wrong.size} wrong, at {at} {got[at]!r} for "
            f"{want[at]!r}\n{got}\n{want}"
        )


# ---------------------------------------------------------------------- complete tables


def missing(ours: Any, theirs: Any, known: Iterable[str]) -> list[str]:
    """Public functions of both modules that no table has."""
    shared = set(dir(ours)) & set(dir(theirs))
    names = [n for n in shared if n[0] != "_" and callable(getattr(ours, n))]
    return sorted(set(names) - set(known))

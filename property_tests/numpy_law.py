"""One function of NumPy is what NumPy says that it is: the law, and how it compares.

One idea: NumPy computes in 64 bits what verax computes in the dtypes drawn, and its
result in the dtype that verax chose is the one wanted; where JAX's semantics is another
than NumPy's, a subject of the table says so with a reason::

    holds(Subject("sum", lambda d: d.call(d.array())), seed=3)
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import field, frozen

import verax
from property_tests.numpy_draws import BFLOAT16, Call, Draw, kind_of
from verax.api.tracing.apply import ENGINE
from verax.numpy.indexing.parse import NonConcreteBooleanIndexError
from verax.rules.rows.builder import Builder
from verax.rules.values.conversions import AbstractValueError
from verax.rules.values.state import interpreting

SLACK = 32
"""Units in the last place, of the largest element, by which floats may differ."""


@frozen
class Subject:
    """A function, how to draw its arguments, and where it is not NumPy's on purpose.

    `reference` stands in for NumPy's function, for the reason `why`. `differs` gives
    for a call the reason why nothing is compared, or "". `seen` makes of arguments and
    results what is comparable, and `kinds` are kinds of dtypes that are right besides
    NumPy's. `asked` says that `dtype` is that of the result, `typed` that the result
    has the dtype that it has in NumPy, in 32 bits. `narrow` arguments are not widened
    for NumPy; `lenient` is the reason why an error of NumPy need not be one.
    """

    name: str
    draw: Callable[[Draw], Call]
    reference: Callable[..., Any] | None = None
    why: str = ""
    differs: Callable[[Call], str] = field(default=lambda call: "")
    seen: Callable[[Call, Any], Any] = field(default=lambda call, result: result)
    narrow: bool = False
    lenient: str = ""
    kinds: str = ""
    asked: bool = True
    typed: bool = True
    slack: float = SLACK

    def of(self, module: Any) -> Callable[..., Any]:
        for part in self.name.split("."):
            module = getattr(module, part)
        return module  # type: ignore[no-any-return]  # a function by its name


class Raised(Exception):
    """In the place of a result: what the function raised."""


# ----------------------------------------------------------------- both libraries


def mapped(leaf: Callable[[Any], Any], x: Any) -> Any:
    """`leaf` of everything in nested lists, tuples and dictionaries."""
    if isinstance(x, dict):
        return {name: mapped(leaf, item) for name, item in x.items()}
    if isinstance(x, list):
        return [mapped(leaf, item) for item in x]
    if isinstance(x, tuple):
        return tuple([mapped(leaf, item) for item in x])
    return leaf(x)


def as_array(x: Any) -> Any:
    return verax.numpy.asarray(x) if isinstance(x, np.ndarray) else x


def unchanged(x: Any) -> Any:
    """An argument as it was drawn."""
    return x


def widened(x: Any) -> Any:
    """An argument as NumPy gets it: 64 bits, so that its result is nearly exact."""
    if isinstance(x, np.dtype):
        return np.dtype(wide_dtype(x)) if kind_of(x) in "fc" else x
    if isinstance(x, np.ndarray):
        return x.astype(wide_dtype(x.dtype))
    return x


def numbered(x: Any) -> Any:
    """An argument with booleans as integers, of which NumPy makes no float16."""
    if isinstance(x, np.ndarray) and x.dtype == bool:
        return x.astype(np.int64)
    return widened(x)


def halved(result: Any) -> bool:
    """Whether a result has half precision, as floats of booleans have in NumPy."""
    if isinstance(result, list):
        return any(map(halved, result))
    return getattr(result, "dtype", None) == np.float16


def wide_dtype(dtype: Any) -> Any:
    kind = kind_of(dtype)
    return {"f": np.float64, "c": np.complex128, "b": np.bool_}.get(kind, np.int64)


def exact(x: Any) -> Any:
    """An argument that NumPy gets as it is, but for the floats that it lacks."""
    if isinstance(x, np.ndarray) and x.dtype == BFLOAT16:
        return x.astype(np.float64)
    return x


def concrete(x: Any) -> Any:
    """A result as NumPy's arrays in lists."""
    if isinstance(x, list | tuple):
        return [concrete(item) for item in x]
    return np.asarray(x) if isinstance(x, verax.Array) else x


def called(function: Callable[..., Any], call: Call, leaf: Callable[[Any], Any]) -> Any:
    """What the function returns or raises."""
    args, kwargs = mapped(leaf, call.args), mapped(leaf, call.kwargs)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return concrete(function(*args, **kwargs))
    except (
        TypeError,
        ValueError,
        IndexError,
        ZeroDivisionError,
        OverflowError,
        NotImplementedError,
        np.linalg.LinAlgError,
    ) as error:
        return Raised(f"{type(error).__name__}: {error}")


@frozen
class Slot:
    """In the place of an array in the arguments: the number of the input."""

    number: int


def traced(function: Callable[..., Any], call: Call) -> Any:
    """The result of the traced program of the call; None where it needs values."""
    arrays: list[Any] = []

    def slot(x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return x
        arrays.append(verax.numpy.asarray(x))
        return Slot(len(arrays) - 1)

    args, kwargs = mapped(slot, (call.args, call.kwargs))
    builder = Builder("the law of NumPy")
    inputs = [builder.input(x.aval) for x in arrays]

    def fill(x: Any) -> Any:
        return inputs[x.number] if isinstance(x, Slot) else x

    try:
        with interpreting(builder), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            actual = function(*mapped(fill, args), **mapped(fill, kwargs))
    except (AbstractValueError, NonConcreteBooleanIndexError):
        return None
    outs: list[Any] = []
    mapped(lambda x: outs.append(x) if isinstance(x, verax.Array) else None, actual)
    jaxpr, captured = builder.finish(outs)
    assert not captured
    values = iter(ENGINE.evaluate(jaxpr, [np.asarray(x) for x in arrays]))
    return mapped(lambda x: next(values) if isinstance(x, verax.Array) else x, actual)


# ------------------------------------------------------------------------ the law


def holds(subject: Subject, seed: int) -> None:
    """The function and NumPy's agree on arguments drawn from the seed.

    One call in four is traced too, so that arrays have no values for the function; in
    one of three its arrays are NumPy's.
    """
    draw = Draw(seed)
    call = subject.draw(draw)
    # Not `is_x64`, so that the reference is made outside of it.
    with verax.enable_x64(draw.wide):
        leaf = as_array if seed % 3 else unchanged
        actual = called(subject.of(verax.numpy), call, leaf)
    if subject.differs(call):
        return
    function = subject.reference or subject.of(np)
    expected = called(function, call, exact if subject.narrow else widened)
    if not subject.narrow and halved(expected):
        expected = called(function, call, numbered)
    text = f"{subject.name} of {call.args} {call.kwargs} (seed {seed}, x64 {draw.wide})"
    if isinstance(expected, Raised):
        refused = isinstance(actual, Raised) or bool(subject.lenient)
        assert refused, f"{text}: NumPy raises {expected}, verax gives {actual}"
        return
    if isinstance(actual, Raised) and "Python int " in str(actual):
        # docs/differences.md: one that does not fit the arrays beside it is an error.
        return
    assert not isinstance(actual, Raised), f"{text}: {actual}, NumPy gives {expected}"
    check(text, subject, subject.seen(call, actual), subject.seen(call, expected))
    if seed % 4 == 0:
        with verax.enable_x64(draw.wide):
            program = traced(subject.of(verax.numpy), call)
        if program is not None:
            again = subject.seen(call, concrete(program))
            check(f"traced {text}", subject, again, subject.seen(call, expected))
    asked = call["dtype"]
    if subject.asked and asked is not None and isinstance(actual, np.ndarray):
        assert actual.dtype == asked, f"{text}: the dtype is {actual.dtype}"
    elif asked is None and subject.typed and (own := dtype_of(call)):
        narrow = called(function, call, exact)
        if subject.reference is None and not isinstance(narrow, Raised):
            check_types(text, own, actual, narrow, draw.wide)


def dtype_of(call: Call) -> Any:
    """The dtype that all arrays of the call share, if NumPy has it.

    It is that of floats where there is no array, but a shape or a number.
    """
    actual = set()
    mapped(
        lambda x: actual.add(x.dtype) if isinstance(x, np.ndarray) else None,
        (*call.args, call.kwargs),
    )
    if not actual:
        return np.dtype(np.float64)
    return actual.pop() if len(actual) == 1 and BFLOAT16 not in actual else None


def check_types(text: str, own: Any, result: Any, expected: Any, wide: bool) -> None:
    """Raise unless dtypes are NumPy's of the same arguments, in 32 bits unless `wide`.

    Floats that NumPy makes of integers are of other widths in JAX on purpose.
    """
    if isinstance(expected, list):
        for x, y in zip(result, expected, strict=True):
            check_types(text, own, x, y, wide)
    elif isinstance(expected, np.ndarray | np.generic):
        if kind_of(own) in "biu" and kind_of(expected.dtype) in "fc":
            return
        width = expected.dtype
        if not wide:
            names = {"int64": "int32", "uint64": "uint32", "float64": "float32"}
            width = np.dtype(names.get(width.name, width.name).replace("128", "64"))
        assert np.asarray(result).dtype == width, (
            f"{text}: the dtype is {np.asarray(result).dtype}, in NumPy {width}"
        )


def check(text: str, subject: Subject, result: Any, expected: Any) -> None:
    """Raise unless two results agree, in structure, shape, kind and values."""
    if isinstance(expected, list):
        assert isinstance(result, list), f"{text}: {result} where NumPy has {expected}"
        assert len(result) == len(expected), f"{text}: {result}, NumPy {expected}"
        for x, y in zip(result, expected, strict=True):
            check(text, subject, x, y)
        return
    if expected is None or isinstance(expected, str | np.dtype | type):
        assert result == expected, f"{text}: {result}, NumPy {expected}"
        return
    got, want = np.asarray(result), np.asarray(expected)
    assert got.shape == want.shape, f"{text}: shape {got.shape}, NumPy {want.shape}"
    kinds = {"i": "iu", "u": "iu"}.get(kind_of(want.dtype), kind_of(want.dtype))
    allowed = kinds + subject.kinds
    assert kind_of(got.dtype) in allowed, f"{text}: {got.dtype}, NumPy {want.dtype}"
    assert near(got, want, subject.slack), f"{text}:\n{got}\nNumPy\n{want}"


def near(got: Any, want: Any, slack: float) -> bool:
    """Whether values agree in the precision of the dtype of `got`."""
    kind = kind_of(got.dtype)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind not in "fc":
            return bool((got == want.astype(got.dtype)).all())
        want = want.astype(got.dtype)
        wide = wide_dtype(got.dtype)
        eps = float(np.finfo(got.dtype).eps) if got.dtype != BFLOAT16 else 2.0**-7
        x, y = got.astype(wide), want.astype(wide)
        sizes = np.abs(y[np.isfinite(y)])
        scale = max(1.0, float(sizes.max(initial=0)))
        return bool(np.isclose(x, y, 0, slack * eps * scale, equal_nan=True).all())

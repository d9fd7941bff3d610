"""Checks inside compiled programs, `jax.experimental.checkify` (floor 6).

A compiled program cannot raise an exception, so `checkify` makes errors results: the
function that it returns gives an `Error` beside what the function gives, whatever
loops, choices and calls the check stands in::

    def f(x):
        check(x > 0, "x must be positive, but is {}", x)
        return verax.numpy.log(x)

    error, y = verax.jit(checkify(f))(x)
    error.throw()

NaNs, divisions by zero and indices out of bounds can be checked without a `check`.
"""

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np
from attrs import evolve

from verax.api.tracing.apply import apply, as_array, is_tracing
from verax.api.tracing.trace import leaf_avals, trace
from verax.api.tracing.wrapping import describe_arguments
from verax.api.trees.pytrees import register_pytree_node_class
from verax.backend import pytrees
from verax.ir.jaxpr import Jaxpr
from verax.ops.calls.check import (
    CheckParams,
    JaxRuntimeError as JaxRuntimeError,
    check_p,
    first_failure,
    raised,
)
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.rules.programs.host import (
    PASSED,
    BatchedError,
    Category,
    DivisionByZeroError,
    FailedCheckError,
    JaxException,
    Message,
    NaNError,
    OOBError,
    Site,
    failure_of,
)
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of, is_operand
from verax.rules.values.state import STATE, UNCHANGED, changing
from verax.transforms.checks.writer import checked, sites_of

__all__ = [
    "Error",
    "ErrorCategory",
    "JaxRuntimeError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]

ErrorCategory = Category

user_checks: Final[frozenset[Category]] = frozenset((FailedCheckError,))
"""The errors of `check`, `debug_check` and `check_error`."""
nan_checks: Final[frozenset[Category]] = frozenset((NaNError,))
"""Operations that compute with floats, and give a NaN."""
index_checks: Final[frozenset[Category]] = frozenset((OOBError,))
"""Indices that are out of bounds."""
div_checks: Final[frozenset[Category]] = frozenset((DivisionByZeroError,))
"""Divisors that are zero."""
float_checks: Final = nan_checks | div_checks
automatic_checks: Final = float_checks | index_checks
all_checks: Final = automatic_checks | user_checks


@register_pytree_node_class
class Error:
    """The first failure in a program, if any: a pytree of arrays.

    So it may be a result of a jitted function, of a `vmap` (then it has an error for
    each batch element), or of a step of a loop.
    """

    def __init__(
        self,
        code: object = PASSED,
        values: Sequence[Any] = (),
        sites: tuple[Site, ...] = (),
    ) -> None:
        self.code = code
        self.values = tuple(values)
        self.sites = sites

    def get(self) -> str | None:
        """The message of what failed; None if nothing did.

        There is a line for each element of a batch for which something failed.
        """
        failure = self.get_exception()
        return None if failure is None else str(failure)

    def get_exception(self) -> JaxException | None:
        """The failure as an exception with a `source`; None if nothing failed."""
        code = np.asarray(self.code)
        if not code.shape:
            return failure_of(self.sites, int(code), list(map(as_array, self.values)))
        result = {
            index: failure_of(
                self.sites, int(code[index]), [x[index] for x in self.values]
            )
            for index in zip(*map(list, np.nonzero(code != PASSED)), strict=True)
        }
        failures = {
            tuple(map(int, index)): failure
            for index, failure in result.items()
            if failure is not None
        }
        return BatchedError(failures) if failures else None

    def throw(self) -> None:
        """Raise what failed, if anything did; in a trace, see `check_error`.

        Raises:
            JaxRuntimeError: something failed.
        """
        check_error(self)

    def __str__(self) -> str:
        return f"Error({self.get()})"

    def __repr__(self) -> str:
        return f"<Error of {len(self.sites)} checks>"

    def tree_flatten(self) -> tuple[tuple[object, ...], tuple[Site, ...]]:
        """The arrays, and the checks; without checks there are no arrays."""
        return (self.code, *self.values) if self.sites else (), self.sites

    @classmethod
    def tree_unflatten(
        cls, sites: tuple[Site, ...], leaves: Sequence[object]
    ) -> "Error":
        """The error with other leaves."""
        return cls(leaves[0], leaves[1:], sites) if sites else cls()


init_error: Final = Error()
"""The error of a program without checks."""


def checkify[**P, R](
    f: Callable[P, R], errors: Collection[Category] = user_checks
) -> Callable[P, tuple[Error, R]]:
    """A function that returns `(error, f(...))`, where `error` is what failed first.

    Args:
        f: the function; it is traced, and may branch in Python on its arguments.
        errors: which checks there are: a union of `user_checks`, `nan_checks`,
            `div_checks` and `index_checks`. Others are left out.

    >>> import verax, verax.numpy as vnp
    >>> def f(x):
    ...     check(x > 0, "x must be positive, but is {}", x)
    ...     return vnp.log(x)
    >>> error, y = verax.jit(checkify(f))(-1.0)
    >>> error.get()
    'x must be positive, but is -1.0 (`check` failed)'
    >>> error, y = checkify(f, nan_checks)(-1.0)
    >>> error.get()
    'nan generated by primitive: log.'
    """
    if not callable(f):
        raise TypeError(f"checkify takes a function, not {f!r}")
    categories = frozenset(errors)
    block = {"checking": True} if categories - user_checks else {}

    @functools.wraps(f)
    def checked_fun(*args: P.args, **kwargs: P.kwargs) -> tuple[Error, R]:
        leaves, tree = pytrees.flatten((args, kwargs))
        places = [i for i, x in enumerate(leaves) if isinstance(x, Array)]
        operands = [leaves[i] for i in places]

        @functools.wraps(f)
        def of_arrays(*arrays: Array) -> R:
            filled = list(leaves)
            for i, x in zip(places, arrays, strict=True):
                filled[i] = x
            own, named = tree.unflatten(filled)
            result: R = f(*own, **named)
            return result

        names = describe_arguments(f, tree)
        with changing(block) if block else UNCHANGED:
            traced = trace(
                of_arrays,
                pytrees.flatten((tuple(operands), {}))[1],
                leaf_avals(operands, names),
                "checkify",
                describe=lambda: [names()[i] for i in places],
                values=operands,
            )
        error, outs = run(traced.jaxpr, (*traced.captured, *operands), categories)
        return error, traced.out_tree.unflatten(outs)

    return checked_fun


def run(
    jaxpr: Jaxpr, operands: Sequence[object], categories: frozenset[Category]
) -> tuple[Error, Sequence[Array]]:
    """The error and the outputs of a program."""
    body = checked(jaxpr, categories)
    outs = apply(body.jaxpr, operands)
    count = len(jaxpr.outvars)
    sites = tuple(sites_of(jaxpr, categories))
    return Error(outs[count], outs[count + 1 :], sites), outs[:count]


def check(
    pred: object, msg: str, *fmt_args: object, debug: bool = False, **fmt_kwargs: object
) -> None:
    """Raise an error with a message unless `pred` is true.

    It is raised at once where there are values. A compiled program cannot raise it: put
    `checkify` around the function, inside of `jit`, or anywhere around the check.

    Args:
        pred: a boolean scalar.
        msg: the message, a format string for the further arguments, which are trees of
            arrays: `check(x > 0, "x is {} after step {n}", x, n=n)`.
        debug: do nothing outside of `checkify`, as `debug_check`.

    Raises:
        JaxRuntimeError: the predicate is false.
        TypeError: it is not a boolean scalar, or an argument is not an array.
        ValueError: when a program with the check is compiled, without `checkify`. While
            the option `experimental_unsafe_xla_runtime_errors` is on, the program is
            compiled, and a call of it raises a `JaxRuntimeError` of `verax.errors`.
    """
    bind_check(
        "debug_check" if debug else "check", pred, msg, debug, fmt_args, fmt_kwargs
    )


def debug_check(
    pred: object, msg: str, *fmt_args: object, **fmt_kwargs: object
) -> None:
    """A `check` that does nothing outside of `checkify`.

    >>> import verax
    >>> def f(x):
    ...     debug_check(x != 0, "x must not be zero")
    ...     return 1 / x
    >>> print(verax.jit(f)(0.0), verax.jit(checkify(f))(0.0)[0].get())
    inf x must not be zero (`check` failed)
    """
    bind_check("debug_check", pred, msg, True, fmt_args, fmt_kwargs)


def bind_check(
    name: str,
    pred: object,
    msg: str,
    debug: bool,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> None:
    """Write a check, or do it at once.

    Raises:
        TypeError: the predicate is not a boolean scalar, or an argument is no array.
    """
    if not is_predicate(pred):
        raise TypeError(
            f"{name} takes a scalar pred of booleans as argument, got {pred!r}; use "
            "all(pred) or any(pred)"
        )
    leaves, tree = pytrees.flatten((args, kwargs))
    for x in leaves:
        if not is_operand(x):
            raise TypeError(
                f"Formatting arguments of {name} must be arrays or trees of arrays, "
                f"but {x!r} is of type {type(x).__name__}; write it into the message"
            )
    kind = tuple([aval_of(x).strong() for x in leaves])
    message = Message(msg, tree, pytrees.tree_holds(tree))
    site = Site(FailedCheckError, message, kind)
    pairs = zip(map(as_array, leaves), kind, strict=True)
    values = [convert(x, a.dtype) if x.aval != a else x for x, a in pairs]
    code = select(pred, PASSED, np.int32(0))
    raise_or_write(CheckParams((site,), debug), [code, *values])


def is_predicate(pred: object) -> bool:
    """Whether a value is a boolean scalar."""
    if isinstance(pred, Array):
        return not pred.shape and pred.dtype == np.dtype(bool)
    return isinstance(pred, bool | np.bool_)


def check_error(error: Error) -> None:
    """Raise what an error says failed, as `check` does: the inverse of `checkify`.

    So checks may be made results inside `jit`, and raised again around it. Of an error
    with a batch, what failed for the first element is raised.

    >>> import verax
    >>> def f(x):
    ...     check(x > 0, "x must be positive")
    ...     return x
    >>> def raising(x):
    ...     error, y = verax.jit(checkify(f))(x)
    ...     check_error(error)
    ...     return y
    >>> print(raising(1.0), checkify(raising)(-1.0)[0].get())
    1.0 x must be positive (`check` failed)

    Raises:
        JaxRuntimeError: something failed.
        TypeError: `error` is not an `Error`.
    """
    if not isinstance(error, Error):
        raise TypeError(
            "check_error takes an Error, which functions made by checkify return, not "
            f"{type(error).__name__}"
        )
    aval = aval_of(error.code)
    if not error.sites or not aval.size:
        return
    result = [as_array(x) for x in (error.code, *error.values)]
    if aval.shape:
        result = first_failure(result[0], result[1:])
    raise_or_write(CheckParams(error.sites), result)


def raise_or_write(p: CheckParams, result: Sequence[Array]) -> None:
    """Raise what failed, or write that down in a trace."""
    if is_tracing():
        hosted = STATE.experimental_unsafe_xla_runtime_errors
        check_p.bind(evolve(p, hosted=hosted) if hosted else p, *result)
        return
    code, *values = result
    failure = None if p.debug else failure_of(p.sites, int(code), values)
    if failure is not None:
        raise raised(failure)

"""Products in a narrow type, and all else in float32, of values and derivatives.

One idea: a product of bfloat16 operands that is summed in float32 is twice as fast or
more where there is hardware for it, and half the bytes everywhere; a sum, an
exponential or a step of an optimizer gains nothing and needs its digits. So products
are narrow and the rest is as it was, by one line and without touching a model::

    loss, grads = verax.value_and_grad(narrow(loss_of))(params, batch)

Docs: `docs/narrowing.md`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, cast, overload

import numpy as np
from attrs import evolve

from verax.api.jit import jit
from verax.api.tracing.apply import apply as apply_jaxpr, check_has_values
from verax.api.tracing.wrapping import function_name, wraps
from verax.backend import pytrees
from verax.extend.functions import Opened, opened as opened_function
from verax.ir.dtypes import DTypeLike, as_dtype, bfloat16, is_inexact
from verax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import shown
from verax.transforms.narrowing.calls import NarrowParams, narrow_p
from verax.transforms.narrowing.plan import Keep, Narrowing, narrow_type
from verax.transforms.narrowing.report import NarrowReport, reported
from verax.transforms.narrowing.search import searched
from verax.transforms.narrowing.writer import narrowed
from verax.transforms.public import hoist, opened

type Place = int | str | Callable[[Eqn], bool]
type Width = Literal["wide", "narrow"]


@overload
def narrow(
    program: Jaxpr | ClosedJaxpr,
    *,
    to: DTypeLike = bfloat16,
    keep: Place | Iterable[Place] = (),
    elementwise: Width = "wide",
    sums: Width = "wide",
) -> ClosedJaxpr: ...
@overload
def narrow[**P, R](
    program: Callable[P, R],
    *,
    to: DTypeLike = bfloat16,
    keep: Place | Iterable[Place] = (),
    elementwise: Width = "wide",
    sums: Width = "wide",
    tolerance: float | None = None,
    on: Sequence[Sequence[object]] = (),
) -> Callable[P, R]: ...
def narrow(
    program: Callable[..., object] | Jaxpr | ClosedJaxpr,
    *,
    to: DTypeLike = bfloat16,
    keep: Place | Iterable[Place] = (),
    elementwise: Width = "wide",
    sums: Width = "wide",
    tolerance: float | None = None,
    on: Sequence[Sequence[object]] = (),
) -> Any:
    """The program with its products and convolutions in a narrow type.

    Operands of products are rounded to `to`; products are summed in the type that they
    had, and everything else is computed in the types of the program. Inputs and outputs
    keep their types, so weights in float32 are the master weights. Each value is
    rounded once, weights outside of the loops that read them. Only float32 and float64
    are narrowed.

    Derivatives of the function have narrow products, too, and come in the wide type;
    `narrow(grad(f))` computes the same as `grad(narrow(f))`, and stores less between
    the two ways of a loop.

    Args:
        program: a function of arrays, whose arguments may also hold what is none; or a
            jaxpr.
        to: the narrow type: bfloat16, float16 or a type of eight bits.
        keep: what stays wide: a line, as 26 or "model.py:26"; the name of a primitive,
            of the function that an equation is written in, or of a jitted function; or
            a predicate of equations.
        elementwise: "narrow" computes cheap operations on the results of products,
            element by element (sums, products, choices), in the narrow type.
        sums: "narrow" rounds what is added up by sums of elements or over devices.
        tolerance: the relative error that outputs may have against the wide program.
            Lines are narrow only as far as it allows.
        on: with `tolerance`, batches to measure it on: a tuple of arguments for each.

    Returns:
        A function of the same arguments and results, or a `ClosedJaxpr`.

    Raises:
        TypeError: `to` is no type of floats, or `program` no function.
        ValueError: an option is unknown, or `tolerance` comes without batches.

    >>> import verax, verax.numpy as vnp
    >>> from verax.rewrites import narrow
    >>> def f(w, x):
    ...     return vnp.tanh(x @ w)
    >>> x = vnp.ones((4, 4))
    >>> y = narrow(f)(x / 3, x)
    >>> y.dtype, float(abs(y - f(x / 3, x)).max()) < 1e-3
    (dtype('float32'), True)
    """
    plan = plan_of(to, keep, elementwise, sums)
    if isinstance(program, Jaxpr | ClosedJaxpr):
        if tolerance is not None:
            raise ValueError(
                "narrow takes a tolerance for functions; call narrow_report first, and "
                "pass keep=report.keep"
            )
        return hoist(narrowed(plan, opened(program)))
    check_function(program)
    if tolerance is not None:
        if not on:
            raise ValueError(
                "narrow with a tolerance needs batches to measure errors on: "
                "on=[(params, x), ...], a tuple of arguments for each"
            )
        plan = plan_within(program, plan, tolerance, on)[0]
    return function(program, plan)


def narrow_report(
    program: Callable[..., object],
    *,
    to: DTypeLike = bfloat16,
    keep: Place | Iterable[Place] = (),
    elementwise: Width = "wide",
    sums: Width = "wide",
    tolerance: float | None = None,
) -> Callable[..., NarrowReport]:
    """What `narrow` makes of a function, in numbers.

    Args:
        program: a function of arrays.
        to, keep, elementwise, sums: as for `narrow`.
        tolerance: the relative error that outputs may have; the arguments are the batch
            on which it is measured. `report.keep` has the lines that must stay wide.

    Returns:
        A function of the arguments of `program` to a `NarrowReport`.

    Raises:
        TypeError, ValueError: as `narrow`.

    >>> import verax.numpy as vnp
    >>> from verax.rewrites import narrow_report
    >>> def f(w, x):
    ...     return vnp.sum(vnp.tanh(x @ w))
    >>> report = narrow_report(f, tolerance=1e-2)(vnp.eye(8), vnp.ones((8, 8)))
    >>> report.casts, report.error <= 1e-2, report.keep
    (2, True, ())
    """
    plan = plan_of(to, keep, elementwise, sums)
    check_function(program)

    @wraps(program)
    def report(*args: object, **kwargs: object) -> NarrowReport:
        call = Call(program, args, kwargs)
        if tolerance is None:
            return reported(plan, call.opened.jaxpr)
        check_has_values(
            "narrow_report with a tolerance", function_name(program), REPORT
        )
        chosen, error, trials = chosen_plan(plan, [call.opened], tolerance)
        out = reported(chosen, call.opened.jaxpr)
        return evolve(out, error=error, tolerance=tolerance, trials=trials)

    return report


REPORT = "narrow_report(f, tolerance=...)(*args)"
SEARCH = "narrow(f, tolerance=..., on=batches)"


def check_function(program: object) -> None:
    """Raise TypeError unless a program can be called."""
    if not callable(program):
        raise TypeError(f"narrow takes functions and jaxprs, not {shown(program)}")


def plan_of(
    to: DTypeLike, keep: Place | Iterable[Place], elementwise: Width, sums: Width
) -> Narrowing:
    """What the options say."""
    for name, width in (("elementwise", elementwise), ("sums", sums)):
        if width not in ("wide", "narrow"):
            raise ValueError(f'{name} must be "wide" or "narrow", not {width!r}')
    single = isinstance(keep, int | str) or callable(keep)
    places = (keep,) if single else keep
    kept = []
    for place in cast(Iterable[Place], places):
        if not (isinstance(place, int | str) or callable(place)):
            raise TypeError(
                "keep takes lines, names and predicates of equations, not "
                f"{shown(place)}"
            )
        kept.append(Keep(place))
    return Narrowing(
        narrow_type(as_dtype(to)),
        tuple(kept),
        None,
        elementwise == "narrow",
        sums == "narrow",
    )


class Call:
    """A call of a function, traced on those of its arguments that are arrays."""

    def __init__(
        self, fun: Callable[..., object], args: object, kwargs: object
    ) -> None:
        leaves, tree = pytrees.flatten((args, kwargs))
        traced = [is_array(x) for x in leaves]
        self.rest: list[object] = []
        self.made: list[bool] = []

        def on_arrays(*arrays: object) -> list[object]:
            given = iter(arrays)
            mixed = [
                next(given) if flag else x
                for x, flag in zip(leaves, traced, strict=True)
            ]
            own, named = tree.unflatten(mixed)
            outs, self.tree = pytrees.flatten(fun(*own, **named))
            self.made = [is_array(x) for x in outs]
            self.rest = [x for x in outs if not is_array(x)]
            return [x for x in outs if is_array(x)]

        arrays = [x for x, flag in zip(leaves, traced, strict=True) if flag]
        self.opened: Opened = opened_function(
            on_arrays, arrays, purpose="rewrites.narrow"
        )

    def result(self, arrays: Sequence[object]) -> Any:
        """What the function returns, with arrays for those that were traced."""
        given, rest = iter(arrays), iter(self.rest)
        return self.tree.unflatten(
            [next(given) if flag else next(rest) for flag in self.made]
        )


def is_array(x: object) -> bool:
    """Whether a leaf is an array or a number, and not something that stays as it is."""
    try:
        aval_of(x)
    except TypeError:
        return False
    return True


def function[**P, R](fun: Callable[P, R], plan: Narrowing) -> Callable[P, R]:
    """The function whose program is narrowed on every call."""

    @wraps(fun)
    def narrow(*args: P.args, **kwargs: P.kwargs) -> R:
        call = Call(fun, args, kwargs)
        jaxpr, operands = call.opened.jaxpr, call.opened.operands
        if plan.touches(jaxpr):
            params = NarrowParams(function_name(fun), plan, jaxpr)
            outs: Sequence[object] = narrow_p.bind(params, *operands)
        else:
            outs = apply_jaxpr(jaxpr, operands)
        return cast(R, call.result(outs))

    return narrow


# -----------------------------------------------------------------------------
# Errors, as a search measures them.
#
# The error of an array is the norm of its difference to that of the wide program, as a
# share of the norm of that; of a program, the largest one of its outputs.


def plan_within(
    fun: Callable[..., object],
    plan: Narrowing,
    tolerance: float,
    batches: Sequence[Sequence[object]],
) -> tuple[Narrowing, float, int]:
    """The plan that stays within the tolerance on all batches, and its error."""
    check_has_values("narrow with a tolerance", function_name(fun), SEARCH)
    calls = [Call(fun, tuple(args), {}).opened for args in batches]
    return chosen_plan(plan, calls, tolerance)


def chosen_plan(
    plan: Narrowing, calls: Sequence[Opened], tolerance: float
) -> tuple[Narrowing, float, int]:
    """`plan_within` for calls that are traced."""
    if not tolerance > 0:
        raise ValueError(f"tolerance must be positive, not {tolerance}")
    exact = [computed(call.jaxpr, call.operands) for call in calls]
    errors: dict[Narrowing, float] = {}

    def accepts(candidate: Narrowing) -> bool:
        errors[candidate] = max(
            [
                error_of(computed(narrowed(candidate, call.jaxpr), call.operands), outs)
                for call, outs in zip(calls, exact, strict=True)
            ]
        )
        return errors[candidate] <= tolerance

    chosen, trials = searched(plan, calls[0].jaxpr, accepts)
    return chosen, errors.get(chosen, 0.0), trials


def computed(jaxpr: Jaxpr, operands: Sequence[object]) -> list[np.ndarray]:
    """The outputs of a program, compiled."""
    outs = jit(lambda *xs: apply_jaxpr(jaxpr, xs))(*operands)
    return [np.asarray(x) for x in outs]


def error_of(outs: Sequence[np.ndarray], exact: Sequence[np.ndarray]) -> float:
    """The largest relative error of outputs."""
    pairs = zip(outs, exact, strict=True)
    return max([relative(x, y) for x, y in pairs if is_inexact(y.dtype)], default=0.0)


def relative(x: np.ndarray, y: np.ndarray) -> float:
    """The norm of x - y as a share of that of y; inf if only x is not finite."""
    wide = np.result_type(y.dtype, np.float64)
    finite = np.isfinite(y)
    if not np.isfinite(x[finite]).all():
        return float("inf")
    a, b = x[finite].astype(wide), y[finite].astype(wide)
    size = float(np.linalg.norm(b))
    apart = float(np.linalg.norm(a - b))
    return apart / size if size else apart

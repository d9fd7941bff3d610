"""Floor 5: gradients, on top of vjp.

One idea: the gradient of a scalar is the pullback of 1::

    grad(lambda x: x * x)(3.0)
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, SupportsIndex, overload

from verax.api.arguments.call_keys import numbers as positions
from verax.api.autodiff.jvp_vjp import Pullback, check_reduce_axes, linearized, vjp
from verax.api.autodiff.primals import OfChosen
from verax.api.jit import jit
from verax.api.memory.budgets import Budget
from verax.api.tracing.apply import ENGINE, as_typed_array
from verax.api.tracing.wrapping import ParameterNames, function_name, wraps
from verax.api.trees.hitypes import HI, is_hi, slots
from verax.backend import pytrees
from verax.backend.arrays.concrete import beside
from verax.ir.atoms import scalar_literal
from verax.ir.avals import ShapedArray, is_reference
from verax.ir.dtypes import is_complex, is_float, is_inexact
from verax.rules.rows.builder import Builder, Tracer
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of, scalar_of
from verax.rules.values.conversions import check_callable
from verax.rules.values.state import STATE

type Argnums = int | Sequence[int]

# What documentation of results says, before that of the function.
BY: Final = "{fun} with respect to positional argument(s) {argnums}. Takes the same "
GRADIENT: Final = f"Gradient of {BY}arguments as {{fun}}."
WITH_VALUE: Final = (
    f"Value and gradient of {BY}arguments as {{fun}}, and returns the pair of both."
)
JACOBIAN: Final = f"Jacobian of {BY}arguments as {{fun}}."


@overload
def value_and_grad[**P, R](
    fun: Callable[P, R],
    argnums: Argnums = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
    memory: Budget | None = None,
) -> Callable[P, tuple[R, Any]]: ...
@overload
def value_and_grad[**P, R, A](
    fun: Callable[P, tuple[R, A]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
    memory: Budget | None = None,
) -> Callable[P, tuple[tuple[R, A], Any]]: ...
@overload
def value_and_grad[**P](
    fun: Callable[P, object],
    argnums: Argnums = 0,
    *,
    has_aux: bool,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
    memory: Budget | None = None,
) -> Any: ...
@overload
def value_and_grad[**P](
    fun: Callable[P, object],
    argnums: Argnums,
    has_aux: bool,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
    memory: Budget | None = None,
) -> Any: ...
def value_and_grad[**P](
    fun: Callable[P, object],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
    memory: Budget | None = None,
) -> Callable[P, tuple[Any, Any]]:
    """A function that returns the value of `fun` and its gradient.

    The gradient has the structure of the argument that `argnums` names; for several it
    is a tuple. With `has_aux`, `fun` returns (output, aux) and the value is that pair.
    `holomorphic` differentiates complex functions; `allow_int` gives gradients of dtype
    float0 to integers. `reduce_axes` must be empty. With `memory`, a budget as `jit`
    takes it, the function is compiled, and what does not fit is computed again in the
    backward pass; `loss` itself needs no `checkpoint`.

    Raises:
        NotImplementedError: there are `reduce_axes`.
        TypeError: an argument or the output has a dtype without derivative, or the
            output is not a scalar.

    >>> import verax
    >>> value, gradient = verax.value_and_grad(lambda x: x * x)(3.0)
    >>> float(value), float(gradient)
    (9.0, 6.0)
    """
    check_function("value_and_grad", fun, reduce_axes)
    how = (positions("argnums", argnums), has_aux, holomorphic, allow_int)
    single = is_single(argnums)

    @wraps(fun, WITH_VALUE.replace("{argnums}", str(argnums)))
    def value_and_grad_of(*args: object, **kwargs: object) -> tuple[object, object]:
        value, aux, cotangents = pulled_back(fun, args, kwargs, *how)
        gradient = cotangents[0] if single else cotangents
        return ((value, aux) if has_aux else value), gradient

    return (
        value_and_grad_of if memory is None else jit(value_and_grad_of, memory=memory)
    )


def pulled_back(
    fun: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    numbers: tuple[int, ...],
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
) -> tuple[Any, Any, tuple[Any, ...]]:
    """The value of `fun`, its aux, and the gradients by the arguments at `numbers`."""
    one, chosen = choose(fun, args, kwargs, numbers, TypeError)
    rest: Callable[..., object] = one
    finish: Callable[[Any], Any] | None = None
    if HI.types and any(map(is_hi, pytrees.flatten(chosen, is_hi)[0])):
        chosen, filled, finish = slots(chosen)
        rest = of_slots(rest, filled)
    check_inputs("grad", fun, one.numbers, chosen, holomorphic, allow_int)
    at, outs, linear = linearized(rest, chosen, "vjp", has_aux)
    value, aux = at.unpack(outs)
    check_output(fun, value, holomorphic)
    pulled = Pullback(at.signature, linear)(one_like(value))
    return value, aux, pulled if finish is None else finish(pulled)


def of_slots(
    fun: Callable[..., object], filled: Callable[[tuple[object, ...]], Iterable[object]]
) -> Callable[..., object]:
    """A function of slots, of a function of values with types."""
    return lambda *now: fun(*filled(now))


@overload
def grad[**P](
    fun: Callable[P, object],
    argnums: Argnums = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
    memory: Budget | None = None,
) -> Callable[P, Any]: ...
@overload
def grad[**P, A](
    fun: Callable[P, tuple[object, A]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
    memory: Budget | None = None,
) -> Callable[P, tuple[Any, A]]: ...
@overload
def grad[**P](
    fun: Callable[P, object],
    argnums: Argnums = 0,
    *,
    has_aux: bool,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
    memory: Budget | None = None,
) -> Any: ...
@overload
def grad[**P](
    fun: Callable[P, object],
    argnums: Argnums,
    has_aux: bool,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
    memory: Budget | None = None,
) -> Any: ...
def grad[**P](
    fun: Callable[P, object],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[object] = (),
    memory: Budget | None = None,
) -> Callable[P, Any]:
    """A function that returns the gradient of `fun`, a function to a real scalar.

    Arguments are those of `value_and_grad`. With `has_aux`, the result is the pair
    (gradient, aux).

    >>> import verax
    >>> float(verax.grad(lambda x: x ** 3)(2.0))
    12.0
    """
    check_function("grad", fun, reduce_axes)
    how = (positions("argnums", argnums), has_aux, holomorphic, allow_int)
    single = is_single(argnums)

    @wraps(fun, GRADIENT.replace("{argnums}", str(argnums)))
    def grad_of(*args: P.args, **kwargs: P.kwargs) -> object:
        _, aux, cotangents = pulled_back(fun, args, kwargs, *how)
        gradient = cotangents[0] if single else cotangents
        return (gradient, aux) if has_aux else gradient

    return grad_of if memory is None else jit(grad_of, memory=memory)


def check_function(name: str, fun: object, reduce_axes: Sequence[object]) -> None:
    """Raise for what is not a function, and for axes to reduce."""
    check_callable(name, fun)
    check_reduce_axes(name, reduce_axes)


def is_single(argnums: Argnums) -> bool:
    """Whether `argnums` names a single argument, whose gradient is not in a tuple."""
    return type(argnums) is int or isinstance(argnums, SupportsIndex)


def choose(
    fun: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
    numbers: tuple[int, ...],
    refusal: type[Exception] = ValueError,
) -> tuple[OfChosen, tuple[object, ...]]:
    """`fun` as a function of the arguments at the given positions, and these.

    Negative positions count from the end; `numbers` of the function has none of them.

    Raises:
        ValueError: there is no such position, or none or the same one twice is named.
            Where too few arguments were passed, it is a `refusal`.
    """
    if not numbers:
        raise ValueError(
            f"argnums of {function_name(fun)} names no argument: pass the number of "
            "one, or a tuple of several"
        )
    if len({number % max(len(args), 1) for number in numbers}) < len(numbers):
        raise ValueError(f"argnums names an argument twice: {numbers}")
    for number in numbers:
        if not -len(args) <= number < len(args):
            kind = ValueError if number < 0 else refusal
            raise kind(
                f"differentiating with respect to argnums={number} requires at least "
                f"{number + 1 if number >= 0 else -number} positional arguments to be "
                f"passed by the caller, but got only {len(args)} positional arguments. "
                f"That is a call of {function_name(fun)}; an argument passed by "
                "keyword has no number"
            )
    places = tuple([number % len(args) for number in numbers])
    chosen = tuple([args[number] for number in places])
    return OfChosen(fun, args, kwargs, places), chosen


def check_inputs(
    name: str,
    fun: object,
    places: Sequence[int],
    chosen: Sequence[object],
    holomorphic: bool,
    allow_int: bool,
) -> None:
    """Raise TypeError for a leaf whose dtype has no derivative of this kind.

    Reverse mode takes complex inputs; `jacfwd` takes them only where `holomorphic`
    says that one direction for each will do.
    """
    if not allow_int and not holomorphic and name != "jacfwd":
        leaves, _ = pytrees.flatten(chosen)
        if all([isinstance(x, Array) and is_inexact(x.aval.dtype) for x in leaves]):
            return
    labelled, _ = pytrees.flatten_with_path(tuple(chosen))
    for path, leaf in labelled:
        try:
            dtype = aval_of(leaf).dtype
        except TypeError as error:
            why = str(error)
            if is_reference(leaf):
                why = (
                    f"{name} cannot differentiate with respect to a Ref, whose "
                    "gradient needs another; use vjp, and with_refs of its pullback"
                )
            raise TypeError(
                f"{place(fun, places, path)} of {function_name(fun)}: {why}"
            ) from None
        if holomorphic and not is_complex(dtype):
            raise TypeError(
                f"{name} with holomorphic=True requires inputs with complex dtype, but "
                f"got {dtype.name}: {place(fun, places, path)} of {function_name(fun)}"
            )
        if not holomorphic and is_complex(dtype) and name == "jacfwd":
            raise TypeError(
                f"{name} requires real-valued inputs (input dtype that is a sub-dtype "
                f"of np.floating), but got {dtype.name}: {place(fun, places, path)} of "
                f"{function_name(fun)}; for holomorphic functions pass "
                "holomorphic=True, for others use jacrev"
            )
        if not is_inexact(dtype) and not allow_int:
            raise TypeError(
                f"{name} requires real- or complex-valued inputs (input dtype that is "
                f"a sub-dtype of np.inexact), but got {dtype.name}: "
                f"{place(fun, places, path)} of {function_name(fun)}; convert it, "
                "choose other arguments with argnums, or pass allow_int=True for "
                "gradients of dtype float0"
            )


def place(fun: object, places: Sequence[int], path: Sequence[Any]) -> str:
    """The leaf at `path` of the arguments at `places`: `argument x['w']`."""
    which, *rest = path
    label = ParameterNames(fun).label(places[which.idx])
    return f"{label}{''.join(map(str, rest))}"


SCALAR_ONLY: Final = "Gradient only defined for scalar-output functions."


def check_output(fun: object, value: object, holomorphic: bool) -> None:
    """Raise TypeError unless the value is one scalar of the right kind."""
    leaves, tree = pytrees.flatten(value)
    if len(leaves) != 1 or tree.num_nodes != 1:
        raise TypeError(
            f"{SCALAR_ONLY} {function_name(fun)} returned {tree}, not one scalar; to "
            "return other outputs with it, use has_aux=True"
        )
    aval = aval_of(leaves[0])
    if aval.shape:
        hint = "output.sum() or output.mean()"
        if aval.size == 1:
            first = f"output[{', '.join('0' * aval.ndim)}]"
            hint = f"output.reshape(()) or {first}, or output.sum()"
        raise TypeError(
            f"{SCALAR_ONLY} Output had shape: {aval.shape}. To make the output of "
            f"{function_name(fun)} a scalar, use {hint}; for the derivatives of all "
            "elements use verax.jacobian or verax.vjp"
        )
    expected = is_complex if holomorphic else is_float
    if not expected(aval.dtype):
        kind = "complex outputs" if holomorphic else "real-valued outputs"
        parent = "np.complexfloating" if holomorphic else "np.floating"
        hint = (
            "" if holomorphic else "; for complex outputs see vjp and holomorphic=True"
        )
        raise TypeError(
            f"grad requires {kind} (output dtype that is a sub-dtype of {parent}), but "
            f"got {aval.dtype.name} from {function_name(fun)}{hint}"
        )


def one_like(value: object) -> Array:
    """The number one in the type of a scalar; a literal of a trace, not a constant.

    It is where the scalar is, and so is the gradient.
    """
    aval = aval_of(value)
    if aval.explicit is not None:
        whole = one_of(aval.with_explicit(None))
        return ENGINE.core.reshard(whole, aval.cotangent().explicit)
    return beside(one_of(aval), value)


def one_of(aval: ShapedArray) -> Array:
    """The number one of a type; see `one_like`."""
    current = STATE.interpreter
    if isinstance(current, Builder):
        return Tracer(current, scalar_literal(scalar_of(1, aval), aval))
    return as_typed_array(1, aval)


# -----------------------------------------------------------------------------
# Reverse mode as two functions with the residuals between them.
#
# A pullback is a pytree, its residuals the leaves and its program a part of the
# structure, so both halves can be jitted apart::
#
#     fwd, bwd = fwd_and_bwd(f, argnums=0)
#     y, residuals = fwd(x)
#     (x_ct,) = bwd(residuals, y_ct)


def fwd_and_bwd(
    fun: Callable[..., object],
    argnums: int | Sequence[int],
    has_aux: bool = False,
    jitted: bool = True,
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The forward and the backward half of reverse mode, each jitted once.

    `fwd(*args)` gives (output, residuals), and the auxiliary output third with
    `has_aux`; `bwd(residuals, cotangent)` the tuple of cotangents of the arguments
    `argnums`.

    Raises:
        TypeError: `argnums` names no argument, or the cotangent is not like the output.

    >>> import verax
    >>> fwd, bwd = verax.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> y, residuals = fwd(3.0, 4.0)
    >>> print(*bwd(residuals, 1.0))
    4.0 3.0
    """
    numbers = positions("argnums", argnums)

    def fwd(*args: object) -> object:
        rest, chosen = choose(fun, args, {}, numbers)
        return vjp(rest, *chosen, has_aux=has_aux)

    def bwd(residuals: Pullback, cotangent: object) -> tuple[object, ...]:
        return residuals(cotangent)

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)

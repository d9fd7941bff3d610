"""Floor 5: looking at programs: make_jaxpr, eval_shape, linear_transpose.

One idea: what tracing gives is a value, so looking at it is calling `trace`::

    print(make_jaxpr(f)(x))
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, overload

from attrs import frozen

from verax.api.arguments.call_keys import resolve_statics
from verax.api.autodiff.jvp_vjp import check_reduce_axes, vjp
from verax.api.autodiff.primals import check_tangent, zero
from verax.api.config.tracebacks import SPOKEN
from verax.api.tracing.apply import ENGINE, CompileTime, apply, observed
from verax.api.tracing.structs import (
    ShapeDtypeStruct,
    out_info,
    struct_aval,
    struct_avals,
)
from verax.api.tracing.trace import Traced, shared_trace, trace
from verax.api.tracing.wrapping import (
    ParameterNames,
    describe_arguments,
    function_name,
    wraps,
)
from verax.api.vmap import axis_scope
from verax.backend import pytrees
from verax.backend.pytrees import Partial, PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import is_complex, is_inexact
from verax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr
from verax.ir.walk import hoist
from verax.ops.calls.checkpoint import checkpoint_p
from verax.ops.hoisting import as_operands
from verax.rules.guards import paused
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import check_callable, shown
from verax.rules.values.state import STATE, interpreting

type Numbers = int | tuple[int, ...] | list[int] | None


@overload
def make_jaxpr[**P](
    fun: Callable[P, object],
    static_argnums: Numbers = None,
    axis_env: Sequence[tuple[str, int]] | None = None,
    return_shape: Literal[False] = False,
) -> Callable[P, ClosedJaxpr]: ...
@overload
def make_jaxpr[**P, R](
    fun: Callable[P, R],
    static_argnums: Numbers = None,
    axis_env: Sequence[tuple[str, int]] | None = None,
    *,
    return_shape: Literal[True],
) -> Callable[P, tuple[ClosedJaxpr, R]]: ...
@overload
def make_jaxpr[**P](
    fun: Callable[P, object],
    static_argnums: Numbers = None,
    axis_env: Sequence[tuple[str, int]] | None = None,
    *,
    return_shape: bool,
) -> Any: ...
def make_jaxpr[**P](
    fun: Callable[P, object],
    static_argnums: Numbers = None,
    axis_env: Sequence[tuple[str, int]] | None = None,
    return_shape: bool = False,
) -> Callable[P, Any]:
    """A function that returns the jaxpr of `fun` for its arguments.

    Arguments may be arrays, scalars, `ShapeDtypeStruct`s and pytrees of them; arrays
    that `fun` closes over appear as constvars. `axis_env` are named axes with their
    sizes, over which collectives in `fun` run. With `return_shape`, the result is the
    pair of the jaxpr and the output types.

    >>> import verax
    >>> print(verax.make_jaxpr(lambda x: x * 2.0)(1.0))
    { lambda ; a:~f32[]. let b:~f32[] = mul a 2.0:~f32[] in (b,) }
    """
    check_callable("make_jaxpr", fun)
    statics = resolve_statics(fun, static_argnums, None, None, None)
    axes = [(str(name), int(size)) for name, size in axis_env or ()]

    @wraps(fun)
    def jaxpr_of(*args: object, **kwargs: object) -> object:
        call_args = statics.bind(args, kwargs)
        leaves, tree = pytrees.flatten(call_args.dynamic)
        describe = describe_arguments(fun, tree, call_args.positions)
        avals = struct_avals(leaves, describe)
        inner = call_args.with_statics(fun)
        with paused(), axis_scope(axes):
            traced = trace(
                inner, tree, avals, "make_jaxpr", describe=describe, lifts=True
            )
            closed = closed_over(traced)
        return (closed, out_info(traced)) if return_shape else closed

    for name in ("__name__", "__qualname__"):
        if hasattr(fun, name):
            setattr(jaxpr_of, name, f"make_jaxpr({getattr(fun, name)})")
    jaxpr_of.__module__ = SPOKEN.name
    return jaxpr_of


def closed_over(traced: Traced) -> ClosedJaxpr:
    """The jaxpr with what it captured as constvars: arrays, and tracers around it."""
    if not traced.captured:
        out: ClosedJaxpr = hoist(traced.jaxpr, as_operands)
        return out
    opened = traced.opened
    jaxpr, count = opened.jaxpr, len(opened.captured)
    ours, theirs = jaxpr.invars[:count], jaxpr.invars[count:]
    return ClosedJaxpr(Jaxpr(ours, theirs, jaxpr.eqns, jaxpr.outvars), opened.captured)


@overload
def eval_shape(
    fun: Callable[..., Array], *args: object, **kwargs: object
) -> ShapeDtypeStruct: ...
@overload
def eval_shape[R](fun: Callable[..., R], *args: object, **kwargs: object) -> R: ...
def eval_shape(fun: Callable[..., object], *args: object, **kwargs: object) -> Any:
    """The output types of `fun`, without computing anything.

    An output of `fun` may itself be a `ShapeDtypeStruct`.

    >>> import verax, verax.numpy as vnp
    >>> verax.eval_shape(vnp.dot, vnp.ones((2, 3)), vnp.ones((3, 4))).shape
    (2, 4)
    """
    leaves, tree = pytrees.flatten((args, kwargs))
    describe = describe_arguments(fun, tree)
    avals = struct_avals(leaves, describe)

    @wraps(fun)
    def with_arrays(*args: object, **kwargs: object) -> object:
        outs, out_tree = pytrees.flatten(fun(*args, **kwargs))
        return out_tree.unflatten(map(stand_in, outs))

    traced = shared_trace(
        with_arrays, tree, avals, "eval_shape", owner=fun, describe=describe
    )
    return out_info(traced)


def stand_in(x: object) -> object:
    """An array of zeros for a struct; anything else as it is."""
    return zero(struct_aval(x)) if isinstance(x, ShapeDtypeStruct) else x


def linear_transpose(
    fun: Callable[..., object], *primals: object, reduce_axes: Sequence[object] = ()
) -> Callable[[object], Any]:
    """The transpose of a linear function: cotangents of outputs to those of inputs.

    `primals` give the types only (arrays or `ShapeDtypeStruct`s). What is returned is
    a `tree_util.Partial`, whose leaves are the traced values that `fun` closes over.
    `reduce_axes` must be empty.

    Raises:
        NotImplementedError: there are `reduce_axes`.
        MissingRule: an operation in `fun` is not linear.
        TypeError: `fun` takes integers and returns floats, or the other way round.

    >>> import verax
    >>> float(verax.linear_transpose(lambda x: 3.0 * x, 1.0)(2.0)[0])
    6.0
    """
    check_reduce_axes("linear_transpose", reduce_axes)
    leaves, tree = pytrees.flatten((primals, {}))
    describe = describe_arguments(fun, tree)
    avals = struct_avals(leaves, describe)
    traced = trace(fun, tree, avals, "linear_transpose", describe=describe)
    check_kinds(avals, traced.jaxpr.out_avals)
    function = Transposed(
        function_name(fun), traced.jaxpr, len(avals), tree, traced.out_tree
    )
    transposed: Callable[[object], Any] = Partial(function, traced.captured)
    return transposed


MISFIT: Final = ("cotangent type does not match function output",) * 2
"""How messages about cotangents of another type begin."""


@frozen(cache_hash=True, repr=False)
class Transposed:
    """The transpose of a program in its last `count` inputs; it holds no arrays."""

    name: str
    jaxpr: Jaxpr
    count: int
    in_tree: PyTreeDef
    out_tree: PyTreeDef

    def __call__(self, captured: Sequence[object], cotangent: object) -> Any:
        """The cotangents of the arguments for that of the results."""
        cts = self.cotangents(cotangent)
        linear = (False,) * len(captured) + (True,) * self.count
        nonzero = tuple([ct is not None for ct in cts])
        jaxpr, mask = observed(
            "transpose", self.jaxpr, lambda p: ENGINE.transpose(p, linear, nonzero)
        )
        # What only the function itself needs may have no value.
        slim, needed = ENGINE.dce(jaxpr, (True,) * len(jaxpr.outvars))
        given = [*captured, *[ct for ct in cts if ct is not None]]
        operands = [x for x, flag in zip(given, needed, strict=True) if flag]
        result = iter(apply(slim, operands))
        avals = [x.aval for x in self.jaxpr.invars[len(captured) :]]
        filled = [
            next(result) if flag else zero(aval.tangent())
            for flag, aval in zip(mask, avals, strict=True)
        ]
        return tuple(self.in_tree.unflatten(filled)[0])

    def __repr__(self) -> str:
        """Short, because the text of a tree holds it."""
        return f"transpose of {self.name}"

    def cotangents(self, cotangent: object) -> list[object | None]:
        """The leaves of a cotangent, in the types of the results.

        Raises:
            TypeError: it has another structure, or a leaf another type.
        """
        leaves, tree = pytrees.flatten(cotangent)
        if tree != self.out_tree:
            raise TypeError(
                f"cotangent tree does not match function output: it has the structure "
                f"{tree}, but {self.name} returns {self.out_tree}"
            )
        avals = self.jaxpr.out_avals
        names = [f"output {i}" for i in range(len(avals))]
        for name, aval, ct in zip(names, avals, leaves, strict=True):
            if is_complex(aval.dtype) and not is_complex(aval_of(ct).dtype):
                raise TypeError(
                    f"{MISFIT[0]}: {name} is {aval.str_short()}, but the cotangent is "
                    f"{aval_of(ct).str_short()}; convert it (astype)"
                )
        return [
            check_tangent(lambda: names, i, aval, ct, MISFIT)
            for i, (aval, ct) in enumerate(zip(avals, leaves, strict=True))
        ]


def check_kinds(ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> None:
    """Raise TypeError for a function from integers to floats, or the other way."""
    kinds = {is_inexact(aval.dtype) for aval in (*ins, *outs)}
    if len(kinds) > 1:
        raise TypeError(
            "linear_transpose only supports [float and complex -> float and complex], "
            "and integer -> integer functions, but got "
            f"{', '.join([aval.str_short() for aval in ins])} -> "
            f"{', '.join([aval.str_short() for aval in outs])}"
        )


# -----------------------------------------------------------------------------
# Names for parts of a program, and blocks that leave the trace.
#
# Names change no values, so what they wrap runs as it is; leaving a trace means making
# an interpreter current that computes::
#
#     with ensure_compile_time_eval():
#         table = numpy.cumsum(numpy.arange(8))  # now: a constant of the trace


def named_call[**P, R](
    fun: Callable[P, R], *, name: str | None = None
) -> Callable[P, R]:
    """`fun` under another name, which messages and jitted programs show.

    Raises:
        TypeError: `fun` is not callable.

    >>> named_call(abs, name="magnitude").__name__
    'magnitude'
    """
    check_callable("named_call", fun)

    @wraps(fun)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        return fun(*args, **kwargs)

    if name is not None:
        called.__name__ = called.__qualname__ = name
    return called


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """A name for what is computed within the block, for readers of the source.

    It changes no values, and nothing in compiled programs: they name source lines.

    Raises:
        TypeError: `name` is not a string.
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope takes a string, not {shown(name)}")
    yield


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """A block in which operations on known values are computed, also inside a trace.

    An operation on a tracer is an equation of the trace, as outside the block.

    >>> import verax, verax.numpy as vnp
    >>> def f(x):
    ...     with verax.ensure_compile_time_eval():
    ...         scale = 2.0 if vnp.sum(vnp.arange(3)) > 2 else 1.0
    ...     return x * scale
    >>> float(verax.jit(f)(1.0))
    2.0
    """
    outer = STATE.interpreter
    if outer.immediate:
        yield
        return
    with interpreting(CompileTime(STATE.eager, outer)):
        yield


# -----------------------------------------------------------------------------
# What reverse mode keeps of a function, with where each value comes from.
#
# The pullback of `vjp`, traced, has the residuals as its outputs::
#
#     print_saved_residuals(f, x)       # f32[3] from the argument x


def saved_residuals(
    f: Callable[..., object], *args: object, **kwargs: object
) -> list[tuple[ShapedArray, str]]:
    """The type of each value that reverse mode keeps of `f`, and where it comes from.

    >>> import verax
    >>> saved_residuals(lambda x: x * x, 2.0)
    [(~f32[], 'from the argument x')]
    """
    leaves, tree = pytrees.flatten((args, kwargs))

    def pullback(*xs: object) -> Any:
        own, named = tree.unflatten(xs)
        return vjp(lambda ys, zs: f(*ys, **zs), own, named)[1]

    jaxpr = make_jaxpr(pullback)(*leaves).jaxpr
    origins = origins_of(jaxpr, argument_names(f, args, kwargs))
    kept = dict.fromkeys(jaxpr.outvars)
    order = {atom: i for i, atom in enumerate(origins)}
    out = sorted(kept, key=lambda atom: order.get(atom, -1))
    return [(atom.aval, origins.get(atom, "from a literal")) for atom in out]


def print_saved_residuals(
    f: Callable[..., object], *args: object, **kwargs: object
) -> None:
    """Print `saved_residuals`, one a line.

    >>> print_saved_residuals(lambda x: x * x, 2.0)
    ~f32[] from the argument x
    """
    for aval, origin in saved_residuals(f, *args, **kwargs):
        print(aval, origin)


def origins_of(jaxpr: Jaxpr, names: Sequence[str]) -> dict[object, str]:
    """The origins of a program's values, in order."""
    origins: dict[object, str] = {v: "from a constant" for v in jaxpr.constvars}
    for var, name in zip(jaxpr.invars, names, strict=True):
        origins[var] = f"from the argument {name}"
    for eqn in jaxpr.eqns:
        inner = getattr(eqn.params, "jaxpr", None)
        if eqn.primitive is checkpoint_p and isinstance(inner, Jaxpr):
            within = origins_of(inner, [origins.get(a, "") for a in eqn.invars])
            texts = [within.get(a, origin_of(eqn)) for a in inner.outvars]
        else:
            texts = [origin_of(eqn)] * len(eqn.outvars)
        origins |= dict(zip(eqn.outvars, texts, strict=True))
    return origins


def origin_of(eqn: Eqn) -> str:
    """The equation that made some results, and its line."""
    kind, name = eqn.primitive.name, getattr(eqn.params, "name", None)
    if kind == "name":
        return f"named {name!r} from {eqn.source}"
    if kind == "jit":
        return f"output of jitted function {name!r} from {eqn.source}"
    return f"output of {kind} from {eqn.source}"


def argument_names(
    f: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> list[str]:
    """The names of the leaves of the arguments, as the signature has them."""
    names = ParameterNames(f)
    positional = [
        names.name(i) or f"{i} of {function_name(f)}" for i in range(len(args))
    ]
    out = []
    for name, value in [*zip(positional, args, strict=True), *sorted(kwargs.items())]:
        paths, _ = pytrees.flatten_with_path(value)
        out += [name + "".join(map(str, path)) for path, _ in paths]
    return out

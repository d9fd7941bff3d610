"""Floor 5: two functions on the same arguments, and where their values part.

One idea: trace both, align their programs, and run them side by side::

    print(verax.debug.compare(loss, jit(loss))(params, batch))
    print(verax.debug.compare(loss, dtype="float64")(params, batch))
"""

from collections.abc import Callable, Sequence
from typing import overload

import numpy as np
from attrs import evolve, frozen

from verax.api.arguments.call_keys import CallArguments, Statics
from verax.api.inspect.on_values import OnValues
from verax.api.jit import PjitFunction
from verax.api.tracing.apply import ENGINE, check_has_values
from verax.api.tracing.trace import leaf_avals
from verax.api.tracing.wrapping import function_name, leaf_paths, wraps
from verax.backend import pytrees
from verax.backend.eager.compiled_runs import Compiled, whole_program
from verax.backend.eager.interpreter import host_of
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DTypeLike, NumpyDType, as_dtype, is_float
from verax.ir.jaxpr import ClosedJaxpr, Jaxpr
from verax.ir.records import ReprMixin
from verax.ir.walk import close
from verax.ops.calls.callbacks import silenced
from verax.rules.values.conversions import shown
from verax.transforms.comparing.measures import Tolerance
from verax.transforms.comparing.report import Comparison, compare_sides
from verax.transforms.comparing.running import InDtype, Runner, Values
from verax.transforms.comparing.walking import Side
from verax.transforms.engine.engine import as_typed
from verax.transforms.nans import repeatable

type Compared = Callable[..., object] | ClosedJaxpr


@overload
def compare[**P](
    f: Callable[P, object],
    g: Compared | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    dtype: DTypeLike | None = None,
) -> Callable[P, Comparison]: ...
@overload
def compare(
    f: ClosedJaxpr,
    g: Compared | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    dtype: DTypeLike | None = None,
) -> Callable[..., Comparison]: ...
def compare(
    f: Compared,
    g: Compared | None = None,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    dtype: DTypeLike | None = None,
) -> Callable[..., Comparison]:
    """A function that runs `f` and `g`, and says where their values part first.

    Both are traced, and their equations aligned, through functions behind `jit`, loops,
    branches and custom rules; loops go through the same iteration in both. A jitted
    function is compiled, others run in NumPy, equation by equation; what is static in
    it is static in both. So
    `compare(f, jit(f))` shows what the compiler changes, and `compare(f, g)` where a
    function and another version of it part.

    Args:
        f: a function, or a program that `make_jaxpr` or `verax.ir.loads` has returned,
            which takes the leaves of the arguments.
        g: another one of the same arguments; `f` itself if a `dtype` is given.
        rtol: the share by which floats may differ from the larger one, by default half
            of the digits of the coarser dtype. Integers and the words of keys are
            equal, and NaN equals NaN.
        atol: what all elements may differ by; by default the share `rtol` of what is
            usual in their array, the lower quartile of the magnitudes that are not 0.
        dtype: a floating dtype, in which all floats of the second run are, as
            "float64": it shows where digits are lost.

    Returns:
        A function of the arguments that returns a `Comparison`, whose `first` is where
        values part, or None if they agree.

    Raises:
        ConcretizationTypeError: it is called inside a function that is being traced.
        TypeError: `f` or `g` is no function; there is no second run; `dtype` is not
            floating; or the functions return other trees, or arrays of other shapes.
        ValueError: a tolerance is negative.

    >>> import verax, verax.numpy as vnp
    >>> def f(x): return vnp.log(1 + x) / x
    >>> def g(x): return vnp.log1p(x) / x
    >>> found = verax.debug.compare(f, g)(1e-8)
    >>> found.first.left.primitive, found.first.right.primitive
    ('log', 'log1p')
    >>> verax.debug.compare(f, dtype="float64")(1e-8).first.difference.relative
    1.0
    """
    check_function(f)
    if g is not None:
        check_function(g)
    elif dtype is None:
        raise TypeError(
            "compare takes a second function or a dtype for the second run: "
            'compare(f, g), compare(f, jit(f)), compare(f, dtype="float64")'
        )
    tolerance = Tolerance(checked("rtol", rtol), checked("atol", atol))
    wide = None if dtype is None else floating(dtype)
    other = f if g is None else g
    statics = common_statics(f, other)

    def sides(*args: object, **kwargs: object) -> Comparison:
        check_outside(f)
        given = statics.bind(args, kwargs)
        left, right = called(f, given), called(other, given)
        names = check_outputs(left, right)
        values = [
            as_typed(host_of(x), v.aval)
            for x, v in zip(left.leaves, left.jaxpr.invars, strict=True)
        ]
        ours = side_of(f, left, values, None)
        theirs = side_of(other, right, values, wide)
        return compare_sides(*told_apart(ours, theirs), values, names, tolerance)

    return sides if isinstance(f, ClosedJaxpr) else wraps(f)(sides)


# -----------------------------------------------------------------------------
# What was asked for, checked.


def check_function(fun: object) -> None:
    """Raise TypeError for what is neither a function nor a program."""
    if not callable(fun) and not isinstance(fun, ClosedJaxpr):
        raise TypeError(
            f"compare takes functions and programs (what make_jaxpr returns), not "
            f"{shown(fun)}; write compare(f, g)(*args)"
        )


def check_outside(fun: Compared) -> None:
    """Raise ConcretizationTypeError inside a trace."""
    outside = "compare(f, jit(f)), compare(vmap(f), vmap(g)), compare(grad(f), grad(g))"
    check_has_values("compare", name_of(fun), outside)


def checked(name: str, value: float | None) -> float | None:
    """A tolerance, which is a number that is not negative."""
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is a number or None, not {shown(value)}") from None
    if not number >= 0:
        raise ValueError(f"{name} is not negative, but got {shown(value)}")
    return number


def floating(dtype: DTypeLike) -> NumpyDType:
    """A floating dtype, in 64 bits also while those are off."""
    out = as_dtype(dtype)
    if not isinstance(out, np.dtype) or not is_float(out):
        raise TypeError(
            f"compare takes a floating dtype for the second run, such as 'float64', "
            f"not {shown(dtype)}"
        )
    return out


# -----------------------------------------------------------------------------
# The programs of both, and what they return.


@frozen(eq=False, repr=False)
class Called(ReprMixin):
    """A function or program with its arguments: its program, and their leaves.

    A program does not know how its outputs belong together: then there is no `tree`.
    """

    name: str
    jaxpr: Jaxpr
    leaves: list[object]
    tree: PyTreeDef | None


def name_of(fun: Compared) -> str:
    """The name in reports."""
    if isinstance(fun, ClosedJaxpr):
        return "the program"
    name = function_name(fun)
    return f"jit({name})" if isinstance(fun, PjitFunction) else name


def common_statics(f: Compared, g: Compared) -> Statics:
    """The static arguments of both: those of the first jitted function with some."""
    for fun in (f, g):
        if isinstance(fun, PjitFunction) and fun.settings.statics.any:
            return fun.settings.statics
    return Statics((), frozenset(), (), frozenset())


def called(fun: Compared, given: CallArguments) -> Called:
    """The program of a function for these arguments.

    Raises:
        TypeError: a program takes other arguments, or the function takes references.
        LeakedTracer: the function has captured a tracer.
    """
    if isinstance(fun, ClosedJaxpr):
        return called_program(fun, given)
    call = OnValues.of(fun, given, "compare")
    traced = call.beside(name_of(fun), "another function")
    return Called(name_of(fun), silenced(traced.jaxpr), call.leaves, traced.out_tree)


def called_program(closed: ClosedJaxpr, given: CallArguments) -> Called:
    """A program on the leaves of arguments.

    Raises:
        TypeError: it takes others.
    """
    leaves, tree = pytrees.flatten(given.dynamic)
    paths = [f"argument {''.join(map(str, path[1:]))}" for path in leaf_paths(tree)]
    avals = leaf_avals(leaves, lambda: paths)
    jaxpr = close(closed)
    if list(map(kind, avals)) != list(map(kind, jaxpr.in_avals)):
        raise TypeError(
            f"the program takes {words(jaxpr.in_avals)}, but got {words(avals)}"
        )
    return Called(name_of(closed), silenced(jaxpr), leaves, None)


def kind(aval: ShapedArray) -> object:
    """A type without its weakness."""
    return aval.shape, aval.dtype


def words(avals: Sequence[ShapedArray]) -> str:
    """Types in words."""
    return ", ".join(map(str, avals)) or "no arguments"


def check_outputs(left: Called, right: Called) -> list[str]:
    """The names of the outputs of both.

    Raises:
        TypeError: the functions return other trees, or arrays that cannot be compared.
    """
    trees = [side.tree for side in (left, right) if side.tree is not None]
    counts = [len(side.jaxpr.outvars) for side in (left, right)]
    ours, theirs = [
        str(side.tree) if side.tree is not None else f"{count} arrays"
        for side, count in zip((left, right), counts, strict=True)
    ]
    if counts[0] != counts[1] or len({str(tree) for tree in trees}) > 1:
        raise TypeError(
            f"compare needs functions that return the same tree, but {left.name} "
            f"returns {ours}, and {right.name} returns {theirs}"
        )
    paths = leaf_paths(trees[0]) if trees else [(f"[{i}]",) for i in range(counts[0])]
    names = [f"output{''.join(map(str, path))}" for path in paths]
    types = zip(left.jaxpr.out_avals, right.jaxpr.out_avals, strict=True)
    for name, (a, b) in zip(names, types, strict=True):
        keys = not isinstance(a.dtype, np.dtype) or not isinstance(b.dtype, np.dtype)
        if a.shape != b.shape or (keys and a.dtype != b.dtype):
            raise TypeError(
                f"compare needs functions that return arrays of the same shapes, but "
                f"{name} is {a} in {left.name} and {b} in {right.name}"
            )
    return names


def side_of(
    fun: Compared, made: Called, values: Values, dtype: NumpyDType | None
) -> Side:
    """One of the two runs: compiled if the function is jitted, else in NumPy."""
    if dtype is not None:
        name = function_name(fun) if callable(fun) else made.name
        return Side(f"{name} in {dtype.name}", InDtype(ENGINE, dtype), made.jaxpr)
    if not isinstance(fun, PjitFunction):
        return Side(made.name, Runner(ENGINE), made.jaxpr)
    runner = Compiled(ENGINE, function_name(fun))
    outputs = None
    if repeatable(made.jaxpr):
        outputs = whole_program(ENGINE, made.jaxpr, function_name(fun), values)
    return Side(made.name, runner, made.jaxpr, outputs)


def told_apart(left: Side, right: Side) -> tuple[Side, Side]:
    """Two runs with different names."""
    if left.name != right.name:
        return left, right
    name = left.name
    return evolve(left, name=f"{name} (1)"), evolve(right, name=f"{name} (2)")

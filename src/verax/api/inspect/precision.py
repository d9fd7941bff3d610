"""Floor 5: where the digits of a function go, on the arguments that it is given.

One idea: the function is traced, and run equation by equation beside a shadow in wider
arithmetic::

    print(verax.debug.precision(loss)(params, batch))
"""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from attrs import frozen

from verax.api.arguments.call_keys import Names, Numbers, Statics
from verax.api.inspect.on_values import OnValues
from verax.api.jit import own_statics
from verax.api.tracing.apply import ENGINE, check_has_values
from verax.api.tracing.wrapping import function_name, leaf_paths, wraps
from verax.backend import pytrees
from verax.backend.arrays.concrete import from_host
from verax.backend.eager.interpreter import host_of
from verax.ir.dtypes import complex128, float64, is_inexact
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ir.walk import defined_variables, walk
from verax.ops.calls.callbacks import silenced
from verax.rules.values.conversions import shown
from verax.transforms.engine.engine import as_typed
from verax.transforms.precision.arithmetic import Arithmetic, InExtended, InFloat64
from verax.transforms.precision.lines import lines_of
from verax.transforms.precision.multiple import InMpmath
from verax.transforms.precision.report import PrecisionReport
from verax.transforms.precision.sites import Cell
from verax.transforms.precision.walking import Walk
from verax.transforms.precision.weighing import Tape

type Shadow = Literal["float64", "longdouble", "mpmath"]

WIDE = frozenset((float64, complex128))
DOUBLE_DIGITS = np.finfo(np.float64).nmant


def precision[**P](
    fun: Callable[P, object],
    *,
    shadow: Shadow | None = None,
    gradient: bool = False,
    static_argnums: Numbers = None,
    static_argnames: Names = None,
) -> Callable[P, PrecisionReport]:
    """A function that runs `fun` beside a shadow, and says where its digits go.

    The program is run equation by equation in NumPy, in its own dtypes and, as a
    shadow, in wider ones; through jitted functions, loops, branches, custom rules and
    derivatives. Loops and branches go the way of the program. So for each line there is
    the error of its values so far, the error that it makes by itself, what a sum or a
    difference cancels, overflow, underflow and NaN, and what exact arithmetic decides
    otherwise: comparisons, `argmax`, orders and branches.

    Args:
        fun: the function; it may be a gradient, a `vmap` or any other composition.
        shadow: "float64" for programs in narrower floats, or "longdouble", the extended
            floats of the machine, or "mpmath", which is slow and has 200 bits; by
            default "float64", and "longdouble" where there is float64 in the program.
        gradient: also say what the rounding of each line does to the first output, or
            to the norm of all if that is not a scalar: a bound, from cotangents. The
            values of all iterations of loops are kept for that.
        static_argnums: positions of arguments that are not traced, as in `jit`.
        static_argnames: names of arguments that are not traced, as in `jit`.

    Returns:
        A function of the arguments of `fun` that returns a `PrecisionReport`.

    Raises:
        ConcretizationTypeError: it is called inside a function that is being traced.
        ImportError: mpmath is asked for and not installed.
        TypeError: `fun` is not a function, or takes mutable references.
        ValueError: there is no such shadow, or it is not wider than the program.

    >>> import verax, verax.numpy as vnp
    >>> def f(x):
    ...     return (1 - vnp.cos(x)) / x**2
    >>> report = verax.debug.precision(f)(1e-3)
    >>> print(report.worst)
    line 2 loses 5.9 digits of 7.2: x - y with x nearly y; write 2 * sin(x / 2) ** 2...
    >>> report.worst.line, round(float(report.result), 3)
    (2, 0.477)
    """
    if not callable(fun):
        raise TypeError(
            f"precision takes a function, not {shown(fun)}; write precision(f)(*xs)"
        )
    check_shadow(shadow)
    statics = own_statics(fun, static_argnums, static_argnames)

    @wraps(fun)
    def measured(*args: P.args, **kwargs: P.kwargs) -> PrecisionReport:
        run = Run.of(fun, statics, args, kwargs, "precision")
        tape = Tape(ENGINE) if gradient else None
        walk = Walk(ENGINE, arithmetic_for(run.jaxpr, shadow), tape)
        return run.report(walk, walk.run(run.jaxpr, run.values))

    return measured


@frozen(eq=False, repr=False)
class Run(ReprMixin):
    """A function's program and the values on which it runs, with names for outputs."""

    name: str
    jaxpr: Jaxpr
    values: list[np.ndarray]
    outputs: list[str]
    tree: pytrees.PyTreeDef

    @classmethod
    def of(
        cls,
        fun: Callable[..., object],
        statics: Statics,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        purpose: str,
    ) -> "Run":
        """The run of a function on some arguments; `purpose` names what asks for it.

        Raises:
            ConcretizationTypeError: this is inside of a trace.
            TypeError: there are mutable references in it.
        """
        name = function_name(fun)
        ways = [f"{purpose}({way}(f))" for way in ("jit", "vmap", "grad")]
        check_has_values(purpose, name, ", ".join(ways))
        call = OnValues.of(fun, statics.bind(args, kwargs), purpose)
        traced = call.beside(name, "a shadow")
        jaxpr = silenced(traced.jaxpr)
        values = [
            as_typed(host_of(x), v.aval)
            for x, v in zip(call.leaves, jaxpr.invars, strict=True)
        ]
        names = [f"output{''.join(map(str, p))}" for p in leaf_paths(traced.out_tree)]
        return cls(name, jaxpr, values, names, traced.out_tree)

    def report(self, walk: Walk, cells: Sequence[Cell]) -> PrecisionReport:
        """The report of a walk that has come to the outputs `cells`."""
        tape, wide = walk.recorder, walk.arithmetic
        loss = tape.weigh(cells) if isinstance(tape, Tape) else None
        errors = {
            name: cell.error
            for name, cell in zip(self.outputs, cells, strict=True)
            if is_inexact(cell.actual.dtype)
        }
        assert walk.root is not None, "it has run"
        refused = wide.refused if isinstance(wide, InExtended | InMpmath) else ()
        return PrecisionReport(
            self.name,
            wide.name,
            tuple(lines_of(walk.root)),
            errors,
            self.tree.unflatten(results_of(self.jaxpr, cells)),
            loss,
            tuple(sorted(refused)),
            tuple(sorted(tape.skipped)) if isinstance(tape, Tape) else (),
        )


def check_shadow(shadow: object) -> None:
    """Raise ValueError unless there is such a shadow."""
    if shadow not in (None, "float64", "longdouble", "mpmath"):
        raise ValueError(
            f'shadow is "float64", "longdouble" or "mpmath", not {shown(shadow)}'
        )


def results_of(jaxpr: Jaxpr, cells: Sequence[Cell]) -> list[object]:
    """The outputs of the program, as arrays."""
    return [
        from_host(np.asarray(cell.actual), aval)
        for cell, aval in zip(cells, jaxpr.out_avals, strict=True)
    ]


def arithmetic_for(jaxpr: Jaxpr, shadow: Shadow | None) -> Arithmetic:
    """The arithmetic of the shadow.

    Raises:
        ImportError: mpmath is asked for and not installed.
        ValueError: it is not wider than the floats of the program.
    """
    double = has_doubles(jaxpr)
    if shadow == "mpmath":
        return InMpmath(ENGINE)
    if shadow == "float64" or (shadow is None and not double):
        if double:
            raise ValueError(
                "the program has float64, so a shadow in float64 would see nothing; "
                'write shadow="longdouble" or shadow="mpmath"'
            )
        return InFloat64(ENGINE)
    if np.finfo(np.longdouble).nmant <= DOUBLE_DIGITS:
        raise ValueError(
            "np.longdouble is not wider than float64 on this machine; write "
            'shadow="mpmath", which the extra `verify` installs'
        )
    return InExtended(ENGINE)


def has_doubles(jaxpr: Jaxpr) -> bool:
    """Whether there is a float of 64 bits in a program."""
    known = [v.aval.dtype for v in defined_variables(jaxpr)]
    inner = [v.aval.dtype for _, eqn in walk(jaxpr) for v in eqn.outvars]
    return not WIDE.isdisjoint([*known, *inner])

"""Floor 4: the eager interpreter: operations computed at once.

One idea: on small arrays NumPy is many times faster than any dispatch, so an eager
operation is its row's `evaluate` column; rows that NumPy does badly run as compiled
programs of one equation::

    EagerInterpreter(engine).bind(sin_p, NO_PARAMS, (x,))
"""

import contextvars
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from attrs import frozen

from verax.backend.array import ConcreteArray, from_host
from verax.backend.executable import CompileOptions
from verax.backend.program import compiled
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import stored_dtype
from verax.ir.jaxpr import Jaxpr, Literal, Params, Primitive
from verax.rules.array import Array
from verax.rules.builder import Builder, Tracer, leaked
from verax.rules.constants import aval_of, scalar_of
from verax.rules.infer import infer
from verax.rules.row import Engine, Row, missing
from verax.transforms.evaluate import literal_value

# Elements from which compiled code beats NumPy for costly rows; see docs/eager.md.
CROSSOVER = 1 << 15
OPTIONS = CompileOptions()


class Quiet(threading.local):
    """A context of this thread in which NumPy reports no floating-point errors.

    `np.errstate` costs more than a small operation; entering a context in which errors
    are ignored once and for all costs a twentieth of that.
    """

    def __init__(self) -> None:
        self.context = contextvars.copy_context()
        self.context.run(np.seterr, all="ignore")


QUIET = Quiet()
NESTED = "cannot enter context"


def quietly[R](function: Callable[..., R], *args: Any) -> R:
    """`function(*args)` without floating-point warnings."""
    try:
        return QUIET.context.run(function, *args)
    except RuntimeError as error:
        if not str(error).startswith(NESTED):
            raise
    # A rule that computes eagerly itself is in the context already.
    return function(*args)


@frozen(eq=False)
class EagerInterpreter:
    """Computes with the rows of `engine.rules`."""

    engine: Engine

    def bind(
        self, primitive: Primitive, params: Params, args: Sequence[object]
    ) -> tuple[Array, ...]:
        """The results, as arrays.

        Raises:
            LeakedTracer: an operand is a tracer, whose trace has ended.
            TypeError: an operand is no array, or types do not fit.
        """
        row = self.engine.rules[primitive]
        avals = [x.aval if type(x) is ConcreteArray else operand_type(x) for x in args]
        outs = infer(row, params, *avals)
        if row.compiled or (row.costly and outs[0].size >= CROSSOVER):
            return tuple(run_alone(self.engine, row, params, tuple(avals), args))
        if row.evaluate is None:
            raise missing(row, "evaluate", "give its row evaluate=...")
        hosts = [
            x.host if type(x) is ConcreteArray and x.host is not None else host_of(x)
            for x in args
        ]
        results = quietly(row.evaluate, self.engine, params, hosts)
        if len(outs) == 1:
            return (as_array(results[0], outs[0]),)
        return tuple(map(as_array, results, outs))


def operand_type(x: object) -> ShapedArray:
    """The type of an operand that is no array of ours."""
    if isinstance(x, Tracer):
        raise leaked(x)
    return aval_of(x)


def host_of(x: object) -> np.ndarray:
    """The NumPy values of an operand, in the dtype of its type."""
    if isinstance(x, ConcreteArray):
        return x.numpy()
    aval = aval_of(x)
    if isinstance(x, Literal):
        return literal_value(x)
    if isinstance(x, np.ndarray):
        # Results may be views: they must not show what the caller writes later.
        return np.array(x, stored_dtype(aval.dtype))
    return scalar_of(x, aval)


def as_array(value: Any, aval: ShapedArray) -> ConcreteArray:
    """A result of NumPy as an array of the promised type."""
    if type(value) is not np.ndarray:
        value = np.asarray(value)
    if value.dtype is not aval.dtype:
        dtype = stored_dtype(aval.dtype)
        if value.dtype != dtype:
            value = value.astype(dtype)
    return from_host(value, aval)


@lru_cache(maxsize=1 << 12)
def single(row: Row[Any], params: Params, avals: tuple[ShapedArray, ...]) -> Jaxpr:
    """The program of one equation."""
    builder = Builder("eager")
    args = [builder.input(aval) for aval in avals]
    return builder.finish(builder.bind(row, params, args))[0]


def run_alone(
    engine: Engine,
    row: Row[Any],
    params: Params,
    avals: tuple[ShapedArray, ...],
    args: Sequence[object],
) -> list[ConcreteArray]:
    """One operation as a compiled program."""
    jaxpr = single(row, params, avals)
    return compiled(engine, jaxpr, row.name, OPTIONS).run(args)

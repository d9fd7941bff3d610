"""Floor 4: functions of several operations, written down once and computed at once.

One idea: what a function such as `mean` does with an array follows from the array's
type and from plain arguments such as axes; so its operations are traced once for each
such call, and later calls compute them in NumPy without asking anything again::

    @remembered
    def mean(a, axis=None, keepdims=False): ...

The function itself runs under every trace, for arrays that are large or placed, and
where a result depends on more than types.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any

import numpy as np

from verax.backend.array import ConcreteArray, from_host
from verax.backend.eager import (
    CROSSOVER,
    QUIET,
    EagerInterpreter,
    again,
    as_array,
    planned,
    quietly,
)
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Literal, Params, Var
from verax.rules.builder import Builder, Tracer
from verax.rules.row import Engine, EvaluateRule, NDArray
from verax.rules.state import STATE, Staging, interpreting
from verax.transforms.evaluate import as_typed, literal_value

type Compute = Callable[[ConcreteArray], ConcreteArray]
type Step = tuple[EvaluateRule[Any], Params, tuple[int, ...], tuple[ShapedArray, ...]]

# Arguments of these classes are few, and equal ones mean the same.
PLAIN = frozenset((bool, int, str, type(None)))


def remembered[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """`function`, which computes small arrays by what it did with others of their type.

    Its first argument is an array; what it does may depend on types, on the other
    arguments and on the configuration, and on nothing else.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        state = STATE
        if args and type(x := args[0]) is ConcreteArray:
            interpreter = state.interpreter
            if type(interpreter) is EagerInterpreter:
                try:
                    compute = recipe(
                        function,
                        interpreter,
                        state.enable_x64,
                        state.staging,
                        x.aval,
                        *args[1:],
                        **kwargs,  # type: ignore[arg-type]  # else TypeError
                    )
                except TypeError:  # an argument without a hash
                    compute = None
                if compute is not None:
                    return compute(x)  # type: ignore[return-value]  # R is Array
        return function(*args, **kwargs)

    return call


@lru_cache(maxsize=1 << 13, typed=True)
def recipe(
    function: Callable[..., Any],
    interpreter: EagerInterpreter,
    enable_x64: bool,
    staging: Staging,
    aval: ShapedArray,
    *args: Any,
    **kwargs: Any,
) -> Compute | None:
    """What `function` computes of an array of type `aval`; None to ask it each time.

    A call that fails has no recipe either, so that the function itself says why.
    """
    plain = all([type(x) in PLAIN for x in (*args, *kwargs.values())])
    if not plain or aval.size >= CROSSOVER:
        return None
    builder = Builder("eager")
    x = builder.input(aval)
    try:
        with interpreting(builder):
            result = function(x, *args, **kwargs)
    except Exception:
        return None
    if not isinstance(result, Tracer):
        return None
    jaxpr, captured = builder.finish((result,))
    return None if captured else computing(interpreter.engine, jaxpr)


def computing(engine: Engine, jaxpr: Jaxpr) -> Compute | None:
    """The program on one array, in NumPy alone; None if some equation needs more."""
    (out,) = jaxpr.outvars
    if type(out) is not Var or out in jaxpr.invars:
        return None
    literals = [a for eqn in jaxpr.eqns for a in eqn.invars if type(a) is Literal]
    places = {id(literal): i for i, literal in enumerate(literals)}

    def place(atom: Atom) -> int:
        if type(atom) is Var:
            return len(literals) + atom.index
        return places[id(atom)]

    steps: list[Step] = []
    for eqn in jaxpr.eqns:
        evaluate = evaluation(engine, eqn)
        if evaluate is None:
            return None
        operands = tuple([place(a) for a in eqn.invars])
        outs = tuple([v.aval for v in eqn.outvars])
        steps.append((evaluate, eqn.params, operands, outs))
    if len(steps) == 1 and not literals and len(steps[0][3]) == 1:
        return single_step(engine, *steps[0][:2], out.aval)
    constants = [literal_value(literal) for literal in literals]
    return several_steps(engine, constants, steps, place(out), out.aval)


def evaluation(engine: Engine, eqn: Eqn) -> EvaluateRule[Any] | None:
    """How NumPy computes an equation; None where a compiled program does.

    Programs within programs and effects are for the function itself.
    """
    if eqn.effects or any(True for _ in eqn.params.subjaxprs()):
        return None
    avals = [a.aval for a in eqn.invars]
    return planned(engine, eqn.primitive, eqn.params, *avals).evaluate


def single_step(
    engine: Engine, evaluate: EvaluateRule[Any], params: Params, aval: ShapedArray
) -> Compute:
    """One operation on one array."""
    dtype = aval.dtype

    def compute(x: ConcreteArray) -> ConcreteArray:
        host = x.numpy() if (held := x.host) is None else held
        try:
            [value] = QUIET.context.run(evaluate, engine, params, (host,))
        except RuntimeError as error:
            [value] = again(error, evaluate, engine, params, (host,))
        if type(value) is np.ndarray and value.dtype is dtype:
            return from_host(value, aval)
        return as_array(value, aval)

    return compute


def several_steps(
    engine: Engine,
    constants: Sequence[NDArray],
    steps: Sequence[Step],
    out: int,
    aval: ShapedArray,
) -> Compute:
    """Operations in order; `out` is the place of the result after the constants."""

    def run(host: NDArray) -> NDArray:
        env = [*constants, host]
        for evaluate, params, places, outs in steps:
            results = evaluate(engine, params, [env[i] for i in places])
            if len(outs) == 1:
                [value], [made] = results, outs
                env.append(typed(value, made))
            else:
                env += map(typed, results, outs)
        return env[out]

    def compute(x: ConcreteArray) -> ConcreteArray:
        return from_host(quietly(run, x.numpy()), aval)

    return compute


def typed(value: Any, aval: ShapedArray) -> NDArray:
    """A result of NumPy, which may be a scalar of it, as an array of type `aval`."""
    if type(value) is not np.ndarray:
        value = np.asarray(value)
    found: NDArray = value if value.dtype is aval.dtype else as_typed(value, aval)
    return found

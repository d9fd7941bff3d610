"""Floor 4: functions of several operations, recorded once and computed at once.

One idea: what a function such as `mean` does with arrays follows from their types and
from plain arguments such as axes; so its operations are traced once for each kind of
call, and later calls compute them in NumPy without deciding anything again, or large
arrays in one compiled program::

    @remembered
    def mean(a, axis=None, keepdims=False): ...

The function itself runs under every trace, for arrays that are placed, and where a
result depends on more than types.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from typing import Any

import numpy as np
from attrs import frozen

from verax.backend.arrays.concrete import ConcreteArray, from_host
from verax.backend.calls import FIRST, Build, builder_of, caller
from verax.backend.eager.interpreter import (
    QUIET,
    DeviceInterpreter,
    EagerInterpreter,
    PlacingInterpreter,
    again,
    as_array,
    planned,
    quietly,
)
from verax.backend.eager.single_op import OPTIONS
from verax.backend.programs.program import compiled
from verax.backend.pytrees import flatten
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DType
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Literal, Params, Var
from verax.ir.records import ReprMixin
from verax.ops.calls.call import inline
from verax.rules.rows.builder import Builder, Tracer
from verax.rules.rows.eager_costs import LARGE
from verax.rules.rows.row import Engine, EvaluateRule, NDArray, traits_of
from verax.rules.values.memo import TransientKey, asked, memo
from verax.rules.values.state import STATE, State, current_mode, interpreting
from verax.transforms.engine.engine import as_typed, literal_value

# What computes the arrays among the arguments of a call.
type Compute = Callable[[Sequence[Any]], Any]
type Avals = tuple[ShapedArray, ...]
# What NumPy does in one go: of arrays, in the order of the arguments.
type OneGo = Callable[..., Any]
type AtOnce = Callable[..., OneGo | None]
# A rule with its params, the places of its operands, and what results it has.
type Step = tuple[EvaluateRule[Any], Params, tuple[int, ...], DType | None, Avals]

# Arguments of these classes take few values, and equal ones mean the same.
PLAIN = frozenset((bool, int, str, type(None)))
# Larger integers are more probably values than axes or counts.
MOST = 64


def remembered[**P, R](
    function: Callable[P, R], at_once: AtOnce | None = None
) -> Callable[P, R]:
    """`function`, which computes arrays by what it did with others of their types.

    Among its positional arguments are arrays; what it does may depend on types, on the
    other arguments and on the configuration, and on nothing else. `at_once` is as for
    `in_numpy`.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not (owners := State.owners) or STATE.interpreter.immediate:
            try:
                compute = recipe(
                    current_mode() if owners else State.shared,
                    function,
                    at_once,
                    *[
                        x.aval if type(x) is ConcreteArray and x.kind is x.aval else x
                        for x in args
                    ],
                    **kwargs,
                )
            except (TypeError, TransientKey):  # an argument without a hash, or no array
                compute = None
            if compute is not None:
                result: R = compute(args)
                return result
        return function(*args, **kwargs)

    return call


def in_numpy[**P, R](
    at_once: AtOnce,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`remembered`, for a function of which NumPy needs few steps for common types.

    `at_once` takes the arguments, with types for arrays, and gives what computes the
    result of the arrays' values, or a tuple of several, to the same bits; or None,
    where there is no such way. What it gives may itself give None, for values that the
    steps are for.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        return remembered(function, at_once)

    return decorate


@memo(1 << 13, typed=True)
def recipe(
    mode: object,
    function: Callable[..., object],
    at_once: AtOnce | None,
    *args: object,
    **kwargs: object,
) -> Compute | None:
    """The program of `function` for arrays whose types stand among its arguments.

    None to ask it each time: an argument is none of which there are few; or the call
    fails, so that the function itself says why; or this thread places or checks what
    it computes. `mode` is that of this thread.
    """
    interpreter = STATE.interpreter
    if not isinstance(interpreter, EagerInterpreter):
        return None
    if type(interpreter) is PlacingInterpreter:
        return None
    avals = [x for x in args if type(x) is ShapedArray]
    rest = [x for x in (*args, *kwargs.values()) if type(x) is not ShapedArray]
    if not avals or not all([is_plain(x) for x in rest]):
        return None
    builder = Builder("eager")
    try:
        with interpreting(builder):
            ins = [builder.input(x) if type(x) is ShapedArray else x for x in args]
            leaves, tree = flatten(function(*ins, **kwargs))
    except Exception:
        return None
    if not leaves or not all([isinstance(x, Tracer) for x in leaves]):
        return None
    jaxpr, captured = builder.finish(leaves)
    if captured:
        return None
    engine = interpreter.engine
    jaxpr = inline(jaxpr, spelled(engine))

    def program() -> Compute:
        name = getattr(function, "__name__", "function")
        places = [i for i, x in enumerate(args) if type(x) is ShapedArray]
        return caller(compiled(engine, jaxpr, name, OPTIONS), tree, avals, places)

    if type(interpreter) is DeviceInterpreter or joined_pays(jaxpr):
        return program()
    build = builder_of(tree)
    # A loop is a compiled program anyhow, so all that is around it becomes part of it.
    loops = any([traits_of(eqn.primitive).loop for eqn in jaxpr.eqns])
    steps = Later(program) if loops else computing(engine, jaxpr, build)
    one_go = None if at_once is None else at_once(*args, **kwargs)
    if one_go is None or steps is None:
        return steps.compute if isinstance(steps, Later) else steps
    return in_one_go(one_go, steps, jaxpr.out_avals, build)


@frozen(repr=False)
class Later(ReprMixin):
    """A function that is compiled when it is first called."""

    make: Callable[[], Compute]

    @cached_property
    def compute(self) -> Compute:
        return self.make()

    def __call__(self, args: Sequence[object]) -> Any:
        return self.compute(args)


def spelled(engine: Engine) -> Callable[[Eqn], Jaxpr | None]:
    """What equations stand for where nothing is differentiated, calls and others."""

    def body_of(eqn: Eqn) -> Jaxpr | None:
        row = engine.rules[eqn.primitive]
        return None if row.spelled is None else row.spelled(eqn.params)

    return body_of


def is_plain(x: object) -> bool:
    """Whether there are few arguments of this kind, and equal ones mean the same."""
    return type(x) in PLAIN and (type(x) is not int or -MOST <= x <= MOST)


def joined_pays(jaxpr: Jaxpr) -> bool:
    """Whether a compiled program saves passes over large memory."""
    if len(jaxpr.eqns) < 2 or not all(map(is_joined, jaxpr.eqns)):
        return False
    sizes = [eqn.outvars[0].aval.size for eqn in jaxpr.eqns]
    return max(sizes) >= LARGE


def is_joined(eqn: Eqn) -> bool:
    """Whether an equation may be part of a program of all."""
    inner = any(True for _ in eqn.params.subjaxprs())
    quick = traits_of(eqn.primitive).quick_in_numpy
    return not inner and not eqn.effects and not quick


def computing(engine: Engine, jaxpr: Jaxpr, build: Build) -> Compute | None:
    """The program on arrays, in NumPy alone; None if some equation needs more."""
    if any([type(a) is not Var or a in jaxpr.invars for a in jaxpr.outvars]):
        return None
    evaluates = [evaluation(engine, eqn) for eqn in jaxpr.eqns]
    avals = [a.aval for a in jaxpr.outvars]
    if len(evaluates) == len(avals) == 1 and build is FIRST:
        (eqn,), (evaluate,) = jaxpr.eqns, evaluates
        if (
            evaluate is not None
            and len(eqn.outvars) == 1
            and eqn.invars == jaxpr.invars
        ):
            return single_step(engine, evaluate, eqn.params, avals[0])
    if None in evaluates:
        return None
    known = folded(engine, jaxpr)
    env: list[object] = [*known, *jaxpr.invars]
    places = {atom: i for i, atom in enumerate(env)}
    steps: list[Step] = []
    for eqn, evaluate in zip(jaxpr.eqns, evaluates, strict=True):
        if evaluate is None or eqn.outvars[0] in known:
            continue
        operands = tuple([places[atom_key(a)] for a in eqn.invars])
        outs = tuple([v.aval for v in eqn.outvars])
        dtype = outs[0].dtype if len(outs) == 1 else None
        steps.append((evaluate, eqn.params, operands, dtype, outs))
        for var in eqn.outvars:
            places[var] = len(places)
    ends = [places[a] for a in jaxpr.outvars]
    return several_steps(engine, [*known.values()], steps, ends, avals, build)


def atom_key(atom: Atom) -> object:
    """The key by which an atom is found: literals of equal values are not the same."""
    return atom if type(atom) is Var else id(atom)


def folded(engine: Engine, jaxpr: Jaxpr) -> dict[object, NDArray]:
    """The values that are the same in each call: literals and what they lead to."""
    known: dict[object, NDArray] = {}
    for eqn in jaxpr.eqns:
        for atom in eqn.invars:
            if type(atom) is Literal:
                known[id(atom)] = literal_value(atom)
        if all([atom_key(a) in known for a in eqn.invars]):
            hosts = [known[atom_key(a)] for a in eqn.invars]
            evaluate = evaluation(engine, eqn)
            assert evaluate is not None
            results = quietly(evaluate, engine, eqn.params, hosts)
            for var, value in zip(eqn.outvars, results, strict=True):
                known[var] = typed(value, var.aval)
                known[var].setflags(write=False)
    return known


def evaluation(engine: Engine, eqn: Eqn) -> EvaluateRule[Any] | None:
    """The NumPy function of an equation; None where a compiled program computes it.

    Programs within programs and effects are for the function itself.
    """
    if eqn.effects or any(True for _ in eqn.params.subjaxprs()):
        return None
    avals = [a.aval for a in eqn.invars]
    params = eqn.params
    return asked(planned, params, engine, eqn.primitive, params, *avals).evaluate


def values_of(args: Sequence[object]) -> list[NDArray]:
    """The values of the arrays among the arguments, in NumPy."""
    return [
        x.numpy() if (held := x.host) is None else held
        for x in args
        if type(x) is ConcreteArray
    ]


def single_step(
    engine: Engine, evaluate: EvaluateRule[object], params: Params, aval: ShapedArray
) -> Compute:
    """One operation on the arrays."""
    dtype = aval.dtype

    def compute(args: Sequence[object]) -> ConcreteArray:
        hosts = values_of(args)
        try:
            [value] = QUIET.context.run(evaluate, engine, params, hosts)
        except RuntimeError as error:
            [value] = again(error, evaluate, engine, params, hosts)
        if type(value) is np.ndarray and value.dtype is dtype:
            return from_host(value, aval)
        return as_array(value, aval)

    return compute


def in_one_go(one_go: OneGo, steps: Compute, avals: Avals, build: Build) -> Compute:
    """The one function on the arrays; the steps for values that it leaves to them."""
    aval, several = avals[0], build is not FIRST
    dtype = aval.dtype

    def compute(args: Sequence[object]) -> Any:
        hosts = values_of(args)
        try:
            value = QUIET.context.run(one_go, *hosts)
        except RuntimeError as error:
            value = again(error, one_go, *hosts)
        if type(value) is np.ndarray and value.dtype is dtype:
            return from_host(value, aval)
        if value is None:
            return steps(args)
        if several:
            values = map(typed, value, avals)
            return build(list(map(from_host, values, avals)))
        return from_host(typed(value, aval), aval)

    return compute


def several_steps(
    engine: Engine,
    constants: Sequence[NDArray],
    steps: Sequence[Step],
    ends: Sequence[int],
    avals: Sequence[ShapedArray],
    build: Build,
) -> Compute:
    """Operations in order; the results are at the places `ends`, constants first."""

    def run(hosts: Sequence[NDArray]) -> list[NDArray]:
        env = [*constants, *hosts]
        for evaluate, params, places, dtype, outs in steps:
            results = evaluate(engine, params, [env[i] for i in places])
            if dtype is None:
                env += map(typed, results, outs)
                continue
            [value] = results
            if type(value) is not np.ndarray or value.dtype is not dtype:
                value = typed(value, outs[0])
            env.append(value)
        return env

    end = ends[0] if build is FIRST else None

    def compute(args: Sequence[object]) -> Any:
        hosts = values_of(args)
        try:
            env = QUIET.context.run(run, hosts)
        except RuntimeError as error:
            env = again(error, run, hosts)
        if end is not None:
            return from_host(env[end], avals[0])
        return build(
            [from_host(env[i], aval) for i, aval in zip(ends, avals, strict=True)]
        )

    return compute


def typed(value: object, aval: ShapedArray) -> NDArray:
    """A result of NumPy, which may be a scalar of it, as an array of type `aval`."""
    if type(value) is not np.ndarray:
        value = np.asarray(value)
    out: NDArray = value if value.dtype is aval.dtype else as_typed(value, aval)
    return out

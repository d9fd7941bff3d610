"""Floor 4: the eager interpreter: operations computed at once.

One idea: on small arrays NumPy is many times faster than any dispatch, so an eager
operation is its row's `evaluate` column; rows that NumPy does badly run as compiled
programs of one equation::

    EagerInterpreter(engine).bind(sin_p, NO_PARAMS, (x,))

`x + y` gets here from the operators in `rules.values.array`, by `numpy.add` and the
row's `call`, where no program is traced.
"""

import contextvars
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from attrs import frozen

from verax.backend.arrays.concrete import ConcreteArray, from_buffer, from_host, put
from verax.backend.programs.placement import common_place, meshes_in, result_place
from verax.backend.runtime.client import Device
from verax.ir.avals import ShapedArray, is_reference
from verax.ir.dtypes import NARROWED, stored_dtype
from verax.ir.jaxpr import Jaxpr, Literal, Params, Primitive
from verax.ir.records import ReprMixin
from verax.rules.rows.builder import Tracer, with_settled
from verax.rules.rows.infer import infer
from verax.rules.rows.row import Engine, SomeRow, is_split, missing
from verax.rules.values.array import Array
from verax.rules.values.constants import array_aval, aval_of, scalar_of
from verax.rules.values.conversions import NotAnArray
from verax.rules.values.memo import asked, pure
from verax.rules.values.state import STATE, State
from verax.transforms.engine.engine import literal_value


class Quiet(threading.local):
    """A context of this thread in which NumPy reports no floating-point errors.

    `np.errstate` costs more than a small operation; entering a context in which errors
    are always ignored costs a twentieth of that.
    """

    def __init__(self) -> None:
        self.context = contextvars.Context()  # which keeps no variables of others alive
        self.context.run(np.seterr, all="ignore")


QUIET = Quiet()
NESTED = "cannot enter context"


def quietly[R](function: Callable[..., R], *args: object) -> R:
    """`function(*args)` without floating-point warnings."""
    try:
        return QUIET.context.run(function, *args)
    except RuntimeError as error:
        return again(error, function, *args)


def again[R](error: RuntimeError, function: Callable[..., R], *args: object) -> R:
    """`function(*args)` if the context was entered already, else its error.

    That happens where a rule computes eagerly itself.
    """
    if not str(error).startswith(NESTED):
        raise error
    return function(*args)


class Plan(NamedTuple):
    """The plan for operands of known types: `evaluate` is None to compile.

    If there is a `body`, its equations go through their own rows instead.
    """

    evaluate: Callable[..., Any] | None
    outs: tuple[ShapedArray, ...]
    row: SomeRow
    body: Jaxpr | None = None


@pure(1 << 16)
def planned(
    engine: Engine, primitive: Primitive, params: Params, *avals: ShapedArray
) -> Plan:
    """The plan for operands of types `avals`: one look-up for each operation.

    What calls functions of the user's is not compiled; it is not for the quiet context.

    Raises:
        MissingRule: the row has no evaluate column.
        TypeError, ValueError: the operands do not fit.
    """
    row = engine.rules[primitive]
    outs = asked(infer, params, row, params, *avals)
    body = None if row.spelled is None else row.spelled(params)
    if body is not None:
        return Plan(None, outs, row, body)
    costly = row.costly
    if (
        row.compiled
        or row.hosted
        or (costly is not None and costly(params, avals, outs))
    ):
        return Plan(None, outs, row)
    if row.evaluate is None:
        raise missing(row, "evaluate", "give its row evaluate=...")
    return Plan(row.evaluate, outs, row)


@frozen(eq=False, repr=False)
class EagerInterpreter(ReprMixin):
    """Computes with the rows of `engine.rules`."""

    transient: ClassVar[bool] = False

    immediate: ClassVar[bool] = True
    engine: Engine

    def bind(
        self, primitive: Primitive, params: Params, args: Sequence[object]
    ) -> tuple[Array, ...]:
        """The results, as arrays.

        Raises:
            LeakedTracer: an operand is a tracer, whose trace has ended.
            TypeError: an operand is not an array, or types do not fit.
        """
        engine = self.engine
        try:
            avals = [
                aval
                if type(x) is ConcreteArray and x.kind is (aval := x.aval)
                else operand_type(x)
                for x in args
            ]
        except HasPlace:
            return bind_placed(engine, primitive, params, with_settled(args))
        except HasTracer:
            return self.bind(primitive, params, with_settled(args))
        except HasReference:
            from verax.backend.eager.stateful import bind_stateful

            return bind_stateful(engine, primitive, params, args)
        if params.transient:
            plan = asked(planned, params, engine, primitive, params, *avals)
        else:
            plan = planned(engine, primitive, params, *avals)
        evaluate, outs, row, body = plan
        if body is not None:
            return one_by_one(self.bind, body, args, outs)
        if evaluate is None:
            return without_numpy(engine, row, params, args, tuple(avals), outs)
        hosts = [
            x.host if type(x) is ConcreteArray and x.host is not None else host_of(x)
            for x in args
        ]
        try:
            results = QUIET.context.run(evaluate, engine, params, hosts)
        except RuntimeError as error:
            results = again(error, evaluate, engine, params, hosts)
        if len(outs) != 1:
            return tuple(map(as_array, results, outs))
        (value,), (aval,) = results, outs
        if type(value) is np.ndarray and value.dtype is aval.dtype:
            return (from_host(value, aval),)
        return (as_array(value, aval),)


def without_numpy(
    engine: Engine,
    row: SomeRow,
    params: Params,
    args: Sequence[object],
    avals: tuple[ShapedArray, ...],
    outs: Sequence[ShapedArray],
) -> tuple[Array, ...]:
    """The results of a row that runs as a program, or that is for the host."""
    if row.hosted:
        return on_host(engine, row, params, args, outs)
    args = [constant(x) if isinstance(x, Literal) else x for x in args]
    from verax.backend.eager.single_op import alone, run_alone

    if says_where(params, outs):
        return tuple(run_alone(engine, row, params, avals, args))
    run = asked(alone, params, engine, row, params, avals, STATE.forked)
    return tuple(run(args))


def says_where(params: Params, outs: Sequence[ShapedArray]) -> bool:
    """Whether an operation says itself on which devices its results lie."""
    return is_split(outs) or bool(meshes_in(params))


type Bind = Callable[[Primitive, Params, Sequence[object]], tuple[Array, ...]]


def one_by_one(
    bind: Bind, jaxpr: Jaxpr, args: Sequence[object], outs: Sequence[ShapedArray]
) -> tuple[Array, ...]:
    """The outputs of `jaxpr`, of types `outs`, whose equations `bind` computes."""
    script = jaxpr.script
    env = [
        typed(x.value, x.aval) if isinstance(x.value, Array) else constant(x)
        for x in script.literals
    ]
    env += map(typed, args, jaxpr.in_avals)
    for primitive, params, one, pick, _, _ in script.steps:
        ins = pick(env) if one is None else (env[one],)
        env += bind(primitive, params, ins)
    return tuple(
        [typed(env[i], aval) for i, aval in zip(script.outs, outs, strict=True)]
    )


def typed(x: object, aval: ShapedArray) -> Array:
    """A value as an array of type `aval`, which it has but for the weakness."""
    if isinstance(x, Array) and x.aval is aval:
        return x
    if type(x) is ConcreteArray and x.kind is not x.aval:
        return x
    if type(x) is ConcreteArray and x.host is None:
        return from_buffer(x.device_buffer(), aval)
    return as_array(host_of(x), aval)


@frozen(eq=False, repr=False)
class PlacingInterpreter(EagerInterpreter):
    """An eager interpreter while the default device is not the first one."""

    def bind(
        self, primitive: Primitive, params: Params, args: Sequence[object]
    ) -> tuple[Array, ...]:
        return bind_placed(self.engine, primitive, params, args)


@frozen(eq=False, repr=False)
class DeviceInterpreter(EagerInterpreter):
    """An eager interpreter where the first device has memory of its own.

    Every operation is a compiled program there, so that nothing goes to the host and
    back; but for rows that are for the host.
    """

    def bind(
        self, primitive: Primitive, params: Params, args: Sequence[object]
    ) -> tuple[Array, ...]:
        kinds = [
            aval
            if type(x) is ConcreteArray and x.kind is (aval := x.aval)
            else host_kind(x)
            for x in args
        ]
        engine, forked = self.engine, State.forked
        run = asked(launch, params, engine, primitive, params, forked, *kinds)
        if run is None:
            return self.bind_rare(primitive, params, args)
        outs = run(args)
        return outs if type(outs) is tuple else (outs,)

    def bind_rare(
        self, primitive: Primitive, params: Params, args: Sequence[object]
    ) -> tuple[Array, ...]:
        """The results where `launch` knows no program."""
        engine = self.engine
        try:
            avals = tuple([plain_type(x) for x in args])
        except HasPlace:
            return bind_placed(engine, primitive, params, args)
        except HasReference:
            from verax.backend.eager.stateful import bind_stateful

            return bind_stateful(engine, primitive, params, args)
        _, outs, row, body = asked(planned, params, engine, primitive, params, *avals)
        if body is not None:
            return one_by_one(self.bind, body, args, outs)
        return without_numpy(engine, row, params, args, avals, outs)


type HostKind = tuple[tuple[int, ...], np.dtype[np.generic], bool]


def host_kind(x: object) -> HostKind | None:
    """The kind of an operand, for a program, that is not a plain array of ours.

    None of what is not an array of NumPy's either.
    """
    return (x.shape, x.dtype, STATE.enable_x64) if type(x) is np.ndarray else None


@pure(1 << 16)
def launch(
    engine: Engine,
    primitive: Primitive,
    params: Params,
    forked: bool,
    *kinds: ShapedArray | HostKind | None,
) -> Callable[[Sequence[object]], Any] | None:
    """The program for operands of these kinds: one look-up for each operation.

    It gives the result, or a tuple of several. None where an operand is of a rare kind,
    or the operation is not one program on one device.

    Raises:
        TypeError, ValueError: the operands do not fit.
    """
    known = [x for x in kinds if x is not None]
    if len(known) < len(kinds):
        return None
    avals = [x if isinstance(x, ShapedArray) else array_aval(*x) for x in known]
    _, outs, row, body = asked(planned, params, engine, primitive, params, *avals)
    if body is not None or row.hosted or says_where(params, outs):
        return None
    seen = [x if isinstance(x, ShapedArray) else x[:2] for x in known]
    from verax.backend.eager.single_op import launched

    return launched(engine, row, params, tuple(avals), tuple(seen))


@pure(64, lasting=(Device,))
def eager_interpreter(
    engine: Engine, device: Device | None, accelerated: bool = False
) -> EagerInterpreter:
    """The interpreter whose results go to `device` if no operand says otherwise.

    `accelerated` says that the first device has memory of its own.
    """
    if device is not None:
        return PlacingInterpreter(engine)
    return DeviceInterpreter(engine) if accelerated else EagerInterpreter(engine)


class HasPlace(Exception):
    """An operand has a place of its own, so that the short way is not for it."""


class HasTracer(Exception):
    """An operand is a tracer, which may have outlived its trace."""


class HasReference(Exception):
    """An operand is a mutable reference."""


def plain_type(x: object) -> ShapedArray:
    """The type of an operand.

    Raises:
        HasPlace, HasReference: it is not for the short way.
    """
    if type(x) is ConcreteArray and x.kind is (aval := x.aval):
        return aval
    return operand_type(x)


def operand_type(x: object) -> ShapedArray:
    """The type of an operand that is not a plain array of ours."""
    if type(x) is np.ndarray:
        return array_aval(x.shape, x.dtype, STATE.enable_x64)
    if isinstance(x, Tracer):
        raise HasTracer
    if type(x) is ConcreteArray:
        raise HasPlace
    try:
        return aval_of(x)
    except NotAnArray:
        if is_reference(x):
            raise HasReference from None
        raise


def on_host(
    engine: Engine,
    row: SomeRow,
    params: Params,
    args: Sequence[object],
    outs: Sequence[ShapedArray],
) -> tuple[ConcreteArray, ...]:
    """The results of a row that is for the host."""
    if row.evaluate is None:
        raise missing(row, "evaluate", "give its row evaluate=...")
    results = row.evaluate(engine, params, [host_of(x) for x in args])
    return tuple(map(as_array, results, outs))


def bind_placed(
    engine: Engine, primitive: Primitive, params: Params, args: Sequence[object]
) -> tuple[Array, ...]:
    """The results of an operation, on the devices where its operands are.

    On one processor NumPy computes, since its devices share the memory; on several
    devices, and on others, a compiled program does.
    """
    try:
        avals = [aval_of(x) for x in args]
    except NotAnArray:
        if any([is_reference(x) for x in args]):
            from verax.backend.eager.stateful import bind_stateful

            return bind_stateful(engine, primitive, params, args)
        raise
    plan = asked(planned, params, engine, primitive, params, *avals)
    evaluate, outs, row, body = plan
    if body is not None:
        return one_by_one(partial(bind_placed, engine), body, args, outs)
    place, committed = common_place(args, primitive.name)
    local = place is not None and place.ordered[0].platform == "cpu"
    results: Sequence[ConcreteArray]
    if row.hosted and not outs and are_here(args):
        on_host(engine, row, params, args, outs)  # nothing has to be placed
        return ()
    if place is not None and row.hosted:
        results = on_host(engine, row, params, args, outs)
    elif place is None or not local or evaluate is None or is_split(outs):
        args = [constant(x) if isinstance(x, Literal) else x for x in args]
        from verax.backend.eager.single_op import run_alone

        return tuple(run_alone(engine, row, params, tuple(avals), args))
    else:
        result = quietly(evaluate, engine, params, [host_of(x) for x in args])
        results = list(map(as_array, result, outs))
    places = [result_place(place, x.shape, args) for x in results]
    return tuple([put(x, p, committed) for x, p in zip(results, places, strict=True)])


def are_here(args: Sequence[object]) -> bool:
    """Whether no part of an operand is in another process."""
    arrays = [x for x in args if isinstance(x, ConcreteArray)]
    return all([x.is_fully_addressable for x in arrays])


def host_of(x: object) -> np.ndarray:
    """The NumPy values of an operand, in the dtype of its type."""
    if isinstance(x, ConcreteArray):
        return x.numpy()
    if type(x) is np.ndarray and is_constant(x):
        return x
    aval = aval_of(x)
    if isinstance(x, Literal):
        return literal_value(x)
    if isinstance(x, np.ndarray):
        # Results may be views: they must not show what the caller writes later.
        return np.array(x, stored_dtype(aval.dtype))
    return scalar_of(x, aval)


def constant(x: Literal) -> ConcreteArray:
    """The value of a literal as an array, which a compiled program takes."""
    return as_array(literal_value(x), x.aval)


def is_constant(x: np.ndarray) -> bool:
    """Whether `x` is a read-only scalar, in a dtype of 32 bits or less.

    Such are the constants that frontends make from Python's numbers.
    """
    return (
        not x.shape
        and x.base is None
        and x.dtype not in NARROWED
        and not x.flags.writeable
    )


def as_array(value: object, aval: ShapedArray) -> ConcreteArray:
    """A result of NumPy as an array of the declared type."""
    if type(value) is not np.ndarray:
        value = np.asarray(value)
    if value.dtype is not aval.dtype:
        dtype = stored_dtype(aval.dtype)
        if value.dtype != dtype:
            with np.errstate(all="ignore"):  # what was computed wider may overflow
                value = value.astype(dtype)
    return from_host(value, aval)

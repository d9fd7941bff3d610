"""A toy set of primitives with params of every kind, and small programs over them.

print(branches())    # a cond with two jaxprs inside
"""

from collections.abc import Sequence
from enum import Enum, IntEnum

import numpy as np
from attrs import frozen
from pyrsistent import pvector

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DType
from verax.ir.effects import Effect
from verax.ir.jaxpr import (
    NO_PARAMS,
    Atom,
    Eqn,
    Jaxpr,
    NoParams,
    Params,
    Primitive,
    Var,
    array_literal,
    scalar_literal,
    variable,
)

FLOAT32 = np.dtype(np.float32)
VECTOR = ShapedArray((8,), FLOAT32)
SCALAR = ShapedArray((), FLOAT32)
INDEX = ShapedArray((), np.dtype(np.int32))


class Mode(Enum):
    CLIP = 0
    FILL = 1


class Level(IntEnum):
    LOW = 0
    HIGH = 1


@frozen
class Numbers:
    """A record inside params."""

    offset: tuple[int, ...]
    mode: Mode
    deeper: "Numbers | None" = None


@frozen
class Everything(Params):
    """One field of each kind that params may have."""

    flag: bool
    count: int | None
    rate: float
    factor: complex
    name: str
    data: bytes
    axes: tuple[int, ...]
    pairs: tuple[tuple[int, str], ...]
    dtype: DType
    aval: ShapedArray | None
    mode: Mode
    level: Level
    numbers: Numbers | tuple[Numbers, ...]
    effects_of: frozenset[str]
    scalar: np.generic | None = None


@frozen
class Axes(Params):
    axes: tuple[int, ...]


@frozen
class Call(Params):
    name: str
    jaxpr: Jaxpr


@frozen
class Branches(Params):
    branches: tuple[Jaxpr, ...]


@frozen
class Says(Params):
    text: str

    @property
    def effects(self) -> frozenset[Effect]:
        return frozenset((Effect("says"),))


sin_p = Primitive("sin", NoParams)
mul_p = Primitive("mul", NoParams)
add_p = Primitive("scatter-add", NoParams)
odd_p = Primitive("in", NoParams)
sum_p = Primitive("reduce_sum", Axes)
jit_p = Primitive("jit", Call)
cond_p = Primitive("cond", Branches)
all_p = Primitive("everything", Everything)
say_p = Primitive("say", Says)

PRIMITIVES = {
    p.name: p for p in (sin_p, mul_p, add_p, odd_p, sum_p, jit_p, cond_p, all_p, say_p)
}


def inputs(*avals: ShapedArray) -> tuple[Var, ...]:
    return tuple([variable(i, aval) for i, aval in enumerate(avals)])


def number(value: float, dtype: type = np.float32, weak: bool = False) -> Atom:
    """A scalar literal."""
    scalar: np.ndarray = np.asarray(value, dtype)
    return scalar_literal(scalar, ShapedArray((), scalar.dtype, weak))


def constant(value: np.ndarray) -> Atom:
    """An array literal."""
    return array_literal(value, ShapedArray(value.shape, value.dtype))


def apply(primitive: Primitive, params: Params, *operands: Atom) -> Eqn:
    """An equation whose result is numbered behind its highest operand."""
    number = 1 + max([a.index for a in operands if isinstance(a, Var)], default=-1)
    outs = typing(primitive, params, *[a.aval for a in operands])
    results = tuple([variable(number + i, aval) for i, aval in enumerate(outs)])
    return Eqn(primitive, params, operands, results)


def program(
    invars: tuple[Var, ...], eqns: Sequence[Eqn], outvars: tuple[Atom, ...]
) -> Jaxpr:
    return Jaxpr((), invars, pvector(eqns), outvars)


def typing(
    primitive: Primitive, params: Params, *avals: ShapedArray
) -> tuple[ShapedArray, ...]:
    """The type rules of the toy primitives."""
    match params:
        case Axes(axes):
            kept = [n for i, n in enumerate(avals[0].shape) if i not in axes]
            return (avals[0].with_shape(kept),)
        case Call(_, jaxpr):
            if jaxpr.in_avals != avals:
                raise TypeError(f"jit wants {jaxpr.in_avals}")
            return jaxpr.out_avals
        case Branches(branches):
            if any(branch.in_avals != avals[1:] for branch in branches):
                raise TypeError("the branches want other operands")
            return branches[0].out_avals
        case Says():
            return ()
        case _:
            return (max(avals, key=lambda aval: aval.ndim),)


def example() -> Jaxpr:
    """sin(b) * 3, and its sum, which nothing uses."""
    a, b = inputs(VECTOR, VECTOR)
    c, d = variable(2, VECTOR), variable(3, VECTOR)
    total = apply(sum_p, Axes((0,)), d)
    eqns = [apply(sin_p, NO_PARAMS, b), apply(mul_p, NO_PARAMS, c, number(3.0)), total]
    return program((a, b), eqns, (d,))


def scaled(by: Atom) -> Jaxpr:
    """A jaxpr of one equation."""
    (a,) = inputs(VECTOR)
    return program((a,), [apply(mul_p, NO_PARAMS, a, by)], (variable(1, VECTOR),))


def branches(*factors: Atom) -> Jaxpr:
    """A cond behind a jit, with a branch for each factor."""
    index, x = inputs(INDEX, VECTOR)
    chosen = tuple([scaled(by) for by in factors or (number(2.0), number(-0.5))])
    cond = apply(cond_p, Branches(chosen), index, x)
    inner = program((index, x), [cond], cond.outvars)
    outer = apply(jit_p, Call("inner", inner), index, x)
    say = apply(say_p, Says("it's done"), x)
    return program((index, x), [outer, say], outer.outvars)


def everything() -> Everything:
    """Params with a value in each field."""
    numbers = Numbers((0, 1), Mode.CLIP, Numbers((), Mode.FILL))
    return Everything(
        flag=True,
        count=None,
        rate=-0.0,
        factor=complex(1, -0.0),
        name="float32",
        data=b"\x00'",
        axes=(0,),
        pairs=((1, "a b"), (2, "row")),
        dtype=FLOAT32,
        aval=ShapedArray((2, 3), FLOAT32, weak_type=True),
        mode=Mode.CLIP,
        level=Level.HIGH,
        numbers=(numbers, numbers),
        effects_of=frozenset(("io", "debug", "random")),
        scalar=np.float32(0.1),
    )

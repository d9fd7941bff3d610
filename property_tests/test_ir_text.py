"""Laws of jaxprs as text and as values: random programs over the toy primitives.

parse(print(jaxpr)) == jaxpr
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from hypothesis import given, strategies as st

from tests.ir.toy import (
    PRIMITIVES,
    Axes,
    Branches,
    Call,
    Everything,
    Level,
    Mode,
    Numbers,
    Says,
    add_p,
    all_p,
    apply,
    cond_p,
    inputs,
    jit_p,
    mul_p,
    odd_p,
    program,
    say_p,
    sin_p,
    sum_p,
    typing,
)
from verax.ir.atoms import Atom, Var, array_literal, scalar_literal, variable
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import NUMERIC, DType, KeyDType, float0
from verax.ir.forms.parser import parse_closed, parse_jaxpr
from verax.ir.jaxpr import NO_PARAMS, Eqn, Jaxpr, Params, Primitive
from verax.ir.promotion import element
from verax.ir.reports.check import check_jaxpr
from verax.ir.reports.differences import diff
from verax.ir.text.printer import print_jaxpr
from verax.ir.walk import close, hoist, used_consts

ROOT = Path(__file__).parent.parent
ARRAYS = [np.full(3, i, np.float32) for i in range(3)]

dtypes: st.SearchStrategy[DType] = st.sampled_from(
    [*NUMERIC, float0, KeyDType("fry", (2,)), KeyDType("own", (2, 3))]
)
shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
avals = st.builds(ShapedArray, shapes, dtypes, st.booleans())
texts = st.text(max_size=8) | st.sampled_from(["nan", "float32", "f32", "lambda", "a"])
numbers: st.SearchStrategy[Numbers] = st.deferred(
    lambda: st.builds(
        Numbers,
        st.lists(st.integers(), max_size=2).map(tuple),
        st.sampled_from(Mode),
        st.none() | numbers,
    )
)
everything = st.builds(
    Everything,
    flag=st.booleans(),
    count=st.none() | st.integers(),
    rate=st.floats(allow_nan=False),
    factor=st.complex_numbers(allow_nan=False),
    name=texts,
    data=st.binary(max_size=4),
    axes=st.lists(st.integers(), max_size=3).map(tuple),
    pairs=st.lists(st.tuples(st.integers(), texts), max_size=2).map(tuple),
    dtype=dtypes,
    aval=st.none() | avals,
    mode=st.sampled_from(Mode),
    level=st.sampled_from(Level),
    numbers=numbers | st.lists(numbers, max_size=2).map(tuple),
    effects_of=st.frozensets(texts, max_size=3),
    scalar=st.none()
    | st.floats(width=32, allow_nan=False).map(np.float32)
    | st.integers(-128, 127).map(np.int8),
)


@st.composite
def scalars(draw: st.DrawFn) -> Atom:
    """A literal with any bits, those of booleans and small integers in their range."""
    dtype = draw(dtypes)
    data = draw(st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize))
    if isinstance(dtype, np.dtype) and dtype.kind not in "fc":
        dtype, data = np.dtype(np.int8), data[:1] or b"\x00"
    return scalar_literal(
        element(data, dtype), ShapedArray((), dtype, draw(st.booleans()))
    )


constants = st.sampled_from(ARRAYS).map(
    lambda value: array_literal(value, ShapedArray(value.shape, value.dtype))
)


@st.composite
def jaxprs(draw: st.DrawFn, depth: int = 2) -> Jaxpr:
    """A well-typed program over the toy primitives, with nested ones inside."""
    invars = inputs(*draw(st.lists(avals, min_size=1, max_size=3)))
    scope: list[Atom] = list(invars)
    eqns: list[Eqn] = []
    count = len(invars)
    for _ in range(draw(st.integers(0, 5))):
        operands = st.sampled_from(scope) | scalars() | constants
        primitive, params, args = draw(calls(operands, depth))
        outs = typing(primitive, params, *[a.aval for a in args])
        results = tuple([variable(count + i, aval) for i, aval in enumerate(outs)])
        count += len(results)
        scope += results
        eqns.append(Eqn(primitive, params, args, results))
    atoms = st.lists(st.sampled_from(scope) | scalars() | constants, max_size=3)
    return program(invars, eqns, tuple(draw(atoms)))


@st.composite
def calls(
    draw: st.DrawFn, operands: st.SearchStrategy[Atom], depth: int
) -> tuple[Primitive, Params, tuple[Atom, ...]]:
    """A primitive with params and operands that fit."""
    name = draw(st.sampled_from(["sin", "mul", "sum", "all", "say", "jit", "cond"]))
    x, y = draw(operands), draw(operands)
    if name in ("jit", "cond") and depth:
        inner = draw(jaxprs(depth - 1))
        args = tuple([scalar_or(v, y) for v in inner.invars])
        if name == "jit":
            return jit_p, Call(draw(texts), inner), args
        return cond_p, Branches((inner, inner)), (x, *args)
    match name:
        case "mul":
            return draw(st.sampled_from([mul_p, add_p])), NO_PARAMS, (x, y)
        case "sum":
            return sum_p, Axes(tuple(range(draw(st.integers(0, x.aval.ndim))))), (x,)
        case "all":
            return all_p, draw(everything), (x, y)
        case "say":
            return say_p, Says(draw(texts)), (x,)
    return draw(st.sampled_from([sin_p, odd_p])), NO_PARAMS, (x,)


def scalar_or(var: Var, atom: Atom) -> Atom:
    """An operand of the variable's type: the atom if it has it, else a constant."""
    if atom.aval is var.aval:
        return atom
    if var.aval.shape:
        return array_literal(var.aval, var.aval)
    dtype = var.aval.dtype
    return scalar_literal(element(bytes(dtype.itemsize), dtype), var.aval)


@given(jaxprs(), st.sampled_from([1, 40, 80, 1 << 30]))
def test_printed_jaxpr_reads_back(jaxpr: Jaxpr, width: int) -> None:
    check_jaxpr(jaxpr, typing)
    consts = [use.literal.value for use in used_consts(jaxpr)]
    text = print_jaxpr(jaxpr, width=width)
    again = parse_jaxpr(text, PRIMITIVES, consts)
    assert again == jaxpr
    assert hash(again) == hash(jaxpr)
    assert diff(again, jaxpr) == ""
    assert print_jaxpr(again, width=width) == text


@given(jaxprs())
def test_hoisted_jaxpr_closes_and_reads_back(jaxpr: Jaxpr) -> None:
    closed = hoist(jaxpr)
    check_jaxpr(closed.jaxpr, typing)
    assert close(closed) == jaxpr
    inner = [use.literal.value for use in used_consts(closed.jaxpr)]
    assert parse_closed(str(closed), PRIMITIVES, (*closed.consts, *inner)) == closed


@given(jaxprs(), jaxprs())
def test_equality_is_equality_of_text_and_constants(left: Jaxpr, right: Jaxpr) -> None:
    def whole(jaxpr: Jaxpr) -> tuple[str, list[int]]:
        consts = [id(use.literal.value) for use in used_consts(jaxpr)]
        return str(jaxpr), consts

    assert (left == right) == (whole(left) == whole(right))
    assert (diff(left, right) == "") == (left == right)


def test_text_does_not_depend_on_the_hash_seed() -> None:
    script = (
        "from tests.ir.test_printer import GOLDEN_PROGRAMS\n"
        "print([text() for text in GOLDEN_PROGRAMS.values()])"
    )
    actual = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert actual[0] == actual[1]
    assert "const1" in actual[0]


def test_toy_results_are_numbered() -> None:
    eqn = apply(sin_p, NO_PARAMS, *inputs(ShapedArray((), np.dtype(np.float32))))
    assert eqn.outvars[0].index == 1

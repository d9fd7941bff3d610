"""The printed text of small programs, and what printing promises beside it."""

import sys
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from attrs import evolve

from tests.ir.toy import (
    SCALAR,
    VECTOR,
    Call,
    Says,
    all_p,
    apply,
    branches,
    constant,
    everything,
    example,
    inputs,
    jit_p,
    mul_p,
    number,
    program,
    say_p,
    scaled,
    sin_p,
)
from verax.ir.atoms import Literal, letters, scalar_literal, variable
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import FLOATING, KeyDType
from verax.ir.jaxpr import NO_PARAMS, Eqn, Jaxpr, Source
from verax.ir.promotion import scalar_bytes, scalar_text
from verax.ir.text.printer import print_jaxpr
from verax.ir.walk import hoist

GOLDENS = Path(__file__).parent / "goldens"


def with_everything() -> Jaxpr:
    (x,) = inputs(VECTOR)
    eqn = apply(all_p, everything(), x)
    return program((x,), [eqn], eqn.outvars)


def with_constants() -> Jaxpr:
    ones, steps = np.ones(8, np.float32), np.arange(8, dtype=np.float32)
    return branches(constant(steps), constant(ones), constant(steps))


def long_call() -> Jaxpr:
    """A jit of a jaxpr that needs several lines, inside another one."""
    inner = apply(jit_p, Call("inner", example()), *inputs(VECTOR, VECTOR))
    middle = program(inputs(VECTOR, VECTOR), [inner], inner.outvars)
    outer = apply(jit_p, Call("outer", middle), *inputs(VECTOR, VECTOR))
    return program(inputs(VECTOR, VECTOR), [outer], outer.outvars)


GOLDEN_PROGRAMS: dict[str, Callable[[], str]] = {
    "example": lambda: str(example()),
    "untyped": lambda: print_jaxpr(example(), types=False),
    "branches": lambda: str(branches()),
    "narrow": lambda: print_jaxpr(branches(), width=50),
    "everything": lambda: str(with_everything()),
    "constants": lambda: str(with_constants()),
    "hoisted": lambda: str(hoist(scaled(constant(np.ones(8, np.float32))))),
    "long_call": lambda: str(long_call()),
}


@pytest.mark.parametrize("name", GOLDEN_PROGRAMS)
def test_text_is_the_golden_one(name: str) -> None:
    golden = (GOLDENS / f"{name}.txt").read_text()
    assert GOLDEN_PROGRAMS[name]() + "\n" == golden


def test_short_program_takes_one_line() -> None:
    text = "{ lambda ; a:f32[8]. let b:f32[8] = mul a ~2.0:f32[] in (b,) }"
    jaxpr = scaled(number(2.0, weak=True))
    assert str(jaxpr) == text.replace("~2.0:f32", "2.0:~f32") == repr(jaxpr)


def test_program_without_equations() -> None:
    (x,) = inputs(VECTOR)
    assert str(program((x,), [], (x, x))) == "{ lambda ; a:f32[8]. let in (a, a) }"
    assert str(program((), [], ())) == "{ lambda ; . let in () }"


def test_names_go_on_after_z() -> None:
    assert [letters(i) for i in (0, 25, 26, 51, 52, 676)] == [
        *("a", "z", "ba", "bz", "ca", "baa")
    ]


def test_sources_are_comments_and_break_the_lines() -> None:
    def user() -> None: ...

    place = Source(user.__code__, 0, "jvp")
    jaxpr = scaled(number(2.0))
    eqn = evolve(jaxpr.eqns[0], source=place)
    text = print_jaxpr(program(jaxpr.invars, [eqn], jaxpr.outvars), sources=True)
    line = f"{__file__}:{user.__code__.co_firstlineno} (jvp)"
    assert text.splitlines()[1] == f"    b:f32[8] = mul a 2.0:f32[]  # {line}"


def test_values_without_text_are_named_without_their_address() -> None:
    eqn = Eqn(say_p, Says(print), (), ())  # type: ignore[arg-type]  # on purpose
    assert "say[text=<print>]" in str(program((), [eqn], ()))


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_every_float_of_up_to_16_bits_reads_back(dtype: np.dtype[np.generic]) -> None:
    if dtype.itemsize > 2:
        pytest.skip("too many values to go through")
    count = 16 if dtype == ml_dtypes.float4_e2m1fn else 256**dtype.itemsize
    for bits in range(0, count, 1 if dtype.itemsize == 1 else 7):
        data = bits.to_bytes(dtype.itemsize, "little")
        assert scalar_bytes.__wrapped__(scalar_text(data, dtype), dtype) == data  # type: ignore[attr-defined]  # the function without its cache


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(0.1), "0.1:f32[]"),
        (np.float32(1e20), "1e+20:f32[]"),
        (np.float64(0.1), "0.1:f64[]"),
        (np.float32(-0.0), "-0.0:f32[]"),
        (np.float32(np.nan), "nan:f32[]"),
        (np.uint32(0x7FC00001).view(np.float32), "0x7fc00001:f32[]"),
        (np.float32(-np.inf), "-inf:f32[]"),
        (ml_dtypes.bfloat16(3), "3.0:bf16[]"),
        (np.complex64(complex(-0.0, 1.5)), "-0.0+1.5j:c64[]"),
        (np.complex128(complex(np.inf, -np.inf)), "inf-infj:c128[]"),
        (np.bool_(True), "True:bool[]"),
        (np.int8(-128), "-128:i8[]"),
        (np.uint64(2**64 - 1), "18446744073709551615:u64[]"),
        (ml_dtypes.int4(-8), "-8:i4[]"),
    ],
)
def test_scalar_literals(value: np.generic, text: str) -> None:
    literal = scalar_literal(value, ShapedArray((), value.dtype))
    assert repr(literal) == text


def test_random_key_literal_shows_its_bits() -> None:
    key = ShapedArray((), KeyDType("fry", (2,)))
    words = np.array([1, 2], np.uint32)
    literal = Literal(words, key, words.tobytes())
    assert repr(literal) == "0x0000000200000001:key<fry>[]"


def chain(length: int) -> Jaxpr:
    eqns = [apply(sin_p, NO_PARAMS, variable(i, SCALAR)) for i in range(length)]
    return program(inputs(SCALAR), eqns, (variable(length, SCALAR),))


def nest(depth: int) -> Jaxpr:
    jaxpr = chain(1)
    for _ in range(depth):
        eqn = apply(jit_p, Call("f", jaxpr), *inputs(SCALAR))
        jaxpr = program(inputs(SCALAR), [eqn], eqn.outvars)
    return jaxpr


def test_deep_nests_print_once_per_level() -> None:
    text = str(nest(40))
    assert text.count("jit[") == 40
    assert text.count("sin") == 1


def test_printing_takes_linear_time() -> None:
    def calls(length: int) -> int:
        jaxpr = chain(length)
        events = []
        sys.setprofile(lambda frame, event, arg: events.append(event))
        try:
            print_jaxpr(jaxpr)
        finally:
            sys.setprofile(None)
        return len(events)

    calls(500)
    # Quadratic time would make 16 times as many calls.
    assert calls(2000) < 5 * calls(500)


def test_multiplying_text_names_operands() -> None:
    a, b = inputs(VECTOR, VECTOR)
    assert repr(apply(mul_p, NO_PARAMS, a, b)) == "c:f32[8] = mul a b"

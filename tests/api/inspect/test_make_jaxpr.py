"""Programs as text: the examples of the documents about jaxprs, and eval_shape."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import Array, lax
from verax.ir.atoms import Literal
from verax.ir.walk import close

GOLDENS = Path(__file__).parents[2] / "goldens"


def func1(first: Array, second: Array) -> Array:
    temp = first + vnp.sin(second) * 3.0
    return vnp.sum(temp)


def func2(inner: Callable[[Array], Array], first: Array, second: Array) -> Array:
    temp = first + inner(second) * 3.0
    return vnp.sum(temp)


def inner(second: Array) -> Array:
    assert second.shape[0] > 4
    return vnp.sin(second)


def func3(first: Array, second: Array) -> Array:
    return func2(inner, first, second)


def func4(arg: tuple[Array, Array]) -> Array:
    temp = arg[0] + vnp.sin(arg[1]) * 3.0
    return vnp.sum(temp)


def func5(first: Array, second: Array) -> Array:
    return first + vnp.sin(second) * 3.0 - vnp.ones(8)


def func6(first: Array) -> Array:
    return func5(first, vnp.ones(8))


CAPTURED = np.ones(8, np.float32)


def func6_captured(first: Array) -> Array:
    return first + vnp.sin(CAPTURED) * 3.0 - CAPTURED


def func12(arg: Array) -> Array:
    @verax.jit
    def inner(x: Array) -> Array:
        return x + arg * vnp.ones(1)

    return arg + inner(arg - 2.0)


def func13(arr: Array, extra: Array) -> Any:
    def inner(x: Array) -> Any:
        return (x + extra + vnp.ones(1)) / verax.lax.psum(x, axis_name="rows")

    return verax.pmap(inner, axis_name="rows")(arr)


PAIR = (vnp.zeros(8), vnp.ones(8))
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "func1": (func1, PAIR),
    "func2": (lambda first, second: func2(inner, first, second), PAIR),
    "func3": (func3, PAIR),
    "func4": (func4, (PAIR,)),
    "func5": (func5, PAIR),
    "func6": (func6, (vnp.zeros(8),)),
    "func6_captured": (func6_captured, (vnp.zeros(8),)),
    "func12": (func12, (1.0,)),
    "func13": (func13, (vnp.ones((1, 3)), 5.0)),
    "func1_grad": (verax.grad(func1), PAIR),
    "func1_vmap": (verax.vmap(func1), (vnp.zeros((2, 8)), vnp.ones((2, 8)))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_goldens(name: str) -> None:
    fun, args = PROGRAMS[name]
    golden = GOLDENS / f"{name}.txt"
    assert str(verax.make_jaxpr(fun)(*args)) + "\n" == golden.read_text()


def test_a_call_takes_what_it_captures_and_then_its_arguments() -> None:
    fun, args = PROGRAMS["func12"]
    closed = verax.make_jaxpr(fun)(*args)
    first, call, last = closed.eqns
    assert call.primitive.name == "jit"
    assert call.params["name"] == "inner"
    assert call.invars == (closed.jaxpr.invars[0], first.outvars[0])
    assert last.invars == (closed.jaxpr.invars[0], call.outvars[0])


def test_control_flow_of_python_vanishes() -> None:
    texts = {str(verax.make_jaxpr(f)(*PAIR)) for f in (func1, func3)}
    texts.add(str(verax.make_jaxpr(func4)(PAIR)))
    assert len(texts) == 1


def test_equal_traces_are_equal_values() -> None:
    first, second = (verax.make_jaxpr(func1)(*PAIR) for _ in range(2))
    assert first == second
    assert hash(first) == hash(second)
    assert first != verax.make_jaxpr(func1)(*(x.astype(vnp.float16) for x in PAIR))


def test_what_a_closed_jaxpr_has() -> None:
    closed, shapes = verax.make_jaxpr(func6_captured, return_shape=True)(vnp.zeros(8))
    assert len(closed.jaxpr.constvars) == len(closed.consts) == 1
    assert closed.consts == closed.literals
    assert [str(aval) for aval in closed.in_avals] == ["f32[8]"]
    assert [str(aval) for aval in closed.out_avals] == ["f32[8]"]
    assert closed.effects == frozenset()
    assert shapes.shape == (8,)
    assert shapes.dtype == np.float32


def test_static_arguments_of_make_jaxpr() -> None:
    jaxpr = verax.make_jaxpr(lambda x, n: x**n, static_argnums=1)(vnp.ones(2), 3)
    assert "integer_pow" in str(jaxpr)


def test_every_equation_knows_its_line() -> None:
    jaxpr = verax.make_jaxpr(verax.grad(func1))(*PAIR)
    assert all(eqn.source.file == __file__ for eqn in jaxpr.eqns)
    origins = {eqn.source.origin for eqn in jaxpr.eqns}
    assert origins <= {"", "jvp", "transpose(jvp)", "transpose"}
    assert {eqn.source.function for eqn in jaxpr.eqns} == {"func1"}


def test_eval_shape_computes_nothing() -> None:
    struct = verax.ShapeDtypeStruct((1 << 20, 1 << 20), np.float32)
    actual = verax.eval_shape(lambda x: {"y": (x @ x).sum(0)}, struct)
    assert actual["y"].shape == (1 << 20,)
    assert actual["y"].dtype == np.float32


def test_unused_results_are_elided() -> None:
    jaxpr = verax.make_jaxpr(lambda x: (vnp.sin(x), x + 1)[1])(1.0)
    assert "_ = sin" in str(jaxpr) or "_:" in str(jaxpr)


def test_struct_is_a_value() -> None:
    struct = verax.ShapeDtypeStruct((2, 3), np.float32)
    assert repr(struct) == "ShapeDtypeStruct(shape=(2, 3), dtype=float32)"
    assert struct == verax.ShapeDtypeStruct([2, 3], "float32")
    assert len({struct, verax.ShapeDtypeStruct((2, 3), np.float32)}) == 1
    assert struct != verax.ShapeDtypeStruct((2, 3), np.int32)


def test_make_jaxpr_with_named_axes() -> None:
    closed = verax.make_jaxpr(
        lambda x: lax.psum(x, "i") + lax.axis_size("j"), axis_env=[("i", 4), ("j", 2)]
    )(1.0)
    assert closed.eqns[0].primitive.name == "psum"
    two = closed.eqns[1].invars[1]
    assert isinstance(two, Literal)
    assert two.value == 2


def test_an_array_without_dimensions_is_a_constant_too() -> None:
    scale, steps = vnp.array(3.0), vnp.array(2)
    closed = verax.make_jaxpr(lambda x: (x * scale + steps, np.float32(1) + x))(1.0)
    assert {id(x) for x in closed.consts} == {id(scale), id(steps)}
    assert [v.aval.shape for v in closed.jaxpr.constvars] == [(), ()]
    outs = verax.core.eval_jaxpr(closed.jaxpr, [vnp.array(5.0), steps], 1.0)
    assert [float(x) for x in outs] == [7.0, 2.0]
    # Arrays and tracers alike, so that closures have as many constants in both worlds.
    numbers: list[int] = []

    def counts(scale: verax.Array) -> verax.Array:
        closed = verax.make_jaxpr(lambda x: x * scale + steps)(1.0)
        numbers.append(len(closed.consts))
        return scale

    counts(scale)
    verax.jit(counts)(scale)
    assert numbers == [2, 2]


def test_a_constant_without_dimensions_is_inline_inside_of_params() -> None:
    step, end = vnp.int32(2), vnp.int32(5)
    body = verax.make_jaxpr(lambda i: i + step)(0)
    test = verax.make_jaxpr(lambda i: i < end)(0)
    assert len(body.consts) == len(test.consts) == 1
    assert str(close(body)).count("2:i32[]") == 1
    (eqn,) = verax.make_jaxpr(
        lambda i: lax.while_loop(lambda i: i < 5, lambda i: i + 2, i)
    )(np.int32(0)).eqns
    loops = {"body_jaxpr": close(body), "cond_jaxpr": close(test)}
    params = eqn.replace(params=loops).params
    for run in (lambda x: x, verax.jit):
        (out,) = run(lambda x: eqn.primitive.bind(params, x))(np.int32(0))
        assert int(out) == 6


def test_its_name_says_of_what_it_is() -> None:
    programs: Any = verax.make_jaxpr(func1)
    assert programs.__name__ == "make_jaxpr(func1)"
    assert programs.__qualname__ == "make_jaxpr(func1)"
    assert programs.__module__ == "verax"


def test_types_of_results_are_found_once() -> None:
    calls: list[Any] = []

    def f(x: Any) -> Any:
        calls.append(x)
        return vnp.asarray(x), verax.ShapeDtypeStruct((2,), "int8")

    first, second = verax.eval_shape(f, 1), verax.eval_shape(f, 1)
    assert [out[0].weak_type for out in (first, second)] == [True, True]
    assert second[1].shape == (2,)
    assert len(calls) == 1
    verax.eval_shape(f, 1.0)
    assert len(calls) == 2

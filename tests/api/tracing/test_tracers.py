"""Tracers: concrete on demand under derivatives, abstract elsewhere, never leaked."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import Array


def divide(x: Any, y: Any) -> Any:
    return x / y if y >= 1.0 else 0.0


def test_derivatives_let_python_branch_on_values() -> None:
    assert float(verax.grad(divide)(3.0, 2.0)) == 0.5
    assert float(verax.grad(divide)(3.0, 0.5)) == 0
    assert float(verax.jvp(divide, (3.0, 2.0), (1.0, 0.0))[1]) == 0.5
    assert float(verax.linearize(divide, 3.0, 2.0)[1](1.0, 0.0)) == 0.5
    assert [float(ct) for ct in verax.vjp(divide, 3.0, 2.0)[1](1.0)] == [0.5, -0.75]


def test_values_are_there_through_levels_of_grad_and_jit() -> None:
    def fun(x: Any) -> Any:
        y = verax.jit(vnp.sin)(x) * 2
        return x**3 if y > 0 else x

    assert float(verax.grad(verax.grad(fun))(1.0)) == 6
    assert float(verax.grad(verax.grad(fun))(-1.0)) == 0


def test_values_of_what_is_closed_over() -> None:
    def outer(x: Any) -> Any:
        y = x * 2
        return verax.grad(lambda z: z * y if y > 3 else z)(1.0) * x

    assert float(verax.grad(outer)(2.0)) == 8
    assert float(verax.grad(outer)(1.0)) == 1


def test_every_conversion_of_python() -> None:
    seen: list[Any] = []

    def fun(x: Any) -> Any:
        seen.extend([bool(x > 1), int(x), float(x), complex(x), x.item()])
        seen.append(np.asarray(x * 2).tolist())
        seen.append([10, 20, 30][vnp.int32(x)])
        assert (x.weak_type, (x * vnp.float32(1)).weak_type) == (True, False)
        assert not x.__array__().flags.writeable
        assert x.__array__(copy=True).flags.writeable
        assert x.__array__(np.dtype(np.int8)).dtype == np.int8
        return x

    verax.grad(fun)(2.0)
    assert seen == [True, 2, 2.0, 2 + 0j, 2.0, 4.0, 30]


ABSTRACT: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "jit": lambda f: verax.jit(f)(1.0),
    "vmap": lambda f: verax.vmap(f)(vnp.ones(2)),
    "make_jaxpr": lambda f: verax.make_jaxpr(f)(1.0),
    "eval_shape": lambda f: verax.eval_shape(f, 1.0),
    "jit of grad": lambda f: verax.jit(verax.grad(f))(1.0),
    "grad of jit": lambda f: verax.grad(verax.jit(f))(1.0),
    "grad of vmap": lambda f: verax.grad(lambda x: verax.vmap(f)(x).sum())(vnp.ones(2)),
}


@pytest.mark.parametrize("name", ABSTRACT)
def test_abstract_elsewhere(name: str) -> None:
    with pytest.raises(TypeError, match="only types are known"):
        ABSTRACT[name](lambda x: x if x > 0 else -x)


def test_the_error_names_argument_line_and_ways_out() -> None:
    def branch(a: Any, b: Any, c: Any) -> Any:
        d = b["k"] * 2
        return a if d > 0 else c

    with pytest.raises(TypeError) as error:
        verax.jit(branch)(1.0, {"k": 2.0}, 3.0)
    text = str(error.value)
    assert "It depends on argument b['k'] of branch." in text
    assert "bool(x), as in `if x:`" in text
    assert f"{__file__}:" in text
    assert "(test_the_error_names_argument_line_and_ways_out.<locals>.branch)" in text
    for way_out in ("verax.numpy.where", "static_argnums"):
        assert way_out in text


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda x: np.sin(x), "NumPy array"),
        (lambda x: np.asarray(x), "NumPy array"),
        (lambda x: int(x), r"int\(x\)"),
        (lambda x: range(x), "(?i)an index or a size"),
        (lambda x: vnp.zeros(x), "index|size|shape"),
        (lambda x: x.tolist(), "tolist"),
        (lambda x: vnp.arange(x), "index|size|value|arange"),
    ],
)
def test_what_needs_a_value_says_so(use: Callable[[Any], Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        verax.jit(use)(3)


@pytest.mark.slow
@pytest.mark.usefixtures("few_objects")
def test_leaked_tracers_name_both_lines() -> None:
    held: list[Any] = []

    def fun(x: Any) -> Any:
        held.append(vnp.sin(x))
        return x

    verax.jit(fun)(1.0)
    for use in (
        lambda: held[0] + 1,
        lambda: vnp.cos(held[0]),
        lambda: float(held[0]),
        lambda: verax.jit(lambda y: y + held[0])(1.0),
        lambda: verax.jit(lambda y: y)(held[0]),
        lambda: verax.grad(lambda y: y * held[0])(1.0),
    ):
        with pytest.raises(verax.LeakedTracer) as error:
            use()
        text = str(error.value)
        assert "for jit: it was created on line" in text
        assert text.count(__file__) == 2
        assert "<locals>.fun" in text


def test_leaked_arguments_say_that_they_were_inputs() -> None:
    held: list[Any] = []
    verax.vmap(lambda x: held.append(x) or x)(vnp.ones(2))  # type: ignore[func-returns-value]  # for the side effect
    with pytest.raises(verax.LeakedTracer, match="an input of that trace"):
        held[0] + 1


def test_a_tracer_of_a_sibling_trace_is_a_leak() -> None:
    held: list[Any] = []

    def outer(x: Any) -> Any:
        verax.grad(lambda y: held.append(y) or y)(x)  # type: ignore[func-returns-value]  # for the side effect
        return verax.grad(lambda y: y * held[0])(x)

    with pytest.raises(verax.LeakedTracer):
        verax.jit(outer)(1.0)


def test_tracers_are_arrays_and_print_their_type() -> None:
    seen: list[Any] = []

    def fun(x: Any) -> Any:
        seen.extend([isinstance(x, Array), repr(x), x.shape, x.dtype, x.ndim, x.size])
        return x

    verax.jit(fun)(vnp.ones((2, 3)))
    assert seen[0] is True
    assert "f32[2,3]" in seen[1]
    assert "jit" in seen[1]
    assert seen[2:] == [(2, 3), np.float32, 2, 6]


def test_everything_is_staged_under_a_trace() -> None:
    jaxpr = verax.make_jaxpr(lambda: vnp.zeros(3) + vnp.ones(3))()
    assert jaxpr.eqns[-1].primitive.name == "add"

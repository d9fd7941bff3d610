"""Transposes come last, and a program computes what it did."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from tests.transforms.passes.values import assert_same_values
from verax import lax
from verax.transforms.passes.transposes import LARGE, with_late_transposes

X = np.random.default_rng(0).standard_normal((80, 60)).astype("f4")
assert X.size >= LARGE


def names(function: Any, *args: Any) -> list[str]:
    """The primitives of a program after the pass, which computes the same."""
    closed = verax.make_jaxpr(function)(*args)
    late = with_late_transposes(closed.jaxpr)
    assert_same_values(closed, late, *args)
    np.testing.assert_array_equal(
        verax.jit(function)(*args), verax.jit(function, cpu_lowerings="xla")(*args)
    )
    return [eqn.primitive.name for eqn in late.eqns]


@pytest.mark.slow
def test_functions_of_elements_come_first() -> None:
    assert names(lambda x: vnp.exp(x.T), X) == ["exp", "transpose"]
    assert names(lambda x: lax.integer_pow(x.T, 2).astype("i4"), X) == [
        "integer_pow",
        "convert_element_type",
        "transpose",
    ]
    assert names(lambda x: 1 - x.T * 2, X) == [
        "mul",
        "sub",
        "optimization_barrier",
        "transpose",
    ]
    assert names(lambda x: x.T * x[0, 0], X)[-2:] == [
        "optimization_barrier",
        "transpose",
    ]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.T + x.T,
        lambda x: x.T * vnp.arange(80, dtype="f4"),
        lambda x: (lambda y: y + (y + 1))(x.T),
        lambda x: x.T.sum(0) + 1,
        lambda x: x[:9, :9].T + 1,
        lambda x: (lambda y: vnp.where(y > 0, y, 0))(x.T),
    ],
)
def test_others_stay_where_they_are(function: Any) -> None:
    program = names(function, X)
    assert "optimization_barrier" not in program
    assert program.index("transpose") < len(program) - 1


def test_a_result_that_two_read_stays() -> None:
    closed = verax.make_jaxpr(lambda x: (lambda y: (y * 2, y * 3))(x.T))(X)
    late = with_late_transposes(closed.jaxpr)
    assert late is closed.jaxpr or late.eqns[0].primitive.name == "transpose"


@pytest.mark.slow
def test_programs_inside_and_gradients() -> None:
    def loss(x: Any) -> Any:
        def body(c: Any, _: Any) -> Any:
            return (vnp.tanh(c.T * 0.5)).T, (c.T + 1.0).sum()

        c, sums = lax.scan(body, x, None, length=3)
        return (vnp.moveaxis(c, 0, 1) * 2 + 1).sum() + sums.sum()

    assert names(loss, X).count("scan") == 1
    actual = verax.jit(verax.grad(loss))(X)
    want = verax.grad(loss)(X)
    np.testing.assert_allclose(actual, want, rtol=1e-5, atol=1e-5)


def test_a_transpose_that_is_undone_has_no_barrier() -> None:
    x = np.ones((100, 200), np.float32)

    def undone(x: Any) -> Any:
        y = vnp.transpose(x) + 1
        return vnp.transpose(y * y + vnp.sin(y))

    def kept(x: Any) -> Any:
        y = vnp.transpose(x) + 1
        return vnp.transpose(y * y), y

    for f, barriers in ((undone, 0), (kept, 1)):
        text = verax.jit(f).lower(x).as_text()
        assert text.count("optimization_barrier") == barriers, f
    np.testing.assert_allclose(verax.jit(undone)(x), 4 + np.sin(2 * x), 1e-6)

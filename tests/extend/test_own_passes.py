"""Passes of a user's own over the program of a function."""

from typing import Any

import pytest
from attrs import evolve

import verax
import verax.numpy as vnp
from verax import verify
from verax.extend import with_passes
from verax.ir.jaxpr import ClosedJaxpr, Jaxpr
from verax.transforms import cse, fold


def f(x: Any, scale: Any = 2.0) -> Any:
    return {"y": vnp.sin(x) * scale + vnp.sin(x) * scale}


def sines(fun: Any, *args: Any) -> int:
    eqns = verax.make_jaxpr(fun)(*args).jaxpr.eqns
    return sum([eqn.primitive.name == "sin" for eqn in eqns])


def test_passes_run_in_their_order_once_a_trace() -> None:
    seen: list[int] = []

    def counting(program: ClosedJaxpr) -> ClosedJaxpr:
        seen.append(len(program.jaxpr.eqns))
        return program

    g = verax.jit(with_passes(f, counting, cse, counting))
    for _ in range(3):
        assert g(0.5)["y"] == f(0.5)["y"]
    before, after = seen
    assert after < before


def test_what_comes_out_is_transformed() -> None:
    g = with_passes(f, fold, cse)
    assert (sines(f, 1.0), sines(g, 1.0)) == (2, 1)
    assert verax.grad(lambda x: g(x)["y"])(0.5) == verax.grad(lambda x: f(x)["y"])(0.5)
    xs = vnp.arange(3.0)
    assert (verax.vmap(g)(xs)["y"] == f(xs)["y"]).all()
    # What the function closes over may be traced, and a constant may be an array.
    scaled = verax.grad(
        lambda s: with_passes(lambda x: f(x, s * xs), cse)(xs)["y"].sum()
    )
    assert scaled(2.0) == verax.grad(lambda s: f(xs, s * xs)["y"].sum())(2.0)


@pytest.mark.slow
def test_a_pass_is_checked() -> None:
    def shorter(program: ClosedJaxpr) -> ClosedJaxpr:
        jaxpr = program.jaxpr
        return evolve(program, jaxpr=evolve(jaxpr, outvars=jaxpr.outvars[:0]))

    def lost(program: ClosedJaxpr) -> Jaxpr:
        return evolve(program.jaxpr, eqns=program.jaxpr.eqns[1:])

    with pytest.raises(ValueError, match=r"pass shorter made returns \(\), .*keeps"):
        with_passes(f, shorter)(1.0)
    with pytest.raises(verax.errors.IllTyped):
        with_passes(f, lost)(1.0)
    with pytest.raises(TypeError, match="the pass print must return a program"):
        with_passes(f, print)(1.0)  # type: ignore[arg-type]  # the wrong call
    with pytest.raises(TypeError, match="with_passes"):
        with_passes(f, "cse")  # type: ignore[arg-type]  # the wrong call
    verify.check_transformation(cse, cases=5).raise_if_broken()

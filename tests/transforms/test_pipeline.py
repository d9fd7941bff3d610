"""The passes between a trace and StableHLO: their list, and that each keeps values."""

import inspect
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.api.tracing.apply import ENGINE
from verax.transforms import COMPILE, STANDARD
from verax.transforms.engine.engine import evaluate
from verax.transforms.passes.outline import with_eqns
from verax.transforms.pipeline import Target, body_of, passed
from verax.transforms.public import opened

CPU = Target(one_cpu=True)


def blocks(x: Any) -> Any:
    for _ in range(4):
        for _ in range(6):
            x = vnp.sin(x) * 1.5 + vnp.cos(x)
    return x.sum()


def with_dead_code(x: Any) -> Any:
    unused = vnp.exp(x)
    y, _ = lax.scan(lambda c, a: (c + a, unused), x[0], x)
    return y


def inside(x: Any) -> Any:
    return lax.cond(x.sum() > 0, verax.jit(blocks), lambda x: x[0], x)


X = np.linspace(0.1, 1, 2048).astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("f", [blocks, with_dead_code, inside, verax.grad(blocks)])
def test_each_pass_keeps_values(f: Any) -> None:
    jaxpr = opened(verax.make_jaxpr(f)(X))
    (due,) = evaluate(ENGINE, jaxpr, [X])
    for one in COMPILE:
        body = one.run(ENGINE, body_of(jaxpr), CPU)
        made = with_eqns(jaxpr, body.live_eqns)
        actual = evaluate(ENGINE, made, [X])[0]
        if one.name == "kernels":  # it drops the last places
            np.testing.assert_allclose(actual, due, rtol=1e-4)
            due = actual
        np.testing.assert_array_equal(actual, due)
        assert (made.in_avals, made.out_avals) == (jaxpr.in_avals, jaxpr.out_avals)
        jaxpr = made
    last = passed(ENGINE, opened(verax.make_jaxpr(f)(X)), CPU)
    assert len(last.live_eqns) == len(jaxpr.eqns)


def wanted(target: Target) -> list[str]:
    return [one.name for one in COMPILE if one.wanted(target)]


REST = ("outline", "transposes", "kernels", "pieces", "partials", "chains")


def test_the_order_of_the_passes() -> None:
    assert wanted(CPU) == ["dce", "stacks", *REST]
    every = Target(one_cpu=True, keep_unused=True)
    assert wanted(every) == ["stacks", *REST]
    inline = Target(one_cpu=True, calls="inline", kernels=False)
    assert wanted(inline) == ["dce", "stacks", "transposes", "pieces", "chains"]
    assert wanted(Target()) == ["dce"]
    for one in COMPILE:
        assert all([one.needs, one.keeps, one.drops, inspect.getdoc(one.run)])


def test_a_short_program_goes_through_as_it_is() -> None:
    jaxpr = opened(verax.make_jaxpr(lambda x: vnp.exp(x) + 1)(X))
    body = passed(STANDARD, jaxpr, CPU)
    assert list(body.eqns) == list(jaxpr.eqns)
    assert body.kept == (True,)


def test_passes_of_a_user_are_stages_of_the_explorer() -> None:
    def wave(x: Any) -> Any:
        return vnp.sin(x) * 2.0 + vnp.sin(x) * 2.0

    from_user = verax.extend.with_passes(wave, verax.transforms.fold, halved)
    explored = verax.explore(verax.jit(from_user))(1.0)
    document: Any = explored.document
    names = [stage["name"] for stage in document["stages"]]
    assert names[:3] == ["trace", "fold", "halved"]


def halved(program: Any) -> Any:
    return verax.transforms.cse(program)

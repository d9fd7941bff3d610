"""A loop of a user's own: every transformation goes through its program."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from attrs import evolve, frozen

import verax
import verax.numpy as vnp
from verax import lax, verify
from verax.experimental import checkify
from verax.extend import (
    Params,
    Parts,
    Propagation,
    Sample,
    Through,
    Values,
    composite,
    inlined,
    opened,
    propagate,
    thread_loop,
)
from verax.ir.jaxpr import Jaxpr


@frozen(eq=False, repr=False)
class RepeatParams(Params):
    jaxpr: Jaxpr
    times: int
    consts: int


def repeated(p: RepeatParams, *operands: Any) -> Sequence[Any]:
    consts, carry = operands[: p.consts], list(operands[p.consts :])
    for _ in range(p.times):
        carry = inlined(p.jaxpr, [*consts, *carry])
    return carry


def through_repeat(through: Through, p: RepeatParams, values: Values) -> Values:
    def again(
        jaxpr: Jaxpr, consts: Sequence[object], carry: Sequence[object]
    ) -> Sequence[Any]:
        params = evolve(p, jaxpr=jaxpr, consts=len(consts))
        return repeat_p.bind(params, *consts, *carry)

    return thread_loop(through, values[: p.consts], values[p.consts :], again)


def drawn(random: Random) -> Sample[RepeatParams]:
    row = vnp.ones(3, vnp.float32)
    program = opened(lambda a, x, y: (y * a, x + a), (row[0], row, row))
    params = RepeatParams(program.jaxpr, random.randint(1, 4), 1)
    return Sample(params, program.jaxpr.in_avals)


repeat_p = composite(
    "repeat",
    RepeatParams,
    repeated,
    thread=through_repeat,
    multiple_results=True,
    draw=drawn,
)


def repeat(step: Any, times: int, x: Any) -> Any:
    program = opened(step, (x,))
    params = RepeatParams(program.jaxpr, times, program.captured)
    return repeat_p.bind(params, *program.operands)[0]


def test_laws_hold() -> None:
    laws = ["typed", "jvp", "linear", "vmap", "dce", "text", "thread", "compiled"]
    verify.check_primitive(repeat_p, laws=laws, cases=6).raise_if_broken()


@pytest.mark.parametrize("change", [lambda f: f, verax.jit], ids=["eager", "jit"])
def test_checks_are_made_in_each_step(change: Any) -> None:
    def halved(y: Any) -> Any:
        checkify.check(y > 0.1, "too small: {}", y)
        return y * 0.5

    for times, message in ((2, None), (5, "too small: 0.0625 (`check` failed)")):
        checked = checkify.checkify(lambda x, n=times: repeat(halved, n, x))
        error, out = change(checked)(1.0)
        assert (error.get(), out) == (message, 0.5**times)


def test_a_nan_is_found_with_its_step() -> None:
    finding = verax.debug.find_nans(
        lambda x: repeat(lambda y: vnp.log(y) - 1.0, 4, x) + 1.0
    )(8.0)
    assert finding is not None
    assert finding.eqn is not None
    assert finding.eqn.primitive is lax.log_p
    (level,) = finding.levels
    assert str(level).startswith("program 0 of repeat in step 2, at ")
    assert finding.operands is None  # nothing says how to get to a step of it


def test_references_go_in_and_out() -> None:
    def f(x: Any) -> Any:
        total, factor = verax.new_ref(0.0), verax.new_ref(2.0)

        def step(y: Any) -> Any:
            total[...] += y
            return y * factor[...]

        return repeat(step, 3, x), total[...]

    assert verax.jit(f)(1.0) == (8.0, 7.0)
    assert verax.grad(lambda x: f(x)[1])(1.0) == 7.0
    assert verax.vmap(f)(vnp.array([1.0, 2.0]))[1].tolist() == [7.0, 14.0]


def test_tables_of_ones_own_follow() -> None:
    def both(parts: Parts, width: int = 2) -> Parts:
        return (parts[0], parts[-1])

    def product(walk: Propagation, p: Any, values: Any) -> list[Parts]:
        (a, b), (c, d) = map(both, values)
        return [(lax.mul(a, c), lax.mul(b, d))]

    bounds = Propagation("bounds", {}, fill=both) | {lax.mul_p: product}
    ends = propagate(bounds, lambda x: repeat(lambda y: y * 2.0, 3, x), (1.0,), (2.0,))
    assert ends == (8.0, 16.0)

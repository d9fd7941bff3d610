"""Lowering: rules are asked once for each kind of equation; dead code is left out."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import pytest
from attrs import frozen

import verax
import verax.numpy as vnp
from verax import lax
from verax.api.tracing.apply import ENGINE
from verax.backend.lowering.function_writer import NeedsModule, equation_text
from verax.backend.lowering.lower import lower
from verax.experimental import io_callback
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import NO_PARAMS, Jaxpr, NoParams, Params
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import Row

F32 = ShapedArray((4,), np.dtype("float32"))
SCALAR = ShapedArray((), np.dtype("float32"))


def jaxpr_of(f: Any, *args: Any) -> Jaxpr:
    actual: Jaxpr = verax.make_jaxpr(f)(*args).jaxpr
    return actual


def text_of(f: Any, *args: Any) -> str:
    return verax.jit(f).lower(*args).module.text


@pytest.fixture
def asked() -> Iterator[list[str]]:
    """A list to which the rules of a test write; no text outlives the test."""
    yield []
    cast(Any, equation_text).cache_clear()


def row_of(asked: list[str], name: str = "twice") -> Row[NoParams]:
    """A row that doubles, and notes each time its rule is asked."""

    def rule(
        e: Emitter, p: Params, xs: Sequence[Operand], outs: Sequence[ShapedArray]
    ) -> Sequence[Operand]:
        asked.append(name)
        return e.op("stablehlo.add", (xs[0], xs[0]), outs)

    return Row(
        name,
        NoParams,
        typing=lambda p, avals: avals,
        evaluate=lambda engine, p, xs: (xs[0] + xs[0],),
        lower=rule,
    )


def test_a_rule_is_asked_once_for_each_kind_in_all_modules(asked: list[str]) -> None:
    twice = row_of(asked)

    def f(x: Any, s: Any) -> Any:
        (y,) = twice.bind(NO_PARAMS, *twice.bind(NO_PARAMS, x))
        return y, twice.call(NO_PARAMS, s)

    x, s = vnp.arange(4.0), 3.0
    first = verax.jit(f)(x, s)
    assert len(asked) == 2  # one for each type
    second = verax.jit(lambda x, s: f(x, s)[::-1])(x, s)
    assert len(asked) == 2
    np.testing.assert_array_equal(first[0], 4.0 * np.arange(4.0))
    np.testing.assert_array_equal(second[0], 6.0)


def test_an_operand_that_is_a_constant_is_another_kind(asked: list[str]) -> None:
    twice = row_of(asked)

    def f(s: Any) -> Any:
        return [twice.call(NO_PARAMS, a) for a in (s, np.float32(2), np.float32(3))]

    actual = verax.jit(f)(np.float32(1))
    assert [float(x) for x in actual] == [2.0, 4.0, 6.0]
    assert len(asked) == 2


def test_the_text_depends_on_the_program_alone() -> None:
    def f(x: Any) -> Any:
        return vnp.sum(vnp.where(x > 0, x, 0.5) * 2.0) + vnp.argmax(x)

    x = vnp.arange(4.0)
    texts = set()
    for warm in (False, True, False):
        if not warm:
            cast(Any, equation_text).cache_clear()
        texts.add(text_of(f, x))
    assert len(texts) == 1


def test_constants_are_written_once_and_before_they_are_read() -> None:
    text = text_of(lambda x: (x + 0.25) * 0.25 - 0.25, vnp.arange(4.0))
    lines = text.splitlines()
    (place,) = [i for i, line in enumerate(lines) if "dense<2.5e-01>" in line] or [
        i for i, line in enumerate(lines) if "dense<0.25>" in line
    ]
    assert all("stablehlo." not in line for line in lines[:place])


def test_a_region_writes_its_own_constants() -> None:
    """What a comparator needs stands inside it: XLA lets it read nothing outside."""
    x = vnp.asarray([3.0, np.nan, -0.0, 0.0, 1.0])
    f = verax.jit(lambda x: (vnp.sort(x), vnp.argsort(-x), x + 0.0))
    np.testing.assert_array_equal(f(x)[0], np.sort(np.asarray(x)))


def test_names_of_several_results(asked: list[str]) -> None:
    def f(x: Any) -> Any:
        q, r = vnp.linalg.qr(x)
        values, places = lax.top_k(x, 2)
        return q @ r, values, places

    x = vnp.asarray([[1.0, 2.0], [3.0, 4.0]])
    product, values, places = verax.jit(f)(x)
    np.testing.assert_allclose(product, x, rtol=1e-5)
    np.testing.assert_array_equal(values, [[2.0, 1.0], [4.0, 3.0]])
    np.testing.assert_array_equal(places, [[1, 0], [1, 0]])


@pytest.mark.parametrize("name", ["per%cent", "100%s", "%d"])
def test_percent_signs_are_text(asked: list[str], name: str) -> None:
    def rule(
        e: Emitter, p: Params, xs: Sequence[Operand], outs: Sequence[ShapedArray]
    ) -> Sequence[Operand]:
        return e.op("stablehlo.abs", xs, outs, (), note=f'"{name}"')

    row = Row("noted", NoParams, typing=lambda p, avals: avals, lower=rule)
    text = equation_text(ENGINE, ("cpu",), row, NO_PARAMS, (F32,), (F32,), (False,))
    assert name in text.template % ("%2", "%1")


def test_a_rule_that_gives_its_operand_back(asked: list[str]) -> None:
    def rule(
        e: Emitter, p: Params, xs: Sequence[Operand], outs: Sequence[ShapedArray]
    ) -> Sequence[Operand]:
        return (xs[1], e.broadcast(xs[0], (4,), ()), e.constant(7.0, SCALAR))

    row = Row(
        "swap",
        NoParams,
        typing=lambda p, avals: (avals[1], F32, SCALAR),
        lower=rule,
    )
    x = vnp.arange(4.0)
    f = verax.jit(lambda x: row.bind(NO_PARAMS, np.float32(5), x))
    back, filled, seven = f(x)
    np.testing.assert_array_equal(back, x)
    np.testing.assert_array_equal(filled, [5.0] * 4)
    assert float(seven) == 7.0


def test_rules_that_need_the_module_have_no_text(asked: list[str]) -> None:
    @frozen
    class Holder(Params):
        jaxpr: Jaxpr

    inner = jaxpr_of(lambda x: x + 1.0, vnp.arange(4.0))

    def rule(
        e: Emitter, p: Holder, xs: Sequence[Operand], outs: Sequence[ShapedArray]
    ) -> Sequence[Operand]:
        return e.call(p.jaxpr, xs, "inner")

    row = Row("holder", Holder, typing=lambda p, avals: p.jaxpr.out_avals, lower=rule)
    with pytest.raises(NeedsModule):
        equation_text(ENGINE, ("cpu",), row, Holder(inner), (F32,), (F32,), (False,))
    f = verax.jit(lambda x: row.call(Holder(inner), x) + row.call(Holder(inner), x))
    np.testing.assert_array_equal(f(vnp.arange(4.0)), 2 * (np.arange(4.0) + 1))


def test_dead_equations_are_not_written_and_unused_inputs_not_taken() -> None:
    def f(x: Any, y: Any) -> Any:
        vnp.sin(vnp.cos(y))
        vnp.tanh(x)
        return vnp.exp(x)

    jaxpr = jaxpr_of(f, 1.0, 2.0)
    lowered = lower(ENGINE, jaxpr, "f", platforms=("cpu",))
    assert lowered.kept == (True, False)
    assert len(lowered.in_avals) == 1
    assert not {"sine", "cosine", "tanh"} & set(lowered.text.split('"stablehlo.')[1:])
    assert "tanh" not in lowered.text
    whole = lower(ENGINE, jaxpr, "f", platforms=("cpu",), keep_unused=True)
    assert whole.kept == (True, True)


def test_dead_results_of_kept_equations_keep_their_numbers() -> None:
    """A loop that loses a carry has fewer results; later variables stay."""

    def f(x: Any) -> Any:
        def body(carry: tuple[Any, Any], _: Any) -> tuple[Any, None]:
            a, b = carry
            return (a + 1.0, b * 2.0), None

        (a, _), _ = lax.scan(body, (x, x), None, length=3)
        return a * x

    actual = verax.jit(f)(2.0)
    assert float(actual) == 10.0


def test_a_long_equation_becomes_a_function_when_it_comes_again() -> None:
    text = text_of(lambda x: vnp.cumsum(x).sum() + x.sum() + (x * 2).sum(), np.ones(8))
    once = text_of(lambda x: x.sum(), np.ones(8))
    assert "func.call" not in once
    assert "func.call" in text


def test_what_computes_no_element_is_a_constant() -> None:
    """XLA ends the process on some nested loops over empty arrays."""

    def halved(x: Any) -> Any:
        return lax.while_loop(lambda s: ~(s[1] > 3), lambda s: (s[0], s[1] + 1), x)

    def f(x: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < s[1], halved, (x, x + 2.0))

    empty = np.ones((0,), np.float32)
    text = text_of(verax.vmap(f), empty)
    assert "while" not in text
    assert "add" not in text
    for actual in verax.jit(verax.vmap(f))(empty):
        assert actual.shape == (0,)
        assert actual.dtype == np.float32


def test_effects_without_elements_are_written() -> None:
    seen: list[tuple[int, ...]] = []

    def host(x: np.ndarray) -> np.ndarray:
        seen.append(x.shape)
        return x[:0]

    def f(x: Any) -> Any:
        return io_callback(host, verax.ShapeDtypeStruct((0,), np.float32), x)

    assert verax.jit(f)(vnp.ones(3)).shape == (0,)
    verax.effects_barrier()
    assert seen == [(3,)]

"""The kit on functions, rewrites, tables and fallbacks, as a user calls it."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from attrs import evolve, field, frozen
from hypothesis import given, settings, strategies as st

import verax
import verax.numpy as vnp
from verax import verify
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32
from verax.ir.jaxpr import NO_PARAMS, Jaxpr, NoParams
from verax.lax import gt_p, log1p, mul_p, sin_p
from verax.ops.core import CORE
from verax.rules.programs.derived import (
    composite,
    derived_columns,
    program_of,
    standard,
)
from verax.rules.rows.infer import infer
from verax.rules.rows.row import Domain, MissingRule, Row
from verax.transforms.engine.engine import StandardEngine
from verax.transforms.passes.cse import cse
from verax.verify import strategies

swish_p = composite(
    "swish", NoParams, lambda p, x: x / (1 + vnp.exp(-x)), draw=sin_p.draw
)
bare_p: Row[NoParams] = evolve(sin_p, name="bare", batch=None, lower=None)


def loss(weights: dict[str, Any], x: Any) -> dict[str, Any]:
    hidden = vnp.tanh(x @ weights["w"]) + weights["b"]
    return {"loss": vnp.mean(hidden**2), "largest": vnp.argmax(hidden)}


@verax.custom_vjp
def wrong_pullback(x: Any) -> Any:
    return vnp.sin(x) * vnp.exp(x)


wrong_pullback.defvjp(
    lambda x: (wrong_pullback(x), x), lambda x, ct: (ct * vnp.cos(x),)
)


@pytest.mark.slow
def test_function_of_pytrees_keeps_all_laws() -> None:
    weights = {"w": np.ones((3, 2), np.float32), "b": 0.5}
    report = verify.check_function(
        loss, weights, vnp.ones((4, 3)), cases=3, chains=[("vmap", "vjp")]
    )
    assert report.raise_if_broken()
    assert report["vjp"].verdict == "holds"
    assert report["vjp of vmap"].tried


def test_wrong_custom_rule_is_found_and_shown() -> None:
    report = verify.check_function(wrong_pullback, 1.0, laws=["vjp"], cases=10)
    assert report["vjp"].verdict == "broken"
    assert report["vjp"].proof is not None
    with pytest.raises(verify.LawsBroken):
        exec(report["vjp"].proof.snippet, {})


def test_function_with_a_memory_is_impure() -> None:
    calls = []

    def counts(x: Any) -> Any:
        calls.append(x)
        return x * len(calls)

    report = verify.check_function(counts, 1.0, laws=["purity"], cases=4)
    assert report["purity"].verdict == "broken"


def test_values_come_from_the_domain() -> None:
    struct = verax.ShapeDtypeStruct((2,), float32)
    inside = verify.check_function(
        vnp.log, struct, laws=["jvp"], domains=(Domain(0.5, 4.0),), cases=10
    )
    assert inside["jvp"].skips == ()


SUM = "{ lambda ; a:f32[] b:f32[]. let c:f32[] = add a b in (c,) }"


@pytest.mark.parametrize(
    "stack", [np.ones(2, np.float32), np.ones((2, 3), np.float32), np.float32(1)]
)
def test_values_of_a_case_are_stacked(stack: Any) -> None:
    vector = "{ lambda ; a:f32[2]. let b:f32[2] = sin a in (b,) }"
    said = re.escape("operand 0 is f32[2]: give n values of it as one array of shape")
    with pytest.raises(ValueError, match=said):
        verify.read_case(vector, [stack])
    verify.hold("compiled", verify.read_case(vector, [np.ones((1, 2), np.float32)]))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: verify.check_function(3, 1.0), TypeError),  # type: ignore[arg-type]  # wrong
        (lambda: verify.check_function(loss, "text"), TypeError),
        (lambda: verify.check_function(loss, 1.0, laws=["no"]), ValueError),
        (lambda: verify.check_function(loss, 1.0, chains=[("no",)]), ValueError),
        (lambda: verify.check_function(abs, 1.0, domains=[1, 2]), ValueError),
        (lambda: verify.check_primitive("no such"), ValueError),
        (lambda: verify.check_primitive(loss), TypeError),  # type: ignore[arg-type]  # wrong
        (lambda: verify.check_primitive(evolve(sin_p, draw=None)), ValueError),
        (lambda: verify.check_primitive("sin", laws=["no"]), ValueError),
        (lambda: verify.check_primitive("sin", derived="no"), ValueError),
        (lambda: verify.check_primitive("sin", rules={sin_p: ...}), TypeError),  # type: ignore[dict-item]  # wrong
        (lambda: verify.strategies.dtypes("quaternion"), ValueError),
        (lambda: verify.read_case(SUM, [np.ones(2)]), ValueError),
        (lambda: verify.read_case(SUM, [np.ones((2, 3))] * 2), ValueError),
    ],
)
def test_wrong_calls_say_so(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


@pytest.mark.slow
def test_composite_row_keeps_all_laws_and_says_what_is_derived() -> None:
    report = verify.check_primitive(swish_p, cases=6).raise_if_broken()
    assert [column for column, _ in report.derived] == list(derived_columns(swish_p))
    assert "jvp is derived: its composition, differentiated" in str(report)


def test_composite_row_has_the_types_of_its_operands() -> None:
    wide = ShapedArray((2,), np.dtype("float64"), True)
    assert infer(swish_p, NO_PARAMS, wide) == (wide,)
    assert program_of(swish_p, NO_PARAMS, (wide,)).out_avals == (wide,)


@pytest.mark.slow
def test_missing_batch_and_lowering_follow_and_can_be_refused() -> None:
    report = verify.check_primitive(bare_p, cases=6).raise_if_broken()
    assert [column for column, _ in report.derived] == ["batch", "lower"]
    x = vnp.arange(6.0).reshape(2, 3)
    mapped = verax.jit(verax.vmap(lambda x: bare_p.call(NO_PARAMS, x), in_axes=1))
    np.testing.assert_allclose(mapped(x), np.sin(np.asarray(x)).T, rtol=1e-6)
    refused = verify.check_primitive(bare_p, cases=3, laws=["typed"], derived="error")
    assert [f.law for f in refused.broken] == ["batch is written", "lower is written"]


def test_strict_table_names_what_to_write() -> None:
    strict = StandardEngine(standard.strict(), CORE)
    jaxpr = verax.make_jaxpr(lambda x: bare_p.call(NO_PARAMS, x))(1.0).jaxpr
    with pytest.raises(MissingRule, match="bare has no batch rule"):
        strict.batch(jaxpr, 2, (0,))


@frozen
class Rule:
    """A rewrite rule of a user's own class."""

    name: str
    pattern: Any
    replacement: Any
    ulps: float = 0.0
    domain: tuple[float, float] = (-np.inf, np.inf)
    params: dict[str, object] = field(factory=dict)

    def samples(self) -> tuple[tuple[ShapedArray, ...], ...]:
        return ((ShapedArray((2,), float32),),)


def test_rewrites_are_held_to_what_they_promise() -> None:
    right = Rule("log1p", lambda x: vnp.log(1 + x), log1p, ulps=4.0, domain=(0, 1e3))
    assert verify.check_rewrite(right, cases=20)
    wrong = Rule("square", lambda x: x * x, lambda x: x + x)
    report = verify.check_rewrite(wrong, cases=20)
    assert report["values"].verdict == "broken"
    assert "after:" in report["values"].evidence
    weak = Rule("double", lambda x: x * 1, lambda x: x.real.astype("int32"))
    assert verify.check_rewrite(weak, cases=20)["types"].verdict == "broken"


def reversed_outputs(jaxpr: Jaxpr) -> Jaxpr:
    """A transformation that mixes up the results."""
    return evolve(jaxpr, outvars=jaxpr.outvars[::-1])


def doubled(f: Any, args: Sequence[Any]) -> list[Any]:
    """A reference that nothing keeps: twice what the program computes."""
    return [2 * y for y in f(*args)]


def test_transformations_are_held_to_what_they_promise() -> None:
    rows = (sin_p, gt_p)
    assert verify.check_transformation(cse, rows=rows, equations=3, cases=5)
    wrong = verify.check_transformation(
        reversed_outputs, rows=rows, equations=2, cases=30
    )
    assert wrong["typed"].verdict == "broken"
    twice = verify.check_transformation(
        cse, reference=doubled, rows=(sin_p,), equations=1, cases=20
    )
    assert [f.law for f in twice.broken] == ["values"]


def test_tables_are_checked_row_by_row() -> None:
    report = verify.check_transformation({mul_p: mul_p}, cases=2, name="mine")
    assert report["mul: jvp"].verdict == "holds"


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_strategies_give_what_they_say(data: st.DataObject) -> None:
    shapes = data.draw(strategies.broadcastable_shapes(3))
    assert np.broadcast_shapes(*shapes) is not None
    shape, axis = data.draw(strategies.batched_shapes((2, 3), 5))
    assert shape[axis] == 5
    assert (*shape[:axis], *shape[axis + 1 :]) == (2, 3)
    actual = data.draw(strategies.indices(4))
    assert actual.shape == (3,)
    aval = data.draw(strategies.avals())
    assert data.draw(strategies.arrays(aval)).shape == aval.shape
    tree = data.draw(strategies.pytrees(st.just(1.0)))
    assert all(leaf == 1.0 for leaf in verax.tree_util.tree_leaves(tree))
    assert isinstance(data.draw(strategies.params_of(sin_p)), NoParams)


def test_importing_verax_does_not_import_the_kit() -> None:
    assert "verify" not in verax.__all__

"""Stories: NaNs, cache misses and rewrites, with their rows marked."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.explorer.exploration import Exploration
from verax.explorer.recording import Story
from verax.explorer.rows.row import Row
from verax.explorer.stories import page_of
from verax.rewrites import RewriteLoop, algebra, rewrite, stable, trace

VECTOR = np.array([0.0, 1.0], np.float32)


def story_of(result: Exploration) -> Story:
    assert result.content.story is not None
    return result.content.story


def told(result: Exploration) -> list[Row]:
    """The rows of a story, in order."""
    stages = result.content.stages
    return [stages[stage].rows[row] for stage, row in story_of(result).rows]


def roots(x: Any) -> Any:
    return vnp.sqrt(x).sum() + vnp.sin(x).sum()


def test_the_way_of_an_infinity_from_its_line() -> None:
    finding = verax.debug.find_infs(verax.grad(roots))(VECTOR)
    assert finding is not None
    actual = page_of(finding)
    rows = told(actual)
    assert rows[0].op == "sqrt"
    assert {row.op for row in rows[1:]} == {"div"}
    assert {row.source.function for row in rows} == {"roots"}
    story = story_of(actual)
    assert story.kind == "nan"
    assert story.title == str(finding).splitlines()[0]
    assert any(["operand 1" in text for text in story.text])
    document: Any = actual.document
    assert document["story"]["rows"] == [list(place) for place in story.rows]


def test_a_nan_within_a_loop_and_a_call() -> None:
    @verax.jit
    def step(c: Any, y: Any) -> Any:
        return vnp.log(c) + y, None

    def run(x: Any) -> Any:
        return lax.scan(step, x.sum(), x)[0]

    finding = verax.debug.find_nans(run)(-VECTOR)
    assert finding is not None
    (row,) = told(page_of(finding))
    assert row.op == finding.primitive == "log"
    assert row.depth >= 2


def test_what_came_in_has_no_rows() -> None:
    finding = verax.debug.find_nans(roots)(np.array([np.nan], np.float32))
    assert finding is not None
    actual = page_of(finding)
    assert story_of(actual).rows == ()
    assert "came in with" in story_of(actual).title


def test_a_finding_offers_its_page() -> None:
    finding = verax.debug.find_nans(lambda x: vnp.log(x))(-1.0)
    assert finding is not None
    assert "log" in finding.explore().html


def test_an_error_keeps_no_arguments() -> None:
    with verax.debug_nans(True), pytest.raises(FloatingPointError) as caught:
        verax.jit(vnp.log)(-1.0)
    finding = caught.value.finding  # type: ignore[attr-defined]  # of NonFinite
    with pytest.raises(ValueError, match="does not keep the arguments"):
        finding.explore()


def test_what_differs_from_earlier_calls() -> None:
    @verax.jit
    def add(x: Any, y: Any) -> Any:
        return x["w"] + y

    add({"w": 1.0}, np.ones(3, np.float32))
    explanation = add.explain({"w": 1.0}, np.ones(4, np.float32))
    actual = page_of(explanation)
    (row,) = told(actual)
    assert row.left.endswith("f32[4]")
    story = story_of(actual)
    assert story.kind == "explain"
    assert "shape (4,), previously (3,)" in story.text[0]
    assert "previously (3,)" in str(explanation.explore().document["story"])
    assert add.explain({"w": 1.0}, np.ones(3, np.float32)).hit


def test_a_hit_has_a_page_too() -> None:
    def double(x: Any, n: int) -> Any:
        return x * n

    fun = verax.jit(double, static_argnums=1)
    fun(1.0, 2)
    explanation = fun.explain(1.0, 2)
    assert explanation.hit
    assert story_of(page_of(explanation)).rows == ()


def softmax(x: Any) -> Any:
    y = lax.scan(lambda c, _: (vnp.log(1.0 + c), None), x, None, length=3)[0]
    return vnp.log(vnp.sum(vnp.exp(y))) + (x * 1.0 + 0.0).sum()


def test_every_step_of_a_rewrite() -> None:
    rules = [*stable(), *algebra()]
    actual = trace(softmax, rules)(VECTOR)
    names = [step.rule for step in actual.steps]
    assert names[0] == "log_of_one_plus"
    assert "log_of_sum_of_exp" in names
    first = actual.steps[0]
    assert [eqn.primitive.name for eqn in first.inside] == ["scan"]
    assert [eqn.primitive.name for eqn in first.before] == ["add", "log"]
    assert [eqn.primitive.name for eqn in first.after] == ["log1p"]
    assert "in scan: log_of_one_plus" in str(actual)
    applied = verax.rewrites.apply(rules)
    assert actual.after.jaxpr == applied(actual.before).jaxpr
    assert trace(actual.before, rules).after.jaxpr == actual.after.jaxpr


def test_the_page_of_a_rewrite_marks_what_each_step_did() -> None:
    actual = trace(softmax, stable())(VECTOR).explore()
    ops = [row.op for row in told(actual)]
    assert ops[:3] == ["add", "log", "log1p"]
    assert "reduce_max" in ops
    stages = actual.content.stages
    for stage in stages[1:]:
        rewritten = [row for row in stage.rows if "rewrite" in row.source.origin]
        assert rewritten
        assert all([row.origins for row in rewritten])


def test_a_rewrite_that_does_nothing() -> None:
    actual = trace(vnp.sin, stable())(1.0)
    assert actual.steps == ()
    assert actual.before.jaxpr == actual.after.jaxpr
    assert len(actual.explore().content.stages) == 1


def test_rules_that_do_not_end() -> None:
    @rewrite(lambda x, y: x + y)
    def swapped(x: Any, y: Any) -> Any:
        return y + x

    with pytest.raises(RewriteLoop):
        trace(lambda x, y: x + y, swapped)(1.0, VECTOR)

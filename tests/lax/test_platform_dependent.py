"""The choice by the platform is made in lowering, and goes through every rewrite."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.extend import MissingRule
from verax.ir.forms.parser import parse_jaxpr
from verax.ops.table import PRIMITIVES

X = np.array([[4.0, 1.0], [1.0, 9.0]], np.float32)


def chosen(x: Any) -> Any:
    """Plus one on a CPU, twice on a GPU, minus one elsewhere."""
    double = lambda x: x * 2  # noqa: E731
    return lax.platform_dependent(
        x, cpu=lambda x: x + 1, cuda=double, rocm=double, default=lambda x: x - 1
    )


OPERATIONS = {"cpu": "add", "cuda": "multiply", "rocm": "multiply", "tpu": "subtract"}


def text_of(f: Any, *platforms: str, x: Any = X) -> str:
    lowered = verax.jit(f).trace(x).lower(lowering_platforms=platforms)
    lowered.compiler_ir()
    return lowered.as_text()


@pytest.mark.parametrize("platform", OPERATIONS)
def test_each_platform_gets_its_own_function(platform: str) -> None:
    text = text_of(chosen, platform)
    actual = [name for name in set(OPERATIONS.values()) if f"stablehlo.{name}" in text]
    assert actual == [OPERATIONS[platform]]
    assert "stablehlo.case" not in text


def test_several_platforms_choose_when_they_run() -> None:
    text = text_of(chosen, "cuda", "cpu")
    assert '"stablehlo.case"(%arg0)' in text
    assert "stablehlo.subtract" not in text
    assert text.index("stablehlo.multiply") < text.index("stablehlo.add")


def test_it_runs_here_eagerly_compiled_and_within_everything() -> None:
    if verax.default_backend() != "cpu":
        pytest.skip("the values are those of a CPU")
    want = X + 1
    for f in (
        chosen,
        verax.jit(chosen),
        verax.vmap(chosen),
        verax.vmap(verax.jit(chosen)),
    ):
        np.testing.assert_array_equal(f(X), want)
    with verax.disable_jit():
        np.testing.assert_array_equal(verax.jit(chosen)(X), want)

    def loss(x: Any) -> Any:
        return (chosen(x) * x).sum()

    for transform in (verax.grad, verax.jacrev, verax.jacfwd):
        for f in (
            transform(loss),
            verax.jit(transform(loss)),
            transform(verax.jit(loss)),
        ):
            np.testing.assert_array_equal(f(X), 2 * X + 1)
    np.testing.assert_array_equal(
        verax.jit(verax.vmap(verax.grad(loss)))(np.stack([X, X]))[1], 2 * X + 1
    )
    steps, _ = lax.scan(lambda c, _: (chosen(c), None), X, None, length=3)
    np.testing.assert_array_equal(steps, X + 3)
    checkpointed = verax.grad(verax.checkpoint(loss))(X)
    np.testing.assert_array_equal(checkpointed, 2 * X + 1)


def test_a_batch_of_the_number_of_the_platform_is_not_a_choice_for_each() -> None:
    jaxpr = verax.make_jaxpr(verax.vmap(verax.grad(lambda x: chosen(x).sum())))(X)
    assert "cond_lanes" not in str(jaxpr)
    (index, cond) = [eqn for eqn in verax.make_jaxpr(chosen)(X).jaxpr.eqns]
    p = cond.params
    batched = verax.vmap(lambda i, x: cond.primitive.bind(p, i, x))(
        np.zeros(3, np.int32), np.stack([X] * 3)
    )
    assert index.primitive.name == "platform_index"
    np.testing.assert_array_equal(batched[0][2], chosen(X))


def test_its_jaxpr_is_text() -> None:
    jaxpr = verax.make_jaxpr(verax.grad(lambda x: chosen(x).sum()))(X).jaxpr
    assert parse_jaxpr(str(jaxpr), PRIMITIVES) == jaxpr
    assert "platform_index[platforms=((cpu,), (cuda, rocm), None)]" in str(jaxpr)


def test_a_function_may_use_what_other_platforms_lack() -> None:
    def f(x: Any) -> Any:
        return lax.platform_dependent(x, cpu=vnp.linalg.cholesky, default=lambda x: x)

    assert "lapack_" not in text_of(f, "tpu")
    both = text_of(f, "tpu", "cpu")
    assert both.count("lapack_spotrf_ffi") == 1
    expected = np.linalg.cholesky(X) if verax.default_backend() == "cpu" else X
    np.testing.assert_allclose(verax.jit(f)(X), expected, rtol=1e-6)


def test_a_platform_without_a_function_is_an_error_when_lowered() -> None:
    f = lambda x: lax.platform_dependent(x, tpu=vnp.sin, cpu=vnp.cos)  # noqa: E731
    verax.make_jaxpr(f)(X)
    message = r"functions for tpu, cpu, but is needed on cuda; .*\(cuda=\.\.\.\)"
    for platforms in (("cuda",), ("cpu", "cuda")):
        with pytest.raises(MissingRule, match=message):
            text_of(f, *platforms)
    assert "cosine" in text_of(f, "cpu")


def test_exported_for_several_platforms() -> None:
    exported = verax.export.export(verax.jit(chosen), platforms=("cuda", "cpu"))(X)
    assert exported.takes_platform
    assert exported.uses_global_constants
    assert exported.calling_convention_version == 2
    loaded = verax.export.deserialize(exported.serialize(vjp_order=1))
    assert loaded.takes_platform
    if verax.default_backend() == "cpu":
        for function in (exported.call, loaded.call, verax.jit(loaded.call)):
            np.testing.assert_array_equal(function(X), X + 1)
        slope = verax.grad(lambda x: loaded.call(x).sum())(X)
        np.testing.assert_array_equal(slope, np.ones_like(X))
    numbers = {"cuda": "dense<0>", "cpu": "dense<1>"}
    for platform, number in numbers.items():
        assert f"constant {number} : tensor<i32>" in text_of(loaded.call, platform)
    assert '"stablehlo.case"(%arg0)' in text_of(loaded.call, "cpu", "cuda")
    with pytest.raises(ValueError, match=r"for platforms cuda, cpu, but .* on tpu"):
        text_of(loaded.call, "tpu")
    plain = verax.export.export(verax.jit(vnp.sin), platforms=("cuda", "cpu"))(X)
    assert not plain.uses_global_constants
    assert plain.calling_convention_version == 1


def test_functions_for_unknown_platforms_are_never_used() -> None:
    def f(x: Any) -> Any:
        return lax.platform_dependent(x, metal=lambda x: x * 9, default=lambda x: x + 1)

    assert float(f(vnp.float32(1))) == float(verax.jit(f)(1.0)) == 2.0

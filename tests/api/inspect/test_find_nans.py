"""Where a NaN comes from: the equation, the line, the step, and what derived it."""

import inspect
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.debug import Finding, find_infs, find_nans

FLAGS = (True, False)


def found(fun: Any, *args: Any, **options: Any) -> Finding:
    """What both ways of running find: the same."""
    # On one line, for reports name the line of the call.
    first, second = [find_nans(fun, compiled=c, **options)(*args) for c in FLAGS]
    assert first is not None
    assert str(first) == str(second)
    return first


def root_or_zero(x: Any) -> Any:
    return vnp.where(x > 0, vnp.sqrt(x), 0.0)


def test_equation_line_and_values() -> None:
    def f(x: Any) -> Any:
        y = x + 1
        return vnp.log(y)

    finding = found(f, np.array([1.0, -3.0], np.float32))
    assert finding.primitive == "log"
    assert finding.kind == "NaN"
    assert finding.source.line == inspect.getsourcelines(f)[1] + 2
    assert not finding.backward
    assert finding.index == (1,)
    assert finding.operands is not None
    np.testing.assert_array_equal(finding.operands[0], [2.0, -2.0])
    assert finding.levels == ()
    assert "1 of 2 are NaN, the first at [1]" in str(finding)


def test_nothing_to_find() -> None:
    assert find_nans(vnp.log)(0.0) is None
    assert find_nans(lambda: 1.0)() is None
    assert find_nans(lambda x: x)(np.zeros((0, 3))) is None
    masked = find_nans(lambda x: vnp.max(vnp.where(x > 0, x, -vnp.inf)))
    assert masked(vnp.array([-1.0])) is None


def test_backward_pass() -> None:
    finding = found(verax.grad(root_or_zero), 0.0)
    assert finding.backward
    assert finding.transformation == "transpose(jvp)"
    assert finding.source.function == "root_or_zero"
    assert "backward pass" in str(finding)


def test_forward_mode_is_not_backward() -> None:
    finding = found(lambda x: verax.jvp(root_or_zero, (x,), (x,))[1], 0.0)
    assert not finding.backward


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_says_the_iteration(reverse: bool) -> None:
    def body(c: Any, y: Any) -> Any:
        return c - 1, vnp.sqrt(c) + y

    def f(x: Any) -> Any:
        return lax.scan(body, x, vnp.arange(5.0), reverse=reverse)

    finding = found(f, 2.0)
    (level,) = finding.levels
    assert level.step == 3
    assert f"iteration 3 of 5 of scan{' (row 1)' if reverse else ''}," in str(level)
    assert finding.operands is not None
    assert finding.operands[0] == -1.0


def test_loops_in_loops() -> None:
    def inner(c: Any, y: Any) -> Any:
        return c + 1, vnp.log(2.0 * 3 - c)

    def outer(c: Any, y: Any) -> Any:
        return lax.scan(inner, c, vnp.arange(4.0))[0], y

    finding = found(lambda x: lax.scan(outer, x, vnp.arange(3.0)), 0.0)
    assert [level.step for level in finding.levels] == [1, 3]


def test_while_body_and_predicate() -> None:
    def body(c: Any) -> Any:
        return c - 1

    finding = found(lambda x: lax.while_loop(lambda c: vnp.sqrt(c) >= 0, body, x), 2.0)
    assert "the predicate of while in iteration 3" in str(finding)
    finding = found(
        lambda x: lax.fori_loop(
            0, lax.stop_gradient(3), lambda i, c: vnp.sqrt(c - 1), x
        ),
        2.0,
    )
    assert finding.levels[0].step == 2


def test_branch_and_lane() -> None:
    def f(x: Any) -> Any:
        return lax.cond(x > 0, vnp.log, vnp.sqrt, x)

    assert "branch 0 of cond" in str(found(f, -1.0))
    finding = found(verax.vmap(f), vnp.array([1.0, 2.0, -3.0]))
    assert "branch 0 of cond for batch element 2" in str(finding)
    assert finding.results is not None
    assert finding.results[0].shape == ()


def test_custom_rules_and_calls() -> None:
    @verax.custom_jvp
    def f(x: Any) -> Any:
        return vnp.log(x)

    @f.defjvp
    def f_jvp(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return f(x), vnp.sqrt(-x) * t

    assert found(verax.jit(f), -1.0).primitive == "log"
    assert found(verax.grad(verax.jit(f)), 1.0).primitive == "sqrt"

    @verax.custom_vjp
    def g(x: Any) -> Any:
        return x

    g.defvjp(lambda x: (x, x), lambda x, ct: (ct * vnp.sqrt(-x),))
    assert found(verax.grad(g), 1.0).primitive == "sqrt"
    assert found(verax.checkpoint(vnp.log), -1.0).primitive == "log"
    assert "jit of root_or_zero" in str(found(verax.grad(verax.jit(root_or_zero)), 0.0))


def test_inputs_that_were_bad() -> None:
    def f(x: Any, y: Any) -> Any:
        return vnp.sum(x["w"]) + vnp.log(y)

    bad = {"w": np.array([1.0, np.nan])}
    finding = found(f, bad, 1.0)
    assert finding.primitive == ""
    assert finding.eqn is None
    assert finding.bad_inputs == ("argument x['w'] of f",)
    assert found(f, bad, -1.0).primitive == "log"


def test_constants() -> None:
    finding = found(lambda x: vnp.where(x > 0, x, vnp.nan), vnp.array([1.0, -1.0]))
    assert finding.primitive == "select_n"
    assert "nan, a constant" in str(finding)


def test_infinities() -> None:
    finding = found(lambda x: 1 / x, 0.0, infs=True)
    assert (finding.kind, finding.primitive) == ("infinity", "div")
    assert find_nans(lambda x: 1 / x)(0.0) is None
    only = find_infs(lambda x: vnp.log(-x) + 1 / (x - 1))(1.0)
    assert only is not None
    assert only.primitive == "div"
    assert find_infs(lambda x: vnp.where(x > 0, x, -vnp.inf))(-1.0) is None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "complex64"])
def test_dtypes(dtype: str) -> None:
    x = vnp.array([1.0, 0.0]).astype(dtype)
    finding = found(lambda x: x / x, x)
    assert finding.primitive == "div"
    assert finding.index == (1,)


def test_static_arguments_and_keywords() -> None:
    def f(x: Any, n: int, *, shift: Any) -> Any:
        return vnp.sqrt(x - shift) if n > 1 else x

    jitted = verax.jit(f, static_argnums=1)
    for search in (find_nans(jitted), find_nans(f, static_argnums=1)):
        finding = search(1.0, 2, shift=3.0)
        assert finding is not None
        assert finding.primitive == "sqrt"


def test_prints_happen_once(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any) -> Any:
        verax.debug.print("x = {}", x)
        return vnp.log(x)

    finding = find_nans(f)(-1.0)
    verax.effects_barrier()
    assert finding is not None
    assert finding.operands is not None
    assert capsys.readouterr().out == "x = -1.0\n"


def test_called_in_a_trace() -> None:
    with pytest.raises(TypeError, match=r"find_nans\(jit\(f\)\)"):
        verax.jit(lambda x: find_nans(vnp.log)(x) is None)(1.0)
    with pytest.raises(TypeError, match=r"takes a function"):
        find_nans(3)  # type: ignore[arg-type]  # what is tested

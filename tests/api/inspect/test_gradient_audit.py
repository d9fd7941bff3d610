"""What is wrong with a gradient: planted faults, each with its line, and none."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from property_tests.levels import crossed
from tests.typing.programs import gpt
from verax import lax, nn, random
from verax.debug import GradientAudit, GradientFinding, audit_gradient

ONES = vnp.ones(3)


def line_in(function: Callable[..., Any], text: str) -> int:
    """The number of the first line of a function that holds a text."""
    lines, start = inspect.getsourcelines(function)
    return start + next(i for i, x in enumerate(lines) if text in x)


def only(audit: GradientAudit) -> GradientFinding:
    (finding,) = audit.findings
    return finding


def test_dead_parameter() -> None:
    def loss(params: Any) -> Any:
        return (params["blocks"][0]["up"] ** 2).sum()

    params = {"blocks": [{"up": ONES, "down": ONES}]}
    audit = audit_gradient(loss)(params)
    finding = only(audit)
    assert finding.parameter == "params['blocks'][0]['down']"
    assert finding.kind == "blocked"
    assert finding.message == "the loss does not use it"
    assert (finding.file, finding.line, finding.code) == ("", 0, "")
    assert audit.value == 3
    assert audit.by_parameter(finding.parameter) == (finding,)
    assert audit.by_parameter("params['blocks'][0]['up']") == ()


def test_only_aux_uses_it() -> None:
    def loss(x: Any, y: Any) -> Any:
        return x * x, x * y

    audit = audit_gradient(loss, argnums=(0, 1), has_aux=True)(2.0, 3.0)
    finding = only(audit)
    assert (finding.parameter, finding.message) == ("y", "the loss does not use it")
    assert [x.norm for x in audit.parameters] == [4, 0]


def stopped(x: Any) -> Any:
    y = x * 2
    z = lax.stop_gradient(y)
    return (z**2).sum()


def chosen(x: Any) -> Any:
    y = x * 2
    best = vnp.argmax(y)
    return best * 1.0


def cast(x: Any) -> Any:
    y = x * 2
    z = y.astype(int)
    return (z * 1.0).sum()


def compared(x: Any) -> Any:
    y = x * 2
    z = y > 1
    return z.mean()


def rounded(x: Any) -> Any:
    y = x * 2
    z = vnp.floor(y)
    return z.sum()


def signed(x: Any) -> Any:
    y = x * 2
    z = vnp.sign(y)
    return z.sum()


def ordered(x: Any) -> Any:
    y = lax.top_k(x, 2)[1]
    return y.sum() * 1.0


def while_test(x: Any) -> Any:
    def test(c: Any) -> Any:
        return c < x.sum()

    return lax.while_loop(test, lambda c: c * 2, 1.0)


def custom(x: Any) -> Any:
    y = nothing_back(x)
    return y.sum()


@verax.custom_vjp
def nothing_back(x: Any) -> Any:
    return x * 2


nothing_back.defvjp(lambda x: (x * 2, None), lambda _, ct: (None,))

BARRIERS = (
    (stopped, "stop_gradient(", "stop_gradient passes no gradient on: its derivative"),
    (chosen, "argmax(", "argmax passes no gradient on: its result is int32,"),
    (cast, "astype(", "convert_element_type passes no gradient on: its result is i"),
    (compared, "y > 1", "gt passes no gradient on: its result is bool,"),
    (rounded, "floor(", "floor passes no gradient on: its derivative is zero"),
    (signed, "sign(", "sign passes no gradient on: its derivative is zero"),
    (ordered, "top_k(", "top_k passes no gradient on: its result is int32"),
    (custom, "nothing_back(x)", "nothing_back has a derivative of its own"),
)


def as_it_is(loss: Any, x: Any) -> Any:
    return loss(x)


def jitted(loss: Any, x: Any) -> Any:
    return verax.jit(loss)(x)


def checkpointed(loss: Any, x: Any) -> Any:
    return verax.checkpoint(loss)(x)


def mapped(loss: Any, x: Any) -> Any:
    return verax.vmap(loss)(vnp.stack([x, x])).sum()


def in_branch(loss: Any, x: Any) -> Any:
    return lax.cond(x.sum() > 0, loss, lambda x: 1.0, x)


def in_scan(loss: Any, x: Any) -> Any:
    # The loss of one row goes through the carry of the next.
    def step(carry: Any, row: Any) -> tuple[Any, None]:
        return (row, loss(carry[0]) + carry[1]), None

    return lax.scan(step, (x, 0.0), vnp.stack([x, x]))[0][1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("barrier", "around"),
    crossed(BARRIERS, [as_it_is, jitted, checkpointed, mapped, in_scan], 4),
)
@pytest.mark.usefixtures("little_effort")
def test_barriers(barrier: tuple[Any, str, str], around: Any) -> None:
    loss, text, message = barrier
    finding = only(audit_gradient(partial(around, loss))(vnp.arange(1.0, 4.0)))
    assert finding.kind == "blocked"
    assert finding.message.startswith(message)
    assert finding.line == line_in(loss, text)
    assert text in finding.code
    assert finding.file == __file__


@pytest.mark.slow
@pytest.mark.parametrize("around", [as_it_is, jitted, checkpointed])
def test_test_of_while(around: Any) -> None:
    finding = only(audit_gradient(partial(around, while_test))(ONES))
    assert finding.message.startswith("lt passes no gradient on: its result is bool")
    assert finding.line == line_in(while_test, "return c <")


def test_barrier_in_branch() -> None:
    finding = only(audit_gradient(partial(in_branch, stopped))(ONES))
    assert finding.message.startswith("gt passes no gradient on")
    line = line_in(stopped, "stop_gradient(")
    assert f"its other paths end at stop_gradient in line {line}" in finding.message


def test_an_open_path_is_enough() -> None:
    def loss(x: Any) -> Any:
        return stopped(x) + (x * (x > 0) * vnp.sign(x)).sum()

    assert audit_gradient(loss)(ONES).findings == ()


def doubled_forwards(x: Any) -> Any:
    return x * 2, None


@pytest.mark.slow
@pytest.mark.parametrize("answer", [lambda ct: None, vnp.zeros_like])
def test_custom_vjp_of_zero(answer: Any) -> None:
    @verax.custom_vjp
    def doubled(x: Any) -> Any:
        return x * 2

    doubled.defvjp(doubled_forwards, lambda _, ct: (answer(ct),))

    def loss(x: Any) -> Any:
        y = doubled(x)
        return y.sum()

    finding = only(audit_gradient(loss)(ONES))
    assert finding.kind == "blocked"
    assert finding.message == (
        "doubled has a derivative of its own (custom_vjp_call), which is zero"
    )
    assert finding.line == line_in(loss, "doubled(x)")


def test_straight_through_is_open() -> None:
    @verax.custom_vjp
    def rounded(x: Any) -> Any:
        return vnp.round(x)

    rounded.defvjp(lambda x: (vnp.round(x), None), lambda _, ct: (ct,))
    assert audit_gradient(lambda x: rounded(x).sum())(ONES).findings == ()


def test_custom_jvp_of_zero() -> None:
    @verax.custom_jvp
    def doubled(x: Any) -> Any:
        return x * 2

    doubled.defjvp(lambda xs, ts: (xs[0] * 2, vnp.zeros_like(ts[0])))
    finding = only(audit_gradient(lambda x: doubled(x).sum())(ONES))
    assert finding.kind == "blocked"
    assert finding.message.startswith("doubled has a derivative of its own")


def test_zero_by_value() -> None:
    def loss(params: Any) -> Any:
        return (nn.relu(params["w"] - 5) * params["v"]).sum()

    audit = audit_gradient(loss)({"w": ONES, "v": ONES})
    assert [(x.parameter, x.kind) for x in audit.findings] == [
        ("params['v']", "zero"),
        ("params['w']", "zero"),
    ]
    assert "params['v'], params['w']: zero everywhere" in str(audit)


def test_equal_gradients() -> None:
    def loss(params: Any) -> Any:
        return ((params["a"] + params["b"]) * vnp.arange(1.0, 4.0) * params["c"]).sum()

    params = {"a": ONES, "b": ONES, "c": 3 * ONES}
    finding = only(audit_gradient(loss)(params))
    assert (finding.parameter, finding.kind) == ("params['a']", "equal")
    assert finding.message.endswith("the gradient of params['b']")


# -----------------------------------------------------------------------------
# NaN and infinities.


def roots(x: Any) -> Any:
    root = vnp.sqrt(x)
    y = root * 2
    return vnp.where(x > 0, y, 0.0).sum()


@pytest.mark.slow
@pytest.mark.parametrize("around", [as_it_is, jitted, mapped])
def test_where_and_nan(around: Any) -> None:
    x = vnp.array([4.0, 0.0, 1.0])
    audit = audit_gradient(partial(around, roots))(x)
    finding = only(audit)
    assert np.isfinite(audit.value)
    assert finding.kind == "nan"
    assert finding.line == line_in(roots, "sqrt(")
    assert finding.message.startswith("1 of 3 elements are NaN; the first is made by")
    where = line_in(roots, "where(")
    assert f"the `where` in line {where} does not choose" in finding.message
    assert "where(x > 0, f(where(x > 0, x, 1)), 0)" in finding.message


@pytest.mark.slow
@pytest.mark.parametrize("f", [vnp.sqrt, vnp.log, lambda x: x**0.5, lambda x: 1 / x])
@pytest.mark.usefixtures("little_effort")
def test_safe_operands(f: Any) -> None:
    x = vnp.array([4.0, 0.0])
    unsafe = audit_gradient(lambda x: vnp.where(x > 0, f(x), 0.0).sum())(x)
    assert "does not choose these elements" in only(unsafe).message
    safe = audit_gradient(
        lambda x: vnp.where(x > 0, f(vnp.where(x > 0, x, 1.0)), 0.0).sum()
    )
    assert safe(x).findings == ()


def test_value_that_is_not_chosen_is_nan() -> None:
    def loss(x: Any) -> Any:
        return vnp.where(x != 0, vnp.sin(x) / x, 1.0).sum()

    finding = only(audit_gradient(loss)(vnp.array([0.0, 1.0])))
    assert "made by div on the way to the loss: the `where`" in finding.message


@pytest.mark.slow
def test_nan_without_where() -> None:
    finding = only(audit_gradient(lambda x: vnp.sqrt((x**2).sum()))(vnp.zeros(3)))
    assert finding.message.startswith("3 of 3 elements are NaN; the first is made by")
    assert "where" not in finding.message


@pytest.mark.slow
def test_loss_is_nan_or_infinite() -> None:
    finding = only(audit_gradient(vnp.log)(-1.0))
    assert (finding.parameter, finding.kind) == ("", "nan")
    assert finding.message.startswith("the loss is NaN; the first is made by log")
    audit = audit_gradient(lambda x: 1 / x)(0.0)
    assert [x.kind for x in audit.findings] == ["infinite", "infinite"]
    assert audit.findings[1].message.startswith("1 of 1 elements are infinite")
    assert audit.findings[1].line


@pytest.mark.slow
def test_worst_first() -> None:
    def loss(p: Any) -> Any:
        return roots(p["nan"]) + (p["a"] + p["b"]).sum()

    params = {"a": ONES, "b": ONES, "dead": ONES, "nan": vnp.zeros(3)}
    audit = audit_gradient(loss)(params)
    assert [x.kind for x in audit.findings] == ["nan", "blocked", "equal"]


# -----------------------------------------------------------------------------
# Depth.


def deep(weights: Any, x: Any, reverse: bool = False) -> Any:
    def step(h: Any, w: Any) -> tuple[Any, None]:
        h = vnp.tanh(h @ w)
        return h, None

    h, _ = lax.scan(step, x, weights, reverse=reverse)
    return (h**2).mean()


WEIGHTS = random.normal(random.key(2), (20, 8, 8))
INPUT = random.normal(random.key(1), (4, 8))


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.usefixtures("little_effort")
def test_vanishing(reverse: bool) -> None:
    weights = WEIGHTS[::-1] if reverse else WEIGHTS
    finding = only(audit_gradient(deep)(2.5 * weights, INPUT, reverse=reverse))
    assert (finding.parameter, finding.kind) == ("", "vanishing")
    assert f"in the loop of {__file__}:{line_in(deep, 'scan(')}" in finding.message
    assert finding.line == line_in(deep, "tanh(")
    ratio = float(finding.message.split()[-2])
    assert 0 < ratio < 1e-3


@pytest.mark.slow
def test_exploding() -> None:
    def loss(weights: Any, x: Any) -> Any:
        def step(h: Any, w: Any) -> tuple[Any, None]:
            return h @ w, None

        return lax.scan(step, x, weights)[0].mean()

    finding = only(audit_gradient(loss)(2 * WEIGHTS, INPUT))
    assert finding.kind == "exploding"
    assert float(finding.message.split()[-2]) > 1e3


@pytest.mark.slow
def test_good_depth() -> None:
    assert audit_gradient(deep)(0.35 * WEIGHTS, INPUT).findings == ()


@pytest.mark.slow
def test_zero_first_state() -> None:
    # The product of the weights and the first state, zero, is no sign of vanishing.
    def loss(w: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> tuple[Any, None]:
            h = vnp.tanh(h @ w + x)
            return h, None

        return lax.scan(step, vnp.zeros(8), xs)[0].sum()

    inputs = random.normal(random.key(3), (5, 8))
    assert audit_gradient(loss)(0.3 * WEIGHTS[0], inputs).findings == ()


@pytest.mark.slow
def test_line_far_off() -> None:
    def loss(params: Any, x: Any) -> Any:
        h = vnp.tanh(x @ params["a"])
        h = vnp.tanh(h @ params["b"])
        side = vnp.tanh(x @ params["c"])
        h = h + 1e-6 * side
        return (h @ params["d"]).sum()

    keys = random.split(random.key(4), 5)
    params = {n: random.normal(k, (8, 8)) for n, k in zip("abcd", keys, strict=False)}
    finding = only(audit_gradient(loss)(params, random.normal(keys[4], (4, 8))))
    assert (finding.kind, finding.line) == ("vanishing", line_in(loss, "1e-6"))
    assert "times the median of all lines" in finding.message


# -----------------------------------------------------------------------------
# No false alarms.


@pytest.mark.slow
def test_clean_network() -> None:
    def loss(params: Any, x: Any, y: Any) -> Any:
        for w, b in params[:-1]:
            x = nn.relu(x @ w + b)
        w, b = params[-1]
        right = nn.log_softmax(x @ w + b) * nn.one_hot(y, 10)
        return -right.sum(-1).mean()

    keys = random.split(random.key(0), 5)
    sizes = ((16, 64), (64, 64), (64, 10))
    scaled = [(2 / n) ** 0.5 for n, _ in sizes]
    params = [
        (scale * random.normal(k, size), vnp.zeros(size[1]))
        for k, size, scale in zip(keys, sizes, scaled, strict=False)
    ]
    x = random.normal(keys[3], (1024, 16))
    audit = audit_gradient(verax.jit(loss))(params, x, vnp.arange(1024) % 10)
    assert audit.findings == ()
    assert [x.path for x in audit.parameters][:2] == ["params[0][0]", "params[0][1]"]
    slopes = verax.grad(loss)(params, x, vnp.arange(1024) % 10)
    np.testing.assert_allclose(
        [x.norm for x in audit.parameters],
        [float(vnp.linalg.norm(g)) for g in verax.tree.leaves(slopes)],
        rtol=1e-4,
    )
    assert str(audit).startswith("gradient of loss: nothing found, 6 parameters\n")


@pytest.mark.slow
@pytest.mark.usefixtures("little_effort")
def test_gpt() -> None:
    config = gpt.Config(layers=1)
    params = gpt.init(config, random.key(0))
    starts = random.randint(random.key(1), (4, 1), 0, config.vocabulary)
    batch = (starts + 3 * vnp.arange(config.context + 1)) % config.vocabulary
    audit = audit_gradient(gpt.loss, has_aux=True)
    # At first each block ends with weights that are zero, so what is before has none.
    found = [(x.parameter, x.kind) for x in audit(params, config, batch).findings]
    assert found == [("params.blocks.qkv", "zero"), ("params.blocks.up", "zero")]
    keys = iter(random.split(random.key(2), 6))
    moved = verax.tree.map(
        lambda x: x + 0.05 * random.normal(next(keys), x.shape), params
    )
    assert audit(moved, config, batch).findings == ()


@pytest.mark.slow
@pytest.mark.parametrize("x", [vnp.zeros((0, 3)), vnp.ones(3, vnp.bfloat16), 1 + 1j])
def test_types(x: Any) -> None:
    assert audit_gradient(lambda x: (abs(x) ** 2).sum())(vnp.asarray(x)).findings == ()


@pytest.mark.slow
def test_static_arguments_and_keywords() -> None:
    @partial(verax.jit, static_argnames="n")
    def power(x: Any, *, n: int) -> Any:
        return lax.fori_loop(0, n, lambda i, c: c * x, 1.0)

    audit = audit_gradient(power)(2.0, n=3)
    assert (audit.name, audit.value, audit.parameters[0].norm) == ("power", 8, 12)


# -----------------------------------------------------------------------------
# Reports and errors.


def test_text_and_html() -> None:
    audit = audit_gradient(stopped)(ONES)
    title, first, where, heads, row = str(audit).splitlines()
    assert title == "gradient of stopped: 1 finding, 1 parameter"
    reason = "stop_gradient passes no gradient on: its derivative is zero"
    assert first == f"blocked: x: {reason}"
    assert where.strip().endswith("z = lax.stop_gradient(y)")
    assert heads.split() == ["parameter", "type", "norm", "std"]
    assert row.split() == ["x", "float32[3]", "0", "0"]
    html = audit._repr_html_()
    assert reason in html
    assert "<caption>Parameters</caption>" in html
    assert "GradientFinding(parameter='x', kind='blocked'" in repr(audit)


def test_errors() -> None:
    with pytest.raises(TypeError, match="audit_gradient takes a function, not 3"):
        audit_gradient(3)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(TypeError, match="int32: argument x of"):
        audit_gradient(lambda x: x.sum())(vnp.arange(3))
    with pytest.raises(TypeError, match="scalar-output"):
        audit_gradient(lambda x: x)(ONES)

    @verax.jit
    def inside(x: Any) -> Any:
        return audit_gradient(stopped)(x).value

    with pytest.raises(verax.errors.ConcretizationTypeError, match="put it outside"):
        inside(ONES)

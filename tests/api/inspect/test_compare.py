"""Two runs side by side: the first equation whose values part, the line, the step."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from attrs import evolve

import verax
import verax.numpy as vnp
from tests.typing.programs import gpt
from verax import lax, random
from verax.api.tracing.apply import ENGINE
from verax.debug import Comparison, Divergence, compare
from verax.transforms.comparing.alignment import NEAR, align, common
from verax.transforms.comparing.measures import Tolerance, measure, ulp
from verax.transforms.comparing.report import compare_sides
from verax.transforms.comparing.running import Runner
from verax.transforms.comparing.walking import Side


def parted(found: Comparison) -> Divergence:
    """Where values part, which has an equation on both sides."""
    assert found.first is not None, str(found)
    assert not found.agrees
    ElementTree.fromstring(f"<body>{found._repr_html_()}</body>")
    assert repr(found.first)
    assert repr(found.rows)
    return found.first


def agreed(found: Comparison) -> None:
    """That nothing parts."""
    assert found.first is None, str(found)
    assert "agree" in str(found)
    assert "agree" in repr(found)
    ElementTree.fromstring(f"<body>{found._repr_html_()}</body>")


def sides(first: Divergence) -> tuple[str, str]:
    """The primitives of both sides."""
    assert first.left is not None
    assert first.right is not None
    return first.left.primitive, first.right.primitive


def lines(first: Divergence, f: Any, g: Any) -> tuple[int, int]:
    """The lines of both sides, counted from the head of the function."""
    assert first.left is not None
    assert first.right is not None
    starts = [inspect.getsourcelines(fun)[1] for fun in (f, g)]
    left, right = first.left.source.line, first.right.source.line
    return left - starts[0], right - starts[1]


def chain(x: Any, sign: float) -> Any:
    """Thirty lines, in one of which the sign may be wrong."""
    for k in range(30):
        y = vnp.sin(x) * (k + 1)
        x = x - y if k == 17 and sign < 0 else x + y
        x = vnp.tanh(x / (k + 2))
    return x


def test_a_wrong_sign_in_one_of_thirty_lines() -> None:
    x = vnp.linspace(0.5, 1.0, 5)
    found = compare(lambda x: chain(x, 1.0), lambda x: chain(x, -1.0))(x)
    first = parted(found)
    assert sides(first) == ("add", "sub")
    assert first.left is not None
    assert first.right is not None
    np.testing.assert_array_equal(first.left.operands, first.right.operands)
    mul = first.left.operands[1]
    assert np.all(mul == np.sin(first.left.operands[0]) * np.float32(18))
    assert first.difference.absolute == pytest.approx(2 * mul.max())
    assert "at add and sub" in str(found)
    assert "code       x = x - y" in str(found)


def test_equal_programs_and_the_same_program() -> None:
    def f(x: Any) -> Any:
        return {"a": vnp.exp(x), "b": vnp.sin(x).sum()}

    x = vnp.arange(4.0)
    found = compare(f, f)(x)
    agreed(found)
    assert found.rows == ()
    assert found.outputs == {"output['a']": None, "output['b']": None}
    assert (found.left, found.right) == ("f (1)", "f (2)")
    agreed(compare(f, verax.jit(f))(x))
    agreed(compare(verax.jit(f), f)(x))
    agreed(compare(f, dtype="float64")(x))
    agreed(compare(lambda: 1.0, lambda: 1.0)())
    agreed(compare(lambda x: x, lambda x: x)(vnp.zeros((0, 3))))


def softplus(x: Any) -> Any:
    small = vnp.exp(-x)
    whole = 1 + small
    return vnp.log(whole)


def test_digits_that_cancel_by_line() -> None:
    found = compare(softplus, dtype="float64")(20.0)
    first = parted(found)
    assert sides(first) == ("log", "log")
    assert lines(first, softplus, softplus) == (3, 3)
    assert first.right is not None
    assert first.right.results[0].dtype == np.float64
    assert first.difference.relative == 1.0
    assert first.difference.right == pytest.approx(np.log1p(np.exp(-20.0)))
    assert found.rows[0].left.line == first.right.source.line
    agreed(compare(lambda x: vnp.log1p(vnp.exp(-x)), dtype="float64")(20.0))


@pytest.mark.slow
def test_other_precisions_keep_what_bits_mean() -> None:
    def f(key: Any) -> Any:
        x = random.normal(key, (64,))
        return x @ x, vnp.linalg.solve(vnp.diag(1 + x * x), x), vnp.fft.fft(x)

    agreed(compare(f, dtype="float64")(random.key(0)))
    found = compare(verax.jit(f), dtype="bfloat16", rtol=1e-5)(random.key(0))
    parted(found)
    assert (found.left, found.right) == ("jit(f)", "f in bfloat16")


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("wrap", [lambda f: f, verax.jit])
def test_scan_says_the_iteration(reverse: bool, wrap: Callable[..., Any]) -> None:
    def body(wrong: bool, c: Any, y: Any) -> Any:
        scale = vnp.where(c > 3, 1.25, 1.0) if wrong else 1.0
        return c + 1, vnp.exp(-c) * scale + y

    def f(wrong: bool, x: Any) -> Any:
        return lax.scan(partial(body, wrong), x, vnp.arange(6.0), reverse=reverse)

    first = parted(compare(partial(f, False), wrap(partial(f, True)))(0.5))
    assert first.left is not None
    (level,) = first.left.levels
    assert level.step == 3
    assert first.left.operands[0] == pytest.approx(np.exp(-3.5))
    assert next(eqn.primitive.name for eqn in first.only_right) == "gt"


def test_loops_in_loops() -> None:
    def inner(at: float, c: Any, y: Any) -> Any:
        return c + 1, vnp.where(c == at, 1.0, y)

    def f(at: float, x: Any) -> Any:
        def outer(c: Any, y: Any) -> Any:
            return lax.scan(partial(inner, at), c, vnp.arange(4.0))

        return lax.scan(outer, x, vnp.arange(3.0))

    first = parted(compare(partial(f, -1.0), partial(f, 6.0))(0.0))
    assert first.left is not None
    assert [level.step for level in first.left.levels] == [1, 2]


def test_while_by_iteration_and_predicate() -> None:
    def f(wrong: float, end: float, x: Any) -> Any:
        def body(c: Any) -> Any:
            return c[0] + 1, c[1] * 1.5 + vnp.where(c[0] == 4, wrong, 0.0)

        return lax.while_loop(lambda c: c[0] < end, body, (0.0, x))

    right = partial(f, 0.0, 6.0)
    agreed(compare(right, verax.jit(right))(2.0))
    first = parted(compare(right, partial(f, 1.0, 6.0))(2.0))
    assert first.left is not None
    assert first.left.levels[0].step == 4
    found = compare(right, partial(f, 0.0, 8.0))(2.0)
    assert "the predicate of while in iteration 6" in str(found)
    assert sides(parted(found)) == ("lt", "lt")


def test_branches_and_batch_elements() -> None:
    def f(at: float, other: Any, x: Any) -> Any:
        return lax.cond(x > at, vnp.log, other, x)

    ours, theirs = partial(f, 0.0, vnp.sin), partial(f, 0.0, vnp.cos)
    assert sides(parted(compare(ours, theirs)(-1.0))) == ("sin", "cos")
    agreed(compare(ours, theirs)(1.0))
    x = vnp.array([1.0, -2.0, 3.0])
    found = compare(verax.vmap(ours), verax.vmap(theirs))(x)
    assert "branch 0 of cond for batch element 1" in str(found)
    agreed(compare(verax.vmap(ours), verax.jit(verax.vmap(ours)))(x))
    assert sides(parted(compare(ours, partial(f, 5.0, vnp.sin))(2.0))) == ("gt", "gt")


def test_gradients() -> None:
    @verax.custom_vjp
    def sin(x: Any) -> Any:
        return vnp.sin(x)

    sin.defvjp(lambda x: (vnp.sin(x), x), lambda x, ct: (ct * vnp.sin(x),))
    first = parted(compare(verax.grad(sin), verax.grad(vnp.sin))(1.0))
    assert sides(first) == ("sin", "cos")

    def loss(x: Any, power: int) -> Any:
        return vnp.sum(vnp.tanh(x) ** power)

    x = vnp.arange(3.0)
    grads = [verax.grad(partial(loss, power=p)) for p in (2, 3)]
    first = parted(compare(*grads)(x))
    assert first.left is not None
    assert first.left.source.function == loss.__qualname__
    agreed(compare(grads[0], verax.jit(grads[0]))(x))


def test_a_refactoring_is_not_a_divergence() -> None:
    agreed(compare(lambda x, y: x * 2 + y * 2, lambda x, y: (x + y) * 2)(1.0, 2.0))

    def f(x: Any) -> Any:
        a = vnp.sin(x)
        b = vnp.cos(x)
        return vnp.exp(a * b)

    def g(x: Any) -> Any:
        b = vnp.cos(x)
        a = verax.jit(vnp.sin)(x)
        return vnp.exp(a * b) * 1.5

    found = compare(f, g)(0.5)
    first = parted(found)
    assert first.output == "output"
    assert [eqn.primitive.name for eqn in first.only_right] == []
    assert first.right is not None
    assert first.right.primitive == "mul"
    assert found.compared == 5


def test_what_one_program_has_alone() -> None:
    def f(x: Any) -> Any:
        return vnp.exp(vnp.sin(x) + 1)

    def g(x: Any) -> Any:
        return vnp.exp(-vnp.sin(x) * 0.5 + 1)

    first = parted(compare(f, g)(0.5))
    assert sides(first) == ("add", "add")
    assert first.only_left == ()
    assert [eqn.primitive.name for eqn in first.only_right] == ["neg", "mul"]


def test_refactored_wrongly_later() -> None:
    """What is aligned by chance does not hide the equation that is wrong."""

    def f(x: Any, y: Any) -> Any:
        return vnp.exp(x * 2 + y * 2) - 1

    def g(x: Any, y: Any) -> Any:
        return vnp.exp((x + y) * 2) - 1.5

    assert sides(parted(compare(f, g)(1.0, 2.0))) == ("sub", "sub")


def test_saved_programs() -> None:
    def f(x: Any, y: Any) -> Any:
        return vnp.exp(x["w"] * 2 + y)

    args = {"w": vnp.arange(3.0)}, 1.0
    saved = verax.ir.dumps(verax.make_jaxpr(f)(*args), sources=True)
    old = verax.ir.loads(saved)
    agreed(compare(old, f)(*args))
    agreed(compare(old, old)(*args))
    agreed(compare(old, dtype="float64")(*args))
    first = parted(compare(old, lambda x, y: vnp.exp(x["w"] * 2 - y))(*args))
    assert sides(first) == ("add", "sub")
    assert first.left is not None
    assert first.left.source.function == f.__qualname__
    with pytest.raises(TypeError, match=r"the program takes .*, but got"):
        compare(old, f)(*args, 1.0)


@pytest.mark.slow(nightly=True)
def test_compiled_training_step() -> None:
    config = gpt.Config(context=8, width=16, layers=1)
    params = gpt.init(config, random.key(0))
    zeros = verax.tree.map(vnp.zeros_like, params)
    adam = gpt.Adam(zeros, zeros, vnp.array(0))
    batch = (vnp.arange(4)[:, None] + 3 * vnp.arange(9)) % config.vocabulary

    plain = inspect.unwrap(gpt.train_step)
    found = compare(plain, gpt.train_step)(params, adam, config, batch, rate=1e-3)
    agreed(found)
    assert found.compared > 400
    assert found.rows
    assert all(row.parted == 0 for row in found.rows)

    def step(params: Any, adam: Any, batch: Any) -> Any:
        return plain(params, adam, config, batch)

    agreed(compare(step, dtype="float64")(params, adam, batch))


def test_tolerances() -> None:
    def f(x: Any) -> Any:
        return x * vnp.float32(1.0)

    def g(x: Any) -> Any:
        return x * vnp.float32(1.001)

    parted(compare(f, g)(1.0))
    agreed(compare(f, g, rtol=1e-2)(1.0))
    agreed(compare(f, g, rtol=0.0, atol=1e-2)(1.0))
    parted(compare(f, g, rtol=0.0, atol=1e-2)(100.0))
    half = vnp.array(1.0, "bfloat16")
    agreed(compare(lambda x: x * 1.0, lambda x: x * 1.05)(half))


def test_arrays_are_measured() -> None:
    default = Tolerance()

    def between(x: Any, y: Any, dtype: Any = np.float32) -> Any:
        return measure(np.asarray(x, dtype), np.asarray(y, dtype), default)

    assert between([1.0, np.nan, np.inf], [1.0, np.nan, np.inf]) is None
    assert between([0.0], [-0.0]) is None
    assert between([np.inf], [-np.inf]).excess == np.inf
    assert between([np.nan, 1.0], [0.0, 1.0]).index == (0,)
    assert between(1, 2, np.int32).absolute == 1
    top = 2**63
    assert between([top, 1], [top + 1, 1], np.uint64).absolute >= 1
    assert between([True], [False], np.bool_).ulps is None
    assert between([1 + 2j], [1 - 2j], np.complex64).absolute == 4
    one = np.float32(1)
    near = between(one, np.nextafter(one, np.float32(2)))
    assert near.ulps == 1
    assert not near.parts
    assert ulp(np.dtype("float32"), 0.0) == np.float32(1e-45)
    # A mask does not hide what else is in an array, nor noise make it part.
    assert between([-1e9, 0.25, 0.5, 1.0], [-1e9, 0.25, 0.5, 1.01]).parts
    assert not between([1.0, 2.0, 3.0, 1e-9], [1.0, 2.0, 3.0, 0.0]).parts


@pytest.mark.slow
def test_words_of_keys() -> None:
    def f(number: int, key: Any) -> Any:
        return random.split(key, 3)[number]

    first = parted(compare(partial(f, 1), partial(f, 2))(random.key(0)))
    assert first.left is not None
    assert first.left.results[0].dtype == np.uint32
    assert first.left.results[0].shape == (1, 2)
    agreed(compare(partial(f, 1), verax.jit(partial(f, 1)))(random.key(0)))
    rbg = random.key(0, impl="rbg")
    agreed(compare(partial(f, 1), verax.jit(partial(f, 1)))(rbg))


def test_programs_of_other_widths() -> None:
    def f(x: Any) -> Any:
        return vnp.exp(vnp.sin(x) * 3)

    def g(x: Any) -> Any:
        return f(x.astype("bfloat16")).astype("float32")

    x = vnp.arange(5.0)
    found = compare(f, g)(x)
    assert "convert_element_type" in str(found)
    assert sum(row.pairs for row in found.rows) >= 3


def test_what_the_compiler_does_to_the_whole() -> None:
    """An output that parts although no equation does, when run by itself."""
    jaxpr = verax.make_jaxpr(vnp.sin)(1.0).jaxpr
    left = Side("f", Runner(ENGINE), jaxpr)
    right = evolve(left, name="g", outputs=[np.array(0.5, np.float32)])
    found = compare_sides(
        left, right, [np.array(1, np.float32)], ["output"], Tolerance()
    )
    first = parted(found)
    assert (first.left, first.right, first.output) == (None, None, "output")
    assert "the compiled program as a whole does not" in str(found)


def test_effects_happen_in_both_and_shows_in_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen: list[float] = []

    def host(x: Any) -> Any:
        seen.append(float(x))
        return x

    def f(x: Any) -> Any:
        verax.debug.print("shown {}", x)
        aval = verax.ShapeDtypeStruct((), vnp.float32)
        return verax.experimental.io_callback(host, aval, vnp.sin(x)) * 2

    agreed(compare(f, verax.jit(f))(1.0))
    verax.effects_barrier()
    assert len(seen) == 2
    assert "shown" not in capsys.readouterr().out


def test_alignment() -> None:
    assert common("", "abc") == []
    assert common("abc", "abc") == [(0, 0), (1, 1), (2, 2)]
    assert len(common("abcbdab", "bdcaba")) == 4
    long = [0] * (3 * NEAR)
    assert len(common([*long, 1], [2, *long])) >= NEAR

    def f(x: Any) -> Any:
        return vnp.sin(x) + vnp.cos(x)

    jaxpr = verax.make_jaxpr(f)(1.0).jaxpr
    pairing = align(jaxpr, jaxpr, (0,), (0,))
    assert pairing.same
    assert pairing.order == ((0, 0), (1, 1), (2, 2))


def test_errors() -> None:
    wrong: Any = 3
    with pytest.raises(TypeError, match="compare takes functions and programs"):
        compare(wrong)
    with pytest.raises(TypeError, match="compare takes functions and programs"):
        compare(vnp.sin, wrong)
    with pytest.raises(TypeError, match="a second function or a dtype"):
        compare(vnp.sin)
    with pytest.raises(TypeError, match="a floating dtype"):
        compare(vnp.sin, dtype="int32")
    with pytest.raises(ValueError, match="rtol is not negative, but got -1"):
        compare(vnp.sin, vnp.cos, rtol=-1.0)
    word: Any = "much"
    with pytest.raises(TypeError, match="atol is a number or None, not 'much'"):
        compare(vnp.sin, vnp.cos, atol=word)
    with pytest.raises(TypeError, match=r"f returns .*\(\*, \*\).* g returns .*'a'"):
        compare(named("f", lambda x: (x, x)), named("g", lambda x: {"a": x}))(1.0)
    with pytest.raises(TypeError, match=r"output\['a'\] is ~?f32\[\] in f and f32\[2"):
        compare(
            named("f", lambda x: {"a": x}),
            named("g", lambda x: {"a": vnp.zeros(2) + x}),
        )(1.0)
    ref = verax.new_ref(vnp.zeros(2))
    with pytest.raises(TypeError, match="mutable references"):
        compare(lambda ref: ref[...], lambda ref: ref[...] + 1)(ref)
    with pytest.raises(verax.errors.ConcretizationTypeError, match="put it outside"):
        verax.jit(compare(vnp.sin, vnp.cos))(1.0)


def named(name: str, fun: Callable[..., Any]) -> Callable[..., Any]:
    fun.__name__ = name
    return fun


def test_keys_and_numbers_in_each_others_place() -> None:
    def f(key: Any, x: Any) -> Any:
        return random.bits(key, ())

    def g(key: Any, x: Any) -> Any:
        return ~x

    first = parted(compare(f, g)(random.key(0), vnp.uint32(5)))
    assert sides(first) == ("random_bits", "not")
    assert [eqn.primitive.name for eqn in first.only_left] == []

    def steps(fun: Any) -> Any:
        def body(key: Any, x: Any) -> Any:
            return random.fold_in(key, 1), fun(key, x)

        return lambda key: lax.scan(body, key, vnp.arange(3, dtype="uint32"))[1]

    first = parted(compare(steps(f), steps(g))(random.key(0)))
    assert first.left is not None
    assert first.left.levels[0].step == 0


def test_loops_of_other_kinds_do_not_go_in_step() -> None:
    def scanned(x: Any) -> Any:
        def body(c: Any, y: Any) -> Any:
            return c, y.sum() + c[0]

        return lax.scan(body, vnp.zeros(3), x)

    def chosen(x: Any) -> Any:
        def one(row: Any) -> Any:
            return lax.cond(
                row[0] > 0, lambda r: (r[0], r[1]), lambda r: (r[1], r[0]), row
            )

        return verax.vmap(one)(x)

    x = vnp.arange(9.0).reshape(3, 3)
    first = parted(compare(scanned, chosen)(x))
    assert first.place


def test_infinite_tolerances() -> None:
    x = vnp.array([1.0, 0.0])
    for rtol, atol in ((np.inf, None), (None, np.inf)):
        found = compare(lambda x: x / 0, lambda x: -x / 0, rtol=rtol, atol=atol)(x)
        agreed(found)
        assert all(row.difference.excess <= 1 for row in found.rows)


@pytest.mark.parametrize("count", [0, 1])
def test_loops_without_an_iteration(count: int) -> None:
    def scanned(x: Any, factor: float) -> Any:
        return lax.scan(lambda c, y: (c * factor, c + y), x, vnp.zeros(count))

    def until(x: Any, factor: float) -> Any:
        return lax.while_loop(lambda c: c < count, lambda c: c + factor, x)

    for loop, x in ((scanned, 1.0), (until, 0.0)):
        f, g = partial(loop, factor=2.0), partial(loop, factor=3.0)
        for other in (g, verax.jit(g)):
            found = compare(f, other)(x)
            if count:
                parted(found)
            else:
                agreed(found)


def test_nothing_to_compare() -> None:
    agreed(compare(lambda x: x * 2, lambda x: x * 3)(vnp.zeros((0, 3))))
    agreed(compare(lambda x: None, lambda x: None)(1.0))
    empty = random.split(random.key(0), 0)
    agreed(compare(lambda k: k, lambda k: vnp.flip(k))(empty))


def test_booleans_and_integers() -> None:
    x = vnp.array([0, 255], dtype="uint8")
    found = parted(compare(lambda x: x - 1, lambda x: x + 1)(x)).difference
    assert (found.left, found.right, found.ulps) == (255, 1, None)
    found = parted(compare(lambda x: x > 0, lambda x: x + 1)(x)).difference
    assert (found.index, found.left, found.right) == ((0,), False, 1)

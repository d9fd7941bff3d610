"""`verax.debug.watch`: what values a program has while it runs, line by line."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax, nn, random
from verax.debug import WatchedValue, watch
from verax.errors import AbstractValueError

X = np.linspace(-2, 3, 12, dtype=np.float32).reshape(3, 4)


def line_in(f: Callable[..., Any], offset: int) -> int:
    """The number of a line of a function, counted from its `def`."""
    return f.__code__.co_firstlineno + offset


def single(values: tuple[WatchedValue, ...]) -> WatchedValue:
    (value,) = values
    return value


def agrees(v: WatchedValue, x: np.ndarray) -> None:
    """A value was what NumPy says of all its elements."""
    finite = x[np.isfinite(x)].astype(np.float64)
    np.testing.assert_allclose(v.least, finite.min(), rtol=1e-6)
    np.testing.assert_allclose(v.greatest, finite.max(), rtol=1e-6)
    np.testing.assert_allclose(v.mean, finite.mean(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(v.std, finite.std(), rtol=1e-4, atol=1e-6)
    assert v.zeros == pytest.approx((x == 0).mean())
    assert (v.nans, v.infinite) == (np.isnan(x).sum(), np.isinf(x).sum())


def two_lines(x: Any) -> Any:
    y = vnp.exp(x) * 2
    return vnp.log(y - 1)


@pytest.mark.slow
@pytest.mark.parametrize("run", [lambda f: f, verax.jit])
def test_each_line_says_what_leaves_it(run: Callable[..., Any]) -> None:
    out, seen = run(watch(two_lines))(X)
    np.testing.assert_array_equal(out, verax.jit(two_lines)(X))
    y = np.exp(X) * 2
    agrees(single(seen.by_line(line_in(two_lines, 1))), y)
    agrees(single(seen.by_line(line_in(two_lines, 2))), np.asarray(out))
    assert [v.primitive for v in seen.values] == ["mul", "log"]
    assert seen.values[0].function == "two_lines"
    assert seen.values[0].code == "y = vnp.exp(x) * 2"


def test_every_equation() -> None:
    _, seen = watch(two_lines, every=True)(X)
    assert [v.primitive for v in seen.values] == ["exp", "mul", "sub", "log"]


def test_odd_values_are_counted() -> None:
    x = np.array([0, -0.0, np.nan, np.inf, -np.inf, 1, 70000, 1e-6], np.float32)
    _, seen = watch(lambda x: x * 1.0)(x)
    (v,) = seen.values
    agrees(v, x)
    assert v.exponents[0] == 2 / 8
    assert v.exponents[127] == 1 / 8
    assert (v.above_float16, v.below_float16) == (1 / 8, 1 / 8)
    assert v.notes.startswith("1 NaN, 2 infinite, 12 % above float16")


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (9001,), (70, 81)])
@pytest.mark.parametrize(
    "dtype", [np.float32, vnp.float16, vnp.bfloat16, vnp.float8_e4m3fn, np.complex64]
)
@pytest.mark.usefixtures("little_effort")
def test_shapes_and_dtypes(shape: tuple[int, ...], dtype: Any) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    x = vnp.asarray(values).astype(dtype)
    out, seen = watch(lambda x: -x)(x)
    (v,) = seen.values
    assert v.runs == 1
    host = np.asarray(abs(out) if dtype is np.complex64 else out).astype(np.float32)
    if host.size:
        agrees(v, host)
        assert v.exponents.sum() == pytest.approx(1)
    else:
        assert np.isnan(v.mean)


def test_a_large_mean_does_not_swallow_the_deviation() -> None:
    x = (1e4 + np.random.default_rng(0).normal(size=5000)).astype(np.float32)
    _, seen = watch(lambda x: x * 1.0)(x)
    agrees(seen.values[0], x)


def looped(x: Any, rows: Any) -> Any:
    def step(c: Any, row: Any) -> Any:
        d = c * row
        return d, vnp.sum(d)

    return lax.scan(step, x, rows)


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 5, 64, 65, 200])
@pytest.mark.usefixtures("little_effort")
def test_the_course_of_a_loop(length: int) -> None:
    rows = np.random.default_rng(1).uniform(0.9, 1.1, length).astype(np.float32)
    (_, ys), seen = watch(looped)(X, rows)
    v = single(seen.by_line(line_in(looped, 2)))
    carries = np.stack([X * np.prod(rows[: i + 1]) for i in range(length)])
    assert v.runs == length
    np.testing.assert_allclose(v.least, carries.min(), rtol=1e-4)
    np.testing.assert_allclose(v.std, carries.std(), rtol=1e-3)
    (course,) = v.courses
    assert len(course.iterations) == min(length, 64)
    assert course.iterations[0] == 0
    starts = [*course.iterations, length]
    for i, (a, b) in enumerate(pairwise(starts)):
        np.testing.assert_allclose(course.greatest[i], carries[a:b].max(), rtol=1e-4)
        np.testing.assert_allclose(course.mean[i], carries[a:b].mean(), rtol=1e-3)
    assert f"test_watch.py:{line_in(looped, 5)} (looped)" in course.loop
    np.testing.assert_allclose(ys[-1], carries[-1].sum(), rtol=1e-4)


def test_a_loop_with_an_open_end() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda x: x[0] < 1000, lambda x: x + 1, x)

    out, seen = watch(f)(vnp.zeros(2))
    inner = next(v for v in seen.values if v.courses)
    assert (inner.runs, inner.least, inner.greatest) == (1000, 1, 1000)
    (course,) = inner.courses
    assert list(course.iterations[:33]) == [*range(33)]
    np.testing.assert_array_equal(course.least, course.iterations + 1)
    assert course.greatest[-1] == 1000
    assert out.tolist() == [1000, 1000]


def test_loops_in_loops_have_a_course_each() -> None:
    def f(x: Any) -> Any:
        def outer(c: Any, _: Any) -> Any:
            return lax.fori_loop(0, 3, lambda i, c: c + 1, c) * 2, None

        return lax.scan(outer, x, None, 4)[0]

    out, seen = watch(f)(0.0)
    inner = next(v for v in seen.values if len(v.courses) == 2)
    by_length = {len(c.iterations): c for c in inner.courses}
    assert inner.runs == 12
    assert by_length[4].greatest.tolist() == [3, 9, 21, 45]
    assert by_length[3].greatest.tolist() == [43, 44, 45]
    assert float(out) == 90


@pytest.mark.parametrize("x", [1.0, -1.0])
def test_only_the_branch_that_ran_counts(x: float) -> None:
    def f(x: Any) -> Any:
        def positive(x: Any) -> Any:
            return x + 10

        def negative(x: Any) -> Any:
            return x - 10

        return lax.cond(x > 0, positive, negative, x)

    _, seen = watch(f)(x)
    runs = {v.function.split(".")[-1]: v.runs for v in seen.values}
    assert runs == {"positive": x > 0, "negative": x < 0, "f": 1}


@pytest.mark.slow
def test_batch_elements_count_together() -> None:
    xs = np.stack([X, 2 * X, -X])
    for run in (watch(verax.vmap(two_lines)), verax.vmap(watch(two_lines))):
        out, seen = verax.jit(run)(xs)
        np.testing.assert_array_equal(out, verax.jit(verax.vmap(two_lines))(xs))
        agrees(seen.by_line(line_in(two_lines, 1))[0], np.exp(xs) * 2)


def test_branches_of_batch_elements() -> None:
    def f(x: Any) -> Any:
        def positive(x: Any) -> Any:
            return x + 10

        def negative(x: Any) -> Any:
            return x - 10

        return lax.cond(x > 0, positive, negative, x)

    xs = vnp.array([1.0, -2.0, 3.0])
    out, seen = watch(verax.vmap(f))(xs)
    assert out.tolist() == [11, -12, 13]
    ran = {v.function.split(".")[-1]: v for v in seen.values}
    assert (ran["positive"].least, ran["positive"].greatest) == (11, 13)
    assert (ran["negative"].least, ran["negative"].greatest) == (-12, -12)
    assert (ran["positive"].runs, ran["negative"].runs) == (2, 1)


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [0, 1, 300])
def test_many_batch_elements_make_no_longer_program(lanes: int) -> None:
    def f(x: Any) -> Any:
        return lax.cond(x > 0, lambda x: vnp.exp(x) + 1, lambda x: x - 1, x)

    xs = np.random.default_rng(0).normal(size=lanes).astype(np.float32)
    out, seen = watch(verax.vmap(f), every=True)(xs)
    np.testing.assert_array_equal(out, verax.jit(verax.vmap(f))(xs))
    there, back = (v for v in seen.values if v.primitive in ("add", "sub"))
    assert {there.runs, back.runs} == {(xs > 0).sum(), (xs <= 0).sum()}
    if lanes:
        agrees(seen.values[-1], np.asarray(out))
    long = verax.make_jaxpr(lambda xs: watch(verax.vmap(f), every=True)(xs)[0])(xs)
    assert len(long.eqns[-1].params["jaxpr"].eqns) < 400


def loss(w: Any, x: Any) -> Any:
    h = nn.silu(x @ w)
    return vnp.sum(h**2)


def test_cotangents_stand_at_their_lines() -> None:
    w = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2)
    (value, slope), seen = watch(verax.value_and_grad(loss))(w, X)
    own = verax.jit(verax.value_and_grad(loss))(w, X)
    np.testing.assert_array_equal(value, own[0])
    np.testing.assert_array_equal(slope, own[1])
    back = seen.by_line(line_in(loss, 1), "cotangent")
    agrees(back[-1], np.asarray(slope))
    assert seen.by_line(line_in(loss, 2), "value")
    assert "← " in str(seen)


def test_it_may_be_differentiated() -> None:
    w = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2)
    slope, seen = verax.grad(watch(loss), has_aux=True)(w, X)
    np.testing.assert_allclose(slope, verax.grad(loss)(w, X), rtol=1e-6)
    agrees(single(seen.by_line(line_in(loss, 1))), np.asarray(nn.silu(X @ w)))
    wanted = verax.jacfwd(loss)(w, X)
    found = verax.jacfwd(lambda w, x: watch(loss)(w, x)[0])(w, X)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_rules_of_the_user_stay() -> None:
    @verax.custom_vjp
    def f(x: Any) -> Any:
        return vnp.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * 100,))
    slope = verax.grad(lambda x: watch(lambda x: f(x) + 0)(x)[0])(1.0)
    assert float(slope) == 100


def test_inside_other_programs() -> None:
    def step(c: Any, x: Any) -> Any:
        y, seen = watch(two_lines)(x)
        return c + y.sum(), seen

    total, seen = lax.scan(step, 0.0, vnp.stack([X, X + 1]))
    v = seen.by_line(line_in(two_lines, 1))[0]
    agrees(v, np.exp(np.stack([X, X + 1])) * 2)
    assert np.isnan(float(total))  # of log

    def peeks(x: Any) -> Any:
        _, seen = watch(two_lines)(x)
        return seen.values[0].mean

    with pytest.raises(AbstractValueError):
        verax.jit(peeks)(X)


def test_static_arguments_and_captured_arrays() -> None:
    scale = vnp.array([2.0, 3.0])

    def f(x: Any, power: int) -> Any:
        return (x * scale) ** power

    out, seen = watch(f, static_argnums=1)(vnp.ones(2), 3)
    assert out.tolist() == [8, 27]
    assert watch(verax.jit(f, static_argnums=1))(vnp.ones(2), 2)[0].tolist() == [4, 9]
    name = f"test_watch.py:{line_in(f, 1)}/value/integer_pow/mean"
    assert seen.log()[name] == 17.5
    inside = verax.jit(lambda s: watch(lambda x: x * s)(vnp.ones(2)))(4.0)
    assert inside[0].tolist() == [4, 4]


def test_faults_are_found_by_line() -> None:
    def network(params: Any, x: Any) -> Any:
        h = x @ params["first"]
        dead = nn.relu(h - 1e6)
        wide = (h * 1e5).astype(vnp.float16)
        root = vnp.sqrt(h - 100)
        return h.sum() + dead.sum() + wide.astype(vnp.float32).sum() + root.sum()

    _, seen = watch(network)({"first": vnp.ones((4, 2))}, X + 3)
    notes = {v.line - line_in(network, 0): v.notes for v in seen.values if v.notes}
    assert notes[2] == "all zero"
    assert notes[3] == "6 infinite"
    assert notes[4] == "6 NaN"
    assert "6 NaN" in str(seen)
    assert "6 NaN" in seen._repr_html_()
    assert repr(seen) == f"<Watched: {len(seen.values)} values of network>"


def test_keys_and_integers_pass_by() -> None:
    def f(key: Any) -> Any:
        numbers = random.randint(key, (3,), 0, 10)
        return numbers + 1

    out, seen = watch(f)(random.key(0))
    assert out.tolist() == f(random.key(0)).tolist()
    assert all(v.type.startswith("f32") for v in seen.values)


def test_double_precision() -> None:
    with verax.enable_x64(True):
        x = vnp.asarray([1e-200, 1e200])
        _, seen = watch(lambda x: x * 1.0)(x)
        assert (seen.values[0].least, seen.values[0].greatest) == (1e-200, 1e200)


def test_wrong_calls() -> None:
    with pytest.raises(TypeError, match="watch takes a function, not 3"):
        watch(3)  # type: ignore[arg-type]  # on purpose


@pytest.mark.slow
@pytest.mark.parametrize("every", [False, True])
def test_a_call_of_a_jitted_function_is_no_value_of_its_own(every: bool) -> None:
    jitted = verax.jit(verax.jit(two_lines))
    for f in (jitted, lambda x: jitted(x)):
        _, seen = watch(f, every=every)(X)
        _, wanted = watch(two_lines, every=every)(X)
        assert [(v.line, v.primitive, v.mean) for v in seen.values] == [
            (v.line, v.primitive, v.mean) for v in wanted.values
        ]


@pytest.mark.slow
def test_a_call_within_one_line_is_named_by_what_makes_its_result() -> None:
    f = verax.jit(vnp.var)
    _, seen = watch(lambda x: f(x) + 1)(X)
    assert [v.primitive for v in seen.values] == ["add"]
    _, seen = watch(f)(X)
    assert [v.primitive for v in seen.values] == ["div"]
    passing = verax.jit(lambda x: x)
    _, seen = watch(lambda x: passing(x * 1.0))(X)
    assert [v.type for v in seen.values] == ["f32[3,4]"]


def test_cotangents_of_a_jitted_loss() -> None:
    w = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2)
    _, seen = watch(verax.grad(verax.jit(loss)))(w, X)
    assert "jit" not in {v.primitive for v in seen.values}
    back = seen.by_line(line_in(loss, 1), "cotangent")
    agrees(back[-1], np.asarray(verax.grad(loss)(w, X)))


SIZES = (1, 3, 63, 64, 65, 500, 513, 4096, 4097, 8192, 8193)


@pytest.mark.slow
@pytest.mark.parametrize("order", [SIZES, SIZES[::-1]])
def test_values_of_other_sizes_are_measured_together(order: tuple[int, ...]) -> None:
    def body(xs: Any) -> Any:
        return [vnp.negative(x) for x in xs]

    rng = np.random.default_rng(0)
    xs = [rng.normal(size=size).astype(np.float32) for size in order]
    for x in xs:
        x[:: max(2, x.size // 9)][1:] = np.nan
        x[1 : x.size // 2 : 7] = np.inf
        x[2 : x.size // 2 : 5] = 0
    _, seen = watch(body, every=True)([*xs, vnp.zeros(0)])
    assert [v.type for v in seen.values] == [f"f32[{size}]" for size in (*order, 0)]
    for v, x in zip(seen.values, xs, strict=False):
        agrees(v, -x)
        some = x if x.size <= 4096 else x[:: -(-x.size // 4096)]
        exponents = np.bincount((some.view(np.int32) >> 23) & 255, minlength=256)
        np.testing.assert_allclose(v.exponents, exponents / some.size, rtol=1e-6)
    empty = seen.values[-1]
    assert (empty.runs, empty.nans, empty.zeros) == (1, 0, 0)
    assert np.isnan(empty.least)


def test_programs_that_measure_themselves_stay_small() -> None:
    def many(x: Any) -> Any:
        for _ in range(50):
            x = vnp.sin(x)
        return x

    def count(fun: Any) -> int:
        return str(verax.make_jaxpr(fun)(X)).count(" = ")

    assert count(watch(many, every=True)) < count(many) + 4 * 50 + 80

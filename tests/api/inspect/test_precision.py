"""Where digits go: planted losses, each with its line, and no false alarms."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax, nn, random
from verax.debug import PrecisionLine, PrecisionReport, precision
from verax.rewrites import stable

HALF = vnp.float16
BRAIN = vnp.bfloat16


def line_of(function: Callable[..., Any]) -> int:
    """The number of the line that is marked as the one that loses digits."""
    lines, start = inspect.getsourcelines(function)
    return start + next(i for i, x in enumerate(lines) if "# here" in x)


def cancellation(x: Any) -> Any:
    y = x * 1.1
    z = y - 1.1 * (x - 1e-5)  # here
    return z * 3


def variance(x: Any) -> Any:
    y = x + 0.1
    return vnp.mean(y**2) - vnp.mean(y) ** 2  # here


def log_of_one_less_exp(x: Any) -> Any:
    y = x * 0.7
    return vnp.log(1 - vnp.exp(-y))  # here


def long_sum(x: Any) -> Any:
    def step(total: Any, x: Any) -> Any:
        return total + x, None  # here

    return lax.scan(step, HALF(0), x)[0]


def softmax(x: Any) -> Any:
    y = x * 1.5
    z = vnp.exp(y) / vnp.sum(vnp.exp(y))  # here
    return z * 2


def kahan_undone(x: Any) -> Any:
    def step(state: Any, x: Any) -> Any:
        total, lost = state
        more = total + x  # here
        lost = (more - total) - x
        return (more, lost), None

    return lax.scan(step, (vnp.float32(0), vnp.float32(0)), x)[0][0]


def kahan(x: Any) -> Any:
    def step(state: Any, x: Any) -> Any:
        total, lost = state
        y = x - lost
        more = total + y
        return (more, (more - total) - y), None

    return lax.scan(step, (vnp.float32(0), vnp.float32(0)), x)[0][0]


def time_step(t: Any) -> Any:
    dt = (t + 1e-3) - t  # here
    return dt * 2


def squares(x: Any, y: Any) -> Any:
    a, b = x / 3, y / 3
    return a**2 - b**2  # here


def root(a: Any, b: Any, c: Any) -> Any:
    d = vnp.sqrt(b**2 - 4 * a * c)
    return (-b + d) / (2 * a)  # here


def one_less_cosine(x: Any) -> Any:
    y = x / 3
    return (1 - vnp.cos(y)) / y**2  # here


def hypotenuse(x: Any, y: Any) -> Any:
    z = vnp.sqrt(x**2 + y**2)  # here
    return z / 2


def overflow(x: Any) -> Any:
    y = x * 2
    z = vnp.log(vnp.sum(vnp.exp(y)))  # here
    return z + 1


def large_mean(x: Any) -> Any:
    y = x * 0.1
    return vnp.sum(y * y) / 100 - (vnp.sum(y) / 100) ** 2  # here


def log_of_softmax(x: Any) -> Any:
    return vnp.log(nn.softmax(x))  # here


def normalised(x: Any) -> Any:
    y = x * 0.3
    return y / vnp.sqrt(vnp.sum(y**2) + 1e-45)  # here


def tenths(n: Any) -> Any:
    return lax.fori_loop(0, 1500, lambda i, t: t + 0.1, n)  # here


def probabilities(x: Any) -> Any:
    y = x * 0.5
    return vnp.prod(y)  # here


def whole_numbers(i: Any) -> Any:
    return vnp.remainder(i.astype(vnp.float32), 10)  # here


def short_mean(x: Any) -> Any:
    def step(total: Any, x: Any) -> Any:
        return total + x / 1024, None  # here

    return lax.scan(step, BRAIN(0), x)[0]


def decided(x: Any) -> Any:
    y = x * 3
    return vnp.where(y - 0.3 >= 0, 1.0, -1.0)  # here


def exponential_less_one(x: Any) -> Any:
    return (vnp.exp(x / 7) - 1) / x  # here


def roots(x: Any) -> Any:
    y = x + 0.3
    return vnp.sqrt(y + 1) - vnp.sqrt(y)  # here


RNG = np.random.default_rng(0)
HALVES = RNG.uniform(0.3, 0.9, 6000)[:3000].astype(np.float16)
TENTHS = np.full(2000, 0.1, np.float32)
FAR = (1000 + RNG.standard_normal(100)).astype(np.float32)

PLANTED: list[tuple[Callable[..., Any], tuple[Any, ...], str, str]] = [
    (cancellation, (7.0,), "x nearly y", ""),
    (variance, (FAR,), "x nearly y", "var(x)"),
    (log_of_one_less_exp, (3e-7,), "", "expm1"),
    (long_sum, (HALVES,), "add up over 3,000 runs", "Kahan"),
    (softmax, (np.array([90, 80, 70], np.float32),), "overflows", "softmax"),
    (kahan_undone, (TENTHS,), "add up over 2,000 runs", "Kahan"),
    (time_step, (1e5 / 3,), "x nearly y", "rounded away"),
    (squares, (1000.1, 1000.0), "x nearly y", "(x - y) * (x + y)"),
    (root, (1.0, 1e3 / 3, 0.1), "x nearly -y", "2 * c"),
    (one_less_cosine, (1e-2,), "x nearly y", "sin(x / 2)"),
    (hypotenuse, (HALF(300), HALF(400)), "overflows", "hypot"),
    (overflow, (np.array([90, 80, 70], np.float32),), "overflows", "logsumexp"),
    (large_mean, (FAR * 100,), "x nearly y", "var(x)"),
    (
        log_of_softmax,
        (np.array([0, -120, -150], np.float32),),
        "too small",
        "log_softmax",
    ),
    (normalised, (np.full(4, 1e-23, np.float32),), "too small", "largest"),
    (tenths, (0.0,), "add up over 1,500 runs", "Kahan"),
    (probabilities, (np.full(40, 0.5, np.float16),), "too small", "log"),
    (whole_numbers, (np.array([2**24 + 1, 2**25 + 7], np.int32),), "", ""),
    (short_mean, (np.ones(1024, BRAIN),), "add up over 1,024 runs", "Kahan"),
    (decided, (0.1,), "decision", ""),
    (exponential_less_one, (1e-4,), "x nearly y", "expm1"),
    (roots, (1e6,), "x nearly y", "sqrt(x) + sqrt(y)"),
]


def shown(report: PrecisionReport) -> None:
    """A report can be read in every way."""
    assert str(report)
    assert repr(report)
    ElementTree.fromstring(f"<body>{report._repr_html_()}</body>")
    assert all(map(repr, report.lines))
    assert all(repr(e) for line in report.lines for e in line.equations)


def worst(report: PrecisionReport) -> PrecisionLine:
    assert report.worst is not None, str(report)
    return report.worst


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fun", "args", "why", "remedy"),
    PLANTED,
    ids=[x[0].__name__ for x in PLANTED],
)
def test_a_planted_loss_is_named(
    fun: Callable[..., Any], args: tuple[Any, ...], why: str, remedy: str
) -> None:
    report = precision(fun)(*args)
    shown(report)
    found = worst(report)
    assert found.line == line_of(fun), str(report)
    assert found.alarm or found.decisions, str(report)
    assert why in found.reason, str(report)
    assert remedy in str(found.remedy or ""), str(report)
    if not found.decisions:
        assert len(report.alarms) == 1, str(report)
    assert report.by_line(found.line)


X = RNG.standard_normal((8, 16)).astype(np.float32)
P = RNG.uniform(0.1, 2.0, (8, 16)).astype(np.float32)
SQUARE = (RNG.standard_normal((8, 8)) + 4 * np.eye(8)).astype(np.float32)
SPD = (SQUARE @ SQUARE.T).astype(np.float32)
IMAGE = RNG.standard_normal((2, 3, 8, 8)).astype(np.float32)
KERNEL = RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)

UNARY = (
    "abs arccosh arcsinh arctan cbrt ceil cos cosh cumsum deg2rad exp exp2 expm1 fabs "
    "floor log1p max mean median min negative prod ptp rad2deg ravel reciprocal round "
    "sign sin sinc sinh sort sqrt square std sum tan tanh transpose trunc var"
)
MORE = (
    "acos asin atanh average cumprod diff fix flip flipud log log10 log2 nancumsum "
    "nanmax nanmean nanmin nanstd nansum nanvar nan_to_num positive radians real rint "
    "signbit squeeze trapezoid unwrap vander"
)
BINARY = (
    "subtract maximum minimum fmax fmin copysign heaviside nextafter mod remainder "
    "fmod float_power logaddexp2 kron"
)
VECTORS = "inner outer vdot correlate polyval"
ACTIVATIONS = (
    "celu elu gelu glu hard_sigmoid hard_tanh leaky_relu log_sigmoid log_softmax "
    "logsumexp mish relu relu6 selu sigmoid silu soft_sign softmax softplus "
    "sparse_plus standardize squareplus tanh"
)
OTHERS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "matmul": (vnp.matmul, (X, X.T)),
    "einsum": (partial(vnp.einsum, "ij,kj->ik"), (X, P)),
    "hypot": (vnp.hypot, (X, P)),
    "logaddexp": (vnp.logaddexp, (X, P)),
    "arctan2": (vnp.arctan2, (X, P)),
    "power": (vnp.power, (P, X)),
    "divide": (vnp.divide, (X, P)),
    "add": (vnp.add, (X, P)),
    "multiply": (vnp.multiply, (X, P)),
    "solve": (vnp.linalg.solve, (SQUARE, X[:, :4])),
    "cholesky": (vnp.linalg.cholesky, (SPD,)),
    "norm": (vnp.linalg.norm, (X,)),
    "det": (vnp.linalg.det, (SQUARE,)),
    "interp": (vnp.interp, (X[0], np.sort(P[0]), P[1])),
    "where": (lambda x, y: vnp.where(x > 0, x, y), (X, P)),
    "clip": (lambda x: vnp.clip(x, -1, 1), (X,)),
    "convolve": (vnp.convolve, (P[0], P[1])),
    "conv": (lambda x, k: lax.conv(x, k, (1, 1), "SAME"), (IMAGE, KERNEL)),
    "layer_norm": (lambda x: (x - x.mean()) / vnp.sqrt(x.var() + 1e-5), (X,)),
    "fft": (vnp.fft.fft, (X,)),
    "normal": (lambda: random.normal(random.key(0), (50,)), ()),
}


@pytest.mark.parametrize("name", UNARY.split())
def test_no_false_alarm_in_numpy(name: str) -> None:
    given = P + 1 if name == "arccosh" else P[0]
    report = precision(getattr(vnp, name))(given)
    assert not report.alarms, str(report)


@pytest.mark.parametrize("name", MORE.split())
def test_no_false_alarm_in_more_of_numpy(name: str) -> None:
    report = precision(getattr(vnp, name))(0.4 * P[0])
    assert not report.alarms, str(report)


@pytest.mark.parametrize("name", [*BINARY.split(), *VECTORS.split()])
def test_no_false_alarm_in_functions_of_two(name: str) -> None:
    args = (X[0], P[0]) if name in VECTORS.split() else (P, P[::-1] + 0.5)
    report = precision(getattr(vnp, name))(*args)
    assert not report.alarms, str(report)


FACTORS: dict[str, np.ndarray] = {
    "inv": SQUARE,
    "slogdet": SQUARE,
    "pinv": SQUARE,
    "eigh": SPD,
    "eigvalsh": SPD,
    "svd": X,
    "qr": X,
    "cond": SQUARE,
}


@pytest.mark.parametrize("name", FACTORS)
def test_no_false_alarm_in_factors(name: str) -> None:
    """Vectors are right in either direction."""
    function, given = getattr(vnp.linalg, name), FACTORS[name]
    for stack in (given, np.stack([given, -given, given.copy()])):
        if name in ("eigh", "eigvalsh", "svd") or stack.ndim == 2:
            assert not precision(function)(stack).alarms
    assert not precision(function)(given * np.complex64(1)).alarms


def test_vectors_of_a_rounded_matrix_are_told_from_turned_ones() -> None:
    def f(x: Any) -> Any:
        return vnp.linalg.eigh(x.astype(BRAIN).astype(x.dtype))[1]

    assert precision(f)(SPD).error > 1e-4
    assert precision(lambda x: vnp.linalg.eigh(x)[1])(SPD).error < 1e-4


@pytest.mark.parametrize("name", ACTIVATIONS.split())
def test_no_false_alarm_in_nn(name: str) -> None:
    function = getattr(nn, name)
    for given in (X, X.astype(BRAIN)):
        report = precision(function)(given)
        assert not report.alarms, str(report)
    report = precision(verax.grad(lambda x: function(x).sum()))(X)
    assert not report.alarms, str(report)


@pytest.mark.parametrize("name", OTHERS)
def test_no_false_alarm_elsewhere(name: str) -> None:
    function, args = OTHERS[name]
    report = precision(function)(*args)
    assert not report.alarms, str(report)


def test_narrow_values_in_a_wide_program_are_no_loss() -> None:
    def f(x: Any, w: Any) -> Any:
        y = (x.astype(BRAIN) @ w.astype(BRAIN)).astype(x.dtype)
        return vnp.tanh(y).mean()

    report = precision(f)(X, P.T)
    assert not report.alarms, str(report)
    assert worst(report).digits < 3
    assert report.by_line(inspect.getsourcelines(f)[1] + 1)[0].local_error > 1e-3


def test_the_host_is_asked_once() -> None:
    calls = []

    def double(x: Any) -> Any:
        calls.append(x)
        return np.asarray(x) * 2

    def f(x: Any) -> Any:
        verax.debug.print("{x}", x=x)
        y = verax.pure_callback(double, verax.ShapeDtypeStruct((), np.float32), x / 3)
        return vnp.exp(y)

    report = precision(f, gradient=True)(1.0)
    assert len(calls) == 1
    assert not report.alarms


def test_overflow_in_the_shadow_too() -> None:
    report = precision(softmax)(np.array([1000, 999], np.float32))
    found = worst(report)
    assert found.line == line_of(softmax)
    assert "exp overflows float32" in found.reason
    assert found.nans == 2
    assert found.overflow >= 2
    assert np.isnan(report.result).all()

    def pole(x: Any) -> Any:
        return vnp.exp(vnp.log(x)) + 1 / x

    report = precision(pole)(np.array([0.0, 1.0], np.float32))
    assert not report.alarms, str(report)
    masked = precision(nn.softmax)(np.array([1.0, -np.inf, 2.0], np.float32))
    assert not masked.alarms, str(masked)


def test_large_arrays() -> None:
    def f(x: Any, w: Any) -> Any:
        y = nn.relu(x @ w)
        z = (y + 100.1) - 100.1
        return vnp.exp(z).sum()

    x = RNG.standard_normal((3, 100, 80)).astype(np.float32)
    w = RNG.standard_normal((80, 90)).astype(np.float32)
    report = precision(f)(x / 8, w / 8)
    start = inspect.getsourcelines(f)[1]
    assert worst(report).line == start + 2
    (product,) = report.by_line(start + 1)
    assert 1e-8 < product.local_error < 1e-4
    x[1, 7, 3] = 200
    report = precision(f)(x, w)
    assert report.by_line(start + 3)[0].overflow
    weighed = precision(f, gradient=True)(x / 1e7, w / 8)
    assert weighed.by_effect[0].effect > 0


def test_complex_numbers() -> None:
    def f(z: Any) -> Any:
        w = z * 1.1
        return w - 1.1 * (z - 1e-5)

    report = precision(f, gradient=True)(np.complex64(3 + 4j))
    found = worst(report)
    assert found.line == inspect.getsourcelines(f)[1] + 2
    assert found.dtype == "complex64"
    assert 0 < found.effect < 1e-6


def test_remedies_name_rules_that_there_are() -> None:
    known = {rule.name for rule in stable()}
    cases: list[tuple[Callable[[Any], Any], float]] = [
        (lambda x: vnp.log(1 + x), 3e-6),
        (lambda x: vnp.log(1 - x), 3e-6),
        (lambda x: vnp.exp(x) - 1, 3e-6),
        (lambda x: vnp.log(1 + vnp.exp(x)), -12.0),
        (lambda x: vnp.log(vnp.exp(x) + vnp.exp(x - 1)), 90.0),
        (lambda x: vnp.log(nn.sigmoid(x)), 16.0),
        (lambda x: vnp.log(1 - nn.sigmoid(x)), 20.0),
    ]
    for case, x in cases:
        remedy = worst(precision(case)(x)).remedy
        assert remedy is not None
        assert remedy.rule in known
        assert remedy.rule in str(remedy)


@pytest.mark.slow
def test_a_compensated_sum_is_no_loss() -> None:
    report = precision(kahan)(TENTHS[:1000])
    assert not report.alarms, str(report)
    assert report.error < 1e-6
    plain = precision(kahan_undone)(TENTHS[:1000])
    assert plain.error > 10 * report.error


def test_values_are_those_of_the_interpreter() -> None:
    def f(x: Any, y: Any) -> Any:
        z = verax.checkpoint(lambda x: vnp.sin(x) * y)(x)
        w = lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * z), (0, x))
        v = lax.cond(x.sum() > 0, vnp.cos, vnp.exp, w[1])
        return {"a": v, "b": (w[0], nn.gelu(z))}

    x, y = X[0], P[0]
    report = precision(f)(x, y)
    expected = f(vnp.asarray(x), vnp.asarray(y))
    assert verax.tree.structure(report.result) == verax.tree.structure(expected)
    assert set(report.outputs) == {"output['a']", "output['b'][1]"}
    assert report.error < 1e-5
    shown(report)


def test_derivatives_and_maps() -> None:
    def loss(w: Any, x: Any) -> Any:
        h = nn.relu(x @ w)
        return vnp.log(vnp.mean(h**2))

    w = P.T
    report = precision(verax.jit(verax.value_and_grad(loss)))(w, X)
    shown(report)
    assert not report.alarms
    assert any(line.backward for line in report.lines)
    mapped = precision(verax.vmap(loss, (None, 0)))(w, np.stack([X, P]))
    assert not mapped.alarms


def test_effects_on_the_loss() -> None:
    def loss(x: Any) -> Any:
        small = vnp.log(1 + x * 1e-9) * 1e-3
        large = vnp.sum(vnp.exp(x)) * 10
        return small.sum() + large

    start = inspect.getsourcelines(loss)[1]
    report = precision(loss, gradient=True)(P[0])
    shown(report)
    assert worst(report).line == start + 1
    assert report.by_effect[0].line == start + 2
    assert report.loss is not None
    gap = abs(float(report.result) - np.exp(P[0].astype(float)).sum() * 10)
    total = sum([line.effect for line in report.lines])
    assert gap <= total * 1.01 + 1e-9
    assert total < 100 * report.loss * 2.0**-24
    assert "what rounding does to the loss" in str(report)


def test_effects_through_loops_and_choices() -> None:
    def loss(x: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c = lax.cond(x > 0, lambda c: c * 1.1, lambda c: c + 0.1, c)
            return c, c * x

        last, ys = lax.scan(step, x[0], x)
        more = lax.while_loop(lambda c: c < 100, lambda c: c * 1.7, last)
        return more + ys.sum()

    report = precision(loss, gradient=True)(P[0])
    assert not report.skipped
    total = sum([line.effect for line in report.lines])
    assert 0 < total < 1e-3
    several = precision(lambda x: (x * 3, x / 3), gradient=True)(P[0])
    assert several.loss == pytest.approx(np.hypot(3, 1 / 3) * np.linalg.norm(P[0]))


def test_iterations_of_loops() -> None:
    def f(x: Any) -> Any:
        def step(c: Any, y: Any) -> Any:
            z = (1 + y) - 1
            return c + z, z

        return lax.scan(step, x, vnp.array([1.0, 0.5, 1.1e-7, 0.25]))[1]

    report = precision(f)(1.0)
    found = worst(report)
    assert found.line == inspect.getsourcelines(f)[1] + 2
    assert found.iteration == (2,)
    assert "in iteration 2" in str(report)


@pytest.mark.slow
def test_loops_of_several_lines() -> None:
    def chaos(x: Any) -> Any:
        def body(i: Any, x: Any) -> Any:
            y = 1 - x
            return 3.9 * x * y

        return lax.fori_loop(0, 60, body, x)

    report = precision(chaos)(0.3)
    start = inspect.getsourcelines(chaos)[1]
    assert report.alarms, str(report)
    assert {x.line for x in report.alarms} <= {start + 2, start + 3}

    def clock(x: Any) -> Any:
        def tick(i: Any, t: Any) -> Any:
            a = t * 2
            return a / 2 + 0.1

        return lax.fori_loop(0, 30, lambda i, t: lax.fori_loop(0, 100, tick, t), x)

    report = precision(clock)(0.0)
    start = inspect.getsourcelines(clock)[1]
    assert [x.line for x in report.alarms] == [start + 3], str(report)

    def steady(x: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            y = vnp.cos(s)
            return y * 0.3 + x

        return lax.fori_loop(0, 200, body, x)

    assert not precision(steady)(0.3).alarms


def test_training_keeps_its_digits() -> None:
    def train(w: Any, x: Any) -> Any:
        def loss(w: Any) -> Any:
            return vnp.mean((nn.gelu(x @ w) - 1) ** 2)

        def step(w: Any, _: Any) -> Any:
            value, slope = verax.value_and_grad(loss)(w)
            return w - 0.1 * slope, value

        return lax.scan(step, w, None, length=30)

    for dtype in (vnp.float32, BRAIN, HALF):
        report = precision(train)(P.T.astype(dtype) / 4, X.astype(dtype))
        assert not report.alarms, str(report)


def test_decisions_of_branches_and_orders() -> None:
    def f(x: Any) -> Any:
        y = x * 3 - 0.3
        return lax.cond(y >= 0, lambda x: x * 2, lambda x: x, x)

    report = precision(f)(0.1)
    start = inspect.getsourcelines(f)[1]
    assert [line.line for line in report.decisions] == [start + 2]
    assert float(report.result) == pytest.approx(0.2)

    def first(x: Any) -> Any:
        return vnp.argmax(vnp.array([x * 3, 0.3]))

    assert precision(first)(0.1).decisions
    assert not precision(first)(0.2).decisions


def test_exact_programs_lose_nothing() -> None:
    def f(x: Any, i: Any) -> Any:
        y = vnp.concatenate([x * 4, x[::-1] / 2])
        z = vnp.where(y > 1, y, -y).reshape(2, -1)
        return z.T.max(0), i * 3 + vnp.argsort(x)

    report = precision(f)(X[0], np.arange(16))
    assert report.error == 0
    assert not report.alarms
    assert all(line.lost == 0 and line.local_error == 0 for line in report.lines)
    assert "keeps its digits" in report.title


@pytest.mark.parametrize("shadow", ["longdouble", "mpmath"])
def test_shadows_of_doubles(shadow: Any) -> None:
    def f(x: Any) -> Any:
        y = vnp.log(1 + x)
        return vnp.sum(vnp.stack([y, x]) @ vnp.ones((3, 2))) + lax.exp(-y[0])

    with verax.enable_x64(True):
        x = np.array([1e-12, 2e-12, 3e-12])
        report = precision(f, shadow=shadow)(x)
        with pytest.raises(ValueError, match="would see nothing"):
            precision(f, shadow="float64")(x)
        assert precision(f)(x).shadow.startswith("longdouble")
    shown(report)
    found = worst(report)
    assert found.line == inspect.getsourcelines(f)[1] + 1
    assert found.lost == pytest.approx(11.5, abs=1)
    assert found.dtype == "float64"
    assert shadow in report.shadow


def test_what_is_refused() -> None:
    wrong: Any = 3
    with pytest.raises(TypeError, match="takes a function"):
        precision(wrong)
    with pytest.raises(ValueError, match="shadow is"):
        precision(vnp.sin, shadow=wrong)
    with pytest.raises(verax.errors.ConcretizationTypeError, match="being traced"):
        verax.jit(lambda x: precision(vnp.sin)(x).result)(1.0)
    with pytest.raises(TypeError, match="references"):
        precision(lambda r: r[...])(verax.new_ref(vnp.ones(3)))

"""`verax.scipy.stats` against SciPy: values, edges, derivatives, transformations."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats

import verax
import verax.numpy as vnp
from verax.scipy import stats

EDGES = [-np.inf, np.inf, np.nan, 0.0, 1.0, -1.0]
LINE = np.array([-30.0, -5.0, -1.3, -0.2, 0.1, 0.5, 0.9, 1.7, 4.0, 25.0, *EDGES])
COUNTS = np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 7.0, 0.5, np.inf, np.nan])
CHANCES = np.array([0.0, 1e-6, 0.1, 0.5, 0.7, 0.999, 1.0, -0.1, 1.1, np.nan])
# Parameters of shape, and whether location and scale may follow.
LINES: dict[str, tuple[tuple[float, ...], ...]] = {
    "beta": ((2.0, 3.0), (0.5, 0.7), (1.0, 1.0)),
    "cauchy": ((),),
    "chi2": ((1.0,), (2.0,), (5.0,)),
    "expon": ((),),
    "gamma": ((1.0,), (0.5,), (3.5,)),
    "gumbel_l": ((),),
    "gumbel_r": ((),),
    "laplace": ((),),
    "logistic": ((),),
    "norm": ((),),
    "pareto": ((2.5,),),
    "t": ((3.0,),),
    "truncnorm": ((-1.0, 2.0), (2.0, 5.0), (-np.inf, -3.0), (-0.5, np.inf)),
    "uniform": ((),),
}
PLAIN: dict[str, tuple[tuple[float, ...], ...]] = {
    "gennorm": ((0.7,), (2.0,)),
    "vonmises": ((0.0,), (2.0,), (50.0,)),
    "wrapcauchy": ((0.3,),),
}
DISCRETE: dict[str, tuple[tuple[float, ...], ...]] = {
    "bernoulli": ((0.3,), (0.0,), (1.0,)),
    "betabinom": ((5.0, 2.0, 3.0), (0.0, 1.0, 1.0)),
    "binom": ((5.0, 0.3), (7.0, 0.0), (3.0, 1.0), (0.0, 0.5)),
    "geom": ((0.3,), (1.0,)),
    "nbinom": ((3.0, 0.4), (2.5, 1.0)),
    "poisson": ((2.5,), (0.0,)),
}
FUNCTIONS = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf")
CHECKED = ("logpdf", "cdf", "logsf", "ppf")


def functions(table: dict[str, Any], names: tuple[str, ...]) -> list[tuple[str, str]]:
    return [(d, f) for d in table for f in names if hasattr(getattr(stats, d), f)]


def of_scipy(distribution: str, function: str) -> Callable[..., Any]:
    name = {"chi2": "chi2"}.get(distribution, distribution)
    actual: Callable[..., Any] = getattr(getattr(scipy.stats, name), function)
    return actual


def compare(distribution: str, function: str, x: Any, args: tuple[float, ...]) -> None:
    """Both precisions, eager and compiled, against SciPy."""
    ours = getattr(getattr(stats, distribution), function)
    with np.errstate(all="ignore"):
        want = of_scipy(distribution, function)(x, *args)
        narrow = of_scipy(distribution, function)(x.astype(np.float32), *args)
    with verax.enable_x64(True):
        actual = ours(x, *args)
        assert actual.dtype == np.float64
        np.testing.assert_allclose(np.asarray(actual), want, 1e-9, 1e-13)
    if len(args) > len(LINES.get(distribution, ((),))[0]):
        return  # once in single precision is enough
    single = ours(x.astype(np.float32), *args)
    assert single.dtype == np.float32
    np.testing.assert_allclose(np.asarray(single), narrow, 1e-4, 2e-6)


@pytest.mark.parametrize(("distribution", "function"), functions(LINES, FUNCTIONS))
def test_on_a_line(distribution: str, function: str) -> None:
    x = CHANCES if function in ("ppf", "isf") else LINE
    if distribution.startswith("gumbel"):
        x = x[~np.isinf(x)]  # where SciPy says NaN
    for shapes in LINES[distribution]:
        compare(distribution, function, x, shapes)
    compare(distribution, function, x, (*LINES[distribution][0], 0.5, 2.0))


@pytest.mark.slow
@pytest.mark.parametrize("distribution", LINES)
@pytest.mark.usefixtures("little_effort")
def test_compiled(distribution: str) -> None:
    module, shapes = getattr(stats, distribution), LINES[distribution][0]

    def both(x: Any, q: Any) -> list[Any]:
        actual = (
            [module.logpdf(x, *shapes, 0.5, 2.0), module.cdf(x, *shapes)]
            if (hasattr(module, "cdf"))
            else [module.logpdf(x, *shapes)]
        )
        return [*actual, module.ppf(q, *shapes)] if hasattr(module, "ppf") else actual

    args = (LINE.astype(np.float32), CHANCES.astype(np.float32))
    for a, b in zip(verax.jit(both)(*args), both(*args), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), 1e-4, 2e-6)


@pytest.mark.parametrize(("distribution", "function"), functions(PLAIN, FUNCTIONS))
def test_without_location(distribution: str, function: str) -> None:
    x = LINE[np.isfinite(LINE)] if distribution == "vonmises" else LINE
    x = np.clip(x, -3, 6) if distribution == "gennorm" else x
    for shapes in PLAIN[distribution]:
        compare(distribution, function, x, shapes)


@pytest.mark.parametrize(
    ("distribution", "function"), functions(DISCRETE, ("pmf", "logpmf", "cdf"))
)
def test_counts(distribution: str, function: str) -> None:
    x = np.floor(COUNTS) if distribution == "betabinom" else COUNTS
    x = x[~np.isinf(x)]
    for shapes in DISCRETE[distribution]:
        compare(distribution, function, x, shapes)
        if (
            "loc"
            in inspect.signature(
                getattr(getattr(stats, distribution), function)
            ).parameters
        ):
            compare(distribution, function, x, (*shapes, 1.0))


def test_types_of_results() -> None:
    for x in (stats.norm.cdf(0.5), stats.norm.ppf(0.5), stats.norm.logsf(1)):
        assert not x.weak_type
    half = np.array([0.5], np.float16)
    assert stats.bernoulli.ppf(half, half).dtype == np.float16
    assert not stats.bernoulli.ppf(half, half).weak_type


def test_quantile_of_bernoulli() -> None:
    for p in (0.0, 0.3, 1.0):
        actual = np.asarray(stats.bernoulli.ppf(CHANCES[1:6], p))
        np.testing.assert_array_equal(
            actual, scipy.stats.bernoulli.ppf(CHANCES[1:6], p)
        )


@pytest.mark.parametrize(
    ("distribution", "function"), functions(LINES, ("logpdf", "cdf", "logsf"))
)
def test_slopes_outside_the_support_are_zero(distribution: str, function: str) -> None:
    """No infinity of an unused branch spoils the gradient."""
    if distribution in ("cauchy", "gumbel_l", "gumbel_r", "laplace", "logistic", "t"):
        return
    if distribution == "norm":
        return
    shapes = LINES[distribution][0]
    ours = getattr(getattr(stats, distribution), function)
    for x in (-3.0, -1e30):
        assert float(verax.grad(lambda x: ours(x, *shapes))(x)) == 0.0


def test_gumbel_at_infinity() -> None:
    for module in (stats.gumbel_l, stats.gumbel_r):
        assert np.asarray(
            module.pdf(np.array([-np.inf, np.inf], np.float32))
        ).tolist() == [0, 0]


def test_slopes_at_ends_without_end() -> None:
    slopes = verax.grad(stats.truncnorm.logpdf, (0, 1, 2))(0.3, -np.inf, 1.0)
    assert np.isfinite([float(x) for x in slopes]).all()
    assert float(slopes[1]) == 0.0


def test_nothing_has_a_scale_that_is_not_positive() -> None:
    for name, shapes in LINES.items():
        actual = getattr(stats, name).logpdf(0.5, *shapes[0], 0.0, -1.0)
        assert np.isnan(actual), name
    assert np.isnan(stats.norm.ppf(0.5, 0.0, 0.0))


def test_keywords_signatures_and_dtypes() -> None:
    actual = stats.beta.pdf(0.5, b=2.0, a=3.0, scale=2.0)
    np.testing.assert_allclose(
        float(actual), scipy.stats.beta.pdf(0.5, 3, 2, 0, 2), 1e-5
    )
    assert [*inspect.signature(stats.beta.cdf).parameters] == [
        *("x", "a", "b", "loc", "scale")
    ]
    assert stats.norm.pdf(np.arange(3)).dtype == np.float32
    assert stats.norm.pdf(np.float16(1)).dtype == np.float16
    assert stats.norm.pdf(np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert stats.norm.pdf(np.zeros((2, 1)), np.zeros(3)).shape == (2, 3)
    mapped = verax.vmap(stats.gamma.logpdf, (0, None))(
        np.array([1, 2], np.float32), 2.0
    )
    np.testing.assert_allclose(mapped, scipy.stats.gamma.logpdf([1, 2], 2), 1e-5)


def test_wrong_calls() -> None:
    with pytest.raises(TypeError, match=r"beta\.pdf.*missing.*'b'|beta\.logpdf"):
        stats.beta.pdf(0.5, 1.0)
    with pytest.raises(TypeError, match=r"norm\.cdf"):
        stats.norm.cdf([0.5])  # a list is no array
    with pytest.raises(TypeError, match="real"):
        stats.norm.cdf(1j)
    with pytest.raises(ValueError, match="broadcast"):
        stats.norm.cdf(np.zeros(2), np.zeros(3))


def test_entropy_of_poisson() -> None:
    mu = np.array([0.0, 0.1, 1.0, 7.0, 30.0, 99.0, 100.0, 1e4, -1.0])
    want = [scipy.stats.poisson.entropy(m) for m in mu[:7]]
    with verax.enable_x64(True):
        actual = np.asarray(stats.poisson.entropy(mu))
        np.testing.assert_allclose(actual[:7], want, 1e-9)
        np.testing.assert_allclose(actual[7], 0.5 * np.log(2e4 * np.pi * np.e), 1e-5)
        assert np.isnan(actual[8])
    assert stats.poisson.entropy(np.float32(2), np.zeros(3)).shape == (3,)
    assert np.isfinite(verax.grad(stats.poisson.entropy)(2.0))


def test_dirichlet() -> None:
    x = np.array([[0.2, 0.5], [0.3, 0.25], [0.5, 0.25]])
    alpha = np.array([1.0, 2.0, 0.5])
    want = scipy.stats.dirichlet.logpdf(x, alpha)
    with verax.enable_x64(True):
        np.testing.assert_allclose(stats.dirichlet.logpdf(x, alpha), want, 1e-9)
        np.testing.assert_allclose(stats.dirichlet.logpdf(x[:2], alpha), want, 1e-9)
        np.testing.assert_allclose(stats.dirichlet.pdf(x, alpha), np.exp(want), 1e-9)
    assert float(stats.dirichlet.logpdf(2 * x[:, 0], alpha)) == -np.inf
    with pytest.raises(ValueError, match="alpha"):
        stats.dirichlet.pdf(x, alpha[:1])


def test_multinomial() -> None:
    x, p = (
        np.array([[1, 2, 0], [0, 0, 3], [1, 1, 0]]),
        np.array([0.2, 0.5, 0.3], np.float32),
    )
    want = scipy.stats.multinomial.pmf(x, 3, [0.2, 0.5, 0.3])
    np.testing.assert_allclose(stats.multinomial.pmf(x, 3, p), want, 1e-5)
    with pytest.raises(ValueError, match="integer"):
        stats.multinomial.pmf(x * 1.0, 3, p)


def test_multivariate_normal() -> None:
    random = np.random.default_rng(0)
    a = random.normal(size=(4, 3, 3))
    cov = a @ a.transpose(0, 2, 1) + np.eye(3)
    mean, x = random.normal(size=3), random.normal(size=(5, 3))
    ours = stats.multivariate_normal.logpdf
    theirs = scipy.stats.multivariate_normal.logpdf
    with verax.enable_x64(True):
        np.testing.assert_allclose(ours(x, mean, cov[0]), theirs(x, mean, cov[0]))
        np.testing.assert_allclose(ours(x[0], mean, cov[0]), theirs(x[0], mean, cov[0]))
        np.testing.assert_allclose(ours(x, mean, 2.0), theirs(x, mean, 2 * np.eye(3)))
        np.testing.assert_allclose(ours(x[:, 0], 0.5, 2.0), theirs(x[:, 0], 0.5, 2.0))
        batch = ours(x[:, None], mean, cov)
        assert batch.shape == (5, 4)
        np.testing.assert_allclose(batch[2, 3], theirs(x[2], mean, cov[3]))
        mapped = verax.vmap(ours, (None, None, 0))(x[0], mean, cov)
        np.testing.assert_allclose(mapped, batch[0])
        verax.test_util.check_grads(ours, (x[0], mean, cov[0]), 1, rtol=1e-5)
    with pytest.raises(ValueError, match="covariance"):
        ours(x, mean, np.eye(2))
    with pytest.raises(ValueError, match="allow_singular"):
        ours(x, mean, 1.0, True)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize("bw", [None, "silverman", 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_kernel_density(bw: Any, weighted: bool) -> None:
    random = np.random.default_rng(0)
    data, points = random.normal(size=(2, 20)), random.normal(size=(2, 7))
    weights = random.uniform(size=20) if weighted else None
    theirs = scipy.stats.gaussian_kde(data, bw, weights)
    with verax.enable_x64(True):
        ours = stats.gaussian_kde(data, bw, weights)
        np.testing.assert_allclose(ours(points), theirs(points))
        np.testing.assert_allclose(ours.logpdf(points), theirs.logpdf(points))
        np.testing.assert_allclose(ours.covariance, theirs.covariance)
        mean, cov = np.array([0.1, 0.3]), np.array([[1.0, 0.2], [0.2, 2.0]])
        actual = ours.integrate_gaussian(mean, cov)
        np.testing.assert_allclose(actual, theirs.integrate_gaussian(mean, cov))
        other = stats.gaussian_kde(data[:, :9])
        want = theirs.integrate_kde(scipy.stats.gaussian_kde(data[:, :9]))
        np.testing.assert_allclose(ours.integrate_kde(other), want)
        line = stats.gaussian_kde(data[0], bw, weights)
        want = scipy.stats.gaussian_kde(data[0], bw, weights)
        box = line.integrate_box_1d(-0.5, 1.0)
        np.testing.assert_allclose(box, want.integrate_box_1d(-0.5, 1.0))
        passed = verax.jit(lambda kde, x: kde.pdf(x))(ours, points)
        np.testing.assert_allclose(passed, theirs(points))


@pytest.mark.slow
def test_kernel_density_of_samples() -> None:
    kde = stats.gaussian_kde(vnp.array([[0.0, 1.0, 4.0], [0.0, 2.0, 2.0]]))
    key = verax.random.key(0)
    assert kde.resample(key, (5, 2)).shape == (2, 5, 2)
    assert kde.resample(key).shape == (2,)
    many = np.asarray(kde.resample(key, (4000,)))
    np.testing.assert_allclose(many.mean(1), [5 / 3, 4 / 3], atol=0.2)
    with pytest.raises(ValueError, match="dimension"):
        kde(np.zeros((3, 4), np.float32))
    with pytest.raises(ValueError, match="bw_method"):
        stats.gaussian_kde(np.zeros(3), "other")


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_samples(axis: int | None) -> None:
    x = np.array([[1, 3, 3, 2], [2, 2, 9, 2], [1, 3, 4, 9]], np.float32)
    for keep in (False, True):
        ours, theirs = (
            stats.mode(x, axis, keepdims=keep),
            scipy.stats.mode(x, axis, keepdims=keep),
        )
        np.testing.assert_array_equal(ours.mode, theirs.mode)
        np.testing.assert_array_equal(ours.count, theirs.count)
        want = scipy.stats.sem(x, axis)
        np.testing.assert_allclose(
            np.ravel(stats.sem(x, axis, keepdims=keep)), np.ravel(want), 1e-5
        )
    for method in ("average", "min", "max", "dense", "ordinal"):
        want = scipy.stats.rankdata(x, method, axis=axis)
        np.testing.assert_array_equal(stats.rankdata(x, method, axis=axis), want)
    compiled = verax.jit(lambda x: stats.rankdata(x, axis=axis))(x)
    np.testing.assert_array_equal(compiled, scipy.stats.rankdata(x, axis=axis))


def test_samples_with_nan_and_without_elements() -> None:
    x = np.array([[1, np.nan, 3], [2, 2, 1]], np.float32)
    ranks = np.asarray(stats.rankdata(x, axis=1))
    assert np.isnan(ranks[0]).all()
    assert ranks[1].tolist() == [2.5, 2.5, 1.0]
    actual = stats.sem(x, 1, nan_policy="omit")
    want = scipy.stats.sem(x, 1, nan_policy="omit")
    np.testing.assert_allclose(actual, np.asarray(want), 1e-5)
    assert np.isnan(stats.mode(np.zeros(0, np.float32)).mode)
    assert stats.rankdata(np.zeros((0, 2)), axis=0).shape == (0, 2)
    with pytest.raises(ValueError, match="nan_policy"):
        stats.mode(x, nan_policy="omit")
    with pytest.raises(ValueError, match="method"):
        stats.rankdata(x, "other")
    with pytest.raises(ValueError, match="dimension 2"):
        stats.rankdata(x, axis=2)


def test_tails() -> None:
    """Logarithms near 0 and small probabilities have the digits of the other side."""
    cases = (
        ("gamma", "logcdf", (22.2, 0.58)),
        ("gamma", "logsf", (0.01, 7.9)),
        ("chi2", "logcdf", (30.0, 2.0)),
        ("beta", "logsf", (0.02, 6.2, 1.5)),
        ("beta", "sf", (5e-6, 0.37, 3.3)),
        ("cauchy", "logcdf", (1e30,)),
        ("cauchy", "logpdf", (1e30,)),
        ("t", "logpdf", (1e30, 2.0)),
        ("gennorm", "cdf", (-3.5, 1.9)),
    )
    for name, function, args in cases:
        xs = [np.float32(x) for x in args]
        actual = getattr(getattr(stats, name), function)(*xs)
        want = of_scipy(name, function)(*[np.float64(x) for x in xs])
        np.testing.assert_allclose(np.asarray(actual), want, 5e-6)

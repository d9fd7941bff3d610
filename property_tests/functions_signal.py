"""Signals, transforms, samples and other functions of arrays beside SciPy's."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import scipy.cluster.vq
import scipy.fft
import scipy.integrate
import scipy.interpolate
import scipy.ndimage
import scipy.signal
import scipy.special
import scipy.stats

from property_tests.comparing import Call, Calls, Whole, called, varied
from property_tests.functions_linalg import constants, definite, drawn, single
from verax.scipy import (
    cluster,
    fft,
    integrate,
    interpolate,
    ndimage,
    signal,
    special,
    stats,
)


def line(name: str, ours: Any, theirs: Any, calls: Calls, **options: Any) -> Whole:
    return Whole(name, ours, theirs, calls, **options)


def sig(name: str, calls: Calls, **options: Any) -> Whole:
    return Whole(
        f"signal.{name}",
        getattr(signal, name),
        getattr(scipy.signal, name),
        calls,
        **options,
    )


def convolved(dims: int, **options: Any) -> Calls:
    def calls(random: np.random.Generator) -> Iterator[Call]:
        shapes = [(7,), (3,)] if dims == 1 else [(5, 6), (3, 2)]
        for kind in (np.float32, np.complex64):
            a, b = (drawn(random, *s, kind=kind) for s in shapes)
            yield from varied((a, b), **options)
            yield Call((b, a), {"mode": "same"})

    return calls


def spectral(random: np.random.Generator) -> Iterator[Call]:
    x = drawn(random, 2, 40)
    options: dict[str, tuple[Any, ...]] = {
        "fs": (10.0,),
        "window": ("hann", "boxcar", "hamming", ("tukey", 0.25)),
        "noverlap": (4,),
        "nfft": (64,),
        "axis": (-1, 1),
        "detrend": ("linear", False),
        "scaling": ("spectrum",),
        "return_onesided": (False,),
        "average": ("median",),
    }
    for call in varied((x,), **options):
        yield Call(call.args, {**call.kwargs, "nperseg": 16})
    yield Call((x,), {"nperseg": 15})
    yield Call((x.T,), {"nperseg": 16, "axis": 0})
    z = drawn(random, 40, kind=np.complex64)
    yield Call((z,), {"nperseg": 16, "return_onesided": False})


def stft(random: np.random.Generator) -> Iterator[Call]:
    x = drawn(random, 2, 40)
    for call in varied(
        (x,),
        fs=(10.0,),
        window=("hann", "boxcar"),
        detrend=("linear", "constant"),
        boundary=("even", "odd", "constant", None),
        padded=(False,),
        return_onesided=(False,),
        noverlap=(3, 12),
        nfft=(32,),
        axis=(-1,),
    ):
        yield Call(call.args, {**call.kwargs, "nperseg": 16})
    yield Call((drawn(random, 40, 2),), {"nperseg": 16, "axis": 0})


def istft(random: np.random.Generator) -> Iterator[Call]:
    z = drawn(random, 9, 8, kind=np.complex64)
    yield from varied(
        (z,),
        fs=(10.0,),
        window=("hann",),
        noverlap=(12,),
        input_onesided=(True,),
        boundary=(False,),
        nperseg=(16,),
    )


def csd(random: np.random.Generator) -> Iterator[Call]:
    for call in spectral(random):
        yield Call(
            (call.args[0], drawn(random, *call.args[0].shape, kind=call.args[0].dtype)),
            call.kwargs,
        )


def trends(random: np.random.Generator) -> Iterator[Call]:
    yield from varied(
        (drawn(random, 4, 9),),
        axis=(0, 1, -2),
        type=("linear", "constant"),
        bp=(0, 3, [2, 5]),
    )


def cosines(random: np.random.Generator) -> Iterator[Call]:
    x = drawn(random, 3, 8)
    yield from varied(
        (x,), n=(5, 12, 8), axis=(0, 1, -2), norm=("ortho", "forward", "backward")
    )
    yield Call((drawn(random, 5),), {"norm": "ortho"})
    yield called(drawn(random, 2, 1))


def cosines_nd(random: np.random.Generator) -> Iterator[Call]:
    x = drawn(random, 3, 4, 5)
    yield from varied((x,), axes=((0,), (0, 2), (-1, 1)), norm=("ortho", "forward"))
    yield Call((x,), {"s": (4, 3), "axes": (0, 2)})


def coordinates(random: np.random.Generator) -> Iterator[Call]:
    x = drawn(random, 5, 6)
    where = random.uniform(-4, 10, (2, 30)).astype(np.float32)
    for mode in ("constant", "nearest", "wrap", "mirror", "reflect"):
        for order in (0, 1):
            yield Call((x, where, order), {"mode": mode})
    yield Call((x, where, 1), {"mode": "constant", "cval": 2.5})
    yield called(x, random.uniform(0, 4, (2, 2, 3)).astype(np.float32), 1)
    yield called(drawn(random, 1), np.zeros((1, 3), np.float32), 1)


def placed(x: Any, where: Any, order: int, **options: Any) -> Any:
    """SciPy's modes for grids, in which JAX's `constant` and `wrap` are meant."""
    mode = {"constant": "grid-constant", "wrap": "grid-wrap"}
    kind = options.pop("mode", "constant")
    options["mode"] = mode.get(kind, kind)
    return scipy.ndimage.map_coordinates(x, where, order=order, **options)


def grids(random: np.random.Generator) -> Iterator[Call]:
    axes = (single([0, 1, 3]), single([-1, 0.5, 2, 4]))
    inside = np.stack([random.uniform(0, 3, 8), random.uniform(-1, 4, 8)], -1)
    for values in (drawn(random, 3, 4), drawn(random, 3, 4, 2)):
        for method in ("linear", "nearest"):
            yield called(axes, values, inside.astype(np.float32), method, False, np.nan)
            yield called(
                axes, values, inside.astype(np.float32) * 2 - 1, method, False, np.nan
            )
            yield called(
                axes, values, inside.astype(np.float32) * 2 - 1, method, False, -7.0
            )
            yield called(
                axes, values, inside.astype(np.float32) * 2 - 1, method, False, None
            )


def interpolated(cls: Any) -> Callable[..., Any]:
    def value(
        points: Any, values: Any, xi: Any, method: str, errors: bool, fill: Any
    ) -> Any:
        return cls(points, values, method, errors, fill)(xi)

    return value


def areas(random: np.random.Generator) -> Iterator[Call]:
    y = drawn(random, 3, 4)
    yield from varied((y,), dx=(0.5,), axis=(0, 1, -2))
    yield called(y, drawn(random, 4))
    yield Call((y, drawn(random, 3)), {"axis": 0})
    yield called(y, drawn(random, 3, 4))
    yield called(drawn(random, 1))
    yield called(np.arange(4))


def codes(random: np.random.Generator) -> Iterator[Call]:
    yield called(drawn(random, 9, 3), drawn(random, 4, 3))
    yield called(drawn(random, 9), drawn(random, 4))
    yield Call((drawn(random, 9, 3), drawn(random, 4, 3)), {"check_finite": False})


def samples(random: np.random.Generator, **options: Any) -> Iterator[Call]:
    for x in (
        random.integers(0, 4, (4, 5)),
        random.integers(0, 3, (4, 5)).astype(np.float32),
    ):
        yield from varied((x,), axis=(0, 1, -1, None), **options)
    yield called(single([3.0]))


def summed(random: np.random.Generator) -> Iterator[Call]:
    x = drawn(random, 3, 4)
    yield from varied(
        (x,),
        axis=(0, 1, -1, (0, 1), None),
        keepdims=(True,),
        b=(drawn(random, 3, 4), np.float32(2.0), np.abs(drawn(random, 4))),
    )
    yield Call((x,), {"b": drawn(random, 3, 4), "return_sign": True})
    yield Call((x,), {"axis": 0, "return_sign": True, "keepdims": True})
    yield called(single([-np.inf, -np.inf]))
    yield called(single([np.inf, 1.0]))
    yield called(single([1000.0, 1000.0]))


def shares(random: np.random.Generator) -> Iterator[Call]:
    yield from varied((drawn(random, 3, 4),), axis=(0, 1, -1, (0, 1), None))
    yield called(single([1000.0, 0.0, -1000.0]))


def harmonics(random: np.random.Generator) -> Iterator[Call]:
    n = np.array([0, 1, 2, 3, 5, 5])
    yield Call(
        (
            n,
            np.array([0, -1, 1, 3, -4, 0]),
            *random.uniform(0, 3, (2, 6)).astype(np.float32),
        )
    )
    yield Call((n[:, None], np.arange(-2, 3), np.float32(0.7), np.float32(-1.2)))


def bessels(random: np.random.Generator) -> Iterator[Call]:
    yield Call((random.uniform(-20, 20, 12).astype(np.float32),), {"v": 4})
    yield Call((single([[0.0, 1.0]]),), {"v": 0})


def bessel_j(z: Any, v: int) -> Any:
    return np.stack([scipy.special.jv(k, z) for k in range(v + 1)])


def plane(random: np.random.Generator) -> Iterator[Call]:
    yield called(
        np.complex64(random.uniform(-6, 6, 200) + 1j * random.uniform(-6, 6, 200))
    )
    yield called(random.uniform(0.1, 6, 20).astype(np.float32))


def upper_plane(random: np.random.Generator) -> Iterator[Call]:
    yield called(
        np.complex64(random.uniform(-6, 6, 200) + 1j * random.uniform(0, 6, 200))
    )


def probabilities(random: np.random.Generator) -> Iterator[Call]:
    alpha = random.uniform(0.5, 3, 4).astype(np.float32)
    # Eighths, for SciPy wants a sum of exactly one.
    x = np.array([1, 2, 2, 3], np.float32) / 8
    yield called(x, alpha)
    yield called(np.stack([random.permutation(x) for _ in range(5)], -1), alpha)
    yield called(x[:-1], alpha)


def counts(random: np.random.Generator) -> Iterator[Call]:
    p = single([0.25, 0.25, 0.5])
    yield called(np.array([1, 2, 3]), 6, p)
    yield called(np.array([[1, 2, 3], [0, 0, 6], [1, 1, 1]]), 6, p)
    yield called(np.array([1, 2]), np.array(3), single([1.0, 0.0]))


def normals(random: np.random.Generator) -> Iterator[Call]:
    cov = definite(random, 3, 3)
    yield called(drawn(random, 5, 3), drawn(random, 3), cov)
    yield called(drawn(random, 3), drawn(random, 3), cov)
    yield called(drawn(random, 4), np.float32(0.5), np.float32(2.0))


def densities(random: np.random.Generator) -> Iterator[Call]:
    for data, points in (
        (drawn(random, 12), drawn(random, 5)),
        (drawn(random, 2, 12), drawn(random, 2, 5)),
    ):
        yield from varied(
            (data, points),
            bw_method=("scott", "silverman", 0.4),
            weights=(random.uniform(0.1, 1, 12).astype(np.float32),),
        )


def kde(cls: Any, method: str) -> Callable[..., Any]:
    return lambda data, points, **options: getattr(cls(data, **options), method)(points)


MODES: Final = ("full", "same", "valid")
OTHERS: Final = (
    sig(
        "convolve", convolved(1, mode=MODES, method=("auto", "direct", "fft")), ulps=64
    ),
    sig(
        "correlate", convolved(1, mode=MODES, method=("auto", "direct", "fft")), ulps=64
    ),
    sig("fftconvolve", convolved(2, mode=MODES, axes=((0, 1), [-1, -2])), ulps=64),
    sig(
        "convolve2d",
        convolved(2, mode=MODES, boundary=("fill",), fillvalue=(0,)),
        ulps=64,
    ),
    sig(
        "correlate2d",
        convolved(2, mode=MODES, boundary=("fill",), fillvalue=(0,)),
        ulps=64,
    ),
    sig("welch", spectral, ulps=128),
    sig("csd", csd, ulps=128, dtypes=False),
    sig("stft", stft, ulps=128),
    sig("istft", istft, ulps=128),
    sig("detrend", trends, ulps=64),
    *(
        line(f"fft.{n}", getattr(fft, n), getattr(scipy.fft, n), cosines, ulps=32)
        for n in ("dct", "idct")
    ),
    *(
        line(f"fft.{n}", getattr(fft, n), getattr(scipy.fft, n), cosines_nd, ulps=32)
        for n in ("dctn", "idctn")
    ),
    line(
        "ndimage.map_coordinates",
        ndimage.map_coordinates,
        placed,
        coordinates,
        ulps=64,
        dtypes=False,
    ),
    line(
        "interpolate.RegularGridInterpolator",
        interpolated(interpolate.RegularGridInterpolator),
        interpolated(scipy.interpolate.RegularGridInterpolator),
        grids,
        ulps=32,
        dtypes=False,
    ),
    line("integrate.trapezoid", integrate.trapezoid, scipy.integrate.trapezoid, areas),
    line("cluster.vq.vq", cluster.vq.vq, scipy.cluster.vq.vq, codes, ulps=32),
    line(
        "stats.mode",
        stats.mode,
        scipy.stats.mode,
        lambda r: samples(r, keepdims=(True,)),
        dtypes=False,
    ),
    line(
        "stats.rankdata",
        stats.rankdata,
        scipy.stats.rankdata,
        lambda r: samples(r, method=("average", "min", "max", "dense", "ordinal")),
        dtypes=False,
    ),
    line(
        "stats.sem",
        stats.sem,
        scipy.stats.sem,
        lambda r: samples(r, ddof=(0,), keepdims=(True,)),
    ),
    *(
        line(
            f"stats.dirichlet.{n}",
            getattr(stats.dirichlet, n),
            getattr(scipy.stats.dirichlet, n),
            probabilities,
            ulps=256,
        )
        for n in ("pdf", "logpdf")
    ),
    *(
        line(
            f"stats.multinomial.{n}",
            getattr(stats.multinomial, n),
            getattr(scipy.stats.multinomial, n),
            counts,
            ulps=64,
        )
        for n in ("pmf", "logpmf")
    ),
    *(
        line(
            f"stats.multivariate_normal.{n}",
            getattr(stats.multivariate_normal, n),
            getattr(scipy.stats.multivariate_normal, n),
            normals,
            ulps=256,
        )
        for n in ("pdf", "logpdf")
    ),
    *(
        line(
            f"stats.gaussian_kde.{n}",
            kde(stats.gaussian_kde, n),
            kde(scipy.stats.gaussian_kde, n),
            densities,
            ulps=256,
        )
        for n in ("evaluate", "logpdf")
    ),
    line(
        "special.logsumexp", special.logsumexp, scipy.special.logsumexp, summed, ulps=32
    ),
    line("special.softmax", special.softmax, scipy.special.softmax, shares),
    line("special.log_softmax", special.log_softmax, scipy.special.log_softmax, shares),
    line(
        "special.sph_harm_y",
        special.sph_harm_y,
        scipy.special.sph_harm_y,
        harmonics,
        ulps=64,
    ),
    line("special.bessel_jn", special.bessel_jn, bessel_j, bessels, ulps=64),
    line(
        "special.bernoulli",
        special.bernoulli,
        scipy.special.bernoulli,
        constants(2, 7, 20),
        ulps=8,
    ),
    line(
        "special.multigammaln",
        special.multigammaln,
        scipy.special.multigammaln,
        lambda r: [
            called(r.uniform(3, 20, 6).astype(np.float32), d) for d in (1, 2, 5)
        ],
        ulps=32,
    ),
    line("special.loggamma", special.loggamma, scipy.special.loggamma, plane, ulps=64),
    line("special.wofz", special.wofz, scipy.special.wofz, upper_plane, ulps=64),
)

"""The coefficients of the kernels, computed: `python -m ...` prints them all.

Each is the polynomial of least error for a function that is even or odd about zero, so
that the argument is z, its square. The test beside this file compares the sources.
"""

from collections.abc import Callable, Iterator

import mpmath as mp
from attrs import frozen

from tests.ops.elementwise.minimax import minimax

type Function = Callable[[mp.mpf], mp.mpf]
DIGITS = 50
# (π/4)² and (√2 - 1)² / (√2 + 1)², and a little more
QUARTER = 0.6176
RATIO = 0.029466


@frozen
class Fit:
    """A function, where it is approximated, and what the error is multiplied by."""

    function: Function
    weight: Function | None
    high: float
    terms: int
    low: float = 1e-9


def cubic(f: Function) -> tuple[Function, Function]:
    """(f(√z) - √z) / z^3/2, and its share in f."""

    def rest(z: mp.mpf) -> mp.mpf:
        x = mp.sqrt(z)
        return (f(x) - x) / x**3

    return rest, lambda z: mp.sqrt(z) ** 3 / f(mp.sqrt(z))


def logarithm(z: mp.mpf) -> mp.mpf:
    """log((1 + √z) / (1 - √z)) / √z."""
    x = mp.sqrt(z)
    return mp.log((1 + x) / (1 - x)) / x


def log_of_more(z: mp.mpf) -> mp.mpf:
    """The part of `logarithm` beyond 2, over z."""
    return (logarithm(z) - 2) / z


def bend(f: mp.mpf) -> mp.mpf:
    """(log(1 + f) - f + f²/2) / f³."""
    return (mp.log1p(f) - f + f * f / 2) / f**3 if f else mp.mpf(1) / 3


def scaled_complement(t: mp.mpf) -> mp.mpf:
    """erfc(x) exp(x²) of t = (x - 3) / (x + 3)."""
    x = 3 * (1 + t) / (1 - t)
    return mp.erfc(x) * mp.exp(x * x)


def small_part(t: mp.mpf) -> mp.mpf:
    """exp(-x²) of t = (x - 3) / (x + 3)."""
    return mp.exp(-((3 * (1 + t) / (1 - t)) ** 2))


def inverse_erf(w: mp.mpf) -> mp.mpf:
    """erf⁻¹(x) / x with w = -log(1 - x²), by Newton's method where x is nearly 1."""
    x = mp.sqrt(-mp.expm1(-w))
    if w < 20:
        return mp.erfinv(x) / x
    rest = mp.exp(-w) / (1 + x)
    y = mp.sqrt(w - mp.log(w) / 2)
    for _ in range(12):
        slope = 2 / mp.sqrt(mp.pi) * mp.exp(-y * y)
        y += (mp.erfc(y) - rest) / slope
    return y / x


def exp2_less_one(x: mp.mpf) -> mp.mpf:
    """(2^x - 1) / x."""
    return mp.expm1(x * mp.log(2)) / x if x else mp.log(2)


ZERO = mp.findroot(mp.digamma, 1.4616321449683623)


def digamma_near(t: mp.mpf) -> mp.mpf:
    """ψ(x) / (x - `ZERO`) of t = x - 3/2."""
    x = t + mp.mpf(3) / 2
    far = abs(x - ZERO) > mp.mpf(10) ** -15
    return mp.digamma(x) / (x - ZERO) if far else mp.psi(1, ZERO)


def digamma_far(t: mp.mpf) -> mp.mpf:
    """x (log x - ψ(x)) of t = (x - 2) / (x + 2), 1/2 at the end."""
    if 1 - t < mp.mpf(10) ** -8:
        return mp.mpf(1) / 2
    x = 2 * (1 + t) / (1 - t)
    return x * (mp.log(x) - mp.digamma(x))


def share_far(t: mp.mpf) -> mp.mpf:
    """The share of that, over x, in ψ(x)."""
    if 1 - t < mp.mpf(10) ** -8:
        return mp.mpf(10) ** -9
    x = 2 * (1 + t) / (1 - t)
    return 1 / (x * mp.digamma(x))


def cotangent(z: mp.mpf) -> mp.mpf:
    """π √z cot(π √z)."""
    r = mp.pi * mp.sqrt(z)
    return r * mp.cot(r)


FITS = {
    ("angles", "SINE", 32): Fit(*cubic(mp.sin), QUARTER, 3),
    ("angles", "SINE", 64): Fit(*cubic(mp.sin), QUARTER, 6),
    ("angles", "TANGENT", 32): Fit(*cubic(mp.tan), QUARTER, 7),
    ("angles", "TANGENT", 64): Fit(*cubic(mp.tan), QUARTER, 14),
    ("angles", "COSINE", 32): Fit(
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
        lambda z: z**2 / mp.cos(mp.sqrt(z)),
        QUARTER,
        3,
        1e-6,
    ),
    ("angles", "COSINE", 64): Fit(
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
        lambda z: z**2 / mp.cos(mp.sqrt(z)),
        QUARTER,
        6,
        1e-6,
    ),
    ("arcs", "ARC_SINE", 32): Fit(*cubic(mp.asin), 0.2505, 5),
    ("arcs", "ARC_SINE", 64): Fit(*cubic(mp.asin), 0.2505, 12),
    ("arcs", "ARC_TANGENT", 32): Fit(*cubic(mp.atan), 1.0, 9),
    ("arcs", "ARC_TANGENT", 64): Fit(*cubic(mp.atan), 1.0, 20),
    ("hyperbolic", "SINH", 64): Fit(*cubic(mp.sinh), 1.0, 7),
    ("logarithms", "LOG", 64): Fit(
        lambda z: (logarithm(z) - 2) / z, lambda z: z / 2, RATIO, 7
    ),
    ("logarithms", "LOG_OF_MORE", 32): Fit(log_of_more, lambda z: z / 2, 1 / 9, 5),
    ("logarithms", "LOG_OF_MORE", 64): Fit(log_of_more, lambda z: z / 2, 1 / 9, 13),
    ("logarithms", "BEND", 32): Fit(
        bend, lambda f: f * f + mp.mpf("1e-3"), 0.4143, 9, -0.2929
    ),
    ("special", "ERF", 64): Fit(
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
        1.0,
        12,
    ),
    ("special", "COMPLEMENT", 64): Fit(scaled_complement, small_part, 1 / 3, 12, -0.5),
    ("special", "INVERSE", 64): Fit(
        lambda t: inverse_erf(t + 3.125), None, 3.125, 23, -3.1249999
    ),
    ("special", "INVERSE_FAR", 64): Fit(
        lambda t: inverse_erf((t + 3.25) ** 2), None, 0.75, 19, -0.75
    ),
    ("special", "INVERSE_LAST", 64): Fit(
        lambda t: inverse_erf((t + 5) ** 2), None, 1.1, 17, -1.0
    ),
    ("powers", "LOG2", 64): Fit(
        lambda z: logarithm(z) / mp.log(2), None, RATIO, 6, 1e-8
    ),
    ("powers", "EXP2", 64): Fit(lambda x: mp.mpf(2) ** x, None, 0.5, 7, -0.5),
    ("powers", "LOG_LATER", 64): Fit(
        lambda z: (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1 - z / 3) / z**2,
        lambda z: z**2,
        RATIO,
        7,
        1e-6,
    ),
    ("powers", "EXP2_LESS_ONE", 32): Fit(
        exp2_less_one, lambda x: abs(x) + mp.mpf("1e-3"), 0.5001, 6, -0.5
    ),
    ("powers", "EXP2_LESS_ONE", 64): Fit(
        exp2_less_one, lambda x: abs(x) + mp.mpf("1e-3"), 0.5001, 11, -0.5
    ),
    ("special", "DIGAMMA_NEAR", 32): Fit(digamma_near, None, 0.5, 10, -0.5),
    ("special", "DIGAMMA_NEAR", 64): Fit(digamma_near, None, 0.5, 21, -0.5),
    ("special", "DIGAMMA_FAR", 32): Fit(digamma_far, share_far, 1 - 1e-9, 7, 0.0),
    ("special", "DIGAMMA_FAR", 64): Fit(digamma_far, share_far, 1 - 1e-9, 18, 0.0),
    ("special", "COTANGENT", 32): Fit(cotangent, lambda z: mp.mpf(1), 0.25, 7, 1e-12),
    ("special", "COTANGENT", 64): Fit(cotangent, lambda z: mp.mpf(1), 0.25, 14, 1e-12),
}


def computed(fit: Fit) -> tuple[float, ...]:
    """The coefficients, the constant one first."""
    found, _ = minimax(fit.function, fit.low, fit.high, fit.terms, fit.weight, DIGITS)
    return tuple([float(c) for c in found])


def pieces(value: Function, bits: int, count: int) -> Iterator[float]:
    """A constant as a sum of floats with so many bits, and one more for the rest."""
    with mp.workdps(80):
        rest = value(mp.mpf(1))
        for _ in range(count):
            fraction, exponent = mp.frexp(rest)
            piece = mp.ldexp(mp.nint(mp.ldexp(fraction, bits)), exponent - bits)
            rest -= piece
            yield float(piece)
        yield float(rest)


PIECES = {
    ("angles", "TURNS"): (lambda one: one / (2 * mp.pi), 29, 5),
    ("angles", "QUARTER"): (lambda one: mp.pi / 2, 33, 3),
    ("logarithms", "LN2_PARTS"): (lambda one: mp.log(2), 42, 1),
    ("logarithms", "LN2_SHORT"): (lambda one: mp.log(2), 9, 1),
    ("powers", "THIRD_PARTS"): (lambda one: one / 3, 26, 1),
    ("powers", "SCALE_PARTS"): (lambda one: 2 / mp.log(2), 26, 1),
    ("special", "ZERO"): (lambda one: ZERO, 24, 2),
}


def main() -> None:
    """Print all coefficients."""
    for (file, name, bits), fit in FITS.items():
        print(f"{file}.{name}[float{bits}]: {computed(fit)}")
    for (file, name), (value, bits, count) in PIECES.items():
        print(f"{file}.{name}: {tuple(pieces(value, bits, count))}")


if __name__ == "__main__":
    main()

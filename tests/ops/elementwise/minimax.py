"""Polynomials of least error, by which functions are written out for the CPU.

Remez's exchange: a polynomial of n terms is best where its error reaches its maximum
with alternating signs at n + 1 points; such points are sought by solving for the
polynomial whose error alternates at the present ones, and taking its extremes::

    minimax(mp.exp, -0.35, 0.35, 6)        # the coefficients, lowest first

E. Ya. Remez, "Sur la détermination des polynômes d'approximation de degré donnée",
Comm. Soc. Math. Kharkov 10 (1934).
"""

from collections.abc import Callable
from functools import cache
from itertools import pairwise

import mpmath as mp

type Function = Callable[[mp.mpf], mp.mpf]
ROUNDS = 30
GRID = 40
"""So many points are looked at between two of the alternating ones."""
STRIDE = 5
"""First one in so many of them is, and then those about the largest."""
FRACTION = 256
"""Bits after the point of the integers by which polynomials are evaluated."""


def minimax(
    f: Function,
    low: float,
    high: float,
    terms: int,
    weight: Function | None = None,
    digits: int = 40,
) -> tuple[list[mp.mpf], mp.mpf]:
    """The polynomial p of so many terms with the least max |weight (f - p)|; that.

    Without a weight the error is relative to f.
    """
    with mp.workdps(digits):
        a, b = mp.mpf(low), mp.mpf(high)
        angles = [mp.pi * i / terms for i in range(terms + 1)]
        points = [(a + b) / 2 - (b - a) / 2 * mp.cos(angle) for angle in angles]
        coefficients: list[mp.mpf] = []
        worst = mp.inf

        @cache
        def known(x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
            value = f(x)
            return value, weight(x) if weight else 1 / value

        for _ in range(ROUNDS):
            rows = [
                [*[x**k for k in range(terms)], (-1) ** i / known(x)[1]]
                for i, x in enumerate(points)
            ]
            right = [known(x)[0] for x in points]
            *coefficients, level = mp.lu_solve(mp.matrix(rows), mp.matrix(right))
            polynomial = evaluator(coefficients)

            def error(x: mp.mpf, own: Function = polynomial) -> mp.mpf:
                value, factor = known(x)
                return factor * (value - own(x))

            points = extremes(error, [a, *points, b])
            worst = max(abs(error(x)) for x in points)
            if worst <= abs(level) * mp.mpf("1.01"):
                break
        return coefficients, worst


def evaluator(coefficients: list[mp.mpf]) -> Function:
    """A polynomial by Horner's rule in integers, which are faster than floats here."""
    whole = [int(mp.ldexp(c, FRACTION)) for c in reversed(coefficients)]

    def polynomial(x: mp.mpf) -> mp.mpf:
        factor, total = int(mp.ldexp(x, FRACTION)), 0
        for c in whole:
            total = (total * factor >> FRACTION) + c
        return mp.ldexp(mp.mpf(total), -FRACTION)

    return polynomial


def extremes(error: Function, ends: list[mp.mpf]) -> list[mp.mpf]:
    """The alternating extremes of an error, one for each of the inner points."""
    grid = [
        low + (high - low) * i / GRID
        for low, high in pairwise(ends)
        for i in range(GRID)
        if low < high
    ]
    grid.append(ends[-1])

    @cache
    def at(i: int) -> mp.mpf:
        return error(grid[i])

    runs: list[list[int]] = []
    for i in (*range(0, len(grid) - 1, STRIDE), len(grid) - 1):
        if not runs or (at(runs[-1][-1]) > 0) != (at(i) > 0):
            runs.append([])
        runs[-1].append(i)
    count = len(ends) - 2
    best = [top(at, max(run, key=lambda i: abs(at(i))), len(grid)) for run in runs]
    while len(best) > count:  # the smallest goes, from an end so that signs alternate
        best.pop(0 if abs(at(best[0])) < abs(at(best[-1])) else -1)
    return [grid[i] for i in best]


def top(values: Callable[[int], mp.mpf], start: int, count: int) -> int:
    """The place of an extreme, uphill or downhill from where it is nearly reached."""
    sign = mp.sign(values(start))
    for step in (-1, 1):
        while 0 <= start + step < count and (
            sign * values(start + step) > sign * values(start)
        ):
            start += step
    return start

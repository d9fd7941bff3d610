"""Polynomials of least error, by which functions are written out for the CPU.

Remez's exchange: a polynomial of n terms is best where its error reaches its maximum
with alternating signs at n + 1 points; such points are sought by solving for the
polynomial whose error alternates at the present ones, and taking its extremes::

    minimax(mp.exp, -0.35, 0.35, 6)        # the coefficients, lowest first

E. Ya. Remez, "Sur la détermination des polynômes d'approximation de degré donnée",
Comm. Soc. Math. Kharkov 10 (1934).
"""

from collections.abc import Callable
from itertools import pairwise

import mpmath as mp

type Function = Callable[[mp.mpf], mp.mpf]
ROUNDS = 30
GRID = 40
"""So many points are looked at between two of the alternating ones."""


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
        scale = weight or (lambda x: 1 / f(x))
        a, b = mp.mpf(low), mp.mpf(high)
        angles = [mp.pi * i / terms for i in range(terms + 1)]
        points = [(a + b) / 2 - (b - a) / 2 * mp.cos(angle) for angle in angles]
        values: dict[mp.mpf, tuple[mp.mpf, mp.mpf]] = {}
        coefficients: list[mp.mpf] = []
        worst = mp.inf

        def known(x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
            if x not in values:
                values[x] = f(x), scale(x)
            return values[x]

        for _ in range(ROUNDS):
            rows = [
                [*[x**k for k in range(terms)], (-1) ** i / known(x)[1]]
                for i, x in enumerate(points)
            ]
            right = [known(x)[0] for x in points]
            *coefficients, level = mp.lu_solve(mp.matrix(rows), mp.matrix(right))

            def error(x: mp.mpf, own: list[mp.mpf] = coefficients) -> mp.mpf:
                value, factor = known(x)
                return factor * (value - sum(c * x**k for k, c in enumerate(own)))

            points = extremes(error, [a, *points, b])
            worst = max(abs(error(x)) for x in points)
            if worst <= abs(level) * mp.mpf("1.01"):
                break
        return coefficients, worst


def extremes(error: Function, ends: list[mp.mpf]) -> list[mp.mpf]:
    """The alternating extremes of an error, one for each of the inner points."""
    grid = sorted(
        {
            low + (high - low) * i / GRID
            for low, high in pairwise(ends)
            for i in range(GRID + 1)
        }
    )
    runs: list[list[tuple[mp.mpf, mp.mpf]]] = []
    for x in grid:
        value = error(x)
        if not runs or (runs[-1][-1][0] > 0) != (value > 0):
            runs.append([])
        runs[-1].append((value, x))
    best = [max(run, key=lambda pair: abs(pair[0])) for run in runs]
    count = len(ends) - 2
    while len(best) > count:  # the smallest goes, from an end so that signs alternate
        best.pop(0 if abs(best[0][0]) < abs(best[-1][0]) else -1)
    return [x for _, x in best]

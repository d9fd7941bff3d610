"""Floor 6: `verax.scipy`: functions of SciPy, with its names and arguments.

A program uses few of these packages, so each is loaded when it is first named; `import
verax.scipy.stats` and `from verax.scipy import stats` work as ever.

>>> import verax
>>> verax.scipy.special.expit(0.0)
Array(0.5, dtype=float32, weak_type=True)
"""

from verax.ir.facade import facade

__getattr__, __dir__ = facade(
    __name__,
    {},
    modules=(
        "cluster fft integrate interpolate linalg ndimage optimize signal "
        "sparse spatial special stats"
    ),
)

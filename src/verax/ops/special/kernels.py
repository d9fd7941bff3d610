"""Floor 2: the error function and its inverse in double precision, for a CPU.

The error function is a polynomial of x² near zero, and 1 less exp(-x²) times one of
(x - 3) / (x + 3) further out; its inverse is one of log(1 - x²) or of its root::

    erf x = 1 - exp(-x²) g((x - 3) / (x + 3))

The parts of the inverse are those of M. Giles, "Approximating the erfinv function", GPU
Computing Gems, Jade edition, 2011.
"""

from typing import Final

import numpy as np

from verax.ops.elementwise.arith import (
    abs as magnitude,
    add,
    div,
    max as larger,
    min as smaller,
    mul,
    neg,
    sub,
)
from verax.ops.elementwise.compare import eq, gt, lt
from verax.ops.elementwise.exp_log import exp, log1p, sqrt
from verax.ops.elementwise.kernels.parts import horner, with_sign_of
from verax.ops.elementwise.select import select
from verax.rules.values.array import Array

# erf(√z) / √z - 1
ERF: Final = (
    0.12837916709551256,
    -0.3761263890318352,
    0.112837916709442,
    -0.026866170643113415,
    0.005223977606130842,
    -0.0008548325929766229,
    0.00012055293586936552,
    -1.492471243952805e-05,
    1.6447132699711598e-06,
    -1.6206318752446298e-07,
    1.3710988702111699e-08,
    -7.779462968166381e-10,
)
# erfc(x) exp(x²) of (x - 3) / (x + 3), for x from 1 to `WHOLE`
COMPLEMENT: Final = (
    0.1790011511813538,
    -0.3262335600459011,
    0.24560380166431175,
    -0.1501159363437282,
    0.07166585012863305,
    -0.02439232789735404,
    0.004270353685815991,
    0.0007131748908027033,
    -0.0005810930610673882,
    7.639286204633977e-05,
    0.00010295095445436336,
    1.5203005669187242e-05,
)
WHOLE: Final = 6.0
"""The error function of larger numbers is 1."""
# erf⁻¹(x) / x of w = -log(1 - x²), for w - `CENTRAL` and √w less the other two
INVERSE: Final = (
    1.653654562683103,
    0.24015818242558948,
    -0.006033670871430704,
    -0.0007407025341652962,
    0.00018673420803638947,
    -1.3882523364917458e-05,
    -1.3654692038818088e-06,
    4.2347878042392755e-07,
    -2.9070366798262973e-08,
    -4.112635166609785e-09,
    1.0512107448562609e-09,
    -5.415372614673188e-11,
    -1.297467345096494e-11,
    2.6334271355137758e-12,
    -8.160799399010967e-14,
    -4.0534851166445324e-14,
    6.6486000486941985e-15,
    2.0100770610242433e-17,
    -1.341576751085174e-16,
    1.119723656389204e-17,
    1.3222261575780978e-18,
    -1.6926722499955001e-19,
    -4.323663416813413e-21,
)
INVERSE_FAR: Final = (
    3.0838856104922203,
    1.0052589676941597,
    0.005370914553602653,
    -0.00375120850759878,
    0.002491442095508392,
    -0.0016882755552983851,
    0.0009532893907057197,
    -0.0003550375283437627,
    2.4031009995364448e-05,
    6.828489801823285e-05,
    -4.731771336224285e-05,
    1.247515043159199e-05,
    2.921890251609503e-06,
    -4.013577247817652e-06,
    1.5054706695934538e-06,
    1.794939798039535e-08,
    -2.7775864666477695e-07,
    9.087604863050373e-08,
    3.2328399394807633e-09,
)
INVERSE_LAST: Final = (
    4.849906401408584,
    1.0103004648645262,
    -0.0001387193183901298,
    -0.0002150301189827084,
    7.599527830208878e-05,
    -1.9681781581264173e-05,
    4.526051546431883e-06,
    -9.92966129548671e-07,
    2.2905088152810969e-07,
    -6.775239812225888e-08,
    2.904541012979108e-08,
    -1.4907655997121838e-08,
    7.740658855912853e-09,
    -3.82389827357012e-09,
    1.4290765606587935e-09,
    -2.4653535564872425e-10,
    -7.170450752987465e-12,
)
CENTRAL: Final = 3.125
OUTER: Final = (3.25, 5.0)
ENDS: Final = (6.25, 16.0)


def erf(x: Array) -> Array:
    """The error function."""
    size = magnitude(x)
    near = add(x, mul(x, horner(mul(x, x), ERF)))
    away = smaller(larger(size, 1.0), WHOLE)
    g = horner(div(sub(away, 3.0), add(away, 3.0)), COMPLEMENT)
    far = sub(1.0, mul(exp(neg(mul(away, away))), g))
    return select(gt(size, 1.0), with_sign_of(far, x), near)


def erf_inv(x: Array) -> Array:
    """The inverse of the error function; NaN outside [-1, 1]."""
    w = neg(log1p(neg(mul(x, x))))
    root = sqrt(w)
    near = horner(sub(w, CENTRAL), INVERSE)
    far = horner(sub(root, OUTER[0]), INVERSE_FAR)
    last = horner(sub(root, OUTER[1]), INVERSE_LAST)
    factor = select(lt(w, ENDS[0]), near, select(lt(w, ENDS[1]), far, last))
    return mul(x, select(eq(magnitude(x), 1.0), np.inf, factor))

"""Floor 2: the error function and its inverse, and digamma, for a CPU.

The error function is a polynomial of x² near zero, and 1 less exp(-x²) times one of
(x - 3) / (x + 3) further out; its inverse is one of log(1 - x²) or of its root::

    erf x = 1 - exp(-x²) g((x - 3) / (x + 3))

Digamma is a multiple of x - x0 near its zero x0, and log x less a series in 1 / x from
2 on; other numbers come there by ψ(x + 1) = ψ(x) + 1/x and ψ(1 - x) = ψ(x) + π cot πx
(NIST Digital Library of Mathematical Functions, 5.5.2, 5.5.4 and 5.11.2).

The parts of the inverse are those of M. Giles, "Approximating the erfinv function", GPU
Computing Gems, Jade edition, 2011.
"""

from typing import Final

import numpy as np

from verax.ir.dtypes import float32, float64
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
from verax.ops.elementwise.bits import bitwise_and
from verax.ops.elementwise.compare import eq, ge, gt, lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import exp, log, log1p, sqrt
from verax.ops.elementwise.kernels.parts import (
    Coefficients,
    PerDtype,
    horner,
    nearest,
    with_sign_of,
)
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

# ψ(x) / (x - x0) of x - 3/2, and x (log x - ψ(x)) of (x - 2) / (x + 2)
DIGAMMA_NEAR: Final[PerDtype[Coefficients]] = {
    float32: (
        0.9510558967485847,
        -0.4236274765752393,
        0.24053838603290667,
        -0.14839997746555833,
        0.0951175727573486,
        -0.06203989545127245,
        0.039360722206590086,
        -0.025872720861864228,
        0.02392653914740298,
        -0.01622095305515344,
    ),
    float64: (
        0.9510558760318328,
        -0.4236274212814572,
        0.24054248424077773,
        -0.148404923054876,
        0.09498872445447809,
        -0.06192213318945769,
        0.04076083383615098,
        -0.02697580007006864,
        0.01790725182212568,
        -0.01190814580375252,
        0.007926953869132529,
        -0.005280910321159515,
        0.003518922528430219,
        -0.002337507875475714,
        0.0015571037925116854,
        -0.0010778505305478721,
        0.0007217212517091295,
        -0.00035443455411517566,
        0.00023025574858226482,
        -0.0003786683357609317,
        0.00025726626101630446,
    ),
}
DIGAMMA_FAR: Final[PerDtype[Coefficients]] = {
    float32: (
        0.5407256737808657,
        -0.07801757725547567,
        0.06874708942325305,
        -0.05554166103581201,
        0.03888802161044486,
        -0.01982038876618018,
        0.00503902810029076,
    ),
    float64: (
        0.5407256909229563,
        -0.07802115293988857,
        0.06885467859398463,
        -0.056668269261306366,
        0.04433947071331501,
        -0.03376225607866433,
        0.02558109579318619,
        -0.019594269773865657,
        0.015279120038821101,
        -0.012099398276800653,
        0.009587105674618993,
        -0.0073582470632311365,
        0.005196403211506261,
        -0.0031635896503012144,
        0.0015412701803265909,
        -0.000549293582207707,
        0.00012519081544674955,
        -1.3549318016885082e-05,
    ),
}
# π √z cot(π √z)
COTANGENT: Final[PerDtype[Coefficients]] = {
    float32: (
        0.9999999543526232,
        -3.289850908959731,
        -2.1657046623538236,
        -2.0104846814511506,
        -2.267656716299239,
        -0.6207862377082226,
        -5.335229694851555,
    ),
    float64: (
        1.0000000000000004,
        -3.2898681336971434,
        -2.1646464672461687,
        -2.0346861416399262,
        -2.0081537885555765,
        -2.002018014559417,
        -1.9999098848559256,
        -2.008057604844177,
        -1.925192814861296,
        -2.492105415472662,
        0.2338596774662716,
        -8.770746157671438,
        10.68820498373522,
        -14.082253234606002,
    ),
}
# x0, where digamma is zero, in pieces of 24 bits, and the rest.
ZERO: Final = (1.4616321325302124, 1.243815006546356e-08, -1.2654460473742433e-16)


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


def digamma(x: Array) -> Array:
    """The derivative of log Γ(x); NaN at negative whole numbers, -inf at zeros."""
    dtype = x.dtype
    negative = lt(x, 0.0)
    y = select(negative, sub(1.0, x), x)
    low = lt(y, 1.0)
    inner = select(low, add(y, 1.0), smaller(y, 2.0))
    # x - x0 in pieces, of which the first difference is exact
    offset = sub(inner, ZERO[0])
    for piece in ZERO[1:2] if dtype == float32 else ZERO[1:]:
        offset = sub(offset, piece)
    near = mul(offset, horner(sub(inner, 1.5), DIGAMMA_NEAR[dtype]))
    outer = larger(y, 2.0)
    series = horner(div(sub(outer, 2.0), add(outer, 2.0)), DIGAMMA_FAR[dtype])
    far = sub(log(outer), div(series, outer))
    # 1/x below 1, and π cot πx of negative numbers
    rest = sub(x, nearest(x))
    cotangent = horner(mul(rest, rest), COTANGENT[dtype])
    top = select(negative, cotangent, convert(low, dtype))
    bottom = select(negative, rest, select(low, x, 1.0))
    result = sub(select(ge(y, 2.0), far, near), div(top, bottom))
    result = select(bitwise_and(negative, eq(rest, 0.0)), np.nan, result)
    result = select(eq(x, 0.0), -np.inf, result)
    return select(eq(x, np.inf), x, result)

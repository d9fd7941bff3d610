"""The sweep: functions of the interface, each with its gradient where it has one.

One idea: most functions need only a name and letters for their operands; those that
need more are a line each.

    next(cases()).name  # "numpy.sin/x"
"""

from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter
from typing import Any

from .cases import Case
from .operands import drawn

type Run = Callable[..., Any]

# Module, operands by letters: with a star, no gradient.
NAMED = """
numpy x: sin cos tan arctan sinh cosh tanh arcsinh exp exp2 expm1 abs square sign* \
floor* ceil* rint* trunc* sinc deg2rad isfinite* signbit* nan_to_num cbrt negative i0 \
sum mean std var prod max min ptp median cumsum cumprod any* all* argmax* argmin* \
count_nonzero* nansum nanmean nanstd nanmax nanmin nanmedian nancumsum sort argsort* \
diff gradient trapezoid flip fliplr rot90 transpose ravel tril triu trace diagonal \
average ediff1d unwrap spacing* modf frexp* tri* nanprod
numpy v: sort argsort* cumsum cumprod diff sum prod max median argmax* flip ptp var \
nonzero_sized* unique_sized* histogram*
numpy p: log log2 log10 log1p sqrt reciprocal
numpy u: arcsin arccos arctanh
numpy g: arccosh
numpy xy: add subtract multiply maximum minimum arctan2 hypot logaddexp logaddexp2 \
greater* equal* isclose* copysign* nextafter* dot inner matmul vdot heaviside* fmax \
fmin kron_small cross3
numpy xq: divide floor_divide* mod fmod remainder divmod*
numpy pu: power float_power
numpy ik: gcd* lcm* floor_divide* mod* left_shift* bitwise_and* right_shift* power*
numpy vw: add convolve_short correlate_short outer_short interp searchsorted* \
digitize* isin*
numpy z: abs angle real imag conj exp sin sqrt
nn x: relu relu6 elu gelu silu softplus selu celu leaky_relu log_sigmoid sigmoid \
soft_sign hard_tanh hard_sigmoid hard_silu softmax log_softmax logsumexp standardize \
mish squareplus glu tanh logmeanexp
special x: expit erf erfc ndtr log_ndtr i0 i0e i1 i1e entr_abs softmax log_softmax \
logsumexp sinc_exp
special h: logit erfinv ndtri entr betaln_h spence log_expit
special p: gammaln digamma gamma_small exprel zeta2 factorial bessel_jn* poch
special pq: betaln gammainc gammaincc xlogy xlog1py rel_entr kl_div beta_small
stats x: norm.logpdf norm.pdf norm.cdf norm.logcdf norm.sf logistic.logpdf \
laplace.logpdf cauchy.logpdf t.logpdf3 gennorm2 expon_abs
stats p: gamma.logpdf2 chi2.logpdf3 expon.logpdf pareto_more
stats h: beta.logpdf23 uniform.logpdf norm.ppf logistic.ppf
linalg s: cholesky inv det eigh* svd* expm_small solve_r lu* qr logm_none slogdet \
pinv* matrix_power3 cho_solve_r solve_triangular_r norm multi_dot3 eigvalsh* lstsq_r*
linalg c: cholesky inv det solve_stack eigh* qr slogdet
lax x: rsqrt logistic tanh erf_inv_u lgamma_p digamma_p bessel_i1e expand top_k \
cumlogsumexp cummax cummin reduce_precision*
fft x: fft ifft rfft fft2 rfft2 fftn irfft hfft
fft v: fft rfft ifft
fft z: fft ifft fft2 irfft
"""

NUMPY_LINALG = {f"linalg.{name}" for name in ["inv", "det", "svd", "eigh", "qr"]}

# What a name above means that is not an attribute of its module.
MEANT: dict[str, Run] = {
    "numpy.i0": lambda j, x: j.numpy.i0(x),
    "numpy.nonzero_sized": lambda j, x: j.numpy.nonzero(x > 0, size=60_000)[0],
    "numpy.unique_sized": lambda j, x: j.numpy.unique(
        j.numpy.round(x * 100), size=1000
    ),
    "numpy.histogram": lambda j, x: j.numpy.histogram(x, 50)[0],
    "numpy.tri": lambda j, x: j.numpy.tri(500),
    "numpy.kron_small": lambda j, x, y: j.numpy.kron(x[:20, :20], y[:20, :20]),
    "numpy.cross3": lambda j, x, y: j.numpy.cross(x[:, :3], y[:, :3]),
    "numpy.convolve_short": lambda j, x, y: j.numpy.convolve(x, y[:20]),
    "numpy.correlate_short": lambda j, x, y: j.numpy.correlate(x, y[:20]),
    "numpy.outer_short": lambda j, x, y: j.numpy.outer(x[:500], y[:500]),
    "numpy.interp": lambda j, x, y: j.numpy.interp(
        x, j.numpy.linspace(-3.0, 3.0, 100), y[:100]
    ),
    "numpy.searchsorted": lambda j, x, y: j.numpy.searchsorted(j.numpy.sort(x), y),
    "numpy.digitize": lambda j, x, y: j.numpy.digitize(
        x, j.numpy.linspace(-3.0, 3.0, 100)
    ),
    "numpy.isin": lambda j, x, y: j.numpy.isin(x, y[:50]),
    "numpy.flip": lambda j, x: j.numpy.flip(x) * 2,
    "numpy.fliplr": lambda j, x: j.numpy.fliplr(x) * 2,
    "numpy.rot90": lambda j, x: j.numpy.rot90(x) * 2,
    "numpy.transpose": lambda j, x: x.T + 1,
    "numpy.ravel": lambda j, x: j.numpy.ravel(x) + 1,
    "nn.tanh": lambda j, x: j.numpy.tanh(x) * x,
    "special.entr_abs": lambda j, x: j.special.entr(abs(x)),
    "special.softmax": lambda j, x: j.nn.softmax(x, 0),
    "special.log_softmax": lambda j, x: j.nn.log_softmax(x, 0),
    "special.sinc_exp": lambda j, x: j.special.exp1(abs(x) + 0.1),
    "special.betaln_h": lambda j, x: j.special.betaln(x, 0.5),
    "special.log_expit": lambda j, x: j.nn.log_sigmoid(x),
    "special.gamma_small": lambda j, x: j.special.gamma(x),
    "special.exprel": lambda j, x: j.numpy.expm1(x) / x,
    "special.zeta2": lambda j, x: j.special.zeta(x + 1.5, 2.0),
    "special.factorial": lambda j, x: j.special.factorial(x),
    "special.bessel_jn": lambda j, x: j.special.bessel_jn(x[:50], v=3, n_iter=20),
    "special.poch": lambda j, x: j.special.poch(x, 1.5),
    "special.beta_small": lambda j, x, y: j.special.beta(x, y),
    "special.kl_div": lambda j, x, y: j.special.kl_div(x, y),
    "stats.t.logpdf3": lambda j, x: j.stats.t.logpdf(x, 3.0),
    "stats.gennorm2": lambda j, x: j.stats.gennorm.logpdf(x, 2.5),
    "stats.expon_abs": lambda j, x: j.stats.expon.logpdf(abs(x)),
    "stats.gamma.logpdf2": lambda j, x: j.stats.gamma.logpdf(x, 2.0),
    "stats.chi2.logpdf3": lambda j, x: j.stats.chi2.logpdf(x, 3.0),
    "stats.pareto_more": lambda j, x: j.stats.pareto.logpdf(x + 1, 2.0),
    "stats.beta.logpdf23": lambda j, x: j.stats.beta.logpdf(x, 2.0, 3.0),
    "linalg.solve_r": lambda j, a: j.numpy.linalg.solve(a, a[0]),
    "linalg.expm_small": lambda j, a: j.linalg.expm(a[:50, :50]),
    "linalg.logm_none": lambda j, a: j.numpy.linalg.cond(a),
    "linalg.slogdet": lambda j, a: j.numpy.linalg.slogdet(a)[1],
    "linalg.cholesky": lambda j, a: j.numpy.linalg.cholesky(a),
    "linalg.pinv": lambda j, a: j.numpy.linalg.pinv(a),
    "linalg.matrix_power3": lambda j, a: j.numpy.linalg.matrix_power(a, 3),
    "linalg.cho_solve_r": lambda j, a: j.linalg.cho_solve(j.linalg.cho_factor(a), a[0]),
    "linalg.solve_triangular_r": lambda j, a: j.linalg.solve_triangular(
        a, a[:, :8], lower=True
    ),
    "linalg.norm": lambda j, a: j.numpy.linalg.norm(a),
    "linalg.multi_dot3": lambda j, a: j.numpy.linalg.multi_dot([a, a, a[:, :3]]),
    "linalg.eigvalsh": lambda j, a: j.numpy.linalg.eigvalsh(a),
    "linalg.lstsq_r": lambda j, a: j.numpy.linalg.lstsq(a, a[0])[0],
    "linalg.solve_stack": lambda j, a: j.numpy.linalg.solve(a, a[:, :, :2]),
    "lax.erf_inv_u": lambda j, x: j.lax.erf_inv(j.numpy.tanh(x)),
    "lax.lgamma_p": lambda j, x: j.lax.lgamma(abs(x) + 0.1),
    "lax.digamma_p": lambda j, x: j.lax.digamma(abs(x) + 0.1),
    "lax.expand": lambda j, x: j.lax.broadcast_in_dim(x, (4, 500, 500), (1, 2)) * 2,
    "lax.top_k": lambda j, x: j.lax.top_k(x, 8)[0],
    "lax.reduce_precision": lambda j, x: j.lax.reduce_precision(x, 5, 10),
}

# Name: operands, how many gradients, the program.
WRITTEN: dict[str, tuple[str, int, Run]] = {
    "sum_axis0": ("x", 1, lambda j, x: x.sum(0)),
    "sum_axis1": ("x", 1, lambda j, x: (x * x).sum(1)),
    "mean_var": ("x", 1, lambda j, x: (x - x.mean(1, keepdims=True)) / x.std(1)),
    "max_axis0": ("x", 1, lambda j, x: x.max(0)),
    "prod_axis1": ("p", 1, lambda j, x: x.prod(1)),
    "logsumexp_axis0": ("x", 1, lambda j, x: j.nn.logsumexp(x, 0)),
    "cumsum_axis0": ("x", 1, lambda j, x: j.numpy.cumsum(x, 0)),
    "cumsum_axis1": ("x", 1, lambda j, x: j.numpy.cumsum(x, 1)),
    "cumprod_axis1": ("p", 1, lambda j, x: j.numpy.cumprod(x, 1)),
    "cummax_axis1": ("x", 0, lambda j, x: j.lax.cummax(x, 1)),
    "sort_axis0": ("x", 1, lambda j, x: j.numpy.sort(x, 0)),
    "quantile": ("v", 1, lambda j, x: j.numpy.quantile(x, 0.3)),
    "percentile_axis": ("x", 1, lambda j, x: j.numpy.percentile(x, 30.0, axis=0)),
    "partition": ("v", 0, lambda j, x: j.numpy.partition(x, 1000)),
    "take_rows": ("xn", 1, lambda j, x, n: x[n]),
    "take_columns": ("xn", 1, lambda j, x, n: x[:, n[:500]]),
    "take_pairs": ("xn", 1, lambda j, x, n: x[n, n[::-1]]),
    "take_along": ("xi", 1, lambda j, x, i: j.numpy.take_along_axis(x, i % 500, 1)),
    "take_vector": ("vj", 1, lambda j, x, n: x[n]),
    "mask_where": ("xb", 1, lambda j, x, b: j.numpy.where(b, x, 0)),
    "at_set": ("xn", 1, lambda j, x, n: x.at[n].set(1.0)),
    "at_add": ("xn", 1, lambda j, x, n: x.at[n].add(1.0)),
    "at_add_values": ("vj", 1, lambda j, x, n: j.numpy.zeros(1000).at[n].add(x)),
    "at_max": ("vj", 1, lambda j, x, n: j.numpy.zeros(1000).at[n].max(x)),
    "at_mul": ("vj", 0, lambda j, x, n: j.numpy.ones(1000).at[n].mul(x)),
    "at_slice": ("x", 1, lambda j, x: x.at[1:-1, 1:-1].add(x[2:, 2:])),
    "segment_sum": ("vj", 1, lambda j, x, n: j.ops.segment_sum(x, n, 1000)),
    "segment_max": ("vj", 1, lambda j, x, n: j.ops.segment_max(x, n, 1000)),
    "bincount": ("j", 0, lambda j, n: j.numpy.bincount(n, length=1000)),
    "one_hot": ("n", 0, lambda j, n: j.nn.one_hot(n, 500)),
    "concatenate": ("xy", 2, lambda j, x, y: j.numpy.concatenate([x, y], 1) * 2),
    "stack": ("xy", 2, lambda j, x, y: j.numpy.stack([x, y], -1) * 2),
    "pad": ("x", 1, lambda j, x: j.numpy.pad(x, 3) * 2),
    "pad_reflect": ("x", 1, lambda j, x: j.numpy.pad(x, 3, mode="reflect") * 2),
    "pad_edge": ("x", 1, lambda j, x: j.numpy.pad(x, 3, mode="edge") * 2),
    "tile": ("x", 1, lambda j, x: j.numpy.tile(x, (2, 2)) * 2),
    "repeat": ("x", 1, lambda j, x: j.numpy.repeat(x, 3, axis=0) * 2),
    "roll": ("x", 1, lambda j, x: j.numpy.roll(x, 5, 1) * 2),
    "roll_stencil": (
        "x",
        1,
        lambda j, x: (
            j.numpy.roll(x, 1, 0)
            + j.numpy.roll(x, -1, 0)
            + j.numpy.roll(x, 1, 1)
            + j.numpy.roll(x, -1, 1)
            - 4 * x
        ),
    ),
    "slices_stencil": (
        "x",
        1,
        lambda j, x: x[1:-1, 2:] + x[1:-1, :-2] + x[2:, 1:-1] + x[:-2, 1:-1],
    ),
    "reshape_transpose": (
        "x",
        1,
        lambda j, x: x.reshape(50, 10, 500).transpose(1, 0, 2).reshape(500, 500) * 2,
    ),
    "moveaxis": ("t", 1, lambda j, x: j.numpy.moveaxis(x, -1, 1) * 2),
    "einsum_ij_jk": ("xy", 2, lambda j, x, y: j.numpy.einsum("ij,jk->ik", x, y)),
    "einsum_ij_ij": ("xy", 2, lambda j, x, y: j.numpy.einsum("ij,ij->i", x, y)),
    "einsum_bij_bjk": ("dd", 2, lambda j, x, y: j.numpy.einsum("bij,bjk->bik", x, y)),
    "matvec": ("mr", 2, lambda j, a, b: a @ b),
    "outer": ("rr", 2, lambda j, a, b: j.numpy.outer(a, b)),
    "tensordot": ("tf", 2, lambda j, x, f: j.numpy.tensordot(x, f[0, 0], 1)),
    "vander": ("r", 1, lambda j, x: j.numpy.vander(x, 20)),
    "polyval": ("xr", 2, lambda j, x, c: j.numpy.polyval(c[:10], x)),
    "meshgrid": ("r", 1, lambda j, x: j.numpy.meshgrid(x, x)[0] * 2),
    "triu_indices": ("x", 1, lambda j, x: x[j.numpy.triu_indices(500)]),
    "cov": ("x", 1, lambda j, x: j.numpy.cov(x)),
    "corrcoef": ("x", 1, lambda j, x: j.numpy.corrcoef(x)),
    "piecewise": (
        "x",
        1,
        lambda j, x: j.numpy.piecewise(
            x, [x < 0, x >= 0], [lambda x: -x, lambda x: x * x]
        ),
    ),
    "select": ("xy", 2, lambda j, x, y: j.numpy.select([x > 1, y > 1], [x, y], 0.0)),
    "clip": ("x", 1, lambda j, x: j.numpy.clip(x, -1, 1)),
    "power_int": ("x", 1, lambda j, x: x**3),
    "power_half": ("p", 1, lambda j, x: x**0.5),
    "powers_negative": ("p", 1, lambda j, x: x**-2),
    "astype_bf16": ("x", 1, lambda j, x: x.astype(j.numpy.bfloat16) * 2),
    "astype_f16": ("x", 1, lambda j, x: x.astype(j.numpy.float16) * 2),
    "astype_int": ("x", 0, lambda j, x: x.astype(j.numpy.int32)),
    "bf16_sum": ("x", 1, lambda j, x: x.astype(j.numpy.bfloat16).sum(1)),
    "bf16_tanh": ("x", 1, lambda j, x: j.numpy.tanh(x.astype(j.numpy.bfloat16))),
    "conv_same": (
        "tf",
        2,
        lambda j, x, f: j.lax.conv_general_dilated(
            x, f, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
    ),
    "conv_stride2": (
        "tf",
        2,
        lambda j, x, f: j.lax.conv_general_dilated(
            x, f, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
    ),
    "conv_transpose": (
        "tf",
        2,
        lambda j, x, f: j.lax.conv_transpose(
            x, f, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
    ),
    "conv_depthwise": (
        "tf",
        2,
        lambda j, x, f: j.lax.conv_general_dilated(
            x,
            f[:, :, :1],
            (1, 1),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=16,
        ),
    ),
    "max_pool": (
        "t",
        1,
        lambda j, x: j.lax.reduce_window(
            x, -float("inf"), j.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
        ),
    ),
    "avg_pool": (
        "t",
        1,
        lambda j, x: j.lax.reduce_window(
            x, 0.0, j.lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME"
        ),
    ),
    "sum_windows": (
        "x",
        1,
        lambda j, x: j.lax.reduce_window(x, 0.0, j.lax.add, (5, 5), (1, 1), "SAME"),
    ),
    "attention": (
        "t",
        1,
        lambda j, x: j.nn.dot_product_attention(
            *(x.reshape(8, 256, 4, 16) * c for c in (0.1, 0.2, 0.3))
        ),
    ),
    "layer_norm": ("x", 1, lambda j, x: j.nn.standardize(x, -1) * 2 + 1),
    "cross_entropy": (
        "xn",
        1,
        lambda j, x, n: (
            -j.numpy.take_along_axis(j.nn.log_softmax(x), n[:500, None], 1).mean()
        ),
    ),
    "map_coordinates": (
        "xhh",
        1,
        lambda j, x, a, b: j.ndimage.map_coordinates(x, [a * 490, b * 490], 1),
    ),
    "image_resize": (
        "t",
        1,
        lambda j, x: j.top.image.resize(x, (8, 64, 64, 16), "bilinear"),
    ),
    "convolve2d": (
        "x",
        1,
        lambda j, x: j.signal.convolve2d(x, j.numpy.ones((3, 3)), mode="same"),
    ),
    "fftconvolve": ("vw", 1, lambda j, x, y: j.signal.fftconvolve(x, y[:500])),
    "stft": ("v", 1, lambda j, x: j.signal.stft(x, nperseg=256)[2]),
    "welch": ("v", 1, lambda j, x: j.signal.welch(x, nperseg=256)[1]),
    "detrend": ("v", 1, lambda j, x: j.signal.detrend(x)),
    "multivariate_normal": (
        "xs",
        1,
        lambda j, x, s: j.stats.multivariate_normal.logpdf(
            x[:, :200], j.numpy.zeros(200), s
        ),
    ),
    "betainc": ("h", 0, lambda j, x: j.special.betainc(2.0, 3.0, x)),
    "polygamma": ("p", 0, lambda j, x: j.special.polygamma(1, x + 0.5)),
    "scan_short": (
        "x",
        1,
        lambda j, x: j.lax.scan(lambda c, r: (c * 0.9 + r, c.sum()), x[0], x)[1],
    ),
    "scan_scalar": (
        "v",
        1,
        lambda j, x: j.lax.scan(lambda c, r: (j.numpy.sin(c) + r, c), 0.0, x[:5000])[1],
    ),
    "scan_matrix": (
        "mr",
        2,
        lambda j, a, r: j.lax.scan(
            lambda c, _: (j.numpy.tanh(a @ c), None), r, None, length=100
        )[0],
    ),
    "fori_matrix": (
        "s",
        0,
        lambda j, a: j.lax.fori_loop(0, 50, lambda i, b: b @ a / 4, a),
    ),
    "while_newton": (
        "p",
        0,
        lambda j, x: j.lax.while_loop(
            lambda s: (abs(s * s - x) > 1e-3 * x).any(),
            lambda s: (s + x / s) / 2,
            x,
        ),
    ),
    "map_rows": (
        "x",
        1,
        lambda j, x: j.lax.map(lambda r: j.numpy.tanh(r).sum() * r, x),
    ),
    "cond": (
        "x",
        1,
        lambda j, x: j.lax.cond(x[0, 0] > 0, lambda x: x * 2, lambda x: x * x, x),
    ),
    "associative_scan": (
        "v",
        1,
        lambda j, x: j.lax.associative_scan(lambda a, b: a + b, x),
    ),
    "vmap_solve": (
        "d",
        1,
        lambda j, a: j.top.vmap(lambda a: j.numpy.linalg.solve(a, a[0]))(a),
    ),
    "jacfwd": (
        "r",
        0,
        lambda j, x: j.top.jacfwd(lambda x: j.numpy.sin(x) * x.sum())(x),
    ),
    "jacrev": (
        "r",
        0,
        lambda j, x: j.top.jacrev(lambda x: j.numpy.sin(x) * x.sum())(x),
    ),
    "hessian": (
        "r",
        0,
        lambda j, x: j.top.hessian(lambda x: (j.numpy.tanh(x) * x).sum() ** 2)(x),
    ),
    "random_uniform": ("r", 0, lambda j, x: sampled(j, x, "uniform")),
    "random_normal": ("r", 0, lambda j, x: sampled(j, x, "normal")),
    "random_gumbel": ("r", 0, lambda j, x: sampled(j, x, "gumbel")),
    "random_laplace": ("r", 0, lambda j, x: sampled(j, x, "laplace")),
    "random_exponential": ("r", 0, lambda j, x: sampled(j, x, "exponential")),
    "random_bits": ("r", 0, lambda j, x: sampled(j, x, "bits")),
    "random_truncated": (
        "r",
        0,
        lambda j, x: j.random.truncated_normal(keyed(j, x), -1.0, 1.0, (250_000,)),
    ),
    "random_gamma": ("r", 0, lambda j, x: j.random.gamma(keyed(j, x), 2.0, (20_000,))),
    "random_randint": (
        "r",
        0,
        lambda j, x: j.random.randint(keyed(j, x), (250_000,), 0, 100),
    ),
    "random_permutation": (
        "rv",
        0,
        lambda j, x, v: j.random.permutation(keyed(j, x), v),
    ),
    "random_choice": (
        "rv",
        0,
        lambda j, x, v: j.random.choice(keyed(j, x), v, (10_000,)),
    ),
    "random_categorical": (
        "rx",
        0,
        lambda j, r, x: j.random.categorical(keyed(j, r), x),
    ),
    "random_split": ("r", 0, lambda j, x: j.random.split(keyed(j, x), 10_000)),
    "random_dropout": (
        "rx",
        0,
        lambda j, r, x: j.numpy.where(
            j.random.bernoulli(keyed(j, r), 0.9, x.shape), x / 0.9, 0
        ),
    ),
}


def keyed(j: Any, x: Any) -> Any:
    """A key that depends on an operand, so that nothing of it is constant."""
    return j.random.PRNGKey(x[0].astype(j.numpy.int32))


def sampled(j: Any, x: Any, name: str) -> Any:
    return getattr(j.random, name)(keyed(j, x), (250_000,))


def attribute(path: str, j: Any, *xs: Any) -> Any:
    return attrgetter(path)(j)(*xs)


def meant(path: str) -> Run:
    """The program of a name in `NAMED`."""
    if path in MEANT:
        return MEANT[path]
    module, _, name = path.partition(".")
    if module == "fft" or (
        module == "linalg" and name in {"inv", "det", "svd", "eigh"}
    ):
        return partial(attribute, f"numpy.{path}")
    return partial(attribute, path)


def named() -> Iterator[Case]:
    for line in NAMED.replace("\\\n", "").strip().splitlines():
        head, _, names = line.partition(":")
        module, letters = head.split()
        for word in names.split():
            path = f"{module}.{word.rstrip('*')}"
            grads = 0 if word.endswith("*") else 1
            yield case(f"{path}/{letters}", letters, meant(path), grads)


def written() -> Iterator[Case]:
    for name, (letters, grads, run) in WRITTEN.items():
        yield case(name, letters, run, grads)


def case(name: str, letters: str, run: Run, grads: int) -> Case:
    return Case(name, run, lambda: tuple(map(drawn, letters)), grads=grads)


def cases() -> Iterator[Case]:
    yield from named()
    yield from written()

"""Floor 6: NumPy's functions with JAX's names, arguments and promotion.

The one idea: this module holds no code; each name is defined in a file of its subject::
    import verax.numpy as jnp
    jnp.sum(jnp.arange(4.0) ** 2)
"""

from verax.ir.facade import facade

__getattr__, __dir__ = facade(
    __name__,
    {
        ".applying.padding": "pad",
        ".applying.ufuncs": (
            "add bitwise_and bitwise_or bitwise_xor frompyfunc logaddexp logaddexp2 "
            "logical_and logical_or logical_xor maximum minimum multiply negative "
            "subtract ufunc"
        ),
        ".applying.vectorize_apply": "apply_along_axis apply_over_axes vectorize",
        ".creation.constants": "bool e euler_gamma inf nan newaxis pi",
        ".creation.creation": "array asarray astype copy",
        ".creation.filling": (
            "empty empty_like full full_like ones ones_like zeros zeros_like"
        ),
        ".creation.dtypes": (
            "__array_api_version__ __array_namespace_info__ bfloat16 bool_ can_cast "
            "cdouble character complex128 complex64 complex_ complexfloating csingle "
            "double dtype finfo flexible float16 float32 float4_e2m1fn float64 "
            "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz "
            "float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float_ floating generic iinfo "
            "inexact int16 int2 int32 int4 int64 int8 int_ integer isdtype isscalar "
            "issubdtype ndarray number object_ promote_types result_type "
            "signedinteger single uint uint16 uint2 uint32 uint4 uint64 uint8 "
            "unsignedinteger"
        ),
        ".creation.io": (
            "array_repr array_str ComplexWarning from_dlpack frombuffer fromfile "
            "fromiter fromstring get_printoptions load printoptions save savez "
            "set_printoptions"
        ),
        ".elementwise.arithmetic": (
            "abs absolute cbrt clip divide fabs float_power fmax fmin hypot positive "
            "pow power reciprocal sign sqrt square true_divide"
        ),
        ".elementwise.comparison": (
            "bitwise_count bitwise_invert bitwise_left_shift bitwise_not "
            "bitwise_right_shift equal greater greater_equal invert left_shift less "
            "less_equal logical_not not_equal right_shift"
        ),
        ".elementwise.division": "divmod floor_divide fmod mod remainder",
        ".elementwise.float_parts": (
            "angle conj conjugate copysign frexp heaviside imag iscomplex "
            "iscomplexobj isfinite isinf isnan isneginf isposinf isreal isrealobj "
            "ldexp nan_to_num nextafter real signbit spacing"
        ),
        ".elementwise.rounding": "around ceil fix floor modf rint round trunc",
        ".elementwise.transcendental": (
            "acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin "
            "asinh atan atan2 atanh cos cosh deg2rad degrees exp exp2 expm1 i0 log "
            "log10 log1p log2 rad2deg radians sin sinc sinh tan tanh"
        ),
        ".index_tools": (
            "c_ diag_indices_from index_exp iterable ix_ mask_indices r_ s_ "
            "tril_indices tril_indices_from triu_indices triu_indices_from"
        ),
        ".indexing.getitem_and_at": "at getitem",
        ".indexing.take": "fill_diagonal put put_along_axis take take_along_axis",
        ".linalg.norms": "corrcoef cov",
        ".linalg.einsum": "einsum einsum_path",
        ".linalg.outer_products": "cross kron outer",
        ".linalg.products": ("dot inner matmul matvec tensordot vdot vecdot vecmat"),
        ".grids": "diag_indices fromfunction indices meshgrid mgrid ogrid",
        ".matrices": "diag diagflat eye identity tri tril triu vander",
        ".ranges": "arange geomspace linspace logspace",
        ".reducing.reductions": (
            "all amax amin any count_nonzero max min prod ptp sum"
        ),
        ".reducing.running": (
            "argmax argmin cumprod cumsum cumulative_prod cumulative_sum"
        ),
        ".reducing.closeness": "allclose array_equal array_equiv isclose",
        ".reducing.nan_reductions": (
            "nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin nanprod "
            "nanstd nansum nanvar"
        ),
        ".reducing.statistics": "average mean std var",
        ".reducing.quantiles": (
            "median nanmedian nanpercentile nanquantile percentile quantile"
        ),
        ".searching.divisors": "gcd lcm",
        ".searching.sets": "intersect1d isin setdiff1d setxor1d union1d",
        ".searching.unique": (
            "unique unique_all unique_counts unique_inverse unique_values"
        ),
        ".searching.histograms": (
            "bincount histogram histogram2d histogram_bin_edges histogramdd"
        ),
        ".searching.insert_delete": "delete insert trim_zeros",
        ".searching.where_nonzero": (
            "argwhere compress extract flatnonzero nonzero place ravel_multi_index "
            "unravel_index where"
        ),
        ".searching.choosing": "choose piecewise select",
        ".searching.sorting": (
            "argpartition argsort digitize lexsort minmax partition searchsorted sort "
            "sort_complex top_k"
        ),
        ".shaping.bits": "byteswap packbits unpackbits view",
        ".shaping.joining": (
            "append block column_stack concat concatenate dstack hstack stack vstack"
        ),
        ".shaping.diagonals": "diagonal trace",
        ".shaping.repeating": "repeat tile",
        ".shaping.reversals": "flip fliplr flipud roll rot90",
        ".shaping.splitting": "array_split dsplit hsplit split unstack vsplit",
        ".shaping.shapes": (
            "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes "
            "broadcast_to expand_dims matrix_transpose moveaxis ndim permute_dims "
            "ravel reshape resize rollaxis shape size squeeze swapaxes transpose"
        ),
        ".signal.differences": (
            "convolve correlate diff ediff1d gradient interp trapezoid unwrap"
        ),
        ".signal.polynomials": (
            "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots"
        ),
        ".signal.windows": "bartlett blackman hamming hanning kaiser",
    },
    modules="fft linalg",
)

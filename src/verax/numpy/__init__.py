"""Floor 6: NumPy's functions with JAX's names, arguments and promotion.

The one idea: this module holds no code; each name is defined in a file of its subject::
    import verax.numpy as jnp
    jnp.sum(jnp.arange(4.0) ** 2)
"""

from verax.ir.facade import facade

__getattr__, __dir__ = facade(
    __name__,
    {
        ".arithmetic": (
            "abs absolute cbrt clip divide fabs float_power fmax fmin hypot positive "
            "pow power reciprocal sign sqrt square true_divide"
        ),
        ".bit_packing": "packbits unpackbits",
        ".calculus": "convolve correlate diff ediff1d gradient interp trapezoid",
        ".closeness": "allclose array_equal array_equiv isclose",
        ".comparison": (
            "bitwise_count bitwise_invert bitwise_left_shift bitwise_not "
            "bitwise_right_shift equal greater greater_equal invert left_shift less "
            "less_equal logical_not not_equal right_shift"
        ),
        ".constants": "bool e euler_gamma inf nan newaxis pi",
        ".contraction": "einsum einsum_path",
        ".covariance": "corrcoef cov",
        ".creation": "array asarray astype copy",
        ".division": "divmod floor_divide fmod mod remainder",
        ".divisors": "gcd lcm",
        ".dtypes": (
            "bfloat16 bool_ can_cast cdouble character complex128 complex64 complex_ "
            "complexfloating csingle double dtype finfo flexible float16 float32 "
            "float4_e2m1fn float64 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz "
            "float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu "
            "float_ floating generic iinfo inexact int16 int2 int32 int4 int64 int8 "
            "int_ integer isdtype isscalar issubdtype ndarray number object_ "
            "promote_types result_type signedinteger single uint uint16 uint2 uint32 "
            "uint4 uint64 uint8 unsignedinteger"
        ),
        ".exchange": (
            "ComplexWarning from_dlpack frombuffer fromfile fromiter fromstring load "
            "save savez"
        ),
        ".extremes": (
            "argmax argmin cumprod cumsum cumulative_prod cumulative_sum nanargmax "
            "nanargmin nancumprod nancumsum"
        ),
        ".filling": "empty empty_like full full_like ones ones_like zeros zeros_like",
        ".fitting": "polyfit",
        ".floats": (
            "angle conj conjugate copysign frexp heaviside imag iscomplex iscomplexobj "
            "isfinite isinf isnan isneginf isposinf isreal isrealobj ldexp nan_to_num "
            "nextafter real signbit spacing"
        ),
        ".grids": (
            "diag diag_indices diagflat eye fromfunction identity indices meshgrid "
            "mgrid ogrid tri tril tril_indices triu triu_indices vander"
        ),
        ".histograms": "bincount histogram histogram_bin_edges",
        ".index_making": "c_ iterable mask_indices r_",
        ".index_tricks": (
            "diag_indices_from index_exp ix_ s_ tril_indices_from triu_indices_from"
        ),
        ".indexing": "at getitem",
        ".joining": (
            "append array_split block column_stack concat concatenate dsplit dstack "
            "hsplit hstack repeat split stack tile unstack vsplit vstack"
        ),
        ".leading": "minmax top_k",
        ".many_histograms": "histogram2d histogramdd",
        ".mapping": "apply_along_axis apply_over_axes vectorize",
        ".matrix_products": "cross kron outer",
        ".namespace_info": "__array_api_version__ __array_namespace_info__",
        ".nans": "nanmax nanmean nanmin nanprod nanstd nansum nanvar",
        ".ordering": (
            "argpartition argsort digitize lexsort partition searchsorted sort "
            "sort_complex"
        ),
        ".padding": "pad",
        ".polynomials": (
            "poly polyadd polyder polydiv polyint polymul polysub polyval roots"
        ),
        ".printing": (
            "array_repr array_str get_printoptions printoptions set_printoptions"
        ),
        ".products": "dot inner matmul matvec tensordot vdot vecdot vecmat",
        ".quantiles": "median nanmedian nanpercentile nanquantile percentile quantile",
        ".ranges": "arange geomspace linspace logspace",
        ".rearranging": (
            "delete diagonal flip fliplr flipud insert roll rot90 trace trim_zeros"
        ),
        ".reductions": "all amax amin any count_nonzero max min prod ptp sum",
        ".rounding": "around ceil fix floor modf rint round trunc",
        ".searching": (
            "argwhere compress extract flatnonzero nonzero place "
            "ravel_multi_index unravel_index where"
        ),
        ".selecting": "choose piecewise select",
        ".sets": (
            "intersect1d isin setdiff1d setxor1d union1d unique unique_all "
            "unique_counts unique_inverse unique_values"
        ),
        ".shapes": (
            "atleast_1d atleast_2d atleast_3d broadcast_arrays broadcast_shapes "
            "broadcast_to expand_dims matrix_transpose moveaxis ndim permute_dims "
            "ravel reshape resize rollaxis shape size squeeze swapaxes transpose"
        ),
        ".signal_windows": "bartlett blackman hamming hanning kaiser",
        ".statistics": "average mean std var",
        ".taking": "fill_diagonal put put_along_axis take take_along_axis",
        ".transcendental": (
            "acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin "
            "asinh atan atan2 atanh cos cosh deg2rad degrees exp exp2 expm1 i0 log "
            "log10 log1p log2 rad2deg radians sin sinc sinh tan tanh"
        ),
        ".ufuncs": (
            "frompyfunc ufunc add subtract multiply negative maximum minimum logaddexp "
            "logaddexp2 bitwise_and bitwise_or bitwise_xor logical_and logical_or "
            "logical_xor"
        ),
        ".unwrapping": "unwrap",
        ".viewing": "view",
    },
    modules="fft linalg",
)

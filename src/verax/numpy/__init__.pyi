# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
from verax.numpy import fft as fft, linalg as linalg
from verax.numpy.applying.padding import pad as pad
from verax.numpy.applying.ufuncs import (
    add as add, bitwise_and as bitwise_and, bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor, frompyfunc as frompyfunc, logaddexp as logaddexp,
    logaddexp2 as logaddexp2, logical_and as logical_and, logical_or as logical_or,
    logical_xor as logical_xor, maximum as maximum, minimum as minimum,
    multiply as multiply, negative as negative, subtract as subtract, ufunc as ufunc,
)
from verax.numpy.applying.vectorize_apply import (
    apply_along_axis as apply_along_axis, apply_over_axes as apply_over_axes,
    vectorize as vectorize,
)
from verax.numpy.creation.constants import (
    bool as bool, e as e, euler_gamma as euler_gamma, inf as inf, nan as nan,
    newaxis as newaxis, pi as pi,
)
from verax.numpy.creation.creation import (
    array as array, asarray as asarray, astype as astype, copy as copy,
)
from verax.numpy.creation.filling import (
    empty as empty, empty_like as empty_like, full as full, full_like as full_like,
    ones as ones, ones_like as ones_like, zeros as zeros, zeros_like as zeros_like,
)
from verax.numpy.creation.dtypes import (
    __array_api_version__ as __array_api_version__,
    __array_namespace_info__ as __array_namespace_info__, bfloat16 as bfloat16,
    bool_ as bool_, can_cast as can_cast, cdouble as cdouble, character as character,
    complex128 as complex128, complex64 as complex64, complex_ as complex_,
    complexfloating as complexfloating, csingle as csingle, double as double,
    dtype as dtype, finfo as finfo, flexible as flexible, float16 as float16,
    float32 as float32, float4_e2m1fn as float4_e2m1fn, float64 as float64,
    float8_e3m4 as float8_e3m4, float8_e4m3 as float8_e4m3,
    float8_e4m3b11fnuz as float8_e4m3b11fnuz, float8_e4m3fn as float8_e4m3fn,
    float8_e4m3fnuz as float8_e4m3fnuz, float8_e5m2 as float8_e5m2,
    float8_e5m2fnuz as float8_e5m2fnuz, float8_e8m0fnu as float8_e8m0fnu,
    float_ as float_, floating as floating, generic as generic, iinfo as iinfo,
    inexact as inexact, int16 as int16, int2 as int2, int32 as int32, int4 as int4,
    int64 as int64, int8 as int8, int_ as int_, integer as integer, isdtype as isdtype,
    isscalar as isscalar, issubdtype as issubdtype, ndarray as ndarray,
    number as number, object_ as object_, promote_types as promote_types,
    result_type as result_type, signedinteger as signedinteger, single as single,
    uint as uint, uint16 as uint16, uint2 as uint2, uint32 as uint32, uint4 as uint4,
    uint64 as uint64, uint8 as uint8, unsignedinteger as unsignedinteger,
)
from verax.numpy.creation.io import (
    array_repr as array_repr, array_str as array_str, ComplexWarning as ComplexWarning,
    from_dlpack as from_dlpack, frombuffer as frombuffer, fromfile as fromfile,
    fromiter as fromiter, fromstring as fromstring,
    get_printoptions as get_printoptions, load as load, printoptions as printoptions,
    save as save, savez as savez, set_printoptions as set_printoptions,
)
from verax.numpy.elementwise.arithmetic import (
    abs as abs, absolute as absolute, cbrt as cbrt, clip as clip, divide as divide,
    fabs as fabs, float_power as float_power, fmax as fmax, fmin as fmin,
    hypot as hypot, positive as positive, pow as pow, power as power,
    reciprocal as reciprocal, sign as sign, sqrt as sqrt, square as square,
    true_divide as true_divide,
)
from verax.numpy.elementwise.comparison import (
    bitwise_count as bitwise_count, bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift, bitwise_not as bitwise_not,
    bitwise_right_shift as bitwise_right_shift, equal as equal, greater as greater,
    greater_equal as greater_equal, invert as invert, left_shift as left_shift,
    less as less, less_equal as less_equal, logical_not as logical_not,
    not_equal as not_equal, right_shift as right_shift,
)
from verax.numpy.elementwise.division import (
    divmod as divmod, floor_divide as floor_divide, fmod as fmod, mod as mod,
    remainder as remainder,
)
from verax.numpy.elementwise.float_parts import (
    angle as angle, conj as conj, conjugate as conjugate, copysign as copysign,
    frexp as frexp, heaviside as heaviside, imag as imag, iscomplex as iscomplex,
    iscomplexobj as iscomplexobj, isfinite as isfinite, isinf as isinf, isnan as isnan,
    isneginf as isneginf, isposinf as isposinf, isreal as isreal,
    isrealobj as isrealobj, ldexp as ldexp, nan_to_num as nan_to_num,
    nextafter as nextafter, real as real, signbit as signbit, spacing as spacing,
)
from verax.numpy.elementwise.rounding import (
    around as around, ceil as ceil, fix as fix, floor as floor, modf as modf,
    rint as rint, round as round, trunc as trunc,
)
from verax.numpy.elementwise.transcendental import (
    acos as acos, acosh as acosh, arccos as arccos, arccosh as arccosh,
    arcsin as arcsin, arcsinh as arcsinh, arctan as arctan, arctan2 as arctan2,
    arctanh as arctanh, asin as asin, asinh as asinh, atan as atan, atan2 as atan2,
    atanh as atanh, cos as cos, cosh as cosh, deg2rad as deg2rad, degrees as degrees,
    exp as exp, exp2 as exp2, expm1 as expm1, i0 as i0, log as log, log10 as log10,
    log1p as log1p, log2 as log2, rad2deg as rad2deg, radians as radians, sin as sin,
    sinc as sinc, sinh as sinh, tan as tan, tanh as tanh,
)
from verax.numpy.index_tools import (
    c_ as c_, diag_indices_from as diag_indices_from, index_exp as index_exp,
    iterable as iterable, ix_ as ix_, mask_indices as mask_indices, r_ as r_, s_ as s_,
    tril_indices as tril_indices, tril_indices_from as tril_indices_from,
    triu_indices as triu_indices, triu_indices_from as triu_indices_from,
)
from verax.numpy.indexing.getitem_and_at import at as at, getitem as getitem
from verax.numpy.indexing.take import (
    fill_diagonal as fill_diagonal, put as put, put_along_axis as put_along_axis,
    take as take, take_along_axis as take_along_axis,
)
from verax.numpy.linalg.norms import corrcoef as corrcoef, cov as cov
from verax.numpy.linalg.einsum import einsum as einsum, einsum_path as einsum_path
from verax.numpy.linalg.outer_products import (
    cross as cross, kron as kron, outer as outer,
)
from verax.numpy.linalg.products import (
    dot as dot, inner as inner, matmul as matmul, matvec as matvec,
    tensordot as tensordot, vdot as vdot, vecdot as vecdot, vecmat as vecmat,
)
from verax.numpy.grids import (
    diag_indices as diag_indices, fromfunction as fromfunction, indices as indices,
    meshgrid as meshgrid, mgrid as mgrid, ogrid as ogrid,
)
from verax.numpy.matrices import (
    diag as diag, diagflat as diagflat, eye as eye, identity as identity, tri as tri,
    tril as tril, triu as triu, vander as vander,
)
from verax.numpy.ranges import (
    arange as arange, geomspace as geomspace, linspace as linspace,
    logspace as logspace,
)
from verax.numpy.reducing.reductions import (
    all as all, amax as amax, amin as amin, any as any, count_nonzero as count_nonzero,
    max as max, min as min, prod as prod, ptp as ptp, sum as sum,
)
from verax.numpy.reducing.running import (
    argmax as argmax, argmin as argmin, cumprod as cumprod, cumsum as cumsum,
    cumulative_prod as cumulative_prod, cumulative_sum as cumulative_sum,
)
from verax.numpy.reducing.closeness import (
    allclose as allclose, array_equal as array_equal, array_equiv as array_equiv,
    isclose as isclose,
)
from verax.numpy.reducing.nan_reductions import (
    nanargmax as nanargmax, nanargmin as nanargmin, nancumprod as nancumprod,
    nancumsum as nancumsum, nanmax as nanmax, nanmean as nanmean, nanmin as nanmin,
    nanprod as nanprod, nanstd as nanstd, nansum as nansum, nanvar as nanvar,
)
from verax.numpy.reducing.statistics import (
    average as average, mean as mean, std as std, var as var,
)
from verax.numpy.reducing.quantiles import (
    median as median, nanmedian as nanmedian, nanpercentile as nanpercentile,
    nanquantile as nanquantile, percentile as percentile, quantile as quantile,
)
from verax.numpy.searching.divisors import gcd as gcd, lcm as lcm
from verax.numpy.searching.sets import (
    intersect1d as intersect1d, isin as isin, setdiff1d as setdiff1d,
    setxor1d as setxor1d, union1d as union1d,
)
from verax.numpy.searching.unique import (
    unique as unique, unique_all as unique_all, unique_counts as unique_counts,
    unique_inverse as unique_inverse, unique_values as unique_values,
)
from verax.numpy.searching.histograms import (
    bincount as bincount, histogram as histogram, histogram2d as histogram2d,
    histogram_bin_edges as histogram_bin_edges, histogramdd as histogramdd,
)
from verax.numpy.searching.insert_delete import (
    delete as delete, insert as insert, trim_zeros as trim_zeros,
)
from verax.numpy.searching.where_nonzero import (
    argwhere as argwhere, compress as compress, extract as extract,
    flatnonzero as flatnonzero, nonzero as nonzero, place as place,
    ravel_multi_index as ravel_multi_index, unravel_index as unravel_index,
    where as where,
)
from verax.numpy.searching.choosing import (
    choose as choose, piecewise as piecewise, select as select,
)
from verax.numpy.searching.sorting import (
    argpartition as argpartition, argsort as argsort, digitize as digitize,
    lexsort as lexsort, minmax as minmax, partition as partition,
    searchsorted as searchsorted, sort as sort, sort_complex as sort_complex,
    top_k as top_k,
)
from verax.numpy.shaping.bits import (
    byteswap as byteswap, packbits as packbits, unpackbits as unpackbits, view as view,
)
from verax.numpy.shaping.joining import (
    append as append, block as block, column_stack as column_stack, concat as concat,
    concatenate as concatenate, dstack as dstack, hstack as hstack, stack as stack,
    vstack as vstack,
)
from verax.numpy.shaping.diagonals import diagonal as diagonal, trace as trace
from verax.numpy.shaping.repeating import repeat as repeat, tile as tile
from verax.numpy.shaping.reversals import (
    flip as flip, fliplr as fliplr, flipud as flipud, roll as roll, rot90 as rot90,
)
from verax.numpy.shaping.splitting import (
    array_split as array_split, dsplit as dsplit, hsplit as hsplit, split as split,
    unstack as unstack, vsplit as vsplit,
)
from verax.numpy.shaping.shapes import (
    atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d,
    broadcast_arrays as broadcast_arrays, broadcast_shapes as broadcast_shapes,
    broadcast_to as broadcast_to, expand_dims as expand_dims,
    matrix_transpose as matrix_transpose, moveaxis as moveaxis, ndim as ndim,
    permute_dims as permute_dims, ravel as ravel, reshape as reshape, resize as resize,
    rollaxis as rollaxis, shape as shape, size as size, squeeze as squeeze,
    swapaxes as swapaxes, transpose as transpose,
)
from verax.numpy.signal.differences import (
    convolve as convolve, correlate as correlate, diff as diff, ediff1d as ediff1d,
    gradient as gradient, interp as interp, trapezoid as trapezoid, unwrap as unwrap,
)
from verax.numpy.signal.polynomials import (
    poly as poly, polyadd as polyadd, polyder as polyder, polydiv as polydiv,
    polyfit as polyfit, polyint as polyint, polymul as polymul, polysub as polysub,
    polyval as polyval, roots as roots,
)
from verax.numpy.signal.windows import (
    bartlett as bartlett, blackman as blackman, hamming as hamming, hanning as hanning,
    kaiser as kaiser,
)
__all__ = [
    "ComplexWarning", "abs", "absolute", "acos", "acosh", "add", "all", "allclose",
    "amax", "amin", "angle", "any", "append", "apply_along_axis", "apply_over_axes",
    "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
    "argmax", "argmin", "argpartition", "argsort", "argwhere", "around", "array",
    "array_equal", "array_equiv", "array_repr", "array_split", "array_str", "asarray",
    "asin", "asinh", "astype", "at", "atan", "atan2", "atanh", "atleast_1d",
    "atleast_2d", "atleast_3d", "average", "bartlett", "bfloat16", "bincount",
    "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift",
    "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "blackman",
    "block", "bool", "bool_", "broadcast_arrays", "broadcast_shapes", "broadcast_to",
    "byteswap", "c_", "can_cast", "cbrt", "cdouble", "ceil", "character", "choose",
    "clip", "column_stack", "complex64", "complex128", "complex_", "complexfloating",
    "compress", "concat", "concatenate", "conj", "conjugate", "convolve", "copy",
    "copysign", "corrcoef", "correlate", "cos", "cosh", "count_nonzero", "cov", "cross",
    "csingle", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "deg2rad",
    "degrees", "delete", "diag", "diag_indices", "diag_indices_from", "diagflat",
    "diagonal", "diff", "digitize", "divide", "divmod", "dot", "double", "dsplit",
    "dstack", "dtype", "e", "ediff1d", "einsum", "einsum_path", "empty", "empty_like",
    "equal", "euler_gamma", "exp", "exp2", "expand_dims", "expm1", "extract", "eye",
    "fabs", "fft", "fill_diagonal", "finfo", "fix", "flatnonzero", "flexible", "flip",
    "fliplr", "flipud", "float4_e2m1fn", "float8_e3m4", "float8_e4m3",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float16", "float32", "float64", "float_",
    "float_power", "floating", "floor", "floor_divide", "fmax", "fmin", "fmod", "frexp",
    "from_dlpack", "frombuffer", "fromfile", "fromfunction", "fromiter", "frompyfunc",
    "fromstring", "full", "full_like", "gcd", "generic", "geomspace",
    "get_printoptions", "getitem", "gradient", "greater", "greater_equal", "hamming",
    "hanning", "heaviside", "histogram", "histogram2d", "histogram_bin_edges",
    "histogramdd", "hsplit", "hstack", "hypot", "i0", "identity", "iinfo", "imag",
    "index_exp", "indices", "inexact", "inf", "inner", "insert", "int2", "int4", "int8",
    "int16", "int32", "int64", "int_", "integer", "interp", "intersect1d", "invert",
    "isclose", "iscomplex", "iscomplexobj", "isdtype", "isfinite", "isin", "isinf",
    "isnan", "isneginf", "isposinf", "isreal", "isrealobj", "isscalar", "issubdtype",
    "iterable", "ix_", "kaiser", "kron", "lcm", "ldexp", "left_shift", "less",
    "less_equal", "lexsort", "linalg", "linspace", "load", "log", "log1p", "log2",
    "log10", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or",
    "logical_xor", "logspace", "mask_indices", "matmul", "matrix_transpose", "matvec",
    "max", "maximum", "mean", "median", "meshgrid", "mgrid", "min", "minimum", "minmax",
    "mod", "modf", "moveaxis", "multiply", "nan", "nan_to_num", "nanargmax",
    "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmedian", "nanmin",
    "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar", "ndarray",
    "ndim", "negative", "newaxis", "nextafter", "nonzero", "not_equal", "number",
    "object_", "ogrid", "ones", "ones_like", "outer", "packbits", "pad", "partition",
    "percentile", "permute_dims", "pi", "piecewise", "place", "poly", "polyadd",
    "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval",
    "positive", "pow", "power", "printoptions", "prod", "promote_types", "ptp", "put",
    "put_along_axis", "quantile", "r_", "rad2deg", "radians", "ravel",
    "ravel_multi_index", "real", "reciprocal", "remainder", "repeat", "reshape",
    "resize", "result_type", "right_shift", "rint", "roll", "rollaxis", "roots",
    "rot90", "round", "s_", "save", "savez", "searchsorted", "select",
    "set_printoptions", "setdiff1d", "setxor1d", "shape", "sign", "signbit",
    "signedinteger", "sin", "sinc", "single", "sinh", "size", "sort", "sort_complex",
    "spacing", "split", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum",
    "swapaxes", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile", "top_k",
    "trace", "transpose", "trapezoid", "tri", "tril", "tril_indices",
    "tril_indices_from", "trim_zeros", "triu", "triu_indices", "triu_indices_from",
    "true_divide", "trunc", "ufunc", "uint", "uint2", "uint4", "uint8", "uint16",
    "uint32", "uint64", "union1d", "unique", "unique_all", "unique_counts",
    "unique_inverse", "unique_values", "unpackbits", "unravel_index", "unsignedinteger",
    "unstack", "unwrap", "vander", "var", "vdot", "vecdot", "vecmat", "vectorize",
    "view", "vsplit", "vstack", "where", "zeros", "zeros_like",
]

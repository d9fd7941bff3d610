# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
from verax.lax import linalg as linalg
from verax.lax.applying import (
    dce_sink as dce_sink, eq as eq, FftType as FftType, ne as ne,
    scatter_apply as scatter_apply, shape_as_value as shape_as_value, stage as stage,
)
from verax.lax.branching import (
    cond as cond, platform_dependent as platform_dependent, switch as switch,
)
from verax.lax.shaping import (
    conv_general_permutations as conv_general_permutations,
    conv_general_shape_tuple as conv_general_shape_tuple,
    conv_shape_tuple as conv_shape_tuple,
    conv_transpose_shape_tuple as conv_transpose_shape_tuple,
    broadcast_like as broadcast_like, broadcast_shapes as broadcast_shapes,
    dtype as dtype, index_take as index_take, polynomial as polynomial, stack as stack,
    tile as tile, unstack as unstack, DotDimensionNumbers as DotDimensionNumbers,
    scaled_dot as scaled_dot,
)
from verax.lax.composites import composite as composite
from verax.lax.looping import (
    associative_scan as associative_scan, fori_loop as fori_loop, map as map,
    while_loop as while_loop,
)
from verax.lax.exchanges import (
    all_gather as all_gather, all_to_all as all_to_all, ppermute as ppermute,
    pshuffle as pshuffle, psum_scatter as psum_scatter, pswapaxes as pswapaxes,
    ragged_all_to_all as ragged_all_to_all,
)
from verax.lax.named_axes import axis_index as axis_index, axis_size as axis_size
from verax.lax.parallel import (
    pbroadcast as pbroadcast, pcast as pcast, pmax as pmax, pmean as pmean,
    pmin as pmin, psum as psum, pvary as pvary,
)
from verax.lax.reducing import (
    reduce as reduce, reduce_window as reduce_window,
    reduce_window_shape_tuple as reduce_window_shape_tuple,
)
from verax.lax.scanning import scan as scan
from verax.lax.sharded import (
    broadcast as broadcast, broadcast_in_dim as broadcast_in_dim,
    broadcasted_iota as broadcasted_iota, empty as empty, full as full,
    full_like as full_like, iota as iota, reshape as reshape,
)
from verax.lax.solving import (
    custom_linear_solve as custom_linear_solve, custom_root as custom_root,
)
from verax.api.custom.checkpoint import optimization_barrier as optimization_barrier
from verax.api.custom.vjp import stop_gradient as stop_gradient
from verax.api.parallel.constraints import (
    with_sharding_constraint as with_sharding_constraint,
)
from verax.ops.base import AccuracyMode as AccuracyMode, Tolerance as Tolerance
from verax.ops.calls.checkpoint import optimization_barrier_p as optimization_barrier_p
from verax.ops.calls.callbacks import dce_sink_p as dce_sink_p
from verax.ops.contraction.dot import (
    batch_matmul as batch_matmul, dot as dot, dot_general as dot_general,
    dot_general_p as dot_general_p,
)
from verax.ops.contraction.precision import (
    DotAlgorithm as DotAlgorithm, DotAlgorithmPreset as DotAlgorithmPreset,
    Precision as Precision, PrecisionLike as PrecisionLike,
)
from verax.ops.contraction.ragged_dot import (
    ragged_dot as ragged_dot, ragged_dot_general as ragged_dot_general,
    RaggedDotDimensionNumbers as RaggedDotDimensionNumbers,
)
from verax.ops.control.checkpointed_loops import (
    bounded_while_p as bounded_while_p, checkpointed_scan_p as checkpointed_scan_p,
)
from verax.ops.control.cond import cond_p as cond_p
from verax.ops.control.scan import scan_p as scan_p
from verax.ops.control.while_ import while_p as while_p
from verax.ops.conv.params import (
    conv_dimension_numbers as conv_dimension_numbers,
    ConvDimensionNumbers as ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers,
)
from verax.ops.conv.primitive import conv_general_dilated_p as conv_general_dilated_p
from verax.ops.conv.functions import (
    conv as conv, conv_general_dilated as conv_general_dilated,
    conv_general_dilated_local as conv_general_dilated_local,
    conv_general_dilated_patches as conv_general_dilated_patches,
    conv_transpose as conv_transpose,
    conv_with_general_padding as conv_with_general_padding,
)
from verax.ops.custom.solve import (
    custom_root_p as custom_root_p, linear_solve_p as linear_solve_p,
)
from verax.ops.elementwise.arith import (
    abs as abs, abs_p as abs_p, add as add, add_p as add_p, div as div, div_p as div_p,
    integer_pow as integer_pow, integer_pow_p as integer_pow_p, max as max,
    max_p as max_p, min as min, min_p as min_p, mul as mul, mul_p as mul_p, neg as neg,
    neg_p as neg_p, nextafter as nextafter, nextafter_p as nextafter_p,
    reciprocal as reciprocal, sign as sign, sign_p as sign_p, sub as sub,
    sub_p as sub_p, complex as complex, complex_p as complex_p, conj as conj,
    conj_p as conj_p, imag as imag, imag_p as imag_p, real as real, real_p as real_p,
)
from verax.ops.elementwise.remainder import rem as rem, rem_p as rem_p
from verax.ops.elementwise.bits import (
    and_p as and_p, bitwise_and as bitwise_and, bitwise_not as bitwise_not,
    bitwise_or as bitwise_or, bitwise_xor as bitwise_xor, clz as clz, clz_p as clz_p,
    mulhi as mulhi, mulhi_p as mulhi_p, not_p as not_p, or_p as or_p,
    population_count as population_count, population_count_p as population_count_p,
    shift_left as shift_left, shift_left_p as shift_left_p,
    shift_right_arithmetic as shift_right_arithmetic,
    shift_right_arithmetic_p as shift_right_arithmetic_p,
    shift_right_logical as shift_right_logical,
    shift_right_logical_p as shift_right_logical_p, xor_p as xor_p,
)
from verax.ops.elementwise.compare import (
    eq_p as eq_p, eq_to_p as eq_to_p, ge as ge, ge_p as ge_p, gt as gt, gt_p as gt_p,
    le as le, le_p as le_p, le_to_p as le_to_p, lt as lt, lt_p as lt_p,
    lt_to_p as lt_to_p, ne_p as ne_p,
)
from verax.ops.elementwise.convert import (
    bitcast_convert_type as bitcast_convert_type,
    bitcast_convert_type_p as bitcast_convert_type_p,
    convert_element_type as convert_element_type,
    convert_element_type_p as convert_element_type_p,
    reduce_precision as reduce_precision, reduce_precision_p as reduce_precision_p,
)
from verax.ops.elementwise.exp_log import (
    cbrt as cbrt, cbrt_p as cbrt_p, exp as exp, exp2 as exp2, exp2_p as exp2_p,
    exp_p as exp_p, expm1 as expm1, expm1_p as expm1_p, log as log, log1p as log1p,
    log1p_p as log1p_p, log2 as log2, log2_p as log2_p, log_p as log_p,
    logistic as logistic, logistic_p as logistic_p,
    one_minus_square as one_minus_square, one_minus_square_p as one_minus_square_p,
    pow as pow, pow_p as pow_p, rsqrt as rsqrt, rsqrt_p as rsqrt_p, sqrt as sqrt,
    sqrt_p as sqrt_p, square as square, square_p as square_p,
)
from verax.ops.elementwise.rounding import (
    ceil as ceil, ceil_p as ceil_p, floor as floor, floor_p as floor_p,
    is_finite as is_finite, is_finite_p as is_finite_p, round as round,
    round_p as round_p, RoundingMethod as RoundingMethod,
)
from verax.ops.elementwise.select import (
    clamp as clamp, clamp_p as clamp_p, copy_p as copy_p, select as select,
    select_n as select_n, select_n_p as select_n_p, stop_gradient_p as stop_gradient_p,
)
from verax.ops.elementwise.trig import (
    acos as acos, acos_p as acos_p, acosh as acosh, acosh_p as acosh_p, asin as asin,
    asin_p as asin_p, asinh as asinh, asinh_p as asinh_p, atan as atan, atan2 as atan2,
    atan2_p as atan2_p, atan_p as atan_p, atanh as atanh, atanh_p as atanh_p,
    cos as cos, cos_p as cos_p, cosh as cosh, cosh_p as cosh_p, sin as sin,
    sin_p as sin_p, sinh as sinh, sinh_p as sinh_p, tan as tan, tan_p as tan_p,
    tanh as tanh, tanh_p as tanh_p,
)
from verax.ops.fft import fft as fft, fft_p as fft_p
from verax.ops.indexing.dynamic_slice import (
    dynamic_index_in_dim as dynamic_index_in_dim, dynamic_slice as dynamic_slice,
    dynamic_slice_in_dim as dynamic_slice_in_dim, dynamic_slice_p as dynamic_slice_p,
    dynamic_update_index_in_dim as dynamic_update_index_in_dim,
    dynamic_update_slice as dynamic_update_slice,
    dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
    dynamic_update_slice_p as dynamic_update_slice_p,
)
from verax.ops.indexing.gather import (
    gather as gather, gather_p as gather_p, scatter_add_p as scatter_add_p,
)
from verax.ops.indexing.geometry import (
    GatherDimensionNumbers as GatherDimensionNumbers,
    GatherScatterMode as GatherScatterMode,
    ScatterDimensionNumbers as ScatterDimensionNumbers,
)
from verax.ops.indexing.scatter import (
    scatter as scatter, scatter_add as scatter_add, scatter_max as scatter_max,
    scatter_max_p as scatter_max_p, scatter_min as scatter_min,
    scatter_min_p as scatter_min_p, scatter_mul as scatter_mul,
    scatter_mul_p as scatter_mul_p, scatter_p as scatter_p, scatter_sub as scatter_sub,
    scatter_sub_p as scatter_sub_p,
)
from verax.ops.random.generators import (
    RandomAlgorithm as RandomAlgorithm, rng_bit_generator as rng_bit_generator,
    rng_bit_generator_p as rng_bit_generator_p,
)
from verax.ops.reductions.reduce import (
    argmax as argmax, argmax_p as argmax_p, argmin as argmin, argmin_p as argmin_p,
    reduce_and as reduce_and, reduce_and_p as reduce_and_p, reduce_max as reduce_max,
    reduce_max_p as reduce_max_p, reduce_min as reduce_min,
    reduce_min_p as reduce_min_p, reduce_or as reduce_or, reduce_or_p as reduce_or_p,
    reduce_prod as reduce_prod, reduce_prod_p as reduce_prod_p,
    reduce_sum as reduce_sum, reduce_sum_p as reduce_sum_p, reduce_xor as reduce_xor,
    reduce_xor_p as reduce_xor_p,
)
from verax.ops.reductions.cumulative import (
    cumlogsumexp as cumlogsumexp, cumlogsumexp_p as cumlogsumexp_p, cummax as cummax,
    cummax_p as cummax_p, cummin as cummin, cummin_p as cummin_p, cumprod as cumprod,
    cumprod_p as cumprod_p, cumsum as cumsum, cumsum_p as cumsum_p,
)
from verax.ops.reductions.recurrence import (
    linear_recurrence as linear_recurrence, linear_recurrence_p as linear_recurrence_p,
)
from verax.ops.sorting.sort import (
    approx_max_k as approx_max_k, approx_min_k as approx_min_k, sort as sort,
    sort_key_val as sort_key_val, sort_p as sort_p, top_k as top_k, top_k_p as top_k_p,
)
from verax.ops.special.bessel import (
    bessel_i0e as bessel_i0e, bessel_i0e_p as bessel_i0e_p, bessel_i1e as bessel_i1e,
    bessel_i1e_p as bessel_i1e_p,
)
from verax.ops.special.erf_gamma import (
    digamma as digamma, digamma_p as digamma_p, erf as erf, erf_inv as erf_inv,
    erf_inv_p as erf_inv_p, erf_p as erf_p, erfc as erfc, erfc_p as erfc_p,
    lgamma as lgamma, lgamma_p as lgamma_p, polygamma as polygamma,
    polygamma_p as polygamma_p, zeta as zeta, zeta_p as zeta_p,
)
from verax.ops.special.incomplete import (
    betainc as betainc, regularized_incomplete_beta as regularized_incomplete_beta,
    regularized_incomplete_beta_p as regularized_incomplete_beta_p, igamma as igamma,
    igamma_grad_a as igamma_grad_a, igamma_grad_a_p as igamma_grad_a_p,
    igamma_p as igamma_p, igammac as igammac, igammac_p as igammac_p,
    random_gamma_grad as random_gamma_grad, random_gamma_grad_p as random_gamma_grad_p,
)
from verax.ops.structure.create import iota_p as iota_p
from verax.ops.structure.joining import (
    concatenate as concatenate, concatenate_p as concatenate_p, rev as rev,
    rev_p as rev_p, split as split, split_p as split_p,
)
from verax.ops.structure.shape import (
    broadcast_in_dim_p as broadcast_in_dim_p, broadcast_to_rank as broadcast_to_rank,
    collapse as collapse, expand_dims as expand_dims, reshape_p as reshape_p,
    squeeze as squeeze, squeeze_p as squeeze_p, transpose as transpose,
    transpose_p as transpose_p,
)
from verax.ops.structure.slicing import (
    index_in_dim as index_in_dim, pad as pad, pad_p as pad_p, slice as slice,
    slice_in_dim as slice_in_dim, slice_p as slice_p,
)
from verax.ops.windows.general_reduce import reduce_p as reduce_p
from verax.ops.windows.geometry import padtype_to_pads as padtype_to_pads
from verax.ops.windows.reduce_window import (
    reduce_window_max_p as reduce_window_max_p,
    reduce_window_min_p as reduce_window_min_p, reduce_window_p as reduce_window_p,
    reduce_window_sum_p as reduce_window_sum_p,
)
from verax.ops.windows.select_and_scatter import (
    select_and_scatter_add_p as select_and_scatter_add_p,
)
__all__ = [
    "AccuracyMode", "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers",
    "DotAlgorithm", "DotAlgorithmPreset", "DotDimensionNumbers", "FftType",
    "GatherDimensionNumbers", "GatherScatterMode", "Precision", "PrecisionLike",
    "RaggedDotDimensionNumbers", "RandomAlgorithm", "RoundingMethod",
    "ScatterDimensionNumbers", "Tolerance", "abs", "abs_p", "acos", "acos_p", "acosh",
    "acosh_p", "add", "add_p", "all_gather", "all_to_all", "and_p", "approx_max_k",
    "approx_min_k", "argmax", "argmax_p", "argmin", "argmin_p", "asin", "asin_p",
    "asinh", "asinh_p", "associative_scan", "atan", "atan2", "atan2_p", "atan_p",
    "atanh", "atanh_p", "axis_index", "axis_size", "batch_matmul", "bessel_i0e",
    "bessel_i0e_p", "bessel_i1e", "bessel_i1e_p", "betainc", "bitcast_convert_type",
    "bitcast_convert_type_p", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor",
    "bounded_while_p", "broadcast", "broadcast_in_dim", "broadcast_in_dim_p",
    "broadcast_like", "broadcast_shapes", "broadcast_to_rank", "broadcasted_iota",
    "cbrt", "cbrt_p", "ceil", "ceil_p", "checkpointed_scan_p", "clamp", "clamp_p",
    "clz", "clz_p", "collapse", "complex", "complex_p", "composite", "concatenate",
    "concatenate_p", "cond", "cond_p", "conj", "conj_p", "conv",
    "conv_dimension_numbers", "conv_general_dilated", "conv_general_dilated_local",
    "conv_general_dilated_p", "conv_general_dilated_patches",
    "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple",
    "conv_transpose", "conv_transpose_shape_tuple", "conv_with_general_padding",
    "convert_element_type", "convert_element_type_p", "copy_p", "cos", "cos_p", "cosh",
    "cosh_p", "cumlogsumexp", "cumlogsumexp_p", "cummax", "cummax_p", "cummin",
    "cummin_p", "cumprod", "cumprod_p", "cumsum", "cumsum_p", "custom_linear_solve",
    "custom_root", "custom_root_p", "dce_sink", "dce_sink_p", "digamma", "digamma_p",
    "div", "div_p", "dot", "dot_general", "dot_general_p", "dtype",
    "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_slice_p",
    "dynamic_update_index_in_dim", "dynamic_update_slice",
    "dynamic_update_slice_in_dim", "dynamic_update_slice_p", "empty", "eq", "eq_p",
    "eq_to_p", "erf", "erf_inv", "erf_inv_p", "erf_p", "erfc", "erfc_p", "exp", "exp2",
    "exp2_p", "exp_p", "expand_dims", "expm1", "expm1_p", "fft", "fft_p", "floor",
    "floor_p", "fori_loop", "full", "full_like", "gather", "gather_p", "ge", "ge_p",
    "gt", "gt_p", "igamma", "igamma_grad_a", "igamma_grad_a_p", "igamma_p", "igammac",
    "igammac_p", "imag", "imag_p", "index_in_dim", "index_take", "integer_pow",
    "integer_pow_p", "iota", "iota_p", "is_finite", "is_finite_p", "le", "le_p",
    "le_to_p", "lgamma", "lgamma_p", "linalg", "linear_recurrence",
    "linear_recurrence_p", "linear_solve_p", "log", "log1p", "log1p_p", "log2",
    "log2_p", "log_p", "logistic", "logistic_p", "lt", "lt_p", "lt_to_p", "map", "max",
    "max_p", "min", "min_p", "mul", "mul_p", "mulhi", "mulhi_p", "ne", "ne_p", "neg",
    "neg_p", "nextafter", "nextafter_p", "not_p", "one_minus_square",
    "one_minus_square_p", "optimization_barrier", "optimization_barrier_p", "or_p",
    "pad", "pad_p", "padtype_to_pads", "pbroadcast", "pcast", "platform_dependent",
    "pmax", "pmean", "pmin", "polygamma", "polygamma_p", "polynomial",
    "population_count", "population_count_p", "pow", "pow_p", "ppermute", "pshuffle",
    "psum", "psum_scatter", "pswapaxes", "pvary", "ragged_all_to_all", "ragged_dot",
    "ragged_dot_general", "random_gamma_grad", "random_gamma_grad_p", "real", "real_p",
    "reciprocal", "reduce", "reduce_and", "reduce_and_p", "reduce_max", "reduce_max_p",
    "reduce_min", "reduce_min_p", "reduce_or", "reduce_or_p", "reduce_p",
    "reduce_precision", "reduce_precision_p", "reduce_prod", "reduce_prod_p",
    "reduce_sum", "reduce_sum_p", "reduce_window", "reduce_window_max_p",
    "reduce_window_min_p", "reduce_window_p", "reduce_window_shape_tuple",
    "reduce_window_sum_p", "reduce_xor", "reduce_xor_p", "regularized_incomplete_beta",
    "regularized_incomplete_beta_p", "rem", "rem_p", "reshape", "reshape_p", "rev",
    "rev_p", "rng_bit_generator", "rng_bit_generator_p", "round", "round_p", "rsqrt",
    "rsqrt_p", "scaled_dot", "scan", "scan_p", "scatter", "scatter_add",
    "scatter_add_p", "scatter_apply", "scatter_max", "scatter_max_p", "scatter_min",
    "scatter_min_p", "scatter_mul", "scatter_mul_p", "scatter_p", "scatter_sub",
    "scatter_sub_p", "select", "select_and_scatter_add_p", "select_n", "select_n_p",
    "shape_as_value", "shift_left", "shift_left_p", "shift_right_arithmetic",
    "shift_right_arithmetic_p", "shift_right_logical", "shift_right_logical_p", "sign",
    "sign_p", "sin", "sin_p", "sinh", "sinh_p", "slice", "slice_in_dim", "slice_p",
    "sort", "sort_key_val", "sort_p", "split", "split_p", "sqrt", "sqrt_p", "square",
    "square_p", "squeeze", "squeeze_p", "stack", "stage", "stop_gradient",
    "stop_gradient_p", "sub", "sub_p", "switch", "tan", "tan_p", "tanh", "tanh_p",
    "tile", "top_k", "top_k_p", "transpose", "transpose_p", "unstack", "while_loop",
    "while_p", "with_sharding_constraint", "xor_p", "zeta", "zeta_p",
]

"""Floor 6: the operations themselves, under JAX's names.

The one idea: operands are not promoted and not broadcast, so that each function is one
equation; this module holds no code::

    from verax import lax
    lax.add(x, y), lax.dot_general(x, y, (((1,), (0,)), ((), ())))
"""

from verax.ir.facade import facade

__getattr__, __dir__ = facade(
    __name__,
    {
        ".applying": ("dce_sink eq FftType ne scatter_apply shape_as_value stage"),
        ".branching": "cond platform_dependent switch",
        ".shaping": (
            "conv_general_permutations conv_general_shape_tuple conv_shape_tuple "
            "conv_transpose_shape_tuple broadcast_like broadcast_shapes dtype "
            "index_take polynomial stack tile unstack DotDimensionNumbers "
            "scaled_dot"
        ),
        ".composites": "composite",
        ".looping": "associative_scan fori_loop map while_loop",
        ".exchanges": (
            "all_gather all_to_all ppermute pshuffle psum_scatter pswapaxes "
            "ragged_all_to_all"
        ),
        ".named_axes": "axis_index axis_size",
        ".parallel": "pbroadcast pcast pmax pmean pmin psum pvary",
        ".reducing": "reduce reduce_window reduce_window_shape_tuple",
        ".scanning": "scan",
        ".sharded": (
            "broadcast broadcast_in_dim broadcasted_iota empty full full_like iota "
            "reshape"
        ),
        ".solving": "custom_linear_solve custom_root",
        "verax.api.custom.checkpoint": "optimization_barrier",
        "verax.api.custom.vjp": "stop_gradient",
        "verax.api.parallel.constraints": "with_sharding_constraint",
        "verax.ops.base": "AccuracyMode Tolerance",
        "verax.ops.calls.checkpoint": "optimization_barrier_p",
        "verax.ops.calls.callbacks": "dce_sink_p",
        "verax.ops.contraction.dot": "batch_matmul dot dot_general dot_general_p",
        "verax.ops.contraction.precision": (
            "DotAlgorithm DotAlgorithmPreset Precision PrecisionLike"
        ),
        "verax.ops.contraction.ragged_dot": (
            "ragged_dot ragged_dot_general RaggedDotDimensionNumbers"
        ),
        "verax.ops.control.checkpointed_loops": "bounded_while_p checkpointed_scan_p",
        "verax.ops.control.cond": "cond_p",
        "verax.ops.control.scan": "scan_p",
        "verax.ops.control.while_": "while_p",
        "verax.ops.conv.params": (
            "conv_dimension_numbers ConvDimensionNumbers "
            "ConvGeneralDilatedDimensionNumbers"
        ),
        "verax.ops.conv.primitive": "conv_general_dilated_p",
        "verax.ops.conv.functions": (
            "conv conv_general_dilated conv_general_dilated_local "
            "conv_general_dilated_patches conv_transpose conv_with_general_padding"
        ),
        "verax.ops.custom.solve": "custom_root_p linear_solve_p",
        "verax.ops.elementwise.arith": (
            "abs abs_p add add_p div div_p integer_pow integer_pow_p max max_p min "
            "min_p mul mul_p neg neg_p nextafter nextafter_p reciprocal "
            "sign sign_p sub sub_p complex complex_p conj conj_p imag imag_p real "
            "real_p"
        ),
        "verax.ops.elementwise.remainder": "rem rem_p",
        "verax.ops.elementwise.bits": (
            "and_p bitwise_and bitwise_not bitwise_or bitwise_xor clz clz_p mulhi "
            "mulhi_p not_p or_p population_count population_count_p shift_left "
            "shift_left_p shift_right_arithmetic shift_right_arithmetic_p "
            "shift_right_logical shift_right_logical_p xor_p"
        ),
        "verax.ops.elementwise.compare": (
            "eq_p eq_to_p ge ge_p gt gt_p le le_p le_to_p lt lt_p lt_to_p ne_p"
        ),
        "verax.ops.elementwise.convert": (
            "bitcast_convert_type bitcast_convert_type_p convert_element_type "
            "convert_element_type_p reduce_precision reduce_precision_p"
        ),
        "verax.ops.elementwise.exp_log": (
            "cbrt cbrt_p exp exp2 exp2_p exp_p expm1 expm1_p log log1p log1p_p log2 "
            "log2_p log_p logistic logistic_p one_minus_square one_minus_square_p pow "
            "pow_p rsqrt rsqrt_p sqrt sqrt_p square square_p"
        ),
        "verax.ops.elementwise.rounding": (
            "ceil ceil_p floor floor_p is_finite is_finite_p round round_p "
            "RoundingMethod"
        ),
        "verax.ops.elementwise.select": (
            "clamp clamp_p copy_p select select_n select_n_p stop_gradient_p"
        ),
        "verax.ops.elementwise.trig": (
            "acos acos_p acosh acosh_p asin asin_p asinh asinh_p atan atan2 atan2_p "
            "atan_p atanh atanh_p cos cos_p cosh cosh_p sin sin_p sinh sinh_p tan "
            "tan_p tanh tanh_p"
        ),
        "verax.ops.fft": "fft fft_p",
        "verax.ops.indexing.dynamic_slice": (
            "dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim dynamic_slice_p "
            "dynamic_update_index_in_dim dynamic_update_slice "
            "dynamic_update_slice_in_dim dynamic_update_slice_p"
        ),
        "verax.ops.indexing.gather": "gather gather_p scatter_add_p",
        "verax.ops.indexing.geometry": (
            "GatherDimensionNumbers GatherScatterMode ScatterDimensionNumbers"
        ),
        "verax.ops.indexing.scatter": (
            "scatter scatter_add scatter_max scatter_max_p scatter_min scatter_min_p "
            "scatter_mul scatter_mul_p scatter_p scatter_sub scatter_sub_p"
        ),
        "verax.ops.random.generators": (
            "RandomAlgorithm rng_bit_generator rng_bit_generator_p"
        ),
        "verax.ops.reductions.reduce": (
            "argmax argmax_p argmin argmin_p reduce_and reduce_and_p reduce_max "
            "reduce_max_p reduce_min reduce_min_p reduce_or reduce_or_p reduce_prod "
            "reduce_prod_p reduce_sum reduce_sum_p reduce_xor reduce_xor_p"
        ),
        "verax.ops.reductions.cumulative": (
            "cumlogsumexp cumlogsumexp_p cummax cummax_p cummin cummin_p cumprod "
            "cumprod_p cumsum cumsum_p"
        ),
        "verax.ops.reductions.recurrence": "linear_recurrence linear_recurrence_p",
        "verax.ops.sorting.sort": (
            "approx_max_k approx_min_k sort sort_key_val sort_p top_k top_k_p"
        ),
        "verax.ops.special.bessel": "bessel_i0e bessel_i0e_p bessel_i1e bessel_i1e_p",
        "verax.ops.special.erf_gamma": (
            "digamma digamma_p erf erf_inv erf_inv_p erf_p erfc erfc_p lgamma "
            "lgamma_p polygamma polygamma_p zeta zeta_p"
        ),
        "verax.ops.special.incomplete": (
            "betainc regularized_incomplete_beta regularized_incomplete_beta_p igamma "
            "igamma_grad_a igamma_grad_a_p igamma_p igammac igammac_p "
            "random_gamma_grad random_gamma_grad_p"
        ),
        "verax.ops.structure.create": "iota_p",
        "verax.ops.structure.joining": (
            "concatenate concatenate_p rev rev_p split split_p"
        ),
        "verax.ops.structure.shape": (
            "broadcast_in_dim_p broadcast_to_rank collapse expand_dims reshape_p "
            "squeeze squeeze_p transpose transpose_p"
        ),
        "verax.ops.structure.slicing": (
            "index_in_dim pad pad_p slice slice_in_dim slice_p"
        ),
        "verax.ops.windows.general_reduce": "reduce_p",
        "verax.ops.windows.geometry": "padtype_to_pads",
        "verax.ops.windows.reduce_window": (
            "reduce_window_max_p reduce_window_min_p reduce_window_p "
            "reduce_window_sum_p"
        ),
        "verax.ops.windows.select_and_scatter": "select_and_scatter_add_p",
    },
    modules="linalg",
)

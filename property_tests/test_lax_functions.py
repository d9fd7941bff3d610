"""The functions of `verax.lax` beside NumPy's."""

import inspect

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from property_tests.comparing import Pointwise, Whole, held, whole_held
from property_tests.functions_lax import POINTWISE, WHOLE
from verax import lax

SEEDS = st.integers(0, 2**16)
TABLE: tuple[Whole, ...] = WHOLE


def tried() -> settings:
    return settings(max_examples=max(1, settings().max_examples // 40))


@pytest.mark.parametrize("line", POINTWISE, ids=lambda line: line.name)
def test_function_of_numbers(line: Pointwise) -> None:
    @tried()
    @given(SEEDS)
    def search(seed: int) -> None:
        held(line, seed, np.float32)

    search()


@pytest.mark.parametrize("name", sorted({line.name for line in TABLE}))
def test_function_of_arrays(name: str) -> None:
    @tried()
    @given(SEEDS)
    def search(seed: int) -> None:
        for line in TABLE:
            if line.name == name:
                whole_held(line, seed)

    search()


ELSEWHERE = {
    "tests/lax/test_collectives.py": "all_gather all_to_all axis_index axis_size pmax "
    "pbroadcast pcast pmean pmin ppermute pshuffle pswapaxes psum psum_scatter pvary "
    "ragged_all_to_all with_sharding_constraint",
    "tests/lax, of the user's functions": "associative_scan composite cond "
    "custom_linear_solve custom_root dce_sink fori_loop map optimization_barrier "
    "platform_dependent reduce reduce_window scan stage stop_gradient switch "
    "while_loop",
    "property_tests/test_rows.py and tests/ops, by the laws of their rows": "conv "
    "conv_general_dilated conv_general_dilated_local conv_general_dilated_patches "
    "conv_transpose conv_with_general_padding gather scatter scatter_add scatter_apply "
    "scatter_max scatter_min scatter_mul scatter_sub ragged_dot ragged_dot_general "
    "rng_bit_generator approx_max_k approx_min_k reduce_precision "
    "bitcast_convert_type igamma_grad_a random_gamma_grad select_n index_take "
    "sort_key_val split stack unstack concatenate fft scaled_dot polynomial dot "
    "batch_matmul collapse broadcast_in_dim broadcast_like broadcast_to_rank "
    "dynamic_index_in_dim dynamic_slice_in_dim dynamic_update_index_in_dim "
    "dynamic_update_slice_in_dim",
    "examples in tests/lax and tests/ops": "broadcast_shapes broadcasted_iota "
    "conv_dimension_numbers conv_general_permutations conv_general_shape_tuple "
    "conv_shape_tuple conv_transpose_shape_tuple dtype empty full full_like iota "
    "padtype_to_pads reduce_window_shape_tuple shape_as_value",
    "special functions: test_scipy_functions.py": "betainc igamma igammac polygamma "
    "regularized_incomplete_beta zeta",
}


def test_table_is_complete() -> None:
    """Each public function is in the table, or listed with what holds it."""
    tables = {line.name.removeprefix("lax.") for line in TABLE}
    tables |= {line.name.removeprefix("lax.") for line in POINTWISE}
    listed = {name for names in ELSEWHERE.values() for name in names.split()}
    functions = {
        name
        for name in dir(lax)
        if inspect.isroutine(getattr(lax, name)) and name[0] != "_"
    }
    assert functions - tables - listed == set()
    assert listed & tables == set()

"""`jax.extend.core.primitives`: verax's own primitives under JAX's names."""

from typing import Any

from verax.core import eval_jaxpr
from verax.ir.jaxpr import ClosedJaxpr, Jaxpr
from verax.jax.overlays.linear_util import WrappedFun
from verax.jax.primitives import Primitive
from verax.ops.table import ROWS

NAMED = {f"{row.name.replace('-', '_')}_p": row for row in ROWS}
OTHERS = {
    "pjit_p": "jit_p",
    "remat_p": "checkpoint_p",
    "custom_jvp_call_jaxpr_p": "custom_jvp_call_p",
    "linear_solve_p": "custom_linear_solve_p",
}


class Call(Primitive):
    """The call of a program, which is written where it is called."""

    def bind(self, *args: object, call_jaxpr: object = None, **params: object) -> Any:
        """The results of `call_jaxpr`, or of a wrapped function, the first argument."""
        if isinstance(call_jaxpr, Jaxpr | ClosedJaxpr):
            return eval_jaxpr(call_jaxpr, (), *args)
        function, *operands = args
        if not isinstance(function, WrappedFun):
            raise TypeError(
                f"{self.name} takes a program as call_jaxpr, or a function of "
                f"linear_util.wrap_init, not {function!r}"
            )
        return function.call_wrapped(*operands)


CALLS = {
    name: Call(name.removesuffix("_p"))
    for name in ("call_p", "closed_call_p", "core_call_p", "eval_jaxpr_p")
}
UNWRITTEN = CALLS | {
    name: Primitive(name.removesuffix("_p"))
    for name in [
        "add_jaxvals_p",
        "after_all_p",
        "approx_top_k_p",
        "cholesky_update_p",
        "create_token_p",
        "custom_lin_p",
        "device_put_p",
        "empty2_p",
        "get_p",
        "ormqr_p",
        "pmax_p",
        "pmin_p",
        "polynomial_p",
        "ragged_all_to_all_p",
        "random_gamma_p",
        "rng_uniform_p",
        "select_and_gather_add_p",
        "select_and_scatter_p",
        "stack_p",
        "stage_p",
        "swap_p",
        "symmetric_product_p",
        "tile_p",
        "unstack_p",
    ]
}
"""Primitives of JAX's that no program of verax has: rules for them are never asked."""


def __getattr__(name: str) -> Any:
    out = NAMED.get(OTHERS.get(name, name)) or UNWRITTEN.get(name)
    if out is None:
        raise AttributeError(name)
    return out


def __dir__() -> list[str]:
    return sorted({*NAMED, *OTHERS, *UNWRITTEN})

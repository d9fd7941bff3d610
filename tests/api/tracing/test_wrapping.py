"""Functions that stand for a callable object, whatever attributes the object has."""

from collections.abc import Callable
from typing import Any

import pytest

import verax

TRANSFORMATIONS = [
    *[verax.jit, verax.vmap, verax.grad, verax.value_and_grad, verax.checkpoint],
    *[verax.jacfwd, verax.jacrev, verax.hessian, verax.make_jaxpr, verax.named_call],
    *[verax.custom_jvp, verax.custom_vjp, verax.pmap],
]


class Model:
    """As equinox's modules after a round through a pytree: no name, but its place."""

    def __init__(self) -> None:
        vars(self).update(
            dict.fromkeys(["__module__", "__name__", "__qualname__"], object()),
            __doc__=3,
            __annotations__=None,
            __type_params__=None,
            note="mine",
        )

    def __call__(self, x: Any) -> Any:
        return 2.0 * x


@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
def test_attributes_of_another_kind_are_left_out(
    transformation: Callable[..., Any],
) -> None:
    made = transformation(Model())
    assert made.note == "mine"
    assert isinstance(getattr(made, "__name__", "none"), str)
    assert isinstance(made.__module__, str)
    assert made.__doc__ is None or isinstance(made.__doc__, str)


@pytest.mark.parametrize("static", [False, True])
def test_jit_calls_it(static: bool) -> None:
    run = verax.jit(Model(), static_argnums=(0,) if static else ())
    assert float(run(3.0)) == 6.0
    assert "Model" in run.lower(3.0).as_text()


def test_a_jitted_function_is_recognised_by_the_name_of_its_class() -> None:
    def double(x: Any) -> Any:
        return 2 * x

    jitted = verax.jit(double)
    assert type(jitted).__name__ == "PjitFunction"
    assert repr(jitted) == f"<PjitFunction of {double!r}>"

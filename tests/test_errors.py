"""`verax.errors`: the names of both libraries, raised where JAX raises them."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import errors


def test_errors_have_names_of_both_libraries() -> None:
    def branch(x: Any) -> Any:
        return x if x > 0 else -x

    for name in ("AbstractValueError", "TracerBoolConversionError"):
        with pytest.raises(getattr(verax.errors, name)):
            verax.jit(branch)(1.0)
    assert issubclass(verax.LeakedTracer, verax.errors.UnexpectedTracerError)


def test_errors_have_the_names_of_jax() -> None:
    with pytest.raises(errors.TracerArrayConversionError):
        verax.jit(lambda x: np.asarray(x))(1.0)
    with pytest.raises(errors.TracerIntegerConversionError):
        verax.jit(lambda x: [1, 2][x])(1)
    with pytest.raises(errors.NonConcreteBooleanIndexError):
        verax.jit(lambda x: x[x > 0])(vnp.ones(3))
    assert issubclass(errors.ExecutionError, errors.JaxRuntimeError)

"""What is alive, what is cached, and of which type values are."""

import gc
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp


def test_typeof() -> None:
    assert str(verax.typeof(1)) == "~i32[]"
    assert verax.typeof(np.ones(3)).dtype == "float32"
    assert str(verax.typeof(verax.new_ref(np.ones(3)))) == "Ref{f32[3]}"
    struct = verax.ShapeDtypeStruct((2,), "float32", weak_type=True)
    assert str(verax.typeof(struct)) == "~f32[2]"
    with pytest.raises(TypeError, match="not an array"):
        verax.typeof("x")


def test_live_arrays() -> None:
    x = vnp.ones(3) + 1
    assert any(found is x for found in verax.live_arrays())
    x.delete()
    assert all(found is not x for found in verax.live_arrays())


@pytest.mark.slow
def test_classes_that_compare_in_their_own_way_are_no_obstacle() -> None:
    class Meta(type):
        def __eq__(cls, other: object) -> bool:
            raise NotImplementedError

    class Odd(metaclass=Meta):
        pass

    odd = Odd()
    with pytest.raises(TypeError, match="unhashable"):
        hash(type(odd))
    verax.clear_caches()


@pytest.mark.slow
def test_clear_caches() -> None:
    traces: list[int] = []

    @verax.jit
    def fun(x: Any) -> Any:
        traces.append(1)
        return x + 1

    assert float(fun(1.0)) == float(fun(1.0)) == 2
    assert len(traces) == 1
    verax.clear_caches()
    assert float(fun(1.0)) == 2
    assert len(traces) == 2


@pytest.mark.slow
def test_what_a_process_has_put_aside_is_seen_all_the_same() -> None:
    """Servers call `gc.freeze` before they fork, so that children share memory."""
    double = verax.jit(lambda x: x * 2)
    x = double(np.ones(3))
    gc.collect()
    gc.freeze()
    try:
        assert any(x is y for y in verax.live_arrays())
        gc.freeze()
        before = verax.metrics()["compiles"]
        verax.clear_caches()
        double(np.ones(3))
        assert verax.metrics()["compiles"] == before + 1
    finally:
        gc.unfreeze()

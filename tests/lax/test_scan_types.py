"""`scan`: how many steps are unrolled, and the types of a carry that starts weak."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax

ROWS = vnp.arange(4.0)


def running(carry: Any, x: Any) -> Any:
    return carry + x, carry


@pytest.mark.parametrize("unroll", [0, 1, 2, 3, 9, True, False, np.int32(2)])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_any_unrolling_gives_the_same(unroll: Any, length: int) -> None:
    total, ys = lax.scan(running, 0.0, ROWS[:length], unroll=unroll)
    assert total == sum(range(length))
    np.testing.assert_array_equal(ys, np.cumsum(np.arange(length)) - np.arange(length))
    assert lax.fori_loop(0, length, lambda i, c: c + i, 0, unroll=unroll) == total


def test_all_steps_are_unrolled_by_zero() -> None:
    def text(unroll: int) -> str:
        f = verax.jit(lambda x: lax.scan(running, 0.0, x, unroll=unroll))
        return f.lower(ROWS).as_text()

    assert "while" in text(1)
    assert "while" not in text(0)
    assert "while" not in text(True)


def test_errors_of_unroll() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        lax.scan(running, 0.0, ROWS, unroll=-1)
    wrong: Any
    for wrong in (1.5, None, "all"):
        with pytest.raises(TypeError):
            lax.scan(running, 0.0, ROWS, unroll=wrong)


def test_outputs_that_are_the_weak_carry_are_weak() -> None:
    total, ys = lax.scan(running, 0.0, ROWS)
    assert (total.weak_type, ys.weak_type) == (False, True)
    total, ys = lax.scan(lambda c, x: (c, c), 0.0, ROWS)
    assert (total.weak_type, ys.weak_type) == (True, True)
    total, ys = lax.scan(lambda c, x: (c + x.astype(vnp.bfloat16), c), 0.0, ROWS)
    assert total.dtype == ys.dtype == vnp.bfloat16


def test_the_body_sees_the_weak_carry() -> None:
    def step(carry: Any, x: Any) -> Any:
        return carry + x, carry * vnp.bfloat16(2)

    total, ys = lax.scan(step, 0.0, ROWS)
    assert (total.dtype, ys.dtype) == (vnp.float32, vnp.bfloat16)
    np.testing.assert_array_equal(ys, np.array([0, 0, 2, 6], ys.dtype))
    slope = verax.grad(lambda x: lax.scan(step, 0.0, x)[1].astype(vnp.float32).sum())
    np.testing.assert_array_equal(slope(ROWS), [6.0, 4.0, 2.0, 0.0])


def test_a_weak_carry_of_while_becomes_strong() -> None:
    out = lax.while_loop(lambda c: c < 3, lambda c: vnp.float32(c) + 1, 0.0)
    assert (out.item(), out.weak_type) == (3.0, False)
    assert out.dtype == vnp.float32


@pytest.mark.parametrize("run", [lambda f: f, verax.jit], ids=["known", "traced"])
def test_a_loop_may_count_in_floats(run: Any) -> None:
    def total(low: Any, high: Any) -> Any:
        return lax.fori_loop(low, high, lambda i, c: c + i, 0.0)

    assert run(total)(0.0, 3.0) == 3.0
    assert run(total)(0.5, 3.2) == 4.5
    assert run(total)(3.0, 0.0) == 0.0
    assert run(total)(vnp.float16(0), vnp.float16(2.5)) == 3.0
    with verax.disable_jit():
        assert total(0.5, 3.2) == 4.5
    with pytest.raises(TypeError, match="equal types"):
        run(total)(0, 3.0)
    with pytest.raises(TypeError, match="equal types"):
        run(total)(vnp.int8(0), vnp.int32(3))


def test_associative_scan_of_weak_values_is_not_weak() -> None:
    x = vnp.broadcast_to(vnp.asarray(0.5), (3,))
    assert x.weak_type
    assert not lax.associative_scan(vnp.add, x).weak_type
    assert lax.associative_scan(vnp.add, x[:1]).weak_type

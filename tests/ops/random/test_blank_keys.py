"""Blank arrays: zeros of keys, whose words can be zero, and what is like another."""

import pytest

import verax
from verax import ir
from verax.ops.structure.create import full_like, zeros


@pytest.mark.parametrize(
    "impl", ["threefry2x32", "rbg", "philox2x32", "philox4x32", "threefry4x32"]
)
def test_zeros_of_keys(impl: str) -> None:
    aval = verax.random.key(0, impl=impl).aval.with_shape((2,))

    def blank() -> verax.Array:
        return zeros(aval)

    for keys in (blank(), verax.jit(blank)()):
        assert keys.aval == aval
        assert not verax.random.key_data(keys).any()
    program = verax.make_jaxpr(blank)()
    assert ir.parse_jaxpr(str(program)) == program.jaxpr
    assert ir.loads(ir.dumps(program)) == program


def test_what_is_filled_alike_is_as_weak() -> None:
    weak, strong = verax.numpy.asarray(1.0), verax.numpy.float32(1.0)
    assert weak.weak_type
    assert full_like(weak, 2).aval == weak.aval
    assert full_like(strong, 2).aval == strong.aval
    assert verax.make_jaxpr(lambda x: full_like(x, 2))(1.0).out_avals[0].weak_type
    assert not full_like(weak, 2, dtype=strong.dtype).weak_type

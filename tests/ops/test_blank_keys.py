"""Zeros of keys: no number becomes a key, but the words of one can all be zero."""

import pytest

import verax
from verax import ir
from verax.ops.create import zeros


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
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

"""Common divisors and multiples against NumPy."""

from typing import Any

import numpy as np

import verax
from tests.numpy.against import agree, error_of, typed

jnp: Any = verax.numpy
N = np.array([1, 2, 3], np.int32)


def test_gcd_and_lcm() -> None:
    pair = np.array([-12, 0, 7, 2**30]), np.array([18, 18, 0, 2**20 * 3])
    small = [x.astype(np.int32) for x in pair]
    agree(jnp.gcd, np.gcd, *small)
    agree(jnp.lcm, np.lcm, small[0] % 100, small[1] % 100)
    agree(jnp.gcd, np.gcd, small[0][:, None], small[1])
    assert typed(jnp.gcd(np.uint8(4), np.int8(6))) == ("int16", 2)
    assert typed(jnp.gcd(12, -18)) == ("int32", 6)
    assert int(jnp.gcd(np.int32(-(2**31)), np.int32(0))) == -(2**31)
    assert int(jnp.gcd(np.int8(-128), np.int8(96))) == 32
    assert "integers" in error_of(lambda: jnp.gcd(1.0, 2), ValueError)
    mapped = verax.vmap(lambda x: jnp.gcd(x, 6))(jnp.asarray(N))
    assert mapped.tolist() == [1, 2, 3]

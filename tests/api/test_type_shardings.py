"""The sharding of a type says nothing, and is taken as None."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax, random
from verax.ir import ShapedArray
from verax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P


def test_type_says_nothing_of_its_place() -> None:
    actual: Any = verax.typeof(vnp.ones((2, 3))).sharding
    other: Any = verax.typeof(np.zeros((4, 5))).sharding
    scalar: Any = verax.typeof(1.0).sharding
    assert type(actual) is NamedSharding
    assert actual == other == NamedSharding(AbstractMesh((), ()), P(None, None))
    assert scalar.spec == P()


def test_sharding_of_a_type_is_taken_as_none() -> None:
    aval = verax.typeof(vnp.ones((2, 3)))
    place: Any = aval.sharding
    assert ShapedArray((2, 3), aval.dtype, sharding=place) is aval
    assert verax.ShapeDtypeStruct((2, 3), aval.dtype, sharding=place).sharding is None
    assert verax.ShapeDtypeStruct.like(aval).sharding is None
    assert random.normal(random.key(0), (2, 3), out_sharding=place).shape == (2, 3)
    assert vnp.zeros((2, 3), out_sharding=place).shape == (2, 3)
    assert lax.full((2, 3), 1.0, sharding=place).shape == (2, 3)
    made = verax.jit(lambda x: x + 1.0).lower(aval).compile()(np.ones((2, 3), "f"))
    assert made.tolist() == [[2.0] * 3] * 2


def test_sharding_that_says_something_is_refused() -> None:
    mesh = verax.make_mesh((1,), ("x",), (AxisType.Auto,))
    place = NamedSharding(mesh, P("x"))
    with pytest.raises(ValueError, match="out_sharding"):
        vnp.zeros(2, out_sharding=place)


def test_einsum_asks_another_product() -> None:
    calls = []

    def product(*args: object, **options: object) -> verax.Array:
        calls.append(options)
        return lax.dot_general(*args, **options)  # type: ignore[arg-type]  # passed on

    x, y, z = np.ones((2, 3), "f"), np.ones((3, 4), "f"), np.ones((4, 2), "f")
    actual = vnp.einsum("ij,jk,kl->il", x, y, z, _dot_general=product)
    assert actual.tolist() == [[12.0, 12.0]] * 2
    assert calls == [{"preferred_element_type": None}] * 2
    assert vnp.einsum("ij->ji", x, _dot_general=product).shape == (3, 2)

"""Eager operations on arrays with a place: where their results lie."""

import copy
import pickle
from typing import Any

import numpy as np

import verax
import verax.numpy as vnp


def test_eager_results_of_another_shape_are_undivided() -> None:
    mesh = verax.make_mesh((1,), ("d",), (verax.sharding.AxisType.Auto,))
    place = verax.sharding.NamedSharding(mesh, verax.P("d"))
    x = verax.device_put(np.arange(6.0, dtype="f4").reshape(1, 6), place)
    assert (x + x).sharding == place
    for actual in (x.sum(), (x > 0).all(), x[0], vnp.dot(x, x.T), vnp.linalg.norm(x)):
        assert actual.sharding == place.update(spec=verax.P())
        assert actual.committed
    assert float(x.sum()) == 15.0
    lone = verax.device_put(np.ones((2, 3)), verax.devices()[0])
    assert lone.sum().sharding == lone.sharding


def test_a_donated_array_gives_its_memory_to_the_result() -> None:
    add = verax.jit(lambda x: x + 1, donate_argnums=0)
    given: list[Any] = [vnp.array(0.0), vnp.zeros(1000), vnp.arange(9)]
    for x in given:
        before = x.unsafe_buffer_pointer()
        out: Any = add(x)
        assert (out.unsafe_buffer_pointer(), x.is_deleted()) == (before, True)


def test_arrays_with_and_without_a_place_are_of_one_class() -> None:
    plain, device = vnp.ones((1, 3)), verax.devices()[0]
    there = verax.device_put(np.ones((1, 3), "f4"), device)
    mapped = verax.pmap(lambda x: 2 * x)(plain)
    assert type(plain) is type(there) is type(mapped) is type(verax.jit(abs)(there))
    assert (plain.committed, there.committed, mapped.committed) == (False, True, True)
    # A place makes no difference to a type, and all of it to a compiled program.
    assert [row.committed for row in there] == [True]
    assert [row.committed for row in plain] == [False]
    assert (plain + there).committed
    assert plain.at[0].set(there[0]).committed
    assert not pickle.loads(pickle.dumps(there)).committed
    assert copy.copy(there).committed
    assert copy.deepcopy(there).committed
    add = verax.jit(vnp.add)
    assert [add(plain, x).committed for x in (plain, there, plain)] == [
        *(False, True, False)
    ]

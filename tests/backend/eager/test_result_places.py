"""Eager operations on arrays with a place: where their results lie."""

import numpy as np

import verax
import verax.numpy as vnp


def test_eager_results_of_another_shape_are_undivided() -> None:
    mesh = verax.make_mesh((1,), ("d",))
    place = verax.sharding.NamedSharding(mesh, verax.P("d"))
    x = verax.device_put(np.arange(6.0, dtype="f4").reshape(1, 6), place)
    assert (x + x).sharding == place
    for found in (x.sum(), (x > 0).all(), x[0], vnp.dot(x, x.T), vnp.linalg.norm(x)):
        assert found.sharding == place.update(spec=verax.P())
        assert found.committed
    assert float(x.sum()) == 15.0
    lone = verax.device_put(np.ones((2, 3)), verax.devices()[0])
    assert lone.sum().sharding == lone.sharding

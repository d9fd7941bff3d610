"""Programs for more devices than there are: lowered and printed, not compiled."""

from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax import lax
from verax.ir.meshes import MeshAxes, mesh_text
from verax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P


def struct(count: int, *spec: Any) -> Any:
    mesh = AbstractMesh((count, 2), ("x", "y"))
    place = NamedSharding(mesh, P(*spec))
    return verax.ShapeDtypeStruct((2 * count, 4), np.float32, sharding=place)


def loss(x: Any) -> Any:
    return (vnp.tanh(x) ** 2).mean()


def lowered(count: int) -> Any:
    return verax.jit(verax.grad(loss)).lower(struct(count, "x", "y"))


def test_modules_do_not_grow_with_the_number_of_devices() -> None:
    small, large = lowered(8).as_text(), lowered(4096).as_text()
    assert 'sdy.mesh @mesh = <["x"=4096, "y"=2]>' in large
    assert 'sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>' in large
    digits = len("8192") - len("16")
    numbers = small.count("16") + small.count("=8")
    assert len(large) - len(small) <= (digits + 1) * numbers


def test_they_are_not_compiled() -> None:
    with pytest.raises(
        ValueError, match=r"grad_loss|loss.*for 16 devices.*sees only 1"
    ):
        lowered(8).compile()


def test_constraints_and_shard_map_inside() -> None:
    mesh = AUTO

    @verax.jit
    def f(x: Any) -> Any:
        x = lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P("y")))
        part = verax.shard_map(
            lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P()
        )
        return part(x)

    text = f.lower(struct(8)).as_text()
    assert text.count("sdy.mesh @") == 1
    assert 'sdy.sharding_constraint %0 <@mesh, [{"y"}, {}]>' in text
    with pytest.raises(ValueError, match="f was lowered for 16 devices"):
        f.lower(struct(8)).compile()
    with pytest.raises(ValueError, match="f was lowered for 16 devices"):
        f(vnp.ones((16, 4)))


def test_arrays_that_are_here_cannot_take_part() -> None:
    x = verax.device_put(vnp.ones((16, 4)), verax.devices()[0])
    with pytest.raises(ValueError, match=r"ids \[0\] .* x2 .* ids \[0, 1"):
        verax.jit(vnp.add).lower(x, struct(8, "x"))


AUTO = AbstractMesh((8, 2), ("x", "y"), (AxisType.Auto,) * 2)
PLACE = NamedSharding(AUTO, P("x"))
VALUES = np.ones((16, 2), np.float32)


@pytest.mark.parametrize(
    "make",
    [
        lambda: verax.device_put(VALUES, PLACE),
        lambda: verax.device_put(vnp.ones((16, 2)), PLACE),
        lambda: vnp.zeros((16, 2), device=PLACE),
        lambda: vnp.asarray(VALUES, device=PLACE),
        lambda: lax.with_sharding_constraint(VALUES, PLACE),
        lambda: verax.make_array_from_callback((16, 2), PLACE, lambda i: VALUES[i]),
        lambda: verax.make_array_from_process_local_data(PLACE, VALUES),
        lambda: verax.make_array_from_single_device_arrays((16, 2), PLACE, []),
        lambda: verax.jit(vnp.sin, in_shardings=PLACE)(VALUES),
        lambda: verax.jit(vnp.sin, out_shardings=PLACE)(VALUES),
    ],
)
def test_arrays_cannot_be_put_there(make: Any) -> None:
    with pytest.raises(
        ValueError,
        match=r"16 devices.*this process sees only 1|no dev|has an AbstractMesh",
    ):
        make()


def test_positions_in_a_mesh_are_looked_up() -> None:
    axes = MeshAxes(("x",), (3,), (7, 9, 8))
    assert mesh_text(axes, (9, 8, 7)) == '<["x"=3], device_ids=[2, 0, 1]>'

"""What JAX keeps under experimental names for several devices, on eight devices."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import verax
from verax.experimental import mesh_utils, pjit, topologies
from verax.experimental.compilation_cache import compilation_cache
from verax.experimental.shard_map import shard_map
from verax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P

MESH = verax.make_mesh((4, 2), ("x", "y"))
AUTO = MESH.update(axis_types=(AxisType.Auto,) * 2)


def test_device_meshes() -> None:
    actual = mesh_utils.create_device_mesh((2, 4))
    assert [d.id for d in actual.flat] == list(range(8))
    assert actual.shape == (2, 4)
    with pytest.raises(ValueError, match="for 8 devices"):
        mesh_utils.create_device_mesh((3, 2))
    with pytest.raises(ValueError, match="sequence of integers"):
        mesh_utils.create_device_mesh((2.0, 4.0))  # type: ignore[arg-type]  # on purpose


def test_hybrid_device_meshes() -> None:
    devices: Any = [
        SimpleNamespace(id=i, platform="cpu", process_index=i // 4) for i in range(8)
    ]
    actual = mesh_utils.create_hybrid_device_mesh(
        (2, 2), (2, 1), devices, process_is_granule=True
    )
    assert [[d.id for d in row] for row in actual] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    across = mesh_utils.create_hybrid_device_mesh(
        (2, 2), (1, 2), devices[::-1], process_is_granule=True
    )
    ids = [[d.id for d in row] for row in across]
    assert ids == [[3, 2, 7, 6], [1, 0, 5, 4]]
    with pytest.raises(ValueError, match="process_is_granule"):
        mesh_utils.create_hybrid_device_mesh((2, 2), (2, 1), devices)
    with pytest.raises(ValueError, match="2 groups"):
        mesh_utils.create_hybrid_device_mesh(
            (2, 2), (4, 1), devices, process_is_granule=True
        )


def test_topologies() -> None:
    topology = topologies.get_attached_topology()
    assert topologies.make_mesh(topology, (4, 2), ("x", "y")) == AUTO


def test_former_names() -> None:
    x = np.arange(8, dtype=np.float32)
    total = shard_map(lambda x: x, MESH, P("x"), P(), check_rep=False)
    assert np.array_equal(total(x), x[:2])
    with pytest.raises(ValueError, match="may differ"):
        shard_map(lambda x: x, MESH, P("x"), P())(x)
    with verax.set_mesh(MESH):
        out = pjit.pjit(lambda x: x + 1, out_shardings=P("y"))(x)
    assert out.sharding.spec == P("y")
    assert verax.host_count() == 1
    assert verax.host_id() == 0
    assert verax.host_ids() == [0]
    assert isinstance(out.addressable_shards[0], verax.Shard)


def test_cache_directory(tmp_path: Any) -> None:
    before = verax.config.compilation_cache_dir
    try:
        compilation_cache.set_cache_dir(str(tmp_path))
        compilation_cache.reset_cache()
        assert verax.config.compilation_cache_dir == str(tmp_path)
    finally:
        verax.config.update("compilation_cache_dir", before)


def test_arrays_from_the_data_of_a_process() -> None:
    values = np.arange(32, dtype=np.float32).reshape(8, 4)
    make = verax.make_array_from_process_local_data
    for spec in (P("x"), P("y", "x"), P(("x", "y")), P(None, "x"), P()):
        place = NamedSharding(MESH, spec)
        for shape in (None, (8, 4)):
            out = make(place, values, shape)
            assert out.sharding == place
            assert np.array_equal(out, values)
    tree = make({"a": NamedSharding(MESH, P("x"))}, {"a": values})
    assert np.array_equal(tree["a"], values)
    with pytest.raises(ValueError, match="takes data of shape"):
        make(NamedSharding(MESH, P("x")), values, (16, 4))
    with pytest.raises(ValueError, match="dimensions"):
        make(NamedSharding(MESH, P("x")), values, (8,))


def test_parts_have_the_dtype_that_is_asked_for() -> None:
    mesh = Mesh(np.array(verax.devices()[:2]), ("x",))
    place = NamedSharding(mesh, P("x"))
    parts = [verax.device_put(np.ones(2, np.float32), d) for d in verax.devices()[:2]]
    make = verax.make_array_from_single_device_arrays
    assert make((4,), place, parts, dtype=np.float32).shape == (4,)
    with pytest.raises(ValueError, match="must match the dtype"):
        make((4,), place, parts, dtype=np.int32)


def test_pictures_of_shardings(capsys: pytest.CaptureFixture[str]) -> None:
    wide = Mesh(np.array(verax.devices()).reshape(2, 4), ("x", "y"))
    x = verax.device_put(np.zeros((8, 8)), NamedSharding(wide, P(None, "x")))
    verax.debug.visualize_array_sharding(x, scale=0.4)
    verax.debug.visualize_sharding((8,), NamedSharding(wide, P(("x", "y"))))
    verax.debug.visualize_sharding(
        (8, 1000), NamedSharding(wide, P("x", "y")), scale=0.3, max_width=33
    )
    row = [f" CPU {i} " for i in range(8)]
    assert capsys.readouterr().out.splitlines() == [
        "┌───────────┬───────────┐",
        "│           │           │",
        "│CPU 0,1,2,3│CPU 4,5,6,7│",
        "│           │           │",
        "└───────────┴───────────┘",
        f"┌{'┬'.join(['───────'] * 8)}┐",
        f"│{'│'.join(row)}│",
        f"└{'┴'.join(['───────'] * 8)}┘",
        "┌───────┬───────┬───────┬───────┐",
        f"│{'│'.join(row[:4])}│",
        "├───────┼───────┼───────┼───────┤",
        f"│{'│'.join(row[4:])}│",
        "└───────┴───────┴───────┴───────┘",
    ]
    actual: list[Any] = []
    verax.debug.inspect_array_sharding([x, x], callback=actual.append)
    assert actual == [x.sharding] * 2


def test_how_values_of_programs_lie(capsys: pytest.CaptureFixture[str]) -> None:
    actual: list[Any] = []
    grid = verax.make_mesh((4, 2), ("x", "y"))
    place = NamedSharding(grid, P("x"))
    x = verax.device_put(np.arange(32.0).reshape(8, 4), place)

    def shown(x: Any) -> Any:
        verax.debug.inspect_array_sharding(x, callback=actual.append)
        return x

    def specs(f: Any, x: Any = x) -> list[Any]:
        actual.clear()
        compiled = verax.jit(f)
        for _ in range(2):
            np.testing.assert_array_equal(compiled(x), verax.device_get(x))
        assert {sharding.num_devices for sharding in actual} == {8}
        return [sharding.spec for sharding in actual]

    assert specs(lambda x: (shown(x * 2), x)[1]) == [P("x")]
    assert specs(lambda x: (shown({"a": x.T, "b": x.sum(0)}), x)[1]) == [
        P(None, "x"),
        P(),
    ]

    def row(x: Any) -> Any:
        shown(x.T)
        return x

    assert specs(verax.vmap(row)) == [P("x")]
    mapped = verax.shard_map(row, mesh=grid, in_specs=P("x"), out_specs=P("x"))
    assert specs(mapped) == [P()]
    keys = verax.device_put(verax.random.split(verax.random.key(0), 8), place)
    verax.jit(lambda k: shown(k))(keys)
    assert actual[-1].spec == P("x")
    explicit = verax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
    y = verax.device_put(np.arange(8.0), NamedSharding(explicit, P("x")))
    assert specs(lambda x: (shown(x + x), x)[1], y) == [P("x")]
    verax.jit(verax.debug.visualize_array_sharding)(x)
    assert "│ CPU 2,3  │" in capsys.readouterr().out

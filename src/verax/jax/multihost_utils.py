"""`jax.experimental.multihost_utils`, as far as one process needs it.

What several processes would exchange, one has already; they are not supported yet::

    process_allgather({"loss": loss})     # {"loss": array of shape (1,)}
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from verax import NamedSharding, device_put, process_count, tree_util


def check_alone(what: str) -> None:
    """Raise NotImplementedError if there are other processes."""
    if process_count() > 1:
        raise NotImplementedError(
            f"jax.experimental.multihost_utils.{what}: verax has no communication of "
            "host values between processes"
        )


def sync_global_devices(name: str) -> None:
    """Wait until all processes have come here: there is one."""
    check_alone("sync_global_devices")


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether processes agreed to save at this step, since one will be stopped: no."""
    check_alone("reached_preemption_sync_point")
    return False


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raise unless all processes have the same values: one has."""
    check_alone("assert_equal")


def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of all processes, in NumPy arrays: stacked, or joined if `tiled`."""
    check_alone("process_allgather")

    def gathered(x: Any) -> np.ndarray:
        found = np.asarray(x)
        return found if tiled else found[None]

    return tree_util.tree_map(gathered, in_tree)


def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The values of one process, in NumPy arrays."""
    check_alone("broadcast_one_to_all")
    return tree_util.tree_map(np.asarray, in_tree)


def placed(what: str, inputs: Any, mesh: Any, specs: Any) -> Any:
    check_alone(what)

    def put(spec: Any) -> Callable[[Any], Any]:
        return lambda x: device_put(x, NamedSharding(mesh, spec))

    return tree_util.tree_map(
        lambda spec, part: tree_util.tree_map(put(spec), part), specs, inputs
    )


def host_local_array_to_global_array(
    local_inputs: Any, global_mesh: Any, pspecs: Any
) -> Any:
    """Arrays on the mesh, of the parts that processes have: here, of the whole."""
    return placed("host_local_array_to_global_array", local_inputs, global_mesh, pspecs)


def global_array_to_host_local_array(
    global_inputs: Any, global_mesh: Any, pspecs: Any
) -> Any:
    """The part of this process of arrays on the mesh: the whole."""
    return placed(
        "global_array_to_host_local_array", global_inputs, global_mesh, pspecs
    )

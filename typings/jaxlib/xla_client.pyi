"""The part of jaxlib's client module that `verax.backend` uses."""

from collections.abc import Callable, Mapping
from typing import Any

from jaxlib._jax import (
    Client as Client,
    CpuCollectives,
    DistributedRuntimeClient,
)

def make_cpu_client(
    asynchronous: bool = True,
    num_devices: int | None = None,
    distributed_client: DistributedRuntimeClient | None = None,
    node_id: int = 0,
    num_nodes: int = 1,
    collectives: CpuCollectives | None = None,
) -> Client: ...
def make_c_api_client(
    plugin_name: str,
    options: Mapping[str, Any] | None = None,
    distributed_client: DistributedRuntimeClient | None = None,
) -> Client: ...
def load_pjrt_plugin_dynamically(plugin_name: str, library_path: str) -> object: ...
def generate_pjrt_gpu_plugin_options() -> Mapping[str, Any]: ...
def pjrt_plugin_initialized(plugin_name: str) -> bool: ...
def initialize_pjrt_plugin(plugin_name: str) -> None: ...
def register_custom_type_handler(
    platform: str, handler: Callable[..., object]
) -> None: ...
def register_custom_call_handler(
    platform: str, handler: Callable[..., object]
) -> None: ...
def register_custom_type(
    type_name: str, type_id: object, platform: str = "cpu"
) -> None: ...
def register_custom_call_as_batch_partitionable(
    target_name: str, c_api: object = None
) -> None: ...
def register_custom_call_partitioner(
    name: str,
    prop_user_sharding: Callable[..., object],
    partition: Callable[..., object],
    infer_sharding_from_operands: Callable[..., object],
    can_side_effecting_have_replicated_sharding: bool = False,
    c_api: object = None,
) -> None: ...
def register_custom_call_target(
    name: str, fn: object, platform: str = "cpu", api_version: int = 0
) -> None: ...

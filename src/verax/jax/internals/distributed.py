"""`jax._src.distributed`: that this is the only process."""

from typing import Final

from attrs import frozen

from verax.ir.records import ReprMixin


@frozen(repr=False)
class State(ReprMixin):
    """The service that connects processes, which nothing has started."""

    process_id: int = 0
    num_processes: int = 1
    service: None = None
    client: None = None
    preemption_sync_manager: None = None
    coordinator_address: None = None
    partition_index: None = None


global_state: Final = State()

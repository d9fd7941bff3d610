"""`jax._src.distributed`: whether there are other processes, and which this one is."""

from typing import Final

from verax.backend.runtime.cluster import CLUSTER, Connection


class State:
    """What is known of the connection with other processes: read when asked for."""

    preemption_sync_manager: None = None

    @property
    def connection(self) -> Connection | None:
        return CLUSTER.connection

    @property
    def process_id(self) -> int:
        found = self.connection
        return 0 if found is None else found.settings.index

    @property
    def num_processes(self) -> int:
        found = self.connection
        return 1 if found is None else found.settings.count

    @property
    def coordinator_address(self) -> str | None:
        found = self.connection
        return None if found is None else found.settings.coordinator

    @property
    def partition_index(self) -> int | None:
        found = self.connection
        return None if found is None else found.settings.partition_index

    @property
    def client(self) -> object:
        found = self.connection
        return None if found is None else found.client

    @property
    def service(self) -> object:
        found = self.connection
        return None if found is None else found.service


global_state: Final = State()

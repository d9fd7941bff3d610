"""`jax._src.distributed`: whether there are other processes, and which this one is."""

from typing import Final

from verax.backend.runtime.cluster import CLUSTER, Connection


class State:
    """The connection with other processes, read when asked for."""

    preemption_sync_manager: None = None

    @property
    def connection(self) -> Connection | None:
        return CLUSTER.connection

    @property
    def process_id(self) -> int:
        connection = self.connection
        return 0 if connection is None else connection.settings.index

    @property
    def num_processes(self) -> int:
        connection = self.connection
        return 1 if connection is None else connection.settings.count

    @property
    def coordinator_address(self) -> str | None:
        connection = self.connection
        return None if connection is None else connection.settings.coordinator

    @property
    def partition_index(self) -> int | None:
        connection = self.connection
        return None if connection is None else connection.settings.partition_index

    @property
    def client(self) -> object:
        connection = self.connection
        return None if connection is None else connection.client

    @property
    def service(self) -> object:
        connection = self.connection
        return None if connection is None else connection.service


global_state: Final = State()

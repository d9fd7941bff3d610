"""The part of jaxlib's profiler that `verax.backend` uses."""

from collections.abc import Callable
from types import TracebackType

class ProfileOptions:
    advanced_configuration: dict[str, bool | int | str]
    duration_ms: int
    enable_hlo_proto: bool
    host_tracer_level: int
    include_dataset_ops: bool
    python_tracer_level: int
    raise_error_on_start_failure: bool
    repository_path: str
    session_id: str
    start_timestamp_ns: int

class ProfilerSession:
    def __init__(self, options: ProfileOptions, /) -> None: ...
    def stop(self) -> bytes: ...
    def export(self, xspace: bytes, directory: str, /) -> None: ...

class ProfilerServer: ...

class TraceMe:
    def __init__(self, name: str, /, **metadata: object) -> None: ...
    def set_metadata(self, **metadata: object) -> None: ...
    @staticmethod
    def is_enabled() -> bool: ...
    def __enter__(self) -> TraceMe: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

def start_server(port: int) -> ProfilerServer: ...
def register_plugin_profiler(c_api: object, /) -> None: ...
def register_subprocess(pid: int, port: int) -> Callable[[], None]: ...

"""The part of jaxlib's profiler that `verax.backend` uses."""

from types import TracebackType

class ProfileOptions:
    python_tracer_level: int
    host_tracer_level: int

class ProfilerSession:
    def __init__(self, options: ProfileOptions, /) -> None: ...
    def stop_and_export(self, directory: str, /) -> None: ...

class ProfilerServer: ...

class TraceMe:
    def __init__(self, name: str, /, **metadata: object) -> None: ...
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

"""A page that is served by threads of the tests' own process."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

from verax.explorer.serving import Service, server_at


@contextmanager
def running(service: Service) -> Iterator[str]:
    """The address of a service, whose threads have ended after the block."""
    with server_at(0, service) as server:
        threads = [Thread(target=service.work), Thread(target=server.serve_forever)]
        for thread in threads:
            thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            service.ended.set()
            with service.changed:
                service.changed.notify_all()
            server.shutdown()
            for thread in threads:
                thread.join()
